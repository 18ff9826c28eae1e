//! The engine over tries built here, whose every byte can be changed, and over the sandbox's chain by JSON-RPC.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use alloy_consensus::Header;
use alloy_primitives::{Address, B256, Bytes, U256, address, hex, keccak256};
use alloy_rpc_types_eth::{AccessList, AccessListItem, BlockId, EIP1186AccountProofResponse, EIP1186StorageProof};
use alloy_trie::proof::ProofRetainer;
use alloy_trie::{HashBuilder, Nibbles, TrieAccount};
use async_trait::async_trait;
use proptest::prelude::*;

use clresolve_state::{Flaw, checked_code};

use super::*;

const CHAIN: u64 = 31_337;
const ALICE: Address = address!("00000000000000000000000000000000000a11ce");
const CONTRACT: Address = address!("0000000000000000000000000000000000c0de01");
const OTHER: Address = address!("0000000000000000000000000000000000c0de02");

/// An account of a state made for a test.
#[derive(Clone, Default)]
struct Account {
    balance: u64,
    code: Vec<u8>,
    slots: BTreeMap<U256, U256>,
}

impl Account {
    fn contract(code: &[u8], slots: &[(u64, u64)]) -> Self {
        let slots = slots.iter().map(|(slot, value)| (U256::from(*slot), U256::from(*value))).collect();
        Self { balance: 0, code: code.to_vec(), slots }
    }

    fn leaf(&self) -> TrieAccount {
        TrieAccount {
            nonce: 1,
            balance: U256::from(self.balance),
            storage_root: self.storage(&[]).0,
            code_hash: keccak256(&self.code),
        }
    }

    fn storage(&self, targets: &[B256]) -> (B256, Vec<Vec<Bytes>>) {
        let leaves = self.slots.iter().map(|(slot, value)| (slot_path(*slot), alloy_rlp::encode(value)));
        trie(leaves.collect(), targets)
    }
}

fn slot_path(slot: U256) -> B256 {
    keccak256(slot.to_be_bytes::<32>())
}

/// The root of the trie of these leaves, and a proof for each target.
fn trie(mut leaves: Vec<(B256, Vec<u8>)>, targets: &[B256]) -> (B256, Vec<Vec<Bytes>>) {
    leaves.sort_unstable();
    let targets: Vec<Nibbles> = targets.iter().map(Nibbles::unpack).collect();
    let mut builder = HashBuilder::default().with_proof_retainer(ProofRetainer::new(targets.clone()));
    for (path, value) in leaves {
        builder.add_leaf(Nibbles::unpack(path), &value);
    }
    let root = builder.root();
    let nodes = builder.take_proof_nodes();
    let proof = |target| nodes.matching_nodes_sorted(target).into_iter().map(|(_, node)| node).collect();
    (root, targets.iter().map(proof).collect())
}

/// A whole state, and an endpoint that proves it.
#[derive(Clone)]
struct Ledger {
    accounts: BTreeMap<Address, Account>,
    leaves: Vec<(B256, Vec<u8>)>,
}

impl Ledger {
    fn of<const N: usize>(accounts: [(Address, Account); N]) -> Self {
        // Neighbours, so that proofs have branches.
        let crowd = (0..12).map(|i: u8| (Address::repeat_byte(0x80 + i), Account { balance: 7, ..Account::default() }));
        let accounts: BTreeMap<_, _> = crowd.chain(accounts).collect();
        let leaf = |(address, account): (&Address, &Account)| (keccak256(address), alloy_rlp::encode(account.leaf()));
        let leaves = accounts.iter().map(leaf).collect();
        Self { accounts, leaves }
    }

    fn root(&self, targets: &[B256]) -> (B256, Vec<Vec<Bytes>>) {
        trie(self.leaves.clone(), targets)
    }

