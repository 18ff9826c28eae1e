//! CCIP-Read gateways (ERC-3668) through the foreign door. Their URLs are chosen by contracts.

use std::time::Duration;

use alloy_primitives::Bytes;
use alloy_provider::{CcipReadGateway, CcipReadGatewayError, CcipReadRequest};
use async_trait::async_trait;
use serde::Deserialize;
use tokio::time::Instant;
use url::Url;

use clresolve_egress::count::{self, RequestOutcome, Upstream};
use clresolve_egress::{Call, Cause, Egress, EgressViolation, FetchError, Forbidden, ForeignUrl, deadline_in};

/// Most gateway URLs of one request that are tried. Contracts name one to three.
pub const MAX_GATEWAYS: usize = 8;

/// Longest URL after `{sender}` and `{data}` are filled in. The call data of a batch of records has some KiB, in hex
/// twice that; common servers refuse longer request lines.
pub const URL_LIMIT: usize = 32 << 10;

/// Time limit of one request over all its gateways, where the caller has no other.
pub const CCIP_TIMEOUT: Duration = Duration::from_secs(10);

/// Gateways behind the guard: `https`, public names, no redirects, capped answers.
#[derive(Clone, Debug)]
pub struct GuardedGateway {
    mode: Mode,
    total: Duration,
}

#[derive(Clone, Debug)]
enum Mode {
    On(Egress),
    Off,
}

impl GuardedGateway {
    /// Asks gateways through `egress`, at most `total` for one request over all its gateways.
    #[must_use]
    pub fn new(egress: Egress, total: Duration) -> Self {
        Self { mode: Mode::On(egress), total }
    }

    /// Refuses every request: for worlds in which no off-chain answer is wanted.
    #[must_use]
    pub fn refusing() -> Self {
        Self { mode: Mode::Off, total: Duration::ZERO }
    }

    async fn attempt(
        &self,
        egress: &Egress,
        template: &str,
        request: &CcipReadRequest,
        cap: usize,
        deadline: Instant,
    ) -> Result<Bytes, FetchError> {
        let sender = format!("{:#x}", request.sender);
        let data = request.data.to_string();
        let url = ForeignUrl::made(expand(template, &sender, &data).map_err(forbidden)?);
        let call = if template.contains(DATA) {
            Call::get("application/json")
        } else {
            Call::post_json(serde_json::json!({ "sender": sender, "data": data }).to_string().into())
        };
        let reply = egress.foreign(&url, call.gzip(), deadline).await?;
        if reply.status() != 200 {
            return Err(Cause::Status(reply.status()).into());
        }
        let body = reply.bytes(body_limit(cap)).await?;
        answered(&body, cap)
    }
}

#[async_trait]
impl CcipReadGateway for GuardedGateway {
    /// Tries the gateways in order: a 4xx answer ends the request, everything else leads to the next one.
    async fn request(&self, request: &CcipReadRequest, cap: usize) -> Result<Bytes, CcipReadGatewayError> {
        let Mode::On(egress) = &self.mode else {
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
            let answer = self.attempt(egress, template, request, cap, deadline_in(share)).await;
            let outcome = answer.as_ref().map_or_else(FetchError::outcome, |_| RequestOutcome::Ok);
            count::upstream(Upstream::Ccip, count::FOREIGN, outcome);
            match answer {
                Ok(data) => return Ok(data),
                Err(FetchError::Unavailable(Cause::Status(status @ 400..=499))) => {
                    return Err(CcipReadGatewayError::http(status, format!("HTTP status {status}")));
                }
                Err(FetchError::Unavailable(Cause::Status(status))) => {
                    last = CcipReadGatewayError::http(status, format!("HTTP status {status}"));
                }
                Err(error) => last = CcipReadGatewayError::new(error.to_string()),
            }
        }
        Err(last)
    }
}

/// The data in the body of a gateway's answer (`{"data": "0x…"}`, ERC-3668). Pure.
///
/// # Errors
/// [`Cause::Malformed`] for a body that holds none, [`FetchError::Oversize`] for more than `cap` bytes of it.
pub fn answered(body: &[u8], cap: usize) -> Result<Bytes, FetchError> {
    #[derive(Deserialize)]
    struct Answer {
        data: Bytes,
    }
    let Answer { data } = serde_json::from_slice(body).map_err(|_| Cause::Malformed)?;
    if data.len() > cap { Err(FetchError::Oversize { limit: cap }) } else { Ok(data) }
}

const SENDER: &str = "{sender}";
const DATA: &str = "{data}";

/// Room for the JSON around the data, beside two hexadecimal digits a byte.
const JSON_SLACK: usize = 4096;

fn body_limit(cap: usize) -> usize {
    cap.saturating_mul(2).saturating_add(JSON_SLACK)
}

/// The URL of a request: `{sender}` and `{data}` of the template filled in. Pure; the length is known before anything is
/// built.
///
/// # Errors
/// [`EgressViolation::TooLong`] above [`URL_LIMIT`], [`EgressViolation::NotUrl`] for what is no URL then, [`EgressViolation::Disguised`] for one
/// that does not mean what it shows.
pub fn expand(template: &str, sender: &str, data: &str) -> Result<Url, EgressViolation> {
    let filled = |placeholder: &str, value: &str| template.matches(placeholder).count().saturating_mul(value.len());
    let length = template.len().saturating_add(filled(SENDER, sender)).saturating_add(filled(DATA, data));
    if length > URL_LIMIT {
        return Err(EgressViolation::TooLong(URL_LIMIT));
    }
    ForeignUrl::parse(&template.replace(SENDER, sender).replace(DATA, data), URL_LIMIT).map(ForeignUrl::into_url)
}

fn forbidden(why: EgressViolation) -> FetchError {
    Forbidden { hop: 0, target: "the gateway of the contract".to_owned(), why }.into()
}
