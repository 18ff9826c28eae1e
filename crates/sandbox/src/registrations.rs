//! The entries of the agent registry (ERC-8004) with their registration files. They are numbered from 1: the agents'
//! first, then the sellers'.

use alloy_primitives::Address;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clresolve_ipfs::build::DagBuilder;
use serde_json::{Value, json};

use crate::chain::{CHAIN_ID, IDENTITY_REGISTRY};
use crate::keys::{payee_address, stranger_address};
use crate::spec::{AgentRegistryEntrySpec, AgentWalletSpec, SandboxSpec};

/// An entry of the registry.
pub(crate) struct AgentRegistryEntry<'a> {
    pub(crate) number: u64,
    /// The name of its agent, or the URL of its seller.
    pub(crate) subject: &'a str,
    pub(crate) spec: &'a AgentRegistryEntrySpec,
    pub(crate) file: String,
}

impl AgentRegistryEntry<'_> {
    pub(crate) fn uri(&self) -> String {
        match &self.spec.uri {
            Some(uri) => uri.clone(),
            None if self.spec.ipfs => format!("ipfs://{}", DagBuilder::default().add_raw_block(self.file.clone()).cid),
            None => format!("data:application/json;base64,{}", STANDARD.encode(&self.file)),
        }
    }

    /// The account that registers it, which is its wallet until the wallet is unset.
    pub(crate) fn registering_account(&self) -> Address {
        match self.spec.wallet {
            AgentWalletSpec::Payee | AgentWalletSpec::Unset | AgentWalletSpec::Leaving => payee_address(),
            AgentWalletSpec::Stranger => stranger_address(),
        }
    }
}

/// The registry, as written in the member `agentRegistry` of registration files and terms.
pub(crate) fn registry_identifier() -> String {
    format!("eip155:{CHAIN_ID}:{IDENTITY_REGISTRY}")
}

/// Every entry of a sandbox, by number.
pub(crate) fn registry_entries(spec: &SandboxSpec) -> Vec<AgentRegistryEntry<'_>> {
    let ens = |name: &str| json!({"name": "ENS", "endpoint": name});
    let of_agents = spec.agents.iter().filter_map(|agent| {
        let entry = agent.erc8004.as_ref()?;
        let services = vec![ens(entry.ens.as_deref().unwrap_or(&agent.name))];
        Some((entry, agent.name.as_str(), agent.label(), &agent.about, services))
    });
    let of_sellers = spec.sellers.iter().filter_map(|seller| {
        let (entry, url) = (seller.erc8004.as_ref()?, seller.url.as_str());
        let web = json!({"name": "web", "endpoint": seller.listed_endpoint.as_deref().unwrap_or(url)});
        let services = [web].into_iter().chain(entry.ens.as_deref().map(ens)).collect();
        Some((entry, url, url, &seller.about, services))
    });
    let numbered = (1..).zip(of_agents.chain(of_sellers));
    numbered
        .map(|(number, (spec, subject, label, about, services))| AgentRegistryEntry {
            number,
            subject,
            spec,
            file: registration_file(label, about, &services, Some(number)),
        })
        .collect()
}

/// A registration file (ERC-8004), without a registration if `number` is `None`.
pub(crate) fn registration_file(name: &str, description: &str, services: &[Value], number: Option<u64>) -> String {
    let registration = number.map(|number| json!({"agentId": number, "agentRegistry": registry_identifier()}));
    let file = json!({
        "type": "https://eips.ethereum.org/EIPS/eip-8004#registration-v1",
        "name": name,
        "description": description,
        "services": services,
        "x402Support": true,
        "registrations": registration.into_iter().collect::<Vec<Value>>(),
    });
    file.to_string()
}
