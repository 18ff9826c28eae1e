//! Private addresses (CL-32): in URLs and hosts, and as numbers in prose.

mod local;
mod names;

use std::net::IpAddr;

use self::local::is_local_network_address;
use super::{
    CharacterClasses, TokenSeparators, colon_positions, ends_with_ignore_case, last_word, longest_matching_suffix,
    split_at_mark, starts_with_ignore_case,
};
use clresolve_core::address::{PublicHostName, PublicHostNameError, is_public_ip};

/// Maximum length of a token parsed as an address, in bytes. The longest IPv6 text with brackets, zone and port is
/// shorter.
const MAX_TOKEN_BYTES: usize = 80;

/// Maximum length of a host label, in bytes (RFC 1035).
const MAX_LABEL_BYTES: usize = 63;

/// Maximum length of a scheme, in bytes; no registered scheme in use is longer.
const MAX_SCHEME_BYTES: usize = 32;

/// Schemes whose authority is always a host, so that a single label such as `http://printer` is a private host. Each
/// part of a compound scheme such as `git+ssh` is looked up separately.
const NETWORK: [&str; 52] = [
    "http",
    "https",
    "ws",
    "wss",
    "ftp",
    "ftps",
    "sftp",
    "ssh",
    "git",
    "svn",
    "grpc",
    "grpcs",
    "tcp",
    "udp",
    "tls",
    "quic",
    "redis",
    "rediss",
    "valkey",
    "postgres",
    "postgresql",
    "mysql",
    "mariadb",
    "mongodb",
    "amqp",
    "amqps",
    "mqtt",
    "mqtts",
    "nats",
    "stomp",
    "ldap",
    "ldaps",
    "smtp",
    "smtps",
    "imap",
    "imaps",
    "smb",
    "nfs",
    "rsync",
    "telnet",
    "vnc",
    "rdp",
    "socks4",
    "socks5",
    "proxy",
    "stun",
    "turn",
    "rtmp",
    "rtsp",
    "sip",
    "coap",
    "bolt",
];

/// Schemes for which a URL parser reads `http:/a`, `http:\\a` and `http:a` as `http://a`.
const SPECIAL: [&str; 5] = ["http", "https", "ws", "wss", "ftp"];

/// Schemes that refer to a file or socket on the local machine.
const OWN_MACHINE: [&str; 5] = ["file", "unix", "http+unix", "https+unix", "npipe"];

/// Server accounts. After one of them and `@` comes a host, not a version.
const ACCOUNTS: [&str; 10] =
    ["root", "admin", "administrator", "ubuntu", "ec2-user", "git", "deploy", "user", "debian", "postgres"];

/// A private address in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PrivateAddressMatch<'t> {
    /// It occurs in a URL or as a host.
    Stated(&'t str),
    /// It is a number in prose and may mean something else.
    Mentioned(&'t str),
}

/// The first private address in `text`, the value of `member`. A stated address takes precedence over a mentioned one.
///
/// In a URL, every host that is not public counts. Elsewhere, an address or private host name counts if it is the
/// whole text or has a port or path. In prose, "localhost" is a word, `10.0.0.0/8` is a range, and `10.0.0.1` is only
/// mentioned. Members named for a version contain version numbers, not addresses.
pub(super) fn find_private_address<'t>(
    member: &str,
    text: &'t str,
    marks: CharacterClasses,
) -> Option<PrivateAddressMatch<'t>> {
    if !marks.has_any(CharacterClasses::COLON | CharacterClasses::DOT | CharacterClasses::ESCAPE) {
        return find_undotted_host(text)
            .or_else(|| private_service_name(member, text))
            .map(PrivateAddressMatch::Stated);
    }
    if let Some(stated) =
        find_private_host_in_urls(text, marks).or_else(|| private_host_as_whole_text(member, text, marks))
    {
        return Some(PrivateAddressMatch::Stated(stated));
    }
    find_private_address_in_tokens(member, text, marks)
}

/// `localhost`, `localhost/path` and `/dns4/localhost/tcp/80`, in a text without a dot or a colon.
fn find_undotted_host(text: &str) -> Option<&str> {
    let host = split_at_mark(text, b'/').map_or(text, |(host, _)| host);
    host.eq_ignore_ascii_case("localhost").then_some(host).or_else(|| find_private_host_in_multiaddr(text))
}

