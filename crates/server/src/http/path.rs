//! The segments of a request's path.

use axum::http::Uri;
use percent_encoding::percent_decode_str;

/// Returns the segment with this number after the first two (`/v1/{route}`, `/admin/cache`), percent-decoded once.
/// Bytes that are not UTF-8 become U+FFFD, which no name contains, so the resolver reports an invalid name.
pub(super) fn decoded_segment(uri: &Uri, number: usize) -> String {
    let segment = uri.path().split('/').nth(3 + number).unwrap_or_default();
    // Most names contain no escape, and searching for one is cheaper than decoding.
    if segment.contains('%') {
        percent_decode_str(segment).decode_utf8_lossy().into_owned()
    } else {
        segment.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_decoded_once() {
        let uri: Uri = "/v1/gate/a%2525%2Fb.eth/sum%6Darize?x=1".parse().unwrap();
        assert_eq!(
            (decoded_segment(&uri, 0), decoded_segment(&uri, 1)),
            ("a%25/b.eth".to_owned(), "summarize".to_owned())
        );
        assert_eq!(decoded_segment(&"/v1/gate/%ff".parse().unwrap(), 0), "\u{fffd}");
        assert_eq!(decoded_segment(&"/v1/verdicts/".parse().unwrap(), 0), "");
    }
}
