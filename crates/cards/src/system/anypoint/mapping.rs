//! The common fields of an MA²D card. Its `parameters` are prose, not a schema, so they are not carried over.

use crate::system::mapping::{
    AUTHENTICATION, CardFieldMapping, CommonCardField, CommonSkillField, FieldRepresentation, VocabularyMap,
};

const PROTOCOLS: VocabularyMap =
    &[("mcp", "mcp"), ("rest", "rest"), ("grpc", "grpc"), ("graphql", "graphql"), ("websocket", "websocket")];

/// The kinds of content that correspond to one media type. A voice, an image or a file may have many.
const MODES: VocabularyMap = &[("text", "text/plain"), ("json", "application/json")];

/// Like [`MODES`], for input, which is never JSON.
const INPUT_MODES: VocabularyMap = &[("text", "text/plain")];

pub(crate) static MAPPING: CardFieldMapping = CardFieldMapping {
    fields: &[
        (CommonCardField::Name, "/name", FieldRepresentation::Fitting(is_name)),
        (CommonCardField::Slug, "/name", FieldRepresentation::Fitting(is_name)),
        (CommonCardField::Version, "/version", FieldRepresentation::Text),
        (CommonCardField::Description, "/description", FieldRepresentation::Text),
        (CommonCardField::Organization, "/author", FieldRepresentation::Text),
        (CommonCardField::License, "/license", FieldRepresentation::Text),
        (CommonCardField::Documentation, "/homepage", FieldRepresentation::Text),
        (CommonCardField::Repository, "/repository", FieldRepresentation::Text),
        (CommonCardField::InputModes, "/capabilities/input_modes", FieldRepresentation::WordList(INPUT_MODES)),
        (CommonCardField::OutputModes, "/capabilities/output_modes", FieldRepresentation::WordList(MODES)),
        (CommonCardField::Streaming, "/capabilities/streaming", FieldRepresentation::Flag),
        (CommonCardField::Protocol, "/invocation/protocol", FieldRepresentation::Word(PROTOCOLS)),
        (CommonCardField::Endpoint, "/invocation/endpoint", FieldRepresentation::Fitting(is_web_address)),
        (CommonCardField::Authentication, "/invocation/authentication/type", FieldRepresentation::Word(AUTHENTICATION)),
        (CommonCardField::Requirements, "/invocation/authentication/type", FieldRepresentation::Word(AUTHENTICATION)),
        (CommonCardField::Created, "/metadata/created_at", FieldRepresentation::Text),
        (CommonCardField::Updated, "/metadata/updated_at", FieldRepresentation::Text),
        (CommonCardField::Tags, "/metadata/tags", FieldRepresentation::Texts),
    ],
    defaults: &[],
    skills: "/skills",
    skill: &[
        (CommonSkillField::Name, "/name", FieldRepresentation::Fitting(is_skill_name)),
        (CommonSkillField::Id, "/name", FieldRepresentation::Fitting(is_skill_name)),
        (CommonSkillField::Description, "/description", FieldRepresentation::Text),
        (CommonSkillField::Examples, "/examples", FieldRepresentation::Texts),
    ],
};

/// AN-1.
fn is_name(text: &str) -> bool {
    (1..=50).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// AN-5.
fn is_skill_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

/// AN-8.
fn is_web_address(text: &str) -> bool {
    text.starts_with("https://") || text.starts_with("http://")
}
