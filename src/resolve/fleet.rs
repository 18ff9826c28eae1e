//! Runs of a fleet: one daemon gathers the evidence, and each of the others judges it by itself.
//!
//! What comes from the fleet is evidence under its MAC, unexpired, from no block before the first that this process read,
//! and gathered after the last eviction of the name here, in knowledge of every hint at a change. Blocks of IPFS and
//! proofs of state in it are proven again; its readings at other grades are the word of a daemon that has the same key,
//! endpoints and rules. Under all of these the verdict that this process makes of it is a live one.
//!
//! What a process follows are the names that it has cached, and it remembers the hints at others for a few blocks. So of
//! evidence that is older than this it takes the content alone, and reads the records itself.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use moka::sync::Cache;
use tokio::time::{Instant, sleep};

use super::question::RuleSet;
use super::sources::ContentSources;
use super::walk::{RunRequest, Walker, tell};
use crate::build::Run;
use crate::bundle::{Bundle, BundleError, OfChain};
use crate::cache::{Began, CacheKey, Finished, ProvenContent, VerdictCache};
use crate::chain::Recording;
use crate::cid::{ContentId, ContentPath, WalkedBlocks};
use crate::clock::Clock;
use crate::config::Config;
use crate::evidence::continuity::Continuity;
use crate::evidence::{Evidence, ProvenBy, Targets, Walked};
use crate::fetch::Egress;
use crate::name::EnsName;
use crate::shared::mac::MacKeyError;
use crate::shared::value::Value;
use crate::shared::{Lease, Leased, Seen, Tier};
use crate::telemetry::{self, SharedRead, SharedWrite};
use crate::verdict::{Resolution, State};

/// Pause between two looks for the evidence of another daemon: short beside a run.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

/// Longest lease: no run that is worth waiting for takes longer.
const MAX_LEASE: Duration = Duration::from_secs(15);

/// The daemons that share evidence with this one.
#[derive(Clone)]
pub(super) struct Fleet {
    tier: Arc<Tier>,
    /// The blocks of walks that proved content: a later run uses the content, and shares its proof.
    walks: Cache<(ContentId, ContentPath), Arc<KeptWalk>>,
}

/// A walk, as it can be shown again.
struct KeptWalk {
    by: ProvenBy,
    /// How many blocks it took, of those that the run kept.
    count: usize,
    blocks: WalkedBlocks,
}

/// What a run kept to be shown again.
struct Keeping {
    blocks: Arc<Mutex<WalkedBlocks>>,
    proofs: Option<Arc<Recording>>,
    began: Timestamp,
}

/// What shared evidence gives to one who asks.
enum Taken {
    /// The verdict on it.
    Verdict(Box<Resolution>),
    /// What it proves of the content. The records may have changed since, and nobody would have told this process.
    Content(Arc<ProvenContent>),
    /// Nothing that counts here.
    Nothing,
}

impl Fleet {
    /// As [`Tier::join`].
    ///
    /// # Errors
    /// As [`Tier::join`].
    pub(super) async fn join(
        config: &Config,
        egress: &Egress,
        clock: &Arc<dyn Clock>,
        cache: &Arc<VerdictCache>,
    ) -> Result<Option<Self>, MacKeyError> {
        let Some(tier) = Tier::join(config, egress, clock, cache).await? else { return Ok(None) };
        let weigh =
            |_: &(ContentId, ContentPath), walk: &Arc<KeptWalk>| u32::try_from(walk.blocks.bytes()).unwrap_or(u32::MAX);
        let walks = Cache::builder().max_capacity(config.cache.content_bytes).weigher(weigh).build();
        Ok(Some(Self { tier: Arc::new(tier), walks }))
    }

    /// What the fleet's evidence leads to, else what a run finds, for which this daemon has the lease, or the server did
    /// not say who has it, or nothing came from the one who had it.
    pub(super) async fn run(&self, walker: &Arc<Walker>, request: RunRequest) -> Finished {
        if !is_shared(&request.key) {
            return walker.run(&request).await;
        }
        let given_up = Instant::now() + self.tier.wait();
        // Ends with the time, at the latest.
        loop {
            match self.taken(walker, &request).await {
                Taken::Verdict(resolution) => return (*resolution).into(),
                Taken::Content(content) => return walker.run(&request.with_content(content)).await,
                Taken::Nothing => {}
            }
            match self.tier.lease(&request.key, walker.config.timeout.min(MAX_LEASE)).await {
                Leased::Ours(lease) => return self.run_leased(walker, request, lease).await,
                Leased::Unknown => break,
                Leased::Others if Instant::now() >= given_up && !clresolve_core::mutant!("leases-block") => {
                    self.tier.waited_in_vain();
                    break;
                }
                Leased::Others => sleep(LOOK_AGAIN).await,
            }
        }
        self.run_own(walker, request, None).await
    }

