//! Tests of the cache of verdicts.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;

use clresolve_chain::ChainHead;
use clresolve_core::payment::{EndpointRecord, EndpointRecordKey, PaymentRecords};
use clresolve_core::reading::{
    BlockSelector, ChainBlock, EnsAnswer, LatestNameState, NameReading, ProofGrade, ProofStrength,
};
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_core::records::TextRecord;
use clresolve_verdict::build::{self, EvidenceWithStepDurations, VerdictContext};
use clresolve_verdict::check::JudgementPolicy;
use clresolve_verdict::gate::GatePolicy;
use clresolve_verdict::profile::{ConformanceProfiles, DEFAULT};
use clresolve_verdict::sample::{
    self, empty_resolution as resolution, published_payments, resolution_of_verdict, resolution_with_newest_block,
    resolution_with_payments,
};
use clresolve_verdict::verdict::{AgentIdentity, AnchorBlock, ChainAnchor, VerdictConfirmationSource, VerdictCopyKind};
use jiff::ToSpan as _;
use serde_json::{Value, json};

use super::*;

mod standing;

fn key(name: &str) -> VerdictCacheKey {
    VerdictCacheKey {
        name: EnsName::parse(name).expect("a good name"),
        block: BlockSelector::Finalized,
        depth: ResolutionDepth::Identity,
        rules: Digest::compute(b"rules"),
        world: "world".into(),
    }
}

fn cache() -> Arc<VerdictCache> {
    Arc::new(VerdictCache::new(&CacheConfig::default()))
}

const START: Timestamp = Timestamp::UNIX_EPOCH;

const LIMITS: HeadConfirmationLimits =
    HeadConfirmationLimits { max_unconfirmed: Duration::from_secs(15), max_head_age: Some(Duration::from_secs(60)) };

/// Stores the verdict of a resolution that ended at this time. Returns why it is not in the cache, if so.
async fn keep(cache: &VerdictCache, name: &str, state: TrustState, at: Timestamp) -> Option<NotCachedReason> {
    cache.insert(key(name), &resolution(state, at, 0).into(), 0, cache.snapshot_resolution_start()).await.err()
}

/// A verdict on a name whose records have this digest.
fn anchored(state: TrustState, records: &str) -> Verdict {
    let anchor = ChainAnchor {
        world: "mainnet".to_owned(),
        chain: "eip155:1".to_owned(),
        block: AnchorBlock {
            number: 1,
            hash: String::new(),
            timestamp: START.to_string(),
            tag: "finalized".to_owned(),
        },
        resolver: Some("0x1".to_owned()),
        wildcard: None,
        offchain: false,
        proof: ProofStrength { grade: ProofGrade::Quorum, asked: 3, agreed: 2, own: false },
        records_digest: Some(records.to_owned()),
    };
    Verdict { anchor: Some(anchor), ..Verdict::clone(resolution(state, START, 0).verdict()) }
}

#[test]
fn failures_back_off_from_one_second_to_five_minutes() {
    let pauses: Vec<u64> = (0..11).map(|n| verdict_fresh_duration(TrustState::Indeterminate, n).as_secs()).collect();
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
    assert_eq!(verdict_fresh_duration(TrustState::Indeterminate, u32::MAX), LONGEST_BACKOFF);
}

#[tokio::test]
async fn a_trusted_verdict_is_served_until_it_is_no_longer_fresh() {
    let (cache, runs) = (cache(), Arc::new(AtomicUsize::new(0)));
    for (seconds, expected_runs) in [(0, 1), (299, 1), (300, 2)] {
        let now = START + seconds.seconds();
        let counter = Arc::clone(&runs);
        let run = move |_| async move {
            counter.fetch_add(1, Ordering::SeqCst);
            resolution(TrustState::Trusted, now, 0)
        };
        cache.get_or_resolve(key("a.eth"), now, LIMITS, run).await;
        assert_eq!(runs.load(Ordering::SeqCst), expected_runs, "after {seconds} s");
    }
}

