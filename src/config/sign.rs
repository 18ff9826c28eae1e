//! `[sign]`: the key that verdicts are signed with, and in whose name.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize};

/// Longest issuer, in bytes: a host name or a URL.
const MAX_ISSUER_BYTES: usize = 255;

/// The key that verdicts are signed with, and in whose name. By default nothing is signed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignConfig {
    /// File with the private key; without it nothing is signed.
    pub key: Option<PathBuf>,
    /// `iss` of signed verdicts.
    pub issuer: Option<String>,
    /// Files with public keys that are published beside the one that signs: those before it, and the next.
    pub publish: Vec<PathBuf>,
}

/// `[sign]`, as far as a layer names its keys. An empty value says that there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
#[non_exhaustive]
pub struct SignLayer {
    /// File with the private key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// `iss` of signed verdicts.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "issuer")]
    pub issuer: Option<String>,
    /// Files with further public keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publish: Option<Vec<PathBuf>>,
}

impl SignLayer {
    pub(super) fn over(self, below: SignConfig) -> SignConfig {
        SignConfig {
            key: self.key.map_or(below.key, |key| Some(key).filter(|key| !key.as_os_str().is_empty())),
            issuer: self.issuer.map_or(below.issuer, |issuer| Some(issuer).filter(|issuer| !issuer.is_empty())),
            publish: self.publish.unwrap_or(below.publish),
        }
    }

    /// The layer that makes `config` out of any other.
    pub(super) fn of(config: &SignConfig) -> Self {
        Self {
            key: Some(config.key.clone().unwrap_or_default()),
            issuer: Some(config.issuer.clone().unwrap_or_default()),
            publish: Some(config.publish.clone()),
        }
    }

    /// Changes each path that is one.
    pub(super) fn each_path(&mut self, change: impl FnMut(&mut PathBuf)) {
        let paths = self.key.iter_mut().chain(self.publish.iter_mut().flatten());
        paths.filter(|path| path.as_path() != Path::new("")).for_each(change);
    }
}

/// An issuer: at most 255 visible ASCII characters, such as a URL.
///
/// # Errors
/// Says what was expected.
pub fn parse_issuer(s: &str) -> Result<String, String> {
    let good = (1..=MAX_ISSUER_BYTES).contains(&s.len()) && s.bytes().all(|byte| byte.is_ascii_graphic());
    if good {
        return Ok(s.to_owned());
    }
    Err(format!("expected an issuer such as https://clresolve.example: at most {MAX_ISSUER_BYTES} visible characters"))
}

fn issuer<'de, D: Deserializer<'de>>(d: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(d)?;
    if text.is_empty() {
        return Ok(Some(text));
    }
    parse_issuer(&text).map(Some).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, ConfigError, Layer};

    fn read(text: &str) -> Result<Config, ConfigError> {
        Config::default().with([Layer::from_toml(text, "f.toml")?])
    }

    #[test]
    fn every_key_is_read_and_written() {
        let text = "[sign]\nkey = \"k.pem\"\nissuer = \"https://a.example\"\npublish = [\"old.json\"]\n";
        let config = read(text).unwrap();
        assert_eq!(config.sign.issuer.as_deref(), Some("https://a.example"));
        assert_eq!(Config::default().with([Layer::of(&config)]).unwrap(), config);
        assert_eq!(Config::default().with([Layer::of(&Config::default())]).unwrap(), Config::default());
    }

    #[test]
    fn a_key_needs_an_issuer_and_published_keys_a_key() {
        let key = |result: Result<Config, ConfigError>| match result {
            Err(ConfigError::Conflict { key, .. }) => key,
            other => panic!("{other:?}"),
        };
        assert_eq!(key(read("[sign]\nkey = \"k.pem\"\n")), "sign.issuer");
        assert_eq!(key(read("[sign]\npublish = [\"old.json\"]\n")), "sign.publish");
        assert!(read("[sign]\nissuer = \"a b\"\n").is_err());
        assert!(read("[sign]\nissuer = \"https://a.example\"\n").is_ok(), "the key may come as a flag");
    }

    #[test]
    fn the_sandbox_refuses_to_sign() {
        let text = "world = \"sandbox\"\nchain-id = 31337\nrpc = [\"http://127.0.0.1:1\"]\n\
            [sign]\nkey = \"k.pem\"\nissuer = \"https://a.example\"\n";
        let error = read(text).unwrap_err().to_string();
        assert!(error.starts_with("sign.key: the sandbox signs nothing"), "{error}");
    }
}
