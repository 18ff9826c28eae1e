//! The admin socket, through which the operator inspects and changes a running daemon. It is a Unix socket that only
//! the daemon's user may connect to. None of its routes is available over TCP.

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
use clresolve_core::json::object::ObjectOnlyValue;
use clresolve_core::name::EnsName;
use clresolve_core::reason::RefusalCode;
use clresolve_core::state::TrustState;
use clresolve_ipfs::ContentId;
use clresolve_resolver::config::HttpServerConfig;
use clresolve_resolver::resolve::CacheFlushScope;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tower::Service as _;

use super::activity::ConnectionActivity;
use super::body::{self, RequestBodyError};
use super::in_force::CurrentService;
use super::operator::{DaemonOperator, ReloadOutcome};
use super::reload::StartupSetting;
use super::unix_socket::UnixSocketListener;
use super::{connection, path, problem};

/// File mode of the socket: only the daemon's own user may connect.
pub(super) const MODE: u32 = 0o600;

/// Maximum number of concurrent connections: an operator and a few scripts. Further connections wait.
const MOST_CONNECTIONS: usize = 4;

/// Maximum lifetime of a connection. A reload may fetch manifests over HTTPS, each within the time limit of a
/// resolution.
const CONNECTION_TIME: Duration = Duration::from_secs(60);

/// Timeout for a head, for a body, between two requests, and for a client that does not read its response.
const WAIT: Duration = Duration::from_secs(2);

/// Maximum size of a body: a log filter or a name.
const MAX_BODY_BYTES: usize = 4 * 1024;

/// Pause after accepting a connection failed, as on the daemon's other listeners.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

