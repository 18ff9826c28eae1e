//! Fixes defects in the text of a card that have only one correct fix. Every other byte is preserved.
//!
//! The fixes cover values derived from other members (a slug), the order of the members, and the time of the last
//! change. That time is updated if something was changed, or if it precedes the creation time. It is not updated if the
//! new time would precede the creation time too.

use std::ops::Range;

use jiff::{Timestamp, Unit};
use serde_json::Value;

use crate::system::{CardLintContext, CardSystem};
use clresolve_core::json::{JsonError, locate};
use clresolve_core::reason::ReasonCode;
use clresolve_verdict::card::AgentCard;

/// A fixed card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedCard {
    /// The fixed text.
    pub text: String,
    /// The changes, one sentence each. Empty if nothing was changed.
    pub changes: Vec<String>,
}

/// Fixes a card of a system. `now` is the time of the change.
///
/// # Errors
/// [`JsonError`] if the text is not a card, in which case nothing can be fixed safely.
pub fn fix_card(
    text: &str,
    system: CardSystem,
    rules: &CardLintContext<'_>,
    now: Timestamp,
) -> Result<FixedCard, JsonError> {
    let card = AgentCard::parse(text.as_bytes())?;
    let mut fixed = FixedCard { text: text.to_owned(), changes: Vec::new() };
    for fix in system.derived_member_fixes(&card) {
        fixed.replace_string_at(fix.pointer, &fix.value);
    }
    fixed.sort_members(system.member_order());
    if let Some(pointer) = system.change_time_pointer() {
        let stamped = fixed.with_change_time(pointer, now);
        let fits =
            AgentCard::parse(stamped.text.as_bytes()).is_ok_and(|card| !has_reversed_timestamps(&card, system, rules));
        // A creation time in the future has no certain fix.
        if fits && (!fixed.changes.is_empty() || has_reversed_timestamps(&card, system, rules)) {
            return Ok(stamped);
        }
    }
    Ok(fixed)
}

/// The text with its members in the order of the system's specification. `None` if they are already in that order.
pub fn reorder_members(text: &str, system: CardSystem) -> Option<String> {
    let mut fixed = FixedCard { text: text.to_owned(), changes: Vec::new() };
    fixed.sort_members(system.member_order());
    (!fixed.changes.is_empty()).then_some(fixed.text)
}

/// Whether the rules report that the card was changed before it was created.
fn has_reversed_timestamps(card: &AgentCard, system: CardSystem, rules: &CardLintContext<'_>) -> bool {
    system.check_card(card, rules).iter().any(|reason| reason.code == ReasonCode::TimestampsReversed)
}

impl FixedCard {
    /// Replaces the value at `pointer`, if there is one, with a string.
    fn replace_string_at(&mut self, pointer: &str, value: &str) {
        let Some(place) = locate::find_value_span(&self.text, pointer) else { return };
        let new = Value::from(value).to_string();
        if self.text[place.value.clone()] == new {
            return;
        }
        self.changes.push(format!("set {pointer} to {new}"));
        self.text.replace_range(place.value, &new);
    }

    /// Sorts the members in the order of `order`. Other members follow in their present order.
    fn sort_members(&mut self, order: &[&str]) {
        let Some(members) = locate::member_ranges(&self.text) else { return };
        let rank = |member: &Range<usize>| {
            let name = member_name(&self.text[member.clone()]);
            order.iter().position(|known| name.as_deref() == Some(known)).unwrap_or(order.len())
        };
        let mut sorted = members.clone();
        sorted.sort_by_key(rank);
        if sorted == members {
            return;
        }
        let mut text = String::with_capacity(self.text.len());
        let mut end = 0;
        for (old, new) in members.iter().zip(&sorted) {
            text.push_str(&self.text[end..old.start]);
            text.push_str(&self.text[new.clone()]);
            end = old.end;
        }
        text.push_str(&self.text[end..]);
        self.text = text;
        self.changes.push("put the members in the order of the specification".to_owned());
    }

    /// The same card with `now` as the time of the last change.
    fn with_change_time(&self, pointer: &str, now: Timestamp) -> Self {
        let mut stamped = self.clone();
        let now = now.round(Unit::Second).unwrap_or(now);
        stamped.replace_string_at(pointer, &now.to_string());
        stamped
    }
}

