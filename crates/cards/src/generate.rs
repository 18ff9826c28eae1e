//! Orloj's agent cards, computed from AgentSystem resources by the field mapping of its specification. Pure: the files
//! are given as text, nobody is asked.
//!
//! A card is a list of what it may show, read member by member; everything else of a resource, whatever it is called,
//! cannot reach it. What of a shown member looks like a credential is refused, and a card that breaks a rule for such
//! cards is not made.
//!
//! ```
//! use clresolve_cards::generate::{Cards, Source};
//!
//! let bytes = b"apiVersion: orloj.dev/v1\nkind: AgentSystem\nmetadata: {name: research}\n\
//!     spec: {agents: [], a2a: {enabled: true}}\n";
//! let cards = Cards::read(&[Source { file: "orloj.yaml", bytes }], Some("https://orloj.example".parse().unwrap()))?;
//! let card = cards.only().unwrap();
//! assert_eq!(card.json()["url"], "https://orloj.example/v1/agent-systems/research/a2a");
//! # Ok::<(), clresolve_cards::generate::GenerateError>(())
//! ```

mod base_url;
mod resource;
mod yaml;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, LazyLock};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::{Map, Value};

pub use self::base_url::BaseUrl;
pub use self::resource::MAX_BYTES;
use self::resource::{Agent, AgentSystem, Held, Key};
pub use self::resource::{DEFAULT_NAMESPACE, is_name};
use crate::system::{CardSystem, Rules};
use clresolve_core::reason::{Effect, Reason};
use clresolve_core::text::{Foreign, clipped, excerpt, inert_json};
use clresolve_verdict::card::Card;
use clresolve_verdict::check;
use clresolve_verdict::profile;
use clresolve_verdict::profile::{Profile, Profiles};

/// The A2A version of a server that is not told another.
const DEFAULT_PROTOCOL_VERSION: &str = "1.0";

/// Longest excerpt of a prompt, in bytes, as Orloj's server has it.
const PROMPT_BYTES: usize = 200;

/// Most notes on one card; who has more such resources knows what they are.
const MAX_NOTES: usize = 16;

/// Most skills of a card; no system of the published examples has a tenth.
const MAX_SKILLS: usize = 512;

/// Schemes of an endpoint that are those of HTTP's Authorization header, as the members of A2A 1.0 name them.
const HTTP_SCHEMES: [&str; 3] = ["bearer", "basic", "digest"];

/// The rules that cards of every system are judged by; Orloj's own are the same under each profile.
static PROFILE: LazyLock<Arc<Profile>> = LazyLock::new(|| {
    Profiles::builtin().get(profile::DEFAULT).expect("what is compiled in loads, as a unit test shows")
});

/// What stands in a segment of a path as it is; the rest is percent-encoded.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A text with resources, and what messages call it.
#[derive(Clone, Copy, Debug)]
pub struct Source<'s> {
    /// What messages call it.
    pub file: &'s str,
    /// YAML in UTF-8, any number of documents.
    pub bytes: &'s [u8],
}

/// File and line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// What the source is called.
    pub file: String,
    /// The line, from 1; 0 where it is not known.
    pub line: u64,
}

impl SourceLine {
    fn new(file: &str, line: u64) -> Self {
        Self { file: file.to_owned(), line }
    }
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}", Foreign::new(&self.file), self.line)
    }
}

