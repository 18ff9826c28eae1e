//! The agents of the sandbox.

use clresolve_core::reason::ReasonCode;
use clresolve_core::state::TrustState;
use serde::Serialize;

use crate::schemas::SandboxSchemaLayers;
use crate::spec::{SandboxSpec, VerbProtocolLayer};
use crate::world::SandboxSchemaManifest;

/// Good agents, and one agent for each mistake that a publisher can make.
const AGENTS: &str = include_str!("agents.toml");

/// Sellers without an Agent-Card, with the decision that a check of each should give.
const SELLERS: &str = include_str!("sellers.toml");

/// The definition of the sandbox.
pub fn sandbox_spec() -> SandboxSpec {
    let part = |toml| SandboxSpec::parse(toml).expect("the file is part of the program and is parsed by its tests");
    let mut spec = part(AGENTS).merged_with_spec(part(SELLERS));
    for agent in
        spec.agents.iter_mut().filter(|agent| agent.state == Some(TrustState::Trusted) && agent.seller.is_none())
    {
        agent.seller = Some(honest_seller_path(agent.class).to_owned());
    }
    spec
}

/// Good agents have a seller. The layer determines which version of x402 it uses.
const fn honest_seller_path(class: VerbProtocolLayer) -> &'static str {
    match class {
        VerbProtocolLayer::Commons => "",
        VerbProtocolLayer::Commercial => "v1",
    }
}

/// Every agent with an expected verdict, trusted ones first, then by name.
pub fn expected_agents() -> Vec<ExpectedAgentVerdict> {
    let mut expected: Vec<ExpectedAgentVerdict> = sandbox_spec()
        .agents
        .into_iter()
        .filter_map(|agent| {
            let mut codes = agent.codes;
            codes.sort_by_key(|code| code.slug());
            Some(ExpectedAgentVerdict { state: agent.state?, name: agent.name, codes, about: agent.about })
        })
        .collect();
    expected.sort_by(|a, b| (a.state != TrustState::Trusted, &a.name).cmp(&(b.state != TrustState::Trusted, &b.name)));
    expected
}

/// A name of the sandbox and its expected verdict with the default settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExpectedAgentVerdict {
    /// The name.
    pub name: String,
    /// The state.
    pub state: TrustState,
    /// The code of every reason, in alphabetical order.
    pub codes: Vec<ReasonCode>,
    /// What is special about the name, in one sentence.
    #[serde(skip)]
    pub about: String,
}

/// The manifests of the sandbox's own schemas, by which its names are judged. Starts no server.
pub fn schema_manifests() -> Vec<SandboxSchemaManifest> {
    SandboxSchemaLayers::with_schema_defects(&sandbox_spec().schemas).manifests().cloned().collect()
}
