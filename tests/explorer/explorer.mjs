// Drives the explorer in Chromium: explorer.mjs ADDRESS REMEMBERING BUSY BROWSER [--write]
// REMEMBERING is the address of a daemon that has seen summarizeagent.eth trusted before, BUSY that of one that makes one run
// a minute.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

import { chromium } from "playwright-core";

const [address, remembering, busy, executablePath, write] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const pictures = fileURLToPath(new URL("../../docs/explorer/", import.meta.url));

/** Longest time for one step on a busy machine, in milliseconds. */
const PATIENCE = 60_000;

const QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];

/** Names of the sandbox, with the state that the page shows. */
const NAMES = [["summarizeagent.eth", "Trusted"], ["checksum-mismatch.eth", "Untrusted"], ["host-changed.eth", "Untrusted"],
  ["cid-unproven.eth", "Indeterminate"], ["released-form.eth", "Untrusted"], ["unregistered.eth", "Untrusted"],
  ["alice.wildcard.eth", "Trusted"], ["no name", "Not an ENS name"], ["a..eth", "Not an ENS name"]];

const WIDTHS = { 390: 1180, 1280: 1020 };

/** Rules that are not the gate's. */
const RELEASED = { profile: "agent-cards/1.0.0+released" };

/** The screenshots in the document: enough to see every state, both widths and both schemes. */
const SHOWN = [["summarizeagent.eth", "trusted", 1280, "light"], ["summarizeagent.eth", "trusted", 390, "dark"],
  ["host-changed.eth", "untrusted", 1280, "dark"], ["host-changed.eth", "untrusted", 390, "light"],
  ["cid-unproven.eth", "indeterminate", 1280, "light"], ["cid-unproven.eth", "indeterminate", 390, "dark"],
  ["released-form.eth", "denied", 1280, "light", RELEASED], ["released-form.eth", "denied", 390, "dark", RELEASED]];

