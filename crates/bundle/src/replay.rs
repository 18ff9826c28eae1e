//! The replay: repeats every proof in a bundle and judges its evidence again.

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::B256;
use jiff::Timestamp;
use serde_json::Value;

use super::error::BundleError;
use super::form::{
    BundleDocument, BundleRequestDocument, IpfsWalkDocument, SerializableResult, StateProofOrAttestation,
};
use super::trust_anchors::BundleTrustAnchors;
use super::{header, light_client};
use clresolve_core::digest::Digest;
use clresolve_core::name::EnsName;
use clresolve_core::payment::PaymentRecords;
use clresolve_core::reading::{BlockSelector, EnsAnswer, NameReading, ProofGrade, ResolvedRecords};
use clresolve_core::records::TextRecordKey;
use clresolve_core::state::TrustState;
use clresolve_core::world::RESERVED as RESERVED_WORLDS;
use clresolve_core::world::SANDBOX;
use clresolve_ipfs::build::write_car;
use clresolve_ipfs::car::{CarLimits, CarReader};
use clresolve_ipfs::{ContentId, DagWalk, DagWalkBudget, UnixFsPath};
use clresolve_state::{EnsContractAddresses, StateProof, StateProofError};
use clresolve_verdict::build;
use clresolve_verdict::build::{EvidenceWithStepDurations, VerdictContext};
use clresolve_verdict::card::AgentCard;
use clresolve_verdict::check::JudgementPolicy;
use clresolve_verdict::evidence::continuity::HistoryOutcome;
use clresolve_verdict::evidence::{
    CardLocations, ClOwnerEvidence, ContentProofSource, HttpsOutcome, IpfsWalkOutcome, RecordUsability,
    ResolutionEvidence,
};
use clresolve_verdict::profile::{ConformanceProfile, ConformanceProfiles};
use clresolve_verdict::trust::ReplayedResolution;
use clresolve_verdict::verdict::{ResolutionDepth, Verdict};

/// A bundle whose verdict follows from its evidence.
#[derive(Clone, Debug)]
pub struct VerifiedBundle {
    /// The verdict that follows from the evidence, and the card if it is proven.
    pub replay: ReplayedResolution,
    /// The digest of the bundle.
    pub digest: Digest,
    /// When the evidence was gathered, according to the bundle.
    pub made_at: Timestamp,
    /// Facts proven from the bytes of the bundle alone; one clause each.
    pub proven: Vec<String>,
    /// Facts that rest on the exporter's word; one clause each.
    pub attested: Vec<String>,
}

/// Replays `document` and compares the result with the verdict in it.
pub(super) fn replay_and_compare(
    document: &BundleDocument,
    digest: Digest,
    anchors: BundleTrustAnchors<'_>,
) -> Result<VerifiedBundle, BundleError> {
    let (evidence, replay) = judge_evidence(document, anchors)?;
    if let Some(at) = verdict_difference(&document.verdict, replay.verdict())
        .filter(|_| !clresolve_core::mutant!("bundled-verdict-is-believed"))
    {
        return Err(BundleError::Verdict { at });
    }
    Ok(VerifiedBundle {
        proven: proven_facts(document, &evidence, replay.verdict()),
        attested: attested_facts(document, &evidence),
        made_at: document.run.at,
        digest,
        replay,
    })
}

/// Repeats the proofs of `document` and judges its evidence, regardless of the verdict in it.
pub(super) fn judge_evidence(
    document: &BundleDocument,
    anchors: BundleTrustAnchors<'_>,
) -> Result<(ResolutionEvidence, ReplayedResolution), BundleError> {
    let BundleTrustAnchors { profiles, checkpoint } = anchors;
    let (profile, policy) = find_profile_and_policy(&document.question, profiles)?;
    let run = recheck_run_proofs(document, &policy, checkpoint)?;
    let reporter = VerdictContext {
        world: &document.run.world,
        chain_id: document.run.chain_id,
        profiles,
        profile: &profile,
        policy: &policy,
    };
    let replay = build::build_replay(&reporter, &run);
    Ok((run.evidence, replay))
}

