//! What a light client knows, for people who operate it.

use std::time::Duration;

use alloy_primitives::B256;
use jiff::Timestamp;

/// The state of a light client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LightClientStatus {
    /// The configured checkpoint.
    pub checkpoint: B256,
    /// Age of the checkpoint's block. `None` unless the light client started from it in this process.
    pub checkpoint_age: Option<Duration>,
    /// The verified headers. `None` before the first synchronization.
    pub headers: Option<VerifiedHeadersStatus>,
    /// The endpoints, in the order of the configuration.
    pub endpoints: Vec<BeaconEndpointStatus>,
}

/// The verified headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifiedHeadersStatus {
    /// Slot of the finalized header.
    pub finalized_slot: u64,
    /// Age of the finalized slot.
    pub finalized_age: Duration,
    /// Slot of the optimistic header.
    pub optimistic_slot: u64,
    /// The current slot.
    pub current_slot: u64,
    /// Members that signed the last verified update. `None` if the state comes from a file and no update followed.
    pub participation: Option<SyncCommitteeParticipation>,
}

/// How many members of a sync committee signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncCommitteeParticipation {
    /// Members that signed.
    pub participants: usize,
    /// Members in all.
    pub size: usize,
}

/// The state of one beacon endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeaconEndpointStatus {
    /// Its label.
    pub label: String,
    /// Time of its last response that passed verification.
    pub answered_at: Option<Timestamp>,
    /// Time and cause of its last failure, unless a good response followed.
    pub failure: Option<(Timestamp, String)>,
    /// The rule that its data violated, and until when it is set aside.
    pub set_aside: Option<BeaconEndpointDemotion>,
}

/// Why and until when a beacon endpoint is asked only if all others failed lately.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeaconEndpointDemotion {
    /// The violated rule.
    pub cause: String,
    /// When it is asked like the others again.
    pub until: Timestamp,
}
