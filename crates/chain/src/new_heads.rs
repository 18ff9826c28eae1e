//! [`NewHeads`]: subscribes to an endpoint's new blocks over a WebSocket.
//!
//! The contents of a block notification are ignored. A notification only means that the endpoint should be polled
//! again; [`Follower`](crate::Follower) does the polling and decides what to trust.

use std::time::Duration;

use async_trait::async_trait;
use clresolve_core::fetch::{Cause, FetchError};
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::time::{Instant, timeout_at};

/// Time limit for the subscription: the same as for the head of an HTTP response.
const SUBSCRIBE_TIME: Duration = Duration::from_secs(10);

/// A stream that announces no block for this long counts as dead: five mainnet slots, of which one in a hundred stays
/// empty.
pub const SILENCE: Duration = Duration::from_secs(60);

/// The only request that is sent.
const SUBSCRIBE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}"#;

/// The id of the request.
const ID: u64 = 1;

/// A bidirectional stream of text messages.
#[async_trait]
pub trait MessageStream: Send {
    /// Sends a text.
    ///
    /// # Errors
    /// [`FetchError`]. The stream is unusable afterwards.
    async fn send(&mut self, text: String) -> Result<(), FetchError>;

    /// The next text. Cancel safe: dropping the future loses no message.
    ///
    /// # Errors
    /// [`FetchError::Oversize`] for a message that is too long, [`Cause::Encoding`] for a message that is not text, and
    /// [`Cause::Truncated`] if the stream ended.
    async fn next(&mut self) -> Result<String, FetchError>;
}

/// A subscription to the new blocks of an endpoint.
pub struct NewHeads {
    messages: Box<dyn MessageStream>,
    id: String,
    /// When the last block was announced, or else when the subscription started.
    heard: Instant,
}

/// A message of an endpoint over its WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// There is a new block.
    Head,
    /// A message that was not requested.
    Unasked,
}

/// Why a stream ended. Contains neither text from the endpoint nor any part of its URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamEnd {
    /// It could not be reached in time.
    #[error("it cannot be reached")]
    Unreachable,
    /// It answered with an HTTP status that opens no WebSocket.
    #[error("HTTP status {0}, which opens no WebSocket")]
    Status(u16),
    /// It refused the subscription.
    #[error("it refuses a subscription to new blocks")]
    Refused,
    /// It sent a message that is not JSON-RPC.
    #[error("it sends something that is not JSON-RPC")]
    Malformed,
    /// A message was too long.
    #[error("it sends a message that is too long")]
    TooLong,
    /// It announced no block within [`SILENCE`].
    #[error("it has announced no block for {} s", SILENCE.as_secs())]
    Silent,
    /// It closed the connection.
    #[error("it closed the connection")]
    Closed,
}

impl StreamEnd {
    /// The value of the metrics label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Status(_) => "status",
            Self::Refused => "refused",
            Self::Malformed => "malformed",
            Self::TooLong => "too-long",
            Self::Silent => "silent",
            Self::Closed => "closed",
        }
    }
}

impl From<FetchError> for StreamEnd {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Oversize { .. } => Self::TooLong,
            FetchError::Unavailable(Cause::Status(status)) => Self::Status(status),
            FetchError::Unavailable(Cause::Encoding | Cause::Head) => Self::Malformed,
            FetchError::Unavailable(Cause::Truncated) => Self::Closed,
            FetchError::Unavailable(_) | FetchError::Forbidden(_) => Self::Unreachable,
        }
    }
}

impl NewHeads {
    /// Subscribes over an open WebSocket.
    ///
    /// # Errors
    /// [`StreamEnd`], also if no response arrives within ten seconds.
    pub async fn subscribe(mut messages: Box<dyn MessageStream>) -> Result<Self, StreamEnd> {
        let until = Instant::now() + SUBSCRIBE_TIME;
        messages.send(SUBSCRIBE.to_owned()).await?;
        loop {
            let text = timeout_at(until, messages.next()).await.map_err(|_| StreamEnd::Unreachable)??;
            if let Some(id) = subscribed(&text)? {
                return Ok(Self { messages, id, heard: Instant::now() });
            }
        }
    }

    /// The next notice. Cancel safe: dropping the future loses no notice.
    ///
    /// # Errors
    /// [`StreamEnd`], also if no block is announced within [`SILENCE`], even if other messages arrive.
    pub async fn next(&mut self) -> Result<Notice, StreamEnd> {
        let until = self.heard + SILENCE;
        let text = timeout_at(until, self.messages.next()).await.map_err(|_| StreamEnd::Silent)??;
        let message: Message = serde_json::from_str(&text).map_err(|_| StreamEnd::Malformed)?;
        if !message.tells_of(&self.id) {
            return Ok(Notice::Unasked);
        }
        self.heard = Instant::now();
        Ok(Notice::Head)
    }
}

/// The id of the subscription, if this text is the response that contains it.
fn subscribed(text: &str) -> Result<Option<String>, StreamEnd> {
    let message: Message = serde_json::from_str(text).map_err(|_| StreamEnd::Malformed)?;
    if message.id != Some(ID) {
        return Ok(None);
    }
    match message.result {
        Some(id) if message.error.is_none() => Ok(Some(id)),
        _ => Err(StreamEnd::Refused),
    }
}

