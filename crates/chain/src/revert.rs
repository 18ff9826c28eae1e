//! Finds the revert data in an endpoint's error, wherever the node puts it: in `data`, in a member of `data` at any
//! depth, within a sentence, without `0x`, in upper case, or in the message.

use alloy_json_rpc::ErrorPayload;
use alloy_primitives::{Bytes, hex};
use clresolve_state::CcipReadLookup;
use serde_json::Value;

/// The error code with which nodes report a revert.
pub(crate) const EXECUTION_REVERTED: i64 = 3;

/// Words, in lower case, with which nodes report a revert.
const REVERTED: [&str; 2] = ["revert", "vm execution error"];

/// Words, in lower case, with which nodes report that a call exceeded a limit. Such an error has no revert data.
const LIMITED: [&str; 2] = ["out of gas", "timeout"];

/// Phrases, in lower case, with which nodes report a missing block or pruned state.
pub(crate) const MISSING_BLOCK: [&str; 10] = [
    "header not found",
    "unknown block",
    "block not found",
    "header for hash not found",
    "cannot find block",
    "missing trie node",
    "historical state",
    "state not available",
    "state is not available",
    "not currently canonical",
];

const SELECTOR_DIGITS: usize = 8;
const WORD_DIGITS: usize = 64;

/// The revert data in an error that reports a revert. An `OffchainLookup` error (EIP-3668) is recognised by its
/// selector, whatever the error's text. A contract chooses the reason in the message, so the message counts only if
/// `data` has no bytes.
pub(crate) fn revert_data(error: &ErrorPayload) -> Option<Bytes> {
    let data = strings_in_data(error);
    let texts = || data.iter().map(String::as_str).chain([&*error.message]);
    let whole: Vec<Bytes> = data.iter().filter_map(|text| decode_hex(text)).collect();
    if texts().any(|text| contains_phrase(text, &MISSING_BLOCK) || whole.is_empty() && contains_phrase(text, &LIMITED))
    {
        return None;
    }
    let reports = error.code == EXECUTION_REVERTED || texts().any(|text| contains_phrase(text, &REVERTED));
    let found = if whole.is_empty() { texts().flat_map(hex_values_in).collect() } else { whole };
    let look_up = found.iter().find(|bytes| CcipReadLookup::is_lookup_demanded(bytes)).cloned();
    look_up.or_else(|| found.into_iter().next().filter(|_| reports))
}

/// Moves revert data into `data` and sets the code of a revert, so that the message can be shortened. Other data is
/// dropped: nothing reads it, and it may contain a key.
pub(crate) fn normalize_revert_data(error: &mut ErrorPayload) {
    let data = revert_data(error);
    if data.is_some() {
        error.code = EXECUTION_REVERTED;
    }
    error.data = data.and_then(|data| serde_json::value::to_raw_value(&data).ok());
}

fn contains_phrase(text: &str, phrases: &[&str]) -> bool {
    let lower = text.to_ascii_lowercase();
    phrases.iter().any(|phrase| lower.contains(phrase))
}

fn strings_in_data(error: &ErrorPayload) -> Vec<String> {
    let mut strings = Vec::new();
    if let Some(data) = error.data.as_ref().and_then(|data| serde_json::from_str(data.get()).ok()) {
        collect_strings(data, &mut strings);
    }
    strings
}

/// Collects the strings in a JSON value. The JSON parser bounds the depth of the recursion.
fn collect_strings(value: Value, strings: &mut Vec<String>) {
    match value {
        Value::String(text) => strings.push(text),
        Value::Object(members) => members.into_iter().for_each(|(_, member)| collect_strings(member, strings)),
        Value::Array(items) => items.into_iter().for_each(|item| collect_strings(item, strings)),
        _ => {}
    }
}

/// Decodes a text of hexadecimal digits. Without `0x`, the digits must have the length of revert data.
fn decode_hex(text: &str) -> Option<Bytes> {
    let digits = strip_hex_prefix(text).or_else(|| (text.len() % WORD_DIGITS == SELECTOR_DIGITS).then_some(text))?;
    hex::decode(digits).ok().map(Bytes::from)
}

