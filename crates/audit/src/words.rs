//! Words for codes, effects, actors and chains.

use clresolve_core::reason::{Code, Effect, Fixer, Reason};
use clresolve_verdict::verdict::Depth;

pub(super) fn slugs(codes: &[Code], separator: &str) -> String {
    codes.iter().map(|code| code.slug()).collect::<Vec<_>>().join(separator)
}

/// The distinct requirements of reasons.
pub(super) fn rules<'a>(reasons: impl IntoIterator<Item = &'a Reason>) -> Vec<&'a str> {
    let mut rules: Vec<&str> = reasons.into_iter().filter_map(|reason| reason.requirement.as_deref()).collect();
    rules.sort_unstable();
    rules.dedup();
    rules
}

pub(super) const fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::Fail => "fail",
        Effect::Unknown => "unknown",
        Effect::Warn => "warn",
    }
}

/// The role that can fix a code.
pub(super) const fn fixer(code: Code) -> &'static str {
    role(code.entry().fixer)
}

/// The word for who can fix reasons, for people. In an audit, the asker maintains the list.
pub(super) const fn role_in_words(fixer: Fixer) -> &'static str {
    match fixer {
        Fixer::Asker => "registry maintainer",
        Fixer::Publisher | Fixer::Operator | Fixer::Nobody => role(fixer),
    }
}

/// The word for who can fix reasons, for programs.
pub(super) const fn role(fixer: Fixer) -> &'static str {
    match fixer {
        Fixer::Asker => "asker",
        Fixer::Publisher => "publisher",
        Fixer::Operator => "operator",
        Fixer::Nobody => "nobody",
    }
}

/// The actor or actors in a sentence.
pub(super) const fn people(fixer: Fixer) -> &'static str {
    match fixer {
        Fixer::Asker => "the registry maintainer",
        Fixer::Publisher => "publishers",
        Fixer::Operator => "the operator",
        Fixer::Nobody => "nobody",
    }
}

/// The role in an audit, after "who"; plural for publishers.
pub(super) const fn do_together(fixer: Fixer) -> &'static str {
    match fixer {
        Fixer::Publisher => "own the names, set their records and host the cards",
        Fixer::Asker | Fixer::Operator | Fixer::Nobody => does(fixer),
    }
}

/// The role in an audit, in the singular.
pub(super) const fn does(fixer: Fixer) -> &'static str {
    match fixer {
        Fixer::Asker => "puts names on the list",
        Fixer::Publisher => "owns the name, sets its records and hosts the card",
        Fixer::Operator => "runs this resolver",
        Fixer::Nobody => "has nothing to do but wait",
    }
}

/// The depth of an audit in words.
pub(super) const fn depth(depth: Depth) -> &'static str {
    match depth {
        Depth::Identity => "cards checked, schemas not fetched",
        Depth::Schemas => "cards and their schemas checked",
    }
}

/// The name of a well-known chain, by its CAIP-2 identifier.
pub(super) fn chain_name(id: &str) -> Option<&'static str> {
    match id {
        "eip155:1" => Some("Ethereum"),
        "eip155:11155111" => Some("Sepolia, a test network"),
        "eip155:31337" => Some("a local test chain"),
        _ => None,
    }
}

/// A chain's name and CAIP-2 identifier.
pub(super) fn chain(id: &str) -> String {
    chain_name(id).map_or_else(|| format!("chain {id}"), |name| format!("{name} ({id})"))
}

/// A sentence for use inside another one: without its full stop, and starting in lower case unless with an
/// abbreviation.
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
