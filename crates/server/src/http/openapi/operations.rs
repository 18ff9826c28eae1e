//! The parameters and responses of every method of every route.

use axum::http::StatusCode;
use clresolve_bundle::signed::MEDIA_TYPE;
use clresolve_cards::system::CardSystem;
use clresolve_core::reason::RefusalCode;
use clresolve_core::schema::{deserialization_schema, serialization_schema};
use clresolve_messages::receipt::ReceiptVerificationRequest;
use clresolve_messages::request::OutgoingAgentRequest;
use clresolve_payment::PaymentDecisionRequest;
use clresolve_payment::check::SellerCheckRequest;
use clresolve_verdict::profile::ConformanceProfiles;
use clresolve_verdict::verdict::ResolutionDepth;
use serde_json::{Value, json};

use super::components::OpenApiComponent;
use super::operation::{OpenApiOperation, OpenApiTag, RETRY_AFTER};
use crate::http::probes::AgentSellerProbeRequest;
use crate::http::verdicts::VerdictBatchRequest;
use crate::http::{discover, events, explorer, gate_path, lint, problem, system_cards, verdicts};
use crate::registries::ConformanceProfileList;

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
pub(in crate::http) fn gate_for_name_operations() -> Vec<OpenApiOperation> {
    gate_operations(|operation| add_network_parameter(add_name_segment(operation)))
}

/// `/v1/gate/{name}/{verb}`
pub(in crate::http) fn gate_for_verb_operations() -> Vec<OpenApiOperation> {
    gate_operations(|operation| add_network_parameter(add_verb_segment(add_name_segment(operation))))
}

/// `/v1/envoy/{name}/{verb}`
pub(in crate::http) fn envoy_operations() -> Vec<OpenApiOperation> {
    gate_operations(|operation| add_verb_segment(add_name_segment(operation)))
}

/// `/v1/envoy/{name}/{verb}/{*ignored}`
pub(in crate::http) fn envoy_for_path_operations() -> Vec<OpenApiOperation> {
    gate_operations(|operation| {
        add_verb_segment(add_name_segment(operation)).with_path_segment(
            "ignored",
            "Path of the request being judged; ignored.",
            "v1",
        )
    })
}

/// An operation for every method of a gate path.
fn gate_operations(describe: impl Fn(OpenApiOperation) -> OpenApiOperation) -> Vec<OpenApiOperation> {
    let one = |method| {
        describe(OpenApiOperation::new_without_id(
            OpenApiTag::Ask,
            method,
            "Decide whether a request to the agent may pass",
        ))
        .with_bodiless_response(StatusCode::OK, "The request may pass.")
        .with_bodiless_response(StatusCode::FORBIDDEN, "The request may not pass; Clresolve-Code gives the reason.")
        .with_header("Clresolve-State", "State of the verdict, if there is one.")
        .with_header("Clresolve-Code", "Code of the first reason for the denial.")
        .with_header("Clresolve-Verdict", "The verdict's id.")
        .with_header("Clresolve-Card-Sha256", "The SHA-256 of a trusted agent's card, in hex.")
    };
    METHODS.into_iter().map(one).collect()
}

pub(in crate::http) fn explorer_operation(profiles: &ConformanceProfiles) -> OpenApiOperation {
    let refusals = [
        RefusalCode::RequestMalformed,
        RefusalCode::ProfileUnknown,
        RefusalCode::ClientOverQuota,
        RefusalCode::Overloaded,
        RefusalCode::RunOverdue,
        RefusalCode::InternalError,
    ];
    let [name, profile, depth] = explorer::PARAMETERS;
    let page = OpenApiOperation::get(OpenApiTag::Ask, "explorer", "The explorer, a page that shows a verdict")
        .with_query_parameter(name, "ENS name of the agent, or the URL of a seller if the daemon may ask sellers; without it the page is empty.", text_schema())
        .with_query_parameter(profile, PROFILE, string_enum_schema(profile_ids(profiles).chain([""])))
        .with_query_parameter(depth, DEPTH, string_enum_schema(depth_names().chain([""])))
        .with_response(StatusCode::OK, "The page.", HTML, text_schema());
    let refused = |page: OpenApiOperation, refusal| {
        page.with_response(problem::refusal_status(refusal), refusal.title(), HTML, text_schema())
    };
    refusals.into_iter().fold(page, refused).with_resolution_refusals().with_refusals(&refusals)
}

