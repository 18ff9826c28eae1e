//! Why light-client data is refused.

use std::fmt;

use alloy_primitives::B256;

use crate::fork::ConsensusFork;

/// Why light-client data, or a saved state, is refused. The store is unchanged then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LightClientError {
    /// The JSON is malformed, or a member is missing or has the wrong type.
    #[error("not light-client data in the JSON of the beacon API: see line {line}, column {column}")]
    Json {
        /// Line, counted from 1; 0 if the text ends too early.
        line: usize,
        /// Column, counted from 1.
        column: usize,
    },
    /// The input is longer than any honest one.
    #[error("the data has {observed} bytes; at most {most} are accepted")]
    TooLong {
        /// The limit in bytes.
        most: usize,
        /// The observed length in bytes.
        observed: usize,
    },
    /// A list has more updates than were requested.
    #[error("the list has more than {most} updates")]
    TooManyUpdates {
        /// The number of requested updates.
        most: usize,
    },
    /// `version` names no fork since Capella.
    #[error("`version` names no fork that this version knows; upgrade clresolve if the network has a new fork")]
    VersionUnknown,
    /// The data belongs to a fork whose specification is a draft.
    #[error("data of the fork {fork} cannot be verified: its specification is a draft; upgrade clresolve")]
    ForkUnsupported {
        /// The fork.
        fork: ConsensusFork,
    },
    /// The header has no execution payload, since its slot is before Capella.
    #[error("the header of slot {slot} is older than Capella and has no execution header; choose a later checkpoint")]
    BeforeCapella {
        /// The header's slot.
        slot: u64,
    },
    /// The SSZ encoding is malformed.
    #[error("the SSZ of {container} is malformed: {flaw}")]
    Ssz {
        /// The container.
        container: SszContainerKind,
        /// What is wrong.
        flaw: SszError,
    },
    /// The committee has the wrong number of keys.
    #[error("the sync committee has {observed} keys instead of {expected}")]
    CommitteeSize {
        /// The size of a committee in this network.
        expected: usize,
        /// The observed size.
        observed: usize,
    },
    /// The participation bits have the wrong length.
    #[error("the participation bits have {observed} bytes instead of {expected}")]
    BitsLength {
        /// The length of one bit per member, in bytes.
        expected: usize,
        /// The observed length in bytes.
        observed: usize,
    },
    /// A Merkle branch does not have the length that the fork prescribes.
    #[error("a Merkle branch has {observed} nodes instead of {expected}")]
    BranchLength {
        /// The length in this fork.
        expected: usize,
        /// The observed length.
        observed: usize,
    },
    /// `extra_data` of an execution header is too long.
    #[error("`extra_data` has {observed} bytes; at most 32 are valid")]
    ExtraDataTooLong {
        /// The observed length in bytes.
        observed: usize,
    },
    /// A key of a committee is not a point of the curve.
    #[error("key {position} of the sync committee is not a BLS public key")]
    PublicKey {
        /// Position in the committee, counted from 0.
        position: usize,
    },
    /// The aggregate key of a committee is not a point of the curve.
    #[error("the aggregate key of the sync committee is not a BLS public key")]
    AggregateKey,
    /// The bootstrap is not for the trusted block.
    #[error("the bootstrap is for block {observed}, not for the checkpoint {expected}")]
    OtherCheckpoint {
        /// The trusted block root.
        expected: B256,
        /// The root of the bootstrap's header.
        observed: B256,
    },
    /// The current committee is not the one in the state of the checkpoint.
    #[error("the branch of the current sync committee does not lead to the state root of the checkpoint")]
    CurrentCommitteeBranch,
    /// Fewer than two thirds of the committee signed.
    #[error("{participants} of {size} members of the sync committee signed; two thirds are required")]
    Participation {
        /// Number of members that signed.
        participants: usize,
        /// Number of members.
        size: usize,
    },
    /// An execution header is not the one in the body of its beacon block.
    #[error("the branch of the execution header does not lead to the body root of the {header} header")]
    ExecutionBranch {
        /// The header.
        header: UpdateHeaderRole,
    },
    /// A header from before Deneb states blob gas, which its root does not cover.
    #[error("the execution header of the {header} header states blob gas before Deneb")]
    BlobGasBeforeDeneb {
        /// The header.
        header: UpdateHeaderRole,
    },
    /// The update was signed in a slot that has not begun.
    #[error("the update was signed at slot {signature_slot}, after the current slot {current_slot}; check the clock")]
    SignatureInFuture {
        /// The signature's slot.
        signature_slot: u64,
        /// The current slot.
        current_slot: u64,
    },
    /// The signature is not later than the header that it attests.
    #[error("the signature's slot {signature_slot} is not after the slot {attested_slot} of the attested header")]
    SignatureBeforeHeader {
        /// The signature's slot.
        signature_slot: u64,
        /// The attested header's slot.
        attested_slot: u64,
    },
    /// The finalized header is later than the header that attests it.
    #[error("the finalized header's slot {finalized_slot} is after the slot {attested_slot} of the attested header")]
    FinalizedAfterAttested {
        /// The finalized header's slot.
        finalized_slot: u64,
        /// The attested header's slot.
        attested_slot: u64,
    },
    /// The update was signed by a committee from before the store's finalized header.
    #[error("the update was signed in sync committee period {observed}, before the period {store} of the store")]
    PeriodPast {
        /// Period of the signature.
        observed: u64,
        /// Period of the store's finalized header.
        store: u64,
    },
    /// The update was signed by a later committee than the next.
    #[error(
        "the update was signed in sync committee period {observed}; fetch the updates from period {store} on first"
    )]
    PeriodSkipped {
        /// Period of the signature.
        observed: u64,
        /// Period of the store's finalized header.
        store: u64,
    },
    /// The update was signed by the next committee, which the store does not know yet.
    #[error("the update was signed by the next sync committee; fetch the update of period {store} first")]
    NextCommitteeUnknown {
        /// Period of the store's finalized header.
        store: u64,
    },
    /// The update neither attests a header after the finalized one, nor brings the missing next committee.
    #[error("the update for slot {attested_slot} brings nothing new: slot {finalized_slot} is finalized")]
    NothingNew {
        /// The attested header's slot.
        attested_slot: u64,
        /// Slot of the store's finalized header.
        finalized_slot: u64,
    },
    /// The update has a finalized header, and no branch that proves it.
    #[error("the finalized header comes without a branch")]
    FinalizedHeaderUnproven,
    /// The finalized checkpoint is genesis, whose root is zero in the state; the header must be empty.
    #[error("the finalized header is of slot 0 and not empty")]
    GenesisHeaderNotEmpty,
    /// The finalized header is not the one in the state of the attested header.
    #[error("the branch of the finalized header does not lead to the state root of the attested header")]
    FinalityBranch,
    /// The update has a next committee, and no branch that proves it.
    #[error("the next sync committee comes without a branch")]
    NextCommitteeUnproven,
    /// The next committee differs from the known one of the same period.
    #[error("the next sync committee differs from the known one of the same period")]
    OtherNextCommittee,
    /// The next committee is not the one in the state of the attested header.
    #[error("the branch of the next sync committee does not lead to the state root of the attested header")]
    NextCommitteeBranch,
    /// The signature is not a point of the curve.
    #[error("the aggregate signature is not a BLS signature")]
    SignatureMalformed,
    /// The members whose bits are set did not sign this header in this network and fork.
    #[error("the aggregate signature of the sync committee is invalid")]
    Signature,
    /// Two thirds of the committee signed two headers for one slot.
    #[error("the sync committee signed two headers for slot {slot}: {known} and {observed}")]
    Equivocation {
        /// The slot.
        slot: u64,
        /// Root of the header in the store.
        known: B256,
        /// Root of the other header.
        observed: B256,
    },
    /// The finalized header is older than the weak-subjectivity bound.
    #[error("the last verified header is {age_days} days old, more than {most_days}; configure a new checkpoint")]
    CheckpointTooOld {
        /// Age in whole days.
        age_days: u64,
        /// The bound in days.
        most_days: u64,
    },
    /// The saved state has another format.
    #[error("the saved state has a format of another version; delete it and start from the checkpoint")]
    SavedVersion,
    /// The saved state was changed or cut.
    #[error("the saved state is damaged; delete it and start from the checkpoint")]
    SavedDamaged,
    /// The saved state belongs to another network.
    #[error("the saved state is of another network: its genesis validators root is {observed}, not {expected}")]
    SavedNetwork {
        /// Genesis validators root of this network.
        expected: B256,
        /// The observed root.
        observed: B256,
    },
    /// The saved state was made under another fork schedule.
    #[error("the saved state was made under another fork schedule; delete it and start from the checkpoint")]
    SavedFork,
    /// The saved state began at another checkpoint.
    #[error("the saved state began at the checkpoint {observed}, not at {expected}")]
    SavedCheckpoint {
        /// The configured checkpoint.
        expected: B256,
        /// The observed one.
        observed: B256,
    },
    /// The aggregate key of a saved committee is not the sum of its keys.
    #[error("the aggregate key of a saved sync committee is not the sum of its keys")]
    SavedCommittee,
    /// The saved optimistic header is older than the finalized one.
    #[error("the saved optimistic header is older than the finalized one")]
    SavedOrder,
}

