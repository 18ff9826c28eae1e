//! The common fields of an Orloj card.

use crate::system::mapping::{
    AUTHENTICATION, CardFieldMapping, CardFieldRepresentation, CommonCardField, CommonSkillField,
};

pub(crate) static MAPPING: CardFieldMapping = CardFieldMapping {
    fields: &[
        (CommonCardField::Name, "/name", CardFieldRepresentation::Text),
        (CommonCardField::Description, "/description", CardFieldRepresentation::Text),
        (CommonCardField::Endpoint, "/url", CardFieldRepresentation::Text),
        (CommonCardField::Version, "/version", CardFieldRepresentation::Text),
        (CommonCardField::ProtocolVersion, "/protocolVersion", CardFieldRepresentation::Text),
        (CommonCardField::Capabilities, "/capabilities", CardFieldRepresentation::Holder),
        (CommonCardField::Streaming, "/capabilities/streaming", CardFieldRepresentation::Flag),
        (CommonCardField::PushNotifications, "/capabilities/pushNotifications", CardFieldRepresentation::Flag),
        (
            CommonCardField::StateTransitionHistory,
            "/capabilities/stateTransitionHistory",
            CardFieldRepresentation::Flag,
        ),
        (CommonCardField::Authentication, "/authentication/schemes", CardFieldRepresentation::WordList(AUTHENTICATION)),
        (CommonCardField::Requirements, "/authentication/schemes", CardFieldRepresentation::WordList(AUTHENTICATION)),
        (CommonCardField::Organization, "/provider/organization", CardFieldRepresentation::Text),
        (CommonCardField::OrganizationUrl, "/provider/url", CardFieldRepresentation::Text),
    ],
    defaults: &[],
    skills: "/skills",
    skill: &[
        (CommonSkillField::Id, "/id", CardFieldRepresentation::Text),
        (CommonSkillField::Name, "/name", CardFieldRepresentation::Text),
        (CommonSkillField::Description, "/description", CardFieldRepresentation::Text),
        (CommonSkillField::InputSchema, "/inputSchema", CardFieldRepresentation::Object),
        (CommonSkillField::Tags, "/tags", CardFieldRepresentation::Texts),
    ],
};