pub(in crate::http) fn explorer_style_operation() -> OpenApiOperation {
    OpenApiOperation::get(OpenApiTag::Ask, "explorerStyle", "Style sheet of the explorer")
        .with_response(StatusCode::OK, "CSS.", "text/css", text_schema())
        .with_not_modified()
}

pub(in crate::http) fn explorer_script_operation() -> OpenApiOperation {
    let meaning = "JavaScript.";
    OpenApiOperation::get(OpenApiTag::Ask, "explorerScript", "Script of the explorer")
        .with_response(StatusCode::OK, meaning, "text/javascript", text_schema())
        .with_not_modified()
}

pub(in crate::http) fn verdict_operation(profiles: &ConformanceProfiles) -> OpenApiOperation {
    let meaning = "The verdict, whatever its state.";
    let [profile, depth] = verdicts::PARAMETERS;
    add_name_segment(OpenApiOperation::get(OpenApiTag::Ask, "verdict", "Verdict on a name"))
        .with_query_parameter(profile, PROFILE, string_enum_schema(profile_ids(profiles).chain([""])))
        .with_query_parameter(depth, DEPTH, string_enum_schema(depth_names().chain([""])))
        .with_parameter(json!({"name": "Cache-Control", "in": "header", "description": ANEW, "schema": text_schema()}))
        .with_json_response(OpenApiComponent::Verdict.reference(), meaning)
        .with_response(StatusCode::OK, meaning, MEDIA_TYPE, text_schema())
        .with_stream_response(meaning, "text/event-stream", OpenApiComponent::WalkEvent)
        .with_cache_headers()
        .with_header(RETRY_AFTER, "Seconds after which to ask again, where it could not be decided.")
        .with_not_modified()
        .with_resolution_refusals()
        .with_refusals(&[RefusalCode::ProfileUnknown, RefusalCode::NotAcceptable])
}

pub(in crate::http) fn batch_operation(profiles: &ConformanceProfiles) -> OpenApiOperation {
    let mut body = deserialization_schema::<VerdictBatchRequest>();
    body["properties"]["profile"]["enum"] = nullable_enum_values(profile_ids(profiles));
    body["properties"]["depth"]["enum"] = nullable_enum_values(depth_names());
    OpenApiOperation::post(OpenApiTag::Ask, "verdicts", "Verdicts on many names")
        .with_body(body)
        .with_stream_response("One verdict or problem per line.", "application/x-ndjson", OpenApiComponent::Line)
        .with_resolution_refusals()
        .with_refusals(&[RefusalCode::ProfileUnknown])
}

pub(in crate::http) fn events_operation() -> OpenApiOperation {
    let names = json!({"type": "array", "items": text_schema(), "minItems": 1, "maxItems": events::MAX_NAMES});
    let (name, last) =
        ("ENS names of agents; repeat the parameter for each.", "Id of the last event received, to resume from.");
    OpenApiOperation::get(OpenApiTag::Ask, "events", "Stream changes of the verdicts on names")
        .with_parameter(
            json!({"name": events::PARAMETER, "in": "query", "required": true, "description": name, "schema": names}),
        )
        .with_parameter(json!({"name": "Last-Event-ID", "in": "header", "description": last, "schema": text_schema()}))
        .with_stream_response("Events, as they happen.", "text/event-stream", OpenApiComponent::Event)
        .with_refusals(&[RefusalCode::Draining])
}

pub(in crate::http) fn card_operation() -> OpenApiOperation {
    add_name_segment(OpenApiOperation::get(OpenApiTag::Ask, "card", "Exact verified bytes of a trusted agent's card"))
        .with_json_response(json!({"type": "object"}), "The card, as it was published.")
        .with_header("Repr-Digest", "SHA-256 of the card (RFC 9530).")
        .with_cache_headers()
        .with_not_modified()
        .with_untrusted_response()
        .with_resolution_refusals()
}

pub(in crate::http) fn agent_card_operation() -> OpenApiOperation {
    add_name_segment(OpenApiOperation::get(
        OpenApiTag::Ask,
        "agentCard",
        "Card of a trusted agent, converted to A2A 1.0",
    ))
    .with_json_response(json!({"type": "object"}), "An A2A 1.0 card.")
    .with_cache_headers()
    .with_not_modified()
    .with_untrusted_response()
    .with_resolution_refusals()
}

