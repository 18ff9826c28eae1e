//! Requests: the agent's verdict and the schema that its card binds are gathered here, and handed to the pure judgement.

use std::sync::Arc;

use clresolve_request::document::RequestSetting;
use clresolve_request::template::Fresh;
use clresolve_request::{Checked, RequestQuestion, Template, judge};

use super::schemas::Known;
use super::{Inner, Resolver};
use crate::card::Side;
use crate::reason::{Code, Reason};
use crate::verdict::{Identity, Resolution};

impl Resolver {
    /// Whether a request may be sent to an agent: that it is trusted, and that the request is what the schema demands that
    /// its card binds for the verb. Only proven bytes are a schema. Nothing is sent.
    ///
    /// Never fails: what went wrong is in the answer.
    pub async fn check_request(&self, question: &RequestQuestion) -> Checked {
        let resolution = self.resolve(&question.name).await;
        self.check_request_of(&resolution, Arc::new(question.clone())).await
    }

    /// The same, to the agent of a verdict that was just asked for.
    pub(crate) async fn check_request_of(&self, resolution: &Resolution, question: Arc<RequestQuestion>) -> Checked {
        let bound = self.request_schema(resolution, &question.verb).await;
        let (verdict, now) = (resolution.verdict().clone(), self.now());
        let judged = move || {
            let judgement = judge(&question.request, bound.as_deref().ok());
            let bound = bound.as_deref().map_err(AsRef::as_ref);
            Checked::of(Some(judgement), &RequestSetting { verdict: &verdict, verb: &question.verb, bound, now })
        };
        self.0.walker.pool.run(judged).await
    }

    /// A request that the schema allows, as far as it says what that is, with this identifier, which must be nobody
    /// else's.
    ///
    /// # Errors
    /// What [`Resolver::check_request`] would say without a request, where there is no schema.
    pub async fn request_template(&self, name: &str, verb: &str, request_id: String) -> Result<Template, Box<Checked>> {
        let resolution = self.resolve(name).await;
        let now = self.now();
        match self.request_schema(&resolution, verb).await {
            Ok(bound) => Ok(self.0.walker.pool.run(move || Template::of(&bound, &Fresh { request_id, now })).await),
            Err(reasons) => {
                let setting = RequestSetting { verdict: resolution.verdict(), verb, bound: Err(&reasons), now };
                Err(Box::new(Checked::of(None, &setting)))
            }
        }
    }

    /// The schema of requests for a verb. There are no reasons against it where the verdict has them.
    async fn request_schema(&self, resolution: &Resolution, verb: &str) -> Known {
        let Some(identity) = resolution.trusted().ok().and(resolution.verdict().identity.as_ref()) else {
            return Err([].into());
        };
        if let Some(reason) = unbound(identity, verb) {
            return Err([reason].into());
        }
        let Inner { walker, schemas, .. } = &*self.0;
        let profile = &self.0.configured.profile;
        schemas.of(walker, profile, resolution, Side::Request).await.unwrap_or_else(|| Err([].into()))
    }
}

/// CL-70: a card binds the schemas of its first verb.
fn unbound(identity: &Identity, verb: &str) -> Option<Reason> {
    let first = identity.verbs.first().map(String::as_str);
    if first == Some(verb) {
        return None;
    }
    Some(Reason::new(Code::RequestVerbUnbound).expected(first.unwrap_or("none")).observed(verb))
}
