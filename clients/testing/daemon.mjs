// A stand-in for the daemon: the gate, decisions and checks, with a policy just large enough to tell the cases of
// sellers.mjs apart, and with faults. It shows what a guard does with each answer. Whether the answers are right is not
// shown here.
//
// The first segment of the path chooses one fault: `/ROUTE.FAULT/v1/…`, where ROUTE is `gate`, `decisions`, or `signed`
// for those with a payment header; checks count as decisions. Without it the daemon is sound.

import { createHash, createPrivateKey, createPublicKey, sign } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";

import { AMOUNT, ASSET, HONEST, NETWORK } from "./sellers.mjs";

const JWS_HOLDS_SECONDS = 60;
const MAX_TIMEOUT_SECONDS = 300;
const OVERSIZE_BYTES = 4 * 1024 * 1024;
// Longer than the time limits of the tests with faults.
const DRIPS = 30;
const DRIP_MILLISECONDS = 50;
// The codes of the first answers, by fault: `cold` or `cold-…`, `unconfirmed` or `unconfirmed-…`.
const TRANSIENT = { cold: "deadline-passed", unconfirmed: "unconfirmed" };
const TRANSIENT_ANSWERS = 2;
export const ISSUER = "https://clresolve.example";
export const AGENT = "summarizeagent.eth";
export const VERB = "summarize";

// PKCS#8 around 32 bytes of one value: worthless keys.
const keyOf = (byte) =>
  createPrivateKey({
    key: Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), Buffer.alloc(32, byte)]),
    format: "der",
    type: "pkcs8",
  });
const KEY = keyOf(7);
const OTHER_KEY = keyOf(8);

// The keys that a guard is configured with.
export const jwks = { keys: [jwkOf(KEY)] };

function jwkOf(key) {
  const { kty, crv, x } = createPublicKey(key).export({ format: "jwk" });
  const kid = createHash("sha256").update(JSON.stringify({ crv, kty, x })).digest("base64url");
  return { kty, crv, x, kid, use: "sig", alg: "EdDSA" };
}

const ROUTE = /^(?:\/([^/]+\.[^/]+))?\/v1\/(gate|decisions\/signed|decisions|checks)(\/.*)?$/;
const DECISION = "clresolve.decision/1";
const CHECK = "clresolve.check/1";

// Answers a request. `seller()` is the origin of the honest seller.
export function daemon(seller) {
  const asked = new Map();
  const answered = new Map();
  return async (request, response) => {
    const [path, search] = request.url.split("?");
    if (path === "/~asked") {
      return end(response, 200, {}, JSON.stringify(asked.get(new URLSearchParams(search).get("id")) ?? []));
    }
    const [, prefix, route, rest] = ROUTE.exec(path) ?? [];
    if (!route) return end(response, 404, {}, "");
    const bytes = await bytesOf(request);
    const question = route === "gate" ? undefined : JSON.parse(bytes.toString("utf8"));
    const name = question ? nameOf(route, question) : route;
    const [faulty, fault] = (prefix ?? ".").split(".");
    const broken = name === faulty ? fault : "";
    if (respondsBadly(request, broken)) return;
    // Another status has the same body. A redirect leads to the sound daemon.
    const status = /^\d{3}$/.test(broken) ? Number(broken) : 200;
    const headers = { location: path.slice(path.indexOf("/v1/")) };
    const transient = transientCode(answered, prefix, broken);
    if (name === "gate" && status !== 200) return end(response, status, headers, "");
    if (name === "gate") return gate(response, rest, broken, transient);
    keep(asked, question);
    const settled = name === "signed" ? decideSigned(question, seller()) : decide(question, seller());
    const answer = transient ? aborted(settled, transient) : settled;
    const whole = { ...answer, ...aboutOf(route, question) };
    if (status !== 200) return end(response, status, headers, JSON.stringify(whole));
    deliver(request, response, distorted(whole, broken), bytes, broken);
  };
}

// Checks have one route, with or without a payment.
function nameOf(route, { header }) {
  if (route === "checks") return header === undefined ? "decisions" : "signed";
  return route === "decisions/signed" ? "signed" : route;
}

// What an answer says of its question.
function aboutOf(route, { name = null, verb = null }) {
  return { schema: route === "checks" ? CHECK : DECISION, name, verb };
}

