//! Endpoints that lie: each lie is rejected with its specific error.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use alloy_consensus::Header;
use alloy_primitives::{B256, Bytes, U256, hex, keccak256};
use alloy_rpc_types_eth::{EIP1186AccountProofResponse, EIP1186StorageProof};
use alloy_trie::{Nibbles, TrieAccount};
use clresolve_state::{
    EnsContractAddresses, ProvenCallBlame, StateProof, StateProofError, TrieProofError, verify_account_code,
};
use proptest::prelude::*;

use super::ledger::{ALICE, Account, CHAIN, CONTRACT, Endpoint, Ledger, OTHER, slot_path, trie};
use super::{POINTER, pointer, refused, run, words};
use crate::prover::*;

/// Why the pointer's call is refused if an endpoint lies in this way.
async fn refusal_of(lie: impl Fn(&mut StateProofOrCode) + Send + Sync + 'static) -> ProvenCallError {
    let ledger = pointer();
    let error = refused(run(&Endpoint::lying(&ledger, lie), &mut ledger.session()).await.unwrap_err());
    assert_eq!(error.blame(), ProvenCallBlame::Endpoint, "{error}");
    error
}

async fn refusal_for_contract(
    lie: impl Fn(&mut EIP1186AccountProofResponse) + Send + Sync + 'static,
) -> ProvenCallError {
    refusal_of(move |given| {
        if let StateProofOrCode::Proof(CONTRACT, _, answer) = given {
            lie(answer);
        }
    })
    .await
}

fn account_flaw(flaw: TrieProofError) -> ProvenCallError {
    ProvenCallError::Account { address: CONTRACT, flaw }
}

fn slot_flaw(flaw: TrieProofError) -> ProvenCallError {
    ProvenCallError::Slot { address: CONTRACT, slot: U256::ZERO, flaw }
}

#[tokio::test]
async fn each_lie_is_refused_by_its_name() {
    let lie = refusal_for_contract(|answer| answer.balance = U256::from(1)).await;
    assert_eq!(lie, account_flaw(TrieProofError::OtherValues));
    let lie = refusal_for_contract(|answer| answer.code_hash = keccak256([])).await;
    assert_eq!(lie, account_flaw(TrieProofError::OtherValues));
    let lie = refusal_for_contract(|answer| answer.address = OTHER).await;
    assert_eq!(lie, account_flaw(TrieProofError::OtherRequest));
    let lie = refusal_for_contract(|answer| answer.account_proof.clear()).await;
    assert_eq!(lie, account_flaw(TrieProofError::Truncated));
    let lie = refusal_for_contract(|answer| answer.account_proof.push(Bytes::from_static(&[0x80]))).await;
    assert_eq!(lie, account_flaw(TrieProofError::Surplus));
    let lie = refusal_for_contract(|answer| answer.account_proof = vec![Bytes::from_static(&[0xc0]); 66]).await;
    assert_eq!(lie, account_flaw(TrieProofError::TooManyNodes));
    let lie = refusal_for_contract(|answer| answer.account_proof = vec![vec![0; 533].into()]).await;
    assert_eq!(lie, account_flaw(TrieProofError::NodeTooLong));
    let lie = refusal_for_contract(|answer| *answer = pointer().prove(OTHER, &[U256::ZERO])).await;
    assert_eq!(lie, account_flaw(TrieProofError::OtherRequest));

    let with_slots = |lie: fn(&mut EIP1186StorageProof)| {
        refusal_for_contract(move |answer| answer.storage_proof.iter_mut().for_each(lie))
    };
    assert_eq!(with_slots(|slot| slot.value = U256::from(6)).await, slot_flaw(TrieProofError::OtherValues));
    assert_eq!(with_slots(|slot| slot.value = U256::ZERO).await, slot_flaw(TrieProofError::OtherValues));
    assert_eq!(with_slots(|slot| slot.proof.clear()).await, slot_flaw(TrieProofError::Truncated));
    assert_eq!(
        with_slots(|slot| slot.key = B256::with_last_byte(7).into()).await,
        slot_flaw(TrieProofError::OtherRequest)
    );

    let code = |lie: fn(Bytes) -> Vec<u8>| {
        refusal_of(move |given| {
            if let StateProofOrCode::Code(CONTRACT, code) = given {
                *code = lie(code.clone()).into();
            }
        })
    };
    assert_eq!(code(|code| [&code[..], &[0]].concat()).await, ProvenCallError::Code { address: CONTRACT });
    assert_eq!(code(|_| Vec::new()).await, ProvenCallError::Code { address: CONTRACT });
    let grown = Endpoint::lying(&pointer(), |given| match given {
        StateProofOrCode::Code(_, code) => *code = vec![0; (256 << 10) + 1].into(),
        StateProofOrCode::Proof(..) => {}
    });
    let error = run(&grown, &mut pointer().session()).await.unwrap_err();
    assert_eq!(refused(error), ProvenCallError::Code { address: CONTRACT });
    // Code counts as the contract's only if it has the proven hash.
    let long = Bytes::from(vec![0; (256 << 10) + 1]);
    let error = verify_account_code(CONTRACT, keccak256(&long), long).unwrap_err();
    assert_eq!(error, ProvenCallError::CodeTooLong { address: CONTRACT, bytes: (256 << 10) + 1 });
    assert!(matches!(error.blame(), ProvenCallBlame::LocalLimit(_)));
}

