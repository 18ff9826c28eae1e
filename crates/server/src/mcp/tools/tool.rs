//! A tool, and what several tools need.

use std::sync::LazyLock;

use clresolve_core::reason::RefusalCode;
use clresolve_resolver::cpu_share::CpuJobUrgency;
use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::label::BoundedText;
use crate::mcp::answer::{McpToolAnswer, McpToolFailure};
use crate::mcp::asker::McpBackend;
use crate::mcp::form::McpToolOutputSchema;

pub(in crate::mcp) struct McpTool {
    pub(in crate::mcp) name: &'static str,
    /// The title for people.
    pub(super) title: &'static str,
    /// The description for models: when to call the tool, and how to use its answer.
    pub(super) description: &'static str,
    /// The members of the arguments, as schemas, and which of them are required.
    pub(super) arguments: fn() -> (Value, &'static [&'static str]),
    pub(in crate::mcp) form: &'static LazyLock<McpToolOutputSchema>,
    pub(in crate::mcp) urgency: CpuJobUrgency,
    pub(in crate::mcp) call:
        for<'a> fn(&'a dyn McpBackend, Value) -> BoxFuture<'a, Result<McpToolAnswer, McpToolFailure>>,
}

pub(super) fn parse_arguments<T: DeserializeOwned>(arguments: Value) -> Result<T, McpToolFailure> {
    serde_json::from_value(arguments).map_err(|error| McpToolFailure::malformed(&error.to_string()))
}

/// The schema of the argument that names an agent.
pub(super) fn agent_name_argument_schema() -> Value {
    json!({"type": "string", "description": "The agent's ENS name, such as summarizeagent.eth"})
}

/// Explains why a question with a profile has no answer.
pub(super) fn explain_refusal(refusal: RefusalCode, profile: Option<BoundedText>) -> McpToolFailure {
    match profile {
        Some(id) if refusal == RefusalCode::ProfileUnknown => McpToolFailure::from_refusal(refusal, id.as_ref()),
        _ => refusal.into(),
    }
}
