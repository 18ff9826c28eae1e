//! `[telemetry]`: where the daemon sends its traces.

use super::BaseUrl;
use super::keys::{OrNone, forms, table};

table! {
    /// Where the daemon sends its traces. By default nowhere.
    #[derive(Clone, Debug, PartialEq, Eq)]
    config TelemetryConfig;
    /// `[telemetry]` in one source.
    layer TelemetryLayer;

    /// The base URL of an OTLP/HTTP collector, to which the path `/v1/traces` is appended. It receives one trace per
    /// resolution.
    otlp: Option<BaseUrl> = None, [with = "OrNone::<Collector>"];
}

forms! {
    Collector(BaseUrl) = parse_collector, ToString::to_string;
}

fn parse_collector(text: &str) -> Result<BaseUrl, String> {
    let expected = || "expected a URL such as http://127.0.0.1:4318 without user, query and fragment".to_owned();
    text.parse().map_err(|_| expected())
}

#[cfg(test)]
mod tests {
    use crate::config::testing::read;

    #[test]
    fn a_collector_has_a_url_without_secrets() {
        let collector = |text: &str| {
            let config = read(&format!("[telemetry]\notlp = \"{text}\"")).map_err(|error| error.to_string())?;
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
