//! Which web pages may read responses (CORS): those of the configured origins, and none by default. Requests from other
//! pages are attributed to a separate [client](ClientIdentity).

use std::convert::Infallible;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{
    ACCEPT, ACCESS_CONTROL_REQUEST_METHOD, AGE, CACHE_CONTROL, CONTENT_TYPE, ETAG, HOST, IF_NONE_MATCH, ORIGIN,
    RETRY_AFTER,
};
use axum::http::uri::Authority;
use axum::http::{HeaderName, HeaderValue, Method, Request};
use axum::response::Response;
use clresolve_resolver::config::{ANY_ORIGIN, CorsConfig, McpConfig};
use futures_util::FutureExt as _;
use tower::{Layer as _, Service as _, service_fn};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};
use url::Url;

use super::api_kind::RequestedApi;
use super::caching::CACHE_STATUS;
use super::cards::REPR_DIGEST;
use super::client_limits::ClientIdentity;
use super::events::LAST_EVENT_ID;

const REMEMBERED: Duration = Duration::from_secs(600);

/// Headers that pages may send and read, in addition to the CORS-safelisted ones.
const SENT: [HeaderName; 5] = [ACCEPT, CACHE_CONTROL, CONTENT_TYPE, IF_NONE_MATCH, LAST_EVENT_ID];
const READ: [HeaderName; 5] = [AGE, CACHE_STATUS, ETAG, REPR_DIGEST, RETRY_AFTER];

/// How a browser describes the page that sends a request (Fetch Metadata): `same-origin`, `same-site`, `cross-site`, or
/// `none` for a request that no page sends.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

const TOOLS: &str = "/mcp";

pub(super) struct CrossOriginPolicy {
    report: Option<AllowedOrigins>,
    tools: Option<AllowedOrigins>,
    /// Configured host names, in lower case: those of permitted pages and of the MCP endpoint.
    hosts: Box<[String]>,
}

/// The permissions of some origins.
#[derive(Clone)]
struct AllowedOrigins {
    /// The origins as browsers serialize them, or [`ANY_ORIGIN`].
    origins: Arc<[String]>,
    cors: CorsLayer,
}

impl AllowedOrigins {
    fn includes_origin(&self, origin: &HeaderValue) -> bool {
        self.includes_all_origins() || self.origins.iter().any(|permitted| permitted.as_bytes() == origin.as_bytes())
    }

    fn includes_all_origins(&self) -> bool {
        self.origins.iter().any(|permitted| permitted == ANY_ORIGIN)
    }
}

impl CrossOriginPolicy {
    pub(super) fn new(report: &CorsConfig, tools: &McpConfig) -> Self {
        let pages = report.origins.iter().chain(&tools.origins).filter_map(|origin| Url::parse(origin).ok());
        let pages = pages.filter_map(|page| page.host_str().map(str::to_owned));
        let tools_hosts = tools.hosts.iter().filter_map(|host| host.parse::<Authority>().ok());
        let hosts = pages.chain(tools_hosts.map(|host| host.host().to_ascii_lowercase())).collect();
        Self { report: report_allowed_origins(report), tools: mcp_allowed_origins(tools), hosts }
    }

    /// Calls `answer` and lets permitted pages read the response, including an error. Preflights are answered here,
    /// regardless of load, since the response depends only on the configuration. The gate is excluded because a
    /// preflight response is a 200.
    pub(super) async fn answer_with_cors<F>(
        &self,
        api: RequestedApi,
        request: Request<Body>,
        answer: impl FnOnce(Request<Body>) -> F,
    ) -> Response
    where
        F: Future<Output = Response>,
    {
        let permission = if is_gate_api(api) { None } else { self.allowed_origins_for_path(request.uri().path()) };
        let Some(AllowedOrigins { cors, .. }) = permission.filter(|_| !is_plain_options(&request)) else {
            return answer(request).await;
        };
        let mut answer = Some(answer);
        let once = |request| {
            let answer = answer.take().expect("a request is answered once");
            answer(request).map(Ok::<_, Infallible>)
        };
        cors.layer(service_fn(once)).call(request).await.unwrap_or_else(|never| match never {})
    }

    /// The client that a request is attributed to: `connected`, unless a browser may have sent the request for a page
    /// of another site.
    pub(super) fn attributed_client(
        &self,
        api: RequestedApi,
        connected: ClientIdentity,
        request: &Request<Body>,
    ) -> ClientIdentity {
        match (self.is_cross_site_request(request), self.may_be_dns_rebinding(connected, request)) {
            (false, false) => connected,
            _ if !is_gate_api(api) => ClientIdentity::Pages,
            (true, _) => ClientIdentity::PagesAtGate,
            (false, true) => ClientIdentity::OtherHostAtGate,
        }
    }

