//! Counts votes: on which block, and on which contents, enough operators agree. Performs no I/O.
//!
//! Honest endpoints may be at different epochs, so the highest block that enough of them have finalized counts. An
//! endpoint that is ahead is asked again about that block. A vote counts once per operator.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::iter;

use clresolve_core::reading::ChainBlock;
use clresolve_state::HashedBlockHeader;
use clresolve_state::contracts::{NameFindings, UniversalResolverOutcome};
use jiff::{SignedDuration, Timestamp};

use crate::failure::EndpointFailure;
use crate::fan_out::FanOutNeed;

/// Maximum distance between the finalized blocks of honest endpoints: three epochs. An agreement on an older block
/// waits for the remaining endpoints, so that one stuck endpoint does not hold the others back.
const STRADDLE: SignedDuration = SignedDuration::from_mins(20);

/// How often one endpoint is asked again about blocks of others. Honest endpoints need two; more would only help an
/// endpoint that invents blocks.
const MAX_REPEATS: usize = 4;

/// An endpoint's statement about a block.
pub(crate) trait QuorumVote: PartialEq {
    /// Whether the name's resolver and this part of the response are equal, regardless of the block.
    fn agrees_on_part(&self, other: &Self, part: QuorumVotePart) -> bool;

    /// Whether both votes leave the records to off-chain lookups and are equal apart from these, regardless of
    /// payments. Only the results of the lookups then show whether the records are equal.
    fn agrees_except_lookups(&self, _: &Self) -> bool {
        false
    }

    /// Height of the block that the vote is about, if the vote contains it.
    fn block_height(&self) -> Option<u64> {
        None
    }

    /// Time of the block that the vote is about, if the vote contains it.
    fn block_time(&self) -> Option<Timestamp> {
        None
    }
}

/// A part of a vote. At the newest block each part is counted separately, so that a dispute about payments does not
/// affect the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuorumVotePart {
    /// The text records that a resolution needs.
    Records,
    Payment,
}

impl QuorumVote for NameFindings {
    fn agrees_on_part(&self, other: &Self, part: QuorumVotePart) -> bool {
        match part {
            QuorumVotePart::Records => self.has_same_records(other),
            QuorumVotePart::Payment => self.has_same_payment(other),
        }
    }

    fn agrees_except_lookups(&self, other: &Self) -> bool {
        let is_alike = (self.registered, self.holder, &self.source) == (other.registered, other.holder, &other.source);
        matches!(
            (&self.resolved, &other.resolved),
            (UniversalResolverOutcome::Offchain(_), UniversalResolverOutcome::Offchain(_))
        ) && (is_alike || clresolve_core::mutant!("look-ups-hide-sales"))
    }

    fn block_height(&self) -> Option<u64> {
        Some(self.block)
    }

    fn block_time(&self) -> Option<Timestamp> {
        self.time
    }
}

/// If everything else is computed from proven state, the header is the whole vote.
impl QuorumVote for HashedBlockHeader {
    fn agrees_on_part(&self, other: &Self, _: QuorumVotePart) -> bool {
        self == other
    }
}

pub(crate) struct QuorumCounter<V> {
    agree: usize,
    voters: Vec<QuorumVoter<V>>,
}

struct QuorumVoter<V> {
    endpoint: usize,
    operator: String,
    /// The endpoint's newest block of the requested kind.
    head: ChainBlock,
    votes: Vec<(ChainBlock, V)>,
    /// Its own blocks that differ from the blocks that it was asked about.
    others: Vec<ChainBlock>,
    /// Blocks of other endpoints that it was asked about.
    repeats: Vec<ChainBlock>,
    /// Those of `repeats` for which no answer is expected any more.
    unanswered: Vec<ChainBlock>,
    latest: Option<Result<V, EndpointFailure>>,
}

/// A block and a vote that enough operators share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QuorumAgreement {
    pub(crate) block: ChainBlock,
    /// Indices of the endpoints that agree.
    pub(crate) endpoints: Vec<usize>,
    /// The endpoints whose votes on the newest block count. `None` if it was not requested.
    pub(crate) latest: Option<DecisiveNewestVoters>,
}

/// The endpoint whose vote on the newest block counts, for each part. Either enough operators share that vote, or it is
/// an objection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DecisiveNewestVoters {
    pub(crate) records: usize,
    pub(crate) payment: usize,
}

