//! The target of a discovery: a host, one of its systems, or one document.

use std::fmt;

use percent_encoding::percent_decode_str;
use url::Url;

use clresolve_cards::generate::{DEFAULT_NAMESPACE, escaped, is_name};
use clresolve_cards::system::{CardSystem, fits};
use clresolve_core::text::excerpt;
use clresolve_verdict::card::Card;

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
pub struct Target {
    /// Scheme, host and port, with the path `/`.
    origin: Url,
    what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    /// The well-known paths of the host.
    Host,
    /// The well-known paths, and the paths of one system.
    System(SystemName),
    Document(Url),
}

/// The name of one of a host's agent systems, and its namespace, if one is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemName {
    namespace: Option<String>,
    name: String,
}

/// Why a text is not a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
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
pub(super) struct CandidateUrl {
    pub(super) url: Url,
    /// The systems whose cards are looked for there.
    pub(super) systems: Vec<CardSystem>,
    /// Whether the path is that of one of the host's agent systems.
    pub(super) is_of_system: bool,
    /// The agent system whose card is expected there.
    pub(super) agent_system: Option<SystemName>,
}

impl CandidateUrl {
    /// The URL for display, without a query that may contain a secret.
    pub(super) fn shown(&self) -> String {
        shown(&self.url)
    }
}

fn shown(url: &Url) -> String {
    if SystemName::of_url(url).is_ok() {
        return url.to_string();
    }
    let mut url = url.clone();
    url.set_query(None);
    url.to_string()
}

