//! How endpoints and gateways are written: each as a URL, or as a table with a URL. A URL may contain API keys: what
//! shows a configuration replaces it by its host.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use url::Url;

use super::IpfsGateway;
use super::endpoint::{BeaconEndpointConfig, RpcEndpointConfig};
use super::labels::{MAX_LABEL_BYTES, is_label_char, label_from_host};
use super::public::PUBLIC_RPC;

/// The table of an endpoint.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RpcEndpointTomlTable {
    url: String,
    label: Option<String>,
    own: Option<bool>,
    operator: Option<String>,
}

impl TryFrom<RpcEndpointTomlTable> for RpcEndpointConfig {
    type Error = String;

    fn try_from(table: RpcEndpointTomlTable) -> Result<Self, String> {
        let url = parse_http_url(&table.url)?;
        let operator = match table.operator {
            Some(operator) => check_plain_name(operator, "operator")?,
            None => label_from_host(&Self::operator_from_url(&url)),
        };
        let label = match table.label {
            Some(label) => check_plain_name(label, "label")?,
            // The host name of a built-in endpoint contains no API key.
            None if PUBLIC_RPC.contains(&table.url.as_str()) => host_and_port(&url),
            None => Self::UNNAMED.to_owned(),
        };
        Ok(Self { label, url, own: table.own.unwrap_or(false), operator })
    }
}

impl FromStr for RpcEndpointConfig {
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        RpcEndpointTomlTable { url: url.to_owned(), ..RpcEndpointTomlTable::default() }.try_into()
    }
}

impl<'de> Deserialize<'de> for RpcEndpointConfig {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(UrlOrTableVisitor::<_, RpcEndpointTomlTable>(PhantomData))
    }
}

impl Serialize for RpcEndpointConfig {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let Self { url, label, own, operator } = self.clone();
        let table =
            RpcEndpointTomlTable { url: url.into(), label: Some(label), own: Some(own), operator: Some(operator) };
        table.serialize(s)
    }
}

/// The table of a gateway.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct IpfsGatewayTomlTable {
    url: String,
    label: Option<String>,
    own: Option<bool>,
}

impl TryFrom<IpfsGatewayTomlTable> for IpfsGateway {
    type Error = String;

    fn try_from(table: IpfsGatewayTomlTable) -> Result<Self, String> {
        let mut url = parse_http_url(&table.url)?;
        if url.query().is_some() || !url.username().is_empty() || url.password().is_some() {
            return Err("expected the base URL of a gateway, without user info and query".to_owned());
        }
        while let Some(base) = url.path().strip_suffix("/ipfs/").or_else(|| url.path().strip_suffix("/ipfs")) {
            let base = format!("{base}/");
            url.set_path(&base);
        }
        let label = table.label.map_or_else(|| Ok(host_and_port(&url)), |label| check_plain_name(label, "label"))?;
        Ok(Self { label, url, own: table.own.unwrap_or(false) })
    }
}

impl FromStr for IpfsGateway {
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        IpfsGatewayTomlTable { url: url.to_owned(), ..IpfsGatewayTomlTable::default() }.try_into()
    }
}

impl<'de> Deserialize<'de> for IpfsGateway {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(UrlOrTableVisitor::<_, IpfsGatewayTomlTable>(PhantomData))
    }
}

impl Serialize for IpfsGateway {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let Self { url, label, own } = self.clone();
        IpfsGatewayTomlTable { url: url.into(), label: Some(label), own: Some(own) }.serialize(s)
    }
}

/// The table of a beacon endpoint.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BeaconEndpointTomlTable {
    url: String,
    label: Option<String>,
}

impl TryFrom<BeaconEndpointTomlTable> for BeaconEndpointConfig {
    type Error = String;

    fn try_from(table: BeaconEndpointTomlTable) -> Result<Self, String> {
        let url = parse_http_url(&table.url)?;
        let label =
            table.label.map_or_else(|| Ok(Self::UNNAMED.to_owned()), |label| check_plain_name(label, "label"))?;
        Ok(Self { label, url })
    }
}

impl FromStr for BeaconEndpointConfig {
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        BeaconEndpointTomlTable { url: url.to_owned(), ..BeaconEndpointTomlTable::default() }.try_into()
    }
}

impl<'de> Deserialize<'de> for BeaconEndpointConfig {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(UrlOrTableVisitor::<_, BeaconEndpointTomlTable>(PhantomData))
    }
}

impl Serialize for BeaconEndpointConfig {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let Self { url, label } = self.clone();
        BeaconEndpointTomlTable { url: url.into(), label: Some(label) }.serialize(s)
    }
}

/// Reads a `T`, written as a URL or as a `Table`.
struct UrlOrTableVisitor<T, Table>(PhantomData<(T, Table)>);

impl<'de, T, Table> Visitor<'de> for UrlOrTableVisitor<T, Table>
where
    T: FromStr<Err = String> + TryFrom<Table, Error = String>,
    Table: Deserialize<'de>,
{
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a URL, or a table with url and label")
    }

    fn visit_str<E: de::Error>(self, url: &str) -> Result<T, E> {
        url.parse().map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        let table = Table::deserialize(de::value::MapAccessDeserializer::new(map))?;
        table.try_into().map_err(de::Error::custom)
    }
}

