//! The core types of clresolve, which every other crate of the workspace uses. This crate does no I/O and reads no
//! clock.
//!
//! | module | contents |
//! |---|---|
//! | [`name`] | ENS names in normal form (ENSIP-15), namehash, DNS encoding |
//! | [`name_hint`] | text that people enter instead of a name |
//! | [`records`] | the `cl.*` text records and the result of reading each |
//! | [`reading`] | a name's state at one block, and the proof grade of that state |
//! | [`execution`] | the result of one executed transaction |
//! | [`chain_error`], [`cause`] | why reading the chain failed; why records could not be read, by who can fix it |
//! | [`fetch`] | why a document could not be fetched |
//! | [`recordable`] | causes that evidence can record |
//! | [`reason`] | the registry of reason codes |
//! | [`payment`] | the payment addresses and endpoints that a name publishes |
//! | [`call`] | where requests and receipts identify their call |
//! | [`state`], [`freshness`], [`world`] | the state of a verdict, its lifetime, and the network that it is about |
//! | [`text`] | escaping and truncating foreign text |
//! | [`characters`] | characters that values and display names must not contain |
//! | [`uri`] | URI schemes and URI equivalence |
//! | [`json`] | strict JSON, JSON Pointer, positions in a JSON text |
//! | [`finding`] | reasons with their position in a text |
//! | [`sarif`] | the common parts of SARIF reports |
//! | `schema` | JSON Schemas of types (feature `schema`) |
//! | [`digest`] | SHA-256 digests and their text form |
//! | [`address`], [`base_url`] | which hosts and addresses are public; the public base URL of a server |

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
pub mod holder;
pub mod json;
pub mod light_client;
pub mod name;
pub mod name_hint;
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
