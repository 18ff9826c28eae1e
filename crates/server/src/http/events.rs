//! `GET /v1/events?name=` streams the changes of the verdicts on some names.
//!
//! The events tell a client which of its verdicts to request again. `Last-Event-ID` resumes an interrupted stream. If
//! the missed events are no longer known, the first event is `reset`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderName, Uri};
use axum::response::Response;
use bytes::Bytes;
use clresolve_core::name::EnsName;
use clresolve_core::reason::RefusalCode;
use clresolve_resolver::cache::NameEventReader;
use futures_util::{Stream, StreamExt as _, stream};
use tokio::time::timeout;
use url::form_urlencoded;

use super::client_limits::ClientIdentity;
use super::event_stream::{self, EventStreamPermit};
use super::problem;
use super::state::AppState;

/// Maximum number of names per stream (design §7), because each event is compared with all of them.
pub(super) const MAX_NAMES: usize = 100;

/// The query parameter, which may be repeated.
pub(super) const PARAMETER: &str = "name";

/// Time without events after which a comment is sent. It is shorter than the timeout of proxies (60 s). Only a write
/// detects that the client has disconnected.
const SILENCE: Duration = Duration::from_secs(15);

/// Reconnection time of a client, in milliseconds.
const COME_BACK: u32 = 2000;

/// The header with the ID of the last event that the client received (HTML, 9.2.4).
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// `GET /v1/events`
pub(super) async fn serve_events(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientIdentity>,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    if state.is_draining() {
        return problem::refusal_response(RefusalCode::Draining, None);
    }
    let names = match parse_followed_names(uri.query().unwrap_or_default()) {
        Ok(names) => names,
        Err(detail) => {
            return problem::refusal_response(RefusalCode::RequestMalformed, Some(detail.into()));
        }
    };
    let permit = match state.event_streams.acquire(client) {
        Ok(permit) => permit,
        Err(refusal) => return problem::refusal_response(refusal, None),
    };
    let feed = state.resolver.name_event_feed();
    let last = headers.get(LAST_EVENT_ID);
    let resumed = last.and_then(|last| feed.resume_subscription(names.clone(), last.to_str().ok()?));
    let has_missed = last.is_some() && resumed.is_none();
    let follower = resumed.unwrap_or_else(|| feed.subscribe(names));
    let greeting = initial_resume_event(&follower, has_missed);
    event_stream::event_stream_response(stream::iter([greeting]).chain(follower_events(follower, permit)))
}

fn parse_followed_names(query: &str) -> Result<BTreeSet<EnsName>, String> {
    let mut names = BTreeSet::new();
    for (number, (key, value)) in form_urlencoded::parse(query.as_bytes()).enumerate() {
        if number == MAX_NAMES {
            return Err(format!("expected at most {MAX_NAMES} names"));
        }
        if key != PARAMETER {
            return Err(format!("expected the parameter {PARAMETER}, found {key}"));
        }
        names.insert(EnsName::parse(&value).map_err(|error| format!("{value}: {error}"))?);
    }
    if names.is_empty() { Err("expected a name".to_owned()) } else { Ok(names) }
}

/// The first event. It contains the ID to resume from, and whether events were missed.
fn initial_resume_event(follower: &NameEventReader, has_missed: bool) -> Bytes {
    let reset = if has_missed { event_stream::format_event("reset", b"{}") } else { Bytes::from_static(b"\n") };
    let come_back = [format!("retry: {COME_BACK}\n").as_bytes(), &reset].concat();
    event_stream::add_event_id(follower.position(), &come_back)
}

/// The events of a follower, until it has fallen behind or all streams end. Holds the permit until then.
fn follower_events(follower: NameEventReader, permit: EventStreamPermit) -> impl Stream<Item = Bytes> {
    stream::unfold((follower, permit), |(mut follower, mut permit)| async move {
        let next = async {
            tokio::select! {
                () = permit.wait_for_end() => None,
                event = follower.next() => event,
            }
        };
        let written = match timeout(SILENCE, next).await {
            Ok(event) => {
                let event = event?;
                let data = serde_json::to_vec(&*event).unwrap_or_default();
                event_stream::add_event_id(follower.position(), &event_stream::format_event(event.kind(), &data))
            }
            Err(_) => Bytes::from_static(b":\n\n"),
        };
        Some((written, (follower, permit)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_asked_for_by_name() {
        let of = |names: &[&str]| names.iter().map(|name| EnsName::parse(name).expect("a name")).collect();
        assert_eq!(parse_followed_names("name=a.eth&name=B.eth&name=b.eth"), Ok(of(&["a.eth", "b.eth"])));
        let many = |count: usize| vec!["name=a.eth"; count].join("&");
        assert!(parse_followed_names(&many(MAX_NAMES)).is_ok());
        for bad in ["", "name=", "names=a.eth", "name=a.eth&depth=schemas", "name=a..eth", &many(MAX_NAMES + 1)] {
            assert!(parse_followed_names(bad).is_err(), "{bad}");
        }
    }
}
