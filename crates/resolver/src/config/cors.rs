//! `[cors]`: the web origins whose pages may read the daemon's responses.

use clresolve_core::text::UntrustedText;
use serde::{Deserialize, Deserializer, Serialize};
use url::Url;

/// Matches every origin.
pub const ANY_ORIGIN: &str = "*";

/// The web origins whose pages may read the daemon's responses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CorsConfig {
    /// Origins such as `https://app.example`, or [`ANY_ORIGIN`] alone. Empty: none. The gate never sends CORS headers.
    #[serde(deserialize_with = "deserialize_cors_origins")]
    pub origins: Vec<String>,
}

fn deserialize_cors_origins<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<String>, D::Error> {
    let origins = Vec::<String>::deserialize(d)?;
    if origins.len() > 1 && origins.iter().any(|origin| origin == ANY_ORIGIN) {
        return Err(serde::de::Error::custom("* permits every origin, so it must be the only one"));
    }
    match origins.iter().find(|origin| *origin != ANY_ORIGIN && !is_serialized_origin(origin)) {
        Some(bad) => Err(serde::de::Error::custom(format!(
            "expected an origin such as https://app.example, as a browser writes it, found {}",
            UntrustedText::new(bad)
        ))),
        None => Ok(origins),
    }
}

/// Whether this is the exact form in which a browser sends `Origin` (RFC 6454, section 6.2).
fn is_serialized_origin(text: &str) -> bool {
    let is_written_so = |url: Url| url.origin().is_tuple() && url.origin().ascii_serialization() == text;
    !text.contains('*') && Url::parse(text).is_ok_and(is_written_so)
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, ConfigLayer};

    fn read(origins: &str) -> Result<Vec<String>, String> {
        let layer = ConfigLayer::from_toml(&format!("[cors]\norigins = {origins}"), "f.toml");
        let config = Config::default().with_layers([layer.map_err(|error| error.to_string())?]).unwrap();
        assert_eq!(Config::default().with_layers([ConfigLayer::from_config(&config).unwrap()]).unwrap(), config);
        Ok(config.cors.origins)
    }

    #[test]
    fn origins_are_written_as_browsers_write_them() {
        assert_eq!(Config::default().cors.origins, Vec::<String>::new());
        for good in [r#"["*"]"#, r#"["https://app.example", "http://localhost:3000"]"#, "[]"] {
            assert!(read(good).is_ok(), "{good}");
        }
        for bad in [
            r#"["*", "https://app.example"]"#,
            r#"["https://app.example/"]"#,
            r#"["https://App.example"]"#,
            r#"["https://app.example:443"]"#,
            r#"["app.example"]"#,
            r#"["null"]"#,
            r#"["https://*.app.example"]"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