pub(in crate::http) fn check_operation() -> OpenApiOperation {
    OpenApiOperation::post(OpenApiTag::Pay, "check", "Check who is paid by payment terms, and what proves it")
        .with_body(SellerCheckRequest::input_schema())
        .with_json_response(
            OpenApiComponent::Check.reference(),
            "The check, with its evidence. Pay only where `abort` is false.",
        )
        .with_resolution_refusals()
}

pub(in crate::http) fn decide_operation() -> OpenApiOperation {
    let none = json!({"type": "null"});
    let question = decision_input_schema(&none, &[]);
    OpenApiOperation::post(OpenApiTag::Pay, "decide", "Decide whether payment terms may be paid")
        .with_body(question)
        .with_decision_response()
}

pub(in crate::http) fn decide_signed_operation() -> OpenApiOperation {
    let header = json!({"type": "string", "description": "The payment header about to be sent."});
    let question = decision_input_schema(&header, &["header"]);
    OpenApiOperation::post(
        OpenApiTag::Pay,
        "decideSigned",
        "Check a signed payment against the decision before it is sent",
    )
    .with_body(question)
    .with_decision_response()
}

pub(in crate::http) fn probe_operation() -> OpenApiOperation {
    let terms = nullable_schema(json!({"type": "object", "required": ["x402Version", "accepts"]}));
    let answer = json!({
        "type": "object",
        "properties": {"terms": terms, "decision": OpenApiComponent::Decision.reference()},
        "required": ["terms", "decision"],
    });
    OpenApiOperation::post(
        OpenApiTag::Pay,
        "probe",
        "Fetch the payment terms of an agent without paying, and decide on them",
    )
    .with_body(deserialization_schema::<AgentSellerProbeRequest>())
    .with_json_response(answer, "The seller's terms, and the decision. Nothing was paid.")
    .with_resolution_refusals()
}

pub(in crate::http) fn check_request_operation() -> OpenApiOperation {
    OpenApiOperation::post(OpenApiTag::Pay, "checkRequest", "Check a request against the agent's schema")
        .with_body(OutgoingAgentRequest::input_schema())
        .with_json_response(OpenApiComponent::Request.reference(), "The findings, each with its place.")
        .with_resolution_refusals()
}

pub(in crate::http) fn verify_receipt_operation() -> OpenApiOperation {
    OpenApiOperation::post(OpenApiTag::Pay, "verifyReceipt", "Verify a receipt")
        .with_body(ReceiptVerificationRequest::input_schema())
        .with_json_response(OpenApiComponent::Receipt.reference(), "The findings, check by check.")
        .with_response(StatusCode::OK, "The same, signed.", MEDIA_TYPE, text_schema())
        .with_resolution_refusals()
        .with_refusals(&[RefusalCode::NotAcceptable])
}

pub(in crate::http) fn mcp_operation() -> OpenApiOperation {
    let message = || json!({"type": "object", "description": "A message of the Model Context Protocol, in JSON-RPC."});
    OpenApiOperation::post(
        OpenApiTag::Operate,
        "mcp",
        "Model Context Protocol: the same operations as tools for agents",
    )
    .with_body(message())
    .with_json_response(message(), "The answer, or an error.")
    .with_bodiless_response(StatusCode::ACCEPTED, "The notification was accepted.")
    .with_response(StatusCode::BAD_REQUEST, "Not a valid message.", "application/json", message())
    .with_response(StatusCode::NOT_FOUND, "Unknown method.", "application/json", message())
    .with_refusals(&[RefusalCode::HostUnexpected, RefusalCode::NotAcceptable])
}

pub(in crate::http) fn lint_operation(profiles: &ConformanceProfiles) -> OpenApiOperation {
    let [system, profile] = lint::PARAMETERS;
    OpenApiOperation::post(OpenApiTag::Publish, "lint", "Validate a card of any system")
        .with_query_parameter(system, SYSTEM, card_system_schema())
        .with_query_parameter(profile, PROFILE, string_enum_schema(profile_ids(profiles)))
        .with_body(json!({}))
        .with_json_response(card_judgement_schema(), "The findings.")
        .with_problem_response(StatusCode::UNPROCESSABLE_ENTITY, "The card exceeds a limit of validation.")
        .with_resolution_refusals()
        .with_refusals(&[RefusalCode::ProfileUnknown])
}