    fn header(&self) -> HashedHeader {
        HashedHeader::new(Header {
            number: 100,
            timestamp: 1_800_000_000,
            gas_limit: 30_000_000,
            state_root: self.root(&[]).0,
            parent_hash: B256::repeat_byte(9),
            beneficiary: ALICE,
            base_fee_per_gas: Some(7),
            withdrawals_root: Some(B256::ZERO),
            blob_gas_used: Some(0),
            excess_blob_gas: Some(0),
            parent_beacon_block_root: Some(B256::ZERO),
            requests_hash: Some(B256::ZERO),
            ..Header::default()
        })
    }

    fn session(&self) -> Session {
        Session::new(Arc::new(self.header()))
    }

    fn prove(&self, address: Address, slots: &[U256]) -> EIP1186AccountProofResponse {
        let account = self.accounts.get(&address);
        let leaf = account.map(Account::leaf).unwrap_or_default();
        let targets: Vec<B256> = slots.iter().map(|slot| slot_path(*slot)).collect();
        let storage = account.filter(|account| !account.slots.is_empty()).map(|account| account.storage(&targets).1);
        let value = |slot| account.and_then(|account| account.slots.get(slot).copied()).unwrap_or_default();
        let proofs = storage.unwrap_or_else(|| vec![Vec::new(); slots.len()]);
        EIP1186AccountProofResponse {
            address,
            balance: leaf.balance,
            code_hash: leaf.code_hash,
            nonce: leaf.nonce,
            storage_hash: leaf.storage_root,
            account_proof: self.root(&[keccak256(address)]).1.remove(0),
            storage_proof: slots
                .iter()
                .zip(proofs)
                .map(|(slot, proof)| EIP1186StorageProof { key: B256::from(*slot).into(), value: value(slot), proof })
                .collect(),
        }
    }

    fn code(&self, address: Address) -> Bytes {
        self.accounts.get(&address).map(|account| account.code.clone().into()).unwrap_or_default()
    }
}

/// An endpoint over a [`Ledger`], which may lie.
struct Endpoint {
    ledger: Ledger,
    lie: Box<dyn Fn(&mut StateItem) + Send + Sync>,
    fetches: AtomicUsize,
    codes: AtomicUsize,
}

impl Endpoint {
    fn honest(ledger: &Ledger) -> Self {
        Self::lying(ledger, |_| {})
    }

    fn lying(ledger: &Ledger, lie: impl Fn(&mut StateItem) + Send + Sync + 'static) -> Self {
        let (fetches, codes) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { ledger: ledger.clone(), lie: Box::new(lie), fetches, codes }
    }
}

#[async_trait]
impl StateSource for Endpoint {
    async fn touched(&self, _: &Call, _: BlockId) -> Result<AccessList, ProverError> {
        Err(ProverError::Endpoint(Failure::Unusable("it has no such method".to_owned())))
    }

    async fn fetch(&self, wanted: &Wanted, _: BlockId) -> Result<Vec<StateItem>, ProverError> {
        self.fetches.fetch_add(1, Ordering::Relaxed);
        self.codes.fetch_add(wanted.codes.len(), Ordering::Relaxed);
        let proofs = wanted.accounts.iter().map(|(address, slots)| {
            let slots: Vec<U256> = slots.iter().copied().collect();
            StateItem::Proof(*address, slots.clone(), Box::new(self.ledger.prove(*address, &slots)))
        });
        let codes = wanted.codes.iter().map(|address| StateItem::Code(*address, self.ledger.code(*address)));
        let mut given: Vec<StateItem> = proofs.chain(codes).collect();
        given.iter_mut().for_each(|given| (self.lie)(given));
        Ok(given)
    }
}

fn call(to: Address) -> Call {
    Call { to, data: Bytes::new(), gas: 16_000_000 }
}

async fn run(endpoint: &Endpoint, session: &mut Session) -> Result<CallOutcome, ProverError> {
    Prover::new(CHAIN).call(endpoint, session, &call(CONTRACT), None).await
}

