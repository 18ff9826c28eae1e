//! Runs the binary as a user does, and checks the format of its output.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Output, Stdio};

use clresolve_core::reason::ReasonCode;
use clresolve_resolver::sandbox::Sandbox;
use serde_json::Value;

use crate::support::corpus::corpus;
use crate::support::program::{code, err, fed, out, program, run};
use crate::support::serve::serve;

#[cfg(target_os = "linux")]
#[path = "command_line/terminal.rs"]
mod terminal;

/// CL-68. The events name the verdict that is printed, and no line of them acts on a terminal.
#[test]
fn incidents_are_events_that_a_machine_reads() {
    for (name, expected) in [
        ("cid-mismatch.eth", &[("cid-mismatch", "content-mismatch")][..]),
        ("host-changed.eth", &[("checksum-mismatch", "content-mismatch"), ("cid-mismatch", "content-mismatch")]),
        ("unsafe-characters.eth", &[("txt-unsafe-characters", "malicious")]),
        ("missing-owner.eth", &[]),
        ("summarizeagent.eth", &[]),
    ] {
        let asked = ["--sandbox", "--timeout", "2m", "verify", name, "-o", "json"];
        let output =
            program().args(asked).env("RUST_LOG", "clresolve::incident=info").output().expect("the binary runs");
        let verdict: Value = serde_json::from_str(out(&output)).expect("a verdict");
        let events: Vec<Value> = err(&output)
            .lines()
            .filter_map(|line| line.split_once("clresolve::incident: "))
            .map(|(_, json)| serde_json::from_str(json).expect("the message is JSON"))
            .collect();
        let said: Vec<_> =
            events.iter().map(|event| (event["code"].as_str().unwrap(), event["kind"].as_str().unwrap())).collect();
        assert_eq!(said, expected, "{name}");
        for event in &events {
            assert_eq!((&event["name"], &event["verdict"]), (&name.into(), &verdict["id"]));
            let anchor = &verdict["anchor"];
            let (number, hash) = (&anchor["block"]["number"], &anchor["block"]["hash"]);
            assert!(number.is_u64(), "{anchor}");
            assert_eq!((&event["block"], &event["block_hash"], &event["world"]), (number, hash, &anchor["world"]));
            assert_eq!(event["at"], verdict["freshness"]["checked_at"]);
            let of_code = |reason: &&Value| reason["code"] == event["code"] && reason["where"] == event["where"];
            let reason = verdict["reasons"].as_array().expect("a list").iter().find(of_code).expect("its reason");
            assert_eq!((&reason["expected"], &reason["observed"]), (&event["expected"], &event["observed"]), "{name}");
        }
        assert!(err(&output).chars().all(|c| c == '\n' || !clresolve_core::text::is_unsafe_character(c)), "{name}");
    }
}

/// What people mistype, and the answer to it. Answers of the parser are tested beside it.
#[test]
fn mistakes_are_answered_with_what_was_meant() {
    let folder = tempfile::tempdir().expect("a folder");
    let card = folder.path().join("cards/one");
    std::fs::create_dir_all(&card).expect("folders");
    std::fs::write(card.join("card.json"), "{\"a\": 1,").expect("a file");
    let cards = folder.path().join("cards").display().to_string();
    let missing = folder.path().join("none.toml").display().to_string();
    let asked = |arguments: &[&str], variable: Option<(&str, &str)>| {
        let output = program().args(arguments).envs(variable).output().expect("the binary runs");
        (code(&output), format!("{}{}", out(&output), err(&output)))
    };
    for (arguments, variable, expected, part) in [
        (&["version"][..], None, 0, "\ntarget    x86_64-linux\n"),
        (&[], None, 2, "clresolve help "),
        (&["lint", &cards], None, 1, "cards/one/card.json:1:8"),
        (&["serve", "--check-config"], Some(("CLRESOLVE_CONFIG", &*missing)), 2, "CLRESOLVE_CONFIG: "),
        (&["config", "show"], Some(("CLRESOLVE_TIMOUT", "3s")), 0, "did you mean CLRESOLVE_TIMEOUT?"),
    ] {
        let (code, said) = asked(arguments, variable);
        assert!(code == expected && said.contains(part), "{arguments:?}: {code}\n{said}");
    }
    assert_eq!(asked(&[], None).1.lines().count(), 8);
    let broken = asked(&["lint", &cards], None).1;
    assert!(!broken.contains("system"), "{broken}");
}

#[test]
fn a_port_that_is_taken_names_who_has_it() {
    let other = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let (mut daemon, address) = serve(&["--sandbox", "--listen", "127.0.0.1:0"], []).unheard();
    for (address, holder) in [
        (other.local_addr().expect("an address").to_string(), "another program listens there"),
        (address.to_string(), "another clresolve, which may be draining, listens there"),
    ] {
        let output = run(["serve", "--sandbox", "--listen", &address]);
        assert!(code(&output) == 2 && err(&output).contains(holder), "{}", err(&output));
    }
    daemon.kill().and_then(|()| daemon.wait()).expect("it runs");
}

fn json_file(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("the corpus is readable")).expect("the corpus is JSON")
}

#[test]
fn help_teaches() {
    let help = run(["--help"]);
    assert_eq!(code(&help), 0);
    for part in ["Usage: clresolve [OPTIONS] NAME...", "Exit codes:", "--sandbox", "clresolve help world", "trace"] {
        assert!(out(&help).contains(part), "{part} is missing from\n{}", out(&help));
    }
    for part in ["--expect-owner", "--sign-key", "Exit codes:\n", "Examples:"] {
        assert!(out(&run(["verify", "--help"])).contains(part), "{part}");
    }
    assert!(!out(&help).contains("--universal-resolver"), "{}", out(&help));
    for command in [
        "verify",
        "trace",
        "records",
        "card",
        "cards",
        "signature",
        "help",
        "explain",
        "name",
        "cat",
        "audit",
        "gate",
        "memory",
        "serve",
        "sandbox",
        "completions",
    ] {
        let help = run([command, "--help"]);
        assert_eq!(code(&help), 0, "{command}");
        assert!(out(&help).contains("Usage: clresolve "), "{command}");
        assert_eq!(err(&help), "");
    }
}

