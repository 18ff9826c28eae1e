//! Finds every place in a reply that contains terms. Clients read different places, so all of them matter.

use serde_json::{Map, Value};

use clresolve_core::json::{JsonError, JsonLimits, parse_strict_json};
use clresolve_core::reason::Reason;

use crate::encoding::decode_any_base64;

use super::reading::{ambiguous_terms_reason, fold_ascii_case, is_case_variant_of, member_in_any_case};

/// Maximum number of places per reply that are compared. Published sellers write three.
pub(super) const MAX_PLACES: usize = 8;

/// Where published clients look for terms in the result of an MCP tool, apart from the texts of its content. `error` is
/// the JSON-RPC error.
const OF_RESULT: [&str; 5] = ["/structuredContent", "/_meta/x402~1error", "/paymentRequired", "/error/data", "/data"];

/// Members by which clients find terms: of a tool's result, of an error in its place, and of a part of its content.
const MEMBERS: [&str; 9] =
    ["content", "structuredContent", "_meta", "x402/error", "paymentRequired", "error", "data", "resource", "text"];

/// Every entry that can be paid has at least one of these members, in either version.
const OF_PRICED_ENTRY: [&str; 3] = ["payTo", "amount", "maxAmountRequired"];

const OF_ENTRY: [&str; 6] = ["payTo", "amount", "maxAmountRequired", "scheme", "network", "asset"];

/// A place that demands a payment.
pub(super) struct TermsPlace<'v> {
    /// The name of the place in messages.
    pub(super) name: String,
    pub(super) document: &'v Value,
    /// Whether published clients read terms there. Terms in other places are compared but never judged.
    pub(super) is_read: bool,
}

/// A text of a tool's result that a client may parse, with its JSON Pointer.
pub(super) type LocatedToolResultJson = (String, Result<Value, JsonError>);

/// The places of one document, called `name` in messages. Clients read only its root.
///
/// # Errors
/// `payment-terms-ambiguous` if there are more than [`MAX_PLACES`].
pub(super) fn terms_places_in_document<'v>(
    document: &'v Value,
    name: &str,
) -> Result<Vec<TermsPlace<'v>>, Box<Reason>> {
    limit_places(find_terms_places(document, name, |path| path == name))
}

/// The places of a tool's result: those in the result itself, then those in its texts.
///
/// # Errors
/// `payment-terms-ambiguous` if there are more than [`MAX_PLACES`].
pub(super) fn terms_places_in_tool_result<'v>(
    result: &'v Value,
    texts: &'v [LocatedToolResultJson],
) -> Result<Vec<TermsPlace<'v>>, Box<Reason>> {
    let mut places = find_terms_places(result, "", |path| OF_RESULT.contains(&path));
    for (name, text) in texts {
        if let Ok(text) = text {
            places.extend(terms_places_in_document(text, name)?);
        }
    }
    // The place in the specification comes first, so that messages compare the others with it.
    places.sort_by_key(|place| OF_RESULT.iter().position(|known| *known == place.name).unwrap_or(OF_RESULT.len()));
    limit_places(places)
}

/// Rejects a result with a member that only some clients recognise, because its name has a different case. The tool's
/// own data below `structuredContent` is not checked.
pub(super) fn check_member_case(result: &Value) -> Result<(), Box<Reason>> {
    let parts = result.get("content").and_then(Value::as_array).map_or(0, Vec::len);
    let of_part = |index| [format!("/content/{index}"), format!("/content/{index}/resource")];
    let places = ["", "/_meta", "/error"].map(str::to_owned).into_iter().chain((0..parts).flat_map(of_part));
    for place in places {
        let members = result.pointer(&place).and_then(Value::as_object);
        for name in members.into_iter().flat_map(Map::keys) {
            let Some(known) = MEMBERS.into_iter().find(|known| known != name && is_case_variant_of(name, known)) else {
                continue;
            };
            let message =
                "A member of the tool's result is spelt in another case. Clients differ in whether they read it.";
            let reason = ambiguous_terms_reason(&place, message).expected(known);
            return Err(Box::new(reason.observed(clresolve_core::text::excerpt_text(name))));
        }
    }
    Ok(())
}

