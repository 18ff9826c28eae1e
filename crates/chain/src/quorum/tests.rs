//! Vote counting with words in place of findings, and polls of scripted endpoints.

mod moving;

use alloy_consensus::Header;
use alloy_primitives::{Address, B256, Bytes};
use clresolve_core::reading::NameHolder;
use clresolve_state::contracts::{FoundResolver, ResolverNameOrigin, UniversalResolverOutcome};
use jiff::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::fan_out::{FanOutAction, FanOutScheduler};

/// A word for the records and, after a slash, a word for payments.
impl QuorumVote for &'static str {
    fn agrees_on_part(&self, other: &Self, part: QuorumVotePart) -> bool {
        let [one, other] = [self, other].map(|words| words.split_once('/').unwrap_or((words, "")));
        match part {
            QuorumVotePart::Records => one.0 == other.0,
            QuorumVotePart::Payment => one.1 == other.1,
        }
    }
}

fn block(number: u64, fork: u8) -> ChainBlock {
    let timestamp = Timestamp::from_second(i64::try_from(number).unwrap() * 12).unwrap();
    ChainBlock { number, hash: B256::left_padding_from(&[u8::try_from(number).unwrap(), fork]), timestamp }
}

/// A counter that needs two operators. Endpoint `i` belongs to operator `i` and casts the same vote on the newest
/// block.
fn two(votes: &[(u64, u8, &'static str)]) -> QuorumCounter<&'static str> {
    let mut counter = QuorumCounter::new(2);
    for (endpoint, (number, fork, vote)) in votes.iter().enumerate() {
        counter.add_votes(endpoint, &endpoint.to_string(), block(*number, *fork), *vote, Some(Ok(*vote)));
    }
    counter
}

fn settled(counter: &QuorumCounter<&'static str>) -> (ChainBlock, Vec<usize>) {
    match counter.status() {
        QuorumStatus::Settled(agreement) => (agreement.block, agreement.endpoints),
        other => panic!("{other:?}"),
    }
}

fn again(counter: &QuorumCounter<&'static str>) -> Vec<(usize, ChainBlock)> {
    match counter.status() {
        QuorumStatus::Open { repeats, .. } => repeats,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_endpoint_that_agrees_late_contradicts_no_other() {
    let mut counter = two(&[(5, 0, "a"), (5, 0, "a")]);
    let QuorumStatus::Settled(agreement) = counter.status() else { panic!("two agree") };
    counter.add_votes(2, "2", block(5, 0), "a", None);
    assert_eq!(counter.contradicting_endpoints(Some(&agreement)), []);
    counter.add_conflicting_block(2, block(5, 0));
    assert_eq!(counter.contradicting_endpoints(Some(&agreement)), []);
    counter.add_votes(3, "3", block(5, 0), "b", None);
    counter.add_votes(4, "4", block(5, 1), "a", None);
    counter.add_votes(5, "5", block(6, 0), "a", None);
    counter.add_conflicting_block(5, block(5, 2));
    assert_eq!(
        counter.contradicting_endpoints(Some(&agreement)),
        [(3, block(5, 0)), (4, block(5, 1)), (5, block(5, 2))]
    );
}

#[test]
fn two_that_say_the_same_are_enough() {
    let counter = two(&[(5, 0, "a"), (5, 0, "a")]);
    assert_eq!(settled(&counter), (block(5, 0), vec![0, 1]));
    assert!(!counter.has_conflicting_votes());
}

#[test]
fn one_is_not_enough_and_neither_are_two_of_one_operator() {
    assert_eq!(two(&[(5, 0, "a")]).status(), QuorumStatus::Open { most: 1, repeats: vec![] });
    let mut counter = QuorumCounter::new(2);
    for endpoint in 0..2 {
        counter.add_votes(endpoint, "one", block(5, 0), "a", None);
    }
    assert_eq!(counter.status(), QuorumStatus::Open { most: 1, repeats: vec![] });
}

#[test]
fn a_liar_is_outvoted_and_named() {
    for liar in [(5, 1, "a"), (5, 0, "b"), (5, 0, "a/another payee")] {
        let counter = two(&[liar, (5, 0, "a"), (5, 0, "a")]);
        assert_eq!(settled(&counter), (block(5, 0), vec![1, 2]));
        let QuorumStatus::Settled(agreement) = counter.status() else { unreachable!() };
        assert_eq!(counter.contradicting_endpoints(Some(&agreement)), [(0, block(liar.0, liar.1))]);
    }
}

#[test]
fn no_two_alike_is_no_agreement() {
    for votes in [[(5, 0, "a"), (5, 0, "b"), (5, 0, "c")], [(5, 0, "a"), (5, 1, "a"), (5, 2, "a")]] {
        let counter = two(&votes);
        assert_eq!(counter.status(), QuorumStatus::Open { most: 1, repeats: vec![] });
        assert!(counter.has_conflicting_votes());
    }
}

#[test]
fn dispute_about_a_shared_block_is_settled_by_no_lower_one() {
    let mut counter = two(&[(5, 0, "a"), (5, 0, "x"), (4, 0, "a")]);
    assert_eq!(again(&counter), [], "nobody is asked about a lower block");
    counter.add_vote_at_block(0, block(4, 0), "a");
    counter.add_vote_at_block(1, block(4, 0), "a");
    assert!(matches!(counter.status(), QuorumStatus::Open { .. }) && counter.has_conflicting_votes());
    counter.add_votes(3, "3", block(5, 0), "a", Some(Ok("a")));
    assert_eq!(settled(&counter), (block(5, 0), vec![0, 3]));
}

#[test]
fn lie_about_a_lower_block_is_named_without_an_agreement() {
    let mut counter = two(&[(5, 0, "a"), (5, 0, "x"), (4, 0, "a")]);
    counter.add_vote_at_block(0, block(4, 0), "a");
    counter.add_vote_at_block(1, block(4, 0), "x");
    assert_eq!(counter.contradicting_endpoints(None), [(1, block(4, 0))]);
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
    counter.note_repeat_request(0, block(5, 0));
    assert_eq!(again(&counter), [], "it is asked once");
    counter.add_vote_at_block(0, block(5, 0), "a");
    assert_eq!(settled(&counter), (block(5, 0), vec![0, 1]));
}

#[test]
fn one_that_is_ahead_on_another_branch_does_not_join() {
    let mut counter = two(&[(6, 1, "a"), (5, 0, "a")]);
    counter.note_repeat_request(0, block(5, 0));
    counter.add_conflicting_block(0, block(5, 1));
    assert_eq!(counter.status(), QuorumStatus::Open { most: 1, repeats: vec![] });
    assert!(counter.has_conflicting_votes());
    counter.add_votes(2, "2", block(5, 0), "a", Some(Ok("a")));
    let QuorumStatus::Settled(agreement) = counter.status() else { panic!("two agree") };
    assert_eq!(counter.contradicting_endpoints(Some(&agreement)), [(0, block(5, 1))]);
}

#[test]
fn endpoint_that_denies_a_fake_block_vouches_for_the_true_one() {
    // Endpoint 0 invents block 5; endpoint 1 is ahead and has the true one.
    let mut counter = two(&[(5, 1, "x"), (6, 0, "a")]);
    assert_eq!(again(&counter), [(1, block(5, 1))]);
    counter.note_repeat_request(1, block(5, 1));
    counter.add_conflicting_block(1, block(5, 0));
    counter.add_votes(2, "2", block(5, 0), "a", Some(Ok("a")));
    assert_eq!(again(&counter), [(1, block(5, 0))]);
    counter.note_repeat_request(1, block(5, 0));
    counter.add_vote_at_block(1, block(5, 0), "a");
    assert_eq!(settled(&counter), (block(5, 0), vec![1, 2]));
}

#[test]
fn the_highest_common_block_wins() {
    let mut counter = two(&[(6, 0, "a"), (5, 0, "a")]);
    counter.note_repeat_request(0, block(5, 0));
    counter.add_votes(2, "2", block(6, 0), "a", Some(Ok("a")));
    assert_eq!(settled(&counter), (block(6, 0), vec![0, 2]));
    counter.add_vote_at_block(0, block(5, 0), "a");
    assert_eq!(settled(&counter).0, block(6, 0));
}

#[test]
fn a_made_up_block_ahead_of_all_sends_the_count_down_to_the_true_one() {
    // Endpoint 0 invents block 7; the honest endpoints, 1 at the true 7 and 2 at 6, agree on 6.
    let mut counter = two(&[(7, 1, "x"), (7, 0, "a"), (6, 0, "a")]);
    assert_eq!(again(&counter), [(0, block(6, 0)), (1, block(6, 0))]);
    counter.note_repeat_request(1, block(6, 0));
    counter.add_vote_at_block(1, block(6, 0), "a");
    assert_eq!(settled(&counter), (block(6, 0), vec![1, 2]));
}

#[test]
fn an_endpoint_that_makes_blocks_up_is_not_asked_for_ever() {
    let mut counter = QuorumCounter::new(2);
    counter.add_votes(0, "0", block(200, 0), "a", None);
    for endpoint in 1..20 {
        counter.add_votes(endpoint, &endpoint.to_string(), block(100 - u64::try_from(endpoint).unwrap(), 0), "a", None);
    }
    let mut asked = 0;
    loop {
        let next = again(&counter);
        if next.is_empty() {
            break;
        }
        for (endpoint, block) in next {
            counter.note_repeat_request(endpoint, block);
            counter.note_unanswered_block(endpoint, block);
            asked += usize::from(endpoint == 0);
        }
    }
    assert_eq!(asked, MAX_REPEATS);
}

#[test]
fn an_old_agreement_waits_for_a_newer_one() {
    let mut counter = two(&[(5, 0, "a"), (5, 0, "a"), (106, 0, "a")]);
    assert!(
        matches!(counter.status(), QuorumStatus::Provisional(_, ProvisionalAgreementGap::RecentBlock)),
        "101 blocks take more than 20 minutes"
    );
    counter.add_votes(3, "3", block(106, 0), "a", Some(Ok("a")));
    assert_eq!(settled(&counter).0, block(106, 0));
    let just_recent = two(&[(5, 0, "a"), (5, 0, "a"), (105, 0, "a")]);
    assert_eq!(settled(&just_recent).0, block(5, 0), "100 blocks take 20 minutes");
    assert!(!just_recent.has_conflicting_votes(), "blocks of other heights contradict nobody");
}

/// The status after these votes on the newest block, in order. Two endpoints must agree; all agree on everything else.
fn newest(votes: &[Result<&'static str, EndpointFailure>]) -> QuorumStatus {
    let mut counter = QuorumCounter::new(2);
    for (endpoint, vote) in votes.iter().enumerate() {
        counter.add_votes(endpoint, &endpoint.to_string(), block(5, 0), "a", Some(vote.clone()));
    }
    counter.status()
}

#[test]
fn a_change_at_latest_counts_unless_enough_say_that_there_is_none() {
    let records = |votes: &[_]| {
        let (at, is_clear) = at_latest(newest(votes));
        (at.map(|at| at.records), is_clear)
    };
    let failed = || Err(EndpointFailure::Unusable("busy".to_owned()));
    assert_eq!(records(&[Ok("a"), Ok("a")]), (Some(0), true));
    assert_eq!(records(&[Ok("a"), Ok("b")]), (Some(1), false));
    assert_eq!(records(&[Ok("b"), Ok("b")]), (Some(0), true));
    assert_eq!(records(&[Ok("b"), Ok("a"), Ok("a")]), (Some(1), true), "one alone withholds nothing");
    assert_eq!(records(&[Ok("a"), failed()]), (Some(1), false));
    assert_eq!(records(&[Ok("a"), failed(), Ok("a")]), (Some(0), true));
}

#[test]
fn what_enough_state_at_latest_counts_before_what_one_objects() {
    let at = |votes: &[_]| at_latest(newest(votes));
    assert_eq!(at(&[Ok("b"), Ok("c"), Ok("c")]), (Some(DecisiveNewestVoters { records: 1, payment: 0 }), true));
    let mut counter = QuorumCounter::new(2);
    for (endpoint, vote) in ["a", "b", "c", "c"].into_iter().enumerate() {
        counter.add_votes(endpoint, &endpoint.to_string(), block(5, 0), "a", Some(Ok(vote)));
    }
    let objects = |endpoint| counter.is_objection(endpoint, &"a", QuorumVotePart::Records);
    assert_eq!([0, 1, 2, 3].map(objects), [false, true, false, false]);
}

#[test]
fn payment_change_at_newest_block_keeps_the_records() {
    let of = |votes: &[Result<&'static str, EndpointFailure>]| at_latest(newest(votes));
    let at = |records, payment| Some(DecisiveNewestVoters { records, payment });
    assert_eq!(of(&[Ok("a"), Ok("a/p")]), (at(0, 1), false), "the payments are not clear");
    assert_eq!(of(&[Ok("a/p"), Ok("a/p")]), (at(0, 0), true));
    // Payments change, and one endpoint lies about the records: it cannot withhold anything.
    assert_eq!(of(&[Ok("b/p"), Ok("a/p"), Ok("a/p")]), (at(1, 0), true));
    assert_eq!(of(&[Ok("a/p"), Ok("a"), Ok("a")]), (at(0, 1), true), "one alone withholds no address");
    assert_eq!(of(&[Ok("a"), Err(EndpointFailure::Unusable("busy".to_owned()))]), (at(1, 1), false));
}

fn at_latest(status: QuorumStatus) -> (Option<DecisiveNewestVoters>, bool) {
    match status {
        QuorumStatus::Settled(agreement) => (agreement.latest, true),
        QuorumStatus::Provisional(agreement, ProvisionalAgreementGap::Latest) => (agreement.latest, false),
        other => panic!("{other:?}"),
    }
}

#[cfg(feature = "state-proof")]
#[test]
fn where_too_few_answer_an_objection_counts_for_its_part() {
    let objections = |vote: Result<&'static str, EndpointFailure>| {
        let mut counter = QuorumCounter::new(3);
        counter.add_votes(0, "0", block(5, 0), "a/p", Some(Ok("a/p")));
        counter.add_votes(1, "1", block(5, 0), "a/p", Some(vote));
        counter.objecting_endpoints(&"a/p")
    };
    assert_eq!(objections(Ok("a/p")), None);
    assert_eq!(objections(Ok("b/p")), Some(DecisiveNewestVoters { records: 1, payment: 1 }));
    assert_eq!(objections(Ok("b/q")), Some(DecisiveNewestVoters { records: 1, payment: 1 }));
    assert_eq!(objections(Ok("a/q")), None, "nothing is known of the records");
    assert_eq!(
        objections(Err(EndpointFailure::Unusable("busy".to_owned()))),
        Some(DecisiveNewestVoters { records: 1, payment: 1 })
    );
}

#[test]
fn equal_statements_of_both_readers_are_equal_votes() {
    let findings = |block, registered| NameFindings {
        block,
        time: None,
        registered,
        holder: NameHolder::Nobody,
        expiry: None,
        source: FoundResolver { resolver: Address::ZERO, name: ResolverNameOrigin::Own },
        resolved: UniversalResolverOutcome::NoResolver,
        payment: None,
    };
    let same = |one: &NameFindings, other: &NameFindings| one.agrees_on_part(other, QuorumVotePart::Records);
    assert!(same(&findings(5, true), &findings(6, true)), "whatever the block");
    assert!(!same(&findings(5, true), &findings(5, false)));
    let header = |number| HashedBlockHeader::new(Header { number, ..Header::default() });
    assert!(header(5).agrees_on_part(&header(5), QuorumVotePart::Records));
    assert!(!header(5).agrees_on_part(&header(6), QuorumVotePart::Records));
    assert_eq!(
        (findings(5, true).block_height(), header(5).block_height()),
        (Some(5), None),
        "a header tells no height of records"
    );
}

/// The findings for a name whose resolver requires this off-chain lookup.
fn looked_up(look_up: &'static [u8]) -> NameFindings {
    NameFindings {
        block: 5,
        time: None,
        registered: true,
        holder: NameHolder::Address(Address::ZERO),
        expiry: None,
        source: FoundResolver { resolver: Address::ZERO, name: ResolverNameOrigin::Own },
        resolved: UniversalResolverOutcome::Offchain(Bytes::from_static(look_up)),
        payment: None,
    }
}

#[test]
fn votes_are_same_up_to_differing_lookups_and_payments() {
    let one = looked_up(b"one");
    let same = [
        looked_up(b"one"),
        looked_up(b"another"),
        NameFindings { block: 6, payment: Some(UniversalResolverOutcome::NoResolver), ..looked_up(b"one") },
    ];
    assert!(same.iter().all(|other| one.agrees_except_lookups(other)));
    let of = |resolver, name| FoundResolver { resolver, name };
    let returned =
        NameFindings { resolved: UniversalResolverOutcome::Returned(Bytes::from_static(b"one")), ..looked_up(b"one") };
    assert!(!returned.agrees_except_lookups(&returned), "both are read on the chain");
    for other in [
        NameFindings { registered: false, ..looked_up(b"one") },
        NameFindings { holder: NameHolder::Address(Address::repeat_byte(1)), ..looked_up(b"one") },
        NameFindings { holder: NameHolder::Nobody, ..looked_up(b"one") },
        NameFindings { source: of(Address::repeat_byte(1), ResolverNameOrigin::Own), ..looked_up(b"one") },
        NameFindings { source: of(Address::ZERO, ResolverNameOrigin::Invalid), ..looked_up(b"one") },
        returned,
    ] {
        assert!(!one.agrees_except_lookups(&other), "{other:?}");
        assert!(!other.agrees_except_lookups(&one), "{other:?}");
    }
    let header = HashedBlockHeader::new(Header::default());
    assert!(!header.agrees_except_lookups(&header), "a header leaves nothing to lookups");
}

#[test]
fn newest_votes_same_up_to_lookups_have_their_endpoints() {
    let latest = [
        Some(Ok(looked_up(b"another"))),
        Some(Ok(NameFindings { registered: false, ..looked_up(b"one") })),
        Some(Err(EndpointFailure::Unusable("busy".to_owned()))),
        None,
        Some(Ok(looked_up(b"third"))),
    ];
    let mut counter = QuorumCounter::new(2);
    for (endpoint, latest) in latest.into_iter().enumerate() {
        counter.add_votes(endpoint, &endpoint.to_string(), block(5, 0), looked_up(b"one"), latest);
    }
    let same: Vec<(usize, NameFindings)> = counter
        .votes_agreeing_except_lookups(&looked_up(b"one"))
        .map(|(endpoint, vote)| (endpoint, vote.clone()))
        .collect();
    assert_eq!(same, [(0, looked_up(b"another")), (4, looked_up(b"third"))]);
}

/// An endpoint that is ahead may not have the higher block at all. Then a lower block is tried.
#[test]
fn who_is_awaited_no_longer_leaves_a_lower_block_to_the_others() {
    let mut counter = two(&[(9, 0, "a"), (7, 0, "a"), (6, 0, "a")]);
    assert_eq!(again(&counter), [(0, block(7, 0))]);
    counter.note_repeat_request(0, block(7, 0));
    assert_eq!(again(&counter), [], "its answer is awaited");
    counter.stop_awaiting_answers();
    assert_eq!(again(&counter), [(0, block(6, 0)), (1, block(6, 0))]);
    counter.add_vote_at_block(0, block(7, 0), "a");
    assert_eq!(settled(&counter), (block(7, 0), vec![0, 1]), "an answer that comes nevertheless counts");
}

#[test]
fn one_word_on_the_newest_block_is_not_clear() {
    let failed = || Err(EndpointFailure::Unusable("busy".to_owned()));
    for (latest, counts) in [
        ([Some(Ok("a")), None], 0),
        ([Some(Ok("b")), None], 0),
        ([Some(failed()), None], 0),
        ([Some(failed()), Some(Ok("b"))], 1),
    ] {
        let mut counter = QuorumCounter::new(2);
        for (endpoint, vote) in latest.into_iter().enumerate() {
            counter.add_votes(endpoint, &endpoint.to_string(), block(5, 0), "a", vote);
        }
        let QuorumStatus::Provisional(agreement, ProvisionalAgreementGap::Latest) = counter.status() else {
            panic!("two agree")
        };
        assert_eq!(agreement.latest.map(|latest| latest.records), Some(counts));
        assert_eq!(counter.fan_out_need(), FanOutNeed::Confirmation);
    }
}

#[test]
fn what_is_needed_follows_from_the_count() {
    assert_eq!(two(&[(5, 0, "a"), (5, 0, "a")]).fan_out_need(), FanOutNeed::Nothing);
    assert_eq!(
        two(&[(5, 0, "a"), (5, 0, "a"), (106, 0, "a")]).fan_out_need(),
        FanOutNeed::AnswersOrStall { in_sight: 1 }
    );
    let mut ahead = two(&[(6, 0, "a"), (5, 0, "a")]);
    assert_eq!(ahead.fan_out_need(), FanOutNeed::Answers { in_sight: 1 });
    ahead.note_repeat_request(0, block(5, 0));
    assert_eq!(ahead.fan_out_need(), FanOutNeed::AnswersOrStall { in_sight: 1 });
    ahead.note_unanswered_block(0, block(5, 0));
    assert_eq!(ahead.fan_out_need(), FanOutNeed::Answers { in_sight: 1 });
}

#[test]
fn every_vote_can_be_read() {
    let mut counter = two(&[(6, 0, "a"), (5, 0, "b")]);
    counter.add_vote_at_block(0, block(5, 0), "c");
    assert_eq!(counter.endpoints().collect::<Vec<_>>(), [0, 1]);
    let votes = [(0, block(6, 0), &"a"), (0, block(5, 0), &"c"), (1, block(5, 0), &"b")];
    assert_eq!(counter.votes().collect::<Vec<_>>(), votes);
    assert_eq!((counter.vote_at_block(0, &block(5, 0)), counter.vote_at_block(1, &block(6, 0))), (Some(&"c"), None));
    assert_eq!((counter.latest_vote(1), counter.latest_vote(2)), (Some(&Ok("b")), None));
}

#[cfg(feature = "state-proof")]
#[test]
fn a_change_is_an_objection_before_a_failure_is() {
    let mut counter = two(&[(5, 0, "a"), (5, 0, "a")]);
    assert_eq!(counter.objecting_endpoint_for_part(&"a", QuorumVotePart::Records), None);
    counter.add_votes(2, "2", block(5, 0), "a", Some(Err(EndpointFailure::Unusable("busy".to_owned()))));
    assert_eq!(counter.objecting_endpoint_for_part(&"a", QuorumVotePart::Records), Some(2));
    counter.add_votes(3, "3", block(5, 0), "a", Some(Ok("b")));
    assert_eq!(counter.objecting_endpoint_for_part(&"a", QuorumVotePart::Records), Some(3));
}

#[test]
fn one_word_is_enough_where_one_is_asked_for() {
    let mut counter = QuorumCounter::new(1);
    counter.add_votes(0, "0", block(5, 0), "a", None);
    assert_eq!(settled(&counter), (block(5, 0), vec![0]));
}

#[derive(Clone, Debug)]
enum Script {
    /// Follows the true chain up to this height, and takes this long for each answer.
    Honest(u64, u64),
    /// Invents a block or a vote at this height.
    Lying(u64, u8, u64),
    /// Answers only its first request.
    Mute(u64, u64),
    Failing(u64),
}

enum SimulatedResponse {
    Observed(u64, u8, &'static str),
    Attested(ChainBlock, &'static str),
    Denied(ChainBlock),
    None(Option<ChainBlock>),
}

impl Script {
    fn observe(&self) -> (u64, SimulatedResponse) {
        match *self {
            Self::Honest(height, after) | Self::Mute(height, after) => {
                (after, SimulatedResponse::Observed(height, 0, "a"))
            }
            Self::Lying(height, fork, after) => (after, SimulatedResponse::Observed(height, fork, "x")),
            Self::Failing(after) => (after, SimulatedResponse::None(None)),
        }
    }

    fn attest(&self, about: ChainBlock) -> (u64, SimulatedResponse) {
        match *self {
            Self::Honest(_, after) if about == block(about.number, 0) => {
                (after, SimulatedResponse::Attested(about, "a"))
            }
            Self::Honest(_, after) => (after, SimulatedResponse::Denied(block(about.number, 0))),
            Self::Lying(_, 0, after) => (after, SimulatedResponse::Attested(about, "x")),
            Self::Lying(_, fork, after) => (after, SimulatedResponse::Denied(block(about.number, fork))),
            Self::Mute(..) | Self::Failing(_) => (60_000, SimulatedResponse::None(Some(about))),
        }
    }
}

/// Polls the endpoints for an agreement of two according to the plan, with a simulated clock.
fn polled(scripts: &[Script]) -> (QuorumStatus, QuorumCounter<&'static str>) {
    const PATIENCE: u64 = 100;
    let mut counter = QuorumCounter::new(2);
    let mut plan = FanOutScheduler::new(scripts.len(), 3, 3);
    let mut under_way: Vec<(u64, usize, SimulatedResponse)> = Vec::new();
    let mut now = 0;
    loop {
        if let QuorumStatus::Open { repeats, .. } = counter.status() {
            for (endpoint, about) in repeats {
                counter.note_repeat_request(endpoint, about);
                plan.note_repeated_request();
                let (after, reply) = scripts[endpoint].attest(about);
                under_way.push((now + after, endpoint, reply));
            }
        }
        let stall = match plan.next_action(counter.fan_out_need()) {
            FanOutAction::Ask(endpoint) => {
                let (after, reply) = scripts[endpoint].observe();
                under_way.push((now + after, endpoint, reply));
                continue;
            }
            FanOutAction::Stop => return (counter.status(), counter),
            FanOutAction::Wait => u64::MAX,
            FanOutAction::WaitForStall => now + PATIENCE,
        };
        let next = (0..under_way.len()).min_by_key(|index| under_way[*index].0).expect("a request is under way");
        if under_way[next].0 > stall {
            now = stall;
            if !plan.note_stall() {
                match counter.status() {
                    QuorumStatus::Provisional(..) => return (counter.status(), counter),
                    _ => counter.stop_awaiting_answers(),
                }
            }
            continue;
        }
        let (at, endpoint, reply) = under_way.remove(next);
        now = at;
        plan.note_request_ended();
        match reply {
            SimulatedResponse::Observed(height, fork, vote) => {
                counter.add_votes(endpoint, &endpoint.to_string(), block(height, fork), vote, None);
            }
            SimulatedResponse::Attested(about, vote) => counter.add_vote_at_block(endpoint, about, vote),
            SimulatedResponse::Denied(other) => counter.add_conflicting_block(endpoint, other),
            SimulatedResponse::None(Some(about)) => counter.note_unanswered_block(endpoint, about),
            SimulatedResponse::None(None) => {}
        }
    }
}

/// Random endpoints, at most one of which lies.
fn endpoints() -> impl Strategy<Value = Vec<Script>> {
    let honest = prop_oneof![
        4 => (5..9_u64, 0..300_u64).prop_map(|(height, after)| Script::Honest(height, after)),
        1 => (5..9_u64, 0..300_u64).prop_map(|(height, after)| Script::Mute(height, after)),
        1 => (0..300_u64).prop_map(Script::Failing),
    ];
    let liar = (4..10_u64, 0..3_u8, 0..300_u64).prop_map(|(height, fork, after)| Script::Lying(height, fork, after));
    (proptest::collection::vec(honest, 0..7), proptest::option::of(liar), any::<proptest::sample::Index>()).prop_map(
        |(mut scripts, liar, place)| {
            let place = place.index(scripts.len() + 1);
            liar.into_iter().for_each(|liar| scripts.insert(place, liar));
            scripts
        },
    )
}

proptest! {
    #[test]
    fn one_liar_never_decides_and_two_honest_endpoints_always_do(scripts in endpoints()) {
        let honest = scripts.iter().filter(|script| matches!(script, Script::Honest(..))).count();
        // A liar that has the true block may dispute its contents. If only one honest endpoint has that block, nobody
        // can tell who lies, and a lower block must not settle the dispute.
        let newest = scripts.iter().filter_map(|script| match script {
            Script::Honest(height, _) | Script::Mute(height, _) => Some(*height),
            _ => None,
        }).max();
        let at_newest = scripts.iter().filter(|s| matches!(s, Script::Honest(height, _) if Some(*height) == newest));
        let is_disputed = scripts.iter().any(|s| matches!(s, Script::Lying(_, 0, _))) && at_newest.count() < 2;
        let (status, counter) = polled(&scripts);
        match status {
            QuorumStatus::Settled(agreement) | QuorumStatus::Provisional(agreement, _) => {
                prop_assert_eq!(agreement.block, block(agreement.block.number, 0));
                for endpoint in &agreement.endpoints {
                    prop_assert_eq!(counter.vote_at_block(*endpoint, &agreement.block), Some(&"a"));
                }
                let liars: Vec<usize> = counter.contradicting_endpoints(Some(&agreement)).into_iter().map(|(endpoint, _)| endpoint).collect();
                prop_assert!(liars.iter().all(|endpoint| matches!(scripts[*endpoint], Script::Lying(..))));
            }
            QuorumStatus::Open { .. } => prop_assert!(honest < 2 || is_disputed, "{} honest endpoints", honest),
        }
    }
}

/// A vote on the newest block with its height.
#[derive(Clone, Debug, PartialEq, Eq)]
struct At(u64, &'static str);

impl QuorumVote for At {
    fn agrees_on_part(&self, other: &Self, part: QuorumVotePart) -> bool {
        self.1.agrees_on_part(&other.1, part)
    }

    fn block_height(&self) -> Option<u64> {
        Some(self.0)
    }
}

#[test]
fn newest_block_below_the_finalized_one_is_a_failure() {
    let mut counter = QuorumCounter::new(2);
    counter.add_votes(0, "0", block(5, 0), At(5, "a"), Some(Ok(At(4, "a"))));
    assert!(counter.latest_vote(0).is_some_and(Result::is_ok), "one alone has finalized nothing");
    counter.add_votes(1, "1", block(6, 0), At(6, "a"), Some(Ok(At(5, "a"))));
    assert!(matches!(counter.latest_vote(0), Some(Err(EndpointFailure::HeadBelowFinalized { head: 4, finalized: 5 }))));
    assert!(counter.latest_vote(1).is_some_and(Result::is_ok));
}

/// Otherwise an endpoint that is far ahead, or invents blocks, would vouch for one that has not seen a change yet.
#[test]
fn as_many_as_must_agree_have_reached_a_height() {
    let reached = |latest: &[At]| {
        let mut counter = QuorumCounter::new(2);
        for (endpoint, vote) in latest.iter().enumerate() {
            let pinned = At(1, "old");
            counter.add_votes(endpoint, &format!("operator {endpoint}"), block(1, 0), pinned, Some(Ok(vote.clone())));
        }
        match counter.status() {
            QuorumStatus::Settled(agreement) | QuorumStatus::Provisional(agreement, _) => {
                agreement.latest.and_then(|at| counter.newest_quorum_height(at))
            }
            QuorumStatus::Open { .. } => None,
        }
    };
    assert_eq!(reached(&[At(1000, "old"), At(7, "old")]), Some(7));
    assert_eq!(reached(&[At(1000, "old"), At(7, "old"), At(9, "old")]), Some(9));
    assert_eq!(reached(&[At(7, "old"), At(8, "new")]), Some(8), "an objection is one endpoint's");
    // The height of the objection may be invented. Then the records would seem to be read after every change.
    assert_eq!(reached(&[At(7, "old"), At(1_000_000, "old/new")]), Some(7), "one to payments vouches for no record");
    // One endpoint states that a payee has changed, the second denies it, and the third has not reached that block.
    assert_eq!(reached(&[At(9, "old/new"), At(9, "old"), At(8, "old")]), Some(8));
}
