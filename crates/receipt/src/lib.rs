//! Does this receipt hold? Family, hash, signature, key, signer, time and echo of the request. No I/O, no clock.
//!
//! CommandLayer's programs sign receipts in eleven ways, and their verifiers differ. Here each way is taken apart by a module
//! of its own ([`Family`]), and everything is judged over what the signature covers alone, recomputed from the bytes.
//!
//! | module | holds |
//! |---|---|
//! | `json`, `canonical` | receipts as their signers read them, and the forms that they sign |
//! | [`family`] | the table of families, and a module for each |
//! | [`judge`](mod@judge) | the checks |
//! | [`replay`] | whether a receipt was shown before |
//! | [`question`] | what is asked |
//! | [`document`] | what is said of a receipt, in its written form |

mod canonical;
pub mod document;
mod echo;
pub mod family;
mod json;
pub mod judge;
pub mod question;
pub mod replay;

pub use document::Verification;
pub use family::Family;
pub use json::{MAX_BYTES, Unreadable};
pub use judge::{ReceiptJudgement, judge};
pub use question::ReceiptQuestion;