pub(in crate::http) fn discover_operation() -> OpenApiOperation {
    let [url, card_system, system, bind] = discover::PARAMETERS;
    let url = json!({"name": url, "in": "query", "required": true, "description": "URL of the host.", "schema": text_schema()});
    OpenApiOperation::get(OpenApiTag::Ask, "discover", "Find and validate the cards of a host")
        .with_parameter(url)
        .with_query_parameter(card_system, SYSTEM, card_system_schema())
        .with_query_parameter(system, "Name of the AgentSystem, if the host serves several.", text_schema())
        .with_query_parameter(
            bind,
            "Whether to resolve the ENS names in the card.",
            string_enum_schema(["true", "false"]),
        )
        .with_json_response(OpenApiComponent::Discovery.reference(), "The findings.")
        .with_resolution_refusals()
}

pub(in crate::http) fn root_card_operation() -> OpenApiOperation {
    OpenApiOperation::get(OpenApiTag::Publish, "rootCard", "Agent card of the only exposed Orloj AgentSystem")
        .with_generated_card()
}

pub(in crate::http) fn system_card_operation() -> OpenApiOperation {
    let [namespace] = system_cards::PARAMETERS;
    OpenApiOperation::get(OpenApiTag::Publish, "systemCard", "Agent card of an Orloj AgentSystem")
        .with_path_segment("name", "Name of the AgentSystem.", "research")
        .with_query_parameter(namespace, "Namespace of the AgentSystem.", text_schema())
        .with_generated_card()
}

pub(in crate::http) fn keys_operation() -> OpenApiOperation {
    let members = [
        ("kty", json!({"const": "OKP"})),
        ("crv", json!({"const": "Ed25519"})),
        ("x", json!({"type": "string", "pattern": "^[-_A-Za-z0-9]{43}$"})),
        ("kid", text_schema()),
        ("use", json!({"const": "sig"})),
        ("alg", json!({"const": "EdDSA"})),
    ];
    let keys = object_schema([("keys", list_schema(object_schema(members, [])))], []);
    OpenApiOperation::get(OpenApiTag::Ask, "keys", "Public keys that verify what this daemon signs")
        .with_response(StatusCode::OK, "A key set (RFC 7517).", "application/jwk-set+json", keys)
        .with_not_modified()
}

pub(in crate::http) fn reasons_operation() -> OpenApiOperation {
    let codes = ["reasons", "refusals"].map(|kind| (kind, list_schema(OpenApiComponent::Reason.reference())));
    OpenApiOperation::get(OpenApiTag::Ask, "reasons", "All reason codes").with_json_response(
        object_schema(codes, []),
        "Codes of verdicts (`reasons`) and of refused requests (`refusals`).",
    )
}

pub(in crate::http) fn reason_operation() -> OpenApiOperation {
    OpenApiOperation::get(OpenApiTag::Ask, "reason", "Meaning of a reason code")
        .with_path_segment("code", "The reason code: the last part of a problem's `type`.", "checksum-mismatch")
        .with_json_response(OpenApiComponent::Reason.reference(), "Its meaning.")
        .with_refusals(&[RefusalCode::RouteUnknown])
}

pub(in crate::http) fn profiles_operation() -> OpenApiOperation {
    let known = serialization_schema::<ConformanceProfileList<'_>>();
    OpenApiOperation::get(OpenApiTag::Ask, "profiles", "Profiles that a request may select")
        .with_json_response(known, "The profiles.")
}

pub(in crate::http) fn openapi_operation() -> OpenApiOperation {
    OpenApiOperation::get(OpenApiTag::Operate, "openapi", "OpenAPI description of this daemon")
        .with_json_response(json!({"type": "object"}), "OpenAPI 3.1.")
}

pub(in crate::http) fn livez_operation() -> OpenApiOperation {
    OpenApiOperation::get_without_slot(OpenApiTag::Operate, "livez", "Liveness").with_response(
        StatusCode::OK,
        "The process answers.",
        TEXT,
        text_schema(),
    )
}

pub(in crate::http) fn readyz_operation() -> OpenApiOperation {
    OpenApiOperation::get_without_slot(OpenApiTag::Operate, "readyz", "Readiness")
        .with_response(StatusCode::OK, "Ready; one line for each upstream that is down.", TEXT, text_schema())
        .with_refusals(&[RefusalCode::Draining, RefusalCode::NotReady])
}

