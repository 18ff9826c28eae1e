//! What judges the worst documents of 256 KiB. `tests/worst.rs` counts what they allocate, and `.ci/worst` counts their
//! instructions.

#[path = "seeds.rs"]
pub(crate) mod seeds;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use clresolve_cards::convert::convert;
use clresolve_cards::lint;
use clresolve_cards::signature::{Root, TrustRoots, verify};
use clresolve_cards::system::{CardSystem, Rules};
use clresolve_verdict::build::{self, Reporter, Run};
use clresolve_verdict::card::Card;
use clresolve_verdict::check::Policy;
use clresolve_verdict::profile::{DEFAULT, Profile, Profiles};
use clresolve_verdict::sample;
use jiff::Timestamp;
use serde_json::{Value, json};

use seeds::{Judge, Seed};

impl Seed {
    /// What the judge needs beside the document.
    pub(crate) fn prepared(&self) -> Prepared {
        Prepared { seed: self.clone(), document: self.document().into(), world: World::get() }
    }
}

/// A document and its judge, ready to be measured.
pub(crate) struct Prepared {
    seed: Seed,
    pub(crate) document: Bytes,
    world: &'static World,
}

impl Prepared {
    /// As [`Prepared::judge`], under a name of its own, by which a counter of instructions knows what to count.
    #[inline(never)]
    pub(crate) fn judge_measured(&self) -> usize {
        std::hint::black_box(self.judge())
    }

    /// Judges the document; gives something of the result.
    pub(crate) fn judge(&self) -> usize {
        let world = self.world;
        match self.seed.judge {
            Judge::Verdict => {
                let evidence = sample::evidence(&world.agent, &self.document, world.now);
                let run = Run { evidence, milliseconds: BTreeMap::new(), content_fetched_at: None };
                build::resolution(&world.reporter(), &run, 0).verdict().reasons.len()
            }
            Judge::Lint => {
                let judgement = lint::judge(&self.document, None, &Rules::of(&world.profile), &world.profiles);
                serde_json::to_string(&judgement).map_or(0, |text| text.len())
            }
            Judge::Signatures => {
                let Ok(card) = Card::parse(&self.document) else { return 0 };
                verify(card.document(), &world.roots).reasons.len()
            }
            Judge::Conversion => {
                let Ok(card) = Card::parse(&self.document) else { return 0 };
                let from = CardSystem::ALL[self.seed.base().min(CardSystem::ALL.len() - 1)];
                let to = CardSystem::ALL[self.seed.to % CardSystem::ALL.len()];
                convert(&card, from, to, &Rules::of(&world.profile)).lost.len()
            }
        }
    }
}

/// What documents are judged by.
struct World {
    profiles: Profiles,
    profile: Arc<Profile>,
    policy: Policy,
    roots: TrustRoots,
    /// The agent whose card each document stands for, and the time of its judgement.
    agent: Value,
    now: Timestamp,
}

impl World {
    fn get() -> &'static Self {
        static WORLD: LazyLock<World> = LazyLock::new(|| {
            let profiles = Profiles::builtin();
            let profile = profiles.get(DEFAULT).expect("it is built in");
            let now = "2026-01-01T00:00:00Z".parse().expect("a time");
            World { profiles, profile, policy: Policy::default(), roots: roots(), agent: sample::good(), now }
        });
        &WORLD
    }

    fn reporter(&self) -> Reporter<'_> {
        let Self { profiles, profile, policy, .. } = self;
        Reporter { world: "mainnet", chain_id: 1, profiles, profile, policy }
    }
}

/// The public key of RFC 8037, many times.
fn roots() -> TrustRoots {
    let jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
    let keys = json!({"keys": vec![jwk; 8]}).to_string();
    Root::from_jwks("keys", keys.as_bytes()).expect("a key set").into()
}
