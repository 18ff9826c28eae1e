//! Decides which hosts and addresses are public, from their text form alone: nothing here queries DNS.
//!
//! [`SPECIAL`] is the only table of special-purpose address blocks. The code and its tests both read it.

mod special;

pub use special::{GLOBAL_V6, SPECIAL, SpecialPurposeIpBlock};

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use url::Host;

/// Whether `ip` is routed on the public internet.
///
/// An IPv4-mapped IPv6 address is judged as the IPv4 address inside it. Every other address that embeds an IPv4 address
/// (NAT64, 6to4, Teredo, IPv4-compatible) is special. Addresses outside [`GLOBAL_V6`] are unallocated and therefore not
/// public.
#[must_use]
pub fn is_public_ip(ip: IpAddr) -> bool {
    let ip = ip.to_canonical();
    let given_out = ip.is_ipv4() || GLOBAL_V6.contains(ip);
    given_out && (mutant!("special-addresses-are-public") || !SPECIAL.iter().any(|block| block.contains(ip)))
}

/// A DNS name that can be public: lower-case ASCII, at least two labels, no trailing dot, no private suffix.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PublicHostName(String);

impl PublicHostName {
    /// Parses the host of a URL. The result does not imply that the name resolves, or that it resolves to a public
    /// address.
    pub fn parse(host: &str) -> Result<Self, PublicHostNameError> {
        let name = match parse_host(host)? {
            Host::Domain(name) => name,
            Host::Ipv4(ip) => return Err(PublicHostNameError::IpLiteral(ip.into())),
            Host::Ipv6(ip) => return Err(PublicHostNameError::IpLiteral(ip.into())),
        };
        if is_private_host_name(&name) {
            return Err(PublicHostNameError::NotPublic);
        }
        Ok(Self(name))
    }

    /// The name in lower-case ASCII.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PublicHostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a host is not a [`PublicHostName`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublicHostNameError {
    /// The host is an IP address, in any notation.
    #[error("the host is the IP literal {0}")]
    IpLiteral(IpAddr),
    /// The host is not a valid DNS name.
    #[error("the host is not a DNS name")]
    Malformed,
    /// The form of the name is private: a single label or a reserved suffix.
    #[error("the host name is not public")]
    NotPublic,
}

/// Parses a host in URL notation (or a bare IPv6 address) into lower-case ASCII without a trailing dot.
pub fn parse_host(host: &str) -> Result<Host<String>, PublicHostNameError> {
    if host.len() > MAX_HOST_INPUT {
        return Err(PublicHostNameError::Malformed);
    }
    if host.contains(':')
        && let Ok(ip) = host.parse::<Ipv6Addr>()
    {
        return Ok(Host::Ipv6(ip));
    }
    if is_canonical_host(host) {
        return parse_dns_name(host).map(Host::Domain);
    }
    match Host::parse(host).map_err(|_| PublicHostNameError::Malformed)? {
        Host::Domain(name) => parse_dns_name(&name).map(Host::Domain),
        literal => Ok(literal),
    }
}

/// A cheap test for hosts that the URL parser does not change: lower-case ASCII without Punycode, and no number in the
/// last label.
fn is_canonical_host(host: &str) -> bool {
    let last = host.bytes().rposition(|byte| byte == b'.').map_or(0, |dot| dot + 1);
    host.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.')
        && host[last..].starts_with(|first: char| first.is_ascii_lowercase())
        && !host.contains("xn--")
}

fn parse_dns_name(name: &str) -> Result<String, PublicHostNameError> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let fits = !name.is_empty() && name.len() <= MAX_NAME && name.split('.').all(is_dns_label);
    fits.then(|| name.to_owned()).ok_or(PublicHostNameError::Malformed)
}

fn is_dns_label(label: &str) -> bool {
    (1..=MAX_LABEL).contains(&label.len())
        && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_')
}

