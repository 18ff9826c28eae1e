//! The client of the daemon: three kinds of requests, whose responses are only accepted if they are complete.
//!
//! The guard uses its own connections to the daemon: without the environment's proxy, without redirects, and with a
//! time limit for the whole response. Anything but a valid response is a refusal.

use std::error::Error as _;
use std::fmt;
use std::io::{self, ErrorKind};
use std::iter::successors;
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clresolve_jose::Ed25519KeySet;
use jiff::Timestamp;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, RequestBuilder, StatusCode, Url};
use serde_json::{Map, Value, json};

use crate::decision::{CheckedDecision, DecisionDocument, InvalidDecisionError, MAX_ANSWER_BYTES};
use crate::guard::PaymentDecider;
use crate::refusal::{Refusal, Why};
use crate::reply::{PayableEntries, PayableEntry, PaymentRequiredResponse};

/// Default time limit of a response.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The codes that a retry may clear: the resolution exceeds the gate's deadline but continues, or the newest block has
/// not confirmed the verdict yet.
const TRANSIENT: [&str; 2] = ["deadline-passed", "unconfirmed"];

/// The delay before the daemon is asked again.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// The value of [`Config::agent`] that means every seller, and another spelling of it.
const ANY: &str = "any";
const WILDCARD: &str = "*";

/// The paths of the guard's questions, and the schema of the answers.
#[derive(Debug)]
struct DecisionApiEndpoints {
    terms: &'static [&'static str],
    signed: &'static [&'static str],
    schema: &'static str,
}

/// About one agent.
const DECISIONS: DecisionApiEndpoints =
    DecisionApiEndpoints { terms: &["decisions"], signed: &["decisions", "signed"], schema: "clresolve.decision/1" };

/// About any seller.
const CHECKS: DecisionApiEndpoints =
    DecisionApiEndpoints { terms: &["checks"], signed: &["checks"], schema: "clresolve.check/1" };

/// The daemon, and the agent and verb in question.
#[derive(Debug)]
pub struct Daemon {
    client: Client,
    base: Url,
    /// The configured URL, for messages.
    shown: String,
    api: DecisionApiEndpoints,
    /// Where the gate answers about the agent. `None` for any seller, since the gate knows agents alone.
    gate: Option<Url>,
    name: Option<String>,
    verb: Option<String>,
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
    /// The agent's ENS name in normal form. With `any`, every seller is paid whose payee the daemon proves.
    pub agent: String,
    /// The seller's ENS name in normal form, if `agent` is `any`: the guard trusts it, unlike the seller's claim.
    pub name: Option<String>,
    /// The verb to pay for. If `agent` is `any`, it may be empty.
    pub verb: String,
    /// Limits that are stricter than the daemon's, in the format of `POST /v1/decisions`.
    pub limits: Option<Map<String, Value>>,
    /// Time limit of each response of the daemon.
    pub timeout: Duration,
    /// A certificate to trust for an https daemon in addition to those of the platform.
    pub ca: Option<Certificate>,
    /// If set, every decision must be signed with one of these keys. The daemon signs none if `agent` is `any`.
    pub signer: Option<Signer>,
}

impl Config {
    /// A daemon at this URL, for this agent and verb: with a time limit of 5 s and no further limits.
    pub fn new(daemon: impl Into<String>, agent: impl Into<String>, verb: impl Into<String>) -> Self {
        let (daemon, agent, verb) = (daemon.into(), agent.into(), verb.into());
        Self { daemon, agent, name: None, verb, limits: None, timeout: TIMEOUT, ca: None, signer: None }
    }

    /// A daemon at this URL, for any seller: with a time limit of 5 s and no further limits.
    pub fn any(daemon: impl Into<String>) -> Self {
        Self::new(daemon, ANY, "")
    }

