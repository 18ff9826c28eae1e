//! The parameters and responses of every method of every route.

use axum::http::StatusCode;
use clresolve_bundle::signed::MEDIA_TYPE;
use clresolve_cards::system::CardSystem;
use clresolve_core::reason::Refusal;
use clresolve_core::schema::{read_as, written_of};
use clresolve_messages::receipt::ReceiptQuestion;
use clresolve_messages::request::RequestQuestion;
use clresolve_payment::DecisionRequest;
use clresolve_payment::check::CheckRequest;
use clresolve_verdict::profile::Profiles;
use clresolve_verdict::verdict::Depth;
use serde_json::{Value, json};

use super::components::Component;
use super::operation::{Operation, RETRY_AFTER, Tag};
use crate::http::probes::ProbeQuestion;
use crate::http::verdicts::Batch;
use crate::http::{discover, events, explorer, gate_path, lint, problem, system_cards, verdicts};
use crate::registries::ProfileList;

/// The methods with which a proxy may call the gate.
const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/// Descriptions of parameters and headers that several routes share.
const PROFILE: &str = "Profile of rules; the configured one by default.";
const DEPTH: &str = "Depth of the resolution; the configured one by default.";
const CACHE_STATUS: &str = "Whether the cache answered (RFC 9211).";
const ANEW: &str =
    "`no-cache` forces a new resolution, at most once per question in 10 s; it has no effect on event streams.";
const AGE: &str = "Seconds since the body was made.";
const SYSTEM: &str = "System of the card; detected by default.";

const TEXT: &str = "text/plain";

const HTML: &str = "text/html";

/// `/v1/gate/{name}`
pub(in crate::http) fn gate_for_name() -> Vec<Operation> {
    gate(|operation| with_network(with_name(operation)))
}

/// `/v1/gate/{name}/{verb}`
pub(in crate::http) fn gate_for_verb() -> Vec<Operation> {
    gate(|operation| with_network(with_verb(with_name(operation))))
}

/// `/v1/envoy/{name}/{verb}`
pub(in crate::http) fn envoy() -> Vec<Operation> {
    gate(|operation| with_verb(with_name(operation)))
}

/// `/v1/envoy/{name}/{verb}/{*ignored}`
pub(in crate::http) fn envoy_for_path() -> Vec<Operation> {
    gate(|operation| {
        with_verb(with_name(operation)).segment("ignored", "Path of the request being judged; ignored.", "v1")
    })
}

/// An operation for every method of a gate path.
fn gate(describe: impl Fn(Operation) -> Operation) -> Vec<Operation> {
    let one = |method| {
        describe(Operation::bare(Tag::Ask, method, "Decide whether a request to the agent may pass"))
            .answers_bare(StatusCode::OK, "The request may pass.")
            .answers_bare(StatusCode::FORBIDDEN, "The request may not pass; Clresolve-Code gives the reason.")
            .with_header("Clresolve-State", "State of the verdict, if there is one.")
            .with_header("Clresolve-Code", "Code of the first reason for the denial.")
            .with_header("Clresolve-Verdict", "The verdict's id.")
            .with_header("Clresolve-Card-Sha256", "The SHA-256 of a trusted agent's card, in hex.")
    };
    METHODS.into_iter().map(one).collect()
}

pub(in crate::http) fn explorer(profiles: &Profiles) -> Operation {
    let refusals = [
        Refusal::RequestMalformed,
        Refusal::ProfileUnknown,
        Refusal::ClientOverQuota,
        Refusal::Overloaded,
        Refusal::RunOverdue,
        Refusal::InternalError,
    ];
    let [name, profile, depth] = explorer::PARAMETERS;
    let page = Operation::get(Tag::Ask, "explorer", "The explorer, a page that shows a verdict")
        .query(name, "ENS name of the agent, or the URL of a seller if the daemon may ask sellers; without it the page is empty.", text())
        .query(profile, PROFILE, one_of(ids(profiles).chain([""])))
        .query(depth, DEPTH, one_of(depths().chain([""])))
        .answers(StatusCode::OK, "The page.", HTML, text());
    let refused = |page: Operation, refusal| page.answers(problem::status(refusal), refusal.title(), HTML, text());
    refusals.into_iter().fold(page, refused).runs().refuses(&refusals)
}

pub(in crate::http) fn explorer_style() -> Operation {
    Operation::get(Tag::Ask, "explorerStyle", "Style sheet of the explorer")
        .answers(StatusCode::OK, "CSS.", "text/css", text())
        .tagged()
}

pub(in crate::http) fn explorer_script() -> Operation {
    let meaning = "JavaScript.";
    Operation::get(Tag::Ask, "explorerScript", "Script of the explorer")
        .answers(StatusCode::OK, meaning, "text/javascript", text())
        .tagged()
}

