use std::ops::RangeInclusive;
use std::sync::Arc;

use clresolve_chain::Change;
use clresolve_core::digest::Digest;
use clresolve_core::reading::{Block, BlockSelector, Grade, Proof};
use clresolve_verdict::sample;
use clresolve_verdict::verdict::{Anchor, AnchorBlock, Depth};
use jiff::ToSpan as _;

use super::budget::{HINTS_AT_ONCE, HINTS_PER_SECOND};
use super::*;
use crate::cache::{Before, VerdictCache};
use crate::config::CacheConfig;

const START: Timestamp = Timestamp::UNIX_EPOCH;
const RESOLVER: Address = Address::repeat_byte(7);

/// Height up to which the runs here have read.
const READ: u64 = 100;

/// The endpoints, by the tickets that they get.
const LIAR: EndpointId = EndpointId(1);
const HONEST: EndpointId = EndpointId(2);

fn name(text: &str) -> EnsName {
    EnsName::parse(text).expect("a good name")
}

fn key(text: &str) -> CacheKey {
    CacheKey {
        name: name(text),
        block: BlockSelector::Finalized,
        depth: Depth::Identity,
        rules: Digest::of(b"rules"),
        world: "world".into(),
    }
}

/// A stranger's endpoint, of an operator of its own.
fn stranger(label: &str) -> Endpoint {
    let url = format!("https://{label}.example/").parse().expect("a URL");
    Endpoint { label: label.to_owned(), url, own: false, operator: label.to_owned(), ws: None }
}

fn own(label: &str) -> Endpoint {
    Endpoint { own: true, ..stranger(label) }
}

/// A trusted verdict that was read from [`RESOLVER`] at `at`, up to the block `newest`.
fn read(at: Timestamp, newest: u64, wildcard: Option<&str>) -> Resolution {
    let mut verdict = sample::empty(State::Trusted, at, 0).verdict().as_ref().clone();
    let block = AnchorBlock { number: 1, hash: String::new(), timestamp: at.to_string(), tag: "finalized".to_owned() };
    verdict.anchor = Some(Anchor {
        world: "lab".to_owned(),
        chain: "eip155:1".to_owned(),
        block,
        resolver: Some(RESOLVER.to_string()),
        wildcard: wildcard.map(str::to_owned),
        offchain: false,
        proof: Proof { grade: Grade::Quorum, asked: 2, agreed: 2, own: false },
        records_digest: None,
    });
    sample::read_to(verdict, newest)
}

/// Two endpoints of strangers are followed; these names are cached.
fn followed(names: &[&str]) -> Changes {
    let changes = Changes::new();
    assert_eq!(changes.follow(&[stranger("liar"), stranger("honest")]), [LIAR, HONEST]);
    for name in names {
        changes.add(&key(name), &read(START, READ, None), changes.begin());
    }
    changes
}

/// Whether a run that began with this ticket, and has read up to this block, misses a hint.
fn is_unread(changes: &Changes, name: &str, began: u64, newest: u64, at: Timestamp) -> Option<Unread> {
    changes.unread(&self::name(name), began, &read(at, newest, None), at)
}

fn change(source: Source, node: &str, block: u64) -> Change {
    Change { block, source, node: name(node).node() }
}

fn text_of(node: &str, block: u64) -> Change {
    change(Source::Resolver(RESOLVER), node, block)
}

fn news(changes: Vec<Change>) -> News {
    let number = changes.iter().map(|change| change.block).max().unwrap_or(READ);
    let head = Block { number, hash: [9; 32].into(), timestamp: START };
    News { head, changes, replaced: None, missed: None, unasked: 0, malformed: 0 }
}

/// News of no change up to this block. The logs of the `missed` blocks were not read.
fn news_at(number: u64, missed: Option<RangeInclusive<u64>>) -> News {
    let head = Block { number, hash: [9; 32].into(), timestamp: START };
    News { head, missed, ..news(vec![]) }
}

fn evicted(outcome: &NewsEffect) -> Vec<&str> {
    outcome.evicted.iter().map(|key| key.name.as_str()).collect()
}

#[test]
fn a_hint_stands_until_a_run_after_it_has_read_its_block() {
    let changes = followed(&["a.eth", "b.eth"]);
    let before = changes.begin();
    let outcome = changes.news(HONEST, &news(vec![text_of("a.eth", READ + 1)]), START);
    assert_eq!((evicted(&outcome), outcome.hints), (vec!["a.eth"], 1));
    let after = changes.begin();
    let unread = |began, newest| is_unread(&changes, "a.eth", began, newest, START).is_some();
    assert!(unread(before, READ + 1), "it began before the hint");
    assert!(unread(after, READ), "it has not read the block");
    assert!(!unread(after, READ + 1));
    assert_eq!(is_unread(&changes, "b.eth", before, READ, START), None);
    assert_eq!(changes.due(START), [name("a.eth")]);
}

