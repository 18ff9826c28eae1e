//! The rules of the guard, each against a seller that keeps count. Those that ask nothing of a daemon alone hold under
//! each that decides.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use crate::world::{Purchase, World, guard};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clresolve_guard::{Config, ConfigError, Daemon, Ed25519KeySet, Refusal, Signer, Why};
use reqwest::{Certificate, Response, StatusCode};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use serde::Deserialize;
use serde_json::{Value, json};

const BROKEN: &str = "500 503 404 422 201 302 hangs drips drops garbage truncated oversize schema other-schema no-schema \
                      no-codes codes-number other-name other-verb no-abort abort-text abort-number undecided unknown \
                      expired endless date offset no-time list null";
const BROKEN_ENTRIES: &str = "no-entries entry-text entry-bare entry-index entry-twice entries-many entry-endless entry-null \
                              entry-date entry-over";

/// The client above the guard. It would fail to send: only the guard's own sends.
static OTHER: LazyLock<reqwest::Client> = LazyLock::new(|| {
    let proxy = reqwest::Proxy::all("http://127.0.0.1:9").expect("a proxy");
    reqwest::Client::builder().proxy(proxy).build().expect("a client")
});

/// A client of the guard alone.
pub(crate) fn client(config: Config) -> ClientWithMiddleware {
    ClientBuilder::new(OTHER.clone()).with(guard(config)).build()
}

/// A client of the guard alone. The world of the purchase says who decides; purchases at its URL are allowed.
async fn guarded(purchase: &Purchase<'_>) -> ClientWithMiddleware {
    let world = purchase.world;
    let guard = world.guard_for(&world.at.name, &purchase.url).await;
    ClientBuilder::new(OTHER.clone()).with_arc(guard).build()
}

/// Each of these tests under each that decides.
macro_rules! under_each {
    ($($rule:ident),* $(,)?) => {
        mod daemon {
            use crate::world::{By, World};
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $rule() {
                super::$rule(World::started(By::Daemon).await).await;
            })*
        }

        mod resolver {
            use crate::world::{By, World};
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $rule() {
                super::$rule(World::started(By::Resolver).await).await;
            })*
        }
    };
}

under_each! {
    a_purchase_goes_through_and_its_reply_comes_as_the_seller_sent_it,
    an_agent_that_is_not_trusted_is_not_asked,
    redirects_are_not_followed,
    the_redirect_of_a_payment_comes_back_and_leads_nowhere,
    terms_without_an_entry_that_passes_are_not_handed_on,
    the_longest_402_is_read_and_a_longer_one_is_not_paid,
    a_payment_does_not_leave_without_a_decision_for_its_url,
    two_payments_in_one_request_do_not_leave,
    a_decision_is_for_one_payment,
    of_payments_at_once_exactly_one_leaves_for_each_decision,
    what_is_signed_must_be_what_was_allowed,
    of_several_entries_the_one_that_is_signed_counts,
    of_a_payment_that_left_is_handed_out_what_is_to_be_kept,
    of_a_payment_without_a_reply_it_is_handed_out_too,
    a_402_that_breaks_off_is_refused_with_its_local_cause,
    a_402_that_drips_is_refused_in_time_with_its_local_cause,
    a_body_with_two_codings_is_refused,
    replies_carry_no_challenge_of_another_payment_protocol,
    a_402_with_another_protocols_demand_alone_is_refused,
    a_credential_of_another_payment_protocol_does_not_leave,
    a_credential_of_another_payment_protocol_in_a_body_does_not_leave,
}

pub(crate) async fn get(
    client: &ClientWithMiddleware,
    url: &str,
    headers: &[(&str, &str)],
) -> Result<Response, Refusal> {
    let request = headers.iter().fold(client.get(url), |request, (name, value)| request.header(*name, *value));
    request.send().await.map_err(|error| Refusal::of(&error).cloned().expect("a refusal"))
}

pub(crate) async fn browse(client: &ClientWithMiddleware, purchase: &Purchase<'_>) -> Response {
    let response = get(client, &purchase.url, &[]).await.expect("terms");
    assert_eq!(response.status(), StatusCode::PAYMENT_REQUIRED);
    response
}

pub(crate) async fn pay(
    client: &ClientWithMiddleware,
    purchase: &Purchase<'_>,
    header: &str,
) -> Result<StatusCode, (Why, Vec<String>)> {
    let end = get(client, &purchase.url, &[("PAYMENT-SIGNATURE", header)]).await;
    end.map(|response| response.status()).map_err(said)
}

fn said(refusal: Refusal) -> (Why, Vec<String>) {
    (refusal.why(), refusal.codes().to_vec())
}

#[track_caller]
pub(crate) fn assert_refused<T: std::fmt::Debug>(end: Result<T, Refusal>, why: Why, codes: &[&str]) {
    let refusal = end.expect_err("a refusal");
    assert_eq!(
        (refusal.why(), refusal.codes()),
        (why, codes.iter().map(|&code| code.into()).collect::<Vec<_>>().as_slice())
    );
}

