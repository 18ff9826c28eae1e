// @ts-check
/**
 * A guard below an x402 payment wrapper: `wrapFetchWithPayment(guardFetch(fetch, {…}), client)`.
 *
 * The guard sees every request, every response and the signed payment exactly as they are sent and received. It asks
 * the clresolve daemon about each of them, and sends no payment that the daemon did not allow. It does not parse
 * payment terms itself: it forwards the seller's response to the daemon unchanged, except for the payment challenges
 * of other protocols. `README.md` lists the rules.
 */

import { bodyCarriesCredential, carriesCredentials, removeChallenges, removeTerms } from "./challenges.js";
import { Daemon } from "./daemon.js";
import { GuardError } from "./error.js";
import { checkNames } from "./options.js";

export { GuardError };

/** Maximum size of a 402 body, in bytes. The daemon refuses a larger one. */
const MAX_REPLY_BYTES = 64 * 1024;

/** Maximum time for reading the body of a 402, in milliseconds. */
const MAX_READ_MS = 10_000;

/** Maximum number of pending decisions, of at most about 100 KiB each. Beyond it, the oldest are dropped. */
const MAX_WAITING = 256;

/** Maximum number of requests to the daemon per payment header. A 402 has at most 32 entries, usually one or two. */
const MAX_QUESTIONS = 32;

/** The headers that carry a payment, in x402 versions 2 and 1. */
const PAYMENT_HEADERS = ["payment-signature", "x-payment"];

/** The response headers that describe the settlement, in x402 versions 2 and 1. */
const SETTLEMENT_HEADERS = ["payment-response", "x-payment-response"];

/** The statuses of redirects that clients follow, and the headers that contain the target. */
const REDIRECTS = [301, 302, 303, 307, 308];
const ELSEWHERE = ["location", "refresh"];

/**
 * A `fetch` that asks the daemon before it sends a request, and sends a payment only for terms that the daemon allowed.
 *
 * @param {typeof globalThis.fetch} fetch sends allowed requests; it must honour `redirect: "manual"`
 * @param {import("./guard.js").GuardOptions} options
 * @returns {typeof globalThis.fetch}
 */
export function guardFetch(fetch, options) {
  const guard = new Guard(fetch, options);
  return async (input, init) => {
    const request = new Request(input, { ...init, redirect: "manual" });
    // Streamed bodies are not read in advance.
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
    checkNames(options);
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
   * A request without a payment: asks the gate first, if there is one, and submits the terms of a 402 response.
   *
   * @param {Request} request
   */
  async #browse(request) {
    await this.#daemon.gate(request.signal);
    const answer = await this.#fetch(request);
    const url = urlOf(request);
    const asked = answer.url === "" ? undefined : url;
    if (isElsewhere(answer, url)) {
      await answer.body?.cancel();
      throw new GuardError("redirected");
    }
    const response = cleaned(answer);
    if (response.status !== 402) return response;
    const body = await bodyOf(response, request.signal);
    const reply = { status: 402, url, headers: [...response.headers], body_base64: body.toString("base64") };
    this.#waiting.add(url, await this.#daemon.decide(reply, asked, request.signal));
    const { status, statusText, headers } = response;
    return new Response(new Uint8Array(body), { status, statusText, headers });
  }

  /**
   * A request with a payment: needs a pending decision, which it uses up.
   *
   * @param {Request} request
   * @param {string} payment
   */
  async #pay(request, payment) {
    const questions = this.#waiting.for(urlOf(request));
    let refusal = new GuardError("no-decision");
    for (const { decision, entry } of questions.slice(0, MAX_QUESTIONS)) {
      const answer = await this.#daemon.signed(decision.demand, payment, entry.index, request.signal);
      const { allowed, codes, document } = answer;
      if (!allowed) refusal = new GuardError("payment-denied", codes);
      // Nothing else runs between these two conditions, so only one of two payments gets the decision.
      else if (this.#waiting.take(decision, entry)) return cleaned(await this.#leave(request, document, payment), true);
    }
    throw refusal;
  }

  /**
   * Sends a payment and passes its documents to `onPaid`, even if no response arrives: the seller may have received the
   * payment anyway.
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
   * Calls `onPaid` without waiting for it. Its failure must not lose a paid response, and an unhandled rejection would
   * end the program.
   *
   * @param {import("./guard.js").Paid} paid
   */
  async #hand(paid) {
    try {
      await this.#onPaid?.(paid);
    } catch {
      // An error of the program itself, which the guard cannot handle.
    }
  }
}

/**
 * The values of all payment headers.
 *
 * @param {Headers} headers
 */
function paymentsIn(headers) {
  // `Headers` joins the values of a repeated header with commas, which base64 does not contain.
  return PAYMENT_HEADERS.flatMap((name) => headers.get(name)?.split(",") ?? []);
}

/**
 * The URL without the fragment, which is not sent.
 *
 * @param {Request} request
 */
function urlOf(request) {
  const url = new URL(request.url);
  url.hash = "";
  return url.href;
}

/**
 * Whether the seller redirects to another URL, or another URL responded although redirects are disabled.
 *
 * @param {Response} response
 * @param {string} url
 */
function isElsewhere(response, url) {
  const isRedirect = REDIRECTS.includes(response.status) || response.type === "opaqueredirect";
  return isRedirect || response.redirected || (response.url !== "" && response.url !== url);
}

/**
 * A response without the payment challenges of other protocols, and without terms unless it is a 402. After a payment,
 * the target of a redirect is removed too, because a client that follows it would pay again. Returns the same object if
 * nothing changes.
 *
 * @param {Response} response
 * @param {boolean} isPaid
 */
function cleaned(response, isPaid = false) {
  const headers = new Headers(response.headers);
  const leads = isPaid && REDIRECTS.includes(response.status);
  if (leads) for (const name of ELSEWHERE) headers.delete(name);
  const demanded = removeChallenges(headers);
  const stated = response.status !== 402 && removeTerms(headers);
  if (!demanded && !stated && !leads) return response;
  const { body, status, statusText } = response;
  return new Response(body, { status, statusText, headers });
}

/**
 * The body of a 402. `fetch` decodes it piece by piece while it is read.
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
    // `fetch` would decode several codings, and joins the values of a repeated header.
    if (response.headers.get("content-encoding")?.includes(",")) throw new Error("more than one content coding");
    const chunks = [];
    let bytes = 0;
    for (let chunk = await reader?.read(); chunk?.value; chunk = await reader?.read()) {
      bytes += chunk.value.length;
      if (bytes > MAX_REPLY_BYTES) throw new Error("too long");
      chunks.push(chunk.value);
    }
    // A cancelled body looks like a complete one.
    limit.throwIfAborted();
    return Buffer.concat(chunks);
  } catch (cause) {
    // The rest is not needed, and cancelling a truncated body fails.
    cancel();
    caller.throwIfAborted();
    throw new GuardError("unreadable", [], cause);
  } finally {
    limit.removeEventListener("abort", cancel);
  }
}

/** Pending decisions. */
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
   * The pending decisions for a URL, the newest first, paired with each entry that may still be paid.
   *
   * @param {string} url
   */
  for(url) {
    const decisions = this.#list.filter((one) => one.url === url).map((one) => one.decision).reverse();
    return decisions.flatMap((decision) => decision.entries.filter(isInTime).map((entry) => ({ decision, entry })));
  }

  /**
   * Uses up a decision for an entry. `false` if it was already used or has expired.
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
