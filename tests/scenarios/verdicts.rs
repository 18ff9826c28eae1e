//! Every scenario, through the library, the program and the daemon, on one world.
//!
//! Each test reports all failures at once, as a table.

use std::collections::BTreeSet;

use clresolve_bundle::{BundleTrustAnchors, ResolutionBundle};
use clresolve_core::name::EnsName;
use clresolve_core::reason::ReasonCode;
use clresolve_core::state::TrustState;
use clresolve_resolver::config::ChainProofMode;
use clresolve_resolver::resolve::{NameQuestion, Resolver};
use clresolve_resolver::sandbox::Sandbox;
use serde_json::Value;

use crate::support::judge;
use crate::support::scenario::{Ask, Case, Decision, Setting};
use crate::support::stage::{self, DaemonResponse, Printed, on_stage, table};

/// Requirements of the checklist without a scenario, with the reason.
const NOT_SHOWN: [(&str, &str); 2] = [
    ("CL-30", "addressed to people: nothing in it can be seen from outside"),
    ("CL-80", "addressed to people: SECURITY_PROVENANCE.md"),
];

/// The requirements of messages and payments, each with the file and the test that show it: no verdict does.
const OF_MESSAGES: [(&str, &str, &str); 7] = [
    ("CL-62", "tests/cli/requests.rs", "every_request_gets_its_state_and_every_code_is_shown"),
    ("CL-63", "crates/messages/src/receipt/judge/tests.rs", "a_receipt_is_what_its_bound_schema_demands"),
    ("CL-64", "crates/messages/src/receipt/judge/tests.rs", "hash_signature_and_key_are_reported_apart"),
    ("CL-67", "tests/cli/payments.rs", "an_agent_that_the_gate_denies_is_not_asked"),
    ("PC-6", "crates/messages/src/request/judge/tests.rs", "what_the_schema_objects_to_stands_at_its_place"),
    ("PC-7", "crates/messages/src/receipt/judge/tests.rs", "what_line_1_0_0_demands_is_demanded"),
    ("PC-8", "crates/messages/src/receipt/judge/tests.rs", "a_receipt_echoes_the_request"),
];

#[test]
fn every_requirement_of_messages_has_its_test() {
    for (id, file, test) in OF_MESSAGES {
        let text = std::fs::read_to_string(file).expect(file);
        assert!(text.contains(&format!("fn {test}(")), "{id}: {file} has no test {test}");
    }
}

#[test]
fn scenarios_hold_through_the_library() {
    on_stage(async |stage| {
        let verdicts = stage.library().await;
        let cases = &stage.scenarios.cases;
        let mut wrong = table(cases, |case| verdicts.get(&case.id).cloned());
        for case in cases {
            for (kind, expected) in &case.ask.counts {
                let found = &verdicts[&case.id]["counts"][kind];
                if found != expected {
                    wrong.push(format!("{}\n    requests to {kind}: expected {expected}, found {found}", case.id));
                }
            }
        }
        report("through the library", cases.len(), &wrong);
    });
}

#[test]
fn scenarios_hold_through_the_program() {
    on_stage(async |stage| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let verdicts = stage.program(folder.path()).await;
        let library = stage.library().await;
        let cases: Vec<&Case> = stage.scenarios.cases.iter().filter(|case| case.ask.session.is_none()).collect();
        let mut wrong =
            table(cases.iter().copied(), |case| verdicts.get(&case.id).map(|printed| printed.verdict.clone()));
        for case in &cases {
            let Some(Printed { verdict, code }) = verdicts.get(&case.id) else { continue };
            let expected = stage::exit_code(case.ask.state);
            if code.is_some_and(|code| code != expected) {
                wrong.push(format!("{}\n    exit code: expected {expected}, found {code:?}", case.id));
            }
            if verdict["conclusion"] != library[&case.id]["conclusion"] {
                wrong.push(format!("{}\n    library and program conclude differently", case.id));
            }
        }
        report("through the program", cases.len(), &wrong);
    });
}

