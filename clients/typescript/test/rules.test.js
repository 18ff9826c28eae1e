// The rules of the guard, each against the stand-in daemon and a seller that keeps count.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, mock, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

import { isCredential, withoutPayments } from "../challenges.js";
import { guardFetch } from "../guard.js";
import { World, refused } from "./world.js";

let world;
before(async () => {
  world = await World.start();
});
after(() => world.stop());

const nothing = { requests: 0, payments: [], paid: [] };

const payment = (change) => world.payment(change);
const paying = (header, name) => world.paying(header, name);

test("a purchase goes through, and its reply comes as the seller sent it", async () => {
  const purchase = world.purchase("honest");
  const plain = await fetch(purchase.url);
  const guarded = world.guard();
  const demand = await guarded(purchase.url);
  assert.equal(demand.status, 402);
  const headers = (response) => [...response.headers].filter(([name]) => name !== "date");
  assert.deepEqual(headers(demand), headers(plain));
  assert.equal(await demand.text(), await plain.text());
  const paid = await guarded(purchase.url, paying());
  assert.deepEqual(await paid.json(), { paid: true });
  assert.deepEqual((await purchase.arrived()).paid, [world.honest]);
});

test("of a payment that left is handed out what is to be kept", async () => {
  const purchase = world.purchase("two-entries");
  const kept = [];
  const onPaid = (paid) => {
    kept.push(paid);
    throw new Error("the program's own");
  };
  for (const [name, reply] of [
    ["PAYMENT-RESPONSE", "version 2"],
    ["X-PAYMENT-RESPONSE", "version 1"],
    ["OTHER", undefined],
  ]) {
    const inner = async (request) => {
      const response = await fetch(request);
      if (response.status === 402) return response;
      return new Response(response.body, { status: response.status, headers: { [name]: reply ?? "" } });
    };
    const guarded = guardFetch(inner, world.options("", { onPaid }));
    assert.equal((await guarded(purchase.url)).status, 402);
    assert.deepEqual(kept, [], "nothing has left");
    const header = payment({ value: "9000" });
    assert.equal((await guarded(purchase.url, paying(header))).status, 200, "the reply is not lost");
    const [paid] = kept.splice(0);
    assert.deepEqual([paid.url, paid.payment, paid.settlement], [purchase.url, header, reply]);
    const { schema, abort, entries } = paid.decision;
    const indices = entries.map(({ index }) => index);
    assert.deepEqual([schema, abort, indices], ["clresolve.decision/1", false, [1]], "that about what was signed");
  }
});

test("a function that rejects what is to be kept loses no reply", async () => {
  const purchase = world.purchase("honest");
  const onPaid = async () => {
    throw new Error("the program's own");
  };
  const guarded = guardFetch(fetch, world.options("", { onPaid }));
  await guarded(purchase.url);
  assert.equal((await guarded(purchase.url, paying())).status, 200);
});

test("of a payment without a reply it is handed out too, of one that does not leave nothing", async () => {
  const purchase = world.purchase("honest");
  const kept = [];
  const inner = async (request) => {
    if (request.headers.has("payment-signature")) throw new TypeError("the line broke");
    return await fetch(request);
  };
  const guarded = guardFetch(inner, world.options("", { onPaid: (paid) => kept.push(paid) }));
  await assert.rejects(guarded(purchase.url, paying()), refused("no-decision"));
  await guarded(purchase.url);
  const other = paying(payment({ to: world.stranger }));
  await assert.rejects(guarded(purchase.url, other), refused("payment-denied", "payment-signature-mismatch"));
  assert.deepEqual(kept, []);
  const header = payment();
  await assert.rejects(guarded(purchase.url, paying(header)), /the line broke/);
  assert.deepEqual(kept.map((paid) => [paid.payment, paid.settlement]), [[header, undefined]]);
});

test("what costs nothing passes, with method, headers and body", async () => {
  const { url, arrived } = world.purchase("free");
  let seen;
  const inner = async (request) => {
    seen = { method: request.method, own: request.headers.get("own"), body: await request.clone().text() };
    return await fetch(request);
  };
  const guarded = guardFetch(inner, world.options());
  const response = await guarded(url, { method: "POST", headers: { own: "1" }, body: "text" });
  assert.equal(await response.text(), "free");
  assert.deepEqual(seen, { method: "POST", own: "1", body: "text" });
  assert.equal((await arrived()).requests, 1);
});

