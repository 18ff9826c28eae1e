// The world of the clients' tests: a stand-in for the daemon (over HTTP, HTTPS and a Unix socket) and two sellers.
//
// Prints one line of JSON with their addresses when all are ready, and ends when its standard input does.

import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { AGENT, ISSUER, VERB, daemon, jwks } from "./daemon.mjs";
import { ASSET, HONEST, KEPT, THIEF, startSeller } from "./sellers.mjs";

const beside = (file) => new URL(file, import.meta.url);
const folder = mkdtempSync(join(tmpdir(), "clresolve-world-"));
const socket = join(folder, "daemon.sock");
const origins = {};

// The thief is asked by another host name than the agent.
const agent = startSeller("agent", () => origins.thief);
const thief = startSeller("thief", () => origins.agent);
const answers = daemon(() => origins.agent);
const plain = http.createServer(answers);
const pem = readFileSync(beside("localhost.pem"));
const secure = https.createServer({ cert: pem, key: pem }, answers);
const local = http.createServer(answers);

async function listen(server, ...where) {
  server.listen(...where);
  await once(server, "listening");
  return server.address().port;
}

origins.agent = `http://127.0.0.1:${await listen(agent, 0, "127.0.0.1")}`;
origins.thief = `http://localhost:${await listen(thief, 0, "localhost")}`;
const world = {
  ...origins,
  daemon: `http://127.0.0.1:${await listen(plain, 0, "127.0.0.1")}`,
  secure: `https://127.0.0.1:${await listen(secure, 0, "127.0.0.1")}`,
  socket,
  ca: readFileSync(beside("ca.pem"), "utf8"),
  jwks,
  issuer: ISSUER,
  name: AGENT,
  verb: VERB,
  honest: HONEST,
  stranger: THIEF,
  asset: ASSET,
  kept: KEPT,
};
await listen(local, socket);
console.log(JSON.stringify(world));

process.stdin.resume();
process.stdin.on("end", () => {
  rmSync(folder, { recursive: true, force: true });
  process.exit(0);
});
