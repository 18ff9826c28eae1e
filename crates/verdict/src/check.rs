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

pub use self::findings::{MAX_REASONS_PER_CODE, ReasonCollector};
use self::integrity::{IntegrityFindings, SourceDigests};
use self::schemas::FetchedOrPinnedSchemas;
use crate::card::AgentCard;
use crate::evidence::{ContentProofSource, HttpsOutcome, IpfsWalkOutcome, ResolutionEvidence};
use crate::profile::ConformanceProfile;
use crate::verdict::{ResolutionDepth, StepStatus};
use clresolve_core::json::JsonError;
use clresolve_core::reason;
use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect, ResolutionStep};
use clresolve_core::state::TrustState;

/// What the operator requires of a judgement beyond the profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JudgementPolicy {
    /// The depth of the resolution.
    pub depth: ResolutionDepth,
    /// Whether both sources of the card must answer.
    pub require_all_sources: bool,
    /// Owners whose commons cards are accepted (CL-58); empty accepts all.
    pub allowed_publishers: Vec<String>,
    /// Number of blocks for which a record must be unchanged, or else `record-recent` is reported; 0 disables the
    /// check.
    pub record_rest: u64,
    /// Codes whose findings are dropped. Tests use this to show that each code matters.
    #[cfg(feature = "unstable")]
    pub without: Vec<ReasonCode>,
}

impl JudgementPolicy {
    /// Whether findings of this code are dropped.
    #[cfg(feature = "unstable")]
    pub(crate) fn is_code_dropped(&self, code: ReasonCode) -> bool {
        self.without.contains(&code)
    }

    /// No findings are dropped outside of tests.
    #[cfg(not(feature = "unstable"))]
    pub(crate) const fn is_code_dropped(&self, _: ReasonCode) -> bool {
        false
    }
}

/// The result of the checks.
#[derive(Clone, Debug)]
pub struct EvidenceJudgement {
    /// The state.
    pub state: TrustState,
    /// Every reason, sorted.
    pub reasons: Vec<Reason>,
    /// The status of each step.
    pub steps: BTreeMap<ResolutionStep, StepStatus>,
    /// The card, if the judged bytes are one.
    pub card: Option<AgentCard>,
    /// Whether the judged bytes match both the CID and the checksum.
    pub content_is_proven: bool,
    /// The digests of the sources.
    pub(crate) digests: SourceDigests,
}

/// The credentials in a card of any system: each reason gives the location and the kind, never the credential.
pub fn find_secrets(card: &AgentCard) -> Vec<Reason> {
    let mut found = ReasonCollector::default();
    content::add_content_findings(card, &mut found);
    found.0.retain(|reason| reason.code == ReasonCode::SecretInCard);
    found.0
}

/// Judges evidence under a profile.
pub fn judge_evidence(
    evidence: &ResolutionEvidence,
    profile: &ConformanceProfile,
    policy: &JudgementPolicy,
) -> EvidenceJudgement {
    judge_with_bound_schemas(evidence, evidence.schemas.as_ref().map(FetchedOrPinnedSchemas::Fetched), profile, policy)
}

/// Judges evidence that a publisher plans. Nothing is fetched: at depth `schemas`, each schema location counts as
/// serving the bytes that the manifests pin.
pub fn judge_planned_evidence(
    evidence: &ResolutionEvidence,
    profile: &ConformanceProfile,
    policy: &JudgementPolicy,
) -> EvidenceJudgement {
    let schemas = (policy.depth == ResolutionDepth::Schemas).then_some(FetchedOrPinnedSchemas::AsPinned);
    judge_with_bound_schemas(evidence, schemas, profile, policy)
}

/// Like [`judge_evidence`]. If the evidence is not trusted under `profile`, also returns those of `others` under which
/// it is.
pub(crate) fn judge_with_near_misses<'p>(
    evidence: &ResolutionEvidence,
    profile: &ConformanceProfile,
    others: impl Iterator<Item = &'p ConformanceProfile>,
    policy: &JudgementPolicy,
) -> (EvidenceJudgement, Vec<&'p ConformanceProfile>) {
    let prepared = PreparedEvidence::from_evidence(evidence);
    let bound = evidence.schemas.as_ref().map(FetchedOrPinnedSchemas::Fetched);
    let found = prepared.judge_under(bound, profile, policy);
    let is_trusted =
        |other: &&ConformanceProfile| prepared.judge_under(bound, other, policy).state == TrustState::Trusted;
    let trusting = if found.state == TrustState::Trusted { Vec::new() } else { others.filter(is_trusted).collect() };
    (prepared.into_judgement(found), trusting)
}

fn judge_with_bound_schemas(
    evidence: &ResolutionEvidence,
    bound: Option<FetchedOrPinnedSchemas<'_>>,
    profile: &ConformanceProfile,
    policy: &JudgementPolicy,
) -> EvidenceJudgement {
    let prepared = PreparedEvidence::from_evidence(evidence);
    let found = prepared.judge_under(bound, profile, policy);
    prepared.into_judgement(found)
}

