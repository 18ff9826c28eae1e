//! Parts of the JSON Schema of a decision request that the types cannot express: text patterns, alternative spellings,
//! and mutually exclusive members.

use schemars::{Schema, json_schema};
use serde_json::{Value, json};

/// Base64 with padding (RFC 4648, section 4) whose trailing bits are zero.
pub(crate) const BASE64: &str = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$";

/// The address of a contract, as text.
pub(crate) struct ContractAddressSchema;

/// A request contains either a reply, which has its URL, or only terms.
pub(crate) fn require_one_demand(question: &mut Schema) {
    let about_reply = demand_schema(question, "response", &["paymentRequired", "url"]);
    let about_terms = demand_schema(question, "paymentRequired", &["response"]);
    *question = json_schema!({"oneOf": [about_reply, about_terms]});
}

/// The request schema that requires `member` and excludes `others`.
fn demand_schema(question: &Schema, member: &str, others: &[&str]) -> Schema {
    let mut question = question.clone();
    let required = question.ensure_object().entry("required").or_insert_with(|| json!([]));
    if let Some(required) = required.as_array_mut() {
        required.push(member.into());
    }
    if let Some(members) = question.get_mut("properties").and_then(Value::as_object_mut) {
        for other in others {
            members.insert((*other).to_owned(), json!({"type": "null"}));
        }
        if let Some(demanded) = members.get_mut(member) {
            exclude_null(demanded);
        }
    }
    question
}

/// Excludes null from a schema that lists its types or accepts anything.
fn exclude_null(schema: &mut Value) {
    match schema.get_mut("type") {
        Some(Value::Array(types)) => types.retain(|named| named != "null"),
        Some(_) => {}
        None => schema["not"] = json!({"type": "null"}),
    }
}

/// Adds the alternative spelling of each limit. A limit may be given in one spelling, not in both.
pub(crate) fn add_alternative_spellings(limits: &mut Schema) {
    let pairs = [["max_timeout_seconds", "maxTimeoutSeconds"], ["max_amount", "maxAmount"]];
    if let Some(members) = limits.get_mut("properties").and_then(Value::as_object_mut) {
        for [spelling, other] in pairs {
            let same = members.get(spelling).cloned().unwrap_or_default();
            members.insert(other.to_owned(), same);
        }
    }
    // The restriction applies only to objects: optional limits may also be null.
    let both = pairs.map(|both| json!({"required": both}));
    limits.insert("not".to_owned(), json!({"type": "object", "anyOf": both}));
}

/// Implements `JsonSchema` for types that are texts with a pattern.
macro_rules! texts {
    ($($text:ty: $pattern:literal)*) => {
        $(impl schemars::JsonSchema for $text {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($text).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({"type": "string", "pattern": $pattern})
            }
        })*
    };
}
pub(crate) use texts;

texts!(ContractAddressSchema: "^0x[0-9a-fA-F]{40}$");

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::limits::CallerLimits;

    /// Serde's error message lists each spelling that it accepts.
    #[test]
    fn limits_have_all_their_spellings() {
        let schema = clresolve_core::schema::deserialization_schema::<CallerLimits>();
        let described: BTreeSet<&str> =
            schema["properties"].as_object().expect("members").keys().map(String::as_str).collect();
        let refusal = serde_json::from_str::<CallerLimits>(r#"{"another": 1}"#).expect_err("no limit").to_string();
        let read: BTreeSet<&str> = refusal.split('`').skip(3).step_by(2).collect();
        assert_eq!(described, read);
    }
}
