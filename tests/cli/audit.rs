//! `clresolve audit` on the sandbox: rows, counts, formats, invalid input and Ctrl-C.

use std::collections::{BTreeSet, HashMap};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use clresolve_audit::governance_log::{GovernanceLog, GovernanceLogRow, GovernanceTableLayout};
use clresolve_ipfs::ContentId;
use clresolve_resolver::config::Config;
use clresolve_resolver::resolve::Resolver;
use clresolve_resolver::sandbox::{CustomSandbox, Sandbox};
use clresolve_sandbox::chain::SandboxRpcFault;
use clresolve_sandbox::spec::SandboxSpec;
use clresolve_sandbox::{IpfsGatewayBehaviour, ServedChainState};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::corpus::corpus;
use crate::support::program::{BINARY, program};
use crate::support::sandbox::{Served, json_of, sealed};
use crate::support::server::{self, Answer, Server};

/// A list with names of every state, and lines that are not names.
const LIST: &[u8] = b"\xef\xbb\xbf# agents of the sandbox\r\n\
    summarizeagent.eth\r\n\
    checksum-mismatch.eth   # the record is wrong\n\
    \n\
    host-changed.eth\n\
    resolver-garbage.eth\n\
    =cmd|'/c calc'!A1 \"<script>alert(1)</script>`\n\
    a\xe2\x80\xae.eth\n\
    \xff\xfe.eth\n";

/// The binary with the sandbox as its network.
fn audit(arguments: &[&str]) -> Command {
    let mut command = program();
    command.args(["audit", "--sandbox"]).args(arguments);
    command
}

fn run(list: &[u8], arguments: &[&str]) -> Output {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("names.txt");
    std::fs::write(&file, list).unwrap();
    audit(&["--names", file.to_str().unwrap()]).args(arguments).output().expect("the binary runs")
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

fn text_of(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("a report is UTF-8")
}

/// Parses CSV (RFC 4180) into lines of cells.
fn csv(text: &str) -> Vec<Vec<String>> {
    let (mut lines, mut line, mut cell, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '"' if quoted && characters.peek() == Some(&'"') => cell.extend(characters.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => line.push(std::mem::take(&mut cell)),
            '\r' if !quoted => {}
            '\n' if !quoted => {
                line.push(std::mem::take(&mut cell));
                lines.push(std::mem::take(&mut line));
            }
            c => cell.push(c),
        }
    }
    assert!(!quoted && cell.is_empty() && line.is_empty(), "the last line has its end");
    lines
}

#[test]
fn every_name_of_the_sandbox_gets_the_row_that_its_list_tells() {
    let expected = Sandbox::expected_verdicts();
    let list: String = expected.iter().map(|e| format!("{}\n", e.name)).collect();
    // The chain reads of a name share 60 % of its time limit. `offchain-loop.eth` needs five calls with four rounds of
    // gateway requests in between. Under load they exceed 9 s, the share of the default limit.
    let options = ["--depth", "identity", "--timeout", "2m"];
    let output = run(list.as_bytes(), &[&options[..], &["--format", "json"]].concat());
    assert_eq!(code(&output), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let report = json_of(&output.stdout);

    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), expected.len());
    for (row, expected) in rows.iter().zip(&expected) {
        let mut codes: Vec<&str> =
            row["reasons"].as_array().unwrap().iter().filter_map(|reason| reason["code"].as_str()).collect();
        codes.sort_unstable();
        codes.dedup();
        let wanted: Vec<&str> = expected.codes.iter().map(|code| code.slug()).collect();
        assert_eq!((&row["input"], &row["state"]), (&json!(expected.name), &json!(expected.state)));
        assert_eq!(codes, wanted, "{}", expected.name);
    }

    let count = |state: &str| expected.iter().filter(|e| e.state.as_str() == state).count();
    for state in ["trusted", "untrusted", "indeterminate"] {
        assert_eq!(report["counts"][state], count(state), "{state}");
    }
    assert_eq!(report["counts"]["names"], expected.len());
    assert_eq!((&report["complete"], &report["scope"]["world"]), (&json!(true), &json!("sandbox")));
    for group in report["reasons"].as_array().unwrap() {
        let having = expected.iter().filter(|e| e.codes.iter().any(|code| group["code"] == code.slug())).count();
        assert_eq!(group["names"], having, "{}", group["code"]);
    }
    let drafts: Vec<Value> = report["resolution"].as_array().unwrap().iter().map(of_any_sandbox).collect();
    assert_eq!(drafts.len(), count("untrusted"));

    // Each printed draft is parsed again.
    let table = csv(text_of(&run(list.as_bytes(), &[&options[..], &["--format", "csv"]].concat())));
    let column = table[0].iter().position(|column| column == "resolution_row").unwrap();
    let printed: Vec<&str> = table[1..].iter().map(|line| &*line[column]).filter(|row| !row.is_empty()).collect();
    let of_log = |printed: &str| {
        rows_of_log(GovernanceTableLayout::Published, printed).iter().map(of_any_sandbox).collect::<Vec<_>>()
    };
    assert_eq!(of_log(&printed.join("\n")), drafts);
    let page = run(list.as_bytes(), &[&options[..], &["--format", "html"]].concat());
    let (_, log) = text_of(&page).split_once("<section id=\"log\">").expect("a section");
    let (log, _) = log.split_once("</pre>").expect("its end");
    let printed: Vec<&str> = log.lines().filter(|line| line.starts_with("| 2")).collect();
    let printed = unescaped(&printed.join("\n"));
    assert_eq!(of_log(&printed), drafts);
}

/// A drafted row without the digits of its conclusion, which differ in each sandbox.
fn of_any_sandbox(row: &Value) -> Value {
    let mut row = row.clone();
    let reason = row["reason"].as_str().expect("a reason");
    let (before, digits) = reason.rsplit_once("conclusion sha256:").expect("each draft names its conclusion");
    assert!(digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()), "{reason}");
    row["reason"] = json!(before);
    row
}

/// The rows of a governance log, in the format of drafts in JSON output.
fn rows_of_log(form: GovernanceTableLayout, rows: &str) -> Vec<Value> {
    let log = GovernanceLog::parse(format!("{}{rows}\n", form.table_head_markdown()));
    let row = |row: GovernanceLogRow| {
        let GovernanceLogRow { date, subject, kind, action, decision, reason, .. } = row;
        json!({"date": date, "subject": subject, "kind": kind, "action": action, "decision": decision, "reason": reason})
    };
    log.rows.into_iter().map(row).collect()
}

const LOG_HEAD: &str = "# Log\n\n| date | subject | kind | decision | reason |\n|---|---|---|---|---|\n";

