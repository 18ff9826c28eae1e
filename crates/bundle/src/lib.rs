//! Evidence bundles: everything that a verdict rests on, in one document that is judged again without a network.
//!
//! [`Bundle::read`] takes the bytes of a stranger, [`Bundle::verify`] replays them: what can be proven from the bytes
//! alone is proven again, the checks judge the evidence anew, and the verdict in the bundle must be the one that comes
//! out. Pure: no I/O, no clock, no panic on any input.
//!
//! A bundle that verifies shows that its verdict follows from its evidence. What the evidence itself is worth differs:
//! [`VerifiedBundle::proven`] was shown here, [`VerifiedBundle::attested`] is the exporter's word: a stranger can make that up
//! together with a digest that fits. A signature says whose word it is ([`Bundle::check_signature`]).

mod error;
mod form;
mod header;
#[cfg(feature = "receipts")]
pub mod purchase;
mod replay;
pub mod signed;

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use self::error::BundleError;
use self::form::Document;
pub use self::form::{OfChain, SCHEMA};
pub use self::replay::VerifiedBundle;
use crate::signed::{ExpectedVerdict, SignError, Signer, VerifyError};
use clresolve_core::digest::Digest;
use clresolve_core::json;
use clresolve_core::json::Limits;
use clresolve_core::name::EnsName;
use clresolve_core::reading::BlockSelector;
use clresolve_core::text::excerpt;
use clresolve_ipfs::WalkedBlocks;
use clresolve_jose::TrustedKeys;
use clresolve_verdict::build;
use clresolve_verdict::build::{Reporter, Run};
use clresolve_verdict::profile::Profiles;
use clresolve_verdict::trust::{Replay, Resolution};
use clresolve_verdict::verdict::{Verdict, canonical_digest};

/// Largest bundle in bytes: two walks of all that [`Budget::card`](clresolve_ipfs::Budget::card) allows, in base64, and
/// room for everything else.
pub const MAX_BYTES: usize = 32 << 20;

/// What the JSON of a bundle may use up. The evidence of a step nests a few levels below the verdict; the values are
/// those of a verdict and some lists of endpoints.
const LIMITS: Limits = Limits { bytes: MAX_BYTES, levels: 32, values: 64 * 1024, ..Limits::DOCUMENT };

/// A bundle whose form and digest are right. Nothing in it is believed yet.
#[derive(Clone, Debug)]
pub struct Bundle {
    document: Document,
    digest: Digest,
}

/// A bundle of a live run, with the answer of that run. Only such a bundle can be signed: a stranger's is not.
#[derive(Clone, Debug)]
pub struct Packed {
    bundle: Bundle,
    resolution: Resolution,
}

/// The signature of a bundle's verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The issuer.
    pub issuer: String,
    /// Thumbprint of the key.
    pub key_id: String,
    /// From when on the verdict may not be relied on without asking again.
    pub expires: Timestamp,
    /// Whether that time has come. A bundle is for audits, so an expired signature is reported, not refused.
    pub is_expired: bool,
}

impl Bundle {
    /// Reads a bundle from foreign bytes: strict JSON of this format, without a member too many, and with its digest.
    ///
    /// # Errors
    /// [`BundleError::Json`], [`BundleError::Format`], [`BundleError::Shape`] or [`BundleError::Digest`].
    pub fn read(bytes: &[u8]) -> Result<Self, BundleError> {
        Self::of(json::parse(bytes, LIMITS)?)
    }

    fn of(value: Value) -> Result<Self, BundleError> {
        let (document, digest) = opened(value, SCHEMA)?;
        Ok(Self { document, digest })
    }

    /// Puts a run into a bundle. `chain` is what the chain gave beside the reading, `blocks` are those of the walks.
    ///
    /// # Errors
    /// [`BundleError`] where the bundle would not verify: what cannot be shown again is not handed on.
    pub fn pack(
        reporter: &Reporter<'_>,
        run: &Run,
        chain: OfChain,
        blocks: &WalkedBlocks,
    ) -> Result<Packed, BundleError> {
        let resolution = build::resolution(reporter, run, 0);
        let document = Document::of(reporter, &run.evidence, chain, blocks, resolution.verdict())?;
        let digest = digest_of(&shape(&document)?)?;
        let bundle = Self { document, digest };
        bundle.verify(reporter.profiles)?;
        Ok(Packed { bundle, resolution })
    }

    /// Replays the bundle under the rules that it names, if they are among `profiles`.
    ///
    /// # Errors
    /// [`BundleError`]: what is wrong first.
    pub fn verify(&self, profiles: &Profiles) -> Result<VerifiedBundle, BundleError> {
        replay::replay(&self.document, self.digest, profiles)
    }

    /// Whether it holds a signature. [`Bundle::verify`] does not check it.
    pub const fn is_signed(&self) -> bool {
        self.document.signed.is_some()
    }

    /// The verdict that follows from the evidence, whatever verdict the bundle holds: what a forger would write into it.
    ///
    /// # Errors
    /// As [`verify`](Self::verify), but never [`BundleError::Verdict`].
    pub fn judge(&self, profiles: &Profiles) -> Result<Replay, BundleError> {
        Ok(replay::judge(&self.document, profiles)?.1)
    }

