//! The JSON form of a bundle, and the conversion of a resolution into it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use alloy_primitives::Address;

use super::error::BundleError;
use clresolve_core::fetch::{Cause, Forbidden};
use clresolve_core::light_client::LightClientProof;
use clresolve_core::name::EnsName;
use clresolve_core::reading::{
    Answer, Block, BlockSelector, ChainError, Holder, Latest, MigrationSign, Proof, Reading,
};
use clresolve_core::recordable::Recordable;
use clresolve_ipfs::build::car as write_car;
use clresolve_ipfs::{Budget, ContentId, ContentPath, Walk, WalkedBlocks};
use clresolve_state::StateProof;
use clresolve_verdict::build::Reporter;
use clresolve_verdict::check::Policy;
use clresolve_verdict::evidence::{
    Evidence, IpfsOutcome, OwnerEvidence, ProvenBy, SchemaAnswer, SchemaAnswers, SchemaEvidence, SchemaFault, Source,
    Targets,
};
use clresolve_verdict::profile::Profile;
use clresolve_verdict::schema::served::ServedSchema;
use clresolve_verdict::verdict::{Depth, Pinned, Verdict};

/// Identifier of the format. Its JSON form is `schemas/bundle.schema.json`.
pub const SCHEMA: &str = "clresolve.bundle/1";

