//! The invariants of ARCHITECTURE.md that a reading of the sources can keep.

use std::fs;
use std::path::{Path, PathBuf};

/// Modules that do no I/O and read no clock.
const PURE: [&str; 14] = [
    "address", "card", "check", "cid", "evidence", "lint", "manifest", "name", "plan", "profile", "reason", "records",
    "schema", "verdict",
];

/// What a pure module must not name.
const IMPURE_WORDS: [&str; 10] = [
    "tokio::",
    "reqwest",
    "std::fs",
    "std::net::Tcp",
    "std::env",
    "SystemTime",
    "Instant::now",
    "Timestamp::now",
    "crate::fetch",
    "crate::resolve",
];

#[test]
fn pure_modules_do_no_io_and_read_no_clock() {
    let offences = offences(|module| PURE.contains(&module), &IMPURE_WORDS);
    assert!(offences.is_empty(), "{offences:#?}");
}

#[test]
fn the_command_line_does_not_reach_behind_the_resolver() {
    let words = ["crate::fetch", "crate::chain::rpc", "reqwest", "alloy_provider"];
    let offences = offences(|module| module == "cli", &words);
    assert!(offences.is_empty(), "{offences:#?}");
}

#[test]
fn the_daemon_reaches_the_world_through_the_resolver_alone() {
    let words = ["crate::fetch", "crate::chain", "crate::check", "crate::evidence", "reqwest", "alloy_"];
    let offences = offences(|module| module == "http", &words);
    assert!(offences.is_empty(), "{offences:#?}");
}

#[test]
fn only_the_egress_module_opens_outbound_sockets() {
    let words = ["reqwest::Client", "ClientBuilder", "TcpStream::connect", "UdpSocket"];
    let offences: Vec<_> =
        offences(|_| true, &words).into_iter().filter(|o| !o.starts_with("src/fetch/egress.rs")).collect();
    assert!(offences.is_empty(), "{offences:#?}");
}

/// `file:line: word` for each line of code, outside unit tests, in which a module that `applies` names a word.
fn offences(applies: impl Fn(&str) -> bool, words: &[&str]) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    collect(&root.join("src"), &mut files);
    assert!(files.len() > 20, "the sources were not found");
    let mut found = Vec::new();
    for file in files {
        let relative = file.strip_prefix(root).expect("below the root");
        let module =
            relative.iter().nth(1).and_then(|m| Path::new(m).file_stem()).and_then(|m| m.to_str()).unwrap_or("");
        if !applies(module) {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a source file is readable");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in code.lines().enumerate() {
            let line = line.split("//").next().unwrap_or_default();
            for word in words.iter().filter(|word| line.contains(**word)) {
                found.push(format!("{}:{}: {word}", relative.display(), number + 1));
            }
        }
    }
    found
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a source folder is readable") {
        let path = entry.expect("an entry is readable").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            files.push(path);
        }
    }
}
