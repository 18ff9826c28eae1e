//! `[sign]`: the key and the issuer of signed verdicts.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize};

use super::text;
use super::value::parse_issuer;

/// The key and the issuer of signed verdicts. By default nothing is signed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct SignConfig {
    /// File with the private key. Without it, nothing is signed.
    #[serde(with = "text::or_empty")]
    pub key: Option<PathBuf>,
    /// `iss` of signed verdicts.
    #[serde(serialize_with = "text::or_empty::serialize", deserialize_with = "deserialize_issuer")]
    pub issuer: Option<String>,
    /// Files with public keys to publish besides that of the signing key: earlier keys and the next one.
    pub publish: Vec<PathBuf>,
}

fn deserialize_issuer<'de, D: Deserializer<'de>>(d: D) -> Result<Option<String>, D::Error> {
    text::or_empty::deserialize_unless_empty(d, parse_issuer)
}

#[cfg(test)]
mod tests {
    use crate::config::testing::parse_over_defaults;
    use crate::config::{Config, ConfigError, ConfigLayer};

    #[test]
    fn every_key_is_read_and_written() {
        let text = "[sign]\nkey = \"k.pem\"\nissuer = \"https://a.example\"\npublish = [\"old.json\"]\n";
        let config = parse_over_defaults(text).unwrap();
        assert_eq!(config.sign.issuer.as_deref(), Some("https://a.example"));
        assert_eq!(Config::default().with_layers([ConfigLayer::from_config(&config).unwrap()]).unwrap(), config);
        assert_eq!(
            Config::default().with_layers([ConfigLayer::from_config(&Config::default()).unwrap()]).unwrap(),
            Config::default()
        );
    }

    #[test]
    fn a_key_needs_an_issuer_and_published_keys_a_key() {
        let key = |result: Result<Config, ConfigError>| match result {
            Err(ConfigError::Conflict { key, .. }) => key,
            other => panic!("{other:?}"),
        };
        assert_eq!(key(parse_over_defaults("[sign]\nkey = \"k.pem\"\n")), "sign.issuer");
        assert_eq!(key(parse_over_defaults("[sign]\npublish = [\"old.json\"]\n")), "sign.publish");
        assert!(parse_over_defaults("[sign]\nissuer = \"a b\"\n").is_err());
        assert!(parse_over_defaults("[sign]\nissuer = \"https://a.example\"\n").is_ok(), "the key may come as a flag");
    }

    #[test]
    fn the_sandbox_refuses_to_sign() {
        let text = "world = \"sandbox\"\nchain-id = 31337\nrpc = [\"http://127.0.0.1:1\"]\n\
            [sign]\nkey = \"k.pem\"\nissuer = \"https://a.example\"\n";
        let error = parse_over_defaults(text).unwrap_err().to_string();
        assert!(error.starts_with("sign.key: the sandbox signs nothing"), "{error}");
    }
}
