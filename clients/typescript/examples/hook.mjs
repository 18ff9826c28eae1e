import { ExactEvmScheme } from "@x402/evm/exact/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { privateKeyToAccount } from "viem/accounts";

const url = "https://api.example/summarize";
const payer = privateKeyToAccount(process.env.PAYER_KEY);
const client = new x402Client().register("eip155:*", new ExactEvmScheme(payer));

client.onBeforePaymentCreation(async ({ paymentRequired, selectedRequirements: selected }) => {
  const answer = await fetch("http://127.0.0.1:8402/v1/decisions", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name: "summarizeagent.eth", verb: "summarize", url, paymentRequired, selected }),
  });
  const { abort, codes } = await answer.json();
  if (abort !== false) return { abort: true, reason: `${codes}` };
});

const answer = await wrapFetchWithPayment(fetch, client)(url);
console.log(answer.status);
