//! The mutants: their list, the switches in the sources, the table that the run made, and which of them a run has killed as
//! they stand.

use std::collections::{BTreeMap, BTreeSet};
use std::{env, fs};

use clresolve::digest::Digest;
use quote::ToTokens as _;
use syn::visit::Visit;

use super::named::tests_of;
use super::{entries, read, root};

/// Tests that rows of the threat model name and that kill no mutant. A test that is named anew kills one.
const WITHOUT_MUTANT: usize = 272;

/// A row of the list.
#[derive(Clone, Debug)]
struct Mutant {
    cells: [String; 5],
}

impl Mutant {
    fn listed() -> Vec<Self> {
        let text = read("tests/mutants/list");
        let rows = text.lines().filter(|line| !line.starts_with('#'));
        rows.map(|line| Self { cells: cells(line) }).collect()
    }

    fn switch(&self) -> &str {
        &self.cells[2]
    }

    /// As the document shows it.
    fn row(&self) -> String {
        let [who, defence, switch, file, test] = &self.cells;
        format!("| {who} | {defence} | `{switch}` | `{file}`: `{test}` |")
    }

    /// What says that it was killed as it stands: the digest of the functions that have the switch, and of the test.
    fn stamp(&self, sources: &BTreeMap<String, Vec<String>>) -> String {
        let [_, _, switch, file, test] = &self.cells;
        let wanted = format!("mutant ! (\"{switch}\")");
        let switched = sources.values().flatten().filter(|item| item.contains(&wanted));
        let text = read(file);
        let tests: Vec<String> = if file.ends_with(".toml") {
            let named = format!(" = \"{test}\"");
            text.split("\n[[").filter(|block| block.contains(&named)).map(str::to_owned).collect()
        } else {
            let named = format!("fn {test} (");
            items(&text).into_iter().filter(|item| item.contains(&named)).collect()
        };
        let parts: Vec<&str> = switched.chain(&tests).map(String::as_str).collect();
        let digest = Digest::of(parts.join("\n").as_bytes()).hex();
        format!("{switch} | {file} | {test} | {}", &digest[..16])
    }
}

fn cells(line: &str) -> [String; 5] {
    let cells: Vec<String> = line.split(" | ").map(str::to_owned).collect();
    cells.try_into().unwrap_or_else(|cells| panic!("not five cells: {cells:?}"))
}

/// The functions of a source file, and whatever else has code of its own, as tokens: white space and comments do not count.
fn items(text: &str) -> Vec<String> {
    #[derive(Default)]
    struct Items(Vec<String>);

    impl<'ast> Visit<'ast> for Items {
        fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
            self.0.push(item.to_token_stream().to_string());
        }

        fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
            self.0.push(item.to_token_stream().to_string());
        }

        fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
            self.0.push(item.to_token_stream().to_string());
        }

        fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
            self.0.push(item.to_token_stream().to_string());
        }

        fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
            self.0.push(item.to_token_stream().to_string());
        }
    }

    let mut found = Items::default();
    found.visit_file(&syn::parse_file(text).expect("Rust"));
    found.0
}

/// The items of each source file that has a switch.
fn sources() -> BTreeMap<String, Vec<String>> {
    let mut folders = vec![root().join("src")];
    folders.extend(entries(&root().join("crates")).into_iter().map(|package| package.join("src")));
    let mut found = BTreeMap::new();
    while let Some(folder) = folders.pop() {
        for path in entries(&folder) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a source file is readable");
                if text.contains("mutant!(\"") {
                    found.insert(path.display().to_string(), items(&text));
                }
            }
        }
    }
    found
}

/// The switches of `mutant!` in items.
fn switches(sources: &BTreeMap<String, Vec<String>>) -> BTreeSet<String> {
    let all = sources.values().flatten().flat_map(|item| item.split("mutant ! (\"").skip(1));
    all.filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
}

