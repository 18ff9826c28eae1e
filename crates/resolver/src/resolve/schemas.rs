//! The schemas that cards bind, against which messages are validated. A schema is fetched, proven, compiled once, and
//! looked up once per verdict.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clresolve_core::digest::Digest;
use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect};
use clresolve_core::state::TrustState;
use clresolve_verdict::card::{AgentCard, SchemaRole};
use clresolve_verdict::check::schemas::proven_schema;
use clresolve_verdict::check::verbs::has_placeholder_cid;
use clresolve_verdict::evidence::{CanonicalAndMirrorSchema, SchemaFetchError, SchemaFetchResult};
use clresolve_verdict::manifest::{BoundSchemaEntry, SchemaReleaseManifest};
use clresolve_verdict::profile::ConformanceProfile;
use clresolve_verdict::schema::bound::{BoundSchema, ReferencedSchemaCollector, SiblingSchema};
use clresolve_verdict::trust::Resolution;
use moka::future::Cache;
use tokio::time::Instant;

use super::look_ups::{LookupCache, LookupCacheValue, ResolvedVerdictKey};
use super::walk::UncachedResolver;

/// Maximum number of cached compiled schemas. The published layers have thirty per release. One takes some hundred
/// kilobytes at most, since manifests chosen by the operator pin its bytes.
const KEPT: u64 = 256;

/// A schema that a card binds, or why there is none.
pub(super) type BoundSchemaResult = Result<Arc<BoundSchema>, Arc<[Reason]>>;

impl LookupCacheValue for BoundSchemaResult {
    // The digest proves the bytes of the schema.
    const IS_FINAL: bool = true;

    fn lifetime_state(&self) -> TrustState {
        match self {
            Ok(_) => TrustState::Trusted,
            Err(reasons) if reasons.iter().any(|reason| reason.effect == ReasonEffect::Fail) => TrustState::Untrusted,
            Err(_) => TrustState::Indeterminate,
        }
    }

    fn undecided(cause: &str) -> Self {
        Err([Reason::new(ReasonCode::SchemaUnavailable).observed(cause)].into())
    }
}

/// Recently looked up bound schemas, and compiled schemas keyed by their proof.
#[derive(Clone)]
pub(super) struct BoundSchemaCache {
    look_ups: LookupCache<SchemaRole, BoundSchemaResult>,
    /// Keyed by the digest of the manifest, which pins the schema's references, and that of the schema.
    compiled: Cache<(Digest, Digest), Arc<BoundSchema>>,
}

impl Default for BoundSchemaCache {
    fn default() -> Self {
        Self { look_ups: LookupCache::default(), compiled: Cache::new(KEPT) }
    }
}

impl BoundSchemaCache {
    /// The schema that the card of a trusted agent binds for its first verb. `None` if the agent is not trusted.
    pub(super) async fn bound_schema_of_agent(
        &self,
        walker: &Arc<UncachedResolver>,
        profile: &Arc<ConformanceProfile>,
        resolution: &Resolution,
        side: SchemaRole,
    ) -> Option<BoundSchemaResult> {
        let (card, beside) = (resolution.card_bytes()?.clone(), ResolvedVerdictKey::from_resolution(resolution)?);
        let look_up = BoundSchemaLookup { walker: Arc::clone(walker), compiled: self.compiled.clone(), side };
        let profile = Arc::clone(profile);
        let read = async move { look_up.look_up_schema(&profile, card).await };
        Some(self.look_ups.get_or_look_up(beside, side, &walker.clock, read).await)
    }
}

impl UncachedResolver {
    /// Fetches a layer's schema from its canonical location and from each mirror.
    pub(super) async fn fetch_published_schema(
        &self,
        entry: &BoundSchemaEntry,
    ) -> (SchemaFetchResult, Vec<SchemaFetchResult>) {
        let Self { sources, config, .. } = self;
        let answer = async |location: &String| sources.fetch_schema(location, config.timeout).await.0;
        tokio::join!(answer(&entry.canonical), futures_util::future::join_all(entry.mirrors.iter().map(answer)))
    }
}

struct BoundSchemaLookup {
    walker: Arc<UncachedResolver>,
    compiled: Cache<(Digest, Digest), Arc<BoundSchema>>,
    side: SchemaRole,
}