#[test]
fn a_block_that_does_not_come_is_not_waited_for_without_end() {
    let changes = followed(&["a.eth"]);
    changes.news(LIAR, &news(vec![text_of("a.eth", READ + 9)]), START);
    let began = changes.begin();
    let end = START + PATIENCE;
    assert!(is_unread(&changes, "a.eth", began, READ + 1, end - 1.millisecond()).is_some());
    assert!(!changes.judge(&name("a.eth"), began, &read(START, READ + 1, None), end - 1.millisecond()));
    assert_eq!(is_unread(&changes, "a.eth", began, READ + 1, end), None);

    // Its next block has the name read again, and no run waits for it.
    assert!(changes.judge(&name("a.eth"), began, &read(START, READ + 1, None), end));
    let later = end + 1.second();
    changes.add(&key("a.eth"), &read(later, READ + 1, None), changes.begin());
    let outcome = changes.news(LIAR, &news(vec![text_of("a.eth", READ + 12)]), later);
    assert_eq!(outcome.hints, 1);
    assert_eq!(is_unread(&changes, "a.eth", changes.begin(), READ + 1, later), None);

    // Another endpoint's word holds as before.
    changes.add(&key("a.eth"), &read(later, READ + 1, None), changes.begin());
    changes.news(HONEST, &news(vec![text_of("a.eth", READ + 2)]), later);
    let unread = is_unread(&changes, "a.eth", changes.begin(), READ + 1, later);
    assert_eq!(unread, Some(Unread(Some(READ + 2))));
}

/// Most logs tell of what no verdict reads: an honest endpoint would be doubted for an agent's new picture.
#[test]
fn a_hint_whose_block_came_raises_no_doubt() {
    let changes = followed(&["a.eth", "b.eth"]);
    changes.news(HONEST, &news(vec![text_of("a.eth", READ + 1)]), START);
    assert!(changes.judge(&name("a.eth"), changes.begin(), &read(START, READ + 1, None), START));
    changes.news(HONEST, &news(vec![text_of("b.eth", READ + 2)]), START);
    assert!(is_unread(&changes, "b.eth", changes.begin(), READ, START).is_some());
}

/// Else a liar would withhold a name for ever, by a block to come each time before the last one's time is over.
#[test]
fn further_hints_do_not_prolong_the_wait() {
    let changes = followed(&["a.eth"]);
    let is_awaited = |at| is_unread(&changes, "a.eth", changes.begin(), READ + 1, at).is_some();
    for (at, block) in [(START, READ + 9), (START + 12.seconds(), READ + 12), (START + 24.seconds(), READ + 16)] {
        changes.add(&key("a.eth"), &read(START, READ, None), changes.begin());
        changes.news(LIAR, &news(vec![text_of("a.eth", block)]), at);
        assert!(is_awaited(at));
    }
    assert!(!is_awaited(START + PATIENCE));
}

/// An endpoint behind the others would else bring back what has changed.
#[test]
fn after_a_hint_came_true_no_run_counts_that_has_read_less() {
    let changes = followed(&["a.eth"]);
    changes.news(HONEST, &news(vec![text_of("a.eth", READ + 1)]), START);
    changes.judge(&name("a.eth"), changes.begin(), &read(START, READ + 1, None), START + 1.second());
    let late = START + 300.seconds();
    let unread = |newest| is_unread(&changes, "a.eth", changes.begin(), newest, late);
    assert_eq!((unread(READ), unread(READ + 1)), (Some(Unread(Some(READ + 1))), None));
}

