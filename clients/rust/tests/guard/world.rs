//! The world of `../testing`, for the tests of this crate, and who decides in it.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use alloy_primitives::{Address, B256, U256};
use alloy_signer::SignerSync as _;
use alloy_signer_local::PrivateKeySigner;
use alloy_sol_types::{SolStruct as _, eip712_domain, sol};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clresolve_guard::{Config, Daemon, Guard, InProcess, Paid};
use clresolve_resolver::Resolver;
use clresolve_resolver::sandbox::Sandbox;
use reqwest_middleware::Middleware;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// The first development account of anvil and hardhat: everybody has its key.
pub(crate) const PAYER_KEY: &str = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";

/// How long a payment may be cashed, as the sellers ask.
const PAYMENT_LIVES: Duration = Duration::from_secs(60);

sol! {
    /// What EIP-3009 signs.
    struct TransferWithAuthorization {
        address from;
        address to;
        uint256 value;
        uint256 validAfter;
        uint256 validBefore;
        bytes32 nonce;
    }
}

/// Who decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// The stand-in daemon.
    Daemon,
    /// A resolver in this process, over the embedded world: the agent of the same name pays into the same account.
    Resolver,
}

/// The stand-in daemon, the sellers and the embedded world. They end with the value.
pub(crate) struct World {
    pub(crate) at: Addresses,
    http: reqwest::Client,
    kept: Arc<Mutex<Vec<Paid>>>,
    sandbox: Option<Sandbox>,
    _process: Child,
}

#[derive(Deserialize)]
pub(crate) struct Addresses {
    pub(crate) agent: String,
    pub(crate) thief: String,
    pub(crate) daemon: String,
    pub(crate) secure: String,
    pub(crate) socket: String,
    pub(crate) ca: String,
    pub(crate) jwks: Value,
    pub(crate) issuer: String,
    pub(crate) name: String,
    pub(crate) verb: String,
    pub(crate) honest: String,
    pub(crate) stranger: String,
    pub(crate) asset: String,
    /// What a guard hands on of the challenges of several protocols.
    pub(crate) kept: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Payment {
    pub(crate) seller: String,
    pub(crate) to: String,
    pub(crate) value: String,
    #[serde(rename = "validBefore")]
    pub(crate) valid_before: f64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Arrived {
    pub(crate) requests: usize,
    pub(crate) payments: Vec<Payment>,
}

impl World {
    /// A world in which the daemon decides.
    pub(crate) async fn start() -> Self {
        Self::started(By::Daemon).await
    }

    pub(crate) async fn started(by: By) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../testing/world.mjs");
        let node = std::env::var("NODE").unwrap_or_else(|_| "node".to_owned());
        let mut process =
            Command::new(node).arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("node runs");
        let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let line = lines.next_line().await.expect("a line").expect("a line");
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        let sandbox = match by {
            By::Daemon => None,
            By::Resolver => Some(Sandbox::start().await.expect("it starts")),
        };
        let at = serde_json::from_str(&line).expect("addresses");
        Self { at, http, kept: Arc::default(), sandbox, _process: process }
    }

    /// A purchase of its own, by this identifier.
    pub(crate) fn purchase(&self, which: &str, id: &str) -> Purchase<'_> {
        Purchase { world: self, url: format!("{}/agent/{which}?id={id}", self.at.agent), id: id.to_owned() }
    }

    /// A configuration; `fault` is one of the stand-in's, such as `signed.503`.
    pub(crate) fn config(&self, fault: &str) -> Config {
        let daemon = format!("{}/{fault}", self.at.daemon);
        let mut config = Config::new(daemon.trim_end_matches('/'), self.at.name.as_str(), self.at.verb.as_str());
        config.timeout = Duration::from_secs(2);
        config
    }

    pub(crate) fn guard(&self, fault: &str) -> Guard<Daemon> {
        guard(self.config(fault))
    }

    /// A guard for purchases from this agent at this URL. The daemon or the resolver of this world decides.
    pub(crate) async fn guard_for(&self, agent: &str, url: &str) -> Arc<dyn Middleware> {
        if self.sandbox.is_none() {
            return Arc::new(guard(Config { agent: agent.to_owned(), ..self.config("") }).on_paid(self.keeps()));
        }
        let resolver = Resolver::new(&self.config_for(agent, url)).await.expect("its configuration is good");
        let decides = InProcess::new(resolver, agent, &*self.at.verb);
        let guard = Guard::new(decides, reqwest::Client::builder().no_proxy()).expect("a client");
        Arc::new(guard.on_paid(self.keeps()))
    }

