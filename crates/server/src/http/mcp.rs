//! `POST /mcp` serves the tools of the Model Context Protocol over HTTP, without sessions. Each call is limited like
//! any other question: its message occupies slots until the response is written, and its resolution needs one of the
//! client's permits.

use std::any::Any;
use std::iter;
use std::sync::Arc;

use async_trait::async_trait;
use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{Extension, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HOST};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use clresolve_core::reason::RefusalCode;
use clresolve_resolver::config::McpConfig;
use clresolve_resolver::cpu_pool::CpuPoolFullError;
use clresolve_resolver::cpu_share::{self, CpuJobUrgency, CpuTaskContext};
use clresolve_resolver::resolve::{NameQuestion, Resolver};
use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use rmcp::ServerHandler;
use rmcp::model::ServerJsonRpcMessage;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};

use super::admission::run_while_holding;
use super::body::{self, RequestBodyError};
use super::client_limits::{ClientIdentity, SlotReservation};
use super::in_force::CurrentService;
use super::request_slot::RequestSlot;
use super::state::AppState;
use crate::mcp::{
    self, MAX_MESSAGE_BYTES, McpBackend, McpServer, McpToolAnswer, McpToolFailure, ResolutionWithResolver,
};

/// The protocol's requirement on `Accept`.
const ACCEPT_BOTH: &str = "accept both application/json and text/event-stream";

/// Maximum number of bytes of a response that the connection receives at once.
const PIECE: usize = 16 * 1024;

