//! URI equivalence (RFC 3986, 6.2.2.1): scheme, host and percent-encodings are case-insensitive.

/// The part after `scheme://`. The scheme is compared without regard to case (RFC 3986, 3.1).
pub fn strip_scheme<'u>(uri: &'u str, scheme: &str) -> Option<&'u str> {
    let (written, rest) = uri.split_at_checked(scheme.len())?;
    rest.strip_prefix("://").filter(|_| written.eq_ignore_ascii_case(scheme))
}

/// Whether two URIs differ at most in the case of their case-insensitive parts.
pub fn are_equivalent_uris(a: &str, b: &str) -> bool {
    // Changing the case of ASCII keeps the length.
    a == b || a.len() == b.len() && a.eq_ignore_ascii_case(b) && normalize_uri_case(a) == normalize_uri_case(b)
}

/// The URI with scheme and host in lower case, and the hex digits of percent-encodings in upper case.
fn normalize_uri_case(uri: &str) -> String {
    let Some((scheme, rest)) = uri.split_once("://") else { return uri.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (user, host) = authority.rsplit_once('@').map_or(("", authority), |(user, host)| (user, host));
    let scheme = scheme.to_ascii_lowercase();
    // In these schemes, the host position contains a CID or a key, which is case-sensitive.
    let host = if matches!(&*scheme, "ipfs" | "ipns") { host.to_owned() } else { host.to_ascii_lowercase() };
    let mut same = format!("{scheme}://{user}@{host}");
    let mut encoded = 0;
    for c in path.chars() {
        same.push(if encoded > 0 { c.to_ascii_uppercase() } else { c });
        encoded = if c == '%' { 2 } else { usize::saturating_sub(encoded, 1) };
    }
    same
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_have_no_case() {
        for uri in ["ipfs://x", "IPFS://x", "iPfS://x"] {
            assert_eq!(strip_scheme(uri, "ipfs"), Some("x"), "{uri}");
        }
        for other in ["ipfs:/x", "ipfs:x", "ipfss://x", "ipf", "", "épfs://x", "ipns://x"] {
            assert_eq!(strip_scheme(other, "ipfs"), None, "{other}");
        }
    }

    #[test]
    fn only_case_without_meaning_is_ignored() {
        let uri = "https://cards.example/Agents/a%2Fb.json?Q=1";
        for same in [uri, "HTTPS://CARDS.example/Agents/a%2fb.json?Q=1"] {
            assert!(are_equivalent_uris(uri, same), "{same}");
        }
        for other in [
            "https://cards.example/agents/a%2Fb.json?Q=1",
            "https://cards.example/Agents/a%2Fb.json?q=1",
            "https://cards.example/Agents/a%2FB.json?Q=1",
            "https://cards.example:443/Agents/a%2Fb.json?Q=1",
            "http://cards.example/Agents/a%2Fb.json?Q=1",
        ] {
            assert!(!are_equivalent_uris(uri, other), "{other}");
        }
        assert!(are_equivalent_uris("IPFS://QmA/x", "ipfs://QmA/x"));
        assert!(!are_equivalent_uris("ipfs://QmA/x", "ipfs://qma/x"), "a CID has a case");
        assert!(!are_equivalent_uris("https://User@cards.example/", "https://user@cards.example/"));
        assert!(!are_equivalent_uris("Urn:x", "urn:X"), "the rest of a URI without an authority has a case");
    }
}
