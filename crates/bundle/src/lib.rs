//! Evidence bundles: a verdict and everything that it rests on, in one document that can be verified offline.
//!
//! [`ResolutionBundle::from_bytes`] parses untrusted bytes. [`ResolutionBundle::verify_by_replay`] replays them: it
//! repeats every proof that needs only the bytes, judges the evidence again, and requires that the result equals the
//! verdict in the bundle. Every function is pure: no I/O, no clock, and no panic on any input.
//!
//! A bundle that verifies shows that its verdict follows from its evidence. The evidence itself has two grades. The
//! facts in [`VerifiedBundle::proven`] were proven during verification. The facts in [`VerifiedBundle::attested`] rest
//! on the exporter's word: anyone can invent them together with a matching digest. A signature identifies who vouches
//! for them ([`ResolutionBundle::check_verdict_signature`]).

mod error;
mod form;
mod header;
#[cfg(feature = "state-proof")]
mod light_client;
#[cfg(not(feature = "state-proof"))]
#[path = "light_client/absent.rs"]
mod light_client;
pub mod purchase;
mod replay;
pub mod signed;
mod trust_anchors;

use alloy_primitives::B256;
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use self::error::{BundleError, CheckpointError};
use self::form::BundleDocument;
pub use self::form::{HeaderAndStateProof, SCHEMA};
pub use self::replay::VerifiedBundle;
pub use self::trust_anchors::BundleTrustAnchors;
use crate::signed::{ExpectedVerdict, VerdictIssuer, VerdictSignError, VerdictVerifyError};
use clresolve_core::digest::Digest;
use clresolve_core::json;
use clresolve_core::json::JsonLimits;
use clresolve_core::name::EnsName;
use clresolve_core::reading::BlockSelector;
use clresolve_core::text::excerpt_text;
use clresolve_ipfs::VerifiedBlocks;
use clresolve_jose::Ed25519KeySet;
use clresolve_verdict::build;
use clresolve_verdict::build::{EvidenceWithStepDurations, VerdictContext};
use clresolve_verdict::trust::{ReplayedResolution, Resolution};
use clresolve_verdict::verdict::{Verdict, canonical_digest};

/// Maximum size of a bundle in bytes: two IPFS walks that each use the whole
/// [`DagWalkBudget::for_agent_card`](clresolve_ipfs::DagWalkBudget::for_agent_card), in base64, a light client's proof
/// of up to 7 MB, in hexadecimal, and room for everything else.
pub const MAX_BYTES: usize = 32 << 20;

/// JSON limits of a bundle. A step's evidence nests a few levels below the verdict. The values are those of a verdict
/// and some lists of endpoints.
const LIMITS: JsonLimits = JsonLimits { bytes: MAX_BYTES, levels: 32, values: 64 * 1024, ..JsonLimits::DOCUMENT };

/// A bundle with a valid form and a matching digest. Its content is not verified yet.
#[derive(Clone, Debug)]
pub struct ResolutionBundle {
    document: BundleDocument,
    digest: Digest,
}

/// A bundle of a live resolution, with the resolution's result. Only such a bundle can be signed; a bundle that was
/// read cannot.
#[derive(Clone, Debug)]
pub struct SignableBundle {
    bundle: ResolutionBundle,
    resolution: Resolution,
}

/// The signature of a bundle's verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedVerdictSignature {
    /// The `iss` claim.
    pub issuer: String,
    /// Thumbprint of the signing key.
    pub key_id: String,
    /// When the verdict stops being fresh. From then on it must be requested again.
    pub expires: Timestamp,
    /// Whether the signature has expired. Bundles serve audits, so an expired signature is reported and not rejected.
    pub is_expired: bool,
}

