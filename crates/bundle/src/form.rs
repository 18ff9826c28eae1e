//! The JSON form of a bundle, and the conversion of a resolution into it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use alloy_primitives::Address;

use super::error::BundleError;
use clresolve_core::fetch::{ForbiddenUrlError, SourceUnavailableError};
use clresolve_core::light_client::LightClientSyncTranscript;
use clresolve_core::name::EnsName;
use clresolve_core::reading::{
    BlockSelector, ChainBlock, ChainError, EnsAnswer, Ensv2MigrationSign, LatestNameState, NameHolder, NameReading,
    ProofStrength,
};
use clresolve_core::recordable::LiveOrRecordedCause;
use clresolve_ipfs::build::write_car;
use clresolve_ipfs::{ContentId, DagWalk, DagWalkBudget, UnixFsPath, VerifiedBlocks};
use clresolve_state::StateProof;
use clresolve_verdict::build::VerdictContext;
use clresolve_verdict::check::JudgementPolicy;
use clresolve_verdict::evidence::{
    CanonicalAndMirrorSchema, CardLocations, ClOwnerEvidence, ContentProofSource, HttpsOutcome, IpfsWalkOutcome,
    ResolutionEvidence, SchemaEvidence, SchemaFetchError, SchemaFetchResult,
};
use clresolve_verdict::profile::ConformanceProfile;
use clresolve_verdict::schema::served::ServedSchema;
use clresolve_verdict::verdict::{PinnedDocument, ResolutionDepth, Verdict};

/// Identifier of the format. Its JSON form is `schemas/bundle.schema.json`.
pub const SCHEMA: &str = "clresolve.bundle/1";

