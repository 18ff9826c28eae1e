//! Which head confirms a cached verdict, and for how long.

use clresolve_core::reading::NameHolder;

use super::*;

/// A trusted resolution that ended at `at` and read the chain up to the height `newest`.
fn read_up_to(newest: u64, at: Timestamp) -> Resolution {
    of_reading(at, |reading| reading.newest = Some(newest))
}

/// A trusted resolution that ended at the start. Its records are with a CCIP-Read gateway.
fn off_chain() -> Resolution {
    of_reading(START, |reading| {
        reading.newest = Some(7);
        let EnsAnswer::Records(found) = &mut reading.answer else { panic!("it has records") };
        found.offchain = true;
        reading.latest = Some(Ok(LatestNameState { answer: reading.answer.clone(), holder: reading.holder }));
    })
}

fn of_reading(at: Timestamp, change: impl FnOnce(&mut NameReading)) -> Resolution {
    let (agent, profiles, policy) = (sample::good_card(), ConformanceProfiles::builtin(), JudgementPolicy::default());
    let mut evidence = sample::faultless_evidence(&agent, &agent.to_string().into(), at);
    change(evidence.reading.as_mut().expect("it was read"));
    let profile = profiles.get(DEFAULT).expect("it is built in");
    let reporter =
        VerdictContext { world: "mainnet", chain_id: 1, profiles: &profiles, profile: &profile, policy: &policy };
    build::build_resolution(
        &reporter,
        &EvidenceWithStepDurations { evidence, milliseconds: BTreeMap::new(), content_fetched_at: None },
        0,
    )
}

/// The block at this height, which endpoints reported as their newest then.
fn head(number: u64, reported_at: Timestamp) -> ChainHead {
    let block =
        ChainBlock { number, hash: [u8::try_from(number).expect("a small number"); 32].into(), timestamp: START };
    ChainHead { block, reported_at }
}

/// A cache with block 7 as the head, and the result of a run of this process that read up to there.
async fn followed() -> (Arc<VerdictCache>, Resolution) {
    let cache = cache();
    cache.heads.mark_as_followed();
    cache.heads.record_head(head(7, START));
    let run = |_| async { FinishedResolution { reads_chain: true, ..read_up_to(7, START).into() } };
    let found = cache.get_or_resolve(key("a.eth"), START, LIMITS, run).await;
    assert_eq!(found.verdict().state, TrustState::Trusted);
    (cache, found)
}

/// What the cache serves after this number of seconds.
async fn served(cache: &VerdictCache, seconds: i64) -> Resolution {
    cache.fresh_resolution(&key("a.eth"), START + seconds.seconds(), LIMITS).await.expect("it is fresh")
}

#[tokio::test]
async fn a_run_stands_until_its_head_was_reported_too_long_ago() {
    let (cache, found) = followed().await;
    assert_eq!(found.newest_block_confirmation(), Ok(()));
    assert_eq!(served(&cache, 15).await.newest_block_confirmation(), Ok(()));
    let late = served(&cache, 16).await;
    assert_eq!(late.newest_block_confirmation(), Err(RefusalCode::Unconfirmed));
    assert_eq!(GatePolicy::default().request_objection(&late, Some("summarize"), None), Some("unconfirmed"));
    cache.heads.record_head(head(7, START + 16.seconds()));
    let confirmed = served(&cache, 31).await;
    assert_eq!(confirmed.newest_block_confirmation(), Ok(()), "endpoints reported the same head again");
    assert_eq!(GatePolicy::default().request_objection(&confirmed, Some("summarize"), None), None);
}

#[tokio::test]
async fn only_a_run_of_this_process_that_read_the_head_stands_there() {
    for (newest, reads_chain, is_overtaken, expected) in [
        (7, true, false, Ok(())),
        (8, true, false, Ok(())),
        (6, true, false, Err(RefusalCode::Unconfirmed)),
        // Evidence of another daemon.
        (7, false, false, Err(RefusalCode::Unconfirmed)),
        // Another head was reported while it ran.
        (7, true, true, Err(RefusalCode::Unconfirmed)),
    ] {
        let cache = cache();
        cache.heads.mark_as_followed();
        cache.heads.record_head(head(7, START));
        let noting = Arc::clone(&cache);
        let run = move |_| async move {
            if is_overtaken {
                noting.heads.record_head(head(8, START));
            }
            FinishedResolution { reads_chain, ..read_up_to(newest, START).into() }
        };
        let found = cache.get_or_resolve(key("a.eth"), START, LIMITS, run).await;
        assert_eq!(found.newest_block_confirmation(), expected, "{newest} {reads_chain} {is_overtaken}");
        assert_eq!(
            served(&cache, 0).await.newest_block_confirmation(),
            expected,
            "{newest} {reads_chain} {is_overtaken}"
        );
    }
}

