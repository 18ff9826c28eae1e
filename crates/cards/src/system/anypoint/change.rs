//! AN-21: a change since an earlier card must raise the version.
//!
//! Callers break if a skill is removed, if its parameters change, or if the invocation changes. These changes require a
//! higher major version. An additional skill requires a higher minor version, any other change a higher patch version.
//! If the major version is 0, or after a pre-release, any higher version is sufficient (Semantic Versioning 2.0, 4 and
//! 9). A version must never decrease.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use semver::Version;
use serde_json::{Map, Value, json};

use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_core::text::excerpt_text;
use clresolve_verdict::card::AgentCard;
use clresolve_verdict::check::ReasonCollector;

/// Maximum number of skills or changes listed in one finding.
pub(super) const MAX_LISTED: usize = 8;

/// How far a change must raise the version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum VersionBump {
    Patch,
    Minor,
    Major,
}

/// Adds a finding if the version of `card` is lower than that of `previous`, or lower than the changes require. Other
/// rules check whether versions are parsable. A card with another name is not an earlier card of this agent.
pub(super) fn check_version_change(previous: &AgentCard, card: &AgentCard, found: &mut ReasonCollector) {
    if previous.get("name") != card.get("name") {
        return;
    }
    let [before, now] = [previous, card].map(|card| card.version().and_then(|version| Version::parse(version).ok()));
    let (Some(before), Some(now)) = (before, now) else { return };
    let changes = CardChanges::between(previous, card);
    let (expected, why) = match changes.step {
        _ if now.cmp_precedence(&before) == Ordering::Less => (format!("not lower than {before}"), String::new()),
        Some(step) if !is_sufficiently_raised(&before, &now, step) => {
            (lowest_permitted_version(&before, step), format!(": {}", changes.describe_changes()))
        }
        _ => return,
    };
    let observed = format!("{now} after {before}{why}");
    found.add(Reason::new(ReasonCode::AnVersionNotRaised).expected(expected).observed(observed).at_place("/version"));
}

/// Whether the version gives callers no guarantees (Semantic Versioning 2.0, 4 and 9).
fn is_unstable(version: &Version) -> bool {
    version.major == 0 || !version.pre.is_empty()
}

fn is_sufficiently_raised(before: &Version, now: &Version, step: VersionBump) -> bool {
    let is_higher = now.cmp_precedence(before) == Ordering::Greater;
    is_higher
        && match step {
            _ if is_unstable(before) => true,
            VersionBump::Major => now.major > before.major,
            VersionBump::Minor => (now.major, now.minor) > (before.major, before.minor),
            VersionBump::Patch => true,
        }
}

/// The lowest permitted version after such a change.
fn lowest_permitted_version(before: &Version, step: VersionBump) -> String {
    let Version { major, minor, patch, .. } = before;
    match step {
        _ if is_unstable(before) => format!("higher than {before}"),
        VersionBump::Major => format!("at least {}.0.0", major.saturating_add(1)),
        VersionBump::Minor => format!("at least {major}.{}.0", minor.saturating_add(1)),
        VersionBump::Patch => format!("at least {major}.{minor}.{}", patch.saturating_add(1)),
    }
}

/// The differences between two cards of one agent.
struct CardChanges {
    /// The step that the greatest change requires. `None` if the cards do not differ.
    step: Option<VersionBump>,
    /// The changes that require it, at most [`MAX_LISTED`].
    named: Vec<String>,
}

impl CardChanges {
    fn between(previous: &AgentCard, card: &AgentCard) -> Self {
        let (before, now) = (skills_by_name(previous), skills_by_name(card));
        let of_skills = before.iter().filter_map(|(name, before)| match now.get(name) {
            None => Some(format!("skill {} was removed", excerpt_text(name))),
            Some(now) if now.get("parameters") != before.get("parameters") => {
                Some(format!("the parameters of skill {} changed", excerpt_text(name)))
            }
            Some(_) => None,
        });
        let differs = invocation_with_defaults(previous) != invocation_with_defaults(card);
        let of_invocation = differs.then(|| "the invocation changed".to_owned());
        let breaking: Vec<String> = of_invocation.into_iter().chain(of_skills).take(MAX_LISTED).collect();
        if !breaking.is_empty() {
            return Self { step: Some(VersionBump::Major), named: breaking };
        }
        let is_new = |name: &&&str| !before.contains_key(**name);
        let further = now.keys().filter(is_new).map(|name| format!("skill {} is new", excerpt_text(name)));
        let further: Vec<String> = further.take(MAX_LISTED).collect();
        if !further.is_empty() {
            return Self { step: Some(VersionBump::Minor), named: further };
        }
        let others: Vec<String> = other_changed_members(previous, card).take(MAX_LISTED).collect();
        Self { step: (!others.is_empty()).then_some(VersionBump::Patch), named: others }
    }

    fn describe_changes(&self) -> String {
        self.named.join(", ")
    }
}

/// The members that differ and have no rule of their own above.
fn other_changed_members<'c>(previous: &'c AgentCard, card: &'c AgentCard) -> impl Iterator<Item = String> + 'c {
    let differs = |name: &str| match name {
        "version" | "invocation" => false,
        name => previous.get(name) != card.get(name),
    };
    let dropped = previous.members().filter(|(name, _)| card.get(name).is_none());
    let names = card.members().chain(dropped).map(|(name, _)| name);
    names.filter(move |name| differs(name)).map(|name| format!("{} changed", excerpt_text(name)))
}

/// The skills by name. Of two with the same name, the first.
fn skills_by_name(card: &AgentCard) -> BTreeMap<&str, &Value> {
    let mut skills = BTreeMap::new();
    for skill in card.items("skills") {
        if let Some(name) = skill.get("name").and_then(Value::as_str) {
            skills.entry(name).or_insert(skill);
        }
    }
    skills
}

/// The invocation with its defaults filled in.
fn invocation_with_defaults(card: &AgentCard) -> Map<String, Value> {
    let mut invocation = card.get("invocation").and_then(Value::as_object).cloned().unwrap_or_default();
    invocation.entry("method").or_insert_with(|| json!("POST"));
    let authentication = invocation.entry("authentication").or_insert_with(|| json!({}));
    if let Some(authentication) = authentication.as_object_mut() {
        authentication.entry("required").or_insert(Value::Bool(false));
    }
    invocation
}
