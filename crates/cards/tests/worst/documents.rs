//! The judges of the worst documents of 256 KiB. `tests/worst.rs` counts their allocations, and `.ci/worst` counts
//! their instructions.

#[path = "seeds.rs"]
pub(crate) mod seeds;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use clresolve_cards::convert::convert_card;
use clresolve_cards::discovery::{CardLintReportOrDescriptor, LintedCardDocument};
use clresolve_cards::lint;
use clresolve_cards::project::signed_a2a_card_from_resolution;
use clresolve_cards::signature::{CardTrustRoot, CardTrustRoots, verify_card_signatures};
use clresolve_cards::system::{CardLintContext, CardSystem};
use clresolve_core::digest::Digest;
use clresolve_core::json::JsonLimits;
use clresolve_jose::Ed25519SigningKey;
use clresolve_verdict::build::{self, EvidenceWithStepDurations, VerdictContext};
use clresolve_verdict::card::AgentCard;
use clresolve_verdict::check::JudgementPolicy;
use clresolve_verdict::evidence::{
    CanonicalAndMirrorSchema, ContentProofSource, HttpsOutcome, IpfsWalkOutcome, SchemaEvidence,
};
use clresolve_verdict::gate::GatePolicy;
use clresolve_verdict::profile::{ConformanceProfile, ConformanceProfiles, DEFAULT};
use clresolve_verdict::sample;
use clresolve_verdict::schema::served::ServedSchema;
use clresolve_verdict::schema::strict::MAX_REFERENCES;
use clresolve_verdict::trust::Resolution;
use clresolve_verdict::verdict::ResolutionDepth;
use jiff::Timestamp;
use serde_json::{Value, json};

use seeds::{Judge, RSA_BYTES, Seed};

impl Seed {
    /// Prepares what the judge needs in addition to the document.
    pub(crate) fn prepared(&self) -> Prepared {
        let (world, document) = (World::get(), Bytes::from(self.document()));
        let run = matches!(self.judge, Judge::Verdict | Judge::Schemas).then(|| world.run(self.judge, &document));
        let resolution = (self.judge == Judge::Projection).then(|| world.resolution(&document));
        Prepared { seed: self.clone(), document, run, resolution, world }
    }
}

/// A document and its judge, ready to be measured.
pub(crate) struct Prepared {
    seed: Seed,
    pub(crate) document: Bytes,
    /// The gathered evidence, for a verdict.
    run: Option<EvidenceWithStepDurations>,
    /// The trusted verdict, for a projection.
    resolution: Option<Resolution>,
    world: &'static World,
}

impl Prepared {
    /// Like [`Prepared::judge`], with a separate name by which the instruction counter identifies the code to count.
    #[inline(never)]
    pub(crate) fn judge_measured(&self) -> usize {
        std::hint::black_box(self.judge())
    }

    /// Judges the document. Returns a value that depends on the result.
    pub(crate) fn judge(&self) -> usize {
        let world = self.world;
        match self.seed.judge {
            Judge::Verdict | Judge::Schemas => {
                let run = self.run.as_ref().expect("it was gathered");
                build::build_resolution(&world.reporter(self.seed.judge), run, 0).verdict().reasons.len()
            }
            Judge::Served => ServedSchema::from_bytes(self.document.clone()).digest().as_bytes().len(),
            Judge::Lint => {
                let judgement = lint::lint_with_passing_profiles(
                    &self.document,
                    None,
                    &CardLintContext::from_profile(&world.profile),
                    &world.profiles,
                );
                serde_json::to_string(&judgement).map_or(0, |text| text.len())
            }
            Judge::Discovery => {
                let found = LintedCardDocument::lint_bytes(
                    &self.document,
                    None,
                    &CardLintContext::from_profile(&world.profile),
                );
                let CardLintReportOrDescriptor::Card(report) = &found.kind else { return 0 };
                serde_json::to_string(report).map_or(0, |text| text.len())
            }
            Judge::Signatures => {
                let Ok(card) = AgentCard::parse(&self.document) else { return 0 };
                verify_card_signatures(card.document(), &world.roots).reasons.len()
            }
            Judge::Conversion => {
                let Ok(card) = AgentCard::parse(&self.document) else { return 0 };
                let from = CardSystem::ALL[self.seed.base().min(CardSystem::ALL.len() - 1)];
                let to = CardSystem::ALL[self.seed.to % CardSystem::ALL.len()];
                let converted = convert_card(&card, from, to, &CardLintContext::from_profile(&world.profile));
                serde_json::to_string(&(converted.card, converted.report)).map_or(0, |text| text.len())
            }
            Judge::Projection => {
                let resolution = self.resolution.as_ref().expect("it was proven");
                let card = signed_a2a_card_from_resolution(resolution, &GatePolicy::default(), Some(&world.key));
                card.map_or(0, |card| Digest::compute(card.to_string().as_bytes()).as_bytes().len())
            }
        }
    }
}

