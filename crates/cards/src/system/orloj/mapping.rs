//! The common fields of an Orloj card.

use crate::system::mapping::{AUTHENTICATION, Field, Form, Mapping, SkillField};

pub(crate) static MAPPING: Mapping = Mapping {
    fields: &[
        (Field::Name, "/name", Form::Text),
        (Field::Description, "/description", Form::Text),
        (Field::Endpoint, "/url", Form::Text),
        (Field::Version, "/version", Form::Text),
        (Field::ProtocolVersion, "/protocolVersion", Form::Text),
        (Field::Capabilities, "/capabilities", Form::Holder),
        (Field::Streaming, "/capabilities/streaming", Form::Flag),
        (Field::PushNotifications, "/capabilities/pushNotifications", Form::Flag),
        (Field::StateTransitionHistory, "/capabilities/stateTransitionHistory", Form::Flag),
        (Field::Authentication, "/authentication/schemes", Form::WordList(AUTHENTICATION)),
        (Field::Requirements, "/authentication/schemes", Form::WordList(AUTHENTICATION)),
        (Field::Organization, "/provider/organization", Form::Text),
        (Field::OrganizationUrl, "/provider/url", Form::Text),
    ],
    defaults: &[],
    skills: "/skills",
    skill: &[
        (SkillField::Id, "/id", Form::Text),
        (SkillField::Name, "/name", Form::Text),
        (SkillField::Description, "/description", Form::Text),
        (SkillField::InputSchema, "/inputSchema", Form::Object),
        (SkillField::Tags, "/tags", Form::Texts),
    ],
};
