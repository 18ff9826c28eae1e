//! The configuration file: TOML, whose keys are the world flags without their dashes.

use std::fmt;
use std::io::Read as _;
use std::marker::PhantomData;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use alloy_primitives::{Address, B256};
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

use super::layer::{CacheLayer, Layer};
use super::memory::MemoryLayer;
use super::orloj::OrlojLayer;
use super::serve::{GateLayer, HttpLayer};
use super::sign::SignLayer;
use super::value::{
    Origin, parse_address, parse_digest, parse_duration, parse_hash, parse_hedging, parse_profile, parse_world, quorum,
};
use super::{Config, ConfigError, ConnectTo, Endpoint, Gateway, Hedging, ManifestSource, OriginSpec, ProofDemand};
use crate::chain::BlockSelector;
use crate::text::{Foreign, nearest, without_secrets};
use crate::verdict::Depth;

/// Longest configuration file read, in bytes: far more than any real one, and little memory.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// First line of a file that [`Config::save`] writes, by which it knows what it may overwrite.
const WRITTEN_BY: &str = "# Written by clresolve; it may be overwritten.";

impl Layer {
    /// Reads a configuration file. Relative paths in it are taken from its folder.
    ///
    /// # Errors
    /// When the file cannot be read, or a key of it is unknown or holds what it must not.
    pub fn from_file(path: &Path) -> Result<Self, ConfigError> {
        let text = read(path)?;
        let mut layer = Self::from_toml(&text, &path.display().to_string())?;
        let folder = path.parent().unwrap_or_else(|| Path::new(""));
        layer.rebase(folder);
        Ok(layer)
    }

    /// Reads the text of a configuration file; `path` is what messages call it.
    ///
    /// # Errors
    /// Names line, key and what was expected.
    pub fn from_toml(text: &str, path: &str) -> Result<Self, ConfigError> {
        let file: File = toml::from_str(text).map_err(|e| invalid(text, path, &e))?;
        Ok(file.into())
    }

    fn rebase(&mut self, folder: &Path) {
        let join = |path: &mut PathBuf| *path = folder.join(&*path);
        self.ca.iter_mut().for_each(join);
        self.profile_files.iter_mut().flatten().for_each(join);
        self.orloj.iter_mut().filter_map(|orloj| orloj.resources.as_mut()).flatten().for_each(join);
        self.sign.iter_mut().for_each(|sign| sign.each_path(join));
        self.memory
            .iter_mut()
            .filter_map(|memory| memory.path.as_mut())
            .filter(|path| !path.as_os_str().is_empty())
            .for_each(join);
        for manifest in self.manifest.iter_mut().flatten() {
            if let ManifestSource::File(path) = manifest {
                join(path);
            }
        }
    }
}

impl Config {
    /// Writes the configuration to `path`, and trust roots held in memory beside it, so that any client can use it with
    /// `--config`. The file may hold keys in URLs: on Unix only its owner may read it.
    ///
    /// # Errors
    /// When the file cannot be written, or exists and was not written by this function.
    pub fn save(&self, path: &Path) -> Result<(), ConfigError> {
        let mut layer = Layer::of(self);
        if !self.network.ca_pems.is_empty() {
            let ca = path.with_extension("ca.pem");
            let name = ca.file_name().unwrap_or_default();
            layer.ca.insert(0, PathBuf::from(name));
            write(&ca, &format!("{WRITTEN_BY}\n{}", self.network.ca_pems.join("\n")))?;
        }
        let absolute = |path: &mut PathBuf| *path = std::path::absolute(&*path).unwrap_or_else(|_| path.clone());
        let kept = usize::from(!self.network.ca_pems.is_empty());
        layer.ca.iter_mut().skip(kept).for_each(absolute);
        layer.profile_files.iter_mut().flatten().for_each(absolute);
        layer.sign.iter_mut().for_each(|sign| sign.each_path(absolute));
        layer.memory.iter_mut().filter_map(|memory| memory.path.as_mut()).for_each(absolute);
        write(path, &layer.to_toml(path)?)
    }
}

impl Layer {
    fn to_toml(&self, path: &Path) -> Result<String, ConfigError> {
        let text = toml::to_string(self).map_err(|e| unwritable(path, &e))?;
        Ok(format!("{WRITTEN_BY}\n\n{text}"))
    }
}

