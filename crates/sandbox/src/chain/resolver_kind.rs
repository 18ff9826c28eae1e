//! The resolvers that a name of the sandbox can have.

use alloy_primitives::Address;
use serde::Deserialize;

/// The resolver of a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EnsResolverKind {
    /// The public resolver, with the records of the registration.
    #[default]
    Public,
    /// No resolver is set.
    None,
    /// This address. Nothing is deployed there, so it may have no code.
    Address(Address),
    /// An ENSIP-10 resolver for the name and all names below it. `{label}` in a text stands for the first label of the
    /// requested name.
    Wildcard,
    /// An EIP-3668 resolver that sends clients to `urls` (with optional `{sender}` and `{data}`), where the sandbox
    /// serves [`SandboxChain::answer_ccip_read`](super::SandboxChain::answer_ccip_read).
    Offchain {
        /// Gateway URL templates.
        urls: Vec<String>,
    },
    /// A resolver that misbehaves.
    Hostile {
        /// The kind of misbehaviour.
        mode: HostileResolverMode,
        /// For modes with a lookup, the URL. Otherwise the text key that misbehaves while the others are returned
        /// correctly, or `addr` for the addresses by coin type. If empty, every key misbehaves.
        #[serde(default)]
        arg: String,
    },
}

/// Ways in which a hostile resolver misbehaves, in the order of the contract's own list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum HostileResolverMode {
    /// A string whose length word is the offset word itself.
    Aliased,
    /// A string with a length past the end.
    BadLength,
    /// A string with an offset past the end.
    BadOffset,
    /// A string that is not UTF-8.
    BadUtf8,
    /// Uses up all gas.
    Burn,
    /// Uses up all gas in `supportsInterface`, and responds correctly otherwise.
    BurnInterface,
    /// Returns no bytes.
    Empty,
    /// Claims every interface and responds to ENSIP-10 with garbage, so that the Universal Resolver's whole call fails.
    ExtendedGarbage,
    /// Returns four bytes.
    Garbage,
    /// A string of 1 MiB. More than one such key exceeds the gas limit.
    Huge,
    /// Executes the invalid opcode.
    Invalid,
    /// Requests another lookup after every response.
    Loop,
    /// Requests a lookup without any URL.
    NoUrls,
    /// Reverts with a reason.
    Revert,
    /// Reverts with 1 MiB. More than one such key exceeds the gas limit.
    RevertHuge,
    /// Requests a lookup with another contract as its sender, which EIP-3668 forbids.
    Sender,
    /// Requests a lookup, and returns the response as the (ABI-encoded) text without verification.
    Ssrf,
}
