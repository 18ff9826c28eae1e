//! The rules of both classes: which URLs, hosts, ports and addresses are allowed.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;

use async_trait::async_trait;
use url::{Host, Url};

use super::config::EgressConfig;
use super::origin::HostPort;
use clresolve_core::address::{PublicHostName, is_public_ip, parse_host};
use clresolve_core::fetch::EgressViolation;

/// Ports that a foreign URL may use: the `https` port and its common alternative. Services on other ports are often not
/// intended for the public.
pub const FOREIGN_PORTS: [u16; 2] = [443, 8443];

/// Maximum number of addresses of one name to which a connection is tried. All of its addresses are checked.
const MAX_ADDRESSES: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum EgressClass {
    Foreign,
    /// Plain `http` to origins in the operator's `allow_host`.
    Plain,
    Operator,
}

/// A URL that passed the rules of one class.
pub(super) struct AdmittedUrl {
    pub(super) host: Host<String>,
    pub(super) port: u16,
    /// The URL to request. If the host is a name, the port is removed.
    pub(super) url: Url,
    /// The `Host` header, if the rewritten URL would produce a wrong one.
    pub(super) authority: Option<String>,
}

/// The rules of both classes.
pub(super) struct EgressGuard {
    pub(super) config: EgressConfig,
    pub(super) lookup: Arc<dyn AddressLookup>,
}

impl EgressGuard {
    pub(super) fn admit_untrusted(&self, url: &Url) -> Result<AdmittedUrl, EgressViolation> {
        if url.scheme() != "https" && !clresolve_core::mutant!("scheme-unchecked") {
            return Err(EgressViolation::Scheme);
        }
        if (!url.username().is_empty() || url.password().is_some()) && !clresolve_core::mutant!("user-info-is-sent") {
            return Err(EgressViolation::UserInfo);
        }
        let (host, port) = host_and_port(url)?;
        if !self.is_configured_host(&host, port) && !clresolve_core::mutant!("private-names") {
            PublicHostName::parse(&host.to_string())?;
            if !FOREIGN_PORTS.contains(&port) {
                return Err(EgressViolation::Port(port));
            }
        }
        self.build_admitted_url(EgressClass::Foreign, url, host, port)
    }

    /// Checks a plain `http` URL, whose origin must be in the operator's `allow_host`.
    pub(super) fn admit_plain_http(&self, url: &Url) -> Result<AdmittedUrl, EgressViolation> {
        let (host, port) = host_and_port(url)?;
        if url.scheme() != "http" || !self.is_in_allow_host(&host, port) {
            return Err(EgressViolation::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(EgressViolation::UserInfo);
        }
        self.build_admitted_url(EgressClass::Plain, url, host, port)
    }

    pub(super) fn admit_configured(&self, url: &Url) -> Result<AdmittedUrl, EgressViolation> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(EgressViolation::Scheme);
        }
        let (host, port) = host_and_port(url)?;
        self.build_admitted_url(EgressClass::Operator, url, host, port)
    }

    /// Removes the port from the URL of a name. Checks an IP literal immediately, because no DNS lookup follows.
    fn build_admitted_url(
        &self,
        class: EgressClass,
        url: &Url,
        host: Host<String>,
        port: u16,
    ) -> Result<AdmittedUrl, EgressViolation> {
        let mut url = url.clone();
        url.set_fragment(None);
        if let Some(ip) = ip_literal(&host) {
            self.check_address(class, &host, port, SocketAddr::new(ip, port))?;
            return Ok(AdmittedUrl { host, port, url, authority: None });
        }
        let authority = url.port().map(|port| format!("{host}:{port}"));
        url.set_host(Some(&host.to_string())).map_err(|_| EgressViolation::NotUrl)?;
        url.set_port(None).map_err(|()| EgressViolation::NotUrl)?;
        Ok(AdmittedUrl { host, port, url, authority })
    }

    /// Whether the operator's `allow_host` contains this origin.
    fn is_configured_host(&self, host: &Host<String>, port: u16) -> bool {
        self.is_in_allow_host(host, port) || self.connect_to_target(host, port).is_some()
    }

    fn is_in_allow_host(&self, host: &Host<String>, port: u16) -> bool {
        self.config.allow_host.iter().any(|origin| origin.matches(host, port))
    }

    fn connect_to_target(&self, host: &Host<String>, port: u16) -> Option<&HostPort> {
        self.config.connect_to.iter().find(|detour| detour.from.matches(host, port)).map(|detour| &detour.target)
    }

    /// The addresses to connect to for a name and port. One forbidden address rejects all of them.
    pub(super) async fn allowed_addresses(
        &self,
        class: EgressClass,
        host: &Host<String>,
        port: u16,
    ) -> Result<Vec<SocketAddr>, AddressLookupError> {
        let (target_host, target_port) = match self.connect_to_target(host, port) {
            Some(target) => (&target.host, target.port),
            None => (host, port),
        };
        let ips = match target_host {
            Host::Domain(name) => self.lookup.lookup(name).await.map_err(|_| AddressLookupError::Dns)?,
            Host::Ipv4(ip) => vec![(*ip).into()],
            Host::Ipv6(ip) => vec![(*ip).into()],
        };
        if ips.is_empty() {
            return Err(AddressLookupError::Dns);
        }
        let mut addresses = Vec::new();
        for ip in ips {
            let address = SocketAddr::new(ip, target_port);
            if clresolve_core::mutant!("mixed-answers") && self.check_address(class, host, port, address).is_err() {
                continue;
            }
            self.check_address(class, host, port, address)?;
            addresses.push(address);
        }
        addresses.truncate(MAX_ADDRESSES);
        Ok(addresses)
    }

    /// Checks the peer address of a connection for `host` and `port`. An unknown peer is refused.
    pub(super) fn check_peer_address(
        &self,
        class: EgressClass,
        host: &Host<String>,
        port: u16,
        peer: Option<SocketAddr>,
    ) -> Result<(), EgressViolation> {
        self.check_address(class, host, port, peer.ok_or(EgressViolation::PeerUnknown)?)
    }

    /// Checks `address` as the peer of a connection for `host` and `port`.
    pub(super) fn check_address(
        &self,
        class: EgressClass,
        host: &Host<String>,
        port: u16,
        address: SocketAddr,
    ) -> Result<(), EgressViolation> {
        if self.config.denied.iter().any(|listener| reaches_listener(*listener, address))
            && !clresolve_core::mutant!("own-listeners")
        {
            return Err(EgressViolation::OwnListener);
        }
        let free = class == EgressClass::Operator
            || clresolve_core::mutant!("private-addresses")
            || self.is_configured_host(host, port);
        if free || is_public_ip(address.ip()) { Ok(()) } else { Err(EgressViolation::AddressNotPublic(address.ip())) }
    }
}

