//! A moving chain, with a block in every slot and finality behind it, seen by every arrangement of honest, stalled and
//! lying endpoints.

use std::time::Duration;

use super::*;
use crate::head_age::HeadAgeLimit;

/// Height of the newest block. Blocks arrive every 12 s, starting at time 0.
const HEAD: u64 = 100;

/// Blocks between the newest and the finalized one.
const FINALITY: u64 = 32;

/// Maximum age of the newest block, in blocks.
const FRESH: u64 = 5;

/// An endpoint's statement about a block.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stated {
    height: u64,
    time: Timestamp,
    word: &'static str,
}

impl QuorumVote for Stated {
    fn agrees_on_part(&self, other: &Self, part: QuorumVotePart) -> bool {
        self.word.agrees_on_part(&other.word, part)
    }

    fn block_height(&self) -> Option<u64> {
        Some(self.height)
    }

    fn block_time(&self) -> Option<Timestamp> {
        Some(self.time)
    }
}

fn stated(height: u64, word: &'static str) -> Stated {
    Stated { height, time: block(height, 0).timestamp, word }
}

/// How an endpoint presents the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum View {
    /// It has the true chain up to this height: it keeps up or has stopped.
    UpTo(u64),
    /// It has every true block, but states the old record in all of them.
    OldRecords,
    /// Like `OldRecords`, but it claims to be stuck at this height, while its newest block is recent.
    OldRecordsFrom(u64),
    /// It states the true record in the finalized block, but the old one in the newest block.
    Hiding,
    /// It has blocks of its own fork.
    Forked,
    /// It has true blocks, states old records, and claims that its newest block is in the future.
    Ahead,
}

impl View {
    const ALL: [Self; 10] = [
        Self::UpTo(HEAD),
        Self::UpTo(HEAD - 1),
        Self::UpTo(HEAD - FRESH - 1),
        Self::UpTo(60),
        Self::UpTo(40),
        Self::OldRecords,
        Self::OldRecordsFrom(40),
        Self::Hiding,
        Self::Forked,
        Self::Ahead,
    ];

    const fn is_honest(self) -> bool {
        matches!(self, Self::UpTo(_))
    }

    const fn keeps_up(self) -> bool {
        matches!(self, Self::UpTo(head) if head + FRESH >= HEAD)
    }

    /// Its finalized block with the statement there, and its statement about the newest block.
    fn observed(self, changed: u64) -> (ChainBlock, Stated, Stated) {
        let truth = |height: u64| stated(height, if height >= changed { "new" } else { "old" });
        let finalized = HEAD - FINALITY;
        let (height, fork, word, newest) = match self {
            Self::UpTo(head) => (head - FINALITY, 0, truth(head - FINALITY), truth(head)),
            Self::OldRecords => (finalized, 0, stated(finalized, "old"), stated(HEAD, "old")),
            Self::OldRecordsFrom(head) => (head - FINALITY, 0, stated(head - FINALITY, "old"), stated(HEAD, "old")),
            Self::Hiding => (finalized, 0, truth(finalized), stated(HEAD, "old")),
            Self::Forked => (finalized, 1, stated(finalized, "old"), stated(HEAD, "old")),
            Self::Ahead => (finalized, 0, stated(finalized, "old"), stated(HEAD + 9, "old")),
        };
        (block(height, fork), word, newest)
    }

    /// Its statement about a block of others, or the block that it has at that height. `None` if it has no block there.
    fn attested(self, about: ChainBlock, changed: u64) -> Option<Result<Stated, ChainBlock>> {
        let truth = stated(about.number, if about.number >= changed { "new" } else { "old" });
        let is_true = about == block(about.number, 0);
        match self {
            Self::UpTo(head) if about.number > head => None,
            Self::Forked => Some(Err(block(about.number, 1))),
            _ if !is_true => Some(Err(block(about.number, 0))),
            Self::UpTo(_) | Self::Hiding => Some(Ok(truth)),
            Self::OldRecords | Self::OldRecordsFrom(_) | Self::Ahead => Some(Ok(stated(about.number, "old"))),
        }
    }
}

