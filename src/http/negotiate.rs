//! `Accept` (RFC 9110, 12.5.1), between a verdict, its signed form, and the events of its walk.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

use crate::sign::MEDIA_TYPE;

/// Events (HTML, 9.2), as a browser's `EventSource` asks for them.
pub(super) const EVENTS: &str = "text/event-stream";

/// A verdict as it is, and the form of a request that names none.
const JSON: &str = "application/json";

/// Whether `Accept` names events, and wants them more than the verdict as JSON or signed: their `q` is higher, or as high
/// and the other form is not named as exactly.
pub(super) fn wants_events(headers: &HeaderMap) -> bool {
    let events = fit(headers, EVENTS);
    is_named(events) && [JSON, MEDIA_TYPE].iter().all(|other| events > fit(headers, other))
}

/// Most media ranges that are read; browsers send ten.
const MAX_RANGES: usize = 32;

/// The form in which a request wants a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As JSON. Also the form for a request that asks for neither.
    Plain,
    /// Signed, and nothing else will do.
    Signed,
    /// Signed rather than as JSON.
    SignedOrPlain,
}

/// How well a form fits: `q` in thousandths, and how exactly it was named (0 not at all).
type Fit = (u16, u8);

/// A form that was named by its own name.
const BY_NAME: u8 = 3;

impl Form {
    /// What `Accept` asks for. The signed form wins where its `q` is higher, or where it is as high and the form is
    /// named more exactly.
    pub(super) fn asked(headers: &HeaderMap) -> Self {
        let (plain, signed) = (fit(headers, JSON), fit(headers, MEDIA_TYPE));
        if !is_named(signed) || plain >= signed {
            return Self::Plain;
        }
        if plain.0 == 0 { Self::Signed } else { Self::SignedOrPlain }
    }
}

/// Whether a form is named and not refused.
const fn is_named((q, exactness): Fit) -> bool {
    q > 0 && exactness == BY_NAME
}

/// How well `media` fits: by the range of `Accept` that matches it most exactly.
fn fit(headers: &HeaderMap, media: &str) -> Fit {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut fit = (0, 0);
    for range in values.flat_map(|value| value.split(',')).take(MAX_RANGES) {
        let mut parts = range.split(';').map(str::trim);
        let exactness = exactness(parts.next().unwrap_or_default(), media);
        if exactness > fit.1 {
            fit = (parts.find_map(quality).unwrap_or(1000), exactness);
        }
    }
    fit
}

/// How exactly a range names `media`.
fn exactness(range: &str, media: &str) -> u8 {
    let kind = media.split('/').next().unwrap_or_default();
    match range {
        "*/*" => 1,
        _ if range.strip_suffix("/*").is_some_and(|range| range.eq_ignore_ascii_case(kind)) => 2,
        _ if range.eq_ignore_ascii_case(media) => BY_NAME,
        _ => 0,
    }
}

/// `q=` of a parameter, in thousandths; what is no number between 0 and 1 counts as 0.
fn quality(parameter: &str) -> Option<u16> {
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
            ("", Form::Plain),
            ("*/*", Form::Plain),
            ("text/html, application/*", Form::Plain),
            ("application/json", Form::Plain),
            ("application/json, application/jose", Form::Plain),
            ("application/jose", Form::Signed),
            ("Application/JOSE ; q=0.3", Form::Signed),
            ("application/jose, */*;q=0.1", Form::SignedOrPlain),
            ("application/jose, */*", Form::SignedOrPlain),
            ("application/jose, application/json;q=0.9", Form::SignedOrPlain),
            ("application/jose;q=0.8, application/json;q=0.9", Form::Plain),
            ("application/jose, */*;q=0.5, application/json;q=0", Form::Signed),
            ("application/jose;q=0, */*", Form::Plain),
            ("application/jose;q=2", Form::Plain),
            ("application/jose;q=x", Form::Plain),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(accept));
            assert_eq!(Form::asked(&headers), form, "{accept}");
        }
        assert_eq!(Form::asked(&HeaderMap::new()), Form::Plain);
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
            // As it wants JSON, or less.
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
            assert_eq!(wants_events(&headers), wanted, "{accept}");
        }
    }

    #[test]
    fn several_lines_are_one_list() {
        let mut headers = HeaderMap::new();
        headers.append(ACCEPT, HeaderValue::from_static("application/json;q=0.5"));
        headers.append(ACCEPT, HeaderValue::from_static("application/jose"));
        assert_eq!(Form::asked(&headers), Form::SignedOrPlain);
    }
}
