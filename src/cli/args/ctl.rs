//! Arguments of `ctl`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::output::OutputArguments;
use crate::cli::hint::parse_name_argument;

/// The socket of the shipped unit.
const SOCKET: &str = "/run/clresolve/admin.sock";

/// What the operator asks.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
The key admin.socket of the daemon's configuration sets the admin socket, which
only the daemon's own user and root may use. `ready` asks the listener instead.
Exit codes: 0 done, 2 refused, or no daemon answers. Those of `ready` differ.

Examples:
  clresolve ctl show
  clresolve ctl flush summarizeagent.eth")]
pub(in crate::cli) enum CtlCommand {
    #[command(flatten)]
    Admin(AdminCommand),
    /// Check whether the daemon accepts requests, as a container's health check
    Ready(DaemonReadyArguments),
}

/// Requests through the admin socket.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum AdminCommand {
    /// Remove verdicts from the caches
    Flush(CacheFlushArguments),
    /// Show the daemon's state and settings, or its cache entry for a name
    #[command(after_help = "\
URLs are shown without what may be a key.

Examples:
  clresolve ctl show
  clresolve ctl show summarizeagent.eth --json")]
    Show {
        /// Show the cache entry of this ENS name
        #[arg(value_parser = parse_name_argument)]
        name: Option<String>,
        #[command(flatten)]
        admin: AdminSocketArguments,
    },
    /// Read the configuration file again, as at SIGHUP, and report the result
    #[command(after_help = "\
The new configuration applies as a whole, or not at all.

Examples:
  clresolve ctl reload
  clresolve ctl reload --socket /run/clresolve/admin.sock --json")]
    Reload {
        #[command(flatten)]
        admin: AdminSocketArguments,
    },
    /// Replace the log filter until the daemon ends
    #[command(after_help = "\
Examples:
  clresolve ctl log-level debug
  clresolve ctl log-level clresolve=debug,warn
  clresolve ctl log-level clresolve=info,warn        what a daemon begins with")]
    LogLevel {
        /// off, error, warn, info, debug or trace; TARGET=LEVEL for parts of the program
        filter: String,
        #[command(flatten)]
        admin: AdminSocketArguments,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "\
Sends GET /readyz. Exit codes: 0 ready, 1 not ready, or no daemon answers.

Examples:
  clresolve ctl ready
  clresolve ctl ready --listen 127.0.0.1:8403")]
pub(in crate::cli) struct DaemonReadyArguments {
    /// The address that the daemon listens on
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8402")]
    pub(in crate::cli) listen: SocketAddr,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArguments,
}

/// Which daemon is asked, and the form of its answer.
#[derive(Debug, Args)]
pub(in crate::cli) struct AdminSocketArguments {
    /// The daemon's admin socket
    #[arg(long, value_name = "PATH", default_value = SOCKET)]
    pub(in crate::cli) socket: PathBuf,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArguments,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["name", "state", "owner", "cid", "all"]))]
#[command(after_help = "\
Discards runs in progress for these names, and notifies the other daemons of
the fleet.

Examples:
  clresolve ctl flush summarizeagent.eth
  clresolve ctl flush --state indeterminate
  clresolve ctl flush --all --socket /run/clresolve/admin.sock")]
pub(in crate::cli) struct CacheFlushArguments {
    /// An ENS name
    #[arg(value_parser = parse_name_argument)]
    pub(in crate::cli) name: Option<String>,
    /// All names with a verdict of this state
    #[arg(long, value_name = "STATE", value_parser = ["trusted", "untrusted", "indeterminate"])]
    pub(in crate::cli) state: Option<String>,
    /// All names whose cl.owner is this
    #[arg(long, value_name = "OWNER")]
    pub(in crate::cli) owner: Option<String>,
    /// All names whose card has this CID, and the content itself
    #[arg(long, value_name = "CID")]
    pub(in crate::cli) cid: Option<String>,
    /// All names, and all proven content
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    pub(in crate::cli) admin: AdminSocketArguments,
}
