//! `config`: shows the configuration in force with its sources, checks a file, and writes a starter file.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clresolve_core::text::{UntrustedText, strip_url_secrets};
use clresolve_resolver::config::{ChainProofMode, Config, ConfigLayer, PREPENDED_LISTS, ProofGradeDemand};
use clresolve_resolver::resolve::local_profiles;
use serde::Serialize;
use serde_json::{Map, Value};

use super::args::{ConfigCommand, ConfigShowArguments, OutputFormat, RulesArguments};
use super::config_file::{self, ConfigFileLocation};
use super::exit::ExitStatus;
use super::notice;
use super::output::{OutputSink, OutputWriteError, ResultWriter};
use super::world::{self, CommandPaymentAuthority, ConfigSource};

const STARTER: &str = include_str!("config/starter.toml");

/// The list whose default contains rules (CL-9, X-4). `config show` reports default values that a configured list
/// omits.
const RULE_BY_DEFAULT: &str = "gate.deny";

pub(super) fn run(command: ConfigCommand) -> anyhow::Result<ExitStatus> {
    match command {
        ConfigCommand::Init { file } => create_config_file(file),
        ConfigCommand::Show(args) => show_config(&args),
        ConfigCommand::Check { file } => check_config_file(file),
    }
}

#[derive(Debug, PartialEq, Serialize)]
struct ConfigSetting {
    key: String,
    value: Value,
    /// `default`, `derived`, `file`, `environment` or `flag`. For combined keys, each source with a value.
    source: Vec<&'static str>,
    /// The file, if that is the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// Default values of [`RULE_BY_DEFAULT`] that are not in force.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    replaces: Vec<Value>,
}

fn show_config(args: &ConfigShowArguments) -> anyhow::Result<ExitStatus> {
    if args.world.sandbox {
        bail!(
            "--sandbox: the sandbox has a configuration of its own; `clresolve sandbox --write-config FILE` writes it"
        );
    }
    let sources = world::read_config_layers(&args.world, CommandPaymentAuthority::Others)?;
    let mut results = ResultWriter::for_result_list(OutputSink::new(&args.output.out)?, args.output.output_format());
    for setting in config_settings(&sources)? {
        results.push(&setting, |format| format_setting(&setting, format))?;
    }
    results.finish()?;
    Ok(ExitStatus::Trusted)
}

fn config_settings(sources: &[(ConfigSource, ConfigLayer)]) -> anyhow::Result<Vec<ConfigSetting>> {
    let config = Config::default().with_layers(sources.iter().map(|(_, layer)| layer.clone()))?;
    let default = flatten_config_layer(&effective_config_layer(&Config::default())?)?;
    let named: Vec<(&ConfigSource, BTreeMap<String, Value>)> = sources
        .iter()
        .map(|(source, layer)| Ok((source, flatten_config_layer(layer)?)))
        .collect::<anyhow::Result<_>>()?;
    let setting = |(key, value): (String, Value)| {
        let mut naming: Vec<&ConfigSource> =
            named.iter().filter(|(_, keys)| keys.contains_key(&key)).map(|(source, _)| *source).collect();
        if !PREPENDED_LISTS.contains(&key.as_str()) {
            naming = naming.last().copied().into_iter().collect();
        }
        let source = match naming.as_slice() {
            [] if default.get(&key) == Some(&value) => vec!["default"],
            [] => vec!["derived"],
            naming => naming.iter().map(|source| config_source_word(source)).collect(),
        };
        let file = naming.iter().find_map(|source| match source {
            ConfigSource::File(path) => Some(path.display().to_string()),
            ConfigSource::Environment | ConfigSource::Flags => None,
        });
        let replaces = replaced_defaults(&key, default.get(&key), &value);
        ConfigSetting { key, value, source, file, replaces }
    };
    Ok(flatten_config_layer(&effective_config_layer(&config)?)?.into_iter().map(setting).collect())
}

/// The default values of [`RULE_BY_DEFAULT`] that `value` omits.
fn replaced_defaults(key: &str, default: Option<&Value>, value: &Value) -> Vec<Value> {
    let (Some(Value::Array(default)), Value::Array(items)) = (default, value) else { return Vec::new() };
    if key != RULE_BY_DEFAULT {
        return Vec::new();
    }
    default.iter().filter(|item| !items.contains(item)).cloned().collect()
}

/// The configuration with the settings derived from it: the required proof, the quorum, and the depth for a single
/// name.
fn effective_config_layer(config: &Config) -> anyhow::Result<ConfigLayer> {
    let mut config = config.clone();
    let chain = &mut config.chain;
    let header = chain.block_header_proof_mode()?;
    let (proof, quorum) = match chain.proof_grade_demand()? {
        ProofGradeDemand::SingleRpc => (ChainProofMode::SingleRpc, None),
        ProofGradeDemand::Quorum(agree) => (ChainProofMode::Quorum, Some(agree)),
        ProofGradeDemand::StateProof(agree) => (ChainProofMode::StateProof, Some(agree)),
        ProofGradeDemand::ConsensusProof(agree) => (ChainProofMode::ConsensusProof, (agree > 0).then_some(agree)),
    };
    (chain.proof, chain.quorum, chain.header) = (Some(proof), quorum, Some(header));
    chain.max_head_age = chain.effective_max_head_age();
    let mut layer = ConfigLayer::from_config(&config)?;
    layer.set_key("depth", Some(config.rules.depth))?;
    Ok(layer)
}

