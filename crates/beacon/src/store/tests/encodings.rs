//! SSZ and JSON of the beacon API: exact lengths, and a cause for each malformed input.

use alloy_primitives::B256;
use serde_json::{Value, json};

use super::chain::{CHECKPOINT, Chain, MEMBERS};
use crate::codec::{LightClientCodec, MAX_JSON_BYTES, MAX_UPDATES};
use crate::containers::{
    LightClientBootstrap, LightClientFinalityUpdate, LightClientOptimisticUpdate, LightClientUpdate,
};
use crate::error::{LightClientError, SszContainerKind, SszError};
use crate::fork::ConsensusFork;

/// What a beacon node serves on a chain that has one fork.
struct Served {
    chain: Chain,
    bootstrap: LightClientBootstrap,
    update: LightClientUpdate,
    finality: LightClientFinalityUpdate,
    optimistic: LightClientOptimisticUpdate,
}

impl Served {
    fn new(fork: ConsensusFork) -> Self {
        let chain = Chain::with_forks(&[(fork, 0)]);
        let block = chain.block(96, Some(88));
        let update = chain.signed(&block, MEMBERS);
        let (aggregate, slot) = (&update.sync_aggregate, update.signature_slot);
        Self {
            bootstrap: chain.block(CHECKPOINT, None).light_client_bootstrap(),
            finality: block.attesting_finality_update(aggregate.clone(), slot),
            optimistic: block.attesting_optimistic_update(aggregate.clone(), slot),
            update,
            chain,
        }
    }
}

fn assert_round_trip<T: LightClientCodec + PartialEq>(data: &T, fork: ConsensusFork, chain: &Chain) {
    assert!(T::from_ssz(&data.to_ssz(fork), fork, &chain.spec).expect("SSZ") == *data);
    let json = data.to_json(fork).to_string();
    assert!(T::from_json(json.as_bytes(), &chain.spec).expect("JSON") == *data);
}

/// Asserts that no proper prefix of the SSZ is accepted, and nothing longer.
fn assert_exact<T: LightClientCodec>(ssz: &[u8], chain: &Chain) {
    let refused = |bytes: &[u8]| T::from_ssz(bytes, ConsensusFork::Electra, &chain.spec).err();
    for length in 0..ssz.len() {
        let error = refused(&ssz[..length]);
        let is_malformed = matches!(error, Some(LightClientError::Ssz { .. }));
        // The last field is `extra_data`, of which 20 bytes are there.
        assert!(is_malformed || (error.is_none() && length >= ssz.len() - 20), "{length}: {error:?}");
    }
    let longer = [ssz, &[0; 13]].concat();
    let last_field_is_extra_data = refused(&longer);
    assert_eq!(last_field_is_extra_data, Some(LightClientError::ExtraDataTooLong { observed: 33 }));
    for length in [4096, 1 << 20] {
        assert!(refused(&vec![0xff; length]).is_some());
        assert!(refused(&vec![0; length]).is_some());
    }
}

#[test]
fn containers_round_trip_in_each_fork() {
    for fork in [ConsensusFork::Capella, ConsensusFork::Deneb, ConsensusFork::Electra, ConsensusFork::Fulu] {
        let served = Served::new(fork);
        assert_round_trip(&served.bootstrap, fork, &served.chain);
        assert_round_trip(&served.update, fork, &served.chain);
        assert_round_trip(&served.finality, fork, &served.chain);
        assert_round_trip(&served.optimistic, fork, &served.chain);
    }
}

#[test]
fn ssz_has_exact_lengths() {
    let Served { chain, bootstrap, update, finality, optimistic } = Served::new(ConsensusFork::Electra);
    assert_exact::<LightClientBootstrap>(&bootstrap.to_ssz(ConsensusFork::Electra), &chain);
    assert_exact::<LightClientUpdate>(&update.to_ssz(ConsensusFork::Electra), &chain);
    assert_exact::<LightClientFinalityUpdate>(&finality.to_ssz(ConsensusFork::Electra), &chain);
    assert_exact::<LightClientOptimisticUpdate>(&optimistic.to_ssz(ConsensusFork::Electra), &chain);
}

#[test]
fn truncated_ssz_is_rejected() {
    let served = Served::new(ConsensusFork::Electra);
    let refused = LightClientUpdate::from_ssz(&[0; 3], ConsensusFork::Electra, &served.chain.spec);
    let expected = LightClientError::Ssz { container: SszContainerKind::Update, flaw: SszError::Truncated };
    assert_eq!(refused.err(), Some(expected));
}

#[test]
fn ssz_with_gaps_is_rejected() {
    let served = Served::new(ConsensusFork::Electra);
    let mut ssz = served.optimistic.to_ssz(ConsensusFork::Electra);
    let offset = u32::from_le_bytes(ssz[..4].try_into().expect("four bytes"));
    ssz[..4].copy_from_slice(&(offset + 1).to_le_bytes());
    ssz.insert(offset as usize, 0);
    let refused = LightClientOptimisticUpdate::from_ssz(&ssz, ConsensusFork::Electra, &served.chain.spec);
    let expected = LightClientError::Ssz { container: SszContainerKind::OptimisticUpdate, flaw: SszError::Offset };
    assert_eq!(refused.err(), Some(expected));
}

