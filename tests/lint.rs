//! `clresolve lint`, run as a publisher runs it, and the rules over the published cards of every release line.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const CARD: &str = r#"{
  "id": "summarizeagent.eth",
  "slug": "summarizeagent",
  "display_name": "Summarize Agent",
  "description": "Makes long texts short.",
  "owner": "commandlayer.eth",
  "ens": "summarizeagent.eth",
  "version": "1.0.0",
  "status": "active",
  "class": "commons",
  "implements": ["summarize"],
  "schemas": {
    "request": "ipfs://bafybeigvf6nkzws7dblos74dqqjkguwkrwn4a2c27ieygoxmgofyzdkz6m/commons/summarize/requests/summarize.request.schema.json",
    "receipt": "ipfs://bafybeigvf6nkzws7dblos74dqqjkguwkrwn4a2c27ieygoxmgofyzdkz6m/commons/summarize/receipts/summarize.receipt.schema.json"
  },
  "entry": "x402://summarizeagent.eth/summarize/v1",
  "networks": ["eip155:1"],
  "license": "Apache-2.0",
  "created_at": "2025-11-22T00:00:00Z",
  "updated_at": "2025-11-22T00:00:00Z"
}
"#;

/// The binary, without the configuration of whoever runs the tests.
fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clresolve"));
    for (key, _) in std::env::vars_os().filter(|(key, _)| key.to_string_lossy().starts_with("CLRESOLVE_")) {
        command.env_remove(key);
    }
    command.env_remove("RUST_LOG");
    command
}

fn run<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    binary().args(arguments).stdin(Stdio::null()).output().expect("the binary runs")
}

