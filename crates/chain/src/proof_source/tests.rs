//! The recording of endpoint failures.

use std::collections::BTreeSet;
use std::time::Duration;

use alloy_primitives::{Address, B256};
use bytes::Bytes;
use futures_util::poll;
use jiff::Timestamp;
use url::Url;

use super::*;
use crate::endpoint::RpcEndpointSettings;
use crate::transport::{HttpRequestError, JsonRpcHttpClient};

/// Refuses requests to the host `down`, returns oversized replies from `flood`, and never answers for other hosts.
struct FailingTransport;

#[async_trait]
impl JsonRpcHttpClient for FailingTransport {
    async fn post_json(&self, url: &Url, _: Bytes, cap: usize, _: Duration) -> Result<Bytes, HttpRequestError> {
        match url.host_str() {
            Some("down") => Err(HttpRequestError::Connection("refused".to_owned())),
            Some("flood") => Err(HttpRequestError::TooLarge(cap)),
            _ => std::future::pending().await,
        }
    }
}

fn endpoint(host: &str) -> Arc<RpcEndpoint> {
    let url = Url::parse(&format!("http://{host}/")).unwrap();
    let endpoint = RpcEndpointSettings { label: host.to_owned(), url, own: false, operator: host.to_owned() };
    Arc::new(RpcEndpoint::new(endpoint, Arc::new(FailingTransport), Duration::from_secs(60)))
}

/// The caller's time runs out before any endpoint has answered. The failures up to then are still recorded.
#[tokio::test]
async fn a_failure_is_noted_when_it_happens() {
    let endpoints = ["down", "flood", "silent"].map(endpoint);
    let now = Timestamp::UNIX_EPOCH;
    let source = FailoverStateSource::new(endpoints.to_vec(), Duration::from_secs(60), Arc::new(move || now));
    let wanted = WantedState { accounts: [(Address::ZERO, BTreeSet::new())].into(), codes: BTreeSet::new() };

    let mut fetched = source.fetch_state(&wanted, BlockId::hash(B256::ZERO));
    // The client yields between its steps.
    for _ in 0..32 {
        assert!(poll!(&mut fetched).is_pending(), "the last one never answers");
    }
    drop(fetched);

    let failures = source.failures();
    let expected = [
        ("down", "it gave no proof: refused"),
        ("flood", "it gave no proof: the answer of flood has more than 1048576 bytes"),
    ];
    assert_eq!(failures, expected.map(|(label, cause)| (label.to_owned(), cause.to_owned())));
    assert_eq!(endpoints.map(|endpoint| endpoint.has_failed_recently(now)), [true, true, false]);
}
