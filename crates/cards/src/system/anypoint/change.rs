//! AN-21: breaking changes since an earlier card must raise the major version.
//!
//! Callers break if a skill is removed, if its parameters, result or MCP tool change, or if the invocation changes.
//! Such changes demand a higher major version. Descriptions, examples and further skills do not. After a major version
//! of 0 or a pre-release any higher version is enough (Semantic Versioning 2.0, 4 and 9).

use std::collections::BTreeMap;

use semver::Version;
use serde_json::{Map, Value, json};

use super::{MAX_LISTED, items};
use clresolve_core::reason::{Code, Reason};
use clresolve_core::text::excerpt;
use clresolve_verdict::card::Card;
use clresolve_verdict::check::Findings;

/// The members of a skill that its callers rely on.
const RELIED_ON: [&str; 4] = ["parameters", "returns", "mcp_server", "mcp_tool"];

/// Adds a finding if `card` breaks callers of `previous` without a higher version. Other rules judge a version that
/// cannot be read. A card of another name is not an earlier card of this agent.
pub(super) fn against(previous: &Card, card: &Card, found: &mut Findings) {
    if previous.get("name") != card.get("name") {
        return;
    }
    let [before, now] = [previous, card].map(|card| card.version().and_then(|version| Version::parse(version).ok()));
    let (Some(before), Some(now)) = (before, now) else { return };
    let is_raised = now.major > before.major || (is_unstable(&before) && now > before);
    let broken = broken(previous, card);
    if is_raised || broken.is_empty() {
        return;
    }
    let expected = if is_unstable(&before) {
        format!("higher than {before}")
    } else {
        format!("at least {}.0.0", before.major.saturating_add(1))
    };
    let observed = format!("{now} after {before}: {}", broken.join(", "));
    found.add(Reason::new(Code::AnVersionNotRaised).expected(expected).observed(observed).at("/version"));
}

/// Whether callers may rely on nothing in that version (Semantic Versioning 2.0, 4 and 9).
fn is_unstable(version: &Version) -> bool {
    version.major == 0 || !version.pre.is_empty()
}

/// The changes that break callers of `previous`, at most [`MAX_LISTED`].
fn broken(previous: &Card, card: &Card) -> Vec<String> {
    let skills = skills(card);
    let of_skills = self::skills(previous).into_iter().filter_map(|(name, before)| match skills.get(name) {
        None => Some(format!("skill {} was removed", excerpt(name))),
        Some(now) if relied_on(now) != relied_on(before) => Some(format!("skill {} changed", excerpt(name))),
        Some(_) => None,
    });
    let differs = invocation(previous) != invocation(card);
    let of_invocation = differs.then(|| "the invocation changed".to_owned());
    of_invocation.into_iter().chain(of_skills).take(MAX_LISTED).collect()
}

/// The skills by name; of two with the same name the first.
fn skills(card: &Card) -> BTreeMap<&str, &Value> {
    let mut skills = BTreeMap::new();
    for skill in items(card, "skills") {
        if let Some(name) = skill.get("name").and_then(Value::as_str) {
            skills.entry(name).or_insert(skill);
        }
    }
    skills
}

fn relied_on(skill: &Value) -> [Option<&Value>; RELIED_ON.len()] {
    RELIED_ON.map(|member| skill.get(member))
}

/// The invocation with its defaults written out.
fn invocation(card: &Card) -> Map<String, Value> {
    let mut invocation = card.get("invocation").and_then(Value::as_object).cloned().unwrap_or_default();
    invocation.entry("method").or_insert_with(|| json!("POST"));
    let authentication = invocation.entry("authentication").or_insert_with(|| json!({}));
    if let Some(authentication) = authentication.as_object_mut() {
        authentication.entry("required").or_insert(Value::Bool(false));
    }
    invocation
}
