// The sellers of the tests: an honest one and a thief. Each demands a payment under x402 version 1 or 2 and keeps a
// ledger of the payments that arrived. Nothing is settled: what was signed for whom is what the tests ask.
//
// `/agent/CASE?id=ID` is one purchase. CASES says what each case demands; ID keeps the ledgers of two tests apart.
// `/agent/redirect-STATUS` redirects to the other seller. `/agent/paid-STATUS-itself` and `/agent/paid-STATUS-elsewhere`
// demand what is honest, and redirect who has paid to the same URL or to the other seller. `/agent/breaks-off` takes a payment
// and hangs up, `/agent/silent` takes one and says nothing. `/agent/status-STATUS` answers with that status and with the
// challenges of OTHERS and terms. A credential of another payment protocol is a payment in the ledger, too.

import http from "node:http";
import { gzipSync } from "node:zlib";

export const HONEST = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
export const THIEF = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC";
export const NETWORK = "eip155:84532";
export const ASSET = "0x036CbD53842c5426634e7929541eC2318f3dCF7e";
export const AMOUNT = "10000";
export const MAX_BODY_BYTES = 64 * 1024;

const TEN_YEARS = 315_360_000;

const HONEST_ENTRY = {
  scheme: "exact",
  network: NETWORK,
  amount: AMOUNT,
  asset: ASSET,
  payTo: HONEST,
  maxTimeoutSeconds: 60,
  extra: { name: "USDC", version: "2" },
};
const entry = (change) => ({ ...HONEST_ENTRY, ...change });

// What a client that speaks MPP pays to an account: a challenge of the auth scheme Payment.
const mpp = (recipient) => {
  const methodDetails = { chainId: 84532, credentialTypes: ["authorization"], decimals: 6 };
  const request = { amount: AMOUNT, currency: ASSET, recipient, methodDetails };
  const expires = new Date(Date.now() + 3_600_000).toISOString();
  const text = Buffer.from(JSON.stringify(request)).toString("base64url");
  return `Payment id="c1", realm="127.0.0.1", method="evm", intent="charge", request="${text}", expires="${expires}"`;
};
const demandsMpp = (recipient) => ({ "www-authenticate": mpp(recipient) });

// Challenges of several protocols in several headers. KEPT is what a guard hands on of them.
const OTHERS = {
  "www-authenticate": [`Basic realm="a, Payment b", ${mpp(THIEF)}, Bearer`, 'l402 macaroon="bQ==", invoice="lnbc1"'],
  "proxy-authenticate": 'LSAT macaroon="bQ==", invoice="lnbc1", Digest realm="d", nonce="n"',
};
export const KEPT = {
  "www-authenticate": 'Basic realm="a, Payment b", Bearer',
  "proxy-authenticate": 'Digest realm="d", nonce="n"',
};

// On the wire it is shorter than a 402 may be, decoded it has 32 MiB.
const bomb = gzipSync(Buffer.alloc(32 * 1024 * 1024));
const twice = gzipSync(gzipSync("{}"));
const coded = (body, ...codings) => ({ body, more: { "content-encoding": codings } });

// Terms of version 2, in the header.
const v2 = (...accepts) => ({ accepts });
// Terms of version 1, in the body.
const v1 = (...accepts) => ({ version: 1, accepts });

