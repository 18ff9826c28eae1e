//! Discovery: which cards a host serves where the card systems look for them, and what their rules say of each.
//!
//! A host is asked for the well-known paths of every card system ([`Whereabouts`](crate::flavour::Whereabouts)) through
//! the foreign door: https only, no credentials, few re-checked redirects, 256 KiB each. What is served is judged by
//! [`lint`](crate::lint); nothing that a card names is asked. The answer is no verdict on a name: a card that only a host
//! serves is that host's word. Only on demand is a name asked for, and only where the card has the very bytes that a
//! trusted verdict proved does [`Discovery::ens_bound`] say so.

mod target;

use std::collections::BTreeMap;

use futures_util::future::join_all;
use serde::Serialize;
use tokio::time::{Instant, timeout_at};

use self::target::Place;
pub use self::target::{SystemName, Target, TargetError};
use crate::card::Card;
use crate::digest::Digest;
use crate::fetch::https::Body;
use crate::fetch::{Cause, FetchError};
use crate::flavour::{Flavour, Rules};
use crate::lint::{Report, lint};
use crate::profile::Profile;
use crate::reason::{Code, Reason};
use crate::resolve::{self, Resolver};
use crate::text::excerpt;
use crate::verdict::{State, Tool};

/// `schema` of a discovery.
pub const SCHEMA: &str = "clresolve.discovery/1";

/// What helps where a host shows no card of its own.
const NAME_A_SYSTEM: &str = "A host of several systems shows their cards below /v1/agent-systems/ alone: name one (--system, or system= in the query).";

/// Most names that are asked for in one discovery; a host that serves more cards than this has one at every path.
const MAX_NAMES: usize = 4;

/// What is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// Where to look.
    pub target: Target,
    /// The one system whose paths are walked and whose rules apply; else the paths of all, and what the shape tells.
    pub flavour: Option<Flavour>,
    /// Whether the names that CommandLayer cards state are asked for on the chain.
    pub bind: bool,
}

impl Question {
    /// A question about cards of any system, on the web alone.
    pub const fn new(target: Target) -> Self {
        Self { target, flavour: None, bind: false }
    }

    /// The system that is meant, where the question says so.
    fn meant(&self) -> Option<Flavour> {
        self.flavour.or_else(|| self.target.names_system_of())
    }
}

/// What was found at a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Discovery {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// What was asked for.
    pub asked: String,
    /// Scheme, host and port.
    pub origin: String,
    /// What the cards are worth as documents.
    pub outcome: Outcome,
    /// What is to be said of the host as a whole, sorted by effect and code.
    pub reasons: Vec<Reason>,
    /// Everything that was asked, in the order of the URLs.
    pub places: Vec<Asked>,
    /// The cards, by their first place.
    pub cards: Vec<Found>,
    /// Documents that are no cards but say where cards are, by their first place. What they name was not asked.
    pub descriptors: Vec<Descriptor>,
    /// The name on ENS that vouches for a card; `null` where none does, or none was asked for.
    pub ens_bound: Option<EnsBound>,
    /// What made this.
    pub tool: Tool,
}

/// What the cards of a host are worth as documents. Nothing of it says who published them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// There is a card, and none breaks the rules of its system.
    Valid,
    /// A card breaks the rules of its system.
    Invalid,
    /// There is no card to judge.
    Undecided,
}

/// One URL that was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Asked {
    /// The URL; of a document without its query, which may hold a secret.
    pub url: String,
    /// The systems whose cards are looked for there.
    pub systems: Vec<Flavour>,
    /// What came of it.
    pub outcome: PlaceOutcome,
    /// What is to be said of it: always where there is no document, else only where it is served in a wrong way.
    pub codes: Vec<Code>,
    /// The cause in words, where there is no document, or not that of the system that was asked for.
    pub detail: Option<String>,
    /// Where redirects led, without query.
    pub redirected_to: Option<String>,
    /// The `Content-Type` of the document, cut short.
    pub content_type: Option<String>,
    /// The document.
    pub sha256: Option<Digest>,
}