/// Why there is no card. Each message says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// More text than is read.
    #[error("more than {limit} bytes of resources; name fewer files")]
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The bytes are not UTF-8.
    #[error("{}: not UTF-8 at byte {offset}; save it as UTF-8", Foreign::new(file))]
    NotUtf8 {
        /// What the source is called.
        file: String,
        /// Offset of the first bad byte.
        offset: usize,
    },
    /// The text is no YAML, or asks for more than a reader should give.
    #[error("{place}: {detail}")]
    Yaml {
        /// Where.
        place: SourceLine,
        /// What the reader says.
        detail: String,
    },
    /// A member holds what it must not.
    #[error("{place}: {detail}")]
    Invalid {
        /// Where.
        place: SourceLine,
        /// The member, and what was expected.
        detail: String,
    },
    /// A system names an agent that is not there.
    #[error("{place}: the AgentSystem {system} names the Agent {agent}, which no document holds; add its file")]
    AgentMissing {
        /// Where it is named.
        place: SourceLine,
        /// The system.
        system: String,
        /// The agent.
        agent: String,
    },
    /// Nobody says where the server is reached.
    #[error(
        "the public base URL is not known; name it with --base-url (the daemon: orloj.base-url), or write \
         a2a.publicBaseURL in a document without kind"
    )]
    BaseUrlMissing,
    /// What would be shown holds a credential.
    #[error("{place}: the card of {system} would show {what} at {pointer}; take it out of the resource")]
    Secret {
        /// The system's resource.
        place: SourceLine,
        /// The system.
        system: String,
        /// Which kind of credential; never the credential.
        what: String,
        /// JSON Pointer into the card.
        pointer: String,
    },
    /// The card would break a rule for such cards.
    #[error(
        "{place}: the card of {system} would not be valid: {} Found {} at {}; `clresolve explain {}` says more",
        reason.message,
        shown(reason.observed.as_deref().unwrap_or_default()),
        shown(reason.place.as_deref().unwrap_or_default()),
        reason.code
    )]
    Invalidated {
        /// The system's resource.
        place: SourceLine,
        /// The system.
        system: String,
        /// The rule, and what would break it.
        reason: Box<Reason>,
    },
    /// The card would be too large or too deep to be read as one.
    #[error("{place}: the card of {system} could not be read as one: {detail}; shorten what it is made of")]
    Unreadable {
        /// The system's resource.
        place: SourceLine,
        /// The system.
        system: String,
        /// Which limit it breaks.
        detail: String,
    },
}

/// What the server is configured to do, as far as the resources say it. What is not told is not in a card.
#[derive(Clone, Debug, Default)]
struct Server {
    base_url: Option<BaseUrl>,
    protocol_version: Option<String>,
    streaming: Option<bool>,
    push_notifications: Option<bool>,
    state_transition_history: Option<bool>,
    schemes: Option<Vec<String>>,
    provider: Option<Provider>,
}

/// The cards of all systems that are exposed over A2A.
#[derive(Clone, Debug, Default)]
pub struct Cards {
    cards: BTreeMap<Key, Generated>,
    hidden: BTreeSet<Key>,
}

/// A card that was made.
#[derive(Clone, Debug)]
pub struct Generated {
    name: String,
    namespace: String,
    text: String,
    json: Value,
    notes: Vec<String>,
}

impl Generated {
    /// `metadata.name` of the system.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `metadata.namespace` of the system.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The card as text: indented, in the order of the specification, without a character that acts on a terminal.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The card.
    pub const fn json(&self) -> &Value {
        &self.json
    }

