//! What one source (a file, the environment, the flags) says about the configuration, and how layers make one.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use alloy_primitives::{Address, B256};
use serde::Serialize;

use super::memory::MemoryLayer;
use super::orloj::OrlojLayer;
use super::serve::{GateLayer, HttpLayer};
use super::sign::SignLayer;
use super::value::{parse_address, parse_duration, parse_profile};
use super::{
    CacheConfig, Config, ConfigError, ConnectTo, Demand, Endpoint, Gateway, Grade, Hedging, MAINNET, ManifestSource,
    OriginSpec, ProofDemand, RESERVED_WORLDS,
};
use crate::chain::BlockSelector;
use crate::name::EnsName;
use crate::verdict::Depth;

/// What one source says. `None` leaves the layer below as it is.
///
/// The list of endpoints and that of gateways replace those below; what further permits (`connect_to`, `allow_host`,
/// `ca`) comes before what is below.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct Layer {
    /// `anchor.world` of the verdicts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub world: Option<String>,
    /// EIP-155 chain id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chain_id: Option<u64>,
    /// The Universal Resolver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub universal_resolver: Option<Address>,
    /// Which block to read.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text")]
    pub block: Option<BlockSelector>,
    /// How far the chain's answer must be vouched for.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text")]
    pub proof: Option<ProofDemand>,
    /// How many operators must agree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quorum: Option<usize>,
    /// Hash of block 0.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text")]
    pub genesis: Option<B256>,
    /// Whether CCIP-Read gateways may be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ccip_read: Option<bool>,
    /// Identifier of the profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// How deep the walk goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<Depth>,
    /// Whether both sources of the card must answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_all_sources: Option<bool>,
    /// Whether what links back to the card is read too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<bool>,
    /// Owners whose commons cards are accepted, in normal form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_publishers: Option<Vec<String>>,
    /// Further profiles, from files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile_files: Option<Vec<PathBuf>>,
    /// Time limit of one question.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_duration")]
    pub timeout: Option<Duration>,
    /// `--connect-to` rules.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "as_texts")]
    pub connect_to: Vec<ConnectTo>,
    /// Origins that the foreign door permits, host and port.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "as_texts")]
    pub allow_host: Vec<OriginSpec>,
    /// PEM files with further trust roots.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ca: Vec<PathBuf>,
    /// Sizes of the caches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheLayer>,
    /// What is remembered of names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryLayer>,
    /// The daemon's listener and its limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpLayer>,
    /// The daemon's gate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<GateLayer>,
    /// The key that verdicts are signed with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sign: Option<SignLayer>,
    /// What the daemon makes Orloj's agent cards of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orloj: Option<OrlojLayer>,
    /// When an IPFS gateway is asked beside another one.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text")]
    pub hedge_after: Option<Hedging>,
    /// RPC endpoints, in order of preference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rpc: Option<Vec<Endpoint>>,
    /// IPFS gateways, asked in this order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway: Option<Vec<Gateway>>,
    /// Manifests that replace a built-in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Vec<ManifestSource>>,
}

/// Sizes of the caches, as far as a layer names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
#[non_exhaustive]
pub struct CacheLayer {
    /// Trusted verdicts kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trusted: Option<u64>,
    /// Other verdicts kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untrusted: Option<u64>,
    /// Bytes that each pool of verdicts may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict_bytes: Option<u64>,
    /// Bytes of proven content kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_bytes: Option<u64>,
}

impl Config {
    /// This configuration with `layers` over it, the strongest last.
    ///
    /// # Errors
    /// When what the layers say together makes no world: `mainnet` that is not chain 1, another chain without
    /// endpoints, an empty list of endpoints, a quorum of more operators than there are.
    pub fn with(mut self, layers: impl IntoIterator<Item = Layer>) -> Result<Self, ConfigError> {
        for layer in layers {
            self.lay(layer)?;
        }
        self.check()?;
        number_labels(self.chain.endpoints.iter_mut().map(|e| &mut e.label));
        number_labels(self.gateways.iter_mut().map(|g| &mut g.label));
        Ok(self)
    }

