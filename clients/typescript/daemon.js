// @ts-check
/**
 * The daemon as the guard sees it: three questions, and answers that are believed only where they are whole.
 *
 * The guard has connections of its own to the daemon: no proxy of the environment, no redirect, a time limit for the
 * whole answer. Every other end than an answer is a refusal.
 */

import { createHash } from "node:crypto";
import http from "node:http";
import https from "node:https";
import { setTimeout as pause } from "node:timers/promises";
import { rootCertificates } from "node:tls";

import { openJws, readDecision } from "./decision.js";
import { GuardError } from "./error.js";

/** How long an answer may take, in milliseconds, unless the options say otherwise. */
const TIMEOUT = 5_000;

/** Longest answer, in bytes. A decision on 32 entries has some 10 KiB. */
const MAX_ANSWER_BYTES = 256 * 1024;

/** The gate says this when it needs longer than its own deadline. The run goes on, and a later question is answered. */
const TOO_SLOW = "deadline-passed";

/** Milliseconds between two such questions. */
const AGAIN_AFTER = 100;

/**
 * @typedef {{ status: number, url: string, headers: [string, string][], body_base64: string }} Reply What a seller
 *   sent.
 * @typedef {{ index: number, until: number }} Entry The place of an entry that may be paid, and until when, in
 *   milliseconds since 1970.
 * @typedef {{ reply: Reply, entries: Entry[] }} Decision The entries of a reply that may be paid.
 */

export class Daemon {
  #address;
  #gate;
  #question;
  #timeout;
  #signer;

  /** @param {import("./guard.js").GuardOptions} options */
  constructor({ daemon, agent, verb, limits, timeout = TIMEOUT, ca, signer }) {
    if (!agent || !verb) throw new TypeError("agent and verb must be named");
    if (!(timeout > 0)) throw new TypeError("timeout is a number of milliseconds above 0");
    this.#address = addressOf(new URL(daemon), ca, signer !== undefined);
    this.#gate = `/v1/gate/${encodeURIComponent(agent)}/${encodeURIComponent(verb)}`;
    this.#question = { name: agent, verb, limits };
    this.#timeout = timeout;
    this.#signer = signer;
  }

  /**
   * Returns where the gate allows the agent.
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
   * The decision about a 402, where at least one of its entries passes.
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
   * Whether what is signed is what was allowed for this entry, and the decision that says so.
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
    // An allowance for another entry does not count for this one.
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
   * The decision in an answer, of which the signature is checked where there are keys.
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
   * What `ask` gives before the time limit, and before the caller gives up. Whatever else it ends with is a refusal.
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
 * The end of what is allowed, which must be to come.
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
 * How the daemon is reached. Over a network nobody may change its answers unseen: https, or signed decisions.
 *
 * @param {URL} url
 * @param {string | undefined} ca
 * @param {boolean} isSigned
 */
function addressOf(url, ca, isSigned) {
  if (url.username || url.password || url.search || url.hash) throw new TypeError("daemon: origin and path alone");
  if (url.protocol === "unix:" && url.host === "" && url.pathname.startsWith("/")) {
    const agent = new http.Agent();
    return { client: http, agent, socketPath: decodeURIComponent(url.pathname), prefix: "" };
  }
  const to = { host: url.hostname.replace(/^\[|\]$/g, ""), port: url.port, prefix: url.pathname.replace(/\/$/, "") };
  const roots = ca && [...rootCertificates, ca];
  if (url.protocol === "https:") return { client: https, agent: new https.Agent({ ca: roots }), ...to };
  if (url.protocol !== "http:") throw new TypeError("daemon: an http, https or unix URL");
  if (!isLoopback(url.hostname) && !isSigned) {
    throw new TypeError("daemon: not on this machine, so it takes https, or the signer of its decisions");
  }
  return { client: http, agent: new http.Agent(), ...to };
}

/**
 * Whether a host of a parsed URL, which has one spelling for each address, is this machine.
 *
 * @param {string} host
 */
function isLoopback(host) {
  return host === "localhost" || host === "[::1]" || /^127(\.\d{1,3}){3}$/.test(host);
}