/// A forged version of the pointer's ledger with other values.
fn forged() -> Ledger {
    Ledger::of([
        (CONTRACT, Account::contract(POINTER, &[(0, 5), (5, 78), (6, 1), (7, 2), (8, 3)])),
        (OTHER, Account::contract(&hex!("0011223344"), &[])),
    ])
}

/// The error for an endpoint of the genuine ledger that lies about [`CONTRACT`] with proofs of [`forged`]. `lie` gets
/// the honest response and the response of the forged ledger, which is consistent in itself.
async fn refusal_of_forgery(
    lie: impl Fn(&mut EIP1186AccountProofResponse, EIP1186AccountProofResponse) + Send + Sync + 'static,
) -> ProvenCallError {
    refusal_of(move |given| {
        if let StateProofOrCode::Proof(CONTRACT, slots, answer) = given {
            lie(answer, forged().prove(CONTRACT, slots));
        }
    })
    .await
}

#[tokio::test]
async fn a_forged_ledger_is_refused_although_it_is_consistent() {
    // Under its own header the forged ledger is accepted.
    let endpoint = Endpoint::honest(&forged());
    assert_eq!(
        run(&endpoint, &mut forged().session()).await,
        Ok(EvmCallOutcome::Returned(words(&[5, 78, 5]))),
        "the lie is consistent"
    );
    // The complete ledger, from the state root down: the first account read reveals the forgery.
    let error = refused(run(&endpoint, &mut pointer().session()).await.unwrap_err());
    assert!(matches!(error, ProvenCallError::Account { flaw: TrieProofError::WrongHash, .. }), "{error:?}");
    // One forged account, from the state root down.
    let whole = refusal_of_forgery(|answer, forged| *answer = forged).await;
    assert_eq!(whole, account_flaw(TrieProofError::WrongHash));
}

#[tokio::test]
async fn a_forged_subtree_below_a_genuine_root_is_refused() {
    // The genuine root of the state trie with the forged account below it.
    let account = refusal_of_forgery(|answer, mut forged| {
        assert!(forged.account_proof.len() > 1 && answer.account_proof[0] != forged.account_proof[0]);
        forged.account_proof[0] = answer.account_proof[0].clone();
        *answer = forged;
    });
    assert_eq!(account.await, account_flaw(TrieProofError::WrongHash));
    // The genuine account with a forged storage trie below it.
    let storage = refusal_of_forgery(|answer, forged| answer.storage_proof = forged.storage_proof);
    assert_eq!(storage.await, slot_flaw(TrieProofError::WrongHash));
    // The genuine root of the storage trie with a forged slot below it.
    let error = refusal_of_forgery(|answer, mut forged| {
        for (slot, forged) in answer.storage_proof.iter_mut().zip(&mut forged.storage_proof) {
            assert!(forged.proof.len() > 1, "the slot is below the root");
            forged.proof[0] = slot.proof[0].clone();
            *slot = forged.clone();
        }
    });
    let five = ProvenCallError::Slot { address: CONTRACT, slot: U256::from(5), flaw: TrieProofError::WrongHash };
    assert_eq!(error.await, five, "slot 0 is the same in both ledgers");
    // The code of another contract.
    let code = refusal_of(|given| {
        if let StateProofOrCode::Code(CONTRACT, code) = given {
            *code = hex!("602a5f5260205ff3").into();
        }
    });
    assert_eq!(code.await, ProvenCallError::Code { address: CONTRACT });
}

