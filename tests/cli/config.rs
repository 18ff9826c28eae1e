//! The configuration: its documentation, the precedence of its sources, and the files that we ship.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use clresolve_resolver::config::{Config, ConfigError, ConfigLayer};
use serde_json::Value;

use crate::support::documented_keys::{ConfigKeyDocumentation, documented, shipped};

/// A key no program has.
const NO_KEY: &str = "zzz";

/// Options of the world that are not keys of the file.
const NO_KEYS: [&str; 3] = ["--config", "--no-config", "--sandbox"];

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("c.toml");
    let refused = |path: &Path| match ConfigLayer::from_file(path) {
        Err(ConfigError::Unreadable { path: named, .. }) => assert_eq!(named, path.display().to_string()),
        other => panic!("{other:?}"),
    };
    refused(&path);
    refused(folder.path());
    for bytes in [b"\xff".to_vec(), vec![b' '; 2 << 20]] {
        std::fs::write(&path, bytes).expect("the folder can be written");
        refused(&path);
    }
}

fn detail(text: &str) -> String {
    match ConfigLayer::from_toml(text, "f.toml") {
        Err(ConfigError::Invalid { detail, .. }) => detail,
        other => panic!("{text}: {other:?}"),
    }
}

/// The keys that an error on an unknown key names, if it is such an error.
fn known_keys(error: &str) -> Option<Vec<String>> {
    let known = error.strip_prefix(&format!("unknown field `{NO_KEY}`, expected "))?;
    Some(known.split('`').skip(1).step_by(2).map(str::to_owned).collect())
}

/// Every key that the program reads, with its table; those that are refused whatever they hold are left out.
fn keys_of_the_program() -> BTreeSet<String> {
    let top = known_keys(&detail(&format!("{NO_KEY} = 1"))).expect("the top knows its keys");
    assert!(top.len() > 15, "{top:?}");
    let mut keys = BTreeSet::new();
    for name in top {
        let below = |open: &str, close: &str| {
            let text = format!("{open}{name}{close}\n{NO_KEY} = 1");
            ConfigLayer::from_toml(&text, "f.toml").err().and_then(|_| known_keys(&detail(&text)))
        };
        match below("[", "]").or_else(|| below("[[", "]]")) {
            Some(below) => keys.extend(below.iter().map(|key| format!("{name}.{key}"))),
            None if detail_of(&name).contains("not available in this version") => {}
            None => {
                keys.insert(name);
            }
        }
    }
    keys
}

/// What is said of the key when it holds a number below zero, which no key takes.
fn detail_of(key: &str) -> String {
    detail(&format!("{key} = -1"))
}

#[test]
fn every_key_is_documented_once_and_no_other_is() {
    let documented = documented();
    let lists: BTreeSet<_> = documented.iter().filter(|d| d.is_list_element_key()).map(|d| d.table.clone()).collect();
    let is_list = |d: &&ConfigKeyDocumentation| d.table.is_empty() && lists.contains(&format!("[[{}]]", d.key));
    let written: BTreeSet<_> =
        documented.iter().filter(|d| !is_list(d)).map(ConfigKeyDocumentation::key_path).collect();
    assert_eq!(written, keys_of_the_program());
    let mut count: BTreeMap<_, usize> = BTreeMap::new();
    for key in documented.iter().filter(|d| !d.is_list_element_key()) {
        *count.entry(key.key_path()).or_default() += 1;
    }
    count.retain(|_, times| *times > 1);
    assert!(count.is_empty(), "documented twice: {count:?}");
    let explained: BTreeSet<_> =
        documented.iter().filter(|d| !d.meaning.is_empty()).map(ConfigKeyDocumentation::key_path).collect();
    let unexplained: Vec<_> = documented.iter().filter(|d| !explained.contains(&d.key_path())).collect();
    assert!(unexplained.is_empty(), "{unexplained:#?}");
    assert!(documented.iter().all(|d| d.table.is_empty() || d.is_list_element_key() || !d.about_table.is_empty()));
}

#[test]
fn what_is_shown_as_a_default_is_the_default() {
    for key in documented().iter().filter(|d| !d.is_list_element_key()) {
        if key.value == "[]" && key.note.default.is_none() {
            // A list that is empty by default; an empty list of manifests cannot be written as a table.
            continue;
        }
        if key.note.none {
            assert!(!key.set, "{} is left out by default", key.key_path());
            continue;
        }
        let text = format!("{}\n{} = {}\n", key.table, key.key, key.default_value());
        let layer = ConfigLayer::from_toml(&text, "default").unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(Config::default().with_layers([layer]).expect("a world"), Config::default(), "{text}");
    }
}

