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

pub use codec::{LightClientData, MAX_JSON_BYTES, MAX_UPDATES};
pub use containers::{
    BeaconBlockHeader, ExecutionPayloadHeader, LightClientBootstrap, LightClientFinalityUpdate, LightClientHeader,
    LightClientOptimisticUpdate, LightClientUpdate, PublicKeyBytes, SignatureBytes, SyncAggregate, SyncCommittee,
};
pub use error::{Container, HeaderRole, LightClientError, SszFlaw};
pub use fork::{Fork, GeneralizedIndices};
pub use header::VerifiedHeader;
pub use proof::{LightClientProof, LightClientProofError, MAX_SSZ_BYTES, verify_proof};
pub use spec::{ChainSpec, ForkActivation, Preset};
pub use store::{LightClientStore, MAX_CHECKPOINT_AGE, StoreChange};
