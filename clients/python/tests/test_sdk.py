"""The published payment client over the same sellers, plain and guarded: what leaves in each attack.

tests/purchases has most of them settled on a chain.
"""

from __future__ import annotations

import asyncio
import time
import unittest
from collections.abc import Callable
from typing import Any

import httpx
from eth_account import Account
from x402 import RecoveredResponseResult, x402Client
from x402.http.clients import x402_httpx_transport
from x402.mechanisms.evm.exact import register_exact_evm_client
from x402.mechanisms.evm.signers import EthAccountSigner

from clresolve_guard import GuardError

from .world import PAYER_KEY, World

TEN_YEARS = 315_360_000

world: World


def setUpModule() -> None:
    global world
    world = World.of_module()


def cheapest(_version: int, accepts: list[Any]) -> Any:
    return min(accepts, key=lambda entry: int(entry.get_amount()))


def mutates(client: x402Client) -> None:
    def hook(context: Any) -> None:
        context.selected_requirements.pay_to = world.stranger

    client.on_before_payment_creation(hook)


def pays_again(client: x402Client) -> None:
    client.on_payment_response(lambda _: RecoveredResponseResult())


def client(select: Any = None, prepare: Callable[[x402Client], None] | None = None) -> x402Client:
    made = x402Client(select)
    register_exact_evm_client(made, EthAccountSigner(Account.from_key(PAYER_KEY)))
    if prepare is not None:
        prepare(made)
    return made


async def buy(url: str, made: x402Client, transport: httpx.AsyncBaseTransport, follow: bool) -> httpx.Response:
    paying = x402_httpx_transport(made, transport)
    async with httpx.AsyncClient(transport=paying, follow_redirects=follow) as http:
        return await http.get(url)


def refusal(error: BaseException | None) -> str | None:
    """The code of the guard's refusal. The client wraps what happens after the 402."""
    while error is not None:
        if isinstance(error, GuardError):
            return error.code
        error = error.__cause__
    return None


# Attack, seller, client, for whom the payments are that the plain client sends, and the guard's refusal.
ROWS: list[tuple[str, str, dict[str, Any], list[str], str | None]] = [
    ("none", "honest", {}, ["honest"], None),
    ("none, version 1", "v1-honest", {}, ["honest"], None),
    ("other payTo", "other-payto", {}, ["stranger"], "denied"),
    ("other payTo, version 1", "v1-other-payto", {}, ["stranger"], "denied"),
    ("second entry poisoned", "second-poisoned", {"select": cheapest}, ["stranger"], "payment-denied"),
    ("second entry poisoned, version 1", "v1-second-poisoned", {"select": cheapest}, ["stranger"], "payment-denied"),
    ("header against body", "header-against-body", {}, ["honest"], "denied"),
    ("broken header", "broken-header", {}, [], "denied"),
    ("hook that mutates", "honest", {"prepare": mutates}, ["stranger"], "payment-denied"),
    ("ten-year timeout", "ten-years", {}, ["honest"], "denied"),
    ("ten-year timeout, version 1", "v1-ten-years", {}, ["honest"], "denied"),
    ("fake USDC", "fake-usdc", {}, [], "denied"),
    ("wrong chain", "wrong-chain", {}, ["honest"], "denied"),
    ("a thief's challenge beside honest terms", "mpp-thief-beside", {}, ["honest"], None),
    ("an honest challenge beside a thief's terms", "mpp-honest-beside-a-thief", {}, ["stranger"], "denied"),
    ("two payments for one demand", "asks-again", {"prepare": pays_again}, ["honest", "honest"], "no-decision"),
]


class Attacks(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        # It would report every signature as slow.
        asyncio.get_running_loop().set_debug(False)

    async def test_what_the_plain_client_pays(self) -> None:
        for attack, which, made, paid, _ in ROWS:
            with self.subTest(attack):
                purchase = world.purchase(which)
                try:
                    await buy(purchase.url, client(**made), httpx.AsyncHTTPTransport(), follow=False)
                except Exception:
                    self.assertEqual(paid, [])
                self.assertEqual(purchase.paid(), [getattr(world, who) for who in paid])

    async def test_what_the_guarded_client_pays(self) -> None:
        for attack, which, made, _, code in ROWS:
            with self.subTest(attack):
                purchase = world.purchase(which)
                guard = world.guard(httpx.AsyncHTTPTransport())
                refused = None
                try:
                    await buy(purchase.url, client(**made), guard, follow=False)
                except Exception as error:
                    refused = refusal(error) or repr(error)
                self.assertEqual(refused, code)
                # Where the guard refuses a second payment, the first was allowed.
                allowed = [world.honest] if code in (None, "no-decision") else []
                self.assertEqual(purchase.paid(), allowed)

    async def test_redirects(self) -> None:
        for follow, paid in ((False, []), (True, [world.stranger])):
            purchase = world.purchase("redirect-307")
            await buy(purchase.url, client(), httpx.AsyncHTTPTransport(), follow)
            self.assertEqual(purchase.paid(), paid)
            guarded = world.purchase("redirect-307")
            with self.assertRaises(GuardError) as caught:
                await buy(guarded.url, client(), world.guard(httpx.AsyncHTTPTransport()), follow)
            self.assertEqual(caught.exception.code, "redirected")
            self.assertEqual(guarded.paid(), [])

    async def test_the_redirect_of_a_payment_opens_no_second_one(self) -> None:
        for status in (301, 302, 303, 307, 308):
            for where in ("itself", "elsewhere"):
                with self.subTest(f"{status}, {where}"):
                    purchase = world.purchase(f"paid-{status}-{where}")
                    guard = world.guard(httpx.AsyncHTTPTransport())
                    answer = await buy(purchase.url, client(), guard, follow=True)
                    self.assertEqual((answer.status_code, purchase.paid()), (status, [world.honest]))
                    self.assertEqual(purchase.arrived()["requests"], 2)

    async def test_the_plain_client_signs_for_as_long_as_the_seller_asks(self) -> None:
        purchase = world.purchase("ten-years")
        await buy(purchase.url, client(), httpx.AsyncHTTPTransport(), follow=False)
        [payment] = purchase.arrived()["payments"]
        self.assertGreater(payment["validBefore"], time.time() + TEN_YEARS - 60)

    async def test_a_hook_sees_no_url(self) -> None:
        seen: list[str] = []
        made = client()
        made.on_before_payment_creation(lambda context: seen.extend(vars(context)))
        await buy(world.purchase("honest").url, made, httpx.AsyncHTTPTransport(), follow=False)
        self.assertEqual(sorted(seen), ["payment_required", "selected_requirements"])

    async def test_the_daemon_dies_between_check_and_signature(self) -> None:
        purchase = world.purchase("honest")
        with self.assertRaises(Exception) as caught:
            await buy(purchase.url, client(), world.guard(httpx.AsyncHTTPTransport(), "signed.drops"), follow=False)
        self.assertEqual(refusal(caught.exception), "unavailable")
        self.assertEqual(purchase.paid(), [])