/// Evidence with the results that are the same under every profile, so that its bytes are hashed and parsed once.
struct PreparedEvidence<'e> {
    evidence: &'e ResolutionEvidence,
    digests: SourceDigests,
    integrity: IntegrityFindings,
    card: Option<Result<AgentCard, JsonError>>,
}

struct ProfileJudgement {
    state: TrustState,
    reasons: Vec<Reason>,
    steps: BTreeMap<ResolutionStep, StepStatus>,
}

impl<'e> PreparedEvidence<'e> {
    fn from_evidence(evidence: &'e ResolutionEvidence) -> Self {
        let card = evidence.card_bytes().map(|bytes| AgentCard::parse(bytes));
        let digests = SourceDigests::from_sources(evidence);
        Self { evidence, integrity: integrity::check_integrity_with_digests(evidence, &digests), digests, card }
    }

    fn judge_under(
        &self,
        bound: Option<FetchedOrPinnedSchemas<'_>>,
        profile: &ConformanceProfile,
        policy: &JudgementPolicy,
    ) -> ProfileJudgement {
        let evidence = self.evidence;
        let proven = self.integrity.proven;
        let mut reasons = records::check_records(evidence, profile);
        reasons.extend(self.integrity.reasons.iter().cloned());
        reasons.extend(self.card.as_ref().and_then(|card| card.as_ref().err()).map(JsonError::to_card_reason));
        let card = self.card.as_ref().and_then(|card| card.as_ref().ok());
        if let Some(card) = card {
            reasons.extend(card::check_card(card, profile));
            reasons.extend(binding::check_records_match_card(evidence, card, &policy.allowed_publishers));
            reasons.extend(entry::check_entry(card, profile));
            reasons.extend(verbs::check_verbs(card, profile));
            reasons.extend(home::compare_id_with_card_url(evidence, card, profile));
            home::drop_schema_rejected_findings(&mut reasons);
            adjust_unproven_mirror_reasons(card, profile, policy.depth, &mut reasons);
            reasons.extend(schema_reasons(bound, evidence, card, profile));
        }
        reasons.extend(continuity::check_continuity(evidence, card.filter(|_| proven), policy.record_rest));
        reasons.retain(|reason| !policy.is_code_dropped(reason.code));
        let mut reasons: Vec<Reason> =
            reasons.into_iter().map(|reason| assign_effect(reason, profile, policy)).collect();
        reason::sort_reasons(&mut reasons);
        reasons.dedup_by(|a, b| (a.code, a.effect, a.step, &a.place) == (b.code, b.effect, b.step, &b.place));
        let reached = InputAvailability {
            proven_content: proven,
            card: card.is_some(),
            schemas: policy.depth == ResolutionDepth::Schemas && bound.is_some(),
        };
        let steps = step_statuses(evidence, &reached, &reasons, policy);
        ProfileJudgement { state: conclude_state(&reasons, &steps, policy), reasons, steps }
    }

