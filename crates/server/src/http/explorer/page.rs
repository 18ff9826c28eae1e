//! Renders the page: the form, the verdict as a headline, the diagram of the resolution, each reason, and the rest of
//! the verdict.

use std::borrow::Cow;

use clresolve_core::name::EnsName;
use clresolve_core::name_hint::{NameHint, NoName};
use clresolve_core::reading::{Grade, Proof};
use clresolve_core::reason::{Code, Effect, Fixer, Reason, Refusal, Step, title_of};
use clresolve_core::state::State;
use clresolve_core::text::{capitalized, in_shell};
use clresolve_payment::check::CheckAnswer;
use clresolve_resolver::config::{ChainConfig, DEFAULT_PROFILE};
use clresolve_verdict::verdict::{Anchor, Depth, Identity, ProfileUsed, Served, Verdict};
use maud::{DOCTYPE, Markup, Render, html};
use serde_json::Value;

use super::html::{code, facts, foreign, grouped, link, moment, section};
use super::walk::{self, Mark, sign};
use super::{samples, seller};

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
pub(super) fn start(query: PageQuery<'_>, profile: &str, chain: &ChainConfig) -> Markup {
    let result = html! {
        p.lead {
            "An ENS name says where an agent’s card is, what its hash is, and which entry to call. This page proves \
             that they belong together, or says what is wrong. It asks the chain, the web host and IPFS, and believes \
             none of them alone. Rules: " (code(profile)) "."
        }
        @if chain.world == SANDBOX { (samples::section()) }
        (walk::waiting())
    };
    document("clresolve: is this agent real?", "start", query, &result)
}

pub(super) fn write(query: PageQuery<'_>, shown: &Shown<'_>) -> Markup {
    let title = |word: &str, name: &str| html! { (word) ": " (foreign(name)) };
    match shown {
        Shown::Verdict { verdict, gate, sellers, chain } => {
            let title = title(&conclusion(verdict, *gate).1, name_of(verdict));
            document(title, "about", query, &of_verdict(query, verdict, *gate, *sellers, chain))
        }
        Shown::Seller(check) => {
            let title = title(&capitalized(check.decision.as_str()), query.name);
            document(title, "about", query, &seller::of(query.name, check, &articles(&check.reasons)))
        }
        Shown::NoName(shown) => {
            document(title("Not an ENS name", query.name), "about", query, &of_no_name(query, shown))
        }
        Shown::Refusal(refusal, detail) => document("No answer", "about", query, &of_refusal(*refusal, detail)),
    }
}

/// Choices that also apply to the next question, unless the user clears them.
fn choices(query: PageQuery<'_>) -> Markup {
    let mut choices = query.choices().peekable();
    html! {
        @if choices.peek().is_some() {
            p.choices {
                "Judged by: "
                @for (key, value) in choices {
                    label { input type="checkbox" name=(key) value=(value) checked; " " (key) " " (code(&value)) }
                }
            }
        }
    }
}

fn document(title: impl Render, class: &str, query: PageQuery<'_>, result: &Markup) -> Markup {
    let (longest, or_url) = if query.accepts_urls { (2048, ", or the URL of an x402 seller") } else { (255, "") };
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                link rel="stylesheet" href="/explorer.css";
                script src="/explorer.js" defer {}
            }
            body class=(class) {
                a.leap href="#result" { "To the result" }
                header.top { a.brand href="/" { "clresolve" } span.motto { "Proof, not score." } }
                main {
                    form #ask role="search" action="/" method="get" {
                        h1 { label for="name" { "Is this agent real?" } }
                        div.field {
                            input #name name="name" value=(query.name) required maxlength=(longest) autocomplete="off"
                                autocapitalize="none" spellcheck="false" inputmode="url" placeholder="agent.eth"
                                aria-describedby="hint";
                            button { "Check" }
                        }
                        p.hint #hint { "The ENS name of an agent, such as summarizeagent.eth" (or_url) }
                        (choices(query))
                    }
                    p.unseen #live role="status" {}
                    div #result tabindex="-1" { (result) }
                }
                footer {
                    "clresolve " (env!("CARGO_PKG_VERSION")) ". No score, no sign-up, no outside resource. "
                    a href="/openapi.json" { "The same over HTTP" }
                }
            }
        }
    }
}

