import asyncio
import os
import sys

import httpx
from clresolve_guard import GuardTransport
from eth_account import Account
from x402 import x402Client
from x402.http.clients import x402_httpx_transport
from x402.mechanisms.evm.exact import register_exact_evm_client
from x402.mechanisms.evm.signers import EthAccountSigner

defaults = ["summarizeagent.eth", "https://api.example/summarize", "http://127.0.0.1:8402"]
agent, url, daemon = sys.argv[1:] + defaults[len(sys.argv) - 1 :]

guard = GuardTransport(httpx.AsyncHTTPTransport(), daemon=daemon, agent=agent, verb="summarize")
payer = EthAccountSigner(Account.from_key(os.environ["PAYER_KEY"]))
client = x402Client()
# The client pays in well-known assets, and in those that you list. This one is the sandbox's.
sandbox_dollar = {"network": "eip155:31337", "asset": "0x00000000000000000000000000000000d0114400"}
client.set_spend_controls({"allowed_assets": [sandbox_dollar]})
register_exact_evm_client(client, payer)


async def buy(url: str) -> httpx.Response:
    async with httpx.AsyncClient(transport=x402_httpx_transport(client, guard)) as http:
        return await http.get(url)


print(asyncio.run(buy(url)).status_code)
