//! The documents that cost most to judge, as cards behind names and as bodies of requests, and what may be answered to
//! each.

#[path = "../../../../receipt/tests/worst/kinds.rs"]
mod receipts;
#[path = "../../../../request/tests/worst/kinds.rs"]
mod requests;
#[path = "../../../../cards/tests/worst/seeds.rs"]
#[allow(dead_code, reason = "what the search and the judges need of it")]
mod seeds;

use serde_json::{Value, json};

use seeds::{Judge, Seed};

/// The agent that all of them are said to be for.
const NAME: &str = "good.eth";

/// What the daemon may be called by MCP clients.
pub(crate) const HOST: &str = "soak";

/// Offers of a seller in one decision.
const OFFERS: usize = 8;

/// Members that nobody knows, in terms of a seller.
const UNKNOWN: usize = 2_000;

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
pub(crate) enum Said {
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
    pub(crate) fn said(&self, answer: &str) -> Said {
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        let codes =
            [&body["code"], &body["result"]["structuredContent"]["error"]["code"], &body["error"]["data"]["code"]];
        if codes.into_iter().any(|code| code == "overloaded") {
            return Said::Full;
        }
        let is_judged = head.starts_with("HTTP/1.1 200 ") || body["code"] == "card-too-complex";
        if is_judged && (self.is_shut)(&body) { Said::Judged } else { Said::Wrong }
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
    for terms in terms() {
        let body = json!({"name": NAME, "verb": "summarize", "paymentRequired": terms}).to_string();
        questions.push(Question::new("decisions", "/v1/decisions", &body, |answer| answer["abort"] == true));
    }
    questions
}

/// Terms of a seller who wants to be paid in many ways, none of which is good.
fn terms() -> [Value; 3] {
    let offer = |extra: Value| {
        json!({"scheme": "exact", "network": "eip155:84532", "amount": "10000", "maxTimeoutSeconds": 60, "extra": extra,
            "asset": "0x036CbD53842c5426634e7929541eC2318f3dCF7e", "payTo": "0x0000000000000000000000000000000000000bad"})
    };
    let of =
        |offers: Vec<Value>| json!({"x402Version": 2, "resource": {"url": "https://a.example/"}, "accepts": offers});
    let plain = json!({"name": "USDC", "version": "2"});
    let unknown: Value = (0..UNKNOWN).map(|at| (format!("m{at:06}"), json!([at]))).collect();
    let deep = (0..12).fold(json!("0".repeat(1000)), |inner, at| json!({format!("{at:0>1000}"): inner}));
    [of(vec![offer(plain); OFFERS]), of(vec![offer(unknown)]), of(vec![offer(deep)])]
}

fn known(judge: Judge) -> Vec<String> {
    let seeds = seeds::known().into_iter().filter(|seed| seed.judge == judge);
    seeds.map(|seed| text(Seed::document(&seed))).collect()
}

fn text(document: Vec<u8>) -> String {
    String::from_utf8(document).expect("JSON is UTF-8")
}
