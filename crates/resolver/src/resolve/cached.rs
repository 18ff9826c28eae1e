//! The cache in front of the resolver. A fresh verdict is returned at once. Otherwise all callers share one resolution.

use std::num::NonZeroUsize;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clresolve_core::digest::Digest;
use clresolve_core::name::{EnsName, EnsNameError};
use clresolve_core::state::TrustState;
use clresolve_verdict::build;
use clresolve_verdict::check::JudgementPolicy;
use clresolve_verdict::profile::ConformanceProfile;
use clresolve_verdict::trust::{Resolution, StaleVerdict};
use clresolve_verdict::verdict::canonical_digest;
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::{StreamExt as _, stream};
use jiff::SignedDuration;
use tokio::time::{Instant, timeout};

use super::fleet::ReplicaFleet;
use super::question::VerdictRules;
use super::readings::{HeadConfirmationOutcome, InFlightReadings};
use super::walk::{ResolutionRequest, UncachedResolver};
use crate::cache::{
    EarlierResults, FinishedResolution, HeadConfirmationLimits, VerdictCache, VerdictCacheKey, VerdictCacheKeyStatus,
};
use crate::config::Config;
use crate::telemetry::{self, NotCachedReason};

/// Maximum number of resolutions for one answer, if the name is evicted during each. The last resolution denies.
const RUNS: usize = 3;

/// Maximum time to compare a late result with the newest head. After it, the result is reported unconfirmed.
const MAX_COMPARISON: Duration = Duration::from_secs(2);

/// An [`UncachedResolver`] and the verdicts of its resolutions.
#[derive(Clone)]
pub(super) struct CachingResolver {
    pub(super) walker: Arc<UncachedResolver>,
    pub(super) cache: Arc<VerdictCache>,
    /// The replicas that share evidence, if configured.
    fleet: Option<ReplicaFleet>,
    pub(super) readings: Arc<InFlightReadings>,
}

/// Which evidence a resolution may reuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EvidenceReuseScope {
    Nothing,
    /// Content that an earlier resolution of this process proved.
    Content,
    Fleet,
}

impl CachingResolver {
    /// Creates an empty cache in front of `walker`.
    pub(super) fn new(walker: Arc<UncachedResolver>) -> Self {
        let cache = Arc::new(VerdictCache::new(&walker.config.cache));
        Self { walker, cache, fleet: None, readings: Arc::default() }
    }

    /// Puts this cache in front of `walker`, for a replica that shares evidence.
    pub(super) fn with_fleet(
        walker: Arc<UncachedResolver>,
        cache: Arc<VerdictCache>,
        fleet: Option<ReplicaFleet>,
    ) -> Self {
        Self { walker, cache, fleet, readings: Arc::default() }
    }

    /// Puts the same cache in front of another walker. A cached verdict is reused if its key is the same: sources,
    /// rules, depth and block.
    pub(super) fn with_uncached_resolver(&self, walker: Arc<UncachedResolver>) -> Self {
        Self { walker, readings: Arc::default(), ..self.clone() }
    }

    /// Returns the fresh verdict, or that of a new resolution.
    pub(super) async fn resolve(&self, input: &str, rules: &VerdictRules) -> Resolution {
        let now = self.walker.now();
        let name = match EnsName::parse(input) {
            Ok(name) => name,
            Err(error) => return self.resolve_invalid_name(input, &error, rules),
        };
        let key = self.cache_key(name, rules);
        if let Some(fresh) = self.cache.fresh_resolution(&key, now, self.head_confirmation_limits()).await {
            return fresh.with_input_name(input);
        }
        let run = self.resolution_runner(key.clone(), rules.clone(), EvidenceReuseScope::Fleet);
        // Boxed, so that the future of a hit is small.
        Box::pin(self.cache.get_or_resolve(key, now, self.head_confirmation_limits(), run)).await.with_input_name(input)
    }

