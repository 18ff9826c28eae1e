//! Where terms stand in a reply. Clients differ in the place that they read, so every place has to be found.

use serde_json::{Map, Value};

use clresolve_core::json::{JsonError, Limits, parse};
use clresolve_core::reason::Reason;

use super::reading::{ambiguous, folded, member_in_any_case};

/// Most places of one reply that are compared. Published sellers write three.
pub(super) const MAX_PLACES: usize = 8;

/// Where published clients look for terms in the result of an MCP tool, beside the texts of its content. `error` is that of
/// JSON-RPC.
const OF_RESULT: [&str; 4] = ["/structuredContent", "/_meta/x402~1error", "/paymentRequired", "/error/data"];

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

fn at_most(places: Vec<TermsPlace<'_>>) -> Result<Vec<TermsPlace<'_>>, Box<Reason>> {
    if places.len() > MAX_PLACES { Err(too_many()) } else { Ok(places) }
}

/// The texts of a tool's result that could be a JSON object with terms, each read within the limits.
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
        let Some(text) = text.filter(|text| may_hold_terms(text)) else { continue };
        if texts.len() == MAX_PLACES {
            return Err(too_many());
        }
        texts.push((pointer, parse(text.as_bytes(), limits)));
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
        match value {
            Value::Object(members) => {
                let is_read = (self.is_read)(&self.path);
                if demands_payment(members, is_read) && self.found.len() <= MAX_PLACES {
                    self.found.push(TermsPlace { name: self.path.clone(), document: value, is_read });
                }
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
        _ => false,
    };
    member_in_any_case(members, "accepts").any(|accepts| match accepts {
        Value::Array(entries) => entries.iter().any(is_entry),
        Value::Object(_) => is_read,
        _ => false,
    })
}