async fn a_purchase_goes_through_and_its_reply_comes_as_the_seller_sent_it(world: World) {
    let purchase = world.purchase("honest", "1");
    let client = guarded(&purchase).await;
    let plain = reqwest::get(&purchase.url).await.expect("a reply");
    let demand = browse(&client, &purchase).await;
    let kept = |response: &Response| {
        let mut headers = response.headers().clone();
        headers.remove("date");
        (headers, response.url().clone(), response.version())
    };
    assert_eq!(kept(&demand), kept(&plain));
    assert_eq!(demand.bytes().await.expect("a body"), plain.bytes().await.expect("a body"));
    assert_eq!(pay(&client, &purchase, &world.payment(json!({}))).await, Ok(StatusCode::OK));
    assert_eq!(purchase.paid().await, [world.at.honest.as_str()]);
}

async fn an_agent_that_is_not_trusted_is_not_asked(world: World) {
    let purchase = world.purchase("free", "1");
    let guard = world.guard_for("nobody.eth", &purchase.url).await;
    let client = ClientBuilder::new(OTHER.clone()).with_arc(guard).build();
    assert_refused(get(&client, &purchase.url, &[]).await, Why::Denied, &["name-unregistered"]);
    assert_eq!(purchase.arrived().await.requests, 0);
}

#[tokio::test]
async fn nothing_leaves_that_the_gate_does_not_allow() {
    let world = World::start().await;
    let purchase = world.purchase("free", "1");
    for fault in ["500", "503", "204", "302", "hangs", "drops", "oversize"] {
        let mut config = world.config(&format!("gate.{fault}"));
        config.timeout = Duration::from_millis(200);
        assert_refused(get(&client(config), &purchase.url, &[]).await, Why::Unavailable, &[]);
    }
    assert_eq!(purchase.arrived().await.requests, 0);
    // Foreign text does not get into a message.
    let refusal = get(&client(world.config("gate.foreign")), &purchase.url, &[]).await.expect_err("a refusal");
    assert_eq!(refusal.to_string(), "not paying: clresolve denies this agent or its terms");
}

/// The messages and values that all four guards are tested with.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Messages {
    unreachable: BTreeMap<String, String>,
    failures: BTreeMap<String, String>,
    without_cause: Vec<String>,
    agents: Vec<(String, String)>,
    pub(crate) misspelt_any: Vec<String>,
    normal_agents: Vec<String>,
    daemons_without_scheme: Vec<String>,
}

impl Messages {
    pub(crate) fn read() -> Self {
        serde_json::from_str(include_str!("../../../testing/messages.json")).expect("the messages")
    }
}

#[tokio::test]
async fn refusal_names_the_daemon_and_its_failure_and_has_a_source() {
    let (world, messages) = (World::start().await, Messages::read());
    let at = |daemon: &str, millis| {
        let mut config = Config::new(daemon, world.at.name.as_str(), world.at.verb.as_str());
        config.timeout = Duration::from_millis(millis);
        config
    };
    let fault = |fault: &str| format!("{}/{fault}", world.at.daemon);
    let mut cases: Vec<(Config, &str, bool)> = Vec::new();
    for (daemon, what) in &messages.unreachable {
        cases.push((at(daemon, 2000), what.as_str(), true));
    }
    for (which, what) in &messages.failures {
        cases.push((at(&fault(which), 200), what.as_str(), !messages.without_cause.contains(which)));
    }
    cases.push((at(&fault("gate.cold-late"), 50), "timeout", true));
    for (config, what, has_source) in cases {
        let message = format!("not paying: no usable answer from clresolve at {}: {what}", config.daemon);
        let purchase = world.purchase("honest", &config.daemon);
        let refusal = get(&client(config), &purchase.url, &[]).await.expect_err("a refusal");
        assert_eq!((refusal.why(), refusal.to_string()), (Why::Unavailable, message));
        let source = std::error::Error::source(&refusal);
        assert_eq!(source.is_some(), has_source, "{refusal}: {source:?}");
    }
}

#[tokio::test]
async fn agent_that_is_not_in_normal_form_is_rejected_with_the_name_that_was_meant() {
    let messages = Messages::read();
    for (agent, meant) in messages.agents {
        let error = Daemon::new(Config::new("http://127.0.0.1", agent.as_str(), "v")).expect_err(&agent);
        let message = format!("agent: expected the full ENS name in normal form; did you mean {meant}?");
        assert_eq!(error.to_string(), message, "{agent:?}");
    }
    for agent in messages.normal_agents {
        assert!(Daemon::new(Config::new("http://127.0.0.1", agent.as_str(), "v")).is_ok(), "{agent}");
    }
}

#[tokio::test]
async fn daemon_without_a_scheme_is_rejected_with_an_example() {
    for daemon in Messages::read().daemons_without_scheme {
        let error = Daemon::new(Config::new(daemon.as_str(), "a.eth", "v")).expect_err(&daemon);
        assert_eq!(error.to_string(), "daemon: expected a URL such as http://127.0.0.1:8402", "{daemon:?}");
    }
}

