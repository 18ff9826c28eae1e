//! `clresolve plan`, run as a publisher runs it.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Output;

use clresolve_core::name::EnsName;
use clresolve_core::reading::EnsAnswer;
use clresolve_resolver::resolve::Resolver;
use clresolve_resolver::sandbox::Sandbox;
use clresolve_verdict::evidence::CardLocations;
use clresolve_verdict::verdict::ResolutionDepth;
use serde_json::Value;

use crate::support::corpus::corpus;
use crate::support::program::{code, err, json, out, run};

/// A good card whose name begins with `label`.
fn card(label: &str) -> String {
    let schema = |side: &str| {
        format!(
            "ipfs://bafybeigvf6nkzws7dblos74dqqjkguwkrwn4a2c27ieygoxmgofyzdkz6m/commons/clean/{side}s/clean.{side}.schema.json"
        )
    };
    let card = serde_json::json!({
        "$id": format!("https://cards.example/{label}.eth.json"),
        "id": format!("{label}.eth"),
        "slug": label,
        "display_name": "Clean Agent",
        "description": "Cleans texts.",
        "owner": "commandlayer.eth",
        "ens": format!("{label}.eth"),
        "version": "1.0.0",
        "status": "active",
        "class": "commons",
        "implements": ["clean"],
        "schemas": {"request": schema("request"), "receipt": schema("receipt")},
        "entry": format!("x402://{label}.eth/clean/v1"),
        "networks": ["eip155:1"],
        "license": "Apache-2.0",
        "created_at": "2025-11-22T00:00:00Z",
        "updated_at": "2025-11-22T00:00:00Z",
    });
    format!("{card:#}\n")
}

fn plan(target: &Path, arguments: &[&str]) -> Output {
    run([OsStr::new("plan"), target.as_os_str()].into_iter().chain(arguments.iter().map(OsStr::new)))
}

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("the folder can be written");
        fs::write(path, text).expect("the folder can be written");
    }
    folder
}

/// What a publisher copies from the terminal must be the record, not an escape of it.
#[test]
fn records_with_joiners_can_be_pasted() {
    let name = "👨\u{200d}👩\u{200d}👧.eth";
    let family = card("family")
        .replace("family.eth", name)
        .replace("cards.example/👨\u{200d}👩\u{200d}👧.eth", "cards.example/family");
    let folder = folder(&[("👨\u{200d}👩\u{200d}👧.eth.json", &family)]);
    let plans = json(&plan(folder.path(), &["-o", "json"]));
    assert_eq!(plans["would_be"], "trusted", "{plans:#}");
    let text = plan_text(folder.path());
    for (key, value) in plans["records"].as_object().expect("records") {
        let line = format!("  {key}={}\n", value.as_str().expect("a text"));
        assert!(text.contains(&line), "{line:?} is not in {text:?}");
    }
    assert!(text.contains("then ask `clresolve \"$(printf %b '"), "{text}");
}

#[test]
fn records_that_must_not_be_set_are_not_shown_as_ones() {
    let hidden = card("cleanagent").replace("\"commandlayer.eth\"", "\"command\\u200dlayer.eth\"");
    let folder = folder(&[("a.json", &hidden)]);
    let text = String::from_utf8(plan(folder.path(), &[]).stdout).expect("UTF-8");
    assert!(text.contains("  cl.owner: not to be set; it reads command\\u{200d}layer.eth\n"), "{text}");
    assert!(!text.contains("cl.owner="), "{text}");
}

