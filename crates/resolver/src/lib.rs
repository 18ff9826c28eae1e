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

pub use clresolve_core::text::Foreign;

/// Evidence bundles of verdicts and of purchases.
pub mod bundle {
    pub use clresolve_bundle::purchase::{AnyBundle, Papers, PurchaseBundle, VerifiedPurchase};
    pub use clresolve_bundle::{Bundle, BundleError, MAX_BYTES, Packed, Signature, TrustAnchors, VerifiedBundle};
}

/// Receipts, and requests against an agent's schema.
pub mod messages {
    pub use clresolve_messages::receipt::question::Request;
    pub use clresolve_messages::receipt::{ReceiptQuestion, Unreadable, Verification};
    pub use clresolve_messages::request::{RequestCheck, RequestQuestion, Template};
    pub use clresolve_payment::settlement::Purchase;
}

/// Decisions about payments, and what they are about.
pub mod payment {
    pub use clresolve_payment::check::{
        CheckAnswer, CheckRequest, EvidenceKind, EvidenceRow, EvidenceState, FirstContact, Named, NamedBy,
        RegistrationOutcome, SellerIdentity, WebOrigin,
    };
    pub use clresolve_payment::decide::Selected;
    pub use clresolve_payment::decision::{Check, Decision, EntryRow, Outcome, PayeeRow, PriceRow};
    pub use clresolve_payment::limits::{Atomic, CallerAssets, CallerLimits};
    pub use clresolve_payment::network::Network;
    pub use clresolve_payment::payee::ProvenBy;
    pub use clresolve_payment::request::{DecisionRequest, Demand, RequestError};
    pub use clresolve_payment::route::{Route, RouteSource};
    pub use clresolve_payment::terms::{Reply, Terms};
}

/// Reasons of verdicts and decisions, and their codes.
pub mod reason {
    pub use clresolve_core::reason::{Code, CodeEntry, Effect, Fixer, Reason, Step};
}

/// Verdicts, trust, and the policy of a gate.
pub mod verdict {
    pub use clresolve_core::state::{NearMiss, State};
    pub use clresolve_verdict::gate::{GatePolicy, GateVerbs};
    pub use clresolve_verdict::trust::{Origin, Replay, Resolution, Stale, Trusted};
    pub use clresolve_verdict::verdict::{
        Anchor, AnchorBlock, CardDigest, Confirmed, Depth, Freshness, Identity, Name, Owner, Pinned, ProfileUsed,
        Served, Status, StepReport, Tool, Verdict,
    };
}

pub use clock::Clock;
pub use clresolve_verdict::profile::{Profile, Profiles};
pub use config::Config;
pub use resolve::{ExportError, Question, Resolver, SetupError};
pub use verdict::{Depth, Resolution, State, Trusted, Verdict};