#[tokio::test]
async fn a_transient_denial_is_retried_until_the_timeout() {
    let world = World::start().await;
    for fault in ["gate.cold", "gate.unconfirmed", "decisions.unconfirmed", "signed.unconfirmed"] {
        let (purchase, client) = (world.purchase("honest", fault), client(world.config(fault)));
        browse(&client, &purchase).await;
        assert_eq!(pay(&client, &purchase, &world.payment(json!({}))).await, Ok(StatusCode::OK), "{fault}");
    }
    for fault in ["gate.cold", "gate.unconfirmed", "decisions.unconfirmed"] {
        let mut impatient = world.config(&format!("{fault}-impatient"));
        impatient.timeout = Duration::from_millis(50);
        let purchase = world.purchase("honest", fault);
        assert_refused(get(&client(impatient), &purchase.url, &[]).await, Why::Unavailable, &[]);
    }
}

async fn redirects_are_not_followed(world: World) {
    for status in ["301", "302", "303", "307", "308"] {
        let purchase = world.purchase(&format!("redirect-{status}"), status);
        assert_refused(get(&guarded(&purchase).await, &purchase.url, &[]).await, Why::Redirected, &[]);
        assert_eq!((purchase.arrived().await.requests, purchase.asked().await.len()), (1, 0));
    }
}

