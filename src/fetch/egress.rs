//! The only module that opens outbound sockets, and the rules of both doors.
//!
//! # How the foreign door is kept shut
//!
//! | way in | answer |
//! |---|---|
//! | an IP literal in any notation: no resolver would be asked | refused before anything is sent |
//! | a name that leads to a private address | the one look-up is ours; a single bad answer refuses all of them |
//! | another answer at connect time (DNS rebinding) | the connection goes to the very addresses that were judged |
//! | a redirect | never followed here; [`super::https`] sends each hop through the guard again |
//! | a proxy in the environment | `no_proxy()` |
//! | a pooled or otherwise strange connection | the peer's address is judged once more before the body is read |
//!
//! The port is taken out of the URL and comes from our resolver alone, so that `--connect-to` can lead a name and port
//! to another port while `Host`, SNI and the certificate check stay those of the name. There is one HTTP client, with
//! its own connection pool, per door and port; that is what lets the resolver know the port.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::str::FromStr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::header::{self, HeaderMap, HeaderValue};
use reqwest::{Client, Method, dns};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::time::{Instant, timeout_at};
use url::{Host, Url};

use super::decode::{DecodeError, Decoder};
use super::{Cause, FetchError, Forbidden, OperatorClient, Refusal};
use crate::address::{HostName, HostNameError, is_public_ip, parse_host};
use crate::text::excerpt;

/// Ports that a foreign URL may name: the one of `https` and its customary alternative. Everything else that answers
/// on some port is more likely to be a service that was never meant to be asked.
pub const FOREIGN_PORTS: [u16; 2] = [443, 8443];

/// Most bytes of names and values in the head of an answer. Real heads have one or two KiB.
pub const HEAD_LIMIT: usize = 32 << 10;

/// Most header lines of an answer.
const HEADER_LINES: usize = 100;

/// Most addresses of one name that are handed over; all of them are judged.
const MAX_ADDRESSES: usize = 16;

/// Time limit of one TCP and TLS handshake, look-up included.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Time limit from sending a request to the end of the answer's head.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest total time limit that is honoured. Longer ones mean "no limit", and clocks cannot count for ever.
const MAX_TOTAL: Duration = Duration::from_secs(24 * 3600);

/// How long an unused connection is kept. Below the 60 s or more after which common servers hang up.
const POOL_IDLE: Duration = Duration::from_secs(50);

/// Unused connections kept per host.
const POOL_PER_HOST: usize = 4;

/// Both doors to the outside. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct Egress {
    shared: Arc<Shared>,
}

impl Egress {
    /// Opens nothing yet.
    ///
    /// # Errors
    /// [`EgressError`] when an extra root is not PEM or holds no certificate that can be a trust anchor.
    pub fn new(config: EgressConfig) -> Result<Self, EgressError> {
        Self::with_lookup(config, Arc::new(SystemLookup))
    }

