//! clresolve answers one question: is the binding of an ENS name, an Agent-Card and an `x402://` entry real?
pub mod chain;
pub mod cid;
pub mod cli;
pub mod config;
pub mod fetch;
pub mod name;
pub mod reason;
pub mod records;
pub mod resolve;
pub mod sandbox;
pub mod text;
pub mod verdict;
