"""The rules of the guard, each against the stand-in daemon and a seller that keeps count, blocking and not."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import time
import tracemalloc
import unittest
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import mock

import httpx

from clresolve_guard import GuardError, GuardTransport, Paid, Signer
from clresolve_guard._challenges import is_credential, without_payments

from .world import CLIENTS, MESSAGES, Purchase, World

# The headers that all four guards are tested with.
CASES = json.loads((CLIENTS / "testing" / "challenges.json").read_text())

DENIED = {
    "other-payto": ["payee-mismatch"],
    "ten-years": ["payment-timeout-excessive"],
    "fake-usdc": ["payment-asset-unlisted"],
    "wrong-chain": ["payment-network-mismatch"],
    "over-limit": ["payment-amount-exceeds"],
    "header-against-body": ["payment-terms-ambiguous"],
    "broken-header": ["payment-terms-malformed"],
    "two-headers": ["payment-terms-ambiguous"],
    "garbage": ["payment-terms-malformed"],
    "v1-other-payto": ["payee-mismatch"],
}

BROKEN = (
    "500 503 404 422 201 302 hangs drips drops garbage truncated oversize "
    "schema other-schema no-schema no-codes codes-number other-name other-verb no-abort abort-text abort-number "
    "undecided unknown expired endless date offset no-time list null"
).split()
BROKEN_ENTRIES = (
    "no-entries entry-text entry-bare entry-index entry-twice entries-many "
    "entry-endless entry-null entry-date entry-over"
).split()

world: World


def setUpModule() -> None:
    global world
    world = World.of_module()


class Rules:
    """Each rule; how a request is sent is the subclasses' affair."""

    case: unittest.TestCase

    def inner(self) -> Any:
        raise NotImplementedError

    def send(self, guard: GuardTransport, requests: list[httpx.Request]) -> list[Any]:
        """Sends the requests at once: the replies, read, or the refusals."""
        raise NotImplementedError

    def close(self, guard: GuardTransport) -> None:
        raise NotImplementedError

    def guard(self, fault: str = "", **more: Any) -> GuardTransport:
        guard = world.guard(self.inner(), fault, **more)
        self.case.addCleanup(self.close, guard)
        return guard

    def get(self, guard: GuardTransport, url: str, headers: Any = None) -> httpx.Response:
        [end] = self.send(guard, [httpx.Request("GET", url, headers=headers)])
        if isinstance(end, httpx.Response):
            return end
        raise end

    def pay(self, guard: GuardTransport, url: str, header: str = "", name: str = "PAYMENT-SIGNATURE") -> httpx.Response:
        return self.get(guard, url, {name: header or world.payment()})

    def refuses(self, code: str, codes: list[str], *of: Any) -> None:
        with self.case.assertRaises(GuardError) as caught:
            (self.get if len(of) == 2 else self.pay)(*of)
        self.case.assertEqual((caught.exception.code, caught.exception.codes), (code, codes))

    def refuses_browsing(self, code: str, guard: GuardTransport, url: str, *codes: str) -> None:
        self.refuses(code, list(codes), guard, url)

    def refuses_paying(self, code: str, guard: GuardTransport, url: str, header: str = "", *codes: str) -> None:
        self.refuses(code, list(codes), guard, url, header)

    def assert_nothing_arrived(self, purchase: Purchase) -> None:
        self.case.assertEqual(purchase.arrived(), {"requests": 0, "payments": []})

    def test_a_purchase_goes_through_and_its_reply_comes_as_the_seller_sent_it(self) -> None:
        purchase, guard = world.purchase("honest"), self.guard()
        plain = world.http.get(purchase.url, headers={"accept-encoding": "identity"})
        demand = self.get(guard, purchase.url)
        kept = [pair for pair in demand.headers.raw if pair[0].lower() != b"date"]
        self.case.assertEqual(kept, [pair for pair in plain.headers.raw if pair[0].lower() != b"date"])
        self.case.assertEqual((demand.status_code, demand.content), (402, plain.content))
        self.case.assertEqual(self.pay(guard, purchase.url).json(), {"paid": True})
        self.case.assertEqual(purchase.paid(), [world.honest])

    def test_of_a_payment_that_left_is_handed_out_what_is_to_be_kept(self) -> None:
        kept: list[Paid] = []

        def on_paid(paid: Paid) -> None:
            kept.append(paid)
            raise ValueError("the program's own")

        for which, value, header, index in (
            ("two-entries", "9000", "payment-response", 1),
            ("v1-honest", "10000", "x-payment-response", 0),
            ("asks-again", "10000", None, 0),
        ):
            with self.case.subTest(which):
                kept.clear()
                purchase, guard, payment = world.purchase(which), self.guard(on_paid=on_paid), world.payment(value=value)
                self.get(guard, purchase.url)
                self.case.assertEqual(kept, [], "nothing has left")
                reply = self.pay(guard, purchase.url, payment)
                [paid] = kept
                settlement = reply.headers[header] if header else None
                self.case.assertEqual((paid.url, paid.payment, paid.settlement), (purchase.url, payment, settlement))
                self.case.assertEqual((paid.decision["schema"], paid.decision["abort"]), ("clresolve.decision/1", False))
                # That about what was signed, not the one before it.
                self.case.assertEqual([entry["index"] for entry in paid.decision["entries"]], [index])

    def test_of_a_payment_without_a_reply_it_is_handed_out_too_and_of_one_that_does_not_leave_nothing(self) -> None:
        kept: list[Paid] = []
        purchase, guard = world.purchase("breaks-off"), self.guard(on_paid=kept.append)
        self.refuses_paying("no-decision", guard, purchase.url)
        self.get(guard, purchase.url)
        thiefs = world.payment(to=world.stranger)
        self.refuses_paying("payment-denied", guard, purchase.url, thiefs, "payment-signature-mismatch")
        self.case.assertEqual(kept, [])
        payment, handed = world.payment(), []
        try:
            self.pay(guard, purchase.url, payment)
        except httpx.RemoteProtocolError:
            # The error holds what was under way: it was handed out before that is collected.
            handed = [(paid.payment, paid.settlement) for paid in kept]
        self.case.assertEqual(handed, [(payment, None)])

    def test_nothing_leaves_for_an_agent_that_the_gate_denies(self) -> None:
        purchase = world.purchase("free")
        self.refuses_browsing("denied", self.guard(agent="stranger.eth"), purchase.url, "name-unregistered")
        self.assert_nothing_arrived(purchase)

    def test_nothing_leaves_when_the_gate_gives_no_answer(self) -> None:
        purchase = world.purchase("free")
        for fault in ("500", "503", "204", "302", "hangs", "drops", "oversize"):
            with self.case.subTest(fault):
                self.refuses_browsing("unavailable", self.guard(f"gate.{fault}", timeout=0.2), purchase.url)
        self.assert_nothing_arrived(purchase)

    def test_refusal_names_the_daemon_and_its_failure_and_has_a_cause(self) -> None:
        unreachable, failures, kind = MESSAGES["unreachable"], MESSAGES["failures"], type(self).__name__
        cases = [(daemon, what, {"daemon": daemon}, True) for daemon, what in unreachable.items()]
        for fault, what in failures.items():
            daemon = f"{world.daemon}/{fault}"
            cases.append((daemon, what, {"daemon": daemon, "timeout": 0.2}, fault not in MESSAGES["withoutCause"]))
        impatient = f"{world.daemon}/gate.cold-late-{kind}"
        cases.append((impatient, "timeout", {"daemon": impatient, "timeout": 0.05}, True))
        for daemon, what, options, has_cause in cases:
            with self.case.subTest(daemon):
                purchase = world.purchase("honest")
                with self.case.assertRaises(GuardError) as caught:
                    self.get(self.guard(**options), purchase.url)
                message = f"not paying: no usable answer from clresolve at {daemon}: {what}"
                self.case.assertEqual((caught.exception.code, str(caught.exception)), ("unavailable", message))
                cause = caught.exception.__cause__
                self.case.assertEqual(cause is not None, has_cause, repr(cause))
                if what == "timeout":
                    self.case.assertIsInstance(cause, (TimeoutError, httpx.TimeoutException))
                if daemon in unreachable:
                    self.case.assertIsInstance(cause, httpx.ConnectError)
                self.case.assertEqual(purchase.paid(), [])

    def test_a_transient_denial_is_retried_until_the_timeout(self) -> None:
        kind = type(self).__name__
        for fault in ("gate.cold", "gate.unconfirmed", "decisions.unconfirmed", "signed.unconfirmed"):
            with self.case.subTest(fault):
                url, guard = world.purchase("honest").url, self.guard(f"{fault}-{kind}")
                self.case.assertEqual(self.get(guard, url).status_code, 402)
                self.case.assertEqual(self.pay(guard, url).status_code, 200)
        for fault in ("gate.cold", "gate.unconfirmed", "decisions.unconfirmed"):
            with self.case.subTest(fault, timeout="short"):
                impatient = self.guard(f"{fault}-{kind}-impatient", timeout=0.05)
                self.refuses_browsing("unavailable", impatient, world.purchase("honest").url)

    def test_foreign_text_does_not_get_into_a_message(self) -> None:
        with self.case.assertRaises(GuardError) as caught:
            self.get(self.guard("gate.foreign"), world.purchase("free").url)
        self.case.assertEqual(str(caught.exception), "not paying: clresolve denies this agent or its terms")

    def test_redirects_are_not_followed(self) -> None:
        for status in (301, 302, 303, 307, 308):
            purchase = world.purchase(f"redirect-{status}")
            self.refuses_browsing("redirected", self.guard(), purchase.url)
            self.case.assertEqual((purchase.arrived()["requests"], purchase.asked()), (1, []))

    def test_the_redirect_of_a_paid_request_comes_back_and_leads_nowhere(self) -> None:
        for status in (301, 302, 303, 307, 308):
            purchase, guard = world.purchase(f"paid-{status}-elsewhere"), self.guard()
            self.get(guard, purchase.url)
            answer = self.pay(guard, purchase.url)
            self.case.assertEqual((answer.status_code, answer.json()), (status, {"moved": True}))
            self.case.assertIn("payment-response", answer.headers)
            self.case.assertFalse({"location", "refresh"} & set(answer.headers))
            self.case.assertEqual([one["seller"] for one in purchase.arrived()["payments"]], ["agent"])

    def test_terms_without_an_entry_that_passes_are_not_handed_on(self) -> None:
        for which, codes in DENIED.items():
            with self.case.subTest(which):
                purchase, guard = world.purchase(which), self.guard()
                self.refuses_browsing("denied", guard, purchase.url, *codes)
                self.refuses_paying("no-decision", guard, purchase.url)
                self.case.assertEqual(purchase.paid(), [])

    def test_terms_are_not_handed_on_without_a_decision(self) -> None:
        for fault in BROKEN + BROKEN_ENTRIES:
            with self.case.subTest(fault):
                purchase, guard = world.purchase("honest"), self.guard(f"decisions.{fault}", timeout=0.5)
                self.refuses_browsing("unavailable", guard, purchase.url)
                self.refuses_paying("no-decision", guard, purchase.url)
                self.case.assertEqual(purchase.paid(), [])

    def test_a_payment_does_not_leave_without_a_decision_about_what_is_signed(self) -> None:
        for fault in [*BROKEN, "entry-other", "allows-nothing"]:
            with self.case.subTest(fault):
                purchase, guard = world.purchase("honest"), self.guard(f"signed.{fault}", timeout=0.5)
                self.get(guard, purchase.url)
                self.refuses_paying("unavailable", guard, purchase.url)
                self.case.assertEqual(purchase.paid(), [])
        purchase, guard = world.purchase("honest"), self.guard("signed.aborts")
        self.get(guard, purchase.url)
        self.refuses_paying("payment-denied", guard, purchase.url)
        self.case.assertEqual(purchase.paid(), [])

    def test_an_allowance_without_an_entry_allows_nothing(self) -> None:
        self.refuses_browsing("denied", self.guard("decisions.allows-nothing"), world.purchase("honest").url)

    def test_refusal_has_the_codes_that_decide(self) -> None:
        for fault, which, code in (
            ("warns", "other-payto", "payee-mismatch"),
            ("denies-a-warning", "honest", "payee-changed"),
        ):
            with self.case.subTest(fault):
                guard = self.guard(f"decisions.{fault}")
                self.refuses_browsing("denied", guard, world.purchase(which).url, code)
        purchase, guard = world.purchase("honest"), self.guard("signed.warns")
        self.get(guard, purchase.url)
        thiefs = world.payment(to=world.stranger)
        self.refuses_paying("payment-denied", guard, purchase.url, thiefs, "payment-signature-mismatch")
        self.case.assertEqual(self.pay(guard, purchase.url).status_code, 200, "a warning denies nothing")

    def test_the_longest_402_is_read_and_a_longer_one_is_not_paid(self) -> None:
        self.case.assertEqual(len(self.get(self.guard(), world.purchase("longest-body").url).content), 65536)
        longer = world.purchase("longer-body")
        self.refuses_browsing("unreadable", self.guard(), longer.url)
        self.case.assertEqual(longer.asked(), [])

    def test_a_402_that_breaks_off_is_refused_with_its_local_cause(self) -> None:
        for which in ("cut-off", "cut-off-chunked"):
            purchase = world.purchase(which)
            with self.case.assertRaises(GuardError) as caught:
                self.get(self.guard(), purchase.url)
            self.case.assertEqual(caught.exception.code, "unreadable")
            self.case.assertIsInstance(caught.exception.__cause__, httpx.RemoteProtocolError)
            self.case.assertNotIn("accepts", str(caught.exception))
            self.case.assertEqual(purchase.asked(), [])

    def test_a_402_that_drips_is_refused_in_time_with_its_local_cause(self) -> None:
        purchase, began = world.purchase("drips"), time.monotonic()
        with self.case.assertRaises(GuardError) as caught:
            self.get(self.guard(), purchase.url)
        self.case.assertEqual(caught.exception.code, "unreadable")
        self.case.assertIsInstance(caught.exception.__cause__, TimeoutError)
        self.case.assertLess(time.monotonic() - began, 15)
        self.case.assertEqual(purchase.asked(), [])

    def test_a_body_with_two_codings_or_beyond_the_limit_is_refused(self) -> None:
        for which in ("gzip-twice", "gzip-on-two-lines", "gzip-bomb"):
            with self.case.subTest(which):
                purchase = world.purchase(which)
                self.refuses_browsing("unreadable", self.guard(), purchase.url)
                self.case.assertEqual(purchase.asked(), [])

    def test_a_body_with_one_coding_is_judged_as_the_client_reads_it(self) -> None:
        purchase = world.purchase("gzip")
        self.case.assertEqual(self.get(self.guard(), purchase.url).content, b"{}")
        self.case.assertEqual(base64.b64decode(purchase.asked()[0]["response"]["body_base64"]), b"{}")

    def kept(self, headers: httpx.Headers) -> dict[str, str | None]:
        return {name: headers.get(name) for name in world.kept}

    def test_client_and_daemon_see_no_challenge_of_another_protocol(self) -> None:
        purchase = world.purchase("other-protocols")
        self.case.assertEqual(self.kept(self.get(self.guard(), purchase.url).headers), world.kept)
        asked = [(name, value) for name, value in purchase.asked()[0]["response"]["headers"]]
        self.case.assertEqual(self.kept(httpx.Headers(asked)), world.kept)

    def test_replies_carry_no_challenge_of_another_payment_protocol(self) -> None:
        for status in (200, 204, 401, 403, 503):
            answer = self.get(self.guard(), world.purchase(f"status-{status}").url)
            self.case.assertEqual((answer.status_code, self.kept(answer.headers)), (status, world.kept))
            # Some clients pay terms whatever the status.
            self.case.assertFalse({"payment-required", "x-payment-required"} & set(answer.headers))
        purchase, guard = world.purchase("asks-otherwise"), self.guard()
        self.get(guard, purchase.url)
        answer = self.pay(guard, purchase.url)
        self.case.assertEqual((answer.status_code, self.kept(answer.headers)), (402, world.kept))

    def test_a_402_with_another_protocols_demand_alone_is_refused(self) -> None:
        for which in ("mpp-thief", "mpp-honest"):
            url = world.purchase(which).url
            self.refuses_browsing("denied", self.guard(), url, "payment-terms-malformed")

    def test_a_credential_of_another_payment_protocol_does_not_leave(self) -> None:
        purchase, guard = world.purchase("honest"), self.guard()
        self.get(guard, purchase.url)
        for name, value in CASES["credentials"]:
            self.refuses("other-protocol", [], guard, purchase.url, value, name)
            with self.case.assertRaises(GuardError) as caught:
                self.get(guard, purchase.url, [("PAYMENT-SIGNATURE", world.payment()), (name, value)])
            self.case.assertEqual(caught.exception.code, "other-protocol")
        self.case.assertEqual(purchase.arrived()["requests"], 1)
        for name, value in CASES["others"]:
            self.case.assertEqual(self.get(guard, purchase.url, {name: value}).status_code, 402)

    def test_a_credential_of_another_payment_protocol_in_a_body_does_not_leave(self) -> None:
        purchase, guard = world.purchase("honest"), self.guard()
        self.get(guard, purchase.url)
        for headers in ({}, {"PAYMENT-SIGNATURE": world.payment()}):
            for body in CASES["bodies"]:
                [end] = self.send(guard, [httpx.Request("POST", purchase.url, headers=headers, content=body)])
                self.case.assertEqual(getattr(end, "code", end), "other-protocol", body)
        self.case.assertEqual(purchase.arrived()["requests"], 1)
        for body in CASES["otherBodies"]:
            [answer] = self.send(guard, [httpx.Request("POST", purchase.url, content=body)])
            self.case.assertEqual(getattr(answer, "status_code", answer), 402, body)

    def test_the_daemon_sees_the_url_every_header_and_the_whole_body(self) -> None:
        purchase, limits = world.purchase("v1-honest"), {"networks": ["eip155:84532"]}
        guard, header = self.guard(limits=limits), world.payment()
        body = self.get(guard, f"{purchase.url}#fragment").content
        self.pay(guard, purchase.url, header, "X-PAYMENT")
        first, second = purchase.asked()
        reply = first["response"]
        self.case.assertEqual((first["name"], first["verb"], first["limits"]), (world.name, world.verb, limits))
        self.case.assertEqual((reply["status"], reply["url"]), (402, purchase.url))
        self.case.assertIn(["content-type", "application/json"], reply["headers"])
        self.case.assertEqual(base64.b64decode(reply["body_base64"]), body)
        self.case.assertEqual(second, {**first, "selected": 0, "header": header})

    def test_headers_that_come_twice_are_handed_to_the_daemon_twice(self) -> None:
        purchase = world.purchase("two-headers")
        self.refuses_browsing("denied", self.guard(), purchase.url, "payment-terms-ambiguous")
        names = [name.lower() for name, _ in purchase.asked()[0]["response"]["headers"]]
        self.case.assertEqual(names.count("payment-required"), 2)

    def test_a_payment_header_does_not_leave_without_a_decision(self) -> None:
        purchase = world.purchase("honest")
        for name in ("PAYMENT-SIGNATURE", "payment-signature", "X-PAYMENT", "x-Payment"):
            for value in (world.payment(), " "):
                self.refuses("no-decision", [], self.guard(), purchase.url, value, name)
        self.assert_nothing_arrived(purchase)

    def test_two_payments_in_one_request_do_not_leave(self) -> None:
        purchase, guard = world.purchase("honest"), self.guard()
        self.get(guard, purchase.url)
        for names in (("PAYMENT-SIGNATURE", "X-PAYMENT"), ("x-payment", "X-Payment")):
            with self.case.assertRaises(GuardError) as caught:
                self.get(guard, purchase.url, [(name, world.payment()) for name in names])
            self.case.assertEqual(caught.exception.code, "two-payments")
        self.case.assertEqual(purchase.paid(), [])

    def test_a_decision_is_for_its_url(self) -> None:
        one, other, guard = world.purchase("honest"), world.purchase("honest"), self.guard()
        self.get(guard, one.url)
        self.refuses_paying("no-decision", guard, other.url)
        self.case.assertEqual(other.paid(), [])

    def test_a_decision_is_for_one_payment(self) -> None:
        for which in ("honest", "asks-again"):
            purchase, guard = world.purchase(which), self.guard()
            self.get(guard, purchase.url)
            self.pay(guard, purchase.url)
            self.refuses_paying("no-decision", guard, purchase.url)
            self.case.assertEqual(purchase.paid(), [world.honest])

    def test_of_payments_at_once_exactly_one_leaves_for_each_decision(self) -> None:
        for decisions in (1, 2):
            purchase, guard = world.purchase("honest"), self.guard()
            for _ in range(decisions):
                self.get(guard, purchase.url)
            headers = [{"PAYMENT-SIGNATURE": world.payment()} for _ in range(8)]
            ends = self.send(guard, [httpx.Request("GET", purchase.url, headers=one) for one in headers])
            self.case.assertEqual(len([end for end in ends if isinstance(end, httpx.Response)]), decisions)
            self.case.assertEqual(len(purchase.paid()), decisions)

    def test_a_decision_ends(self) -> None:
        purchase, guard = world.purchase("honest"), self.guard()
        self.get(guard, purchase.url)
        [(_, entry)] = guard._waiting.of(purchase.url)
        with mock.patch("clresolve_guard._transport.time.time", return_value=entry.until):
            self.refuses_paying("no-decision", guard, purchase.url)
        self.case.assertEqual(purchase.paid(), [])

    def test_an_entry_ends_by_itself(self) -> None:
        purchase, guard = world.purchase("two-ends"), self.guard()
        header, other = world.payment(), world.payment(value="9000")
        self.get(guard, purchase.url)
        [_, (allowed, shorter)] = guard._waiting.of(purchase.url)
        with mock.patch("clresolve_guard._transport.time.time", return_value=shorter.until):
            self.refuses_paying("payment-denied", guard, purchase.url, other, "payment-signature-mismatch")
            self.case.assertFalse(guard._waiting.take(allowed, shorter))
            self.pay(guard, purchase.url, header)
        self.case.assertEqual([one.get("selected") for one in purchase.asked()], [None, 0, 0])
        self.case.assertEqual([one["value"] for one in purchase.arrived()["payments"]], ["10000"])

    def test_what_is_signed_must_be_what_was_allowed(self) -> None:
        purchase, guard = world.purchase("honest"), self.guard()
        self.get(guard, purchase.url)
        changes: dict[str, Any] = {"to": world.stranger, "value": "10001", "seconds": 10**9, "accepted": {}}
        for name, value in changes.items():
            header = world.payment(**{name: value})
            self.refuses_paying("payment-denied", guard, purchase.url, header, "payment-signature-mismatch")
        self.case.assertEqual(purchase.paid(), [])

        both, guard = world.purchase("two-entries"), self.guard()
        self.get(guard, both.url)
        self.pay(guard, both.url, world.payment(value="9000"))
        self.case.assertEqual([one["value"] for one in both.arrived()["payments"]], ["9000"])
        poisoned = world.purchase("v1-second-poisoned")
        self.get(guard, poisoned.url)
        thiefs = world.payment(to=world.stranger, value="9000")
        self.refuses_paying("payment-denied", guard, poisoned.url, thiefs, "payment-signature-mismatch")
        self.pay(guard, poisoned.url)
        self.case.assertEqual(poisoned.paid(), [world.honest])

    def test_decisions_that_nobody_pays_for_are_forgotten_the_oldest_first(self) -> None:
        guard, first, second = self.guard(), world.purchase("honest"), world.purchase("honest")
        with mock.patch("clresolve_guard._transport._MAX_WAITING", 2):
            for url in (first.url, second.url, world.purchase("honest").url):
                self.get(guard, url)
        self.refuses_paying("no-decision", guard, first.url)
        self.case.assertEqual(self.pay(guard, second.url).status_code, 200)

    def test_about_one_payment_at_most_32_questions_are_asked(self) -> None:
        purchase, guard = world.purchase("honest"), self.guard()
        for _ in range(33):
            self.get(guard, purchase.url)
        thiefs = world.payment(to=world.stranger)
        self.refuses_paying("payment-denied", guard, purchase.url, thiefs, "payment-signature-mismatch")
        self.case.assertEqual(sum("header" in question for question in purchase.asked()), 32)

    def test_a_daemon_is_reached_over_https_and_over_a_unix_socket(self) -> None:
        ways: list[dict[str, Any]] = [{"daemon": world.secure, "ca": world.ca}, {"daemon": f"unix:{world.socket}"}]
        for more in ways:
            purchase, guard = world.purchase("honest"), self.guard(**more)
            self.get(guard, purchase.url)
            self.pay(guard, purchase.url)
            self.case.assertEqual(purchase.paid(), [world.honest])
        self.refuses_browsing("unavailable", self.guard(daemon=world.secure), world.purchase("free").url)

    def test_proxies_of_the_environment_are_not_asked(self) -> None:
        purchase = world.purchase("free")
        with mock.patch.dict("os.environ", {"HTTP_PROXY": "http://127.0.0.1:9", "ALL_PROXY": "http://127.0.0.1:9"}):
            self.case.assertEqual(self.get(self.guard(), purchase.url).status_code, 200)

    def test_a_signed_decision_is_checked(self) -> None:
        signer, purchase = Signer(world.issuer, world.jwks), world.purchase("honest")
        guard = self.guard(signer=signer)
        self.get(guard, purchase.url)
        self.pay(guard, purchase.url)
        self.case.assertEqual(purchase.paid(), [world.honest])
        faults = "unsigned issuer late early long request unbound none type crit jku kid key payload "
        for fault in (faults + "backward fraction text padded parts space").split():
            fault = fault if fault == "unsigned" else f"jws-{fault}"
            with self.case.subTest(fault):
                self.refuses_browsing("unavailable", self.guard(f"decisions.{fault}", signer=signer), purchase.url)
                then = self.guard(f"signed.{fault}", signer=signer)
                self.get(then, purchase.url)
                self.refuses_paying("unavailable", then, purchase.url)
        self.case.assertEqual(len(purchase.paid()), 1)

    def test_a_body_that_is_longer_when_decoded_is_not_paid(self) -> None:
        for body, code in ((b" " * 65537, "unreadable"), (b" " * 65536, "denied")):
            encoded = gzip.compress(body)
            reply = httpx.Response(402, headers={"content-encoding": "gzip"}, stream=httpx.ByteStream(encoded))
            guard = world.guard(httpx.MockTransport(lambda _, reply=reply: reply))
            with self.case.assertRaises(GuardError) as caught:
                self.get(guard, world.purchase("honest").url)
            self.case.assertEqual(caught.exception.code, code)
        broken = httpx.Response(402, headers={"content-encoding": "gzip"}, stream=httpx.ByteStream(b"no"))
        guard = world.guard(httpx.MockTransport(lambda _: broken))
        self.refuses_browsing("unreadable", guard, world.purchase("honest").url)


