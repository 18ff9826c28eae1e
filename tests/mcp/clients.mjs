// The published MCP clients, each over standard input and output and over HTTP: they list and call every tool of
// clresolve in the sandbox, and check the answers against the schemas that they were told.
//
// Usage: node clients.mjs CLRESOLVE PYTHON. Exit 1: an answer was not what calls.mjs says.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { Client as ClientOfToday, StreamableHTTPClientTransport as HttpOfToday } from "@modelcontextprotocol/client";
import { StdioClientTransport as StdioOfToday } from "@modelcontextprotocol/client/stdio";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { calls, RESOURCES } from "./calls.mjs";

const HERE = dirname(fileURLToPath(import.meta.url));
const LEGACY = "2025-11-25";
const MODERN = "2026-07-28";
// A debug build on a busy machine takes a few seconds for all of a client's calls.
const LIMIT_MS = 60_000;

const [clresolve, python] = process.argv.slice(2);
const CALLS = calls(clresolve);
const INFO = { name: "clresolve-tests", version: "1" };

// Starts a program that runs until it is told to end, and gives it with its first line that matches.
function started(args, stream, pattern) {
  const child = spawn(clresolve, args, { stdio: ["ignore", "pipe", "pipe"] });
  child.stdout.resume();
  child.stderr.resume();
  return new Promise((done, failed) => {
    child.on("exit", (code) => failed(new Error(`clresolve ${args[0]} ended with ${code}`)));
    createInterface({ input: child[stream] }).on("line", (line) => {
      const found = pattern.exec(line);
      if (found) done({ child, found });
    });
  });
}

// The sandbox with a daemon over it that answers agents.
async function daemon(folder) {
  const config = join(folder, "sandbox.toml");
  const sandbox = await started(["sandbox", "--write-config", config], "stdout", /Ask it/);
  const text = readFileSync(config, "utf8");
  assert.match(text, /\[mcp\]\nhosts = \[\]/);
  writeFileSync(config, text.replace("[mcp]\nhosts = []", '[mcp]\nhosts = ["127.0.0.1"]'));
  const serve = await started(["serve", "--config", config, "--listen", "127.0.0.1:0"], "stderr", /listening on (http:\S+)/);
  return { config, url: `${serve.found[1]}/mcp`, stop: () => [serve, sandbox].forEach(({ child }) => child.kill()) };
}

// What one client of an SDK sees.
async function seen(client, transport) {
  await client.connect(transport);
  try {
    const { tools } = await client.listTools();
    const answers = [];
    for (const { tool, arguments: given } of CALLS) answers.push(await client.callTool({ name: tool, arguments: given }));
    const { resources } = await client.listResources();
    const read = [];
    for (const { uri } of resources) read.push((await client.readResource({ uri })).contents[0].text);
    const version = client.getNegotiatedProtocolVersion?.();
    return { tools, answers, resources: resources.map(({ uri }) => uri), read, version };
  } finally {
    await client.close();
  }
}

async function sdk(stdio, url) {
  const transport = stdio ? new StdioClientTransport(stdio) : new StreamableHTTPClientTransport(new URL(url));
  return seen(new Client(INFO), transport);
}

async function today(mode, version, stdio, url) {
  const client = new ClientOfToday(INFO, { versionNegotiation: { mode } });
  const transport = stdio ? new StdioOfToday(stdio) : new HttpOfToday(new URL(url));
  const all = await seen(client, transport);
  assert.equal(all.version, version);
  return all;
}

const run = promisify(execFile);
const LIMITS = { timeout: LIMIT_MS, maxBuffer: 64 * 1024 * 1024 };

async function pypi(mode, version, stdio, url) {
  const target = stdio ? [stdio.command, ...stdio.args] : [url];
  const input = JSON.stringify(CALLS.map(({ tool, arguments: given }) => [tool, given]));
  const { stdout } = await run(python, [join(HERE, "client.py"), mode, version, input, ...target], LIMITS);
  return JSON.parse(stdout);
}

