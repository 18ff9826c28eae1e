//! Finds the revert data of a failed call in an endpoint's error, wherever the node puts it: in `data`, in a member of
//! `data` at any depth, within a sentence, without `0x`, in upper case, or in the message.

use alloy_json_rpc::ErrorPayload;
use alloy_primitives::Bytes;
use clresolve_state::LookUp;
use serde_json::Value;

/// The error code with which nodes report a revert.
pub(crate) const EXECUTION_REVERTED: i64 = 3;

/// Words, in lower case, with which nodes report a revert.
const REVERTED: [&str; 2] = ["revert", "vm execution error"];

/// Hexadecimal digits of an error's selector, and of each word after it.
const SELECTOR_DIGITS: usize = 8;
const WORD_DIGITS: usize = 64;

/// The revert data in an error that reports a revert. An `OffchainLookup` error (EIP-3668) is known by its selector,
/// whatever the error says.
pub(crate) fn revert_data(error: &ErrorPayload) -> Option<Bytes> {
    let texts = texts(error);
    let found: Vec<Bytes> = texts.iter().flat_map(|text| bytes_in(text)).collect();
    if let Some(look_up) = found.iter().find(|data| LookUp::is_demanded(data)) {
        return Some(look_up.clone());
    }
    let is_revert = |text: &String| {
        let lower = text.to_ascii_lowercase();
        REVERTED.iter().any(|word| lower.contains(word))
    };
    let reports = error.code == EXECUTION_REVERTED || texts.iter().any(is_revert);
    found.into_iter().next().filter(|_| reports)
}

/// Puts revert data that stands in the message into `data`, so that the message can be shortened.
pub(crate) fn in_data(error: &mut ErrorPayload) {
    if let Some(data) = revert_data(error) {
        error.data = serde_json::value::to_raw_value(&data).ok();
    }
}

/// The strings of an error: those of its data, and then its message.
fn texts(error: &ErrorPayload) -> Vec<String> {
    let mut texts = Vec::new();
    if let Some(data) = error.data.as_ref().and_then(|data| serde_json::from_str(data.get()).ok()) {
        collect(data, &mut texts);
    }
    texts.push(error.message.to_string());
    texts
}

/// Collects the strings in a JSON value. The JSON parser bounds the depth of the recursion.
fn collect(value: Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Object(members) => members.into_iter().for_each(|(_, member)| collect(member, texts)),
        Value::Array(items) => items.into_iter().for_each(|item| collect(item, texts)),
        _ => {}
    }
}

/// The bytes in hexadecimal digits in a text. Digits without `0x` count if they have the length of revert data.
fn bytes_in(text: &str) -> impl Iterator<Item = Bytes> {
    text.split(|c: char| !c.is_ascii_alphanumeric()).filter_map(|word| {
        let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
        let digits = digits.or_else(|| (word.len() % WORD_DIGITS == SELECTOR_DIGITS).then_some(word))?;
        alloy_primitives::hex::decode(digits).ok().map(Bytes::from)
    })
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
            (-32015, "VM execution error.", json!(format!("revert: {digits}"))),
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
        ] {
            assert_eq!(revert_data(&error(code, message, &data)), None, "{message} {data}");
        }
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
