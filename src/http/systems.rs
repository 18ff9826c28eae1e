//! Orloj's agent cards, computed from the resources of `[orloj]` at the two paths where A2A clients look for them.
//! Anybody may read them.

use std::borrow::Cow;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{AGE, CACHE_CONTROL, CONTENT_TYPE, ETAG};
use axum::http::{HeaderMap, HeaderValue, Uri};
use axum::response::Response;
use jiff::Timestamp;
use tokio::sync::Mutex;
use url::form_urlencoded;

use super::verdicts::{is_known_to_client, not_modified};
use super::{Shared, problem, segment};
use crate::config::OrlojConfig;
use crate::digest::Digest;
use crate::generate::{Cards, GenerateError, Generated, MAX_BYTES, Source};
use crate::reason::Refusal;
use crate::text::Foreign;

/// For how many seconds a card is fresh, counted from when it was computed; as Orloj's server says it.
const FRESH_SECONDS: i64 = 300;

/// The same for caches.
const FRESH: &str = "public, max-age=300";

/// Seconds after which a request makes the resources be read again, so that asking often costs little and a change is
/// soon seen.
const REREAD_SECONDS: i64 = 10;

/// Most parameters of a query that are looked at; there is one.
const MAX_PARAMETERS: usize = 8;

/// Why there are no cards.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SystemsError {
    /// A file cannot be read.
    #[error("cannot read {file}: {detail}")]
    Unreadable {
        /// The file.
        file: String,
        /// What the system says.
        detail: String,
    },
    /// The files make no cards.
    #[error(transparent)]
    Generate(#[from] GenerateError),
}

/// The cards, computed again as the resources change.
pub(super) struct Systems {
    config: OrlojConfig,
    held: Mutex<Held>,
}

#[derive(Clone)]
struct Held {
    cards: Arc<Cards>,
    computed: Timestamp,
    tried: Timestamp,
}

impl Held {
    /// Whole seconds since the cards were computed.
    fn age(&self, now: Timestamp) -> i64 {
        now.duration_since(self.computed).as_secs().max(0)
    }
}

impl Systems {
    /// Reads the resources; none where none are configured.
    pub(super) fn open(config: &OrlojConfig, now: Timestamp) -> Result<Option<Self>, SystemsError> {
        if config.resources.is_empty() {
            return Ok(None);
        }
        let held = Held { cards: Arc::new(read(config)?), computed: now, tried: now };
        Ok(Some(Self { config: config.clone(), held: Mutex::new(held) }))
    }

    /// The cards as of `now`. Resources that are broken meanwhile leave the last good cards for as long as these are fresh.
    async fn current(&self, now: Timestamp) -> Result<Held, Refusal> {
        let mut held = self.held.lock().await;
        if now.duration_since(held.tried).as_secs() >= REREAD_SECONDS {
            held.tried = now;
            let config = self.config.clone();
            match tokio::task::spawn_blocking(move || read(&config)).await {
                Ok(Ok(cards)) => (held.cards, held.computed) = (Arc::new(cards), now),
                Ok(Err(error)) => tracing::warn!(%error, "the resources of [orloj] cannot be read again"),
                Err(error) => tracing::warn!(%error, "reading the resources of [orloj] ended early"),
            }
        }
        if held.age(now) >= FRESH_SECONDS { Err(Refusal::ResourcesUnreadable) } else { Ok(held.clone()) }
    }
}

/// Reads the resources and makes their cards.
pub(super) fn read(config: &OrlojConfig) -> Result<Cards, SystemsError> {
    let files = config.resources.iter().map(|file| bytes(file)).collect::<Result<Vec<_>, _>>()?;
    let sources: Vec<_> = files.iter().map(|(file, bytes)| Source { file, bytes }).collect();
    Ok(Cards::read(&sources, config.base_url.clone())?)
}

fn bytes(path: &Path) -> Result<(String, Vec<u8>), SystemsError> {
    let file = path.display().to_string();
    let mut bytes = Vec::new();
    let opened = File::open(path).and_then(|opened| opened.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes));
    match opened {
        Ok(_) => Ok((file, bytes)),
        Err(error) => {
            Err(SystemsError::Unreadable { file: Foreign::new(&file).to_string(), detail: error.to_string() })
        }
    }
}

/// `GET /.well-known/agent-card.json`: the card, where there is one system alone.
pub(super) async fn root(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    answer(&shared, &headers, |cards| {
        cards.only().ok_or_else(|| match cards.len() {
            0 => "no AgentSystem is exposed".into(),
            many => format!(
                "{many} AgentSystems are exposed, so none stands at the root; each has its card at \
                 /v1/agent-systems/NAME/.well-known/agent-card.json"
            )
            .into(),
        })
    })
    .await
}

/// `GET /v1/agent-systems/{name}/.well-known/agent-card.json` `?namespace=`
pub(super) async fn one(State(shared): State<Arc<Shared>>, headers: HeaderMap, uri: Uri) -> Response {
    let name = segment(&uri, 0);
    let mut parameters = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()).take(MAX_PARAMETERS);
    let namespace = parameters.find(|(key, _)| key == "namespace").map(|(_, namespace)| namespace);
    answer(&shared, &headers, |cards| {
        cards.get(namespace.as_deref(), &name).ok_or_else(|| "no AgentSystem of this name is exposed".into())
    })
    .await
}

async fn answer(
    shared: &Shared,
    headers: &HeaderMap,
    choose: impl FnOnce(&Cards) -> Result<&Generated, Cow<'static, str>>,
) -> Response {
    let Some(systems) = &shared.systems else { return problem::refused(Refusal::RouteUnknown, None) };
    let now = shared.resolver.now();
    let held = match systems.current(now).await {
        Ok(held) => held,
        Err(refusal) => return problem::refused(refusal, None),
    };
    let card = match choose(&held.cards) {
        Ok(card) => card,
        Err(detail) => return problem::refused(Refusal::CardAbsent, Some(detail)),
    };
    let tag = format!("\"{}\"", Digest::of(card.text().as_bytes()).hex());
    let mut response = if is_known_to_client(headers, &tag) {
        not_modified()
    } else {
        let mut response = Response::new(Body::from(card.text().to_owned()));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(FRESH));
    headers.insert(AGE, held.age(now).into());
    headers.insert(ETAG, HeaderValue::from_str(&tag).expect("hex is a header value"));
    response
}
