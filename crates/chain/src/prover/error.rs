use clresolve_core::text::excerpt_text;
use clresolve_state::ProvenCallError;
use tokio::task::JoinError;

use crate::failure::EndpointFailure;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallProverError {
    /// The call or a proof was rejected.
    #[error(transparent)]
    Proof(#[from] ProvenCallError),
    /// The endpoint returned no usable response.
    #[error("{0}")]
    Endpoint(EndpointFailure),
    /// The run ended without a result: it panicked, or the runtime is shutting down.
    #[error("the run ended without a result: {0}")]
    BrokenOff(String),
}

impl From<JoinError> for CallProverError {
    fn from(error: JoinError) -> Self {
        Self::BrokenOff(excerpt_text(&error.to_string()))
    }
}
