//! Generates Orloj's agent cards from AgentSystem resources by the field mapping of its specification. Pure: the caller
//! reads the files.
//!
//! A card contains only members on an allow-list. No other member of a resource can reach it. A member that looks like
//! a credential is rejected, and so is a card that violates a rule for such cards.
//!
//! ```
//! use clresolve_cards::generate::{GeneratedOrlojCards, OrlojResourceFile};
//!
//! let bytes = b"apiVersion: orloj.dev/v1\nkind: AgentSystem\nmetadata: {name: research}\n\
//!     spec: {agents: [], a2a: {enabled: true}}\n";
//! let files = [OrlojResourceFile { file: "orloj.yaml", bytes }];
//! let cards = GeneratedOrlojCards::generate_cards(&files, Some("https://orloj.example".parse().unwrap()))?;
//! let card = cards.single_card().unwrap();
//! assert_eq!(card.json()["url"], "https://orloj.example/v1/agent-systems/research/a2a");
//! # Ok::<(), clresolve_cards::generate::CardGenerationError>(())
//! ```

mod error;
mod resource;
mod source;
mod yaml;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, LazyLock};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::{Map, Value};

pub use self::error::CardGenerationError;
use self::error::escaped_name_excerpt;
use self::resource::{AgentProvider, OrlojAgent, OrlojAgentSystem, OrlojNamespacedName, OrlojResources};
pub use self::resource::{DEFAULT_NAMESPACE, MAX_BYTES, is_resource_name};
pub use self::source::{OrlojResourceFile, OrlojResourcePosition};
use crate::system::{CardLintContext, CardSystem};
pub use clresolve_core::base_url::PublicBaseUrl;
use clresolve_core::reason::ReasonEffect;
use clresolve_core::text::{escape_unsafe_json, truncate_bytes};
use clresolve_verdict::card::AgentCard;
use clresolve_verdict::check;
use clresolve_verdict::profile;
use clresolve_verdict::profile::{ConformanceProfile, ConformanceProfiles};

/// Maximum length of a prompt excerpt in bytes, as in Orloj's server.
const PROMPT_BYTES: usize = 200;

/// Maximum number of notes on one card. More would repeat the same advice.
const MAX_NOTES: usize = 16;

/// Maximum number of skills of a card. The published examples have fewer than a tenth of it.
const MAX_SKILLS: usize = 512;

/// Schemes of HTTP's `Authorization` header, as spelled by A2A 1.0.
const HTTP_SCHEMES: [&str; 3] = ["bearer", "basic", "digest"];

/// The rules for cards of every system. Orloj's own rules are the same in each profile.
static PROFILE: LazyLock<Arc<ConformanceProfile>> = LazyLock::new(|| {
    ConformanceProfiles::builtin().get(profile::DEFAULT).expect("what is compiled in loads, as a unit test shows")
});

/// Characters that are not percent-encoded in a path segment.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The cards of all systems that are exposed over A2A.
#[derive(Clone, Debug, Default)]
pub struct GeneratedOrlojCards {
    cards: BTreeMap<OrlojNamespacedName, GeneratedOrlojCard>,
    hidden: BTreeSet<OrlojNamespacedName>,
}

/// A generated card.
#[derive(Clone, Debug)]
pub struct GeneratedOrlojCard {
    name: String,
    namespace: String,
    text: String,
    json: Value,
    notes: Vec<String>,
}

impl GeneratedOrlojCard {
    /// `metadata.name` of the system.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `metadata.namespace` of the system.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The card as text: indented, in the order of the specification, without terminal control characters.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The card.
    pub const fn json(&self) -> &Value {
        &self.json
    }