/// The unit tests beside the groups check that each command is in one of them.
#[test]
fn help_lists_commands_in_four_groups_within_60_lines() {
    let output = program().arg("--help").env("COLUMNS", "100").output().expect("the binary runs");
    let help = out(&output);
    assert!(help.lines().count() <= 60, "{} lines\n{help}", help.lines().count());
    let wide: Vec<&str> = help.lines().filter(|line| line.chars().count() > 100).collect();
    assert!(wide.is_empty(), "{wide:#?}");
    let parts: Vec<&str> = help.split("\n\n").collect();
    let headings: Vec<&str> = parts.iter().filter_map(|part| part.lines().next()).collect();
    assert_eq!(headings[2..7], ["Ask:", "Pay:", "Publish:", "Operate:", "Options:"], "{help}");
    for line in parts[2..6].iter().flat_map(|part| part.lines().skip(1)) {
        let described = line.strip_prefix("  ").and_then(|line| line.split_once(' '));
        let (command, about) = described.unwrap_or_else(|| panic!("{line:?}"));
        assert!(!command.is_empty() && about.trim().len() > 10, "{line:?}");
        assert_eq!(code(&run(["help", command])), 0, "{command}");
    }
    for option in ["-o, --output <FORM>", "--json", "--color <WHEN>", "-h, --help"] {
        assert!(parts[6].lines().any(|line| line.trim_start().starts_with(option)), "{option}\n{help}");
    }
    assert_eq!(out(&program().arg("-h").env("COLUMNS", "100").output().expect("the binary runs")), help);
}

#[test]
fn help_names_the_default_form() {
    for (command, default) in
        [(&["gate", "-h"][..], "text"), (&["cards", "convert", "-h"], "card"), (&["cards", "generate", "-h"], "json")]
    {
        let help = run(command);
        assert!(out(&help).contains(&format!("Form of the results [default: {default}]")), "{}", out(&help));
    }
}

#[test]
fn help_is_a_command_too() {
    assert_eq!(out(&run(["help"])), out(&run(["--help"])));
    assert_eq!(out(&run(["help", "trace"])), out(&run(["trace", "--help"])));
    assert_eq!(out(&run(["help", "bundle", "verify"])), out(&run(["bundle", "verify", "--help"])));
    let world = run(["help", "world"]);
    assert_eq!((code(&world), err(&world)), (0, ""));
    for part in ["--universal-resolver <ADDR>", "--no-config", "--sandbox", "CLRESOLVE_CONFIG", "Examples:"] {
        assert!(out(&world).contains(part), "{part} is missing from\n{}", out(&world));
    }
    let unknown = run(["help", "trcae"]);
    let said = "clresolve: there is no help on `trcae`; did you mean `trace`?\n";
    assert_eq!((code(&unknown), out(&unknown), err(&unknown)), (2, "", said));
}

#[test]
fn a_bare_word_asks_nobody() {
    for (word, part) in [("foo", "`foo` is not an ENS name"), ("helpp", "did you mean the command `help`?")] {
        // Where an endpoint is asked the answer is a verdict, and the code 3.
        let output = run([word, "--rpc", "http://127.0.0.1:1"]);
        assert_eq!((code(&output), out(&output)), (2, ""), "{}", err(&output));
        assert!(err(&output).contains(part), "{}", err(&output));
    }
    let asked = run(["verify", "foo", "--rpc", "http://127.0.0.1:1", "-o", "short"]);
    assert_eq!((code(&asked), out(&asked)), (3, "indeterminate  foo  rpc-unreachable\n"));
}

#[test]
fn version_is_one_line() {
    let version = run(["--version"]);
    assert_eq!((code(&version), out(&version)), (0, concat!("clresolve ", env!("CARGO_PKG_VERSION"), "\n")));
}

#[test]
fn a_whole_version_names_commit_profiles_and_manifests() {
    let version = run(["--version", "-v"]);
    assert_eq!(code(&version), 0);
    let text = out(&version);
    assert!(text.starts_with(concat!("clresolve ", env!("CARGO_PKG_VERSION"), "\ntarget    ")), "{text}");
    assert!(text.lines().nth(2).is_some_and(|line| line.starts_with("commit    ")), "{text}");
    for profile in clresolve_verdict::profile::ConformanceProfiles::builtin().iter() {
        let line = format!("profile   {:<26} {}\n", profile.id(), profile.digest());
        assert!(text.contains(&line), "{line} is missing from {text}");
        for manifest in profile.manifests() {
            let line = format!("manifest  {:<26} {}\n", manifest.id(), manifest.digest());
            assert_eq!(text.matches(&line).count(), 1, "{line}: {text}");
        }
    }
    assert_eq!(out(&run(["-vV"])), text);
    assert_eq!(out(&run(["trace", "--help", "-v"])), out(&run(["trace", "--help"])));
}