/// Chain data that accompanies the reading: the RLP of the block's header, and the proofs of the reading.
#[derive(Clone, Debug, Default)]
pub struct OfChain {
    /// The RLP of the header. The caller has compared its hash.
    pub header: Option<alloy_primitives::Bytes>,
    /// The state proofs, if the reading was proven.
    pub state_proof: Option<StateProof>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Document {
    pub(super) schema: String,
    pub(super) question: Question,
    pub(super) run: RunOf,
    /// The block header's RLP.
    pub(super) header: Option<Base64>,
    pub(super) reading: ResultForm<ReadingForm, ChainError>,
    pub(super) owner: OwnerEvidence,
    pub(super) https: SourceForm,
    pub(super) ipfs: WalkForm,
    pub(super) mirror: WalkForm,
    pub(super) liars: Vec<(String, String)>,
    pub(super) schemas: Option<SchemasForm>,
    pub(super) verdict: Verdict,
    /// The verdict as a JWS, if the exporter signed it.
    pub(super) signed: Option<String>,
}

/// The request and the rules to judge it by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Question {
    pub(super) name: EnsName,
    pub(super) block: String,
    pub(super) depth: Depth,
    pub(super) require_all_sources: bool,
    pub(super) allowed_publishers: Vec<String>,
    pub(super) profile: Pinned,
    pub(super) manifests: Vec<Pinned>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RunOf {
    pub(super) at: Timestamp,
    pub(super) world: String,
    pub(super) chain_id: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ResultForm<T, E> {
    Given(T),
    Failed(E),
}

impl<T, E> From<Result<T, E>> for ResultForm<T, E> {
    fn from(result: Result<T, E>) -> Self {
        match result {
            Ok(given) => Self::Given(given),
            Err(failed) => Self::Failed(failed),
        }
    }
}

impl<T, E> ResultForm<T, E> {
    pub(super) fn into_result(self) -> Result<T, E> {
        match self {
            Self::Given(given) => Ok(given),
            Self::Failed(failed) => Err(failed),
        }
    }
}

/// What backs a reading.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Backing {
    /// Only the exporter's word.
    Attested,
    /// State proofs from which the reading can be computed.
    Proven(Box<StateProof>),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ReadingForm {
    pub(super) backing: Backing,
    pub(super) block: Block,
    answer: Answer,
    latest: Option<ResultForm<Answer, ChainError>>,
    /// The holder at the newest block, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latest_holder: Option<HolderForm>,
    holder: Holder,
    expiry: Option<Timestamp>,
    proof: Proof,
    own: bool,
    endpoints: Vec<String>,
    contradicted_by: Vec<(String, String)>,
    failed_endpoints: Vec<(String, String)>,
}

/// JSON of the holder at the newest block. `null` means that the holder is the same as at the resolved block.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum HolderForm {
    Nobody,
    Address(Address),
    Unreadable(MigrationSign),
}

impl From<Holder> for HolderForm {
    fn from(holder: Holder) -> Self {
        match holder {
            Holder::Nobody => Self::Nobody,
            Holder::Address(holder) => Self::Address(holder),
            Holder::Unreadable { unreadable } => Self::Unreadable(unreadable),
        }
    }
}

impl From<HolderForm> for Holder {
    fn from(form: HolderForm) -> Self {
        match form {
            HolderForm::Nobody => Self::Nobody,
            HolderForm::Address(holder) => Self::Address(holder),
            HolderForm::Unreadable(unreadable) => Self::Unreadable { unreadable },
        }
    }
}

impl ReadingForm {
    fn of(reading: Reading, state_proof: Option<StateProof>) -> Self {
        let latest_holder = match &reading.latest {
            Some(Ok(latest)) if latest.holder != reading.holder => Some(latest.holder.into()),
            _ => None,
        };
        Self {
            backing: state_proof.map_or(Backing::Attested, |state_proof| Backing::Proven(Box::new(state_proof))),
            block: reading.block,
            answer: reading.answer,
            latest: reading.latest.map(|latest| latest.map(|latest| latest.answer).into()),
            latest_holder,
            holder: reading.holder,
            expiry: reading.expiry,
            proof: reading.proof,
            own: reading.proof.own,
            endpoints: reading.endpoints,
            contradicted_by: reading.contradicted_by,
            failed_endpoints: reading.failed_endpoints,
        }
    }
}

impl From<ReadingForm> for Reading {
    fn from(form: ReadingForm) -> Self {
        let holder = form.latest_holder.map_or(form.holder, Into::into);
        let latest = |answer: Answer| Latest { answer, holder };
        Self {
            block: form.block,
            answer: form.answer,
            latest: form.latest.map(|form| form.into_result().map(latest)),
            newest: None,
            holder: form.holder,
            expiry: form.expiry,
            proof: Proof { own: form.own, ..form.proof },
            endpoints: form.endpoints,
            contradicted_by: form.contradicted_by,
            failed_endpoints: form.failed_endpoints,
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SourceForm {
    NotAsked,
    Body { bytes: Base64, url: String },
    Unavailable(Recordable<Cause>),
    Forbidden(Recordable<Forbidden>),
    Oversize(u64),
}

impl From<Source> for SourceForm {
    fn from(source: Source) -> Self {
        match source {
            Source::NotAsked => Self::NotAsked,
            Source::Body { bytes, url } => Self::Body { bytes: Base64(bytes), url },
            Source::Unavailable(cause) => Self::Unavailable(cause),
            Source::Forbidden(cause) => Self::Forbidden(cause),
            Source::Oversize(limit) => Self::Oversize(limit),
        }
    }
}

impl From<SourceForm> for Source {
    fn from(form: SourceForm) -> Self {
        match form {
            SourceForm::NotAsked => Self::NotAsked,
            SourceForm::Body { bytes, url } => Self::Body { bytes: bytes.0, url },
            SourceForm::Unavailable(cause) => Self::Unavailable(cause),
            SourceForm::Forbidden(cause) => Self::Forbidden(cause),
            SourceForm::Oversize(limit) => Self::Oversize(limit),
        }
    }
}

/// The JSON form of an IPFS walk: the blocks that decide it, or why there are none.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum WalkForm {
    NotAsked,
    /// A CARv1 with the blocks in the order of the walk. Verification derives the result from them again.
    Blocks {
        by: ProvenBy,
        car: Base64,
    },
    /// Blocks were unavailable; cause by gateway label.
    Unproven(Vec<(String, String)>),
}

/// The JSON form of the two bound schemas.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SchemasForm {
    pub(super) request: SchemaAnswersForm,
    pub(super) receipt: SchemaAnswersForm,
}

/// [`SchemaAnswers`] in a bundle.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SchemaAnswersForm {
    canonical: ResultForm<Base64, Recordable<SchemaFault>>,
    mirror: Option<ResultForm<Base64, Recordable<SchemaFault>>>,
}

impl From<SchemaAnswers> for SchemaAnswersForm {
    fn from(bound: SchemaAnswers) -> Self {
        let form = |answer: SchemaAnswer| answer.map(|served| Base64(served.bytes().clone())).into();
        Self { canonical: form(bound.canonical), mirror: bound.mirror.map(form) }
    }
}

impl From<SchemaAnswersForm> for SchemaAnswers {
    fn from(form: SchemaAnswersForm) -> Self {
        let read = |form: ResultForm<Base64, Recordable<SchemaFault>>| {
            form.into_result().map(|bytes| ServedSchema::read(bytes.0))
        };
        Self { canonical: read(form.canonical), mirror: form.mirror.map(read) }
    }
}

impl From<SchemaEvidence> for SchemasForm {
    fn from(schemas: SchemaEvidence) -> Self {
        Self { request: schemas.request.into(), receipt: schemas.receipt.into() }
    }
}

impl From<SchemasForm> for SchemaEvidence {
    fn from(form: SchemasForm) -> Self {
        Self { request: form.request.into(), receipt: form.receipt.into() }
    }
}

impl Document {
    pub(super) fn of(
        reporter: &Reporter<'_>,
        evidence: &Evidence,
        chain: OfChain,
        blocks: &WalkedBlocks,
        verdict: &Verdict,
    ) -> Result<Self, BundleError> {
        let targets = evidence.found().map(|found| Targets::of(&found.records));
        let cid = targets.as_ref().and_then(|targets| Some((targets.cid?, &targets.path)));
        let mirror = targets.as_ref().and_then(|targets| targets.mirror.as_ref());
        let mirror = mirror.map(|mirror| (mirror.cid, &mirror.path));
        Ok(Self {
            schema: SCHEMA.to_owned(),
            question: Question::of(&evidence.name, evidence.block, reporter.profile, reporter.policy),
            run: RunOf { at: evidence.now, world: reporter.world.to_owned(), chain_id: reporter.chain_id },
            header: chain.header.map(|header| Base64(header.0)),
            reading: evidence.reading.clone().map(|reading| ReadingForm::of(reading, chain.state_proof)).into(),
            owner: evidence.owner.clone(),
            https: evidence.https.clone().into(),
            ipfs: walk_form(&evidence.ipfs, cid, blocks),
            mirror: walk_form(&evidence.mirror, mirror, blocks),
            liars: evidence.liars.clone(),
            schemas: evidence.schemas.clone().map(SchemasForm::from),
            verdict: verdict.clone(),
            signed: None,
        })
    }
}

impl Document {
    /// The state proofs behind the reading, if any.
    pub(super) fn state_proof(&self) -> Option<&StateProof> {
        match &self.reading {
            ResultForm::Given(ReadingForm { backing: Backing::Proven(state_proof), .. }) => Some(state_proof),
            _ => None,
        }
    }

