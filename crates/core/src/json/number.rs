//! Numbers in a JSON text: which of them every parser reads alike, and how many expensive ones a document may contain.

use std::fmt;

use super::{ExceededJsonLimit, JsonError};

/// Maximum length of a numeral, in bytes. A double written without an exponent has up to 343.
pub const MAX_NUMERAL_BYTES: usize = 400;

/// The number of significant digits that distinguishes any two doubles. For a longer numeral, finding the nearest
/// double is expensive if the numeral is close to the midpoint of two doubles.
pub const DOUBLE_DIGITS: usize = 17;

/// Maximum number of numerals with more than [`DOUBLE_DIGITS`] significant digits in one document.
pub const MAX_LONG_NUMERALS: usize = 1000;

/// Whether the double nearest to a numeral is exactly the number that the numeral states. If it is not, ECMAScript
/// parsers, which only have doubles, read a different number.
pub fn is_exact(numeral: &str) -> bool {
    exact_double(numeral).is_some()
}

/// The double whose shortest printed form equals the number that a numeral states; `None` if there is none.
pub fn exact_double(numeral: &str) -> Option<f64> {
    let stated = Decimal::parse(numeral)?;
    // The shortest form of a double never has more digits. Up to this many digits, the nearest double is found without
    // long division.
    if stated.digits() > DOUBLE_DIGITS {
        return None;
    }
    let value: f64 = stated.to_string().parse().ok().filter(|value: &f64| value.is_finite())?;
    // `serde_json` prints every double in the same few steps; the formatter of the standard library does not.
    let printed = serde_json::to_string(&value).ok()?;
    Decimal::parse(&printed)?.equals_value_of(&stated).then_some(value)
}

