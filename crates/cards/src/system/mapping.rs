//! The tables behind conversion: where the cards of each system hold the fields that several systems have.

use serde_json::{Value, json};

/// A field that the cards of several systems have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Field {
    /// Name in lower case, for machines.
    Slug,
    /// Name for people.
    Name,
    Description,
    /// Version of the agent or its card.
    Version,
    /// Where the agent is called.
    Endpoint,
    /// The protocol of that endpoint.
    Protocol,
    /// A2A's further interfaces, in the shape of 1.0.
    Interfaces,
    /// Version of the A2A protocol.
    ProtocolVersion,
    /// The object that holds what the agent can do.
    Capabilities,
    Documentation,
    Icon,
    Repository,
    /// The organisation behind the agent.
    Organization,
    OrganizationUrl,
    License,
    Created,
    Updated,
    Tags,
    Streaming,
    PushNotifications,
    StateTransitionHistory,
    /// Media types that it takes.
    InputModes,
    /// Media types that it gives.
    OutputModes,
    /// Ways to authenticate, in the words of OpenAPI's HTTP schemes or `api_key`, `oauth2`, `mtls`, `none`.
    Authentication,
    /// A2A's whole security schemes, by name.
    SchemeMap,
    /// The ways to authenticate that a caller needs. In a system without such a member they are those of
    /// [`Authentication`](Self::Authentication).
    Requirements,
    /// A2A's extensions.
    Extensions,
    /// Whether authenticated callers get a longer card.
    ExtendedCard,
}

/// A field that the skills of several systems have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SkillField {
    Id,
    Name,
    Description,
    Tags,
    InputSchema,
    OutputSchema,
    Examples,
    /// Media types that it takes, if they differ from the agent's.
    InputModes,
    /// Media types that it gives, if they differ from the agent's.
    OutputModes,
    /// Which of the agent's security schemes it needs.
    Requirements,
}

/// How a system writes a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// A string.
    Text,
    /// A string that is written only if the system allows it.
    Fitting(fn(&str) -> bool),
    /// A string that the system writes in its own way.
    Rewritten(fn(&str) -> &str),
    /// A boolean.
    Flag,
    /// A list of strings.
    Texts,
    /// A JSON object.
    Object,
    /// An object whose members have fields of their own. It is written even if it is empty.
    Holder,
    /// A JSON list of any content.
    List,
    /// A value of an older shape. It is read as one of the current shape and never written.
    Older(fn(&Value) -> Option<Value>),
    /// A word of the system; each row has the system's word and the common one.
    Word(Words),
    /// A list of such words.
    WordList(Words),
    /// A2A's map of security schemes.
    Schemes(SchemeForm),
    /// A2A's list of security requirements.
    Requirements,
    /// Interfaces that follow those in the list at the place. It is written and never read.
    Following,
}

/// The system's words and the common ones. The first matching row counts, so several of the system's words may share a
/// common one.
pub(crate) type Words = &'static [(&'static str, &'static str)];

/// The two ways in which A2A writes a security scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SchemeForm {
    /// As OpenAPI does, with a member `type`.
    OpenApi,
    /// As the JSON of protocol buffers does, with a member for each kind.
    OneOf,
}

/// Where a card of a system holds each field.
#[derive(Debug)]
pub(crate) struct Mapping {
    /// JSON Pointers below the card.
    pub(crate) fields: &'static [(Field, &'static str, Form)],
    /// Fields that a card states by leaving out their member, in the system's words. They count beside an endpoint.
    pub(crate) defaults: &'static [(Field, &'static str)],
    /// JSON Pointer of the list of skills.
    pub(crate) skills: &'static str,
    /// JSON Pointers below a skill; an empty one is the skill itself.
    pub(crate) skill: &'static [(SkillField, &'static str, Form)],
}

/// Ways to authenticate, as most systems write them.
pub(crate) const AUTHENTICATION: Words = &[
    ("none", "none"),
    ("bearer", "bearer"),
    ("basic", "basic"),
    ("api_key", "api_key"),
    ("oauth2", "oauth2"),
    ("mtls", "mtls"),
];

/// A2A's bindings. A plain `grpc` of another system is not A2A over gRPC, so these words have a prefix of their own.
pub(crate) const A2A_BINDINGS: Words =
    &[("JSONRPC", "a2a+jsonrpc"), ("GRPC", "a2a+grpc"), ("HTTP+JSON", "a2a+http"), ("x402", "x402")];

/// The common word of a security scheme of A2A, if it has one, and the place of that word in the scheme. The place is the
/// whole scheme if it has no further members.
pub(crate) fn scheme_word(scheme: &Value, form: SchemeForm) -> Option<(&'static str, &'static str)> {
    let (kind, http) = match form {
        SchemeForm::OpenApi => (scheme["type"].as_str()?, scheme["scheme"].as_str()),
        SchemeForm::OneOf => {
            let mut members = scheme.as_object()?.iter();
            let (kind, inner) = members.next().filter(|_| members.len() == 0)?;
            (kind.as_str(), inner["scheme"].as_str())
        }
    };
    let (word, place) = match (kind, http.map(str::to_ascii_lowercase).as_deref()) {
        ("http", Some("bearer")) => ("bearer", "/scheme"),
        ("http", Some("basic")) => ("basic", "/scheme"),
        ("httpAuthSecurityScheme", Some("bearer")) => ("bearer", "/httpAuthSecurityScheme/scheme"),
        ("httpAuthSecurityScheme", Some("basic")) => ("basic", "/httpAuthSecurityScheme/scheme"),
        ("mutualTLS", _) => ("mtls", "/type"),
        // The name of the member is the word, and no pointer leads to a name. So the place is one that no value has.
        ("mtlsSecurityScheme", _) => ("mtls", "/mtlsSecurityScheme/-"),
        _ => return None,
    };
    Some((word, if scheme_of(word, form).as_ref() == Some(scheme) { "" } else { place }))
}

/// The security scheme of A2A for a common word. Keys and OAuth flows need more than a word.
pub(crate) fn scheme_of(word: &str, form: SchemeForm) -> Option<Value> {
    Some(match (word, form) {
        ("bearer" | "basic", SchemeForm::OpenApi) => json!({"type": "http", "scheme": word}),
        ("bearer" | "basic", SchemeForm::OneOf) => json!({"httpAuthSecurityScheme": {"scheme": word}}),
        ("mtls", SchemeForm::OpenApi) => json!({"type": "mutualTLS"}),
        ("mtls", SchemeForm::OneOf) => json!({"mtlsSecurityScheme": {}}),
        _ => return None,
    })
}