test("nothing leaves for an agent that the gate denies", async () => {
  const { url, arrived } = world.purchase("free");
  const guarded = world.guard("", { agent: "stranger.eth" });
  await assert.rejects(guarded(url), refused("denied", "name-unregistered"));
  assert.deepEqual(await arrived(), nothing);
});

for (const fault of ["500", "503", "204", "302", "hangs", "drops", "oversize"]) {
  test(`nothing leaves when the gate answers ${fault}`, async () => {
    const { url, arrived } = world.purchase("free");
    const guarded = world.guard(`gate.${fault}`, { timeout: 200 });
    await assert.rejects(guarded(url), refused("unavailable"));
    assert.deepEqual(await arrived(), nothing);
  });
}

test("a time limit holds when memory is collected meanwhile", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc");
  const guarded = world.guard("gate.hangs", { timeout: 200 });
  const asked = assert.rejects(guarded(world.purchase("free").url), refused("unavailable"));
  for (let count = 0; count < 10; count += 1) {
    await pause(10);
    collect();
  }
  assert.notEqual(await Promise.race([asked, pause(5000, "late")]), "late");
});

const messages = JSON.parse(readFileSync(new URL("../../testing/messages.json", import.meta.url), "utf8"));

/** A refusal whose message names the daemon and what happened, and whose cause is of this class, if it has one. */
const failed = (daemon, what, cause) => (error) => {
  assert.equal(error.message, `not paying: no usable answer from clresolve at ${daemon}: ${what}`);
  assert.equal(error.cause instanceof Error, cause, `${error.cause}`);
  return refused("unavailable")(error);
};

for (const [daemon, what] of Object.entries(messages.unreachable)) {
  test(`refusal names the daemon that is not reachable: ${daemon}`, async () => {
    const { url, arrived } = world.purchase("free");
    await assert.rejects(world.guard("", { daemon })(url), (error) => {
      assert.match(error.cause.code, /^(ECONNREFUSED|ENOENT)$/);
      return failed(daemon, what, true)(error);
    });
    assert.deepEqual(await arrived(), nothing);
  });
}

for (const [fault, what] of Object.entries(messages.failures)) {
  test(`refusal names the daemon and its failure: ${fault}`, async () => {
    const guarded = world.guard(fault, { timeout: 200 });
    const end = failed(`${world.daemon}/${fault}`, what, !messages.withoutCause.includes(fault));
    await assert.rejects(guarded(world.purchase("honest").url), end);
  });
}

test("refusal after a timeout has a TimeoutError as its cause", async () => {
  for (const fault of ["gate.hangs", "gate.cold-late", "decisions.drips"]) {
    await assert.rejects(world.guard(fault, { timeout: 50 })(world.purchase("honest").url), (error) => {
      return error.cause.name === "TimeoutError";
    });
  }
});

for (const fault of ["gate.cold", "gate.unconfirmed", "decisions.unconfirmed", "signed.unconfirmed"]) {
  test(`a transient denial is retried: ${fault}`, async () => {
    const { url } = world.purchase("honest");
    const guarded = world.guard(fault);
    assert.equal((await guarded(url)).status, 402);
    assert.equal((await guarded(url, paying())).status, 200);
  });
}

for (const fault of ["gate.cold", "gate.unconfirmed", "decisions.unconfirmed"]) {
  test(`a transient denial is retried until the timeout: ${fault}`, async () => {
    const impatient = world.guard(`${fault}-impatient`, { timeout: 50 });
    await assert.rejects(impatient(world.purchase("honest").url), refused("unavailable"));
  });
}

test("foreign text does not get into a message", async () => {
  const { url } = world.purchase("free");
  await assert.rejects(world.guard("gate.foreign")(url), (error) => {
    assert.equal(error.message, "not paying: clresolve denies this agent or its terms");
    return refused("denied")(error);
  });
});

test("a caller that gives up gets its own reason", async () => {
  const { url } = world.purchase("free");
  const reason = new Error("no longer");
  const signal = AbortSignal.abort(reason);
  await assert.rejects(world.guard()(url, { signal }), reason);
});