    /// As [`Egress::new`], with another source of addresses than the system's resolver.
    ///
    /// # Errors
    /// As [`Egress::new`].
    pub fn with_lookup(config: EgressConfig, lookup: Arc<dyn Lookup>) -> Result<Self, EgressError> {
        let extra_roots = parse_roots(&config.extra_roots)?;
        let policy = Policy { config, lookup };
        let shared = Shared { policy: Arc::new(policy), extra_roots, tls: OnceLock::new(), clients: Mutex::default() };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// A client for the origin of `endpoint`, which the operator configured, and for no other.
    ///
    /// # Errors
    /// [`Refusal`] when the URL is neither `http` nor `https` or has no host.
    pub fn operator(&self, endpoint: &Url) -> Result<OperatorClient, Refusal> {
        OperatorClient::new(self.clone(), endpoint)
    }

    /// Sends `call` to the foreign `url` and waits for the head of the answer. Redirects are answers like any other.
    pub(super) async fn foreign(&self, url: &Url, call: Call, deadline: Instant) -> Result<Reply, FetchError> {
        let sent = async {
            let target = self.shared.policy.admit_foreign(url)?;
            self.send(Door::Foreign, &target, call, deadline).await
        };
        sent.await.map_err(|error| error.at(|| origin_text(url)))
    }

    /// Sends `call` to `url`, whose origin the operator configured, and waits for the head of the answer.
    pub(super) async fn configured(&self, url: &Url, call: Call, deadline: Instant) -> Result<Reply, FetchError> {
        let sent = async {
            let target = self.shared.policy.admit_configured(url)?;
            self.send(Door::Operator, &target, call, deadline).await
        };
        sent.await.map_err(|error| error.at(|| CONFIGURED.to_owned()))
    }

    async fn send(&self, door: Door, target: &Target, call: Call, deadline: Instant) -> Result<Reply, SendError> {
        let client = self.shared.client(door, target.port);
        let mut request = client.request(call.method, target.url.clone()).headers(call.headers);
        if let Some(authority) = &target.authority {
            request = request.header(header::HOST, authority);
        }
        if let Some(body) = call.body {
            request = request.body(body);
        }
        let head_deadline = deadline.min(deadline_in(self.shared.policy.config.head_timeout));
        let response = match timeout_at(head_deadline, request.send()).await {
            Ok(sent) => sent.map_err(|e| SendError::of(&e))?,
            Err(_) => return Err(Cause::Timeout.into()),
        };
        let peer = response.remote_addr().ok_or(Refusal::PeerUnknown)?;
        self.shared.policy.judge(door, &target.host, target.port, peer)?;
        if head_size(response.headers()) > HEAD_LIMIT {
            return Err(Cause::Head.into());
        }
        Ok(Reply { response, deadline })
    }
}

impl fmt::Debug for Egress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Egress").field("config", &self.shared.policy.config).finish_non_exhaustive()
    }
}

/// What the operator allows and forbids beyond the built-in rules.
#[derive(Clone, Debug)]
pub struct EgressConfig {
    /// Origins for which the foreign door is loosened: private names, addresses and that port. Still `https` only.
    pub allow_host: Vec<OriginSpec>,
    /// Detours, for both doors.
    pub connect_to: Vec<ConnectTo>,
    /// PEM files with trust roots beside the platform's.
    pub extra_roots: Vec<Bytes>,
    /// Listeners of this process, reachable through neither door.
    pub denied: Vec<SocketAddr>,
    /// Limit of one TCP and TLS handshake, look-up included.
    pub connect_timeout: Duration,
    /// Limit from sending a request to the end of the answer's head.
    pub head_timeout: Duration,
}

impl Default for EgressConfig {
    fn default() -> Self {
        Self {
            allow_host: Vec::new(),
            connect_to: Vec::new(),
            extra_roots: Vec::new(),
            denied: Vec::new(),
            connect_timeout: CONNECT_TIMEOUT,
            head_timeout: HEAD_TIMEOUT,
        }
    }
}

/// Why no [`Egress`] can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EgressError {
    /// An extra root is no PEM file with at least one certificate.
    #[error("extra trust root {0}: not a PEM file with certificates")]
    NotPem(usize),
    /// A certificate of an extra root cannot be a trust anchor.
    #[error("extra trust root {0}: a certificate in it cannot be a trust anchor")]
    NotAnAnchor(usize),
}

/// `HOST:PORT`, as `--allow-host` takes it. The host is a name, or an IP literal in URL notation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OriginSpec {
    host: Host<String>,
    port: u16,
}

impl OriginSpec {
    fn is(&self, host: &Host<String>, port: u16) -> bool {
        self.host == *host && self.port == port
    }
}

impl FromStr for OriginSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (host, port) = text.rsplit_once(':').ok_or(SpecError::Form("HOST:PORT, such as agent.example:8443"))?;
        Ok(Self { host: parse_host(host).map_err(|_| SpecError::Host)?, port: parse_port(port)? })
    }
}