/// `SLOAD(0)`, `SLOAD` of that, and both returned together with the code size of [`OTHER`].
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
    assert_eq!(run(&endpoint, &mut session).await, Ok(CallOutcome::Returned(words(&[5, 77, 5]))));
    assert_eq!(endpoint.fetches.load(Ordering::Relaxed), 3, "the contract, slot 0 with the other account, slot 5");
    assert_eq!(run(&endpoint, &mut session).await, Ok(CallOutcome::Returned(words(&[5, 77, 5]))));
}

#[tokio::test]
async fn code_is_fetched_once_for_ever() {
    let ledger = pointer();
    let endpoint = Endpoint::honest(&ledger);
    let prover = Prover::new(CHAIN);
    for codes in [2, 2] {
        prover.call(&endpoint, &mut ledger.session(), &call(CONTRACT), None).await.unwrap();
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
        let prover = Prover::new(CHAIN);
        let outcome = prover.call(&endpoint, &mut ledger.session(), &call(CONTRACT), Some(hint)).await;
        assert_eq!(outcome, Ok(CallOutcome::Returned(words(&[5, 77, 5]))));
        assert_eq!(endpoint.fetches.load(Ordering::Relaxed), fetches);
        // What was read is known from then on, whatever the hint was.
        prover.call(&endpoint, &mut ledger.session(), &call(CONTRACT), None).await.unwrap();
        assert_eq!(endpoint.fetches.load(Ordering::Relaxed), fetches + 1);
    }
}

#[tokio::test]
async fn absent_accounts_and_slots_are_proven_absent() {
    let ledger = Ledger::of([(CONTRACT, Account::contract(POINTER, &[(3, 9), (4, 9)]))]);
    let outcome = run(&Endpoint::honest(&ledger), &mut ledger.session()).await;
    assert_eq!(outcome, Ok(CallOutcome::Returned(words(&[0, 0, 0]))));
}

/// Why the pointer's call is refused when an endpoint lies in this way.
async fn refusal_of(lie: impl Fn(&mut StateItem) + Send + Sync + 'static) -> ProofError {
    let ledger = pointer();
    let error = refused(run(&Endpoint::lying(&ledger, lie), &mut ledger.session()).await.unwrap_err());
    assert!(error.is_lie() && error.local_limit().is_none(), "{error}");
    error
}

/// The refused proof.
fn refused(error: ProverError) -> ProofError {
    match error {
        ProverError::Proof(error) => error,
        ProverError::Endpoint(failure) => panic!("{failure}"),
    }
}

/// Changes the proof of [`CONTRACT`], and leaves others alone.
async fn refusal_for_contract(lie: impl Fn(&mut EIP1186AccountProofResponse) + Send + Sync + 'static) -> ProofError {
    refusal_of(move |given| {
        if let StateItem::Proof(CONTRACT, _, answer) = given {
            lie(answer);
        }
    })
    .await
}

fn account_flaw(flaw: Flaw) -> ProofError {
    ProofError::Account { address: CONTRACT, flaw }
}

fn slot_flaw(flaw: Flaw) -> ProofError {
    ProofError::Slot { address: CONTRACT, slot: U256::ZERO, flaw }
}

