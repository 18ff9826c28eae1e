//! Steps `fetch-https`, `fetch-ipfs` and `integrity`: the sources, the CID, the mirror and the checksum.
//!
//! The content is proven if the card's bytes match both `cl.cid.agentcard`, verified block by block, and
//! `cl.checksum.agentcard`. Each defect yields one code; its consequences are not reported.

use std::cell::OnceCell;

use bytes::Bytes;

use crate::evidence;
use crate::evidence::{
    HttpsOutcome, IpfsMirrorLocation, IpfsMirrorLocationError, IpfsWalkOutcome, RecordUsability, RefutingWalkError,
    ResolutionEvidence,
};
use clresolve_core::digest::Digest;
use clresolve_core::reason::{Reason, ReasonCode, ResolutionStep};
use clresolve_core::records::{TextRecordKey, TextRecordSet};
use clresolve_ipfs::{CidError, ContentId, ProvenContentDefect};

/// The names of the sources in reasons.
const HTTPS: &str = "https";
const IPFS: &str = "ipfs";

/// The findings on the sources and the proof of the content.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IntegrityFindings {
    /// All findings.
    pub reasons: Vec<Reason>,
    /// Whether the judged bytes match both the CID and the checksum.
    pub proven: bool,
}

/// The digests of the sources' bytes. Several reasons and steps need them, and each costs as much as a whole rule.
#[derive(Clone, Debug, Default)]
pub(crate) struct SourceDigests(Vec<(Bytes, Digest)>);

impl SourceDigests {
    /// Hashes what the URL and IPFS served, once if both are the same.
    pub(crate) fn from_sources(evidence: &ResolutionEvidence) -> Self {
        let mut known = Self::default();
        for bytes in [evidence.https.bytes(), evidence.ipfs.bytes()].into_iter().flatten() {
            known.0.push((bytes.clone(), known.digest_of(bytes)));
        }
        known
    }

    /// The digest of `bytes`, cached if they are from one of the sources.
    pub(crate) fn digest_of(&self, bytes: &Bytes) -> Digest {
        let known = self.0.iter().find(|(known, _)| known == bytes);
        known.map_or_else(|| Digest::compute(bytes), |(_, digest)| *digest)
    }
}

/// Judges the sources and the proof of the content.
pub fn check_integrity(evidence: &ResolutionEvidence) -> IntegrityFindings {
    check_integrity_with_digests(evidence, &SourceDigests::from_sources(evidence))
}

/// Like [`check_integrity()`], with precomputed digests.
pub(super) fn check_integrity_with_digests(
    evidence: &ResolutionEvidence,
    digests: &SourceDigests,
) -> IntegrityFindings {
    let Some(found) = evidence.resolved_records() else { return IntegrityFindings::default() };
    let claims = ContentClaims::from_records(&found.records, evidence.https.bytes());
    let content = proven_bytes(evidence, &claims).map(|bytes| digests.digest_of(bytes));
    let mut reasons = claims.malformed.clone();
    reasons.extend(check_https_source(evidence, &claims));
    reasons.extend(lying_gateway_reasons(evidence));
    reasons.extend(walk_reason(evidence, &claims));
    reasons.extend(compare_https_with_cid(evidence, &claims, digests));
    reasons.extend(compare_mirror_content(evidence, digests));
    reasons.extend(compare_checksums(evidence, &claims, digests));
    let proven = claims.checksum.is_some() && claims.checksum == content;
    IntegrityFindings { reasons, proven }
}

/// The bytes that `cl.cid.agentcard` proves: by a walk, or because the served bytes have the hash of a raw CID.
fn proven_bytes<'a>(evidence: &'a ResolutionEvidence, claims: &ContentClaims<'_>) -> Option<&'a Bytes> {
    let in_hand = || evidence.https.bytes().filter(|_| claims.served_is_proven());
    evidence.ipfs.bytes().or_else(in_hand)
}

/// The usable claims in the records about the content.
struct ContentClaims<'e> {
    cid: Option<ContentId>,
    /// The bytes that the URL served.
    served: Option<&'e Bytes>,
    /// Whether the CID is raw and is the hash of the served bytes; computed on first use.
    names_served: OnceCell<bool>,
    mirror: Option<IpfsMirrorLocation>,
    checksum: Option<Digest>,
    malformed: Vec<Reason>,
}