#[test]
fn wrong_usage_is_2_and_leaves_stdout_alone() {
    let cases: &[&[&str]] = &[
        &[],
        &["verify"],
        &["--sandbox"],
        &["--no-such-flag", "a.eth"],
        &["a.eth", "-o", "yaml"],
        &["a.eth", "--proof", "quorum", "--rpc", "http://127.0.0.1:1"],
        &["a.eth", "--proof", "single-rpc", "--quorum", "2"],
        &["a.eth", "--proof", "zero-knowledge"],
        &["a.eth", "--quorum", "1"],
        &["a.eth", "--quorum", "2", "--rpc", "https://a.rpc.example", "--rpc", "https://b.rpc.example"],
        &["a.eth", "--timeout", "0s"],
        &["a.eth", "--timeout", "soon"],
        &["a.eth", "--block", "newest"],
        &["a.eth", "--depth", "deep"],
        &["a.eth", "--universal-resolver", "0x12"],
        &["a.eth", "--connect-to", "a:1"],
        &["a.eth", "--expect-sha256", "abc"],
        &["a.eth", "--expect-owner", "a b"],
        &["--sandbox", "--rpc", "http://127.0.0.1:1", "a.eth"],
        &["--sandbox", "--gateway", "http://127.0.0.1:1", "a.eth"],
        &["--sandbox", "--config", "c.toml", "a.eth"],
        &["a.eth", "--config", "/no/such/file.toml"],
        &["a.eth", "--chain-id", "5"],
        &["a.eth", "--out", "/no/such/folder/file"],
        &["explain", "no-such-code"],
        &["explain", "CL-999"],
        &["a.eth", "-q", "-v"],
        &["a.eth", "--color", "sometimes"],
        &["name", "a.eth", "--json", "-o", "text"],
        &["name", "a.eth", "--rpc", "http://127.0.0.1:1"],
        &["cat"],
        &["cat", "bafkreibm6jg3ux5qumhcn2b3flc3tyu6dmlb4xa7u5bf44yegnrjhc4yeq", "--car", "/no/such/file.car"],
        &["completions", "cmd"],
    ];
    for arguments in cases {
        let output = run(*arguments);
        assert_eq!(code(&output), 2, "{arguments:?}: {}", err(&output));
        assert_eq!(out(&output), "", "{arguments:?}");
        assert!(!err(&output).is_empty() && !err(&output).contains("panicked"), "{arguments:?}");
    }
}

#[test]
fn a_wrong_configuration_names_key_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.toml");
    std::fs::write(&file, "timeout = \"1s\"\nprofil = \"x\"\n").unwrap();
    let output = run([OsStr::new("a.eth"), OsStr::new("--config"), file.as_os_str()]);
    assert_eq!(code(&output), 2);
    assert!(err(&output).contains("c.toml, line 2, key `profil`: unknown field"), "{}", err(&output));
    let output = program().arg("a.eth").env("CLRESOLVE_CONFIG", &file).output().unwrap();
    assert_eq!(code(&output), 2);
    let output = program().arg("a.eth").env("CLRESOLVE_TIMEOUT", "soon").output().unwrap();
    assert!(err(&output).contains("CLRESOLVE_TIMEOUT: expected a duration"), "{}", err(&output));
}

#[test]
fn explain_lists_every_code_and_explains_each() {
    let list = run(["explain"]);
    assert_eq!(code(&list), 0);
    assert_eq!(out(&list).lines().count(), ReasonCode::ALL.len());
    let codes = run(["explain", "-o", "json"]);
    let codes: Value = serde_json::from_slice(&codes.stdout).unwrap();
    let slugs: Vec<&str> = codes.as_array().unwrap().iter().filter_map(|c| c["code"].as_str()).collect();
    assert_eq!(slugs, ReasonCode::ALL.iter().map(|c| c.slug()).collect::<Vec<_>>());
    let one = run(["explain", "checksum-mismatch"]);
    assert_eq!(code(&one), 0);
    for part in ["checksum-mismatch:", "fail: the verdict is untrusted", "CL-50", "the publisher of the card"] {
        assert!(out(&one).contains(part), "{}", out(&one));
    }
    let refusal = run(["explain", "deadline-passed"]);
    assert_eq!(refusal.status.code(), Some(0));
    let said = String::from_utf8_lossy(&refusal.stdout);
    assert!(
        said.starts_with("deadline-passed: The gate's deadline passed")
            && said.contains("Ask again: the resolution continues"),
        "{said}"
    );
    let refusal = run(["explain", "overloaded", "-o", "json"]);
    let refusal: Value = serde_json::from_slice(&refusal.stdout).unwrap();
    assert_eq!(refusal["type"], "urn:clresolve:reason:overloaded");
    let near = run(["explain", "checksum-missmatch"]);
    assert!(err(&near).contains("did you mean checksum-mismatch?"), "{}", err(&near));
    let akin = run(["explain", "mismatch-of-checksum"]);
    assert!(err(&akin).contains("checksum-m"), "{}", err(&akin));
}

/// The guards in all languages have these codes, and `clients/README.md` explains each with the same words.
#[test]
fn explain_knows_the_codes_of_guards() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients");
    let source = |path: &str| std::fs::read_to_string(root.join(path)).expect("a source");
    let readme = source("README.md");
    let section = readme.split("## Refusal codes\n").nth(1).expect("a section");
    let table = section.split("\n\n").find(|part| part.trim_start().starts_with('|')).expect("a table").trim_start();
    let rows: Vec<Vec<&str>> =
        table.lines().skip(2).map(|row| row.trim_matches(['|', ' ']).split(" | ").collect()).collect();
    let mut codes: Vec<&str> = Vec::new();
    for row in &rows {
        let [slug, meaning, next] = row[..] else { panic!("{row:?}") };
        let slug = slug.trim_matches('`');
        codes.push(slug);
        let explained: Value = serde_json::from_slice(&run(["explain", slug, "--json"]).stdout).expect("JSON");
        for (member, cell) in [("title", meaning), ("next", next)] {
            let sentence = explained[member].as_str().expect("a sentence").trim_end_matches('.');
            assert!(sentence.eq_ignore_ascii_case(cell), "{slug}: {sentence:?}, {cell:?}");
        }
    }
    let text = run(["explain", "two-payments"]);
    assert!(out(&text).contains("Find the part of your program that adds the second.\n"), "{}", out(&text));
    assert!(err(&run(["explain", "two-payment"])).contains("did you mean two-payments?"));

    // The first quoted word of each line of a list.
    let quoted = |path: &str, from: &str, to: &str| -> Vec<String> {
        let text = source(path);
        let list = text.split_once(from).and_then(|(_, rest)| rest.split_once(to)).expect("a list").0;
        list.lines().filter_map(|line| Some(line.split('"').nth(1)?.to_owned())).collect()
    };
    assert_eq!(quoted("python/clresolve_guard/_error.py", "Literal[", "]"), codes);
    assert_eq!(quoted("go/error.go", "const (", "\n)"), codes);
    let keys = |path: &str, from: &str, to: &str| -> Vec<String> {
        let text = source(path);
        let list = text.split_once(from).and_then(|(_, rest)| rest.split_once(to)).expect("a list").0;
        list.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().trim_matches('"').to_owned())).collect()
    };
    assert_eq!(keys("typescript/error.js", "MESSAGES = {", "};"), codes);
    let text = source("rust/src/refusal.rs");
    let variants = text.split_once("pub enum Why {").and_then(|(_, rest)| rest.split_once('}')).expect("an enum").0;
    let variants = variants.lines().filter_map(|line| line.trim().strip_suffix(','));
    let variants: Vec<&str> = variants.filter(|line| !line.starts_with("///")).collect();
    let names = codes.iter().map(|code| code.split('-').map(capitalized).collect::<String>());
    assert_eq!(variants, names.collect::<Vec<_>>());
}

