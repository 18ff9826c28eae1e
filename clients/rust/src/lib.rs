//! A guard for x402 payment clients: it only sends payments that clresolve allowed.
//!
//! [`Guard`] is the last middleware between the payment client and the network, so it sees every request, response and
//! signed payment exactly as transmitted. It asks [`PaymentDecider`] about each of them. It never interprets payment
//! terms: it forwards the seller's response unchanged, except for the payment challenges of other protocols, which it
//! removes.
//!
//! ```no_run
//! # fn example(payments: impl reqwest_middleware::Middleware) -> Result<(), Box<dyn std::error::Error>> {
//! use clresolve_guard::{Config, Daemon, Guard};
//!
//! let daemon = Daemon::new(Config::new("http://127.0.0.1:8402", "summarizeagent.eth", "summarize"))?;
//! let client = Guard::new(daemon, reqwest::Client::builder())?.beneath(payments);
//! # Ok(())
//! # }
//! ```
//!
//! With the feature `resolver`, `InProcess` decides in this process instead of a [`Daemon`].

mod challenges;
mod daemon;
mod decision;
mod guard;
#[cfg(feature = "resolver")]
mod in_process;
mod paid;
mod refusal;
mod reply;
mod waiting;

pub use clresolve_jose::Ed25519KeySet;
pub use daemon::{Config, ConfigError, Daemon, Signer};
pub use guard::{Guard, PaymentDecider};
#[cfg(feature = "resolver")]
pub use in_process::InProcess;
pub use paid::Paid;
pub use refusal::{Refusal, Why};
pub use reply::{PayableEntries, PayableEntry, PaymentRequiredResponse};
