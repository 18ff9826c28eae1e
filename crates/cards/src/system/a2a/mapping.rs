//! The common fields of an A2A card, in the shape of 1.0 and in that of 0.2 and 0.3.

use serde_json::{Map, Value, json};

use crate::system::mapping::{
    A2A_BINDINGS, CardFieldMapping, CardFieldRepresentation, CommonCardField, CommonSkillField, SecuritySchemeForm,
};
use clresolve_verdict::card::AgentCard;

/// The mapping for the card's shape.
pub(crate) fn mapping_for_card(card: &AgentCard) -> &'static CardFieldMapping {
    if card.get("supportedInterfaces").is_none() && card.get("url").is_some() { &OLDER } else { &CURRENT }
}

/// A2A 1.0. Only the first interface is carried over to cards of other systems.
pub(crate) static CURRENT: CardFieldMapping = CardFieldMapping {
    fields: &[
        (CommonCardField::Name, "/name", CardFieldRepresentation::Text),
        (CommonCardField::Description, "/description", CardFieldRepresentation::Text),
        (CommonCardField::Endpoint, "/supportedInterfaces/0/url", CardFieldRepresentation::Text),
        (
            CommonCardField::Protocol,
            "/supportedInterfaces/0/protocolBinding",
            CardFieldRepresentation::Word(A2A_BINDINGS),
        ),
        (
            CommonCardField::ProtocolVersion,
            "/supportedInterfaces/0/protocolVersion",
            CardFieldRepresentation::Rewritten(version_without_patch),
        ),
        (CommonCardField::Interfaces, "/supportedInterfaces", CardFieldRepresentation::Following),
        (CommonCardField::Organization, "/provider/organization", CardFieldRepresentation::Text),
        (CommonCardField::OrganizationUrl, "/provider/url", CardFieldRepresentation::Text),
        (CommonCardField::Version, "/version", CardFieldRepresentation::Text),
        (CommonCardField::Documentation, "/documentationUrl", CardFieldRepresentation::Text),
        (CommonCardField::Icon, "/iconUrl", CardFieldRepresentation::Text),
        (CommonCardField::Capabilities, "/capabilities", CardFieldRepresentation::Holder),
        (CommonCardField::Streaming, "/capabilities/streaming", CardFieldRepresentation::Flag),
        (CommonCardField::PushNotifications, "/capabilities/pushNotifications", CardFieldRepresentation::Flag),
        (CommonCardField::InputModes, "/defaultInputModes", CardFieldRepresentation::Texts),
        (CommonCardField::OutputModes, "/defaultOutputModes", CardFieldRepresentation::Texts),
        (
            CommonCardField::Authentication,
            "/securitySchemes",
            CardFieldRepresentation::Schemes(SecuritySchemeForm::OneOf),
        ),
        (CommonCardField::SchemeMap, "/securitySchemes", CardFieldRepresentation::Object),
        (CommonCardField::Requirements, "/securityRequirements", CardFieldRepresentation::Requirements),
        (CommonCardField::Extensions, "/capabilities/extensions", CardFieldRepresentation::List),
        (CommonCardField::ExtendedCard, "/capabilities/extendedAgentCard", CardFieldRepresentation::Flag),
    ],
    defaults: &[],
    skills: "/skills",
    skill: &[
        (CommonSkillField::Id, "/id", CardFieldRepresentation::Text),
        (CommonSkillField::Name, "/name", CardFieldRepresentation::Text),
        (CommonSkillField::Description, "/description", CardFieldRepresentation::Text),
        (CommonSkillField::Tags, "/tags", CardFieldRepresentation::Texts),
        (CommonSkillField::Examples, "/examples", CardFieldRepresentation::Texts),
        (CommonSkillField::InputModes, "/inputModes", CardFieldRepresentation::Texts),
        (CommonSkillField::OutputModes, "/outputModes", CardFieldRepresentation::Texts),
        (CommonSkillField::Requirements, "/securityRequirements", CardFieldRepresentation::List),
    ],
};

