//! The tables for conversion: where the cards of each system store the fields that several systems have.

use serde_json::{Value, json};

/// A field that the cards of several systems have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CommonCardField {
    /// Lower-case name for programs.
    Slug,
    /// Display name.
    Name,
    Description,
    /// Version of the agent or its card.
    Version,
    /// URL where the agent is called.
    Endpoint,
    /// The protocol of that endpoint.
    Protocol,
    /// A2A's additional interfaces, in the shape of 1.0.
    Interfaces,
    /// Version of the A2A protocol.
    ProtocolVersion,
    /// The object that describes what the agent can do.
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
    /// Accepted media types.
    InputModes,
    /// Returned media types.
    OutputModes,
    /// Authentication methods, in the terms of OpenAPI's HTTP schemes or `api_key`, `oauth2`, `mtls`, `none`.
    Authentication,
    /// A2A's complete security schemes, by name.
    SchemeMap,
    /// The authentication methods that a caller needs. In a system without such a member they are those of
    /// [`Authentication`](Self::Authentication).
    Requirements,
    /// A2A's extensions.
    Extensions,
    /// Whether authenticated callers get an extended card.
    ExtendedCard,
}

/// A field that the skills of several systems have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CommonSkillField {
    Id,
    Name,
    Description,
    Tags,
    InputSchema,
    OutputSchema,
    Examples,
    /// Accepted media types, if they differ from the agent's.
    InputModes,
    /// Returned media types, if they differ from the agent's.
    OutputModes,
    /// Which of the agent's security schemes the skill requires.
    Requirements,
}

/// The representation of a value in a system.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CardFieldRepresentation {
    Text,
    /// A string that is written only if the system allows it.
    Fitting(fn(&str) -> bool),
    /// A string that needs a system-specific conversion.
    Rewritten(fn(&str) -> &str),
    Flag,
    Texts,
    Object,
    /// An object whose members are separate fields. It is written even if it is empty.
    Holder,
    /// A JSON list with any content.
    List,
    /// A value of an older shape. It is converted to the current shape when read, and never written.
    Older(fn(&Value) -> Option<Value>),
    /// A system-specific word. Each row has the system's word and the common one.
    Word(CardVocabularyMap),
    /// A list of such words.
    WordList(CardVocabularyMap),
    /// A2A's map of security schemes.
    Schemes(SecuritySchemeForm),
    /// A2A's list of security requirements.
    Requirements,
    /// Interfaces that are appended to the list at the location. Written but never read.
    Following,
}

/// The system's words and the common ones. The first matching row applies, so several of the system's words may map to
/// one common word.
pub(crate) type CardVocabularyMap = &'static [(&'static str, &'static str)];

/// The two representations of a security scheme in A2A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SecuritySchemeForm {
    /// As in OpenAPI, with a member `type`.
    OpenApi,
    /// As in the JSON of protocol buffers, with a member for each kind.
    OneOf,
}

/// Where a card of a system stores each field.
#[derive(Debug)]
pub(crate) struct CardFieldMapping {
    /// JSON Pointers within the card.
    pub(crate) fields: &'static [(CommonCardField, &'static str, CardFieldRepresentation)],
    /// Fields that a card implies by omitting their member, in the system's words. They apply if there is an endpoint.
    pub(crate) defaults: &'static [(CommonCardField, &'static str)],
    /// JSON Pointer of the list of skills.
    pub(crate) skills: &'static str,
    /// JSON Pointers within a skill. An empty one is the skill itself.
    pub(crate) skill: &'static [(CommonSkillField, &'static str, CardFieldRepresentation)],
}

/// Authentication methods, as most systems spell them.
pub(crate) const AUTHENTICATION: CardVocabularyMap = &[
    ("none", "none"),
    ("bearer", "bearer"),
    ("basic", "basic"),
    ("api_key", "api_key"),
    ("oauth2", "oauth2"),
    ("mtls", "mtls"),
];

/// A2A's bindings. A plain `grpc` in another system is not A2A over gRPC, so these words have a separate prefix.
pub(crate) const A2A_BINDINGS: CardVocabularyMap =
    &[("JSONRPC", "a2a+jsonrpc"), ("GRPC", "a2a+grpc"), ("HTTP+JSON", "a2a+http"), ("x402", "x402")];

/// The common word for an A2A security scheme, if there is one, and the location of that word in the scheme. The
/// location is the whole scheme if it has no further members.
pub(crate) fn word_for_security_scheme(
    scheme: &Value,
    form: SecuritySchemeForm,
) -> Option<(&'static str, &'static str)> {
    let (kind, http) = match form {
        SecuritySchemeForm::OpenApi => (scheme["type"].as_str()?, scheme["scheme"].as_str()),
        SecuritySchemeForm::OneOf => {
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
        // The member's name is the word, and no pointer refers to a name. The location is therefore one without a
        // value.
        ("mtlsSecurityScheme", _) => ("mtls", "/mtlsSecurityScheme/-"),
        _ => return None,
    };
    Some((word, if security_scheme_for_word(word, form).as_ref() == Some(scheme) { "" } else { place }))
}

/// The A2A security scheme for a common word. API keys and OAuth flows need more than a word.
pub(crate) fn security_scheme_for_word(word: &str, form: SecuritySchemeForm) -> Option<Value> {
    Some(match (word, form) {
        ("bearer" | "basic", SecuritySchemeForm::OpenApi) => json!({"type": "http", "scheme": word}),
        ("bearer" | "basic", SecuritySchemeForm::OneOf) => json!({"httpAuthSecurityScheme": {"scheme": word}}),
        ("mtls", SecuritySchemeForm::OpenApi) => json!({"type": "mutualTLS"}),
        ("mtls", SecuritySchemeForm::OneOf) => json!({"mtlsSecurityScheme": {}}),
        _ => return None,
    })
}
