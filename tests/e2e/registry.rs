//! Audits of the published registry: the report on all its names, of each release under each profile.
//!
//! `CLRESOLVE_AUDIT_OUT` names a folder for the reports in every form, so that a person can look at them
//! (`just audit-registry FOLDER`).

use std::env;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use serde_json::Value;
use tempfile::NamedTempFile;

use crate::binary::Exit;
use crate::world::{Net, text};

/// The forms of a report, each with its flag and file ending.
const FORMATS: [&str; 4] = ["json", "md", "csv", "html"];

/// Says in every report that the records and the chain are not those of mainnet.
const WORLD: &str = "world = \"published-cards-in-a-test-world\"\n";

/// An audit of all names of `net` under `profile`: its exit code and report. `release` names the files of the reports.
pub(crate) fn audit(net: &Net, release: &str, profile: &str) -> (Exit, Value) {
    let folder = env::var_os("CLRESOLVE_AUDIT_OUT").map(PathBuf::from);
    let stem = format!("{release}_under_{}", profile.replace('/', "-"));
    if let Some(folder) = &folder {
        for format in FORMATS {
            fs::create_dir_all(folder).expect("the folder of the reports");
            let file = folder.join(format!("{stem}.{format}"));
            run(net, profile, format, &["--out", text(&file)]);
        }
    }
    let (exit, report) = run(net, profile, "json", &[]);
    (exit, serde_json::from_slice(&report).expect("a report is JSON"))
}

fn run(net: &Net, profile: &str, format: &str, more: &[&str]) -> (Exit, Vec<u8>) {
    let names = file(&net.names.join("\n"));
    let config = file(WORLD);
    let arguments = ["audit", "--names", text(names.path()), "--format", format, "--profile", profile];
    let output = net.run(&[&arguments[..], &["--config", text(config.path())], more].concat());
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    (output.status.code().into(), output.stdout)
}

fn file(content: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a temporary file");
    file.write_all(content.as_bytes()).expect("a temporary file takes bytes");
    file
}