static OLDER: CardFieldMapping = CardFieldMapping {
    fields: &[
        (CommonCardField::Name, "/name", CardFieldRepresentation::Text),
        (CommonCardField::Description, "/description", CardFieldRepresentation::Text),
        (CommonCardField::Endpoint, "/url", CardFieldRepresentation::Text),
        (CommonCardField::Protocol, "/preferredTransport", CardFieldRepresentation::Word(A2A_BINDINGS)),
        (
            CommonCardField::Interfaces,
            "/additionalInterfaces",
            CardFieldRepresentation::Older(convert_interfaces_to_v1),
        ),
        (CommonCardField::ProtocolVersion, "/protocolVersion", CardFieldRepresentation::Text),
        (CommonCardField::Organization, "/provider/organization", CardFieldRepresentation::Text),
        (CommonCardField::OrganizationUrl, "/provider/url", CardFieldRepresentation::Text),
        (CommonCardField::Version, "/version", CardFieldRepresentation::Text),
        (CommonCardField::Documentation, "/documentationUrl", CardFieldRepresentation::Text),
        (CommonCardField::Icon, "/iconUrl", CardFieldRepresentation::Text),
        (CommonCardField::Capabilities, "/capabilities", CardFieldRepresentation::Holder),
        (CommonCardField::Streaming, "/capabilities/streaming", CardFieldRepresentation::Flag),
        (CommonCardField::PushNotifications, "/capabilities/pushNotifications", CardFieldRepresentation::Flag),
        (
            CommonCardField::StateTransitionHistory,
            "/capabilities/stateTransitionHistory",
            CardFieldRepresentation::Flag,
        ),
        (CommonCardField::InputModes, "/defaultInputModes", CardFieldRepresentation::Texts),
        (CommonCardField::OutputModes, "/defaultOutputModes", CardFieldRepresentation::Texts),
        (
            CommonCardField::Authentication,
            "/securitySchemes",
            CardFieldRepresentation::Schemes(SecuritySchemeForm::OpenApi),
        ),
        (
            CommonCardField::SchemeMap,
            "/securitySchemes",
            CardFieldRepresentation::Older(convert_security_schemes_to_v1),
        ),
        (CommonCardField::Requirements, "/security", CardFieldRepresentation::Older(convert_requirements_to_v1)),
        (CommonCardField::Extensions, "/capabilities/extensions", CardFieldRepresentation::List),
        (CommonCardField::ExtendedCard, "/supportsAuthenticatedExtendedCard", CardFieldRepresentation::Flag),
    ],
    // 0.3.0, AgentCard.preferredTransport: "If not specified, defaults to 'JSONRPC'." Older agents support nothing
    // else.
    defaults: &[(CommonCardField::Protocol, "JSONRPC")],
    skills: "/skills",
    skill: &[
        (CommonSkillField::Id, "/id", CardFieldRepresentation::Text),
        (CommonSkillField::Name, "/name", CardFieldRepresentation::Text),
        (CommonSkillField::Description, "/description", CardFieldRepresentation::Text),
        (CommonSkillField::Tags, "/tags", CardFieldRepresentation::Texts),
        (CommonSkillField::Examples, "/examples", CardFieldRepresentation::Texts),
        (CommonSkillField::InputModes, "/inputModes", CardFieldRepresentation::Texts),
        (CommonSkillField::OutputModes, "/outputModes", CardFieldRepresentation::Texts),
        (CommonSkillField::Requirements, "/security", CardFieldRepresentation::Older(convert_requirements_to_v1)),
    ],
};

/// The version without a patch number: `0.3` for `0.3.0`. Other texts are unchanged.
pub(super) fn version_without_patch(version: &str) -> &str {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    match version.rsplit_once('.') {
        Some((line, patch))
            if is_number(patch)
                && line.split_once('.').is_some_and(|(major, minor)| is_number(major) && is_number(minor)) =>
        {
            line
        }
        _ => version,
    }
}