/// Chain data that accompanies the reading: the RLP of the block's header, and the proofs of the reading.
#[derive(Clone, Debug, Default)]
pub struct HeaderAndStateProof {
    /// The RLP of the header. The caller has compared its hash.
    pub header: Option<alloy_primitives::Bytes>,
    /// The state proofs, if the reading was proven.
    pub state_proof: Option<StateProof>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct BundleDocument {
    pub(super) schema: String,
    pub(super) question: BundleRequestDocument,
    pub(super) run: BundleRunDocument,
    /// The block header's RLP.
    pub(super) header: Option<Base64Bytes>,
    pub(super) reading: SerializableResult<ReadingDocument, ChainError>,
    pub(super) owner: ClOwnerEvidence,
    pub(super) https: HttpsSourceDocument,
    pub(super) ipfs: IpfsWalkDocument,
    pub(super) mirror: IpfsWalkDocument,
    pub(super) liars: Vec<(String, String)>,
    pub(super) schemas: Option<BoundSchemasDocument>,
    pub(super) verdict: Verdict,
    /// The verdict as a JWS, if the exporter signed it.
    pub(super) signed: Option<String>,
}

/// The request and the rules to judge it by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BundleRequestDocument {
    pub(super) name: EnsName,
    pub(super) block: String,
    pub(super) depth: ResolutionDepth,
    pub(super) require_all_sources: bool,
    pub(super) allowed_publishers: Vec<String>,
    pub(super) profile: PinnedDocument,
    pub(super) manifests: Vec<PinnedDocument>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct BundleRunDocument {
    pub(super) at: Timestamp,
    pub(super) world: String,
    pub(super) chain_id: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SerializableResult<T, E> {
    Given(T),
    Failed(E),
}

impl<T, E> From<Result<T, E>> for SerializableResult<T, E> {
    fn from(result: Result<T, E>) -> Self {
        match result {
            Ok(given) => Self::Given(given),
            Err(failed) => Self::Failed(failed),
        }
    }
}

impl<T, E> SerializableResult<T, E> {
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
pub(super) enum StateProofOrAttestation {
    /// Only the exporter's word.
    Attested,
    /// State proofs from which the reading can be computed.
    Proven(Box<StateProof>),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ReadingDocument {
    pub(super) backing: StateProofOrAttestation,
    pub(super) block: ChainBlock,
    answer: EnsAnswer,
    latest: Option<SerializableResult<EnsAnswer, ChainError>>,
    /// The holder at the newest block, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latest_holder: Option<NewestNameHolderDocument>,
    holder: NameHolder,
    expiry: Option<Timestamp>,
    proof: ProofStrength,
    own: bool,
    endpoints: Vec<String>,
    contradicted_by: Vec<(String, String)>,
    failed_endpoints: Vec<(String, String)>,
}

/// JSON of the holder at the newest block. `null` means that the holder is the same as at the resolved block.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum NewestNameHolderDocument {
    Nobody,
    Address(Address),
    Unreadable(Ensv2MigrationSign),
}

impl From<NameHolder> for NewestNameHolderDocument {
    fn from(holder: NameHolder) -> Self {
        match holder {
            NameHolder::Nobody => Self::Nobody,
            NameHolder::Address(holder) => Self::Address(holder),
            NameHolder::Unreadable { unreadable } => Self::Unreadable(unreadable),
        }
    }
}

impl From<NewestNameHolderDocument> for NameHolder {
    fn from(form: NewestNameHolderDocument) -> Self {
        match form {
            NewestNameHolderDocument::Nobody => Self::Nobody,
            NewestNameHolderDocument::Address(holder) => Self::Address(holder),
            NewestNameHolderDocument::Unreadable(unreadable) => Self::Unreadable { unreadable },
        }
    }
}

impl ReadingDocument {
    fn from_reading(reading: NameReading, state_proof: Option<StateProof>) -> Self {
        let latest_holder = match &reading.latest {
            Some(Ok(latest)) if latest.holder != reading.holder => Some(latest.holder.into()),
            _ => None,
        };
        Self {
            backing: state_proof.map_or(StateProofOrAttestation::Attested, |state_proof| {
                StateProofOrAttestation::Proven(Box::new(state_proof))
            }),
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

impl From<ReadingDocument> for NameReading {
    fn from(form: ReadingDocument) -> Self {
        let holder = form.latest_holder.map_or(form.holder, Into::into);
        let latest = |answer: EnsAnswer| LatestNameState { answer, holder };
        Self {
            block: form.block,
            answer: form.answer,
            latest: form.latest.map(|form| form.into_result().map(latest)),
            newest: None,
            holder: form.holder,
            expiry: form.expiry,
            proof: ProofStrength { own: form.own, ..form.proof },
            endpoints: form.endpoints,
            contradicted_by: form.contradicted_by,
            failed_endpoints: form.failed_endpoints,
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum HttpsSourceDocument {
    NotAsked,
    Body { bytes: Base64Bytes, url: String },
    Unavailable(LiveOrRecordedCause<SourceUnavailableError>),
    Forbidden(LiveOrRecordedCause<ForbiddenUrlError>),
    Oversize(u64),
}

impl From<HttpsOutcome> for HttpsSourceDocument {
    fn from(source: HttpsOutcome) -> Self {
        match source {
            HttpsOutcome::NotAsked => Self::NotAsked,
            HttpsOutcome::Body { bytes, url } => Self::Body { bytes: Base64Bytes(bytes), url },
            HttpsOutcome::Unavailable(cause) => Self::Unavailable(cause),
            HttpsOutcome::Forbidden(cause) => Self::Forbidden(cause),
            HttpsOutcome::Oversize(limit) => Self::Oversize(limit),
        }
    }
}

impl From<HttpsSourceDocument> for HttpsOutcome {
    fn from(form: HttpsSourceDocument) -> Self {
        match form {
            HttpsSourceDocument::NotAsked => Self::NotAsked,
            HttpsSourceDocument::Body { bytes, url } => Self::Body { bytes: bytes.0, url },
            HttpsSourceDocument::Unavailable(cause) => Self::Unavailable(cause),
            HttpsSourceDocument::Forbidden(cause) => Self::Forbidden(cause),
            HttpsSourceDocument::Oversize(limit) => Self::Oversize(limit),
        }
    }
}

/// The JSON form of an IPFS walk: the blocks that decide it, or why there are none.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum IpfsWalkDocument {
    NotAsked,
    /// A CARv1 with the blocks in the order of the walk. Verification derives the result from them again.
    Blocks {
        by: ContentProofSource,
        car: Base64Bytes,
    },
    /// Blocks were unavailable; cause by gateway label.
    Unproven(Vec<(String, String)>),
}

/// The JSON form of the two bound schemas.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct BoundSchemasDocument {
    pub(super) request: CanonicalAndMirrorSchemaDocument,
    pub(super) receipt: CanonicalAndMirrorSchemaDocument,
}

/// [`CanonicalAndMirrorSchema`] in a bundle.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct CanonicalAndMirrorSchemaDocument {
    canonical: SerializableResult<Base64Bytes, LiveOrRecordedCause<SchemaFetchError>>,
    mirror: Option<SerializableResult<Base64Bytes, LiveOrRecordedCause<SchemaFetchError>>>,
}

impl From<CanonicalAndMirrorSchema> for CanonicalAndMirrorSchemaDocument {
    fn from(bound: CanonicalAndMirrorSchema) -> Self {
        let form = |answer: SchemaFetchResult| answer.map(|served| Base64Bytes(served.bytes().clone())).into();
        Self { canonical: form(bound.canonical), mirror: bound.mirror.map(form) }
    }
}

impl From<CanonicalAndMirrorSchemaDocument> for CanonicalAndMirrorSchema {
    fn from(form: CanonicalAndMirrorSchemaDocument) -> Self {
        let read = |form: SerializableResult<Base64Bytes, LiveOrRecordedCause<SchemaFetchError>>| {
            form.into_result().map(|bytes| ServedSchema::from_bytes(bytes.0))
        };
        Self { canonical: read(form.canonical), mirror: form.mirror.map(read) }
    }
}

impl From<SchemaEvidence> for BoundSchemasDocument {
    fn from(schemas: SchemaEvidence) -> Self {
        Self { request: schemas.request.into(), receipt: schemas.receipt.into() }
    }
}

impl From<BoundSchemasDocument> for SchemaEvidence {
    fn from(form: BoundSchemasDocument) -> Self {
        Self { request: form.request.into(), receipt: form.receipt.into() }
    }
}

impl BundleDocument {
    pub(super) fn from_resolution(
        reporter: &VerdictContext<'_>,
        evidence: &ResolutionEvidence,
        chain: HeaderAndStateProof,
        blocks: &VerifiedBlocks,
        verdict: &Verdict,
    ) -> Result<Self, BundleError> {
        let targets = evidence.resolved_records().map(|found| CardLocations::from_records(&found.records));
        let cid = targets.as_ref().and_then(|targets| Some((targets.cid?, &targets.path)));
        let mirror = targets.as_ref().and_then(|targets| targets.mirror.as_ref());
        let mirror = mirror.map(|mirror| (mirror.cid, &mirror.path));
        Ok(Self {
            schema: SCHEMA.to_owned(),
            question: BundleRequestDocument::from_rules(
                &evidence.name,
                evidence.block,
                reporter.profile,
                reporter.policy,
            ),
            run: BundleRunDocument { at: evidence.now, world: reporter.world.to_owned(), chain_id: reporter.chain_id },
            header: chain.header.map(|header| Base64Bytes(header.0)),
            reading: evidence
                .reading
                .clone()
                .map(|reading| ReadingDocument::from_reading(reading, chain.state_proof))
                .into(),
            owner: evidence.owner.clone(),
            https: evidence.https.clone().into(),
            ipfs: ipfs_walk_document(&evidence.ipfs, cid, blocks),
            mirror: ipfs_walk_document(&evidence.mirror, mirror, blocks),
            liars: evidence.liars.clone(),
            schemas: evidence.schemas.clone().map(BoundSchemasDocument::from),
            verdict: verdict.clone(),
            signed: None,
        })
    }
}

impl BundleDocument {
    /// The state proofs behind the reading, if any.
    pub(super) fn state_proof(&self) -> Option<&StateProof> {
        match &self.reading {
            SerializableResult::Given(ReadingDocument {
                backing: StateProofOrAttestation::Proven(state_proof),
                ..
            }) => Some(state_proof),
            _ => None,
        }
    }

    /// The proof of the header, if a light client supplied it.
    pub(super) fn light_client_proof(&self) -> Option<&LightClientSyncTranscript> {
        self.state_proof()?.light_client.as_ref()
    }
}

impl BundleRequestDocument {
    pub(super) fn from_rules(
        name: &EnsName,
        block: BlockSelector,
        profile: &ConformanceProfile,
        policy: &JudgementPolicy,
    ) -> Self {
        let pinned = |id: &str, digest: clresolve_core::digest::Digest| PinnedDocument {
            id: id.to_owned(),
            digest: digest.to_string(),
        };
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
fn ipfs_walk_document(
    walked: &IpfsWalkOutcome,
    from: Option<(ContentId, &UnixFsPath)>,
    blocks: &VerifiedBlocks,
) -> IpfsWalkDocument {
    let by = match (walked, from) {
        (IpfsWalkOutcome::NotAsked, _) | (_, None) => return IpfsWalkDocument::NotAsked,
        (IpfsWalkOutcome::Unproven(causes), _) => return IpfsWalkDocument::Unproven(causes.clone()),
        (IpfsWalkOutcome::Proven { by, .. }, _) => *by,
        _ => ContentProofSource::Gateway,
    };
    let Some((root, path)) = from else { return IpfsWalkDocument::NotAsked };
    let mut walk = DagWalk::new(root, path, DagWalkBudget::for_agent_card());
    let mut order = Vec::new();
    // Terminates: each block is supplied once or the walk is over, and the budget bounds its visits.
    while let Some((cid, block)) = walk.wanted_block().and_then(|cid| Some((*cid, blocks.get(cid)?))) {
        order.push((cid, block));
        if walk.supply_block(block.clone()).is_err() {
            break;
        }
    }
    let car = write_car(&root, order.iter().map(|(cid, block)| (cid, *block)));
    IpfsWalkDocument::Blocks { by, car: Base64Bytes(car.into()) }
}

/// Bytes in base64 (RFC 4648, with padding). Only the canonical spelling is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Base64Bytes(pub(super) Bytes);

impl Serialize for Base64Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Base64Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map(|bytes| Self(bytes.into())).map_err(serde::de::Error::custom)
    }
}
