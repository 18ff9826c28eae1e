//! The target of a discovery: a host, one of its systems, or one document.

use std::fmt;

use percent_encoding::percent_decode_str;
use url::Url;

use clresolve_cards::generate::{DEFAULT_NAMESPACE, is_resource_name, percent_encode_segment};
use clresolve_cards::system::{CardSystem, matches_path_form};
use clresolve_core::text::excerpt_text;
use clresolve_verdict::card::AgentCard;

/// Maximum length of a target, in bytes: the limit on URLs.
const MAX_BYTES: usize = 2048;

/// The path above a host's agent systems.
const SYSTEMS: &str = "/v1/agent-systems/";

/// The query parameter with an agent system's namespace.
const NAMESPACE: &str = "namespace";

/// The placeholder for the name of an agent system in a path.
const NAME: &str = "{name}";

/// The target of a discovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscoveryTarget {
    /// Scheme, host and port, with the path `/`.
    origin: Url,
    what: DiscoveryTargetKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum DiscoveryTargetKind {
    /// The well-known paths of the host.
    Host,
    /// The well-known paths, and the paths of one system.
    System(HostedAgentSystemName),
    Document(Url),
}

/// The name of one of a host's agent systems, and its namespace, if one is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostedAgentSystemName {
    namespace: Option<String>,
    name: String,
}

/// Why a text is not a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoveryTargetError {
    /// Neither a host nor a URL with one.
    #[error("expected a host, or an https URL of a host or of a .json document")]
    NotUrl,
    /// Another scheme than `https`.
    #[error("expected an https URL: cards are read over https only")]
    Scheme,
    /// The URL names a user or a password.
    #[error("the URL has user info: cards are discovered without credentials")]
    UserInfo,
    /// The URL has the path of neither a document nor an agent system.
    #[error(
        "expected a URL without a path, of a document that ends in .json, or of /v1/agent-systems/NAME; the only query parameter is namespace"
    )]
    Path,
    /// Not the name of an agent system.
    #[error("expected NAME or NAMESPACE/NAME of an agent system, without spaces or further slashes")]
    SystemName,
    /// An agent system is named, but the target is one document.
    #[error("an agent system is named, but the URL is that of one document")]
    SystemOfDocument,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CandidateCardUrl {
    pub(super) url: Url,
    /// The systems whose cards are looked for there.
    pub(super) systems: Vec<CardSystem>,
    /// Whether the path is that of one of the host's agent systems.
    pub(super) is_of_system: bool,
    /// The agent system whose card is expected there.
    pub(super) agent_system: Option<HostedAgentSystemName>,
}

impl CandidateCardUrl {
    /// The URL for display, without a query that may contain a secret.
    pub(super) fn display_url(&self) -> String {
        redacted_display_url(&self.url)
    }
}

fn redacted_display_url(url: &Url) -> String {
    if HostedAgentSystemName::from_url(url).is_ok() {
        return url.to_string();
    }
    let mut url = url.clone();
    url.set_query(None);
    url.to_string()
}

impl DiscoveryTarget {
    /// Parses a host (`agent.example`), an origin, the URL of a system, or that of a document that ends in `.json`.
    ///
    /// # Errors
    /// [`DiscoveryTargetError`].
    pub fn parse(text: &str) -> Result<Self, DiscoveryTargetError> {
        Self::parse_allowing_http(text)
            .and_then(|target| if target.is_plain_http() { Err(DiscoveryTargetError::Scheme) } else { Ok(target) })
    }

