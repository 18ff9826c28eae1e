//! The configuration in force, which a reload replaces as a whole: each answer comes from one configuration.

use std::sync::{Arc, PoisonError, RwLock};

use axum::Router;

use super::admission::Answered;
use super::client_limits::Client;
use super::cors::PagePermissions;
use super::state::AppState;
use crate::reason::Refusal;
use crate::resolve::Question;

/// The state that requests are answered from, and its routes.
pub(super) struct InForce(RwLock<Serving>);

/// What one configuration serves.
#[derive(Clone)]
pub(super) struct Serving {
    pub(super) state: Arc<AppState>,
    pub(super) router: Router,
    /// Which web pages may read the answers.
    pub(super) pages: PagePermissions,
}

impl InForce {
    pub(super) const fn new(serving: Serving) -> Self {
        Self(RwLock::new(serving))
    }

    /// The state now in force.
    pub(super) fn state(&self) -> Arc<AppState> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner).state)
    }

    /// The state now in force, with its routes.
    pub(super) fn serving(&self) -> Serving {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The answer to a question that was put to the state `asked`, and the state that is in force then. What was tightened
    /// while the question was open holds for its answer: endpoints and rules as well as limits.
    pub(super) async fn ask(
        &self,
        asked: &AppState,
        client: Client,
        question: Question,
    ) -> Result<(Arc<AppState>, Answered), Refusal> {
        let answered = asked.admission.ask(client, question.clone()).await?;
        let latest = self.state();
        if std::ptr::eq(&*latest, asked) {
            return Ok((latest, answered));
        }
        let answered = latest.admission.ask(client, question).await?;
        Ok((latest, answered))
    }

    /// From the next answer on `serving` is in force.
    pub(super) fn replace(&self, serving: Serving) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = serving;
    }
}