impl fmt::Display for OriginSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// `HOST:PORT:ADDR:PORT`, as `--connect-to` takes it: who asks for the first is connected to the second.
///
/// `Host`, SNI and the certificate check stay those of the first. The second is permitted even when it is private, and
/// the first then need not be a public name nor be on a port of the list.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConnectTo {
    from: OriginSpec,
    target: OriginSpec,
}

impl FromStr for ConnectTo {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        const FORM: SpecError = SpecError::Form("HOST:PORT:ADDR:PORT, such as agent.example:443:127.0.0.1:8443");
        let (host, rest) = text.split_once(':').ok_or(FORM)?;
        let (port, target) = rest.split_once(':').ok_or(FORM)?;
        let from = OriginSpec { host: parse_host(host).map_err(|_| SpecError::Host)?, port: parse_port(port)? };
        if !matches!(from.host, Host::Domain(_)) {
            return Err(SpecError::Host);
        }
        Ok(Self {
            from,
            target: target
                .parse()
                .map_err(|e| if e == SpecError::Form("HOST:PORT, such as agent.example:8443") { FORM } else { e })?,
        })
    }
}

impl fmt::Display for ConnectTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.from, self.target)
    }
}

/// Why a text is not an [`OriginSpec`] or a [`ConnectTo`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// Parts are missing.
    #[error("expected {0}")]
    Form(&'static str),
    /// Not a host, or an IP literal where a name is needed.
    #[error("expected a host name or, where one is allowed, an IP address; IPv6 in brackets")]
    Host,
    /// Not a port from 1 to 65535.
    #[error("expected a port from 1 to 65535")]
    Port,
}

fn parse_port(text: &str) -> Result<u16, SpecError> {
    text.parse().ok().filter(|&port| port != 0).ok_or(SpecError::Port)
}

/// A source of addresses.
#[async_trait]
pub trait Lookup: Send + Sync {
    /// All addresses of `host`.
    ///
    /// # Errors
    /// Any error counts as: the name does not resolve.
    async fn lookup(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// The system's resolver.
struct SystemLookup;

#[async_trait]
impl Lookup for SystemLookup {
    async fn lookup(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((host, 0)).await?.map(|addr| addr.ip()).collect())
    }
}

/// The end of a time limit that begins now.
pub(super) fn deadline_in(limit: Duration) -> Instant {
    Instant::now() + limit.min(MAX_TOTAL)
}

/// One request.
pub(super) struct Call {
    method: Method,
    headers: HeaderMap,
    body: Option<Bytes>,
}

impl Call {
    pub(super) fn get(accept: &'static str) -> Self {
        Self { method: Method::GET, headers: HeaderMap::new(), body: None }.with(header::ACCEPT, accept)
    }

    pub(super) fn post_json(body: Bytes) -> Self {
        Self { method: Method::POST, headers: HeaderMap::new(), body: Some(body) }
            .with(header::CONTENT_TYPE, "application/json")
            .with(header::ACCEPT, "application/json")
    }

    pub(super) fn gzip(self) -> Self {
        self.with(header::ACCEPT_ENCODING, "gzip")
    }

    fn with(mut self, name: header::HeaderName, value: &'static str) -> Self {
        self.headers.insert(name, HeaderValue::from_static(value));
        self
    }
}

/// The head of an answer; its body is still to be read.
pub(super) struct Reply {
    response: reqwest::Response,
    deadline: Instant,
}

impl Reply {
    pub(super) fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// A header's value, if it is visible ASCII.
    pub(super) fn header(&self, name: header::HeaderName) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    /// How long the server asks to be left alone: seconds, or a date held against the server's own `Date`.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        let value = self.header(header::RETRY_AFTER)?.trim();
        if let Ok(seconds) = value.parse() {
            return Some(Duration::from_secs(seconds));
        }
        let date = |text| jiff::fmt::rfc2822::parse(text).ok();
        let wait = date(value)?.timestamp().duration_since(date(self.header(header::DATE)?)?.timestamp());
        Some(Duration::try_from(wait).unwrap_or_default())
    }

