//! The only accepted notation for amounts and addresses in untrusted text. Clients interpret other notations
//! differently.

use std::borrow::Cow;

use alloy_primitives::{Address, B256, U256};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};
use serde_json::{Number, Value};

use clresolve_core::mutant;

pub(crate) const AMOUNT: &str = "a decimal integer below 2^256 in quotes, without sign or leading zero";

/// The notation of an address.
pub const ADDRESS: &str = "0x and 40 hex digits, where they are in mixed case with a valid EIP-55 checksum";

/// Number of digits of the largest 256-bit number.
const MAX_DIGITS: usize = 78;

/// Parses an amount in the notation [`AMOUNT`].
pub(crate) fn parse_amount(text: &str) -> Option<U256> {
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let is_shortest = text == "0" || !text.starts_with('0') || mutant!("amounts-in-any-form");
    if text.is_empty() || text.len() > MAX_DIGITS || !is_digits || !is_shortest {
        return None;
    }
    U256::from_str_radix(text, 10).ok()
}

/// Serializes an amount in the notation [`AMOUNT`].
pub(crate) fn serialize_decimal_amount<S: Serializer>(amount: &U256, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(amount)
}

/// Parses an address in the notation [`ADDRESS`].
pub fn parse_address(text: &str) -> Option<Address> {
    let address = Address::from(parse_fixed_hex(text)?);
    let has = |is_case: fn(&u8) -> bool| text.as_bytes()[2..].iter().any(is_case);
    let is_mixed = has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
    (!is_mixed || address.to_checksum(None) == text || mutant!("checksums-are-ignored")).then_some(address)
}

/// Parses 32 bytes.
pub(crate) fn parse_bytes32(text: &str) -> Option<B256> {
    parse_fixed_hex(text).map(B256::from)
}

/// Parses `N` bytes, written as `0x` and hexadecimal digits.
fn parse_fixed_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != 2 + 2 * N {
        return None; // The decoder would skip a second 0x.
    }
    alloy_primitives::hex::decode_to_slice(text.strip_prefix("0x")?, &mut bytes).ok()?;
    Some(bytes)
}

/// Deserializes an object that contains no lists. Serde by itself would also accept a list in place of an object.
pub(crate) fn deserialize_without_lists<'v, T: Deserialize<'v>>(value: &'v Value) -> Result<T, serde_json::Error> {
    if !value.is_object() || holds_list(value) {
        return Err(serde_json::Error::custom("expected an object without lists"));
    }
    T::deserialize(value)
}