/// The record on which a verdict could rely: two of these endpoints agree on it, and it is still valid at the newest
/// block. The endpoints answer in this order. The record was replaced in the block `changed`.
fn settled_on(views: &[View], changed: u64, age: HeadAgeLimit) -> Option<&'static str> {
    let now = block(HEAD, 0).timestamp;
    let mut counter = QuorumCounter::new(2);
    for (endpoint, view) in views.iter().enumerate() {
        let (head, pinned, newest) = view.observed(changed);
        counter.add_votes(endpoint, &endpoint.to_string(), head, pinned, Some(age.require_recent_vote(newest, now)));
        while let QuorumStatus::Open { repeats, .. } = counter.status() {
            if repeats.is_empty() {
                break;
            }
            for (endpoint, about) in repeats {
                counter.note_repeat_request(endpoint, about);
                match views[endpoint].attested(about, changed) {
                    Some(Ok(vote)) => counter.add_vote_at_block(endpoint, about, vote),
                    Some(Err(other)) => counter.add_conflicting_block(endpoint, other),
                    None => counter.note_unanswered_block(endpoint, about),
                }
            }
        }
        if matches!(counter.status(), QuorumStatus::Settled(_)) {
            break;
        }
    }
    let (QuorumStatus::Settled(agreement) | QuorumStatus::Provisional(agreement, _)) = counter.status() else {
        return None;
    };
    let pinned = counter.vote_at_block(*agreement.endpoints.first()?, &agreement.block)?;
    let at = agreement.latest?.records;
    let newest = counter.latest_vote(at)?.as_ref().ok()?;
    let holds = newest.agrees_on_part(pinned, QuorumVotePart::Records)
        && !counter.is_objection(at, pinned, QuorumVotePart::Records);
    holds.then_some(pinned.word)
}

/// Every sequence of up to four endpoints with at most one liar.
fn arrangements() -> Vec<Vec<View>> {
    let mut all: Vec<Vec<View>> = vec![Vec::new()];
    let mut found = Vec::new();
    for _ in 0..4 {
        let longer = |views: &Vec<View>| {
            View::ALL.map(|view| views.iter().copied().chain([view]).collect::<Vec<_>>()).into_iter()
        };
        all = all.iter().flat_map(longer).collect();
        all.retain(|views: &Vec<View>| views.iter().filter(|view| !view.is_honest()).count() <= 1);
        found.extend(all.iter().filter(|views| views.len() > 1).cloned());
    }
    found
}

/// Heights at which the record is replaced: from below the finalized blocks to above all of them.
const CHANGES: [u64; 3] = [50, HEAD - FINALITY, HEAD - 2 * FRESH];

#[test]
fn stalled_endpoints_and_liars_hide_no_change_in_any_order() {
    let age = HeadAgeLimit(Some(Duration::from_secs(12 * FRESH)));
    for views in arrangements() {
        for changed in CHANGES {
            let settled = settled_on(&views, changed, age);
            assert_ne!(settled, Some("old"), "{views:?}, replaced in block {changed}");
        }
    }
}

#[test]
fn enough_endpoints_that_keep_up_always_settle_what_is_final() {
    let age = HeadAgeLimit(Some(Duration::from_secs(12 * FRESH)));
    for views in arrangements() {
        // Endpoints at the same height share the finalized block. If only one honest endpoint has the higher block, a
        // liar may dispute it.
        let at_head = views.iter().filter(|view| **view == View::UpTo(HEAD)).count();
        if views.iter().any(|view| view.keeps_up() && *view != View::UpTo(HEAD)) || at_head < 2 {
            continue;
        }
        assert_eq!(settled_on(&views, CHANGES[0], age), Some("new"), "{views:?}");
    }
}