/// A response or a notification.
#[derive(Deserialize)]
struct Message {
    id: Option<u64>,
    result: Option<String>,
    error: Option<IgnoredAny>,
    method: Option<String>,
    params: Option<Params>,
}

#[derive(Deserialize)]
struct Params {
    subscription: String,
}

impl Message {
    fn tells_of(&self, id: &str) -> bool {
        self.method.as_deref() == Some("eth_subscription")
            && self.params.as_ref().is_some_and(|params| params.subscription == id)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::future::pending;

    use serde_json::json;

    use super::*;

    /// Sends these texts, one per second, and then nothing more.
    struct Script(VecDeque<String>);

    #[async_trait]
    impl MessageStream for Script {
        async fn send(&mut self, text: String) -> Result<(), FetchError> {
            let request: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!((&request["method"], &request["params"]), (&json!("eth_subscribe"), &json!(["newHeads"])));
            Ok(())
        }

        async fn next(&mut self) -> Result<String, FetchError> {
            let Some(text) = self.0.pop_front() else { return pending().await };
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(text)
        }
    }

    fn script(texts: &[String]) -> Box<dyn MessageStream> {
        Box::new(Script(texts.iter().cloned().collect()))
    }

    fn answer() -> String {
        json!({"jsonrpc": "2.0", "id": 1, "result": "0xabc"}).to_string()
    }

    fn head(id: &str) -> String {
        let params = json!({"subscription": id, "result": {"number": "0x1", "hash": "no hash"}});
        json!({"jsonrpc": "2.0", "method": "eth_subscription", "params": params}).to_string()
    }

    #[tokio::test(start_paused = true)]
    async fn heads_of_the_subscription_are_hints_and_nothing_else_is() {
        let other = json!({"jsonrpc": "2.0", "id": 7, "result": "0x1"}).to_string();
        let texts = [other.clone(), answer(), head("0xabc"), head("0xdef"), other, head("0xabc"), "{".to_owned()];
        let mut heads = NewHeads::subscribe(script(&texts)).await.unwrap();
        for expected in [Notice::Head, Notice::Unasked, Notice::Unasked, Notice::Head] {
            assert_eq!(heads.next().await, Ok(expected));
        }
        assert_eq!(heads.next().await, Err(StreamEnd::Malformed));
    }

    #[tokio::test(start_paused = true)]
    async fn a_subscription_that_is_refused_malformed_or_unanswered_is_none() {
        let refused = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "SECRET"}}).to_string();
        let both = json!({"jsonrpc": "2.0", "id": 1, "result": "0x1", "error": {}}).to_string();
        for (texts, expected) in [
            (vec![refused], StreamEnd::Refused),
            (vec![both], StreamEnd::Refused),
            (vec!["<html>".to_owned()], StreamEnd::Malformed),
            (vec![head("0xabc"); 3], StreamEnd::Unreachable),
            (Vec::new(), StreamEnd::Unreachable),
        ] {
            let began = Instant::now();
            assert_eq!(NewHeads::subscribe(script(&texts)).await.map(|_| ()), Err(expected));
            assert!(began.elapsed() <= SUBSCRIBE_TIME);
        }
    }

    /// A WebSocket that opens and then fails.
    struct Failing(FetchError);

    #[async_trait]
    impl MessageStream for Failing {
        async fn send(&mut self, _: String) -> Result<(), FetchError> {
            Ok(())
        }

        async fn next(&mut self) -> Result<String, FetchError> {
            Err(self.0.clone())
        }
    }

    #[tokio::test]
    async fn a_stream_ends_for_the_reason_that_its_connection_does() {
        for (error, end) in [
            (FetchError::Oversize { limit: 1 }, StreamEnd::TooLong),
            (Cause::Status(403).into(), StreamEnd::Status(403)),
            (Cause::Head.into(), StreamEnd::Malformed),
            (Cause::Truncated.into(), StreamEnd::Closed),
            (Cause::Dns.into(), StreamEnd::Unreachable),
        ] {
            assert_eq!(NewHeads::subscribe(Box::new(Failing(error))).await.map(|_| ()), Err(end));
        }
    }

    /// A stream that sends only other messages counts as silent.
    #[tokio::test(start_paused = true)]
    async fn a_stream_that_tells_of_no_block_ends() {
        let chatter = std::iter::repeat_n(head("0xdef"), 1000);
        let texts: Vec<String> = [answer(), head("0xabc")].into_iter().chain(chatter).collect();
        let mut heads = NewHeads::subscribe(script(&texts)).await.unwrap();
        assert_eq!(heads.next().await, Ok(Notice::Head));
        let began = Instant::now();
        let end = loop {
            match heads.next().await {
                Ok(notice) => assert_eq!(notice, Notice::Unasked),
                Err(end) => break end,
            }
        };
        assert_eq!((end, began.elapsed().as_secs()), (StreamEnd::Silent, SILENCE.as_secs()));
    }
}
