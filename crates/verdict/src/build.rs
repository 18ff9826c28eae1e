//! Builds the verdict from the evidence. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::hex;
use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::card::AgentCard;
use crate::check;
use crate::check::integrity::SourceDigests;
use crate::check::licence::LicenceClarity;
use crate::check::records::owner_is_proven;
use crate::check::{EvidenceJudgement, JudgementPolicy};
use crate::evidence::{
    CanonicalAndMirrorSchema, CardLocations, ClOwnerEvidence, ContentProofSource, HttpsOutcome, IpfsMirrorLocation,
    IpfsWalkOutcome, RecordUsability, ResolutionEvidence,
};
use crate::manifest::SchemaRole;
use crate::profile::{ConformanceProfile, ConformanceProfiles};
use crate::published::PublishedPaymentRecords;
use crate::trust::{ReplayedResolution, Resolution};
use crate::verdict::{
    AgentIdentity, AgentOwnerClaim, AnchorBlock, AppliedProfile, CardReference, ChainAnchor, Freshness, PinnedDocument,
    RequestedName, SCHEMA, StepReport, StepStatus, ToolVersion, Verdict, VerdictCopyKind, canonical_digest,
};
use clresolve_core::freshness::verdict_fresh_duration;
use clresolve_core::name::{EnsName, EnsNameError};
use clresolve_core::payment::{AddressRecord, CoinType, EndpointRecord, EndpointRecordKey, PaymentRecords};
use clresolve_core::reading::{ChainError, EnsAnswer, NameHolder, NameReading, ProofGrade};
use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect, ResolutionStep};
use clresolve_core::records::{TextRecord, TextRecordKey, TextRecordSet};
use clresolve_core::state::{TrustState, TrustStateUnderOtherProfile};
use clresolve_ipfs::ProvenContentDefect;

/// Maximum length, in bytes, of a record value shown in a step's evidence. Honest records have a few hundred bytes.
const MAX_RECORD_BYTES: usize = 2048;

/// The evidence of one resolution and its timings.
#[derive(Clone, Debug)]
pub struct EvidenceWithStepDurations {
    /// The gathered evidence.
    pub evidence: ResolutionEvidence,
    /// Duration of each step, in milliseconds.
    pub milliseconds: BTreeMap<ResolutionStep, u64>,
    /// When the content was fetched, if it was reused from an earlier resolution of the same records.
    pub content_fetched_at: Option<Timestamp>,
}

/// Inputs to a verdict besides the evidence.
pub struct VerdictContext<'a> {
    /// The network, as in `anchor.world`.
    pub world: &'a str,
    /// EIP-155 chain id.
    pub chain_id: u64,
    /// All known profiles, used to find near misses.
    pub profiles: &'a ConformanceProfiles,
    /// The profile to judge by.
    pub profile: &'a ConformanceProfile,
    /// Requirements on the evidence beyond the profile.
    pub policy: &'a JudgementPolicy,
}

/// The verdict of a live resolution of a name typed in normal form, after `failures` consecutive failures.
///
/// The result may open the gate, so `run` must be this process's own and have just ended, or come from a replica. A
/// replica's run must be fresh, must have begun after the last eviction of the name, and counts as unconfirmed. Pass
/// the evidence of an earlier run to [`build_replay`].
pub fn build_resolution(reporter: &VerdictContext<'_>, run: &EvidenceWithStepDurations, failures: u32) -> Resolution {
    let (verdict, card) = build_verdict(reporter, run, failures);
    let reading = run.evidence.reading.as_ref().ok();
    let resolution = Resolution::new(verdict, card, reading.and_then(PublishedPaymentRecords::from_reading));
    match reading {
        Some(reading) => resolution.with_reading(reading),
        None => resolution,
    }
}

