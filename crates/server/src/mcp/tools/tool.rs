//! The trait of a tool, and what several tools need.

use async_trait::async_trait;
use clresolve_core::reason::Refusal;
use clresolve_resolver::cpu_share::Urgency;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::label::Label;
use crate::mcp::answer::{Answer, Failure};
use crate::mcp::asker::Asker;
use crate::mcp::form::Form;

#[async_trait]
pub(in crate::mcp) trait Tool: Send + Sync {
    fn name(&self) -> &'static str;

    /// The title for people.
    fn title(&self) -> &'static str;

    /// The description for models: when to call the tool, and how to use its answer.
    fn description(&self) -> &'static str;

    /// The members of the arguments, as schemas, and which of them are required.
    fn arguments(&self) -> (Value, &'static [&'static str]);

    fn form(&self) -> &'static Form;

    fn urgency(&self) -> Urgency {
        Urgency::Document
    }

    async fn call(&self, asker: &dyn Asker, arguments: Value) -> Result<Answer, Failure>;
}

pub(super) fn arguments<T: DeserializeOwned>(arguments: Value) -> Result<T, Failure> {
    serde_json::from_value(arguments).map_err(|error| Failure::malformed(&error.to_string()))
}

/// The schema of the argument that names an agent.
pub(super) fn name_argument() -> Value {
    json!({"type": "string", "description": "The agent's ENS name, such as summarizeagent.eth"})
}

/// Explains why a question with a profile has no answer.
pub(super) fn unanswered(refusal: Refusal, profile: Option<Label>) -> Failure {
    match profile {
        Some(id) if refusal == Refusal::ProfileUnknown => Failure::about(refusal, id.as_ref()),
        _ => refusal.into(),
    }
}
