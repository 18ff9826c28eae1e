//! Builds the readers of proven state, whose header comes from the quorum or from a light client.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use clresolve_chain::transport::HttpRequestError;
use clresolve_chain::{
    BEACON_ACCEPT, BeaconEndpointSettings, BeaconHttpClient, BeaconResponse, ChainSpec, ConsensusHeaderSource,
    LightClient, LightClientConfig, ProvenEnsReader, ProvenHeadReader, TimeSource,
};
use clresolve_egress::header::{CONTENT_TYPE, HeaderName};
use clresolve_egress::{EgressRequest, deadline_in};
use url::Url;

use super::ChainReaders;
use crate::config::{BeaconNetwork, Config, LightClientSettings};
use crate::fetch::Egress;
use crate::fetch::ccip::GuardedCcipReadGatewayClient;
use crate::resolve::setup_error::SetupError;
use crate::resolve::upstream::{ChainRpcUpstream, http_request_error};

/// The share of the time limit that one request to a beacon endpoint may use. A synchronization continues when the
/// question that began it has ended.
const BEACON_SHARE: f64 = 0.5;

/// Maximum length of the body that explains a refusal.
const MAX_REFUSAL_BYTES: usize = 4096;

/// The header in which a beacon endpoint names the fork of SSZ.
const CONSENSUS_VERSION: HeaderName = HeaderName::from_static("eth-consensus-version");

pub(in crate::resolve) fn proven_chain_readers(
    upstream: &ChainRpcUpstream,
    config: &Config,
    gateway: Arc<GuardedCcipReadGatewayClient>,
    clock: &TimeSource,
    before: Option<&LightClient>,
) -> Result<ChainReaders, SetupError> {
    let ChainRpcUpstream { settings, http, egress } = upstream;
    let chain = ProvenEnsReader::new(settings.clone(), http, gateway).with_clock(Arc::clone(clock));
    let light_client = config.light_client_settings().map_err(|error| SetupError::invalid("beacon", error))?;
    let Some(light_client) = light_client else {
        let heads = upstream.head_reader(Arc::clone(clock));
        return Ok(ChainReaders { chain: Arc::new(chain), heads, light_client: None });
    };
    let light_client = light_client_config(light_client, config, upstream);
    let light_client = LightClient::new(light_client, beacon_client(egress), Arc::clone(clock));
    if let Some(before) = before {
        light_client.adopt_progress(before);
    }
    let light_client = Arc::new(light_client);
    let headers = ConsensusHeaderSource::new(Arc::clone(&light_client), settings.clone(), http);
    let headers = Arc::new(headers.with_clock(Arc::clone(clock)));
    let chain = chain.with_headers(Arc::clone(&headers) as _);
    let heads = Arc::new(ProvenHeadReader::new(chain.clone(), headers));
    Ok(ChainReaders { chain: Arc::new(chain), heads, light_client: Some(light_client) })
}

/// The settings of a light client.
pub(in crate::resolve) fn light_client_config(
    settings: LightClientSettings,
    config: &Config,
    upstream: &ChainRpcUpstream,
) -> LightClientConfig {
    let LightClientSettings { network, checkpoint, endpoints, file } = settings;
    let endpoints =
        endpoints.into_iter().map(|endpoint| BeaconEndpointSettings { label: endpoint.label, url: endpoint.url });
    LightClientConfig {
        spec: match network {
            BeaconNetwork::Mainnet => ChainSpec::mainnet(),
            BeaconNetwork::Sandbox => ChainSpec::sandbox(),
        },
        checkpoint,
        endpoints: endpoints.collect(),
        file,
        timeout: config.timeout.mul_f64(BEACON_SHARE),
        hedge_after: upstream.settings.hedge_after,
    }
}

/// The HTTP client for beacon endpoints.
pub(in crate::resolve) fn beacon_client(egress: &Egress) -> Arc<dyn BeaconHttpClient> {
    Arc::new(BeaconEgressClient(egress.clone()))
}

/// Sends the light client's requests through the operator's egress client.
struct BeaconEgressClient(Egress);

#[async_trait]
impl BeaconHttpClient for BeaconEgressClient {
    async fn get(&self, url: &Url, cap: usize, timeout: Duration) -> Result<BeaconResponse, HttpRequestError> {
        let client =
            self.0.single_origin_client(url).map_err(|refusal| HttpRequestError::Connection(refusal.to_string()))?;
        let failed = |error| http_request_error(error, timeout);
        let reply = client
            .send(url, EgressRequest::get(BEACON_ACCEPT).accept_gzip(), deadline_in(timeout))
            .await
            .map_err(failed)?;
        let status = reply.status();
        if !matches!(status, 200..=299) {
            let body = reply.read_beginning(MAX_REFUSAL_BYTES).await.unwrap_or_default();
            return Err(HttpRequestError::Status(status, body.into()));
        }
        let content_type = reply.header(CONTENT_TYPE).map(str::to_owned);
        let version = reply.header(CONSENSUS_VERSION).map(str::to_owned);
        let body = reply.read_body(cap).await.map_err(failed)?;
        Ok(BeaconResponse { content_type, version, body })
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::fetch::EgressConfig;

    /// The result of a request to a server with this response, and the head of the request.
    async fn got(answer: &str) -> (Result<BeaconResponse, HttpRequestError>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/eth", listener.local_addr().unwrap()).parse().unwrap();
        let client = BeaconEgressClient(Egress::new(EgressConfig::default()).unwrap());
        let served = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = vec![0; 4096];
            let length = stream.read(&mut head).await.unwrap();
            stream.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8_lossy(&head[..length]).to_ascii_lowercase()
        };
        tokio::join!(client.get(&url, 4, Duration::from_secs(60)), served)
    }

    #[tokio::test]
    async fn response_has_media_type_and_fork() {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\neth-consensus-version: fulu\r\n";
        let (response, request) = got(&format!("{head}content-length: 4\r\n\r\nfour")).await;
        let (media_type, version) = ("application/octet-stream".to_owned(), "fulu".to_owned());
        let body = "four".into();
        assert_eq!(response, Ok(BeaconResponse { content_type: Some(media_type), version: Some(version), body }));
        assert!(request.starts_with("get /eth ") && request.contains(&format!("accept: {BEACON_ACCEPT}")), "{request}");
    }

    #[tokio::test]
    async fn long_body_and_refusal_are_no_response() {
        let (long, _) = got("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nfive!").await;
        assert_eq!(long, Err(HttpRequestError::TooLarge(4)));
        let (missing, _) = got("HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\nnone").await;
        assert_eq!(missing, Err(HttpRequestError::Status(404, "none".into())));
        let (moved, _) = got("HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1/\r\ncontent-length: 0\r\n\r\n").await;
        assert!(matches!(moved, Err(HttpRequestError::Status(302, _))), "{moved:?}");
    }
}