#[tokio::test]
async fn callers_share_one_run_and_cancel_nothing() {
    let (cache, runs) = (cache(), Arc::new(AtomicUsize::new(0)));
    let (release, gate) = tokio::sync::watch::channel(false);
    let ask = || {
        let (cache, counter, mut gate) = (Arc::clone(&cache), Arc::clone(&runs), gate.clone());
        async move {
            let run = move |_| async move {
                counter.fetch_add(1, Ordering::SeqCst);
                let _ = gate.wait_for(|open| *open).await;
                resolution(TrustState::Trusted, START, 0)
            };
            cache.get_or_resolve(key("a.eth"), START, LIMITS, run).await
        }
    };
    let mut first = Box::pin(ask());
    assert!(futures_util::poll!(&mut first).is_pending());
    drop(first);
    let second = tokio::spawn(ask());
    release.send(true).expect("the run waits");
    assert_eq!(second.await.expect("no panic").verdict().state, TrustState::Trusted);
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn failure_backs_off_and_hides_no_fresh_trusted_verdict() {
    let cache = cache();
    let fail = |before: EarlierResults| async move { resolution(TrustState::Indeterminate, START, before.failures) };
    let first = cache.get_or_resolve(key("a.eth"), START, LIMITS, fail).await;
    assert_eq!(first.verdict().freshness.retry_after, Some(1));
    let later = START + 1.second();
    let second = cache
        .get_or_resolve(key("a.eth"), later, LIMITS, move |before: EarlierResults| async move {
            resolution(TrustState::Indeterminate, later, before.failures)
        })
        .await;
    assert_eq!(second.verdict().freshness.retry_after, Some(2));

    keep(&cache, "b.eth", TrustState::Trusted, START).await;
    keep(&cache, "b.eth", TrustState::Indeterminate, START).await;
    let served = cache.fresh_resolution(&key("b.eth"), START, LIMITS).await.expect("still fresh");
    assert_eq!(
        (served.verdict().state, served.verdict().freshness.served),
        (TrustState::Trusted, VerdictCopyKind::Cached)
    );
}

#[tokio::test]
async fn the_status_is_reported_without_a_run() {
    let cache = cache();
    assert!(matches!(cache.key_status(&key("a.eth"), START, LIMITS).await, VerdictCacheKeyStatus::Missing));
    let never = std::future::pending::<Resolution>;
    let mut asked = Box::pin(cache.get_or_resolve(key("a.eth"), START, LIMITS, move |_| never()));
    assert!(futures_util::poll!(&mut asked).is_pending());
    assert!(matches!(cache.key_status(&key("a.eth"), START, LIMITS).await, VerdictCacheKeyStatus::UnderWay));

    keep(&cache, "b.eth", TrustState::Trusted, START).await;
    let later = START + 9.seconds();
    assert!(matches!(cache.key_status(&key("b.eth"), later, LIMITS).await, VerdictCacheKeyStatus::Fresh(_)));
    assert_eq!(cache.time_since_resolution(&key("b.eth"), later).await.as_secs(), 9);
    keep(&cache, "b.eth", TrustState::Indeterminate, later).await;
    assert_eq!(cache.time_since_resolution(&key("b.eth"), later).await.as_secs(), 0, "a failed run counts too");
}

#[tokio::test]
async fn a_new_run_is_made_although_a_verdict_is_fresh() {
    let cache = cache();
    keep(&cache, "a.eth", TrustState::Trusted, START).await;
    let run = |_| async { resolution(TrustState::Untrusted, START, 0) };
    assert_eq!(cache.resolve_anew(key("a.eth"), LIMITS, run).await.verdict().state, TrustState::Untrusted);
    assert_eq!(
        cache.fresh_resolution(&key("a.eth"), START, LIMITS).await.map(|r| r.verdict().state),
        Some(TrustState::Untrusted)
    );
}

/// How many of twenty trusted verdicts with cards of this size are kept, and their weight.
async fn kept(config: CacheConfig, card_bytes: usize) -> (u64, u64) {
    let cache = VerdictCache::new(&config);
    for number in 0..20 {
        let verdict = Verdict::clone(resolution(TrustState::Trusted, START, 0).verdict());
        let resolution = resolution_of_verdict(verdict, Some(vec![b' '; card_bytes].into()));
        let _ = cache
            .insert(key(&format!("a{number}.eth")), &resolution.into(), 0, cache.snapshot_resolution_start())
            .await;
        cache.trusted.run_pending_tasks().await;
    }
    (cache.trusted.entry_count(), cache.trusted.weighted_size())
}

#[tokio::test]
async fn verdicts_are_bounded_in_number_and_in_bytes() {
    let config = CacheConfig { verdict_bytes: 1 << 20, ..CacheConfig::default() };
    let (entries, bytes) = kept(config.clone(), 256 << 10).await;
    assert!((1..=3).contains(&entries) && bytes <= 1 << 20, "{entries} entries of the largest cards, {bytes} bytes");
    assert_eq!(kept(config.clone(), 2 << 10).await.0, 20, "small ones have room");
    assert_eq!(kept(CacheConfig { trusted: 7, ..config.clone() }, 2 << 10).await.0, 7);
    assert_eq!(kept(CacheConfig { trusted: 0, ..config }, 0).await.0, 0);
}

#[test]
fn short_values_weigh_as_much_as_their_allocations() {
    const VALUES: usize = 8_000;
    // The allocator's smallest block, with its header.
    const ALLOCATION: usize = 32;
    let weight = |verbs: usize| {
        let mut verdict = Verdict::clone(resolution(TrustState::Trusted, START, 0).verdict());
        let verbs = vec!["a".to_owned(); verbs];
        verdict.steps[0].evidence = json!({"implements": verbs});
        verdict.identity = Some(AgentIdentity { verbs, ..AgentIdentity::default() });
        super::entry::estimate_entry_bytes(&resolution_of_verdict(verdict, None))
    };
    let taken = VALUES * (size_of::<String>() + size_of::<Value>() + 2 * ALLOCATION);
    assert!(weight(VALUES) - weight(0) >= taken);
}

#[test]
fn what_a_name_publishes_about_payments_has_its_weight() {
    let weight = |url: &str| {
        let endpoint = EndpointRecord::Read(TextRecord::Text(url.to_owned()));
        let records = PaymentRecords { endpoints: [(EndpointRecordKey::Web, endpoint)].into(), ..Default::default() };
        let payment = published_payments(records.clone(), records).expect("it publishes an endpoint");
        let verdict = Verdict::clone(resolution(TrustState::Trusted, START, 0).verdict());
        super::entry::estimate_entry_bytes(&resolution_with_payments(verdict, payment))
    };
    assert_eq!(weight(&"a".repeat(1 << 20)) - weight(""), 2 << 20);
}

#[tokio::test]
async fn an_untrusted_verdict_replaces_a_trusted_one() {
    let cache = cache();
    keep(&cache, "a.eth", TrustState::Trusted, START).await;
    keep(&cache, "a.eth", TrustState::Untrusted, START).await;
    assert_eq!(
        cache.fresh_resolution(&key("a.eth"), START, LIMITS).await.map(|r| r.verdict().state),
        Some(TrustState::Untrusted)
    );
}

#[tokio::test]
async fn what_was_asked_for_is_due_in_its_last_tenth() {
    let cache = cache();
    for (name, at) in [("later.eth", START + 5.seconds()), ("a.eth", START), ("unasked.eth", START)] {
        keep(&cache, name, TrustState::Trusted, at).await;
    }
    keep(&cache, "bad.eth", TrustState::Untrusted, START + 240.seconds()).await;
    assert!(cache.keys_due_for_refresh(START + 280.seconds()).is_empty(), "nobody has asked");
    for name in ["a.eth", "later.eth", "bad.eth"] {
        assert!(cache.fresh_resolution(&key(name), START + 6.seconds(), LIMITS).await.is_some());
    }
    let due = |seconds: i64| -> Vec<String> {
        cache
            .keys_due_for_refresh(START + seconds.seconds())
            .iter()
            .map(|(_, key)| key.name.as_str().to_owned())
            .collect()
    };
    assert!(due(269).is_empty());
    assert_eq!(due(270), ["a.eth"]);
    assert_eq!(due(280), ["a.eth", "later.eth"], "what ends first stands first");
    assert_eq!(due(300), ["later.eth"], "what has ended is not refreshed");
    keep(&cache, "a.eth", TrustState::Trusted, START + 280.seconds()).await;
    assert!(!due(579).contains(&"a.eth".to_owned()), "nobody has asked since the run");
}

#[tokio::test]
async fn a_refresh_that_fails_is_backed_off_and_leaves_what_is_fresh() {
    let (cache, runs) = (cache(), Arc::new(AtomicUsize::new(0)));
    keep(&cache, "a.eth", TrustState::Trusted, START).await;
    cache.fresh_resolution(&key("a.eth"), START, LIMITS).await.expect("it is fresh");
    for (seconds, expected_runs) in [(200, 0), (270, 1), (270, 1), (271, 2), (272, 2), (273, 3), (300, 3)] {
        let (now, counter) = (START + seconds.seconds(), Arc::clone(&runs));
        let run = move |before: EarlierResults| async move {
            counter.fetch_add(1, Ordering::SeqCst);
            resolution(TrustState::Indeterminate, now, before.failures)
        };
        cache.refresh_key(&key("a.eth"), now, LIMITS, run).await;
        assert_eq!(runs.load(Ordering::SeqCst), expected_runs, "after {seconds} s");
        let served = cache.fresh_resolution(&key("a.eth"), now, LIMITS).await.map(|served| served.verdict().state);
        assert_eq!(served, (seconds < 300).then_some(TrustState::Trusted), "after {seconds} s");
    }
}

#[tokio::test]
async fn whoever_asks_joins_the_refresh() {
    let cache = cache();
    keep(&cache, "a.eth", TrustState::Trusted, START).await;
    cache.fresh_resolution(&key("a.eth"), START, LIMITS).await.expect("it is fresh");
    let (release, gate) = tokio::sync::oneshot::channel::<()>();
    let now = START + 299.seconds();
    let run = move |_| async move {
        let _ = gate.await;
        resolution(TrustState::Untrusted, now, 0)
    };
    let key = key("a.eth");
    let mut refresh = Box::pin(cache.refresh_key(&key, now, LIMITS, run));
    assert!(futures_util::poll!(&mut refresh).is_pending());
    assert!(matches!(cache.key_status(&key, now + 1.second(), LIMITS).await, VerdictCacheKeyStatus::UnderWay));
    let another = move |_| async move { resolution(TrustState::Trusted, now, 0) };
    let asked = cache.get_or_resolve(key.clone(), now + 1.second(), LIMITS, another);
    release.send(()).expect("the run waits");
    assert_eq!(asked.await.verdict().state, TrustState::Untrusted);
}

#[tokio::test]
async fn expired_verdict_is_stale_for_ten_minutes_after_a_failure() {
    let cache = cache();
    keep(&cache, "a.eth", TrustState::Trusted, START).await;
    let stale = async |name: &str, seconds: i64| {
        let stale = cache.stale_verdict(&key(name), "A.eth", START + seconds.seconds()).await;
        stale.map(|stale| (stale.verdict().freshness.served, stale.verdict().name.input.clone()))
    };
    assert_eq!(stale("a.eth", 300).await, None, "no run has failed");
    keep(&cache, "a.eth", TrustState::Indeterminate, START + 300.seconds()).await;
    let described = Some((VerdictCopyKind::Stale, "A.eth".to_owned()));
    assert_eq!((stale("a.eth", 300).await, stale("a.eth", 899).await), (described.clone(), described));
    assert_eq!(stale("a.eth", 900).await, None);
    let answer =
        cache.fresh_resolution(&key("a.eth"), START + 300.seconds(), LIMITS).await.expect("the failure is remembered");
    assert_eq!(answer.verdict().state, TrustState::Indeterminate, "an answer is never stale");
    let stored = cache.trusted.get(&key("a.eth")).await.expect("it is kept");
    let id = |resolution: &Resolution| Verdict::clone(resolution.verdict()).with_computed_digests().id;
    assert_eq!(
        stored.resolution().to_stale().verdict().as_ref().clone().with_computed_digests().id,
        id(&stored.resolution())
    );

    keep(&cache, "b.eth", TrustState::Untrusted, START).await;
    keep(&cache, "b.eth", TrustState::Indeterminate, START + 60.seconds()).await;
    assert_eq!(stale("b.eth", 60).await, None, "what was not trusted is never stale");
}

#[tokio::test]
async fn nothing_is_served_across_a_change() {
    let pending = Verdict {
        reasons: vec![Reason::new(ReasonCode::RecordPending)],
        ..anchored(TrustState::Indeterminate, "sha256:1")
    };
    let other_resolver = {
        let mut verdict = anchored(TrustState::Indeterminate, "sha256:1");
        verdict.anchor.as_mut().expect("it has one").resolver = None;
        verdict
    };
    let unread = Verdict { anchor: None, ..anchored(TrustState::Indeterminate, "") };
    for (seen, is_change) in [
        (anchored(TrustState::Indeterminate, "sha256:1"), false),
        (unread, false),
        (anchored(TrustState::Indeterminate, "sha256:2"), true),
        (other_resolver, true),
        (pending, true),
    ] {
        let cache = cache();
        let trusted = resolution_of_verdict(anchored(TrustState::Trusted, "sha256:1"), None);
        let began = cache.snapshot_resolution_start();
        cache.insert(key("a.eth"), &trusted.into(), 0, began).await.expect("it is cached");
        let why = cache
            .insert(key("a.eth"), &resolution_of_verdict(seen, None).into(), 0, began)
            .await
            .expect_err("it is a failure");
        assert_eq!(why == NotCachedReason::Changed, is_change, "{why:?}");
        let state =
            cache.fresh_resolution(&key("a.eth"), START, LIMITS).await.expect("the failure at least").verdict().state;
        assert_eq!(state == TrustState::Trusted, !is_change);
        assert_eq!(cache.stale_verdict(&key("a.eth"), "a.eth", START + 300.seconds()).await.is_some(), !is_change);
    }
}

/// Verdicts on an agent under different rules rest on the same records.
#[tokio::test]
async fn observed_change_evicts_the_name_under_every_key() {
    let cache = cache();
    let under = |rules: &[u8]| VerdictCacheKey { rules: Digest::compute(rules), ..key("a.eth") };
    let elsewhere = VerdictCacheKey { world: "elsewhere".into(), ..key("a.eth") };
    let found = |records: &str, checked_at: Timestamp, newest: u64| {
        let mut verdict = anchored(TrustState::Trusted, records);
        verdict.freshness = resolution(TrustState::Trusted, checked_at, 0).verdict().freshness.clone();
        resolution_with_newest_block(verdict, newest)
    };
    let run = async |key: VerdictCacheKey, found: Resolution| {
        let now = found.verdict().freshness.checked_at;
        cache.get_or_resolve(key, now, LIMITS, |_| async { found }).await
    };
    let later = START + 300.seconds();
    for (key, at) in
        [(under(b"1"), later - 301.seconds()), (under(b"2"), later - 1.second()), (elsewhere.clone(), later)]
    {
        run(key, found("sha256:1", at, 7)).await;
    }
    keep(&cache, "a.eth", TrustState::Indeterminate, later).await;
    run(under(b"1"), found("sha256:1", later, 8)).await;
    assert!(cache.fresh_resolution(&under(b"2"), later, LIMITS).await.is_some(), "nothing has changed");

    run(under(b"3"), found("sha256:2", later, 9)).await;
    for gone in [under(b"1"), under(b"2"), elsewhere] {
        assert!(cache.fresh_resolution(&gone, later, LIMITS).await.is_none());
    }
    assert!(cache.fresh_resolution(&under(b"3"), later, LIMITS).await.is_some(), "the one that showed it stands");

    // A contradiction at an older block only shows that one of the verdicts is wrong.
    run(under(b"1"), found("sha256:1", later, 8)).await;
    for gone in [under(b"1"), under(b"3")] {
        assert!(cache.fresh_resolution(&gone, later, LIMITS).await.is_none());
    }
}

#[tokio::test]
async fn change_under_other_rules_prevents_stale_verdicts() {
    let cache = cache();
    let other = VerdictCacheKey { depth: ResolutionDepth::Schemas, ..key("a.eth") };
    let trusted = resolution_of_verdict(anchored(TrustState::Trusted, "sha256:1"), None);
    cache.get_or_resolve(key("a.eth"), START, LIMITS, |_| async { trusted }).await;
    keep(&cache, "a.eth", TrustState::Indeterminate, START + 300.seconds()).await;
    let stale = async || cache.stale_verdict(&key("a.eth"), "a.eth", START + 301.seconds()).await.is_some();
    assert!(stale().await);
    let mut pending = anchored(TrustState::Indeterminate, "sha256:1");
    pending.reasons = vec![Reason::new(ReasonCode::RecordPending)];
    pending.freshness = resolution(TrustState::Indeterminate, START + 301.seconds(), 0).verdict().freshness.clone();
    let found = resolution_of_verdict(pending, None);
    cache.get_or_resolve(other, START + 301.seconds(), LIMITS, |_| async { found }).await;
    assert!(!stale().await);
}

#[test]
fn another_state_is_a_change_and_a_failure_is_none() {
    let of = |state| anchored(state, "sha256:1");
    let change = |before, after| contradicts_earlier_verdict(&of(before), &of(after));
    assert!(change(TrustState::Trusted, TrustState::Untrusted) && change(TrustState::Untrusted, TrustState::Trusted));
    assert!(
        !change(TrustState::Trusted, TrustState::Trusted) && !change(TrustState::Trusted, TrustState::Indeterminate)
    );
    assert!(!change(TrustState::Indeterminate, TrustState::Trusted), "nothing was wrong");
    let pending = Verdict {
        reasons: vec![Reason::new(ReasonCode::RecordPending)],
        ..anchored(TrustState::Indeterminate, "sha256:1")
    };
    assert!(
        contradicts_earlier_verdict(&of(TrustState::Trusted), &pending)
            && !contradicts_earlier_verdict(&pending, &pending)
    );
    let unread = Verdict { anchor: None, ..of(TrustState::Indeterminate) };
    assert!(!contradicts_earlier_verdict(&unread, &of(TrustState::Trusted)));
}

#[tokio::test]
async fn an_evicted_name_is_neither_served_nor_stale_nor_refreshed() {
    let cache = cache();
    keep(&cache, "a.eth", TrustState::Trusted, START).await;
    keep(&cache, "a.eth", TrustState::Indeterminate, START + 299.seconds()).await;
    cache.fresh_resolution(&key("a.eth"), START, LIMITS).await.expect("it is fresh");
    let (last, after) = (START + 299.seconds(), START + 301.seconds());
    let stale = async || cache.stale_verdict(&key("a.eth"), "a.eth", after).await.is_some();
    assert!(cache.keys_due_for_refresh(last).len() == 1 && stale().await);
    cache.evict_name(&key("a.eth").name, last);
    assert!(cache.fresh_resolution(&key("a.eth"), last, LIMITS).await.is_none());
    assert!(cache.keys_due_for_refresh(last).is_empty() && !stale().await);
    let run = |_| async { resolution(TrustState::Trusted, START, 0) };
    assert!(cache.refresh_key(&key("a.eth"), last, LIMITS, run).await.is_none());
}

#[tokio::test]
async fn whoever_asks_after_an_eviction_joins_no_run_from_before_it() {
    let cache = cache();
    let (release, gate) = tokio::sync::oneshot::channel::<()>();
    let overtaken = |_| async move {
        let _ = gate.await;
        resolution(TrustState::Trusted, START, 0)
    };
    let mut first = Box::pin(cache.get_or_resolve(key("a.eth"), START, LIMITS, overtaken));
    assert!(futures_util::poll!(&mut first).is_pending());
    cache.evict_name(&key("a.eth").name, START);
    let (go_on, wait) = tokio::sync::oneshot::channel::<()>();
    let after = |_| async move {
        let _ = wait.await;
        resolution(TrustState::Untrusted, START, 0)
    };
    let mut second = Box::pin(cache.get_or_resolve(key("a.eth"), START, LIMITS, after));
    assert!(futures_util::poll!(&mut second).is_pending());
    release.send(()).expect("the run waits");
    assert_eq!(first.await.verdict().state, TrustState::Trusted, "to those who asked before");
    let status = cache.key_status(&key("a.eth"), START, LIMITS).await;
    assert!(
        matches!(status, VerdictCacheKeyStatus::UnderWay),
        "it left nothing, and not the place of the other: {status:?}"
    );
    go_on.send(()).expect("the run waits");
    assert_eq!(second.await.verdict().state, TrustState::Untrusted);
    assert_eq!(
        cache.fresh_resolution(&key("a.eth"), START, LIMITS).await.map(|r| r.verdict().state),
        Some(TrustState::Untrusted)
    );
}

#[tokio::test]
async fn why_a_verdict_is_not_cached_is_a_value() {
    let cache = VerdictCache::new(&CacheConfig { trusted: 0, ..CacheConfig::default() });
    assert_eq!(keep(&cache, "a.eth", TrustState::Trusted, START).await, Some(NotCachedReason::TooLarge));
    assert_eq!(keep(&cache, "a.eth", TrustState::Indeterminate, START).await, Some(NotCachedReason::Undecided));
    assert_eq!(keep(&cache, "a.eth", TrustState::Untrusted, START).await, None);
}

/// The series of a metric family that this thread has incremented.
fn counted(counts: &telemetry::PrometheusExposition, family: &str) -> Vec<String> {
    counts.render().lines().filter(|line| line.starts_with(family)).map(str::to_owned).collect()
}

#[tokio::test]
async fn what_is_not_cached_is_counted_by_its_reason() {
    let counts = telemetry::PrometheusExposition::default();
    let _counting = metrics::set_default_local_recorder(&counts);
    let run = async |cache: &Arc<VerdictCache>, found: Resolution| {
        cache.resolve_anew(key("a.eth"), LIMITS, |_| async { found }).await;
    };
    let no_room = Arc::new(VerdictCache::new(&CacheConfig { trusted: 0, ..CacheConfig::default() }));
    run(&no_room, resolution(TrustState::Trusted, START, 0)).await;
    let cache = cache();
    for _ in 0..2 {
        run(&cache, resolution(TrustState::Indeterminate, START, 0)).await;
    }
    for (state, records) in [
        (TrustState::Trusted, "sha256:1"),
        (TrustState::Indeterminate, "sha256:2"),
        (TrustState::Untrusted, "sha256:2"),
    ] {
        run(&cache, resolution_of_verdict(anchored(state, records), None)).await;
    }
    assert_eq!(
        counted(&counts, "clresolve_cache_not_stored_total{"),
        [("changed", 1), ("too-large", 1), ("undecided", 2)]
            .map(|(why, count)| format!("clresolve_cache_not_stored_total{{why=\"{why}\"}} {count}"))
    );
}

/// The log output of a thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn what_is_not_cached_is_logged_with_its_reason() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).with_ansi(false);
    let _logging = tracing::subscriber::set_default(subscriber.with_writer(move || writer.clone()).finish());
    let cache = cache();
    for _ in 0..2 {
        cache.resolve_anew(key("a.eth"), LIMITS, |_| async { resolution(TrustState::Indeterminate, START, 0) }).await;
        // Another test may have logged this first, in a thread without a subscriber: then the event is cached as
        // unwanted.
        tracing::callsite::rebuild_interest_cache();
    }
    let lines = String::from_utf8(log.0.lock().expect("no panic").clone()).expect("text");
    assert!(lines.contains("not cached name=a.eth why=\"undecided\""), "{lines}");
}

