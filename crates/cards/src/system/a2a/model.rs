//! The A2A card as types: [`AgentCard`] is that of 1.0, [`OlderCard`] that of 0.2 and 0.3. Members that these versions do
//! not know are kept (`further`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::system::Misshapen;
use clresolve_verdict::card::Card;

/// An A2A 1.0 card. That it has this shape does not make it valid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentCard {
    /// Name for people.
    pub name: String,
    /// What the agent does, for people.
    pub description: String,
    /// Where and how it is called, the preferred way first.
    pub supported_interfaces: Vec<Interface>,
    /// Who offers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Provider>,
    /// Version of the agent.
    pub version: String,
    /// Web address of its documentation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documentation_url: Option<String>,
    /// Web address of an icon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icon_url: Option<String>,
    /// What it supports of the protocol.
    pub capabilities: Capabilities,
    /// Ways to authenticate, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub security_schemes: BTreeMap<String, Value>,
    /// Alternatives, of which a caller meets one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub security_requirements: Vec<Value>,
    /// Media types that it takes.
    pub default_input_modes: Vec<String>,
    /// Media types that it gives.
    pub default_output_modes: Vec<String>,
    /// What it can do.
    pub skills: Vec<Skill>,
    /// Signatures over the card without this member.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signatures: Vec<Signature>,
    /// Members that 1.0 does not know.
    #[serde(flatten)]
    pub further: Map<String, Value>,
}

impl TryFrom<&Card> for AgentCard {
    type Error = Misshapen;

    fn try_from(card: &Card) -> Result<Self, Misshapen> {
        Self::deserialize(card.document()).map_err(|error| Misshapen::of(&error))
    }
}

/// An A2A card of 0.2 or 0.3. That it has this shape does not make it valid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OlderCard {
    /// Version of the protocol; cards before 0.2.6 have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// Name for people.
    pub name: String,
    /// What the agent does, for people.
    pub description: String,
    /// The preferred endpoint.
    pub url: String,
    /// How that is spoken to; JSONRPC where it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred_transport: Option<String>,
    /// Further endpoints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub additional_interfaces: Vec<OlderInterface>,
    /// Who offers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Provider>,
    /// Version of the agent.
    pub version: String,
    /// What it supports of the protocol.
    pub capabilities: Capabilities,
    /// Media types that it takes.
    pub default_input_modes: Vec<String>,
    /// Media types that it gives.
    pub default_output_modes: Vec<String>,
    /// What it can do.
    pub skills: Vec<Skill>,
    /// Signatures over the card without this member (0.3).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signatures: Vec<Signature>,
    /// All other members.
    #[serde(flatten)]
    pub further: Map<String, Value>,
}

impl TryFrom<&Card> for OlderCard {
    type Error = Misshapen;

    fn try_from(card: &Card) -> Result<Self, Misshapen> {
        Self::deserialize(card.document()).map_err(|error| Misshapen::of(&error))
    }
}

/// Where and how an agent of 1.0 is called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Interface {
    /// The endpoint.
    pub url: String,
    /// `JSONRPC`, `GRPC`, `HTTP+JSON`, or another one's own.
    pub protocol_binding: String,
    /// Version of A2A spoken there.
    pub protocol_version: String,
    /// Members that 1.0 does not know, and `tenant`.
    #[serde(flatten)]
    pub further: Map<String, Value>,
}

/// A further endpoint of an older card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OlderInterface {
    /// The endpoint.
    pub url: String,
    /// How it is spoken to.
    pub transport: String,
    /// Members that these versions do not know.
    #[serde(flatten)]
    pub further: Map<String, Value>,
}

/// Who offers an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Provider {
    /// Name.
    pub organization: String,
    /// Web address.
    pub url: String,
    /// Members that no version knows.
    #[serde(flatten)]
    pub further: Map<String, Value>,
}

/// What an agent supports of the protocol.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    /// Answers as they arise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streaming: Option<bool>,
    /// Calls back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push_notifications: Option<bool>,
    /// What it speaks beyond the protocol; `None` where the card has no such list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Vec<Extension>>,
    /// All other members.
    #[serde(flatten)]
    pub further: Map<String, Value>,
}

/// Something that an agent speaks beyond the protocol.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Extension {
    /// Identifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether a caller must speak it too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// What the extension says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Map<String, Value>>,
    /// Members that no version knows.
    #[serde(flatten)]
    pub further: Map<String, Value>,
}

/// Something that an agent can do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Skill {
    /// Identifier, unique in the card.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// All other members.
    #[serde(flatten)]
    pub further: Map<String, Value>,
}

/// A JWS over the card, detached (RFC 7515).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Signature {
    /// The protected header, base64url.
    pub protected: String,
    /// The signature, base64url.
    pub signature: String,
    /// The unprotected header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<Map<String, Value>>,
    /// Members that no version knows.
    #[serde(flatten)]
    pub further: Map<String, Value>,
}
