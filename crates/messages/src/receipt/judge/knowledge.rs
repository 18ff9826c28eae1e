//! The facts that a receipt is judged by: the agent, its signer, the request, the purchase and the bound schema.

use std::iter;

use alloy_primitives::Address;
use clresolve_core::name::EnsName;
use clresolve_core::payment::CoinType;
use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect};
use clresolve_jose::Ed25519PublicKey;
use clresolve_payment::receipt::PurchaseFacts;
use clresolve_payment::route::AgentRoute;
use clresolve_verdict::gate::GatePolicy;
use clresolve_verdict::published::{PaymentRecordStatus, PublishedPaymentRecords};
use clresolve_verdict::schema::bound::BoundSchema;
use clresolve_verdict::verdict::Verdict;
use jiff::{SignedDuration, Timestamp};

use crate::receipt::question::AgentRequest;

/// Accepted clock difference: a signer's clock may be this far ahead of ours, or behind the buyer's.
pub const MAX_CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(5);

/// Maximum number of an agent's verbs whose URLs are looked up. A layer has about a dozen. Each URL may be as long as a
/// record and is compared with all others.
const MAX_VERBS: usize = 64;

/// The facts that a receipt is judged by.
#[derive(Clone, Copy, Debug)]
pub struct ReceiptKnowledge<'a> {
    /// The agent that was called. `None` if its name cannot be parsed.
    pub agent: Option<&'a CalledAgent>,
    /// Who signs for the agent, or why that is unknown.
    pub signer: Result<&'a PublishedReceiptSigner, &'a Reason>,
    /// The request that was sent.
    pub request: Option<&'a AgentRequest>,
    /// The decision and the payment.
    pub bought: Option<&'a PurchaseFacts>,
    /// Earliest possible time of the purchase; `None` if unknown.
    pub earliest: Option<Timestamp>,
    /// The schema of the agent's receipts; `None` if its card binds none, or none whose bytes could be proven.
    pub schema: Option<BoundReceiptSchema<'a>>,
    /// The current time.
    pub now: Timestamp,
}

impl ReceiptKnowledge<'_> {
    /// The earliest time that a receipt for the purchase may state, allowing for clock differences.
    pub(super) fn earliest_receipt_time(&self) -> Option<Timestamp> {
        let earliest = self.earliest.filter(|_| !clresolve_core::mutant!("receipts-before-their-purchase"))?;
        Some(earliest.checked_sub(MAX_CLOCK_SKEW).unwrap_or(Timestamp::MIN))
    }
}

/// The agent that was called.
#[derive(Clone, Debug)]
pub struct CalledAgent {
    /// Its ENS name.
    pub name: EnsName,
    /// The x402 entry of its card.
    pub entry: Option<String>,
    /// The verbs of its card; empty if unknown.
    pub verbs: Vec<String>,
    /// Its addresses, whose keys sign x402's own receipts with EIP-712.
    pub addresses: SignerAddresses,
    /// The URLs behind its entry.
    pub routes: AgentEntryRoutes,
}

/// The addresses that a name publishes.
#[derive(Clone, Debug, Default)]
pub struct SignerAddresses {
    /// The addresses that are settled.
    pub settled: Vec<Address>,
    /// Why there may be further addresses.
    pub open: Option<Box<Reason>>,
}

impl SignerAddresses {
    /// The addresses that the verdict's name publishes, without those on which the gate would not rely: their proof is
    /// too weak, or the policy denies their source.
    pub fn from_published(verdict: &Verdict, published: Option<&PublishedPaymentRecords>, gate: &GatePolicy) -> Self {
        let Some(published) = published else { return Self::default() };
        let open =
            |why: String| Some(Box::new(Reason::new(ReasonCode::ReceiptKeyUnpublished).at_place("addr").observed(why)));
        let too_weak = verdict.anchor.as_ref().and_then(|anchor| gate.grade_objection(&anchor.proof));
        if let Some(code) = too_weak {
            return Self { settled: Vec::new(), open: open(format!("{code}, which the gate refuses")) };
        }
        let of_verdict = |code: &&ReasonCode| verdict.reasons.iter().any(|reason| reason.code == **code);
        let lends = [ReasonCode::RecordOffchain, ReasonCode::NameWildcard];
        if let Some(code) = lends.iter().filter(|code| gate.deny.contains(code)).find(of_verdict) {
            return Self { settled: Vec::new(), open: open(format!("{code}, which gate.deny refuses")) };
        }
        let is_open = |coin: &&CoinType| {
            matches!(
                published.payment_address_status(**coin),
                PaymentRecordStatus::Pending { .. }
                    | PaymentRecordStatus::Failed(_)
                    | PaymentRecordStatus::Malformed(_)
            )
        };
        let unread = published.settled_records().addresses.keys().find(is_open);
        Self {
            settled: published.settled_addresses(),
            open: unread.and_then(|coin| open(format!("the address for coin type {coin} is not settled"))),
        }
    }
}

/// The URLs behind the entry of an agent.
#[derive(Clone, Debug, Default)]
pub struct AgentEntryRoutes {
    /// The distinct URLs that are settled.
    pub settled: Vec<AgentRoute>,
    /// Why there may be further URLs.
    pub open: Option<Box<Reason>>,
}

