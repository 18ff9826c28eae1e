//! Look-ups off the chain (EIP-3668) through an injected gateway client, bounded in number, size and time.

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::{Address, Bytes};
use alloy_provider::network::Ethereum;
use alloy_provider::{CcipReadClient, CcipReadConfig, CcipReadError, RootProvider};
use alloy_rpc_client::RpcClient;
use alloy_rpc_types_eth::BlockId;
use async_trait::async_trait;
use tokio::time::timeout;

pub use alloy_provider::{CcipReadGateway, CcipReadGatewayError, CcipReadRequest};

use clresolve_core::cause::CcipFault;
use clresolve_core::reading::ChainError;
use clresolve_core::text::excerpt;
use clresolve_state::contracts::Resolved;
use clresolve_state::{MAX_LOOK_UP_BYTES, MAX_LOOK_UPS};

use crate::failure::Failure;
use crate::request::{eth_call, revert_data};

/// Most gateway requests of one look-up over all redirects: a few for each text key.
const MAX_REQUESTS: usize = 100;

/// Time limit of a look-up, in time limits of a request: one for each redirect.
const PATIENCE: u32 = MAX_LOOK_UPS as u32;

/// Follows look-ups.
pub(super) struct Lookups {
    client: CcipReadClient<Shared>,
    patience: Duration,
}

impl Lookups {
    pub(super) fn new(gateway: Arc<dyn CcipReadGateway>, request_timeout: Duration) -> Self {
        let config = CcipReadConfig {
            max_redirects: if clresolve_core::mutant!("endless-look-ups") { MAX_REQUESTS } else { MAX_LOOK_UPS },
            max_total_requests: MAX_REQUESTS,
            max_revert_data_size: MAX_LOOK_UP_BYTES,
            max_response_size: MAX_LOOK_UP_BYTES,
            ..CcipReadConfig::default()
        };
        let client = CcipReadClient::new(Shared(gateway)).with_config(config);
        Self { client, patience: request_timeout.saturating_mul(PATIENCE) }
    }

    /// The result of `call` to the Universal Resolver at `block`, once all look-ups are answered.
    ///
    /// # Errors
    /// [`ChainError::Ccip`]; [`ChainError::Disagree`] where the endpoints behind `rpc` contradict each other;
    /// [`ChainError::Unproven`] where their proofs do not hold.
    pub(super) async fn follow(
        &self,
        rpc: &RpcClient,
        resolver: Address,
        call: Bytes,
        block: BlockId,
    ) -> Result<Bytes, ChainError> {
        let provider = RootProvider::<Ethereum>::new(rpc.clone());
        let lookup = self.client.call_at(&provider, eth_call(resolver, call), block);
        match timeout(self.patience, lookup).await {
            Ok(result) => result.map_err(|error| failed(&error)),
            Err(_) => Err(ChainError::Ccip(CcipFault::Late(self.patience))),
        }
    }
}

fn failed(error: &CcipReadError) -> ChainError {
    if let CcipReadError::Transport(error) = error {
        match Failure::of(error, excerpt) {
            Failure::Divided(responses) => return ChainError::Disagree(responses),
            Failure::Unproven(causes) => return ChainError::Unproven(causes),
            Failure::LocalLimit(limit) => return ChainError::LocalLimit(limit),
            _ => {}
        }
    }
    ChainError::Ccip(explain(error))
}

fn explain(error: &CcipReadError) -> CcipFault {
    if let CcipReadError::Transport(error) = error
        && let Some(data) = revert_data(error)
    {
        return match Resolved::reverted(&data) {
            Resolved::Failed(fault) => CcipFault::Callback(fault),
            Resolved::Gateway(fault) => fault,
            _ => CcipFault::NotTaken,
        };
    }
    CcipFault::Client(excerpt(&error.to_string()))
}

/// The injected client, as a type that alloy accepts.
struct Shared(Arc<dyn CcipReadGateway>);

#[async_trait]
impl CcipReadGateway for Shared {
    async fn request(&self, request: &CcipReadRequest, cap: usize) -> Result<Bytes, CcipReadGatewayError> {
        self.0.request(request, cap).await
    }
}