    /// Whether the request was sent by a page that is neither the daemon's own nor of a permitted origin. If the
    /// browser sends `Origin`, that decides. Otherwise `Sec-Fetch-Site` does.
    fn is_cross_site_request(&self, request: &Request<Body>) -> bool {
        let headers = request.headers();
        let permission = self.allowed_origins_for_path(request.uri().path());
        let is_permitted =
            |origin: &HeaderValue| permission.is_some_and(|permission| permission.includes_origin(origin));
        let origins = || headers.get_all(ORIGIN).iter();
        if headers.contains_key(ORIGIN) && origins().all(is_permitted) {
            return false;
        }
        let is_harmless = |site: &HeaderValue| matches!(site.as_bytes(), b"same-origin" | b"none");
        let is_marked = !headers.get_all(SEC_FETCH_SITE).iter().all(is_harmless);
        is_marked || !origins().all(|origin| is_permitted(origin) || is_same_origin_as_host(origin, request))
    }

    /// Whether a page may have pointed its own host name at this machine (DNS rebinding). The browser treats such a
    /// request as same-origin: it sends no `Origin`, and over plain HTTP no `Sec-Fetch-Site`. A public host name
    /// contains a dot.
    fn may_be_dns_rebinding(&self, connected: ClientIdentity, request: &Request<Body>) -> bool {
        let is_local = connected == ClientIdentity::from(IpAddr::from(Ipv4Addr::LOCALHOST));
        let is_of_browser = request.headers().contains_key(SEC_FETCH_SITE);
        let permits_all =
            self.allowed_origins_for_path(request.uri().path()).is_some_and(AllowedOrigins::includes_all_origins);
        if !is_local || is_of_browser || permits_all {
            return false;
        }
        let host =
            request_host(request).filter(|host| host.contains('.')).and_then(|host| host.parse::<Authority>().ok());
        let Some(host) = host else { return false };
        let host = host.host().trim_end_matches('.').to_ascii_lowercase();
        let is_address = host.starts_with('[') || host.parse::<IpAddr>().is_ok();
        host.contains('.') && !is_address && !host.ends_with(".localhost") && !self.hosts.contains(&host)
    }

    fn allowed_origins_for_path(&self, path: &str) -> Option<&AllowedOrigins> {
        if path.strip_suffix('/').unwrap_or(path) == TOOLS { self.tools.as_ref() } else { self.report.as_ref() }
    }
}

const fn is_gate_api(api: RequestedApi) -> bool {
    matches!(api, RequestedApi::Gate | RequestedApi::DisguisedGate)
}

/// The host and port that the request addresses.
fn request_host(request: &Request<Body>) -> Option<&str> {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    request.uri().authority().map(|authority| authority.as_str()).or(host)
}

/// Whether the origin is the host that the request addresses.
fn is_same_origin_as_host(origin: &HeaderValue, request: &Request<Body>) -> bool {
    let (Some(host), Some((scheme, own))) =
        (request_host(request), origin.to_str().ok().and_then(|origin| origin.split_once("://")))
    else {
        return false;
    };
    // Browsers omit the scheme's default port, but a proxy may include it.
    let port = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => return false,
    };
    host.strip_suffix(port).unwrap_or(host).eq_ignore_ascii_case(own)
}

