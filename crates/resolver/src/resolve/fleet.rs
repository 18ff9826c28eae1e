//! Resolutions shared between replicas: one daemon gathers the evidence, and each of the others judges it separately.
//!
//! Evidence from a replica is accepted if its MAC is valid, it has not expired, its grade of proof is at least the
//! demanded one, and it was gathered after the last eviction of the name here. IPFS blocks and state proofs in it are
//! verified again. For readings at other grades, the process relies on the replica, which has the same key, endpoints
//! and rules. A verdict that this process derives from such evidence counts as live.
//!
//! The evidence may predate a change on chain. A daemon that follows heads therefore compares it with the newest head,
//! if it can be read. Otherwise the verdict enters the cache unconfirmed: the gate and decisions use it only after this
//! process has confirmed it by its own reading.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clresolve_bundle::{BundleError, HeaderAndStateProof, ResolutionBundle};
use clresolve_core::state::TrustState;
use clresolve_ipfs::{ContentId, UnixFsPath, VerifiedBlocks};
use clresolve_state::StateProofRecorder;
use clresolve_verdict::build::EvidenceWithStepDurations;
use clresolve_verdict::evidence::continuity::HistoryOutcome;
use clresolve_verdict::evidence::{CardLocations, ContentProofSource, IpfsWalkOutcome, ResolutionEvidence};
use clresolve_verdict::trust::Resolution;
use jiff::Timestamp;
use moka::sync::Cache;
use tokio::time::{Instant, sleep};

use super::export::{ExportError, add_header_proof};
use super::question::VerdictRules;
use super::sources::ContentSources;
use super::walk::{ResolutionRequest, UncachedResolver, report_verdict};
use crate::cache::{FinishedResolution, ResolutionStartSnapshot, VerdictCache, VerdictCacheKey};
use crate::clock::Clock;
use crate::config::Config;
use crate::fetch::Egress;
use crate::shared::mac::MacKeyError;
use crate::shared::value::SharedEvidence;
use crate::shared::{LeaseHolder, ResolutionLease, SharedCacheClient};
use crate::telemetry::{self, SharedRead, SharedWrite};

/// Pause between two checks for the evidence of another replica: short compared with a resolution.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

/// Maximum duration of a lease. No resolution that is worth waiting for takes longer.
const MAX_LEASE: Duration = Duration::from_secs(15);

/// The replicas that share evidence with this one.
#[derive(Clone)]
pub(super) struct ReplicaFleet {
    tier: Arc<SharedCacheClient>,
    /// The blocks of walks that proved content. A later resolution reuses the content and shares its proof.
    walks: Cache<(ContentId, UnixFsPath), Arc<RecordedIpfsWalk>>,
}

/// A walk that can be included in later evidence.
struct RecordedIpfsWalk {
    by: ContentProofSource,
    /// Number of its blocks among those that the resolution stored.
    count: usize,
    blocks: VerifiedBlocks,
}

/// What a resolution stored for later evidence.
struct EvidenceRecorder {
    blocks: Arc<Mutex<VerifiedBlocks>>,
    proofs: Option<Arc<StateProofRecorder>>,
    began: Timestamp,
}

impl ReplicaFleet {
    /// Joins the replicas. See [`SharedCacheClient::join`].
    ///
    /// # Errors
    /// As [`SharedCacheClient::join`].
    pub(super) async fn join(
        config: &Config,
        egress: &Egress,
        clock: &Arc<dyn Clock>,
        cache: &Arc<VerdictCache>,
    ) -> Result<Option<Self>, MacKeyError> {
        let Some(tier) = SharedCacheClient::join(config, egress, clock, cache).await? else { return Ok(None) };
        let weigh = |_: &(ContentId, UnixFsPath), walk: &Arc<RecordedIpfsWalk>| {
            u32::try_from(walk.blocks.total_bytes()).unwrap_or(u32::MAX)
        };
        let walks = Cache::builder().max_capacity(config.cache.content_bytes).weigher(weigh).build();
        Ok(Some(Self { tier: Arc::new(tier), walks }))
    }

    /// Returns the verdict derived from a replica's evidence. The daemon runs its own resolution if it obtains the
    /// lease, if the server does not report who holds it, or if the lease holder provides no evidence.
    pub(super) async fn resolve_with_shared_evidence(
        &self,
        walker: &Arc<UncachedResolver>,
        request: ResolutionRequest,
    ) -> FinishedResolution {
        if !is_evidence_shareable(&request.key) {
            return walker.resolve(&request).await;
        }
        let given_up = Instant::now() + self.tier.wait_limit();
        // The loop ends at the time limit at the latest.
        loop {
            if let Some(resolution) = self.find_shared_verdict(walker, &request).await {
                return resolution.into();
            }
            match self.tier.request_lease(&request.key, walker.config.timeout.min(MAX_LEASE)).await {
                LeaseHolder::Ours(lease) => return self.resolve_with_lease(walker, request, lease).await,
                LeaseHolder::Unknown => break,
                LeaseHolder::Others if Instant::now() >= given_up && !clresolve_core::mutant!("leases-block") => {
                    self.tier.count_failed_wait();
                    break;
                }
                LeaseHolder::Others => sleep(LOOK_AGAIN).await,
            }
        }
        self.resolve_and_share(walker, request, None).await
    }

