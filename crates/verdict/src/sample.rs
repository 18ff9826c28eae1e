//! Valid cards and verdicts for the tests of this crate and its dependents.

use bytes::Bytes;
use clresolve_core::digest::Digest;
use clresolve_core::name::{EnsName, EnsNameError};
use clresolve_core::payment::PaymentRecords;
use clresolve_core::reading::{
    BlockSelector, ChainBlock, ClOwnerReading, EnsAnswer, LatestNameState, NameHolder, NameReading, ProofGrade,
    ProofStrength, ResolvedRecords,
};
use clresolve_core::reason::Reason;
use clresolve_core::records::{TextRecord, TextRecordKey, TextRecordSet};
use clresolve_core::state::TrustState;
use clresolve_ipfs::ContentId;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::build;
use crate::card::AgentCard;
use crate::check::JudgementPolicy;
use crate::evidence::continuity::{HistoryOutcome, NameObservation};
use crate::evidence::{ClOwnerEvidence, ContentProofSource, HttpsOutcome, IpfsWalkOutcome, ResolutionEvidence};
use crate::manifest::SchemaReleaseManifest;
use crate::profile::{ConformanceProfile, ConformanceProfiles, DEFAULT};
use crate::published::PublishedPaymentRecords;
use crate::schema::bound::{BoundSchema, ReferencedSchemaCollector};
use crate::schema::served::ServedSchema;
use crate::trust::Resolution;
use crate::verdict::Verdict;

/// A commons card that is valid under every profile.
pub fn good_card() -> Value {
    serde_json::from_str(include_str!("sample/good.json")).expect("JSON")
}