#[tokio::test]
async fn each_lie_is_refused_by_its_name() {
    let lie = refusal_for_contract(|answer| answer.balance = U256::from(1)).await;
    assert_eq!(lie, account_flaw(Flaw::OtherValues));
    let lie = refusal_for_contract(|answer| answer.code_hash = keccak256([])).await;
    assert_eq!(lie, account_flaw(Flaw::OtherValues));
    let lie = refusal_for_contract(|answer| answer.address = OTHER).await;
    assert_eq!(lie, account_flaw(Flaw::OtherRequest));
    let lie = refusal_for_contract(|answer| answer.account_proof.clear()).await;
    assert_eq!(lie, account_flaw(Flaw::Truncated));
    let lie = refusal_for_contract(|answer| answer.account_proof.push(Bytes::from_static(&[0x80]))).await;
    assert_eq!(lie, account_flaw(Flaw::Surplus));
    let lie = refusal_for_contract(|answer| answer.account_proof = vec![Bytes::from_static(&[0xc0]); 66]).await;
    assert_eq!(lie, account_flaw(Flaw::TooManyNodes));
    let lie = refusal_for_contract(|answer| answer.account_proof = vec![vec![0; 533].into()]).await;
    assert_eq!(lie, account_flaw(Flaw::NodeTooLong));
    let lie = refusal_for_contract(|answer| *answer = pointer().prove(OTHER, &[U256::ZERO])).await;
    assert_eq!(lie, account_flaw(Flaw::OtherRequest));

    let with_slots = |lie: fn(&mut EIP1186StorageProof)| {
        refusal_for_contract(move |answer| answer.storage_proof.iter_mut().for_each(lie))
    };
    assert_eq!(with_slots(|slot| slot.value = U256::from(6)).await, slot_flaw(Flaw::OtherValues));
    assert_eq!(with_slots(|slot| slot.value = U256::ZERO).await, slot_flaw(Flaw::OtherValues));
    assert_eq!(with_slots(|slot| slot.proof.clear()).await, slot_flaw(Flaw::Truncated));
    assert_eq!(with_slots(|slot| slot.key = B256::with_last_byte(7).into()).await, slot_flaw(Flaw::OtherRequest));

    let code = |lie: fn(Bytes) -> Vec<u8>| {
        refusal_of(move |given| {
            if let StateItem::Code(CONTRACT, code) = given {
                *code = lie(code.clone()).into();
            }
        })
    };
    assert_eq!(code(|code| [&code[..], &[0]].concat()).await, ProofError::Code { address: CONTRACT });
    assert_eq!(code(|_| Vec::new()).await, ProofError::Code { address: CONTRACT });
    let grown = Endpoint::lying(&pointer(), |given| match given {
        StateItem::Code(_, code) => *code = vec![0; (256 << 10) + 1].into(),
        StateItem::Proof(..) => {}
    });
    let error = run(&grown, &mut pointer().session()).await.unwrap_err();
    assert_eq!(refused(error), ProofError::Code { address: CONTRACT });
    // Only code that has the proven hash is the contract's.
    let long = Bytes::from(vec![0; (256 << 10) + 1]);
    let error = checked_code(CONTRACT, keccak256(&long), long).unwrap_err();
    assert_eq!(error, ProofError::CodeTooLong { address: CONTRACT, bytes: (256 << 10) + 1 });
    assert!(!error.is_lie());
}

#[test]
fn another_header_than_the_agreed_one_is_refused() {
    let header = pointer().header();
    let mut forged = Header { state_root: B256::repeat_byte(1), ..Header::default() };
    assert!(HashedHeader::checked(forged.clone(), forged.hash_slow()).is_ok());
    let agreed = header.hash();
    let error = HashedHeader::checked(forged.clone(), agreed).unwrap_err();
    assert_eq!(error, ProofError::Header { expected: agreed, observed: forged.hash_slow() });
    assert!(error.is_lie());
    forged.timestamp = 1;
    assert!(HashedHeader::checked(forged, agreed).is_err());
}

#[tokio::test]
async fn hashes_of_past_blocks_come_from_the_header_or_the_state_or_not_at_all() {
    // BLOCKHASH(number - n), returned.
    let ask = |n: u8| Account::contract(&[&hex!("60")[..], &[n], &hex!("4303405f5260205ff3")].concat(), &[]);
    let history = address!("0000F90827F1C53a10cb7A02335B175320002935");
    let outcome = async |n: u8, kept: &[(u64, u64)]| {
        let ledger = Ledger::of([(CONTRACT, ask(n)), (history, Account::contract(&[0], kept))]);
        run(&Endpoint::honest(&ledger), &mut ledger.session()).await
    };
    assert_eq!(outcome(0, &[]).await, Ok(CallOutcome::Returned(words(&[0]))));
    assert_eq!(outcome(1, &[]).await, Ok(CallOutcome::Returned(Bytes::from(B256::repeat_byte(9)))));
    assert_eq!(outcome(5, &[(95, 1234)]).await, Ok(CallOutcome::Returned(words(&[1234]))));
    assert_eq!(outcome(5, &[(94, 1234)]).await, Err(ProofError::BlockHash(95).into()));
}