/// How far the answers so far have settled a question.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum QuorumStatus {
    /// No further answer can improve the agreement.
    Settled(QuorumAgreement),
    /// An agreement that holds unless a pending answer leads to a better one.
    Provisional(QuorumAgreement, ProvisionalAgreementGap),
    Open {
        /// Largest number of operators that share a vote.
        most: usize,
        /// Endpoints to ask again, about these blocks.
        repeats: Vec<(usize, ChainBlock)>,
    },
}

/// What a provisional agreement is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProvisionalAgreementGap {
    /// A recent block: an endpoint has finalized a much newer one.
    RecentBlock,
    /// A conclusive vote on the newest block.
    Latest,
}

impl<V: QuorumVote> QuorumCounter<V> {
    pub(crate) const fn new(agree: usize) -> Self {
        Self { agree, voters: Vec::new() }
    }

    /// Counts an endpoint's first answer.
    pub(crate) fn add_votes(
        &mut self,
        endpoint: usize,
        operator: &str,
        head: ChainBlock,
        vote: V,
        latest: Option<Result<V, EndpointFailure>>,
    ) {
        self.voters.push(QuorumVoter {
            endpoint,
            operator: operator.to_owned(),
            head,
            votes: vec![(head, vote)],
            others: Vec::new(),
            repeats: Vec::new(),
            unanswered: Vec::new(),
            latest,
        });
        self.refuse_heads_below_finalized();
    }

    /// Turns votes on a newest block that is below the finalized block into failures: their endpoints have stopped
    /// following the chain.
    fn refuse_heads_below_finalized(&mut self) {
        let Some(finalized) = self.finalized_height() else { return };
        for latest in self.voters.iter_mut().filter_map(|voter| voter.latest.as_mut()) {
            let head = latest.as_ref().ok().and_then(QuorumVote::block_height);
            if let Some(head) = head.filter(|head| *head < finalized) {
                *latest = Err(EndpointFailure::HeadBelowFinalized { head, finalized });
            }
        }
    }

    /// The height that as many operators as must agree have reached with their own block. It never decreases.
    fn finalized_height(&self) -> Option<u64> {
        let heads = self.voters.iter().map(|voter| (voter.head.number, voter.operator.as_str()));
        highest_shared_height(heads.collect(), self.agree)
    }

    /// Registers that an endpoint is asked again, about a block of others.
    pub(crate) fn note_repeat_request(&mut self, endpoint: usize, block: ChainBlock) {
        self.update_voter(endpoint, |voter| voter.repeats.push(block));
    }

    /// Registers that the endpoint has that block too, and its vote.
    pub(crate) fn add_vote_at_block(&mut self, endpoint: usize, block: ChainBlock, vote: V) {
        self.update_voter(endpoint, |voter| voter.votes.push((block, vote)));
    }

    /// Registers that the endpoint has another block at that height.
    pub(crate) fn add_conflicting_block(&mut self, endpoint: usize, other: ChainBlock) {
        self.update_voter(endpoint, |voter| voter.others.push(other));
    }

    /// Registers that the endpoint did not answer about that block.
    pub(crate) fn note_unanswered_block(&mut self, endpoint: usize, block: ChainBlock) {
        self.update_voter(endpoint, |voter| voter.unanswered.push(block));
    }

    /// Stops expecting answers from endpoints that were asked again, so that a lower block may be used. Late answers
    /// still count.
    pub(crate) fn stop_awaiting_answers(&mut self) {
        for voter in &mut self.voters {
            let awaited: Vec<ChainBlock> = voter.awaited_blocks().copied().collect();
            voter.unanswered.extend(awaited);
        }
    }

    fn update_voter(&mut self, endpoint: usize, change: impl FnOnce(&mut QuorumVoter<V>)) {
        if let Some(voter) = self.voters.iter_mut().find(|voter| voter.endpoint == endpoint) {
            change(voter);
        }
    }

    pub(crate) fn status(&self) -> QuorumStatus {
        let groups = self.agreement_groups();
        let Some(group) = self.winning_group(&groups) else {
            let most = groups.iter().map(|group| self.count_operators(&group.endpoints)).max().unwrap_or(0);
            return QuorumStatus::Open { most, repeats: self.endpoints_to_ask_again(&groups) };
        };
        let (latest, is_clear) = self.decisive_newest_voters(group);
        let agreement = QuorumAgreement { block: group.block, endpoints: group.endpoints.clone(), latest };
        if self.is_outdated_block(&group.block) {
            return QuorumStatus::Provisional(agreement, ProvisionalAgreementGap::RecentBlock);
        }
        if is_clear {
            QuorumStatus::Settled(agreement)
        } else {
            QuorumStatus::Provisional(agreement, ProvisionalAgreementGap::Latest)
        }
    }

