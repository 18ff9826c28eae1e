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
import { ANY, checkWhom } from "./options.js";

/** Default timeout of a response, in milliseconds. */
const TIMEOUT = 5_000;

/** Maximum size of a response, in bytes. A decision on 32 entries has about 10 KiB. */
const MAX_ANSWER_BYTES = 256 * 1024;

/**
 * The codes that a retry may clear: the resolution exceeds the gate's deadline but continues, or the newest block has
 * not confirmed the verdict yet.
 *
 * @type {unknown[]}
 */
const TRANSIENT = ["deadline-passed", "unconfirmed"];

/** Pause before such a retry, in milliseconds. */
const AGAIN_AFTER = 100;

/**
 * What happened, by the code of a connection's error.
 *
 * @type {Record<string, string>}
 */
const CONNECTION_FAILURES = {
  ECONNREFUSED: "connection refused; is `clresolve serve` running?",
  ENOENT: "no such socket; is `clresolve serve` running?",
  EACCES: "permission denied",
};

/** The paths of the guard's questions and the schema of the answers: about one agent, and about any seller. */
const DECISIONS = { terms: "/v1/decisions", signed: "/v1/decisions/signed", schema: "clresolve.decision/1" };
const CHECKS = { terms: "/v1/checks", signed: "/v1/checks", schema: "clresolve.check/1" };

/** The protocols of a daemon's URL. */
const PROTOCOLS = ["http:", "https:", "unix:"];
const NOT_A_URL = "daemon: expected a URL such as http://127.0.0.1:8402";

/**
 * @typedef {{ status: number, url: string, headers: [string, string][], body_base64: string }} Reply A seller's 402
 *   response.
 * @typedef {{ index: number, until: number }} Entry The index of an entry that may be paid, and the time until which it
 *   may be paid, in milliseconds since 1970.
 * @typedef {{ response: Reply, url?: string }} Demand A 402 response, and the URL that was asked.
 * @typedef {{ demand: Demand, entries: Entry[] }} Decision A 402 response and its allowed entries.
 */

export class Daemon {
  #url;
  #address;
  #gate;
  #api;
  #question;
  #timeout;
  #signer;

  /** @param {import("./guard.js").GuardOptions} options */
  constructor({ daemon, agent, name, verb, limits, timeout = TIMEOUT, ca, signer }) {
    checkWhom({ agent, name, verb });
    if (!(timeout > 0)) throw new TypeError("timeout must be a positive number of milliseconds");
    const url = urlOf(daemon);
    this.#url = url.href.replace(/\/$/, "");
    this.#address = addressOf(url, ca, signer !== undefined);
    const isAny = agent === ANY;
    if (isAny && signer) throw new TypeError('signer: the daemon signs no answer for agent: "any"');
    // The gate knows agents alone.
    this.#gate = isAny ? undefined : `/v1/gate/${encodeURIComponent(agent)}/${encodeURIComponent(verb ?? "")}`;
    this.#api = isAny ? CHECKS : DECISIONS;
    this.#question = { name: isAny ? name : agent, verb, limits };
    this.#timeout = timeout;
    this.#signer = signer;
  }

