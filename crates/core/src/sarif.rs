//! The common parts of reports in SARIF 2.1.0 (OASIS), which code hosts and editors display beside the source text.

use serde_json::{Value, json};

use crate::reason::{ReasonCode, ReasonEffect};
use crate::text::UntrustedText;

/// The `$schema` of a log.
pub const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The `version` of a log.
pub const VERSION: &str = "2.1.0";

/// Maximum length of a message, in characters.
const MAX_MESSAGE_CHARACTERS: usize = 1000;

/// The project's repository, if the manifest of this crate names one (`docs/release.md`).
const INFORMATION: Option<&str> = option_env!("CARGO_PKG_REPOSITORY");

/// The `tool` of a SARIF run. Results refer to its rules by `ruleIndex`.
pub fn sarif_tool(rules: impl IntoIterator<Item = ReasonCode>) -> Value {
    let mut driver = json!({
        "name": "clresolve",
        "version": env!("CARGO_PKG_VERSION"),
        "semanticVersion": env!("CARGO_PKG_VERSION"),
        "rules": rules.into_iter().map(sarif_rule).collect::<Vec<_>>(),
    });
    if let Some(page) = INFORMATION.filter(|page| !page.is_empty()) {
        driver["informationUri"] = page.into();
    }
    json!({"driver": driver})
}

/// Viewers link to `helpUri`, which is the code's stable URI, and show `help`, which works offline.
fn sarif_rule(code: ReasonCode) -> Value {
    let entry = code.entry();
    json!({
        "id": code.slug(),
        "shortDescription": {"text": entry.title},
        "fullDescription": {"text": entry.explanation},
        "help": {"text": format!("{} Run `clresolve explain {}`.", entry.title, code.slug())},
        "helpUri": code.uri(),
        "defaultConfiguration": {"level": sarif_level(entry.effect)},
        "properties": {"requirement": entry.requirement, "uri": code.uri()},
    })
}

/// The SARIF `level` for an effect.
pub const fn sarif_level(effect: ReasonEffect) -> &'static str {
    match effect {
        ReasonEffect::Fail => "error",
        ReasonEffect::Unknown | ReasonEffect::Warn => "warning",
    }
}

/// The `message` of a result: a sentence, followed by the expected and observed values.
pub fn sarif_message(sentence: &str, expected: Option<&str>, observed: Option<&str>) -> Value {
    let mut message = sentence.to_owned();
    for (label, value) in [("Expected", expected), ("Observed", observed)] {
        if let Some(value) = value {
            message.push_str(&format!(" {label}: {value}"));
        }
    }
    json!({"text": escape_message(&message)})
}

/// Escapes links, placeholders (SARIF 2.1.0, 3.11.5 and 3.11.6) and characters that control a terminal.
fn escape_message(message: &str) -> String {
    let mut plain = String::new();
    for c in UntrustedText::new(message).with_limit(MAX_MESSAGE_CHARACTERS).to_string().chars() {
        match c {
            '[' | ']' => plain.push('\\'),
            '{' | '}' => plain.push(c),
            _ => {}
        }
        plain.push(c);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_has_its_version_and_each_rule_its_help() {
        let tool = sarif_tool([ReasonCode::CidMismatch]);
        let (driver, version) = (&tool["driver"], env!("CARGO_PKG_VERSION"));
        assert_eq!((&driver["version"], &driver["semanticVersion"]), (&version.into(), &version.into()));
        let rule = &driver["rules"][0];
        assert_eq!(rule["helpUri"], "urn:clresolve:reason:cid-mismatch");
        assert!(rule["help"]["text"].as_str().is_some_and(|text| text.ends_with("`clresolve explain cid-mismatch`.")));
    }

    #[test]
    fn foreign_text_is_no_link_and_no_placeholder() {
        assert_eq!(escape_message("see [here](http://x) {0} \u{202e}"), "see \\[here\\](http://x) {{0}} \\u{{202e}}");
    }
}
