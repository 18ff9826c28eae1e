//! Checks the documents: line lengths, links, and the paths and tests that they name. Runs their samples as a reader
//! would.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use clresolve_core::reason::ReasonCode;
use clresolve_resolver::config::Config;
use clresolve_resolver::sandbox::Sandbox;
use serde_json::Value;
use tempfile::TempDir;

#[path = "documents/demo.rs"]
mod demo;
#[path = "documents/mutants.rs"]
mod mutants;
#[path = "documents/named.rs"]
mod named;
#[path = "documents/operations.rs"]
mod operations;
#[path = "documents/purchases.rs"]
mod purchases;
#[path = "documents/reference.rs"]
mod reference;

use crate::support::documented_keys;
use crate::support::serve::serve;

/// The documents outside `docs/`.
const ELSEWHERE: [&str; 16] = [
    "README.md",
    "ARCHITECTURE.md",
    "SECURITY.md",
    "SECURITY_PROVENANCE.md",
    "RESOLUTION.md",
    "CHANGELOG.md",
    "clients/README.md",
    "clients/go/README.md",
    "clients/python/README.md",
    "clients/rust/README.md",
    "clients/typescript/README.md",
    "deploy/README.md",
    "manifests/README.md",
    "skills/clresolve/SKILL.md",
    "tests/e2e/README.md",
    "tests/purchases/README.md",
];

/// Most characters of a line outside tables.
const LINE: usize = 120;

/// The first lines of the samples that do not run, and why.
const NOT_RUN: &[(&str, &str, &str)] = &[
    ("README.md", "clresolve sandbox --demo", "tests/cli/documents/demo.rs runs the demo; cargo test runs these tests"),
    ("README.md", "clresolve serve --sandbox", "it runs until it is stopped, on a fixed port"),
    (
        "docs/audit.md",
        "clresolve audit --names names.txt --block 23000000 --resume audit.journal --out audit.md",
        "it needs a block of a chain that stands still; tests/cli/audit.rs kills audits",
    ),
    (
        "docs/audit.md",
        "clresolve audit --names names.txt --format json --out june.json",
        "takes a month of the real world",
    ),
    ("docs/pay.md", "clresolve sandbox --demo", "it runs until it is stopped; tests/cli/documents/demo.rs runs it"),
    ("docs/run.md", "clresolve serve --sandbox", "it runs until it is stopped, on a fixed port"),
    (
        "docs/embed.md",
        "clresolve verify summarizeagent.eth -o jws --sign-key sign.pem --sign-issuer https://clresolve.example",
        "the sandbox signs nothing",
    ),
    (
        "docs/embed.md",
        "clresolve verdict verify verdict.jws --jwks keys.json --name summarizeagent.eth --issuer https://clresolve.example",
        "needs a signed verdict of the real world",
    ),
];

/// Commands that a sample may run without `--sandbox`, because they query no endpoint, or only the sample's sandbox.
const OFFLINE: [&str; 17] = [
    "audit render ",
    "audit resolution ",
    "audit sign ",
    "audit verify ",
    "bundle verify",
    "explain",
    "signature key new",
    "name",
    "sandbox --list",
    "sandbox --publish",
    "--config sandbox.toml",
    "sandbox --receipts",
    "cards generate",
    "signature key",
    "signature sign",
    "signature verify",
    "--version",
];

const GOOD: &str = "summarizeagent.eth";
const BAD: &str = "entry-version.eth";
const BAD_CODE: &str = "entry-version-noncompliant";

/// Where the samples look for the daemon.
const DAEMON: &str = "http://127.0.0.1:8402";

/// A busy machine is no defect.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn lines_outside_tables_and_headings_are_short() {
    let is_row = |line: &str| ["|", "> |", "#"].iter().any(|start| line.starts_with(start));
    let mut long = Vec::new();
    for file in documents() {
        let text = read(&file);
        let lines = text.lines().enumerate().filter(|(_, line)| !is_row(line) && line.chars().count() > LINE);
        long.extend(lines.map(|(number, _)| format!("{file}:{}", number + 1)));
    }
    assert!(long.is_empty(), "{long:#?}");
}