/// The verdict that follows from the evidence of an earlier resolution. It cannot open the gate.
pub fn build_replay(reporter: &VerdictContext<'_>, run: &EvidenceWithStepDurations) -> ReplayedResolution {
    let (verdict, card) = build_verdict(reporter, run, 0);
    ReplayedResolution::new(
        verdict,
        card,
        run.evidence.reading.as_ref().ok().and_then(PublishedPaymentRecords::from_reading),
    )
}

fn build_verdict(
    reporter: &VerdictContext<'_>,
    run: &EvidenceWithStepDurations,
    failures: u32,
) -> (Verdict, Option<Bytes>) {
    let evidence = &run.evidence;
    let all = reporter.profiles.iter().map(Arc::as_ref);
    let others = all.filter(|other: &&ConformanceProfile| other.id() != reporter.profile.id());
    let (judgement, trusting) = check::judge_with_near_misses(evidence, reporter.profile, others, reporter.policy);
    let near_miss = |other: &ConformanceProfile| TrustStateUnderOtherProfile {
        profile: other.id().to_owned(),
        would_be: TrustState::Trusted,
    };
    let near_misses = trusting.into_iter().map(near_miss).collect();
    let card = evidence.card_bytes().filter(|_| judgement.state == TrustState::Trusted).cloned();
    let verdict = Verdict {
        schema: SCHEMA.to_owned(),
        id: String::new(),
        conclusion: String::new(),
        name: requested_name(&evidence.name),
        state: judgement.state,
        summary: verdict_summary(&judgement, &evidence.name),
        identity: judgement.card.as_ref().map(|card| agent_identity(evidence, card, &judgement.digests)),
        anchor: evidence.reading.as_ref().ok().map(|reading| chain_anchor(reporter, evidence, reading)),
        profile: applied_profile(reporter.profile, reporter.policy, near_misses),
        steps: step_reports(&judgement, run, reporter.policy),
        freshness: verdict_freshness(judgement.state, evidence.now, failures),
        tool: ToolVersion::default(),
        reasons: judgement.reasons,
    };
    (verdict.with_computed_digests(), card)
}

/// The verdict for an input that is not a name. Nothing was requested, and the verdict is never cached.
pub fn invalid_name_resolution(
    input: &str,
    error: &EnsNameError,
    profile: &ConformanceProfile,
    policy: &JudgementPolicy,
    now: Timestamp,
) -> Resolution {
    let reason = Reason::new(ReasonCode::NameInvalid).observed(error.to_string());
    let reasons: Vec<Reason> = if policy.is_code_dropped(reason.code) { Vec::new() } else { vec![reason] };
    let state = if reasons.is_empty() { TrustState::Indeterminate } else { TrustState::Untrusted };
    let steps = ResolutionStep::WALK
        .into_iter()
        .map(|step| StepReport {
            step,
            status: if step == ResolutionStep::Name { StepStatus::Fail } else { StepStatus::Skip },
            evidence: json!({}),
            ms: 0,
        })
        .collect();
    let verdict = Verdict {
        schema: SCHEMA.to_owned(),
        id: String::new(),
        conclusion: String::new(),
        name: RequestedName { input: input.to_owned(), normalized: None, node: None },
        state,
        summary: format!("This is not an ENS name: {error}."),
        reasons,
        identity: None,
        anchor: None,
        profile: applied_profile(profile, policy, Vec::new()),
        steps,
        freshness: Freshness {
            checked_at: now,
            fresh_until: now,
            retry_after: None,
            confirmed: None,
            served: VerdictCopyKind::Fresh,
        },
        tool: ToolVersion::default(),
    };
    Resolution::new(verdict.with_computed_digests(), None, None)
}

fn requested_name(name: &EnsName) -> RequestedName {
    RequestedName {
        input: name.as_str().to_owned(),
        normalized: Some(name.as_str().to_owned()),
        node: Some(hex::encode_prefixed(name.namehash())),
    }
}