    /// Like [`parse`](Self::parse), but also accepts plain `http` URLs. They are requested only if the operator listed
    /// the origin.
    ///
    /// # Errors
    /// [`DiscoveryTargetError`].
    pub fn parse_allowing_http(text: &str) -> Result<Self, DiscoveryTargetError> {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
        if text.is_empty() || text.len() > MAX_BYTES || !is_plain {
            return Err(DiscoveryTargetError::NotUrl);
        }
        let with_scheme = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
        let mut url = Url::parse(&with_scheme).map_err(|_| DiscoveryTargetError::NotUrl)?;
        if !matches!(url.scheme(), "https" | "http") {
            return Err(DiscoveryTargetError::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() || with_scheme.contains("://@") {
            return Err(DiscoveryTargetError::UserInfo);
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(DiscoveryTargetError::NotUrl);
        }
        url.set_fragment(None);
        let origin = url.join("/").map_err(|_| DiscoveryTargetError::NotUrl)?;
        let what = if url.path().ends_with(".json") {
            DiscoveryTargetKind::Document(url)
        } else if url.path().starts_with(SYSTEMS) {
            DiscoveryTargetKind::System(HostedAgentSystemName::from_url(&url)?)
        } else if url.path() == "/" && url.query().is_none() {
            DiscoveryTargetKind::Host
        } else {
            return Err(DiscoveryTargetError::Path);
        };
        Ok(Self { origin, what })
    }

    /// The same host, with the paths of one of its systems.
    ///
    /// # Errors
    /// [`DiscoveryTargetError::SystemOfDocument`] if the target is one document.
    pub fn with_agent_system(self, name: HostedAgentSystemName) -> Result<Self, DiscoveryTargetError> {
        match self.what {
            DiscoveryTargetKind::Document(_) => Err(DiscoveryTargetError::SystemOfDocument),
            DiscoveryTargetKind::Host | DiscoveryTargetKind::System(_) => {
                Ok(Self { what: DiscoveryTargetKind::System(name), ..self })
            }
        }
    }

    /// Whether requests go out over plain `http`, so that nothing authenticates the host.
    pub fn is_plain_http(&self) -> bool {
        self.origin.scheme() == "http"
    }

    /// Host and port, in the format of `--allow-host`.
    pub fn host_port(&self) -> String {
        let port = self.origin.port_or_known_default().unwrap_or_default();
        format!("{}:{port}", self.origin.host_str().unwrap_or_default())
    }

    /// Scheme, host and port, without a trailing slash.
    pub fn origin(&self) -> String {
        self.origin.as_str().trim_end_matches('/').to_owned()
    }

    /// The card system, if the target names one of the host's agent systems.
    pub(super) fn implied_card_system(&self) -> Option<CardSystem> {
        matches!(self.what, DiscoveryTargetKind::System(_))
            .then(|| CardSystem::ALL.iter().copied().find(supports_agent_systems))?
    }

    /// Whether the target is a host without its agent systems, and one of `systems` has agent systems.
    pub(super) fn omits_agent_system(&self, systems: &[CardSystem]) -> bool {
        matches!(self.what, DiscoveryTargetKind::Host) && systems.iter().any(supports_agent_systems)
    }

    /// The URLs to query, without duplicates, in order.
    pub(super) fn candidate_urls(&self, only: Option<CardSystem>) -> Vec<CandidateCardUrl> {
        let card_systems =
            CardSystem::ALL.iter().copied().filter(|card_system| only.is_none_or(|only| only == *card_system));
        let mut candidates: Vec<CandidateCardUrl> = Vec::new();
        for (card_system, form) in
            card_systems.flat_map(|f| f.discovery_rules().paths.iter().map(move |form| (f, *form)))
        {
            let Some(url) = self.expand_path_template(form) else { continue };
            let is_of_system = form.contains(NAME);
            match candidates.iter_mut().find(|candidate| candidate.url == url) {
                Some(candidate) if candidate.systems.contains(&card_system) => {}
                Some(candidate) => candidate.systems.push(card_system),
                None => {
                    let agent_system = HostedAgentSystemName::from_url(&url).ok().filter(|_| is_of_system);
                    candidates.push(CandidateCardUrl { url, systems: vec![card_system], is_of_system, agent_system });
                }
            }
        }
        if let (DiscoveryTargetKind::Document(url), true) = (&self.what, candidates.is_empty()) {
            candidates.push(CandidateCardUrl {
                url: url.clone(),
                systems: only.into_iter().collect(),
                is_of_system: false,
                agent_system: None,
            });
        }
        candidates.sort_by(|a, b| a.url.cmp(&b.url));
        candidates
    }

    /// The URL of a path template. `None` if the template does not apply to this target.
    fn expand_path_template(&self, form: &str) -> Option<Url> {
        match &self.what {
            DiscoveryTargetKind::Document(url) => matches_path_form(form, url.path()).then(|| url.clone()),
            DiscoveryTargetKind::Host if form.contains(['{', '*']) => None,
            DiscoveryTargetKind::System(_) if form.contains('*') => None,
            DiscoveryTargetKind::Host => self.origin.join(form).ok(),
            DiscoveryTargetKind::System(name) => {
                let mut url =
                    self.origin.join(&form.replace(NAME, &percent_encode_segment(&name.name).to_string())).ok()?;
                if let (Some(namespace), true) = (&name.namespace, form.contains(NAME)) {
                    url.set_query(Some(&format!("{NAMESPACE}={}", percent_encode_segment(namespace))));
                }
                Some(url)
            }
        }
    }
}

impl fmt::Display for DiscoveryTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            DiscoveryTargetKind::Host => f.write_str(&self.origin()),
            DiscoveryTargetKind::System(name) => write!(f, "{}{SYSTEMS}{name}", self.origin()),
            DiscoveryTargetKind::Document(url) => f.write_str(&excerpt_text(&redacted_display_url(url))),
        }
    }
}

