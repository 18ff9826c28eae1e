//! `check_request`: checks a request before it is sent to the agent.

use std::sync::Arc;

use clresolve_core::state::State;
use clresolve_messages::request::RequestQuestion;
use clresolve_resolver::cpu_share::Urgency;
use clresolve_resolver::resolve::Question;
use futures_util::FutureExt as _;
use serde::Deserialize;
use serde_json::{Value, json};

use super::label::Label;
use super::tool::{Tool, arguments, name_argument};
use crate::mcp::answer::{Answer, Failure, OwnText};
use crate::mcp::asker::{AgentAnswer, Asker};
use crate::mcp::form;

pub(super) static TOOL: Tool = Tool {
    name: "check_request",
    title: "Check a request",
    description: "Holds a request against the schema that the agent's card binds for the verb, before it is sent. Send it only where \
     the text says that it may be sent; findings come with line and column. Nothing is sent.",
    arguments: || {
        let members = json!({
            "name": name_argument(),
            "verb": {"type": "string", "description": "What the agent is to do"},
            "request": {"type": "string", "description": "The request's JSON text, as it is to be sent"},
        });
        (members, &["name", "verb", "request"])
    },
    form: &form::REQUEST,
    urgency: Urgency::Document,
    call: |asker, given| call(asker, given).boxed(),
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    name: Label,
    verb: Label,
    /// The original text: a request that is parsed and serialized again is not the one that is sent.
    request: String,
}

async fn call(asker: &dyn Asker, given: Value) -> Result<Answer, Failure> {
    let Arguments { name, verb, request } = arguments(given)?;
    let question = Arc::new(RequestQuestion { name: name.into(), verb: verb.into(), request: request.into_bytes() });
    let AgentAnswer { resolver, resolution } = asker.ask(Question::new(&*question.name)).await?;
    let resolution = resolver.confirmed(resolution).await;
    let denied = resolver.denied(&resolution, Some(&question.verb));
    let work = async move {
        let found = resolver.check_request_of(&resolution, question).await;
        let denied = denied.filter(|_| found.state == State::Trusted);
        let said = if denied.is_some() { OwnText::new(DENIED) } else { of_state(found.state) };
        let said = said.codes(denied.into_iter().chain(found.codes.iter().map(String::as_str)));
        Answer::about(&resolver, said, &form::REQUEST, found).await
    };
    asker.admitted(Box::pin(work)).await
}

/// The answer for a valid request to an agent that the gate denies.
const DENIED: &str =
    "trusted: the request is what the agent's schema demands, but the gate denies the agent. Do not send it.";

fn of_state(state: State) -> OwnText {
    OwnText::new(match state {
        State::Trusted => "trusted: the request is what the agent's schema demands. It may be sent.",
        State::Untrusted => "untrusted: do not send this request.",
        State::Indeterminate => "indeterminate: do not send this request yet.",
    })
}
