//! Requests and responses, bounded.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use reqwest::Method;
use reqwest::header::{self, HeaderMap, HeaderValue};
use tokio::time::{Instant, timeout_at};

use crate::body_budget::{BodyBudget, SHORT_BODY};
use crate::decode::{DecodeError, Decoder};
use clresolve_core::fetch::{Cause, FetchError};

/// Most bytes of names and values in a response head. Real heads have one or two KiB.
pub const HEAD_LIMIT: usize = 32 << 10;

/// One request.
#[derive(Clone)]
pub struct Call {
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Bytes>,
    pub(super) manners: Manners,
    pub(super) departure: Departure,
}

/// When a request left. What it waits for its turn before says nothing of its server. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Departure(Arc<OnceLock<Instant>>);

impl Departure {
    /// When the request was let go; `None` while it waits for its turn.
    pub fn time(&self) -> Option<Instant> {
        self.0.get().copied()
    }

    /// It leaves now, unless it has left.
    pub(super) fn leave(&self) {
        self.0.get_or_init(Instant::now);
    }
}

/// What a call does at a server that does not want it now, where requests are paced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manners {
    /// It is sent at once.
    Hasty,
    /// It waits for its turn, and takes a refusal for the answer.
    InTurn,
    /// It waits for its turn, and after the pause that a refusal asks for it is sent again.
    Patient,
}

impl Call {
    /// A GET that asks for the media type `accept`.
    pub fn get(accept: &'static str) -> Self {
        Self::hasty(Method::GET, None).with(header::ACCEPT, accept)
    }

    /// A POST of a JSON text.
    pub fn post_json(body: Bytes) -> Self {
        Self::hasty(Method::POST, Some(body))
            .with(header::CONTENT_TYPE, "application/json")
            .with(header::ACCEPT, "application/json")
    }

    /// The same, offering gzip.
    pub fn gzip(self) -> Self {
        self.with(header::ACCEPT_ENCODING, "gzip")
    }

    /// The same, which waits for a server that asks for a pause, where requests are paced.
    #[must_use]
    pub fn patient(mut self) -> Self {
        self.manners = Manners::Patient;
        self
    }

    /// The same, which is one of as many at once as the server bears, where requests are paced. For servers that others
    /// can stand in for: a refusal is the answer, so that those are asked at once. `departure` learns when it leaves.
    #[must_use]
    pub fn in_turn(mut self, departure: Departure) -> Self {
        self.manners = Manners::InTurn;
        self.departure = departure;
        self
    }

    /// The same with a header, in the place of another value of it.
    #[must_use]
    pub fn header(mut self, name: header::HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    fn hasty(method: Method, body: Option<Bytes>) -> Self {
        let (headers, manners, departure) = (HeaderMap::new(), Manners::Hasty, Departure::default());
        Self { method, headers, body, manners, departure }
    }

    fn with(self, name: header::HeaderName, value: &'static str) -> Self {
        self.header(name, HeaderValue::from_static(value))
    }
}

/// A response head. Its body is still to be read.
pub struct Reply {
    pub(super) response: reqwest::Response,
    pub(super) deadline: Instant,
}

impl Reply {
    /// The HTTP status.
    pub fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// A header's value, if it is visible ASCII.
    pub fn header(&self, name: header::HeaderName) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    /// All headers in their order, as many times as they came. A value that is not text has its bytes escaped.
    pub fn headers(&self) -> Vec<(String, String)> {
        let headers = self.response.headers().iter();
        headers.map(|(name, value)| (name.to_string(), value.as_bytes().escape_ascii().to_string())).collect()
    }

    /// The first bytes of the body, at most `most`; what follows is left unread.
    pub async fn beginning(self, most: usize) -> Result<Vec<u8>, FetchError> {
        let mut body = Vec::new();
        // A piece that is decoded may be longer than what is still wanted.
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
        retry_after(self.header(header::RETRY_AFTER)?, self.header(header::DATE))
    }

    /// The time at which the server says that it answered.
    pub fn date(&self) -> Option<jiff::Timestamp> {
        http_date(self.header(header::DATE)?)
    }

