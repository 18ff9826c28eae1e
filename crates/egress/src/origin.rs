//! Origins in the operator's notation, on the command line and in the configuration.

use std::fmt;
use std::str::FromStr;

use url::Host;

use clresolve_core::address::parse_host;

/// `HOST:PORT`, as in `--allow-host`. The host is a name, or an IP literal in URL notation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPort {
    pub(super) host: Host<String>,
    pub(super) port: u16,
}

impl HostPort {
    pub(super) fn matches(&self, host: &Host<String>, port: u16) -> bool {
        self.host == *host && self.port == port
    }
}

impl FromStr for HostPort {
    type Err = HostPortError;

    fn from_str(text: &str) -> Result<Self, HostPortError> {
        let (host, port) = text.rsplit_once(':').ok_or(HostPortError::Form("HOST:PORT, such as agent.example:8443"))?;
        Ok(Self { host: parse_host(host).map_err(|_| HostPortError::Host)?, port: parse_port(port)? })
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// `HOST:PORT:ADDR:PORT`, as in `--connect-to`: a request to the first pair connects to the second.
///
/// `Host`, SNI and the certificate check still use the first pair. The second pair may be private. The first pair then
/// needs neither a public name nor an allowed port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConnectToRule {
    pub(super) from: HostPort,
    pub(super) target: HostPort,
}

impl FromStr for ConnectToRule {
    type Err = HostPortError;

    fn from_str(text: &str) -> Result<Self, HostPortError> {
        const FORM: HostPortError =
            HostPortError::Form("HOST:PORT:ADDR:PORT, such as agent.example:443:127.0.0.1:8443");
        let (host, rest) = text.split_once(':').ok_or(FORM)?;
        let (port, target) = rest.split_once(':').ok_or(FORM)?;
        let from = HostPort { host: parse_host(host).map_err(|_| HostPortError::Host)?, port: parse_port(port)? };
        if !matches!(from.host, Host::Domain(_)) {
            return Err(HostPortError::Host);
        }
        Ok(Self {
            from,
            target: target.parse().map_err(|e| {
                if e == HostPortError::Form("HOST:PORT, such as agent.example:8443") { FORM } else { e }
            })?,
        })
    }
}

impl fmt::Display for ConnectToRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.from, self.target)
    }
}

/// Why a text is not an [`HostPort`] or a [`ConnectToRule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostPortError {
    /// Parts are missing. Contains the expected form.
    #[error("expected {0}")]
    Form(&'static str),
    /// The host is invalid, or is an IP literal where a name is required.
    #[error("expected a host name or, where one is allowed, an IP address; IPv6 in brackets")]
    Host,
    /// The port is not a number from 1 to 65535.
    #[error("expected a port from 1 to 65535")]
    Port,
}

fn parse_port(text: &str) -> Result<u16, HostPortError> {
    text.parse().ok().filter(|&port| port != 0).ok_or(HostPortError::Port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> HostPort {
        text.parse().unwrap()
    }

    #[test]
    fn parses_origins_and_detours() {
        assert_eq!(spec("Example.COM.:8443"), HostPort { host: Host::Domain("example.com".into()), port: 8443 });
        assert_eq!(spec("127.0.0.1:1").host, Host::<String>::Ipv4([127, 0, 0, 1].into()));
        let detour: ConnectToRule = "a.example:443:[::1]:9".parse().unwrap();
        assert_eq!(detour, ConnectToRule { from: spec("a.example:443"), target: spec("[::1]:9") });
        let detour: ConnectToRule = "a.example:443:localhost:9".parse().unwrap();
        assert_eq!(detour.target, spec("localhost:9"));

        for text in ["", "a.example", "a.example:443", "a.example:443:b", "a.example:443:127.0.0.1"] {
            assert_eq!(
                text.parse::<ConnectToRule>(),
                Err(HostPortError::Form("HOST:PORT:ADDR:PORT, such as agent.example:443:127.0.0.1:8443")),
                "{text}"
            );
        }
        assert_eq!("127.0.0.1:443:127.0.0.1:9".parse::<ConnectToRule>(), Err(HostPortError::Host));
        assert_eq!("a.example:0".parse::<HostPort>(), Err(HostPortError::Port));
        assert_eq!("a.example:65536".parse::<HostPort>(), Err(HostPortError::Port));
        assert_eq!("a b:1".parse::<HostPort>(), Err(HostPortError::Host));
    }
}