pub(in crate::http) fn verdict(profiles: &Profiles) -> Operation {
    let meaning = "The verdict, whatever its state.";
    let [profile, depth] = verdicts::PARAMETERS;
    with_name(Operation::get(Tag::Ask, "verdict", "Verdict on a name"))
        .query(profile, PROFILE, one_of(ids(profiles).chain([""])))
        .query(depth, DEPTH, one_of(depths().chain([""])))
        .parameter(json!({"name": "Cache-Control", "in": "header", "description": ANEW, "schema": text()}))
        .answers_json(Component::Verdict.reference(), meaning)
        .answers(StatusCode::OK, meaning, MEDIA_TYPE, text())
        .answers_many(meaning, "text/event-stream", Component::WalkEvent)
        .cached()
        .with_header(RETRY_AFTER, "Seconds after which to ask again, where it could not be decided.")
        .tagged()
        .runs()
        .refuses(&[Refusal::ProfileUnknown, Refusal::NotAcceptable])
}

pub(in crate::http) fn batch(profiles: &Profiles) -> Operation {
    let mut body = read_as::<Batch>();
    body["properties"]["profile"]["enum"] = one_of_or_null(ids(profiles));
    body["properties"]["depth"]["enum"] = one_of_or_null(depths());
    Operation::post(Tag::Ask, "verdicts", "Verdicts on many names")
        .takes(body)
        .answers_many("One verdict or problem per line.", "application/x-ndjson", Component::Line)
        .runs()
        .refuses(&[Refusal::ProfileUnknown])
}

pub(in crate::http) fn events() -> Operation {
    let names = json!({"type": "array", "items": text(), "minItems": 1, "maxItems": events::MAX_NAMES});
    let (name, last) =
        ("ENS names of agents; repeat the parameter for each.", "Id of the last event received, to resume from.");
    Operation::get(Tag::Ask, "events", "Stream changes of the verdicts on names")
        .parameter(
            json!({"name": events::PARAMETER, "in": "query", "required": true, "description": name, "schema": names}),
        )
        .parameter(json!({"name": "Last-Event-ID", "in": "header", "description": last, "schema": text()}))
        .answers_many("Events, as they happen.", "text/event-stream", Component::Event)
        .refuses(&[Refusal::Draining])
}

pub(in crate::http) fn card() -> Operation {
    with_name(Operation::get(Tag::Ask, "card", "Exact verified bytes of a trusted agent's card"))
        .answers_json(json!({"type": "object"}), "The card, as it was published.")
        .with_header("Repr-Digest", "SHA-256 of the card (RFC 9530).")
        .cached()
        .tagged()
        .not_trusted()
        .runs()
}

pub(in crate::http) fn agent_card() -> Operation {
    with_name(Operation::get(Tag::Ask, "agentCard", "Card of a trusted agent, converted to A2A 1.0"))
        .answers_json(json!({"type": "object"}), "An A2A 1.0 card.")
        .cached()
        .tagged()
        .not_trusted()
        .runs()
}

pub(in crate::http) fn check() -> Operation {
    Operation::post(Tag::Pay, "check", "Check who is paid by payment terms, and what proves it")
        .takes(CheckRequest::schema())
        .answers_json(Component::Check.reference(), "The check, with its evidence. Pay only where `abort` is false.")
        .runs()
}

pub(in crate::http) fn decide() -> Operation {
    let none = json!({"type": "null"});
    let question = with_header(&none, &[]);
    Operation::post(Tag::Pay, "decide", "Decide whether payment terms may be paid").takes(question).answers_decision()
}

pub(in crate::http) fn decide_signed() -> Operation {
    let header = json!({"type": "string", "description": "The payment header about to be sent."});
    let question = with_header(&header, &["header"]);
    Operation::post(Tag::Pay, "decideSigned", "Check a signed payment against the decision before it is sent")
        .takes(question)
        .answers_decision()
}

pub(in crate::http) fn probe() -> Operation {
    let terms = or_null(json!({"type": "object", "required": ["x402Version", "accepts"]}));
    let answer = json!({
        "type": "object",
        "properties": {"terms": terms, "decision": Component::Decision.reference()},
        "required": ["terms", "decision"],
    });
    Operation::post(Tag::Pay, "probe", "Fetch the payment terms of an agent without paying, and decide on them")
        .takes(read_as::<ProbeQuestion>())
        .answers_json(answer, "The seller's terms, and the decision. Nothing was paid.")
        .runs()
}