/// A commercial card that is valid under every profile.
pub fn good_commercial_card() -> Value {
    let location = |side: &str| {
        format!("https://commandlayer.org/schemas/v1.0.0/commercial/purchase/{side}s/purchase.{side}.schema.json")
    };
    let mut card = good_card();
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
pub fn judge_document(document: &Value, rule: fn(&AgentCard, &ConformanceProfile) -> Vec<Reason>) -> Vec<Reason> {
    judge_document_under(DEFAULT, document, rule)
}

/// The reasons of `rule` for `document` under a profile.
pub fn judge_document_under(
    profile: &str,
    document: &Value,
    rule: fn(&AgentCard, &ConformanceProfile) -> Vec<Reason>,
) -> Vec<Reason> {
    let card = AgentCard::parse(document.to_string().as_bytes()).expect("strict JSON");
    rule(&card, &ConformanceProfiles::builtin().get(profile).expect("a profile that is built in"))
}

/// The distinct codes of `reasons`, sorted.
pub fn distinct_codes(reasons: &[Reason]) -> Vec<&'static str> {
    let mut codes: Vec<_> = reasons.iter().map(|reason| reason.code.slug()).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

/// The observation at `block` of a card of this version, whose digest and records are those of `content`.
pub fn sample_observation(block: u64, version: &str, content: &str) -> NameObservation {
    let digest = Digest::compute(content.as_bytes()).to_string();
    let records = TextRecordKey::CARD.into_iter().map(|key| (key.as_str().to_owned(), digest.clone())).collect();
    NameObservation { block, card: Some((version.to_owned(), digest)), records, edition: None }
}

/// The evidence of a resolution of `agent` without any defect: its URL serves the card, and the IPFS walk proves it.
/// `card` holds the served bytes.
pub fn faultless_evidence(agent: &Value, card: &Bytes, now: Timestamp) -> ResolutionEvidence {
    let text = |member: &str| agent[member].as_str().expect("a text").to_owned();
    let cid = ContentId::from_raw_block(card);
    let url = format!("https://cards.example/{}.json", text("ens"));
    let values = [
        (TextRecordKey::Entry, text("entry")),
        (TextRecordKey::Agentcard, url.clone()),
        (TextRecordKey::CidAgentcard, cid.to_string()),
        (TextRecordKey::MirrorIpfs, format!("ipfs://{cid}")),
        (TextRecordKey::Checksum, Digest::compute(card).to_string()),
        (TextRecordKey::Owner, text("owner")),
    ];
    let absent = TextRecordKey::ALL.map(|key| (key, TextRecord::Absent));
    let records: TextRecordSet =
        absent.into_iter().chain(values.map(|(key, value)| (key, TextRecord::Text(value)))).collect();
    let answer = EnsAnswer::Records(ResolvedRecords {
        resolver: [1; 20].into(),
        wildcard: None,
        offchain: false,
        records,
        payment: PaymentRecords::default(),
    });
    let holder = NameHolder::Address([3; 20].into());
    let reading = NameReading {
        block: ChainBlock { number: 1, hash: [2; 32].into(), timestamp: now },
        latest: Some(Ok(LatestNameState { answer: answer.clone(), holder })),
        newest: None,
        answer,
        holder,
        expiry: None,
        proof: ProofStrength { grade: ProofGrade::SingleRpc, asked: 1, agreed: 1, own: true },
        endpoints: vec!["own".to_owned()],
        contradicted_by: Vec::new(),
        failed_endpoints: Vec::new(),
    };
    ResolutionEvidence {
        name: EnsName::parse(&text("ens")).expect("a name"),
        now,
        chain_id: 1,
        block: BlockSelector::Finalized,
        reading: Ok(reading),
        owner: ClOwnerEvidence::Read(ClOwnerReading { address: Some([3; 20].into()), holder: NameHolder::Nobody }),
        https: HttpsOutcome::Body { bytes: card.clone(), url },
        ipfs: IpfsWalkOutcome::Proven { bytes: card.clone(), by: ContentProofSource::Gateway, blocks: 3 },
        mirror: IpfsWalkOutcome::NotAsked,
        liars: Vec::new(),
        schemas: None,
        continuity: HistoryOutcome::NotAsked,
        links: None,
        misspelt_keys: Vec::new(),
    }
}

/// A compiled schema, as if proven by a manifest. Its `$id` determines its location.
pub fn sample_bound_schema(schema: &Value) -> BoundSchema {
    let served = ServedSchema::from_bytes(schema.to_string().into());
    let entry = |side: &str, id: &Value| json!({"canonical": id, "mirrors": [], "path": format!("{side}.json"), "id": id, "sha256": served.digest()});
    let other = json!("https://schemas.example/other.json");
    let manifest = json!({"schema": "clresolve.manifest/1", "id": "m/1", "class": "commons", "version": "1", "shared": [],
        "verbs": [{"name": "summarize", "request": entry("request", &schema["$id"]), "receipt": entry("receipt", &other)}]});
    let manifest = SchemaReleaseManifest::load(manifest.to_string().as_bytes()).expect("a manifest");
    ReferencedSchemaCollector::new(&manifest, &manifest.verbs()[0].request, served.clone())
        .into_bundle()
        .compile()
        .expect("a strict schema")
}

/// A resolution without evidence, for tests of caches.
pub fn empty_resolution(state: TrustState, now: Timestamp, failures: u32) -> Resolution {
    let profiles = ConformanceProfiles::builtin();
    let profile = profiles.iter().next().expect("a built-in profile");
    let bare = build::invalid_name_resolution("", &EnsNameError::Empty, profile, &JudgementPolicy::default(), now);
    let mut verdict = bare.verdict().as_ref().clone();
    verdict.state = state;
    verdict.freshness = build::verdict_freshness(state, now, failures);
    resolution_of_verdict(verdict, None)
}

/// Wraps any verdict as the result of a live resolution, with any bytes as its card.
pub fn resolution_of_verdict(verdict: Verdict, card: Option<Bytes>) -> Resolution {
    Resolution::new(verdict, card, None)
}

/// Wraps any verdict as the result of a live resolution that read the chain up to this height.
pub fn resolution_with_newest_block(verdict: Verdict, newest: u64) -> Resolution {
    resolution_of_verdict(verdict, None).with_newest_block(Some(newest))
}

/// Wraps any verdict as the result of a live resolution of a name with these payment records.
pub fn resolution_with_payments(verdict: Verdict, payment: PublishedPaymentRecords) -> Resolution {
    Resolution::new(verdict, None, Some(payment))
}

/// Payment records with the values `settled` at the verdict's block and `newest` at the newest one.
pub fn published_payments(settled: PaymentRecords, newest: PaymentRecords) -> Option<PublishedPaymentRecords> {
    let answer = |payment| {
        let (resolver, records) = ([1; 20].into(), std::iter::empty().collect());
        EnsAnswer::Records(ResolvedRecords { resolver, wildcard: None, offchain: false, records, payment })
    };
    let evidence = faultless_evidence(&good_card(), &Bytes::new(), Timestamp::UNIX_EPOCH);
    let reading = evidence.reading.expect("it was read");
    let latest = LatestNameState { answer: answer(newest), holder: reading.holder };
    PublishedPaymentRecords::from_reading(&NameReading { answer: answer(settled), latest: Some(Ok(latest)), ..reading })
}
