//! Types for verdicts that may be acted on. Anyone can write a [`Verdict`], which is plain data; these types are made
//! from evidence.
//!
//! | type | made by | may be used for |
//! |---|---|---|
//! | [`Resolution`] | [`build::build_resolution`](crate::build::build_resolution), from the evidence of a live resolution by this process or one of its replicas | the gate's decision, signing, and everything below |
//! | [`StaleVerdict`] | an expired [`Resolution`] | descriptions |
//! | [`ReplayedResolution`] | [`build::build_replay`](crate::build::build_replay), from the evidence in a bundle | audits |
//! | [`TrustedVerdict`] | a [`Resolution`], a [`ReplayedResolution`], or a verified signature | projection, the card's bytes |
//!
//! None of these types implements `Deserialize` or has a public field, so JSON alone cannot produce one.
//! [`TrustedVerdict::from_signed`] requires that the caller has verified a signature:
//!
//! ```compile_fail
//! use clresolve_verdict::trust::Resolution;
//!
//! fn read(json: &str) -> Resolution {
//!     serde_json::from_str(json).unwrap()
//! }
//! ```
//!
//! ```compile_fail
//! use clresolve_verdict::{trust::Resolution, verdict::Verdict};
//!
//! fn claim(verdict: Verdict) -> Resolution {
//!     let (verdict, json) = (verdict.into(), Default::default());
//!     Resolution { verdict, json, card: None, payment: None, newest: None, at_newest: None, standing: Ok(()) }
//! }
//! ```
//!
//! The [gate](crate::gate::GatePolicy::request_objection) accepts only a [`Resolution`]:
//!
//! ```
//! use clresolve_verdict::{gate::GatePolicy, trust::Resolution};
//!
//! fn may_pass(policy: &GatePolicy, live: &Resolution) -> bool {
//!     policy.request_objection(live, Some("summarize"), None).is_none()
//! }
//! ```
//!
//! ```compile_fail
//! use clresolve_verdict::{gate::GatePolicy, trust::StaleVerdict};
//!
//! fn may_pass(policy: &GatePolicy, stale: &StaleVerdict) -> bool {
//!     policy.request_objection(stale, Some("summarize"), None).is_none()
//! }
//! ```
//!
//! ```compile_fail
//! use clresolve_verdict::{gate::GatePolicy, trust::ReplayedResolution};
//!
//! fn may_pass(policy: &GatePolicy, replay: &ReplayedResolution) -> bool {
//!     policy.request_objection(replay, Some("summarize"), None).is_none()
//! }
//! ```

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use jiff::Timestamp;
use serde::Serialize;

use crate::published::PublishedPaymentRecords;
use crate::verdict::{Verdict, VerdictConfirmationSource, VerdictCopyKind};
use clresolve_core::reading::{LatestNameState, NameReading, OffchainScope};
use clresolve_core::reason::{RefusalCode, ResolutionStep};
use clresolve_core::state::TrustState;

/// Verdict of a live resolution, the card if it was proven, and the payment records that the name publishes.
#[derive(Clone, Debug)]
pub struct Resolution {
    verdict: Arc<Verdict>,
    /// The verdict as JSON, once it was requested. Clones share it.
    json: Arc<OnceLock<Bytes>>,
    card: Option<Bytes>,
    payment: Option<Arc<PublishedPaymentRecords>>,
    newest: Option<u64>,
    at_newest: Option<Arc<LatestNameState>>,
    standing: Result<(), RefusalCode>,
}

impl Resolution {
    pub(crate) fn new(verdict: Verdict, card: Option<Bytes>, payment: Option<PublishedPaymentRecords>) -> Self {
        let (payment, json) = (payment.map(Arc::new), Arc::default());
        Self { verdict: Arc::new(verdict), json, card, payment, newest: None, at_newest: None, standing: Ok(()) }
    }

    /// The same resolution with another verdict.
    fn with_verdict(self, verdict: Verdict) -> Self {
        Self { verdict: Arc::new(verdict), json: Arc::default(), ..self }
    }

    /// The same resolution with the result of its reading.
    pub(crate) fn with_reading(self, reading: &NameReading) -> Self {
        let at_newest = reading.newest_state().map(Arc::new);
        let is_off_chain = at_newest.as_ref().is_some_and(|latest| latest.offchain_scope() != OffchainScope::Nothing);
        let read = Self { at_newest, ..self.with_newest_block(reading.newest) };
        if is_off_chain { read.with_confirmation(VerdictConfirmationSource::OffChain) } else { read }
    }

    pub(crate) fn with_newest_block(self, newest: Option<u64>) -> Self {
        let verdict = verdict_confirmed_at(&self.verdict, newest.map(VerdictConfirmationSource::Head));
        Self { newest, ..self.with_verdict(verdict) }
    }

    /// The verdict.
    pub const fn verdict(&self) -> &Arc<Verdict> {
        &self.verdict
    }

