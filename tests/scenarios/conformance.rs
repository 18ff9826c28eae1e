//! The rules against the data as published: every card, schema and checksum of the corpus.
//!
//! The corpus is named by `CLRESOLVE_CORPUS`; without it these tests say so and pass.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clresolve_core::digest::Digest;
use clresolve_core::reason::{Reason, ReasonEffect};
use clresolve_core::records::{TextRecord, TextRecordKey, TextRecordSet};
use clresolve_verdict::card::AgentCard;
use clresolve_verdict::check;
use clresolve_verdict::check::schemas::check_schemas;
use clresolve_verdict::evidence::{CanonicalAndMirrorSchema, SchemaEvidence};
use clresolve_verdict::manifest::{SchemaReleaseManifest, SchemaRole};
use clresolve_verdict::profile::{ConformanceProfile, ConformanceProfiles, DEFAULT};
use clresolve_verdict::schema::StrictSchema;
use clresolve_verdict::schema::served::ServedSchema;
use serde_json::{Value, json};

use crate::support::corpus::corpus;

const RELEASED: &str = "agent-cards/1.0.0+released";
const NEXT: &str = "agent-cards/1.1.0";

/// Every JSON file below `folder`, in order.
fn json_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.sort();
    let below = |path: PathBuf| if path.is_dir() { json_files(&path) } else { vec![path] };
    paths.into_iter().flat_map(below).filter(|path| path.extension().is_some_and(|kind| kind == "json")).collect()
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn value(path: &Path) -> Value {
    serde_json::from_slice(&read(path)).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn profile(id: &str) -> Arc<ConformanceProfile> {
    ConformanceProfiles::builtin().get(id).expect("a profile that is built in")
}

/// What the steps card, entry and verbs find.
fn judge(bytes: &[u8], profile: &ConformanceProfile) -> Vec<Reason> {
    let card = match AgentCard::parse(bytes) {
        Ok(card) => card,
        Err(error) => return vec![error.to_card_reason()],
    };
    let steps = [check::card::check_card, check::entry::check_entry, check::verbs::check_verbs];
    steps.iter().flat_map(|step| step(&card, profile)).collect()
}

/// The codes of one effect, each once, in order.
fn codes(reasons: &[Reason], effect: ReasonEffect) -> Vec<&'static str> {
    let mut codes: Vec<_> = reasons.iter().filter(|r| r.effect == effect).map(|r| r.code.slug()).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

/// Asserts the codes of every card in a folder under a profile, and says how many cards there are.
fn expect(folder: &Path, profile_id: &str, fails: &[&str], warns: &[&str]) -> usize {
    let cards = json_files(folder);
    for path in &cards {
        let reasons = judge(&read(path), &profile(profile_id));
        assert_eq!(codes(&reasons, ReasonEffect::Fail), fails, "{} under {profile_id}: {reasons:#?}", path.display());
        assert_eq!(codes(&reasons, ReasonEffect::Warn), warns, "{} under {profile_id}: {reasons:#?}", path.display());
    }
    cards.len()
}

#[test]
fn cards_with_entry_v1_keep_the_letter() {
    let Some(corpus) = corpus("commandlayer") else { return };
    let agents = corpus.join("agent-cards-v1.0.0-entry-v1/agents/v1.0.0");
    let placeholder = ["schema-mirror-placeholder"];
    for id in [DEFAULT, RELEASED] {
        assert_eq!(expect(&agents.join("commons"), id, &[], &[]), 10);
    }
    assert_eq!(expect(&agents.join("commercial"), DEFAULT, &placeholder, &[]), 3);
    assert_eq!(expect(&agents.join("commercial"), RELEASED, &[], &placeholder), 3);
}

#[test]
fn cards_as_released_need_the_released_profile() {
    let Some(corpus) = corpus("commandlayer") else { return };
    let agents = corpus.join("agent-cards/agents/v1.0.0");
    let placeholder = "schema-mirror-placeholder";
    let route = "entry-version-noncompliant";
    assert_eq!(expect(&agents.join("commons"), DEFAULT, &[route], &[]), 10);
    assert_eq!(expect(&agents.join("commons"), RELEASED, &[], &[]), 10);
    assert_eq!(expect(&agents.join("commercial"), DEFAULT, &[route, placeholder], &[]), 3);
    assert_eq!(expect(&agents.join("commercial"), RELEASED, &[], &[placeholder]), 3);
}

#[test]
fn cards_of_the_next_line_are_not_cards_of_this_one() {
    let Some(corpus) = corpus("commandlayer") else { return };
    let cards = json_files(&corpus.join("agent-cards-v1.1.0/website/agent-cards/agents"));
    assert!(!cards.is_empty());
    for path in cards {
        for id in [DEFAULT, RELEASED] {
            let reasons = judge(&read(&path), &profile(id));
            let fails = codes(&reasons, ReasonEffect::Fail);
            let entry = |code: &&str| ["entry-malformed", "entry-version-noncompliant"].contains(code);
            assert!(fails.iter().any(entry), "{} under {id}: {fails:?}", path.display());
            for code in ["card-field-missing", "schema-uri-not-canonical"] {
                assert!(fails.contains(&code), "{} under {id}: {fails:?}", path.display());
            }
            assert!(!fails.contains(&"card-schema-invalid"), "each defect has a code of its own: {reasons:#?}");
        }
    }
}

#[test]
fn hosted_cards_of_the_next_line_pass_under_its_profile() {
    let Some(corpus) = corpus("commandlayer") else { return };
    let agents = corpus.join("agent-cards-v1.1.0/website/agent-cards/agents/v1.1.0");
    assert_eq!(expect(&agents.join("commons"), NEXT, &[], &[]), 10);
    assert_eq!(expect(&agents.join("commercial"), NEXT, &[], &[]), 2);
}

#[test]
fn early_cards_of_the_next_line_are_not_what_was_hosted() {
    let Some(corpus) = corpus("commandlayer") else { return };
    let agents = corpus.join("agent-cards-v1.1.0/repository/agents/v1.1.0");
    let cards = json_files(&agents);
    assert_eq!(cards.len(), 3);
    for path in cards {
        let fails = judge(&read(&path), &profile(NEXT));
        let fails = codes(&fails, ReasonEffect::Fail);
        for code in ["card-schema-invalid", "schema-uri-not-canonical"] {
            assert!(fails.contains(&code), "{}: {fails:?}", path.display());
        }
        let commons = path.to_string_lossy().contains("/commons/");
        assert_eq!(fails.contains(&"entry-malformed"), commons, "{}: {fails:?}", path.display());
    }
}

#[test]
fn cards_of_the_first_line_are_not_cards_of_the_next() {
    let Some(corpus) = corpus("commandlayer") else { return };
    for folder in ["agent-cards", "agent-cards-v1.0.0-entry-v1"] {
        for path in json_files(&corpus.join(folder).join("agents/v1.0.0")) {
            let reasons = judge(&read(&path), &profile(NEXT));
            assert!(!codes(&reasons, ReasonEffect::Fail).is_empty(), "{}", path.display());
        }
    }
}

#[test]
fn the_registry_of_the_next_line_agrees_with_its_manifests() {
    let Some(corpus) = corpus("commandlayer") else { return };
    let registry = value(&corpus.join("agent-cards-v1.1.0/website/agent-cards/meta/manifest.json"));
    let profile = profile(NEXT);
    let entries = registry["entries"].as_array().expect("a list");
    assert_eq!(entries.len(), 14);
    for entry in entries {
        let text = |member: &str| entry[member].as_str().expect("a text");
        let manifest = profile.class_rules(text("class")).expect("a known class").manifest();
        let verb = manifest.verb(text("verb")).expect("a known verb");
        assert_eq!(text("schema_request"), verb.request.canonical);
        assert_eq!(text("schema_receipt"), verb.receipt.canonical);
        assert_eq!((verb.request.sha256, verb.receipt.sha256), (None, None), "nothing of this line is pinned");
    }
    let commercial = value(&corpus.join("protocol-commercial/manifest.json"));
    let listed = commercial["verbs"].as_array().expect("a list");
    let known = profile.class_rules("commercial").expect("a known class").manifest();
    assert_eq!(listed.len(), known.verbs().len());
    for verb in listed {
        let known = known.verb(verb["verb"].as_str().expect("a name")).expect("a known verb");
        assert_eq!(
            (&verb["request_schema"], &verb["receipt_schema"]),
            (&json!(known.request.path), &json!(known.receipt.path))
        );
        let document = value(&corpus.join("protocol-commercial").join(&known.request.path));
        assert_eq!(document["$id"], json!(known.request.id));
    }
}

#[test]
fn no_published_card_trips_the_search_for_what_must_not_be_in_cards() {
    let Some(corpus) = corpus("commandlayer") else { return };
    let folders = ["agent-cards", "agent-cards-v1.0.0-entry-v1", "agent-cards-v1.1.0", "txt-record-sets/cards"];
    let files: Vec<_> = folders.iter().flat_map(|folder| json_files(&corpus.join(folder))).collect();
    assert!(files.len() > 40);
    for path in files
        .iter()
        .filter(|path| path.to_string_lossy().contains("/agents/") || path.ends_with("formatagent.eth.json"))
    {
        for reason in judge(&read(path), &profile(DEFAULT)) {
            let heuristic = ["secret-in-card", "private-address-in-card", "pii-in-card", "script-in-card"];
            assert!(!heuristic.contains(&reason.code.slug()), "{}: {reason:?}", path.display());
        }
    }
}

/// A card with each member taken away or replaced in many ways, and with one added.
fn variations(card: &Value) -> Vec<Value> {
    let odd = [
        json!(null),
        json!(true),
        json!(7),
        json!(""),
        json!(" "),
        json!("x"),
        json!("commons"),
        json!("no uri %"),
        json!("https://a.example/ü"),
        json!("x402://a/b/v1"),
        json!("x402://a/b/v1.0"),
        json!("x402://a/b/v1.2.3.4"),
        json!("x402://a/b/v1\n"),
        json!("x402://a/b/vX"),
        json!("2025-11-22"),
        json!("2025-11-22T00:00:00Z"),
        json!("2025-11-22t00:00:00.123456789012z"),
        json!("2025-11-22T23:59:60Z"),
        json!("2025-11-22T24:00:00Z"),
        json!("2025-11-22T00:00:00+24:00"),
        json!([]),
        json!(["x"]),
        json!([1]),
        json!({}),
        json!({"request": "https://a.example/"}),
        json!({"request": "https://a.example/", "receipt": "ipfs://b"}),
        json!({"request": "https://a.example/", "receipt": "ipfs://b", "other": 1}),
        json!({"request": "nothing", "receipt": 5}),
    ];
    let names: Vec<String> = card.as_object().expect("a card").keys().cloned().collect();
    let mut all = vec![card.clone()];
    for name in &names {
        let mut without = card.clone();
        without.as_object_mut().expect("a card").remove(name);
        all.push(without);
    }
    for name in names.iter().map(String::as_str).chain(["extra", "schemas_mirror"]) {
        for value in &odd {
            let mut other = card.clone();
            other[name] = value.clone();
            all.push(other);
        }
    }
    all
}

#[test]
fn our_base_schema_says_what_the_published_one_says() {
    let Some(corpus) = corpus("commandlayer") else { return };
    let folders =
        ["agent-cards/agents", "agent-cards-v1.0.0-entry-v1/agents", "agent-cards-v1.1.0", "txt-record-sets/cards"];
    let cards: Vec<_> = folders.iter().flat_map(|folder| json_files(&corpus.join(folder))).collect();
    for (id, path) in [
        (DEFAULT, "agent-cards/schemas/v1.0.0/_shared/agent.card.base.schema.json"),
        (NEXT, "agent-cards-v1.1.0/repository/schemas/v1.1.0/agent.card.schema.json"),
    ] {
        let published = StrictSchema::compile(&read(&corpus.join(path)), &[]).expect("the published schema is strict");
        let profile = profile(id);
        let (mut accepted, mut refused) = (0, 0);
        for path in &cards {
            for variation in variations(&value(path)) {
                let expected = published.accepts(&variation);
                let ours = profile.base_schema().accepts(&variation);
                assert_eq!(ours, expected, "{} under {id}: {variation:#}", path.display());
                *(if expected { &mut accepted } else { &mut refused }) += 1;
            }
        }
        assert!(refused > 1000 && accepted > 100, "{id}: {accepted} accepted, {refused} refused");
    }
}

#[test]
fn what_the_base_schema_refuses_has_a_code() {
    let Some(corpus) = corpus("commandlayer") else { return };
    for (id, agents) in
        [(DEFAULT, "agent-cards-v1.0.0-entry-v1/agents"), (NEXT, "agent-cards-v1.1.0/website/agent-cards/agents")]
    {
        let profile = profile(id);
        for path in json_files(&corpus.join(agents)) {
            for variation in variations(&value(&path)) {
                let reasons = judge(variation.to_string().as_bytes(), &profile);
                let accepted = profile.base_schema().accepts(&variation);
                assert!(
                    accepted || reasons.iter().any(|reason| reason.effect == ReasonEffect::Fail),
                    "{id}: {variation:#}"
                );
            }
        }
    }
}

/// The digests of a `checksums.txt`: `<64 hex>`, a space, a space or `*`, a path.
fn checksums(path: &Path) -> BTreeMap<String, Digest> {
    let text = String::from_utf8(read(path)).expect("UTF-8");
    let line = |line: &str| {
        let (digest, path) = line.split_once(' ').expect("a digest and a path");
        (path[1..].to_owned(), digest.parse().expect("a digest"))
    };
    text.lines().map(line).collect()
}

struct Pinned {
    path: String,
    id: String,
    bytes: usize,
    sha256: Digest,
    published_crlf: Option<Digest>,
}

fn pinned(manifest: &SchemaReleaseManifest) -> Vec<Pinned> {
    let bound =
        manifest.verbs().iter().flat_map(|verb| SchemaRole::ALL.map(|side| verb.schema(side))).map(|schema| Pinned {
            path: schema.path.clone(),
            id: schema.id.clone(),
            bytes: schema.bytes.expect("pinned"),
            sha256: schema.sha256.expect("pinned"),
            published_crlf: schema.published_crlf_sha256,
        });
    let shared = manifest.shared_schemas().iter().map(|schema| Pinned {
        path: schema.path.clone(),
        id: schema.id.clone(),
        bytes: schema.bytes,
        sha256: schema.sha256,
        published_crlf: schema.published_crlf_sha256,
    });
    bound.chain(shared).collect()
}

fn crlf(bytes: &[u8]) -> Vec<u8> {
    String::from_utf8(bytes.to_vec()).expect("UTF-8").replace('\n', "\r\n").into_bytes()
}

#[test]
fn every_figure_of_the_manifests_comes_from_the_published_files() {
    let Some(corpus) = corpus("commandlayer") else { return };
    let mut seen = 0;
    for manifest in profile(DEFAULT).manifests() {
        let (repository, _) = manifest.id().split_once('/').expect("a layer and a release");
        let root = corpus.join(repository);
        let published = checksums(&root.join("checksums.txt"));
        let pinned = pinned(manifest);
        let files: Vec<_> = json_files(&root.join("schemas/v1.0.0"));
        assert_eq!(pinned.len(), files.len(), "{} names every schema", manifest.id());
        for schema in pinned {
            let bytes = read(&root.join(&schema.path));
            assert_eq!((schema.bytes, schema.sha256), (bytes.len(), Digest::compute(&bytes)), "{}", schema.path);
            assert_eq!(schema.published_crlf, published.get(&schema.path).copied(), "{}", schema.path);
            assert!(
                schema.published_crlf.is_none_or(|digest| digest == Digest::compute(&crlf(&bytes))),
                "{}",
                schema.path
            );
            let document: Value = serde_json::from_slice(&bytes).expect("JSON");
            assert_eq!(document["$id"], json!(schema.id), "{}", schema.path);
            seen += 1;
        }
    }
    assert_eq!(seen, 25 + 16);
}

#[test]
fn verbs_locations_and_categories_are_the_published_ones() {
    let Some(corpus) = corpus("commandlayer") else { return };
    let published = value(&corpus.join("protocol-commons/manifest.json"));
    let profile = profile(DEFAULT);
    let commons = profile.class_rules("commons").expect("a known class").manifest();
    assert_eq!(published["schemas_cid"].as_str(), commons.directory_cid());
    let verbs = published["verbs"].as_array().expect("a list");
    assert_eq!(verbs.len(), commons.verbs().len());
    for verb in verbs {
        let known = commons.verb(verb["name"].as_str().expect("a name")).expect("a known verb");
        assert_eq!(verb["category"].as_str(), known.category.as_deref());
        assert_eq!(verb["request_schema"], json!(known.request.path));
        assert_eq!(verb["receipt_schema"], json!(known.receipt.path));
    }
    for path in json_files(&corpus.join("agent-cards/agents")) {
        let card = AgentCard::parse(&read(&path)).expect("a card");
        let layer = profile.class_rules(card.class().expect("a class")).expect("a known class");
        let verb = layer.manifest().verb(card.primary_verb().expect("a verb")).expect("a known verb");
        for side in SchemaRole::ALL {
            assert_eq!(card.schema_location(side), Some(verb.schema(side).canonical.as_str()), "{}", path.display());
        }
    }
}

#[test]
fn protocol_schemas_are_strict_and_judge_the_examples_as_their_folders_say() {
    let Some(corpus) = corpus("commandlayer") else { return };
    let mut judged = 0;
    for manifest in profile(DEFAULT).manifests() {
        let (repository, _) = manifest.id().split_once('/').expect("a layer and a release");
        let root = corpus.join(repository);
        let shared: Vec<_> = manifest.shared_schemas().iter().map(|schema| value(&root.join(&schema.path))).collect();
        for verb in manifest.verbs() {
            let load = |side: SchemaRole| StrictSchema::compile(&read(&root.join(&verb.schema(side).path)), &shared);
            let request = load(SchemaRole::Request).unwrap_or_else(|e| panic!("{}: {e}", verb.request.path));
            let receipt = load(SchemaRole::Receipt).unwrap_or_else(|e| panic!("{}: {e}", verb.receipt.path));
            let examples = root.join("examples/v1.0.0").join(manifest.class()).join(&verb.name);
            for path in json_files(&examples) {
                let name = path.file_name().expect("a file").to_string_lossy().into_owned();
                let schema = if name.contains(".request.") { &request } else { &receipt };
                assert_eq!(schema.accepts(&value(&path)), name.contains(".valid."), "{}", path.display());
                judged += 1;
            }
        }
    }
    assert_eq!(judged, 4 * 15);
}

#[test]
fn the_documented_records_of_formatagent_bind_the_published_schemas() {
    let Some(corpus) = corpus("commandlayer") else { return };
    let card = read(&corpus.join("agent-cards-v1.0.0-entry-v1/agents/v1.0.0/commons/formatagent.eth.json"));
    let card = AgentCard::parse(&card).expect("a card");
    let documented = value(&corpus.join("txt-record-sets/formatagent.eth.observed.json"));
    let text = |(key, text): (&String, &Value)| {
        Some((TextRecordKey::from_name(key)?, TextRecord::Text(text.as_str().expect("a text").to_owned())))
    };
    let records: TextRecordSet = documented["txt"].as_object().expect("records").iter().filter_map(text).collect();
    let bound = |side: &str| {
        let path = format!("protocol-commons/schemas/v1.0.0/commons/format/{side}s/format.{side}.schema.json");
        let served = ServedSchema::from_bytes(read(&corpus.join(path)).into());
        CanonicalAndMirrorSchema { canonical: Ok(served.clone()), mirror: Some(Ok(served)) }
    };
    let evidence = SchemaEvidence { request: bound("request"), receipt: bound("receipt") };
    let reasons = check_schemas(&card, &evidence, &records, &profile(DEFAULT));
    let found: Vec<_> = reasons.iter().map(|reason| (reason.code.slug(), reason.place.as_deref())).collect();
    assert_eq!(found, [("schema-txt-missing", Some("cl.schemas.mirror.ipfs"))]);
}
