//! [`UnprovenHints`]: what endpoints state without proof while a reading is being computed.
//!
//! The hints serve two purposes: what the call is likely to read, which saves exchanges, and whether the newest block
//! differs, which can only downgrade a verdict.

use std::sync::Arc;

use alloy_rpc_types_eth::AccessList;
use clresolve_core::name::EnsName;
use clresolve_core::reading::BlockSelector;
use clresolve_core::records::Key;
use clresolve_state::contracts::{Findings, Resolved, decode_texts};
use tokio::task::{JoinError, JoinHandle};

use crate::endpoint::RpcEndpoint;
use crate::exchange::computed::Hint;
use crate::failure::Failure;
use crate::fan_out::{Event, FanOut, Need, Plan};
use crate::head_age::HeadAge;
use crate::header_source::Head;
use crate::poll::Newest;
use crate::pool::{Clock, EndpointPool};
use crate::query::{Query, not_before};
use crate::quorum::{QuorumCounter, QuorumStatus};

pub(crate) struct UnprovenHints {
    query: Arc<Query>,
    selector: BlockSelector,
    /// Number of operators that must agree on the newest block.
    agree: usize,
    head_age: HeadAge,
    clock: Clock,
    /// The endpoints in the order in which they are asked.
    order: Vec<Arc<RpcEndpoint>>,
    /// Each request runs as its own task, so that it continues while the answer is computed.
    fan_out: FanOut<JoinHandle<Reply>>,
    touched: Option<AccessList>,
    /// Indices of the endpoints that returned a hint, each with its findings at the newest block.
    latest: Vec<(usize, Result<Findings, Failure>)>,
    /// Number of endpoints that returned a hint.
    received: usize,
}

/// The index of an endpoint, and its hint.
type Reply = (usize, Result<Hint, Failure>);

/// The findings at the newest block that count.
pub(crate) struct NewestFindings {
    pub(crate) newest: Newest<Findings>,
    /// Height that enough endpoints have reached with these findings.
    pub(crate) reached: Option<u64>,
}

impl UnprovenHints {
    /// Gathers hints from as many endpoints as must agree.
    pub(crate) async fn gather(pool: &EndpointPool, query: Arc<Query>, selector: BlockSelector) -> Self {
        let order = pool.in_order();
        let plan = Plan::new(order.len(), pool.width(), pool.width());
        let mut hints = Self {
            query,
            selector,
            agree: pool.agree(),
            head_age: pool.head_age,
            clock: Arc::clone(&pool.clock),
            order,
            fan_out: FanOut::new(plan, pool.patience()),
            touched: None,
            latest: Vec::new(),
            received: 0,
        };
        while hints.received < hints.agree && hints.receive(Need::Answers { in_sight: hints.received }).await {}
        hints
    }

    pub(crate) fn take_touched(&mut self) -> AccessList {
        self.touched.take().unwrap_or_default()
    }

    /// The owner according to an endpoint's newest block. A wrong name only costs a request.
    pub(crate) fn owner(&self) -> Option<EnsName> {
        let texts = self.latest.iter().find_map(|(_, latest)| match &latest.as_ref().ok()?.resolved {
            Resolved::Returned(data) => decode_texts(data, &Key::ALL).ok(),
            _ => None,
        });
        EnsName::parse(texts?.1.text(Key::Owner)?.trim()).ok()
    }

    /// The findings at the newest block that count: enough operators must state what was computed, otherwise an
    /// objection counts. `None` if too few endpoints answer.
    pub(crate) async fn newest(mut self, head: &Head, pinned: &Findings) -> Option<NewestFindings> {
        let mut counter = QuorumCounter::new(self.agree);
        let mut counted = 0;
        loop {
            for (index, latest) in &self.latest[counted..] {
                let endpoint = &self.order[*index];
                let latest = latest.clone().and_then(|latest| not_before(latest, &head.block));
                if !head.excludes(&endpoint.label) {
                    counter.observed(*index, &endpoint.operator, head.block, pinned.clone(), Some(latest));
                }
            }
            counted = self.latest.len();
            if !self.receive(counter.need()).await {
                break;
            }
        }
        let at = match counter.status() {
            QuorumStatus::Settled(agreement) | QuorumStatus::Provisional(agreement, _) => agreement.latest?,
            QuorumStatus::Open { .. } => counter.objections(pinned)?,
        };
        let is_usable = |endpoint: &usize| !head.excludes(&self.order[*endpoint].label);
        let newest = Newest::of(at, &counter, pinned, &self.order, is_usable)?;
        Some(NewestFindings { reached: counter.reached(at), newest })
    }

    /// Waits for the next response. Returns whether one came.
    async fn receive(&mut self, need: Need) -> bool {
        let Self { fan_out, order, query, selector, head_age, clock, .. } = self;
        let ask = |index: usize| {
            let (endpoint, query, selector) = (Arc::clone(&order[index]), Arc::clone(query), *selector);
            let (head_age, clock) = (*head_age, Arc::clone(clock));
            tokio::spawn(async move {
                let mut hint = endpoint.hint(&query, selector).await;
                if let Ok(Hint { latest: Some(latest), .. }) = &mut hint {
                    *latest = latest.clone().and_then(|latest| head_age.checked_vote(latest, clock()));
                    if let Err(failure) = latest {
                        endpoint.note_head(failure, clock());
                    }
                }
                (index, hint)
            })
        };
        match fan_out.next(need, ask).await {
            Event::Answer(reply) => {
                self.add(reply);
                true
            }
            Event::Stall | Event::Stop => false,
        }
    }

    fn add(&mut self, reply: Result<Reply, JoinError>) {
        if let Ok((index, Ok(Hint { touched, latest }))) = reply {
            self.received += 1;
            self.touched = self.touched.take().or(touched);
            self.latest.extend(latest.map(|latest| (index, latest)));
        }
    }
}
