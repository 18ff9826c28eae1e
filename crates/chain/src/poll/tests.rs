//! Requests whose task ends without a result.

use std::time::Duration;

use alloy_consensus::Header;
use clresolve_core::payment::Coins;
use clresolve_state::{Contracts, HashedHeader};
use jiff::Timestamp;
use url::Url;

use super::*;
use crate::endpoint::Endpoint;
use crate::pool::ChainConfig;
use crate::testing::NoDoor;
use crate::transport::HttpPost;

/// A query that panics when the endpoint `first` is observed or when `ahead` attests.
struct Buggy;

fn header(number: u64) -> (HashedHeader, Block) {
    let header = HashedHeader::new(Header { number, ..Header::default() });
    let block = Block { number, hash: header.hash(), timestamp: Timestamp::UNIX_EPOCH };
    (header, block)
}

#[async_trait]
impl Votable for Buggy {
    type Vote = HashedHeader;

    async fn observe(
        &self,
        endpoint: &Arc<RpcEndpoint>,
        _: BlockSelector,
        _: ChainIdentity,
    ) -> Result<Observation<HashedHeader>, Failure> {
        assert_ne!(endpoint.label, "first", "a bug");
        let (pinned, block) = header(if endpoint.label == "ahead" { 101 } else { 100 });
        Ok(Observation { block, pinned, latest: None, genesis: None })
    }

    async fn attest(&self, _: &RpcEndpoint, _: &Block) -> Result<Attestation<HashedHeader>, Failure> {
        panic!("a bug")
    }
}

/// A query whose endpoints are not reached: for the reason in the label.
struct Unreached;

#[async_trait]
impl Votable for Unreached {
    type Vote = HashedHeader;

    async fn observe(
        &self,
        endpoint: &Arc<RpcEndpoint>,
        _: BlockSelector,
        _: ChainIdentity,
    ) -> Result<Observation<HashedHeader>, Failure> {
        Err(match endpoint.label.split('.').next() {
            Some("name") => Failure::Unconnected(Unconnected::Name),
            Some("host") => Failure::Unconnected(Unconnected::Host),
            _ => Failure::Unusable("HTTP status 503".to_owned()),
        })
    }

    async fn attest(&self, _: &RpcEndpoint, _: &Block) -> Result<Attestation<HashedHeader>, Failure> {
        unreachable!("no endpoint was observed")
    }
}

#[tokio::test]
async fn where_no_host_on_the_internet_is_reached_there_is_no_network() {
    let error = async |labels: [&str; 2]| {
        let mut pool = pool(labels, GradeDemand::Quorum(2));
        for endpoint in &mut pool.endpoints {
            let endpoint = Arc::get_mut(endpoint).unwrap();
            endpoint.is_public = endpoint.label.contains('.');
        }
        poll(&pool, Arc::new(Unreached), BlockSelector::Finalized).await.err().unwrap()
    };
    let (name, host) = (ChainError::NoNetwork(Unconnected::Name), ChainError::NoNetwork(Unconnected::Host));
    assert_eq!(error(["name.a", "name.b"]).await, name);
    assert_eq!(error(["name.a", "host.b"]).await, host);
    for labels in [["name.a", "down.b"], ["name.a", "name"], ["host", "name"]] {
        assert!(matches!(error(labels).await, ChainError::Unreachable(_)), "{labels:?}");
    }
}

fn pool(labels: [&str; 2], demand: GradeDemand) -> EndpointPool {
    let endpoint = |label: &str| {
        let url = Url::parse("http://endpoint/").unwrap();
        Endpoint { label: label.to_owned(), url, own: false, operator: label.to_owned(), ws: None }
    };
    let config = ChainConfig {
        chain_id: 1,
        genesis: None,
        contracts: Contracts::default(),
        endpoints: labels.map(endpoint).to_vec(),
        demand,
        timeout: Duration::from_secs(60),
        hedge_after: Duration::from_secs(60),
        ccip: false,
        coins: Coins::default(),
        max_head_age: None,
    };
    let http: Arc<dyn HttpPost> = Arc::new(NoDoor);
    EndpointPool::new(config, &http)
}

fn is_a_bug_of(failed: &[(String, String)], label: &str) {
    let [(named, cause)] = failed else { panic!("{failed:?}") };
    assert_eq!(named, label);
    assert!(cause.starts_with("the request was broken off: ") && cause.contains("a bug"), "{cause}");
}

#[tokio::test]
async fn an_endpoint_whose_request_is_broken_off_is_named() {
    let pool = pool(["first", "second"], GradeDemand::SingleRpc);
    let consensus = poll(&pool, Arc::new(Buggy), BlockSelector::Finalized).await.unwrap();
    assert_eq!(consensus.labels(), ["second"]);
    is_a_bug_of(&consensus.failed, "first");
}

#[tokio::test]
async fn an_endpoint_whose_second_request_is_broken_off_is_named() {
    let pool = pool(["behind", "ahead"], GradeDemand::Quorum(2));
    let error = poll(&pool, Arc::new(Buggy), BlockSelector::Finalized).await.err().unwrap();
    let ChainError::TooFew { failed, .. } = &error else { panic!("{error:?}") };
    is_a_bug_of(failed, "ahead");
}