/// Additional interfaces in the form of 1.0, all or none.
fn convert_interfaces_to_v1(older: &Value) -> Option<Value> {
    let interface = |older: &Value| {
        let mut members = older.as_object()?.clone();
        let transport = members.remove("transport").filter(Value::is_string)?;
        members.insert("protocolBinding".to_owned(), transport);
        Some(Value::from(members))
    };
    older.as_array()?.iter().map(interface).collect::<Option<Vec<_>>>().map(Value::Array)
}

/// Converts security schemes from OpenAPI's form to that of 1.0. All or none, because requirements refer to them by
/// name.
fn convert_security_schemes_to_v1(older: &Value) -> Option<Value> {
    let scheme = |(name, scheme): (&String, &Value)| Some((name.clone(), self::convert_security_scheme_to_v1(scheme)?));
    older.as_object()?.iter().map(scheme).collect::<Option<Map<_, _>>>().map(Value::Object)
}

fn convert_security_scheme_to_v1(older: &Value) -> Option<Value> {
    let mut members = older.as_object()?.clone();
    let kind = match members.remove("type")?.as_str()? {
        "apiKey" => "apiKeySecurityScheme",
        "http" => "httpAuthSecurityScheme",
        "oauth2" => "oauth2SecurityScheme",
        "openIdConnect" => "openIdConnectSecurityScheme",
        "mutualTLS" => "mtlsSecurityScheme",
        _ => return None,
    };
    if let Some(place) = members.remove("in") {
        members.insert("location".to_owned(), place);
    }
    // A scheme of 1.0 has one flow. If there are several, the choice would be arbitrary.
    let one_flow = |flows: &Value| flows.as_object().is_some_and(|flows| flows.len() == 1);
    let fits = members.get("flows").is_none_or(one_flow);
    fits.then(|| json!({ kind: members }))
}

/// Converts security requirements from `[{"name": ["scope"]}]` to the form of 1.0, `[{"schemes": {"name": {"list":
/// ["scope"]}}}]`.
fn convert_requirements_to_v1(older: &Value) -> Option<Value> {
    let requirement = |needed: &Value| {
        let scheme = |(name, scopes): (&String, &Value)| (name.clone(), json!({ "list": scopes }));
        let schemes: Map<_, _> = needed.as_object()?.iter().map(scheme).collect();
        Some(json!({ "schemes": schemes }))
    };
    older.as_array()?.iter().map(requirement).collect::<Option<Vec<_>>>().map(Value::Array)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patch_number_is_left_out_of_a_version() {
        for (version, line) in [("0.3.0", "0.3"), ("1.0.12", "1.0"), ("1.0", "1.0"), ("1", "1"), ("", "")] {
            assert_eq!(version_without_patch(version), line, "{version}");
        }
        for version in ["1.0.0-beta", "1.0.", "1..0", ".1.0", "1.0.0.0", "v1.0.0", "a.b.c"] {
            assert_eq!(version_without_patch(version), version);
        }
    }

    #[test]
    fn security_is_read_as_the_current_shape() {
        let older = json!({
            "key": {"type": "apiKey", "in": "header", "name": "X-Key", "description": "d"},
            "sign-in": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "https://a.example", "scopes": {}}}},
        });
        let current = json!({
            "key": {"apiKeySecurityScheme": {"name": "X-Key", "description": "d", "location": "header"}},
            "sign-in": {"oauth2SecurityScheme":
                {"flows": {"clientCredentials": {"tokenUrl": "https://a.example", "scopes": {}}}}},
        });
        assert_eq!(convert_security_schemes_to_v1(&older), Some(current));
        assert_eq!(convert_security_schemes_to_v1(&json!({"a": {"type": "mutualTLS"}, "b": {"type": "dance"}})), None);
        assert_eq!(
            convert_security_schemes_to_v1(
                &json!({"a": {"type": "oauth2", "flows": {"implicit": {}, "password": {}}}})
            ),
            None
        );
        let needed = json!([{"key": [], "sign-in": ["read"]}, {}]);
        let current = json!([{"schemes": {"key": {"list": []}, "sign-in": {"list": ["read"]}}}, {"schemes": {}}]);
        assert_eq!(convert_requirements_to_v1(&needed), Some(current));
        assert_eq!(convert_requirements_to_v1(&json!(["key"])), None);
    }
}