/// An attacker who invents the header can also invent the trie below it, so the trie need not belong to a real ledger.
#[test]
fn tries_that_no_ledger_has_are_refused_by_name() {
    let prove = |node: &[u8]| {
        let account_proof = vec![Bytes::copy_from_slice(node)];
        let answer = EIP1186AccountProofResponse { address: CONTRACT, account_proof, ..Default::default() };
        clresolve_state::verify_account_proof(keccak256(node), CONTRACT, &[], &answer).unwrap_err()
    };
    assert_eq!(prove(&hex!("c0")), account_flaw(TrieProofError::Malformed));
    assert_eq!(prove(&hex!("83646f67")), account_flaw(TrieProofError::Malformed), "no list");
    let (_, proofs) = trie(vec![(keccak256(CONTRACT), hex!("c101").to_vec())], &[keccak256(CONTRACT)]);
    assert_eq!(prove(&proofs[0][0]), account_flaw(TrieProofError::BadValue), "a list of one number is no account");

    // An account with a list in a slot.
    let path = slot_path(U256::ZERO);
    let (storage_root, slot) = trie(vec![(path, hex!("c101").to_vec())], &[path]);
    let leaf = TrieAccount { storage_root, ..TrieAccount::default() };
    let (root, account) = trie(vec![(keccak256(CONTRACT), alloy_rlp::encode(leaf))], &[keccak256(CONTRACT)]);
    let answer = EIP1186AccountProofResponse {
        address: CONTRACT,
        account_proof: account[0].clone(),
        storage_hash: storage_root,
        code_hash: leaf.code_hash,
        storage_proof: vec![EIP1186StorageProof { proof: slot[0].clone(), ..Default::default() }],
        ..Default::default()
    };
    let error = clresolve_state::verify_account_proof(root, CONTRACT, &[U256::ZERO], &answer).unwrap_err();
    assert_eq!(error, slot_flaw(TrieProofError::BadValue));
}

fn refusal_of_recording(nodes: StateWitness) -> ProvenCallError {
    let proof = StateProof {
        contracts: EnsContractAddresses::default(),
        state: nodes,
        coins: None,
        name_look_ups: Vec::new(),
        payment_look_ups: Vec::new(),
        owner_look_ups: Vec::new(),
        light_client: None,
    };
    match proof.verify_under_header(&pointer().header().rlp(), CHAIN) {
        Err(StateProofError::State(error)) => error,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("the proofs are taken"),
    }
}

/// The nodes of a recording are unordered, so a node with a wrong hash counts as missing.
#[test]
fn recorded_proofs_of_a_forged_ledger_are_refused_by_name() {
    let slots = [U256::from(5)];
    let nodes = |answers: &[&EIP1186AccountProofResponse]| {
        let mut nodes = StateWitness::default();
        answers.iter().for_each(|answer| nodes.add_proof(CONTRACT, &slots, answer));
        nodes
    };
    let (genuine, forged) = (pointer().prove(CONTRACT, &slots), forged().prove(CONTRACT, &slots));
    assert_eq!(refusal_of_recording(nodes(&[&forged])), account_flaw(TrieProofError::Truncated));

    let mut grafted = forged.clone();
    grafted.account_proof[0] = genuine.account_proof[0].clone();
    assert_eq!(refusal_of_recording(nodes(&[&grafted])), account_flaw(TrieProofError::Truncated));

    let five = ProvenCallError::Slot { address: CONTRACT, slot: slots[0], flaw: TrieProofError::Truncated };
    let mut storage = genuine.clone();
    storage.storage_proof = forged.storage_proof.clone();
    assert_eq!(refusal_of_recording(nodes(&[&storage])), five);
    storage.storage_proof[0].proof[0] = genuine.storage_proof[0].proof[0].clone();
    assert_eq!(refusal_of_recording(nodes(&[&storage])), five);

    assert_eq!(refusal_of_recording(nodes(&[&genuine, &forged])), ProvenCallError::LeftOver);
    let mut long = genuine.clone();
    long.account_proof.push(vec![0; 533].into());
    let error = refusal_of_recording(nodes(&[&long]));
    assert_eq!(
        (error.clone(), error.blame()),
        (ProvenCallError::Node(TrieProofError::NodeTooLong), ProvenCallBlame::Recording)
    );
}

