// Validates cards by their schemas with Ajv, in strict mode, collecting all errors. Each line of standard input starts
// a round, whose output line contains the number of valid cards and the nanoseconds for parsing and validating.
//
// node ajv.mjs CARDS: a file with a JSON object a line, {"schema": path, "card": text}

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import Ajv from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

const ajv = new Ajv({ strict: true, allErrors: true, strictTypes: false });
addFormats(ajv);
const validators = new Map();
const cards = readFileSync(process.argv[2], "utf8")
  .split("\n")
  .filter((line) => line !== "")
  .map((line) => JSON.parse(line))
  .map(({ schema, card }) => {
    if (!validators.has(schema)) validators.set(schema, ajv.compile(JSON.parse(readFileSync(schema, "utf8"))));
    return { validate: validators.get(schema), card };
  });

for await (const _ of createInterface({ input: process.stdin })) {
  const started = process.hrtime.bigint();
  let valid = 0;
  for (const { validate, card } of cards) if (validate(JSON.parse(card))) valid += 1;
  console.log(`${valid} ${process.hrtime.bigint() - started}`);
}