    /// Checks whom the guard pays: one agent for one verb, or any seller. Only then may the verb be omitted, and a
    /// seller's name be given.
    fn check_payee(&self) -> Result<(), ConfigError> {
        let name = self.name.as_deref();
        if self.agent.is_empty() {
            return Err(ConfigError::NoAgent);
        }
        if self.agent == ANY {
            return match &self.signer {
                Some(_) => Err(ConfigError::NeverSigned),
                None => name.map_or(Ok(()), |name| check_normalized_name("name", name)),
            };
        }
        check_normalized_name("agent", &self.agent)?;
        if self.verb.is_empty() {
            return Err(ConfigError::Empty { option: "verb" });
        }
        if name.is_some() { Err(ConfigError::NameOfAgent) } else { Ok(()) }
    }
}

/// The expected signer of decisions.
pub struct Signer {
    /// `sign.issuer` of the daemon's configuration.
    pub issuer: String,
    /// The trusted keys, in the format of the daemon's `/.well-known/jwks.json` ([`Ed25519KeySet::from_jwks`]). Obtain
    /// them over a channel that you trust.
    pub keys: Ed25519KeySet,
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
    /// The URL has more than an origin and a path.
    #[error("daemon: the URL may have only an origin and a path")]
    Daemon,
    /// The text is not an http, https or unix URL.
    #[error("daemon: expected a URL such as http://127.0.0.1:8402")]
    NotUrl,
    /// The daemon is on another machine without https or signatures, so that somebody on the network could change its
    /// responses.
    #[error("daemon: not on this machine, so it takes https, or the signer of its decisions")]
    Exposed,
    /// There is no agent.
    #[error("agent: expected an ENS name, or \"any\"")]
    NoAgent,
    /// The agent is another spelling of `any`.
    #[error("agent: did you mean \"any\"?")]
    LikeAny,
    /// A name or the verb is empty.
    #[error("{option} must not be empty")]
    Empty {
        /// The field of the configuration.
        option: &'static str,
    },
    /// A seller's name is given in addition to an agent.
    #[error("name: expected only with the agent \"any\"")]
    NameOfAgent,
    /// Signed answers are expected about any seller. The daemon signs those about agents alone.
    #[error("signer: the daemon signs no answer for the agent \"any\"")]
    NeverSigned,
    /// A name is not in normal form. Only rules that need no tables are checked.
    #[error("{option}: expected the full ENS name in normal form; did you mean {meant}?")]
    NotNormal {
        /// The field of the configuration.
        option: &'static str,
        /// The name that was probably meant.
        meant: String,
    },
}