    /// The body as a stream of decoded pieces, at most `limit` bytes. The length in the head is ignored, since
    /// a reader may stop early.
    pub fn into_body(self, limit: usize) -> Result<BodyStream, FetchError> {
        let codings = self.response.headers().get_all(header::CONTENT_ENCODING).iter();
        let codings = codings.map(|value| value.to_str().unwrap_or("unreadable"));
        let decoder = Decoder::new(codings, limit).map_err(|e| of_decode(e, limit))?;
        Ok(BodyStream {
            response: self.response,
            deadline: self.deadline,
            decoder: Some(decoder),
            received: Bytes::new(),
        })
    }

    /// The whole body, at most `limit` bytes. For servers that a budget of requests bounds, and short limits.
    pub async fn bytes(self, limit: usize) -> Result<Bytes, FetchError> {
        let expected = self.expected(limit)?;
        self.into_body(limit)?.collect(Vec::with_capacity(expected.min(SHORT_BODY)), usize::MAX).await.map(Bytes::from)
    }

    /// The whole body, at most `limit` bytes, within what `budget` lets its server use. A body that is longer than
    /// [`SHORT_BODY`] waits for its turn there; its connection waits too.
    pub async fn bytes_within(self, limit: usize, budget: &BodyBudget) -> Result<Bytes, FetchError> {
        let (expected, deadline) = (self.expected(limit)?, self.deadline);
        let mut stream = self.into_body(limit)?;
        let mut body = stream.collect(Vec::new(), SHORT_BODY).await?;
        if stream.has_ended() {
            return Ok(body.into());
        }
        let _reservation = budget.reserve(expected, deadline).await?;
        body.reserve_exact(expected.saturating_sub(body.len()));
        stream.collect(body, usize::MAX).await.map(Bytes::from)
    }

    /// Bytes that the body may have: its length, if the head tells it, else `limit`.
    fn expected(&self, limit: usize) -> Result<usize, FetchError> {
        let Some(length) = self.response.content_length() else { return Ok(limit) };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        match self.response.headers().get(header::CONTENT_ENCODING) {
            _ if length > limit => Err(FetchError::Oversize { limit }),
            Some(_) => Ok(limit),
            None => Ok(length),
        }
    }
}

/// A response body, decoded and bounded. Dropping it stops the download.
pub struct BodyStream {
    response: reqwest::Response,
    deadline: Instant,
    /// None once the body has ended.
    decoder: Option<Decoder>,
    /// Bytes from the wire that are not decoded yet.
    received: Bytes,
}

impl BodyStream {
    /// Adds pieces to `body` until it has more than `enough` bytes or the stream ends.
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

    /// When the whole body is to be there.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The next piece, which may be empty; none at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, FetchError> {
        let Some(decoder) = &mut self.decoder else {
            return Ok(None);
        };
        let limit = decoder.limit();
        if self.received.is_empty() {
            let chunk = timeout_at(self.deadline, self.response.chunk()).await.map_err(|_| Cause::Timeout)?;
            let Some(chunk) = chunk.map_err(|_| Cause::Truncated)? else {
                let rest = decoder.finish().map_err(|e| of_decode(e, limit))?;
                self.decoder = None;
                return Ok(Some(rest));
            };
            self.received = chunk;
        }
        let portion = self.received.split_to(self.received.len().min(decoder.portion()));
        decoder.push(portion).map(Some).map_err(|e| of_decode(e, limit))
    }
}

fn of_decode(error: DecodeError, limit: usize) -> FetchError {
    match error {
        DecodeError::Oversize => FetchError::Oversize { limit },
        DecodeError::Truncated => Cause::Truncated.into(),
        DecodeError::Coding => Cause::Encoding.into(),
    }
}

pub(super) fn head_size(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum()
}

/// Reads `Retry-After` (RFC 9110, section 10.2.3). A number that is too large counts as the longest
/// duration. A date needs the `Date` of the same response, since the clocks of two machines differ.
fn retry_after(value: &str, date: Option<&str>) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(value.parse().map_or(Duration::MAX, Duration::from_secs));
    }
    let wait = http_date(value)?.duration_since(http_date(date?)?);
    Some(Duration::try_from(wait).unwrap_or_default())
}

/// A date in one of the three forms of RFC 9110, section 5.6.7.
fn http_date(text: &str) -> Option<jiff::Timestamp> {
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
            assert_eq!(retry_after(value, date), expected, "{value:?} {date:?}");
        }
    }
}
