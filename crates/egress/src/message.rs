//! HTTP requests and responses with bounded sizes.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use reqwest::Method;
use reqwest::header::{self, HeaderMap, HeaderValue};
use tokio::time::{Instant, timeout_at};

use crate::body_budget::{BodyBudget, SHORT_BODY};
use crate::decode::{BodyDecodeError, BodyDecoder};
use clresolve_core::fetch::{FetchError, SourceUnavailableError};

/// Maximum bytes of header names and values in a response. Real responses have one or two KiB.
pub const HEAD_LIMIT: usize = 32 << 10;

/// An HTTP request.
#[derive(Clone)]
pub struct EgressRequest {
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Bytes>,
    pub(super) pacing: PacingMode,
    pub(super) departure: RequestSendTime,
}

/// When a request was sent, excluding the wait for a permit, which says nothing about the server. Clones share the
/// value.
#[derive(Clone, Debug, Default)]
pub struct RequestSendTime(Arc<OnceLock<Instant>>);

impl RequestSendTime {
    /// When the request was sent; `None` while it waits for a permit.
    pub fn sent_at(&self) -> Option<Instant> {
        self.0.get().copied()
    }

    /// Records that the request is sent now, unless it was recorded before.
    pub(super) fn record_sent(&self) {
        self.0.get_or_init(Instant::now);
    }
}

/// How a call reacts to pacing and to a server's refusal, if requests are paced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacingMode {
    /// The call is sent immediately.
    Hasty,
    /// The call waits for a permit. A refusal is its final response.
    InTurn,
    /// The call waits for a permit. After a refusal it waits for the requested pause and is sent again.
    Patient,
}

impl EgressRequest {
    /// A GET request that accepts the media type `accept`.
    pub fn get(accept: &'static str) -> Self {
        Self::unpaced(Method::GET, None).with_header(header::ACCEPT, accept)
    }

    /// A POST request with a JSON body.
    pub fn post_json(body: Bytes) -> Self {
        Self::unpaced(Method::POST, Some(body))
            .with_header(header::CONTENT_TYPE, "application/json")
            .with_header(header::ACCEPT, "application/json")
    }

    /// Accepts gzip.
    pub fn accept_gzip(self) -> Self {
        self.with_header(header::ACCEPT_ENCODING, "gzip")
    }

    /// Makes the call wait for the pauses that a server asks for, if requests are paced.
    #[must_use]
    pub fn with_retries(mut self) -> Self {
        self.pacing = PacingMode::Patient;
        self
    }

    /// Makes the call wait for a permit, if requests are paced. A refusal is returned immediately, so that the caller
    /// can try another server with the same content. `departure` receives the time of sending.
    #[must_use]
    pub fn with_pacing(mut self, departure: RequestSendTime) -> Self {
        self.pacing = PacingMode::InTurn;
        self.departure = departure;
        self
    }

    /// Sets a header, replacing its previous value.
    #[must_use]
    pub fn with_header_value(mut self, name: header::HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    fn unpaced(method: Method, body: Option<Bytes>) -> Self {
        let (headers, pacing, departure) = (HeaderMap::new(), PacingMode::Hasty, RequestSendTime::default());
        Self { method, headers, body, pacing, departure }
    }

    fn with_header(self, name: header::HeaderName, value: &'static str) -> Self {
        self.with_header_value(name, HeaderValue::from_static(value))
    }
}

/// A response head. The body has not been read yet.
pub struct EgressResponse {
    pub(super) response: reqwest::Response,
    pub(super) deadline: Instant,
}

impl EgressResponse {
    /// The HTTP status.
    pub fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// The value of a header, if it is visible ASCII.
    pub fn header(&self, name: header::HeaderName) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    /// All headers in order, repeated ones included. Bytes of a value that is not text are escaped.
    pub fn headers(&self) -> Vec<(String, String)> {
        let headers = self.response.headers().iter();
        headers.map(|(name, value)| (name.to_string(), value.as_bytes().escape_ascii().to_string())).collect()
    }

