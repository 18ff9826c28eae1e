//! The HTTP clients: one per egress class and port, each with its own TLS configuration and resolver.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use reqwest::redirect::Policy;
use reqwest::{Client, dns};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use url::{Host, Origin};

use super::body_budget::BodyBudget;
use super::config::EgressSetupError;
use super::guard::{AddressLookupError, EgressClass, EgressGuard};
use super::pacer::Pacer;
use clresolve_core::fetch::{EgressViolation, FetchError, ForbiddenUrlError, SourceUnavailableError};
use clresolve_core::text::excerpt_text;

/// Maximum number of header lines in a response.
const HEADER_LINES: usize = 100;

/// How long an idle connection is kept. Common servers close idle connections after 60 s or more.
const POOL_IDLE: Duration = Duration::from_secs(50);

const POOL_PER_HOST: usize = 4;

/// Memory budget in bytes for the long bodies of one configured origin: two replies of maximum length.
const BODY_BYTES: u32 = 2 << 20;

/// The clients, each created on first use.
pub(super) struct HttpClients {
    pub(super) guard: Arc<EgressGuard>,
    pub(super) extra_roots: Vec<CertificateDer<'static>>,
    /// Created on first use: loading the platform's trust roots takes milliseconds, which `--help` should not cost.
    pub(super) tls: OnceLock<rustls::ClientConfig>,
    /// Bounded in size: foreign URLs can only use the allowed ports, and the operator's ports are in the configuration.
    pub(super) clients: Mutex<HashMap<(EgressClass, u16), Client>>,
    pub(super) bodies: Mutex<HashMap<Origin, BodyBudget>>,
    pub(super) pacer: Option<Pacer>,
}

impl HttpClients {
    pub(super) fn client(&self, class: EgressClass, port: u16) -> Client {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.entry((class, port)).or_insert_with(|| self.build_client(class, port)).clone()
    }

    pub(super) fn budget_for_origin(&self, origin: &Origin) -> BodyBudget {
        let mut bodies = self.bodies.lock().unwrap_or_else(PoisonError::into_inner);
        bodies.entry(origin.clone()).or_insert_with(|| BodyBudget::new(BODY_BYTES)).clone()
    }

    pub(super) fn shared_tls_config(&self) -> &rustls::ClientConfig {
        self.tls.get_or_init(|| tls_config(&self.extra_roots))
    }

    fn build_client(&self, class: EgressClass, port: u16) -> Client {
        let dialer = GuardedResolver { class, port, guard: Arc::clone(&self.guard) };
        let follow =
            if clresolve_core::mutant!("redirects-are-followed") { Policy::limited(3) } else { Policy::none() };
        let builder = Client::builder();
        let builder = if clresolve_core::mutant!("environment-proxies") { builder } else { builder.no_proxy() };
        builder
            .tls_backend_preconfigured(self.shared_tls_config().clone())
            .dns_resolver(dialer)
            .redirect(follow)
            .retry(reqwest::retry::never())
            .referer(false)
            .https_only(class == EgressClass::Foreign)
            .http1_only()
            .http1_max_headers(HEADER_LINES)
            .connect_timeout(self.guard.config.connect_timeout)
            .pool_idle_timeout(POOL_IDLE)
            .pool_max_idle_per_host(POOL_PER_HOST)
            .user_agent(concat!("clresolve/", env!("CARGO_PKG_VERSION")))
            .build()
            .expect("a ready TLS configuration and constant options always make a client")
    }
}

/// TLS with the platform's certificate verifier. On a machine without trust roots, the client trusts no server.
fn tls_config(extra_roots: &[CertificateDer<'static>]) -> rustls::ClientConfig {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default protocol versions");
    let roots = extra_roots.iter().cloned();
    match rustls_platform_verifier::Verifier::new_with_extra_roots(roots, provider) {
        Ok(verifier) => builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth(),
        Err(error) => {
            tracing::warn!(%error, "no trust roots: no https server can be verified");
            builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth()
        }
    }
}

pub(super) fn parse_roots(files: &[Bytes]) -> Result<Vec<CertificateDer<'static>>, EgressSetupError> {
    let mut roots = Vec::new();
    for (index, pem) in files.iter().enumerate() {
        let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem)
            .collect::<Result<_, _>>()
            .map_err(|_| EgressSetupError::NotPem(index))?;
        if certificates.is_empty() {
            return Err(EgressSetupError::NotPem(index));
        }
        for certificate in certificates {
            let anchor = rustls::RootCertStore::empty().add(certificate.clone());
            anchor.map_err(|_| EgressSetupError::NotAnAnchor(index))?;
            roots.push(certificate);
        }
    }
    Ok(roots)
}

