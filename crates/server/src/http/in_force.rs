//! The configuration in force. A reload replaces it as a whole, so each response is produced under one configuration.

use std::sync::{Arc, PoisonError, RwLock};

use axum::Router;
use clresolve_core::reason::RefusalCode;
use clresolve_resolver::resolve::NameQuestion;

use super::admission::ResolutionAndCacheUse;
use super::client_limits::ClientIdentity;
use super::cors::CrossOriginPolicy;
use super::state::AppState;

/// The state that requests are served from, with its routes.
pub(super) struct CurrentService(RwLock<Arc<ConfiguredService>>);

/// What the daemon serves under one configuration.
pub(super) struct ConfiguredService {
    pub(super) state: Arc<AppState>,
    pub(super) router: Router,
    /// Which web pages may read the responses.
    pub(super) pages: CrossOriginPolicy,
}

impl CurrentService {
    pub(super) fn new(serving: ConfiguredService) -> Self {
        Self(RwLock::new(Arc::new(serving)))
    }

    pub(super) fn state(&self) -> Arc<AppState> {
        Arc::clone(&self.configured_service().state)
    }

    pub(super) fn configured_service(&self) -> Arc<ConfiguredService> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Answers a question that was asked under the state `asked`. Returns the answer and the state in force at that
    /// time. If a reload tightened the configuration while the question was open, the new endpoints, rules and limits
    /// apply.
    pub(super) async fn resolve_under_current_config(
        &self,
        asked: &AppState,
        client: ClientIdentity,
        question: NameQuestion,
    ) -> Result<(Arc<AppState>, ResolutionAndCacheUse), RefusalCode> {
        let answered = asked.admission.resolve_with_cache(client, question.clone()).await?;
        let latest = self.state();
        if std::ptr::eq(&*latest, asked) {
            return Ok((latest, answered));
        }
        let answered = latest.admission.resolve_with_cache(client, question).await?;
        Ok((latest, answered))
    }

    /// Puts `serving` in force from the next response on.
    pub(super) fn replace_service(&self, serving: ConfiguredService) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(serving);
    }
}
