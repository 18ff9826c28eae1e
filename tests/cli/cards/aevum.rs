//! Ledgers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clresolve_cards::ledger::{
    MAX_AGENTS, PacrAgentMetrics, PacrDecayRate, PacrLedger, PacrLedgerError, PacrLedgerMetrics,
};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{run, said};

const A: &str = "01HZQK3P8EMXR9V7T5N2W4J6CA";
const B: &str = "01HZQK3P8EMXR9V7T5N2W4J6CB";
const C: &str = "01HZQK3P8EMXR9V7T5N2W4J6CC";

/// The moment of the newest record, 2026-01-01T00:00:00Z, in milliseconds.
const NOW: u64 = 1_767_225_600_000;

/// Halves a weight in 1000 seconds: ln 2 / 1000.
const LAMBDA: &str = "6.931471805599453e-4";

fn id(milliseconds: u64, number: u64) -> String {
    format!("{milliseconds:012X}{number:020X}")
}

fn estimate(point: f64) -> Value {
    json!({"point": point, "lower": point, "upper": point})
}

fn record(id: &str, predecessors: &[&str], payload: &[u8], seconds: f64, joules: f64) -> Value {
    json!({
        "id": id,
        "predecessors": predecessors,
        "landauer_cost": estimate(2.854e-21),
        "resources": {"time": estimate(seconds), "energy": estimate(joules), "space": estimate(1.0)},
        "cognitive_split": {"statistical_complexity": estimate(1.0), "entropy_rate": estimate(1.0)},
        "payload": STANDARD.encode(payload),
    })
}

fn by(agent: &str) -> Vec<u8> {
    json!({"agent_id": agent}).to_string().into_bytes()
}

fn read(records: &[Value]) -> Result<PacrLedger, PacrLedgerError> {
    let mut ledger = PacrLedger::default();
    for record in records {
        ledger.add_line(record.to_string().as_bytes())?;
    }
    Ok(ledger)
}

fn project(records: &[Value]) -> PacrLedgerMetrics {
    let at = Timestamp::from_millisecond(NOW as i64).expect("a moment");
    let lambda = LAMBDA.parse().expect("a number");
    read(records).expect("a ledger").compute_metrics(at, lambda).expect("few links")
}

fn of(projection: &PacrLedgerMetrics, agent: &str) -> PacrAgentMetrics {
    let found = projection.agents.iter().find(|known| known.agent_id.as_str() == agent);
    found.unwrap_or_else(|| panic!("{agent} is not in {projection:#?}")).metadata
}

#[test]
fn the_example_is_a_ledger() {
    let mut ledger = PacrLedger::default();
    for line in include_str!("../../../examples/ledger.jsonl").lines() {
        ledger.add_line(line.as_bytes()).expect("a record");
    }
    let agents = ledger.compute_metrics(Timestamp::now(), LAMBDA.parse().expect("a number")).expect("few links").agents;
    assert_eq!(agents.len(), 2);
}

/// A caused B, B caused C; A has a second, older record.
fn chain() -> [Value; 4] {
    let (first, second, third) = (id(NOW - 3000, 2), id(NOW - 2000, 3), id(NOW - 1000, 4));
    [
        record(&id(NOW - 1_003_000, 1), &[], &by(A), 3.0, 8e-9),
        record(&first, &[&id(0, 0)], &by(A), 1.0, 2e-9),
        record(&second, &[&first], &by(B), 0.5, 1e-9),
        record(&third, &[&second], &by(C), 0.25, 1e-9),
    ]
}

#[test]
fn old_records_weigh_less() {
    let a = of(&project(&chain()), A);
    assert_eq!(a.interaction_count, 2);
    // Half a weight after 1000 s: (1·1 + 0.5·3) / 1.5 s, and (1·2 + 0.5·8) / 1.5 nJ.
    assert_eq!(a.avg_latency_ms, 1_666.666_666_67);
    assert_eq!(a.avg_cost_joules, 4e-9);
}

