//! The CCIP-Read gateway (EIP-3668).

use alloy_primitives::{Address, hex};
use bytes::Bytes;
use hyper::{Request, StatusCode};

use crate::chain::SandboxChain;
use crate::web::{self, HostReaction};

/// The gateway's host.
pub(crate) const CCIP_HOST: &str = "ccip.sandbox.example";

/// Answers `/BEHAVIOUR/SENDER/DATA`, or a POST to `/BEHAVIOUR` with both in its body (EIP-3668).
pub(crate) fn answer_ccip_request(chain: &SandboxChain, request: &Request<()>, body: &Bytes) -> HostReaction {
    let path = request.uri().path().trim_start_matches('/').trim_end_matches(".json");
    let mut parts = path.splitn(3, '/');
    let behaviour = parts.next().unwrap_or_default();
    let posted: CcipReadPostBody = serde_json::from_slice(body).unwrap_or_default();
    let sender = parts.next().unwrap_or(&posted.sender);
    let data = parts.next().unwrap_or(&posted.data);
    match behaviour {
        "down" => return web::html_reaction(StatusCode::SERVICE_UNAVAILABLE),
        "html" => return web::html_reaction(StatusCode::OK),
        "garbage" => return web::json_reaction(Bytes::from_static(b"{\"data\": \"0xdeadbeef\"}")),
        "not-hex" => return web::json_reaction(Bytes::from_static(b"{\"data\": \"words\"}")),
        "endless" => return web::endless_reaction("application/json"),
        "redirect" => return web::redirect_reaction(&format!("https://{CCIP_HOST}/ok/{sender}/{data}")),
        "drop" => return HostReaction::Drop,
        "stall" => return HostReaction::Stall,
        _ => {}
    }
    let (Ok(sender), Ok(data)) = (sender.parse::<Address>(), hex::decode(data)) else {
        return web::html_reaction(StatusCode::BAD_REQUEST);
    };
    match chain.answer_ccip_read(sender, &data) {
        Ok(answer) if behaviour == "forged" => ccip_answer(&forge_signature(&answer)),
        Ok(answer) => ccip_answer(&answer),
        Err(_) => web::html_reaction(StatusCode::NOT_FOUND),
    }
}

/// Body of a POST to a CCIP-Read gateway.
#[derive(Default, serde::Deserialize)]
struct CcipReadPostBody {
    sender: String,
    data: String,
}

fn ccip_answer(answer: &[u8]) -> HostReaction {
    web::json_reaction(Bytes::from(format!("{{\"data\": \"{}\"}}", hex::encode_prefixed(answer))))
}

/// `answer` with one byte changed in its signature, which is the last part and padded to whole words.
fn forge_signature(answer: &[u8]) -> Vec<u8> {
    let mut bytes = answer.to_vec();
    let in_signature = bytes.len().saturating_sub(64);
    if let Some(byte) = bytes.get_mut(in_signature) {
        *byte ^= 1;
    }
    bytes
}