/// It may have read the records as they were before the eviction.
#[tokio::test]
async fn a_verdict_that_an_eviction_overtook_is_not_kept_and_counted() {
    let counts = telemetry::PrometheusExposition::default();
    let _counting = metrics::set_default_local_recorder(&counts);
    let cache = cache();
    let evicting = Arc::clone(&cache);
    let overtaken = |_| async move {
        evicting.evict_name(&key("a.eth").name, START);
        resolution(TrustState::Trusted, START, 0)
    };
    let found = cache.get_or_resolve(key("a.eth"), START, LIMITS, overtaken).await;
    assert_eq!(found.verdict().state, TrustState::Trusted, "to whoever asked before");
    assert!(cache.trusted.get(&key("a.eth")).await.is_none(), "it takes nobody's place");
    let why = counted(&counts, "clresolve_cache_not_stored_total{");
    assert_eq!(why, ["clresolve_cache_not_stored_total{why=\"overtaken\"} 1"]);
    let after = |_| async { resolution(TrustState::Untrusted, START, 0) };
    assert_eq!(cache.get_or_resolve(key("a.eth"), START, LIMITS, after).await.verdict().state, TrustState::Untrusted);
}

#[tokio::test]
async fn refreshes_are_counted_by_what_they_found() {
    let counts = telemetry::PrometheusExposition::default();
    let _counting = metrics::set_default_local_recorder(&counts);
    let cache = cache();
    let mut now = START;
    for state in [TrustState::Trusted, TrustState::Trusted, TrustState::Indeterminate, TrustState::Untrusted] {
        keep(&cache, "a.eth", TrustState::Trusted, now).await;
        let too_early = |_| async { resolution(TrustState::Untrusted, START, 0) };
        assert!(cache.refresh_key(&key("a.eth"), now, LIMITS, too_early).await.is_none());
        cache.fresh_resolution(&key("a.eth"), now, LIMITS).await.expect("it is fresh");
        now += 280.seconds();
        cache.refresh_key(&key("a.eth"), now, LIMITS, move |_| async move { resolution(state, now, 0) }).await;
    }
    assert_eq!(
        counted(&counts, "clresolve_cache_refreshes_total{"),
        [("indeterminate", 1), ("trusted", 2), ("untrusted", 1)]
            .map(|(state, count)| format!("clresolve_cache_refreshes_total{{state=\"{state}\"}} {count}"))
    );
}

