//! Which URL an entry stands for, and whether the URL that answered is that one.

use std::fmt;

use clresolve_core::payment::EndpointKey;
use clresolve_core::reason::{Code, Reason};
use clresolve_verdict::published::{Published, PublishedRecord};
use clresolve_verdict::verdict::Identity;
use serde::{Serialize, Serializer};
use url::{Host, Url};

/// The URL behind an entry, and who says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Route {
    /// The URL. Its origin and path count; a query does not.
    #[serde(serialize_with = "as_text")]
    pub url: Url,
    /// Who says so.
    pub source: RouteSource,
}

/// Who says which URL an entry stands for, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteSource {
    /// The configuration.
    Configured,
    /// A record of the name.
    Record(EndpointKey),
    /// The card, whose entry is itself an https URL.
    Card,
}

impl fmt::Display for RouteSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configured => f.write_str("configured"),
            Self::Record(key) => key.fmt(f),
            Self::Card => f.write_str("card"),
        }
    }
}

impl Serialize for RouteSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Route {
    /// The route that the configuration names. Plain http is for programs on this machine alone.
    pub fn configured(url: &str) -> Option<Self> {
        let url = Url::parse(url).ok()?;
        let permitted = is_https(&url) || (url.scheme() == "http" && is_loopback(&url));
        permitted.then_some(Self { url, source: RouteSource::Configured })
    }

    /// The route in the record under `key`, for an entry whose segments behind the name are `verb` and `version`.
    pub fn of_record(key: EndpointKey, value: &str, verb: &str, version: &str) -> Option<Self> {
        let mut url = Url::parse(value.trim()).ok().filter(is_https)?;
        if key == EndpointKey::Runtime {
            url.set_query(None);
            url.path_segments_mut().ok()?.pop_if_empty().extend([verb, version]);
        }
        Some(Self { url, source: RouteSource::Record(key) })
    }

    /// The URL that the entry of an agent stands for by what its name publishes, for its first verb where none is named.
    ///
    /// # Errors
    /// `invoke-no-route`, or `record-pending` where a record that would say so is about to change.
    pub fn published(
        agent: Option<&Identity>,
        published: Option<&Published>,
        verb: Option<&str>,
    ) -> Result<Self, Box<Reason>> {
        let none = || Box::new(Reason::new(Code::InvokeNoRoute));
        let agent = agent.ok_or_else(none)?;
        let verb = verb.or_else(|| agent.verbs.first().map(String::as_str)).unwrap_or_default();
        if let (Some(published), Some(version)) = (published, version_segment(agent)) {
            for key in EndpointKey::ALL {
                match published.endpoint(key) {
                    PublishedRecord::Settled(value) => {
                        return Self::of_record(key, &value, verb, &version)
                            .ok_or_else(|| Box::new(unusable(key).observed(value)));
                    }
                    PublishedRecord::Absent | PublishedRecord::NotAsked => {}
                    PublishedRecord::Pending { .. } => {
                        return Err(Box::new(Reason::new(Code::RecordPending).at(key.as_str())));
                    }
                    PublishedRecord::Malformed(_) => return Err(Box::new(unusable(key))),
                    PublishedRecord::Failed(cause) => {
                        return Err(Box::new(unusable(key).observed(cause.to_string())));
                    }
                }
            }
        }
        agent.entry.as_deref().and_then(Self::of_card).ok_or_else(none)
    }

    /// The route of a card whose entry is an https URL.
    pub fn of_card(entry: &str) -> Option<Self> {
        let url = Url::parse(entry).ok().filter(is_https)?;
        Some(Self { url, source: RouteSource::Card })
    }

    /// What is wrong where `answered` is the URL that answered.
    pub fn objection(&self, answered: &str) -> Option<Reason> {
        let same = |other: &Url| other.origin() == self.url.origin() && other.path() == self.url.path();
        let is_route = Url::parse(answered).is_ok_and(|url| {
            url.username().is_empty() && url.password().is_none() && is_spelt_as_sent(&url, answered) && same(&url)
        });
        if is_route || clresolve_core::mutant!("any-url-answers") {
            return None;
        }
        Some(Reason::new(Code::EndpointMismatch).expected(self.url.as_str()).observed(answered))
    }
}

/// What is wrong with the resource that terms name, where `answered` is the URL that answered.
pub fn resource_objection(resource: Option<&str>, answered: &str, source: Option<RouteSource>) -> Option<Reason> {
    let resource = resource?;
    if resource == answered {
        return None;
    }
    let differs = |code| Some(Reason::new(code).expected(answered).observed(resource));
    let (Ok(named), Ok(url)) = (Url::parse(resource), Url::parse(answered)) else {
        return differs(Code::ResourceMismatch);
    };
    // MCP names tools, not hosts.
    if named.scheme() == "mcp" && source == Some(RouteSource::Record(EndpointKey::Mcp)) {
        return differs(Code::ResourceDiffers);
    }
    if named.host_str() != url.host_str() && !clresolve_core::mutant!("resource-of-any-host") {
        return differs(Code::ResourceMismatch);
    }
    if named == url { None } else { differs(Code::ResourceDiffers) }
}

