// @ts-check
/**
 * A guard below an x402 payment wrapper: `wrapFetchWithPayment(guardFetch(fetch, {…}), client)`.
 *
 * Below the wrapper every request, every reply and the signed payment are seen as they go over the wire. The guard asks
 * clresolve about each of them and lets no payment out that was not allowed. It reads no payment terms itself: what the
 * seller sent goes to the daemon as it came, without the payment challenges of other protocols. `README.md` has the rules.
 */

import { bodyCarriesCredential, carriesCredentials, removeChallenges } from "./challenges.js";
import { Daemon } from "./daemon.js";
import { GuardError } from "./error.js";

export { GuardError };

/** Longest 402 reply, in bytes: the daemon refuses a longer one. */
const MAX_REPLY_BYTES = 64 * 1024;

/** Longest time in which the body of a 402 is read, in milliseconds. */
const MAX_READ_MS = 10_000;

/** Most decisions that wait for their payment, of some 100 KiB each at most. Beyond it the oldest are forgotten. */
const MAX_WAITING = 256;

/** Most questions about one payment header: a reply has at most 32 entries, and most have one or two. */
const MAX_QUESTIONS = 32;

/** The headers that carry a payment, in x402 versions 2 and 1. */
const PAYMENT_HEADERS = ["payment-signature", "x-payment"];

/** The headers of a reply that name the settlement, in versions 2 and 1. */
const SETTLEMENT_HEADERS = ["payment-response", "x-payment-response"];

/** The statuses that clients follow, and the headers that say where to. */
const REDIRECTS = [301, 302, 303, 307, 308];
const ELSEWHERE = ["location", "refresh"];

/**
 * A `fetch` that asks the daemon before a request leaves, and lets a payment out only for terms that it allowed.
 *
 * @param {typeof globalThis.fetch} fetch sends what may leave; it must honour `redirect: "manual"`
 * @param {import("./guard.js").GuardOptions} options whom to ask, and about whom
 * @returns {typeof globalThis.fetch}
 */
export function guardFetch(fetch, options) {
  const guard = new Guard(fetch, options);
  return async (input, init) => {
    const request = new Request(input, { ...init, redirect: "manual" });
    // A stream is not read ahead.
    const isStream = init?.body instanceof Object && Symbol.asyncIterator in init.body;
    if (request.body && !isStream && (await bodyCarriesCredential(request))) throw new GuardError("other-protocol");
    return await guard.send(request);
  };
}

class Guard {
  #fetch;
  #daemon;
  #onPaid;
  #waiting = new Waiting();

  /**
   * @param {typeof globalThis.fetch} fetch
   * @param {import("./guard.js").GuardOptions} options
   */
  constructor(fetch, options) {
    this.#fetch = fetch;
    this.#daemon = new Daemon(options);
    this.#onPaid = options.onPaid;
  }

  /** @param {Request} request */
  async send(request) {
    if (carriesCredentials(request.headers)) throw new GuardError("other-protocol");
    const payments = paymentsIn(request.headers);
    if (payments.length > 1) throw new GuardError("two-payments");
    return payments.length === 1 ? await this.#pay(request, payments[0]) : await this.#browse(request);
  }

  /**
   * A request without a payment: the gate first, and of a 402 the terms.
   *
   * @param {Request} request
   */
  async #browse(request) {
    await this.#daemon.gate(request.signal);
    const answer = await this.#fetch(request);
    const url = urlOf(request);
    if (isElsewhere(answer, url)) {
      await answer.body?.cancel();
      throw new GuardError("redirected");
    }
    const response = cleaned(answer);
    if (response.status !== 402) return response;
    const body = await bodyOf(response, request.signal);
    const reply = { status: 402, url, headers: [...response.headers], body_base64: body.toString("base64") };
    this.#waiting.add(url, await this.#daemon.decide(reply, request.signal));
    const { status, statusText, headers } = response;
    return new Response(new Uint8Array(body), { status, statusText, headers });
  }

  /**
   * A request with a payment: only for a decision that waits, and only once for it.
   *
   * @param {Request} request
   * @param {string} payment
   */
  async #pay(request, payment) {
    const questions = this.#waiting.for(urlOf(request));
    let refusal = new GuardError("no-decision");
    for (const { decision, entry } of questions.slice(0, MAX_QUESTIONS)) {
      const answer = await this.#daemon.signed(decision.reply, payment, entry.index, request.signal);
      const { allowed, codes, document } = answer;
      if (!allowed) refusal = new GuardError("payment-denied", codes);
      // Nothing else runs between these two conditions: of two payments one takes the decision.
      else if (this.#waiting.take(decision, entry)) return cleaned(await this.#leave(request, document, payment), true);
    }
    throw refusal;
  }

  /**
   * Sends a payment, and hands out what is to be kept of it: with the reply, or without one where none came, since the
   * seller may have the payment all the same.
   *
   * @param {Request} request
   * @param {object} decision
   * @param {string} payment
   */
  async #leave(request, decision, payment) {
    const paid = { url: urlOf(request), decision, payment };
    try {
      const response = await this.#fetch(request);
      const settlement = SETTLEMENT_HEADERS.map((name) => response.headers.get(name)).find((value) => value !== null);
      this.#hand({ ...paid, settlement });
      return response;
    } catch (error) {
      this.#hand({ ...paid, settlement: undefined });
      throw error;
    }
  }

  /**
   * Whatever the program does with it: a reply that was paid for is not lost. Nobody waits for a function that is not
   * done at once, and a rejection that nobody takes would end the program.
   *
   * @param {import("./guard.js").Paid} paid
   */
  async #hand(paid) {
    try {
      await this.#onPaid?.(paid);
    } catch {
      // It is the program's own error, and it has no place here.
    }
  }
}

