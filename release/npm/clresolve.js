#!/usr/bin/env node
// Starts the program from the package of this platform. Arguments, streams, signals and the exit status pass through.
"use strict";

const { spawn } = require("node:child_process");

const PLATFORM = `clresolve-${process.platform}-${process.arch}`;

// Exit status for a usage or configuration error, as the program itself has it.
const USAGE = 2;

// Signals for one process: they end the program or make it read its configuration again.
const FORWARDED = ["SIGTERM", "SIGHUP"];

// A terminal sends these to the whole process group: the program already has them.
const SHARED = ["SIGINT", "SIGQUIT"];

function fail(message) {
  console.error(`clresolve: ${message}`);
  process.exit(USAGE);
}

function program() {
  try {
    return require.resolve(`${PLATFORM}/bin/clresolve`);
  } catch {
    return fail(
      `the package ${PLATFORM} is not installed. If your platform has one, install without --omit=optional; ` +
        "otherwise build clresolve from source.",
    );
  }
}

const child = spawn(program(), process.argv.slice(2), { stdio: "inherit" });
for (const signal of FORWARDED) process.on(signal, () => child.kill(signal));
for (const signal of SHARED) process.on(signal, () => {});
child.on("error", (error) => fail(error.message));
child.on("exit", (status, signal) => {
  if (signal === null) process.exit(status);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
