//! The URL of a seller, as a person types it.

use std::str::FromStr;

use clresolve_core::fetch::EgressViolation;
use clresolve_egress::UntrustedUrl;
use clresolve_payment::check::WebOrigin;
use url::Url;

use crate::fetch::https::URL_LIMIT;

/// The URL of a seller: https, or plain http to this machine. It has no credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SellerUrl(Url);

/// Why a text is not the URL of a seller. The error repeats no part of the text, which may contain a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SellerUrlError {
    /// Not an absolute URL, or one that parsers read differently.
    #[error("expected the URL of a seller, such as https://api.example/summarize")]
    NotUrl,
    /// Neither https, nor plain http to a loopback address.
    #[error("expected an https URL; plain http is for sellers on this machine")]
    Scheme,
    /// It has a user name or a password.
    #[error("expected a URL without a user name and a password")]
    Credentials,
    /// It is longer than any URL that is requested.
    #[error("expected a URL of at most {URL_LIMIT} bytes")]
    TooLong,
}

impl SellerUrl {
    /// The URL, without a fragment.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Host and port if the URL is plain http. It is requested only if `network.allow_hosts` contains them.
    pub fn plain_http_host(&self) -> Option<String> {
        let host = self.0.host_str().filter(|_| self.0.scheme() == "http")?;
        Some(format!("{host}:{}", self.0.port_or_known_default()?))
    }
}

impl FromStr for SellerUrl {
    type Err = SellerUrlError;

    fn from_str(text: &str) -> Result<Self, SellerUrlError> {
        let url = UntrustedUrl::parse(text, URL_LIMIT).map_err(|why| match why {
            EgressViolation::TooLong(_) => SellerUrlError::TooLong,
            _ => SellerUrlError::NotUrl,
        })?;
        let after_scheme = text.split_once("://").map_or("", |(_, rest)| rest);
        if after_scheme.split(['/', '?', '#']).next().is_some_and(|authority| authority.contains('@')) {
            return Err(SellerUrlError::Credentials);
        }
        let url = url.into_url();
        match url.scheme() {
            "https" => Ok(Self(url)),
            "http" if WebOrigin::from_url_text(url.as_str()).is_some() => Ok(Self(url)),
            _ => Err(SellerUrlError::Scheme),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seller_url_is_https_or_plain_http_to_this_machine() {
        for (text, url, plain) in [
            ("https://Shop.example/a?b=c#d", "https://shop.example/a?b=c", None),
            ("https://shop.example:8443", "https://shop.example:8443/", None),
            ("http://127.0.0.1:8403/a", "http://127.0.0.1:8403/a", Some("127.0.0.1:8403")),
            ("http://localhost/a", "http://localhost/a", Some("localhost:80")),
            ("https://shop.example/@a?b=https://c@d", "https://shop.example/@a?b=https://c@d", None),
        ] {
            let read: SellerUrl = text.parse().expect(text);
            assert_eq!((read.as_str(), read.plain_http_host().as_deref()), (url, plain));
        }
    }

    #[test]
    fn other_texts_are_refused_without_their_secrets() {
        let long = format!("https://shop.example/{}", "a".repeat(URL_LIMIT));
        for (text, error) in [
            ("", SellerUrlError::NotUrl),
            ("shop.example", SellerUrlError::NotUrl),
            ("https:shop.example", SellerUrlError::NotUrl),
            ("https://shop.example\\@thief.example/", SellerUrlError::NotUrl),
            ("https://shop.example/ ", SellerUrlError::NotUrl),
            ("http://shop.example/", SellerUrlError::Scheme),
            ("http://127.0.0.1.shop.example/", SellerUrlError::Scheme),
            ("ftp://shop.example/", SellerUrlError::Scheme),
            ("https://user:secret@shop.example/", SellerUrlError::Credentials),
            ("https://@shop.example/", SellerUrlError::Credentials),
            ("https://:@shop.example?a", SellerUrlError::Credentials),
            (&*long, SellerUrlError::TooLong),
        ] {
            assert_eq!(text.parse::<SellerUrl>(), Err(error), "{text}");
            assert!(!error.to_string().contains("secret"));
        }
    }
}
