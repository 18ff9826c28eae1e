//! May this x402 payment be made? Terms, limits, payee, route, what was signed, and the decision. No I/O, no clock.
//!
//! A trusted name says who an agent is. A payment asks more: that these terms come from the agent and pay it. The
//! [`decide()`] function binds the two.
//!
//! | module | holds |
//! |---|---|
//! | [`terms`] | what a seller demands: x402 version 1 and 2, MCP, read strictly into one type |
//! | [`network`], [`asset`] | networks (CAIP-2) and assets with their EIP-712 domains |
//! | [`limits`] | what the operator permits, and what a caller tightens |
//! | [`payee`] | whom the name says to pay |
//! | [`offer`] | offers that a seller has signed |
//! | [`receipt`], [`artifact`] | receipts that a seller has signed; what offers and receipts have in common |
//! | [`route`] | which URL an entry stands for |
//! | [`signed`] | what a payment header permits |
//! | [`settlement`] | whether a payment was settled |
//! | [`request`] | what is asked |
//! | [`decide`](mod@decide), [`decision`] | the decision, and its written form |

pub mod artifact;
pub mod asset;
pub mod decide;
pub mod decision;
mod encoding;
mod forms;
pub mod limits;
pub mod network;
pub mod offer;
pub mod payee;
pub mod receipt;
pub mod request;
pub mod route;
#[cfg(feature = "schema")]
mod schema;
pub mod settlement;
pub mod signed;
pub mod terms;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod typed_data;

pub use decide::decide;
pub use decision::Decision;
pub use forms::{ADDRESS as ADDRESS_FORM, address as parse_address};
pub use request::DecisionRequest;
