//! A guard below an x402 payment client: no payment leaves that clresolve did not allow.
//!
//! [`Guard`] is a middleware that stands between the payment client and the network, and is the last one: it sends by
//! itself. There every request, every reply and the signed payment are seen as they go over the wire. The guard asks
//! [`Decides`] about each of them. It reads no payment terms itself: what the seller sent is handed on as it came,
//! without the payment challenges of other protocols.
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
//! With the feature `resolver`, `InProcess` decides in this process, in place of a [`Daemon`].

mod challenges;
mod daemon;
mod decision;
mod guard;
#[cfg(feature = "resolver")]
mod in_process;
mod paid;
mod refusal;
mod waiting;

pub use clresolve_jose::TrustedKeys;
pub use daemon::{Config, ConfigError, Daemon, Signer};
pub use guard::{Allowed, Decides, Guard, Payable, Reply};
#[cfg(feature = "resolver")]
pub use in_process::InProcess;
pub use paid::Paid;
pub use refusal::{Refusal, Why};
