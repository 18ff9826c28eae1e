//! What an agent demands for a verb, asked of its seller without paying.

use clresolve_payment::Decision;
use clresolve_payment::request::{DecisionRequest, Demand};
use clresolve_payment::terms::{Reply, Terms, Version};
use serde::Serialize;
use serde_json::{Value, json};

use super::Resolver;
use crate::reason::{Code, Reason};
use crate::verdict::{Resolution, State};

/// A question to a seller.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    /// The agent's name, as typed.
    pub(crate) name: String,
    /// The verb that would be paid for.
    pub(crate) verb: String,
    /// What is posted; `None` asks with GET.
    pub(crate) body: Option<&'static str>,
    /// Whose sellers are asked.
    pub(crate) sellers: Sellers,
}

/// Whose sellers are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sellers {
    /// Those of agents that the gate lets pass.
    OfAllowedAgents,
    /// Those of all agents.
    OfAllAgents,
}

/// The body of a request that is not paid for, as verbs are invoked: the empty object.
pub(crate) const EMPTY: &str = "{}";

impl Resolver {
    /// What the route of an agent answers, as a question about it. A seller that must not be asked, or of which nobody
    /// knows where it is, is not asked.
    pub(crate) async fn probe(&self, resolution: &Resolution, probe: &Probe) -> DecisionRequest {
        let Probe { name, verb, body, sellers } = probe;
        let unasked = |reason: Box<Reason>| {
            let question = DecisionRequest::about_reply(name, verb, "", Reply::default());
            DecisionRequest { url: None, demand: Demand::Unasked(reason), ..question }
        };
        let policy = self.0.walker.config.gate.policy();
        if *sellers == Sellers::OfAllowedAgents && policy.objection(resolution, Some(verb), None).is_some() {
            return unasked(Box::new(refused(resolution.verdict().state)));
        }
        let route = match self.route(resolution, Some(verb)) {
            Ok(route) => route,
            Err(reason) => return unasked(reason),
        };
        let url = route.url().as_str();
        match self.unpaid(url, *body).await {
            Ok(reply) => DecisionRequest::about_reply(name, verb, url, reply),
            Err(error) => {
                let reason = Reason::new(Code::InvokeNoRoute).message("The seller cannot be asked.");
                unasked(Box::new(reason.observed(error.to_string())))
            }
        }
    }
}

/// Why the seller of an agent is not asked that the gate denies. What the gate has against it stands beside this.
fn refused(state: State) -> Reason {
    match state {
        State::Untrusted => Reason::new(Code::InvokeRefusedUntrusted),
        State::Trusted | State::Indeterminate => {
            Reason::new(Code::InvokeNoRoute).message("The seller is not asked, since the gate denies this call.")
        }
    }
}

/// The answer, for programs.
#[derive(Serialize)]
pub(crate) struct ProbeAnswer<'a> {
    /// The terms, if the seller's reply has terms that can be read.
    terms: Option<Value>,
    decision: &'a Decision,
}

impl<'a> ProbeAnswer<'a> {
    pub(crate) fn new(terms: Option<&Terms>, decision: &'a Decision) -> Self {
        Self { terms: terms.map(written), decision }
    }
}

/// The terms, so that they can be decided about again: what stands in them of use to nobody is left out.
fn written(terms: &Terms) -> Value {
    let entries: Vec<_> = terms.entries.iter().map(|entry| &entry.json).collect();
    let mut written = json!({"x402Version": terms.version.number(), "accepts": entries});
    if terms.version == Version::V2 {
        written["resource"] = terms.resource.clone().into();
        written["extensions"] = Value::Object(terms.extensions.clone());
    }
    written
}