/// The name of a member, from its text with the value.
fn member_name(member: &str) -> Option<String> {
    let quoted = locate::member_name_range(member)?;
    serde_json::from_str(&member[quoted]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clresolve_verdict::profile::{ConformanceProfiles, DEFAULT};
    use clresolve_verdict::sample::good_card;

    fn fixed(text: &str) -> FixedCard {
        let profile = ConformanceProfiles::builtin().get(DEFAULT).expect("built in");
        let now = "2026-01-02T03:04:05.6Z".parse().expect("a time");
        fix_card(text, CardSystem::CommandLayer, &CardLintContext::from_profile(&profile), now).expect("a card")
    }

    fn ordered() -> String {
        let mut members: Vec<(String, Value)> =
            good_card().as_object().expect("an object").clone().into_iter().collect();
        let rank = |name: &str| CardSystem::CommandLayer.member_order().iter().position(|known| *known == name);
        members.sort_by_key(|(name, _)| rank(name).unwrap_or(usize::MAX));
        let lines: Vec<String> = members.iter().map(|(name, value)| format!("  \"{name}\": {value}")).collect();
        format!("{{\n{}\n}}\n", lines.join(",\n"))
    }

    #[test]
    fn a_card_in_order_stays_as_it_is() {
        let text = ordered();
        assert_eq!(fixed(&text), FixedCard { text: text.clone(), changes: Vec::new() });
    }

    #[test]
    fn the_order_is_fixed_and_the_time_of_the_change_is_set() {
        let text = ordered();
        let first = text.lines().nth(1).expect("a member");
        let swapped = text.replacen(&format!("{first}\n"), "", 1);
        let last = "  \"x-own\": {\"b\": 1,  \"a\": 2},\n";
        let swapped = swapped.replacen("{\n", &format!("{{\n{last}{first}\n"), 1);
        let fixed = fixed(&swapped);
        assert_eq!(fixed.changes.len(), 2, "{:?}", fixed.changes);
        assert!(
            fixed.text.ends_with("\"updated_at\": \"2026-01-02T03:04:06Z\",\n  \"x-own\": {\"b\": 1,  \"a\": 2}\n}\n")
        );
        let mut expected: Value = serde_json::from_str(&swapped).expect("JSON");
        expected["updated_at"] = "2026-01-02T03:04:06Z".into();
        assert_eq!(serde_json::from_str::<Value>(&fixed.text).expect("JSON"), expected);
    }

    #[test]
    fn a_slug_follows_from_the_name_and_nothing_is_guessed() {
        let text = ordered();
        let wrong = text.replace("\"slug\": \"summarizeagent\"", "\"slug\": \"Summarize Agent\"");
        assert!(fixed(&wrong).text.contains("\"slug\": \"summarizeagent\""));
        let no_name = wrong.replace("\"ens\": \"summarizeagent.eth\"", "\"ens\": \"Ünsafe.eth\"");
        assert!(fixed(&no_name).text.contains("\"slug\": \"Summarize Agent\""));
    }

    #[test]
    fn a_change_before_the_making_is_set_to_now() {
        let created = good_card()["created_at"].as_str().expect("a time").to_owned();
        let text =
            ordered().replace(&format!("\"updated_at\": \"{created}\""), "\"updated_at\": \"2001-01-01T00:00:00Z\"");
        let fixed = fixed(&text);
        assert!(fixed.text.contains("\"updated_at\": \"2026-01-02T03:04:06Z\""), "{}", fixed.text);
        assert_eq!(fixed.changes.len(), 1);
    }

    #[test]
    fn a_card_from_the_future_is_not_stamped_again_and_again() {
        let created = good_card()["created_at"].as_str().expect("a time").to_owned();
        let times = |made: &str, changed: &str| {
            let text =
                ordered().replace(&format!("\"created_at\": \"{created}\""), &format!("\"created_at\": \"{made}\""));
            text.replace(&format!("\"updated_at\": \"{created}\""), &format!("\"updated_at\": \"{changed}\""))
        };
        let text = times("2030-01-01T00:00:00Z", "2029-01-01T00:00:00Z");
        assert_eq!(fixed(&text), FixedCard { text: text.clone(), changes: Vec::new() });
        let valid = times("2030-01-01T00:00:00Z", "2031-01-01T00:00:00Z");
        let first = valid.lines().nth(1).expect("a member");
        let swapped =
            valid.replacen(&format!("{first}\n"), "", 1).replacen("{\n", &format!("{{\n  \"x\": 1,\n{first}\n"), 1);
        let stamped = fixed(&swapped);
        assert!(
            stamped.changes.len() == 1 && stamped.text.contains("\"updated_at\": \"2031-01-01T00:00:00Z\""),
            "{stamped:?}"
        );
        assert_eq!(fixed(&stamped.text).changes, Vec::<String>::new());
    }

    proptest::proptest! {
        #[test]
        fn no_member_is_lost(order in proptest::sample::subsequence(CardSystem::CommandLayer.member_order(), 0..21), seed in 0_u64..) {
            let mut names: Vec<&str> = order;
            let turn = usize::try_from(seed).unwrap_or(0) % names.len().max(1);
            names.rotate_left(turn);
            let text = format!("{{{}}}", names.iter().map(|n| format!("\"{n}\" :\t[{{}}]")).collect::<Vec<_>>().join(" ,"));
            let fixed = fixed(&text);
            let (mut old, mut new): (Value, Value) =
                (serde_json::from_str(&text).expect("JSON"), serde_json::from_str(&fixed.text).expect("JSON"));
            for value in [&mut old, &mut new] {
                value.as_object_mut().expect("an object").remove("updated_at");
            }
            proptest::prop_assert_eq!(old, new);
        }
    }
}
