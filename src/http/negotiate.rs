//! `Accept` (RFC 9110, 12.5.1), between a verdict and its signed form.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

use crate::sign::MEDIA_TYPE;

/// Events (HTML, 9.2), as a browser's `EventSource` asks for them.
pub(super) const EVENTS: &str = "text/event-stream";

/// Whether `Accept` names events and does not refuse them.
pub(super) fn wants_events(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).take(MAX_RANGES).any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let is_named = parts.next().is_some_and(|media| media.eq_ignore_ascii_case(EVENTS));
        is_named && parts.find_map(quality) != Some(0)
    })
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

/// How well a form fits: `q` in thousandths, and how exactly it was named (0 not at all, 3 by its own name).
type Fit = (u16, u8);

impl Form {
    /// What `Accept` asks for. The signed form wins where its `q` is higher, or where it is as high and the form is
    /// named more exactly.
    pub(super) fn asked(headers: &HeaderMap) -> Self {
        let (mut plain, mut signed): (Fit, Fit) = ((0, 0), (0, 0));
        let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        for range in values.flat_map(|value| value.split(',')).take(MAX_RANGES) {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default();
            let q = parts.find_map(quality).unwrap_or(1000);
            consider(&mut plain, media, "application/json", q);
            consider(&mut signed, media, MEDIA_TYPE, q);
        }
        if signed.0 == 0 || signed.1 < 3 || (plain >= signed) {
            return Self::Plain;
        }
        if plain.0 == 0 { Self::Signed } else { Self::SignedOrPlain }
    }
}

/// Takes a range into account if it matches more exactly than those before it.
fn consider(fit: &mut Fit, range: &str, media: &str, q: u16) {
    let exactness = match range {
        "*/*" => 1,
        _ if range.eq_ignore_ascii_case("application/*") => 2,
        _ if range.eq_ignore_ascii_case(media) => 3,
        _ => return,
    };
    if exactness > fit.1 {
        *fit = (q, exactness);
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
            ("application/json, Text/Event-Stream;q=0.1", true),
            ("text/event-stream;q=0", false),
            ("text/*, */*", false),
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
