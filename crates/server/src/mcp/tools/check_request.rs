//! `check_request`: checks a request before it is sent to the agent.

use std::sync::Arc;

use clresolve_core::state::TrustState;
use clresolve_messages::request::OutgoingAgentRequest;
use clresolve_resolver::cpu_share::CpuJobUrgency;
use clresolve_resolver::resolve::NameQuestion;
use futures_util::FutureExt as _;
use serde::Deserialize;
use serde_json::{Value, json};

use super::label::BoundedText;
use super::tool::{McpTool, agent_name_argument_schema, parse_arguments};
use crate::mcp::answer::{McpToolAnswer, McpToolFailure, ProgramText};
use crate::mcp::asker::{McpBackend, ResolutionWithResolver};
use crate::mcp::form;

pub(super) static TOOL: McpTool = McpTool {
    name: "check_request",
    title: "Check a request",
    description: "Holds a request against the schema that the agent's card binds for the verb, before it is sent. Send it only where \
     the text says that it may be sent; findings come with line and column. Nothing is sent.",
    arguments: || {
        let members = json!({
            "name": agent_name_argument_schema(),
            "verb": {"type": "string", "description": "What the agent is to do"},
            "request": {"type": "string", "description": "The request's JSON text, as it is to be sent"},
        });
        (members, &["name", "verb", "request"])
    },
    form: &form::REQUEST,
    urgency: CpuJobUrgency::Document,
    call: |asker, given| check_request(asker, given).boxed(),
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckRequestArguments {
    name: BoundedText,
    verb: BoundedText,
    /// The original text: a request that is parsed and serialized again is not the one that is sent.
    request: String,
}

async fn check_request(asker: &dyn McpBackend, given: Value) -> Result<McpToolAnswer, McpToolFailure> {
    let CheckRequestArguments { name, verb, request } = parse_arguments(given)?;
    let question =
        Arc::new(OutgoingAgentRequest { name: name.into(), verb: verb.into(), request: request.into_bytes() });
    let ResolutionWithResolver { resolver, resolution } =
        asker.resolve_question(NameQuestion::new(&*question.name)).await?;
    let resolution = resolver.confirm_for_gate(resolution).await;
    let denied = resolver.gate_denial_reason(&resolution, Some(&question.verb));
    let work = async move {
        let found = resolver.check_request_with_resolution(&resolution, question).await;
        let denied = denied.filter(|_| found.state == TrustState::Trusted);
        let said = if denied.is_some() { ProgramText::new(DENIED) } else { state_sentence(found.state) };
        let said = said.with_codes(denied.into_iter().chain(found.codes.iter().map(String::as_str)));
        McpToolAnswer::from_document(&resolver, said, &form::REQUEST, found).await
    };
    asker.run_as_resolution(Box::pin(work)).await
}

/// The answer for a valid request to an agent that the gate denies.
const DENIED: &str =
    "trusted: the request is what the agent's schema demands, but the gate denies the agent. Do not send it.";

fn state_sentence(state: TrustState) -> ProgramText {
    ProgramText::new(match state {
        TrustState::Trusted => "trusted: the request is what the agent's schema demands. It may be sent.",
        TrustState::Untrusted => "untrusted: do not send this request.",
        TrustState::Indeterminate => "indeterminate: do not send this request yet.",
    })
}
