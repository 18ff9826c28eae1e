//! The configuration file: TOML whose keys are the names of the flags without the leading dashes.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use toml::de::DeTable;
use toml::{Table, Value};

use super::layer::{ConfigLayer, find_unknown_top_level_key};
use super::message::redact_secrets;
use super::{Config, ConfigError, EnsChainConfig, OutboundNetworkConfig, VerdictRulesConfig};

/// Maximum size of a configuration file, in bytes: far larger than any real one, yet small in memory.
pub const MAX_FILE_BYTES: usize = 1024 * 1024;

/// First line of each file that [`Config::save`] writes. `save` only overwrites files that begin with it.
const WRITTEN_BY: &str = "# Written by clresolve; it may be overwritten.";

/// The error for a path that TOML cannot express.
const NOT_UTF8: &str = "expected paths in UTF-8";

/// The keys whose values are paths. In a file, relative ones are resolved against its folder, so that a file that is
/// saved elsewhere still refers to the same files.
const PATHS: [&str; 10] = [
    "beacon.file",
    "ca",
    "cache.hot-names",
    "manifest.file",
    "memory.path",
    "orloj.resources",
    "profile-files",
    "redis.mac-key",
    "sign.key",
    "sign.publish",
];

impl ConfigLayer {
    /// Reads a configuration file. Relative paths in it are resolved against its folder.
    ///
    /// # Errors
    /// If the file cannot be read, or if a key is unknown or has an invalid value.
    pub fn from_file(path: &Path) -> Result<Self, ConfigError> {
        Self::from_text(&read_config_file(path)?, path)
    }

    /// Reads an already open configuration file, located at `path`, as [`ConfigLayer::from_file`] does.
    ///
    /// # Errors
    /// As [`ConfigLayer::from_file`].
    pub fn from_open_file(file: File, path: &Path) -> Result<Self, ConfigError> {
        Self::from_text(&read_open_config_file(file, path)?, path)
    }

    fn from_text(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let mut layer = Self::from_toml(text, &path.display().to_string())?;
        let folder = path.parent().unwrap_or_else(|| Path::new(""));
        let is_changed = map_config_paths(&mut layer.0, &|path| folder.join(path));
        is_changed.ok_or_else(|| unreadable_error(path, NOT_UTF8.to_owned()))?;
        Ok(layer)
    }

    /// Parses the text of a configuration file. Error messages refer to it as `path`.
    ///
    /// # Errors
    /// With the line, the key, and what was expected.
    pub fn from_toml(text: &str, path: &str) -> Result<Self, ConfigError> {
        let invalid = |error: toml::de::Error| invalid_file_error(text, path, &error);
        reject_unknown_top_level_keys(text, path)?;
        check_values(text).map_err(invalid)?;
        text.parse().map(Self).map_err(invalid)
    }
}

impl Config {
    /// Writes the configuration to `path`, and in-memory trust roots to a file next to it, so that clients can use it
    /// with `--config`. The file may contain API keys in URLs: on Unix only its owner may read it.
    ///
    /// # Errors
    /// If the file cannot be written, if it exists and was not written by this function, or if TOML cannot express a
    /// value.
    pub fn save(&self, path: &Path) -> Result<(), ConfigError> {
        let mut table = ConfigLayer::from_config(self)?.0;
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        map_config_paths(&mut table, &absolute).ok_or_else(|| unwritable_error(path, &NOT_UTF8))?;
        if !self.network.ca_pems.is_empty() {
            let ca = path.with_extension("ca.pem");
            let mut layer = ConfigLayer::default();
            layer.set_key("ca", Some([Path::new(ca.file_name().unwrap_or_default())]))?;
            layer.merge_into_table(&mut table)?;
            write_config_file(&ca, &format!("{WRITTEN_BY}\n{}", self.network.ca_pems.join("\n")))?;
        }
        write_config_file(path, &format!("{WRITTEN_BY}\n\n{table}"))
    }
}

/// Applies `change` to each path in the table. `None` if the result is not UTF-8.
fn map_config_paths(table: &mut Table, change: &impl Fn(&Path) -> PathBuf) -> Option<()> {
    PATHS.iter().try_for_each(|key| map_config_path(table, key, change))
}

fn map_config_path(table: &mut Table, key: &str, change: &impl Fn(&Path) -> PathBuf) -> Option<()> {
    let (first, rest) = key.split_once('.').unwrap_or((key, ""));
    let values = match table.get_mut(first) {
        Some(Value::Array(items)) => items.as_mut_slice(),
        Some(value) => std::slice::from_mut(value),
        None => &mut [],
    };
    values.iter_mut().try_for_each(|value| match value {
        Value::Table(below) => map_config_path(below, rest, change),
        // An empty text means no path.
        Value::String(path) if rest.is_empty() && !path.is_empty() => {
            *path = change(Path::new(path)).into_os_string().into_string().ok()?;
            Some(())
        }
        _ => Some(()),
    })
}