for (const status of [301, 302, 303, 307, 308]) {
  test(`a ${status} is not followed`, async () => {
    const purchase = world.purchase(`redirect-${status}`);
    await assert.rejects(world.guard()(purchase.url), refused("redirected"));
    assert.equal((await purchase.arrived()).requests, 1);
    assert.deepEqual(await purchase.asked(), []);
  });
}

test("a fetch that follows redirects all the same is found out", async () => {
  const purchase = world.purchase("redirect-307");
  const disobedient = (request) => fetch(request.url);
  await assert.rejects(guardFetch(disobedient, world.options())(purchase.url), refused("redirected"));
  assert.deepEqual(await purchase.asked(), []);
});

test("a fetch that lets another URL answer is found out", async () => {
  const [purchase, other] = [world.purchase("honest"), world.purchase("honest")];
  await assert.rejects(guardFetch(() => fetch(other.url), world.options())(purchase.url), refused("redirected"));
  assert.deepEqual(await purchase.asked(), []);
});

test("a redirect that a browser hides is one too", async () => {
  const { url, asked } = world.purchase("redirect-307");
  // What `redirect: "manual"` gives there; no constructor makes it.
  const hidden = { type: "opaqueredirect", status: 0, url: "", redirected: false, headers: new Headers(), body: null };
  await assert.rejects(guardFetch(async () => hidden, world.options())(url), refused("redirected"));
  assert.deepEqual(await asked(), []);
});

for (const status of [301, 302, 303, 307, 308]) {
  test(`the ${status} of a paid request comes back and leads nowhere`, async () => {
    const { url, arrived } = world.purchase(`paid-${status}-elsewhere`);
    const guarded = world.guard();
    await guarded(url);
    const answer = await guarded(url, paying());
    assert.deepEqual([answer.status, await answer.json()], [status, { moved: true }]);
    assert.deepEqual(["payment-response", "location", "refresh"].map((name) => answer.headers.has(name)), [true, false, false]);
    assert.deepEqual((await arrived()).payments.map(({ seller }) => seller), ["agent"]);
  });
}

const DENIED = {
  "other-payto": ["payee-mismatch"],
  "ten-years": ["payment-timeout-excessive"],
  "fake-usdc": ["payment-asset-unlisted"],
  "wrong-chain": ["payment-network-mismatch"],
  "over-limit": ["payment-amount-exceeds"],
  "header-against-body": ["payment-terms-ambiguous"],
  "broken-header": ["payment-terms-malformed"],
  "two-headers": ["payment-terms-ambiguous"],
  garbage: ["payment-terms-malformed"],
  "v1-other-payto": ["payee-mismatch"],
};

for (const [which, codes] of Object.entries(DENIED)) {
  test(`terms without an entry that passes are not handed on: ${which}`, async () => {
    const { url, arrived } = world.purchase(which);
    const guarded = world.guard();
    await assert.rejects(guarded(url), refused("denied", ...codes));
    await assert.rejects(guarded(url, paying()), refused("no-decision"));
    assert.deepEqual((await arrived()).payments, []);
  });
}

const NO_DECISION = [
  "500 503 404 422 201 302 hangs drips drops garbage truncated oversize",
  "schema other-schema no-schema no-codes codes-number other-name other-verb no-abort abort-text abort-number",
  "undecided unknown expired endless date offset no-time",
  "no-entries entry-text entry-bare entry-index entry-twice entries-many list null",
  "entry-endless entry-null entry-date entry-over",
].join(" ").split(" ");

for (const fault of NO_DECISION) {
  test(`a 402 is not handed on when the decision is ${fault}`, async () => {
    const { url, arrived } = world.purchase("honest");
    const guarded = world.guard(`decisions.${fault}`, { timeout: 300 });
    await assert.rejects(guarded(url), refused("unavailable"));
    await assert.rejects(guarded(url, paying()), refused("no-decision"));
    assert.deepEqual((await arrived()).payments, []);
  });
}

const NOT_SIGNED = [
  ...NO_DECISION.filter((one) => !one.startsWith("entr") && one !== "no-entries"),
  "entry-other",
  "allows-nothing",
];
for (const fault of NOT_SIGNED) {
  test(`a payment does not leave when the decision about what is signed is ${fault}`, async () => {
    const { url, arrived } = world.purchase("honest");
    const guarded = world.guard(`signed.${fault}`, { timeout: 300 });
    assert.equal((await guarded(url)).status, 402);
    await assert.rejects(guarded(url, paying()), refused("unavailable"));
    assert.deepEqual((await arrived()).payments, []);
  });
}