impl Daemon {
    /// A client for the daemon of this configuration.
    ///
    /// # Errors
    /// If the configuration is unsafe or unusable.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check_payee()?;
        let Config { daemon, agent, name, verb, limits, timeout, ca, signer } = config;
        let address = DaemonAddress::parse_daemon_url(&daemon, signer.is_some())?;
        let mut client = Client::builder().no_proxy().redirect(Policy::none()).timeout(timeout);
        if let Some(ca) = ca {
            client = client.tls_certs_merge([ca]);
        }
        #[cfg(unix)]
        if let Some(path) = address.socket {
            client = client.unix_socket(path);
        }
        let (client, base, shown) = (client.build()?, address.base, address.shown);
        let (api, gate, name) = if agent == ANY {
            (CHECKS, None, name)
        } else {
            (DECISIONS, Some(api_url(&base, &["gate", &agent, &verb])), Some(agent))
        };
        let verb = Some(verb).filter(|verb| !verb.is_empty());
        Ok(Self { client, base, shown, api, gate, name, verb, limits, timeout, signer })
    }

    async fn request_decision(
        &self,
        segments: &[&str],
        mut question: Value,
        reply: &PaymentRequiredResponse,
    ) -> Result<CheckedDecision, Refusal> {
        question["name"] = json!(self.name);
        question["verb"] = json!(self.verb);
        question["limits"] = json!(self.limits);
        question["response"] = json!({
            "status": 402,
            "url": reply.url.as_str(),
            "headers": reply.headers,
            "body_base64": STANDARD.encode(&reply.body),
        });
        // The requested URL: the guard refuses the reply of another one. A decision uses the agent's route.
        if self.gate.is_none() {
            question["url"] = json!(reply.url.as_str());
        }
        let (began, body) = (Instant::now(), question.to_string());
        loop {
            let decision = self.request_decision_once(segments, &body).await?;
            if !decision.passing.is_empty() || !decision.codes.iter().any(|code| is_transient_code(code)) {
                return Ok(decision);
            }
            self.wait_before_retry(began).await?;
        }
    }

    async fn request_decision_once(&self, segments: &[&str], body: &str) -> Result<CheckedDecision, Refusal> {
        let accept = if self.signer.is_some() { "application/jose" } else { "application/json" };
        let request = self.client.post(api_url(&self.base, segments)).header(ACCEPT, accept);
        let request = request.header(CONTENT_TYPE, "application/json").body(body.to_owned());
        let answer = self.send_request(request).await?;
        if answer.status != StatusCode::OK {
            return Err(self.unavailable_refusal(&format!("status {}", answer.status.as_u16())));
        }
        let (name, verb) = (self.name.as_deref(), self.verb.as_deref());
        let decision = self.parse_decision_response(&answer.body, body.as_bytes());
        let decision = decision.and_then(|all| all.into_checked_decision(self.api.schema, name, verb));
        let decision = decision.map_err(|error| self.unavailable_refusal("invalid answer").with_cause(error))?;
        let now = SystemTime::now();
        let is_over = !decision.abort && decision.until.is_none_or(|until| until <= now);
        if is_over || !decision.passing.iter().all(|entry| entry.is_unexpired(now)) {
            return Err(self.unavailable_refusal("expired decision; check this machine's clock"));
        }
        Ok(decision)
    }

    /// Waits until the daemon may be asked again, or refuses if the time is over.
    async fn wait_before_retry(&self, began: Instant) -> Result<(), Refusal> {
        if began.elapsed() >= self.timeout {
            return Err(self.unavailable_refusal("timeout").with_cause(io::Error::from(ErrorKind::TimedOut)));
        }
        tokio::time::sleep(AGAIN_AFTER).await;
        Ok(())
    }

    fn parse_decision_response(&self, text: &[u8], asked: &[u8]) -> Result<DecisionDocument, InvalidDecisionError> {
        match &self.signer {
            None => DecisionDocument::from_unsigned_json(text),
            Some(signer) => DecisionDocument::from_jws(text, &signer.issuer, &signer.keys, asked, Timestamp::now()),
        }
    }

    async fn send_request(&self, request: RequestBuilder) -> Result<DaemonResponse, Refusal> {
        let failed = |error: reqwest::Error| self.unavailable_refusal(describe_request_error(&error)).with_cause(error);
        let mut response = request.send().await.map_err(failed)?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_ANSWER_BYTES {
                return Err(self.unavailable_refusal("answer longer than 256 KiB"));
            }
        }
        let code = response.headers().get("clresolve-code").and_then(|code| code.to_str().ok());
        Ok(DaemonResponse { status: response.status(), code: code.unwrap_or_default().to_owned(), body })
    }

    fn unavailable_refusal(&self, what: &str) -> Refusal {
        Refusal::daemon_unavailable(&self.shown, what)
    }
}

#[async_trait]
impl PaymentDecider for Daemon {
    async fn check_gate(&self) -> Result<(), Refusal> {
        let Some(url) = &self.gate else { return Ok(()) };
        let began = Instant::now();
        loop {
            let answer = self.send_request(self.client.get(url.clone())).await?;
            match answer.status {
                StatusCode::OK => return Ok(()),
                StatusCode::FORBIDDEN if is_transient_code(&answer.code) => self.wait_before_retry(began).await?,
                StatusCode::FORBIDDEN => return Err(Refusal::new(Why::Denied, [answer.code])),
                status => return Err(self.unavailable_refusal(&format!("status {}", status.as_u16()))),
            }
        }
    }

    async fn decide_payable_entries(&self, reply: &PaymentRequiredResponse) -> Result<PayableEntries, Refusal> {
        let decision = self.request_decision(self.api.terms, json!({}), reply).await?;
        PayableEntries::new(decision.passing).ok_or_else(|| Refusal::new(Why::Denied, decision.codes))
    }

