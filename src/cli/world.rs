//! Builds a resolver from the network options.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

#[cfg(unix)]
use anyhow::Context as _;
use anyhow::bail;
use clresolve_core::text::{self, UntrustedText};
use clresolve_resolver::config::{Config, ConfigError, ConfigLayer, RedisConfig, SchemaManifestSource, VARIABLES};
use clresolve_resolver::resolve::{Resolver, judgement_policy, local_profiles};
use clresolve_resolver::sandbox::Sandbox;
use clresolve_verdict::check::JudgementPolicy;
use clresolve_verdict::profile::{ConformanceProfile, ConformanceProfiles};
use clresolve_verdict::verdict::ResolutionDepth;
use humantime::format_duration;

use super::args::{NetworkArguments, OfflineRulesArguments};
use super::config_file::ConfigFileLocation;
use super::notice;

const VARIABLE_PREFIX: &str = "CLRESOLVE_";

/// Number of verdicts cached for a list, of either kind. A list rarely repeats a name, and then mostly nearby, and a
/// verdict may contain the whole card.
const VERDICTS_KEPT: u64 = 64;

/// Bytes of verified content cached for a list: cards differ, but names share schemas.
const CONTENT_KEPT: u64 = 1024 * 1024;

/// A resolver, and the sandbox that it queries, if any.
pub(super) struct CommandContext {
    pub(super) resolver: Resolver,
    pub(super) config: Config,
    /// Keeps the sandbox running.
    _sandbox: Option<Sandbox>,
}

impl CommandContext {
    pub(super) async fn open(args: &NetworkArguments) -> anyhow::Result<Self> {
        Self::open_with_layer(args, ConfigLayer::default()).await
    }

    /// Like [`CommandContext::open`], for a command that decides on payments.
    pub(super) async fn open_for_payment_command(args: &NetworkArguments) -> anyhow::Result<Self> {
        let (config, sandbox) =
            read_config_with_sandbox(args, CommandPaymentAuthority::Payers, ResolutionDepth::default()).await?;
        Self::from_config(config, sandbox).await
    }

    pub(super) async fn open_with_layer(args: &NetworkArguments, further: ConfigLayer) -> anyhow::Result<Self> {
        let (config, sandbox) =
            read_config_with_sandbox(args, CommandPaymentAuthority::Others, ResolutionDepth::default()).await?;
        Self::from_config(config.with_layers([further])?, sandbox).await
    }

    /// Like [`CommandContext::open`], for a list of names. Uses the depth `unless_told` if no source sets one, and
    /// caches few verdicts, so that memory does not grow with the list. `at_once` names read hosts and gateways
    /// concurrently.
    pub(super) async fn open_for_name_list(
        args: &NetworkArguments,
        unless_told: ResolutionDepth,
        at_once: u8,
    ) -> anyhow::Result<Self> {
        let (mut config, sandbox) =
            read_config_with_sandbox(args, CommandPaymentAuthority::Others, unless_told).await?;
        for pool in [&mut config.cache.trusted, &mut config.cache.untrusted] {
            *pool = VERDICTS_KEPT.min(*pool);
        }
        config.cache.content_bytes = CONTENT_KEPT.min(config.cache.content_bytes);
        config.redis = RedisConfig::default();
        let resolver = Resolver::for_name_list(&config, at_once).await?;
        Ok(Self { resolver, config, _sandbox: sandbox })
    }

    /// Checks that the command can decide about the present, by the gate's policy.
    pub(super) fn require_current_judgement(&self) -> anyhow::Result<()> {
        if self.config.chain.block.number().is_some() {
            bail!("--block: this command answers about now; a numbered block is for `verify`");
        }
        Ok(self.config.check_gate()?)
    }

    /// Without the shared cache: a short-lived command has nothing to share.
    async fn from_config(mut config: Config, sandbox: Option<Sandbox>) -> anyhow::Result<Self> {
        config.redis = RedisConfig::default();
        let resolver = Resolver::new(&config).await?;
        Ok(Self { resolver, config, _sandbox: sandbox })
    }
}

/// The rules in force, from the configuration alone. Opens neither a connection nor a memory.
pub(super) struct OfflineRules {
    pub(super) profiles: ConformanceProfiles,
    pub(super) profile: Arc<ConformanceProfile>,
    pub(super) policy: JudgementPolicy,
}

impl OfflineRules {
    /// Reads the configuration and the rule files in it.
    pub(super) fn read(args: &OfflineRulesArguments) -> anyhow::Result<Self> {
        let world = NetworkArguments::from(args);
        let (config, profiles) = if args.sandbox {
            (Config::default().with_layers([config_layer_of_flags(&world)?])?, Sandbox::profiles())
        } else {
            let config = read_merged_config(&world, CommandPaymentAuthority::Others, ConfigLayer::default())?;
            let profiles = local_profiles(&config)?;
            (config, profiles)
        };
        for source in &config.rules.manifests {
            if let SchemaManifestSource::Url { url, .. } = source {
                notice::print_notice(format_args!(
                    "note: the manifest at {} is not fetched, since this command opens no connection",
                    UntrustedText::new(&text::strip_url_secrets(url.as_str()))
                ));
            }
        }
        let id = &config.rules.profile;
        let Some(profile) = profiles.get(id) else { bail!("profile: no profile is called {}", UntrustedText::new(id)) };
        Ok(Self { profile, policy: judgement_policy(&config.rules), profiles })
    }
}

/// Kind of command that reads the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandPaymentAuthority {
    /// The daemon, and commands that decide on payments. Other users must not be able to write a file that sets
    /// payees, limits or the evidence that a payee needs.
    Payers,
    Others,
}