/** A page of its own, whose complaints fail the run. */
async function opened(browser, options = {}) {
  const context = await browser.newContext({ reducedMotion: "reduce", viewport: { width: 1280, height: 1020 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  page.on("pageerror", (error) => assert.fail(`the page threw ${error}`));
  page.on("dialog", (dialog) => assert.fail(`a dialog: ${dialog.message()}`));
  page.on("console", (message) => assert.notEqual(message.type(), "error", message.text()));
  return page;
}

/** The page of a name, by the rules that are chosen. */
const of = (name, rules = {}, at = address) => `${at}/?${new URLSearchParams({ name, ...rules })}`;

/** What is shown under a heading, label by label. */
async function facts(page, heading) {
  const rows = page.locator("section", { has: page.getByRole("heading", { name: heading }) }).locator("dl");
  const texts = async (tag) => (await rows.locator(tag).allInnerTexts()).map((text) => text.trim());
  const [labels, values] = [await texts("dt"), await texts("dd")];
  return Object.fromEntries(labels.map((label, at) => [label, values[at]]));
}

/** Nothing that axe objects to, and nothing wider than the screen. */
async function isSound(page, where) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.target).join(" ")}`);
  assert.deepEqual(told, [], where);
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth <= 0), true, `${where} is too wide`);
}

/** Opens the page of a refusal, with a status of which the browser does not complain. */
async function refused(page) {
  await page.route("**/?name=refused.eth", async (route) => {
    const { status, headers, body } = await page.context().request.get(of("refused.eth", { depth: "deep" }))
      .then(async (answer) => ({ status: answer.status(), headers: answer.headers(), body: await answer.text() }));
    assert.equal(status, 400);
    await route.fulfill({ status: 200, headers, body });
  });
  await page.goto(of("refused.eth"));
  assert.equal(await page.locator(".refusal .state").textContent(), "No answer");
}

/** A daemon that has no run left for the gate's own question says so. */
async function whatTheGateWasNotAskedIsUndecided(browser) {
  const page = await opened(browser);
  await page.goto(of("summarizeagent.eth", { depth: "schemas" }, busy));
  assert.equal(await page.locator("#state .state").textContent(), "Undecided");
  for (const width of Object.keys(WIDTHS)) {
    for (const colorScheme of ["light", "dark"]) {
      await page.setViewportSize({ width: Number(width), height: WIDTHS[width] });
      await page.emulateMedia({ colorScheme });
      await isSound(page, `undecided, ${width}, ${colorScheme}`);
    }
  }
  await page.context().close();
}

/** The marks of the stages, by their names. */
const marks = (page) => page.locator(".stage").evaluateAll((stages) =>
  Object.fromEntries(stages.map((stage) => [stage.dataset.stage, stage.className.replace("stage ", "")])));

/** Stages have what they come to before the daemon's page about the name is there. */
async function theWalkFillsIn(browser) {
  for (const width of Object.keys(WIDTHS)) {
    for (const colorScheme of ["light", "dark"]) {
      const page = await opened(browser, { colorScheme, viewport: { width: Number(width), height: WIDTHS[width] } });
      await page.goto(address);
      for (const [name, end] of [
        ["host-changed.eth", { name: "pass", chain: "pass", https: "asked", ipfs: "asked", proof: "fail", card: "pass" }],
        ["summarizeagent.eth", { name: "pass", chain: "pass", https: "pass", ipfs: "pass", proof: "pass", card: "pass" }],
      ]) {
        const asked = await heldBack(page, `**/v1/verdicts/${name}?*`);
        const shown = await heldBack(page, `**/?name=${name}`);
        await page.getByLabel("Is this agent real?").fill(name);
        await page.keyboard.press("Enter");
        await asked.reached;
        assert.equal((await marks(page)).name, "running");
        await isSound(page, `a walk that begins, ${width}, ${colorScheme}`);
        await asked.release();
        await shown.reached;
        assert.deepEqual(await marks(page), { ...end, verdict: "waiting" }, name);
        assert.equal(await page.locator("[data-stage=proof] .word").textContent(), end.proof === "pass" ? "holds" : "fails");
        await isSound(page, `a walk that is judged, ${width}, ${colorScheme}`);
        await shown.release();
        await page.locator("#state").waitFor();
      }
      await page.context().close();
    }
  }
}

async function everyPageIsSound(browser) {
  for (const width of Object.keys(WIDTHS)) {
    for (const colorScheme of ["light", "dark"]) {
      const page = await opened(browser, { colorScheme, viewport: { width: Number(width), height: WIDTHS[width] } });
      await page.goto(address);
      await isSound(page, `start, ${width}, ${colorScheme}`);
      for (const [name, state] of NAMES) {
        await page.goto(of(name));
        assert.equal(await page.locator("#state .state").textContent(), state, name);
        await isSound(page, `${name}, ${width}, ${colorScheme}`);
      }
      await page.goto(of("released-form.eth", RELEASED));
      assert.equal(await page.locator("#state .state").textContent(), "Denied");
      await isSound(page, `denied, ${width}, ${colorScheme}`);
      await refused(page);
      await isSound(page, `refused, ${width}, ${colorScheme}`);
      assert.equal(await page.evaluate(() => document.getAnimations().length), 0, "what moves stands still");
      await page.context().close();
    }
  }
}

async function itWorksWithoutScript(browser) {
  const page = await opened(browser, { javaScriptEnabled: false });
  await page.goto(address);
  await page.getByLabel("Is this agent real?").fill("SummarizeAgent.eth");
  await page.getByRole("button", { name: "Check" }).click();
  await page.waitForURL("**/?name=SummarizeAgent.eth");
  assert.equal(await page.getByRole("heading", { level: 2 }).first().innerText(), "Trusted\nsummarizeagent.eth");
  assert.equal(await page.locator(".papers, button:has-text('Copy')").count(), 0, "nothing that needs the script");
  await page.goto(of("released-form.eth"));
  await page.getByRole("link", { name: "Ask under these rules" }).click();
  assert.equal(await page.locator("#state .state").textContent(), "Denied");
  await page.context().close();
}

/** A typing error gets a link to the probable name, not a verdict. The start page lists the sandbox's names. */
async function typingErrorsGetAHint(browser) {
  for (const javaScriptEnabled of [true, false]) {
    const page = await opened(browser, { javaScriptEnabled });
    for (const typed of ["a..eth", "summarizeagent", "x402://summarizeagent.eth/summarize/v1"]) {
      await page.goto(address);
      await page.getByLabel("Is this agent real?").fill(typed);
      await page.getByRole("button", { name: "Check" }).click();
      await page.locator(".no-name").waitFor();
      assert.equal(await page.locator("#state .state").textContent(), "Not an ENS name", typed);
      assert.equal(await page.locator(".stage.fail").count(), 0, typed);
    }
    await page.getByRole("link", { name: "summarizeagent.eth" }).click();
    await page.locator("#state .state", { hasText: "Trusted" }).waitFor();
    await page.goto(address);
    await page.locator(".samples").getByRole("link", { name: "alice.wildcard.eth" }).click();
    await page.locator("#state .state", { hasText: "Trusted" }).waitFor();
    await page.context().close();
  }
}

/** Keys alone lead to the answer, and what has the focus shows it. */
async function itIsUsedByKeyboard(browser) {
  const page = await opened(browser);
  await page.goto(address);
  await page.evaluate(() => {
    globalThis.marks = [];
    const note = (changes) => changes.forEach(({ target }) => globalThis.marks.push(`${target.dataset?.stage} ${target.className}`));
    new MutationObserver(note).observe(document.body, { subtree: true, attributes: true, attributeFilter: ["class"] });
  });
  const focused = () => page.evaluate(() => {
    const { outlineStyle } = getComputedStyle(document.activeElement);
    return [document.activeElement.textContent.trim() || document.activeElement.id, outlineStyle];
  });
  for (const [what, outline] of [["To the result", "solid"], ["clresolve", "solid"], ["name", "solid"]]) {
    await page.keyboard.press("Tab");
    assert.deepEqual(await focused(), [what, outline]);
  }
  await page.keyboard.type("held-by-holder.eth");
  await page.keyboard.press("Enter");
  await page.locator("#state").waitFor();
  assert.match(page.url(), /\?name=held-by-holder\.eth$/);
  const marks = await page.evaluate(() => globalThis.marks);
  for (const stage of ["chain stage running", "https stage running", "ipfs stage running"]) {
    assert.ok(marks.includes(stage), `${stage}: ${marks}`);
  }
  assert.match(await page.locator("#live").textContent(), /^Trusted held-by-holder\.eth\. /);
  assert.equal(await page.evaluate(() => document.activeElement.id), "result");
  await isSound(page, "after the walk");
  await page.getByLabel("Payment terms or a receipt").fill("precious");
  await page.locator(".leap").focus();
  await page.keyboard.press("Enter");
  await page.waitForURL("**#result");
  await page.evaluate(() => fetch("/livez"));
  assert.equal(await page.getByLabel("Payment terms or a receipt").inputValue(), "precious", "the page is the same");
  await page.evaluate(() => history.back());
  await page.waitForURL(/holder\.eth$/);
  await page.goBack();
  await page.getByText("An ENS name says where").waitFor();
  await page.context().close();
}

/** A promise, and what keeps it. */
function promised() {
  let keep;
  const promise = new Promise((resolve) => { keep = resolve; });
  return [promise, keep];
}

/** Holds back the first request of a kind. The result lets it go, and waits for its end. */
async function heldBack(page, pattern) {
  const [released, release] = promised();
  const [reached, reach] = promised();
  await page.route(pattern, async (route) => {
    reach(route.request());
    await released;
    // Nobody waits for it any more, where the page has ended it.
    await route.continue().catch(() => {});
  }, { times: 1 });
  const isOver = (request) => new Promise((done) => {
    for (const end of ["requestfinished", "requestfailed"]) page.on(end, (ended) => ended === request && done());
  });
  return {
    reached,
    release: async () => {
      const over = isOver(await reached);
      release();
      await Promise.race([over, page.evaluate(() => fetch("/livez"))]);
    },
  };
}

/** An answer that comes late is not shown in the place of one that was asked for later. */
async function theLatestQuestionIsAnswered(browser) {
  const [first, second] = ["held-by-holder.eth", "checksum-mismatch.eth"];
  for (const pattern of [`**/v1/verdicts/${first}?*`, `**/?name=${first}`]) {
    const page = await opened(browser);
    await page.goto(address);
    const late = await heldBack(page, pattern);
    const name = page.getByLabel("Is this agent real?");
    await name.fill(first);
    await name.press("Enter");
    await late.reached;
    await name.fill(second);
    await name.press("Enter");
    await page.locator("#state").waitFor();
    await late.release();
    await page.getByLabel("Payment terms or a receipt").fill("{}");
    const [judged] = await Promise.all([
      page.waitForRequest("**/v1/receipts/verify"), page.getByRole("button", { name: "Judge" }).click()]);
    await page.locator(".ruling").waitFor();
    const shown = [await page.locator("#state .name").textContent(), await name.inputValue(), judged.postDataJSON().name,
      new URL(page.url()).searchParams.get("name")];
    assert.deepEqual(shown, [second, second, second, second], pattern);
    await page.context().close();
  }
  const page = await opened(browser);
  await page.goto(of("summarizeagent.eth"));
  const late = await heldBack(page, "**/v1/receipts/verify");
  const judge = async (paper) => {
    await page.getByLabel("Payment terms or a receipt").fill(paper);
    await page.getByRole("button", { name: "Judge" }).click();
  };
  await judge("{}");
  await late.reached;
  await judge('{"x402Version":2,"accepts":[]}');
  await page.locator(".ruling").waitFor();
  await late.release();
  await page.evaluate(() => fetch("/livez"));
  assert.match(await page.locator(".ruling").innerText(), /do not pay/);
  await page.context().close();
}

/** Rules that were chosen are seen, with what the gate says, and are taken back by a tick. */
async function chosenRulesAreSeen(browser) {
  for (const colorScheme of ["light", "dark"]) {
    const page = await opened(browser, { colorScheme, viewport: { width: 390, height: WIDTHS[390] } });
    await page.goto(of("released-form.eth", RELEASED));
    assert.equal(await page.locator("#state .state").textContent(), "Denied");
    assert.match(await page.locator(".advice").innerText(), /^Do not call or pay it: the gate denies it/);
    await isSound(page, `rules that are not the gate's, ${colorScheme}`);
    await page.getByLabel("profile").uncheck();
    await page.getByLabel("Is this agent real?").press("Enter");
    await page.waitForURL("**/?name=released-form.eth");
    await page.locator("#state .state", { hasText: "Untrusted" }).waitFor();
    await page.context().close();
  }
}

