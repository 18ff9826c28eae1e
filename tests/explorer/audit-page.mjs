// Reads the HTML reports of audits as people do: audit-page.mjs PROGRAM BROWSER SCRATCH [--write]
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

import { chromium } from "playwright-core";

const [program, executablePath, scratch, write] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const pictures = fileURLToPath(new URL("../../docs/audits/", import.meta.url));

const QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];

/** Longest time for one step on a busy machine, in milliseconds. */
const PATIENCE = 60_000;

const WIDTHS = { 390: 844, 1280: 1000 };

/** Lines that are no names, with something against every reader. */
const HOSTILE = ["=cmd|'/c calc'!A1 \"<script>alert(1)</script>`", "<img src=x onerror=alert(1)>.eth", "a\u202e.eth", "-.eth"];

/** What leads to the manifest of the sandbox's registry. */
const REGISTRY = "https://commandlayer.sandbox.example/.well-known/agent.json";

/** The width of A4 within its margins, in pixels. */
const PAPER = { width: 688, height: 1000 };

const at = (file) => join(scratch, file);

/** What the program prints; the exit code of an audit tells its worst name. */
function run(...parameters) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => !key.startsWith("CLRESOLVE_")));
  try {
    return execFileSync(program, parameters, { env, cwd: scratch, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  } catch (error) {
    if (error.status === 1 || error.status === 3) return error.stdout;
    throw error;
  }
}

const audit = (list, ...options) => run("audit", "--sandbox", "--names", list, ...options);

/** A report as `audit` seals it, of an earlier day: some names that are broken now were trusted then, and one had
 * another holder. When the sandbox's names expire differs from run to run. */
function earlier(report, day, trusted, file) {
  const then = structuredClone(report);
  delete then.digest;
  then.counts.checked = { first: `${day}T10:00:00Z`, last: `${day}T10:00:00Z` };
  const broken = then.rows.filter(({ state, normalized }) => state === "untrusted" && normalized);
  for (const row of broken.slice(0, trusted)) Object.assign(row, { state: "trusted", reasons: [] });
  then.rows.filter((row) => row.on_chain).forEach(({ on_chain }) => delete on_chain.expiry);
  then.rows.find((row) => row.on_chain?.holder).on_chain.holder = `0x${"12".repeat(20)}`;
  const lines = `${JSON.stringify(then).slice(0, -1)},\n`;
  const digest = createHash("sha256").update(lines).digest("hex");
  writeFileSync(at(file), `${lines}"digest": "sha256:${digest}"\n}\n`);
}

/** The pages that are read, each with what its first screen must say. */
function makePages() {
  const sandbox = JSON.parse(run("sandbox", "--list", "-o", "json"));
  const good = sandbox.filter(({ state, codes }) => state === "trusted" && codes.length === 0).map(({ name }) => name);
  writeFileSync(at("good.txt"), good.slice(0, 12).join("\n"));
  writeFileSync(at("registry.txt"), [...sandbox.map(({ name }) => name), ...HOSTILE].join("\n"));
  audit("good.txt", "--format", "html", "--out", "good.html");
  audit("registry.txt", "--format", "html", "--out", "bad.html");
  audit("good.txt", "--registry", REGISTRY, "--schema-layers", "--format", "html", "--out", "whole.html");
  audit("registry.txt", "--json", "--out", "now.json");
  const now = JSON.parse(readFileSync(at("now.json"), "utf8"));
  [["2026-07-01", 40], ["2026-08-01", 31], ["2026-09-01", 22], ["2026-10-01", 6]].forEach(([day, trusted], number) =>
    earlier(now, day, trusted, `${number}.json`));
  audit("registry.txt", "--since", "3.json", "--history", "0.json", "1.json", "2.json", "--format", "html", "--out", "since.html");
  const { untrusted, trusted, names } = now.counts;
  return [["good", /12 of 12 names are trusted\. Nobody has to act\.[^]*Nothing is wrong\./],
    ["bad", new RegExp(`${names - trusted} of ${names} names are not trusted\\. Publishers must act on \\d+ names, on \\d+ because [^]*${untrusted}\\s*untrusted`)],
    ["whole", /\d+ of \d+ names are not trusted\.[^]*Registry[^]*Schema layers/],
    ["since", /What changed: since \S+, \d+ added, \d+ removed, 6 newly broken, 0 newly trusted, \d+ with another owner(, \d+ other changes?)?\.\s*Trend: trusted names in the last 5 reports: \d/]];
}

const address = (page) => pathToFileURL(at(`${page}.html`)).href;

/** A page of its own, whose complaints and requests fail the run. */
async function opened(browser, name, options = {}) {
  const context = await browser.newContext({ reducedMotion: "reduce", viewport: { width: 1280, height: 1000 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  page.on("pageerror", (error) => assert.fail(`the page threw ${error}`));
  page.on("dialog", (dialog) => assert.fail(`a dialog: ${dialog.message()}`));
  page.on("console", (message) => assert.notEqual(message.type(), "error", message.text()));
  page.on("request", (request) => assert.equal(request.url().split("#")[0], address(name), "nothing else is asked for"));
  await page.goto(address(name));
  return page;
}

/** Nothing that axe objects to, by all its rules or by some, and nothing wider than the screen. */
async function isSound(page, where, options = {}) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate((options) => globalThis.axe.run(document, options), options);
  const told = violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 5).map((node) => node.target).join(" ")}`);
  assert.deepEqual(told, [], where);
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth <= 0), true, `${where} is too wide`);
}

/** What a board member reads in ten seconds: the words and the picture above the fold. */
async function theFirstScreenSaysIt(page, said, width, where) {
  assert.match(await page.locator("main").innerText(), said, where);
  const fold = await page.evaluate(() => innerHeight);
  const world = ".opening li:first-child";
  const seen = width === "390" ? ["h1", world, ".actors"] : ["h1", ".opening", "#now-title", ".tiles", ".actors"];
  for (const part of seen) {
    const bottom = await page.locator(part).evaluate((node) => (node.closest("svg") ?? node).getBoundingClientRect().bottom);
    assert.ok(bottom <= fold, `${where}: ${part} ends at ${bottom} of ${fold}`);
  }
}

/** On a phone what is wrong and who must act come first, in the order of the focus; the toolbars of a phone's browser
 * leave some 660 pixels to the first of them. */
async function aPhoneSaysFirstWhoMustActAndWhy(browser) {
  const page = await opened(browser, "since", { viewport: { width: 390, height: 660 } });
  const top = (part) => page.locator(part).first().evaluate((node) => node.getBoundingClientRect().top);
  const order = [".kicker", "h1", ".opening li:first-child", "#who", "#states", ".opening li:nth-child(2)", "nav"];
  const tops = await Promise.all(order.map(top));
  assert.deepEqual(tops, tops.toSorted((one, other) => one - other), `${order}: ${tops}`);
  const publishers = page.locator(".actors > li").first();
  const { y, height } = await publishers.boundingBox();
  assert.ok(y + height <= 660, `the publishers' card ends at ${y + height}`);
  const unlinked = publishers.locator(".lengths li:not(:has(> a[href^='#']))");
  assert.equal(await unlinked.count(), 0, "each cause and each owner leads to the details");
  const moved = page.locator(":is(header, .warning, #states) :is(a, button, summary)");
  assert.equal(await moved.count(), 0, "what stands elsewhere than in the file has no focus");
  const links = await page.locator(".actors a, nav a").evaluateAll((all) =>
    all.map((link) => link.getBoundingClientRect().top));
  assert.deepEqual(links, links.toSorted((one, other) => one - other), "the focus goes down the page");
  await page.context().close();
}

async function everyPageIsSound(browser, pages) {
  for (const [name, said] of pages) {
    for (const width of Object.keys(WIDTHS)) {
      for (const colorScheme of ["light", "dark"]) {
        const where = `${name}, ${width}, ${colorScheme}`;
        const page = await opened(browser, name, { colorScheme, viewport: { width: Number(width), height: WIDTHS[width] } });
        await theFirstScreenSaysIt(page, said, width, where);
        await isSound(page, where);
        assert.equal(await page.locator("img").count(), 0, "markup of others is text");
        await page.context().close();
      }
    }
  }
}

/** The sections that an audit has on demand have what they can have. */
async function noSectionIsEmpty(browser) {
  const page = await opened(browser, "whole");
  for (const part of ["registry", "layers"]) {
    assert.notEqual(await page.locator(`#${part}-table tbody tr`).count(), 0, part);
  }
  await page.context().close();
}

async function itIsCompleteWithoutScript(browser) {
  const [page, other] = [await opened(browser, "since", { javaScriptEnabled: false }), await opened(browser, "since")];
  const rows = "#names-table tbody tr";
  assert.equal(await page.locator(rows).count(), await other.locator(rows).count());
  assert.equal(await page.locator("#tools").isVisible(), false);
  assert.equal(await page.locator("th button").count(), 0);
  await page.context().close();
  await other.context().close();
}

async function itIsFilteredAndSorted(browser) {
  const page = await opened(browser, "since");
  const shown = () => page.locator("#names-table tbody tr:not([hidden]) td.subject").allInnerTexts();
  const all = (await shown()).length;
  await page.getByLabel("Name, code or owner").fill("CHECKSUM-mismatch");
  assert.deepEqual((await shown()).toSorted(), ["checksum-mismatch.eth", "host-changed.eth"]);
  assert.equal(await page.locator("#count").innerText(), `2 of ${all}`);
  await page.getByLabel("Name, code or owner").fill("");
  await page.locator("#actor").selectOption("publisher");
  assert.ok((await shown()).includes("cid-unproven.eth"));
  await page.locator("#actor").selectOption("operator");
  await page.locator("#state").selectOption("trusted");
  assert.deepEqual(await shown(), []);
  await page.locator("#actor").selectOption("");
  await page.locator("#names-table th button").first().click();
  const names = await shown();
  assert.deepEqual(names, names.toSorted(new Intl.Collator("en", { numeric: true }).compare));
  assert.equal(await page.locator("#names-table th[aria-sort=ascending]").count(), 1);
  await isSound(page, "filtered and sorted");
  await page.context().close();
}

/** A name, a reason and the work on it lead to each other. */
async function anchorsLead(browser) {
  const page = await opened(browser, "bad");
  await page.goto(`${address("bad")}#name-checksum-mismatch.eth`);
  const row = page.locator("tr:target");
  assert.match(await row.innerText(), /checksum-mismatch\.eth/);
  await row.getByRole("link", { name: "checksum-mismatch.eth" }).click();
  assert.match(await page.locator("article:target pre").first().innerText(), /^cl\.checksum\.agentcard=sha256:[0-9a-f]{64}$/);
  await page.locator("article:target").getByRole("link", { name: "checksum-mismatch" }).click();
  assert.match(await page.locator("tr:target .explanation").textContent(), /SHA-256|checksum/i);
  await page.context().close();
}

/** A name that broke leads to its row, beside the reason and who has to act. */
async function whatBrokeLeadsToItsRow(browser) {
  const page = await opened(browser, "since");
  const change = page.locator("#states-changed tbody tr").first();
  assert.match(await change.innerText(), /newly-broken[^]*trusted[^]*untrusted[^]*card-[a-z-]+[^]*publisher/);
  await change.getByRole("link").first().click();
  assert.equal(await page.locator("tr:target[data-state=untrusted]").count(), 1);
  await page.context().close();
}

/** On a phone a name of the matrix takes four lines at most, under heads that stay. */
async function theMatrixFitsAPhone(browser) {
  const page = await opened(browser, "good", { viewport: { width: 390, height: WIDTHS[390] } });
  const heights = await page.locator("#names-table tbody tr").evaluateAll((rows) => rows.map((row) => row.offsetHeight));
  assert.ok(Math.max(...heights) <= 4 * 24 + 16, `${heights}`);
  const middle = (cell) => cell.evaluate((node) => { const box = node.getBoundingClientRect(); return box.left + box.width / 2; });
  for (const number of [0, 7]) {
    const [head, sign] = [page.locator("#names-table th.mark").nth(number), page.locator("#names-table td.mark").nth(number)];
    assert.ok(Math.abs(await middle(head) - await middle(sign)) < 2, `sign ${number} stands under its head`);
  }
  await page.context().close();
}

/** White space of others is seen. */
async function spacesAreSeen(browser) {
  const page = await opened(browser, "bad");
  assert.equal(await page.locator("code").first().evaluate((node) => getComputedStyle(node).whiteSpace), "pre-wrap");
  await page.context().close();
}

/** Markup that got in all the same would not run. */
async function itsPolicyHolds(browser) {
  const page = await opened(browser, "good");
  page.removeAllListeners("console");
  const ran = await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "globalThis.ran = true";
    document.body.append(script);
    return globalThis.ran === true;
  });
  assert.equal(ran, false);
  await page.context().close();
}

