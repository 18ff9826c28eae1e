//! The words for what reasons say.

use crate::reason::{Code, Effect, Fixer, Reason};


/// The slugs of codes.
pub(super) fn slugs(codes: &[Code], separator: &str) -> String {
    codes.iter().map(|code| code.slug()).collect::<Vec<_>>().join(separator)
}

/// The rules behind reasons, without duplicates.
pub(super) fn rules<'a>(reasons: impl IntoIterator<Item = &'a Reason>) -> Vec<&'a str> {
    let mut rules: Vec<&str> = reasons.into_iter().filter_map(|reason| reason.requirement.as_deref()).collect();
    rules.sort_unstable();
    rules.dedup();
    rules
}

/// The word for an effect.
pub(super) const fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::Fail => "fail",
        Effect::Unknown => "unknown",
        Effect::Warn => "warn",
    }
}

/// Who can fix a reason.
pub(super) const fn fixer(code: Code) -> &'static str {
    role(code.entry().fixer)
}

/// The word for who can fix reasons.
pub(super) const fn role(fixer: Fixer) -> &'static str {
    match fixer {
        Fixer::Asker => "asker",
        Fixer::Publisher => "publisher",
        Fixer::Operator => "operator",
    }
}