#[test]
fn ssz_of_another_fork_is_rejected() {
    for (written, read) in [
        (ConsensusFork::Deneb, ConsensusFork::Capella),
        (ConsensusFork::Electra, ConsensusFork::Deneb),
        (ConsensusFork::Deneb, ConsensusFork::Electra),
    ] {
        let served = Served::new(written);
        assert!(LightClientUpdate::from_ssz(&served.update.to_ssz(written), read, &served.chain.spec).is_err());
    }
    let served = Served::new(ConsensusFork::Electra);
    let draft = LightClientUpdate::from_ssz(&[], ConsensusFork::Gloas, &served.chain.spec);
    assert_eq!(draft.err(), Some(LightClientError::ForkUnsupported { fork: ConsensusFork::Gloas }));
}

/// The cause why the JSON of an update is refused after `change`.
fn json_refusal(change: impl FnOnce(&mut Value)) -> Option<LightClientError> {
    let served = Served::new(ConsensusFork::Electra);
    let mut json = served.update.to_json(ConsensusFork::Electra);
    change(&mut json);
    LightClientUpdate::from_json(json.to_string().as_bytes(), &served.chain.spec).err()
}

#[test]
fn json_version_decides() {
    assert_eq!(json_refusal(|json| json["version"] = json!("altair")), Some(LightClientError::VersionUnknown));
    let draft = json_refusal(|json| json["version"] = json!("gloas"));
    assert_eq!(draft, Some(LightClientError::ForkUnsupported { fork: ConsensusFork::Gloas }));
    let expected = LightClientError::BranchLength { expected: 5, observed: 6 };
    assert_eq!(json_refusal(|json| json["version"] = json!("deneb")), Some(expected));
    assert_eq!(json_refusal(|json| json["finalized"] = json!(true)), None);
}

#[test]
fn json_of_a_later_fork_is_no_lie() {
    let Served { chain, update, .. } = Served::new(ConsensusFork::Electra);
    // Headers of Gloas have a block hash instead of the execution header, and its states are deeper.
    let mut gloas = update.to_json(ConsensusFork::Gloas);
    for header in ["attested_header", "finalized_header"] {
        let header = gloas["data"][header].as_object_mut().expect("a header");
        header.remove("execution").expect("an execution header");
        header.insert("execution_block_hash".to_owned(), json!(B256::ZERO));
        header.insert("execution_branch".to_owned(), json!(vec![B256::ZERO; 11]));
    }
    gloas["data"]["finality_branch"] = json!(vec![B256::ZERO; 9]);
    let mut refusals = |version: &str| {
        gloas["version"] = json!(version);
        let list = json!([update.to_json(ConsensusFork::Electra), gloas]).to_string();
        [
            LightClientUpdate::from_json(gloas.to_string().as_bytes(), &chain.spec).err(),
            LightClientUpdate::list_from_json(list.as_bytes(), 2, &chain.spec).err(),
        ]
        .map(|error| error.expect("refused"))
    };
    for (version, expected) in [
        ("gloas", LightClientError::ForkUnsupported { fork: ConsensusFork::Gloas }),
        ("heze", LightClientError::VersionUnknown),
    ] {
        assert!(!expected.is_endpoint_dishonest());
        assert_eq!(refusals(version), [expected.clone(), expected]);
    }
    let is_malformed = |error: &LightClientError| matches!(error, LightClientError::Json { .. });
    assert!(refusals("electra").iter().all(is_malformed));
}

#[test]
fn json_lengths_are_exact() {
    let size = |observed| Some(LightClientError::CommitteeSize { expected: MEMBERS, observed });
    let shorter = json_refusal(|json| json["data"]["next_sync_committee"]["pubkeys"] = json!([]));
    assert_eq!(shorter, size(0));
    let longer = json_refusal(|json| {
        let keys = json["data"]["next_sync_committee"]["pubkeys"].as_array_mut().expect("a list");
        keys.push(keys[0].clone());
    });
    assert_eq!(longer, size(MEMBERS + 1));
    let bits = json_refusal(|json| json["data"]["sync_aggregate"]["sync_committee_bits"] = json!("0xffffff"));
    assert_eq!(bits, Some(LightClientError::BitsLength { expected: 4, observed: 3 }));
    let extra = json_refusal(|json| {
        json["data"]["attested_header"]["execution"]["extra_data"] = json!(format!("0x{}", "00".repeat(33)));
    });
    assert_eq!(extra, Some(LightClientError::ExtraDataTooLong { observed: 33 }));
    let branch = json_refusal(|json| json["data"]["finality_branch"] = json!([]));
    assert_eq!(branch, Some(LightClientError::BranchLength { expected: 7, observed: 0 }));
}

