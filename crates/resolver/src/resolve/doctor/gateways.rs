//! Examines the IPFS gateways: each retrieves one known block.

use std::time::Duration;

use clresolve_core::cause::HostConnectionError;
use clresolve_ipfs::{ContentId, DagWalkBudget, UnixFsPath};
use jiff::Timestamp;
use serde::Serialize;
use tokio::time::Instant;

use crate::clock::Clock;
use crate::config::{HedgeDelay, IpfsGateway};
use crate::fetch::ipfs::{IpfsClient, IpfsGatewayFault, IpfsRetrievalRequest};
use crate::fetch::{Egress, FetchError, SourceUnavailableError};

/// A raw block that public gateways have: the text `hello world`.
const PROBE: &str = "bafkreifzjut3te7nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e";

/// The result for a gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct IpfsGatewayHealth {
    /// Its label in reports and logs.
    pub label: String,
    /// The outcome.
    pub state: IpfsGatewayProbeOutcome,
    /// Why it returned no proven block.
    pub error: Option<String>,
    /// Why no connection to it was opened, if that is the error.
    #[serde(skip)]
    pub unconnected: Option<HostConnectionError>,
    /// Time of the whole retrieval, connection included, in milliseconds.
    pub latency_ms: u64,
}

/// The outcome of the request to a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum IpfsGatewayProbeOutcome {
    /// It returned the requested block.
    Proven,
    /// It answered without the block. An own gateway need not have it.
    WithoutBlock,
    /// It returned bytes that are not the block's.
    WrongBlock,
    /// It returned no usable answer.
    Unreachable,
}

/// Retrieves the probe from a gateway.
pub(super) async fn probe_ipfs_gateway(
    gateway: &IpfsGateway,
    egress: &Egress,
    clock: &dyn Clock,
    limit: Duration,
) -> IpfsGatewayHealth {
    let asked = Instant::now();
    let (state, unconnected, error) = match IpfsClient::new(egress, vec![gateway.clone()], HedgeDelay::Learnt) {
        Ok(client) => retrieve_probe(&client, clock.now(), limit).await,
        Err(error) => (IpfsGatewayProbeOutcome::Unreachable, None, Some(error.why.to_string())),
    };
    let latency_ms = u64::try_from(asked.elapsed().as_millis()).unwrap_or(u64::MAX);
    IpfsGatewayHealth { label: gateway.label.clone(), state, error, unconnected, latency_ms }
}

/// The outcome, why no connection was opened, and the error.
async fn retrieve_probe(
    client: &IpfsClient,
    now: Timestamp,
    limit: Duration,
) -> (IpfsGatewayProbeOutcome, Option<HostConnectionError>, Option<String>) {
    let cid = ContentId::parse(PROBE).expect("the probe is a CID");
    let path = UnixFsPath::parse_literal("").expect("an empty path is one");
    let want =
        IpfsRetrievalRequest { cid, path: &path, known: &[], budget: DagWalkBudget::for_cat_command(), total: limit };
    let retrieval = client.retrieve(&want, now).await;
    if retrieval.ended.is_ok() {
        return (IpfsGatewayProbeOutcome::Proven, None, None);
    }
    match retrieval.failures.into_iter().next() {
        Some((_, fault)) => {
            let unconnected = match &fault {
                IpfsGatewayFault::Fetch(error) => error.connection_error(),
                _ => None,
            };
            (probe_outcome_from_fault(&fault), unconnected, Some(fault.to_string()))
        }
        None => (IpfsGatewayProbeOutcome::Unreachable, None, Some("no answer in time".to_owned())),
    }
}

fn probe_outcome_from_fault(fault: &IpfsGatewayFault) -> IpfsGatewayProbeOutcome {
    match fault {
        IpfsGatewayFault::WrongBlock(_) => IpfsGatewayProbeOutcome::WrongBlock,
        IpfsGatewayFault::Throttled { .. } => IpfsGatewayProbeOutcome::WithoutBlock,
        // A status about content shows that the gateway was reached.
        IpfsGatewayFault::Fetch(FetchError::Unavailable(SourceUnavailableError::Status(
            404 | 410 | 500 | 502 | 504,
        ))) => IpfsGatewayProbeOutcome::WithoutBlock,
        _ => IpfsGatewayProbeOutcome::Unreachable,
    }
}

pub(super) fn advice_on_gateways(healths: &[IpfsGatewayHealth]) -> Vec<String> {
    let one = |health: &IpfsGatewayHealth| {
        let (label, error) = (&health.label, health.error.as_deref().unwrap_or_default());
        match health.state {
            IpfsGatewayProbeOutcome::Proven | IpfsGatewayProbeOutcome::WithoutBlock => None,
            IpfsGatewayProbeOutcome::WrongBlock => {
                Some(format!("{label} sends wrong blocks: take it out of the gateways"))
            }
            IpfsGatewayProbeOutcome::Unreachable => {
                Some(format!("{label} cannot be reached ({error}): correct its URL, or take it out of the gateways"))
            }
        }
    };
    healths.iter().filter_map(one).collect()
}
