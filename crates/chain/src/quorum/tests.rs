//! Counting, with words in place of findings.

use alloy_primitives::B256;
use jiff::Timestamp;

use super::*;

impl Vote for &'static str {
    fn same_answer(&self, other: &Self) -> bool {
        self == other
    }
}

fn block(number: u64, fork: u8) -> Block {
    let timestamp = Timestamp::from_second(i64::try_from(number).unwrap() * 12).unwrap();
    Block { number, hash: B256::left_padding_from(&[u8::try_from(number).unwrap(), fork]), timestamp }
}

/// A counter of 2 in which endpoint `i` belongs to operator `i` and says that the newest block is the same.
fn two(said: &[(u64, u8, &'static str)]) -> QuorumCounter<&'static str> {
    let mut counter = QuorumCounter::new(2);
    for (endpoint, (number, fork, vote)) in said.iter().enumerate() {
        counter.observed(endpoint, &endpoint.to_string(), block(*number, *fork), *vote, Some(Ok(*vote)));
    }
    counter
}

fn settled(counter: &QuorumCounter<&'static str>) -> (Block, Vec<usize>) {
    match counter.status() {
        QuorumStatus::Settled(agreement) => (agreement.block, agreement.endpoints),
        other => panic!("{other:?}"),
    }
}

fn again(counter: &QuorumCounter<&'static str>) -> Vec<(usize, Block)> {
    match counter.status() {
        QuorumStatus::Open { repeats, .. } => repeats,
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_says_the_same_later_contradicts_nobody() {
    let mut counter = two(&[(5, 0, "a"), (5, 0, "a")]);
    let QuorumStatus::Settled(agreement) = counter.status() else { panic!("two agree") };
    counter.observed(2, "2", block(5, 0), "a", None);
    assert_eq!(counter.against(&agreement), []);
    counter.denied(2, block(5, 0));
    assert_eq!(counter.against(&agreement), []);
    counter.observed(3, "3", block(5, 0), "b", None);
    counter.observed(4, "4", block(5, 1), "a", None);
    counter.observed(5, "5", block(6, 0), "a", None);
    counter.denied(5, block(5, 2));
    assert_eq!(counter.against(&agreement), [(3, block(5, 0)), (4, block(5, 1)), (5, block(5, 2))]);
}

#[test]
fn two_that_say_the_same_are_enough() {
    let counter = two(&[(5, 0, "a"), (5, 0, "a")]);
    assert_eq!(settled(&counter), (block(5, 0), vec![0, 1]));
    assert!(!counter.is_divided());
}

#[test]
fn one_is_not_enough_and_neither_are_two_of_one_operator() {
    assert_eq!(two(&[(5, 0, "a")]).status(), QuorumStatus::Open { most: 1, repeats: vec![] });
    let mut counter = QuorumCounter::new(2);
    for endpoint in 0..2 {
        counter.observed(endpoint, "one", block(5, 0), "a", None);
    }
    assert_eq!(counter.status(), QuorumStatus::Open { most: 1, repeats: vec![] });
}

#[test]
fn a_liar_is_outvoted_and_named() {
    for liar in [(5, 1, "a"), (5, 0, "b")] {
        let counter = two(&[liar, (5, 0, "a"), (5, 0, "a")]);
        assert_eq!(settled(&counter), (block(5, 0), vec![1, 2]));
        let QuorumStatus::Settled(agreement) = counter.status() else { unreachable!() };
        assert_eq!(counter.against(&agreement), [(0, block(liar.0, liar.1))]);
    }
}

#[test]
fn no_two_alike_is_no_agreement() {
    for said in [[(5, 0, "a"), (5, 0, "b"), (5, 0, "c")], [(5, 0, "a"), (5, 1, "a"), (5, 2, "a")]] {
        let counter = two(&said);
        assert_eq!(counter.status(), QuorumStatus::Open { most: 1, repeats: vec![] });
        assert!(counter.is_divided());
    }
}

#[test]
fn two_camps_of_two_are_no_agreement() {
    let counter = two(&[(5, 0, "a"), (5, 0, "b"), (5, 0, "a"), (5, 0, "b")]);
    assert!(matches!(counter.status(), QuorumStatus::Open { .. }));
}

#[test]
fn one_that_is_ahead_is_asked_about_the_common_block() {
    let mut counter = two(&[(6, 0, "a"), (5, 0, "a")]);
    assert_eq!(again(&counter), [(0, block(5, 0))]);
    counter.asked_again(0, block(5, 0));
    assert_eq!(again(&counter), [], "it is asked once");
    counter.attested(0, block(5, 0), "a");
    assert_eq!(settled(&counter), (block(5, 0), vec![0, 1]));
}

#[test]
fn one_that_is_ahead_on_another_branch_does_not_join() {
    let mut counter = two(&[(6, 1, "a"), (5, 0, "a")]);
    counter.asked_again(0, block(5, 0));
    counter.denied(0, block(5, 1));
    assert_eq!(counter.status(), QuorumStatus::Open { most: 1, repeats: vec![] });
    assert!(counter.is_divided());
    counter.observed(2, "2", block(5, 0), "a", Some(Ok("a")));
    let QuorumStatus::Settled(agreement) = counter.status() else { panic!("two agree") };
    assert_eq!(counter.against(&agreement), [(0, block(5, 1))]);
}

#[test]
fn the_highest_common_block_wins() {
    let mut counter = two(&[(6, 0, "a"), (5, 0, "a")]);
    counter.asked_again(0, block(5, 0));
    counter.observed(2, "2", block(6, 0), "a", Some(Ok("a")));
    assert_eq!(settled(&counter), (block(6, 0), vec![0, 2]));
    counter.attested(0, block(5, 0), "a");
    assert_eq!(settled(&counter).0, block(6, 0));
}

#[test]
fn a_made_up_block_ahead_of_all_sends_the_count_down_to_the_true_one() {
    // 0 makes block 7 up, 1 is at the true 7, 2 at 6: the two honest ones meet at 6.
    let mut counter = two(&[(7, 1, "x"), (7, 0, "a"), (6, 0, "a")]);
    assert_eq!(again(&counter), [(0, block(6, 0)), (1, block(6, 0))]);
    counter.asked_again(1, block(6, 0));
    counter.attested(1, block(6, 0), "a");
    assert_eq!(settled(&counter), (block(6, 0), vec![1, 2]));
}

#[test]
fn an_endpoint_that_makes_blocks_up_is_not_asked_for_ever() {
    let mut counter = QuorumCounter::new(2);
    counter.observed(0, "0", block(200, 0), "a", None);
    for endpoint in 1..20 {
        counter.observed(endpoint, &endpoint.to_string(), block(100 - u64::try_from(endpoint).unwrap(), 0), "a", None);
    }
    let mut asked = 0;
    loop {
        let next = again(&counter);
        if next.is_empty() {
            break;
        }
        for (endpoint, block) in next {
            counter.asked_again(endpoint, block);
            counter.unanswered(endpoint, block);
            asked += usize::from(endpoint == 0);
        }
    }
    assert_eq!(asked, MAX_REPEATS);
}

#[test]
fn an_old_agreement_waits_for_a_newer_one() {
    let mut counter = two(&[(5, 0, "a"), (5, 0, "a"), (106, 0, "a")]);
    assert!(
        matches!(counter.status(), QuorumStatus::Provisional(_, Lacking::RecentBlock)),
        "101 blocks take more than 20 minutes"
    );
    counter.observed(3, "3", block(106, 0), "a", Some(Ok("a")));
    assert_eq!(settled(&counter).0, block(106, 0));
}

/// Three endpoints, of which two agree on everything but the newest block, as they say it in turn.
fn newest(votes: &[Result<&'static str, Failure>]) -> QuorumStatus {
    let mut counter = QuorumCounter::new(2);
    for (endpoint, vote) in votes.iter().enumerate() {
        counter.observed(endpoint, &endpoint.to_string(), block(5, 0), "a", Some(vote.clone()));
    }
    counter.status()
}

#[test]
fn a_change_at_latest_counts_unless_enough_say_that_there_is_none() {
    let latest = |status| match status {
        QuorumStatus::Settled(agreement) => (agreement.latest, true),
        QuorumStatus::Provisional(agreement, Lacking::Latest) => (agreement.latest, false),
        other => panic!("{other:?}"),
    };
    let failed = || Err(Failure::Unusable("busy".to_owned()));
    assert_eq!(latest(newest(&[Ok("a"), Ok("a")])), (Some(0), true));
    assert_eq!(latest(newest(&[Ok("a"), Ok("b")])), (Some(1), false));
    assert_eq!(latest(newest(&[Ok("b"), Ok("b")])), (Some(0), true));
    assert_eq!(latest(newest(&[Ok("b"), Ok("a"), Ok("a")])), (Some(1), true), "one alone withholds nothing");
    assert_eq!(latest(newest(&[Ok("a"), failed()])), (Some(1), false));
    assert_eq!(latest(newest(&[Ok("a"), failed(), Ok("a")])), (Some(0), true));
}

#[test]
fn one_word_is_enough_where_one_is_asked_for() {
    let mut counter = QuorumCounter::new(1);
    counter.observed(0, "0", block(5, 0), "a", None);
    assert_eq!(settled(&counter), (block(5, 0), vec![0]));
}
