// Asks a daemon on the sandbox through a client whose types were generated from its description: ask.ts ADDRESS
// That it compiles says that the description has the types; that it ends well, that the answers have them too.
import assert from "node:assert/strict";

import createClient from "openapi-fetch";

import type { components, paths } from "./description.js";

type Schemas = components["schemas"];

const [address] = process.argv.slice(2);
assert.ok(address, "expected the daemon's address");
const client = createClient<paths>({ baseUrl: address });

const GOOD = "summarizeagent.eth";
const BAD = "entry-version.eth";

async function aVerdictHasItsState(): Promise<void> {
  for (const [name, state] of [[GOOD, "trusted"], [BAD, "untrusted"], ["cid-unproven.eth", "indeterminate"]] as const) {
    const { data } = await client.GET("/v1/verdicts/{name}", { params: { path: { name } } });
    assert.ok(typeof data === "object", name);
    const found: Schemas["Verdict"]["state"] = data.state;
    assert.equal(found, state, name);
    assert.equal(data.reasons.some(({ effect }) => effect !== "warn"), state !== "trusted", name);
  }
}

async function theGateLetsTheGoodAgentPass(): Promise<void> {
  const asked = (name: string, verb: string) => client.GET("/v1/gate/{name}/{verb}", { params: { path: { name, verb } } });
  const [good, bad] = [await asked(GOOD, "summarize"), await asked(BAD, "summarize")];
  assert.deepEqual([good.response.status, bad.response.status], [200, 403]);
  assert.equal(bad.response.headers.get("Clresolve-Code"), "entry-version-noncompliant");
}

async function aPaymentIsDecided(): Promise<void> {
  const terms = { x402Version: 2, resource: { url: "https://api.sandbox.example/" }, accepts: [] };
  const { data } = await client.POST("/v1/decisions", { body: { name: GOOD, verb: "summarize", paymentRequired: terms } });
  assert.ok(typeof data === "object");
  assert.deepEqual([data.name, data.verb, data.abort], [GOOD, "summarize", true]);
  const { data: probed } = await client.POST("/v1/probes", { body: { name: "payee-mismatch.eth", verb: "summarize" } });
  assert.deepEqual(probed?.decision.codes, ["payee-mismatch"]);
}

async function aRefusalIsAProblem(): Promise<void> {
  const { data, error, response } = await client.GET("/v1/verdicts/{name}", {
    // @ts-expect-error: no depth is called so.
    params: { path: { name: GOOD }, query: { depth: "deep" } },
  });
  const problem: Schemas["Problem"] | undefined = error;
  assert.equal(data, undefined);
  assert.deepEqual([response.status, problem?.status, problem?.code], [400, 400, "request-malformed"]);
  assert.equal(problem?.type, "urn:clresolve:reason:request-malformed");
  // @ts-expect-error: there is no such route.
  assert.equal((await client.GET("/v1/nothing")).response.status, 404);
}

for (const check of [aVerdictHasItsState, theGateLetsTheGoodAgentPass, aPaymentIsDecided, aRefusalIsAProblem]) {
  await check();
  console.log(`ok ${check.name}`);
}
