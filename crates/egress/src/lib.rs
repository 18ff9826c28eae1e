//! The only crate that opens outbound connections, and the rules for them.
//!
//! An *egress class* is one set of rules: the foreign class for URLs that third parties choose, and the operator's
//! class for origins that the operator configures.
//!
//! # What the foreign class defends against
//!
//! | attack | defence |
//! |---|---|
//! | a URL that parsers repair silently (tabs, backslashes, missing slashes) | `UntrustedUrl` refuses it |
//! | an IP literal in any notation, for which no resolver is queried | refused before anything is sent |
//! | a name that resolves to a private address | the only DNS lookup is made here; one forbidden address rejects all |
//! | a different answer at connect time (DNS rebinding) | the connection uses the addresses that were checked |
//! | a redirect | never followed here; a caller that follows one passes each hop through the guard |
//! | a proxy in the environment | `no_proxy()` |
//! | a pooled or unexpected connection | the peer's address is checked again before the body is read |
//!
//! The port is removed from the URL; only this crate's resolver supplies it. `--connect-to` can therefore redirect a
//! name and port to another port, while `Host`, SNI and the certificate check still use the original name. Each class
//! and port has its own HTTP client with its own connection pool, so that the resolver knows the port.

mod body_budget;
mod client;
mod config;
pub mod count;
mod decode;
mod guard;
mod message;
mod operator;
mod origin;
mod pacer;
mod stream;
mod url;

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use ::url::Url;
use bytes::Bytes;
pub use reqwest::header;
use tokio::time::{Instant, sleep_until, timeout_at};

pub use self::body_budget::{BodyBudget, BodyReservation, SHORT_BODY};
use self::client::{HttpClients, SendError, parse_roots};
use self::config::CONFIGURED;
pub use self::config::{CONNECT_TIMEOUT, EgressConfig, EgressSetupError, HEAD_TIMEOUT, deadline_in};
pub use self::guard::{AddressLookup, FOREIGN_PORTS, SystemAddressLookup};
use self::guard::{AdmittedUrl, EgressClass, EgressGuard};
pub use self::message::HEAD_LIMIT;
pub use self::message::{BodyStream, EgressRequest, EgressResponse, RequestSendTime};
use self::message::{PacingMode, head_size};
pub use self::operator::{BufferedResponse, SingleOriginClient, read_success_body};
pub use self::origin::{ConnectToRule, HostPort, HostPortError};
use self::pacer::Pacer;
pub use self::stream::{ByteStream, TcpTlsOrUnixAddress};
pub use self::url::UntrustedUrl;
pub use clresolve_core::fetch::{EgressViolation, FetchError, ForbiddenUrlError, SourceUnavailableError};
use clresolve_core::text::excerpt_text;

/// Maximum number of attempts for one request to a server that asks for pauses.
const MOST_TRIES: usize = 4;

/// The pause for a server that asks for one without stating its length.
const PAUSE: Duration = Duration::from_secs(2);

/// Both classes. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct Egress {
    clients: Arc<HttpClients>,
}

impl Egress {
    /// Creates both classes. Opens no connection.
    ///
    /// # Errors
    /// [`EgressSetupError`] if an extra root is not PEM, or contains no certificate that can be a trust anchor.
    pub fn new(config: EgressConfig) -> Result<Self, EgressSetupError> {
        Self::with_lookup(config, Arc::new(SystemAddressLookup))
    }

    /// As [`Egress::new`], with an address source other than the system's resolver.
    ///
    /// # Errors
    /// As [`Egress::new`].
    pub fn with_lookup(config: EgressConfig, lookup: Arc<dyn AddressLookup>) -> Result<Self, EgressSetupError> {
        let (extra_roots, paced) = (parse_roots(&config.extra_roots)?, config.is_paced);
        let guard = EgressGuard { config, lookup };
        let clients = HttpClients {
            guard: Arc::new(guard),
            extra_roots,
            tls: OnceLock::new(),
            clients: Mutex::default(),
            bodies: Mutex::default(),
            pacer: paced.then(Pacer::default),
        };
        Ok(Self { clients: Arc::new(clients) })
    }

    /// The configured PEM files with trust roots in addition to the platform's.
    pub fn extra_roots(&self) -> &[Bytes] {
        &self.clients.guard.config.extra_roots
    }

