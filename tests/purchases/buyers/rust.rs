//! The Rust client of x402, `x402-reqwest`: the purchases that come on the standard input, one a line (README.md).

use std::io::{BufRead as _, Write as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use alloy_signer_local::PrivateKeySigner;
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clresolve_guard::{Config, Daemon, Ed25519KeySet, Guard, Paid, Refusal, Signer, Why};
use http::Extensions;
use reqwest::header::HeaderValue;
use reqwest::{Request, Response, StatusCode};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Error, Middleware, Next, Result};
use serde::Deserialize;
use serde_json::{Value, json};
use x402_chain_eip155::{V1Eip155ExactClient, V2Eip155ExactClient};
use x402_reqwest::X402Client;
use x402_types::scheme::client::{PaymentCandidate, PaymentSelector};

/// The header with the terms of version 2.
const TERMS: &str = "payment-required";

#[derive(Deserialize)]
struct Question {
    url: String,
    key: String,
    body: Option<String>,
    guard: Option<GuardOptions>,
    trick: Option<Trick>,
    thief: String,
    kill: String,
    /// What the guard handed out.
    #[serde(skip)]
    paid: Arc<Mutex<Option<Paid>>>,
}

#[derive(Deserialize)]
struct GuardOptions {
    daemon: String,
    agent: String,
    name: Option<String>,
    #[serde(default)]
    verb: String,
    /// Milliseconds.
    timeout: u64,
    signer: Option<SignerOptions>,
}

#[derive(Deserialize)]
struct SignerOptions {
    issuer: String,
    jwks: Value,
}

/// What the program around the client does. The client has no hook, and its selector cannot change an entry, so a
/// middleware does.
#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Trick {
    Cheapest,
    Hook,
    Kill,
    Twice,
}

#[tokio::main]
async fn main() {
    for line in std::io::stdin().lock().lines() {
        let question: Question = serde_json::from_str(&line.expect("a line")).expect("a purchase");
        let mut end = match buy(&question).await {
            Ok(response) => {
                json!({"status": response.status().as_u16(), "body": response.text().await.unwrap_or_default()})
            }
            Err(error) => failure(&error),
        };
        if let Some(paid) = question.paid.lock().expect("nobody panics").as_ref() {
            let Paid { url, decision, payment, settlement, .. } = paid;
            end["paid"] = json!({
                "url": url.as_str(), "decision": decision, "payment": payment, "settlement": settlement,
            });
        }
        println!("{end}");
        std::io::stdout().flush().expect("somebody reads");
    }
}

async fn buy(question: &Question) -> Result<Response> {
    if question.trick == Some(Trick::Twice) {
        return pay_twice(question).await;
    }
    let mut layers: Vec<Arc<dyn Middleware>> = vec![payments(question)];
    match question.trick {
        Some(Trick::Hook) => layers.push(Arc::new(ChangesPayee(question.thief.clone()))),
        Some(Trick::Kill) => layers.push(Arc::new(KillsDaemon(question.kill.clone()))),
        _ => {}
    }
    layers.extend(guard(question));
    let client = client(layers);
    let request = match &question.body {
        None => client.get(&question.url),
        Some(body) => client.post(&question.url).header("content-type", "application/json").body(body.clone()),
    };
    request.send().await
}

fn client(layers: impl IntoIterator<Item = Arc<dyn Middleware>>) -> ClientWithMiddleware {
    layers.into_iter().fold(ClientBuilder::new(reqwest::Client::new()), ClientBuilder::with_arc).build()
}

