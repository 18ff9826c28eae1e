//! `verify_agent`: is the binding of a name, its card and its entry real?

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::label::Label;
use super::tool::{Tool, arguments, name_argument, unanswered};
use crate::mcp::answer::{Answer, Failure, OwnText};
use crate::mcp::asker::{AgentAnswer, Asker};
use crate::mcp::form::{self, Form};
use crate::resolve::Question;
use crate::verdict::{Depth, State};

pub(super) struct VerifyAgent;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    name: Label,
    profile: Option<Label>,
    depth: Option<Depth>,
}

#[async_trait]
impl Tool for VerifyAgent {
    fn name(&self) -> &'static str {
        "verify_agent"
    }

    fn title(&self) -> &'static str {
        "Verify an agent"
    }

    fn description(&self) -> &'static str {
        "Proves from the Ethereum chain and IPFS whether an ENS name, its Agent-Card and its x402:// entry belong together. \
         Call it before you call or pay an agent. Go on only where the state is trusted; untrusted and indeterminate come \
         with their reasons."
    }

    fn arguments(&self) -> (Value, &'static [&'static str]) {
        let members = json!({
            "name": name_argument(),
            "profile": {"type": "string", "description": "The rules to judge by; the resource clresolve://profiles lists them"},
            "depth": {"enum": ["identity", "schemas"], "description": "Whether the schemas of the agent's verbs are proven too"},
        });
        (members, &["name"])
    }

    fn form(&self) -> &'static Form {
        &form::VERDICT
    }

    async fn call(&self, asker: &dyn Asker, given: Value) -> Result<Answer, Failure> {
        let Arguments { name, profile, depth } = arguments(given)?;
        let mut question = Question::new(name);
        question.profile = profile.clone().map(String::from);
        question.depth = depth;
        let asked = asker.ask(question).await;
        let AgentAnswer { resolver, resolution } = asked.map_err(|refusal| unanswered(refusal, profile))?;
        let verdict = resolution.verdict().clone();
        let said = of_state(verdict.state).codes(verdict.reasons.iter().map(|reason| reason.code.slug()));
        Answer::about(&resolver, said, self.form(), verdict).await
    }
}

fn of_state(state: State) -> OwnText {
    OwnText::new(match state {
        State::Trusted => "trusted: the name, its card and its entry belong together.",
        State::Untrusted => "untrusted: the evidence contradicts the rules. Do not call or pay this agent.",
        State::Indeterminate => {
            "indeterminate: it could not be decided whether the evidence holds. Do not call or pay this agent yet."
        }
    })
}
