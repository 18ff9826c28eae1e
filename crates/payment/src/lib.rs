//! Decides whether an x402 payment may be made. Covers terms, limits, payee, route, signed payment and the decision
//! itself. No I/O, no clock.
//!
//! A trusted name identifies an agent. A payment requires more: the terms must come from that agent, and the payment
//! must go to it. [`decide_payment()`] checks both.
//!
//! | module | holds |
//! |---|---|
//! | [`terms`] | the terms that a seller demands: x402 versions 1 and 2 and MCP, parsed strictly into one type |
//! | [`network`], [`asset`] | networks (CAIP-2), and assets with their EIP-712 domains |
//! | [`limits`] | what the operator permits, and how a caller tightens it |
//! | [`payee`] | a name's payees by configuration, address record and ERC-8004 wallet; the proof of a payee |
//! | [`offer`] | offers signed by a seller |
//! | [`receipt`], [`artifact`] | receipts signed by a seller; the common form of offers and receipts |
//! | [`route`] | the URL behind an entry |
//! | [`signed`] | what a payment header permits |
//! | [`settlement`] | whether a payment was settled |
//! | [`request`] | the decision request |
//! | [`decide`](mod@decide), [`decision`] | the decision, and its serialized form |
//! | [`check`] | who a seller is, with or without a card, and whether it may be paid; which evidence to read |

pub mod artifact;
pub mod asset;
pub mod check;
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

pub use decide::decide_payment;
pub use decision::PaymentDecision;
pub use forms::{ADDRESS as ADDRESS_FORM, parse_address};
pub use request::PaymentDecisionRequest;