/// What came of one URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlaceOutcome {
    /// There is a document.
    Found,
    /// The host says that there is nothing (404, 410).
    Absent,
    /// The host gave no usable answer.
    Unreachable,
    /// The URL or a redirect leads to where nothing is asked.
    Forbidden,
    /// What is there is not JSON, and does not say that it is.
    WrongContentType,
    /// The body is larger than a card may be.
    Oversize,
}

/// One card, wherever it is served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Found {
    /// SHA-256 of the bytes as received.
    pub sha256: Digest,
    /// Their number.
    pub bytes: usize,
    /// The URLs that gave them.
    pub urls: Vec<String>,
    /// System, version, validity and findings.
    #[serde(flatten)]
    pub report: Report,
}

/// A document that says where cards are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Descriptor {
    /// SHA-256 of the bytes as received.
    pub sha256: Digest,
    /// The URLs that gave them.
    pub urls: Vec<String>,
    /// The system that it belongs to.
    pub flavour: Flavour,
}

/// A name whose trusted verdict proved the bytes of a card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EnsBound {
    /// The name.
    pub name: String,
    /// The state of the verdict.
    pub state: State,
    /// Its conclusion.
    pub conclusion: String,
    /// The card.
    pub sha256: Digest,
}

/// Asks a host for its cards and judges them. Never fails: what went wrong is in the answer.
///
/// All URLs are asked at the same time, each within the time limit of one question.
pub async fn discover(resolver: &Resolver, question: &Question, profile: &Profile) -> Discovery {
    let deadline = Instant::now() + resolver.time_limit();
    let places = question.target.places(question.flavour);
    let answers = join_all(places.iter().map(|place| resolver.document(place.url.as_str()))).await;
    let answered = places.into_iter().zip(answers).map(|(place, answer)| Answered::of(place, answer)).collect();
    let (mut discovery, cards) = judged(question, answered, profile);
    if question.bind {
        // A host that takes all the time for its documents leaves none for their names.
        discovery.ens_bound = timeout_at(deadline, bound(resolver, &cards, &discovery)).await.ok().flatten();
        if discovery.ens_bound.is_none() {
            discovery.reasons.push(Reason::new(Code::DiscoveryNotBound));
        }
    }
    discovery.reasons.sort_by_key(|reason| (reason.effect, reason.code.slug()));
    discovery
}

/// A place, with what it gave.
struct Answered {
    place: Place,
    answer: Result<Body, FetchError>,
}

/// What a document is.
enum Kind {
    Card(Box<Report>, Option<Card>),
    Descriptor(Flavour),
}

impl Answered {
    const fn of(place: Place, answer: Result<Body, FetchError>) -> Self {
        Self { place, answer }
    }

    /// The body, if it is a document: what is neither JSON nor announced as JSON is a page.
    fn document(&self) -> Option<&Body> {
        let body = self.answer.as_ref().ok()?;
        (is_json(body.content_type.as_deref()) || Card::parse(&body.bytes).is_ok()).then_some(body)
    }
}