/// A single-label service name on a private network: `redis`, `db01`. The list is closed and applies only if the
/// member's name suggests nothing else, because such labels are also words or provider names.
fn private_service_name<'t>(member: &str, text: &'t str) -> Option<&'t str> {
    const MACHINES: [&str; 2] = ["host", "hostname"];
    const SERVICES: [&str; 26] = [
        "cassandra",
        "clickhouse",
        "consul",
        "database",
        "db",
        "elasticsearch",
        "etcd",
        "haproxy",
        "kafka",
        "mariadb",
        "memcached",
        "minio",
        "mongo",
        "mongodb",
        "mysql",
        "nats",
        "nginx",
        "opensearch",
        "pgbouncer",
        "postgres",
        "postgresql",
        "rabbitmq",
        "redis",
        "traefik",
        "valkey",
        "zookeeper",
    ];
    const ROLES: [&str; 12] = [
        "cluster",
        "dev",
        "main",
        "master",
        "primary",
        "prod",
        "replica",
        "secondary",
        "server",
        "service",
        "staging",
        "svc",
    ];
    // A cheap test first: most members are named for other things.
    let single = member.strip_suffix(['s', 'S']).unwrap_or(member);
    let may_name = MACHINES.iter().any(|word| ends_with_ignore_case(single, word));
    if !may_name || !ends_with_any_word(member, &MACHINES) || text.len() > MAX_LABEL_BYTES {
        return None;
    }
    let mut parts = text.split(['-', '_']).map(|part| part.trim_end_matches(|c: char| c.is_ascii_digit()));
    let is_service = |part: &str| SERVICES.contains(&part);
    let is_known = parts.clone().all(|part| part.is_empty() || is_service(part) || ROLES.contains(&part));
    (is_known && parts.any(is_service)).then_some(text)
}

fn find_private_host_in_urls(text: &str, marks: CharacterClasses) -> Option<&str> {
    if !marks.has_any(CharacterClasses::COLON) {
        return None;
    }
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    colon_positions(text).find_map(|at| {
        let rest = &text[at + 1..];
        let is_behind_scheme = text.as_bytes()[..at].last().is_some_and(|byte| fits(*byte));
        if !is_behind_scheme && !rest.starts_with("//") {
            return None;
        }
        let start = text.ceil_char_boundary(at.saturating_sub(MAX_SCHEME_BYTES));
        find_private_host_in_url(longest_matching_suffix(&text[start..at], fits), rest)
    })
}

/// The private host in a URL, given its scheme and the text after the colon.
fn find_private_host_in_url<'t>(scheme: &str, rest: &'t str) -> Option<&'t str> {
    let is = |list: &[&str]| list.iter().any(|known| scheme.eq_ignore_ascii_case(known));
    let after = rest.trim_start_matches(['/', '\\']);
    let slashes = &rest[..rest.len() - after.len()];
    if !slashes.is_empty() && is(&OWN_MACHINE) {
        let is_path = after.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '%' | '.' | '~'));
        return is_path.then(|| text_before_url_end(truncate_to_token_limit(after)));
    }
    if is(&SPECIAL) {
        if slashes.is_empty() {
            let host = authority_host(truncate_to_token_limit(after));
            return (is_local_network_address(host) || host.eq_ignore_ascii_case("localhost")).then_some(host);
        }
        let host = authority_host(after);
        return is_unreachable(host).then_some(host);
    }
    let host = authority_host(rest.strip_prefix("//")?);
    let private = if scheme.split('+').any(|part| NETWORK.iter().any(|known| part.eq_ignore_ascii_case(known))) {
        is_unreachable(host)
    } else {
        is_private_host(host) || is_local_network_address(host)
    };
    private.then_some(host)
}

/// The text before the next white space, quote or bracket.
fn text_before_url_end(rest: &str) -> &str {
    const END: TokenSeparators = TokenSeparators::ascii(b"\"'`<>()|");
    END.first_token(rest)
}