fn read(path: &Path) -> Result<String, ConfigError> {
    let unreadable = |detail: String| ConfigError::Unreadable { path: path.display().to_string(), detail };
    let file = std::fs::File::open(path).map_err(|e| unreadable(e.to_string()))?;
    let mut text = String::new();
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(|e| unreadable(e.to_string()))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(unreadable(format!("a configuration file has at most {MAX_FILE_BYTES} bytes")));
    }
    Ok(text)
}

fn write(path: &Path, text: &str) -> Result<(), ConfigError> {
    if path.exists() && !read(path).is_ok_and(|old| old.starts_with(WRITTEN_BY)) {
        return Err(unwritable(path, &"the file exists and was not written by clresolve; name another one"));
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(|e| unwritable(path, &e))?;
    std::io::Write::write_all(&mut file, text.as_bytes()).map_err(|e| unwritable(path, &e))
}

fn unwritable(path: &Path, detail: &dyn fmt::Display) -> ConfigError {
    ConfigError::Unwritable { path: path.display().to_string(), detail: detail.to_string() }
}

/// An error with line and key, and without what may be a secret.
fn invalid(text: &str, path: &str, error: &toml::de::Error) -> ConfigError {
    let at = error.span().unwrap_or(Range { start: 0, end: 0 }).start.min(text.len());
    let before = text.get(..at).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    ConfigError::Invalid {
        path: path.to_owned(),
        line,
        key: key_at(text, line),
        detail: Foreign::new(&without_secrets(&with_nearest_key(&without_values(error.message()))))
            .at_most(MAX_DETAIL_CHARS)
            .to_string(),
    }
}

/// Longest detail of an error, in characters: the list of all keys fits.
const MAX_DETAIL_CHARS: usize = 1000;

/// The message on an unknown key with the known key that is most like it.
fn with_nearest_key(message: &str) -> String {
    let Some((head, known)) = message.split_once(", expected ") else { return message.to_owned() };
    let typed = head.strip_prefix("unknown field `").and_then(|rest| rest.strip_suffix('`'));
    let Some(typed) = typed else { return message.to_owned() };
    match nearest(typed, known.split('`').skip(1).step_by(2)) {
        Some(key) => format!("unknown field `{typed}`, did you mean `{key}`? expected {known}"),
        None => message.to_owned(),
    }
}

/// The message without the text of a value that has the wrong type: it may be a URL with a key.
fn without_values(message: &str) -> String {
    match message.split_once("invalid type: string \"").map(|(before, rest)| (before, rest.rsplit_once("\", expected")))
    {
        Some((before, Some((_, expected)))) => format!("{before}invalid type: string, expected{expected}"),
        _ => message.to_owned(),
    }
}

/// The key or table that stands on `line` or, for a value of several lines, nearest above it.
fn key_at(text: &str, line: usize) -> String {
    let lines: Vec<&str> = text.lines().take(line).collect();
    let key_of = |line: &&str| {
        let line = line.trim();
        if line.starts_with('#') {
            return None;
        }
        if line.starts_with('[') && line.ends_with(']') && !line.contains(['"', ',']) {
            return Some(line.trim_matches(['[', ']']).to_owned());
        }
        let key = line.split_once('=')?.0.trim();
        let plain = key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
        (plain && !key.is_empty()).then(|| key.to_owned())
    };
    lines.iter().rev().find_map(key_of).unwrap_or_else(|| "?".to_owned())
}

/// The file as it is written. Unknown keys are refused.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct File {
    world: Option<World>,
    chain_id: Option<u64>,
    universal_resolver: Option<Contract>,
    block: Option<BlockForm>,
    proof: Option<Demand>,
    quorum: Option<QuorumForm>,
    genesis: Option<BlockHash>,
    ccip_read: Option<bool>,
    profile: Option<Profile>,
    depth: Option<Depth>,
    require_all_sources: Option<bool>,
    links: Option<bool>,
    allowed_publishers: Option<Vec<String>>,
    profile_files: Option<Vec<PathBuf>>,
    timeout: Option<Timeout>,
    connect_to: Vec<Rule>,
    allow_host: Vec<HostPort>,
    ca: Vec<PathBuf>,
    cache: Option<CacheLayer>,
    memory: Option<MemoryLayer>,
    http: Option<HttpLayer>,
    gate: Option<GateLayer>,
    sign: Option<SignLayer>,
    orloj: Option<OrlojLayer>,
    hedge_after: Option<HedgeAfter>,
    rpc: Option<Vec<OriginForm<Endpoint>>>,
    gateway: Option<Vec<OriginForm<Gateway>>>,
    manifest: Option<Vec<ManifestForm>>,
}

