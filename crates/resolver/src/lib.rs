//! clresolve answers one question: is the binding of an ENS name, an Agent-Card and an `x402://` entry real?
//!
//! ```no_run
//! # async fn ask() -> Result<(), Box<dyn std::error::Error>> {
//! use clresolve_resolver::{Config, Resolver, TrustState};
//!
//! let resolver = Resolver::new(&Config::default()).await?;
//! let resolution = resolver.resolve("summarizeagent.eth").await;
//! if resolution.verdict().state == TrustState::Trusted {
//!     println!("{:?}", resolution.verdict().identity);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! [`Resolver`] walks from the name through its `cl.*` text records to the card, proves the card's bytes by CID and
//! checksum, and judges them under a [`ConformanceProfile`]. The [`Verdict`] carries all evidence. `docs/embed.md`
//! shows more tasks.
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

pub use clresolve_core::text::UntrustedText;

/// Evidence bundles of verdicts and of purchases.
pub mod bundle {
    pub use clresolve_bundle::purchase::{AnyBundle, PurchaseBundle, PurchaseDocuments, VerifiedPurchase};
    pub use clresolve_bundle::{
        BundleError, BundleTrustAnchors, MAX_BYTES, ResolutionBundle, SignableBundle, VerifiedBundle,
        VerifiedVerdictSignature,
    };
}

/// Receipts, and requests against an agent's schema.
pub mod messages {
    pub use clresolve_messages::receipt::question::AgentRequest;
    pub use clresolve_messages::receipt::{ReceiptParseError, ReceiptVerificationDocument, ReceiptVerificationRequest};
    pub use clresolve_messages::request::{OutgoingAgentRequest, RequestCheckDocument, RequestTemplate};
    pub use clresolve_payment::settlement::PurchasePaymentDocuments;
}

/// Decisions about payments, and what they are about.
pub mod payment {
    pub use clresolve_payment::check::{
        Erc8004Outcome, FirstContactPolicy, NamedSellerIdentity, PayeeEvidenceKind, PayeeEvidenceRow,
        PayeeEvidenceState, SellerCheckDocument, SellerCheckRequest, SellerIdentity, SellerIdentitySource, WebOrigin,
    };
    pub use clresolve_payment::decide::PaymentOptionSelection;
    pub use clresolve_payment::decision::{
        DecisionOutcome, PayeeDocument, PaymentCheck, PaymentDecision, PaymentOptionResult, PriceDocument,
    };
    pub use clresolve_payment::limits::{AtomicAmount, CallerAssetList, CallerLimits};
    pub use clresolve_payment::network::Caip2Network;
    pub use clresolve_payment::payee::PayeeProofMethod;
    pub use clresolve_payment::request::{PaymentDecisionRequest, PaymentDemand, PaymentRequestError};
    pub use clresolve_payment::route::{AgentRoute, RouteSource};
    pub use clresolve_payment::terms::{PaymentTerms, SellerHttpReply};
}

/// Reasons of verdicts and decisions, and their codes.
pub mod reason {
    pub use clresolve_core::reason::{FixerRole, Reason, ReasonCode, ReasonCodeEntry, ReasonEffect, ResolutionStep};
}

/// Verdicts, trust, and the policy of a gate.
pub mod verdict {
    pub use clresolve_core::state::{TrustState, TrustStateUnderOtherProfile};
    pub use clresolve_verdict::gate::{GatePolicy, GateVerbs};
    pub use clresolve_verdict::trust::{ReplayedResolution, Resolution, StaleVerdict, TrustOrigin, TrustedVerdict};
    pub use clresolve_verdict::verdict::{
        AgentIdentity, AgentOwnerClaim, AnchorBlock, AppliedProfile, CardReference, ChainAnchor, Freshness,
        PinnedDocument, RequestedName, ResolutionDepth, StepReport, StepStatus, ToolVersion, Verdict,
        VerdictConfirmationSource, VerdictCopyKind,
    };
}

pub use clock::Clock;
pub use clresolve_verdict::profile::{ConformanceProfile, ConformanceProfiles};
pub use config::Config;
pub use resolve::{ExportError, NameQuestion, Resolver, SetupError};
pub use verdict::{Resolution, ResolutionDepth, TrustState, TrustedVerdict, Verdict};