const CASES = {
  honest: v2(entry()),
  "two-entries": v2(entry(), entry({ amount: "9000" })),
  "ends-late": v2(entry({ maxTimeoutSeconds: 300 })),
  "ends-soon": v2(entry({ maxTimeoutSeconds: 30 })),
  "two-ends": v2(entry(), entry({ amount: "9000", maxTimeoutSeconds: 30 })),
  "other-payto": v2(entry({ payTo: THIEF })),
  "second-poisoned": v2(entry(), entry({ payTo: THIEF, amount: "9000" })),
  "ten-years": v2(entry({ maxTimeoutSeconds: TEN_YEARS })),
  "fake-usdc": v2(entry({ asset: "0x00000000000000000000000000000000facecafe" })),
  "wrong-chain": v2(entry({ network: "eip155:8453", asset: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913" })),
  "over-limit": v2(entry({ amount: "900000" })),
  "header-against-body": { ...v2(entry()), body: { payTo: THIEF } },
  "broken-header": { ...v1(entry({ payTo: THIEF })), header: "%" },
  "two-headers": { ...v2(entry()), twice: true },
  "asks-again": { ...v2(entry()), insists: true },
  "breaks-off": { ...v2(entry()), breaks: true },
  silent: { ...v2(entry()), silent: true },
  "v1-honest": v1(entry()),
  "v1-other-payto": v1(entry({ payTo: THIEF })),
  "v1-second-poisoned": v1(entry(), entry({ payTo: THIEF, amount: "9000" })),
  "v1-ten-years": v1(entry({ maxTimeoutSeconds: TEN_YEARS })),
  "v1-fake-usdc": v1(entry({ asset: "0x00000000000000000000000000000000facecafe" })),
  "longest-body": { ...v2(entry()), bytes: MAX_BODY_BYTES },
  "longer-body": { ...v2(entry()), bytes: MAX_BODY_BYTES + 1 },
  garbage: { ...v2(), header: "%" },
  "mpp-thief-beside": { ...v2(entry()), more: demandsMpp(THIEF) },
  "mpp-thief-in-a-proxy": { ...v2(entry()), more: { "proxy-authenticate": mpp(THIEF) } },
  "mpp-honest-beside-a-thief": { ...v2(entry({ payTo: THIEF })), more: demandsMpp(HONEST) },
  "mpp-honest": { ...v2(), header: [], more: demandsMpp(HONEST) },
  "mpp-thief": { ...v2(), header: [], more: demandsMpp(THIEF) },
  "other-protocols": { ...v2(entry()), more: OTHERS },
  "asks-otherwise": { ...v2(entry()), insists: true, more: OTHERS },
  "cut-off": { ...v2(entry()), cut: { "content-length": 100 } },
  "cut-off-chunked": { ...v2(entry()), cut: { "transfer-encoding": "chunked" } },
  drips: { ...v2(entry()), drips: true },
  gzip: { ...v2(entry()), ...coded(gzipSync("{}"), "gzip") },
  "gzip-bomb": { ...v2(entry()), ...coded(bomb, "gzip") },
  "gzip-twice": { ...v2(entry()), ...coded(twice, "gzip, gzip") },
  "gzip-on-two-lines": { ...v2(entry()), ...coded(twice, "gzip", "gzip") },
};

// Starts a seller. `other` gives the URL of the one that it redirects to.
export function startSeller(name, other) {
  const ledger = new Map();
  const server = http.createServer((request, response) => {
    const url = new URL(request.url, "http://seller");
    if (url.pathname === "/~ledger") {
      return answer(response, 200, {}, JSON.stringify(ledger.get(url.searchParams.get("id")) ?? empty()));
    }
    const kept = ledger.get(url.searchParams.get("id")) ?? empty();
    ledger.set(url.searchParams.get("id"), kept);
    kept.requests += 1;
    const payments = ["payment-signature", "x-payment"].filter((header) => header in request.headers);
    for (const header of payments) {
      kept.payments.push({ seller: name, path: url.pathname, header, ...signedIn(request.headers[header]) });
    }
    const credential = /^payment (.*)$/i.exec(request.headers.authorization)?.[1];
    if (credential) {
      const { to } = JSON.parse(Buffer.from(credential, "base64url").toString("utf8")).payload;
      kept.payments.push({ seller: name, path: url.pathname, header: "authorization", to: spelt(to) });
    }
    request.resume();
    reply(response, url, name, other, payments.length > 0 || credential !== undefined);
  });
  return server;
}

const empty = () => ({ requests: 0, payments: [] });

// For whom, how much and until when a payment header is signed.
function signedIn(value) {
  const { to, ...rest } = JSON.parse(Buffer.from(value, "base64").toString("utf8")).payload.authorization;
  return { to: spelt(to), value: rest.value, validBefore: Number(rest.validBefore) };
}

// Clients write an address in capitals and small letters, or in small ones alone.
const spelt = (address) => [HONEST, THIEF].find((known) => known.toLowerCase() === address.toLowerCase()) ?? address;

function reply(response, url, name, other, paid) {
  const which = url.pathname.split("/")[2];
  if (which === "free") return answer(response, 200, {}, "free");
  const [, plain] = /^status-(\d+)$/.exec(which) ?? [];
  if (plain) return answer(response, Number(plain), { ...OTHERS, "payment-required": "e30=", "x-payment-required": "e30=" }, "");
  const elsewhere = (there) => `${other()}/agent/${there}${url.search}`;
  const [, status, version] = /^redirect-(\d+)(-v1)?$/.exec(which) ?? [];
  if (status) return redirect(response, status, elsewhere(version ? "v1-honest" : "honest"));
  const [, then, there] = /^paid-(\d+)-(itself|elsewhere)$/.exec(which) ?? [];
  if (then && paid) return redirect(response, then, there === "itself" ? resourceOf(response, url) : elsewhere("honest"));
  const terms = CASES[then ? "honest" : which];
  if (!terms) return answer(response, 404, {}, "");
  if (paid && terms.silent) return;
  if (paid && terms.breaks) return response.destroy();
  const settlement = terms.version === 1 ? "x-payment-response" : "payment-response";
  if (paid && !terms.insists) return answer(response, 200, { [settlement]: settled() }, '{"paid":true}');
  // The thief's own terms pay the thief, whatever the case.
  const accepts = name === "thief" ? terms.accepts.map((one) => ({ ...one, payTo: THIEF })) : terms.accepts;
  demand(response, url, { ...terms, accepts });
}

function demand(response, url, { version = 2, accepts, body, header, twice, bytes, more, cut, drips }) {
  const resource = resourceOf(response, url);
  const first = Buffer.from(
    JSON.stringify({ x402Version: 2, error: "payment required", resource: { url: resource }, accepts }),
  ).toString("base64");
  const names = header ?? (version === 2 ? first : []);
  const headers = { "payment-required": twice ? [first, first] : names, ...more };
  if (cut) return cutOff(response, { ...headers, ...cut });
  if (drips) return drip(response, headers);
  if (Buffer.isBuffer(body)) return answer(response, 402, headers, body);
  const old = version === 1 ? accepts : body && accepts.map((one) => ({ ...one, ...body }));
  const demand = { x402Version: 1, error: "payment required", accepts: old?.map((one) => inVersion1(one, resource)) };
  answer(response, 402, headers, (old ? JSON.stringify(demand) : "{}").padEnd(bytes ?? 0));
}

// A 402 whose connection ends before its body does.
function cutOff(response, headers) {
  response.writeHead(402, { "content-type": "application/json", ...headers });
  response.write('{"accepts":', () => setTimeout(() => response.destroy(), 50));
}

// A 402 whose body has no end, and comes a byte at a time.
function drip(response, headers) {
  response.writeHead(402, { "content-type": "application/json", ...headers });
  const timer = setInterval(() => response.write(" "), 100);
  response.on("close", () => clearInterval(timer));
}

// Whoever paid before is told of the settlement, as by any other reply.
function redirect(response, status, location) {
  const headers = { location, refresh: `0; url=${location}`, "payment-response": settled() };
  answer(response, Number(status), headers, '{"moved":true}');
}

// The URL as it was asked.
const resourceOf = (response, url) => `http://${response.req.headers.host}${url.pathname}${url.search}`;

// The same entry as version 1 writes it.
function inVersion1({ amount, network, ...rest }, resource) {
  const name = { [NETWORK]: "base-sepolia" }[network];
  return { ...rest, network: name, maxAmountRequired: amount, resource, description: "", mimeType: "application/json" };
}

function settled() {
  const receipt = { success: true, transaction: `0x${"00".repeat(32)}`, network: NETWORK };
  return Buffer.from(JSON.stringify(receipt)).toString("base64");
}

function answer(response, status, headers, body) {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(body);
}