/// Reads the configuration, and starts the sandbox if it is selected.
pub(super) async fn read_config_with_sandbox(
    args: &NetworkArguments,
    reader: CommandPaymentAuthority,
    depth: ResolutionDepth,
) -> anyhow::Result<(Config, Option<Sandbox>)> {
    let unless_told = default_depth_layer(depth)?;
    if !args.sandbox {
        return Ok((read_merged_config(args, reader, unless_told)?, None));
    }
    let sandbox = Sandbox::start().await?;
    let config = sandbox.config().with_layers([unless_told, config_layer_of_flags(args)?])?;
    Ok((config, Some(sandbox)))
}

pub(super) fn default_depth_layer(depth: ResolutionDepth) -> Result<ConfigLayer, ConfigError> {
    let mut layer = ConfigLayer::default();
    layer.set_key("depth", Some(depth))?;
    Ok(layer)
}

/// Defaults < file < environment < flags. The sandbox reads neither file nor environment.
pub(super) fn read_merged_config(
    args: &NetworkArguments,
    reader: CommandPaymentAuthority,
    unless_told: ConfigLayer,
) -> anyhow::Result<Config> {
    let layers = read_config_layers(args, reader)?.into_iter().map(|(_, layer)| layer);
    Ok(Config::default().with_layers([unless_told].into_iter().chain(layers))?)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ConfigSource {
    File(PathBuf),
    Environment,
    Flags,
}

/// The settings of each source, the strongest last.
#[cfg_attr(not(unix), allow(unused_variables, reason = "only Unix tells who may write a file"))]
pub(super) fn read_config_layers(
    args: &NetworkArguments,
    reader: CommandPaymentAuthority,
) -> anyhow::Result<Vec<(ConfigSource, ConfigLayer)>> {
    let variable = |key: &str| std::env::var(key).ok();
    let mut sources = Vec::new();
    if let Some(file) = ConfigFileLocation::find(&args.rules) {
        let path = &file.path;
        // Checked before reading, so that no other user can replace the text in between.
        #[cfg(unix)]
        let exposed = if reader == CommandPaymentAuthority::Payers {
            clresolve_server::exposed_path::find_path_part_others_can_write(path)
        } else {
            Ok(None)
        };
        let layer = file.read()?;
        #[cfg(unix)]
        if layer.sets_payment_keys()
            && let Some(place) = exposed.with_context(|| path.display().to_string())?
        {
            let (path, place) = (path.display(), place.display());
            bail!(
                "{path}: others may write {place}, and [payees], [limits] and [check] say who may be paid, and how much. \
                 Give it to root or to the daemon's user, then `chmod go-w {place}`"
            );
        }
        sources.push((ConfigSource::File(file.path), layer));
    }
    warn_of_misspelt_variables();
    sources.push((ConfigSource::Environment, ConfigLayer::from_environment(variable)?));
    sources.push((ConfigSource::Flags, config_layer_of_flags(args)?));
    Ok(sources)
}

/// Warns about environment variables that look like misspelt ones.
fn warn_of_misspelt_variables() {
    for name in std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()) {
        let known = VARIABLES.iter().filter_map(|known| known.strip_prefix(VARIABLE_PREFIX));
        if let Some(given) = name.strip_prefix(VARIABLE_PREFIX)
            && !VARIABLES.contains(&name.as_str())
            && let Some(meant) = text::nearest_word(given, known)
        {
            let name = UntrustedText::new(&name);
            notice::print_notice(format!("clresolve: {name} is not read; did you mean {VARIABLE_PREFIX}{meant}?"));
        }
    }
}

/// The input files of a command, each with its option. No result may overwrite one of them.
pub(super) struct CommandInputFiles<'a> {
    config: Option<ConfigFileLocation>,
    ca: &'a [PathBuf],
}

impl<'a> CommandInputFiles<'a> {
    pub(super) fn from_arguments(args: &'a NetworkArguments) -> Self {
        Self { config: ConfigFileLocation::find(&args.rules), ca: &args.ca }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, Option<&Path>)> {
        let ca = self.ca.iter().map(|file| ("--ca", Some(&**file)));
        ca.chain([("--config", self.config.as_ref().map(|file| &*file.path))])
    }
}

fn config_layer_of_flags(args: &NetworkArguments) -> Result<ConfigLayer, ConfigError> {
    let time = |time: Duration| format_duration(time).to_string();
    let mut layer = ConfigLayer::default();
    layer.set_key("rpc", non_empty_list(&args.rpc))?;
    layer.set_key("gateway", non_empty_list(&args.gateway))?;
    layer.set_key("proof", args.proof.map(|proof| proof.to_string()))?;
    layer.set_key("quorum", args.quorum)?;
    layer.set_key("universal-resolver", args.universal_resolver.map(|address| address.to_string()))?;
    layer.set_key("chain-id", args.chain_id)?;
    layer.set_key("block", args.block.map(|block| block.to_string()))?;
    layer.set_key("max-head-age", args.max_head_age.map(time))?;
    layer.set_key("profile", args.rules.profile.as_ref())?;
    layer.set_key("depth", args.rules.depth)?;
    layer.set_key("links", args.links.then_some(true))?;
    layer.set_key("timeout", args.timeout.map(time))?;
    layer.set_key("connect-to", non_empty_list(&to_strings(&args.connect_to)))?;
    layer.set_key("allow-host", non_empty_list(&to_strings(&args.allow_host)))?;
    layer.set_key("ca", non_empty_list(&args.ca))?;
    Ok(layer)
}

/// The values of a repeatable flag. `None` if it is not used.
fn non_empty_list<T>(values: &[T]) -> Option<&[T]> {
    Some(values).filter(|values| !values.is_empty())
}

fn to_strings(values: &[impl ToString]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}
