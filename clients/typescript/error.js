// @ts-check
/** Why a request, or a payment, did not leave. */

/** @type {Record<import("./guard.js").GuardErrorCode, string>} */
const MESSAGES = {
  denied: "clresolve denies it",
  unavailable: "clresolve gave no answer that can be relied on",
  redirected: "another URL answers, or the seller sends us to one",
  unreadable: "the seller's 402 is longer than 64 KiB or 10 s, breaks off, or cannot be decoded",
  "no-decision": "a payment without a decision for this URL: none was made, it is over, or it was used",
  "two-payments": "more than one payment in one request",
  "payment-denied": "what is signed is not what was allowed",
  "other-protocol": "a payment by another protocol than x402",
};

/** A code as the daemon writes it. Nothing else of an answer is put into a message. */
const CODE = /^[a-z0-9]+(-[a-z0-9]+)*$/;
const MAX_CODE_LENGTH = 64;

/** Why the guard refused. Nothing was paid. */
export class GuardError extends Error {
  /**
   * @param {import("./guard.js").GuardErrorCode} code
   * @param {unknown[]} codes what the daemon gave as reasons
   * @param {unknown} cause the local error behind it; its text is in no message
   */
  constructor(code, codes = [], cause = undefined) {
    const known = codes.filter((one) => typeof one === "string" && one.length <= MAX_CODE_LENGTH && CODE.test(one));
    super(`do not pay: ${MESSAGES[code]}${known.length > 0 ? ` (${known.join(", ")})` : ""}`, cause ? { cause } : {});
    this.name = "GuardError";
    this.code = code;
    this.codes = /** @type {string[]} */ (known);
  }
}