#[test]
fn a_folder_of_cards_gives_a_plan_each() {
    let folder = folder(&[
        ("agents/a.json", &card("cleanagent")),
        ("agents/b.json", &card("otheragent")),
        ("README.md", "# cards\n"),
        (".git/config", "secret"),
    ]);
    let output = plan(folder.path(), &["-o", "json"]);
    assert_eq!(code(&output), 0, "{}", err(&output));
    assert!(err(&output).contains("hidden left out"), "{}", err(&output));
    let plans = json(&output);
    let plans = plans.as_array().expect("a list");
    let names: Vec<_> = plans.iter().map(|plan| plan["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["cleanagent.eth", "otheragent.eth"]);
    for plan in plans {
        assert_eq!((&plan["schema"], &plan["would_be"]), (&"clresolve.plan/1".into(), &"trusted".into()));
        assert!(plan.get("state").is_none() && plan.get("anchor").is_none(), "a plan is no verdict");
        assert_eq!(plan["records"].as_object().expect("records").len(), 6);
        assert_eq!(plan["cid"], plans[0]["cid"]);
    }

    let text = plan_text(folder.path());
    for part in [
        "plan for cleanagent.eth: would be trusted\n",
        "records to set:\n  cl.agentcard=https://cards.example/cleanagent.eth.json\n",
        "  cl.entry=x402://cleanagent.eth/clean/v1\n",
        "This is a plan, not a verdict: ",
    ] {
        assert!(text.contains(part), "{part:?} is missing from\n{text}");
    }
    assert!(!text.contains("Go ahead"));
}

fn plan_text(target: &Path) -> String {
    out(&plan(target, &[])).to_owned()
}

#[test]
fn a_single_card_is_its_own_cid() {
    let folder = folder(&[("card.json", &card("cleanagent"))]);
    let output = plan(&folder.path().join("card.json"), &["-o", "json", "--url", "https://elsewhere.example/c.json"]);
    let plan = json(&output);
    assert_eq!(code(&output), 0);
    assert!(plan["cid"].as_str().expect("a CID").starts_with("bafkrei"));
    assert_eq!(
        (&plan["path"], &plan["records"]["cl.agentcard"]),
        (&Value::Null, &"https://elsewhere.example/c.json".into())
    );
}

/// What the text proposes is one publication: no line names the CID of another import profile as one to set.
#[test]
fn the_plan_of_an_import_profile_names_its_cid_alone() {
    let folder = folder(&[("card.json", &card("cleanagent"))]);
    let [v1, v0] = ["unixfs-v1-2025", "unixfs-v0-2015"].map(|profile| {
        let output = plan(folder.path(), &["--import", profile]);
        assert_eq!(code(&output), 0, "{}", err(&output));
        out(&output).to_owned()
    });
    let cid = |text: &str| text.lines().find_map(|line| line.strip_prefix("  cid     ")).expect("a CID").to_owned();
    assert_ne!(cid(&v1), cid(&v0));
    for (text, own, other, profile) in
        [(&v1, cid(&v1), cid(&v0), "unixfs-v0-2015"), (&v0, cid(&v0), cid(&v1), "unixfs-v1-2025")]
    {
        assert!(
            text.contains(&format!("cl.cid.agentcard={own}\n")) && text.contains(&format!("ipfs://{own}/card.json\n")),
            "{text}"
        );
        let advice =
            format!("  or      {other} if your importer follows {profile}: plan again with --import {profile}\n");
        assert!(text.contains(&advice) && text.matches(&other).count() == 1, "{text}");
    }
    assert_eq!(plan_text(folder.path()), v1, "the default");
    assert!(v1.contains("  identity would be trusted\n  schemas  would be trusted\n"), "{v1}");
    assert_eq!(code(&plan(folder.path(), &["--import", "unixfs"])), 2);
}

#[test]
fn a_payee_stands_among_the_records_and_in_the_call() {
    let folder = folder(&[("card.json", &card("cleanagent"))]);
    let target = folder.path().join("card.json");
    let file = folder.path().join("call.txt");
    let address = "0x00000000000000000000000000000000000000AA";
    let payees = [format!("eip155:1:{address}"), format!("eip155:8453:{address}")];
    let flags = ["--payee", &payees[0], "--payee", &payees[1]];
    let output = plan(&target, &flags);
    let text = out(&output);
    for line in [format!("  addr(60)={address}\n"), format!("  addr(2147492101)={address}\n")] {
        assert!(text.contains(&line), "{text}");
    }
    let (_, unset) = text.split_once("to be paid, set these too:\n").expect("what is not known");
    assert!(!unset.contains("addr(60)") && unset.contains("addr(2147483648)"), "{text}");
    let written = ["-o", "json", "--calldata", file.to_str().expect("text")];
    let with = json(&plan(&target, &[&flags[..], &written].concat()));
    let call = fs::read_to_string(&file).expect("call data");
    assert_eq!(call.matches("8b95dd71").count(), 2, "setAddr(bytes32,uint256,bytes)");
    assert_eq!(with["payment_records"][0]["value"], address);
    assert_eq!(code(&plan(folder.path(), &["--payee", "cleanagent.eth"])), 2);
}

#[test]
fn the_worst_card_decides_the_code() {
    let bad = card("otheragent").replace("/clean/v1", "/clean/v2");
    let folder = folder(&[("a.json", &card("cleanagent")), ("b.json", &bad), ("broken.json", "{\"a\": 1, \"a\": 2}")]);
    let output = plan(folder.path(), &[]);
    assert_eq!(code(&output), 1);
    assert!(out(&output).contains("plan for otheragent.eth: would be untrusted"), "{}", out(&output));
    assert!(out(&output).contains("entry-version-noncompliant"));
    assert!(err(&output).contains("not read as a card: broken.json"), "{}", err(&output));
    fs::write(folder.path().join("b2.json"), card("cleanagent")).expect("the folder can be written");
    let rivals = plan(folder.path(), &[]);
    assert!(err(&rivals).contains("2 cards are bound to cleanagent.eth"), "{}", err(&rivals));
    fs::remove_file(folder.path().join("b2.json")).expect("the folder can be written");
    let short = plan_short(folder.path());
    assert_eq!(
        short,
        "would be untrusted  otheragent.eth  entry-version-noncompliant,card-id-mismatch\n\
         would be trusted  cleanagent.eth  card-id-mismatch\n"
    );
}

fn plan_short(target: &Path) -> String {
    out(&plan(target, &["-o", "short"])).to_owned()
}

#[test]
fn reasons_come_before_the_records() {
    let folder = folder(&[("a.json", &card("cleanagent").replace("/clean/v1", "/clean/v2"))]);
    let text = plan_text(folder.path());
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part:?} is missing from\n{text}"));
    assert!(
        text.starts_with("plan for cleanagent.eth: would be untrusted\n\n  ✗ entry-version-noncompliant"),
        "{text}"
    );
    assert!(
        at("! card-id-mismatch") < at("  cid  ") && at("  cid  ") < at("records of this card, not to be set:"),
        "{text}"
    );
    assert!(!text.contains("--calldata"), "{text}");
}

#[test]
fn call_data_is_written_on_request_for_trusted_cards_only() {
    let bad = card("otheragent").replace("/clean/v1", "/clean/v2");
    let cards = folder(&[("a.json", &card("cleanagent")), ("b.json", &bad)]);
    let (both, bad) = (cards.path(), cards.path().join("b.json"));
    for output in [plan(both, &[]), plan(both, &["--json"])] {
        assert!(!out(&output).contains("0xac9650d8"), "{}", out(&output));
    }
    let files = tempfile::tempdir().expect("a temporary folder");
    let file = files.path().join("call.txt");
    let flag = ["--calldata", file.to_str().expect("text")];
    let output = plan(&bad, &flag);
    assert_eq!((code(&output), file.exists()), (1, false), "{}", err(&output));
    assert!(err(&output).contains("no call data for otheragent.eth, which would be untrusted"), "{}", err(&output));
    assert_eq!(code(&plan(both, &flag)), 1);
    let written = fs::read_to_string(&file).expect("call data");
    assert!(written.starts_with("cleanagent.eth 0xac9650d8") && written.lines().count() == 1, "{written}");

    let same = plan(&bad, &["--calldata", bad.to_str().expect("text")]);
    assert_eq!(code(&same), 2);
    assert!(err(&same).contains("this is the card; name another file"), "{}", err(&same));
    let out_too = plan(both, &[&flag[..], &["--out", flag[1]]].concat());
    assert_eq!(code(&out_too), 2, "{}", err(&out_too));
}

#[test]
fn sandbox_rejects_cards_that_it_cannot_publish() {
    let elsewhere = card("cleanagent");
    let taken = card("summarizeagent").replace("https://cards.example/", "https://cards.sandbox.example/");
    let unnamed = elsewhere.replace("\"ens\": \"cleanagent.eth\"", "\"ens\": \"a..eth\"");
    for (card, part) in [
        (elsewhere, "cleanagent.eth: the card's $id must be a URL below https://cards.sandbox.example/"),
        (taken, "summarizeagent.eth: the sandbox already has a card of this name"),
        (unnamed, "a card has no usable ENS name"),
    ] {
        let folder = folder(&[("a.json", &card)]);
        // A sandbox that accepts the card ends too: it cannot write its configuration.
        let unwritable = ["--write-config", "/no/such/folder/sandbox.toml"].map(OsStr::new);
        let publish = [OsStr::new("sandbox"), OsStr::new("--publish"), folder.path().as_os_str()];
        let output = run(publish.into_iter().chain(unwritable));
        assert_eq!((code(&output), out(&output)), (2, ""), "{}", err(&output));
        assert!(err(&output).contains(part), "{part}: {}", err(&output));
    }
}

#[test]
fn what_cannot_be_planned_is_usage() {
    let empty = folder(&[("README.md", "# nothing\n")]);
    let cards = folder(&[("a.json", &card("cleanagent")), ("b.json", &card("otheragent"))]);
    for (output, part) in [
        (plan(empty.path(), &[]), "contains no card"),
        (plan(&empty.path().join("none"), &[]), "cannot read"),
        (plan(cards.path(), &["--url", "https://cards.example/a.json"]), "ends with a slash"),
        (plan(cards.path(), &["--profile", "no/such"]), "no profile"),
    ] {
        assert_eq!((code(&output), out(&output)), (2, ""), "{part}: {}", err(&output));
        assert!(err(&output).contains(part), "{part}: {}", err(&output));
    }
}

#[cfg(unix)]
#[test]
fn symlinks_and_what_is_no_file_are_refused() {
    let cards = folder(&[("a.json", &card("cleanagent"))]);
    std::os::unix::fs::symlink("/etc/hostname", cards.path().join("b.json")).expect("a symlink");
    let output = plan(cards.path(), &[]);
    assert_eq!((code(&output), out(&output)), (2, ""));
    assert!(err(&output).contains("is a symlink"), "{}", err(&output));

    let cards = folder(&[("a.json", &card("cleanagent"))]);
    let _socket = std::os::unix::net::UnixListener::bind(cards.path().join("b.json")).expect("a socket");
    let output = plan(cards.path(), &[]);
    assert_eq!(code(&output), 2);
    assert!(err(&output).contains("neither a file nor a folder"), "{}", err(&output));
}

#[test]
fn folders_without_end_are_refused() {
    let deep = "d/".repeat(40) + "a.json";
    let cards = folder(&[(&deep, &card("cleanagent"))]);
    let output = plan(cards.path(), &[]);
    assert_eq!(code(&output), 2);
    assert!(err(&output).contains("deeper than 32 folders"), "{}", err(&output));
}

/// Names of the sandbox whose card decides the verdict, not what the chain, a host or a gateway does. The last binds
/// schemas at a location that no manifest names and no host serves, which a plan cannot know: it is compared at
/// `identity` alone.
const DECIDED_BY_THE_CARD: [&str; 9] = [
    "file-cid.eth",
    "several-verbs.eth",
    "entry-version.eth",
    "released-form.eth",
    "verb-unknown.eth",
    "commercial-as-commons.eth",
    "schema-other-release.eth",
    "schema-placeholder.eth",
    "next-line.eth",
];

/// State, codes and near misses, of which `state` is the member of that name.
fn judgement(value: &Value, state: &str, near_misses: Vec<Value>) -> Value {
    let codes: Vec<_> = value["reasons"].as_array().expect("reasons").iter().map(|reason| &reason["code"]).collect();
    serde_json::json!([value[state], codes, near_misses])
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().expect("a list").clone()
}

#[test]
fn a_plan_a_verdict_and_an_audit_agree_on_the_same_card() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let but_the_last = &DECIDED_BY_THE_CARD[..DECIDED_BY_THE_CARD.len() - 1];
    for (depth, flag, names) in [
        (ResolutionDepth::Identity, "identity", &DECIDED_BY_THE_CARD[..]),
        (ResolutionDepth::Schemas, "schemas", but_the_last),
    ] {
        let list_of_names = folder(&[("names", &names.join("\n"))]);
        let list_of_names = list_of_names.path().join("names");
        let audit = ["audit", "--sandbox", "--depth", flag, "--format", "json", "--names"].map(OsStr::new);
        let audit = json(&run(audit.into_iter().chain([list_of_names.as_os_str()])));
        let published = runtime.block_on(published(depth, names));
        assert_eq!((published.len(), list(&audit["rows"]).len()), (names.len(), names.len()));
        for (Published { url, card, verdict }, row) in published.into_iter().zip(list(&audit["rows"])) {
            let name = &verdict["name"]["input"];
            let near = list(&verdict["profile"]["near_misses"]).iter().map(|near| near["profile"].clone()).collect();
            let expected = judgement(&verdict, "state", near);
            let folder = folder(&[("card.json", &card)]);
            let flags = ["--sandbox", "--depth", flag, "--url", &url, "-o", "json"];
            let plan = json(&plan(&folder.path().join("card.json"), &flags));
            assert_eq!(judgement(&plan, "would_be", list(&plan["near_misses"])), expected, "{name} at {flag}");
            assert_eq!(judgement(&row, "state", list(&row["near_misses"])), expected, "{name} at {flag}");
            assert_eq!(plan["depth"], flag);
        }
    }
}

