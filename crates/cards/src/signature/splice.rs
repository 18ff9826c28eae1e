//! Writes a signature into the text of a card and preserves every other byte.

use serde_json::Value;

use super::canonical::SIGNATURES;
use super::{CardSignError, CardSigner, create_signature};
use clresolve_core::json::locate;
use clresolve_core::json::{JsonLimits, parse_strict_json};

const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

/// Returns the text of a card with one more signature. Every other byte is preserved.
///
/// # Errors
/// [`CardSignError`], also if the text is not one strict JSON object.
pub fn sign_text(text: &str, key: &dyn CardSigner) -> Result<String, CardSignError> {
    let card = parse_strict_json(text.as_bytes(), JsonLimits::CARD).map_err(CardSignError::Json)?;
    let entry = create_signature(&card, key)?;
    Ok(insert_signature_text(text, &entry))
}

/// Inserts the entry into the list `signatures`, which is added if it is missing. The text must be one JSON object, and
/// `signatures` a list.
fn insert_signature_text(text: &str, entry: &Value) -> String {
    let lines = text.trim_matches(SPACE).contains('\n');
    let (end, item, depth) = match locate::find_value_span(text, &format!("/{SIGNATURES}")) {
        Some(list) => (list.value.end, indented_entry(entry, lines, 2), 1),
        None => {
            (text.trim_end_matches(SPACE).len(), format!("\"{SIGNATURES}\":{}", signature_list_text(entry, lines)), 0)
        }
    };
    // Before the bracket that closes the list, or the brace that closes the card.
    let (before, after) = text.split_at(end - 1);
    let kept = before.trim_end_matches(SPACE);
    let comma = if kept.ends_with(['[', '{']) { "" } else { "," };
    let (start, close) =
        if lines { (indented_newline(depth + 1), indented_newline(depth)) } else { Default::default() };
    format!("{kept}{comma}{start}{item}{close}{after}")
}

fn signature_list_text(entry: &Value, lines: bool) -> String {
    if !lines {
        return format!("[{}]", indented_entry(entry, lines, 2));
    }
    format!(" [{}{}{}]", indented_newline(2), indented_entry(entry, lines, 2), indented_newline(1))
}

/// The entry, indented like the rest of the card if the card has several lines.
fn indented_entry(entry: &Value, lines: bool, depth: usize) -> String {
    if !lines {
        return entry.to_string();
    }
    format!("{entry:#}").replace('\n', &indented_newline(depth))
}

fn indented_newline(depth: usize) -> String {
    format!("\n{}", "  ".repeat(depth))
}