const fn config_source_word(source: &ConfigSource) -> &'static str {
    match source {
        ConfigSource::File(_) => "file",
        ConfigSource::Environment => "environment",
        ConfigSource::Flags => "flag",
    }
}

/// Flattens a layer: keys of tables get the table's name as a prefix, and URLs are reduced to their hosts.
pub(super) fn flatten_config_layer(layer: &ConfigLayer) -> anyhow::Result<BTreeMap<String, Value>> {
    let Value::Object(keys) = serde_json::to_value(layer)? else { return Ok(BTreeMap::new()) };
    let mut flat = BTreeMap::new();
    for (key, value) in keys {
        match value {
            Value::Object(below) => {
                flat.extend(below.into_iter().map(|(name, value)| (format!("{key}.{name}"), value)))
            }
            value => {
                flat.insert(key, value);
            }
        }
    }
    flat.values_mut().for_each(strip_url_secrets_in_value);
    Ok(flat)
}

fn strip_url_secrets_in_value(value: &mut Value) {
    match value {
        Value::String(text) => *text = strip_url_secrets(text),
        Value::Array(items) => items.iter_mut().for_each(strip_url_secrets_in_value),
        Value::Object(members) => members.values_mut().for_each(strip_url_secrets_in_value),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn format_setting(setting: &ConfigSetting, format: OutputFormat) -> String {
    let value = match &setting.value {
        Value::Array(items) => join_setting_values(items),
        value => short_setting_value(value),
    };
    let value = UntrustedText::new(&value).with_limit(500).to_string();
    let mut origin = setting.source.join(", ");
    if let Some(file) = setting.file.as_ref().filter(|_| format == OutputFormat::Text) {
        origin = format!("{origin} {}", UntrustedText::new(file));
    }
    if !setting.replaces.is_empty() {
        origin = format!("{origin}; replaces the default {}", join_setting_values(&setting.replaces));
    }
    format!("{:<28} {value}  ({origin})\n", setting.key)
}

fn join_setting_values(items: &[Value]) -> String {
    items.iter().map(short_setting_value).collect::<Vec<_>>().join(", ")
}

/// A value in short form. For an endpoint, its label.
fn short_setting_value(value: &Value) -> String {
    let labelled = |members: &Map<String, Value>| members.get("label").and_then(Value::as_str).map(str::to_owned);
    match value {
        Value::String(text) if text.is_empty() => "\"\"".to_owned(),
        Value::String(text) => text.clone(),
        Value::Object(members) => labelled(members).unwrap_or_else(|| value.to_string()),
        other => other.to_string(),
    }
}

fn check_config_file(file: Option<PathBuf>) -> anyhow::Result<ExitStatus> {
    let (path, layer) = match file {
        Some(file) => (file.clone(), ConfigLayer::from_file(&file)?),
        None => read_default_config()?,
    };
    let config = Config::default().with_layers([layer])?;
    config.check_gate()?;
    if local_profiles(&config)?.get(&config.rules.profile).is_none() {
        bail!("{}, key `profile`: no profile is called {}", path.display(), UntrustedText::new(&config.rules.profile));
    }
    report_valid_config(&config, &format!("{}: the configuration is good", path.display()));
    Ok(ExitStatus::Trusted)
}

/// Reports that a configuration has no errors, and which settings for payments are missing.
pub(super) fn report_valid_config(config: &Config, message: &str) {
    notice::print_notice(format_args!("clresolve: {message}"));
    if let Some(gap) = missing_payment_setting(config) {
        notice::print_notice(format_args!("clresolve: {gap}"));
    }
}

/// The missing setting for payments.
pub(super) fn missing_payment_setting(config: &Config) -> Option<&'static str> {
    let limits = config.limits.payment_limits();
    match (limits.set, limits.assets.is_empty()) {
        (false, _) => Some("no [limits]: every payment will be refused"),
        (true, true) => Some("[limits] names no asset: every payment will be refused"),
        (true, false) => None,
    }
}

fn create_config_file(file: Option<PathBuf>) -> anyhow::Result<ExitStatus> {
    let (path, readers) = match file {
        Some(file) => (file, "name it with --config"),
        None => (starter_config_path()?, "all commands and `serve` read it"),
    };
    write_starter_config(&path)?;
    notice::print_notice(format_args!(
        "clresolve: wrote {}; {readers}. Set [limits] in it before you pay; `clresolve config show` prints the values in \
         force",
        path.display()
    ));
    Ok(ExitStatus::Trusted)
}

/// Writes the starter file unless it exists. Only its owner may read it, since URLs may contain keys.
fn write_starter_config(path: &Path) -> anyhow::Result<()> {
    let unwritable = |error| OutputWriteError::new(path.display().to_string(), error);
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        create_private_folder(folder).map_err(unwritable)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = match options.open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            bail!("{}: the file exists, and is left as it is", path.display())
        }
        opened => opened.map_err(unwritable)?,
    };
    Ok(file.write_all(STARTER.as_bytes()).map_err(unwritable)?)
}