#[test]
fn what_stands_behind_a_number_sign_can_be_set() {
    let text = std::fs::read_to_string(shipped("config.prod.toml")).expect("the file is there");
    let is_key = |rest: &str| documented().iter().any(|d| !d.set && rest == format!("{} = {}", d.key, d.value));
    let opened = |line: &str| match line.strip_prefix("# ") {
        Some(rest) if is_key(rest) || rest.starts_with("[[") => format!("{rest}\n"),
        _ => format!("{line}\n"),
    };
    let every_key: String = text.lines().map(opened).collect();
    assert!(every_key.contains("\nmanifest") || every_key.contains("\n[[manifest]]"));
    ConfigLayer::from_toml(&every_key, "every key").unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn the_environment_is_documented_and_sets_what_it_says() {
    let asked = RefCell::new(BTreeSet::new());
    let nothing = ConfigLayer::from_environment(|variable| {
        asked.borrow_mut().insert(variable.to_owned());
        None
    });
    assert_eq!(nothing, Ok(ConfigLayer::default()));
    let documented = documented();
    let told: BTreeSet<_> = documented.iter().filter_map(|d| d.note.variable.clone()).collect();
    assert_eq!(told, asked.into_inner());
    for key in documented.iter().filter(|d| d.note.variable.is_some()) {
        let value: toml::Table = format!("v = {}", key.default_value()).parse().expect("the default is TOML");
        let value = plain(&value["v"]);
        let layer = ConfigLayer::from_environment(|v| (Some(v) == key.note.variable.as_deref()).then(|| value.clone()))
            .unwrap_or_else(|error| panic!("{}: {error}", key.key));
        let set = serde_json::to_value(&layer).expect("a layer is JSON");
        assert_eq!(set.as_object().map(|o| o.keys().collect::<Vec<_>>()), Some(vec![&key.key]));
        assert_eq!(Config::default().with_layers([layer]).expect("a world"), Config::default(), "{}", key.key);
    }
}

/// A value as it is written in the environment.
fn plain(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Array(list) => list.iter().map(plain).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

#[test]
fn the_flags_are_documented_and_are_named_like_their_keys() {
    let help = |topic: &str| String::from_utf8_lossy(&run(&["help", topic], &[]).stdout).into_owned();
    let (own, world) = (help("serve"), help("world"));
    let flags = |text: &str| -> BTreeSet<String> {
        let lines = text.lines().filter_map(|line| line.trim_start().split("--").nth(1).filter(|_| is_option(line)));
        let names = lines.map(|rest| rest.split([' ', '\t', '.']).next().unwrap_or_default());
        names.map(|name| format!("--{name}")).collect()
    };
    let mut known = flags(&world);
    known.retain(|flag| !NO_KEYS.contains(&flag.as_str()));
    assert!(flags(&own).contains("--listen"), "{own}");
    known.insert("--listen".to_owned());
    let documented = documented();
    let told: BTreeSet<_> = documented.iter().filter_map(|d| d.note.flag.clone()).collect();
    assert_eq!(told, known);
    for key in &documented {
        if let Some(flag) = &key.note.flag {
            assert_eq!(flag, &format!("--{}", key.key));
        }
    }
}

#[test]
fn manual_page_describes_every_key_in_its_table() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    run(&["man", folder.path().to_str().expect("UTF-8")], &[]);
    let page = std::fs::read_to_string(folder.path().join("clresolve.toml.5")).expect("the page");
    assert!(page.contains("\n.TH clresolve.toml 5 \"\" \"clresolve "), "{page}");
    for key in documented() {
        let table = if key.table.is_empty() { "\"Top level\"" } else { key.table.as_str() };
        let (_, section) = page.split_once(&format!("\n.SS {table}\n")).unwrap_or_else(|| panic!("{table}: {page}"));
        let section = section.split("\n.S").next().unwrap_or_default();
        let (_, entry) = section
            .split_once(&format!(".TP\n\\fB{}\\fR\n", key.key.replace('-', "\\-")))
            .unwrap_or_else(|| panic!("{}: {section}", key.key_path()));
        for name in [&key.note.flag, &key.note.variable].into_iter().flatten() {
            let name = name.replace('-', "\\-");
            assert!(entry.lines().next().is_some_and(|line| line.contains(&name)), "{}: {entry}", key.key_path());
        }
    }
}

/// Whether a line of the help begins the description of a flag.
fn is_option(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("--") || (line.starts_with('-') && line.contains(", --"))
}

/// The binary under the environment that is named, and no other.
fn run(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clresolve"));
    command.args(arguments).env_clear().envs(environment.iter().copied()).stdin(Stdio::null());
    // What a run of mutants takes out is taken out of the program too.
    command.envs(std::env::var_os("MUTANT").map(|switch| ("MUTANT", switch)));
    command.output().expect("the binary runs")
}

#[test]
fn the_shipped_files_are_good() {
    for name in ["config.dev.toml", "config.prod.toml"] {
        let path = shipped(name).display().to_string();
        let output = run(&["serve", "--check-config", "--config", &path], &[]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let config = Config::default().with_layers([ConfigLayer::from_file(Path::new(&path)).expect("checked above")]);
        assert!(config.expect("checked above").chain.endpoints[0].own, "{name}");
    }
}

/// What a daemon takes beside its caches, with room: `just load` shows 70 MiB.
const BESIDE_THE_CACHES: u64 = 128 << 20;

#[test]
fn the_shipped_limits_of_memory_have_room_for_full_caches() {
    let cache = Config::default().cache;
    let least = (3 * cache.verdict_bytes + cache.content_bytes + BESIDE_THE_CACHES) >> 20;
    for (file, before, after) in [
        ("clresolve.service", "MemoryMax=", "M\n"),
        ("kubernetes/clresolve.yaml", "limits: { memory: ", "Mi }"),
        ("compose.yml", "mem_limit: ", "m\n"),
        ("Dockerfile", "--memory=", "m "),
    ] {
        let text = std::fs::read_to_string(shipped(file)).expect("the file is readable");
        let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("{file} sets no limit"));
        let limit: u64 = rest.split_once(after).and_then(|(limit, _)| limit.parse().ok()).expect("it is in MiB");
        assert!(limit >= least, "{file}: {limit} MiB of {least}");
    }
}

#[test]
fn an_unknown_key_ends_with_its_line_what_was_expected_and_what_is_like_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("f.toml");
    std::fs::write(&file, "timeout = \"1s\"\n\n[http]\nlisen = \"127.0.0.1:1\"\n").expect("the folder can be written");
    let file = file.display().to_string();
    for arguments in [vec!["serve", "--check-config", "--config", &file], vec!["a.eth", "--config", &file]] {
        let output = run(&arguments, &[]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), b"".as_slice()), "{said}");
        for part in ["line 4", "key `lisen`", "did you mean `listen`?", "expected one of `listen`"] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}