    /// Runs the resolution with the lease. The previous lease holder may have written evidence since the last check.
    async fn resolve_with_lease(
        &self,
        walker: &Arc<UncachedResolver>,
        request: ResolutionRequest,
        lease: ResolutionLease,
    ) -> FinishedResolution {
        let Some(resolution) = self.find_shared_verdict(walker, &request).await else {
            return self.resolve_and_share(walker, request, Some(lease)).await;
        };
        let tier = Arc::clone(&self.tier);
        self.tier.queue_work(async move { tier.release_lease(lease).await });
        resolution.into()
    }

    /// Runs a resolution in this process and shares its evidence.
    pub(super) async fn resolve_anew(
        &self,
        walker: &Arc<UncachedResolver>,
        request: ResolutionRequest,
    ) -> FinishedResolution {
        if !is_evidence_shareable(&request.key) {
            return walker.resolve(&request).await;
        }
        self.resolve_and_share(walker, request, None).await
    }

    #[cfg(feature = "unstable")]
    pub(super) async fn wait_for_shared_writes(&self) {
        self.tier.wait_for_queue().await;
    }

    /// The verdict derived from a replica's evidence, if there is usable evidence. The content is not kept for a later
    /// refresh, which must fetch it itself: only then can it show others the proof.
    async fn find_shared_verdict(
        &self,
        walker: &Arc<UncachedResolver>,
        request: &ResolutionRequest,
    ) -> Option<Resolution> {
        let began = request.cache.snapshot_resolution_start();
        let value = self.tier.find_usable_evidence(&request.key).await?;
        let taken = self.judge_shared_evidence(walker, request, value, began).await;
        telemetry::count_shared_read(if taken.is_some() { SharedRead::Taken } else { SharedRead::Unfit });
        taken
    }

    /// Judges shared evidence that was read after `began`. `None` if its grade of proof is too weak, or if it yields no
    /// decision, or another verdict than it claims. Verifying it again is CPU work, so it runs where evidence is
    /// judged.
    async fn judge_shared_evidence(
        &self,
        walker: &Arc<UncachedResolver>,
        request: &ResolutionRequest,
        value: SharedEvidence,
        began: ResolutionStartSnapshot,
    ) -> Option<Resolution> {
        let (fresh_until, newest) = (value.fresh_until, value.newest);
        let (prover, rules, key) = (Arc::clone(walker), request.rules.clone(), request.key.clone());
        let open = move || {
            let reporter = prover.verdict_context(&rules.profile, &rules.policy);
            let checkpoint = prover.config.beacon.checkpoint;
            let run = ResolutionBundle::from_bytes(&value.evidence)?
                .replay_reported_run(&reporter, checkpoint, &key.name, key.block)?;
            Ok::<_, BundleError>(EvidenceWithStepDurations { content_fetched_at: value.content_fetched_at, ..run })
        };
        let mut run = walker.pool.run(open).await.ok()?;
        let reading = run.evidence.reading.as_mut().ok()?;
        if reading.proof.grade < walker.config.chain.proof_grade_demand().ok()?.minimum_grade() {
            return None;
        }
        reading.newest = newest;
        walker.add_unbundled_evidence(&mut run.evidence).await;
        let (_, found) = walker.judge_and_remember(run, request, began).await;
        let verdict = found.resolution.verdict();
        let is_same = verdict.freshness.fresh_until.as_millisecond() == fresh_until.as_millisecond();
        if found.is_overtaken || !is_same || verdict.state == TrustState::Indeterminate {
            return None;
        }
        report_verdict(verdict);
        Some(found.resolution.marked_as_cached())
    }

    async fn resolve_and_share(
        &self,
        walker: &Arc<UncachedResolver>,
        request: ResolutionRequest,
        lease: Option<ResolutionLease>,
    ) -> FinishedResolution {
        let (keeper, keeping) = Self::recording_resolver(walker);
        let _running = telemetry::track_running_resolution();
        let began = request.cache.snapshot_resolution_start();
        let spans = walker.traces.begin_recorder(&*walker.clock);
        let run = keeper.gather_request_evidence(&request, &spans).await;
        let (run, found) = walker.judge_and_report(run, &request, began).await;
        spans.send_trace(found.resolution.verdict());
        let (fleet, walker, resolution) = (self.clone(), Arc::clone(walker), found.resolution.clone());
        self.tier.queue_work(async move {
            fleet.share_evidence(&walker, &request, run, &resolution, keeping).await;
            if let Some(lease) = lease {
                fleet.tier.release_lease(lease).await;
            }
        });
        found
    }