/**
 * The values of all payment headers.
 *
 * @param {Headers} headers
 */
function paymentsIn(headers) {
  // The values of a header that is there twice are joined by a comma, which base64 does not have.
  return PAYMENT_HEADERS.flatMap((name) => headers.get(name)?.split(",") ?? []);
}

/**
 * The URL as it is asked, without the fragment, which is not sent.
 *
 * @param {Request} request
 */
function urlOf(request) {
  const url = new URL(request.url);
  url.hash = "";
  return url.href;
}

/**
 * Whether the seller sends us to another URL, or one answered although no redirect was to be followed.
 *
 * @param {Response} response
 * @param {string} url
 */
function isElsewhere(response, url) {
  const isRedirect = REDIRECTS.includes(response.status) || response.type === "opaqueredirect";
  return isRedirect || response.redirected || (response.url !== "" && response.url !== url);
}

/**
 * A reply without the payment challenges of other protocols. The redirect of a paid request leads nowhere, else a client
 * above the guard would buy again. A reply that needs no change is returned as it came.
 *
 * @param {Response} response
 * @param {boolean} isPaid
 */
function cleaned(response, isPaid = false) {
  const headers = new Headers(response.headers);
  const leads = isPaid && REDIRECTS.includes(response.status);
  if (leads) for (const name of ELSEWHERE) headers.delete(name);
  if (!removeChallenges(headers) && !leads) return response;
  const { body, status, statusText } = response;
  return new Response(body, { status, statusText, headers });
}

/**
 * The body of a 402. `fetch` undoes its content coding piece by piece, as the body is read.
 *
 * @param {Response} response
 * @param {AbortSignal} caller
 */
async function bodyOf(response, caller) {
  const reader = response.body?.getReader();
  const cancel = () => void reader?.cancel().catch(() => {});
  const limit = AbortSignal.timeout(MAX_READ_MS);
  limit.addEventListener("abort", cancel);
  try {
    // `fetch` would undo several codings, and joins the values of a header that comes twice.
    if (response.headers.get("content-encoding")?.includes(",")) throw new Error("more than one content coding");
    const chunks = [];
    let bytes = 0;
    for (let chunk = await reader?.read(); chunk?.value; chunk = await reader?.read()) {
      bytes += chunk.value.length;
      if (bytes > MAX_REPLY_BYTES) throw new Error("too long");
      chunks.push(chunk.value);
    }
    // A body that was cancelled reads as one that has ended.
    limit.throwIfAborted();
    return Buffer.concat(chunks);
  } catch (cause) {
    // Nobody waits for the rest, and a body that broke off cannot be cancelled.
    cancel();
    caller.throwIfAborted();
    throw new GuardError("unreadable", [], cause);
  } finally {
    limit.removeEventListener("abort", cancel);
  }
}

/** The decisions that wait for their payment. */
class Waiting {
  /** @type {{ url: string, decision: import("./daemon.js").Decision }[]} The newest last. */
  #list = [];

  /**
   * @param {string} url
   * @param {import("./daemon.js").Decision} decision
   */
  add(url, decision) {
    this.#list = this.#list.filter((one) => one.decision.entries.some(isInTime));
    this.#list.push({ url, decision });
    if (this.#list.length > MAX_WAITING) this.#list.shift();
  }

  /**
   * Those for a URL, the newest first, each with each of its entries that may still be paid.
   *
   * @param {string} url
   */
  for(url) {
    const decisions = this.#list.filter((one) => one.url === url).map((one) => one.decision).reverse();
    return decisions.flatMap((decision) => decision.entries.filter(isInTime).map((entry) => ({ decision, entry })));
  }

  /**
   * Takes a decision out for an entry, once. Whether it was still there, and the entry in time.
   *
   * @param {import("./daemon.js").Decision} decision
   * @param {import("./daemon.js").Entry} entry
   */
  take(decision, entry) {
    const at = this.#list.findIndex((one) => one.decision === decision);
    if (at < 0 || !isInTime(entry)) return false;
    this.#list.splice(at, 1);
    return true;
  }
}

/** @param {import("./daemon.js").Entry} entry */
function isInTime({ until }) {
  return Date.now() < until;
}
