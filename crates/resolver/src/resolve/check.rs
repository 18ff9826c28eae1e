//! Checks who is paid. This module reads what [`OngoingSellerCheck`] asks for.

use std::collections::BTreeSet;
use std::sync::Arc;

use alloy_primitives::Address;
use clresolve_core::name::EnsName;
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_core::state::TrustState;
use clresolve_payment::check::{
    NameVerdictAndPayees, NextSellerLookup, OngoingSellerCheck, OriginMemoryEntry, OriginRegistrationFileReading,
    SellerCheckConclusion, SellerCheckDocument, SellerCheckPolicy, SellerCheckRequest, SellerIdentitySource, WebOrigin,
};
use clresolve_payment::decide::networks_with_undecided_payee;
use clresolve_payment::terms::PaymentTerms;
use clresolve_verdict::evidence::links::RegistrationFile;
use clresolve_verdict::trust::Resolution;

use super::decide::DecisionLogEvent;
use super::look_ups::ResolvedVerdictKey;
use super::{Resolver, ResolverState, signer};
use crate::fetch::{FetchError, SourceUnavailableError};

/// The fraction of a question's time limit that fetching the origin's registration file may use.
const FILE_SHARE: f64 = 0.3;

/// Maximum number of readings for one check. It needs at most two: the origin's file, and a name or a registration.
const MAX_READINGS: usize = 2;

/// Verdict states whose payment records are confirmed at the newest block. A name's records count even without a
/// trusted card.
const CONFIRMABLE: &[TrustState] = &[TrustState::Trusted, TrustState::Untrusted];

/// A check that has ended, but was neither reported nor stored in the memory.
#[derive(Debug)]
pub struct FinishedSellerCheck {
    checking: OngoingSellerCheck,
    outcome: SellerCheckConclusion,
}

impl FinishedSellerCheck {
    /// The answer.
    pub const fn document(&self) -> &SellerCheckDocument {
        &self.outcome.answer
    }

    /// Counts the check and writes one event for it. Returns the answer.
    pub fn report_and_into_document(self) -> SellerCheckDocument {
        DecisionLogEvent::from_seller_check(&self.outcome.answer).count_and_log();
        self.outcome.answer
    }
}

impl Resolver {
    /// Checks who is paid by these terms, and what proves it. The seller may have no card.
    ///
    /// Never fails: errors are part of the answer, which then aborts. If a memory is configured, it stores what the
    /// check found about the origin.
    pub async fn check_seller(&self, request: &SellerCheckRequest) -> SellerCheckDocument {
        let ended = self.check_seller_unreported(Arc::new(request.clone())).await;
        self.remember_seller_check(ended).await.report_and_into_document()
    }

    /// Like [`Resolver::check_seller`], but the answer is neither reported nor stored in the memory.
    pub async fn check_seller_unreported(&self, request: Arc<SellerCheckRequest>) -> FinishedSellerCheck {
        let mut checking = self.start_check(request).await;
        for _ in 0..MAX_READINGS {
            match checking.next_lookup() {
                None => break,
                Some(NextSellerLookup::OriginFile(url)) => {
                    checking.supply_origin_file(self.fetch_origin_registration_file(&url).await)
                }
                Some(NextSellerLookup::Name(name)) => return self.finish_with_name(checking, &name).await,
                Some(NextSellerLookup::Registration(entry)) => {
                    let payees = demanded_payees(&checking);
                    let ResolverState { walker, registries, .. } = &*self.0;
                    checking.supply_registration(registries.read_entry(walker, &entry, &payees).await);
                }
            }
        }
        self.judge_seller_check(checking).await
    }

