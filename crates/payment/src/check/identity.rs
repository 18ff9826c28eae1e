//! The identity of a seller: its origin, its name or registration, the operator's evidence policy, and what is
//! remembered about an origin.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use alloy_primitives::Address;
use clresolve_core::name::EnsName;
use clresolve_verdict::evidence::links::RegisteredAgentId;
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use url::Url;

use crate::network::Caip2Network;
use crate::route::is_loopback;

/// The origin of a seller: `https://HOST` or `https://HOST:PORT`, without a default port. Plain http is accepted only
/// on loopback. Hosts must match exactly: `www.a.example` and `a.example` are two origins.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct WebOrigin(String);

/// The text is not an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an origin, such as https://api.example")]
pub struct WebOriginError;

impl WebOrigin {
    /// The origin of a URL. `None` if the URL is invalid, contains credentials, has a host with a trailing dot, or is
    /// neither https nor http on loopback.
    pub fn from_url_text(url: &str) -> Option<Self> {
        Self::from_url(&Url::parse(url).ok()?)
    }

    /// Like [`WebOrigin::from_url_text`], for a parsed URL.
    pub(crate) fn from_url(url: &Url) -> Option<Self> {
        let is_permitted = url.scheme() == "https" || (url.scheme() == "http" && is_loopback(url));
        let has_credentials = !url.username().is_empty() || url.password().is_some();
        // A trailing dot is a second spelling of the same host, and would make it a second origin.
        let is_one_spelling = !url.host_str().is_some_and(|host| host.ends_with('.'));
        (is_permitted && !has_credentials && is_one_spelling).then(|| Self(url.origin().ascii_serialization()))
    }

    /// The origin as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for WebOrigin {
    type Err = WebOriginError;

    fn from_str(text: &str) -> Result<Self, WebOriginError> {
        let url = Url::parse(text).map_err(|_| WebOriginError)?;
        let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        Self::from_url(&url).filter(|_| is_bare).ok_or(WebOriginError)
    }
}

impl fmt::Display for WebOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The identity of a seller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SellerIdentity {
    /// An ENS name.
    Name(EnsName),
    /// An entry of an ERC-8004 registry, written `eip155:CHAIN:REGISTRY:AGENT`.
    Registration(RegisteredAgentId),
}

/// The text is neither an ENS name nor an entry of an ERC-8004 registry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an ENS name, or eip155:CHAIN:REGISTRY:AGENT")]
pub struct SellerIdentityError;

impl SellerIdentity {
    /// The ENS name. `None` for a registration.
    pub(crate) fn ens_name(&self) -> Option<String> {
        match self {
            Self::Name(name) => Some(name.as_str().to_owned()),
            Self::Registration(_) => None,
        }
    }
}

impl FromStr for SellerIdentity {
    type Err = SellerIdentityError;

    fn from_str(text: &str) -> Result<Self, SellerIdentityError> {
        if text.contains(':') {
            return text.parse().map(Self::Registration).map_err(|_| SellerIdentityError);
        }
        let name = EnsName::parse(text).map_err(|_| SellerIdentityError)?;
        if name.as_str().contains('.') { Ok(Self::Name(name)) } else { Err(SellerIdentityError) }
    }
}

impl fmt::Display for SellerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name.as_str()),
            Self::Registration(registration) => registration.fmt(f),
        }
    }
}

impl Serialize for SellerIdentity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SellerIdentity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Who names an identity. If the configuration, the caller or the memory names it, it counts once it is proven. If only
/// the seller names it, it is a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SellerIdentitySource {
    /// The configuration pins it for the origin.
    Configuration,
    /// The caller names it: a guard's constructor, or the command line.
    Caller,
    /// It was accepted for the origin before.
    Memory,
    /// Only the terms, the host or a model's tool call names it.
    Seller,
}

/// An identity, and who names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamedSellerIdentity {
    /// The identity.
    pub identity: SellerIdentity,
    /// Who names it.
    pub named_by: SellerIdentitySource,
}

/// The kinds of evidence about a payee, in the order in which a check lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PayeeEvidenceKind {
    /// A trusted Agent-Card covers the URL, and the payee is proven.
    Card,
    /// The payee is an address of an ENS name.
    Name,
    /// The payee is the wallet of an ERC-8004 registration.
    Erc8004,
    /// A key that the name publishes signed an offer for these terms.
    Offer,
    /// The origin showed the same identity before.
    History,
}