/// What a question came to under the sources. Nobody answers on the ports, which take no connections on any system.
struct Asked {
    profile: String,
    depth: String,
    /// Labels of the endpoints that were asked, in order.
    endpoints: Vec<String>,
}

/// A file that names two endpoints, a profile and a depth.
const FILE: &str = "profile = \"agent-cards/1.0.0+released\"\ndepth = \"schemas\"\ntimeout = \"20s\"\n\
    rpc = [\"http://127.0.0.1:1\", \"http://127.0.0.1:2\"]\n";

fn ask(flags: &[&str], environment: &[(&str, &str)]) -> Asked {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("f.toml");
    std::fs::write(&file, FILE).expect("the folder can be written");
    let mut environment = environment.to_vec();
    let file = file.display().to_string();
    environment.push(("CLRESOLVE_CONFIG", &file));
    let output = run(&[&["a.eth", "-o", "json"], flags].concat(), &environment);
    let verdict: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let reasons = verdict["reasons"].to_string();
    assert!(!reasons.contains("127.0.0.1"), "hosts are not shown: {verdict:#}");
    let named = |place: &usize| reasons.contains(&format!("rpc-{place}:"));
    let endpoints = (1..10).filter(named).map(|place| format!("rpc-{place}")).collect();
    Asked { profile: text(&verdict["profile"]["id"]), depth: text(&verdict["profile"]["depth"]), endpoints }
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let environment = [
        ("CLRESOLVE_PROFILE", "agent-cards/1.1.0"),
        ("CLRESOLVE_RPC", "http://127.0.0.1:3 http://127.0.0.1:4 http://127.0.0.1:5"),
        ("CLRESOLVE_DEPTH", ""),
    ];
    let file = ask(&[], &[]);
    assert_eq!((file.profile.as_str(), file.depth.as_str()), ("agent-cards/1.0.0+released", "schemas"));
    assert_eq!(file.endpoints, ["rpc-1", "rpc-2"]);
    let by_environment = ask(&[], &environment);
    assert_eq!((by_environment.profile.as_str(), by_environment.depth.as_str()), ("agent-cards/1.1.0", "schemas"));
    assert_eq!(by_environment.endpoints, ["rpc-1", "rpc-2", "rpc-3"]);
    let flags = ["--profile", "agent-cards/1.0.0", "--depth", "identity", "--rpc", "http://127.0.0.1:6"];
    let by_flags = ask(&flags, &environment);
    assert_eq!((by_flags.profile.as_str(), by_flags.depth.as_str()), ("agent-cards/1.0.0", "identity"));
    assert_eq!(by_flags.endpoints, ["rpc-1"]);
}

