//! The sellers of the demo: an honest one and a lying one, over plain HTTP on loopback. Clients sign payments to them.
//! The sellers verify a payment by a dry run of the token contract, and settle nothing.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use alloy_primitives::Address;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::chain::{DOLLAR, SandboxChain};
use crate::keys::{payee_address, stranger_address};
use crate::purchase::settlement_calldata_from_header;
use crate::seller::{payment_terms, terms_entry};

/// The verb that both sellers sell.
const VERB: &str = "summarize";

const HONEST_PATH: &str = "/honest/summarize";
const LYING_PATH: &str = "/lying/summarize";

/// The running sellers. Dropping them stops the server.
#[derive(Debug)]
pub struct DemoSellerServer {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl DemoSellerServer {
    /// Starts the sellers on this port of 127.0.0.1, or on a free one if it is 0. No other address can be bound.
    ///
    /// # Errors
    /// The port cannot be bound.
    pub(crate) async fn start(port: u16, chain: &Arc<SandboxChain>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        let mut router = Router::new();
        for (path, pay_to) in [(HONEST_PATH, payee_address()), (LYING_PATH, stranger_address())] {
            let seller = DemoSeller { url: format!("http://{address}{path}"), pay_to, chain: Arc::clone(chain) };
            // Executes the payment in the EVM, which must not block the daemon of the same process.
            let answer = move |headers: HeaderMap| async move {
                let answered = tokio::task::spawn_blocking(move || seller.answer_purchase(&headers)).await;
                answered.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
            };
            router = router.route(path, any(answer));
        }
        let task = tokio::spawn(async move {
            // `serve` retries after an error, so it ends only with the task.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { address, task })
    }

    /// The URL of the seller that demands payment to the address that names publish.
    pub fn honest_url(&self) -> String {
        format!("http://{}{HONEST_PATH}", self.address)
    }

    /// The URL of the seller that demands payment to an address that no name publishes.
    pub fn lying_url(&self) -> String {
        format!("http://{}{LYING_PATH}", self.address)
    }
}

impl Drop for DemoSellerServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Clone)]
struct DemoSeller {
    url: String,
    pay_to: Address,
    chain: Arc<SandboxChain>,
}

impl DemoSeller {
    fn answer_purchase(&self, headers: &HeaderMap) -> Response {
        let Some(payment) = headers.get("payment-signature") else {
            return self.payment_required_response("PAYMENT-SIGNATURE header is required");
        };
        let call = settlement_calldata_from_header(payment.as_bytes(), self.pay_to);
        if call.is_some_and(|call| self.chain.accepts_call(DOLLAR, call.into(), Timestamp::now())) {
            return Json(json!({"summary": "The payment is valid. This seller does not settle it."})).into_response();
        }
        self.payment_required_response("the payment is not valid for these terms")
    }

    /// The terms, in the header for x402 clients, and in the body for people.
    fn payment_required_response(&self, error: &str) -> Response {
        let mut terms = payment_terms(&self.url, VERB, &[terms_entry(self.pay_to)], json!({}));
        terms["error"] = error.into();
        let header = [("payment-required", STANDARD.encode(terms.to_string()))];
        (StatusCode::PAYMENT_REQUIRED, header, Json(terms)).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::SandboxChainBuilder;
    use crate::purchase::SandboxPurchase;

    fn chain(settled: &[SandboxPurchase]) -> Arc<SandboxChain> {
        let mut builder = SandboxChainBuilder::new().unwrap();
        settled.iter().for_each(|purchase| purchase.settle_on_chain(&mut builder).unwrap());
        builder.seal_block(SandboxPurchase::SETTLED_AT).unwrap();
        Arc::new(builder.build().unwrap())
    }

    fn status(chain: Arc<SandboxChain>, pay_to: Address, payment: &str) -> StatusCode {
        let seller = DemoSeller { url: "http://127.0.0.1/honest/summarize".to_owned(), pay_to, chain };
        seller
            .answer_purchase(&HeaderMap::from_iter([("payment-signature".parse().unwrap(), payment.parse().unwrap())]))
            .status()
    }

    #[test]
    fn valid_payment_is_accepted_and_any_other_is_refused() {
        let payment = SandboxPurchase::Settled.payment_header();
        let changed = |from: &str, to: &str| {
            let text = String::from_utf8(STANDARD.decode(&payment).unwrap()).unwrap();
            assert!(text.contains(from), "{from} is not in {text}");
            STANDARD.encode(text.replace(from, to))
        };
        assert_eq!(status(chain(&[]), payee_address(), &payment), StatusCode::OK);
        let used = chain(&[SandboxPurchase::Settled]);
        assert_eq!(status(used, payee_address(), &payment), StatusCode::PAYMENT_REQUIRED);
        for (pay_to, payment) in [
            (stranger_address(), payment.clone()),
            (payee_address(), changed("\"value\":\"10000\"", "\"value\":\"1\"")),
            (payee_address(), changed("\"validAfter\":\"0\"", "\"validAfter\":\"1\"")),
            (payee_address(), changed("\"signature\":\"0x", "\"signature\":\"0x00")),
            (payee_address(), "%".to_owned()),
        ] {
            assert_eq!(status(chain(&[]), pay_to, &payment), StatusCode::PAYMENT_REQUIRED, "{payment}");
        }
    }
}