async function itPrints(browser) {
  const page = await opened(browser, "since", { colorScheme: "dark" });
  const pdf = await page.pdf({ format: "A4", printBackground: false });
  assert.equal(pdf.subarray(0, 5).toString(), "%PDF-");
  writeFileSync(at("since.pdf"), pdf);
  await page.emulateMedia({ media: "print" });
  for (const part of ["nav", "#tools", "summary >> nth=0", "a[href='#act-publisher'] >> nth=0"]) assert.equal(await page.locator(part).isVisible(), false, part);
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
  assert.equal(await page.locator("#others-changed").isVisible(), true, "what was folded is printed");
  await page.context().close();
}

/** Links lead nowhere on paper and have no line below them: of the rules, that on contrast speaks of paper too. */
async function everyPrintIsSound(browser, pages) {
  for (const [name] of pages) {
    const page = await opened(browser, name, { colorScheme: "dark", viewport: PAPER });
    await page.emulateMedia({ media: "print" });
    await isSound(page, `${name}, printed`, { runOnly: ["color-contrast"] });
    await page.context().close();
  }
}

async function takePictures(browser, folder) {
  mkdirSync(folder, { recursive: true });
  const save = (page, name, options) => page.screenshot({ path: join(folder, `report-${name}.png`), ...options });
  for (const width of Object.keys(WIDTHS)) {
    for (const colorScheme of ["light", "dark"]) {
      const page = await opened(browser, "since", { colorScheme, viewport: { width: Number(width), height: WIDTHS[width] } });
      await save(page, `${width}-${colorScheme}`);
      await page.context().close();
    }
  }
  await takeThePrint(browser, save);
  await takeTheCharts(browser, save);
}

