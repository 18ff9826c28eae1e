// @ts-check
/** Why a request or a payment was not sent. */

/** @type {Record<import("./guard.js").GuardErrorCode, string>} */
const MESSAGES = {
  denied: "clresolve denies this agent or its terms",
  unavailable: "no usable answer from clresolve",
  redirected: "the seller redirects to another URL",
  unreadable: "the seller's 402 is larger than 64 KiB, takes longer than 10 s, is truncated, or cannot be decoded",
  "no-decision": "no decision allows a payment to this URL: none was made, it has expired, or it was used",
  "two-payments": "the request contains more than one payment",
  "payment-denied": "the signed payment differs from what was allowed",
  "other-protocol": "the request contains a payment of another protocol than x402",
};

/** The form of the daemon's codes. Messages contain no other part of a response. */
const CODE = /^[a-z0-9]+(-[a-z0-9]+)*$/;
const MAX_CODE_LENGTH = 64;

/** The guard refused, and nothing was paid. */
export class GuardError extends Error {
  /**
   * @param {import("./guard.js").GuardErrorCode} code
   * @param {unknown[]} codes the reason codes of the decision
   * @param {unknown} cause the local error that caused it, if any; the message does not contain its text
   * @param {string} detail continues the message: the daemon's URL, and what happened
   */
  constructor(code, codes = [], cause = undefined, detail = "") {
    const shown = /** @type {string[]} */ (codes.filter(isCode));
    const reasons = shown.length > 0 ? ` (${shown.join(", ")})` : "";
    super(`not paying: ${MESSAGES[code]}${detail}${reasons}`, cause ? { cause } : {});
    this.name = "GuardError";
    this.code = code;
    this.codes = shown;
  }
}

/** @param {unknown} one */
function isCode(one) {
  return typeof one === "string" && one.length <= MAX_CODE_LENGTH && CODE.test(one);
}