impl<'e> ContentClaims<'e> {
    fn from_records(records: &TextRecordSet, served: Option<&'e Bytes>) -> Self {
        let mut malformed = Vec::new();
        let url = RecordUsability::from_record(records, TextRecordKey::Agentcard).text();
        if let Some(url) = url.filter(|url| !evidence::is_https_url(url)) {
            malformed.push(
                Reason::new(ReasonCode::AgentcardUrlNotHttps).at_place(TextRecordKey::Agentcard.as_str()).observed(url),
            );
        }
        let cid = RecordUsability::from_record(records, TextRecordKey::CidAgentcard).text().and_then(|value| {
            ContentId::parse(value).map_err(|error| malformed.push(malformed_cid_reason(&error, value))).ok()
        });
        let mirror = RecordUsability::from_record(records, TextRecordKey::MirrorIpfs).text().and_then(|value| {
            let cid = RecordUsability::from_record(records, TextRecordKey::CidAgentcard).text();
            IpfsMirrorLocation::parse(value)
                .map_err(|error| malformed.extend(malformed_mirror_reason(&error, value, cid)))
                .ok()
        });
        if let (Some(cid), Some(mirror)) = (&cid, &mirror)
            && mirror.cid != *cid
        {
            malformed.push(
                Reason::new(ReasonCode::MirrorCidMismatch)
                    .at_place(TextRecordKey::MirrorIpfs.as_str())
                    .expected(cid.to_string())
                    .observed(mirror.cid.to_string()),
            );
        }
        let checksum = RecordUsability::from_record(records, TextRecordKey::Checksum).text().and_then(|value| {
            let parsed = value.parse().ok();
            if parsed.is_none() {
                malformed.push(
                    Reason::new(ReasonCode::ChecksumMalformed)
                        .at_place(TextRecordKey::Checksum.as_str())
                        .expected("64 hex digits, with or without the prefix sha256:")
                        .observed(value),
                );
            }
            parsed
        });
        Self { cid, served, names_served: OnceCell::new(), mirror, checksum, malformed }
    }

    fn cid_matches_served(&self) -> bool {
        let raw = || self.cid.as_ref().filter(|cid| cid.is_raw());
        let names = || raw().is_some_and(|cid| self.served.is_some_and(|served| cid.is_cid_of_block(served)));
        *self.names_served.get_or_init(names)
    }

    /// Whether the served bytes are the content of a raw CID that needs no path.
    fn served_is_proven(&self) -> bool {
        let pathless = self.mirror.as_ref().is_none_or(|mirror| mirror.path.is_empty());
        clresolve_core::mutant!("any-bytes-prove-a-cid") || pathless && self.cid_matches_served()
    }

    /// Whether the mirror record that supplied the walked path is about this CID.
    fn is_mirror_path_for_cid(&self) -> bool {
        match (&self.cid, &self.mirror) {
            (Some(cid), Some(mirror)) => mirror.cid == *cid,
            _ => false,
        }
    }
}

/// The defect of a mirror record. `None` if its CID is the same malformed text as in `cl.cid.agentcard`.
fn malformed_mirror_reason(error: &IpfsMirrorLocationError, value: &str, cid: Option<&str>) -> Option<Reason> {
    let code = match error {
        IpfsMirrorLocationError::Cid(_) if cid.is_some() && cid == IpfsMirrorLocation::cid_text(value) => return None,
        IpfsMirrorLocationError::Cid(CidError::HashForbidden(_)) => ReasonCode::CidHashForbidden,
        _ => ReasonCode::MirrorMalformed,
    };
    Some(Reason::new(code).at_place(TextRecordKey::MirrorIpfs.as_str()).observed(format!("{value}: {error}")))
}

fn malformed_cid_reason(error: &CidError, value: &str) -> Reason {
    let code = match error {
        CidError::Malformed(_) => ReasonCode::CidMalformed,
        CidError::HashForbidden(_) => ReasonCode::CidHashForbidden,
    };
    Reason::new(code).at_place(TextRecordKey::CidAgentcard.as_str()).observed(format!("{value}: {error}"))
}

