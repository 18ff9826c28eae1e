//! The prover over tries built here, in which every byte can be changed. [`wire`] tests it over the sandbox chain by
//! JSON-RPC, [`lies`] with endpoints that lie.

mod ledger;
mod lies;
mod wire;

use std::sync::atomic::Ordering;

use alloy_primitives::{Address, B256, Bytes, U256, address, hex};
use alloy_rpc_types_eth::{AccessList, AccessListItem};
use futures_util::poll;

use self::ledger::{ALICE, Account, CHAIN, CONTRACT, Endpoint, Ledger, OTHER};
use super::*;
use clresolve_core::cause::LocalLimitError;
use clresolve_state::ProvenCallBlame;

fn call(to: Address) -> EvmCall {
    EvmCall { to, data: Bytes::new(), gas: 16_000_000 }
}

async fn run(endpoint: &Endpoint, session: &mut CallProverSession) -> Result<EvmCallOutcome, CallProverError> {
    CallProver::new(CHAIN).compute_call(endpoint, session, &call(CONTRACT), None).await
}

/// `SLOAD(0)`, `SLOAD` of that value, and both returned together with the code size of [`OTHER`].
const POINTER: &[u8] = &hex!("5f54805f525460205273" "0000000000000000000000000000000000c0de02" "3b60405260605ff3");

fn pointer() -> Ledger {
    Ledger::of([
        (CONTRACT, Account::contract(POINTER, &[(0, 5), (5, 77), (6, 1), (7, 2), (8, 3)])),
        (OTHER, Account::contract(&hex!("0011223344"), &[])),
    ])
}

fn words(values: &[u64]) -> Bytes {
    values.iter().flat_map(|value| U256::from(*value).to_be_bytes::<32>()).collect()
}

#[tokio::test]
async fn a_call_is_run_until_all_that_it_reads_is_proven() {
    let ledger = pointer();
    let endpoint = Endpoint::honest(&ledger);
    let mut session = ledger.session();
    assert_eq!(run(&endpoint, &mut session).await, Ok(EvmCallOutcome::Returned(words(&[5, 77, 5]))));
    assert_eq!(endpoint.fetches.load(Ordering::Relaxed), 3, "the contract, slot 0 with the other account, slot 5");
    assert_eq!(run(&endpoint, &mut session).await, Ok(EvmCallOutcome::Returned(words(&[5, 77, 5]))));
}

#[tokio::test]
async fn code_is_fetched_once_for_ever() {
    let ledger = pointer();
    let endpoint = Endpoint::honest(&ledger);
    let prover = CallProver::new(CHAIN);
    for codes in [2, 2] {
        prover.compute_call(&endpoint, &mut ledger.session(), &call(CONTRACT), None).await.unwrap();
        assert_eq!(endpoint.codes.load(Ordering::Relaxed), codes);
    }
}

#[tokio::test]
async fn a_hint_saves_rounds_and_is_neither_believed_nor_kept() {
    let ledger = pointer();
    let item = |address, slots: &[u64]| AccessListItem {
        address,
        storage_keys: slots.iter().map(|slot| U256::from(*slot).into()).collect(),
    };
    let good = AccessList(vec![item(CONTRACT, &[0, 5]), item(OTHER, &[])]);
    let wrong = AccessList(vec![item(ALICE, &[1, 2, 3]), item(OTHER, &[9])]);
    let long = AccessList(vec![item(CONTRACT, &(0..2000).collect::<Vec<_>>()); 100]);
    for (hint, fetches) in [(good, 1), (wrong, 3), (long, 2)] {
        let endpoint = Endpoint::honest(&ledger);
        let prover = CallProver::new(CHAIN);
        let outcome = prover.compute_call(&endpoint, &mut ledger.session(), &call(CONTRACT), Some(hint)).await;
        assert_eq!(outcome, Ok(EvmCallOutcome::Returned(words(&[5, 77, 5]))));
        assert_eq!(endpoint.fetches.load(Ordering::Relaxed), fetches);
        // From now on, what was read is known regardless of the hint.
        prover.compute_call(&endpoint, &mut ledger.session(), &call(CONTRACT), None).await.unwrap();
        assert_eq!(endpoint.fetches.load(Ordering::Relaxed), fetches + 1);
    }
}