/// One sentence: the state and the first reason for it.
fn verdict_summary(judgement: &EvidenceJudgement, name: &EnsName) -> String {
    let mut deciding = judgement.reasons.iter().filter(|reason| reason.effect != ReasonEffect::Warn);
    let first = deciding.next().map_or("A required step did not pass.", |reason| reason.message.as_str());
    match judgement.state {
        TrustState::Trusted => format!("The binding of {name} is real: name, records, card and entry agree."),
        TrustState::Untrusted => format!("The binding of {name} is not to be trusted: {}", lower_first(first)),
        TrustState::Indeterminate => format!("The binding of {name} could not be decided: {}", lower_first(first)),
    }
}

/// Lowercases a title's first letter for use inside a sentence. Identifiers such as `cl.owner` and CID stay unchanged.
fn lower_first(sentence: &str) -> String {
    let mut chars = sentence.chars();
    let second_is_lower = sentence.chars().nth(1).is_some_and(|c| c.is_lowercase() || c == ' ');
    match chars.next() {
        Some(first) if second_is_lower => first.to_lowercase().chain(chars).collect(),
        _ => sentence.to_owned(),
    }
}

fn agent_identity(evidence: &ResolutionEvidence, card: &AgentCard, digests: &SourceDigests) -> AgentIdentity {
    let records = evidence.resolved_records().map(|found| &found.records);
    let owner = records
        .and_then(|records| RecordUsability::from_record(records, TextRecordKey::Owner).text())
        .map(|owner| AgentOwnerClaim { name: owner.to_owned(), proven: owner_is_proven(evidence) });
    let text = |member: Option<&str>| member.map(str::to_owned);
    AgentIdentity {
        ens: text(card.ens()),
        owner,
        class: text(card.class()),
        status: text(card.status()),
        version: text(card.version()),
        verbs: card.verbs().map(str::to_owned).collect(),
        entry: text(card.entry()),
        networks: card.networks().map(str::to_owned).collect(),
        card: card_reference(evidence, digests),
    }
}

fn card_reference(evidence: &ResolutionEvidence, digests: &SourceDigests) -> CardReference {
    let Some(bytes) = evidence.card_bytes() else { return CardReference::default() };
    let proven = evidence.ipfs.bytes().and_then(|_| evidence.resolved_records()).map(|found| &found.records);
    let text = |key| proven.and_then(|records| RecordUsability::from_record(records, key).text());
    let path = text(TextRecordKey::MirrorIpfs)
        .and_then(|value| IpfsMirrorLocation::parse(value).ok())
        .map(|mirror| mirror.path);
    CardReference {
        sha256: digests.digest_of(bytes).to_hex(),
        cid: text(TextRecordKey::CidAgentcard).map(str::to_owned),
        path: path.filter(|path| !path.is_empty()).map(|path| path.to_string()),
        bytes: bytes.len() as u64,
    }
}

fn chain_anchor(reporter: &VerdictContext<'_>, evidence: &ResolutionEvidence, reading: &NameReading) -> ChainAnchor {
    let found = evidence.resolved_records();
    ChainAnchor {
        world: reporter.world.to_owned(),
        chain: format!("eip155:{}", reporter.chain_id),
        block: AnchorBlock {
            number: reading.block.number,
            hash: hex::encode_prefixed(reading.block.hash),
            timestamp: reading.block.timestamp.to_string(),
            tag: evidence.block.to_string(),
        },
        resolver: found.map(|found| found.resolver.to_string()),
        wildcard: found.and_then(|found| found.wildcard.as_ref()).map(|name| name.as_str().to_owned()),
        offchain: found.is_some_and(|found| found.offchain),
        proof: reading.proof,
        records_digest: found.map(|found| records_digest(&found.records)),
    }
}

/// SHA-256 over the RFC 8785 form of the records; see [`ChainAnchor::records_digest`].
pub fn records_digest(records: &TextRecordSet) -> String {
    canonical_digest(&records_json(records, usize::MAX))
}

fn records_json(records: &TextRecordSet, longest: usize) -> Value {
    let values = records.iter().map(|(key, record)| (key.as_str().to_owned(), record_json(record, longest)));
    values.collect::<serde_json::Map<_, _>>().into()
}