#[test]
fn influence_flows_to_those_who_caused_something() {
    let projection = project(&chain());
    // The graph is C -> B -> A, the path of three nodes for which networkx 3.6.1 gives these ranks.
    let ranks = [A, B, C].map(|agent| of(&projection, agent).influence_rank);
    assert_eq!(ranks, [0.474_412_171_508, 0.341_171_046_565, 0.184_416_781_927]);
    let scores = [A, B, C].map(|agent| of(&projection, agent).critical_score);
    assert_eq!(scores, [0.0, 0.5, 0.0]);
    assert_eq!((projection.ledger.agents, projection.ledger.links), (3, 2));
}

#[test]
fn what_is_left_out_is_counted() {
    let mut counterfactual = b"PACR\x05".to_vec();
    counterfactual.extend(0.5_f64.to_be_bytes());
    counterfactual.extend(by(C));
    let mut observed = b"PACR\x00".to_vec();
    observed.extend(by(A));
    let never = id(NOW - 50, 9);
    let projection = project(&[
        record(&never, &[], &counterfactual, 1.0, 1.0),
        record(&id(NOW + 1, 1), &[], &by(C), 1.0, 1.0),
        record(&id(NOW, 2), &[], b"", 1.0, 1.0),
        record(&id(NOW, 3), &[], b"\xff\x00 no JSON", 1.0, 1.0),
        record(&id(NOW, 4), &[&never, &id(7, 7)], &observed, 1.0, 1.0),
    ]);
    let counts = projection.ledger;
    assert_eq!((counts.records, counts.used, counts.agents, counts.links), (5, 1, 1, 0));
    assert_eq!((counts.later, counts.counterfactual, counts.unattributed), (1, 1, 2));
    assert_eq!((counts.predecessors_left_out, counts.predecessors_unknown), (1, 1));
    assert_eq!(of(&projection, A).influence_rank, 1.0);
}

#[test]
fn no_reputation_is_invented() {
    let projection = serde_json::to_value(project(&chain())).expect("JSON");
    let why = &projection["stated"]["not_computed"]["pacr:reputation_score"];
    assert_eq!(why, "the specification gives no formula for it");
    for agent in projection["agents"].as_array().expect("a list") {
        assert_eq!(agent["metadata"]["pacr:reputation_score"], Value::Null);
    }
}

#[test]
fn weights_of_long_ago_do_not_vanish() {
    // exp(-λ·age) of both is 0 in any arithmetic; their ratio is not.
    let records = [record(&id(1000, 1), &[], &by(A), 1.0, 1.0), record(&id(1_001_000, 2), &[], &by(A), 3.0, 1.0)];
    assert_eq!(of(&project(&records), A).avg_latency_ms, 2_333.333_333_33);
}

#[test]
fn a_ulid_and_its_hexadecimal_form_are_the_same_identity() {
    // The example of the ULID specification: 01ARYZ6S41 is 1469918176385 ms.
    let (ulid, hex) = ("01ARYZ6S410000000000000000", id(1_469_918_176_385, 0));
    let refused = read(&[record(ulid, &[], &by(A), 1.0, 1.0), record(&hex, &[], &by(A), 1.0, 1.0)]);
    assert_eq!(refused.expect_err("the same"), PacrLedgerError::Duplicate { line: 2, first: 1 });
}

fn detail(record: &Value) -> String {
    match read(&[chain()[0].clone(), record.clone()]) {
        Err(PacrLedgerError::Malformed { line: 2, detail }) => detail,
        other => panic!("{record}: {other:?}"),
    }
}

fn with(pointer: &str, value: Value) -> Value {
    let mut record = chain()[1].clone();
    *record.pointer_mut(pointer).expect("a member") = value;
    record
}

