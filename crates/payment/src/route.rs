//! Determines the URL behind an entry, and compares it with the URL that answered.

use std::fmt;

use clresolve_core::payment::EndpointRecordKey;
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_core::uri;
use clresolve_verdict::published::{PaymentRecordStatus, PublishedPaymentRecords};
use clresolve_verdict::verdict::AgentIdentity;
use serde::{Serialize, Serializer};
use url::{Host, Url};

/// The URL behind an entry, and its source. The URL is https, or refers to a program on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AgentRoute {
    #[serde(serialize_with = "serialize_url")]
    url: Url,
    source: RouteSource,
}

/// The source of a route, by descending precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteSource {
    /// The configuration.
    Configured,
    /// A record of the name.
    Record(EndpointRecordKey),
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

impl AgentRoute {
    /// The URL. Only its origin and path are compared, not its query.
    pub const fn url(&self) -> &Url {
        &self.url
    }

    /// The source of the route.
    pub const fn source(&self) -> RouteSource {
        self.source
    }

    /// The route from the configuration. Plain http is accepted only for programs on this machine.
    pub fn from_configuration(url: &str) -> Option<Self> {
        let url = Url::parse(url).ok()?;
        let permitted = is_https(&url) || (url.scheme() == "http" && is_loopback(&url));
        permitted.then_some(Self { url, source: RouteSource::Configured })
    }

    /// The route in the record under `key`. `verb` and `version` are the path segments after the name in the entry.
    pub fn from_record(key: EndpointRecordKey, value: &str, verb: &str, version: &str) -> Option<Self> {
        let mut url = Url::parse(value.trim()).ok().filter(is_https)?;
        if key == EndpointRecordKey::Runtime {
            url.set_query(None);
            url.path_segments_mut().ok()?.pop_if_empty().extend([verb, version]);
        }
        Some(Self { url, source: RouteSource::Record(key) })
    }

    /// The URL that the name publishes for the agent's entry. Uses the agent's first verb if `verb` is `None`.
    ///
    /// # Errors
    /// `invoke-no-route`, or `record-pending` if a decisive record is about to change.
    pub fn from_published(
        agent: Option<&AgentIdentity>,
        published: Option<&PublishedPaymentRecords>,
        verb: Option<&str>,
    ) -> Result<Self, Box<Reason>> {
        let none = || Box::new(Reason::new(ReasonCode::InvokeNoRoute));
        let agent = agent.ok_or_else(none)?;
        let verb = verb.or_else(|| agent.verbs.first().map(String::as_str)).unwrap_or_default();
        if let (Some(published), Some(version)) = (published, version_segment(agent)) {
            let mut of_keys = EndpointRecordKey::ROUTES.into_iter();
            if let Some(route) = of_keys.find_map(|key| Self::from_endpoint_record(published, key, verb, &version)) {
                return route;
            }
        }
        agent.entry.as_deref().and_then(Self::from_card_entry).ok_or_else(none)
    }

    /// Where the name's tools are called over MCP: its record `agent-endpoint[mcp]`. `None` if the record is not set.
    pub fn from_tools_record(published: &PublishedPaymentRecords) -> Option<Result<Self, Box<Reason>>> {
        Self::from_endpoint_record(published, EndpointRecordKey::Mcp, "", "")
    }

    /// The route in the record under `key`, or why it is unknown. `None` if the record is not set.
    fn from_endpoint_record(
        published: &PublishedPaymentRecords,
        key: EndpointRecordKey,
        verb: &str,
        version: &str,
    ) -> Option<Result<Self, Box<Reason>>> {
        let reason = match published.payment_endpoint_status(key) {
            PaymentRecordStatus::Absent | PaymentRecordStatus::NotAsked => return None,
            PaymentRecordStatus::Settled(value) => match Self::from_record(key, &value, verb, version) {
                Some(route) => return Some(Ok(route)),
                None => unusable_record_reason(key).observed(value),
            },
            PaymentRecordStatus::Pending { .. } => Reason::new(ReasonCode::RecordPending).at_place(key.as_str()),
            PaymentRecordStatus::Malformed(_) => unusable_record_reason(key),
            PaymentRecordStatus::Failed(cause) => unusable_record_reason(key).observed(cause.to_string()),
        };
        Some(Err(Box::new(reason)))
    }

