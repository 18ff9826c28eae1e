//! Private addresses (CL-32), in the authorities of URLs and as whole tokens.

use std::net::{IpAddr, Ipv4Addr};

use super::{Marks, Separators};
use clresolve_core::address::{HostName, HostNameError, is_public_ip};

/// Longest token that is read as an address, in bytes: the longest IPv6 text with brackets, zone and port is shorter.
const MAX_TOKEN_BYTES: usize = 80;

/// Schemes whose authority is not a host of the internet.
const HOSTLESS: [&str; 6] = ["ipfs", "ipns", "x402", "did", "urn", "data"];

/// The first private address in `text`.
///
/// A URL's host counts when it is not public. Outside of URLs an address counts as a whole token, and a private host
/// name as the whole text or with a port: in prose, "localhost" is a word, and `10.0.0.0/8` is a range.
pub(super) fn find(text: &str, marks: Marks) -> Option<String> {
    if !marks.any(Marks::COLON | Marks::DOT) {
        return (text.eq_ignore_ascii_case("localhost")).then(|| text.to_owned());
    }
    in_urls(text, marks)
        .or_else(|| is_private_host(text).then_some(text))
        .or_else(|| in_tokens(text, marks))
        .map(str::to_owned)
}

fn in_urls(text: &str, marks: Marks) -> Option<&str> {
    if !marks.any(Marks::COLON) {
        return None;
    }
    let mut seen = 0;
    text.match_indices("://").find_map(|(at, mark)| {
        let scheme = text[seen..at].rsplit(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c))).next()?;
        seen = at + mark.len();
        let host = host(&text[seen..]);
        let private = if HOSTLESS.iter().any(|other| scheme.eq_ignore_ascii_case(other)) {
            is_private_host(host) || is_local(host)
        } else {
            is_unreachable(host)
        };
        private.then_some(host)
    })
}

/// The host of an authority that `rest` begins with: without user info and port.
fn host(rest: &str) -> &str {
    const END: Separators = Separators::ascii(b"/?#\\\"'`<>()|");
    let authority = END.first(rest);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    without_port(host)
}

fn without_port(host: &str) -> &str {
    match host.strip_prefix('[').and_then(|inner| inner.find(']')) {
        Some(end) => &host[..end + 2],
        None => match host.rsplit_once(':') {
            Some((name, port)) if !name.contains(':') && port.bytes().all(|b| b.is_ascii_digit()) => name,
            _ => host,
        },
    }
}

fn in_tokens(text: &str, marks: Marks) -> Option<&str> {
    const TOKENS: Separators = Separators::ascii(b",;\"'`()<>=|{}").and_all_else();
    if !marks.any(Marks::DIGIT) || !may_hold_address(text) {
        return None;
    }
    let mut tokens = TOKENS.split(text);
    tokens.find_map(|token| in_token(token.trim_end_matches(['.', ':', '!', '?'])))
}

/// Whether a text can hold an address outside of URLs: three dots among digits, two colons in a row, or a colon before
/// a digit, as an IPv6 group or a port has it. Most texts cannot, and are not cut into tokens.
fn may_hold_address(text: &str) -> bool {
    let (mut dots, mut before) = (0, 0);
    text.bytes().any(|byte| {
        dots = match byte {
            b'.' => dots + 1,
            b'0'..=b'9' => dots,
            _ => 0,
        };
        let colon = before == b':' && (byte == b':' || byte.is_ascii_digit());
        before = byte;
        colon || dots == 3
    })
}

fn in_token(token: &str) -> Option<&str> {
    if let Some(address) = in_multiaddr(token) {
        return is_local(address).then_some(address);
    }
    let token = token.trim_start_matches("//");
    let token = token.rsplit_once('@').map_or(token, |(_, host)| host);
    let (host, rest) = token.split_once('/').unwrap_or((token, ""));
    let range = !rest.is_empty() && rest.len() <= 3 && rest.bytes().all(|b| b.is_ascii_digit());
    if range || host.len() < "::1".len() || host.len() > MAX_TOKEN_BYTES {
        return None;
    }
    let bare = without_port(host);
    let named = bare.len() < host.len() && is_private_host(bare);
    (named || is_local(bare)).then_some(bare)
}

/// The address in `/ip4/127.0.0.1/tcp/4001`.
fn in_multiaddr(token: &str) -> Option<&str> {
    let rest = token.strip_prefix("/ip4/").or_else(|| token.strip_prefix("/ip6/"))?;
    rest.split('/').next()
}