pub(in crate::http) fn check_request() -> Operation {
    Operation::post(Tag::Pay, "checkRequest", "Check a request against the agent's schema")
        .takes(RequestQuestion::schema())
        .answers_json(Component::Request.reference(), "The findings, each with its place.")
        .runs()
}

pub(in crate::http) fn verify_receipt() -> Operation {
    Operation::post(Tag::Pay, "verifyReceipt", "Verify a receipt")
        .takes(ReceiptQuestion::schema())
        .answers_json(Component::Receipt.reference(), "The findings, check by check.")
        .answers(StatusCode::OK, "The same, signed.", MEDIA_TYPE, text())
        .runs()
        .refuses(&[Refusal::NotAcceptable])
}

pub(in crate::http) fn mcp() -> Operation {
    let message = || json!({"type": "object", "description": "A message of the Model Context Protocol, in JSON-RPC."});
    Operation::post(Tag::Operate, "mcp", "Model Context Protocol: the same operations as tools for agents")
        .takes(message())
        .answers_json(message(), "The answer, or an error.")
        .answers_bare(StatusCode::ACCEPTED, "The notification was accepted.")
        .answers(StatusCode::BAD_REQUEST, "Not a valid message.", "application/json", message())
        .answers(StatusCode::NOT_FOUND, "Unknown method.", "application/json", message())
        .refuses(&[Refusal::HostUnexpected, Refusal::NotAcceptable])
}

pub(in crate::http) fn lint(profiles: &Profiles) -> Operation {
    let [system, profile] = lint::PARAMETERS;
    Operation::post(Tag::Publish, "lint", "Validate a card of any system")
        .query(system, SYSTEM, systems())
        .query(profile, PROFILE, one_of(ids(profiles)))
        .takes(json!({}))
        .answers_json(card_judgement(), "The findings.")
        .answers_problem(StatusCode::UNPROCESSABLE_ENTITY, "The card exceeds a limit of validation.")
        .runs()
        .refuses(&[Refusal::ProfileUnknown])
}

pub(in crate::http) fn discover() -> Operation {
    let [url, card_system, system, bind] = discover::PARAMETERS;
    let url =
        json!({"name": url, "in": "query", "required": true, "description": "URL of the host.", "schema": text()});
    Operation::get(Tag::Ask, "discover", "Find and validate the cards of a host")
        .parameter(url)
        .query(card_system, SYSTEM, systems())
        .query(system, "Name of the AgentSystem, if the host serves several.", text())
        .query(bind, "Whether to resolve the ENS names in the card.", one_of(["true", "false"]))
        .answers_json(Component::Discovery.reference(), "The findings.")
        .runs()
}

pub(in crate::http) fn root_card() -> Operation {
    Operation::get(Tag::Publish, "rootCard", "Agent card of the only exposed Orloj AgentSystem")
        .answers_generated_card()
}

pub(in crate::http) fn system_card() -> Operation {
    let [namespace] = system_cards::PARAMETERS;
    Operation::get(Tag::Publish, "systemCard", "Agent card of an Orloj AgentSystem")
        .segment("name", "Name of the AgentSystem.", "research")
        .query(namespace, "Namespace of the AgentSystem.", text())
        .answers_generated_card()
}

pub(in crate::http) fn keys() -> Operation {
    let members = [
        ("kty", json!({"const": "OKP"})),
        ("crv", json!({"const": "Ed25519"})),
        ("x", json!({"type": "string", "pattern": "^[-_A-Za-z0-9]{43}$"})),
        ("kid", text()),
        ("use", json!({"const": "sig"})),
        ("alg", json!({"const": "EdDSA"})),
    ];
    let keys = object([("keys", list(object(members, [])))], []);
    Operation::get(Tag::Ask, "keys", "Public keys that verify what this daemon signs")
        .answers(StatusCode::OK, "A key set (RFC 7517).", "application/jwk-set+json", keys)
        .tagged()
}

pub(in crate::http) fn reasons() -> Operation {
    let codes = ["reasons", "refusals"].map(|kind| (kind, list(Component::Reason.reference())));
    Operation::get(Tag::Ask, "reasons", "All reason codes")
        .answers_json(object(codes, []), "Codes of verdicts (`reasons`) and of refused requests (`refusals`).")
}

pub(in crate::http) fn reason() -> Operation {
    Operation::get(Tag::Ask, "reason", "Meaning of a reason code")
        .segment("code", "The reason code: the last part of a problem's `type`.", "checksum-mismatch")
        .answers_json(Component::Reason.reference(), "Its meaning.")
        .refuses(&[Refusal::RouteUnknown])
}

pub(in crate::http) fn profiles() -> Operation {
    let known = written_of::<ProfileList<'_>>();
    Operation::get(Tag::Ask, "profiles", "Profiles that a request may select").answers_json(known, "The profiles.")
}

