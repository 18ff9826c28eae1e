//! Numbers in a JSON text: which of them are the same to all readers.

/// Whether the double nearest to a numeral is the number that it states. Readers in ECMAScript have doubles alone, so
/// they read another number where it is not.
pub fn is_exact(numeral: &str) -> bool {
    let value = numeral.parse::<f64>().ok().filter(|value| value.is_finite());
    value.is_some_and(|value| decimal(numeral) == decimal(&format!("{value:e}")))
}

/// What a decimal numeral states: its digits without zeros at either end, and the power of ten of the last of them. Zero
/// has no digits; its sign states nothing. `None` for powers that no double has.
fn decimal(text: &str) -> Option<(bool, String, i64)> {
    let (sign, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (digits, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    let significant = all.trim_end_matches('0');
    let trailing = i64::try_from(all.len() - significant.len()).ok()?;
    let significant = significant.trim_start_matches('0');
    if significant.is_empty() {
        return Some((false, String::new(), 0));
    }
    let power: i64 = power.parse().ok()?;
    let power = power.checked_sub(i64::try_from(fraction.len()).ok()?)?.checked_add(trailing)?;
    Some((sign, significant.to_owned(), power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_exact_where_its_double_states_it() {
        for exact in ["0", "-0", "-0.0e7", "1", "-1.50", "1e21", "1E+23", "1e-7", "100e-2", "0.1", "5e-324"] {
            assert!(is_exact(exact), "{exact}");
        }
        for other in ["9007199254740993", "12345678901234567890", "0.1000000000000000000001", "1e400", "1e-400", "x"] {
            assert!(!is_exact(other), "{other}");
        }
    }
}
