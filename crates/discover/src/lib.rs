//! Discovery: finds the cards that a host serves at the paths of the card systems, and judges each by its rules.
//!
//! A host is queried at the well-known paths of every card system
//! ([`CardDiscoveryRules`](clresolve_cards::system::CardDiscoveryRules)) through the fetcher for untrusted URLs: https only, no
//! credentials, few re-checked redirects, 256 KiB each. Plain http requires that the operator listed the origin
//! ([`DiscoveryTarget::parse_allowing_http`]). [`lint`](clresolve_cards::lint) judges each document. URLs in a card are
//! not contacted. The result is not a verdict on a name: a card that only a host serves is that host's claim. On
//! request, the names in CommandLayer cards are resolved. [`DiscoveryReport::ens_bound`] then reports whether a trusted
//! verdict proved the same bytes.

mod freshness;
mod roots;
mod target;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use clresolve_cards::discovery::{CardLintReportOrDescriptor, LintedCardDocument};
use clresolve_cards::lint::CardLintReport;
use clresolve_cards::system::{CardLintContext, CardSystem};
use clresolve_core::digest::Digest;
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_core::state::TrustState;
use clresolve_core::text::excerpt_text;
use clresolve_resolver::cpu_pool::CpuPool;
use clresolve_resolver::fetch::https::FetchedDocument;
use clresolve_resolver::fetch::{FetchError, SourceUnavailableError};
use clresolve_resolver::resolve::{self, Resolver};
use clresolve_verdict::profile::ConformanceProfile;
use clresolve_verdict::verdict::ToolVersion;
use futures_util::future::join_all;
use jiff::Timestamp;
use serde::Serialize;
use tokio::time::{Instant, timeout_at};

pub use self::roots::{VerificationKeySource, fetch_trust_root};
use self::target::CandidateCardUrl;
pub use self::target::{DiscoveryTarget, DiscoveryTargetError, HostedAgentSystemName};

/// `schema` of a discovery.
pub const SCHEMA: &str = "clresolve.discovery/1";

/// Advice for a host without a card of its own.
const NAME_A_SYSTEM: &str = "A host of several agent systems serves their cards only below /v1/agent-systems/. Name one (--system, or system= in the query).";

/// Maximum number of names resolved in one discovery. A host with more cards serves one at every path.
const MAX_NAMES: usize = 4;

/// What to discover.
#[derive(Clone, Debug)]
pub struct DiscoveryRequest {
    /// Where to look.
    pub target: DiscoveryTarget,
    /// The only system to look for. If `None`, the paths of all systems are queried, and each card is recognised by its
    /// shape.
    pub system: Option<CardSystem>,
    /// Whether the names in CommandLayer cards are resolved.
    pub bind: bool,
}

impl DiscoveryRequest {
    /// A question about cards of any system, without resolving names.
    pub const fn new(target: DiscoveryTarget) -> Self {
        Self { target, system: None, bind: false }
    }

    /// The system that the question is about, if it is known.
    fn expected_card_system(&self) -> Option<CardSystem> {
        self.system.or_else(|| self.target.implied_card_system())
    }
}

/// The result of a discovery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DiscoveryReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The target.
    pub asked: String,
    /// Scheme, host and port.
    pub origin: String,
    /// Whether the cards are valid.
    pub outcome: HostCardValidity,
    /// Reasons about the host as a whole, sorted by effect and code.
    pub reasons: Vec<Reason>,
    /// The queried URLs, in order.
    pub places: Vec<CardUrlReport>,
    /// The cards, by their first URL.
    pub cards: Vec<DiscoveredCard>,
    /// Documents that are not cards but list where cards are, by their first URL. The listed URLs are not queried.
    pub descriptors: Vec<DiscoveredCardDirectory>,
    /// The ENS name that proves a card; `null` if none does, or none was resolved.
    pub ens_bound: Option<EnsNameBinding>,
    /// The program.
    pub tool: ToolVersion,
}

/// Whether the cards of a host are valid. It says nothing about who published them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HostCardValidity {
    /// There is a card, and none breaks the rules of its system.
    Valid,
    /// A card breaks the rules of its system.
    Invalid,
    /// There is no card to judge.
    Undecided,
}

/// The result of one URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CardUrlReport {
    /// The URL, without the query of a document, since it may contain a secret.
    pub url: String,
    /// The systems whose cards are looked for there.
    pub systems: Vec<CardSystem>,
    /// The outcome.
    pub outcome: CardUrlOutcome,
    /// Codes: always if there is no document, otherwise only if it is served wrongly.
    pub codes: Vec<ReasonCode>,
    /// The cause in words, if there is no document or it belongs to another agent system.
    pub detail: Option<String>,
    /// The final URL after redirects, without query.
    pub redirected_to: Option<String>,
    /// The `Content-Type` of the document, truncated.
    pub content_type: Option<String>,
    /// The digest of the document.
    pub sha256: Option<Digest>,
}

