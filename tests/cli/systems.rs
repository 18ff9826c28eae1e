//! The rules of every card system: one scenario per requirement as data (`tests/scenarios/systems/`), and the published
//! cards.
//!
//! Each test reports all of its failures at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use clresolve_cards::convert::convert_card;
use clresolve_cards::ledger::{PacrDecayRate, PacrLedger, PacrLedgerMetrics};
use clresolve_cards::lint::{self, CardLintReport};
use clresolve_cards::system::{CardLintContext, CardSystem, CardSystemDetection, detect_card_system};
use clresolve_core::json::pointer;
use clresolve_core::reason::{ReasonCode, ReasonEffect, ResolutionStep};
use clresolve_verdict::card::AgentCard;
use clresolve_verdict::profile::{ConformanceProfile, ConformanceProfiles, DEFAULT};
use clresolve_verdict::schema::StrictSchema;
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::corpus::corpus;

/// The systems with rows in `tests/scenarios/systems/`, with the prefixes of their requirements and codes, and the
/// number of requirements.
const SYSTEMS: [(CardSystem, &str, &str, u32); 4] = [
    (CardSystem::Aevum, "AE", "ae-", 23),
    (CardSystem::Anypoint, "AN", "an-", 23),
    (CardSystem::Orloj, "OR", "or-", 17),
    (CardSystem::A2a, "A2A", "a2a-", 0),
];

/// Requirements that no document can demonstrate, with the reason.
const NOT_SHOWN: [(&str, &str); 6] = [
    ("AE-20", "where a host's card is looked for: a matter of discovery"),
    ("AN-20", "where a host's card is looked for: a matter of discovery"),
    ("OR-4", "where a host's card is looked for: a matter of discovery"),
    ("OR-5", "where a host's card is looked for: a matter of discovery"),
    ("OR-6", "what is sent to a host: a matter of discovery"),
    ("AN-22", "what a name is unique among is not seen in a card"),
];

/// Requirements whose numbers do not continue those of their system.
const FURTHER: [&str; 2] = ["AE-30", "AE-31"];

/// Codes for documents that belong to no single system. Other tests cover them.
const OF_NO_SYSTEM: [ReasonCode; 2] = [ReasonCode::FlavourUnknown, ReasonCode::FlavourAmbiguous];

/// A file of rows: a good card and changes to it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rows {
    #[serde(rename = "flavour")]
    system: CardSystem,
    /// The version of the card's format.
    version: String,
    /// The good card, as JSON.
    card: String,
    row: Vec<Row>,
}

/// A change to the good card, and the expected findings.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    requirement: String,
    about: String,
    #[serde(flatten)]
    edit: Edit,
    /// Changes to the good card that yield the earlier card.
    previous: Option<Edit>,
    /// A ledger with one record per line, for the rule about claimed figures.
    ledger: Option<String>,
    /// The exact set of codes of the findings.
    #[serde(default)]
    codes: BTreeSet<ReasonCode>,
    /// Whether the card is valid. By default it is valid if no code has the effect `fail` in the registry.
    valid: Option<bool>,
    /// The locations of the findings, if they matter.
    at: Option<BTreeSet<String>>,
}

/// Changes by JSON Pointer. A pointer that ends in `/-` adds to a list.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Edit {
    drop: Vec<String>,
    set: BTreeMap<String, Value>,
    /// TOML has no null.
    null: Vec<String>,
    /// Sets texts with these numbers of characters, of two bytes each.
    length: BTreeMap<String, usize>,
}

impl Edit {
    fn apply(&self, card: &str) -> Value {
        let mut card: Value = serde_json::from_str(card).expect("the good card is JSON");
        for place in &self.drop {
            let (holder, name) = split(&mut card, place);
            match holder {
                Value::Object(members) => drop(members.remove(&name).expect("what is dropped is there")),
                Value::Array(items) => drop(items.remove(name.parse().expect("an index"))),
                _ => panic!("{place} is in no container"),
            }
        }
        let texts = self.length.iter().map(|(place, length)| (place, Value::from("ü".repeat(*length))));
        let nulls = self.null.iter().map(|place| (place, Value::Null));
        let values = self.set.iter().map(|(place, value)| (place, value.clone()));
        for (place, value) in values.chain(nulls).chain(texts) {
            let (holder, name) = split(&mut card, place);
            match holder {
                Value::Object(members) => drop(members.insert(name, value)),
                Value::Array(items) if name == "-" => items.push(value),
                Value::Array(items) => items[name.parse::<usize>().expect("an index")] = value,
                _ => panic!("{place} is in no container"),
            }
        }
        card
    }
}

