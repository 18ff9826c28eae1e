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
//! checksum, and judges them under a [`Profile`]. The [`Verdict`] carries all evidence. [`guide`] shows how to use them, task
//! by task; `ARCHITECTURE.md` has the map.

pub mod cache;
pub mod cli;
pub mod clock;
pub mod config;
pub mod discover;
pub mod fetch;
pub mod http;
pub mod memory;
pub mod plan;
pub mod report;
pub mod resolve;
pub mod sandbox;
pub mod sign;
pub mod telemetry;

pub use clresolve_bundle as bundle;
pub use clresolve_cards::{convert, generate, ledger, lint, project, signature, system};
pub use clresolve_core::{address, digest, name, reason, records, text};
pub use clresolve_ipfs as cid;
pub use clresolve_verdict::{build, check, evidence, manifest, profile, schema};

/// The Agent-Card as a document.
pub mod card {
    pub use clresolve_core::json::{self, JsonError, Limits, locate, pointer};
    pub use clresolve_verdict::card::{Card, Side};
}

/// Reading the chain.
pub mod chain {
    pub use clresolve_chain::*;
    pub use clresolve_core::reading::*;
    pub use clresolve_state::*;
}

/// The verdict.
pub mod verdict {
    pub use clresolve_core::state::*;
    pub use clresolve_verdict::gate::*;
    pub use clresolve_verdict::trust::*;
    pub use clresolve_verdict::verdict::*;
}

#[doc = include_str!("../docs/library.md")]
pub mod guide {}

pub use config::Config;
pub use profile::Profile;
pub use resolve::{Question, Resolution, Resolver};
pub use verdict::{State, Verdict};
