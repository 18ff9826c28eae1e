//! The common fields of an MA²D card. Its `parameters` are prose, not a schema, so they are not carried over.

use crate::system::mapping::{AUTHENTICATION, Field, Form, Mapping, SkillField, Words};

const PROTOCOLS: Words =
    &[("mcp", "mcp"), ("rest", "rest"), ("grpc", "grpc"), ("graphql", "graphql"), ("websocket", "websocket")];

/// The kinds of content that correspond to one media type. A voice, an image or a file may have many.
const MODES: Words = &[("text", "text/plain"), ("json", "application/json")];

/// Like [`MODES`], for input, which is never JSON.
const INPUT_MODES: Words = &[("text", "text/plain")];

pub(crate) static MAPPING: Mapping = Mapping {
    fields: &[
        (Field::Name, "/name", Form::Fitting(is_name)),
        (Field::Slug, "/name", Form::Fitting(is_name)),
        (Field::Version, "/version", Form::Text),
        (Field::Description, "/description", Form::Text),
        (Field::Organization, "/author", Form::Text),
        (Field::License, "/license", Form::Text),
        (Field::Documentation, "/homepage", Form::Text),
        (Field::Repository, "/repository", Form::Text),
        (Field::InputModes, "/capabilities/input_modes", Form::WordList(INPUT_MODES)),
        (Field::OutputModes, "/capabilities/output_modes", Form::WordList(MODES)),
        (Field::Streaming, "/capabilities/streaming", Form::Flag),
        (Field::Protocol, "/invocation/protocol", Form::Word(PROTOCOLS)),
        (Field::Endpoint, "/invocation/endpoint", Form::Fitting(is_web_address)),
        (Field::Authentication, "/invocation/authentication/type", Form::Word(AUTHENTICATION)),
        (Field::Requirements, "/invocation/authentication/type", Form::Word(AUTHENTICATION)),
        (Field::Created, "/metadata/created_at", Form::Text),
        (Field::Updated, "/metadata/updated_at", Form::Text),
        (Field::Tags, "/metadata/tags", Form::Texts),
    ],
    defaults: &[],
    skills: "/skills",
    skill: &[
        (SkillField::Name, "/name", Form::Fitting(is_skill_name)),
        (SkillField::Id, "/name", Form::Fitting(is_skill_name)),
        (SkillField::Description, "/description", Form::Text),
        (SkillField::Examples, "/examples", Form::Texts),
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
