//! Content negotiation with `Accept` (RFC 9110, 12.5.1) between a verdict, its signed form, and the events of its
//! resolution.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;
use clresolve_bundle::signed::MEDIA_TYPE;

/// Server-sent events (HTML, 9.2), as requested by a browser's `EventSource`.
pub(super) const EVENTS: &str = "text/event-stream";

/// An unsigned verdict, and the default if the request has no `Accept`.
const JSON: &str = "application/json";

/// Whether `Accept` prefers events to the verdict as JSON or signed. The `q` of events is higher, or it is equal and
/// the other media type is matched less exactly.
pub(super) fn prefers_events(headers: &HeaderMap) -> bool {
    let [plain, signed, events] = accept_media_matches(headers);
    is_explicit(events) && events > plain && events > signed
}

/// Maximum number of media ranges that are evaluated. Browsers send ten.
const MAX_RANGES: usize = 32;

/// The form in which a request wants a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestedVerdictForm {
    /// JSON. Also the form for a request that accepts neither.
    Plain,
    Signed,
    SignedOrPlain,
}

/// The exactness of a range that contains the full media type.
const BY_NAME: u8 = 3;

impl RequestedVerdictForm {
    /// The form that `Accept` asks for. The signed form wins if its `q` is higher, or if the `q` values are equal and
    /// its range matches more exactly.
    pub(super) fn from_accept(headers: &HeaderMap) -> Self {
        let [plain, signed, _] = accept_media_matches(headers);
        if !is_explicit(signed) || plain >= signed {
            return Self::Plain;
        }
        if plain.0 == 0 { Self::Signed } else { Self::SignedOrPlain }
    }
}

/// Whether a form is listed explicitly and its `q` is not 0.
const fn is_explicit((q, exactness): (u16, u8)) -> bool {
    q > 0 && exactness == BY_NAME
}

/// How well `Accept` matches JSON, the signed form and events, each by its most specific matching range: `q` in
/// thousandths, and how exactly the range matches (0 for no match).
fn accept_media_matches(headers: &HeaderMap) -> [(u16, u8); 3] {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut fits = [(0, 0); 3];
    for range in values.flat_map(|value| value.split(',')).take(MAX_RANGES) {
        let mut parts = range.split(';').map(str::trim);
        let (range, quality) = (parts.next().unwrap_or_default(), parts.find_map(quality_thousandths).unwrap_or(1000));
        for (fit, media) in fits.iter_mut().zip([JSON, MEDIA_TYPE, EVENTS]) {
            let exactness = media_range_specificity(range, media);
            if exactness > fit.1 {
                *fit = (quality, exactness);
            }
        }
    }
    fits
}

/// How exactly a range matches `media`.
fn media_range_specificity(range: &str, media: &str) -> u8 {
    let kind = media.split('/').next().unwrap_or_default();
    match range {
        "*/*" => 1,
        _ if range.strip_suffix("/*").is_some_and(|range| range.eq_ignore_ascii_case(kind)) => 2,
        _ if range.eq_ignore_ascii_case(media) => BY_NAME,
        _ => 0,
    }
}

/// The `q=` value of a parameter in thousandths. Anything that is not a number between 0 and 1 counts as 0.
fn quality_thousandths(parameter: &str) -> Option<u16> {
    let (key, value) = parameter.split_once('=')?;
    if !key.trim().eq_ignore_ascii_case("q") {
        return None;
    }
    let value = value.trim();
    let (whole, decimals) = value.split_once('.').unwrap_or((value, ""));
    let good = decimals.len() <= 3 && decimals.bytes().all(|byte| byte.is_ascii_digit());
    let thousandths = format!("{decimals:0<3}").parse::<u16>().ok().filter(|_| good);
    Some(match (whole, thousandths) {
        ("0", Some(thousandths)) => thousandths,
        ("1", Some(0)) => 1000,
        _ => 0,
    })
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn the_signed_form_is_for_clients_that_name_it() {
        for (accept, form) in [
            ("", RequestedVerdictForm::Plain),
            ("*/*", RequestedVerdictForm::Plain),
            ("text/html, application/*", RequestedVerdictForm::Plain),
            ("application/json", RequestedVerdictForm::Plain),
            ("application/json, application/jose", RequestedVerdictForm::Plain),
            ("application/jose", RequestedVerdictForm::Signed),
            ("Application/JOSE ; q=0.3", RequestedVerdictForm::Signed),
            ("application/jose, */*;q=0.1", RequestedVerdictForm::SignedOrPlain),
            ("application/jose, */*", RequestedVerdictForm::SignedOrPlain),
            ("application/jose, application/json;q=0.9", RequestedVerdictForm::SignedOrPlain),
            ("application/jose;q=0.8, application/json;q=0.9", RequestedVerdictForm::Plain),
            ("application/jose, */*;q=0.5, application/json;q=0", RequestedVerdictForm::Signed),
            ("application/jose;q=0, */*", RequestedVerdictForm::Plain),
            ("application/jose;q=2", RequestedVerdictForm::Plain),
            ("application/jose;q=x", RequestedVerdictForm::Plain),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(accept));
            assert_eq!(RequestedVerdictForm::from_accept(&headers), form, "{accept}");
        }
        assert_eq!(RequestedVerdictForm::from_accept(&HeaderMap::new()), RequestedVerdictForm::Plain);
    }

    #[test]
    fn events_are_for_clients_that_name_them() {
        for (accept, wanted) in [
            ("text/event-stream", true),
            ("Text/Event-Stream;q=0.1", true),
            ("text/event-stream, */*", true),
            ("application/*, text/event-stream", true),
            ("application/json;q=0.9, text/event-stream", true),
            ("application/jose;q=0.9, text/event-stream", true),
            ("application/json;q=0, text/event-stream;q=0.1", true),
            // Its `q` is at most that of JSON.
            ("application/json, text/event-stream", false),
            ("text/event-stream, application/json", false),
            ("application/json, text/event-stream;q=0.1", false),
            ("text/event-stream;q=0.5, */*", false),
            ("application/jose, text/event-stream", false),
            ("text/event-stream;q=0", false),
            ("*/*", false),
            ("text/*, */*;q=0.1", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(accept));
            assert_eq!(prefers_events(&headers), wanted, "{accept}");
        }
    }

    #[test]
    fn several_lines_are_one_list() {
        let mut headers = HeaderMap::new();
        headers.append(ACCEPT, HeaderValue::from_static("application/json;q=0.5"));
        headers.append(ACCEPT, HeaderValue::from_static("application/jose"));
        assert_eq!(RequestedVerdictForm::from_accept(&headers), RequestedVerdictForm::SignedOrPlain);
    }
}