/** A name is asked about again as it was typed, whatever its characters show. */
async function aNameStaysAsItWasTyped(browser) {
  const page = await opened(browser);
  const family = "\u{1f468}\u200d\u{1f469}\u200d\u{1f466}.eth";
  await page.goto(of(family));
  const name = page.getByLabel("Is this agent real?");
  for (const _ of ["as it was loaded", "asked about again"]) {
    assert.equal(await name.inputValue(), family);
    assert.deepEqual(await page.locator(".reason h3 code").allInnerTexts(), ["name-unregistered"]);
    await Promise.all([page.waitForResponse((answer) => answer.url().includes("/?name=")), name.press("Enter")]);
    await page.locator("body.about").waitFor();
  }
  await page.context().close();
}

/** A receipt of the sandbox. */
function receipt(name) {
  return readFileSync(new URL(`../../crates/sandbox/src/receipts/${name}.json`, import.meta.url), "utf8");
}

/** A page that came by http from another machine has no clipboard, and says what to do instead. */
async function withoutAClipboardItSaysSo(browser) {
  const page = await opened(browser);
  await page.addInitScript(() => { delete Navigator.prototype.clipboard; });
  await page.goto(of("checksum-mismatch.eth"));
  assert.equal(await page.evaluate(() => navigator.clipboard), undefined);
  const button = page.locator(".copy").first().getByRole("button");
  await button.click();
  await page.getByRole("button", { name: "Select it, and copy" }).waitFor();
  assert.equal(await page.locator("#live").textContent(), "Select it, and copy");
  await page.context().close();
}