    /// What the resources do not say and a client may miss; a few at most.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

impl Cards {
    /// Makes the card of every AgentSystem with `spec.a2a.enabled: true`. `base_url` goes before what the sources say.
    ///
    /// # Errors
    /// When a source is no YAML, a resource holds what it must not, or a card would hold a credential. Says where, and what
    /// to do.
    pub fn read(sources: &[Source<'_>], base_url: Option<BaseUrl>) -> Result<Self, GenerateError> {
        let mut held = Held::read(sources)?;
        held.server.base_url = base_url.or_else(|| held.server.base_url.take());
        let mut made = Self::default();
        for (key, system) in &held.systems {
            if system.enabled {
                made.cards.insert(key.clone(), Maker { held: &held, key, system, notes: Vec::new() }.make()?);
            } else {
                made.hidden.insert(key.clone());
            }
        }
        Ok(made)
    }

    /// The cards, by namespace and name.
    pub fn iter(&self) -> impl Iterator<Item = &Generated> {
        self.cards.values()
    }

    /// The card of a system; `None` for the namespace is the default one.
    pub fn get(&self, namespace: Option<&str>, name: &str) -> Option<&Generated> {
        self.cards.get(&(namespace.unwrap_or(DEFAULT_NAMESPACE).to_owned(), name.to_owned()))
    }

    /// The card, where there is exactly one.
    pub fn only(&self) -> Option<&Generated> {
        self.cards.values().next().filter(|_| self.cards.len() == 1)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.cards.len()
    }

    /// Whether no system is exposed.
    pub fn is_empty(&self) -> bool {
        self.cards.is_empty()
    }

    /// Whether a system of this name is there and not exposed.
    pub fn hides(&self, name: &str) -> bool {
        self.hidden.iter().any(|(_, hidden)| hidden == name)
    }
}

/// What makes one card.
struct Maker<'h> {
    held: &'h Held,
    key: &'h Key,
    system: &'h AgentSystem,
    notes: Vec<String>,
}

/// The card, in the order of the specification. The members of A2A 1.0 stand beside the older ones, as Orloj's server
/// writes them, where the server speaks a version 1.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OrlojCard<'h> {
    name: &'h str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    url: &'h str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'h str>,
    protocol_version: &'h str,
    #[serde(flatten)]
    a2a_1: Option<A2a1<'h>>,
    capabilities: Capabilities,
    skills: Vec<Skill<'h>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authentication: Option<Authentication>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<&'h Provider>,
}