    /// As [`Fleet::run`], with the lease. Whoever had it until now may have written since this daemon looked.
    async fn run_leased(&self, walker: &Arc<Walker>, request: RunRequest, lease: Lease) -> Finished {
        let found = match self.taken(walker, &request).await {
            Taken::Verdict(resolution) => (*resolution).into(),
            Taken::Content(content) => walker.run(&request.with_content(content)).await,
            Taken::Nothing => return self.run_own(walker, request, Some(lease)).await,
        };
        let tier = Arc::clone(&self.tier);
        self.tier.later(async move { tier.release(lease).await });
        found
    }

    /// What a run of this process finds. Its evidence is shared.
    pub(super) async fn run_anew(&self, walker: &Arc<Walker>, request: RunRequest) -> Finished {
        if !is_shared(&request.key) {
            return walker.run(&request).await;
        }
        self.run_own(walker, request, None).await
    }

    /// As [`Tier::tell_evicted`].
    pub(super) fn tell_evicted(&self, evicted: impl IntoIterator<Item = (EnsName, Vec<CacheKey>)>) {
        self.tier.tell_evicted(evicted);
    }

    /// As [`Tier::settled`].
    #[cfg(feature = "unstable")]
    pub(super) async fn settled(&self) {
        self.tier.settled().await;
    }

    /// What the fleet's evidence gives here. A refresh of its verdict fetches the content by itself: only so can it show to
    /// others how it is proven.
    async fn taken(&self, walker: &Arc<Walker>, request: &RunRequest) -> Taken {
        let began = request.cache.begin();
        let Some(value) = self.tier.take(&request.key).await else { return Taken::Nothing };
        let taken = self.judged(walker, request, value, began).await.unwrap_or(Taken::Nothing);
        telemetry::shared_read(match &taken {
            Taken::Verdict(_) => SharedRead::Taken,
            Taken::Content(_) => SharedRead::Content,
            Taken::Nothing => SharedRead::Unfit,
        });
        taken
    }

    /// What shared evidence leads to here, for a run that began then. Proving the evidence again takes the processor, so it
    /// is done where evidence is judged.
    async fn judged(&self, walker: &Arc<Walker>, request: &RunRequest, value: Value, began: Began) -> Option<Taken> {
        let (block, fresh_until, newest) = (value.block, value.fresh_until, value.newest);
        let (prover, rules, key) = (Arc::clone(walker), request.rules.clone(), request.key.clone());
        let open = move || {
            let reporter = prover.reporter(&rules.profile, &rules.policy);
            let run = Bundle::read(&value.evidence)?.run(&reporter, &key.name, key.block)?;
            Ok::<_, BundleError>(Run { content_fetched_at: value.content_fetched_at, ..run })
        };
        let mut run = walker.pool.run(open).await.ok()?;
        let reading = run.evidence.reading.as_mut().ok()?;
        reading.newest = newest;
        if (reading.block.number, reading.block.hash) != block {
            return None;
        }
        let resolver = run.evidence.found().map(|found| found.resolver);
        let is_recent = || request.cache.remembers_since(newest, resolver, self.tier.now());
        if !is_recent() {
            let found;
            (run, found) = walker.judged(run, &request.rules, request.before.failures).await;
            // What denies may wait for its time.
            if found.verdict().state == State::Trusted {
                return ProvenContent::of(&run).map(|content| Taken::Content(Arc::new(content)));
            }
        }
        walker.complete(&mut run.evidence).await;
        // What does not know of a hint ends as a failure here.
        let (_, Finished { resolution, content, .. }) = walker.settle(run, request, began).await;
        let verdict = resolution.verdict();
        let is_same = verdict.freshness.fresh_until.as_millisecond() == fresh_until.as_millisecond();
        if !is_same || verdict.state == State::Indeterminate {
            return None;
        }
        // Blocks may have come meanwhile.
        if verdict.state == State::Trusted && !is_recent() {
            return content.map(Taken::Content);
        }
        tell(verdict);
        Some(Taken::Verdict(Box::new(resolution.from_cache())))
    }

    async fn run_own(&self, walker: &Arc<Walker>, request: RunRequest, lease: Option<Lease>) -> Finished {
        let (keeper, keeping) = self.keeper(walker);
        let _running = telemetry::run_begins();
        let began = request.cache.begin();
        let spans = walker.traces.begin(&*walker.clock);
        let run = keeper.gather_for(&request, &spans).await;
        let (run, found) = walker.conclude(run, &request, began).await;
        spans.end(found.resolution.verdict());
        if let Some((block, _)) = block_of(&run.evidence) {
            self.tier.saw(&request.key.world, Seen { block, newest: found.resolution.newest() });
        }
        let (fleet, walker, resolution) = (self.clone(), Arc::clone(walker), found.resolution.clone());
        self.tier.later(async move {
            fleet.share(&walker, &request, run, &resolution, keeping).await;
            if let Some(lease) = lease {
                fleet.tier.release(lease).await;
            }
        });
        found
    }