/** The line that sets a record right, and the command, are what the clipboard holds then. */
async function linesAreCopied(browser) {
  const page = await opened(browser, { permissions: ["clipboard-read", "clipboard-write"] });
  await page.goto(of("checksum-mismatch.eth"));
  const lines = page.locator(".copy");
  assert.ok(await lines.count() > 1, "a record and a command");
  for (const line of await lines.all()) {
    const text = (await line.textContent()).replace(/Copy$/, "");
    await line.getByRole("button", { name: "Copy" }).click();
    await line.getByRole("button", { name: "Copied" }).waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), text);
  }
  await page.context().close();
}

/** Payment terms and receipts are judged, and what they hold stays text. */
async function papersAreJudged(browser) {
  const page = await opened(browser);
  await page.goto(of("summarizeagent.eth"));
  const judge = async (paper, path) => {
    await page.getByLabel("Payment terms or a receipt").fill(paper);
    const [answer] = await Promise.all([
      page.waitForResponse((response) => response.url().endsWith(path)), page.getByRole("button", { name: "Judge" }).click()]);
    assert.equal(answer.status(), 200, await answer.text());
    await page.locator(".ruling").waitFor();
    const told = await page.getByRole("form", { name: "Judge what it sent" }).locator("output").innerText();
    await page.getByRole("form", { name: "Judge what it sent" }).locator("output").evaluate((output) => output.replaceChildren());
    return told;
  };
  const markup = "<img src=x onerror=alert(1)>";
  const entry = { scheme: "exact", network: "eip155:84532", amount: "1", payTo: "0x0000000000000000000000000000000000000001",
    asset: "0x036CbD53842c5426634e7929541eC2318f3dCF7e", maxTimeoutSeconds: 60, extra: { name: "USDC", version: markup } };
  const terms = JSON.stringify({ x402Version: 2, resource: { url: "https://api.sandbox.example/" }, accepts: [entry] });
  for (const pasted of [terms, btoa(terms)]) {
    assert.match(await judge(pasted, "/v1/decisions"), /^Deny: do not pay/);
  }
  // A relay copies the agent's own terms. What they say of their URL does not vouch for them.
  const verdict = await (await fetch(`${address}/v1/verdicts/summarizeagent.eth`)).json();
  const records = verdict.steps.find(({ step }) => step === "records").evidence;
  const own = { ...entry, payTo: Object.values(records.addresses).find(Boolean), extra: { name: "USDC", version: "2" } };
  const url = Object.values(records.endpoints).find(Boolean);
  const copied = JSON.stringify({ x402Version: 2, resource: { url }, accepts: [own] });
  const withoutUrl = await judge(copied, "/v1/decisions");
  assert.match(withoutUrl, /do not pay/);
  assert.match(withoutUrl, /Not checked[^]*route/);
  assert.match(await judge(JSON.stringify({ [markup]: markup }), "/v1/receipts/verify"), /^Indeterminate/);
  assert.match(await judge(receipt("sdk"), "/v1/receipts/verify"), /^Trusted/);
  assert.match(await judge(receipt("receipt-hash-mismatch"), "/v1/receipts/verify"), /^Untrusted[^]*receipt-hash-mismatch/);
  assert.equal(await page.locator("img").count(), 0);
  await isSound(page, "with a ruling");
  await page.context().close();
}

