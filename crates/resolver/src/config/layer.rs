//! The values that one source (file, environment, flags) sets, and how layers combine into a configuration.

use std::path::PathBuf;
use std::time::Duration;

use alloy_primitives::{Address, B256};
use clresolve_core::name::EnsName;
use clresolve_core::reading::BlockSelector;
use clresolve_core::world::SANDBOX;
use clresolve_payment::check::FirstContact;
use clresolve_verdict::verdict::Depth;
use serde::{Deserialize, Serialize};

use super::beacon::BeaconLayer;
use super::chains::Chains;
use super::forms::{block, manifests, origins};
use super::keys::{Many, One};
use super::labels::number_labels;
use super::light_client::ChainLayer;
use super::mcp::McpLayer;
use super::memory::MemoryLayer;
use super::orloj::OrlojLayer;
use super::paths::EachPath;
use super::payment::{KnownPayees, LimitsLayer, Routes};
use super::receipts::ReceiptsLayer;
use super::redis::RedisLayer;
use super::serve::{GateLayer, HttpLayer};
use super::sign::SignLayer;
use super::value::{
    Contract, Hash, HedgeAfter, HostPort, Profile, ProofForm, Rule, Time, World, parse_address, parse_chain_id,
    parse_duration, parse_profile, quorum_number,
};
use super::{
    AdminLayer, CacheLayer, CheckLayer, Config, ConfigError, ConnectTo, CorsLayer, Endpoint, ExplorerLayer, Gateway,
    Grade, HeaderDemand, Hedging, MAINNET, ManifestSource, OriginSpec, ProofDemand, RESERVED_WORLDS, TelemetryLayer,
};

/// The error of a build without the feature `redis` when a server is configured.
const NO_REDIS: &str = "this build cannot share evidence: it lacks the feature redis";