    /// A walker that keeps what proves its evidence.
    fn keeper(&self, walker: &Arc<Walker>) -> (Walker, Keeping) {
        let blocks = Arc::new(Mutex::new(WalkedBlocks::default()));
        let (chain, proofs) = walker.chain.recording().unzip();
        let keeper = Walker {
            chain: chain.unwrap_or_else(|| Arc::clone(&walker.chain)),
            sources: ContentSources { kept: Some(Arc::clone(&blocks)), ..walker.sources.clone() },
            ..Walker::clone(walker)
        };
        (keeper, Keeping { blocks, proofs, began: self.tier.now() })
    }

    /// Writes the evidence of a run for the others, if it decided something. What it walked is kept in any case: the next
    /// run uses the content, and is to show how it was proven.
    async fn share(
        &self,
        walker: &Arc<Walker>,
        request: &RunRequest,
        mut run: Run,
        found: &Resolution,
        keeping: Keeping,
    ) {
        let mut blocks = std::mem::take(&mut *keeping.blocks.lock().unwrap_or_else(PoisonError::into_inner));
        self.with_kept_walks(&mut run.evidence, &mut blocks);
        let fresh_until = found.verdict().freshness.fresh_until;
        let Some(block) = block_of(&run.evidence) else { return };
        if found.verdict().state == State::Indeterminate && !clresolve_core::mutant!("failures-are-shared") {
            return;
        }
        let (key, began, newest, content_fetched_at) =
            (&request.key, keeping.began, found.newest(), run.content_fetched_at);
        match self.packed(walker, &request.rules, run, blocks, keeping.proofs).await {
            Ok(evidence) => {
                let value = Value { block, newest, began, fresh_until, content_fetched_at, evidence };
                self.tier.put(key, &value).await;
            }
            Err(error) => {
                tracing::debug!(name = key.name.as_str(), %error, "the evidence is not shared");
                telemetry::shared_write(SharedWrite::Unprovable);
            }
        }
    }

    /// The evidence of a run as a bundle.
    async fn packed(
        &self,
        walker: &Arc<Walker>,
        rules: &RuleSet,
        mut run: Run,
        blocks: WalkedBlocks,
        proofs: Option<Arc<Recording>>,
    ) -> Result<Vec<u8>, BundleError> {
        // What each daemon reads and remembers by itself.
        (run.evidence.continuity, run.evidence.links) = (Continuity::NotAsked, None);
        run.evidence.misspelt_keys.clear();
        // A bundle has no room for it: it goes beside it.
        run.content_fetched_at = None;
        let mut chain = OfChain { header: None, state_proof: proofs.and_then(|proofs| proofs.take()) };
        if let (Some(_), Ok(reading)) = (&chain.state_proof, &run.evidence.reading) {
            chain.header = walker.chain.header(&reading.block, &reading.endpoints).await;
        }
        let (walker, rules) = (Arc::clone(walker), rules.clone());
        let pool = Arc::clone(&walker.pool);
        let pack = move || {
            let reporter = walker.reporter(&rules.profile, &rules.policy);
            let packed = Bundle::pack(&reporter, &run, chain, &blocks)?;
            Ok(packed.bundle().to_json().to_string().into_bytes())
        };
        pool.run(pack).await
    }

    /// Puts the blocks of earlier walks beside those of this run, and keeps those of this run.
    fn with_kept_walks(&self, evidence: &mut Evidence, blocks: &mut WalkedBlocks) {
        let Some(targets) = evidence.found().map(|found| Targets::of(&found.records)) else { return };
        let card = targets.cid.map(|cid| (cid, targets.path));
        let mirror = targets.mirror.map(|mirror| (mirror.cid, mirror.path));
        for (at, walked) in [(card, &mut evidence.ipfs), (mirror, &mut evidence.mirror)] {
            let (Some(at), Walked::Proven { by, blocks: count, .. }) = (at, walked) else { continue };
            if *by != ProvenBy::EarlierRun {
                self.walks.insert(at, Arc::new(KeptWalk { by: *by, count: *count, blocks: blocks.clone() }));
            } else if let Some(kept) = self.walks.get(&at) {
                (*by, *count) = (kept.by, kept.count);
                blocks.extend(kept.blocks.clone());
            }
        }
    }
}

/// Blocks of the past are read by number and never evicted: they are not shared.
const fn is_shared(key: &CacheKey) -> bool {
    key.block.number().is_none()
}

fn block_of(evidence: &Evidence) -> Option<(u64, alloy_primitives::B256)> {
    evidence.reading.as_ref().ok().map(|reading| (reading.block.number, reading.block.hash))
}
