//! The URL for an agent's entry, as a document: `schemas/route.schema.json`.

use clresolve_core::reason::Reason;
use clresolve_core::state::TrustState;
use clresolve_payment::route::AgentRoute;
use serde::Serialize;

use super::{Resolution, Resolver};

/// The answer as a document.
#[derive(Serialize)]
pub struct AgentRouteDocument<'a> {
    name: &'a str,
    verb: Option<&'a str>,
    state: TrustState,
    /// Why the gate denies requests to the agent for the verb.
    denied: Option<&'static str>,
    route: Option<&'a AgentRoute>,
    /// Why there is no route.
    reason: Option<&'a Reason>,
    verdict: &'a str,
}

impl<'a> AgentRouteDocument<'a> {
    /// The answer for `verb` of `name`, from its verdict and the route that was found.
    pub fn new(
        resolver: &Resolver,
        name: &'a str,
        verb: Option<&'a str>,
        resolution: &'a Resolution,
        route: &'a Result<AgentRoute, Box<Reason>>,
    ) -> Self {
        let verdict = resolution.verdict();
        Self {
            name,
            verb,
            state: verdict.state,
            denied: resolver.gate_denial_reason(resolution, verb),
            route: route.as_ref().ok(),
            reason: route.as_ref().err().map(|reason| &**reason),
            verdict: &verdict.id,
        }
    }

    /// Why the gate denies requests to the agent for the verb. If it does, the agent must not be called.
    pub const fn gate_denial_reason(&self) -> Option<&'static str> {
        self.denied
    }
}
