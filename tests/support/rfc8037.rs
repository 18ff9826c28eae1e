//! The Ed25519 key of RFC 8037, appendix A.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;

/// The private key (A.1) in base64url.
pub(crate) const SEED: &str = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A";

/// The key's thumbprint (A.3).
pub(crate) const THUMBPRINT: &str = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k";

pub(crate) fn seed() -> [u8; 32] {
    BASE64URL.decode(SEED).expect("base64url").try_into().expect("32 bytes")
}
