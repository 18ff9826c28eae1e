//! The resources of Orloj from which a card is generated. Only members that a card may expose are read.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::error::GenerateError;
use super::source::{SourceFile, SourceLine};
use super::yaml::{self, Field};
use clresolve_core::base_url::BaseUrl;
use clresolve_core::text::{Foreign, unsafe_character};

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

pub(super) type Key = (String, String);

#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) systems: BTreeMap<Key, AgentSystem>,
    pub(super) agents: BTreeMap<Key, Agent>,
    pub(super) tools: BTreeMap<Key, Tool>,
    pub(super) server: Server,
    server_place: Option<SourceLine>,
}

/// The server's configuration in the resources. A card omits values that are not configured.
#[derive(Clone, Debug, Default)]
pub(super) struct Server {
    pub(super) base_url: Option<BaseUrl>,
    pub(super) protocol_version: Option<String>,
    pub(super) streaming: Option<bool>,
    pub(super) push_notifications: Option<bool>,
    pub(super) state_transition_history: Option<bool>,
    pub(super) schemes: Option<Vec<String>>,
    pub(super) provider: Option<Provider>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Provider {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) organization: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) url: Option<String>,
}

#[derive(Debug)]
pub(super) struct AgentSystem {
    pub(super) place: SourceLine,
    pub(super) description: Option<String>,
    pub(super) version: Option<String>,
    pub(super) agents: Vec<(String, SourceLine)>,
    /// Whether the system is exposed over A2A.
    pub(super) enabled: bool,
    /// Whether callers without a token may use the system.
    pub(super) public: bool,
}

#[derive(Debug)]
pub(super) struct Agent {
    place: SourceLine,
    pub(super) description: Option<String>,
    pub(super) prompt: Option<String>,
    pub(super) tools: Vec<(String, SourceLine)>,
}

#[derive(Debug)]
pub(super) struct Tool {
    place: SourceLine,
    pub(super) description: Option<String>,
    /// Empty if the tool has none.
    pub(super) input_schema: Map<String, Value>,
    /// Capabilities, then operation classes, without duplicates.
    pub(super) tags: Vec<String>,
}

impl Held {
    pub(super) fn read(sources: &[SourceFile<'_>]) -> Result<Self, GenerateError> {
        let bytes: usize = sources.iter().map(|source| source.bytes.len()).sum();
        if bytes > MAX_BYTES {
            return Err(GenerateError::TooLarge { limit: MAX_BYTES });
        }
        let mut held = Self::default();
        for source in sources {
            let text = std::str::from_utf8(source.bytes).map_err(|error| GenerateError::NotUtf8 {
                file: source.file.to_owned(),
                offset: error.valid_up_to(),
            })?;
            for node in yaml::documents(source.file, text)? {
                held.take(&Field::document(source.file, &node))?;
            }
        }
        Ok(held)
    }

    fn take(&mut self, document: &Field<'_>) -> Result<(), GenerateError> {
        let Some(kind) = document.get("kind")? else { return self.take_server(document) };
        let kind = kind.text()?;
        if !["AgentSystem", "Agent", "Tool"].contains(&kind) {
            // Other kinds, such as secrets, are not read.
            return Ok(());
        }
        let version = document.demand("apiVersion")?;
        if version.text()? != API_VERSION {
            return Err(version.refused(format_args!("expected {API_VERSION}, the only supported version")));
        }
        let metadata = document.demand("metadata")?;
        let key = key(&metadata)?;
        let place = metadata.demand("name")?.place();
        let spec = document.demand("spec")?;
        let first = match kind {
            "AgentSystem" => self.systems.get(&key).map(|known| &known.place),
            "Agent" => self.agents.get(&key).map(|known| &known.place),
            _ => self.tools.get(&key).map(|known| &known.place),
        };
        if let Some(first) = first {
            return Err(metadata.refused(format_args!(
                "duplicate of the {kind} {} in {first}; rename or remove one",
                Foreign::new(&key.1)
            )));
        }
        match kind {
            "AgentSystem" => drop(self.systems.insert(key, AgentSystem::read(place, &metadata, &spec)?)),
            "Agent" => drop(self.agents.insert(key, Agent::read(place, &metadata, &spec)?)),
            _ => drop(self.tools.insert(key, Tool::read(place, &spec)?)),
        }
        Ok(())
    }

    /// Reads a document without a kind as the server's configuration.
    fn take_server(&mut self, document: &Field<'_>) -> Result<(), GenerateError> {
        for (name, field) in document.members()? {
            if !SERVER_MEMBERS.contains(&name) {
                return Err(field.refused(format_args!(
                    "the document has no kind, so it is the server's configuration, which has {}; \
                     a resource needs apiVersion, kind, metadata and spec",
                    SERVER_MEMBERS.join(", "),
                )));
            }
        }
        if let Some(first) = &self.server_place {
            return Err(document.refused(format_args!(
                "a second document with the server's configuration; the first is {first}; put them in one document"
            )));
        }
        self.server_place = Some(document.place());
        self.server = server(document)?;
        Ok(())
    }
}

impl AgentSystem {
    fn read(place: SourceLine, metadata: &Field<'_>, spec: &Field<'_>) -> Result<Self, GenerateError> {
        let a2a = spec.get("a2a")?;
        let a2a_member = |name| a2a.as_ref().map_or(Ok(None), |a2a| a2a.get(name));
        Ok(Self {
            place,
            description: note(metadata, "annotations", DESCRIPTION)?,
            version: note(metadata, "labels", VERSION)?,
            agents: references(spec, "agents")?,
            enabled: a2a_member("enabled")?.map_or(Ok(false), |enabled| enabled.flag())?,
            public: match a2a_member("auth")? {
                None => false,
                Some(auth) => match auth.text()? {
                    "public" => true,
                    "bearer" | "" => false,
                    _ => return Err(auth.refused("expected public or bearer")),
                },
            },
        })
    }
}

impl Agent {
    fn read(place: SourceLine, metadata: &Field<'_>, spec: &Field<'_>) -> Result<Self, GenerateError> {
        Ok(Self {
            place,
            description: note(metadata, "annotations", DESCRIPTION)?,
            prompt: text(spec, "prompt")?,
            tools: references(spec, "tools")?,
        })
    }
}

impl Tool {
    fn read(place: SourceLine, spec: &Field<'_>) -> Result<Self, GenerateError> {
        let mut tags: Vec<String> = Vec::new();
        for member in ["capabilities", "operation_classes"] {
            let Some(list) = spec.get(member)? else { continue };
            for tag in list.texts()? {
                if !tag.is_empty() && !tags.iter().any(|known| known == tag) {
                    tags.push(tag.to_owned());
                }
            }
        }
        let input_schema = spec.get("input_schema")?.map_or_else(|| Ok(Map::new()), |schema| schema.object())?;
        Ok(Self { place, description: text(spec, "description")?, input_schema, tags })
    }
}

fn server(document: &Field<'_>) -> Result<Server, GenerateError> {
    let mut server = Server::default();
    if let Some(a2a) = document.get("a2a")? {
        if let Some(url) = a2a.get("publicBaseURL")? {
            let parsed = url.text()?.parse::<BaseUrl>();
            server.base_url = Some(parsed.map_err(|detail| url.refused(detail))?);
        }
        server.protocol_version = text(&a2a, "protocolVersion")?;
    }
    if let Some(capabilities) = document.get("capabilities")? {
        let flag = |name| capabilities.get(name)?.map(|flag| flag.flag()).transpose();
        server.streaming = flag("streaming")?;
        server.push_notifications = flag("pushNotifications")?;
        server.state_transition_history = flag("stateTransitionHistory")?;
    }
    if let Some(authentication) = document.get("authentication")? {
        let schemes = authentication.demand("schemes")?;
        let mut list = Vec::new();
        for scheme in schemes.items()? {
            let name = scheme.text()?;
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)) {
                return Err(scheme.refused("expected a scheme such as bearer"));
            }
            if !list.iter().any(|known: &String| known.eq_ignore_ascii_case(name)) {
                list.push(name.to_owned());
            }
        }
        server.schemes = Some(list);
    }
    if let Some(provider) = document.get("provider")? {
        let url = provider.get("url")?.map(|url| web_address(&url)).transpose()?;
        server.provider = Some(Provider { organization: text(&provider, "organization")?, url });
    }
    Ok(server)
}