/// The rules and data by which documents are judged.
struct World {
    profiles: ConformanceProfiles,
    profile: Arc<ConformanceProfile>,
    roots: CardTrustRoots,
    key: Ed25519SigningKey,
    /// The agent whose card each document replaces, and the time of its judgement.
    agent: Value,
    now: Timestamp,
}

impl World {
    fn get() -> &'static Self {
        static WORLD: LazyLock<World> = LazyLock::new(|| {
            let profiles = ConformanceProfiles::builtin();
            let profile = profiles.get(DEFAULT).expect("it is built in");
            let now = "2026-01-01T00:00:00Z".parse().expect("a time");
            let key = Ed25519SigningKey::generate().expect("a key");
            World { profiles, profile, roots: roots(), key, agent: sample::good_card(), now }
        });
        &WORLD
    }

    /// The verdict if everything except the agent's card is valid.
    fn resolution(&self, document: &Bytes) -> Resolution {
        let evidence = sample::faultless_evidence(&self.agent, document, self.now);
        let run = EvidenceWithStepDurations { evidence, milliseconds: BTreeMap::new(), content_fetched_at: None };
        build::build_resolution(&self.reporter(Judge::Verdict), &run, 0)
    }

    /// The evidence if the agent's card is `document`, and each source returned different bytes. At depth `schemas`, no
    /// gateway returned the card, so its CID is compared with the bytes that its URL served.
    fn run(&self, judge: Judge, document: &Bytes) -> EvidenceWithStepDurations {
        let mut evidence = sample::faultless_evidence(&self.agent, document, self.now);
        let other = |byte: u8| Bytes::from(vec![byte; JsonLimits::CARD.bytes]);
        evidence.mirror = IpfsWalkOutcome::Proven { bytes: other(b'm'), by: ContentProofSource::Gateway, blocks: 1 };
        match judge {
            Judge::Schemas => {
                evidence.schemas = Some(schemas());
                evidence.ipfs = IpfsWalkOutcome::Unproven(Vec::new());
            }
            _ => evidence.https = HttpsOutcome::Body { bytes: other(b'h'), url: "https://cards.example/".to_owned() },
        }
        EvidenceWithStepDurations { evidence, milliseconds: BTreeMap::new(), content_fetched_at: None }
    }

    fn reporter(&self, judge: Judge) -> VerdictContext<'_> {
        static IDENTITY: LazyLock<JudgementPolicy> = LazyLock::new(JudgementPolicy::default);
        static SCHEMAS: LazyLock<JudgementPolicy> =
            LazyLock::new(|| JudgementPolicy { depth: ResolutionDepth::Schemas, ..JudgementPolicy::default() });
        let policy = if judge == Judge::Schemas { &*SCHEMAS } else { &*IDENTITY };
        VerdictContext { world: "mainnet", chain_id: 1, profiles: &self.profiles, profile: &self.profile, policy }
    }
}

/// Four documents of maximum size. Those of a mirror differ from the canonical ones only in whitespace, so that all
/// values are compared. They refer to the maximum number of schemas.
fn schemas() -> SchemaEvidence {
    let bound = |side: &str| {
        let id =
            format!("https://commandlayer.org/schemas/v1.0.0/commons/summarize/{side}s/summarize.{side}.schema.json");
        let references: Vec<Value> = (0..MAX_REFERENCES).map(|at| json!({"$ref": format!("s{at}")})).collect();
        let document = json!({"$id": id, "allOf": references, "enum": vec!["n".repeat(24); 8000]}).to_string();
        let padded = |padding: &str| {
            let room = JsonLimits::SCHEMA.bytes - document.len();
            ServedSchema::from_bytes(format!("{document}{}", padding.repeat(room / padding.len())).into())
        };
        CanonicalAndMirrorSchema { canonical: Ok(padded("\r\n")), mirror: Some(Ok(padded("\n"))) }
    };
    SchemaEvidence { request: bound("request"), receipt: bound("receipt") }
}

/// The maximum number of keys tried for one signature, for each algorithm: the key of RFC 8037, the base point of
/// P-256, and the largest accepted modulus.
fn roots() -> CardTrustRoots {
    let n = URL_SAFE_NO_PAD.encode([0xff; RSA_BYTES]);
    let keys = [
        json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}),
        json!({"kty": "EC", "crv": "P-256", "x": "axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY",
            "y": "T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU"}),
        json!({"kty": "RSA", "n": n, "e": "AQAB"}),
    ];
    let keys = json!({"keys": keys.map(|key| vec![key; 8]).concat()}).to_string();
    CardTrustRoot::from_jwks("keys", keys.as_bytes()).expect("a key set").into()
}