    /// Starts a resolution. Its verdict replaces the cached one.
    pub(super) async fn resolve_anew(&self, input: &str, rules: &VerdictRules) -> Resolution {
        let name = match EnsName::parse(input) {
            Ok(name) => name,
            Err(error) => return self.resolve_invalid_name(input, &error, rules),
        };
        let key = self.cache_key(name, rules);
        let run = self.resolution_runner(key.clone(), rules.clone(), EvidenceReuseScope::Nothing);
        self.cache.resolve_anew(key, self.head_confirmation_limits(), run).await.with_input_name(input)
    }

    /// Resolves a name that may have changed. Content that an earlier resolution proved is reused if the records still
    /// name it.
    pub(super) async fn resolve_changed_name(&self, name: &EnsName, rules: &VerdictRules) -> Resolution {
        let key = self.cache_key(name.clone(), rules);
        let run = self.resolution_runner(key.clone(), rules.clone(), EvidenceReuseScope::Content);
        self.cache.resolve_anew(key, self.head_confirmation_limits(), run).await
    }

    /// The limits within which a head confirms a verdict.
    pub(super) fn head_confirmation_limits(&self) -> HeadConfirmationLimits {
        let config = &self.walker.config;
        HeadConfirmationLimits {
            max_unconfirmed: config.cache.max_unconfirmed,
            max_head_age: config.chain.effective_max_head_age(),
        }
    }

