//! Which hosts and addresses are public. Pure: no name is looked up.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::Host;

/// Longest host that is judged, in bytes: a DNS name has at most 253, the rest is slack for brackets and escapes.
const MAX_HOST_BYTES: usize = 512;

/// Names and suffixes that never lead to a public host (RFC 6761, RFC 6762, RFC 8375, and private zones in wide use).
const PRIVATE_ZONES: [&str; 9] =
    ["localhost", "local", "internal", "lan", "localdomain", "intranet", "corp", "home", "home.arpa"];

/// Whether the host of a URL is one that nobody outside its own network can reach.
///
/// Addresses are read in every notation that a URL parser accepts (decimal, hexadecimal, octal, short forms, brackets,
/// percent escapes). A name is judged by its last labels; a name of one label is private. Text that is no host at all
/// is not judged: that is a defect of another kind.
pub fn host_is_private(host: &str) -> bool {
    if host.is_empty() || host.len() > MAX_HOST_BYTES {
        return false;
    }
    let host = without_zone(host);
    match Host::parse(&host) {
        Ok(Host::Domain(name)) => name_is_private(&name) || !name.trim_end_matches('.').contains('.'),
        Ok(Host::Ipv4(address)) => !is_public(address.into()),
        Ok(Host::Ipv6(address)) => !is_public(address.into()),
        Err(_) => false,
    }
}

/// Whether `name` is, or lies below, a name that is never public.
pub fn name_is_private(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    PRIVATE_ZONES.iter().any(|zone| name.strip_suffix(zone).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
}

/// Whether `address` is one of a host in the public internet.
///
/// An allow-list: what is reserved, translated or unknown is not public. An IPv4-mapped address is judged as IPv4.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4_is_public(v4),
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or_else(|| v6_is_public(v6), v4_is_public),
    }
}

/// Whether `address` is clearly one of a host's own network: loopback, private, shared, link-local, unique-local or
/// unspecified. Narrower than the contrary of [`is_public`], for text in which an address is only suspected.
pub fn is_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4_is_local(v4),
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or_else(|| v6_is_local(v6), v4_is_local),
    }
}

fn v4_is_local(address: Ipv4Addr) -> bool {
    address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_unspecified()
        || in_v4(address, [100, 64, 0, 0], 10)
}

fn v6_is_local(address: Ipv6Addr) -> bool {
    address.is_loopback() || in_v6(address, 0xfc00, 7) || in_v6(address, 0xfe80, 10)
}

fn v4_is_public(address: Ipv4Addr) -> bool {
    const RESERVED: [([u8; 4], u32); 14] = [
        ([0, 0, 0, 0], 8),
        ([10, 0, 0, 0], 8),
        ([100, 64, 0, 0], 10),
        ([127, 0, 0, 0], 8),
        ([169, 254, 0, 0], 16),
        ([172, 16, 0, 0], 12),
        ([192, 0, 0, 0], 24),
        ([192, 0, 2, 0], 24),
        ([192, 88, 99, 0], 24),
        ([192, 168, 0, 0], 16),
        ([198, 18, 0, 0], 15),
        ([198, 51, 100, 0], 24),
        ([203, 0, 113, 0], 24),
        ([224, 0, 0, 0], 3),
    ];
    !RESERVED.iter().any(|(network, bits)| in_v4(address, *network, *bits))
}

fn v6_is_public(address: Ipv6Addr) -> bool {
    let head = address.segments();
    let teredo_and_protocols = head[0] == 0x2001 && head[1] < 0x0200;
    let documentation = (head[0] == 0x2001 && head[1] == 0x0db8) || (head[0] == 0x3fff && head[1] < 0x1000);
    let six_to_four = head[0] == 0x2002;
    in_v6(address, 0x2000, 3) && !teredo_and_protocols && !documentation && !six_to_four
}

fn in_v4(address: Ipv4Addr, network: [u8; 4], bits: u32) -> bool {
    let mask = u32::MAX << (32 - bits);
    u32::from(address) & mask == u32::from_be_bytes(network)
}

fn in_v6(address: Ipv6Addr, network: u16, bits: u32) -> bool {
    let mask = u16::MAX << (16 - bits);
    address.segments()[0] & mask == network
}

/// A bracketed IPv6 host without its zone (`[fe80::1%eth0]`), which the URL parser does not know.
fn without_zone(host: &str) -> String {
    match host.split_once('%') {
        Some((address, _)) if host.starts_with('[') => format!("{address}]"),
        _ => host.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_hosts_in_every_notation() {
        for host in [
            "localhost",
            "LOCALHOST.",
            "api.localhost",
            "printer.local",
            "db.internal",
            "router",
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f.1",
            "0177.0.0.1",
            "%31%32%37.0.0.1",
            "10.1.2.3",
            "172.31.255.255",
            "192.168.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "192.0.2.1",
            "224.0.0.1",
            "255.255.255.255",
            "[::1]",
            "[::]",
            "[::ffff:10.0.0.1]",
            "[fd00::1]",
            "[fe80::1%eth0]",
            "[2001:db8::1]",
            "[2002:7f00:1::]",
            "[64:ff9b::7f00:1]",
        ] {
            assert!(host_is_private(host), "{host}");
        }
    }

    #[test]
    fn public_hosts_and_no_hosts() {
        for host in
            ["commandlayer.org", "ipfs.io", "1.1.1.1", "172.32.0.1", "[2606:4700::1111]", "mylocal.dev", "<host>", ""]
        {
            assert!(!host_is_private(host), "{host}");
        }
    }

    #[test]
    fn local_is_narrower_than_not_public() {
        let local = |text: &str| is_local(text.parse().expect("an address"));
        assert!(local("127.0.0.1") && local("10.0.0.1") && local("fd12::1") && local("::ffff:192.168.1.1"));
        assert!(!local("255.255.255.0") && !local("192.0.2.1") && !local("fd::ab") && !local("8.8.8.8"));
    }
}
