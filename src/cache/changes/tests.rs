use std::sync::Arc;

use clresolve_core::reading::{Block, Grade, Proof};
use clresolve_verdict::sample;
use jiff::ToSpan as _;

use super::budget::{HINTS_AT_ONCE, HINTS_PER_SECOND};
use super::*;
use crate::cache::Before;
use crate::chain::BlockSelector;
use crate::config::CacheConfig;
use crate::digest::Digest;
use crate::verdict::{Anchor, AnchorBlock, Depth};

const START: Timestamp = Timestamp::UNIX_EPOCH;
const RESOLVER: Address = Address::repeat_byte(7);

/// Height up to which the runs here have read.
const READ: u64 = 100;

/// Places of the endpoints.
const LIAR: usize = 0;
const HONEST: usize = 1;

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
    changes.follow(&[false, false]);
    for name in names {
        changes.add(&key(name), &read(START, READ, None));
    }
    changes
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
    News { head, changes, replaced: None, missed: None, unasked: 0 }
}

fn evicted(outcome: &Outcome) -> Vec<&str> {
    outcome.evicted.iter().map(|key| key.name.as_str()).collect()
}

#[test]
fn a_hint_stands_until_a_run_after_it_has_read_its_block() {
    let changes = followed(&["a.eth", "b.eth"]);
    let before = changes.begin();
    let outcome = changes.news(HONEST, &news(vec![text_of("a.eth", READ + 1)]), START);
    assert_eq!((evicted(&outcome), outcome.hints), (vec!["a.eth"], 1));
    let after = changes.begin();
    let unread = |began, newest| changes.unread(&name("a.eth"), began, Some(newest), START).is_some();
    assert!(unread(before, READ + 1), "it began before the hint");
    assert!(unread(after, READ), "it has not read the block");
    assert!(!unread(after, READ + 1));
    assert_eq!(changes.unread(&name("b.eth"), before, Some(READ), START), None);
    assert_eq!(changes.due(START), [name("a.eth")]);
}

#[test]
fn a_block_that_does_not_come_is_not_waited_for_without_end() {
    let changes = followed(&["a.eth"]);
    changes.news(LIAR, &news(vec![text_of("a.eth", READ + 9)]), START);
    let began = changes.begin();
    let unread = |at| changes.unread(&name("a.eth"), began, Some(READ + 1), at).is_some();
    assert!(unread(START + PATIENCE - 1.millisecond()));
    assert!(!unread(START + PATIENCE));

    // Its next block has the name read again, and no run waits for it.
    changes.judge(&name("a.eth"), Some(READ + 1), false, START + PATIENCE);
    let later = START + PATIENCE + 1.second();
    changes.add(&key("a.eth"), &read(later, READ + 1, None));
    let outcome = changes.news(LIAR, &news(vec![text_of("a.eth", READ + 12)]), later);
    assert_eq!(outcome.hints, 1);
    assert_eq!(changes.unread(&name("a.eth"), changes.begin(), Some(READ + 1), later), None);

    // Another endpoint's word holds as before.
    changes.add(&key("a.eth"), &read(later, READ + 1, None));
    changes.news(HONEST, &news(vec![text_of("a.eth", READ + 2)]), later);
    let unread = changes.unread(&name("a.eth"), changes.begin(), Some(READ + 1), later);
    assert_eq!(unread, Some(Unread(Some(READ + 2))));
}

#[test]
fn a_hint_that_another_endpoint_shares_or_a_run_confirms_raises_no_doubt() {
    for (shared, is_changed, doubted) in [(false, false, true), (true, false, false), (false, true, false)] {
        let changes = followed(&["a.eth", "b.eth"]);
        changes.news(LIAR, &news(vec![text_of("a.eth", READ + 1)]), START);
        if shared {
            changes.add(&key("a.eth"), &read(START, READ, None));
            changes.news(HONEST, &news(vec![text_of("a.eth", READ + 1)]), START);
        }
        changes.judge(&name("a.eth"), Some(READ + 1), is_changed, START);
        changes.news(LIAR, &news(vec![text_of("b.eth", READ + 2)]), START);
        let is_awaited = changes.unread(&name("b.eth"), changes.begin(), Some(READ), START).is_some();
        assert_eq!(is_awaited, !doubted, "{shared} {is_changed}");
    }
}

