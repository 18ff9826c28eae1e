//! clresolve answers one question: is the binding of an ENS name, an Agent-Card and an `x402://` entry real?
//!
//! ```no_run
//! # async fn ask() -> Result<(), Box<dyn std::error::Error>> {
//! use clresolve_resolver::{Config, Resolver, State};
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
//! checksum, and judges them under a [`Profile`]. The [`Verdict`] carries all evidence. `docs/embed.md` shows more
//! tasks.
//!
// Tests the examples. A packaged crate lacks that file.
#![cfg_attr(all(doctest, feature = "sandbox"), doc = include_str!("../../../docs/embed.md"))]

pub mod config;
#[cfg(feature = "sandbox")]
pub mod sandbox;
pub mod sign;

// For the daemon, the program and the tests of this workspace. It may change with any version.
#[doc(hidden)]
pub mod cache;
#[doc(hidden)]
pub mod clock;
#[doc(hidden)]
pub mod cpu_pool;
#[doc(hidden)]
pub mod cpu_share;
#[doc(hidden)]
pub mod fetch;
#[doc(hidden)]
pub mod memory;
#[doc(hidden)]
pub mod readiness;
#[doc(hidden)]
pub mod resolve;
#[cfg(feature = "redis")]
#[doc(hidden)]
pub mod shared;
#[doc(hidden)]
pub mod telemetry;

pub use clresolve_bundle as bundle;
pub use clresolve_core::reason;
pub use clresolve_core::text::Foreign;
pub use clresolve_payment as payment;

/// Verdicts, trust, the policy of a gate, and the judgement of requests and receipts.
pub mod verdict {
    pub use clresolve_core::state::*;
    pub use clresolve_messages::{receipt, request};
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