fn check_https_source(evidence: &ResolutionEvidence, claims: &ContentClaims<'_>) -> Option<Reason> {
    let reason = match &evidence.https {
        HttpsOutcome::NotAsked | HttpsOutcome::Body { .. } => return None,
        HttpsOutcome::Forbidden(cause) => Reason::new(ReasonCode::SourceForbidden).observed(cause.to_string()),
        HttpsOutcome::Oversize(limit) => {
            Reason::new(ReasonCode::SourceOversize).expected(format!("at most {limit} bytes"))
        }
        HttpsOutcome::Unavailable(cause)
            if evidence.card_bytes().is_some() || !is_ipfs_content_unknown(evidence, claims) =>
        {
            Reason::new(ReasonCode::SourceUnavailable).observed(cause.to_string())
        }
        HttpsOutcome::Unavailable(cause) => Reason::new(ReasonCode::CardUnreachable).observed(cause.to_string()),
    };
    Some(reason.at_place(HTTPS))
}

/// Whether IPFS yielded nothing either: not requested, or no gateway had the blocks.
fn is_ipfs_content_unknown(evidence: &ResolutionEvidence, claims: &ContentClaims<'_>) -> bool {
    match &evidence.ipfs {
        IpfsWalkOutcome::NotAsked | IpfsWalkOutcome::Unproven(_) => true,
        IpfsWalkOutcome::Refuted(refuted) => is_path_at_fault(refuted) && !claims.is_mirror_path_for_cid(),
        IpfsWalkOutcome::Proven { .. } => false,
    }
}

/// Whether the path is at fault, not the content under the CID.
const fn is_path_at_fault(refuted: &RefutingWalkError) -> bool {
    matches!(refuted.refutation(), ProvenContentDefect::PathMissing | ProvenContentDefect::NotFile)
}

fn lying_gateway_reasons(evidence: &ResolutionEvidence) -> impl Iterator<Item = Reason> + '_ {
    evidence
        .liars
        .iter()
        .map(|(gateway, cid)| Reason::new(ReasonCode::GatewayLied).at_place(gateway.as_str()).expected(cid.as_str()))
}

/// The defect that the walk under `cl.cid.agentcard` found.
fn walk_reason(evidence: &ResolutionEvidence, claims: &ContentClaims<'_>) -> Option<Reason> {
    let reason = match &evidence.ipfs {
        IpfsWalkOutcome::NotAsked | IpfsWalkOutcome::Proven { .. } => return None,
        IpfsWalkOutcome::Refuted(refuted) if is_path_at_fault(refuted) && !claims.is_mirror_path_for_cid() => {
            return None;
        }
        IpfsWalkOutcome::Refuted(refuted) => match refuted.refutation() {
            ProvenContentDefect::PathMissing => Reason::new(ReasonCode::CidPathMissing).observed(refuted.to_string()),
            ProvenContentDefect::NotFile => Reason::new(ReasonCode::CidPathNotFile),
            ProvenContentDefect::Invalid => {
                Reason::new(ReasonCode::CidDagInvalid).observed(format!("{}: {refuted}", refuted.error_class()))
            }
            ProvenContentDefect::HashForbidden => {
                Reason::new(ReasonCode::CidHashForbidden).observed(refuted.to_string())
            }
            ProvenContentDefect::Oversize { limit } => Reason::new(ReasonCode::SourceOversize)
                .with_step(ResolutionStep::FetchIpfs)
                .expected(format!("at most {limit} bytes")),
        },
        IpfsWalkOutcome::Unproven(_) if clresolve_core::mutant!("unproven-is-silent") => return None,
        IpfsWalkOutcome::Unproven(causes) => return unavailable_blocks_reason(evidence, claims, causes),
    };
    Some(reason.at_place(IPFS))
}

