//! The vocabulary of clresolve: what every other crate of the workspace speaks of. It does no I/O and reads no clock.
//!
//! | module | holds |
//! |---|---|
//! | [`name`] | ENS names in normal form (ENSIP-15), namehash, DNS encoding |
//! | [`records`] | the `cl.*` text records and what was read for each |
//! | [`reading`] | what one block of the chain says about a name, and how far it is vouched for |
//! | [`execution`] | what a chain says of one transaction |
//! | [`chain_error`], [`cause`] | why a reading of the chain failed; why records could not be read, by who can fix it |
//! | [`fetch`] | why a document could not be fetched |
//! | [`recordable`] | causes that evidence can record |
//! | [`reason`] | the registry of reason codes |
//! | [`payment`] | what a name publishes about payments |
//! | [`call`] | where requests and receipts say which call they are about |
//! | [`state`], [`freshness`], [`world`] | the state of a verdict, how long it is fresh, which world it is about |
//! | [`text`] | foreign text, escaped and cut |
//! | [`characters`] | which characters values and names for people must not hold |
//! | [`uri`] | schemes of URIs, and which URIs are equivalent |
//! | [`json`] | strict JSON, JSON Pointer, places in a JSON text |
//! | [`finding`] | reasons with their place in a text |
//! | [`sarif`] | what reports in SARIF share |
//! | `schema` | JSON Schemas of types (feature `schema`) |
//! | [`digest`] | SHA-256 in its written form |
//! | [`address`], [`base_url`] | which hosts and addresses are public; where a server is reached |

#[macro_use]
mod mutant;

pub mod address;
pub mod base_url;
pub mod call;
pub mod cause;
pub mod chain_error;
pub mod characters;
pub mod digest;
pub mod execution;
pub mod fetch;
pub mod finding;
pub mod freshness;
pub mod json;
pub mod name;
pub mod payment;
pub mod reading;
pub mod reason;
pub mod recordable;
pub mod records;
pub mod sarif;
#[cfg(feature = "schema")]
pub mod schema;
pub mod state;
pub mod text;
pub mod uri;
pub mod world;