    /// The run whose evidence it holds, if that is one that `reporter` could have made about `name` at `block`: under the
    /// same rules, depth, world and chain. What the bytes prove is proven again; the rest is the exporter's word, so the
    /// caller must know that exporter. What was remembered of the name and what links to the card are not in it.
    ///
    /// # Errors
    /// As [`verify`](Self::verify), but never [`BundleError::Verdict`]; [`BundleError::Inconsistent`] for another question.
    pub fn run(&self, reporter: &Reporter<'_>, name: &EnsName, block: BlockSelector) -> Result<Run, BundleError> {
        replay::run(&self.document, reporter, name, block)
    }

    /// Checks that one of these keys signed the verdict of this bundle, and that it is about what was expected.
    ///
    /// A signature that has expired by `now` holds and is marked so: it still shows the signer and the time. The reader
    /// decides how old a bundle may be, by the time of the run ([`VerifiedBundle::made_at`]), which the signature covers.
    ///
    /// # Errors
    /// [`BundleError::Unsigned`], [`BundleError::Signature`] or [`BundleError::OtherSigned`].
    pub fn check_signature(
        &self,
        keys: &TrustedKeys,
        expected: &ExpectedVerdict,
        now: Timestamp,
    ) -> Result<Signature, BundleError> {
        let Document { verdict, signed, .. } = &self.document;
        let jws = signed.as_deref().ok_or(BundleError::Unsigned)?;
        // The last second in which it held, if that is over.
        let last = Timestamp::from_second(verdict.freshness.fresh_until.as_second() - 1).ok();
        let found = signed::verify(jws, keys, expected, last.map_or(now, |last| last.min(now)))?;
        let signed = found.verdict();
        if (&signed.id, &signed.conclusion) != (&verdict.id, &verdict.conclusion)
            && !clresolve_core::mutant!("signature-of-another-verdict")
        {
            return Err(BundleError::OtherSigned);
        }
        let expires = Timestamp::from_second(found.expires).map_err(|_| VerifyError::Lifetime)?;
        Ok(Signature { issuer: found.issuer, key_id: found.key_id, expires, is_expired: now >= expires })
    }

    /// The name that it is about.
    pub fn name(&self) -> &EnsName {
        &self.document.question.name
    }

    /// The height of the block, where the question chose it by number.
    pub fn numbered_block(&self) -> Option<u64> {
        match self.document.question.block.parse() {
            Ok(BlockSelector::Number(height)) => Some(height),
            _ => None,
        }
    }

    /// `anchor.world` of the verdict; `sandbox` for that of the embedded world.
    pub fn world(&self) -> &str {
        &self.document.run.world
    }

    /// The bundle as JSON.
    pub fn to_json(&self) -> Value {
        let mut value = shape(&self.document).unwrap_or_default();
        value["digest"] = self.digest.to_string().into();
        value
    }
}

impl Packed {
    /// The bundle with its verdict signed, as of `now`.
    ///
    /// # Errors
    /// [`SignError`], as everywhere.
    pub fn signed(&self, signer: &Signer, now: Timestamp) -> Result<Bundle, SignError> {
        let mut document = self.bundle.document.clone();
        document.signed = Some(signer.sign(&self.resolution, now)?);
        let digest = shape(&document).and_then(|value| digest_of(&value));
        let digest = digest.expect("a document that has a JSON form has one with another string in it");
        Ok(Bundle { document, digest })
    }

    /// The bundle.
    pub const fn bundle(&self) -> &Bundle {
        &self.bundle
    }

    /// The verdict of the run.
    pub fn verdict(&self) -> &Verdict {
        self.resolution.verdict()
    }

    /// The bundle alone.
    pub fn into_bundle(self) -> Bundle {
        self.bundle
    }
}

/// The document of this format in foreign JSON, with its digest.
fn opened<D: Serialize + DeserializeOwned>(mut value: Value, schema: &str) -> Result<(D, Digest), BundleError> {
    let format = value.get("schema").and_then(Value::as_str).unwrap_or_default();
    if format != schema {
        return Err(BundleError::Format(excerpt(format)));
    }
    let members = value.as_object_mut().ok_or_else(|| BundleError::Shape("not an object".to_owned()))?;
    let written = members.remove("digest");
    let written = written.as_ref().and_then(Value::as_str);
    let expected = written.and_then(|text| text.parse::<Digest>().ok().filter(|digest| digest.to_string() == text));
    let expected = expected.ok_or_else(|| BundleError::Shape("it has no digest".to_owned()))?;
    let observed = digest_of(&value)?;
    if observed != expected && !clresolve_core::mutant!("bundle-digest") {
        return Err(BundleError::Digest { expected, observed });
    }
    let document: D =
        serde_json::from_value(value.clone()).map_err(|error| BundleError::Shape(excerpt(&error.to_string())))?;
    // What is written back is what was read: no member was passed over, and nothing has two spellings.
    match replay::first_difference(&value, &shape(&document)?) {
        None => Ok((document, observed)),
        Some(at) => Err(BundleError::Shape(format!("{} is not in its one form", excerpt(&at)))),
    }
}

fn shape(document: &impl Serialize) -> Result<Value, BundleError> {
    serde_json::to_value(document).map_err(|error| BundleError::Shape(excerpt(&error.to_string())))
}

/// The digest over the RFC 8785 form of a bundle without its member `digest`.
fn digest_of(value: &Value) -> Result<Digest, BundleError> {
    canonical_digest(value).parse().map_err(|_| BundleError::Shape("it has no digest".to_owned()))
}
