//! CCIP-Read gateways (EIP-3668), reached through the guarded client for untrusted URLs. Contracts choose these URLs.

use std::time::Duration;

use alloy_primitives::Bytes;
use async_trait::async_trait;
use serde::Deserialize;
use tokio::time::Instant;
use url::Url;

use crate::ccip::{CcipReadGatewayClient, CcipReadGatewayError, CcipReadRequest, MAX_GATEWAYS};
use clresolve_egress::count::{self, RequestOutcome, UpstreamKind};
use clresolve_egress::{
    BodyBudget, Egress, EgressRequest, EgressViolation, FetchError, ForbiddenUrlError, SourceUnavailableError,
    UntrustedUrl, deadline_in,
};
use clresolve_state::MAX_LOOK_UP_BYTES;

/// Maximum length of a URL after `{sender}` and `{data}` are filled in. The call data of a batch of records has some
/// KiB, and twice that in hexadecimal. Common servers refuse longer request lines.
pub const URL_LIMIT: usize = 32 << 10;

/// Maximum memory for the long bodies of all gateways together, in bytes: four responses of maximum length. There is no
/// budget per host, since contracts choose the gateways and may list any number of hosts. The responses for an agent's
/// records are shorter than [`SHORT_BODY`](clresolve_egress::SHORT_BODY) and need no permit.
const BODY_BYTES: u32 = 4 * gateway_body_limit(MAX_LOOK_UP_BYTES) as u32;

/// A gateway client behind the egress guard: `https` only, public host names, no redirects, bounded responses.
#[derive(Clone, Debug)]
pub struct GuardedCcipReadGatewayClient {
    /// `None` if every request is refused.
    client: Option<GatewayEgress>,
    total: Duration,
}

#[derive(Clone, Debug)]
struct GatewayEgress {
    egress: Egress,
    bodies: BodyBudget,
}

impl GuardedCcipReadGatewayClient {
    /// Asks gateways through `egress`. `total` is the time limit of one request over all its gateways.
    #[must_use]
    pub fn new(egress: Egress, total: Duration) -> Self {
        Self { client: Some(GatewayEgress { egress, bodies: BodyBudget::new(BODY_BYTES) }), total }
    }

    /// Refuses every request, for networks without off-chain lookups.
    #[must_use]
    pub fn refusing_all() -> Self {
        Self { client: None, total: Duration::ZERO }
    }
}

impl GatewayEgress {
    async fn request_from_gateway(
        &self,
        template: &str,
        request: &CcipReadRequest,
        cap: usize,
        deadline: Instant,
    ) -> Result<Bytes, FetchError> {
        let sender = format!("{:#x}", request.sender);
        let data = request.data.to_string();
        let url =
            UntrustedUrl::from_built_url(expand_url_template(template, &sender, &data).map_err(forbidden_url_error)?);
        let call = if template.contains(DATA) {
            EgressRequest::get("application/json")
        } else {
            EgressRequest::post_json(serde_json::json!({ "sender": sender, "data": data }).to_string().into())
        };
        let reply = self.egress.send_untrusted(&url, call.accept_gzip(), deadline).await?;
        let status = reply.status();
        // Steps 8 to 10 of the client lookup protocol: every other status is an answer.
        if (400..600).contains(&status) {
            return Err(SourceUnavailableError::Status(status).into());
        }
        let without_bound = BodyBudget::new(u32::MAX);
        let bodies = if clresolve_core::mutant!("gateway-bodies-unbounded") { &without_bound } else { &self.bodies };
        match parse_gateway_response(&reply.read_body_within_budget(gateway_body_limit(cap), bodies).await?, cap) {
            // A redirect or an empty response is not malformed: report its status.
            Err(FetchError::Unavailable(SourceUnavailableError::Malformed)) if !(200..=203).contains(&status) => {
                Err(SourceUnavailableError::Status(status).into())
            }
            data => data,
        }
    }
}

