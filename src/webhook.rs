//! Webhooks as [Standard Webhooks](https://www.standardwebhooks.com) has them: signed messages to an endpoint of the
//! operator's own.
//!
//! A call goes through the operator's door, so no redirect is followed. Of the reply only the head is read, which the
//! door bounds ([`HEAD_LIMIT`](crate::fetch::HEAD_LIMIT)).

use std::fmt;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use sha2::Sha256;
use url::Url;
use zeroize::Zeroizing;

use crate::config::Config;
use crate::fetch::header::{HeaderName, HeaderValue};
use crate::fetch::{Call, Egress, EgressViolation, FetchError, OperatorClient, SystemLookup, deadline_in};
use crate::resolve::{self, Load, SetupError};
use crate::sign::{KeyFileError, private_text};

/// Most calls for one message. With the pauses between them a receiver that restarts has eight seconds for it; whatever
/// lasts longer is a matter for a person, and the message is told again in the next round.
pub const MAX_CALLS: u32 = 5;

/// The pause before the second call; each later one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// Longest pause that a receiver may ask for (`Retry-After`), so that it cannot hold up the rounds.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Time limit of one call: that of the door for the head of a reply, of which nothing else is read. A receiver should
/// answer before it works.
const CALL_LIMIT: Duration = Duration::from_secs(10);

/// How the text of a key begins.
const KEY_PREFIX: &str = "whsec_";

/// Fewest bytes of a key, as the specification demands.
const MIN_KEY_BYTES: usize = 24;

/// Most bytes of a key, as the specification demands: the block of the hash.
const MAX_KEY_BYTES: usize = 64;

/// The key that receivers check signatures with.
pub struct WebhookKey(Zeroizing<Vec<u8>>);

/// Why a key file is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebhookKeyError {
    /// The file cannot be read, or others can.
    #[error(transparent)]
    File(#[from] KeyFileError),
    /// It does not hold what it should.
    #[error(
        "expected one line with {KEY_PREFIX} and the base64 of {MIN_KEY_BYTES} to {MAX_KEY_BYTES} random bytes, such as \
         `echo {KEY_PREFIX}$(openssl rand -base64 32)` prints"
    )]
    Form,
}

impl WebhookKey {
    /// Reads the file, which nobody but its owner may be able to read.
    ///
    /// # Errors
    /// [`WebhookKeyError`]
    pub fn read(path: &Path) -> Result<Self, WebhookKeyError> {
        Self::parse(&private_text(path)?)
    }

    /// Reads the text of such a file.
    ///
    /// # Errors
    /// [`WebhookKeyError::Form`]
    pub fn parse(text: &str) -> Result<Self, WebhookKeyError> {
        let encoded = text.trim().strip_prefix(KEY_PREFIX).ok_or(WebhookKeyError::Form)?;
        let bytes = STANDARD.decode(encoded).map(Zeroizing::new).map_err(|_| WebhookKeyError::Form)?;
        if (MIN_KEY_BYTES..=MAX_KEY_BYTES).contains(&bytes.len()) {
            Ok(Self(bytes))
        } else {
            Err(WebhookKeyError::Form)
        }
    }

    /// The value of `webhook-signature` for a call at `seconds` since 1970.
    fn signature(&self, id: &str, seconds: i64, body: &[u8]) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        mac.update(id.as_bytes());
        if !clresolve_core::mutant!("webhook-times-unsigned") {
            mac.update(format!(".{seconds}.").as_bytes());
        }
        mac.update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

impl fmt::Debug for WebhookKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookKey(…)")
    }
}

/// What a receiver is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// By which a receiver knows that it was told this already. Visible ASCII without a dot.
    pub id: String,
    /// A JSON text.
    pub body: Bytes,
}

/// An endpoint of the operator's own, and the key of what it is sent.
#[derive(Debug)]
pub struct Webhook {
    client: OperatorClient,
    url: Url,
    key: WebhookKey,
}

/// Why no webhook can be called.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebhookError {
    /// The doors to the network cannot be opened.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The URL leads nowhere.
    #[error("expected an http or https URL with a host")]
    Url(EgressViolation),
}

/// Why a message was not taken. Says nothing that the receiver wrote.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undelivered {
    /// The receiver answered with something else than success.
    #[error("the receiver answered {status}, not 2xx{}", if (300..400).contains(status) { "; redirects are refused" } else { "" })]
    Status {
        /// The status.
        status: u16,
        /// How long it asks to wait.
        retry_after: Option<Duration>,
    },
    /// There was no answer.
    #[error("{0}")]
    Failed(FetchError),
}

impl Undelivered {
    /// Whether the same call may be taken a moment later.
    const fn may_pass(&self) -> bool {
        match self {
            Self::Status { status, .. } => matches!(status, 408 | 429 | 500..),
            Self::Failed(error) => !matches!(error, FetchError::Forbidden(_)),
        }
    }

    const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            Self::Failed(_) => None,
        }
    }
}

impl Webhook {
    /// The endpoint at `url`, by the operator's door of a configuration. It is not called yet.
    ///
    /// # Errors
    /// [`WebhookError`]
    pub fn new(config: &Config, url: Url, key: WebhookKey) -> Result<Self, WebhookError> {
        let egress: Egress = resolve::egress(config, std::sync::Arc::new(SystemLookup), Load::Questions)?;
        let client = egress.operator(&url).map_err(WebhookError::Url)?;
        Ok(Self { client, url, key })
    }