fn create_private_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// The file that commands read by default, with its settings.
fn read_default_config() -> anyhow::Result<(PathBuf, ConfigLayer)> {
    if let Some(file) = ConfigFileLocation::find(&RulesArguments::default()) {
        let layer = file.read()?;
        return Ok((file.path, layer));
    }
    let path = starter_config_path()?;
    bail!("{}: there is no such file; `clresolve config init` writes one to start from", path.display())
}

fn starter_config_path() -> anyhow::Result<PathBuf> {
    config_file::starter_config_path().context("neither XDG_CONFIG_HOME nor HOME names a folder; name a file")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(text: &str) -> ConfigLayer {
        ConfigLayer::from_toml(text, "f.toml").expect("a configuration")
    }

    #[test]
    fn each_value_names_its_source() {
        let file = ConfigSource::File("f.toml".into());
        let sources = [
            (
                file,
                layer(
                    "timeout = \"5s\"\nchain-id = 5\ndepth = \"schemas\"\nca = [\"a.pem\"]\n[gate]\ndeadline = \"90ms\"\n",
                ),
            ),
            (ConfigSource::Environment, layer("timeout = \"6s\"\nrpc = [\"https://rpc.example/SECRET\"]\n")),
            (ConfigSource::Flags, layer("timeout = \"7s\"\nca = [\"b.pem\"]\n")),
        ];
        let settings = config_settings(&sources).unwrap();
        let of = |key: &str| settings.iter().find(|setting| setting.key == key).unwrap_or_else(|| panic!("{key}"));
        let said = |key: &str| (of(key).value.clone(), of(key).source.clone());
        assert_eq!(said("timeout"), ("7s".into(), vec!["flag"]));
        assert_eq!(said("depth"), ("schemas".into(), vec!["file"]));
        assert_eq!(of("depth").file.as_deref(), Some("f.toml"));
        assert_eq!(said("gate.deadline"), ("90ms".into(), vec!["file"]));
        assert_eq!(said("world"), ("eip155-5".into(), vec!["derived"]));
        assert_eq!(said("ca").1, ["file", "flag"]);
        assert_eq!(said("block"), ("finalized".into(), vec!["default"]));
        assert_eq!(said("proof"), ("single-rpc".into(), vec!["derived"]));
        assert!(settings.iter().all(|setting| setting.key != "quorum"));
        assert_eq!(said("rpc").1, ["environment"]);
        assert!(!serde_json::to_string(&settings).unwrap().contains("SECRET"));
        assert_eq!(format_setting(of("rpc"), OutputFormat::Text), format!("{:<28} rpc-1  (environment)\n", "rpc"));
    }

    #[test]
    fn what_follows_from_the_endpoints_is_shown_too() {
        let settings = config_settings(&[]).unwrap();
        let shown: Vec<_> = settings.iter().map(|setting| format_setting(setting, OutputFormat::Text)).collect();
        for expected in [("depth", "identity"), ("proof", "quorum"), ("quorum", "2")] {
            let expected = format!("{:<28} {}  (default)\n", expected.0, expected.1);
            assert!(shown.contains(&expected), "{expected} in {shown:?}");
        }
    }

    #[test]
    fn the_starter_file_is_good_as_it_is_and_with_every_example() {
        assert_eq!(layer(STARTER), ConfigLayer::default());
        let is_key =
            |rest: &str| rest.starts_with('[') || rest.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '));
        let opened = |line: &str| match line.strip_prefix("# ") {
            Some(rest) if is_key(rest) => format!("{rest}\n"),
            _ => format!("{line}\n"),
        };
        let opened = layer(&STARTER.lines().map(opened).collect::<String>());
        let keys = flatten_config_layer(&opened).unwrap();
        assert_eq!((&keys["quorum"], &keys["rpc"][0]["own"]), (&2.into(), &true.into()));
        let gap = |layer: ConfigLayer| {
            missing_payment_setting(&Config::default().with_layers([layer]).expect("a configuration"))
        };
        let mut limits = ConfigLayer::default();
        limits.set_key("limits.assets", Some(&keys["limits.assets"])).unwrap();
        assert_eq!(gap(limits), None);
        assert_eq!(gap(layer(STARTER)), Some("no [limits]: every payment will be refused"));
        let no_asset = layer("[limits]\nmax-timeout = \"1m\"\n");
        assert_eq!(gap(no_asset), Some("[limits] names no asset: every payment will be refused"));
    }
}