impl LightClientError {
    /// The group of the cause, as a metric label.
    pub const fn metric_cause_label(&self) -> &'static str {
        match self {
            Self::Json { .. }
            | Self::TooLong { .. }
            | Self::TooManyUpdates { .. }
            | Self::Ssz { .. }
            | Self::CommitteeSize { .. }
            | Self::BitsLength { .. }
            | Self::BranchLength { .. }
            | Self::ExtraDataTooLong { .. }
            | Self::PublicKey { .. }
            | Self::AggregateKey
            | Self::SignatureMalformed => "malformed",
            Self::VersionUnknown | Self::ForkUnsupported { .. } | Self::BeforeCapella { .. } => "fork",
            Self::Participation { .. } => "participation",
            Self::Signature | Self::Equivocation { .. } => "signature",
            Self::SignatureInFuture { .. }
            | Self::SignatureBeforeHeader { .. }
            | Self::FinalizedAfterAttested { .. }
            | Self::PeriodPast { .. }
            | Self::PeriodSkipped { .. }
            | Self::NextCommitteeUnknown { .. }
            | Self::NothingNew { .. }
            | Self::CheckpointTooOld { .. } => "slot",
            Self::SavedVersion
            | Self::SavedDamaged
            | Self::SavedNetwork { .. }
            | Self::SavedFork
            | Self::SavedCheckpoint { .. }
            | Self::SavedCommittee
            | Self::SavedOrder => "saved",
            _ => "branch",
        }
    }

    /// Whether no honest beacon node sends such data. The other causes may lie in the clock, in what was requested, in
    /// the validators, in the age of this program, or in a proxy that returns a page instead of the data.
    pub const fn is_endpoint_dishonest(&self) -> bool {
        !matches!(
            self,
            Self::Json { .. }
                | Self::VersionUnknown
                | Self::ForkUnsupported { .. }
                | Self::BeforeCapella { .. }
                | Self::Participation { .. }
                | Self::SignatureInFuture { .. }
                | Self::PeriodPast { .. }
                | Self::PeriodSkipped { .. }
                | Self::NextCommitteeUnknown { .. }
                | Self::NothingNew { .. }
                | Self::Equivocation { .. }
                | Self::CheckpointTooOld { .. }
                | Self::SavedVersion
                | Self::SavedDamaged
                | Self::SavedNetwork { .. }
                | Self::SavedFork
                | Self::SavedCheckpoint { .. }
                | Self::SavedCommittee
                | Self::SavedOrder
        )
    }
}

