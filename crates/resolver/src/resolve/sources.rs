//! Queries the sources of a card and of its schemas within a time limit.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use clresolve_core::reading::ResolvedRecords;
use clresolve_core::reason::ResolutionStep;
use clresolve_core::uri;
use clresolve_ipfs::{ContentId, DagWalk, DagWalkBudget, DagWalkError, UnixFsPath, VerifiedBlocks, VerifiedFile};
use clresolve_verdict::card::AgentCard;
use clresolve_verdict::check::verbs::has_placeholder_cid;
use clresolve_verdict::evidence::{
    CanonicalAndMirrorSchema, CardLocations, ContentProofSource, HttpsOutcome, IpfsFetchError, IpfsMirrorLocation,
    IpfsWalkOutcome, ResolutionEvidence, SchemaEvidence, SchemaFetchError, SchemaFetchResult,
};
use clresolve_verdict::manifest::SchemaRole;
use clresolve_verdict::schema::served::ServedSchema;
use clresolve_verdict::verdict::StepStatus;
use futures_util::future::OptionFuture;
use tokio::time::Instant;

use super::content::{ContentFetcher, IpfsPathResult, LyingGateways};
use super::progress::NameStepEventSender;
use crate::cache::{IpfsContentCache, ReusableContent};
use crate::cpu_pool::CpuPool;
use crate::fetch::{FetchError, https::REGISTRY_LIMIT};

/// The sources, and what was proven of their content before.
#[derive(Clone)]
pub(super) struct ContentSources {
    pub(super) content: Arc<dyn ContentFetcher>,
    /// Content that an earlier resolution proved.
    pub(super) proven: IpfsContentCache,
    /// The blocks of the walks, in a resolution for a bundle.
    pub(super) kept: Option<Arc<Mutex<VerifiedBlocks>>>,
    /// Parses what the sources served.
    pub(super) pool: Arc<CpuPool>,
}

pub(super) struct ContentFetchResults {
    pub(super) https: HttpsOutcome,
    pub(super) ipfs: IpfsPathResult,
    pub(super) mirror: IpfsPathResult,
    pub(super) milliseconds: BTreeMap<ResolutionStep, u64>,
}

impl ContentFetchResults {
    /// The results that an earlier resolution fetched.
    pub(super) fn from_reusable_content(earlier: &ReusableContent) -> Self {
        let (ipfs, mirror) = earlier.ipfs_outcomes();
        Self {
            https: earlier.https_source().clone(),
            ipfs: ipfs.clone().into(),
            mirror: mirror.clone().into(),
            milliseconds: BTreeMap::new(),
        }
    }
}

/// The status that a host's response implies by itself.
const fn https_step_status(source: &HttpsOutcome) -> Option<StepStatus> {
    match source {
        HttpsOutcome::NotAsked => None,
        HttpsOutcome::Body { .. } => Some(StepStatus::Pass),
        HttpsOutcome::Unavailable(_) => Some(StepStatus::Unknown),
        HttpsOutcome::Forbidden(_) | HttpsOutcome::Oversize(_) => Some(StepStatus::Fail),
    }
}

/// The status that a walk implies by itself. Bytes from another source may still prove what the gateways did not
/// supply.
const fn ipfs_step_status(IpfsPathResult { walked, .. }: &IpfsPathResult) -> Option<StepStatus> {
    match walked {
        IpfsWalkOutcome::NotAsked | IpfsWalkOutcome::Unproven(_) => None,
        IpfsWalkOutcome::Proven { .. } => Some(StepStatus::Pass),
        IpfsWalkOutcome::Refuted(_) => Some(StepStatus::Fail),
    }
}