impl AgentEntryRoutes {
    /// Collects the URL that `route` finds for each verb of the verdict's agent, the default verb first, and the MCP
    /// endpoint that its name has `published`.
    pub fn lookup_for_verbs(
        verdict: &Verdict,
        published: Option<&PublishedPaymentRecords>,
        route: impl Fn(Option<&str>) -> Result<AgentRoute, Box<Reason>>,
    ) -> Self {
        let verbs = verdict.identity.as_ref().map(|agent| agent.verbs.as_slice()).unwrap_or_default();
        let most = if clresolve_core::mutant!("urls-of-every-verb") { usize::MAX } else { MAX_VERBS };
        let further = verbs.iter().take(most).skip(1).map(|verb| Some(verb.as_str()));
        let unread = (verbs.len() > most).then(|| Err(too_many_verbs_reason(verbs.len()).into()));
        Self::from_lookup_results(
            iter::once(None)
                .chain(further)
                .map(route)
                .chain(unread)
                .chain(published.and_then(AgentRoute::from_tools_record)),
        )
    }

    /// Collects the lookup results for each verb of the agent. The absence of a URL is a valid result. An unknown or
    /// unusable record leaves the list open.
    pub fn from_lookup_results(found: impl IntoIterator<Item = Result<AgentRoute, Box<Reason>>>) -> Self {
        let mut routes = Self::default();
        for route in found {
            match route {
                Ok(route) if routes.settled.contains(&route) => {}
                Ok(route) => routes.settled.push(route),
                Err(reason) if (reason.code, &reason.place) == (ReasonCode::InvokeNoRoute, &None) => {}
                Err(reason) => routes.open = Some(Box::new(Reason { effect: ReasonEffect::Unknown, ..*reason })),
            }
        }
        routes
    }
}

fn too_many_verbs_reason(count: usize) -> Reason {
    let reason = Reason::new(ReasonCode::InvokeNoRoute).message("The agent has more verbs than are looked up.");
    reason.at_place("card: /implements").expected(format!("at most {MAX_VERBS}")).observed(count.to_string())
}

impl CalledAgent {
    /// The agent of a verdict, with its addresses and URLs; `None` if its name has no normal form.
    pub fn from_verdict(verdict: &Verdict, addresses: SignerAddresses, routes: AgentEntryRoutes) -> Option<Self> {
        let name = EnsName::parse(verdict.name.normalized.as_deref()?).ok()?;
        let identity = verdict.identity.as_ref();
        Some(Self {
            name,
            entry: identity.and_then(|identity| identity.entry.clone()),
            verbs: identity.map(|identity| identity.verbs.clone()).unwrap_or_default(),
            addresses,
            routes,
        })
    }
}

/// Who signs for the agent, according to its records and those of the signer's name.
#[derive(Clone, Debug)]
pub struct PublishedReceiptSigner {
    /// The signer's name from the agent's records.
    pub name: EnsName,
    /// The key in `cl.sig.pub`, or why it is unusable.
    pub key: Result<Ed25519PublicKey, Box<Reason>>,
    /// `cl.sig.kid`, or why it is unknown.
    pub kid: Result<String, Box<Reason>>,
    /// `cl.sig.canonical`.
    pub canonical: Option<String>,
    /// Height of the block at which the records of both names were read.
    pub block: u64,
    /// Warnings that third parties control the signer's records: `record-offchain`, `name-wildcard`.
    pub lent: Vec<ReasonCode>,
}

/// The receipt schema that the agent's card binds.
#[derive(Clone, Copy, Debug)]
pub struct BoundReceiptSchema<'a> {
    /// The verb that the schema is bound for.
    pub verb: &'a str,
    /// The schema, or why its bytes are unknown.
    pub schema: Result<&'a BoundSchema, &'a [Reason]>,
}

#[cfg(test)]
mod tests {
    use clresolve_core::payment::{EndpointRecord, EndpointRecordKey, PaymentRecords};
    use clresolve_core::records::TextRecord;
    use clresolve_core::state::TrustState;
    use clresolve_verdict::sample;
    use clresolve_verdict::verdict::AgentIdentity;

    use super::*;

    /// Each verb has a URL, and each URL is compared with all previous ones.
    #[test]
    fn the_verbs_whose_urls_are_looked_for_are_bounded() {
        let routes_of = |count: usize| {
            let mut verdict =
                sample::empty_resolution(TrustState::Trusted, Timestamp::UNIX_EPOCH, 0).verdict().as_ref().clone();
            let verbs = (0..count).map(|number| format!("v{number}")).collect();
            verdict.identity = Some(AgentIdentity { verbs, ..AgentIdentity::default() });
            let route = |verb: Option<&str>| {
                let url = format!("https://agent.example/{}", verb.unwrap_or("v0"));
                Ok(AgentRoute::from_configuration(&url).expect("an https URL"))
            };
            AgentEntryRoutes::lookup_for_verbs(&verdict, None, route)
        };
        let most = routes_of(MAX_VERBS);
        assert_eq!((most.settled.len(), most.open), (MAX_VERBS, None));
        let more = routes_of(MAX_VERBS + 1);
        let open = more.open.expect("there may be others");
        assert_eq!((more.settled.len(), open.effect), (MAX_VERBS, ReasonEffect::Unknown));
    }

    #[test]
    fn the_place_of_an_agents_tools_is_one_of_its_places() {
        let url = "https://agent.example/mcp";
        let records = || PaymentRecords {
            addresses: [].into(),
            endpoints: [(EndpointRecordKey::Mcp, EndpointRecord::Read(TextRecord::Text(url.to_owned())))].into(),
            offchain: false,
        };
        let published = sample::published_payments(records(), records());
        let verdict = sample::empty_resolution(TrustState::Trusted, Timestamp::UNIX_EPOCH, 0);
        let none = |_: Option<&str>| Err(Box::new(Reason::new(ReasonCode::InvokeNoRoute)));
        let routes = AgentEntryRoutes::lookup_for_verbs(verdict.verdict(), published.as_ref(), none);
        assert_eq!(routes.settled.iter().map(|route| route.url().as_str()).collect::<Vec<_>>(), [url]);
        assert!(AgentEntryRoutes::lookup_for_verbs(verdict.verdict(), None, none).settled.is_empty());
    }
}