/// Rejects an unknown key of the top level, which `serde(flatten)` would ignore.
fn reject_unknown_top_level_keys(text: &str, path: &str) -> Result<(), ConfigError> {
    let document = DeTable::parse(text).map_err(|error| invalid_file_error(text, path, &error))?;
    match find_unknown_top_level_key(document.get_ref().keys()) {
        Some((key, message)) => Err(invalid_key_error(text, path, key.span().start, &message)),
        None => Ok(()),
    }
}

/// Reads every value, for an error with its position. The keys that `serde(flatten)` puts into parts of [`Config`]
/// would lose theirs.
fn check_values(text: &str) -> Result<(), toml::de::Error> {
    toml::from_str::<EnsChainConfig>(text)?;
    toml::from_str::<OutboundNetworkConfig>(text)?;
    toml::from_str::<VerdictRulesConfig>(text)?;
    toml::from_str::<Config>(text).map(|_| ())
}

fn read_config_file(path: &Path) -> Result<String, ConfigError> {
    let file = File::open(path).map_err(|e| unreadable_error(path, e.to_string()))?;
    read_open_config_file(file, path)
}

fn read_open_config_file(file: File, path: &Path) -> Result<String, ConfigError> {
    let unreadable = |detail| unreadable_error(path, detail);
    let mut text = String::new();
    file.take(MAX_FILE_BYTES as u64 + 1).read_to_string(&mut text).map_err(|e| unreadable(e.to_string()))?;
    if text.len() > MAX_FILE_BYTES {
        return Err(unreadable(format!("a configuration file has at most {MAX_FILE_BYTES} bytes")));
    }
    Ok(text)
}

fn unreadable_error(path: &Path, detail: String) -> ConfigError {
    ConfigError::Unreadable { path: path.display().to_string(), detail }
}