    fn lay(&mut self, layer: Layer) -> Result<(), ConfigError> {
        self.lay_chain(&layer);
        self.lay_proof(&layer)?;
        replace(&mut self.chain.endpoints, layer.rpc);
        replace(&mut self.gateways, layer.gateway);
        replace(&mut self.network.hedging, layer.hedge_after);
        replace(&mut self.rules.profile, layer.profile);
        replace(&mut self.rules.depth, layer.depth);
        replace(&mut self.rules.require_all_sources, layer.require_all_sources);
        replace(&mut self.rules.links, layer.links);
        replace(&mut self.rules.profile_files, layer.profile_files);
        replace(&mut self.rules.manifests, layer.manifest);
        replace(&mut self.timeout, layer.timeout);
        if let Some(owners) = layer.allowed_publishers {
            self.rules.allowed_publishers = normal_forms(&owners)?;
        }
        self.network.connect_to.splice(0..0, layer.connect_to);
        self.network.allow_hosts.splice(0..0, layer.allow_host);
        self.network.ca_files.splice(0..0, layer.ca);
        if let Some(cache) = layer.cache {
            self.cache = cache.over(self.cache);
        }
        self.http = layer.http.unwrap_or_default().over(self.http);
        self.sign = layer.sign.unwrap_or_default().over(std::mem::take(&mut self.sign));
        layer.memory.unwrap_or_default().lay(&mut self.memory);
        layer.gate.unwrap_or_default().lay(&mut self.gate);
        layer.orloj.unwrap_or_default().lay(&mut self.orloj);
        Ok(())
    }

    fn lay_chain(&mut self, layer: &Layer) {
        if let Some(id) = layer.chain_id.filter(|id| *id != self.chain.id) {
            self.chain.id = id;
            self.chain.world = if id == MAINNET { "mainnet".to_owned() } else { format!("eip155-{id}") };
            self.chain.genesis = None;
        }
        self.chain.genesis = layer.genesis.or(self.chain.genesis);
        replace(&mut self.chain.world, layer.world.clone());
        replace(&mut self.chain.universal_resolver, layer.universal_resolver);
        replace(&mut self.chain.block, layer.block);
        replace(&mut self.chain.ccip_read, layer.ccip_read);
    }

    /// A stronger layer's `proof` undoes a weaker layer's `quorum`, and the other way round.
    fn lay_proof(&mut self, layer: &Layer) -> Result<(), ConfigError> {
        match (layer.proof, layer.quorum) {
            (Some(ProofDemand::SingleRpc), Some(_)) => {
                return Err(conflict("quorum", "with proof single-rpc nobody has to agree".to_owned()));
            }
            (Some(ProofDemand::SingleRpc), None) => {
                (self.chain.proof, self.chain.quorum) = (Some(ProofDemand::SingleRpc), None);
            }
            (proof, Some(agree)) => {
                let kept = self.chain.proof.filter(|proof| *proof == ProofDemand::StateProof);
                self.chain.proof = proof.or(kept).or(Some(ProofDemand::Quorum));
                self.chain.quorum = Some(agree);
            }
            (proof, None) => self.chain.proof = proof.or(self.chain.proof),
        }
        Ok(())
    }

    fn check(&self) -> Result<(), ConfigError> {
        let Self { chain, .. } = self;
        if let Some((world, id)) = RESERVED_WORLDS.iter().find(|(world, id)| chain.world == *world && chain.id != *id) {
            return Err(conflict("world", format!("{world} is chain {id}, not {}", chain.id)));
        }
        if chain.endpoints.is_empty() {
            return Err(conflict("rpc", "expected at least one endpoint".to_owned()));
        }
        let grade = match chain.demand()? {
            Demand::SingleRpc => Grade::SingleRpc,
            Demand::Quorum(_) => Grade::Quorum,
            Demand::StateProof(_) => Grade::StateProof,
        };
        if self.gate.policy.min_proof.is_some_and(|least| least > grade) {
            return Err(conflict("min-proof", "the gate would refuse everything: proof demands less".to_owned()));
        }
        if chain.id != MAINNET && chain.endpoints == super::ChainConfig::default().endpoints {
            return Err(conflict(
                "rpc",
                format!("the built-in endpoints serve mainnet; name one of chain {}", chain.id),
            ));
        }
        self.check_signing()
    }

    /// Whether the gate can be kept by this configuration.
    ///
    /// # Errors
    /// [`ConfigError::Conflict`] where `gate.deny` names what only a memory can tell, and there is none.
    pub fn check_gate(&self) -> Result<(), ConfigError> {
        if self.gate.policy.denies_by_memory() && self.memory.path.is_none() {
            return Err(conflict("deny", "only a memory can tell what is to be denied; set memory.path".to_owned()));
        }
        Ok(())
    }

