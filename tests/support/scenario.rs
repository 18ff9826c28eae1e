//! Scenarios as data: `tests/scenarios/*.toml` and the sandbox's own agents.
//!
//! A file holds agents in the format of the sandbox (`crates/sandbox/src/spec.rs`) and questions. An agent with a
//! `state` is a question of its own, asked with the defaults. All files share one world, so names are unique over all
//! of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use clresolve_core::reading::BlockSelector;
use clresolve_core::reason::ReasonCode;
use clresolve_core::state::{TrustState, TrustStateUnderOtherProfile};
use clresolve_resolver::config::{BlockHeaderProofMode, ChainProofMode};
use clresolve_sandbox::beacon::SandboxBeaconBehaviour;
use clresolve_sandbox::chain::SandboxRpcFault;
use clresolve_sandbox::spec::{CardlessNameSpec, DefectiveSchema, SandboxAgentSpec, SandboxSpec};
use clresolve_sandbox::{IpfsGatewayBehaviour, ServedChainState};
use clresolve_verdict::gate::{DENIED_BY_DEFAULT, GateVerbs};
use clresolve_verdict::verdict::{ResolutionDepth, StepStatus};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// One scenario file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// The common topic of the scenarios.
    title: String,
    #[serde(default, rename = "agent")]
    agents: Vec<SandboxAgentSpec>,
    #[serde(default, rename = "name")]
    names: Vec<CardlessNameSpec>,
    #[serde(default, rename = "schema")]
    schemas: Vec<DefectiveSchema>,
    #[serde(default, rename = "ask")]
    asks: Vec<Ask>,
}

/// A question and its expected verdict.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ask {
    /// What the scenario shows, in one sentence.
    pub(crate) about: String,
    /// The rules of the conformance checklist that it covers.
    #[serde(default)]
    pub(crate) requirements: Vec<String>,
    /// The name as typed by a user.
    pub(crate) name: String,
    /// How this resolution differs from the defaults.
    #[serde(default, rename = "with")]
    pub(crate) setting: Setting,
    /// Questions of one session share a resolver and its cache. They are asked in the order of the file.
    pub(crate) session: Option<String>,
    /// Seconds since the start of the session.
    #[serde(default)]
    pub(crate) at: i64,
    /// The expected state.
    pub(crate) state: TrustState,
    /// The exact set of codes, including warnings.
    #[serde(default)]
    pub(crate) codes: BTreeSet<ReasonCode>,
    /// The exact set of profiles under which the state would differ.
    #[serde(default)]
    pub(crate) near_misses: Vec<TrustStateUnderOtherProfile>,
    /// Expected values in the verdict, by JSON Pointer.
    #[serde(default)]
    pub(crate) evidence: BTreeMap<String, Value>,
    /// JSON Pointers whose target is missing or null.
    #[serde(default)]
    pub(crate) absent: Vec<String>,
    /// The expected status of these steps.
    #[serde(default)]
    pub(crate) steps: BTreeMap<String, StepStatus>,
    /// The exact locations of the reasons with a code, in alphabetical order.
    #[serde(default)]
    pub(crate) places: BTreeMap<ReasonCode, Vec<String>>,
    /// The exact number of requests, for each listed kind.
    #[serde(default)]
    pub(crate) counts: BTreeMap<String, u64>,
    /// The exact set of incidents in the log.
    pub(crate) incidents: Option<Vec<ReasonCode>>,
    /// Whether the daemon's gate refuses the name although it is trusted, because its endpoints agree on no head.
    #[serde(default)]
    pub(crate) is_headless: bool,
    /// The expected decisions of the gate.
    #[serde(default)]
    pub(crate) gate: Vec<Decision>,
}

/// A question to the gate and the expected answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Decision {
    /// The verb to call.
    pub(crate) verb: Option<String>,
    /// The network of the payment.
    pub(crate) network: Option<String>,
    /// The code of the objection; `None` if the gate allows the request.
    pub(crate) code: Option<String>,
}

/// How a resolution differs from the defaults.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Setting {
    /// Endpoints that replace those of the sandbox.
    pub(crate) rpc: Vec<Rpc>,
    /// Beacon endpoints that replace the one of the sandbox.
    pub(crate) beacon: Vec<SandboxBeaconBehaviour>,
    /// Gateways that replace the one of the sandbox.
    pub(crate) gateways: Vec<IpfsGatewayBehaviour>,
    /// The profile, if not the default one.
    pub(crate) profile: Option<String>,
    /// The depth, if not the default one.
    pub(crate) depth: Option<ResolutionDepth>,
    /// The manifest of the commercial schemas contains no CIDs, like the published one.
    pub(crate) commercial_without_cid: bool,
    /// The block, if not the default one.
    #[serde(deserialize_with = "block")]
    pub(crate) block: Option<BlockSelector>,
    /// Whether both sources must answer.
    pub(crate) require_all_sources: bool,
    /// Owners whose commons cards are accepted.
    pub(crate) allowed_publishers: Vec<String>,
    /// Whether CCIP-Read gateways may be asked, if not the default.
    pub(crate) ccip_read: Option<bool>,
    /// A memory with these observations, by name.
    pub(crate) memory: Option<BTreeMap<String, Vec<Seen>>>,
    /// Whether another process holds the memory's file.
    pub(crate) memory_in_use: bool,
    /// The number of blocks for which a record must be unchanged.
    pub(crate) record_rest: Option<u64>,
    /// Warnings on which the gate refuses, if not the default ones.
    pub(crate) deny: Option<Vec<ReasonCode>>,
    /// The verbs that the gate allows.
    pub(crate) gate_verbs: GateVerbs,
    /// The demanded proof, if not the default one.
    #[serde(deserialize_with = "proof")]
    pub(crate) proof: Option<ChainProofMode>,
    /// Who must vouch for the header, if not the default.
    #[serde(deserialize_with = "header")]
    pub(crate) header: Option<BlockHeaderProofMode>,
    /// How many operators must agree.
    pub(crate) quorum: Option<usize>,
    /// The time limit, if not the default one.
    #[serde(deserialize_with = "duration")]
    pub(crate) timeout: Option<Duration>,
}

