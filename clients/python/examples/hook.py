import asyncio
import os

import httpx
from eth_account import Account
from x402 import AbortResult, x402Client
from x402.http.clients import x402_httpx_transport
from x402.mechanisms.evm.exact import register_exact_evm_client
from x402.mechanisms.evm.signers import EthAccountSigner

url = "https://api.example/summarize"
client = x402Client()
register_exact_evm_client(client, EthAccountSigner(Account.from_key(os.environ["PAYER_KEY"])))


async def decide(context) -> AbortResult | None:
    required, selected = (
        one.model_dump(mode="json", by_alias=True, exclude_none=True)
        for one in (context.payment_required, context.selected_requirements)
    )
    asked = {"name": "summarizeagent.eth", "verb": "summarize", "url": url}
    asked |= {"paymentRequired": required, "selected": selected}
    async with httpx.AsyncClient(trust_env=False) as http:
        decision = (await http.post("http://127.0.0.1:8402/v1/decisions", json=asked)).json()
    return None if decision["abort"] is False else AbortResult(reason=f"{decision['codes']}")


async def buy() -> httpx.Response:
    async with httpx.AsyncClient(transport=x402_httpx_transport(client)) as http:
        return await http.get(url)


client.on_before_payment_creation(decide)
print(asyncio.run(buy()).status_code)
