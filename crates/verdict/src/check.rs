//! The judgement: evidence and profile in, reasons and step results out. Pure: no I/O, no clock, no panic.

pub mod binding;
pub mod card;
pub mod content;
pub mod continuity;
pub mod edition;
pub mod entry;
mod findings;
pub mod home;
pub mod integrity;
pub mod licence;
pub mod links;
pub mod records;
pub mod schemas;
pub mod verbs;

use std::collections::BTreeMap;

pub use self::findings::{Findings, MAX_REASONS_PER_CODE};
use self::integrity::{Digests, Integrity};
use self::schemas::KnownBytes;
use crate::card::Card;
use crate::evidence::{Evidence, IpfsOutcome, ProvenBy, Source};
use crate::profile::Profile;
use crate::verdict::{Depth, Status};
use clresolve_core::json::JsonError;
use clresolve_core::reason;
use clresolve_core::reason::{Code, Effect, Reason, Step};
use clresolve_core::state::State;

/// What the operator requires of a judgement beyond the profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// The depth of the resolution.
    pub depth: Depth,
    /// Whether both sources of the card must answer.
    pub require_all_sources: bool,
    /// Owners whose commons cards are accepted (CL-58); empty accepts all.
    pub allowed_publishers: Vec<String>,
    /// Number of blocks for which a record must be unchanged, or else `record-recent` is reported; 0 disables the
    /// check.
    pub record_rest: u64,
    /// Codes whose findings are dropped. Tests use this to show that each code matters.
    #[cfg(feature = "unstable")]
    pub without: Vec<Code>,
}

impl Policy {
    /// Whether findings of this code are dropped.
    #[cfg(feature = "unstable")]
    pub(crate) fn drops(&self, code: Code) -> bool {
        self.without.contains(&code)
    }

    /// No findings are dropped outside of tests.
    #[cfg(not(feature = "unstable"))]
    pub(crate) const fn drops(&self, _: Code) -> bool {
        false
    }
}

/// The result of the checks.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// The state.
    pub state: State,
    /// Every reason, sorted.
    pub reasons: Vec<Reason>,
    /// The status of each step.
    pub steps: BTreeMap<Step, Status>,
    /// The card, if the judged bytes are one.
    pub card: Option<Card>,
    /// Whether the judged bytes match both the CID and the checksum.
    pub content_is_proven: bool,
    /// The digests of the sources.
    pub(crate) digests: Digests,
}

/// The credentials in a card of any system: each reason gives the location and the kind, never the credential.
pub fn secrets(card: &Card) -> Vec<Reason> {
    let mut found = Findings::default();
    content::scan(card, &mut found);
    found.0.retain(|reason| reason.code == Code::SecretInCard);
    found.0
}

/// Judges evidence under a profile.
pub fn judge(evidence: &Evidence, profile: &Profile, policy: &Policy) -> Judgement {
    judge_with(evidence, evidence.schemas.as_ref().map(KnownBytes::Fetched), profile, policy)
}

/// Judges evidence that a publisher plans. Nothing is fetched: at depth `schemas`, each schema location counts as
/// serving the bytes that the manifests pin.
pub fn foresee(evidence: &Evidence, profile: &Profile, policy: &Policy) -> Judgement {
    let schemas = (policy.depth == Depth::Schemas).then_some(KnownBytes::AsPinned);
    judge_with(evidence, schemas, profile, policy)
}

/// Like [`judge`]. If the evidence is not trusted under `profile`, also returns those of `others` under which it is.
pub(crate) fn judge_beside<'p>(
    evidence: &Evidence,
    profile: &Profile,
    others: impl Iterator<Item = &'p Profile>,
    policy: &Policy,
) -> (Judgement, Vec<&'p Profile>) {
    let prepared = Prepared::of(evidence);
    let bound = evidence.schemas.as_ref().map(KnownBytes::Fetched);
    let found = prepared.under(bound, profile, policy);
    let is_trusted = |other: &&Profile| prepared.under(bound, other, policy).state == State::Trusted;
    let trusting = if found.state == State::Trusted { Vec::new() } else { others.filter(is_trusted).collect() };
    (prepared.concluded(found), trusting)
}