/// The resolution, if `reporter` could have made it for the same name and block.
pub(super) fn replay_reported_run(
    document: &BundleDocument,
    reporter: &VerdictContext<'_>,
    checkpoint: Option<B256>,
    name: &EnsName,
    block: BlockSelector,
) -> Result<EvidenceWithStepDurations, BundleError> {
    let asked = BundleRequestDocument::from_rules(name, block, reporter.profile, reporter.policy);
    let of_world = (document.run.world.as_str(), document.run.chain_id);
    if document.question != asked || of_world != (reporter.world, reporter.chain_id) {
        return Err(BundleError::Inconsistent("the bundle answers another request"));
    }
    recheck_run_proofs(document, reporter.policy, checkpoint)
}

/// The resolution, with its proofs repeated.
fn recheck_run_proofs(
    document: &BundleDocument,
    policy: &JudgementPolicy,
    checkpoint: Option<B256>,
) -> Result<EvidenceWithStepDurations, BundleError> {
    let evidence = rebuild_evidence(document)?;
    if let (Some(rlp), Ok(reading)) = (&document.header, &evidence.reading) {
        header::check_header(&rlp.0, &reading.block)?;
    } else if document.header.is_some() {
        return Err(BundleError::Inconsistent("a header without a reading"));
    }
    check_evidence_consistency(&evidence, policy)?;
    check_reading_proofs(document, &evidence)?;
    check_header_proof(document, &evidence, checkpoint)?;
    let world = (document.run.world.as_str(), document.run.chain_id);
    if RESERVED_WORLDS.iter().any(|(name, id)| *name == world.0 && *id != world.1) {
        return Err(BundleError::Inconsistent("the network has another chain"));
    }
    if document.signed.is_some() && world.0 == SANDBOX {
        return Err(BundleError::Inconsistent("a signature in the sandbox, which signs nothing"));
    }
    // Durations prove nothing, and are copied only so that whole verdicts can be compared.
    let milliseconds: BTreeMap<_, _> = document.verdict.steps.iter().map(|step| (step.step, step.ms)).collect();
    Ok(EvidenceWithStepDurations { evidence, milliseconds, content_fetched_at: None })
}

/// Computes the reading from its proofs. A reading of grade `state-proof` or `consensus-proof` must come with
/// proofs, and no other reading may.
fn check_reading_proofs(document: &BundleDocument, evidence: &ResolutionEvidence) -> Result<(), BundleError> {
    let (SerializableResult::Given(form), Ok(reading)) = (&document.reading, &evidence.reading) else { return Ok(()) };
    let state_proof = match (&form.backing, reading.proof.grade) {
        (StateProofOrAttestation::Attested, ProofGrade::StateProof | ProofGrade::ConsensusProof) => {
            return Err(StateProofError::Missing.into());
        }
        (StateProofOrAttestation::Attested, _) => return Ok(()),
        (StateProofOrAttestation::Proven(_), _) if clresolve_core::mutant!("bundled-state-is-believed") => {
            return Ok(());
        }
        (StateProofOrAttestation::Proven(state_proof), ProofGrade::StateProof | ProofGrade::ConsensusProof) => {
            state_proof
        }
        (StateProofOrAttestation::Proven(_), _) => {
            return Err(BundleError::Inconsistent("state proofs with a grade that uses none"));
        }
    };
    let header = document.header.as_ref().ok_or(BundleError::Header("it is missing"))?;
    let replay = state_proof.verify_under_header(&header.0, document.run.chain_id)?;
    let computed = replay.replay_reading(&document.question.name)?;
    let contradicted = |what| Err(StateProofError::Contradicted(what).into());
    if !computed.answer.has_same_records(&reading.answer) {
        return contradicted("records");
    }
    if !payment_records(&computed.answer).has_same_values(payment_records(&reading.answer))
        && !clresolve_core::mutant!("bundled-addresses-are-believed")
    {
        return contradicted("addresses or endpoints");
    }
    if (computed.holder, computed.expiry) != (reading.holder, reading.expiry) {
        return contradicted("holder or expiry");
    }
    let owner = evidence
        .resolved_records()
        .and_then(|found| RecordUsability::from_record(&found.records, TextRecordKey::Owner).text());
    match (owner.and_then(|owner| EnsName::parse(owner).ok()), &evidence.owner) {
        (Some(owner), ClOwnerEvidence::Read(holding)) if replay.replay_owner_details(&owner)? != *holding => {
            contradicted("owner")
        }
        (_, ClOwnerEvidence::Read(_)) => Ok(()),
        _ if state_proof.owner_look_ups.is_empty() => Ok(()),
        _ => Err(StateProofError::LookUps("nothing asks for them").into()),
    }
}