  /**
   * Returns if the gate allows the call, and throws otherwise. For any seller there is no gate.
   *
   * @param {AbortSignal} caller
   */
  async gate(caller) {
    const gate = this.#gate;
    if (gate === undefined) return;
    await this.#inTime(caller, async (signal) => {
      for (;;) {
        const { status, headers } = await this.#exchange("GET", gate, {}, undefined, signal);
        if (status === 200) return;
        const code = headers["clresolve-code"];
        if (status !== 403) throw this.#failure(`status ${status}`);
        if (!TRANSIENT.includes(code)) throw new GuardError("denied", [code]);
        await pause(AGAIN_AFTER, undefined, { signal });
      }
    });
  }

  /**
   * The decision about a 402 response that allows at least one of its entries.
   *
   * @param {Reply} response
   * @param {string | undefined} asked the URL that was asked, if another one could have answered
   * @param {AbortSignal} caller
   * @returns {Promise<Decision>}
   */
  async decide(response, asked, caller) {
    // A decision uses the agent's route instead of the requested URL.
    const demand = this.#api === CHECKS ? { response, url: asked } : { response };
    const { passing, codes } = await this.#ask(this.#api.terms, demand, caller);
    if (passing.length === 0) throw new GuardError("denied", codes);
    return { demand, entries: passing };
  }

  /**
   * Whether a signed payment is what was allowed for this entry, and the decision about it.
   *
   * @param {Demand} demand
   * @param {string} header the value of the payment header
   * @param {number} entry
   * @param {AbortSignal} caller
   */
  async signed(demand, header, entry, caller) {
    const question = { ...demand, selected: entry, header };
    const { abort, passing, codes, document } = await this.#ask(this.#api.signed, question, caller);
    if (abort) return { allowed: false, codes, document };
    // The decision must be about this entry only.
    if (passing.length !== 1 || passing[0].index !== entry) throw this.#failure("invalid answer");
    return { allowed: true, codes, document };
  }

  /**
   * The daemon's decision. Whatever it allows has not expired.
   *
   * @param {string} path
   * @param {object} question
   * @param {AbortSignal} caller
   */
  async #ask(path, question, caller) {
    const body = JSON.stringify({ ...this.#question, ...question });
    const accept = this.#signer ? "application/jose" : "application/json";
    const headers = { "content-type": "application/json", accept };
    return await this.#inTime(caller, async (signal) => {
      for (;;) {
        const answer = await this.#exchange("POST", path, headers, body, signal);
        if (answer.status !== 200) throw this.#failure(`status ${answer.status}`);
        const decision = this.#read(answer.body, body);
        const isFinal = decision.passing.length > 0 || !decision.codes.some((code) => TRANSIENT.includes(code));
        if (isFinal) return this.#lasting(decision);
        await pause(AGAIN_AFTER, undefined, { signal });
      }
    });
  }

  /**
   * The decision in a response.
   *
   * @param {Buffer} body
   * @param {string} asked
   */
  #read(body, asked) {
    try {
      const text = new TextDecoder("utf-8", { fatal: true }).decode(body);
      return readDecision(this.#opened(text, asked), this.#api.schema, this.#question);
    } catch (error) {
      throw this.#failure("invalid answer", error);
    }
  }

  /**
   * Checks that the deadlines of a decision lie in the future.
   *
   * @param {ReturnType<typeof readDecision>} decision
   */
  #lasting(decision) {
    const ends = decision.passing.map((entry) => entry.until);
    if (!decision.abort) ends.push(decision.until ?? 0);
    if (ends.some((end) => end <= Date.now())) throw this.#failure("expired decision; check this machine's clock");
    return decision;
  }

  /**
   * The JSON of a response. With `signer`, its signature is verified.
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
   * The result of `ask`, bounded by the timeout and by the caller's signal.
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
    const late = () => limit.abort(new DOMException("The daemon did not answer in time", "TimeoutError"));
    const timer = setTimeout(late, this.#timeout);
    caller.addEventListener("abort", stop);
    try {
      caller.throwIfAborted();
      return await ask(limit.signal);
    } catch (error) {
      caller.throwIfAborted();
      throw limit.signal.aborted ? this.#failure("timeout", limit.signal.reason) : error;
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
   */
  async #exchange(method, path, headers, body, signal) {
    const { client, prefix, ...address } = this.#address;
    /** @type {Promise<Awaited<ReturnType<typeof whole>>>} */
    const exchanged = new Promise((resolve, reject) => {
      const request = client.request({ ...address, method, path: prefix + path, headers, signal });
      request.on("response", (response) => resolve(whole(response)));
      request.on("error", reject);
      request.end(body);
    });
    const answer = await exchanged.catch((error) => {
      throw this.#failure(CONNECTION_FAILURES[error.code] ?? "connection failed", error);
    });
    if (answer.body.length > MAX_ANSWER_BYTES) throw this.#failure("answer longer than 256 KiB");
    return answer;
  }

  /**
   * The refusal without a usable answer.
   *
   * @param {string} what what happened, in fixed words: the cause may quote the daemon's answer
   * @param {unknown} [cause]
   */
  #failure(what, cause) {
    return new GuardError("unavailable", [], cause, ` at ${this.#url}: ${what}`);
  }
}

/**
 * A response with its body, of which only the start is read if it is too long.
 *
 * @param {http.IncomingMessage} response
 */
async function whole(response) {
  const chunks = [];
  let bytes = 0;
  for await (const chunk of response) {
    bytes += chunk.length;
    chunks.push(chunk);
    if (bytes > MAX_ANSWER_BYTES) break;
  }
  return { status: response.statusCode, headers: response.headers, body: Buffer.concat(chunks) };
}

/** @param {string | URL} daemon */
function urlOf(daemon) {
  const url = URL.canParse(String(daemon)) ? new URL(daemon) : undefined;
  if (!url || !PROTOCOLS.includes(url.protocol)) throw new TypeError(NOT_A_URL);
  return url;
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
  if (url.protocol !== "http:") throw new TypeError(NOT_A_URL);
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