#[derive(Clone)]
pub(super) struct AdminState {
    pub(super) in_force: Arc<CurrentService>,
    pub(super) operator: Arc<dyn DaemonOperator>,
    pub(super) started: Timestamp,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum CacheFlushRequest {
    All,
    Name(String),
    State(TrustState),
    Owner(String),
    Cid(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetLogFilterRequest {
    filter: String,
}

/// Serves the admin socket until the future is dropped.
pub(super) async fn serve_admin_socket(socket: UnixSocketListener, admin: AdminState) -> Infallible {
    let (router, slots) = (admin_router(admin), Arc::new(Semaphore::new(MOST_CONNECTIONS)));
    // When the daemon ends, dropping `_end` closes the connections.
    let (_end, ended) = watch::channel(false);
    let mut open = JoinSet::new();
    loop {
        let slot = Arc::clone(&slots).acquire_owned().await.expect("the semaphore is never closed");
        while open.try_join_next().is_some() {}
        match socket.accept().await {
            Ok((stream, _)) => {
                let (router, ended) = (router.clone(), ended.clone());
                open.spawn(async move {
                    let _slot = slot;
                    // A connection that exceeds its lifetime is closed.
                    let _ = timeout(CONNECTION_TIME, serve_admin_connection(stream, router, ended)).await;
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection to the admin socket could not be accepted");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn serve_admin_connection(stream: UnixStream, router: Router, ended: watch::Receiver<bool>) {
    let wait = if clresolve_core::mutant!("admin-waits") { CONNECTION_TIME } else { WAIT };
    let mut limits = HttpServerConfig::default();
    (limits.idle_timeout, limits.head_timeout, limits.read_timeout) = (wait, wait, wait);
    let activity = Arc::new(ConnectionActivity::new());
    let handle = |request: hyper::Request<Body>| {
        activity.begin_request(false);
        let mut router = router.clone();
        async move { router.call(request).await.unwrap_or_else(|never| match never {}) }
    };
    // An error means that the operator's program disconnected or did not speak HTTP.
    let _ = connection::serve_connection(stream, &limits, &activity, handle, ended).await;
}

fn admin_router(admin: AdminState) -> Router {
    Router::new()
        .route("/admin/state", get(report_daemon_state))
        .route("/admin/cache/flush", post(flush_caches))
        .route("/admin/cache/{name}", get(report_cached_verdicts))
        .route("/admin/reload", post(reload_config))
        .route("/admin/log-level", put(change_log_filter))
        .method_not_allowed_fallback(async || problem::refusal_response(RefusalCode::MethodUnsupported, None))
        .fallback(async || problem::refusal_response(RefusalCode::RouteUnknown, None))
        .with_state(admin)
}

/// The daemon's version and caches, the newest head of the chain, and the settings in force.
async fn report_daemon_state(Shared(admin): Shared<AdminState>) -> Json<Value> {
    let state = admin.in_force.state();
    Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "started": admin.started,
        "now": state.resolver.now(),
        "draining": state.is_draining(),
        "log": admin.operator.log_filter(),
        "cache": state.resolver.cache_sizes().await,
        "head": state.resolver.chain_head_status(),
        "settings": admin.operator.settings_in_force().await,
    }))
}

async fn report_cached_verdicts(Shared(admin): Shared<AdminState>, uri: Uri) -> Response {
    match parse_ens_name(&path::decoded_segment(&uri, 0)) {
        Ok(name) => json_answer(
            &json!({ "name": name.as_str(), "held": admin.in_force.state().resolver.cached_verdict_documents(&name) }),
        ),
        Err(refused) => refused.into_response(),
    }
}

async fn flush_caches(Shared(admin): Shared<AdminState>, request: Request) -> Response {
    let asked = async { read_json::<CacheFlushRequest>(request).await?.try_into() };
    let what: CacheFlushScope = match asked.await {
        Ok(what) => what,
        Err(refused) => return RequestBodyError::into_response(refused),
    };
    let flushed = admin.in_force.state().resolver.flush_caches(&what).await;
    tracing::info!(?what, names = flushed.names, "the operator flushed the cache");
    json_answer(&flushed)
}

async fn reload_config(Shared(admin): Shared<AdminState>) -> Response {
    match admin.operator.reload_config().await {
        Ok(ReloadOutcome { file, is_unchanged, restart }) => json_answer(&json!({
            "file": file.display().to_string(),
            "unchanged": is_unchanged,
            "restart": restart.iter().map(StartupSetting::to_string).collect::<Vec<_>>(),
        })),
        Err(why) => problem::refusal_response(RefusalCode::ConfigurationRefused, Some(why.into())),
    }
}

async fn change_log_filter(Shared(admin): Shared<AdminState>, request: Request) -> Response {
    let asked = match read_json::<ObjectOnlyValue<SetLogFilterRequest>>(request).await {
        Ok(ObjectOnlyValue(asked)) => asked,
        Err(refused) => return refused.into_response(),
    };
    let before = admin.operator.log_filter();
    match admin.operator.set_log_filter(&asked.filter) {
        Ok(()) => json_answer(&json!({ "filter": admin.operator.log_filter(), "before": before })),
        Err(why) => problem::refusal_response(RefusalCode::ConfigurationRefused, Some(why.into())),
    }
}

async fn read_json<T: for<'de> Deserialize<'de>>(request: Request) -> Result<T, RequestBodyError> {
    let bytes = body::read_body(request, MAX_BODY_BYTES, WAIT).await?;
    serde_json::from_slice(&bytes).map_err(|error| RequestBodyError::malformed(error.to_string()))
}

fn parse_ens_name(name: &str) -> Result<EnsName, RequestBodyError> {
    EnsName::parse(name).map_err(|error| RequestBodyError::malformed(error.to_string()))
}

fn json_answer(value: &impl Serialize) -> Response {
    let mut response = Response::new(Body::from(serde_json::to_vec(value).unwrap_or_default()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

impl TryFrom<CacheFlushRequest> for CacheFlushScope {
    type Error = RequestBodyError;

    fn try_from(asked: CacheFlushRequest) -> Result<Self, RequestBodyError> {
        Ok(match asked {
            CacheFlushRequest::All => Self::All,
            CacheFlushRequest::Name(name) => Self::Name(parse_ens_name(&name)?),
            CacheFlushRequest::State(state) => Self::State(state),
            CacheFlushRequest::Owner(owner) => Self::Owner(owner),
            CacheFlushRequest::Cid(cid) => {
                let parsed = ContentId::parse(&cid).map_err(|error| RequestBodyError::malformed(error.to_string()));
                Self::Cid(parsed?)
            }
        })
    }
}
