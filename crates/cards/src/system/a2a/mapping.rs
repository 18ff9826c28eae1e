//! The common fields of an A2A card, in the shape of 1.0 and in that of 0.2 and 0.3.

use serde_json::{Map, Value, json};

use crate::system::mapping::{
    A2A_BINDINGS, CardFieldMapping, CommonCardField, CommonSkillField, FieldRepresentation, SecuritySchemeForm,
};
use clresolve_verdict::card::AgentCard;

/// The mapping for the card's shape.
pub(crate) fn mapping(card: &AgentCard) -> &'static CardFieldMapping {
    if card.get("supportedInterfaces").is_none() && card.get("url").is_some() { &OLDER } else { &CURRENT }
}

/// A2A 1.0. Only the first interface is carried over to cards of other systems.
pub(crate) static CURRENT: CardFieldMapping = CardFieldMapping {
    fields: &[
        (CommonCardField::Name, "/name", FieldRepresentation::Text),
        (CommonCardField::Description, "/description", FieldRepresentation::Text),
        (CommonCardField::Endpoint, "/supportedInterfaces/0/url", FieldRepresentation::Text),
        (CommonCardField::Protocol, "/supportedInterfaces/0/protocolBinding", FieldRepresentation::Word(A2A_BINDINGS)),
        (
            CommonCardField::ProtocolVersion,
            "/supportedInterfaces/0/protocolVersion",
            FieldRepresentation::Rewritten(line_of),
        ),
        (CommonCardField::Interfaces, "/supportedInterfaces", FieldRepresentation::Following),
        (CommonCardField::Organization, "/provider/organization", FieldRepresentation::Text),
        (CommonCardField::OrganizationUrl, "/provider/url", FieldRepresentation::Text),
        (CommonCardField::Version, "/version", FieldRepresentation::Text),
        (CommonCardField::Documentation, "/documentationUrl", FieldRepresentation::Text),
        (CommonCardField::Icon, "/iconUrl", FieldRepresentation::Text),
        (CommonCardField::Capabilities, "/capabilities", FieldRepresentation::Holder),
        (CommonCardField::Streaming, "/capabilities/streaming", FieldRepresentation::Flag),
        (CommonCardField::PushNotifications, "/capabilities/pushNotifications", FieldRepresentation::Flag),
        (CommonCardField::InputModes, "/defaultInputModes", FieldRepresentation::Texts),
        (CommonCardField::OutputModes, "/defaultOutputModes", FieldRepresentation::Texts),
        (CommonCardField::Authentication, "/securitySchemes", FieldRepresentation::Schemes(SecuritySchemeForm::OneOf)),
        (CommonCardField::SchemeMap, "/securitySchemes", FieldRepresentation::Object),
        (CommonCardField::Requirements, "/securityRequirements", FieldRepresentation::Requirements),
        (CommonCardField::Extensions, "/capabilities/extensions", FieldRepresentation::List),
        (CommonCardField::ExtendedCard, "/capabilities/extendedAgentCard", FieldRepresentation::Flag),
    ],
    defaults: &[],
    skills: "/skills",
    skill: &[
        (CommonSkillField::Id, "/id", FieldRepresentation::Text),
        (CommonSkillField::Name, "/name", FieldRepresentation::Text),
        (CommonSkillField::Description, "/description", FieldRepresentation::Text),
        (CommonSkillField::Tags, "/tags", FieldRepresentation::Texts),
        (CommonSkillField::Examples, "/examples", FieldRepresentation::Texts),
        (CommonSkillField::InputModes, "/inputModes", FieldRepresentation::Texts),
        (CommonSkillField::OutputModes, "/outputModes", FieldRepresentation::Texts),
        (CommonSkillField::Requirements, "/securityRequirements", FieldRepresentation::List),
    ],
};

