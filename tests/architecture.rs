//! The invariants of ARCHITECTURE.md that a reading of the sources can keep.

use std::fs;
use std::path::{Path, PathBuf};

/// Modules that do no I/O and read no clock.
const PURE: [&str; 23] = [
    "address",
    "bundle",
    "card",
    "check",
    "cid",
    "convert",
    "evidence",
    "flavour",
    "generate",
    "ledger",
    "lint",
    "manifest",
    "name",
    "plan",
    "profile",
    "project",
    "reason",
    "records",
    "report",
    "schema",
    "seal",
    "signature",
    "verdict",
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

/// The modules of the crate, each after all that it may import. `report` and the faces come last.
const ORDER: [&str; 38] = [
    "address",
    "cid",
    "clock",
    "digest",
    "name",
    "records",
    "telemetry",
    "text",
    "chain",
    "fetch",
    "reason",
    "card",
    "evidence",
    "verdict",
    "config",
    "sign",
    "signature",
    "manifest",
    "schema",
    "memory",
    "cache",
    "profile",
    "sandbox",
    "check",
    "flavour",
    "lint",
    "ledger",
    "generate",
    "convert",
    "plan",
    "seal",
    "bundle",
    "project",
    "resolve",
    "discover",
    "report",
    "http",
    "cli",
];

#[test]
fn imports_run_one_way() {
    let place = |module: &str| ORDER.iter().position(|known| *known == module);
    let mut offences = Vec::new();
    for (module, at, line) in code_lines() {
        if module == "lib" || module == "main" {
            continue;
        }
        let Some(own) = place(&module) else { panic!("{module} has no place in the order of modules") };
        for import in line.split("crate::").skip(1) {
            let name: String = import.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            if place(&name).is_some_and(|imported| imported > own) {
                offences.push(format!("{at}: {module} imports {name}"));
            }
        }
    }
    assert!(offences.is_empty(), "{offences:#?}");
}

#[test]
fn pure_modules_do_no_io_and_read_no_clock() {
    let offences = offences(|module| PURE.contains(&module), &IMPURE_WORDS);
    assert!(offences.is_empty(), "{offences:#?}");
}

#[test]
fn signing_and_verifying_do_no_io_and_read_no_clock() {
    let offences = offences(|module| module == "sign", &IMPURE_WORDS);
    let offences: Vec<_> = offences.into_iter().filter(|o| !o.starts_with("src/sign/file.rs")).collect();
    assert!(offences.is_empty(), "{offences:#?}");
}

/// What `bundle` calls in `chain`: those files ask nobody.
#[test]
fn the_replay_of_proofs_does_no_io() {
    const FILES: [&str; 9] = [
        "witness.rs",
        "answer.rs",
        "contracts.rs",
        "abi.rs",
        "proof/kept.rs",
        "proof/evm.rs",
        "proof/header.rs",
        "proof/state.rs",
        "proof/trie.rs",
    ];
    let words = [&IMPURE_WORDS[..], &["async ", ".await", "RpcClient", "alloy_transport", "alloy_provider"]].concat();
    let is_part = |offence: &String| FILES.iter().any(|file| offence.starts_with(&format!("src/chain/{file}")));
    let offences: Vec<_> = offences(|module| module == "chain", &words).into_iter().filter(is_part).collect();
    assert!(offences.is_empty(), "{offences:#?}");
    assert!(FILES.iter().all(|file| Path::new(env!("CARGO_MANIFEST_DIR")).join("src/chain").join(file).exists()));
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
    let is_egress =
        |offence: &String| ["src/fetch/egress.rs", "src/fetch/egress/"].iter().any(|p| offence.starts_with(p));
    let offences: Vec<_> = offences(|_| true, &words).into_iter().filter(|offence| !is_egress(offence)).collect();
    assert!(offences.is_empty(), "{offences:#?}");
}

/// `file:line: word` for each line of code in which a module that `applies` names a word.
fn offences(applies: impl Fn(&str) -> bool, words: &[&str]) -> Vec<String> {
    let lines = code_lines().into_iter().filter(|(module, _, _)| applies(module));
    let found = |(_, at, line): (String, String, String)| {
        words.iter().filter(|word| line.contains(**word)).map(|word| format!("{at}: {word}")).collect::<Vec<_>>()
    };
    lines.flat_map(found).collect()
}

/// Module, `file:line` and text of each line of code, without comments and unit tests.
fn code_lines() -> Vec<(String, String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    collect(&root.join("src"), &mut files);
    assert!(files.len() > 20, "the sources were not found");
    let mut lines = Vec::new();
    for file in files {
        let relative = file.strip_prefix(root).expect("below the root");
        let module =
            relative.iter().nth(1).and_then(|m| Path::new(m).file_stem()).and_then(|m| m.to_str()).unwrap_or("");
        let text = fs::read_to_string(&file).expect("a source file is readable");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in code.lines().enumerate() {
            let line = line.split("//").next().unwrap_or_default();
            lines.push((module.to_owned(), format!("{}:{}", relative.display(), number + 1), line.to_owned()));
        }
    }
    lines
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
