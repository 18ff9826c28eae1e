//! The common fields of an Aevum card. Other systems have no equivalent of its prices and its `agent_id`.

use crate::system::mapping::{AUTHENTICATION, Field, Form, Mapping, SkillField, Words};

/// `google_a2a` stands for every A2A binding. An Aevum card does not specify which one.
const PROTOCOLS: Words = &[
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

pub(crate) static MAPPING: Mapping = Mapping {
    fields: &[
        (Field::Name, "/name", Form::Text),
        (Field::Version, "/version", Form::Text),
        (Field::Endpoint, "/endpoint/url", Form::Text),
        (Field::Protocol, "/endpoint/protocol", Form::Word(PROTOCOLS)),
        (Field::Authentication, "/endpoint/auth/scheme", Form::Word(AUTHENTICATION)),
        (Field::Requirements, "/endpoint/auth/scheme", Form::Word(AUTHENTICATION)),
    ],
    defaults: &[],
    skills: "/capabilities",
    skill: &[
        (SkillField::Id, "/id", Form::Text),
        (SkillField::Description, "/description", Form::Text),
        (SkillField::Tags, "/tags", Form::Texts),
        (SkillField::InputSchema, "/input_schema", Form::Object),
        (SkillField::OutputSchema, "/output_schema", Form::Object),
    ],
};
