//! The schemas that cards bind, against which messages are validated. A schema is fetched, proven, compiled once, and
//! looked up once per verdict.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clresolve_core::digest::Digest;
use clresolve_core::reason::{Code, Effect, Reason};
use clresolve_core::state::State;
use clresolve_verdict::card::{Card, Side};
use clresolve_verdict::check::schemas::proven;
use clresolve_verdict::check::verbs::holds_placeholder;
use clresolve_verdict::evidence::{SchemaAnswer, SchemaAnswers, SchemaFault};
use clresolve_verdict::manifest::{Manifest, SchemaEntry};
use clresolve_verdict::profile::Profile;
use clresolve_verdict::schema::bound::{CompiledSchema, Gathering, Sibling};
use clresolve_verdict::trust::Resolution;
use moka::future::Cache;
use tokio::time::Instant;

use super::look_ups::{Beside, LookUpResult, LookUps};
use super::walk::Walker;

/// Maximum number of cached compiled schemas. The published layers have thirty per release. One takes some hundred
/// kilobytes at most, since manifests chosen by the operator pin its bytes.
const KEPT: u64 = 256;

/// A schema that a card binds, or why there is none.
pub(super) type BoundSchemaResult = Result<Arc<CompiledSchema>, Arc<[Reason]>>;

impl LookUpResult for BoundSchemaResult {
    // The digest proves the bytes of the schema.
    const IS_FINAL: bool = true;

    fn state(&self) -> State {
        match self {
            Ok(_) => State::Trusted,
            Err(reasons) if reasons.iter().any(|reason| reason.effect == Effect::Fail) => State::Untrusted,
            Err(_) => State::Indeterminate,
        }
    }

    fn undecided(cause: &str) -> Self {
        Err([Reason::new(Code::SchemaUnavailable).observed(cause)].into())
    }
}

/// Recently looked up bound schemas, and compiled schemas keyed by their proof.
#[derive(Clone)]
pub(super) struct BoundSchemas {
    look_ups: LookUps<Side, BoundSchemaResult>,
    compiled: Compiled,
}

/// Keyed by the digest of the manifest, which pins the schema's references, and that of the schema.
type Compiled = Cache<(Digest, Digest), Arc<CompiledSchema>>;

impl Default for BoundSchemas {
    fn default() -> Self {
        Self { look_ups: LookUps::default(), compiled: Cache::new(KEPT) }
    }
}

impl BoundSchemas {
    /// The schema that the card of a trusted agent binds for its first verb. `None` if the agent is not trusted.
    pub(super) async fn of(
        &self,
        walker: &Arc<Walker>,
        profile: &Arc<Profile>,
        resolution: &Resolution,
        side: Side,
    ) -> Option<BoundSchemaResult> {
        let (card, beside) = (resolution.card()?.clone(), Beside::of(resolution)?);
        let look_up = LookUp { walker: Arc::clone(walker), compiled: self.compiled.clone(), side };
        let profile = Arc::clone(profile);
        let read = async move { look_up.read(&profile, card).await };
        Some(self.look_ups.answer(beside, side, &walker.clock, read).await)
    }
}

impl Walker {
    /// Fetches a layer's schema from its canonical location and from each mirror.
    pub(super) async fn published_schema(&self, entry: &SchemaEntry) -> (SchemaAnswer, Vec<SchemaAnswer>) {
        let Self { sources, config, .. } = self;
        let answer = async |location: &String| sources.schema(location, config.timeout).await.0;
        tokio::join!(answer(&entry.canonical), futures_util::future::join_all(entry.mirrors.iter().map(answer)))
    }
}

struct LookUp {
    walker: Arc<Walker>,
    compiled: Compiled,
    side: Side,
}

impl LookUp {
    async fn read(&self, profile: &Profile, card: Bytes) -> BoundSchemaResult {
        let card = self.walker.pool.run(move || Card::parse(&card).ok()).await;
        let Some((card, manifest, entry)) = card.and_then(|card| {
            let manifest = profile.layer(card.class()?)?.manifest();
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
        let bound = self.fetched(profile, manifest, entry, &card).await?;
        if let Some(key) = key {
            self.compiled.insert(key, Arc::clone(&bound)).await;
        }
        Ok(bound)
    }

    async fn fetched(
        &self,
        profile: &Profile,
        manifest: &Manifest,
        entry: &SchemaEntry,
        card: &Card,
    ) -> BoundSchemaResult {
        let deadline = Instant::now() + self.walker.config.timeout;
        let unpinned = SchemaAnswers { canonical: Err(SchemaFault::NotAsked.into()), mirror: None };
        let served = if entry.sha256.is_some() { self.served(card, deadline).await } else { unpinned };
        let schema = proven(self.side, &served, entry, profile)?;
        let mut gathering = Gathering::new(manifest, entry, schema);
        while let Some(sibling) = gathering.missing().map_err(alone)? {
            self.supplied(&mut gathering, sibling, deadline)
                .await
                .or_else(|causes| BoundSchemaResult::undecided(&causes).map(drop))?;
        }
        let ready = gathering.ready();
        self.walker.pool.run(move || ready.compile().map(Arc::new)).await.map_err(alone)
    }

    /// Supplies a sibling schema from the first location that serves its pinned bytes. Returns why, if none does.
    async fn supplied<'m>(
        &self,
        gathering: &mut Gathering<'m>,
        sibling: Sibling<'m>,
        deadline: Instant,
    ) -> Result<(), String> {
        let mut causes = Vec::new();
        for location in gathering.locations(&sibling) {
            match self.answer(&location, deadline).await {
                Ok(served) if gathering.supply(sibling, served.clone()) => return Ok(()),
                Ok(_) => causes.push(format!("{location}: other bytes than the pinned ones")),
                Err(cause) => causes.push(format!("{location}: {cause}")),
            }
        }
        Err(causes.join("; "))
    }

    /// Fetches the schema from the locations in the card. The mirror is used only if the canonical location serves
    /// nothing.
    async fn served(&self, card: &Card, deadline: Instant) -> SchemaAnswers {
        let canonical = match card.schema(self.side) {
            Some(location) => self.answer(location, deadline).await,
            None => Err(SchemaFault::NotNamed.into()),
        };
        let mirror =
            card.schema_mirror(self.side).filter(|location| canonical.is_err() && !holds_placeholder(location));
        let mirror = match mirror {
            Some(location) => Some(self.answer(location, deadline).await),
            None => None,
        };
        SchemaAnswers { canonical, mirror }
    }

    /// Fetches from one location with half of the remaining time, so that a stalling location leaves time for the next.
    async fn answer(&self, location: &str, deadline: Instant) -> SchemaAnswer {
        let left: Duration = deadline.saturating_duration_since(Instant::now());
        self.walker.sources.schema(location, left / 2).await.0
    }
}

fn alone(reason: impl AsRef<Reason>) -> Arc<[Reason]> {
    [reason.as_ref().clone()].into()
}
