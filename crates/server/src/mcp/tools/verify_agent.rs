//! `verify_agent`: verifies that a name, its card and its entry belong together.

use clresolve_core::state::State;
use clresolve_resolver::cpu_share::Urgency;
use clresolve_resolver::resolve::Question;
use clresolve_verdict::verdict::Depth;
use futures_util::FutureExt as _;
use serde::Deserialize;
use serde_json::{Value, json};

use super::label::Label;
use super::tool::{Tool, arguments, name_argument, unanswered};
use crate::mcp::answer::{Answer, Failure, OwnText};
use crate::mcp::asker::{AgentAnswer, Asker};
use crate::mcp::form;

pub(super) static TOOL: Tool = Tool {
    name: "verify_agent",
    title: "Verify an agent",
    description: "Proves from the Ethereum chain and IPFS whether an ENS name, its Agent-Card and its x402:// entry belong together. \
     Call it before you call an agent. Go on only where the state is trusted and the text names no denial by the gate. \
     It does not say whom to pay: check_payment does.",
    arguments: || {
        let members = json!({
            "name": name_argument(),
            "profile": {"type": "string", "description": "The rules to judge by; the resource clresolve://profiles lists them"},
            "depth": {"enum": ["identity", "schemas"], "description": "Whether the schemas of the agent's verbs are proven too"},
        });
        (members, &["name"])
    },
    form: &form::VERDICT,
    urgency: Urgency::Document,
    call: |asker, given| call(asker, given).boxed(),
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    name: Label,
    profile: Option<Label>,
    depth: Option<Depth>,
}

async fn call(asker: &dyn Asker, given: Value) -> Result<Answer, Failure> {
    let Arguments { name, profile, depth } = arguments(given)?;
    let of_gate = Question::new(name);
    let mut question = of_gate.clone();
    question.profile = profile.clone().map(String::from);
    question.depth = depth;
    let is_of_gate = question == of_gate;
    let asked = asker.ask(question).await;
    let AgentAnswer { resolver, resolution } = asked.map_err(|refusal| unanswered(refusal, profile))?;
    let resolution = if is_of_gate { resolver.confirmed(resolution).await } else { resolution };
    let verdict = resolution.verdict().clone();
    let denied = match verdict.state {
        State::Trusted if is_of_gate => resolver.denied(&resolution, None),
        // The gate accepts no rules from a client.
        State::Trusted => match asker.ask(of_gate).await {
            Ok(judged) => judged.resolver.denied(&judged.resolver.confirmed(judged.resolution).await, None),
            Err(refusal) => Some(refusal.slug()),
        },
        State::Untrusted | State::Indeterminate => None,
    };
    let said = if denied.is_some() { OwnText::new(DENIED) } else { of_state(verdict.state) };
    let codes = verdict.reasons.iter().map(|reason| reason.code.slug()).filter(|code| Some(*code) != denied);
    let said = said.codes(denied.into_iter().chain(codes));
    Answer::about(&resolver, said, &form::VERDICT, verdict).await
}

/// The answer for an agent whose identity is proven but that the gate denies or cannot judge.
const DENIED: &str = "trusted: the name, its card and its entry belong together, but the gate does not let requests pass. \
                      Do not call or pay this agent.";

fn of_state(state: State) -> OwnText {
    OwnText::new(match state {
        State::Trusted => {
            "trusted: the name, its card and its entry belong together. Whom to pay is another question: ask check_payment."
        }
        State::Untrusted => "untrusted: the evidence contradicts the rules. Do not call or pay this agent.",
        State::Indeterminate => {
            "indeterminate: it could not be decided whether the evidence holds. Do not call or pay this agent yet."
        }
    })
}
