//! The client of the daemon: three kinds of requests, whose responses are only accepted if they are complete.
//!
//! The guard uses its own connections to the daemon: without the environment's proxy, without redirects, and with a
//! time limit for the whole response. Anything but a valid response is a refusal.

use std::fmt;
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clresolve_jose::TrustedKeys;
use jiff::Timestamp;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, RequestBuilder, StatusCode, Url};
use serde_json::{Map, Value, json};

use crate::decision::{Decision, MAX_ANSWER_BYTES, Written};
use crate::guard::Decides;
use crate::refusal::{Refusal, Why};
use crate::reply::{Allowed, Payable, Reply};

/// Default time limit of a response.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The gate's code when it exceeds its deadline. The resolution continues, and a later request gets its result.
const TOO_SLOW: &str = "deadline-passed";

/// The delay before the gate is asked again.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// The daemon, and the agent and verb in question.
#[derive(Debug)]
pub struct Daemon {
    client: Client,
    base: Url,
    name: String,
    verb: String,
    limits: Option<Map<String, Value>>,
    timeout: Duration,
    signer: Option<Signer>,
}

/// The daemon's address, and the agent and verb in question.
#[derive(Debug)]
pub struct Config {
    /// The daemon's URL: `http://127.0.0.1:8402`, `unix:/run/clresolve.sock` (on Unix), or an https URL. Plain http to
    /// another machine requires `signer`.
    pub daemon: String,
    /// The agent's ENS name in normal form.
    pub agent: String,
    /// The verb to pay for.
    pub verb: String,
    /// Limits that are stricter than the daemon's, in the format of `POST /v1/decisions`.
    pub limits: Option<Map<String, Value>>,
    /// Time limit of each response of the daemon.
    pub timeout: Duration,
    /// A certificate to trust for an https daemon in addition to those of the platform.
    pub ca: Option<Certificate>,
    /// If set, every decision must be signed with one of these keys.
    pub signer: Option<Signer>,
}

impl Config {
    /// A daemon at this URL, for this agent and verb: with a time limit of 5 s and no further limits.
    pub fn new(daemon: impl Into<String>, agent: impl Into<String>, verb: impl Into<String>) -> Self {
        let (daemon, agent, verb) = (daemon.into(), agent.into(), verb.into());
        Self { daemon, agent, verb, limits: None, timeout: TIMEOUT, ca: None, signer: None }
    }
}

/// The expected signer of decisions.
pub struct Signer {
    /// `sign.issuer` of the daemon's configuration.
    pub issuer: String,
    /// The trusted keys, in the format of the daemon's `/.well-known/jwks.json` ([`TrustedKeys::from_jwks`]). Obtain
    /// them over a channel that you trust.
    pub keys: TrustedKeys,
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// Why a configuration is unsafe or unusable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The client cannot be built.
    #[error("the client for the daemon cannot be built: {0}")]
    Client(#[from] reqwest::Error),
    /// The URL has no origin, or more than an origin and a path.
    #[error("daemon: an http, https or unix URL of origin and path alone")]
    Daemon,
    /// The daemon is on another machine without https or signatures, so that somebody on the network could change its
    /// responses.
    #[error("daemon: not on this machine, so it takes https, or the signer of its decisions")]
    Exposed,
    /// Agent or verb is empty.
    #[error("agent and verb must be named")]
    Nameless,
}

impl Daemon {
    /// A client for the daemon of this configuration.
    ///
    /// # Errors
    /// If the configuration is unsafe or unusable.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        let Config { daemon, agent: name, verb, limits, timeout, ca, signer } = config;
        if name.is_empty() || verb.is_empty() {
            return Err(ConfigError::Nameless);
        }
        let address = Address::of(&daemon, signer.is_some())?;
        let mut client = Client::builder().no_proxy().redirect(Policy::none()).timeout(timeout);
        if let Some(ca) = ca {
            client = client.tls_certs_merge([ca]);
        }
        #[cfg(unix)]
        if let Some(path) = address.socket {
            client = client.unix_socket(path);
        }
        Ok(Self { client: client.build()?, base: address.base, name, verb, limits, timeout, signer })
    }

