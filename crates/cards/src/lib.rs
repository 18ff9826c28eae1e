//! The card systems beside CommandLayer's (Aevum, Orloj, MA²D, A2A): what their rules say of a card, and what can be made
//! of one. No I/O: the program asks hosts and reads files.
//!
//! [`system`] holds each system's rules, [`lint`] judges a card by itself, [`convert`], [`generate`] and [`project`]
//! make cards, [`signature`] checks and makes the signatures of A2A cards, [`ledger`] the `pacr:` members of Aevum's.

pub mod convert;
pub mod generate;
pub mod ledger;
pub mod lint;
pub mod project;
pub mod signature;
pub mod system;
