//! Checks that the committed bytecode of the sandbox's contracts is the compiler's output for their sources.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

#[test]
fn artifacts_are_what_the_sources_compile_to() {
    let compiled = match compile() {
        Ok(compiled) => compiled,
        Err(cause) if std::env::var("CI").as_deref() == Ok("true") => panic!("{cause}"),
        Err(cause) => {
            eprintln!("skipped: {cause}");
            return;
        }
    };

    let committed = fs::read(folder().join("artifacts.json")).expect("artifacts.json is committed");

    assert!(committed == compiled, "artifacts.json is stale: run `node compile.mjs` in {}", folder().display());
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("crates/sandbox/contracts")
}

/// Compiles the sources; an error says what is missing for that. A source that does not compile is a panic.
fn compile() -> Result<Vec<u8>, String> {
    run("node", &["--version"])?;
    if !folder().join("node_modules/solc").exists() {
        let installed = run("npm", &["ci", "--ignore-scripts", "--no-audit", "--no-fund"])?;
        if !installed.status.success() {
            return Err(format!("npm ci failed: {}", String::from_utf8_lossy(&installed.stderr)));
        }
    }
    let compiled = run("node", &["compile.mjs", "--stdout"])?;
    assert!(compiled.status.success(), "compile.mjs failed: {}", String::from_utf8_lossy(&compiled.stderr));
    Ok(compiled.stdout)
}

fn run(program: &str, arguments: &[&str]) -> Result<Output, String> {
    Command::new(program)
        .args(arguments)
        .current_dir(folder())
        .output()
        .map_err(|error| format!("{program} cannot be run: {error}"))
}
