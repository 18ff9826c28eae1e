import { ExactEvmScheme } from "@x402/evm/exact/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { guardFetch } from "clresolve-guard";
import { privateKeyToAccount } from "viem/accounts";

const [
  agent = "summarizeagent.eth",
  url = "https://api.example/summarize",
  daemon = "http://127.0.0.1:8402",
] = process.argv.slice(2);

const guarded = guardFetch(fetch, { daemon, agent, verb: "summarize" });
const payer = privateKeyToAccount(process.env.PAYER_KEY);
// The client pays in well-known assets, and in those that you list. This one is the sandbox's.
const sandboxDollar = { network: "eip155:31337", asset: "0x00000000000000000000000000000000d0114400" };
const client = new x402Client()
  .setSpendControls({ allowedAssets: [sandboxDollar] })
  .register("eip155:*", new ExactEvmScheme(payer));
const buy = wrapFetchWithPayment(guarded, client);

const answer = await buy(url);
console.log(answer.status);