/// Verifies the header of a reading of grade `consensus-proof` from the reader's checkpoint. No other reading may have
/// a light client's proof.
fn check_header_proof(
    document: &BundleDocument,
    evidence: &ResolutionEvidence,
    checkpoint: Option<B256>,
) -> Result<(), BundleError> {
    let Ok(reading) = &evidence.reading else { return Ok(()) };
    let proof = match (reading.proof.grade, document.light_client_proof()) {
        (ProofGrade::ConsensusProof, _) if clresolve_core::mutant!("bundled-headers-are-believed") => return Ok(()),
        (ProofGrade::ConsensusProof, Some(proof)) => proof,
        (ProofGrade::ConsensusProof, None) => return Err(BundleError::LightClient("it is missing".to_owned())),
        (_, Some(_)) => return Err(BundleError::Inconsistent("a light client's proof with a grade that uses none")),
        (_, None) => return Ok(()),
    };
    let network = (document.run.world.as_str(), document.run.chain_id);
    light_client::check_finality(proof, &reading.block, checkpoint, network, document.run.at)
}

/// The payment records of an answer. The cause of an unreadable record is free text, so the caller compares values
/// only.
fn payment_records(answer: &EnsAnswer) -> &PaymentRecords {
    const NOTHING: &PaymentRecords =
        &PaymentRecords { addresses: BTreeMap::new(), endpoints: BTreeMap::new(), offchain: false };
    match answer {
        EnsAnswer::Records(found) => &found.payment,
        EnsAnswer::Unregistered | EnsAnswer::NoResolver(_) => NOTHING,
    }
}

/// The rules that the bundle names, if this process knows exactly those bytes.
fn find_profile_and_policy(
    question: &BundleRequestDocument,
    profiles: &ConformanceProfiles,
) -> Result<(Arc<ConformanceProfile>, JudgementPolicy), BundleError> {
    let unknown = |pinned: &clresolve_verdict::verdict::PinnedDocument| {
        BundleError::Rules(clresolve_core::text::excerpt_text(&format!("{} {}", pinned.id, pinned.digest)))
    };
    let profile = profiles.get(&question.profile.id).ok_or_else(|| unknown(&question.profile))?;
    let policy = JudgementPolicy {
        depth: question.depth,
        require_all_sources: question.require_all_sources,
        allowed_publishers: question.allowed_publishers.clone(),
        // A bundle contains no history, so checks that need history are not run.
        ..JudgementPolicy::default()
    };
    let known = BundleRequestDocument::from_rules(&question.name, parse_block_selector(question)?, &profile, &policy);
    if let Some(manifest) = question
        .manifests
        .iter()
        .find(|manifest| !known.manifests.contains(manifest))
        .filter(|_| !clresolve_core::mutant!("bundle-brings-rules"))
    {
        return Err(unknown(manifest));
    }
    if !clresolve_core::mutant!("bundle-brings-rules")
        && (known.profile != question.profile || known.manifests != question.manifests)
    {
        return Err(unknown(&question.profile));
    }
    Ok((profile, policy))
}

fn parse_block_selector(question: &BundleRequestDocument) -> Result<BlockSelector, BundleError> {
    let selector: Option<BlockSelector> = question.block.parse().ok();
    let selector = selector.filter(|selector| selector.to_string() == question.block);
    selector.ok_or(BundleError::Inconsistent("the block is not a selector in canonical form"))
}

