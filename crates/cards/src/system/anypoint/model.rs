//! The MA²D card as types. Members that the text does not list are kept (`further`).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::system::Misshapen;
use clresolve_verdict::card::Card;

/// An MA²D agent card. That it has this shape does not make it valid: [`CardSystem::check`](crate::system::CardSystem) says
/// that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentCard {
    /// Identifier of the agent, unique within its organisation.
    pub name: String,
    /// Semantic version of the agent.
    pub version: String,
    /// Purpose and capabilities, in 200 to 2000 characters.
    pub description: String,
    /// Who made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Licence of the software.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// Web page of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub homepage: Option<String>,
    /// Where its source is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// What it can do.
    pub skills: Vec<Skill>,
    /// How it can be spoken to, technically.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// How to call it.
    pub invocation: Invocation,
    /// Calls with their results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Example>,
    /// Dates, tags and categories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// Members that the text does not list.
    #[serde(flatten)]
    pub further: Map<String, Value>,
}

impl TryFrom<&Card> for AgentCard {
    type Error = Misshapen;

    fn try_from(card: &Card) -> Result<Self, Misshapen> {
        Self::deserialize(card.document()).map_err(|error| Misshapen::of(&error))
    }
}

/// One thing that the agent can do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Skill {
    /// Identifier in snake_case.
    pub name: String,
    /// What it does, in at least 50 characters.
    pub description: String,
    /// What it takes: names with a description of each in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Map<String, Value>>,
    /// What it gives, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns: Option<String>,
    /// Examples of its use, in no particular form.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Value>,
    /// MCP server that implements it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_server: Option<String>,
    /// Tool of that server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_tool: Option<String>,
    /// Members that the text does not list.
    #[serde(flatten)]
    pub further: Map<String, Value>,
}

/// How the agent can be spoken to. What is a yes or no is no where it is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Capabilities {
    /// ISO 639-1 codes of the languages that it speaks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub languages: Vec<String>,
    /// Fields that it knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<String>,
    /// What it takes in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input_modes: Vec<InputMode>,
    /// What it gives out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output_modes: Vec<OutputMode>,
    /// Whether it answers in a stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streaming: Option<bool>,
    /// Whether it answers later.
    #[serde(default, rename = "async", skip_serializing_if = "Option::is_none")]
    pub asynchronous: Option<bool>,
    /// Whether it remembers the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_management: Option<bool>,
    /// How often it may be called, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<String>,
    /// Members that the text does not list.
    #[serde(flatten)]
    pub further: Map<String, Value>,
}

/// A kind of input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InputMode {
    /// Text.
    Text,
    /// Speech.
    Voice,
    /// Pictures.
    Image,
    /// Films.
    Video,
    /// Files of any kind.
    File,
}

/// A kind of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputMode {
    /// Text.
    Text,
    /// JSON.
    Json,
    /// Speech.
    Speech,
    /// Pictures.
    Image,
    /// Films.
    Video,
    /// Files of any kind.
    File,
}

/// How to call the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Invocation {
    /// How it is spoken to.
    pub protocol: Protocol,
    /// HTTP or HTTPS URL of its API.
    pub endpoint: String,
    /// What it asks of callers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authentication: Option<Authentication>,
    /// HTTP method, where there is one; [`Invocation::method`] knows the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Form of requests and answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// Members that the text does not list.
    #[serde(flatten)]
    pub further: Map<String, Value>,
}

impl Invocation {
    /// The HTTP method: POST unless another is named.
    pub fn method(&self) -> &str {
        self.method.as_deref().unwrap_or("POST")
    }
}

/// A protocol that the text knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Model Context Protocol.
    Mcp,
    /// REST.
    Rest,
    /// gRPC.
    Grpc,
    /// GraphQL.
    Graphql,
    /// WebSocket.
    Websocket,
}

/// What the agent asks of callers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Authentication {
    /// The kind of credential.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<AuthType>,
    /// Whether it must be there; no where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// Members that the text does not list.
    #[serde(flatten)]
    pub further: Map<String, Value>,
}

/// A kind of credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthType {
    /// None is asked for.
    None,
    /// A bearer token.
    Bearer,
    /// A key.
    ApiKey,
    /// OAuth 2.
    #[serde(rename = "oauth2")]
    OAuth2,
    /// Name and password.
    Basic,
    /// A client certificate.
    Mtls,
}

/// A form of requests and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// JSON-RPC.
    JsonRpc,
    /// REST.
    Rest,
    /// GraphQL.
    Graphql,
}

/// A call with its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Example {
    /// Name of the skill that it shows.
    pub skill: String,
    /// What it shows, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What the skill is given.
    pub input: Map<String, Value>,
    /// What it gives back.
    pub output: Map<String, Value>,
    /// Members that the text does not list.
    #[serde(flatten)]
    pub further: Map<String, Value>,
}

/// Dates, tags and categories.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    /// When the card was made, in ISO 8601.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// When it was last changed, in ISO 8601.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
    /// Words to find it by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// What it is filed under.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    /// Members that the text does not list.
    #[serde(flatten)]
    pub further: Map<String, Value>,
}