fn of_no_name(query: PageQuery<'_>, shown: &NoNameShown<'_>) -> Markup {
    html! {
        section.hero.no-name aria-labelledby="state" {
            (walk::headline(Mark::Skip, "Not an ENS name", query.name))
            p.summary { (foreign(&shown.why)) }
            @if let Some(name) = &shown.meant {
                p.advice { "Did you mean " a href=(link_to(name, query)) { (foreign(name)) } "?" }
            }
        }
        (walk::waiting())
    }
}

fn of_refusal(refusal: Refusal, detail: &str) -> Markup {
    html! {
        section.hero.refusal {
            h2 { span.seal { (sign(Mark::Unknown)) } span.state { "No answer" } }
            p.summary { (refusal.title()) }
            @if !detail.is_empty() { p { (foreign(detail)) } }
            p { "Code: " code { (refusal) } }
        }
        (walk::waiting())
    }
}

fn of_verdict(
    query: PageQuery<'_>,
    verdict: &Verdict,
    gate: Result<AtGate<'_>, Refusal>,
    sellers: Option<&str>,
    chain: &ChainConfig,
) -> Markup {
    html! {
        (hero(verdict, gate, sellers))
        (walk::of(verdict))
        (reasons(query, verdict))
        div.grid { (agent(verdict)) (records(verdict)) (payee(verdict)) (memory(verdict)) (commands(verdict, chain)) }
    }
}

/// The normalized name, or else the name as typed.
fn name_of(verdict: &Verdict) -> &str {
    verdict.name.normalized.as_deref().unwrap_or(&verdict.name.input)
}

/// The headline with the state and what to do. `seller` is the route through which the script queries the seller if the
/// gate admits the agent.
fn hero(verdict: &Verdict, gate: Result<AtGate<'_>, Refusal>, seller: Option<&str>) -> Markup {
    let name = name_of(verdict);
    let (mark, word) = conclusion(verdict, gate);
    let is_trusted = verdict.state == State::Trusted;
    let seller = seller.filter(|_| is_trusted && passes(gate));
    let verb = verdict.identity.as_ref().and_then(|identity| identity.verbs.first());
    html! {
        section.hero.(verdict.state).held[is_trusted && !passes(gate)] aria-labelledby="state" data-name=(name)
            data-verb=(verb.map_or("", String::as_str)) data-seller=[seller] {
            (walk::headline(mark, &word, name))
            @if name != verdict.name.input { p.typed { "typed as " (code(&verdict.name.input)) } }
            p.summary { (foreign(&verdict.summary)) }
            p.advice { (advice(verdict, gate)) }
            (rules(verdict, gate))
            @if verdict.anchor.as_ref().is_some_and(|anchor| anchor.world == SANDBOX) {
                p.world { strong { "Sandbox." } " These names are samples; this proves nothing about real ones." }
            }
        }
    }
}

/// The conclusion for a reader who stops here. A trusted verdict is shown as "trusted" only if the gate admits the
/// agent.
fn conclusion(verdict: &Verdict, gate: Result<AtGate<'_>, Refusal>) -> (Mark, String) {
    match (verdict.state, gate) {
        (State::Trusted, Ok(AtGate { objection: Some(_), .. })) => (Mark::Fail, "Denied".to_owned()),
        (State::Trusted, Err(_)) => (Mark::Unknown, "Undecided".to_owned()),
        (state, _) => (state.into(), capitalized(state.as_str())),
    }
}

fn passes(gate: Result<AtGate<'_>, Refusal>) -> bool {
    gate.is_ok_and(|gate| gate.objection.is_none())
}

/// The rules, if they differ from the gate's.
fn rules(verdict: &Verdict, gate: Result<AtGate<'_>, Refusal>) -> Markup {
    let used = &verdict.profile;
    let of = |used: &ProfileUsed| html! { (code(&used.id)) " at depth " (used.depth) };
    let are_of_gate = |gate: &ProfileUsed| gate.id == used.id && gate.depth == used.depth;
    html! {
        @match gate {
            Ok(AtGate { verdict, .. }) if are_of_gate(&verdict.profile) => {},
            Ok(AtGate { verdict, objection }) => p.rules {
                "Judged by " (of(used)) ". The gate judges by " (of(&verdict.profile)) ", and "
                (if objection.is_none() { "lets it pass." } else { "denies it." })
            },
            Err(refusal) => p.rules {
                "Judged by " (of(used)) ". The gate’s own rules were not used: " code { (refusal) } "."
            },
        }
    }
}

