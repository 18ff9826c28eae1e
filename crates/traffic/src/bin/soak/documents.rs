//! The documents that cost most to judge, as cards behind names and as bodies of requests, and what may be answered to
//! each.

#[path = "../../../linked/payment/tests/worst/kinds.rs"]
#[allow(dead_code, reason = "what those who judge need of it")]
mod decisions;
#[path = "../../../linked/receipt/tests/worst/kinds.rs"]
#[allow(dead_code, reason = "what those who judge need of it")]
mod receipts;
#[path = "../../../linked/request/tests/worst/kinds.rs"]
#[allow(dead_code, reason = "what those who judge need of it")]
mod requests;
#[path = "../../../linked/cards/tests/worst/seeds.rs"]
#[allow(dead_code, reason = "what the search and the judges need of it")]
mod seeds;

use serde_json::{Value, json};

use seeds::{Judge, Seed};

/// The agent that all of them are said to be for.
const NAME: &str = "good.eth";

/// What the daemon may be called by MCP clients.
pub(crate) const HOST: &str = "soak";

/// A document in a request to the daemon.
pub(crate) struct Question {
    /// The path, and the tool where MCP is spoken.
    pub(crate) to: &'static str,
    /// The whole request.
    pub(crate) request: String,
    is_shut: fn(&Value) -> bool,
}

/// What the daemon said to a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DocumentAnswer {
    /// It was judged, and nothing follows from it.
    Judged,
    /// There was no room for it.
    Full,
    /// Anything else.
    Wrong,
}

impl Question {
    fn new(to: &'static str, path: &str, body: &str, is_shut: fn(&Value) -> bool) -> Self {
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: {HOST}\r\naccept: application/json, text/event-stream\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        Self { to, request, is_shut }
    }

    fn to_tool(tool: &'static str, arguments: &Value) -> Self {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}});
        Self::new(tool, "/mcp", &call.to_string(), |answer| {
            let document = &answer["result"]["structuredContent"];
            ["request", "receipt"].iter().any(|member| is_no_trust(&document[member]))
        })
    }

    /// What an answer means, which is a status line with its head, and a body.
    pub(crate) fn said(&self, answer: &str) -> DocumentAnswer {
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        let codes =
            [&body["code"], &body["result"]["structuredContent"]["error"]["code"], &body["error"]["data"]["code"]];
        if codes.into_iter().any(|code| code == "overloaded") {
            return DocumentAnswer::Full;
        }
        let is_judged = head.starts_with("HTTP/1.1 200 ") || body["code"] == "card-too-complex";
        if is_judged && (self.is_shut)(&body) { DocumentAnswer::Judged } else { DocumentAnswer::Wrong }
    }
}

fn is_no_trust(document: &Value) -> bool {
    ["untrusted", "indeterminate"].iter().any(|state| document["state"] == *state)
}

/// The known worst cards that a name can lead to.
pub(crate) fn cards() -> Vec<String> {
    known(Judge::Verdict)
}

/// What counts for lint, requests, receipts, decisions and tools.
pub(crate) fn questions() -> Vec<Question> {
    let lint = known(Judge::Lint);
    let mut questions: Vec<_> =
        lint.iter().map(|card| Question::new("lint", "/v1/lint", card, |answer| answer["valid"] != true)).collect();
    for request in requests::Kind::ALL.map(|kind| text(kind.request())) {
        let body = format!(r#"{{"name":"{NAME}","verb":"summarize","request":{request}}}"#);
        questions.push(Question::new("requests/check", "/v1/requests/check", &body, is_no_trust));
        questions
            .push(Question::to_tool("check_request", &json!({"name": NAME, "verb": "summarize", "request": request})));
    }
    for kind in receipts::Kind::ALL {
        let (receipt, request) = (text(kind.receipt()), text(kind.request()));
        let body = format!(r#"{{"name":"{NAME}","receipt":{receipt},"request":{request}}}"#);
        questions.push(Question::new("receipts/verify", "/v1/receipts/verify", &body, is_no_trust));
        questions
            .push(Question::to_tool("verify_receipt", &json!({"name": NAME, "receipt": receipt, "request": request})));
    }
    for kind in decisions::Kind::ALL {
        let path = if kind == decisions::Kind::Signed { "/v1/decisions/signed" } else { "/v1/decisions" };
        questions.push(Question::new("decisions", path, &text(kind.question()), |answer| answer["abort"] == true));
    }
    questions
}

fn known(judge: Judge) -> Vec<String> {
    let seeds = seeds::known().into_iter().filter(|seed| seed.judge == judge);
    seeds.map(|seed| text(Seed::document(&seed))).collect()
}

fn text(document: Vec<u8>) -> String {
    String::from_utf8(document).expect("JSON is UTF-8")
}