impl PayeeEvidenceKind {
    /// Every kind, in the order in which a check lists them.
    pub const ALL: [Self; 5] = [Self::Card, Self::Name, Self::Erc8004, Self::Offer, Self::History];

    /// The serialized form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Card => "card",
            Self::Name => "name",
            Self::Erc8004 => "erc8004",
            Self::Offer => "offer",
            Self::History => "history",
        }
    }
}

impl fmt::Display for PayeeEvidenceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What happens if only the seller names an identity, it is proven in both directions, and the origin has none yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FirstContactPolicy {
    /// The check is undecided until the operator accepts the identity.
    #[default]
    Undecided,
    /// The identity is allowed and remembered.
    Allow,
}

/// The evidence that the operator accepts: `[check]` of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayeeEvidencePolicy {
    /// The kinds of evidence that prove a payee. [`PayeeEvidenceKind::History`] never does.
    pub accept: BTreeSet<PayeeEvidenceKind>,
    /// What happens at first contact.
    pub first_contact: FirstContactPolicy,
    /// Whether the address of an off-chain name proves a payee. Only the gateway's signer vouches for it.
    pub offchain: bool,
}

impl Default for PayeeEvidencePolicy {
    fn default() -> Self {
        let accept = PayeeEvidenceKind::ALL.into_iter().filter(|kind| *kind != PayeeEvidenceKind::History);
        Self { accept: accept.collect(), first_contact: FirstContactPolicy::default(), offchain: false }
    }
}

/// What is remembered about an origin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginMemoryEntry {
    /// The identity that the operator accepted, or that first contact allowed.
    pub identity: Option<ProvenSellerIdentity>,
    /// The last identity that the seller named and that was proven in both directions. It is not accepted yet.
    pub proposed: Option<ProvenSellerIdentity>,
    /// The last payee.
    pub payee: Option<RememberedPayee>,
}

/// An identity that a seller named and that was proven in both directions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProvenSellerIdentity {
    /// The identity.
    pub identity: SellerIdentity,
    /// When it was first proven.
    pub at: Timestamp,
    /// The block of the evidence at that time.
    pub block: Option<u64>,
}

/// A payee to whom an origin demanded payment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RememberedPayee {
    /// The address.
    pub address: Address,
    /// The network of the payment.
    pub network: Caip2Network,
    /// When it was first demanded.
    pub at: Timestamp,
    /// The block of the evidence at that time.
    pub block: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        for (url, origin) in [
            ("https://A.example/x?y", Some("https://a.example")),
            ("https://a.example:443", Some("https://a.example")),
            ("https://a.example:8443/", Some("https://a.example:8443")),
            ("https://www.a.example", Some("https://www.a.example")),
            ("http://127.0.0.1:8080/a", Some("http://127.0.0.1:8080")),
            ("http://127.0.0.2/", Some("http://127.0.0.2")),
            ("http://a.example/", None),
            ("https://u:p@a.example/", None),
            ("https://a.example./", None),
            ("ftp://a.example/", None),
            ("a.example", None),
        ] {
            assert_eq!(WebOrigin::from_url_text(url).as_ref().map(WebOrigin::as_str), origin, "{url}");
        }
        assert!("https://a.example/".parse::<WebOrigin>().is_ok());
        for not_bare in ["https://a.example/x", "https://a.example/?x", "https://a.example/#x"] {
            assert_eq!(not_bare.parse::<WebOrigin>(), Err(WebOriginError), "{not_bare}");
        }
    }

    #[test]
    fn an_identity_is_a_name_or_an_entry_of_a_registry() {
        let registration = "eip155:8453:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432:22";
        for (text, normal) in [("Seller.eth", Some("seller.eth")), (registration, Some(registration))] {
            let identity = text.parse::<SellerIdentity>().ok().map(|identity| identity.to_string());
            assert_eq!(identity.as_deref(), normal, "{text}");
        }
        for bad in ["seller", "", "a..eth", "eip155:8453:22", "eip155:1:0x1:2", "https://a.eth"] {
            assert_eq!(bad.parse::<SellerIdentity>(), Err(SellerIdentityError), "{bad}");
        }
    }
}