#[test]
fn scenarios_replay_from_their_bundles() {
    let schema: Value = serde_json::from_str(include_str!("../../schemas/bundle.schema.json")).expect("JSON");
    on_stage(async |stage| {
        let library = stage.library().await;
        let checkpoint = stage.world.config().beacon.checkpoint;
        let asked = |case: &&Case| case.ask.session.is_none() && EnsName::parse(&case.ask.name).is_ok();
        let cases: Vec<&Case> = stage.scenarios.cases.iter().filter(asked).collect();
        let mut wrong = Vec::new();
        let form = jsonschema::draft202012::new(&schema).expect("a schema");
        for case in &cases {
            let resolver = stage.resolver(&case.ask.setting).await;
            let bundle = match resolver.export_bundle(&NameQuestion::new(case.ask.name.as_str())).await {
                Ok(bundle) => {
                    let bundle = bundle.unsigned_bundle().to_json();
                    let errors =
                        form.iter_errors(&bundle).map(|e| format!("{}\n    {}: {e}", case.id, e.instance_path()));
                    wrong.extend(errors);
                    serde_json::to_vec(&bundle).expect("JSON")
                }
                Err(error) => {
                    wrong.push(format!("{}\n    not exported: {error}", case.id));
                    continue;
                }
            };
            let anchors = || BundleTrustAnchors { profiles: resolver.profiles(), checkpoint };
            match ResolutionBundle::from_bytes(&bundle).and_then(|bundle| bundle.verify_by_replay(anchors())) {
                Ok(verified) if library[&case.id]["conclusion"] == verified.replay.verdict().conclusion => {}
                Ok(_) => wrong.push(format!("{}\n    library and bundle conclude differently", case.id)),
                Err(error) => wrong.push(format!("{}\n    refused: {error}", case.id)),
            }
        }
        report("from bundles", cases.len(), &wrong);
    });
}

#[test]
fn scenarios_hold_over_http() {
    on_stage(async |stage| {
        let said = stage.http().await;
        let library = stage.library().await;
        let cases: Vec<&Case> = stage.scenarios.cases.iter().filter(|case| stage::is_for_http(case)).collect();
        let mut wrong = table(cases.iter().copied(), |case| said.get(&case.id).map(|said| said.verdict.clone()));
        for case in &cases {
            let Some(DaemonResponse { verdict, gate: (status, state) }) = said.get(&case.id) else { continue };
            let strangers_word = judge::codes_of(verdict).contains("single-rpc");
            let denied = case.ask.setting.denied().iter().any(|code| case.ask.codes.contains(code));
            let open = case.ask.state == TrustState::Trusted && !strangers_word && !denied && !case.ask.is_headless;
            // The gate takes names in normal form alone.
            let is_disguised = EnsName::parse(&case.ask.name).is_ok_and(|name| name.as_str() != case.ask.name);
            let expected = match (is_disguised, open) {
                (true, _) => (403, "indeterminate"),
                (false, true) => (200, "trusted"),
                (false, false) => (403, case.ask.state.as_str()),
            };
            if (*status, state.as_str()) != expected {
                wrong.push(format!("{}\n    gate: expected {expected:?}, found {status} {state}", case.id));
            }
            if verdict["conclusion"] != library[&case.id]["conclusion"] {
                wrong.push(format!("{}\n    library and daemon conclude differently", case.id));
            }
        }
        println!("not asked over HTTP (sessions, numbered blocks): {}", stage.scenarios.cases.len() - cases.len());
        report("over HTTP", cases.len(), &wrong);
    });
}

