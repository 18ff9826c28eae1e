//! Sharded directories (HAMT): one step along the hash path of a name.
//!
//! A shard has `fanout` buckets. The next `log2(fanout)` bits of the name's hash select one. The bucket is empty, or it
//! contains either the entry or a shard of the next level. Some readers use the bitfield, others the prefixes of the
//! link names, so a shard in which the two disagree is refused.

use super::budget::DagWalkLimit;
use super::dagpb::{DagPbLink, DagPbNode};
use super::path::check_entry_name;
use super::unixfs::UnixFsData;

/// Multihash code of the only supported hash: the first 64 bits of MurmurHash3 x64 128.
pub(crate) const HASH_MURMUR3_X64_64: u64 = 0x22;

/// Maximum number of buckets of a shard. The UnixFS specification and boxo introduced this bound after CVE-2023-23625.
const MAX_FANOUT: u64 = 1024;

/// Why a shard cannot be followed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HamtShardError {
    Bad(&'static str),
    Bound(DagWalkLimit),
    UnknownHash(u64),
}

pub(super) enum HamtBucket<'n, 'a> {
    Empty,
    Entry(&'n DagPbLink<'a>),
    Shard(&'n DagPbLink<'a>),
}

/// A shard whose bitfield and links agree.
pub(super) struct HamtShard<'n, 'a> {
    fanout: u64,
    /// Bucket, name of the entry (empty for an inner shard) and link, in ascending order of bucket.
    buckets: Vec<(u64, &'a str, &'n DagPbLink<'a>)>,
}

impl<'n, 'a> HamtShard<'n, 'a> {
    pub(super) fn from_node(node: &'n DagPbNode<'a>, unixfs: &UnixFsData) -> Result<Self, HamtShardError> {
        let fanout = check_fanout(unixfs.fanout)?;
        match unixfs.hash_type {
            Some(HASH_MURMUR3_X64_64) => {}
            Some(other) => return Err(HamtShardError::UnknownHash(other)),
            None => return Err(HamtShardError::Bad("a shard names no hash function")),
        }
        let buckets = read_buckets(&node.links, fanout).map_err(HamtShardError::Bad)?;
        check_bitfield(unixfs.data, fanout, &buckets).map_err(HamtShardError::Bad)?;
        Ok(Self { fanout, buckets })
    }

    pub(super) fn fanout(&self) -> u64 {
        self.fanout
    }

    /// The bucket for `name`. `path` must already be advanced to this shard.
    pub(super) fn find_bucket(
        &self,
        name: &str,
        path: &mut HamtHashPath,
    ) -> Result<HamtBucket<'n, 'a>, HamtShardError> {
        let wanted = path.next_index(self.fanout).ok_or(HamtShardError::Bound(DagWalkLimit::ShardDepth))?;
        Ok(match self.buckets.iter().find(|(index, ..)| *index == wanted) {
            Some((_, "", link)) => HamtBucket::Shard(link),
            Some((_, entry, link)) if *entry == name => HamtBucket::Entry(link),
            _ => HamtBucket::Empty,
        })
    }
}

fn read_buckets<'n, 'a>(
    links: &'n [DagPbLink<'a>],
    fanout: u64,
) -> Result<Vec<(u64, &'a str, &'n DagPbLink<'a>)>, &'static str> {
    let width = prefix_width(fanout);
    let mut lowest = 0;
    let mut buckets = Vec::new();
    for link in links {
        let (index, name) = split_link_name(link.name, width)?;
        if index < lowest || index >= fanout {
            return Err("the buckets of a shard are not in order");
        }
        lowest = index + 1;
        buckets.push((index, name, link));
    }
    Ok(buckets)
}

fn split_link_name(name: &str, width: usize) -> Result<(u64, &str), &'static str> {
    let (prefix, entry) = name.split_at_checked(width).ok_or("a shard's link has no prefix")?;
    if prefix.bytes().any(|byte| !matches!(byte, b'0'..=b'9' | b'A'..=b'F')) {
        return Err("the prefix of a shard's link is not upper-case hexadecimal");
    }
    let index = u64::from_str_radix(prefix, 16).map_err(|_| "the prefix of a shard's link is not a number")?;
    if !entry.is_empty() {
        check_entry_name(entry).map_err(|_| "a directory entry has an invalid name")?;
    }
    Ok((index, entry))
}

/// Checks that `bitfield` (big-endian) has exactly the bits of `buckets` set.
fn check_bitfield(bitfield: &[u8], fanout: u64, buckets: &[(u64, &str, &DagPbLink)]) -> Result<(), &'static str> {
    if bitfield.len() as u64 > fanout / 8 {
        return Err("the bitfield of a shard is wider than its fanout");
    }
    if buckets.iter().any(|(index, ..)| !has_bit(bitfield, *index)) {
        return Err("a bucket of a shard is not in its bitfield");
    }
    let listed: u64 = bitfield.iter().map(|byte| u64::from(byte.count_ones())).sum();
    if listed != buckets.len() as u64 {
        return Err("the bitfield of a shard lists missing buckets");
    }
    Ok(())
}

