//! Arguments of `mcp`.

use clap::Args;

use super::world::NetworkArguments;

#[derive(Debug, Args)]
#[command(after_help = "\
Put it into the configuration of your agent's client; the client starts it:
  {\"mcpServers\": {\"clresolve\": {\"command\": \"clresolve\", \"args\": [\"mcp\"]}}}

Standard output carries the protocol (2025-11-25 and 2026-07-28) and nothing
else; the log goes to standard error. Every tool is read-only.

Examples:
  clresolve mcp --config /etc/clresolve/config.toml
  clresolve mcp --sandbox                     try it, without a network")]
pub(in crate::cli) struct McpArguments {
    #[command(flatten)]
    pub(in crate::cli) world: NetworkArguments,
}
