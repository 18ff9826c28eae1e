//! ISO 8601 timestamps, a superset of RFC 3339: complete dates (calendar, ordinal, week), alone or with a time of day
//! and a zone. A timestamp is entirely in the basic or entirely in the extended form.

use jiff::civil::{Date, ISOWeekDate, Weekday};

/// Whether `text` is an ISO 8601 date, or a date and time.
pub(super) fn is_iso_8601(text: &str) -> bool {
    let (date, time) = text.split_once('T').map_or((text, None), |(date, time)| (date, Some(time)));
    let form = if date.contains('-') { Iso8601SeparatorStyle::Extended } else { Iso8601SeparatorStyle::Basic };
    is_date(date, form) && time.is_none_or(|time| is_time(time, form))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Iso8601SeparatorStyle {
    Basic,
    Extended,
}

fn is_date(text: &str, form: Iso8601SeparatorStyle) -> bool {
    let Some((year, rest)) = text.split_at_checked(4) else { return false };
    let rest = match form {
        Iso8601SeparatorStyle::Extended => rest.strip_prefix('-'),
        Iso8601SeparatorStyle::Basic => Some(rest),
    };
    let (Some(year), Some(rest)) = (parse_fixed_digits(year, 4).and_then(|year| i16::try_from(year).ok()), rest) else {
        return false;
    };
    if let Some(week) = rest.strip_prefix('W') {
        return parse_numbers(week, form, '-', &[2, 1]).is_some_and(|parts| is_week_date(year, &parts));
    }
    if rest.len() == 3 {
        let days = Date::new(year, 1, 1).map_or(0, |first| i64::from(first.days_in_year()));
        return parse_fixed_digits(rest, 3).is_some_and(|day| (1..=days).contains(&day));
    }
    parse_numbers(rest, form, '-', &[2, 2])
        .is_some_and(|parts| Date::new(year, saturate_to_i8(parts[0]), saturate_to_i8(parts[1])).is_ok())
}

fn is_week_date(year: i16, parts: &[i64]) -> bool {
    let day = Weekday::from_monday_one_offset(saturate_to_i8(parts[1]));
    day.is_ok_and(|day| ISOWeekDate::new(year, saturate_to_i8(parts[0]), day).is_ok())
}

fn is_time(text: &str, form: Iso8601SeparatorStyle) -> bool {
    let end = text.find(['Z', '+', '-']).unwrap_or(text.len());
    let (local, zone) = text.split_at(end);
    let (clock, fraction) = match local.split_once(['.', ',']) {
        Some((clock, fraction)) => (clock, Some(fraction)),
        None => (local, None),
    };
    let is_fraction = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let of = |lengths: &[usize]| parse_numbers(clock, form, ':', lengths);
    let Some(parts) = of(&[2, 2, 2]).or_else(|| of(&[2, 2])).or_else(|| of(&[2])) else { return false };
    let part = |at: usize| parts.get(at).copied().unwrap_or(0);
    let is_nought = fraction.is_none_or(|digits| digits.bytes().all(|b| b == b'0'));
    let fits = match (part(0), part(1), part(2)) {
        (0..=23, 0..=59, 0..=60) => true,
        // 24:00:00 is the end of the day.
        (24, 0, 0) => is_nought,
        _ => false,
    };
    fits && fraction.is_none_or(is_fraction) && is_time_zone(zone, form)
}

fn is_time_zone(text: &str, form: Iso8601SeparatorStyle) -> bool {
    let Some(offset) = text.strip_prefix(['+', '-']) else { return text.is_empty() || text == "Z" };
    let parts = parse_numbers(offset, form, ':', &[2, 2]).or_else(|| parse_numbers(offset, form, ':', &[2]));
    parts.is_some_and(|parts| parts[0] <= 23 && parts.get(1).is_none_or(|minutes| *minutes <= 59))
}

/// Parses the numbers of a text, with the given numbers of digits. In the extended form, separators are between them.
fn parse_numbers(text: &str, form: Iso8601SeparatorStyle, sign: char, lengths: &[usize]) -> Option<Vec<i64>> {
    let mut rest = text;
    let mut numbers = Vec::new();
    for (at, length) in lengths.iter().enumerate() {
        if at > 0 && form == Iso8601SeparatorStyle::Extended {
            rest = rest.strip_prefix(sign)?;
        }
        let (digits, after) = rest.split_at_checked(*length)?;
        numbers.push(parse_fixed_digits(digits, *length)?);
        rest = after;
    }
    rest.is_empty().then_some(numbers)
}

fn parse_fixed_digits(digits: &str, length: usize) -> Option<i64> {
    let are_digits = digits.len() == length && digits.bytes().all(|b| b.is_ascii_digit());
    digits.parse().ok().filter(|_| are_digits)
}

/// A number of at most two digits.
fn saturate_to_i8(number: i64) -> i8 {
    i8::try_from(number).unwrap_or(i8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_iso_8601() {
        for text in [
            "2026-01-28T12:00:00Z",
            "2026-01-28T12:00:00.5+01:00",
            "2026-01-28T12:00:00,5-03",
            "2026-01-28T12:00:00.123456789012Z",
            "2026-01-28T12:00",
            "2026-01-28T12",
            "2026-01-28",
            "2026-01-28T24:00:00Z",
            "2016-12-31T23:59:60Z",
            "20260128T120000Z",
            "20260128T1200+0100",
            "2026-028",
            "2024-366",
            "2026028T12",
            "2026-W05-3",
            "2026-W05-3T12:00Z",
            "2026W053",
        ] {
            assert!(is_iso_8601(text), "{text}");
        }
        for text in [
            "",
            "T",
            "yesterday",
            "28.01.2026",
            "01/28/2026",
            "2026-02-30",
            "2026-366",
            "2026-000",
            "2026-W54-1",
            "2026-W05-8",
            "2026-01-28 12:00:00Z",
            "2026-01-28t12:00:00z",
            "2026-01-28T12:00:00[Europe/Berlin]",
            "2026-01-28T25:00:00Z",
            "2026-01-28T24:00:01Z",
            "2026-01-28T24:00:00.1Z",
            "2026-01-28T12:60:00Z",
            "2026-01-28T12:00:61Z",
            "2026-01-28T12:00:00.Z",
            "2026-01-28T12:00:00+25:00",
            "2026-01-28T12:00:00+01:00:00",
            "2026-01-28T12:00:00+0100",
            "20260128T12:00:00Z",
            "2026-0128",
            "2026-01-28T",
            "2026-01-28T12:00:00ZZ",
            "Wed, 28 Jan 2026 12:00:00 GMT",
            "1769601600",
            "２０２６-01-28",
        ] {
            assert!(!is_iso_8601(text), "{text}");
        }
    }
}
