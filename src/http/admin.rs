//! The admin socket: what the operator of a running daemon sees and changes. It is a Unix socket that the daemon's user
//! alone may connect to, and nothing of it is offered over TCP.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State as Shared};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, Uri};
use axum::response::Response;
use axum::routing::{get, post, put};
use axum::{Json, Router};
use clresolve_core::json::object::Object;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tower::Service as _;

use super::activity::Activity;
use super::body::{self, RequestError};
use super::in_force::InForce;
use super::operator::{Operator, Reread};
use super::reload::Restart;
use super::unix_socket::UnixSocket;
use super::{connection, path, problem};
use crate::cid::ContentId;
use crate::config::HttpConfig;
use crate::name::EnsName;
use crate::reason::Refusal;
use crate::resolve::Flush;
use crate::verdict::State;

/// The mode of the socket: for the daemon's own user.
pub(super) const MODE: u32 = 0o600;

/// Most connections at once: an operator and a few scripts. Others wait until one ends.
const MOST_CONNECTIONS: usize = 4;

/// Longest time of a connection. A reload may read manifests over https, each within the time limit of a question.
const CONNECTION_TIME: Duration = Duration::from_secs(60);

/// Longest time for a head, for a body, between two requests, and for a reader that takes nothing.
const WAIT: Duration = Duration::from_secs(2);

/// Longest body: a filter of the log, or a name.
const MAX_BODY_BYTES: usize = 4 * 1024;

/// Pause after a connection could not be accepted, as on the daemon's other listeners.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What the admin socket is answered from.
#[derive(Clone)]
pub(super) struct AdminState {
    pub(super) in_force: Arc<InForce>,
    pub(super) operator: Arc<dyn Operator>,
    pub(super) started: Timestamp,
}

/// What is dropped from the caches, as it is asked for.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum FlushBody {
    All,
    Name(String),
    State(State),
    Owner(String),
    Cid(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FilterBody {
    filter: String,
}

/// Answers until it is dropped.
pub(super) async fn run(socket: UnixSocket, admin: AdminState) -> Infallible {
    let (router, places) = (router(admin), Arc::new(Semaphore::new(MOST_CONNECTIONS)));
    // Its connections are cut when the daemon ends.
    let (_end, ended) = watch::channel(false);
    let mut open = JoinSet::new();
    loop {
        let place = Arc::clone(&places).acquire_owned().await.expect("the semaphore is never closed");
        while open.try_join_next().is_some() {}
        match socket.accept().await {
            Ok((stream, _)) => {
                let (router, ended) = (router.clone(), ended.clone());
                open.spawn(async move {
                    let _place = place;
                    // Past its time it is cut.
                    let _ = timeout(CONNECTION_TIME, serve(stream, router, ended)).await;
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection to the admin socket could not be accepted");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn serve(stream: UnixStream, router: Router, ended: watch::Receiver<bool>) {
    let wait = if clresolve_core::mutant!("admin-waits") { CONNECTION_TIME } else { WAIT };
    let mut limits = HttpConfig::default();
    (limits.idle_timeout, limits.head_timeout, limits.read_timeout) = (wait, wait, wait);
    let activity = Arc::new(Activity::new());
    let handle = |request: hyper::Request<Body>| {
        activity.request_begins(false);
        let mut router = router.clone();
        async move { router.call(request).await.unwrap_or_else(|never| match never {}) }
    };
    // An error means that the operator's program has gone, or sent no HTTP.
    let _ = connection::serve(stream, &limits, &activity, handle, ended).await;
}

fn router(admin: AdminState) -> Router {
    Router::new()
        .route("/admin/state", get(state))
        .route("/admin/cache/flush", post(flush))
        .route("/admin/cache/{name}", get(held))
        .route("/admin/reload", post(reload))
        .route("/admin/log-level", put(log_level))
        .method_not_allowed_fallback(async || problem::refused(Refusal::MethodUnsupported, None))
        .fallback(async || problem::refused(Refusal::RouteUnknown, None))
        .with_state(admin)
}

/// What the daemon is, holds and follows, and the settings in force.
async fn state(Shared(admin): Shared<AdminState>) -> Json<Value> {
    let state = admin.in_force.state();
    Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "started": admin.started,
        "now": state.resolver.now(),
        "draining": state.is_draining(),
        "log": admin.operator.log_filter(),
        "cache": state.resolver.cache_sizes().await,
        "follow": state.resolver.followed(),
        "settings": admin.operator.settings().await,
    }))
}

/// What the cache holds about a name.
async fn held(Shared(admin): Shared<AdminState>, uri: Uri) -> Response {
    match parsed(&path::segment(&uri, 0)) {
        Ok(name) => {
            answer(&json!({ "name": name.as_str(), "held": admin.in_force.state().resolver.held_about(&name) }))
        }
        Err(refused) => refused.into_response(),
    }
}

async fn flush(Shared(admin): Shared<AdminState>, request: Request) -> Response {
    let asked = async { read::<FlushBody>(request).await?.try_into() };
    let what: Flush = match asked.await {
        Ok(what) => what,
        Err(refused) => return RequestError::into_response(refused),
    };
    let flushed = admin.in_force.state().resolver.flush(&what).await;
    tracing::info!(?what, names = flushed.names, "the operator flushed the cache");
    answer(&flushed)
}

async fn reload(Shared(admin): Shared<AdminState>) -> Response {
    match admin.operator.reload().await {
        Ok(Reread { file, is_unchanged, restart }) => answer(&json!({
            "file": file.display().to_string(),
            "unchanged": is_unchanged,
            "restart": restart.iter().map(Restart::to_string).collect::<Vec<_>>(),
        })),
        Err(why) => problem::refused(Refusal::ConfigurationRefused, Some(why.into())),
    }
}

async fn log_level(Shared(admin): Shared<AdminState>, request: Request) -> Response {
    let asked = match read::<Object<FilterBody>>(request).await {
        Ok(Object(asked)) => asked,
        Err(refused) => return refused.into_response(),
    };
    let before = admin.operator.log_filter();
    match admin.operator.set_log_filter(&asked.filter) {
        Ok(()) => answer(&json!({ "filter": admin.operator.log_filter(), "before": before })),
        Err(why) => problem::refused(Refusal::ConfigurationRefused, Some(why.into())),
    }
}

async fn read<T: for<'de> Deserialize<'de>>(request: Request) -> Result<T, RequestError> {
    let bytes = body::json(request, MAX_BODY_BYTES, WAIT).await?;
    serde_json::from_slice(&bytes).map_err(|error| RequestError::malformed(error.to_string()))
}

fn parsed(name: &str) -> Result<EnsName, RequestError> {
    EnsName::parse(name).map_err(|error| RequestError::malformed(error.to_string()))
}

fn answer(value: &impl Serialize) -> Response {
    let mut response = Response::new(Body::from(serde_json::to_vec(value).unwrap_or_default()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

impl TryFrom<FlushBody> for Flush {
    type Error = RequestError;

    fn try_from(asked: FlushBody) -> Result<Self, RequestError> {
        Ok(match asked {
            FlushBody::All => Self::All,
            FlushBody::Name(name) => Self::Name(parsed(&name)?),
            FlushBody::State(state) => Self::State(state),
            FlushBody::Owner(owner) => Self::Owner(owner),
            FlushBody::Cid(cid) => {
                let parsed = ContentId::parse(&cid).map_err(|error| RequestError::malformed(error.to_string()));
                Self::Cid(parsed?)
            }
        })
    }
}