/// The start of `rest`, up to the maximum token length. The bound keeps repeated `file:/_`, which ends no token,
/// cheap.
fn truncate_to_token_limit(rest: &str) -> &str {
    &rest[..rest.floor_char_boundary(MAX_TOKEN_BYTES)]
}

/// The host of the authority at the start of `rest`, without user info and port.
fn authority_host(rest: &str) -> &str {
    const END: TokenSeparators = TokenSeparators::ascii(b"/?#\\\"'`<>()|");
    const LIST: TokenSeparators = TokenSeparators::ascii(b",;");
    let authority = END.first_token(rest);
    if rest[authority.len()..].starts_with('<') {
        // A placeholder such as `https://host:<port>/` or `https://user:<password>@host`.
        let is_password = || truncate_to_token_limit(&rest[authority.len()..]).contains(">@");
        if !authority.ends_with(':') || is_password() {
            return "";
        }
    }
    let authority = authority.trim_end_matches(['.', ',', ':', ';', '!', '}', '*', '_', '~']);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = LIST.first_token(host);
    let host = if host.starts_with('[') { host } else { host.trim_end_matches(']') };
    strip_port_if(host, |_, port| is_port(port) || is_port_placeholder(port))
}

/// A host outside of URLs, without its port. A placeholder counts as a port only after an address or `localhost`:
/// `ens:{name}` and `read.internal:*` mean something else.
fn strip_port(host: &str) -> &str {
    let is_address = |name: &str| name.parse::<IpAddr>().is_ok() || name.eq_ignore_ascii_case("localhost");
    strip_port_if(host, |name, port| is_port(port) || is_port_placeholder(port) && is_address(name))
}

fn strip_port_if(host: &str, is_port: impl Fn(&str, &str) -> bool) -> &str {
    match host.strip_prefix('[').and_then(|inner| inner.find(']')) {
        Some(end) => &host[..end + 2],
        None => {
            let Some((name, ports)) = split_at_mark(host, b':') else { return host };
            // An address may have a host port and a container port: `10.0.0.1:80:8080`.
            let are_two = || name.contains('.') && ports.split(':').all(|port| is_port(name, port));
            if is_port(name, ports) || are_two() { name } else { host }
        }
    }
}

/// A port number or a range of them.
fn is_port(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit() || b == b'-')
}

/// `{port}`, `$PORT`, `%d`, `*`, `PORT`.
fn is_port_placeholder(text: &str) -> bool {
    text.starts_with(['{', '$', '<', '[', '%', '*']) || text.eq_ignore_ascii_case("port")
}

/// A text that is exactly a private host name, with or without a port or path. In members named for a host, single
/// labels and all private suffixes count; elsewhere `unit.test` is a word.
fn private_host_as_whole_text<'t>(member: &str, text: &'t str, marks: CharacterClasses) -> Option<&'t str> {
    if marks.has_any(CharacterClasses::COLON) && text.contains("://") {
        return None;
    }
    let text = text.trim();
    let (host, path) = split_at_mark(text, b'/').map_or((text, None), |(host, path)| (host, Some(path)));
    if host.is_empty() || text.contains(char::is_whitespace) {
        return None;
    }
    let bare = strip_port(host);
    let has_port = bare.len() < host.len();
    let names_host = is_host_member(member);
    let label = || has_port && names_host && host.len() > bare.len() + 1 && is_service_label(bare);
    let certain = has_port || names_host || path.is_some_and(|path| !path.is_empty());
    let named = (certain || names::is_private_name(bare) && !is_dotted_word_member(member)) && is_private_host(bare);
    let is_range = path.is_some_and(|path| path.len() <= 3 && path.bytes().all(|b| b.is_ascii_digit()));
    let reserved = || !is_range && names_host && is_non_public_address(bare, has_port);
    (named || label() || reserved() || has_port && is_local_network_address(bare)).then_some(bare)
}

/// Whether `host` is a non-public address, in full or, before a port, in another notation that URL parsers accept:
/// `127.1`, `2130706433`. Without a port, such numbers mean something else, and `0.5:1` is a ratio.
fn is_non_public_address(host: &str, has_port: bool) -> bool {
    if let Ok(address) = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        return !is_public_ip(address);
    }
    match PublicHostName::parse(host) {
        Err(PublicHostNameError::IpLiteral(IpAddr::V4(v4))) => {
            has_port && v4.octets()[0] != 0 && !is_public_ip(v4.into())
        }
        _ => false,
    }
}

