//! Valid cards and verdicts for the tests of this crate and its dependents.

use bytes::Bytes;
use clresolve_core::digest::Digest;
use clresolve_core::name::{EnsName, NameError};
use clresolve_core::payment::PaymentRecords;
use clresolve_core::reading::{Answer, Block, BlockSelector, Found, Grade, Holder, Holding, Latest, Proof, Reading};
use clresolve_core::reason::Reason;
use clresolve_core::records::{Key, Record, RecordSet};
use clresolve_core::state::State;
use clresolve_ipfs::ContentId;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::build;
use crate::card::Card;
use crate::check::Policy;
use crate::evidence::continuity::{Continuity, Sighting};
use crate::evidence::{Evidence, IpfsOutcome, OwnerEvidence, ProvenBy, Source};
use crate::manifest::Manifest;
use crate::profile::{DEFAULT, Profile, Profiles};
use crate::published::Published;
use crate::schema::bound::{CompiledSchema, Gathering};
use crate::schema::served::ServedSchema;
use crate::trust::Resolution;
use crate::verdict::Verdict;

/// A commons card that is valid under every profile.
pub fn good() -> Value {
    serde_json::from_str(include_str!("sample/good.json")).expect("JSON")
}

/// A commercial card that is valid under every profile.
pub fn good_commercial() -> Value {
    let location = |side: &str| {
        format!("https://commandlayer.org/schemas/v1.0.0/commercial/purchase/{side}s/purchase.{side}.schema.json")
    };
    let mut card = good();
    card["$id"] = json!("https://commandlayer.org/agent-cards/agents/v1.0.0/commercial/purchaseagent.eth.json");
    for (member, value) in [("id", "purchaseagent.eth"), ("slug", "purchaseagent"), ("ens", "purchaseagent.eth")] {
        card[member] = json!(value);
    }
    card["class"] = json!("commercial");
    card["implements"] = json!(["purchase"]);
    card["entry"] = json!("x402://purchaseagent.eth/purchase/v1");
    card["schemas"] = json!({"request": location("request"), "receipt": location("receipt")});
    card.as_object_mut().expect("a card").remove("schemas_mirror");
    card
}

/// The reasons of `rule` for `document` under the default profile.
pub fn judged(document: &Value, rule: fn(&Card, &Profile) -> Vec<Reason>) -> Vec<Reason> {
    judged_under(DEFAULT, document, rule)
}

/// The reasons of `rule` for `document` under a profile.
pub fn judged_under(profile: &str, document: &Value, rule: fn(&Card, &Profile) -> Vec<Reason>) -> Vec<Reason> {
    let card = Card::parse(document.to_string().as_bytes()).expect("strict JSON");
    rule(&card, &Profiles::builtin().get(profile).expect("a profile that is built in"))
}

/// The distinct codes of `reasons`, sorted.
pub fn codes(reasons: &[Reason]) -> Vec<&'static str> {
    let mut codes: Vec<_> = reasons.iter().map(|reason| reason.code.slug()).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

/// The observation at `block` of a card of this version, whose digest and records are those of `content`.
pub fn sighting(block: u64, version: &str, content: &str) -> Sighting {
    let digest = Digest::of(content.as_bytes()).to_string();
    let records = Key::CARD.into_iter().map(|key| (key.as_str().to_owned(), digest.clone())).collect();
    Sighting { block, card: Some((version.to_owned(), digest)), records, edition: None }
}