/// The evidence, with the results of IPFS walks derived again from their blocks.
fn rebuild_evidence(document: &BundleDocument) -> Result<ResolutionEvidence, BundleError> {
    let mut evidence = ResolutionEvidence {
        name: document.question.name.clone(),
        now: document.run.at,
        chain_id: document.run.chain_id,
        block: parse_block_selector(&document.question)?,
        reading: document.reading.clone().into_result().map(NameReading::from),
        owner: document.owner.clone(),
        https: document.https.clone().into(),
        ipfs: IpfsWalkOutcome::NotAsked,
        mirror: IpfsWalkOutcome::NotAsked,
        liars: document.liars.clone(),
        schemas: document.schemas.clone().map(Into::into),
        continuity: HistoryOutcome::NotAsked,
        links: None,
        misspelt_keys: Vec::new(),
    };
    let targets = evidence.resolved_records().map(|found| CardLocations::from_records(&found.records));
    let ipfs = targets.as_ref().and_then(|targets| Some((targets.cid?, &targets.path)));
    let mirror = targets.as_ref().and_then(|targets| targets.mirror.as_ref()).map(|mirror| (mirror.cid, &mirror.path));
    evidence.ipfs = replay_walk("cl.cid.agentcard", &document.ipfs, ipfs)?;
    evidence.mirror = replay_walk("the mirror", &document.mirror, mirror)?;
    Ok(evidence)
}

/// The walk from the CID and path that the records name, block by block.
fn replay_walk(
    walk: &'static str,
    form: &IpfsWalkDocument,
    from: Option<(ContentId, &UnixFsPath)>,
) -> Result<IpfsWalkOutcome, BundleError> {
    let refused = |detail: String| BundleError::Blocks { walk, detail };
    let (root, path) = match (form, from) {
        (IpfsWalkDocument::NotAsked, None) => return Ok(IpfsWalkOutcome::NotAsked),
        (IpfsWalkDocument::NotAsked, Some(_)) => return Err(refused("they are missing".to_owned())),
        (_, None) => return Err(refused("no record leads to them".to_owned())),
        (_, Some(from)) => from,
    };
    let (by, car) = match form {
        IpfsWalkDocument::Unproven(causes) => return Ok(IpfsWalkOutcome::Unproven(causes.clone())),
        IpfsWalkDocument::Blocks { by, car } => (*by, &car.0),
        IpfsWalkDocument::NotAsked => return Ok(IpfsWalkOutcome::NotAsked),
    };
    let budget = DagWalkBudget::for_agent_card();
    let mut reader =
        CarReader::new(CarLimits { block_size: budget.block_size, bytes: car.len(), sections: budget.visits });
    reader.push_chunk(car.clone());
    let mut used = Vec::new();
    let mut walking = DagWalk::new(root, path, budget);
    // Terminates at the end of the CAR, whose sections are bounded.
    while let Some(section) = reader.next_section().map_err(|error| refused(error.to_string()))? {
        if walking.wanted_block() != Some(&section.cid) {
            return Err(refused(format!("{} is not the next one of the walk", section.cid)));
        }
        walking.supply_block(section.block.clone()).map_err(|error| refused(error.to_string()))?;
        used.push((section.cid, section.block));
    }
    if write_car(&root, used.iter().map(|(cid, block)| (cid, block))) != car[..] {
        return Err(refused("they are not in canonical form".to_owned()));
    }
    match IpfsWalkOutcome::from_walk(walking.finish(), by, Vec::new()) {
        IpfsWalkOutcome::Unproven(_) => Err(refused("a block of the walk is missing".to_owned())),
        walked => Ok(walked),
    }
}