    /// The route of a card whose entry is an https URL.
    pub fn from_card_entry(entry: &str) -> Option<Self> {
        let url = Url::parse(entry).ok().filter(is_https)?;
        Some(Self { url, source: RouteSource::Card })
    }

    /// The objection to `answered` as the URL that answered.
    pub fn url_objection(&self, answered: &str) -> Option<Reason> {
        let same = |other: &Url| other.origin() == self.url.origin() && other.path() == self.url.path();
        let is_route = Url::parse(answered).is_ok_and(|url| {
            url.username().is_empty() && url.password().is_none() && is_canonical_url_text(&url, answered) && same(&url)
        });
        if is_route || clresolve_core::mutant!("any-url-answers") {
            return None;
        }
        Some(Reason::new(ReasonCode::EndpointMismatch).expected(self.url.as_str()).observed(answered))
    }

    /// Whether a signed resource refers to this route: either by the URL that answers, or by the `http:` URL that a
    /// seller behind a TLS-terminating proxy writes.
    pub fn is_url_of_resource(&self, resource: &str) -> bool {
        let over_tls = https_url_behind_proxy(resource);
        self.url_objection(resource).is_none() || over_tls.is_some_and(|url| self.url_objection(&url).is_none())
    }
}

/// The public `https:` URL of a seller that may write this `http:` URL behind a TLS-terminating proxy.
pub(crate) fn https_url_behind_proxy(resource: &str) -> Option<String> {
    Some(format!("https://{}", uri::strip_scheme(resource, "http")?))
}

/// Whether a resource is an MCP tool, which has a name rather than a host. The specification writes `mcp://tool/NAME`;
/// Cloudflare's `agents` writes `x402://NAME`.
pub(crate) fn is_tool_resource(resource: &str) -> bool {
    Url::parse(resource).is_ok_and(|url| is_tool_url(&url))
}

fn is_tool_url(url: &Url) -> bool {
    // A host with a dot is an ENS or DNS name.
    let is_word = |host: &str| !host.trim_end_matches('.').contains('.');
    let is_bare_name =
        || url.host_str().is_some_and(is_word) && matches!(url.path(), "" | "/") && url.query().is_none();
    url.scheme() == "mcp" || (url.scheme() == "x402" && is_bare_name())
}

/// The objection to the resource in the terms. `answered` is the URL that answered, and `tools` is where the name's
/// tools are called.
pub fn resource_objection(
    resource: Option<&str>,
    answered: &str,
    tools: Option<Result<&AgentRoute, &Reason>>,
) -> Option<Reason> {
    let resource = resource?;
    if resource == answered {
        return None;
    }
    let differs = |code| Some(Reason::new(code).expected(answered).observed(resource));
    let (Ok(named), Ok(url)) = (Url::parse(resource), Url::parse(answered)) else {
        return differs(ReasonCode::ResourceMismatch);
    };
    if is_tool_url(&named) {
        match tools {
            Some(Ok(route))
                if route.url_objection(answered).is_none() || clresolve_core::mutant!("tools-are-sold-anywhere") =>
            {
                return differs(ReasonCode::ResourceDiffers);
            }
            Some(Err(unknown)) => return Some(unknown.clone()),
            Some(Ok(_)) | None => {}
        }
    }
    if named.host_str() != url.host_str() && !clresolve_core::mutant!("resource-of-any-host") {
        return differs(ReasonCode::ResourceMismatch);
    }
    if named == url { None } else { differs(ReasonCode::ResourceDiffers) }
}

/// Whether a URL is written exactly as every client sends it: no dot segments, backslashes, white space, or anything
/// else that only some clients normalise.
fn is_canonical_url_text(url: &Url, text: &str) -> bool {
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

/// As [`is_canonical_url_text`], of a URL that is not parsed yet.
pub(crate) fn is_canonical_url(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| is_canonical_url_text(&url, text))
}

fn unusable_record_reason(key: EndpointRecordKey) -> Reason {
    Reason::new(ReasonCode::InvokeNoRoute).message("The record with the route cannot be used.").at_place(key.as_str())
}

