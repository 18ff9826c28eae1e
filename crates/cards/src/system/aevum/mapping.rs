//! The common fields of an Aevum card. Other systems have no equivalent of its prices and its `agent_id`.

use crate::system::mapping::{
    AUTHENTICATION, CardFieldMapping, CommonCardField, CommonSkillField, FieldRepresentation, VocabularyMap,
};

/// `google_a2a` stands for every A2A binding. An Aevum card does not specify which one.
const PROTOCOLS: VocabularyMap = &[
    ("google_a2a", "a2a+jsonrpc"),
    ("google_a2a", "a2a+grpc"),
    ("google_a2a", "a2a+http"),
    ("http", "http"),
    ("websocket", "websocket"),
    ("sse", "sse"),
    ("grpc", "grpc"),
    ("mcp", "mcp"),
    ("native", "native"),
];

pub(crate) static MAPPING: CardFieldMapping = CardFieldMapping {
    fields: &[
        (CommonCardField::Name, "/name", FieldRepresentation::Text),
        (CommonCardField::Version, "/version", FieldRepresentation::Text),
        (CommonCardField::Endpoint, "/endpoint/url", FieldRepresentation::Text),
        (CommonCardField::Protocol, "/endpoint/protocol", FieldRepresentation::Word(PROTOCOLS)),
        (CommonCardField::Authentication, "/endpoint/auth/scheme", FieldRepresentation::Word(AUTHENTICATION)),
        (CommonCardField::Requirements, "/endpoint/auth/scheme", FieldRepresentation::Word(AUTHENTICATION)),
    ],
    defaults: &[],
    skills: "/capabilities",
    skill: &[
        (CommonSkillField::Id, "/id", FieldRepresentation::Text),
        (CommonSkillField::Description, "/description", FieldRepresentation::Text),
        (CommonSkillField::Tags, "/tags", FieldRepresentation::Texts),
        (CommonSkillField::InputSchema, "/input_schema", FieldRepresentation::Object),
        (CommonSkillField::OutputSchema, "/output_schema", FieldRepresentation::Object),
    ],
};
