//! `[orloj]`: the resources from which the daemon generates agent cards, and the URL of their server.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{PublicBaseUrl, text};

/// The resources from which the daemon generates agent cards. By default there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct OrlojCardGenerationConfig {
    /// YAML files with resources.
    pub resources: Vec<PathBuf>,
    /// The URL of the server. Overrides the resources.
    #[serde(with = "text::or_empty")]
    pub base_url: Option<PublicBaseUrl>,
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::{Config, ConfigLayer};

    #[test]
    fn every_key_is_read_and_written_and_an_empty_url_is_none() {
        let read =
            |text: &str| Config::default().with_layers([ConfigLayer::from_toml(text, "f.toml").unwrap()]).unwrap();
        let config = read("[orloj]\nresources = [\"a.yaml\"]\nbase-url = \"https://orloj.example/x/\"\n");
        assert_eq!(config.orloj.resources, [Path::new("a.yaml")]);
        assert_eq!(config.orloj.base_url.as_ref().map(ToString::to_string).as_deref(), Some("https://orloj.example/x"));
        assert_eq!(Config::default().with_layers([ConfigLayer::from_config(&config).unwrap()]).unwrap(), config);
        assert_eq!(
            Config::default().with_layers([ConfigLayer::from_config(&Config::default()).unwrap()]).unwrap(),
            Config::default()
        );
        let none = ConfigLayer::from_toml("[orloj]\nbase-url = \"\"\n", "f.toml").unwrap();
        assert_eq!(config.with_layers([none]).unwrap().orloj.base_url, None);
    }
}
