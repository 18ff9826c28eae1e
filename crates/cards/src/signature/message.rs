//! The messages of an A2A 1.0 card for the canonical form: their members, the type of each, and whether a member with
//! its default value is significant.
//!
//! From `specification/a2a.proto` of A2A 1.0.1 (commit 3303592588e388e62e0f69f701af531d2f4e3991), which is normative
//! from 1.0 on. `field_behavior = REQUIRED` maps to [`ProtobufFieldPresence::Required`]. `optional`, a `oneof` and
//! every singular message map to [`ProtobufFieldPresence::Explicit`]. Everything else maps to
//! [`ProtobufFieldPresence::Implicit`]. Names are those of the JSON form.

use serde_json::Value;

use ProtobufFieldPresence::{Explicit, Implicit, Required};
use ProtobufFieldType::{Any, Flag, Map, Message, Messages, Text, TextMap, Texts};

pub(crate) struct ProtobufField {
    pub(crate) name: &'static str,
    pub(crate) kind: ProtobufFieldType,
    pub(crate) presence: ProtobufFieldPresence,
}

impl ProtobufField {
    /// The member's name in the message definition, from which its JSON name is derived.
    pub(crate) fn snake_case(&self) -> String {
        let mut name = String::new();
        for letter in self.name.chars() {
            if letter.is_ascii_uppercase() {
                name.push('_');
            }
            name.push(letter.to_ascii_lowercase());
        }
        name
    }
}