test("an allowance without an entry allows nothing", async () => {
  const { url } = world.purchase("honest");
  await assert.rejects(world.guard("decisions.allows-nothing")(url), refused("denied"));
});

test("a payment does not leave when the decision about what is signed aborts", async () => {
  const { url, arrived } = world.purchase("honest");
  const guarded = world.guard("signed.aborts");
  await guarded(url);
  await assert.rejects(guarded(url, paying()), refused("payment-denied"));
  assert.deepEqual((await arrived()).payments, []);
});

const WARNED = [
  ["warns", "other-payto", ["payee-mismatch"]],
  ["denies-a-warning", "honest", ["payee-changed"]],
];
for (const [fault, which, codes] of WARNED) {
  test(`refusal has the codes that decide: ${fault}`, async () => {
    await assert.rejects(world.guard(`decisions.${fault}`)(world.purchase(which).url), (error) => {
      assert.ok(error.message.endsWith(`(${codes})`), error.message);
      return refused("denied", ...codes)(error);
    });
  });
}

test("refusal of a signed payment has the codes that decide", async () => {
  const { url } = world.purchase("honest");
  const guarded = world.guard("signed.warns");
  await guarded(url);
  const thiefs = paying(payment({ to: world.stranger }));
  await assert.rejects(guarded(url, thiefs), refused("payment-denied", "payment-signature-mismatch"));
  assert.equal((await guarded(url, paying())).status, 200, "a warning denies nothing");
});

test("the longest 402 is read, a longer one is not paid", async () => {
  const longest = world.purchase("longest-body");
  assert.equal((await (await world.guard()(longest.url)).text()).length, 65536);
  const longer = world.purchase("longer-body");
  await assert.rejects(world.guard()(longer.url), refused("unreadable"));
  assert.deepEqual(await longer.asked(), []);
});

for (const which of ["cut-off", "cut-off-chunked"]) {
  test(`a 402 that breaks off is refused with its local cause: ${which}`, async () => {
    const { url, asked } = world.purchase(which);
    await assert.rejects(world.guard()(url), (error) => {
      assert.ok(error.cause instanceof TypeError, `${error.cause}`);
      assert.doesNotMatch(error.message, /accepts/);
      return refused("unreadable")(error);
    });
    assert.deepEqual(await asked(), []);
  });
}

test("a 402 that drips is refused in time, with its local cause", async () => {
  const [{ url, asked }, began] = [world.purchase("drips"), Date.now()];
  await assert.rejects(world.guard()(url), (error) => {
    assert.equal(error.cause.name, "TimeoutError", `${error.cause}`);
    return refused("unreadable")(error);
  });
  assert.ok(Date.now() - began < 15_000);
  assert.deepEqual(await asked(), []);
});

test("a caller that gives up on a 402 gets its own reason", async () => {
  const [{ url }, controller, reason] = [world.purchase("honest"), new AbortController(), new Error("no longer")];
  const inner = async ({ signal }) => {
    const start = (body) => signal.addEventListener("abort", () => body.error(new TypeError("terminated")));
    setTimeout(() => controller.abort(reason));
    return new Response(new ReadableStream({ start }), { status: 402 });
  };
  await assert.rejects(guardFetch(inner, world.options())(url, { signal: controller.signal }), reason);
});

for (const which of ["gzip-twice", "gzip-on-two-lines", "gzip-bomb"]) {
  test(`a body with two codings or beyond the limit is refused: ${which}`, async () => {
    const { url, asked } = world.purchase(which);
    await assert.rejects(world.guard()(url), refused("unreadable"));
    assert.deepEqual(await asked(), []);
  });
}

test("a body is decoded no further than it is read", async () => {
  let decoded = 0;
  const inner = async () => {
    const pull = (body) => body.enqueue(new Uint8Array(16 * 1024).fill((decoded += 1)));
    return new Response(new ReadableStream({ pull }), { status: 402 });
  };
  await assert.rejects(guardFetch(inner, world.options())(world.purchase("honest").url), refused("unreadable"));
  assert.ok(decoded <= 6, `${decoded} pieces of 16 KiB`);
});

