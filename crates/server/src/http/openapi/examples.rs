//! Examples of requests and responses, by operation, recorded from the sandbox.

use std::sync::LazyLock;

use serde_json::Value;

static EXAMPLES: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("examples.json")).expect("the examples are JSON"));

/// The JSON body of a request to the operation with this id.
pub(super) fn request_example(id: &str) -> Option<&'static Value> {
    EXAMPLES.get(id)?.get("request")
}

/// The JSON body of a successful response of the operation with this id.
pub(super) fn response_example(id: &str) -> Option<&'static Value> {
    EXAMPLES.get(id)?.get("response")
}