/// `clresolve lint -` over `card`.
fn piped(card: &[u8], arguments: &[&str]) -> Output {
    let mut child = binary()
        .args(["lint", "-"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    let card = card.to_vec();
    // The program stops reading at its limit, so the end of a long text may find the pipe closed.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&card)));
    let output = child.wait_with_output().expect("the binary ends");
    writer.join().expect("the writer does not panic");
    output
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("the binary ends by itself")
}

fn out(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("stdout is UTF-8")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", out(output)))
}

fn codes(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array().expect("a list");
    findings.iter().map(|finding| finding["code"].as_str().expect("a code")).collect()
}

#[test]
fn a_valid_card_says_so() {
    let text = piped(CARD.as_bytes(), &[]);
    assert_eq!(code(&text), 0);
    assert!(out(&text).starts_with("- is a valid card under agent-cards/1.0.0"), "{}", out(&text));
    let report = json(&piped(CARD.as_bytes(), &["-o", "json"]));
    assert_eq!(report["flavour"], "commandlayer");
    assert_eq!(report["version"], "1.0.0");
    assert_eq!(report["valid"], true);
    assert_eq!(report["findings"], Value::Array(Vec::new()));
}

#[test]
fn a_warning_leaves_a_card_valid() {
    let output = piped(CARD.replace("active", "resting").as_bytes(), &["-o", "json"]);
    assert_eq!(code(&output), 0);
    let report = json(&output);
    assert_eq!((codes(&report), &report["valid"]), (vec!["status-unknown"], &Value::Bool(true)));
}

#[test]
fn findings_have_code_place_and_values() {
    let card = CARD.replace("summarize/v1\"", "summarize/v1.0.0\"").replace("  \"slug\": \"summarizeagent\",\n", "");
    let output = piped(card.as_bytes(), &["-o", "json"]);
    assert_eq!(code(&output), 1);
    let report = json(&output);
    assert_eq!(codes(&report), ["card-field-missing", "entry-version-noncompliant"]);
    let entry = &report["findings"][1];
    let expected: [(&str, Value); 7] = [
        ("effect", "fail".into()),
        ("requirement", "CL-22".into()),
        ("pointer", "/entry".into()),
        ("line", 15.into()),
        ("column", 12.into()),
        ("expected", "v1".into()),
        ("observed", "x402://summarizeagent.eth/summarize/v1.0.0".into()),
    ];
    for (member, value) in expected {
        assert_eq!(entry[member], value, "{member}");
    }
    assert!(entry["message"].is_string());

    let text = piped(card.as_bytes(), &[]);
    let caret = "    15 | \"entry\": \"x402://summarizeagent.eth/summarize/v1.0.0\",\n       |          ^^^^^^^^";
    assert!(out(&text).contains(caret), "{}", out(&text));
    let short = piped(card.as_bytes(), &["-o", "short"]);
    assert!(out(&short).contains("-:15:12: fail entry-version-noncompliant: "), "{}", out(&short));
}

#[test]
fn the_profile_decides_and_others_are_offered() {
    let card = CARD.replace("summarize/v1\"", "summarize/v1.0.0\"");
    let report = json(&piped(card.as_bytes(), &["-o", "json"]));
    assert_eq!(report["near_misses"], serde_json::json!(["agent-cards/1.0.0+released"]));
    assert_eq!(code(&piped(card.as_bytes(), &["--profile", "agent-cards/1.0.0+released"])), 0);
    assert_eq!(code(&piped(card.as_bytes(), &["--profile", "no/such"])), 2);
}

#[test]
fn files_are_read_and_missing_ones_are_usage() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("card.json");
    std::fs::write(&path, CARD).expect("the folder can be written");
    assert_eq!(code(&run([OsStr::new("lint"), path.as_os_str()])), 0);
    let missing = run([OsStr::new("lint"), folder.path().join("none.json").as_os_str()]);
    assert_eq!((code(&missing), out(&missing)), (2, ""));
    assert_eq!(code(&run([OsStr::new("lint"), folder.path().as_os_str()])), 2);
    assert_eq!(code(&run(["lint"])), 2);
}

#[test]
fn hostile_texts_end_in_one_finding() {
    for (card, expected) in [
        (b"".to_vec(), "card-not-json"),
        (b"\xef\xbb\xbf{}".to_vec(), "card-not-json"),
        (b"{\"a\": \"\xff\"}".to_vec(), "card-not-utf8"),
        (b"{\"a\": 1, \"a\": 2}".to_vec(), "card-duplicate-key"),
        (vec![b'['; 100_000], "card-too-deep"),
        (vec![b' '; 10_000_000], "source-oversize"),
    ] {
        let output = piped(&card, &["-o", "json"]);
        assert_eq!(code(&output), 1, "{expected}");
        assert_eq!(codes(&json(&output)), [expected]);
    }
    let output = piped("{\"meta\": \"\u{1b}[31m\u{202e}\"".as_bytes(), &[]);
    assert!(!out(&output).contains(['\u{1b}', '\u{202e}']), "{}", out(&output));
}

fn corpus() -> Option<PathBuf> {
    let Some(root) = std::env::var_os("CLRESOLVE_CORPUS") else {
        println!("skipped: CLRESOLVE_CORPUS is not set");
        return None;
    };
    let root = Path::new(&root).join("commandlayer");
    assert!(root.is_dir(), "CLRESOLVE_CORPUS is set, but {} is no folder", root.display());
    Some(root)
}

#[test]
fn published_cards_pass_under_the_profile_of_their_line() {
    let Some(corpus) = corpus() else { return };
    let released = "agent-cards/1.0.0+released";
    for (path, profile, expected) in [
        ("agent-cards-v1.0.0-entry-v1/agents/v1.0.0/commons/formatagent.eth.json", "agent-cards/1.0.0", 0),
        ("agent-cards/agents/v1.0.0/commons/formatagent.eth.json", "agent-cards/1.0.0", 1),
        ("agent-cards/agents/v1.0.0/commons/formatagent.eth.json", released, 0),
        ("agent-cards/agents/v1.0.0/commercial/purchaseagent.eth.json", released, 0),
        ("agent-cards-v1.1.0/website/agent-cards/agents/v1.1.0/commons/formatagent.eth.json", "agent-cards/1.1.0", 0),
        ("agent-cards-v1.1.0/website/agent-cards/agents/v1.1.0/commons/formatagent.eth.json", "agent-cards/1.0.0", 1),
        ("agent-cards-v1.1.0/repository/agents/v1.1.0/commons/formatagent.eth.json", "agent-cards/1.1.0", 1),
    ] {
        let output = run([OsStr::new("lint"), corpus.join(path).as_os_str(), "--profile".as_ref(), profile.as_ref()]);
        assert_eq!(code(&output), expected, "{path} under {profile}:\n{}", out(&output));
    }
}