/// The depth of an audit's report.
fn audited(file: &str, flags: &[&str], environment: &[(&str, &str)]) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (names, config) = (folder.path().join("names"), folder.path().join("f.toml"));
    std::fs::write(&names, "a.eth\n").expect("the folder can be written");
    std::fs::write(&config, file).expect("the folder can be written");
    let (names, config) = (names.display().to_string(), config.display().to_string());
    let arguments = ["audit", "--names", &names, "--config", &config, "--format", "json"];
    let output = run(&[&arguments, flags].concat(), environment);
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    report["scope"]["depth"].as_str().unwrap_or_else(|| panic!("{report:#}")).to_owned()
}

#[test]
fn an_audit_looks_at_schemas_unless_a_source_names_a_depth() {
    const NOBODY: &str = "rpc = [\"http://127.0.0.1:1\"]\n";
    let shallow = format!("{NOBODY}depth = \"identity\"\n");
    let in_environment = [("CLRESOLVE_DEPTH", "identity")];
    assert_eq!(audited(NOBODY, &[], &[]), "schemas");
    assert_eq!(audited(NOBODY, &[], &in_environment), "identity");
    assert_eq!(audited(NOBODY, &["--depth", "schemas"], &in_environment), "schemas");
    assert_eq!(audited(&shallow, &[], &[]), "identity");
    assert_eq!(audited(&shallow, &["--depth", "schemas"], &[]), "schemas");
}

/// A folder for `XDG_CONFIG_HOME` whose configuration file holds `text`.
#[cfg(unix)]
fn own_configuration(text: &str) -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().expect("a temporary folder");
    let folder = home.path().join("clresolve");
    std::fs::create_dir(&folder).expect("the folder can be written");
    let file = folder.join("config.toml");
    std::fs::write(&file, text).expect("the folder can be written");
    with_mode(&folder, 0o700);
    with_mode(&file, 0o600);
    (home, file)
}

#[cfg(unix)]
fn with_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("permissions can be set");
}

/// Value and sources of a key, as `config show` gives them.
#[cfg(unix)]
fn shown(key: &str, flags: &[&str], environment: &[(&str, &str)]) -> (Value, Value) {
    let output = run(&[&["config", "show", "--json"], flags].concat(), environment);
    let settings: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let setting = settings.as_array().into_iter().flatten().find(|setting| setting["key"] == key);
    let setting = setting.unwrap_or_else(|| panic!("{key}: {settings:#}"));
    (setting["value"].clone(), setting["source"].clone())
}

#[cfg(unix)]
#[test]
fn your_own_file_is_the_weakest_source_that_is_named() {
    let (home, file) = own_configuration("timeout = \"3s\"\nprofile = \"agent-cards/1.1.0\"\n");
    let home = ("XDG_CONFIG_HOME", home.path().to_str().expect("UTF-8"));
    let said = |value: &str, source: &str| (Value::from(value), serde_json::json!([source]));
    assert_eq!(shown("timeout", &[], &[home]), said("3s", "file"));
    assert_eq!(shown("timeout", &["--no-config"], &[home]), said("15s", "default"));
    assert_eq!(shown("timeout", &[], &[home, ("CLRESOLVE_TIMEOUT", "4s")]), said("4s", "environment"));
    assert_eq!(shown("timeout", &["--timeout", "5s"], &[home]), said("5s", "flag"));
    let other = file.with_file_name("other.toml");
    std::fs::write(&other, "depth = \"schemas\"\n").expect("the folder can be written");
    let named = ["--config", other.to_str().expect("UTF-8")];
    assert_eq!(shown("timeout", &named, &[home]), said("15s", "default"));
    assert_eq!(shown("depth", &named, &[home]), said("schemas", "file"));
    let text = run(&["config", "show"], &[home]);
    let line = format!("{:<28} 3s  (file {})", "timeout", file.display());
    assert!(String::from_utf8_lossy(&text.stdout).lines().any(|shown| shown == line), "{text:?}");
}