fn capitalized(word: &str) -> String {
    word[..1].to_uppercase() + &word[1..]
}

#[test]
fn explain_knows_requirements() {
    let explained = run(["explain", "cl-45", "--json"]);
    assert_eq!(code(&explained), 0, "{}", err(&explained));
    let explained: Value = serde_json::from_slice(&explained.stdout).unwrap();
    let slugs: Vec<&str> = explained.as_array().unwrap().iter().filter_map(|c| c["code"].as_str()).collect();
    let registry = ReasonCode::ALL.iter().filter(|code| code.entry().requirement == "CL-45").map(|code| code.slug());
    assert_eq!(slugs, registry.collect::<Vec<_>>());
    assert!(slugs.len() > 3, "{slugs:?}");
    let unknown = run(["explain", "CL-999"]);
    assert_eq!(
        err(&unknown),
        "clresolve: no reason code belongs to the requirement CL-999; `clresolve explain` lists the codes with theirs\n"
    );
    assert!(err(&run(["explain", "cl45"])).contains("did you mean the requirement CL-45?"));
}

#[test]
fn completions_are_made_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(["completions", shell]);
        assert_eq!(code(&script), 0);
        assert!(out(&script).contains("clresolve"), "{shell}");
        if ["bash", "zsh", "fish"].contains(&shell) {
            for word in ["agent-cards/1.0.0+released", "state-proof", "checksum-mismatch", "deadline-passed"] {
                assert!(out(&script).contains(word), "{shell} does not offer {word}");
            }
        }
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = run([OsStr::new("man"), folder.path().as_os_str()]);
    assert_eq!((code(&pages), out(&pages), err(&pages)), (0, "", ""));
    let page = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(page("clresolve.1").contains("universal\\-resolver"), "{}", page("clresolve.1"));
    assert!(!page("clresolve-trace.1").contains("universal\\-resolver"));
    for name in ["clresolve-cards-convert.1", "clresolve-signature-key-new.1", "clresolve-bundle-verify.1"] {
        assert!(page(name).contains(".SH SYNOPSIS"), "{name}");
    }
    assert_eq!(out(&run(["man"])), page("clresolve.1"));
    for (name, sections) in [
        ("clresolve.1", &["EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES", "SEE ALSO", "VERSION"][..]),
        ("clresolve-serve.1", &["ROUTES", "EXAMPLES", "SEE ALSO"]),
        ("clresolve-gate.1", &["EXIT STATUS", "EXAMPLES", "SEE ALSO"]),
        ("clresolve.toml.5", &["NAME", "DESCRIPTION", "KEYS", "FILES", "SEE ALSO"]),
    ] {
        let text = page(name);
        let headings = text.lines().filter_map(|line| line.strip_prefix(".SH "));
        let headings: Vec<&str> = headings.map(|heading| heading.trim_matches('"')).collect();
        let known: Vec<&str> = headings.iter().copied().filter(|heading| sections.contains(heading)).collect();
        assert_eq!(known, sections, "{name}: {headings:?}");
    }
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        assert_eq!(text.matches("\n.TH ").count(), 1, "{text}");
        assert_eq!(text.matches(".ds Aq").count(), 2, "{text}");
        assert!(!text.contains(".SH EXTRA"), "{text}");
    }
    let missing = run(["man", "/nonexistent"]);
    assert_eq!((code(&missing), err(&missing)), (2, "clresolve: /nonexistent: expected a folder that exists\n"));
}

#[test]
fn name_shows_normal_form_node_and_wire_form() {
    let good = run(["name", "Vitalik.eth", "-o", "json"]);
    let row: Value = serde_json::from_slice(&good.stdout).unwrap();
    assert_eq!(code(&good), 0);
    assert_eq!(row["normalized"], "vitalik.eth");
    assert_eq!(row["node"], "0xee6c4522aab0003e8d14cd40a6af439055fd2577951148c14b6cea9a53475835");
    assert_eq!(row["dns"], "0x07766974616c696b0365746800");
    let mixed = fed(program().arg("name"), b"a.eth\n\xe2\x80\xae.eth\nb.eth\n");
    assert_eq!(code(&mixed), 1);
    assert!(out(&mixed).contains("\\u{202e}.eth  name-invalid: "), "{}", out(&mixed));
    assert!(out(&mixed).contains("\nb.eth\n"), "{}", out(&mixed));
    let several = run(["name", "a.eth", "b.eth", "-o", "json"]);
    assert_eq!(serde_json::from_slice::<Value>(&several.stdout).unwrap().as_array().map(Vec::len), Some(2));
}