#[tokio::test]
async fn late_result_stands_at_the_head_that_it_was_compared_with() {
    for (compared_with_newest, expected) in [(true, Ok(())), (false, Err(RefusalCode::Unconfirmed))] {
        let cache = cache();
        cache.heads.mark_as_followed();
        cache.heads.record_head(head(7, START));
        let before = cache.heads.newest_head().map(|seen| seen.id);
        cache.heads.record_head(head(8, START));
        let newest = cache.heads.newest_head().map(|seen| seen.id);
        let confirmed_at = if compared_with_newest { newest } else { before };
        let run = move |_| async move { FinishedResolution { confirmed_at, ..read_up_to(6, START).into() } };
        let found = cache.get_or_resolve(key("a.eth"), START, LIMITS, run).await;
        assert_eq!(
            (found.newest_block_confirmation(), served(&cache, 0).await.newest_block_confirmation()),
            (expected, expected)
        );
    }
}

/// Otherwise evidence that a head contradicted would be taken from another replica again and again.
#[tokio::test]
async fn result_after_a_change_evicts_the_name_and_is_kept() {
    let cache = cache();
    let run = |_| async { FinishedResolution { is_after_change: true, ..read_up_to(7, START).into() } };
    cache.get_or_resolve(key("a.eth"), START, LIMITS, run).await;
    assert_eq!(cache.last_eviction_time(&key("a.eth").name), Some(START));
    served(&cache, 0).await;
}

#[tokio::test]
async fn a_run_stands_once_where_no_head_is_followed() {
    for (reads_chain, expected) in [(true, Ok(())), (false, Err(RefusalCode::Unconfirmed))] {
        let cache = cache();
        let run = move |_| async move { FinishedResolution { reads_chain, ..read_up_to(7, START).into() } };
        let found = cache.get_or_resolve(key("a.eth"), START, LIMITS, run).await;
        assert_eq!(found.newest_block_confirmation(), expected);
        assert_eq!(served(&cache, 0).await.newest_block_confirmation(), Err(RefusalCode::Unconfirmed));
    }
}

#[tokio::test]
async fn an_equal_reading_confirms_and_a_different_one_contradicts() {
    let (cache, found) = followed().await;
    let latest = found.newest_name_state().expect("it read the newest block").as_ref().clone();
    let sold = NameStateAtHead::OnChain(LatestNameState { holder: NameHolder::Nobody, ..latest.clone() });
    let (same, key) = (NameStateAtHead::OnChain(latest), key("a.eth"));
    let first = cache.heads.newest_head().map(|seen| seen.id);
    cache.heads.record_head(head(8, START + 12.seconds()));
    let second = cache.heads.newest_head().map(|seen| seen.id);
    assert_eq!(cache.required_confirmation(&key, START).await, Some(Some(RequiredConfirmationMethod::Reading)));

    assert_eq!(cache.contradicted_pools(&key, &same, second, 8).await, []);
    assert_eq!(cache.required_confirmation(&key, START).await, Some(None));
    let confirmed = served(&cache, 27).await;
    assert_eq!(confirmed.newest_block_confirmation(), Ok(()));
    assert_eq!(confirmed.verdict().freshness.confirmed, Some(VerdictConfirmationSource::Head(8)));
    assert_eq!(confirmed.verdict().id, found.verdict().id, "the verdict is the same");

    assert_eq!(cache.contradicted_pools(&key, &sold, first, 7).await, [], "an older reading says nothing");
    assert_eq!(cache.contradicted_pools(&key, &same, first, 7).await, []);
    assert_eq!(served(&cache, 27).await.verdict().freshness.confirmed, Some(VerdictConfirmationSource::Head(8)));
    assert_eq!(cache.contradicted_pools(&key, &sold, second, 8).await, [CachePoolLabel::Trusted]);
    cache.evict_name(&key.name, START + 13.seconds());
    assert_eq!(
        cache.contradicted_pools(&key, &sold, second, 8).await,
        [],
        "an evicted verdict is not contradicted again"
    );
    assert_eq!(cache.required_confirmation(&key, START).await, None);
}