    /// What is still needed for a decision.
    pub(crate) fn fan_out_need(&self) -> FanOutNeed {
        match self.status() {
            QuorumStatus::Settled(_) => FanOutNeed::Nothing,
            QuorumStatus::Provisional(_, ProvisionalAgreementGap::RecentBlock) => {
                FanOutNeed::AnswersOrStall { in_sight: 1 }
            }
            QuorumStatus::Provisional(_, ProvisionalAgreementGap::Latest) => FanOutNeed::Confirmation,
            QuorumStatus::Open { most, .. } if self.is_awaiting_answer() => {
                FanOutNeed::AnswersOrStall { in_sight: most }
            }
            QuorumStatus::Open { most, .. } => FanOutNeed::Answers { in_sight: most },
        }
    }

    pub(crate) fn vote_at_block(&self, endpoint: usize, block: &ChainBlock) -> Option<&V> {
        self.find_voter(endpoint)?.vote_at_block(block)
    }

    pub(crate) fn latest_vote(&self, endpoint: usize) -> Option<&Result<V, EndpointFailure>> {
        self.find_voter(endpoint)?.latest.as_ref()
    }

    /// The votes on the newest block that equal `vote` apart from off-chain lookups, by endpoint.
    pub(crate) fn votes_agreeing_except_lookups(&self, vote: &V) -> impl Iterator<Item = (usize, &V)> {
        self.voters.iter().filter_map(move |voter| {
            let latest = voter.latest.as_ref()?.as_ref().ok()?;
            latest.agrees_except_lookups(vote).then_some((voter.endpoint, latest))
        })
    }

    /// The height that enough operators have reached with the counted votes on the newest block: the lower of the
    /// heights for records and payments, since an operator that agrees on one may dispute the other. If the vote on the
    /// records is an objection, its own height. The height of an objection to payments alone is ignored: it may be
    /// invented, and must not vouch for records.
    pub(crate) fn newest_quorum_height(&self, at: DecisiveNewestVoters) -> Option<u64> {
        let objection = |endpoint| self.latest_vote(endpoint)?.as_ref().ok()?.block_height();
        match (
            self.agreed_height(at.records, QuorumVotePart::Records),
            self.agreed_height(at.payment, QuorumVotePart::Payment),
        ) {
            (Some(records), Some(payment)) => Some(records.min(payment)),
            (None, _) => objection(at.records),
            (Some(records), None) if !clresolve_core::mutant!("objections-vouch-for-records") => {
                objection(at.payment).map(|payment| records.min(payment))
            }
            (_, None) => objection(at.payment),
        }
    }

    /// The height that enough operators have reached with the vote of `endpoint` on this part. An operator that is
    /// ahead does not vouch for those that are behind.
    fn agreed_height(&self, endpoint: usize, part: QuorumVotePart) -> Option<u64> {
        let vote = self.latest_vote(endpoint)?.as_ref().ok()?;
        let same = self.voters.iter().filter_map(|voter| {
            let latest = voter.latest.as_ref()?.as_ref().ok()?;
            latest.agrees_on_part(vote, part).then_some((latest.block_height()?, voter.operator.as_str()))
        });
        let agree = if clresolve_core::mutant!("the-furthest-vouches") { 1 } else { self.agree };
        highest_shared_height(same.collect(), agree)
    }

    /// The endpoints that object to `vote` at the newest block, if too few endpoints answered. An objection to only one
    /// part is used for both.
    #[cfg(feature = "state-proof")]
    pub(crate) fn objecting_endpoints(&self, vote: &V) -> Option<DecisiveNewestVoters> {
        let (records, payment) = (
            self.objecting_endpoint_for_part(vote, QuorumVotePart::Records),
            self.objecting_endpoint_for_part(vote, QuorumVotePart::Payment),
        );
        Some(DecisiveNewestVoters { records: records?, payment: payment.or(records)? })
    }

    /// The endpoint whose vote on this part of the newest block differs from `vote`, or that failed there.
    #[cfg(feature = "state-proof")]
    fn objecting_endpoint_for_part(&self, vote: &V, part: QuorumVotePart) -> Option<usize> {
        let of = |objects: &dyn Fn(&Result<V, EndpointFailure>) -> bool| {
            let voter = self.voters.iter().find(|voter| voter.latest.as_ref().is_some_and(objects));
            voter.map(|voter| voter.endpoint)
        };
        of(&|latest| latest.as_ref().is_ok_and(|latest| !latest.agrees_on_part(vote, part)))
            .or_else(|| of(&Result::is_err))
    }

