//! Arbitrary input: no decoder panics, and no spliced update verifies anything else.

use std::ops::Range;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use sha2::{Digest as _, Sha256};

use super::chain::{Chain, NOW};
use crate::codec::LightClientCodec;
use crate::containers::{
    LightClientBootstrap, LightClientFinalityUpdate, LightClientOptimisticUpdate, LightClientUpdate,
};
use crate::fork::ConsensusFork;
use crate::store::LightClientStore;

fn decode<T: LightClientCodec>(bytes: &[u8], fork: ConsensusFork, chain: &Chain) {
    let _ = T::from_ssz(bytes, fork, &chain.spec);
    let _ = T::from_json(bytes, &chain.spec);
}

/// The bytes with those of a range replaced.
fn spliced(bytes: &[u8], [begin, end]: [Index; 2], replacement: &[u8]) -> Vec<u8> {
    let (begin, end) = (begin.index(bytes.len()), end.index(bytes.len()));
    let range: Range<usize> = begin.min(end)..begin.max(end);
    [&bytes[..range.start], replacement, &bytes[range.end..]].concat()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn arbitrary_bytes_are_decoded_without_panic(bytes in vec(any::<u8>(), 0..6000), fork in select(ConsensusFork::ALL.to_vec())) {
        let chain = Chain::electra();
        decode::<LightClientBootstrap>(&bytes, fork, &chain);
        decode::<LightClientUpdate>(&bytes, fork, &chain);
        decode::<LightClientFinalityUpdate>(&bytes, fork, &chain);
        decode::<LightClientOptimisticUpdate>(&bytes, fork, &chain);
        let _ = LightClientUpdate::list_from_ssz(&bytes, 3, &chain.spec);
        let _ = LightClientUpdate::list_from_json(&bytes, 3, &chain.spec);
    }

    #[test]
    fn spliced_updates_verify_nothing_else(range: [Index; 2], replacement in vec(any::<u8>(), 0..64)) {
        let chain = Chain::electra();
        let update = chain.update(96, 88);
        let mut genuine = chain.store();
        genuine.process_update(&update, NOW).expect("it is genuine");
        let ssz = spliced(&update.to_ssz(ConsensusFork::Electra), range, &replacement);
        let mut store = chain.store();
        if let Ok(update) = LightClientUpdate::from_ssz(&ssz, ConsensusFork::Electra, &chain.spec)
            && store.process_update(&update, NOW).is_ok()
        {
            prop_assert_eq!(store.to_bytes(), genuine.to_bytes());
        }
    }

    #[test]
    fn spliced_saved_states_are_read_without_panic(range: [Index; 2], replacement in vec(any::<u8>(), 0..64)) {
        let chain = Chain::electra();
        let store = chain.store();
        let saved = store.to_bytes();
        let mut bytes = spliced(&saved[..saved.len() - 32], range, &replacement);
        bytes.extend(Sha256::digest(&bytes));
        let _ = LightClientStore::from_bytes(&bytes, chain.spec, store.checkpoint());
    }
}
