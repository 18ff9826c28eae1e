//! `verify_agent`: verifies that a name, its card and its entry belong together.

use clresolve_core::state::TrustState;
use clresolve_resolver::cpu_share::CpuJobUrgency;
use clresolve_resolver::resolve::NameQuestion;
use clresolve_verdict::verdict::ResolutionDepth;
use futures_util::FutureExt as _;
use serde::Deserialize;
use serde_json::{Value, json};

use super::label::BoundedText;
use super::tool::{McpTool, agent_name_argument_schema, explain_refusal, parse_arguments};
use crate::mcp::answer::{McpToolAnswer, McpToolFailure, ProgramText};
use crate::mcp::asker::{McpBackend, ResolutionWithResolver};
use crate::mcp::form;

pub(super) static TOOL: McpTool = McpTool {
    name: "verify_agent",
    title: "Verify an agent",
    description: "Proves from the Ethereum chain and IPFS whether an ENS name, its Agent-Card and its x402:// entry belong together. \
     Call it before you call an agent. Go on only where the state is trusted and the text names no denial by the gate. \
     It does not say whom to pay: check_payment does.",
    arguments: || {
        let members = json!({
            "name": agent_name_argument_schema(),
            "profile": {"type": "string", "description": "The rules to judge by; the resource clresolve://profiles lists them"},
            "depth": {"enum": ["identity", "schemas"], "description": "Whether the schemas of the agent's verbs are proven too"},
        });
        (members, &["name"])
    },
    form: &form::VERDICT,
    urgency: CpuJobUrgency::Document,
    call: |asker, given| verify_agent(asker, given).boxed(),
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VerifyAgentArguments {
    name: BoundedText,
    profile: Option<BoundedText>,
    depth: Option<ResolutionDepth>,
}

async fn verify_agent(asker: &dyn McpBackend, given: Value) -> Result<McpToolAnswer, McpToolFailure> {
    let VerifyAgentArguments { name, profile, depth } = parse_arguments(given)?;
    let of_gate = NameQuestion::new(name);
    let mut question = of_gate.clone();
    question.profile = profile.clone().map(String::from);
    question.depth = depth;
    let is_of_gate = question == of_gate;
    let asked = asker.resolve_question(question).await;
    let ResolutionWithResolver { resolver, resolution } = asked.map_err(|refusal| explain_refusal(refusal, profile))?;
    let resolution = if is_of_gate { resolver.confirm_for_gate(resolution).await } else { resolution };
    let verdict = resolution.verdict().clone();
    let denied = match verdict.state {
        TrustState::Trusted if is_of_gate => resolver.gate_denial_reason(&resolution, None),
        // The gate accepts no rules from a client.
        TrustState::Trusted => match asker.resolve_question(of_gate).await {
            Ok(judged) => {
                judged.resolver.gate_denial_reason(&judged.resolver.confirm_for_gate(judged.resolution).await, None)
            }
            Err(refusal) => Some(refusal.slug()),
        },
        TrustState::Untrusted | TrustState::Indeterminate => None,
    };
    let said = if denied.is_some() { ProgramText::new(DENIED) } else { state_sentence(verdict.state) };
    let codes = verdict.reasons.iter().map(|reason| reason.code.slug()).filter(|code| Some(*code) != denied);
    let said = said.with_codes(denied.into_iter().chain(codes));
    McpToolAnswer::from_document(&resolver, said, &form::VERDICT, verdict).await
}

/// The answer for an agent whose identity is proven but that the gate denies or cannot judge.
const DENIED: &str = "trusted: the name, its card and its entry belong together, but the gate does not let requests pass. \
                      Do not call or pay this agent.";

fn state_sentence(state: TrustState) -> ProgramText {
    ProgramText::new(match state {
        TrustState::Trusted => {
            "trusted: the name, its card and its entry belong together. Whom to pay is another question: ask check_payment."
        }
        TrustState::Untrusted => "untrusted: the evidence contradicts the rules. Do not call or pay this agent.",
        TrustState::Indeterminate => {
            "indeterminate: it could not be decided whether the evidence holds. Do not call or pay this agent yet."
        }
    })
}
