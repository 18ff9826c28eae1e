//! Renders the page: the form, the verdict as a headline, the diagram of the resolution, each reason, and the rest of
//! the verdict.

use std::borrow::Cow;

use clresolve_core::name::EnsName;
use clresolve_core::name_hint::{NameHint, NoName};
use clresolve_core::reading::Grade;
use clresolve_core::reason::{Code, Effect, Fixer, Reason, Refusal, Step, title_of};
use clresolve_core::state::State;
use clresolve_core::text::{capitalized, in_shell};
use clresolve_payment::check::CheckAnswer;
use clresolve_resolver::config::{ChainConfig, DEFAULT_PROFILE};
use clresolve_verdict::verdict::{Anchor, Depth, Identity, Served, Verdict};
use serde_json::Value;

use super::html::{code, fact, facts, foreign, grouped, link, moment, verbatim};
use super::walk::{self, Mark, sign};
use super::{samples, seller};

/// What a proven identity implies, as HTML: no verdict decides whom to pay.
const WHOM_TO_PAY: &str =
    "This does not cover whom to pay: <code>POST /v1/decisions</code> judges the terms of a seller.";

/// The name of the sandbox network. Its verdicts prove nothing.
const SANDBOX: &str = clresolve_core::world::SANDBOX;

/// Coin types of EVM chains are the chain ID with this bit (ENSIP-11). The bit alone stands for all of them (ENSIP-19).
const EVM_COIN: u64 = 0x8000_0000;

/// Ether's own coin type (SLIP-44).
const ETHER_COIN: u64 = 60;

/// Maximum number of addresses and endpoints that are listed. A name has one for each configured chain.
const MAX_LISTED: usize = 20;

/// The query of a page, as typed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PageQuery<'a> {
    pub(super) name: &'a str,
    pub(super) profile: Option<&'a str>,
    pub(super) depth: Option<Depth>,
    /// Whether the URL of a seller is a question too.
    pub(super) accepts_urls: bool,
}

impl PageQuery<'_> {
    /// The query's choices besides the name, keyed by parameter.
    fn choices(self) -> impl Iterator<Item = (&'static str, String)> {
        let profile = self.profile.map(|profile| ("profile", profile.to_owned()));
        profile.into_iter().chain(self.depth.map(|depth| ("depth", depth.to_string())))
    }
}

/// The gate's view of a name.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtGate<'a> {
    /// The verdict under the gate's own rules.
    pub(super) verdict: &'a Verdict,
    /// The code of the gate's objection to the agent.
    pub(super) objection: Option<&'static str>,
}