    /// The body as a stream of decoded pieces, at most `limit` bytes. What the head says about its length is ignored:
    /// a reader may stop early.
    pub(super) fn into_body(self, limit: usize) -> Result<BodyStream, FetchError> {
        let coding = self.response.headers().get(header::CONTENT_ENCODING);
        let coding = coding.map(|value| value.to_str().unwrap_or("unreadable"));
        let decoder = Decoder::new(coding, limit).map_err(|e| of_decode(e, limit))?;
        Ok(BodyStream { response: self.response, deadline: self.deadline, decoder: Some(decoder) })
    }

    /// The whole body, at most `limit` bytes.
    pub(super) async fn bytes(self, limit: usize) -> Result<Bytes, FetchError> {
        if self.response.content_length().is_some_and(|length| length > limit as u64) {
            return Err(FetchError::Oversize { limit });
        }
        let mut stream = self.into_body(limit)?;
        let mut body = Vec::new();
        while let Some(piece) = stream.next().await? {
            body.extend_from_slice(&piece);
        }
        Ok(body.into())
    }
}

/// The body of an answer, decoded and bounded. Dropping it stops the download.
pub(super) struct BodyStream {
    response: reqwest::Response,
    deadline: Instant,
    /// None once the body has ended.
    decoder: Option<Decoder>,
}

impl BodyStream {
    /// The next piece, which may be empty; nothing at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, FetchError> {
        let Some(decoder) = &mut self.decoder else {
            return Ok(None);
        };
        let limit = decoder.limit();
        let chunk = timeout_at(self.deadline, self.response.chunk()).await.map_err(|_| Cause::Timeout)?;
        match chunk.map_err(|_| Cause::Truncated)? {
            Some(chunk) => decoder.push(chunk).map(Some).map_err(|e| of_decode(e, limit)),
            None => {
                let rest = decoder.finish().map_err(|e| of_decode(e, limit))?;
                self.decoder = None;
                Ok(Some(rest))
            }
        }
    }
}

fn of_decode(error: DecodeError, limit: usize) -> FetchError {
    match error {
        DecodeError::Oversize => FetchError::Oversize { limit },
        DecodeError::Truncated => Cause::Truncated.into(),
        DecodeError::Coding => Cause::Encoding.into(),
    }
}

fn head_size(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum()
}

/// How messages name what the operator configured: its host may hold a key.
pub(super) const CONFIGURED: &str = "the configured endpoint";