// Silences, the same for every route.
function respondsBadly(request, fault) {
  if (fault === "drops") request.socket.destroy();
  return fault === "hangs" || fault === "drops";
}

// The code of this answer, if it is one of the first and its fault has one. `answered` counts per prefix.
function transientCode(answered, prefix, fault) {
  const code = TRANSIENT[fault.split("-")[0]];
  if (!code) return undefined;
  const before = answered.get(prefix) ?? 0;
  answered.set(prefix, before + 1);
  return before < TRANSIENT_ANSWERS ? code : undefined;
}

function gate(response, rest, fault, transient) {
  if (transient) return end(response, 403, { "clresolve-code": transient }, "");
  if (fault === "oversize") return end(response, 200, {}, " ".repeat(OVERSIZE_BYTES));
  if (fault === "foreign") return end(response, 403, { "clresolve-code": "\u00e9<script>" }, "");
  if (rest === `/${AGENT}/${VERB}`) return end(response, 200, {}, "");
  end(response, 403, { "clresolve-code": "name-unregistered" }, "");
}

function keep(asked, question) {
  const id = new URL(question.response.url).searchParams.get("id");
  asked.set(id, [...(asked.get(id) ?? []), question]);
}

// What a decision without `selected` says.
function decide(question, seller) {
  const terms = termsOf(question.response);
  if (!terms.accepts) return decision([terms.code], []);
  const shared = new URL(question.response.url).origin === seller ? [] : ["endpoint-mismatch"];
  const entries = terms.accepts.map((entry, index) => {
    const codes = [...shared, ...codesOf(entry)];
    return row(index, codes, entry);
  });
  return decision([...new Set(entries.flatMap((entry) => entry.codes))], entries);
}

function decideSigned(question, seller) {
  const before = decide(question, seller).entries[question.selected];
  const terms = termsOf(question.response);
  const codes = before ? [...before.codes] : ["payment-terms-malformed"];
  const entry = terms.accepts?.[question.selected];
  if (entry && !matches(question.header, entry)) codes.push("payment-signature-mismatch");
  return decision(codes, [row(question.selected, codes, entry)]);
}

// An entry that passes ends by itself.
function row(index, codes, entry) {
  if (codes.length > 0) return { index, abort: true, codes };
  const end = Date.now() + entry.maxTimeoutSeconds * 1000;
  return { index, abort: false, codes, valid_until: new Date(end).toISOString() };
}

function matches(header, entry) {
  const { accepted, payload } = JSON.parse(Buffer.from(header, "base64").toString("utf8"));
  const { to, value, validBefore } = payload.authorization;
  const latest = Date.now() / 1000 + entry.maxTimeoutSeconds + 5;
  const isPayee = to.toLowerCase() === entry.payTo.toLowerCase();
  const same = isPayee && value === entry.amount && Number(validBefore) <= latest;
  return same && (accepted === undefined || JSON.stringify(inOrder(accepted)) === JSON.stringify(inOrder(entry)));
}

function inOrder(value) {
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, inOrder(value[key])]));
}

function codesOf({ scheme, network, amount, asset, payTo, maxTimeoutSeconds }) {
  const codes = {
    "payment-scheme-unchecked": scheme !== "exact",
    "payment-network-mismatch": network !== NETWORK,
    "payment-asset-unlisted": network === NETWORK && asset !== ASSET,
    "payment-amount-exceeds": BigInt(amount) > BigInt(AMOUNT),
    "payment-timeout-excessive": maxTimeoutSeconds > MAX_TIMEOUT_SECONDS,
    "payee-mismatch": payTo !== HONEST,
  };
  return Object.keys(codes).filter((code) => codes[code]);
}

// The entries of a reply, as version 2 writes them, or the code of what is wrong with it.
function termsOf({ headers, body_base64 }) {
  const demands = headers.filter(([name]) => name.toLowerCase() === "payment-required").map(([, value]) => value);
  const old = parsed(Buffer.from(body_base64, "base64").toString("utf8"))?.accepts?.map(inVersion2);
  if (demands.length > 1 || demands[0]?.includes(",")) return { code: "payment-terms-ambiguous" };
  if (demands.length === 0) return old ? { accepts: old } : { code: "payment-terms-malformed" };
  const accepts = parsed(Buffer.from(demands[0], "base64").toString("utf8"))?.accepts;
  if (!accepts?.length) return { code: "payment-terms-malformed" };
  return old ? { code: "payment-terms-ambiguous" } : { accepts };
}

