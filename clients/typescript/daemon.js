// @ts-check
/**
 * Sends requests to the clresolve daemon and parses its responses.
 *
 * It uses connections of its own, ignores proxies from the environment, follows no redirects, and limits the time of
 * each request as a whole. Unless a response is complete and valid, the guard refuses.
 */

import { createHash } from "node:crypto";
import http from "node:http";
import https from "node:https";
import { setTimeout as pause } from "node:timers/promises";
import { rootCertificates } from "node:tls";

import { openJws, readDecision } from "./decision.js";
import { GuardError } from "./error.js";

/** Default timeout of a response, in milliseconds. */
const TIMEOUT = 5_000;

/** Maximum size of a response, in bytes. A decision on 32 entries has about 10 KiB. */
const MAX_ANSWER_BYTES = 256 * 1024;

/** The gate's code when a resolution exceeds the gate's deadline. The resolution continues, and a retry may succeed. */
const TOO_SLOW = "deadline-passed";

/** Pause before such a retry, in milliseconds. */
const AGAIN_AFTER = 100;

/**
 * @typedef {{ status: number, url: string, headers: [string, string][], body_base64: string }} Reply A seller's 402
 *   response.
 * @typedef {{ index: number, until: number }} Entry The index of an entry that may be paid, and the time until which it
 *   may be paid, in milliseconds since 1970.
 * @typedef {{ reply: Reply, entries: Entry[] }} Decision A 402 response and its allowed entries.
 */

export class Daemon {
  #address;
  #gate;
  #question;
  #timeout;
  #signer;

  /** @param {import("./guard.js").GuardOptions} options */
  constructor({ daemon, agent, verb, limits, timeout = TIMEOUT, ca, signer }) {
    if (!agent || !verb) throw new TypeError("agent and verb must not be empty");
    if (!(timeout > 0)) throw new TypeError("timeout must be a positive number of milliseconds");
    this.#address = addressOf(new URL(daemon), ca, signer !== undefined);
    this.#gate = `/v1/gate/${encodeURIComponent(agent)}/${encodeURIComponent(verb)}`;
    this.#question = { name: agent, verb, limits };
    this.#timeout = timeout;
    this.#signer = signer;
  }

