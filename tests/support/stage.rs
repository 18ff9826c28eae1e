//! The world that all scenarios share, and the ways to ask it: through the library, the program and the daemon.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use clresolve_core::digest::Digest;
use clresolve_core::name::EnsName;
use clresolve_core::state::TrustState;
use clresolve_resolver::clock::Clock;
use clresolve_resolver::config::{BlockSelector, Config, RpcEndpointConfig, SchemaManifestSource};
use clresolve_resolver::fetch::https::{self, FetchLimits};
use clresolve_resolver::fetch::{Egress, EgressConfig};
use clresolve_resolver::memory::{MemoryFile, NameHistoryKey};
use clresolve_resolver::resolve::Resolver;
use clresolve_resolver::sandbox::CustomSandbox;
use clresolve_sandbox::SandboxRequestCounts;
use clresolve_server::http::HttpDaemon;
use clresolve_verdict::card::AgentCard;
use clresolve_verdict::evidence::continuity::NameObservation;
use clresolve_verdict::evidence::edition::CardSuccessionFacts;
use futures_util::StreamExt as _;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::process::Command;
use tokio::runtime::Runtime;
use tokio::sync::{Mutex, OnceCell};
use tokio::task::JoinHandle;

use super::judge;
use super::scenario::{Ask, Case, Rpc, Scenarios, Seen, Setting, load};

/// Questions asked at the same time.
const AT_ONCE: usize = 8;

/// Default time limit of a question, long enough for a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Names that one run of the program is asked for.
const NAMES_PER_RUN: usize = 32;

/// The file of a manifest without a CID.
const WITHOUT_CID: &str = "commercial.json";

/// The runtime that the world lives in, longer than any single test.
pub(crate) static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("threads can be had"));

static STAGE: OnceCell<Stage> = OnceCell::const_new();

/// What the program printed about one name.
pub(crate) struct Printed {
    pub(crate) verdict: Value,
    /// Its exit code; none if it was asked for several names.
    pub(crate) code: Option<i32>,
}

/// The shared world. One user at a time, since requests are counted.
pub(crate) struct Stage {
    pub(crate) scenarios: Scenarios,
    pub(crate) world: CustomSandbox,
    endpoints: Mutex<Vec<(Rpc, RpcEndpointConfig)>>,
    /// Files of memories, and those that are held open so that no other process can open them.
    memories: Mutex<Vec<(tempfile::TempDir, Option<MemoryFile>)>>,
    /// The folder with the manifest of the commercial schemas without their CID.
    without_cid: OnceCell<tempfile::TempDir>,
    turn: Mutex<()>,
    library: OnceCell<BTreeMap<String, Value>>,
}

