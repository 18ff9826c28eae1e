//! [`UntrustedUrl`]: a URL that a third party chose, parsed only if its text is unambiguous.
//!
//! The parser that browsers share (the WHATWG URL standard) repairs its input: it drops tabs and line ends, trims white
//! space, reads `\` as `/`, and needs no `//` before a host. A person who reads a record, a checker that compares it
//! and a client that requests it could then see three different URLs. This parser refuses such a text instead of
//! repairing it.

use url::Url;

use clresolve_core::fetch::EgressViolation;

/// An absolute URL that every parser reads alike. The guard decides whether it may be requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UntrustedUrl(Url);

impl UntrustedUrl {
    /// Parses `text`, of at most `limit` bytes. A fragment is dropped, because it is never sent.
    pub fn parse(text: &str, limit: usize) -> Result<Self, EgressViolation> {
        check_url_text(text, limit)?;
        Self::from_url(Url::parse(text).map_err(|_| EgressViolation::NotUrl)?, limit)
    }

    /// Resolves a `reference` from a response of this URL: absolute, `//host/path`, or a path.
    pub fn join(&self, reference: &str, limit: usize) -> Result<Self, EgressViolation> {
        check_url_text(reference, limit)?;
        Self::from_url(self.0.join(reference).map_err(|_| EgressViolation::NotUrl)?, limit)
    }

    /// A URL that this program built from already parsed parts.
    pub fn from_built_url(url: Url) -> Self {
        Self(url)
    }

    /// The parsed URL.
    pub fn as_url(&self) -> &Url {
        &self.0
    }

    /// The parsed URL.
    pub fn into_url(self) -> Url {
        self.0
    }

    fn from_url(mut url: Url, limit: usize) -> Result<Self, EgressViolation> {
        url.set_fragment(None);
        // Escaping can make the URL longer than the text.
        if url.as_str().len() > limit { Err(EgressViolation::TooLong(limit)) } else { Ok(Self(url)) }
    }
}

fn check_url_text(text: &str, limit: usize) -> Result<(), EgressViolation> {
    if text.len() > limit {
        return Err(EgressViolation::TooLong(limit));
    }
    if (text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') || !has_host_slashes(text))
        && !clresolve_core::mutant!("urls-are-repaired")
    {
        return Err(EgressViolation::Disguised);
    }
    Ok(())
}

/// Whether a text that names a host has exactly two slashes before it. Parsers also read `https:host`, `https:/host`,
/// `https:///host` and `///host` as URLs of `host`.
fn has_host_slashes(text: &str) -> bool {
    let after_scheme = ["https:", "http:"]
        .iter()
        .find_map(|scheme| text.get(..scheme.len()).filter(|start| start.eq_ignore_ascii_case(scheme)))
        .map(|start| &text[start.len()..]);
    match after_scheme {
        Some(rest) => rest.starts_with("//") && !rest.starts_with("///"),
        None => !text.starts_with("///"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 64;

    fn parse(text: &str) -> Result<String, EgressViolation> {
        UntrustedUrl::parse(text, LIMIT).map(|url| url.into_url().to_string())
    }

    #[test]
    fn reads_what_is_written() {
        assert_eq!(parse("https://a.example").as_deref(), Ok("https://a.example/"));
        assert_eq!(parse("HTTPS://A.example/x?y#z").as_deref(), Ok("https://a.example/x?y"));
        assert_eq!(parse("https://a.example/%20%5c"), Ok("https://a.example/%20%5c".to_owned()));
        assert_eq!(parse("file:///etc/passwd"), Ok("file:///etc/passwd".to_owned()), "the guard refuses the scheme");
        assert_eq!(parse("a.example/card.json"), Err(EgressViolation::NotUrl));
        assert_eq!(parse("https://"), Err(EgressViolation::NotUrl));
        assert_eq!(parse(&format!("https://a.example/{}", "x".repeat(LIMIT))), Err(EgressViolation::TooLong(LIMIT)));
        assert_eq!(parse(&format!("https://a.example/{}", "é".repeat(20))), Err(EgressViolation::TooLong(LIMIT)));
    }

    #[test]
    fn refuses_what_a_parser_would_repair() {
        for text in [
            " https://a.example/",
            "https://a.example/ ",
            "https://a.exa\tmple/",
            "https://a.example\n/",
            "ht\r\ntps://a.example/",
            "https://a.example/\0",
            "https://a.example/\u{a0}x",
            "https://a.example/\u{85}",
            "https:\\\\a.example/",
            "https:/\\a.example/",
            "https://a.example\\@b.example/",
            "https://a.example/x\\y",
            "https:a.example/",
            "https:/a.example/",
            "https:///a.example/",
            "HttpS:////a.example/",
            "http:a.example",
        ] {
            assert_eq!(parse(text), Err(EgressViolation::Disguised), "{text:?}");
        }
    }

    #[test]
    fn joins_references_under_the_same_rules() {
        let base = UntrustedUrl::parse("https://a.example/b/c", LIMIT).unwrap();
        let join = |reference: &str| base.join(reference, LIMIT).map(|url| url.into_url().to_string());
        for (reference, expected) in [
            ("d", "https://a.example/b/d"),
            ("/d#e", "https://a.example/d"),
            ("?d", "https://a.example/b/c?d"),
            ("#d", "https://a.example/b/c"),
            ("//d.example/e", "https://d.example/e"),
            ("https://d.example", "https://d.example/"),
            ("http://d.example", "http://d.example/"),
        ] {
            assert_eq!(join(reference).as_deref(), Ok(expected), "{reference}");
        }
        for reference in [
            "\\\\d.example",
            "/\\d.example",
            "///d.example",
            "https:d",
            "https:/d.example",
            "/d\t",
            "/ d",
            "//d.\nexample",
        ] {
            assert_eq!(join(reference), Err(EgressViolation::Disguised), "{reference:?}");
        }
        assert_eq!(join("https://["), Err(EgressViolation::NotUrl));
    }
}
