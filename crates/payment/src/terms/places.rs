//! Finds every place in a reply that contains terms. Clients read different places, so all of them matter.

use serde_json::{Map, Value};

use clresolve_core::json::{JsonError, Limits, parse};
use clresolve_core::reason::Reason;

use super::reading::{ambiguous, folded, is_spelling_of, member_in_any_case};

/// Most places per reply that are compared. Published sellers write three.
pub(super) const MAX_PLACES: usize = 8;

/// Where published clients look for terms in the result of an MCP tool, apart from the texts of its content. `error` is
/// the JSON-RPC error.
const OF_RESULT: [&str; 4] = ["/structuredContent", "/_meta/x402~1error", "/paymentRequired", "/error/data"];

/// Members by which clients find terms: of a tool's result, of an error in its place, and of a part of its content.
const MEMBERS: [&str; 9] =
    ["content", "structuredContent", "_meta", "x402/error", "paymentRequired", "error", "data", "resource", "text"];

/// Every entry has at least one of these members, in either version.
const OF_ENTRY: [&str; 3] = ["payTo", "amount", "maxAmountRequired"];

/// A place that demands a payment.
pub(super) struct TermsPlace<'v> {
    /// The name of the place in messages.
    pub(super) name: String,
    pub(super) document: &'v Value,
    /// Whether published clients read terms there. Terms in other places are compared but never judged.
    pub(super) is_read: bool,
}

/// A text of a tool's result that a client may parse, with its JSON Pointer.
pub(super) type Text = (String, Result<Value, JsonError>);

/// The places of one document, called `name` in messages. Clients read only its root.
///
/// # Errors
/// `payment-terms-ambiguous` if there are more than [`MAX_PLACES`].
pub(super) fn of_document<'v>(document: &'v Value, name: &str) -> Result<Vec<TermsPlace<'v>>, Box<Reason>> {
    let mut search = Search { path: name.to_owned(), found: Vec::new(), is_read: &|path| path == name };
    search.visit(document);
    at_most(search.found)
}

/// The places of a tool's result: those in the result itself, then those in its texts.
///
/// # Errors
/// `payment-terms-ambiguous` if there are more than [`MAX_PLACES`].
pub(super) fn of_result<'v>(result: &'v Value, texts: &'v [Text]) -> Result<Vec<TermsPlace<'v>>, Box<Reason>> {
    let mut search = Search { path: String::new(), found: Vec::new(), is_read: &|path| OF_RESULT.contains(&path) };
    search.visit(result);
    let mut places = search.found;
    for (name, text) in texts {
        if let Ok(text) = text {
            places.extend(of_document(text, name)?);
        }
    }
    // The place in the specification comes first, so that messages compare the others with it.
    places.sort_by_key(|place| OF_RESULT.iter().position(|known| *known == place.name).unwrap_or(OF_RESULT.len()));
    at_most(places)
}

/// Rejects a result with a member that only some clients recognise, because its name has a different case. The tool's
/// own data below `structuredContent` is not checked.
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

/// The texts of a tool's result that could be JSON terms, each parsed within the limits.
///
/// # Errors
/// `payment-terms-ambiguous` if there are more than [`MAX_PLACES`].
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

/// Whether a lenient parser could find `accepts` in a text, either directly or with escape sequences.
fn may_hold_terms(text: &str) -> bool {
    may_be_an_object(text.as_bytes()) && (folded(text).collect::<String>().contains("accepts") || text.contains('\\'))
}

/// Whether a lenient parser could take `text` for a JSON object: whether its first byte is a brace, after white space,
/// byte order marks, and the zero bytes of UTF-16 and UTF-32.
pub(super) fn may_be_an_object(text: &[u8]) -> bool {
    const PASSED_OVER: [u8; 12] = *b" \t\n\r\x0b\x0c\0\xef\xbb\xbf\xfe\xff";
    text.iter().find(|byte| !PASSED_OVER.contains(byte)) == Some(&b'{')
}

/// The list in `text`, if an x402 client in Rust could read terms from it. Types that derive serde's `Deserialize` also
/// accept a list of their members' values in order: the version, then `accepts`.
pub(super) fn listed_terms(text: &[u8], limits: Limits) -> Option<Value> {
    const MEMBER: &str = "list";
    if text.trim_ascii_start().first() != Some(&b'[') {
        return None;
    }
    // The parser accepts only objects.
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

/// A search through a document. The JSON parser limits its depth.
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

/// Whether `accepts` contains anything that a client could take for an entry. In places that no client reads, only
/// objects that state a payee or an amount count as entries.
fn demands_payment(members: &Map<String, Value>, is_read: bool) -> bool {
    let is_entry = |entry: &Value| match entry {
        Value::Object(entry) => is_read || OF_ENTRY.iter().any(|name| member_in_any_case(entry, name).next().is_some()),
        // Clients in Rust also read an entry from a list of its values.
        Value::Array(_) => is_read,
        _ => false,
    };
    member_in_any_case(members, "accepts").any(|accepts| match accepts {
        Value::Array(entries) => entries.iter().any(is_entry),
        Value::Object(_) => is_read,
        _ => false,
    })
}