#[test]
fn another_header_than_the_agreed_one_is_refused() {
    let header = pointer().header();
    let mut forged = Header { state_root: B256::repeat_byte(1), ..Header::default() };
    assert!(HashedBlockHeader::with_expected_hash(forged.clone(), forged.hash_slow()).is_ok());
    let agreed = header.hash();
    let error = HashedBlockHeader::with_expected_hash(forged.clone(), agreed).unwrap_err();
    assert_eq!(error, ProvenCallError::Header { expected: agreed, observed: forged.hash_slow() });
    assert_eq!(error.blame(), ProvenCallBlame::Endpoint);
    forged.timestamp = 1;
    assert!(HashedBlockHeader::with_expected_hash(forged, agreed).is_err());
}

/// An invented header may lead to nodes that no honest trie contains: paths longer than a key, on which
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
    assert!(
        clresolve_state::verify_account_proof(root, ALICE, &[], &answer)
            .is_ok_and(|verified| verified.account.is_none())
    );
    let nodes = [above, below];
    let theirs =
        std::panic::catch_unwind(|| alloy_trie::proof::verify_proof(root, Nibbles::unpack(path), None, &nodes));
    assert!(theirs.is_err(), "alloy_trie can be used as it is by now");
}

/// Changes the byte at position `at` of a response, modulo its length. Returns whether there was one.
fn flip(given: &mut StateProofOrCode, at: usize, with: u8) -> bool {
    let mut places: Vec<&mut Bytes> = match given {
        StateProofOrCode::Proof(_, _, answer) => {
            let slots = answer.storage_proof.iter_mut().flat_map(|slot| slot.proof.iter_mut());
            answer.account_proof.iter_mut().chain(slots).collect()
        }
        StateProofOrCode::Code(_, code) => vec![code],
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

/// Falsifies one of the values that the response states besides the proofs.
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

    /// The property on which everything relies: changing any single byte never changes the answer.
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
                StateProofOrCode::Proof(_, _, answer) if beside => misstate(answer, at, with),
                given => { flip(given, at, with); }
            }
        });
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        match runtime.block_on(run(&endpoint, &mut ledger.session())) {
            Ok(outcome) => prop_assert_eq!(outcome, EvmCallOutcome::Returned(words(&[5, 77, 5]))),
            Err(error) => prop_assert_eq!(refused(error).blame(), ProvenCallBlame::Endpoint),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// For honest proofs, our trie traversal and alloy's return the same.
    #[test]
    fn the_walk_agrees_with_alloys(slots in proptest::collection::btree_map(0_u64..64, 1_u64.., 0..40), asked in 0_u64..64) {
        let slots: Vec<(u64, u64)> = slots.into_iter().collect();
        let ledger = Ledger::of([(CONTRACT, Account::contract(POINTER, &slots))]);
        let asked = U256::from(asked);
        let answer = ledger.prove(CONTRACT, &[asked]);
        let verified = clresolve_state::verify_account_proof(ledger.root(&[]).0, CONTRACT, &[asked], &answer).unwrap();
        let value = answer.storage_proof[0].value;
        prop_assert_eq!(&verified.slots, &[(asked, value)]);
        let expected = (!value.is_zero()).then(|| alloy_rlp::encode(value));
        let theirs = alloy_trie::proof::verify_proof(
            answer.storage_hash, Nibbles::unpack(slot_path(asked)), expected, &answer.storage_proof[0].proof,
        );
        prop_assert_eq!(theirs, Ok(()));
    }
}