impl HostedAgentSystemName {
    /// Parses `NAME` or `NAMESPACE/NAME`: any name that Orloj's resources can have.
    ///
    /// # Errors
    /// [`DiscoveryTargetError::SystemName`].
    pub fn parse(text: &str) -> Result<Self, DiscoveryTargetError> {
        match text.split_once('/') {
            Some((namespace, name)) => Self::new(Some(namespace), name),
            None => Self::new(None, text),
        }
    }

    fn new(namespace: Option<&str>, name: &str) -> Result<Self, DiscoveryTargetError> {
        if !is_resource_name(name) || !namespace.is_none_or(is_resource_name) {
            return Err(DiscoveryTargetError::SystemName);
        }
        Ok(Self { namespace: namespace.map(str::to_owned), name: name.to_owned() })
    }

    /// The agent system of a URL: of the system itself, of its endpoint or of its card.
    fn from_url(url: &Url) -> Result<Self, DiscoveryTargetError> {
        let below = url.path().strip_prefix(SYSTEMS).ok_or(DiscoveryTargetError::Path)?;
        let (segment, rest) = below.split_once('/').unwrap_or((below, ""));
        if !["", "a2a", ".well-known/agent-card.json"].contains(&rest) {
            return Err(DiscoveryTargetError::Path);
        }
        let mut parameters = url.query_pairs();
        let namespace = match (parameters.next(), parameters.next()) {
            (None, _) => None,
            (Some((key, namespace)), None) if key == NAMESPACE => Some(namespace),
            _ => return Err(DiscoveryTargetError::Path),
        };
        let name = percent_decode_str(segment).decode_utf8().map_err(|_| DiscoveryTargetError::SystemName)?;
        Self::new(namespace.as_deref(), &name)
    }

    /// Whether a card claims to be this system's, by its name and by the namespace in its endpoint. Orloj's server
    /// omits the default namespace.
    pub(super) fn is_claimed_by_card(&self, card: &AgentCard) -> bool {
        let endpoint = card.text_at("/url").and_then(|url| Url::parse(url).ok());
        let stated = endpoint.as_ref().and_then(|url| url.query_pairs().find(|(key, _)| key == NAMESPACE));
        let stated = stated.as_ref().map_or(DEFAULT_NAMESPACE, |(_, namespace)| namespace);
        let namespace = self.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
        card.text_at("/name") == Some(&self.name) && (endpoint.is_none() || stated == namespace)
    }
}

fn supports_agent_systems(card_system: &CardSystem) -> bool {
    card_system.discovery_rules().paths.iter().any(|form| form.contains(NAME))
}

/// Formats the name as it appears at the end of a URL.
impl fmt::Display for HostedAgentSystemName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", percent_encode_segment(&self.name))?;
        self.namespace
            .as_ref()
            .map_or(Ok(()), |namespace| write!(f, "?{NAMESPACE}={}", percent_encode_segment(namespace)))
    }
}

impl std::str::FromStr for DiscoveryTarget {
    type Err = DiscoveryTargetError;

    fn from_str(text: &str) -> Result<Self, DiscoveryTargetError> {
        Self::parse(text)
    }
}

impl std::str::FromStr for HostedAgentSystemName {
    type Err = DiscoveryTargetError;

    fn from_str(text: &str) -> Result<Self, DiscoveryTargetError> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(text: &str, only: Option<CardSystem>) -> Vec<String> {
        let target = DiscoveryTarget::parse(text).unwrap();
        target.candidate_urls(only).into_iter().map(|candidate| candidate.url.to_string()).collect()
    }

    #[test]
    fn a_host_is_asked_for_the_paths_of_every_system() {
        let walked = [
            "https://a.example/.well-known/agent-card.json",
            "https://a.example/.well-known/agent-cards-v1.0.0.json",
            "https://a.example/.well-known/agent.json",
        ];
        for text in ["a.example", "https://a.example", "https://a.example/", "HTTPS://A.example:443/#x"] {
            assert_eq!(places(text, None), walked, "{text}");
        }
        assert_eq!(places("a.example", Some(CardSystem::Aevum)), walked[2..]);
        assert_eq!(
            places("a.example:8443", Some(CardSystem::Aevum)),
            ["https://a.example:8443/.well-known/agent.json"]
        );
    }

    #[test]
    fn plain_targets_are_read_only_where_they_are_wanted() {
        for (text, host_port) in
            [("http://a.example", "a.example:80"), ("http://10.0.0.1:8080/a.json", "10.0.0.1:8080")]
        {
            assert_eq!(DiscoveryTarget::parse(text), Err(DiscoveryTargetError::Scheme));
            let target = DiscoveryTarget::parse_allowing_http(text).unwrap();
            assert!(
                target.is_plain_http() && target.candidate_urls(None).iter().all(|asked| asked.url.scheme() == "http")
            );
            assert_eq!(target.host_port(), host_port);
        }
        assert!(!DiscoveryTarget::parse_allowing_http("a.example").unwrap().is_plain_http());
        assert_eq!(DiscoveryTarget::parse_allowing_http("ftp://a.example"), Err(DiscoveryTargetError::Scheme));
    }

