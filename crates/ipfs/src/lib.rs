//! Verifies the file at a path below a CID. No I/O, no clock, no panic on any input; every loop is bounded.
//!
//! The caller fetches blocks, and this crate trusts none of them. [`DagWalk`] names the block that it needs next, and
//! verifies the hash of each block before it parses it. It ends with the bytes of a file, or with the reason why there
//! is none:
//!
//! ```
//! use bytes::Bytes;
//! use clresolve_ipfs::{ContentId, UnixFsPath, DagWalk, DagWalkBudget, DagWalkError};
//!
//! fn cat(root: ContentId, path: &str, fetch: impl Fn(&ContentId) -> Bytes) -> Result<Bytes, DagWalkError> {
//!     let mut walk = DagWalk::new(root, &UnixFsPath::parse(path)?, DagWalkBudget::for_agent_card());
//!     while let Some(cid) = walk.wanted_block() {
//!         let block = fetch(cid);
//!         walk.supply_block(block)?;
//!     }
//!     Ok(walk.finish()?.bytes)
//! }
//!
//! let hello = ContentId::from_raw_block(b"hello");
//! assert_eq!(cat(hello, "", |_| Bytes::from("hello")).unwrap(), "hello");
//! assert_eq!(cat(hello, "", |_| Bytes::from("hullo")).unwrap_err().error_class_name(), "hash-mismatch");
//! ```
//!
//! Blocks may arrive one by one or in a CAR ([`CarBlockFeed`]). A walk may continue with another source at any time.
//!
//! # Purpose of the bounds
//!
//! A block with the right hash may still be hostile, because the publisher made it. Each of these attacks has worked on
//! other software:
//!
//! | attack | defence |
//! |---|---|
//! | a diamond of file nodes: 31 blocks, 2^40 bytes | sizes are checked top-down, so the root's size comes first |
//! | the same with empty leaves, so that no byte is ever returned | [`DagWalkBudget::visits`] |
//! | a chain of thousands of nodes | an explicit stack and [`DagWalkBudget::depth`] |
//! | a shard with a huge fanout (CVE-2023-23625) | at most 1024, and no allocation depends on it |
//! | endlessly nested shards | the walk follows only the name's hash, which has 64 bits |
//! | blocks that two readers decode differently | strict dag-pb: no duplicates, no unknown fields, no padding |
//! | truncated digests, SHA-1, 256 KiB of inline content | an allow-list of functions and their digest lengths |
//!
//! Specifications: [CID](https://github.com/multiformats/cid), [CAR](https://ipld.io/specs/transport/car/),
//! [dag-pb](https://ipld.io/specs/codecs/dag-pb/spec/), [UnixFS](https://specs.ipfs.tech/unixfs/),
//! [trustless gateway](https://specs.ipfs.tech/http-gateways/trustless-gateway/).

#[macro_use]
mod mutant;

pub mod build;
pub mod car;

mod budget;
mod dagpb;
mod error;
mod hamt;
mod id;
mod path;
mod protobuf;
mod refutation;
mod unixfs;
mod varint;
mod walk;

pub use budget::{DagWalkBudget, DagWalkLimit};
pub use car::{CarBlockFeed, CarFeedProgress, read_file_from_car};
pub use error::DagWalkError;
pub use id::{CidError, ContentId, MAX_DIGEST_BYTES, MAX_TEXT_BYTES};
pub use path::{MAX_PATH_BYTES, MAX_SEGMENTS, UnixFsPath, UnixFsPathError};
pub use refutation::ProvenContentDefect;
pub use walk::{DagWalk, VerifiedBlocks, VerifiedFile};
