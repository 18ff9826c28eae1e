//! Numbers in a JSON text: which of them every parser reads alike, and how many expensive ones a document may contain.

use std::fmt;

/// Maximum length of a numeral, in bytes. A double written without an exponent has up to 343.
pub const MAX_NUMERAL_BYTES: usize = 400;

/// The number of significant digits that distinguishes any two doubles. For a longer numeral, finding the nearest
/// double is expensive if the numeral is close to the midpoint of two doubles.
pub const DOUBLE_DIGITS: usize = 17;

/// Maximum number of numerals with more than [`DOUBLE_DIGITS`] significant digits in one document.
pub const MAX_LONG_NUMERALS: usize = 1000;

/// Whether the double nearest to a numeral is exactly the number that the numeral states. If it is not, ECMAScript
/// parsers, which only have doubles, read a different number.
pub fn is_exact_double(numeral: &str) -> bool {
    exact_double(numeral).is_some()
}

/// The double whose shortest printed form equals the number that a numeral states; `None` if there is none.
pub fn exact_double(numeral: &str) -> Option<f64> {
    let stated = Decimal::parse(numeral)?;
    // The shortest form of a double never has more digits. Up to this many digits, the nearest double is found without
    // long division.
    if stated.digit_count() > DOUBLE_DIGITS {
        return None;
    }
    let value: f64 = stated.to_string().parse().ok().filter(|value: &f64| value.is_finite())?;
    // `serde_json` prints every double in the same few steps; the formatter of the standard library does not.
    let printed = serde_json::to_string(&value).ok()?;
    Decimal::parse(&printed)?.equals_value_of(&stated).then_some(value)
}

/// Whether a numeral has more than [`DOUBLE_DIGITS`] significant digits, or an exponent that no double has.
pub fn is_long_numeral(numeral: &str) -> bool {
    numeral.len() > DOUBLE_DIGITS && Decimal::parse(numeral).is_none_or(|decimal| decimal.digit_count() > DOUBLE_DIGITS)
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

    fn digit_count(&self) -> usize {
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
        let (sign, zero) = (if self.is_negative { "-" } else { "" }, if self.digit_count() == 0 { "0" } else { "" });
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
            assert!(is_exact_double(exact), "{exact}");
        }
        for other in ["9007199254740993", "12345678901234567890", "0.1000000000000000000001", "1e400", "1e-400", "x"] {
            assert!(!is_exact_double(other), "{other}");
        }
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
                proptest::prop_assert!(is_exact_double(&text), "{}", text);
            }
            let other = format!("{longer}1");
            proptest::prop_assert!(!is_exact_double(&other) || other.parse() != Ok(value), "{}", other);
        }
    }
}
