//! clresolve answers one question: is the binding of an ENS name, an Agent-Card and an `x402://` entry real?
//!
//! ```no_run
//! # async fn ask() -> Result<(), Box<dyn std::error::Error>> {
//! use clresolve::{Config, Resolver, State};
//!
//! let resolver = Resolver::new(&Config::default()).await?;
//! let resolution = resolver.resolve("summarizeagent.eth").await;
//! if resolution.verdict.state == State::Trusted {
//!     println!("{:?}", resolution.verdict.identity);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! [`Resolver`] walks from the name through its `cl.*` text records to the card, proves the card's bytes by CID and
//! checksum, and judges them under a [`Profile`]. The [`Verdict`] carries all evidence. [`guide`] shows how to use them, task
//! by task; `ARCHITECTURE.md` has the map.

pub mod address;
pub mod bundle;
pub mod cache;
pub mod card;
pub mod chain;
pub mod check;
pub mod cid;
pub mod cli;
pub mod clock;
pub mod config;
pub mod convert;
pub mod digest;
pub mod discover;
pub mod evidence;
pub mod fetch;
pub mod flavour;
pub mod generate;
pub mod http;
pub mod ledger;
pub mod lint;
pub mod manifest;
pub mod memory;
pub mod name;
pub mod plan;
pub mod profile;
pub mod project;
pub mod reason;
pub mod records;
pub mod report;
pub mod resolve;
pub mod sandbox;
pub mod schema;
mod seal;
pub mod sign;
pub mod signature;
pub mod telemetry;
pub mod text;
pub mod verdict;

#[doc = include_str!("../docs/library.md")]
pub mod guide {}

pub use config::Config;
pub use profile::Profile;
pub use resolve::{Question, Resolution, Resolver};
pub use verdict::{State, Verdict};