/** Has the page of an agent whose seller wants another address to be paid ask that seller. */
async function askedForItsTerms(page) {
  await page.goto(of("payee-mismatch.eth"));
  const seller = page.getByRole("form", { name: "Ask what it demands" });
  await seller.getByRole("button", { name: "Ask the seller" }).click();
  await seller.locator(".ruling").waitFor();
  await seller.evaluate((form) => form.scrollIntoView({ block: "end" }));
  return seller;
}

async function aSellerIsAskedForItsTerms(browser) {
  for (const width of Object.keys(WIDTHS)) {
    for (const colorScheme of ["light", "dark"]) {
      const page = await opened(browser, { colorScheme, viewport: { width: Number(width), height: WIDTHS[width] } });
      const seller = await askedForItsTerms(page);
      const told = await seller.locator("output").innerText();
      assert.match(told, /^Deny: do not pay[^]*payee-mismatch[^]*Expected\s+0x7099[^]*Found\s+0x3C44/);
      await isSound(page, `a payee that is wrong, ${width}, ${colorScheme}`);
      await page.context().close();
    }
  }
  const page = await opened(browser);
  await page.goto(of("host-changed.eth"));
  assert.equal(await page.getByRole("button", { name: "Ask the seller" }).count(), 0, "who is untrusted is not asked");
  await page.context().close();
}

