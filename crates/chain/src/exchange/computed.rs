//! Requests for hints: what endpoints are asked besides the header if the reading is computed over proven state.

use alloy_rpc_types_eth::{AccessList, AccessListResult, BlockId};
use clresolve_core::reading::BlockSelector;
use clresolve_state::contracts::Findings;

use crate::endpoint::RpcEndpoint;
use crate::failure::Failure;
use crate::query::Query;
use crate::request::tag;

/// An endpoint's unproven statements.
pub(crate) struct Hint {
    /// The accounts and slots that the call is likely to read.
    pub(crate) touched: Option<AccessList>,
    /// The result of the call at the newest block. `None` if it was not requested.
    pub(crate) latest: Option<Result<Findings, Failure>>,
}

impl RpcEndpoint {
    /// Requests, in one exchange, what the call is likely to read and its result at the newest block. Neither is
    /// proven.
    ///
    /// # Errors
    /// [`Failure`] if there was no response at all.
    pub(crate) async fn hint(&self, query: &Query, selector: BlockSelector) -> Result<Hint, Failure> {
        let mut batch = self.rpc.new_batch();
        let touched = batch
            .add_call::<_, AccessListResult>("eth_createAccessList", &(&query.call, BlockId::from(tag(selector))))
            .map_err(|e| self.failure(&e))?;
        let latest = self.request_latest(&mut batch, &query.call, selector)?;
        batch.await.map_err(|e| self.failure(&e))?;
        let touched = touched.await.ok().map(|result| result.access_list);
        let latest = match latest {
            Some(response) => Some(self.findings(query, response.await)),
            None => None,
        };
        Ok(Hint { touched, latest })
    }
}
