//! Steps `fetch-https`, `fetch-ipfs` and `integrity`: the sources, the CID, the mirror and the checksum.
//!
//! The content is proven if the card's bytes match both `cl.cid.agentcard`, verified block by block, and
//! `cl.checksum.agentcard`. Each defect yields one code; its consequences are not reported.

use std::cell::OnceCell;

use bytes::Bytes;

use crate::evidence;
use crate::evidence::{Evidence, IpfsOutcome, Mirror, MirrorError, Refuted, Source, Usable};
use clresolve_core::digest::Digest;
use clresolve_core::reason::{Code, Reason, Step};
use clresolve_core::records::{Key, RecordSet};
use clresolve_ipfs::{CidError, ContentId, Refutation};

/// The names of the sources in reasons.
const HTTPS: &str = "https";
const IPFS: &str = "ipfs";

/// The findings on the sources and the proof of the content.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Integrity {
    /// All findings.
    pub reasons: Vec<Reason>,
    /// Whether the judged bytes match both the CID and the checksum.
    pub proven: bool,
}

/// The digests of the sources' bytes. Several reasons and steps need them, and each costs as much as a whole rule.
#[derive(Clone, Debug, Default)]
pub(crate) struct Digests(Vec<(Bytes, Digest)>);

impl Digests {
    /// Hashes what the URL and IPFS served, once if both are the same.
    pub(crate) fn of_sources(evidence: &Evidence) -> Self {
        let mut known = Self::default();
        for bytes in [evidence.https.bytes(), evidence.ipfs.bytes()].into_iter().flatten() {
            known.0.push((bytes.clone(), known.of(bytes)));
        }
        known
    }

    /// The digest of `bytes`, cached if they are from one of the sources.
    pub(crate) fn of(&self, bytes: &Bytes) -> Digest {
        let known = self.0.iter().find(|(known, _)| known == bytes);
        known.map_or_else(|| Digest::of(bytes), |(_, digest)| *digest)
    }
}

/// Judges the sources and the proof of the content.
pub fn integrity(evidence: &Evidence) -> Integrity {
    integrity_with(evidence, &Digests::of_sources(evidence))
}

/// Like [`integrity()`], with precomputed digests.
pub(super) fn integrity_with(evidence: &Evidence, digests: &Digests) -> Integrity {
    let Some(found) = evidence.found() else { return Integrity::default() };
    let claims = Claims::read(&found.records, evidence.https.bytes());
    let content = proven(evidence, &claims).map(|bytes| digests.of(bytes));
    let mut reasons = claims.malformed.clone();
    reasons.extend(https_source(evidence, &claims));
    reasons.extend(liars(evidence));
    reasons.extend(walk(evidence, &claims));
    reasons.extend(https_against_cid(evidence, &claims, digests));
    reasons.extend(mirror_content(evidence, digests));
    reasons.extend(checksums(evidence, &claims, digests));
    let proven = claims.checksum.is_some() && claims.checksum == content;
    Integrity { reasons, proven }
}

/// The bytes that `cl.cid.agentcard` proves: by a walk, or because the served bytes have the hash of a raw CID.
fn proven<'a>(evidence: &'a Evidence, claims: &Claims<'_>) -> Option<&'a Bytes> {
    let in_hand = || evidence.https.bytes().filter(|_| claims.served_is_proven());
    evidence.ipfs.bytes().or_else(in_hand)
}

/// The usable claims in the records about the content.
struct Claims<'e> {
    cid: Option<ContentId>,
    /// The bytes that the URL served.
    served: Option<&'e Bytes>,
    /// Whether the CID is raw and is the hash of the served bytes; computed on first use.
    names_served: OnceCell<bool>,
    mirror: Option<Mirror>,
    checksum: Option<Digest>,
    malformed: Vec<Reason>,
}

impl<'e> Claims<'e> {
    fn read(records: &RecordSet, served: Option<&'e Bytes>) -> Self {
        let mut malformed = Vec::new();
        let url = Usable::of(records, Key::Agentcard).text();
        if let Some(url) = url.filter(|url| !evidence::is_https_url(url)) {
            malformed.push(Reason::new(Code::AgentcardUrlNotHttps).at(Key::Agentcard.as_str()).observed(url));
        }
        let cid = Usable::of(records, Key::CidAgentcard)
            .text()
            .and_then(|value| ContentId::parse(value).map_err(|error| malformed.push(cid_reason(&error, value))).ok());
        let mirror = Usable::of(records, Key::MirrorIpfs).text().and_then(|value| {
            let cid = Usable::of(records, Key::CidAgentcard).text();
            Mirror::parse(value).map_err(|error| malformed.extend(mirror_reason(&error, value, cid))).ok()
        });
        if let (Some(cid), Some(mirror)) = (&cid, &mirror)
            && mirror.cid != *cid
        {
            malformed.push(
                Reason::new(Code::MirrorCidMismatch)
                    .at(Key::MirrorIpfs.as_str())
                    .expected(cid.to_string())
                    .observed(mirror.cid.to_string()),
            );
        }
        let checksum = Usable::of(records, Key::Checksum).text().and_then(|value| {
            let parsed = value.parse().ok();
            if parsed.is_none() {
                malformed.push(
                    Reason::new(Code::ChecksumMalformed)
                        .at(Key::Checksum.as_str())
                        .expected("64 hex digits, with or without the prefix sha256:")
                        .observed(value),
                );
            }
            parsed
        });
        Self { cid, served, names_served: OnceCell::new(), mirror, checksum, malformed }
    }