impl From<File> for Layer {
    fn from(file: File) -> Self {
        Self {
            world: file.world.map(|w| w.0),
            chain_id: file.chain_id,
            universal_resolver: file.universal_resolver.map(|a| a.0),
            block: file.block.map(|b| b.0),
            proof: file.proof.map(|p| p.0),
            quorum: file.quorum.map(|k| k.0),
            genesis: file.genesis.map(|hash| hash.0),
            ccip_read: file.ccip_read,
            profile: file.profile.map(|p| p.0),
            depth: file.depth,
            require_all_sources: file.require_all_sources,
            links: file.links,
            allowed_publishers: file.allowed_publishers,
            profile_files: file.profile_files,
            timeout: file.timeout.map(|t| t.0),
            connect_to: file.connect_to.into_iter().map(|c| c.0).collect(),
            allow_host: file.allow_host.into_iter().map(|h| h.0).collect(),
            ca: file.ca,
            cache: file.cache,
            memory: file.memory,
            http: file.http,
            gate: file.gate,
            sign: file.sign,
            orloj: file.orloj,
            hedge_after: file.hedge_after.map(|h| h.0),
            rpc: file.rpc.map(|list| list.into_iter().map(|o| o.0).collect()),
            gateway: file.gateway.map(|list| list.into_iter().map(|o| o.0).collect()),
            manifest: file.manifest.map(|list| list.into_iter().map(|m| m.0).collect()),
        }
    }
}

/// Values that are written as strings and read by a function.
macro_rules! text_forms {
    ($($name:ident($type:ty) = $parse:expr;)*) => {$(
        struct $name($type);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = String::deserialize(d)?;
                $parse(&text).map(Self).map_err(de::Error::custom)
            }
        }
    )*};
}

text_forms! {
    World(String) = parse_world;
    Contract(Address) = parse_address;
    Demand(ProofDemand) = str::parse;
    Profile(String) = parse_profile;
    Timeout(Duration) = parse_duration;
    HedgeAfter(Hedging) = parse_hedging;
    Rule(ConnectTo) = str::parse;
    HostPort(OriginSpec) = str::parse;
    Digest(String) = parse_digest;
    BlockHash(B256) = parse_hash;
}

/// `quorum`: how many operators must agree.
struct QuorumForm(usize);

impl<'de> Deserialize<'de> for QuorumForm {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        quorum(usize::deserialize(d)?).map(Self).map_err(de::Error::custom)
    }
}

/// A block: one of the tags, or a number with or without quotes.
struct BlockForm(BlockSelector);

impl<'de> Deserialize<'de> for BlockForm {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Block;

        impl Visitor<'_> for Block {
            type Value = BlockForm;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("finalized, safe, latest or a block number")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<BlockForm, E> {
                let number = number.try_into().map_err(|_| E::invalid_value(de::Unexpected::Signed(number), &self))?;
                Ok(BlockForm(BlockSelector::Number(number)))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<BlockForm, E> {
                Ok(BlockForm(BlockSelector::Number(number)))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<BlockForm, E> {
                text.parse().map(BlockForm).map_err(E::custom)
            }
        }

        d.deserialize_any(Block)
    }
}

/// An endpoint or gateway: an URL alone, or a table.
struct OriginForm<T>(T);

/// What the table of an origin holds: `url` and, if wanted, the other keys.
trait Written: TryFrom<Origin, Error = String> {
    type Table: for<'de> Deserialize<'de> + Into<Origin>;
}

impl Written for Endpoint {
    type Table = EndpointTable;
}

impl Written for Gateway {
    type Table = GatewayTable;
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EndpointTable {
    url: String,
    label: Option<String>,
    own: Option<bool>,
    operator: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GatewayTable {
    url: String,
    label: Option<String>,
    own: Option<bool>,
}

impl From<EndpointTable> for Origin {
    fn from(table: EndpointTable) -> Self {
        let EndpointTable { url, label, own, operator } = table;
        Self { url, label, own, operator }
    }
}

impl From<GatewayTable> for Origin {
    fn from(table: GatewayTable) -> Self {
        let GatewayTable { url, label, own } = table;
        Self { url, label, own, operator: None }
    }
}

impl<'de, T: Written> Deserialize<'de> for OriginForm<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(OriginVisitor(PhantomData))
    }
}