/// The evidence of a resolution of `agent` without any defect: its URL serves the card, and the IPFS walk proves it.
/// `card` holds the served bytes.
pub fn evidence(agent: &Value, card: &Bytes, now: Timestamp) -> Evidence {
    let text = |member: &str| agent[member].as_str().expect("a text").to_owned();
    let cid = ContentId::raw_of(card);
    let url = format!("https://cards.example/{}.json", text("ens"));
    let values = [
        (Key::Entry, text("entry")),
        (Key::Agentcard, url.clone()),
        (Key::CidAgentcard, cid.to_string()),
        (Key::MirrorIpfs, format!("ipfs://{cid}")),
        (Key::Checksum, Digest::of(card).to_string()),
        (Key::Owner, text("owner")),
    ];
    let absent = Key::ALL.map(|key| (key, Record::Absent));
    let records: RecordSet = absent.into_iter().chain(values.map(|(key, value)| (key, Record::Text(value)))).collect();
    let answer = Answer::Records(Found {
        resolver: [1; 20].into(),
        wildcard: None,
        offchain: false,
        records,
        payment: PaymentRecords::default(),
    });
    let holder = Holder::Address([3; 20].into());
    let reading = Reading {
        block: Block { number: 1, hash: [2; 32].into(), timestamp: now },
        latest: Some(Ok(Latest { answer: answer.clone(), holder })),
        newest: None,
        answer,
        holder,
        expiry: None,
        proof: Proof { grade: Grade::SingleRpc, asked: 1, agreed: 1, own: true },
        endpoints: vec!["own".to_owned()],
        contradicted_by: Vec::new(),
        failed_endpoints: Vec::new(),
    };
    Evidence {
        name: EnsName::parse(&text("ens")).expect("a name"),
        now,
        chain_id: 1,
        block: BlockSelector::Finalized,
        reading: Ok(reading),
        owner: OwnerEvidence::Read(Holding { address: Some([3; 20].into()), holder: Holder::Nobody }),
        https: Source::Body { bytes: card.clone(), url },
        ipfs: IpfsOutcome::Proven { bytes: card.clone(), by: ProvenBy::Gateway, blocks: 3 },
        mirror: IpfsOutcome::NotAsked,
        liars: Vec::new(),
        schemas: None,
        continuity: Continuity::NotAsked,
        links: None,
        misspelt_keys: Vec::new(),
    }
}

/// A compiled schema, as if proven by a manifest. Its `$id` determines its location.
pub fn bound(schema: &Value) -> CompiledSchema {
    let served = ServedSchema::read(schema.to_string().into());
    let entry = |side: &str, id: &Value| json!({"canonical": id, "mirrors": [], "path": format!("{side}.json"), "id": id, "sha256": served.digest()});
    let other = json!("https://schemas.example/other.json");
    let manifest = json!({"schema": "clresolve.manifest/1", "id": "m/1", "class": "commons", "version": "1", "shared": [],
        "verbs": [{"name": "summarize", "request": entry("request", &schema["$id"]), "receipt": entry("receipt", &other)}]});
    let manifest = Manifest::load(manifest.to_string().as_bytes()).expect("a manifest");
    Gathering::new(&manifest, &manifest.verbs()[0].request, served.clone()).ready().compile().expect("a strict schema")
}

/// A resolution without evidence, for tests of caches.
pub fn empty(state: State, now: Timestamp, failures: u32) -> Resolution {
    let profiles = Profiles::builtin();
    let profile = profiles.iter().next().expect("a built-in profile");
    let bare = build::invalid_name("", &NameError::Empty, profile, &Policy::default(), now);
    let mut verdict = bare.verdict().as_ref().clone();
    verdict.state = state;
    verdict.freshness = build::freshness(state, now, failures);
    live(verdict, None)
}

/// Wraps any verdict as the result of a live resolution, with any bytes as its card.
pub fn live(verdict: Verdict, card: Option<Bytes>) -> Resolution {
    Resolution::new(verdict, card, None)
}

/// Wraps any verdict as the result of a live resolution that read the chain up to this height.
pub fn read_to(verdict: Verdict, newest: u64) -> Resolution {
    live(verdict, None).read_to(Some(newest))
}

/// Wraps any verdict as the result of a live resolution of a name with these payment records.
pub fn paid(verdict: Verdict, payment: Published) -> Resolution {
    Resolution::new(verdict, None, Some(payment))
}

/// Payment records with the values `settled` at the verdict's block and `newest` at the newest one.
pub fn published(settled: PaymentRecords, newest: PaymentRecords) -> Option<Published> {
    let answer = |payment| {
        let (resolver, records) = ([1; 20].into(), std::iter::empty().collect());
        Answer::Records(Found { resolver, wildcard: None, offchain: false, records, payment })
    };
    let evidence = evidence(&good(), &Bytes::new(), Timestamp::UNIX_EPOCH);
    let reading = evidence.reading.expect("it was read");
    let latest = Latest { answer: answer(newest), holder: reading.holder };
    Published::of(&Reading { answer: answer(settled), latest: Some(Ok(latest)), ..reading })
}