/// Whether this is an `OPTIONS` request but no preflight. The CORS library would answer it too, and without `Allow`.
fn is_plain_options(request: &Request<Body>) -> bool {
    request.method() == Method::OPTIONS && !request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Pages of the configured origins may use the report API.
fn report_allowed_origins(config: &CorsConfig) -> Option<AllowedOrigins> {
    if config.origins.is_empty() {
        return None;
    }
    let origins = if config.origins.iter().any(|origin| origin == ANY_ORIGIN) {
        AllowOrigin::any()
    } else {
        cors_allow_origin(&config.origins)
    };
    let cors = CorsLayer::new()
        .allow_origin(origins)
        .allow_methods([Method::GET, Method::POST])
        .allow_headers(SENT)
        .expose_headers(READ)
        .max_age(REMEMBERED);
    Some(AllowedOrigins { origins: config.origins.as_slice().into(), cors })
}

/// Pages of the origins in `[mcp]` may use the MCP endpoint. Its clients send protocol headers, which are checked
/// there.
fn mcp_allowed_origins(config: &McpConfig) -> Option<AllowedOrigins> {
    if config.origins.is_empty() {
        return None;
    }
    // As browsers serialize them: without the default port.
    let written = |origin: &String| Some(Url::parse(origin).ok()?.origin().ascii_serialization());
    let origins: Arc<[String]> = config.origins.iter().filter_map(written).collect();
    let cors = CorsLayer::new()
        .allow_origin(cors_allow_origin(&origins))
        .allow_methods([Method::POST])
        .allow_headers(AllowHeaders::mirror_request())
        .max_age(REMEMBERED);
    Some(AllowedOrigins { origins, cors })
}

fn cors_allow_origin(origins: &[String]) -> AllowOrigin {
    AllowOrigin::list(origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONNECTED: ClientIdentity = ClientIdentity::Address(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST));

    /// The client of a request for `127.0.0.1:8402` with these headers. The daemon permits one page for the report API
    /// and one for the MCP endpoint.
    fn client_of(path: &str, headers: &[(&str, &str)]) -> ClientIdentity {
        let mut config = clresolve_resolver::config::Config::default();
        config.cors.origins = vec!["https://app.example".to_owned()];
        config.mcp.origins = vec!["https://tools.example:443".to_owned()];
        config.mcp.hosts = vec!["agents.example".to_owned()];
        let pages = CrossOriginPolicy::new(&config.cors, &config.mcp);
        let mut request = Request::get(path);
        let host = ("host", "127.0.0.1:8402");
        let host = (!headers.iter().any(|(name, _)| *name == "host")).then_some(&host);
        for (name, value) in host.into_iter().chain(headers) {
            request = request.header(*name, *value);
        }
        pages.attributed_client(
            RequestedApi::from_path(path),
            CONNECTED,
            &request.body(Body::empty()).expect("a request"),
        )
    }

    #[test]
    fn pages_of_other_sites_are_clients_of_their_own() {
        for headers in [
            &[("sec-fetch-site", "cross-site")][..],
            &[("sec-fetch-site", "same-site")],
            &[("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "Cross-Site")],
            &[("sec-fetch-site", "")],
            &[("origin", "https://evil.example")],
            &[("origin", "null")],
            &[("origin", "")],
            &[("origin", "https://app.example.evil.example")],
            &[("origin", "https://app.example"), ("origin", "https://evil.example")],
            &[("origin", "http://127.0.0.1:8402"), ("sec-fetch-site", "cross-site")],
            &[("origin", "http://127.0.0.1:8403")],
            &[("origin", "http://127.0.0.1")],
            &[("origin", "127.0.0.1:8402")],
            &[("origin", "app://127.0.0.1:8402")],
        ] {
            assert_eq!(client_of("/v1/verdicts/a.eth", headers), ClientIdentity::Pages, "{headers:?}");
            assert_eq!(client_of("/mcp", headers), ClientIdentity::Pages, "{headers:?}");
            assert_eq!(client_of("/v1/gate/a.eth", headers), ClientIdentity::PagesAtGate, "{headers:?}");
        }
        assert_eq!(client_of("/mcp", &[("origin", "https://app.example")]), ClientIdentity::Pages);
        assert_eq!(client_of("/", &[("origin", "https://tools.example")]), ClientIdentity::Pages);
    }

    #[test]
    fn rebound_host_counts_as_page_of_another_site() {
        for host in
            ["evil.example", "evil.example:8402", "EVIL.example.", "127.0.0.1.evil.example", "localhost.evil.example"]
        {
            let headers = [("host", host)];
            assert_eq!(client_of("/v1/verdicts/a.eth", &headers), ClientIdentity::Pages, "{host}");
            assert_eq!(client_of("/mcp", &headers), ClientIdentity::Pages, "{host}");
            assert_eq!(client_of("/v1/gate/a.eth", &headers), ClientIdentity::OtherHostAtGate, "{host}");
            let with_origin = [("host", host), ("origin", &format!("http://{host}"))];
            assert_eq!(client_of("/v1/verdicts/a.eth", &with_origin), ClientIdentity::Pages, "{host}");
        }
        let own = [
            "localhost:8402",
            "sub.localhost",
            "127.0.0.1",
            "[::1]:8402",
            "clresolve",
            "app.example",
            "agents.example:443",
        ];
        for host in own {
            assert_eq!(client_of("/v1/verdicts/a.eth", &[("host", host)]), CONNECTED, "{host}");
        }
        let behind_tls = [("host", "clresolve.example"), ("sec-fetch-site", "same-origin")];
        assert_eq!(client_of("/v1/verdicts/a.eth", &behind_tls), CONNECTED);
        let elsewhere = ClientIdentity::Address(IpAddr::from([192, 0, 2, 1]));
        let pages = CrossOriginPolicy::new(&CorsConfig::default(), &McpConfig::default());
        let request = Request::get("/").header(HOST, "clresolve.example").body(Body::empty()).expect("a request");
        assert_eq!(pages.attributed_client(RequestedApi::from_path("/"), elsewhere, &request), elsewhere);
    }

    #[test]
    fn own_and_permitted_pages_count_for_who_is_connected() {
        for headers in [
            &[][..],
            &[("sec-fetch-site", "none")],
            &[("sec-fetch-site", "same-origin")],
            &[("origin", "http://127.0.0.1:8402"), ("sec-fetch-site", "same-origin")],
            &[("origin", "https://app.example"), ("sec-fetch-site", "cross-site")],
        ] {
            for path in ["/v1/verdicts/a.eth", "/v1/gate/a.eth"] {
                assert_eq!(client_of(path, headers), CONNECTED, "{headers:?} {path}");
            }
        }
        let of_tools = [("origin", "https://tools.example"), ("sec-fetch-site", "cross-site")];
        assert_eq!(client_of("/mcp", &of_tools), CONNECTED);
        for (host, origin) in [("a.example:443", "https://a.example"), ("A.example:80", "http://a.example")] {
            let request = Request::get("/").header(HOST, host).body(Body::empty()).expect("a request");
            assert!(is_same_origin_as_host(&HeaderValue::from_static(origin), &request), "{host}");
        }
    }
}
