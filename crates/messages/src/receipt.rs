//! Verifies receipts: family, hash, signature, key, signer, time, and whether the receipt repeats the request. No I/O
//! and no clock.
//!
//! CommandLayer's programs sign receipts in eleven ways, and their verifiers differ. One module per way separates the
//! signed content from the proof ([`ReceiptFamily`]). All checks then use only the content that the signature covers,
//! recomputed from the bytes.
//!
//! | module | contents |
//! |---|---|
//! | `json`, `canonical` | receipts as their signers parse them, and the canonical forms that they sign |
//! | [`family`] | the table of families, and a module for each |
//! | [`judge`](mod@judge) | the checks |
//! | [`replay`] | detection of receipts that were shown before |
//! | [`question`] | the input: agent, receipt, request and purchase |
//! | [`document`] | the report as a JSON document |

mod canonical;
pub mod document;
mod echo;
pub mod family;
mod json;
pub mod judge;
pub mod question;
pub mod replay;

pub use document::ReceiptVerificationDocument;
pub use family::ReceiptFamily;
pub use json::{MAX_BYTES, ReceiptParseError};
pub use judge::{ReceiptJudgement, judge_receipt};
pub use question::ReceiptVerificationRequest;
