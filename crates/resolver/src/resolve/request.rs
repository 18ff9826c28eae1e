//! Checks requests. This module gathers the agent's verdict and the schema that its card binds, and passes them to the
//! pure judgement.

use std::sync::Arc;

use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_messages::request::document::RequestCheckDocumentInputs;
use clresolve_messages::request::{OutgoingAgentRequest, RequestCheckDocument, RequestTemplate, judge_request};
use clresolve_verdict::card::SchemaRole;
use clresolve_verdict::trust::Resolution;
use clresolve_verdict::verdict::AgentIdentity;

use super::schemas::BoundSchemaResult;
use super::{Resolver, ResolverState};

impl Resolver {
    /// Checks whether a request may be sent to an agent. The agent must be trusted, and the request must satisfy the
    /// schema that the card binds for the verb. Only proven bytes are accepted as a schema. Nothing is sent.
    ///
    /// Never fails: errors are part of the answer.
    pub async fn check_request(&self, question: &OutgoingAgentRequest) -> RequestCheckDocument {
        let resolution = self.resolve(&question.name).await;
        self.check_request_with_resolution(&resolution, Arc::new(question.clone())).await
    }

    /// Like [`Resolver::check_request`], for the agent of a verdict that was just obtained.
    pub async fn check_request_with_resolution(
        &self,
        resolution: &Resolution,
        question: Arc<OutgoingAgentRequest>,
    ) -> RequestCheckDocument {
        let bound = self.request_schema(resolution, &question.verb).await;
        let (verdict, now) = (resolution.verdict().clone(), self.now());
        let judged = move || {
            let judgement = judge_request(&question.request, bound.as_deref().ok());
            let bound = bound.as_deref().map_err(AsRef::as_ref);
            RequestCheckDocument::from_judgement(
                Some(judgement),
                &RequestCheckDocumentInputs { verdict: &verdict, verb: &question.verb, bound, now },
            )
        };
        self.0.walker.pool.run(judged).await
    }

    /// Builds a request that the schema allows, as far as the schema is specific. `request_id` is its identifier and
    /// must be unique.
    ///
    /// # Errors
    /// If there is no schema, the answer that [`Resolver::check_request`] would return without a request.
    pub async fn request_template(
        &self,
        name: &str,
        verb: &str,
        request_id: String,
    ) -> Result<RequestTemplate, Box<RequestCheckDocument>> {
        let resolution = self.resolve(name).await;
        let now = self.now();
        match self.request_schema(&resolution, verb).await {
            Ok(bound) => {
                Ok(self.0.walker.pool.run(move || RequestTemplate::from_schema(&bound, &request_id, now)).await)
            }
            Err(reasons) => {
                let setting =
                    RequestCheckDocumentInputs { verdict: resolution.verdict(), verb, bound: Err(&reasons), now };
                Err(Box::new(RequestCheckDocument::from_judgement(None, &setting)))
            }
        }
    }

    /// The request schema for a verb. The error contains no reasons if the verdict already has them.
    async fn request_schema(&self, resolution: &Resolution, verb: &str) -> BoundSchemaResult {
        let Some(identity) = resolution.trusted_verdict().ok().and(resolution.verdict().identity.as_ref()) else {
            return Err([].into());
        };
        if let Some(reason) = unbound_verb_reason(identity, verb) {
            return Err([reason].into());
        }
        let ResolverState { walker, schemas, .. } = &*self.0;
        let profile = &self.0.configured.profile;
        schemas
            .bound_schema_of_agent(walker, profile, resolution, SchemaRole::Request)
            .await
            .unwrap_or_else(|| Err([].into()))
    }
}

/// CL-70: a card binds the schemas of its first verb only.
fn unbound_verb_reason(identity: &AgentIdentity, verb: &str) -> Option<Reason> {
    let first = identity.verbs.first().map(String::as_str);
    if first == Some(verb) {
        return None;
    }
    Some(Reason::new(ReasonCode::RequestVerbUnbound).expected(first.unwrap_or("none")).observed(verb))
}
