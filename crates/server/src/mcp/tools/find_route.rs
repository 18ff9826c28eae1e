//! `find_route`: finds the URL behind an agent's entry.

use clresolve_core::state::TrustState;
use clresolve_resolver::cpu_share::CpuJobUrgency;
use clresolve_resolver::resolve::{AgentRouteDocument, NameQuestion};
use futures_util::FutureExt as _;
use serde::Deserialize;
use serde_json::{Value, json};

use super::label::BoundedText;
use super::tool::{McpTool, agent_name_argument_schema, parse_arguments};
use crate::mcp::answer::{McpToolAnswer, McpToolFailure, ProgramText};
use crate::mcp::asker::{McpBackend, ResolutionWithResolver};
use crate::mcp::form;

pub(super) static TOOL: McpTool = McpTool {
    name: "find_route",
    title: "Find an agent's URL",
    description: "Gives the URL behind an agent's x402:// entry, and who says so. Call the agent there and nowhere else, and only \
     where `denied` is null.",
    arguments: || {
        let members = json!({
            "name": agent_name_argument_schema(),
            "verb": {"type": "string", "description": "What the agent is to do; its first verb where none is named"},
        });
        (members, &["name"])
    },
    form: &form::ROUTE,
    urgency: CpuJobUrgency::Document,
    call: |asker, given| find_route(asker, given).boxed(),
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FindRouteArguments {
    name: BoundedText,
    verb: Option<BoundedText>,
}

async fn find_route(asker: &dyn McpBackend, given: Value) -> Result<McpToolAnswer, McpToolFailure> {
    let FindRouteArguments { name, verb } = parse_arguments(given)?;
    let (name, verb) = (name.as_ref(), verb.as_ref().map(BoundedText::as_ref));
    let ResolutionWithResolver { resolver, resolution } = asker.resolve_question(NameQuestion::new(name)).await?;
    let resolution = resolver.confirm_for_gate(resolution).await;
    let route = resolver.agent_route(&resolution, verb);
    let answer = AgentRouteDocument::new(&resolver, name, verb, &resolution, &route);
    let verdict = resolution.verdict();
    let said = match (&route, answer.gate_denial_reason()) {
        (Err(reason), _) => ProgramText::new("No URL is known for this agent.").with_codes([reason.code.slug()]),
        (Ok(_), None) => ProgramText::new("trusted: the URL is structuredContent.route.route.url."),
        (Ok(_), Some(code)) if verdict.state == TrustState::Trusted => {
            ProgramText::new("There is a URL, but the gate denies requests to the agent: do not call it.")
                .with_codes([code])
        }
        (Ok(_), Some(_)) => ProgramText::new("There is a URL, but the agent is not trusted: do not call it.")
            .with_codes(verdict.reasons.iter().map(|reason| reason.code.slug())),
    };
    let document = serde_json::to_value(&answer).unwrap_or_default();
    McpToolAnswer::from_document(&resolver, said, &form::ROUTE, document).await
}