impl Target {
    /// Parses a host (`agent.example`), an origin, the URL of a system, or that of a document that ends in `.json`.
    ///
    /// # Errors
    /// [`TargetError`].
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        Self::parse_plain(text).and_then(|target| if target.is_plain() { Err(TargetError::Scheme) } else { Ok(target) })
    }

    /// Like [`parse`](Self::parse), but also accepts plain `http` URLs. They are requested only if the operator listed
    /// the origin.
    ///
    /// # Errors
    /// [`TargetError`].
    pub fn parse_plain(text: &str) -> Result<Self, TargetError> {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
        if text.is_empty() || text.len() > MAX_BYTES || !is_plain {
            return Err(TargetError::NotUrl);
        }
        let with_scheme = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
        let mut url = Url::parse(&with_scheme).map_err(|_| TargetError::NotUrl)?;
        if !matches!(url.scheme(), "https" | "http") {
            return Err(TargetError::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() || with_scheme.contains("://@") {
            return Err(TargetError::UserInfo);
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(TargetError::NotUrl);
        }
        url.set_fragment(None);
        let origin = url.join("/").map_err(|_| TargetError::NotUrl)?;
        let what = if url.path().ends_with(".json") {
            What::Document(url)
        } else if url.path().starts_with(SYSTEMS) {
            What::System(SystemName::of_url(&url)?)
        } else if url.path() == "/" && url.query().is_none() {
            What::Host
        } else {
            return Err(TargetError::Path);
        };
        Ok(Self { origin, what })
    }

    /// The same host, with the paths of one of its systems.
    ///
    /// # Errors
    /// [`TargetError::SystemOfDocument`] if the target is one document.
    pub fn with_system(self, name: SystemName) -> Result<Self, TargetError> {
        match self.what {
            What::Document(_) => Err(TargetError::SystemOfDocument),
            What::Host | What::System(_) => Ok(Self { what: What::System(name), ..self }),
        }
    }

    /// Whether requests go out over plain `http`, so that nothing authenticates the host.
    pub fn is_plain(&self) -> bool {
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
    pub(super) fn names_system_of(&self) -> Option<CardSystem> {
        matches!(self.what, What::System(_)).then(|| CardSystem::ALL.iter().copied().find(has_systems))?
    }

    /// Whether the target is a host without its agent systems, and one of `systems` has agent systems.
    pub(super) fn leaves_out_systems_of(&self, systems: &[CardSystem]) -> bool {
        matches!(self.what, What::Host) && systems.iter().any(has_systems)
    }

    /// The URLs to query, without duplicates, in order.
    pub(super) fn candidates(&self, only: Option<CardSystem>) -> Vec<CandidateUrl> {
        let card_systems =
            CardSystem::ALL.iter().copied().filter(|card_system| only.is_none_or(|only| only == *card_system));
        let mut candidates: Vec<CandidateUrl> = Vec::new();
        for (card_system, form) in
            card_systems.flat_map(|f| f.discovery_rules().paths.iter().map(move |form| (f, *form)))
        {
            let Some(url) = self.url(form) else { continue };
            let is_of_system = form.contains(NAME);
            match candidates.iter_mut().find(|candidate| candidate.url == url) {
                Some(candidate) if candidate.systems.contains(&card_system) => {}
                Some(candidate) => candidate.systems.push(card_system),
                None => {
                    let agent_system = SystemName::of_url(&url).ok().filter(|_| is_of_system);
                    candidates.push(CandidateUrl { url, systems: vec![card_system], is_of_system, agent_system });
                }
            }
        }
        if let (What::Document(url), true) = (&self.what, candidates.is_empty()) {
            candidates.push(CandidateUrl {
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
    fn url(&self, form: &str) -> Option<Url> {
        match &self.what {
            What::Document(url) => fits(form, url.path()).then(|| url.clone()),
            What::Host if form.contains(['{', '*']) => None,
            What::System(_) if form.contains('*') => None,
            What::Host => self.origin.join(form).ok(),
            What::System(name) => {
                let mut url = self.origin.join(&form.replace(NAME, &escaped(&name.name).to_string())).ok()?;
                if let (Some(namespace), true) = (&name.namespace, form.contains(NAME)) {
                    url.set_query(Some(&format!("{NAMESPACE}={}", escaped(namespace))));
                }
                Some(url)
            }
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Host => f.write_str(&self.origin()),
            What::System(name) => write!(f, "{}{SYSTEMS}{name}", self.origin()),
            What::Document(url) => f.write_str(&excerpt(&shown(url))),
        }
    }
}

impl SystemName {
    /// Parses `NAME` or `NAMESPACE/NAME`: any name that Orloj's resources can have.
    ///
    /// # Errors
    /// [`TargetError::SystemName`].
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        match text.split_once('/') {
            Some((namespace, name)) => Self::new(Some(namespace), name),
            None => Self::new(None, text),
        }
    }

    fn new(namespace: Option<&str>, name: &str) -> Result<Self, TargetError> {
        if !is_name(name) || !namespace.is_none_or(is_name) {
            return Err(TargetError::SystemName);
        }
        Ok(Self { namespace: namespace.map(str::to_owned), name: name.to_owned() })
    }

    /// The agent system of a URL: of the system itself, of its endpoint or of its card.
    fn of_url(url: &Url) -> Result<Self, TargetError> {
        let below = url.path().strip_prefix(SYSTEMS).ok_or(TargetError::Path)?;
        let (segment, rest) = below.split_once('/').unwrap_or((below, ""));
        if !["", "a2a", ".well-known/agent-card.json"].contains(&rest) {
            return Err(TargetError::Path);
        }
        let mut parameters = url.query_pairs();
        let namespace = match (parameters.next(), parameters.next()) {
            (None, _) => None,
            (Some((key, namespace)), None) if key == NAMESPACE => Some(namespace),
            _ => return Err(TargetError::Path),
        };
        let name = percent_decode_str(segment).decode_utf8().map_err(|_| TargetError::SystemName)?;
        Self::new(namespace.as_deref(), &name)
    }

    /// Whether a card claims to be this system's, by its name and by the namespace in its endpoint. Orloj's server
    /// omits the default namespace.
    pub(super) fn is_of(&self, card: &Card) -> bool {
        let endpoint = card.text("/url").and_then(|url| Url::parse(url).ok());
        let stated = endpoint.as_ref().and_then(|url| url.query_pairs().find(|(key, _)| key == NAMESPACE));
        let stated = stated.as_ref().map_or(DEFAULT_NAMESPACE, |(_, namespace)| namespace);
        let namespace = self.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
        card.text("/name") == Some(&self.name) && (endpoint.is_none() || stated == namespace)
    }
}

fn has_systems(card_system: &CardSystem) -> bool {
    card_system.discovery_rules().paths.iter().any(|form| form.contains(NAME))
}

/// Formats the name as it appears at the end of a URL.
impl fmt::Display for SystemName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", escaped(&self.name))?;
        self.namespace.as_ref().map_or(Ok(()), |namespace| write!(f, "?{NAMESPACE}={}", escaped(namespace)))
    }
}

impl std::str::FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        Self::parse(text)
    }
}

impl std::str::FromStr for SystemName {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(text: &str, only: Option<CardSystem>) -> Vec<String> {
        let target = Target::parse(text).unwrap();
        target.candidates(only).into_iter().map(|candidate| candidate.url.to_string()).collect()
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
            assert_eq!(Target::parse(text), Err(TargetError::Scheme));
            let target = Target::parse_plain(text).unwrap();
            assert!(target.is_plain() && target.candidates(None).iter().all(|asked| asked.url.scheme() == "http"));
            assert_eq!(target.host_port(), host_port);
        }
        assert!(!Target::parse_plain("a.example").unwrap().is_plain());
        assert_eq!(Target::parse_plain("ftp://a.example"), Err(TargetError::Scheme));
    }

    #[test]
    fn a_system_that_is_named_has_a_path_of_its_own() {
        let own = "https://a.example/v1/agent-systems/b/.well-known/agent-card.json";
        for text in ["https://a.example/v1/agent-systems/b", "https://a.example/v1/agent-systems/b/a2a"] {
            let found = places(text, None);
            assert_eq!((found.len(), found[3].as_str()), (4, own), "{text}");
        }
        let named = Target::parse("a.example").unwrap().with_system("b".parse().unwrap()).unwrap();
        assert_eq!(named.candidates(Some(CardSystem::Orloj)).len(), 2);
        assert_eq!(named.names_system_of(), Some(CardSystem::Orloj));
        for (typed, asked) in [
            ("fin/b", "b/.well-known/agent-card.json?namespace=fin"),
            ("ä+c", "%C3%A4%2Bc/.well-known/agent-card.json"),
        ] {
            let named = Target::parse("a.example").unwrap().with_system(typed.parse().unwrap()).unwrap();
            let asked = format!("https://a.example/v1/agent-systems/{asked}");
            assert_eq!(named.candidates(Some(CardSystem::Orloj))[1].url.as_str(), asked);
            assert_eq!(
                named.candidates(Some(CardSystem::Orloj))[0].url.query(),
                None,
                "the root card has no namespace"
            );
            assert_eq!(Target::parse(&named.to_string()), Ok(named), "what is shown can be typed");
            assert_eq!(places(&asked, None), [asked]);
        }
        let document = Target::parse(own).unwrap();
        assert_eq!(places(own, None), [own]);
        assert_eq!(document.with_system("b".parse().unwrap()), Err(TargetError::SystemOfDocument));
    }

    #[test]
    fn one_document_is_one_request() {
        let candidate = Target::parse("https://a.example/cards/b.json?c=1").unwrap().candidates(None).remove(0);
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
            ("", TargetError::NotUrl),
            ("https://", TargetError::NotUrl),
            ("https://a.example\\b", TargetError::NotUrl),
            ("https://a.exa\tmple", TargetError::NotUrl),
            ("http://a.example", TargetError::Scheme),
            ("file:///etc/a.json", TargetError::Scheme),
            ("https://u:p@a.example", TargetError::UserInfo),
            ("u@a.example", TargetError::UserInfo),
            ("https://@a.example", TargetError::UserInfo),
            ("https://a.example/x", TargetError::Path),
            ("https://a.example/?x=1", TargetError::Path),
            ("https://a.example/v1/agent-systems/", TargetError::SystemName),
            ("https://a.example/v1/agent-systems/a/b", TargetError::Path),
            ("https://a.example/v1/agent-systems/a?x=1", TargetError::Path),
            ("https://a.example/v1/agent-systems/a?namespace=b&x=1", TargetError::Path),
            ("https://a.example/v1/agent-systems/a?namespace=", TargetError::SystemName),
            ("https://a.example/v1/agent-systems/%ff", TargetError::SystemName),
            ("https://a.example/v1/agent-systems/a%2fb/a2a", TargetError::SystemName),
        ] {
            assert_eq!(Target::parse(text), Err(error), "{text}");
        }
        for name in ["", "..", "a/b/c", "/b", "a/", "a b", "a\u{202e}b"] {
            assert_eq!(SystemName::parse(name), Err(TargetError::SystemName), "{name}");
        }
    }
}