    fn names_served(&self) -> bool {
        let raw = || self.cid.as_ref().filter(|cid| cid.is_raw());
        let names = || raw().is_some_and(|cid| self.served.is_some_and(|served| cid.verify(served)));
        *self.names_served.get_or_init(names)
    }

    /// Whether the served bytes are the content of a raw CID that needs no path.
    fn served_is_proven(&self) -> bool {
        let pathless = self.mirror.as_ref().is_none_or(|mirror| mirror.path.is_empty());
        clresolve_core::mutant!("any-bytes-prove-a-cid") || pathless && self.names_served()
    }

    /// Whether the mirror record that supplied the walked path is about this CID.
    fn path_is_meant(&self) -> bool {
        match (&self.cid, &self.mirror) {
            (Some(cid), Some(mirror)) => mirror.cid == *cid,
            _ => false,
        }
    }
}

/// The defect of a mirror record. `None` if its CID is the same malformed text as in `cl.cid.agentcard`.
fn mirror_reason(error: &MirrorError, value: &str, cid: Option<&str>) -> Option<Reason> {
    let code = match error {
        MirrorError::Cid(_) if cid.is_some() && cid == Mirror::cid_text(value) => return None,
        MirrorError::Cid(CidError::HashForbidden(_)) => Code::CidHashForbidden,
        _ => Code::MirrorMalformed,
    };
    Some(Reason::new(code).at(Key::MirrorIpfs.as_str()).observed(format!("{value}: {error}")))
}

fn cid_reason(error: &CidError, value: &str) -> Reason {
    let code = match error {
        CidError::Malformed(_) => Code::CidMalformed,
        CidError::HashForbidden(_) => Code::CidHashForbidden,
    };
    Reason::new(code).at(Key::CidAgentcard.as_str()).observed(format!("{value}: {error}"))
}

fn https_source(evidence: &Evidence, claims: &Claims<'_>) -> Option<Reason> {
    let reason = match &evidence.https {
        Source::NotAsked | Source::Body { .. } => return None,
        Source::Forbidden(cause) => Reason::new(Code::SourceForbidden).observed(cause.to_string()),
        Source::Oversize(limit) => Reason::new(Code::SourceOversize).expected(format!("at most {limit} bytes")),
        Source::Unavailable(cause) if evidence.card_bytes().is_some() || !nothing_else_is_known(evidence, claims) => {
            Reason::new(Code::SourceUnavailable).observed(cause.to_string())
        }
        Source::Unavailable(cause) => Reason::new(Code::CardUnreachable).observed(cause.to_string()),
    };
    Some(reason.at(HTTPS))
}

/// Whether IPFS yielded nothing either: not requested, or no gateway had the blocks.
fn nothing_else_is_known(evidence: &Evidence, claims: &Claims<'_>) -> bool {
    match &evidence.ipfs {
        IpfsOutcome::NotAsked | IpfsOutcome::Unproven(_) => true,
        IpfsOutcome::Refuted(refuted) => is_about_path(refuted) && !claims.path_is_meant(),
        IpfsOutcome::Proven { .. } => false,
    }
}

/// Whether the path is at fault, not the content under the CID.
const fn is_about_path(refuted: &Refuted) -> bool {
    matches!(refuted.proves(), Refutation::PathMissing | Refutation::NotFile)
}

fn liars(evidence: &Evidence) -> impl Iterator<Item = Reason> + '_ {
    evidence
        .liars
        .iter()
        .map(|(gateway, cid)| Reason::new(Code::GatewayLied).at(gateway.as_str()).expected(cid.as_str()))
}

