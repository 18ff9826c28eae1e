//! Numbers in a JSON text: which of them are the same to all readers.

/// Whether the double nearest to a numeral is the number that it states. Readers in ECMAScript have doubles alone, so
/// they read another number where it is not.
pub fn is_exact(numeral: &str) -> bool {
    let value = numeral.parse::<f64>().ok().filter(|value| value.is_finite());
    let read_as = value.map(|value| format!("{value:e}"));
    let read_as = read_as.as_deref().and_then(Decimal::read);
    read_as.zip(Decimal::read(numeral)).is_some_and(|(read_as, stated)| read_as.states_the_same_as(&stated))
}

/// What a decimal numeral states: its sign, its digits without zeros at either end, and the power of ten of the last of
/// them. Zero has no digits, and its sign states nothing.
struct Decimal<'a> {
    is_negative: bool,
    /// The digits, as they stand before and behind the point.
    digits: [&'a str; 2],
    power: i64,
}

impl<'a> Decimal<'a> {
    /// `None` for powers that no double has.
    fn read(text: &'a str) -> Option<Self> {
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

    fn states_the_same_as(&self, other: &Self) -> bool {
        let [one, another] = [self, other].map(|decimal| decimal.digits.into_iter().flat_map(str::bytes));
        (self.is_negative, self.power) == (other.is_negative, other.power) && one.eq(another)
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

    proptest::proptest! {
        #[test]
        fn a_double_is_exact_however_it_is_written(value in POSITIVE | NEGATIVE | NORMAL | SUBNORMAL, zeros in 0..4_usize) {
            let (plain, zeros) = (format!("{value}"), "0".repeat(zeros));
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
