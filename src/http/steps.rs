//! `GET /v1/verdicts/{name}` as events: the steps of the walk as they begin and end, then the verdict.
//!
//! The answer ends with the verdict, which ends within the time limit of a run. A step that is missed, or was taken
//! before somebody watched, is in the verdict. A reader that takes nothing is cut off by the connection.

use std::convert::Infallible;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream;
use serde_json::json;

use super::request::RequestPermit;
use super::{negotiate, problem};
use crate::reason::Refusal;
use crate::resolve::{StepSeen, Watch};

/// Tells nginx to pass on each event as it comes.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Answers with the steps that are seen, and the verdict as JSON once it is there. A refusal is a problem, as it is
/// without events.
pub(super) async fn stream(
    watch: Option<Watch>,
    verdict: BoxFuture<'static, Result<Vec<u8>, Refusal>>,
    permit: RequestPermit,
) -> Response {
    let mut walk = Walk { watch, verdict, has_ended: false };
    let first = walk.next().await;
    if let Event::Verdict(Err(refusal)) = first {
        return problem::refused(refusal, None);
    }
    let events = stream::unfold((walk, Some(first)), move |(mut walk, first)| {
        let _held = &permit;
        async move {
            if walk.has_ended {
                return None;
            }
            let event = match first {
                Some(first) => first,
                None => walk.next().await,
            };
            walk.has_ended = matches!(event, Event::Verdict(_));
            Some((Ok::<Bytes, Infallible>(event.written()), (walk, None)))
        }
    });
    let mut response = Response::new(Body::from_stream(events));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(negotiate::EVENTS));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
    response
}

/// A walk that somebody watches.
struct Walk {
    /// None for a name without a normal form, about which there is no run.
    watch: Option<Watch>,
    /// The verdict as JSON.
    verdict: BoxFuture<'static, Result<Vec<u8>, Refusal>>,
    has_ended: bool,
}

enum Event {
    Step(StepSeen),
    Verdict(Result<Vec<u8>, Refusal>),
}

impl Walk {
    async fn next(&mut self) -> Event {
        let seen = async {
            match &mut self.watch {
                Some(watch) => watch.next().await,
                None => None,
            }
        };
        tokio::select! {
            // Steps first: the verdict ends the answer.
            biased;
            Some(seen) = seen => Event::Step(seen),
            verdict = &mut self.verdict => Event::Verdict(verdict),
        }
    }
}

impl Event {
    /// As text (HTML, 9.2). JSON has no line ends.
    fn written(&self) -> Bytes {
        let (event, data) = match self {
            Self::Step(StepSeen { step, has_ended }) => {
                let status = if *has_ended { "ended" } else { "began" };
                ("step", json!({"step": step, "status": status}).to_string().into_bytes())
            }
            Self::Verdict(Ok(verdict)) => ("verdict", verdict.clone()),
            Self::Verdict(Err(refusal)) => ("problem", problem::document(*refusal, None).to_string().into_bytes()),
        };
        [format!("event: {event}\ndata: ").as_bytes(), &data, b"\n\n"].concat().into()
    }
}