    /// Advice on missing resources that a client may need.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

impl GeneratedOrlojCards {
    /// Generates the card of every AgentSystem with `spec.a2a.enabled: true`. `base_url` takes precedence over the
    /// sources.
    ///
    /// # Errors
    /// A source is not YAML, a resource is invalid, or a card would expose a credential. The message gives the location
    /// and a remedy.
    pub fn generate_cards(
        sources: &[OrlojResourceFile<'_>],
        base_url: Option<PublicBaseUrl>,
    ) -> Result<Self, CardGenerationError> {
        let mut held = OrlojResources::parse_resource_files(sources)?;
        held.server.base_url = base_url.or_else(|| held.server.base_url.take());
        let mut made = Self::default();
        for (key, system) in &held.systems {
            if system.enabled {
                made.cards.insert(
                    key.clone(),
                    OrlojCardBuilder { held: &held, key, system, notes: Vec::new() }.build_card()?,
                );
            } else {
                made.hidden.insert(key.clone());
            }
        }
        Ok(made)
    }

    /// The cards, ordered by namespace and name.
    pub fn iter(&self) -> impl Iterator<Item = &GeneratedOrlojCard> {
        self.cards.values()
    }

    /// The card of a system. `None` selects the default namespace.
    pub fn get(&self, namespace: Option<&str>, name: &str) -> Option<&GeneratedOrlojCard> {
        self.cards.get(&(namespace.unwrap_or(DEFAULT_NAMESPACE).to_owned(), name.to_owned()))
    }

    /// The card, if there is exactly one.
    pub fn single_card(&self) -> Option<&GeneratedOrlojCard> {
        self.cards.values().next().filter(|_| self.cards.len() == 1)
    }

    /// Number of cards.
    pub fn len(&self) -> usize {
        self.cards.len()
    }

    /// Whether no system is exposed.
    pub fn is_empty(&self) -> bool {
        self.cards.is_empty()
    }

    /// Whether a system of this name exists but is not exposed.
    pub fn has_unexposed_system(&self, name: &str) -> bool {
        self.hidden.iter().any(|(_, hidden)| hidden == name)
    }
}

struct OrlojCardBuilder<'h> {
    held: &'h OrlojResources,
    key: &'h OrlojNamespacedName,
    system: &'h OrlojAgentSystem,
    notes: Vec<String>,
}

/// The card, in the order of the specification. If the server uses version 1 of A2A, the card has the members of A2A
/// 1.0 in addition to the older ones, like the cards of Orloj's server.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OrlojCard<'h> {
    name: &'h str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    url: &'h str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'h str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol_version: Option<&'h str>,
    #[serde(flatten)]
    a2a_1: Option<A2aV1Members<'h>>,
    capabilities: AgentCapabilities,
    skills: Vec<AgentSkill<'h>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authentication: Option<AgentAuthentication>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<&'h AgentProvider>,
}