    fn keeps(&self) -> impl Fn(&Paid) + Send + Sync + use<> {
        let kept = Arc::clone(&self.kept);
        move |paid| kept.lock().expect("nobody panics").push(paid.clone())
    }

    /// What the guards of `guard_for` handed out since this was asked.
    pub(crate) fn kept(&self) -> Vec<Paid> {
        std::mem::take(&mut self.kept.lock().expect("nobody panics"))
    }

    /// The embedded world as a resolver reads it, with an agent that is called at this URL.
    pub(crate) fn config_for(&self, agent: &str, url: &str) -> clresolve_resolver::Config {
        let mut config = self.sandbox.as_ref().expect("it is embedded").config();
        let route = url.split('?').next().unwrap_or_default();
        config.routes.insert(agent.to_owned(), route.to_owned());
        config
    }

    /// A payment header for the terms of the cases, with this change, signed by the payer.
    pub(crate) fn payment(&self, change: Value) -> String {
        let payer: PrivateKeySigner = PAYER_KEY.parse().expect("a key");
        let end = SystemTime::now() + PAYMENT_LIVES;
        let seconds = end.duration_since(SystemTime::UNIX_EPOCH).expect("it is later").as_secs();
        let given = |name: &str, default: String| change[name].as_str().map_or(default, str::to_owned);
        let number = |text: String| text.parse::<U256>().expect("a number");
        let message = TransferWithAuthorization {
            from: payer.address(),
            to: given("to", self.at.honest.clone()).parse().expect("an address"),
            value: number(given("value", "10000".to_owned())),
            validAfter: U256::ZERO,
            validBefore: number(given("validBefore", seconds.to_string())),
            nonce: B256::ZERO,
        };
        let token: Address = self.at.asset.parse().expect("an address");
        let domain = eip712_domain! { name: "USDC", version: "2", chain_id: 84_532, verifying_contract: token, };
        let signature = payer.sign_hash_sync(&message.eip712_signing_hash(&domain)).expect("it signs");
        let authorization = json!({
            "from": message.from,
            "to": message.to,
            "value": message.value.to_string(),
            "validAfter": "0",
            "validBefore": message.validBefore.to_string(),
            "nonce": message.nonce,
        });
        let payload = json!({"authorization": authorization, "signature": signature.to_string()});
        STANDARD.encode(json!({"x402Version": 2, "payload": payload}).to_string())
    }

    async fn read<T: serde::de::DeserializeOwned>(&self, url: &str) -> T {
        let answer = self.http.get(url).send().await.expect("an answer").bytes().await.expect("a body");
        serde_json::from_slice(&answer).expect("what was asked for")
    }
}

pub(crate) fn guard(config: Config) -> Guard<Daemon> {
    let daemon = Daemon::new(config).expect("a configuration");
    Guard::new(daemon, reqwest::Client::builder().no_proxy()).expect("a client")
}

pub(crate) struct Purchase<'a> {
    pub(crate) world: &'a World,
    pub(crate) url: String,
    id: String,
}

impl Purchase<'_> {
    /// What reached the honest seller and the thief.
    pub(crate) async fn arrived(&self) -> Arrived {
        let Addresses { agent, thief, .. } = &self.world.at;
        let mut total: Arrived = self.world.read(&format!("{agent}/~ledger?id={}", self.id)).await;
        let other: Arrived = self.world.read(&format!("{thief}/~ledger?id={}", self.id)).await;
        total.requests += other.requests;
        total.payments.extend(other.payments);
        total
    }

    /// For whom the payments are that arrived.
    pub(crate) async fn paid(&self) -> Vec<String> {
        self.arrived().await.payments.into_iter().map(|payment| payment.to).collect()
    }

    /// The questions about it that the daemon was asked.
    pub(crate) async fn asked(&self) -> Vec<Value> {
        self.world.read(&format!("{}/~asked?id={}", self.world.at.daemon, self.id)).await
    }
}
