//! `find_route`: finds the URL behind an agent's entry.

use clresolve_core::state::State;
use clresolve_resolver::cpu_share::Urgency;
use clresolve_resolver::resolve::{Question, RouteAnswer};
use futures_util::FutureExt as _;
use serde::Deserialize;
use serde_json::{Value, json};

use super::label::Label;
use super::tool::{Tool, arguments, name_argument};
use crate::mcp::answer::{Answer, Failure, OwnText};
use crate::mcp::asker::{AgentAnswer, Asker};
use crate::mcp::form;

pub(super) static TOOL: Tool = Tool {
    name: "find_route",
    title: "Find an agent's URL",
    description: "Gives the URL behind an agent's x402:// entry, and who says so. Call the agent there and nowhere else, and only \
     where `denied` is null.",
    arguments: || {
        let members = json!({
            "name": name_argument(),
            "verb": {"type": "string", "description": "What the agent is to do; its first verb where none is named"},
        });
        (members, &["name"])
    },
    form: &form::ROUTE,
    urgency: Urgency::Document,
    call: |asker, given| call(asker, given).boxed(),
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    name: Label,
    verb: Option<Label>,
}

async fn call(asker: &dyn Asker, given: Value) -> Result<Answer, Failure> {
    let Arguments { name, verb } = arguments(given)?;
    let (name, verb) = (name.as_ref(), verb.as_ref().map(Label::as_ref));
    let AgentAnswer { resolver, resolution } = asker.ask(Question::new(name)).await?;
    let resolution = resolver.confirmed(resolution).await;
    let route = resolver.route(&resolution, verb);
    let answer = RouteAnswer::new(&resolver, name, verb, &resolution, &route);
    let verdict = resolution.verdict();
    let said = match (&route, answer.denied()) {
        (Err(reason), _) => OwnText::new("No URL is known for this agent.").codes([reason.code.slug()]),
        (Ok(_), None) => OwnText::new("trusted: the URL is structuredContent.route.route.url."),
        (Ok(_), Some(code)) if verdict.state == State::Trusted => {
            OwnText::new("There is a URL, but the gate denies requests to the agent: do not call it.").codes([code])
        }
        (Ok(_), Some(_)) => OwnText::new("There is a URL, but the agent is not trusted: do not call it.")
            .codes(verdict.reasons.iter().map(|reason| reason.code.slug())),
    };
    let document = serde_json::to_value(&answer).unwrap_or_default();
    Answer::about(&resolver, said, &form::ROUTE, document).await
}
