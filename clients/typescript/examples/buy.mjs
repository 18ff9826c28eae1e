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
const client = new x402Client().register("eip155:*", new ExactEvmScheme(payer));
const buy = wrapFetchWithPayment(guarded, client);

const answer = await buy(url);
console.log(answer.status);
