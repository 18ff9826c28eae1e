//! Which verdicts may be acted on. A [`Verdict`] is data that anyone can write; these types are made from evidence.
//!
//! | type | made by | may be used for |
//! |---|---|---|
//! | [`Resolution`] | [`build::resolution`](crate::build::resolution), from the evidence of a live run, of this process or of its fleet | the gate's decision, signing, and all below |
//! | [`Stale`] | a [`Resolution`] that is no longer fresh | descriptions |
//! | [`Replay`] | [`build::replay`](crate::build::replay), from the evidence in a bundle | audits |
//! | [`Trusted`] | either of them, or a signature that was verified | projection, the card's bytes |
//!
//! None of them implements `Deserialize`, and none has a public field, so JSON alone cannot become one. For
//! [`Trusted::signed`] the caller must have verified a signature:
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
//!     Resolution { verdict: verdict.into(), card: None, payment: None, newest: None }
//! }
//! ```
//!
//! The [gate](crate::gate::GatePolicy::objection) takes a [`Resolution`] alone:
//!
//! ```
//! use clresolve_verdict::{gate::GatePolicy, trust::Resolution};
//!
//! fn may_pass(policy: &GatePolicy, live: &Resolution) -> bool {
//!     policy.objection(live, Some("summarize"), None).is_none()
//! }
//! ```
//!
//! ```compile_fail
//! use clresolve_verdict::{gate::GatePolicy, trust::Stale};
//!
//! fn may_pass(policy: &GatePolicy, stale: &Stale) -> bool {
//!     policy.objection(stale, Some("summarize"), None).is_none()
//! }
//! ```
//!
//! ```compile_fail
//! use clresolve_verdict::{gate::GatePolicy, trust::Replay};
//!
//! fn may_pass(policy: &GatePolicy, replay: &Replay) -> bool {
//!     policy.objection(replay, Some("summarize"), None).is_none()
//! }
//! ```

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use serde::Serialize;

use crate::published::Published;
use crate::verdict::{Served, Verdict};
use clresolve_core::reason::{Refusal, Step};
use clresolve_core::state::State;

/// The verdict of a live run, the card when it was proven, and what the name publishes about payments.
#[derive(Clone, Debug)]
pub struct Resolution {
    verdict: Arc<Verdict>,
    card: Option<Bytes>,
    payment: Option<Arc<Published>>,
    newest: Option<u64>,
}

impl Resolution {
    pub(crate) fn new(verdict: Verdict, card: Option<Bytes>, payment: Option<Published>) -> Self {
        Self { verdict: Arc::new(verdict), card, payment: payment.map(Arc::new), newest: None }
    }

    pub(crate) const fn read_to(mut self, newest: Option<u64>) -> Self {
        self.newest = newest;
        self
    }

    /// The verdict.
    pub const fn verdict(&self) -> &Arc<Verdict> {
        &self.verdict
    }

    /// The exact bytes of the card; only of a trusted verdict (CL-66).
    pub const fn card(&self) -> Option<&Bytes> {
        self.card.as_ref()
    }

    /// What the name publishes about payments, of a verdict in any state. `None` for a name without records, and where
    /// the chain could not be read.
    pub fn payment(&self) -> Option<&Published> {
        self.payment.as_deref()
    }

    /// Height up to which the chain was read for it: what was changed in a later block it does not know. `None` where
    /// the chain could not be read.
    pub const fn newest(&self) -> Option<u64> {
        self.newest
    }

    /// The agent, if the verdict is trusted.
    ///
    /// # Errors
    /// The code of the first reason why it is not.
    pub fn trusted(&self) -> Result<Trusted, &'static str> {
        Trusted::of(&self.verdict, self.card.as_ref(), Origin::Live).ok_or_else(|| {
            let first = self.verdict.reasons.first().map(|reason| reason.code.slug());
            first.unwrap_or(Refusal::InternalError.slug())
        })
    }

    /// The same answer to a question that was typed as `input`: a cached answer may have been typed in another way.
    #[must_use]
    pub fn asked_as(mut self, input: &str) -> Self {
        if self.verdict.name.input != input {
            let mut verdict = (*self.verdict).clone();
            input.clone_into(&mut verdict.name.input);
            for step in verdict.steps.iter_mut().filter(|step| step.step == Step::Name) {
                step.evidence["input"] = input.into();
            }
            self.verdict = Arc::new(verdict.with_digests());
        }
        self
    }

    /// The same answer as the cache serves it.
    #[must_use]
    pub fn from_cache(&self) -> Self {
        Self { verdict: Arc::new(served(&self.verdict, Served::Cached)), ..self.clone() }
    }

    /// The same answer as something to describe, past its freshness.
    #[must_use]
    pub fn stale(&self) -> Stale {
        Stale(Arc::new(served(&self.verdict, Served::Stale)))
    }
}

fn served(verdict: &Verdict, how: Served) -> Verdict {
    let mut verdict = verdict.clone();
    verdict.freshness.served = how;
    verdict
}

