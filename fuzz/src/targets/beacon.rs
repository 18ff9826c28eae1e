//! What beacon nodes send to light clients, and the parts of bundles that come from it.

use std::fmt;
use std::sync::LazyLock;

use alloy_primitives::{B256, Bytes};
use clresolve_beacon::testing::SampleBeaconChain;
use clresolve_beacon::{
    ChainSpec, ConsensusFork, LightClientBootstrap, LightClientCodec, LightClientError, LightClientFinalityUpdate,
    LightClientOptimisticUpdate, LightClientStore, LightClientStoreChange, LightClientSyncTranscript,
    LightClientUpdate, VerifiedBeaconHeader, verify_light_client_transcript,
};

use super::pieces;

/// The genuine chain: one sync committee period of the sandbox's network.
pub(crate) static BEACON: LazyLock<Beacon> = LazyLock::new(Beacon::new);

/// Most updates of one list.
const UPDATES: usize = 3;

pub(crate) struct Beacon {
    pub(crate) chain: SampleBeaconChain,
    pub(crate) bootstrap: LightClientBootstrap,
    pub(crate) update: LightClientUpdate,
    pub(crate) finality: LightClientFinalityUpdate,
    pub(crate) optimistic: LightClientOptimisticUpdate,
    start: LightClientStore,
    /// What a store may know after one update: all states that genuine data leads to.
    states: Vec<Vec<u8>>,
    finalized: VerifiedBeaconHeader,
}

impl Beacon {
    fn new() -> Self {
        let spec = ChainSpec::sandbox();
        let members = spec.preset.sync_committee_size;
        let chain = SampleBeaconChain::new(spec, 1_000_000).expect("a supported fork");
        let start = chain.store_at_checkpoint().expect("a valid bootstrap");
        let update = chain.signed_update(members).expect("a supported fork");
        let (signed, slot) = (update.sync_aggregate.clone(), chain.signature_slot());
        let finality = chain.attested.attesting_finality_update(signed.clone(), slot);
        let optimistic = chain.attested.attesting_optimistic_update(signed, slot);
        let mut stores = [(); 3].map(|()| start.clone());
        stores[0].process_update(&update, slot).expect("it is genuine");
        stores[1].process_finality_update(&finality, slot).expect("it is genuine");
        stores[2].process_optimistic_update(&optimistic, slot).expect("it is genuine");
        let finalized = stores[0].finalized_header();
        let states = stores.iter().map(LightClientStore::to_bytes).collect();
        let bootstrap = chain.checkpoint.light_client_bootstrap();
        Self { chain, bootstrap, update, finality, optimistic, start, states, finalized }
    }

    fn spec(&self) -> &ChainSpec {
        &self.chain.spec
    }

    fn checkpoint(&self) -> B256 {
        self.start.checkpoint()
    }

    /// Processes data of unknown origin. What the store accepts is genuine.
    fn assert_genuine(
        &self,
        process: impl FnOnce(&mut LightClientStore, u64) -> Result<LightClientStoreChange, LightClientError>,
    ) {
        let mut store = self.start.clone();
        match process(&mut store, self.chain.signature_slot()) {
            Ok(_) => assert!(self.states.contains(&store.to_bytes()), "a state that nobody signed"),
            Err(_) => assert_eq!(store.to_bytes(), self.start.to_bytes(), "a refused update changed the store"),
        }
    }
}

/// Data of the beacon API. The first byte selects what is read and, for SSZ, the fork. Each encoding has one meaning,
/// and a store accepts what the genuine committee signed, and nothing else.
pub(crate) fn beacon(input: &[u8]) {
    let Some((selector, bytes)) = input.split_first() else { return };
    let (kind, fork) = (selector % 8, ConsensusFork::ALL[usize::from(selector / 8) % ConsensusFork::ALL.len()]);
    match kind {
        0 => decoded(bytes, fork).into_iter().for_each(|bootstrap| start(&bootstrap)),
        1 => decoded(bytes, fork).into_iter().for_each(|update| update_of(&update)),
        2 => {
            for update in decoded::<LightClientFinalityUpdate>(bytes, fork) {
                BEACON.assert_genuine(|store, slot| store.process_finality_update(&update, slot));
            }
        }
        3 => {
            for update in decoded::<LightClientOptimisticUpdate>(bytes, fork) {
                BEACON.assert_genuine(|store, slot| store.process_optimistic_update(&update, slot));
            }
        }
        4 => {
            let spec = BEACON.spec();
            let lists = [
                LightClientUpdate::list_from_ssz(bytes, UPDATES, spec),
                LightClientUpdate::list_from_json(bytes, UPDATES, spec),
            ];
            lists.into_iter().flatten().flatten().for_each(|update| update_of(&update));
        }
        5 => saved(bytes),
        _ => proof(bytes),
    }
}

/// What the bytes are as SSZ, and as JSON.
fn decoded<T: LightClientCodec + PartialEq + fmt::Debug>(bytes: &[u8], fork: ConsensusFork) -> Vec<T> {
    let spec = BEACON.spec();
    let from_ssz = T::from_ssz(bytes, fork, spec);
    if let Ok(data) = &from_ssz {
        assert_eq!(data.to_ssz(fork), bytes, "a second encoding");
    }
    from_ssz.into_iter().chain(T::from_json(bytes, spec)).collect()
}

fn start(bootstrap: &LightClientBootstrap) {
    if let Ok(store) = LightClientStore::from_bootstrap(BEACON.spec().clone(), BEACON.checkpoint(), bootstrap.clone()) {
        assert_eq!(store.to_bytes(), BEACON.start.to_bytes(), "another start");
    }
}

fn update_of(update: &LightClientUpdate) {
    BEACON.assert_genuine(|store, slot| store.process_update(update, slot));
}

/// The file of a light client. Its digest protects against damage alone, so that it is made to match.
fn saved(bytes: &[u8]) {
    let digest = clresolve_core::digest::Digest::compute(bytes);
    for bytes in [bytes.to_vec(), [bytes, digest.as_bytes()].concat()] {
        let _ = LightClientStore::from_bytes(&bytes, BEACON.spec().clone(), BEACON.checkpoint());
    }
}

/// The proof in a bundle: bootstrap, finality update, then updates.
fn proof(bytes: &[u8]) {
    let mut parts = pieces(bytes).into_iter().map(Bytes::copy_from_slice);
    let (Some(bootstrap), Some(finality_update)) = (parts.next(), parts.next()) else { return };
    let checkpoint = BEACON.checkpoint();
    let proof = LightClientSyncTranscript { checkpoint, bootstrap, updates: parts.collect(), finality_update };
    if let Ok(header) =
        verify_light_client_transcript(&proof, checkpoint, BEACON.spec().clone(), BEACON.chain.signature_slot())
    {
        assert_eq!(header, BEACON.finalized, "another header");
    }
}