/// Scheme, host and port, for messages.
fn origin_text(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    excerpt(&format!("{}://{host}{port}", url.scheme()))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Door {
    Foreign,
    Operator,
}

/// A URL that passed the rules of a door.
struct Target {
    host: Host<String>,
    port: u16,
    /// For a name, without the port.
    url: Url,
    /// The `Host` header, where the URL does not give the right one any more.
    authority: Option<String>,
}

struct Shared {
    policy: Arc<Policy>,
    extra_roots: Vec<CertificateDer<'static>>,
    /// Made when first needed: reading the platform's roots takes milliseconds that `--help` need not pay.
    tls: OnceLock<rustls::ClientConfig>,
    /// Bounded: a foreign URL's port is on a list, an operator's is in the configuration.
    clients: Mutex<HashMap<(Door, u16), Client>>,
}

impl Shared {
    fn client(&self, door: Door, port: u16) -> Client {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.entry((door, port)).or_insert_with(|| self.build(door, port)).clone()
    }

    fn build(&self, door: Door, port: u16) -> Client {
        let dialer = Dialer { door, port, policy: Arc::clone(&self.policy) };
        Client::builder()
            .tls_backend_preconfigured(self.tls.get_or_init(|| tls_config(&self.extra_roots)).clone())
            .dns_resolver(dialer)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .https_only(door == Door::Foreign)
            .http1_only()
            .http1_max_headers(HEADER_LINES)
            .connect_timeout(self.policy.config.connect_timeout)
            .pool_idle_timeout(POOL_IDLE)
            .pool_max_idle_per_host(POOL_PER_HOST)
            .user_agent(concat!("clresolve/", env!("CARGO_PKG_VERSION")))
            .build()
            .expect("a ready TLS configuration and constant options always make a client")
    }
}

/// TLS over the platform's verifier. A machine without trust roots still gets a client: one that trusts nobody.
fn tls_config(extra_roots: &[CertificateDer<'static>]) -> rustls::ClientConfig {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default protocol versions");
    let roots = extra_roots.iter().cloned();
    match rustls_platform_verifier::Verifier::new_with_extra_roots(roots, provider) {
        Ok(verifier) => builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth(),
        Err(error) => {
            tracing::warn!(%error, "no trust roots: no https server can be verified");
            builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth()
        }
    }
}

fn parse_roots(files: &[Bytes]) -> Result<Vec<CertificateDer<'static>>, EgressError> {
    let mut roots = Vec::new();
    for (index, pem) in files.iter().enumerate() {
        let certificates: Vec<_> =
            CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(|_| EgressError::NotPem(index))?;
        if certificates.is_empty() {
            return Err(EgressError::NotPem(index));
        }
        for certificate in certificates {
            let anchor = rustls::RootCertStore::empty().add(certificate.clone());
            anchor.map_err(|_| EgressError::NotAnAnchor(index))?;
            roots.push(certificate);
        }
    }
    Ok(roots)
}

/// The rules of both doors.
struct Policy {
    config: EgressConfig,
    lookup: Arc<dyn Lookup>,
}

impl Policy {
    fn admit_foreign(&self, url: &Url) -> Result<Target, Refusal> {
        if url.scheme() != "https" {
            return Err(Refusal::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refusal::UserInfo);
        }
        let (host, port) = host_and_port(url)?;
        if !self.is_named(&host, port) {
            HostName::parse(&host.to_string()).map_err(|error| match error {
                HostNameError::IpLiteral(_) => Refusal::IpLiteral,
                HostNameError::Malformed => Refusal::NotUrl,
                HostNameError::NotPublic => Refusal::HostNotPublic,
            })?;
            if !FOREIGN_PORTS.contains(&port) {
                return Err(Refusal::Port(port));
            }
        }
        self.target(Door::Foreign, url, host, port)
    }

    fn admit_configured(&self, url: &Url) -> Result<Target, Refusal> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refusal::Scheme);
        }
        let (host, port) = host_and_port(url)?;
        self.target(Door::Operator, url, host, port)
    }

    /// Takes the port out of the URL of a name, and judges a literal, for which no resolver will be asked.
    fn target(&self, door: Door, url: &Url, host: Host<String>, port: u16) -> Result<Target, Refusal> {
        let mut url = url.clone();
        url.set_fragment(None);
        if let Some(ip) = literal(&host) {
            self.judge(door, &host, port, SocketAddr::new(ip, port))?;
            return Ok(Target { host, port, url, authority: None });
        }
        let authority = url.port().map(|port| format!("{host}:{port}"));
        url.set_host(Some(&host.to_string())).map_err(|_| Refusal::NotUrl)?;
        url.set_port(None).map_err(|()| Refusal::NotUrl)?;
        Ok(Target { host, port, url, authority })
    }

    /// Whether the operator named this very origin.
    fn is_named(&self, host: &Host<String>, port: u16) -> bool {
        self.is_allowed(host, port) || self.detour(host, port).is_some()
    }

    fn is_allowed(&self, host: &Host<String>, port: u16) -> bool {
        self.config.allow_host.iter().any(|origin| origin.is(host, port))
    }

    fn detour(&self, host: &Host<String>, port: u16) -> Option<&OriginSpec> {
        self.config.connect_to.iter().find(|detour| detour.from.is(host, port)).map(|detour| &detour.target)
    }

    /// The addresses to connect to for a name and port. One bad answer refuses all.
    async fn addresses(&self, door: Door, host: &Host<String>, port: u16) -> Result<Vec<SocketAddr>, DialError> {
        let (target_host, target_port) = match self.detour(host, port) {
            Some(target) => (&target.host, target.port),
            None => (host, port),
        };
        let ips = match target_host {
            Host::Domain(name) => self.lookup.lookup(name).await.map_err(|_| DialError::Dns)?,
            Host::Ipv4(ip) => vec![(*ip).into()],
            Host::Ipv6(ip) => vec![(*ip).into()],
        };
        if ips.is_empty() {
            return Err(DialError::Dns);
        }
        let mut addresses = Vec::new();
        for ip in ips {
            let address = SocketAddr::new(ip, target_port);
            self.judge(door, host, port, address)?;
            addresses.push(address);
        }
        addresses.truncate(MAX_ADDRESSES);
        Ok(addresses)
    }

    /// Whether `address` may be the peer of a connection for `host` and `port`.
    fn judge(&self, door: Door, host: &Host<String>, port: u16, address: SocketAddr) -> Result<(), Refusal> {
        if self.config.denied.iter().any(|listener| is_listener(*listener, address)) {
            return Err(Refusal::OwnListener);
        }
        let free = door == Door::Operator || self.is_named(host, port);
        if free || is_public_ip(address.ip()) { Ok(()) } else { Err(Refusal::AddressNotPublic(address.ip())) }
    }
}