/** The first sheet of A4. */
async function takeThePrint(browser, save) {
  const page = await opened(browser, "since", { viewport: { width: 794, height: 1123 } });
  await page.emulateMedia({ media: "print" });
  await save(page, "print");
  await page.context().close();
}

/** The states over time, the expiries, and the first rows of the matrix on a phone. */
async function takeTheCharts(browser, save) {
  const page = await opened(browser, "since", { viewport: { width: 960, height: 1000 } });
  const [first, last] = [await page.locator("#over-time").boundingBox(), await page.locator("#expiries").boundingBox()];
  await save(page, "charts", { fullPage: true, clip: { x: 0, y: first.y - 16, width: 960, height: last.y + last.height - first.y + 32 } });
  await page.setViewportSize({ width: 390, height: WIDTHS[390] });
  await page.locator("#names-table").evaluate((table) => scrollBy(0, table.getBoundingClientRect().top));
  await save(page, "matrix");
  await page.context().close();
}

/** The first screen of the published registry's audit, from the reports of `just audit-registry`. */
async function takeTheRegistry(browser, folder) {
  const page = await browser.newPage({ reducedMotion: "reduce", viewport: { width: 1280, height: WIDTHS[1280] } });
  await page.goto(pathToFileURL(join(folder, "released-under-agent-cards-1.0.0.html")).href);
  await page.screenshot({ path: join(pictures, "published-registry.png") });
  await page.close();
}

const pages = makePages();
const browser = await chromium.launch({ executablePath, args: QUIET });
try {
  await everyPageIsSound(browser, pages);
  await noSectionIsEmpty(browser);
  await aPhoneSaysFirstWhoMustActAndWhy(browser);
  await itIsCompleteWithoutScript(browser);
  await itIsFilteredAndSorted(browser);
  await anchorsLead(browser);
  await whatBrokeLeadsToItsRow(browser);
  await theMatrixFitsAPhone(browser);
  await spacesAreSeen(browser);
  await itsPolicyHolds(browser);
  await itPrints(browser);
  await everyPrintIsSound(browser, pages);
  if (write === "--write") {
    await takePictures(browser, pictures);
    if (process.env.CLRESOLVE_AUDIT_OUT) await takeTheRegistry(browser, process.env.CLRESOLVE_AUDIT_OUT);
  }
} finally {
  await browser.close();
}
console.log(`${pages.length} reports at ${Object.keys(WIDTHS).length} widths in both schemes, printed and without script: sound`);