class Blocking(Rules, unittest.TestCase):
    def setUp(self) -> None:
        self.case = self

    def inner(self) -> Any:
        return httpx.HTTPTransport(trust_env=False, verify=False)

    def close(self, guard: GuardTransport) -> None:
        guard.close()

    def send(self, guard: GuardTransport, requests: list[httpx.Request]) -> list[Any]:
        def one(request: httpx.Request) -> Any:
            try:
                response = guard.handle_request(request)
            except GuardError as error:
                return error
            response.read()
            return response

        with ThreadPoolExecutor(max_workers=8) as pool:
            return list(pool.map(one, requests))


class NotBlocking(Rules, unittest.TestCase):
    def setUp(self) -> None:
        self.case = self
        self.loop = asyncio.new_event_loop()
        self.addCleanup(self.loop.close)

    def inner(self) -> Any:
        return httpx.AsyncHTTPTransport(trust_env=False, verify=False)

    def close(self, guard: GuardTransport) -> None:
        self.loop.run_until_complete(guard.aclose())
        # Connections end in the next turn of the loop.
        self.loop.run_until_complete(asyncio.sleep(0))

    def send(self, guard: GuardTransport, requests: list[httpx.Request]) -> list[Any]:
        async def one(request: httpx.Request) -> httpx.Response:
            response = await guard.handle_async_request(request)
            await response.aread()
            return response

        async def all_of_them() -> list[Any]:
            return await asyncio.gather(*(one(request) for request in requests), return_exceptions=True)

        return self.loop.run_until_complete(all_of_them())


