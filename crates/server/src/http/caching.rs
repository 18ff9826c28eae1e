//! Metadata for caches between the daemon and its clients: lifetimes and entity tags.

use axum::body::Body;
use axum::http::header::{AGE, CACHE_CONTROL, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use clresolve_verdict::verdict::Freshness;
use jiff::Timestamp;

use super::admission::CacheUseOutcome;

/// Defined in RFC 9211.
pub(super) const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");

/// When an answer was produced and how long it stays valid.
#[derive(Clone)]
pub(super) struct ResponseLifetime {
    checked_at: Timestamp,
    lifetime: u64,
    control: HeaderValue,
}

impl ResponseLifetime {
    pub(super) fn from_freshness(freshness: &Freshness) -> Self {
        let lifetime = freshness.lifetime().as_secs();
        let control = cache_header_value(format!("private, max-age={lifetime}"));
        Self { checked_at: freshness.checked_at, lifetime, control }
    }

    /// Sets `Cache-Control`, `Age` and `Cache-Status` of an answer that used the cache in this way.
    pub(super) fn set_cache_headers(&self, headers: &mut HeaderMap, cache_use: CacheUseOutcome, now: Timestamp) {
        let age = now.as_second().saturating_sub(self.checked_at.as_second());
        let age = u64::try_from(age).unwrap_or(0);
        let ttl = self.lifetime.saturating_sub(age);
        let overdue = age.saturating_sub(self.lifetime);
        let status = match cache_use {
            // An invalid name is judged each time and never cached.
            CacheUseOutcome::Hit | CacheUseOutcome::ForceRefused if self.lifetime == 0 => {
                HeaderValue::from_static("clresolve; fwd=bypass")
            }
            CacheUseOutcome::Hit => cache_header_value(format!("clresolve; hit; ttl={ttl}")),
            CacheUseOutcome::Stale => {
                cache_header_value(format!("clresolve; hit; ttl=-{overdue}; detail=refresh-failed"))
            }
            CacheUseOutcome::Miss => HeaderValue::from_static("clresolve; fwd=miss; stored"),
            CacheUseOutcome::Forced => HeaderValue::from_static("clresolve; fwd=request; stored"),
            CacheUseOutcome::ForceRefused => {
                cache_header_value(format!("clresolve; hit; ttl={ttl}; detail=forced-run-refused"))
            }
        };
        headers.insert(CACHE_CONTROL, self.control.clone());
        headers.insert(AGE, age.into());
        headers.insert(CACHE_STATUS, status);
    }
}

fn cache_header_value(text: String) -> HeaderValue {
    HeaderValue::try_from(text).expect("digits and tokens are a header value")
}

/// Whether `If-None-Match` lists the tag, compared weakly (RFC 9110, 13.1.2).
pub(super) fn matches_if_none_match(headers: &HeaderMap, tag: &str) -> bool {
    let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let values = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|known| known.trim() == "*" || opaque(known) == opaque(tag))
}

/// The response to a client whose copy is current (304).
pub(super) fn not_modified() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_compared_weakly() {
        let mut headers = HeaderMap::new();
        assert!(!matches_if_none_match(&headers, "\"a\""));
        headers.append(IF_NONE_MATCH, HeaderValue::from_static("\"b\", W/\"a\""));
        assert!(matches_if_none_match(&headers, "\"a\"") && matches_if_none_match(&headers, "W/\"b\""));
        assert!(!matches_if_none_match(&headers, "\"c\""));
        headers.append(IF_NONE_MATCH, HeaderValue::from_static("*"));
        assert!(matches_if_none_match(&headers, "\"c\""));
    }
}