#[cfg(unix)]
#[test]
fn a_list_of_denials_says_what_of_the_default_it_replaces() {
    for (deny, line) in [
        (r#"["version-rollback"]"#, "version-rollback  (file; replaces the default status-withdrawn, name-released)"),
        (
            r#"["version-rollback", "status-withdrawn"]"#,
            "version-rollback, status-withdrawn  (file; replaces the default name-released)",
        ),
        (r#"["name-released", "status-withdrawn"]"#, "name-released, status-withdrawn  (file)"),
    ] {
        let (home, file) = own_configuration(&format!("[gate]\ndeny = {deny}\n"));
        let home = ("XDG_CONFIG_HOME", home.path().to_str().expect("UTF-8"));
        let text = run(&["config", "show"], &[home]);
        let line = format!("{:<28} {}", "gate.deny", line.replace("(file", &format!("(file {}", file.display())));
        assert!(String::from_utf8_lossy(&text.stdout).lines().any(|shown| shown == line), "{line}: {text:?}");
        let settings: Value =
            serde_json::from_slice(&run(&["config", "show", "--json"], &[home]).stdout).expect("JSON");
        let of = |key: &str| settings.as_array().into_iter().flatten().find(|row| row["key"] == key).expect("a row");
        let mut replaced = vec!["status-withdrawn", "name-released"];
        replaced.retain(|code| !deny.contains(*code));
        let replaces = (!replaced.is_empty()).then(|| serde_json::json!(replaced));
        assert_eq!(of("gate.deny").get("replaces"), replaces.as_ref());
        assert_eq!(of("gateway").get("replaces"), None);
    }
}

/// Whether a command reads the default configuration file.
#[cfg(unix)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OwnFile {
    Read,
    /// The command takes no configuration.
    NoConfiguration,
}

/// Every command, its arguments, and whether it reads the default configuration file. `{}` is a folder, and `NOBODY` an
/// endpoint that does not answer.
#[cfg(unix)]
const READERS: [(&str, &str, OwnFile); 58] = [
    ("verify", "a.eth NOBODY", OwnFile::Read),
    ("trace", "a.eth NOBODY", OwnFile::Read),
    ("records", "a.eth NOBODY", OwnFile::Read),
    ("card", "a.eth NOBODY", OwnFile::Read),
    ("gate", "a.eth NOBODY", OwnFile::Read),
    ("check", "https://a.example NOBODY", OwnFile::Read),
    ("decide", "a.eth summarize --url https://a.example --terms {}/object NOBODY", OwnFile::Read),
    ("route", "a.eth NOBODY", OwnFile::Read),
    ("probe", "a.eth summarize NOBODY", OwnFile::Read),
    ("request check", "a.eth summarize {}/object NOBODY", OwnFile::Read),
    ("request template", "a.eth summarize NOBODY", OwnFile::Read),
    ("receipt verify", "{}/object --name a.eth NOBODY", OwnFile::Read),
    ("receipt check", "{}/object --receipt {}/object --jwks {}/object --name a.eth", OwnFile::Read),
    ("explain", "CL-45", OwnFile::NoConfiguration),
    ("name", "a.eth", OwnFile::NoConfiguration),
    ("lint", "{}/object", OwnFile::Read),
    ("plan", "{}/object", OwnFile::Read),
    ("cards convert", "{}/object --to a2a", OwnFile::Read),
    ("cards new", "a.eth --verb summarize --owner b.eth --out {}/new.json", OwnFile::Read),
    ("cards generate", "--from {}/object", OwnFile::NoConfiguration),
    ("cards project", "a.eth NOBODY", OwnFile::Read),
    ("cards aevum metadata", "--ledger {}/object", OwnFile::NoConfiguration),
    ("discover", "https://a.example NOBODY", OwnFile::Read),
    ("cat", "bafkqaaa --gateway http://127.0.0.1:1", OwnFile::Read),
    ("bundle export", "a.eth NOBODY", OwnFile::Read),
    ("bundle verify", "{}/object", OwnFile::Read),
    ("audit", "--names {}/names NOBODY", OwnFile::Read),
    ("audit list", "--below a.eth NOBODY", OwnFile::Read),
    ("audit schemas", "NOBODY", OwnFile::Read),
    ("audit diff", "{}/object {}/object", OwnFile::NoConfiguration),
    ("audit render", "{}/object", OwnFile::NoConfiguration),
    ("audit resolution", "{}/object --log {}/names", OwnFile::NoConfiguration),
    ("audit sign", "{}/object --key {}/object", OwnFile::NoConfiguration),
    ("audit verify", "{}/object", OwnFile::NoConfiguration),
    ("memory show", "a.eth", OwnFile::Read),
    ("memory accept", "https://a.example", OwnFile::Read),
    ("memory forget", "a.eth", OwnFile::Read),
    ("serve", "--check-config", OwnFile::Read),
    ("ctl flush", "a.eth --socket {}/socket", OwnFile::NoConfiguration),
    ("ctl show", "--socket {}/socket", OwnFile::NoConfiguration),
    ("ctl ready", "--listen 127.0.0.1:1", OwnFile::NoConfiguration),
    ("ctl reload", "--socket {}/socket", OwnFile::NoConfiguration),
    ("ctl log-level", "debug --socket {}/socket", OwnFile::NoConfiguration),
    ("mcp", "NOBODY", OwnFile::Read),
    ("sandbox", "--list", OwnFile::NoConfiguration),
    ("verdict verify", "{}/object --jwks {}/object --name a.eth", OwnFile::Read),
    ("signature sign", "{}/object --key {}/object", OwnFile::NoConfiguration),
    ("signature verify", "{}/object --ens a.eth NOBODY", OwnFile::Read),
    ("signature key new", "{}/object", OwnFile::NoConfiguration),
    ("signature key public", "{}/object", OwnFile::NoConfiguration),
    ("config init", "{}/object", OwnFile::NoConfiguration),
    ("config show", "", OwnFile::Read),
    ("config check", "{}/good.toml", OwnFile::NoConfiguration),
    ("doctor", "NOBODY", OwnFile::Read),
    ("completions", "bash", OwnFile::NoConfiguration),
    ("version", "", OwnFile::NoConfiguration),
    ("man", "", OwnFile::NoConfiguration),
    ("help", "", OwnFile::NoConfiguration),
];

#[cfg(unix)]
#[test]
fn all_commands_read_the_same_file() {
    let (home, file) = own_configuration("timeout = \"soon\"\n");
    let own = ("XDG_CONFIG_HOME", home.path().to_str().expect("UTF-8"));
    let named = ("CLRESOLVE_CONFIG", file.to_str().expect("UTF-8"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in [("object", "{}"), ("names", "a.eth\n"), ("good.toml", "")] {
        std::fs::write(folder.path().join(name), text).expect("the folder can be written");
    }
    let folder = folder.path().to_str().expect("UTF-8");
    for (command, arguments, expected) in READERS {
        let arguments = arguments.replace("{}", folder).replace("NOBODY", "--rpc http://127.0.0.1:1 --timeout 1s");
        let arguments: Vec<&str> = command.split(' ').chain(arguments.split_whitespace()).collect();
        let is_read = |environment: (&str, &str)| {
            let output = run(&arguments, &[environment]);
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!error.contains("Usage:"), "{command}: {error}");
            error.contains("config.toml, line 1, key `timeout`: expected a duration")
        };
        for environment in [own, named] {
            assert_eq!(is_read(environment), expected == OwnFile::Read, "{command}: {environment:?}");
        }
    }
    assert_eq!(run(&["summarizeagent.eth", "--sandbox"], &[own]).status.code(), Some(0));
    assert_eq!(run(&["explain", "CL-45", "--no-config"], &[own]).status.code(), Some(2));
    assert_eq!(run(&["config", "show", "--no-config"], &[own]).status.code(), Some(0));
}

#[cfg(unix)]
#[test]
fn the_list_of_readers_has_every_command() {
    let pages = tempfile::tempdir().expect("a temporary folder");
    run(&["man", pages.path().to_str().expect("UTF-8")], &[]);
    let files = std::fs::read_dir(pages.path()).expect("a folder").map(|page| page.expect("a page").path());
    let of_commands = files.filter(|page| page.extension().is_some_and(|section| section == "1"));
    let pages: BTreeSet<String> =
        of_commands.map(|page| page.file_stem().and_then(|stem| stem.to_str()).expect("UTF-8").to_owned()).collect();
    let page = |(command, ..): &(&str, &str, OwnFile)| format!("clresolve-{}", command.replace(' ', "-"));
    let listed: BTreeSet<String> = READERS.iter().map(page).collect();
    let is_group = |page: &str| pages.iter().any(|other| other.starts_with(&format!("{page}-")));
    let missing: Vec<&String> = pages.difference(&listed).filter(|page| !is_group(page)).collect();
    assert!(pages.len() > 50 && missing.is_empty(), "{missing:?}");
}

#[cfg(unix)]
#[test]
fn a_file_that_others_may_write_is_refused() {
    let (home, file) = own_configuration("timeout = \"3s\"\n");
    let folder = file.parent().expect("a folder").to_path_buf();
    let home = [("XDG_CONFIG_HOME", home.path().to_str().expect("UTF-8"))];
    for (path, good, bad) in [(&file, 0o600, 0o620), (&file, 0o600, 0o602), (&folder, 0o700, 0o770)] {
        with_mode(path, bad);
        let output = run(&["config", "show"], &home);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), b"".as_slice()));
        let expected = format!(
            "(--no-config skips it): other users can write {0}, so clresolve does not read it; run `chmod go-w {0}`",
            path.display()
        );
        assert!(error.contains(&expected), "{error}");
        assert_eq!(run(&["config", "show", "--no-config"], &home).status.code(), Some(0));
        with_mode(path, good);
        assert_eq!(run(&["config", "show"], &home).status.code(), Some(0));
    }
}