/// The additional members of an A2A 1.0 card.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct A2aV1Members<'h> {
    supported_interfaces: [AgentInterface<'h>; 1],
    default_input_modes: [&'static str; 1],
    default_output_modes: [&'static str; 2],
    #[serde(skip_serializing_if = "Map::is_empty")]
    security_schemes: Map<String, Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    security_requirements: Vec<Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AgentInterface<'h> {
    url: &'h str,
    protocol_binding: &'static str,
    protocol_version: &'h str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AgentCapabilities {
    #[serde(skip_serializing_if = "Option::is_none")]
    streaming: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    push_notifications: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state_transition_history: Option<bool>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AgentSkill<'h> {
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
struct AgentAuthentication {
    schemes: Vec<String>,
}

impl<'h> OrlojCardBuilder<'h> {
    fn build_card(mut self) -> Result<GeneratedOrlojCard, CardGenerationError> {
        let (namespace, name) = self.key;
        let server = &self.held.server;
        let agents = self.system_agents()?;
        let url = self.endpoint_url()?;
        let protocol_version = server.protocol_version.as_deref();
        if protocol_version.is_none() {
            self.add_note("it has no protocolVersion; write a2a.protocolVersion in a document without kind".to_owned());
        }
        let schemes = self.endpoint_scheme_names();
        let version_1 = protocol_version.filter(|version| is_a2a_version_1(version));
        let a2a_1 = version_1.and_then(|version| self.a2a_v1_members(&url, version, &schemes));
        let description = self.card_description(&agents);
        if self.system.version.is_none() {
            self.add_note("it has no version; give the AgentSystem the label orloj.dev/version".to_owned());
        }
        let skills = self.tool_skills(&agents)?;
        let card = OrlojCard {
            name,
            description,
            url: &url,
            version: self.system.version.as_deref(),
            protocol_version,
            a2a_1,
            capabilities: AgentCapabilities {
                streaming: server.streaming,
                push_notifications: server.push_notifications,
                state_transition_history: server.state_transition_history,
            },
            skills,
            authentication: (!schemes.is_empty()).then_some(AgentAuthentication { schemes }),
            provider: server.provider.as_ref(),
        };
        let text =
            serde_json::to_string_pretty(&card).map_err(|error| self.unreadable_card_error(&error.to_string()))?;
        let text = escape_unsafe_json(&text) + "\n";
        let json = self.parse_checked_card(&text)?;
        Ok(GeneratedOrlojCard { name: name.clone(), namespace: namespace.clone(), text, json, notes: self.notes })
    }

    /// The system's agents, in the order of the system.
    fn system_agents(&self) -> Result<Vec<&'h OrlojAgent>, CardGenerationError> {
        let agent = |(name, place): &'h (String, OrlojResourcePosition)| {
            self.held.agents.get(&(self.key.0.clone(), name.clone())).ok_or_else(|| CardGenerationError::AgentMissing {
                place: place.clone(),
                system: escaped_name_excerpt(&self.key.1),
                agent: escaped_name_excerpt(name),
            })
        };
        self.system.agents.iter().map(agent).collect()
    }

    /// The system's annotation. Otherwise the annotation, or the start of the prompt, of the first agent that has one.
    fn card_description(&mut self, agents: &[&OrlojAgent]) -> Option<String> {
        if let Some(description) = &self.system.description {
            return Some(description.clone());
        }
        const ANNOTATE: &str = "annotate the AgentSystem with orloj.dev/description";
        let Some(agent) = agents.iter().find(|agent| agent.description.is_some() || agent.prompt.is_some()) else {
            self.add_note(format!("it has no description; {ANNOTATE}"));
            return None;
        };
        if let Some(description) = &agent.description {
            return Some(description.clone());
        }
        self.add_note(format!("its description is the beginning of a prompt; to say something else, {ANNOTATE}"));
        agent.prompt.as_deref().map(prompt_beginning)
    }

    fn endpoint_url(&self) -> Result<String, CardGenerationError> {
        let (namespace, name) = self.key;
        let base = self.held.server.base_url.as_ref().ok_or(CardGenerationError::BaseUrlMissing)?;
        let path = format!("{base}/v1/agent-systems/{}/a2a", percent_encode_segment(name));
        if namespace == DEFAULT_NAMESPACE {
            return Ok(path);
        }
        Ok(format!("{path}?namespace={}", percent_encode_segment(namespace)))
    }

    /// The endpoint's security schemes. A system that is not public requires a bearer token, unless the server's
    /// configuration declares other schemes.
    fn endpoint_scheme_names(&self) -> Vec<String> {
        if self.system.public {
            return Vec::new();
        }
        self.held.server.schemes.clone().unwrap_or_else(|| vec!["bearer".to_owned()])
    }

    /// The members of A2A 1.0. Some schemes need details that the server's configuration lacks (the location of an API
    /// key, the flows of OAuth 2). If no scheme can be written, the members are omitted, since they would otherwise
    /// declare the endpoint open.
    fn a2a_v1_members<'u>(
        &mut self,
        url: &'u str,
        protocol_version: &'u str,
        schemes: &[String],
    ) -> Option<A2aV1Members<'u>> {
        let (mut written, mut omitted): (BTreeMap<String, Value>, Vec<String>) = Default::default();
        for scheme in schemes {
            match a2a_security_scheme(scheme) {
                Some((name, value)) => drop(written.insert(name, value)),
                None => omitted.push(escaped_name_excerpt(scheme)),
            }
        }
        let names = omitted.join(", ");
        if written.is_empty() && !omitted.is_empty() {
            self.add_note(format!("the members of A2A 1.0 are omitted, since {names} cannot be written by name alone"));
            return None;
        }
        if !omitted.is_empty() {
            self.add_note(format!("its members of A2A 1.0 leave out {names}, which cannot be written by name alone"));
        }
        Some(A2aV1Members::new(url, protocol_version, written))
    }

    /// A skill for each tool of the agents, without duplicates.
    fn tool_skills(&mut self, agents: &[&'h OrlojAgent]) -> Result<Vec<AgentSkill<'h>>, CardGenerationError> {
        let (mut skills, mut seen) = (Vec::new(), BTreeSet::new());
        for (name, place) in agents.iter().flat_map(|agent| &agent.tools) {
            if !seen.insert(name) {
                continue;
            }
            if seen.len() > MAX_SKILLS {
                return Err(self.unreadable_card_error(&format!("more than {MAX_SKILLS} tools")));
            }
            let Some(tool) = self.held.tools.get(&(self.key.0.clone(), name.clone())) else {
                self.add_note(format!(
                    "{place}: the Tool {} is in no document, so the card has no skill for it",
                    escaped_name_excerpt(name)
                ));
                continue;
            };
            if tool.description.is_none() {
                self.add_note(format!(
                    "the Tool {} has no spec.description, so the skill has no description",
                    escaped_name_excerpt(name)
                ));
            }
            skills.push(AgentSkill {
                id: name,
                name,
                description: tool.description.as_deref(),
                input_schema: Some(&tool.input_schema).filter(|schema| !schema.is_empty()),
                tags: &tool.tags,
            });
        }
        Ok(skills)
    }

    /// Checks that the card is strict JSON, exposes no credential and violates no rule for Orloj's cards.
    fn parse_checked_card(&self, text: &str) -> Result<Value, CardGenerationError> {
        let card = AgentCard::parse(text.as_bytes()).map_err(|error| self.unreadable_card_error(&error.to_string()))?;
        let (place, system) = (self.system.place.clone(), escaped_name_excerpt(&self.key.1));
        if let Some(reason) =
            check::find_secrets(&card).into_iter().next().filter(|_| !clresolve_core::mutant!("secrets-are-shown"))
        {
            let (what, pointer) = (reason.observed.unwrap_or_default(), reason.place.unwrap_or_default());
            return Err(CardGenerationError::Secret { place, system, what, pointer });
        }
        let findings = CardSystem::Orloj.check_card(&card, &CardLintContext::from_profile(&PROFILE));
        match findings.into_iter().find(|reason| reason.effect == ReasonEffect::Fail) {
            None => Ok(card.document().clone()),
            Some(reason) => Err(CardGenerationError::Invalidated { place, system, reason: Box::new(reason) }),
        }
    }

    fn unreadable_card_error(&self, detail: &str) -> CardGenerationError {
        CardGenerationError::Unreadable {
            place: self.system.place.clone(),
            system: escaped_name_excerpt(&self.key.1),
            detail: escaped_name_excerpt(detail),
        }
    }

    fn add_note(&mut self, note: String) {
        if self.notes.len() < MAX_NOTES {
            self.notes.push(format!("the card of {}: {note}", escaped_name_excerpt(&self.key.1)));
        }
    }
}

impl<'h> A2aV1Members<'h> {
    fn new(url: &'h str, protocol_version: &'h str, schemes: BTreeMap<String, Value>) -> Self {
        // Orloj's server writes {name: []}, which an A2A 1.0 client would interpret as an open endpoint.
        let requirement = |name: &str| serde_json::json!({"schemes": {name: {"list": []}}});
        Self {
            supported_interfaces: [AgentInterface { url, protocol_binding: "JSONRPC", protocol_version }],
            default_input_modes: ["text/plain"],
            default_output_modes: ["text/plain", "application/json"],
            security_requirements: schemes.keys().map(|name| requirement(name)).collect(),
            security_schemes: schemes.into_iter().collect(),
        }
    }
}

/// Escapes a name for use as a path segment or query value.
pub fn percent_encode_segment(name: &str) -> impl fmt::Display {
    utf8_percent_encode(name, SEGMENT)
}

/// A scheme of the endpoint in the form of A2A 1.0, if its name determines that form.
fn a2a_security_scheme(scheme: &str) -> Option<(String, Value)> {
    let word = scheme.to_ascii_lowercase();
    if HTTP_SCHEMES.contains(&word.as_str()) {
        return Some((format!("{word}Auth"), serde_json::json!({"httpAuthSecurityScheme": {"scheme": word}})));
    }
    let is_mutual_tls = ["mtls", "mutualtls"].contains(&word.as_str());
    is_mutual_tls.then(|| ("mutualTls".to_owned(), serde_json::json!({"mtlsSecurityScheme": {}})))
}

/// The start of a prompt, on one line.
fn prompt_beginning(prompt: &str) -> String {
    let words: Vec<&str> = prompt.split_whitespace().take(PROMPT_BYTES).collect();
    truncate_bytes(&words.join(" "), PROMPT_BYTES)
}

fn is_a2a_version_1(version: &str) -> bool {
    version.split('.').next() == Some("1")
}
