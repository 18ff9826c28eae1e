//! What documents name in backticks: paths of the repository, and its tests.

use std::fs;

use super::{beside, documents, prose, read, root};

/// What stands in a path for several names, or ends it.
const NO_NAME: [char; 5] = [' ', '*', '{', '<', '…'];

/// The changelog tells of files that are gone.
#[test]
fn every_path_that_a_document_names_exists() {
    let (mut named, mut missing) = (0, Vec::new());
    for document in documents().into_iter().filter(|document| document != "CHANGELOG.md") {
        let text = prose(&read(&document));
        for path in text.split('`').skip(1).step_by(2).filter_map(path) {
            named += 1;
            if !root().join(path).exists() && !beside(&document).join(path).exists() {
                missing.push(format!("{document}: {path}"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(named > 100, "only {named} paths were found");
}

/// The path in a span: it begins with a folder of the root. Of a pattern it is the folder before it.
fn path(span: &str) -> Option<&str> {
    let (folder, _) = span.split_once('/')?;
    let is_ours = !folder.starts_with('.') && !folder.is_empty() && root().join(folder).is_dir();
    let end = span.find(NO_NAME).unwrap_or(span.len());
    let is_pattern = span[end..].starts_with(|next| next != ' ');
    let end = if is_pattern { span[..end].rfind('/')? } else { end };
    is_ours.then_some(&span[..end])
}

#[test]
fn a_path_begins_in_the_repository_and_ends_before_a_pattern() {
    assert_eq!(path("tests/mutants/run stale"), Some("tests/mutants/run"));
    assert_eq!(path("schemas/agent.card.base*.schema.json"), Some("schemas"));
    assert_eq!(
        (path("tests"), path("/v1/gate/NAME"), path(".well-known/agent.json"), path("go/client.go")),
        (None, None, None, None)
    );
}

#[test]
fn every_test_that_the_threat_model_names_exists() {
    let (named, offences) = missing_tests(&read("docs/threat-model.md"));
    assert!(offences.is_empty(), "{offences:#?}");
    assert!(named > 100, "only {named} names of tests were found");
}

#[test]
fn every_test_that_keeps_an_invariant_exists() {
    let text = read("ARCHITECTURE.md");
    let invariants = text.split("\n## ").find(|section| section.starts_with("Invariants")).expect("a section");
    let (named, offences) = missing_tests(invariants);
    assert!(offences.is_empty(), "{offences:#?}");
    assert!(named > 0, "no name of a test was found");
}

/// How many tests the last cells of rows name, and which of them are not there.
fn missing_tests(text: &str) -> (usize, Vec<String>) {
    let (mut named, mut offences) = (0, Vec::new());
    for passage in text.split("\n\n").flat_map(rows) {
        let mut file = None;
        for span in last_cell(passage).split('`').skip(1).step_by(2) {
            if is_source(span) {
                file = fs::read_to_string(root().join(span)).ok();
                if file.is_none() {
                    offences.push(format!("{span} does not exist"));
                }
            } else if let Some(tests) = &file {
                named += 1;
                if !tests.contains(&format!("fn {span}(")) && !tests.contains(&format!(" = \"{span}\"")) {
                    offences.push(format!("{span} is named in: {passage}"));
                }
            }
        }
    }
    (named, offences)
}

/// The tests of a row stand there.
fn last_cell(row: &str) -> &str {
    row.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap_or(row)
}

/// The rows of a table, or the passage as it is.
fn rows(passage: &str) -> Vec<&str> {
    if passage.starts_with('|') { passage.lines().collect() } else { vec![passage] }
}

fn is_source(span: &str) -> bool {
    ["tests/", "src/", "crates/", "clients/"].iter().any(|folder| span.starts_with(folder)) && !span.ends_with('/')
}
