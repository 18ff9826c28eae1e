//! The resources of Orloj from which a card is generated. Only members that a card may expose are read.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::error::CardGenerationError;
use super::source::{OrlojResourceFile, OrlojResourcePosition};
use super::yaml::{self, YamlNodeAtPath};
use clresolve_core::base_url::PublicBaseUrl;
use clresolve_core::text::{UntrustedText, first_unsafe_character};

const API_VERSION: &str = "orloj.dev/v1";

/// The namespace of a resource without one.
pub const DEFAULT_NAMESPACE: &str = "default";

const DESCRIPTION: &str = "orloj.dev/description";

const VERSION: &str = "orloj.dev/version";

/// Maximum length of a resource or namespace name in bytes, as in the server's storage.
const MAX_NAME_BYTES: usize = 253;

/// Maximum number of bytes of all files together: thousands of resources.
pub const MAX_BYTES: usize = 4 << 20;

/// Members that identify a document as the server's configuration.
const SERVER_MEMBERS: [&str; 4] = ["a2a", "authentication", "capabilities", "provider"];

pub(super) type OrlojNamespacedName = (String, String);

#[derive(Debug, Default)]
pub(super) struct OrlojResources {
    pub(super) systems: BTreeMap<OrlojNamespacedName, OrlojAgentSystem>,
    pub(super) agents: BTreeMap<OrlojNamespacedName, OrlojAgent>,
    pub(super) tools: BTreeMap<OrlojNamespacedName, OrlojTool>,
    pub(super) server: OrlojServerSettings,
    server_place: Option<OrlojResourcePosition>,
}

/// The server's configuration in the resources. A card omits values that are not configured.
#[derive(Clone, Debug, Default)]
pub(super) struct OrlojServerSettings {
    pub(super) base_url: Option<PublicBaseUrl>,
    pub(super) protocol_version: Option<String>,
    pub(super) streaming: Option<bool>,
    pub(super) push_notifications: Option<bool>,
    pub(super) state_transition_history: Option<bool>,
    pub(super) schemes: Option<Vec<String>>,
    pub(super) provider: Option<AgentProvider>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct AgentProvider {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) organization: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) url: Option<String>,
}

#[derive(Debug)]
pub(super) struct OrlojAgentSystem {
    pub(super) place: OrlojResourcePosition,
    pub(super) description: Option<String>,
    pub(super) version: Option<String>,
    pub(super) agents: Vec<(String, OrlojResourcePosition)>,
    /// Whether the system is exposed over A2A.
    pub(super) enabled: bool,
    /// Whether callers without a token may use the system.
    pub(super) public: bool,
}

#[derive(Debug)]
pub(super) struct OrlojAgent {
    place: OrlojResourcePosition,
    pub(super) description: Option<String>,
    pub(super) prompt: Option<String>,
    pub(super) tools: Vec<(String, OrlojResourcePosition)>,
}

#[derive(Debug)]
pub(super) struct OrlojTool {
    place: OrlojResourcePosition,
    pub(super) description: Option<String>,
    /// Empty if the tool has none.
    pub(super) input_schema: Map<String, Value>,
    /// Capabilities, then operation classes, without duplicates.
    pub(super) tags: Vec<String>,
}