/// Runs `test` on the shared world, when no other test does.
pub(crate) fn on_stage<F: Future<Output = ()>>(test: impl FnOnce(&'static Stage) -> F) {
    RUNTIME.block_on(async {
        let stage = STAGE.get_or_init(Stage::new).await;
        let _turn = stage.turn.lock().await;
        test(stage).await;
    });
}

impl Stage {
    async fn new() -> Self {
        let scenarios = load();
        let world = CustomSandbox::start(&scenarios.spec).await.unwrap_or_else(|error| panic!("{error}"));
        Self {
            scenarios,
            world,
            endpoints: Mutex::default(),
            memories: Mutex::default(),
            without_cid: OnceCell::new(),
            turn: Mutex::default(),
            library: OnceCell::new(),
        }
    }

    /// The configuration of a question.
    pub(crate) async fn config(&self, setting: &Setting) -> Config {
        let mut config = self.world.config();
        if !setting.rpc.is_empty() {
            config.chain.endpoints.clear();
        }
        for (place, rpc) in setting.rpc.iter().enumerate() {
            let alike = setting.rpc[..place].iter().filter(|other| *other == rpc).count();
            config.chain.endpoints.push(self.endpoint(rpc, alike).await);
        }
        config.chain.proof = setting.proof;
        (config.chain.quorum, config.chain.header) = (setting.quorum, setting.header);
        if !setting.beacon.is_empty() {
            config.beacon.endpoints.clear();
        }
        for behaviour in &setting.beacon {
            let endpoint = self.world.start_beacon_endpoint(*behaviour).await;
            config.beacon.endpoints.push(endpoint.unwrap_or_else(|error| panic!("{error}")));
        }
        if !setting.gateways.is_empty() {
            config.gateways = setting.gateways.iter().map(|behaviour| self.world.ipfs_gateway(*behaviour)).collect();
        }
        if let Some(profile) = &setting.profile {
            config.rules.profile.clone_from(profile);
        }
        if setting.commercial_without_cid {
            self.take_out_cid(&mut config).await;
        }
        config.rules.depth = setting.depth.unwrap_or(config.rules.depth);
        config.chain.block = setting.block.unwrap_or(config.chain.block);
        config.chain.ccip_read = setting.ccip_read.unwrap_or(config.chain.ccip_read);
        config.timeout = setting.timeout.unwrap_or(PATIENCE);
        config.rules.require_all_sources = setting.require_all_sources;
        config.rules.allowed_publishers.clone_from(&setting.allowed_publishers);
        config.memory.record_rest = setting.record_rest.unwrap_or(config.memory.record_rest);
        if let Some(deny) = &setting.deny {
            config.gate.deny.clone_from(deny);
        }
        config.gate.verbs = setting.gate_verbs;
        if let Some(remembered) = &setting.memory {
            self.remember(&mut config, remembered, setting.memory_in_use).await;
        }
        config
    }

    /// Replaces the manifest of the commercial schemas by one that has no CID of them.
    async fn take_out_cid(&self, config: &mut Config) {
        let written = async || {
            let mut urls = config.rules.manifests.iter().filter_map(|source| match source {
                SchemaManifestSource::Url { url, .. } => Some(url),
                _ => None,
            });
            let url =
                urls.find(|url| url.path().ends_with("/protocol-commercial-1.0.0.json")).expect("it is published");
            let egress = Egress::new(EgressConfig {
                connect_to: config.network.connect_to.clone(),
                extra_roots: config.network.ca_pems.iter().map(|pem| pem.clone().into()).collect(),
                ..EgressConfig::default()
            });
            let limits = FetchLimits { total: PATIENCE, ..FetchLimits::for_card() };
            let published = https::fetch_document(&egress.expect("the world's egress"), url.as_str(), limits).await;
            let mut manifest: Value = serde_json::from_slice(&published.expect("it is served").bytes).expect("JSON");
            manifest.as_object_mut().and_then(|members| members.remove("directory_cid")).expect("it has a CID");
            let folder = tempfile::tempdir().expect("a temporary folder");
            std::fs::write(folder.path().join(WITHOUT_CID), manifest.to_string()).expect("the folder can be written");
            folder
        };
        let file = self.without_cid.get_or_init(written).await.path().join(WITHOUT_CID);
        config.rules.manifests.push(SchemaManifestSource::File(file));
    }

    /// Gives the configuration a memory of its own.
    async fn remember(&self, config: &mut Config, remembered: &BTreeMap<String, Vec<Seen>>, in_use: bool) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("memory");
        let store = MemoryFile::open(&path, config.memory.names).expect("a new file");
        for (name, sightings) in remembered {
            let key = NameHistoryKey::new(&config.chain.world, config.chain.id, &EnsName::parse(name).expect("a name"));
            for seen in sightings {
                let digest = |text: &String| Digest::compute(text.as_bytes()).to_string();
                let records = seen.records.iter().map(|(key, value)| (key.clone(), digest(value))).collect();
                let card = Some((seen.version.clone(), digest(&seen.card)));
                let edition = seen.edition.as_ref().map(|document| {
                    let bytes = document.to_string();
                    let card = AgentCard::parse(bytes.as_bytes()).expect("a card");
                    CardSuccessionFacts::from_card(&card, Digest::compute(bytes.as_bytes()))
                });
                store
                    .remember_observation(&key, &NameObservation { block: seen.block, card, records, edition })
                    .expect("the disk has room");
            }
        }
        config.memory.path = Some(path);
        self.memories.lock().await.push((folder, in_use.then_some(store)));
    }

    /// An endpoint for `rpc`, other than the `before` ones for equal data.
    async fn endpoint(&self, rpc: &Rpc, before: usize) -> RpcEndpointConfig {
        let mut endpoints = self.endpoints.lock().await;
        if let Some((_, endpoint)) = endpoints.iter().filter(|(known, _)| known == rpc).nth(before) {
            return endpoint.clone();
        }
        let mut endpoint =
            self.world.start_rpc_endpoint(rpc.fault, rpc.state, rpc.own).await.expect("a port can be had");
        if let Some(operator) = &rpc.operator {
            endpoint.operator.clone_from(operator);
        }
        endpoints.push((rpc.clone(), endpoint.clone()));
        endpoint
    }

    /// A resolver for a question.
    pub(crate) async fn resolver(&self, setting: &Setting) -> Resolver {
        let config = self.config(setting).await;
        Resolver::new(&config).await.unwrap_or_else(|error| panic!("{error}: {setting:?}"))
    }

    /// The verdict on every case through the library, by the case's id. Asked once.
    pub(crate) async fn library(&'static self) -> &'static BTreeMap<String, Value> {
        self.library.get_or_init(|| self.ask_all()).await
    }

    async fn ask_all(&'static self) -> BTreeMap<String, Value> {
        let shared = self.resolver(&Setting::default()).await;
        let counted = |case: &&Case| case.ask.session.is_some() || !case.ask.counts.is_empty();
        let free = self.scenarios.cases.iter().filter(|case| !counted(case));
        let mut verdicts: BTreeMap<String, Value> = futures_util::stream::iter(free)
            .map(|case| {
                let shared = shared.clone();
                tokio::spawn(async move {
                    let resolver = if case.alone { self.resolver(&case.ask.setting).await } else { shared };
                    (case.id.clone(), ask(&resolver, &case.ask).await)
                })
            })
            .buffer_unordered(AT_ONCE)
            .map(|asked| asked.unwrap_or_else(|error| panic!("{error}")))
            .collect()
            .await;

        let mut sessions: HashMap<&str, (Resolver, Arc<Shifted>)> = HashMap::new();
        for case in self.scenarios.cases.iter().filter(counted) {
            let (resolver, clock) = match case.ask.session.as_deref().and_then(|session| sessions.get(session)) {
                Some(known) => known.clone(),
                None => {
                    let clock = Arc::new(Shifted::default());
                    let config = self.config(&case.ask.setting).await;
                    let resolver = Resolver::with_clock(&config, Arc::clone(&clock) as Arc<dyn Clock>).await;
                    (resolver.unwrap_or_else(|error| panic!("{error}: {}", case.id)), clock)
                }
            };
            clock.0.store(case.ask.at, Ordering::Relaxed);
            let before = self.world.request_counts();
            let mut verdict = ask(&resolver, &case.ask).await;
            verdict["counts"] = counts(before, self.world.request_counts());
            verdicts.insert(case.id.clone(), verdict);
            if let Some(session) = &case.ask.session {
                sessions.insert(session, (resolver, clock));
            }
        }
        verdicts
    }

    /// The responses of a daemon for every case that can be asked over HTTP, by the case's id.
    pub(crate) async fn http(&'static self) -> BTreeMap<String, DaemonResponse> {
        let shared = &self.daemon(&Setting::default()).await;
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let cases = self.scenarios.cases.iter().filter(|case| is_for_http(case));
        futures_util::stream::iter(cases)
            .map(|case| {
                let client = client.clone();
                async move {
                    let own = if case.alone { Some(self.daemon(&case.ask.setting).await) } else { None };
                    let address = own.as_ref().unwrap_or(shared).address;
                    (case.id.clone(), over_http(&client, address, &case.ask.name).await)
                }
            })
            .buffer_unordered(AT_ONCE)
            .collect()
            .await
    }

    /// Starts a daemon for a question.
    pub(crate) async fn daemon(&self, setting: &Setting) -> Daemon {
        let mut config = self.config(setting).await;
        config.http.listen = clresolve_resolver::config::ListenAddress::loopback(0);
        config.http.cold_runs_per_minute = u32::MAX;
        config.gate.deadline = PATIENCE;
        // The requests to the world are counted, so none may come from a poll.
        config.chain.head_poll = Duration::from_secs(3600);
        let server = HttpDaemon::bind(&config).await.unwrap_or_else(|error| panic!("{error}: {setting:?}"));
        let address = server.address().tcp_address().expect("an address and a port");
        Daemon { address, serving: tokio::spawn(server.run(std::future::pending())) }
    }

    /// The verdict on every case without a session through the program, by the case's id, with its exit code.
    pub(crate) async fn program(&self, folder: &Path) -> BTreeMap<String, Printed> {
        let cases = self.scenarios.cases.iter().filter(|case| case.ask.session.is_none());
        let (alone, together): (Vec<&Case>, Vec<&Case>) = cases.partition(|case| case.alone);
        let mut runs: Vec<(PathBuf, Vec<&Case>)> = Vec::new();
        let shared = folder.join("shared.toml");
        self.config(&Setting::default()).await.save(&shared).expect("the folder can be written");
        runs.extend(together.chunks(NAMES_PER_RUN).map(|cases| (shared.clone(), cases.to_vec())));
        for (number, case) in alone.into_iter().enumerate() {
            let path = folder.join(format!("{number}.toml"));
            self.config(&case.ask.setting).await.save(&path).expect("the folder can be written");
            runs.push((path, vec![case]));
        }
        let done: Vec<Vec<(String, Printed)>> = futures_util::stream::iter(runs)
            .map(|(config, cases)| async move {
                let names: Vec<&str> = cases.iter().map(|case| case.ask.name.as_str()).collect();
                let config = config.display().to_string();
                let (verdicts, code) = program(&["--config", &config], &names).await;
                let code = if cases.len() == 1 { code } else { None };
                let verdicts = match verdicts {
                    Value::Array(verdicts) => verdicts,
                    one => vec![one],
                };
                cases.iter().zip(verdicts).map(|(case, verdict)| (case.id.clone(), Printed { verdict, code })).collect()
            })
            .buffer_unordered(4)
            .collect()
            .await;
        done.into_iter().flatten().collect()
    }
}

/// A running daemon. It ends when this is dropped: each holds connections to the world, which serves a bounded number.
pub(crate) struct Daemon {
    pub(crate) address: SocketAddr,
    serving: JoinHandle<()>,
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Whether a case can be asked over HTTP, which offers no numbered block.
pub(crate) fn is_for_http(case: &Case) -> bool {
    case.ask.session.is_none() && !matches!(case.ask.setting.block, Some(BlockSelector::Number(_)))
}

/// The responses of a daemon.
pub(crate) struct DaemonResponse {
    pub(crate) verdict: Value,
    /// Status and `Clresolve-State` of its gate.
    pub(crate) gate: (u16, String),
}

/// Asks the daemon about `name`: the report face, then the gate.
async fn over_http(client: &reqwest::Client, address: SocketAddr, name: &str) -> DaemonResponse {
    let segment: String = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let get = |face: &str| client.get(format!("http://{address}/v1/{face}/{segment}")).send();
    let report = get("verdicts").await.expect("an answer");
    assert_eq!(report.status(), 200, "{name}");
    let body = report.bytes().await.expect("a whole answer");
    let gate = get("gate").await.expect("an answer");
    let state = gate.headers().get("clresolve-state").and_then(|state| state.to_str().ok()).unwrap_or_default();
    DaemonResponse {
        verdict: serde_json::from_slice(&body).expect("JSON"),
        gate: (gate.status().as_u16(), state.to_owned()),
    }
}

/// The code with which `clresolve gate` denies, if it does.
pub(crate) async fn gate(config: &Path, name: &str, verb: Option<&str>, network: Option<&str>) -> Option<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clresolve"));
    command.args(["gate", "-o", "json", "--config"]).arg(config).arg(name).args(verb);
    command.args(network.map(|network| format!("--network={network}")));
    let output = command.env_clear().stdin(Stdio::null()).output().await.expect("the program starts");
    let said: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{name}: {error}\n{}", String::from_utf8_lossy(&output.stderr)));
    let code = said["code"].as_str().map(str::to_owned);
    assert_eq!(output.status.code(), Some(i32::from(code.is_some())), "{name}");
    assert_eq!(said["decision"], if code.is_some() { "deny" } else { "allow" }, "{name}");
    code
}

/// The code with which the daemon's gate denies, if it does.
pub(crate) async fn gate_over_http(
    client: &reqwest::Client,
    daemon: SocketAddr,
    name: &str,
    verb: Option<&str>,
    network: Option<&str>,
) -> Option<String> {
    let verb = verb.map(|verb| format!("/{verb}")).unwrap_or_default();
    let query = network.map(|network| format!("?network={network}")).unwrap_or_default();
    let answer = client.get(format!("http://{daemon}/v1/gate/{name}{verb}{query}")).send().await.expect("an answer");
    let code = answer.headers().get("clresolve-code").map(|code| code.to_str().expect("ASCII").to_owned());
    assert_eq!(answer.status(), if code.is_some() { 403 } else { 200 }, "{name}");
    code
}

/// The program's verdicts on `names`, as JSON, and its exit code.
pub(crate) async fn program(options: &[&str], names: &[&str]) -> (Value, Option<i32>) {
    let output = Command::new(env!("CARGO_BIN_EXE_clresolve"))
        .arg("verify")
        .args(options)
        .args(["-o", "json", "--"])
        .args(names)
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .await
        .expect("the program starts");
    let value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "{names:?}: {error}\n{}\n{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    });
    (value, output.status.code())
}

/// The exit code that the command line promises for a state.
pub(crate) fn exit_code(state: TrustState) -> i32 {
    match state {
        TrustState::Trusted => 0,
        TrustState::Untrusted => 1,
        TrustState::Indeterminate => 3,
    }
}

/// The verdict as JSON. Panics when a rule that holds for all verdicts is broken.
pub(crate) async fn ask(resolver: &Resolver, ask: &Ask) -> Value {
    let resolution = resolver.resolve(&ask.name).await;
    let verdict = resolution.verdict();
    assert!(verdict.has_valid_digests(), "{}: id and conclusion are the hashes of the verdict", ask.name);
    assert_eq!(
        resolution.card_bytes().is_some(),
        verdict.state == TrustState::Trusted,
        "{}: a card is handed out with a trusted verdict, and with no other (CL-66)",
        ask.name
    );
    serde_json::to_value(&**verdict).expect("a verdict has a JSON form")
}

/// Problems of all cases, as a table.
pub(crate) fn table<'c>(
    cases: impl IntoIterator<Item = &'c Case>,
    verdict: impl Fn(&Case) -> Option<Value>,
) -> Vec<String> {
    let mut lines = Vec::new();
    for case in cases {
        let found = match verdict(case) {
            Some(verdict) => judge::problems(&case.ask, &verdict),
            None => vec!["no verdict".to_owned()],
        };
        lines.extend(found.into_iter().map(|problem| format!("{}\n    ({})\n    {problem}", case.id, case.ask.about)));
    }
    lines
}

fn counts(before: SandboxRequestCounts, after: SandboxRequestCounts) -> Value {
    serde_json::json!({
        "https": after.https - before.https,
        "gateway": after.gateway - before.gateway,
        "rpc": after.rpc - before.rpc,
        "ccip": after.ccip - before.ccip,
        "schemas": after.schemas - before.schemas,
    })
}

/// The time of the machine, shifted by some seconds.
#[derive(Default)]
struct Shifted(AtomicI64);

impl Clock for Shifted {
    fn now(&self) -> Timestamp {
        Timestamp::now() + SignedDuration::from_secs(self.0.load(Ordering::Relaxed))
    }
}
