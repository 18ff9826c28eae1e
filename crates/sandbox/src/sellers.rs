//! The sellers without an Agent-Card: their hosts, their replies to a request without a payment, and the decision that
//! a check of each should give.

use std::collections::{BTreeSet, HashMap};

use alloy_primitives::Address;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use url::Url;

use crate::agents;
use crate::chain::CHAIN_ID;
use crate::keys::{payee_address, stranger_address};
use crate::registrations::{self, AgentRegistryEntry};
use crate::seller::{self, SELLER_HOST};
use crate::spec::{
    AddressRecordsSpec, CardlessNameSpec, ExpectedCheckDecision, SandboxSellerSpec, SandboxSpec,
    WellKnownRegistrationSpec,
};
use crate::web::{self, HostReaction, ServedFile};

/// Path of an origin's registration file (ERC-8004).
const WELL_KNOWN: &str = "/.well-known/agent-registration.json";

/// A seller of the sandbox and the decision that a check of its URL should give, with the sandbox's configuration and
/// memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExpectedSellerCheck {
    /// The URL to check.
    pub url: String,
    /// The name that the caller passes.
    pub name: Option<String>,
    /// `allow`, `deny` or `undecided`.
    pub decision: &'static str,
    /// Every code, in alphabetical order.
    #[serde(skip)]
    pub codes: Vec<String>,
    /// What distinguishes the seller, in one sentence.
    #[serde(skip)]
    pub about: String,
}

/// Every seller of the sandbox, by URL. Those that may be paid come first.
pub fn expected_sellers() -> Vec<ExpectedSellerCheck> {
    let mut sellers = agents::sandbox_spec().sellers;
    sellers.sort_by(|a, b| {
        let rank = |seller: &SandboxSellerSpec| seller.decision != ExpectedCheckDecision::Allow;
        (rank(a), &a.url).cmp(&(rank(b), &b.url))
    });
    let expected = |seller: SandboxSellerSpec| ExpectedSellerCheck {
        codes: seller.codes.iter().map(|code| code.slug().to_owned()).collect(),
        decision: seller.decision.as_str(),
        url: seller.url,
        name: seller.name,
        about: seller.about,
    };
    sellers.into_iter().map(expected).collect()
}

/// The identities that the sandbox's configuration pins, by origin. An identity is a name, or
/// `eip155:CHAIN:REGISTRY:NUMBER`.
pub fn pinned_identities() -> Vec<(String, String)> {
    let spec = agents::sandbox_spec();
    let entries = registrations::registry_entries(&spec);
    let pin = |seller: &SandboxSellerSpec| {
        Some((seller_origin(seller), fill_registration_placeholder(seller, seller.pinned.as_deref()?, &entries)))
    };
    spec.sellers.iter().filter_map(pin).collect()
}

/// What is remembered about a seller.
#[derive(Clone, Debug)]
pub struct SellerMemorySeed {
    /// The origin.
    pub origin: String,
    /// The accepted identity.
    pub identity: Option<String>,
    /// The last payee, and its network (CAIP-2).
    pub payee: Option<(Address, String)>,
}

/// The initial entries of the sandbox's memory. Identities have the same form as in [`pinned_identities`].
pub fn seller_memory_seeds() -> Vec<SellerMemorySeed> {
    let spec = agents::sandbox_spec();
    let entries = registrations::registry_entries(&spec);
    let memory = |seller: &SandboxSellerSpec| {
        let known = seller.remembered.as_deref().map(|known| fill_registration_placeholder(seller, known, &entries));
        let paid = seller.remembered_other_payee.then(|| (stranger_address(), format!("eip155:{CHAIN_ID}")));
        let (origin, is_remembered) = (seller_origin(seller), known.is_some() || paid.is_some());
        is_remembered.then_some(SellerMemorySeed { origin, identity: known, payee: paid })
    };
    spec.sellers.iter().filter_map(memory).collect()
}

fn seller_origin(seller: &SandboxSellerSpec) -> String {
    seller_url(seller).origin().ascii_serialization()
}

fn seller_url(seller: &SandboxSellerSpec) -> Url {
    seller.url.parse().expect("the tests parse every URL of the file")
}

/// An identity with its placeholder filled in.
fn fill_registration_placeholder(
    seller: &SandboxSellerSpec,
    stated: &str,
    entries: &[AgentRegistryEntry<'_>],
) -> String {
    let own = seller_registry_entry(seller, entries)
        .map(|entry| format!("{}:{}", registrations::registry_identifier(), entry.number));
    stated.replace("{registration}", &own.unwrap_or_default())
}

fn seller_registry_entry<'e, 'a>(
    seller: &SandboxSellerSpec,
    entries: &'e [AgentRegistryEntry<'a>],
) -> Option<&'e AgentRegistryEntry<'a>> {
    entries.iter().find(|entry| entry.subject == seller.url)
}

/// The sellers that have their own hosts. Those at [`SELLER_HOST`] belong to agents.
fn sellers_with_own_host(spec: &SandboxSpec) -> impl Iterator<Item = (String, &SandboxSellerSpec)> {
    let of_host = |seller| Some((seller_url(seller).host_str()?.to_owned(), seller));
    spec.sellers.iter().filter_map(of_host).filter(|(host, _)| host != SELLER_HOST)
}

pub(crate) fn seller_hosts(spec: &SandboxSpec) -> BTreeSet<String> {
    sellers_with_own_host(spec).map(|(host, _)| host).collect()
}

