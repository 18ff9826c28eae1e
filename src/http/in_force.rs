//! The configuration in force, which a reload replaces as a whole: each answer comes from one configuration.

use std::sync::{Arc, PoisonError, RwLock};

use axum::Router;

use super::state::AppState;

/// The state that requests are answered from, and its routes.
pub(super) struct InForce(RwLock<Serving>);

/// What one configuration serves.
#[derive(Clone)]
pub(super) struct Serving {
    pub(super) state: Arc<AppState>,
    pub(super) router: Router,
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

    /// From the next answer on `serving` is in force.
    pub(super) fn replace(&self, serving: Serving) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = serving;
    }
}
