//! Decides with a resolver in this process instead of a daemon.

use async_trait::async_trait;
use clresolve_resolver::Resolver;
use clresolve_resolver::payment::decide::Selected;
use clresolve_resolver::payment::decision::Decision;
use clresolve_resolver::payment::limits::CallerLimits;
use clresolve_resolver::payment::request::DecisionRequest;
use clresolve_resolver::payment::terms;
use serde_json::Value;

use crate::guard::Decides;
use crate::refusal::{Refusal, Why};
use crate::reply::{Allowed, Payable, Reply};

/// A resolver in this process, and the agent and verb in question. The resolver's configuration determines gate and
/// limits.
#[derive(Clone)]
pub struct InProcess {
    resolver: Resolver,
    name: String,
    verb: String,
    limits: CallerLimits,
}

impl InProcess {
    /// The resolver, for the agent with this ENS name and the verb to pay for.
    pub fn new(resolver: Resolver, agent: impl Into<String>, verb: impl Into<String>) -> Self {
        Self { resolver, name: agent.into(), verb: verb.into(), limits: CallerLimits::default() }
    }

    /// Applies limits that are stricter than those of the configuration.
    #[must_use]
    pub fn tightened(self, limits: CallerLimits) -> Self {
        Self { limits, ..self }
    }

    fn about(&self, reply: &Reply) -> DecisionRequest {
        let Reply { url, headers, body } = reply.clone();
        let reply = terms::Reply { status: 402, headers, body };
        let request = DecisionRequest::about_reply(&*self.name, &*self.verb, url, reply);
        DecisionRequest { limits: self.limits.clone(), ..request }
    }
}

#[async_trait]
impl Decides for InProcess {
    async fn gate(&self) -> Result<(), Refusal> {
        self.resolver.gate(&self.name, &self.verb).await.map_err(|code| Refusal::new(Why::Denied, [code.to_owned()]))
    }

    async fn decide(&self, reply: &Reply) -> Result<Allowed, Refusal> {
        let decision = self.resolver.decide(&self.about(reply)).await;
        Allowed::new(passing(&decision)).ok_or_else(|| Refusal::new(Why::Denied, decision.codes))
    }

    async fn signed(&self, reply: &Reply, header: &str, entry: usize) -> Result<Value, Refusal> {
        let (selected, header) = (Some(Selected::Index(entry)), Some(header.to_owned()));
        let decision = self.resolver.decide(&DecisionRequest { selected, header, ..self.about(reply) }).await;
        if decision.abort {
            return Err(Refusal::new(Why::PaymentDenied, decision.codes));
        }
        serde_json::to_value(decision).map_err(|error| Refusal::of_kind(Why::Unavailable).caused_by(error))
    }
}

fn passing(decision: &Decision) -> Vec<Payable> {
    decision.passing().map(|(entry, until)| Payable { entry, until: until.into() }).collect()
}