#[tokio::test]
async fn the_most_asked_for_is_the_hottest_and_its_past_counts_half() {
    let cache = cache();
    for (name, times) in [("b.eth", 4), ("a.eth", 4), ("once.eth", 0), ("c.eth", 6)] {
        keep(&cache, name, TrustState::Trusted, START).await;
        for _ in 0..times {
            cache.fresh_resolution(&key(name), START, LIMITS).await.expect("it is fresh");
        }
    }
    let hot = |most| -> Vec<String> {
        cache.most_requested_names(most).iter().map(|name| name.as_str().to_owned()).collect()
    };
    assert_eq!(hot(9), ["c.eth", "a.eth", "b.eth"]);
    assert_eq!(hot(1), ["c.eth"]);
    keep(&cache, "c.eth", TrustState::Trusted, START).await;
    assert_eq!(hot(9), ["a.eth", "b.eth", "c.eth"]);
}

/// Once a verdict has expired, a failure may have occurred and passed without a trace.
#[tokio::test]
async fn followers_get_changes_and_results_after_expiry() {
    let cache = cache();
    let mut follower = cache.feed.subscribe([key("a.eth").name].into());
    for (state, seconds, is_told) in [
        (TrustState::Trusted, 0, true),
        (TrustState::Trusted, 10, false),
        (TrustState::Indeterminate, 20, true),
        (TrustState::Indeterminate, 30, false),
        (TrustState::Trusted, 40, true),
        (TrustState::Untrusted, 50, true),
        (TrustState::Untrusted, 60, false),
        (TrustState::Untrusted, 5000, true),
    ] {
        let at = START + seconds.seconds();
        cache.resolve_anew(key("a.eth"), LIMITS, move |_| async move { resolution(state, at, 0) }).await;
        let told = follower.next().now_or_never().is_some();
        assert_eq!(told, is_told, "{state} after {seconds} s");
    }
}

/// Other codes, including warnings, or another identity are changes. Another block is not.
#[tokio::test]
async fn who_follows_is_told_of_other_codes_and_of_another_identity() {
    let cache = cache();
    let mut follower = cache.feed.subscribe([key("a.eth").name].into());
    let good = anchored(TrustState::Trusted, "sha256:1");
    let mut later = good.clone();
    later.anchor.as_mut().expect("it is anchored").block.number += 1;
    let expired = Verdict { reasons: vec![Reason::new(ReasonCode::NameExpired)], ..good.clone() };
    let identified = Verdict { identity: Some(AgentIdentity::default()), ..good.clone() };
    for (verdict, is_told) in
        [(&good, true), (&later, false), (&expired, true), (&expired, false), (&good, true), (&identified, true)]
    {
        let found = resolution_of_verdict(verdict.clone(), None);
        cache.resolve_anew(key("a.eth"), LIMITS, move |_| async move { found }).await;
        assert_eq!(follower.next().now_or_never().is_some(), is_told, "{verdict:?}");
    }
}
