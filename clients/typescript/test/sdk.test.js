// The published payment clients over the same sellers, plain and guarded: what leaves in each attack.
//
// tests/purchases has most of them settled on a chain.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { ExactEvmScheme } from "@x402/evm/exact/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { Fetch } from "mppx/client";
import { evm } from "mppx/evm/client";
import { privateKeyToAccount } from "viem/accounts";
import { createSigner, wrapFetchWithPayment as wrapFetchV1 } from "x402-fetch";

import { PAYER_KEY, World } from "./world.js";

const TEN_YEARS = 315_360_000;

let world;
before(async () => {
  world = await World.start();
});
after(() => world.stop());

const cheapest = (_version, accepts) => accepts.toSorted((a, b) => Number(a.amount) - Number(b.amount))[0];

/** The client of version 2; `prepare` sets its hooks. */
function v2(fetch, { select, prepare = () => {} } = {}) {
  const client = new x402Client(select).register("eip155:*", new ExactEvmScheme(privateKeyToAccount(PAYER_KEY)));
  prepare(client);
  return wrapFetchWithPayment(fetch, client);
}

/** The client of version 1. */
const v1 = (select) => async (url, fetch) => {
  const signer = await createSigner("base-sepolia", PAYER_KEY);
  return await wrapFetchV1(fetch, signer, undefined, select)(url);
};

/** A client that speaks MPP and x402. */
const both = () => async (url, fetch) => {
  const authorization = { name: "USDC", version: "2" };
  const account = privateKeyToAccount(PAYER_KEY);
  const currencies = [world.asset];
  const limits = { networks: [84532], currencies, maxAtomicAmount: "50000", decimals: 6, authorization };
  return await Fetch.from({ fetch, methods: [evm.charge({ account, ...limits })] })(url);
};

const last = (accepts) => accepts.at(-1);
const mutates = (client) =>
  client.onBeforePaymentCreation(async ({ selectedRequirements }) => {
    selectedRequirements.payTo = world.stranger;
  });
const vetoes = (client) =>
  client.onBeforePaymentCreation(async ({ selectedRequirements }) => {
    if (selectedRequirements.payTo !== world.honest) return { abort: true, reason: "not the agent" };
  });
const deniesWithoutAbort = (client) => client.onBeforePaymentCreation(async () => ({ decision: "deny" }));
const paysAgain = (client) => client.onPaymentResponse(async () => ({ recovered: true }));

/** One purchase with version 2. */
const with2 = (options) => (url, fetch) => v2(fetch, options)(url);

/**
 * Client, attack, seller, how it is bought, for whom the payments are that the plain client sends (a redirected one
 * passes by both hosts), and the code with which the guard refuses.
 */
const ROWS = [
  ["v2", "none", "honest", with2(), ["honest"], undefined],
  ["v2", "other payTo", "other-payto", with2(), ["stranger"], "denied"],
  ["v2", "second entry poisoned", "second-poisoned", with2({ select: cheapest }), ["stranger"], "payment-denied"],
  ["v2", "cross-host redirect", "redirect-307", with2(), ["stranger", "stranger"], "redirected"],
  ["v2", "header against body", "header-against-body", with2(), ["honest"], "denied"],
  ["v2", "broken header", "broken-header", with2(), [], "denied"],
  ["v2", "hook that mutates", "honest", with2({ prepare: mutates }), ["stranger"], "payment-denied"],
  ["v2", "ten-year timeout", "ten-years", with2(), ["honest"], "denied"],
  ["v2", "fake USDC", "fake-usdc", with2(), [], "denied"],
  ["v2", "wrong chain", "wrong-chain", with2(), ["honest"], "denied"],
  ["v2", "hook without abort", "other-payto", with2({ prepare: deniesWithoutAbort }), ["stranger"], "denied"],
  ["v2", "two payments", "asks-again", with2({ prepare: paysAgain }), ["honest", "honest"], "no-decision"],
  ["v2", "a thief's challenge beside honest terms", "mpp-thief-beside", with2(), ["honest"], undefined],
  ["v2", "an honest challenge beside a thief's terms", "mpp-honest-beside-a-thief", with2(), ["stranger"], "denied"],
  ["v1", "none", "v1-honest", v1(), ["honest"], undefined],
  ["v1", "other payTo", "v1-other-payto", v1(), ["stranger"], "denied"],
  ["v1", "second entry poisoned", "v1-second-poisoned", v1(last), ["stranger"], "payment-denied"],
  ["v1", "cross-host redirect", "redirect-307-v1", v1(), ["stranger", "stranger"], "redirected"],
  ["v1", "header against body", "header-against-body", v1(), ["stranger"], "denied"],
  ["v1", "broken header", "broken-header", v1(), ["stranger"], "denied"],
  ["v1", "ten-year timeout", "v1-ten-years", v1(), ["honest"], "denied"],
  ["v1", "fake USDC", "v1-fake-usdc", v1(last), ["honest"], "denied"],
  ["mppx", "none", "honest", both(), ["honest"], undefined],
  ["mppx", "other payTo", "other-payto", both(), ["stranger"], "denied"],
  ["mppx", "a thief's challenge beside honest terms", "mpp-thief-beside", both(), ["stranger"], undefined],
  ["mppx", "an honest challenge beside a thief's terms", "mpp-honest-beside-a-thief", both(), ["honest"], "denied"],
  ["mppx", "a thief's challenge alone", "mpp-thief", both(), ["stranger"], "denied"],
  ["mppx", "an honest challenge alone", "mpp-honest", both(), ["honest"], "denied"],
];

