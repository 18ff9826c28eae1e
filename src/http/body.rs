//! The body of a request: JSON, within a limit of bytes and of time.

use std::borrow::Cow;

use axum::extract::Request;
use axum::http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use futures_util::StreamExt as _;
use tokio::time::timeout;

use super::{Shared, problem};
use crate::reason::Refusal;

/// A refusal, with what to say beyond its title.
pub(super) type Refused = (Refusal, Option<String>);

/// The answer to a request whose body may be unread: the connection ends with it, and says so, lest a client send the next
/// request into a connection that is about to close.
pub(super) fn refused((refusal, detail): Refused) -> Response {
    let mut response = problem::refused(refusal, detail.map(Cow::Owned));
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The whole body as it was sent. What stands in it is for the caller to judge.
pub(super) async fn json(request: Request, limit: usize, shared: &Shared) -> Result<Vec<u8>, Refused> {
    let read = timeout(shared.http.read_timeout, whole(request, limit)).await;
    read.unwrap_or(Err((Refusal::RequestTimeout, None)))
}

async fn whole(request: Request, limit: usize) -> Result<Vec<u8>, Refused> {
    let (head, body) = request.into_parts();
    if !is_json(&head.headers) {
        return Err((Refusal::MediaTypeUnsupported, None));
    }
    let announced = head.headers.get(CONTENT_LENGTH).and_then(|n| n.to_str().ok()?.parse::<usize>().ok());
    let too_large = || (Refusal::BodyTooLarge, Some(format!("a body has at most {limit} bytes")));
    if announced.is_some_and(|length| length > limit) {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|_| {
            (Refusal::RequestMalformed, Some("the body is cut off, or its chunks are malformed".to_owned()))
        })?;
        if bytes.len() + chunk.len() > limit {
            return Err(too_large());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().is_some_and(|media| media.trim().eq_ignore_ascii_case("application/json"))
}