    /// Invalidates all verdicts on these names up to now.
    pub(super) fn evict_names<'n>(&self, names: impl IntoIterator<Item = &'n EnsName>) {
        let now = self.walker.now();
        names.into_iter().for_each(|name| self.cache.evict_name(name, now));
    }

    /// Waits until all evidence that is shared so far has been written.
    #[cfg(feature = "unstable")]
    pub(super) async fn wait_for_shared_writes(&self) {
        if let Some(fleet) = &self.fleet {
            fleet.wait_for_shared_writes().await;
        }
    }

    /// The cache status of a question. Starts no resolution.
    pub(super) async fn cache_status(&self, input: &str, rules: &VerdictRules) -> VerdictCacheKeyStatus {
        let name = match EnsName::parse(input) {
            Ok(name) => name,
            Err(error) => return VerdictCacheKeyStatus::Fresh(self.resolve_invalid_name(input, &error, rules)),
        };
        match self
            .cache
            .key_status(&self.cache_key(name, rules), self.walker.now(), self.head_confirmation_limits())
            .await
        {
            VerdictCacheKeyStatus::Fresh(resolution) => VerdictCacheKeyStatus::Fresh(resolution.with_input_name(input)),
            other => other,
        }
    }

    /// The time since the latest resolution for a question. Zero for an invalid name, which is judged each time.
    pub(super) async fn time_since_resolution(&self, input: &str, rules: &VerdictRules) -> Duration {
        match EnsName::parse(input) {
            Ok(name) => self.cache.time_since_resolution(&self.cache_key(name, rules), self.walker.now()).await,
            Err(_) => Duration::ZERO,
        }
    }

    fn resolve_invalid_name(&self, input: &str, error: &EnsNameError, rules: &VerdictRules) -> Resolution {
        telemetry::count_uncached_verdict(input, NotCachedReason::InvalidName);
        build::invalid_name_resolution(input, error, &rules.profile, &rules.policy, self.walker.now())
    }

    pub(super) fn cache_key(&self, name: EnsName, rules: &VerdictRules) -> VerdictCacheKey {
        VerdictCacheKey {
            name,
            block: self.walker.config.chain.block,
            depth: rules.policy.depth,
            rules: ConformanceProfile::digest(&rules.profile),
            world: Arc::clone(&self.walker.world),
        }
    }

    /// The resolution that the cache starts for a question. Its verdict shows the normal form of the name, which most
    /// callers type.
    fn resolution_runner(
        &self,
        key: VerdictCacheKey,
        rules: VerdictRules,
        using: EvidenceReuseScope,
    ) -> impl FnOnce(EarlierResults) -> BoxFuture<'static, FinishedResolution> + Send + 'static {
        let this = self.clone();
        move |before| {
            let content = before.content.filter(|_| using == EvidenceReuseScope::Content);
            let cache = Arc::clone(&this.cache);
            let request = ResolutionRequest { key, rules, before: EarlierResults { content, ..before }, cache };
            async move {
                let (began, mut found) = (Instant::now(), this.run_resolution(&request, using).await);
                for _ in 1..RUNS {
                    if !found.is_overtaken || began.elapsed() > this.walker.config.timeout {
                        break;
                    }
                    found = this.run_resolution(&request, using).await;
                }
                match timeout(MAX_COMPARISON, this.compare_with_head(&request, &found)).await {
                    Ok(HeadConfirmationOutcome::Changed) => FinishedResolution {
                        is_after_change: true,
                        ..this.run_resolution(&request, EvidenceReuseScope::Content).await
                    },
                    Ok(HeadConfirmationOutcome::Confirmed(head)) => {
                        FinishedResolution { confirmed_at: Some(head), ..found }
                    }
                    Ok(HeadConfirmationOutcome::Not) | Err(_) => found,
                }
            }
            .boxed()
        }
    }

    async fn run_resolution(&self, request: &ResolutionRequest, using: EvidenceReuseScope) -> FinishedResolution {
        match &self.fleet {
            Some(fleet) if using == EvidenceReuseScope::Fleet => {
                fleet.resolve_with_shared_evidence(&self.walker, request.clone()).await
            }
            Some(fleet) => fleet.resolve_anew(&self.walker, request.clone()).await,
            None => self.walker.resolve(request).await,
        }
    }

    /// The trusted verdict that has just expired, if the latest resolution for the question failed.
    pub(super) async fn stale_verdict(&self, input: &str, rules: &VerdictRules) -> Option<StaleVerdict> {
        let key = self.cache_key(EnsName::parse(input).ok()?, rules);
        self.cache.stale_verdict(&key, input, self.walker.now()).await
    }

    /// Refreshes the entries that are due, with the configured concurrency, as long as `may_start` returns true for an
    /// entry's remaining lifetime.
    pub(super) async fn refresh_expiring_verdicts(
        &self,
        policy: &JudgementPolicy,
        may_start: impl Fn(SignedDuration) -> bool,
    ) {
        let due = self.cache.keys_due_for_refresh(self.walker.now()).into_iter();
        let due = due.take_while(|(until, _)| may_start(until.duration_since(self.walker.now()))).map(|(_, key)| key);
        self.run_on_refresh_budget(due, |key| self.refresh_key(key, policy)).await;
    }

    async fn refresh_key(&self, key: Arc<VerdictCacheKey>, policy: &JudgementPolicy) {
        let Some(rules) = self.rules_for_key(&key, policy) else { return };
        let run = self.resolution_runner(VerdictCacheKey::clone(&key), rules, EvidenceReuseScope::Content);
        self.cache.refresh_key(&key, self.walker.now(), self.head_confirmation_limits(), run).await;
    }

    /// Resolves these names on the refresh budget. Calls `decided` for each name that then has a verdict other than a
    /// failure.
    pub(super) async fn warm_cache(
        &self,
        names: impl Iterator<Item = EnsName>,
        rules: &VerdictRules,
        decided: impl Fn(&EnsName),
    ) {
        let decided = &decided;
        let ask = |name: EnsName| async move {
            // A panic caused by one name must not end the daemon, and again after each restart.
            let answer = AssertUnwindSafe(self.resolve(name.as_str(), rules)).catch_unwind().await;
            if answer.is_ok_and(|answer| answer.verdict().state != TrustState::Indeterminate) {
                decided(&name);
            }
        };
        self.run_on_refresh_budget(names, ask).await;
    }

    /// The names with trusted verdicts that were requested, the most requested first.
    pub(super) fn most_requested_names(&self, most: usize) -> Vec<EnsName> {
        self.cache.most_requested_names(most)
    }

    /// The rules of a key. `None` if the key belongs to an earlier configuration.
    fn rules_for_key(&self, key: &VerdictCacheKey, policy: &JudgementPolicy) -> Option<VerdictRules> {
        let UncachedResolver { world, config, profiles, .. } = &*self.walker;
        if key.world != *world || key.block != config.chain.block {
            return None;
        }
        let profile = profiles.iter().find(|profile| ConformanceProfile::digest(profile) == key.rules)?;
        Some(VerdictRules {
            profile: Arc::clone(profile),
            policy: JudgementPolicy { depth: key.depth, ..policy.clone() },
        })
    }

    /// Runs `work` for all items on the refresh budget.
    async fn run_on_refresh_budget<T, Work: Future<Output = ()>>(
        &self,
        items: impl Iterator<Item = T>,
        work: impl Fn(T) -> Work,
    ) {
        // For `for_each_concurrent`, zero would mean no limit.
        if let Some(at_once) = NonZeroUsize::new(self.walker.config.cache.refresh_runs) {
            stream::iter(items).for_each_concurrent(at_once.get(), work).await;
        }
    }
}