/// The chain does not show whether a CCIP-Read gateway would return the same.
#[tokio::test]
async fn an_off_chain_verdict_of_an_own_run_stands_for_75_seconds() {
    let evidence = |reads_chain| async move {
        let cache = cache();
        cache.heads.mark_as_followed();
        cache.heads.record_head(head(7, START));
        let found = FinishedResolution { reads_chain, ..off_chain().into() };
        cache.insert(key("a.eth"), &found, 0, cache.snapshot_resolution_start()).await.expect("it is kept");
        cache
    };
    let limits = HeadConfirmationLimits { max_head_age: None, ..LIMITS };
    let served = async |cache: &VerdictCache, seconds: i64| {
        cache.fresh_resolution(&super::key("a.eth"), START + seconds.seconds(), limits).await.expect("it is fresh")
    };
    let (own, shared, key) = (evidence(true).await, evidence(false).await, key("a.eth"));
    let awaits = async |seconds: i64| own.required_confirmation(&key, START + seconds.seconds()).await;
    assert_eq!((awaits(59).await, awaits(60).await), (Some(None), Some(Some(RequiredConfirmationMethod::Run))));
    assert_eq!(served(&own, 75).await.newest_block_confirmation(), Ok(()));
    assert_eq!(served(&own, 76).await.newest_block_confirmation(), Err(RefusalCode::Unconfirmed));
    assert_eq!(served(&shared, 0).await.newest_block_confirmation(), Err(RefusalCode::Unconfirmed));
    assert_eq!(shared.required_confirmation(&key, START).await, Some(Some(RequiredConfirmationMethod::Run)));
    assert!(shared.needs_new_resolution(&key, START).await && !own.needs_new_resolution(&key, START).await);
}

/// Otherwise each refresh by endpoints that are behind would close the gate until the next reading.
#[tokio::test]
async fn a_later_run_that_read_the_same_below_the_head_stands_there() {
    let (cache, _) = followed().await;
    let run_anew = async |found: Resolution| {
        let run = move |_| async move { FinishedResolution { reads_chain: true, ..found.into() } };
        cache.resolve_anew(key("a.eth"), LIMITS, run).await.newest_block_confirmation()
    };
    assert_eq!(run_anew(read_up_to(6, START)).await, Ok(()));
    let sold = of_reading(START, |reading| {
        reading.newest = Some(6);
        let latest = reading.latest.as_mut().expect("it is compared").as_mut().expect("it was read");
        let EnsAnswer::Records(found) = &mut latest.answer else { panic!("it has records") };
        found
            .payment
            .endpoints
            .insert(EndpointRecordKey::Web, EndpointRecord::Read(TextRecord::Text("other".to_owned())));
    });
    assert_eq!(run_anew(sold).await, Err(RefusalCode::Unconfirmed));
}

#[tokio::test]
async fn a_stalled_head_denies_off_chain_names_too() {
    let cache = cache();
    cache.heads.mark_as_followed();
    cache.heads.record_head(head(7, START));
    let found = FinishedResolution { reads_chain: true, ..off_chain().into() };
    cache.insert(key("a.eth"), &found, 0, cache.snapshot_resolution_start()).await.expect("it is kept");
    let limits = HeadConfirmationLimits { max_head_age: Some(Duration::from_secs(60)), ..LIMITS };
    let standing = async |seconds: i64| {
        let fresh = cache.fresh_resolution(&key("a.eth"), START + seconds.seconds(), limits).await;
        fresh.expect("it is fresh").newest_block_confirmation()
    };
    assert_eq!((standing(60).await, standing(61).await), (Ok(()), Err(RefusalCode::HeadStalled)));
}

/// A name without a card has payment records, too. Rereading each such name that anyone asks for would cost endpoints
/// too much.
#[tokio::test]
async fn an_untrusted_verdict_is_confirmed_while_its_name_is_hot() {
    let cache = cache();
    cache.heads.mark_as_followed();
    cache.heads.record_head(head(7, START));
    let resolution = of_reading(START, |reading| {
        reading.newest = Some(7);
        let EnsAnswer::Records(found) = &mut reading.answer else { panic!("it has records") };
        found.records = std::iter::empty().collect();
    });
    let run = |_| async { FinishedResolution { reads_chain: true, ..resolution.into() } };
    let key = key("a.eth");
    let found = cache.get_or_resolve(key.clone(), START, LIMITS, run).await;
    assert_eq!((found.verdict().state, found.newest_block_confirmation()), (TrustState::Untrusted, Ok(())));

    cache.heads.record_head(head(8, START + 12.seconds()));
    assert_eq!(cache.required_confirmation(&key, START).await, None);
    cache.hot_names.record_request("a.eth", START);
    assert_eq!(cache.required_confirmation(&key, START).await, Some(Some(RequiredConfirmationMethod::Reading)));
    let at = cache.heads.newest_head().map(|seen| seen.id);
    let same = NameStateAtHead::OnChain(found.newest_name_state().expect("it read the newest block").as_ref().clone());
    assert_eq!(cache.contradicted_pools(&key, &same, at, 8).await, []);
    assert_eq!(served(&cache, 27).await.newest_block_confirmation(), Ok(()));
    let sold = NameStateAtHead::OnChain(LatestNameState {
        holder: NameHolder::Nobody,
        ..found.newest_name_state().expect("it read it").as_ref().clone()
    });
    assert_eq!(cache.contradicted_pools(&key, &sold, at, 8).await, [CachePoolLabel::Untrusted]);
}