static OLDER: CardFieldMapping = CardFieldMapping {
    fields: &[
        (CommonCardField::Name, "/name", FieldRepresentation::Text),
        (CommonCardField::Description, "/description", FieldRepresentation::Text),
        (CommonCardField::Endpoint, "/url", FieldRepresentation::Text),
        (CommonCardField::Protocol, "/preferredTransport", FieldRepresentation::Word(A2A_BINDINGS)),
        (CommonCardField::Interfaces, "/additionalInterfaces", FieldRepresentation::Older(convert_interfaces)),
        (CommonCardField::ProtocolVersion, "/protocolVersion", FieldRepresentation::Text),
        (CommonCardField::Organization, "/provider/organization", FieldRepresentation::Text),
        (CommonCardField::OrganizationUrl, "/provider/url", FieldRepresentation::Text),
        (CommonCardField::Version, "/version", FieldRepresentation::Text),
        (CommonCardField::Documentation, "/documentationUrl", FieldRepresentation::Text),
        (CommonCardField::Icon, "/iconUrl", FieldRepresentation::Text),
        (CommonCardField::Capabilities, "/capabilities", FieldRepresentation::Holder),
        (CommonCardField::Streaming, "/capabilities/streaming", FieldRepresentation::Flag),
        (CommonCardField::PushNotifications, "/capabilities/pushNotifications", FieldRepresentation::Flag),
        (CommonCardField::StateTransitionHistory, "/capabilities/stateTransitionHistory", FieldRepresentation::Flag),
        (CommonCardField::InputModes, "/defaultInputModes", FieldRepresentation::Texts),
        (CommonCardField::OutputModes, "/defaultOutputModes", FieldRepresentation::Texts),
        (
            CommonCardField::Authentication,
            "/securitySchemes",
            FieldRepresentation::Schemes(SecuritySchemeForm::OpenApi),
        ),
        (CommonCardField::SchemeMap, "/securitySchemes", FieldRepresentation::Older(convert_schemes)),
        (CommonCardField::Requirements, "/security", FieldRepresentation::Older(convert_requirements)),
        (CommonCardField::Extensions, "/capabilities/extensions", FieldRepresentation::List),
        (CommonCardField::ExtendedCard, "/supportsAuthenticatedExtendedCard", FieldRepresentation::Flag),
    ],
    // 0.3.0, AgentCard.preferredTransport: "If not specified, defaults to 'JSONRPC'." Older agents support nothing
    // else.
    defaults: &[(CommonCardField::Protocol, "JSONRPC")],
    skills: "/skills",
    skill: &[
        (CommonSkillField::Id, "/id", FieldRepresentation::Text),
        (CommonSkillField::Name, "/name", FieldRepresentation::Text),
        (CommonSkillField::Description, "/description", FieldRepresentation::Text),
        (CommonSkillField::Tags, "/tags", FieldRepresentation::Texts),
        (CommonSkillField::Examples, "/examples", FieldRepresentation::Texts),
        (CommonSkillField::InputModes, "/inputModes", FieldRepresentation::Texts),
        (CommonSkillField::OutputModes, "/outputModes", FieldRepresentation::Texts),
        (CommonSkillField::Requirements, "/security", FieldRepresentation::Older(convert_requirements)),
    ],
};

/// The version without a patch number: `0.3` for `0.3.0`. Other texts are unchanged.
pub(super) fn line_of(version: &str) -> &str {
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
fn convert_interfaces(older: &Value) -> Option<Value> {
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
fn convert_schemes(older: &Value) -> Option<Value> {
    let scheme = |(name, scheme): (&String, &Value)| Some((name.clone(), self::convert_scheme(scheme)?));
    older.as_object()?.iter().map(scheme).collect::<Option<Map<_, _>>>().map(Value::Object)
}

fn convert_scheme(older: &Value) -> Option<Value> {
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
fn convert_requirements(older: &Value) -> Option<Value> {
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
            assert_eq!(line_of(version), line, "{version}");
        }
        for version in ["1.0.0-beta", "1.0.", "1..0", ".1.0", "1.0.0.0", "v1.0.0", "a.b.c"] {
            assert_eq!(line_of(version), version);
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
        assert_eq!(convert_schemes(&older), Some(current));
        assert_eq!(convert_schemes(&json!({"a": {"type": "mutualTLS"}, "b": {"type": "dance"}})), None);
        assert_eq!(convert_schemes(&json!({"a": {"type": "oauth2", "flows": {"implicit": {}, "password": {}}}})), None);
        let needed = json!([{"key": [], "sign-in": ["read"]}, {}]);
        let current = json!([{"schemes": {"key": {"list": []}, "sign-in": {"list": ["read"]}}}, {"schemes": {}}]);
        assert_eq!(convert_requirements(&needed), Some(current));
        assert_eq!(convert_requirements(&json!(["key"])), None);
    }
}
