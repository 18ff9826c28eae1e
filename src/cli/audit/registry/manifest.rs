//! Parses the manifest of a registry (`meta/manifest.json`) and the descriptor that refers to it
//! (`.well-known/agent.json`), as published by CommandLayer. No I/O.

use clresolve_audit::list_digest::normalized_digest;
use clresolve_core::json::{self, JsonError, JsonLimits, json_type, locate, pointer};
use clresolve_resolver::resolve::REGISTRY_LIMIT;
use serde_json::Value;

use crate::cli::names::{MAX_LINE_BYTES, NameListLine};

/// Parser limits for a manifest. A published entry has eleven values on three levels. The limits allow twice as many
/// entries as fit into [`REGISTRY_LIMIT`], on as many levels as a card may have.
const LIMITS: JsonLimits = JsonLimits { bytes: REGISTRY_LIMIT, levels: 16, values: 128 * 1024, ..JsonLimits::DOCUMENT };

/// Maximum number of entries. Each may become a row with a request to the chain, and hundreds of thousands of minimal
/// entries would fit into [`REGISTRY_LIMIT`].
const MAX_ENTRIES: usize = 10_000;

/// The pointers to the manifest's location, in order of preference: content that a CID verifies comes first.
const NAMED: [&str; 2] = ["/registry/manifest/ipfs", "/registry/manifest/http"];