    /// The verdict as JSON.
    pub fn json(&self) -> &Bytes {
        // Boxed to release unused capacity, since the cache keeps the bytes.
        let json = || serde_json::to_vec(&*self.verdict).unwrap_or_default().into_boxed_slice().into();
        self.json.get_or_init(json)
    }

    /// The exact bytes of the card; present only for a trusted verdict (CL-66).
    pub const fn card_bytes(&self) -> Option<&Bytes> {
        self.card.as_ref()
    }

    /// The payment records that the name publishes, whatever the verdict's state. `None` if the name has no records or
    /// the chain could not be read.
    pub fn payment_records(&self) -> Option<&PublishedPaymentRecords> {
        self.payment.as_deref()
    }

    /// Highest block that this resolution read; it does not reflect changes in later blocks. `None` if the chain could
    /// not be read.
    pub const fn newest_block(&self) -> Option<u64> {
        self.newest
    }

    /// The name's state that this resolution read at that block. `None` if the chain could not be read.
    pub const fn newest_name_state(&self) -> Option<&Arc<LatestNameState>> {
        self.at_newest.as_ref()
    }

    /// Whether the newest block confirms the verdict. A resolution that has just ended read that block itself; one from
    /// the cache must be confirmed there first.
    ///
    /// # Errors
    /// [`RefusalCode::Unconfirmed`] or [`RefusalCode::HeadStalled`].
    pub const fn newest_block_confirmation(&self) -> Result<(), RefusalCode> {
        self.standing
    }

    /// The same resolution with this [confirmation by the newest block](Self::newest_block_confirmation).
    #[must_use]
    pub fn with_newest_block_confirmation(self, standing: Result<(), RefusalCode>) -> Self {
        Self { standing, ..self }
    }

    /// The same resolution with this confirmation in its verdict.
    #[must_use]
    pub fn with_confirmation(&self, at: VerdictConfirmationSource) -> Self {
        self.clone().with_verdict(verdict_confirmed_at(&self.verdict, Some(at)))
    }

    /// The agent, if the verdict is trusted.
    ///
    /// # Errors
    /// The code of the first reason against trust.
    pub fn trusted_verdict(&self) -> Result<TrustedVerdict, &'static str> {
        TrustedVerdict::from_verdict(&self.verdict, self.card.as_ref(), TrustOrigin::Live).ok_or_else(|| {
            let first = self.verdict.reasons.first().map(|reason| reason.code.slug());
            first.unwrap_or(RefusalCode::InternalError.slug())
        })
    }

    /// The same resolution with `input` as the typed name. A cached resolution may have been requested in another
    /// spelling.
    #[must_use]
    pub fn with_input_name(self, input: &str) -> Self {
        if self.verdict.name.input == input {
            return self;
        }
        let mut verdict = (*self.verdict).clone();
        input.clone_into(&mut verdict.name.input);
        for step in verdict.steps.iter_mut().filter(|step| step.step == ResolutionStep::Name) {
            step.evidence["input"] = input.into();
        }
        self.with_verdict(verdict.with_computed_digests())
    }

    /// The same resolution, marked as served from the cache and unconfirmed.
    #[must_use]
    pub fn marked_as_cached(&self) -> Self {
        let cached = self.clone().with_verdict(verdict_served_as(&self.verdict, VerdictCopyKind::Cached));
        cached.with_newest_block_confirmation(Err(RefusalCode::Unconfirmed))
    }

    /// The expired verdict, for descriptions only.
    #[must_use]
    pub fn to_stale(&self) -> StaleVerdict {
        StaleVerdict(Arc::new(verdict_served_as(&self.verdict, VerdictCopyKind::Stale)))
    }
}

fn verdict_served_as(verdict: &Verdict, how: VerdictCopyKind) -> Verdict {
    let mut verdict = verdict.clone();
    verdict.freshness.served = how;
    verdict
}

fn verdict_confirmed_at(verdict: &Verdict, confirmed: Option<VerdictConfirmationSource>) -> Verdict {
    let mut verdict = verdict.clone();
    verdict.freshness.confirmed = confirmed;
    verdict
}

/// An expired verdict. It serves descriptions only: it has no card, cannot become a [`TrustedVerdict`], and does not
/// open the gate.
#[derive(Clone, Debug)]
pub struct StaleVerdict(Arc<Verdict>);

impl StaleVerdict {
    /// The verdict, whose `freshness.served` is `stale`.
    pub const fn verdict(&self) -> &Arc<Verdict> {
        &self.0
    }
}

/// Verdict that follows from the evidence of an earlier resolution, the card if it was proven, and the payment records
/// that the name published then. It does not describe the present.
#[derive(Clone, Debug)]
pub struct ReplayedResolution {
    verdict: Arc<Verdict>,
    card: Option<Bytes>,
    payment: Option<PublishedPaymentRecords>,
}

