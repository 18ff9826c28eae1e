//! Whether a cache served a document past its freshness (RFC 9111, 4.2): by `Age`, `Cache-Control`, `Expires` and `Date`.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;

use crate::fetch::https::Caching;

/// How far the clocks of a host and of this resolver may differ. A younger answer has no age by its `Date`.
const SKEW: Duration = Duration::from_secs(60);

/// Whether an answer that was received at `now` is as old as it may be, or older.
///
/// Its age is that of `Age` or, where a cache sends none, the time since `Date`. An answer of age 0 comes from the host
/// or was confirmed by it just now, whatever its lifetime. Its lifetime is `max-age` or, without one, the time from
/// `Date` to `Expires`; an `Expires` that is no date, such as `0`, is in the past. Where either is missing, nothing is
/// known.
pub(super) fn is_stale(caching: &Caching, now: Timestamp) -> bool {
    let age = age(caching, now);
    lifetime(caching, now).is_some_and(|lifetime| !age.is_zero() && age >= lifetime)
}

fn age(caching: &Caching, now: Timestamp) -> Duration {
    let stated = caching.age.as_deref().and_then(seconds).unwrap_or_default();
    let apparent = date(caching.date.as_deref()).and_then(|date| SystemTime::from(now).duration_since(date).ok());
    stated.max(apparent.filter(|apparent| *apparent > SKEW).unwrap_or_default())
}

fn lifetime(caching: &Caching, now: Timestamp) -> Option<Duration> {
    let control = caching.control.as_deref().unwrap_or_default();
    let max_age = control.split(',').find_map(|directive| {
        let (name, value) = directive.split_once('=')?;
        name.trim().eq_ignore_ascii_case("max-age").then(|| seconds(value))?
    });
    max_age.or_else(|| {
        let expires = caching.expires.as_deref()?;
        let from = date(caching.date.as_deref()).unwrap_or_else(|| now.into());
        let until = date(Some(expires)).and_then(|until| until.duration_since(from).ok());
        Some(until.unwrap_or_default())
    })
}

fn seconds(text: &str) -> Option<Duration> {
    text.trim().trim_matches('"').parse().ok().map(Duration::from_secs)
}

/// A date in any of the three forms of HTTP (RFC 9110, 5.6.7).
fn date(text: Option<&str>) -> Option<SystemTime> {
    httpdate::parse_http_date(text?.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-01-01T12:00:00Z";

    fn stale(age: &str, control: &str, expires: &str, date: &str) -> bool {
        let header = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let caching =
            Caching { age: header(age), control: header(control), expires: header(expires), date: header(date) };
        is_stale(&caching, NOW.parse().expect("a time"))
    }

    #[test]
    fn age_and_lifetime_are_compared() {
        let (noon, eleven, ten) =
            ("Thu, 01 Jan 2026 12:00:00 GMT", "Thu, 01 Jan 2026 11:00:00 GMT", "Thu, 01 Jan 2026 10:00:00 GMT");
        for (age, control, expires, date, expected) in [
            ("", "", "", "", false),
            ("300", "max-age=300", "", "", true),
            ("299", "public, Max-Age=\"300\"", "", "", false),
            ("0", "max-age=0", "", "", false),
            ("x", "max-age=0", "", "", false),
            ("300", "max-age=x", "", "", false),
            // Expires counts from Date, and where there is no max-age.
            ("3600", "", eleven, ten, true),
            ("3599", "", "Thu, 01 Jan 2026 13:00:00 GMT", noon, false),
            ("3600", "", "Thu, 01 Jan 2026 13:00:00 GMT", noon, true),
            ("5", "max-age=10", eleven, noon, false),
            ("5", "", "0", "", true),
            ("5", "", eleven, "", true),
            // Date gives the age where a cache sends none.
            ("", "max-age=3600", "", eleven, true),
            ("", "max-age=3601", "", eleven, false),
            ("", "", noon, eleven, true),
            ("", "max-age=0", "", "Thu, 01 Jan 2026 11:59:01 GMT", false),
            ("", "max-age=0", "", "Thu, 01 Jan 2026 11:58:59 GMT", true),
            ("", "", "-1", noon, false),
            // The older forms of a date.
            ("", "max-age=60", "", "Thursday, 01-Jan-26 11:00:00 GMT", true),
            ("", "max-age=60", "", "Thu Jan  1 11:00:00 2026", true),
        ] {
            assert_eq!(stale(age, control, expires, date), expected, "{age} {control} {expires} {date}");
        }
    }
}
