//! Whom a name says to pay, and how that is known.

use alloy_primitives::Address;
use clresolve_core::payment::CoinType;
use clresolve_core::reason::{Code, Reason};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::network::Network;
use crate::offer::{self, SignerKeys};
use crate::terms::Price;

/// Everything that is known of a name's payees on one network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payees {
    /// Those that the operator names for the agent.
    pub configured: Vec<Address>,
    /// The address record for the network.
    pub record: Claim,
    /// The wallet of the name's ERC-8004 registration on the network.
    pub registration: Claim,
    /// Keys that the name publishes, with which offers are signed.
    pub signers: SignerKeys,
}

/// What one source says about the payee.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Claim {
    /// Nothing, or it was not asked.
    #[default]
    None,
    /// This address.
    Is(Address, ClaimSource),
    /// It could not be decided: `record-pending`, or `payee-unproven` with the cause.
    Undecided(Box<Reason>),
}

/// Where a claim stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimSource {
    /// The name's address record of this coin type.
    Record(CoinType),
    /// This agent of the ERC-8004 registry on the network.
    Registration(String),
}

/// How a payee is known to be the agent's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProvenBy {
    /// The configuration names it.
    Configured,
    /// The name's address record for the network, or ENSIP-19's default.
    Addr,
    /// The wallet of its ERC-8004 registration.
    Erc8004,
    /// An offer for exactly these terms, signed by a key that the name publishes.
    Offer,
}

impl ProvenBy {
    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Configured => "configured",
            Self::Addr => "addr",
            Self::Erc8004 => "erc8004",
            Self::Offer => "offer",
        }
    }
}

/// A payee that is the agent's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proven {
    /// How that is known.
    pub by: ProvenBy,
    /// Until when; `None`: as long as the verdict.
    pub until: Option<Timestamp>,
}

impl Payees {
    /// Whether `price.pay_to` is the agent's.
    ///
    /// # Errors
    /// Every objection; at least one.
    pub fn prove(&self, price: &Price, offers: &[Value], url: &str, now: Timestamp) -> Result<Proven, Vec<Reason>> {
        if let Some(reason) = nobody(price) {
            return Err(vec![reason]);
        }
        if let Some(by) = self.named(price.pay_to) {
            return Ok(Proven { by, until: None });
        }
        let mut objections = Vec::new();
        match offer::proves(offers, price, url, &self.signers, now) {
            Some(Ok(offered)) => return Ok(Proven { by: ProvenBy::Offer, until: offered.valid_until }),
            Some(Err(reason)) => objections.push(*reason),
            None => {}
        }
        objections.extend([&self.record, &self.registration].into_iter().filter_map(Claim::undecided));
        let others = self.others();
        if !others.is_empty() {
            let expected = others.iter().map(Address::to_string).collect::<Vec<_>>().join(", ");
            objections.push(mismatch(price).expected(expected));
        } else if objections.is_empty() {
            objections.push(Reason::new(Code::PayeeUnproven).observed(price.pay_to.to_string()));
        }
        Err(objections)
    }

    /// How an address is known without any offer.
    fn named(&self, address: Address) -> Option<ProvenBy> {
        if clresolve_core::mutant!("any-payee") {
            return Some(ProvenBy::Addr);
        }
        if self.configured.contains(&address) {
            return Some(ProvenBy::Configured);
        }
        match (&self.record, &self.registration) {
            (Claim::Is(known, _), _) if *known == address => Some(ProvenBy::Addr),
            (_, Claim::Is(known, _)) if *known == address => Some(ProvenBy::Erc8004),
            _ => None,
        }
    }

    /// Every address that is named.
    pub fn others(&self) -> Vec<Address> {
        let claimed = [&self.record, &self.registration].into_iter().filter_map(|claim| match claim {
            Claim::Is(address, _) => Some(*address),
            Claim::None | Claim::Undecided(_) => None,
        });
        self.configured.iter().copied().chain(claimed).collect()
    }

    /// How the proof reads in a sentence.
    pub fn provenance(&self, by: ProvenBy, network: &Network) -> String {
        match (by, &self.registration) {
            (ProvenBy::Configured, _) => "proven by the configuration".to_owned(),
            (ProvenBy::Addr, _) => "proven by addr(name)".to_owned(),
            (ProvenBy::Erc8004, Claim::Is(_, ClaimSource::Registration(agent))) => {
                format!("proven by agent {agent} of the ERC-8004 registry on {network}")
            }
            (ProvenBy::Erc8004, _) => "proven by its ERC-8004 registration".to_owned(),
            (ProvenBy::Offer, _) => "proven by an offer that a key of the name has signed".to_owned(),
        }
    }
}

impl Claim {
    fn undecided(&self) -> Option<Reason> {
        match self {
            Self::Undecided(reason) => Some((**reason).clone()),
            Self::None | Self::Is(..) => None,
        }
    }
}

/// Addresses that are nobody's: zero, and the asset itself.
fn nobody(price: &Price) -> Option<Reason> {
    let is_nobody = price.pay_to.is_zero() || price.pay_to == price.asset;
    (is_nobody && !clresolve_core::mutant!("the-asset-is-paid"))
        .then(|| mismatch(price).message("The terms pay the zero address, or the asset itself."))
}

fn mismatch(price: &Price) -> Reason {
    Reason::new(Code::PayeeMismatch).observed(price.pay_to.to_string())
}
