// A program with types that uses the guard. It is compiled, and not run.

import { ExactEvmScheme } from "@x402/evm/exact/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { GuardError, guardFetch, type GuardErrorCode, type GuardOptions } from "clresolve-guard";
import { privateKeyToAccount } from "viem/accounts";
import { createSigner, wrapFetchWithPayment as wrapFetchV1 } from "x402-fetch";

const options: GuardOptions = { daemon: new URL("https://clresolve.example"), agent: "a.eth", verb: "v", timeout: 1000 };
const guarded = guardFetch(fetch, { ...options, signer: { issuer: "https://i.example", jwks: { keys: [] } } });

export async function buy(key: `0x${string}`): Promise<GuardErrorCode | Response> {
  const client = new x402Client().register("eip155:*", new ExactEvmScheme(privateKeyToAccount(key)));
  try {
    return await wrapFetchWithPayment(guarded, client)("https://api.example/summarize");
  } catch (error) {
    if (error instanceof GuardError && error.codes.includes("payee-mismatch")) return error.code;
    throw error;
  }
}

export async function buyInVersion1(key: string): Promise<Response> {
  return await wrapFetchV1(guarded, await createSigner("base", key))("https://api.example/summarize");
}

guardFetch(fetch, { daemon: "http://127.0.0.1:8402", agent: "any" });
guardFetch(fetch, { daemon: "http://127.0.0.1:8402", agent: "any", name: "seller.eth", verb: "v" });
// @ts-expect-error the verb is missing
guardFetch(fetch, { daemon: "http://127.0.0.1:8402", agent: "a.eth" });
// @ts-expect-error the agent is missing
guardFetch(fetch, { daemon: "http://127.0.0.1:8402", verb: "v" });