fn host_and_port(url: &Url) -> Result<(Host<String>, u16), Refusal> {
    let host = url.host_str().ok_or(Refusal::NotUrl)?;
    let host = parse_host(host).map_err(|_| Refusal::NotUrl)?;
    Ok((host, url.port_or_known_default().ok_or(Refusal::NotUrl)?))
}

fn literal(host: &Host<String>) -> Option<IpAddr> {
    match host {
        Host::Domain(_) => None,
        Host::Ipv4(ip) => Some((*ip).into()),
        Host::Ipv6(ip) => Some((*ip).into()),
    }
}

/// Whether a connection to `address` ends at `listener`. A listener on the unspecified address listens on every
/// address of this machine, and a connection to the unspecified address ends at the loopback one.
fn is_listener(listener: SocketAddr, address: SocketAddr) -> bool {
    if listener.port() != address.port() {
        return false;
    }
    let (listener, ip) = (listener.ip().to_canonical(), address.ip().to_canonical());
    if ip.is_unspecified() {
        return listener.is_loopback() || listener.is_unspecified();
    }
    if listener.is_unspecified() { is_of_this_machine(ip) } else { listener == ip }
}

/// A socket can be bound to the addresses of this machine only. Nothing is sent.
fn is_of_this_machine(ip: IpAddr) -> bool {
    ip.is_loopback() || UdpSocket::bind((ip, 0)).is_ok()
}

/// The resolver of one client: it knows the port, and hands over judged addresses only.
struct Dialer {
    door: Door,
    port: u16,
    policy: Arc<Policy>,
}

impl dns::Resolve for Dialer {
    fn resolve(&self, name: dns::Name) -> dns::Resolving {
        let (door, port, policy) = (self.door, self.port, Arc::clone(&self.policy));
        Box::pin(async move {
            let host = Host::Domain(name.as_str().to_owned());
            let addresses = policy.addresses(door, &host, port).await?;
            Ok(Box::new(addresses.into_iter()) as dns::Addrs)
        })
    }
}

/// Why a name was not dialled. Travels through the HTTP client and is found again in its error.
#[derive(Clone, Debug, thiserror::Error)]
enum DialError {
    #[error("the host name does not resolve")]
    Dns,
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// A [`FetchError`] that does not know yet how to name its target.
enum SendError {
    Refused(Refusal),
    Failed(Cause),
}

impl From<Refusal> for SendError {
    fn from(why: Refusal) -> Self {
        Self::Refused(why)
    }
}

impl From<Cause> for SendError {
    fn from(cause: Cause) -> Self {
        Self::Failed(cause)
    }
}

impl SendError {
    fn at(self, target: impl FnOnce() -> String) -> FetchError {
        match self {
            Self::Refused(why) => Forbidden { hop: 0, target: target(), why }.into(),
            Self::Failed(cause) => cause.into(),
        }
    }