fn limit_places(places: Vec<TermsPlace<'_>>) -> Result<Vec<TermsPlace<'_>>, Box<Reason>> {
    if places.len() > MAX_PLACES { Err(too_many_places_reason()) } else { Ok(places) }
}

/// The texts of a tool's result that could be JSON terms, each parsed within the limits. A client may read any of them.
///
/// # Errors
/// `payment-terms-ambiguous` if there are more than [`MAX_PLACES`].
pub(super) fn result_texts(result: &Value, limits: JsonLimits) -> Result<Vec<LocatedToolResultJson>, Box<Reason>> {
    let mut texts = Vec::new();
    visit_json_values(result, &mut String::new(), &mut |path, value| {
        if let Value::String(text) = value
            && texts.len() <= MAX_PLACES
        {
            texts.extend(terms_in_text(text, limits).map(|read| (path.to_owned(), read)));
        }
    });
    if texts.len() > MAX_PLACES { Err(too_many_places_reason()) } else { Ok(texts) }
}

/// The terms that a client could find in a text: the text itself, a list, the object within other text, or the same in
/// base64. `None` if it finds none.
fn terms_in_text(text: &str, limits: JsonLimits) -> Option<Result<Value, JsonError>> {
    if let Some(list) = parse_list_encoded_terms(text.as_bytes(), limits) {
        return Some(Ok(list));
    }
    if may_be_an_object(text.as_bytes()) {
        return (text.contains('\\') || mentions_accepts_member(text))
            .then(|| parse_strict_json(text.as_bytes(), limits));
    }
    if let Some(inner) = text.find('{').and_then(|begin| text.get(begin..=text.rfind('}')?)) {
        return mentions_accepts_member(inner).then(|| parse_strict_json(inner.as_bytes(), limits));
    }
    let decoded = decode_any_base64(text)?;
    let decoded = std::str::from_utf8(&decoded).ok()?;
    (may_be_an_object(decoded.as_bytes()) && mentions_accepts_member(decoded))
        .then(|| parse_strict_json(decoded.as_bytes(), limits))
}

/// Whether a parser could find `accepts` in a text, either directly or with escape sequences.
fn mentions_accepts_member(text: &str) -> bool {
    text.contains("\\u") || fold_ascii_case(text).collect::<String>().contains("accepts")
}

/// Whether a lenient parser could take `text` for a JSON object: whether its first visible ASCII character is a brace.
/// Programs differ in which other characters they trim.
pub(super) fn may_be_an_object(text: &[u8]) -> bool {
    text.iter().find(|byte| byte.is_ascii_graphic()) == Some(&b'{')
}

/// The list in `text`, if an x402 client in Rust could read terms from it. Types that derive serde's `Deserialize` also
/// accept a list of their members' values in order: the version and `accepts` among them.
pub(super) fn parse_list_encoded_terms(text: &[u8], limits: JsonLimits) -> Option<Value> {
    const MEMBER: &str = "list";
    if text.trim_ascii_start().first() != Some(&b'[') {
        return None;
    }
    // The parser accepts only objects.
    let object = format!("{{\"{MEMBER}\":{}}}", std::str::from_utf8(text).ok()?);
    parse_strict_json(object.as_bytes(), limits).ok()?.get_mut(MEMBER).map(Value::take).filter(is_list_encoded_terms)
}

fn is_list_encoded_terms(value: &Value) -> bool {
    let Value::Array(items) = value else { return false };
    items.iter().any(Value::is_number) && items.iter().any(Value::is_array)
}

fn too_many_places_reason() -> Box<Reason> {
    let reason = ambiguous_terms_reason("", "More places of the reply could contain terms than are compared.");
    Box::new(reason.expected(format!("at most {MAX_PLACES} places")))
}

/// The places of `document`, whose own path is `path`, that demand a payment. Clients read those that satisfy
/// `is_read`.
fn find_terms_places<'v>(document: &'v Value, path: &str, is_read: impl Fn(&str) -> bool) -> Vec<TermsPlace<'v>> {
    let mut found = Vec::new();
    visit_json_values(document, &mut path.to_owned(), &mut |path, value| {
        let is_read = is_read(path);
        let demands = match value {
            Value::Object(members) => demands_payment(members, is_read),
            _ => is_read && is_list_encoded_terms(value),
        };
        if demands && found.len() <= MAX_PLACES {
            found.push(TermsPlace { name: path.to_owned(), document: value, is_read });
        }
    });
    found
}

/// Calls `see` with each value of a document, outer ones first, and its JSON Pointer. The parser limits the depth.
fn visit_json_values<'v>(value: &'v Value, path: &mut String, see: &mut impl FnMut(&str, &'v Value)) {
    see(path, value);
    let length = path.len();
    let mut below = |segment: &str, value| {
        path.push('/');
        path.push_str(segment);
        visit_json_values(value, path, see);
        path.truncate(length);
    };
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(name, member)| below(&name.replace('~', "~0").replace('/', "~1"), member));
        }
        Value::Array(items) => items.iter().enumerate().for_each(|(index, item)| below(&index.to_string(), item)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whether `accepts` contains anything that a client could take for an entry. In places that no client reads, only
/// objects that state a payee or an amount count as entries.
fn demands_payment(members: &Map<String, Value>, is_read: bool) -> bool {
    member_in_any_case(members, "accepts").any(|accepts| match accepts {
        Value::Array(entries) => entries.iter().any(|entry| is_payment_entry(entry, is_read)),
        // Some clients take the values of an object for entries.
        Value::Object(entries) => {
            let mut objects = entries.values().filter(|entry| entry.is_object());
            is_read && (is_payment_entry(accepts, true) || objects.any(|entry| is_payment_entry(entry, true)))
        }
        _ => false,
    })
}

/// Whether a client could take a value for an entry.
pub(super) fn is_payment_entry(value: &Value, is_read: bool) -> bool {
    let names = if is_read { &OF_ENTRY[..] } else { &OF_PRICED_ENTRY };
    match value {
        Value::Object(entry) => names.iter().any(|name| member_in_any_case(entry, name).next().is_some()),
        // Clients in Rust also read an entry from a list of its values.
        Value::Array(_) => is_read,
        _ => false,
    }
}
