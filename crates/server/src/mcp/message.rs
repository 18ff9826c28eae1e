//! Reads a client's message strictly and within bounds.

use clresolve_core::json::{self, JsonError, JsonLimits};
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};

use clresolve_core::reason::RefusalCode;

/// Maximum size of a message: two documents of 256 KiB as JSON strings, in which a quote takes two bytes.
pub(crate) const MAX_MESSAGE_BYTES: usize = 4 * JsonLimits::CARD.bytes;

/// The nesting limit is that of schemas, the most deeply nested documents that clients send. The limit on values is
/// that of cards: terms with all entries need a tenth of it, and without it a message of commas would take thirty times
/// its size in memory.
const BOUNDS: JsonLimits = JsonLimits { bytes: MAX_MESSAGE_BYTES, ..JsonLimits::SCHEMA };

/// Parses a message.
///
/// # Errors
/// The response to input that is not a message.
pub(crate) fn parse_message(bytes: &[u8]) -> Result<ClientJsonRpcMessage, Box<ServerJsonRpcMessage>> {
    let bounds = if clresolve_core::mutant!("mcp-messages-unbounded") { JsonLimits::DOCUMENT } else { BOUNDS };
    let value = json::parse_strict_json(bytes, bounds).map_err(|error| match error {
        JsonError::TooLarge { .. } => too_long_response(),
        _ => rejection_response(ErrorCode::PARSE_ERROR, "expected one strict JSON object within its bounds", None),
    })?;
    let id = value.get("id").and_then(|id| serde_json::from_value::<RequestId>(id.clone()).ok());
    serde_json::from_value::<ClientJsonRpcMessage>(value).map_err(|_| {
        rejection_response(ErrorCode::INVALID_REQUEST, "expected a request or a notification of the protocol", id)
    })
}

/// The response to a message that is too long.
pub(crate) fn too_long_response() -> Box<ServerJsonRpcMessage> {
    let error =
        ErrorData::invalid_request("the message is too long", Some(super::refusal_code(RefusalCode::BodyTooLarge)));
    Box::new(ServerJsonRpcMessage::error(error, None))
}

fn rejection_response(code: ErrorCode, message: &'static str, id: Option<RequestId>) -> Box<ServerJsonRpcMessage> {
    let error = ErrorData::new(code, message, Some(super::refusal_code(RefusalCode::RequestMalformed)));
    Box::new(ServerJsonRpcMessage::error(error, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_of(text: &str) -> i32 {
        match *parse_message(text.as_bytes()).expect_err(&text.chars().take(80).collect::<String>()) {
            ServerJsonRpcMessage::Error(error) => error.error.code.0,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_no_message_is_answered_with_an_error() {
        assert!(parse_message(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).is_ok());
        let many =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":[{}0]}}}}"#, "0,".repeat(100_000));
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":{}{}}}}}"#,
            "[".repeat(100),
            "]".repeat(100)
        );
        for text in ["", "[]", "{", r#"{"id":1,"id":2}"#, r#"{"a":1e400}"#, &many, &deep] {
            assert_eq!(code_of(text), ErrorCode::PARSE_ERROR.0);
        }
        for text in
            ["{}", r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#]
        {
            assert_eq!(code_of(text), ErrorCode::INVALID_REQUEST.0, "{text}");
        }
        assert_eq!(code_of(&" ".repeat(MAX_MESSAGE_BYTES + 1)), ErrorCode::INVALID_REQUEST.0);
    }
}
