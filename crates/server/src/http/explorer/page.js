// The explorer's script: shows a resolution while it runs, copies lines, and submits payment terms and receipts for
// judgement. The page works without it. Foreign text is inserted only as text. The daemon renders everything that the
// page states about a name.
"use strict";

const COPIED_FOR = 2000;

const form = document.getElementById("ask");
const input = document.getElementById("name");
const result = document.getElementById("result");

/** An element with properties and children. */
function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/** Requests in progress, keyed by the element that displays their answer. */
const open = new WeakMap();

/** Aborts the previous request for an element. The returned signal fires when a later request replaces this one. */
function supersede(target) {
  open.get(target)?.abort();
  const latest = new AbortController();
  open.set(target, latest);
  return latest.signal;
}

/** Announces a message to screen readers. */
function say(text) {
  document.getElementById("live").textContent = text;
}

/** Copies the text and returns whether that worked. Pages loaded over http from another machine have no clipboard. */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** Adds a copy button to each line that is meant to be copied. */
function addCopyButtons() {
  for (const line of result.querySelectorAll(".copy")) {
    const text = line.textContent;
    const button = element("button", { type: "button", textContent: "Copy" });
    button.addEventListener("click", async () => {
      const done = await copied(text) ? "Copied" : "Select it, and copy";
      button.textContent = done;
      say(done);
      setTimeout(() => { button.textContent = "Copy"; }, COPIED_FOR);
    });
    line.append(button);
  }
}

// The resolution while it runs

const ASKED = { began: ["running", "asking…"], ended: ["asked", "answered"] };

/** The possible results of steps, worst last. */
const RESULTS = ["skip", "pass", "unknown", "fail"];

function show(stage, mark, word, ...sign) {
  stage.className = `stage ${mark}`;
  stage.querySelector(".word").textContent = word;
  stage.querySelector(".dot").replaceChildren(...sign);
}

/** Shows the result of a stage, with the icon and the word from the daemon's own pages. */
function showResult(stage, found) {
  const { content, dataset } = document.querySelector(`template[data-mark=${found}]`);
  show(stage, found, dataset.word, content.cloneNode(true));
}

/** Shows only the diagram, before the first step. */
function begin(name) {
  const picture = result.querySelector(".picture");
  result.replaceChildren(picture);
  document.body.className = "walking";
  for (const stage of picture.querySelectorAll(".stage")) {
    show(stage, "waiting", "to be proven");
    stage.querySelector(".seen").textContent = "";
    delete stage.dataset.judged;
  }
  const first = picture.querySelector("[data-stage=name]");
  show(first, ...ASKED.began);
  first.querySelector(".seen").textContent = name;
  say(`Asking about ${name}`);
}

/** The result of a stage is the worst of its steps. A source's response proves nothing until the proof step ends. */
function judged(stage, step, found) {
  const worst = RESULTS[Math.max(RESULTS.indexOf(found), RESULTS.indexOf(stage.dataset.judged))];
  stage.dataset.judged = worst;
  if (worst === "pass" && stage.matches(".fork .stage")) {
    show(stage, ...ASKED.ended);
  } else {
    showResult(stage, worst);
  }
  if (step === "integrity" && worst === "pass") {
    for (const source of result.querySelectorAll(".fork .stage[data-judged=pass]")) showResult(source, "pass");
  }
}

/** Shows the event of a step. */
function step({ step, status, result: found }) {
  const stages = [...result.querySelectorAll(".stage")];
  const stage = stages.find((one) => one.dataset.steps.split(" ").includes(step));
  if (status === "began") showResult(stages[0], "pass");
  if (!stage) return;
  if (status === "judged") {
    judged(stage, step, found);
  } else if (status === "ended" && ["unknown", "fail"].includes(found)) {
    showResult(stage, found);
  } else {
    show(stage, ...ASKED[status]);
  }
  if (status === "began") say(`${stage.querySelector(".title").textContent}: asking`);
}