    fn at(&self, segments: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().push("v1").extend(segments);
        }
        url
    }

    async fn ask(&self, segments: &[&str], mut question: Value, reply: &Reply) -> Result<Decision, Refusal> {
        question["name"] = json!(self.name);
        question["verb"] = json!(self.verb);
        question["limits"] = json!(self.limits);
        question["response"] = json!({
            "status": 402,
            "url": reply.url.as_str(),
            "headers": reply.headers,
            "body_base64": STANDARD.encode(&reply.body),
        });
        let body = question.to_string();
        let accept = if self.signer.is_some() { "application/jose" } else { "application/json" };
        let request = self.client.post(self.at(segments)).header(ACCEPT, accept);
        let request = request.header(CONTENT_TYPE, "application/json").body(body.clone());
        let answer = exchange(request).await?;
        if answer.status != StatusCode::OK {
            return Err(unavailable());
        }
        let decision = self.opened(&answer.body, body.as_bytes()).and_then(|all| all.about(&self.name, &self.verb));
        let decision = decision.ok_or_else(unavailable)?;
        let now = SystemTime::now();
        let is_over = !decision.abort && decision.until.is_none_or(|until| until <= now);
        if is_over || !decision.passing.iter().all(|entry| entry.is_in_time(now)) {
            return Err(unavailable());
        }
        Ok(decision)
    }

    fn opened(&self, text: &[u8], asked: &[u8]) -> Option<Written> {
        match &self.signer {
            None => Written::plain(text),
            Some(signer) => Written::signed(text, &signer.issuer, &signer.keys, asked, Timestamp::now()),
        }
    }
}

#[async_trait]
impl Decides for Daemon {
    async fn gate(&self) -> Result<(), Refusal> {
        let began = Instant::now();
        let url = self.at(&["gate", &self.name, &self.verb]);
        loop {
            let answer = exchange(self.client.get(url.clone())).await?;
            match answer.status {
                StatusCode::OK => return Ok(()),
                StatusCode::FORBIDDEN if answer.code != TOO_SLOW => {
                    return Err(Refusal::new(Why::Denied, [answer.code]));
                }
                StatusCode::FORBIDDEN if began.elapsed() < self.timeout => tokio::time::sleep(AGAIN_AFTER).await,
                _ => return Err(unavailable()),
            }
        }
    }

    async fn decide(&self, reply: &Reply) -> Result<Allowed, Refusal> {
        let decision = self.ask(&["decisions"], json!({}), reply).await?;
        Allowed::new(decision.passing).ok_or_else(|| Refusal::new(Why::Denied, decision.codes))
    }

    async fn signed(&self, reply: &Reply, header: &str, entry: usize) -> Result<Value, Refusal> {
        let question = json!({"selected": entry, "header": header});
        let decision = self.ask(&["decisions", "signed"], question, reply).await?;
        if decision.abort {
            return Err(Refusal::new(Why::PaymentDenied, decision.codes));
        }
        // A decision that allows another entry does not allow this one.
        let is_about_it = matches!(decision.passing[..], [Payable { entry: passing, .. }] if passing == entry);
        if is_about_it { Ok(decision.document) } else { Err(unavailable()) }
    }
}

/// The daemon's response; `code` is the gate's reason.
struct Answer {
    status: StatusCode,
    code: String,
    body: Vec<u8>,
}

async fn exchange(request: RequestBuilder) -> Result<Answer, Refusal> {
    let mut response = request.send().await.map_err(|_| unavailable())?;
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|_| unavailable())? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_ANSWER_BYTES {
            return Err(unavailable());
        }
    }
    let code = response.headers().get("clresolve-code").and_then(|code| code.to_str().ok());
    Ok(Answer { status: response.status(), code: code.unwrap_or_default().to_owned(), body })
}

fn unavailable() -> Refusal {
    Refusal::of_kind(Why::Unavailable)
}

/// The address of the daemon.
struct Address {
    base: Url,
    /// The path of the Unix socket, if one is used for every request.
    #[cfg(unix)]
    socket: Option<String>,
}

impl Address {
    /// Ensures that nobody on the network can change the daemon's responses unnoticed: requires https or signed
    /// decisions for another machine. A Unix socket is written as `unix:` and an absolute path.
    fn of(daemon: &str, is_signed: bool) -> Result<Self, ConfigError> {
        #[cfg(unix)]
        if let Some(path) = daemon.strip_prefix("unix:").filter(|path| path.starts_with('/')) {
            let base = Url::parse("http://localhost").map_err(|_| ConfigError::Daemon)?;
            return Ok(Self { base, socket: Some(path.to_owned()) });
        }
        let base = Url::parse(daemon).map_err(|_| ConfigError::Daemon)?;
        let is_plain = base.username().is_empty() && base.password().is_none() && base.query().is_none();
        match base.scheme() {
            _ if !is_plain || base.fragment().is_some() => Err(ConfigError::Daemon),
            "https" => Ok(Self::over_a_network(base)),
            "http" if is_signed || is_loopback(base.host_str().unwrap_or_default()) => Ok(Self::over_a_network(base)),
            "http" => Err(ConfigError::Exposed),
            _ => Err(ConfigError::Daemon),
        }
    }

    const fn over_a_network(base: Url) -> Self {
        Self {
            base,
            #[cfg(unix)]
            socket: None,
        }
    }
}

/// Whether the host of a parsed URL is this machine. Parsing normalizes the spelling of addresses.
fn is_loopback(host: &str) -> bool {
    host == "localhost" || host == "[::1]" || host.parse::<std::net::Ipv4Addr>().is_ok_and(|four| four.is_loopback())
}
