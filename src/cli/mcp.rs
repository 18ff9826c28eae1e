//! `mcp`: the tools of the Model Context Protocol over standard input and output.

use clresolve_server::mcp;

use super::args::McpArguments;
use super::exit::ExitStatus;
use super::world::CommandContext;

pub(super) fn run(args: McpArguments) -> anyhow::Result<ExitStatus> {
    super::runtime::run_async_until_interrupt(serve_mcp(args))
}

async fn serve_mcp(args: McpArguments) -> anyhow::Result<ExitStatus> {
    let world = CommandContext::open_for_payment_command(&args.world).await?;
    world.require_current_judgement()?;
    let profile = world.config.rules.profile.clone();
    mcp::serve_stdio(world.resolver.clone(), profile, tokio::io::stdin(), tokio::io::stdout()).await?;
    Ok(ExitStatus::Trusted)
}