/// No gateway had the blocks: `cid-unproven` if the URL served a card, otherwise `card-unreachable`.
fn unavailable_blocks_reason(
    evidence: &ResolutionEvidence,
    claims: &ContentClaims<'_>,
    causes: &[(String, String)],
) -> Option<Reason> {
    let causes = || causes.iter().map(|(gateway, cause)| format!("{gateway}: {cause}")).collect::<Vec<_>>().join("; ");
    match &evidence.https {
        // The bytes in hand prove the raw CID, so only a source is missing.
        HttpsOutcome::Body { .. } if claims.served_is_proven() => Some(
            Reason::new(ReasonCode::SourceUnavailable)
                .with_step(ResolutionStep::FetchIpfs)
                .at_place(IPFS)
                .observed(causes()),
        ),
        // The bytes in hand refute the raw CID, so nothing is undecided.
        HttpsOutcome::Body { .. } if claims.cid.as_ref().is_some_and(ContentId::is_raw) => None,
        HttpsOutcome::Body { .. } => Some(Reason::new(ReasonCode::CidUnproven).at_place(IPFS).observed(causes())),
        // Reported as the https source.
        HttpsOutcome::Unavailable(_) => None,
        HttpsOutcome::NotAsked | HttpsOutcome::Forbidden(_) | HttpsOutcome::Oversize(_) => Some(
            Reason::new(ReasonCode::CardUnreachable)
                .with_step(ResolutionStep::FetchIpfs)
                .at_place(IPFS)
                .observed(causes()),
        ),
    }
}

/// Whether the URL serves the content of the CID.
fn compare_https_with_cid(
    evidence: &ResolutionEvidence,
    claims: &ContentClaims<'_>,
    digests: &SourceDigests,
) -> Option<Reason> {
    let digest = |bytes| digests.digest_of(bytes).to_string();
    let served = evidence.https.bytes()?;
    let cid = claims.cid.as_ref()?;
    let differs = match evidence.ipfs.bytes() {
        Some(proven) => proven != served,
        None => cid.is_raw() && !claims.cid_matches_served(),
    };
    (differs && !clresolve_core::mutant!("served-bytes-uncompared")).then(|| {
        let reason =
            Reason::new(ReasonCode::CidMismatch).at_place(HTTPS).expected(cid.to_string()).observed(digest(served));
        match evidence.ipfs.bytes() {
            Some(proven) => {
                reason.with_fix(format!("restore the released bytes ({}) at the card's URL", digest(proven)))
            }
            None => reason,
        }
    })
}

/// Whether the content of the mirror's own CID equals what the card's URL serves.
fn compare_mirror_content(evidence: &ResolutionEvidence, digests: &SourceDigests) -> Option<Reason> {
    let digest = |bytes| digests.digest_of(bytes).to_string();
    let (served, mirrored) = (evidence.https.bytes()?, evidence.mirror.bytes()?);
    (served != mirrored).then(|| {
        Reason::new(ReasonCode::MirrorContentMismatch)
            .at_place(TextRecordKey::MirrorIpfs.as_str())
            .expected(digest(served))
            .observed(digest(mirrored))
    })
}

/// A reason for each source whose bytes do not match the checksum.
fn compare_checksums(
    evidence: &ResolutionEvidence,
    claims: &ContentClaims<'_>,
    digests: &SourceDigests,
) -> Vec<Reason> {
    let digest = |bytes| digests.digest_of(bytes).to_string();
    let Some(expected) = claims.checksum else { return Vec::new() };
    let (served, proven) = (evidence.https.bytes(), evidence.ipfs.bytes());
    let sources: Vec<(&str, &Bytes)> = match (served, proven) {
        (Some(served), Some(proven)) if served == proven => vec![("https, ipfs", proven)],
        _ => [(HTTPS, served), (IPFS, proven)].into_iter().filter_map(|(at, bytes)| Some((at, bytes?))).collect(),
    };
    let missed = sources
        .into_iter()
        .filter(|(_, bytes)| digests.digest_of(bytes) != expected && !clresolve_core::mutant!("checksum-uncompared"));
    missed
        .map(|(at, bytes)| {
            let reason = Reason::new(ReasonCode::ChecksumMismatch)
                .at_place(at)
                .expected(expected.to_string())
                .observed(digest(bytes));
            // Only suggest bytes that the CID proves.
            if proven == Some(bytes) {
                reason.with_fix(format!("set {} to {}", TextRecordKey::Checksum, digest(bytes)))
            } else {
                reason.with_fix("restore the released bytes")
            }
        })
        .collect()
}