/// The values after `0x` in a sentence that have the length of revert data.
fn hex_values_in(text: &str) -> impl Iterator<Item = Bytes> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter_map(strip_hex_prefix);
    let words = words.filter(|digits| digits.len() % WORD_DIGITS == SELECTOR_DIGITS);
    words.filter_map(|digits| hex::decode(digits).ok().map(Bytes::from))
}

fn strip_hex_prefix(text: &str) -> Option<&str> {
    text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LOOK_UP: &str = "556f1830";

    fn error(code: i64, message: &'static str, data: &Value) -> ErrorPayload {
        let data = (!data.is_null()).then(|| serde_json::value::to_raw_value(data).unwrap());
        ErrorPayload { code, message: message.into(), data }
    }

    #[test]
    fn revert_data_is_found_wherever_nodes_put_it() {
        let word = "ab".repeat(32);
        let digits = format!("08c379a0{word}");
        let expected: Bytes = digits.parse().unwrap();
        let prefixed = format!("0x{digits}");
        let upper = format!("0x{}", digits.to_ascii_uppercase());
        for (code, message, data) in [
            (3, "execution reverted", json!(prefixed)),
            (3, "", json!(upper)),
            (3, "", json!(digits)),
            (-32603, "execution reverted", json!({"data": prefixed})),
            (-32603, "Error: VM Exception: reverted", json!({"originalError": {"code": 3, "data": prefixed}})),
            (-32000, "transaction failed", json!({"reason": null, "stack": ["Reverted", prefixed]})),
            (-32015, "VM execution error.", json!(format!("Reverted {prefixed}"))),
            (-32000, "execution reverted", json!(format!("err: {prefixed} (supplied gas 550000000)"))),
        ] {
            assert_eq!(revert_data(&error(code, message, &data)), Some(expected.clone()), "{message} {data}");
        }
        let message: &'static str = format!("err: execution reverted: {prefixed} (supplied gas 5)").leak();
        assert_eq!(revert_data(&error(-32000, message, &Value::Null)), Some(expected));
        assert_eq!(revert_data(&error(3, "execution reverted", &json!("0x"))), Some(Bytes::new()));
    }

    #[test]
    fn an_error_that_reports_no_revert_has_no_revert_data() {
        let hash = format!("0x{}", "11".repeat(32));
        for (code, message, data) in [
            (-32000, "header not found", json!(hash)),
            (3, "execution reverted", Value::Null),
            (3, "execution reverted", json!({"cause": "out of memory"})),
            (3, "execution reverted", json!("0x1")),
            (-32015, "VM execution error.", json!("err: out of gas (supplied gas 16000000)")),
            (-32015, "VM execution error.", json!("err: out of gas, reverted 0x08c379a0")),
            (-32000, "header not found, block was reverted", json!(hash)),
            (-32000, "the block was reverted", json!({"hint": "see 50000000"})),
        ] {
            assert_eq!(revert_data(&error(code, message, &data)), None, "{message} {data}");
        }
    }

    /// A contract chooses the reason that a node puts into the message.
    #[test]
    fn data_counts_before_the_message() {
        let data: Bytes = format!("0x08c379a0{}", "ab".repeat(32)).parse().unwrap();
        let message: &'static str = format!("execution reverted: 0x{LOOK_UP}{}", "00".repeat(32)).leak();
        let mut both = error(3, message, &json!(data));
        assert_eq!(revert_data(&both), Some(data.clone()));
        normalize_revert_data(&mut both);
        assert_eq!(revert_data(&both), Some(data.clone()));
        let mut nested = error(-32603, "Internal error", &json!({"message": "execution reverted", "data": data}));
        normalize_revert_data(&mut nested);
        assert_eq!((nested.code, revert_data(&nested)), (EXECUTION_REVERTED, Some(data)));
    }

    #[test]
    fn a_look_up_is_known_by_its_selector_alone() {
        let data = format!("0x{LOOK_UP}{}", "00".repeat(32));
        let found = |data: Value| revert_data(&error(-32000, "failed", &data));
        let expected: Bytes = data.parse().unwrap();
        assert_eq!(found(json!({"a": [hash(), {"b": data}]})), Some(expected.clone()));
        assert_eq!(found(json!(format!("err: {data} (supplied gas 1)"))), Some(expected));
        assert_eq!(found(json!(hash())), None);
    }

    fn hash() -> String {
        format!("0x{}", "22".repeat(32))
    }
}
