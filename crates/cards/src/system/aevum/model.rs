//! The Aevum card as types. Members that version 1.0 does not know are kept (`further`); a member that is null and one
//! that is absent mean the same and are written as absent.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

use crate::system::Misshapen;
use clresolve_verdict::card::Card;

/// What the names of members begin with that are computed from the causal ledger.
pub const PACR: &str = "pacr:";

/// An Aevum AgentCard 1.0. That it has this shape does not make it valid: [`CardSystem::check`](crate::system::CardSystem)
/// says that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentCard {
    /// ULID in Crockford Base32.
    pub agent_id: String,
    /// Name for people.
    pub name: String,
    /// Semantic version of the card.
    pub version: String,
    /// What the agent can do.
    pub capabilities: Vec<Capability>,
    /// How to reach it.
    pub endpoint: Endpoint,
    /// What it costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pricing: Option<Pricing>,
    /// What the operator says freely, and what the ledger should say.
    #[serde(default, skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
    /// Members that this version does not know.
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
pub struct Capability {
    /// Identifier for machines, such as `text.generate`.
    pub id: String,
    /// What it does, for people.
    pub description: String,
    /// Words to find it by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// JSON Schema of what it takes; `None`: anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Map<String, Value>>,
    /// JSON Schema of what it gives; `None`: anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Map<String, Value>>,
    /// Members that this version does not know.
    #[serde(flatten)]
    pub further: Map<String, Value>,
}

/// How to reach the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Endpoint {
    /// How it is spoken to.
    pub protocol: Protocol,
    /// Where requests go.
    pub url: String,
    /// Where to ask whether it is up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_url: Option<String>,
    /// What it asks of callers; `None`: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// Members that this version does not know.
    #[serde(flatten)]
    pub further: Map<String, Value>,
}

/// A protocol that Aevum 1.0 knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// HTTP.
    Http,
    /// WebSocket.
    Websocket,
    /// Server-sent events.
    Sse,
    /// gRPC.
    Grpc,
    /// Model Context Protocol.
    Mcp,
    /// The A2A protocol.
    #[serde(rename = "google_a2a")]
    GoogleA2a,
    /// Aevum's own.
    Native,
}

/// What the agent asks of callers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Auth {
    /// The kind of credential.
    pub scheme: Scheme,
    /// Where tokens come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_url: Option<String>,
    /// Header that takes the credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// Other members, which the format allows here.
    #[serde(flatten)]
    pub further: Map<String, Value>,
}

/// A kind of credential that Aevum 1.0 knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheme {
    /// None is asked for.
    None,
    /// A bearer token.
    Bearer,
    /// A key in a header.
    ApiKey,
    /// OAuth 2.
    #[serde(rename = "oauth2")]
    OAuth2,
    /// A client certificate.
    Mtls,
}

/// What a request costs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pricing {
    /// Joules for a request; the canonical unit of account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_cost_joules: Option<Number>,
    /// Latency from end to end in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_latency_ms: Option<Number>,
    /// ISO 4217 code or token symbol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// Cost of a request in that currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_per_request: Option<Number>,
    /// Members that this version does not know.
    #[serde(flatten)]
    pub further: Map<String, Value>,
}

/// The metadata of a card, in which two kinds of statement stand side by side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Metadata(pub Map<String, Value>);

impl Metadata {
    /// What the operator says of the agent, freely (AE-19).
    pub fn free(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.0.iter().filter(|(name, _)| !name.starts_with(PACR))
    }

    /// What only the causal ledger can say (AE-17). In a card that its operator serves it is unverified: report it, and
    /// decide nothing by it.
    pub fn unverified(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.0.iter().filter(|(name, _)| name.starts_with(PACR))
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