/// The answer, as far as the web gives it, and the cards that parse, by their digests.
fn judged(question: &Question, answered: Vec<Answered>, profile: &Profile) -> (Discovery, BTreeMap<Digest, Card>) {
    let mut kinds: BTreeMap<Digest, Kind> = BTreeMap::new();
    let mut asked = Vec::new();
    for answered in &answered {
        let document = answered.document().map(|body| {
            let digest = Digest::of(&body.bytes);
            (body, digest, &*kinds.entry(digest).or_insert_with(|| kind(&body.bytes, question.flavour, profile)))
        });
        asked.push(match document {
            Some((body, digest, kind)) => served(&answered.place, body, digest, kind, question.meant()),
            None => not_served(&answered.place, &answered.answer, question.meant()),
        });
    }

    let mut discovery = Discovery {
        schema: SCHEMA,
        asked: question.target.to_string(),
        origin: question.target.origin(),
        outcome: Outcome::Undecided,
        reasons: Vec::new(),
        places: asked,
        cards: Vec::new(),
        descriptors: Vec::new(),
        ens_bound: None,
        tool: Tool::default(),
    };
    let mut cards = BTreeMap::new();
    for (sha256, kind) in kinds {
        let at = |place: &&Asked| place.sha256 == Some(sha256);
        let urls = discovery.places.iter().filter(at).map(|place| place.url.clone()).collect();
        match kind {
            Kind::Descriptor(flavour) => discovery.descriptors.push(Descriptor { sha256, urls, flavour }),
            Kind::Card(report, card) => {
                let body = answered.iter().filter_map(Answered::document).find(|b| Digest::of(&b.bytes) == sha256);
                let bytes = body.map_or(0, |body| body.bytes.len());
                discovery.cards.push(Found { sha256, bytes, urls, report: *report });
                cards.extend(card.map(|card| (sha256, card)));
            }
        }
    }
    discovery.cards.sort_by(|a, b| a.urls.cmp(&b.urls));
    discovery.descriptors.sort_by(|a, b| a.urls.cmp(&b.urls));
    discovery.outcome = match discovery.cards.as_slice() {
        [] => Outcome::Undecided,
        cards if cards.iter().all(|card| card.report.valid) => Outcome::Valid,
        _ => Outcome::Invalid,
    };
    match discovery.cards.len() {
        0 => {
            let code = question.meant().map_or(Code::DiscoveryNoCard, |flavour| flavour.whereabouts().unreachable);
            discovery.reasons.push(no_card(code, &question.target, &discovery.places));
        }
        1 => {}
        n => discovery.reasons.push(Reason::new(Code::DiscoveryCardsDiffer).observed(format!("{n} cards"))),
    }
    (discovery, cards)
}

/// A host that says that it has no root card may have several systems (OR-4).
fn no_card(code: Code, target: &Target, places: &[Asked]) -> Reason {
    let reason = Reason::new(code);
    let leaves_out =
        |place: &Asked| place.outcome == PlaceOutcome::Absent && target.leaves_out_systems_of(&place.systems);
    if !places.iter().any(leaves_out) {
        return reason;
    }
    let message = format!("{} {NAME_A_SYSTEM}", reason.message);
    reason.message(message)
}

fn kind(bytes: &[u8], named: Option<Flavour>, profile: &Profile) -> Kind {
    let card = Card::parse(bytes).ok();
    let describes = |flavour: &&Flavour| card.as_ref().is_some_and(flavour.whereabouts().is_descriptor);
    if let Some(flavour) = Flavour::ALL.iter().find(describes) {
        return Kind::Descriptor(*flavour);
    }
    Kind::Card(Box::new(lint(bytes, named, &Rules::of(profile))), card)
}

/// A place that gave a document.
fn served(place: &Place, body: &Body, sha256: Digest, kind: &Kind, meant: Option<Flavour>) -> Asked {
    let flavour = match kind {
        Kind::Card(report, _) => report.flavour,
        Kind::Descriptor(_) => None,
    };
    let is_plain_json = media_type(body.content_type.as_deref()).eq_ignore_ascii_case("application/json");
    let content_type = flavour.and_then(|flavour| flavour.whereabouts().content_type).filter(|_| !is_plain_json);
    let stale = flavour.or(meant).and_then(|flavour| flavour.whereabouts().stale).filter(|_| body.stale);
    let other = match (&place.system, kind) {
        (Some(system), Kind::Card(_, Some(card))) if !system.is_of(card) => Some(Code::OrUrlNameMismatch),
        _ => None,
    };
    Asked {
        detail: other.map(|_| "the card is not that of the system that was asked for".to_owned()),
        redirected_to: (body.hops > 0).then(|| without_query(&body.final_url)),
        content_type: body.content_type.clone(),
        sha256: Some(sha256),
        codes: content_type.into_iter().chain(stale).chain(other).collect(),
        ..asked(place, PlaceOutcome::Found)
    }
}