/// The members of an entry with the agent's name. Manifests of 1.0.0 have both, those of 1.1.0 only the second.
const NAMES: [&str; 2] = ["ens", "id"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RegistryManifestOrDescriptor {
    /// The entries, as lines of a list that are numbered from 1.
    Manifest(Vec<NameListLine>),
    Descriptor(String),
}

/// Why a document is not a manifest of a registry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RegistryManifestError {
    #[error(transparent)]
    Json(#[from] JsonError),
    #[error("line {line}, column {column}: {what}")]
    Form { line: usize, column: usize, what: String },
}

/// Reads a document.
///
/// # Errors
/// [`RegistryManifestError`]. An entry without a name is not an error, but becomes an unreadable line.
pub(super) fn parse_registry_document(bytes: &[u8]) -> Result<RegistryManifestOrDescriptor, RegistryManifestError> {
    let value = json::parse_strict_json(bytes, LIMITS).map_err(|error| add_error_position(bytes, error))?;
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let wrong = |at: &str, what: String| {
        let offset = locate::find_value_span(text, at).map_or(0, |place| place.value.start);
        let (line, column) = locate::line_and_column(text, offset);
        RegistryManifestError::Form { line, column, what }
    };
    if let Some(manifest) = pointer::find_value_at_pointer(&value, "/registry/manifest") {
        let named = NAMED.iter().find_map(|at| {
            pointer::find_value_at_pointer(&value, at).filter(|named| **named != "").map(|named| (at, named))
        });
        return match named {
            Some((_, Value::String(to))) => Ok(RegistryManifestOrDescriptor::Descriptor(to.clone())),
            Some((at, other)) => {
                Err(wrong(at, format!("the location of the manifest is {}, not a string", json_type(other))))
            }
            None => Err(wrong("/registry/manifest", format!("{} without `ipfs` and `http`", json_type(manifest)))),
        };
    }
    match value.get("entries") {
        Some(Value::Array(entries))
            if entries.len() > MAX_ENTRIES && !clresolve_core::mutant!("endless-registries") =>
        {
            Err(wrong(&format!("/entries/{MAX_ENTRIES}"), format!("more than {MAX_ENTRIES} entries")))
        }
        Some(Value::Array(entries)) => Ok(RegistryManifestOrDescriptor::Manifest(
            (1..).zip(entries).map(|(n, entry)| name_list_line_of_entry(n, entry)).collect(),
        )),
        Some(other) => Err(wrong("/entries", format!("`entries` is {}, not a list", json_type(other)))),
        None => {
            let what =
                "neither `entries`, as a manifest of a registry has, nor `registry.manifest`, as a descriptor has";
            Err(wrong("", what.to_owned()))
        }
    }
}

/// Adds line and column to an error that does not contain them.
fn add_error_position(bytes: &[u8], error: JsonError) -> RegistryManifestError {
    let offset = match error {
        JsonError::NotUtf8 { offset } => offset,
        JsonError::ByteOrderMark | JsonError::NotObject { .. } => 0,
        _ => return error.into(),
    };
    let before = std::str::from_utf8(&bytes[..offset]).unwrap_or_default();
    let (line, column) = locate::line_and_column(before, offset);
    RegistryManifestError::Form { line, column, what: error.to_string() }
}

/// An entry as a line of a list. The name is not trimmed, unlike that of a line.
fn name_list_line_of_entry(number: u64, entry: &Value) -> NameListLine {
    match agent_name_of_entry(entry) {
        Ok(name) if name.len() > MAX_LINE_BYTES => NameListLine::unreadable_line(
            number,
            name,
            format!("the entry's name is longer than {MAX_LINE_BYTES} bytes"),
        ),
        Ok(name) => NameListLine::Name { line: number, name: name.to_owned() },
        Err(why) => NameListLine::unreadable_line(number, &format!("entry {number}"), why),
    }
}

/// The name in an entry, or why it has none.
fn agent_name_of_entry(entry: &Value) -> Result<&str, String> {
    if !entry.is_object() {
        return Err(format!("the entry is {}, not an object", json_type(entry)));
    }
    let mut names = NAMES.iter().filter_map(|key| Some((key, entry.get(key)?)));
    let Some((first, value)) = names.next() else { return Err("the entry has neither `ens` nor `id`".to_owned()) };
    let name = expect_string(first, value)?;
    for (key, value) in names {
        if normalized_digest(expect_string(key, value)?) != normalized_digest(name) {
            return Err(format!("the entry's `{first}` and `{key}` are two names"));
        }
    }
    Ok(name)
}

fn expect_string<'v>(key: &str, value: &'v Value) -> Result<&'v str, String> {
    match value.as_str() {
        Some("") => Err(format!("the entry's `{key}` is empty")),
        Some(name) => Ok(name),
        None => Err(format!("the entry's `{key}` is {}, not a string", json_type(value))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(text: &str) -> Vec<NameListLine> {
        match parse_registry_document(text.as_bytes()) {
            Ok(RegistryManifestOrDescriptor::Manifest(entries)) => entries,
            other => panic!("{other:?}"),
        }
    }

    fn refused(text: &str) -> String {
        parse_registry_document(text.as_bytes()).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn both_forms_of_entries_name_their_agents() {
        let text =
            r#"{"entries": [{"id": "a.eth", "ens": "a.eth", "class": "commons"}, {"id": "b.eth"}, {"ens": " "}]}"#;
        let name = |line, name: &str| NameListLine::Name { line, name: name.to_owned() };
        assert_eq!(entries(text), [name(1, "a.eth"), name(2, "b.eth"), name(3, " ")]);
        assert_eq!(entries(r#"{"entries": []}"#), []);
    }

    #[test]
    fn an_entry_without_a_name_is_a_line_all_the_same() {
        let long = "a".repeat(MAX_LINE_BYTES + 1);
        let text = format!(
            r#"{{"entries": [null, [], {{}}, {{"ens": 7}}, {{"ens": "a.eth", "id": "b.eth"}}, {{"id": "{long}"}}]}}"#
        );
        let why: Vec<String> = entries(&text)
            .into_iter()
            .map(|line| match line {
                NameListLine::Unreadable { why, .. } => why,
                NameListLine::Name { name, .. } => panic!("{name}"),
            })
            .collect();
        assert_eq!(
            why,
            [
                "the entry is null, not an object",
                "the entry is a list, not an object",
                "the entry has neither `ens` nor `id`",
                "the entry's `ens` is a number, not a string",
                "the entry's `ens` and `id` are two names",
                "the entry's name is longer than 4096 bytes",
            ]
        );
    }

    #[test]
    fn a_descriptor_leads_to_what_a_cid_proves_or_else_to_its_host() {
        let to = |text: &str| parse_registry_document(text.as_bytes());
        let both = r#"{"registry": {"manifest": {"http": "https://a.example/m", "ipfs": "ipfs://b/m"}}}"#;
        assert_eq!(to(both), Ok(RegistryManifestOrDescriptor::Descriptor("ipfs://b/m".to_owned())));
        let one = r#"{"registry": {"manifest": {"http": "https://a.example/m", "ipfs": ""}}, "entries": []}"#;
        assert_eq!(to(one), Ok(RegistryManifestOrDescriptor::Descriptor("https://a.example/m".to_owned())));
    }

    #[test]
    fn what_is_no_manifest_is_refused_with_line_and_column() {
        let form = parse_registry_document(b"{\n  \"entries\": {}\n}").unwrap_err();
        assert!(matches!(form, RegistryManifestError::Form { line: 2, column: 14, .. }), "{form}");
        for (text, why) in [
            ("{\n  \"entries\": {}\n}", "line 2, column 14: `entries` is an object, not a list"),
            ("{\"name\": 1}", "line 1, column 1: neither `entries`"),
            ("{\"registry\":\n {\"manifest\": {}}}", "line 2, column 15: an object without `ipfs` and `http`"),
            ("{\"registry\": {\"manifest\": \"x\"}}", "line 1, column 27: a string without"),
            (
                "{\"registry\": {\"manifest\": {\"http\": 7}}}",
                "line 1, column 36: the location of the manifest is a number",
            ),
            (" []", "line 1, column 1: the JSON text is a list, not an object"),
            ("\u{feff}{}", "line 1, column 1: a byte order mark"),
            ("{\"entries\": [], \"entries\": []}", "line 1, column 25: the member /entries occurs twice"),
            ("{\"entries\": [{\"id\": \"a\", \"id\": \"b\"}]}", "the member /entries/0/id occurs twice"),
            ("{\"entries\": [}", "line 1, column 14: "),
        ] {
            assert!(refused(text).contains(why), "{text}: {}", refused(text));
        }
        let not_utf8 = parse_registry_document(b"{\n\"\xc3\xa9\xff\": 1}").unwrap_err();
        assert_eq!(not_utf8.to_string(), "line 2, column 3: not UTF-8 at byte 5");
    }

    #[test]
    fn depth_length_and_number_of_entries_are_bounded() {
        let nested = format!("{{\"entries\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(refused(&nested).contains("more than 16 levels"), "{}", refused(&nested));
        let many = format!("{{\"entries\": [{}1]}}", "1,".repeat(MAX_ENTRIES));
        assert!(refused(&many).contains("line 1, column 20014: more than 10000 entries"), "{}", refused(&many));
        let values = format!("{{\"x\": [{}1]}}", "1,".repeat(LIMITS.values));
        assert!(refused(&values).contains("more than 131072 values"), "{}", refused(&values));
        let long = format!("{{\"entries\": []}}{}", " ".repeat(REGISTRY_LIMIT));
        assert!(refused(&long).contains("at most 4194304 are allowed"), "{}", refused(&long));
    }
}
