//! `clresolve lint` as a publisher runs it, and its rules on the published cards of every release line.

use std::ffi::OsStr;
use std::process::Output;

use serde_json::{Value, json as value};

use crate::support::corpus::corpus;
use crate::support::program::{code, err, fed, json, out, program, run};

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

#[test]
fn new_card_has_no_findings() {
    let new = ["cards", "new", "mybot.eth", "--verb", "summarize", "--owner", "me.eth"];
    let written = run(new.iter().chain(&["--base-url", "https://mybot.example"]));
    assert_eq!(written.status.code(), Some(0), "{}", String::from_utf8_lossy(&written.stderr));
    let linted = piped(&written.stdout, &["--json"]);
    let report: Value = serde_json::from_slice(&linted.stdout).expect("JSON");
    assert_eq!((linted.status.code(), &report["findings"]), (Some(0), &value!([])), "{report:#}");
    let in_sandbox = run(new.iter().chain(&["--sandbox"]));
    let linted = piped(&in_sandbox.stdout, &["--json", "--sandbox"]);
    let report: Value = serde_json::from_slice(&linted.stdout).expect("JSON");
    assert_eq!((linted.status.code(), &report["findings"]), (Some(0), &value!([])), "{report:#}");
}

#[test]
fn new_card_needs_a_known_verb_and_names_in_normal_form() {
    let new = |name: &str, verb: &str, owner: &str| run(["cards", "new", name, "--verb", verb, "--owner", owner]);
    for (output, part) in [
        (new("mybot.eth", "sumarize", "me.eth"), "parse, summarize; did you mean `summarize`?"),
        (new("MyBot.eth", "clean", "me.eth"), "NAME MyBot.eth: the name is not in normal form; write mybot.eth"),
        (new("mybot.eth", "clean", "a..eth"), "--owner a..eth: the name has an empty label"),
        (new("mybot", "clean", "me.eth"), "an ENS name has a dot, as in mybot.eth"),
        (new("https://mybot.eth/", "clean", "me.eth"), "did you mean `mybot.eth`?"),
    ] {
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{said}");
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn new_card_replaces_no_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("card.json").display().to_string();
    let new = || run(["cards", "new", "mybot.eth", "--verb", "summarize", "--owner", "me.eth", "--out", &file]);
    assert_eq!(code(&new()), 0);
    std::fs::write(&file, "edited").expect("the folder can be written");
    let again = new();
    assert!(
        code(&again) == 2 && err(&again) == format!("clresolve: {file}: the file exists, and is left as it is\n"),
        "{}",
        err(&again)
    );
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "edited");
}

/// `clresolve lint -` over `card`.
fn piped(card: &[u8], arguments: &[&str]) -> Output {
    fed(program().args(["lint", "-"]).args(arguments), card)
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

/// CL-74: nothing is fetched here, so nothing shows the bytes.
#[test]
fn a_mirror_whose_release_has_no_cid_is_named() {
    let mut card: Value = serde_json::from_str(CARD).expect("JSON");
    let location = |host: &str, side: &str| format!("{host}/commercial/purchase/{side}s/purchase.{side}.schema.json");
    for (member, value) in [
        ("$id", value!("https://commandlayer.org/agent-cards/agents/v1.0.0/commercial/purchaseagent.eth.json")),
        ("id", value!("purchaseagent.eth")),
        ("slug", value!("purchaseagent")),
        ("ens", value!("purchaseagent.eth")),
        ("class", value!("commercial")),
        ("implements", value!(["purchase"])),
        ("entry", value!("x402://purchaseagent.eth/purchase/v1")),
    ] {
        card[member] = value;
    }
    let canonical = "https://commandlayer.org/schemas/v1.0.0";
    let gateway = "https://ipfs.io/ipfs/bafybeigvf6nkzws7dblos74dqqjkguwkrwn4a2c27ieygoxmgofyzdkz6m";
    card["schemas"] = value!({"request": location(canonical, "request"), "receipt": location(canonical, "receipt")});
    card["schemas_mirror"] = value!({"request": location(gateway, "request"), "receipt": location(gateway, "receipt")});
    let output = piped(card.to_string().as_bytes(), &["-o", "json"]);
    let report = json(&output);
    assert_eq!((code(&output), codes(&report)), (0, vec!["schema-mirror-unproven"; 2]), "{report:#}");
}

#[test]
fn a_card_is_held_against_its_earlier_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let earlier = folder.path().join("earlier.json");
    std::fs::write(&earlier, CARD).expect("the folder can be written");
    let earlier = earlier.to_str().expect("UTF-8");
    let judged = |card: &str| {
        let output = piped(card.as_bytes(), &["--previous", earlier, "-o", "json"]);
        (code(&output), json(&output))
    };
    let (same, report) = judged(CARD);
    assert_eq!((same, codes(&report)), (0, vec![]));
    let (moved, report) = judged(&CARD.replace("commandlayer.eth", "other.eth"));
    assert_eq!((moved, codes(&report)), (1, vec!["version-not-raised", "updated-at-not-advanced"]));
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
    let caret = "15 |   \"entry\": \"x402://summarizeagent.eth/summarize/v1.0.0\",\n   |            ^^^^^^^^";
    assert!(out(&text).contains(caret), "{}", out(&text));
    let short = piped(card.as_bytes(), &["-o", "short"]);
    assert!(out(&short).contains("-:15:12: fail entry-version-noncompliant: "), "{}", out(&short));
}