struct OriginVisitor<T>(PhantomData<T>);

impl<'de, T: Written> Visitor<'de> for OriginVisitor<T> {
    type Value = OriginForm<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an URL, or a table with url, label and own")
    }

    fn visit_str<E: de::Error>(self, url: &str) -> Result<Self::Value, E> {
        Origin::from(url).try_into().map(OriginForm).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let table = T::Table::deserialize(de::value::MapAccessDeserializer::new(map))?;
        let origin: Origin = table.into();
        origin.try_into().map(OriginForm).map_err(de::Error::custom)
    }
}

/// A manifest: `file`, or `url` and `digest`.
struct ManifestForm(ManifestSource);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestTable {
    file: Option<PathBuf>,
    url: Option<String>,
    digest: Option<Digest>,
}

impl<'de> Deserialize<'de> for ManifestForm {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        match ManifestTable::deserialize(d)? {
            ManifestTable { file: Some(path), url: None, digest: None } => Ok(Self(ManifestSource::File(path))),
            ManifestTable { file: None, url: Some(url), digest: Some(Digest(digest)) } => {
                let url = url::Url::parse(&url).ok().filter(|u| u.scheme() == "https");
                let url = url.ok_or_else(|| de::Error::custom("expected url to be an https URL"))?;
                Ok(Self(ManifestSource::Url { url, digest }))
            }
            _ => Err(de::Error::custom("expected file alone, or url with digest")),
        }
    }
}

impl Serialize for ManifestSource {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        match self {
            Self::File(path) => map.serialize_entry("file", path)?,
            Self::Url { url, digest } => {
                map.serialize_entry("url", url.as_str())?;
                map.serialize_entry("digest", digest)?;
            }
        }
        map.end()
    }
}

impl Serialize for Endpoint {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(Some(4))?;
        origin(&mut map, self.url.as_str(), &self.label, self.own)?;
        map.serialize_entry("operator", &self.operator)?;
        map.end()
    }
}

impl Serialize for Gateway {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(Some(3))?;
        origin(&mut map, self.url.as_str(), &self.label, self.own)?;
        map.end()
    }
}

