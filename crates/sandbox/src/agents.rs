//! The agents of the sandbox.

use clresolve_core::reason::Code;
use clresolve_core::state::State;
use serde::Serialize;

use crate::schemas::Schemas;
use crate::spec::{Class, Spec};
use crate::world::Manifest;

/// Good agents, and one agent for each mistake that a publisher can make.
const AGENTS: &str = include_str!("agents.toml");

/// Sellers without an Agent-Card, with the decision that a check of each should give.
const SELLERS: &str = include_str!("sellers.toml");

/// The definition of the sandbox.
pub fn spec() -> Spec {
    let part = |toml| Spec::parse(toml).expect("the file is part of the program and is parsed by its tests");
    let mut spec = part(AGENTS).and(part(SELLERS));
    for agent in spec.agents.iter_mut().filter(|agent| agent.state == Some(State::Trusted) && agent.seller.is_none()) {
        agent.seller = Some(honest_seller(agent.class).to_owned());
    }
    spec
}

/// Good agents have a seller. The layer determines which version of x402 it uses.
const fn honest_seller(class: Class) -> &'static str {
    match class {
        Class::Commons => "",
        Class::Commercial => "v1",
    }
}

/// Every agent with an expected verdict, trusted ones first, then by name.
pub fn expected() -> Vec<Expected> {
    let mut expected: Vec<Expected> = spec()
        .agents
        .into_iter()
        .filter_map(|agent| {
            let mut codes = agent.codes;
            codes.sort_by_key(|code| code.slug());
            Some(Expected { state: agent.state?, name: agent.name, codes, about: agent.about })
        })
        .collect();
    expected.sort_by(|a, b| (a.state != State::Trusted, &a.name).cmp(&(b.state != State::Trusted, &b.name)));
    expected
}

/// A name of the sandbox and its expected verdict with the default settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Expected {
    /// The name.
    pub name: String,
    /// The state.
    pub state: State,
    /// The code of every reason, in alphabetical order.
    pub codes: Vec<Code>,
    /// What is special about the name, in one sentence.
    #[serde(skip)]
    pub about: String,
}

/// The manifests of the sandbox's own schemas, by which its names are judged. Starts no server.
pub fn manifests() -> Vec<Manifest> {
    Schemas::publish(&spec().schemas).manifests().cloned().collect()
}