    /// Stores what a check found about the origin. If the check allowed an identity at first contact, but the memory
    /// then binds the origin to a different identity or to none, judges the check again with that entry.
    pub async fn remember_seller_check(&self, mut ended: FinishedSellerCheck) -> FinishedSellerCheck {
        let Some((origin, next)) = ended.outcome.remember.take() else { return ended };
        let allowed = next.identity.as_ref().map(|seen| seen.identity.clone());
        let noted = match &self.0.walker.seller_memory {
            Some(memory) => memory.remember_origin(&origin, next).await,
            None => Ok(OriginMemoryEntry::default()),
        };
        if let Err(error) = &noted {
            tracing::warn!(origin = origin.as_str(), %error, "the memory cannot store what the check found");
        }
        if allowed.is_none() || clresolve_core::mutant!("unstored-identities-are-paid") {
            return ended;
        }
        let known = match noted {
            Ok(known) => match &known.identity {
                Some(seen) if Some(&seen.identity) == allowed.as_ref() => return ended,
                Some(_) => Ok(known),
                None => Err(memory_unavailable_reason("the memory does not store this origin")),
            },
            Err(error) => Err(memory_unavailable_reason(&error.to_string())),
        };
        ended.checking.supply_memory_entry(known);
        self.judge_seller_check(ended.checking).await
    }

    /// Begins a check. The CPU pool parses the terms, not a thread that answers requests.
    async fn start_check(&self, request: Arc<SellerCheckRequest>) -> OngoingSellerCheck {
        let config = &self.0.walker.config;
        let origin = request.url.as_deref().and_then(WebOrigin::from_url_text);
        let rules = SellerCheckPolicy {
            pinned: origin.as_ref().and_then(|origin| config.check.origins.get(origin)).cloned(),
            policy: config.check.payee_evidence_policy(),
            limits: config.limits.payment_limits().tightened_by_caller(&request.limits),
            gate: config.gate.gate_policy(),
        };
        let remembered = match origin {
            Some(origin) => self.recall_origin(&origin).await,
            None => Ok(OriginMemoryEntry::default()),
        };
        self.0.walker.pool.run(move || OngoingSellerCheck::new(request, rules, remembered)).await
    }

    async fn recall_origin(&self, origin: &WebOrigin) -> Result<OriginMemoryEntry, Box<Reason>> {
        let Some(memory) = &self.0.walker.seller_memory else { return Ok(OriginMemoryEntry::default()) };
        memory.recall_origin(origin).await.map_err(|error| memory_unavailable_reason(&error.to_string()))
    }

    /// Judges on the CPU pool what was read so far.
    async fn judge_seller_check(&self, checking: OngoingSellerCheck) -> FinishedSellerCheck {
        let now = self.now();
        let judge = move || {
            let outcome = checking.finish(now);
            FinishedSellerCheck { checking, outcome }
        };
        self.0.walker.pool.run(judge).await
    }

    /// The registration file of an origin. A file behind a redirect counts as unread.
    async fn fetch_origin_registration_file(&self, url: &str) -> OriginRegistrationFileReading {
        let unread = |cause: String| {
            let reason = Reason::new(ReasonCode::PayeeUnproven).at_place("agent-registration.json");
            OriginRegistrationFileReading::Unread(Box::new(reason.observed(cause)))
        };
        let limit = self.question_time_limit().mul_f64(FILE_SHARE);
        let body = match self.0.walker.sources.content.fetch_document(url, limit).await {
            Ok(body) => body,
            Err(FetchError::Unavailable(SourceUnavailableError::Status(404 | 410))) => {
                return OriginRegistrationFileReading::Absent;
            }
            Err(error) => return unread(error.to_string()),
        };
        if body.hops > 0 && !clresolve_core::mutant!("files-of-other-origins") {
            return unread(format!("it redirects to {}", body.final_url));
        }
        match self.0.walker.pool.run(move || RegistrationFile::parse(&body.bytes)).await {
            Ok(file) => OriginRegistrationFileReading::Read(file),
            Err(error) => unread(error.to_string()),
        }
    }