/// A single label with a letter, as used for services within a network.
fn is_service_label(name: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    name.bytes().all(fits) && name.bytes().any(|b| b.is_ascii_alphabetic())
}

fn find_private_address_in_tokens<'t>(
    member: &str,
    text: &'t str,
    marks: CharacterClasses,
) -> Option<PrivateAddressMatch<'t>> {
    const TOKENS: TokenSeparators = TokenSeparators::ascii(b",;\"'`()<>|{}&").with_non_ascii();
    let has_at = marks.has_any(CharacterClasses::AT);
    let is_suspect = text.starts_with("\\\\") || has_at;
    if !is_suspect && !may_hold_address(text) {
        return None;
    }
    let (mut mentioned, mut before, mut is_prose) = (None, "", false);
    for token in TOKENS.split(text) {
        match find_private_address_in_token(token.trim_end_matches(['.', ':', '!', '?']), before, marks) {
            Some(PrivateAddressMatch::Stated(address)) => return Some(PrivateAddressMatch::Stated(address)),
            Some(PrivateAddressMatch::Mentioned(address)) => {
                mentioned = mentioned.or(Some(address));
                // `parser@10.0.0.1` and `parser=10.0.0.1` are a package and its version.
                is_prose |=
                    has_at && token.contains('@') || marks.has_any(CharacterClasses::EQUALS) && token.contains('=');
            }
            None => is_prose = true,
        }
        before = token;
    }
    let address = mentioned?;
    match () {
        () if is_version_word(member) => None,
        () if !is_prose || is_host_member(member) => Some(PrivateAddressMatch::Stated(address)),
        () => Some(PrivateAddressMatch::Mentioned(address)),
    }
}

/// Whether a text can contain an address outside of URLs: three dots among digits, two consecutive colons, a colon
/// before a digit (IPv6 group or port), or a path after a private name. Most texts cannot, and are not tokenized.
fn may_hold_address(text: &str) -> bool {
    let (mut dots, mut before) = (0, 0);
    text.bytes().enumerate().any(|(at, byte)| {
        dots = match byte {
            b'.' => dots + 1,
            b'0'..=b'9' | b'x' | b'a'..=b'f' => dots,
            _ => 0,
        };
        let colon = before == b':' && (byte == b':' || byte.is_ascii_digit());
        before = byte;
        colon || dots == 3 || byte == b'/' && names::may_end_in_private_name(&text[..at])
    })
}