pub(in crate::http) fn metrics_operation() -> OpenApiOperation {
    OpenApiOperation::get_without_slot(OpenApiTag::Operate, "metrics", "Metrics for Prometheus")
        .with_response(StatusCode::OK, "Prometheus text.", TEXT, text_schema())
        .with_refusals(&[RefusalCode::RouteUnknown])
}

impl OpenApiOperation {
    /// Adds the headers that describe cache use.
    fn with_cache_headers(self) -> Self {
        self.with_header("Cache-Status", CACHE_STATUS).with_header("Age", AGE)
    }

    fn with_decision_response(self) -> Self {
        let meaning = "The decision. Pay only where `abort` is false.";
        self.with_json_response(OpenApiComponent::Decision.reference(), meaning)
            .with_response(StatusCode::OK, meaning, MEDIA_TYPE, text_schema())
            .with_resolution_refusals()
            .with_refusals(&[RefusalCode::NotAcceptable])
    }

    fn with_generated_card(self) -> Self {
        self.with_json_response(json!({"type": "object"}), "The card.")
            .with_header("Age", AGE)
            .with_not_modified()
            .with_refusals(&[RefusalCode::CardAbsent, RefusalCode::ResourcesUnreadable])
    }
}

fn add_name_segment(operation: OpenApiOperation) -> OpenApiOperation {
    operation.with_path_segment("name", "ENS name of the agent.", "summarizeagent.eth")
}

fn add_verb_segment(operation: OpenApiOperation) -> OpenApiOperation {
    operation.with_path_segment("verb", "Verb to be called.", "summarize")
}

fn add_network_parameter(operation: OpenApiOperation) -> OpenApiOperation {
    let [network] = gate_path::PARAMETERS;
    operation.with_query_parameter(network, "A CAIP-2 network that the card must list.", text_schema())
}

/// The judgement of a card by itself.
fn card_judgement_schema() -> Value {
    let members = [
        ("flavour", nullable_schema(card_system_schema())),
        ("version", nullable_schema(text_schema())),
        ("valid", json!({"type": "boolean"})),
        ("findings", list_schema(OpenApiComponent::Discovery.reference_to("finding"))),
        ("near_misses", list_schema(text_schema())),
    ];
    object_schema(members, [("profile", text_schema())])
}

/// The input of a decision with this payment header schema and further required members.
fn decision_input_schema(header: &Value, further: &[&str]) -> Value {
    let mut question = PaymentDecisionRequest::input_schema();
    for demand in question["oneOf"].as_array_mut().into_iter().flatten() {
        demand["properties"]["header"] = header.clone();
        let required = demand["required"].as_array_mut().into_iter();
        required.for_each(|required| required.extend(further.iter().map(|member| Value::from(*member))));
    }
    question
}

/// An object with required members, optional members, and no others.
fn object_schema(
    required: impl IntoIterator<Item = (&'static str, Value)>,
    optional: impl IntoIterator<Item = (&'static str, Value)>,
) -> Value {
    let required: Vec<(&str, Value)> = required.into_iter().collect();
    let names: Vec<&str> = required.iter().map(|(name, _)| *name).collect();
    let members: serde_json::Map<String, Value> =
        required.iter().cloned().chain(optional).map(|(name, schema)| (name.to_owned(), schema)).collect();
    json!({"type": "object", "properties": members, "required": names, "additionalProperties": false})
}

fn string_enum_schema<'a>(values: impl IntoIterator<Item = &'a str>) -> Value {
    json!({"enum": values.into_iter().collect::<Vec<_>>()})
}

fn nullable_schema(schema: Value) -> Value {
    json!({"oneOf": [schema, {"type": "null"}]})
}

/// Like [`string_enum_schema`], but the value may also be null.
fn nullable_enum_values<'a>(values: impl IntoIterator<Item = &'a str>) -> Value {
    values.into_iter().map(Value::from).chain([Value::Null]).collect()
}

fn depth_names() -> impl Iterator<Item = &'static str> {
    ResolutionDepth::ALL.iter().map(|depth| depth.as_str())
}

fn profile_ids(profiles: &ConformanceProfiles) -> impl Iterator<Item = &str> {
    profiles.iter().map(|profile| profile.id())
}

fn card_system_schema() -> Value {
    string_enum_schema(CardSystem::ALL.iter().map(|system| system.slug()))
}

fn text_schema() -> Value {
    json!({"type": "string"})
}

fn list_schema(items: Value) -> Value {
    json!({"type": "array", "items": items})
}