/// An observation of a name by an earlier resolution.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Seen {
    /// The block number.
    pub(crate) block: u64,
    /// The card's version.
    pub(crate) version: String,
    /// A text whose digest is the digest of the card.
    pub(crate) card: String,
    /// Members of the card that later cards are compared with.
    pub(crate) edition: Option<Value>,
    /// Values of records, by key.
    #[serde(default)]
    pub(crate) records: BTreeMap<String, String>,
}

/// One endpoint.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Rpc {
    /// How it fails.
    pub(crate) fault: SandboxRpcFault,
    /// What it reads.
    pub(crate) state: ServedChainState,
    /// Whether it is trusted alone.
    pub(crate) own: bool,
    /// Its operator. None: one of its own.
    pub(crate) operator: Option<String>,
}

/// A question of some file.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// File, number and name: what a person looks for when the case fails.
    pub(crate) id: String,
    /// The question.
    pub(crate) ask: Ask,
    /// Whether it needs a resolver of its own: a gateway that misbehaves is remembered.
    pub(crate) alone: bool,
}

/// Every scenario.
pub(crate) struct Scenarios {
    /// The world that they share.
    pub(crate) spec: SandboxSpec,
    /// The questions, in the order of the files.
    pub(crate) cases: Vec<Case>,
    /// The rules that scenarios and agents name.
    pub(crate) requirements: BTreeSet<String>,
}

/// Reads every file.
pub(crate) fn load() -> Scenarios {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sandbox = root.join("crates/sandbox/src/agents.toml");
    let text = std::fs::read_to_string(&sandbox).expect("the sandbox's agents are in the repository");
    let mut all = Scenarios { spec: SandboxSpec::default(), cases: Vec::new(), requirements: BTreeSet::new() };
    all.add(
        "sandbox",
        SandboxSpec::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", sandbox.display())),
        Vec::new(),
    );

    let folder = root.join("tests/scenarios");
    let entries = std::fs::read_dir(&folder).expect("the scenarios are in the repository");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    files.sort();
    for path in files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "toml")) {
        let text = std::fs::read_to_string(path).expect("a readable file");
        let file: File = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(!file.title.is_empty(), "{}: a file has a title", path.display());
        let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("a name in ASCII");
        let spec = SandboxSpec {
            agents: file.agents,
            names: file.names,
            schemas: file.schemas,
            planned: Vec::new(),
            ..SandboxSpec::default()
        };
        all.add(stem, spec, file.asks);
    }
    all.check();
    // One scenario in the whole world, by its name or its sentence: for a look at it, and for the run of mutants.
    if let Ok(one) = std::env::var("SCENARIO") {
        all.cases.retain(|case| case.ask.name == one || case.ask.about == one);
        assert!(!all.cases.is_empty(), "no scenario is called {one:?}");
    }
    all
}

impl Scenarios {
    fn add(&mut self, file: &str, spec: SandboxSpec, asks: Vec<Ask>) {
        for agent in &spec.agents {
            self.requirements.extend(agent.requirements.iter().cloned());
            if let Some(state) = agent.state {
                let alone = !matches!(agent.ipfs, IpfsGatewayBehaviour::Ok | IpfsGatewayBehaviour::Missing);
                self.cases.push(Case {
                    id: format!("{file}: agent {}", agent.name),
                    ask: Ask::of(agent, state),
                    alone,
                });
            }
        }
        for (number, ask) in asks.into_iter().enumerate() {
            self.requirements.extend(ask.requirements.iter().cloned());
            let alone = ask.setting != Setting::default();
            self.cases.push(Case { id: format!("{file}: ask {} {}", number + 1, ask.name), ask, alone });
        }
        self.spec = std::mem::take(&mut self.spec).merged_with_spec(spec);
    }

    fn check(&self) {
        let mut names = BTreeSet::new();
        let twice: Vec<_> = self.spec.agents.iter().filter(|agent| !names.insert(&agent.name)).collect();
        assert!(twice.is_empty(), "names that occur twice: {twice:?}");
    }
}

impl Setting {
    /// The warnings on which the gate refuses.
    pub(crate) fn denied(&self) -> &[ReasonCode] {
        self.deny.as_deref().unwrap_or(&DENIED_BY_DEFAULT)
    }
}

impl Ask {
    fn of(agent: &SandboxAgentSpec, state: TrustState) -> Self {
        Self {
            about: agent.about.clone(),
            requirements: agent.requirements.clone(),
            name: agent.name.clone(),
            setting: Setting::default(),
            session: None,
            at: 0,
            state,
            codes: agent.codes.iter().copied().collect(),
            near_misses: agent.near_misses.clone(),
            evidence: BTreeMap::new(),
            absent: Vec::new(),
            steps: BTreeMap::new(),
            places: BTreeMap::new(),
            counts: BTreeMap::new(),
            incidents: None,
            is_headless: false,
            gate: Vec::new(),
        }
    }
}

fn block<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<BlockSelector>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(serde::de::Error::custom)
}

fn proof<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ChainProofMode>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(serde::de::Error::custom)
}

fn header<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<BlockHeaderProofMode>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(serde::de::Error::custom)
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    clresolve_resolver::config::parse_duration(&text).map(Some).map_err(serde::de::Error::custom)
}
