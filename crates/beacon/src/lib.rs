#![doc = include_str!("../README.md")]

mod claim;
mod codec;
mod committee;
mod containers;
mod error;
mod fork;
mod hash;
mod header;
mod proof;
mod spec;
mod ssz;
mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use codec::{LightClientCodec, MAX_JSON_BYTES, MAX_UPDATES};
pub use containers::{
    BeaconBlockHeader, BlsPublicKeyBytes, BlsSignatureBytes, ExecutionPayloadHeader, LightClientBootstrap,
    LightClientFinalityUpdate, LightClientHeader, LightClientOptimisticUpdate, LightClientUpdate, SyncAggregate,
    SyncCommittee,
};
pub use error::{LightClientError, SszContainerKind, SszError, UpdateHeaderRole};
pub use fork::{ConsensusFork, GeneralizedIndices};
pub use header::VerifiedBeaconHeader;
pub use proof::{LightClientSyncTranscript, LightClientTranscriptError, MAX_SSZ_BYTES, verify_light_client_transcript};
pub use spec::{BeaconPreset, ChainSpec, ForkActivation};
pub use store::{LightClientStore, LightClientStoreChange, MAX_CHECKPOINT_AGE};
