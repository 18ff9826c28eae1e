//! [`LightClientSyncTranscript`]: the data that proves a block header to readers of an evidence bundle.

use alloy_primitives::{B256, Bytes};
use serde::{Deserialize, Serialize};

/// What a light client of the beacon chain received from its checkpoint up to a finalized header, in SSZ. The reader
/// trusts none of it: it names a checkpoint and repeats every verification. The field names are part of the bundle
/// format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LightClientSyncTranscript {
    /// The block root from which the light client started.
    pub checkpoint: B256,
    /// `LightClientBootstrap` of the checkpoint.
    pub bootstrap: Bytes,
    /// A `LightClientUpdate` for each sync committee period from the checkpoint's on.
    pub updates: Vec<Bytes>,
    /// The `LightClientFinalityUpdate` whose finalized header is the proven one.
    pub finality_update: Bytes,
}
