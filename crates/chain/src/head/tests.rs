//! Reports of endpoints that follow a chain, fall behind, reorganise or lie.

use alloy_consensus::Header;
use proptest::prelude::*;

use super::*;

/// The branch of most blocks.
const MAIN: u8 = 0;

fn child(parent: &HashedBlockHeader, branch: u8) -> HashedBlockHeader {
    HashedBlockHeader::new(Header {
        parent_hash: parent.hash(),
        number: parent.number() + 1,
        timestamp: (parent.number() + 1) * 12,
        extra_data: vec![branch].into(),
        ..Header::default()
    })
}

/// `parent` and `length` descendants on this branch.
fn branch(parent: &HashedBlockHeader, branch: u8, length: usize) -> Vec<HashedBlockHeader> {
    std::iter::successors(Some(parent.clone()), |parent| Some(child(parent, branch))).take(length + 1).collect()
}

/// Blocks by height, from block 0.
fn chain(length: usize) -> Vec<HashedBlockHeader> {
    branch(&HashedBlockHeader::new(Header::default()), MAIN, length)
}

/// A block at height 1,000,000 that claims this parent.
fn made_up(parent: &HashedBlockHeader) -> HashedBlockHeader {
    HashedBlockHeader::new(Header { parent_hash: parent.hash(), number: 1_000_000, ..Header::default() })
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn head(header: &HashedBlockHeader, reported_at: i64) -> Option<ChainHead> {
    Some(ChainHead { block: header.block().unwrap(), reported_at: at(reported_at) })
}

/// A counter with one endpoint of each of these operators.
struct Counter(HeadVoteCounter);

impl Counter {
    fn new(agree: usize, operators: &[&str]) -> Self {
        Self(HeadVoteCounter::new(agree, operators.iter().map(|operator| (*operator).to_owned())))
    }

    /// Three operators, of which two must agree.
    fn two_of_three() -> Self {
        Self::new(2, &["a", "b", "c"])
    }

    fn report(&mut self, endpoint: usize, header: &HashedBlockHeader, second: i64) -> Option<ChainHead> {
        let head = self.0.add_head_report(endpoint, header, header.block().unwrap(), at(second));
        assert_eq!(self.0.head, head);
        head
    }
}

#[test]
fn highest_block_of_two_operators_is_the_head() {
    let (chain, mut counter) = (chain(5), Counter::two_of_three());
    assert_eq!(counter.report(0, &chain[4], 1), None);
    assert_eq!(counter.report(1, &chain[4], 2), head(&chain[4], 1));
    assert_eq!(counter.report(2, &chain[5], 3), head(&chain[4], 2));
    assert_eq!(counter.report(0, &chain[5], 4), head(&chain[5], 3));
}

#[test]
fn endpoints_one_block_apart_agree_on_the_lower_block() {
    let chain = chain(5);
    for (first, second) in [(4, 5), (5, 4)] {
        let mut counter = Counter::two_of_three();
        assert_eq!(counter.report(0, &chain[first], 1), None);
        assert_eq!(counter.report(1, &chain[second], 2), head(&chain[4], 1));
    }
    let mut counter = Counter::two_of_three();
    counter.report(0, &chain[4], 1);
    counter.report(0, &chain[5], 2);
    assert_eq!(counter.report(1, &chain[3], 3), head(&chain[3], 1), "the endpoint's own reports link block 3");
}

#[test]
fn block_that_only_its_children_name_is_no_head() {
    let (chain, mut counter) = (chain(5), Counter::two_of_three());
    counter.report(0, &chain[5], 1);
    assert_eq!(counter.report(1, &child(&chain[4], 1), 2), None, "nobody has shown block 4");
    assert_eq!(counter.report(2, &chain[4], 3), head(&chain[4], 2));
}

#[test]
fn made_up_block_of_one_operator_counts_for_nothing() {
    let (chain, mut counter) = (chain(5), Counter::two_of_three());
    counter.report(0, &made_up(&chain[3]), 1);
    counter.report(1, &chain[4], 2);
    assert_eq!(counter.report(2, &chain[4], 3), head(&chain[4], 2));
    assert_eq!(counter.report(0, &made_up(&chain[4]), 4), head(&chain[4], 3), "it vouches for the parent alone");
    counter.report(1, &chain[5], 5);
    assert_eq!(counter.report(2, &chain[5], 6), head(&chain[5], 5));
}

#[test]
fn two_endpoints_of_one_operator_count_once() {
    let (chain, mut counter) = (chain(5), Counter::new(2, &["a", "a", "b"]));
    counter.report(0, &chain[5], 1);
    assert_eq!(counter.report(1, &chain[5], 2), None);
    assert_eq!(counter.report(2, &chain[5], 3), head(&chain[5], 2));
    assert_eq!(counter.report(0, &chain[5], 4), head(&chain[5], 3));
    assert_eq!(counter.report(1, &chain[5], 5), head(&chain[5], 3), "one operator refreshes nothing");
}

#[test]
fn one_operator_is_enough_where_one_is_asked_for() {
    let (chain, mut counter) = (chain(5), Counter::new(1, &["own"]));
    assert_eq!(counter.report(0, &chain[4], 1), head(&chain[4], 1));
    assert_eq!(counter.report(0, &chain[4], 2), head(&chain[4], 2));
    assert_eq!(counter.report(0, &chain[5], 3), head(&chain[5], 3));
    assert_eq!(counter.report(0, &chain[4], 4), head(&chain[5], 3), "it runs backwards");
    let other = child(&chain[4], 1);
    assert_eq!(counter.report(0, &other, 5), head(&other, 5));
}

#[test]
fn endpoints_that_run_backwards_keep_the_head_unrefreshed() {
    let (chain, mut counter) = (chain(6), Counter::two_of_three());
    for endpoint in 0..3 {
        counter.report(endpoint, &chain[4], 1);
        counter.report(endpoint, &chain[5], 2);
    }
    for (endpoint, height, second) in [(0, 4, 10), (1, 4, 11), (2, 4, 12), (0, 3, 13), (1, 3, 14), (0, 5, 15)] {
        assert_eq!(counter.report(endpoint, &chain[height], second), head(&chain[5], 2), "{second}");
    }
    assert_eq!(counter.report(1, &chain[5], 16), head(&chain[5], 15));
    counter.report(0, &chain[6], 17);
    assert_eq!(counter.report(1, &chain[6], 18), head(&chain[6], 17));
}

#[test]
fn endpoints_behind_do_not_replace_the_head_of_those_ahead() {
    let (chain, mut counter) = (chain(9), Counter::new(2, &["a", "b", "c", "d"]));
    counter.report(0, &chain[5], 1);
    counter.report(1, &chain[5], 2);
    // Both have missed blocks, so their reports link neither to each other nor to the head.
    counter.report(0, &chain[9], 3);
    counter.report(1, &chain[7], 4);
    counter.report(2, &chain[4], 5);
    assert_eq!(counter.report(3, &chain[4], 6), head(&chain[5], 1));
}

#[test]
fn reorganisation_at_the_same_height_replaces_the_head() {
    let (chain, mut counter) = (chain(5), Counter::two_of_three());
    for endpoint in 0..3 {
        counter.report(endpoint, &chain[5], 1);
    }
    let other = child(&chain[4], 1);
    assert_eq!(counter.report(0, &other, 10), head(&chain[5], 1), "one operator alone replaces nothing");
    assert_eq!(counter.report(1, &other, 11), head(&other, 10));
    assert_eq!(counter.report(2, &chain[5], 12), head(&other, 10));
}

#[test]
fn deeper_reorganisation_replaces_the_head_at_any_height() {
    for height in [3, 4, 5, 6] {
        let (chain, mut counter) = (chain(5), Counter::two_of_three());
        for block in &chain[2..=5] {
            (0..3).for_each(|endpoint| _ = counter.report(endpoint, block, 1));
        }
        let other = &branch(&chain[2], 1, 4)[height - 2];
        assert_eq!(counter.report(0, other, 10), head(&chain[5], 1), "{height}");
        assert_eq!(counter.report(1, other, 11), head(other, 10), "{height}");
    }
}

#[test]
fn common_ancestor_of_two_branches_does_not_replace_the_head() {
    let (chain, mut counter) = (chain(5), Counter::new(2, &["a", "b"]));
    for endpoint in 0..2 {
        counter.report(endpoint, &chain[4], 1);
        counter.report(endpoint, &chain[5], 1);
    }
    let other = child(&chain[4], 1);
    assert_eq!(counter.report(0, &other, 10), head(&chain[5], 1), "both vouch for block 4 alone");
    assert_eq!(counter.report(1, &other, 11), head(&other, 10));
}

#[test]
fn repeated_reports_refresh_the_head() {
    let (chain, mut counter) = (chain(5), Counter::two_of_three());
    let mut last = None;
    for second in 0..20 {
        last = counter.report(usize::try_from(second % 3).unwrap(), &chain[5], second);
    }
    assert_eq!(last, head(&chain[5], 18));
}

#[test]
fn endpoint_that_moved_on_does_not_refresh_the_head() {
    let (chain, mut counter) = (chain(6), Counter::two_of_three());
    counter.report(0, &chain[4], 1);
    assert_eq!(counter.report(1, &chain[4], 2), head(&chain[4], 1));
    for (endpoint, height, second) in [(0, 5, 10), (1, 4, 11), (0, 5, 12), (0, 6, 13), (1, 4, 14)] {
        assert_eq!(counter.report(endpoint, &chain[height], second), head(&chain[4], 1), "{second}");
    }
    assert_eq!(counter.report(2, &chain[4], 15), head(&chain[4], 14), "two operators report it");
}

#[test]
fn first_child_counts_as_a_report_of_its_parent() {
    let (chain, mut counter) = (chain(6), Counter::two_of_three());
    counter.report(0, &chain[4], 1);
    assert_eq!(counter.report(1, &chain[5], 5), head(&chain[4], 1));
    assert_eq!(counter.report(0, &chain[4], 9), head(&chain[4], 5));
    counter.report(1, &chain[5], 10);
    assert_eq!(counter.report(0, &chain[4], 11), head(&chain[4], 5), "only the first one");
}

#[test]
fn old_head_that_one_operator_repeats_is_not_refreshed() {
    let (chain, mut counter) = (chain(5), Counter::two_of_three());
    for (endpoint, second) in [(0, 1), (1, 2), (2, 3)] {
        counter.report(endpoint, &chain[4], second);
    }
    // Endpoint 2 does not answer any more.
    assert_eq!(counter.report(1, &chain[5], 10), head(&chain[4], 2));
    for second in 11..40 {
        assert_eq!(counter.report(0, &chain[4], second), head(&chain[4], 3), "{second}");
    }
    assert_eq!(counter.report(2, &chain[5], 40), head(&chain[5], 10));
}

#[test]
fn endpoint_vouches_for_a_bounded_number_of_blocks() {
    let (chain, mut counter) = (chain(20), Counter::two_of_three());
    for (number, block) in chain.iter().enumerate().skip(1) {
        counter.report(0, block, i64::try_from(number).unwrap());
        assert!(counter.0.endpoints[0].vouched.len() <= MAX_LINEAGE);
    }
    let lowest = 21 - MAX_LINEAGE;
    assert_eq!(counter.report(1, &chain[lowest - 1], 30), None);
    assert_eq!(counter.report(1, &chain[lowest], 31), head(&chain[lowest], i64::try_from(lowest).unwrap()));
}

/// The blocks that the liar reports: true ones of any age, another branch, and made-up ones.
fn lie(chain: &[HashedBlockHeader], kind: usize, height: usize) -> HashedBlockHeader {
    match kind {
        0 => chain[height].clone(),
        1 => child(&chain[height], 1),
        _ => made_up(&chain[height]),
    }
}

proptest! {
    /// Endpoint 0 lies. The others follow the chain, each at its own pace.
    #[test]
    fn one_liar_neither_makes_a_head_nor_refreshes_one(
        reports in prop::collection::vec((0..3_usize, 0..3_usize, 0..20_usize), 1..80)
    ) {
        let (chain, mut counter) = (chain(200), Counter::two_of_three());
        let mut heights = [0; 3];
        // When an honest endpoint last newly vouched for the block at this height.
        let mut vouched = vec![0; chain.len()];
        for (second, (endpoint, step, lied)) in (1..).zip(reports) {
            let now = if endpoint == 0 {
                counter.report(0, &lie(&chain, step, lied), second)
            } else {
                let (before, height) = (heights[endpoint], heights[endpoint] + step);
                vouched[height] = second;
                if height > before + 1 || before == 0 {
                    vouched[height.saturating_sub(1)] = second;
                }
                heights[endpoint] = height;
                counter.report(endpoint, &chain[height], second)
            };
            let Some(now) = now else { continue };
            let height = usize::try_from(now.block.number).unwrap();
            prop_assert_eq!(now.block.hash, chain[height].hash());
            prop_assert!(now.reported_at <= at(vouched[height]));
        }
    }
}

/// Nodes behind one address may be a block or two apart.
#[test]
fn only_a_far_lower_block_runs_backwards() {
    let chain = chain(6);
    let mut counter = Counter::new(1, &["a", "b"]);
    counter.report(0, &chain[5], 1);
    let is_backwards =
        |endpoint, height: usize| counter.0.is_head_regression(endpoint, &chain[height].block().unwrap());
    assert_eq!([6, 5, 3, 2].map(|height| is_backwards(0, height)), [false, false, false, true]);
    assert!(!is_backwards(1, 0), "it reported none before");
}