    async fn confirm_signed_payment(
        &self,
        reply: &PaymentRequiredResponse,
        header: &str,
        entry: usize,
    ) -> Result<Value, Refusal> {
        let question = json!({"selected": entry, "header": header});
        let decision = self.request_decision(self.api.signed, question, reply).await?;
        if decision.abort {
            return Err(Refusal::new(Why::PaymentDenied, decision.codes));
        }
        // A decision that allows another entry does not allow this one.
        let is_about_it = matches!(decision.passing[..], [PayableEntry { entry: passing, .. }] if passing == entry);
        if is_about_it { Ok(decision.document) } else { Err(self.unavailable_refusal("invalid answer")) }
    }
}

/// The daemon's response; `code` is the gate's reason.
struct DaemonResponse {
    status: StatusCode,
    code: String,
    body: Vec<u8>,
}

/// What happened, in fixed words.
fn describe_request_error(error: &reqwest::Error) -> &'static str {
    if error.is_timeout() {
        return "timeout";
    }
    let causes = successors(error.source(), |&cause| cause.source());
    let mut kinds = causes.filter_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    let known = kinds.find_map(|kind| match kind {
        ErrorKind::ConnectionRefused => Some("connection refused; is `clresolve serve` running?"),
        ErrorKind::NotFound => Some("no such socket; is `clresolve serve` running?"),
        ErrorKind::PermissionDenied => Some("permission denied"),
        _ => None,
    });
    known.unwrap_or("connection failed")
}

fn is_transient_code(code: &str) -> bool {
    TRANSIENT.contains(&code)
}

/// The URL of a path of the daemon's API.
fn api_url(base: &Url, segments: &[&str]) -> Url {
    let mut url = base.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().push("v1").extend(segments);
    }
    url
}

/// Checks the parts of the normal form (ENSIP-15) that need no tables: no ASCII capitals, no spaces, no empty labels. A
/// name without a dot is a top-level domain, not an agent.
fn check_normalized_name(option: &'static str, name: &str) -> Result<(), ConfigError> {
    let spelt = name.split_whitespace().collect::<String>().to_ascii_lowercase();
    let mut labels: Vec<_> = spelt.split('.').filter(|label| !label.is_empty()).collect();
    match labels[..] {
        [] => return Err(ConfigError::Empty { option }),
        [ANY | WILDCARD] if option == "agent" => return Err(ConfigError::LikeAny),
        [_] => labels.push("eth"),
        _ => {}
    }
    let meant = labels.join(".");
    if name == meant { Ok(()) } else { Err(ConfigError::NotNormal { option, meant }) }
}

/// The address of the daemon.
struct DaemonAddress {
    base: Url,
    /// The configured URL, for messages.
    shown: String,
    /// The path of the Unix socket, if one is used for every request.
    #[cfg(unix)]
    socket: Option<String>,
}

impl DaemonAddress {
    /// Ensures that nobody on the network can change the daemon's responses unnoticed: requires https or signed
    /// decisions for another machine. A Unix socket is written as `unix:` and an absolute path.
    fn parse_daemon_url(daemon: &str, is_signed: bool) -> Result<Self, ConfigError> {
        #[cfg(unix)]
        if let Some(path) = daemon.strip_prefix("unix:").filter(|path| path.starts_with('/')) {
            let base = Url::parse("http://localhost").map_err(|_| ConfigError::Daemon)?;
            return Ok(Self { base, shown: daemon.to_owned(), socket: Some(path.to_owned()) });
        }
        let base = Url::parse(daemon).map_err(|_| ConfigError::NotUrl)?;
        let is_plain = base.username().is_empty() && base.password().is_none() && base.query().is_none();
        match base.scheme() {
            "http" | "https" if !is_plain || base.fragment().is_some() => Err(ConfigError::Daemon),
            "https" => Ok(Self::from_network_url(base)),
            "http" if is_signed || is_loopback(base.host_str().unwrap_or_default()) => Ok(Self::from_network_url(base)),
            "http" => Err(ConfigError::Exposed),
            _ => Err(ConfigError::NotUrl),
        }
    }

    fn from_network_url(base: Url) -> Self {
        Self {
            shown: base.as_str().trim_end_matches('/').to_owned(),
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