fn host_and_port(url: &Url) -> Result<(Host<String>, u16), EgressViolation> {
    let host = url.host_str().ok_or(EgressViolation::NotUrl)?;
    let host = parse_host(host).map_err(|_| EgressViolation::NotUrl)?;
    Ok((host, url.port_or_known_default().ok_or(EgressViolation::NotUrl)?))
}

fn ip_literal(host: &Host<String>) -> Option<IpAddr> {
    match host {
        Host::Domain(_) => None,
        Host::Ipv4(ip) => Some((*ip).into()),
        Host::Ipv6(ip) => Some((*ip).into()),
    }
}

/// Whether a connection to `address` reaches `listener`. A listener on the unspecified address accepts connections on
/// every address of this machine. A connection to the unspecified address reaches the loopback address.
fn reaches_listener(listener: SocketAddr, address: SocketAddr) -> bool {
    if listener.port() != address.port() {
        return false;
    }
    let (listener, ip) = (listener.ip().to_canonical(), address.ip().to_canonical());
    if ip.is_unspecified() {
        return listener.is_loopback() || listener.is_unspecified();
    }
    if listener.is_unspecified() { is_of_this_machine(ip) } else { listener == ip }
}

/// Whether `ip` belongs to this machine: a socket can only be bound to local addresses. Nothing is sent.
fn is_of_this_machine(ip: IpAddr) -> bool {
    ip.is_loopback() || UdpSocket::bind((ip, 0)).is_ok()
}

/// Why no connection to a name was opened. The HTTP client wraps this in its own error.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum AddressLookupError {
    #[error("the host name does not resolve")]
    Dns,
    #[error(transparent)]
    Refused(#[from] EgressViolation),
}

