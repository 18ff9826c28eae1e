//! [`HeadVoteCounter`]: determines the newest block that enough operators report. Performs no I/O and reads no clock.
//!
//! An endpoint vouches for the block that it reports, and for the ancestors that its own reports link by their hashes.
//! Honest endpoints one block apart therefore agree on the lower block, and a block that one endpoint invents has no
//! effect.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use alloy_primitives::B256;
use clresolve_core::reading::ChainBlock;
use clresolve_state::HashedBlockHeader;
use jiff::Timestamp;

/// Maximum number of blocks for which one endpoint vouches. Honest endpoints are seldom further apart.
const MAX_LINEAGE: usize = 8;

/// How many blocks the newest block of an endpoint may fall behind its previous one. One URL may serve several nodes,
/// which are a block or two apart.
pub const MAX_STEP_BACK: u64 = 2;

/// The newest block that enough operators report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainHead {
    /// The block.
    pub block: ChainBlock,
    /// The latest time by which that many operators had reported it as their newest block, or had reported its child.
    pub reported_at: Timestamp,
}

pub(crate) struct HeadVoteCounter {
    agree: usize,
    endpoints: Vec<EndpointBlockLineage>,
    head: Option<ChainHead>,
    /// Hashes of the known ancestors of the head.
    ancestors: Vec<B256>,
}

/// The blocks for which one endpoint vouches: the block it reported last, its parent, and so on.
struct EndpointBlockLineage {
    operator: String,
    vouched: Vec<EndpointVouchedBlock>,
}

#[derive(Clone, Copy)]
struct EndpointVouchedBlock {
    hash: B256,
    /// `None` for a block that is known only as a parent.
    block: Option<ChainBlock>,
    /// When the endpoint last reported the block as its newest, or when it first reported a child of the block.
    at: Timestamp,
}

impl HeadVoteCounter {
    /// Counts endpoints of these operators, of which `agree` must agree.
    pub(crate) fn new(agree: usize, operators: impl Iterator<Item = String>) -> Self {
        let endpoints = operators.map(|operator| EndpointBlockLineage { operator, vouched: Vec::new() }).collect();
        Self { agree, endpoints, head: None, ancestors: Vec::new() }
    }

    pub(crate) const fn head(&self) -> Option<ChainHead> {
        self.head
    }

    /// Whether the endpoint with this index reported a much higher block last.
    pub(crate) fn is_head_regression(&self, endpoint: usize, block: &ChainBlock) -> bool {
        let last = self.endpoints[endpoint].vouched.first().and_then(|vouched| vouched.block);
        last.is_some_and(|last| last.number > block.number.saturating_add(MAX_STEP_BACK))
    }

    /// Counts the newest block of the endpoint with this index. Returns the head.
    pub(crate) fn add_head_report(
        &mut self,
        endpoint: usize,
        header: &HashedBlockHeader,
        block: ChainBlock,
        now: Timestamp,
    ) -> Option<ChainHead> {
        self.endpoints[endpoint].note_reported_block(block, header.parent_hash(), now);
        let agreed = self.agreed_heads();
        let Some(highest) = agreed.values().max_by_key(|agreed| agreed.block.number) else { return self.head };
        match self.head.and_then(|head| agreed.get(&head.block.hash)) {
            Some(current) if current.block.number >= highest.block.number => self.head = Some(*current),
            // Too few operators report the head now, but those that do agree on no block that contradicts it.
            None if self.ancestors.contains(&highest.block.hash) => {}
            _ => {
                self.ancestors =
                    self.endpoints.iter().flat_map(|lineage| lineage.vouched_ancestors(highest.block.hash)).collect();
                self.head = Some(*highest);
            }
        }
        self.head
    }

    /// The blocks for which enough operators vouch, by hash.
    fn agreed_heads(&self) -> BTreeMap<B256, ChainHead> {
        let mut reports: BTreeMap<B256, BlockVouchTimesByOperator<'_>> = BTreeMap::new();
        for EndpointBlockLineage { operator, vouched } in &self.endpoints {
            for EndpointVouchedBlock { hash, block, at } in vouched {
                let report = reports.entry(*hash).or_default();
                report.block = report.block.or(*block);
                let last = report.last.entry(operator).or_insert(*at);
                *last = (*last).max(*at);
            }
        }
        let head =
            |(hash, reports): (B256, BlockVouchTimesByOperator<'_>)| Some((hash, reports.agreed_head(self.agree)?));
        reports.into_iter().filter_map(head).collect()
    }
}

#[derive(Default)]
struct BlockVouchTimesByOperator<'c> {
    block: Option<ChainBlock>,
    /// When each operator last vouched.
    last: BTreeMap<&'c str, Timestamp>,
}

impl BlockVouchTimesByOperator<'_> {
    fn agreed_head(self, agree: usize) -> Option<ChainHead> {
        let mut times: Vec<Timestamp> = self.last.into_values().collect();
        times.sort_unstable();
        let enough = if clresolve_core::mutant!("head-of-one-operator") { 1 } else { agree.max(1) };
        Some(ChainHead { block: self.block?, reported_at: *times.iter().nth_back(enough - 1)? })
    }
}

impl EndpointBlockLineage {
    fn note_reported_block(&mut self, block: ChainBlock, parent: B256, now: Timestamp) {
        let mut vouched = vec![EndpointVouchedBlock { hash: block.hash, block: Some(block), at: now }];
        match self.vouched.iter().position(|vouched| vouched.hash == parent) {
            Some(known) => vouched.extend(&self.vouched[known..]),
            None => vouched.push(EndpointVouchedBlock { hash: parent, block: None, at: now }),
        }
        vouched.truncate(MAX_LINEAGE);
        self.vouched = vouched;
    }

    /// The vouched blocks from which the block with this hash descends.
    fn vouched_ancestors(&self, hash: B256) -> impl Iterator<Item = B256> {
        self.vouched.iter().map(|vouched| vouched.hash).skip_while(move |other| *other != hash).skip(1)
    }
}
