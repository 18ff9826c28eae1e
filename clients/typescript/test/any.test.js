// Guards for any seller: checks instead of the gate and of decisions.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { guardFetch } from "../guard.js";
import { World, refused } from "./world.js";

const { misspeltAny } = JSON.parse(readFileSync(new URL("../../testing/messages.json", import.meta.url), "utf8"));

let world;
before(async () => {
  world = await World.start();
});
after(() => world.stop());

const ANY = { agent: "any", verb: undefined };

/** A guard for any seller; the gate of its daemon answers nothing. */
const guard = (fault = "gate.503", more) => world.guard(fault, { ...ANY, ...more });

test("any seller whose payee is proven is paid, without a gate", async () => {
  const { url, arrived, asked } = world.purchase("honest");
  const kept = [];
  const guarded = guard("gate.503", { onPaid: (paid) => kept.push(paid) });
  assert.equal((await guarded(`${url}#fragment`)).status, 402);
  const header = world.payment();
  assert.equal((await guarded(url, world.paying(header))).status, 200);
  assert.deepEqual((await arrived()).paid, [world.honest]);
  assert.deepEqual(kept.map(({ decision }) => decision.schema), ["clresolve.check/1"]);
  const [first, second] = await asked();
  assert.deepEqual(Object.keys(first).sort(), ["response", "url"]);
  assert.deepEqual([first.url, first.response.url], [url, url]);
  assert.deepEqual(second, { ...first, selected: 0, header });
});

test("name, verb and limits of the constructor go along", async () => {
  const { url, asked } = world.purchase("honest");
  const about = { name: "seller.eth", verb: "summarize", limits: { max_amount: "10000" } };
  await guard("", about)(url);
  const [{ name, verb, limits }] = await asked();
  assert.deepEqual({ name, verb, limits }, about);
  for (const fault of ["decisions.other-name", "decisions.other-verb"]) {
    await assert.rejects(guard(fault, about)(world.purchase("honest").url), refused("unavailable"));
  }
});

test("the URL that was asked is left out where no other could have answered", async () => {
  const { url, asked } = world.purchase("honest");
  const inner = async (request) => {
    const { status, headers, body } = await fetch(request);
    return new Response(body, { status, headers });
  };
  await guardFetch(inner, world.options("", ANY))(url);
  assert.deepEqual(Object.keys((await asked())[0]), ["response"]);
});

for (const [which, code] of [["other-payto", "payee-mismatch"], ["over-limit", "payment-amount-exceeds"]]) {
  test(`terms that a check denies are not handed on: ${which}`, async () => {
    const { url, arrived } = world.purchase(which);
    const guarded = guard();
    await assert.rejects(guarded(url), refused("denied", code));
    await assert.rejects(guarded(url, world.paying()), refused("no-decision"));
    assert.deepEqual((await arrived()).payments, []);
  });
}

test("terms that stay undecided are not handed on", async () => {
  const { url } = world.purchase("honest");
  await assert.rejects(guard("decisions.claimed")(url), refused("denied", "identity-claimed"));
});

test("a check is for the payment that was allowed, and for one", async () => {
  const { url, arrived } = world.purchase("honest");
  const guarded = guard();
  await guarded(url);
  const other = world.paying(world.payment({ to: world.stranger }));
  await assert.rejects(guarded(url, other), refused("payment-denied", "payment-signature-mismatch"));
  await guarded(url, world.paying());
  await assert.rejects(guarded(url, world.paying()), refused("no-decision"));
  assert.deepEqual((await arrived()).paid, [world.honest]);
});

test("a transient denial is retried", async () => {
  const { url } = world.purchase("honest");
  assert.equal((await guard("decisions.unconfirmed-any")(url)).status, 402);
});

for (const fault of ["other-schema", "schema", "404", "garbage", "undecided", "expired"]) {
  test(`an answer that is no valid check allows nothing: ${fault}`, async () => {
    const { url, arrived } = world.purchase("honest");
    await assert.rejects(guard(`decisions.${fault}`)(url), refused("unavailable"));
    const guarded = guard(`signed.${fault}`);
    await guarded(url);
    await assert.rejects(guarded(url, world.paying()), refused("unavailable"));
    assert.deepEqual((await arrived()).payments, []);
  });
}

test("a seller that redirects is refused", async () => {
  const { url, asked } = world.purchase("redirect-307");
  await assert.rejects(guard()(url), refused("redirected"));
  assert.deepEqual(await asked(), []);
});

test("whom the guard pays must be spelt out", () => {
  const rejected = (options, message) => assert.throws(() => guard("", options), { name: "TypeError", message });
  for (const agent of misspeltAny) rejected({ agent }, 'agent: did you mean "any"?');
  for (const agent of ["", undefined]) rejected({ agent }, 'agent: expected an ENS name, or "any"');
  rejected({ agent: world.name }, "verb must not be empty");
  rejected({ verb: "" }, "verb must not be empty");
  rejected({ agent: world.name, verb: "v", name: "a.eth" }, 'name: expected only with agent: "any"');
  const signer = { issuer: world.issuer, jwks: world.jwks };
  rejected({ signer }, 'signer: the daemon signs no answer for agent: "any"');
  const meant = "name: expected the full ENS name in normal form; did you mean seller.eth?";
  for (const name of ["Seller.eth", "seller"]) rejected({ name }, meant);
  rejected({ name: "" }, "name must not be empty");
});