fn permit_rules_to_strings(permits: &[impl ToString]) -> Vec<String> {
    permits.iter().map(ToString::to_string).collect()
}

/// A digest of the sources, including these trust roots, which are used in addition to the platform's. Part of the
/// cache key. The roots are included by content: after a reload, a configured file may contain others.
pub(super) fn sources_digest(config: &Config, trust_roots: &[Bytes]) -> Arc<str> {
    let chain = &config.chain;
    let endpoints: Vec<_> = chain.endpoints.iter().map(|e| (e.url.as_str(), e.own, e.operator.as_str())).collect();
    let gateways: Vec<_> = config.gateways.iter().map(|g| g.url.as_str()).collect();
    canonical_digest(&serde_json::json!({
        "world": chain.world,
        "chain": chain.id,
        "universal_resolver": chain.universal_resolver.to_string(),
        "ccip_read": chain.ccip_read,
        "coins": config.coin_types(),
        "endpoints": endpoints,
        "proof": chain.proof.map(|proof| proof.to_string()),
        "quorum": chain.quorum,
        "header": chain.header.map(|header| header.to_string()),
        "beacon": (config.beacon.network, config.beacon.checkpoint),
        "genesis": chain.genesis.map(|hash| hash.to_string()),
        "max_head_age": chain.effective_max_head_age(),
        "gateways": gateways,
        "allow_hosts": permit_rules_to_strings(&config.network.allow_hosts),
        "connect_to": permit_rules_to_strings(&config.network.connect_to),
        "trust_roots": trust_roots.iter().map(|pem| Digest::compute(pem)).collect::<Vec<_>>(),
        "require_all_sources": config.rules.require_all_sources,
        "links": config.rules.links,
        "allowed_publishers": config.rules.allowed_publishers,
    }))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::PermittedAssetConfig;

    #[test]
    fn other_coin_types_are_another_world() {
        let asset = |network: &str| PermittedAssetConfig {
            network: network.parse().expect("a CAIP-2 identifier"),
            address: [1; 20].into(),
            max_amount: None,
            name: None,
            version: None,
            decimals: None,
            symbol: None,
        };
        let world = |networks: &[&str]| {
            let mut config = Config::default();
            config.limits.assets = networks.iter().map(|network| asset(network)).collect();
            sources_digest(&config, &[])
        };
        assert_eq!(world(&[]), world(&["eip155:1"]), "that of ether is always asked for");
        assert_ne!(world(&["eip155:1"]), world(&["eip155:8453"]), "what a verdict holds is another");
    }
}