/// The recommended action.
fn advice(verdict: &Verdict, gate: Result<AtGate<'_>, Refusal>) -> Markup {
    let fixer = verdict.reasons.first().map(|reason| reason.code.entry().fixer);
    html! {
        @match (verdict.state, fixer) {
            (State::Trusted, _) => (at_gate(gate)),
            (State::Untrusted, Some(Fixer::Asker)) => "Do not call or pay it. Check the spelling of the name.",
            (State::Untrusted, Some(Fixer::Operator)) => {
                "Do not call or pay it: the rules in force here do not admit it."
            },
            (State::Untrusted, Some(Fixer::Nobody)) => "Do not call or pay it yet. Wait: nobody has to act.",
            (State::Untrusted, Some(Fixer::Publisher) | None) => {
                "Do not call or pay it; its publisher has to fix this."
            },
            (State::Indeterminate, _) => { "Do not rely on it yet." (when_to_ask_again(verdict)) },
        }
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
fn at_gate(gate: Result<AtGate<'_>, Refusal>) -> Markup {
    let Ok(AtGate { verdict, objection }) = gate else { return html! { "Do not rely on it yet." } };
    if let Some(slug) = objection {
        let title = title_of(slug).unwrap_or_default();
        return html! { "Do not call or pay it: the gate denies it, " (code(slug)) ". " (title) };
    }
    let entry = verdict.identity.as_ref().and_then(|identity| identity.entry.as_deref());
    html! {
        "The name is bound to this card"
        @if let Some(entry) = entry { " and to the entry " (code(entry)) }
        ". This does not cover whom to pay: " code { "POST /v1/decisions" } " judges the terms of a seller."
    }
}

/// Every reason: its meaning, the expected and observed values, and the fix.
fn reasons(query: PageQuery<'_>, verdict: &Verdict) -> Markup {
    let near = html! {
        @for near in &verdict.profile.near_misses {
            @let query = PageQuery { profile: Some(&near.profile), ..query };
            p.near {
                "The same evidence is trusted under " (code(&near.profile)) ". "
                a href=(link_to(name_of(verdict), query)) { "Ask under these rules" }
            }
        }
    };
    let heading = match verdict.reasons.len() {
        0 => return html! { section.reasons.none { h2 { "Reasons" } p { "None: every step holds." } } (near) },
        1 => "One reason".to_owned(),
        more => format!("{more} reasons"),
    };
    html! {
        section.reasons aria-labelledby="reasons" { h2 #reasons { (heading) } (articles(&verdict.reasons)) (near) }
    }
}

/// The URL of the page for `name` with the choices of `query`.
fn link_to(name: &str, query: PageQuery<'_>) -> String {
    link([("name", name.to_owned())].into_iter().chain(query.choices()))
}

fn articles(reasons: &[Reason]) -> Markup {
    html! { @for one in reasons { (reason(one)) } }
}

fn reason(reason: &Reason) -> Markup {
    let (class, word, mark) = match reason.effect {
        Effect::Fail => ("fail", "fails", Mark::Fail),
        Effect::Unknown => ("unknown", "open", Mark::Unknown),
        Effect::Warn => ("warn", "warning", Mark::Skip),
    };
    html! {
        article.reason.(class) {
            h3 { span.dot { (sign(mark)) } code { (reason.code) } }
            p.where {
                (word) ", in the step " (reason.step)
                @if let Some(rule) = &reason.requirement { ", rule " (foreign(rule)) }
                @if let Some(place) = &reason.place { ", at " (code(place)) }
            }
            p { (foreign(&reason.message)) }
            (values(reason))
            @if let Some(proposed) = &reason.fix { div.fix { (fix(proposed)) } }
            details {
                summary { "What " code { (reason.code) } " means" }
                p { (reason.code.entry().explanation) }
            }
        }
    }
}

/// The expected and observed values.
fn values(reason: &Reason) -> Markup {
    html! {
        @if reason.expected.is_some() || reason.observed.is_some() {
            dl.values {
                @if let Some(value) = &reason.expected { div.expected { dt { "Expected" } dd { (code(value)) } } }
                @if let Some(value) = &reason.observed { div.observed { dt { "Observed" } dd { (code(value)) } } }
            }
        }
    }
}

/// The fix, with a text record line if one is proposed.
fn fix(fix: &str) -> Markup {
    let Some((key, value)) = fix.strip_prefix("set ").and_then(|line| line.split_once(" to ")) else {
        return html! { p { strong { "Fix:" } " " (foreign(fix)) } };
    };
    html! {
        p { strong { "Fix:" } " if what was observed is what its publisher meant, set this text record." }
        (copied(html! { (foreign(key)) " = " (foreign(value)) }))
    }
}

/// A line that is meant to be copied. The script adds the copy button.
fn copied(line: impl Render) -> Markup {
    html! { pre.copy tabindex="0" { code { (line) } } }
}

fn agent(verdict: &Verdict) -> Markup {
    let body = match &verdict.identity {
        Some(identity) => html! { p { "As described by its card." } (described(identity)) },
        None => html! { p { "Nothing is known about the agent, because no card was read." } },
    };
    section("agent", "The agent", &body)
}

fn described(identity: &Identity) -> Markup {
    let owner = identity.owner.as_ref().map(|owner| {
        let proven = if owner.proven { "proven on chain" } else { "not proven" };
        html! { (code(&owner.name)) " " span.soft { (proven) } }
    });
    facts([
        ("Owner", owner),
        ("Class", identity.class.as_deref().map(foreign)),
        ("Status", identity.status.as_deref().map(foreign)),
        ("Version", identity.version.as_deref().map(foreign)),
        ("Verbs", words(&identity.verbs)),
        ("Entry", identity.entry.as_deref().map(code)),
        ("Networks", words(&identity.networks)),
        ("Card’s CID", identity.card.cid.as_deref().map(code)),
        ("Card’s SHA-256", Some(&*identity.card.sha256).filter(|digest| !digest.is_empty()).map(code)),
    ])
}

/// Foreign words with spaces between them. `None` if there are none.
fn words(words: &[String]) -> Option<Markup> {
    let (first, others) = words.split_first()?;
    Some(html! { (code(first)) @for word in others { " " (code(word)) } })
}

/// Who vouches for the records, and at which block.
fn records(verdict: &Verdict) -> Markup {
    let body = match &verdict.anchor {
        Some(anchor) => html! { p { (vouched(anchor)) } (read_at(anchor)) },
        None => html! { p { "Nobody: nothing was read from the chain." } },
    };
    section("records", "Who vouches for the records", &body)
}

/// Where and when the records were read.
fn read_at(anchor: &Anchor) -> Markup {
    let block = &anchor.block;
    let at = html! { (grouped(block.number)) " " span.soft { (foreign(&block.tag)) ", " (moment(&block.timestamp)) } };
    facts([
        ("Chain", Some(html! { (code(&anchor.chain)) " " span.soft { (foreign(&anchor.world)) } })),
        ("Block", Some(at)),
        ("Block hash", Some(code(&block.hash))),
        ("Resolver", anchor.resolver.as_deref().map(code)),
        ("Wildcard of", anchor.wildcard.as_deref().map(code)),
        ("Offchain", anchor.offchain.then(|| html! { "through CCIP-Read" })),
    ])
}

fn vouched(anchor: &Anchor) -> Markup {
    let Proof { grade, agreed, asked, .. } = &anchor.proof;
    let share = html! { (agreed) " of " (asked) };
    html! {
        @match grade {
            Grade::SingleRpc => {
                "Only one endpoint vouches for them (" code { "single-rpc" }
                "). The gate requires more, unless the endpoint is the operator’s own."
            },
            Grade::Quorum => { (share) " endpoints of different operators agree (" code { "quorum" } ")." },
            Grade::StateProof => {
                "Proven against the state of the chain (" code { "state-proof" } "); " (share)
                " operators reported the header."
            },
            Grade::ConsensusProof => {
                "Proven against the state of the chain, under a header that the chain’s validators signed ("
                code { "consensus-proof" } ")"
                @if *agreed > 0 { "; " (share) " operators reported the same header" }
                "."
            },
            _ => { (share) " operators agree." },
        }
    }
}

/// The addresses that the name publishes, and its endpoints.
fn payee(verdict: &Verdict) -> Markup {
    let records = verdict.steps.iter().find(|report| report.step == Step::Records);
    let of = |member: &str| records.and_then(|report| report.evidence[member].as_object());
    let set = |member: &str| of(member).into_iter().flatten().filter(|(_, value)| !value.is_null()).take(MAX_LISTED);
    let addresses: Vec<_> = set("addresses").map(|(coin, value)| (coin_label(coin), Some(published(value)))).collect();
    let lead = if addresses.is_empty() {
        "The name publishes no address. A payment is undecided until something else proves its payee."
    } else {
        "A payment to another address than these takes a signed offer, an ERC-8004 registration or the operator's list."
    };
    let endpoints = set("endpoints").map(|(key, value)| (code(key), Some(published(value))));
    section("payee", "Whom to pay", &html! { p { (lead) } (facts(addresses.into_iter().chain(endpoints))) })
}

/// The label of a coin type: its network.
fn coin_label(coin: &str) -> Markup {
    html! {
        @match coin.parse::<u64>() {
            Ok(ETHER_COIN) => { "Ether (" code { "eip155:1" } ")" },
            Ok(EVM_COIN) => "Any EVM chain",
            Ok(number) if number > EVM_COIN => code { "eip155:" (number - EVM_COIN) },
            _ => { "Coin type " (foreign(coin)) },
        }
    }
}

/// The value of a record, or why it is unusable.
fn published(value: &Value) -> Markup {
    match value.as_str() {
        Some(text) => code(text),
        None => html! { "unusable: " (code(&value.to_string())) },
    }
}

/// What this daemon has cached and remembered about the name.
fn memory(verdict: &Verdict) -> Markup {
    let freshness = &verdict.freshness;
    let served = match freshness.served {
        Served::Cached => "from the cache",
        Served::Stale => "from the cache, no longer fresh",
        _ => "from a run of its own",
    };
    let continuity = verdict.steps.iter().find(|report| report.step == Step::Continuity).map(|report| &report.evidence);
    let number = |member: &str| continuity.and_then(|evidence| evidence[member].as_u64()).map(grouped);
    let seen = number("first_block").zip(number("last_block"));
    let rows = [
        ("This answer", Some(html! { (served) })),
        ("Checked", Some(moment(&freshness.checked_at.to_string()))),
        ("Fresh until", Some(moment(&freshness.fresh_until.to_string()))),
        ("Seen trusted", seen.map(|(first, last)| html! { "from block " (first) " to block " (last) })),
        ("Versions seen", number("versions").map(|versions| html! { (versions) })),
    ];
    section("memory", "What this daemon remembers", &facts(rows))
}

/// The same question for other clients. The program's own defaults are omitted, those of this daemon are not.
fn commands(verdict: &Verdict, chain: &ChainConfig) -> Markup {
    let Some(name) = &verdict.name.normalized else { return html! {} };
    let world = world(chain);
    let used = &verdict.profile;
    let profile = Some(used.id.as_str()).filter(|id| *id != DEFAULT_PROFILE);
    let profile = profile.map_or_else(String::new, |id| format!("--profile {} ", in_shell(id)));
    let depth = Some(used.depth).filter(|depth| *depth != Depth::default());
    let depth = depth.map_or_else(String::new, |depth| format!("--depth {depth} "));
    let ends = if name.starts_with('-') { "-- " } else { "" };
    let command = format!("clresolve {world}{profile}{depth}{ends}{}", in_shell(name));
    let body = html! {
        p {
            "This command resolves the name in your terminal, through the endpoints configured there. It does not rely \
             on this page."
        }
        (facts([("Verdict", Some(code(&verdict.id)))]))
        (copied(command))
    };
    section("command", "Ask it yourself", &body)
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
        let label = |coin| coin_label(coin).into_string();
        assert_eq!(label("60"), "Ether (<code>eip155:1</code>)");
        assert_eq!(label("2147492101"), "<code>eip155:8453</code>");
        assert_eq!([label("2147483648"), label("0")], ["Any EVM chain", "Coin type 0"]);
    }
}
