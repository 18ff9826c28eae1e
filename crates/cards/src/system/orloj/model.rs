//! Orloj's agent card as types. Members that its page does not know are kept (`further`).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::system::Misshapen;
use clresolve_verdict::card::Card;

/// An Orloj agent card. That it has this shape does not make it valid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentCard {
    /// Name of the AgentSystem.
    pub name: String,
    /// What it does, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON-RPC endpoint.
    pub url: String,
    /// Version of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Version of A2A that the server is set to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// What the endpoint supports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// The tools of the agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<Skill>,
    /// What the endpoint asks of callers; `None`: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authentication: Option<Authentication>,
    /// Who runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Provider>,
    /// Members that the page does not know.
    #[serde(flatten)]
    pub further: Map<String, Value>,
}

impl TryFrom<&Card> for AgentCard {
    type Error = Misshapen;

    fn try_from(card: &Card) -> Result<Self, Misshapen> {
        Self::deserialize(card.document()).map_err(|error| Misshapen::of(&error))
    }
}

/// What an endpoint supports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    /// Answers as they arise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streaming: Option<bool>,
    /// Calls back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push_notifications: Option<bool>,
    /// Keeps the history of tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_transition_history: Option<bool>,
    /// Members that the page does not know.
    #[serde(flatten)]
    pub further: Map<String, Value>,
}

/// A tool of the agents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Skill {
    /// Name of the tool.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// What it does; left out where the tool says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of what it takes; left out where the tool has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Map<String, Value>>,
    /// Words to find it by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Members that the page does not know.
    #[serde(flatten)]
    pub further: Map<String, Value>,
}

/// What an endpoint asks of callers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Authentication {
    /// The schemes, such as `bearer`.
    #[serde(default)]
    pub schemes: Vec<String>,
    /// Members that the page does not know.
    #[serde(flatten)]
    pub further: Map<String, Value>,
}

/// Who runs the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Provider {
    /// Name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization: Option<String>,
    /// Web address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Members that the page does not know.
    #[serde(flatten)]
    pub further: Map<String, Value>,
}