/// What the page shows about a name.
#[derive(Debug)]
pub(super) enum Shown<'a> {
    /// What is proven about the name.
    Verdict {
        verdict: &'a Verdict,
        /// The gate's decision, or why it could not be obtained.
        gate: Result<AtGate<'a>, Refusal>,
        /// The route through which the seller is queried, if that is permitted.
        sellers: Option<&'static str>,
        /// The network that was queried.
        chain: &'a ChainConfig,
    },
    /// Who is paid by the seller at the URL that was typed.
    Seller(&'a CheckAnswer),
    /// Why the typed text is not an ENS name.
    NoName(NoNameShown<'a>),
    /// Why there is no answer, with details.
    Refusal(Refusal, &'a str),
}

/// Why the typed text is not an ENS name.
#[derive(Debug)]
pub(super) struct NoNameShown<'a> {
    /// A sentence. It may contain foreign text.
    why: Cow<'a, str>,
    meant: Option<Cow<'a, str>>,
}

impl<'a> NoNameShown<'a> {
    /// Recognises text that is not an ENS name, before the resolution. A name without a dot counts as a typing error.
    pub(super) fn recognized(typed: &'a str) -> Option<Self> {
        if let Some(NameHint { what, meant }) = NameHint::of(typed) {
            let why = match what {
                NoName::Entry => "This is the entry of an agent.",
                NoName::Url => "This is a URL.",
                NoName::Address => "This is an address.",
                NoName::Padded => "An ENS name has no spaces around it and no dot at its end.",
            };
            return Some(Self { why: why.into(), meant: meant.map(Cow::Borrowed) });
        }
        if typed.contains('.') {
            return None;
        }
        let meant = format!("{typed}.eth");
        let meant = EnsName::parse(&meant).is_ok().then_some(Cow::Owned(meant));
        Some(Self { why: "An ENS name has a dot, as in agent.eth.".into(), meant })
    }

    /// The explanation from the verdict, if the text has no normal form.
    pub(super) fn of(verdict: &'a Verdict) -> Option<Self> {
        let reason = verdict.reasons.iter().find(|reason| reason.code == Code::NameInvalid)?;
        let why = reason.observed.as_ref().map_or_else(String::new, |rule| format!("{}.", capitalized(rule)));
        Some(Self { why: why.into(), meant: None })
    }
}

/// The page before a name is entered.
pub(super) fn start(query: PageQuery<'_>, profile: &str, chain: &ChainConfig) -> String {
    let lead = format!(
        "<p class=\"lead\">An ENS name says where an agent’s card is, what its hash is, and which entry to call. This page \
         proves that they belong together, or says what is wrong. It asks the chain, the web host and IPFS, and believes none of them alone. \
         Rules: {}.</p>\n",
        code(profile)
    );
    let samples = if chain.world == SANDBOX { samples::section() } else { "" };
    let result = lead + samples + &walk::waiting();
    document("clresolve: is this agent real?", "start", query, &result)
}

pub(super) fn write(query: PageQuery<'_>, shown: &Shown<'_>) -> String {
    match shown {
        Shown::Verdict { verdict, gate, sellers, chain } => {
            let title = format!("{}: {}", headline(verdict, *gate).1, foreign(name_of(verdict)));
            document(&title, "about", query, &of_verdict(query, verdict, *gate, *sellers, chain))
        }
        Shown::Seller(check) => {
            let title = format!("{}: {}", capitalized(check.decision.as_str()), foreign(query.name));
            let reasons: String = check.reasons.iter().map(reason).collect();
            document(&title, "about", query, &seller::of(query.name, check, &reasons))
        }
        Shown::NoName(shown) => {
            let title = format!("Not an ENS name: {}", foreign(query.name));
            document(&title, "about", query, &of_no_name(query, shown))
        }
        Shown::Refusal(refusal, detail) => document("No answer", "about", query, &of_refusal(*refusal, detail)),
    }
}

/// Choices that also apply to the next question, unless the user clears them.
fn choices(query: PageQuery<'_>) -> String {
    let choice = |(key, value): (&str, String)| {
        let (value, shown) = (verbatim(&value), code(&value));
        format!("<label><input type=\"checkbox\" name=\"{key}\" value=\"{value}\" checked> {key} {shown}</label>")
    };
    let choices: String = query.choices().map(choice).collect();
    if choices.is_empty() { choices } else { format!("<p class=\"choices\">Judged by: {choices}</p>\n") }
}

fn document(title: &str, class: &str, query: PageQuery<'_>, result: &str) -> String {
    format!(
        r##"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="stylesheet" href="/explorer.css">
<script src="/explorer.js" defer></script>
</head>
<body class="{class}">
<a class="leap" href="#result">To the result</a>
<header class="top"><a class="brand" href="/">clresolve</a><span class="motto">Proof, not score.</span></header>
<main>
<form id="ask" role="search" action="/" method="get">
<h1><label for="name">Is this agent real?</label></h1>
<div class="field"><input id="name" name="name" value="{name}" required maxlength="{longest}" autocomplete="off"
 autocapitalize="none" spellcheck="false" inputmode="url" placeholder="agent.eth" aria-describedby="hint">
<button>Check</button></div>
<p id="hint" class="hint">The ENS name of an agent, such as summarizeagent.eth{or_url}</p>
{choices}</form>
<p id="live" class="unseen" role="status"></p>
<div id="result" tabindex="-1">
{result}</div>
</main>
<footer>clresolve {version}. No score, no sign-up, no outside resource. <a href="/openapi.json">The same over
HTTP</a></footer>
</body>
</html>
"##,
        name = verbatim(query.name),
        longest = if query.accepts_urls { 2048 } else { 255 },
        or_url = if query.accepts_urls { ", or the URL of an x402 seller" } else { "" },
        choices = choices(query),
        version = env!("CARGO_PKG_VERSION"),
    )
}

fn of_no_name(query: PageQuery<'_>, shown: &NoNameShown<'_>) -> String {
    let meant = shown.meant.as_ref().map(|name| {
        format!("<p class=\"advice\">Did you mean <a href=\"{}\">{}</a>?</p>", link_to(name, query), foreign(name))
    });
    format!(
        "<section class=\"hero no-name\" aria-labelledby=\"state\"><h2 id=\"state\"><span class=\"seal\">{}</span>\
         <span class=\"state\">Not an ENS name</span> <span class=\"name\">{}</span></h2>\
         <p class=\"summary\">{}</p>{}</section>\n{}",
        sign(Mark::Skip),
        foreign(query.name),
        foreign(&shown.why),
        meant.unwrap_or_default(),
        walk::waiting(),
    )
}

fn of_refusal(refusal: Refusal, detail: &str) -> String {
    let detail = if detail.is_empty() { String::new() } else { format!("<p>{}</p>", foreign(detail)) };
    format!(
        "<section class=\"hero refusal\"><h2><span class=\"seal\">{}</span><span class=\"state\">No answer</span></h2>\
         <p class=\"summary\">{}</p>{detail}<p>Code: <code>{refusal}</code></p></section>\n{}",
        sign(Mark::Unknown),
        refusal.title(),
        walk::waiting(),
    )
}

fn of_verdict(
    query: PageQuery<'_>,
    verdict: &Verdict,
    gate: Result<AtGate<'_>, Refusal>,
    sellers: Option<&str>,
    chain: &ChainConfig,
) -> String {
    [
        hero(verdict, gate, sellers),
        walk::of(verdict),
        reasons(query, verdict),
        format!(
            "<div class=\"grid\">{}{}{}{}{}</div>\n",
            agent(verdict),
            records(verdict),
            payee(verdict),
            memory(verdict),
            commands(verdict, chain),
        ),
    ]
    .concat()
}

/// The normalized name, or else the name as typed.
fn name_of(verdict: &Verdict) -> &str {
    verdict.name.normalized.as_deref().unwrap_or(&verdict.name.input)
}

/// The headline with the state and what to do. `seller` is the route through which the script queries the seller if the
/// gate admits the agent.
fn hero(verdict: &Verdict, gate: Result<AtGate<'_>, Refusal>, seller: Option<&str>) -> String {
    let name = name_of(verdict);
    let is_held = verdict.state == State::Trusted && !passes(gate);
    let (mark, word) = headline(verdict, gate);
    let typed = match &verdict.name.normalized {
        Some(normal) if *normal != verdict.name.input => {
            format!("<p class=\"typed\">typed as {}</p>", code(&verdict.name.input))
        }
        _ => String::new(),
    };
    let is_sandbox = verdict.anchor.as_ref().is_some_and(|anchor| anchor.world == SANDBOX);
    let world = if is_sandbox {
        "<p class=\"world\"><strong>Sandbox.</strong> These names are samples; this proves nothing about real ones.</p>"
    } else {
        ""
    };
    format!(
        "<section class=\"hero {state}{held}\" aria-labelledby=\"state\" data-name=\"{sent}\" \
         data-verb=\"{verb}\"{seller}>\
         <h2 id=\"state\"><span class=\"seal\">{sign}</span><span class=\"state\">{word}</span> \
         <span class=\"name\">{name}</span></h2>{typed}\
         <p class=\"summary\">{summary}</p><p class=\"advice\">{advice}</p>{rules}{world}</section>\n",
        state = verdict.state,
        held = if is_held { " held" } else { "" },
        seller = seller
            .filter(|_| verdict.state == State::Trusted && !is_held)
            .map(|route| format!(" data-seller=\"{route}\""))
            .unwrap_or_default(),
        sign = sign(mark),
        name = foreign(name),
        sent = verbatim(name),
        verb = verdict
            .identity
            .as_ref()
            .and_then(|identity| identity.verbs.first())
            .map(|verb| verbatim(verb))
            .unwrap_or_default(),
        summary = foreign(&verdict.summary),
        advice = advice(verdict, gate),
        rules = rules(verdict, gate),
    )
}

/// The conclusion for a reader who stops here. A trusted verdict is shown as "trusted" only if the gate admits the
/// agent.
fn headline(verdict: &Verdict, gate: Result<AtGate<'_>, Refusal>) -> (Mark, String) {
    match (verdict.state, gate) {
        (State::Trusted, Ok(AtGate { objection: Some(_), .. })) => (Mark::Fail, "Denied".to_owned()),
        (State::Trusted, Err(_)) => (Mark::Unknown, "Undecided".to_owned()),
        (state, _) => (state.into(), capitalized(state.as_str())),
    }
}

fn passes(gate: Result<AtGate<'_>, Refusal>) -> bool {
    gate.is_ok_and(|gate| gate.objection.is_none())
}

/// The rules as HTML, if they differ from the gate's.
fn rules(verdict: &Verdict, gate: Result<AtGate<'_>, Refusal>) -> String {
    let of = |verdict: &Verdict| format!("{} to the depth {}", code(&verdict.profile.id), verdict.profile.depth);
    let (used, of_gate) = (of(verdict), gate.map(|gate| of(gate.verdict)));
    let gate = match of_gate {
        Ok(of_gate) if of_gate == used => return String::new(),
        Ok(of_gate) if passes(gate) => format!("The gate judges by {of_gate}, and lets it pass."),
        Ok(of_gate) => format!("The gate judges by {of_gate}, and denies it."),
        Err(refusal) => format!("The gate’s own rules were not asked: <code>{refusal}</code>."),
    };
    format!("<p class=\"rules\">Judged by {used}. {gate}</p>")
}

/// The recommended action, as HTML.
fn advice(verdict: &Verdict, gate: Result<AtGate<'_>, Refusal>) -> String {
    let first = verdict.reasons.first();
    match verdict.state {
        State::Trusted => at_gate(gate),
        State::Untrusted => match first.map(|reason| reason.code.entry().fixer) {
            Some(Fixer::Asker) => "Do not call or pay it. Check the spelling of the name.".to_owned(),
            Some(Fixer::Operator) => "Do not call or pay it: the rules in force here do not admit it.".to_owned(),
            Some(Fixer::Nobody) => "Do not call or pay it yet: this passes with time.".to_owned(),
            Some(Fixer::Publisher) | None => "Do not call or pay it; its publisher has to fix this.".to_owned(),
        },
        State::Indeterminate => format!("Do not rely on it yet.{}", when_to_ask_again(verdict)),
    }
}

/// When asking again may give a different answer, as the end of a paragraph.
fn when_to_ask_again(verdict: &Verdict) -> String {
    match (verdict.reasons.first(), verdict.freshness.retry_after) {
        // An earlier question costs a resolution and finds no newer finalized block.
        (Some(reason), _) if reason.code == Code::RecordPending => " Ask again in about 15 minutes.".to_owned(),
        (Some(reason), Some(seconds)) if reason.retryable => format!(" Ask again in {seconds} s."),
        _ => String::new(),
    }
}

/// The recommended action for a trusted agent: it follows the gate's decision.
fn at_gate(gate: Result<AtGate<'_>, Refusal>) -> String {
    let Ok(AtGate { verdict, objection }) = gate else { return "Do not rely on it yet.".to_owned() };
    if let Some(slug) = objection {
        let title = title_of(slug).unwrap_or_default();
        return format!("Do not call or pay it: the gate denies it, {}. {}", code(slug), foreign(title));
    }
    match verdict.identity.as_ref().and_then(|identity| identity.entry.as_deref()) {
        Some(entry) => format!("The name is bound to this card and to the entry {}. {WHOM_TO_PAY}", code(entry)),
        None => format!("The name is bound to this card. {WHOM_TO_PAY}"),
    }
}

/// Every reason: its meaning, the expected and observed values, and the fix.
fn reasons(query: PageQuery<'_>, verdict: &Verdict) -> String {
    let list: String = verdict.reasons.iter().map(reason).collect();
    let near_misses = verdict.profile.near_misses.iter();
    let near: String =
        near_misses.map(|near| near_miss(PageQuery { profile: Some(&near.profile), ..query }, verdict)).collect();
    let heading = match verdict.reasons.len() {
        0 => {
            return format!(
                "<section class=\"reasons none\"><h2>Reasons</h2><p>None: every step holds.</p></section>\n{near}"
            );
        }
        1 => "One reason".to_owned(),
        more => format!("{more} reasons"),
    };
    format!(
        "<section class=\"reasons\" aria-labelledby=\"reasons\"><h2 id=\"reasons\">{heading}</h2>\n{list}{near}</section>\n"
    )
}

/// The same question under rules that the evidence satisfies.
fn near_miss(query: PageQuery<'_>, verdict: &Verdict) -> String {
    format!(
        "<p class=\"near\">The same evidence is trusted under {}. <a href=\"{}\">Ask under these rules</a></p>\n",
        code(query.profile.unwrap_or_default()),
        link_to(name_of(verdict), query),
    )
}

/// The URL of the page for `name` with the choices of `query`.
fn link_to(name: &str, query: PageQuery<'_>) -> String {
    link([("name", name.to_owned())].into_iter().chain(query.choices()))
}

fn reason(reason: &Reason) -> String {
    let (class, word, mark) = match reason.effect {
        Effect::Fail => ("fail", "fails", Mark::Fail),
        Effect::Unknown => ("unknown", "open", Mark::Unknown),
        Effect::Warn => ("warn", "warning", Mark::Skip),
    };
    let entry = reason.code.entry();
    let rule = reason.requirement.as_deref().map_or_else(String::new, |rule| format!(", rule {}", foreign(rule)));
    let place = reason.place.as_deref().map_or_else(String::new, |place| format!(", at {}", code(place)));
    let values = [("Expected", "expected", &reason.expected), ("Observed", "observed", &reason.observed)];
    let values: String = values
        .into_iter()
        .filter_map(|(label, class, value)| {
            let value = foreign(value.as_deref()?);
            Some(format!("<div class=\"{class}\"><dt>{label}</dt><dd><code>{value}</code></dd></div>"))
        })
        .collect();
    let values = if values.is_empty() { String::new() } else { format!("<dl class=\"values\">{values}</dl>") };
    let fix = reason.fix.as_deref().map_or_else(String::new, fix);
    format!(
        "<article class=\"reason {class}\"><h3><span class=\"dot\">{sign}</span><code>{slug}</code></h3>\
         <p class=\"where\">{word}, in the step {step}{rule}{place}</p><p>{message}</p>{values}{fix}\
         <details><summary>What <code>{slug}</code> means</summary><p>{explanation}</p></details></article>\n",
        sign = sign(mark),
        slug = reason.code,
        step = reason.step,
        message = foreign(&reason.message),
        explanation = foreign(entry.explanation),
    )
}

/// The fix, with a text record line if one is proposed.
fn fix(fix: &str) -> String {
    match fix.strip_prefix("set ").and_then(|line| line.split_once(" to ")) {
        Some((key, value)) => format!(
            "<div class=\"fix\"><p><strong>Fix:</strong> if what was observed is what its publisher meant, set \
             this text record.</p>{}</div>",
            copied(&format!("{} = {}", foreign(key), foreign(value)))
        ),
        None => format!("<div class=\"fix\"><p><strong>Fix:</strong> {}</p></div>", foreign(fix)),
    }
}

/// A line that is meant to be copied. `line` is HTML without elements. The script adds the copy button.
fn copied(line: &str) -> String {
    format!("<pre class=\"copy\" tabindex=\"0\"><code>{line}</code></pre>")
}

fn agent(verdict: &Verdict) -> String {
    let Some(identity) = &verdict.identity else {
        return facts("agent", "The agent", "No card was read, so there is nothing to say of it.", &[]);
    };
    facts("agent", "The agent", "As its card says.", &described(identity))
}

fn described(identity: &Identity) -> Vec<String> {
    let owner = identity.owner.as_ref().map(|owner| {
        let proven = if owner.proven { "proven on chain" } else { "not proven" };
        (code(&owner.name), proven)
    });
    let words = |values: &[String]| values.iter().map(|value| code(value)).collect::<Vec<_>>().join(" ");
    let optional = [
        ("Owner", owner.map(|(name, proven)| format!("{name} <span class=\"soft\">{proven}</span>"))),
        ("Class", identity.class.as_deref().map(foreign)),
        ("Status", identity.status.as_deref().map(foreign)),
        ("Version", identity.version.as_deref().map(foreign)),
        ("Verbs", Some(words(&identity.verbs)).filter(|words| !words.is_empty())),
        ("Entry", identity.entry.as_deref().map(code)),
        ("Networks", Some(words(&identity.networks)).filter(|words| !words.is_empty())),
        ("Card’s CID", identity.card.cid.as_deref().map(code)),
        ("Card’s SHA-256", Some(code(&identity.card.sha256)).filter(|_| !identity.card.sha256.is_empty())),
    ];
    optional.into_iter().filter_map(|(label, value)| Some(fact(label, &value?))).collect()
}

/// Who vouches for the records, and at which block.
fn records(verdict: &Verdict) -> String {
    const HEADING: &str = "Who vouches for the records";
    let Some(anchor) = &verdict.anchor else {
        return facts("records", HEADING, "Nobody: nothing was read from the chain.", &[]);
    };
    let block = &anchor.block;
    let optional = [
        ("Resolver", anchor.resolver.as_deref().map(code)),
        ("Wildcard of", anchor.wildcard.as_deref().map(code)),
        ("Offchain", anchor.offchain.then(|| "through CCIP-Read".to_owned())),
    ];
    let mut rows = vec![
        fact("Chain", &format!("{} <span class=\"soft\">{}</span>", code(&anchor.chain), foreign(&anchor.world))),
        fact(
            "Block",
            &format!(
                "{} <span class=\"soft\">{}, {}</span>",
                grouped(block.number),
                foreign(&block.tag),
                moment(&block.timestamp)
            ),
        ),
        fact("Block hash", &code(&block.hash)),
    ];
    rows.extend(optional.into_iter().filter_map(|(label, value)| Some(fact(label, &value?))));
    facts("records", HEADING, &vouched(anchor), &rows)
}

fn vouched(anchor: &Anchor) -> String {
    let proof = &anchor.proof;
    match proof.grade {
        Grade::SingleRpc => "One endpoint says so (<code>single-rpc</code>). The gate asks for more, unless it is the \
                             operator’s own."
            .to_owned(),
        Grade::Quorum => {
            format!("{} of {} endpoints of different operators agree (<code>quorum</code>).", proof.agreed, proof.asked)
        }
        Grade::StateProof => format!(
            "Proven against the state of the chain (<code>state-proof</code>); {} of {} operators gave the header.",
            proof.agreed, proof.asked
        ),
        Grade::ConsensusProof if proof.agreed == 0 => {
            "Proven against the state of the chain, under a header that the chain’s validators signed \
             (<code>consensus-proof</code>)."
                .to_owned()
        }
        Grade::ConsensusProof => format!(
            "Proven against the state of the chain, under a header that the chain’s validators signed \
             (<code>consensus-proof</code>); {} of {} operators gave the same header.",
            proof.agreed, proof.asked
        ),
        _ => format!("{} of {} operators agree.", proof.agreed, proof.asked),
    }
}

/// The addresses that the name publishes, and its endpoints.
fn payee(verdict: &Verdict) -> String {
    let records = verdict.steps.iter().find(|report| report.step == Step::Records);
    let of = |member: &str| records.and_then(|report| report.evidence[member].as_object());
    let set = |member: &str| of(member).into_iter().flatten().filter(|(_, value)| !value.is_null()).take(MAX_LISTED);
    let mut rows: Vec<String> =
        set("addresses").map(|(coin, value)| fact(&coin_label(coin), &published(value))).collect();
    let lead = if rows.is_empty() {
        "The name publishes no address. A payment is undecided until something else proves its payee."
    } else {
        "A payment to another address than these takes a signed offer, an ERC-8004 registration or the operator's list."
    };
    rows.extend(set("endpoints").map(|(key, value)| fact(&code(key), &published(value))));
    facts("payee", "Whom to pay", lead, &rows)
}

/// The label of a coin type, as HTML: its network.
fn coin_label(coin: &str) -> String {
    match coin.parse::<u64>() {
        Ok(ETHER_COIN) => "Ether (<code>eip155:1</code>)".to_owned(),
        Ok(EVM_COIN) => "Any EVM chain".to_owned(),
        Ok(number) if number > EVM_COIN => format!("<code>eip155:{}</code>", number - EVM_COIN),
        _ => format!("Coin type {}", foreign(coin)),
    }
}

/// The value of a record, or why it is unusable.
fn published(value: &Value) -> String {
    match value.as_str() {
        Some(text) => code(text),
        None => format!("unusable: {}", code(&value.to_string())),
    }
}

/// What this daemon has cached and remembered about the name.
fn memory(verdict: &Verdict) -> String {
    let freshness = &verdict.freshness;
    let served = match freshness.served {
        Served::Cached => "from the cache",
        Served::Stale => "from the cache, no longer fresh",
        _ => "from a run of its own",
    };
    let mut rows = vec![
        fact("This answer", served),
        fact("Checked", &moment(&freshness.checked_at.to_string())),
        fact("Fresh until", &moment(&freshness.fresh_until.to_string())),
    ];
    let continuity = verdict.steps.iter().find(|report| report.step == Step::Continuity).map(|report| &report.evidence);
    let number = |member: &str| continuity.and_then(|evidence| evidence[member].as_u64());
    if let (Some(first), Some(last)) = (number("first_block"), number("last_block")) {
        rows.push(fact("Seen trusted", &format!("from block {} to block {}", grouped(first), grouped(last))));
    }
    rows.extend(number("versions").map(|versions| fact("Versions seen", &grouped(versions))));
    facts("memory", "What this daemon remembers", "", &rows)
}

/// The same question for other clients. The program's own defaults are omitted, those of this daemon are not.
fn commands(verdict: &Verdict, chain: &ChainConfig) -> String {
    let Some(name) = &verdict.name.normalized else { return String::new() };
    let world = world(chain);
    let used = &verdict.profile;
    let profile = Some(used.id.as_str()).filter(|id| *id != DEFAULT_PROFILE);
    let profile = profile.map_or_else(String::new, |id| format!("--profile {} ", in_shell(id)));
    let depth = Some(used.depth).filter(|depth| *depth != Depth::default());
    let depth = depth.map_or_else(String::new, |depth| format!("--depth {depth} "));
    let ends = if name.starts_with('-') { "-- " } else { "" };
    let command = format!("clresolve {world}{profile}{depth}{ends}{}", in_shell(name));
    let lead = "The same from a terminal, by the endpoints that are configured there; it trusts this page in nothing.";
    let id = code(&verdict.id);
    let head = facts("command", "Ask it yourself", lead, &[fact("Verdict", &id)]);
    head.replace("</section>", &format!("{}</section>", copied(&verbatim(&command))))
}

/// The command line options that select the same network, each followed by a space. Endpoints are omitted because their
/// URLs may contain keys.
fn world(chain: &ChainConfig) -> String {
    let usual = ChainConfig::default();
    let is_sandbox = chain.world == SANDBOX;
    let sandbox = is_sandbox.then(|| "--sandbox ".to_owned());
    let id = (!is_sandbox && chain.id != usual.id).then(|| format!("--chain-id {} ", chain.id));
    let resolver = (!is_sandbox && chain.universal_resolver != usual.universal_resolver)
        .then(|| format!("--universal-resolver {} ", chain.universal_resolver));
    let block = (chain.block != usual.block).then(|| format!("--block {} ", chain.block));
    let proof = chain.proof.map(|proof| format!("--proof {proof} "));
    let quorum = chain.quorum.map(|agree| format!("--quorum {agree} "));
    [sandbox, id, resolver, block, proof, quorum].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clresolve_resolver::config::{Config, Layer};

    #[test]
    fn another_world_and_another_demand_are_asked_for() {
        assert_eq!(world(&ChainConfig::default()), "");
        let resolver = "0x5FbDB2315678afecb367f032d93F642f64180aa3";
        let text = format!(
            "world = \"dev\"\nchain-id = 31337\nuniversal-resolver = \"{resolver}\"\nblock = \"latest\"\n\
             proof = \"quorum\"\nquorum = 3\nrpc = [\"https://a.example\", \"https://b.example\", \"https://c.example\"]\n"
        );
        let layer = Layer::from_toml(&text, "f.toml").expect("a configuration");
        let mut chain = Config::default().with([layer]).unwrap_or_else(|e| panic!("{e}")).chain;
        let demand = "--block latest --proof quorum --quorum 3 ";
        assert_eq!(world(&chain), format!("--chain-id 31337 --universal-resolver {resolver} {demand}"));
        chain.world = SANDBOX.to_owned();
        assert_eq!(world(&chain), format!("--sandbox {demand}"), "it has a chain of its own");
    }

    #[test]
    fn coin_types_are_networks() {
        assert_eq!(coin_label("60"), "Ether (<code>eip155:1</code>)");
        assert_eq!(coin_label("2147492101"), "<code>eip155:8453</code>");
        assert_eq!([coin_label("2147483648"), coin_label("0")], ["Any EVM chain", "Coin type 0"]);
    }
}