#[test]
fn the_profile_decides_and_others_are_offered() {
    let card = CARD.replace("summarize/v1\"", "summarize/v1.0.0\"");
    let report = json(&piped(card.as_bytes(), &["-o", "json"]));
    assert_eq!(report["near_misses"], value!(["agent-cards/1.0.0+released"]));
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
    assert_eq!(code(&run([OsStr::new("lint"), folder.path().as_os_str()])), 0);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/nonexistent", folder.path().join("elsewhere.json")).expect("a symlink");
        assert_eq!(code(&run([OsStr::new("lint"), folder.path().as_os_str()])), 0, "what it leads to is not read");
    }
    let empty = tempfile::tempdir().expect("a temporary folder");
    assert_eq!(code(&run([OsStr::new("lint"), empty.path().as_os_str()])), 2);
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

#[test]
fn the_system_is_told_by_the_shape_or_named() {
    let aevum = br#"{"agent_id": "01HZQK3P8EMXR9V7T5N2W4J6C0"}"#;
    let report = json(&piped(aevum, &["-o", "json"]));
    assert_eq!((&report["flavour"], &report["profile"]), (&Value::from("aevum"), &Value::Null));
    let unknown = piped(b"{\"name\": \"a\"}", &["-o", "json"]);
    assert_eq!((code(&unknown), codes(&json(&unknown))), (1, vec!["flavour-unknown"]));
    assert_eq!(json(&unknown)["flavour"], Value::Null);
    let both = br#"{"agent_id": "01HZQK3P8EMXR9V7T5N2W4J6C0", "ens": "a.eth"}"#;
    let report = json(&piped(both, &["-o", "json"]));
    assert_eq!(
        (codes(&report), &report["findings"][0]["observed"]),
        (vec!["flavour-ambiguous"], &"commandlayer, aevum".into())
    );
    assert_eq!(json(&piped(both, &["--as", "commandlayer", "-o", "json"]))["flavour"], "commandlayer");
    assert_eq!(code(&piped(both, &["--as", "commandlair"])), 2);
}

#[test]
fn a_url_is_fetched_by_the_rules_for_foreign_urls() {
    let card = "https://a2a.sandbox.example/.well-known/agent-card.json";
    let output = run(["lint", card, "--sandbox", "-o", "json"]);
    let report = json(&output);
    assert_eq!((code(&output), &report["flavour"], &report["valid"]), (0, &"a2a".into(), &true.into()));
    for url in
        ["https://127.0.0.1/card.json", "https://user:geheim@a2a.sandbox.example/x", "https://none.sandbox.example/"]
    {
        let output = run(["lint", url, "--sandbox"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((code(&output), out(&output)), (3, ""), "{url}: {said}");
        assert!(!said.contains("geheim") && said.starts_with("clresolve: https://"), "{said}");
    }
    assert_eq!(code(&run(["lint", card, "--sandbox", "--fix"])), 2);
}

#[test]
fn several_cards_give_a_list_and_the_worst_exit() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [good, bad] = ["good.json", "bad.json"].map(|name| folder.path().join(name));
    std::fs::write(&good, CARD).expect("the folder can be written");
    std::fs::write(&bad, CARD.replace("/v1\"", "/v2\"")).expect("the folder can be written");
    let arguments = [OsStr::new("lint"), good.as_os_str(), bad.as_os_str(), "-o".as_ref(), "json".as_ref()];
    let output = run(arguments);
    assert_eq!(code(&output), 1);
    let reports = json(&output);
    assert_eq!([&reports[0]["valid"], &reports[1]["valid"]], [true, false]);
    assert_eq!(reports[1]["file"], bad.display().to_string());
}

#[test]
fn a_file_that_cannot_be_read_stops_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = folder.path().join("good.json");
    std::fs::write(&good, CARD).expect("it can be written");
    let (good, gone) = (good.to_str().expect("UTF-8"), folder.path().join("gone.json"));
    let output = run(["lint", gone.to_str().expect("UTF-8"), good, "-o", "json"]);
    assert_eq!(code(&output), 2);
    assert_eq!(json(&output).as_array().map(Vec::len), Some(1), "a whole list");
    assert!(String::from_utf8_lossy(&output.stderr).contains("gone.json"));
    // No file is fixed if one of the documents cannot be.
    let reversed = CARD.replace("\"updated_at\": \"2025", "\"updated_at\": \"2024");
    std::fs::write(good, &reversed).expect("it can be written");
    assert_eq!(code(&run(["lint", "--fix", good, "-"])), 2);
    assert_eq!(std::fs::read_to_string(good).expect("it is there"), reversed);
}

