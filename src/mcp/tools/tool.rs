//! What a tool is, and what several of them need.

use async_trait::async_trait;
use clresolve_core::reason::Refusal;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::label::Label;
use crate::cpu_share::Urgency;
use crate::mcp::answer::{Answer, Failure};
use crate::mcp::asker::Asker;
use crate::mcp::form::Form;

/// One tool.
#[async_trait]
pub(in crate::mcp) trait Tool: Send + Sync {
    fn name(&self) -> &'static str;

    /// For people.
    fn title(&self) -> &'static str;

    /// For models: when to call it, and what to do with its answer.
    fn description(&self) -> &'static str;

    /// The members of its arguments, as schemas, and which of them it needs.
    fn arguments(&self) -> (Value, &'static [&'static str]);

    /// What its answers look like.
    fn form(&self) -> &'static Form;

    /// Who waits for its answer.
    fn urgency(&self) -> Urgency {
        Urgency::Document
    }

    /// Its answer.
    async fn call(&self, asker: &dyn Asker, arguments: Value) -> Result<Answer, Failure>;
}

/// The arguments of a call.
pub(super) fn arguments<T: DeserializeOwned>(arguments: Value) -> Result<T, Failure> {
    serde_json::from_value(arguments).map_err(|error| Failure::malformed(&error.to_string()))
}

/// The schema of the argument that names an agent.
pub(super) fn name_argument() -> Value {
    json!({"type": "string", "description": "The agent's ENS name, such as summarizeagent.eth"})
}

/// Why a question about a profile has no answer.
pub(super) fn unanswered(refusal: Refusal, profile: Option<Label>) -> Failure {
    match profile {
        Some(id) if refusal == Refusal::ProfileUnknown => Failure::about(refusal, id.as_ref()),
        _ => refusal.into(),
    }
}
