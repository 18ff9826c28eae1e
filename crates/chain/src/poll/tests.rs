//! Requests whose task ends without a result.

use std::time::Duration;

use alloy_consensus::Header;
use clresolve_core::payment::RequestedCoinTypes;
use clresolve_state::{EnsContractAddresses, HashedBlockHeader};
use jiff::Timestamp;
use url::Url;

use super::*;
use crate::endpoint::RpcEndpointSettings;
use crate::pool::ChainReaderConfig;
use crate::testing::RefusingHttpClient;
use crate::transport::JsonRpcHttpClient;

fn header(number: u64) -> (HashedBlockHeader, ChainBlock) {
    let header = HashedBlockHeader::new(Header { number, ..Header::default() });
    let block = ChainBlock { number, hash: header.hash(), timestamp: Timestamp::UNIX_EPOCH };
    (header, block)
}

type Observed = Result<EndpointPinnedAndLatestVotes<HashedBlockHeader>, EndpointFailure>;

/// A query whose observations are scripted. No endpoint attests.
struct Scripted(fn(&str) -> Observed);

#[async_trait]
impl QuorumQuery for Scripted {
    type Vote = HashedBlockHeader;

    async fn fetch_pinned_and_latest_votes(
        &self,
        endpoint: &Arc<RpcEndpoint>,
        _: BlockSelector,
        _: ChainIdentity,
    ) -> Observed {
        (self.0)(&endpoint.label)
    }

    async fn fetch_vote_at_block(
        &self,
        _: &RpcEndpoint,
        _: &ChainBlock,
    ) -> Result<VoteOrConflictingBlock<HashedBlockHeader>, EndpointFailure> {
        panic!("a bug")
    }
}

/// Panics for the endpoint `first`.
fn buggy(label: &str) -> Observed {
    assert_ne!(label, "first", "a bug");
    let (pinned, block) = header(if label == "ahead" { 101 } else { 100 });
    Ok(EndpointPinnedAndLatestVotes { block, pinned, latest: None, genesis: None })
}

/// Fails with the cause with which the label begins.
fn unreached(label: &str) -> Observed {
    Err(match label.split('.').next() {
        Some("name") => EndpointFailure::Unconnected(HostConnectionError::Name),
        Some("host") => EndpointFailure::Unconnected(HostConnectionError::Host),
        _ => EndpointFailure::Unusable("HTTP status 503".to_owned()),
    })
}

#[tokio::test]
async fn where_no_host_on_the_internet_is_reached_there_is_no_network() {
    let error = async |labels: [&str; 2]| {
        let pool = pool(labels, ProofGradeDemand::Quorum(2));
        poll_quorum(&pool, Arc::new(Scripted(unreached)), BlockSelector::Finalized).await.err().unwrap()
    };
    let (name, host) =
        (ChainError::NoNetwork(HostConnectionError::Name), ChainError::NoNetwork(HostConnectionError::Host));
    assert_eq!(error(["name.a", "name.b"]).await, name);
    assert_eq!(error(["name.a", "host.b"]).await, host);
    for labels in [["name.a", "down.b"], ["name.a", "name"], ["host", "name"]] {
        assert!(matches!(error(labels).await, ChainError::Unreachable(_)), "{labels:?}");
    }
}

fn pool(labels: [&str; 2], demand: ProofGradeDemand) -> EndpointPool {
    let endpoint = |label: &str| {
        let url = Url::parse(&format!("http://{label}/")).unwrap();
        RpcEndpointSettings { label: label.to_owned(), url, own: false, operator: label.to_owned() }
    };
    let config = ChainReaderConfig {
        chain_id: 1,
        genesis: None,
        contracts: EnsContractAddresses::default(),
        endpoints: labels.map(endpoint).to_vec(),
        demand,
        timeout: Duration::from_secs(60),
        hedge_after: Duration::from_secs(60),
        lookup_timeout: None,
        coins: RequestedCoinTypes::default(),
        max_head_age: None,
    };
    let http: Arc<dyn JsonRpcHttpClient> = Arc::new(RefusingHttpClient);
    EndpointPool::new(config, &http)
}

fn is_a_bug_of(failed: &[(String, String)], label: &str) {
    let [(named, cause)] = failed else { panic!("{failed:?}") };
    assert_eq!(named, label);
    assert!(cause.starts_with("the request ended without a result: ") && cause.contains("a bug"), "{cause}");
}

#[tokio::test]
async fn an_endpoint_whose_request_is_broken_off_is_named() {
    let pool = pool(["first", "second"], ProofGradeDemand::SingleRpc);
    let consensus = poll_quorum(&pool, Arc::new(Scripted(buggy)), BlockSelector::Finalized).await.unwrap();
    assert_eq!(consensus.member_labels(), ["second"]);
    is_a_bug_of(&consensus.failed, "first");
}

#[tokio::test]
async fn an_endpoint_whose_second_request_is_broken_off_is_named() {
    let pool = pool(["behind", "ahead"], ProofGradeDemand::Quorum(2));
    let error = poll_quorum(&pool, Arc::new(Scripted(buggy)), BlockSelector::Finalized).await.err().unwrap();
    let ChainError::TooFew { failed, .. } = &error else { panic!("{error:?}") };
    is_a_bug_of(failed, "ahead");
}