pub(in crate::http) fn description() -> Operation {
    Operation::get(Tag::Operate, "openapi", "OpenAPI description of this daemon")
        .answers_json(json!({"type": "object"}), "OpenAPI 3.1.")
}

pub(in crate::http) fn livez() -> Operation {
    Operation::without_slot(Tag::Operate, "livez", "Liveness").answers(
        StatusCode::OK,
        "The process answers.",
        TEXT,
        text(),
    )
}

pub(in crate::http) fn readyz() -> Operation {
    Operation::without_slot(Tag::Operate, "readyz", "Readiness")
        .answers(StatusCode::OK, "Ready; one line for each upstream that is down.", TEXT, text())
        .refuses(&[Refusal::Draining, Refusal::NotReady])
}

pub(in crate::http) fn metrics() -> Operation {
    Operation::without_slot(Tag::Operate, "metrics", "Metrics for Prometheus")
        .answers(StatusCode::OK, "Prometheus text.", TEXT, text())
        .refuses(&[Refusal::RouteUnknown])
}

impl Operation {
    /// Adds the headers that describe cache use.
    fn cached(self) -> Self {
        self.with_header("Cache-Status", CACHE_STATUS).with_header("Age", AGE)
    }

    fn answers_decision(self) -> Self {
        let meaning = "The decision. Pay only where `abort` is false.";
        self.answers_json(Component::Decision.reference(), meaning)
            .answers(StatusCode::OK, meaning, MEDIA_TYPE, text())
            .runs()
            .refuses(&[Refusal::NotAcceptable])
    }

    fn answers_generated_card(self) -> Self {
        self.answers_json(json!({"type": "object"}), "The card.")
            .with_header("Age", AGE)
            .tagged()
            .refuses(&[Refusal::CardAbsent, Refusal::ResourcesUnreadable])
    }
}

fn with_name(operation: Operation) -> Operation {
    operation.segment("name", "ENS name of the agent.", "summarizeagent.eth")
}

fn with_verb(operation: Operation) -> Operation {
    operation.segment("verb", "Verb to be called.", "summarize")
}

fn with_network(operation: Operation) -> Operation {
    let [network] = gate_path::PARAMETERS;
    operation.query(network, "A CAIP-2 network that the card must list.", text())
}

/// The judgement of a card by itself.
fn card_judgement() -> Value {
    let members = [
        ("flavour", or_null(systems())),
        ("version", or_null(text())),
        ("valid", json!({"type": "boolean"})),
        ("findings", list(Component::Discovery.reference_to("finding"))),
        ("near_misses", list(text())),
    ];
    object(members, [("profile", text())])
}

/// The input of a decision with this payment header schema and further required members.
fn with_header(header: &Value, further: &[&str]) -> Value {
    let mut question = DecisionRequest::schema();
    for demand in question["oneOf"].as_array_mut().into_iter().flatten() {
        demand["properties"]["header"] = header.clone();
        let required = demand["required"].as_array_mut().into_iter();
        required.for_each(|required| required.extend(further.iter().map(|member| Value::from(*member))));
    }
    question
}

/// An object with required members, optional members, and no others.
fn object(
    required: impl IntoIterator<Item = (&'static str, Value)>,
    optional: impl IntoIterator<Item = (&'static str, Value)>,
) -> Value {
    let required: Vec<(&str, Value)> = required.into_iter().collect();
    let names: Vec<&str> = required.iter().map(|(name, _)| *name).collect();
    let members: serde_json::Map<String, Value> =
        required.iter().cloned().chain(optional).map(|(name, schema)| (name.to_owned(), schema)).collect();
    json!({"type": "object", "properties": members, "required": names, "additionalProperties": false})
}

fn one_of<'a>(values: impl IntoIterator<Item = &'a str>) -> Value {
    json!({"enum": values.into_iter().collect::<Vec<_>>()})
}

fn or_null(schema: Value) -> Value {
    json!({"oneOf": [schema, {"type": "null"}]})
}

/// Like [`one_of`], but the value may also be null.
fn one_of_or_null<'a>(values: impl IntoIterator<Item = &'a str>) -> Value {
    values.into_iter().map(Value::from).chain([Value::Null]).collect()
}

fn depths() -> impl Iterator<Item = &'static str> {
    Depth::ALL.iter().map(|depth| depth.as_str())
}

fn ids(profiles: &Profiles) -> impl Iterator<Item = &str> {
    profiles.iter().map(|profile| profile.id())
}

fn systems() -> Value {
    one_of(CardSystem::ALL.iter().map(|system| system.slug()))
}

fn text() -> Value {
    json!({"type": "string"})
}

fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}