async fn the_redirect_of_a_payment_comes_back_and_leads_nowhere(world: World) {
    for status in [301, 302, 303, 307, 308] {
        let purchase = world.purchase(&format!("paid-{status}-elsewhere"), &status.to_string());
        let client = guarded(&purchase).await;
        browse(&client, &purchase).await;
        let payment = world.payment(json!({}));
        let answer = get(&client, &purchase.url, &[("PAYMENT-SIGNATURE", &payment)]).await.expect("it is paid");
        let has = |name: &str| answer.headers().contains_key(name);
        assert_eq!((answer.status().as_u16(), has("payment-response")), (status, true));
        assert!(!has("location") && !has("refresh"), "{status}");
        assert_eq!(answer.text().await.expect("a body"), r#"{"moved":true}"#);
        let payments = purchase.arrived().await.payments;
        assert_eq!(payments.iter().map(|payment| payment.seller.as_str()).collect::<Vec<_>>(), ["agent"]);
    }
}

async fn terms_without_an_entry_that_passes_are_not_handed_on(world: World) {
    for (which, code) in [
        ("other-payto", "payee-mismatch"),
        ("ten-years", "payment-timeout-excessive"),
        ("fake-usdc", "payment-asset-unlisted"),
        ("wrong-chain", "payment-network-mismatch"),
        ("over-limit", "payment-amount-exceeds"),
        ("header-against-body", "payment-terms-ambiguous"),
        ("broken-header", "payment-terms-malformed"),
        ("two-headers", "payment-terms-ambiguous"),
        ("garbage", "payment-terms-malformed"),
        ("v1-other-payto", "payee-mismatch"),
    ] {
        let purchase = world.purchase(which, which);
        let client = guarded(&purchase).await;
        let refusal = get(&client, &purchase.url, &[]).await.expect_err("a refusal");
        assert_eq!(refusal.why(), Why::Denied, "{which}");
        assert!(refusal.codes().contains(&code.to_owned()), "{which}: {:?}", refusal.codes());
        let end = pay(&client, &purchase, &world.payment(json!({}))).await;
        assert_eq!(end, Err((Why::NoDecision, vec![])), "{which}");
        assert!(purchase.paid().await.is_empty(), "{which}");
    }
}

#[tokio::test]
async fn terms_are_not_handed_on_without_a_decision() {
    let world = World::start().await;
    for fault in BROKEN.split_whitespace().chain(BROKEN_ENTRIES.split_whitespace()) {
        let mut config = world.config(&format!("decisions.{fault}"));
        config.timeout = Duration::from_millis(500);
        let (purchase, client) = (world.purchase("honest", fault), client(config));
        let end = get(&client, &purchase.url, &[]).await.map(|_| fault);
        assert_refused(end, Why::Unavailable, &[]);
        let end = pay(&client, &purchase, &world.payment(json!({}))).await;
        assert_eq!(end, Err((Why::NoDecision, vec![])), "{fault}");
        assert!(purchase.paid().await.is_empty(), "{fault}");
    }
    let nothing = get(&client(world.config("decisions.allows-nothing")), &world.purchase("honest", "1").url, &[]).await;
    assert_refused(nothing, Why::Denied, &[]);
}

#[tokio::test]
async fn a_payment_does_not_leave_without_a_decision_about_what_is_signed() {
    let world = World::start().await;
    let broken = BROKEN.split_whitespace().chain(["entry-other", "allows-nothing"]);
    let broken = broken.map(|fault| (fault, Why::Unavailable));
    for (fault, why) in broken.chain([("aborts", Why::PaymentDenied)]) {
        let mut config = world.config(&format!("signed.{fault}"));
        config.timeout = Duration::from_millis(500);
        let (purchase, client) = (world.purchase("honest", fault), client(config));
        browse(&client, &purchase).await;
        let end = pay(&client, &purchase, &world.payment(json!({}))).await;
        assert_eq!(end, Err((why, vec![])), "{fault}");
        assert!(purchase.paid().await.is_empty(), "{fault}");
    }
}

#[tokio::test]
async fn refusal_has_the_codes_that_decide() {
    let world = World::start().await;
    for (fault, which, code) in
        [("warns", "other-payto", "payee-mismatch"), ("denies-a-warning", "honest", "payee-changed")]
    {
        let (purchase, client) = (world.purchase(which, fault), client(world.config(&format!("decisions.{fault}"))));
        assert_refused(get(&client, &purchase.url, &[]).await, Why::Denied, &[code]);
    }
    let (purchase, client) = (world.purchase("honest", "1"), client(world.config("signed.warns")));
    browse(&client, &purchase).await;
    let thiefs = world.payment(json!({"to": world.at.stranger}));
    let end = pay(&client, &purchase, &thiefs).await;
    assert_eq!(end, Err((Why::PaymentDenied, vec!["payment-signature-mismatch".into()])));
    // A warning denies nothing.
    assert_eq!(pay(&client, &purchase, &world.payment(json!({}))).await, Ok(StatusCode::OK));
}

async fn the_longest_402_is_read_and_a_longer_one_is_not_paid(world: World) {
    let purchase = world.purchase("longest-body", "1");
    let longest = browse(&guarded(&purchase).await, &purchase).await;
    assert_eq!(longest.bytes().await.expect("a body").len(), 64 * 1024);
    let longer = world.purchase("longer-body", "2");
    assert_refused(get(&guarded(&longer).await, &longer.url, &[]).await, Why::Unreadable, &[]);
    assert!(longer.asked().await.is_empty());
}

async fn a_402_that_breaks_off_is_refused_with_its_local_cause(world: World) {
    for which in ["cut-off", "cut-off-chunked"] {
        let purchase = world.purchase(which, which);
        let refusal = get(&guarded(&purchase).await, &purchase.url, &[]).await.expect_err("a refusal");
        assert_eq!(refusal.why(), Why::Unreadable);
        let cause = std::error::Error::source(&refusal).expect("a cause");
        assert!(cause.is::<reqwest::Error>(), "{cause:?}");
        assert!(!refusal.to_string().contains("accepts"), "{refusal}");
        assert!(purchase.asked().await.is_empty());
    }
}

async fn a_402_that_drips_is_refused_in_time_with_its_local_cause(world: World) {
    let (purchase, began) = (world.purchase("drips", "drips"), Instant::now());
    let refusal = get(&guarded(&purchase).await, &purchase.url, &[]).await.expect_err("a refusal");
    assert_eq!(refusal.why(), Why::Unreadable);
    let cause = std::error::Error::source(&refusal).expect("a cause");
    assert!(cause.is::<tokio::time::error::Elapsed>(), "{cause:?}");
    assert!(began.elapsed() < Duration::from_secs(15));
    assert!(purchase.asked().await.is_empty());
}

async fn a_body_with_two_codings_is_refused(world: World) {
    for which in ["gzip-twice", "gzip-on-two-lines"] {
        let purchase = world.purchase(which, which);
        assert_refused(get(&guarded(&purchase).await, &purchase.url, &[]).await, Why::Unreadable, &[]);
        assert!(purchase.asked().await.is_empty());
    }
    let purchase = world.purchase("gzip", "gzip");
    assert_eq!(browse(&guarded(&purchase).await, &purchase).await.headers()["content-encoding"], "gzip");
}

/// The challenges of a reply, by the name of their header.
fn challenges_of(world: &World, response: &Response) -> BTreeMap<String, String> {
    let value = |name: &String| {
        let values: Vec<_> =
            response.headers().get_all(name).iter().map(|value| value.to_str().expect("text")).collect();
        (name.clone(), values.join(" and "))
    };
    world.at.kept.keys().map(value).collect()
}

async fn replies_carry_no_challenge_of_another_payment_protocol(world: World) {
    for status in [200, 204, 401, 403, 503] {
        let purchase = world.purchase(&format!("status-{status}"), &status.to_string());
        let answer = get(&guarded(&purchase).await, &purchase.url, &[]).await.expect("a reply");
        assert_eq!((answer.status().as_u16(), challenges_of(&world, &answer)), (status, world.at.kept.clone()));
        // Some clients pay terms whatever the status.
        assert!(!["payment-required", "x-payment-required"].iter().any(|name| answer.headers().contains_key(*name)));
    }
    let purchase = world.purchase("asks-otherwise", "1");
    let (client, payment) = (guarded(&purchase).await, world.payment(json!({})));
    assert_eq!(challenges_of(&world, &browse(&client, &purchase).await), world.at.kept);
    let again = get(&client, &purchase.url, &[("PAYMENT-SIGNATURE", &payment)]).await.expect("it is paid");
    assert_eq!((again.status(), challenges_of(&world, &again)), (StatusCode::PAYMENT_REQUIRED, world.at.kept.clone()));
}

#[tokio::test]
async fn the_daemon_sees_no_payment_challenge_of_another_protocol() {
    let world = World::start().await;
    let purchase = world.purchase("other-protocols", "1");
    browse(&client(world.config("")), &purchase).await;
    let asked = purchase.asked().await;
    let headers = asked[0]["response"]["headers"].as_array().expect("pairs");
    let challenges = headers.iter().filter(|pair| pair[0].as_str().is_some_and(|name| name.ends_with("-authenticate")));
    let kept = world.at.kept.iter().map(|(name, value)| json!([name, value])).collect::<Vec<_>>();
    let (mut challenges, mut kept) =
        (challenges.map(Value::to_string).collect::<Vec<_>>(), kept.iter().map(Value::to_string).collect::<Vec<_>>());
    challenges.sort();
    kept.sort();
    assert_eq!(challenges, kept);
}

async fn a_402_with_another_protocols_demand_alone_is_refused(world: World) {
    for which in ["mpp-thief", "mpp-honest"] {
        let purchase = world.purchase(which, which);
        assert_refused(
            get(&guarded(&purchase).await, &purchase.url, &[]).await,
            Why::Denied,
            &["payment-terms-malformed"],
        );
    }
}

async fn a_credential_of_another_payment_protocol_does_not_leave(world: World) {
    let cases: Value = serde_json::from_str(include_str!("../../../testing/challenges.json")).expect("the cases");
    let pairs = |kind: &str| -> Vec<(String, String)> { serde_json::from_value(cases[kind].clone()).expect("pairs") };
    let purchase = world.purchase("honest", "1");
    let (client, payment) = (guarded(&purchase).await, world.payment(json!({})));
    browse(&client, &purchase).await;
    for (name, value) in pairs("credentials") {
        for first in [(name.as_str(), "other"), ("PAYMENT-SIGNATURE", payment.as_str())] {
            let end = get(&client, &purchase.url, &[first, (&name, &value)]).await;
            assert_refused(end, Why::OtherProtocol, &[]);
        }
    }
    assert_eq!(purchase.arrived().await.requests, 1);
    for (name, value) in pairs("others") {
        get(&client, &purchase.url, &[(&name, &value)]).await.expect("terms");
    }
}

async fn a_credential_of_another_payment_protocol_in_a_body_does_not_leave(world: World) {
    let cases: Value = serde_json::from_str(include_str!("../../../testing/challenges.json")).expect("the cases");
    let bodies = |kind: &str| -> Vec<String> { serde_json::from_value(cases[kind].clone()).expect("bodies") };
    let purchase = world.purchase("honest", "1");
    let (client, payment) = (guarded(&purchase).await, world.payment(json!({})));
    browse(&client, &purchase).await;
    for (name, value) in [("accept", "*/*"), ("PAYMENT-SIGNATURE", payment.as_str())] {
        for body in bodies("bodies") {
            let end = client.post(&purchase.url).header(name, value).body(body).send().await;
            let end = end.map_err(|error| Refusal::of(&error).cloned().expect("a refusal"));
            assert_refused(end, Why::OtherProtocol, &[]);
        }
    }
    assert_eq!(purchase.arrived().await.requests, 1);
    for body in bodies("otherBodies") {
        client.post(&purchase.url).body(body).send().await.expect("terms");
    }
}

#[tokio::test]
async fn the_daemon_sees_the_url_every_header_and_the_whole_body() {
    let world = World::start().await;
    let purchase = world.purchase("v1-honest", "1");
    let mut config = world.config("");
    config.limits = json!({"networks": ["eip155:84532"]}).as_object().cloned();
    let (client, header) = (client(config), world.payment(json!({})));
    let demand = get(&client, &format!("{}#fragment", purchase.url), &[]).await.expect("terms");
    let body = demand.bytes().await.expect("a body");
    get(&client, &purchase.url, &[("X-PAYMENT", &header)]).await.expect("it is paid");
    let asked = purchase.asked().await;
    let first = &asked[0];
    assert_eq!((&first["name"], &first["verb"]), (&json!(world.at.name), &json!(world.at.verb)));
    assert_eq!(first["limits"], json!({"networks": ["eip155:84532"]}));
    assert_eq!((&first["response"]["status"], &first["response"]["url"]), (&json!(402), &json!(purchase.url)));
    let headers = first["response"]["headers"].as_array().expect("pairs");
    assert!(headers.contains(&json!(["content-type", "application/json"])), "{headers:?}");
    let sent = STANDARD.decode(first["response"]["body_base64"].as_str().expect("text")).expect("base64");
    assert_eq!(sent, body);
    let mut second = first.clone();
    (second["selected"], second["header"]) = (json!(0), json!(header));
    assert_eq!(asked[1], second);

    let twice = world.purchase("two-headers", "2");
    assert_refused(get(&client, &twice.url, &[]).await, Why::Denied, &["payment-terms-ambiguous"]);
    let headers = twice.asked().await[0]["response"]["headers"].as_array().expect("pairs").clone();
    assert_eq!(headers.iter().filter(|pair| pair[0] == "payment-required").count(), 2);
}

async fn a_payment_does_not_leave_without_a_decision_for_its_url(world: World) {
    let (purchase, other) = (world.purchase("honest", "1"), world.purchase("honest", "2"));
    let client = guarded(&purchase).await;
    browse(&client, &purchase).await;
    for name in ["PAYMENT-SIGNATURE", "payment-signature", "X-PAYMENT", "x-Payment"] {
        for value in [world.payment(json!({})).as_str(), ""] {
            assert_refused(get(&client, &other.url, &[(name, value)]).await, Why::NoDecision, &[]);
        }
    }
    assert_eq!(other.arrived().await.requests, 0);
}

async fn two_payments_in_one_request_do_not_leave(world: World) {
    let purchase = world.purchase("honest", "1");
    let (client, payment) = (guarded(&purchase).await, world.payment(json!({})));
    browse(&client, &purchase).await;
    for other in ["x-payment", "payment-signature"] {
        let headers = [("payment-signature", payment.as_str()), (other, payment.as_str())];
        assert_refused(get(&client, &purchase.url, &headers).await, Why::TwoPayments, &[]);
    }
    assert!(purchase.paid().await.is_empty());
}

async fn a_decision_is_for_one_payment(world: World) {
    for which in ["honest", "asks-again"] {
        let purchase = world.purchase(which, which);
        let (client, payment) = (guarded(&purchase).await, world.payment(json!({})));
        browse(&client, &purchase).await;
        assert!(pay(&client, &purchase, &payment).await.is_ok());
        assert_eq!(pay(&client, &purchase, &payment).await, Err((Why::NoDecision, vec![])));
        assert_eq!(purchase.paid().await.len(), 1);
    }
}

async fn of_payments_at_once_exactly_one_leaves_for_each_decision(world: World) {
    for decisions in [1, 2] {
        let purchase = world.purchase("honest", &decisions.to_string());
        let client = Arc::new(guarded(&purchase).await);
        for _ in 0..decisions {
            browse(&client, &purchase).await;
        }
        let payments: Vec<_> = (0..8)
            .map(|_| {
                let (client, url, payment) = (Arc::clone(&client), purchase.url.clone(), world.payment(json!({})));
                tokio::spawn(async move { get(&client, &url, &[("PAYMENT-SIGNATURE", &payment)]).await.is_ok() })
            })
            .collect();
        let mut left = 0;
        for payment in payments {
            left += usize::from(payment.await.expect("it ends"));
        }
        assert_eq!((left, purchase.paid().await.len()), (decisions, decisions));
    }
}

async fn what_is_signed_must_be_what_was_allowed(world: World) {
    let purchase = world.purchase("honest", "1");
    let client = guarded(&purchase).await;
    browse(&client, &purchase).await;
    let changes = [json!({"to": world.at.stranger}), json!({"value": "10001"}), json!({"validBefore": "9999999999"})];
    for change in changes {
        let end = pay(&client, &purchase, &world.payment(change)).await;
        assert_eq!(end, Err((Why::PaymentDenied, vec!["payment-signature-mismatch".into()])));
    }
    assert!(purchase.paid().await.is_empty());
}

async fn of_several_entries_the_one_that_is_signed_counts(world: World) {
    let both = world.purchase("two-entries", "1");
    let client = guarded(&both).await;
    browse(&client, &both).await;
    assert!(pay(&client, &both, &world.payment(json!({"value": "9000"}))).await.is_ok());
    assert_eq!(both.arrived().await.payments[0].value, "9000");
    let poisoned = world.purchase("second-poisoned", "2");
    let client = guarded(&poisoned).await;
    browse(&client, &poisoned).await;
    let thiefs = world.payment(json!({"to": world.at.stranger, "value": "9000"}));
    let end = pay(&client, &poisoned, &thiefs).await;
    assert_eq!(end, Err((Why::PaymentDenied, vec!["payment-signature-mismatch".into()])));
    assert!(pay(&client, &poisoned, &world.payment(json!({}))).await.is_ok());
    assert_eq!(poisoned.paid().await, [world.at.honest.as_str()]);
}

async fn of_a_payment_that_left_is_handed_out_what_is_to_be_kept(world: World) {
    for (which, value, index) in [("two-entries", "9000", 1), ("asks-again", "10000", 0)] {
        let purchase = world.purchase(which, which);
        let (client, payment) = (guarded(&purchase).await, world.payment(json!({"value": value})));
        browse(&client, &purchase).await;
        assert!(world.kept().is_empty(), "nothing has left");
        let reply = get(&client, &purchase.url, &[("PAYMENT-SIGNATURE", &payment)]).await.expect("it is paid");
        let settlement = reply.headers().get("payment-response").map(|value| value.to_str().expect("text"));
        assert_eq!(settlement.is_some(), which == "two-entries");
        let kept = world.kept();
        let [paid] = kept.as_slice() else { panic!("not one: {kept:?}") };
        assert_eq!((paid.url.as_str(), &paid.payment), (&*purchase.url, &payment));
        assert_eq!(paid.settlement.as_deref(), settlement);
        let Value::Object(decision) = &paid.decision else { panic!("no decision: {}", paid.decision) };
        assert_eq!((&decision["schema"], &decision["abort"]), (&json!("clresolve.decision/1"), &json!(false)));
        // That about what was signed, not the one before it.
        let entries = decision["entries"].as_array().expect("entries");
        assert_eq!(entries.iter().map(|entry| &entry["index"]).collect::<Vec<_>>(), [&json!(index)]);
    }
}

async fn of_a_payment_without_a_reply_it_is_handed_out_too(world: World) {
    let purchase = world.purchase("breaks-off", "1");
    let client = guarded(&purchase).await;
    browse(&client, &purchase).await;
    let thiefs = world.payment(json!({"to": world.at.stranger}));
    assert!(pay(&client, &purchase, &thiefs).await.is_err());
    assert!(world.kept().is_empty(), "nothing has left");
    let payment = world.payment(json!({}));
    let end = client.get(&purchase.url).header("PAYMENT-SIGNATURE", &payment).send().await;
    assert!(Refusal::of(&end.expect_err("the line broke")).is_none());
    let kept = world.kept();
    assert_eq!(kept.iter().map(|paid| (&paid.payment, &paid.settlement)).collect::<Vec<_>>(), [(&payment, &None)]);
}

#[tokio::test]
async fn of_a_payment_that_nobody_waits_for_any_longer_it_is_handed_out_too() {
    let world = World::start().await;
    let purchase = world.purchase("silent", "1");
    let client = guarded(&purchase).await;
    browse(&client, &purchase).await;
    let payment = world.payment(json!({}));
    let sent = tokio::spawn(client.get(&purchase.url).header("PAYMENT-SIGNATURE", &payment).send());
    let arrives = async {
        while purchase.paid().await.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), arrives).await.expect("it arrives");
    assert!(world.kept().is_empty(), "it is still waited for");
    sent.abort();
    assert!(sent.await.expect_err("nobody waits").is_cancelled());
    let kept = world.kept();
    assert_eq!(kept.iter().map(|paid| (&paid.payment, &paid.settlement)).collect::<Vec<_>>(), [(&payment, &None)]);
}

