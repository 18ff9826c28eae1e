//! The daemon as the guard sees it: three questions, and answers that are believed only where they are whole.
//!
//! The guard has connections of its own to the daemon: no proxy of the environment, no redirect, a time limit for the
//! whole answer. Every other end than an answer is a refusal.

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
use crate::guard::{Allowed, Decides, Payable, Reply};
use crate::refusal::{Refusal, Why};

/// How long an answer may take, unless the configuration says otherwise.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The gate says this when it needs longer than its own deadline. The run goes on, and a later question is answered.
const TOO_SLOW: &str = "deadline-passed";

/// The time between two such questions.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// The daemon, and about whom it is asked.
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

/// Whom to ask, and about whom.
#[derive(Debug)]
pub struct Config {
    /// Where the daemon is: `http://127.0.0.1:8402`, `unix:/run/clresolve.sock` (on Unix), or an https URL. Plain http to
    /// another machine is refused without `signer`.
    pub daemon: String,
    /// The agent's ENS name in its normal form.
    pub agent: String,
    /// The verb that is paid for.
    pub verb: String,
    /// Limits that are tighter than the daemon's, as `POST /v1/decisions` takes them.
    pub limits: Option<Map<String, Value>>,
    /// How long each answer of the daemon may take.
    pub timeout: Duration,
    /// A certificate to trust for an https daemon beside those of the platform.
    pub ca: Option<Certificate>,
    /// With it every decision must be signed by one of its keys.
    pub signer: Option<Signer>,
}

impl Config {
    /// The daemon there, about this agent and verb: 5 s for an answer, no further limits.
    pub fn new(daemon: impl Into<String>, agent: impl Into<String>, verb: impl Into<String>) -> Self {
        let (daemon, agent, verb) = (daemon.into(), agent.into(), verb.into());
        Self { daemon, agent, verb, limits: None, timeout: TIMEOUT, ca: None, signer: None }
    }
}

/// Who signs decisions.
pub struct Signer {
    /// `sign.issuer` of the daemon's configuration.
    pub issuer: String,
    /// The trusted keys, as `/.well-known/jwks.json` of the daemon has them ([`TrustedKeys::from_jwks`]). Hand them over
    /// by a way that you trust.
    pub keys: TrustedKeys,
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// Why a configuration cannot be made safe.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The client cannot be built.
    #[error("the client for the daemon cannot be built: {0}")]
    Client(#[from] reqwest::Error),
    /// It has more than an origin and a path, or none.
    #[error("daemon: an http, https or unix URL of origin and path alone")]
    Daemon,
    /// Over a network somebody could change its answers.
    #[error("daemon: not on this machine, so it takes https, or the signer of its decisions")]
    Exposed,
    /// Agent or verb is empty.
    #[error("agent and verb must be named")]
    Nameless,
}

impl Daemon {
    /// The daemon of this configuration.
    ///
    /// # Errors
    /// When the configuration cannot be made safe.
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
        // An allowance for another entry does not count for this one.
        let is_about_it = matches!(decision.passing[..], [Payable { entry: passing, .. }] if passing == entry);
        if is_about_it { Ok(decision.document) } else { Err(unavailable()) }
    }
}

/// What the daemon said; `code` is the gate's reason.
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

/// How the daemon is reached.
struct Address {
    base: Url,
    /// The path of a Unix socket, over which every question goes then.
    #[cfg(unix)]
    socket: Option<String>,
}

impl Address {
    /// Over a network nobody may change the daemon's answers unseen: https, or signed decisions. A Unix socket has one
    /// spelling, `unix:` and a path from the root.
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

/// Whether a host of a parsed URL, which has one spelling for each address, is this machine.
fn is_loopback(host: &str) -> bool {
    host == "localhost" || host == "[::1]" || host.parse::<std::net::Ipv4Addr>().is_ok_and(|four| four.is_loopback())
}