/// A place that gave none.
fn not_served(place: &Place, answer: &Result<Body, FetchError>, meant: Option<Flavour>) -> Asked {
    let meant = meant.filter(|flavour| place.systems.contains(flavour)).map(Flavour::whereabouts);
    let (outcome, code, detail) = match answer {
        Ok(_) => (PlaceOutcome::WrongContentType, Code::DiscoveryContentType, None),
        Err(FetchError::Unavailable(Cause::Status(404 | 410))) => {
            let special = meant.and_then(|whereabouts| whereabouts.absent).filter(|_| !place.is_of_system);
            (PlaceOutcome::Absent, special.unwrap_or(Code::DiscoveryAbsent), answer.as_ref().err())
        }
        Err(FetchError::Unavailable(Cause::Status(401 | 403 | 407))) => {
            let special = meant.and_then(|whereabouts| whereabouts.credentialed);
            (PlaceOutcome::Unreachable, special.unwrap_or(Code::SourceUnavailable), answer.as_ref().err())
        }
        Err(error @ FetchError::Unavailable(_)) => (PlaceOutcome::Unreachable, Code::SourceUnavailable, Some(error)),
        Err(error @ FetchError::Forbidden(_)) => (PlaceOutcome::Forbidden, Code::SourceForbidden, Some(error)),
        Err(error @ FetchError::Oversize { .. }) => (PlaceOutcome::Oversize, Code::SourceOversize, Some(error)),
    };
    Asked {
        codes: vec![code],
        detail: detail.map(|error| excerpt(&error.to_string())),
        content_type: answer.as_ref().ok().and_then(|body| body.content_type.clone()),
        ..asked(place, outcome)
    }
}

fn asked(place: &Place, outcome: PlaceOutcome) -> Asked {
    Asked {
        url: place.shown(),
        systems: place.systems.clone(),
        outcome,
        codes: Vec::new(),
        detail: None,
        redirected_to: None,
        content_type: None,
        sha256: None,
    }
}

fn without_query(url: &url::Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    excerpt(url.as_str())
}

fn media_type(content_type: Option<&str>) -> &str {
    content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim()
}

/// Whether a media type is JSON by its name.
fn is_json(content_type: Option<&str>) -> bool {
    let media = media_type(content_type).to_ascii_lowercase();
    media == "application/json" || media == "text/json" || media.ends_with("+json")
}

/// The first name, in their order, whose trusted verdict proved the bytes of a card here.
async fn bound(resolver: &Resolver, cards: &BTreeMap<Digest, Card>, discovery: &Discovery) -> Option<EnsBound> {
    let is_commandlayer = |sha256: &Digest| {
        discovery.cards.iter().any(|c| c.sha256 == *sha256 && c.report.flavour == Some(Flavour::CommandLayer))
    };
    let stated = cards.iter().filter(|(sha256, _)| is_commandlayer(sha256));
    let mut names: Vec<(&str, Digest)> = stated.filter_map(|(sha256, card)| Some((card.ens()?, *sha256))).collect();
    names.sort_unstable();
    for (name, sha256) in names.into_iter().take(MAX_NAMES) {
        let Ok(resolution) = resolver.ask(&resolve::Question::new(name)).await else { continue };
        let verdict = resolution.verdict();
        let proven = verdict.identity.as_ref().map(|identity| &identity.card);
        if verdict.state == State::Trusted && proven.is_some_and(|card| is_digest(&card.sha256, sha256)) {
            return Some(EnsBound {
                name: excerpt(verdict.name.normalized.as_deref().unwrap_or(name)),
                state: verdict.state,
                conclusion: verdict.conclusion.clone(),
                sha256,
            });
        }
    }
    None
}

fn is_digest(text: &str, digest: Digest) -> bool {
    text.parse::<Digest>().is_ok_and(|parsed| parsed == digest)
}
