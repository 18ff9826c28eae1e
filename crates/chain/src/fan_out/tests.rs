//! The plan with a simulated clock and scripted endpoints.

use proptest::prelude::*;

use super::*;

/// What a scripted endpoint does. Times are in milliseconds after it was asked.
#[derive(Clone, Copy, Debug)]
enum Does {
    /// Returns an answer that counts.
    Answer(u64),
    /// Returns an answer that does not count.
    Fail(u64),
    Stall,
}

/// How long endpoints may stall, in milliseconds.
const PATIENCE: u64 = 100;

#[derive(Debug, Default, PartialEq, Eq)]
struct FanOutRun {
    /// Each endpoint asked, with the time.
    asked: Vec<(usize, u64)>,
    /// When enough answers had arrived.
    decided: Option<u64>,
    most: usize,
}

/// Runs a plan until `wanted` answers count. Stalled requests end after a minute.
fn run(mut plan: FanOutScheduler, wanted: usize, does: &[Does]) -> FanOutRun {
    let (mut now, mut counted, mut seen) = (0, 0, FanOutRun::default());
    // When each request ends, and whether its answer counts.
    let mut under_way: Vec<(u64, bool)> = Vec::new();
    loop {
        let need = if counted == wanted { FanOutNeed::Nothing } else { FanOutNeed::Answers { in_sight: counted } };
        let stall = match plan.next_action(need) {
            FanOutAction::Ask(index) => {
                seen.asked.push((index, now));
                under_way.push(match does[index] {
                    Does::Answer(after) => (now + after, true),
                    Does::Fail(after) => (now + after, false),
                    Does::Stall => (now + 60_000, false),
                });
                seen.most = seen.most.max(under_way.len());
                continue;
            }
            FanOutAction::Stop => return FanOutRun { decided: (counted == wanted).then_some(now), ..seen },
            FanOutAction::Wait => u64::MAX,
            FanOutAction::WaitForStall => now + PATIENCE,
        };
        let next = (0..under_way.len()).min_by_key(|index| under_way[*index].0).expect("a request is under way");
        if under_way[next].0 > stall {
            now = stall;
            assert!(plan.note_stall(), "another candidate is left");
            continue;
        }
        let (end, counts) = under_way.remove(next);
        now = end;
        counted += usize::from(counts);
        plan.note_request_ended();
    }
}

fn times(seen: &FanOutRun) -> Vec<u64> {
    seen.asked.iter().map(|(_, at)| *at).collect()
}

#[test]
fn as_many_as_are_wanted_at_first_are_asked_at_once() {
    let seen = run(FanOutScheduler::new(4, 3, 3), 2, &[Does::Answer(10); 4]);
    assert_eq!(seen, FanOutRun { asked: vec![(0, 0), (1, 0), (2, 0)], decided: Some(10), most: 3 });
    let seen = run(FanOutScheduler::new(4, 1, 1), 1, &[Does::Answer(99); 4]);
    assert_eq!(seen, FanOutRun { asked: vec![(0, 0)], decided: Some(99), most: 1 });
}

#[test]
fn a_failure_is_replaced_at_once() {
    let seen = run(FanOutScheduler::new(3, 1, 1), 1, &[Does::Fail(30), Does::Fail(20), Does::Answer(10)]);
    assert_eq!((times(&seen), seen.decided, seen.most), (vec![0, 30, 50], Some(60), 1));
}

#[test]
fn a_stall_adds_one_and_a_late_answer_still_counts() {
    let seen = run(FanOutScheduler::new(3, 1, 1), 1, &[Does::Stall, Does::Answer(50), Does::Answer(1)]);
    assert_eq!((times(&seen), seen.decided), (vec![0, 100], Some(150)));
    let seen = run(FanOutScheduler::new(3, 1, 1), 1, &[Does::Answer(120), Does::Answer(50), Does::Answer(1)]);
    assert_eq!((times(&seen), seen.decided), (vec![0, 100], Some(120)));
}

#[test]
fn a_failure_beside_a_stall_is_replaced_at_once() {
    let seen = run(FanOutScheduler::new(3, 1, 1), 1, &[Does::Stall, Does::Fail(10), Does::Answer(5)]);
    assert_eq!((times(&seen), seen.decided), (vec![0, 100, 110], Some(115)));
}

#[test]
fn more_at_first_than_the_width_are_spares() {
    // Two of three members must agree, so a single failure does not require another endpoint.
    let seen =
        run(FanOutScheduler::new(4, 3, 2), 2, &[Does::Fail(1), Does::Answer(10), Does::Answer(20), Does::Answer(1)]);
    assert_eq!((seen.asked.len(), seen.decided), (3, Some(20)));
    let seen =
        run(FanOutScheduler::new(4, 3, 2), 2, &[Does::Fail(1), Does::Fail(2), Does::Answer(20), Does::Answer(1)]);
    assert_eq!((times(&seen), seen.decided), (vec![0, 0, 0, 2], Some(20)));
}

#[test]
fn the_end_comes_when_all_have_answered() {
    assert_eq!(run(FanOutScheduler::new(0, 3, 3), 2, &[]), FanOutRun::default());
    let seen = run(FanOutScheduler::new(2, 3, 3), 2, &[Does::Answer(1), Does::Fail(2)]);
    assert_eq!((seen.asked.len(), seen.decided), (2, None));
}