/// What a card of A2A 1.0 has beside.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct A2a1<'h> {
    supported_interfaces: [Interface<'h>; 1],
    default_input_modes: [&'static str; 1],
    default_output_modes: [&'static str; 2],
    #[serde(skip_serializing_if = "Map::is_empty")]
    security_schemes: Map<String, Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    security_requirements: Vec<Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Interface<'h> {
    url: &'h str,
    protocol_binding: &'static str,
    protocol_version: &'h str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Capabilities {
    #[serde(skip_serializing_if = "Option::is_none")]
    streaming: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    push_notifications: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state_transition_history: Option<bool>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Skill<'h> {
    id: &'h str,
    name: &'h str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'h str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_schema: Option<&'h Map<String, Value>>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    tags: &'h [String],
}

#[derive(Serialize)]
struct Authentication {
    schemes: Vec<String>,
}

/// Who runs the server.
#[derive(Clone, Debug, Serialize)]
struct Provider {
    #[serde(skip_serializing_if = "Option::is_none")]
    organization: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

impl<'h> Maker<'h> {
    fn make(mut self) -> Result<Generated, GenerateError> {
        let (namespace, name) = self.key;
        let server = &self.held.server;
        let agents = self.agents()?;
        let url = self.url()?;
        let protocol_version = server.protocol_version.as_deref().unwrap_or(DEFAULT_PROTOCOL_VERSION);
        let schemes = self.schemes();
        let a2a_1 = if is_version_1(protocol_version) { self.a2a_1(&url, protocol_version, &schemes) } else { None };
        let description = self.description(&agents);
        if self.system.version.is_none() {
            self.note("it has no version; give the AgentSystem the label orloj.dev/version".to_owned());
        }
        let skills = self.skills(&agents)?;
        let card = OrlojCard {
            name,
            description,
            url: &url,
            version: self.system.version.as_deref(),
            protocol_version,
            a2a_1,
            capabilities: Capabilities {
                streaming: server.streaming,
                push_notifications: server.push_notifications,
                state_transition_history: server.state_transition_history,
            },
            skills,
            authentication: (!schemes.is_empty()).then_some(Authentication { schemes }),
            provider: server.provider.as_ref(),
        };
        let text = serde_json::to_string_pretty(&card).map_err(|error| self.unreadable(&error.to_string()))?;
        let text = inert_json(&text) + "\n";
        let json = self.checked(&text)?;
        Ok(Generated { name: name.clone(), namespace: namespace.clone(), text, json, notes: self.notes })
    }

    /// The system's agents, in its order.
    fn agents(&self) -> Result<Vec<&'h Agent>, GenerateError> {
        let agent = |(name, place): &'h (String, SourceLine)| {
            self.held.agents.get(&(self.key.0.clone(), name.clone())).ok_or_else(|| GenerateError::AgentMissing {
                place: place.clone(),
                system: shown(&self.key.1),
                agent: shown(name),
            })
        };
        self.system.agents.iter().map(agent).collect()
    }

    /// The system's annotation; else what the first of its agents that has either says: its annotation, or the beginning
    /// of its prompt.
    fn description(&mut self, agents: &[&Agent]) -> Option<String> {
        if let Some(description) = &self.system.description {
            return Some(description.clone());
        }
        const ANNOTATE: &str = "annotate the AgentSystem with orloj.dev/description";
        let Some(agent) = agents.iter().find(|agent| agent.description.is_some() || agent.prompt.is_some()) else {
            self.note(format!("it has no description; {ANNOTATE}"));
            return None;
        };
        if let Some(description) = &agent.description {
            return Some(description.clone());
        }
        self.note(format!("its description is the beginning of a prompt; to say something else, {ANNOTATE}"));
        agent.prompt.as_deref().map(beginning)
    }

    fn url(&self) -> Result<String, GenerateError> {
        let (namespace, name) = self.key;
        let base = self.held.server.base_url.as_ref().ok_or(GenerateError::BaseUrlMissing)?;
        let path = format!("{base}/v1/agent-systems/{}/a2a", escaped(name));
        if namespace == DEFAULT_NAMESPACE {
            return Ok(path);
        }
        Ok(format!("{path}?namespace={}", escaped(namespace)))
    }

    /// What the endpoint asks for. A system that is not public asks for a bearer token unless the server says otherwise.
    fn schemes(&self) -> Vec<String> {
        if self.system.public {
            return Vec::new();
        }
        self.held.server.schemes.clone().unwrap_or_else(|| vec!["bearer".to_owned()])
    }

    /// The members of A2A 1.0. They say of some schemes nothing without more than the server's configuration tells (an API
    /// key's place, the flows of OAuth 2); without any scheme they would say that nothing is asked, so they are left out.
    fn a2a_1<'u>(&mut self, url: &'u str, protocol_version: &'u str, schemes: &[String]) -> Option<A2a1<'u>> {
        let (mut told, mut untold): (BTreeMap<String, Value>, Vec<String>) = Default::default();
        for scheme in schemes {
            match security_scheme(scheme) {
                Some((name, said)) => drop(told.insert(name, said)),
                None => untold.push(shown(scheme)),
            }
        }
        let names = untold.join(", ");
        if told.is_empty() && !untold.is_empty() {
            self.note(format!("the members of A2A 1.0 are left out, since they cannot tell {names} by its name alone"));
            return None;
        }
        if !untold.is_empty() {
            self.note(format!("to readers of A2A 1.0 it does not tell {names}, which takes more than its name"));
        }
        Some(A2a1::new(url, protocol_version, told))
    }

    /// A skill for each tool of the agents, each once.
    fn skills(&mut self, agents: &[&'h Agent]) -> Result<Vec<Skill<'h>>, GenerateError> {
        let (mut skills, mut seen) = (Vec::new(), BTreeSet::new());
        for (name, place) in agents.iter().flat_map(|agent| &agent.tools) {
            if !seen.insert(name) {
                continue;
            }
            if seen.len() > MAX_SKILLS {
                return Err(self.unreadable(&format!("more than {MAX_SKILLS} tools")));
            }
            let Some(tool) = self.held.tools.get(&(self.key.0.clone(), name.clone())) else {
                self.note(format!(
                    "{place}: the Tool {} is in no document, so it is no skill of the card",
                    shown(name)
                ));
                continue;
            };
            if tool.description.is_none() {
                self.note(format!("the Tool {} has no spec.description, and so the skill has none", shown(name)));
            }
            skills.push(Skill {
                id: name,
                name,
                description: tool.description.as_deref(),
                input_schema: Some(&tool.input_schema).filter(|schema| !schema.is_empty()),
                tags: &tool.tags,
            });
        }
        Ok(skills)
    }

    /// No credential is shown, whoever reads cards as strictly as this program can read this one, and its own rules hold.
    fn checked(&self, text: &str) -> Result<Value, GenerateError> {
        let card = Card::parse(text.as_bytes()).map_err(|error| self.unreadable(&error.to_string()))?;
        let (place, system) = (self.system.place.clone(), shown(&self.key.1));
        if let Some(reason) = check::secrets(&card).into_iter().next() {
            let (what, pointer) = (reason.observed.unwrap_or_default(), reason.place.unwrap_or_default());
            return Err(GenerateError::Secret { place, system, what, pointer });
        }
        let findings = CardSystem::Orloj.check(&card, &Rules::of(&PROFILE));
        match findings.into_iter().find(|reason| reason.effect == Effect::Fail) {
            None => Ok(card.document().clone()),
            Some(reason) => Err(GenerateError::Invalidated { place, system, reason: Box::new(reason) }),
        }
    }

    fn unreadable(&self, detail: &str) -> GenerateError {
        GenerateError::Unreadable {
            place: self.system.place.clone(),
            system: shown(&self.key.1),
            detail: shown(detail),
        }
    }

    fn note(&mut self, note: String) {
        if self.notes.len() < MAX_NOTES {
            self.notes.push(format!("the card of {}: {note}", shown(&self.key.1)));
        }
    }
}

impl<'h> A2a1<'h> {
    fn new(url: &'h str, protocol_version: &'h str, schemes: BTreeMap<String, Value>) -> Self {
        // Orloj's server writes {name: []}, which a reader of A2A 1.0 takes for "nothing is asked".
        let requirement = |name: &str| serde_json::json!({"schemes": {name: {"list": []}}});
        Self {
            supported_interfaces: [Interface { url, protocol_binding: "JSONRPC", protocol_version }],
            default_input_modes: ["text/plain"],
            default_output_modes: ["text/plain", "application/json"],
            security_requirements: schemes.keys().map(|name| requirement(name)).collect(),
            security_schemes: schemes.into_iter().collect(),
        }
    }
}

/// A name as a segment of a path, or as a value of a query.
pub fn escaped(name: &str) -> impl fmt::Display {
    utf8_percent_encode(name, SEGMENT)
}

/// A scheme of the endpoint as A2A 1.0 has it, where its name says all of it.
fn security_scheme(scheme: &str) -> Option<(String, Value)> {
    let word = scheme.to_ascii_lowercase();
    if HTTP_SCHEMES.contains(&word.as_str()) {
        return Some((format!("{word}Auth"), serde_json::json!({"httpAuthSecurityScheme": {"scheme": word}})));
    }
    let is_mutual_tls = ["mtls", "mutualtls"].contains(&word.as_str());
    is_mutual_tls.then(|| ("mutualTls".to_owned(), serde_json::json!({"mtlsSecurityScheme": {}})))
}

/// The beginning of a prompt, on one line.
fn beginning(prompt: &str) -> String {
    let words: Vec<&str> = prompt.split_whitespace().take(PROMPT_BYTES).collect();
    clipped(&words.join(" "), PROMPT_BYTES)
}

/// Whether the server speaks a version 1 of A2A.
fn is_version_1(version: &str) -> bool {
    version.split('.').next() == Some("1")
}

/// A name for a message.
fn shown(name: &str) -> String {
    Foreign::new(&excerpt(name)).to_string()
}