/// A record as JSON: text, `0x` hex if it is not UTF-8, null if it is not set.
fn record_json(record: &TextRecord, longest: usize) -> Value {
    match record {
        TextRecord::Absent => Value::Null,
        TextRecord::Text(text) if text.len() > longest => {
            json!(format!("{}… ({} bytes)", &text[..text.floor_char_boundary(longest)], text.len()))
        }
        TextRecord::Text(text) => json!(text),
        TextRecord::NotUtf8(bytes) => json!(hex::encode_prefixed(&bytes[..bytes.len().min(longest)])),
    }
}

/// The payment records as JSON: the value, null if it is not set, or an object with the cause if it is unusable.
fn payment_records_json(published: &PublishedPaymentRecords) -> Value {
    let PaymentRecords { addresses, endpoints, .. } = published.settled_records();
    let address = |(coin, record): (&CoinType, &AddressRecord)| {
        let value = match record {
            AddressRecord::Absent => Value::Null,
            AddressRecord::Address(address) => json!(address.to_string()),
            AddressRecord::Malformed(bytes) => json!({"malformed": bytes.to_string()}),
            AddressRecord::Failed(cause) => json!({"error": cause.to_string()}),
        };
        (coin.to_string(), value)
    };
    let endpoint = |(key, record): (&EndpointRecordKey, &EndpointRecord)| {
        let value = match record {
            EndpointRecord::Read(record) => record_json(record, MAX_RECORD_BYTES),
            EndpointRecord::Failed(cause) => json!({"error": cause.to_string()}),
        };
        (key.to_string(), value)
    };
    json!({
        "addresses": addresses.iter().map(address).collect::<serde_json::Map<_, _>>(),
        "endpoints": endpoints.iter().map(endpoint).collect::<serde_json::Map<_, _>>(),
    })
}

fn applied_profile(
    profile: &ConformanceProfile,
    policy: &JudgementPolicy,
    near_misses: Vec<TrustStateUnderOtherProfile>,
) -> AppliedProfile {
    let manifests = profile
        .manifests()
        .map(|manifest| PinnedDocument { id: manifest.id().to_owned(), digest: manifest.digest().to_string() })
        .collect();
    AppliedProfile {
        id: profile.id().to_owned(),
        depth: policy.depth,
        digest: profile.digest().to_string(),
        manifests,
        near_misses,
    }
}

pub(crate) fn verdict_freshness(state: TrustState, now: Timestamp, failures: u32) -> Freshness {
    let fresh = verdict_fresh_duration(state, failures);
    let until = SignedDuration::try_from(fresh).ok().and_then(|fresh| now.checked_add(fresh).ok()).unwrap_or(now);
    Freshness {
        checked_at: now,
        fresh_until: until,
        retry_after: (state == TrustState::Indeterminate).then_some(fresh.as_secs()),
        confirmed: None,
        served: VerdictCopyKind::Fresh,
    }
}

fn step_reports(
    judgement: &EvidenceJudgement,
    run: &EvidenceWithStepDurations,
    policy: &JudgementPolicy,
) -> Vec<StepReport> {
    let parallel = parallel_steps(run, policy);
    let report = |(step, status): (&ResolutionStep, &StepStatus)| StepReport {
        step: *step,
        status: *status,
        evidence: with_parallel_steps(step_evidence(*step, run, judgement), *step, &parallel),
        ms: run.milliseconds.get(step).copied().unwrap_or(0),
    };
    judgement.steps.iter().map(report).collect()
}

/// Member of a step's evidence that lists the steps which ran in parallel with it.
pub const IN_PARALLEL_WITH: &str = "in_parallel_with";