/// The outcome of one URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CardUrlOutcome {
    /// There is a document.
    Found,
    /// The host answered that there is nothing (404, 410).
    Absent,
    /// The host gave no usable response.
    Unreachable,
    /// The URL or a redirect leads to a forbidden address.
    Forbidden,
    /// The body is not JSON and is not announced as JSON.
    WrongContentType,
    /// The body is larger than a card may be.
    Oversize,
}

/// One card, with all its URLs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DiscoveredCard {
    /// SHA-256 of the bytes as received.
    pub sha256: Digest,
    /// Their number.
    pub bytes: usize,
    /// The URLs that served them.
    pub urls: Vec<String>,
    /// System, version, validity and findings.
    #[serde(flatten)]
    pub report: CardLintReport,
}

/// A document that lists where cards are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DiscoveredCardDirectory {
    /// SHA-256 of the bytes as received.
    pub sha256: Digest,
    /// The URLs that served them.
    pub urls: Vec<String>,
    /// The card system of the document.
    #[serde(rename = "flavour")]
    pub system: CardSystem,
}

/// A name whose trusted verdict proved the bytes of a card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EnsNameBinding {
    /// The name.
    pub name: String,
    /// The state of the verdict.
    pub state: TrustState,
    /// Its conclusion.
    pub conclusion: String,
    /// The card.
    pub sha256: Digest,
}

/// Queries a host for its cards and judges them. Never fails: failures are part of the result.
///
/// All URLs are queried in parallel, each within the time limit of one question.
pub async fn discover_host_cards(
    resolver: &Resolver,
    question: &DiscoveryRequest,
    profile: &Arc<ConformanceProfile>,
) -> DiscoveryReport {
    let deadline = Instant::now() + resolver.question_time_limit();
    let candidates = question.target.candidate_urls(question.system);
    let is_plain = question.target.is_plain_http();
    let answers = join_all(candidates.iter().map(|candidate| async move {
        match is_plain {
            true => resolver.fetch_plain_http_document(candidate.url.as_str()).await,
            false => resolver.fetch_document(candidate.url.as_str()).await,
        }
    }))
    .await;
    let mut judging =
        HostDocumentJudge { pool: resolver.cpu_pool(), system: question.system, profile, judged: Vec::new() };
    let mut answered = Vec::new();
    for (candidate, answer) in candidates.into_iter().zip(answers) {
        answered.push(CardUrlResponse { document: judging.judge_response(&answer).await, candidate, answer });
    }
    let mut discovery = assemble_discovery_report(question, &answered, resolver.now());
    if question.bind {
        // The documents and their names share one time limit.
        discovery.ens_bound = timeout_at(deadline, find_ens_binding(resolver, &answered)).await.ok().flatten();
        if discovery.ens_bound.is_none() {
            discovery.reasons.push(Reason::new(ReasonCode::DiscoveryNotBound));
        }
    }
    discovery.reasons.sort_by_key(|reason| (reason.effect, reason.code.slug()));
    discovery
}

/// A candidate URL, its response, and the document in it. A body that is neither JSON nor announced as JSON is a web
/// page.
struct CardUrlResponse {
    candidate: CandidateCardUrl,
    answer: Result<FetchedDocument, FetchError>,
    document: Option<Arc<LintedCardDocument>>,
}

/// Judges the documents of a host, each distinct one once, in its own job.
struct HostDocumentJudge<'a> {
    pool: &'a CpuPool,
    system: Option<CardSystem>,
    profile: &'a Arc<ConformanceProfile>,
    judged: Vec<(Bytes, Arc<LintedCardDocument>)>,
}

impl HostDocumentJudge<'_> {
    async fn judge_response(
        &mut self,
        answer: &Result<FetchedDocument, FetchError>,
    ) -> Option<Arc<LintedCardDocument>> {
        let body = answer.as_ref().ok()?;
        let known = self.judged.iter().find(|(bytes, _)| *bytes == body.bytes);
        let document = match known {
            Some((_, document)) => Arc::clone(document),
            None => self.judge_document(body.bytes.clone()).await,
        };
        (is_json_media_type(body.content_type.as_deref()) || document.card.is_some()).then_some(document)
    }

    async fn judge_document(&mut self, bytes: Bytes) -> Arc<LintedCardDocument> {
        let (system, profile, served) = (self.system, Arc::clone(self.profile), bytes.clone());
        let judge =
            move || Arc::new(LintedCardDocument::lint_bytes(&served, system, &CardLintContext::from_profile(&profile)));
        let document = self.pool.run(judge).await;
        self.judged.push((bytes, Arc::clone(&document)));
        document
    }
}