#[async_trait]
impl CcipReadGatewayClient for GuardedCcipReadGatewayClient {
    /// Tries the gateways in order. A 4xx response ends the request; after any other failure the next gateway is tried.
    async fn request_first_response(
        &self,
        request: &CcipReadRequest,
        cap: usize,
    ) -> Result<Bytes, CcipReadGatewayError> {
        let Some(client) = &self.client else {
            return Err(CcipReadGatewayError::new(EgressViolation::Disabled.to_string()));
        };
        if request.urls.len() > MAX_GATEWAYS {
            return Err(CcipReadGatewayError::new(format!("more than {MAX_GATEWAYS} gateway URLs")));
        }
        let deadline = deadline_in(self.total);
        let mut last = CcipReadGatewayError::new("the contract names no gateway");
        for (index, template) in request.urls.iter().enumerate() {
            let left = u32::try_from(request.urls.len() - index).unwrap_or(u32::MAX);
            let share = deadline.saturating_duration_since(Instant::now()) / left;
            let answer = client.request_from_gateway(template, request, cap, deadline_in(share)).await;
            let outcome = answer.as_ref().map_or_else(Into::into, |_| RequestOutcome::Ok);
            count::count_request(UpstreamKind::Ccip, count::FOREIGN, outcome);
            match answer {
                Ok(data) => return Ok(data),
                Err(FetchError::Unavailable(SourceUnavailableError::Status(status @ 400..=499))) => {
                    return Err(CcipReadGatewayError::with_http_status(status, format!("HTTP status {status}")));
                }
                Err(FetchError::Unavailable(SourceUnavailableError::Status(status))) => {
                    last = CcipReadGatewayError::with_http_status(status, format!("HTTP status {status}"));
                }
                Err(error) => last = CcipReadGatewayError::new(error.to_string()),
            }
        }
        Err(last)
    }
}

/// Extracts the data from the body of a gateway's response (`{"data": "0x…"}`, EIP-3668). Pure.
///
/// # Errors
/// [`SourceUnavailableError::Malformed`] for a body without data, [`FetchError::Oversize`] for more than `cap` bytes of
/// data.
pub fn parse_gateway_response(body: &[u8], cap: usize) -> Result<Bytes, FetchError> {
    #[derive(Deserialize)]
    struct CcipReadResponseDocument {
        data: Bytes,
    }
    let CcipReadResponseDocument { data } =
        serde_json::from_slice(body).map_err(|_| SourceUnavailableError::Malformed)?;
    if data.len() > cap { Err(FetchError::Oversize { limit: cap }) } else { Ok(data) }
}

const SENDER: &str = "{sender}";
const DATA: &str = "{data}";

/// Allowance for the JSON around the data. The data itself has two hexadecimal digits per byte.
const JSON_SLACK: usize = 4096;

const fn gateway_body_limit(cap: usize) -> usize {
    cap.saturating_mul(2).saturating_add(JSON_SLACK)
}

/// Fills `{sender}` and `{data}` into the URL template of a request. Pure. The length is checked before the URL is
/// built.
///
/// # Errors
/// [`EgressViolation::TooLong`] above [`URL_LIMIT`], [`EgressViolation::NotUrl`] if the result is not a URL, and
/// [`EgressViolation::Disguised`] if parsers may read it differently than it appears.
pub fn expand_url_template(template: &str, sender: &str, data: &str) -> Result<Url, EgressViolation> {
    let filled = |placeholder: &str, value: &str| template.matches(placeholder).count().saturating_mul(value.len());
    let length = template.len().saturating_add(filled(SENDER, sender)).saturating_add(filled(DATA, data));
    if length > URL_LIMIT {
        return Err(EgressViolation::TooLong(URL_LIMIT));
    }
    let filled = template.replace(SENDER, sender).replace(DATA, data);
    if clresolve_core::mutant!("placeholders-are-repaired") {
        return Url::parse(&filled).map_err(|_| EgressViolation::NotUrl);
    }
    UntrustedUrl::parse(&filled, URL_LIMIT).map(UntrustedUrl::into_url)
}

fn forbidden_url_error(why: EgressViolation) -> FetchError {
    ForbiddenUrlError { hop: 0, target: "the gateway of the contract".to_owned(), why }.into()
}