#[tokio::test]
async fn a_function_that_panics_loses_no_reply_and_gets_the_settlement_of_version_1() {
    let world = World::start().await;
    let purchase = world.purchase("v1-honest", "1");
    let (settlements, kept) = std::sync::mpsc::channel();
    let guard = guard(world.config("")).on_paid(move |paid| {
        settlements.send(paid.settlement.clone()).expect("somebody reads");
        panic!("the program's own");
    });
    let client = ClientBuilder::new(OTHER.clone()).with(guard).build();
    browse(&client, &purchase).await;
    let payment = world.payment(json!({}));
    let reply = get(&client, &purchase.url, &[("X-PAYMENT", &payment)]).await.expect("it is paid");
    let settlement = reply.headers()["x-payment-response"].to_str().expect("text");
    assert_eq!(kept.try_iter().collect::<Vec<_>>(), [Some(settlement.to_owned())]);
}

#[tokio::test]
async fn about_one_payment_at_most_32_questions_are_asked() {
    let world = World::start().await;
    let purchase = world.purchase("honest", "1");
    let client = client(world.config(""));
    for _ in 0..33 {
        browse(&client, &purchase).await;
    }
    let thiefs = world.payment(json!({"to": world.at.stranger}));
    let end = pay(&client, &purchase, &thiefs).await;
    assert_eq!(end, Err((Why::PaymentDenied, vec!["payment-signature-mismatch".into()])));
    assert_eq!(purchase.asked().await.iter().filter(|question| question["header"].is_string()).count(), 32);
}