    fn of(error: &reqwest::Error) -> Self {
        let mut links = Vec::new();
        let mut link: Option<&(dyn std::error::Error + 'static)> = Some(error);
        while let Some(error) = link.filter(|_| links.len() < MAX_ERROR_CHAIN) {
            links.push(error);
            link = inner(error);
        }
        if let Some(dial) = links.iter().find_map(|e| e.downcast_ref::<DialError>()) {
            return match dial {
                DialError::Dns => Self::Failed(Cause::Dns),
                DialError::Refused(why) => Self::Refused(why.clone()),
            };
        }
        Self::Failed(match links.iter().find_map(|e| e.downcast_ref::<rustls::Error>()) {
            Some(tls) => Cause::Tls(excerpt(&tls.to_string())),
            None if error.is_timeout() => Cause::Timeout,
            None if error.is_connect() => Cause::Connect,
            None if links.iter().any(|e| e.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse)) => {
                Cause::Head
            }
            None => Cause::Truncated,
        })
    }
}

/// Links of an error chain that are looked at: more than any chain of the HTTP client has.
const MAX_ERROR_CHAIN: usize = 16;

/// What an error wraps. The `source` of an I/O error skips the error right inside it.
fn inner<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a (dyn std::error::Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(wrapped) => Some(wrapped),
        None => error.source(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> OriginSpec {
        text.parse().unwrap()
    }

    #[test]
    fn parses_origins_and_detours() {
        assert_eq!(spec("Example.COM.:8443"), OriginSpec { host: Host::Domain("example.com".into()), port: 8443 });
        assert_eq!(spec("127.0.0.1:1").host, Host::<String>::Ipv4([127, 0, 0, 1].into()));
        let detour: ConnectTo = "a.example:443:[::1]:9".parse().unwrap();
        assert_eq!(detour, ConnectTo { from: spec("a.example:443"), target: spec("[::1]:9") });
        let detour: ConnectTo = "a.example:443:localhost:9".parse().unwrap();
        assert_eq!(detour.target, spec("localhost:9"));

        for text in ["", "a.example", "a.example:443", "a.example:443:b", "a.example:443:127.0.0.1"] {
            assert_eq!(
                text.parse::<ConnectTo>(),
                Err(SpecError::Form("HOST:PORT:ADDR:PORT, such as agent.example:443:127.0.0.1:8443")),
                "{text}"
            );
        }
        assert_eq!("127.0.0.1:443:127.0.0.1:9".parse::<ConnectTo>(), Err(SpecError::Host));
        assert_eq!("a.example:0".parse::<OriginSpec>(), Err(SpecError::Port));
        assert_eq!("a.example:65536".parse::<OriginSpec>(), Err(SpecError::Port));
        assert_eq!("a b:1".parse::<OriginSpec>(), Err(SpecError::Host));
    }

    #[test]
    fn tells_its_own_listeners() {
        let cases = [
            ("127.0.0.1:80", "127.0.0.1:80", true),
            ("127.0.0.1:80", "127.0.0.1:81", false),
            ("127.0.0.1:80", "127.0.0.2:80", false),
            ("127.0.0.1:80", "[::ffff:127.0.0.1]:80", true),
            ("127.0.0.1:80", "0.0.0.0:80", true),
            ("0.0.0.0:80", "127.0.0.1:80", true),
            ("0.0.0.0:80", "127.9.9.9:80", true),
            ("[::]:80", "127.0.0.1:80", true),
            ("[::]:80", "[::]:80", true),
            ("0.0.0.0:80", "192.0.2.1:80", false),
            ("192.0.2.1:80", "0.0.0.0:80", false),
        ];
        for (listener, address, same) in cases {
            assert_eq!(is_listener(listener.parse().unwrap(), address.parse().unwrap()), same, "{listener} {address}");
        }
    }
}