test("a body with one coding is judged as the client reads it", async () => {
  const { url, asked } = world.purchase("gzip");
  assert.equal(await (await world.guard()(url)).text(), "{}");
  assert.equal(Buffer.from((await asked())[0].response.body_base64, "base64").toString("utf8"), "{}");
});

const shared = JSON.parse(readFileSync(new URL("../../testing/challenges.json", import.meta.url), "utf8"));

test("payment challenges are removed from a value, and others stay", () => {
  const long = (text) => text.replaceAll("#", shared.repeat.text.repeat(shared.repeat.times));
  for (const [value, kept] of shared.challenges) assert.equal(withoutPayments(long(value)), long(kept), value);
});

test("credentials of other payment protocols are recognized", () => {
  for (const [name, value] of shared.credentials) assert.ok(isCredential(name.toLowerCase(), value), `${name}: ${value}`);
  for (const [name, value] of shared.others) assert.ok(!isCredential(name.toLowerCase(), value), `${name}: ${value}`);
});

const keptOf = (headers) => Object.fromEntries(Object.keys(world.kept).map((name) => [name, headers.get(name)]));

test("client and daemon see no challenge of another protocol", async () => {
  const { url, asked } = world.purchase("other-protocols");
  const demand = await world.guard()(url);
  assert.equal(demand.status, 402);
  assert.deepEqual(keptOf(demand.headers), world.kept);
  assert.deepEqual(keptOf(new Headers((await asked())[0].response.headers)), world.kept);
});

for (const status of [200, 204, 401, 403, 503]) {
  test(`a ${status} carries no challenge of another payment protocol`, async () => {
    const answer = await world.guard()(world.purchase(`status-${status}`).url);
    assert.deepEqual([answer.status, keptOf(answer.headers)], [status, world.kept]);
    // Some clients pay terms whatever the status.
    assert.equal(answer.headers.get("payment-required") ?? answer.headers.get("x-payment-required"), null);
  });
}

test("the reply to a payment carries no challenge of another protocol", async () => {
  const { url } = world.purchase("asks-otherwise");
  const guarded = world.guard();
  await guarded(url);
  const answer = await guarded(url, paying());
  assert.deepEqual([answer.status, keptOf(answer.headers)], [402, world.kept]);
});

test("a 402 with another protocol's demand alone is refused", async () => {
  for (const which of ["mpp-thief", "mpp-honest"]) {
    const { url } = world.purchase(which);
    await assert.rejects(world.guard()(url), refused("denied", "payment-terms-malformed"));
  }
});

test("a credential of another payment protocol does not leave", async () => {
  const { url, arrived } = world.purchase("honest");
  const guarded = world.guard();
  await guarded(url);
  for (const [name, value] of shared.credentials) {
    await assert.rejects(guarded(url, { headers: { [name]: value } }), refused("other-protocol"));
    const both = { headers: { "PAYMENT-SIGNATURE": payment(), [name]: value } };
    await assert.rejects(guarded(url, both), refused("other-protocol"));
  }
  assert.equal((await arrived()).requests, 1);
  for (const [name, value] of shared.others) await guarded(url, { headers: { [name]: value } });
});

test("a credential of another payment protocol in a body does not leave", async () => {
  const { url, arrived } = world.purchase("honest");
  const guarded = world.guard();
  await guarded(url);
  const [plain, ...others] = shared.bodies;
  for (const body of [plain, Buffer.from(plain), new Blob([plain]), ...others]) {
    for (const headers of [{}, paying().headers]) {
      const init = { method: "POST", headers, body };
      await assert.rejects(guarded(url, init), refused("other-protocol"));
      await assert.rejects(guarded(new Request(url, init)), refused("other-protocol"));
    }
  }
  assert.equal((await arrived()).requests, 1);
  const echo = guardFetch(async (request) => new Response(await request.text()), world.options());
  for (const body of shared.otherBodies) {
    assert.equal(await (await echo(url, { method: "POST", body })).text(), body);
  }
});

