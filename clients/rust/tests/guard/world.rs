//! The world of `../testing`, for the tests of this crate.

use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clresolve_guard::{Config, Daemon, Guard};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// The stand-in daemon and the sellers. They end with the value.
pub(crate) struct World {
    pub(crate) at: Addresses,
    http: reqwest::Client,
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
    pub(crate) async fn start() -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../testing/world.mjs");
        let node = std::env::var("NODE").unwrap_or_else(|_| "node".to_owned());
        let mut process = Command::new(node)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("node runs");
        let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let line = lines.next_line().await.expect("a line").expect("a line");
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        Self { at: serde_json::from_str(&line).expect("addresses"), http, _process: process }
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

    /// A payment header for the terms of the cases, as far as the stand-in reads one. Nobody signed it.
    pub(crate) fn payment(&self, change: Value) -> String {
        let mut authorization = json!({"to": self.at.honest, "value": "10000", "validBefore": "0"});
        for (name, value) in change.as_object().into_iter().flatten() {
            authorization[name] = value.clone();
        }
        let payload = json!({"authorization": authorization, "signature": "0x"});
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
    world: &'a World,
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