/// A card of the sandbox as it is published, and the verdict on its name.
struct Published {
    url: String,
    card: String,
    verdict: Value,
}

async fn published(depth: ResolutionDepth, names: &[&str]) -> Vec<Published> {
    let sandbox = Sandbox::start().await.expect("the sandbox starts");
    let mut config = sandbox.config();
    config.rules.depth = depth;
    let resolver = Resolver::new(&config).await.expect("a resolver");
    let mut all = Vec::new();
    for name in names {
        let reading = resolver.read_records(&EnsName::parse(name).expect("a name")).await.expect("records");
        let EnsAnswer::Records(found) = reading.answer else { panic!("{name} has no records") };
        let CardLocations { url, cid, path, .. } = CardLocations::from_records(&found.records);
        let walk = resolver.ipfs_cat(&cid.expect("a CID"), &path).await;
        let card = String::from_utf8(walk.walked.bytes().expect("a card").to_vec()).expect("text");
        let verdict = serde_json::to_value(&**resolver.resolve(name).await.verdict()).expect("JSON");
        all.push(Published { url: url.expect("a URL"), card, verdict });
    }
    all
}

#[test]
fn a_plan_and_a_conversion_open_no_connection_and_no_memory() {
    let canary = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    canary.set_nonblocking(true).expect("a mode");
    let address = canary.local_addr().expect("an address");
    let config = format!(
        "connect-to = [\"rules.example:443:{address}\"]\nrpc = [\"http://{address}\"]\n[memory]\npath = \"seen.db\"\n\
         [[manifest]]\nurl = \"https://rules.example/key/m.json\"\ndigest = \"sha256:{}\"\n",
        "ab".repeat(32)
    );
    let files = folder(&[("c.toml", &config), ("cards/card.json", &card("cleanagent"))]);
    let (file, card) = (files.path().join("c.toml"), files.path().join("cards/card.json"));
    let flags = ["--config", file.to_str().expect("text")];
    let planned = plan(&card, &flags);
    let converted = run(["cards", "convert", card.to_str().expect("text"), "--to", "a2a"].into_iter().chain(flags));
    for output in [&planned, &converted] {
        let note =
            "note: the manifest at https://rules.example/… is not fetched, since this command opens no connection";
        assert!(err(output).contains(note), "{}", err(output));
    }
    assert_eq!(code(&planned), 0, "{}", err(&planned));
    let refused = canary.accept().expect_err("nobody connects");
    assert_eq!(refused.kind(), std::io::ErrorKind::WouldBlock);
    assert!(!files.path().join("seen.db").exists());
}

#[test]
fn hosted_cards_of_the_newer_line_would_be_trusted_under_its_profile() {
    let Some(cards) = corpus("commandlayer/agent-cards-v1.1.0/website/agent-cards") else { return };
    let output = plan(&cards, &["--profile", "agent-cards/1.1.0", "-o", "json"]);
    assert_eq!(code(&output), 0, "{}{}", out(&output), err(&output));
    let plans = json(&output);
    let plans = plans.as_array().expect("a list");
    assert_eq!(plans.len(), 12);
    assert!(plans.iter().all(|plan| plan["reasons"] == Value::Array(Vec::new())), "{plans:#?}");
    let letter = json(&plan(&cards, &["-o", "json"]));
    let near: Vec<_> = letter.as_array().expect("a list").iter().map(|plan| &plan["near_misses"]).collect();
    assert!(near.iter().all(|near| **near == serde_json::json!(["agent-cards/1.1.0"])), "{near:?}");
}
