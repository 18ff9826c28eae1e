//! [`IpfsGatewayClient`]: a gateway, the egress client for it, and the URLs to request.

use std::time::Duration;

use clresolve_egress::header;
use clresolve_ipfs::ContentId;
use url::Url;

use super::gateway::{DEFAULT_REST, IpfsGateway, IpfsGatewayFault, IpfsGatewayUrlError, MAX_REST, MIN_REST};
use super::retrieval::IpfsRetrievalRequest;
use crate::fetch::EgressViolation;
use crate::fetch::SingleOriginClient;
use crate::fetch::egress::{BodyBudget, Egress, EgressRequest, EgressResponse, RequestSendTime, UntrustedUrl};
use crate::telemetry::{self, RequestOutcome as Counted, UpstreamKind};

/// A gateway and the egress client for it.
#[derive(Debug)]
pub(super) struct IpfsGatewayClient {
    pub(super) label: String,
    base: Url,
    egress: IpfsGatewayEgress,
    /// A budget for large blocks and large CAR sections.
    pub(super) bodies: BodyBudget,
}

/// Number of bytes of large blocks that are read concurrently from one gateway: one block of the maximum size, or eight
/// of the usual 256 KiB.
const BODY_BYTES: u32 = 2 << 20;

#[derive(Debug)]
enum IpfsGatewayEgress {
    Foreign(Egress),
    Operator(SingleOriginClient),
}

impl IpfsGatewayClient {
    pub(super) fn new(egress: &Egress, gateway: IpfsGateway) -> Result<Self, IpfsGatewayUrlError> {
        let egress = if gateway.is_own() {
            egress.single_origin_client(&gateway.url).map(IpfsGatewayEgress::Operator)
        } else if gateway.url.scheme() == "https" {
            Ok(IpfsGatewayEgress::Foreign(egress.clone()))
        } else {
            Err(EgressViolation::Scheme)
        };
        match egress {
            Ok(egress) => {
                Ok(Self { label: gateway.label, base: gateway.url, egress, bodies: BodyBudget::new(BODY_BYTES) })
            }
            Err(why) => Err(IpfsGatewayUrlError { label: gateway.label, why }),
        }
    }

    pub(super) fn car_url(&self, want: &IpfsRetrievalRequest<'_>) -> Url {
        let path = if want.path.is_empty() { String::new() } else { format!("/{}", want.path) };
        self.gateway_url(&format!("ipfs/{}{path}", want.cid), &[("format", "car"), ("dag-scope", "entity")])
    }

    pub(super) fn block_url(&self, cid: &ContentId) -> Url {
        self.gateway_url(&format!("ipfs/{cid}"), &[("format", "raw")])
    }

    fn gateway_url(&self, below: &str, query: &[(&str, &str)]) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{}/{below}", self.base.path().trim_end_matches('/')));
        url.query_pairs_mut().extend_pairs(query);
        url
    }

    /// Sends a request and handles what is common to every kind of response. `departure` records when it is sent.
    pub(super) async fn send(
        &self,
        url: &Url,
        accept: &'static str,
        departure: RequestSendTime,
        deadline: tokio::time::Instant,
    ) -> Result<EgressResponse, IpfsGatewayFault> {
        let call = EgressRequest::get(accept).with_pacing(departure);
        let reply = match &self.egress {
            IpfsGatewayEgress::Foreign(egress) => {
                egress.send_untrusted(&UntrustedUrl::from_built_url(url.clone()), call, deadline).await
            }
            IpfsGatewayEgress::Operator(client) => client.send(url, call, deadline).await,
        };
        let outcome = reply.as_ref().map_or_else(Into::into, |reply| Counted::from_status(reply.status()));
        telemetry::count_request(UpstreamKind::Gateway, &self.label, outcome);
        let reply = reply?;
        match reply.status() {
            status @ (429 | 503) => {
                let most = if clresolve_core::mutant!("rests-without-end") { Duration::MAX } else { MAX_REST };
                let rest = reply.retry_after().unwrap_or(DEFAULT_REST).clamp(MIN_REST, most);
                Err(IpfsGatewayFault::Throttled { status, rest })
            }
            _ => Ok(reply),
        }
    }
}

/// The media type in the response's `Content-Type`, without parameters.
pub(super) fn response_media_type(reply: &EgressResponse) -> Option<&str> {
    reply.header(header::CONTENT_TYPE)?.split(';').next().map(str::trim)
}
