// @ts-check
/**
 * Parses decisions and checks, signed or unsigned. Parsing is strict: if any member that the guard relies on is
 * malformed, it throws.
 */

import { createPublicKey, verify } from "node:crypto";

const DECISIONS = ["allow", "deny", "undecided"];

/** The `typ` header of a signed decision. */
const TYPE = "clresolve-decision+jwt";

/** Maximum difference between the clocks of signer and guard, in seconds. */
const SKEW = 30;

/** Maximum time from `iat` to `exp`, in seconds. */
const MAX_LIFETIME = 3600;

/** Maximum number of entries of a 402 response that the daemon reads. */
const MAX_ENTRIES = 32;

/** The daemon's time format. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

/**
 * Reads the decision of this schema, about this name and verb, from parsed JSON. A check has the members of a decision.
 *
 * @param {any} decision
 * @param {string} schema
 * @param {{ name?: string, verb?: string }} about what was not asked is not compared
 * @returns {{
 *   abort: boolean,
 *   codes: string[],
 *   passing: import("./daemon.js").Entry[],
 *   until: number | undefined,
 *   document: object,
 * }} `until` is in milliseconds since 1970; `document` is the whole decision; `codes` are those that decide.
 */
export function readDecision(decision, schema, about) {
  must(decision?.schema === schema, "schema");
  must(about.name === undefined || decision.name === about.name, "question");
  must(about.verb === undefined || decision.verb === about.verb, "question");
  must(DECISIONS.includes(decision.decision), "decision");
  // `abort` is false if and only if the decision is `allow`.
  must(decision.abort === (decision.decision !== "allow"), "abort");
  /** @type {{ entries: any[], codes: string[] }} */
  const { entries, codes } = decision;
  must(Array.isArray(codes) && codes.every((code) => typeof code === "string"), "codes");
  must(Array.isArray(entries), "entries");
  for (const entry of entries) {
    must(Number.isInteger(entry?.index) && entry.index >= 0 && entry.index < MAX_ENTRIES, "entries");
    must(typeof entry.abort === "boolean", "entries");
  }
  must(new Set(entries.map((entry) => entry.index)).size === entries.length, "entries");
  const until = timeOf(decision.valid_until);
  const passing = entries.filter((entry) => !entry.abort).map((entry) => endOf(entry, until));
  const deciding = withoutWarnings(codes, decision.reasons);
  return { abort: decision.abort, codes: deciding, passing, until, document: decision };
}

/**
 * The codes that are not warnings. The first always remains: if the gate denies a warning, its code is the first one.
 *
 * @param {string[]} codes
 * @param {unknown} reasons
 */
function withoutWarnings(codes, reasons) {
  const listed = Array.isArray(reasons) ? reasons : [];
  const warnings = listed.filter((reason) => reason?.effect === "warn").map((reason) => reason.code);
  return codes.filter((code, at) => at === 0 || !warnings.includes(code));
}

/**
 * An allowed entry, with its own deadline or else that of the decision.
 *
 * @param {{ index: number, valid_until?: unknown }} entry
 * @param {number | undefined} shared
 */
function endOf({ index, valid_until: own }, shared) {
  const until = own === undefined ? shared : timeOf(own);
  if (until === undefined) throw new Error("valid_until");
  return { index, until };
}

/** @param {unknown} text */
function timeOf(text) {
  if (text === null) return undefined;
  must(typeof text === "string" && TIME.test(text), "valid_until");
  const time = Date.parse(/** @type {string} */ (text));
  must(Number.isFinite(time), "valid_until");
  return time;
}

/**
 * Returns the decision from a currently valid JWS that the signer issued for this question.
 *
 * @param {string} text
 * @param {import("./guard.js").Signer} signer
 * @param {string} asked the digest of the request body
 * @param {number} now in seconds since 1970
 */
export function openJws(text, { issuer, jwks }, asked, now) {
  const parts = text.split(".");
  must(parts.length === 3, "form");
  const header = JSON.parse(decoded(parts[0]).toString("utf8"));
  must(header.alg === "EdDSA" && header.typ === TYPE, "header");
  must(Object.keys(header).sort().join() === "alg,kid,typ", "header");
  const jwk = jwks.keys.find((key) => key.kid === header.kid && key.kty === "OKP" && key.crv === "Ed25519");
  if (!jwk) throw new Error("key");
  const key = createPublicKey({ key: { kty: jwk.kty, crv: jwk.crv, x: jwk.x }, format: "jwk" });
  must(verify(null, Buffer.from(`${parts[0]}.${parts[1]}`, "ascii"), key, decoded(parts[2])), "signature");

  const { iss, iat, exp, request, decision } = JSON.parse(decoded(parts[1]).toString("utf8"));
  must(iss === issuer, "issuer");
  // Otherwise a decision about other terms would be accepted.
  must(request === asked, "question");
  must(Number.isInteger(iat) && Number.isInteger(exp), "time");
  must(iat < exp && exp - iat <= MAX_LIFETIME, "time");
  must(now < exp + SKEW && iat <= now + SKEW, "time");
  return decision;
}

/** @param {string} part */
function decoded(part) {
  const bytes = Buffer.from(part, "base64url");
  must(bytes.toString("base64url") === part, "form");
  return bytes;
}

/**
 * @param {boolean} holds
 * @param {string} what
 */
function must(holds, what) {
  if (!holds) throw new Error(what);
}
