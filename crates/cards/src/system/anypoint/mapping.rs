//! The common fields of an MA²D card. Its `parameters` are prose, not a schema, so they are not carried over.

use crate::system::mapping::{
    AUTHENTICATION, CardFieldMapping, CardFieldRepresentation, CardVocabularyMap, CommonCardField, CommonSkillField,
};

const PROTOCOLS: CardVocabularyMap =
    &[("mcp", "mcp"), ("rest", "rest"), ("grpc", "grpc"), ("graphql", "graphql"), ("websocket", "websocket")];

/// The kinds of content that correspond to one media type. A voice, an image or a file may have many.
const MODES: CardVocabularyMap = &[("text", "text/plain"), ("json", "application/json")];

/// Like [`MODES`], for input, which is never JSON.
const INPUT_MODES: CardVocabularyMap = &[("text", "text/plain")];

pub(crate) static MAPPING: CardFieldMapping = CardFieldMapping {
    fields: &[
        (CommonCardField::Name, "/name", CardFieldRepresentation::Fitting(is_agent_name)),
        (CommonCardField::Slug, "/name", CardFieldRepresentation::Fitting(is_agent_name)),
        (CommonCardField::Version, "/version", CardFieldRepresentation::Text),
        (CommonCardField::Description, "/description", CardFieldRepresentation::Text),
        (CommonCardField::Organization, "/author", CardFieldRepresentation::Text),
        (CommonCardField::License, "/license", CardFieldRepresentation::Text),
        (CommonCardField::Documentation, "/homepage", CardFieldRepresentation::Text),
        (CommonCardField::Repository, "/repository", CardFieldRepresentation::Text),
        (CommonCardField::InputModes, "/capabilities/input_modes", CardFieldRepresentation::WordList(INPUT_MODES)),
        (CommonCardField::OutputModes, "/capabilities/output_modes", CardFieldRepresentation::WordList(MODES)),
        (CommonCardField::Streaming, "/capabilities/streaming", CardFieldRepresentation::Flag),
        (CommonCardField::Protocol, "/invocation/protocol", CardFieldRepresentation::Word(PROTOCOLS)),
        (CommonCardField::Endpoint, "/invocation/endpoint", CardFieldRepresentation::Fitting(is_http_url)),
        (
            CommonCardField::Authentication,
            "/invocation/authentication/type",
            CardFieldRepresentation::Word(AUTHENTICATION),
        ),
        (
            CommonCardField::Requirements,
            "/invocation/authentication/type",
            CardFieldRepresentation::Word(AUTHENTICATION),
        ),
        (CommonCardField::Created, "/metadata/created_at", CardFieldRepresentation::Text),
        (CommonCardField::Updated, "/metadata/updated_at", CardFieldRepresentation::Text),
        (CommonCardField::Tags, "/metadata/tags", CardFieldRepresentation::Texts),
    ],
    defaults: &[],
    skills: "/skills",
    skill: &[
        (CommonSkillField::Name, "/name", CardFieldRepresentation::Fitting(is_skill_name)),
        (CommonSkillField::Id, "/name", CardFieldRepresentation::Fitting(is_skill_name)),
        (CommonSkillField::Description, "/description", CardFieldRepresentation::Text),
        (CommonSkillField::Examples, "/examples", CardFieldRepresentation::Texts),
    ],
};

/// AN-1.
fn is_agent_name(text: &str) -> bool {
    (1..=50).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// AN-5.
fn is_skill_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

/// AN-8.
fn is_http_url(text: &str) -> bool {
    text.starts_with("https://") || text.starts_with("http://")
}
