//! The messages of an A2A 1.0 card for the canonical form: their members, the type of each, and whether a member with
//! its default value is significant.
//!
//! From `specification/a2a.proto` of A2A 1.0.1 (commit 3303592588e388e62e0f69f701af531d2f4e3991), which is normative
//! from 1.0 on. `field_behavior = REQUIRED` maps to [`A2aProtobufFieldPresence::Required`]. `optional`, a `oneof` and
//! every singular message map to [`A2aProtobufFieldPresence::Explicit`]. Everything else maps to
//! [`A2aProtobufFieldPresence::Implicit`]. Names are those of the JSON form.

use serde_json::Value;

use A2aProtobufFieldPresence::{Explicit, Implicit, Required};
use A2aProtobufFieldType::{Any, Flag, Map, Message, Messages, Text, TextMap, Texts};

pub(crate) struct A2aProtobufField {
    pub(crate) name: &'static str,
    pub(crate) kind: A2aProtobufFieldType,
    pub(crate) presence: A2aProtobufFieldPresence,
}

impl A2aProtobufField {
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
pub(crate) enum A2aProtobufFieldType {
    /// `google.protobuf.Struct`: any value, of which nothing is omitted.
    Any,
    Flag,
    /// A map from names to messages.
    Map(&'static [A2aProtobufField]),
    Message(&'static [A2aProtobufField]),
    Messages(&'static [A2aProtobufField]),
    Text,
    TextMap,
    Texts,
}

impl A2aProtobufFieldType {
    /// Calls `apply` for each message in a value of this type. A value of another type contains none.
    pub(super) fn for_each_message(
        self,
        value: &mut Value,
        mut apply: impl FnMut(&mut Value, &'static [A2aProtobufField]),
    ) {
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
pub(crate) enum A2aProtobufFieldPresence {
    /// Significant: its presence has a meaning.
    Explicit,
    /// Insignificant: equivalent to an absent member.
    Implicit,
    /// Significant: the member is required.
    Required,
}

const fn protobuf_field(
    name: &'static str,
    kind: A2aProtobufFieldType,
    presence: A2aProtobufFieldPresence,
) -> A2aProtobufField {
    A2aProtobufField { name, kind, presence }
}

/// Removes members that are `null`, since the JSON form of protocol buffers treats them as absent. Entries of lists and
/// maps are kept, and so are members that the message definitions do not contain.
pub(crate) fn without_null_protobuf_fields(card: &Value) -> Value {
    let mut card = card.clone();
    remove_null_protobuf_fields(&mut card, AGENT_CARD);
    card
}

/// Messages do not contain themselves, so the recursion ends at any depth of the value.
fn remove_null_protobuf_fields(value: &mut Value, message: &'static [A2aProtobufField]) {
    let Some(members) = value.as_object_mut() else { return };
    members.retain(|name, value| {
        let Some(member) = message.iter().find(|member| member.name == name) else { return true };
        member.kind.for_each_message(value, remove_null_protobuf_fields);
        !value.is_null()
    });
}

pub(crate) static AGENT_CARD: &[A2aProtobufField] = &[
    protobuf_field("name", Text, Required),
    protobuf_field("description", Text, Required),
    protobuf_field("supportedInterfaces", Messages(AGENT_INTERFACE), Required),
    protobuf_field("provider", Message(AGENT_PROVIDER), Explicit),
    protobuf_field("version", Text, Required),
    protobuf_field("documentationUrl", Text, Explicit),
    protobuf_field("capabilities", Message(AGENT_CAPABILITIES), Required),
    protobuf_field("securitySchemes", Map(SECURITY_SCHEME), Implicit),
    protobuf_field("securityRequirements", Messages(SECURITY_REQUIREMENT), Implicit),
    protobuf_field("defaultInputModes", Texts, Required),
    protobuf_field("defaultOutputModes", Texts, Required),
    protobuf_field("skills", Messages(AGENT_SKILL), Required),
    protobuf_field("signatures", Messages(AGENT_CARD_SIGNATURE), Implicit),
    protobuf_field("iconUrl", Text, Explicit),
];

static AGENT_CARD_SIGNATURE: &[A2aProtobufField] = &[
    protobuf_field("protected", Text, Required),
    protobuf_field("signature", Text, Required),
    protobuf_field("header", Any, Explicit),
];

static AGENT_INTERFACE: &[A2aProtobufField] = &[
    protobuf_field("url", Text, Required),
    protobuf_field("protocolBinding", Text, Required),
    protobuf_field("tenant", Text, Implicit),
    protobuf_field("protocolVersion", Text, Required),
];

static AGENT_PROVIDER: &[A2aProtobufField] =
    &[protobuf_field("url", Text, Required), protobuf_field("organization", Text, Required)];

static AGENT_CAPABILITIES: &[A2aProtobufField] = &[
    protobuf_field("streaming", Flag, Explicit),
    protobuf_field("pushNotifications", Flag, Explicit),
    protobuf_field("extensions", Messages(AGENT_EXTENSION), Implicit),
    protobuf_field("extendedAgentCard", Flag, Explicit),
];

static AGENT_EXTENSION: &[A2aProtobufField] = &[
    protobuf_field("uri", Text, Implicit),
    protobuf_field("description", Text, Implicit),
    protobuf_field("required", Flag, Implicit),
    protobuf_field("params", Any, Explicit),
];

static AGENT_SKILL: &[A2aProtobufField] = &[
    protobuf_field("id", Text, Required),
    protobuf_field("name", Text, Required),
    protobuf_field("description", Text, Required),
    protobuf_field("tags", Texts, Required),
    protobuf_field("examples", Texts, Implicit),
    protobuf_field("inputModes", Texts, Implicit),
    protobuf_field("outputModes", Texts, Implicit),
    protobuf_field("securityRequirements", Messages(SECURITY_REQUIREMENT), Implicit),
];

static SECURITY_REQUIREMENT: &[A2aProtobufField] = &[protobuf_field("schemes", Map(STRING_LIST), Implicit)];

static STRING_LIST: &[A2aProtobufField] = &[protobuf_field("list", Texts, Implicit)];

pub(crate) static SECURITY_SCHEME: &[A2aProtobufField] = &[
    protobuf_field("apiKeySecurityScheme", Message(API_KEY), Explicit),
    protobuf_field("httpAuthSecurityScheme", Message(HTTP_AUTH), Explicit),
    protobuf_field("oauth2SecurityScheme", Message(OAUTH2), Explicit),
    protobuf_field("openIdConnectSecurityScheme", Message(OPEN_ID_CONNECT), Explicit),
    protobuf_field("mtlsSecurityScheme", Message(MUTUAL_TLS), Explicit),
];

static API_KEY: &[A2aProtobufField] = &[
    protobuf_field("description", Text, Implicit),
    protobuf_field("location", Text, Required),
    protobuf_field("name", Text, Required),
];

static HTTP_AUTH: &[A2aProtobufField] = &[
    protobuf_field("description", Text, Implicit),
    protobuf_field("scheme", Text, Required),
    protobuf_field("bearerFormat", Text, Implicit),
];

static OAUTH2: &[A2aProtobufField] = &[
    protobuf_field("description", Text, Implicit),
    protobuf_field("flows", Message(OAUTH_FLOWS), Required),
    protobuf_field("oauth2MetadataUrl", Text, Implicit),
];

static OPEN_ID_CONNECT: &[A2aProtobufField] =
    &[protobuf_field("description", Text, Implicit), protobuf_field("openIdConnectUrl", Text, Required)];

static MUTUAL_TLS: &[A2aProtobufField] = &[protobuf_field("description", Text, Implicit)];

pub(crate) static OAUTH_FLOWS: &[A2aProtobufField] = &[
    protobuf_field("authorizationCode", Message(AUTHORIZATION_CODE), Explicit),
    protobuf_field("clientCredentials", Message(CLIENT_CREDENTIALS), Explicit),
    protobuf_field("implicit", Message(IMPLICIT_FLOW), Explicit),
    protobuf_field("password", Message(PASSWORD_FLOW), Explicit),
    protobuf_field("deviceCode", Message(DEVICE_CODE), Explicit),
];

static AUTHORIZATION_CODE: &[A2aProtobufField] = &[
    protobuf_field("authorizationUrl", Text, Required),
    protobuf_field("tokenUrl", Text, Required),
    protobuf_field("refreshUrl", Text, Implicit),
    protobuf_field("scopes", TextMap, Required),
    protobuf_field("pkceRequired", Flag, Implicit),
];

static CLIENT_CREDENTIALS: &[A2aProtobufField] = &[
    protobuf_field("tokenUrl", Text, Required),
    protobuf_field("refreshUrl", Text, Implicit),
    protobuf_field("scopes", TextMap, Required),
];

static IMPLICIT_FLOW: &[A2aProtobufField] = &[
    protobuf_field("authorizationUrl", Text, Implicit),
    protobuf_field("refreshUrl", Text, Implicit),
    protobuf_field("scopes", TextMap, Implicit),
];

static PASSWORD_FLOW: &[A2aProtobufField] = &[
    protobuf_field("tokenUrl", Text, Implicit),
    protobuf_field("refreshUrl", Text, Implicit),
    protobuf_field("scopes", TextMap, Implicit),
];

static DEVICE_CODE: &[A2aProtobufField] = &[
    protobuf_field("deviceAuthorizationUrl", Text, Required),
    protobuf_field("tokenUrl", Text, Required),
    protobuf_field("refreshUrl", Text, Implicit),
    protobuf_field("scopes", TextMap, Required),
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
        assert_eq!(without_null_protobuf_fields(&card), expected);
    }

    #[test]
    fn snake_case_names_are_those_of_the_definition() {
        let names: Vec<String> = SECURITY_SCHEME.iter().map(A2aProtobufField::snake_case).collect();
        assert_eq!(names[..2], ["api_key_security_scheme", "http_auth_security_scheme"]);
        assert_eq!(names[2..4], ["oauth2_security_scheme", "open_id_connect_security_scheme"]);
    }
}