/// The parent of the value at `place`, and its key in the parent.
fn split<'c>(card: &'c mut Value, place: &str) -> (&'c mut Value, String) {
    let (holder, name) = place.rsplit_once('/').expect("a JSON Pointer");
    let holder = card.pointer_mut(holder).unwrap_or_else(|| panic!("{holder} is in the good card"));
    (holder, name.replace("~1", "/").replace("~0", "~"))
}

fn rows(system: CardSystem) -> Rows {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/scenarios/systems/{system}.toml"));
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let rows: Rows = toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert_eq!(rows.system, system);
    rows
}

fn profile() -> Arc<ConformanceProfile> {
    ConformanceProfiles::builtin().get(DEFAULT).expect("built in")
}

/// The figures of a ledger at a time after all of its records.
fn figures(lines: &str) -> PacrLedgerMetrics {
    let mut ledger = PacrLedger::default();
    lines.lines().for_each(|line| ledger.add_line(line.as_bytes()).expect("a record"));
    ledger
        .compute_metrics("2026-11-21T00:00:00Z".parse().expect("a time"), PacrDecayRate::default())
        .expect("few links")
}

fn card(document: &Value) -> AgentCard {
    AgentCard::parse(document.to_string().as_bytes()).expect("strict JSON")
}

fn codes(report: &CardLintReport) -> BTreeSet<ReasonCode> {
    report.findings.iter().map(|finding| finding.code).collect()
}

fn places(report: &CardLintReport) -> BTreeSet<String> {
    report.findings.iter().filter_map(|finding| finding.pointer.clone()).collect()
}

/// Panics with all failures if there are any.
fn none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn rows_give_their_codes_and_no_others() {
    let profile = profile();
    let mut wrong = Vec::new();
    for (system, ..) in SYSTEMS {
        let rows = rows(system);
        for row in &rows.row {
            let previous = row.previous.as_ref().map(|edit| card(&edit.apply(&rows.card)));
            let ledger = row.ledger.as_deref().map(figures);
            let rules = CardLintContext {
                previous: previous.as_ref(),
                ledger: ledger.as_ref(),
                ..CardLintContext::from_profile(&profile)
            };
            let text = format!("{:#}", row.edit.apply(&rows.card));
            let report = lint::lint_document(text.as_bytes(), Some(system), &rules);
            let fails = |code: &ReasonCode| code.entry().effect == ReasonEffect::Fail;
            let valid = row.valid.unwrap_or_else(|| !row.codes.iter().any(fails));
            let found = (codes(&report), report.valid);
            if found != (row.codes.clone(), valid) || row.at.as_ref().is_some_and(|at| *at != places(&report)) {
                let (name, about) = (&row.requirement, &row.about);
                wrong.push(format!("{system} {name}, {about}\n    expected {:?}, valid: {valid}", row.codes));
                wrong.push(format!("    found {found:?} at {:?}", places(&report)));
            }
            for finding in &report.findings {
                if finding.line.is_none() || finding.message.is_empty() {
                    wrong.push(format!("{system} {}: {} has no place or no sentence", row.about, finding.code));
                }
            }
        }
    }
    none(&wrong);
}

#[test]
fn no_crowd_of_warnings_hides_a_failure() {
    let mut card: Value = serde_json::from_str(&rows(CardSystem::Orloj).card).expect("JSON");
    let skill = |number| json!({"id": format!("t{number}"), "name": "t", "description": ""});
    card["skills"] = (0..200).map(skill).collect();
    card["version"] = 5.into();
    let judged = |card: &Value| {
        lint::lint_document(card.to_string().as_bytes(), None, &CardLintContext::from_profile(&profile()))
    };
    assert!(codes(&judged(&card)).contains(&ReasonCode::OrVersionType));
    card["version"] = "1".into();
    assert!(judged(&card).valid);
    card["skills"].as_array_mut().expect("a list").push(json!({"id": 5}));
    assert!(!judged(&card).valid);
}

#[test]
fn good_cards_have_no_finding_and_are_told_by_their_shape() {
    let profile = profile();
    for (system, ..) in SYSTEMS {
        let rows = rows(system);
        let report = lint::lint_document(rows.card.as_bytes(), None, &CardLintContext::from_profile(&profile));
        assert_eq!((report.system, report.version), (Some(system), Some(rows.version)), "{system}");
        assert_eq!(report.findings, [], "{system}");
    }
}

