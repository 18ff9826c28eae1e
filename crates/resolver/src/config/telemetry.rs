//! `[telemetry]`: where the daemon sends its traces.

use serde::{Deserialize, Deserializer, Serialize};

use super::{PublicBaseUrl, text};

/// Where the daemon sends its traces. By default nowhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TelemetryConfig {
    /// The base URL of an OTLP/HTTP collector, to which the path `/v1/traces` is appended. It receives one trace per
    /// resolution.
    #[serde(serialize_with = "text::or_empty::serialize", deserialize_with = "deserialize_collector")]
    pub otlp: Option<PublicBaseUrl>,
}

fn deserialize_collector<'de, D: Deserializer<'de>>(d: D) -> Result<Option<PublicBaseUrl>, D::Error> {
    const EXPECTED: &str = "expected a URL such as http://127.0.0.1:4318 without user, query and fragment";
    text::or_empty::deserialize_unless_empty(d, |text| text.parse().map_err(|_| EXPECTED.to_owned()))
}

#[cfg(test)]
mod tests {
    use crate::config::testing::parse_over_defaults;

    #[test]
    fn a_collector_has_a_url_without_secrets() {
        let collector = |text: &str| {
            let config =
                parse_over_defaults(&format!("[telemetry]\notlp = \"{text}\"")).map_err(|error| error.to_string())?;
            Ok::<_, String>(config.telemetry.otlp.map(|url| url.to_string()))
        };
        assert_eq!(collector("http://127.0.0.1:4318/"), Ok(Some("http://127.0.0.1:4318".to_owned())));
        assert_eq!(collector(""), Ok(None));
        for bad in ["127.0.0.1:4318", "grpc://a.example", "https://u:SECRET@a.example", "https://a.example?k=SECRET"] {
            let error = collector(bad).expect_err(bad);
            assert!(error.contains("http://127.0.0.1:4318") && !error.contains("SECRET"), "{error}");
        }
    }
}