    /// The first `most` bytes of the body, or all of a shorter one. The rest is not read.
    pub async fn read_beginning(self, most: usize) -> Result<Vec<u8>, FetchError> {
        let mut body = Vec::new();
        // A decoded piece may be longer than the bytes that are still needed.
        let mut pieces = self.into_body(most.saturating_mul(2))?;
        while body.len() < most
            && let Some(piece) = pieces.next().await?
        {
            let wanted = piece.len().min(most - body.len());
            body.extend_from_slice(&piece[..wanted]);
        }
        Ok(body)
    }

    /// How long the server asks the client to wait: seconds, or a date relative to the server's own `Date`.
    pub fn retry_after(&self) -> Option<Duration> {
        parse_retry_after(self.header(header::RETRY_AFTER)?, self.header(header::DATE))
    }

    /// The value of the `Date` header.
    pub fn date(&self) -> Option<jiff::Timestamp> {
        parse_http_date(self.header(header::DATE)?)
    }

    /// The body as a stream of decoded pieces, at most `limit` bytes in all. The length in the head is ignored, because
    /// a reader may stop early.
    pub fn into_body(self, limit: usize) -> Result<BodyStream, FetchError> {
        let codings = self.response.headers().get_all(header::CONTENT_ENCODING).iter();
        let codings = codings.map(|value| value.to_str().unwrap_or("unreadable"));
        let decoder = BodyDecoder::new(codings, limit).map_err(|e| decode_error_to_fetch_error(e, limit))?;
        Ok(BodyStream {
            response: self.response,
            deadline: self.deadline,
            decoder: Some(decoder),
            received: Bytes::new(),
        })
    }

    /// The whole body, at most `limit` bytes. For short limits, or servers with a bounded number of requests.
    pub async fn read_body(self, limit: usize) -> Result<Bytes, FetchError> {
        let expected = self.max_decoded_length(limit)?;
        self.into_body(limit)?.collect(Vec::with_capacity(expected.min(SHORT_BODY)), usize::MAX).await.map(Bytes::from)
    }

    /// The whole body, at most `limit` bytes, within the server's `budget`. A body longer than [`SHORT_BODY`] waits for
    /// a reservation, and its connection stays open meanwhile.
    pub async fn read_body_within_budget(self, limit: usize, budget: &BodyBudget) -> Result<Bytes, FetchError> {
        let (expected, deadline) = (self.max_decoded_length(limit)?, self.deadline);
        let mut stream = self.into_body(limit)?;
        let mut body = stream.collect(Vec::new(), SHORT_BODY).await?;
        if stream.has_ended() {
            return Ok(body.into());
        }
        let _reservation = budget.reserve(expected, deadline).await?;
        body.reserve_exact(expected.saturating_sub(body.len()));
        stream.collect(body, usize::MAX).await.map(Bytes::from)
    }