/// Whether the host of a URL is one that nobody outside its own network can reach. What is no host at all, such as a
/// placeholder, is a defect of another kind.
fn is_unreachable(host: &str) -> bool {
    let parsed = match host.split_once('%') {
        Some((address, _zone)) if host.starts_with('[') => HostName::parse(&format!("{address}]")),
        _ => HostName::parse(host),
    };
    match parsed {
        Ok(_) | Err(HostNameError::Malformed) => false,
        Err(HostNameError::IpLiteral(ip)) => !is_public_ip(ip),
        Err(HostNameError::NotPublic) => true,
    }
}

/// Whether `host` is a private host name and nothing more. A single label is one only if it is `localhost`: with a dot
/// behind it, it is a sentence of one word.
fn is_private_host(host: &str) -> bool {
    let name = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'.';
    let labels = host.strip_suffix('.').unwrap_or(host);
    (labels.contains('.') || labels.eq_ignore_ascii_case("localhost"))
        && host.bytes().all(name)
        && HostName::parse(host) == Err(HostNameError::NotPublic)
}

/// Whether `token` is an address of a host's own network: loopback, private, shared, link-local, unique-local or
/// unspecified. Narrower than "not public", for outside of URLs an address is only suspected.
fn is_local(token: &str) -> bool {
    let address = token.trim_start_matches('[').trim_end_matches(']');
    let address = address.split_once('%').map_or(address, |(address, _zone)| address);
    let starts = address.as_bytes().first().is_some_and(|b| b.is_ascii_hexdigit() || *b == b':');
    starts
        && address.parse::<IpAddr>().is_ok_and(|address| match address.to_canonical() {
            IpAddr::V4(v4) => v4_is_local(v4),
            IpAddr::V6(v6) => v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local(),
        })
}

fn v4_is_local(address: Ipv4Addr) -> bool {
    let shared = address.octets()[0] == 100 && address.octets()[1] & 0xc0 == 64;
    address.is_loopback() || address.is_private() || address.is_link_local() || address.is_unspecified() || shared
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Option<String> {
        find(text, Marks::of(text))
    }

    #[test]
    fn private_hosts_of_urls() {
        for (url, host) in [
            ("http://localhost:8080/x", "localhost"),
            ("see https://10.0.0.7/a for more", "10.0.0.7"),
            ("https://user@192.168.1.1:443", "192.168.1.1"),
            ("wss://[::1]:9000/ws", "[::1]"),
            ("https://2130706433/", "2130706433"),
            ("http://0x7f.1/", "0x7f.1"),
            ("https://db.internal/x", "db.internal"),
            ("http://printer/", "printer"),
            ("https://169.254.169.254/latest/meta-data", "169.254.169.254"),
            ("https://127.0.0.1\\@commandlayer.org/", "127.0.0.1"),
            ("x402://localhost/summarize/v1", "localhost"),
            ("x402://127.0.0.1/summarize/v1", "127.0.0.1"),
            ("a https://commandlayer.org b http://127.1/", "127.1"),
            ("grpc://[fd00::5]:50051", "[fd00::5]"),
        ] {
            assert_eq!(text(url).as_deref(), Some(host), "{url}");
        }
    }

    #[test]
    fn whole_tokens() {
        for (token, host) in [
            ("127.0.0.1", "127.0.0.1"),
            ("listens on 10.1.2.3, port 80", "10.1.2.3"),
            ("172.16.0.5:8080/api", "172.16.0.5"),
            ("localhost", "localhost"),
            ("localhost:3000", "localhost"),
            ("at localhost:3000/x", "localhost"),
            ("db.internal", "db.internal"),
            ("::1", "::1"),
            ("[fe80::1%eth0]:80", "[fe80::1%eth0]"),
            ("host=192.168.0.9", "192.168.0.9"),
            ("/ip4/127.0.0.1/tcp/4001", "127.0.0.1"),
            ("//10.0.0.1/share", "10.0.0.1"),
        ] {
            assert_eq!(text(token).as_deref(), Some(host), "{token}");
        }
    }

    #[test]
    fn public_hosts_ranges_words_and_other_things_pass() {
        for public in [
            "https://commandlayer.org/x",
            "https://1.1.1.1/",
            "ipfs://bafybeigvf6nkzws7dblos74dqqjkguwkrwn4a2c27ieygoxmgofyzdkz6m/commons/x",
            "https://ipfs.io/ipfs/COMMERCIAL_SCHEMAS_CID/commercial/x",
            "x402://summarizeagent.eth/summarize/v1",
            "refuses localhost and 10.0.0.0/8, 127.0.0.0/8, fc00::/7",
            "version 1.2.3.4",
            "mask 255.255.255.0",
            "std::io, ab::cd, 12:30:45",
            "my.local.shop.example.org",
            "eip155:1",
            "10.0.19041.1",
            "application/json",
            "summarize.local-files",
            "home",
            "Another.",
            "Internal.",
        ] {
            assert_eq!(text(public), None, "{public}");
        }
    }
}
