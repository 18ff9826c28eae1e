//! Guards for any seller: checks instead of the gate and of decisions.

use std::sync::{Arc, Mutex};

use clresolve_guard::{Config, Daemon, Ed25519KeySet, Guard, InProcess, Signer, Why};
use clresolve_resolver::Resolver;
use reqwest::StatusCode;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use serde_json::{Value, json};

use crate::rules::{Messages, assert_refused, browse, client, get, pay};
use crate::world::{By, Purchase, World, guard};

/// A configuration for any seller. The gate of its daemon answers nothing, unless another fault is given.
fn any(world: &World, fault: &str) -> Config {
    let Config { daemon, timeout, .. } = world.config(if fault.is_empty() { "gate.503" } else { fault });
    Config { timeout, ..Config::any(daemon) }
}

#[tokio::test]
async fn any_seller_whose_payee_is_proven_is_paid_without_a_gate() {
    let world = World::start().await;
    let (purchase, schemas) = (world.purchase("honest", "1"), Arc::new(Mutex::new(Vec::new())));
    let kept = Arc::clone(&schemas);
    let guard = guard(any(&world, ""))
        .on_paid(move |paid| kept.lock().expect("nobody panics").push(paid.decision["schema"].clone()));
    let client = ClientBuilder::new(reqwest::Client::new()).with(guard).build();
    get(&client, &format!("{}#fragment", purchase.url), &[]).await.expect("terms");
    let header = world.payment(json!({}));
    assert_eq!(pay(&client, &purchase, &header).await, Ok(StatusCode::OK));
    assert_eq!(purchase.paid().await, [world.at.honest.as_str()]);
    assert_eq!(*schemas.lock().expect("nobody panics"), [json!("clresolve.check/1")]);
    let asked = purchase.asked().await;
    let mut question = asked[0].clone();
    assert_eq!((&question["name"], &question["verb"]), (&Value::Null, &Value::Null));
    assert_eq!((&question["url"], &question["response"]["url"]), (&json!(purchase.url), &json!(purchase.url)));
    (question["selected"], question["header"]) = (json!(0), json!(header));
    assert_eq!(asked[1], question);
}

#[tokio::test]
async fn name_verb_and_limits_of_the_configuration_go_along() {
    let world = World::start().await;
    let about = |fault| Config {
        name: Some("seller.eth".into()),
        verb: "summarize".into(),
        limits: json!({"max_amount": "10000"}).as_object().cloned(),
        ..any(&world, fault)
    };
    let purchase = world.purchase("honest", "1");
    browse(&client(about("")), &purchase).await;
    let asked = &purchase.asked().await[0];
    assert_eq!((&asked["name"], &asked["verb"]), (&json!("seller.eth"), &json!("summarize")));
    assert_eq!(asked["limits"], json!({"max_amount": "10000"}));
    for fault in ["decisions.other-name", "decisions.other-verb"] {
        assert_refused(get(&client(about(fault)), &purchase.url, &[]).await, Why::Unavailable, &[]);
    }
}

#[tokio::test]
async fn terms_that_a_check_does_not_allow_are_not_handed_on() {
    let world = World::start().await;
    for (which, fault, code) in [
        ("other-payto", "", "payee-mismatch"),
        ("over-limit", "", "payment-amount-exceeds"),
        ("honest", "decisions.claimed", "identity-claimed"),
    ] {
        let (purchase, client) = (world.purchase(which, which), client(any(&world, fault)));
        assert_refused(get(&client, &purchase.url, &[]).await, Why::Denied, &[code]);
        let end = pay(&client, &purchase, &world.payment(json!({}))).await;
        assert_eq!(end, Err((Why::NoDecision, vec![])));
        assert!(purchase.paid().await.is_empty());
    }
}

/// What is paid after an unpaid request: nothing to another account, and one payment.
async fn assert_one_payment(world: &World, client: &ClientWithMiddleware, purchase: &Purchase<'_>) {
    browse(client, purchase).await;
    let thiefs = world.payment(json!({"to": world.at.stranger}));
    let end = pay(client, purchase, &thiefs).await;
    assert_eq!(end, Err((Why::PaymentDenied, vec!["payment-signature-mismatch".into()])));
    assert_eq!(pay(client, purchase, &world.payment(json!({}))).await, Ok(StatusCode::OK));
    assert_eq!(pay(client, purchase, &world.payment(json!({}))).await, Err((Why::NoDecision, vec![])));
    assert_eq!(purchase.paid().await, [world.at.honest.as_str()]);
}