/// The defect that the walk under `cl.cid.agentcard` found.
fn walk(evidence: &Evidence, claims: &Claims<'_>) -> Option<Reason> {
    let reason = match &evidence.ipfs {
        IpfsOutcome::NotAsked | IpfsOutcome::Proven { .. } => return None,
        IpfsOutcome::Refuted(refuted) if is_about_path(refuted) && !claims.path_is_meant() => return None,
        IpfsOutcome::Refuted(refuted) => match refuted.proves() {
            Refutation::PathMissing => Reason::new(Code::CidPathMissing).observed(refuted.to_string()),
            Refutation::NotFile => Reason::new(Code::CidPathNotFile),
            Refutation::Invalid => Reason::new(Code::CidDagInvalid).observed(format!("{}: {refuted}", refuted.class())),
            Refutation::HashForbidden => Reason::new(Code::CidHashForbidden).observed(refuted.to_string()),
            Refutation::Oversize { limit } => {
                Reason::new(Code::SourceOversize).in_step(Step::FetchIpfs).expected(format!("at most {limit} bytes"))
            }
        },
        IpfsOutcome::Unproven(_) if clresolve_core::mutant!("unproven-is-silent") => return None,
        IpfsOutcome::Unproven(causes) => return unproven(evidence, claims, causes),
    };
    Some(reason.at(IPFS))
}

/// No gateway had the blocks: `cid-unproven` if the URL served a card, otherwise `card-unreachable`.
fn unproven(evidence: &Evidence, claims: &Claims<'_>, causes: &[(String, String)]) -> Option<Reason> {
    let causes = || causes.iter().map(|(gateway, cause)| format!("{gateway}: {cause}")).collect::<Vec<_>>().join("; ");
    match &evidence.https {
        // The bytes in hand prove the raw CID, so only a source is missing.
        Source::Body { .. } if claims.served_is_proven() => {
            Some(Reason::new(Code::SourceUnavailable).in_step(Step::FetchIpfs).at(IPFS).observed(causes()))
        }
        // The bytes in hand refute the raw CID, so nothing is undecided.
        Source::Body { .. } if claims.cid.as_ref().is_some_and(ContentId::is_raw) => None,
        Source::Body { .. } => Some(Reason::new(Code::CidUnproven).at(IPFS).observed(causes())),
        // Reported as the https source.
        Source::Unavailable(_) => None,
        Source::NotAsked | Source::Forbidden(_) | Source::Oversize(_) => {
            Some(Reason::new(Code::CardUnreachable).in_step(Step::FetchIpfs).at(IPFS).observed(causes()))
        }
    }
}

/// Whether the URL serves the content of the CID.
fn https_against_cid(evidence: &Evidence, claims: &Claims<'_>, digests: &Digests) -> Option<Reason> {
    let digest = |bytes| digests.of(bytes).to_string();
    let served = evidence.https.bytes()?;
    let cid = claims.cid.as_ref()?;
    let differs = match evidence.ipfs.bytes() {
        Some(proven) => proven != served,
        None => cid.is_raw() && !claims.names_served(),
    };
    (differs && !clresolve_core::mutant!("served-bytes-uncompared")).then(|| {
        let reason = Reason::new(Code::CidMismatch).at(HTTPS).expected(cid.to_string()).observed(digest(served));
        match evidence.ipfs.bytes() {
            Some(proven) => reason.fix(format!("restore the released bytes ({}) at the card's URL", digest(proven))),
            None => reason,
        }
    })
}

/// Whether the content of the mirror's own CID equals what the card's URL serves.
fn mirror_content(evidence: &Evidence, digests: &Digests) -> Option<Reason> {
    let digest = |bytes| digests.of(bytes).to_string();
    let (served, mirrored) = (evidence.https.bytes()?, evidence.mirror.bytes()?);
    (served != mirrored).then(|| {
        Reason::new(Code::MirrorContentMismatch)
            .at(Key::MirrorIpfs.as_str())
            .expected(digest(served))
            .observed(digest(mirrored))
    })
}

/// A reason for each source whose bytes do not match the checksum.
fn checksums(evidence: &Evidence, claims: &Claims<'_>, digests: &Digests) -> Vec<Reason> {
    let digest = |bytes| digests.of(bytes).to_string();
    let Some(expected) = claims.checksum else { return Vec::new() };
    let (served, proven) = (evidence.https.bytes(), evidence.ipfs.bytes());
    let sources: Vec<(&str, &Bytes)> = match (served, proven) {
        (Some(served), Some(proven)) if served == proven => vec![("https, ipfs", proven)],
        _ => [(HTTPS, served), (IPFS, proven)].into_iter().filter_map(|(at, bytes)| Some((at, bytes?))).collect(),
    };
    let missed = sources
        .into_iter()
        .filter(|(_, bytes)| digests.of(bytes) != expected && !clresolve_core::mutant!("checksum-uncompared"));
    missed
        .map(|(at, bytes)| {
            let reason =
                Reason::new(Code::ChecksumMismatch).at(at).expected(expected.to_string()).observed(digest(bytes));
            // Only suggest bytes that the CID proves.
            if proven == Some(bytes) {
                reason.fix(format!("set {} to {}", Key::Checksum, digest(bytes)))
            } else {
                reason.fix("restore the released bytes")
            }
        })
        .collect()
}