    fn check_signing(&self) -> Result<(), ConfigError> {
        let Self { chain, sign, .. } = self;
        if chain.world == "sandbox" && sign.key.is_some() {
            return Err(conflict("sign.key", "the sandbox signs nothing: its verdicts prove nothing".to_owned()));
        }
        if sign.key.is_some() && sign.issuer.is_none() {
            return Err(conflict(
                "sign.issuer",
                "a key to sign with needs an issuer; set this or --sign-issuer".to_owned(),
            ));
        }
        if sign.key.is_none() && !sign.publish.is_empty() {
            return Err(conflict("sign.publish", "keys are published beside one that signs; set sign.key".to_owned()));
        }
        Ok(())
    }
}

impl CacheLayer {
    fn over(self, below: CacheConfig) -> CacheConfig {
        CacheConfig {
            trusted: self.trusted.unwrap_or(below.trusted),
            untrusted: self.untrusted.unwrap_or(below.untrusted),
            verdict_bytes: self.verdict_bytes.unwrap_or(below.verdict_bytes),
            content_bytes: self.content_bytes.unwrap_or(below.content_bytes),
        }
    }
}

impl Layer {
    /// What the environment says: `CLRESOLVE_RPC` and `CLRESOLVE_GATEWAY` (one or more URLs, separated by white
    /// space), `CLRESOLVE_BLOCK`, `CLRESOLVE_PROFILE`, `CLRESOLVE_DEPTH`, `CLRESOLVE_TIMEOUT`, `CLRESOLVE_CHAIN_ID` and
    /// `CLRESOLVE_UNIVERSAL_RESOLVER`. An empty variable counts as unset.
    ///
    /// # Errors
    /// Names the variable and what was expected.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let read = Environment(variable);
        Ok(Self {
            rpc: read.one("CLRESOLVE_RPC", |s| s.split_whitespace().map(str::parse).collect())?,
            gateway: read.one("CLRESOLVE_GATEWAY", |s| s.split_whitespace().map(str::parse).collect())?,
            block: read.one("CLRESOLVE_BLOCK", str::parse)?,
            profile: read.one("CLRESOLVE_PROFILE", parse_profile)?,
            depth: read.one("CLRESOLVE_DEPTH", parse_depth)?,
            timeout: read.one("CLRESOLVE_TIMEOUT", parse_duration)?,
            chain_id: read.one("CLRESOLVE_CHAIN_ID", |s| s.parse().map_err(|_| "expected a number".to_owned()))?,
            universal_resolver: read.one("CLRESOLVE_UNIVERSAL_RESOLVER", parse_address)?,
            ..Self::default()
        })
    }

    /// The layer that makes `config` out of the default one. What a file cannot hold (trust roots in memory, addresses
    /// that are denied) is left out, and so is the default depth, since not every command has the same.
    pub fn of(config: &Config) -> Self {
        Self {
            world: Some(config.chain.world.clone()),
            chain_id: Some(config.chain.id),
            universal_resolver: Some(config.chain.universal_resolver),
            block: Some(config.chain.block),
            proof: config.chain.proof,
            quorum: config.chain.quorum,
            genesis: config.chain.genesis,
            ccip_read: Some(config.chain.ccip_read),
            profile: Some(config.rules.profile.clone()),
            depth: Some(config.rules.depth).filter(|depth| *depth != Depth::default()),
            require_all_sources: Some(config.rules.require_all_sources),
            links: Some(config.rules.links),
            allowed_publishers: Some(config.rules.allowed_publishers.clone()),
            profile_files: Some(config.rules.profile_files.clone()),
            timeout: Some(config.timeout),
            connect_to: config.network.connect_to.clone(),
            allow_host: config.network.allow_hosts.clone(),
            ca: config.network.ca_files.clone(),
            cache: Some(CacheLayer {
                trusted: Some(config.cache.trusted),
                untrusted: Some(config.cache.untrusted),
                verdict_bytes: Some(config.cache.verdict_bytes),
                content_bytes: Some(config.cache.content_bytes),
            }),
            http: Some(HttpLayer::of(config.http)),
            sign: Some(SignLayer::of(&config.sign)),
            orloj: Some(OrlojLayer::of(&config.orloj)),
            memory: Some(MemoryLayer::of(&config.memory)),
            gate: Some(GateLayer::of(&config.gate)),
            hedge_after: Some(config.network.hedging),
            rpc: Some(config.chain.endpoints.clone()),
            gateway: Some(config.gateways.clone()),
            manifest: Some(config.rules.manifests.clone()),
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

/// `identity` or `schemas`.
fn parse_depth(s: &str) -> Result<Depth, String> {
    match s {
        "identity" => Ok(Depth::Identity),
        "schemas" => Ok(Depth::Schemas),
        _ => Err("expected identity or schemas".to_owned()),
    }
}

fn replace<T>(value: &mut T, with: Option<T>) {
    if let Some(with) = with {
        *value = with;
    }
}

fn conflict(key: &str, detail: String) -> ConfigError {
    ConfigError::Conflict { key: key.to_owned(), detail }
}

fn normal_forms(owners: &[String]) -> Result<Vec<String>, ConfigError> {
    let normal = |owner: &String| EnsName::parse(owner).map(|name| name.as_str().to_owned());
    owners.iter().map(normal).collect::<Result<_, _>>().map_err(|e| conflict("allowed-publishers", e.to_string()))
}

/// Gives the second and later of equal labels a number: verdicts and logs tell endpoints apart by their labels alone.
fn number_labels<'a>(labels: impl Iterator<Item = &'a mut String>) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for label in labels {
        let count = seen.entry(label.clone()).or_default();
        *count += 1;
        if *count > 1 {
            label.push_str(&format!("#{count}"));
        }
    }
}

