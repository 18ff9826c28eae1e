//! The public base URL of a server.

use std::fmt;
use std::str::FromStr;

use url::Url;

/// The public base URL of a server: an `http` or `https` URL without user info, query or fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicBaseUrl(String);

impl FromStr for PublicBaseUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "expected a URL such as https://agent.example, without user info, query or fragment";
        let url = Url::parse(text).map_err(|_| EXPECTED.to_owned())?;
        let is_plain = ["http", "https"].contains(&url.scheme())
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none();
        if !is_plain {
            return Err(EXPECTED.to_owned());
        }
        Ok(Self(url.as_str().trim_end_matches('/').to_owned()))
    }
}

impl fmt::Display for PublicBaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_base_url_holds_no_credential_and_no_query() {
        for text in
            ["https://u:pw@a.example", "https://a.example?k=1", "https://a.example/#f", "ftp://a.example", "a", ""]
        {
            assert!(text.parse::<super::PublicBaseUrl>().is_err(), "{text}");
        }
    }
}