test("the daemon sees the URL that answered, every header and the whole body", async () => {
  const { url, asked } = world.purchase("v1-honest");
  const guarded = world.guard("", { limits: { networks: ["eip155:84532"] } });
  const body = await (await guarded(`${url}#fragment`)).text();
  const header = payment();
  await guarded(url, paying(header, "X-PAYMENT"));
  const [first, second] = await asked();
  assert.equal(first.name, world.name);
  assert.equal(first.verb, world.verb);
  assert.deepEqual(first.limits, { networks: ["eip155:84532"] });
  assert.equal(first.response.status, 402);
  assert.equal(first.response.url, url);
  assert.ok(first.response.headers.some(([name, value]) => name === "content-type" && value === "application/json"));
  assert.equal(Buffer.from(first.response.body_base64, "base64").toString("utf8"), body);
  assert.deepEqual(second, { ...first, selected: 0, header });
});

for (const name of ["PAYMENT-SIGNATURE", "payment-signature", "X-PAYMENT", "x-Payment"]) {
  test(`${name} is a payment: without a decision it does not leave`, async () => {
    const { url, arrived } = world.purchase("honest");
    await assert.rejects(world.guard()(url, paying(payment(), name)), refused("no-decision"));
    await assert.rejects(world.guard()(url, paying("", name)), refused("no-decision"));
    assert.deepEqual(await arrived(), nothing);
  });
}

test("two payments in one request do not leave", async () => {
  const { url, arrived } = world.purchase("honest");
  const guarded = world.guard();
  await guarded(url);
  const both = { headers: { "PAYMENT-SIGNATURE": payment(), "X-PAYMENT": payment() } };
  await assert.rejects(guarded(url, both), refused("two-payments"));
  const twice = new Headers([["x-payment", payment()], ["X-Payment", payment()]]);
  await assert.rejects(guarded(url, { headers: twice }), refused("two-payments"));
  assert.deepEqual((await arrived()).payments, []);
});

test("a decision is for its URL", async () => {
  const [one, other] = [world.purchase("honest"), world.purchase("honest")];
  const guarded = world.guard();
  await guarded(one.url);
  await assert.rejects(guarded(other.url, paying()), refused("no-decision"));
  assert.deepEqual((await other.arrived()).payments, []);
});

test("a decision is for one payment", async () => {
  const { url, arrived } = world.purchase("honest");
  const guarded = world.guard();
  await guarded(url);
  await guarded(url, paying());
  await assert.rejects(guarded(url, paying()), refused("no-decision"));
  assert.equal((await arrived()).payments.length, 1);
});

test("a 402 for a payment opens no second one", async () => {
  const { url, arrived } = world.purchase("asks-again");
  const guarded = world.guard();
  await guarded(url);
  assert.equal((await guarded(url, paying())).status, 402);
  await assert.rejects(guarded(url, paying()), refused("no-decision"));
  assert.equal((await arrived()).payments.length, 1);
});

test("of payments at once for one decision exactly one leaves", async () => {
  const { url, arrived } = world.purchase("honest");
  const guarded = world.guard();
  await guarded(url);
  const ends = await Promise.allSettled(Array.from({ length: 8 }, () => guarded(url, paying())));
  assert.equal(ends.filter(({ status }) => status === "fulfilled").length, 1);
  assert.equal((await arrived()).payments.length, 1);
});

test("each of two decisions for one URL is for one payment", async () => {
  const { url, arrived } = world.purchase("honest");
  const guarded = world.guard();
  await Promise.all([guarded(url), guarded(url)]);
  await Promise.all([guarded(url, paying()), guarded(url, paying())]);
  await assert.rejects(guarded(url, paying()), refused("no-decision"));
  assert.equal((await arrived()).payments.length, 2);
});

test("a decision ends", async () => {
  const { url, arrived } = world.purchase("honest");
  const guarded = world.guard();
  await guarded(url);
  mock.timers.enable({ apis: ["Date"], now: Date.now() + 61_000 });
  try {
    await assert.rejects(guarded(url, paying()), refused("no-decision"));
  } finally {
    mock.timers.reset();
  }
  assert.deepEqual((await arrived()).payments, []);
});

test("an entry ends by itself", async () => {
  const { url, arrived, asked } = world.purchase("two-ends");
  const [guarded, longer, shorter] = [world.guard(), paying(), paying(payment({ value: "9000" }))];
  await guarded(url);
  mock.timers.enable({ apis: ["Date"], now: Date.now() + 31_000 });
  try {
    await assert.rejects(guarded(url, shorter), refused("payment-denied", "payment-signature-mismatch"));
    await guarded(url, longer);
  } finally {
    mock.timers.reset();
  }
  assert.deepEqual((await asked()).map(({ selected }) => selected), [undefined, 0, 0]);
  assert.deepEqual((await arrived()).payments.map(({ value }) => value), ["10000"]);
});