/// Members of the good cards without a rule: only the schema checks their types.
const WITHOUT_RULE: [(CardSystem, &[&str]); 4] = [
    (CardSystem::Aevum, &["/endpoint/auth/token_url"]),
    (
        CardSystem::Anypoint,
        &[
            "/author",
            "/capabilities/domains",
            "/capabilities/domains/0",
            "/capabilities/rate_limit",
            "/examples/0/description",
            "/license",
            "/metadata/categories",
            "/metadata/categories/0",
            "/metadata/tags",
            "/metadata/tags/0",
            "/skills/0/mcp_server",
            "/skills/0/mcp_tool",
            "/skills/0/parameters",
            "/skills/0/returns",
        ],
    ),
    (CardSystem::Orloj, &["/description", "/provider/organization", "/skills/0/tags", "/skills/0/tags/0"]),
    (
        CardSystem::A2a,
        &["/capabilities", "/capabilities/streaming", "/description", "/name", "/provider/organization", "/version"],
    ),
];

/// The locations of a card's values. Only the first item of each list is visited.
fn every_place(value: &Value, at: &str, places: &mut BTreeSet<String>) {
    let mut further = |name: &str, inner: &Value| {
        let place = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
        places.insert(place.clone());
        every_place(inner, &place, places);
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(name, inner)| further(name, inner)),
        Value::Array(items) => items.iter().take(1).for_each(|item| further("0", item)),
        _ => {}
    }
}

/// An invalid value of a member with a rule never yields only the code of the schema.
#[test]
fn a_wrong_type_of_a_member_with_a_rule_gives_that_rules_code() {
    let (profile, mut wrong) = (profile(), Vec::new());
    for (system, ..) in SYSTEMS {
        let good: Value = serde_json::from_str(&rows(system).card).expect("the good card is JSON");
        let (mut places, mut without) = (BTreeSet::new(), BTreeSet::new());
        every_place(&good, "", &mut places);
        for place in &places {
            for other in [json!(null), json!(7), json!("x"), json!(true), json!([]), json!({})] {
                let set = BTreeMap::from([(place.clone(), other)]);
                let text = Edit { set, ..Edit::default() }.apply(&good.to_string()).to_string();
                let found = codes(&lint::lint_document(
                    text.as_bytes(),
                    Some(system),
                    &CardLintContext::from_profile(&profile),
                ));
                if found.contains(&ReasonCode::DocumentSchemaInvalid) {
                    without.insert(place.as_str());
                }
            }
        }
        let (_, listed) = WITHOUT_RULE.iter().find(|(listed, _)| *listed == system).expect("a list for each system");
        let listed: BTreeSet<&str> = listed.iter().copied().collect();
        wrong.extend((without != listed).then(|| format!("{system}: {without:#?}")));
    }
    none(&wrong);
}

#[test]
fn every_requirement_has_a_row() {
    let mut wrong = Vec::new();
    for (system, prefix, _, count) in SYSTEMS {
        let named: BTreeSet<String> = rows(system).row.into_iter().map(|row| row.requirement).collect();
        let further = FURTHER.iter().filter(|id| id.starts_with(&format!("{prefix}-"))).map(|id| (*id).to_owned());
        for id in (1..=count).map(|number| format!("{prefix}-{number}")).chain(further) {
            let excepted = NOT_SHOWN.iter().any(|(not_shown, _)| *not_shown == id);
            if named.contains(&id) == excepted {
                wrong.push(format!("{id}: {}", if excepted { "shown after all" } else { "no row" }));
            }
        }
        wrong
            .extend(named.iter().filter(|id| !id.starts_with(&format!("{prefix}-"))).map(|id| format!("{id}: whose?")));
    }
    none(&wrong);
}

/// A row fails unless all of its codes are found, so it is enough that each code occurs in a row.
#[test]
fn every_code_of_documents_is_expected_by_a_row() {
    let rows: Vec<Rows> = SYSTEMS.iter().map(|(system, ..)| rows(*system)).collect();
    let expected: BTreeSet<ReasonCode> =
        rows.iter().flat_map(|rows| &rows.row).flat_map(|row| row.codes.clone()).collect();
    let missing: Vec<String> = ReasonCode::ALL
        .iter()
        .filter(|code| code.entry().step == ResolutionStep::Document)
        .filter(|code| !OF_NO_SYSTEM.contains(code) && !expected.contains(code))
        .map(|code| format!("{code}: no row expects it"))
        .collect();
    none(&missing);
}