fn holds_list(value: &Value) -> bool {
    match value {
        Value::Array(_) => true,
        Value::Object(members) => members.values().any(holds_list),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

pub(crate) fn deserialize_amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<U256, D::Error> {
    let text = Cow::<str>::deserialize(deserializer)?;
    parse_amount(&text).ok_or_else(|| D::Error::custom(format_args!("expected {AMOUNT}")))
}

pub(crate) fn deserialize_address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Address, D::Error> {
    let text = Cow::<str>::deserialize(deserializer)?;
    parse_address(&text).ok_or_else(|| D::Error::custom(format_args!("expected {ADDRESS}")))
}

pub(crate) fn deserialize_bytes32<'de, D: Deserializer<'de>>(deserializer: D) -> Result<B256, D::Error> {
    let text = Cow::<str>::deserialize(deserializer)?;
    parse_bytes32(&text).ok_or_else(|| D::Error::custom("expected 0x and 64 hex digits"))
}

/// Serde helper: reads a whole number. JSON has a single number type, so `402.0` is 402.
pub(crate) fn deserialize_whole_number<'de, D: Deserializer<'de>, N: TryFrom<u64>>(
    deserializer: D,
) -> Result<N, D::Error> {
    parse_whole_number(&Number::deserialize(deserializer)?)
}

/// Serde helper: like [`deserialize_whole_number`], but also accepts null.
pub(crate) fn deserialize_whole_number_or_null<'de, D, N>(deserializer: D) -> Result<Option<N>, D::Error>
where
    D: Deserializer<'de>,
    N: TryFrom<u64>,
{
    Option::<Number>::deserialize(deserializer)?.as_ref().map(parse_whole_number).transpose()
}

/// Converts a whole number. A value above 64 bits becomes the largest 64-bit number.
fn parse_whole_number<N: TryFrom<u64>, E: serde::de::Error>(number: &Number) -> Result<N, E> {
    let without_fraction = |number: f64| (number >= 0.0 && number.fract() == 0.0).then_some(number as u64);
    let found = number.as_u64().or_else(|| without_fraction(number.as_f64()?));
    let fitting = found.and_then(|found| N::try_from(found).ok());
    fitting.ok_or_else(|| E::custom(format_args!("expected a whole number that is not too large, found {number}")))
}

#[cfg(test)]
mod tests {
    use alloy_primitives::address as literal;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_amount_is_written_in_one_way() {
        assert_eq!(parse_amount("0"), Some(U256::ZERO));
        assert_eq!(parse_amount("10000"), Some(U256::from(10_000)));
        assert_eq!(parse_amount(&U256::MAX.to_string()), Some(U256::MAX));
        let beyond = "115792089237316195423570985008687907853269984665640564039457584007913129639936";
        let zeros = "0".repeat(79);
        let others =
            ["", "00", "0010000", "-1", "+1", "1.0", "0.01", "1e4", "0x2710", "1_000", " 1", "1 ", "١", beyond, &zeros];
        for text in others {
            assert_eq!(parse_amount(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_whole_number_is_read_however_it_is_written() {
        let status =
            |text: &str| deserialize_whole_number::<_, u16>(&mut serde_json::Deserializer::from_str(text)).ok();
        for text in ["402", "402.0", "4.02e2"] {
            assert_eq!(status(text), Some(402), "{text}");
        }
        assert_eq!([status("0"), status("-0.0"), status("65535.0")], [Some(0), Some(0), Some(u16::MAX)]);
        for text in ["402.5", "-1", "-402.0", "65536", "1e300", "\"402\"", "null", "[402]"] {
            assert_eq!(status(text), None, "{text}");
        }
        let seconds =
            |text: &str| deserialize_whole_number_or_null::<_, u64>(&mut serde_json::Deserializer::from_str(text)).ok();
        for (text, read) in [("60.0", Some(60)), ("null", None), ("18446744073709551616", Some(u64::MAX))] {
            assert_eq!(seconds(text), Some(read), "{text}");
        }
        assert_eq!([seconds("0.5"), seconds("-1"), seconds("\"60\"")], [None; 3]);
    }

    #[test]
    fn an_address_in_mixed_case_has_its_checksum() {
        let payee = literal!("70997970C51812dc3A010C7d01b50e0d17dc79C8");
        for text in [
            "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
            "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
            "0x70997970C51812DC3A010C7D01B50E0D17DC79C8",
        ] {
            assert_eq!(parse_address(text), Some(payee), "{text}");
        }
        for text in [
            "0x70997970c51812dc3A010C7d01b50e0d17dc79C8",
            "70997970c51812dc3a010c7d01b50e0d17dc79c8",
            "0X70997970c51812dc3a010c7d01b50e0d17dc79c8",
            "0x0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
            "0x70997970c51812dc3a010c7d01b50e0d17dc79",
            "0x70997970c51812dc3a010c7d01b50e0d17dc79c8 ",
            "0x70997970c51812dc3a010c7d01b50e0d17dc79g8",
            "summarizeagent.eth",
            "",
        ] {
            assert_eq!(parse_address(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn every_amount_and_address_is_read_back(number in any::<[u8; 32]>(), bytes in any::<[u8; 20]>()) {
            let number = U256::from_be_bytes(number);
            prop_assert_eq!(parse_amount(&number.to_string()), Some(number));
            let place = Address::from(bytes);
            prop_assert_eq!(parse_address(&place.to_checksum(None)), Some(place));
            prop_assert_eq!(parse_address(&format!("{place:#x}")), Some(place));
        }

        #[test]
        fn no_text_has_another_reading(text in "\\PC{0,90}") {
            prop_assert!(parse_amount(&text).is_none_or(|number| number.to_string() == text));
            let is_read_back = |place: Address| place.to_string().eq_ignore_ascii_case(&text);
            prop_assert!(parse_address(&text).is_none_or(is_read_back));
        }
    }
}