/// Otherwise the endpoint that answers first could cause the refusal of a name that another endpoint can prove.
#[tokio::test]
async fn long_hint_takes_nothing_from_what_a_call_may_read() {
    let many = |accounts: u8, slots: u64| {
        let item = |account| AccessListItem {
            address: Address::repeat_byte(account),
            storage_keys: (0..slots).map(|slot| U256::from(slot + 1000).into()).collect(),
        };
        AccessList((0x80..0x80 + accounts).map(item).collect())
    };
    // Slots 0 to 699, and the balances of accounts 0 to 49.
    let slots: &[u8] = &hex!("5f5b80545060010180" "6102bc" "11600157" "00");
    let balances: &[u8] = &hex!("5f5b80315060010180" "6032" "11600157" "00");
    for (code, hint) in [(slots, many(1, 2000)), (slots, many(40, 100)), (balances, many(100, 0))] {
        let ledger = Ledger::of([(CONTRACT, Account::contract(code, &[(0, 1)]))]);
        let (endpoint, mut session) = (Endpoint::honest(&ledger), ledger.session());
        let prover = CallProver::new(CHAIN);
        let outcome = prover.compute_call(&endpoint, &mut session, &call(CONTRACT), Some(hint.clone())).await;
        assert_eq!(outcome, Ok(EvmCallOutcome::Returned(Bytes::new())));
        // A useless hint for another call at the same block: the cost of hints is bounded across all calls.
        let again = EvmCall { data: vec![1].into(), ..call(CONTRACT) };
        assert!(prover.compute_call(&endpoint, &mut session, &again, Some(hint)).await.is_ok());
        assert!(session.proven.account_count() <= MAX_ACCOUNTS + MAX_HINTED_ACCOUNTS);
        assert!(session.proven.slot_count() <= MAX_SLOTS + MAX_HINTED_SLOTS);
    }
}

/// Prefetched proofs are fetched before the header is known, possibly at another block.
#[tokio::test]
async fn valid_prefetch_saves_requests_and_invalid_one_is_dropped() {
    let ledger = pointer();
    let endpoint = Endpoint::honest(&ledger);
    let prover = CallProver::new(CHAIN);
    let tag = BlockId::finalized();
    assert!(prover.prefetch_proofs(&endpoint, tag, &call(CONTRACT)).await.is_none(), "it never ran");
    prover.compute_call(&endpoint, &mut ledger.session(), &call(CONTRACT), None).await.expect("it runs");

    let before = endpoint.fetches.load(Ordering::Relaxed);
    let prefetched = prover.prefetch_proofs(&endpoint, tag, &call(CONTRACT)).await.expect("it is known");
    let mut session = ledger.session();
    prover.adopt_prefetched_proofs(&mut session, prefetched).await;
    let outcome = prover.compute_call(&endpoint, &mut session, &call(CONTRACT), None).await;
    assert_eq!(outcome, Ok(EvmCallOutcome::Returned(words(&[5, 77, 5]))));
    assert_eq!(endpoint.fetches.load(Ordering::Relaxed), before + 1, "the prefetched proofs alone");

    // A different ledger whose proofs are all valid under its own root.
    let other = Ledger::of([
        (CONTRACT, Account::contract(POINTER, &[(0, 6), (6, 66)])),
        (OTHER, Account::contract(&hex!("0011223344"), &[])),
    ]);
    let prefetched =
        prover.prefetch_proofs(&Endpoint::honest(&other), tag, &call(CONTRACT)).await.expect("it is known");
    let mut session = ledger.session();
    prover.adopt_prefetched_proofs(&mut session, prefetched).await;
    assert_eq!(session.proven.account_count(), 0);
    let outcome = prover.compute_call(&endpoint, &mut session, &call(CONTRACT), None).await;
    assert_eq!(outcome, Ok(EvmCallOutcome::Returned(words(&[5, 77, 5]))));
}

#[tokio::test]
async fn absent_accounts_and_slots_are_proven_absent() {
    let ledger = Ledger::of([(CONTRACT, Account::contract(POINTER, &[(3, 9), (4, 9)]))]);
    let outcome = run(&Endpoint::honest(&ledger), &mut ledger.session()).await;
    assert_eq!(outcome, Ok(EvmCallOutcome::Returned(words(&[0, 0, 0]))));
}

#[tokio::test]
async fn past_block_hashes_come_only_from_header_or_state() {
    // BLOCKHASH(number - n), returned.
    let ask = |n: u8| Account::contract(&[&hex!("60")[..], &[n], &hex!("4303405f5260205ff3")].concat(), &[]);
    let history = address!("0000F90827F1C53a10cb7A02335B175320002935");
    let outcome = async |n: u8, kept: &[(u64, u64)]| {
        let ledger = Ledger::of([(CONTRACT, ask(n)), (history, Account::contract(&[0], kept))]);
        run(&Endpoint::honest(&ledger), &mut ledger.session()).await
    };
    assert_eq!(outcome(0, &[]).await, Ok(EvmCallOutcome::Returned(words(&[0]))));
    assert_eq!(outcome(1, &[]).await, Ok(EvmCallOutcome::Returned(Bytes::from(B256::repeat_byte(9)))));
    assert_eq!(outcome(5, &[(95, 1234)]).await, Ok(EvmCallOutcome::Returned(words(&[1234]))));
    assert_eq!(outcome(5, &[(94, 1234)]).await, Err(ProvenCallError::BlockHash(95).into()));
}