#[test]
fn codes_have_the_prefix_of_their_system() {
    let mut wrong = Vec::new();
    for (system, prefix, slug, _) in SYSTEMS {
        for code in rows(system).row.into_iter().flat_map(|row| row.codes) {
            let entry = code.entry();
            let of_rule = system == CardSystem::A2a || entry.requirement.starts_with(&format!("{prefix}-"));
            let own = code.slug().starts_with(slug) && of_rule;
            if !own && ![ReasonCode::DocumentSchemaInvalid, ReasonCode::SecretInCard].contains(&code) {
                wrong.push(format!("{system}: {code} ({})", entry.requirement));
            }
        }
    }
    none(&wrong);
}

/// AE-17, AE-30.
#[test]
fn aevum_pacr_members_are_reported_and_decide_nothing() {
    for (name, value) in [
        ("interaction_count", "-1"),
        ("interaction_count", "\"x\""),
        ("avg_latency_ms", "-1"),
        ("influence_rank", "{}"),
    ] {
        let mut document: Value = serde_json::from_str(&rows(CardSystem::Aevum).card).expect("JSON");
        document["metadata"] = json!({format!("pacr:{name}"): serde_json::from_str::<Value>(value).expect("JSON")});
        let report = lint::lint_document(
            document.to_string().as_bytes(),
            Some(CardSystem::Aevum),
            &CardLintContext::from_profile(&profile()),
        );
        assert!(report.valid, "{name} {value}");
        let expected = BTreeSet::from([ReasonCode::AePacrSelfDeclared, ReasonCode::AePacrType]);
        assert_eq!(codes(&report), expected, "{name} {value}");
    }
}

/// AE-22, strictly.
#[test]
fn aevum_unknown_members_are_refused_where_the_profile_says_so() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/profiles/agent-cards-1.0.0.json");
    let text = fs::read_to_string(path).expect("a profile");
    let strict = text.replacen("\"agent-cards/1.0.0\"", "\"agent-cards/1.0.0+strict\"", 1).replacen(
        "\"effects\": {}",
        "\"effects\": {\"ae-unknown-member\": \"fail\"}",
        1,
    );
    let mut profiles = ConformanceProfiles::builtin();
    let strict = profiles.add_profile(strict.as_bytes()).expect("a profile");
    let set = BTreeMap::from([("/further".to_owned(), Value::from(1))]);
    let card = Edit { set, ..Edit::default() }.apply(&rows(CardSystem::Aevum).card).to_string();
    let valid = |profile: &ConformanceProfile| {
        lint::lint_document(card.as_bytes(), None, &CardLintContext::from_profile(profile)).valid
    };
    assert_eq!((valid(&profile()), valid(&strict)), (true, false));
}