class Challenges(unittest.TestCase):
    def test_payment_challenges_are_removed_and_others_stay(self) -> None:
        repeated = CASES["repeat"]["text"] * CASES["repeat"]["times"]
        for value, kept in CASES["challenges"]:
            with self.subTest(value):
                self.assertEqual(without_payments(value.replace("#", repeated)), kept.replace("#", repeated))

    def test_credentials_of_other_payment_protocols_are_recognized(self) -> None:
        for name, value in CASES["credentials"]:
            self.assertTrue(is_credential(name, value), f"{name}: {value}")
        for name, value in CASES["others"]:
            self.assertFalse(is_credential(name, value), f"{name}: {value}")


class Decoding(unittest.TestCase):
    def test_a_body_is_decoded_in_bounded_pieces(self) -> None:
        zeros = bytes(32 * 1024 * 1024)
        bomb = gzip.compress(zeros)
        for coding, wire in (("gzip", bomb), ("deflate", zlib.compress(zeros)), ("gzip, gzip", gzip.compress(bomb))):
            with self.subTest(coding):
                reply = httpx.Response(402, headers={"content-encoding": coding}, stream=httpx.ByteStream(wire))
                guard = world.guard(httpx.MockTransport(lambda _, reply=reply: reply))
                tracemalloc.start()
                try:
                    with self.assertRaises(GuardError) as caught:
                        guard.handle_request(httpx.Request("GET", world.purchase("free").url))
                    self.assertLess(tracemalloc.get_traced_memory()[1], 1024 * 1024)
                finally:
                    tracemalloc.stop()
                self.assertEqual(caught.exception.code, "unreadable")