/// Library, program and daemon decide alike.
#[test]
fn the_gate_decides_as_the_scenarios_say() {
    on_stage(async |stage| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let cases: Vec<&Case> = stage.scenarios.cases.iter().filter(|case| !case.ask.gate.is_empty()).collect();
        assert!(cases.len() > 3);
        let mut wrong = Vec::new();
        for case in &cases {
            let Ask { name, setting, .. } = &case.ask;
            let config = stage.config(setting).await;
            let file = folder.path().join(format!("{name}-{}.toml", wrong.len()));
            config.save(&file).expect("the folder can be written");
            let resolver = stage.resolver(setting).await;
            let resolution = resolver.resolve(name).await;
            let daemon = stage.daemon(setting).await;
            for Decision { verb, network, code } in &case.ask.gate {
                let (verb, network) = (verb.as_deref(), network.as_deref());
                let by_library =
                    config.gate.gate_policy().request_objection(&resolution, verb, network).map(str::to_owned);
                let said = [
                    ("library", by_library),
                    ("program", stage::gate(&file, name, verb, network).await),
                    ("daemon", stage::gate_over_http(&client, daemon.address, name, verb, network).await),
                ];
                for (face, found) in said.into_iter().filter(|(_, found)| found != code) {
                    wrong.push(format!(
                        "{} {verb:?} {network:?}\n    {face}: expected {code:?}, found {found:?}",
                        case.id
                    ));
                }
            }
        }
        report("decisions of the gate", cases.len(), &wrong);
    });
}

#[test]
fn every_code_matters() {
    on_stage(async |stage| {
        let mut wrong = Vec::new();
        let codes: Vec<&ReasonCode> = ReasonCode::ALL.iter().filter(|code| code.is_verdict_code()).collect();
        for code in &codes {
            let expects = |case: &&Case| case.ask.codes.contains(code) && case.ask.session.is_none();
            let Some(case) = stage.scenarios.cases.iter().find(expects) else {
                wrong.push(format!("{code}: no scenario expects it"));
                continue;
            };
            let resolver: Resolver = stage.resolver(&case.ask.setting).await.without_reason_code(**code);
            let verdict = serde_json::to_value(&**resolver.resolve(&case.ask.name).await.verdict()).expect("JSON");
            if judge::problems(&case.ask, &verdict).is_empty() {
                wrong.push(format!("{code}: {} passes without it", case.id));
            }
        }
        report("codes", codes.len(), &wrong);
    });
}

/// Every way to read an honest chain leads to the same conclusion.
#[test]
fn computed_records_lead_to_the_conclusion_that_told_ones_lead_to() {
    on_stage(async |stage| {
        let library = stage.library().await;
        let setting = Setting { proof: Some(ChainProofMode::StateProof), ..Setting::default() };
        let resolver = stage.resolver(&setting).await;
        let cases: Vec<&Case> =
            stage.scenarios.cases.iter().filter(|case| !case.alone && case.ask.session.is_none()).collect();
        let mut wrong = Vec::new();
        let mut anchored = 0;
        for case in &cases {
            let verdict = serde_json::to_value(&**resolver.resolve(&case.ask.name).await.verdict()).expect("JSON");
            let told = &library[&case.id];
            if verdict["conclusion"] != told["conclusion"] {
                let codes = (judge::codes_of(told), judge::codes_of(&verdict));
                wrong.push(format!("{}: {} told, {} computed, {codes:?}", case.id, told["state"], verdict["state"]));
            }
            anchored += usize::from(verdict.pointer("/anchor/proof/grade") == Some(&Value::from("state-proof")));
        }
        assert!(anchored > cases.len() / 2, "{anchored} of {} were computed", cases.len());
        report("computed records", cases.len(), &wrong);
    });
}

#[test]
fn every_requirement_is_named() {
    on_stage(async |stage| {
        let numbers = |prefix: &'static str, numbers: std::ops::RangeInclusive<u32>| {
            numbers.map(move |number| format!("{prefix}-{number}"))
        };
        let scope: BTreeSet<String> = numbers("CL", 1..=61)
            .chain(numbers("CL", 65..=66))
            .chain(numbers("CL", 68..=74))
            .chain(numbers("CL", 80..=86))
            .chain(numbers("PC", 1..=5))
            .chain(numbers("PC", 9..=10))
            .chain(numbers("X", 1..=9))
            .collect();
        let named = &stage.scenarios.requirements;
        let excepted: BTreeSet<String> = NOT_SHOWN.iter().map(|(id, _)| (*id).to_owned()).collect();
        let missing = scope.difference(named).filter(|id| !excepted.contains(*id));
        let mut wrong: Vec<String> = missing.map(|id| format!("{id}: no scenario names it")).collect();
        wrong.extend(named.difference(&scope).map(|id| format!("{id}: not in scope, or misspelt")));
        wrong.extend(named.intersection(&excepted).map(|id| format!("{id}: named after all; take it off the list")));
        report("requirements", scope.len() - excepted.len(), &wrong);
    });
}