/// Ten thousand hints of one endpoint cost what its budget permits, and hide no hint of another.
#[test]
fn a_liar_spends_its_own_budget_alone() {
    let names: Vec<String> = (0..1000).map(|number| format!("a{number}.eth")).collect();
    let changes = followed(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut lies: Vec<Change> = names.iter().map(|name| text_of(name, READ)).collect();
    let mut lie = |at| {
        lies.iter_mut().for_each(|lie| lie.block += 1);
        changes.news(LIAR, &news(lies.clone()), at)
    };
    let outcomes: Vec<NewsEffect> = (0..10).map(|_| lie(START)).collect();
    let taken: u64 = outcomes.iter().map(|outcome| outcome.hints).sum();
    let ignored: u64 = outcomes.iter().map(|outcome| outcome.over_budget).sum();
    let (most, left) = (HINTS_AT_ONCE as u64, 1000 - HINTS_AT_ONCE as u64);
    assert_eq!((taken, ignored), (most, 10 * left));
    assert_eq!(outcomes.iter().map(|outcome| outcome.evicted.len()).sum::<usize>(), HINTS_AT_ONCE as usize);
    assert_eq!(lie(START + 1.second()).hints, HINTS_PER_SECOND as u64);

    let hidden = names.iter().rev().find(|name| !changes.ledger().marks.contains_key(&self::name(name)));
    let hidden = hidden.expect("one that the liar did not name");
    let outcome = changes.news(HONEST, &news(vec![text_of(hidden, READ + 1)]), START);
    assert_eq!(evicted(&outcome), [hidden.as_str()]);
}

/// What is beyond the budget is not looked at: a place may concern every name.
#[test]
fn after_the_budget_no_name_is_looked_at() {
    let names: Vec<String> = (0..1000).map(|number| format!("a{number}.eth")).collect();
    let changes = followed(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let all = change(Source::Registration, "eth", READ + 1);
    let outcome = changes.news(LIAR, &news(vec![all]), START);
    assert_eq!((outcome.hints, outcome.over_budget), (HINTS_AT_ONCE as u64, 1));
}

/// Which of 200 names are read again within so many seconds, where an endpoint tells that all have changed, and others
/// follow without a gap.
fn read_again_after_a_flood(others: &[Endpoint], seconds: i64) -> usize {
    let names: Vec<String> = (0..200).map(|number| format!("a{number}.eth")).collect();
    let changes = Changes::new();
    let ids = changes.follow(&[&[stranger("honest")], others].concat());
    for name in &names {
        changes.add(&key(name), &read(START, READ, None), changes.begin());
    }
    changes.due(START);
    for id in &ids[1..] {
        changes.news(*id, &news(vec![]), START);
    }
    let hints = names.iter().map(|name| text_of(name, READ + 1)).collect();
    let outcome = changes.news(ids[0], &news(hints), START);
    assert_eq!((outcome.hints, outcome.over_budget), (HINTS_AT_ONCE as u64, 200 - HINTS_AT_ONCE as u64));
    let due = |second| changes.due(START + SignedDuration::from_secs(second));
    (0..seconds).flat_map(due).collect::<BTreeSet<_>>().len()
}

/// One honest endpoint is enough, however many names change at once.
#[test]
fn what_is_beyond_the_budget_is_read_again_like_what_was_missed() {
    assert_eq!(read_again_after_a_flood(&[], 30), 200);
    assert_eq!(read_again_after_a_flood(&[stranger("other")], 30), 200);
    let covered = [stranger("other"), stranger("third")];
    assert_eq!(read_again_after_a_flood(&covered, 30), HINTS_AT_ONCE as usize, "two others have read the block");
    assert_eq!(read_again_after_a_flood(&[own("node")], 30), HINTS_AT_ONCE as usize);
}

/// Whoever spent its budget covers no gap of others: it may itself have left the change out.
#[test]
fn endpoints_that_are_all_over_their_budget_cover_nothing() {
    let names: Vec<String> = (0..600).map(|number| format!("a{number}.eth")).collect();
    let changes = Changes::new();
    let ids: [EndpointId; 3] = changes.follow(&["a", "b", "c"].map(stranger)).try_into().expect("three endpoints");
    changes.due(START);
    for name in &names {
        changes.add(&key(name), &read(START, READ, None), changes.begin());
    }
    for id in &ids {
        changes.news(*id, &news(vec![]), START);
    }
    let hints: Vec<Change> = names.iter().map(|name| text_of(name, READ + 1)).collect();
    let flood = news(hints);
    assert_eq!(ids.map(|id| changes.news(id, &flood, START).is_stale), [false, true, true]);
}

/// What an endpoint said before a name was cached is charged to its budget too.
#[test]
fn a_run_that_missed_a_change_beyond_the_budget_has_its_name_read_again() {
    let names: Vec<String> = (0..200).map(|number| format!("a{number}.eth")).collect();
    let changes = followed(&[]);
    let began = changes.begin();
    changes.news(HONEST, &news(names.iter().map(|name| text_of(name, READ + 1)).collect()), START);
    for name in &names {
        let late = read(START, READ, None);
        if changes.unread(&self::name(name), began, &late, START).is_none() {
            changes.add(&key(name), &late, began);
        }
    }
    let due = |second| changes.due(START + SignedDuration::from_secs(second));
    assert_eq!((0..30).flat_map(due).collect::<BTreeSet<_>>().len(), names.len());
}

/// Endpoints that have all spent their budgets stand in for none of each other.
#[test]
fn a_run_that_missed_what_all_endpoints_said_beyond_their_budgets_has_its_name_read_again() {
    let names: Vec<String> = (0..200).map(|number| format!("a{number}.eth")).collect();
    let changes = Changes::new();
    let ids = changes.follow(&["a", "b", "c"].map(stranger));
    let began = changes.begin();
    for id in ids {
        changes.news(id, &news(vec![]), START);
        changes.news(id, &news(names.iter().map(|name| text_of(name, READ + 1)).collect()), START);
    }
    for name in &names {
        let late = read(START, READ, None);
        if changes.unread(&self::name(name), began, &late, START).is_none() {
            changes.add(&key(name), &late, began);
        }
    }
    let due = |second| changes.due(START + SignedDuration::from_secs(second));
    assert_eq!((0..60).flat_map(due).collect::<BTreeSet<_>>().len(), names.len());
}

/// One name costs no reading of all others.
#[test]
fn a_run_that_missed_a_change_beyond_the_budget_has_no_other_name_read_again() {
    let late: Vec<String> = (0..=HINTS_AT_ONCE).map(|number| format!("late{number}.eth")).collect();
    let changes = followed(&["other.eth"]);
    let began = changes.begin();
    changes.news(HONEST, &news(late.iter().map(|name| text_of(name, READ + 1)).collect()), START);
    for name in &late {
        let found = read(START, READ, None);
        if changes.unread(&self::name(name), began, &found, START).is_none() {
            changes.add(&key(name), &found, began);
        }
    }
    let due = |second| changes.due(START + SignedDuration::from_secs(second));
    let read_again: BTreeSet<_> = (0..30).flat_map(due).collect();
    assert_eq!((read_again.len(), read_again.contains(&name("other.eth"))), (late.len(), false));
}

/// Whatever it says later of earlier blocks.
#[test]
fn an_endpoint_never_counts_as_having_read_what_it_missed() {
    let changes = Changes::new();
    let ids = changes.follow(&[own("node"), stranger("other")]);
    changes.add(&key("a.eth"), &read(START, READ, None), changes.begin());
    let gap = |missed: RangeInclusive<u64>| {
        let head = Block { number: *missed.end(), hash: [9; 32].into(), timestamp: START };
        News { head, missed: Some(missed), ..news(vec![]) }
    };
    changes.news(ids[0], &gap(READ + 2..=READ + 5), START);
    changes.news(ids[0], &gap(READ + 1..=READ + 1), START);
    assert!(changes.news(ids[1], &gap(READ + 3..=READ + 3), START).is_stale, "nobody has read it");
    assert!(!changes.news(ids[1], &gap(READ + 6..=READ + 6), START).is_stale, "the own one has read it");
}

/// A publisher that changes a thousand names in each block would else spend what tells of the one that matters.
#[test]
fn the_operators_own_endpoint_has_no_budget() {
    let names: Vec<String> = (0..1000).map(|number| format!("a{number}.eth")).collect();
    let changes = Changes::new();
    let ids = changes.follow(&[own("node"), stranger("other")]);
    for name in &names {
        changes.add(&key(name), &read(START, READ, None), changes.begin());
    }
    let hints: Vec<Change> = names.iter().map(|name| text_of(name, READ + 1)).collect();
    assert_eq!(changes.news(ids[0], &news(hints), START).hints, 1000);
}

/// Names that nobody trusts cost no endpoint anything.
#[test]
fn only_trusted_verdicts_are_followed() {
    let changes = followed(&[]);
    for state in [State::Untrusted, State::Indeterminate] {
        let mut verdict = read(START, READ, None).verdict().as_ref().clone();
        verdict.state = state;
        changes.add(&key("a.eth"), &sample::read_to(verdict, READ + 1_000_000), changes.begin());
    }
    assert_eq!(changes.news(HONEST, &news(vec![text_of("a.eth", READ + 1)]), START), NewsEffect::default());
    assert_eq!(changes.resolvers(), [].into());
    changes.add(&key("a.eth"), &read(START, READ, None), changes.begin());
    let far = changes.news(LIAR, &news(vec![text_of("a.eth", READ + MAX_AHEAD + 1)]), START);
    assert_eq!(far.too_far, 1, "the height that a failure names does not count");
}

#[test]
fn hints_that_are_remembered_are_bounded() {
    let changes = Changes::new();
    changes.ledger().most_marks = 20;
    let ids = changes.follow(&[own("node")]);
    let names: Vec<String> = (0..30).map(|number| format!("a{number}.eth")).collect();
    for name in &names {
        changes.add(&key(name), &read(START, READ, None), changes.begin());
    }
    let hints: Vec<Change> = names.iter().map(|name| text_of(name, READ + 1)).collect();
    let outcome = changes.news(ids[0], &news(hints), START);
    assert_eq!((outcome.evicted.len(), changes.ledger().marks.len()), (30, 20));
    changes.add(&key("late.eth"), &read(START, READ, None), changes.begin());
    changes.news(ids[0], &news(vec![text_of("late.eth", READ + 1)]), START + PATIENCE);
    assert_eq!(changes.ledger().marks.len(), 1, "old ones make room");
}

#[test]
fn a_hint_that_is_repeated_is_taken_once() {
    let changes = followed(&["a.eth"]);
    let hint = news(vec![text_of("a.eth", READ + 1); 1000]);
    assert_eq!(changes.news(LIAR, &hint, START).hints, 1);
    // Read again where the block is not known yet, as after some time.
    let cached = || changes.add(&key("a.eth"), &read(START, READ, None), changes.begin());
    cached();
    assert_eq!(changes.news(LIAR, &hint, START + 40.seconds()), NewsEffect::default());
    assert_eq!(changes.news(HONEST, &hint, START + 40.seconds()).hints, 1, "another endpoint's word is news");
}

/// Two blocks have the same height, and nothing says which of them was read: the name is read again, and is not withheld.
#[test]
fn a_change_at_the_height_that_was_read_has_the_name_read_again() {
    let changes = followed(&["a.eth"]);
    let began = changes.begin();
    let hint = news(vec![text_of("a.eth", READ)]);
    assert_eq!(changes.news(HONEST, &hint, START), NewsEffect::default());
    assert_eq!(changes.due(START), [name("a.eth")]);
    assert_eq!(is_unread(&changes, "a.eth", began, READ, START), None);
    changes.news(HONEST, &hint, START + 9.seconds());
    assert_eq!(changes.due(START + 9.seconds()), [], "once for each endpoint");
}

#[test]
fn hints_of_one_name_cause_one_reading_a_second() {
    let changes = followed(&["a.eth"]);
    let hint = |block, at| {
        changes.add(&key("a.eth"), &read(at, READ, None), changes.begin());
        changes.news(HONEST, &news(vec![text_of("a.eth", block)]), at);
        changes.due(at).len()
    };
    assert_eq!(hint(READ + 1, START), 1);
    for millisecond in 1..10 {
        assert_eq!(hint(READ + 1 + millisecond, START + 100.milliseconds() * millisecond as i64), 0);
    }
    assert_eq!(changes.due(START + 1.second()), [name("a.eth")]);
}

#[test]
fn blocks_that_no_honest_endpoint_can_have_are_ignored() {
    let changes = followed(&["a.eth"]);
    let too_far = |ahead, at| changes.news(LIAR, &news(vec![text_of("a.eth", READ + ahead)]), at).too_far;
    assert_eq!(too_far(1_000_000, START), 1);
    assert_eq!(too_far(MAX_AHEAD + 1, START), 1);
    assert_eq!(too_far(MAX_AHEAD + 60, START + 60.seconds()), 0, "the chain has gone on");
    // What it said before anything was cached is no better.
    let first = followed(&[]);
    first.news(LIAR, &news(vec![text_of("a.eth", READ + 1_000_000)]), START);
    assert_eq!(is_unread(&first, "a.eth", first.begin(), READ, START), None);
    let alone = Changes::new();
    let ids = alone.follow(&[stranger("alone")]);
    alone.add(&key("a.eth"), &read(START, READ, None), alone.begin());
    assert_eq!(
        alone.news(ids[0], &news(vec![text_of("a.eth", 5000)]), START).hints,
        1,
        "no other says what it can have"
    );
}

#[test]
fn only_what_a_verdict_was_read_from_counts() {
    let changes = followed(&["a.b.eth", "c.eth"]);
    changes.add(&key("x.wild.eth"), &read(START, READ, Some("wild.eth")), changes.begin());
    let other = Source::Resolver(Address::repeat_byte(8));
    let hinted = |change: Change| {
        let outcome = changes.news(HONEST, &news(vec![change]), START);
        evicted(&outcome).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let nobody: [&str; 0] = [];
    assert_eq!(hinted(change(other, "c.eth", READ + 1)), nobody, "another resolver");
    assert_eq!(hinted(text_of("d.eth", READ + 1)), nobody, "a name that is not cached");
    assert_eq!(hinted(text_of("c.eth", READ - 1)), nobody, "what the run has read");
    assert_eq!(hinted(text_of("b.eth", READ + 1)), nobody, "the records of an ancestor");
    assert_eq!(hinted(change(Source::Registration, "a.c.eth", READ + 1)), nobody, "a name below it");
    assert_eq!(hinted(text_of("x.wild.eth", READ + 1)), ["x.wild.eth"], "its resolver, about its own node");
    changes.add(&key("x.wild.eth"), &read(START, READ, Some("wild.eth")), changes.begin());
    assert_eq!(hinted(text_of("wild.eth", READ + 2)), ["x.wild.eth"]);
    assert_eq!(hinted(change(Source::Registration, "b.eth", READ + 1)), ["a.b.eth"]);
    assert_eq!(hinted(text_of("c.eth", READ + 1)), ["c.eth"]);
}

#[test]
fn names_that_left_the_cache_and_long_ones_are_not_followed() {
    let changes = followed(&[]);
    let entry = changes.add(&key("a.eth"), &read(START, READ, None), changes.begin());
    changes.add(&key(&format!("{}eth", "a.".repeat(index::MAX_LABELS))), &read(START, READ, None), changes.begin());
    assert_eq!(changes.resolvers(), [RESOLVER].into());
    changes.remove(entry);
    assert_eq!(changes.resolvers(), [].into());
    let hints = vec![text_of("a.eth", READ + 1), change(Source::Registration, "eth", READ + 1)];
    assert_eq!(changes.news(HONEST, &news(hints), START), NewsEffect::default());
}

/// A block in place of another: what was read of the old one is read again, although its height is the same.
#[test]
fn a_block_in_place_of_another_has_its_names_read_again() {
    let changes = followed(&["a.eth"]);
    let replaced = News { replaced: Some(READ - 1), ..news(vec![text_of("a.eth", READ - 1)]) };
    assert_eq!(changes.news(HONEST, &replaced, START).hints, 1);
    assert!(is_unread(&changes, "a.eth", 0, READ, START).is_some(), "it began before");
}

/// A log that came while a run was under way, or before its resolver was known, is not forgotten.
#[test]
fn a_run_that_missed_a_change_is_found_out_when_it_ends() {
    let changes = followed(&[]);
    let began = changes.begin();
    let hint = news(vec![text_of("a.eth", READ + 1)]);
    assert_eq!(changes.news(HONEST, &hint, START), NewsEffect::default(), "nothing is cached yet");
    assert_eq!(is_unread(&changes, "a.eth", began, READ + 1, START), None, "it has read the block");
    assert!(changes.recalled().is_empty());
    let late = changes.begin();
    assert_eq!(is_unread(&changes, "a.eth", late, READ, START), Some(Unread(Some(READ + 1))));
    assert_eq!(changes.recalled(), [name("a.eth")].into(), "to be evicted on every daemon");
    assert_eq!(changes.due(START), [name("a.eth")]);
    assert_eq!(is_unread(&changes, "a.eth", changes.begin(), READ + 1, START), None);
    assert!(changes.recalled().is_empty() && changes.is_idle());
}

fn gap(first: u64) -> News {
    News { missed: Some(first..=first + 4), ..news(vec![]) }
}

#[test]
fn a_gap_has_all_names_read_again_a_few_a_second() {
    let names: Vec<String> = (0..20).map(|number| format!("a{number:02}.eth")).collect();
    let changes = followed(&names.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(changes.news(LIAR, &gap(READ + 1), START).is_stale);
    let first = changes.due(START).len();
    assert!((1..=4).contains(&first), "{first} at once");
    assert_eq!(changes.due(START), []);
    assert_eq!(changes.due(START + 1.second()).len(), 4);

    // What was read since then is not read again.
    for name in &names {
        changes.add(&key(name), &read(START, READ + 5, None), changes.begin());
    }
    for entry in 1..=2 * names.len() as u64 + 3 {
        changes.remove(entry);
    }
    assert_eq!(changes.due(START + 2.seconds()), []);
    assert!(changes.is_idle());
}

/// Else whoever leaves blocks out again and again would have the same names read, and the rest never.
#[test]
fn a_further_gap_does_not_begin_anew() {
    let names: Vec<String> = (0..12).map(|number| format!("a{number:02}.eth")).collect();
    let changes = followed(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut read = BTreeSet::new();
    for second in 0..3 {
        let at = START + SignedDuration::from_secs(second);
        assert!(changes.news(LIAR, &gap(READ + 1), at).is_stale);
        read.extend(changes.due(at));
    }
    assert_eq!(read.len(), names.len());
    changes.news(LIAR, &gap(READ + 1), START + 3.seconds());
    assert!(!changes.is_idle(), "they are all to be read once more");
}

#[test]
fn a_run_that_began_before_a_gap_has_its_name_read_again() {
    let changes = followed(&[]);
    let began = changes.begin();
    assert!(changes.news(LIAR, &gap(READ + 1), START).is_stale);
    let entry = changes.add(&key("a.eth"), &read(START, READ, None), began);
    assert_eq!(changes.due(START), [name("a.eth")]);
    changes.remove(entry);
    changes.add(&key("a.eth"), &read(START, READ + 5, None), changes.begin());
    assert!(changes.is_idle(), "it began after the gap");
}

#[tokio::test]
async fn a_run_that_began_before_a_gap_is_not_joined() {
    let cache = Arc::new(VerdictCache::new(&CacheConfig::default()));
    cache.changes.follow(&[stranger("liar"), stranger("honest")]);
    let mut before = Box::pin(cache.run_anew(key("a.eth"), |_: Before| std::future::pending::<Resolution>()));
    assert!(futures_util::poll!(&mut before).is_pending());
    let mut joined = Box::pin(cache.run_anew(key("a.eth"), |_: Before| async { read(START, READ, None) }));
    assert!(futures_util::poll!(&mut joined).is_pending());
    cache.changes.news(LIAR, &gap(READ + 1), START);
    let after = cache.run_anew(key("a.eth"), |_: Before| async { read(START, READ + 5, None) });
    let after = tokio::time::timeout(std::time::Duration::from_secs(10), after).await.expect("it waits for no other");
    assert_eq!(after.newest(), Some(READ + 5));
    assert!(futures_util::poll!(&mut joined).is_pending());
}

/// A reload may be what has blocks followed.
#[test]
fn what_was_cached_while_nothing_was_followed_is_read_again() {
    let changes = Changes::new();
    changes.follow(&[]);
    changes.add(&key("a.eth"), &read(START, READ, None), changes.begin());
    let ids = changes.follow(&[stranger("honest")]);
    assert_eq!(changes.due(START), [name("a.eth")]);
    let outcome = changes.news(ids[0], &news(vec![text_of("a.eth", READ + 1)]), START);
    assert_eq!(evicted(&outcome), ["a.eth"]);
}

#[test]
fn a_clock_that_is_set_back_forgets_no_hint() {
    let changes = followed(&["a.eth"]);
    let after = START + REMEMBERED;
    changes.news(HONEST, &news(vec![text_of("a.eth", READ + 1)]), after);
    let unread = |at| is_unread(&changes, "a.eth", changes.begin(), READ, at);
    for (at, block) in [(after - 1.second(), Some(READ + 1)), (START, None)] {
        changes.news(HONEST, &news(vec![]), at);
        assert_eq!(unread(at), block.map(|block| Unread(Some(block))), "{at}");
    }
}

/// Whether a gap of one endpoint is covered, while these others follow without one.
fn is_covered(of: Endpoint, others: &[Endpoint]) -> bool {
    let changes = Changes::new();
    let mut endpoints = vec![of];
    endpoints.extend_from_slice(others);
    let ids = changes.follow(&endpoints);
    changes.add(&key("a.eth"), &read(START, READ, None), changes.begin());
    for id in &ids[1..] {
        changes.news(*id, &news(vec![]), START);
    }
    let is_stale = changes.news(ids[0], &gap(READ + 1), START).is_stale;
    assert_eq!(is_stale, !changes.is_idle());
    !is_stale
}

#[test]
fn a_stranger_alone_covers_no_gap() {
    let of_one_operator = Endpoint { operator: "a".to_owned(), ..stranger("b") };
    assert!(!is_covered(own("node"), &[stranger("a"), stranger("b"), stranger("c")]));
    assert!(is_covered(own("node"), &[own("second")]));
    assert!(!is_covered(stranger("liar"), &[stranger("a")]));
    assert!(!is_covered(stranger("liar"), &[stranger("a"), of_one_operator]));
    assert!(is_covered(stranger("liar"), &[stranger("a"), stranger("b")]));
    assert!(is_covered(stranger("liar"), &[own("node")]));
}

#[test]
fn an_endpoint_that_is_down_covers_nothing() {
    let changes = followed(&["a.eth"]);
    let ids = changes.follow(&[stranger("liar"), own("node")]);
    assert_eq!(ids[0], LIAR);
    changes.news(ids[1], &news(vec![]), START);
    assert_eq!(changes.followed(), 1);
    changes.answered(ids[1], false, START);
    assert!(changes.news(LIAR, &gap(READ + 1), START).is_stale);
}

/// A reload changes nothing about an endpoint that stays, wherever it stands, and ends the word of one that went.
#[test]
fn a_reload_forgives_no_endpoint() {
    let changes = followed(&["a.eth", "b.eth"]);
    changes.news(LIAR, &news(vec![text_of("a.eth", READ + 9)]), START);
    let began = changes.begin();
    let end = START + PATIENCE;
    changes.judge(&name("a.eth"), began, &read(START, READ + 1, None), end);
    let ids = changes.follow(&[stranger("third"), stranger("liar")]);
    assert_eq!(ids[1], LIAR);
    assert!(changes.due(end).contains(&name("b.eth")), "what was said between the two is not known");
    assert_eq!(changes.news(HONEST, &news(vec![text_of("b.eth", READ + 1)]), end), NewsEffect::default());
    changes.news(LIAR, &news(vec![text_of("b.eth", READ + 9)]), end);
    assert_eq!(is_unread(&changes, "b.eth", changes.begin(), READ, end), None, "it is still doubted");
}

#[tokio::test]
async fn an_entry_whose_run_missed_a_hint_is_not_served() {
    let cache = Arc::new(VerdictCache::new(&CacheConfig::default()));
    cache.changes.follow(&[stranger("liar"), stranger("honest")]);
    let run = |newest| move |_: Before| async move { read(START, newest, None) };
    cache.run_anew(key("a.eth"), run(READ)).await;
    assert!(cache.fresh(&key("a.eth"), START).await.is_some());

    let outcome = cache.changes.news(HONEST, &news(vec![text_of("a.eth", READ + 1)]), START);
    outcome.evicted.iter().for_each(|key| cache.evict(&key.name, START));
    assert!(cache.fresh(&key("a.eth"), START).await.is_none());
    cache.run_anew(key("a.eth"), run(READ)).await;
    assert!(cache.fresh(&key("a.eth"), START).await.is_none(), "its endpoints have not seen the change");
    cache.run_anew(key("a.eth"), run(READ + 1)).await;
    assert!(cache.fresh(&key("a.eth"), START).await.is_some());
}

/// Two endpoints that stand still agree until their newest block is too old, and the third has told of a change.
#[tokio::test]
async fn entry_whose_run_never_reached_a_hint_is_served_for_a_moment() {
    let cache = Arc::new(VerdictCache::new(&CacheConfig::default()));
    cache.changes.follow(&[stranger("liar"), stranger("honest")]);
    let run = |at, newest| move |_: Before| async move { read(at, newest, None) };
    cache.run_anew(key("a.eth"), run(START, READ)).await;
    let outcome = cache.changes.news(HONEST, &news(vec![text_of("a.eth", READ + 1)]), START);
    outcome.evicted.iter().for_each(|key| cache.evict(&key.name, START));

    let later = START + PATIENCE;
    cache.run_anew(key("a.eth"), run(later, READ)).await;
    assert!(cache.fresh(&key("a.eth"), later + 19.seconds()).await.is_some());
    assert!(cache.fresh(&key("a.eth"), later + 20.seconds()).await.is_none());
    assert!(cache.stale(&key("a.eth"), "a.eth", later + 20.seconds()).await.is_none());

    cache.run_anew(key("a.eth"), run(later, READ + 1)).await;
    assert!(cache.fresh(&key("a.eth"), later + 200.seconds()).await.is_some());
}

#[tokio::test]
async fn a_run_that_a_hint_overtook_is_not_kept() {
    let cache = Arc::new(VerdictCache::new(&CacheConfig::default()));
    cache.changes.follow(&[stranger("liar"), stranger("honest")]);
    cache.run_anew(key("a.eth"), |_: Before| async { read(START, READ, None) }).await;
    let overtaken = {
        let changes = Arc::clone(&cache.changes);
        move |_: Before| async move {
            changes.news(HONEST, &news(vec![text_of("a.eth", READ + 1)]), START);
            read(START, READ + 1, None)
        }
    };
    cache.run_anew(key("a.eth"), overtaken).await;
    assert!(cache.fresh(&key("a.eth"), START).await.is_none());
}

/// Else one whose chain has stopped would hide what others leave out.
#[test]
fn an_endpoint_that_stands_still_covers_no_gap() {
    let changes = Changes::new();
    let ids = changes.follow(&[stranger("one"), stranger("two"), own("node")]);
    changes.add(&key("a.eth"), &read(START, READ, None), changes.begin());
    for id in &ids {
        changes.news(*id, &news_at(READ + 5, None), START);
    }
    let left_out = news_at(READ + 6, Some(READ + 6..=READ + 6));
    changes.news(ids[1], &news_at(READ + 6, None), START);
    assert!(!changes.news(ids[0], &left_out, START).is_stale, "the own one may come as far in a moment");
    assert!(changes.is_idle());
    changes.answered(ids[2], true, START + PATIENCE - 1.second());
    assert!(changes.is_idle());
    changes.answered(ids[2], true, START + PATIENCE);
    assert_eq!(changes.due(START + PATIENCE), [name("a.eth")]);

    let later = START + PATIENCE;
    assert!(!changes.news(ids[0], &left_out, later).is_stale);
    changes.news(ids[2], &news_at(READ + 6, None), later);
    changes.answered(ids[2], true, later);
    changes.answered(ids[2], true, later + PATIENCE);
    assert!(changes.is_idle(), "it has come as far in time");
}

/// What it says of blocks to come must have no name read without end.
#[test]
fn a_gap_in_blocks_that_nobody_else_has_is_covered_by_who_keeps_pace() {
    let changes = Changes::new();
    let ids = changes.follow(&[stranger("liar"), own("node")]);
    changes.add(&key("a.eth"), &read(START, READ, None), changes.begin());
    changes.news(ids[1], &news_at(READ + 5, None), START);
    let made_up = news_at(READ + 900, Some(READ + 6..=READ + 900));
    assert!(!changes.news(ids[0], &made_up, START).is_stale);
    changes.news(ids[1], &news_at(READ + 6, None), START + 12.seconds());
    changes.answered(ids[1], true, START + 12.seconds());
    changes.answered(ids[0], true, START + PATIENCE);
    assert!(changes.is_idle());
}

#[cfg(feature = "redis")]
#[test]
fn what_others_read_counts_while_changes_after_it_are_remembered() {
    let changes = Changes::new();
    let remembers = |newest: u64| changes.remembers_since(Some(newest), None, START);
    assert!(remembers(READ), "nothing is followed");
    let ids = changes.follow(&[stranger("liar"), stranger("honest")]);
    assert!(!remembers(READ), "nobody has said anything yet");
    changes.add(&key("a.eth"), &read(START, READ, None), changes.begin());
    changes.news(ids[1], &news_at(READ + 5, None), START);
    assert!(remembers(READ + 5) && remembers(READ + 5 - OVERLAP) && !remembers(READ + 4 - OVERLAP));
    assert!(!changes.remembers_since(None, None, START));
    changes.news(ids[0], &news_at(READ + 9000, None), START);
    assert!(remembers(READ + 5), "a block that nobody can have");
    let of = |resolver| changes.remembers_since(Some(READ + 5), Some(resolver), START);
    assert!(of(RESOLVER) && !of(Address::ZERO), "its logs are not asked for");
    changes.news(ids[1], &news_at(READ + 7, Some(READ + 6..=READ + 6)), START);
    assert!(!remembers(READ + 5) && remembers(READ + 6), "a change in what was left out is not known");
}

#[cfg(feature = "redis")]
#[test]
fn what_the_only_endpoint_left_out_is_not_remembered() {
    let changes = Changes::new();
    let ids = changes.follow(&[stranger("alone")]);
    changes.add(&key("a.eth"), &read(START, READ, None), changes.begin());
    assert!(changes.news(ids[0], &news_at(READ + 10, Some(READ + 10..=READ + 10)), START).is_stale);
    assert!(!changes.remembers_since(Some(READ + 8), None, START));
    assert!(changes.remembers_since(Some(READ + 10), None, START));
}

#[test]
fn of_two_own_endpoints_one_that_stands_still_covers_nothing_of_the_other() {
    let changes = Changes::new();
    let ids = changes.follow(&[own("one"), own("two")]);
    changes.add(&key("a.eth"), &read(START, READ, None), changes.begin());
    ids.iter().for_each(|id| _ = changes.news(*id, &news_at(READ + 5, None), START));
    changes.news(ids[0], &news_at(READ + 6, Some(READ + 6..=READ + 6)), START);
    changes.answered(ids[1], true, START + PATIENCE);
    assert_eq!(changes.due(START + PATIENCE), [name("a.eth")]);
}