    #[test]
    fn a_system_that_is_named_has_a_path_of_its_own() {
        let own = "https://a.example/v1/agent-systems/b/.well-known/agent-card.json";
        for text in ["https://a.example/v1/agent-systems/b", "https://a.example/v1/agent-systems/b/a2a"] {
            let found = places(text, None);
            assert_eq!((found.len(), found[3].as_str()), (4, own), "{text}");
        }
        let named = DiscoveryTarget::parse("a.example").unwrap().with_agent_system("b".parse().unwrap()).unwrap();
        assert_eq!(named.candidate_urls(Some(CardSystem::Orloj)).len(), 2);
        assert_eq!(named.implied_card_system(), Some(CardSystem::Orloj));
        for (typed, asked) in [
            ("fin/b", "b/.well-known/agent-card.json?namespace=fin"),
            ("ä+c", "%C3%A4%2Bc/.well-known/agent-card.json"),
        ] {
            let named = DiscoveryTarget::parse("a.example").unwrap().with_agent_system(typed.parse().unwrap()).unwrap();
            let asked = format!("https://a.example/v1/agent-systems/{asked}");
            assert_eq!(named.candidate_urls(Some(CardSystem::Orloj))[1].url.as_str(), asked);
            assert_eq!(
                named.candidate_urls(Some(CardSystem::Orloj))[0].url.query(),
                None,
                "the root card has no namespace"
            );
            assert_eq!(DiscoveryTarget::parse(&named.to_string()), Ok(named), "what is shown can be typed");
            assert_eq!(places(&asked, None), [asked]);
        }
        let document = DiscoveryTarget::parse(own).unwrap();
        assert_eq!(places(own, None), [own]);
        assert_eq!(document.with_agent_system("b".parse().unwrap()), Err(DiscoveryTargetError::SystemOfDocument));
    }

    #[test]
    fn one_document_is_one_request() {
        let candidate =
            DiscoveryTarget::parse("https://a.example/cards/b.json?c=1").unwrap().candidate_urls(None).remove(0);
        assert_eq!(
            (candidate.url.as_str(), candidate.systems.as_slice()),
            ("https://a.example/cards/b.json?c=1", &[CardSystem::Anypoint][..])
        );
        assert_eq!(
            places("https://a.example/cards/b.json", Some(CardSystem::Aevum)),
            ["https://a.example/cards/b.json"]
        );
    }

    #[test]
    fn what_is_no_target_is_refused() {
        for (text, error) in [
            ("", DiscoveryTargetError::NotUrl),
            ("https://", DiscoveryTargetError::NotUrl),
            ("https://a.example\\b", DiscoveryTargetError::NotUrl),
            ("https://a.exa\tmple", DiscoveryTargetError::NotUrl),
            ("http://a.example", DiscoveryTargetError::Scheme),
            ("file:///etc/a.json", DiscoveryTargetError::Scheme),
            ("https://u:p@a.example", DiscoveryTargetError::UserInfo),
            ("u@a.example", DiscoveryTargetError::UserInfo),
            ("https://@a.example", DiscoveryTargetError::UserInfo),
            ("https://a.example/x", DiscoveryTargetError::Path),
            ("https://a.example/?x=1", DiscoveryTargetError::Path),
            ("https://a.example/v1/agent-systems/", DiscoveryTargetError::SystemName),
            ("https://a.example/v1/agent-systems/a/b", DiscoveryTargetError::Path),
            ("https://a.example/v1/agent-systems/a?x=1", DiscoveryTargetError::Path),
            ("https://a.example/v1/agent-systems/a?namespace=b&x=1", DiscoveryTargetError::Path),
            ("https://a.example/v1/agent-systems/a?namespace=", DiscoveryTargetError::SystemName),
            ("https://a.example/v1/agent-systems/%ff", DiscoveryTargetError::SystemName),
            ("https://a.example/v1/agent-systems/a%2fb/a2a", DiscoveryTargetError::SystemName),
        ] {
            assert_eq!(DiscoveryTarget::parse(text), Err(error), "{text}");
        }
        for name in ["", "..", "a/b/c", "/b", "a/", "a b", "a\u{202e}b"] {
            assert_eq!(HostedAgentSystemName::parse(name), Err(DiscoveryTargetError::SystemName), "{name}");
        }
    }
}