#[test]
fn a_line_that_is_no_record_is_refused_with_its_place() {
    for (pointer, value, expected) in [
        ("/payload", json!(null), "payload is missing"),
        ("/cognitive_split", json!(null), "cognitive_split is missing"),
        ("/id", json!("01HZQK3P8EMXR9V7T5N2W4J6CU"), "id: expected a ULID or 32 upper-case"),
        ("/id", json!("81HZQK3P8EMXR9V7T5N2W4J6CA"), "id: expected a ULID or 32 upper-case"),
        ("/id", json!(id(NOW, 10).to_lowercase()), "id: expected a ULID or 32 upper-case"),
        ("/id", json!(id(0, 0)), "id: the genesis sentinel"),
        ("/predecessors", json!([id(NOW - 3000, 2)]), "predecessors: a record does not precede itself"),
        ("/predecessors", json!("none"), "predecessors: expected a list"),
        ("/resources/time/point", json!(0.0), "resources.time: expected lower <= point <= upper"),
        ("/resources/time", estimate(0.0), "resources.time.point: expected seconds above 0"),
        ("/resources/time", estimate(1e200), "resources.time: expected lower <= point <= upper, and no point above"),
        ("/resources/energy", estimate(-1.0), "resources.energy.point: expected joules, at least 0"),
        ("/resources/energy", json!(1.0), "resources.energy: expected the numbers point, lower and upper"),
        ("/payload", json!("AB"), "payload: expected base64 with padding"),
        ("/payload", json!(STANDARD.encode("PACR")), "payload: it ends after PACR, without a kind"),
        ("/payload", json!(STANDARD.encode("PACR\u{6}")), "payload: unknown kind of intervention 6"),
        ("/payload", json!(STANDARD.encode("PACR\u{5}{}")), "payload: a counterfactual record needs"),
        ("/payload", json!(STANDARD.encode(by("me"))), "payload: expected an agent_id"),
    ] {
        let found = detail(&with(pointer, value));
        assert!(found.starts_with(expected), "{pointer}: {found}");
    }
    let mut ledger = PacrLedger::default();
    for (line, expected) in [
        ("", None),
        ("{", Some("line 2: column 1: EOF while parsing an object; each line of a ledger is one whole record")),
        ("[]", Some("line 3: the JSON text is a list, not an object")),
        (r#"{"id": 1, "id": 2}"#, Some("line 4: column 14: the member /id occurs twice")),
    ] {
        let refused = ledger.add_line(line.as_bytes()).err().map(|refused| refused.to_string());
        assert_eq!(refused.is_some(), expected.is_some(), "{line}");
        let refused = refused.unwrap_or_default();
        assert!(refused.starts_with(expected.unwrap_or_default()), "{refused}");
    }
}

#[test]
fn links_without_end_are_refused() {
    // So many agents, and in the last records each of half of them is caused by every other: too many to follow.
    const AGENTS: u64 = 600;
    let agent = |number: u64| format!("01HZQK3P8EMXR9V7T5N2W4{number:04}");
    let mut ledger = PacrLedger::default();
    let first: Vec<String> = (0..AGENTS).map(|number| id(NOW - 2000, number)).collect();
    for (number, id) in (0..).zip(&first) {
        let line = record(id, &[], &by(&agent(number)), 1.0, 1.0).to_string();
        ledger.add_line(line.as_bytes()).expect("a record");
    }
    let before: Vec<&str> = first.iter().map(String::as_str).collect();
    for number in 0..AGENTS / 2 {
        let line = record(&id(NOW, number), &before, &by(&agent(number)), 1.0, 1.0).to_string();
        ledger.add_line(line.as_bytes()).expect("a record");
    }
    let at = Timestamp::from_millisecond(NOW as i64).expect("a moment");
    assert_eq!(
        ledger.compute_metrics(at, PacrDecayRate::default()),
        Err(PacrLedgerError::TooManyLinks { agents: 600 })
    );
}

#[test]
fn agents_without_end_are_refused() {
    let mut ledger = PacrLedger::default();
    let mut push = |number: usize| {
        let agent = by(&format!("01HZQK3P8EMXR9V7T5N2{number:06}"));
        ledger.add_line(record(&id(NOW, number as u64), &[], &agent, 1.0, 1.0).to_string().as_bytes())
    };
    assert!((0..MAX_AGENTS).all(|number| push(number).is_ok()));
    let refused = PacrLedgerError::TooMany { line: MAX_AGENTS + 1, what: "agents", limit: MAX_AGENTS };
    assert_eq!(push(MAX_AGENTS), Err(refused));
}

#[test]
fn long_lines_are_refused() {
    let payload = vec![b'x'; clresolve_cards::ledger::MAX_LINE_BYTES];
    let found = detail(&record(&id(NOW, 5), &[], &payload, 1.0, 1.0));
    assert!(found.ends_with("at most 524288 are allowed"), "{found}");
}

/// A ledger of records by six agents, each after some of those before it.
fn ledgers() -> impl Strategy<Value = Vec<Value>> {
    let one = (0_u8..6, 1_u32..5000, proptest::collection::vec(0_usize..40, 0..3));
    proptest::collection::vec(one, 0..40).prop_map(|parts| {
        let mut records: Vec<Value> = Vec::new();
        for (number, (agent, milliseconds, before)) in parts.into_iter().enumerate() {
            let ids: Vec<String> = records.iter().filter_map(|r| r["id"].as_str().map(str::to_owned)).collect();
            let before: Vec<&str> = before.iter().filter_map(|at| ids.get(*at)).map(String::as_str).collect();
            let agent = format!("01HZQK3P8EMXR9V7T5N2W4J6C{agent}");
            let id = id(NOW - 100_000 + 1000 * number as u64, number as u64);
            records.push(record(&id, &before, &by(&agent), f64::from(milliseconds) / 1000.0, 1e-9));
        }
        records
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_order_of_the_lines_does_not_matter(records in ledgers(), seed in any::<u64>()) {
        let mut shuffled = records.clone();
        let mut state = seed;
        for at in (1..shuffled.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            shuffled.swap(at, (state >> 33) as usize % (at + 1));
        }
        prop_assert_eq!(project(&records), project(&shuffled));
    }

    #[test]
    fn an_average_lies_between_its_parts(records in ledgers()) {
        for agent in project(&records).agents {
            prop_assert!((1.0..=5000.0).contains(&agent.metadata.avg_latency_ms));
            prop_assert!((0.0..=1.0).contains(&agent.metadata.influence_rank));
        }
    }

    #[test]
    fn no_line_panics(line in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = PacrLedger::default().add_line(&line);
    }
}

fn lines(records: &[Value]) -> Vec<u8> {
    records.iter().flat_map(|record| format!("{record}\n").into_bytes()).collect()
}

const METADATA: [&str; 9] =
    ["cards", "aevum", "metadata", "--ledger", "-", "--at", "2026-01-01T00:00:00Z", "--lambda", LAMBDA];

#[test]
fn the_command_line_says_what_the_library_says() {
    let (code, out, _) = said(&run(&[&METADATA[..], &["-o", "json"]].concat(), &lines(&chain())));
    assert_eq!(code, 0);
    let found: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(found, serde_json::to_value(project(&chain())).expect("JSON"));
    assert_eq!(found["stated"]["half_life_seconds"], 1000.0);

    let (code, out, _) = said(&run(&[&METADATA[..], &["--agent", B]].concat(), &lines(&chain())));
    assert_eq!(code, 0);
    assert!(out.starts_with(&format!("{B}\n  pacr:interaction_count  1\n")) && !out.contains(A), "{out}");
    for part in
        ["4 of 4 records used", "lambda 6.931471805599453e-4 per second", "Not computed: pacr:reputation_score;"]
    {
        assert!(out.contains(part), "{part}: {out}");
    }
}

#[test]
fn the_command_line_refuses_with_line_and_reason() {
    let mut bad = lines(&chain());
    bad.extend(b"\n{\"id\": 1}\n");
    let (code, out, error) = said(&run(&METADATA, &bad));
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(error.starts_with("clresolve: -: line 6: predecessors is missing; a record has id,"), "{error}");
    let absent = ["--agent", "01HZQK3P8EMXR9V7T5N2W4J6C9"];
    let (code, _, error) = said(&run(&[&METADATA[..], &absent].concat(), &lines(&chain())));
    assert_eq!(code, 1);
    assert!(error.contains("has no record of 01HZQK3P8EMXR9V7T5N2W4J6C9 up to 2026-01-01T00:00:00Z"), "{error}");
    for flags in [["--lambda", "-1"], ["--lambda", "nan"], ["--agent", "me"], ["--at", "yesterday"]] {
        let (code, _, error) = said(&run(&[&METADATA[..5], &flags].concat(), b""));
        assert_eq!(code, 2, "{flags:?}: {error}");
    }
    let (code, _, error) = said(&run(&["cards", "aevum", "metadata", "--ledger", "/nowhere/l.jsonl"], b""));
    assert_eq!(code, 2);
    assert!(error.starts_with("clresolve: cannot read /nowhere/l.jsonl"), "{error}");
}

/// AE-23, AE-30.
#[test]
fn ae_23_figures_are_written_into_a_card_and_compared_with_its_claims() {
    let folder = tempfile::tempdir().expect("a folder");
    let (card, ledger) = (folder.path().join("card.json"), folder.path().join("ledger.jsonl"));
    let text = format!(
        "{{\n  \"agent_id\": \"{A}\",\n  \"metadata\": {{\"pacr:interaction_count\": 99, \"team\": \"x\"}}\n}}\n"
    );
    std::fs::write(&card, &text).expect("written");
    std::fs::write(&ledger, lines(&chain())).expect("written");
    let (card, ledger) = (card.to_str().expect("UTF-8"), ledger.to_str().expect("UTF-8"));
    let lint = ["lint", card, "--ledger", ledger, "-o", "short"];
    assert!(said(&run(&lint, b"")).1.contains("ae-pacr-differs"));

    let into = ["cards", "aevum", "metadata", "--ledger", ledger, "--into", card];
    let (code, out, error) = said(&run(&into, b""));
    assert_eq!(code, 0, "{error}");
    assert!(out.contains(A) && error.contains("wrote the ledger's figures"), "{out}{error}");
    let written = std::fs::read_to_string(card).expect("a card");
    let document: Value = serde_json::from_str(&written).expect("JSON");
    assert!(document["metadata"]["pacr:interaction_count"] != json!(99) && document["metadata"]["team"] == "x");
    assert!(written.starts_with(&text[..text.find("99").expect("it is there")]), "{written}");
    let found = said(&run(&lint, b"")).1;
    assert!(found.contains("ae-field-missing") && !found.contains("ae-pacr"), "{found}");

    let weights = ["--lambda", LAMBDA, "--at", "2026-01-01T00:00:00Z"];
    assert_eq!(said(&run(&[&into[..], &weights].concat(), b"")).0, 0);
    assert!(said(&run(&lint, b"")).1.contains("ae-pacr-differs"), "records weigh otherwise now, by default");
    let found = said(&run(&[&lint[..], &weights].concat(), b"")).1;
    assert!(found.contains("ae-field-missing") && !found.contains("ae-pacr"), "{found}");
    let (code, _, error) = said(&run(&["lint", card, "--lambda", LAMBDA], b""));
    assert!(code == 2 && error.contains("--ledger"), "{error}");

    let absent = text.replace(A, "01HZQK3P8EMXR9V7T5N2W4J6CZ");
    std::fs::write(card, &absent).expect("written");
    assert_eq!(said(&run(&into, b"")).0, 1);
    assert_eq!(std::fs::read_to_string(card).expect("a card"), absent);
    std::fs::write(card, "{}").expect("written");
    let (code, _, error) = said(&run(&into, b""));
    assert!(code == 2 && error.contains("agent_id"), "{error}");
}
