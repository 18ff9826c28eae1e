//! The switches of `mutant!` in the sources, beside the list that `tests/mutants/run` reads.

use std::collections::BTreeSet;
use std::fs;

use super::{entries, read, root};

#[test]
fn mutant_list_matches_switches_in_sources() {
    let list = read("tests/mutants/list");
    let rows = list.lines().filter(|line| !line.starts_with('#'));
    let listed: BTreeSet<String> = rows.map(|row| cells(row)[2].to_owned()).collect();
    let switches = switches();
    let unpaired: Vec<_> = listed.symmetric_difference(&switches).collect();
    assert!(unpaired.is_empty(), "{unpaired:?}");
}

/// A row: who | defence | switch | file of the test | test.
fn cells(row: &str) -> [&str; 5] {
    let cells: Vec<&str> = row.split(" | ").collect();
    cells.try_into().unwrap_or_else(|cells| panic!("not five cells: {cells:?}"))
}

fn switches() -> BTreeSet<String> {
    let mut folders = vec![root().join("src")];
    folders.extend(entries(&root().join("crates")).into_iter().map(|package| package.join("src")));
    let mut found = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for path in entries(&folder) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a source file is readable");
                let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
                let switches = code.flat_map(|line| line.split("mutant!(\"").skip(1));
                found.extend(switches.filter_map(|rest| rest.split('"').next()).map(str::to_owned));
            }
        }
    }
    found
}