    /// Ends a check with what the name publishes. Registrations and offer keys of the name are read only if they could
    /// change the answer. These lookups take time: if the verdict no longer stands after them, the name is read again,
    /// and the check ends without lookups.
    async fn finish_with_name(&self, checking: OngoingSellerCheck, name: &EnsName) -> FinishedSellerCheck {
        let began = self.0.cached.cache.snapshot_resolution_start();
        let (checking, reading) = self.add_published_name_data(checking, name).await;
        let ended = self.judge_seller_check(checking).await;
        let Some(mut reading) = reading else { return ended };
        let open = ended.checking.terms().map(|terms| networks_with_undecided_payee(terms, &ended.document().entries));
        let open = open.unwrap_or_default();
        let Some(beside) = ResolvedVerdictKey::from_resolution(&reading.resolution).filter(|_| !open.is_empty()) else {
            return ended;
        };
        let mut checking = ended.checking;
        self.add_registrations(&beside, &open, &mut reading.payees).await;
        if checking.terms().is_ok_and(PaymentTerms::has_jws_offers) {
            let key = signer::read_offer_key(&self.0.offer_keys, &self.0.cached, &beside).await;
            reading.payees.values_mut().for_each(|payees| key.add_to_signer_keys(&mut payees.signers));
        }
        let stands = self.is_still_valid(&reading.resolution, began).await;
        checking.supply_name(reading);
        if !stands {
            checking = self.add_published_name_data(checking, name).await.0;
        }
        self.judge_seller_check(checking).await
    }

    /// The check with what the name itself publishes, and that reading. `None` if the name publishes nothing, so that
    /// no lookup could add to it.
    async fn add_published_name_data(
        &self,
        mut checking: OngoingSellerCheck,
        name: &EnsName,
    ) -> (OngoingSellerCheck, Option<NameVerdictAndPayees>) {
        let resolution = self.resolve(name.as_str()).await;
        if may_reread_at_each_head(&checking, &resolution) {
            self.record_hot_name(&resolution);
        }
        let confirmable = if clresolve_core::mutant!("untrusted-names-are-unconfirmed") { &[] } else { CONFIRMABLE };
        let resolution = self.0.cached.confirm_resolution(resolution, &self.0.configured, confirmable).await;
        let Ok(payees) = checking.terms().map(|terms| self.payees_of_terms(&resolution, terms)) else {
            return (checking, None);
        };
        let route = self.agent_route(&resolution, checking.verb());
        let reading = NameVerdictAndPayees { resolution, route, payees };
        checking.supply_name(reading.clone());
        (checking, Some(reading).filter(|reading| reading.resolution.payment_records().is_some()))
    }
}

/// Whether the name is reread at each head. Anyone can name any name, so it must be pinned, remembered, or trusted and
/// named by the caller.
fn may_reread_at_each_head(checking: &OngoingSellerCheck, resolution: &Resolution) -> bool {
    match checking.named_identity().map(|named| named.named_by) {
        Some(SellerIdentitySource::Configuration | SellerIdentitySource::Memory) => true,
        Some(SellerIdentitySource::Caller) => resolution.verdict().state == TrustState::Trusted,
        Some(SellerIdentitySource::Seller) | None => false,
    }
}

fn memory_unavailable_reason(cause: &str) -> Box<Reason> {
    Box::new(Reason::new(ReasonCode::MemoryUnavailable).observed(cause))
}

