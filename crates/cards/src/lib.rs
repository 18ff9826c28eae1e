//! The card systems (CommandLayer, Aevum, Orloj, MA²D, A2A): their rules, conversion and generation of their cards, and
//! card signatures. No I/O: the program sends requests and reads files.
//!
//! [`system`] contains the rules of each system. [`lint`] judges one card. [`new_card`], [`convert`], [`generate`] and
//! [`project`] make cards. [`discovery`] judges what a host serves. [`signature`] signs and verifies A2A cards.
//! [`ledger`] computes the `pacr:` members of Aevum cards.

pub mod convert;
pub mod discovery;
pub mod generate;
pub mod ledger;
pub mod lint;
pub mod new_card;
pub mod project;
pub mod signature;
pub mod system;
