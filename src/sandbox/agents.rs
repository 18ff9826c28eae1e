//! The agents of the sandbox.

use super::Expected;
use super::spec::Spec;
use crate::verdict::State;

/// Good agents, and one for each way in which a publisher can go wrong.
const AGENTS: &str = include_str!("agents.toml");

/// The sandbox as data.
pub(super) fn spec() -> Spec {
    Spec::parse(AGENTS).expect("the file is part of the program and is parsed by its tests")
}

/// Every agent that has a verdict to expect: trusted ones first, then by name.
pub(super) fn expected() -> Vec<Expected> {
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
