//! Requests for hints: what endpoints are asked, besides the header, if the reading is computed over proven state.

use alloy_json_rpc::RpcError;
use alloy_primitives::Bytes;
use alloy_rpc_types_eth::{AccessList, AccessListResult, BlockId};
use clresolve_core::reading::BlockSelector;
use clresolve_state::contracts::NameFindings;
use futures_util::future::{OptionFuture, join};

use crate::endpoint::RpcEndpoint;
use crate::failure::EndpointFailure;
use crate::query::NameQuery;
use crate::request::block_tag;

/// An endpoint's unproven statements.
pub(crate) struct AccessListAndLatestFindings {
    /// The accounts and slots that the call is likely to read.
    pub(crate) touched: Option<AccessList>,
    /// The result of the call at the newest block. `None` if it was not requested.
    pub(crate) latest: Option<Result<NameFindings, EndpointFailure>>,
}

impl RpcEndpoint {
    /// Requests the accounts and slots that the call is likely to read, and its result at the newest block. Neither is
    /// proven. If the endpoint refuses one of them, the other may still succeed.
    ///
    /// # Errors
    /// [`EndpointFailure`] if there was no response at all.
    pub(crate) async fn fetch_access_list_and_findings(
        &self,
        query: &NameQuery,
        selector: BlockSelector,
    ) -> Result<AccessListAndLatestFindings, EndpointFailure> {
        let access_list = (&query.call, BlockId::from(block_tag(selector)));
        let touched = self.rpc.request::<_, AccessListResult>("eth_createAccessList", access_list);
        let latest = selector.is_compared_with_latest().then(|| self.fetch_findings_at_latest(query));
        let (touched, latest) = join(touched, OptionFuture::from(latest)).await;
        match (touched, latest) {
            (Err(error), None | Some(Err(_))) if !matches!(error, RpcError::ErrorResp(_)) => {
                Err(self.failure_from_transport_error(&error))
            }
            (touched, latest) => {
                Ok(AccessListAndLatestFindings { touched: touched.ok().map(|result| result.access_list), latest })
            }
        }
    }

    async fn fetch_findings_at_latest(&self, query: &NameQuery) -> Result<NameFindings, EndpointFailure> {
        let response = self.rpc.request::<_, Bytes>("eth_call", (&query.call, BlockId::latest())).await;
        self.decode_findings(query, response)
    }
}