/// The result without ENS.
fn assemble_discovery_report(
    question: &DiscoveryRequest,
    answered: &[CardUrlResponse],
    now: Timestamp,
) -> DiscoveryReport {
    let place = |answered: &CardUrlResponse| match (&answered.document, &answered.answer) {
        (Some(document), Ok(body)) => {
            let is_stale = freshness::is_response_stale(&body.caching, now);
            url_report_with_document(&answered.candidate, body, document, question.expected_card_system(), is_stale)
        }
        _ => url_report_without_document(&answered.candidate, &answered.answer, question.expected_card_system()),
    };
    let documents: BTreeMap<Digest, &LintedCardDocument> = answered
        .iter()
        .filter_map(|answered| answered.document.as_deref())
        .map(|found| (found.sha256, found))
        .collect();
    let mut discovery = DiscoveryReport {
        schema: SCHEMA,
        asked: question.target.to_string(),
        origin: question.target.origin(),
        outcome: HostCardValidity::Undecided,
        reasons: Vec::new(),
        places: answered.iter().map(place).collect(),
        cards: Vec::new(),
        descriptors: Vec::new(),
        ens_bound: None,
        tool: ToolVersion::default(),
    };
    for (sha256, document) in documents {
        let at = |place: &&CardUrlReport| place.sha256 == Some(sha256);
        let urls = discovery.places.iter().filter(at).map(|place| place.url.clone()).collect();
        match &document.kind {
            CardLintReportOrDescriptor::Descriptor(system) => {
                discovery.descriptors.push(DiscoveredCardDirectory { sha256, urls, system: *system })
            }
            CardLintReportOrDescriptor::Card(report) => {
                discovery.cards.push(DiscoveredCard { sha256, bytes: document.bytes, urls, report: report.clone() });
            }
        }
    }
    discovery.cards.sort_by(|a, b| a.urls.cmp(&b.urls));
    discovery.descriptors.sort_by(|a, b| a.urls.cmp(&b.urls));
    discovery.outcome = match discovery.cards.as_slice() {
        [] => HostCardValidity::Undecided,
        cards if cards.iter().all(|card| card.report.valid) => HostCardValidity::Valid,
        _ => HostCardValidity::Invalid,
    };
    match discovery.cards.len() {
        0 => {
            let code = question
                .expected_card_system()
                .map_or(ReasonCode::DiscoveryNoCard, |system| system.discovery_rules().unreachable);
            discovery.reasons.push(no_card_reason(code, &question.target, &discovery.places));
        }
        1 => {}
        n => discovery.reasons.push(Reason::new(ReasonCode::DiscoveryCardsDiffer).observed(format!("{n} cards"))),
    }
    discovery
}

/// A host without a root card may have several agent systems (OR-4).
fn no_card_reason(code: ReasonCode, target: &DiscoveryTarget, places: &[CardUrlReport]) -> Reason {
    let reason = Reason::new(code);
    let leaves_out =
        |place: &CardUrlReport| place.outcome == CardUrlOutcome::Absent && target.omits_agent_system(&place.systems);
    if !places.iter().any(leaves_out) {
        return reason;
    }
    let message = format!("{} {NAME_A_SYSTEM}", reason.message);
    reason.message(message)
}

/// The result of a URL with a document. `meant` is the system that the question is about.
fn url_report_with_document(
    candidate: &CandidateCardUrl,
    body: &FetchedDocument,
    document: &LintedCardDocument,
    meant: Option<CardSystem>,
    is_stale: bool,
) -> CardUrlReport {
    let system = document.applied_card_system();
    let is_plain_json = media_type(body.content_type.as_deref()).eq_ignore_ascii_case("application/json");
    let content_type = system.and_then(|system| system.discovery_rules().content_type).filter(|_| !is_plain_json);
    let stale = system.or(meant).and_then(|system| system.discovery_rules().stale).filter(|_| is_stale);
    let other = match (&candidate.agent_system, &document.kind, &document.card) {
        (Some(name), CardLintReportOrDescriptor::Card(_), Some(card)) if !name.is_claimed_by_card(card) => {
            Some(ReasonCode::OrUrlNameMismatch)
        }
        _ => None,
    };
    CardUrlReport {
        detail: other.map(|_| "the card belongs to another agent system than the one asked for".to_owned()),
        redirected_to: (body.hops > 0).then(|| url_without_query(&body.final_url)),
        content_type: body.content_type.clone(),
        sha256: Some(document.sha256),
        codes: content_type.into_iter().chain(stale).chain(other).collect(),
        ..new_url_report(candidate, CardUrlOutcome::Found)
    }
}

