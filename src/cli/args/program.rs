//! Arguments of the commands about the program itself: daemon, sandbox, names, configuration, help.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use clresolve_resolver::config::ListenAddress;

use super::output::{OutputArguments, OutputFileArguments};
use super::suggest;
use super::world::NetworkArguments;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clresolve explain checksum-mismatch
  clresolve explain CL-45                     the codes of a requirement")]
pub(in crate::cli) struct ExplainArguments {
    /// Reason codes such as checksum-mismatch, or requirements such as CL-45 [default: list all]
    #[arg(value_name = "CODE", value_parser = suggest::reason_code_parser(), hide_possible_values = true)]
    pub(in crate::cli) codes: Vec<String>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
An invalid name becomes a row with its error, and the exit code is then 1.

Examples:
  clresolve name Vitalik.eth
  clresolve name - -o jsonl < names.txt")]
pub(in crate::cli) struct NameArguments {
    /// Names; without one, or with -, read from standard input, one per line
    #[arg(value_name = "NAME")]
    pub(in crate::cli) names: Vec<String>,
    /// Read each line of standard input as a JSON string, so that a name may contain anything
    #[arg(long, conflicts_with = "names")]
    pub(in crate::cli) json_input: bool,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Routes:
  GET  /v1/verdicts/{name}?profile=&depth=   the verdict, 200 whatever its state
  POST /v1/verdicts {\"names\": [...]}         up to 100 verdicts, a line each
  any  /v1/gate/{name}[/{verb}]              200 allows, 403 denies
  any  /v1/envoy/{name}/{verb}/...           the same for Envoy's ext_authz
  GET  /v1/cards/{name}                      the card's bytes, if proven
  GET  /v1/agents/{name}/.well-known/agent-card.json
                                             a trusted agent as an A2A card
  POST /v1/decisions, /v1/decisions/signed   may this be paid, was that signed
  POST /v1/requests/check                    is it what the agent's schema asks
  POST /v1/receipts/verify                   does what the agent sent hold
  GET  /v1/events?name=                      changes, as they happen
  POST /v1/lint?as=&profile=                 a card of any system by itself
  GET  /.well-known/agent-card.json
  GET  /v1/agent-systems/{name}/.well-known/agent-card.json
                                             where [orloj] names resources
  GET  /v1/discover?url=&as=&system=&bind=   a host's cards: http.discover
  POST /v1/probes                            a seller's terms: explorer.probe
  POST /mcp                                  tools for agents: [mcp] names hosts
  GET  /, /openapi.json                      a page for people; all routes
  GET  /v1/reasons, /v1/profiles, /livez, /readyz, /metrics
  GET  /.well-known/jwks.json                the key that signs, if any

SIGTERM and Ctrl-C drain: readyz answers 503 and the gate 403, then it ends.
With a key, `Accept: application/jose` returns signed verdicts. Limits are keys
of the configuration file under [http] and [gate].

Examples:
  clresolve serve --config /etc/clresolve/config.toml
  clresolve serve --sandbox --listen 127.0.0.1:0
  clresolve serve --listen unix:/run/clresolve/clresolve.sock")]
pub(in crate::cli) struct ServeArguments {
    /// Listener: port 0 takes a free port and prints it; unix:/PATH is a socket [default: 127.0.0.1:8402]
    #[arg(long, value_name = "ADDR:PORT|unix:/PATH")]
    pub(in crate::cli) listen: Option<ListenAddress>,
    /// Format of the log
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(in crate::cli) log_format: LogFormat,
    /// Check the configuration and exit
    #[arg(long)]
    pub(in crate::cli) check_config: bool,
    #[command(flatten)]
    pub(in crate::cli) world: NetworkArguments,
}

/// How lines of a daemon's log are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum LogFormat {
    /// For people
    #[default]
    Text,
    /// An object a line, for programs
    Json,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The sandbox has an EVM chain (eip155:31337) with ENS contracts, an HTTPS origin
and an IPFS gateway, all on loopback in this process, with a new CA per run.
anchor.world of its verdicts is `sandbox`.

Examples:
  clresolve sandbox --demo                         refuse a lying seller
  clresolve sandbox --list                         its names, and their verdicts
  clresolve sandbox --receipts receipts            receipts for `receipt verify`
  clresolve sandbox --write-config sandbox.toml &  run it
  clresolve sandbox --publish card.json            run it with your own card
  clresolve --config sandbox.toml summarizeagent.eth   ask it, from any client")]
pub(in crate::cli) struct SandboxArguments {
    /// Run a daemon and two sellers, one of them dishonest, and print commands that buy from them
    #[arg(long, conflicts_with_all = ["list", "receipts", "write_config"])]
    pub(in crate::cli) demo: bool,
    /// Address of the daemon of --demo; the sellers use the next port [default: 127.0.0.1:8402]
    #[arg(long, value_name = "ADDR:PORT", requires = "demo")]
    pub(in crate::cli) listen: Option<ListenAddress>,
    /// List the sandbox's names with their expected verdicts
    #[arg(long, conflicts_with = "write_config")]
    pub(in crate::cli) list: bool,
    /// Write good and bad receipts of its agents into this folder, and list them
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["list", "write_config"])]
    pub(in crate::cli) receipts: Option<PathBuf>,
    /// Write a configuration file for --config, and its trust root beside it
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) write_config: Option<PathBuf>,
    /// Publish a card or a folder of cards with the records of `clresolve plan`; repeatable
    #[arg(long, value_name = "DIR|FILE", conflicts_with_all = ["list", "receipts", "demo"])]
    pub(in crate::cli) publish: Vec<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clresolve completions bash \\
    > ~/.local/share/bash-completion/completions/clresolve
  clresolve completions fish > ~/.config/fish/completions/clresolve.fish")]
pub(in crate::cli) struct CompletionsArguments {
    /// The shell
    pub(in crate::cli) shell: clap_complete::Shell,
    #[command(flatten)]
    pub(in crate::cli) out: OutputFileArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clresolve help audit
  clresolve help world      network options: chain, gateways, rules")]
pub(in crate::cli) struct HelpArguments {
    /// A command with its subcommand, or `world`
    #[arg(value_name = "COMMAND")]
    pub(in crate::cli) topic: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clresolve man | man -l -
  clresolve man pages
  install -D -m 644 -t /usr/local/share/man/man1 pages/*.1
  install -D -m 644 -t /usr/local/share/man/man5 pages/*.5")]
pub(in crate::cli) struct ManPageArguments {
    /// Write a page per command and clresolve.toml.5 into this folder
    #[arg(value_name = "DIR", conflicts_with = "file")]
    pub(in crate::cli) folder: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) out: OutputFileArguments,
}

/// What is done with the configuration.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
All commands and `serve` read one file: the one that --config or
CLRESOLVE_CONFIG names, otherwise the first that exists of
$XDG_CONFIG_HOME/clresolve/config.toml (~/.config/clresolve/config.toml) and
/etc/clresolve/config.toml. clresolve refuses a default file if other users can
write it or its folder.

Examples:
  clresolve config init
  clresolve config show")]
pub(in crate::cli) enum ConfigCommand {
    /// Write a file to start from; never overwrites
    #[command(after_help = "\
Examples:
  clresolve config init
  clresolve config init ./clresolve.toml")]
    Init {
        /// File to write [default: CLRESOLVE_CONFIG, otherwise your own]
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Show each value and its source
    Show(Box<ConfigShowArguments>),
    /// Check a file, without a network
    #[command(after_help = "\
Exit codes: 0 valid, 2 not valid.

Examples:
  clresolve config check
  clresolve config check deploy/config.toml")]
    Check {
        /// File to check [default: the one that commands read]
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "\
Sources are default, file, environment and flag; a derived value follows from
another key. URLs are shown without possible keys.

Examples:
  clresolve config show
  clresolve config show --config server.toml --json")]
pub(in crate::cli) struct ConfigShowArguments {
    #[command(flatten)]
    pub(in crate::cli) output: OutputArguments,
    #[command(flatten)]
    pub(in crate::cli) world: NetworkArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Asks each RPC endpoint for its chain, its newest and its finalized block and one
common block hash, and each gateway for a common IPFS block. Endpoints and
gateways are shown by their labels.
Exit codes: 0 nothing to change, 1 something to change, 2 usage.

Examples:
  clresolve doctor
  clresolve doctor --json \\
    --rpc http://127.0.0.1:8545 --gateway http://127.0.0.1:8080")]
pub(in crate::cli) struct DoctorArguments {
    #[command(flatten)]
    pub(in crate::cli) output: OutputArguments,
    #[command(flatten)]
    pub(in crate::cli) world: NetworkArguments,
}
