//! Maps violations of a card system's schema to the codes of the rules that they break.
//!
//! Only the schema defines the shape. A table of [`SchemaRule`]s assigns its parts to rules. A violation
//! without a matching line is `document-schema-invalid`, unless a rule already has a finding at the same location.

use std::sync::LazyLock;

use serde_json::Value;

use clresolve_core::json::json_type;
use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect};
use clresolve_core::text::excerpt_text;
use clresolve_verdict::card::AgentCard;
use clresolve_verdict::check::ReasonCollector;
use clresolve_verdict::schema::{MAX_OBJECTIONS, MAX_VIOLATIONS, SchemaViolation, StrictSchema};

/// A schema of this crate, compiled once.
pub(super) type LazySchema = LazyLock<StrictSchema>;

pub(super) fn compile_schema(bytes: &[u8]) -> StrictSchema {
    StrictSchema::compile(bytes, &[]).expect("a test compiles every schema of this crate")
}

/// One part of a schema, with the rules that it represents.
pub(super) struct SchemaRule {
    /// JSON Pointer of the value. `*` matches any one segment.
    pub(super) place: &'static str,
    /// The violated keyword. `None` matches any keyword.
    pub(super) keyword: Option<&'static str>,
    /// The codes of the violated rules.
    pub(super) codes: &'static [ReasonCode],
    /// What the rules require.
    pub(super) expected: &'static str,
    /// Whether a violation fails even if the rule itself only warns: a value of another type cannot belong to a valid
    /// card.
    fails: bool,
}

/// The line for every violation at `place`.
pub(super) const fn schema_rule(
    place: &'static str,
    codes: &'static [ReasonCode],
    expected: &'static str,
) -> SchemaRule {
    SchemaRule { place, keyword: None, codes, expected, fails: false }
}

impl SchemaRule {
    /// Restricts the line to violations of this keyword.
    pub(super) const fn for_keyword(self, keyword: &'static str) -> Self {
        Self { keyword: Some(keyword), ..self }
    }

    /// Makes violations invalidate the card, although the rule itself only warns.
    pub(super) const fn with_failure(self) -> Self {
        Self { fails: true, ..self }
    }

    fn covers_violation(&self, violation: &SchemaViolation) -> bool {
        self.keyword.is_none_or(|keyword| keyword == violation.keyword)
            && matches_pointer_pattern(self.place, &violation.pointer)
    }
}

/// Adds the violations of `schema` in `card`. The first matching line applies to a violation.
pub(super) fn check_schema(card: &AgentCard, schema: &StrictSchema, lines: &[SchemaRule], found: &mut ReasonCollector) {
    let (mut ruled, mut general) = (Vec::<(&SchemaRule, SchemaViolation)>::new(), Vec::new());
    // Some lines only warn. Their violations must not crowd out those of other lines.
    for (number, violation) in schema.every_violation(card.document()).enumerate() {
        if number == MAX_OBJECTIONS && !clresolve_core::mutant!("objections-of-systems-unbounded") {
            found.add(
                Reason::new(ReasonCode::CardTooComplex).observed(format!("more than {MAX_OBJECTIONS} violations")),
            );
            break;
        }
        match lines.iter().find(|line| line.covers_violation(&violation)) {
            Some(line) if ruled.iter().filter(|(other, _)| std::ptr::eq(*other, line)).count() < MAX_VIOLATIONS => {
                ruled.push((line, violation));
            }
            None if general.len() < MAX_VIOLATIONS => general.push(violation),
            _ => {}
        }
    }
    for (line, violation) in ruled {
        let observed = card.value_at(&violation.pointer).map(display_value);
        for code in line.codes {
            let mut reason = Reason::new(*code).expected(line.expected).at_place(excerpt_text(&violation.pointer));
            if line.fails {
                reason.effect = ReasonEffect::Fail;
            }
            found.add_once(match &observed {
                Some(observed) => reason.observed(observed),
                None => reason,
            });
        }
    }
    for violation in general {
        if !found.has_specific_reason(&violation.pointer, ReasonCode::DocumentSchemaInvalid) {
            let reason = Reason::new(ReasonCode::DocumentSchemaInvalid).observed(violation.detail);
            found.add_once(reason.at_place(excerpt_text(&violation.pointer)));
        }
    }
}

/// A value as displayed in a finding: strings and numbers as they are, for other values their type.
pub(super) fn display_value(value: &Value) -> String {
    match value {
        Value::String(text) => excerpt_text(text),
        Value::Number(number) => number.to_string(),
        other => json_type(other).to_owned(),
    }
}

fn matches_pointer_pattern(pattern: &str, pointer: &str) -> bool {
    let (mut pattern, mut pointer) = (pattern.split('/'), pointer.split('/'));
    loop {
        match (pattern.next(), pointer.next()) {
            (None, None) => return true,
            (Some(wanted), Some(segment)) if wanted == "*" || wanted == segment => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use clresolve_verdict::profile::{ConformanceProfiles, DEFAULT};
    use serde_json::json;

    use super::*;
    use crate::lint::lint_document;
    use crate::system::CardLintContext;

    #[test]
    fn more_violations_than_are_looked_at_make_a_card_too_complex() {
        let profile = ConformanceProfiles::builtin().get(DEFAULT).expect("built in");
        let is_too_complex = |modes: usize| {
            let card = json!({"supportedInterfaces": [], "defaultInputModes": vec![0; modes]}).to_string();
            let report = lint_document(card.as_bytes(), None, &CardLintContext::from_profile(&profile));
            report.findings.iter().any(|finding| finding.code == ReasonCode::CardTooComplex)
        };
        assert!(is_too_complex(2 * MAX_OBJECTIONS - 200));
        assert!(!is_too_complex(MAX_OBJECTIONS - 200));
    }

    #[test]
    fn a_star_stands_for_one_segment() {
        assert!(
            matches_pointer_pattern("/a/*/b", "/a/0/b")
                && matches_pointer_pattern("", "")
                && matches_pointer_pattern("/a", "/a")
        );
        for (pattern, pointer) in [("/a/*", "/a"), ("/a/*", "/a/0/b"), ("/a", "/a/0"), ("", "/a"), ("/a/*/b", "/a/0/c")]
        {
            assert!(!matches_pointer_pattern(pattern, pointer), "{pattern} {pointer}");
        }
    }
}