  /**
   * Returns if the gate allows the call, and throws otherwise.
   *
   * @param {AbortSignal} caller
   */
  async gate(caller) {
    await this.#inTime(caller, async (signal) => {
      for (;;) {
        const { status, headers } = await this.#exchange("GET", this.#gate, {}, undefined, signal);
        if (status === 200) return;
        const code = headers["clresolve-code"];
        if (status !== 403) throw new GuardError("unavailable");
        if (code !== TOO_SLOW) throw new GuardError("denied", [code]);
        await pause(AGAIN_AFTER, undefined, { signal });
      }
    });
  }

  /**
   * The decision about a 402 response that allows at least one of its entries.
   *
   * @param {Reply} reply
   * @param {AbortSignal} caller
   * @returns {Promise<Decision>}
   */
  async decide(reply, caller) {
    const { abort, passing, codes, until } = await this.#ask("/v1/decisions", { response: reply }, caller);
    if (!abort) future(until);
    if (passing.length === 0) throw new GuardError("denied", codes);
    passing.forEach((entry) => future(entry.until));
    return { reply, entries: passing };
  }

  /**
   * Whether a signed payment is what was allowed for this entry, and the decision about it.
   *
   * @param {Reply} reply
   * @param {string} header the value of the payment header
   * @param {number} entry
   * @param {AbortSignal} caller
   */
  async signed(reply, header, entry, caller) {
    const question = { response: reply, selected: entry, header };
    const { abort, passing, codes, until, document } = await this.#ask("/v1/decisions/signed", question, caller);
    if (abort) return { allowed: false, codes, document };
    future(until);
    // The decision must be about this entry only.
    if (passing.length !== 1 || passing[0].index !== entry) throw new GuardError("unavailable");
    return { allowed: true, codes, document };
  }

  /**
   * @param {string} path
   * @param {object} question
   * @param {AbortSignal} caller
   */
  async #ask(path, question, caller) {
    const body = JSON.stringify({ ...this.#question, ...question });
    const accept = this.#signer ? "application/jose" : "application/json";
    const headers = { "content-type": "application/json", accept };
    return await this.#inTime(caller, async (signal) => {
      const answer = await this.#exchange("POST", path, headers, body, signal);
      if (answer.status !== 200) throw new GuardError("unavailable");
      return readDecision(this.#opened(answer.text, body), this.#question);
    });
  }

  /**
   * The decision in a response. With `signer`, its signature is verified.
   *
   * @param {string} text
   * @param {string} asked
   */
  #opened(text, asked) {
    if (!this.#signer) return JSON.parse(text);
    const digest = `sha256:${createHash("sha256").update(asked).digest("hex")}`;
    return openJws(text, this.#signer, digest, Math.floor(Date.now() / 1000));
  }

  /**
   * The result of `ask`, bounded by the timeout and by the caller's signal. Any other error becomes a refusal.
   *
   * @template T
   * @param {AbortSignal} caller
   * @param {(signal: AbortSignal) => Promise<T>} ask
   * @returns {Promise<T>}
   */
  async #inTime(caller, ask) {
    // A timer of our own: Node may collect AbortSignal.timeout() within AbortSignal.any() before it fires.
    const limit = new AbortController();
    const stop = () => limit.abort();
    const timer = setTimeout(stop, this.#timeout);
    caller.addEventListener("abort", stop);
    try {
      caller.throwIfAborted();
      return await ask(limit.signal);
    } catch (error) {
      caller.throwIfAborted();
      throw error instanceof GuardError ? error : new GuardError("unavailable");
    } finally {
      clearTimeout(timer);
      caller.removeEventListener("abort", stop);
    }
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {http.OutgoingHttpHeaders} headers
   * @param {string | undefined} body
   * @param {AbortSignal} signal
   * @returns {Promise<{ status: number | undefined, headers: http.IncomingHttpHeaders, text: string }>}
   */
  #exchange(method, path, headers, body, signal) {
    const { client, prefix, ...address } = this.#address;
    return new Promise((resolve, reject) => {
      const request = client.request({ ...address, method, path: prefix + path, headers, signal });
      request.on("response", (response) => resolve(whole(response)));
      request.on("error", reject);
      request.end(body);
    });
  }
}

/**
 * Checks that a deadline lies in the future.
 *
 * @param {number | undefined} until
 */
function future(until) {
  if (until === undefined || until <= Date.now()) throw new GuardError("unavailable");
  return until;
}

/** @param {http.IncomingMessage} response */
async function whole(response) {
  const chunks = [];
  let bytes = 0;
  for await (const chunk of response) {
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) throw new Error("too long");
    chunks.push(chunk);
  }
  const text = new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks));
  return { status: response.statusCode, headers: response.headers, text };
}

/**
 * The daemon's address. A remote daemon needs https or signed decisions, because the network can alter other responses.
 *
 * @param {URL} url
 * @param {string | undefined} ca
 * @param {boolean} isSigned
 */
function addressOf(url, ca, isSigned) {
  if (url.username || url.password || url.search || url.hash) {
    throw new TypeError("daemon: the URL may have only an origin and a path");
  }
  if (url.protocol === "unix:" && url.host === "" && url.pathname.startsWith("/")) {
    const agent = new http.Agent();
    return { client: http, agent, socketPath: decodeURIComponent(url.pathname), prefix: "" };
  }
  const to = { host: url.hostname.replace(/^\[|\]$/g, ""), port: url.port, prefix: url.pathname.replace(/\/$/, "") };
  const roots = ca && [...rootCertificates, ca];
  if (url.protocol === "https:") return { client: https, agent: new https.Agent({ ca: roots }), ...to };
  if (url.protocol !== "http:") throw new TypeError("daemon: not an http, https or unix URL");
  if (!isLoopback(url.hostname) && !isSigned) {
    throw new TypeError("daemon: not on this machine, so use https, or pass the signer of its decisions");
  }
  return { client: http, agent: new http.Agent(), ...to };
}

/**
 * Whether a host is this machine. It comes from a parsed URL, where each address has a single spelling.
 *
 * @param {string} host
 */
function isLoopback(host) {
  return host === "localhost" || host === "[::1]" || /^127(\.\d{1,3}){3}$/.test(host);
}
