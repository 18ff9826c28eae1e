//! Audits of the published registry: the report on all its names, of each release under each profile.
//!
//! `CLRESOLVE_AUDIT_OUT` names a folder for the reports in every form, so that a person can look at them
//! (`just audit-registry FOLDER`).

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary::Exit;
use crate::world::{Net, text};

/// The published manifest, which every origin serves.
const MANIFEST: &str = "https://commandlayer.org/agent-cards/meta/manifest.json";

/// Files of an audit, in its folder.
const NAMES: &str = "names.txt";
const CONFIG: &str = "config.toml";

/// What an audit should find.
pub(crate) struct Expected {
    /// The profile.
    pub(crate) profile: &'static str,
    /// Names that are trusted, untrusted, indeterminate, and those of which two sources differ.
    pub(crate) counts: [u64; 4],
    /// How many more would be trusted under which other profile.
    pub(crate) near_misses: &'static [(&'static str, u64)],
    /// Effect, code and number of names of each reason, as the report orders them.
    pub(crate) reasons: &'static [(&'static str, &'static str, u64)],
}

/// A report, in JSON and in Markdown.
pub(crate) struct Report {
    json: Value,
    markdown: String,
}

/// Audits all names of `net` under each profile: the reports, whose counts and reasons are the expected ones. `release`
/// names the files.
pub(crate) fn audit<const N: usize>(net: &Net, release: &str, expected: [Expected; N]) -> [Report; N] {
    let scratch = TempDir::new().expect("a temporary folder");
    let wanted = env::var_os("CLRESOLVE_AUDIT_OUT").map(PathBuf::from);
    let folder = wanted.as_deref().unwrap_or_else(|| scratch.path());
    let formats: &[&str] = if wanted.is_some() { &["json", "md", "csv", "html"] } else { &["json", "md"] };
    fs::create_dir_all(folder).expect("the folder of the reports");
    let write = |name: &str, content: &str| fs::write(scratch.path().join(name), content).expect("a temporary folder");
    write(NAMES, &net.names.join("\n"));
    // Every report says that its chain is not mainnet's.
    let world = format!("world = \"published-cards-in-a-test-world\"\nchain-id = {}\n", net.chain_id);
    write(CONFIG, &format!("{world}rpc = [{:?}]\n", net.rpc()));

    expected.map(|expected| {
        let stem = format!("{release}-under-{}", expected.profile.replace('/', "-"));
        let file = |format: &str| folder.join(format!("{stem}.{format}"));
        for format in formats {
            let exit = run(net, scratch.path(), expected.profile, format, &file(format));
            assert_eq!(exit, expected.exit(), "{stem}");
        }
        let report = Report::read(&file("json"), &file("md"));
        report.holds(&expected);
        report
    })
}

fn run(net: &Net, folder: &Path, profile: &str, format: &str, out: &Path) -> Exit {
    let trust_root = net.trust_root();
    let mut command = net.command(trust_root.path());
    command.current_dir(folder).args(["audit", "--names", NAMES, "--registry", MANIFEST, "--config", CONFIG]);
    command.args(["--profile", profile, "--format", format, "--out", text(out)]);
    let output = command.output().expect("the binary runs");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    output.status.code().into()
}

impl Expected {
    fn exit(&self) -> Exit {
        match self.counts {
            [_, 0, 0, _] => Exit::Trusted,
            [_, 0, _, _] => Exit::Indeterminate,
            _ => Exit::Untrusted,
        }
    }
}

impl Report {
    fn read(json: &Path, markdown: &Path) -> Self {
        let text = |file: &Path| fs::read_to_string(file).expect("the audit has written it");
        Self { json: serde_json::from_str(&text(json)).expect("a report is JSON"), markdown: text(markdown) }
    }

    /// Checks that the report in Markdown has these lines.
    pub(crate) fn has_lines(&self, lines: &[&str]) {
        for line in lines {
            assert!(self.markdown.lines().any(|own| own == *line), "no line\n{line}\nin\n{}", self.markdown);
        }
    }

    fn holds(&self, expected: &Expected) {
        let report = &self.json;
        assert_eq!((&report["complete"], &report["scope"]["depth"]), (&json!(true), &json!("schemas")));
        assert_eq!(report["scope"]["profile"]["id"], expected.profile);
        let counts = ["trusted", "untrusted", "indeterminate", "drifting"].map(|what| &report["counts"][what]);
        assert_eq!(counts.map(|count| count.as_u64().expect("a number")), expected.counts, "{}", expected.profile);
        let near_misses: Value = expected.near_misses.iter().map(|(profile, names)| (*profile, *names)).collect();
        assert_eq!(report["counts"]["near_misses"], near_misses, "{}", expected.profile);
        let groups: Vec<_> = report["reasons"]
            .as_array()
            .expect("an array")
            .iter()
            .map(|group| {
                let text = |key: &str| group[key].as_str().expect("a text");
                (text("effect"), text("code"), group["names"].as_u64().expect("a number"))
            })
            .collect();
        assert_eq!(groups, expected.reasons, "{}", expected.profile);
        // The manifest lists two agents whose cards are in no release.
        let entries = report["registry"]["findings"].as_array().expect("an array").iter();
        let absent = entries.filter(|finding| finding["finding"] == "not-on-chain").map(|finding| &finding["name"]);
        assert_eq!(absent.collect::<Vec<_>>(), ["authorizeagent.eth", "shipagent.eth"]);
        let rows = report["rows"].as_array().expect("an array");
        assert_eq!(rows.len() as u64, expected.counts[..3].iter().sum::<u64>());
        // No defect of the registry is one that a record proven by a CID mends.
        assert!(rows.iter().all(|row| row["txt"] == json!([])));
        assert_eq!(report["resolution"].as_array().map(Vec::len), Some(expected.counts[1] as usize));
    }

    /// The row of a name: state, codes that fail or leave it undecided, and what the six pairs of sources say.
    pub(crate) fn row(&self, name: &str) -> (String, Vec<String>, [&str; 6]) {
        let rows = self.json["rows"].as_array().expect("an array");
        let row = rows.iter().find(|row| row["input"] == name).unwrap_or_else(|| panic!("no row of {name}"));
        let reasons = row["reasons"].as_array().expect("an array").iter().filter(|reason| reason["effect"] != "warn");
        let mut codes: Vec<String> =
            reasons.map(|reason| reason["code"].as_str().expect("a text").to_owned()).collect();
        codes.dedup();
        let pairs = ["txt_https", "txt_ipfs", "https_ipfs", "txt_card", "card_manifest", "schemas_manifest"];
        let pairs = pairs.map(|pair| row["drift"][pair].as_str().expect("a text"));
        (row["state"].as_str().expect("a text").to_owned(), codes, pairs)
    }

    /// The decision and the reason of a name's draft for the governance log.
    pub(crate) fn draft(&self, name: &str) -> (&str, &str) {
        let drafts = self.json["resolution"].as_array().expect("an array");
        let draft =
            drafts.iter().find(|draft| draft["subject"] == name).unwrap_or_else(|| panic!("no draft for {name}"));
        (draft["decision"].as_str().expect("a text"), draft["reason"].as_str().expect("a text"))
    }
}
