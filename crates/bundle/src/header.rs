//! The RLP header of a block: its hash, and the two fields that the evidence uses.

use alloy_primitives::keccak256;
use alloy_rlp::{Decodable as _, Header};
use jiff::Timestamp;

use super::error::BundleError;
use clresolve_core::reading::ChainBlock;

/// Maximum length of a header in bytes. Current headers have about 600; each fork adds a few dozen.
const MAX_BYTES: usize = 4096;

/// Indices of number and timestamp in the header list (yellow paper, 4.4). Later forks only append fields.
const NUMBER: usize = 8;
const TIMESTAMP: usize = 11;

/// Checks that `rlp` is the header of `block`.
pub(super) fn check_header(rlp: &[u8], block: &ChainBlock) -> Result<(), BundleError> {
    if rlp.len() > MAX_BYTES {
        return Err(BundleError::Header("it is too long"));
    }
    if keccak256(rlp) != block.hash {
        return Err(BundleError::Header("it has another hash"));
    }
    let number = rlp_number_at_index(rlp, NUMBER).ok_or(BundleError::Header("it has no number"))?;
    let seconds = rlp_number_at_index(rlp, TIMESTAMP).ok_or(BundleError::Header("it has no time"))?;
    let timestamp = i64::try_from(seconds).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    if number != block.number || timestamp != Some(block.timestamp) {
        return Err(BundleError::Header("it has another number or time"));
    }
    Ok(())
}

/// The number at index `index` of the list.
fn rlp_number_at_index(mut rlp: &[u8], index: usize) -> Option<u64> {
    let mut list = Header::decode_bytes(&mut rlp, true).ok()?;
    for _ in 0..index {
        Header::decode_bytes(&mut list, false).ok()?;
    }
    u64::decode(&mut list).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block() -> (Vec<u8>, ChainBlock) {
        let header = alloy_consensus::Header { number: 7, timestamp: 1_700_000_000, ..Default::default() };
        let rlp = alloy_rlp::encode(&header);
        let timestamp = Timestamp::from_second(1_700_000_000).unwrap();
        (rlp.clone(), ChainBlock { number: 7, hash: keccak256(&rlp), timestamp })
    }

    #[test]
    fn a_header_shows_hash_number_and_time_of_its_block() {
        let (rlp, block) = block();
        assert_eq!(check_header(&rlp, &block), Ok(()));
        assert!(check_header(&rlp, &ChainBlock { number: 8, ..block }).is_err());
        assert!(check_header(&rlp, &ChainBlock { timestamp: Timestamp::UNIX_EPOCH, ..block }).is_err());
    }

    #[test]
    fn no_other_bytes_do() {
        let (rlp, block) = block();
        for index in 0..rlp.len() {
            let mut other = rlp.clone();
            other[index] ^= 1;
            assert_eq!(check_header(&other, &block), Err(BundleError::Header("it has another hash")), "{index}");
            // With a matching hash, a malformed header is detected by its form.
            let _ = check_header(&other, &ChainBlock { hash: keccak256(&other), ..block });
            assert!(
                check_header(&rlp[..index], &ChainBlock { hash: keccak256(&rlp[..index]), ..block }).is_err(),
                "{index}"
            );
        }
        let long = vec![0; MAX_BYTES + 1];
        assert!(check_header(&long, &ChainBlock { hash: keccak256(&long), ..block }).is_err());
    }
}