#[tokio::test]
async fn reverts_and_halts_are_outcomes() {
    let outcome = async |code: &[u8]| {
        let ledger = Ledger::of([(CONTRACT, Account::contract(code, &[]))]);
        run(&Endpoint::honest(&ledger), &mut ledger.session()).await
    };
    assert_eq!(outcome(&hex!("602a5f5260205ffd")).await, Ok(CallOutcome::Reverted(words(&[42]))));
    assert!(matches!(outcome(&hex!("fe")).await, Ok(CallOutcome::Halted(_))));
    assert_eq!(outcome(&[]).await, Ok(CallOutcome::Returned(Bytes::new())));
    // Code that merely begins like a delegation (EIP-7702).
    assert!(matches!(outcome(&hex!("ef01")).await, Ok(CallOutcome::Halted(_))));
}

#[tokio::test]
async fn what_reads_on_and_on_is_stopped() {
    let stopped = async |code: &[u8], slots: &[(u64, u64)]| {
        let ledger = Ledger::of([(CONTRACT, Account::contract(code, slots))]);
        let error = refused(run(&Endpoint::honest(&ledger), &mut ledger.session()).await.unwrap_err());
        assert_eq!(error.local_limit().map(|limit| limit.to_string()), Some(error.to_string()));
        error
    };
    // Each slot leads to the next one, until one is zero.
    let chain: Vec<(u64, u64)> = (0..40).map(|slot| (slot, slot + 1)).collect();
    assert_eq!(stopped(&hex!("5f5b5480600157"), &chain).await, ProofError::TooManyRounds);
    // The same, for ever.
    assert_eq!(stopped(&hex!("5f5b54600156"), &chain).await, ProofError::TooMuchGas);
    // Slots 0, 1, 2 and so on, until the gas runs out.
    assert_eq!(stopped(&hex!("5f5b805450600101600156"), &[(0, 1)]).await, ProofError::TooManySlots);
    // Balances of 0, 1, 2 and so on.
    assert_eq!(stopped(&hex!("5f5b803150600101600156"), &[]).await, ProofError::TooManyAccounts);
}

/// A made-up header may lead to nodes that no honest trie has: paths longer than a key, on which
/// `alloy_trie::proof::verify_proof` panics.
#[test]
fn paths_longer_than_a_key_are_refused_without_a_panic() {
    let path = keccak256(ALICE);
    let extension = |key: &[u8], child: B256| {
        let compact = [&[0x00][..], key].concat();
        let node = [alloy_rlp::encode(compact.as_slice()), alloy_rlp::encode(child)].concat();
        let mut rlp = Vec::new();
        alloy_rlp::Header { list: true, payload_length: node.len() }.encode(&mut rlp);
        Bytes::from([rlp, node].concat())
    };
    let below = extension(&path[..20], B256::ZERO);
    let above = extension(&path[..20], keccak256(&below));
    let answer = EIP1186AccountProofResponse {
        address: ALICE,
        account_proof: vec![above.clone(), below.clone()],
        ..EIP1186AccountProofResponse::default()
    };
    let root = keccak256(&above);
    assert!(clresolve_state::verify_proof(root, ALICE, &[], &answer).is_ok_and(|verified| verified.account.is_none()));
    let nodes = [above, below];
    let theirs =
        std::panic::catch_unwind(|| alloy_trie::proof::verify_proof(root, Nibbles::unpack(path), None, &nodes));
    assert!(theirs.is_err(), "alloy_trie can be used as it is by now");
}

