//! The decision: every check, each made once, and what follows from them.

/// Placeholder.
pub fn decide() -> crate::Decision {
    crate::Decision
}
