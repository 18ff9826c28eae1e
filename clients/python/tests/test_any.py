"""Guards for any seller: checks instead of the gate and of decisions."""

from __future__ import annotations

import asyncio
import unittest
from typing import Any

import httpx

from clresolve_guard import GuardError, GuardTransport, Paid, Signer

from .world import MESSAGES, World

ANY: dict[str, Any] = {"agent": "any", "verb": None}

world: World


def setUpModule() -> None:
    global world
    world = World.of_module()


class AnySeller(unittest.TestCase):
    def guard(self, fault: str = "gate.503", **more: Any) -> GuardTransport:
        """A guard for any seller; the gate of its daemon answers nothing."""
        guard = world.guard(httpx.HTTPTransport(trust_env=False), fault, **{**ANY, **more})
        self.addCleanup(guard.close)
        return guard

    def get(self, guard: GuardTransport, url: str, header: str | None = None) -> int:
        headers = {} if header is None else {"PAYMENT-SIGNATURE": header}
        response = guard.handle_request(httpx.Request("GET", url, headers=headers))
        response.read()
        return response.status_code

    def refuses(self, code: str, codes: list[str], *of: Any) -> None:
        with self.assertRaises(GuardError) as caught:
            self.get(*of)
        self.assertEqual((caught.exception.code, caught.exception.codes), (code, codes))

    def test_any_seller_whose_payee_is_proven_is_paid_without_a_gate(self) -> None:
        kept: list[Paid] = []
        purchase, guard, header = world.purchase("honest"), self.guard(on_paid=kept.append), world.payment()
        self.assertEqual(self.get(guard, f"{purchase.url}#fragment"), 402)
        self.assertEqual(self.get(guard, purchase.url, header), 200)
        self.assertEqual(purchase.paid(), [world.honest])
        self.assertEqual([paid.decision["schema"] for paid in kept], ["clresolve.check/1"])
        first, second = purchase.asked()
        # httpx does not report the URL that answered, so there is no other one.
        self.assertEqual((set(first), first["response"]["url"]), ({"response"}, purchase.url))
        self.assertEqual(second, {**first, "selected": 0, "header": header})

    def test_any_seller_is_paid_without_blocking(self) -> None:
        async def buy(url: str) -> list[int]:
            guard = world.guard(httpx.AsyncHTTPTransport(trust_env=False), "gate.503", **ANY)
            async with httpx.AsyncClient(transport=guard) as http:
                headers = {"PAYMENT-SIGNATURE": world.payment()}
                return [(await http.get(url)).status_code, (await http.get(url, headers=headers)).status_code]

        purchase = world.purchase("honest")
        self.assertEqual(asyncio.run(buy(purchase.url)), [402, 200])
        self.assertEqual(purchase.paid(), [world.honest])

    def test_name_verb_and_limits_of_the_constructor_go_along(self) -> None:
        about: dict[str, Any] = {"name": "seller.eth", "verb": "summarize", "limits": {"max_amount": "10000"}}
        purchase = world.purchase("honest")
        self.get(self.guard(**about), purchase.url)
        [asked] = purchase.asked()
        self.assertEqual({member: asked.get(member) for member in about}, about)
        for fault in ("decisions.other-name", "decisions.other-verb"):
            self.refuses("unavailable", [], self.guard(fault, **about), world.purchase("honest").url)

    def test_terms_that_a_check_does_not_allow_are_not_handed_on(self) -> None:
        for which, fault, code in (
            ("other-payto", "", "payee-mismatch"),
            ("over-limit", "", "payment-amount-exceeds"),
            ("honest", "decisions.claimed", "identity-claimed"),
        ):
            with self.subTest(code):
                purchase, guard = world.purchase(which), self.guard(fault)
                self.refuses("denied", [code], guard, purchase.url)
                self.refuses("no-decision", [], guard, purchase.url, world.payment())
                self.assertEqual(purchase.paid(), [])

    def test_a_check_is_for_the_payment_that_was_allowed_and_for_one(self) -> None:
        purchase, guard = world.purchase("honest"), self.guard()
        self.get(guard, purchase.url)
        thiefs = world.payment(to=world.stranger)
        self.refuses("payment-denied", ["payment-signature-mismatch"], guard, purchase.url, thiefs)
        self.get(guard, purchase.url, world.payment())
        self.refuses("no-decision", [], guard, purchase.url, world.payment())
        self.assertEqual(purchase.paid(), [world.honest])

    def test_a_transient_denial_is_retried(self) -> None:
        self.assertEqual(self.get(self.guard("decisions.unconfirmed-any"), world.purchase("honest").url), 402)

    def test_an_answer_that_is_no_valid_check_allows_nothing(self) -> None:
        for fault in ("other-schema", "schema", "404", "garbage", "undecided", "expired"):
            with self.subTest(fault):
                purchase = world.purchase("honest")
                self.refuses("unavailable", [], self.guard(f"decisions.{fault}"), purchase.url)
                guard = self.guard(f"signed.{fault}")
                self.get(guard, purchase.url)
                self.refuses("unavailable", [], guard, purchase.url, world.payment())
                self.assertEqual(purchase.paid(), [])

    def test_a_seller_that_redirects_is_refused(self) -> None:
        purchase = world.purchase("redirect-307")
        self.refuses("redirected", [], self.guard(), purchase.url)
        self.assertEqual(purchase.asked(), [])

    def test_whom_the_guard_pays_must_be_spelt_out(self) -> None:
        meant = "name: expected the full ENS name in normal form; did you mean seller.eth?"
        named: dict[str, Any] = {"agent": world.name, "verb": "v", "name": "seller.eth"}
        cases: list[tuple[dict[str, Any], str]] = [
            *(({"agent": agent}, 'agent: did you mean "any"?') for agent in MESSAGES["misspeltAny"]),
            ({"agent": ""}, 'agent: expected an ENS name, or "any"'),
            ({"agent": world.name}, "verb must not be empty"),
            ({"verb": ""}, "verb must not be empty"),
            ({"signer": Signer(world.issuer, world.jwks)}, 'signer: the daemon signs no answer for agent="any"'),
            (named, 'name: expected only with agent="any"'),
            ({"name": "Seller.eth"}, meant),
            ({"name": "seller"}, meant),
            ({"name": ""}, "name must not be empty"),
        ]
        for options, message in cases:
            with self.subTest(options), self.assertRaises(ValueError) as caught:
                self.guard(**options)
            self.assertEqual(str(caught.exception), message)
        with self.assertRaises(TypeError):
            GuardTransport(httpx.HTTPTransport(), daemon=world.daemon)  # type: ignore[call-arg]