    pub(crate) fn endpoints(&self) -> impl Iterator<Item = usize> {
        self.voters.iter().map(|voter| voter.endpoint)
    }

    /// All votes, by endpoint and block.
    pub(crate) fn votes(&self) -> impl Iterator<Item = (usize, ChainBlock, &V)> {
        self.voters.iter().flat_map(|voter| voter.votes.iter().map(|(block, vote)| (voter.endpoint, *block, vote)))
    }

    pub(crate) fn has_conflicting_votes(&self) -> bool {
        let groups = self.agreement_groups();
        let has_two_votes =
            groups.iter().enumerate().any(|(i, a)| groups[..i].iter().any(|b| a.block.number == b.block.number));
        has_two_votes || self.voters.iter().any(|voter| !voter.others.is_empty())
    }

    /// The endpoints that contradict the agreement, or anything else that enough operators agree on, each with its
    /// conflicting block. An endpoint that agrees late is not included.
    pub(crate) fn contradicting_endpoints(&self, agreement: Option<&QuorumAgreement>) -> Vec<(usize, ChainBlock)> {
        let groups = self.agreement_groups();
        let agreed = agreement.and_then(|QuorumAgreement { block, endpoints, .. }| {
            groups.iter().find(|group| group.block == *block && group.endpoints.first() == endpoints.first())
        });
        let is_unrivalled = |group: &&AgreementGroup<'_, V>| {
            let is_rival = |other: &AgreementGroup<'_, V>| {
                other.block.number == group.block.number && self.count_operators(&other.endpoints) >= self.agree
            };
            groups.iter().filter(|other| is_rival(other)).count() == 1 && is_rival(group)
        };
        let stated: Vec<_> = agreed.into_iter().chain(groups.iter().filter(is_unrivalled)).collect();
        let contradiction = |voter: &QuorumVoter<V>| {
            let of = |AgreementGroup { block, vote, .. }: &AgreementGroup<'_, V>| {
                let votes = voter.votes.iter().filter(|(of, theirs)| of != block || theirs != *vote).map(|(of, _)| of);
                let mut others = votes.chain(voter.others.iter().filter(|other| *other != block));
                others.find(|other| other.number == block.number).copied()
            };
            stated.iter().find_map(|group| Some((voter.endpoint, of(group)?)))
        };
        self.voters.iter().filter_map(contradiction).collect()
    }

    /// The endpoints whose vote on the newest block equals the pinned reading or the counted vote, apart from off-chain
    /// lookups.
    pub(crate) fn endpoints_matching_newest_vote(&self, at: DecisiveNewestVoters, pinned: &V) -> Vec<usize> {
        let counted = self.latest_vote(at.records).and_then(|vote| vote.as_ref().ok());
        let is_like = |vote: &V| {
            let others = iter::once(pinned).chain(counted);
            others
                .into_iter()
                .any(|other| vote.agrees_on_part(other, QuorumVotePart::Records) || vote.agrees_except_lookups(other))
        };
        let voters = self.voters.iter().filter(|voter| matches!(&voter.latest, Some(Ok(vote)) if is_like(vote)));
        voters.map(|voter| voter.endpoint).collect()
    }

    /// Whether an answer about a block of others is expected.
    fn is_awaiting_answer(&self) -> bool {
        self.voters.iter().any(|voter| voter.awaited_blocks().next().is_some())
    }

    /// Every combination of block and vote, with the endpoints that share it.
    fn agreement_groups(&self) -> Vec<AgreementGroup<'_, V>> {
        let is_same = |one: &V, other: &V| {
            one == other
                || (clresolve_core::mutant!("payments-need-no-quorum")
                    && one.agrees_on_part(other, QuorumVotePart::Records))
        };
        let mut groups: Vec<AgreementGroup<'_, V>> = Vec::new();
        for voter in &self.voters {
            for (block, vote) in &voter.votes {
                match groups.iter_mut().find(|group| group.block == *block && is_same(group.vote, vote)) {
                    Some(group) => group.endpoints.push(voter.endpoint),
                    None => groups.push(AgreementGroup { block: *block, vote, endpoints: vec![voter.endpoint] }),
                }
            }
        }
        groups
    }

    /// Among the groups that are large enough, the one with the highest block. `None` if there is none, if two of them
    /// contradict each other, or if enough operators have a block at least as high but differ about its contents: a
    /// lower block must not settle a dispute.
    fn winning_group<'g>(&self, groups: &'g [AgreementGroup<'_, V>]) -> Option<&'g AgreementGroup<'g, V>> {
        let large = groups.iter().filter(|group| self.count_operators(&group.endpoints) >= self.agree);
        let winner = large.clone().max_by_key(|group| group.block.number)?;
        let rivals = large.filter(|group| group.block.number == winner.block.number).count();
        if self.disputed_height(groups).is_some_and(|height| height >= winner.block.number) {
            return None;
        }
        (rivals == 1 || clresolve_core::mutant!("rivals-are-ignored")).then_some(winner)
    }

    /// Height of the highest block that enough operators have, but on which too few of them agree.
    fn disputed_height(&self, groups: &[AgreementGroup<'_, V>]) -> Option<u64> {
        let is_disputed = |block: &ChainBlock| {
            let of_block = || groups.iter().filter(|group| group.block == *block);
            let all: Vec<usize> = of_block().flat_map(|group| group.endpoints.iter().copied()).collect();
            self.count_operators(&all) >= self.agree
                && of_block().all(|group| self.count_operators(&group.endpoints) < self.agree)
        };
        groups.iter().map(|group| group.block).filter(is_disputed).map(|block| block.number).max()
    }

    /// Which endpoints that are ahead may enlarge a group to the required size, for the highest such block. Endpoints
    /// that were already asked are omitted.
    fn endpoints_to_ask_again(&self, groups: &[AgreementGroup<'_, V>]) -> Vec<(usize, ChainBlock)> {
        let disputed = self.disputed_height(groups);
        let mut by_height: Vec<&AgreementGroup<'_, V>> =
            groups.iter().filter(|group| disputed.is_none_or(|height| group.block.number >= height)).collect();
        by_height.sort_by_key(|group| Reverse(group.block.number));
        let target = by_height.into_iter().find(|group| {
            let may_join = self
                .voters
                .iter()
                .filter(|voter| voter.may_still_vouch_for_block(&group.block))
                .map(|voter| voter.endpoint);
            self.count_operators(&group.endpoints.iter().copied().chain(may_join).collect::<Vec<_>>()) >= self.agree
        });
        let Some(AgreementGroup { block, .. }) = target else { return Vec::new() };
        let unasked =
            |voter: &&QuorumVoter<V>| voter.may_still_vouch_for_block(block) && !voter.repeats.contains(block);
        self.voters.iter().filter(unasked).map(|voter| (voter.endpoint, *block)).collect()
    }

    /// The endpoints whose votes on the newest block count, and whether both parts are conclusive.
    fn decisive_newest_voters(&self, group: &AgreementGroup<'_, V>) -> (Option<DecisiveNewestVoters>, bool) {
        let (records, records_are_clear) = self.decisive_voter_for_part(group, QuorumVotePart::Records);
        let (payment, payment_is_clear) = self.decisive_voter_for_part(group, QuorumVotePart::Payment);
        let latest = records.zip(payment).map(|(records, payment)| DecisiveNewestVoters { records, payment });
        (latest, records_are_clear && payment_is_clear)
    }

    /// The endpoint whose vote on this part of the newest block counts, and whether that is conclusive. A change counts
    /// unless enough operators deny it: the newest block can only downgrade a verdict, but one endpoint alone must not
    /// be able to withhold a name.
    fn decisive_voter_for_part(&self, group: &AgreementGroup<'_, V>, part: QuorumVotePart) -> (Option<usize>, bool) {
        let of = |wanted: &dyn Fn(&Result<V, EndpointFailure>) -> bool| -> Vec<usize> {
            let is_one = |voter: &&QuorumVoter<V>| voter.latest.as_ref().is_some_and(wanted);
            self.voters.iter().filter(is_one).map(|voter| voter.endpoint).collect()
        };
        let same = of(&|latest| latest.as_ref().is_ok_and(|latest| latest.agrees_on_part(group.vote, part)));
        let changed = of(&|latest| latest.as_ref().is_ok_and(|latest| !latest.agrees_on_part(group.vote, part)));
        let failed = of(&Result::is_err);
        if self.count_operators(&same) >= self.agree && !clresolve_core::mutant!("one-objection-withholds") {
            return (same.first().copied(), true);
        }
        let stated = changed.iter().find(|endpoint| self.is_vote_shared_by_quorum(**endpoint, part));
        if let Some(stated) = stated.filter(|_| !clresolve_core::mutant!("the-first-objection-counts")) {
            return (Some(*stated), true);
        }
        let is_clear = same.len() + changed.len() + failed.len() == 0;
        (changed.first().or_else(|| failed.first()).or_else(|| same.first()).copied(), is_clear)
    }

    /// Whether the vote of `endpoint` on this part of the newest block differs from `vote` and is shared by too few
    /// operators. It shows that something may have changed, but not what: the endpoint may be lying.
    pub(crate) fn is_objection(&self, endpoint: usize, vote: &V, part: QuorumVotePart) -> bool {
        let differs = |latest: &Result<V, EndpointFailure>| {
            latest.as_ref().is_ok_and(|latest| !latest.agrees_on_part(vote, part))
        };
        self.latest_vote(endpoint).is_some_and(differs) && !self.is_vote_shared_by_quorum(endpoint, part)
    }

    /// Whether enough operators share the vote of `endpoint` on this part of the newest block.
    fn is_vote_shared_by_quorum(&self, endpoint: usize, part: QuorumVotePart) -> bool {
        let Some(Ok(vote)) = self.latest_vote(endpoint) else { return false };
        let shares = |voter: &&QuorumVoter<V>| {
            voter
                .latest
                .as_ref()
                .is_some_and(|latest| latest.as_ref().is_ok_and(|latest| latest.agrees_on_part(vote, part)))
        };
        let sharing: Vec<usize> = self.voters.iter().filter(shares).map(|voter| voter.endpoint).collect();
        self.count_operators(&sharing) >= self.agree
    }

    fn is_outdated_block(&self, block: &ChainBlock) -> bool {
        let is_older = |voter: &QuorumVoter<V>| voter.head.timestamp.duration_since(block.timestamp) > STRADDLE;
        self.voters.iter().any(is_older) && !clresolve_core::mutant!("old-agreement")
    }

    fn count_operators(&self, endpoints: &[usize]) -> usize {
        let operator = |endpoint: &usize| self.find_voter(*endpoint).map(|voter| voter.operator.as_str());
        let operators = endpoints.iter().filter_map(operator).collect::<BTreeSet<_>>().len();
        if clresolve_core::mutant!("operators-count-twice") { endpoints.len() } else { operators }
    }

    fn find_voter(&self, endpoint: usize) -> Option<&QuorumVoter<V>> {
        self.voters.iter().find(|voter| voter.endpoint == endpoint)
    }
}

/// The height that this many operators have reached. An operator that is ahead does not vouch for those that are
/// behind.
fn highest_shared_height(mut heights: Vec<(u64, &str)>, agree: usize) -> Option<u64> {
    heights.sort_unstable_by_key(|(height, _)| Reverse(*height));
    let mut operators = BTreeSet::new();
    let enough = heights.into_iter().find(|(_, operator)| {
        operators.insert(*operator);
        operators.len() >= agree
    });
    enough.map(|(height, _)| height)
}

/// The endpoints that share a vote on a block.
struct AgreementGroup<'b, V> {
    block: ChainBlock,
    vote: &'b V,
    endpoints: Vec<usize>,
}

impl<V> QuorumVoter<V> {
    fn vote_at_block(&self, block: &ChainBlock) -> Option<&V> {
        self.votes.iter().find(|(of, _)| of == block).map(|(_, vote)| vote)
    }

    /// Whether the endpoint has another block at that height.
    fn has_conflicting_block(&self, block: &ChainBlock) -> bool {
        self.others.iter().any(|other| other.number == block.number && other != block)
    }

    /// Blocks of others about which this endpoint's answer is still expected.
    fn awaited_blocks(&self) -> impl Iterator<Item = &ChainBlock> {
        self.repeats.iter().filter(|block| {
            self.vote_at_block(block).is_none()
                && !self.has_conflicting_block(block)
                && !self.unanswered.contains(block)
        })
    }

    /// Whether the endpoint is ahead and may still vouch for `block`.
    fn may_still_vouch_for_block(&self, block: &ChainBlock) -> bool {
        let is_asked = self.repeats.contains(block);
        self.head.number > block.number
            && self.vote_at_block(block).is_none()
            && !self.unanswered.contains(block)
            && !self.has_conflicting_block(block)
            && (is_asked || self.repeats.len() < MAX_REPEATS)
    }
}
