//! Words for codes, effects, actors and chains.

use clresolve_core::reason::{FixerRole, Reason, ReasonCode, ReasonEffect};
use clresolve_verdict::verdict::ResolutionDepth;

pub(super) fn joined_slugs(codes: &[ReasonCode], separator: &str) -> String {
    codes.iter().map(|code| code.slug()).collect::<Vec<_>>().join(separator)
}

/// The distinct requirements of reasons.
pub(super) fn distinct_requirements<'a>(reasons: impl IntoIterator<Item = &'a Reason>) -> Vec<&'a str> {
    let mut rules: Vec<&str> = reasons.into_iter().filter_map(|reason| reason.requirement.as_deref()).collect();
    rules.sort_unstable();
    rules.dedup();
    rules
}

pub(super) const fn effect_word(effect: ReasonEffect) -> &'static str {
    match effect {
        ReasonEffect::Fail => "fail",
        ReasonEffect::Unknown => "unknown",
        ReasonEffect::Warn => "warn",
    }
}

/// The role that can fix a code.
pub(super) const fn fixer_slug(code: ReasonCode) -> &'static str {
    role_slug(code.entry().fixer)
}

/// The word for who can fix reasons, for people. In an audit, the asker maintains the list.
pub(super) const fn role_in_words(fixer: FixerRole) -> &'static str {
    match fixer {
        FixerRole::Asker => "registry maintainer",
        FixerRole::Publisher | FixerRole::Operator | FixerRole::Nobody => role_slug(fixer),
    }
}

/// The word for who can fix reasons, for programs.
pub(super) const fn role_slug(fixer: FixerRole) -> &'static str {
    match fixer {
        FixerRole::Asker => "asker",
        FixerRole::Publisher => "publisher",
        FixerRole::Operator => "operator",
        FixerRole::Nobody => "nobody",
    }
}

/// The actor or actors in a sentence.
pub(super) const fn actor_noun(fixer: FixerRole) -> &'static str {
    match fixer {
        FixerRole::Asker => "the registry maintainer",
        FixerRole::Publisher => "publishers",
        FixerRole::Operator => "the operator",
        FixerRole::Nobody => "nobody",
    }
}

/// The role in an audit, after "who"; plural for publishers.
pub(super) const fn plural_duty_phrase(fixer: FixerRole) -> &'static str {
    match fixer {
        FixerRole::Publisher => "own the names, set their records and host the cards",
        FixerRole::Asker | FixerRole::Operator | FixerRole::Nobody => singular_duty_phrase(fixer),
    }
}

/// The role in an audit, in the singular.
pub(super) const fn singular_duty_phrase(fixer: FixerRole) -> &'static str {
    match fixer {
        FixerRole::Asker => "puts names on the list",
        FixerRole::Publisher => "owns the name, sets its records and hosts the card",
        FixerRole::Operator => "runs this resolver",
        FixerRole::Nobody => "has nothing to do but wait",
    }
}

/// The depth of an audit in words.
pub(super) const fn depth_phrase(depth: ResolutionDepth) -> &'static str {
    match depth {
        ResolutionDepth::Identity => "cards checked, schemas not fetched",
        ResolutionDepth::Schemas => "cards and their schemas checked",
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
pub(super) fn chain_label(id: &str) -> String {
    chain_name(id).map_or_else(|| format!("chain {id}"), |name| format!("{name} ({id})"))
}

/// A sentence for use inside another one: without its full stop, and starting in lower case unless with an
/// abbreviation.
pub(super) fn embed_sentence(sentence: &str) -> String {
    let text = sentence.strip_suffix('.').unwrap_or(sentence);
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if !second.is_uppercase() => {
            first.to_lowercase().chain(text.chars().skip(1)).collect()
        }
        _ => text.to_owned(),
    }
}
