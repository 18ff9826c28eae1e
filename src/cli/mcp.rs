//! `mcp`: the tools of the Model Context Protocol over standard input and output.

use clresolve_server::mcp;

use super::args::McpArgs;
use super::exit::Exit;
use super::world::World;

pub(super) fn run(args: McpArgs) -> anyhow::Result<Exit> {
    super::runtime::run_async(serve(args))
}

async fn serve(args: McpArgs) -> anyhow::Result<Exit> {
    let world = World::open_for_payers(&args.world).await?;
    world.check_now()?;
    let profile = world.config.rules.profile.clone();
    mcp::serve(world.resolver.clone(), profile, tokio::io::stdin(), tokio::io::stdout()).await?;
    Ok(Exit::Trusted)
}
