//! Recognises text that people enter instead of an ENS name, such as a URL, and suggests the name that they meant.

/// Kind of text that people enter instead of an ENS name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NonNameInputKind {
    /// An entry of an agent (`x402://`).
    Entry,
    /// Another URL.
    Url,
    /// An Ethereum address.
    Address,
    /// A name with spaces around it or a dot at its end.
    Padded,
}

/// A text that is not an ENS name, and the name that was probably meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NonNameInputHint<'t> {
    /// The kind of the text.
    pub what: NonNameInputKind,
    /// The name that was probably meant. Foreign text, not normalised.
    pub meant: Option<&'t str>,
}

impl<'t> NonNameInputHint<'t> {
    /// The hint for `text`. `None` if `text` looks like an ENS name; this does not check its normal form.
    pub fn from_text(text: &'t str) -> Option<Self> {
        let hint = |what, name: &'t str| Some(Self { what, meant: Some(name).filter(|name| name.contains('.')) });
        if let Some((scheme, rest)) = text.trim().split_once("://") {
            let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
            let host = authority.rsplit('@').next().unwrap_or_default().split(':').next().unwrap_or_default();
            let what =
                if scheme.eq_ignore_ascii_case("x402") { NonNameInputKind::Entry } else { NonNameInputKind::Url };
            return hint(what, host);
        }
        if is_ethereum_address(text.trim()) {
            return Some(Self { what: NonNameInputKind::Address, meant: None });
        }
        let bare = text.trim().trim_end_matches('.');
        if bare == text || bare.is_empty() { None } else { hint(NonNameInputKind::Padded, bare) }
    }
}

fn is_ethereum_address(text: &str) -> bool {
    text.strip_prefix("0x").is_some_and(|digits| digits.len() == 40 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_get_no_hint() {
        for name in ["summarizeagent.eth", "-", "", ".", " ", "foo", "a..eth", "0x12.eth"] {
            assert_eq!(NonNameInputHint::from_text(name), None, "{name}");
        }
    }

    #[test]
    fn what_is_no_name_is_recognised_with_the_name_that_was_meant() {
        let address = "0x00000000000C2E074eC69A0dFb2997BA6C7d2e1e";
        for (text, what, meant) in [
            ("x402://a.eth/do/v1", NonNameInputKind::Entry, Some("a.eth")),
            ("HTTPS://user:secret@a.example:8443/card.json", NonNameInputKind::Url, Some("a.example")),
            ("https:///card.json", NonNameInputKind::Url, None),
            ("http://[::1]:8080/", NonNameInputKind::Url, None),
            (address, NonNameInputKind::Address, None),
            ("a.eth.", NonNameInputKind::Padded, Some("a.eth")),
            (" a.eth\n", NonNameInputKind::Padded, Some("a.eth")),
            ("foo.", NonNameInputKind::Padded, None),
        ] {
            assert_eq!(NonNameInputHint::from_text(text), Some(NonNameInputHint { what, meant }), "{text}");
        }
    }
}