#[tokio::test]
async fn reverts_and_halts_are_outcomes() {
    let outcome = async |code: &[u8]| {
        let ledger = Ledger::of([(CONTRACT, Account::contract(code, &[]))]);
        run(&Endpoint::honest(&ledger), &mut ledger.session()).await
    };
    assert_eq!(outcome(&hex!("602a5f5260205ffd")).await, Ok(EvmCallOutcome::Reverted(words(&[42]))));
    assert!(matches!(outcome(&hex!("fe")).await, Ok(EvmCallOutcome::Halted(_))));
    assert_eq!(outcome(&[]).await, Ok(EvmCallOutcome::Returned(Bytes::new())));
    // Code that merely begins like a delegation (EIP-7702).
    assert!(matches!(outcome(&hex!("ef01")).await, Ok(EvmCallOutcome::Halted(_))));
}

#[tokio::test]
async fn what_reads_on_and_on_is_stopped() {
    let stopped = async |code: &[u8], slots: &[(u64, u64)]| {
        let ledger = Ledger::of([(CONTRACT, Account::contract(code, slots))]);
        let error = refused(run(&Endpoint::honest(&ledger), &mut ledger.session()).await.unwrap_err());
        let ProvenCallBlame::LocalLimit(limit) = error.blame() else { panic!("{error}") };
        assert_eq!(limit.to_string(), error.to_string());
        error
    };
    // Each slot leads to the next one, until a slot is zero.
    let chain: Vec<(u64, u64)> = (0..40).map(|slot| (slot, slot + 1)).collect();
    assert_eq!(stopped(&hex!("5f5b5480600157"), &chain).await, ProvenCallError::TooManyRounds);
    // An endless loop.
    assert_eq!(stopped(&hex!("5f5b54600156"), &chain).await, ProvenCallError::TooMuchGas);
    // Slots 0, 1, 2 and so on, until the gas runs out.
    assert_eq!(stopped(&hex!("5f5b805450600101600156"), &[(0, 1)]).await, ProvenCallError::TooManySlots);
    // Balances of accounts 0, 1, 2 and so on.
    assert_eq!(stopped(&hex!("5f5b803150600101600156"), &[]).await, ProvenCallError::TooManyAccounts);
}

#[tokio::test]
async fn call_that_the_evm_does_not_start_is_a_local_limit() {
    let ledger = pointer();
    // Less gas than every transaction costs.
    let call = EvmCall { gas: 20_000, ..call(CONTRACT) };
    let error =
        CallProver::new(CHAIN).compute_call(&Endpoint::honest(&ledger), &mut ledger.session(), &call, None).await;
    let error = refused(error.unwrap_err());
    let ProvenCallError::Evm(words) = &error else { panic!("{error:?}") };
    assert_eq!(error.blame(), ProvenCallBlame::LocalLimit(LocalLimitError::Evm(words.clone())));
}

fn refused(error: CallProverError) -> ProvenCallError {
    match error {
        CallProverError::Proof(error) => error,
        error => panic!("{error}"),
    }
}

#[tokio::test]
async fn a_call_waits_for_its_turn_to_run_and_keeps_what_is_proven() {
    let ledger = pointer();
    let endpoint = Endpoint::honest(&ledger);
    let prover = CallProver { runs: BlockingJobLimiter::with_permits(1), ..CallProver::new(CHAIN) };
    let mut session = ledger.session();
    let permit = prover.runs.acquire_permit().await;
    assert!(poll!(Box::pin(prover.compute_call(&endpoint, &mut session, &call(CONTRACT), None))).is_pending());
    assert_eq!(endpoint.fetches.load(Ordering::Relaxed), 1);
    assert!(session.proven.has_proven_account(CONTRACT), "a run has taken what is proven");
    permit.run_job(|| ()).await.unwrap();
    let outcome = prover.compute_call(&endpoint, &mut session, &call(CONTRACT), None).await;
    assert_eq!(outcome, Ok(EvmCallOutcome::Returned(words(&[5, 77, 5]))));
}

/// A panicking task is a bug in this program, not a limit of it.
#[tokio::test]
async fn a_run_that_is_broken_off_is_no_limit() {
    let error = tokio::task::spawn_blocking(|| panic!("a bug")).await.unwrap_err();
    let CallProverError::BrokenOff(cause) = CallProverError::from(error) else { panic!("another kind of error") };
    assert!(cause.contains("a bug"), "{cause}");
}