#[test]
fn malformed_json_is_rejected() {
    for slot in [json!(97), json!("0x61"), json!("+97"), json!(""), json!("18446744073709551616"), json!(null)] {
        let refused = json_refusal(|json| json["data"]["signature_slot"] = slot.clone());
        assert!(matches!(refused, Some(LightClientError::Json { .. })), "{slot}: {refused:?}");
    }
    let spec = Chain::electra().spec;
    for json in ["", "[]", "{", "{\"version\":\"electra\",\"data\":{}}", "\u{0}", "[[[[[["] {
        let refused = LightClientUpdate::from_json(json.as_bytes(), &spec).err();
        assert!(matches!(refused, Some(LightClientError::Json { .. })), "{json}: {refused:?}");
    }
    let deep = "[".repeat(MAX_JSON_BYTES);
    assert!(matches!(
        LightClientUpdate::from_json(deep.as_bytes(), &spec),
        Err(LightClientError::Json { line: 1, column: 1 })
    ));
}

#[test]
fn long_json_is_rejected() {
    let json = vec![b' '; MAX_JSON_BYTES + 1];
    let refused = LightClientUpdate::from_json(&json, &Chain::electra().spec).err();
    let expected = LightClientError::TooLong { most: MAX_JSON_BYTES, observed: MAX_JSON_BYTES + 1 };
    assert_eq!(refused, Some(expected));
}

/// The response of the beacon API with these updates, each in the layout of its fork.
fn ssz_list(updates: &[(&LightClientUpdate, ConsensusFork)]) -> Vec<u8> {
    let chunk = |(update, fork): &(&LightClientUpdate, ConsensusFork)| {
        let ssz = update.to_ssz(*fork);
        [&(ssz.len() as u64 + 4).to_le_bytes()[..], &[0xfd; 4], &ssz].concat()
    };
    updates.iter().flat_map(chunk).collect()
}

#[test]
fn ssz_list_has_updates_of_several_forks() {
    let chain =
        Chain::with_forks(&[(ConsensusFork::Capella, 0), (ConsensusFork::Deneb, 9), (ConsensusFork::Electra, 12)]);
    let updates = [chain.update(70, 66), chain.update(80, 72), chain.update(104, 88)];
    let [capella, deneb, electra] = &updates;
    let ssz = ssz_list(&[
        (capella, ConsensusFork::Capella),
        (deneb, ConsensusFork::Deneb),
        (electra, ConsensusFork::Electra),
    ]);
    let list = |bytes: &[u8], count| LightClientUpdate::list_from_ssz(bytes, count, &chain.spec);
    assert_eq!(list(&ssz, 3), Ok(updates.to_vec()));
    assert_eq!(list(&ssz, 2), Err(LightClientError::TooManyUpdates { most: 2 }));
    assert_eq!(list(&[], 3), Ok(Vec::new()));
    let truncated = LightClientError::Ssz { container: SszContainerKind::Updates, flaw: SszError::Truncated };
    assert_eq!(list(&ssz[..ssz.len() - 1], 3), Err(truncated.clone()));
    assert_eq!(list(&[0xff; 4096], 3), Err(truncated));
    let empty = LightClientError::Ssz { container: SszContainerKind::Header, flaw: SszError::Truncated };
    assert_eq!(list(&[0; 4096], 3), Err(empty));
}

#[test]
fn ssz_of_a_later_fork_is_no_lie() {
    let list = |slot: u64, chain: &Chain| {
        let chunk = [&4096_u64.to_le_bytes()[..], &[0xfd; 4], &slot.to_le_bytes(), &[7; 4084]].concat();
        LightClientUpdate::list_from_ssz(&chunk, 1, &chain.spec).expect_err("not an update")
    };
    // Headers of Gloas have a fixed length: their slot begins the update.
    let gloas = LightClientError::ForkUnsupported { fork: ConsensusFork::Gloas };
    assert_eq!(list(20_000_000, &Chain::electra()), gloas);
    assert!(list(u64::MAX, &Chain::electra()).is_endpoint_dishonest());
    let future = Chain::with_forks(&[(ConsensusFork::Electra, 0), (ConsensusFork::Gloas, 12)]);
    let electra = Chain::electra().update(96, 88);
    assert_eq!(
        LightClientUpdate::list_from_ssz(&ssz_list(&[(&electra, ConsensusFork::Electra)]), 1, &future.spec),
        Err(gloas)
    );
}

#[test]
fn more_updates_than_requested_are_rejected() {
    let Served { chain, update, .. } = Served::new(ConsensusFork::Electra);
    let json = Value::from(vec![update.to_json(ConsensusFork::Electra); 3]).to_string();
    let list = |count| LightClientUpdate::list_from_json(json.as_bytes(), count, &chain.spec);
    assert_eq!(list(3).expect("three updates").len(), 3);
    assert_eq!(list(usize::MAX).expect("three updates").len(), 3);
    assert_eq!(list(2).err(), Some(LightClientError::TooManyUpdates { most: 2 }));
    let long = vec![b' '; MAX_UPDATES * MAX_JSON_BYTES + 1];
    let refused = LightClientUpdate::list_from_json(&long, usize::MAX, &chain.spec).err();
    assert!(matches!(refused, Some(LightClientError::TooLong { .. })));
}