#[tokio::test]
async fn a_check_is_for_the_payment_that_was_allowed_and_for_one() {
    let world = World::start().await;
    assert_one_payment(&world, &client(any(&world, "")), &world.purchase("honest", "1")).await;
}

#[tokio::test]
async fn a_transient_denial_of_a_check_is_retried() {
    let world = World::start().await;
    browse(&client(any(&world, "decisions.unconfirmed")), &world.purchase("honest", "1")).await;
}

#[tokio::test]
async fn an_answer_that_is_no_valid_check_allows_nothing() {
    let world = World::start().await;
    for fault in ["other-schema", "schema", "404", "garbage", "undecided", "expired"] {
        let purchase = world.purchase("honest", fault);
        let end = get(&client(any(&world, &format!("decisions.{fault}"))), &purchase.url, &[]).await.map(|_| fault);
        assert_refused(end, Why::Unavailable, &[]);
        let then = client(any(&world, &format!("signed.{fault}")));
        browse(&then, &purchase).await;
        let end = pay(&then, &purchase, &world.payment(json!({}))).await;
        assert_eq!(end, Err((Why::Unavailable, vec![])), "{fault}");
        assert!(purchase.paid().await.is_empty(), "{fault}");
    }
}

#[tokio::test]
async fn any_seller_that_redirects_is_refused() {
    let world = World::start().await;
    let purchase = world.purchase("redirect-307", "1");
    assert_refused(get(&client(any(&world, "")), &purchase.url, &[]).await, Why::Redirected, &[]);
    assert!(purchase.asked().await.is_empty());
}

/// The caller's name has the payee as its address; the seller names nobody.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_resolver_in_this_process_proves_is_paid() {
    let world = World::started(By::Resolver).await;
    let under = |name: Option<String>, url: String| {
        let world = &world;
        async move {
            let resolver = Resolver::new(&world.config_for(&world.at.name, &url)).await.expect("a configuration");
            let guard = Guard::new(InProcess::any(resolver, name, None), reqwest::Client::builder().no_proxy());
            ClientBuilder::new(reqwest::Client::new()).with(guard.expect("a client")).build()
        }
    };
    let name = || Some(world.at.name.clone());
    let purchase = world.purchase("honest", "1");
    assert_one_payment(&world, &under(name(), purchase.url.clone()).await, &purchase).await;
    for (which, name) in [("other-payto", name()), ("honest", None)] {
        let purchase = world.purchase(which, "2");
        let refusal = get(&under(name, purchase.url.clone()).await, &purchase.url, &[]).await.expect_err("a refusal");
        assert_eq!(refusal.why(), Why::Denied, "{refusal}");
        assert!(purchase.paid().await.is_empty());
    }
}

#[tokio::test]
async fn whom_the_guard_pays_must_be_spelt_out() {
    let rejects = |message: &str, config: Config| {
        assert_eq!(Daemon::new(config).expect_err(message).to_string(), message);
    };
    let config = |agent: &str, verb: &str| Config::new("http://127.0.0.1:8402", agent, verb);
    for agent in Messages::read().misspelt_any {
        rejects("agent: did you mean \"any\"?", config(&agent, ""));
    }
    rejects("agent: expected an ENS name, or \"any\"", config("", "v"));
    rejects("verb must not be empty", config("a.eth", ""));
    let name = |name: &str| Some(name.to_owned());
    rejects("name: expected only with the agent \"any\"", Config { name: name("b.eth"), ..config("a.eth", "v") });
    let keys = Ed25519KeySet::from_jwks(World::start().await.at.jwks.to_string().as_bytes()).expect("keys");
    let signer = Some(Signer { issuer: "https://i.example".into(), keys });
    rejects("signer: the daemon signs no answer for the agent \"any\"", Config { signer, ..config("any", "") });
    let meant = "name: expected the full ENS name in normal form; did you mean seller.eth?";
    for spelt in ["Seller.eth", "seller"] {
        rejects(meant, Config { name: name(spelt), ..config("any", "") });
    }
    rejects("name must not be empty", Config { name: name(""), ..config("any", "") });
}
