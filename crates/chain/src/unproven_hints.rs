//! [`AccessListHintCollector`]: what endpoints state without proof while a reading is being computed.
//!
//! The hints serve two purposes: what the call is likely to read, which saves exchanges, and whether the newest block
//! differs, which can only downgrade a verdict.

use std::sync::Arc;

use alloy_rpc_types_eth::AccessList;
use clresolve_core::name::EnsName;
use clresolve_core::reading::BlockSelector;
use clresolve_core::records::TextRecordKey;
use clresolve_state::contracts::{NameFindings, UniversalResolverOutcome, decode_texts};
use tokio::task::JoinHandle;

use crate::endpoint::RpcEndpoint;
use crate::exchange::computed::AccessListAndLatestFindings;
use crate::failure::EndpointFailure;
use crate::fan_out::{FanOutEvent, FanOutNeed, FanOutScheduler, RequestFanOut};
use crate::head_age::HeadAgeLimit;
use crate::header_source::VouchedBlockHeader;
use crate::poll::NewestBlockVoteSummary;
use crate::pool::{EndpointPool, TimeSource};
use crate::query::{NameQuery, check_latest_not_before_pinned};
use crate::quorum::{QuorumCounter, QuorumStatus};

pub(crate) struct AccessListHintCollector {
    query: Arc<NameQuery>,
    selector: BlockSelector,
    /// Number of operators that must agree on the newest block.
    agree: usize,
    head_age: HeadAgeLimit,
    clock: TimeSource,
    /// The endpoints in the order in which they are asked.
    order: Vec<Arc<RpcEndpoint>>,
    /// Each request runs as its own task, so that it continues while the answer is computed. It returns the index of
    /// its endpoint with the hint.
    fan_out: RequestFanOut<JoinHandle<(usize, Result<AccessListAndLatestFindings, EndpointFailure>)>>,
    touched: Option<AccessList>,
    /// Indices of the endpoints that returned a hint, each with its findings at the newest block.
    latest: Vec<(usize, Result<NameFindings, EndpointFailure>)>,
    /// Number of endpoints that returned a hint.
    received: usize,
}

impl AccessListHintCollector {
    /// Gathers hints from as many endpoints as must agree.
    pub(crate) async fn gather_hints(pool: &EndpointPool, query: Arc<NameQuery>, selector: BlockSelector) -> Self {
        let order = pool.endpoints_in_order();
        let plan = FanOutScheduler::new(order.len(), pool.concurrent_request_count(), pool.concurrent_request_count());
        let mut hints = Self {
            query,
            selector,
            agree: pool.required_operator_count(),
            head_age: pool.head_age,
            clock: Arc::clone(&pool.clock),
            order,
            fan_out: RequestFanOut::new(plan, pool.hedge_delay()),
            touched: None,
            latest: Vec::new(),
            received: 0,
        };
        while hints.received < hints.agree
            && hints.receive_next_hint(FanOutNeed::Answers { in_sight: hints.received }).await
        {}
        hints
    }

    pub(crate) fn take_access_list(&mut self) -> AccessList {
        self.touched.take().unwrap_or_default()
    }

    /// The owner according to an endpoint's newest block. A wrong name only costs a request.
    pub(crate) fn hinted_owner(&self) -> Option<EnsName> {
        let texts = self.latest.iter().find_map(|(_, latest)| match &latest.as_ref().ok()?.resolved {
            UniversalResolverOutcome::Returned(data) => decode_texts(data, &TextRecordKey::ALL).ok(),
            _ => None,
        });
        EnsName::parse(texts?.1.text(TextRecordKey::Owner)?.trim()).ok()
    }

    /// The findings at the newest block that count, and the height that enough endpoints have reached with them. Enough
    /// operators must state what was computed, otherwise an objection counts. `None` if too few endpoints answer.
    pub(crate) async fn count_newest_findings(
        mut self,
        head: &VouchedBlockHeader,
        pinned: &NameFindings,
    ) -> Option<(NewestBlockVoteSummary<NameFindings>, Option<u64>)> {
        let mut counter = QuorumCounter::new(self.agree);
        let mut counted = 0;
        loop {
            for (index, latest) in &self.latest[counted..] {
                let endpoint = &self.order[*index];
                let latest = latest.clone().and_then(|latest| check_latest_not_before_pinned(latest, &head.block));
                if !head.is_endpoint_excluded(&endpoint.label) {
                    counter.add_votes(*index, &endpoint.operator, head.block, pinned.clone(), Some(latest));
                }
            }
            counted = self.latest.len();
            if !self.receive_next_hint(counter.fan_out_need()).await {
                break;
            }
        }
        let at = match counter.status() {
            QuorumStatus::Settled(agreement) | QuorumStatus::Provisional(agreement, _) => agreement.latest?,
            QuorumStatus::Open { .. } => counter.objecting_endpoints(pinned)?,
        };
        let is_usable = |endpoint: &usize| !head.is_endpoint_excluded(&self.order[*endpoint].label);
        let newest = NewestBlockVoteSummary::from_counter(at, &counter, pinned, &self.order, is_usable)?;
        Some((newest, counter.newest_quorum_height(at)))
    }

    /// Waits for the next response. Returns whether one came.
    async fn receive_next_hint(&mut self, need: FanOutNeed) -> bool {
        let Self { fan_out, order, query, selector, head_age, clock, .. } = self;
        let ask = |index: usize| {
            let (endpoint, query, selector) = (Arc::clone(&order[index]), Arc::clone(query), *selector);
            let (head_age, clock) = (*head_age, Arc::clone(clock));
            tokio::spawn(async move {
                let mut hint = endpoint.fetch_access_list_and_findings(&query, selector).await;
                if let Ok(AccessListAndLatestFindings { latest: Some(latest), .. }) = &mut hint {
                    *latest = latest.clone().and_then(|latest| head_age.require_recent_vote(latest, clock()));
                    if let Err(failure) = latest {
                        endpoint.note_refused_head(failure, clock());
                    }
                }
                (index, hint)
            })
        };
        let FanOutEvent::Answer(reply) = fan_out.next_event(need, ask).await else { return false };
        if let Ok((index, Ok(AccessListAndLatestFindings { touched, latest }))) = reply {
            self.received += 1;
            self.touched = self.touched.take().or(touched);
            self.latest.extend(latest.map(|latest| (index, latest)));
        }
        true
    }
}
