//! Addresses of local networks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::split_at_mark;
use clresolve_core::address::{PublicHostName, PublicHostNameError};

/// Whether `token` is an address of a local network: loopback, private, shared, link-local, unique-local or
/// unspecified, also embedded in an IPv6 address. Narrower than "not public", because outside of URLs an address is
/// only suspected.
pub(super) fn is_local_network_address(token: &str) -> bool {
    let address = token.trim_start_matches('[').trim_end_matches(']');
    let address = split_at_mark(address, b'%').map_or(address, |(address, _zone)| address);
    let starts = address.as_bytes().first().is_some_and(|b| b.is_ascii_hexdigit() || *b == b':');
    if !starts {
        return false;
    }
    let read = if address.contains(':') { address.parse().map(IpAddr::V6) } else { address.parse().map(IpAddr::V4) };
    match read.map(|address| address.to_canonical()) {
        Ok(IpAddr::V4(v4)) => v4_is_local(v4),
        Ok(IpAddr::V6(v6)) => v6_is_local(v6),
        Err(_) => parse_octal_or_hex_ipv4(address).is_some_and(v4_is_local),
    }
}

/// Four numbers, at least one octal or hexadecimal, as URL parsers accept them: `0177.0.0.1`, `0x7f.0.0.1`. Fewer
/// numbers are a version.
fn parse_octal_or_hex_ipv4(address: &str) -> Option<Ipv4Addr> {
    let is_number = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
    if address.matches('.').count() != 3 || !address.split('.').all(is_number) {
        return None;
    }
    match PublicHostName::parse(address) {
        Err(PublicHostNameError::IpLiteral(IpAddr::V4(v4))) => Some(v4),
        _ => None,
    }
}

pub(super) fn v4_is_local(address: Ipv4Addr) -> bool {
    let shared = address.octets()[0] == 100 && address.octets()[1] & 0xc0 == 64;
    address.is_loopback() || address.is_private() || address.is_link_local() || address.is_unspecified() || shared
}

fn v6_is_local(address: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    let carried = match (a, b, c, d, e, f) {
        // NAT64 (RFC 6052) and IPv4-compatible addresses (RFC 4291).
        (0x64, 0xff9b, 0, 0, 0, 0) | (0, 0, 0, 0, 0, 0) => Some(v4(g, h)),
        // 6to4 (RFC 3056).
        (0x2002, ..) => Some(v4(b, c)),
        _ => None,
    };
    let site_local = a & 0xffc0 == 0xfec0;
    let is_carried = carried.is_some_and(|v4| v4_is_local(v4) && v4.octets()[0] != 0);
    address.is_loopback() || address.is_unique_local() || address.is_unicast_link_local() || site_local || is_carried
}
