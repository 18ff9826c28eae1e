//! SHA-256 Merkle trees of the consensus specifications (`hash_tree_root`, generalized indices).

use alloy_primitives::B256;
use sha2::{Digest as _, Sha256};

/// The hash of two nodes side by side.
pub(crate) fn hash_pair(left: B256, right: B256) -> B256 {
    let digest = Sha256::new().chain_update(left).chain_update(right).finalize();
    B256::new(digest.into())
}

/// The root over the leaves, padded with zero leaves to a power of two.
pub(crate) fn merkleize(mut nodes: Vec<B256>) -> B256 {
    nodes.resize(nodes.len().next_power_of_two(), B256::ZERO);
    while nodes.len() > 1 {
        nodes = nodes.chunks_exact(2).map(|nodes| hash_pair(nodes[0], nodes[1])).collect();
    }
    nodes[0]
}

/// The root of a vector of bytes.
pub(crate) fn bytes_root(bytes: &[u8]) -> B256 {
    merkleize(bytes.chunks(32).map(B256::right_padding_from).collect())
}

/// The root of a list of at most 32 bytes. A longer one has a root of no valid list.
pub(crate) fn short_byte_list_root(bytes: &[u8]) -> B256 {
    hash_pair(bytes_root(bytes), u64_root(bytes.len() as u64))
}

/// The root of a number.
pub(crate) fn u64_root(number: u64) -> B256 {
    B256::right_padding_from(&number.to_le_bytes())
}

/// How deep below the root the node with a generalized index is.
pub(crate) const fn node_depth(index: u64) -> usize {
    index.ilog2() as usize
}

/// Whether `branch` leads from `leaf` at the generalized index to `root`. A branch of a later fork may be longer than
/// the path; its first nodes are then zero (`is_valid_normalized_merkle_branch`).
pub(crate) fn is_valid_merkle_branch(leaf: B256, branch: &[B256], index: u64, root: B256) -> bool {
    let Some(extra) = branch.len().checked_sub(node_depth(index)) else { return false };
    let (padding, path) = branch.split_at(extra);
    let is_padded = padding.iter().all(B256::is_zero) || clresolve_core::mutant!("beacon-padding");
    is_padded && (merkle_branch_root(leaf, path, index) == root)
}

fn merkle_branch_root(leaf: B256, path: &[B256], index: u64) -> B256 {
    let mut node = leaf;
    for (level, sibling) in path.iter().enumerate() {
        let is_right = (index >> level) & 1 == 1;
        node = if is_right { hash_pair(*sibling, node) } else { hash_pair(node, *sibling) };
    }
    node
}
