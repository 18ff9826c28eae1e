//! `GET /v1/verdicts/{name}` as events: the steps of the walk as they begin and end, then the verdict.
//!
//! The answer ends with the verdict, which ends within the time limit of a run. A step that is missed, or was taken
//! before somebody watched, is in the verdict. A reader that takes nothing is cut off by the connection.

use axum::response::Response;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream;
use serde_json::json;

use super::request::RequestPlace;
use super::{event_stream, problem};
use crate::reason::Refusal;
use crate::resolve::{StepSeen, Watch};

/// Answers with the steps that are seen, and the verdict as JSON once it is there. A refusal is a problem, as it is
/// without events.
pub(super) async fn stream(
    watch: Option<Watch>,
    verdict: BoxFuture<'static, Result<Vec<u8>, Refusal>>,
    permit: RequestPlace,
) -> Response {
    let mut walk = WatchedRun { watch, verdict, has_ended: false };
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
            Some((event.written(), (walk, None)))
        }
    });
    event_stream::response(events)
}

/// A walk that somebody watches.
struct WatchedRun {
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

impl WatchedRun {
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
    fn written(&self) -> Bytes {
        let (event, data) = match self {
            Self::Step(StepSeen { step, has_ended }) => {
                let status = if *has_ended { "ended" } else { "began" };
                ("step", json!({"step": step, "status": status}).to_string().into_bytes())
            }
            Self::Verdict(Ok(verdict)) => ("verdict", verdict.clone()),
            Self::Verdict(Err(refusal)) => ("problem", problem::document(*refusal, None).to_string().into_bytes()),
        };
        event_stream::event(event, &data)
    }
}
