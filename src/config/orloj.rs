//! `[orloj]`: the resources that the daemon makes agent cards of, and where their server is reached.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::generate::BaseUrl;

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
}
