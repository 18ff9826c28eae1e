//! Byte streams to configured servers that do not use HTTP.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::guard::{AddressLookupError, EgressClass};
use crate::{CONFIGURED, Egress, HostPort};
use clresolve_core::fetch::{FetchError, ForbiddenUrlError, SourceUnavailableError};

/// The address of such a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TcpTlsOrUnixAddress {
    /// Plain TCP.
    Plain(HostPort),
    /// TLS. The certificate must be valid for the host.
    Tls(HostPort),
    /// A Unix socket on this machine.
    Unix(PathBuf),
}

/// A bidirectional byte stream.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

impl Egress {
    /// Connects to exactly this server, which the operator configured.
    ///
    /// # Errors
    /// The address is a listener of this process, or it cannot be reached within the connect timeout.
    pub async fn connect_stream(&self, to: &TcpTlsOrUnixAddress) -> Result<Box<dyn ByteStream>, FetchError> {
        let connected = async {
            match to {
                TcpTlsOrUnixAddress::Plain(origin) => {
                    Ok(Box::new(self.connect_tcp(origin).await?) as Box<dyn ByteStream>)
                }
                TcpTlsOrUnixAddress::Tls(origin) => self.connect_tls(origin).await,
                TcpTlsOrUnixAddress::Unix(path) => connect_unix(path).await,
            }
        };
        let limit = self.clients.guard.config.connect_timeout;
        timeout(limit, connected).await.unwrap_or_else(|_| Err(SourceUnavailableError::Timeout.into()))
    }

    async fn connect_tls(&self, origin: &HostPort) -> Result<Box<dyn ByteStream>, FetchError> {
        let failed = |error: &dyn std::fmt::Display| SourceUnavailableError::Tls(error.to_string());
        let name = origin.host.to_string();
        let name = ServerName::try_from(name.trim_matches(['[', ']']).to_owned()).map_err(|error| failed(&error))?;
        let connector = TlsConnector::from(Arc::new(self.clients.shared_tls_config().clone()));
        let stream = connector.connect(name, self.connect_tcp(origin).await?).await.map_err(|error| failed(&error))?;
        Ok(Box::new(stream))
    }

    /// Connects to the first address that accepts. Each address is checked.
    async fn connect_tcp(&self, origin: &HostPort) -> Result<TcpStream, FetchError> {
        let addresses = self.clients.guard.allowed_addresses(EgressClass::Operator, &origin.host, origin.port).await;
        let addresses: Vec<SocketAddr> = addresses.map_err(|error| match error {
            AddressLookupError::Dns => FetchError::from(SourceUnavailableError::Dns),
            AddressLookupError::Refused(why) => ForbiddenUrlError { hop: 0, target: CONFIGURED.to_owned(), why }.into(),
        })?;
        let stream = TcpStream::connect(&addresses[..]).await.map_err(|_| SourceUnavailableError::Connect)?;
        stream.set_nodelay(true).map_err(|_| SourceUnavailableError::Connect)?;
        Ok(stream)
    }
}

#[cfg(unix)]
async fn connect_unix(path: &std::path::Path) -> Result<Box<dyn ByteStream>, FetchError> {
    let stream = tokio::net::UnixStream::connect(path).await.map_err(|_| SourceUnavailableError::Connect)?;
    Ok(Box::new(stream))
}

#[cfg(not(unix))]
async fn connect_unix(_: &std::path::Path) -> Result<Box<dyn ByteStream>, FetchError> {
    Err(SourceUnavailableError::Connect.into())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use rustls::pki_types::PrivatePkcs8KeyDer;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    use super::*;
    use crate::{EgressConfig, EgressViolation};

    #[tokio::test]
    async fn stream_connects_to_its_address_but_no_own_listener() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let to = TcpTlsOrUnixAddress::Plain(address.to_string().parse().unwrap());
        let egress = Egress::new(EgressConfig::default()).unwrap();
        let greet = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"hello").await.unwrap();
        };
        let (stream, ()) = tokio::join!(egress.connect_stream(&to), greet);
        let mut read = String::new();
        stream.unwrap().read_to_string(&mut read).await.unwrap();
        assert_eq!(read, "hello");

        let denied = EgressConfig { denied: vec![address], ..EgressConfig::default() };
        let refused = Egress::new(denied).unwrap().connect_stream(&to).await.map(|_| ());
        let why = EgressViolation::OwnListener;
        assert_eq!(refused, Err(ForbiddenUrlError { hop: 0, target: CONFIGURED.to_owned(), why }.into()));
    }

    /// A TLS server. Its certificate for `host` is its own trust root.
    async fn tls_listener(host: &str) -> (TcpListener, TlsAcceptor, Bytes) {
        let made = rcgen::generate_simple_self_signed([host.to_owned()]).unwrap();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key.into())
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        (listener, TlsAcceptor::from(Arc::new(config)), made.cert.pem().into())
    }

    #[tokio::test]
    async fn tls_server_that_does_not_prove_its_host_is_rejected() {
        for (host, is_trusted) in [("localhost", true), ("localhost", false), ("other.example", true)] {
            let (listener, tls, root) = tls_listener(host).await;
            let port = listener.local_addr().unwrap().port();
            let to = TcpTlsOrUnixAddress::Tls(format!("localhost:{port}").parse().unwrap());
            let extra_roots = if is_trusted { vec![root] } else { Vec::new() };
            let egress = Egress::new(EgressConfig { extra_roots, ..EgressConfig::default() }).unwrap();
            let greet = async {
                let mut stream = tls.accept(listener.accept().await.unwrap().0).await.ok()?;
                stream.write_all(b"hello").await.ok()?;
                stream.flush().await.ok()?;
                Some(stream)
            };
            let (opened, _open) = tokio::join!(egress.connect_stream(&to), greet);
            if host == "localhost" && is_trusted {
                let mut read = [0; 5];
                opened.unwrap().read_exact(&mut read).await.unwrap();
                assert_eq!(&read, b"hello");
            } else {
                let refused =
                    matches!(opened.map(|_| ()), Err(FetchError::Unavailable(SourceUnavailableError::Tls(_))));
                assert!(refused, "{host} {is_trusted}");
            }
        }
    }
}
