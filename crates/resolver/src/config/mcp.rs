//! `[mcp]`: which clients the daemon answers at `/mcp`.

use clresolve_core::text::UntrustedText;
use serde::{Deserialize, Deserializer, Serialize};
use url::{Origin, Url};

/// Which clients the daemon's MCP endpoint answers. By default the route does not exist.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct McpConfig {
    /// Permitted values of the request header `Host`: `host:port`, or `host` for any port. A non-empty list enables the
    /// route. The check stops DNS rebinding: a page whose name was pointed at this daemon sends another host.
    #[serde(deserialize_with = "deserialize_mcp_hosts")]
    pub hosts: Vec<String>,
    /// Permitted values of the request header `Origin`. A request without the header, as programs send it, is answered.
    #[serde(deserialize_with = "deserialize_mcp_origins")]
    pub origins: Vec<String>,
}

fn deserialize_mcp_hosts<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<String>, D::Error> {
    deserialize_parsed_list(d, "a host such as clresolve.example or 127.0.0.1:8402", parse_permitted_host_header)
}

fn deserialize_mcp_origins<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<String>, D::Error> {
    deserialize_parsed_list(d, "an origin such as https://app.example", parse_permitted_origin)
}

fn deserialize_parsed_list<'de, D: Deserializer<'de>>(
    d: D,
    expected: &str,
    read: fn(&str) -> Option<String>,
) -> Result<Vec<String>, D::Error> {
    let read = |text: &String| {
        let refused = || serde::de::Error::custom(format!("expected {expected}, found {}", UntrustedText::new(text)));
        read(text).ok_or_else(refused)
    };
    Vec::<String>::deserialize(d)?.iter().map(read).collect()
}

fn parse_permitted_host_header(text: &str) -> Option<String> {
    let url = Url::parse(&format!("http://{text}/")).ok()?;
    let is_plain = url.path() == "/" && url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    (is_plain && !text.ends_with(['/', ':', '?', '#', '@'])).then(|| text.to_ascii_lowercase())
}

/// The origin with an explicit port, for comparison.
fn parse_permitted_origin(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    let is_plain = url.path() == "/" && url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    match url.origin() {
        Origin::Tuple(scheme, host, port) if is_plain && matches!(&*scheme, "http" | "https") => {
            Some(format!("{scheme}://{host}:{port}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, ConfigLayer};

    #[test]
    fn every_key_is_read_and_written() {
        let read = |text: &str| ConfigLayer::from_toml(text, "f.toml");
        let text = "[mcp]\nhosts = [\"Agents.example\", \"[::1]:8402\"]\norigins = [\"https://app.example\"]\n";
        let config = Config::default().with_layers([read(text).unwrap()]).unwrap();
        assert_eq!(config.mcp.hosts, ["agents.example", "[::1]:8402"]);
        assert_eq!(config.mcp.origins, ["https://app.example:443"]);
        assert_eq!(Config::default().with_layers([ConfigLayer::from_config(&config).unwrap()]).unwrap(), config);
        assert_eq!(Config::default().mcp.hosts, [""; 0]);
        for wrong in ["https://a.example", "a.example/mcp", "a b", "", "me@a.example", "a.example:"] {
            assert!(read(&format!("[mcp]\nhosts = [\"{wrong}\"]")).is_err(), "{wrong}");
        }
        for wrong in ["a.example", "https://a.example/x", "null", "file:///", "*"] {
            assert!(read(&format!("[mcp]\norigins = [\"{wrong}\"]")).is_err(), "{wrong}");
        }
    }
}
