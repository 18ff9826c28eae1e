//! The written form of a decision.

/// Placeholder of the written form.
#[derive(Clone, Debug)]
pub struct Decision;