    /// The proof of the header, if a light client supplied it.
    pub(super) fn light_client(&self) -> Option<&LightClientProof> {
        self.state_proof()?.light_client.as_ref()
    }
}

impl Question {
    pub(super) fn of(name: &EnsName, block: BlockSelector, profile: &Profile, policy: &Policy) -> Self {
        let pinned =
            |id: &str, digest: clresolve_core::digest::Digest| Pinned { id: id.to_owned(), digest: digest.to_string() };
        Self {
            name: name.clone(),
            block: block.to_string(),
            depth: policy.depth,
            require_all_sources: policy.require_all_sources,
            allowed_publishers: policy.allowed_publishers.clone(),
            profile: pinned(profile.id(), profile.digest()),
            manifests: profile.manifests().map(|manifest| pinned(manifest.id(), manifest.digest())).collect(),
        }
    }
}

/// The walk with its blocks, in the order in which the walk requests them.
fn walk_form(walked: &IpfsOutcome, from: Option<(ContentId, &ContentPath)>, blocks: &WalkedBlocks) -> WalkForm {
    let by = match (walked, from) {
        (IpfsOutcome::NotAsked, _) | (_, None) => return WalkForm::NotAsked,
        (IpfsOutcome::Unproven(causes), _) => return WalkForm::Unproven(causes.clone()),
        (IpfsOutcome::Proven { by, .. }, _) => *by,
        _ => ProvenBy::Gateway,
    };
    let Some((root, path)) = from else { return WalkForm::NotAsked };
    let mut walk = Walk::new(root, path, Budget::card());
    let mut order = Vec::new();
    // Terminates: each block is supplied once or the walk is over, and the budget bounds its visits.
    while let Some((cid, block)) = walk.wanted().and_then(|cid| Some((*cid, blocks.get(cid)?))) {
        order.push((cid, block));
        if walk.supply(block.clone()).is_err() {
            break;
        }
    }
    let car = write_car(&root, order.iter().map(|(cid, block)| (cid, *block)));
    WalkForm::Blocks { by, car: Base64(car.into()) }
}

/// Bytes in base64 (RFC 4648, with padding). Only the canonical spelling is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Base64(pub(super) Bytes);

impl Serialize for Base64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map(|bytes| Self(bytes.into())).map_err(serde::de::Error::custom)
    }
}