test("an entry that ends while it is asked about is not paid", async () => {
  const { url, arrived, asked } = world.purchase("two-ends");
  const guarded = world.guard("signed.lasts");
  await guarded(url);
  const late = guarded(url, paying(payment({ value: "9000", seconds: 30 })));
  mock.timers.enable({ apis: ["Date"], now: Date.now() + 31_000 });
  try {
    await assert.rejects(late, refused("payment-denied", "payment-signature-mismatch"));
  } finally {
    mock.timers.reset();
  }
  // It was asked about, and allowed.
  assert.deepEqual((await asked()).map(({ selected }) => selected), [undefined, 0, 1]);
  assert.deepEqual((await arrived()).payments, []);
});

test("what is signed must be what was allowed", async () => {
  const { url, arrived } = world.purchase("honest");
  const guarded = world.guard();
  await guarded(url);
  for (const change of [{ to: world.stranger }, { value: "10001" }, { seconds: 315_360_000 }, { accepted: {} }]) {
    const mismatch = refused("payment-denied", "payment-signature-mismatch");
    await assert.rejects(guarded(url, paying(payment(change))), mismatch);
  }
  assert.deepEqual((await arrived()).payments, []);
});

test("of several entries the one that is signed counts", async () => {
  const both = world.purchase("two-entries");
  const guarded = world.guard();
  await guarded(both.url);
  await guarded(both.url, paying(payment({ value: "9000" })));
  assert.deepEqual((await both.arrived()).payments.map(({ value }) => value), ["9000"]);

  const poisoned = world.purchase("v1-second-poisoned");
  await guarded(poisoned.url);
  const thiefs = paying(payment({ to: world.stranger, value: "9000" }), "X-PAYMENT");
  await assert.rejects(guarded(poisoned.url, thiefs), refused("payment-denied", "payment-signature-mismatch"));
  await guarded(poisoned.url, paying(payment(), "X-PAYMENT"));
  assert.deepEqual((await poisoned.arrived()).paid, [world.honest]);
});

test("decisions that nobody pays for are forgotten, the oldest first", async () => {
  const guarded = world.guard();
  const [first, second] = [world.purchase("honest"), world.purchase("honest")];
  await guarded(first.url);
  await guarded(second.url);
  for (let count = 0; count < 255; count += 1) await guarded(world.purchase("honest").url);
  await assert.rejects(guarded(first.url, paying()), refused("no-decision"));
  assert.equal((await guarded(second.url, paying())).status, 200);
});

test("decisions that have ended make room for those that have not", async () => {
  const [guarded, header] = [world.guard(), paying()];
  // It ends minutes after the others.
  const first = world.purchase("ends-late");
  await guarded(first.url);
  for (let count = 0; count < 255; count += 1) await guarded(world.purchase("ends-soon").url);
  mock.timers.enable({ apis: ["Date"], now: Date.now() + 31_000 });
  try {
    await guarded(world.purchase("honest").url);
    assert.equal((await guarded(first.url, header)).status, 200);
  } finally {
    mock.timers.reset();
  }
});

test("about one payment at most 32 questions are asked", async () => {
  const { url, arrived, asked } = world.purchase("honest");
  const guarded = world.guard();
  for (let count = 0; count < 33; count += 1) await guarded(url);
  const thiefs = paying(payment({ to: world.stranger }));
  await assert.rejects(guarded(url, thiefs), refused("payment-denied", "payment-signature-mismatch"));
  assert.equal((await asked()).filter(({ header }) => header !== undefined).length, 32);
  assert.deepEqual((await arrived()).payments, []);
});

