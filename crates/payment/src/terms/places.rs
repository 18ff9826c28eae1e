//! Where terms stand in a reply. Clients differ in the place that they read, so every place has to be found.

use serde_json::{Map, Value};

use clresolve_core::json::{JsonError, Limits, parse};
use clresolve_core::reason::Reason;

use super::reading::{ambiguous, folded, is_spelling_of, member_in_any_case};

/// Most places of one reply that are compared. Published sellers write three.
pub(super) const MAX_PLACES: usize = 8;

/// Where published clients look for terms in the result of an MCP tool, beside the texts of its content. `error` is that of
/// JSON-RPC.
const OF_RESULT: [&str; 4] = ["/structuredContent", "/_meta/x402~1error", "/paymentRequired", "/error/data"];

/// Members of a tool's result, of an error in its place, and of a part of its content, by which clients find terms.
const MEMBERS: [&str; 9] =
    ["content", "structuredContent", "_meta", "x402/error", "paymentRequired", "error", "data", "resource", "text"];

/// Members of which every entry has one, in either version.
const OF_ENTRY: [&str; 3] = ["payTo", "amount", "maxAmountRequired"];

/// A place that demands a payment.
pub(super) struct TermsPlace<'v> {
    /// How messages name it.
    pub(super) name: String,
    pub(super) document: &'v Value,
    /// Whether published clients read terms there. Terms in another place are compared, and never judged.
    pub(super) is_read: bool,
}

/// A text of a tool's result that a client may parse, and its JSON Pointer.
pub(super) type Text = (String, Result<Value, JsonError>);

/// The places of one document, which messages name `name`. Clients read its root alone.
///
/// # Errors
/// `payment-terms-ambiguous`, where there are more than [`MAX_PLACES`].
pub(super) fn of_document<'v>(document: &'v Value, name: &str) -> Result<Vec<TermsPlace<'v>>, Box<Reason>> {
    let mut search = Search { path: name.to_owned(), found: Vec::new(), is_read: &|path| path == name };
    search.visit(document);
    at_most(search.found)
}

/// The places of a tool's result: those of itself, then those of its texts.
///
/// # Errors
/// `payment-terms-ambiguous`, where there are more than [`MAX_PLACES`].
pub(super) fn of_result<'v>(result: &'v Value, texts: &'v [Text]) -> Result<Vec<TermsPlace<'v>>, Box<Reason>> {
    let mut search = Search { path: String::new(), found: Vec::new(), is_read: &|path| OF_RESULT.contains(&path) };
    search.visit(result);
    let mut places = search.found;
    for (name, text) in texts {
        if let Ok(text) = text {
            places.extend(of_document(text, name)?);
        }
    }
    // The specification's place comes first, so that messages hold the others against it.
    places.sort_by_key(|place| OF_RESULT.iter().position(|known| *known == place.name).unwrap_or(OF_RESULT.len()));
    at_most(places)
}

/// Refuses a result with a member that some clients read and others pass over, because it is spelt in another case.
/// The tool's own data, below `structuredContent`, is not looked at.
pub(super) fn check_spelling(result: &Value) -> Result<(), Box<Reason>> {
    let parts = result.get("content").and_then(Value::as_array).map_or(0, Vec::len);
    let of_part = |index| [format!("/content/{index}"), format!("/content/{index}/resource")];
    let places = ["", "/_meta", "/error"].map(str::to_owned).into_iter().chain((0..parts).flat_map(of_part));
    for place in places {
        let members = result.pointer(&place).and_then(Value::as_object);
        for name in members.into_iter().flat_map(Map::keys) {
            let Some(known) = MEMBERS.into_iter().find(|known| known != name && is_spelling_of(name, known)) else {
                continue;
            };
            let message =
                "A member of the tool's result is spelt in another case. Clients differ in whether they read it.";
            let reason = ambiguous(&place, message).expected(known);
            return Err(Box::new(reason.observed(clresolve_core::text::excerpt(name))));
        }
    }
    Ok(())
}