/// An ordinary user can neither read a system file with mode 0600 nor enter a folder with mode 0700. The file may
/// contain keys, so the message does not suggest wider permissions.
#[cfg(unix)]
#[test]
fn error_for_unreadable_default_file_lists_alternatives() {
    use std::os::unix::fs::MetadataExt as _;
    use std::os::unix::process::CommandExt as _;

    /// Any user but root.
    const ORDINARY_USER: u32 = 65534;

    let (root, file) = own_configuration("timeout = \"3s\"\n");
    let is_root = file.metadata().expect("a file").uid() == 0;
    let home = root.path().join("two\nlines");
    let folder = home.join("clresolve");
    std::fs::create_dir(&home).expect("the folder can be written");
    std::fs::rename(file.parent().expect("a folder"), &folder).expect("the folder can be written");
    let file = folder.join("config.toml");
    for folder in [root.path(), &home, &folder] {
        with_mode(folder, 0o755);
    }
    let show = |options: &[&str]| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_clresolve"));
        program.args(["config", "show"]).args(options).env_clear().env("XDG_CONFIG_HOME", &home);
        if is_root {
            program.uid(ORDINARY_USER).gid(ORDINARY_USER);
        }
        program.output().expect("the binary runs")
    };
    let expected = format!(
        "clresolve: {}/two\\u{{a}}lines/clresolve/config.toml: permission denied: run as its owner, name another file \
         with --config, or use --no-config: Permission denied (os error 13)\n",
        root.path().display()
    );
    for (closed, of_root, of_owner, open) in [(&file, 0o600, 0, 0o600), (&folder, 0o700, 0, 0o755)] {
        with_mode(closed, if is_root { of_root } else { of_owner });
        let refused = show(&[]);
        let error = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!((refused.status.code(), &error), (Some(2), &expected));
        assert_eq!(show(&["--no-config"]).status.code(), Some(0));
        with_mode(closed, open);
    }
}