/// The steps that ran in parallel, if there were several. With a raw CID, IPFS waits for the URL's bytes unless all
/// sources must answer.
fn parallel_steps(run: &EvidenceWithStepDurations, policy: &JudgementPolicy) -> Vec<ResolutionStep> {
    let evidence = &run.evidence;
    let Some(found) = evidence.resolved_records() else { return Vec::new() };
    let waits = CardLocations::from_records(&found.records).ipfs_walk_awaits_url(policy.require_all_sources);
    let fetched = run.content_fetched_at.is_none();
    let asked = [
        (ResolutionStep::FetchHttps, fetched && !matches!(evidence.https, HttpsOutcome::NotAsked)),
        (ResolutionStep::FetchIpfs, fetched && !waits && !matches!(evidence.ipfs, IpfsWalkOutcome::NotAsked)),
        (
            ResolutionStep::Binding,
            evidence.links.is_some() || matches!(evidence.owner, ClOwnerEvidence::Failed(_) | ClOwnerEvidence::Read(_)),
        ),
    ];
    let steps: Vec<ResolutionStep> = asked.into_iter().filter(|(_, asked)| *asked).map(|(step, _)| step).collect();
    if steps.len() > 1 { steps } else { Vec::new() }
}

/// Adds the steps that ran in parallel to the evidence of `step`.
fn with_parallel_steps(mut evidence: Value, step: ResolutionStep, parallel: &[ResolutionStep]) -> Value {
    if parallel.contains(&step) {
        evidence[IN_PARALLEL_WITH] = parallel.iter().filter(|other| **other != step).map(|step| step.slug()).collect();
    }
    evidence
}

fn step_evidence(step: ResolutionStep, run: &EvidenceWithStepDurations, judgement: &EvidenceJudgement) -> Value {
    let evidence = &run.evidence;
    let card = judgement.card.as_ref();
    match step {
        ResolutionStep::Name => json!({"input": evidence.name.as_str(), "normalized": evidence.name.as_str()}),
        ResolutionStep::Records => records_evidence_json(evidence),
        ResolutionStep::FetchHttps => https_evidence_json(run, &judgement.digests),
        ResolutionStep::FetchIpfs => ipfs_evidence_json(evidence, &judgement.digests),
        ResolutionStep::Integrity => json!({"proven": judgement.content_is_proven}),
        ResolutionStep::Card => evidence.card_bytes().map_or_else(
            || json!({}),
            |bytes| {
                json!({
                    "sha256": judgement.digests.digest_of(bytes).to_string(),
                    "bytes": bytes.len(),
                    "from": judged_card_source(evidence),
                    "owner": card.and_then(AgentCard::owner),
                    "license": card.and_then(|card| card.text_at("/license")).map(|text| LicenceClarity::classify(text).as_str()),
                })
            },
        ),
        ResolutionStep::Binding => match (card, &evidence.links) {
            (None, _) => json!({}),
            (Some(_), None) => json!({"owner": owner_evidence_json(evidence)}),
            (Some(card), Some(links)) => {
                let url = evidence.resolved_records().and_then(|found| found.records.text(TextRecordKey::Agentcard));
                let links = check::links::compare_external_statements(links, &evidence.name, card, url);
                json!({"owner": owner_evidence_json(evidence), "links": links})
            }
        },
        ResolutionStep::Entry => card.map_or_else(|| json!({}), |card| json!({"entry": card.entry()})),
        ResolutionStep::Verbs => card.map_or_else(
            || json!({}),
            |card| {
                json!({
                    "class": card.class(),
                    "implements": card.verbs().collect::<Vec<_>>(),
                    "request": card.schema_location(SchemaRole::Request),
                    "receipt": card.schema_location(SchemaRole::Receipt),
                })
            },
        ),
        ResolutionStep::Schemas => schemas_evidence_json(evidence, card),
        ResolutionStep::Continuity => continuity_evidence_json(evidence),
        ResolutionStep::Document | ResolutionStep::Discovery | ResolutionStep::Signature | ResolutionStep::Payment | ResolutionStep::Request | ResolutionStep::Receipt => json!({}),
    }
}

