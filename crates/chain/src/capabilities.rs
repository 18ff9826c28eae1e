//! Tests what one endpoint supports: the requests of a resolution, batches, block 0, state proofs and gas.

use std::sync::Arc;

use alloy_primitives::{Bytes, U256};
use alloy_rpc_types_eth::{BlockId, TransactionInput, TransactionRequest};
use clresolve_core::name::EnsName;
use clresolve_core::reading::BlockSelector;
use clresolve_state::CALL_GAS;
use serde_json::Value;
use tokio::join;

use crate::endpoint::{RpcEndpoint, RpcEndpointSettings};
use crate::exchange::ChainIdentity;
use crate::failure::EndpointFailure;
use crate::pool::ChainReaderConfig;
use crate::query::NameQuery;
use crate::transport::JsonRpcHttpClient;

const PROBE: &str = "ens.eth";

/// Init code that returns the gas that is left (EVM assembly: GAS, PUSH1 0, MSTORE, PUSH1 32, PUSH1 0, RETURN).
const GAS_LEFT: [u8; 9] = [0x5a, 0x60, 0x00, 0x52, 0x60, 0x20, 0x60, 0x00, 0xf3];

/// Gas that a call may cost before its first instruction.
const INTRINSIC_GAS: u64 = 100_000;

/// The capabilities of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointCapabilities {
    /// Why the exchange that starts every resolution failed. `None` if it succeeded.
    pub fault: Option<String>,
    /// Whether it answers several requests in one body. If not, they are sent one by one.
    pub takes_batches: bool,
    /// Whether the endpoint has block 0, and therefore probably old blocks.
    pub has_first_block: bool,
    /// Whether it answers `eth_getProof`, which [`ProofGrade::StateProof`](clresolve_core::reading::ProofGrade) needs.
    pub has_proofs: bool,
    /// Whether a call gets the gas of a reading. Also true if the endpoint does not show its gas limit.
    pub has_gas: bool,
}

impl EndpointCapabilities {
    /// Probes `endpoint` on the chain of `config`. The endpoints of `config` are not asked.
    pub async fn probe_endpoint(
        endpoint: RpcEndpointSettings,
        config: &ChainReaderConfig,
        http: &Arc<dyn JsonRpcHttpClient>,
    ) -> Self {
        let endpoint = RpcEndpoint::new(endpoint, Arc::clone(http), config.timeout);
        let (reading, has_proofs, gas) = join!(
            probe_name_reading(&endpoint, config),
            probe_state_proofs(&endpoint, config),
            probe_call_gas(&endpoint)
        );
        Self {
            has_first_block: reading.as_ref().is_ok_and(|has_first_block| *has_first_block),
            fault: reading.err().map(|failure| failure.to_string()),
            takes_batches: endpoint.transport.takes_batches(),
            has_proofs,
            has_gas: gas.is_none_or(|gas| gas.saturating_add(INTRINSIC_GAS) >= CALL_GAS),
        }
    }
}

/// Reads a name as a resolution would. Returns whether the endpoint has block 0.
async fn probe_name_reading(endpoint: &RpcEndpoint, config: &ChainReaderConfig) -> Result<bool, EndpointFailure> {
    let name = EnsName::parse(PROBE).expect("the probe is a name");
    let query = NameQuery::for_resolution(&name, &config.contracts, &config.coins);
    let identity = ChainIdentity { id: config.chain_id, genesis: config.genesis };
    let observation = endpoint.fetch_pinned_and_latest_votes(&query, BlockSelector::Finalized, identity).await?;
    observation.latest.transpose()?;
    Ok(observation.genesis.is_some())
}

async fn probe_state_proofs(endpoint: &RpcEndpoint, config: &ChainReaderConfig) -> bool {
    let account = (config.contracts.multicall3, [(); 0], BlockId::finalized());
    endpoint.rpc.request::<_, Value>("eth_getProof", account).await.is_ok_and(|proof| proof["accountProof"].is_array())
}

/// The gas that a call has, if the endpoint runs init code.
async fn probe_call_gas(endpoint: &RpcEndpoint) -> Option<u64> {
    let input = TransactionInput { data: Some(Bytes::from_static(&GAS_LEFT)), input: None };
    let call = TransactionRequest::default().input(input).gas_limit(CALL_GAS);
    let left = endpoint.rpc.request::<_, Bytes>("eth_call", (call, BlockId::latest())).await.ok()?;
    U256::try_from_be_slice(&left).and_then(|left| u64::try_from(left).ok()).filter(|_| left.len() == 32)
}