for (const [client, attack, which, buy, paid, code] of ROWS) {
  test(`${client}, ${attack}: plain`, async () => {
    const { url, arrived } = world.purchase(which);
    await buy(url, fetch).catch(() => {});
    assert.deepEqual((await arrived()).paid, paid.map((who) => world[who]));
  });

  test(`${client}, ${attack}: guarded`, async () => {
    const { url, arrived } = world.purchase(which);
    const bought = buy(url, world.guard());
    if (code) await assert.rejects(bought, { code });
    else assert.equal((await bought).status, 200);
    // Where the guard refuses a second payment, the first was allowed.
    const allowed = code === undefined || code === "no-decision" ? [world.honest] : [];
    assert.deepEqual((await arrived()).paid, allowed);
  });
}

test("the plain clients sign for as long as the seller asks", async () => {
  for (const [which, buy] of [["ten-years", with2()], ["v1-ten-years", v1()]]) {
    const { url, arrived } = world.purchase(which);
    await buy(url, fetch);
    const [{ validBefore }] = (await arrived()).payments;
    assert.ok(validBefore > Date.now() / 1000 + TEN_YEARS - 60);
  }
});

test("the plain client sends its payment through the host that redirects it", async () => {
  const { url, arrived } = world.purchase("redirect-307");
  await with2()(url, fetch);
  const { requests, payments } = await arrived();
  // Twice through the agent's host to the thief's, the second time with the payment.
  assert.equal(requests, 4);
  assert.deepEqual(payments.map(({ seller }) => seller), ["agent", "thief"]);
});

/** A `fetch` that follows redirects itself, as wrappers with a jar of cookies do. */
const following = (fetch) => async (url) => {
  for (let left = 20; ; left -= 1) {
    const answer = await fetch(url);
    const location = answer.headers.get("location");
    if (location === null || left === 0) return answer;
    url = new URL(location, url).href;
  }
};

test("the redirect of a payment opens no second one", async () => {
  for (const where of ["itself", "elsewhere"]) {
    const { url, arrived } = world.purchase(`paid-307-${where}`);
    const answer = await following(v2(world.guard()))(url);
    const { requests, paid } = await arrived();
    assert.deepEqual([answer.status, requests, paid], [307, 2, [world.honest]]);
  }
});

test("a hook sees no URL, and stops a payment by abort alone", async () => {
  const seen = [];
  const sees = async (context) => void seen.push(...Object.keys(context));
  const watches = (client) => client.onBeforePaymentCreation(sees);
  const { url } = world.purchase("honest");
  await with2({ prepare: watches })(url, fetch);
  assert.deepEqual(seen.sort(), ["paymentRequired", "selectedRequirements"]);

  const other = world.purchase("other-payto");
  await assert.rejects(with2({ prepare: vetoes })(other.url, fetch), /not the agent/);
  assert.deepEqual((await other.arrived()).payments, []);
});

test("a later hook undoes what an earlier one has seen", async () => {
  const { url, arrived } = world.purchase("honest");
  const both = (client) => {
    vetoes(client);
    mutates(client);
  };
  await with2({ prepare: both })(url, fetch);
  assert.deepEqual((await arrived()).paid, [world.stranger]);
});

test("the daemon dies between check and signature", async () => {
  for (const [which, buy] of [["honest", with2()], ["v1-honest", v1()]]) {
    const { url, arrived } = world.purchase(which);
    await assert.rejects(buy(url, world.guard("signed.drops")), { code: "unavailable" });
    assert.deepEqual((await arrived()).payments, []);
  }
});