impl ReplayedResolution {
    pub(crate) fn new(verdict: Verdict, card: Option<Bytes>, payment: Option<PublishedPaymentRecords>) -> Self {
        Self { verdict: Arc::new(verdict), card, payment }
    }

    /// The verdict.
    pub const fn verdict(&self) -> &Arc<Verdict> {
        &self.verdict
    }

    /// The exact bytes of the card; present only for a trusted verdict (CL-66).
    pub const fn card_bytes(&self) -> Option<&Bytes> {
        self.card.as_ref()
    }

    /// The payment records that the name published at the block of the resolution, whatever the verdict's state.
    pub const fn payment_records(&self) -> Option<&PublishedPaymentRecords> {
        self.payment.as_ref()
    }

    /// The agent at the block of the resolution, if the verdict is trusted.
    pub fn trusted_verdict(&self) -> Option<TrustedVerdict> {
        let block = self.verdict.anchor.as_ref()?.block.number;
        TrustedVerdict::from_verdict(&self.verdict, self.card.as_ref(), TrustOrigin::Replayed { block })
    }
}

/// A trusted verdict, the card if its bytes are available, and the origin of the trust.
#[derive(Clone, Debug)]
pub struct TrustedVerdict {
    verdict: Arc<Verdict>,
    card: Option<Bytes>,
    origin: TrustOrigin,
}

/// Origin of the trust in a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrustOrigin {
    /// A resolution by this process, or by a replica that shares a key with it and whose evidence this process judged
    /// itself. The verdict holds now.
    Live,
    /// A verified bundle: the verdict held at this block.
    Replayed {
        /// Block height.
        block: u64,
    },
    /// A verified signature: the signer vouches for the verdict.
    Signed {
        /// End of the signature's validity.
        until: Timestamp,
    },
}

impl TrustedVerdict {
    fn from_verdict(verdict: &Arc<Verdict>, card: Option<&Bytes>, origin: TrustOrigin) -> Option<Self> {
        let is_trusted = verdict.state == TrustState::Trusted;
        is_trusted.then(|| Self { verdict: Arc::clone(verdict), card: card.cloned(), origin })
    }

    /// The agent in a verdict whose signature the caller has verified, if the verdict is trusted.
    ///
    /// Only `clresolve-bundle`, which verifies signatures, calls this function; a structure test enforces that. The
    /// result does not open the gate.
    pub fn from_signed(verdict: &Arc<Verdict>, until: Timestamp) -> Option<Self> {
        Self::from_verdict(verdict, None, TrustOrigin::Signed { until })
    }

    /// The verdict.
    pub const fn verdict(&self) -> &Arc<Verdict> {
        &self.verdict
    }

    /// The exact bytes of the card (CL-66); `None` for a signed verdict.
    pub const fn card_bytes(&self) -> Option<&Bytes> {
        self.card.as_ref()
    }

    /// Where the trust comes from.
    pub const fn origin(&self) -> TrustOrigin {
        self.origin
    }
}

#[cfg(test)]
mod tests {
    use clresolve_core::payment::{AddressRecord, CoinType, PaymentRecords};

    use super::*;
    use crate::sample;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    #[test]
    fn a_live_verdict_that_is_not_trusted_says_why() {
        let trusted =
            sample::empty_resolution(TrustState::Trusted, NOW, 0).trusted_verdict().expect("its state is trusted");
        assert_eq!((trusted.origin(), trusted.card_bytes()), (TrustOrigin::Live, None));
        for state in [TrustState::Untrusted, TrustState::Indeterminate] {
            assert_eq!(sample::empty_resolution(state, NOW, 0).trusted_verdict().err(), Some("name-invalid"));
        }
    }

    #[test]
    fn what_is_published_about_payments_comes_with_every_answer() {
        let records =
            PaymentRecords { addresses: [(CoinType::ETHER, AddressRecord::Absent)].into(), ..Default::default() };
        let published = sample::published_payments(records.clone(), records).expect("an address was asked for");
        let verdict = Verdict::clone(sample::empty_resolution(TrustState::Trusted, NOW, 0).verdict());
        let live = sample::resolution_with_payments(verdict, published.clone());
        for answer in [live.clone(), live.clone().with_input_name("A.eth"), live.marked_as_cached()] {
            assert_eq!(answer.payment_records(), Some(&published));
        }
        assert_eq!(sample::empty_resolution(TrustState::Trusted, NOW, 0).payment_records(), None);
    }

    #[test]
    fn a_signed_verdict_is_trusted_until_it_expires() {
        let verdict = |state| Arc::clone(sample::empty_resolution(state, NOW, 0).verdict());
        let origin = |state| TrustedVerdict::from_signed(&verdict(state), NOW).map(|trusted| trusted.origin());
        assert_eq!(origin(TrustState::Trusted), Some(TrustOrigin::Signed { until: NOW }));
        assert_eq!((origin(TrustState::Untrusted), origin(TrustState::Indeterminate)), (None, None));
    }
}
