//! `GET /v1/verdicts/{name}` as server-sent events: the start and end of each step of the resolution, the result of
//! each step, and then the verdict.
//!
//! The response ends with the verdict, within the time limit of a resolution. If a start or end event was missed, or
//! happened before the client subscribed, it is derived from the step's result. The connection's write timeout
//! disconnects a client that does not read.

use std::sync::Arc;

use axum::response::Response;
use bytes::Bytes;
use clresolve_core::reason::RefusalCode;
use clresolve_resolver::resolve::{StepEvent, StepEventSubscription, StepTransition};
use clresolve_verdict::verdict::Verdict;
use futures_util::future::BoxFuture;
use futures_util::{Stream, StreamExt as _, stream};
use serde_json::{Value, json};

use super::request_slot::RequestSlot;
use super::{event_stream, problem};

type VerdictResult = Result<Arc<Verdict>, RefusalCode>;

/// Streams the steps as they happen, and then the verdict. A refusal before the first event is a problem response, as
/// it is without events.
pub(super) async fn stream_steps(
    watch: Option<StepEventSubscription>,
    verdict: BoxFuture<'static, VerdictResult>,
    permit: RequestSlot,
) -> Response {
    let mut walk = StepStreamedResolution { watch, verdict, has_ended: false };
    let first = walk.next_event().await;
    if let ResolutionStreamEvent::Verdict(Err(refusal)) = first {
        return problem::refusal_response(refusal, None);
    }
    let events = walk.serialized_events(first).map(move |event| {
        let _held = &permit;
        event
    });
    event_stream::event_stream_response(events)
}

/// A resolution with a subscriber.
struct StepStreamedResolution {
    /// `None` for a name without a normal form, which is not resolved.
    watch: Option<StepEventSubscription>,
    verdict: BoxFuture<'static, VerdictResult>,
    has_ended: bool,
}

enum ResolutionStreamEvent {
    Step(StepEvent),
    Verdict(VerdictResult),
}

impl StepStreamedResolution {
    async fn next_event(&mut self) -> ResolutionStreamEvent {
        let seen = async {
            match &mut self.watch {
                Some(watch) => watch.next().await,
                None => None,
            }
        };
        tokio::select! {
            // Steps first, since the verdict ends the response.
            biased;
            Some(seen) = seen => ResolutionStreamEvent::Step(seen),
            verdict = &mut self.verdict => ResolutionStreamEvent::Verdict(verdict),
        }
    }

    /// All serialized events, starting with `first`. The last one is the verdict or a refusal.
    fn serialized_events(self, first: ResolutionStreamEvent) -> impl Stream<Item = Bytes> {
        stream::unfold((self, Some(first)), |(mut walk, first)| async move {
            if walk.has_ended {
                return None;
            }
            let event = match first {
                Some(first) => first,
                None => walk.next_event().await,
            };
            walk.has_ended = matches!(event, ResolutionStreamEvent::Verdict(_));
            Some((event.serialize_event(), (walk, None)))
        })
    }
}

impl ResolutionStreamEvent {
    fn serialize_event(&self) -> Bytes {
        match self {
            Self::Step(seen) => event_stream::format_event("step", step_json(*seen).to_string().as_bytes()),
            Self::Verdict(Ok(verdict)) => {
                let judged = verdict.steps.iter().map(|report| {
                    json!({"step": report.step, "status": "judged", "result": report.status}).to_string()
                });
                let judged = judged.map(|data| event_stream::format_event("step", data.as_bytes()));
                let verdict = serde_json::to_vec(&**verdict).unwrap_or_default();
                judged.chain([event_stream::format_event("verdict", &verdict)]).collect::<Vec<_>>().concat().into()
            }
            Self::Verdict(Err(refusal)) => {
                event_stream::format_event("problem", problem::problem_document(*refusal, None).to_string().as_bytes())
            }
        }
    }
}

fn step_json(StepEvent { step, moment }: StepEvent) -> Value {
    match moment {
        StepTransition::Began => json!({"step": step, "status": "began"}),
        StepTransition::Ended(None) => json!({"step": step, "status": "ended"}),
        StepTransition::Ended(Some(result)) => json!({"step": step, "status": "ended", "result": result}),
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;
    use clresolve_core::reason::ResolutionStep;

    /// The status is sent before the first step, so a later refusal can only be an event.
    #[tokio::test]
    async fn a_refusal_after_a_step_is_a_problem_and_ends_the_answer() {
        for (refusal, status, pause) in
            [(RefusalCode::RunOverdue, 504, Value::Null), (RefusalCode::Overloaded, 503, json!(1))]
        {
            let walk = StepStreamedResolution {
                watch: None,
                verdict: Box::pin(ready(VerdictResult::Err(refusal))),
                has_ended: false,
            };
            let began = StepEvent { step: ResolutionStep::Records, moment: StepTransition::Began };
            let told: Vec<Bytes> = walk.serialized_events(ResolutionStreamEvent::Step(began)).collect().await;
            let [step, end] = &told[..] else { panic!("{told:?}") };
            assert!(step.starts_with(b"event: step\n"), "{step:?}");
            let data = end.strip_prefix(b"event: problem\ndata: ").and_then(|rest| rest.strip_suffix(b"\n\n"));
            let problem: Value = serde_json::from_slice(data.expect("a problem")).expect("JSON");
            assert_eq!(problem["code"], refusal.slug());
            assert_eq!((&problem["status"], &problem["retry_after"]), (&json!(status), &pause), "{problem}");
        }
    }
}
