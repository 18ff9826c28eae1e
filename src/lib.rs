//! clresolve answers one question: is the binding of an ENS name, an Agent-Card and an `x402://` entry real?
//!
//! ```no_run
//! # async fn ask() -> Result<(), Box<dyn std::error::Error>> {
//! use clresolve::{Config, Resolver, State};
//!
//! let resolver = Resolver::new(&Config::default()).await?;
//! let resolution = resolver.resolve("summarizeagent.eth").await;
//! if resolution.verdict().state == State::Trusted {
//!     println!("{:?}", resolution.verdict().identity);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! [`Resolver`] walks from the name through its `cl.*` text records to the card, proves the card's bytes by CID and
//! checksum, and judges them under a [`Profile`]. The [`Verdict`] carries all evidence. `ARCHITECTURE.md` has the map.
//!
#![doc = include_str!("../docs/embed.md")]
// A build with few features leaves out what would use the rest.
#![cfg_attr(not(feature = "cli"), allow(dead_code, unused_imports, reason = "what other features use"))]
#![cfg_attr(not(feature = "unstable"), allow(unreachable_pub, reason = "modules that only `unstable` opens"))]

/// A module that is open to the tests of this repository alone, under the feature `unstable`.
macro_rules! internal {
    ($($(#[$attribute:meta])* $module:ident),* $(,)?) => {$(
        $(#[$attribute])*
        #[cfg(feature = "unstable")]
        pub mod $module;
        $(#[$attribute])*
        #[cfg(not(feature = "unstable"))]
        mod $module;
    )*};
}

internal! {
    cache,
    clock,
    #[cfg(feature = "cards")]
    discover,
    fetch,
    #[cfg(feature = "memory")]
    memory,
    #[cfg(feature = "cli")]
    plan,
    resolve,
    #[cfg(feature = "redis")]
    shared,
    telemetry,
}

#[cfg(feature = "cli")]
pub mod cli;
pub mod config;
mod cpu_pool;
mod cpu_share;
#[cfg(all(unix, feature = "daemon"))]
mod exposed_path;
#[cfg(feature = "daemon")]
pub mod http;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(feature = "daemon")]
mod registries;
#[cfg(feature = "sandbox")]
pub mod sandbox;
pub mod sign;
#[cfg(feature = "otel")]
mod traces;

pub use clresolve_bundle as bundle;
#[cfg(feature = "cards")]
pub use clresolve_cards as cards;
pub use clresolve_core::reason;
pub use clresolve_core::text::Foreign;
pub use clresolve_payment as payment;

/// Verdicts, trust, the policy of a gate, and the judgement of requests and receipts.
pub mod verdict {
    pub use clresolve_core::state::*;
    #[cfg(feature = "receipts")]
    pub use clresolve_messages::receipt;
    #[cfg(feature = "requests")]
    pub use clresolve_messages::request;
    pub use clresolve_verdict::gate::*;
    pub use clresolve_verdict::incident::{Incident, IncidentKind};
    pub use clresolve_verdict::published::*;
    pub use clresolve_verdict::trust::*;
    pub use clresolve_verdict::verdict::*;
}

pub use clock::Clock;
pub use clresolve_verdict::profile::{Profile, Profiles};
pub use config::Config;
pub use resolve::{ExportError, Question, Resolver, SetupError};
pub use verdict::{Depth, Resolution, State, Trusted, Verdict};
