//! Renders the page: the form, the verdict as a headline, the diagram of the resolution, each reason, and the rest of
//! the verdict.

use std::borrow::Cow;

use clresolve_core::name::EnsName;
use clresolve_core::name_hint::{NonNameInputHint, NonNameInputKind};
use clresolve_core::reading::{ProofGrade, ProofStrength};
use clresolve_core::reason::{
    FixerRole, Reason, ReasonCode, ReasonEffect, RefusalCode, ResolutionStep, title_for_slug,
};
use clresolve_core::state::TrustState;
use clresolve_core::text::{capitalize_first, shell_quote};
use clresolve_payment::check::SellerCheckDocument;
use clresolve_resolver::config::{DEFAULT_PROFILE, EnsChainConfig};
use clresolve_verdict::verdict::{
    AgentIdentity, AppliedProfile, ChainAnchor, ResolutionDepth, Verdict, VerdictCopyKind,
};
use maud::{DOCTYPE, Markup, Render, html};
use serde_json::Value;

use super::html::{explorer_url, fact_list, foreign_code, foreign_text, group_thousands, page_section, time_element};
use super::walk::{self, DiagramStageStatus, status_icon};
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
pub(super) struct ExplorerPageQuery<'a> {
    pub(super) name: &'a str,
    pub(super) profile: Option<&'a str>,
    pub(super) depth: Option<ResolutionDepth>,
    /// Whether the URL of a seller is a question too.
    pub(super) accepts_urls: bool,
}

impl ExplorerPageQuery<'_> {
    /// The query's choices besides the name, keyed by parameter.
    fn selected_query_parameters(self) -> impl Iterator<Item = (&'static str, String)> {
        let profile = self.profile.map(|profile| ("profile", profile.to_owned()));
        profile.into_iter().chain(self.depth.map(|depth| ("depth", depth.to_string())))
    }
}

/// The gate's view of a name.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExplorerGateView<'a> {
    /// The verdict under the gate's own rules.
    pub(super) verdict: &'a Verdict,
    /// The code of the gate's objection to the agent.
    pub(super) objection: Option<&'static str>,
}