fn at_most(places: Vec<TermsPlace<'_>>) -> Result<Vec<TermsPlace<'_>>, Box<Reason>> {
    if places.len() > MAX_PLACES { Err(too_many()) } else { Ok(places) }
}

/// The texts of a tool's result that could be terms in JSON, each read within the limits.
///
/// # Errors
/// `payment-terms-ambiguous`, where there are more than [`MAX_PLACES`].
pub(super) fn texts(result: &Value, limits: Limits) -> Result<Vec<Text>, Box<Reason>> {
    let parts = result.get("content").and_then(Value::as_array).map_or(0, Vec::len);
    let of_part = |index| [format!("/content/{index}/text"), format!("/content/{index}/resource/text")];
    let pointers = OF_RESULT.into_iter().map(str::to_owned).chain((0..parts).flat_map(of_part));
    let mut texts = Vec::new();
    for pointer in pointers {
        let text = result.pointer(&pointer).and_then(Value::as_str);
        let Some(text) = text else { continue };
        let read = match listed_terms(text.as_bytes(), limits) {
            Some(list) => Ok(list),
            None if may_hold_terms(text) => parse(text.as_bytes(), limits),
            None => continue,
        };
        if texts.len() == MAX_PLACES {
            return Err(too_many());
        }
        texts.push((pointer, read));
    }
    Ok(texts)
}

/// Whether a lenient reader could find `accepts` in a text: as it is, or with escapes in it.
fn may_hold_terms(text: &str) -> bool {
    may_be_an_object(text.as_bytes()) && (folded(text).collect::<String>().contains("accepts") || text.contains('\\'))
}

/// Whether a lenient reader could take `text` for a JSON object: whether its first byte is a brace, after white space,
/// byte order marks, and the zeros of UTF-16 and UTF-32.
pub(super) fn may_be_an_object(text: &[u8]) -> bool {
    const PASSED_OVER: [u8; 12] = *b" \t\n\r\x0b\x0c\0\xef\xbb\xbf\xfe\xff";
    text.iter().find(|byte| !PASSED_OVER.contains(byte)) == Some(&b'{')
}

/// A text that a client of x402 in Rust could read terms from although it is a list. Its types, which serde derives, take
/// the values of their members in their order: the version, and `accepts` behind it.
pub(super) fn listed_terms(text: &[u8], limits: Limits) -> Option<Value> {
    const MEMBER: &str = "list";
    if text.trim_ascii_start().first() != Some(&b'[') {
        return None;
    }
    // The reader takes objects alone.
    let object = format!("{{\"{MEMBER}\":{}}}", std::str::from_utf8(text).ok()?);
    parse(object.as_bytes(), limits).ok()?.get_mut(MEMBER).map(Value::take).filter(is_listed_terms)
}

fn is_listed_terms(value: &Value) -> bool {
    let Value::Array(items) = value else { return false };
    items.first().is_some_and(Value::is_number) && items.iter().any(Value::is_array)
}

fn too_many() -> Box<Reason> {
    let reason = ambiguous("", "More places of the reply could hold terms than are compared.");
    Box::new(reason.expected(format!("at most {MAX_PLACES} places")))
}

/// A search through a document, which is nested no deeper than the reader of JSON permits.
struct Search<'v, 'f> {
    path: String,
    found: Vec<TermsPlace<'v>>,
    is_read: &'f dyn Fn(&str) -> bool,
}

impl<'v> Search<'v, '_> {
    fn visit(&mut self, value: &'v Value) {
        let is_read = (self.is_read)(&self.path);
        let demands = match value {
            Value::Object(members) => demands_payment(members, is_read),
            _ => is_read && is_listed_terms(value),
        };
        if demands && self.found.len() <= MAX_PLACES {
            self.found.push(TermsPlace { name: self.path.clone(), document: value, is_read });
        }
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    self.below(&name.replace('~', "~0").replace('/', "~1"), member);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.below(&index.to_string(), item);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn below(&mut self, segment: &str, value: &'v Value) {
        if !value.is_object() && !value.is_array() {
            return;
        }
        let length = self.path.len();
        self.path.push('/');
        self.path.push_str(segment);
        self.visit(value);
        self.path.truncate(length);
    }
}

/// Whether `accepts` holds anything that a client could take for an entry. Where no client looks for terms, an entry is
/// what states a payee or an amount.
fn demands_payment(members: &Map<String, Value>, is_read: bool) -> bool {
    let is_entry = |entry: &Value| match entry {
        Value::Object(entry) => is_read || OF_ENTRY.iter().any(|name| member_in_any_case(entry, name).next().is_some()),
        // Clients in Rust read an entry from the list of its values, too.
        Value::Array(_) => is_read,
        _ => false,
    };
    member_in_any_case(members, "accepts").any(|accepts| match accepts {
        Value::Array(entries) => entries.iter().any(is_entry),
        Value::Object(_) => is_read,
        _ => false,
    })
}