/// A URL as written, if it is in canonical form except for a trailing slash. Otherwise its canonical form, which is
/// ASCII.
fn web_address(field: &Field<'_>) -> Result<String, GenerateError> {
    let typed = field.text()?.trim();
    let url = url::Url::parse(typed).ok().filter(url::Url::has_host);
    let url = url.ok_or_else(|| field.refused("expected a URL such as https://orloj.example"))?;
    let is_own_form = typed.trim_end_matches('/') == url.as_str().trim_end_matches('/');
    Ok(if is_own_form { typed.to_owned() } else { url.into() })
}

fn key(metadata: &Field<'_>) -> Result<Key, GenerateError> {
    let name = name(&metadata.demand("name")?)?;
    let namespace = metadata.get("namespace")?.map_or(Ok(DEFAULT_NAMESPACE), |namespace| self::name(&namespace))?;
    Ok((namespace.to_owned(), name.to_owned()))
}

/// Whether the text is a valid name of a resource or namespace, which must fit in a path segment.
pub fn is_name(name: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&name.len())
        && ![".", ".."].contains(&name)
        && !name.contains(['/', ' '])
        && unsafe_character(name).is_none()
}

fn name<'n>(field: &Field<'n>) -> Result<&'n str, GenerateError> {
    let name = field.text()?;
    if is_name(name) {
        return Ok(name);
    }
    Err(field.refused(format_args!("expected a name of 1 to {MAX_NAME_BYTES} bytes without spaces and slashes")))
}

/// Names of other resources, with their locations.
fn references(spec: &Field<'_>, member: &str) -> Result<Vec<(String, SourceLine)>, GenerateError> {
    let Some(list) = spec.get(member)? else { return Ok(Vec::new()) };
    list.items()?.iter().map(|item| Ok((name(item)?.to_owned(), item.place()))).collect()
}

/// Text without surrounding whitespace. `None` if it is empty.
fn text(field: &Field<'_>, member: &str) -> Result<Option<String>, GenerateError> {
    let Some(member) = field.get(member)? else { return Ok(None) };
    let text = member.text()?.trim();
    Ok(Some(text).filter(|text| !text.is_empty()).map(str::to_owned))
}

fn note(metadata: &Field<'_>, list: &str, name: &str) -> Result<Option<String>, GenerateError> {
    metadata.get(list)?.map_or(Ok(None), |list| text(&list, name))
}