fn as_text<S: serde::Serializer, T: Display>(value: &Option<T>, s: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => s.collect_str(value),
        None => s.serialize_none(),
    }
}

fn as_texts<S: serde::Serializer, T: Display>(values: &[T], s: S) -> Result<S::Ok, S::Error> {
    s.collect_seq(values.iter().map(T::to_string))
}

fn as_duration<S: serde::Serializer>(value: &Option<Duration>, s: S) -> Result<S::Ok, S::Error> {
    as_text(&value.map(humantime::format_duration), s)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(demand(&[]), Ok(Demand::Quorum(2)), "the built-in endpoints");
        assert_eq!(demand(&[named(&one)]), Ok(Demand::SingleRpc));
        assert_eq!(demand(&[named(&two)]), Ok(Demand::Quorum(2)));
        assert_eq!(demand(&[named(&same)]), Ok(Demand::SingleRpc), "one operator");
        assert_eq!(demand(&[quorum(4)]), Ok(Demand::Quorum(4)));
        assert_eq!(demand(&[proof(ProofDemand::SingleRpc)]), Ok(Demand::SingleRpc));
        assert_eq!(demand(&[proof(ProofDemand::SingleRpc), quorum(3)]), Ok(Demand::Quorum(3)), "the stronger wins");
        assert_eq!(demand(&[quorum(3), proof(ProofDemand::SingleRpc)]), Ok(Demand::SingleRpc));
        assert!(demand(&[named(&one), quorum(2)]).is_err());
        assert!(demand(&[named(&same), proof(ProofDemand::Quorum)]).is_err());
        assert!(demand(&[quorum(7)]).is_err());
        let own = Endpoint { own: true, ..two[0].parse().unwrap() };
        let own = Layer { rpc: Some(vec![own, "https://rpc.other".parse().unwrap()]), ..Layer::default() };
        assert_eq!(demand(std::slice::from_ref(&own)), Ok(Demand::SingleRpc));
        assert_eq!(demand(&[own, quorum(2)]), Ok(Demand::Quorum(2)));
    }

    #[test]
    fn a_gate_that_would_refuse_everything_is_refused() {
        let least = |grade| GateLayer { min_proof: Some(grade), ..GateLayer::default() };
        let with = |grade, rpc: Option<Vec<Endpoint>>| {
            Config::default().with([Layer { gate: Some(least(grade)), rpc, ..Layer::default() }])
        };
        assert!(with(Grade::Quorum, None).is_ok());
        assert!(with(Grade::StateProof, None).is_err());
        assert!(with(Grade::Quorum, Some(vec!["https://rpc.example".parse().unwrap()])).is_err());
    }

    #[test]
    fn equal_labels_are_numbered() {
        let rpc = Some(vec!["https://a.example/1".parse().unwrap(), "https://a.example/2".parse().unwrap()]);
        let config = Config::default().with([Layer { rpc, ..Layer::default() }]).unwrap();
        assert_eq!(
            config.chain.endpoints.iter().map(|e| e.label.as_str()).collect::<Vec<_>>(),
            ["a.example", "a.example#2"]
        );
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
