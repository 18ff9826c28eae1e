//! A JSON-RPC proxy over HTTP that stands before an endpoint and alters one thing of what passes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use alloy_primitives::{B256, hex};
use alloy_rpc_types_eth::Header;
use axum::Router;
use axum::extract::Request;
use axum::middleware::map_request;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use url::Url;

use super::server::ANYWHERE;

/// The scheme of every entry, and the altered one.
const SCHEME: &str = "x402://";
const OTHER_SCHEME: &str = "x403://";

/// What a proxy does to what passes through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Altered {
    Nothing,
    /// The scheme in the record of the entry.
    Record,
    /// The value of one slot.
    Slot,
    /// One byte of one contract's code.
    CodeByte,
    /// The state root in the header, under the true block's hash.
    HeaderHashKept,
    /// The state root in the header, with a right hash of the whole.
    HeaderHashRemade,
    /// No proof ever comes.
    NoProof,
    /// Nothing ever comes.
    Silent,
}

/// A running proxy. It stops when this is dropped.
pub(crate) struct Proxy {
    address: SocketAddr,
    serving: JoinHandle<()>,
    requests: Arc<AtomicUsize>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Proxy {
    /// Answers as the router does.
    pub(crate) async fn serving(router: Router) -> Self {
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&requests);
        let router = router.layer(map_request(move |request: Request| {
            counted.fetch_add(1, Ordering::Relaxed);
            std::future::ready(request)
        }));
        let listener = TcpListener::bind(ANYWHERE).await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.expect("a listener accepts") });
        Self { address, serving, requests }
    }

    /// Stands before the endpoint at `upstream`.
    pub(crate) async fn before(upstream: Url, altered: Altered) -> Self {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let passes = move |body: Bytes| {
            let (http, upstream) = (http.clone(), upstream.clone());
            async move { altered.exchange(&http, upstream, &body).await }
        };
        Self::serving(Router::new().fallback(passes)).await
    }

    /// HTTP requests so far. A batch counts as one.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    pub(crate) fn url(&self) -> Url {
        format!("http://{}/", self.address).parse().unwrap()
    }
}

impl Altered {
    /// What the endpoint answers, altered.
    async fn exchange(self, http: &reqwest::Client, upstream: Url, body: &[u8]) -> String {
        let mut request: Value = serde_json::from_slice(body).expect("clresolve sends JSON");
        let asks_proof = body.windows(b"eth_getProof".len()).any(|part| part == b"eth_getProof");
        if self == Self::Silent || (self == Self::NoProof && asks_proof) {
            return std::future::pending().await;
        }
        if self == Self::HeaderHashRemade {
            answer_for_made_up_blocks(&mut request);
        }
        let reply = http.post(upstream).body(request.to_string()).send().await.expect("the endpoint answers");
        let reply = reply.bytes().await.expect("the endpoint answers in whole");
        let mut reply: Value = serde_json::from_slice(&reply).expect("the endpoint sends JSON");
        let mut is_done = false;
        for request in request.as_array().cloned().unwrap_or_else(|| vec![request.clone()]) {
            let own = match &mut reply {
                Value::Array(replies) => replies.iter_mut().find(|reply| reply["id"] == request["id"]),
                single => Some(single),
            };
            if let Some(result) = own.and_then(|own| own.get_mut("result")) {
                self.apply(request["method"].as_str().unwrap_or_default(), result, &mut is_done);
            }
        }
        reply.to_string()
    }

    fn apply(self, method: &str, result: &mut Value, is_done: &mut bool) {
        match (self, method) {
            (Self::Record, "eth_call") => {
                let text = result.as_str().unwrap_or_default();
                *result = json!(text.replacen(&hex::encode(SCHEME), &hex::encode(OTHER_SCHEME), 1));
            }
            (Self::Slot, "eth_getProof") if !*is_done => {
                if let Some(slot) = result["storageProof"].get_mut(0) {
                    slot["value"] = json!("0x1234567");
                    *is_done = true;
                }
            }
            (Self::CodeByte, "eth_getCode") if !*is_done => {
                let mut code = result.as_str().unwrap_or_default().to_owned();
                if let Some(last) = code.pop().filter(|_| code.len() > 2) {
                    code.push(if last == '0' { '1' } else { '0' });
                    *result = json!(code);
                    *is_done = true;
                }
            }
            (Self::HeaderHashKept | Self::HeaderHashRemade, "eth_getBlockByNumber" | "eth_getBlockByHash")
                if result["number"].as_str().is_some_and(|number| number != "0x0") =>
            {
                result["stateRoot"] = json!(B256::repeat_byte(7));
                if self == Self::HeaderHashRemade {
                    let header: Header = serde_json::from_value(result.clone()).expect("a header");
                    result["hash"] = json!(header.inner.hash_slow());
                }
            }
            _ => {}
        }
    }
}

/// Answers questions about an invented block from the real one.
fn answer_for_made_up_blocks(request: &mut Value) {
    match request {
        Value::Object(members) if members.contains_key("blockHash") => *request = json!("finalized"),
        Value::Object(members) => members.values_mut().for_each(answer_for_made_up_blocks),
        Value::Array(elements) => elements.iter_mut().for_each(answer_for_made_up_blocks),
        _ => {}
    }
}
