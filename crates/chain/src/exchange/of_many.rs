//! Request exchanges with one endpoint about many names.

use std::sync::Arc;

use alloy_primitives::{Address, Bytes};
use alloy_transport::TransportError;
use clresolve_core::reading::BlockSelector;
use clresolve_state::contracts::NameFindings;
use clresolve_state::{BatchedCallResults, batch_call_data};

use super::{ChainIdentity, EndpointPinnedAndLatestVotes, HeaderAndCallResults};
use crate::endpoint::RpcEndpoint;
use crate::failure::EndpointFailure;
use crate::query::{NameQuery, check_latest_not_before_pinned, unusable_batch_failure};
use crate::request::eth_call_request;

impl RpcEndpoint {
    /// Like [`RpcEndpoint::fetch_pinned_and_latest_votes`], with a single call for all names.
    ///
    /// # Errors
    /// [`EndpointFailure`] if any name might get another answer than it would alone.
    pub(crate) async fn fetch_votes_by_multicall(
        &self,
        multicall3: Address,
        queries: &[Arc<NameQuery>],
        selector: BlockSelector,
        identity: ChainIdentity,
    ) -> Result<Vec<Result<EndpointPinnedAndLatestVotes<NameFindings>, EndpointFailure>>, EndpointFailure> {
        let call =
            eth_call_request(multicall3, batch_call_data(multicall3, queries.iter().map(|query| query.call_data())));
        let HeaderAndCallResults { block, genesis, mut results } =
            self.request_header_and_calls(&[&call], selector, identity).await?;
        let both = results.pop().expect("each call has its results");
        let pinned = self.decode_batched_results(both.pinned, queries.len())?;
        let latest = both.latest.map(|latest| self.decode_batched_results(latest, queries.len())).transpose()?;
        if pinned.block != block.number {
            return Err(EndpointFailure::Unusable("the calls ran in another block than that of the header".to_owned()));
        }
        self.note_chain_identified();
        let observation = |(index, query): (usize, &Arc<NameQuery>)| {
            let pinned = query.decode_findings_at_block(&block, &pinned.results[index])?;
            let latest = latest
                .as_ref()
                .map(|latest| check_latest_not_before_pinned(query.decode_findings(&latest.results[index])?, &block));
            Ok(EndpointPinnedAndLatestVotes { block, pinned, latest, genesis })
        };
        Ok(queries.iter().enumerate().map(observation).collect())
    }

    /// Like [`RpcEndpoint::fetch_pinned_and_latest_votes`], with separate calls for each name.
    ///
    /// # Errors
    /// [`EndpointFailure`] if the exchange failed for all names.
    pub(crate) async fn fetch_votes_by_separate_calls(
        &self,
        queries: &[Arc<NameQuery>],
        selector: BlockSelector,
        identity: ChainIdentity,
    ) -> Result<Vec<Result<EndpointPinnedAndLatestVotes<NameFindings>, EndpointFailure>>, EndpointFailure> {
        let calls: Vec<_> = queries.iter().map(|query| &query.call).collect();
        let HeaderAndCallResults { block, genesis, results } =
            self.request_header_and_calls(&calls, selector, identity).await?;
        let mut observations = Vec::with_capacity(queries.len());
        for (query, results) in queries.iter().zip(results) {
            observations.push(self.decode_pinned_and_latest_votes(query, block, genesis, results).await);
        }
        Ok(observations)
    }

    fn decode_batched_results(
        &self,
        response: Result<Bytes, TransportError>,
        count: usize,
    ) -> Result<BatchedCallResults, EndpointFailure> {
        BatchedCallResults::decode(&response.map_err(|e| self.failure_from_transport_error(&e))?, count)
            .map_err(unusable_batch_failure)
    }
}
