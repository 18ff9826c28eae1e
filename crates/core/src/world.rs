//! Networks: the chain that a verdict is about, as the text in its `anchor.world`.

/// Mainnet's chain id.
pub const MAINNET_ID: u64 = 1;

/// The chain id of the embedded sandbox.
pub const SANDBOX_ID: u64 = 31_337;

/// `anchor.world` of the embedded sandbox. Its verdicts prove nothing.
pub const SANDBOX: &str = "sandbox";

/// Reserved network names, each with the only chain id that may use it.
pub const RESERVED: [(&str, u64); 2] = [("mainnet", MAINNET_ID), (SANDBOX, SANDBOX_ID)];