test("a daemon elsewhere is asked over https, or signs", () => {
  const options = (daemon, more) => () => guardFetch(fetch, world.options("", { daemon, ...more }));
  for (const daemon of [
    "http://clresolve.example", "http://10.0.0.1:8402", "http://127.0.0.1.example", "http://localhost.example",
    "http://[::2]", "http://0.0.0.0", "http://[::ffff:127.0.0.1]", "http://128.0.0.1",
  ]) {
    assert.throws(options(daemon), TypeError, daemon);
    assert.doesNotThrow(options(daemon, { signer: { issuer: world.issuer, jwks: world.jwks } }), daemon);
  }
  for (const daemon of [
    "http://127.0.0.1:8402", "http://127.1.2.3", "http://[::1]:8402/behind/a/proxy", "http://LOCALHOST",
    "https://clresolve.example", "unix:/run/clresolve.sock",
  ]) {
    assert.doesNotThrow(options(daemon), daemon);
  }
  const bad = [
    "ftp://127.0.0.1", "http://user@127.0.0.1", "http://127.0.0.1?a", "127.0.0.1",
    "unix:relative", "unix:/run/clresolve.sock?a", "unix://host/run/clresolve.sock",
  ];
  for (const daemon of bad) {
    assert.throws(options(daemon, { signer: { issuer: "", jwks: world.jwks } }), TypeError, daemon);
  }
  assert.throws(options(world.daemon, { agent: "" }), TypeError);
  assert.throws(options(world.daemon, { verb: "" }), TypeError);
  assert.throws(options(world.daemon, { timeout: 0 }), TypeError);
});

test("unknown option is rejected with the nearest name", () => {
  const message = (name) => {
    try {
      guardFetch(fetch, world.options("", { [name]: "" }));
    } catch (error) {
      return `${error}`;
    }
  };
  for (const [name, meant] of [
    ["deamon", "daemon"], ["Daemon", "daemon"], ["agnet", "agent"], ["timout", "timeout"], ["on_paid", "onPaid"],
  ]) {
    assert.equal(message(name), `TypeError: ${name}: did you mean ${meant}?`);
  }
  for (const name of ["cert", "xy", "", "constructor"]) {
    assert.match(message(name), new RegExp(`^TypeError: ${name}: unknown option; the options are daemon, agent, `));
  }
});

test("agent that is not in normal form is rejected with the name that was meant", () => {
  for (const [agent, meant] of messages.agents) {
    const message = `agent: expected the full ENS name in normal form; did you mean ${meant}?`;
    assert.throws(() => world.guard("", { agent }), { name: "TypeError", message }, agent);
  }
  for (const agent of messages.normalAgents) assert.doesNotThrow(() => world.guard("", { agent }), agent);
});

test("daemon without a scheme is rejected with an example", () => {
  for (const daemon of [...messages.daemonsWithoutScheme, undefined]) {
    const message = "daemon: expected a URL such as http://127.0.0.1:8402";
    assert.throws(() => world.guard("", { daemon }), { name: "TypeError", message }, `${daemon}`);
  }
});

test("a daemon is reached over https and over a Unix socket", async () => {
  for (const more of [{ daemon: world.secure, ca: world.ca }, { daemon: `unix:${world.socket}` }]) {
    const { url, arrived } = world.purchase("honest");
    const guarded = world.guard("", more);
    await guarded(url);
    await guarded(url, paying());
    assert.deepEqual((await arrived()).paid, [world.honest]);
  }
  const stranger = world.guard("", { daemon: world.secure });
  await assert.rejects(stranger(world.purchase("free").url), refused("unavailable"));
});

test("a signed decision is checked", async () => {
  const signer = () => ({ issuer: world.issuer, jwks: world.jwks });
  const { url, arrived } = world.purchase("honest");
  const guarded = world.guard("", { signer: signer() });
  await guarded(url);
  await guarded(url, paying());
  assert.deepEqual((await arrived()).paid, [world.honest]);
  const faults = [
    "unsigned", "jws-issuer", "jws-late", "jws-early", "jws-long", "jws-request", "jws-unbound", "jws-none", "jws-type",
    "jws-crit", "jws-jku", "jws-kid", "jws-key", "jws-payload", "jws-backward", "jws-fraction", "jws-text",
    "jws-padded", "jws-parts", "jws-space",
  ];
  for (const fault of faults) {
    const once = world.guard(`decisions.${fault}`, { signer: signer() });
    await assert.rejects(once(url), refused("unavailable"), fault);
    const then = world.guard(`signed.${fault}`, { signer: signer() });
    await then(url);
    await assert.rejects(then(url, paying()), refused("unavailable"), fault);
  }
  assert.equal((await arrived()).payments.length, 1);
});
