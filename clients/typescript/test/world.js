// The world of ../../testing, for the tests of this package.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createInterface } from "node:readline";

import { GuardError, guardFetch } from "../guard.js";

/** The first development account of anvil and hardhat: everybody has its key. */
export const PAYER_KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";

/** Accepts a refusal with this code and exactly these codes of the daemon. */
export const refused = (code, ...codes) => (error) => {
  assert.ok(error instanceof GuardError, `${error}`);
  assert.deepEqual([error.code, ...error.codes], [code, ...codes]);
  return true;
};

export class World {
  #child;

  /** Starts the stand-in daemon and the sellers. */
  static async start() {
    const script = new URL("../../testing/world.mjs", import.meta.url).pathname;
    const child = spawn(process.execPath, [script], { stdio: ["pipe", "pipe", "inherit"] });
    const [line] = await once(createInterface({ input: child.stdout }), "line");
    return new World(child, JSON.parse(line));
  }

  constructor(child, addresses) {
    this.#child = child;
    Object.assign(this, addresses);
  }

  stop() {
    this.#child.stdin.end();
  }

  /** What a guard is made of; `fault` is one of the stand-in's, such as `signed.503`. */
  options(fault, more) {
    const daemon = fault ? `${this.daemon}/${fault}` : this.daemon;
    return { daemon, agent: this.name, verb: this.verb, timeout: 2000, ...more };
  }

  guard(fault, more) {
    return guardFetch(fetch, this.options(fault, more));
  }

  /** A payment header for the terms of the cases, as far as the stand-in reads one. Nobody signed it. */
  payment({ to = this.honest, value = "10000", seconds = 60, ...rest } = {}) {
    const validBefore = String(Math.floor(Date.now() / 1000) + seconds);
    const payload = { authorization: { to, value, validBefore }, signature: "0x" };
    return Buffer.from(JSON.stringify({ x402Version: 2, payload, ...rest })).toString("base64");
  }

  /** The options of a paid request. */
  paying(header = this.payment(), name = "PAYMENT-SIGNATURE") {
    return { headers: { [name]: header } };
  }

  /** A purchase of its own: its URL, and what arrived. */
  purchase(which) {
    const id = randomUUID();
    const read = async (url) => await (await fetch(`${url}?id=${id}`)).json();
    return {
      url: `${this.agent}/agent/${which}?id=${id}`,
      /** What reached the honest seller, and what the thief. */
      arrived: async () => {
        const [agent, thief] = [await read(`${this.agent}/~ledger`), await read(`${this.thief}/~ledger`)];
        const payments = [...agent.payments, ...thief.payments];
        return { requests: agent.requests + thief.requests, payments, paid: payments.map(({ to }) => to) };
      },
      /** The questions about it that the daemon was asked. */
      asked: async () => await read(`${this.daemon}/~asked`),
    };
  }
}
