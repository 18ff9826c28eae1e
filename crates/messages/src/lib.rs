//! The messages between a client and an agent: requests, and the receipts that agents return for them. No I/O and no
//! clock.
//!
//! | module | contents |
//! |---|---|
//! | [`request`] | whether a request follows the agent's schema, and templates of valid requests |
//! | [`receipt`] | whether a receipt is valid: form, hash, signature, key, signer, time and echo of the request |

pub mod receipt;
pub mod request;