/** Replaces the diagram with the daemon's own page about the name. */
async function finish(path, signal) {
  const answer = await fetch(path, { signal });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  signal.throwIfAborted();
  const found = page.getElementById("result");
  if (!found) throw new Error("no page");
  result.replaceChildren(...found.childNodes);
  document.title = page.title;
  document.body.className = "about";
  dress();
  const state = document.getElementById("state");
  say([state, ...result.querySelectorAll(".summary, .advice")].map((part) => part?.textContent.trim() ?? "").join(". "));
  result.focus({ preventScroll: true });
}

/** The page in the address bar, without the fragment. */
const place = () => location.pathname + location.search;
let shown = place();

/** Whether the text may be a name. For other text there is no resolution to follow. */
const isLikeAName = (text) => text.includes(".") && !text.includes("://") && !text.endsWith(".");

/** Starts a resolution and follows its events. If no events arrive, the form is submitted normally. */
function ask(event) {
  const name = input.value.trim();
  if (!isLikeAName(name) || !window.EventSource) return;
  event.preventDefault();
  const query = new URLSearchParams(new FormData(form));
  query.set("name", name);
  const path = `/?${query}`;
  query.delete("name");
  const signal = supersede(result);
  const source = new EventSource(`/v1/verdicts/${encodeURIComponent(name)}?${query}`);
  signal.addEventListener("abort", () => source.close());
  const plainly = () => {
    source.close();
    if (!signal.aborted) location.assign(path);
  };
  begin(name);
  source.addEventListener("step", (news) => step(JSON.parse(news.data)));
  source.addEventListener("verdict", () => {
    source.close();
    history.pushState(null, "", path);
    shown = place();
    finish(path, signal).catch(plainly);
  });
  source.addEventListener("problem", plainly);
  source.addEventListener("error", plainly);
}

// Documents: payment terms and receipts

/** The JSON in the pasted text: plain, or encoded as in a header. */
function read(pasted) {
  const decoded = () => new TextDecoder().decode(Uint8Array.from(atob(pasted.trim()), (c) => c.charCodeAt(0)));
  for (const text of [() => pasted, decoded]) {
    try {
      const json = text();
      return { json, value: JSON.parse(json) };
    } catch { /* the next */ }
  }
  return null;
}

/** The question about a document. Its JSON is sent as pasted, so that the daemon can detect duplicate members. */
function question(paper, name, verb, url) {
  if (Array.isArray(paper.value?.accepts)) {
    // The URL that responded. The URL in the terms is what the daemon checks.
    const rest = JSON.stringify({ name, verb, url: url.trim() || null }).slice(0, -1);
    return { path: "/v1/decisions", body: `${rest},"paymentRequired":${paper.json}}` };
  }
  return { path: "/v1/receipts/verify", body: `${JSON.stringify({ name }).slice(0, -1)},"receipt":${paper.json}}` };
}

const TONES = { allow: "good", trusted: "good", deny: "bad", untrusted: "bad" };

const capitalised = (word) => word.charAt(0).toUpperCase() + word.slice(1);

/** A result in words: a decision, the verification of a receipt, or a problem. */
function ruling(answer) {
  const found = answer.decision?.decision ? answer.decision : answer;
  const word = found.decision ?? found.state ?? found.title ?? "No answer";
  const reason = found.reason ?? found.summary ?? found.detail;
  const codes = found.codes?.join(", ") ?? found.code;
  const facts = [
    ["Reason", reason],
    ["Codes", reason?.startsWith(`${codes}:`) ? null : codes],
    ...(found.reasons ?? []).flatMap(({ expected, observed }) =>
      [["Expected", expected, "exact"], ["Found", observed, "exact found"]]),
    ["Payee", found.payee?.address, "exact"],
    ["Payee proven by", found.payee?.proven_by],
    ["Price", found.price && `${found.price.amount} of ${found.price.asset}`, "exact"],
    ["Network", found.price?.network, "exact"],
    ["Asked at", answer.decision?.route?.url, "exact"],
    ["Checked", found.checked?.join(", ")],
    ["Checks", found.checks?.map((check) => `${check.check}: ${check.status}`).join(", ")],
    ["Not checked", found.unchecked?.join(", ")],
    ["Holds until", found.valid_until],
  ];
  const advice = "abort" in found ? (found.abort ? ": do not pay" : ": it may be paid") : "";
  return element("div", { className: `ruling ${TONES[word] ?? "open"}` },
    element("p", { textContent: capitalised(word) + advice }), element("dl", {}, ...said(facts)));
}

