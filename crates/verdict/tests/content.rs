//! Recall and precision of the search for forbidden content in a card (CL-31, CL-32, CL-34): recall over lists of
//! texts that must be found, precision over honest texts and every published card. `tests/content/figures.txt` records
//! the figures.
//!
//! The lists are in `tests/content/`. A broken bar is removed before a text is judged; it keeps secret scanners of
//! code hosts from reporting the lists as leaked credentials.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect};
use clresolve_verdict::card::AgentCard;
use clresolve_verdict::check::card::check_card as judge;
use clresolve_verdict::profile::{ConformanceProfiles, DEFAULT};
use serde::Deserialize;
use serde_json::{Value, json};

/// Removed from the texts of the lists.
const SEAM: char = '¦';

/// Minimum share of a class that must be found, in percent.
const LEAST_RECALL: usize = 98;

/// A held-out list: its author did not know the rules or the other lists, and no rule was changed for it. Once a
/// change is made with knowledge of this list, `figures.txt` must no longer call it unseen.
const UNSEEN: &str = "held-out-3.json";

/// The classes, with their codes and requirements.
const CLASSES: [(&str, ReasonCode, &str); 3] = [
    ("secret", ReasonCode::SecretInCard, "CL-31"),
    ("private-address", ReasonCode::PrivateAddressInCard, "CL-32"),
    ("script", ReasonCode::ScriptInCard, "CL-34"),
];

#[derive(Clone, Deserialize)]
struct Case {
    /// The class that must be found; empty for an honest text.
    #[serde(default)]
    class: String,
    #[serde(default)]
    kind: String,
    member: String,
    value: Value,
}

fn cases(list: &str) -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/content").join(list);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text.replace(SEAM, "")).expect("a list of cases")
}

/// The findings of the content rules in a card whose `meta` has this member.
fn found(member: &str, value: &Value) -> Vec<Reason> {
    let document = json!({"meta": {member: value}}).to_string();
    of_content(&AgentCard::parse(document.as_bytes()).expect("strict JSON"))
}

fn of_content(card: &AgentCard) -> Vec<Reason> {
    let profile = ConformanceProfiles::builtin().get(DEFAULT).expect("built in");
    let mut reasons = judge(card, &profile);
    reasons.retain(|reason| CLASSES.iter().any(|(_, code, _)| reason.code == *code));
    reasons
}

fn fails(reasons: &[Reason]) -> Vec<ReasonCode> {
    reasons.iter().filter(|reason| reason.effect == ReasonEffect::Fail).map(|reason| reason.code).collect()
}

/// Number of texts of each class in a list, and how many of them are found. Misses are printed.
fn recall(list: &str) -> BTreeMap<String, (usize, usize)> {
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for case in cases(list).into_iter().filter(|case| !case.class.is_empty()) {
        let (_, code, _) = CLASSES.iter().find(|(class, ..)| *class == case.class).expect("a known class");
        let is_found = fails(&found(&case.member, &case.value)).contains(code);
        let (all, right) = counts.entry(case.class.clone()).or_default();
        *all += 1;
        *right += usize::from(is_found);
        if !is_found {
            println!("missed in {list}: {}, {}: {} = {}", case.class, case.kind, case.member, case.value);
        }
    }
    counts
}

/// Rows of `figures.txt`: requirement, code, texts, found, honest texts, honest texts that fail.
fn measured(list: &str, honest: &str) -> Vec<String> {
    let counts = recall(list);
    let honest: Vec<Case> = cases(honest).into_iter().filter(|case| case.class.is_empty()).collect();
    let mut wrong: BTreeMap<ReasonCode, usize> = BTreeMap::new();
    for case in &honest {
        for code in fails(&found(&case.member, &case.value)) {
            println!("honest text fails with {code}: {} = {}", case.member, case.value);
            *wrong.entry(code).or_default() += 1;
        }
    }
    let row = |(class, code, requirement): &(&str, ReasonCode, &str)| {
        let (all, right) = counts[*class];
        let (false_alarms, percent) = (wrong.get(code).copied().unwrap_or(0), right * 100 / all);
        format!("| {requirement} | `{code}` | {all} | {right} ({percent} %) | {} | {false_alarms} |", honest.len())
    };
    CLASSES.iter().map(row).collect()
}

#[test]
fn nearly_all_that_must_be_found_is_found() {
    for (class, (all, right)) in recall("positives.json") {
        assert!(right * 100 >= all * LEAST_RECALL, "{class}: {right} of {all} found");
    }
}