/// The source of the judged card (CL-59).
fn judged_card_source(evidence: &ResolutionEvidence) -> &'static str {
    if evidence.ipfs.bytes().is_some() {
        "cl.cid.agentcard"
    } else if evidence.https.bytes().is_some() {
        "cl.agentcard"
    } else {
        "cl.agentcard.mirror.ipfs"
    }
}

/// The holder of a name as JSON.
fn name_holder_json(holder: NameHolder) -> Value {
    match holder {
        NameHolder::Nobody => Value::Null,
        NameHolder::Address(holder) => json!(holder.to_string()),
        NameHolder::Unreadable { unreadable } => json!({"unreadable": unreadable.to_string()}),
    }
}

fn expiry_json(expiry: Option<Timestamp>) -> Value {
    json!(expiry.map_or_else(|| "not readable".to_owned(), |expiry| expiry.to_string()))
}

/// The variant of an answer as JSON.
fn ens_answer_kind_json(answer: &EnsAnswer) -> Value {
    json!(match answer {
        EnsAnswer::Unregistered => "not registered",
        EnsAnswer::NoResolver(_) => "no resolver",
        EnsAnswer::Records(_) => "records",
    })
}

fn records_evidence_json(evidence: &ResolutionEvidence) -> Value {
    let reading = match &evidence.reading {
        Ok(reading) => reading,
        Err(ChainError::Disagree(answers)) => return json!({"said": messages_by_endpoint_json(answers, "said")}),
        Err(ChainError::Unproven(causes)) => return json!({"unproven": messages_by_endpoint_json(causes, "cause")}),
        Err(error) => return json!({"error": error.to_string()}),
    };
    let mut value = json!({
        "block": reading.block.number,
        "holder": name_holder_json(reading.holder),
        "expiry": expiry_json(reading.expiry),
        "latest": match &reading.latest {
            None => "not asked".to_owned(),
            Some(Ok(latest)) if latest.agrees_with_reading(reading) => "the same".to_owned(),
            Some(Ok(_)) => "different".to_owned(),
            Some(Err(error)) => error.to_string(),
        },
    });
    let answer = match &reading.answer {
        EnsAnswer::Unregistered | EnsAnswer::NoResolver(_) => {
            json!({"answer": ens_answer_kind_json(&reading.answer)})
        }
        EnsAnswer::Records(found) => json!({
            "answer": ens_answer_kind_json(&reading.answer),
            "resolver": found.resolver.to_string(),
            "records": records_json(&found.records, MAX_RECORD_BYTES),
        }),
    };
    if let Some(published) = PublishedPaymentRecords::from_reading(reading) {
        extend_object(&mut value, payment_records_json(&published));
        let pending: Vec<String> = published.pending_records().collect();
        if !pending.is_empty() {
            value["payment_pending"] = json!(pending);
        }
    }
    if reading.proof.grade != ProofGrade::SingleRpc {
        value["agreed_by"] = json!(reading.endpoints);
    }
    if !reading.contradicted_by.is_empty() {
        value["contradicted_by"] = messages_by_endpoint_json(&reading.contradicted_by, "said");
    }
    if !reading.failed_endpoints.is_empty() {
        value["failed_endpoints"] = messages_by_endpoint_json(&reading.failed_endpoints, "cause");
    }
    extend_object(&mut value, answer);
    value
}

fn extend_object(value: &mut Value, more: Value) {
    if let (Some(value), Value::Object(more)) = (value.as_object_mut(), more) {
        value.extend(more);
    }
}

/// Messages grouped by endpoint label, under `member`.
fn messages_by_endpoint_json(words: &[(String, String)], member: &str) -> Value {
    words.iter().map(|(label, word)| json!({"endpoint": label, member: word})).collect()
}