    /// Tells the receiver, again under the same id where it may help; at most [`MAX_CALLS`] times. `now` gives the time of
    /// each call.
    ///
    /// # Errors
    /// Why the last call failed.
    pub async fn deliver(&self, message: &Message, now: impl Fn() -> Timestamp) -> Result<(), Undelivered> {
        let mut calls = 1;
        loop {
            let Err(failed) = self.call(message, now()).await else { return Ok(()) };
            if calls >= MAX_CALLS || !failed.may_pass() {
                return Err(failed);
            }
            tracing::warn!(id = message.id, calls, %failed, "the webhook did not take a message; it is sent again");
            tokio::time::sleep(pause_after(calls, failed.retry_after())).await;
            calls += 1;
        }
    }

    async fn call(&self, message: &Message, now: Timestamp) -> Result<(), Undelivered> {
        let seconds = now.as_second();
        let signature = self.key.signature(&message.id, seconds, &message.body);
        let call = [
            ("webhook-id", message.id.clone()),
            ("webhook-timestamp", seconds.to_string()),
            ("webhook-signature", signature),
        ]
        .into_iter()
        .fold(Call::post_json(message.body.clone()), |call, (name, value)| {
            let value = HeaderValue::try_from(value).expect("digits, base64 and an id of visible ASCII");
            call.header(HeaderName::from_static(name), value)
        });
        let reply = self.client.send(&self.url, call, deadline_in(CALL_LIMIT)).await.map_err(Undelivered::Failed)?;
        match reply.status() {
            200..300 => Ok(()),
            status => Err(Undelivered::Status { status, retry_after: reply.retry_after() }),
        }
    }
}

/// The pause after this many calls, or the longer one that the receiver asks for.
fn pause_after(calls: u32, asked_for: Option<Duration>) -> Duration {
    let own = FIRST_PAUSE * 2_u32.saturating_pow(calls.saturating_sub(1));
    own.max(asked_for.unwrap_or_default()).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification's reference libraries.
    #[test]
    fn a_call_is_signed_as_the_specification_has_it() {
        let key = WebhookKey::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").unwrap();
        let signature = key.signature("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(format!("{key:?}"), "WebhookKey(…)");
    }

    #[test]
    fn files_without_a_key_of_good_length_are_refused() {
        let of = |bytes: usize| format!("whsec_{}", STANDARD.encode(vec![7; bytes]));
        for bad in [
            String::new(),
            "whsec_".to_owned(),
            of(23),
            of(65),
            of(32).replace("whsec_", "WHSEC_"),
            of(32).replace("whsec_", ""),
            of(32).replace('=', "*"),
            format!("{}\n{}", of(32), of(32)),
            format!("{} # mine", of(32)),
        ] {
            assert_eq!(WebhookKey::parse(&bad).err(), Some(WebhookKeyError::Form), "{bad}");
        }
        for good in [of(24), of(64), format!("{}\r\n", of(32))] {
            assert!(WebhookKey::parse(&good).is_ok(), "{good}");
        }
    }

    #[test]
    fn pauses_grow_and_end() {
        let seconds = Duration::from_secs;
        let own: Duration = (1..MAX_CALLS).map(|calls| pause_after(calls, None)).sum();
        assert_eq!((pause_after(1, None), own), (FIRST_PAUSE, Duration::from_millis(7_500)));
        assert_eq!(pause_after(1, Some(seconds(7))), seconds(7));
        assert_eq!(pause_after(4, Some(seconds(1))), seconds(4));
        assert_eq!(pause_after(1, Some(Duration::MAX)), LONGEST_PAUSE);
        assert_eq!(pause_after(u32::MAX, None), LONGEST_PAUSE);
    }

    #[tokio::test]
    async fn what_cannot_be_reached_is_told_from_what_answers() {
        let webhook = |url: &str| {
            let key = WebhookKey::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
            Webhook::new(&Config::default(), url.parse().unwrap(), key)
        };
        for url in ["ftp://a.example/", "mailto:a@a.example", "data:,a"] {
            assert!(matches!(webhook(url), Err(WebhookError::Url(_))), "{url}");
        }
        // Bound, so that no other process gets the port; and nobody listens.
        let bound = tokio::net::TcpSocket::new_v4().unwrap();
        bound.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let nobody = bound.local_addr().unwrap();
        let message = Message { id: "msg_1".to_owned(), body: Bytes::from_static(b"{}") };
        let called = webhook(&format!("http://{nobody}/")).unwrap().call(&message, Timestamp::UNIX_EPOCH).await;
        assert!(matches!(called, Err(Undelivered::Failed(FetchError::Unavailable(_)))), "{called:?}");
        let receiver = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let webhook = webhook(&format!("http://{}/", receiver.local_addr().unwrap())).unwrap();
        let answer = async {
            let (mut stream, _) = receiver.accept().await.unwrap();
            let _ = tokio::io::AsyncReadExt::read(&mut stream, &mut [0; 4096]).await.unwrap();
            let head = b"HTTP/1.1 503 Busy\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n";
            tokio::io::AsyncWriteExt::write_all(&mut stream, head).await.unwrap();
            stream
        };
        let (called, _open) = tokio::join!(webhook.call(&message, Timestamp::UNIX_EPOCH), answer);
        assert_eq!(called, Err(Undelivered::Status { status: 503, retry_after: Some(Duration::from_secs(7)) }));
    }

    #[test]
    fn what_no_second_call_changes_is_not_called_again() {
        let of = |status| Undelivered::Status { status, retry_after: None };
        for (status, may_pass) in
            [(302, false), (400, false), (410, false), (408, true), (429, true), (500, true), (503, true)]
        {
            assert_eq!(of(status).may_pass(), may_pass, "{status}");
        }
        assert!(of(308).to_string().contains("redirects are refused"));
    }
}
