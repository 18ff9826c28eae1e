//! Public host names that resolve to a private address.

use std::net::Ipv4Addr;

use super::super::{ends_with_ignore_case, longest_matching_suffix};
use super::local::{is_local_network_address, v4_is_local};

/// Suffixes of private names that are not words too, unlike `test`, `home`, `private` and so on.
const PRIVATE_SUFFIXES: [&str; 9] =
    ["localhost", "local", "internal", "localdomain", "localdomain6", "lan", "intranet", "home.arpa", "svc"];

/// The last labels of [`PRIVATE_SUFFIXES`].
const LAST_LABELS: [&str; PRIVATE_SUFFIXES.len()] =
    ["localhost", "local", "internal", "localdomain", "localdomain6", "lan", "intranet", "arpa", "svc"];

/// The last characters of [`LAST_LABELS`].
const LAST_LETTERS: &[u8] = b"6aclnt";

/// Services that resolve a name to the address embedded in it.
const EMBEDDING: [&str; 6] = ["nip.io", "sslip.io", "xip.io", "traefik.me", "backname.io", "ipq.co"];

/// Names known to resolve to loopback or to a cloud's metadata service, including all their subdomains.
const INSIDE: [&str; 12] = [
    "localtest.me",
    "lvh.me",
    "vcap.me",
    "lacolhost.com",
    "localho.st",
    "local.gd",
    "fuf.me",
    "yoogle.com",
    "metadata.goog",
    "metadata.tencentyun.com",
    "metadata.packet.net",
    "metadata.platformequinix.com",
];

/// Whether `host` is certainly a private name: it has such a suffix, is known to resolve inside, or embeds an address.
pub(super) fn is_private_name(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    PRIVATE_SUFFIXES.iter().chain(&INSIDE).any(|suffix| is_same_or_subdomain(host, suffix))
        || embeds_private_address(host)
}

/// Whether a text may end in a private name: its last label equals that of a name in [`PRIVATE_SUFFIXES`].
pub(super) fn may_end_in_private_name(text: &str) -> bool {
    if !text.bytes().next_back().is_some_and(|last| LAST_LETTERS.contains(&last.to_ascii_lowercase())) {
        return false;
    }
    let label = longest_matching_suffix(text, |byte| byte.is_ascii_alphanumeric());
    LAST_LABELS.iter().any(|last| label.eq_ignore_ascii_case(last))
}

/// Whether a public name, in lower case, resolves to a private address: it is a known one, or has the address in it.
pub(super) fn resolves_to_private(name: &str) -> bool {
    INSIDE.iter().any(|inside| is_same_or_subdomain(name, inside))
        || name.ends_with(".svc")
        || embeds_private_address(name)
}

fn is_same_or_subdomain(name: &str, suffix: &str) -> bool {
    ends_with_ignore_case(name, suffix) && matches!(name.as_bytes()[..name.len() - suffix.len()], [] | [.., b'.'])
}

/// Whether the labels of `name` contain a private address: as four labels, as one label (`ip-10-0-0-1`) or, below one
/// of [`EMBEDDING`], anywhere in a label and in hexadecimal.
fn embeds_private_address(name: &str) -> bool {
    let digits = name.bytes().filter(u8::is_ascii_digit).count();
    let is_service = EMBEDDING.iter().any(|service| is_same_or_subdomain(name, service));
    if digits < 4 && !is_service {
        return false;
    }
    let name = name.to_ascii_lowercase();
    let labels: Vec<&str> = name.split('.').collect();
    labels.windows(4).any(is_private_quad)
        || labels.iter().any(|label| {
            let parts: Vec<&str> = label.strip_prefix("ip-").unwrap_or(label).split('-').collect();
            let is_whole = parts.len() == 4 && is_private_quad(&parts);
            let is_part =
                || parts.windows(4).any(is_private_quad) || parts.iter().any(|part| is_hex_private_address(part));
            is_whole
                || is_service
                    && (is_part() || label.contains("--") && is_local_network_address(&label.replace('-', ":")))
        })
}

/// Whether four texts are the numbers of a private address.
fn is_private_quad(parts: &[&str]) -> bool {
    let mut octets = [0; 4];
    let fits = parts.iter().zip(&mut octets).all(|(part, octet)| part.parse().map(|number| *octet = number).is_ok());
    fits && v4_is_local(Ipv4Addr::from(octets)) && octets[0] != 0
}

/// Whether `text` is a private address as eight hexadecimal digits.
fn is_hex_private_address(text: &str) -> bool {
    text.len() == 8 && u32::from_str_radix(text, 16).is_ok_and(|bits| v4_is_local(Ipv4Addr::from_bits(bits)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_name_is_recognized_by_its_last_label() {
        assert!(PRIVATE_SUFFIXES.iter().zip(LAST_LABELS).all(|(suffix, last)| suffix.rsplit('.').next() == Some(last)));
        assert!(LAST_LABELS.iter().all(|label| LAST_LETTERS.contains(&label.as_bytes()[label.len() - 1])));
        assert!(may_end_in_private_name("see db.LAN") && may_end_in_private_name("a x.arpa"));
        assert!(!may_end_in_private_name("wlan") && !may_end_in_private_name("lan.") && !may_end_in_private_name(""));
    }

    #[test]
    fn names_that_lead_inside() {
        for name in [
            "10.0.0.1.nip.io",
            "app-10-0-0-1.nip.io",
            "app.192.168.1.4.sslip.io",
            "7f000001.nip.io",
            "x-c0a80101.nip.io",
            "--1.sslip.io",
            "ip-172-31-5-6.example.com",
            "a.127.0.0.1.example.com",
            "foo.localtest.me",
            "lvh.me",
            "metadata.goog",
            "vault.default.svc",
        ] {
            assert!(resolves_to_private(name), "{name}");
        }
        for name in [
            "nip.io",
            "8.8.8.8.nip.io",
            "8-8-8-8.nip.io",
            "commandlayer.org",
            "v10-0-0-1.docs.example",
            "a1.b2.c3.d4.example",
            "notlvh.me",
            "deadbeef.example",
            "ec2-3-4-5-6.compute-1.amazonaws.com",
        ] {
            assert!(!resolves_to_private(name), "{name}");
        }
    }
}