#[test]
fn name_agrees_with_every_official_vector() {
    let Some(corpus) = corpus("") else { return };
    let vectors = json_file(&corpus.join("ens/ensip15-tests.json"));
    let vectors: Vec<&Value> = vectors.as_array().unwrap().iter().skip(1).collect();
    let input: String = vectors.iter().map(|v| format!("{}\n", v["name"])).collect();
    let output = fed(program().args(["name", "--json-input", "-o", "jsonl"]), input);
    assert_eq!(code(&output), 1);
    let rows: Vec<Value> = out(&output).lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(rows.len(), vectors.len());
    for (vector, row) in vectors.iter().zip(&rows) {
        assert_eq!(row["input"], vector["name"]);
        let expected = match (&vector["error"], &vector["norm"]) {
            (Value::Bool(true), _) => &Value::Null,
            (_, Value::Null) => &vector["name"],
            (_, norm) => norm,
        };
        assert_eq!(row["normalized"], *expected, "{vector}");
        assert_eq!(row["error"].is_null(), !expected.is_null(), "{vector}");
    }
}

#[test]
fn out_writes_a_file_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("names.jsonl");
    let arguments = [OsStr::new("name"), "a.eth".as_ref(), "-ojsonl".as_ref(), "--out".as_ref(), file.as_os_str()];
    let output = run(arguments);
    assert_eq!((code(&output), out(&output)), (0, ""));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), out(&run(["name", "a.eth", "-ojsonl"])));
}