class Configuration(unittest.TestCase):
    def test_a_daemon_elsewhere_is_asked_over_https_or_signs(self) -> None:
        def guard(daemon: str, **more: Any) -> GuardTransport:
            return world.guard(None, daemon=daemon, **more)

        signer = Signer(world.issuer, world.jwks)
        for daemon in (
            "http://clresolve.example",
            "http://10.0.0.1:8402",
            "http://127.0.0.1.example",
            "http://localhost.example",
            "http://[::2]",
            "http://0.0.0.0",
            "http://[::ffff:127.0.0.1]",
            "http://128.0.0.1",
        ):
            with self.subTest(daemon):
                self.assertRaises(ValueError, guard, daemon)
                guard(daemon, signer=signer)
        for daemon in (
            "http://127.0.0.1:8402",
            "http://127.1.2.3",
            "http://[::1]:8402/behind/a/proxy",
            "http://LOCALHOST",
            "https://clresolve.example",
            "unix:/run/clresolve.sock",
        ):
            with self.subTest(daemon):
                guard(daemon)
        for daemon in (
            "ftp://127.0.0.1",
            "http://user@127.0.0.1",
            "http://127.0.0.1?a",
            "127.0.0.1",
            "unix:relative",
            "UNIX:/run/clresolve.sock",
            " unix:/run/clresolve.sock",
        ):
            with self.subTest(daemon):
                self.assertRaises(ValueError, guard, daemon, signer=signer)
        for more in ({"agent": ""}, {"verb": ""}, {"timeout": 0.0}):
            self.assertRaises(ValueError, lambda more=more: world.guard(None, **more))

    def assert_rejected(self, kind: type[Exception], message: str, options: dict[str, Any]) -> None:
        with self.subTest(options), self.assertRaises(kind) as caught:
            world.guard(None, **options)
        self.assertEqual(str(caught.exception), message)

    def test_unknown_argument_is_rejected_with_the_nearest_name(self) -> None:
        for name, meant in (("deamon", "daemon"), ("agnet", "agent"), ("timout", "timeout"), ("onPaid", "on_paid")):
            self.assert_rejected(TypeError, f"{name}: did you mean {meant}?", {name: ""})
        known = "inner, daemon, agent, name, verb, limits, timeout, ca, signer, on_paid"
        for name in ("cert", "xy"):
            self.assert_rejected(TypeError, f"{name}: unknown argument; the arguments are {known}", {name: ""})
        # Before Python complains that `daemon` is missing.
        misspelt: dict[str, Any] = {"deamon": world.daemon, "agent": world.name, "verb": world.verb}
        with self.assertRaisesRegex(TypeError, "^deamon: did you mean daemon"):
            GuardTransport(httpx.HTTPTransport(), **misspelt)

    def test_agent_that_is_not_in_normal_form_is_rejected_with_the_name_that_was_meant(self) -> None:
        for agent, meant in MESSAGES["agents"]:
            message = f"agent: expected the full ENS name in normal form; did you mean {meant}?"
            self.assert_rejected(ValueError, message, {"agent": agent})
        for agent in MESSAGES["normalAgents"]:
            world.guard(None, agent=agent)

    def test_daemon_without_a_scheme_is_rejected_with_an_example(self) -> None:
        message = "daemon: expected a URL such as http://127.0.0.1:8402"
        for daemon in [*MESSAGES["daemonsWithoutScheme"], "http://\0"]:
            self.assert_rejected(ValueError, message, {"daemon": daemon})


if __name__ == "__main__":
    unittest.main()