/// The report contains the result of `audit schemas`, which changes no state.
#[test]
fn a_report_holds_the_schema_layers_where_they_are_asked_for() {
    let options = ["--format", "json", "--depth", "identity", "--timeout", "2m"];
    let plain = json_of(&run(NAMES, &options).stdout);
    let output = run(NAMES, &[&options[..], &["--schema-layers"]].concat());
    assert_eq!(code(&output), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let report = json_of(&output.stdout);
    let schema: Value = serde_json::from_str(include_str!("../../schemas/audit.schema.json")).expect("JSON");
    assert!(jsonschema::validator_for(&schema).expect("a schema").is_valid(&report), "{report:#}");
    let alone = program().args(["audit", "schemas", "--sandbox", "--json"]).output().expect("the binary runs");
    let alone = json_of(&alone.stdout);
    let layers = report["schema_layers"].as_array().expect("a list");
    let said = |schemas: &[Value]| -> Vec<Value> {
        schemas.iter().map(|schema| json!([schema["layer"], schema["verb"], schema["side"], schema["state"]])).collect()
    };
    assert!(layers.iter().any(|schema| schema["state"] == "untrusted"), "{layers:?}");
    assert_eq!(said(layers), said(alone.as_array().expect("a list")));
    assert_eq!(
        (&plain["schema_layers"], &report["counts"]["untrusted"]),
        (&Value::Null, &plain["counts"]["untrusted"])
    );
}

/// The default audit also checks the schemas, and finds nothing more about names that follow every rule.
#[test]
fn good_names_are_trusted_under_the_default_audit_too() {
    let good: Vec<String> = Sandbox::expected_verdicts()
        .into_iter()
        .filter(|e| e.state == clresolve_core::state::TrustState::Trusted)
        .map(|e| e.name.clone())
        .collect();
    let output = run(good.join("\n").as_bytes(), &["--format", "json"]);
    let report = json_of(&output.stdout);
    assert_eq!(report["scope"]["depth"], "schemas");
    let rows = report["rows"].as_array().expect("rows");
    let fell: Vec<&Value> = rows.iter().filter(|row| row["state"] != "trusted").collect();
    assert_eq!((rows.len(), code(&output)), (good.len(), Some(0)), "{fell:#?}");
}

#[test]
fn near_misses_stand_in_rows_and_counts() {
    let output =
        run(b"released-form.eth\nnext-line.eth\nentry-version.eth\n", &["--format", "json", "--depth", "identity"]);
    let report = json_of(&output.stdout);
    let near: Vec<_> = report["rows"].as_array().unwrap().iter().map(|row| &row["near_misses"]).collect();
    assert_eq!(near, [&json!(["agent-cards/1.0.0+released"]), &json!(["agent-cards/1.1.0"]), &json!([])]);
    assert_eq!(report["counts"]["near_misses"], json!({"agent-cards/1.0.0+released": 1, "agent-cards/1.1.0": 1}));
}

#[test]
fn a_line_that_is_no_name_is_a_row_and_not_an_end() {
    let output = run(LIST, &["--format", "json"]);
    assert_eq!(code(&output), Some(1));
    let report = json_of(&output.stdout);
    assert_eq!(report["scope"]["depth"], "schemas");
    let rows: Vec<_> = report["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["line"].as_u64().unwrap(), row["state"].as_str().unwrap(), row["reasons"][0]["code"].as_str()))
        .collect();
    assert_eq!(rows.iter().map(|row| row.0).collect::<Vec<_>>(), [2, 3, 5, 6, 7, 8, 9]);
    assert_eq!(rows[3], (6, "indeterminate", Some("resolver-failed")));
    for row in &rows[4..] {
        assert_eq!((row.1, row.2), ("untrusted", Some("name-invalid")));
    }
    let unreadable = &report["rows"][6];
    assert_eq!((&unreadable["conclusion"], &unreadable["normalized"]), (&Value::Null, &Value::Null));
    assert_eq!(unreadable["summary"], "This is not an ENS name: the line is not UTF-8.");
}

#[test]
fn a_record_is_proposed_only_where_the_cid_proves_it() {
    let output = run(LIST, &["--format", "json", "--depth", "identity"]);
    let report = json_of(&output.stdout);
    let row = |name: &str| report["rows"].as_array().unwrap().iter().find(|row| row["input"] == name).unwrap().clone();
    let mended = row("checksum-mismatch.eth");
    assert_eq!(mended["txt"], json!([{"key": "cl.checksum.agentcard", "value": mended["drift"]["proven"]}]));
    let changed = row("host-changed.eth");
    assert_ne!(changed["drift"]["served"], changed["drift"]["proven"]);
    assert_eq!((&changed["txt"], &changed["drift"]["https_ipfs"]), (&json!([]), &json!("differ")));
    assert_eq!(row("summarizeagent.eth")["drift"]["https_ipfs"], "agree");
}

/// The proposed owner is that of the card that the CID proves.
#[test]
fn an_owner_is_proposed_whatever_is_wrong_with_its_record() {
    let names = b"missing-owner.eth\nvalue-inexact.eth\nunsafe-characters.eth\nnot-utf8-record.eth\n";
    let report = json_of(&run(names, &["--format", "json", "--depth", "identity"]).stdout);
    let proposed: Vec<&Value> = report["rows"].as_array().expect("rows").iter().map(|row| &row["txt"]).collect();
    assert_eq!(proposed, [&json!([{"key": "cl.owner", "value": "publisher.eth"}]); 4]);
}

#[test]
fn every_form_holds_hostile_names_in_check() {
    let output = run(LIST, &["--format", "csv", "--depth", "identity"]);
    let table = csv(text_of(&output));
    assert_eq!(table.len(), 8);
    let input = table[0].iter().position(|column| column == "input").unwrap();
    assert!(table.iter().all(|line| line.len() == table[0].len()));
    assert_eq!(table[5][input], "'=cmd|'/c calc'!A1 \"<script>alert(1)</script>`");
    assert_eq!(table[6][input], "a\\u{202e}.eth");

    let output = run(LIST, &["--format", "html", "--depth", "identity"]);
    let page = text_of(&output);
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    assert!(
        page.contains("&lt;script&gt;alert(1)") && page.matches("<script").count() == 1 && !page.contains('\u{202e}')
    );

    let output = run(LIST, &["--format", "sarif", "--depth", "identity"]);
    let log = json_of(&output.stdout);
    let results = log["runs"][0]["results"].as_array().expect("results");
    assert!(results.iter().any(|result| result["ruleId"] == "checksum-mismatch"), "{log}");
    assert!(!text_of(&output).contains('\u{202e}'));

    let output = run(LIST, &["--depth", "identity"]);
    let text = text_of(&output);
    assert!(text.contains("`=cmd\\u{7c}'/c calc'!A1 \"<script>alert(1)</script>\\u{60}`"), "{text}");
    assert!(text.contains("<summary>Draft rows for RESOLUTION.md</summary>"), "{text}");
    assert!(!text.contains('\u{202e}'));
}

#[test]
fn every_log_for_code_hosts_fits_the_schema_of_sarif() {
    // The schema's pattern for language tags is not a valid regular expression. No log contains such a tag.
    let schema = include_str!("../sarif/sarif-2.1.0-rtm.5.json").replace("{2}]?$", "{2}$");
    let schema = json_of(schema.as_bytes());
    let validator = jsonschema::options().should_validate_formats(true).build(&schema).expect("a schema");
    let every: String = Sandbox::expected_verdicts().iter().map(|expected| format!("{}\n", expected.name)).collect();
    let registry = "https://commandlayer.sandbox.example/agent-cards/meta/manifest.json";
    let lists: [(&[u8], &[&str]); 3] =
        [(b"summarizeagent.eth\n", &[]), (LIST, &["--registry", registry]), (every.as_bytes(), &["--timeout", "2m"])];
    for (list, options) in lists {
        let options = [&["--format", "sarif", "--depth", "identity"], options].concat();
        let log = json_of(&run(list, &options).stdout);
        let faults: Vec<_> =
            validator.iter_errors(&log).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(faults.is_empty(), "{options:?}: {faults:?}");
    }
}

/// The commands printed on a page, as a user would copy them.
fn commands(page: &Output) -> Vec<String> {
    let printed = text_of(page).split("<pre tabindex=\"0\">").skip(1).filter_map(|rest| rest.split("</pre>").next());
    printed.map(unescaped).filter(|text| text.starts_with("clresolve ")).collect()
}

fn unescaped(html: &str) -> String {
    html.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

/// The network and the name of a printed command.
fn asked_by(command: &str) -> (String, String) {
    let program = Path::new(BINARY).parent().expect("a folder").display().to_string();
    let path = format!("{program}:{}", std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.args(["-c", &command.replacen("verify", "verify --json", 1)]).env("PATH", path);
    let output = shell.output().expect("a shell");
    let verdict = json_of(&output.stdout);
    let text = |member: &str| verdict.pointer(member).and_then(Value::as_str).unwrap_or_default().to_owned();
    (text("/anchor/world"), text("/name/normalized"))
}

#[test]
fn a_printed_command_asks_the_world_of_its_report() {
    let of_sandbox = run(b"checksum-mismatch.eth\n", &["--format", "html", "--depth", "identity"]);
    let world = Served::start();
    let folder = world.path("it's here; $(id)");
    std::fs::create_dir(&folder).unwrap();
    let (config, names) = (format!("{folder}/my config.toml"), world.path("names.txt"));
    std::fs::copy(world.path("clresolve.toml"), &config).unwrap();
    std::fs::copy(world.path("clresolve.ca.pem"), format!("{folder}/clresolve.ca.pem")).unwrap();
    std::fs::write(&names, "checksum-mismatch.eth\n").unwrap();
    let mut command = program();
    command.args(["audit", "--config", &config, "--names", &names, "--format", "html", "--depth", "identity"]);
    let of_config = command.output().expect("the binary runs");
    for page in [of_sandbox, of_config] {
        let printed = commands(&page);
        assert_eq!(printed.len(), 1, "{printed:?}");
        assert_eq!(asked_by(&printed[0]), ("sandbox".to_owned(), "checksum-mismatch.eth".to_owned()), "{printed:?}");
    }
}

#[test]
fn the_worst_name_gives_the_exit_code() {
    let exit = |list: &str| code(&run(list.as_bytes(), &["--depth", "identity"]));
    assert_eq!(exit("summarizeagent.eth"), Some(0));
    assert_eq!(exit("summarizeagent.eth\nresolver-garbage.eth"), Some(3));
    assert_eq!(exit("resolver-garbage.eth\nhost-changed.eth"), Some(1));
}

#[test]
fn wrong_usage_is_2_and_writes_nothing() {
    for (list, arguments) in [
        (&b"# nobody\n\n"[..], &[][..]),
        (b"a.eth", &["--format", "pdf"]),
        (b"a.eth", &["--concurrency", "0"]),
        (b"a.eth", &["--concurrency", "65"]),
        (b"a.eth", &["--out", "/no/such/folder/file"]),
        (b"a.eth", &["--format", "html", "--format", "json"]),
        (b"a.eth", &["--waive", "/no/such/file"]),
    ] {
        let output = run(list, arguments);
        assert_eq!((code(&output), text_of(&output)), (Some(2), ""), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
    for names in ["/no/such/file", "/"] {
        let output = audit(&["--names", names]).output().unwrap();
        assert_eq!((code(&output), text_of(&output)), (Some(2), ""), "{names}");
    }
}

/// One audit writes every format, and `audit render` writes the same bytes from the JSON report alone.
#[test]
fn render_writes_each_form_as_the_audit_did() {
    const FORMS: [&str; 5] = ["json", "md", "html", "csv", "sarif"];
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let formats: Vec<&str> = FORMS.iter().flat_map(|form| ["--format", form]).collect();
    let (june, july) = (path("june"), path("july"));
    let audited = run(LIST, &[&["--depth", "identity", "--out", &june][..], &formats].concat());
    assert_eq!((code(&audited), text_of(&audited)), (Some(1), ""), "{}", String::from_utf8_lossy(&audited.stderr));
    let since = ["--since", &path("june.json"), "--history", &path("june.json")];
    let audited = run(NAMES, &[&["--depth", "identity", "--out", &july][..], &formats, &since].concat());
    assert_eq!(code(&audited), Some(1), "{}", String::from_utf8_lossy(&audited.stderr));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2 * FORMS.len());
    let june_time = report_at(Path::new(&path("june.json")))["generated_at"].as_str().expect("a time").to_owned();
    let (second, _) = june_time.split_once(['.', 'Z']).expect("its seconds");
    let page = std::fs::read_to_string(path("july.html")).unwrap();
    assert!(page.contains(&format!(" since {second}Z, 1 added, 5 removed, ")), "{page}");
    for report in ["june", "july"] {
        for form in FORMS {
            let (source, written) = (path(&format!("{report}.json")), path(&format!("{report}.{form}")));
            let arguments = ["audit", "render", &source, "--format", form];
            let rendered = program().args(arguments).output().expect("the binary runs");
            assert_eq!(code(&rendered), Some(0), "{}", String::from_utf8_lossy(&rendered.stderr));
            assert_eq!(text_of(&rendered), std::fs::read_to_string(written).unwrap(), "{report} {form}");
        }
    }
    let again = ["audit", "render", &path("july.json"), "--out", &path("again"), "--format", "csv", "--format", "md"];
    let several = program().args(again).output().expect("the binary runs");
    assert_eq!(code(&several), Some(0), "{}", String::from_utf8_lossy(&several.stderr));
    assert!(Path::new(&path("again.csv")).exists() && Path::new(&path("again.md")).exists());
}

#[test]
fn waiver_changes_the_exit_code_and_nothing_else() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("waivers.toml");
    let name = "entry-record-differs.eth";
    let list = format!("summarizeagent.eth\n{name}\n");
    let good = format!(
        "[[waiver]]\nname = \"{name}\"\ncode = \"txt-entry-mismatch\"\nwhere = \"cl.entry\"\n\
         observed = \"x402://{name}/classify/v1\"\nreason = \"<b>renamed\"\nuntil = \"2999-12-31\"\n"
    );
    let waived = |text: &str| {
        std::fs::write(&file, text).unwrap();
        run(list.as_bytes(), &["--depth", "identity", "--json", "--waive", file.to_str().unwrap()])
    };
    let accepted = waived(&good);
    let report = json_of(&accepted.stdout);
    assert_eq!((code(&accepted), &report["waivers"][0]["status"]), (Some(0), &json!("accepted")), "{report:#}");
    assert_eq!((&report["counts"]["untrusted"], &report["rows"][1]["state"]), (&json!(1), &json!("untrusted")));
    assert!(report["resolution"].as_array().is_some_and(|drafts| drafts.len() == 1), "the log must still have its row");
    assert!(fits_schema(&report), "{report:#}");
    for (from, to, status) in [
        ("classify/v1\"", "classify/v2\"", "other-value"),
        ("where = \"cl.entry\"\n", "", "other-value"),
        ("2999-12-31", "2020-12-31", "expired"),
        (&format!("name = \"{name}\""), "name = \"host-changed.eth\"", "no-finding"),
    ] {
        let counted = waived(&good.replace(from, to));
        let said = String::from_utf8_lossy(&counted.stderr).into_owned();
        assert_eq!(code(&counted), Some(1), "{status}: {said}");
        assert_eq!(json_of(&counted.stdout)["waivers"][0]["status"], status);
        assert!(said.contains("waiver of txt-entry-mismatch of "), "{status}: {said}");
    }
    let unknown_code = good.replace("txt-entry-mismatch", "no-such-code");
    for (text, line) in [(unknown_code, "line 3: "), (good.repeat(2), "line 8: ")] {
        let refused = waived(&text);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!((code(&refused), text_of(&refused)), (Some(2), ""), "{said}");
        assert!(said.contains("--waive") && said.contains(line), "{said}");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupt_keeps_what_was_judged() {
    keeps_what_was_judged("-INT");
}

#[cfg(unix)]
#[test]
fn a_request_to_end_keeps_what_was_judged() {
    keeps_what_was_judged("-TERM");
}

#[cfg(unix)]
fn keeps_what_was_judged(signal: &str) {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("report.json");
    let mut child = audit(&["-v", "--names", "-", "--format", "json", "--depth", "identity", "--out"])
        .arg(&out)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    // The list does not end: standard input stays open until the audit is over.
    let mut list = child.stdin.take().expect("stdin is piped");
    list.write_all(b"summarizeagent.eth\nno name\n").unwrap();
    list.flush().unwrap();
    let log = BufReader::new(child.stderr.take().expect("stderr is piped"));
    let mut lines = log.lines().map_while(Result::ok);
    let judged = lines.by_ref().filter(|line| line.contains("judged")).take(2).count();
    assert_eq!(judged, 2);

    let kill = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill runs");
    assert!(kill.success());
    let rest: Vec<String> = lines.collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("interrupted")), "{rest:?}");

    let report = report_at(&out);
    assert_eq!((&report["complete"], &report["counts"]["names"]), (&json!(false), &json!(2)));
    assert!(report["warning"].as_str().unwrap().contains("interrupted"));
    let states: Vec<_> = report["rows"].as_array().unwrap().iter().map(|row| row["state"].clone()).collect();
    assert_eq!(states, ["trusted", "untrusted"]);
    drop(list);
}

/// The gateway never answers, so that the layers take longer than the test.
#[cfg(unix)]
#[test]
fn an_interrupt_while_the_schema_layers_are_read_keeps_every_row() {
    let (runtime, _world, mut config) = start_two_agents();
    let gateway = runtime.block_on(Server::plain(|_| Answer::Stall(Vec::new())));
    config.gateways.truncate(1);
    config.gateways[0].url = gateway.url();
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    config.save(Path::new(&path("config.toml"))).unwrap();
    // No gateway is asked about these.
    std::fs::write(path("names.txt"), "nobody.eth\nno name\n").unwrap();
    let mut command = program();
    command.args(["audit", "--schema-layers", "--json", "--config", &path("config.toml")]);
    command.args(["--names", &path("names.txt"), "--out", &path("report.json")]);
    let mut child = command.stderr(Stdio::null()).spawn().expect("the binary runs");
    while gateway.paths().is_empty() {
        assert_eq!(child.try_wait().unwrap().map(|status| status.code()), None, "it waits for the layers");
        runtime.block_on(async { tokio::time::sleep(Duration::from_millis(20)).await });
    }

    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    assert!(kill.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let report = report_at(Path::new(&path("report.json")));
    assert_eq!((&report["complete"], &report["schema_layers"]), (&json!(false), &Value::Null));
    assert_eq!((&report["counts"]["names"], &report["counts"]["untrusted"]), (&json!(2), &json!(2)));
    assert!(report["warning"].as_str().unwrap().contains("interrupted"));
}

fn report_at(path: &Path) -> Value {
    json_of(&std::fs::read(path).expect("the report is written"))
}

/// Two trusted names, and one that is not.
const NAMES: &[u8] = b"summarizeagent.eth\nraw-cid.eth\nchecksum-mismatch.eth\n";

/// CL-69, across two audits.
#[test]
fn a_card_is_held_against_that_of_an_earlier_audit() {
    let first = run(NAMES, &["--format", "json", "--depth", "identity", "--timeout", "2m"]);
    let mut report = json_of(&first.stdout);
    let codes = |report: &Value| -> Vec<Vec<String>> {
        let of_row = |row: &Value| {
            let reasons = row["reasons"].as_array().expect("a list").iter();
            reasons.map(|reason| reason["code"].as_str().expect("a code").to_owned()).collect()
        };
        report["rows"].as_array().expect("a list").iter().map(of_row).collect()
    };
    assert_eq!(codes(&report), [vec![], vec![], vec!["checksum-mismatch".to_owned()]]);
    assert_eq!(report["rows"][2]["edition"], Value::Null, "the card is not proven");

    let folder = TempDir::new().unwrap();
    let file = folder.path().join("earlier.json");
    let again = |report: &Value| {
        std::fs::write(&file, sealed(report)).unwrap();
        let earlier = file.to_str().unwrap();
        let options = ["--format", "json", "--depth", "identity", "--timeout", "2m", "--since", earlier];
        json_of(&run(NAMES, &options).stdout)
    };
    assert_eq!(codes(&again(&report)), codes(&report), "the same cards");

    let other = format!("sha256:{}", "0".repeat(64));
    for member in [
        "/rows/0/edition/card",
        "/rows/0/edition/binding/owner",
        "/rows/0/proven/sha256",
        "/rows/1/edition/card",
        "/rows/1/proven/sha256",
    ] {
        *report.pointer_mut(member).expect("it is there") = other.clone().into();
    }
    let compared = again(&report);
    let both = ["updated-at-not-advanced", "version-not-raised"].map(str::to_owned);
    assert_eq!(codes(&compared)[..2], [both.to_vec(), both[..1].to_vec()]);
    assert_eq!(compared["rows"][0]["state"], "trusted");
    assert_eq!(compared["reasons"][1]["code"], "updated-at-not-advanced");

    let changes = compared["since"]["changes"].as_array().expect("changes");
    let bytes = |change: &&Value| change["kind"] == "bytes" && change["before"] == other;
    assert_eq!(changes.iter().filter(bytes).count(), 2, "{changes:?}");
    assert!(changes.iter().any(|change| change["kind"] == "update-missing"), "{changes:?}");
    let kinds = |report: &Value| -> BTreeSet<String> {
        let changes = report["since"]["changes"].as_array().expect("changes").iter();
        let kinds = changes.map(|change| change["kind"].as_str().expect("a word").to_owned());
        // The sandbox registers its names anew at each start.
        kinds.filter(|kind| kind != "expiry").collect()
    };
    assert_eq!(kinds(&compared), ["bytes", "update-missing"].map(str::to_owned).into(), "each defect once");
    let page = run(NAMES, &["--depth", "identity", "--timeout", "2m", "--since", file.to_str().unwrap()]);
    let third = again(&compared);
    assert_eq!(codes(&third)[0], [""; 0], "the card of the audit before");
    assert_eq!(kinds(&third), BTreeSet::new(), "a defect that was told is no change of the next audit");
    assert!(
        text_of(&page).contains("<summary>Since the previous report</summary>")
            && text_of(&page).contains("update-missing")
    );

    let none = run(NAMES, &["--since", "/nonexistent"]);
    assert_eq!(code(&none), Some(2));
}

/// Runs `audit diff` on two reports in a folder.
fn diff(folder: &Path, before: &str, after: &str, options: &[&str]) -> Output {
    for (file, text) in [("before.json", before), ("after.json", after)] {
        std::fs::write(folder.join(file), text).unwrap();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_clresolve"));
    // `tests/mutants/run` sets this variable.
    let taken_out = std::env::var_os("MUTANT").map(|switch| ("MUTANT", switch));
    command.env_clear().envs(taken_out).current_dir(folder).args(["audit", "diff", "before.json", "after.json"]);
    command.args(options).output().expect("the binary runs")
}

#[test]
fn diff_names_each_change_once_and_nothing_else() {
    let folder = TempDir::new().unwrap();
    let options = ["--format", "json", "--depth", "identity", "--timeout", "2m"];
    let (first, second) = (run(NAMES, &options), run(NAMES, &options));
    // The sandbox registers its names anew at each start.
    let registered_once = |output: &Output| {
        let mut report = json_of(&output.stdout);
        for row in report["rows"].as_array_mut().expect("rows") {
            row["on_chain"]["expiry"] = json!("2030-01-01T00:00:00Z");
            row["on_chain"]["addresses"] = json!({"60": "0x0000000000000000000000000000000000000004"});
        }
        report
    };
    let (mut report, second) = (registered_once(&first), sealed(&registered_once(&second)));
    assert_ne!(sealed(&report), second, "other times");
    let same = diff(folder.path(), &sealed(&report), &second, &[]);
    assert_eq!((code(&same), text_of(&same)), (Some(0), "Nothing changed.\n"));

    let before = &mut report["rows"];
    before[0]["on_chain"]["holder"] = json!("0x0000000000000000000000000000000000000001");
    before[0]["on_chain"]["resolver"] = json!("0x0000000000000000000000000000000000000002");
    before[0]["on_chain"]["expiry"] = json!("2020-01-01T00:00:00Z");
    before[0]["on_chain"]["addresses"] = json!({"60": "0x0000000000000000000000000000000000000003"});
    before[1]["state"] = json!("untrusted");
    before[2]["state"] = json!("trusted");
    before[2]["reasons"] = json!([]);
    let gone = before.as_array_mut().expect("rows").remove(0);
    let before = sealed(&{
        let mut report = report.clone();
        report["rows"].as_array_mut().expect("rows").push(gone);
        report
    });
    let found = diff(folder.path(), &before, &second, &["--json"]);
    assert_eq!(code(&found), Some(1), "{}", String::from_utf8_lossy(&found.stderr));
    let found = json_of(&found.stdout);
    let schema: Value = serde_json::from_str(include_str!("../../schemas/audit-difference.schema.json")).expect("JSON");
    assert!(jsonschema::validator_for(&schema).expect("a schema").is_valid(&found), "{found:#}");
    let mut kinds: Vec<&str> = found["changes"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|change| change["kind"].as_str().expect("a word"))
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    let expected = ["expiry", "findings", "newly-broken", "newly-trusted", "owner", "payee", "resolver"];
    assert_eq!(kinds, expected, "{found:#}");

    assert_eq!(code(&diff(folder.path(), &before, &second, &["--fail-on", "payee,bytes"])), Some(1));
    assert_eq!(code(&diff(folder.path(), &before, &second, &["--fail-on", "added,removed"])), Some(0));
    let fewer = diff(folder.path(), &sealed(&report), &second, &["--fail-on", "added"]);
    assert_eq!(code(&fewer), Some(1), "{}", text_of(&fewer));
    report["complete"] = json!(false);
    let unknown = diff(folder.path(), &sealed(&report), &second, &["--fail-on", "added"]);
    assert!(code(&unknown) == Some(3) && text_of(&unknown).contains("incomplete"), "{}", text_of(&unknown));
}

/// As `audit diff before.json <(zcat after.json.gz)` in a shell.
#[cfg(target_os = "linux")]
#[test]
fn diff_reads_a_report_from_a_pipe() {
    let folder = TempDir::new().unwrap();
    let report = sealed(&json_of(&run(NAMES, &["--format", "json", "--depth", "identity", "--timeout", "2m"]).stdout));
    std::fs::write(folder.path().join("report.json"), report).unwrap();
    let mut shell = Command::new("bash");
    shell.args(["-c", r#""$0" audit diff report.json <(cat report.json)"#, BINARY]);
    let same = shell.current_dir(folder.path()).output().expect("bash runs");
    assert_eq!((code(&same), text_of(&same)), (Some(0), "Nothing changed.\n"), "{same:?}");
}

#[test]
fn a_report_that_was_interrupted_does_not_show_that_nothing_changed() {
    let folder = TempDir::new().unwrap();
    let whole = json_of(&run(NAMES, &["--format", "json", "--depth", "identity", "--timeout", "2m"]).stdout);
    let mut cut = whole.clone();
    cut["complete"] = json!(false);
    cut["rows"].as_array_mut().expect("rows").truncate(1);
    let (whole, cut) = (sealed(&whole), sealed(&cut));
    for (before, after) in [(&whole, &cut), (&cut, &whole), (&cut, &cut)] {
        let found = diff(folder.path(), before, after, &[]);
        assert_eq!(code(&found), Some(3), "{}", text_of(&found));
        assert!(text_of(&found).contains("incomplete") && !text_of(&found).contains("Nothing changed"));
    }
}

/// Runs `audit resolution` on a log with these rows and one or two reports.
fn resolution(folder: &Path, rows: &str, report: &Value, since: Option<&Value>, options: &[&str]) -> Output {
    let mut files = vec![("log.md", format!("{LOG_HEAD}{rows}")), ("report.json", sealed(report))];
    files.extend(since.map(|since| ("since.json", sealed(since))));
    files.into_iter().for_each(|(file, text)| std::fs::write(folder.join(file), text).unwrap());
    let run = |options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clresolve"));
        command.env_clear().current_dir(folder).args(["audit", "resolution", "--log", "log.md", "report.json"]);
        command.args(since.iter().flat_map(|_| ["--since", "since.json"]));
        command.args(options).output().expect("the binary runs")
    };
    let (output, text, programs) = (run(options), run(&[]), run(&["--json"]));
    if !programs.stdout.is_empty() {
        // The text output contains the same rows as the JSON output.
        let printed = text_of(&text).split_once("once a person has decided:\n\n").map_or("", |(_, drafts)| drafts);
        let rows: Vec<&str> = printed.lines().skip(2).collect();
        let mut drafts = json_of(&programs.stdout)["drafts"].clone();
        // The plain format omits the action.
        drafts.as_array_mut().expect("a list").iter_mut().for_each(|draft| draft["action"] = Value::Null);
        assert_eq!(json!(rows_of_log(GovernanceTableLayout::Plain, &rows.join("\n"))), drafts, "{printed}");
    }
    output
}

#[test]
fn a_governance_log_must_say_what_audits_saw_and_nothing_else() {
    let folder = TempDir::new().unwrap();
    let audited = run(NAMES, &["--format", "json", "--depth", "identity", "--timeout", "2m"]);
    let report = json_of(&audited.stdout);
    let today = report["rows"][0]["checked_at"].as_str().expect("a time")[..10].to_owned();
    let held = |rows: &str, since: Option<&Value>| resolution(folder.path(), rows, &report, since, &[]);

    let found = held("", None);
    assert_eq!(code(&found), Some(1), "{}", String::from_utf8_lossy(&found.stderr));
    assert!(text_of(&found).starts_with("missing    checksum-mismatch.eth  incident: checksum-mismatch"));
    let drafts: String =
        text_of(&found).lines().filter(|line| line.starts_with("| 2")).map(|line| line.to_owned() + "\n").collect();
    assert_eq!(drafts.lines().count(), 1, "{}", text_of(&found));
    let undecided = held(&drafts, None);
    assert!(
        code(&undecided) == Some(1) && text_of(&undecided).contains("draft      line 5: "),
        "nobody has decided it"
    );
    let decided = drafts.replace("draft: ", "");
    let whole = held(&decided, None);
    assert_eq!(code(&whole), Some(0), "{}", text_of(&whole));
    let later = held(&decided.replace(&today, "2999-01-01"), None);
    assert_eq!(code(&later), Some(1), "it is of another audit: {}", text_of(&later));
    assert!(text_of(&later).contains("too late   line 5: 2999-01-01  checksum-mismatch.eth"), "{}", text_of(&later));

    let mut before = report.clone();
    before["rows"][0]["on_chain"]["holder"] = json!("0x0000000000000000000000000000000000000001");
    before["rows"][2]["state"] = json!("trusted");
    before["rows"][2]["reasons"] = json!([]);
    let old = decided.replace(&today, "2020-01-01");
    let found = resolution(folder.path(), &old, &report, Some(&before), &["--json"]);
    assert_eq!(code(&found), Some(1));
    let found = json_of(&found.stdout);
    let schema: Value = serde_json::from_str(include_str!("../../schemas/audit-resolution.schema.json")).expect("JSON");
    assert!(jsonschema::validator_for(&schema).expect("a schema").is_valid(&found), "{found:#}");
    let missing: Vec<_> =
        found["missing"].as_array().expect("a list").iter().map(|m| format!("{} {}", m["name"], m["kind"])).collect();
    assert_eq!(missing, ["\"checksum-mismatch.eth\" \"incident\"", "\"summarizeagent.eth\" \"change\""]);

    let says = |name: &str, kind: &str, why: &str| format!("| {today} | {name} | {kind} | accepted | {why} |\n");
    let row = |name: &str, kind: &str| says(name, kind, "the logo on the home page is blue now");
    let logged = decided.clone() + &says("`SummarizeAgent.eth`", "change", "the new owner was announced");
    let whole = held(&logged, Some(&before));
    assert_eq!(code(&whole), Some(0), "{}", text_of(&whole));
    // A row that does not state what happened covers nothing, whatever its kind.
    let logo = held(&(decided.clone() + &row("summarizeagent.eth", "change")), Some(&before));
    let said = text_of(&logo);
    assert!(code(&logo) == Some(1) && said.contains("missing    summarizeagent.eth  change: owner: 0x"), "{said}");
    assert!(said.contains("not seen   line 6: "), "{said}");
    let logo = held(&row("checksum-mismatch.eth", "incident"), Some(&before));
    let said = text_of(&logo);
    assert!(said.contains("missing    checksum-mismatch.eth  incident: checksum-mismatch"), "{said}");
    assert!(code(&logo) == Some(1) && said.contains("not seen   line 5: "), "{said}");
    let invented = held(&(logged.clone() + &says("raw-cid.eth", "change", "another owner")), Some(&before));
    assert_eq!(code(&invented), Some(1));
    assert!(text_of(&invented).contains("not seen   line 7: "), "{}", text_of(&invented));
    let unknown = held(&(logged.clone() + &row("elsewhere.eth", "incident")), Some(&before));
    assert_eq!(code(&unknown), Some(3), "{}", text_of(&unknown));
    assert!(!text_of(&unknown).contains("has its row"), "{}", text_of(&unknown));
    let undone = row("raw-cid.eth", "incident") + &row("raw-cid.eth", "correction");
    let undone = held(&(logged.clone() + &undone), Some(&before));
    assert_eq!(code(&undone), Some(3), "seen by neither: {}", text_of(&undone));
    let ended = held(&(logged + &row("summarizeagent.eth", "incident")), None);
    assert!(code(&ended) == Some(1) && text_of(&ended).contains("correction: it is trusted again"));

    let mut next = report.clone();
    for time in ["first", "last"] {
        next["counts"]["checked"][time] = json!("2999-01-01T00:00:00Z");
    }
    let quiet = resolution(folder.path(), &decided, &next, Some(&report), &[]);
    assert_eq!(code(&quiet), Some(0), "what the audit before logged is asked for no more: {}", text_of(&quiet));
    let swapped = resolution(folder.path(), &decided, &report, Some(&next), &[]);
    assert_eq!(code(&swapped), Some(2));
    let corrected = |why: &str| {
        let mut fixed = next.clone();
        fixed["rows"][2]["state"] = json!("trusted");
        fixed["rows"][2]["reasons"] = json!([]);
        let row = format!("| 2999-01-01 | checksum-mismatch.eth | correction | accepted | {why} |\n");
        resolution(folder.path(), &(decided.clone() + &row), &fixed, Some(&report), &[])
    };
    for why in ["it is trusted again", "no checksum-mismatch any more"] {
        assert_eq!(code(&corrected(why)), Some(0), "{}", text_of(&corrected(why)));
    }
    let logo = corrected("the logo is blue now");
    let said = text_of(&logo);
    assert!(code(&logo) == Some(1) && said.contains("correction: it is trusted again"), "{said}");
    let mut outage = report.clone();
    outage["rows"][2]["state"] = json!("indeterminate");
    outage["rows"][2]["reasons"] = json!([]);
    let carried = |state: &str| {
        let mut outage = outage.clone();
        outage["rows"][2]["carried"] = json!({"state": state, "members": []});
        resolution(folder.path(), &decided, &next, Some(&outage), &[])
    };
    assert_eq!(
        code(&carried("untrusted")),
        Some(0),
        "it was logged before the outage: {}",
        text_of(&carried("untrusted"))
    );
    let mut good = report.clone();
    good["rows"][2]["state"] = json!("trusted");
    good["rows"][2]["reasons"] = json!([]);
    let new = resolution(folder.path(), &decided, &next, Some(&good), &[]);
    assert!(
        text_of(&new).contains("missing    checksum-mismatch.eth  incident: checksum-mismatch"),
        "{}",
        text_of(&new)
    );
    next["rows"][1]["state"] = json!("indeterminate");
    let dark = resolution(folder.path(), &decided, &next, None, &[]);
    assert_eq!(code(&dark), Some(3), "{}", text_of(&dark));

    let long = held(&"\n".repeat(4 << 20), None);
    let why = String::from_utf8_lossy(&long.stderr).into_owned();
    assert!(code(&long) == Some(2) && why.contains("more than 4194304 bytes"), "{why}");
}

/// Binary input, input without a table, and more malformed rows than are shown: each becomes a row, and none ends the
/// audit.
#[test]
fn what_cannot_be_read_of_a_governance_log_is_a_row_and_never_an_end() {
    let folder = TempDir::new().unwrap();
    let audited = run(NAMES, &["--format", "json", "--depth", "identity", "--timeout", "2m"]);
    let report = json_of(&audited.stdout);
    let today = report["rows"][0]["checked_at"].as_str().expect("a time")[..10].to_owned();
    std::fs::write(folder.path().join("report.json"), &audited.stdout).unwrap();
    let schema: Value = serde_json::from_str(include_str!("../../schemas/audit-resolution.schema.json")).expect("JSON");
    let schema = jsonschema::validator_for(&schema).expect("a schema");
    let held = |log: &[u8]| {
        std::fs::write(folder.path().join("log.md"), log).unwrap();
        let arguments = ["audit", "resolution", "--log", "log.md", "report.json"];
        let run =
            |options: &[&str]| program().current_dir(folder.path()).args(arguments).args(options).output().unwrap();
        let (printed, found) = (run(&[]), run(&["--json"]));
        assert_eq!((code(&printed), code(&found)), (Some(1), Some(1)), "{}", String::from_utf8_lossy(&found.stderr));
        let found = json_of(&found.stdout);
        assert!(schema.is_valid(&found), "{found:#}");
        (text_of(&printed).to_owned(), found)
    };
    let good = format!("| {today} | checksum-mismatch.eth | incident | accepted | checksum-mismatch |\n");
    let table = format!("{LOG_HEAD}{good}");
    let (printed, found) = held(&[table.as_bytes(), b"| 2026-11-20 | \xff\x1b[2J |\n", good.as_bytes()].concat());
    assert_eq!(printed, "not read   line 6, column 16: expected UTF-8\n");
    assert_eq!((&found["rows"], &found["missing"]), (&json!(2), &json!([])), "the rest is read: {found:#}");

    let (printed, found) = held(b"# A log without a table\n");
    assert!(printed.starts_with("not read   line 1, column 1: expected a table with the head | Date |"), "{printed}");
    assert!(printed.contains("missing    checksum-mismatch.eth"), "it is held against the report: {printed}");
    assert_eq!(found["rows"], 0);

    let bad = "| 2026-11-20 | a.eth | incident | b |\n";
    let (_, found) = held(format!("{table}{}{good}", bad.repeat(1_003)).as_bytes());
    let malformed = found["malformed"].as_array().expect("a list");
    assert_eq!((malformed.len(), &found["rows"]), (1_001, &json!(2)));
    let why = "from here on 3 more malformed rows";
    assert_eq!(malformed[1_000], json!({"line": 1_006, "column": 35, "why": why}));
}

#[test]
fn a_malformed_row_of_a_governance_log_is_a_finding_and_hides_no_other_row() {
    let folder = TempDir::new().unwrap();
    let audited = run(NAMES, &["--format", "json", "--depth", "identity", "--timeout", "2m"]);
    let report = json_of(&audited.stdout);
    let today = report["rows"][0]["checked_at"].as_str().expect("a time")[..10].to_owned();
    let malformed = "| 2026-11-20 | a.eth | incident | b |\n";
    let good = format!("| {today} | checksum-mismatch.eth | incident | accepted | checksum-mismatch |\n");
    let whole = resolution(folder.path(), &good, &report, None, &[]);
    assert_eq!(code(&whole), Some(0), "{}", text_of(&whole));
    let rows = format!("{malformed}{good}{malformed}");
    let found = resolution(folder.path(), &rows, &report, None, &[]);
    let said = "not read   line 5, column 35: expected five cells: date, subject, kind, decision, reason\n\
                not read   line 7, column 35: expected five cells: date, subject, kind, decision, reason\n";
    assert_eq!((code(&found), text_of(&found)), (Some(1), said));
    let found = json_of(&resolution(folder.path(), &rows, &report, None, &["--json"]).stdout);
    let schema: Value = serde_json::from_str(include_str!("../../schemas/audit-resolution.schema.json")).expect("JSON");
    assert!(jsonschema::validator_for(&schema).expect("a schema").is_valid(&found), "{found:#}");
    let why = "expected five cells: date, subject, kind, decision, reason";
    let place = |line: u64| json!({"line": line, "column": 35, "why": why});
    assert_eq!((&found["malformed"], &found["rows"]), (&json!([place(5), place(7)]), &json!(1)));
}

/// Logs in the published format, from an empty table to a complete one.
#[test]
fn a_log_of_the_published_form_is_held_against_audits_and_gets_its_drafts() {
    let folder = TempDir::new().unwrap();
    let report = json_of(&run(NAMES, &["--format", "json", "--depth", "identity", "--timeout", "2m"]).stdout);
    let mut before = report.clone();
    before["rows"][0]["on_chain"]["holder"] = json!("0x0000000000000000000000000000000000000001");
    let rows = before["rows"].as_array_mut().expect("rows");
    let gone = {
        let mut row = rows[0].clone();
        for member in ["input", "normalized"] {
            row[member] = json!("gone.eth");
        }
        row
    };
    rows.push(gone);
    let new = rows.remove(1)["input"].as_str().expect("a name").to_owned();
    let held = |rows: &str, options: &[&str]| {
        std::fs::write(
            folder.path().join("log.md"),
            format!("{}{rows}", GovernanceTableLayout::Published.table_head_markdown()),
        )
        .unwrap();
        std::fs::write(folder.path().join("report.json"), sealed(&report)).unwrap();
        std::fs::write(folder.path().join("since.json"), sealed(&before)).unwrap();
        let arguments = ["audit", "resolution", "--log", "log.md", "--since", "since.json", "report.json"];
        program().current_dir(folder.path()).args(arguments).args(options).output().unwrap()
    };
    let found = held("| — | — | — | — | — | — |\n", &[]);
    let said = text_of(&found);
    assert_eq!(code(&found), Some(1), "{}", String::from_utf8_lossy(&found.stderr));
    let (_, printed) =
        said.split_once(&GovernanceTableLayout::Published.table_head_markdown()).expect("the head of the drafts");
    let action = |name: &str, action: &str| format!(" | `{name}` | {action} | ");
    for row in [action(&new, "Added"), action("gone.eth", "Removed"), action("summarizeagent.eth", "Updated")] {
        assert!(printed.contains(&row), "{row}: {printed}");
    }
    let json = json_of(&held("", &["--json"]).stdout);
    assert_eq!(json!(rows_of_log(GovernanceTableLayout::Published, printed)), json["drafts"]);
    let schema: Value = serde_json::from_str(include_str!("../../schemas/audit-resolution.schema.json")).expect("JSON");
    assert!(jsonschema::validator_for(&schema).expect("a schema").is_valid(&json), "{json:#}");

    let approved = printed.replace("| — |", "| a council |");
    for undecided in [printed, &approved] {
        assert_eq!(code(&held(undecided, &[])), Some(1), "{undecided}");
    }
    let decided = approved.replace("draft: ", "");
    let whole = held(&decided, &[]);
    assert_eq!(code(&whole), Some(0), "{}", text_of(&whole));
    let removed = decided.lines().find(|row| row.contains("gone.eth")).expect("its row").replace("gone.eth", &new);
    let invented = held(&(decided.clone() + &removed + "\n"), &[]);
    assert!(code(&invented) != Some(0), "{}", text_of(&invented));
}

#[test]
fn a_slip_in_the_list_is_no_incident() {
    let folder = TempDir::new().unwrap();
    let list = b"summarizeagent.eth\nsumarizeagent.eth\nno such.eth\na\xe2\x80\xae.eth\n\xff.eth\n";
    let audited = run(list, &["--format", "json", "--depth", "identity", "--timeout", "2m"]);
    let report = json_of(&audited.stdout);
    assert_eq!(report["counts"]["untrusted"], 4, "{report:#}");
    let found = resolution(folder.path(), "", &report, None, &[]);
    assert_eq!(code(&found), Some(0), "{}", text_of(&found));

    // A name that was trusted, and nobody holds any more, is one.
    let mut before = report.clone();
    before["rows"][1]["state"] = json!("trusted");
    before["rows"][1]["reasons"] = json!([]);
    let found = resolution(folder.path(), "", &report, Some(&before), &[]);
    assert_eq!(code(&found), Some(1), "{}", text_of(&found));
    assert!(text_of(&found).contains("sumarizeagent.eth  incident: name-unregistered"), "{}", text_of(&found));
}

#[test]
fn changes_since_an_earlier_report_count_in_the_exit_code() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("earlier.json");
    let trusted = &NAMES[..NAMES.len() - "checksum-mismatch.eth\n".len()];
    let options = ["--format", "json", "--depth", "identity", "--timeout", "2m"];
    let mut earlier = json_of(&run(trusted, &options).stdout);
    let exit = |earlier: &Value, list: &[u8], kinds: &str| {
        std::fs::write(&file, sealed(earlier)).unwrap();
        let since = ["--since", file.to_str().unwrap(), "--fail-on", kinds];
        code(&run(list, &[&options[..], &since].concat()))
    };
    // The sandbox registers its names anew at each start.
    let all = "added,removed,newly-trusted,newly-broken,state,findings,owner,resolver";
    assert_eq!(exit(&earlier, trusted, all), Some(0));
    assert_eq!(exit(&earlier, NAMES, "removed"), Some(1), "a name is untrusted");
    earlier["rows"][0]["on_chain"]["resolver"] = json!("0x0000000000000000000000000000000000000002");
    assert_eq!(exit(&earlier, trusted, "resolver"), Some(1));
    assert_eq!(exit(&earlier, trusted, "newly-broken"), Some(0));
    earlier["complete"] = json!(false);
    assert_eq!(exit(&earlier, trusted, "newly-broken"), Some(3));
    assert_eq!(code(&run(trusted, &["--fail-on", "payee"])), Some(2), "without an earlier report");
}

#[test]
fn the_history_of_states_is_drawn_from_earlier_reports() {
    let folder = TempDir::new().unwrap();
    let files: Vec<String> =
        (1..=25).map(|month| folder.path().join(format!("{month}.json")).display().to_string()).collect();
    let mut report = json_of(&run(NAMES, &["--json", "--depth", "identity"]).stdout);
    for (month, file) in files.iter().take(2).enumerate() {
        let day = format!("2026-0{}-01T00:00:00Z", month + 1);
        report["counts"]["checked"] = json!({"first": day, "last": day});
        std::fs::write(file, sealed(&report)).unwrap();
    }
    let page = |history: &[String]| {
        let arguments = ["--format", "html", "--depth", "identity", "--history"];
        run(NAMES, &[&arguments[..], &history.iter().map(String::as_str).collect::<Vec<_>>()].concat())
    };
    // What "before" says is of --since, whatever the history has.
    let since = page(&[files[1].clone(), "--since".to_owned(), files[0].clone()]);
    assert!(text_of(&since).contains("<div class=\"lane\"><span>2026-01-01</span>"), "{}", text_of(&since));
    // In the order of their dates, whatever that of the arguments.
    let drawn = page(&[files[1].clone(), files[0].clone()]);
    let words =
        "2026-01-01: 2 trusted, 1 untrusted, 0 indeterminate; 2026-02-01: 2 trusted, 1 untrusted, 0 indeterminate; 20";
    assert!(text_of(&drawn).contains(words), "{}", text_of(&drawn));

    let too_many = page(&files);
    assert_eq!(code(&too_many), Some(2));
    assert!(String::from_utf8_lossy(&too_many.stderr).contains("--history: take at most 23 reports"), "{too_many:?}");
    report["scope"]["world"] = json!("mainnet");
    std::fs::write(&files[0], sealed(&report)).unwrap();
    let elsewhere = page(&files[..1]);
    assert_eq!((code(&elsewhere), text_of(&elsewhere)), (Some(2), ""), "{elsewhere:?}");
    std::fs::write(&files[0], "{}").unwrap();
    assert_eq!(code(&page(&files[..1])), Some(2));
}

#[test]
fn a_report_that_was_cut_or_changed_is_refused() {
    let folder = TempDir::new().unwrap();
    let whole = run(NAMES, &["--format", "json", "--depth", "identity", "--timeout", "2m"]);
    let whole = text_of(&whole);
    let end = whole.rfind("\"digest\"").expect("a seal");
    let mut other_world = json_of(whole.as_bytes());
    other_world["scope"]["world"] = json!("mainnet");
    for (changed, why) in [
        (whole[..end].to_owned(), "was cut"),
        (json_of(whole.as_bytes()).to_string(), "formatted anew"),
        (String::new(), "was cut"),
        (whole.replace("untrusted", "trusted"), "was changed"),
        (format!("{}\"digest\": \"\u{1b}[2J\u{202e}\"\n}}\n", &whole[..end]), "\\u{1b}[2J\\u{202e}"),
        (sealed(&json!({"rows": []})), "is not the report"),
        (sealed(&other_world), "different networks"),
    ] {
        let refused = diff(folder.path(), &changed, whole, &[]);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(code(&refused) == Some(2) && said.contains(why), "{why}: {said}");
        assert!(!said.contains(['\u{1b}', '\u{202e}']), "{said:?}");
    }
    let file = folder.path().join("mainnet.json");
    std::fs::write(&file, sealed(&other_world)).unwrap();
    let refused = run(NAMES, &["--since", file.to_str().unwrap()]);
    assert_eq!((code(&refused), text_of(&refused)), (Some(2), ""), "before any name is judged");
}

/// Every command that reads a report rejects data after its digest, and a truncated report.
#[test]
fn nothing_stands_behind_the_digest_of_a_report() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let options = ["--json", "--depth", "identity", "--timeout", "2m"];
    let whole = String::from_utf8(run(NAMES, &options).stdout).unwrap();
    std::fs::write(path("good.json"), &whole).unwrap();
    let clresolve = |arguments: &[&str]| program().args(arguments).output().expect("the binary runs");
    let digest = whole.rfind("\"digest\"").expect("a seal");
    let members = ", \"resolution\": [], \"reasons\": [], \"since\": null, \"warning\": \"all good\"}";
    let inner = whole.strip_suffix("\n}\n").expect("its end");
    for changed in [
        whole[..digest].to_owned(),
        whole[..digest + 20].to_owned(),
        inner.to_owned(),
        format!("{inner}\n"),
        format!("{inner}\n}}"),
        format!("{whole} "),
        format!("{whole}\n"),
        format!("{whole}garbage"),
        format!("{inner}{members}\n"),
        format!("{inner}\n{members}\n"),
    ] {
        std::fs::write(path("changed.json"), &changed).unwrap();
        let (good, bad, out) = (path("good.json"), path("changed.json"), path("out.json"));
        for (command, exit) in [
            (&["audit", "diff", &bad, &good, "--out", &out][..], 2),
            (&["audit", "diff", &good, &bad, "--out", &out], 2),
            (&["audit", "verify", &bad, "--out", &out], 1),
            (&["audit", "render", &bad, "--out", &out], 2),
        ] {
            let refused = clresolve(command);
            let said = String::from_utf8_lossy(&refused.stderr);
            assert_eq!(code(&refused), Some(exit), "{command:?} {said} {}", &changed[digest..]);
            assert!(said.contains("was cut") || said.contains("was changed"), "{said}");
            assert!(!Path::new(&out).exists(), "{command:?}");
        }
    }
    assert_eq!(code(&clresolve(&["audit", "verify", &path("good.json")])), Some(0));
}

#[test]
fn a_signed_report_is_that_of_its_key_and_of_no_other() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let clresolve = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_clresolve")).args(arguments).output().expect("the binary runs")
    };
    let (report, signature, key, jwks) = (path("a.json"), path("a.jws"), path("k.pem"), path("jwks.json"));
    std::fs::write(&report, run(LIST, &["--json", "--depth", "identity"]).stdout).unwrap();
    for (key, jwks) in [(&key, &jwks), (&path("other.pem"), &path("other.json"))] {
        assert_eq!(code(&clresolve(&["signature", "key", "new", key, "--out", jwks])), Some(0));
    }
    let sign = |report: &str| clresolve(&["audit", "sign", report, "--key", &key, "--out", &signature]);
    let signed = sign(&report);
    assert_eq!(code(&signed), Some(0), "{}", String::from_utf8_lossy(&signed.stderr));

    let verify = |report: &str, jwks: &str, options: &[&str]| {
        let whole = [&["audit", "verify", report, "--signature", &signature, "--jwks", jwks], options].concat();
        clresolve(&whole)
    };
    let good = verify(&report, &jwks, &["-o", "json"]);
    assert_eq!(code(&good), Some(0), "{}", String::from_utf8_lossy(&good.stderr));
    let good = json_of(&good.stdout);
    let known = json_of(&std::fs::read(&jwks).unwrap());
    assert_eq!(good["signature"]["key_id"], known["keys"][0]["kid"]);
    assert_eq!((&good["complete"], &good["scope"]["world"]), (&json!(true), &json!("sandbox")));
    let by_digest = clresolve(&["audit", "verify", &report]);
    assert_eq!(code(&by_digest), Some(0));
    assert!(text_of(&by_digest).contains("No signature was checked"), "{}", text_of(&by_digest));

    let refused = |output: &Output, why: &str| {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((code(output), said.contains(why), output.stdout.len()), (Some(1), true, 0), "{said}");
    };
    refused(&verify(&report, &path("other.json"), &[]), "no trusted key");
    // Anyone who changes a report can recompute its digest, but not its signature.
    let text = std::fs::read_to_string(&report).unwrap();
    let mut forged: Value = serde_json::from_str(&text).unwrap();
    forged["counts"]["untrusted"] = json!(0);
    std::fs::write(path("forged.json"), sealed(&forged)).unwrap();
    assert_eq!(code(&clresolve(&["audit", "verify", &path("forged.json")])), Some(0));
    refused(&verify(&path("forged.json"), &jwks, &[]), "does not sign this report");
    std::fs::write(path("cut.json"), &text[..text.len() / 2]).unwrap();
    refused(&clresolve(&["audit", "verify", &path("cut.json")]), "was cut");
    assert_eq!(code(&sign(&path("cut.json"))), Some(2), "nobody signs half a report");
    assert_eq!(code(&clresolve(&["audit", "verify", &report, "--signature", &signature])), Some(2));
}

/// The descriptor of the sandbox's registry, which refers to its manifest in IPFS.
const REGISTRY: &str = "https://commandlayer.sandbox.example/.well-known/agent.json";

#[test]
fn the_names_of_a_registry_are_audited_and_held_against_the_chain() {
    let output = audit(&["--registry", REGISTRY, "--json", "--depth", "identity"]).output().expect("the binary runs");
    assert_eq!(code(&output), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let report = json_of(&output.stdout);
    let rows: Vec<_> = report["rows"].as_array().unwrap().iter().collect();
    let seen: Vec<_> =
        rows.iter().map(|row| (&row["line"], row["input"].as_str().unwrap(), &row["registry"])).collect();
    let entry = |n: u64, on_chain: &str| json!({"entry": n, "in_list": false, "on_chain": on_chain});
    assert_eq!(
        seen,
        [
            (&json!(1), "summarizeagent.eth", &entry(1, "agent")),
            (&json!(2), "checksum-mismatch.eth", &entry(2, "agent")),
            (&json!(3), "no-records.eth", &entry(3, "absent")),
            (&json!(4), "unregistered.eth", &entry(4, "absent")),
        ]
    );
    let registry = &report["scope"]["registry"];
    assert!(registry["manifest"].as_str().unwrap().starts_with("ipfs://") && registry["proven"] == true, "{registry}");
    assert_eq!(
        report["registry"],
        json!({"agreeing": 2, "not_on_chain": 2, "not_in_registry": 0, "not_known": 0, "findings": [
            {"name": "no-records.eth", "finding": "not-on-chain", "entry": 3},
            {"name": "unregistered.eth", "finding": "not-on-chain", "entry": 4},
        ]})
    );
    assert!(fits_schema(&report));
}

fn fits_schema(report: &Value) -> bool {
    let schema = json_of(include_bytes!("../../schemas/audit.schema.json"));
    jsonschema::validator_for(&schema).expect("a schema").is_valid(report)
}

#[test]
fn a_list_and_a_registry_are_one_audit_in_which_each_name_is_judged_once() {
    let list = b"host-changed.eth\n# an agent that is listed in both\nSummarizeAgent.eth\nresolver-garbage.eth\n";
    let registry = "https://commandlayer.sandbox.example/agent-cards/meta/manifest.json";
    let options = ["--registry", registry, "--depth", "identity", "--format"];
    let report = json_of(&run(list, &[&options[..], &["json"]].concat()).stdout);
    let rows = report["rows"].as_array().unwrap();
    let seen: Vec<_> = rows.iter().map(|row| (row["line"].as_u64(), row["registry"]["entry"].as_u64())).collect();
    let (line, entry) = (Some::<u64>, Some::<u64>);
    assert_eq!(
        seen,
        [
            (line(1), None),
            (line(3), entry(1)),
            (line(4), None),
            (line(6), entry(2)),
            (line(7), entry(3)),
            (line(8), entry(4))
        ]
    );
    assert_eq!(report["counts"]["listed_again"], 1);
    assert_eq!(
        (&report["scope"]["registry"]["manifest"], &report["scope"]["registry"]["proven"]),
        (&json!(registry), &json!(false))
    );
    let found: Vec<_> = report["registry"]["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| (f["name"].as_str().unwrap(), f["finding"].as_str().unwrap()))
        .collect();
    assert_eq!(
        found,
        [
            ("host-changed.eth", "not-in-registry"),
            ("resolver-garbage.eth", "not-known"),
            ("no-records.eth", "not-on-chain"),
            ("unregistered.eth", "not-on-chain"),
        ]
    );
    let sentence = "The registry has 4 entries: 2 on the chain as an agent; 2 in the registry but not on the chain as an \
                    agent; 1 on the chain as an agent but not in the registry; 1 the chain could not be read.";
    for form in ["md", "html"] {
        let text = run(list, &[&options[..], &[form]].concat());
        assert!(text_of(&text).contains(sentence), "{}", text_of(&text));
    }
    let log = json_of(&run(list, &[&options[..], &["sarif"]].concat()).stdout);
    let physical = |name: &str| {
        let results = log["runs"][0]["results"].as_array().unwrap();
        let of_name = |result: &&Value| result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == name;
        results.iter().find(of_name).unwrap()["locations"][0]["physicalLocation"].clone()
    };
    assert_eq!(physical("unregistered.eth"), json!({"artifactLocation": {"uri": registry}}));
    assert_eq!(physical("host-changed.eth")["region"], json!({"startLine": 1}));
}

#[test]
fn a_registry_that_cannot_be_read_is_a_row_that_says_where() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("manifest.json");
    let secret = folder.path().join("secret.json");
    std::fs::write(&secret, r#"{"entries": [{"id": "summarizeagent.eth"}]}"#).unwrap();
    let leads_to = |to: &str| json!({"registry": {"manifest": {"http": to}}}).to_string();
    let descriptor = "https://commandlayer.sandbox.example/.well-known/agent.json";
    let missing = "ipfs://bafkreibm6jg3ux5qumhcn2b3flc3tyu6dmlb4xa7u5bf44yegnrjhc4yeq";
    let (malformed, silent) = ((1, "untrusted", "registry-malformed"), (3, "indeterminate", "registry-unreachable"));
    let not_utf8 = (b"{\n\"\xc3\xa9\xff\": 1}".to_vec(), "line 2, column 3: not UTF-8 at byte 5");
    let texts = [
        ("{\n\"entries\": 1}".to_owned(), "line 2, column 12: `entries` is a number, not a list"),
        ("\u{feff}{\"entries\": []}".to_owned(), "line 1, column 1: a byte order mark precedes the JSON text"),
        ("[]".to_owned(), "line 1, column 1: the JSON text is a list, not an object"),
        ("{\"entries\": [],\n \"entries\": []}".to_owned(), "line 2, column 10: the member /entries occurs twice"),
        (leads_to("https://nowhere.sandbox.example/manifest.json"), "nowhere.sandbox.example"),
        (format!("{{\"entries\": {}", "[".repeat(100_000)), "more than 16 levels"),
        (" ".repeat((4 << 20) + 1), "at most 4194304 are allowed"),
        (leads_to(secret.to_str().unwrap()), "not a URL"),
        (leads_to(&format!("file://{}", secret.display())), "the scheme is not allowed"),
        (leads_to("http://commandlayer.sandbox.example/agent-cards/meta/manifest.json"), "the scheme is not allowed"),
        (leads_to("https://127.0.0.1/manifest.json"), "the host is an IP literal"),
        (leads_to(descriptor), "is a descriptor too"),
        (leads_to("https://hostile.sandbox.example/.well-known/agent.json"), "EOF while parsing"),
        (leads_to(missing), missing),
    ];
    for (manifest, why) in texts.map(|(text, why)| (text.into_bytes(), why)).into_iter().chain([not_utf8]) {
        std::fs::write(&file, &manifest).unwrap();
        let options = ["--registry", file.to_str().unwrap(), "--depth", "identity", "--json"];
        let output = audit(&options).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        // A server that does not answer is no finding against the registry.
        let (exit, state, found) = if [missing, "nowhere.sandbox.example"].contains(&why) { silent } else { malformed };
        assert_eq!((code(&output), said.contains(why)), (Some(exit), true), "{why}: {said}");
        let report = json_of(&output.stdout);
        assert!(fits_schema(&report), "{report:#}");
        let [row] = &report["rows"].as_array().unwrap()[..] else { panic!("{report:#}") };
        assert_eq!(
            (&row["line"], &row["state"], &row["reasons"][0]["code"]),
            (&json!(1), &json!(state), &json!(found))
        );
        assert_eq!((&report["complete"], &report["registry"]), (&json!(false), &Value::Null));
        let summary = row["summary"].as_str().unwrap();
        assert!(summary.starts_with("The registry cannot be read: ") && summary.contains(why), "{summary}");
    }
    let named = file.display().to_string();
    let act = [("{}", "Have this registry corrected, or name another one"), (&leads_to(missing), "Audit again once")];
    for ((manifest, duty), (exit, _, found)) in act.into_iter().zip([malformed, silent]) {
        std::fs::write(&file, manifest).unwrap();
        for form in ["md", "html", "csv", "sarif"] {
            let output = audit(&["--registry", &named, "--format", form]).output().unwrap();
            let said = text_of(&output);
            assert!(code(&output) == Some(exit) && said.contains(found), "{form}: {said}");
            assert!(!said.contains("off the list") && !said.contains("name-invalid"), "{form}: {said}");
            assert!(
                !["md", "html"].contains(&form) || (said.contains(duty) && said.contains(&named)),
                "{form}: {said}"
            );
            assert!(form != "sarif" || !said.contains("startLine"), "no line of a list names it: {said}");
        }
    }
    let missing = audit(&["--registry", "no-such-file.json"]).output().unwrap();
    assert_eq!((code(&missing), missing.stdout.len()), (Some(2), 0), "a file that is not there is a slip of the pen");
    std::fs::write(&file, r#"{"entries": []}"#).unwrap();
    let empty = audit(&["--registry", file.to_str().unwrap()]).output().unwrap();
    assert_eq!(code(&empty), Some(2), "a registry without an entry is nothing to audit");
}

/// A manifest chooses its own member names.
#[test]
fn what_warnings_quote_of_a_registry_acts_on_no_terminal() {
    let folder = TempDir::new().unwrap();
    let member = r#""\u001b[2J\u202e": 1"#;
    std::fs::write(folder.path().join("manifest.json"), format!("{{{member}, {member}}}")).unwrap();
    let mut command = audit(&["--registry", "manifest.json", "--depth", "identity", "--json"]);
    let output = command.current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    for warning in ["clresolve: --registry: ", "clresolve: The names of the registry are missing: "] {
        let line = said.lines().find(|line| line.starts_with(warning)).unwrap_or_else(|| panic!("{said:?}"));
        assert!(line.contains("the member /\\u{1b}[2J\\u{202e} occurs twice"), "{line:?}");
    }
    assert!(!said.contains(['\u{1b}', '\u{202e}']), "{said:?}");
}

#[test]
fn beside_a_list_a_registry_that_cannot_be_read_is_a_row_and_not_an_end() {
    let folder = TempDir::new().unwrap();
    let manifest = folder.path().join("manifest.json");
    std::fs::write(&manifest, "{\n\"entries\": 1}").unwrap();
    let malformed = "manifest.json: line 2, column 12: `entries` is a number, not a list";
    let gone = "https://nowhere.sandbox.example/manifest.json";
    let unread = "The registry cannot be read: ";
    for (registry, why, exit, state) in
        [(manifest.to_str().unwrap(), malformed, 1, "untrusted"), (gone, unread, 3, "indeterminate")]
    {
        let options = ["--registry", registry, "--depth", "identity", "--format", "json"];
        let output = run(b"summarizeagent.eth\n# the end\n", &options);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let goes_on = said.contains("the names of the list are audited all the same");
        assert!(code(&output) == Some(exit) && goes_on, "{said}");
        let report = json_of(&output.stdout);
        assert!(fits_schema(&report), "{report:#}");
        assert_eq!((&report["complete"], &report["registry"]), (&json!(false), &Value::Null));
        let rows = report["rows"].as_array().unwrap();
        assert_eq!((rows.len(), &rows[0]["state"], &rows[0]["registry"]), (2, &json!("trusted"), &Value::Null));
        assert_eq!((&rows[1]["line"], &rows[1]["state"]), (&json!(3), &json!(state)));
        assert!(rows[1]["summary"].as_str().unwrap().contains(why), "{}", rows[1]);
    }
    let missing = run(b"summarizeagent.eth\n", &["--registry", "no-such-file.json"]);
    assert_eq!((code(&missing), missing.stdout.len()), (Some(2), 0), "a file that is not there is a slip of the pen");
}

/// Content that no gateway proves counts neither for nor against the registry.
#[test]
fn a_registry_behind_a_gateway_that_lies_alone_is_unreachable_and_never_proven() {
    let (_runtime, world, mut config) = start_two_agents();
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("config.toml");
    let audited = |config: &Config, registry: &str| {
        config.save(&file).unwrap();
        let mut command = program();
        command.args(["audit", "--depth", "identity", "--json", "--registry", registry, "--config"]).arg(&file);
        let output = command.output().expect("the binary runs");
        assert!(!output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        (code(&output), json_of(&output.stdout))
    };
    let (_, honest) = audited(&config, REGISTRY);
    let registry = &honest["scope"]["registry"];
    let manifest = registry["manifest"].as_str().expect("a location");
    assert!(manifest.starts_with("ipfs://") && registry["proven"] == true, "{registry}");
    for behaviour in [IpfsGatewayBehaviour::Lie, IpfsGatewayBehaviour::Stranger] {
        config.gateways = vec![world.ipfs_gateway(behaviour)];
        for location in [manifest, REGISTRY] {
            let (exit, report) = audited(&config, location);
            assert!(fits_schema(&report), "{report:#}");
            let [row] = &report["rows"].as_array().expect("rows")[..] else { panic!("{report:#}") };
            assert_eq!(
                (exit, &row["state"], &row["reasons"][0]["code"]),
                (Some(3), &json!("indeterminate"), &json!("registry-unreachable"))
            );
            assert_eq!((&report["scope"]["registry"], &report["complete"]), (&Value::Null, &json!(false)));
        }
    }
}

/// The members of an unreadable registry are unknown.
#[test]
fn no_name_of_a_registry_was_removed_where_the_registry_cannot_be_read() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (manifest, before) = (path("manifest.json"), path("before.json"));
    std::fs::write(&manifest, r#"{"entries": [{"id": "summarizeagent.eth"}, {"id": "raw-cid.eth"}]}"#).unwrap();
    let options = ["--registry", &manifest, "--depth", "identity", "--json"];
    let first = audit(&options).output().unwrap();
    assert_eq!(code(&first), Some(0), "{}", String::from_utf8_lossy(&first.stderr));
    std::fs::write(&before, &first.stdout).unwrap();
    std::fs::write(&manifest, "{").unwrap();
    let since = ["--since", &before, "--fail-on", "removed"];
    let journal = path("journal");
    let second = audit(&[&options[..], &since, &["--resume", &journal]].concat()).output().unwrap();
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(code(&second) == Some(1) && said.contains("The names of the registry are missing"), "{said}");
    let changes = json_of(&second.stdout)["since"]["changes"].clone();
    assert_eq!(changes, json!([]), "the row of the registry is that of nobody");
    assert!(!Path::new(&journal).exists(), "the report is written");
    let now = path("now.json");
    std::fs::write(&now, &second.stdout).unwrap();
    let found = program().args(["audit", "diff", &before, &now, "--fail-on", "removed"]).output().unwrap();
    assert_eq!(code(&found), Some(3), "{}", text_of(&found));
}

#[cfg(unix)]
#[test]
fn a_full_disk_leaves_the_earlier_report_in_its_place() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (list, out) = (path("names.txt"), path("out.html"));
    std::fs::write(&list, NAMES).unwrap();
    std::fs::write(&out, "the report of July").unwrap();
    let arguments = ["audit", "--sandbox", "--names", &list, "--depth", "identity", "--format", "html", "--out", &out];
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 16; exec \"$@\"", "sh", BINARY]).args(arguments);
    let full = limited.output().expect("a shell");
    let said = String::from_utf8_lossy(&full.stderr).into_owned();
    assert_eq!(code(&full), Some(74), "{said}");
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "the report of July");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else stays");

    let again = program().args(arguments).output().unwrap();
    assert_eq!(code(&again), Some(1), "{}", String::from_utf8_lossy(&again.stderr));
    assert!(std::fs::read_to_string(&out).unwrap().ends_with("</html>\n"));
    let stdout = run(NAMES, &["--depth", "identity", "--out", "/dev/stdout"]);
    assert!(text_of(&stdout).starts_with("# Audit"), "a pipe is no file to replace");
}

#[test]
fn a_report_never_overwrites_what_it_is_made_of() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let list = path("names.txt");
    std::fs::write(&list, NAMES).unwrap();
    let options = ["--json", "--depth", "identity", "--timeout", "2m", "--names", &list];
    let (report, log, config) = (path("report.json"), path("log.md"), path("config.toml"));
    std::fs::write(&config, "").unwrap();
    std::fs::write(&report, &audit(&options).output().unwrap().stdout).unwrap();
    std::fs::write(&log, LOG_HEAD).unwrap();
    let sandbox = ["audit", "--sandbox", "--depth", "identity"];
    let audit = |further: &[&str]| [&sandbox[..], further].concat().into_iter().map(str::to_owned).collect::<Vec<_>>();
    let other = |arguments: &[&str]| arguments.iter().map(|argument| (*argument).to_owned()).collect::<Vec<_>>();
    for (command, out) in [
        (audit(&["--names", &list]), &list),
        (audit(&["--registry", &report]), &report),
        (audit(&["--names", &list, "--since", &report]), &report),
        (audit(&["--names", &list, "--history", &report]), &report),
        (audit(&["--names", &list, "--waive", &log]), &log),
        (other(&["audit", "render", &report]), &report),
        (other(&["audit", "--names", &list, "--config", &config, "--ca", &log]), &log),
        (other(&["audit", "--names", &list, "--config", &config]), &config),
        (other(&["audit", "list", "--sandbox", "--below", "eth", "--known", &list]), &list),
        (other(&["audit", "list", "--below", "eth", "--config", &config]), &config),
        (other(&["audit", "schemas", "--config", &config, "--ca", &log]), &log),
        (other(&["audit", "schemas", "--config", &config]), &config),
        (other(&["audit", "diff", &report, &report]), &report),
        (other(&["audit", "verify", &report]), &report),
        (other(&["audit", "sign", &report, "--key", &log]), &report),
        (other(&["audit", "resolution", "--log", &log, &report]), &log),
    ] {
        let before = std::fs::read(out).unwrap();
        let refused = program().args(&command).args(["--out", out]).output().unwrap();
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(code(&refused), Some(2), "{command:?} {said}");
        assert!(said.contains("this is the file of ") && std::fs::read(out).unwrap() == before, "{command:?} {said}");
    }
}

#[test]
fn an_entry_that_is_no_name_is_a_row_and_not_an_end() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("manifest.json");
    let entries =
        json!([7, {"id": "a\u{202e}.eth"}, {"id": ["x"]}, {"id": ""}, {"ens": "summarizeagent.eth"}, {"id": "\n"}]);
    std::fs::write(&file, json!({"entries": entries}).to_string()).unwrap();
    let options = ["--registry", file.to_str().unwrap(), "--depth", "identity", "--format"];
    let output = audit(&[&options[..], &["json"]].concat()).output().unwrap();
    let report = json_of(&output.stdout);
    let rows = report["rows"].as_array().unwrap();
    assert!(!text_of(&output).contains('\u{202e}') && fits_schema(&report));
    let states: Vec<_> =
        rows.iter().map(|row| (row["state"].as_str().unwrap(), row["reasons"][0]["code"].as_str())).collect();
    let invalid = ("untrusted", Some("name-invalid"));
    assert_eq!(states, [invalid, invalid, invalid, invalid, ("trusted", None), invalid]);
    assert_eq!((&report["registry"]["not_on_chain"], &report["registry"]["agreeing"]), (&json!(5), &json!(1)));
    for form in ["md", "html", "csv", "sarif"] {
        let output = audit(&[&options[..], &[form]].concat()).output().unwrap();
        assert!(matches!(code(&output), Some(1)) && !text_of(&output).contains('\u{202e}'), "{form}");
    }
}

#[test]
fn the_published_registries_are_read() {
    let Some(corpus) = corpus("commandlayer") else { return };
    for (manifest, entries) in
        [("agent-cards/meta/manifest.json", 15), ("agent-cards-v1.1.0/website/agent-cards/meta/manifest.json", 14)]
    {
        let manifest = corpus.join(manifest);
        let output =
            audit(&["--registry", manifest.to_str().unwrap(), "--depth", "identity", "--json"]).output().unwrap();
        let report = json_of(&output.stdout);
        assert_eq!(
            (&report["counts"]["names"], &report["scope"]["registry"]["entries"]),
            (&json!(entries), &json!(entries))
        );
        let counts = &report["registry"];
        let known: u64 = ["agreeing", "not_on_chain"].iter().filter_map(|member| counts[member].as_u64()).sum();
        assert!(known == entries && counts["agreeing"] != 0, "the sandbox has some of these names: {counts}");
    }
    // It refers to IPFS content that the sandbox does not have.
    let descriptor = corpus.join("agent-cards/.well-known/agent.json");
    let output = audit(&["--registry", descriptor.to_str().unwrap()]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        code(&output) == Some(3) && said.contains("bafybeihwxbbslsmvdnt3qj6qg5e6uj44hokxgs4h6p43jdmjyghvzjz4l4"),
        "{said}"
    );
}

/// The block number of a served network, which does not change.
fn block_of(world: &Served) -> String {
    let verdict = json_of(&world.clresolve(&["verify", "summarizeagent.eth", "-o", "json"]).stdout);
    verdict["anchor"]["block"]["number"].to_string()
}

/// The lines of a report without the time of writing and without the digest.
fn of_any_time(report: &[u8]) -> Vec<&str> {
    let lines = std::str::from_utf8(report).expect("a report is UTF-8").lines();
    let kept = lines.filter(|line| !line.starts_with("\"generated_at\": \"2") && !line.starts_with("\"digest\": "));
    kept.collect()
}

/// A file in the served network's folder with its decidable names and many unregistered ones.
fn long_list(world: &Served, length: usize) -> String {
    let decided = Sandbox::expected_verdicts()
        .into_iter()
        .filter(|expected| expected.state != clresolve_core::state::TrustState::Indeterminate);
    let own = decided.map(|expected| expected.name.to_string());
    let names: Vec<String> = own.chain((0..).map(|number| format!("nobody-{number}.eth"))).take(length).collect();
    let file = world.path("names.txt");
    std::fs::write(&file, names.join("\n")).unwrap();
    file
}

/// Runs an audit until it has judged one more name, then kills it.
#[cfg(unix)]
fn kill_after_a_row(world: &Served, arguments: &[&str]) {
    let mut command = world.command(arguments);
    command.arg("-v");
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    let log = BufReader::new(child.stderr.take().expect("a pipe"));
    let has_judged = log.lines().map_while(Result::ok).any(|line| line.contains("judged"));
    child.kill().expect("it can be killed");
    let status = child.wait().expect("it ended");
    assert!(has_judged && status.code().is_none(), "it was killed at work: {status}");
}

#[cfg(unix)]
#[test]
fn an_audit_that_is_killed_ten_times_gives_the_report_of_one_run() {
    let world = &Served::start();
    let (names, block, journal) = (&long_list(world, 200), &block_of(world), &world.path("journal"));
    let fixed = ["audit", "--names", names, "--block", block, "--json", "--timeout", "2m"];
    let whole = world.clresolve(&fixed);
    assert_eq!(code(&whole), Some(1), "{}", String::from_utf8_lossy(&whole.stderr));
    assert_eq!(json_of(&whole.stdout)["scope"]["depth"], "schemas");

    let report = world.path("report.json");
    let arguments = [&fixed[..], &["--out", &report, "--resume", journal, "--concurrency", "1"]].concat();
    let mut lengths = Vec::new();
    for _ in 0..10 {
        kill_after_a_row(world, &arguments);
        lengths.push(std::fs::metadata(journal).expect("a journal").len());
    }
    assert!(lengths.is_sorted() && lengths[0] < lengths[9], "no run loses what was judged: {lengths:?}");
    assert!(!Path::new(&report).exists());
    let last = world.clresolve(&arguments);
    assert_eq!(code(&last), Some(1), "{}", String::from_utf8_lossy(&last.stderr));
    assert!(!Path::new(journal).exists(), "the report is written");
    assert_eq!(of_any_time(&std::fs::read(&report).unwrap()), of_any_time(&whole.stdout));
}

#[cfg(unix)]
#[test]
fn a_full_disk_loses_nothing_that_was_judged() {
    let world = &Served::start();
    let (names, block, journal) = (&long_list(world, 800), &block_of(world), &world.path("journal"));
    let fixed = ["audit", "--names", names, "--block", block, "--depth", "identity", "--json", "--timeout", "2m"];
    let whole = world.clresolve(&fixed);
    let resumed = [&fixed[..], &["--resume", journal]].concat();

    let mut limited = Command::new("sh");
    limited
        .args(["-c", "trap '' XFSZ; ulimit -f 32; exec \"$@\"", "sh", BINARY])
        .args(world.command(&resumed).get_args());
    let full = limited.output().expect("a shell");
    let said = String::from_utf8_lossy(&full.stderr).into_owned();
    assert_eq!((code(&full), text_of(&full)), (Some(74), ""), "{said}");
    assert!(said.contains("free disk space and run the same command again"), "{said}");
    let kept = std::fs::read_to_string(journal).expect("a journal");
    assert!(kept.lines().count() > 3, "{kept}");

    let other_rules = [&resumed[..], &["--profile", "agent-cards/1.1.0"]].concat();
    let refused = world.clresolve(&other_rules);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(code(&refused) == Some(2) && said.contains("the journal of an audit with another profile"), "{said}");

    let over_it = world.clresolve(&[&resumed[..], &["--out", journal]].concat());
    let said = String::from_utf8_lossy(&over_it.stderr).into_owned();
    assert!(code(&over_it) == Some(2) && said.contains("this is the file of --resume too"), "{said}");

    let rest = world.clresolve(&[&["-v"], &resumed[..]].concat());
    let said = String::from_utf8_lossy(&rest.stderr).into_owned();
    assert_eq!(of_any_time(&rest.stdout), of_any_time(&whole.stdout), "{said}");
    let judged = said.lines().filter(|line| line.contains("judged") && !line.contains("judged again")).count();
    assert_eq!(judged + kept.matches('\n').count() - 1, 800, "no name is judged twice");
    assert!(!Path::new(journal).exists());
}

#[cfg(unix)]
#[test]
fn a_full_disk_leaves_the_report_of_what_was_judged_where_no_journal_holds_it() {
    let world = &Served::start();
    let (names, block) = (&long_list(world, 800), &block_of(world));
    let arguments = ["audit", "--names", names, "--block", block, "--depth", "identity", "--json", "--timeout", "2m"];
    let whole = json_of(&world.clresolve(&arguments).stdout);
    let limited = |blocks: u32| {
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
        let mut limited = Command::new("sh");
        limited.args(["-c", &script, "sh", BINARY]).args(world.command(&arguments).get_args());
        let full = limited.output().expect("a shell");
        let said = String::from_utf8_lossy(&full.stderr).into_owned();
        assert_eq!(code(&full), Some(74), "{said}");
        (full, said)
    };
    let (full, said) = limited(32);
    assert!(said.contains("No more rows could be kept, so later names of the list are missing"), "{said}");
    let report = json_of(&full.stdout);
    assert!(fits_schema(&report), "{report:#}");
    assert_eq!((&report["complete"], &report["scope"]), (&json!(false), &whole["scope"]));
    let (judged, all) = (report["rows"].as_array().expect("rows"), whole["rows"].as_array().expect("rows"));
    assert!(judged.len() > 2 && judged.len() < all.len(), "{} of {}", judged.len(), all.len());
    assert_eq!(&judged[..], &all[..judged.len()]);
    let (nothing, said) = limited(0);
    assert!(text_of(&nothing).is_empty() && said.contains("cannot write the scratch file"), "{said}");
}

/// A folder with a configuration and a list of two agents.
struct AuditFolder(TempDir);

impl AuditFolder {
    fn of(config: &Config) -> Self {
        let folder = TempDir::new().unwrap();
        config.save(&folder.path().join("config.toml")).unwrap();
        std::fs::write(folder.path().join("names.txt"), "deep.eth\nplain.eth\n").unwrap();
        Self(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn run(&self, options: &[&str]) -> Output {
        self.at_depth("identity", options)
    }

    fn at_depth(&self, depth: &str, options: &[&str]) -> Output {
        self.command(depth, options).output().expect("the binary runs")
    }

    fn command(&self, depth: &str, options: &[&str]) -> Command {
        let mut command = program();
        command.args(["audit", "--depth", depth, "--json", "--config", &self.path("config.toml")]);
        command.args(["--names", &self.path("names.txt")]).args(options);
        command
    }
}

fn start_two_agents() -> (tokio::runtime::Runtime, CustomSandbox, Config) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let world = runtime.block_on(CustomSandbox::start(&two_agents())).unwrap();
    let mut config = world.config();
    config.timeout = Duration::from_secs(120);
    (runtime, world, config)
}

/// Names that publish the same card, which is only valid for the first: URL, CID and schemas are equal.
fn one_card(runtime: &tokio::runtime::Runtime, names: usize) -> SandboxSpec {
    let publisher = "[[name]]\nname = \"publisher.eth\"\nholder = \"publisher\"\naddr = \"publisher\"\n";
    let agent = |number: usize, state: &str, rest: &str| {
        let about = "about = \"Shares a card.\"\nlayout = \"file\"";
        format!("[[agent]]\nname = \"n{number}.eth\"\n{about}\nstate = \"{state}\"\n{rest}")
    };
    let spec = |agents: String| {
        SandboxSpec::parse(&(publisher.to_owned() + &agents)).unwrap_or_else(|error| panic!("{error}"))
    };
    let world = runtime.block_on(CustomSandbox::start(&spec(agent(0, "trusted", "")))).unwrap();
    let audit = AuditFolder::of(&world.config());
    let config = audit.path("config.toml");
    let card = program().args(["card", "n0.eth", "--config"]).arg(config).output().expect("a card");
    let url = "https://cards.sandbox.example/agents/v1.0.0/commons/n0.eth.json";
    let same = |number: usize| {
        let card = format!("[agent.card]\ntext = '''\n{}'''\n", text_of(&card));
        agent(number, "untrusted", &format!("{card}[agent.records]\n\"cl.agentcard\" = \"{url}\"\n"))
    };
    spec(agent(0, "trusted", "") + &(1..names).map(same).collect::<String>())
}

#[cfg(unix)]
#[test]
fn shared_content_is_fetched_once_per_audit() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let world = runtime.block_on(CustomSandbox::start(&one_card(&runtime, 40))).unwrap();
    let mut config = world.config();
    config.timeout = Duration::from_secs(120);
    let audit = AuditFolder::of(&config);
    let list = |names: &[usize]| {
        let list: String = names.iter().map(|number| format!("n{number}.eth\n")).collect();
        std::fs::write(audit.path("names.txt"), list).unwrap();
    };
    let fetched = || {
        let counts = world.request_counts();
        [counts.https, counts.gateway, counts.schemas]
    };
    let audited = |names: &[usize]| {
        list(names);
        let before = fetched();
        let report = json_of(&audit.at_depth("schemas", &[]).stdout);
        let after = fetched();
        (report["rows"].clone(), [0, 1, 2].map(|source| after[source] - before[source]))
    };
    let (row, one) = audited(&[7]);
    let (rows, forty) = audited(&(0..40).collect::<Vec<_>>());
    // The manifests are read at the start.
    let mirrors = 2;
    assert!(one[0] == 1 && one[1] > 1 && one[2] >= mirrors, "a card, blocks of it and of schemas: {one:?}");
    assert_eq!(forty, one);
    let mut seventh = rows[7].clone();
    seventh["line"] = json!(1);
    assert_eq!(row[0], seventh, "what is shared changes no row");
    assert_eq!(rows[0]["state"], "trusted");
}

/// Serves these routes and returns the URL.
async fn listening(routes: axum::Router) -> url::Url {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    url
}

/// An endpoint that forwards its first request for a finalized block to one upstream, and all others to another.
async fn moving_endpoint(first: url::Url, then: url::Url) -> url::Url {
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let answer = move |body: bytes::Bytes| {
        let is_first =
            String::from_utf8_lossy(&body).contains("\"finalized\"") && asked.fetch_add(1, Ordering::SeqCst) == 0;
        let upstream = if is_first { first.clone() } else { then.clone() };
        let http = http.clone();
        async move {
            let sent = http.post(upstream).header("content-type", "application/json").body(body).send().await.unwrap();
            ([("content-type", "application/json")], sent.bytes().await.unwrap())
        }
    };
    listening(axum::Router::new().fallback(answer)).await
}

/// The block that an audit read.
fn block_read(audit: &AuditFolder) -> u64 {
    let output = audit.run(&[]);
    let block = json_of(&output.stdout)["scope"]["block"].as_str().and_then(|block| block.parse().ok());
    block.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

/// An audit whose pinned block is pruned. If the chain has advanced, the audit continues at the next block.
struct PrunedPin {
    runtime: tokio::runtime::Runtime,
    world: CustomSandbox,
    config: Config,
    /// A configuration whose endpoint has the advanced chain.
    later: Config,
    /// The pinned block and the next one.
    blocks: [u64; 2],
}

impl PrunedPin {
    fn new() -> Self {
        let (runtime, world, config) = start_two_agents();
        let mut later = config.clone();
        let ahead = world.start_rpc_endpoint(SandboxRpcFault::None, ServedChainState::Ahead, true);
        later.chain.endpoints[0].url = runtime.block_on(ahead).unwrap().url;
        let blocks = [&config, &later].map(|config| block_read(&AuditFolder::of(config)));
        assert!(blocks[0] < blocks[1], "{blocks:?}");
        Self { runtime, world, config, later, blocks }
    }

    /// Audits through an endpoint in this state that loses the state of the pinned block as soon as it is pinned.
    fn audit(&self, state: ServedChainState) -> AuditFolder {
        let mut config = self.config.clone();
        let pruned = SandboxRpcFault::PrunedBelow(self.blocks[0] + 1);
        config.chain.endpoints[0].url = self.runtime.block_on(async {
            let then = self.world.start_rpc_endpoint(pruned, state, true).await.unwrap().url;
            moving_endpoint(config.chain.endpoints[0].url.clone(), then).await
        });
        AuditFolder::of(&config)
    }
}

#[test]
fn an_audit_goes_on_at_another_block_where_the_state_of_the_pinned_one_is_gone() {
    let pruned = PrunedPin::new();
    let [gone, next] = pruned.blocks;
    let output = pruned.audit(ServedChainState::Ahead).run(&[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(code(&output), Some(0), "{said}");
    assert!(
        said.contains(&format!(
            "the endpoints no longer have the state of block {gone}; the audit continues at block {next}"
        )),
        "{said}"
    );
    let report = json_of(&output.stdout);
    assert_eq!(report["scope"]["block"], json!(format!("{gone}, {next}")));
    let rows = report["rows"].as_array().expect("rows");
    assert!(rows.len() == 2 && rows.iter().all(|row| row["block"] == json!(next)), "{report:#}");

    // Without a later block, the names report the failure.
    let output = pruned.audit(ServedChainState::Growing).run(&[]);
    assert_eq!(code(&output), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let report = json_of(&output.stdout);
    assert_eq!(report["rows"][0]["reasons"][0]["code"], "block-unavailable");
    assert_eq!(report["scope"]["block"], json!(gone.to_string()));
}

#[cfg(unix)]
#[test]
fn a_run_that_was_killed_after_its_block_was_gone_goes_on_at_the_one_that_took_its_place() {
    let pruned = PrunedPin::new();
    let [gone, next] = pruned.blocks;
    let audit = pruned.audit(ServedChainState::Ahead);
    let list: String = (0..200).map(|number| format!("nobody-{number}.eth\n")).collect();
    std::fs::write(audit.path("names.txt"), format!("deep.eth\n{list}plain.eth\n")).unwrap();
    let journal = audit.path("journal");
    let options = ["--resume", &journal, "--concurrency", "1", "-v"];
    let mut killed = audit.command("identity", &options).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(killed.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
    assert!(said.any(|line| line.contains(&format!("the audit continues at block {next}"))));
    assert!(said.any(|line| line.contains("judged")));
    killed.kill().and_then(|()| killed.wait()).expect("it runs");

    // A run that started here would only read the next block.
    pruned.later.save(Path::new(&audit.path("config.toml"))).unwrap();
    let output = audit.run(&options[..2]);
    assert_eq!(code(&output), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let report = json_of(&output.stdout);
    assert_eq!(report["scope"]["block"], json!(format!("{gone}, {next}")));
    let rows = report["rows"].as_array().expect("rows");
    assert!(rows.len() == 202 && rows.iter().all(|row| row["block"] == json!(next)), "{report:#}");
    assert!(!Path::new(&journal).exists(), "the whole report is written");
}

#[test]
fn audit_reads_one_block_while_the_chain_advances() {
    let (runtime, world, config) = start_two_agents();
    let now = config.chain.endpoints[0].url.clone();
    let later =
        runtime.block_on(world.start_rpc_endpoint(SandboxRpcFault::None, ServedChainState::Ahead, true)).unwrap().url;
    let moving = || {
        let mut config = config.clone();
        config.chain.endpoints[0].url = runtime.block_on(moving_endpoint(now.clone(), later.clone()));
        let audit = AuditFolder::of(&config);
        let list: String = (0..60).map(|number| format!("nobody-{number}.eth\n")).collect();
        std::fs::write(audit.path("names.txt"), format!("deep.eth\n{list}")).unwrap();
        audit
    };
    let said_by = |report: &Value| {
        let rows = report["rows"].as_array().expect("rows");
        let blocks: BTreeSet<String> = rows.iter().map(|row| row["block"].to_string()).collect();
        assert_eq!((rows.len(), blocks.len()), (61, 1), "{blocks:?}");
        assert_eq!(report["scope"]["block"].as_str(), blocks.first().map(String::as_str));
    };
    said_by(&json_of(&moving().run(&[]).stdout));
}

#[test]
fn an_audit_that_can_pin_no_block_says_so() {
    let (_runtime, _world, mut config) = start_two_agents();
    config.chain.endpoints[0].url = "http://127.0.0.1:9/".parse().expect("a URL");
    let output = AuditFolder::of(&config).run(&[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("no block is pinned") && said.contains("different blocks"), "{said}");
    assert_eq!(json_of(&output.stdout)["counts"]["indeterminate"], 2, "{said}");
}

#[test]
fn a_run_that_goes_on_reads_the_block_that_it_began_with() {
    let world = Served::start();
    let (names, journal) = (long_list(&world, 800), world.path("journal"));
    let fixed = ["audit", "--depth", "identity", "--names", &names, "--resume", &journal, "--json"];
    kill_after_a_row(&world, &fixed);
    let pin_file = format!("{journal}.pin");
    let pin = report_at(Path::new(&pin_file));
    assert_eq!((&pin["schema"], &pin["world"]), (&json!("clresolve.pin/1"), &json!("sandbox")));
    let with = |member: &str, value: Value| {
        let mut pin = pin.clone();
        *pin.pointer_mut(member).expect("a member") = value;
        pin
    };
    for (other, why) in [
        (with("/world", json!("mainnet")), "it is of mainnet"),
        (with("/blocks/0/hash", json!(format!("0x{}", "0".repeat(64)))), "of the chain is 0x"),
        (with("/blocks", json!([])), "is not a pin file"),
        (json!({"blocks": 7}), "is not a pin file"),
    ] {
        std::fs::write(&pin_file, other.to_string()).unwrap();
        let refused = world.clresolve(&fixed);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(code(&refused) == Some(2) && said.contains(&pin_file) && said.contains(why), "{why}: {said}");
    }
    std::fs::write(&pin_file, pin.to_string()).unwrap();
    let report = json_of(&world.clresolve(&fixed).stdout);
    assert_eq!(report["scope"]["block"], json!(pin["blocks"][0]["number"].to_string()));
    assert!(!Path::new(&journal).exists() && !Path::new(&pin_file).exists());

    // A pin without rows belongs to another audit.
    std::fs::write(pin_file, "{}").unwrap();
    assert_eq!(json_of(&world.clresolve(&fixed).stdout)["counts"]["names"], 800);
}

#[test]
fn a_block_that_a_pin_chose_hides_no_change_to_come() {
    let world = Served::start();
    let names = world.path("names.txt");
    std::fs::write(&names, "record-pending.eth\nsummarizeagent.eth\n").unwrap();
    let fixed = ["audit", "--depth", "identity", "--names", &names, "--json"];
    let audit = |options: &[&str]| world.clresolve(&[&fixed[..], options].concat());
    let said = |output: &Output| {
        let row = &json_of(&output.stdout)["rows"][0];
        (row["state"].clone(), row["reasons"][0]["code"].clone())
    };
    let pending = (json!("indeterminate"), json!("record-pending"));
    let pinned = audit(&[]);
    assert_eq!(said(&pinned), pending);
    let report = json_of(&pinned.stdout);
    let block = report["scope"]["block"].as_str().expect("a block");
    assert_eq!(said(&audit(&["--block", block])).0, "trusted", "who names a block asks about the past");
}

#[test]
fn a_report_follows_the_one_before() {
    let (runtime, _world, config) = start_two_agents();
    let other = two_agents_but("cl.checksum.agentcard", &format!("sha256:{}", "0".repeat(64)));
    let other = runtime.block_on(CustomSandbox::start(&other)).unwrap();
    let mut later = other.config();
    later.timeout = Duration::from_secs(120);
    let (june, august) = (AuditFolder::of(&config), AuditFolder::of(&later));
    let kept = |name: &str, output: &Output| {
        let file = june.path(name);
        std::fs::write(&file, &output.stdout).unwrap();
        file
    };
    let first = june.run(&[]);
    assert_eq!(code(&first), Some(0), "{}", String::from_utf8_lossy(&first.stderr));
    let first = kept("june.json", &first);

    let again = june.run(&["--since", &first]);
    let rows = json_of(&again.stdout)["rows"].clone();
    assert_eq!(rows[0]["unchanged_since"], report_at(Path::new(&first))["rows"][0]["checked_at"]);

    let dark = june.run(&["--since", &first, "--rpc", "http://127.0.0.1:9/"]);
    assert_eq!(code(&dark), Some(1), "the state is another");
    assert_eq!(json_of(&dark.stdout)["rows"][0]["carried"]["state"], "trusted");
    let july = kept("july.json", &dark);
    let last = august.run(&["--since", &july]);
    let changes = json_of(&last.stdout)["since"]["changes"].clone();
    let broken = changes.as_array().expect("changes").iter().filter(|change| change["kind"] == "newly-broken");
    assert_eq!(broken.map(|change| &change["name"]).collect::<Vec<_>>(), [&json!("plain.eth")], "{changes:#}");
}

/// A proxy that answers its first requests with a `Retry-After` pause, and forwards the others.
async fn busy_endpoint(upstream: url::Url, refusals: usize, pause: &'static str) -> (url::Url, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let (counted, http) = (Arc::clone(&asked), reqwest::Client::builder().no_proxy().build().unwrap());
    let answer = move |body: bytes::Bytes| {
        let (http, upstream, number) = (http.clone(), upstream.clone(), counted.fetch_add(1, Ordering::SeqCst));
        async move {
            if number < refusals {
                return (StatusCode::TOO_MANY_REQUESTS, [("retry-after", pause)], bytes::Bytes::new());
            }
            let sent = http.post(upstream).header("content-type", "application/json").body(body).send().await.unwrap();
            (StatusCode::OK, [("content-type", "application/json")], sent.bytes().await.unwrap())
        }
    };
    (listening(axum::Router::new().fallback(answer)).await, asked)
}

/// Once within the time limit of a name, and once for longer.
#[test]
fn a_server_gets_the_pause_that_it_asks_for_and_no_name_suffers_for_it() {
    let (runtime, _world, config) = start_two_agents();
    for (pause, refusals, timeout) in [("1", 3, 120), ("25", 1, 20)] {
        let mut config = config.clone();
        config.timeout = Duration::from_secs(timeout);
        let endpoint = &mut config.chain.endpoints[0];
        let (url, asked) = runtime.block_on(busy_endpoint(endpoint.url.clone(), refusals, pause));
        endpoint.url = url;
        let audit = AuditFolder::of(&config);
        let output = audit.run(&[]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(code(&output), Some(0), "{pause}: {said} {}", text_of(&output));
        assert!(asked.load(Ordering::SeqCst) > refusals);
    }
}

/// A gateway with one block that answers its first requests with a pause. Also returns the number of requests.
async fn busy_gateway(block: bytes::Bytes, refusals: usize) -> (url::Url, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let answer = move |uri: axum::http::Uri| {
        let number = counted.fetch_add(1, Ordering::SeqCst);
        let (status, body) = match uri.query() {
            _ if number < refusals => (StatusCode::TOO_MANY_REQUESTS, bytes::Bytes::new()),
            Some("format=raw") => (StatusCode::OK, block.clone()),
            _ => (StatusCode::NOT_ACCEPTABLE, bytes::Bytes::new()),
        };
        async move { (status, [("retry-after", "2")], body) }
    };
    (listening(axum::Router::new().fallback(answer)).await, asked)
}

/// Blocks by their gateway path.
fn by_path(blocks: Vec<bytes::Bytes>) -> Arc<HashMap<String, bytes::Bytes>> {
    let path = |block: &bytes::Bytes| format!("/ipfs/{}", ContentId::from_raw_block(block));
    Arc::new(blocks.into_iter().map(|block| (path(&block), block)).collect())
}

/// The requested block.
fn asked_for(blocks: &HashMap<String, bytes::Bytes>, uri: &axum::http::Uri) -> Option<bytes::Bytes> {
    blocks.get(uri.path()).filter(|_| uri.query() == Some("format=raw")).cloned()
}

/// A gateway that serves at most `at_once` concurrent requests, each with a delay, and rejects all others. Also returns
/// the numbers of served and rejected requests.
async fn narrow_gateway(blocks: Vec<bytes::Bytes>, at_once: usize) -> (url::Url, [Arc<AtomicUsize>; 2]) {
    let blocks = by_path(blocks);
    let counts: [Arc<AtomicUsize>; 2] = Default::default();
    let (inside, [given, refused]) = (Arc::new(AtomicUsize::new(0)), counts.clone());
    let answer = move |uri: axum::http::Uri| {
        let block = asked_for(&blocks, &uri);
        let (inside, given, refused) = (Arc::clone(&inside), Arc::clone(&given), Arc::clone(&refused));
        async move {
            let is_one_too_many = inside.fetch_add(1, Ordering::SeqCst) >= at_once;
            if !is_one_too_many {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            inside.fetch_sub(1, Ordering::SeqCst);
            let (status, body) = match block {
                _ if is_one_too_many => (StatusCode::TOO_MANY_REQUESTS, bytes::Bytes::new()),
                Some(block) => (StatusCode::OK, block),
                None => (StatusCode::NOT_ACCEPTABLE, bytes::Bytes::new()),
            };
            if is_one_too_many { &refused } else { &given }.fetch_add(1, Ordering::SeqCst);
            (status, [("retry-after", "1")], body)
        }
    };
    (listening(axum::Router::new().fallback(answer)).await, counts)
}

/// A gateway that rejects one request after each block that it serves.
async fn hesitant_gateway(blocks: Vec<bytes::Bytes>) -> url::Url {
    let blocks = by_path(blocks);
    let has_given = Arc::new(AtomicBool::new(false));
    let answer = move |uri: axum::http::Uri| {
        let block = asked_for(&blocks, &uri);
        let (status, body) = match block {
            _ if has_given.swap(false, Ordering::SeqCst) => (StatusCode::TOO_MANY_REQUESTS, bytes::Bytes::new()),
            Some(block) => {
                has_given.store(true, Ordering::SeqCst);
                (StatusCode::OK, block)
            }
            None => (StatusCode::NOT_ACCEPTABLE, bytes::Bytes::new()),
        };
        std::future::ready((status, [("retry-after", "1")], body))
    };
    listening(axum::Router::new().fallback(answer)).await
}

/// Agents whose cards are only available from one gateway, and these cards.
fn agents_of_one_gateway(
    runtime: &tokio::runtime::Runtime,
    names: usize,
) -> (CustomSandbox, Config, Vec<bytes::Bytes>) {
    let agent = |number: usize| {
        format!(
            "[[agent]]\nname = \"a{number}.eth\"\nabout = \"Shortens text {number}.\"\nstate = \"trusted\"\n\
             [agent.records]\n\"cl.agentcard\" = \"https://nobody.sandbox.example/{number}.json\"\n"
        )
    };
    let publisher = "[[name]]\nname = \"publisher.eth\"\nholder = \"publisher\"\naddr = \"publisher\"\n";
    let spec = publisher.to_owned() + &(0..names).map(agent).collect::<String>();
    let world = runtime.block_on(CustomSandbox::start(&SandboxSpec::parse(&spec).unwrap())).unwrap();
    let mut config = world.config();
    config.timeout = Duration::from_secs(120);
    config.gateways.truncate(1);
    let cards = runtime.block_on(async {
        let resolver = Resolver::new(&config).await.unwrap();
        let mut cards = Vec::new();
        for number in 0..names {
            let resolution = resolver.resolve(&format!("a{number}.eth")).await;
            cards.push(resolution.card_bytes().expect("a trusted card").to_vec().into());
        }
        cards
    });
    (world, config, cards)
}

/// The report on the first `names` agents.
fn report_on_agents(config: &Config, names: usize) -> Value {
    let audit = AuditFolder::of(config);
    let list: String = (0..names).map(|number| format!("a{number}.eth\n")).collect();
    std::fs::write(audit.path("names.txt"), list).unwrap();
    json_of(&audit.run(&["--concurrency", "16"]).stdout)
}

/// The gateway rests after each served block, and all other names are waiting at each rest.
#[test]
fn a_gateway_that_rests_after_each_name_loses_none() {
    const NAMES: usize = 10;
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (_world, mut config, cards) = agents_of_one_gateway(&runtime, NAMES);
    config.gateways[0].url = runtime.block_on(hesitant_gateway(cards));
    let report = report_on_agents(&config, NAMES);
    assert_eq!(report["counts"]["trusted"], NAMES, "{:#}", report["reasons"]);
}

/// No other gateway has the cards. Each name sends two requests: for a CAR, and for its block.
#[test]
fn a_gateway_that_bears_few_requests_at_once_gets_as_many_and_no_name_is_lost() {
    const NAMES: usize = 48;
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (_world, mut config, cards) = agents_of_one_gateway(&runtime, NAMES);
    let (url, [given, refused]) = runtime.block_on(narrow_gateway(cards, 2));
    config.gateways[0].url = url;
    let report = report_on_agents(&config, NAMES);
    let (given, refused) = (given.load(Ordering::SeqCst), refused.load(Ordering::SeqCst));
    assert_eq!(report["counts"]["trusted"], NAMES, "{:#}, {refused} refused, {given} given", report["reasons"]);
    assert!((1..=NAMES).contains(&refused), "{refused} refused, {given} given");
}

/// An agent whose card has this URL, and the card.
fn agent_at(runtime: &tokio::runtime::Runtime, url: &str) -> (CustomSandbox, Config, bytes::Bytes) {
    let publisher = "[[name]]\nname = \"publisher.eth\"\nholder = \"publisher\"\naddr = \"publisher\"\n";
    let agent = "[[agent]]\nname = \"plain.eth\"\nabout = \"Makes long texts short.\"\nstate = \"trusted\"\n";
    let spec = SandboxSpec::parse(&format!("{publisher}{agent}[agent.records]\n\"cl.agentcard\" = \"{url}\"\n"));
    let world = runtime.block_on(CustomSandbox::start(&spec.unwrap())).unwrap();
    let mut config = world.config();
    config.timeout = Duration::from_secs(120);
    let audit = AuditFolder::of(&config);
    let file = audit.path("config.toml");
    let card = program().args(["card", "plain.eth", "--config"]).arg(file).output().expect("a card");
    assert_eq!(code(&card), Some(0), "{}", String::from_utf8_lossy(&card.stderr));
    (world, config, card.stdout.into())
}

/// The row of the only name.
fn row_of_plain(config: &Config) -> Value {
    let audit = AuditFolder::of(config);
    std::fs::write(audit.path("names.txt"), "plain.eth\n").unwrap();
    json_of(&audit.run(&[]).stdout)["rows"][0].clone()
}

/// No other gateway has the card.
#[test]
fn a_name_waits_for_its_only_gateway_while_that_rests() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (_world, mut config, card) = agent_at(&runtime, "https://nobody.sandbox.example/card.json");
    for refusals in [1, 2] {
        let (url, asked) = runtime.block_on(busy_gateway(card.clone(), refusals));
        config.gateways.truncate(1);
        config.gateways[0].url = url;
        let row = row_of_plain(&config);
        assert_eq!(row["state"], "trusted", "{row:#}");
        assert_eq!(asked.load(Ordering::SeqCst), refusals + 2, "a CAR and a block");
    }
}

#[test]
fn a_name_waits_for_a_card_host_that_asks_for_a_pause() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (_world, mut config, card) = agent_at(&runtime, "https://busy.example/card.json");
    let asked = AtomicUsize::new(0);
    let host = runtime.block_on(Server::tls(&["busy.example"], move |_| {
        if asked.fetch_add(1, Ordering::SeqCst) < 2 {
            return Answer::Whole(server::answer("429 Too Many Requests", "Retry-After: 1\r\n", b""));
        }
        server::ok(&card)
    }));
    config.network.ca_pems.push(String::from_utf8(host.root.to_vec()).unwrap());
    config.network.connect_to.push(host.detour("busy.example:443").parse().unwrap());
    let row = row_of_plain(&config);
    assert_eq!((&row["state"], host.paths().len()), (&json!("trusted"), 3), "{row:#}");
    assert!(!row["reasons"].to_string().contains("source-unavailable"), "{row:#}");
}

#[test]
fn names_that_the_chain_tells_of_are_a_list_that_is_audited() {
    let world = Served::start();
    let run = |arguments: &[&str]| world.command(arguments).output().expect("the binary runs");
    let list = |arguments: &[&str]| run(&[&["audit", "list"], arguments].concat());
    let (known, changed) = (world.path("known.txt"), world.path("changed.txt"));
    let nameless = format!("\n# no more names\na\u{202e} b.eth\n{}", "no name\n".repeat(11));
    std::fs::write(&known, format!("checksum-mismatch.eth\nsummarizeagent.eth\nno-agent.eth{nameless}")).unwrap();
    let made = list(&["--changed", "0..", "--known", &known, "--out", &changed]);
    let said = String::from_utf8_lossy(&made.stderr).into_owned();
    assert_eq!(code(&made), Some(0), "{said}");
    assert!(said.contains("clresolve: --known, line 5: the name does not normalise") && !said.contains('\u{202e}'));
    assert!(said.contains("--known, line 14: ") && !said.contains("--known, line 15: "), "{said}");
    assert!(said.contains("clresolve: --known: 2 more invalid lines"), "{said}");
    let names = std::fs::read_to_string(&changed).unwrap();
    let spelt: Vec<_> =
        names.lines().filter(|line| !line.starts_with("0x")).map(|line| line.split(' ').next()).collect();
    assert_eq!(spelt, ["checksum-mismatch.eth", "summarizeagent.eth", "wrapped.eth"].map(Some));

    let few: String = names.lines().take(4).map(|line| line.to_owned() + "\n").collect();
    std::fs::write(&changed, few).unwrap();
    let report = run(&["audit", "--names", &changed, "--depth", "identity", "--json"]);
    let rows = json_of(&report.stdout)["rows"].clone();
    let node = rows[3]["input"].as_str().expect("a text");
    assert!(node.starts_with("0x") && node.len() == 66, "{rows:#}");
    assert_eq!((&rows[3]["reasons"][0]["code"], &rows[2]["state"]), (&json!("name-invalid"), &json!("trusted")));

    // Names are listed unchanged: neither truncated nor escaped.
    let family = "👨‍👩‍👦.eth";
    let long = format!("{}.eth", ["a".repeat(63), "b".repeat(63), "c".repeat(63), "d".repeat(34)].join("."));
    let names = [family, &long].map(|name| {
        format!(
            "[[name]]\nname = \"{name}\"\nholder = \"publisher\"\n[name.records]\n\"cl.owner\" = \"publisher.eth\"\n"
        )
    });
    let spec = SandboxSpec::parse(&names.concat()).unwrap_or_else(|error| panic!("{error}"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let other = runtime.block_on(CustomSandbox::start(&spec)).unwrap();
    let (config, made) = (world.path("other.toml"), world.path("made.txt"));
    other.config().save(Path::new(&config)).unwrap();
    std::fs::write(&known, format!("{family}\n{long}\n")).unwrap();
    let asked = |arguments: &[&str]| program().args(arguments).args(["--config", &config]).output().unwrap();
    let listed = asked(&["audit", "list", "--changed", "0..", "--known", &known, "--out", &made]);
    assert_eq!(code(&listed), Some(0), "{}", String::from_utf8_lossy(&listed.stderr));
    let report = json_of(&asked(&["audit", "--names", &made, "--depth", "identity", "--json"]).stdout);
    let mut read: Vec<_> = report["rows"].as_array().unwrap().iter().map(|row| row["normalized"].clone()).collect();
    read.sort_by_key(|name| std::cmp::Reverse(name.as_str().map(str::len)));
    assert_eq!(read, [json!(long), json!(family)], "{report:#}");

    let below = list(&["--below", "eth", "--below", "summarizeagent.eth", "--json"]);
    let below = json_of(&below.stdout);
    let node = |text: &str| json!(clresolve_core::name::EnsName::parse(text).unwrap().namehash());
    let has = |text: &str| below.as_array().expect("a list").iter().any(|listed| listed["node"] == node(text));
    assert!(has("summarizeagent.eth") && has("publisher.eth") && !has("no-agent.eth"));

    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = format!("http://{}", silent.local_addr().unwrap());
    drop(silent);
    let dead = list(&["--changed", "0..", "--rpc", &gone]);
    assert_eq!((code(&dead), text_of(&dead)), (Some(3), ""));
    assert!(String::from_utf8_lossy(&dead.stderr).contains("has not sent all its logs"));
}

#[test]
fn what_warnings_quote_of_an_endpoint_acts_on_no_terminal() {
    let refusal = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"\u001b[2J\u202e"}}"#;
    let answer = move || async move { ([("content-type", "application/json")], refusal) };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let endpoint = runtime.block_on(listening(axum::Router::new().fallback(answer)));
    let output = Served::start().clresolve(&["audit", "list", "--changed", "0..", "--rpc", endpoint.as_str()]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains(" has not sent all its logs: the endpoint refused: \\u{1b}[2J\\u{202e}\n"), "{said:?}");
    assert!(!said.contains(['\u{1b}', '\u{202e}']), "{said:?}");
}

/// Names from the chain, a list and a registry are one audit, and each name is judged once.
#[test]
fn names_of_the_chain_and_of_a_registry_are_one_audit_through_a_pipe() {
    let publisher = "[[name]]\nname = \"publisher.eth\"\nholder = \"publisher\"\naddr = \"publisher\"\n";
    let agents = ["plain.eth", "summarizeagent.eth", "unspelt.eth"].map(|name| {
        format!("[[agent]]\nname = \"{name}\"\nabout = \"Makes long texts short.\"\nstate = \"trusted\"\n")
    });
    let spec = SandboxSpec::parse(&(publisher.to_owned() + &agents.concat())).unwrap_or_else(|error| panic!("{error}"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let world = runtime.block_on(CustomSandbox::start(&spec)).unwrap();
    let mut config = world.config();
    config.timeout = Duration::from_secs(120);
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    config.save(Path::new(&path("config.toml"))).unwrap();
    std::fs::write(path("known.txt"), "absent.eth\nsummarizeagent.eth\nPlain.eth\npublisher.eth\n").unwrap();
    let clresolve = |arguments: &[&str]| {
        let mut command = program();
        command.args(arguments).args(["--config", &path("config.toml")]);
        command
    };
    let arguments = ["audit", "list", "--changed", "0..", "--below", "eth", "--known", &path("known.txt")];
    let listed = clresolve(&arguments).output().expect("the binary runs");
    assert_eq!(code(&listed), Some(0), "{}", String::from_utf8_lossy(&listed.stderr));

    let manifest = "https://commandlayer.sandbox.example/agent-cards/meta/manifest.json";
    let mut audit = clresolve(&["audit", "--names", "-", "--registry", manifest, "--depth", "identity", "--json"]);
    let piped = audit.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = piped.spawn().expect("the binary runs");
    running.stdin.take().expect("a pipe").write_all(&listed.stdout).unwrap();
    let output = running.wait_with_output().unwrap();
    assert_eq!(code(&output), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let report = json_of(&output.stdout);
    assert!(fits_schema(&report), "{report:#}");
    let row = |row: &Value| {
        let of_registry = &row["registry"];
        json!([row["line"], row["input"], row["state"], of_registry["entry"], of_registry["in_list"]])
    };
    let rows: Vec<Value> = report["rows"].as_array().expect("rows").iter().map(row).collect();
    let node = clresolve_core::name::EnsName::parse("unspelt.eth").unwrap().namehash().to_string();
    assert_eq!(
        rows,
        [
            json!([1, "plain.eth", "trusted", null, true]),
            json!([2, "publisher.eth", "untrusted", null, true]),
            json!([3, "summarizeagent.eth", "trusted", 1, true]),
            json!([4, node, "untrusted", null, true]),
            json!([6, "checksum-mismatch.eth", "untrusted", 2, false]),
            json!([7, "no-records.eth", "untrusted", 3, false]),
            json!([8, "unregistered.eth", "untrusted", 4, false]),
        ]
    );
    assert_eq!(report["counts"]["listed_again"], 1, "the registry lists summarizeagent.eth too");
}

#[test]
fn the_published_schemas_are_held_against_the_manifests() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clresolve"));
    command.env_clear().args(["audit", "schemas", "--sandbox", "--json", "--timeout", "2m"]);
    let output = command.output().expect("the binary runs");
    assert_eq!(code(&output), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let schemas = json_of(&output.stdout);
    let of = |verb: &str, side: &str| {
        let mut schemas = schemas.as_array().expect("a list").iter();
        let schema = schemas.find(|schema| schema["verb"] == verb && schema["side"] == side).expect("it is published");
        let codes = schema["reasons"].as_array().expect("a list").iter();
        let codes: Vec<_> = codes.map(|reason| reason["code"].as_str().expect("a code").to_owned()).collect();
        (schema["state"].as_str().expect("a state").to_owned(), codes.join(" "))
    };
    for (verb, state, codes) in [
        ("summarize", "trusted", "checksum-line-endings"),
        ("authorize", "trusted", ""),
        ("ship", "untrusted", "published-version-mutated"),
        ("clean", "untrusted", "schema-not-strict checksum-line-endings"),
        ("describe", "untrusted", "schema-id-mismatch checksum-line-endings"),
        ("explain", "untrusted", "schema-mirror-mismatch checksum-line-endings"),
        ("fetch", "indeterminate", "schema-unavailable schema-mirror-unreachable checksum-line-endings"),
    ] {
        assert_eq!(of(verb, "request"), (state.to_owned(), codes.to_owned()), "{verb}");
        assert_eq!(of(verb, "receipt").0, "trusted", "{verb}");
    }
}

/// A network with two agents. The second one publishes this record and is not trusted.
fn two_agents_but(key: &str, value: &str) -> SandboxSpec {
    let publisher = "[[name]]\nname = \"publisher.eth\"\nholder = \"publisher\"\naddr = \"publisher\"\n";
    let agent =
        |name: &str, rest: &str| format!("[[agent]]\nname = \"{name}\"\nabout = \"Makes long texts short.\"\n{rest}");
    let wrong =
        format!("state = \"untrusted\"\ncodes = [\"checksum-mismatch\"]\nrecords = {{ \"{key}\" = \"{value}\" }}\n");
    let deep = agent("deep.eth", "layout = \"directory-of-blocks\"\nstate = \"trusted\"\n");
    let text = format!("{publisher}{deep}{}", agent("plain.eth", &wrong));
    SandboxSpec::parse(&text).unwrap_or_else(|error| panic!("{error}"))
}

/// An agent with payment records, and the same name later without a resolver.
fn agent_and_its_end() -> [SandboxSpec; 2] {
    let publisher = "[[name]]\nname = \"publisher.eth\"\nholder = \"publisher\"\naddr = \"publisher\"\n";
    let agent = "[[agent]]\nname = \"plain.eth\"\nabout = \"Makes long texts short.\"\n\
                 addresses = { 31337 = \"0x70997970c51812dc3a010c7d01b50e0d17dc79c8\" }\n";
    let ended = "state = \"untrusted\"\ncodes = [\"resolver-missing\"]\nchain = { resolver = \"none\" }\n";
    let spec =
        |rest: &str| SandboxSpec::parse(&format!("{publisher}{agent}{rest}")).unwrap_or_else(|error| panic!("{error}"));
    [spec("state = \"trusted\"\n"), spec(ended)]
}

/// A record that is proven to be deleted differs from one that could not be read.
#[test]
fn records_that_are_proven_to_be_gone_are_a_change_and_nothing_is_carried_over_them() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("names.txt"), "plain.eth\n").unwrap();
    let audited = |spec: &SandboxSpec, options: &[&str]| {
        let world = runtime.block_on(CustomSandbox::start(spec)).unwrap();
        let mut config = world.config();
        config.timeout = Duration::from_secs(120);
        config.save(Path::new(&path("config.toml"))).unwrap();
        let mut command = program();
        command.args(["audit", "--json", "--depth", "identity", "--config", &path("config.toml")]);
        let output = command.args(["--names", &path("names.txt")]).args(options).output().unwrap();
        assert!(!output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    let [first, second] = agent_and_its_end();
    std::fs::write(path("before.json"), audited(&first, &[])).unwrap();
    let gone = audited(&second, &["--since", &path("before.json")]);
    std::fs::write(path("gone.json"), &gone).unwrap();
    let report = json_of(&gone);
    let row = &report["rows"][0];
    assert!(fits_schema(&report), "{report:#}");
    assert_eq!((&row["state"], &row["on_chain"]["absent"]), (&json!("untrusted"), &json!(["records"])), "{row:#}");
    assert_eq!(row["carried"]["members"], json!(["edition"]), "what the next card is held against: {row:#}");
    assert_eq!(
        (&row["on_chain"]["addresses"], &row["records"], &row["proven"]),
        (&json!({}), &Value::Null, &Value::Null)
    );
    let changes = |report: &Value| -> Vec<(String, bool, bool)> {
        let changes = report["since"]["changes"].as_array().expect("changes").iter();
        let is_there = |value: &Value| !value.is_null();
        changes
            .map(|change| {
                let kind = change["kind"].as_str().expect("a word").to_owned();
                (kind, is_there(&change["before"]), is_there(&change["after"]))
            })
            .collect()
    };
    for kind in ["records", "resolver", "payee"] {
        assert!(changes(&report).contains(&(kind.to_owned(), true, false)), "{kind} → nothing: {report:#}");
    }
    let again = json_of(&audited(&first, &["--since", &path("gone.json")]));
    for kind in ["records", "resolver", "payee"] {
        assert!(changes(&again).contains(&(kind.to_owned(), false, true)), "nothing → {kind}: {again:#}");
    }
}

/// A network with two agents.
fn two_agents() -> SandboxSpec {
    let agent = |name: &str, layout: &str| {
        format!("[[agent]]\nname = \"{name}\"\nabout = \"Makes long texts short.\"\n{layout}state = \"trusted\"\n")
    };
    let publisher = "[[name]]\nname = \"publisher.eth\"\nholder = \"publisher\"\naddr = \"publisher\"\n";
    let agents = agent("deep.eth", "layout = \"directory-of-blocks\"\n") + &agent("plain.eth", "");
    SandboxSpec::parse(&format!("{publisher}{agents}")).unwrap_or_else(|error| panic!("{error}"))
}