/// Where a byte of what an endpoint gave is to be changed.
fn flip(given: &mut StateItem, at: usize, with: u8) -> bool {
    let mut places: Vec<&mut Bytes> = match given {
        StateItem::Proof(_, _, answer) => {
            let slots = answer.storage_proof.iter_mut().flat_map(|slot| slot.proof.iter_mut());
            answer.account_proof.iter_mut().chain(slots).collect()
        }
        StateItem::Code(_, code) => vec![code],
    };
    let total: usize = places.iter().map(|place| place.len()).sum();
    if total == 0 {
        return false;
    }
    let mut at = at % total;
    for place in &mut places {
        if at < place.len() {
            let mut bytes = place.to_vec();
            bytes[at] ^= with;
            **place = bytes.into();
            return true;
        }
        at -= place.len();
    }
    false
}

/// Changes one of the values that the response states in addition to the proofs.
fn misstate(answer: &mut EIP1186AccountProofResponse, at: usize, with: u8) {
    let bit = U256::from(with) << (at % 248);
    let word = B256::from(bit);
    match at % 6 {
        0 => answer.nonce ^= u64::from(with),
        1 => answer.balance ^= bit,
        2 => answer.code_hash ^= word,
        3 => answer.storage_hash ^= word,
        4 => answer.address.0[at % 20] ^= with,
        _ => match answer.storage_proof.first_mut() {
            Some(slot) => slot.value ^= bit,
            None => answer.nonce ^= u64::from(with),
        },
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// The property that all rests on: no change of one byte makes another answer.
    #[test]
    fn no_changed_byte_changes_the_answer(nth in 0_usize..8, at: usize, with in 1_u8.., beside: bool) {
        static LEDGER: LazyLock<Ledger> = LazyLock::new(pointer);
        let ledger = &*LEDGER;
        let seen = AtomicUsize::new(0);
        let endpoint = Endpoint::lying(ledger, move |given| {
            if seen.fetch_add(1, Ordering::Relaxed) != nth {
                return;
            }
            match given {
                StateItem::Proof(_, _, answer) if beside => misstate(answer, at, with),
                given => { flip(given, at, with); }
            }
        });
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        match runtime.block_on(run(&endpoint, &mut ledger.session())) {
            Ok(outcome) => prop_assert_eq!(outcome, CallOutcome::Returned(words(&[5, 77, 5]))),
            Err(error) => prop_assert!(refused(error.clone()).is_lie(), "{}", error),
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// On honest proofs the walk gives what alloy's gives.
    #[test]
    fn the_walk_agrees_with_alloys(slots in proptest::collection::btree_map(0_u64..64, 1_u64.., 0..40), asked in 0_u64..64) {
        let slots: Vec<(u64, u64)> = slots.into_iter().collect();
        let ledger = Ledger::of([(CONTRACT, Account::contract(POINTER, &slots))]);
        let asked = U256::from(asked);
        let answer = ledger.prove(CONTRACT, &[asked]);
        let verified = clresolve_state::verify_proof(ledger.root(&[]).0, CONTRACT, &[asked], &answer).unwrap();
        let value = answer.storage_proof[0].value;
        prop_assert_eq!(&verified.slots, &[(asked, value)]);
        let expected = (!value.is_zero()).then(|| alloy_rlp::encode(value));
        let theirs = alloy_trie::proof::verify_proof(
            answer.storage_hash, Nibbles::unpack(slot_path(asked)), expected, &answer.storage_proof[0].proof,
        );
        prop_assert_eq!(theirs, Ok(()));
    }
}

/// JSON-RPC to a sandbox's chain.
mod wire {
    use std::collections::HashSet;

    use alloy_rpc_client::RpcClient;
    use alloy_rpc_types_eth::{Header, TransactionRequest};
    use alloy_transport::TransportError;
    use serde_json::{Value, json};
    use url::Url;

    use super::*;
    use crate::request::eth_call;
    use crate::transport::{EndpointTransport, HttpPost, PostError};
    use clresolve_core::name::EnsName;
    use clresolve_sandbox::chain::{ChainBuilder, Custody, HostileMode, Registration, ResolverKind, RpcServer};
    use clresolve_state::Contracts;
    use clresolve_state::contracts::Subject;

    /// Changes the reply to a method.
    type Change = Box<dyn Fn(&str, &mut Value) + Send + Sync>;

    /// A door to the sandbox that counts, and may change what comes back.
    struct Door {
        http: reqwest::Client,
        posts: AtomicUsize,
        change: Change,
    }

    #[async_trait]
    impl HttpPost for Door {
        async fn post(&self, url: &Url, body: bytes::Bytes, _: usize, _: Duration) -> Result<bytes::Bytes, PostError> {
            self.posts.fetch_add(1, Ordering::Relaxed);
            let questions: Value = serde_json::from_slice(&body).unwrap();
            let broken = |error: reqwest::Error| PostError::Connection(error.to_string());
            let reply = self.http.post(url.clone()).body(body).send().await.map_err(broken)?;
            let mut reply: Value = serde_json::from_slice(&reply.bytes().await.map_err(broken)?).unwrap();
            for question in questions.as_array().cloned().unwrap_or_else(|| vec![questions.clone()]) {
                let method = question["method"].as_str().unwrap();
                match &mut reply {
                    Value::Array(replies) => {
                        let own = replies.iter_mut().find(|reply| reply["id"] == question["id"]).unwrap();
                        (self.change)(method, own);
                    }
                    single => (self.change)(method, single),
                }
            }
            Ok(reply.to_string().into())
        }
    }

    struct World {
        server: RpcServer,
        door: Arc<Door>,
        rpc: RpcClient,
        header: Arc<HashedHeader>,
        prover: Prover,
    }

    impl World {
        async fn new(change: impl Fn(&str, &mut Value) + Send + Sync + 'static) -> Self {
            let mut builder = ChainBuilder::new().unwrap();
            for registration in registrations() {
                builder.register(&registration).unwrap();
            }
            builder.seal("2026-11-20T12:00:00Z".parse().unwrap()).unwrap();
            let server = RpcServer::bind(Arc::new(builder.build().unwrap())).await.unwrap();
            let http = reqwest::Client::builder().no_proxy().build().unwrap();
            let door = Arc::new(Door { http, posts: AtomicUsize::new(0), change: Box::new(change) });
            let http: Arc<dyn HttpPost> = Arc::clone(&door) as _;
            let transport = EndpointTransport::new(
                http,
                server.url().parse().unwrap(),
                "sandbox".to_owned(),
                Duration::from_secs(20),
            );
            let rpc = RpcClient::new(transport, true);
            let header: Header = rpc.request("eth_getBlockByNumber", ("finalized", false)).await.unwrap();
            let header = Arc::new(HashedHeader::checked(header.inner, header.hash).unwrap());
            Self { server, door, rpc, header, prover: Prover::new(CHAIN) }
        }

        /// The outcome over proven state, and its round trips.
        async fn computed(&self, name: &str) -> (Result<CallOutcome, ProverError>, usize) {
            let explain = |error: &TransportError| Failure::Unusable(error.to_string());
            let source = RpcSource { rpc: &self.rpc, explain: &explain };
            let mut session = Session::new(Arc::clone(&self.header));
            let before = self.door.posts.load(Ordering::Relaxed);
            let (to, data) = question(name);
            let call = Call { to, data, gas: 16_000_000 };
            let outcome = self.prover.call(&source, &mut session, &call, None).await;
            (outcome, self.door.posts.load(Ordering::Relaxed) - before)
        }

        /// The outcome as the endpoint states it.
        async fn stated(&self, name: &str) -> CallOutcome {
            let (to, data) = question(name);
            let call: TransactionRequest = eth_call(to, data);
            let answer: Bytes = self.rpc.request("eth_call", (call, self.header.id())).await.unwrap();
            CallOutcome::Returned(answer)
        }
    }

    fn question(name: &str) -> (Address, Bytes) {
        let (name, contracts) = (EnsName::parse(name).unwrap(), Contracts::default());
        let subject = Subject::new(&name, &contracts);
        (
            contracts.multicall3,
            subject.aggregate(
                subject.resolve_texts(clresolve_core::records::Key::ALL.map(clresolve_core::records::Key::as_str)),
            ),
        )
    }

    const NAMES: [&str; 10] = [
        "public.eth",
        "wrapped.eth",
        "sub.wild.eth",
        "offchain.eth",
        "nobody.eth",
        "bare.eth",
        "nocode.eth",
        "burn.eth",
        "garbage.eth",
        "a.deep.sub.public.eth",
    ];

    fn registrations() -> Vec<Registration> {
        let texts = [("cl.entry", "x402://public.eth/summarize/v1"), ("cl.owner", "owner.eth")];
        let texts = texts.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let with = |name: &str, resolver| Registration {
            resolver,
            texts: BTreeMap::from(texts.clone()),
            ..Registration::new(EnsName::parse(name).unwrap(), ALICE)
        };
        let bare = |name: &str, resolver| Registration { texts: BTreeMap::new(), ..with(name, resolver) };
        let hostile = |mode| ResolverKind::Hostile { mode, arg: String::new() };
        vec![
            with("public.eth", ResolverKind::Public),
            Registration { custody: Custody::NameWrapper, ..with("wrapped.eth", ResolverKind::Public) },
            with("wild.eth", ResolverKind::Wildcard),
            with("offchain.eth", ResolverKind::Offchain { urls: vec!["https://ccip.example/".to_owned()] }),
            bare("bare.eth", ResolverKind::None),
            bare("nocode.eth", ResolverKind::Address(ALICE)),
            with("burn.eth", hostile(HostileMode::Burn)),
            with("garbage.eth", hostile(HostileMode::Garbage)),
        ]
    }

    #[tokio::test]
    async fn what_is_computed_is_what_an_honest_endpoint_says() {
        let world = World::new(|_, _| {}).await;
        let mut seen = HashSet::new();
        for name in NAMES {
            let (computed, posts) = world.computed(name).await;
            assert_eq!(computed, Ok(world.stated(name).await), "{name}");
            let warm = world.computed(name).await.1;
            assert!(posts <= 3 && warm == 1, "{name}: {posts} round trips, {warm} when code and reads are known");
            seen.insert(format!("{computed:?}"));
        }
        assert_eq!(seen.len(), NAMES.len(), "every name has an answer of its own");
        assert!(world.server.requests() > 0);
    }

    #[tokio::test]
    async fn an_endpoint_without_access_lists_will_do() {
        let world = World::new(|method, reply| {
            if method == "eth_createAccessList" {
                *reply = json!({"jsonrpc": "2.0", "id": reply["id"], "error": {"code": -32601, "message": "no such method"}});
            }
        })
        .await;
        for name in NAMES {
            let (computed, posts) = world.computed(name).await;
            assert_eq!(computed, Ok(world.stated(name).await), "{name}");
            assert!(posts <= 14, "{name}: {posts} round trips");
        }
    }

    #[tokio::test]
    async fn an_endpoint_without_proofs_is_named_as_such() {
        let world = World::new(|method, reply| {
            if method == "eth_getProof" {
                let error = json!({"code": -32000, "message": "distance to target block exceeds maximum proof window"});
                *reply = json!({"jsonrpc": "2.0", "id": reply["id"], "error": error});
            }
        })
        .await;
        let error = world.computed("public.eth").await.0.unwrap_err();
        assert!(matches!(&error, ProverError::Endpoint(Failure::Unusable(cause)) if cause.contains("proof window")));
    }
}
