//! CommandLayer Agent-Cards: the checks of a verdict that need no name, no record and no network.

mod mapping;

use super::{CardDiscoveryRules, CardLintContext, CardSystemDefinition, DerivedMemberFix, present_members};
use clresolve_core::name::EnsName;
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_core::text::excerpt_text;
use clresolve_verdict::card::AgentCard;
use clresolve_verdict::check;

pub(super) static DEFINITION: CardSystemDefinition = CardSystemDefinition {
    title: "CommandLayer Agent-Card",
    distinctive: distinctive_members,
    refines: &[],
    version: format_version,
    check: check_commandlayer_card,
    order: ORDER,
    fixes: slug_fixes,
    changed_at: Some("/updated_at"),
    mapping: |_| &mapping::MAPPING,
    written: &mapping::MAPPING,
    discovery: CardDiscoveryRules {
        paths: &["/.well-known/agent.json", "/.well-known/agent-cards-v1.0.0.json"],
        unreachable: ReasonCode::DiscoveryNoCard,
        absent: None,
        credentialed: None,
        content_type: None,
        stale: None,
        is_descriptor,
    },
};

const ORDER: &[&str] = &[
    "$schema",
    "$id",
    "id",
    "slug",
    "display_name",
    "description",
    "owner",
    "ens",
    "version",
    "status",
    "class",
    "implements",
    "schemas",
    "schemas_mirror",
    "entry",
    "capabilities",
    "meta",
    "networks",
    "license",
    "created_at",
    "updated_at",
];

fn distinctive_members(card: &AgentCard) -> Vec<&'static str> {
    present_members(card, &["ens", "implements", "entry", "schemas_mirror"])
}

/// Whether this is the document in which a registry of cards refers to its manifest. It is not a card, although it has
/// an ENS name.
fn is_descriptor(card: &AgentCard) -> bool {
    card.value_at("/registry/manifest").is_some()
}

/// The card's own version identifies its release line.
fn format_version(card: &AgentCard) -> Option<String> {
    card.version().map(excerpt_text)
}

fn check_commandlayer_card(card: &AgentCard, rules: &CardLintContext<'_>) -> Vec<Reason> {
    let profile = rules.profile;
    let checks =
        [check::card::check_card, check::entry::check_entry, check::verbs::check_verbs, check::verbs::unproven_mirrors];
    let reasons = checks.iter().flat_map(|check| check(card, profile));
    reasons.chain(unnormalized_name_reason(card).map(|reason| profile.assign_effect(reason))).collect()
}

/// CL-6: the slug is the first label of the name, if that label is URL-safe.
fn slug_fixes(card: &AgentCard) -> Vec<DerivedMemberFix> {
    let (Some(ens), Some(slug)) = (card.ens(), card.get("slug")) else { return Vec::new() };
    let label = ens.split('.').next().unwrap_or_default();
    let is_fine = slug.as_str().is_some_and(|slug| check::card::is_url_safe(slug) && !slug.is_empty());
    if is_fine || label.is_empty() || !check::card::is_url_safe(label) {
        return Vec::new();
    }
    vec![DerivedMemberFix { pointer: "/slug", value: label.to_owned() }]
}

/// CL-53, for the card alone: a name that is not in normal form cannot equal a resolved name.
fn unnormalized_name_reason(card: &AgentCard) -> Option<Reason> {
    let ens = card.ens()?;
    let reason = |expected: String| {
        let message = "The card's ens is not in normal form, so it equals no resolved name.";
        Reason::new(ReasonCode::CardEnsMismatch)
            .message(message)
            .expected(expected)
            .observed(excerpt_text(ens))
            .at_place("/ens")
    };
    match EnsName::parse(ens) {
        Ok(name) if name.as_str() == ens => None,
        Ok(name) => Some(reason(name.as_str().to_owned())),
        Err(error) => Some(reason(format!("an ENS name ({error})"))),
    }
}