/// The result of a URL without a document.
fn url_report_without_document(
    candidate: &CandidateCardUrl,
    answer: &Result<FetchedDocument, FetchError>,
    meant: Option<CardSystem>,
) -> CardUrlReport {
    let meant = meant.filter(|system| candidate.systems.contains(system)).map(CardSystem::discovery_rules);
    let (outcome, code, detail) = match answer {
        Ok(_) => (CardUrlOutcome::WrongContentType, ReasonCode::DiscoveryContentType, None),
        Err(FetchError::Unavailable(SourceUnavailableError::Status(404 | 410))) => {
            let special = meant.and_then(|rules| rules.absent).filter(|_| !candidate.is_of_system);
            (CardUrlOutcome::Absent, special.unwrap_or(ReasonCode::DiscoveryAbsent), answer.as_ref().err())
        }
        Err(FetchError::Unavailable(SourceUnavailableError::Status(401 | 403 | 407))) => {
            let special = meant.and_then(|rules| rules.credentialed);
            (CardUrlOutcome::Unreachable, special.unwrap_or(ReasonCode::SourceUnavailable), answer.as_ref().err())
        }
        Err(error @ FetchError::Unavailable(_)) => {
            (CardUrlOutcome::Unreachable, ReasonCode::SourceUnavailable, Some(error))
        }
        Err(error @ FetchError::Forbidden(_)) => (CardUrlOutcome::Forbidden, ReasonCode::SourceForbidden, Some(error)),
        Err(error @ FetchError::Oversize { .. }) => (CardUrlOutcome::Oversize, ReasonCode::SourceOversize, Some(error)),
    };
    CardUrlReport {
        codes: vec![code],
        detail: detail.map(|error| excerpt_text(&error.to_string())),
        content_type: answer.as_ref().ok().and_then(|body| body.content_type.clone()),
        ..new_url_report(candidate, outcome)
    }
}

fn new_url_report(candidate: &CandidateCardUrl, outcome: CardUrlOutcome) -> CardUrlReport {
    CardUrlReport {
        url: candidate.display_url(),
        systems: candidate.systems.clone(),
        outcome,
        codes: Vec::new(),
        detail: None,
        redirected_to: None,
        content_type: None,
        sha256: None,
    }
}

fn url_without_query(url: &url::Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    excerpt_text(url.as_str())
}

fn media_type(content_type: Option<&str>) -> &str {
    content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim()
}

fn is_json_media_type(content_type: Option<&str>) -> bool {
    let media = media_type(content_type).to_ascii_lowercase();
    media == "application/json" || media == "text/json" || media.ends_with("+json")
}

/// The alphabetically first name whose trusted verdict proved the bytes of one of these cards.
async fn find_ens_binding(resolver: &Resolver, answered: &[CardUrlResponse]) -> Option<EnsNameBinding> {
    let documents = answered.iter().filter_map(|answered| answered.document.as_deref());
    let cards = documents.filter(|document| document.applied_card_system() == Some(CardSystem::CommandLayer));
    let mut names: Vec<(&str, Digest)> =
        cards.filter_map(|document| Some((document.card.as_ref()?.ens()?, document.sha256))).collect();
    names.sort_unstable();
    names.dedup();
    for (name, sha256) in names.into_iter().take(MAX_NAMES) {
        let Ok(resolution) = resolver.resolve_question(&resolve::NameQuestion::new(name)).await else { continue };
        let verdict = resolution.verdict();
        let proven = verdict.identity.as_ref().map(|identity| &identity.card);
        if verdict.state == TrustState::Trusted
            && (clresolve_core::mutant!("any-copy-is-bound")
                || proven.is_some_and(|card| is_digest_text_equal(&card.sha256, sha256)))
        {
            return Some(EnsNameBinding {
                name: excerpt_text(verdict.name.normalized.as_deref().unwrap_or(name)),
                state: verdict.state,
                conclusion: verdict.conclusion.clone(),
                sha256,
            });
        }
    }
    None
}

fn is_digest_text_equal(text: &str, digest: Digest) -> bool {
    text.parse::<Digest>().is_ok_and(|parsed| parsed == digest)
}