fn write_config_file(path: &Path, text: &str) -> Result<(), ConfigError> {
    if path.exists() && !read_config_file(path).is_ok_and(|old| old.starts_with(WRITTEN_BY)) {
        return Err(unwritable_error(path, &"the file exists and was not written by clresolve; name another one"));
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(|e| unwritable_error(path, &e))?;
    std::io::Write::write_all(&mut file, text.as_bytes()).map_err(|e| unwritable_error(path, &e))
}

fn unwritable_error(path: &Path, detail: &dyn fmt::Display) -> ConfigError {
    ConfigError::Unwritable { path: path.display().to_string(), detail: detail.to_string() }
}

fn invalid_file_error(text: &str, path: &str, error: &toml::de::Error) -> ConfigError {
    invalid_key_error(text, path, error.span().unwrap_or_default().start, error.message())
}

/// An error with its line and key, without any value that may be secret.
fn invalid_key_error(text: &str, path: &str, start: usize, message: &str) -> ConfigError {
    let before = text.get(..start.min(text.len())).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    ConfigError::Invalid { path: path.to_owned(), line, key: key_at_line(text, line), detail: redact_secrets(message) }
}

/// The key or table on `line`. For a value of several lines, the nearest one above.
fn key_at_line(text: &str, line: usize) -> String {
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::{HedgeDelay, SchemaManifestSource};
    use clresolve_core::reading::BlockSelector;
    use clresolve_verdict::verdict::ResolutionDepth;

    const FULL: &str = r#"
world = "lab"
chain-id = 31337
universal-resolver = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
block = 17
proof = "single-rpc"
head-poll = "3s"
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
max-unconfirmed = "20s"

[[rpc]]
url = "http://127.0.0.1:8545"
label = "anvil"
own = true

[[manifest]]
file = "commons.json"
"#;

    fn refused(text: &str) -> (usize, String, String) {
        match ConfigLayer::from_toml(text, "f.toml").unwrap_err() {
            ConfigError::Invalid { line, key, detail, .. } => (line, key, detail),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn every_key_is_read() {
        let config = Config::default().with_layers([ConfigLayer::from_toml(FULL, "f.toml").unwrap()]).unwrap();
        assert_eq!((config.chain.world.as_str(), config.chain.id), ("lab", 31_337));
        assert_eq!(config.chain.block, BlockSelector::Number(17));
        assert!(!config.chain.ccip_read);
        assert_eq!(config.chain.head_poll, Duration::from_secs(3));
        assert_eq!(config.chain.endpoints.len(), 1);
        assert!(config.chain.endpoints[0].own);
        assert_eq!(config.chain.endpoints[0].label, "anvil");
        assert_eq!(config.gateways.iter().map(|g| g.own).collect::<Vec<_>>(), [false, false]);
        assert_eq!(config.rules.allowed_publishers, ["commandlayer.eth"]);
        assert_eq!(config.rules.depth, ResolutionDepth::Schemas);
        assert!(config.rules.require_all_sources && config.rules.links);
        assert_eq!(config.timeout, Duration::from_secs(2));
        assert_eq!(config.network.hedging, HedgeDelay::After(Duration::from_millis(800)));
        assert_eq!(config.cache.trusted, 5);
        assert_eq!(config.cache.untrusted, 10_000);
        assert_eq!(config.cache.max_unconfirmed, Duration::from_secs(20));
        assert_eq!(config.network.ca_files, [PathBuf::from("ca.pem")]);
        assert_eq!(config.rules.manifests, [SchemaManifestSource::File("commons.json".into())]);
    }

    #[test]
    fn newest_block_may_be_five_known_slots_old() {
        let of = |text: &str| {
            let rpc = "rpc = [\"https://rpc.example\"]\n";
            Config::default()
                .with_layers([ConfigLayer::from_toml(&format!("{rpc}{text}"), "f.toml").unwrap()])
                .unwrap()
                .chain
        };
        let seconds = |text: &str| of(text).effective_max_head_age().map(|age| age.as_secs());
        assert_eq!(seconds(""), Some(60));
        assert_eq!(seconds("chain-id = 11155111"), Some(60));
        assert_eq!(seconds("chain-id = 8453"), Some(10));
        assert_eq!(seconds("chain-id = 31337"), None);
        assert_eq!(seconds("chain-id = 31337\nmax-head-age = \"10m\""), Some(600));
        assert_eq!(seconds("max-head-age = \"90s\""), Some(90));
        // Another chain has a different slot time.
        let mainnet = Config { chain: of("max-head-age = \"90s\""), ..Config::default() };
        let other = ConfigLayer::from_toml("chain-id = 31337", "f.toml").unwrap();
        assert_eq!(mainnet.with_layers([other]).unwrap().chain.effective_max_head_age(), None);
        assert!(ConfigLayer::from_toml("max-head-age = \"0s\"", "f.toml").is_err());
    }

    #[test]
    fn what_is_written_reads_back() {
        let config = Config::default().with_layers([ConfigLayer::from_toml(FULL, "f.toml").unwrap()]).unwrap();
        let text = ConfigLayer::from_config(&config).unwrap().0.to_string();
        let again = Config::default().with_layers([ConfigLayer::from_toml(&text, "f.toml").unwrap()]).unwrap();
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
        let read = Config::default().with_layers([ConfigLayer::from_file(&path).unwrap()]).unwrap();
        assert_eq!(read.network.ca_files, [dir.path().join("clresolve.ca.pem")]);
        assert!(std::fs::read_to_string(&read.network.ca_files[0]).unwrap().contains("BEGIN CERTIFICATE"));
        let own = dir.path().join("own.toml");
        std::fs::write(&own, "timeout = \"1s\"\n").unwrap();
        assert!(matches!(config.save(&own), Err(ConfigError::Unwritable { .. })));
        assert_eq!(std::fs::read_to_string(&own).unwrap(), "timeout = \"1s\"\n");
    }

    /// Each key that names a file is resolved against the folder of the configuration, and still names the same file
    /// after a save.
    #[test]
    fn every_path_names_the_same_file_after_a_save_elsewhere() {
        let text = r#"
            profile-files = ["rules/profile.json"]
            ca = ["rules/ca.pem"]
            [[manifest]]
            file = "rules/manifest.json"
            [beacon]
            file = "rules/light-client"
            [cache]
            hot-names = "rules/hot-names"
            [memory]
            path = "rules/memory.redb"
            [redis]
            url = "unix:///run/redis.sock"
            mac-key = "rules/mac.key"
            [sign]
            key = "rules/key.pem"
            issuer = "https://a.example"
            publish = ["rules/old.json"]
            [orloj]
            resources = ["rules/agent.yaml"]
        "#;
        let absolute = |text: &str, folder: &Path| text.replace("rules/", &format!("{}/rules/", folder.display()));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clresolve.toml");
        std::fs::write(&path, text).unwrap();
        let read = ConfigLayer::from_file(&path).unwrap();
        assert_eq!(read, ConfigLayer::from_toml(&absolute(text, folder.path()), "f.toml").unwrap());

        let relative = Config::default().with_layers([ConfigLayer::from_toml(text, "f.toml").unwrap()]).unwrap();
        let elsewhere = folder.path().join("saved.toml");
        relative.save(&elsewhere).unwrap();
        let saved = Config::default().with_layers([ConfigLayer::from_file(&elsewhere).unwrap()]).unwrap();
        let here = ConfigLayer::from_toml(&absolute(text, &std::env::current_dir().unwrap()), "f.toml").unwrap();
        assert_eq!(saved, Config::default().with_layers([here]).unwrap());
    }

    /// Only a path may be any text, so a key that accepts this text is one.
    #[test]
    fn every_key_that_accepts_any_text_is_a_path() {
        let is_path = |table: &str, key: &str| {
            let accepts = |value: &str| ConfigLayer::from_toml(&format!("{table}\n{key} = {value}"), "f.toml").is_ok();
            accepts("\"a folder/\u{fc}\"") || accepts("[\"a folder/\u{fc}\"]")
        };
        let keys = serde_json::to_value(Config::default()).unwrap();
        let mut paths = vec!["manifest.file".to_owned()];
        for (key, value) in keys.as_object().unwrap() {
            paths.extend((!value.is_object() && is_path("", key)).then(|| key.clone()));
            let below = value.as_object().into_iter().flatten().map(|(below, _)| below);
            paths.extend(
                below.filter(|below| is_path(&format!("[{key}]"), below)).map(|below| format!("{key}.{below}")),
            );
        }
        paths.sort();
        assert_eq!(paths, PATHS);
    }

    #[test]
    fn errors_name_line_key_and_what_was_expected() {
        let (line, key, detail) = refused("world = \"lab\"\ntimeuot = \"1s\"\n");
        assert_eq!((line, key.as_str()), (2, "timeuot"));
        assert!(detail.starts_with("unknown field `timeuot`, did you mean `timeout`? expected one of `"), "{detail}");
        let (_, _, detail) = refused("[gate]\ndedline = \"1s\"\n");
        assert_eq!(
            detail,
            "unknown field `dedline`, did you mean `deadline`? expected one of `listen`, `deadline`, `deny`, `min-proof`, `verbs`"
        );
        let (_, _, detail) = refused("[gate]\nxyz = \"1s\"\n");
        assert_eq!(detail, "unknown field `xyz`, expected one of `listen`, `deadline`, `deny`, `min-proof`, `verbs`");
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
    fn removed_keys_name_what_to_set_instead() {
        let table = "[follow]\nenabled = false\npoll = \"250ms\"\n";
        let follow =
            "`follow` is no longer a key: set `head-poll`, at the top level, and `max-unconfirmed` in [cache] instead";
        assert_eq!(refused(table), (1, "follow".to_owned(), follow.to_owned()));
        let ws = "`ws` is no longer a key: `head-poll`, at the top level, sets how often each endpoint is asked for its newest block";
        let listed = "[[rpc]]\nurl = \"http://a.example\"\nws = \"ws://a.example/SECRET\"\n";
        assert_eq!(refused(listed), (3, "ws".to_owned(), ws.to_owned()));
        let inline = "rpc = [{ url = \"http://a.example\", ws = \"ws://a.example/SECRET\" }]";
        for text in [inline, &format!("[chains.8453]\n{inline}")] {
            assert_eq!(refused(text).2, ws, "{text}");
        }
    }

    #[test]
    fn head_poll_and_max_unconfirmed_are_above_zero() {
        let config = Config::default();
        assert_eq!((config.chain.head_poll.as_secs(), config.cache.max_unconfirmed.as_secs()), (2, 15));
        for text in ["head-poll = \"0s\"", "[cache]\nmax-unconfirmed = \"0s\""] {
            assert!(refused(text).2.starts_with("expected a duration of more than 0"), "{text}");
        }
    }

    #[test]
    fn head_poll_is_below_max_unconfirmed() {
        let polling = |seconds: u32| {
            let text = format!("head-poll = \"{seconds}s\"\n[cache]\nmax-unconfirmed = \"20s\"");
            crate::config::testing::parse_over_defaults(&text)
        };
        assert!(polling(19).is_ok());
        let error = polling(20).unwrap_err().to_string();
        assert!(error.contains("head-poll") && error.contains("cache.max-unconfirmed"), "{error}");
    }

    #[test]
    fn errors_show_no_key() {
        let texts = [
            "rpc = [\"ftp://a.example/SECRET\"]",
            "ccip-read = \"https://a.example/SECRET\"",
            "[[rpc]]\nurl = \"x\\nSECRET\"",
        ];
        for text in texts {
            let message = ConfigLayer::from_toml(text, "f.toml").unwrap_err().to_string();
            assert!(!message.contains("SECRET"), "{message}");
        }
    }
}