impl ResolutionBundle {
    /// Parses untrusted bytes as strict JSON of this format. Unknown members and a wrong digest are errors.
    ///
    /// # Errors
    /// [`BundleError::Json`], [`BundleError::Format`], [`BundleError::Shape`] or [`BundleError::Digest`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BundleError> {
        Self::from_value(json::parse_strict_json(bytes, LIMITS)?)
    }

    fn from_value(value: Value) -> Result<Self, BundleError> {
        let (document, digest) = parse_document(value, SCHEMA)?;
        Ok(Self { document, digest })
    }

    /// Packs a resolution into a bundle. `chain` holds the header and proofs that accompany the reading; `blocks` holds
    /// the blocks of the IPFS walks.
    ///
    /// # Errors
    /// [`BundleError`] if the bundle would not verify, so that every packed bundle can be replayed.
    pub fn pack_resolution(
        reporter: &VerdictContext<'_>,
        run: &EvidenceWithStepDurations,
        chain: HeaderAndStateProof,
        blocks: &VerifiedBlocks,
    ) -> Result<SignableBundle, BundleError> {
        let resolution = build::build_resolution(reporter, run, 0);
        let verdict = resolution.verdict().without_confirmation();
        let document = BundleDocument::from_resolution(reporter, &run.evidence, chain, blocks, &verdict)?;
        let digest = document_digest(&serialize_document(&document)?)?;
        let bundle = Self { document, digest };
        // The exporter's light client started from this checkpoint. Each reader names its own.
        let checkpoint = bundle.light_client_checkpoint();
        bundle.verify_by_replay(BundleTrustAnchors { profiles: reporter.profiles, checkpoint })?;
        Ok(SignableBundle { bundle, resolution })
    }

    /// Replays the bundle under the rules that it names, which must be among those of `anchors`. A bundle of grade
    /// `consensus-proof` needs a checkpoint.
    ///
    /// # Errors
    /// [`BundleError`]: the first defect. [`BundleError::CheckpointUnrelated`] if the checkpoint decides nothing.
    pub fn verify_by_replay<'a>(
        &self,
        anchors: impl Into<BundleTrustAnchors<'a>>,
    ) -> Result<VerifiedBundle, BundleError> {
        replay::replay_and_compare(&self.document, self.digest, anchors.into())
    }

    /// The block root from which the bundle's light client started, if it has grade `consensus-proof`. It proves
    /// nothing to a reader who does not trust it for another reason.
    pub fn light_client_checkpoint(&self) -> Option<B256> {
        self.document.light_client_proof().map(|proof| proof.checkpoint)
    }

    /// Whether the bundle contains a signature. [`ResolutionBundle::verify_by_replay`] does not check it.
    pub const fn has_signature(&self) -> bool {
        self.document.signed.is_some()
    }

    /// The verdict that follows from the evidence, regardless of the verdict in the bundle. A forger would write this
    /// verdict into it.
    ///
    /// # Errors
    /// As [`verify_by_replay`](Self::verify_by_replay), but never [`BundleError::Verdict`].
    pub fn judge_evidence<'a>(
        &self,
        anchors: impl Into<BundleTrustAnchors<'a>>,
    ) -> Result<ReplayedResolution, BundleError> {
        Ok(replay::judge_evidence(&self.document, anchors.into())?.1)
    }

    /// The resolution in the bundle, if `reporter` could have made it for `name` at `block`: same rules, depth, network
    /// and chain. What the bytes prove is proven again. The rest is the exporter's word, so the caller must trust the
    /// exporter. A header that a light client supplied must be provable from `checkpoint`. The name's history and the
    /// links to the card are not included.
    ///
    /// # Errors
    /// As [`verify_by_replay`](Self::verify_by_replay), but never [`BundleError::Verdict`];
    /// [`BundleError::Inconsistent`] if the bundle answers another request.
    pub fn replay_reported_run(
        &self,
        reporter: &VerdictContext<'_>,
        checkpoint: Option<B256>,
        name: &EnsName,
        block: BlockSelector,
    ) -> Result<EvidenceWithStepDurations, BundleError> {
        replay::replay_reported_run(&self.document, reporter, checkpoint, name, block)
    }

    /// Checks that one of `keys` signed this bundle's verdict, and that the verdict matches `expected`.
    ///
    /// A signature that has expired by `now` is still valid and is marked as expired: it identifies the signer and the
    /// time. The caller decides the maximum age of a bundle by the time of the resolution
    /// ([`VerifiedBundle::made_at`]), which the signature covers.
    ///
    /// # Errors
    /// [`BundleError::Unsigned`], [`BundleError::Signature`] or [`BundleError::OtherSigned`].
    pub fn check_verdict_signature(
        &self,
        keys: &Ed25519KeySet,
        expected: &ExpectedVerdict,
        now: Timestamp,
    ) -> Result<VerifiedVerdictSignature, BundleError> {
        let BundleDocument { verdict, signed, .. } = &self.document;
        let jws = signed.as_deref().ok_or(BundleError::Unsigned)?;
        // An expired signature is checked as of the last second of its validity.
        let last = Timestamp::from_second(verdict.freshness.fresh_until.as_second() - 1).ok();
        let found = signed::verify_signed_verdict(jws, keys, expected, last.map_or(now, |last| last.min(now)))?;
        let signed = found.verdict();
        if (&signed.id, &signed.conclusion) != (&verdict.id, &verdict.conclusion)
            && !clresolve_core::mutant!("signature-of-another-verdict")
        {
            return Err(BundleError::OtherSigned);
        }
        let expires = Timestamp::from_second(found.expires).map_err(|_| VerdictVerifyError::Lifetime)?;
        Ok(VerifiedVerdictSignature { issuer: found.issuer, key_id: found.key_id, expires, is_expired: now >= expires })
    }

    /// The name that the verdict is about.
    pub fn name(&self) -> &EnsName {
        &self.document.question.name
    }

    /// The block height, if the request chose the block by number.
    pub fn requested_block_number(&self) -> Option<u64> {
        match self.document.question.block.parse() {
            Ok(BlockSelector::Number(height)) => Some(height),
            _ => None,
        }
    }

    /// The network, as in the verdict's `anchor.world`; `sandbox` for the embedded network.
    pub fn network_name(&self) -> &str {
        &self.document.run.world
    }

    /// The bundle as JSON.
    pub fn to_json(&self) -> Value {
        let mut value = serialize_document(&self.document).unwrap_or_default();
        value["digest"] = self.digest.to_string().into();
        value
    }
}