/// The resolver of one client. It knows the port, and returns only checked addresses.
struct GuardedResolver {
    class: EgressClass,
    port: u16,
    guard: Arc<EgressGuard>,
}

impl dns::Resolve for GuardedResolver {
    fn resolve(&self, name: dns::Name) -> dns::Resolving {
        let (class, port, guard) = (self.class, self.port, Arc::clone(&self.guard));
        Box::pin(async move {
            let host = Host::Domain(name.as_str().to_owned());
            let addresses = guard.allowed_addresses(class, &host, port).await?;
            Ok(Box::new(addresses.into_iter()) as dns::Addrs)
        })
    }
}

/// A [`FetchError`] without its target.
pub(super) enum SendError {
    Refused(EgressViolation),
    Failed(SourceUnavailableError),
}

impl From<EgressViolation> for SendError {
    fn from(why: EgressViolation) -> Self {
        Self::Refused(why)
    }
}

impl From<SourceUnavailableError> for SendError {
    fn from(cause: SourceUnavailableError) -> Self {
        Self::Failed(cause)
    }
}

impl SendError {
    pub(super) fn with_target(self, target: impl FnOnce() -> String) -> FetchError {
        match self {
            Self::Refused(why) => ForbiddenUrlError { hop: 0, target: target(), why }.into(),
            Self::Failed(cause) => cause.into(),
        }
    }

    pub(super) fn from_reqwest(error: &reqwest::Error) -> Self {
        let mut links = Vec::new();
        let mut link: Option<&(dyn std::error::Error + 'static)> = Some(error);
        while let Some(error) = link.filter(|_| links.len() < MAX_ERROR_CHAIN) {
            links.push(error);
            link = wrapped_error(error);
        }
        if let Some(dial) = links.iter().find_map(|e| e.downcast_ref::<AddressLookupError>()) {
            return match dial {
                AddressLookupError::Dns => Self::Failed(SourceUnavailableError::Dns),
                AddressLookupError::Refused(why) => Self::Refused(why.clone()),
            };
        }
        Self::Failed(match links.iter().find_map(|e| e.downcast_ref::<rustls::Error>()) {
            Some(tls) => SourceUnavailableError::Tls(excerpt_text(&tls.to_string())),
            None if error.is_timeout() => SourceUnavailableError::Timeout,
            None if error.is_connect() => SourceUnavailableError::Connect,
            None if links.iter().any(|e| e.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse)) => {
                SourceUnavailableError::Head
            }
            None => SourceUnavailableError::Truncated,
        })
    }
}

/// Maximum number of nested errors that are inspected: more than any error of the HTTP client has.
const MAX_ERROR_CHAIN: usize = 16;

/// The wrapped error. An I/O error's `source` skips the error directly inside it.
fn wrapped_error<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a (dyn std::error::Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(wrapped) => Some(wrapped),
        None => error.source(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;
    use crate::guard::AddressLookup;
    use crate::{Egress, EgressConfig};

    /// Resolves every name to this machine.
    struct Inward;

    #[async_trait::async_trait]
    impl AddressLookup for Inward {
        async fn lookup(&self, _: &str) -> io::Result<Vec<IpAddr>> {
            Ok(vec![Ipv4Addr::LOCALHOST.into()])
        }
    }

    #[tokio::test]
    async fn what_a_door_refuses_is_told_from_what_failed() {
        let egress = Egress::with_lookup(EgressConfig::default(), Arc::new(Inward)).unwrap();
        let of = async |class| {
            let sent = egress.clients.client(class, 1).get("https://a.example:1/").send().await;
            SendError::from_reqwest(&sent.expect_err("nothing listens there"))
        };
        let private = EgressViolation::AddressNotPublic(Ipv4Addr::LOCALHOST.into());
        assert!(matches!(of(EgressClass::Foreign).await, SendError::Refused(why) if why == private));
        assert!(matches!(of(EgressClass::Operator).await, SendError::Failed(SourceUnavailableError::Connect)));
    }
}