impl ContentSources {
    /// Queries the card's URL and the gateways, concurrently unless one needs the other's result.
    pub(super) async fn fetch_card_content(
        &self,
        found: &ResolvedRecords,
        all: bool,
        limit: Duration,
        progress: NameStepEventSender<'_>,
    ) -> ContentFetchResults {
        let targets = CardLocations::from_records(&found.records);
        let needs_https = targets.ipfs_walk_awaits_url(all);
        let CardLocations { url, cid, path, mirror: other } = targets;

        let started = Instant::now();
        // A stalling host leaves the gateways half of the time.
        let https_limit = if needs_https { limit / 2 } else { limit };
        let fetch = run_timed(async {
            match &url {
                Some(url) => {
                    progress
                        .run_step(
                            ResolutionStep::FetchHttps,
                            self.content.fetch_card(url, https_limit),
                            https_step_status,
                        )
                        .await
                }
                None => HttpsOutcome::NotAsked,
            }
        });
        let ((https, https_ms), (walked, walk_ms)) = if needs_https {
            let fetched = fetch.await;
            let limit = limit.saturating_sub(started.elapsed());
            let walk = self.walk_cid(cid.as_ref(), &path, fetched.0.bytes(), limit);
            let walked = run_timed(progress.run_step(ResolutionStep::FetchIpfs, walk, ipfs_step_status)).await;
            (fetched, walked)
        } else {
            let walk = self.walk_cid(cid.as_ref(), &path, None, limit);
            tokio::join!(fetch, run_timed(progress.run_step(ResolutionStep::FetchIpfs, walk, ipfs_step_status)))
        };
        let left = || limit.saturating_sub(started.elapsed());
        let later = Instant::now();
        let ipfs = self.walk_with_known_leaf(walked, cid.as_ref(), &path, &https).await;
        let mirror = match other {
            Some(mirror) => self.walk_cid(Some(&mirror.cid), &mirror.path, https.bytes(), left()).await,
            None => IpfsPathResult::not_asked(),
        };
        let ipfs_ms = walk_ms + elapsed_milliseconds(later);
        let milliseconds =
            BTreeMap::from([(ResolutionStep::FetchHttps, https_ms), (ResolutionStep::FetchIpfs, ipfs_ms)]);
        ContentFetchResults { https, ipfs, mirror, milliseconds }
    }

    async fn walk_cid(
        &self,
        cid: Option<&ContentId>,
        path: &UnixFsPath,
        known: Option<&Bytes>,
        limit: Duration,
    ) -> IpfsPathResult {
        let Some(cid) = cid else { return IpfsPathResult::not_asked() };
        if let Some(bytes) = known.filter(|bytes| path.is_empty() && cid.is_raw() && cid.is_cid_of_block(bytes)) {
            self.update_kept_blocks(|kept| kept.add_if_verified(cid, bytes.clone()));
            return IpfsWalkOutcome::Proven { bytes: bytes.clone(), by: ContentProofSource::BytesInHand, blocks: 1 }
                .into();
        }
        if let Some(bytes) = self.proven.get(cid, path).await {
            return IpfsWalkOutcome::Proven { bytes, by: ContentProofSource::EarlierRun, blocks: 0 }.into();
        }
        let known: Vec<Bytes> = known.cloned().into_iter().collect();
        let walk = self.content.walk_ipfs_path(cid, path, &known, DagWalkBudget::for_agent_card(), limit).await;
        self.update_kept_blocks(|kept| kept.extend(walk.blocks.clone()));
        if let Some(bytes) = walk.walked.bytes() {
            self.proven.insert(cid, path, bytes.clone()).await;
        }
        walk
    }

