//! One RPC endpoint: its configuration, connection and health.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use alloy_primitives::U64;
use alloy_rpc_client::RpcClient;
use alloy_rpc_types_eth::Header;
use alloy_transport::TransportError;
use clresolve_core::reading::{BlockSelector, ChainBlock};
use clresolve_core::text::excerpt_text;
use clresolve_state::HashedBlockHeader;
use jiff::Timestamp;
use metrics::counter;
use url::{Host, Url};

use crate::failure::EndpointFailure;
use crate::head_age;
use crate::header;
use crate::keys::redact_url_keys;
use crate::request::block_tag;
use crate::transport::{EndpointTransport, JsonRpcHttpClient};

/// How long an endpoint is asked last after a failure, in milliseconds.
const REST_MS: i64 = 30_000;

/// Metric name: answers about another chain or another block than the requested one, counted per endpoint and reason
/// (`wrong-chain` or `other-block`).
pub const ANSWERS_REFUSED: &str = "clresolve_rpc_answers_refused_total";

/// The configuration of an RPC endpoint.
#[derive(Clone, PartialEq, Eq)]
pub struct RpcEndpointSettings {
    /// The name of the endpoint in verdicts and logs.
    pub label: String,
    /// The endpoint's URL. It may contain an API key and is never printed.
    pub url: Url,
    /// Whether the operator of clresolve runs this endpoint.
    pub own: bool,
    /// Who runs it. Endpoints of the same operator count once in a quorum.
    pub operator: String,
}

impl RpcEndpointSettings {
    /// Removes parts of the URL, which may be API keys, from text sent by the endpoint, and shortens the text.
    pub fn redact_keys(&self, text: &str) -> String {
        excerpt_text(&redact_url_keys(&self.url, text))
    }

    /// Whether the host looks like a public DNS name. Such an endpoint never serves a test chain that reuses the id of
    /// a real chain.
    fn is_public(&self) -> bool {
        has_public_host_name(&self.url)
    }
}

impl fmt::Debug for RpcEndpointSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RpcEndpointSettings")
            .field("label", &self.label)
            .field("own", &self.own)
            .field("operator", &self.operator)
            .finish_non_exhaustive()
    }
}

pub(crate) struct RpcEndpoint {
    pub(crate) label: String,
    pub(crate) own: bool,
    pub(crate) operator: String,
    pub(crate) transport: EndpointTransport,
    pub(crate) rpc: RpcClient,
    pub(crate) is_public: bool,
    url: Url,
    /// Set once the endpoint has been shown to serve the right chain.
    is_identified: AtomicBool,
    /// Set if block 0 was requested and not returned.
    owes_genesis: AtomicBool,
    /// Time of the last failure, in milliseconds since 1970; [`i64::MIN`] if there was none.
    failed_at: AtomicI64,
}

impl RpcEndpoint {
    pub(crate) fn new(endpoint: RpcEndpointSettings, http: Arc<dyn JsonRpcHttpClient>, timeout: Duration) -> Self {
        let transport = EndpointTransport::new(http, endpoint.url.clone(), endpoint.label.clone(), timeout);
        Self {
            is_public: endpoint.is_public(),
            label: endpoint.label,
            own: endpoint.own,
            operator: endpoint.operator,
            rpc: RpcClient::new(transport.clone(), false),
            transport,
            url: endpoint.url,
            is_identified: AtomicBool::new(false),
            owes_genesis: AtomicBool::new(false),
            failed_at: AtomicI64::new(i64::MIN),
        }
    }

    pub(crate) fn is_chain_identified(&self) -> bool {
        self.is_identified.load(Ordering::Relaxed)
    }

    /// Checks the chain id of the endpoint, once.
    pub(crate) async fn check_chain_id(&self, chain_id: u64) -> Result<(), EndpointFailure> {
        if self.is_chain_identified() {
            return Ok(());
        }
        let id = self.rpc.request::<_, U64>("eth_chainId", ()).await;
        let id = id.map_err(|error| self.failure_from_transport_error(&error))?.to::<u64>();
        if id != chain_id {
            return Err(EndpointFailure::WrongChain(id));
        }
        self.note_chain_identified();
        Ok(())
    }