/// `POST /mcp`
pub(super) async fn serve_mcp(
    State(state): State<Arc<AppState>>,
    Extension(in_force): Extension<Arc<CurrentService>>,
    Extension(client): Extension<ClientIdentity>,
    Extension(permit): Extension<RequestSlot>,
    request: Request,
) -> Response {
    let answered = answer_message(state, in_force, client, permit, request).await;
    let mut response = answered.unwrap_or_else(RequestBodyError::into_response);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

async fn answer_message(
    state: Arc<AppState>,
    in_force: Arc<CurrentService>,
    client: ClientIdentity,
    permit: RequestSlot,
    request: Request,
) -> Result<Response, RequestBodyError> {
    let (head, body) = request.into_parts();
    if let Some(error) = mcp_head_rejection(head.clone(), &state.mcp).await {
        return Err(error);
    }
    let request = Request::from_parts(head.clone(), body);
    let (bytes, slot) = body::read_document_body(request, &state, client, MAX_MESSAGE_BYTES).await?;
    let (bytes, slot) = (Bytes::from(bytes), Arc::new(slot));
    let work = state.cpu_task_context(client, mcp::message_urgency(&bytes));
    cpu_share::run_in_context(work, run_message(state, in_force, client, permit, head, bytes, slot)).await
}

/// The answer to a message. Whatever is called, its reading is as urgent as the tools that it names.
async fn run_message(
    state: Arc<AppState>,
    in_force: Arc<CurrentService>,
    client: ClientIdentity,
    permit: RequestSlot,
    head: Parts,
    bytes: Bytes,
    slot: Arc<SlotReservation>,
) -> Result<Response, RequestBodyError> {
    let reading = state.resolver.cpu_pool().try_run({
        let (bytes, slot) = (bytes.clone(), Arc::clone(&slot));
        move || {
            let read = mcp::parse_message(&bytes).map(drop);
            drop(slot);
            read
        }
    });
    if let Err(error) = reading.await.map_err(|CpuPoolFullError| RefusalCode::Overloaded)? {
        return Ok(hold_until_body_sent(invalid_message_response(&error), (permit, slot)));
    }
    let (rules, resolver) = (transport_config(&state.mcp), state.resolver.clone());
    let server = McpServer::new(HttpMcpBackend { state, in_force, client, slot: Arc::clone(&slot) });
    let service =
        StreamableHttpService::new(move || Ok(server.clone()), Arc::new(NeverSessionManager::default()), rules);
    // The transport parses the message again and serializes the response.
    let handle = async move { service.handle(Request::from_parts(head, Body::from(bytes))).await.map(Body::new) };
    let response = resolver.cpu_pool().poll_future_on_pool(handle).await;
    match transport_refusal(&response) {
        Some(refusal) => Err(refusal.into()),
        None => Ok(hold_until_body_sent(response, (permit, slot))),
    }
}

/// The refusal that corresponds to a transport error whose body is not a JSON-RPC message.
fn transport_refusal(response: &Response) -> Option<RefusalCode> {
    let is_message = response.headers().get(CONTENT_TYPE).is_some_and(|media| media == "application/json");
    match response.status() {
        status if is_message || status.is_success() => None,
        status if status.is_server_error() => Some(RefusalCode::InternalError),
        _ => Some(RefusalCode::RequestMalformed),
    }
}

/// Wraps the response so that its body keeps `held` until the connection has consumed it. Memory used by a slow reader
/// is thereby counted like the memory of its request. The body is split into pieces, since the connection consumes
/// whole pieces.
fn hold_until_body_sent(response: Response, held: impl Send + 'static) -> Response {
    let (mut head, body) = response.into_parts();
    if let Some(length) = body.size_hint().exact() {
        head.headers.insert(CONTENT_LENGTH, length.into());
    }
    let pieces = body.into_data_stream().flat_map(|part| stream::iter(split_body_chunk(part)));
    let pieces = pieces.map(move |piece| {
        let _held = &held;
        piece
    });
    Response::from_parts(head, Body::from_stream(pieces))
}

/// Splits a part of a body into pieces.
fn split_body_chunk(part: Result<Bytes, axum::Error>) -> impl Iterator<Item = Result<Bytes, axum::Error>> {
    let (mut rest, error) = part.map_or_else(|error| (Bytes::new(), Some(error)), |bytes| (bytes, None));
    let pieces = iter::from_fn(move || (!rest.is_empty()).then(|| rest.split_to(rest.len().min(PIECE))));
    pieces.map(Ok).chain(error.map(Err))
}

/// Why the transport rejects any request with this head. `Host`, `Origin` and `Accept` are checked before the body is
/// read, so that a page without permission cannot make the daemon read one.
async fn mcp_head_rejection(head: Parts, config: &McpConfig) -> Option<RequestBodyError> {
    if !has_readable_host(&head) {
        return Some(RefusalCode::HostUnexpected.into());
    }
    let service = StreamableHttpService::new(
        || Ok(McpHeadCheckServer),
        Arc::new(NeverSessionManager::default()),
        transport_config(config),
    );
    match service.handle(Request::from_parts(head, Body::empty())).await.status() {
        StatusCode::FORBIDDEN => Some(RefusalCode::HostUnexpected.into()),
        StatusCode::NOT_ACCEPTABLE => Some(RequestBodyError::not_acceptable(ACCEPT_BOTH)),
        _ => None,
    }
}

/// Whether the transport can parse the requested host. If it cannot, the transport responds with an error that it also
/// uses for other requests.
fn has_readable_host(head: &Parts) -> bool {
    match head.headers.get(HOST) {
        Some(host) => host.to_str().is_ok_and(|host| Authority::try_from(host).is_ok()),
        None => head.uri.authority().is_some(),
    }
}

/// A server without tools, used to check heads.
#[derive(Clone)]
struct McpHeadCheckServer;

impl ServerHandler for McpHeadCheckServer {}

/// The response to a body that is not a JSON-RPC message.
fn invalid_message_response(error: &ServerJsonRpcMessage) -> Response {
    let mut response = Response::new(Body::from(serde_json::to_vec(error).unwrap_or_default()));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Which requests the transport accepts. It rejects pages that use DNS rebinding, and pages of other origins.
fn transport_config(config: &McpConfig) -> StreamableHttpServerConfig {
    let rules = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(MAX_MESSAGE_BYTES)
        .with_allowed_hosts(config.hosts.iter().cloned())
        .with_allowed_origins(config.origins.iter().cloned())
        .enforce_origin_validation();
    let rules = if clresolve_core::mutant!("mcp-any-host") { rules.disable_allowed_hosts() } else { rules };
    if clresolve_core::mutant!("mcp-any-origin") { rules.disable_allowed_origins() } else { rules }
}

/// A client of the daemon, within its limits.
struct HttpMcpBackend {
    state: Arc<AppState>,
    in_force: Arc<CurrentService>,
    client: ClientIdentity,
    /// The slots of its message. Work on the message holds them until it ends.
    slot: Arc<SlotReservation>,
}

#[async_trait]
impl McpBackend for HttpMcpBackend {
    async fn resolve_question(&self, question: NameQuestion) -> Result<ResolutionWithResolver, RefusalCode> {
        let (state, answered) = self.in_force.resolve_under_current_config(&self.state, self.client, question).await?;
        Ok(ResolutionWithResolver { resolver: state.resolver.clone(), resolution: answered.resolution })
    }

    async fn run_as_resolution(
        &self,
        work: BoxFuture<'static, Result<McpToolAnswer, McpToolFailure>>,
    ) -> Result<McpToolAnswer, McpToolFailure> {
        self.state.admission.run_as_resolution(self.client, run_while_holding(Arc::clone(&self.slot), work)).await?
    }

    fn message_permit(&self) -> Arc<dyn Any + Send + Sync> {
        Arc::clone(&self.slot) as _
    }

    fn cpu_task_context(&self, urgency: CpuJobUrgency) -> Option<CpuTaskContext> {
        Some(self.state.cpu_task_context(self.client, urgency))
    }

    fn resolver(&self) -> &Resolver {
        &self.state.resolver
    }

    fn default_profile(&self) -> &str {
        &self.state.default_profile
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_that_waits_to_be_written_keeps_its_place() {
        let witness = Arc::new(());
        let written = Response::new(Body::from(vec![b'x'; 4 * PIECE + 1]));
        let response = hold_until_body_sent(written, Arc::clone(&witness));
        assert_eq!(response.headers()[CONTENT_LENGTH], (4 * PIECE + 1).to_string());
        let mut body = response.into_body().into_data_stream();
        let mut lengths = Vec::new();
        while let Some(piece) = body.next().await {
            assert_eq!(Arc::strong_count(&witness), 2, "the slot is held");
            lengths.push(piece.expect("bytes").len());
        }
        assert_eq!(lengths, [PIECE, PIECE, PIECE, PIECE, 1]);
        drop(body);
        assert_eq!(Arc::strong_count(&witness), 1, "the slot is free");
    }
}
