// Writes the payment headers that the guard for Go is tested with, as the published clients make them:
// `node test/record.mjs > ../go/testdata/payments.json`. They are signed with a key that everybody has, and are over.

import { ExactEvmScheme } from "@x402/evm/exact/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { privateKeyToAccount } from "viem/accounts";
import { createSigner, wrapFetchWithPayment as wrapFetchV1 } from "x402-fetch";

import { PAYER_KEY, World } from "./world.js";

const HEADERS = ["PAYMENT-SIGNATURE", "X-PAYMENT"];
const world = await World.start();
const recorded = {};

/** Sends what the client sends, and keeps the payment. */
const recording = (which) => async (input, init) => {
  const request = new Request(input, init);
  const name = HEADERS.find((header) => request.headers.has(header));
  if (name) recorded[which] = { name, value: request.headers.get(name) };
  return await fetch(request);
};

const second = (_version, accepts) => accepts[1];
for (const [which, select] of [["honest"], ["other-payto"], ["two-entries", second]]) {
  const client = new x402Client(select).register("eip155:*", new ExactEvmScheme(privateKeyToAccount(PAYER_KEY)));
  await wrapFetchWithPayment(recording(which), client)(world.purchase(which).url);
}
for (const which of ["v1-honest", "v1-other-payto"]) {
  await wrapFetchV1(recording(which), await createSigner("base-sepolia", PAYER_KEY))(world.purchase(which).url);
}
console.log(JSON.stringify(recorded, null, 2));
world.stop();