#[test]
fn the_shape_tells_also_of_broken_cards() {
    for (system, text) in [
        (CardSystem::Aevum, r#"{"spec": "agentcard-spec/0.1.0", "capabilities": [{"name": "a.b"}]}"#),
        (CardSystem::Aevum, r#"{"name": "x", "endpoint": {"protocol": "native", "url": "y"}}"#),
        (CardSystem::Aevum, r#"{"metadata": {"pacr:critical_score": 1}}"#),
        (CardSystem::Aevum, r#"{"pricing": {"base_cost_joules": 1}}"#),
        (CardSystem::Anypoint, r#"{"name": "x", "skills": [], "capabilities": {"input_modes": ["text"]}}"#),
        (CardSystem::Anypoint, r#"{"skills": [{"name": "a", "mcp_tool": "b"}]}"#),
        (CardSystem::Anypoint, r#"{"invocation": {}, "capabilities": ["streaming"]}"#),
        (CardSystem::Anypoint, r#"{"examples": [{"skill": "a"}]}"#),
    ] {
        let card = AgentCard::parse(text.as_bytes()).expect("strict JSON");
        assert_eq!(detect_card_system(&card), CardSystemDetection::One(system), "{text}");
    }
}

/// A good card with members that its system does not define (AE-19, OR-16, and the same for other systems).
fn with_unknown_members(system: CardSystem) -> Value {
    let places: &[&str] = match system {
        CardSystem::Aevum => &["", "/capabilities/0", "/endpoint", "/endpoint/auth", "/pricing", "/metadata"],
        CardSystem::Anypoint => {
            &["", "/skills/0", "/capabilities", "/invocation", "/invocation/authentication", "/examples/0", "/metadata"]
        }
        CardSystem::Orloj => &["", "/skills/0", "/capabilities", "/authentication", "/provider"],
        _ => &["", "/skills/0", "/capabilities", "/capabilities/extensions/0", "/supportedInterfaces/0", "/provider"],
    };
    let set = places.iter().map(|place| (format!("{place}/further"), Value::from(1))).collect();
    Edit { set, ..Edit::default() }.apply(&rows(system).card)
}

#[test]
fn unknown_members_are_kept_and_are_no_defect() {
    for (system, ..) in SYSTEMS {
        let document = with_unknown_members(system);
        let converted = convert_card(&card(&document), system, system, &CardLintContext::from_profile(&profile()));
        assert_eq!((&converted.card, converted.lost.as_slice()), (&document, &[][..]), "{system}");
        let found: Vec<_> = converted.report.findings.iter().map(|finding| (finding.code, finding.effect)).collect();
        // Aevum asks readers to report them (AE-22), except where operators may add their own members (AE-19).
        let expected = if system == CardSystem::Aevum {
            vec![(ReasonCode::AeUnknownMember, ReasonEffect::Warn); 4]
        } else {
            vec![]
        };
        assert_eq!(found, expected, "{system}");
    }
}

/// Compares every card of a folder with the expected version, validity and codes. Every card must be listed.
fn published(folder: &str, system: CardSystem, said: &[(&str, &str, bool, &[&str])]) {
    let Some(root) = corpus(folder) else { return };
    let root = root.join("examples");
    let mut names: BTreeSet<String> = fs::read_dir(&root)
        .expect("a folder of cards")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    let mut wrong = Vec::new();
    for (name, version, valid, expected) in said {
        assert!(names.remove(*name), "{name} is not there, or named twice");
        let bytes = fs::read(root.join(name)).expect("a card is readable");
        let report = lint::lint_document(&bytes, None, &CardLintContext::from_profile(&profile()));
        let codes = codes(&report);
        let found: Vec<&str> = codes.iter().map(|code| code.slug()).collect();
        let found = (report.system, report.version.as_deref(), report.valid, found);
        let expected = (Some(system), Some(*version), *valid, expected.to_vec());
        if found != expected {
            wrong.push(format!("{name}\n    expected {expected:?}\n    found    {found:?}"));
        }
    }
    wrong.extend(names.iter().map(|name| format!("nothing is said of {name}")));
    none(&wrong);
}

#[test]
fn aevum_published_cards() {
    published(
        "aevum",
        CardSystem::Aevum,
        &[
            ("llm-agent.json", "1.0", true, &["ae-pacr-self-declared"]),
            ("data-pipeline-agent.json", "1.0", false, &["ae-agent-id-malformed", "ae-pacr-self-declared"]),
            (
                "nonconforming-well-known-agent.json",
                "0.1.0",
                false,
                &[
                    "ae-agent-id-malformed",
                    "ae-capability-incomplete",
                    "ae-protocol-unknown",
                    "ae-url-malformed",
                    "ae-unknown-member",
                ],
            ),
        ],
    );
}

#[test]
fn anypoint_published_cards() {
    published(
        "anypoint",
        CardSystem::Anypoint,
        &[
            ("tide-forecaster.authored.json", "1.0", true, &[]),
            ("invoice-splitter-minimal.authored.json", "1.0", true, &[]),
            ("invalid-short-description.authored.json", "1.0", false, &["an-description-length"]),
            (
                "invalid-skill-name-not-snake-case.authored.json",
                "1.0",
                false,
                &["an-skill-name-malformed", "an-example-skill-unknown"],
            ),
            ("invalid-bad-protocol.authored.json", "1.0", false, &["an-protocol-unknown"]),
            ("invalid-example-names-unknown-skill.authored.json", "1.0", true, &["an-example-skill-unknown"]),
        ],
    );
}

/// The requirements of the rows on which a published schema and our rules differ.
fn judged_otherwise(folder: &str, schema: &str, system: CardSystem) -> Option<BTreeSet<String>> {
    let bytes = fs::read(corpus(folder)?.join(schema)).expect("the schema is readable");
    let schema = StrictSchema::compile(&bytes, &[]).expect("a strict schema");
    let rows = rows(system);
    let differs = |row: &&Row| {
        let document = row.edit.apply(&rows.card);
        let valid = lint::lint_document(
            document.to_string().as_bytes(),
            Some(system),
            &CardLintContext::from_profile(&profile()),
        )
        .valid;
        valid != schema.accepts(&document)
    };
    Some(rows.row.iter().filter(differs).map(|row| row.requirement.clone()).collect())
}

/// The schema has no minimum of costs, takes any object for a schema, refuses upper case in an id and a long currency,
/// judges `pacr:` members, and refuses unknown members.
#[test]
fn aevum_rules_differ_from_the_published_schema_where_the_text_does() {
    let Some(found) = judged_otherwise("aevum", "schema.json", CardSystem::Aevum) else { return };
    assert_eq!(
        found.iter().map(String::as_str).collect::<Vec<_>>(),
        ["AE-11", "AE-15", "AE-17", "AE-22", "AE-23", "AE-30", "AE-31", "AE-8"]
    );
}

/// The schema accepts any two letters as a language, only RFC 3339 as ISO 8601, URLs without a host or with an invalid
/// port, and skills of one name.
#[test]
fn anypoint_rules_differ_from_the_derived_schema_where_the_text_does() {
    let Some(found) = judged_otherwise("anypoint", "agent-card.derived.schema.json", CardSystem::Anypoint) else {
        return;
    };
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), ["AN-11", "AN-15", "AN-16", "AN-23", "AN-8"]);
}

/// The expected report on a published card: path, system, version, valid, codes.
type ExpectedReport = (&'static str, Option<CardSystem>, Option<&'static str>, bool, &'static [&'static str]);

#[test]
fn orloj_and_a2a_published_cards() {
    const A2A: Option<CardSystem> = Some(CardSystem::A2a);
    const MODES: &[&str] = &["a2a-mode-not-media-type"];
    const SAID: [ExpectedReport; 17] = [
        ("orloj/examples/research-system.json", Some(CardSystem::Orloj), Some("0.2"), true, &[]),
        ("orloj/examples/generated-v1.authored.json", Some(CardSystem::Orloj), Some("1.0"), true, &[]),
        ("a2a/samples/adk_skills_agent.v1.json", A2A, Some("1.0"), true, MODES),
        ("a2a/samples/air_ticketing_agent.json", A2A, Some("0.2.0"), true, MODES),
        ("a2a/samples/car_rental_agent.json", A2A, Some("0.2.0"), true, MODES),
        ("a2a/samples/orchestrator_agent.json", A2A, Some("0.2.0"), true, MODES),
        ("a2a/v0.2.6/spec-sample-card.json", A2A, Some("0.2.6"), true, &[]),
        ("a2a/v0.3.0/spec-sample-card.json", A2A, Some("0.3"), true, &[]),
        ("a2a/v1.0.1/spec-sample-card.json", A2A, Some("1.0"), true, &["a2a-security-misnamed"]),
        ("a2a/v1.0.1/extensions-card.json", A2A, Some("0.2.0"), true, &[]),
        ("a2a/v1.0.1/multi-tenancy-1.json", A2A, Some("1.0"), false, &["a2a-field-missing"]),
        ("a2a/v1.0.1/signed-eddsa.authored.json", A2A, Some("1.0"), true, &[]),
        ("a2a/v1.0.1/signed-eddsa-tampered.authored.json", A2A, Some("1.0"), true, &[]),
        ("a2a/v1.0.1/signed-es256.authored.json", A2A, Some("1.0"), true, &[]),
        ("a2a/v1.0.1/signed-es256-tampered.authored.json", A2A, Some("1.0"), true, &[]),
        ("a2a/v1.0.1/jcs-example-input.json", None, None, false, &["flavour-unknown"]),
        ("a2a/v1.0.1/jcs-example-canonical.json", None, None, false, &["flavour-unknown"]),
    ];
    let Some(root) = corpus("") else { return };
    let mut wrong = Vec::new();
    for (name, system, version, valid, expected) in SAID {
        let bytes = fs::read(root.join(name)).expect("a card is readable");
        let report = lint::lint_document(&bytes, None, &CardLintContext::from_profile(&profile()));
        let codes = codes(&report);
        let found: Vec<&str> = codes.iter().map(|code| code.slug()).collect();
        let found = (report.system, report.version.as_deref(), report.valid, found);
        let expected = (system, version, valid, expected.to_vec());
        if found != expected {
            wrong.push(format!("{name}\n    expected {expected:?}\n    found    {found:?}"));
        }
    }
    none(&wrong);
}

/// Compares the published schemas with our full check. For each published card, each member is removed and replaced by
/// a value of another type; the result must fail both or neither.
#[test]
fn mutated_cards_are_judged_as_by_the_published_schemas() {
    const PAIRS: [(&str, &str, &str, CardSystem); 5] = [
        ("a2a/v0.2.0/a2a.json", "#/definitions/AgentCard", "a2a/samples/car_rental_agent.json", CardSystem::A2a),
        ("a2a/v0.2.6/a2a.json", "#/definitions/AgentCard", "a2a/v0.2.6/spec-sample-card.json", CardSystem::A2a),
        ("a2a/v0.3.0/a2a.json", "#/definitions/AgentCard", "a2a/v0.3.0/spec-sample-card.json", CardSystem::A2a),
        ("a2a/v1.0.1/agent-card.derived.schema.json", "", "a2a/v1.0.1/spec-sample-card.json", CardSystem::A2a),
        ("orloj/agent-card.derived.schema.json", "", "orloj/examples/research-system.json", CardSystem::Orloj),
    ];
    // Rules that are stricter than the published schemas, and members that identify the version.
    const FURTHER: [ReasonCode; 6] = [
        ReasonCode::A2aUrlMalformed,
        ReasonCode::A2aSecurityUnknown,
        ReasonCode::A2aSecurityMisnamed,
        ReasonCode::A2aProtocolVersionUnknown,
        ReasonCode::A2aExtensionMalformed,
        ReasonCode::OrInputSchemaInvalid,
    ];
    const TELLS: [&str; 4] = ["/supportedInterfaces", "/protocolVersion", "/signatures", "/url"];
    let Some(root) = corpus("") else { return };
    let read = |name: &str| -> Value {
        serde_json::from_slice(&fs::read(root.join(name)).expect("it is readable")).expect("JSON")
    };
    let (mut wrong, mut tried) = (Vec::new(), 0);
    for (schema, part, name, system) in PAIRS {
        let mut schema = read(schema);
        if !part.is_empty() {
            schema["$ref"] = Value::from(part);
        }
        let theirs = jsonschema::options().should_validate_formats(true).build(&schema).expect("a schema");
        let good = read(name);
        let mut places = Vec::new();
        pointers(&good, "", &mut places);
        for place in places.iter().filter(|place| system != CardSystem::A2a || !TELLS.contains(&place.as_str())) {
            let others = [Value::Null, true.into(), 5.into(), "x".into(), json!([5]), json!({"k": 5})];
            let mut mutants: Vec<Value> = others
                .into_iter()
                .map(|value| Edit { set: BTreeMap::from([(place.clone(), value)]), ..Edit::default() })
                .map(|edit| edit.apply(&good.to_string()))
                .collect();
            mutants.push(Edit { drop: vec![place.clone()], ..Edit::default() }.apply(&good.to_string()));
            let without = mutants.last().cloned();
            for mutant in mutants {
                let report = lint::lint_document(
                    mutant.to_string().as_bytes(),
                    Some(system),
                    &CardLintContext::from_profile(&profile()),
                );
                let fails = report.findings.iter().filter(|finding| finding.effect == ReasonEffect::Fail);
                let fails: Vec<ReasonCode> = fails.map(|finding| finding.code).collect();
                tried += 1;
                // A null member of 1.0 counts as absent, and their schema does not check security schemes.
                let is_of_1_0 = name.starts_with("a2a/v1.0");
                let is_member = place.rsplit_once('/').is_some_and(|(_, name)| name.parse::<usize>().is_err());
                let is_absent = is_of_1_0 && is_member && mutant.pointer(place) == Some(&Value::Null);
                let read = without.as_ref().filter(|_| is_absent).unwrap_or(&mutant);
                let is_further = |code| FURTHER.contains(code) || is_of_1_0 && place.starts_with("/securitySchemes/");
                let is_alike = match theirs.is_valid(read) {
                    true => fails.iter().all(is_further),
                    false => !fails.is_empty(),
                };
                if !is_alike {
                    wrong.push(format!("{name} at {place}: {:?}, found {fails:?}", mutant.pointer(place)));
                }
            }
        }
    }
    println!("{tried} mutants");
    assert!(tried > 1000, "{tried}");
    none(&wrong);
}

#[test]
fn versions_of_a2a_are_recognised_by_the_shape() {
    for (document, version) in [
        (json!({"supportedInterfaces": []}), Some("1.0")),
        (json!({"url": "u", "protocolVersion": "0.3"}), Some("0.3")),
        (json!({"url": "u", "protocolVersion": "0.3.0"}), Some("0.3")),
        (json!({"url": "u", "protocolVersion": "0.2.5", "signatures": []}), Some("0.3")),
        (json!({"url": "u", "protocolVersion": "0.2.5"}), Some("0.2.6")),
        (json!({"url": "u", "defaultInputModes": []}), Some("0.2.0")),
        (json!({"url": "u", "protocolVersion": "0.30.1"}), None),
        (json!({"url": "u", "protocolVersion": "1.0"}), None),
        (json!({"url": "u", "protocolVersion": 3}), None),
    ] {
        let card = card(&document);
        assert_eq!(detect_card_system(&card), CardSystemDetection::One(CardSystem::A2a), "{document}");
        assert_eq!(CardSystem::A2a.detect_format_version(&card).as_deref(), version, "{document}");
    }
}

/// A small arbitrary JSON value.
fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e-20..1e-20).prop_map(|number: f64| Value::from(number)),
        "\\PC{0,8}".prop_map(Value::from),
        prop_oneof!["https://[a-z:/@%]{0,6}", "[0-9-]{8,10}T[0-9:]{5}", "[0-9.+-]{3,8}"].prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("\\PC{0,4}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Collects all JSON Pointers into `document`.
fn pointers(document: &Value, place: &str, all: &mut Vec<String>) {
    let mut below = |name: &str, value: &Value| {
        let mut place = place.to_owned();
        pointer::push_pointer_segment(&mut place, name);
        pointers(value, &place, all);
        all.push(place);
    };
    match document {
        Value::Object(members) => members.iter().for_each(|(name, value)| below(name, value)),
        Value::Array(items) => items.iter().enumerate().for_each(|(at, value)| below(&at.to_string(), value)),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_value_in_any_place_is_too_odd(which in 0..SYSTEMS.len(), at in any::<prop::sample::Index>(), value in json(), name in "\\PC{0,8}") {
        let (system, ..) = SYSTEMS[which];
        let mut document: Value = serde_json::from_str(&rows(system).card).expect("JSON");
        let before = card(&document);
        let mut places = Vec::new();
        pointers(&document, "", &mut places);
        *document.pointer_mut(at.get(&places).as_str()).expect("a place in it") = value.clone();
        document[name.as_str()] = value;
        let changed = card(&document);
        let _ = detect_card_system(&changed);
        let profile = profile();
        for system in CardSystem::ALL {
            let _ = system.detect_format_version(&changed);
            for reason in system.check_card(&changed, &CardLintContext { previous: Some(&before), ..CardLintContext::from_profile(&profile) }) {
                let place = reason.place.unwrap_or_default();
                let holder = place.rsplit_once('/').map_or("", |(holder, _)| holder);
                let leads = changed.value_at(&place).is_some() || changed.value_at(holder).is_some();
                prop_assert!(leads, "{} at {place}", reason.code);
            }
        }
        // Converting a valid card to its own system leaves it unchanged.
        let written = convert_card(&changed, system, system, &CardLintContext::from_profile(&profile));
        prop_assert!(!written.report.valid || (&written.card, written.lost.len()) == (changed.document(), 0));
    }
}

/// The default number of mutated cards.
const MUTATED_CARDS: usize = 5_000;

/// Characters with a meaning in JSON.
const SIGNS: &[u8] = br#""{}[],:019eE.-\tnu "#;

/// Judges cards with some bytes changed, removed or duplicated. The linter never panics, and every valid card is strict
/// JSON. `just mutate-cards` tests a million of them.
#[test]
fn mutated_cards_do_no_harm() {
    let asked = std::env::var("MUTATED_CARDS").ok().map(|count| count.parse().expect("MUTATED_CARDS is a number"));
    let count = asked.unwrap_or(MUTATED_CARDS);
    let profile = profile();
    let good: Vec<Vec<u8>> = SYSTEMS.iter().map(|(system, ..)| rows(*system).card.into_bytes()).collect();
    let (mut valid, mut recognised) = (0_usize, 0_usize);
    let mut chance = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |most: usize| {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        usize::try_from(chance % most as u64).expect("below a usize")
    };
    for number in 0..count {
        let mut card = good[number % good.len()].clone();
        for _ in 0..=below(3) {
            let at = below(card.len());
            match below(4) {
                0 => drop(card.remove(at)),
                1 => card.insert(at, card[at]),
                2 => card[at] = SIGNS[below(SIGNS.len())],
                _ => card[at] ^= 1 << below(8),
            }
        }
        let report = lint::lint_document(&card, None, &CardLintContext::from_profile(&profile));
        recognised += usize::from(report.system.is_some());
        valid += usize::from(report.valid);
        assert!(!report.valid || AgentCard::parse(&card).is_ok(), "{}", String::from_utf8_lossy(&card));
    }
    println!("{count} mutated cards: {recognised} recognised by their shape, {valid} still valid");
    assert!(valid > 0 && valid < recognised && recognised < count);
}