#[derive(Clone, Copy)]
pub(crate) enum ProtobufFieldType {
    /// `google.protobuf.Struct`: any value, of which nothing is omitted.
    Any,
    Flag,
    /// A map from names to messages.
    Map(&'static [ProtobufField]),
    Message(&'static [ProtobufField]),
    Messages(&'static [ProtobufField]),
    Text,
    TextMap,
    Texts,
}

impl ProtobufFieldType {
    /// Calls `apply` for each message in a value of this type. A value of another type contains none.
    pub(super) fn each_message(self, value: &mut Value, mut apply: impl FnMut(&mut Value, &'static [ProtobufField])) {
        match self {
            Message(message) => apply(value, message),
            Messages(message) => value.as_array_mut().into_iter().flatten().for_each(|item| apply(item, message)),
            Map(message) => {
                value.as_object_mut().into_iter().flatten().for_each(|(_, entry)| apply(entry, message));
            }
            Any | Flag | Text | TextMap | Texts => {}
        }
    }
}

/// Whether a member with its default value is significant.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProtobufFieldPresence {
    /// Significant: its presence has a meaning.
    Explicit,
    /// Insignificant: equivalent to an absent member.
    Implicit,
    /// Significant: the member is required.
    Required,
}

const fn member(name: &'static str, kind: ProtobufFieldType, presence: ProtobufFieldPresence) -> ProtobufField {
    ProtobufField { name, kind, presence }
}

/// Removes members that are `null`, since the JSON form of protocol buffers treats them as absent. Entries of lists and
/// maps are kept, and so are members that the message definitions do not contain.
pub(crate) fn without_nulls(card: &Value) -> Value {
    let mut card = card.clone();
    drop_nulls(&mut card, AGENT_CARD);
    card
}

/// Messages do not contain themselves, so the recursion ends at any depth of the value.
fn drop_nulls(value: &mut Value, message: &'static [ProtobufField]) {
    let Some(members) = value.as_object_mut() else { return };
    members.retain(|name, value| {
        let Some(member) = message.iter().find(|member| member.name == name) else { return true };
        member.kind.each_message(value, drop_nulls);
        !value.is_null()
    });
}

pub(crate) static AGENT_CARD: &[ProtobufField] = &[
    member("name", Text, Required),
    member("description", Text, Required),
    member("supportedInterfaces", Messages(AGENT_INTERFACE), Required),
    member("provider", Message(AGENT_PROVIDER), Explicit),
    member("version", Text, Required),
    member("documentationUrl", Text, Explicit),
    member("capabilities", Message(AGENT_CAPABILITIES), Required),
    member("securitySchemes", Map(SECURITY_SCHEME), Implicit),
    member("securityRequirements", Messages(SECURITY_REQUIREMENT), Implicit),
    member("defaultInputModes", Texts, Required),
    member("defaultOutputModes", Texts, Required),
    member("skills", Messages(AGENT_SKILL), Required),
    member("signatures", Messages(AGENT_CARD_SIGNATURE), Implicit),
    member("iconUrl", Text, Explicit),
];

static AGENT_CARD_SIGNATURE: &[ProtobufField] =
    &[member("protected", Text, Required), member("signature", Text, Required), member("header", Any, Explicit)];

static AGENT_INTERFACE: &[ProtobufField] = &[
    member("url", Text, Required),
    member("protocolBinding", Text, Required),
    member("tenant", Text, Implicit),
    member("protocolVersion", Text, Required),
];

static AGENT_PROVIDER: &[ProtobufField] = &[member("url", Text, Required), member("organization", Text, Required)];

static AGENT_CAPABILITIES: &[ProtobufField] = &[
    member("streaming", Flag, Explicit),
    member("pushNotifications", Flag, Explicit),
    member("extensions", Messages(AGENT_EXTENSION), Implicit),
    member("extendedAgentCard", Flag, Explicit),
];

static AGENT_EXTENSION: &[ProtobufField] = &[
    member("uri", Text, Implicit),
    member("description", Text, Implicit),
    member("required", Flag, Implicit),
    member("params", Any, Explicit),
];

static AGENT_SKILL: &[ProtobufField] = &[
    member("id", Text, Required),
    member("name", Text, Required),
    member("description", Text, Required),
    member("tags", Texts, Required),
    member("examples", Texts, Implicit),
    member("inputModes", Texts, Implicit),
    member("outputModes", Texts, Implicit),
    member("securityRequirements", Messages(SECURITY_REQUIREMENT), Implicit),
];

static SECURITY_REQUIREMENT: &[ProtobufField] = &[member("schemes", Map(STRING_LIST), Implicit)];

static STRING_LIST: &[ProtobufField] = &[member("list", Texts, Implicit)];

pub(crate) static SECURITY_SCHEME: &[ProtobufField] = &[
    member("apiKeySecurityScheme", Message(API_KEY), Explicit),
    member("httpAuthSecurityScheme", Message(HTTP_AUTH), Explicit),
    member("oauth2SecurityScheme", Message(OAUTH2), Explicit),
    member("openIdConnectSecurityScheme", Message(OPEN_ID_CONNECT), Explicit),
    member("mtlsSecurityScheme", Message(MUTUAL_TLS), Explicit),
];

static API_KEY: &[ProtobufField] =
    &[member("description", Text, Implicit), member("location", Text, Required), member("name", Text, Required)];

static HTTP_AUTH: &[ProtobufField] =
    &[member("description", Text, Implicit), member("scheme", Text, Required), member("bearerFormat", Text, Implicit)];

static OAUTH2: &[ProtobufField] = &[
    member("description", Text, Implicit),
    member("flows", Message(OAUTH_FLOWS), Required),
    member("oauth2MetadataUrl", Text, Implicit),
];

static OPEN_ID_CONNECT: &[ProtobufField] =
    &[member("description", Text, Implicit), member("openIdConnectUrl", Text, Required)];

static MUTUAL_TLS: &[ProtobufField] = &[member("description", Text, Implicit)];

pub(crate) static OAUTH_FLOWS: &[ProtobufField] = &[
    member("authorizationCode", Message(AUTHORIZATION_CODE), Explicit),
    member("clientCredentials", Message(CLIENT_CREDENTIALS), Explicit),
    member("implicit", Message(IMPLICIT_FLOW), Explicit),
    member("password", Message(PASSWORD_FLOW), Explicit),
    member("deviceCode", Message(DEVICE_CODE), Explicit),
];

static AUTHORIZATION_CODE: &[ProtobufField] = &[
    member("authorizationUrl", Text, Required),
    member("tokenUrl", Text, Required),
    member("refreshUrl", Text, Implicit),
    member("scopes", TextMap, Required),
    member("pkceRequired", Flag, Implicit),
];

static CLIENT_CREDENTIALS: &[ProtobufField] =
    &[member("tokenUrl", Text, Required), member("refreshUrl", Text, Implicit), member("scopes", TextMap, Required)];

static IMPLICIT_FLOW: &[ProtobufField] = &[
    member("authorizationUrl", Text, Implicit),
    member("refreshUrl", Text, Implicit),
    member("scopes", TextMap, Implicit),
];

static PASSWORD_FLOW: &[ProtobufField] =
    &[member("tokenUrl", Text, Implicit), member("refreshUrl", Text, Implicit), member("scopes", TextMap, Implicit)];

static DEVICE_CODE: &[ProtobufField] = &[
    member("deviceAuthorizationUrl", Text, Required),
    member("tokenUrl", Text, Required),
    member("refreshUrl", Text, Implicit),
    member("scopes", TextMap, Required),
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn null_members_of_messages_are_dropped() {
        let card = json!({
            "name": null, "further": null, "signatures": [{"protected": "e30", "header": null}, null],
            "capabilities": {"streaming": null, "extensions": [{"uri": null, "params": {"a": null}}]},
            "securitySchemes": {"a": {"mtlsSecurityScheme": {"description": null}, "apiKeySecurityScheme": null}, "b": null},
            "securityRequirements": [{"schemes": {"a": {"list": null}, "b": null}}, {"schemes": null}],
            "skills": [{"id": "s", "tags": null}, null, 5],
        });
        let expected = json!({
            "further": null, "signatures": [{"protected": "e30"}, null],
            "capabilities": {"extensions": [{"params": {"a": null}}]},
            "securitySchemes": {"a": {"mtlsSecurityScheme": {}}, "b": null},
            "securityRequirements": [{"schemes": {"a": {}, "b": null}}, {}],
            "skills": [{"id": "s"}, null, 5],
        });
        assert_eq!(without_nulls(&card), expected);
    }

    #[test]
    fn snake_case_names_are_those_of_the_definition() {
        let names: Vec<String> = SECURITY_SCHEME.iter().map(ProtobufField::snake_case).collect();
        assert_eq!(names[..2], ["api_key_security_scheme", "http_auth_security_scheme"]);
        assert_eq!(names[2..4], ["oauth2_security_scheme", "open_id_connect_security_scheme"]);
    }
}
