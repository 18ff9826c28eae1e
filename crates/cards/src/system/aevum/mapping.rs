//! The common fields of an Aevum card. Other systems have no equivalent of its prices and its `agent_id`.

use crate::system::mapping::{
    AUTHENTICATION, CardFieldMapping, CardFieldRepresentation, CardVocabularyMap, CommonCardField, CommonSkillField,
};

/// `google_a2a` stands for every A2A binding. An Aevum card does not specify which one.
const PROTOCOLS: CardVocabularyMap = &[
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
        (CommonCardField::Name, "/name", CardFieldRepresentation::Text),
        (CommonCardField::Version, "/version", CardFieldRepresentation::Text),
        (CommonCardField::Endpoint, "/endpoint/url", CardFieldRepresentation::Text),
        (CommonCardField::Protocol, "/endpoint/protocol", CardFieldRepresentation::Word(PROTOCOLS)),
        (CommonCardField::Authentication, "/endpoint/auth/scheme", CardFieldRepresentation::Word(AUTHENTICATION)),
        (CommonCardField::Requirements, "/endpoint/auth/scheme", CardFieldRepresentation::Word(AUTHENTICATION)),
    ],
    defaults: &[],
    skills: "/capabilities",
    skill: &[
        (CommonSkillField::Id, "/id", CardFieldRepresentation::Text),
        (CommonSkillField::Description, "/description", CardFieldRepresentation::Text),
        (CommonSkillField::Tags, "/tags", CardFieldRepresentation::Texts),
        (CommonSkillField::InputSchema, "/input_schema", CardFieldRepresentation::Object),
        (CommonSkillField::OutputSchema, "/output_schema", CardFieldRepresentation::Object),
    ],
};