#[tokio::test]
async fn a_daemon_elsewhere_is_asked_over_https_or_signs() {
    let world = World::start().await;
    let refusal = |daemon: &str, signer: Option<Signer>| {
        let config = Config { signer, ..Config::new(daemon, "a.eth", "v") };
        Daemon::new(config).err()
    };
    let keys = || Ed25519KeySet::from_jwks(world.at.jwks.to_string().as_bytes()).expect("keys");
    let signer = || Some(Signer { issuer: world.at.issuer.clone(), keys: keys() });
    for daemon in [
        "http://clresolve.example",
        "http://10.0.0.1:8402",
        "http://127.0.0.1.example",
        "http://localhost.example",
        "http://[::2]",
        "http://0.0.0.0",
        "http://[::ffff:127.0.0.1]",
        "http://128.0.0.1",
    ] {
        assert!(matches!(refusal(daemon, None), Some(ConfigError::Exposed)), "{daemon}");
        assert!(refusal(daemon, signer()).is_none(), "{daemon}");
    }
    for daemon in [
        "http://127.0.0.1:8402",
        "http://127.1.2.3",
        "http://[::1]:8402/behind/a/proxy",
        "http://LOCALHOST",
        "https://clresolve.example",
        "unix:/run/clresolve.sock",
    ] {
        assert!(refusal(daemon, None).is_none(), "{daemon}");
    }
    for daemon in ["http://user@127.0.0.1", "http://127.0.0.1?a", "http://127.0.0.1#a"] {
        assert!(matches!(refusal(daemon, signer()), Some(ConfigError::Daemon)), "{daemon}");
    }
    for daemon in [
        "ftp://127.0.0.1",
        "127.0.0.1",
        "unix:relative",
        "UNIX:/run/clresolve.sock",
        " unix:/run/clresolve.sock",
        "unix\t:/run/clresolve.sock",
    ] {
        assert!(matches!(refusal(daemon, signer()), Some(ConfigError::NotUrl)), "{daemon}");
    }
}