    /// Sends `call` to the foreign `url` and waits for the response head. Redirects are returned, not followed.
    pub async fn send_untrusted(
        &self,
        url: &UntrustedUrl,
        call: EgressRequest,
        deadline: Instant,
    ) -> Result<EgressResponse, FetchError> {
        let sent = async {
            let target = self.clients.guard.admit_untrusted(url.as_url())?;
            self.send(EgressClass::Foreign, &target, call, deadline).await
        };
        sent.await.map_err(|error| error.with_target(|| origin_text(url.as_url())))
    }

    /// Sends `call` to a plain `http` URL, whose origin must be in [`EgressConfig::allow_host`], and waits for the
    /// response head. The server is not authenticated.
    pub async fn send_plain_http(
        &self,
        url: &UntrustedUrl,
        call: EgressRequest,
        deadline: Instant,
    ) -> Result<EgressResponse, FetchError> {
        let sent = async {
            let target = self.clients.guard.admit_plain_http(url.as_url())?;
            self.send(EgressClass::Plain, &target, call, deadline).await
        };
        sent.await.map_err(|error| error.with_target(|| origin_text(url.as_url())))
    }

    /// Sends `call` to `url`, whose origin the operator configured, and waits for the response head.
    pub(crate) async fn send_configured(
        &self,
        url: &Url,
        call: EgressRequest,
        deadline: Instant,
    ) -> Result<EgressResponse, FetchError> {
        let sent = async {
            let target = self.clients.guard.admit_configured(url)?;
            self.send(EgressClass::Operator, &target, call, deadline).await
        };
        sent.await.map_err(|error| error.with_target(|| CONFIGURED.to_owned()))
    }

    /// The longest remaining pause among the servers that paused within the last `past`. Zero if all of these pauses
    /// are over; `None` if no server paused, or if requests are not paced.
    pub fn remaining_pause(&self, past: Duration) -> Option<Duration> {
        self.clients.pacer.as_ref()?.remaining_pause(past)
    }

    /// Sends `call`, paced unless pacing is disabled or the call is `Hasty`. A `Patient` call is retried after each
    /// pause that the server asks for, up to `MOST_TRIES` attempts and within the deadline.
    async fn send(
        &self,
        class: EgressClass,
        target: &AdmittedUrl,
        call: EgressRequest,
        deadline: Instant,
    ) -> Result<EgressResponse, SendError> {
        let Some(pacer) = self.clients.pacer.as_ref().filter(|_| call.pacing != PacingMode::Hasty) else {
            return self.send_once(class, target, call, deadline).await;
        };
        if call.pacing == PacingMode::InTurn {
            return self.send_paced(pacer, class, target, call, deadline).await;
        }
        let mut refused = None;
        for _ in 0..MOST_TRIES {
            let Some(leave) = pacer.acquire_permit(target.url.origin(), deadline).await else { break };
            let reply = self.send_once(class, target, call.clone(), deadline).await?;
            let Some(pause) = asked_pause(&reply) else {
                leave.record_response();
                return Ok(reply);
            };
            let next = Instant::now() + pause;
            match class {
                EgressClass::Operator => leave.record_pause(pause),
                // Other names share a foreign host, so one name must not pause requests for the others.
                EgressClass::Foreign | EgressClass::Plain => leave.record_throttling(),
            }
            refused = Some(reply);
            if next >= deadline {
                break;
            }
            sleep_until(next).await;
        }
        refused.ok_or_else(|| SourceUnavailableError::Timeout.into())
    }

    /// Sends within the server's concurrency limit. The response time does not affect the limit: a gateway is fast for
    /// content that it stores, and slow for content that it must find.
    async fn send_paced(
        &self,
        pacer: &Pacer,
        class: EgressClass,
        target: &AdmittedUrl,
        call: EgressRequest,
        deadline: Instant,
    ) -> Result<EgressResponse, SendError> {
        let leave = pacer.acquire_permit(target.url.origin(), deadline).await.ok_or(SourceUnavailableError::NoTurn)?;
        let reply = self.send_once(class, target, call, deadline).await?;
        match asked_pause(&reply) {
            Some(_) => leave.record_throttling(),
            None => leave.record_untimed_response(),
        }
        Ok(reply)
    }

