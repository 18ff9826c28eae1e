//! The documents that cost most to judge, as cards behind names and as bodies of requests, and what may be answered to
//! each.

#[path = "../../../linked/payment/tests/worst/kinds.rs"]
#[allow(dead_code, reason = "what those who judge need of it")]
mod decisions;
#[path = "../../../linked/messages/tests/worst_receipts/kinds.rs"]
#[allow(dead_code, reason = "what those who judge need of it")]
mod receipts;
#[path = "../../../linked/messages/tests/worst_requests/kinds.rs"]
#[allow(dead_code, reason = "what those who judge need of it")]
mod requests;
#[path = "../../../linked/cards/tests/worst/seeds.rs"]
#[allow(dead_code, reason = "what the search and the judges need of it")]
mod seeds;

use serde_json::{Value, json};

use seeds::{Judge, Seed};

/// The agent that all of them are said to be for, and what it does.
const NAME: &str = "good.eth";
const VERB: &str = "summarize";

/// An agent whose good card is large.
pub(crate) const LARGE: &str = "large.eth";

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

/// A request with this body.
pub(crate) fn posted(path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: {HOST}\r\naccept: application/json, text/event-stream\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

impl Question {
    fn new(to: &'static str, path: &str, body: &str, is_shut: fn(&Value) -> bool) -> Self {
        Self { to, request: posted(path, body), is_shut }
    }

    fn get(to: &'static str, path: &str, is_shut: fn(&Value) -> bool) -> Self {
        Self { to, request: format!("GET {path} HTTP/1.1\r\nhost: {HOST}\r\n\r\n"), is_shut }
    }

    fn to_tool(tool: &'static str, arguments: &Value) -> Self {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}});
        Self::new(tool, "/mcp", &call.to_string(), |answer| {
            let result = &answer["result"];
            let document = &result["structuredContent"];
            ["request", "receipt"].iter().any(|member| is_no_trust(&document[member]))
                || document["check"]["abort"] == true
                || is_refused(answer)
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
        let is_judged = head.starts_with("HTTP/1.1 200 ") || body["code"] == "card-too-complex" || is_refused(&body);
        if is_judged && (self.is_shut)(&body) { DocumentAnswer::Judged } else { DocumentAnswer::Wrong }
    }
}

/// Whether the strict reader of messages refused one: it has more values than a message may have.
fn is_refused(answer: &Value) -> bool {
    answer["error"]["code"] == -32700
}

fn is_no_trust(document: &Value) -> bool {
    ["untrusted", "indeterminate"].iter().any(|state| document["state"] == *state)
}

/// The known worst cards that a name can lead to.
pub(crate) fn cards() -> Vec<String> {
    known(Judge::Verdict)
}

/// The known worst documents that the location of a schema can serve.
pub(crate) fn schemas() -> Vec<String> {
    known(Judge::Served)
}

/// Where the sandbox serves the card of an agent.
pub(crate) fn location(agent: &str) -> String {
    format!("https://cards.sandbox.example/agents/v1.0.0/commons/{agent}.json")
}

/// What counts for lint, requests, receipts, decisions and tools.
pub(crate) fn questions() -> Vec<Question> {
    let lint = [("lint", Judge::Lint), ("lint, signed", Judge::Signatures), ("lint, converted", Judge::Conversion)];
    let lint = lint.into_iter().flat_map(|(to, judge)| known(judge).into_iter().map(move |card| (to, card)));
    let mut questions: Vec<_> = lint.map(|(to, card)| Question::new(to, "/v1/lint", &card, |_| true)).collect();
    let projected = format!("/v1/agents/{LARGE}/.well-known/agent-card.json");
    questions.push(Question::get("agents", &projected, |answer| answer["name"].is_string()));
    for kind in requests::Kind::ALL {
        let (body, request) = (text(kind.question(NAME, VERB)), text(kind.request()));
        questions.push(Question::new("requests/check", "/v1/requests/check", &body, is_no_trust));
        questions.push(Question::to_tool("check_request", &json!({"name": NAME, "verb": VERB, "request": request})));
    }
    for kind in receipts::Kind::ALL {
        let (receipt, request) = (text(kind.receipt()), text(kind.request()));
        let body = text(kind.question(NAME));
        questions.push(Question::new("receipts/verify", "/v1/receipts/verify", &body, is_no_trust));
        questions
            .push(Question::to_tool("verify_receipt", &json!({"name": NAME, "receipt": receipt, "request": request})));
    }
    for kind in decisions::Kind::ALL {
        let path = if kind == decisions::Kind::Signed { "/v1/decisions/signed" } else { "/v1/decisions" };
        let question = text(kind.question());
        questions.push(Question::new("decisions", path, &question, |answer| answer["abort"] == true));
        // A question that the strict reader of messages refuses is no question to a tool.
        let arguments = serde_json::from_str(&question).expect("JSON");
        questions.push(Question::to_tool("check_payment", &arguments));
    }
    questions
}

/// Discoveries of hosts that serve the worst cards, where they are those of these agents.
pub(crate) fn discoveries(agents: impl Iterator<Item = String>) -> impl Iterator<Item = Question> {
    agents.map(|agent| {
        let path = format!("/v1/discover?url={}", location(&agent).replace(':', "%3A").replace('/', "%2F"));
        Question::get("discover", &path, |answer| answer["outcome"].is_string())
    })
}

fn known(judge: Judge) -> Vec<String> {
    let seeds = seeds::known().into_iter().filter(|seed| seed.judge == judge);
    seeds.map(|seed| text(Seed::document(&seed))).collect()
}

fn text(document: Vec<u8>) -> String {
    String::from_utf8(document).expect("JSON is UTF-8")
}
