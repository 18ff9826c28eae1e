//! The names of worlds: which chain a verdict speaks of, in the word that its `anchor.world` has.

/// Mainnet's chain id.
pub const MAINNET_ID: u64 = 1;

/// The chain id of the embedded world.
pub const SANDBOX_ID: u64 = 31_337;

/// `anchor.world` of the embedded world, whose verdicts prove nothing.
pub const SANDBOX: &str = "sandbox";

/// What no other world may be called: the name, and its chain.
pub const RESERVED: [(&str, u64); 2] = [("mainnet", MAINNET_ID), (SANDBOX, SANDBOX_ID)];