/// Parses an http or https URL with a host. The error never repeats the URL, which may contain an API key.
fn parse_http_url(s: &str) -> Result<Url, String> {
    if !s.contains("://") {
        return Err(missing_scheme_error(s));
    }
    let url = Url::parse(s).map_err(|e| format!("expected an http or https URL ({e})"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err("expected an http or https URL".to_owned());
    }
    if url.fragment().is_some() {
        return Err("expected a URL without a fragment".to_owned());
    }
    Ok(url)
}

/// The error for a URL without a scheme. It repeats only a host with a port: any other text may be an API key.
fn missing_scheme_error(s: &str) -> String {
    let (authority, rest) = s.split_at(s.find(['/', '?', '#']).unwrap_or(s.len()));
    let is_port = |port: &str| port.parse::<u16>().is_ok();
    let Some((host, _)) = authority.rsplit_once(':').filter(|(host, port)| is_port(port) && !host.contains('@')) else {
        return "expected an http or https URL: the scheme is missing; write https:// before it".to_owned();
    };
    let is_local = host == "localhost" || host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok();
    let scheme = if is_local { "http" } else { "https" };
    let rest = if rest.len() > 1 { "/…" } else { "" };
    format!("expected an http or https URL: the scheme is missing; did you mean {scheme}://{authority}{rest}?")
}

/// Host and port of the URL: the label of a gateway or built-in endpoint that has none configured.
fn host_and_port(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| label_from_host(host), |port| label_from_host(&format!("{host}:{port}")))
}

/// Checks that a name is short and contains only plain characters.
fn check_plain_name(name: String, what: &str) -> Result<String, String> {
    let good = (1..=MAX_LABEL_BYTES).contains(&name.len()) && name.chars().all(is_label_char);
    if good {
        Ok(name)
    } else {
        Err(format!("expected the {what} to be at most {MAX_LABEL_BYTES} letters, digits and -._:"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_is_named_by_its_base() {
        for (given, url) in [
            ("https://g.example", "https://g.example/"),
            ("https://g.example/ipfs/", "https://g.example/"),
            ("https://g.example/base/ipfs", "https://g.example/base/"),
        ] {
            assert_eq!(given.parse::<IpfsGateway>().unwrap().url.as_str(), url);
        }
        for bad in
            ["ftp://g.example", "g.example", "https://u:p@g.example", "https://g.example/?k=1", "https://g.example/#a"]
        {
            assert!(bad.parse::<IpfsGateway>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_missing_scheme_is_named() {
        for (given, meant) in [
            ("127.0.0.1:8545", "did you mean http://127.0.0.1:8545?"),
            ("localhost:8545/", "did you mean http://localhost:8545?"),
            ("[::1]:8545", "did you mean http://[::1]:8545?"),
            ("rpc.example:443/v3/SECRET", "did you mean https://rpc.example:443/…?"),
            ("rpc.example/SECRET", "write https:// before it"),
            ("SECRET", "write https:// before it"),
            ("user:SECRET@rpc.example:443", "write https:// before it"),
        ] {
            for error in [given.parse::<RpcEndpointConfig>().unwrap_err(), given.parse::<IpfsGateway>().unwrap_err()] {
                assert!(error.starts_with("expected an http or https URL: the scheme is missing; "), "{error}");
                assert!(error.ends_with(meant) && !error.contains("SECRET"), "{error}");
            }
        }
    }

    #[test]
    fn an_endpoint_shows_no_key() {
        let endpoint: RpcEndpointConfig = "https://rpc.example:8443/v3/SECRET".parse().unwrap();
        assert_eq!(endpoint.label, RpcEndpointConfig::UNNAMED);
        assert!(!endpoint.own);
        let error = "htt ps://rpc.example/SECRET".parse::<RpcEndpointConfig>().unwrap_err();
        assert!(!error.contains("SECRET"), "{error}");
    }

    #[test]
    fn endpoints_of_one_operator_are_told_by_their_hosts() {
        for (url, operator) in [
            ("https://eth.drpc.org/key", "drpc.org"),
            ("https://a.b.rpc.example./", "rpc.example"),
            ("https://rpc.example:8443", "rpc.example"),
            ("http://one.co.uk", "co.uk"),
            ("http://node:8545", "localhost"),
            ("http://other-node.:8545", "localhost"),
            ("http://localhost", "localhost"),
            ("http://localhost.:8545", "localhost"),
            ("http://node.localhost:8545", "localhost"),
            ("http://127.0.0.1:8545", "localhost"),
            ("http://127.1.2.3:8546", "localhost"),
            ("http://0.0.0.0:8545", "localhost"),
            ("http://[::1]:8545", "localhost"),
            ("http://[::]:8545", "localhost"),
            ("http://[::ffff:127.0.0.1]:8545", "localhost"),
            ("http://[::ffff:0.0.0.0]:8545", "localhost"),
            ("http://node.localdomain:8545", "localhost"),
            ("http://a.node.local:8545", "localhost"),
            ("http://node.internal.:8545", "localhost"),
            ("http://node.lan:8545", "localhost"),
            ("https://node.lan.example", "lan.example"),
            ("http://[::ffff:192.0.2.1]:8545", "192.0.2.1"),
            ("http://192.0.2.1:8545", "192.0.2.1"),
            ("http://192.0.2.1:8546", "192.0.2.1"),
            ("http://[2001:db8::1]:8545", "[2001:db8::1]"),
            ("http://[2001:db8::1]:8546", "[2001:db8::1]"),
        ] {
            assert_eq!(url.parse::<RpcEndpointConfig>().unwrap().operator, operator);
        }
    }
}
