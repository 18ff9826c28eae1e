//! The description of the routes, held to the daemon; and what holds for every route: slashes, `OPTIONS`, pages.

use std::path::Path;

use clresolve_jose::Ed25519SigningKey;
use clresolve_resolver::config::Config;
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::{BAD, Daemon, GOOD, NO_POLLS, answer, asked_about, rest};
use crate::support::orloj::SYSTEM;

async fn description(daemon: &Daemon) -> Value {
    let answer = daemon.get("/openapi.json").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, "application/json"));
    answer.json()
}

fn members(value: &Value) -> &Map<String, Value> {
    value.as_object().expect("an object")
}

/// Every text that stands under `$ref`.
fn references(value: &Value) -> Vec<String> {
    match value {
        Value::Object(members) => {
            let own = members.get("$ref").and_then(Value::as_str).map(str::to_owned);
            own.into_iter().chain(members.values().flat_map(references)).collect()
        }
        Value::Array(elements) => elements.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

/// Switches on all that adds a route.
fn with_every_route(config: &mut Config, folder: &Path) {
    let (key, resources) = (folder.join("k.pem"), folder.join("orloj.yaml"));
    clresolve_resolver::sign::save_signing_key(&Ed25519SigningKey::generate().expect("a key"), &key).expect("written");
    std::fs::write(&resources, SYSTEM).expect("written");
    config.http.discover = true;
    config.explorer.probe = true;
    // Another world than the sandbox's, which is never signed for.
    config.chain.world = "lab".to_owned();
    config.sign.key = Some(key);
    config.sign.issuer = Some("https://clresolve.example".to_owned());
    config.mcp.hosts = vec!["127.0.0.1".to_owned()];
    config.orloj.resources = vec![resources];
    config.orloj.base_url = Some("https://orloj.example".parse().expect("a URL"));
}

/// Whether a document is what a schema of the description says.
fn fits(description: &Value, schema: &Value, document: &Value) -> Result<(), String> {
    let schema = json!({"allOf": [schema], "components": description["components"]});
    jsonschema::validator_for(&schema).expect("a schema").validate(document).map_err(|error| error.to_string())
}

/// A path as it is asked, for one that is described.
fn sent_for(path: &str) -> String {
    let sent = path.replace("/v1/agent-systems/{name}", "/v1/agent-systems/research").replace("{name}", GOOD);
    sent.replace("{verb}", "summarize").replace("{code}", "overloaded").replace("{ignored}", "x")
}

/// Asks one operation, and holds the answer to its description.
async fn holds_to(daemon: &Daemon, description: &Value, (path, method): (&str, &str), accept: &str) {
    let operation = &description["paths"][path][method];
    let sent = sent_for(path);
    let method = Method::from_bytes(method.to_uppercase().as_bytes()).expect("a method");
    let got = answer(daemon.request(method.clone(), &sent).header("accept", accept)).await;
    assert!(got.status != 404 && got.status != 405, "{method} {path}: {}", got.status);
    is_as_described(description, (operation, &format!("{method} {path}")), &got);
}

/// Holds an answer to the description of its operation.
fn is_as_described(description: &Value, (operation, asked): (&Value, &str), got: &super::HttpResponse) {
    let described = &operation["responses"][got.status.to_string()];
    assert!(described.is_object(), "{asked}: {}", got.status);
    let media = got.header("content-type").split(';').next().unwrap_or_default();
    assert!(got.body.is_empty() || described["content"][media].is_object(), "{asked}: {media}");
    if media.ends_with("json") && media != "application/x-ndjson" && !got.body.is_empty() {
        let fits = fits(description, &described["content"][media]["schema"], &got.json());
        assert_eq!(fits, Ok(()), "{asked}: {}", got.json());
    }
    let headers: Vec<_> = described["headers"].as_object().into_iter().flat_map(Map::keys).collect();
    for sent in got.headers.keys().map(reqwest::header::HeaderName::as_str).filter(|name| is_own(name)) {
        assert!(headers.iter().any(|known| known.eq_ignore_ascii_case(sent)), "{asked} sends {sent}");
    }
}

/// Whether a header says something that is peculiar to its route, and not how any answer is sent, shown or stored.
fn is_own(header: &str) -> bool {
    ![
        "cache-control",
        "connection",
        "content-length",
        "content-security-policy",
        "content-type",
        "date",
        "referrer-policy",
        "transfer-encoding",
        "vary",
        "x-accel-buffering",
        "x-content-type-options",
    ]
    .contains(&header)
}

/// What is refused, and what is open, says when to ask again, and a verdict that stands against a card says which.
#[tokio::test(flavor = "multi_thread")]
async fn refusals_and_objections_are_as_described() {
    let daemon = Daemon::start(|config| config.http.cold_runs_per_minute = 2).await;
    let description = description(&daemon).await;
    let cards = "/v1/cards/{name}";
    for (path, name, status, pause) in [
        ("/v1/verdicts/{name}", "cid-unproven.eth", 200, "1"),
        (cards, BAD, 409, ""),
        (cards, GOOD, 429, "60"),
        ("/v1/agents/{name}/.well-known/agent-card.json", BAD, 409, ""),
    ] {
        let got = daemon.get(&path.replace("{name}", name)).await;
        assert_eq!((got.status, got.header("retry-after")), (status, pause), "{path}");
        is_as_described(&description, (&description["paths"][path]["get"], path), &got);
    }
    let objection = &description["paths"][cards]["get"]["responses"]["409"]["content"]["application/problem+json"];
    let mut said = daemon.get(&cards.replace("{name}", BAD)).await.json();
    said.as_object_mut().expect("an object").remove("verdict");
    assert!(fits(&description, &objection["schema"], &said).is_err(), "{said}");

    let media = "application/x-ndjson";
    let lines = daemon.post("application/json", json!({"names": [BAD, GOOD]}).to_string()).await;
    let batch = &description["paths"]["/v1/verdicts"]["post"]["responses"]["200"]["content"][media]["schema"];
    let mut refused = Vec::new();
    for line in lines.lines() {
        assert_eq!(fits(&description, &batch["contentSchema"], &line), Ok(()), "{line}");
        let name = line["name"].as_str();
        refused.extend(name.map(|name| (name.to_owned(), line["code"].clone(), line["retry_after"].clone())));
    }
    assert_eq!(refused, [(GOOD.to_owned(), json!("client-over-quota"), json!(60))]);
    let counted = String::from_utf8(daemon.get("/metrics").await.body).expect("UTF-8");
    assert!(counted.contains("\nclresolve_http_refusals_total{code=\"client-over-quota\"} "), "{counted}");
}

/// While a run of the client holds its only place, each route says so, but health, which needs none.
#[tokio::test(flavor = "multi_thread")]
async fn what_any_route_may_refuse_with_is_described() {
    let folder = tempfile::tempdir().expect("a folder");
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let node = format!("http://{}", silent.local_addr().expect("an address"));
    let daemon = Daemon::start(|config| {
        with_every_route(config, folder.path());
        config.http.requests = 4;
        config.chain.endpoints[0].url = node.parse().expect("a URL");
        config.chain.head_poll = NO_POLLS;
    })
    .await;
    let description = description(&daemon).await;
    let operations = || {
        let of_gate = |path: &str| path.starts_with("/v1/gate/") || path.starts_with("/v1/envoy/");
        let paths = members(&description["paths"]).iter().filter(move |(path, _)| !of_gate(path));
        paths.flat_map(|(path, item)| members(item).keys().map(move |method| (path.as_str(), method.as_str())))
    };
    for (path, method) in operations() {
        let head = format!("{} {} HTTP/1.1\r\nhost: x\r\n", method.to_uppercase(), sent_for(path));
        let two_lengths = "content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n";
        let said = rest(daemon.raw(head + two_lengths).await).await;
        assert!(said.starts_with("HTTP/1.1 400 "), "{method} {path}: {said}");
        let described = &description["paths"][path][method]["responses"]["400"]["content"]["application/problem+json"];
        let problem = serde_json::from_str(said.split_once("\r\n\r\n").expect("a body").1).expect("JSON");
        assert!(described.is_object(), "{method} {path}");
        assert_eq!(fits(&description, &described["schema"], &problem), Ok(()), "{method} {path}: {problem}");
    }

    let _run = daemon.raw(format!("GET /v1/verdicts/{BAD} HTTP/1.1\r\nhost: x\r\n\r\n")).await;
    let _node = asked_about(&silent, BAD).await;
    for (path, _) in operations().filter(|(_, method)| *method == "get") {
        let got = daemon.get(&sent_for(path)).await;
        let is_health = ["/livez", "/readyz", "/metrics"].contains(&path);
        assert_eq!(got.status == 429, !is_health, "{path}: {}", got.status);
        is_as_described(&description, (&description["paths"][path]["get"], path), &got);
        let described = &description["paths"][path]["get"]["responses"];
        assert_eq!(described["429"].is_object(), !is_health, "{path}");
    }
}

/// The data of each event, with its name.
fn data(events: &[u8]) -> Vec<(String, Value)> {
    let lines: Vec<&str> = std::str::from_utf8(events).expect("UTF-8").lines().collect();
    let event = |two: &[&str]| {
        let (kind, data) = (two[0].strip_prefix("event: ")?, two[1].strip_prefix("data: ")?);
        Some((kind.to_owned(), serde_json::from_str(data).expect("JSON")))
    };
    lines.windows(2).filter_map(event).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_a_walk_have_the_form_that_is_described() {
    let daemon = Daemon::start(|_| {}).await;
    let description = description(&daemon).await;
    let form = |path: &str| {
        let answer = &description["paths"][path]["get"]["responses"]["200"];
        answer["content"]["text/event-stream"]["schema"]["contentSchema"].clone()
    };
    let (event, change) = (form("/v1/verdicts/{name}"), form("/v1/events"));
    let watched = daemon.request(Method::GET, &format!("/v1/verdicts/{GOOD}")).header("accept", "text/event-stream");
    let told = data(&answer(watched).await.body);
    let (last, steps) = told.split_last().expect("events");
    assert!(last.0 == "verdict" && steps.len() > 15, "{told:?}");
    assert_eq!(fits(&description, &event, &last.1), Ok(()), "{}", last.1);
    let problem = daemon.get("/v1/verdicts/a.eth?depth=deep").await.json();
    assert_eq!(fits(&description, &event, &problem), Ok(()), "{problem}");
    let evicted = json!({"name": "a.eth", "at": "2026-01-02T03:04:05.678Z"});
    assert_eq!(fits(&description, &change, &evicted), Ok(()));
    for of_walk in [&steps[0].1, &last.1, &problem] {
        assert!(fits(&description, &change, of_walk).is_err(), "{of_walk}");
    }
    for (kind, data) in steps {
        assert_eq!((kind.as_str(), fits(&description, &event, data)), ("step", Ok(())), "{data}");
    }
    for wrong in [
        json!({"step": "records", "status": "judged"}),
        json!({"step": "records", "status": "began", "result": "pass"}),
        json!({"name": "a.eth"}),
        evicted,
        json!({}),
    ] {
        assert!(fits(&description, &event, &wrong).is_err(), "{wrong}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_that_is_described_is_answered_and_each_reference_leads_somewhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let daemon = Daemon::start(|config| with_every_route(config, folder.path())).await;
    let description = description(&daemon).await;
    assert_eq!(description["openapi"], "3.1.0");
    let paths = members(&description["paths"]);
    for path in ["/mcp", "/v1/discover", "/v1/probes", "/.well-known/jwks.json", "/.well-known/agent-card.json"] {
        assert!(paths.contains_key(path), "{path}");
    }
    for (path, item) in members(&description["paths"]) {
        for method in members(item).keys() {
            for accept in ["*/*", "application/jose"] {
                holds_to(&daemon, &description, (path, method), accept).await;
            }
        }
    }
    for reference in references(&description) {
        let place = reference.strip_prefix('#').expect("a place in the description");
        assert!(description.pointer(place).is_some(), "{reference}");
    }
}

/// Operations whose JSON responses have no example: documents by third parties, and lists that the daemon generates.
const NO_EXAMPLE: [&str; 5] = ["agentCard", "card", "openapi", "profiles", "reasons"];

/// The sandbox accepts the example requests, and the example responses match their schemas.
#[tokio::test(flavor = "multi_thread")]
async fn every_operation_has_a_tag_and_examples_that_hold() {
    let daemon = Daemon::start(|_| {}).await;
    let description = description(&daemon).await;
    assert_eq!(description["servers"][0]["url"], "/");
    let tags: Vec<&Value> = description["tags"].as_array().expect("tags").iter().map(|tag| &tag["name"]).collect();
    let mut examples = 0;
    let operations = members(&description["paths"]).iter();
    for (path, operation) in operations.flat_map(|(path, item)| members(item).values().map(move |one| (path, one))) {
        assert!(tags.contains(&&operation["tags"][0]), "{path}: {}", operation["tags"]);
        for parameter in operation["parameters"].as_array().expect("a list") {
            assert_eq!(parameter["in"] == "path", parameter["example"].is_string(), "{path}: {parameter}");
        }
        let is_exempt = NO_EXAMPLE.iter().any(|id| operation["operationId"] == *id);
        let answered = &operation["responses"]["200"]["content"]["application/json"];
        for body in [&operation["requestBody"]["content"]["application/json"], answered] {
            assert_eq!(body.is_object() && !is_exempt, body["example"].is_object(), "{path}: {body}");
            if body["example"].is_object() {
                assert_eq!(fits(&description, &body["schema"], &body["example"]), Ok(()), "{path}");
                examples += 1;
            }
        }
        let request = &operation["requestBody"]["content"]["application/json"]["example"];
        if request.is_object() {
            let posted = daemon.request(Method::POST, path).header("content-type", "application/json");
            let got = answer(posted.body(request.to_string())).await;
            assert_eq!(got.status, 200, "{path}: {}", String::from_utf8_lossy(&got.body));
            is_as_described(&description, (operation, path), &got);
        }
    }
    assert!(examples > 10, "{examples}");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_have_the_form_that_is_described() {
    let daemon = Daemon::start(|_| {}).await;
    let description = description(&daemon).await;
    let holds = |component: &str, document: &Value| {
        fits(&description, &json!({"$ref": format!("#/components/schemas/{component}")}), document)
    };
    let verdict = daemon.get(&format!("/v1/verdicts/{GOOD}")).await.json();
    let problem = daemon.get("/v1/verdicts/a.eth?depth=deep").await.json();
    assert_eq!((holds("Verdict", &verdict), holds("Problem", &problem)), (Ok(()), Ok(())));
    assert!(holds("Verdict", &problem).is_err() && holds("Problem", &verdict).is_err());
    let reason = daemon.get("/v1/reasons/cid-mismatch").await.json();
    assert_eq!(holds("Reason", &reason), Ok(()));
    assert!(holds("Reason", &json!({"code": "cid-mismatch", "title": "", "type": "", "more": 1})).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_found_in_a_card_has_the_form_that_is_described() {
    let daemon = Daemon::start(|_| {}).await;
    let description = description(&daemon).await;
    let schema = &description["paths"]["/v1/lint"]["post"]["responses"]["200"]["content"]["application/json"]["schema"];
    let good = daemon.get(&format!("/v1/cards/{GOOD}")).await.body;
    for (card, is_valid) in [(good, true), (br#"{"ens": "a.eth"}"#.to_vec(), false), (b"{}".to_vec(), false)] {
        let lint = daemon.request(Method::POST, "/v1/lint").header("content-type", "application/json");
        let found = answer(lint.body(card)).await.json();
        assert_eq!(found["valid"], is_valid, "{found}");
        assert_eq!(fits(&description, schema, &found), Ok(()), "{found}");
    }
    assert!(fits(&description, schema, &json!({"valid": true, "findings": [{}]})).is_err());
}

/// A client that is made from the description can send what the documents show, and each limit as the daemon reads it.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_about_a_payment_has_the_form_that_is_described() {
    let daemon = Daemon::start(|_| {}).await;
    let description = description(&daemon).await;
    let body = &description["paths"]["/v1/decisions"]["post"]["requestBody"];
    let schema = &body["content"]["application/json"]["schema"];
    let blocks = include_str!("../../../docs/pay.md").split("```json\n").skip(1);
    let shown = blocks.filter_map(|block| block.split("```").next()).find(|block| block.contains("\"limits\""));
    let shown = shown.expect("a question with limits");
    let mut question: Value = serde_json::from_str(shown).expect("JSON");
    assert_eq!(fits(&description, schema, &question), Ok(()));
    let asset = "0x036CbD53842c5426634e7929541eC2318f3dCF7e";
    for (limits, is_read) in [
        (json!({"maxAmount": "1", "maxTimeoutSeconds": 60}), true),
        (json!({"max_amount": "1", "max_timeout_seconds": 60}), true),
        (json!({"maxTimeoutSeconds": 60.0}), true),
        (json!({"maxTimeoutSeconds": 60.5}), false),
        (json!({"max_amount": "1", "maxAmount": "1"}), false),
        (json!({"max_timeout_seconds": 60, "maxTimeoutSeconds": 60}), false),
        (json!({"networks": ["eip155:1"], "schemes": ["exact"]}), true),
        (json!({"assets": {"eip155:84532": [asset]}}), true),
        (json!({"assets": {"eip155:84532": {asset: "10"}}}), true),
        (json!({"assets": {"eip155:84532": {asset: 10}}}), false),
        (json!({"assets": {"eip155:84532": ["USDC"]}}), false),
        (json!({"most": "1"}), false),
    ] {
        question["limits"] = limits;
        let asked = daemon.request(Method::POST, "/v1/decisions").header("content-type", "application/json");
        let asked = asked.body(question.to_string());
        let status = answer(asked).await.status;
        assert_eq!((status == 200, fits(&description, schema, &question).is_ok()), (is_read, is_read), "{question}");
    }
    question["limits"] = Value::Null;
    for (status, is_read) in [(json!(402.0), true), (json!(402.5), false), (json!(65536), false)] {
        question["response"]["status"] = status;
        let asked = daemon.request(Method::POST, "/v1/decisions").header("content-type", "application/json");
        let answered = answer(asked.body(question.to_string())).await.status;
        assert_eq!((answered == 200, fits(&description, schema, &question).is_ok()), (is_read, is_read), "{question}");
    }
}

/// The names of all members of a document.
fn names_in(document: &Value) -> Vec<&str> {
    match document {
        Value::Object(members) => {
            members.iter().flat_map(|(name, below)| [name.as_str()].into_iter().chain(names_in(below))).collect()
        }
        Value::Array(items) => items.iter().flat_map(names_in).collect(),
        _ => Vec::new(),
    }
}

/// A client that fills in a default could send two members that exclude each other, and our names of types are no
/// titles.
#[tokio::test(flavor = "multi_thread")]
async fn no_question_has_a_default_or_the_name_of_a_type() {
    let daemon = Daemon::start(|_| {}).await;
    let description = description(&daemon).await;
    let bodies: Vec<_> = members(&description["paths"]).values().map(|item| &item["post"]["requestBody"]).collect();
    assert!(bodies.iter().filter(|body| !body.is_null()).count() >= 7, "{bodies:?}");
    for body in bodies {
        let names = names_in(body);
        assert!(!names.contains(&"default") && !names.contains(&"title"), "{body}");
    }
}

/// What the daemon reads is what its description permits.
#[tokio::test(flavor = "multi_thread")]
async fn every_question_has_the_form_that_is_described() {
    let daemon = Daemon::start(|_| {}).await;
    let description = description(&daemon).await;
    let with = |mut question: Value, further: Value| {
        question.as_object_mut().expect("an object").extend(members(&further).clone());
        question
    };
    let asked = |further| with(json!({"name": GOOD, "verb": "summarize"}), further);
    let batch = |further| with(json!({"names": [GOOD]}), further);
    let receipt = |further| with(json!({"name": GOOD}), further);
    let terms = json!({"x402Version": 2, "accepts": []});
    let about_terms = |header: Value| asked(json!({"paymentRequired": terms, "header": header}));
    let about_reply = |body: Value, base64: Value| {
        let response = json!({"status": 402, "url": "https://a.example/", "body": body, "body_base64": base64});
        asked(json!({"response": response, "paymentRequired": null}))
    };
    let (decisions, signed, receipts) = ("/v1/decisions", "/v1/decisions/signed", "/v1/receipts/verify");
    for (path, question, is_read) in [
        ("/v1/verdicts", batch(json!({"profile": null, "depth": null})), true),
        ("/v1/verdicts", batch(json!({"depth": "schemas"})), true),
        ("/v1/verdicts", batch(json!({"depth": "deep"})), false),
        ("/v1/verdicts", batch(json!({"names": []})), false),
        ("/v1/verdicts", batch(json!({"names": vec![GOOD; 101]})), false),
        ("/v1/verdicts", batch(json!({"another": 1})), false),
        (decisions, about_terms(Value::Null), true),
        (decisions, about_terms(json!("x")), false),
        (signed, about_terms(json!("x")), true),
        (signed, about_terms(Value::Null), false),
        (decisions, asked(json!({"paymentRequired": terms, "response": null, "url": "https://a.example/"})), true),
        (decisions, asked(json!({"paymentRequired": null, "response": null})), false),
        (decisions, asked(json!({})), false),
        (decisions, about_reply(Value::Null, json!("e30=")), true),
        (decisions, about_reply(Value::Null, json!("e30")), false),
        (decisions, about_reply(json!("{}"), Value::Null), true),
        (decisions, about_reply(json!("{}"), json!("e30=")), false),
        (receipts, receipt(json!({"receipt": null})), true),
        (receipts, receipt(json!({"receipt": {}, "receipt_text": null, "request": {}})), true),
        (receipts, receipt(json!({"receipt_text": "no JSON"})), true),
        (receipts, receipt(json!({"receipt": null, "receipt_text": "{}"})), false),
        (receipts, receipt(json!({"receipt_text": null})), false),
        (receipts, receipt(json!({"receipt": {}, "request": []})), false),
        ("/v1/requests/check", asked(json!({"request": null})), true),
        ("/v1/requests/check", asked(json!({})), false),
        ("/v1/probes", asked(json!({})), true),
        ("/v1/probes", asked(json!({"another": 1})), false),
    ] {
        let operation = &description["paths"][path]["post"];
        let body = &operation["requestBody"]["content"]["application/json"]["schema"];
        let posted = daemon.request(Method::POST, path).header("content-type", "application/json");
        let got = answer(posted.body(question.to_string())).await;
        is_as_described(&description, (operation, path), &got);
        assert_eq!(
            (got.status == 200, fits(&description, body, &question).is_ok()),
            (is_read, is_read),
            "{path} {question}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switched_off_route_is_not_described() {
    let daemon = Daemon::start(|config| config.explorer.probe = false).await;
    let paths = members(&description(&daemon).await["paths"]).clone();
    assert!(!paths.contains_key("/v1/discover") && !paths.contains_key("/v1/probes"));
    assert!(!paths.contains_key("/.well-known/jwks.json"));
    for (path, switch) in [("/v1/discover/", "http.discover"), ("/v1/probes", "explorer.probe")] {
        let refused = daemon.get(path).await;
        refused.is_problem(404, "route-unknown");
        let detail = refused.json()["detail"].to_string();
        assert!(detail.contains(&format!("switched off; {switch}")), "{detail}");
    }
    assert!(paths.contains_key("/openapi.json") && paths.contains_key("/v1/envoy/{name}/{verb}/{ignored}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_code_is_explained_and_a_slash_at_the_end_changes_nothing() {
    let daemon = Daemon::start(|_| {}).await;
    for code in ["cid-mismatch", "overloaded", "overloaded/"] {
        let entry = daemon.get(&format!("/v1/reasons/{code}")).await.json();
        assert_eq!(entry["type"], format!("urn:clresolve:reason:{}", code.trim_end_matches('/')));
    }
    daemon.get("/v1/reasons/no-such-code").await.is_problem(404, "route-unknown");
    for path in
        [format!("/v1/verdicts/{GOOD}/"), format!("/v1/cards/{GOOD}/"), "/v1/profiles/".into(), "/livez/".into()]
    {
        assert_eq!(daemon.get(&path).await.status, 200, "{path}");
    }
    daemon.get(&format!("/v1/verdicts/{GOOD}//")).await.is_problem(404, "route-unknown");
}

#[tokio::test(flavor = "multi_thread")]
async fn options_and_head_are_answered_as_people_expect() {
    let with_pages = Daemon::start(|config| config.cors.origins = vec!["https://app.example".to_owned()]).await;
    let daemon = Daemon::start(|_| {}).await;
    for (daemon, origin) in [(&daemon, ""), (&with_pages, ""), (&with_pages, "https://app.example")] {
        let options = answer(daemon.request(Method::OPTIONS, "/v1/lint").header("origin", origin)).await;
        assert_eq!((options.status, options.header("allow"), &*options.body), (204, "POST", &b""[..]), "{origin}");
    }
    let options = answer(daemon.request(Method::OPTIONS, &format!("/v1/verdicts/{GOOD}"))).await;
    assert_eq!((options.status, options.header("allow")), (204, "GET,HEAD"));
    answer(daemon.request(Method::OPTIONS, "/v1/nothing")).await.is_problem(404, "route-unknown");

    let path = format!("/v1/cards/{GOOD}");
    let (get, head) = (daemon.get(&path).await, answer(daemon.request(Method::HEAD, &path)).await);
    assert_eq!((head.status, head.header("etag"), head.body.len()), (200, get.header("etag"), 0));
    assert_eq!(head.header("content-length"), get.body.len().to_string());
}

/// A page, as a browser names it.
const PAGE: &str = "https://app.example";

/// The header that lets a page read an answer.
const PERMITTED: &str = "access-control-allow-origin";

/// What a browser asks before it sends a page's request.
async fn preflight(daemon: &Daemon, path: &str, origin: &str) -> super::HttpResponse {
    let request = daemon.request(Method::OPTIONS, path).header("origin", origin);
    answer(request.header("access-control-request-method", "GET")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_configured_origins_may_read_and_the_gate_has_no_part_in_it() {
    let verdict = format!("/v1/verdicts/{GOOD}");
    let closed = Daemon::start(|_| {}).await;
    assert_eq!(preflight(&closed, &verdict, PAGE).await.header(PERMITTED), "");

    let daemon = Daemon::start(|config| config.cors.origins = vec![PAGE.to_owned()]).await;
    let asked = preflight(&daemon, &verdict, PAGE).await;
    assert_eq!((asked.status, asked.header(PERMITTED)), (200, PAGE));
    assert_eq!(preflight(&daemon, &verdict, "https://evil.example").await.header(PERMITTED), "");
    let read = answer(daemon.request(Method::GET, &verdict).header("origin", PAGE)).await;
    assert_eq!((read.status, read.header(PERMITTED)), (200, PAGE));
    assert!(read.header("access-control-expose-headers").contains("etag"));

    for path in ["/v1/gate/entry-version.eth", "/v1/gate/", "/v1/envoy/entry-version.eth/summarize/x", "//v1/gate/a"] {
        let asked = preflight(&daemon, path, PAGE).await;
        assert!(asked.status >= 400 && asked.header(PERMITTED).is_empty(), "{path}: {}", asked.status);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_any_origin_may_read_where_that_is_configured_and_the_gate_has_no_part_in_it() {
    let daemon = Daemon::start(|config| config.cors.origins = vec!["*".to_owned()]).await;
    for (face, permitted) in [("verdicts", "*"), ("gate", "")] {
        let path = format!("/v1/{face}/{GOOD}");
        let read = answer(daemon.request(Method::GET, &path).header("origin", PAGE)).await;
        assert_eq!((read.status, read.header(PERMITTED)), (200, permitted), "{path}");
        let asked = preflight(&daemon, &path, PAGE).await;
        assert_eq!((asked.status, asked.header(PERMITTED)), (200, permitted), "{path}");
    }
}