/// A verdict that was fresh a moment ago. It may be described and nothing else: it has no card, does not become a
/// [`Trusted`], and opens no gate.
#[derive(Clone, Debug)]
pub struct Stale(Arc<Verdict>);

impl Stale {
    /// The verdict, whose `freshness.served` is `stale`.
    pub const fn verdict(&self) -> &Arc<Verdict> {
        &self.0
    }
}

/// The verdict that the evidence of an earlier run leads to, the card when it was proven, and what the name published about
/// payments then. It says nothing of now.
#[derive(Clone, Debug)]
pub struct Replay {
    verdict: Arc<Verdict>,
    card: Option<Bytes>,
    payment: Option<Published>,
}

impl Replay {
    pub(crate) fn new(verdict: Verdict, card: Option<Bytes>, payment: Option<Published>) -> Self {
        Self { verdict: Arc::new(verdict), card, payment }
    }

    /// The verdict.
    pub const fn verdict(&self) -> &Arc<Verdict> {
        &self.verdict
    }

    /// The exact bytes of the card; only of a trusted verdict (CL-66).
    pub const fn card(&self) -> Option<&Bytes> {
        self.card.as_ref()
    }

    /// What the name published about payments at the block of the run, of a verdict in any state.
    pub const fn payment(&self) -> Option<&Published> {
        self.payment.as_ref()
    }

    /// The agent as of the block of the run, if the verdict is trusted.
    pub fn trusted(&self) -> Option<Trusted> {
        let block = self.verdict.anchor.as_ref()?.block.number;
        Trusted::of(&self.verdict, self.card.as_ref(), Origin::Replayed { block })
    }
}

/// A trusted verdict, the card when its bytes are at hand, and where the trust comes from.
#[derive(Clone, Debug)]
pub struct Trusted {
    verdict: Arc<Verdict>,
    card: Option<Bytes>,
    origin: Origin,
}

/// Where the trust in a verdict comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A run of this process, or of one that shares a key with it and whose evidence it judged itself: it holds now.
    Live,
    /// A bundle that was verified: it held at that block.
    Replayed {
        /// Height of the block.
        block: u64,
    },
    /// A signature that was verified: the signer vouches for it.
    Signed {
        /// Until when.
        until: Timestamp,
    },
}

impl Trusted {
    fn of(verdict: &Arc<Verdict>, card: Option<&Bytes>, origin: Origin) -> Option<Self> {
        let is_trusted = verdict.state == State::Trusted;
        is_trusted.then(|| Self { verdict: Arc::clone(verdict), card: card.cloned(), origin })
    }

    /// The agent in a verdict whose signature the caller has verified, if the verdict is trusted.
    ///
    /// The signature is checked by `clresolve-bundle`, which alone calls this (a test of the structure holds it). What comes
    /// out opens no gate.
    pub fn signed(verdict: &Arc<Verdict>, until: Timestamp) -> Option<Self> {
        Self::of(verdict, None, Origin::Signed { until })
    }

    /// The verdict.
    pub const fn verdict(&self) -> &Arc<Verdict> {
        &self.verdict
    }

    /// The exact bytes of the card (CL-66). A signed verdict comes without them.
    pub const fn card(&self) -> Option<&Bytes> {
        self.card.as_ref()
    }

    /// Where the trust comes from.
    pub const fn origin(&self) -> Origin {
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
        let trusted = sample::empty(State::Trusted, NOW, 0).trusted().expect("its state is trusted");
        assert_eq!((trusted.origin(), trusted.card()), (Origin::Live, None));
        for state in [State::Untrusted, State::Indeterminate] {
            assert_eq!(sample::empty(state, NOW, 0).trusted().err(), Some("name-invalid"));
        }
    }

    #[test]
    fn what_is_published_about_payments_comes_with_every_answer() {
        let records =
            PaymentRecords { addresses: [(CoinType::ETHER, AddressRecord::Absent)].into(), ..Default::default() };
        let published = sample::published(records.clone(), records).expect("an address was asked for");
        let verdict = Verdict::clone(sample::empty(State::Trusted, NOW, 0).verdict());
        let live = sample::paid(verdict, published.clone());
        for answer in [live.clone(), live.clone().asked_as("A.eth"), live.from_cache()] {
            assert_eq!(answer.payment(), Some(&published));
        }
        assert_eq!(sample::empty(State::Trusted, NOW, 0).payment(), None);
    }

    #[test]
    fn a_signed_verdict_is_trusted_until_it_expires() {
        let verdict = |state| Arc::clone(sample::empty(state, NOW, 0).verdict());
        let origin = |state| Trusted::signed(&verdict(state), NOW).map(|trusted| trusted.origin());
        assert_eq!(origin(State::Trusted), Some(Origin::Signed { until: NOW }));
        assert_eq!((origin(State::Untrusted), origin(State::Indeterminate)), (None, None));
    }
}