/// The private address in a token. `before` is the preceding token. `marks` describes the whole text: patterns that
/// need characters outside of it are skipped.
fn find_private_address_in_token<'t>(
    token: &'t str,
    before: &str,
    marks: CharacterClasses,
) -> Option<PrivateAddressMatch<'t>> {
    use PrivateAddressMatch::{Mentioned, Stated};
    if !may_name_host(token) {
        return None;
    }
    if let Some(address) = find_private_host_in_multiaddr(token) {
        return Some(Stated(address));
    }
    let assignment = marks.has_any(CharacterClasses::EQUALS).then(|| token.rsplit_once('=')).flatten();
    let is_assigned = assignment.is_some();
    let (assigned, token) = assignment.unwrap_or(("", token));
    if is_version_word(assigned) || is_version_word(before.trim_end_matches(':')) {
        return None;
    }
    let is_named = is_host_variable(assigned) || before.ends_with(':') && is_host_member(before.trim_end_matches(':'));
    let share = token.trim_start_matches(['/', '\\']);
    let is_share = token.len() >= share.len() + 2;
    let at = marks.has_any(CharacterClasses::AT).then(|| share.rsplit_once('@')).flatten();
    let (account, place) = at.map_or((None, share), |(user, host)| (Some(user), host));
    let slash = place.bytes().position(|byte| matches!(byte, b'/' | b'\\'));
    let (host, path) = match slash.map(|slash| (&place[..slash], &place[slash + 1..])) {
        Some((host, path)) => (account.and_then(|_| scp_host(host)).unwrap_or(host), path),
        None => (account.and_then(|_| scp_host(place)).unwrap_or(place), ""),
    };
    let is_range = !path.is_empty() && path.len() <= 3 && path.bytes().all(|b| b.is_ascii_digit());
    if is_range || host.len() > MAX_TOKEN_BYTES {
        return None;
    }
    let bare = strip_port(host);
    let is_placed = bare.len() < host.len() || is_named || is_share;
    if is_local_network_address(bare) {
        let has_path = !path.is_empty() && path.parse::<IpAddr>().is_err();
        let is_of_account = account.is_some_and(|user| host.len() < place.len() || ACCOUNTS.contains(&user));
        // Versions are never written like IPv6 addresses.
        let is_v6 = is_assigned && bare.contains("::");
        let is_stated = is_placed || has_path || is_of_account || is_v6;
        // `parser==10.0.0.1` and `>=10.0.0.1` compare versions.
        let is_compared = is_assigned && (assigned.is_empty() || assigned.ends_with(['=', '~', '!', '^', ':']));
        return match () {
            () if is_stated => Some(Stated(bare)),
            () if is_compared => None,
            () => Some(Mentioned(bare)),
        };
    }
    let has_path = !path.is_empty() && bare.contains('.') && names::is_private_name(bare);
    let is_host = (is_placed || has_path || account.is_some()) && is_private_host(bare);
    let is_unc = token.starts_with("\\\\") && !path.is_empty() && is_service_label(bare);
    (is_host || is_unc).then_some(Stated(bare))
}

/// A cheap test whether a token can name a host: it has a dot, two colons or a slash, or room for `localhost`.
fn may_name_host(token: &str) -> bool {
    token.len() >= "localhost".len() || token.contains(['.', '/', '\\']) || colon_positions(token).nth(1).is_some()
}

/// The host in `host:path`, the form of scp and git after an account.
fn scp_host(token: &str) -> Option<&str> {
    let (host, _) = token.split_once(':').filter(|(host, _)| !host.is_empty() && !host.starts_with('['))?;
    (!token[host.len() + 1..].contains(':')).then_some(host)
}

/// The address in `/ip4/127.0.0.1/tcp/4001`, and the name in `/dns4/localhost/tcp/4001`.
fn find_private_host_in_multiaddr(token: &str) -> Option<&str> {
    let (protocol, rest) = token.strip_prefix('/')?.split_once('/')?;
    let host = rest.split('/').next()?;
    let is_private = match protocol {
        "ip4" | "ip6" => is_local_network_address(host),
        "dns" | "dns4" | "dns6" | "dnsaddr" => is_private_host(host),
        _ => false,
    };
    is_private.then_some(host)
}

/// Whether a URL's host is unreachable from outside its own network. An invalid host, such as a placeholder, is
/// another kind of defect.
fn is_unreachable(host: &str) -> bool {
    let parsed = match host.split_once('%') {
        Some((address, _zone)) if host.starts_with('[') => PublicHostName::parse(&format!("{address}]")),
        _ => PublicHostName::parse(host),
    };
    match parsed {
        Ok(name) => names::resolves_to_private(name.as_str()),
        Err(PublicHostNameError::Malformed) => false,
        Err(PublicHostNameError::IpLiteral(ip)) => !is_public_ip(ip),
        Err(PublicHostNameError::NotPublic) => !is_placeholder_host(host),
    }
}

/// `host` in `http://host/path`, `your-host`: one label used as a placeholder.
fn is_placeholder_host(host: &str) -> bool {
    let is = |name: &&str| host.eq_ignore_ascii_case(name);
    !host.contains('.') && (["host", "hostname"].iter().any(is) || starts_with_ignore_case(host, "your-"))
}

/// Whether `host` is exactly a private host name. Of single labels only `localhost` counts: one followed by a dot is a
/// one-word sentence.
fn is_private_host(host: &str) -> bool {
    let name = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'.';
    let labels = host.strip_suffix('.').unwrap_or(host);
    if !host.bytes().all(name) || !(labels.contains('.') || labels.eq_ignore_ascii_case("localhost")) {
        return false;
    }
    match PublicHostName::parse(host) {
        Ok(name) => names::resolves_to_private(name.as_str()),
        Err(error) => error == PublicHostNameError::NotPublic,
    }
}