impl OrlojResources {
    pub(super) fn parse_resource_files(sources: &[OrlojResourceFile<'_>]) -> Result<Self, CardGenerationError> {
        let bytes: usize = sources.iter().map(|source| source.bytes.len()).sum();
        if bytes > MAX_BYTES {
            return Err(CardGenerationError::TooLarge { limit: MAX_BYTES });
        }
        let mut held = Self::default();
        for source in sources {
            let text = std::str::from_utf8(source.bytes).map_err(|error| CardGenerationError::NotUtf8 {
                file: source.file.to_owned(),
                offset: error.valid_up_to(),
            })?;
            for node in yaml::parse_yaml_documents(source.file, text)? {
                held.add_resource(&YamlNodeAtPath::from_document(source.file, &node))?;
            }
        }
        Ok(held)
    }

    fn add_resource(&mut self, document: &YamlNodeAtPath<'_>) -> Result<(), CardGenerationError> {
        let Some(kind) = document.get("kind")? else { return self.set_server_settings(document) };
        let kind = kind.require_text()?;
        if !["AgentSystem", "Agent", "Tool"].contains(&kind) {
            // Other kinds, such as secrets, are not read.
            return Ok(());
        }
        let version = document.require_member("apiVersion")?;
        if version.require_text()? != API_VERSION {
            return Err(version.invalid_value_error(format_args!("expected {API_VERSION}, the only supported version")));
        }
        let metadata = document.require_member("metadata")?;
        let key = resource_key(&metadata)?;
        let place = metadata.require_member("name")?.source_position();
        let spec = document.require_member("spec")?;
        let first = match kind {
            "AgentSystem" => self.systems.get(&key).map(|known| &known.place),
            "Agent" => self.agents.get(&key).map(|known| &known.place),
            _ => self.tools.get(&key).map(|known| &known.place),
        };
        if let Some(first) = first {
            return Err(metadata.invalid_value_error(format_args!(
                "duplicate of the {kind} {} in {first}; rename or remove one",
                UntrustedText::new(&key.1)
            )));
        }
        match kind {
            "AgentSystem" => drop(self.systems.insert(key, OrlojAgentSystem::from_yaml_spec(place, &metadata, &spec)?)),
            "Agent" => drop(self.agents.insert(key, OrlojAgent::from_yaml_spec(place, &metadata, &spec)?)),
            _ => drop(self.tools.insert(key, OrlojTool::from_yaml_spec(place, &spec)?)),
        }
        Ok(())
    }

    /// Reads a document without a kind as the server's configuration.
    fn set_server_settings(&mut self, document: &YamlNodeAtPath<'_>) -> Result<(), CardGenerationError> {
        for (name, field) in document.non_null_members()? {
            if !SERVER_MEMBERS.contains(&name) {
                return Err(field.invalid_value_error(format_args!(
                    "the document has no kind, so it is the server's configuration, which has {}; \
                     a resource needs apiVersion, kind, metadata and spec",
                    SERVER_MEMBERS.join(", "),
                )));
            }
        }
        if let Some(first) = &self.server_place {
            return Err(document.invalid_value_error(format_args!(
                "a second document with the server's configuration; the first is {first}; put them in one document"
            )));
        }
        self.server_place = Some(document.source_position());
        self.server = parse_server_settings(document)?;
        Ok(())
    }
}

impl OrlojAgentSystem {
    fn from_yaml_spec(
        place: OrlojResourcePosition,
        metadata: &YamlNodeAtPath<'_>,
        spec: &YamlNodeAtPath<'_>,
    ) -> Result<Self, CardGenerationError> {
        let a2a = spec.get("a2a")?;
        let a2a_member = |name| a2a.as_ref().map_or(Ok(None), |a2a| a2a.get(name));
        Ok(Self {
            place,
            description: metadata_member_text(metadata, "annotations", DESCRIPTION)?,
            version: metadata_member_text(metadata, "labels", VERSION)?,
            agents: resource_references(spec, "agents")?,
            enabled: a2a_member("enabled")?.map_or(Ok(false), |enabled| enabled.require_bool())?,
            public: match a2a_member("auth")? {
                None => false,
                Some(auth) => match auth.require_text()? {
                    "public" => true,
                    "bearer" | "" => false,
                    _ => return Err(auth.invalid_value_error("expected public or bearer")),
                },
            },
        })
    }
}

impl OrlojAgent {
    fn from_yaml_spec(
        place: OrlojResourcePosition,
        metadata: &YamlNodeAtPath<'_>,
        spec: &YamlNodeAtPath<'_>,
    ) -> Result<Self, CardGenerationError> {
        Ok(Self {
            place,
            description: metadata_member_text(metadata, "annotations", DESCRIPTION)?,
            prompt: trimmed_text(spec, "prompt")?,
            tools: resource_references(spec, "tools")?,
        })
    }
}

impl OrlojTool {
    fn from_yaml_spec(place: OrlojResourcePosition, spec: &YamlNodeAtPath<'_>) -> Result<Self, CardGenerationError> {
        let mut tags: Vec<String> = Vec::new();
        for member in ["capabilities", "operation_classes"] {
            let Some(list) = spec.get(member)? else { continue };
            for tag in list.require_texts()? {
                if !tag.is_empty() && !tags.iter().any(|known| known == tag) {
                    tags.push(tag.to_owned());
                }
            }
        }
        let input_schema =
            spec.get("input_schema")?.map_or_else(|| Ok(Map::new()), |schema| schema.to_json_object())?;
        Ok(Self { place, description: trimmed_text(spec, "description")?, input_schema, tags })
    }
}

fn parse_server_settings(document: &YamlNodeAtPath<'_>) -> Result<OrlojServerSettings, CardGenerationError> {
    let mut server = OrlojServerSettings::default();
    if let Some(a2a) = document.get("a2a")? {
        if let Some(url) = a2a.get("publicBaseURL")? {
            let parsed = url.require_text()?.parse::<PublicBaseUrl>();
            server.base_url = Some(parsed.map_err(|detail| url.invalid_value_error(detail))?);
        }
        server.protocol_version = trimmed_text(&a2a, "protocolVersion")?;
    }
    if let Some(capabilities) = document.get("capabilities")? {
        let flag = |name| capabilities.get(name)?.map(|flag| flag.require_bool()).transpose();
        server.streaming = flag("streaming")?;
        server.push_notifications = flag("pushNotifications")?;
        server.state_transition_history = flag("stateTransitionHistory")?;
    }
    if let Some(authentication) = document.get("authentication")? {
        let schemes = authentication.require_member("schemes")?;
        let mut list = Vec::new();
        for scheme in schemes.require_items()? {
            let name = scheme.require_text()?;
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)) {
                return Err(scheme.invalid_value_error("expected a scheme such as bearer"));
            }
            if !list.iter().any(|known: &String| known.eq_ignore_ascii_case(name)) {
                list.push(name.to_owned());
            }
        }
        server.schemes = Some(list);
    }
    if let Some(provider) = document.get("provider")? {
        let url = provider.get("url")?.map(|url| parse_web_url(&url)).transpose()?;
        server.provider = Some(AgentProvider { organization: trimmed_text(&provider, "organization")?, url });
    }
    Ok(server)
}

