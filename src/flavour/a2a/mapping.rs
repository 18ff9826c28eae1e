//! What an A2A card says, in common terms: the shape of 1.0, and that of 0.2 and 0.3.

use crate::card::Card;
use crate::flavour::mapping::{A2A_BINDINGS, Field, Form, Mapping, SchemeForm, SkillField};

/// The mapping of the shape that the card has.
pub(crate) fn mapping(card: &Card) -> &'static Mapping {
    if card.get("supportedInterfaces").is_none() && card.get("url").is_some() { &OLDER } else { &CURRENT }
}

/// A2A 1.0, of whose interfaces the first is carried.
pub(crate) static CURRENT: Mapping = Mapping {
    fields: &[
        (Field::Name, "/name", Form::Text),
        (Field::Description, "/description", Form::Text),
        (Field::Endpoint, "/supportedInterfaces/0/url", Form::Text),
        (Field::Protocol, "/supportedInterfaces/0/protocolBinding", Form::Word(A2A_BINDINGS)),
        (Field::ProtocolVersion, "/supportedInterfaces/0/protocolVersion", Form::Text),
        (Field::Organization, "/provider/organization", Form::Text),
        (Field::OrganizationUrl, "/provider/url", Form::Text),
        (Field::Version, "/version", Form::Text),
        (Field::Documentation, "/documentationUrl", Form::Text),
        (Field::Icon, "/iconUrl", Form::Text),
        (Field::Streaming, "/capabilities/streaming", Form::Flag),
        (Field::PushNotifications, "/capabilities/pushNotifications", Form::Flag),
        (Field::InputModes, "/defaultInputModes", Form::Texts),
        (Field::OutputModes, "/defaultOutputModes", Form::Texts),
        (Field::Authentication, "/securitySchemes", Form::Schemes(SchemeForm::OneOf)),
    ],
    skills: "/skills",
    skill: SKILL,
};

static OLDER: Mapping = Mapping {
    fields: &[
        (Field::Name, "/name", Form::Text),
        (Field::Description, "/description", Form::Text),
        (Field::Endpoint, "/url", Form::Text),
        (Field::Protocol, "/preferredTransport", Form::Word(A2A_BINDINGS)),
        (Field::ProtocolVersion, "/protocolVersion", Form::Text),
        (Field::Organization, "/provider/organization", Form::Text),
        (Field::OrganizationUrl, "/provider/url", Form::Text),
        (Field::Version, "/version", Form::Text),
        (Field::Documentation, "/documentationUrl", Form::Text),
        (Field::Icon, "/iconUrl", Form::Text),
        (Field::Streaming, "/capabilities/streaming", Form::Flag),
        (Field::PushNotifications, "/capabilities/pushNotifications", Form::Flag),
        (Field::StateTransitionHistory, "/capabilities/stateTransitionHistory", Form::Flag),
        (Field::InputModes, "/defaultInputModes", Form::Texts),
        (Field::OutputModes, "/defaultOutputModes", Form::Texts),
        (Field::Authentication, "/securitySchemes", Form::Schemes(SchemeForm::OpenApi)),
    ],
    skills: "/skills",
    skill: SKILL,
};

const SKILL: &[(SkillField, &str, Form)] = &[
    (SkillField::Id, "/id", Form::Text),
    (SkillField::Name, "/name", Form::Text),
    (SkillField::Description, "/description", Form::Text),
    (SkillField::Tags, "/tags", Form::Texts),
    (SkillField::Examples, "/examples", Form::Texts),
];