fn guard(question: &Question) -> Option<Arc<dyn Middleware>> {
    let GuardOptions { daemon, agent, name, verb, timeout, signer } = question.guard.as_ref()?;
    let signer = signer.as_ref().map(|SignerOptions { issuer, jwks }| Signer {
        issuer: issuer.clone(),
        keys: Ed25519KeySet::from_jwks(jwks.to_string().as_bytes()).expect("a key set"),
    });
    let (name, timeout) = (name.clone(), Duration::from_millis(*timeout));
    let config = Config { name, timeout, signer, ..Config::new(daemon, agent, verb) };
    let daemon = Daemon::new(config).expect("a daemon on this machine");
    let guard = Guard::new(daemon, reqwest::Client::builder()).expect("a client");
    let paid = Arc::clone(&question.paid);
    let guard = guard.on_paid(move |one| *paid.lock().expect("nobody panics") = Some(one.clone()));
    Some(Arc::new(guard))
}

fn payments(question: &Question) -> Arc<X402Client<Chooses>> {
    let signer: Arc<PrivateKeySigner> = Arc::new(question.key.parse().expect("a key"));
    let (v1, v2) = (V1Eip155ExactClient::new(Arc::clone(&signer)), V2Eip155ExactClient::new(signer));
    Arc::new(X402Client::new().register(v2).register(v1).with_selector(Chooses(question.trick)))
}

/// Takes the first entry, or the cheapest one.
struct Chooses(Option<Trick>);

impl PaymentSelector for Chooses {
    fn select<'a>(&self, candidates: &'a [PaymentCandidate]) -> Option<&'a PaymentCandidate> {
        match self.0 {
            Some(Trick::Cheapest) => candidates.iter().min_by_key(|candidate| candidate.amount),
            _ => candidates.first(),
        }
    }
}

/// Pays one 402 by two signatures, at once.
async fn pay_twice(question: &Question) -> Result<Response> {
    let below = client(guard(question));
    let answer = below.get(&question.url).send().await?;
    let terms = answer.headers()[TERMS].clone();
    let pay = || async {
        let payment = payments(question).make_payment_headers(demand(terms.clone())).await;
        below.get(&question.url).headers(payment.map_err(Error::middleware)?).send().await
    };
    let (one, other) = tokio::join!(pay(), pay());
    one.and(other)
}

/// A 402 with these terms.
fn demand(terms: HeaderValue) -> Response {
    let mut demand = http::Response::new("");
    *demand.status_mut() = StatusCode::PAYMENT_REQUIRED;
    demand.headers_mut().insert(TERMS, terms);
    Response::from(demand)
}

/// Changes the payee of the terms, after the guard has handed them on and before they are signed.
struct ChangesPayee(String);

#[async_trait]
impl Middleware for ChangesPayee {
    async fn handle(&self, request: Request, extensions: &mut Extensions, next: Next<'_>) -> Result<Response> {
        let response = next.run(request, extensions).await?;
        if response.status() != StatusCode::PAYMENT_REQUIRED {
            return Ok(response);
        }
        let decoded = STANDARD.decode(&response.headers()[TERMS]).expect("base64");
        let mut terms: Value = serde_json::from_slice(&decoded).expect("JSON");
        terms["accepts"][0]["payTo"] = json!(self.0);
        let encoded = STANDARD.encode(terms.to_string());
        Ok(demand(encoded.parse().expect("base64 fits into a header")))
    }
}

/// Kills the daemon when a payment is signed.
struct KillsDaemon(String);

#[async_trait]
impl Middleware for KillsDaemon {
    async fn handle(&self, request: Request, extensions: &mut Extensions, next: Next<'_>) -> Result<Response> {
        if request.headers().contains_key("payment-signature") {
            reqwest::get(&self.0).await?;
        }
        next.run(request, extensions).await
    }
}

fn failure(error: &Error) -> Value {
    let Some(refusal) = Refusal::of(error) else {
        return json!({"failed": error.to_string()});
    };
    let refused = match refusal.why() {
        Why::Denied => "denied",
        Why::Unavailable => "unavailable",
        Why::Redirected => "redirected",
        Why::Unreadable => "unreadable",
        Why::NoDecision => "no-decision",
        Why::TwoPayments => "two-payments",
        Why::PaymentDenied => "payment-denied",
        Why::OtherProtocol => "other-protocol",
    };
    json!({"refused": refused, "codes": refusal.codes()})
}