impl SignableBundle {
    /// The bundle with its verdict signed, as of `now`.
    ///
    /// # Errors
    /// [`VerdictSignError`] if the verdict must not be signed.
    pub fn sign_verdict(&self, signer: &VerdictIssuer, now: Timestamp) -> Result<ResolutionBundle, VerdictSignError> {
        let mut document = self.bundle.document.clone();
        document.signed = Some(signer.sign_verdict(&self.resolution, now)?);
        let digest = serialize_document(&document).and_then(|value| document_digest(&value));
        let digest = digest.expect("a document that has a JSON form has one with another string in it");
        Ok(ResolutionBundle { document, digest })
    }

    /// The unsigned bundle.
    pub const fn unsigned_bundle(&self) -> &ResolutionBundle {
        &self.bundle
    }

    /// The verdict of the resolution.
    pub fn verdict(&self) -> &Verdict {
        self.resolution.verdict()
    }

    /// Extracts the unsigned bundle.
    pub fn into_unsigned_bundle(self) -> ResolutionBundle {
        self.bundle
    }
}

/// Parses a document of format `schema` from untrusted JSON and verifies its digest.
fn parse_document<D: Serialize + DeserializeOwned>(mut value: Value, schema: &str) -> Result<(D, Digest), BundleError> {
    let format = value.get("schema").and_then(Value::as_str).unwrap_or_default();
    if format != schema {
        return Err(BundleError::Format(excerpt_text(format)));
    }
    let members = value.as_object_mut().ok_or_else(|| BundleError::Shape("not an object".to_owned()))?;
    let written = members.remove("digest");
    let written = written.as_ref().and_then(Value::as_str);
    let expected = written.and_then(|text| text.parse::<Digest>().ok().filter(|digest| digest.to_string() == text));
    let expected = expected.ok_or_else(|| BundleError::Shape("it has no digest".to_owned()))?;
    let observed = document_digest(&value)?;
    if observed != expected && !clresolve_core::mutant!("bundle-digest") {
        return Err(BundleError::Digest { expected, observed });
    }
    let document: D =
        serde_json::from_value(value.clone()).map_err(|error| BundleError::Shape(excerpt_text(&error.to_string())))?;
    // Serializing the document must reproduce the input. This rejects unknown members and alternative spellings.
    match replay::first_json_difference(&value, &serialize_document(&document)?) {
        None => Ok((document, observed)),
        Some(at) => Err(BundleError::Shape(format!("{} is not in its one form", excerpt_text(&at)))),
    }
}

fn serialize_document(document: &impl Serialize) -> Result<Value, BundleError> {
    serde_json::to_value(document).map_err(|error| BundleError::Shape(excerpt_text(&error.to_string())))
}

/// The digest over the RFC 8785 form of a document without its member `digest`.
fn document_digest(value: &Value) -> Result<Digest, BundleError> {
    canonical_digest(value).parse().map_err(|_| BundleError::Shape("it has no digest".to_owned()))
}