// The inspector is a program: one run for each question. It stores nothing outside of `folder`.
async function inspector(folder, stdio, url) {
  const program = createRequire(import.meta.url).resolve("@modelcontextprotocol/inspector/package.json");
  const launcher = join(dirname(program), "clients/launcher/build/index.js");
  const config = join(folder, stdio ? "stdio.json" : "http.json");
  const server = stdio ?? { type: "streamable-http", url };
  writeFileSync(config, JSON.stringify({ mcpServers: { clresolve: server } }));
  const env = { ...process.env, HOME: folder, MCP_INSPECTOR_SECRET_STORE: "memory" };
  const ask = async (...question) => {
    const asked = [launcher, "--cli", "--config", config, "--server", "clresolve", "--method", ...question];
    // Its code is 1 where a tool answers with an error.
    const { stdout, stderr } = await run(process.execPath, asked, { ...LIMITS, env }).catch((error) => error);
    assert.notEqual(stdout, "", stderr);
    return JSON.parse(stdout);
  };
  // It reads a value as JSON where it can, so a text that is JSON goes as a JSON string.
  const pairs = (given) => Object.entries(given).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  const { tools } = await ask("tools/list");
  const { resources } = await ask("resources/list");
  const answers = [];
  for (const { tool, arguments: given } of CALLS) {
    answers.push(await ask("tools/call", "--tool-name", tool, "--tool-arg", ...pairs(given)));
  }
  return { tools, answers, resources: resources.map(({ uri }) => uri), read: [] };
}

// Whether a client saw what it should.
function check({ tools, answers, resources, read }) {
  const names = [...new Set(CALLS.map(({ tool }) => tool))].sort();
  assert.deepEqual(tools.map(({ name }) => name).sort(), names);
  for (const { name, annotations, outputSchema } of tools) {
    assert.equal(annotations.readOnlyHint, true, name);
    assert.equal(outputSchema.type, "object", name);
  }
  CALLS.forEach(({ tool, at, is, fails }, index) => {
    const { structuredContent, content, isError } = answers[index];
    assert.deepEqual(at.reduce((value, key) => value?.[key], structuredContent), is, `${tool}: ${JSON.stringify(answers[index]).slice(0, 500)}`);
    assert.equal(isError === true, fails === true, tool);
    assert.equal(content.length, 1, tool);
  });
  assert.deepEqual(resources.sort(), RESOURCES);
  read.forEach((text) => JSON.parse(text));
}

const folder = mkdtempSync(join(tmpdir(), "clresolve-mcp-"));
const { config, url, stop } = await daemon(folder);
// A sandbox of its own takes seconds to start, so all but one share that of the daemon.
const OWN_SANDBOX = { command: clresolve, args: ["mcp", "--sandbox"] };
const STDIO = { command: clresolve, args: ["mcp", "--config", config] };
const clients = {
  "@modelcontextprotocol/sdk 1.32.2": (stdio, to) => sdk(stdio && OWN_SANDBOX, to),
  [`@modelcontextprotocol/client 2.4.0 at ${LEGACY}`]: (...to) => today("legacy", LEGACY, ...to),
  [`@modelcontextprotocol/client 2.4.0 at ${MODERN}`]: (...to) => today({ pin: MODERN }, MODERN, ...to),
  [`mcp 2.3.0 at ${LEGACY}`]: (...to) => pypi("legacy", LEGACY, ...to),
  [`mcp 2.3.0 at ${MODERN}`]: (...to) => pypi(MODERN, MODERN, ...to),
  "@modelcontextprotocol/inspector 2.12.0": (...to) => inspector(folder, ...to),
};
try {
  for (const [name, client] of Object.entries(clients)) {
    const began = Date.now();
    const [overStdio, overHttp] = await Promise.all([client(STDIO), client(undefined, url)]);
    check(overStdio);
    check(overHttp);
    console.log(`${name}: every tool over stdio and HTTP, ${((Date.now() - began) / 1000).toFixed(1)} s`);
  }
} finally {
  stop();
  rmSync(folder, { recursive: true, force: true });
}
