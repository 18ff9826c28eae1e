//! `[orloj]`: the resources that the daemon makes agent cards of, and where their server is reached.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use url::Url;

/// What the daemon makes agent cards of. By default it makes none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OrlojConfig {
    /// YAML files with resources.
    pub resources: Vec<PathBuf>,
    /// Where the server is reached; goes before what the resources say.
    pub base_url: Option<BaseUrl>,
}

/// `[orloj]`, as far as a layer names its keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
#[non_exhaustive]
pub struct OrlojLayer {
    /// YAML files with resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Vec<PathBuf>>,
    /// Where the server is reached; empty is what the resources say.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text", deserialize_with = "from_text")]
    pub base_url: Option<Option<BaseUrl>>,
}

impl OrlojLayer {
    pub(super) fn lay(self, over: &mut OrlojConfig) {
        if let Some(resources) = self.resources {
            over.resources = resources;
        }
        if let Some(base_url) = self.base_url {
            over.base_url = base_url;
        }
    }

    /// The layer that makes `config` out of any other.
    pub(super) fn of(config: &OrlojConfig) -> Self {
        Self { resources: Some(config.resources.clone()), base_url: Some(config.base_url.clone()) }
    }
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

fn as_text<S: Serializer>(url: &Option<Option<BaseUrl>>, s: S) -> Result<S::Ok, S::Error> {
    let url = url.as_ref().and_then(Option::as_ref);
    s.serialize_str(&url.map(ToString::to_string).unwrap_or_default())
}

fn from_text<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Option<BaseUrl>>, D::Error> {
    let text = String::deserialize(d)?;
    if text.is_empty() {
        return Ok(Some(None));
    }
    text.parse().map(|url| Some(Some(url))).map_err(serde::de::Error::custom)
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