/** With a memory: since when the name was seen trusted, and with how many cards. Without one nothing is claimed. */
async function whatIsRememberedIsShown(browser) {
  const heading = "What this daemon remembers";
  for (const width of Object.keys(WIDTHS)) {
    for (const colorScheme of ["light", "dark"]) {
      const page = await opened(browser, { colorScheme, viewport: { width: Number(width), height: WIDTHS[width] } });
      await page.goto(of("summarizeagent.eth", {}, remembering));
      const remembered = await facts(page, heading);
      assert.match(remembered["Seen trusted"] ?? "", /^from block [\d,]+ to block [\d,]+$/, JSON.stringify(remembered));
      assert.equal(remembered["Versions seen"], "1");
      await isSound(page, `what is remembered, ${width}, ${colorScheme}`);
      await page.goto(of("held-by-holder.eth", {}, remembering));
      assert.equal((await facts(page, heading))["Seen trusted"], undefined, "it was never asked for before");
      await page.goto(of("summarizeagent.eth"));
      const known = await facts(page, heading);
      assert.ok(known["This answer"] && known["Fresh until"], JSON.stringify(known));
      assert.equal(known["Seen trusted"], undefined, "a daemon without a memory remembers nothing");
      await page.context().close();
    }
  }
}

async function markupStaysText(browser) {
  const page = await opened(browser);
  const name = `"><img src=x onerror=alert(1)>`;
  await page.goto(of(name));
  await page.getByLabel("Is this agent real?").fill(`${name}.eth`);
  await page.keyboard.press("Enter");
  await page.waitForURL("**onerror**.eth");
  await page.locator("#state").waitFor();
  assert.equal(await page.locator("img").count(), 0);
  await page.context().close();
}

async function picturesAreTaken(browser) {
  mkdirSync(pictures, { recursive: true });
  for (const [name, state, width, colorScheme, rules] of SHOWN) {
    const page = await opened(browser, { colorScheme, viewport: { width, height: WIDTHS[width] } });
    await page.goto(of(name, rules));
    await page.screenshot({ path: `${pictures}${state}-${width}-${colorScheme}.png` });
    await page.context().close();
  }
  for (const [width, colorScheme] of [[1280, "light"], [390, "dark"]]) {
    const page = await opened(browser, { colorScheme, viewport: { width, height: WIDTHS[width] } });
    await page.goto(of("checksum-mismatch.eth"));
    await page.locator("section.reasons").screenshot({ path: `${pictures}reason-${width}-${colorScheme}.png` });
    await page.goto(of("summarizeagent.eth", {}, remembering));
    await page.locator("section[aria-labelledby=memory]").screenshot({ path: `${pictures}memory-${width}-${colorScheme}.png` });
    await askedForItsTerms(page);
    await page.screenshot({ path: `${pictures}payee-mismatch-${width}-${colorScheme}.png` });
    await page.context().close();
  }
}

// Each launch has a profile of its own, which is removed at its end.
const browser = await chromium.launch({ executablePath, args: QUIET });
const checks = [everyPageIsSound, theWalkFillsIn, whatTheGateWasNotAskedIsUndecided, itWorksWithoutScript, typingErrorsGetAHint,
  itIsUsedByKeyboard, theLatestQuestionIsAnswered, chosenRulesAreSeen, aNameStaysAsItWasTyped, linesAreCopied,
  withoutAClipboardItSaysSo, papersAreJudged, aSellerIsAskedForItsTerms, whatIsRememberedIsShown, markupStaysText];
if (write === "--write") checks.push(picturesAreTaken);
let failed = 0;
for (const check of checks) {
  try {
    await check(browser);
    console.log(`ok ${check.name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED ${check.name}\n${error.stack}`);
  }
}
await browser.close();
process.exit(failed ? 1 : 0);
