//! Checks who is paid. This module reads what [`Checking`] asks for.

use std::collections::BTreeSet;
use std::sync::Arc;

use alloy_primitives::Address;
use clresolve_core::name::EnsName;
use clresolve_core::reason::{Code, Reason};
use clresolve_core::state::State;
use clresolve_payment::check::{
    CheckAnswer, CheckOutcome, CheckRequest, CheckRules, Checking, NameReading, NamedBy, OriginFile, Remembered,
    Wanted, WebOrigin,
};
use clresolve_payment::decision::EntryRow;
use clresolve_payment::network::Network;
use clresolve_verdict::evidence::links::RegistrationFile;

use super::decide::DecisionEvent;
use super::look_ups::Beside;
use super::{Inner, Resolver, signer};
use crate::fetch::{Cause, FetchError};

/// The fraction of a question's time limit that fetching the origin's registration file may use.
const FILE_SHARE: f64 = 0.3;

/// Maximum number of readings for one check. A check asks for at most three, each once.
const MAX_READINGS: usize = 4;

impl Resolver {
    /// Checks who is paid by these terms, and what proves it. The seller may have no card.
    ///
    /// Never fails: errors are part of the answer, which then aborts. If a memory is configured, it stores what the
    /// check found about the origin.
    pub async fn check(&self, request: &CheckRequest) -> CheckAnswer {
        let answer = self.checked(Arc::new(request.clone())).await;
        DecisionEvent::of_check(&answer).report();
        answer
    }

    /// Like [`Resolver::check`], but does not report the answer.
    pub async fn checked(&self, request: Arc<CheckRequest>) -> CheckAnswer {
        let mut checking = self.begun(request).await;
        for _ in 0..MAX_READINGS {
            match checking.wanted() {
                None => break,
                Some(Wanted::OriginFile(url)) => checking.supply_file(self.origin_file(&url).await),
                Some(Wanted::Name(name)) => checking = self.with_name(checking, &name).await,
                Some(Wanted::Registration(entry)) => {
                    let payees = payees(&checking);
                    let Inner { walker, registries, .. } = &*self.0;
                    checking.supply_registration(registries.reading(walker, &entry, &payees).await);
                }
            }
        }
        let (_, CheckOutcome { answer, remember }) = self.finished(checking).await;
        if let (Some((origin, next)), Some(memory)) = (remember, &self.0.walker.sellers)
            && let Err(error) = memory.note(&origin, next).await
        {
            tracing::warn!(origin = origin.as_str(), %error, "the check is not remembered");
        }
        answer
    }

    /// Begins a check. The CPU pool parses the terms, not a thread that answers requests.
    async fn begun(&self, request: Arc<CheckRequest>) -> Checking {
        let config = &self.0.walker.config;
        let rules = CheckRules {
            policy: config.check.policy(),
            limits: config.limits.limits().tightened(&request.limits),
            gate: config.gate.policy(),
        };
        let remembered = match request.url.as_deref().and_then(WebOrigin::of) {
            Some(origin) => self.recalled(&origin).await,
            None => Ok(Remembered::default()),
        };
        self.0.walker.pool.run(move || Checking::new(request, rules, remembered)).await
    }

    async fn recalled(&self, origin: &WebOrigin) -> Result<Remembered, Box<Reason>> {
        let Some(memory) = &self.0.walker.sellers else { return Ok(Remembered::default()) };
        let recalled = memory.recall(origin).await;
        recalled.map_err(|error| Box::new(Reason::new(Code::MemoryUnavailable).observed(error.to_string())))
    }

    /// Judges what was read so far on the CPU pool. Returns the check, which may continue, with its outcome.
    async fn finished(&self, checking: Checking) -> (Checking, CheckOutcome) {
        let now = self.now();
        let judge = move || {
            let checked = checking.finish(now);
            (checking, checked)
        };
        self.0.walker.pool.run(judge).await
    }

