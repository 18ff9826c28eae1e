//! Whether a cache served a document past its freshness (RFC 9111, 4.2): by `Age`, `Cache-Control`, `Expires` and
//! `Date`.

use std::time::{Duration, SystemTime};

use clresolve_resolver::fetch::https::CachingHeaders;
use jiff::Timestamp;

/// Maximum clock difference between a host and this resolver. A `Date` within it gives a response no age.
const SKEW: Duration = Duration::from_secs(60);

/// Whether a response that was received at `now` has reached the end of its freshness.
///
/// The age is the larger of `Age` and the time since `Date`. A response of age 0 was just sent or revalidated by the
/// host, and is never stale. The lifetime is `max-age` or, without one, the time from `Date` to `Expires`. An `Expires`
/// that is not a date, such as `0`, is in the past. A response without any lifetime is not stale.
pub(super) fn is_response_stale(caching: &CachingHeaders, now: Timestamp) -> bool {
    let age = response_age(caching, now);
    freshness_lifetime(caching, now).is_some_and(|lifetime| !age.is_zero() && age >= lifetime)
}

fn response_age(caching: &CachingHeaders, now: Timestamp) -> Duration {
    let stated = caching.age.as_deref().and_then(parse_delta_seconds).unwrap_or_default();
    let apparent =
        parse_http_date(caching.date.as_deref()).and_then(|date| SystemTime::from(now).duration_since(date).ok());
    stated.max(apparent.filter(|apparent| *apparent > SKEW).unwrap_or_default())
}

fn freshness_lifetime(caching: &CachingHeaders, now: Timestamp) -> Option<Duration> {
    let control = caching.control.as_deref().unwrap_or_default();
    let max_age = control.split(',').find_map(|directive| {
        let (name, value) = directive.split_once('=')?;
        name.trim().eq_ignore_ascii_case("max-age").then(|| parse_delta_seconds(value))?
    });
    max_age.or_else(|| {
        let expires = caching.expires.as_deref()?;
        let from = parse_http_date(caching.date.as_deref()).unwrap_or_else(|| now.into());
        let until = parse_http_date(Some(expires)).and_then(|until| until.duration_since(from).ok());
        Some(until.unwrap_or_default())
    })
}

fn parse_delta_seconds(text: &str) -> Option<Duration> {
    text.trim().trim_matches('"').parse().ok().map(Duration::from_secs)
}

/// Parses a date in any of HTTP's three formats (RFC 9110, section 5.6.7).
fn parse_http_date(text: Option<&str>) -> Option<SystemTime> {
    httpdate::parse_http_date(text?.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-01-01T12:00:00Z";

    fn stale(age: &str, control: &str, expires: &str, date: &str) -> bool {
        let header = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let caching =
            CachingHeaders { age: header(age), control: header(control), expires: header(expires), date: header(date) };
        is_response_stale(&caching, NOW.parse().expect("a time"))
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
            // `Expires` is relative to `Date`, and only counts without `max-age`.
            ("3600", "", eleven, ten, true),
            ("3599", "", "Thu, 01 Jan 2026 13:00:00 GMT", noon, false),
            ("3600", "", "Thu, 01 Jan 2026 13:00:00 GMT", noon, true),
            ("5", "max-age=10", eleven, noon, false),
            ("5", "", "0", "", true),
            ("5", "", eleven, "", true),
            // Without `Age`, `Date` determines the age.
            ("", "max-age=3600", "", eleven, true),
            ("", "max-age=3601", "", eleven, false),
            ("", "", noon, eleven, true),
            ("", "max-age=0", "", "Thu, 01 Jan 2026 11:59:01 GMT", false),
            ("", "max-age=0", "", "Thu, 01 Jan 2026 11:58:59 GMT", true),
            ("", "", "-1", noon, false),
            // The obsolete date formats.
            ("", "max-age=60", "", "Thursday, 01-Jan-26 11:00:00 GMT", true),
            ("", "max-age=60", "", "Thu Jan  1 11:00:00 2026", true),
        ] {
            assert_eq!(stale(age, control, expires, date), expected, "{age} {control} {expires} {date}");
        }
    }
}