/// Words that denote hosts and addresses.
const HOST_WORDS: [&str; 27] = [
    "host", "hostname", "address", "addr", "ip", "server", "endpoint", "url", "uri", "origin", "domain", "gateway",
    "target", "upstream", "proxy", "listen", "bind", "node", "rpc", "peer", "broker", "homepage", "base", "website",
    "callback", "webhook", "ssh",
];

/// Minimum length of such a word that counts without a word boundary before it: `pip` is not an address.
const MIN_FUSED_BYTES: usize = 4;

/// Whether a member of this name holds a host or an address.
fn is_host_member(member: &str) -> bool {
    ends_with_any_word(member, &HOST_WORDS)
}

/// Whether a value assigned to this name is a host or an address: `PGHOST`, `HOST:`.
fn is_host_variable(name: &str) -> bool {
    let name = name.trim_end_matches(':');
    let is_end = |word: &&str| word.len() >= MIN_FUSED_BYTES && ends_with_ignore_case(name, word);
    is_host_member(name) || HOST_WORDS.iter().any(is_end)
}

/// Whether a member of this name holds dotted words: in `scopes`, `read.internal` is a permission.
fn is_dotted_word_member(member: &str) -> bool {
    const WORDS: [&str; 24] = [
        "scope",
        "permission",
        "role",
        "id",
        "key",
        "tag",
        "name",
        "type",
        "visibility",
        "namespace",
        "package",
        "topic",
        "event",
        "channel",
        "category",
        "module",
        "mode",
        "skill",
        "verb",
        "action",
        "level",
        "env",
        "environment",
        "stage",
    ];
    ends_with_any_word(member, &WORDS)
}

/// Whether the name denotes a version, as a member or as the word before a number.
fn is_version_word(member: &str) -> bool {
    ends_with_any_word(member, &["version", "ver", "v", "build", "release", "revision", "firmware"])
}