fn origin<M: SerializeMap>(map: &mut M, url: &str, label: &str, own: bool) -> Result<(), M::Error> {
    map.serialize_entry("url", url)?;
    map.serialize_entry("label", label)?;
    map.serialize_entry("own", &own)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str = r#"
world = "lab"
chain-id = 31337
universal-resolver = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
block = 17
proof = "single-rpc"
ccip-read = false
profile = "agent-cards/1.0.0+released"
depth = "schemas"
require-all-sources = true
links = true
allowed-publishers = ["CommandLayer.eth"]
timeout = "2s"
hedge-after = "800ms"
connect-to = ["agent.example:443:127.0.0.1:8443"]
allow-host = ["agent.example:8443"]
ca = ["ca.pem"]
gateway = ["https://gateway.example", "http://127.0.0.1:8080"]

[cache]
trusted = 5

[[rpc]]
url = "http://127.0.0.1:8545"
label = "anvil"
own = true

[[manifest]]
file = "commons.json"
"#;

    fn refused(text: &str) -> (usize, String, String) {
        match Layer::from_toml(text, "f.toml").unwrap_err() {
            ConfigError::Invalid { line, key, detail, .. } => (line, key, detail),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn every_key_is_read() {
        let config = Config::default().with([Layer::from_toml(FULL, "f.toml").unwrap()]).unwrap();
        assert_eq!((config.chain.world.as_str(), config.chain.id), ("lab", 31_337));
        assert_eq!(config.chain.block, BlockSelector::Number(17));
        assert!(!config.chain.ccip_read);
        assert_eq!(config.chain.endpoints.len(), 1);
        assert!(config.chain.endpoints[0].own);
        assert_eq!(config.chain.endpoints[0].label, "anvil");
        assert_eq!(config.gateways.iter().map(|g| g.own).collect::<Vec<_>>(), [false, false]);
        assert_eq!(config.rules.allowed_publishers, ["commandlayer.eth"]);
        assert_eq!(config.rules.depth, Depth::Schemas);
        assert!(config.rules.require_all_sources && config.rules.links);
        assert_eq!(config.timeout, Duration::from_secs(2));
        assert_eq!(config.network.hedging, Hedging::After(Duration::from_millis(800)));
        assert_eq!(config.cache.trusted, 5);
        assert_eq!(config.cache.untrusted, 10_000);
        assert_eq!(config.network.ca_files, [PathBuf::from("ca.pem")]);
        assert_eq!(config.rules.manifests, [ManifestSource::File("commons.json".into())]);
    }

    #[test]
    fn what_is_written_reads_back() {
        let config = Config::default().with([Layer::from_toml(FULL, "f.toml").unwrap()]).unwrap();
        let text = Layer::of(&config).to_toml(Path::new("f.toml")).unwrap();
        let again = Config::default().with([Layer::from_toml(&text, "f.toml").unwrap()]).unwrap();
        assert_eq!(again, config, "{text}");
    }

    #[test]
    fn a_saved_file_carries_its_trust_roots_and_spares_others() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("clresolve.toml");
        let mut config = Config::default();
        config.network.ca_pems = vec!["-----BEGIN CERTIFICATE-----\n".to_owned()];
        config.save(&path).unwrap();
        config.save(&path).unwrap();
        let layer = Layer::from_file(&path).unwrap();
        assert_eq!(layer.ca, [dir.path().join("clresolve.ca.pem")]);
        assert!(std::fs::read_to_string(&layer.ca[0]).unwrap().contains("BEGIN CERTIFICATE"));
        let own = dir.path().join("own.toml");
        std::fs::write(&own, "timeout = \"1s\"\n").unwrap();
        assert!(matches!(config.save(&own), Err(ConfigError::Unwritable { .. })));
        assert_eq!(std::fs::read_to_string(&own).unwrap(), "timeout = \"1s\"\n");
    }

    #[test]
    fn errors_name_line_key_and_what_was_expected() {
        let (line, key, detail) = refused("world = \"lab\"\ntimeuot = \"1s\"\n");
        assert_eq!((line, key.as_str()), (2, "timeuot"));
        assert!(detail.starts_with("unknown field `timeuot`, did you mean `timeout`? expected one of `"), "{detail}");
        let (_, _, detail) = refused("[gate]\ndedline = \"1s\"\n");
        assert_eq!(
            detail,
            "unknown field `dedline`, did you mean `deadline`? expected one of `deadline`, `deny`, `min-proof`"
        );
        let (_, _, detail) = refused("[gate]\nxyz = \"1s\"\n");
        assert_eq!(detail, "unknown field `xyz`, expected one of `deadline`, `deny`, `min-proof`");
        let (line, key, detail) = refused("\ntimeout = \"soon\"\n");
        assert_eq!((line, key.as_str()), (2, "timeout"));
        assert_eq!(detail, "expected a duration such as 15s, 500ms or 1m 30s");
        let (line, key, detail) = refused("block = -1");
        assert_eq!((line, key.as_str()), (1, "block"));
        assert!(detail.contains("expected finalized, safe, latest or a block number"), "{detail}");
        let (line, key, _) = refused("[[rpc]]\nurl = \"http://a.example\"\nowm = true\n");
        assert_eq!((line, key.as_str()), (3, "owm"));
        let (line, key, _) = refused("gateway = [\n  \"https://a.example\",\n  \"ftp://b.example\",\n]\n");
        assert_eq!((line, key.as_str()), (3, "gateway"));
        assert_eq!(refused("quorum = 1").1, "quorum");
        assert_eq!(refused("genesis = \"0x12\"").1, "genesis");
        assert_eq!(refused("[[gateway]]\nurl = \"https://a.example\"\noperator = \"a\"\n").1, "operator");
        assert!(refused("proof = \"zero-knowledge\"").2.contains("state-proof"));
        assert_eq!(refused("a b").0, 1);
        assert_eq!(refused("[[manifest]]\nurl = \"https://a.example\"\n").1, "manifest");
    }

    #[test]
    fn errors_show_no_key() {
        let texts = [
            "rpc = [\"ftp://a.example/SECRET\"]",
            "ccip-read = \"https://a.example/SECRET\"",
            "[[rpc]]\nurl = \"x\\nSECRET\"",
        ];
        for text in texts {
            let message = Layer::from_toml(text, "f.toml").unwrap_err().to_string();
            assert!(!message.contains("SECRET"), "{message}");
        }
    }
}
