//! JSON in base64, the encoding of x402 version 2 headers.

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use serde_json::Value;

use clresolve_core::json::{JsonError, JsonLimits, parse_strict_json};

/// Base64 that ignores trailing bits, as most readers do.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone),
);

/// Decodes the JSON object in a header's value. Only the standard alphabet with padding is accepted, as every SDK
/// writes it. Readers disagree on everything else (white space, base64url, missing padding, nonzero trailing bits), so
/// it is rejected.
///
/// # Errors
/// [`HeaderDecodeError`]. Values that would exceed the limits are rejected before decoding.
pub(crate) fn decode_header_json(header: &str, limits: JsonLimits) -> Result<Value, HeaderDecodeError> {
    if header.is_empty() {
        return Err(HeaderDecodeError::Empty);
    }
    let most = base64_length(limits.bytes);
    if header.len() > most {
        return Err(HeaderDecodeError::TooLong { bytes: header.len(), limit: most });
    }
    let bytes = STANDARD.decode(header).map_err(|_| HeaderDecodeError::NotBase64)?;
    Ok(parse_strict_json(&bytes, limits)?)
}

/// The bytes of a text that a client could take for base64 of a document, in either alphabet, with or without padding.
pub(crate) fn decode_any_base64(text: &str) -> Option<Vec<u8>> {
    let text: String = text.split_whitespace().collect();
    let text = text.trim_end_matches('=');
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte);
    if !text.bytes().all(is_letter) {
        return None;
    }
    LENIENT.decode(text.replace('-', "+").replace('_', "/")).ok()
}

/// Length of the padded base64 of `bytes` bytes.
pub(crate) const fn base64_length(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum HeaderDecodeError {
    #[error("empty")]
    Empty,
    #[error("{bytes} bytes; at most {limit} are allowed")]
    TooLong { bytes: usize, limit: usize },
    #[error("not base64 of the standard alphabet with padding")]
    NotBase64,
    #[error("not strict JSON: {0}")]
    NotJson(#[from] JsonError),
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: JsonLimits = JsonLimits { bytes: 12, ..JsonLimits::CARD };

    #[test]
    fn a_header_is_json_in_base64_of_one_form() {
        assert_eq!(decode_header_json("e30=", LIMITS).unwrap(), serde_json::json!({}));
        assert!(matches!(decode_header_json("", LIMITS), Err(HeaderDecodeError::Empty)));
        for other in ["e30", " e30=", "e30=\n", "e31=", "e30=,e30=", "{}", "eyJ-IjowfQ==", "\u{e9}"] {
            assert!(matches!(decode_header_json(other, LIMITS), Err(HeaderDecodeError::NotBase64)), "{other:?}");
        }
        assert!(decode_header_json("eyJ+IjowfQ==", LIMITS).is_ok(), "the standard alphabet");
        assert!(decode_header_json("e30K", LIMITS).is_ok(), "white space around the JSON text");
        assert!(matches!(decode_header_json("e30gMQ==", LIMITS), Err(HeaderDecodeError::NotJson(_))));
    }

    #[test]
    fn what_would_decode_to_too_much_is_not_decoded() {
        let longest = STANDARD.encode(r#"{"a": "bcd"}"#);
        assert_eq!(longest.len(), 16);
        assert!(decode_header_json(&longest, LIMITS).is_ok());
        assert!(matches!(
            decode_header_json(&format!("{longest}AAAA"), LIMITS),
            Err(HeaderDecodeError::TooLong { limit: 16, .. })
        ));
    }
}