fn check_fanout(fanout: Option<u64>) -> Result<u64, HamtShardError> {
    let fanout = fanout.ok_or(HamtShardError::Bad("a shard has no fanout"))?;
    if fanout > MAX_FANOUT {
        return Err(HamtShardError::Bound(DagWalkLimit::Fanout));
    }
    if !fanout.is_power_of_two() || fanout % 8 != 0 {
        return Err(HamtShardError::Bad("the fanout of a shard is not a power of two and a multiple of eight"));
    }
    Ok(fanout)
}

/// Number of hexadecimal digits of the largest bucket index.
pub(crate) fn prefix_width(fanout: u64) -> usize {
    format!("{:X}", fanout.saturating_sub(1)).len()
}

fn has_bit(bitfield: &[u8], index: u64) -> bool {
    let from_the_end = index as usize / 8;
    bitfield.iter().rev().nth(from_the_end).is_some_and(|byte| byte >> (index % 8) & 1 == 1)
}

/// The hash of a name. Each level of shards consumes its next bits, most significant first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HamtHashPath {
    bits: u64,
    left: u32,
}

impl HamtHashPath {
    pub(crate) fn from_name(name: &str) -> Self {
        Self { bits: murmur3_x64_64(name.as_bytes()), left: u64::BITS }
    }

    /// The bucket on the next level; `None` when all bits are used. `fanout` must be a power of two above 1.
    pub(crate) fn next_index(&mut self, fanout: u64) -> Option<u64> {
        let width = fanout.trailing_zeros();
        self.left = self.left.checked_sub(width)?;
        Some(self.bits >> self.left & (fanout - 1))
    }
}

/// The first half of MurmurHash3 x64 128 with seed 0. The algorithm is by Austin Appleby, public domain.
fn murmur3_x64_64(input: &[u8]) -> u64 {
    let (mut h1, mut h2) = (0_u64, 0_u64);
    let (blocks, tail) = input.as_chunks::<16>();
    for block in blocks {
        let (k1, k2) = split_halves(*block);
        h1 = (h1 ^ mix_k1(k1)).rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 = (h2 ^ mix_k2(k2)).rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    let mut last = [0; 16];
    last[..tail.len()].copy_from_slice(tail);
    let (k1, k2) = split_halves(last);
    h1 ^= mix_k1(k1);
    h2 ^= mix_k2(k2);

    let length = input.len() as u64;
    h1 ^= length;
    h2 ^= length;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    fmix64(h1).wrapping_add(fmix64(h2))
}

fn split_halves(block: [u8; 16]) -> (u64, u64) {
    let both = u128::from_le_bytes(block);
    (both as u64, (both >> 64) as u64)
}

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

fn mix_k1(k: u64) -> u64 {
    k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

fn mix_k2(k: u64) -> u64 {
    k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

fn fmix64(mut h: u64) -> u64 {
    h ^= h >> 33;
    h = h.wrapping_mul(0xff51_afd7_ed55_8ccd);
    h ^= h >> 33;
    h = h.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^ h >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn murmur3_gives_the_published_values() {
        assert_eq!(murmur3_x64_64(b""), 0);
        assert_eq!(murmur3_x64_64(b"The quick brown fox jumps over the lazy dog"), 0xe34b_bc7b_bc07_1b6c);
    }

    #[test]
    fn a_hash_has_eight_levels_at_256_and_six_at_1024() {
        for (fanout, levels) in [(8, 21), (256, 8), (1024, 6)] {
            let mut path = HamtHashPath::from_name("name");
            assert_eq!(std::iter::from_fn(|| path.next_index(fanout)).count(), levels);
        }
        let mut path = HamtHashPath { bits: 0x0123_4567_89ab_cdef, left: 64 };
        assert_eq!(path.next_index(256), Some(0x01));
        assert_eq!(path.next_index(256), Some(0x23));
    }

    #[test]
    fn prefixes_are_as_wide_as_the_largest_index() {
        assert_eq!([8, 16, 32, 256, 512, 1024].map(prefix_width), [1, 1, 2, 2, 3, 3]);
    }

    #[test]
    fn a_fanout_is_checked_before_it_is_used() {
        assert_eq!(check_fanout(Some(256)), Ok(256));
        assert_eq!(check_fanout(Some(1 << 24)), Err(HamtShardError::Bound(DagWalkLimit::Fanout)));
        for bad in [None, Some(0), Some(1), Some(4), Some(100)] {
            assert!(matches!(check_fanout(bad), Err(HamtShardError::Bad(_))), "{bad:?}");
        }
    }

    #[test]
    fn a_shard_by_another_hash_is_not_followed() {
        let of = |hash: &[u8]| {
            let data = [&[0x08, 5], hash, &[0x30, 0x80, 0x02]].concat();
            let node = DagPbNode { data: Some(&data), links: Vec::new() };
            HamtShard::from_node(&node, &UnixFsData::from_node(&node).unwrap()).map(|shard| shard.fanout())
        };
        assert_eq!(of(&[0x28, 0x22]), Ok(256));
        assert_eq!(of(&[0x28, 0x12]), Err(HamtShardError::UnknownHash(0x12)));
        assert_eq!(of(&[]), Err(HamtShardError::Bad("a shard names no hash function")));
    }

    #[test]
    fn bits_count_from_the_end() {
        assert!(has_bit(&[0x01, 0x00], 8));
        assert!(has_bit(&[0x80], 7));
        assert!(!has_bit(&[0x80], 8));
        assert!(!has_bit(&[], 0));
    }
}
