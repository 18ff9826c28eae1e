//! ISO 8601, as far as a timestamp needs it (AN-16): a day at least, of the calendar, of the year or of the week, alone
//! or with a time and its zone. Both styles, extended (`2026-01-28T12:00`) and basic (`20260128T1200`), but not mixed.

use jiff::civil::{Date, ISOWeekDate, Weekday};

/// How a text separates the parts of dates and times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Extended,
    Basic,
}

/// Whether `text` is a date, or a date and a time.
pub(super) fn is_iso_8601(text: &str) -> bool {
    let (day, time) = match text.split_once('T') {
        Some((day, time)) => (day, Some(time)),
        None => (text, None),
    };
    let Some(style) = style_of(day) else { return false };
    is_day(day, style) && time.is_none_or(|time| is_time(time, style))
}

/// The style of a date: a hyphen follows the year or does not.
fn style_of(day: &str) -> Option<Style> {
    Some(if day.get(4..)?.starts_with('-') { Style::Extended } else { Style::Basic })
}

fn is_day(day: &str, style: Style) -> bool {
    day_parts(day, style).is_some()
}

fn day_parts(day: &str, style: Style) -> Option<()> {
    let year = number(day.get(..4)?)?;
    let rest = day.get(4..)?;
    let rest = if style == Style::Extended { rest.strip_prefix('-')? } else { rest };
    if let Some(week) = rest.strip_prefix('W') {
        let (week, weekday) = halves(week, style)?;
        let weekday = Weekday::from_monday_one_offset(i8::try_from(digits(weekday, 1)?).ok()?).ok()?;
        return ISOWeekDate::new(year, i8::try_from(digits(week, 2)?).ok()?, weekday).ok().map(drop);
    }
    if let Some(of_year) = digits(rest, 3) {
        let first = Date::new(year, 1, 1).ok()?;
        return (1..=first.days_in_year()).contains(&of_year).then_some(());
    }
    let (month, of_month) = halves(rest, style)?;
    let part = |text| i8::try_from(digits(text, 2)?).ok();
    Date::new(year, part(month)?, part(of_month)?).ok().map(drop)
}

/// Two digits and what follows, without the hyphen between them.
fn halves(text: &str, style: Style) -> Option<(&str, &str)> {
    let (first, rest) = text.split_at_checked(2)?;
    Some((first, if style == Style::Extended { rest.strip_prefix('-')? } else { rest }))
}

fn is_time(text: &str, style: Style) -> bool {
    let (clock, zone) = match text.find(['Z', '+', '-']) {
        Some(at) => text.split_at(at),
        None => (text, "Z"),
    };
    is_clock(clock, style) && (zone == "Z" || is_offset(zone, style))
}

/// Hours, minutes and seconds, of which the last one present may have a fraction; 24:00 is the end of a day, and a
/// minute may have a leap second.
fn is_clock(text: &str, style: Style) -> bool {
    let (whole, fraction) = match text.split_once(['.', ',']) {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (text, None),
    };
    if fraction.is_some_and(|digits| number_text(digits).is_none()) {
        return false;
    }
    let none_beyond = fraction.is_none_or(|digits| digits.bytes().all(|b| b == b'0'));
    match parts(whole, style).as_deref() {
        Some([24, rest @ ..]) => rest.len() < 3 && rest.iter().all(|part| *part == 0) && none_beyond,
        Some([0..=23]) => true,
        Some([0..=23, 0..=59]) => true,
        Some([0..=23, 0..=59, 0..=60]) => true,
        _ => false,
    }
}

/// Hours, with or without minutes, before or after UTC.
fn is_offset(text: &str, style: Style) -> bool {
    let Some(text) = text.strip_prefix(['+', '-']) else { return false };
    matches!(parts(text, style).as_deref(), Some([0..=23] | [0..=23, 0..=59]))
}

/// Numbers of two digits each, at most three.
fn parts(text: &str, style: Style) -> Option<Vec<i16>> {
    let mut numbers = Vec::new();
    let mut rest = text;
    loop {
        let (part, further) = rest.split_at_checked(2)?;
        numbers.push(digits(part, 2)?);
        if further.is_empty() || numbers.len() > 3 {
            return Some(numbers);
        }
        rest = if style == Style::Extended { further.strip_prefix(':')? } else { further };
    }
}

/// The number that exactly `count` digits write.
fn digits(text: &str, count: usize) -> Option<i16> {
    (text.len() == count).then(|| number(text)).flatten()
}

fn number(text: &str) -> Option<i16> {
    number_text(text)?.parse().ok()
}

/// The text, where it has digits and nothing else.
fn number_text(text: &str) -> Option<&str> {
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_iso_8601() {
        for text in [
            "2026-01-28T12:00:00Z",
            "2026-01-28T12:00:00.5+01:00",
            "2026-01-28T12:00:00,5-01",
            "2026-01-28T12:00:00.123456789012Z",
            "2026-01-28T12:00",
            "2026-01-28T12",
            "2026-01-28T24:00:00Z",
            "2026-01-28T23:59:60Z",
            "2026-01-28",
            "2026-028",
            "2024-366",
            "2026028",
            "20260128T120000Z",
            "20260128T120000+0100",
            "2026-W05-3",
            "2026-W05-3T12:00Z",
            "2026W053T1200Z",
        ] {
            assert!(is_iso_8601(text), "{text}");
        }
    }

    #[test]
    fn other_texts_are_not() {
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
            "2026-W05",
            "2026-01",
            "2026-01-28T",
            "2026-01-28 12:00:00Z",
            "2026-01-28t12:00:00z",
            "2026-01-28T12:00:00[Europe/Berlin]",
            "2026-01-28T25:00:00Z",
            "2026-01-28T24:00:01Z",
            "2026-01-28T24:00:00.5Z",
            "2026-01-28T12:60Z",
            "2026-01-28T12:00:00.Z",
            "2026-01-28T12:00:00ZZ",
            "2026-01-28T12:00:00+25:00",
            "2026-01-28T12:00:00+01:00:00",
            "2026-01-28T12:00:00+0100",
            "20260128T12:00:00Z",
            "2026-01-28T120000Z",
            "2026-0128",
            "Wed, 28 Jan 2026 12:00:00 GMT",
            "1769601600",
            "ä026-01-28",
        ] {
            assert!(!is_iso_8601(text), "{text}");
        }
    }
}