    /// The registration file of an origin. A file behind a redirect counts as unread.
    async fn origin_file(&self, url: &str) -> OriginFile {
        let unread = |cause: String| {
            let reason = Reason::new(Code::PayeeUnproven).at("agent-registration.json");
            OriginFile::Unread(Box::new(reason.observed(cause)))
        };
        let limit = self.time_limit().mul_f64(FILE_SHARE);
        let body = match self.0.walker.sources.content.document(url, limit).await {
            Ok(body) => body,
            Err(FetchError::Unavailable(Cause::Status(404 | 410))) => return OriginFile::Absent,
            Err(error) => return unread(error.to_string()),
        };
        if body.hops > 0 && !clresolve_core::mutant!("files-of-other-origins") {
            return unread(format!("it redirects to {}", body.final_url));
        }
        match self.0.walker.pool.run(move || RegistrationFile::parse(&body.bytes)).await {
            Ok(file) => OriginFile::Read(file),
            Err(error) => unread(error.to_string()),
        }
    }

    /// Reads the name and supplies the reading to the check. Lookups take time: if the verdict no longer stands after
    /// them, it is obtained again, and the payee is proven without lookups.
    async fn with_name(&self, checking: Checking, name: &EnsName) -> Checking {
        let began = self.0.cached.cache.begin();
        let (checking, reading) = self.looked_up(checking, name).await;
        let Some(reading) = reading else { return checking };
        if self.still_stands(&reading.resolution, began).await {
            return checking;
        }
        self.read_name(checking, name).await.0
    }

    /// The check with what the name itself publishes.
    async fn read_name(&self, mut checking: Checking, name: &EnsName) -> (Checking, Option<NameReading>) {
        let resolution = self.resolve(name.as_str()).await;
        // Anyone's terms may name a name, so a claim makes none hot.
        if checking.named().is_some_and(|named| named.named_by != NamedBy::Seller) {
            self.note_hot(&resolution);
        }
        let resolution = self.0.cached.confirmed(resolution, &self.0.configured, DECIDED).await;
        let Ok(payees) = checking.terms().map(|terms| self.payees(&resolution, terms)) else { return (checking, None) };
        let route = self.route(&resolution, checking.verb());
        let reading = NameReading { resolution, route, payees };
        checking.supply_name(reading.clone());
        (checking, Some(reading))
    }

    /// As [`Self::read_name`], with the registrations and offer keys of the name, if they could change the answer. Returns
    /// the reading if lookups took time.
    async fn looked_up(&self, checking: Checking, name: &EnsName) -> (Checking, Option<NameReading>) {
        let (checking, reading) = self.read_name(checking, name).await;
        let Some(mut reading) = reading.filter(|reading| reading.resolution.payment().is_some()) else {
            return (checking, None);
        };
        let (mut checking, checked) = self.finished(checking).await;
        let open = open_networks(&checking, &checked.answer.entries);
        let Some(beside) = Beside::of(&reading.resolution).filter(|_| !open.is_empty()) else {
            return (checking, None);
        };
        self.add_registrations(&beside, &open, &mut reading.payees).await;
        if checking.has_jws_offers() {
            let key = signer::offer_key(&self.0.offer_keys, &self.0.walker, &beside).await;
            reading.payees.values_mut().for_each(|payees| key.add_to(&mut payees.signers));
        }
        checking.supply_name(reading.clone());
        (checking, Some(reading))
    }
}

/// The states of verdicts whose payment records may be confirmed at the newest block: they count without a trusted card,
/// too.
const DECIDED: &[State] = &[State::Trusted, State::Untrusted];

/// The networks of the entries whose payee is not proven yet.
fn open_networks(checking: &Checking, rows: &[EntryRow]) -> BTreeSet<Network> {
    let Ok(terms) = checking.terms() else { return BTreeSet::new() };
    let open = rows.iter().filter(|row| row.abort && row.is_but_for_the_payee);
    open.filter_map(|row| Some(terms.entries.get(row.index)?.price.as_ref().ok()?.network.clone())).collect()
}

/// The payees that the terms demand.
fn payees(checking: &Checking) -> BTreeSet<Address> {
    let entries = checking.terms().map(|terms| terms.entries.as_slice()).unwrap_or_default();
    entries.iter().filter_map(|entry| entry.price.as_ref().ok()).map(|price| price.pay_to).collect()
}
