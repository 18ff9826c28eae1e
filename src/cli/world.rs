//! From the world flags to a resolver.

use std::path::PathBuf;

use super::args::{DepthArg, WorldArgs};
use crate::config::{Config, Layer};
use crate::resolve::Resolver;
use crate::sandbox::Sandbox;
use crate::verdict::Depth;

/// A resolver, and the embedded world that it asks, if it does.
pub(super) struct World {
    pub(super) resolver: Resolver,
    pub(super) config: Config,
    /// Kept for as long as it is asked.
    _sandbox: Option<Sandbox>,
}

impl World {
    /// Reads the configuration and builds the resolver.
    pub(super) async fn open(args: &WorldArgs) -> anyhow::Result<Self> {
        let (config, sandbox) = settings(args).await?;
        let resolver = Resolver::new(&config).await?;
        Ok(Self { resolver, config, _sandbox: sandbox })
    }
}

/// The configuration, and the embedded world that it is about, if it is.
pub(super) async fn settings(args: &WorldArgs) -> anyhow::Result<(Config, Option<Sandbox>)> {
    if !args.sandbox {
        return Ok((configuration(args)?, None));
    }
    let sandbox = Sandbox::start().await?;
    let config = sandbox.config().with([layer(args)])?;
    Ok((config, Some(sandbox)))
}

/// Defaults < file < environment < flags. The sandbox reads neither file nor environment.
fn configuration(args: &WorldArgs) -> anyhow::Result<Config> {
    let variable = |key: &str| std::env::var(key).ok();
    let from_environment = || variable("CLRESOLVE_CONFIG").filter(|p| !p.is_empty()).map(PathBuf::from);
    let file = args.config.clone().or_else(from_environment);
    let file = file.map(|path| Layer::from_file(&path)).transpose()?;
    let environment = Layer::from_environment(variable)?;
    let layers = file.into_iter().chain([environment, layer(args)]);
    Ok(Config::default().with(layers)?)
}

/// What the flags say.
fn layer(args: &WorldArgs) -> Layer {
    Layer {
        rpc: Some(args.rpc.clone()).filter(|list| !list.is_empty()),
        gateway: Some(args.gateway.clone()).filter(|list| !list.is_empty()),
        proof: args.proof,
        quorum: args.quorum,
        universal_resolver: args.universal_resolver,
        chain_id: args.chain_id,
        block: args.block,
        profile: args.profile.clone(),
        depth: args.depth.map(Depth::from),
        timeout: args.timeout,
        connect_to: args.connect_to.clone(),
        allow_host: args.allow_host.clone(),
        ca: args.ca.clone(),
        ..Layer::default()
    }
}

impl From<DepthArg> for Depth {
    fn from(depth: DepthArg) -> Self {
        match depth {
            DepthArg::Identity => Self::Identity,
            DepthArg::Schemas => Self::Schemas,
        }
    }
}