/// A header's part in an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateHeaderRole {
    /// The header that the committee signed.
    Attested,
    /// The header of a bootstrap.
    Checkpoint,
    /// The header that the attested state finalizes.
    Finalized,
}

impl fmt::Display for UpdateHeaderRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Attested => "attested",
            Self::Checkpoint => "checkpoint's",
            Self::Finalized => "finalized",
        })
    }
}

/// An SSZ container of variable length, or the saved state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SszContainerKind {
    /// `LightClientBootstrap`.
    Bootstrap,
    /// `ExecutionPayloadHeader`.
    ExecutionPayloadHeader,
    /// `LightClientFinalityUpdate`.
    FinalityUpdate,
    /// `LightClientHeader`.
    Header,
    /// `LightClientOptimisticUpdate`.
    OptimisticUpdate,
    /// A saved state.
    SavedState,
    /// `LightClientUpdate`.
    Update,
    /// The response with several updates.
    Updates,
}

impl fmt::Display for SszContainerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bootstrap => "LightClientBootstrap",
            Self::ExecutionPayloadHeader => "ExecutionPayloadHeader",
            Self::FinalityUpdate => "LightClientFinalityUpdate",
            Self::Header => "LightClientHeader",
            Self::OptimisticUpdate => "LightClientOptimisticUpdate",
            Self::SavedState => "the saved state",
            Self::Update => "LightClientUpdate",
            Self::Updates => "the list of updates",
        })
    }
}

/// What is wrong with an SSZ encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SszError {
    /// An offset does not point to the end of the field before.
    #[error("an offset points to the wrong byte")]
    Offset,
    /// The data ends within a field.
    #[error("it ends within a field")]
    Truncated,
}
