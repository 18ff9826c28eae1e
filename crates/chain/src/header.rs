//! Checks the consistency of a block header that an endpoint returned.

use alloy_rpc_types_eth::Header;
use clresolve_core::reading::{BlockSelector, ChainBlock};
use clresolve_state::HashedBlockHeader;

/// Why a header is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BlockHeaderRejection {
    /// The endpoint returned `null`.
    #[error("the endpoint knows no such block")]
    Missing,
    /// The fields do not hash to the stated hash.
    #[error("the header's fields do not hash to its hash")]
    Hash,
    /// The header's number is not the requested one.
    #[error("the header is that of another block")]
    Number,
    #[error("the header's timestamp is out of range")]
    Time,
}

/// Returns the header and its block, if its fields hash to the stated hash and it is the requested one.
pub(crate) fn check_requested_header(
    header: Option<Header>,
    selector: BlockSelector,
) -> Result<(HashedBlockHeader, ChainBlock), BlockHeaderRejection> {
    let header = header.ok_or(BlockHeaderRejection::Missing)?;
    let header =
        HashedBlockHeader::with_expected_hash(header.inner, header.hash).map_err(|_| BlockHeaderRejection::Hash)?;
    if selector.number().is_some_and(|number| number != header.number()) {
        return Err(BlockHeaderRejection::Number);
    }
    let block = header.block().ok_or(BlockHeaderRejection::Time)?;
    Ok((header, block))
}

#[cfg(test)]
mod tests {
    use alloy_primitives::B256;

    use super::*;

    #[test]
    fn each_refusal_says_what_is_wrong() {
        let stated = |number, timestamp| {
            let inner = alloy_consensus::Header { number, timestamp, ..Default::default() };
            Header { hash: inner.hash_slow(), inner, total_difficulty: None, size: None }
        };
        let why = |header, selector| check_requested_header(header, selector).err();
        assert_eq!(why(Some(stated(7, 1)), BlockSelector::Number(7)), None);
        assert_eq!(why(None, BlockSelector::Finalized), Some(BlockHeaderRejection::Missing));
        let lie = Header { hash: B256::repeat_byte(1), ..stated(7, 1) };
        assert_eq!(why(Some(lie), BlockSelector::Finalized), Some(BlockHeaderRejection::Hash));
        assert_eq!(why(Some(stated(8, 1)), BlockSelector::Number(7)), Some(BlockHeaderRejection::Number));
        assert_eq!(why(Some(stated(7, u64::MAX)), BlockSelector::Number(7)), Some(BlockHeaderRejection::Time));
    }
}