#[test]
fn confirmation_asks_another_only_after_answers_or_stalls() {
    let mut plan = FanOutScheduler::new(4, 2, 3);
    assert_eq!(
        [0; 2].map(|_| plan.next_action(FanOutNeed::Confirmation)),
        [FanOutAction::Ask(0), FanOutAction::Ask(1)]
    );
    assert_eq!(plan.next_action(FanOutNeed::Confirmation), FanOutAction::WaitForStall);
    plan.note_request_ended();
    assert_eq!(plan.next_action(FanOutNeed::Confirmation), FanOutAction::WaitForStall);
    plan.note_request_ended();
    assert_eq!(plan.next_action(FanOutNeed::Confirmation), FanOutAction::Ask(2));
    assert!(plan.note_stall());
    assert_eq!([0; 2].map(|_| plan.next_action(FanOutNeed::Confirmation)), [FanOutAction::Ask(3), FanOutAction::Wait]);
    assert!(!plan.note_stall(), "no candidate is left");
    assert_eq!(plan.next_action(FanOutNeed::Confirmation), FanOutAction::Wait);
}

#[test]
fn a_stall_without_candidates_is_an_event_where_it_matters() {
    let mut plan = FanOutScheduler::new(1, 1, 1);
    assert_eq!(plan.next_action(FanOutNeed::AnswersOrStall { in_sight: 0 }), FanOutAction::Ask(0));
    assert_eq!(plan.next_action(FanOutNeed::AnswersOrStall { in_sight: 0 }), FanOutAction::WaitForStall);
    assert_eq!(plan.next_action(FanOutNeed::Answers { in_sight: 0 }), FanOutAction::Wait);
    assert_eq!(plan.next_action(FanOutNeed::Nothing), FanOutAction::Stop);
}

#[test]
fn an_endpoint_that_is_asked_again_counts_as_under_way() {
    let mut plan = FanOutScheduler::new(3, 1, 2);
    assert_eq!(plan.next_action(FanOutNeed::Answers { in_sight: 0 }), FanOutAction::Ask(0));
    plan.note_repeated_request();
    assert_eq!(plan.next_action(FanOutNeed::Answers { in_sight: 0 }), FanOutAction::WaitForStall);
    plan.note_request_ended();
    assert_eq!(plan.next_action(FanOutNeed::Answers { in_sight: 0 }), FanOutAction::Ask(1));
}

fn scripts() -> impl Strategy<Value = Vec<Does>> {
    let one = prop_oneof![(0..300_u64).prop_map(Does::Answer), (0..300_u64).prop_map(Does::Fail), Just(Does::Stall)];
    proptest::collection::vec(one, 0..9)
}

proptest! {
    #[test]
    fn each_candidate_is_asked_once_and_in_order(does in scripts(), first in 1..4_usize, width in 1..4_usize, wanted in 1..4_usize) {
        let seen = run(FanOutScheduler::new(does.len(), first, width), wanted, &does);
        let order: Vec<usize> = seen.asked.iter().map(|(index, _)| *index).collect();
        prop_assert_eq!(order, (0..seen.asked.len()).collect::<Vec<_>>());
        prop_assert!(seen.asked.is_sorted_by_key(|(_, at)| *at));
    }

    #[test]
    fn enough_good_candidates_decide_whatever_the_others_do(does in scripts(), first in 1..4_usize, width in 1..4_usize, wanted in 1..4_usize) {
        let seen = run(FanOutScheduler::new(does.len(), first, width), wanted, &does);
        let good = does.iter().filter(|does| matches!(does, Does::Answer(_))).count();
        prop_assert_eq!(seen.decided.is_some(), good >= wanted);
        if let Some(at) = seen.decided {
            // Each candidate delays the decision by at most one stall, and the last ones by their answer time.
            prop_assert!(at <= PATIENCE * does.len() as u64 + 300, "{}", at);
        }
    }

    #[test]
    fn no_more_are_under_way_than_wanted_and_stalled(does in scripts(), first in 1..4_usize, width in 1..4_usize) {
        let seen = run(FanOutScheduler::new(does.len(), first, width), 1, &does);
        let late = seen.asked.iter().filter(|(_, at)| *at > 0).count();
        prop_assert!(seen.most <= first.max(width) + late);
        let prompt = does.iter().all(|does| matches!(does, Does::Answer(0..=PATIENCE) | Does::Fail(0..=PATIENCE)));
        prop_assert!(!prompt || seen.most <= first.max(width), "without a stall no request is added");
    }
}

/// The driver: answers arrive in any order, and another request is sent if one never ends.
#[tokio::test]
async fn the_first_success_wins_and_the_failures_before_it_are_kept() {
    let ask = |index: usize| async move {
        match index {
            0 => std::future::pending().await,
            1 => Err("no"),
            index => Ok(index * 10),
        }
    };
    let found = ask_until_success(4, Some(Duration::from_millis(1)), ask).await;
    assert_eq!((found.success, found.failures), (Some((2, 20)), vec![(1, "no")]));
    let found = ask_until_success(1, None, |_| async { Err::<(), _>("no") }).await;
    assert_eq!((found.success, found.failures), (None, vec![(0, "no")]));
}
