use std::fmt;

/// How an endpoint of the beacon API behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxBeaconBehaviour {
    /// It serves what the committees signed.
    #[default]
    Honest,
    /// Less than two thirds of the committee sign.
    LowParticipation,
    /// The members of another committee sign.
    OtherCommittee,
    /// The committee signs for another fork version.
    OtherFork,
    /// The finalized header is not the one in the attested state.
    ForgedFinality,
    /// The execution header is not the one in the beacon block.
    ForgedExecution,
    /// It serves updates from before the checkpoint.
    Replayed,
    /// The committee signs a second header for the slot of the finalized one.
    Equivocation,
    /// Updates never end.
    Endless,
    /// It never answers.
    Silent,
}

impl SandboxBeaconBehaviour {
    /// All behaviours of endpoints whose updates no light client accepts.
    pub const LIARS: [Self; 9] = [
        Self::LowParticipation,
        Self::OtherCommittee,
        Self::OtherFork,
        Self::ForgedFinality,
        Self::ForgedExecution,
        Self::Replayed,
        Self::Equivocation,
        Self::Endless,
        Self::Silent,
    ];
}

impl fmt::Display for SandboxBeaconBehaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Honest => "honest",
            Self::LowParticipation => "low-participation",
            Self::OtherCommittee => "other-committee",
            Self::OtherFork => "other-fork",
            Self::ForgedFinality => "forged-finality",
            Self::ForgedExecution => "forged-execution",
            Self::Replayed => "replayed",
            Self::Equivocation => "equivocation",
            Self::Endless => "endless",
            Self::Silent => "silent",
        })
    }
}