/// The keys of the configuration, as SECTION.KEY.
fn configuration_keys() -> BTreeSet<String> {
    documented_keys::documented().iter().map(documented_keys::ConfigKeyDocumentation::key_path).collect()
}

#[test]
fn explanations_name_keys_that_the_configuration_has() {
    let keys = configuration_keys();
    let parts = || keys.iter().filter_map(|known| known.split_once('.'));
    let mut assignments = 0;
    for entry in ReasonCode::ALL.iter().map(|code| code.entry()) {
        let (code, text) = (entry.title, entry.explanation);
        let mut before: Vec<&str> = text.split(" = ").collect();
        before.pop();
        for key in before.iter().filter_map(|text| text.rsplit([' ', '`', '(']).next()) {
            let is_known = keys.contains(key) || parts().any(|(_, name)| name == key);
            assert!(is_known, "{code} sets {key}, which the configuration does not have");
            assignments += 1;
        }
        let is_of_key = |letter: char| letter.is_ascii_lowercase() || letter == '-' || letter == '.';
        for word in text.split(|letter| !is_of_key(letter)).map(|word| word.trim_matches('.')) {
            let Some((first, _)) = word.split_once('.') else { continue };
            assert!(parts().all(|(section, _)| section != first) || keys.contains(word), "{code} names {word}");
        }
    }
    assert!(assignments > 0);
}