fn judge_with(evidence: &Evidence, bound: Option<KnownBytes<'_>>, profile: &Profile, policy: &Policy) -> Judgement {
    let prepared = Prepared::of(evidence);
    let found = prepared.under(bound, profile, policy);
    prepared.concluded(found)
}

/// Evidence with the results that are the same under every profile, so that its bytes are hashed and parsed once.
struct Prepared<'e> {
    evidence: &'e Evidence,
    digests: Digests,
    integrity: Integrity,
    card: Option<Result<Card, JsonError>>,
}

struct ProfileFindings {
    state: State,
    reasons: Vec<Reason>,
    steps: BTreeMap<Step, Status>,
}

impl<'e> Prepared<'e> {
    fn of(evidence: &'e Evidence) -> Self {
        let card = evidence.card_bytes().map(|bytes| Card::parse(bytes));
        let digests = Digests::of_sources(evidence);
        Self { evidence, integrity: integrity::integrity_with(evidence, &digests), digests, card }
    }

    fn under(&self, bound: Option<KnownBytes<'_>>, profile: &Profile, policy: &Policy) -> ProfileFindings {
        let evidence = self.evidence;
        let proven = self.integrity.proven;
        let mut reasons = records::records(evidence, profile);
        reasons.extend(self.integrity.reasons.iter().cloned());
        reasons.extend(self.card.as_ref().and_then(|card| card.as_ref().err()).map(JsonError::reason));
        let card = self.card.as_ref().and_then(|card| card.as_ref().ok());
        if let Some(card) = card {
            reasons.extend(card::card(card, profile));
            reasons.extend(binding::binding(evidence, card, &policy.allowed_publishers));
            reasons.extend(entry::entry(card, profile));
            reasons.extend(verbs::verbs(card, profile));
            reasons.extend(home::against_record(evidence, card, profile));
            home::give_way(&mut reasons);
            mirrors(card, profile, policy.depth, &mut reasons);
            reasons.extend(schema_reasons(bound, evidence, card, profile));
        }
        reasons.extend(continuity::continuity(evidence, card.filter(|_| proven), policy.record_rest));
        reasons.retain(|reason| !policy.drops(reason.code));
        let mut reasons: Vec<Reason> = reasons.into_iter().map(|reason| weigh(reason, profile, policy)).collect();
        reason::sort(&mut reasons);
        reasons.dedup_by(|a, b| (a.code, a.effect, a.step, &a.place) == (b.code, b.effect, b.step, &b.place));
        let reached = Reached {
            proven_content: proven,
            card: card.is_some(),
            schemas: policy.depth == Depth::Schemas && bound.is_some(),
        };
        let steps = statuses(evidence, &reached, &reasons, policy);
        ProfileFindings { state: state(&reasons, &steps, policy), reasons, steps }
    }

    fn concluded(self, ProfileFindings { state, reasons, steps }: ProfileFindings) -> Judgement {
        Judgement {
            state,
            reasons,
            steps,
            card: self.card.and_then(Result::ok),
            content_is_proven: self.integrity.proven,
            digests: self.digests,
        }
    }
}

/// CL-74 and CL-82 concern mirrors that are not fetched. Depth `schemas` fetches them.
fn mirrors(card: &Card, profile: &Profile, depth: Depth, reasons: &mut Vec<Reason>) {
    match depth {
        Depth::Identity => reasons.extend(verbs::unproven_mirrors(card, profile)),
        Depth::Schemas => reasons.retain(|reason| reason.code != Code::SchemaMirrorUnproven),
    }
}

fn schema_reasons(bound: Option<KnownBytes<'_>>, evidence: &Evidence, card: &Card, profile: &Profile) -> Vec<Reason> {
    match (bound, evidence.found()) {
        (Some(bound), Some(found)) => schemas::bound(card, bound, &found.records, profile),
        _ => Vec::new(),
    }
}

/// Assigns the reason's effect according to the profile and the operator's policy.
fn weigh(mut reason: Reason, profile: &Profile, policy: &Policy) -> Reason {
    if reason.code == Code::SourceUnavailable && policy.require_all_sources {
        reason.effect = Effect::Unknown;
        return reason;
    }
    profile.weigh(reason)
}

