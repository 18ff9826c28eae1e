//! `mcp`: the tools of the Model Context Protocol over standard input and output.

use super::args::McpArgs;
use super::exit::Exit;
use super::world::World;
use crate::mcp::{self, Face, Own};

pub(super) fn run(args: McpArgs) -> anyhow::Result<Exit> {
    super::runtime::run_async(serve(args))
}

async fn serve(args: McpArgs) -> anyhow::Result<Exit> {
    let world = World::open_for_programs(&args.world).await?;
    world.check_now()?;
    let own = Own::new(world.resolver.clone(), world.config.rules.profile.clone());
    mcp::serve(Face::new(own), tokio::io::stdin(), tokio::io::stdout()).await?;
    Ok(Exit::Trusted)
}