impl BoundSchemaLookup {
    async fn look_up_schema(&self, profile: &ConformanceProfile, card: Bytes) -> BoundSchemaResult {
        let card = self.walker.pool.run(move || AgentCard::parse(&card).ok()).await;
        let Some((card, manifest, entry)) = card.and_then(|card| {
            let manifest = profile.class_rules(card.class()?)?.manifest();
            let entry = manifest.verb(card.primary_verb()?)?.schema(self.side);
            Some((card, manifest, entry))
        }) else {
            return BoundSchemaResult::undecided("the card binds none");
        };
        let key = entry.sha256.map(|sha256| (manifest.digest(), sha256));
        if let Some(key) = key
            && let Some(bound) = self.compiled.get(&key).await
        {
            return Ok(bound);
        }
        let bound = self.fetch_and_compile(profile, manifest, entry, &card).await?;
        if let Some(key) = key {
            self.compiled.insert(key, Arc::clone(&bound)).await;
        }
        Ok(bound)
    }

    async fn fetch_and_compile(
        &self,
        profile: &ConformanceProfile,
        manifest: &SchemaReleaseManifest,
        entry: &BoundSchemaEntry,
        card: &AgentCard,
    ) -> BoundSchemaResult {
        let deadline = Instant::now() + self.walker.config.timeout;
        let unpinned = CanonicalAndMirrorSchema { canonical: Err(SchemaFetchError::NotAsked.into()), mirror: None };
        let served = if entry.sha256.is_some() { self.fetch_schema_from_card(card, deadline).await } else { unpinned };
        let schema = proven_schema(self.side, &served, entry, profile)?;
        let mut gathering = ReferencedSchemaCollector::new(manifest, entry, schema);
        while let Some(sibling) = gathering.next_missing_sibling().map_err(single_reason)? {
            self.supply_sibling(&mut gathering, sibling, deadline)
                .await
                .or_else(|causes| BoundSchemaResult::undecided(&causes).map(drop))?;
        }
        let ready = gathering.into_bundle();
        self.walker.pool.run(move || ready.compile().map(Arc::new)).await.map_err(single_reason)
    }

    /// Supplies a sibling schema from the first location that serves its pinned bytes. Returns why, if none does.
    async fn supply_sibling<'m>(
        &self,
        gathering: &mut ReferencedSchemaCollector<'m>,
        sibling: SiblingSchema<'m>,
        deadline: Instant,
    ) -> Result<(), String> {
        let mut causes = Vec::new();
        for location in gathering.sibling_locations(&sibling) {
            match self.fetch_schema_from_location(&location, deadline).await {
                Ok(served) if gathering.supply_sibling(sibling, served.clone()) => return Ok(()),
                Ok(_) => causes.push(format!("{location}: other bytes than the pinned ones")),
                Err(cause) => causes.push(format!("{location}: {cause}")),
            }
        }
        Err(causes.join("; "))
    }

    /// Fetches the schema from the locations in the card. The mirror is used only if the canonical location serves
    /// nothing.
    async fn fetch_schema_from_card(&self, card: &AgentCard, deadline: Instant) -> CanonicalAndMirrorSchema {
        let canonical = match card.schema_location(self.side) {
            Some(location) => self.fetch_schema_from_location(location, deadline).await,
            None => Err(SchemaFetchError::NotNamed.into()),
        };
        let mirror = card
            .schema_mirror_location(self.side)
            .filter(|location| canonical.is_err() && !has_placeholder_cid(location));
        let mirror = match mirror {
            Some(location) => Some(self.fetch_schema_from_location(location, deadline).await),
            None => None,
        };
        CanonicalAndMirrorSchema { canonical, mirror }
    }

    /// Fetches from one location with half of the remaining time, so that a stalling location leaves time for the next.
    async fn fetch_schema_from_location(&self, location: &str, deadline: Instant) -> SchemaFetchResult {
        let left: Duration = deadline.saturating_duration_since(Instant::now());
        self.walker.sources.fetch_schema(location, left / 2).await.0
    }
}

fn single_reason(reason: impl AsRef<Reason>) -> Arc<[Reason]> {
    [reason.as_ref().clone()].into()
}