fn is_private_host_name(name: &str) -> bool {
    !name.contains('.')
        || PRIVATE_SUFFIXES
            .iter()
            .any(|suffix| name.strip_suffix(suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
}

/// Maximum length of a host text, in bytes. Before percent-decoding and Punycode, a name of 253 octets can be longer
/// than 253 bytes.
const MAX_HOST_INPUT: usize = 1024;

/// Maximum length of a DNS name in octets, without the root's dot (RFC 1035, section 2.3.4).
const MAX_NAME: usize = 253;

/// Maximum length of a DNS label in octets (RFC 1035, section 2.3.4).
const MAX_LABEL: usize = 63;

/// Suffixes that never resolve on the public internet: RFC 6761 (`localhost`, `test`, `invalid`), RFC 6762 (`local`,
/// and the private suffixes of its appendix G), RFC 7686 (`onion`), RFC 8375 (`home.arpa`), RFC 9476 (`alt`), and
/// `internal`, which ICANN reserved in 2024. `example` (RFC 6761) is missing on purpose: documentation uses it, and it
/// does not resolve.
const PRIVATE_SUFFIXES: [&str; 14] = [
    "alt",
    "corp",
    "home",
    "home.arpa",
    "internal",
    "intranet",
    "invalid",
    "lan",
    "local",
    "localdomain",
    "localhost",
    "onion",
    "private",
    "test",
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn url_parser_leaves_plain_hosts_as_they_are(host in "[a-z0-9.-]{0,12}[.-]?[a-z0-9x.-]{1,12}") {
            prop_assume!(is_canonical_host(&host));
            let parsed = Host::parse(&host).map_err(|_| PublicHostNameError::Malformed);
            let known = parsed.and_then(|parsed| parse_dns_name(&parsed.to_string()).map(Host::Domain));
            prop_assert_eq!(parse_host(&host), known);
        }
    }

    #[test]
    fn tells_public_addresses_from_all_others() {
        let cases = [
            ("1.1.1.1", true),
            ("8.8.8.8", true),
            ("9.255.255.255", true),
            ("11.0.0.0", true),
            ("100.63.255.255", true),
            ("100.128.0.0", true),
            ("172.15.255.255", true),
            ("172.32.0.0", true),
            ("192.0.1.0", true),
            ("198.17.255.255", true),
            ("198.20.0.0", true),
            ("223.255.255.255", true),
            ("0.0.0.0", false),
            ("0.1.2.3", false),
            ("10.0.0.1", false),
            ("100.64.0.1", false),
            ("100.127.255.255", false),
            ("127.0.0.1", false),
            ("127.255.255.254", false),
            ("169.254.169.254", false),
            ("172.16.0.1", false),
            ("172.31.255.255", false),
            ("192.0.0.8", false),
            ("192.0.2.1", false),
            ("192.88.99.1", false),
            ("192.168.1.1", false),
            ("198.18.0.1", false),
            ("198.19.255.255", false),
            ("198.51.100.1", false),
            ("203.0.113.1", false),
            ("224.0.0.1", false),
            ("240.0.0.1", false),
            ("255.255.255.255", false),
            ("2606:4700:4700::1111", true),
            ("2001:200::1", true),
            ("2a00:1450::1", true),
            ("3ffe:ffff::1", true),
            ("::ffff:8.8.8.8", true),
            ("::", false),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:10.0.0.1", false),
            ("::127.0.0.1", false),
            ("::8.8.8.8", false),
            ("64:ff9b::8.8.8.8", false),
            ("64:ff9b:1::1", false),
            ("100::1", false),
            ("2001::1", false),
            ("2001:1ff:ffff::1", false),
            ("2001:db8::1", false),
            ("2002:7f00:1::1", false),
            ("3fff::1", false),
            ("3fff:fff:ffff::1", false),
            ("4000::1", false),
            ("5f00::1", false),
            ("fc00::1", false),
            ("fd00:ec2::254", false),
            ("fe80::1", false),
            ("fec0::1", false),
            ("ff02::1", false),
        ];
        for (ip, public) in cases {
            assert_eq!(is_public_ip(ip.parse().unwrap()), public, "{ip}");
        }
    }

    #[test]
    fn tells_public_hosts_from_all_others() {
        let cases = [
            ("example.com", true),
            ("EXAMPLE.com", true),
            ("example.com.", true),
            ("xn--bcher-kva.example", true),
            ("bücher.example", true),
            ("a_b.example", true),
            ("local.example.com", true),
            ("notlocal.example", true),
            ("mylocalhost.com", true),
            ("8.8.8.8", true),
            ("134744072", true),
            ("[2606:4700:4700::1111]", true),
            ("2606:4700:4700::1111", true),
            ("", false),
            (".", false),
            ("..", false),
            ("a..b", false),
            ("example.com..", false),
            ("localhost", false),
            ("LOCALHOST", false),
            ("localhost.", false),
            ("foo.localhost", false),
            ("%6cocalhost", false),
            ("printer.local", false),
            ("printer.local.", false),
            ("metadata.google.internal", false),
            ("internal", false),
            ("router.home.arpa", false),
            ("nas.lan", false),
            ("abc.onion", false),
            ("a.test", false),
            ("a.invalid", false),
            ("a.alt", false),
            ("testing.example", true),
            ("intranet", false),
            ("127.0.0.1", false),
            ("127.1", false),
            ("2130706433", false),
            ("0x7f.1", false),
            ("0x7f000001", false),
            ("017700000001", false),
            ("127.0.0.1.", false),
            ("１２７.0.0.1", false),
            ("10.1", false),
            ("1.2.3.4.5", false),
            ("[::1]", false),
            ("::1", false),
            ("[::ffff:127.0.0.1]", false),
            ("user@example.com", false),
            ("example.com:443", false),
            ("exa mple.com", false),
        ];
        for (host, public) in cases {
            assert_eq!(is_public_host(host), public, "{host:?}");
        }
        assert!(!is_public_host(&format!("{}.com", "a".repeat(64))));
        assert!(!is_public_host(&"a.".repeat(5000)));
    }

    /// Whether the egress guard accepts `host` as a public host.
    fn is_public_host(host: &str) -> bool {
        match PublicHostName::parse(host) {
            Ok(_) => true,
            Err(PublicHostNameError::IpLiteral(ip)) => is_public_ip(ip),
            Err(PublicHostNameError::Malformed | PublicHostNameError::NotPublic) => false,
        }
    }

    fn bits(ip: IpAddr) -> (bool, u128) {
        match ip {
            IpAddr::V4(ip) => (true, ip.to_bits().into()),
            IpAddr::V6(ip) => (false, ip.to_bits()),
        }
    }

    fn at((is_v4, bits): (bool, u128)) -> IpAddr {
        if is_v4 {
            std::net::Ipv4Addr::from_bits(u32::try_from(bits).unwrap()).into()
        } else {
            Ipv6Addr::from_bits(bits).into()
        }
    }

    /// The addresses directly before and after `block`, if they exist.
    fn neighbours(block: &SpecialPurposeIpBlock) -> Vec<IpAddr> {
        let ((is_v4, first), (_, last)) = (bits(block.first()), bits(block.last()));
        let most = if is_v4 { u32::MAX.into() } else { u128::MAX };
        let before = first.checked_sub(1);
        let after = last.checked_add(1).filter(|after| *after <= most);
        before.into_iter().chain(after).map(|bits| at((is_v4, bits))).collect()
    }

    #[test]
    fn special_blocks_end_where_the_table_says() {
        let spans = |ip: IpAddr| {
            let ip = bits(ip);
            move |block: &SpecialPurposeIpBlock| bits(block.first()) <= ip && ip <= bits(block.last())
        };
        let (mut inside, mut public) = (0, Vec::new());
        for block in &SPECIAL {
            assert!(bits(block.first()).1 <= bits(block.last()).1, "{block}");
            for ip in [block.first(), block.last()] {
                assert!(!is_public_ip(ip), "{block}: {ip}");
                inside += 1;
            }
            for ip in neighbours(block) {
                let expected = !SPECIAL.iter().any(spans(ip)) && (ip.is_ipv4() || spans(ip)(&GLOBAL_V6));
                let mapped_v4 = matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some());
                assert!(!mapped_v4, "{ip} would be judged as another address");
                assert_eq!(is_public_ip(ip), expected, "{block}: {ip}");
                public.extend(expected.then(|| ip.to_string()));
            }
        }
        assert_eq!(inside, 2 * SPECIAL.len());
        let expected = "1.0.0.0 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 \
            169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 192.0.1.255 192.0.3.0 \
            192.88.98.255 192.88.100.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 198.51.99.255 \
            198.51.101.0 203.0.112.255 203.0.114.0 223.255.255.255 2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff \
            2001:200:: 2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff 2001:db7:ffff:ffff:ffff:ffff:ffff:ffff 2001:db9:: \
            2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff 2003:: 3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff 3fff:1000::";
        assert_eq!(public.join(" "), expected, "just outside, and public");
    }

    #[test]
    fn each_row_has_a_source_and_is_alone() {
        for (index, block) in SPECIAL.iter().enumerate() {
            assert!(block.source.starts_with("RFC ") && !block.purpose.is_empty(), "{block}");
            let same = |other: &&SpecialPurposeIpBlock| (other.first(), other.last()) == (block.first(), block.last());
            assert_eq!(SPECIAL.iter().position(|other| same(&other)), Some(index), "{block}");
        }
    }
}
