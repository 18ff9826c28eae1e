//! `[orloj]`: the resources that the daemon makes agent cards of, and where their server is reached.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use url::Url;

use super::keys::{OrNone, table};
use super::value::Base;

table! {
    /// What the daemon makes agent cards of. By default it makes none.
    #[derive(Clone, Debug, PartialEq, Eq)]
    config OrlojConfig;
    /// `[orloj]`, as one source names its keys.
    layer OrlojLayer;

    /// YAML files with resources.
    resources: Vec<PathBuf> = Vec::new();
    /// Where the server is reached; overrides the resources.
    base_url: Option<BaseUrl> = None, [with = "OrNone::<Base>"];
}

/// Where an Orloj server is reached: an `http` or `https` URL without user info, query and fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl(String);

impl FromStr for BaseUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "expected a URL such as https://orloj.example, without user, query and fragment";
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

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::{Config, Layer};

    #[test]
    fn every_key_is_read_and_written_and_an_empty_url_is_none() {
        let read = |text: &str| Config::default().with([Layer::from_toml(text, "f.toml").unwrap()]).unwrap();
        let config = read("[orloj]\nresources = [\"a.yaml\"]\nbase-url = \"https://orloj.example/x/\"\n");
        assert_eq!(config.orloj.resources, [Path::new("a.yaml")]);
        assert_eq!(config.orloj.base_url.as_ref().map(ToString::to_string).as_deref(), Some("https://orloj.example/x"));
        assert_eq!(Config::default().with([Layer::of(&config)]).unwrap(), config);
        assert_eq!(Config::default().with([Layer::of(&Config::default())]).unwrap(), Config::default());
        let none = Layer::from_toml("[orloj]\nbase-url = \"\"\n", "f.toml").unwrap();
        assert_eq!(config.with([none]).unwrap().orloj.base_url, None);
    }

    #[test]
    fn a_base_url_holds_no_credential_and_no_query() {
        for text in
            ["https://u:pw@a.example", "https://a.example?k=1", "https://a.example/#f", "ftp://a.example", "a", ""]
        {
            assert!(text.parse::<super::BaseUrl>().is_err(), "{text}");
        }
    }
}
