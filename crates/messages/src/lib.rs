//! The messages between a client and an agent: requests, and the receipts that agents give for them. No I/O and no
//! clock.
//!
//! | module | holds |
//! |---|---|
//! | [`request`] | whether a request follows the agent's schema, and templates of requests that do |
//! | [`receipt`] | whether a receipt holds: form, hash, signature, key, signer, time and echo of the request |

pub mod receipt;
pub mod request;