fn https_evidence_json(run: &EvidenceWithStepDurations, digests: &SourceDigests) -> Value {
    match &run.evidence.https {
        HttpsOutcome::NotAsked => json!({"asked": false}),
        HttpsOutcome::Body { bytes, url } => {
            let mut value = json!({"url": url, "bytes": bytes.len(), "sha256": digests.digest_of(bytes).to_string()});
            if let Some(fetched_at) = run.content_fetched_at {
                value["fetched_at"] = json!(fetched_at.to_string());
            }
            value
        }
        HttpsOutcome::Unavailable(cause) => json!({"unavailable": cause}),
        HttpsOutcome::Forbidden(cause) => json!({"forbidden": cause}),
        HttpsOutcome::Oversize(limit) => json!({"limit": limit}),
    }
}

fn ipfs_evidence_json(evidence: &ResolutionEvidence, digests: &SourceDigests) -> Value {
    let mut value = match &evidence.ipfs {
        IpfsWalkOutcome::NotAsked => json!({"asked": false}),
        IpfsWalkOutcome::Proven { bytes, by, blocks } => json!({
            "bytes": bytes.len(), "sha256": digests.digest_of(bytes).to_string(), "blocks": blocks,
            "proven_by": match by {
                ContentProofSource::Gateway => "blocks of gateways",
                ContentProofSource::BytesInHand => "bytes in hand",
                ContentProofSource::EarlierRun => "blocks of an earlier run",
            },
        }),
        IpfsWalkOutcome::Refuted(refuted) => match refuted.refutation() {
            ProvenContentDefect::PathMissing => json!({"path_missing": refuted.to_string()}),
            ProvenContentDefect::NotFile => json!({"not_a_file": true}),
            ProvenContentDefect::Invalid => json!({"invalid": refuted.error_class(), "detail": refuted.to_string()}),
            ProvenContentDefect::HashForbidden => json!({"hash_forbidden": refuted.to_string()}),
            ProvenContentDefect::Oversize { limit } => json!({"limit": limit}),
        },
        IpfsWalkOutcome::Unproven(causes) => {
            json!({"gateways": causes.iter().map(|(g, c)| json!({"gateway": g, "cause": c})).collect::<Vec<_>>()})
        }
    };
    if !evidence.liars.is_empty() {
        value["liars"] = evidence.liars.iter().map(|(g, cid)| json!({"gateway": g, "cid": cid})).collect();
    }
    value
}

fn owner_evidence_json(evidence: &ResolutionEvidence) -> Value {
    match &evidence.owner {
        ClOwnerEvidence::NotAsked => json!({"asked": false}),
        ClOwnerEvidence::NotAName(cause) => json!({"proven": false, "cause": cause}),
        ClOwnerEvidence::Failed(cause) => json!({"proven": false, "cause": cause}),
        ClOwnerEvidence::Read(holding) => json!({
            "proven": owner_is_proven(evidence),
            "address": holding.address.map(|address| address.to_string()),
            "holder": name_holder_json(holding.holder),
        }),
    }
}

fn schemas_evidence_json(evidence: &ResolutionEvidence, card: Option<&AgentCard>) -> Value {
    let (Some(schemas), Some(card)) = (&evidence.schemas, card) else { return json!({"asked": false}) };
    let one = |side, bound: &CanonicalAndMirrorSchema| {
        json!({
            "canonical": card.schema_location(side),
            "sha256": bound.canonical.as_ref().ok().map(|served| served.digest().to_string()),
            "cause": bound.canonical.as_ref().err(),
            "mirror": card.schema_mirror_location(side),
        })
    };
    json!({"request": one(SchemaRole::Request, &schemas.request), "receipt": one(SchemaRole::Receipt, &schemas.receipt)})
}

fn continuity_evidence_json(evidence: &ResolutionEvidence) -> Value {
    let Some(history) = evidence.continuity.history() else {
        return evidence.continuity.store_failure().map_or_else(|| json!({}), |cause| json!({"unavailable": cause}));
    };
    if history.is_empty() {
        return json!({"remembered": false});
    }
    json!({
        "remembered": true,
        "first_block": history.first_block,
        "last_block": history.last_block,
        "versions": history.versions.len(),
    })
}
