//! The special-purpose address blocks of the IANA registries (RFC 6890 and its updates):
//! <https://www.iana.org/assignments/iana-ipv4-special-registry> and
//! <https://www.iana.org/assignments/iana-ipv6-special-registry>.
//!
//! A block that the registries mark as globally reachable is public, unless a larger block of this table contains it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Every block that a foreign URL must not reach, with the document that reserves it.
///
/// IPv4-mapped addresses (`::ffff:0:0/96`) have no row: they are judged as the IPv4 address inside.
pub const SPECIAL: [SpecialPurposeIpBlock; 37] = [
    ipv4_block([0, 0, 0, 0], 8, "this network", "RFC 791"),
    ipv4_block([10, 0, 0, 0], 8, "private use", "RFC 1918"),
    ipv4_block([100, 64, 0, 0], 10, "shared by carrier-grade NAT", "RFC 6598"),
    ipv4_block([127, 0, 0, 0], 8, "loopback", "RFC 1122"),
    ipv4_block([169, 254, 0, 0], 16, "link local, cloud metadata", "RFC 3927"),
    ipv4_block([172, 16, 0, 0], 12, "private use", "RFC 1918"),
    ipv4_block([192, 0, 0, 0], 24, "protocol assignments", "RFC 6890"),
    ipv4_block([192, 0, 2, 0], 24, "documentation", "RFC 5737"),
    ipv4_block([192, 88, 99, 0], 24, "6to4 relay anycast, deprecated", "RFC 7526"),
    ipv4_block([192, 168, 0, 0], 16, "private use", "RFC 1918"),
    ipv4_block([198, 18, 0, 0], 15, "benchmarking", "RFC 2544"),
    ipv4_block([198, 51, 100, 0], 24, "documentation", "RFC 5737"),
    ipv4_block([203, 0, 113, 0], 24, "documentation", "RFC 5737"),
    ipv4_block([224, 0, 0, 0], 4, "multicast", "RFC 5771"),
    ipv4_block([240, 0, 0, 0], 4, "reserved (class E), broadcast", "RFC 1112"),
    ipv6_block([0, 0, 0, 0, 0, 0, 0, 0], 96, "unspecified, loopback, IPv4-compatible", "RFC 4291"),
    ipv6_block([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96, "NAT64", "RFC 6052"),
    ipv6_block([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, "NAT64, local use", "RFC 8215"),
    ipv6_block([0x100, 0, 0, 0, 0, 0, 0, 0], 64, "discard only", "RFC 6666"),
    ipv6_block([0x100, 0, 0, 1, 0, 0, 0, 0], 64, "dummy prefix", "RFC 9780"),
    ipv6_block([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, "protocol assignments", "RFC 2928"),
    ipv6_block([0x2001, 0, 0, 0, 0, 0, 0, 0], 32, "Teredo", "RFC 4380"),
    ipv6_block([0x2001, 1, 0, 0, 0, 0, 0, 0], 126, "anycast for PCP, TURN and SRP", "RFC 7723, 8155, 9665"),
    ipv6_block([0x2001, 2, 0, 0, 0, 0, 0, 0], 48, "benchmarking", "RFC 5180"),
    ipv6_block([0x2001, 3, 0, 0, 0, 0, 0, 0], 32, "AMT", "RFC 7450"),
    ipv6_block([0x2001, 4, 0x112, 0, 0, 0, 0, 0], 48, "AS112", "RFC 7535"),
    ipv6_block([0x2001, 0x10, 0, 0, 0, 0, 0, 0], 28, "ORCHID", "RFC 4843"),
    ipv6_block([0x2001, 0x20, 0, 0, 0, 0, 0, 0], 28, "ORCHIDv2", "RFC 7343"),
    ipv6_block([0x2001, 0x30, 0, 0, 0, 0, 0, 0], 28, "drone remote ID", "RFC 9374"),
    ipv6_block([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, "documentation", "RFC 3849"),
    ipv6_block([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, "6to4", "RFC 3056"),
    ipv6_block([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, "documentation", "RFC 9637"),
    ipv6_block([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16, "segment routing", "RFC 9602"),
    ipv6_block([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, "unique local", "RFC 4193"),
    ipv6_block([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, "link local", "RFC 4291"),
    ipv6_block([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, "site local, deprecated", "RFC 3879"),
    ipv6_block([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, "multicast", "RFC 4291"),
];

/// The only IPv6 block from which global unicast addresses are assigned (RFC 4291, section 2.4).
pub const GLOBAL_V6: SpecialPurposeIpBlock = ipv6_block([0x2000, 0, 0, 0, 0, 0, 0, 0], 3, "global unicast", "RFC 4291");

/// A block of addresses with a common prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpecialPurposeIpBlock {
    first: IpAddr,
    /// Length of the prefix in bits: at most 32 for IPv4 and 128 for IPv6.
    bits: u32,
    /// What the block is reserved for.
    pub purpose: &'static str,
    /// The document that reserves the block.
    pub source: &'static str,
}

impl SpecialPurposeIpBlock {
    /// Whether the block contains `ip`, which must be of the same address family.
    #[must_use]
    pub fn contains(&self, ip: IpAddr) -> bool {
        match (self.first, ip) {
            (IpAddr::V4(first), IpAddr::V4(ip)) => (ip.to_bits() ^ first.to_bits()).leading_zeros() >= self.bits,
            (IpAddr::V6(first), IpAddr::V6(ip)) => (ip.to_bits() ^ first.to_bits()).leading_zeros() >= self.bits,
            _ => false,
        }
    }

    /// The lowest address of the block.
    #[must_use]
    pub const fn first(&self) -> IpAddr {
        self.first
    }

    /// The highest address of the block.
    #[must_use]
    pub fn last(&self) -> IpAddr {
        match self.first {
            IpAddr::V4(first) => Ipv4Addr::from_bits(first.to_bits() | u32::MAX.unbounded_shr(self.bits)).into(),
            IpAddr::V6(first) => Ipv6Addr::from_bits(first.to_bits() | u128::MAX.unbounded_shr(self.bits)).into(),
        }
    }
}

impl fmt::Display for SpecialPurposeIpBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} ({}, {})", self.first, self.bits, self.purpose, self.source)
    }
}

const fn ipv4_block(octets: [u8; 4], bits: u32, purpose: &'static str, source: &'static str) -> SpecialPurposeIpBlock {
    let [a, b, c, d] = octets;
    SpecialPurposeIpBlock { first: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), bits, purpose, source }
}

const fn ipv6_block(groups: [u16; 8], bits: u32, purpose: &'static str, source: &'static str) -> SpecialPurposeIpBlock {
    let [a, b, c, d, e, f, g, h] = groups;
    SpecialPurposeIpBlock { first: IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h)), bits, purpose, source }
}