/// The keys of a layer, by how they combine with the layer below. `set` replaces the field after the `=`. `add` is
/// prepended to it. `tables` have keys of their own. The remaining keys are combined by handwritten code.
macro_rules! layer {
    (
        $(#[$meta:meta])* layer $layer:ident;
        set { $( $(#[$set_doc:meta])* $set:ident: $set_type:ty = $($set_at:ident).+ $(, [$($set_serde:tt)+])?; )* }
        add { $( $(#[$add_doc:meta])* $add:ident: $add_type:ty = $($add_at:ident).+ $(, [$($add_serde:tt)+])?; )* }
        tables { $( $(#[$table_doc:meta])* $table:ident: $table_type:ident; )* }
        by_hand { $( $(#[$hand_doc:meta])* $hand:ident: $hand_type:ty $(, [$($hand_serde:tt)+])?; )* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
        pub struct $layer {
            $(
                $(#[$set_doc])*
                #[serde(skip_serializing_if = "Option::is_none" $(, $($set_serde)+)?)]
                pub $set: Option<$set_type>,
            )*
            $(
                $(#[$hand_doc])*
                #[serde(skip_serializing_if = "Option::is_none" $(, $($hand_serde)+)?)]
                pub $hand: Option<$hand_type>,
            )*
            $(
                $(#[$add_doc])*
                #[serde(skip_serializing_if = "Vec::is_empty" $(, $($add_serde)+)?)]
                pub $add: Vec<$add_type>,
            )*
            $(
                $(#[$table_doc])*
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $table: Option<$table_type>,
            )*
        }

        impl $layer {
            /// Applies this layer, except for the handwritten keys.
            fn lay(self, over: &mut Config) {
                $( if let Some(value) = self.$set { over.$($set_at).+ = value; } )*
                $( over.$($add_at).+.splice(0..0, self.$add); )*
                $( self.$table.unwrap_or_default().lay(&mut over.$table); )*
            }

            /// The layer that turns the default configuration into `config`, except for the handwritten keys.
            fn without_handmade(config: &Config) -> Self {
                Self {
                    $( $set: Some(config.$($set_at).+.clone()), )*
                    $( $add: config.$($add_at).+.clone(), )*
                    $( $table: Some($table_type::of(&config.$table)), )*
                    ..Self::default()
                }
            }
        }

        impl EachPath for $layer {
            fn each_path(&mut self, change: &mut dyn FnMut(&mut PathBuf)) {
                $( self.$set.each_path(change); )*
                $( self.$add.each_path(change); )*
                $( self.$table.each_path(change); )*
                $( self.$hand.each_path(change); )*
            }
        }
    };
}

layer! {
    /// The values that one source sets. `None` leaves the value of the layer below unchanged.
    ///
    /// The lists of endpoints and gateways replace those below. The lists of exceptions (`connect_to`, `allow_host`,
    /// `ca`) are prepended to those below.
    layer Layer;

    set {
        /// `anchor.world` of the verdicts.
        world: String = chain.world, [with = "One::<World>"];
        /// The Universal Resolver.
        universal_resolver: Address = chain.universal_resolver, [with = "One::<Contract>"];
        /// Which block to read.
        block: BlockSelector = chain.block, [with = "block"];
        /// How often each endpoint is asked for its newest block.
        head_poll: Duration = chain.head_poll, [with = "One::<Time>"];
        /// Whether CCIP-Read gateways may be asked.
        ccip_read: bool = chain.ccip_read;
        /// Identifier of the profile.
        profile: String = rules.profile, [with = "One::<Profile>"];
        /// The depth of a resolution.
        depth: Depth = rules.depth;
        /// Whether both sources of the card must answer.
        require_all_sources: bool = rules.require_all_sources;
        /// Whether the documents that link back to the card are read too.
        links: bool = rules.links;
        /// Further profiles, from files.
        profile_files: Vec<PathBuf> = rules.profile_files;
        /// Time limit of one question.
        timeout: Duration = timeout, [with = "One::<Time>"];
        /// When a second IPFS gateway is asked in parallel with the first.
        hedge_after: Hedging = network.hedging, [with = "One::<HedgeAfter>"];
        /// RPC endpoints, in order of preference.
        rpc: Vec<Endpoint> = chain.endpoints, [with = "origins"];
        /// IPFS gateways, asked in this order.
        gateway: Vec<Gateway> = gateways, [with = "origins"];
        /// Manifests that replace a built-in one.
        manifest: Vec<ManifestSource> = rules.manifests, [with = "manifests"];
        /// The URLs at which agents are called.
        routes: Routes = routes;
        /// Accounts that the operator knows to belong to an agent.
        payees: KnownPayees = payees;
        /// Chains whose ERC-8004 registries list the accounts of agents.
        chains: Chains = chains;
    }
    add {
        /// `--connect-to` rules.
        connect_to: ConnectTo = network.connect_to, [with = "Many::<Rule>"];
        /// Origins, as host and port, that untrusted URLs may use although they are not public.
        allow_host: OriginSpec = network.allow_hosts, [with = "Many::<HostPort>"];
        /// PEM files with further trust roots.
        ca: PathBuf = network.ca_files;
    }
    tables {
        /// Who must vouch for a block header.
        chain: ChainLayer;
        /// The light client that verifies block headers.
        beacon: BeaconLayer;
        /// Sizes of the caches.
        cache: CacheLayer;
        /// What is remembered about names.
        memory: MemoryLayer;
        /// The Redis server through which daemons share evidence.
        redis: RedisLayer;
        /// The daemon's listener and its limits.
        http: HttpLayer;
        /// The web origins whose pages may read the daemon's responses.
        cors: CorsLayer;
        /// Optional functions of the daemon's web page.
        explorer: ExplorerLayer;
        /// The daemon's gate.
        gate: GateLayer;
        /// The key that verdicts are signed with.
        sign: SignLayer;
        /// The resources from which the daemon generates Orloj agent cards.
        orloj: OrlojLayer;
        /// How the daemon treats receipts.
        receipts: ReceiptsLayer;
        /// The socket through which the operator controls the daemon.
        admin: AdminLayer;
        /// Who may use the daemon's MCP endpoint.
        mcp: McpLayer;
        /// Where the daemon sends its traces.
        telemetry: TelemetryLayer;
        /// The payment limits.
        limits: LimitsLayer;
        /// The evidence that a payment to a seller needs.
        check: CheckLayer;
    }
    by_hand {
        /// EIP-155 chain id.
        chain_id: u64;
        /// The grade of proof that the endpoints must provide.
        proof: ProofDemand, [with = "One::<ProofForm>"];
        /// How many operators must agree.
        quorum: usize, [deserialize_with = "quorum_number"];
        /// Hash of block 0.
        genesis: B256, [with = "One::<Hash>"];
        /// Maximum age of the newest block.
        max_head_age: Duration, [with = "One::<Time>"];
        /// Owners whose commons cards are accepted, in normal form.
        allowed_publishers: Vec<String>;
    }
}

impl Config {
    /// Applies `layers` to this configuration, the strongest last.
    ///
    /// # Errors
    /// If the combined configuration is inconsistent: world `mainnet` on a chain other than 1, another chain without
    /// endpoints, an empty list of endpoints, or a quorum larger than the number of operators.
    pub fn with(mut self, layers: impl IntoIterator<Item = Layer>) -> Result<Self, ConfigError> {
        for layer in layers {
            self.lay(layer)?;
        }
        self.check()?;
        self.chain.endpoints = self.chain.labelled();
        self.beacon.endpoints = self.beacon.labelled();
        self.chains.iter_mut().for_each(|(id, chain)| chain.label(*id));
        number_labels(self.gateways.iter_mut().map(|g| &mut g.label));
        Ok(self)
    }

    fn lay(&mut self, layer: Layer) -> Result<(), ConfigError> {
        self.lay_chain_id(&layer);
        self.lay_proof(&layer)?;
        if let Some(owners) = &layer.allowed_publishers {
            self.rules.allowed_publishers = normal_forms(owners)?;
        }
        layer.lay(self);
        Ok(())
    }

    /// Another chain also means another world, another block 0 and another slot time.
    fn lay_chain_id(&mut self, layer: &Layer) {
        if let Some(id) = layer.chain_id.filter(|id| *id != self.chain.id) {
            self.chain.id = id;
            self.chain.world = if id == MAINNET { "mainnet".to_owned() } else { format!("eip155-{id}") };
            self.chain.genesis = None;
            self.chain.max_head_age = None;
        }
        self.chain.genesis = layer.genesis.or(self.chain.genesis);
        self.chain.max_head_age = layer.max_head_age.or(self.chain.max_head_age);
    }

    /// A stronger layer's `proof` resets a weaker layer's `quorum`, and vice versa.
    fn lay_proof(&mut self, layer: &Layer) -> Result<(), ConfigError> {
        match (layer.proof, layer.quorum) {
            (Some(ProofDemand::SingleRpc), Some(_)) => {
                return Err(conflict("quorum", "proof single-rpc needs no quorum; remove one of the two".to_owned()));
            }
            (Some(ProofDemand::SingleRpc), None) => {
                (self.chain.proof, self.chain.quorum) = (Some(ProofDemand::SingleRpc), None);
            }
            (Some(ProofDemand::ConsensusProof), None) if !self.asks_operators(layer) => {
                (self.chain.proof, self.chain.quorum) = (Some(ProofDemand::ConsensusProof), None);
            }
            (proof, Some(agree)) => {
                let kept = self.chain.proof.filter(|proof| proof.grade() >= Grade::StateProof);
                self.chain.proof = proof.or(kept).or(Some(ProofDemand::Quorum));
                self.chain.quorum = Some(agree);
            }
            (proof, None) => self.chain.proof = proof.or(self.chain.proof),
        }
        Ok(())
    }

    /// Whether operators must agree on the header too once `layer` is applied.
    fn asks_operators(&self, layer: &Layer) -> bool {
        let header = layer.chain.as_ref().and_then(|chain| chain.header).or(self.chain.header);
        header.is_some_and(|header| header != HeaderDemand::Consensus)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let Self { chain, .. } = self;
        if let Some((world, id)) = RESERVED_WORLDS.iter().find(|(world, id)| chain.world == *world && chain.id != *id) {
            return Err(conflict("world", format!("{world} is chain {id}, not {}", chain.id)));
        }
        if chain.endpoints.is_empty() {
            return Err(conflict("rpc", "expected at least one endpoint".to_owned()));
        }
        let demand = chain.demand()?;
        if self.gate.min_proof.is_some_and(|least| least > demand.grade()) {
            return Err(conflict("min-proof", "the gate would refuse everything: proof demands less".to_owned()));
        }
        if chain.id != MAINNET && chain.endpoints == super::ChainConfig::default().endpoints {
            return Err(conflict(
                "rpc",
                format!("the built-in endpoints serve mainnet; name one of chain {}", chain.id),
            ));
        }
        if chain.head_poll >= self.cache.max_unconfirmed {
            let detail =
                "no verdict would stay confirmed from one poll to the next: set it below cache.max-unconfirmed";
            return Err(conflict("head-poll", detail.to_owned()));
        }
        self.light_client()?;
        self.limits.check()?;
        super::payment::check(&self.routes, &self.payees)?;
        super::chains::check(&self.chains)?;
        self.check_sharing()?;
        self.check_receipts()?;
        self.check_first_contact()?;
        self.check_signing()
    }

    fn check_receipts(&self) -> Result<(), ConfigError> {
        if self.receipts.remember && self.memory.path.is_none() {
            return Err(conflict("receipts.remember", "nothing could be remembered; set memory.path".to_owned()));
        }
        Ok(())
    }

    fn check_first_contact(&self) -> Result<(), ConfigError> {
        let Self { chain, check, memory, .. } = self;
        // The sandbox has a memory without a file.
        if check.first_contact == FirstContact::Allow && memory.path.is_none() && chain.world != SANDBOX {
            let detail = "without a memory each contact would be the first; set memory.path".to_owned();
            return Err(conflict("check.first-contact", detail));
        }
        Ok(())
    }

    /// Whether sharing evidence is configured and possible.
    ///
    /// # Errors
    /// [`ConfigError::Conflict`] if the sandbox would share, if there is no MAC key, or if this build lacks the
    /// feature.
    pub(crate) fn check_sharing(&self) -> Result<(), ConfigError> {
        let Self { chain, redis, .. } = self;
        match (&redis.url, &redis.mac_key) {
            (None, None) => Ok(()),
            (None, Some(_)) => Err(conflict("redis.mac-key", "a key without a server; set redis.url".to_owned())),
            (Some(_), None) => {
                Err(conflict("redis.url", "nothing is shared without a MAC; set redis.mac-key".to_owned()))
            }
            (Some(_), Some(_)) if chain.world == SANDBOX && !clresolve_core::mutant!("sandbox-is-shared") => {
                Err(conflict("redis.url", "the sandbox shares nothing: its verdicts prove nothing".to_owned()))
            }
            (Some(_), Some(_)) if !cfg!(feature = "redis") => Err(conflict("redis.url", NO_REDIS.to_owned())),
            (Some(_), Some(_)) => Ok(()),
        }
    }

    /// Checks that the gate can enforce this configuration.
    ///
    /// # Errors
    /// [`ConfigError::Conflict`] if `gate.deny` names a warning that requires a memory, and no memory is configured.
    pub fn check_gate(&self) -> Result<(), ConfigError> {
        if self.gate.policy().denies_by_memory() && self.memory.path.is_none() {
            return Err(conflict("deny", "a warning in the list requires a memory; set memory.path".to_owned()));
        }
        Ok(())
    }

    fn check_signing(&self) -> Result<(), ConfigError> {
        let Self { chain, sign, .. } = self;
        if chain.world == SANDBOX && sign.key.is_some() {
            return Err(conflict("sign.key", "the sandbox signs nothing: its verdicts prove nothing".to_owned()));
        }
        if sign.key.is_some() && sign.issuer.is_none() {
            return Err(conflict("sign.issuer", "a signing key needs an issuer; set this or --sign-issuer".to_owned()));
        }
        if sign.key.is_none() && !sign.publish.is_empty() {
            return Err(conflict("sign.publish", "publishing keys requires a signing key; set sign.key".to_owned()));
        }
        Ok(())
    }
}

/// The variables of the environment that are read: the file, and the keys of [`Layer::from_environment`].
pub const VARIABLES: [&str; 9] = [
    "CLRESOLVE_CONFIG",
    "CLRESOLVE_RPC",
    "CLRESOLVE_GATEWAY",
    "CLRESOLVE_BLOCK",
    "CLRESOLVE_PROFILE",
    "CLRESOLVE_DEPTH",
    "CLRESOLVE_TIMEOUT",
    "CLRESOLVE_CHAIN_ID",
    "CLRESOLVE_UNIVERSAL_RESOLVER",
];

impl Layer {
    /// Reads the environment: `CLRESOLVE_RPC` and `CLRESOLVE_GATEWAY` (URLs separated by white space),
    /// `CLRESOLVE_BLOCK`, `CLRESOLVE_PROFILE`, `CLRESOLVE_DEPTH`, `CLRESOLVE_TIMEOUT`, `CLRESOLVE_CHAIN_ID` and
    /// `CLRESOLVE_UNIVERSAL_RESOLVER`. An empty variable counts as unset.
    ///
    /// # Errors
    /// With the variable and what was expected.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let read = Environment(variable);
        Ok(Self {
            rpc: read.one("CLRESOLVE_RPC", |s| s.split_whitespace().map(str::parse).collect())?,
            gateway: read.one("CLRESOLVE_GATEWAY", |s| s.split_whitespace().map(str::parse).collect())?,
            block: read.one("CLRESOLVE_BLOCK", str::parse)?,
            profile: read.one("CLRESOLVE_PROFILE", parse_profile)?,
            depth: read.one("CLRESOLVE_DEPTH", parse_depth)?,
            timeout: read.one("CLRESOLVE_TIMEOUT", parse_duration)?,
            chain_id: read.one("CLRESOLVE_CHAIN_ID", parse_chain_id)?,
            universal_resolver: read.one("CLRESOLVE_UNIVERSAL_RESOLVER", parse_address)?,
            ..Self::default()
        })
    }

    /// The layer that turns the default configuration into `config`. It omits what a file cannot express (in-memory
    /// trust roots, denied addresses), and also the default depth, which differs between commands.
    pub fn of(config: &Config) -> Self {
        Self {
            chain_id: Some(config.chain.id),
            proof: config.chain.proof,
            quorum: config.chain.quorum,
            genesis: config.chain.genesis,
            max_head_age: config.chain.max_head_age,
            depth: Some(config.rules.depth).filter(|depth| *depth != Depth::default()),
            allowed_publishers: Some(config.rules.allowed_publishers.clone()),
            ..Self::without_handmade(config)
        }
    }
}

struct Environment<F>(F);

impl<F: Fn(&str) -> Option<String>> Environment<F> {
    fn one<T>(&self, key: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<Option<T>, ConfigError> {
        let Some(value) = (self.0)(key).filter(|v| !v.is_empty()) else { return Ok(None) };
        parse(&value).map(Some).map_err(|detail| conflict(key, detail))
    }
}

/// Parses `identity` or `schemas`.
fn parse_depth(s: &str) -> Result<Depth, String> {
    match s {
        "identity" => Ok(Depth::Identity),
        "schemas" => Ok(Depth::Schemas),
        _ => Err("expected identity or schemas".to_owned()),
    }
}

fn conflict(key: &str, detail: String) -> ConfigError {
    ConfigError::Conflict { key: key.to_owned(), detail }
}

fn normal_forms(owners: &[String]) -> Result<Vec<String>, ConfigError> {
    let normal = |owner: &String| EnsName::parse(owner).map(|name| name.as_str().to_owned());
    owners.iter().map(normal).collect::<Result<_, _>>().map_err(|e| conflict("allowed-publishers", e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::GradeDemand;

    #[test]
    fn the_default_reads_mainnet_through_many_operators() {
        let config = Config::default();
        assert_eq!((config.chain.world.as_str(), config.chain.id), ("mainnet", 1));
        assert!(config.chain.endpoints.len() >= 4);
        assert!(config.gateways.len() >= 5);
        assert!(config.gateways.iter().all(|g| !g.own && g.url.scheme() == "https"));
        assert!(config.chain.endpoints.iter().all(|e| !e.own && e.url.scheme() == "https"));
        assert_eq!(config.timeout, Duration::from_secs(15));
        assert_eq!(Config::default().with([]), Ok(config));
    }

    #[test]
    fn later_layers_win_and_permissions_add_up() {
        let file = Layer {
            timeout: Some(Duration::from_secs(5)),
            profile: Some("a/1".to_owned()),
            allow_host: vec!["a.example:1".parse().unwrap()],
            ..Layer::default()
        };
        let flags = Layer {
            timeout: Some(Duration::from_secs(7)),
            allow_host: vec!["b.example:2".parse().unwrap()],
            rpc: Some(vec!["https://rpc.example/k".parse().unwrap()]),
            ..Layer::default()
        };
        let config = Config::default().with([file, flags]).unwrap();
        assert_eq!(config.timeout, Duration::from_secs(7));
        assert_eq!(config.rules.profile, "a/1");
        assert_eq!(
            config.network.allow_hosts.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["b.example:2", "a.example:1"]
        );
        assert_eq!(config.chain.endpoints.len(), 1);
    }

    #[test]
    fn worlds_that_cannot_be_are_refused() {
        let world = |id: u64, world: Option<&str>| Layer {
            chain_id: Some(id),
            world: world.map(str::to_owned),
            rpc: Some(vec!["http://127.0.0.1:8545".parse().unwrap()]),
            ..Layer::default()
        };
        let name = |layer| Config::default().with([layer]).map(|c| c.chain.world);
        assert_eq!(name(world(1, None)), Ok("mainnet".to_owned()));
        assert_eq!(name(world(1, Some("fork"))), Ok("fork".to_owned()));
        assert_eq!(name(world(31_337, None)), Ok("eip155-31337".to_owned()));
        assert_eq!(name(world(31_337, Some("sandbox"))), Ok("sandbox".to_owned()));
        assert!(name(world(31_337, Some("mainnet"))).is_err());
        assert!(name(world(1, Some("sandbox"))).is_err());
        let no_endpoint = Layer { chain_id: Some(5), ..Layer::default() };
        assert!(matches!(name(no_endpoint), Err(ConfigError::Conflict { key, .. }) if key == "rpc"));
        assert!(name(Layer { rpc: Some(vec![]), ..Layer::default() }).is_err());
    }

    #[test]
    fn several_operators_are_a_quorum_unless_something_else_is_said() {
        let endpoints = |urls: &[&str]| Some(urls.iter().map(|url| url.parse().unwrap()).collect::<Vec<Endpoint>>());
        let demand = |layers: &[Layer]| Config::default().with(layers.to_vec())?.chain.demand();
        let named = |urls: &[&str]| Layer { rpc: endpoints(urls), ..Layer::default() };
        let quorum = |agree| Layer { quorum: Some(agree), ..Layer::default() };
        let proof = |proof| Layer { proof: Some(proof), ..Layer::default() };
        let (one, two) = (["https://rpc.one"], ["https://rpc.one", "https://rpc.two"]);
        let same = ["https://a.rpc.one", "https://b.rpc.one"];
        assert_eq!(demand(&[]), Ok(GradeDemand::Quorum(2)), "the built-in endpoints");
        assert_eq!(demand(&[named(&one)]), Ok(GradeDemand::SingleRpc));
        assert_eq!(demand(&[named(&two)]), Ok(GradeDemand::Quorum(2)));
        assert_eq!(demand(&[named(&same)]), Ok(GradeDemand::SingleRpc), "one operator");
        assert_eq!(demand(&[quorum(4)]), Ok(GradeDemand::Quorum(4)));
        assert_eq!(demand(&[proof(ProofDemand::SingleRpc)]), Ok(GradeDemand::SingleRpc));
        assert_eq!(
            demand(&[proof(ProofDemand::SingleRpc), quorum(3)]),
            Ok(GradeDemand::Quorum(3)),
            "the stronger wins"
        );
        assert_eq!(demand(&[quorum(3), proof(ProofDemand::SingleRpc)]), Ok(GradeDemand::SingleRpc));
        assert!(demand(&[named(&one), quorum(2)]).is_err());
        assert!(demand(&[named(&same), proof(ProofDemand::Quorum)]).is_err());
        assert!(demand(&[quorum(7)]).is_err());
        let own = Endpoint { own: true, ..two[0].parse().unwrap() };
        let own = Layer { rpc: Some(vec![own, "https://rpc.other".parse().unwrap()]), ..Layer::default() };
        assert_eq!(demand(std::slice::from_ref(&own)), Ok(GradeDemand::SingleRpc));
        assert_eq!(demand(&[own, quorum(2)]), Ok(GradeDemand::Quorum(2)));
    }

    #[test]
    fn a_gate_that_would_refuse_everything_is_refused() {
        let least = |grade| GateLayer { min_proof: Some(Some(grade)), ..GateLayer::default() };
        let with = |grade, rpc: Option<Vec<Endpoint>>| {
            Config::default().with([Layer { gate: Some(least(grade)), rpc, ..Layer::default() }])
        };
        assert!(with(Grade::Quorum, None).is_ok());
        assert!(with(Grade::StateProof, None).is_err());
        assert!(with(Grade::Quorum, Some(vec!["https://rpc.example".parse().unwrap()])).is_err());
    }

    #[test]
    fn equal_labels_are_numbered() {
        let text =
            r#"rpc = [{ url = "https://a.example/1", label = "a" }, { url = "https://a.example/2", label = "a" }]"#;
        let config = Config::default().with([Layer::from_toml(text, "f.toml").unwrap()]).unwrap();
        assert_eq!(labels(&config), ["a", "a#2"]);
    }

    fn labels(config: &Config) -> Vec<&str> {
        config.chain.endpoints.iter().map(|endpoint| endpoint.label.as_str()).collect()
    }

    /// A host name can contain a key (`KEY.rpc.example`), but that of a built-in endpoint never does.
    #[test]
    fn an_endpoint_without_a_label_has_that_of_its_place() {
        let text = r#"rpc = ["https://SECRET.rpc.example/", { url = "https://b.example", label = "mine" }, "https://b.example"]"#;
        let config = Config::default().with([Layer::from_toml(text, "f.toml").unwrap()]).unwrap();
        assert_eq!(labels(&config), ["rpc-1", "mine", "rpc-3"]);
        assert_eq!(labels(&Config::default().with([Layer::of(&config)]).unwrap()), ["rpc-1", "mine", "rpc-3"]);
        let text = r#"rpc = [{ url = "https://b.example", label = "rpc-2" }, "https://b.example"]"#;
        let config = Config::default().with([Layer::from_toml(text, "f.toml").unwrap()]).unwrap();
        assert_eq!(labels(&config), ["rpc-2", "rpc-2#2"]);
        assert_eq!(labels(&Config::default())[0], "ethereum-rpc.publicnode.com");
    }

    #[test]
    fn the_environment_is_a_layer_and_shows_no_key() {
        let set = |key: &str| match key {
            "CLRESOLVE_RPC" => Some("https://a.example/k https://b.example".to_owned()),
            "CLRESOLVE_BLOCK" => Some("17".to_owned()),
            "CLRESOLVE_PROFILE" => Some(String::new()),
            _ => None,
        };
        let layer = Layer::from_environment(set).unwrap();
        assert_eq!(layer.rpc.map(|r| r.len()), Some(2));
        assert_eq!(layer.block, Some(BlockSelector::Number(17)));
        assert_eq!(layer.profile, None);
        let error = Layer::from_environment(|k| (k == "CLRESOLVE_RPC").then(|| "ftp://a.example/SECRET".to_owned()));
        let message = error.unwrap_err().to_string();
        assert!(message.starts_with("CLRESOLVE_RPC: expected") && !message.contains("SECRET"), "{message}");
    }
}