/// A URL as written, if it is in canonical form except for a trailing slash. Otherwise its canonical form, which is
/// ASCII.
fn parse_web_url(field: &YamlNodeAtPath<'_>) -> Result<String, CardGenerationError> {
    let typed = field.require_text()?.trim();
    let url = url::Url::parse(typed).ok().filter(url::Url::has_host);
    let url = url.ok_or_else(|| field.invalid_value_error("expected a URL such as https://orloj.example"))?;
    let is_own_form = typed.trim_end_matches('/') == url.as_str().trim_end_matches('/');
    Ok(if is_own_form { typed.to_owned() } else { url.into() })
}

fn resource_key(metadata: &YamlNodeAtPath<'_>) -> Result<OrlojNamespacedName, CardGenerationError> {
    let name = parse_resource_name(&metadata.require_member("name")?)?;
    let namespace =
        metadata.get("namespace")?.map_or(Ok(DEFAULT_NAMESPACE), |namespace| self::parse_resource_name(&namespace))?;
    Ok((namespace.to_owned(), name.to_owned()))
}

/// Whether the text is a valid name of a resource or namespace, which must fit in a path segment.
pub fn is_resource_name(name: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&name.len())
        && ![".", ".."].contains(&name)
        && !name.contains(['/', ' '])
        && first_unsafe_character(name).is_none()
}

fn parse_resource_name<'n>(field: &YamlNodeAtPath<'n>) -> Result<&'n str, CardGenerationError> {
    let name = field.require_text()?;
    if is_resource_name(name) {
        return Ok(name);
    }
    Err(field
        .invalid_value_error(format_args!("expected a name of 1 to {MAX_NAME_BYTES} bytes without spaces and slashes")))
}

/// Names of other resources, with their locations.
fn resource_references(
    spec: &YamlNodeAtPath<'_>,
    member: &str,
) -> Result<Vec<(String, OrlojResourcePosition)>, CardGenerationError> {
    let Some(list) = spec.get(member)? else { return Ok(Vec::new()) };
    list.require_items()?
        .iter()
        .map(|item| Ok((parse_resource_name(item)?.to_owned(), item.source_position())))
        .collect()
}

/// Text without surrounding whitespace. `None` if it is empty.
fn trimmed_text(field: &YamlNodeAtPath<'_>, member: &str) -> Result<Option<String>, CardGenerationError> {
    let Some(member) = field.get(member)? else { return Ok(None) };
    let text = member.require_text()?.trim();
    Ok(Some(text).filter(|text| !text.is_empty()).map(str::to_owned))
}

fn metadata_member_text(
    metadata: &YamlNodeAtPath<'_>,
    list: &str,
    name: &str,
) -> Result<Option<String>, CardGenerationError> {
    metadata.get(list)?.map_or(Ok(None), |list| trimmed_text(&list, name))
}
