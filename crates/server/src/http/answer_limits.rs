//! Limits on the bytes of responses that wait in memory until they are written, in total and per client. A client that
//! requests much and reads nothing costs little memory. The limits apply to the report API.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, HttpBody};
use axum::response::Response;
use bytes::Bytes;
use clresolve_core::reason::RefusalCode;
use hyper::body::{Frame, SizeHint};

use super::client_limits::{ClientIdentity, SharedSlotPool, SlotReservation};

/// Slots for responses. A streamed response needs none: its next part is produced once the last one is being written.
pub(super) struct ResponseMemorySlots(SharedSlotPool);

impl ResponseMemorySlots {
    /// Maximum size of a response that needs no slot. Each connection has buffers of that size anyway.
    const FREE: u64 = 8 * 1024;

    /// Bytes per slot.
    const UNIT: u64 = 16 * 1024;

    /// Maximum number of slots in use: 16 MiB.
    const MOST: usize = 1024;

    /// Maximum number of slots of one client: 4 MiB, which is 16 cards of the maximum size. A client that reads its
    /// responses frees its slots at once.
    const MOST_OF_CLIENT: usize = 256;

    pub(super) fn new() -> Self {
        Self(SharedSlotPool::new(Self::MOST, Self::MOST_OF_CLIENT))
    }

    /// Reserves slots for the response. They are freed when its last byte has been written or the connection has ended.
    ///
    /// # Errors
    /// The client has used up its share, or no slot is free.
    pub(super) fn reserve_slots(&self, client: ClientIdentity, answer: Response) -> Result<Response, RefusalCode> {
        let bytes = answer.body().size_hint().exact().unwrap_or_default();
        if bytes <= Self::FREE || clresolve_core::mutant!("answers-without-places") {
            return Ok(answer);
        }
        let slots = u32::try_from(bytes.div_ceil(Self::UNIT)).unwrap_or(u32::MAX);
        let slots = Arc::new(self.0.reserve_slots(client, slots)?);
        Ok(answer.map(|body| Body::new(SlotHoldingBody { body, slots })))
    }
}

/// A body whose bytes occupy slots.
struct SlotHoldingBody {
    body: Body,
    slots: Arc<SlotReservation>,
}

impl HttpBody for SlotHoldingBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        // hyper drops a body before it has written its last bytes.
        let held = |bytes| Bytes::from_owner(SlotHoldingBytes { bytes, _slots: Arc::clone(&self.slots) });
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(held))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

struct SlotHoldingBytes {
    bytes: Bytes,
    _slots: Arc<SlotReservation>,
}

impl AsRef<[u8]> for SlotHoldingBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use axum::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, ORIGIN};
    use axum::http::{Request, StatusCode};

    use super::*;
    use crate::http::activity::ConnectionActivity;
    use crate::http::api_kind::ListenerApiScope;
    use crate::http::in_force::CurrentService;
    use crate::http::state::AppState;
    use crate::http::{build_service, request};
    use clresolve_resolver::config::Config;
    use clresolve_resolver::resolve::Resolver;

    /// An origin whose pages may read responses.
    const PAGE: &str = "https://app.example";

    fn client(number: u8) -> ClientIdentity {
        ClientIdentity::Address(Ipv4Addr::new(192, 0, 2, number).into())
    }

    fn of(bytes: usize) -> Response {
        Response::new(Body::from(vec![b'x'; bytes]))
    }

    #[tokio::test]
    async fn answers_are_bounded_in_all_and_for_each_client_until_their_bytes_are_gone() {
        const BYTES: usize = 256 * 1024;
        let limits = ResponseMemorySlots::new();
        let take = |number: usize| limits.reserve_slots(client(u8::try_from(number).expect("few")), of(BYTES));
        let of_slots = |slots: usize| slots * ResponseMemorySlots::UNIT as usize / BYTES;
        let (of_client, all) = (of_slots(ResponseMemorySlots::MOST_OF_CLIENT), of_slots(ResponseMemorySlots::MOST));
        let mut held: Vec<_> = (0..of_client).map(|_| take(1).expect("a slot")).collect();
        assert_eq!(take(1).err(), Some(RefusalCode::ClientOverQuota));
        assert!(limits.reserve_slots(client(1), of(8 * 1024)).is_ok(), "a small answer needs no slot");
        held.extend((of_client..all).map(|number| take(2 + number).expect("a slot")));
        assert_eq!(take(200).err(), Some(RefusalCode::Overloaded));

        let read = axum::body::to_bytes(held.remove(0).into_body(), BYTES).await.expect("a body");
        assert_eq!(read.len(), BYTES);
        assert!(take(1).is_err(), "its bytes are still in memory");
        drop(read);
        assert!(take(1).is_ok());
    }

    /// The daemon's response to a page whose client has no slot left.
    async fn answered_without_places(path: &str) -> Response {
        let mut config = Config::default();
        config.cors.origins = vec![PAGE.to_owned()];
        let resolver = Resolver::new(&config).await.expect("a resolver");
        let in_force = Arc::new(CurrentService::new(build_service(AppState::new(resolver, &config, None, None))));
        let all = of(ResponseMemorySlots::MOST_OF_CLIENT * ResponseMemorySlots::UNIT as usize);
        let _held = in_force.state().answers.reserve_slots(client(1), all).expect("slots");
        let asked = Request::get(path).header(ORIGIN, PAGE).body(Body::empty()).expect("a request");
        request::answer_request(&in_force, ListenerApiScope::All, client(1), &ConnectionActivity::new(), asked).await
    }

    #[tokio::test]
    async fn a_page_may_read_why_there_is_no_place_for_its_answer() {
        let refused = answered_without_places("/openapi.json").await;
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(refused.headers()[ACCESS_CONTROL_ALLOW_ORIGIN], PAGE);
    }

    #[tokio::test]
    async fn metrics_need_no_place_however_long_they_are() {
        let metrics = answered_without_places("/metrics").await;
        assert_eq!(metrics.status(), StatusCode::OK);
        assert!(
            metrics.body().size_hint().exact() > Some(ResponseMemorySlots::FREE),
            "a short answer needs none anyway"
        );
    }
}