/// The steps that must pass for `trusted`.
fn required(policy: &Policy) -> Vec<Step> {
    let mut steps =
        vec![Step::Name, Step::Records, Step::Integrity, Step::Card, Step::Binding, Step::Entry, Step::Verbs];
    if policy.require_all_sources {
        steps.extend([Step::FetchHttps, Step::FetchIpfs]);
    }
    if policy.depth == Depth::Schemas {
        steps.push(Step::Schemas);
    }
    steps
}

/// Precedence: fail, unknown, pass. A required step that did not pass rules out `trusted`.
fn state(reasons: &[Reason], steps: &BTreeMap<Step, Status>, policy: &Policy) -> State {
    let has = |effect| reasons.iter().any(|reason| reason.effect == effect);
    if has(Effect::Fail) {
        State::Untrusted
    } else if has(Effect::Unknown) || required(policy).iter().any(|step| steps.get(step) != Some(&Status::Pass)) {
        State::Indeterminate
    } else {
        State::Trusted
    }
}

/// Which inputs were available to the checks.
struct Reached {
    /// The records prove the content's bytes.
    proven_content: bool,
    /// The card was parsed.
    card: bool,
    /// The schemas were requested and are available.
    schemas: bool,
}

/// The status of each step: taken from the evidence, and possibly lowered by the step's reasons.
fn statuses(evidence: &Evidence, reached: &Reached, reasons: &[Reason], policy: &Policy) -> BTreeMap<Step, Status> {
    let base = |step| match step {
        Step::Name => Status::Pass,
        Step::Records if evidence.found().is_some() => Status::Pass,
        Step::Records => Status::Unknown,
        Step::FetchHttps => https_status(&evidence.https),
        Step::FetchIpfs => ipfs_status(&evidence.ipfs, policy),
        Step::Integrity if evidence.found().is_none() => Status::Skip,
        Step::Integrity if reached.proven_content => Status::Pass,
        Step::Integrity => Status::Unknown,
        Step::Card if evidence.card_bytes().is_some() => Status::Pass,
        Step::Binding | Step::Entry | Step::Verbs if reached.card => Status::Pass,
        Step::Schemas if reached.card && reached.schemas => Status::Pass,
        Step::Continuity => continuity::status(&evidence.continuity),
        Step::Card | Step::Binding | Step::Entry | Step::Verbs | Step::Schemas => Status::Skip,
        Step::Document | Step::Discovery | Step::Signature | Step::Payment | Step::Request | Step::Receipt => {
            Status::Skip
        }
    };
    let worsened = |step, status| {
        let has = |effect| reasons.iter().any(|reason| reason.step == step && reason.effect == effect);
        match status {
            _ if has(Effect::Fail) => Status::Fail,
            _ if has(Effect::Unknown) => Status::Unknown,
            status => status,
        }
    };
    Step::WALK.into_iter().map(|step| (step, worsened(step, base(step)))).collect()
}

fn https_status(source: &Source) -> Status {
    match source {
        Source::NotAsked => Status::Skip,
        Source::Body { .. } => Status::Pass,
        Source::Unavailable(_) => Status::Unknown,
        Source::Forbidden(_) | Source::Oversize(_) => Status::Fail,
    }
}

fn ipfs_status(walked: &IpfsOutcome, policy: &Policy) -> Status {
    match walked {
        // An identity CID contains the content itself, so IPFS counts as a source that answered.
        IpfsOutcome::Proven { by: ProvenBy::BytesInHand, .. } if policy.require_all_sources => Status::Pass,
        IpfsOutcome::NotAsked | IpfsOutcome::Proven { by: ProvenBy::BytesInHand, .. } => Status::Skip,
        IpfsOutcome::Proven { .. } => Status::Pass,
        IpfsOutcome::Unproven(_) => Status::Unknown,
        IpfsOutcome::Refuted(_) => Status::Fail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_cid_is_a_source_that_answered_where_both_must() {
        let inline = IpfsOutcome::Proven { bytes: "{}".into(), by: ProvenBy::BytesInHand, blocks: 0 };
        let all = Policy { require_all_sources: true, ..Policy::default() };
        assert_eq!(ipfs_status(&inline, &all), Status::Pass);
        assert_eq!(ipfs_status(&inline, &Policy::default()), Status::Skip);
    }
}
