"""The Python client of x402: the package x402 with httpx."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import httpx
from clresolve_guard import GuardError, GuardTransport, Paid, Signer
from eth_account import Account
from x402 import RecoveredResponseResult, x402Client
from x402.http.clients import x402_httpx_transport
from x402.mechanisms.evm.exact import register_exact_evm_client
from x402.mechanisms.evm.signers import EthAccountSigner


def cheapest(_version: int, accepts: list[Any]) -> Any:
    return min(accepts, key=lambda entry: int(entry.get_amount()))


def changes_payee(client: x402Client, question: dict[str, Any]) -> None:
    def hook(context: Any) -> None:
        context.selected_requirements.pay_to = question["thief"]

    client.on_before_payment_creation(hook)


def kills_daemon(client: x402Client, question: dict[str, Any]) -> None:
    def hook(_: Any) -> None:
        httpx.get(question["kill"], trust_env=False)

    client.on_before_payment_creation(hook)


def pays_twice(client: x402Client, _question: dict[str, Any]) -> None:
    client.on_payment_response(lambda _: RecoveredResponseResult())


TRICKS = {"hook": changes_payee, "kill": kills_daemon, "twice": pays_twice}


def client_for(question: dict[str, Any]) -> x402Client:
    trick = question["trick"]
    client = x402Client(cheapest if trick == "cheapest" else None)
    register_exact_evm_client(client, EthAccountSigner(Account.from_key(question["key"])))
    client.set_spend_controls({"allowed_assets": question["assets"]})
    if trick in TRICKS:
        TRICKS[trick](client, question)
    return client


def transport_for(guard: dict[str, Any] | None, on_paid: Callable[[Paid], None]) -> httpx.AsyncBaseTransport:
    inner = httpx.AsyncHTTPTransport()
    if guard is None:
        return inner
    signer = Signer(**guard["signer"]) if "signer" in guard else None
    about = {name: guard[name] for name in ("daemon", "agent", "name", "verb") if name in guard}
    return GuardTransport(inner, **about, timeout=guard["timeout"] / 1000, signer=signer, on_paid=on_paid)


async def buy(question: dict[str, Any]) -> dict[str, Any]:
    kept: list[Paid] = []
    paying = x402_httpx_transport(client_for(question), transport_for(question["guard"], kept.append))
    try:
        # httpx follows redirects where it is told to.
        async with httpx.AsyncClient(transport=paying, follow_redirects=True) as http:
            response = await asked(http, question)
            return {"status": response.status_code, "body": response.text, **{"paid": asdict(paid) for paid in kept}}
    except Exception as error:
        return failure(error)


async def asked(http: httpx.AsyncClient, question: dict[str, Any]) -> httpx.Response:
    if question["body"] is None:
        return await http.get(question["url"])
    return await http.post(question["url"], content=question["body"], headers={"content-type": "application/json"})


def failure(error: BaseException) -> dict[str, Any]:
    """How it failed. The client wraps what happens after the 402."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, GuardError):
            return {"refused": cause.code, "codes": cause.codes}
        cause = cause.__cause__
    return {"failed": str(error)}


for line in sys.stdin:
    print(json.dumps(asyncio.run(buy(json.loads(line)))), flush=True)