#[test]
fn sarif_names_rule_file_and_region() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("my card.json");
    std::fs::write(&path, CARD.replace("summarize/v1\"", "summarize/v2\"")).expect("the folder can be written");
    let output = run([OsStr::new("lint"), path.as_os_str(), "-o".as_ref(), "sarif".as_ref()]);
    assert_eq!(code(&output), 1);
    let log = json(&output);
    let driver = &log["runs"][0]["tool"]["driver"];
    assert_eq!((&driver["name"], &driver["version"]), (&"clresolve".into(), &env!("CARGO_PKG_VERSION").into()));
    let help = &driver["rules"][0]["helpUri"];
    assert_eq!(help, "urn:clresolve:reason:entry-version-noncompliant");
    let result = &log["runs"][0]["results"][0];
    assert_eq!((&log["version"], &result["ruleId"]), (&"2.1.0".into(), &"entry-version-noncompliant".into()));
    let place = &result["locations"][0]["physicalLocation"];
    assert!(place["artifactLocation"]["uri"].as_str().expect("a URI").ends_with("/my%20card.json"), "{place}");
    assert_eq!((&place["region"]["startLine"], &place["region"]["startColumn"]), (&16.into(), &12.into()));
}

#[test]
fn fixes_write_the_file_anew_and_keep_what_they_do_not_mean() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("card.json");
    let slug = "  \"slug\": \"summarizeagent\",\n";
    let wrong = CARD.replace(slug, "").replace("{\n", "{\n  \"slug\": \"Summarize Agent\",\n").replacen(
        "schemas\": {\n  \"slug\": \"Summarize Agent\",\n",
        "schemas\": {\n",
        1,
    );
    std::fs::write(&path, &wrong).expect("the folder can be written");
    let output = run([OsStr::new("lint"), path.as_os_str(), "--fix".as_ref()]);
    assert_eq!(code(&output), 0, "{}", out(&output));
    let fixed = std::fs::read_to_string(&path).expect("the card is there");
    let stamp = fixed.lines().find(|line| line.contains("updated_at")).expect("a time of change");
    let expected = CARD.lines().map(|line| if line.contains("updated_at") { stamp } else { line });
    assert_eq!(fixed, expected.map(|line| format!("{line}\n")).collect::<String>());
    assert_ne!(stamp, "  \"updated_at\": \"2025-11-22T00:00:00Z\"");

    std::fs::write(&path, CARD).expect("the folder can be written");
    assert_eq!(code(&run([OsStr::new("lint"), path.as_os_str(), "--fix".as_ref()])), 0);
    assert_eq!(std::fs::read_to_string(&path).expect("the card is there"), CARD);
    assert_eq!(code(&piped(CARD.as_bytes(), &["--fix"])), 2);
}

#[test]
fn a_card_is_converted_and_says_what_it_lost() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("card.json");
    std::fs::write(&path, CARD).expect("the folder can be written");
    let convert = |rest: &[&str]| {
        let mut arguments = vec![OsStr::new("cards"), OsStr::new("convert"), path.as_os_str()];
        arguments.extend(rest.iter().map(OsStr::new));
        run(arguments)
    };
    let output = convert(&["--to", "a2a"]);
    let card = json(&output);
    assert_eq!((&card["name"], &card["skills"][0]["id"]), (&"Summarize Agent".into(), &"summarize".into()));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("lost     /networks [\"eip155:1\"]\n"), "{said}");
    let all = json(&convert(&["--to", "aevum", "--from", "commandlayer", "-o", "json"]));
    assert_eq!((&all["from"], &all["to"]), (&"commandlayer".into(), &"aevum".into()));
    assert!(all["lost"].as_array().is_some_and(|lost| lost.iter().any(|lost| lost["pointer"] == "/license")), "{all}");
    assert_eq!(code(&convert(&["--to", "acme"])), 2);
    std::fs::write(&path, "{\"name\": 5}").expect("the folder can be written");
    assert_eq!(code(&convert(&["--to", "a2a"])), 2);
    std::fs::write(&path, "[]").expect("the folder can be written");
    assert_eq!(code(&convert(&["--to", "a2a"])), 1);
}

#[test]
fn published_cards_pass_under_the_profile_of_their_line() {
    let Some(corpus) = corpus("commandlayer") else { return };
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
