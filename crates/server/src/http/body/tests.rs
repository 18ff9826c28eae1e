//! A client that disconnects frees no memory early: its document keeps its slots until all work on it has ended.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Extension, State};
use clresolve_resolver::cpu_pool::{CpuPool, MAX_THREADS, OccupiedCpuPool};
use clresolve_resolver::resolve::Resolver;
use clresolve_resolver::sandbox::Sandbox;
use serde_json::json;

use super::*;
use crate::http::in_force::CurrentService;
use crate::http::{agent_requests, build_service, decisions, lint, receipts};

const NAME: &str = "summarizeagent.eth";
const CLIENT: ClientIdentity = ClientIdentity::Address(IpAddr::V4(Ipv4Addr::LOCALHOST));

/// A daemon on the sandbox, without a listener, that has [`NAME`] in its cache.
struct Daemon {
    in_force: Arc<CurrentService>,
    _sandbox: Sandbox,
}

impl Daemon {
    async fn start() -> Self {
        let sandbox = Sandbox::start().await.expect("it starts");
        let mut config = sandbox.config();
        config.timeout = Duration::from_secs(120);
        let resolver = Resolver::new(&config).await.expect("its configuration is good");
        let state = AppState::new(resolver.clone(), &config, None, None);
        // A reading at a new head may start a resolution, whose jobs these tests would mistake for theirs.
        state.following.stop();
        resolver.resolve(NAME).await;
        Self { in_force: Arc::new(CurrentService::new(build_service(state))), _sandbox: sandbox }
    }

    fn state(&self) -> Arc<AppState> {
        self.in_force.state()
    }

    async fn decide(&self, body: serde_json::Value) -> Response {
        let (state, in_force) = (State(self.state()), Extension(Arc::clone(&self.in_force)));
        decisions::serve_decision(state, in_force, Extension(CLIENT), posted(body)).await
    }

    /// Starts `question`, disconnects once it has a job in the pool, and returns whether its document kept its slots
    /// until then.
    async fn keeps_its_place(&self, question: impl Future<Output = Response>, busy: OccupiedCpuPool) -> bool {
        let (state, pool) = (self.state(), Arc::clone(self.state().resolver.cpu_pool()));
        OccupiedCpuPool::wait_for_jobs(&pool, MAX_THREADS).await;
        let mut question = Box::pin(question);
        handed_over(&mut question, &pool).await;
        drop(question);
        let kept = !state.documents.is_empty();
        busy.release().await;
        while !state.documents.is_empty() {
            tokio::task::yield_now().await;
        }
        kept
    }
}

/// Polls `question` until the busy pool has received a job from it.
async fn handed_over(question: &mut (impl Future<Output = Response> + Unpin), pool: &CpuPool) {
    tokio::select! {
        response = question => panic!("it was answered: {}", response.status()),
        () = OccupiedCpuPool::wait_for_jobs(pool, MAX_THREADS + 1) => {}
    }
}

fn posted(body: serde_json::Value) -> Request {
    let request = Request::post("/").header(CONTENT_TYPE, "application/json");
    request.body(Body::from(body.to_string())).expect("a request")
}

fn about_a_payment() -> serde_json::Value {
    json!({"name": NAME, "verb": "summarize", "paymentRequired": {}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_hangs_up_frees_no_place_before_its_document_is_read() {
    let daemon = Daemon::start().await;
    let (state, client) = (|| State(daemon.state()), || Extension(CLIENT));
    let busy = || OccupiedCpuPool::occupy_all(daemon.state().resolver.cpu_pool());
    let receipt = json!({"name": NAME, "receipt": {}});
    let request = json!({"name": NAME, "verb": "summarize", "request": {}});
    assert!(daemon.keeps_its_place(daemon.decide(about_a_payment()), busy()).await, "decisions");
    assert!(daemon.keeps_its_place(lint::lint_card(state(), client(), posted(json!({}))), busy()).await, "lint");
    assert!(
        daemon.keeps_its_place(receipts::serve_verification(state(), client(), posted(receipt)), busy()).await,
        "receipts"
    );
    assert!(
        daemon.keeps_its_place(agent_requests::check_agent_request(state(), client(), posted(request)), busy()).await,
        "requests"
    );
}

/// Small questions from one client use a small part of its slots, even on all its connections. A body whose head has no
/// `Content-Length` uses as many slots as its route permits.
#[tokio::test]
async fn a_body_takes_as_many_places_as_its_head_announces() {
    const LIMIT: usize = 1 << 20;
    let daemon = Daemon::start().await;
    let (state, connections) = (daemon.state(), daemon.state().http.connections_per_client);
    let take = async |announced: Option<&str>| {
        let mut request = posted(json!({}));
        if let Some(length) = announced {
            request.headers_mut().insert(CONTENT_LENGTH, length.parse().expect("a value"));
        }
        read_document_body(request, &state, CLIENT, LIMIT).await.map(|(_, slot)| slot)
    };
    let mut held = Vec::new();
    for _ in 0..connections {
        held.push(take(Some("2")).await.expect("a small body has its slot"));
    }
    let few = connections / 2 - 1;
    drop(held.split_off(few));
    while held.len() < connections
        && let Ok(slot) = take(None).await
    {
        held.push(slot);
    }
    let unannounced = held.len() - few;
    assert!((1..=8).contains(&unannounced), "{unannounced} of them are as large as the route permits");
    assert_eq!(take(Some("1048576")).await.err().map(|error| error.refusal), Some(RefusalCode::ClientOverQuota));
    take(Some("2")).await.expect("a small one finds its slot beside them");
}

/// The question has been parsed, and judging it waits.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_hangs_up_frees_no_place_before_its_payment_is_judged() {
    let daemon = Daemon::start().await;
    let pool = Arc::clone(daemon.state().resolver.cpu_pool());
    let first = OccupiedCpuPool::occupy_all(&pool);
    OccupiedCpuPool::wait_for_jobs(&pool, MAX_THREADS).await;
    let mut question = Box::pin(daemon.decide(about_a_payment()));
    handed_over(&mut question, &pool).await;
    let busy = OccupiedCpuPool::occupy_all(&pool);
    OccupiedCpuPool::wait_for_jobs(&pool, 2 * MAX_THREADS + 1).await;
    // The parsing job ends. The judging job will queue behind the running ones.
    first.release().await;
    assert!(daemon.keeps_its_place(question, busy).await);
}