/// What the page shows about a name.
#[derive(Debug)]
pub(super) enum ExplorerPageContent<'a> {
    /// What is proven about the name.
    Verdict {
        verdict: &'a Verdict,
        /// The gate's decision, or why it could not be obtained.
        gate: Result<ExplorerGateView<'a>, RefusalCode>,
        /// The route through which the seller is queried, if that is permitted.
        sellers: Option<&'static str>,
        /// The network that was queried.
        chain: &'a EnsChainConfig,
    },
    /// Who is paid by the seller at the URL that was typed.
    Seller(&'a SellerCheckDocument),
    /// Why the typed text is not an ENS name.
    NoName(InvalidNameExplanation<'a>),
    /// Why there is no answer, with details.
    Refusal(RefusalCode, &'a str),
}

/// Why the typed text is not an ENS name.
#[derive(Debug)]
pub(super) struct InvalidNameExplanation<'a> {
    /// A sentence. It may contain foreign text.
    why: Cow<'a, str>,
    meant: Option<Cow<'a, str>>,
}

impl<'a> InvalidNameExplanation<'a> {
    /// Recognises text that is not an ENS name, before the resolution. A name without a dot counts as a typing error.
    pub(super) fn from_typed_text(typed: &'a str) -> Option<Self> {
        if let Some(NonNameInputHint { what, meant }) = NonNameInputHint::from_text(typed) {
            let why = match what {
                NonNameInputKind::Entry => "This is the entry of an agent.",
                NonNameInputKind::Url => "This is a URL.",
                NonNameInputKind::Address => "This is an address.",
                NonNameInputKind::Padded => "An ENS name has no spaces around it and no dot at its end.",
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
    pub(super) fn from_verdict(verdict: &'a Verdict) -> Option<Self> {
        let reason = verdict.reasons.iter().find(|reason| reason.code == ReasonCode::NameInvalid)?;
        let why = reason.observed.as_ref().map_or_else(String::new, |rule| format!("{}.", capitalize_first(rule)));
        Some(Self { why: why.into(), meant: None })
    }
}

/// The page before a name is entered.
pub(super) fn start_page(query: ExplorerPageQuery<'_>, profile: &str, chain: &EnsChainConfig) -> Markup {
    let result = html! {
        p.lead {
            "An ENS name says where an agent’s card is, what its hash is, and which entry to call. This page proves \
             that they belong together, or says what is wrong. It asks the chain, the web host and IPFS, and believes \
             none of them alone. Rules: " (foreign_code(profile)) "."
        }
        @if chain.world == SANDBOX { (samples::sandbox_names_section()) }
        (walk::empty_diagram())
    };
    html_document("clresolve: is this agent real?", "start", query, &result)
}

pub(super) fn result_page(query: ExplorerPageQuery<'_>, shown: &ExplorerPageContent<'_>) -> Markup {
    let title = |word: &str, name: &str| html! { (word) ": " (foreign_text(name)) };
    match shown {
        ExplorerPageContent::Verdict { verdict, gate, sellers, chain } => {
            let title = title(&verdict_conclusion(verdict, *gate).1, displayed_name(verdict));
            html_document(title, "about", query, &verdict_section(query, verdict, *gate, *sellers, chain))
        }
        ExplorerPageContent::Seller(check) => {
            let title = title(&capitalize_first(check.decision.as_str()), query.name);
            html_document(
                title,
                "about",
                query,
                &seller::seller_section(query.name, check, &reason_articles(&check.reasons)),
            )
        }
        ExplorerPageContent::NoName(shown) => {
            html_document(title("Not an ENS name", query.name), "about", query, &invalid_name_section(query, shown))
        }
        ExplorerPageContent::Refusal(refusal, detail) => {
            html_document("No answer", "about", query, &refusal_section(*refusal, detail))
        }
    }
}

/// Choices that also apply to the next question, unless the user clears them.
fn choices_form(query: ExplorerPageQuery<'_>) -> Markup {
    let mut choices = query.selected_query_parameters().peekable();
    html! {
        @if choices.peek().is_some() {
            p.choices {
                "Judged by: "
                @for (key, value) in choices {
                    label { input type="checkbox" name=(key) value=(value) checked; " " (key) " " (foreign_code(&value)) }
                }
            }
        }
    }
}

fn html_document(title: impl Render, class: &str, query: ExplorerPageQuery<'_>, result: &Markup) -> Markup {
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
                        (choices_form(query))
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

fn invalid_name_section(query: ExplorerPageQuery<'_>, shown: &InvalidNameExplanation<'_>) -> Markup {
    html! {
        section.hero.no-name aria-labelledby="state" {
            (walk::conclusion_heading(DiagramStageStatus::Skip, "Not an ENS name", query.name))
            p.summary { (foreign_text(&shown.why)) }
            @if let Some(name) = &shown.meant {
                p.advice { "Did you mean " a href=(name_page_url(name, query)) { (foreign_text(name)) } "?" }
            }
        }
        (walk::empty_diagram())
    }
}

fn refusal_section(refusal: RefusalCode, detail: &str) -> Markup {
    html! {
        section.hero.refusal {
            h2 { span.seal { (status_icon(DiagramStageStatus::Unknown)) } span.state { "No answer" } }
            p.summary { (refusal.title()) }
            @if !detail.is_empty() { p { (foreign_text(detail)) } }
            p { "Code: " code { (refusal) } }
        }
        (walk::empty_diagram())
    }
}

fn verdict_section(
    query: ExplorerPageQuery<'_>,
    verdict: &Verdict,
    gate: Result<ExplorerGateView<'_>, RefusalCode>,
    sellers: Option<&str>,
    chain: &EnsChainConfig,
) -> Markup {
    html! {
        (headline_section(verdict, gate, sellers))
        (walk::verdict_diagram(verdict))
        (reasons_section(query, verdict))
        div.grid { (agent_section(verdict)) (records_section(verdict)) (payee_section(verdict)) (daemon_memory_section(verdict)) (client_commands_section(verdict, chain)) }
    }
}

/// The normalized name, or else the name as typed.
fn displayed_name(verdict: &Verdict) -> &str {
    verdict.name.normalized.as_deref().unwrap_or(&verdict.name.input)
}

/// The headline with the state and what to do. `seller` is the route through which the script queries the seller if the
/// gate admits the agent.
fn headline_section(
    verdict: &Verdict,
    gate: Result<ExplorerGateView<'_>, RefusalCode>,
    seller: Option<&str>,
) -> Markup {
    let name = displayed_name(verdict);
    let (mark, word) = verdict_conclusion(verdict, gate);
    let is_trusted = verdict.state == TrustState::Trusted;
    let seller = seller.filter(|_| is_trusted && is_admitted_by_gate(gate));
    let verb = verdict.identity.as_ref().and_then(|identity| identity.verbs.first());
    html! {
        section.hero.(verdict.state).held[is_trusted && !is_admitted_by_gate(gate)] aria-labelledby="state" data-name=(name)
            data-verb=(verb.map_or("", String::as_str)) data-seller=[seller] {
            (walk::conclusion_heading(mark, &word, name))
            @if name != verdict.name.input { p.typed { "typed as " (foreign_code(&verdict.name.input)) } }
            p.summary { (foreign_text(&verdict.summary)) }
            p.advice { (verdict_advice(verdict, gate)) }
            (differing_rules_section(verdict, gate))
            @if verdict.anchor.as_ref().is_some_and(|anchor| anchor.world == SANDBOX) {
                p.world { strong { "Sandbox." } " These names are samples; this proves nothing about real ones." }
            }
        }
    }
}

/// The conclusion for a reader who stops here. A trusted verdict is shown as "trusted" only if the gate admits the
/// agent.
fn verdict_conclusion(
    verdict: &Verdict,
    gate: Result<ExplorerGateView<'_>, RefusalCode>,
) -> (DiagramStageStatus, String) {
    match (verdict.state, gate) {
        (TrustState::Trusted, Ok(ExplorerGateView { objection: Some(_), .. })) => {
            (DiagramStageStatus::Fail, "Denied".to_owned())
        }
        (TrustState::Trusted, Err(_)) => (DiagramStageStatus::Unknown, "Undecided".to_owned()),
        (state, _) => (state.into(), capitalize_first(state.as_str())),
    }
}

fn is_admitted_by_gate(gate: Result<ExplorerGateView<'_>, RefusalCode>) -> bool {
    gate.is_ok_and(|gate| gate.objection.is_none())
}

/// The rules, if they differ from the gate's.
fn differing_rules_section(verdict: &Verdict, gate: Result<ExplorerGateView<'_>, RefusalCode>) -> Markup {
    let used = &verdict.profile;
    let of = |used: &AppliedProfile| html! { (foreign_code(&used.id)) " at depth " (used.depth) };
    let are_of_gate = |gate: &AppliedProfile| gate.id == used.id && gate.depth == used.depth;
    html! {
        @match gate {
            Ok(ExplorerGateView { verdict, .. }) if are_of_gate(&verdict.profile) => {},
            Ok(ExplorerGateView { verdict, objection }) => p.rules {
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
fn verdict_advice(verdict: &Verdict, gate: Result<ExplorerGateView<'_>, RefusalCode>) -> Markup {
    let fixer = verdict.reasons.first().map(|reason| reason.code.entry().fixer);
    html! {
        @match (verdict.state, fixer) {
            (TrustState::Trusted, _) => (gate_advice(gate)),
            (TrustState::Untrusted, Some(FixerRole::Asker)) => "Do not call or pay it. Check the spelling of the name.",
            (TrustState::Untrusted, Some(FixerRole::Operator)) => {
                "Do not call or pay it: the rules in force here do not admit it."
            },
            (TrustState::Untrusted, Some(FixerRole::Nobody)) => "Do not call or pay it yet. Wait: nobody has to act.",
            (TrustState::Untrusted, Some(FixerRole::Publisher) | None) => {
                "Do not call or pay it; its publisher has to fix this."
            },
            (TrustState::Indeterminate, _) => { "Do not rely on it yet." (retry_time_text(verdict)) },
        }
    }
}

/// When asking again may give a different answer, as the end of a paragraph.
fn retry_time_text(verdict: &Verdict) -> String {
    match (verdict.reasons.first(), verdict.freshness.retry_after) {
        // An earlier question costs a resolution and finds no newer finalized block.
        (Some(reason), _) if reason.code == ReasonCode::RecordPending => " Ask again in about 15 minutes.".to_owned(),
        (Some(reason), Some(seconds)) if reason.retryable => format!(" Ask again in {seconds} s."),
        _ => String::new(),
    }
}

/// The recommended action for a trusted agent: it follows the gate's decision.
fn gate_advice(gate: Result<ExplorerGateView<'_>, RefusalCode>) -> Markup {
    let Ok(ExplorerGateView { verdict, objection }) = gate else { return html! { "Do not rely on it yet." } };
    if let Some(slug) = objection {
        let title = title_for_slug(slug).unwrap_or_default();
        return html! { "Do not call or pay it: the gate denies it, " (foreign_code(slug)) ". " (title) };
    }
    let entry = verdict.identity.as_ref().and_then(|identity| identity.entry.as_deref());
    html! {
        "The name is bound to this card"
        @if let Some(entry) = entry { " and to the entry " (foreign_code(entry)) }
        ". This does not cover whom to pay: " code { "POST /v1/decisions" } " judges the terms of a seller."
    }
}

/// Every reason: its meaning, the expected and observed values, and the fix.
fn reasons_section(query: ExplorerPageQuery<'_>, verdict: &Verdict) -> Markup {
    let near = html! {
        @for near in &verdict.profile.near_misses {
            @let query = ExplorerPageQuery { profile: Some(&near.profile), ..query };
            p.near {
                "The same evidence is trusted under " (foreign_code(&near.profile)) ". "
                a href=(name_page_url(displayed_name(verdict), query)) { "Ask under these rules" }
            }
        }
    };
    let heading = match verdict.reasons.len() {
        0 => return html! { section.reasons.none { h2 { "Reasons" } p { "None: every step holds." } } (near) },
        1 => "One reason".to_owned(),
        more => format!("{more} reasons"),
    };
    html! {
        section.reasons aria-labelledby="reasons" { h2 #reasons { (heading) } (reason_articles(&verdict.reasons)) (near) }
    }
}

/// The URL of the page for `name` with the choices of `query`.
fn name_page_url(name: &str, query: ExplorerPageQuery<'_>) -> String {
    explorer_url([("name", name.to_owned())].into_iter().chain(query.selected_query_parameters()))
}

fn reason_articles(reasons: &[Reason]) -> Markup {
    html! { @for one in reasons { (reason_article(one)) } }
}

fn reason_article(reason: &Reason) -> Markup {
    let (class, word, mark) = match reason.effect {
        ReasonEffect::Fail => ("fail", "fails", DiagramStageStatus::Fail),
        ReasonEffect::Unknown => ("unknown", "open", DiagramStageStatus::Unknown),
        ReasonEffect::Warn => ("warn", "warning", DiagramStageStatus::Skip),
    };
    html! {
        article.reason.(class) {
            h3 { span.dot { (status_icon(mark)) } code { (reason.code) } }
            p.where {
                (word) ", in the step " (reason.step)
                @if let Some(rule) = &reason.requirement { ", rule " (foreign_text(rule)) }
                @if let Some(place) = &reason.place { ", at " (foreign_code(place)) }
            }
            p { (foreign_text(&reason.message)) }
            (expected_observed_markup(reason))
            @if let Some(proposed) = &reason.fix { div.fix { (reason_fix(proposed)) } }
            details {
                summary { "What " code { (reason.code) } " means" }
                p { (reason.code.entry().explanation) }
            }
        }
    }
}

/// The expected and observed values.
fn expected_observed_markup(reason: &Reason) -> Markup {
    html! {
        @if reason.expected.is_some() || reason.observed.is_some() {
            dl.values {
                @if let Some(value) = &reason.expected { div.expected { dt { "Expected" } dd { (foreign_code(value)) } } }
                @if let Some(value) = &reason.observed { div.observed { dt { "Observed" } dd { (foreign_code(value)) } } }
            }
        }
    }
}

/// The fix, with a text record line if one is proposed.
fn reason_fix(fix: &str) -> Markup {
    let Some((key, value)) = fix.strip_prefix("set ").and_then(|line| line.split_once(" to ")) else {
        return html! { p { strong { "Fix:" } " " (foreign_text(fix)) } };
    };
    html! {
        p { strong { "Fix:" } " if what was observed is what its publisher meant, set this text record." }
        (copyable_line(html! { (foreign_text(key)) " = " (foreign_text(value)) }))
    }
}

/// A line that is meant to be copied. The script adds the copy button.
fn copyable_line(line: impl Render) -> Markup {
    html! { pre.copy tabindex="0" { code { (line) } } }
}

fn agent_section(verdict: &Verdict) -> Markup {
    let body = match &verdict.identity {
        Some(identity) => html! { p { "As described by its card." } (identity_facts(identity)) },
        None => html! { p { "Nothing is known about the agent, because no card was read." } },
    };
    page_section("agent", "The agent", &body)
}

fn identity_facts(identity: &AgentIdentity) -> Markup {
    let owner = identity.owner.as_ref().map(|owner| {
        let proven = if owner.proven { "proven on chain" } else { "not proven" };
        html! { (foreign_code(&owner.name)) " " span.soft { (proven) } }
    });
    fact_list([
        ("Owner", owner),
        ("Class", identity.class.as_deref().map(foreign_text)),
        ("Status", identity.status.as_deref().map(foreign_text)),
        ("Version", identity.version.as_deref().map(foreign_text)),
        ("Verbs", foreign_words(&identity.verbs)),
        ("Entry", identity.entry.as_deref().map(foreign_code)),
        ("Networks", foreign_words(&identity.networks)),
        ("Card’s CID", identity.card.cid.as_deref().map(foreign_code)),
        ("Card’s SHA-256", Some(&*identity.card.sha256).filter(|digest| !digest.is_empty()).map(foreign_code)),
    ])
}

/// Foreign words with spaces between them. `None` if there are none.
fn foreign_words(words: &[String]) -> Option<Markup> {
    let (first, others) = words.split_first()?;
    Some(html! { (foreign_code(first)) @for word in others { " " (foreign_code(word)) } })
}

/// Who vouches for the records, and at which block.
fn records_section(verdict: &Verdict) -> Markup {
    let body = match &verdict.anchor {
        Some(anchor) => html! { p { (proof_strength_description(anchor)) } (anchor_description(anchor)) },
        None => html! { p { "Nobody: nothing was read from the chain." } },
    };
    page_section("records", "Who vouches for the records", &body)
}

/// Where and when the records were read.
fn anchor_description(anchor: &ChainAnchor) -> Markup {
    let block = &anchor.block;
    let at = html! { (group_thousands(block.number)) " " span.soft { (foreign_text(&block.tag)) ", " (time_element(&block.timestamp)) } };
    fact_list([
        ("Chain", Some(html! { (foreign_code(&anchor.chain)) " " span.soft { (foreign_text(&anchor.world)) } })),
        ("Block", Some(at)),
        ("Block hash", Some(foreign_code(&block.hash))),
        ("Resolver", anchor.resolver.as_deref().map(foreign_code)),
        ("Wildcard of", anchor.wildcard.as_deref().map(foreign_code)),
        ("Offchain", anchor.offchain.then(|| html! { "through CCIP-Read" })),
    ])
}

fn proof_strength_description(anchor: &ChainAnchor) -> Markup {
    let ProofStrength { grade, agreed, asked, .. } = &anchor.proof;
    let share = html! { (agreed) " of " (asked) };
    html! {
        @match grade {
            ProofGrade::SingleRpc => {
                "Only one endpoint vouches for them (" code { "single-rpc" }
                "). The gate requires more, unless the endpoint is the operator’s own."
            },
            ProofGrade::Quorum => { (share) " endpoints of different operators agree (" code { "quorum" } ")." },
            ProofGrade::StateProof => {
                "Proven against the state of the chain (" code { "state-proof" } "); " (share)
                " operators reported the header."
            },
            ProofGrade::ConsensusProof => {
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
fn payee_section(verdict: &Verdict) -> Markup {
    let records = verdict.steps.iter().find(|report| report.step == ResolutionStep::Records);
    let of = |member: &str| records.and_then(|report| report.evidence[member].as_object());
    let set = |member: &str| of(member).into_iter().flatten().filter(|(_, value)| !value.is_null()).take(MAX_LISTED);
    let addresses: Vec<_> =
        set("addresses").map(|(coin, value)| (coin_label(coin), Some(record_value(value)))).collect();
    let lead = if addresses.is_empty() {
        "The name publishes no address. A payment is undecided until something else proves its payee."
    } else {
        "A payment to another address than these takes a signed offer, an ERC-8004 registration or the operator's list."
    };
    let endpoints = set("endpoints").map(|(key, value)| (foreign_code(key), Some(record_value(value))));
    page_section("payee", "Whom to pay", &html! { p { (lead) } (fact_list(addresses.into_iter().chain(endpoints))) })
}

/// The label of a coin type: its network.
fn coin_label(coin: &str) -> Markup {
    html! {
        @match coin.parse::<u64>() {
            Ok(ETHER_COIN) => { "Ether (" code { "eip155:1" } ")" },
            Ok(EVM_COIN) => "Any EVM chain",
            Ok(number) if number > EVM_COIN => code { "eip155:" (number - EVM_COIN) },
            _ => { "Coin type " (foreign_text(coin)) },
        }
    }
}

/// The value of a record, or why it is unusable.
fn record_value(value: &Value) -> Markup {
    match value.as_str() {
        Some(text) => foreign_code(text),
        None => html! { "unusable: " (foreign_code(&value.to_string())) },
    }
}

/// What this daemon has cached and remembered about the name.
fn daemon_memory_section(verdict: &Verdict) -> Markup {
    let freshness = &verdict.freshness;
    let served = match freshness.served {
        VerdictCopyKind::Cached => "from the cache",
        VerdictCopyKind::Stale => "from the cache, no longer fresh",
        _ => "from a run of its own",
    };
    let continuity =
        verdict.steps.iter().find(|report| report.step == ResolutionStep::Continuity).map(|report| &report.evidence);
    let number = |member: &str| continuity.and_then(|evidence| evidence[member].as_u64()).map(group_thousands);
    let seen = number("first_block").zip(number("last_block"));
    let rows = [
        ("This answer", Some(html! { (served) })),
        ("Checked", Some(time_element(&freshness.checked_at.to_string()))),
        ("Fresh until", Some(time_element(&freshness.fresh_until.to_string()))),
        ("Seen trusted", seen.map(|(first, last)| html! { "from block " (first) " to block " (last) })),
        ("Versions seen", number("versions").map(|versions| html! { (versions) })),
    ];
    page_section("memory", "What this daemon remembers", &fact_list(rows))
}

/// The same question for other clients. The program's own defaults are omitted, those of this daemon are not.
fn client_commands_section(verdict: &Verdict, chain: &EnsChainConfig) -> Markup {
    let Some(name) = &verdict.name.normalized else { return html! {} };
    let world = network_options(chain);
    let used = &verdict.profile;
    let profile = Some(used.id.as_str()).filter(|id| *id != DEFAULT_PROFILE);
    let profile = profile.map_or_else(String::new, |id| format!("--profile {} ", shell_quote(id)));
    let depth = Some(used.depth).filter(|depth| *depth != ResolutionDepth::default());
    let depth = depth.map_or_else(String::new, |depth| format!("--depth {depth} "));
    let ends = if name.starts_with('-') { "-- " } else { "" };
    let command = format!("clresolve {world}{profile}{depth}{ends}{}", shell_quote(name));
    let body = html! {
        p {
            "This command resolves the name in your terminal, through the endpoints configured there. It does not rely \
             on this page."
        }
        (fact_list([("Verdict", Some(foreign_code(&verdict.id)))]))
        (copyable_line(command))
    };
    page_section("command", "Ask it yourself", &body)
}

/// The command line options that select the same network, each followed by a space. Endpoints are omitted because their
/// URLs may contain keys.
fn network_options(chain: &EnsChainConfig) -> String {
    let usual = EnsChainConfig::default();
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
    use clresolve_resolver::config::{Config, ConfigLayer};

    #[test]
    fn another_world_and_another_demand_are_asked_for() {
        assert_eq!(network_options(&EnsChainConfig::default()), "");
        let resolver = "0x5FbDB2315678afecb367f032d93F642f64180aa3";
        let text = format!(
            "world = \"dev\"\nchain-id = 31337\nuniversal-resolver = \"{resolver}\"\nblock = \"latest\"\n\
             proof = \"quorum\"\nquorum = 3\nrpc = [\"https://a.example\", \"https://b.example\", \"https://c.example\"]\n"
        );
        let layer = ConfigLayer::from_toml(&text, "f.toml").expect("a configuration");
        let mut chain = Config::default().with_layers([layer]).unwrap_or_else(|e| panic!("{e}")).chain;
        let demand = "--block latest --proof quorum --quorum 3 ";
        assert_eq!(network_options(&chain), format!("--chain-id 31337 --universal-resolver {resolver} {demand}"));
        chain.world = SANDBOX.to_owned();
        assert_eq!(network_options(&chain), format!("--sandbox {demand}"), "it has a chain of its own");
    }

    #[test]
    fn coin_types_are_networks() {
        let label = |coin| coin_label(coin).into_string();
        assert_eq!(label("60"), "Ether (<code>eip155:1</code>)");
        assert_eq!(label("2147492101"), "<code>eip155:8453</code>");
        assert_eq!([label("2147483648"), label("0")], ["Any EVM chain", "Coin type 0"]);
    }
}