#[test]
fn colour_reaches_a_pipe_only_when_forced() {
    let coloured = |arguments: &[&str], set: &[(&str, &str)]| {
        let output = program().arg("explain").args(arguments).envs(set.iter().copied()).output().unwrap();
        assert_eq!(code(&output), 0);
        out(&output).contains('\u{1b}')
    };
    assert!(!coloured(&[], &[]));
    assert!(coloured(&["--color", "always"], &[]));
    assert!(coloured(&[], &[("FORCE_COLOR", "1")]));
    assert!(coloured(&[], &[("CLICOLOR_FORCE", "1")]));
    assert!(!coloured(&[], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    assert!(!coloured(&["--color=never"], &[("FORCE_COLOR", "1")]));
}

#[test]
fn json_has_two_spellings() {
    assert_eq!(out(&run(["name", "a.eth", "--json"])), out(&run(["name", "a.eth", "-o", "json"])));
    assert_eq!(out(&run(["explain", "single-rpc", "--json"])), out(&run(["explain", "single-rpc", "-ojson"])));
}

#[test]
fn names_are_read_from_standard_input() {
    let asked = |arguments: &[&str], input: &str| fed(program().args(arguments), input);
    let nobody = ["--rpc", "http://127.0.0.1:1", "-o", "short"];
    let listed = asked(&[&["b.eth", "-"], &nobody[..]].concat(), "# list\na.eth  # one\n\nc.eth\n");
    let expected = ["b", "a", "c"].map(|name| format!("indeterminate  {name}.eth  rpc-unreachable\n")).concat();
    assert_eq!((code(&listed), out(&listed)), (3, expected.as_str()), "{}", err(&listed));
    let empty = asked(&[&["verify", "-"], &nobody[..]].concat(), "# nothing\n");
    assert_eq!((code(&empty), err(&empty)), (2, "clresolve: standard input contains no name\n"));
    assert_eq!(out(&asked(&["name", "-"], "a.eth\n")), out(&run(["name", "a.eth"])));
}

#[test]
fn quiet_leaves_errors_alone() {
    let folder = tempfile::tempdir().unwrap();
    let key = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    assert!(err(&run(["signature", "key", "new", &key("a.pem")])).contains("wrote a private key"));
    assert_eq!(err(&run(["signature", "key", "new", &key("b.pem"), "--quiet"])), "");
    assert!(err(&run(["explain", "no-such-code", "-q"])).contains("no reason code is called"));
}

#[test]
fn a_missing_scheme_a_missing_folder_and_a_folder_are_named() {
    let scheme = run(["a.eth", "--rpc", "127.0.0.1:8545"]);
    assert_eq!(code(&scheme), 2);
    assert!(err(&scheme).contains("the scheme is missing; did you mean http://127.0.0.1:8545?"), "{}", err(&scheme));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let missing = run(["name", "a.eth", "--out", &format!("{path}/none/file")]);
    let said = format!("clresolve: --out {path}/none/file: the folder {path}/none does not exist\n");
    assert_eq!((code(&missing), err(&missing)), (2, said.as_str()));
    let directory = run(["name", "a.eth", "--out", path]);
    let said = format!("clresolve: --out {path}: this is a folder; name a file in it\n");
    assert_eq!((code(&directory), err(&directory)), (2, said.as_str()));
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_74() {
    let full = || std::fs::File::options().write(true).open("/dev/full").expect("Linux has /dev/full");
    for arguments in
        [&["name", "a.eth"][..], &["--help"], &["help", "world"], &["--version", "-v"], &["completions", "bash"]]
    {
        let output = program().args(arguments).stdout(full()).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(code(&output), 74, "{arguments:?}: {}", err(&output));
        assert!(err(&output).starts_with("clresolve: cannot write standard output: "), "{}", err(&output));
    }
    let file = run(["name", "a.eth", "--out", "/dev/full"]);
    assert_eq!(code(&file), 74, "{}", err(&file));
    let folder = tempfile::tempdir().unwrap();
    let names = folder.path().join("names");
    std::fs::write(&names, "a.eth\n").unwrap();
    let report = ["audit", "--names", names.to_str().unwrap(), "--rpc", "http://127.0.0.1:1", "--out", "/dev/full"];
    assert_eq!(code(&run(report)), 74);
}

#[cfg(unix)]
#[test]
fn a_reader_that_has_gone_does_not_change_the_code() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = program().args(["name", "a.eth", "a b"]).stdout(writer).stderr(Stdio::piped()).output().unwrap();
    assert_eq!((code(&output), err(&output)), (1, ""));
}

#[test]
fn cat_proves_what_a_car_holds() {
    let folder = tempfile::tempdir().unwrap();
    let car = folder.path().join("empty.car");
    // Header {roots: [], version: 1} and no block.
    let mut bytes = vec![0x11, 0xa2, 0x65];
    bytes.extend(b"roots\x80\x67version\x01");
    std::fs::write(&car, bytes).unwrap();
    let cat = |target: &str| run([OsStr::new("cat"), target.as_ref(), "--car".as_ref(), car.as_os_str()]);
    let missing = cat("bafkreibm6jg3ux5qumhcn2b3flc3tyu6dmlb4xa7u5bf44yegnrjhc4yeq");
    assert_eq!((code(&missing), out(&missing)), (3, ""));
    assert!(err(&missing).starts_with("incomplete: "), "{}", err(&missing));
    let inline = cat("bafkqac3imvwgy3zao5xxe3de");
    assert_eq!((code(&inline), inline.stdout.as_slice()), (0, b"hello world".as_slice()), "{}", err(&inline));
    let nonsense = cat("nonsense");
    assert_eq!(code(&nonsense), 1);
    assert!(err(&nonsense).starts_with("bad-cid: "), "{}", err(&nonsense));
}

#[test]
fn cat_agrees_with_every_generated_case() {
    let Some(corpus) = corpus("") else { return };
    let folder = corpus.join("ipfs/generated");
    let cases = json_file(&folder.join("cases.json"));
    let cases = cases.as_array().or_else(|| cases["cases"].as_array()).unwrap();
    assert!(cases.len() >= 100);
    for case in cases {
        let root = case["root"].as_str().unwrap();
        let path = case["path"].as_str().unwrap_or_default();
        let target = if path.is_empty() { root.to_owned() } else { format!("{root}/{path}") };
        let car = folder.join(case["car"].as_str().unwrap());
        let output = run([OsStr::new("cat"), target.as_ref(), "--car".as_ref(), car.as_os_str()]);
        let expect = &case["expect"];
        let allowed = expect["any"].as_array().map_or_else(|| vec![expect], |any| any.iter().collect());
        assert!(allowed.iter().any(|e| agrees(&output, e)), "{case}\n{} {}", code(&output), err(&output));
    }
}

fn agrees(output: &Output, expect: &Value) -> bool {
    if expect["ok"] == true {
        return code(output) == 0
            && expect["sha256"] == *clresolve_core::digest::Digest::compute(&output.stdout).to_hex();
    }
    let class = err(output).split(':').next().unwrap_or_default();
    matches!(code(output), 1 | 3) && output.stdout.is_empty() && expect["error"] == class
}

/// ENSIP-25, ENSIP-26, ERC-8004: told in the evidence, and nothing depends on it.
#[test]
fn links_are_told_and_change_nothing() {
    let names = ["summarizeagent.eth", "raw-cid.eth", "card-unreachable.eth", "name-unregistered.eth"];
    let ask = |name: &str, flags: &[&str]| {
        let output = run([&["--sandbox", "-o", "json", name], flags].concat());
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let links = |verdict: &Value| {
        let step = verdict["steps"].as_array().unwrap().iter().find(|step| step["step"] == "binding").unwrap();
        step["evidence"]["links"].clone()
    };
    let relations = |links: &Value| -> Vec<String> {
        let relation = |link: &Value| link["relation"].as_str().unwrap().to_owned();
        links.as_array().unwrap().iter().map(relation).collect()
    };
    for name in names {
        let (plain, linked) = (ask(name, &[]), ask(name, &["--links"]));
        let codes = |verdict: &Value| -> Vec<Value> {
            verdict["reasons"].as_array().unwrap().iter().map(|reason| reason["code"].clone()).collect()
        };
        assert_eq!((&plain["state"], codes(&plain)), (&linked["state"], codes(&linked)), "{name}");
        assert_eq!(plain["identity"], linked["identity"], "{name}");
        assert_eq!(links(&plain), Value::Null, "{name}");
    }
    assert_eq!(relations(&links(&ask(names[0], &["--links"]))), ["agrees"; 5]);
    let other = links(&ask(names[1], &["--links"]));
    assert_eq!(relations(&other), ["contradicts"; 4], "{other}");
    // Told by the endpoints also where the records of the walk are computed.
    assert_eq!(relations(&links(&ask(names[0], &["--links", "--proof", "state-proof"]))), ["agrees"; 5]);
}

#[test]
fn the_gate_names_the_entry_of_what_it_lets_pass() {
    let ask = |name: &str| {
        let output = run(["--sandbox", "gate", name, "summarize", "--json"]);
        serde_json::from_slice::<Value>(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", err(&output)))
    };
    let allowed = ask("summarizeagent.eth");
    assert_eq!((&allowed["decision"], &allowed["code"]), (&"allow".into(), &Value::Null));
    assert_eq!(allowed["entry"], "x402://summarizeagent.eth/summarize/v1");
    let denied = ask("entry-version.eth");
    assert_eq!((&denied["decision"], &denied["entry"]), (&"deny".into(), &Value::Null));
}

#[test]
fn the_gate_shows_warnings_whatever_it_decides() {
    for (name, verb, decision, warnings) in [
        ("summarizeagent.eth", "summarize", "allow", vec![]),
        ("alice.wildcard.eth", "summarize", "allow", vec!["name-wildcard", "owner-unproven"]),
        ("name-expiring.eth", "clean", "deny", vec!["name-expiring"]),
    ] {
        let json = run(["--sandbox", "gate", name, verb, "--json"]);
        let said: Value = serde_json::from_slice(&json.stdout).expect("JSON");
        assert_eq!((&said["decision"], &said["warnings"]), (&decision.into(), &serde_json::json!(warnings)), "{name}");
        let text = run(["--sandbox", "gate", name, verb]);
        let line = out(&text).lines().find_map(|line| line.strip_prefix("warnings: "));
        assert_eq!(line.unwrap_or_default(), warnings.join(", "), "{name}");
    }
}

#[test]
fn a_verb_that_was_nearly_typed_is_named() {
    let gate = run(["--sandbox", "gate", "summarizeagent.eth", "sumarize"]);
    let expected = "deny: verb-not-implemented\nThe agent does not implement the verb. (did you mean `summarize`?)\n\
                    `clresolve explain verb-not-implemented` says more.\n";
    assert_eq!((code(&gate), out(&gate)), (1, expected));
    let unlike = run(["--sandbox", "gate", "summarizeagent.eth", "checkout"]);
    assert!(!out(&unlike).contains("did you mean"), "{}", out(&unlike));
    let verify = run(["--sandbox", "summarizeagent.eth", "--expect-verb", "sumarize", "-o", "short"]);
    let expected = "it is trusted, but its verb is summarize, not sumarize (did you mean `summarize`?).\n";
    assert_eq!((code(&verify), err(&verify).ends_with(expected)), (4, true), "{}", err(&verify));
}

/// A verdict is about identity: the payee of this name is wrong.
#[test]
fn text_of_a_trusted_name_promises_no_payment() {
    let wrong_payee = run(["--sandbox", "payee-mismatch.eth"]);
    let bound = "\npayee-mismatch.eth is bound to this card and entry. This does not cover whom to pay: \
                 `clresolve check URL` does.\n";
    assert_eq!((code(&wrong_payee), out(&wrong_payee).ends_with(bound)), (0, true), "{}", out(&wrong_payee));
}

/// The gate is that of the same configuration, and its word is in the text alone: the JSON is the verdict's.
#[tokio::test(flavor = "multi_thread")]
async fn text_of_a_trusted_name_names_the_gates_denial() {
    let sandbox = Sandbox::start().await.expect("the sandbox starts");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("clresolve.toml");
    let mut config = sandbox.config();
    config.gate.deny.push(ReasonCode::NameWildcard);
    config.save(&file).expect("the folder can be written");
    let file = file.display().to_string();
    let name = "alice.wildcard.eth";
    let asked = |arguments: &[&str]| run(arguments.iter().chain(&["--config", &file]));
    let title = ReasonCode::NameWildcard.entry().title;
    let denied =
        format!("\nDo not call or pay {name}: it is trusted, but the gate would deny it (name-wildcard). {title}\n");
    for command in ["verify", "trace"] {
        let text = asked(&[command, name]);
        assert_eq!((code(&text), out(&text).ends_with(&denied)), (0, true), "{}", out(&text));
    }
    let gate = asked(&["gate", name]);
    assert!(out(&gate).starts_with("deny: name-wildcard\n"), "{}", out(&gate));
    let json = asked(&["verify", name, "-o", "json"]);
    let verdict: Value = serde_json::from_str(out(&json)).expect("JSON");
    assert_eq!(verdict["summary"], format!("The binding of {name} is real: name, records, card and entry agree."));
    assert_eq!((code(&json), err(&json)), (0, ""));
}

#[test]
fn an_expectation_that_a_trusted_name_does_not_meet_has_an_exit_code_of_its_own() {
    for (expectation, met, unmet) in [
        ("--expect-owner", "publisher.eth", "stranger.eth"),
        ("--expect-verb", "summarize", "translate"),
        ("--expect-entry", "x402://summarizeagent.eth/summarize/v1", "x402://summarizeagent.eth/summarize/v2"),
        ("--expect-network", "eip155:1", "eip155:8453"),
    ] {
        let asked = |value| run(["--sandbox", "summarizeagent.eth", expectation, value, "-o", "short"]);
        assert_eq!(code(&asked(met)), 0, "{expectation}");
        let other = asked(unmet);
        assert_eq!((code(&other), err(&other).contains(unmet)), (4, true), "{expectation}: {}", err(&other));
    }
    let second = run(["--sandbox", "several-verbs.eth", "--expect-verb", "format", "-o", "short"]);
    assert_eq!(code(&second), 0, "each verb that the card implements is meant: {}", err(&second));
}

#[test]
fn a_short_line_shows_warnings() {
    for (name, expected) in [
        ("summarizeagent.eth", "trusted  summarizeagent.eth  x402://summarizeagent.eth/summarize/v1\n"),
        (
            "name-expiring.eth",
            "trusted  name-expiring.eth  x402://name-expiring.eth/summarize/v1  warn: name-expiring\n",
        ),
    ] {
        assert_eq!(out(&run(["--sandbox", name, "-o", "short"])), expected);
    }
    let gate = |name: &str, verb: &str| out(&run(["--sandbox", "gate", name, verb, "-o", "short"])).to_owned();
    assert_eq!(gate("summarizeagent.eth", "summarize"), "summarizeagent.eth\tallow\n");
    let warned = "\twarn: name-expiring\n";
    assert_eq!(gate("name-expiring.eth", "summarize"), format!("name-expiring.eth\tallow{warned}"));
    assert_eq!(gate("name-expiring.eth", "pay"), format!("name-expiring.eth\tdeny\tverb-not-implemented{warned}"));
}

#[test]
fn a_trace_says_what_ran_in_parallel() {
    let trace = |name: &str| out(&run(["--sandbox", "trace", name])).to_owned();
    let both = trace("summarizeagent.eth");
    assert!(both.contains(" ms in all; fetch-https, fetch-ipfs and binding ran in parallel; verdict "), "{both}");
    assert!(both.contains(" ms  pass, in parallel with fetch-ipfs, binding\n"), "{both}");
    // IPFS waits for the URL, whose bytes a raw CID is checked against.
    let raw = trace("raw-cid.eth");
    assert!(raw.contains(" ms in all; fetch-https and binding ran in parallel; verdict "), "{raw}");
    let nothing = trace("name-unregistered.eth");
    assert!(!nothing.contains("parallel"), "{nothing}");
}

#[test]
fn the_schema_of_verdicts_names_every_code() {
    let schema = schema();
    let named: Vec<&str> =
        schema["$defs"]["code"]["enum"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let registry: Vec<&str> = ReasonCode::ALL.iter().filter(|c| c.is_verdict_code()).map(|c| c.slug()).collect();
    assert_eq!(
        named,
        registry,
        "schemas/verdict.schema.json needs:\n{}",
        serde_json::to_string_pretty(&registry).unwrap()
    );
}

#[test]
fn a_verdict_is_valid_under_its_schema() {
    let schema = schema();
    let validator = jsonschema::draft202012::options().should_validate_formats(true).build(&schema).unwrap();
    let verdict = verdict();
    let errors: Vec<String> = validator.iter_errors(&verdict).map(|e| e.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new());
    let parsed: clresolve_verdict::verdict::Verdict = serde_json::from_value(verdict.clone()).unwrap();
    assert_eq!(serde_json::to_value(parsed).unwrap(), verdict);
    let mut invalid_name = verdict.clone();
    for member in ["identity", "anchor"] {
        invalid_name[member] = Value::Null;
    }
    assert!(validator.is_valid(&invalid_name));
    for (pointer, value) in [
        ("/state", serde_json::json!("fine")),
        ("/reasons/0/code", serde_json::json!("no-such-code")),
        ("/score", serde_json::json!(7)),
        ("/freshness/checked_at", serde_json::json!("yesterday")),
    ] {
        let mut bad = verdict.clone();
        match bad.pointer_mut(pointer) {
            Some(member) => *member = value,
            None => bad[pointer.trim_start_matches('/')] = value,
        }
        assert!(!validator.is_valid(&bad), "{pointer}");
    }
}

fn schema() -> Value {
    json_file(&Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/verdict.schema.json"))
}

fn verdict() -> Value {
    let digest = format!("sha256:{}", "ab".repeat(32));
    let hash = format!("0x{}", "cd".repeat(32));
    serde_json::json!({
        "schema": "clresolve.verdict/1", "id": digest, "conclusion": digest,
        "name": {"input": "SummarizeAgent.eth", "normalized": "summarizeagent.eth", "node": hash},
        "state": "untrusted", "summary": "The SHA-256 of the card is not the one in cl.checksum.agentcard.",
        "reasons": [{
            "code": "checksum-mismatch", "effect": "fail", "step": "integrity", "requirement": "CL-50",
            "message": "The SHA-256 of the card is not the one in cl.checksum.agentcard.",
            "expected": digest, "observed": digest, "where": "https", "retryable": false, "fix": null,
        }],
        "identity": {
            "ens": "summarizeagent.eth", "owner": {"name": "commandlayer.eth", "proven": false}, "class": "commons",
            "status": "active", "version": "1.0.0", "verbs": ["summarize"],
            "entry": "x402://summarizeagent.eth/summarize/v1", "networks": ["eip155:1"],
            "card": {"sha256": "ab".repeat(32), "cid": "bafy", "path": "agents/card.json", "bytes": 2113},
        },
        "anchor": {
            "world": "mainnet", "chain": "eip155:1",
            "block": {"number": 1, "hash": hash, "timestamp": "2026-11-20T10:00:00Z", "tag": "finalized"},
            "resolver": "0x231b0Ee14048e9dCcD1d247744d114a4EB5E8E63", "wildcard": null, "offchain": false,
            "proof": {"grade": "single-rpc", "asked": 1, "agreed": 1}, "records_digest": digest,
        },
        "profile": {
            "id": "agent-cards/1.0.0", "depth": "identity", "digest": digest,
            "manifests": [{"id": "protocol-commons/1.0.0", "digest": digest}],
            "near_misses": [{"profile": "agent-cards/1.0.0+released", "would_be": "trusted"}],
        },
        "steps": [{"step": "fetch-https", "status": "pass", "evidence": {"status": 200}, "ms": 12}],
        "freshness": {
            "checked_at": "2026-11-20T10:10:00Z", "fresh_until": "2026-11-20T10:11:00Z", "retry_after": null,
            "served": "fresh",
        },
        "tool": {"name": "clresolve", "version": "0.1.0"},
    })
}

#[test]
fn the_doctor_finds_the_sandbox_well() {
    let found = run(["doctor", "--sandbox", "--json"]);
    let examined: Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!((code(&found), &examined["advice"]), (0, &serde_json::json!([])), "{examined:#}");
    let endpoints = examined["endpoints"].as_array().unwrap();
    assert!(!endpoints.is_empty());
    for endpoint in endpoints {
        assert_eq!((&endpoint["chain"], &endpoint["reachable"]), (&Value::from(31_337), &Value::from(true)));
        assert!(endpoint["latest"]["number"].as_u64() >= endpoint["finalized"]["number"].as_u64(), "{endpoint:#}");
        assert!(endpoint["latency_ms"].is_u64(), "{endpoint:#}");
    }
    let groups = examined["agreement"]["groups"].as_array().unwrap();
    assert_eq!((groups.len(), groups[0]["endpoints"].as_array().map(Vec::len)), (1, Some(endpoints.len())));
    assert!(!examined["gateways"].as_array().unwrap().is_empty());
    let text = run(["doctor", "--sandbox"]);
    assert!(out(&text).ends_with("\nNothing has to be changed.\n"), "{}", out(&text));
}

#[test]
fn the_doctor_says_what_to_change_and_shows_no_key() {
    let far = ["--rpc", "http://127.0.0.1:1/SECRET", "--gateway", "http://127.0.0.1:1/SECRET", "--timeout", "2s"];
    let found = run([&["doctor", "--json"], &far[..]].concat());
    assert_eq!(code(&found), 1, "{}", err(&found));
    let examined: Value = serde_json::from_slice(&found.stdout).unwrap();
    let advice = examined["advice"].as_array().unwrap();
    assert_eq!(advice.len(), 3, "{examined:#}");
    for (advice, start) in advice.iter().zip([
        "rpc-1 cannot be reached (",
        "endpoints of 1 operator are needed, and 0 can be used",
        "127.0.0.1:1 cannot be reached (",
    ]) {
        assert!(advice.as_str().unwrap().starts_with(start), "{advice}");
    }
    let text = run([&["doctor"], &far[..]].concat());
    for said in [out(&found), err(&found), out(&text), err(&text)] {
        assert!(!said.contains("SECRET"), "{said}");
    }
    assert!(out(&text).contains("What to change\n  - rpc-1 cannot be reached"), "{}", out(&text));
}
