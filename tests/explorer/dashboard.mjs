// Draws the shipped dashboard from what a Prometheus has seen: dashboard.mjs PROMETHEUS BROWSER [--write]
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";

import { chromium } from "playwright-core";

const [prometheus, executablePath, write] = process.argv.slice(2);
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const dashboard = JSON.parse(readFileSync(here("../../deploy/grafana/dashboard.json"), "utf8"));
const pictures = write === "--write" ? here("../../docs/operations/") : `${tmpdir()}/`;

const QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];

/** How often Prometheus asks, in seconds. */
const SCRAPE = 1;

/** Points of a line. */
const POINTS = 300;

/** Queries without data in such a run, by panel and letter, and why. Each names metrics of the daemon, or
 * tests/cli/documents/operations.rs fails. */
const SILENT = {
  "Connections, B": "room is made by closing what waits, so none is refused",
  "Refreshes ahead, A": "a trusted verdict is refreshed after some four minutes: a longer run has it",
  "Lies since the start, B": "the sandbox's gateway is gone at times, and sends no wrong blocks",
  "Dropped since the start, B": "the queue of incidents and decisions fills after a minute: a longer run has it",
  "Dropped since the start, C": "the daemons have no file of hot names",
  "Dropped since the start, D": "the daemons have no collector of traces",
};

async function asked(path, parameters) {
  const response = await fetch(`${prometheus}/api/v1/${path}?${new URLSearchParams(parameters)}`);
  const answer = await response.json();
  if (answer.status !== "success") throw new Error(`${JSON.stringify(parameters)}: ${answer.error}`);
  return answer.data;
}

/** From when to when a daemon answered, in seconds. */
async function span() {
  const at = async (which) => {
    const query = `${which}(${which}_over_time(timestamp(up{job="clresolve"} == 1)[1d:1s]))`;
    return Math.round(Number((await asked("query", { query })).result[0].value[1]));
  };
  return [await at("min"), await at("max") - 1];
}

/** A query as Grafana sends it: with its own variables and those of the dashboard filled in. */
function filled(query, step) {
  const variables = { __rate_interval: `${Math.max(step + SCRAPE, 4 * SCRAPE)}s` };
  for (const { name, allValue } of dashboard.templating.list) variables[name] = allValue;
  return query.replace(/\$(\w+)/g, (_, name) => {
    if (variables[name] === undefined) throw new Error(`${query}: what is $${name}?`);
    return variables[name];
  });
}

/** What a line is called. */
function legend({ legendFormat }, labels) {
  return legendFormat.replace(/\{\{(\w+)\}\}/g, (_, label) => {
    if (labels[label] === undefined) throw new Error(`${legendFormat}: no label ${label} in ${JSON.stringify(labels)}`);
    return labels[label];
  });
}

/** The lines of a query: what each is called, and a value or null for each time. */
async function lines(target, times, step) {
  const range = { query: filled(target.expr, step), start: times[0], end: times.at(-1), step };
  const { result } = await asked("query_range", range);
  const found = result.map(({ metric, values }) => {
    const at = new Map(values.map(([time, value]) => [time, Number(value)]));
    return { name: legend(target, metric), values: times.map((time) => (Number.isFinite(at.get(time)) ? at.get(time) : null)) };
  });
  return found.filter(({ values }) => values.some((value) => value !== null));
}

/** The panels with their lines; and the queries that have none, by panel and letter. */
async function read(times, step) {
  const empty = [];
  const panels = [];
  for (const panel of dashboard.panels) {
    const drawn = [];
    for (const target of panel.targets ?? []) {
      const found = await lines(target, times, step);
      if (found.length === 0) empty.push(`${panel.title}, ${target.refId}`);
      drawn.push(...found);
    }
    panels.push({ ...panel, lines: drawn });
  }
  return { panels, empty };
}

/** Rules that Prometheus could not evaluate. */
async function brokenRules() {
  const { groups } = await asked("rules", {});
  const rules = groups.flatMap(({ rules }) => rules);
  if (rules.length === 0) throw new Error("Prometheus has no rules");
  return rules.filter(({ health }) => health === "err").map(({ name, lastError }) => `${name}: ${lastError}`);
}

async function draw(panels, times) {
  const browser = await chromium.launch({ executablePath, args: QUIET });
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  const uplot = (file) => createRequire(import.meta.url).resolve(`uplot/dist/${file}`);
  await page.setContent(`<!doctype html><title>${dashboard.title}</title><main></main>`);
  await page.addStyleTag({ path: uplot("uPlot.min.css") });
  await page.addStyleTag({ path: here("dashboard.css") });
  await page.addScriptTag({ path: uplot("uPlot.iife.min.js") });
  await page.addScriptTag({ path: here("dashboard-page.js") });
  const parts = await page.evaluate(([panels, times]) => globalThis.draw(panels, times), [panels, times]);
  mkdirSync(pictures, { recursive: true });
  for (const [index, clip] of parts.entries()) {
    const path = `${pictures}dashboard-${index + 1}.png`;
    await page.screenshot({ path, clip, fullPage: true });
    console.log(`drew ${path}`);
  }
  await browser.close();
}

const [start, end] = await span();
const step = Math.max(1, Math.ceil((end - start) / POINTS));
const times = Array.from({ length: Math.floor((end - start) / step) + 1 }, (_, index) => start + index * step);
const { panels, empty } = await read(times, step);
await draw(panels, times);
const queries = panels.flatMap(({ targets }) => targets ?? []).length;
console.log(`${queries} queries over ${end - start} s, ${queries - empty.length} with data`);
empty.forEach((query) => console.log(`no data: ${query}: ${SILENT[query] ?? "NOT LISTED"}`));
const wrong = [...empty.filter((query) => !SILENT[query]), ...await brokenRules()];
wrong.forEach((what) => console.error(`FAILED ${what}`));
process.exit(wrong.length ? 1 : 0);
