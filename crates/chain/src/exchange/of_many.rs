//! Request exchanges with one endpoint about many names.

use std::sync::Arc;

use alloy_primitives::{Address, Bytes};
use alloy_transport::TransportError;
use clresolve_core::reading::BlockSelector;
use clresolve_state::contracts::Findings;
use clresolve_state::{Together, call_together};

use super::{ChainIdentity, Exchanged, Observation};
use crate::endpoint::RpcEndpoint;
use crate::failure::Failure;
use crate::query::{Query, not_before, spoiled};
use crate::request::eth_call;

impl RpcEndpoint {
    /// Like [`RpcEndpoint::ask_at_own_block`], with a single call for all names.
    ///
    /// # Errors
    /// [`Failure`] if any name might get another answer than it would alone.
    pub(crate) async fn observe_together(
        &self,
        multicall3: Address,
        queries: &[Arc<Query>],
        selector: BlockSelector,
        identity: ChainIdentity,
    ) -> Result<Vec<Result<Observation<Findings>, Failure>>, Failure> {
        let call = eth_call(multicall3, call_together(multicall3, queries.iter().map(|query| query.call_data())));
        let Exchanged { block, genesis, mut results } = self.exchange(&[&call], selector, identity).await?;
        let both = results.pop().expect("each call has its results");
        let pinned = self.together(both.pinned, queries.len())?;
        let latest = both.latest.map(|latest| self.together(latest, queries.len())).transpose()?;
        if pinned.block != block.number {
            return Err(Failure::Unusable("the calls ran in another block than that of the header".to_owned()));
        }
        self.set_identified();
        let observation = |(index, query): (usize, &Arc<Query>)| {
            let pinned = query.decode_at(&block, &pinned.results[index])?;
            let latest = latest.as_ref().map(|latest| not_before(query.decode(&latest.results[index])?, &block));
            Ok(Observation { block, pinned, latest, genesis })
        };
        Ok(queries.iter().enumerate().map(observation).collect())
    }

    /// Like [`RpcEndpoint::ask_at_own_block`], with separate calls for each name.
    ///
    /// # Errors
    /// [`Failure`] if the exchange failed for all names.
    pub(crate) async fn observe_apart(
        &self,
        queries: &[Arc<Query>],
        selector: BlockSelector,
        identity: ChainIdentity,
    ) -> Result<Vec<Result<Observation<Findings>, Failure>>, Failure> {
        let calls: Vec<_> = queries.iter().map(|query| &query.call).collect();
        let Exchanged { block, genesis, results } = self.exchange(&calls, selector, identity).await?;
        let mut observations = Vec::with_capacity(queries.len());
        for (query, results) in queries.iter().zip(results) {
            observations.push(self.observation(query, block, genesis, results).await);
        }
        Ok(observations)
    }

    fn together(&self, response: Result<Bytes, TransportError>, count: usize) -> Result<Together, Failure> {
        Together::decode(&response.map_err(|e| self.failure(&e))?, count).map_err(spoiled)
    }
}
