//! Finds foreign text in a document through the document's schema, escapes it, and lists it as JSON Pointers.
//!
//! A text belongs to this program if its schema leaves no freedom: a constant, an enumeration, a time, or a pattern
//! that is anchored at both ends, as for digests and codes. Every other text counts as foreign. A new member of a
//! document is therefore foreign until its schema restricts it.

use std::mem;

use serde_json::{Map, Value};

use clresolve_core::text::{UntrustedText, first_unsafe_character};

/// The `$comment` in the schema of text that only this program writes.
const OWN_TEXT: &str = "own text";

/// Escapes the foreign text of a document. Returns pointers at or below which all of it is.
pub(super) fn escape_foreign_text(document: &mut Value, schema: &Value) -> Vec<String> {
    let mut marker = ForeignTextEscaper { schema, path: String::new(), found: Vec::new() };
    marker.escape_foreign_in_value(document, Some(schema));
    marker.found
}

struct ForeignTextEscaper<'s> {
    schema: &'s Value,
    path: String,
    found: Vec<String>,
}

impl<'s> ForeignTextEscaper<'s> {
    /// Recursion is bounded: a document is nested as deep as its schema, and free parts at most as deep as the strict
    /// JSON reader permits for cards.
    fn escape_foreign_in_value(&mut self, value: &mut Value, schema: Option<&'s Value>) {
        let kinds = schema.map(|schema| self.schema_alternatives(schema)).unwrap_or_default();
        let part = |key| kinds.iter().find_map(|kind| kind.get(key));
        match value {
            Value::String(_) if is_text_fully_restricted(&kinds) => {}
            Value::Object(members) if let Some(known) = part("properties") => {
                for (name, member) in members {
                    self.visit_path_segment(name, |marker| marker.escape_foreign_in_value(member, known.get(name)));
                }
            }
            Value::Array(items) if let Some(each) = part("items") => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.visit_path_segment(&index.to_string(), |marker| {
                        marker.escape_foreign_in_value(item, Some(each))
                    });
                }
            }
            free => {
                if escape_all_text(free) {
                    self.found.push(self.path.clone());
                }
            }
        }
    }

    fn visit_path_segment(&mut self, name: &str, visit: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push('/');
        self.path.push_str(&name.replace('~', "~0").replace('/', "~1"));
        visit(self);
        self.path.truncate(length);
    }

    /// The alternatives of a schema, with references resolved. The schemas are this program's, and none is recursive.
    fn schema_alternatives(&self, schema: &'s Value) -> Vec<&'s Value> {
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let target = self.schema.pointer(reference.trim_start_matches('#'));
            return target.map(|target| self.schema_alternatives(target)).unwrap_or_default();
        }
        match schema.get("oneOf").and_then(Value::as_array) {
            Some(alternatives) => alternatives.iter().flat_map(|schema| self.schema_alternatives(schema)).collect(),
            None => vec![schema],
        }
    }
}

/// Whether every alternative that permits a text restricts it completely.
fn is_text_fully_restricted(kinds: &[&Value]) -> bool {
    let mut of_text = kinds.iter().filter(|kind| permits_text(kind)).peekable();
    of_text.peek().is_some() && of_text.all(|kind| is_fixed_text(kind))
}

fn permits_text(kind: &Value) -> bool {
    match kind.get("type") {
        Some(Value::String(one)) => one == "string",
        Some(Value::Array(some)) => some.iter().any(|one| one == "string"),
        _ => true,
    }
}

fn is_fixed_text(kind: &Value) -> bool {
    let text = |key| kind.get(key).and_then(Value::as_str).unwrap_or_default();
    kind.get("enum").is_some()
        || kind.get("const").is_some()
        || text("format") == "date-time"
        || text("$comment") == OWN_TEXT
        || (text("pattern").starts_with('^') && text("pattern").ends_with('$'))
}

/// Escapes all text of a value, including member names. Returns whether there was any.
fn escape_all_text(value: &mut Value) -> bool {
    match value {
        Value::String(text) => {
            if let Some(safe) = escape_text(text) {
                *text = safe;
            }
            true
        }
        Value::Array(items) => items.iter_mut().map(escape_all_text).filter(|any| *any).count() > 0,
        Value::Object(members) => {
            let any = !members.is_empty();
            let safe = mem::take(members).into_iter().map(|(name, mut member)| {
                escape_all_text(&mut member);
                (escape_text(&name).unwrap_or(name), member)
            });
            *members = safe.collect::<Map<_, _>>();
            any
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Escapes characters that affect the display of a text. `None` if it has none.
fn escape_text(text: &str) -> Option<String> {
    if clresolve_core::mutant!("mcp-foreign-unescaped") {
        return None;
    }
    first_unsafe_character(text).map(|_| UntrustedText::new(text).with_limit(usize::MAX).to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_schema_leaves_open_is_foreign() {
        let schema = json!({
            "properties": {
                "state": {"enum": ["trusted"]},
                "digest": {"oneOf": [{"type": "null"}, {"$ref": "#/$defs/digest"}]},
                "at": {"type": "string", "format": "date-time"},
                "url": {"type": "string", "pattern": "^https?://"},
                "own": {"type": "string", "$comment": "own text"},
                "list": {"type": "array", "items": {"properties": {"a/b": {"type": ["string", "null"]}}}},
                "free": {"type": "object"},
                "count": {"type": "integer"},
            },
            "$defs": {"digest": {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}},
        });
        let mut document = json!({
            "state": "trusted", "digest": "sha256:…", "at": "2026-01-01T00:00:00Z", "url": "https://a.example/",
            "own": "ours", "list": [{"a/b": "one"}, {"a/b": null}], "free": {"k\u{202e}": ["\u{1b}[2J"]}, "count": 3,
            "new": "a member that the schema does not know",
        });
        let found = escape_foreign_text(&mut document, &schema);
        assert_eq!(found, ["/free", "/list/0/a~1b", "/new", "/url"]);
        assert_eq!(document["free"], json!({"k\\u{202e}": ["\\u{1b}[2J"]}));
        assert_eq!(document["state"], "trusted");
    }
}
