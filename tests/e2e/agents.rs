//! Agents made for these tests: each is good but for what its variant names.

/// An agent and the verdict that it should get.
pub(crate) struct Agent {
    /// Its name.
    pub(crate) name: &'static str,
    /// What sets it apart.
    pub(crate) variant: Variant,
    /// The expected state.
    pub(crate) state: &'static str,
    /// Effect and code of each expected reason.
    pub(crate) codes: &'static [&'static str],
}

/// What sets an agent apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    /// Nothing.
    Plain,
    /// Its card lies in a HAMT-sharded directory.
    Hamt,
    /// Its records come through CCIP-Read, from the real OffchainResolver.
    Offchain,
    /// It is not on the chain; the resolver of an ancestor answers for it.
    OffParent,
    /// Its origin serves no card.
    NoOrigin,
    /// Its origin serves other bytes.
    OtherBytes,
    /// `cl.entry` is not the card's entry.
    OtherEntry,
    /// Its holder is not the one of `cl.owner`.
    Stranger,
    /// Its registration is valid for this many days from yesterday.
    Days(u32),
    /// A record has changed since the finalized block.
    Pending,
    /// It has no resolver.
    NoResolver,
    /// Nobody has registered it.
    Unregistered,
}

/// The agents.
pub(crate) const AGENTS: &[Agent] = &[
    Agent { name: "agent.commandlayer.eth", variant: Variant::Plain, state: "trusted", codes: &[] },
    Agent { name: "hamtagent.eth", variant: Variant::Hamt, state: "trusted", codes: &[] },
    Agent { name: "offchainagent.eth", variant: Variant::Offchain, state: "trusted", codes: &["warn record-offchain"] },
    Agent {
        name: "wild.offchainagent.eth",
        variant: Variant::OffParent,
        state: "trusted",
        codes: &["warn name-wildcard", "warn owner-unproven", "warn record-offchain"],
    },
    Agent { name: "noorigin.eth", variant: Variant::NoOrigin, state: "trusted", codes: &["warn source-unavailable"] },
    Agent {
        name: "otherbytes.eth",
        variant: Variant::OtherBytes,
        state: "untrusted",
        codes: &["fail checksum-mismatch", "fail cid-mismatch"],
    },
    Agent {
        name: "otherentry.eth",
        variant: Variant::OtherEntry,
        state: "untrusted",
        codes: &["fail txt-entry-mismatch"],
    },
    Agent { name: "stranger.eth", variant: Variant::Stranger, state: "trusted", codes: &["warn owner-unproven"] },
    Agent { name: "expired.eth", variant: Variant::Days(0), state: "trusted", codes: &["warn name-expired"] },
    Agent { name: "expiring.eth", variant: Variant::Days(10), state: "trusted", codes: &["warn name-expiring"] },
    Agent {
        name: "pending.eth",
        variant: Variant::Pending,
        state: "indeterminate",
        codes: &["unknown record-pending"],
    },
    Agent {
        name: "noresolver.eth",
        variant: Variant::NoResolver,
        state: "untrusted",
        codes: &["fail resolver-missing"],
    },
    Agent {
        name: "unregistered.eth",
        variant: Variant::Unregistered,
        state: "untrusted",
        codes: &["fail name-unregistered"],
    },
];
