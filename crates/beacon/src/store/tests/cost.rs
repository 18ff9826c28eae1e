//! What the largest update costs: one of mainnet's size that brings a new committee. `benches/beacon.rs` measures time.

use std::hint::black_box;

use crate::codec::LightClientCodec;
use crate::containers::LightClientUpdate;
use crate::fork::ConsensusFork;
use crate::spec::ChainSpec;
use crate::testing::SampleBeaconChain;

/// Most memory of one update.
const MAX_MEMORY: u64 = 4 * 1024 * 1024;

#[test]
fn largest_update_fits_into_its_memory() {
    let chain = SampleBeaconChain::new(ChainSpec::mainnet(), 14_000_000).expect("a supported fork");
    let mut store = chain.store_at_checkpoint().expect("a valid bootstrap");
    let least = chain.spec.preset.sync_committee_size * 2 / 3 + 1;
    let json = chain.signed_update(least).expect("a supported fork").to_json(ConsensusFork::Fulu).to_string();
    let used = allocation_counter::measure(|| {
        let update = LightClientUpdate::from_json(json.as_bytes(), &chain.spec).expect("JSON");
        store.process_update(black_box(&update), chain.signature_slot()).expect("it is genuine");
    });
    println!("an update of {} bytes of JSON allocates at most {} bytes at once", json.len(), used.bytes_max);
    assert!(used.bytes_max <= MAX_MEMORY);
}