/// The version segment after the verb: that of the x402 entry, else that of the card.
fn version_segment(agent: &AgentIdentity) -> Option<String> {
    let of_entry = agent.entry.as_deref().and_then(|entry| entry.strip_prefix("x402://")?.split('/').nth(2));
    of_entry.map(str::to_owned).or_else(|| agent.version.as_ref().map(|version| format!("v{version}")))
}

fn is_https(url: &Url) -> bool {
    url.scheme() == "https" && url.has_host() && url.username().is_empty() && url.password().is_none()
}

/// Whether the URL refers to a program on this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

fn serialize_url<S: Serializer>(url: &Url, serializer: S) -> Result<S::Ok, S::Error> {
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
        let of = |key, value| AgentRoute::from_record(key, value, "summarize", "v1").map(|route| route.url.to_string());
        for base in ["https://api.sandbox.example", "https://api.sandbox.example/", " https://api.sandbox.example/?x=1"]
        {
            assert_eq!(of(EndpointRecordKey::Runtime, base).as_deref(), Some(ROUTE), "{base}");
        }
        assert_eq!(
            of(EndpointRecordKey::Runtime, "https://a.example/b/").as_deref(),
            Some("https://a.example/b/summarize/v1")
        );
        assert_eq!(of(EndpointRecordKey::Web, "https://a.example/b").as_deref(), Some("https://a.example/b"));
        for bad in ["http://a.example", "https://u@a.example", "a.example", "", "x402://a.eth/b/v1", "https://"] {
            assert_eq!(of(EndpointRecordKey::Web, bad), None, "{bad}");
        }
    }

    #[test]
    fn plain_http_is_for_this_machine_alone() {
        for url in ["http://127.0.0.1:1/a", "http://localhost/a", "http://[::1]/a", ROUTE] {
            assert!(AgentRoute::from_configuration(url).is_some(), "{url}");
        }
        for url in ["http://a.example/", "ftp://127.0.0.1/", "x"] {
            assert!(AgentRoute::from_configuration(url).is_none(), "{url}");
        }
    }

    #[test]
    fn origin_and_path_of_what_answered_are_those_of_the_route() {
        let route = AgentRoute::from_configuration(ROUTE).unwrap();
        for same in
            [ROUTE, "https://api.sandbox.example:443/summarize/v1?a=b", "https://API.sandbox.example/summarize/v1#f"]
        {
            assert_eq!(code(route.url_objection(same)), None, "{same}");
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
            assert_eq!(code(route.url_objection(other)), Some("endpoint-mismatch"), "{other}");
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
    }

    #[test]
    fn a_tool_is_sold_where_the_name_says_that_its_tools_are_called() {
        let tools = AgentRoute::from_record(EndpointRecordKey::Mcp, ROUTE, "", "").unwrap();
        let pending = Reason::new(ReasonCode::RecordPending);
        let said = |answered, tools| code(resource_objection(Some("mcp://tool/a"), answered, tools));
        assert_eq!(said(ROUTE, Some(Ok(&tools))), Some("resource-differs"));
        assert_eq!(said("https://api.sandbox.example/classify/v1", Some(Ok(&tools))), Some("resource-mismatch"));
        assert_eq!(said(ROUTE, Some(Err(&pending))), Some("record-pending"));
        assert_eq!(said(ROUTE, None), Some("resource-mismatch"));
        for (tool, is_tool) in [
            ("x402://a", true),
            ("x402://get_weather", true),
            ("x402://a/", true),
            ("x402://a.eth/summarize/v1", false),
            ("x402://a.eth", false),
            ("x402://A.eth/", false),
            ("x402://a.eth.", false),
            ("x402://evil.example", false),
            ("x402://a?b=c", false),
            ("x402:a", false),
        ] {
            let expected = if is_tool { "resource-differs" } else { "resource-mismatch" };
            assert_eq!(code(resource_objection(Some(tool), ROUTE, Some(Ok(&tools)))), Some(expected), "{tool}");
        }
        let of_a_host = resource_objection(Some("https://evil.example/"), ROUTE, Some(Ok(&tools)));
        assert_eq!(code(of_a_host), Some("resource-mismatch"));
    }
}