    fn into_judgement(self, ProfileJudgement { state, reasons, steps }: ProfileJudgement) -> EvidenceJudgement {
        EvidenceJudgement {
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
fn adjust_unproven_mirror_reasons(
    card: &AgentCard,
    profile: &ConformanceProfile,
    depth: ResolutionDepth,
    reasons: &mut Vec<Reason>,
) {
    match depth {
        ResolutionDepth::Identity => reasons.extend(verbs::unproven_mirrors(card, profile)),
        ResolutionDepth::Schemas => reasons.retain(|reason| reason.code != ReasonCode::SchemaMirrorUnproven),
    }
}

fn schema_reasons(
    bound: Option<FetchedOrPinnedSchemas<'_>>,
    evidence: &ResolutionEvidence,
    card: &AgentCard,
    profile: &ConformanceProfile,
) -> Vec<Reason> {
    match (bound, evidence.resolved_records()) {
        (Some(bound), Some(found)) => schemas::check_bound_schemas(card, bound, &found.records, profile),
        _ => Vec::new(),
    }
}

/// Assigns the reason's effect according to the profile and the operator's policy.
fn assign_effect(mut reason: Reason, profile: &ConformanceProfile, policy: &JudgementPolicy) -> Reason {
    if reason.code == ReasonCode::SourceUnavailable && policy.require_all_sources {
        reason.effect = ReasonEffect::Unknown;
        return reason;
    }
    profile.assign_effect(reason)
}

/// The steps that must pass for `trusted`.
fn required_steps(policy: &JudgementPolicy) -> Vec<ResolutionStep> {
    let mut steps = vec![
        ResolutionStep::Name,
        ResolutionStep::Records,
        ResolutionStep::Integrity,
        ResolutionStep::Card,
        ResolutionStep::Binding,
        ResolutionStep::Entry,
        ResolutionStep::Verbs,
    ];
    if policy.require_all_sources {
        steps.extend([ResolutionStep::FetchHttps, ResolutionStep::FetchIpfs]);
    }
    if policy.depth == ResolutionDepth::Schemas {
        steps.push(ResolutionStep::Schemas);
    }
    steps
}

/// Precedence: fail, unknown, pass. A required step that did not pass rules out `trusted`.
fn conclude_state(
    reasons: &[Reason],
    steps: &BTreeMap<ResolutionStep, StepStatus>,
    policy: &JudgementPolicy,
) -> TrustState {
    let has = |effect| reasons.iter().any(|reason| reason.effect == effect);
    if has(ReasonEffect::Fail) {
        TrustState::Untrusted
    } else if has(ReasonEffect::Unknown)
        || required_steps(policy).iter().any(|step| steps.get(step) != Some(&StepStatus::Pass))
    {
        TrustState::Indeterminate
    } else {
        TrustState::Trusted
    }
}

/// Which inputs were available to the checks.
struct InputAvailability {
    /// The records prove the content's bytes.
    proven_content: bool,
    /// The card was parsed.
    card: bool,
    /// The schemas were requested and are available.
    schemas: bool,
}

/// The status of each step: taken from the evidence, and possibly lowered by the step's reasons.
fn step_statuses(
    evidence: &ResolutionEvidence,
    reached: &InputAvailability,
    reasons: &[Reason],
    policy: &JudgementPolicy,
) -> BTreeMap<ResolutionStep, StepStatus> {
    let base = |step| match step {
        ResolutionStep::Name => StepStatus::Pass,
        ResolutionStep::Records if evidence.resolved_records().is_some() => StepStatus::Pass,
        ResolutionStep::Records => StepStatus::Unknown,
        ResolutionStep::FetchHttps => https_step_status(&evidence.https),
        ResolutionStep::FetchIpfs => ipfs_step_status(&evidence.ipfs, policy),
        ResolutionStep::Integrity if evidence.resolved_records().is_none() => StepStatus::Skip,
        ResolutionStep::Integrity if reached.proven_content => StepStatus::Pass,
        ResolutionStep::Integrity => StepStatus::Unknown,
        ResolutionStep::Card if evidence.card_bytes().is_some() => StepStatus::Pass,
        ResolutionStep::Binding | ResolutionStep::Entry | ResolutionStep::Verbs if reached.card => StepStatus::Pass,
        ResolutionStep::Schemas if reached.card && reached.schemas => StepStatus::Pass,
        ResolutionStep::Continuity => continuity::initial_continuity_status(&evidence.continuity),
        ResolutionStep::Card
        | ResolutionStep::Binding
        | ResolutionStep::Entry
        | ResolutionStep::Verbs
        | ResolutionStep::Schemas => StepStatus::Skip,
        ResolutionStep::Document
        | ResolutionStep::Discovery
        | ResolutionStep::Signature
        | ResolutionStep::Payment
        | ResolutionStep::Request
        | ResolutionStep::Receipt => StepStatus::Skip,
    };
    let worsened = |step, status| {
        let has = |effect| reasons.iter().any(|reason| reason.step == step && reason.effect == effect);
        match status {
            _ if has(ReasonEffect::Fail) => StepStatus::Fail,
            _ if has(ReasonEffect::Unknown) => StepStatus::Unknown,
            status => status,
        }
    };
    ResolutionStep::WALK.into_iter().map(|step| (step, worsened(step, base(step)))).collect()
}

fn https_step_status(source: &HttpsOutcome) -> StepStatus {
    match source {
        HttpsOutcome::NotAsked => StepStatus::Skip,
        HttpsOutcome::Body { .. } => StepStatus::Pass,
        HttpsOutcome::Unavailable(_) => StepStatus::Unknown,
        HttpsOutcome::Forbidden(_) | HttpsOutcome::Oversize(_) => StepStatus::Fail,
    }
}

fn ipfs_step_status(walked: &IpfsWalkOutcome, policy: &JudgementPolicy) -> StepStatus {
    match walked {
        // An identity CID contains the content itself, so IPFS counts as a source that answered.
        IpfsWalkOutcome::Proven { by: ContentProofSource::BytesInHand, .. } if policy.require_all_sources => {
            StepStatus::Pass
        }
        IpfsWalkOutcome::NotAsked | IpfsWalkOutcome::Proven { by: ContentProofSource::BytesInHand, .. } => {
            StepStatus::Skip
        }
        IpfsWalkOutcome::Proven { .. } => StepStatus::Pass,
        IpfsWalkOutcome::Unproven(_) => StepStatus::Unknown,
        IpfsWalkOutcome::Refuted(_) => StepStatus::Fail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_cid_is_a_source_that_answered_where_both_must() {
        let inline = IpfsWalkOutcome::Proven { bytes: "{}".into(), by: ContentProofSource::BytesInHand, blocks: 0 };
        let all = JudgementPolicy { require_all_sources: true, ..JudgementPolicy::default() };
        assert_eq!(ipfs_step_status(&inline, &all), StepStatus::Pass);
        assert_eq!(ipfs_step_status(&inline, &JudgementPolicy::default()), StepStatus::Skip);
    }
}