    /// Stores blocks, in a resolution for a bundle.
    fn update_kept_blocks(&self, keep: impl FnOnce(&mut VerifiedBlocks)) {
        if let Some(kept) = &self.kept {
            keep(&mut kept.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// If the gateways sent all but the last block, the bytes that the URL served may be that block. The blocks they
    /// sent are walked again, so that no gateway has to send them twice. This hashes megabytes, so it runs as a job.
    async fn walk_with_known_leaf(
        &self,
        walk: IpfsPathResult,
        cid: Option<&ContentId>,
        path: &UnixFsPath,
        https: &HttpsOutcome,
    ) -> IpfsPathResult {
        let IpfsWalkOutcome::Unproven(causes) = &walk.walked else { return walk };
        let Some(served) = https.bytes().cloned() else { return walk };
        let Some(cid) = cid.filter(|cid| !cid.is_raw()) else { return walk };
        let (again, at_hand) = (DagWalk::new(*cid, path, DagWalkBudget::for_agent_card()), walk.blocks);
        let (ended, blocks) = self.pool.run(move || walk_known_blocks(again, &at_hand, &served)).await;
        let walked = IpfsWalkOutcome::from_walk(ended, ContentProofSource::Gateway, causes.clone());
        if let Some(bytes) = walked.bytes() {
            self.update_kept_blocks(|kept| kept.extend(blocks.clone()));
            self.proven.insert(cid, path, bytes.clone()).await;
        }
        IpfsPathResult { walked, liars: walk.liars, blocks }
    }

    /// Fetches the schemas that the card binds, from their canonical locations and their mirrors.
    pub(super) async fn fetch_schemas(
        &self,
        evidence: &ResolutionEvidence,
        limit: Duration,
    ) -> Option<(SchemaEvidence, LyingGateways)> {
        let bytes = evidence.card_bytes()?.clone();
        let card = self.pool.run(move || AgentCard::parse(&bytes).ok()).await?;
        let bound = async |side: SchemaRole| {
            let mirror = card.schema_mirror_location(side).filter(|mirror| !has_placeholder_cid(mirror));
            let (canonical, mirror) = tokio::join!(
                OptionFuture::from(card.schema_location(side).map(|location| self.fetch_schema(location, limit))),
                OptionFuture::from(mirror.map(|location| self.fetch_schema(location, limit))),
            );
            let unnamed = || (Err(SchemaFetchError::NotNamed.into()), LyingGateways::new());
            let (canonical, mut liars) = canonical.unwrap_or_else(unnamed);
            let mirror = mirror.map(|(answer, others)| {
                liars.extend(others);
                answer
            });
            (CanonicalAndMirrorSchema { canonical, mirror }, liars)
        };
        let ((request, of_request), (receipt, of_receipt)) =
            tokio::join!(bound(SchemaRole::Request), bound(SchemaRole::Receipt));
        Some((SchemaEvidence { request, receipt }, [of_request, of_receipt].concat()))
    }

    /// Fetches a schema from its location (an `https` URL, or an `ipfs` URL, walked and proven). Also returns the
    /// gateways that sent wrong blocks.
    pub(super) async fn fetch_schema(&self, location: &str, limit: Duration) -> (SchemaFetchResult, LyingGateways) {
        let (answer, liars) = if uri::strip_scheme(location, "ipfs").is_some() {
            let (bytes, liars) = self.fetch_ipfs_file(location, DagWalkBudget::for_agent_card(), limit).await;
            (bytes.map_err(SchemaFetchError::Ipfs), liars)
        } else {
            (self.content.fetch_schema(location, limit).await.map_err(SchemaFetchError::Https), LyingGateways::new())
        };
        match answer {
            Ok(bytes) => (Ok(self.parse_schema(bytes).await), liars),
            Err(fault) => (Err(fault.into()), liars),
        }
    }

    /// The schemas that an earlier resolution fetched.
    pub(super) async fn reuse_schemas(&self, earlier: &SchemaEvidence<Bytes>) -> SchemaEvidence {
        let answer = async |answer: &SchemaFetchResult<Bytes>| match answer {
            Ok(bytes) => Ok(self.parse_schema(bytes.clone()).await),
            Err(fault) => Err(fault.clone()),
        };
        let bound = async |bound: &CanonicalAndMirrorSchema<Bytes>| CanonicalAndMirrorSchema {
            canonical: answer(&bound.canonical).await,
            mirror: OptionFuture::from(bound.mirror.as_ref().map(&answer)).await,
        };
        SchemaEvidence { request: bound(&earlier.request).await, receipt: bound(&earlier.receipt).await }
    }

    /// Each document is a separate job.
    async fn parse_schema(&self, bytes: Bytes) -> ServedSchema {
        self.pool.run(move || ServedSchema::from_bytes(bytes)).await
    }

    /// The bytes behind an `ipfs` URL, walked and proven, and the gateways that sent wrong blocks.
    async fn fetch_ipfs_file(
        &self,
        location: &str,
        budget: DagWalkBudget,
        limit: Duration,
    ) -> (Result<Bytes, IpfsFetchError>, LyingGateways) {
        let IpfsMirrorLocation { cid, path } = match IpfsMirrorLocation::parse(location) {
            Ok(mirror) => mirror,
            Err(error) => return (Err(error.into()), LyingGateways::new()),
        };
        let IpfsPathResult { walked, liars, .. } = self.content.walk_ipfs_path(&cid, &path, &[], budget, limit).await;
        let bytes = match walked {
            IpfsWalkOutcome::Proven { bytes, .. } => Ok(bytes),
            other => Err(IpfsFetchError::Walk(Box::new(other))),
        };
        (bytes, liars)
    }
}

impl ContentSources {
    /// Fetches the document at a URI that a contract names (ERC-8004): a `data` URI, an `ipfs` URL, or a URL that the
    /// egress guard checks.
    ///
    /// # Errors
    /// A description of the cause.
    pub(super) async fn fetch_contract_uri(&self, uri: &str, limit: Duration) -> Result<Bytes, String> {
        if let Some(data) = uri.strip_prefix("data:application/json;base64,") {
            return STANDARD.decode(data).map(Bytes::from).map_err(|_| "its data URI is not base64".to_owned());
        }
        if uri::strip_scheme(uri, "ipfs").is_some() {
            return self
                .fetch_ipfs_file(uri, DagWalkBudget::for_agent_card(), limit)
                .await
                .0
                .map_err(|fault| fault.to_string());
        }
        self.content.fetch_document(uri, limit).await.map(|body| body.bytes).map_err(|error| error.to_string())
    }

    /// Fetches a registry's manifest from its location: an `ipfs` URL, walked and proven, or a URL that the egress
    /// guard checks.
    pub(super) async fn fetch_registry_manifest(
        &self,
        location: &str,
        limit: Duration,
    ) -> Result<Bytes, RegistryDocumentFetchError> {
        if uri::strip_scheme(location, "ipfs").is_some() {
            let budget = DagWalkBudget { total_bytes: REGISTRY_LIMIT, ..DagWalkBudget::for_agent_card() };
            return Ok(self.fetch_ipfs_file(location, budget, limit).await.0?);
        }
        Ok(self.content.fetch_registry_manifest(location, limit).await?)
    }
}

/// The result of a walk over the blocks at hand, with those that it proved. A raw block that is missing may be
/// `served`.
fn walk_known_blocks(
    mut walk: DagWalk,
    at_hand: &VerifiedBlocks,
    served: &Bytes,
) -> (Result<VerifiedFile, DagWalkError>, VerifiedBlocks) {
    // Ends when the blocks run out: a walk wants each of them once.
    while let Some(wanted) = walk.wanted_block().copied() {
        let leaf =
            || Some(served).filter(|_| wanted.is_raw() && !clresolve_core::mutant!("leaf-of-the-host-is-ignored"));
        let Some(block) = at_hand.get(&wanted).or_else(leaf) else { break };
        if walk.supply_block(block.clone()).is_err() {
            break;
        }
    }
    let blocks = walk.take_blocks();
    (walk.finish(), blocks)
}

/// Why the location of a registry yields no document.
#[derive(Debug, thiserror::Error)]
pub enum RegistryDocumentFetchError {
    /// The host of an `https` URL returned none.
    #[error(transparent)]
    Https(#[from] FetchError),
    /// The walk from an `ipfs` URL returned none.
    #[error(transparent)]
    Ipfs(#[from] IpfsFetchError),
}

impl RegistryDocumentFetchError {
    /// Whether no source could be reached or none responded, which implies nothing about the registry.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::Https(fault) => matches!(fault, FetchError::Unavailable(_)),
            Self::Ipfs(IpfsFetchError::Url(_)) => false,
            Self::Ipfs(IpfsFetchError::Walk(walked)) => !matches!(**walked, IpfsWalkOutcome::Refuted(_)),
        }
    }
}

/// The result of `work`, and its duration in milliseconds.
pub(super) async fn run_timed<T>(work: impl Future<Output = T>) -> (T, u64) {
    let started = Instant::now();
    (work.await, elapsed_milliseconds(started))
}

pub(super) fn elapsed_milliseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(all(test, feature = "sandbox"))]
mod tests {
    use clresolve_core::recordable::LiveOrRecordedCause;
    use clresolve_ipfs::build::{UnixFsLayout, build_directory_tree};

    use super::*;
    use crate::resolve::Resolver;
    use crate::sandbox::Sandbox;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_schema_that_no_gateway_has_is_not_served() {
        let sandbox = Sandbox::start().await.expect("it starts");
        let config = sandbox.config();
        let resolver = Resolver::new(&config).await.expect("its configuration is good");
        let location = format!("ipfs://{}", ContentId::from_raw_block(b"what nobody has"));
        let (answer, _) = resolver.0.walker.sources.fetch_schema(&location, config.timeout).await;
        let Err(LiveOrRecordedCause::Met(SchemaFetchError::Ipfs(IpfsFetchError::Walk(walked)))) = &answer else {
            panic!("{answer:?}")
        };
        assert!(matches!(**walked, IpfsWalkOutcome::Unproven(_)), "{walked}");
    }

    /// A publisher's directories may have megabytes, and the threads that answer requests must not wait for their
    /// hashes.
    #[tokio::test(flavor = "multi_thread")]
    async fn blocks_are_walked_again_apart_from_those_who_answer() {
        let sandbox = Sandbox::start().await.expect("it starts");
        let resolver = Resolver::new(&sandbox.config()).await.expect("its configuration is good");
        let card = Bytes::from_static(b"{}");
        let (root, blocks) =
            build_directory_tree(&BTreeMap::from([("card.json".to_owned(), card.clone())]), UnixFsLayout::default());
        let mut sent = VerifiedBlocks::default();
        sent.add_if_verified(&root, blocks[&root].clone());
        let walk = IpfsPathResult { blocks: sent, ..IpfsWalkOutcome::Unproven(Vec::new()).into() };
        let https = HttpsOutcome::Body { bytes: card.clone(), url: "https://a.example/card.json".to_owned() };
        let path = UnixFsPath::parse_literal("card.json").expect("a path");

        let sources = &resolver.0.walker.sources;
        let before = sources.pool.started_count();
        let proven = sources.walk_with_known_leaf(walk, Some(&root), &path, &https).await;
        assert_eq!(proven.walked, IpfsWalkOutcome::Proven { bytes: card, by: ContentProofSource::Gateway, blocks: 2 });
        assert_eq!(sources.pool.started_count() - before, 1);
    }
}