/// A source of addresses for names.
#[async_trait]
pub trait AddressLookup: Send + Sync {
    /// Resolves `host` to all of its addresses.
    ///
    /// # Errors
    /// Any error means that the name does not resolve.
    async fn lookup(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// The system's resolver.
pub struct SystemAddressLookup;

#[async_trait]
impl AddressLookup for SystemAddressLookup {
    async fn lookup(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((host, 0)).await?.map(|addr| addr.ip()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognises_its_own_listeners() {
        let cases = [
            ("127.0.0.1:80", "127.0.0.1:80", true),
            ("127.0.0.1:80", "127.0.0.1:81", false),
            ("127.0.0.1:80", "127.0.0.2:80", false),
            ("127.0.0.1:80", "[::ffff:127.0.0.1]:80", true),
            ("127.0.0.1:80", "0.0.0.0:80", true),
            ("0.0.0.0:80", "127.0.0.1:80", true),
            ("0.0.0.0:80", "127.9.9.9:80", true),
            ("[::]:80", "127.0.0.1:80", true),
            ("[::]:80", "[::]:80", true),
            ("0.0.0.0:80", "192.0.2.1:80", false),
            ("192.0.2.1:80", "0.0.0.0:80", false),
        ];
        for (listener, address, same) in cases {
            assert_eq!(
                reaches_listener(listener.parse().unwrap(), address.parse().unwrap()),
                same,
                "{listener} {address}"
            );
        }
    }

    /// A resolver whose answer changes with each query.
    struct Turning(std::sync::Mutex<Vec<IpAddr>>);

    #[async_trait]
    impl AddressLookup for Turning {
        async fn lookup(&self, _: &str) -> io::Result<Vec<IpAddr>> {
            let mut answers = self.0.lock().unwrap();
            Ok(answers.pop().into_iter().collect())
        }
    }

    #[tokio::test]
    async fn an_answer_that_changes_is_checked_each_time_and_used_once() {
        let answers = ["127.0.0.1", "8.8.8.8", "10.0.0.1", "1.1.1.1"].map(|ip| ip.parse().unwrap());
        let lookup = Arc::new(Turning(std::sync::Mutex::new(answers.to_vec())));
        let guard = EgressGuard { config: EgressConfig::default(), lookup };
        let host = Host::Domain("a.example".to_owned());
        let mut seen = Vec::new();
        for _ in 0..5 {
            seen.push(match guard.allowed_addresses(EgressClass::Foreign, &host, 443).await {
                Ok(addresses) => addresses[0].to_string(),
                Err(AddressLookupError::Refused(why)) => why.to_string(),
                Err(AddressLookupError::Dns) => "nothing".to_owned(),
            });
        }
        let private = |ip| format!("the address {ip} is not public");
        assert_eq!(
            seen,
            ["1.1.1.1:443".into(), private("10.0.0.1"), "8.8.8.8:443".into(), private("127.0.0.1"), "nothing".into()]
        );
    }

    #[test]
    fn the_peer_of_a_connection_is_checked_independent_of_its_name() {
        let guard = EgressGuard { config: EgressConfig::default(), lookup: Arc::new(SystemAddressLookup) };
        let host = Host::Domain("a.example".to_owned());
        let judge = |class, peer: &str| guard.check_peer_address(class, &host, 443, peer.parse().ok());
        let private = EgressViolation::AddressNotPublic([10, 0, 0, 1].into());
        assert_eq!(judge(EgressClass::Foreign, "8.8.8.8:443"), Ok(()));
        assert_eq!(judge(EgressClass::Foreign, "10.0.0.1:443"), Err(private));
        assert_eq!(judge(EgressClass::Operator, "10.0.0.1:443"), Ok(()));
        assert_eq!(judge(EgressClass::Operator, "none is known"), Err(EgressViolation::PeerUnknown));
    }

    /// A guard with this configuration. Its lookups find nothing.
    fn guard(config: EgressConfig) -> EgressGuard {
        EgressGuard { config, lookup: Arc::new(Turning(std::sync::Mutex::new(Vec::new()))) }
    }

    /// The foreign class's decision about a URL: host, port, `Host` header and the URL to request.
    fn foreign(guard: &EgressGuard, url: &str) -> Result<String, EgressViolation> {
        described(guard.admit_untrusted(&url.parse().unwrap()))
    }

    fn described(target: Result<AdmittedUrl, EgressViolation>) -> Result<String, EgressViolation> {
        let described = |AdmittedUrl { host, port, url, authority }| format!("{host} {port} {authority:?} {url}");
        target.map(described)
    }

    #[test]
    fn the_foreign_door_refuses_each_fault_by_its_name() {
        let plain = guard(EgressConfig::default());
        for (url, why) in [
            ("http://a.example/", EgressViolation::Scheme),
            ("https://name@a.example/", EgressViolation::UserInfo),
            ("https://:password@a.example/", EgressViolation::UserInfo),
            ("https://8.8.8.8/", EgressViolation::IpLiteral),
            ("https://host/", EgressViolation::HostNotPublic),
            ("https://a.example:8545/", EgressViolation::Port(8545)),
        ] {
            assert_eq!(foreign(&plain, url), Err(why), "{url}");
        }
        let admitted = |text: &str| Ok(text.to_owned());
        assert_eq!(foreign(&plain, "https://a.example/x#part"), admitted("a.example 443 None https://a.example/x"));
        let other_port = admitted("a.example 8443 Some(\"a.example:8443\") https://a.example/");
        assert_eq!(foreign(&plain, "https://a.example:8443/"), other_port);
    }

    #[test]
    fn plain_door_admits_only_origins_that_the_operator_named() {
        let allow_host = vec!["host:8080".parse().unwrap(), "127.0.0.1:80".parse().unwrap()];
        let connect_to = vec!["a.example:80:127.0.0.1:1".parse().unwrap()];
        let guard = guard(EgressConfig { allow_host, connect_to, ..EgressConfig::default() });
        let plain = |url: &str| described(guard.admit_plain_http(&url.parse().unwrap()));
        assert_eq!(plain("http://host:8080/x"), Ok("host 8080 Some(\"host:8080\") http://host/x".to_owned()));
        assert!(plain("http://127.0.0.1/").is_ok());
        for (url, why) in [
            ("https://host:8080/", EgressViolation::Scheme),
            ("http://host/", EgressViolation::Scheme),
            ("http://host:8081/", EgressViolation::Scheme),
            ("http://other:8080/", EgressViolation::Scheme),
            ("http://a.example/", EgressViolation::Scheme),
            ("http://name@host:8080/", EgressViolation::UserInfo),
        ] {
            assert_eq!(plain(url), Err(why), "{url}");
        }
        assert_eq!(foreign(&guard, "http://host:8080/"), Err(EgressViolation::Scheme));
    }

    #[test]
    fn what_the_operator_named_is_admitted_and_nothing_beside_it() {
        let allowed = EgressConfig { allow_host: vec!["host:8545".parse().unwrap()], ..EgressConfig::default() };
        let detour = "host:8545:127.0.0.1:1".parse().unwrap();
        let led_elsewhere = EgressConfig { connect_to: vec![detour], ..EgressConfig::default() };
        for config in [allowed, led_elsewhere] {
            let guard = guard(config);
            assert!(foreign(&guard, "https://host:8545/").is_ok());
            assert_eq!(foreign(&guard, "https://host/"), Err(EgressViolation::HostNotPublic));
            assert_eq!(foreign(&guard, "https://a.example:8545/"), Err(EgressViolation::Port(8545)));
        }
    }

    #[tokio::test]
    async fn a_detour_leads_to_its_target_alone() {
        let detour = "host:443:127.0.0.1:8443".parse().unwrap();
        let guard = guard(EgressConfig { connect_to: vec![detour], ..EgressConfig::default() });
        let host = Host::Domain("host".to_owned());
        let addresses = guard.allowed_addresses(EgressClass::Foreign, &host, 443).await.expect("it is permitted");
        assert_eq!(addresses, ["127.0.0.1:8443".parse().unwrap()]);
        let elsewhere = guard.allowed_addresses(EgressClass::Foreign, &host, 444).await;
        assert!(
            matches!(elsewhere, Err(AddressLookupError::Dns)),
            "it is looked up, and nothing is found: {elsewhere:?}"
        );
    }

    #[test]
    fn operator_door_allows_http_but_no_own_listener() {
        let own = "127.0.0.1:80".parse().unwrap();
        let guard = guard(EgressConfig { denied: vec![own], ..EgressConfig::default() });
        let configured = |url: &str| described(guard.admit_configured(&url.parse().unwrap())).map(drop);
        assert_eq!(configured("ftp://a.example/"), Err(EgressViolation::Scheme));
        assert_eq!(configured("http://127.0.0.1/"), Err(EgressViolation::OwnListener));
        for url in ["http://10.0.0.1/", "https://a.example:1/", "http://127.0.0.1:81/"] {
            assert_eq!(configured(url), Ok(()), "{url}");
        }
    }

    /// This machine's address towards other machines, if it has one. No packet is sent.
    fn own_address() -> Option<IpAddr> {
        let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
        socket.connect("192.0.2.1:9").ok()?;
        Some(socket.local_addr().ok()?.ip()).filter(|ip| !ip.is_loopback() && !ip.is_unspecified())
    }

    #[test]
    fn every_address_of_this_machine_is_its_own() {
        assert!(is_of_this_machine([127, 9, 9, 9].into()));
        assert!(!is_of_this_machine([192, 0, 2, 1].into()));
        if let Some(own) = own_address() {
            assert!(is_of_this_machine(own), "{own}");
        }
    }

    #[tokio::test]
    async fn the_systems_resolver_knows_this_machine() {
        let addresses = SystemAddressLookup.lookup("localhost").await.expect("every system knows it");
        assert!(!addresses.is_empty() && addresses.iter().all(IpAddr::is_loopback), "{addresses:?}");
    }
}