/// Refuses a JSON text with a numeral that is too long, or with too many long ones. Syntax errors are left to the
/// parser.
///
/// # Errors
/// [`JsonError::TooComplex`] for the first numeral that exceeds a bound.
pub fn check_numerals(text: &str) -> Result<(), JsonError> {
    let bytes = text.as_bytes();
    let (mut at, mut long) = (0, 0);
    while let Some(byte) = bytes.get(at) {
        let start = at;
        at += 1;
        match byte {
            b'"' => at = end_of_string(bytes, at),
            b'-' | b'0'..=b'9' => {
                let is_inside = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
                at += bytes[at..].iter().take_while(|byte| is_inside(byte)).count();
                if at - start > MAX_NUMERAL_BYTES {
                    return Err(limit_error(text, start, ExceededJsonLimit::NumeralBytes, MAX_NUMERAL_BYTES));
                }
                let is_long = at - start > DOUBLE_DIGITS
                    && Decimal::parse(&text[start..at]).is_none_or(|decimal| decimal.digits() > DOUBLE_DIGITS);
                long += usize::from(is_long);
                if long > MAX_LONG_NUMERALS {
                    return Err(limit_error(text, start, ExceededJsonLimit::LongNumerals, MAX_LONG_NUMERALS));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The offset after the string whose first character is at `at`.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at) {
        at += match byte {
            b'"' => return at + 1,
            b'\\' => 2,
            _ => 1,
        };
    }
    bytes.len()
}

/// The numeral at `offset` exceeds a bound.
fn limit_error(text: &str, offset: usize, excess: ExceededJsonLimit, limit: usize) -> JsonError {
    let before = &text[..offset];
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let column = offset - before.rfind('\n').map_or(0, |newline| newline + 1) + 1;
    JsonError::TooComplex { line, column, excess, limit }
}

/// The value of a decimal numeral: its sign, its digits without leading and trailing zeros, and the power of ten of its
/// last digit. Zero has no digits, and its sign has no meaning.
struct Decimal<'a> {
    is_negative: bool,
    /// The digits before and after the decimal point.
    digits: [&'a str; 2],
    power: i64,
}

impl<'a> Decimal<'a> {
    /// Parses a numeral; `None` for exponents that no double has.
    fn parse(text: &'a str) -> Option<Self> {
        let (is_negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (digits, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let fraction = fraction.trim_end_matches('0');
        let significant = whole.trim_start_matches('0');
        let [whole, fraction] = match (significant, fraction) {
            ("", "") => return Some(Self { is_negative: false, digits: ["", ""], power: 0 }),
            ("", fraction) => ["", fraction],
            (whole, "") => [whole.trim_end_matches('0'), ""],
            both => both.into(),
        };
        let behind = i64::try_from(fraction.len()).ok()?;
        let trailing = if fraction.is_empty() { i64::try_from(significant.len() - whole.len()).ok()? } else { 0 };
        let power = power.parse::<i64>().ok()?.checked_sub(behind)?.checked_add(trailing)?;
        let fraction = if whole.is_empty() { fraction.trim_start_matches('0') } else { fraction };
        Some(Self { is_negative, digits: [whole, fraction], power })
    }

    fn digits(&self) -> usize {
        self.digits.iter().map(|digits| digits.len()).sum()
    }

    fn equals_value_of(&self, other: &Self) -> bool {
        let [one, another] = [self, other].map(|decimal| decimal.digits.into_iter().flat_map(str::bytes));
        (self.is_negative, self.power) == (other.is_negative, other.power) && one.eq(another)
    }
}

impl fmt::Display for Decimal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [whole, fraction] = self.digits;
        let (sign, zero) = (if self.is_negative { "-" } else { "" }, if self.digits() == 0 { "0" } else { "" });
        write!(f, "{sign}{zero}{whole}{fraction}e{}", self.power)
    }
}

#[cfg(test)]
mod tests {
    use proptest::num::f64::{NEGATIVE, NORMAL, POSITIVE, SUBNORMAL};

    use super::*;

    #[test]
    fn a_number_is_exact_where_its_double_states_it() {
        for exact in [
            "0",
            "-0",
            "-0.0e7",
            "1",
            "-1.50",
            "1e21",
            "1E+23",
            "1e-7",
            "100e-2",
            "0.1",
            "5e-324",
            "0.010",
            "10.50",
            "1000",
            "1000.0",
            "0.00100e3",
            "1200e-2",
            "0e400",
        ] {
            assert!(is_exact(exact), "{exact}");
        }
        for other in ["9007199254740993", "12345678901234567890", "0.1000000000000000000001", "1e400", "1e-400", "x"] {
            assert!(!is_exact(other), "{other}");
        }
    }

    #[test]
    fn numerals_of_a_document_are_bounded() {
        let excess = |text: &str| match check_numerals(text) {
            Err(JsonError::TooComplex { line, column, excess, .. }) => Some((line, column, excess)),
            _ => None,
        };
        let list = |numeral: &str, count: usize| format!("[\n{}]", vec![numeral; count].join(","));
        for long in [
            "8.43387743279489105278063e-294",
            "-123456789012345678",
            "0.000123456789012345678",
            "1e99999999999999999999",
        ] {
            assert_eq!(excess(&list(long, MAX_LONG_NUMERALS)), None, "{long}");
            let (line, _, excess) = excess(&list(long, MAX_LONG_NUMERALS + 1)).expect(long);
            assert_eq!((line, excess), (2, ExceededJsonLimit::LongNumerals), "{long}");
        }
        let zeros = "0".repeat(60);
        for short in [format!("1.3{zeros}"), format!("0.{zeros}1"), format!("-7{zeros}"), format!("0.{zeros}")] {
            assert_eq!(excess(&list(&short, 2 * MAX_LONG_NUMERALS)), None, "{short}");
        }
        let digits = "1".repeat(MAX_NUMERAL_BYTES);
        assert_eq!(excess(&format!("[{digits}]")), None);
        let too_long = Some((1, 2, ExceededJsonLimit::NumeralBytes));
        assert_eq!(excess(&format!("[{digits}1]")), too_long);
        assert_eq!(excess(&format!("[\"{digits}1\\\"{digits}1\", {}]", f64::MIN_POSITIVE / 4.0)), None);
    }

    #[test]
    fn a_long_numeral_has_no_exact_double() {
        // The exact midpoint of two doubles, a value next to it, and the full expansion of a double whose printed form
        // has fewer digits.
        for long in
            ["9007199254740993.0000000000000000001", "1.00000000000000011102230246251565404", "1180591620717411303424"]
        {
            assert_eq!(exact_double(long), None, "{long}");
        }
        for (numeral, value) in [("4.9e-324", None), ("5e-324", Some(5e-324)), ("1e309", None), ("-0.0", Some(0.0))] {
            assert_eq!(exact_double(numeral), value, "{numeral}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_double_is_exact_however_it_is_written(value in POSITIVE | NEGATIVE | NORMAL | SUBNORMAL, zeros in 0..4_usize) {
            let (plain, zeros) = (format!("{value}"), "0".repeat(zeros));
            // Two shortest numerals can be equally near. ECMAScript prints the even one, the standard library the
            // other.
            let printed = serde_json::to_string(&value).expect("it is finite");
            let [printed, stated] = [&printed, &plain].map(|numeral| Decimal::parse(numeral).expect("a numeral"));
            proptest::prop_assume!(stated.equals_value_of(&printed));
            let point = if plain.contains('.') { "" } else { "." };
            let longer = format!("{plain}{point}0{zeros}");
            for text in [plain, format!("{value:e}"), longer.clone(), format!("{longer}e{zeros}0")] {
                proptest::prop_assert!(is_exact(&text), "{}", text);
            }
            let other = format!("{longer}1");
            proptest::prop_assert!(!is_exact(&other) || other.parse() != Ok(value), "{}", other);
        }
    }
}