#[tokio::test]
async fn a_daemon_is_reached_over_https_and_over_a_unix_socket() {
    let world = World::start().await;
    let mut secure = world.config("");
    secure.daemon = world.at.secure.clone();
    let free = world.purchase("free", "1");
    assert_refused(get(&client(secure), &free.url, &[]).await, Why::Unavailable, &[]);
    let mut secure = world.config("");
    secure.daemon = world.at.secure.clone();
    secure.ca = Certificate::from_pem(world.at.ca.as_bytes()).ok();
    let mut local = world.config("");
    local.daemon = format!("unix:{}", world.at.socket);
    for (id, config) in [("2", secure), ("3", local)] {
        let (purchase, client) = (world.purchase("honest", id), client(config));
        browse(&client, &purchase).await;
        assert!(pay(&client, &purchase, &world.payment(json!({}))).await.is_ok());
        assert_eq!(purchase.paid().await, [world.at.honest.as_str()]);
    }
}

/// The environment is that of a whole process, so another test runs in one of its own.
#[tokio::test]
async fn proxies_of_the_environment_are_not_asked() {
    let mut test = tokio::process::Command::new(std::env::current_exe().expect("this program"));
    test.args(["--exact", "rules::daemon::a_decision_is_for_one_payment"]);
    for proxy in ["HTTP_PROXY", "http_proxy", "ALL_PROXY"] {
        test.env(proxy, "http://127.0.0.1:9");
    }
    let output = test.output().await.expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[tokio::test]
async fn a_signed_decision_is_checked() {
    let world = World::start().await;
    let signed = |fault: &str| {
        let keys = Ed25519KeySet::from_jwks(world.at.jwks.to_string().as_bytes()).expect("keys");
        let signer = Some(Signer { issuer: world.at.issuer.clone(), keys });
        client(Config { signer, ..world.config(fault) })
    };
    let (purchase, client) = (world.purchase("honest", "1"), signed(""));
    browse(&client, &purchase).await;
    assert!(pay(&client, &purchase, &world.payment(json!({}))).await.is_ok());
    for fault in [
        "unsigned",
        "jws-issuer",
        "jws-backward",
        "jws-fraction",
        "jws-text",
        "jws-padded",
        "jws-parts",
        "jws-space",
        "jws-late",
        "jws-early",
        "jws-long",
        "jws-request",
        "jws-unbound",
        "jws-none",
        "jws-type",
        "jws-crit",
        "jws-jku",
        "jws-kid",
        "jws-key",
        "jws-payload",
    ] {
        let end = get(&signed(&format!("decisions.{fault}")), &purchase.url, &[]).await.map(|_| fault);
        assert_refused(end, Why::Unavailable, &[]);
        let then = signed(&format!("signed.{fault}"));
        browse(&then, &purchase).await;
        let end = pay(&then, &purchase, &world.payment(json!({}))).await;
        assert_eq!(end, Err((Why::Unavailable, vec![])), "{fault}");
    }
    assert_eq!(purchase.paid().await.len(), 1);
}

#[tokio::test]
async fn a_caller_may_decide_in_this_process() {
    use async_trait::async_trait;
    use clresolve_guard::{Guard, PayableEntries, PayableEntry, PaymentDecider, PaymentRequiredResponse};
    use std::time::SystemTime;

    struct Own;
    #[async_trait]
    impl PaymentDecider for Own {
        async fn check_gate(&self) -> Result<(), Refusal> {
            Ok(())
        }
        async fn decide_payable_entries(&self, reply: &PaymentRequiredResponse) -> Result<PayableEntries, Refusal> {
            let asks: Value = serde_json::from_slice(&reply.body).expect("JSON");
            let until = SystemTime::now() + Duration::from_secs(60);
            let entries = if asks["accepts"].is_array() { vec![PayableEntry { entry: 0, until }] } else { vec![] };
            PayableEntries::new(entries)
                .ok_or_else(|| Refusal::new(Why::Denied, ["own-code".into(), "<foreign>".into()]))
        }
        async fn confirm_signed_payment(
            &self,
            _: &PaymentRequiredResponse,
            _: &str,
            entry: usize,
        ) -> Result<Value, Refusal> {
            assert_eq!(entry, 0);
            Ok(Value::Null)
        }
    }
    let world = World::start().await;
    let guard = Guard::new(Own, reqwest::Client::builder().no_proxy()).expect("a client");
    let client = ClientBuilder::new(reqwest::Client::new()).with(guard).build();
    let purchase = world.purchase("v1-honest", "1");
    browse(&client, &purchase).await;
    assert!(pay(&client, &purchase, &world.payment(json!({}))).await.is_ok());
    assert_refused(get(&client, &world.purchase("honest", "2").url, &[]).await, Why::Denied, &["own-code"]);
}