/// Rejects evidence that no resolver could have gathered: parts that are present or missing without a cause.
fn check_evidence_consistency(evidence: &ResolutionEvidence, policy: &JudgementPolicy) -> Result<(), BundleError> {
    let inconsistent = |what| Err(BundleError::Inconsistent(what));
    let targets = evidence.resolved_records().map(|found| CardLocations::from_records(&found.records));
    if (evidence.https == HttpsOutcome::NotAsked) != targets.is_none_or(|targets| targets.url.is_none()) {
        return inconsistent("the https source does not match the records");
    }
    let asks_latest = evidence.block.is_compared_with_latest();
    if evidence.reading.as_ref().is_ok_and(|reading| reading.latest.is_some() != asks_latest)
        && !clresolve_core::mutant!("newest-block-left-out")
    {
        return inconsistent("the reading of the newest block is missing, or was not requested");
    }
    let owner = evidence
        .resolved_records()
        .and_then(|found| RecordUsability::from_record(&found.records, TextRecordKey::Owner).text());
    let fits = matches!(
        (owner.map(EnsName::parse), &evidence.owner),
        (None, ClOwnerEvidence::NotAsked)
            | (Some(Err(_)), ClOwnerEvidence::NotAName(_))
            | (Some(Ok(_)), ClOwnerEvidence::Read(_) | ClOwnerEvidence::Failed(_))
    );
    if !fits {
        return inconsistent("the reading of the owner does not match cl.owner");
    }
    let has_card = evidence.card_bytes().is_some_and(|bytes| AgentCard::parse(bytes).is_ok());
    if evidence.schemas.is_some() != (policy.depth == ResolutionDepth::Schemas && has_card) {
        return inconsistent("the schemas do not match the depth");
    }
    let earlier =
        |walked: &IpfsWalkOutcome| matches!(walked, IpfsWalkOutcome::Proven { by: ContentProofSource::EarlierRun, .. });
    if earlier(&evidence.ipfs) || earlier(&evidence.mirror) {
        return inconsistent("content that an earlier resolution proved");
    }
    Ok(())
}

/// JSON Pointer of the first difference between the verdict in the bundle and the replayed one.
///
/// Verdicts of the same version must be identical. Another version may word texts differently and know other profiles,
/// so only its conclusion and its self-consistency are checked.
fn verdict_difference(bundled: &Verdict, found: &Verdict) -> Option<String> {
    let whole = |verdict: &Verdict| serde_json::to_value(verdict).unwrap_or_default();
    if bundled.tool == found.tool {
        return first_json_difference(&whole(bundled), &whole(found));
    }
    let sealed = first_json_difference(&whole(bundled), &whole(&bundled.clone().with_computed_digests()));
    sealed.or_else(|| first_json_difference(&version_independent_members(bundled), &version_independent_members(found)))
}

/// The members on which all versions of this program must agree.
fn version_independent_members(verdict: &Verdict) -> Value {
    let reasons: Vec<Value> =
        verdict.reasons.iter().map(|reason| serde_json::json!([reason.code, reason.effect, reason.step])).collect();
    serde_json::json!({
        "conclusion": verdict.conclusion, "name": verdict.name, "state": verdict.state, "identity": verdict.identity,
        "anchor": verdict.anchor, "freshness": verdict.freshness, "reasons": reasons,
    })
}

/// JSON Pointer of the first difference between two values. Recursion depth is the depth of the values, which their
/// parser bounds.
pub(super) fn first_json_difference(one: &Value, other: &Value) -> Option<String> {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let names = one.keys().chain(other.keys().filter(|name| !one.contains_key(*name)));
            names.into_iter().find_map(|name| member_difference(name, one.get(name), other.get(name)))
        }
        (Value::Array(one), Value::Array(other)) => (0..one.len().max(other.len()))
            .find_map(|place| member_difference(&place.to_string(), one.get(place), other.get(place))),
        (one, other) => (one != other).then(String::new),
    }
}

fn member_difference(name: &str, one: Option<&Value>, other: Option<&Value>) -> Option<String> {
    let deeper = match (one, other) {
        (Some(one), Some(other)) => first_json_difference(one, other)?,
        (None, None) => return None,
        _ => String::new(),
    };
    Some(format!("/{name}{deeper}"))
}

fn proven_facts(document: &BundleDocument, evidence: &ResolutionEvidence, verdict: &Verdict) -> Vec<String> {
    let mut proven = vec![
        "name: its normal form and its node".to_owned(),
        format!("rules: {} and its manifests are those known here", document.question.profile.id),
    ];
    if document.header.is_some() {
        proven.push("header: it hashes to the block's hash, and has its number and time".to_owned());
    }
    if let Some(light_client) = document.light_client_proof() {
        proven.push(format!(
            "block: the validators of chain eip155:{} finalized it, if your checkpoint {} is one of theirs",
            document.run.chain_id, light_client.checkpoint
        ));
    }
    if let Some(state_proof) = document.state_proof() {
        let owner = if matches!(evidence.owner, ClOwnerEvidence::Read(_)) { ", owner" } else { "" };
        proven.push(format!(
            "records, resolver, holder, expiry{owner}: computed here from state that is proven against the header"
        ));
        if state_proof.coins.is_some() {
            proven.push("addresses, endpoints: computed from the same state".to_owned());
        }
        if has_known_contracts(state_proof, document) {
            proven.push("contracts: the called ones are those of ENS, as known here".to_owned());
        }
    }
    if let IpfsWalkOutcome::Proven { bytes, blocks, .. } = &evidence.ipfs {
        proven.push(format!("card: {} bytes under the CID in the records, {blocks} blocks hashed", bytes.len()));
    }
    if verdict.state == TrustState::Trusted {
        proven.push("checksum: the card has the SHA-256 in the records".to_owned());
    }
    proven.push(format!("verdict: {} follows from this evidence, with the same conclusion", verdict.state));
    proven
}