#[test]
fn the_sandbox_does_what_it_lists() {
    on_stage(async |_| {
        let sandbox = Sandbox::start().await.expect("the sandbox starts");
        let mut config = sandbox.config();
        config.timeout = stage::PATIENCE;
        let resolver = Resolver::new(&config).await.expect("its configuration is good");
        let listed = listed().await;
        let expected = serde_json::to_value(Sandbox::expected_verdicts()).expect("JSON");
        assert_eq!(listed, expected, "the program lists what the library knows");

        let rows = listed.as_array().expect("a list");
        let names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
        let (by_program, _) = stage::program(&["--sandbox", "--timeout", "2m"], &names).await;
        let by_program = by_program.as_array().expect("a list");
        assert_eq!(by_program.len(), rows.len());
        let mut wrong = Vec::new();
        for (row, verdict) in rows.iter().zip(by_program) {
            let name = row["name"].as_str().expect("a name");
            let library = resolver.resolve(name).await;
            let library = serde_json::to_value(&**library.verdict()).expect("JSON");
            for (face, verdict) in [("program", verdict), ("library", &library)] {
                let codes: Vec<Value> = judge::codes_of(verdict).into_iter().map(Value::from).collect();
                if verdict["state"] != row["state"] || Value::from(codes.clone()) != row["codes"] {
                    let (state, codes) = (&verdict["state"], Value::from(codes));
                    wrong.push(format!("{name} by the {face}: listed {row}, found {state} {codes}"));
                }
            }
        }
        report("names of the sandbox", rows.len(), &wrong);
    });
}

/// Without its configuration the world is another one: its schemas are not the published ones, and its node is
/// anybody's.
#[test]
fn the_world_is_reached_by_flags_alone() {
    on_stage(async |stage| {
        let config = stage.world.config();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let ca = folder.path().join("ca.pem");
        std::fs::write(&ca, config.network.ca_pems.concat()).expect("the folder can be written");
        let mut flags = vec![
            format!("--chain-id={}", config.chain.id),
            format!("--universal-resolver={}", config.chain.universal_resolver),
            format!("--rpc={}", config.chain.endpoints[0].url),
            format!("--gateway={}", config.gateways[0].url),
            format!("--ca={}", ca.display()),
            "--timeout=2m".to_owned(),
        ];
        flags.extend(config.network.connect_to.iter().map(|rule| format!("--connect-to={rule}")));
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let (verdict, code) = stage::program(&flags, &["summarizeagent.eth"]).await;
        let codes: Vec<&str> = judge::codes_of(&verdict).into_iter().collect();
        let expected = vec!["schema-manifest-mismatch", "schema-mirror-elsewhere", "single-rpc"];
        assert_eq!((codes, code), (expected, Some(1)), "{verdict:#}");
        assert_eq!(verdict.pointer("/anchor/world"), Some(&Value::from("eip155-31337")));
        assert_eq!(verdict.pointer("/identity/owner/proven"), Some(&Value::from(true)));
    });
}

/// What `clresolve sandbox --list -o json` prints.
async fn listed() -> Value {
    let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_clresolve"))
        .args(["sandbox", "--list", "-o", "json"])
        .env_clear()
        .output()
        .await
        .expect("the program starts");
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn report(what: &str, total: usize, wrong: &[String]) {
    println!("{what}: {total} checked, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "{what}: {} problems\n\n{}\n", wrong.len(), wrong.join("\n"));
}