/// The names of the sellers. Each has the honest payee as its address unless its definition overrides it.
pub(crate) fn seller_names(spec: &SandboxSpec) -> impl Iterator<Item = CardlessNameSpec> {
    spec.sellers.iter().flat_map(|seller| seller.names.iter().map(move |name| (seller, name))).map(|(seller, name)| {
        let addresses = seller::payee_address_records().into_iter().chain(name.addresses.0.clone()).collect();
        let mut name = CardlessNameSpec { addresses: AddressRecordsSpec(addresses), ..name.clone() };
        for text in name.records.values_mut() {
            *text = text.replace("{url}", &seller.url).replace("{origin}", &seller_origin(seller));
        }
        name
    })
}

/// The registration files that the sellers' origins serve, by host and path.
pub(crate) fn seller_registration_files(spec: &SandboxSpec) -> Vec<((String, String), ServedFile)> {
    let entries = registrations::registry_entries(spec);
    let file = |seller: &SandboxSellerSpec| match &seller.well_known {
        WellKnownRegistrationSpec::Own => seller_registry_entry(seller, &entries).map(|entry| entry.file.clone()),
        WellKnownRegistrationSpec::Missing | WellKnownRegistrationSpec::Moved(_) => None,
        WellKnownRegistrationSpec::Ens(name) => {
            let services = [json!({"name": "ENS", "endpoint": name})];
            Some(registrations::registration_file(&seller.url, &seller.about, &services, None))
        }
    };
    let document =
        |(host, seller)| Some(((host, WELL_KNOWN.to_owned()), ServedFile::served_correctly(file(seller)?.into())));
    sellers_with_own_host(spec).filter_map(document).collect()
}

/// The replies of the sellers, by host and path.
pub(crate) struct SandboxSellerReplies(HashMap<(String, String), SandboxSellerReply>);

/// The reply at one URL.
enum SandboxSellerReply {
    Redirect(String),
    Terms {
        url: String,
        /// The last segment of the path.
        verb: String,
        behaviour: String,
        /// The entry of the terms, without the defect that the behaviour names.
        entry: Value,
    },
}

impl SandboxSellerReply {
    fn from_spec(seller: &SandboxSellerSpec, entries: &[AgentRegistryEntry<'_>]) -> Self {
        if let Some(target) = &seller.redirect {
            return Self::Redirect(target.clone());
        }
        let mut entry = seller::terms_entry(payee_address());
        if let Some(name) = &seller.claims_name {
            entry["extra"]["ens"] = json!(name);
        }
        if let Some(own) = seller_registry_entry(seller, entries).filter(|_| seller.claims_registration) {
            entry["extra"]["erc8004"] =
                json!({"agentRegistry": registrations::registry_identifier(), "agentId": own.number});
        }
        let verb = seller_url(seller).path().rsplit('/').next().unwrap_or_default().to_owned();
        Self::Terms { url: seller.url.clone(), verb, behaviour: seller.behaviour.clone(), entry }
    }
}

impl SandboxSellerReplies {
    pub(crate) fn new(spec: &SandboxSpec) -> Self {
        let entries = registrations::registry_entries(spec);
        let mut replies = HashMap::new();
        for (host, seller) in sellers_with_own_host(spec) {
            if let WellKnownRegistrationSpec::Moved(target) = &seller.well_known {
                replies.insert((host.clone(), WELL_KNOWN.to_owned()), SandboxSellerReply::Redirect(target.clone()));
            }
            replies
                .insert((host, seller_url(seller).path().to_owned()), SandboxSellerReply::from_spec(seller, &entries));
        }
        Self(replies)
    }

    /// The response to a request for `path` on `host`. `None` if no seller has this URL.
    pub(crate) fn answer_request(&self, host: &str, path: &str, now: Timestamp) -> Option<HostReaction> {
        Some(match self.0.get(&(host.to_owned(), path.to_owned()))? {
            SandboxSellerReply::Redirect(target) => web::redirect_reaction(target),
            SandboxSellerReply::Terms { url, verb, behaviour, entry } => {
                seller::seller_reply(behaviour, url, verb, entry, now)
            }
        })
    }

    pub(crate) fn has_host(&self, host: &str) -> bool {
        self.0.keys().any(|(known, _)| known == host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sellers_are_sorted_and_each_has_its_own_url() {
        let expected = expected_sellers();
        let urls: BTreeSet<&str> = expected.iter().map(|seller| seller.url.as_str()).collect();
        assert_eq!(urls.len(), expected.len());
        assert_eq!(expected[0].decision, "allow");
        for seller in &expected {
            let url = Url::parse(&seller.url).unwrap();
            assert!(url.as_str() == seller.url && url.scheme() == "https", "{}", seller.url);
            assert!(seller.about.ends_with('.'), "{}: a sentence ends with a full stop", seller.url);
            assert!(seller.codes.windows(2).all(|pair| pair[0] < pair[1]), "{}", seller.url);
            assert!(seller.decision == "allow" || !seller.codes.is_empty(), "{}", seller.url);
        }
    }

    #[test]
    fn identity_that_is_named_exists_unless_it_is_meant_to_be_unknown() {
        let spec = agents::sandbox_spec();
        let agents = spec.agents.iter().map(|agent| agent.name.clone());
        let names: BTreeSet<String> = seller_names(&spec).map(|name| name.name).chain(agents).collect();
        let known = |identity: &str| names.contains(identity) || identity.starts_with("eip155:31337:0x8004");
        let remembered = seller_memory_seeds();
        let accepted = remembered.iter().filter_map(|seller| Some((&seller.origin, seller.identity.as_ref()?)));
        for (origin, identity) in
            pinned_identities().iter().map(|(origin, identity)| (origin, identity)).chain(accepted)
        {
            assert!(known(identity), "{origin}: {identity}");
        }
        let claimed = spec.sellers.iter().filter_map(|seller| seller.claims_name.as_ref());
        claimed.for_each(|name| assert!(known(name), "{name}"));
    }
}