/// Ten thousand hints of one endpoint cost what its budget permits, and hide no hint of another.
/// Else a liar would withhold a name for ever, by a block to come each time before the last one's time is over.
#[test]
fn further_hints_do_not_prolong_the_wait() {
    let changes = followed(&["a.eth"]);
    let is_awaited = |at: Timestamp| changes.unread(&name("a.eth"), changes.begin(), Some(READ + 1), at).is_some();
    for (at, block) in [(START, READ + 9), (START + 12.seconds(), READ + 12), (START + 24.seconds(), READ + 16)] {
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
    changes.judge(&name("a.eth"), Some(READ + 1), true, START + 1.second());
    let late = START + 300.seconds();
    let is_unread = |newest| changes.unread(&name("a.eth"), changes.begin(), Some(newest), late);
    assert_eq!((is_unread(READ), is_unread(READ + 1)), (Some(Unread(Some(READ + 1))), None));
}

#[test]
fn a_liar_spends_its_own_budget_alone() {
    let names: Vec<String> = (0..1000).map(|number| format!("a{number}.eth")).collect();
    let changes = followed(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut lies: Vec<Change> = names.iter().map(|name| text_of(name, READ)).collect();
    let mut lie = |at| {
        lies.iter_mut().for_each(|lie| lie.block += 1);
        changes.news(LIAR, &news(lies.clone()), at)
    };
    let outcomes: Vec<Outcome> = (0..10).map(|_| lie(START)).collect();
    let taken: u64 = outcomes.iter().map(|outcome| outcome.hints).sum();
    let ignored: u64 = outcomes.iter().map(|outcome| outcome.over_budget).sum();
    assert_eq!((taken, taken + ignored), (HINTS_AT_ONCE as u64, 10_000));
    assert_eq!(outcomes.iter().map(|outcome| outcome.evicted.len()).sum::<usize>(), HINTS_AT_ONCE as usize);
    assert_eq!(lie(START + 1.second()).hints, HINTS_PER_SECOND as u64);

    let hidden = names.iter().rev().find(|name| changes.unread(&self::name(name), 0, Some(0), START).is_none());
    let hidden = hidden.expect("one that the liar did not name");
    let outcome = changes.news(HONEST, &news(vec![text_of(hidden, READ + 1)]), START);
    assert_eq!(evicted(&outcome), [hidden.as_str()]);
}

#[test]
fn a_hint_that_is_repeated_is_taken_once() {
    let changes = followed(&["a.eth"]);
    let hint = news(vec![text_of("a.eth", READ + 1); 1000]);
    assert_eq!(changes.news(LIAR, &hint, START).hints, 1);
    // Read again where the block is not known yet, as after some time.
    changes.add(&key("a.eth"), &read(START, READ, None));
    assert_eq!(changes.news(LIAR, &hint, START + 40.seconds()), Outcome::default());
    assert_eq!(changes.news(HONEST, &hint, START + 40.seconds()).hints, 1, "another endpoint's word is news");
}

#[test]
fn hints_of_one_name_cause_one_reading_a_second() {
    let changes = followed(&["a.eth"]);
    let hint = |block, at| {
        changes.add(&key("a.eth"), &read(at, READ, None));
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
    let alone = Changes::new();
    alone.follow(&[false]);
    alone.add(&key("a.eth"), &read(START, READ, None));
    assert_eq!(alone.news(0, &news(vec![text_of("a.eth", 5000)]), START).hints, 1, "no other says what it can have");
}

#[test]
fn only_what_a_verdict_was_read_from_counts() {
    let changes = followed(&["a.b.eth", "c.eth"]);
    changes.add(&key("x.wild.eth"), &read(START, READ, Some("wild.eth")));
    let other = Source::Resolver(Address::repeat_byte(8));
    let hinted = |change: Change| {
        let outcome = changes.news(HONEST, &news(vec![change]), START);
        evicted(&outcome).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let nobody: [&str; 0] = [];
    assert_eq!(hinted(change(other, "c.eth", READ + 1)), nobody, "another resolver");
    assert_eq!(hinted(text_of("d.eth", READ + 1)), nobody, "a name that is not cached");
    assert_eq!(hinted(text_of("c.eth", READ)), nobody, "what the run has read");
    assert_eq!(hinted(text_of("b.eth", READ + 1)), nobody, "the records of an ancestor");
    assert_eq!(hinted(text_of("x.wild.eth", READ + 1)), nobody, "the name's own, where an ancestor answers");
    assert_eq!(hinted(change(Source::Registration, "a.c.eth", READ + 1)), nobody, "a name below it");
    assert_eq!(hinted(text_of("wild.eth", READ + 1)), ["x.wild.eth"]);
    assert_eq!(hinted(change(Source::Registration, "b.eth", READ + 1)), ["a.b.eth"]);
    assert_eq!(hinted(text_of("c.eth", READ + 1)), ["c.eth"]);
}

#[test]
fn names_that_left_the_cache_and_long_ones_are_not_followed() {
    let changes = followed(&[]);
    let entry = changes.add(&key("a.eth"), &read(START, READ, None));
    changes.add(&key(&format!("{}eth", "a.".repeat(index::MAX_LABELS))), &read(START, READ, None));
    assert_eq!(changes.resolvers(), [RESOLVER].into());
    changes.remove(entry);
    assert_eq!(changes.resolvers(), [].into());
    let hints = vec![text_of("a.eth", READ + 1), change(Source::Registration, "eth", READ + 1)];
    assert_eq!(changes.news(HONEST, &news(hints), START), Outcome::default());
}

/// A block in place of another: what was read of the old one is read again, although its height is the same.
#[test]
fn a_block_in_place_of_another_has_its_names_read_again() {
    let changes = followed(&["a.eth"]);
    let replaced = News { replaced: Some(READ - 1), ..news(vec![text_of("a.eth", READ)]) };
    assert_eq!(changes.news(HONEST, &replaced, START).hints, 1);
    assert!(changes.unread(&name("a.eth"), 0, Some(READ), START).is_some(), "it began before");
}

/// A log that came while a run was under way, or before its resolver was known, is not forgotten.
#[test]
fn a_run_that_missed_a_change_is_found_out_when_it_ends() {
    let changes = followed(&[]);
    let began = changes.begin();
    let hint = news(vec![text_of("a.eth", READ + 1)]);
    assert_eq!(changes.news(HONEST, &hint, START), Outcome::default(), "nothing is cached yet");
    changes.add(&key("a.eth"), &read(START, READ, None));
    assert!(changes.unread(&name("a.eth"), began, Some(READ), START).is_some());
    assert_eq!(changes.due(START), [name("a.eth")]);
    assert_eq!(changes.unread(&name("a.eth"), changes.begin(), Some(READ + 1), START), None);
}

#[test]
fn a_gap_has_all_names_read_again_a_few_a_second_unless_another_endpoint_covers_it() {
    let names: Vec<String> = (0..20).map(|number| format!("a{number}.eth")).collect();
    let changes = followed(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let gap = || News { missed: Some(READ + 1..=READ + 5), ..news(vec![]) };
    changes.news(HONEST, &news(vec![]), START);
    assert_eq!(changes.followed(), 1);
    assert!(!changes.news(LIAR, &gap(), START).is_stale, "the other follows without a gap");
    assert!(changes.is_idle());

    changes.answered(HONEST, false);
    assert!(changes.news(LIAR, &gap(), START).is_stale);
    let first = changes.due(START).len();
    assert!((1..=4).contains(&first), "{first} at once");
    assert_eq!(changes.due(START), []);
    assert_eq!(changes.due(START + 1.second()).len(), 4);

    // What was read since then is not read again.
    for name in &names {
        changes.add(&key(name), &read(START, READ + 5, None));
    }
    for entry in 1..=names.len() as u64 {
        changes.remove(entry);
    }
    assert_eq!(changes.due(START + 2.seconds()), []);
    assert!(changes.is_idle());
}

#[tokio::test]
async fn an_entry_whose_run_missed_a_hint_is_not_served() {
    let cache = Arc::new(VerdictCache::new(&CacheConfig::default()));
    cache.changes.follow(&[false, false]);
    let run = |newest| move |_: Before| async move { read(START, newest, None) };
    cache.run_anew(key("a.eth"), run(READ)).await;
    assert!(cache.fresh(&key("a.eth"), START).await.is_some());

    let outcome = cache.changes.news(HONEST, &news(vec![text_of("a.eth", READ + 1)]), START);
    cache.drop_changed(&outcome.evicted).await;
    assert!(cache.fresh(&key("a.eth"), START).await.is_none());
    cache.run_anew(key("a.eth"), run(READ)).await;
    assert!(cache.fresh(&key("a.eth"), START).await.is_none(), "its endpoints have not seen the change");
    cache.run_anew(key("a.eth"), run(READ + 1)).await;
    assert!(cache.fresh(&key("a.eth"), START).await.is_some());
}

#[tokio::test]
async fn a_run_that_a_hint_overtook_is_not_kept() {
    let cache = Arc::new(VerdictCache::new(&CacheConfig::default()));
    cache.changes.follow(&[false, false]);
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