/// Who may write it chooses who is paid.
#[cfg(unix)]
#[test]
fn what_decides_on_payments_refuses_a_file_of_payees_or_limits_that_others_may_write() {
    const PAYEES: &str = "[payees]\n\"a.eth\" = [\"eip155:1:0x5FbDB2315678afecb367f032d93F642f64180aa3\"]\n";
    let served = |file: &Path| {
        let output = run(&["serve", "--check-config", "--config", file.to_str().expect("UTF-8")], &[]);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    const PINNED: &str = "[check.origins]\n\"https://a.example\" = \"a.eth\"\n";
    for text in [PAYEES, "[limits]\nnetworks = [\"eip155:1\"]\n", "[limits]\n", PINNED] {
        let (_home, file) = own_configuration(text);
        let folder = file.parent().expect("a folder").to_path_buf();
        let link = folder.join("link.toml");
        std::os::unix::fs::symlink(&file, &link).expect("a symlink");
        for (path, good, bad) in
            [(&file, 0o600, 0o620), (&file, 0o644, 0o602), (&folder, 0o700, 0o770), (&folder, 0o1777, 0o777)]
        {
            with_mode(path, bad);
            for named in [&file, &link] {
                let (code, error) = served(named);
                assert_eq!(code, Some(2), "{text} {bad:o}: {error}");
                let path = path.display();
                let expected =
                    format!("others may write {path}, and [payees], [limits] and [check] say who may be paid");
                assert!(error.contains(&expected), "{error}");
                assert!(error.contains(&format!("`chmod go-w {path}`")), "{error}");
            }
            with_mode(path, good);
            assert_eq!(served(&link).0, Some(0), "{text} {good:o}");
        }
    }
    let (_home, file) = own_configuration("timeout = \"3s\"\n");
    with_mode(&file, 0o666);
    assert_eq!(served(&file).0, Some(0), "it says nothing about payments");
    let (home, file) = own_configuration(PAYEES);
    with_mode(&file, 0o666);
    let named = file.to_str().expect("UTF-8");
    let terms = home.path().join("terms.json");
    std::fs::write(&terms, r#"{"x402Version": 2, "accepts": []}"#).expect("the folder can be written");
    let terms = terms.to_str().expect("UTF-8");
    for payer in [
        &["mcp"][..],
        &["gate", "a.eth"],
        &["decide", "--url", "https://a.example/", "--terms", terms, "a.eth", "summarize"],
    ] {
        let output = run(&[payer, &["--config", named]].concat(), &[]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{payer:?}: {error}");
        assert!(error.contains("say who may be paid"), "{payer:?}: {error}");
    }
    let other = run(&["config", "show", "--config", file.to_str().expect("UTF-8")], &[]);
    assert_eq!(other.status.code(), Some(0), "another command");
    with_mode(&file, 0o600);
    with_mode(home.path(), 0o777);
    let output = run(&["serve", "--check-config"], &[("XDG_CONFIG_HOME", home.path().to_str().expect("UTF-8"))]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && error.contains("say who may be paid"), "a default file: {error}");
}

#[cfg(unix)]
#[test]
fn a_link_is_judged_by_where_it_leads() {
    let (home, file) = own_configuration("");
    let elsewhere = tempfile::tempdir().expect("a temporary folder");
    let target = elsewhere.path().join("shared.toml");
    std::fs::write(&target, "timeout = \"3s\"\n").expect("the folder can be written");
    with_mode(&target, 0o600);
    std::fs::remove_file(&file).expect("the file is there");
    std::os::unix::fs::symlink(&target, &file).expect("a symlink");
    let home = [("XDG_CONFIG_HOME", home.path().to_str().expect("UTF-8"))];
    with_mode(elsewhere.path(), 0o777);
    let output = run(&["config", "show"], &home);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains(&format!("other users can write {}, so", elsewhere.path().display())), "{error}");
    with_mode(elsewhere.path(), 0o700);
    assert_eq!(shown("timeout", &[], &home).0, "3s");
}

#[cfg(unix)]
#[test]
fn init_writes_a_file_once_and_check_finds_it_good() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let file = home.path().join("clresolve/config.toml");
    let home = [("XDG_CONFIG_HOME", home.path().to_str().expect("UTF-8"))];
    assert_eq!(run(&["config", "init"], &home).status.code(), Some(0));
    let written = std::fs::read_to_string(&file).expect("the file is there");
    for checked in [&["config", "check"][..], &["serve", "--check-config"]] {
        let checked = run(checked, &home);
        let said = String::from_utf8_lossy(&checked.stderr).into_owned();
        assert_eq!(checked.status.code(), Some(0), "{said}");
        for part in ["the configuration is good\n", "clresolve: no [limits]: every payment will be refused\n"] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
    let again = run(&["config", "init"], &home);
    let error = format!("clresolve: {}: the file exists, and is left as it is\n", file.display());
    assert_eq!((again.status.code(), String::from_utf8_lossy(&again.stderr).into_owned()), (Some(2), error));
    assert_eq!(std::fs::read_to_string(&file).expect("the file is there"), written);
    std::fs::write(&file, "profile = \"agent-cards/9.9.9\"\n").expect("the file can be written");
    let bad = run(&["config", "check"], &home);
    let error = format!("clresolve: {}, key `profile`: no profile is called agent-cards/9.9.9\n", file.display());
    assert_eq!((bad.status.code(), String::from_utf8_lossy(&bad.stderr).into_owned()), (Some(2), error));
    let place = file.with_file_name("named.toml");
    let in_environment = [home[0], ("CLRESOLVE_CONFIG", place.to_str().expect("UTF-8"))];
    assert_eq!(run(&["config", "init"], &in_environment).status.code(), Some(0));
    assert_eq!(run(&["config", "check"], &in_environment).status.code(), Some(0), "the file that was written is read");
    let named = run(&["config", "check", &shipped("config.prod.toml").display().to_string()], &home);
    assert_eq!(named.status.code(), Some(0), "{}", String::from_utf8_lossy(&named.stderr));
}