/** The available facts as rows, without those already shown above. */
function said(facts) {
  const before = new Set();
  return facts.filter(([, value]) => value).map(([label, value, className = ""]) => [label, String(value), className])
    .filter(([, value]) => !before.has(value.toLowerCase()) && before.add(value.toLowerCase()))
    .map(([label, textContent, className]) =>
      element("div", {}, element("dt", { textContent: label }), element("dd", { textContent, className })));
}

/** Requests a result and shows it. */
async function rule(output, path, body) {
  const signal = supersede(output);
  output.textContent = "Judging…";
  try {
    const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body, signal });
    const found = await answer.json();
    signal.throwIfAborted();
    output.replaceChildren(ruling(found));
  } catch {
    if (!signal.aborted) output.textContent = "The daemon did not answer.";
  }
}

/** Submits a document that the agent of `name` sent. */
function judge(event, name) {
  event.preventDefault();
  const { paper, verb, url } = event.target.elements;
  const output = event.target.querySelector("output");
  const pasted = read(paper.value);
  if (!pasted) {
    supersede(output);
    output.textContent = "This is no JSON.";
    return;
  }
  const { path, body } = question(pasted, name, verb.value, url.value);
  rule(output, path, body);
}

/** A form with which the daemon queries the seller's terms, if that is permitted. */
function addSeller(hero) {
  const seller = element("form", { className: "papers" },
    element("h2", { id: "seller", textContent: "Ask what it demands" }),
    element("p", { textContent: `This daemon asks the seller of ${hero.dataset.name} for its payment terms, and judges them. Nothing is paid.` }),
    element("label", { htmlFor: "sold", textContent: "Verb to ask for" }),
    element("input", { id: "sold", name: "verb", value: hero.dataset.verb, required: true, autocomplete: "off" }),
    element("button", { textContent: "Ask the seller" }),
    element("output", {}));
  seller.setAttribute("aria-labelledby", "seller");
  seller.querySelector("output").setAttribute("aria-live", "polite");
  seller.addEventListener("submit", (event) => {
    event.preventDefault();
    const body = JSON.stringify({ name: hero.dataset.name, verb: seller.elements.verb.value });
    rule(seller.querySelector("output"), hero.dataset.seller, body);
  });
  result.append(seller);
}

function addPapers() {
  const hero = result.querySelector(".hero[data-verb]");
  if (!hero) return;
  if (hero.dataset.seller) addSeller(hero);
  const papers = element("form", { className: "papers" },
    element("h2", { id: "papers", textContent: "Judge what it sent" }),
    element("p", { textContent: "Paste the payment terms that it demands, or a receipt that it gave. Nothing is paid, and nobody else is asked." }),
    element("label", { htmlFor: "paper", textContent: "Payment terms or a receipt, as JSON" }),
    element("textarea", { id: "paper", name: "paper", rows: 5, required: true, spellcheck: false }),
    element("label", { htmlFor: "verb", textContent: "Verb that is to be paid" }),
    element("input", { id: "verb", name: "verb", value: hero.dataset.verb, autocomplete: "off" }),
    element("label", { htmlFor: "url", textContent: "URL that answered with the terms" }),
    element("input", { id: "url", name: "url", inputMode: "url", autocomplete: "off", spellcheck: false, maxLength: 2048 }),
    element("button", { textContent: "Judge" }),
    element("output", {}));
  papers.setAttribute("aria-labelledby", "papers");
  papers.querySelector("output").setAttribute("aria-live", "polite");
  papers.addEventListener("submit", (event) => judge(event, hero.dataset.name));
  result.append(papers);
}

function dress() {
  addCopyButtons();
  addPapers();
}

form.addEventListener("submit", ask);
addEventListener("popstate", () => {
  if (place() !== shown) location.reload();
});
dress();
