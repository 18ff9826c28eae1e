//! The documents that cost most to judge, as cards of names and as request bodies, and the permitted responses.

#[path = "../linked/payment/tests/worst/kinds.rs"]
#[allow(dead_code, reason = "what those who judge need of it")]
mod decisions;
#[path = "../linked/messages/tests/worst_receipts/kinds.rs"]
#[allow(dead_code, reason = "what those who judge need of it")]
mod receipts;
#[path = "../linked/messages/tests/worst_requests/kinds.rs"]
#[allow(dead_code, reason = "what those who judge need of it")]
mod requests;
#[path = "../linked/cards/tests/worst/seeds.rs"]
#[allow(dead_code, reason = "what the search and the judges need of it")]
mod seeds;

use serde_json::{Value, json};

use seeds::{Judge, Seed};

/// The agent and verb that all of the documents claim.
const NAME: &str = "good.eth";
const VERB: &str = "summarize";

/// A good agent with a large card.
pub const LARGE: &str = "large.eth";

/// The daemon's host name for MCP clients.
pub const HOST: &str = "soak";

/// A request that carries a document.
pub struct WorstCaseDocumentRequest {
    /// What judges it: a label of the route, and for MCP the tool.
    pub to: &'static str,
    /// The HTTP request: head and body.
    pub request: String,
    is_shut: fn(&Value) -> bool,
}

/// How the daemon responded to a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentResponseClass {
    /// It was judged, with the expected result.
    Judged,
    /// Refused, because too many documents are being judged.
    Full,
    /// Any other answer.
    Wrong,
}

/// A POST request with this body.
pub fn post_request_text(path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: {HOST}\r\naccept: application/json, text/event-stream\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

impl WorstCaseDocumentRequest {
    fn new(to: &'static str, path: &str, body: &str, is_shut: fn(&Value) -> bool) -> Self {
        Self { to, request: post_request_text(path, body), is_shut }
    }

    fn from_get_path(to: &'static str, path: &str, is_shut: fn(&Value) -> bool) -> Self {
        Self { to, request: format!("GET {path} HTTP/1.1\r\nhost: {HOST}\r\n\r\n"), is_shut }
    }

    fn from_tool_call(tool: &'static str, arguments: &Value) -> Self {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}});
        Self::new(tool, "/mcp", &call.to_string(), |answer| {
            let result = &answer["result"];
            let document = &result["structuredContent"];
            ["request", "receipt"].iter().any(|member| is_not_trusted(&document[member]))
                || document["check"]["abort"] == true
                || is_parse_error(answer)
        })
    }

    /// Classifies a response, given as its status line, headers and body.
    pub fn classify(&self, answer: &str) -> DocumentResponseClass {
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        let codes =
            [&body["code"], &body["result"]["structuredContent"]["error"]["code"], &body["error"]["data"]["code"]];
        if codes.into_iter().any(|code| code == "overloaded") {
            return DocumentResponseClass::Full;
        }
        let is_judged =
            head.starts_with("HTTP/1.1 200 ") || body["code"] == "card-too-complex" || is_parse_error(&body);
        if is_judged && (self.is_shut)(&body) { DocumentResponseClass::Judged } else { DocumentResponseClass::Wrong }
    }
}

/// Whether the strict message parser rejected the message because it contains too many values.
fn is_parse_error(answer: &Value) -> bool {
    answer["error"]["code"] == -32700
}

fn is_not_trusted(document: &Value) -> bool {
    ["untrusted", "indeterminate"].iter().any(|state| document["state"] == *state)
}

/// The known worst cards of a name.
pub fn worst_cards() -> Vec<String> {
    known_documents(Judge::Verdict)
}

/// The known worst documents at a schema's location.
pub fn worst_schemas() -> Vec<String> {
    known_documents(Judge::Served)
}

/// The URL at which the sandbox serves an agent's card.
pub fn card_url(agent: &str) -> String {
    format!("https://cards.sandbox.example/agents/v1.0.0/commons/{agent}.json")
}

/// Requests to lint, check requests, verify receipts, decide, and call tools.
pub fn document_requests() -> Vec<WorstCaseDocumentRequest> {
    let lint = [("lint", Judge::Lint), ("lint, signed", Judge::Signatures), ("lint, converted", Judge::Conversion)];
    let lint = lint.into_iter().flat_map(|(to, judge)| known_documents(judge).into_iter().map(move |card| (to, card)));
    let mut questions: Vec<_> =
        lint.map(|(to, card)| WorstCaseDocumentRequest::new(to, "/v1/lint", &card, |_| true)).collect();
    let projected = format!("/v1/agents/{LARGE}/.well-known/agent-card.json");
    questions.push(WorstCaseDocumentRequest::from_get_path("agents", &projected, |answer| answer["name"].is_string()));
    for kind in requests::Kind::ALL {
        let (body, request) = (document_text(kind.question(NAME, VERB)), document_text(kind.request()));
        questions.push(WorstCaseDocumentRequest::new("requests/check", "/v1/requests/check", &body, is_not_trusted));
        questions.push(WorstCaseDocumentRequest::from_tool_call(
            "check_request",
            &json!({"name": NAME, "verb": VERB, "request": request}),
        ));
    }
    for kind in receipts::Kind::ALL {
        let (receipt, request) = (document_text(kind.receipt()), document_text(kind.request()));
        let body = document_text(kind.question(NAME));
        questions.push(WorstCaseDocumentRequest::new("receipts/verify", "/v1/receipts/verify", &body, is_not_trusted));
        questions.push(WorstCaseDocumentRequest::from_tool_call(
            "verify_receipt",
            &json!({"name": NAME, "receipt": receipt, "request": request}),
        ));
    }
    for kind in decisions::Kind::ALL {
        let path = if kind == decisions::Kind::Signed { "/v1/decisions/signed" } else { "/v1/decisions" };
        let question = document_text(kind.question());
        questions.push(WorstCaseDocumentRequest::new("decisions", path, &question, |answer| answer["abort"] == true));
        // The strict message parser rejects such a message before it reaches a tool.
        let arguments = serde_json::from_str(&question).expect("JSON");
        questions.push(WorstCaseDocumentRequest::from_tool_call("check_payment", &arguments));
    }
    questions
}

/// Discovery requests for hosts that serve the worst cards, which are those of these agents.
pub fn discovery_requests(agents: impl Iterator<Item = String>) -> impl Iterator<Item = WorstCaseDocumentRequest> {
    agents.map(|agent| {
        let path = format!("/v1/discover?url={}", card_url(&agent).replace(':', "%3A").replace('/', "%2F"));
        WorstCaseDocumentRequest::from_get_path("discover", &path, |answer| answer["outcome"].is_string())
    })
}

fn known_documents(judge: Judge) -> Vec<String> {
    let seeds = seeds::known().into_iter().filter(|seed| seed.judge == judge);
    seeds.map(|seed| document_text(Seed::document(&seed))).collect()
}

fn document_text(document: Vec<u8>) -> String {
    String::from_utf8(document).expect("JSON is UTF-8")
}
