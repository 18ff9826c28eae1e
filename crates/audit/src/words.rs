//! The words for what reasons say.

use clresolve_core::reason::{Code, Effect, Fixer, Reason};
use clresolve_verdict::verdict::Depth;

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

/// The word for who can fix reasons, as people read it: in an audit, the one who asks keeps the list.
pub(super) const fn role_in_words(fixer: Fixer) -> &'static str {
    match fixer {
        Fixer::Asker => "list keeper",
        Fixer::Publisher | Fixer::Operator | Fixer::Nobody => role(fixer),
    }
}

/// The word for who can fix reasons, as programs read it.
pub(super) const fn role(fixer: Fixer) -> &'static str {
    match fixer {
        Fixer::Asker => "asker",
        Fixer::Publisher => "publisher",
        Fixer::Operator => "operator",
        Fixer::Nobody => "nobody",
    }
}

/// Those who have to act, as a sentence names them.
pub(super) const fn people(fixer: Fixer) -> &'static str {
    match fixer {
        Fixer::Asker => "the list keeper",
        Fixer::Publisher => "publishers",
        Fixer::Operator => "the operator",
        Fixer::Nobody => "nobody",
    }
}

/// What they do in an audit, after "who".
pub(super) const fn do_together(fixer: Fixer) -> &'static str {
    match fixer {
        Fixer::Publisher => "own the names, set their records and host the cards",
        Fixer::Asker | Fixer::Operator | Fixer::Nobody => does(fixer),
    }
}

/// What one of them does.
pub(super) const fn does(fixer: Fixer) -> &'static str {
    match fixer {
        Fixer::Asker => "puts names on the list",
        Fixer::Publisher => "owns the name, sets its records and hosts the card",
        Fixer::Operator => "runs this resolver",
        Fixer::Nobody => "has nothing to do but wait",
    }
}

/// How deep an audit looked.
pub(super) const fn depth(depth: Depth) -> &'static str {
    match depth {
        Depth::Identity => "cards checked, schemas not fetched",
        Depth::Schemas => "cards and their schemas checked",
    }
}

/// The name of a chain by its CAIP-2 identifier, where it is a known one.
pub(super) fn chain_name(id: &str) -> Option<&'static str> {
    match id {
        "eip155:1" => Some("Ethereum"),
        "eip155:11155111" => Some("Sepolia, a test network"),
        "eip155:31337" => Some("a local test chain"),
        _ => None,
    }
}

/// A chain by its CAIP-2 identifier.
pub(super) fn chain(id: &str) -> String {
    chain_name(id).map_or_else(|| format!("chain {id}"), |name| format!("{name} ({id})"))
}

/// A sentence as a part of another one: without its full stop, and in lower case unless it begins with an abbreviation.
pub(super) fn in_sentence(sentence: &str) -> String {
    let text = sentence.strip_suffix('.').unwrap_or(sentence);
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if !second.is_uppercase() => {
            first.to_lowercase().chain(text.chars().skip(1)).collect()
        }
        _ => text.to_owned(),
    }
}