function inVersion2({ maxAmountRequired, network, resource, description, mimeType, ...rest }) {
  return { ...rest, amount: maxAmountRequired, network: network === "base-sepolia" ? NETWORK : network };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function decision(codes, entries) {
  const abort = codes.length > 0 || entries.length === 0;
  // A decision that aborts ends nowhere, also where one of its entries passes.
  const end = abort ? null : entries.map((entry) => entry.valid_until).sort()[0];
  return {
    id: `sha256:${"0".repeat(64)}`,
    decision: abort ? "deny" : "allow",
    abort,
    reason: abort ? `${codes[0]}: the stand-in says so` : "the payment may be made",
    codes,
    state: "trusted",
    entries: entries.map(({ valid_until, ...rest }) => (valid_until === end ? rest : { ...rest, valid_until })),
    payee: { address: HONEST, network: NETWORK, proven_by: "addr" },
    route: { url: "http://127.0.0.1/agent", source: "configured" },
    checked: ["identity", "route", "resource", "network", "asset", "amount", "timeout", "payee"],
    unchecked: [],
    valid_until: end,
  };
}

// A decision about the same entries, all of which abort with this code.
function aborted({ entries }, code) {
  return decision([code], entries.map(({ index }) => ({ index, abort: true, codes: [code] })));
}

// The same, as if another entry did not pass.
function mixed(answer, change) {
  const entries = answer.entries.map((entry) => ({ ...entry, ...change }));
  return { ...answer, decision: "deny", abort: true, valid_until: null, entries };
}

const WARNING = { code: "payee-changed", effect: "warn", message: "the stand-in says so" };

const passes = (_, index) => ({ index, abort: false, codes: [] });

// Answers that no guard may take for a permission: each is an honest one with one thing wrong. Only `lasts` permits, and
// for longer than the decision before it. `claimed`, `warns` and `denies-a-warning` are sound answers.
const DISTORTIONS = {
  schema: (answer) => ({ ...answer, schema: answer.schema.replace("/1", "/2") }),
  "other-schema": (answer) => ({ ...answer, schema: answer.schema === CHECK ? DECISION : CHECK }),
  "no-schema": ({ schema, ...answer }) => answer,
  "no-codes": ({ codes, ...answer }) => answer,
  "codes-number": (answer) => ({ ...answer, codes: [7] }),
  "no-abort": ({ abort, ...answer }) => answer,
  "abort-text": (answer) => ({ ...answer, abort: "false" }),
  "abort-number": (answer) => ({ ...answer, abort: 0 }),
  aborts: (answer) => mixed(answer, { valid_until: answer.valid_until }),
  "other-name": (answer) => ({ ...answer, name: "other.eth" }),
  "other-verb": (answer) => ({ ...answer, verb: "other" }),
  "allows-nothing": (answer) => ({ ...answer, abort: false, entries: [] }),
  undecided: (answer) => ({ ...answer, decision: "undecided", abort: false }),
  unknown: (answer) => ({ ...answer, decision: "maybe", abort: true }),
  claimed: (answer) => ({ ...answer, ...aborted(answer, "identity-claimed"), decision: "undecided" }),
  warns: (answer) => ({ ...answer, codes: [...answer.codes, WARNING.code], reasons: [WARNING] }),
  "denies-a-warning": (answer) => ({ ...answer, ...aborted(answer, WARNING.code), reasons: [WARNING] }),
  expired: (answer) => ({ ...answer, valid_until: "2020-01-01T00:00:00Z" }),
  endless: (answer) => ({ ...answer, valid_until: null }),
  lasts: (answer) => ({ ...answer, valid_until: answer.abort ? null : "2099-01-01T00:00:00Z" }),
  offset: (answer) => ({ ...answer, valid_until: "2099-01-01T00:00:00+00:00" }),
  date: (answer) => ({ ...answer, valid_until: "2099-01-01" }),
  "no-time": (answer) => ({ ...answer, valid_until: "tomorrow" }),
  "no-entries": ({ entries, ...answer }) => answer,
  "entry-text": (answer) => ({ ...answer, entries: answer.entries.map((entry) => ({ ...entry, abort: "false" })) }),
  "entry-bare": (answer) => ({ ...answer, entries: answer.entries.map(({ index }) => ({ index })) }),
  "entry-index": (answer) => ({ ...answer, entries: answer.entries.map((entry) => ({ ...entry, index: -1 })) }),
  "entry-twice": (answer) => ({ ...answer, entries: [...answer.entries, ...answer.entries] }),
  "entries-many": (answer) => ({ ...answer, entries: Array.from({ length: 33 }, passes) }),
  "entry-endless": (answer) => mixed(answer, {}),
  "entry-null": (answer) => mixed(answer, { valid_until: null }),
  "entry-date": (answer) => mixed(answer, { valid_until: "2099-01-01" }),
  "entry-over": (answer) => mixed(answer, { valid_until: "2020-01-01T00:00:00Z" }),
  "entry-other": (answer) => ({ ...answer, entries: answer.entries.map((entry) => ({ ...entry, index: 7 })) }),
  list: (answer) => [answer],
  null: () => null,
};

const distorted = (answer, fault) => (DISTORTIONS[fault] ?? ((same) => same))(answer);

function deliver(request, response, answer, asked, fault) {
  if (fault === "drips") return drip(response, JSON.stringify(answer));
  if (fault === "garbage") return end(response, 200, {}, "allow");
  if (fault === "truncated") return end(response, 200, {}, JSON.stringify(answer).slice(0, -1));
  if (fault === "oversize") return end(response, 200, {}, JSON.stringify(answer).padEnd(OVERSIZE_BYTES));
  if (fault === "unsigned" || request.headers.accept !== "application/jose") {
    return end(response, 200, { "content-type": "application/json" }, JSON.stringify(answer));
  }
  end(response, 200, { "content-type": "application/jose" }, jwsOf(answer, asked, fault));
}

// An answer whose end comes late, while something comes all the time.
async function drip(response, text) {
  for (let count = 0; count < DRIPS; count += 1) {
    response.write(" ");
    await pause(DRIP_MILLISECONDS);
  }
  response.end(text);
}

// A decision as a JWS. `request` is the digest of the body that was sent: it binds the answer to the question.
function jwsOf(decision, asked, fault) {
  const now = Math.floor(Date.now() / 1000);
  const digest = createHash("sha256").update(asked).digest("hex");
  const claims = { iss: ISSUER, iat: now, exp: now + JWS_HOLDS_SECONDS, request: `sha256:${digest}`, decision };
  const header = { alg: "EdDSA", kid: jwks.keys[0].kid, typ: "clresolve-decision+jwt" };
  const changes = {
    "jws-issuer": { claims: { iss: "https://other.example" } },
    "jws-late": { claims: { iat: now - 300, exp: now - 240 } },
    "jws-early": { claims: { iat: now + 300, exp: now + 360 } },
    "jws-long": { claims: { exp: now + 7200 } },
    "jws-backward": { claims: { iat: now + 10, exp: now + 5 } },
    "jws-fraction": { claims: { iat: now - 0.5 } },
    "jws-text": { claims: { exp: `${now + 60}` } },
    "jws-request": { claims: { request: `sha256:${"0".repeat(64)}` } },
    "jws-unbound": { claims: { request: undefined } },
    "jws-none": { header: { alg: "none" } },
    "jws-type": { header: { typ: "clresolve-verdict+jwt" } },
    "jws-jku": { header: { jku: ISSUER } },
    "jws-crit": { header: { crit: ["exp"] } },
    "jws-kid": { header: { kid: jwkOf(OTHER_KEY).kid } },
  };
  const change = changes[fault] ?? {};
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const signed = `${part({ ...header, ...change.header })}.${part({ ...claims, ...change.claims })}`;
  const key = fault === "jws-key" ? OTHER_KEY : KEY;
  const signature = sign(null, Buffer.from(signed, "ascii"), key).toString("base64url");
  if (fault === "jws-payload") return `${part(header)}.${part({ ...claims, iat: now - 1 })}.${signature}`;
  // The signature is good; the text is not the one form that it has.
  const forms = { "jws-padded": `${signed}.${signature}==`, "jws-parts": `${signed}.${signature}.`, "jws-space": `${signed}.${signature} ` };
  return forms[fault] ?? `${signed}.${signature}`;
}

async function bytesOf(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function end(response, status, headers, body) {
  response.writeHead(status, headers);
  response.end(body);
}