    async fn send_once(
        &self,
        class: EgressClass,
        target: &AdmittedUrl,
        call: EgressRequest,
        deadline: Instant,
    ) -> Result<EgressResponse, SendError> {
        call.departure.record_sent();
        let client = self.clients.client(class, target.port);
        let mut request = client.request(call.method, target.url.clone()).headers(call.headers);
        if let Some(authority) = &target.authority {
            request = request.header(header::HOST, authority);
        }
        if let Some(body) = call.body {
            request = request.body(body);
        }
        let head_deadline = deadline.min(deadline_in(self.clients.guard.config.head_timeout));
        let response = match timeout_at(head_deadline, request.send()).await {
            Ok(sent) => sent.map_err(|e| SendError::from_reqwest(&e))?,
            Err(_) => return Err(SourceUnavailableError::Timeout.into()),
        };
        if !clresolve_core::mutant!("peer-unchecked") {
            self.clients.guard.check_peer_address(class, &target.host, target.port, response.remote_addr())?;
        }
        if head_size(response.headers()) > HEAD_LIMIT {
            return Err(SourceUnavailableError::Head.into());
        }
        Ok(EgressResponse { response, deadline })
    }
}

impl fmt::Debug for Egress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Egress").field("config", &self.clients.guard.config).finish_non_exhaustive()
    }
}

/// The pause that a server asks for, if any. A 503 without `Retry-After` does not ask for one.
fn asked_pause(reply: &EgressResponse) -> Option<Duration> {
    let asked = reply.retry_after();
    match reply.status() {
        429 => Some(asked.unwrap_or(PAUSE)),
        503 => asked,
        _ => None,
    }
}

/// Scheme, host and port, for messages.
pub fn origin_text(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    excerpt_text(&format!("{}://{host}{port}", url.scheme()))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// A connection from the pool, or one opened through another resolver, can have a peer whose address was never
    /// checked.
    #[tokio::test]
    async fn a_reply_is_refused_by_its_peer_although_its_name_was_admitted() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answer = async || {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 1024]).await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
            stream
        };
        for (denied, expected) in [(Vec::new(), Ok(200)), (vec![address], Err(EgressViolation::OwnListener))] {
            let egress = Egress::new(EgressConfig { denied, ..EgressConfig::default() }).unwrap();
            let elsewhere = reqwest::Client::builder().no_proxy().resolve("a.example", address).build().unwrap();
            let port = address.port();
            egress.clients.clients.lock().unwrap().insert((EgressClass::Operator, port), elsewhere);
            let url = Url::parse(&format!("http://a.example:{port}/")).unwrap();
            let sent = egress.send_configured(&url, EgressRequest::get("*/*"), deadline_in(CONNECT_TIMEOUT));
            let (sent, _open) = tokio::join!(sent, answer());
            let observed = sent.map(|reply| reply.status()).map_err(|error| match error {
                FetchError::Forbidden(forbidden) => forbidden.why,
                other => panic!("{other}"),
            });
            assert_eq!(observed, expected);
        }
    }

    #[tokio::test]
    async fn slow_answers_lower_the_concurrency() {
        const HOUR: Duration = Duration::from_secs(3600);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        let config = EgressConfig { is_paced: true, head_timeout: HOUR, ..EgressConfig::default() };
        let egress = Egress::new(config).unwrap();
        let answer_after = async |time| {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 1024]).await.unwrap();
            tokio::time::pause();
            tokio::time::advance(time).await;
            tokio::time::resume();
            stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
            stream
        };
        let at_once = || {
            let pacer = egress.clients.pacer.as_ref().unwrap();
            let leave = || pacer.acquire_permit(url.origin(), deadline_in(HOUR)).now_or_never().flatten();
            std::iter::from_fn(leave).collect::<Vec<_>>().len()
        };
        for (time, left) in [(Duration::ZERO, 64), (HOUR / 60, 48)] {
            let sent = egress.send_configured(&url, EgressRequest::get("*/*").with_retries(), deadline_in(HOUR));
            let (sent, _open) = tokio::join!(sent, answer_after(time));
            assert_eq!(sent.map(|reply| reply.status()), Ok(200));
            assert_eq!(at_once(), left, "after an answer that took {time:?}");
        }
    }
}