/// The rows of the first table behind a heading.
fn table<'t>(text: &'t str, heading: &str) -> Vec<&'t str> {
    let (_, rest) = text.split_once(heading).expect("the heading is there");
    let rows = rest.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    rows.skip(2).collect()
}

/// The list that the run of mutants reads, the switches in the sources and the table that the run made.
#[test]
fn the_table_of_mutants_is_that_of_the_switches() {
    let listed = Mutant::listed();
    let named: BTreeSet<String> = listed.iter().map(|mutant| mutant.switch().to_owned()).collect();
    assert_eq!(named, switches(&sources()), "tests/mutants/list and the sources");
    assert!(named.len() >= 40, "{} mutants", named.len());
    let text = read("docs/threat-model.md");
    assert!(text.contains("<!-- end of mutants -->"), "the table has an end");
    let made: Vec<String> = listed.iter().map(Mutant::row).collect();
    assert_eq!(table(&text, "<!-- mutants -->"), made, "run `just mutants`");
}

/// Each was killed since switch and test were written last. The run says so in `tests/mutants/killed`: `KILLED` names the
/// file with the rows that it has killed, and `STALE` one that it wants to know which rows are to be killed again.
#[test]
fn every_mutant_was_killed_as_it_stands() {
    const STAMPS: &str = "tests/mutants/killed";
    let (listed, sources) = (Mutant::listed(), sources());
    let mut known: BTreeSet<String> = read(STAMPS).lines().map(str::to_owned).collect();
    if let Some(file) = env::var_os("KILLED") {
        let killed = fs::read_to_string(file).expect("the run has written it");
        known.extend(killed.lines().map(|line| Mutant { cells: cells(line) }.stamp(&sources)));
    }
    let (fresh, stale): (Vec<_>, Vec<_>) =
        listed.iter().map(|mutant| (mutant.stamp(&sources), mutant)).partition(|(stamp, _)| known.contains(stamp));
    if env::var_os("KILLED").is_some() {
        let stamps: String = fresh.iter().map(|(stamp, _)| format!("{stamp}\n")).collect();
        return fs::write(root().join(STAMPS), stamps).expect("the file is writable");
    }
    if let Some(file) = env::var_os("STALE") {
        let rows: String = stale.iter().map(|(_, mutant)| format!("{}\n", mutant.cells.join(" | "))).collect();
        return fs::write(file, rows).expect("the file is writable");
    }
    let stale: Vec<&str> = stale.iter().map(|(_, mutant)| mutant.switch()).collect();
    assert!(stale.is_empty(), "run `tests/mutants/run stale`: these rows changed since a run: {stale:?}");
}

/// Every row of the threat model names the test of a mutant, or stands among those that have none. How many tests are named
/// beside those does not grow.
#[test]
fn every_row_of_the_threat_model_has_its_mutant() {
    let text = read("docs/threat-model.md");
    let cells = |row: &str| -> Vec<String> {
        row.split(" | ").take(2).map(|cell| cell.trim_matches(['|', ' ']).to_owned()).collect()
    };
    let killers: BTreeSet<String> = table(&text, "<!-- mutants -->").iter().flat_map(|row| tests_of(row)).collect();
    let without: Vec<Vec<String>> = table(&text, "These rows have no mutant").iter().map(|row| cells(row)).collect();
    let rows = table(&text, "## Who can lie");
    let has_mutant = |row: &str| tests_of(row).iter().any(|test| killers.contains(test));
    let offences: Vec<_> = rows.iter().filter(|row| has_mutant(row) == without.contains(&cells(row))).collect();
    assert!(offences.is_empty(), "{offences:#?}");
    let shown: BTreeSet<String> = rows.iter().flat_map(|row| tests_of(row)).collect();
    let strange: Vec<_> = killers.difference(&shown).collect();
    assert!(strange.is_empty(), "no row names {strange:?}");
    assert_eq!(shown.difference(&killers).count(), WITHOUT_MUTANT, "a test that is named anew kills a mutant");
}