/// Whether a URL is spelt as every client sends it: no dot segments, no backslashes, no white space that one client drops,
/// nothing that one client resolves and another does not.
fn is_spelt_as_sent(url: &Url, text: &str) -> bool {
    if text.bytes().any(|byte| byte == b' ' || byte.is_ascii_control())
        && !clresolve_core::mutant!("white-space-is-dropped")
    {
        return false;
    }
    let behind_scheme = text.split_once("://").map_or("", |(_, rest)| rest);
    let end = behind_scheme.find(['?', '#']).unwrap_or(behind_scheme.len());
    let path = behind_scheme[..end].find('/').map_or("/", |start| &behind_scheme[start..end]);
    path == url.path()
}

fn unusable(key: EndpointKey) -> Reason {
    Reason::new(Code::InvokeNoRoute).message("The record that names the route cannot be used.").at(key.as_str())
}

/// The version as it stands behind the verb: that of the x402 entry, else that of the card.
fn version_segment(agent: &Identity) -> Option<String> {
    let of_entry = agent.entry.as_deref().and_then(|entry| entry.strip_prefix("x402://")?.split('/').nth(2));
    of_entry.map(str::to_owned).or_else(|| agent.version.as_ref().map(|version| format!("v{version}")))
}

fn is_https(url: &Url) -> bool {
    url.scheme() == "https" && url.has_host() && url.username().is_empty() && url.password().is_none()
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

fn as_text<S: Serializer>(url: &Url, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(url.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTE: &str = "https://api.sandbox.example/summarize/v1";

    fn code(reason: Option<Reason>) -> Option<&'static str> {
        reason.map(|reason| reason.code.slug())
    }

    #[test]
    fn a_runtime_is_a_base_and_the_others_are_the_url_itself() {
        let of = |key, value| Route::of_record(key, value, "summarize", "v1").map(|route| route.url.to_string());
        for base in ["https://api.sandbox.example", "https://api.sandbox.example/", " https://api.sandbox.example/?x=1"]
        {
            assert_eq!(of(EndpointKey::Runtime, base).as_deref(), Some(ROUTE), "{base}");
        }
        assert_eq!(
            of(EndpointKey::Runtime, "https://a.example/b/").as_deref(),
            Some("https://a.example/b/summarize/v1")
        );
        assert_eq!(of(EndpointKey::Web, "https://a.example/b").as_deref(), Some("https://a.example/b"));
        for bad in ["http://a.example", "https://u@a.example", "a.example", "", "x402://a.eth/b/v1", "https://"] {
            assert_eq!(of(EndpointKey::Web, bad), None, "{bad}");
        }
    }

    #[test]
    fn plain_http_is_for_this_machine_alone() {
        for url in ["http://127.0.0.1:1/a", "http://localhost/a", "http://[::1]/a", ROUTE] {
            assert!(Route::configured(url).is_some(), "{url}");
        }
        for url in ["http://a.example/", "ftp://127.0.0.1/", "x"] {
            assert!(Route::configured(url).is_none(), "{url}");
        }
    }

    #[test]
    fn origin_and_path_of_what_answered_are_those_of_the_route() {
        let route = Route::configured(ROUTE).unwrap();
        for same in
            [ROUTE, "https://api.sandbox.example:443/summarize/v1?a=b", "https://API.sandbox.example/summarize/v1#f"]
        {
            assert_eq!(code(route.objection(same)), None, "{same}");
        }
        for other in [
            "https://evil.example/summarize/v1",
            "http://api.sandbox.example/summarize/v1",
            "https://api.sandbox.example:8443/summarize/v1",
            "https://api.sandbox.example/summarize/v1/",
            "https://api.sandbox.example/summarize/v2",
            "https://u@api.sandbox.example/summarize/v1",
            "https://:p@api.sandbox.example/summarize/v1",
            "https://api.sandbox.example/thief/../summarize/v1",
            "https://api.sandbox.example/thief/%2e%2e/summarize/v1",
            "https://api.sandbox.example\\summarize/v1",
            "https://api.sandbox.example/summarize\t/v1",
            " https://api.sandbox.example/summarize/v1",
            "https://api.sandbox.example/summarize/v1 ",
            "https://api.sand\nbox.example/summarize/v1",
            "https://api.sandbox.example/summarize/v1?a=\u{1}",
            "/summarize/v1",
            "",
        ] {
            assert_eq!(code(route.objection(other)), Some("endpoint-mismatch"), "{other}");
        }
    }

    #[test]
    fn a_resource_on_another_host_fails_and_any_other_difference_is_a_warning() {
        let said = |resource: &str| code(resource_objection(Some(resource), ROUTE, None));
        assert_eq!(said(ROUTE), None);
        assert_eq!(code(resource_objection(None, ROUTE, None)), None);
        for other in [
            "https://evil.example/summarize/v1",
            "https://\u{430}pi.sandbox.example/summarize/v1",
            "/a",
            "mcp://tool/a",
        ] {
            assert_eq!(said(other), Some("resource-mismatch"), "{other}");
        }
        for near in [
            "http://api.sandbox.example/summarize/v1",
            "https://api.sandbox.example:8443/summarize/v1",
            "https://api.sandbox.example/",
            "https://api.sandbox.example/summarize/v1?x=1",
        ] {
            assert_eq!(said(near), Some("resource-differs"), "{near}");
        }
        let mcp = resource_objection(Some("mcp://tool/a"), ROUTE, Some(RouteSource::Record(EndpointKey::Mcp)));
        assert_eq!(code(mcp), Some("resource-differs"));
    }
}