    /// A walker that stores the proofs of its evidence.
    fn recording_resolver(walker: &Arc<UncachedResolver>) -> (UncachedResolver, EvidenceRecorder) {
        let blocks = Arc::new(Mutex::new(VerifiedBlocks::default()));
        let (chain, proofs) = walker.chain.with_proof_recorder().unzip();
        let keeper = UncachedResolver {
            chain: chain.unwrap_or_else(|| Arc::clone(&walker.chain)),
            sources: ContentSources { kept: Some(Arc::clone(&blocks)), ..walker.sources.clone() },
            ..UncachedResolver::clone(walker)
        };
        (keeper, EvidenceRecorder { blocks, proofs, began: walker.now() })
    }

    /// Writes the evidence of a resolution for other replicas, if it reached a decision. The blocks of its walks are
    /// stored in any case: the next resolution reuses the content and must be able to show its proof.
    async fn share_evidence(
        &self,
        walker: &Arc<UncachedResolver>,
        request: &ResolutionRequest,
        mut run: EvidenceWithStepDurations,
        found: &Resolution,
        keeping: EvidenceRecorder,
    ) {
        let mut blocks = std::mem::take(&mut *keeping.blocks.lock().unwrap_or_else(PoisonError::into_inner));
        self.merge_recorded_walks(&mut run.evidence, &mut blocks);
        let fresh_until = found.verdict().freshness.fresh_until;
        let is_undecided = found.verdict().state == TrustState::Indeterminate;
        if run.evidence.reading.is_err() || (is_undecided && !clresolve_core::mutant!("failures-are-shared")) {
            return;
        }
        let (key, began, newest, content_fetched_at) =
            (&request.key, keeping.began, found.newest_block(), run.content_fetched_at);
        match self.pack_evidence(walker, &request.rules, run, blocks, keeping.proofs).await {
            Ok(evidence) => {
                let value = SharedEvidence { newest, began, fresh_until, content_fetched_at, evidence };
                self.tier.put_evidence(key, &value).await;
            }
            Err(error) => {
                tracing::debug!(name = key.name.as_str(), %error, "the evidence is not shared");
                telemetry::count_shared_write(SharedWrite::Unprovable);
            }
        }
    }

    /// Packs the evidence of a resolution as a bundle.
    async fn pack_evidence(
        &self,
        walker: &Arc<UncachedResolver>,
        rules: &VerdictRules,
        mut run: EvidenceWithStepDurations,
        blocks: VerifiedBlocks,
        proofs: Option<Arc<StateProofRecorder>>,
    ) -> Result<Vec<u8>, ExportError> {
        // Each replica reads and remembers these itself.
        (run.evidence.continuity, run.evidence.links) = (HistoryOutcome::NotAsked, None);
        run.evidence.misspelt_keys.clear();
        // The bundle format has no field for it, so it is sent separately.
        run.content_fetched_at = None;
        let mut chain =
            HeaderAndStateProof { header: None, state_proof: proofs.and_then(|proofs| proofs.take_proof()) };
        if let (Some(_), Ok(reading)) = (&chain.state_proof, &run.evidence.reading) {
            chain.header = walker.chain.fetch_header_rlp(&reading.block, &reading.endpoints).await;
            add_header_proof(walker, reading, &mut chain).await?;
        }
        let (walker, rules) = (Arc::clone(walker), rules.clone());
        let pool = Arc::clone(&walker.pool);
        let pack = move || {
            let reporter = walker.verdict_context(&rules.profile, &rules.policy);
            let packed = ResolutionBundle::pack_resolution(&reporter, &run, chain, &blocks)?;
            Ok::<_, BundleError>(packed.unsigned_bundle().to_json().to_string().into_bytes())
        };
        Ok(pool.run(pack).await?)
    }

    /// Adds the blocks of earlier walks to those of this resolution, and stores those of this resolution.
    fn merge_recorded_walks(&self, evidence: &mut ResolutionEvidence, blocks: &mut VerifiedBlocks) {
        let Some(targets) = evidence.resolved_records().map(|found| CardLocations::from_records(&found.records)) else {
            return;
        };
        let card = targets.cid.map(|cid| (cid, targets.path));
        let mirror = targets.mirror.map(|mirror| (mirror.cid, mirror.path));
        for (at, walked) in [(card, &mut evidence.ipfs), (mirror, &mut evidence.mirror)] {
            let (Some(at), IpfsWalkOutcome::Proven { by, blocks: count, .. }) = (at, walked) else { continue };
            if *by != ContentProofSource::EarlierRun {
                self.walks.insert(at, Arc::new(RecordedIpfsWalk { by: *by, count: *count, blocks: blocks.clone() }));
            } else if let Some(kept) = self.walks.get(&at) {
                (*by, *count) = (kept.by, kept.count);
                blocks.extend(kept.blocks.clone());
            }
        }
    }
}

/// Blocks chosen by number are never evicted, so their evidence is not shared.
const fn is_evidence_shareable(key: &VerdictCacheKey) -> bool {
    key.block.number().is_none()
}