    /// Maximum length of the decoded body: its `Content-Length` if it has one and no content coding, otherwise `limit`.
    /// A `Content-Length` beyond `limit` is refused.
    fn max_decoded_length(&self, limit: usize) -> Result<usize, FetchError> {
        let Some(length) = self.response.content_length() else { return Ok(limit) };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        match self.response.headers().get(header::CONTENT_ENCODING) {
            _ if length > limit => Err(FetchError::Oversize { limit }),
            Some(_) => Ok(limit),
            None => Ok(length),
        }
    }
}

/// A decoded and bounded response body. Dropping it stops the download.
pub struct BodyStream {
    response: reqwest::Response,
    deadline: Instant,
    /// `None` after the end of the body.
    decoder: Option<BodyDecoder>,
    /// Bytes from the wire that have not been decoded yet.
    received: Bytes,
}

impl BodyStream {
    /// Appends pieces to `body` until it has more than `enough` bytes or the stream ends.
    async fn collect(&mut self, mut body: Vec<u8>, enough: usize) -> Result<Vec<u8>, FetchError> {
        while body.len() <= enough {
            let Some(piece) = self.next().await? else { break };
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    fn has_ended(&self) -> bool {
        self.decoder.is_none()
    }

    /// The deadline for the whole body.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The next piece, which may be empty; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, FetchError> {
        let Some(decoder) = &mut self.decoder else {
            return Ok(None);
        };
        let limit = decoder.limit();
        if self.received.is_empty() {
            let chunk =
                timeout_at(self.deadline, self.response.chunk()).await.map_err(|_| SourceUnavailableError::Timeout)?;
            let Some(chunk) = chunk.map_err(|_| SourceUnavailableError::Truncated)? else {
                let rest = decoder.finish().map_err(|e| decode_error_to_fetch_error(e, limit))?;
                self.decoder = None;
                return Ok(Some(rest));
            };
            self.received = chunk;
        }
        let portion = self.received.split_to(self.received.len().min(decoder.chunk_size()));
        decoder.push(portion).map(Some).map_err(|e| decode_error_to_fetch_error(e, limit))
    }
}

fn decode_error_to_fetch_error(error: BodyDecodeError, limit: usize) -> FetchError {
    match error {
        BodyDecodeError::Oversize => FetchError::Oversize { limit },
        BodyDecodeError::Truncated => SourceUnavailableError::Truncated.into(),
        BodyDecodeError::Coding => SourceUnavailableError::Encoding.into(),
    }
}

pub(super) fn head_size(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum()
}

/// Parses `Retry-After` (RFC 9110, section 10.2.3). A number that is too large counts as the longest duration. A date
/// is compared with the `Date` of the same response, because the clocks of two machines differ.
fn parse_retry_after(value: &str, date: Option<&str>) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(value.parse().map_or(Duration::MAX, Duration::from_secs));
    }
    let wait = parse_http_date(value)?.duration_since(parse_http_date(date?)?);
    Some(Duration::try_from(wait).unwrap_or_default())
}

/// Parses a date in one of the three forms of RFC 9110, section 5.6.7.
fn parse_http_date(text: &str) -> Option<jiff::Timestamp> {
    const OBSOLETE: [&str; 2] = ["%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];
    let text = text.trim();
    if let Ok(date) = jiff::fmt::rfc2822::parse(text) {
        return Some(date.timestamp());
    }
    let civil = OBSOLETE.iter().find_map(|form| jiff::civil::DateTime::strptime(form, text).ok())?;
    civil.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|date| date.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_form_of_retry_after() {
        let date = Some("Sun, 06 Nov 1994 08:49:37 GMT");
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        for (value, date, expected) in [
            ("30", None, seconds(30)),
            (" 0 ", None, seconds(0)),
            ("18446744073709551615", None, seconds(u64::MAX)),
            ("99999999999999999999999", None, Some(Duration::MAX)),
            ("Sun, 06 Nov 1994 08:50:07 GMT", date, seconds(30)),
            ("Sunday, 06-Nov-94 08:50:07 GMT", date, seconds(30)),
            ("Sun Nov  6 08:50:07 1994", date, seconds(30)),
            ("Sun, 06 Nov 1994 08:50:07 GMT", Some("Sunday, 06-Nov-94 08:49:37 GMT"), seconds(30)),
            ("Sun, 06 Nov 1994 08:49:07 GMT", date, seconds(0)),
            ("Sat, 06 Nov 2094 08:50:07 GMT", date, seconds(3_155_760_030)),
            ("Fri, 31 Dec 9999 23:59:59 GMT", date, None),
            ("Sun, 06 Nov 1994 08:50:07 GMT", None, None),
            ("Sun, 06 Nov 1994 08:50:07 GMT", Some("today"), None),
            ("-1", date, None),
            ("1.5", date, None),
            ("+5", date, None),
            ("1e9", date, None),
            ("soon", date, None),
            ("", date, None),
        ] {
            assert_eq!(parse_retry_after(value, date), expected, "{value:?} {date:?}");
        }
    }
}
