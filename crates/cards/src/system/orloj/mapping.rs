//! The common fields of an Orloj card.

use crate::system::mapping::{
    AUTHENTICATION, CardFieldMapping, CommonCardField, CommonSkillField, FieldRepresentation,
};

pub(crate) static MAPPING: CardFieldMapping = CardFieldMapping {
    fields: &[
        (CommonCardField::Name, "/name", FieldRepresentation::Text),
        (CommonCardField::Description, "/description", FieldRepresentation::Text),
        (CommonCardField::Endpoint, "/url", FieldRepresentation::Text),
        (CommonCardField::Version, "/version", FieldRepresentation::Text),
        (CommonCardField::ProtocolVersion, "/protocolVersion", FieldRepresentation::Text),
        (CommonCardField::Capabilities, "/capabilities", FieldRepresentation::Holder),
        (CommonCardField::Streaming, "/capabilities/streaming", FieldRepresentation::Flag),
        (CommonCardField::PushNotifications, "/capabilities/pushNotifications", FieldRepresentation::Flag),
        (CommonCardField::StateTransitionHistory, "/capabilities/stateTransitionHistory", FieldRepresentation::Flag),
        (CommonCardField::Authentication, "/authentication/schemes", FieldRepresentation::WordList(AUTHENTICATION)),
        (CommonCardField::Requirements, "/authentication/schemes", FieldRepresentation::WordList(AUTHENTICATION)),
        (CommonCardField::Organization, "/provider/organization", FieldRepresentation::Text),
        (CommonCardField::OrganizationUrl, "/provider/url", FieldRepresentation::Text),
    ],
    defaults: &[],
    skills: "/skills",
    skill: &[
        (CommonSkillField::Id, "/id", FieldRepresentation::Text),
        (CommonSkillField::Name, "/name", FieldRepresentation::Text),
        (CommonSkillField::Description, "/description", FieldRepresentation::Text),
        (CommonSkillField::InputSchema, "/inputSchema", FieldRepresentation::Object),
        (CommonSkillField::Tags, "/tags", FieldRepresentation::Texts),
    ],
};