#[test]
fn links_lead_to_files_and_headings() {
    let mut broken = Vec::new();
    for file in documents() {
        for target in links(&prose(&read(&file))) {
            if target.starts_with("https://") || target.starts_with("crate::") {
                continue;
            }
            let (path, heading) = target.split_once('#').unwrap_or((&target, ""));
            let path = if path.is_empty() { root().join(&file) } else { beside(&file).join(path) };
            let leads = path.exists() && (heading.is_empty() || headings(&path).contains(heading));
            if !leads {
                broken.push(format!("{file}: {target}"));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_document_is_linked() {
    let mut linked = BTreeSet::new();
    for file in documents() {
        for target in links(&read(&file)) {
            let path = target.split('#').next().unwrap_or_default();
            if let Ok(path) = beside(&file).join(path).canonicalize() {
                linked.insert(path);
            }
        }
    }
    // A reader begins there.
    linked.insert(canonical("README.md"));
    let lonely: Vec<_> = documents().into_iter().filter(|file| !linked.contains(&canonical(file))).collect();
    assert!(lonely.is_empty(), "no document links to {lonely:?}");
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder is readable");
    entries.map(|entry| entry.expect("an entry is readable").path()).collect()
}

#[test]
fn the_verdict_of_the_readme_is_real() {
    let text = read("README.md");
    let shown: Value = serde_json::from_str(&sample("README.md", "json").text).expect("the verdict is JSON");
    let command = "clresolve --sandbox -o json entry-record-differs.eth";
    assert!(text.contains(&format!("`{command}`")), "the command is not named");
    let real: Value = serde_json::from_slice(&shell(&workplace(), command).stdout).expect("JSON");
    if let Some(place) = difference(&shown, &real) {
        panic!("the verdict of the README differs at {place}");
    }
}

#[test]
fn only_the_listed_samples_do_not_run() {
    let mut found = Vec::new();
    for file in documents() {
        for block in blocks(&file).into_iter().filter(|block| block.note == "elsewhere") {
            let first = block.text.lines().next().and_then(|line| line.strip_prefix("$ ")).unwrap_or_default();
            found.push((file.clone(), first.to_owned()));
        }
    }
    let listed: Vec<_> = NOT_RUN.iter().map(|(file, first, _)| ((*file).to_owned(), (*first).to_owned())).collect();
    let sorted = |mut list: Vec<(String, String)>| {
        list.sort();
        list
    };
    assert_eq!(sorted(found), sorted(listed));
}

#[test]
fn the_data_samples_are_valid() {
    let folder = workplace();
    shell(&folder, "umask 077; printf '%064d' 1 > mac.key");
    for file in documents() {
        for block in blocks(&file) {
            let at = format!("{file}:{}", block.line);
            match block.language.as_str() {
                "json" => drop(serde_json::from_str::<Value>(&block.text).unwrap_or_else(|e| panic!("{at}: {e}"))),
                "toml" => {
                    fs::write(folder.path().join("sample.toml"), &block.text).expect("the folder can be written");
                    let output = shell(&folder, "clresolve serve --check-config --config sample.toml");
                    assert_eq!(output.status.code(), Some(0), "{at}: {}", String::from_utf8_lossy(&output.stderr));
                }
                _ => {}
            }
        }
    }
}

#[test]
fn the_yaml_sample_generates_a_card() {
    let folder = workplace();
    let yaml = sample("docs/publish.md", "yaml");
    fs::write(folder.path().join(&yaml.note), &yaml.text).expect("the folder can be written");
    let output = shell(&folder, &format!("clresolve cards generate --from {}", yaml.note));
    let card: Value = serde_json::from_slice(&output.stdout).expect("a card");
    assert_eq!(card["url"], "https://orloj.example/v1/agent-systems/research-system/a2a");
}

#[test]
fn the_shell_samples_print_what_the_documents_show() {
    let files: Vec<_> = documents().into_iter().filter(|file| !steps(file).is_empty()).collect();
    assert!(files.len() >= 6, "samples were found in {files:?} alone");
    let offences: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> = files.iter().map(|file| scope.spawn(|| run_samples(file))).collect();
        running.into_iter().flat_map(|run| run.join().expect("a run does not panic")).collect()
    });
    assert!(offences.is_empty(), "{}", offences.join("\n\n"));
}

/// It must end with 0 for [`GOOD`], and not for [`BAD`], of which it must say why, or without a daemon.
#[tokio::test(flavor = "multi_thread")]
async fn the_typescript_sample_opens_for_a_trusted_agent_alone() {
    if Command::new("node").arg("--version").output().is_err() {
        println!("skipped: there is no node");
        return;
    }
    let mut samples = blocks("docs/pay.md").into_iter().filter(|block| block.language == "js");
    let sample = samples.find(|block| block.text.contains("/v1/verdicts/")).expect("a sample that asks for a verdict");
    let folder = workplace();
    let run = |daemon: &str, name: &str| {
        let script = folder.path().join("sample.mjs");
        run_program("node".as_ref(), &script, &sample.text, &[(DAEMON, daemon), (GOOD, name)])
    };
    let daemon = Daemon::start(|_| {}).await;
    let allowed = run(&daemon.url, GOOD);
    assert_eq!(allowed.status.code(), Some(0), "{}", String::from_utf8_lossy(&allowed.stderr));
    let denied = run(&daemon.url, BAD);
    let said = String::from_utf8_lossy(&denied.stderr);
    assert!(!denied.status.success() && said.contains(BAD_CODE), "{said}");
    let url = daemon.url.clone();
    drop(daemon);
    assert!(!run(&url, GOOD).status.success());
}

/// Writes a sample to `script`, with each text that stands for something of the reader's replaced, and runs it.
fn run_program(interpreter: &Path, script: &Path, text: &str, replaced: &[(&str, &str)]) -> Output {
    let text = replaced.iter().fold(text.to_owned(), |text, (shown, real)| {
        assert!(text.contains(shown), "the sample does not name {shown}");
        text.replace(shown, real)
    });
    fs::write(script, text).expect("the folder can be written");
    let mut command = Command::new(interpreter);
    for proxy in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env_remove(proxy);
    }
    command.env("PAYER_KEY", purchases::PAYER_KEY).env("PYTHONPATH", root().join("clients/python"));
    command.arg(script).stdin(Stdio::null()).output().expect("the interpreter runs")
}

/// The daemon on the embedded world. It ends with the test.
struct Daemon {
    url: String,
    process: Child,
    _folder: TempDir,
    _sandbox: Sandbox,
}

impl Daemon {
    /// Starts it, and asks about both names, so that the samples' time limits meet a warm cache.
    async fn start(change: impl FnOnce(&mut Config)) -> Self {
        let (folder, sandbox) = (workplace(), Sandbox::start().await.expect("the sandbox starts"));
        let file = folder.path().join("clresolve.toml");
        let mut config = sandbox.config();
        (config.gate.deadline, config.timeout) = (PATIENCE, PATIENCE);
        change(&mut config);
        config.save(&file).expect("the folder can be written");
        let served = serve(&["--listen", "127.0.0.1:0", "--config", &file.display().to_string()], []);
        let (process, address) = served.unheard();
        let url = format!("http://{address}");
        for name in [GOOD, BAD] {
            reqwest::get(format!("{url}/v1/verdicts/{name}")).await.expect("the daemon answers");
        }
        Self { url, process, _folder: folder, _sandbox: sandbox }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A command of a document, and what the document shows of its end.
struct Step {
    at: String,
    command: String,
    code: i32,
    shown: Vec<String>,
}

impl Step {
    fn shows(&self, printed: &[&str]) -> bool {
        let shown: Vec<&str> = self.shown.iter().map(String::as_str).collect();
        shows(&shown, printed)
    }
}

/// A command that runs in the background until the samples end.
struct Background {
    process: Child,
    out: Receiver<String>,
}

impl Background {
    fn start(folder: &TempDir, command: &str) -> Self {
        let mut command = in_shell(folder, &format!("exec {command}"));
        let mut process = command.stdout(Stdio::piped()).spawn().expect("the shell runs");
        let lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let (sender, out) = mpsc::channel();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { process, out }
    }

    /// Waits until the printed lines are `enough` or the output ends, and returns them.
    fn printed_when(&self, enough: impl Fn(&[&str]) -> bool) -> Vec<String> {
        let mut lines = Vec::new();
        while !enough(&lines.iter().map(String::as_str).collect::<Vec<_>>()) {
            let Ok(line) = self.out.recv_timeout(PATIENCE) else { break };
            lines.push(line);
        }
        lines
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs the commands of a document in one folder, one after the other. What is wrong with them.
fn run_samples(file: &str) -> Vec<String> {
    let folder = workplace();
    let (mut offences, mut running) = (Vec::new(), Vec::new());
    for step in steps(file) {
        if let Some(command) = step.command.strip_suffix(" &") {
            let started = Background::start(&folder, command);
            let printed = started.printed_when(|lines| step.shows(lines));
            if !step.shows(&printed.iter().map(String::as_str).collect::<Vec<_>>()) {
                offences.push(format!("{}: {} prints\n{}", step.at, step.command, printed.join("\n")));
            }
            running.push(started);
            continue;
        }
        let output = shell(&folder, &step.command);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let printed: Vec<&str> = out.lines().map(str::trim_end).collect();
        if output.status.code() != Some(step.code) || !step.shows(&printed) {
            offences.push(format!("{}: {} ends with {}\n{out}{err}", step.at, step.command, output.status));
        }
    }
    offences
}

/// The commands of a document that run.
fn steps(file: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for block in blocks(file).into_iter().filter(|block| block.language == "console" && block.note != "elsewhere") {
        let first = steps.len();
        let mut lines = block.text.lines().enumerate();
        while let Some((number, line)) = lines.next() {
            let Some(command) = line.strip_prefix("$ ") else {
                let step = steps[first..].last_mut().expect("a sample begins with a command");
                step.shown.push(line.trim_end().to_owned());
                continue;
            };
            let mut command = command.to_owned();
            while let Some(begun) = command.strip_suffix('\\') {
                let (_, more) = lines.next().expect("a line that goes on has a next one");
                command = format!("{begun}{}", more.trim_start());
            }
            let (command, code) = command.split_once("  # exit code ").unwrap_or((&command, "0"));
            let command = command.replace("cargo run --release --", "clresolve");
            let at = format!("{file}:{}", block.line + number + 1);
            assert!(asks_no_real_world(&command), "{at} would ask the real world: {command}");
            steps.push(Step { at, command, code: code.parse().expect("an exit code"), shown: Vec::new() });
        }
    }
    steps
}

fn asks_no_real_world(command: &str) -> bool {
    command.split("clresolve ").skip(1).all(|arguments| {
        arguments.contains("--sandbox") || OFFLINE.iter().any(|offline| arguments.starts_with(offline))
    })
}

/// Whether the lines are those that are shown: `…` is any text, and alone in a line any number of lines.
fn shows(shown: &[&str], printed: &[&str]) -> bool {
    match (shown, printed) {
        ([], printed) => printed.is_empty(),
        (["…", rest @ ..], printed) => (0..=printed.len()).any(|skipped| shows(rest, &printed[skipped..])),
        ([line, rest @ ..], [first, others @ ..]) => shows_line(line, first) && shows(rest, others),
        (_, []) => false,
    }
}

fn shows_line(shown: &str, printed: &str) -> bool {
    let Some((head, tail)) = shown.split_once('…') else { return shown == printed };
    let Some(rest) = printed.strip_prefix(head) else { return false };
    rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| shows_line(tail, &rest[at..]))
}

#[test]
fn what_is_left_out_is_any_text_and_nothing_else_is() {
    assert!(shows(&["a …c", "…", "z"], &["a bbc", "x", "y", "z"]));
    assert!(shows(&["…"], &[]));
    assert!(!shows(&["a …c"], &["a bb"]));
    assert!(!shows(&["a"], &["a", "b"]));
    assert!(!shows(&["a", "b"], &["a"]));
}

/// Runs a command line as a reader would, with the binary on the `PATH` and a home of its own.
fn shell(folder: &TempDir, command: &str) -> Output {
    in_shell(folder, command).output().expect("the shell runs")
}

fn in_shell(folder: &TempDir, command: &str) -> Command {
    let binary = Path::new(env!("CARGO_BIN_EXE_clresolve")).parent().expect("it is in a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .current_dir(folder.path())
        .env_clear()
        .env("PATH", format!("{}:{path}", binary.display()))
        .env("HOME", folder.path())
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null());
    shell
}

fn workplace() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// A fenced sample: ```` ```language note ````.
struct Block {
    line: usize,
    language: String,
    note: String,
    text: String,
}

/// The first sample of a document in this language.
fn sample(file: &str, language: &str) -> Block {
    let mut found = blocks(file).into_iter().filter(|block| block.language == language);
    found.next().unwrap_or_else(|| panic!("{file} has no sample in {language}"))
}

fn blocks(file: &str) -> Vec<Block> {
    let text = read(file);
    let (mut blocks, mut open) = (Vec::new(), None::<Block>);
    for (number, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(info), None) => {
                let (language, note) = info.split_once(' ').unwrap_or((info, ""));
                let (language, note) = (language.to_owned(), note.to_owned());
                open = Some(Block { line: number + 1, language, note, text: String::new() });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => block.text.extend([line, "\n"]),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{file}: a sample without an end");
    blocks
}

/// The text without its samples.
fn prose(text: &str) -> String {
    text.split("```").step_by(2).collect()
}

/// The targets of the links in a text.
fn links(text: &str) -> Vec<String> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target.to_owned()).collect()
}

/// The headings of a document, spelt as links to them are.
fn headings(path: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let slug = |heading: &str| {
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.collect::<String>().to_lowercase().replace(' ', "-")
    };
    prose(&text).lines().filter(|line| line.starts_with('#')).map(|line| slug(line.trim_matches(['#', ' ']))).collect()
}

/// The first place in `shown` that `real` does not have alike; `real` may hold more members.
fn difference(shown: &Value, real: &Value) -> Option<String> {
    match (shown, real) {
        (Value::Object(shown), Value::Object(real)) => shown.iter().find_map(|(key, value)| {
            let Some(other) = real.get(key) else { return Some(format!("/{key}")) };
            difference(value, other).map(|place| format!("/{key}{place}"))
        }),
        (Value::Array(shown), Value::Array(real)) if shown.len() == real.len() => {
            let mut pairs = shown.iter().zip(real).enumerate();
            pairs.find_map(|(at, (value, other))| difference(value, other).map(|place| format!("/{at}{place}")))
        }
        _ => (shown != real).then(String::new),
    }
}

/// All documents, by their path from the root.
fn documents() -> Vec<String> {
    let mut files: Vec<String> = ELSEWHERE.map(str::to_owned).into();
    for folder in ["docs", "docs/decisions", "docs/reference"] {
        let entries = fs::read_dir(root().join(folder)).expect("a folder of documents");
        let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"));
        files.extend(names.filter(|name| name.ends_with(".md")).map(|name| format!("{folder}/{name}")));
    }
    files
}

fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The folder of a document.
fn beside(file: &str) -> PathBuf {
    root().join(file).parent().expect("a file is in a folder").to_owned()
}

fn canonical(file: &str) -> PathBuf {
    root().join(file).canonicalize().expect("a document exists")
}