    /// The header that the endpoint returns for `selector`, and its block.
    pub(crate) async fn fetch_header(
        &self,
        selector: BlockSelector,
    ) -> Result<(HashedBlockHeader, ChainBlock), EndpointFailure> {
        let header = self.rpc.request::<_, Option<Header>>("eth_getBlockByNumber", (block_tag(selector), false)).await;
        Ok(header::check_requested_header(
            header.map_err(|error| self.failure_from_block_tag_error(&error))?,
            selector,
        )?)
    }

    /// Registers that the endpoint serves the right chain, unless its block 0 is still to be compared.
    pub(crate) fn note_chain_identified(&self) {
        self.is_identified.store(!self.owes_genesis.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Registers whether block 0 is still owed. If so, it is requested again in the next exchange.
    pub(crate) fn set_genesis_pending(&self, owes: bool) {
        self.owes_genesis.store(owes, Ordering::Relaxed);
    }

    pub(crate) fn mark_failed(&self, now: Timestamp) {
        self.failed_at.store(now.as_millisecond(), Ordering::Relaxed);
    }

    pub(crate) fn record_response_outcome<T>(&self, response: &Result<T, EndpointFailure>, now: Timestamp) {
        if let Some(why) = response.as_ref().err().and_then(EndpointFailure::refusal_metric_label) {
            counter!(ANSWERS_REFUSED, "endpoint" => self.label.clone(), "why" => why).increment(1);
        }
        match response {
            Ok(_) => self.failed_at.store(i64::MIN, Ordering::Relaxed),
            Err(failure) if failure.may_be_endpoint_fault() => self.mark_failed(now),
            Err(_) => {}
        }
    }

    /// If `failure` refuses the newest block because of its age, counts it and marks the endpoint as failed.
    pub(crate) fn note_refused_head(&self, failure: &EndpointFailure, now: Timestamp) {
        if head_age::count_refused_head(&self.label, failure) {
            self.mark_failed(now);
        }
    }

    pub(crate) fn has_failed_recently(&self, now: Timestamp) -> bool {
        let failed_at = self.failed_at.load(Ordering::Relaxed);
        let since = now.as_millisecond().saturating_sub(failed_at);
        (0..REST_MS).contains(&since) && !clresolve_core::mutant!("failed-endpoints-never-rest")
    }

    pub(crate) fn failure_from_transport_error(&self, error: &TransportError) -> EndpointFailure {
        EndpointFailure::from_transport_error(error, |text| self.redact_keys(text))
    }

    pub(crate) fn failure_from_block_tag_error(&self, error: &TransportError) -> EndpointFailure {
        EndpointFailure::from_block_tag_error(error, |text| self.redact_keys(text))
    }

    /// Removes keys from text sent by the endpoint, and shortens it.
    pub(crate) fn redact_keys(&self, text: &str) -> String {
        excerpt_text(&redact_url_keys(&self.url, text))
    }
}

/// Whether the host of a URL looks like a public DNS name.
pub fn has_public_host_name(url: &Url) -> bool {
    matches!(url.host(), Some(Host::Domain(name)) if name.trim_end_matches('.').contains('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::RefusingHttpClient;

    #[test]
    fn no_part_of_a_url_gets_out_that_may_be_a_key() {
        let url = "https://user-key-1:pass-key-2@host-key-3.rpc.example/v2/path-key-4?k=query-key-5".parse().unwrap();
        let endpoint =
            RpcEndpointSettings { label: "rpc-1".to_owned(), url, own: false, operator: "rpc.example".to_owned() };
        assert!(!format!("{endpoint:?}").contains("key"));
        let endpoint = RpcEndpoint::new(endpoint, Arc::new(RefusingHttpClient), Duration::ZERO);
        let said = "not valid for host-key-3.rpc.example: path-key-4, query-key-5, user-key-1, pass-key-2 in v2";
        let shown = "not valid for [key].rpc.example: [key], [key], [key], [key] in v2";
        assert_eq!(endpoint.redact_keys(said), shown);
    }
}
