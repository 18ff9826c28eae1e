//! What was read about a seller.

use std::collections::BTreeMap;

use alloy_primitives::Address;
use clresolve_core::reading::ProofGrade;
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_verdict::evidence::links::{RegisteredAgentId, RegistrationFile};
use clresolve_verdict::trust::Resolution;
use jiff::Timestamp;

use super::identity::SellerIdentity;
use crate::network::Caip2Network;
use crate::offer::PublishedSigningKeys;
use crate::payee::{self, NetworkPayees, PayeeClaim, PayeeClaimSource};
use crate::route::AgentRoute;

/// The registration file at an origin's well-known path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OriginRegistrationFileReading {
    /// It was not requested.
    NotAsked,
    /// The origin has none.
    Absent,
    /// It could not be read, for this cause.
    Unread(Box<Reason>),
    /// The file.
    Read(RegistrationFile),
}

impl OriginRegistrationFileReading {
    /// The identity that it names: its first registration, else the name in its only ENS service.
    pub(crate) fn claimed_identity(&self) -> Option<SellerIdentity> {
        let Self::Read(file) = self else { return None };
        if let Some(registration) = file.registrations.first() {
            return Some(SellerIdentity::Registration(registration.clone()));
        }
        let mut names = file.ens_service_names();
        let name = names.next().filter(|_| names.next().is_none())?;
        name.parse().ok()
    }

    /// Whether it names this registration.
    pub(crate) fn names_registration(&self, registration: &RegisteredAgentId) -> bool {
        matches!(self, Self::Read(file) if file.registrations.contains(registration))
    }
}

/// The verdict on a name, and what the name and the configuration say about payees.
#[derive(Clone, Debug)]
pub struct NameVerdictAndPayees {
    /// The verdict of a live resolution, confirmed at the newest block.
    pub resolution: Resolution,
    /// The URL behind the card's entry, or why it is unknown.
    pub route: Result<AgentRoute, Box<Reason>>,
    /// Payees by network of the terms.
    pub payees: BTreeMap<Caip2Network, NetworkPayees>,
}

impl NameVerdictAndPayees {
    /// Where the name's tools are called over MCP.
    pub(crate) fn mcp_route(&self) -> Option<Result<AgentRoute, Box<Reason>>> {
        self.resolution.payment_records().and_then(AgentRoute::from_tools_record)
    }

    /// The block of the name's records.
    pub(crate) fn records_block(&self) -> Option<u64> {
        self.resolution.verdict().anchor.as_ref().map(|anchor| anchor.block.number)
    }

    /// Whether a gateway's signer states the addresses, rather than the chain.
    pub(crate) fn is_off_chain(&self) -> bool {
        self.resolution.payment_records().is_some_and(|published| published.settled_records().offchain)
            || self.resolution.verdict().anchor.as_ref().is_some_and(|anchor| anchor.offchain)
    }

    /// The payees on a network. The address of an off-chain name is undecided, unless the operator accepts it.
    pub(crate) fn payees_on(&self, network: &Caip2Network, offchain: bool) -> NetworkPayees {
        let mut payees = self.payees.get(network).cloned().unwrap_or_default();
        let is_told = self.is_off_chain() && !offchain;
        if is_told && !clresolve_core::mutant!("gateways-name-payees") {
            let reason = Reason::new(ReasonCode::PayeeUnproven).observed("the records of an off-chain name");
            for claim in [&mut payees.record, &mut payees.registration] {
                if matches!(claim, PayeeClaim::Is(..)) {
                    *claim = PayeeClaim::Undecided(Box::new(reason.clone()));
                }
            }
            payees.signers = PublishedSigningKeys::default();
        }
        payees
    }
}

/// An entry of an ERC-8004 registry at a finalized block of its chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistrationReading {
    /// It could not be read, for this cause.
    NotRead(Box<Reason>),
    /// The registry has no such agent.
    NoIdentity,
    /// The entry.
    Read {
        /// The entry.
        entry: RegisteredAgentId,
        /// The address at which the agent is paid.
        wallet: Option<Address>,
        /// The address that owns the entry, if it was asked for.
        owner: Option<Address>,
        /// The registration file, or why it could not be read.
        file: Result<RegistrationFile, Box<Reason>>,
        /// The height of the block.
        block: u64,
        /// The grade of the proof.
        grade: ProofGrade,
        /// When the reading expires.
        until: Timestamp,
    },
}

impl RegistrationReading {
    /// The payees on a network.
    pub(crate) fn payees_on(&self, network: &Caip2Network) -> NetworkPayees {
        let (registration, owner) = match self {
            Self::NotRead(reason) => (PayeeClaim::Undecided(reason.clone()), None),
            Self::Read { entry, wallet: Some(wallet), owner, block, until, .. }
                if network.chain_id() == Some(entry.chain_id()) || clresolve_core::mutant!("wallets-of-any-chain") =>
            {
                let read = payee::Erc8004WalletProvenance { agent: entry.agent_id(), block: *block, until: *until };
                (PayeeClaim::Is(*wallet, PayeeClaimSource::Registration(Box::new(read))), *owner)
            }
            Self::NoIdentity | Self::Read { .. } => (PayeeClaim::None, None),
        };
        NetworkPayees { registration, registration_owner: owner, ..NetworkPayees::default() }
    }
}