/// The rules were changed for the first misses, so this list is no longer held out.
#[test]
fn recall_on_the_held_out_list_is_as_recorded() {
    let counts = recall("held-out.json");
    let rows = CLASSES.map(|(class, code, requirement)| {
        let (all, right) = counts[class];
        format!("| {requirement} | `{code}` | {all} | {right} ({} %) |", right * 100 / all)
    });
    rows.iter().for_each(|row| is_recorded(row));
}

#[test]
fn recall_and_precision_are_as_recorded() {
    let lists = [("positives.json", "negatives.json"), ("held-out-2.json", "held-out-2.json"), (UNSEEN, UNSEEN)];
    for row in lists.map(|(list, honest)| measured(list, honest)).concat() {
        is_recorded(&row);
    }
}

fn is_recorded(text: &str) {
    assert!(include_str!("content/figures.txt").contains(text), "figures.txt lacks\n{text}");
}

#[test]
fn no_honest_text_fails() {
    let honest = cases("negatives.json");
    assert!(honest.len() >= 120, "{}", honest.len());
    for case in honest {
        let reasons = found(&case.member, &case.value);
        assert_eq!(fails(&reasons), [], "{} = {}", case.member, case.value);
    }
}

/// Long lists without duplicates keep the figures meaningful.
#[test]
fn the_lists_are_long_and_without_repetition() {
    let cases = ["positives.json", "negatives.json", "held-out.json", "held-out-2.json", UNSEEN].map(cases).concat();
    assert!(cases.len() >= 120, "{}", cases.len());
    for (at, case) in cases.iter().enumerate() {
        let twin = cases[..at].iter().find(|other| (&other.member, &other.value) == (&case.member, &case.value));
        assert!(twin.is_none(), "{} {} = {}", case.kind, case.member, case.value);
    }
}

fn json_files(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            json_files(&path, all);
        } else if path.extension().is_some_and(|extension| extension == "json") {
            all.push(path);
        }
    }
}

/// Judges every JSON object of the corpus whose system publishes cards by these three rules alone. Samples of other
/// systems name local hosts and hosts in `.test`, which are not public.
#[test]
fn no_published_card_fails() {
    let Some(corpus) = std::env::var_os("CLRESOLVE_CORPUS").map(PathBuf::from) else {
        println!("skipped: CLRESOLVE_CORPUS is not set");
        return;
    };
    let (mut files, mut wrong, mut judged) = (Vec::new(), Vec::new(), 0);
    for system in ["commandlayer", "aevum", "anypoint", "orloj", "a2a"] {
        json_files(&corpus.join(system), &mut files);
    }
    for path in files {
        let Ok(card) = AgentCard::parse(&fs::read(&path).expect("a file")) else { continue };
        judged += 1;
        let is_sample = !path.starts_with(corpus.join("commandlayer"));
        for reason in of_content(&card).into_iter().filter(|reason| reason.effect == ReasonEffect::Fail) {
            let host = reason.observed.unwrap_or_default();
            if !(is_sample
                && reason.code == ReasonCode::PrivateAddressInCard
                && (host == "localhost" || host.ends_with(".test")))
            {
                wrong.push(format!("{}: {} at {:?}: {host}", path.display(), reason.code, reason.place));
            }
        }
    }
    assert!(wrong.is_empty(), "{judged} documents\n{}", wrong.join("\n"));
    is_recorded(&format!("Of {judged} published documents"));
}

#[test]
fn what_prose_mentions_warns_and_takes_no_room_of_what_fails() {
    let warned = |reasons: &[Reason]| reasons.iter().filter(|reason| reason.effect == ReasonEffect::Warn).count();
    let mentioned = found("note", &json!("the parser 10.0.0.1 is new"));
    assert_eq!((fails(&mentioned), warned(&mentioned)), (vec![], 1));
    let many: Vec<Value> = (0..100).map(|at| json!(format!("parser 10.0.0.{at}"))).collect();
    let both = found("list", &json!([many, "http://10.0.0.1/"]));
    assert_eq!((fails(&both), warned(&both)), (vec![ReasonCode::PrivateAddressInCard], 15));
    let same = found("note", &json!("the parser 10.0.0.1 is at http://10.0.0.2/"));
    assert_eq!((fails(&same), warned(&same)), (vec![ReasonCode::PrivateAddressInCard], 0));
}