fn demanded_payees(checking: &OngoingSellerCheck) -> BTreeSet<Address> {
    let entries = checking.terms().map(|terms| terms.entries.as_slice()).unwrap_or_default();
    entries.iter().filter_map(|entry| entry.price.as_ref().ok()).map(|price| price.pay_to).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use async_trait::async_trait;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use bytes::Bytes;
    use clresolve_chain::transport::{HttpRequestError, JsonRpcHttpClient};
    use clresolve_core::payment::CoinType;
    use clresolve_payment::check::{
        Erc8004Outcome, FirstContactPolicy, PayeeEvidenceKind, RegistrationReading, SellerCheckRequest, SellerIdentity,
    };
    use clresolve_payment::decision::DecisionOutcome;
    use clresolve_payment::request::PaymentDemand;
    use url::Url;

    use super::super::decide::tests::{NAME, OF_A_CONFIRMATION, OF_A_LOOK_UP, PaymentDecisionFixture};
    use super::super::setup;
    use super::*;
    use crate::cpu_pool::{MAX_THREADS, OccupiedCpuPool};
    use crate::sandbox::{CustomSandbox, Sandbox};
    use clresolve_sandbox::spec::SandboxSpec;

    /// The reply of the seller at `url`.
    async fn asked(resolver: &Resolver, url: &str) -> SellerCheckRequest {
        SellerCheckRequest::from_seller_reply(
            url,
            resolver.send_unpaid_request(url, Some("{}")).await.expect("the seller answers"),
        )
    }

    /// An identity that was allowed at first contact but not stored would not bind the origin.
    #[tokio::test(flavor = "multi_thread")]
    async fn identity_that_cannot_be_stored_is_not_paid() {
        let sandbox = Sandbox::start().await.expect("it starts");
        let mut config = sandbox.config();
        config.check.first_contact = FirstContactPolicy::Allow;
        let resolver = Resolver::new(&config).await.expect("its configuration is good");
        let request = asked(&resolver, "https://first-contact.sandbox.example/weather").await;
        let ended = resolver.check_seller_unreported(Arc::new(request)).await;
        assert!(!ended.document().abort, "{ended:#?}");
        let _busy =
            resolver.0.walker.seller_memory.as_ref().expect("the sandbox has one").memory.take_all_permits().await;
        let answer = resolver.remember_seller_check(ended).await.report_and_into_document();
        assert!(answer.abort && answer.has_reason(ReasonCode::MemoryUnavailable), "{answer:#?}");
    }

    /// Two replies from one origin may name different identities. The memory binds the origin to the one stored first.
    #[tokio::test(flavor = "multi_thread")]
    async fn identity_that_another_check_replaced_is_not_paid() {
        let sandbox = Sandbox::start().await.expect("it starts");
        let mut config = sandbox.config();
        config.check.first_contact = FirstContactPolicy::Allow;
        let resolver = Resolver::new(&config).await.expect("its configuration is good");
        let request = Arc::new(asked(&resolver, "https://first-contact.sandbox.example/weather").await);
        let (first, second) = (
            resolver.check_seller_unreported(Arc::clone(&request)).await,
            resolver.check_seller_unreported(request).await,
        );
        assert!(!first.document().abort && !second.document().abort, "{first:#?}");
        let (origin, mut other) = first.outcome.remember.expect("it is remembered");
        other.identity.as_mut().expect("it is allowed").identity = "other.eth".parse().expect("a name");
        let memory = resolver.0.walker.seller_memory.as_ref().expect("the sandbox has one");
        memory.remember_origin(&origin, other).await.expect("it is stored");
        let answer = resolver.remember_seller_check(second).await.report_and_into_document();
        assert!(answer.abort && answer.has_reason(ReasonCode::IdentityChanged), "{answer:#?}");
    }

    /// The memory stores no origin that is longer than DNS allows.
    #[tokio::test(flavor = "multi_thread")]
    async fn identity_of_an_unstored_origin_is_not_paid() {
        const HOST: &str = "shop.sandbox.example";
        let long = format!("{}{HOST}", "a.".repeat(200));
        let spec = format!(
            "[[seller]]\nurl = \"https://{HOST}/weather\"\nabout = \"It sells.\"\ndecision = \"undecided\"\n\
             claims_name = \"shop.eth\"\n[[seller.names]]\nname = \"shop.eth\"\n\
             records.\"agent-endpoint[x402]\" = \"https://{long}\"\n"
        );
        let world = CustomSandbox::start(&SandboxSpec::parse(&spec).expect("it is a world")).await.expect("it starts");
        let mut config = world.config();
        config.check.first_contact = FirstContactPolicy::Allow;
        let resolver = Resolver::new(&config).await.expect("its configuration is good");
        let near = asked(&resolver, &format!("https://{HOST}/weather")).await;
        let PaymentDemand::Reply(mut reply) = near.demand else { panic!("the seller replies") };
        let mut headers = reply.headers.iter_mut();
        let (_, terms) = headers.find(|(name, _)| name == "payment-required").expect("its terms");
        let text = String::from_utf8(STANDARD.decode(&*terms).expect("base64")).expect("JSON");
        *terms = STANDARD.encode(text.replace(HOST, &long));
        let request = SellerCheckRequest::from_seller_reply(format!("https://{long}/weather"), reply);
        let ended = resolver.check_seller_unreported(Arc::new(request)).await;
        assert!(!ended.document().abort, "{ended:#?}");
        let answer = resolver.remember_seller_check(ended).await.report_and_into_document();
        assert!(answer.abort && answer.has_reason(ReasonCode::MemoryUnavailable), "{answer:#?}");
    }

    /// Endpoints that answer every request except `ownerOf`.
    struct OwnerUnread(Arc<dyn JsonRpcHttpClient>);

    #[async_trait]
    impl JsonRpcHttpClient for OwnerUnread {
        async fn post_json(
            &self,
            url: &Url,
            body: Bytes,
            cap: usize,
            timeout: Duration,
        ) -> Result<Bytes, HttpRequestError> {
            if String::from_utf8_lossy(&body).contains("0x6352211e") {
                return Err(HttpRequestError::Status(503, Bytes::new()));
            }
            self.0.post_json(url, body, cap, timeout).await
        }
    }

    /// Paying the owner is neither proven nor contradicted, so the payee stays open while the owner is unknown.
    #[tokio::test(flavor = "multi_thread")]
    async fn unreadable_owner_leaves_the_registration_unread() {
        const URL: &str = "https://registration-other-wallet.sandbox.example/weather";
        let sandbox = Sandbox::start().await.expect("it starts");
        let resolver = Resolver::new(&sandbox.config()).await.expect("its configuration is good");
        let honest = resolver.check_seller(&asked(&resolver, URL).await).await;
        assert_eq!(honest.decision, DecisionOutcome::Deny, "{honest:#?}");
        let entry = honest.identity.expect("it is pinned").identity;
        let SellerIdentity::Registration(entry) = entry else { panic!("{entry}") };
        let ResolverState { walker, .. } = &*resolver.0;
        let http = Arc::clone(&walker.upstream.as_ref().expect("it asks endpoints").http);
        let unread: Arc<dyn JsonRpcHttpClient> = Arc::new(OwnerUnread(http));
        let registries = setup::agent_registries(&walker.config, &unread, &walker.clock);
        let payees = [Address::repeat_byte(7)].into();
        let reading = registries.expect("the configuration is good").read_entry(walker, &entry, &payees).await;
        let RegistrationReading::NotRead(reason) = reading else { panic!("{reading:#?}") };
        let cause = reason.observed.expect("a cause");
        assert!(cause.starts_with("the owner of the agent: "), "{cause}");
    }

    /// The check shows the wallet that a name vouches for, even if only the seller names that name.
    #[tokio::test(flavor = "multi_thread")]
    async fn registration_of_a_claimed_name_is_shown() {
        let shop = PaymentDecisionFixture::open().await;
        // The memory of the sandbox has accepted the name.
        let (folder, mut config) = (tempfile::tempdir().expect("a folder"), shop.world.config());
        config.memory.path = Some(folder.path().join("memory"));
        config.timeout = Duration::from_secs(120);
        let resolver = Resolver::new(&config).await.expect("its configuration is good");
        let (PaymentDemand::Reply(reply), Some(url)) = (shop.request.demand, shop.request.url) else {
            panic!("the seller replied")
        };
        let about = SellerCheckRequest::from_seller_reply(url, reply);
        let request =
            SellerCheckRequest { name: Some(NAME.to_owned()), named_by: SellerIdentitySource::Seller, ..about };
        let answer = resolver.check_seller(&request).await;
        let row = answer.evidence_row(PayeeEvidenceKind::Erc8004).expect("there is a row for each kind");
        assert_eq!(row.outcome, Some(Erc8004Outcome::VerifiedWallet), "{answer:#?}");
        assert!(answer.entries[0].codes.contains(&ReasonCode::IdentityClaimed.slug().to_owned()), "{answer:#?}");
    }

    /// The verdict on a name without a card is cached, too.
    #[tokio::test(flavor = "multi_thread")]
    async fn changed_address_of_a_name_without_a_card_is_not_paid() {
        const URL: &str = "https://shop.sandbox.example/weather";
        let spec = format!(
            "[[seller]]\nurl = \"{URL}\"\nabout = \"It sells.\"\ndecision = \"allow\"\n[[seller.names]]\nname = \
             \"shop.eth\"\n"
        );
        let mut world =
            CustomSandbox::start(&SandboxSpec::parse(&spec).expect("it is a world")).await.expect("it starts");
        let resolver = Resolver::new(&world.config()).await.expect("its configuration is good");
        let request = SellerCheckRequest { name: Some("shop.eth".to_owned()), ..asked(&resolver, URL).await };
        for _ in 0..2 {
            let answer = resolver.check_seller(&request).await;
            assert!(!answer.abort, "{answer:#?}");
        }
        let (name, coin) =
            (EnsName::parse("shop.eth").expect("a name"), CoinType::from_chain_id(31_337).expect("it has one"));
        world.apply_in_new_block(|newest| newest.set_address(&name, coin, &[7_u8; 20].into())).expect("it is set");
        let answer = resolver.check_seller(&request).await;
        assert!(answer.abort && answer.has_reason(ReasonCode::RecordPending), "{answer:#?}");
    }

    /// As for a decision, an eviction during the lookups stops the payment.
    #[tokio::test(flavor = "multi_thread")]
    async fn change_during_a_look_up_stops_the_payment_of_a_check() {
        let mut shop = PaymentDecisionFixture::open().await;
        let (PaymentDemand::Reply(reply), Some(url)) = (shop.request.demand.clone(), shop.request.url.clone()) else {
            panic!("the seller replied")
        };
        let about = SellerCheckRequest::from_seller_reply(url, reply);
        let request = SellerCheckRequest { name: Some(NAME.to_owned()), verb: Some("summarize".to_owned()), ..about };
        let honest = shop.resolver.check_seller(&request).await;
        assert_eq!(honest.entries.iter().map(|row| row.abort).collect::<Vec<_>>(), [false, true], "{honest:#?}");
        shop.resolver.resolve_question_anew(&crate::NameQuestion::new(NAME)).await.expect("a verdict");

        let pool = Arc::clone(shop.resolver.cpu_pool());
        let before = shop.world.request_counts().rpc + OF_A_CONFIRMATION;
        let first = OccupiedCpuPool::occupy_all(&pool);
        OccupiedCpuPool::wait_for_jobs(&pool, MAX_THREADS).await;
        let (resolver, asked) = (shop.resolver.clone(), request.clone());
        let checking = tokio::spawn(async move { resolver.check_seller(&asked).await });
        // The terms are parsed between the first two, what the name publishes is judged between the last two, and the
        // registration after them.
        OccupiedCpuPool::wait_for_jobs(&pool, MAX_THREADS + 1).await;
        let second = OccupiedCpuPool::occupy_all(&pool);
        OccupiedCpuPool::wait_for_jobs(&pool, 2 * MAX_THREADS + 1).await;
        first.release().await;
        OccupiedCpuPool::wait_for_jobs(&pool, MAX_THREADS + 1).await;
        let third = OccupiedCpuPool::occupy_all(&pool);
        OccupiedCpuPool::wait_for_jobs(&pool, 2 * MAX_THREADS + 1).await;
        second.release().await;
        let began = std::time::Instant::now();
        while shop.world.request_counts().rpc < before + OF_A_LOOK_UP || pool.unfinished_job_count() != MAX_THREADS + 1
        {
            assert!(began.elapsed() < Duration::from_secs(60), "the registration is not read");
            assert!(!checking.is_finished(), "a registration was read where the answers are given");
            tokio::task::yield_now().await;
        }
        let name = EnsName::parse(NAME).expect("a name");
        shop.world.write_text(&name, "cl.owner", "thief.eth").expect("it has a resolver");
        shop.resolver.evict_name(&name);
        third.release().await;
        let answer = checking.await.expect("it ends");
        assert!(answer.entries.iter().all(|row| row.abort), "{answer:#?}");
        assert!(answer.has_reason(ReasonCode::RecordPending), "{answer:#?}");
    }
}