/// Whether the last word of a name is one of `words`, singular or plural.
fn ends_with_any_word(name: &str, words: &[&str]) -> bool {
    // None of these words ends in a digit.
    if !name.ends_with(|last: char| last.is_ascii_alphabetic()) {
        return false;
    }
    let word = last_word(name);
    let single = word.strip_suffix(['s', 'S']).unwrap_or(word);
    words.iter().any(|known| word.eq_ignore_ascii_case(known) || single.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stated(text: &str) -> Option<&str> {
        match find_private_address("", text, CharacterClasses::from_text(text)) {
            Some(PrivateAddressMatch::Stated(address)) => Some(address),
            _ => None,
        }
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
            ("http://127.0.0.1:<port>/mcp", "127.0.0.1"),
            ("http://localhost:{port}/", "localhost"),
            ("http://10.0.0.5:$PORT/run", "10.0.0.5"),
            ("ws://localhost:%d/ws", "localhost"),
            ("http://10.0.0.5:PORT", "10.0.0.5"),
        ] {
            assert_eq!(stated(url), Some(host), "{url}");
        }
    }

    #[test]
    fn whole_tokens() {
        for (token, host) in [
            ("127.0.0.1", "127.0.0.1"),
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
            ("127.0.0.1:5432:5432", "127.0.0.1"),
            ("maps 127.0.0.1::80/tcp", "127.0.0.1"),
            ("10.0.0.1:8080-8090", "10.0.0.1"),
            ("10.0.0.1:{port}/run", "10.0.0.1"),
            ("localhost:$PORT", "localhost"),
            ("localhost:*", "localhost"),
            ("localhost:${PORT:-8080}", "localhost"),
            ("sdk=10.0.0.1:80", "10.0.0.1"),
            ("PGHOST=10.0.0.5", "10.0.0.5"),
            ("MYSQLHOST=10.0.0.5", "10.0.0.5"),
            ("PGHOSTADDR=10.0.0.5", "10.0.0.5"),
            ("HOST:=10.0.0.5", "10.0.0.5"),
            ("DB=fd00::5", "fd00::5"),
        ] {
            assert_eq!(stated(token), Some(host), "{token}");
        }
    }

    /// In members named for a host, every address counts, as after a scheme.
    #[test]
    fn reserved_addresses_and_other_notations_where_a_host_stands() {
        let find = |member, text| find_private_address(member, text, CharacterClasses::from_text(text));
        for (text, host) in [
            ("198.18.0.1:8080", "198.18.0.1"),
            ("240.0.0.1/api", "240.0.0.1"),
            ("[ff02::1]:5353", "[ff02::1]"),
            ("127.1:8080/run", "127.1"),
            ("2130706433:8080", "2130706433"),
            ("203.0.113.9", "203.0.113.9"),
        ] {
            assert_eq!(find("endpoint", text), Some(PrivateAddressMatch::Stated(host)), "{text}");
            assert_eq!(find("note", text), None, "{text}");
        }
        for other in ["224.0.0.0/4", "0.5:1", "10:30", "0.5/min", "1.1.1.1:53", "[2606:4700:4700::1111]:53", "127.1"] {
            assert_eq!(find("target", other), None, "{other}");
        }
    }

    #[test]
    fn what_stands_for_a_port_is_one_only_behind_an_address() {
        for (member, text) in [
            ("url", "mailto:{address}"),
            ("target", "eip155:*"),
            ("uri", "ens:{name}"),
            ("scope", "read.internal:*"),
            ("host", "redis:$PORT"),
        ] {
            assert_eq!(find_private_address(member, text, CharacterClasses::from_text(text)), None, "{text}");
        }
        assert_eq!(
            find_private_address("note", "pip=10.0.0.1", CharacterClasses::from_text(":=.")),
            Some(PrivateAddressMatch::Mentioned("10.0.0.1"))
        );
    }

    #[test]
    fn services_of_one_label_are_hosts_where_nothing_else_stands() {
        let find = |member, text: &'static str| find_private_address(member, text, CharacterClasses::from_text(text));
        for name in ["redis", "db01", "postgres-primary", "db-prod-2"] {
            assert_eq!(find("host", name), Some(PrivateAddressMatch::Stated(name)));
            assert_eq!(find("dbHostname", name), Some(PrivateAddressMatch::Stated(name)));
            assert_eq!(find("server", name), None);
        }
        for word in ["claude", "required", "server", "main-2", "ec2", "redis labs", "redis-cloud", "-", ""] {
            assert_eq!(find("host", word), None, "{word}");
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
            "Requires parser==10.0.0.1",
            "parser~=10.0.0.1",
            ">=10.0.0.1",
            "^10.0.0.1",
            "https://user:<password>@commandlayer.org/",
            "https://api.<region>.commandlayer.org:<port>/",
            "http://HOST:PORT/",
        ] {
            assert_eq!(find_private_address("", public, CharacterClasses::from_text(public)), None, "{public}");
        }
    }

    #[test]
    fn a_number_in_prose_is_mentioned_unless_a_host_is_stated_too() {
        let find = |member, text| find_private_address(member, text, CharacterClasses::from_text(text));
        for (text, address) in
            [("the parser 10.0.0.1 is new", "10.0.0.1"), ("listens on 10.1.2.3, port 80", "10.1.2.3")]
        {
            assert_eq!(find("description", text), Some(PrivateAddressMatch::Mentioned(address)), "{text}");
        }
        assert_eq!(find("note", "sdk=10.0.0.1"), Some(PrivateAddressMatch::Mentioned("10.0.0.1")));
        assert_eq!(find("host", "10.0.0.1 (first)"), Some(PrivateAddressMatch::Stated("10.0.0.1")));
        assert_eq!(find("note", "x 10.0.0.1 y http://10.0.0.2/"), Some(PrivateAddressMatch::Stated("10.0.0.2")));
        assert_eq!(find("note", "x 10.0.0.1 y 10.0.0.2:80"), Some(PrivateAddressMatch::Stated("10.0.0.2")));
        for (member, text) in [("parserVersion", "10.0.0.1"), ("note", "version 10.0.0.1"), ("note", "build=10.0.0.1")]
        {
            assert_eq!(find(member, text), None, "{text}");
        }
    }
}