fn attested_facts(document: &BundleDocument, evidence: &ResolutionEvidence) -> Vec<String> {
    let mut attested = vec![format!("time: that the resolution was made at {}", document.run.at)];
    match (&evidence.reading, document.state_proof()) {
        (Ok(reading), Some(state_proof)) => attested.extend(unproven_facts(state_proof, document, evidence, reading)),
        (Ok(reading), None) => {
            let behind = match reading.proof.grade {
                ProofGrade::SingleRpc => "that one endpoint reported it".to_owned(),
                grade => format!(
                    "the grade {} ({} of {} agreed), which this bundle does not prove",
                    serde_json::to_value(grade).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default(),
                    reading.proof.agreed,
                    reading.proof.asked
                ),
            };
            attested.push(format!("records, addresses, endpoints, resolver, holder and owner at the block: {behind}"));
            attested.push(format!("block: that it is part of chain eip155:{}", document.run.chain_id));
        }
        (Err(_), _) => attested.push("chain: that it could not be read".to_owned()),
    }
    if evidence.https != HttpsOutcome::NotAsked {
        attested.push("https: what the card's URL served".to_owned());
    }
    if !evidence.liars.is_empty() || matches!(evidence.ipfs, IpfsWalkOutcome::Unproven(_)) {
        attested.push("gateways: what they did".to_owned());
    }
    if evidence.schemas.is_some() {
        attested.push("schemas: what their locations served (its bytes are compared with the manifest)".to_owned());
    }
    attested
}

/// Facts that remain the exporter's word despite the proofs.
fn unproven_facts(
    state_proof: &StateProof,
    document: &BundleDocument,
    evidence: &ResolutionEvidence,
    reading: &NameReading,
) -> Vec<String> {
    let (chain, proof) = (document.run.chain_id, reading.proof);
    let reported = format!("{} of {} endpoints reported it", proof.agreed, proof.asked);
    let mut beside = match (&state_proof.light_client, proof.asked) {
        (None, _) => vec![format!("header: that it is the canonical one of chain eip155:{chain}, and that {reported}")],
        (Some(_), 0) => Vec::new(),
        (Some(_), _) => vec![format!("header: that {reported}")],
    };
    if !has_known_contracts(state_proof, document) {
        beside.push(format!(
            "contracts: that {} and the others are those of ENS",
            state_proof.contracts.universal_resolver
        ));
    }
    if matches!(&reading.answer, EnsAnswer::Records(ResolvedRecords { offchain: true, .. }))
        || !(state_proof.payment_look_ups.is_empty() && state_proof.owner_look_ups.is_empty())
    {
        beside.push("off-chain records: what gateways answered, if the resolver does not verify it".to_owned());
    }
    if reading.latest.is_some() {
        beside.push("newest block: what the records were in it, and who held the name".to_owned());
    }
    if matches!(evidence.owner, ClOwnerEvidence::Failed(_)) {
        beside.push("owner: that it could not be read".to_owned());
    }
    if !reading.contradicted_by.is_empty() || !reading.failed_endpoints.is_empty() {
        beside.push("endpoints: what they did".to_owned());
    }
    beside
}

/// Whether the contracts are those that this program knows for the chain.
fn has_known_contracts(state_proof: &StateProof, document: &BundleDocument) -> bool {
    let is_known = RESERVED_WORLDS.contains(&(document.run.world.as_str(), document.run.chain_id));
    is_known && state_proof.contracts == EnsContractAddresses::default()
}
