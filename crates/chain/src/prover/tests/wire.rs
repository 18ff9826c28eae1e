//! The prover over JSON-RPC to a sandbox chain.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use alloy_primitives::{Address, Bytes};
use alloy_rpc_client::RpcClient;
use alloy_rpc_types_eth::{Header, TransactionRequest};
use alloy_transport::TransportError;
use async_trait::async_trait;
use clresolve_core::name::EnsName;
use clresolve_sandbox::chain::{
    CustodyContract, EnsResolverKind, HostileResolverMode, SandboxChainBuilder, SandboxNameRegistration,
    SandboxRpcServer,
};
use clresolve_state::EnsContractAddresses;
use clresolve_state::contracts::NameMulticall;
use serde_json::{Value, json};
use url::Url;

use super::ledger::{ALICE, CHAIN};
use crate::failure::EndpointFailure;
use crate::prover::*;
use crate::request::eth_call_request;
use crate::testing::UnguardedHttpClient;
use crate::transport::{EndpointTransport, HttpRequestError, JsonRpcHttpClient};

/// Falsifies the reply to a method.
type Change = Box<dyn Fn(&str, &mut Value) + Send + Sync>;

/// An HTTP client for the sandbox that counts round trips and may falsify replies.
struct CountingTransport {
    open: UnguardedHttpClient,
    /// Number of sequential requests: each was sent after the answer to the previous one.
    rounds: AtomicUsize,
    change: Change,
}

#[async_trait]
impl JsonRpcHttpClient for CountingTransport {
    async fn post_json(
        &self,
        url: &Url,
        body: bytes::Bytes,
        cap: usize,
        limit: Duration,
    ) -> Result<bytes::Bytes, HttpRequestError> {
        let round = self.rounds.load(Ordering::Relaxed) + 1;
        let questions: Value = serde_json::from_slice(&body).unwrap();
        let reply = self.open.post_json(url, body, cap, limit).await?;
        self.rounds.fetch_max(round, Ordering::Relaxed);
        let mut reply: Value = serde_json::from_slice(&reply).unwrap();
        for question in questions.as_array().cloned().unwrap_or_else(|| vec![questions.clone()]) {
            let method = question["method"].as_str().unwrap();
            match &mut reply {
                Value::Array(replies) => {
                    let own = replies.iter_mut().find(|reply| reply["id"] == question["id"]).unwrap();
                    (self.change)(method, own);
                }
                single => (self.change)(method, single),
            }
        }
        Ok(reply.to_string().into())
    }
}

struct World {
    server: SandboxRpcServer,
    counting: Arc<CountingTransport>,
    rpc: RpcClient,
    header: Arc<HashedBlockHeader>,
    prover: CallProver,
}

impl World {
    async fn new(change: impl Fn(&str, &mut Value) + Send + Sync + 'static) -> Self {
        let mut builder = SandboxChainBuilder::new().unwrap();
        for registration in registrations() {
            builder.register_name(&registration).unwrap();
        }
        builder.seal_block("2026-11-20T12:00:00Z".parse().unwrap()).unwrap();
        let server = SandboxRpcServer::bind(Arc::new(builder.build().unwrap())).await.unwrap();
        let open = UnguardedHttpClient::new();
        let counting = Arc::new(CountingTransport { open, rounds: AtomicUsize::new(0), change: Box::new(change) });
        let http: Arc<dyn JsonRpcHttpClient> = Arc::clone(&counting) as _;
        let transport =
            EndpointTransport::new(http, server.url().parse().unwrap(), "sandbox".to_owned(), Duration::from_secs(20));
        let rpc = RpcClient::new(transport, true);
        let header: Header = rpc.request("eth_getBlockByNumber", ("finalized", false)).await.unwrap();
        let header = Arc::new(HashedBlockHeader::with_expected_hash(header.inner, header.hash).unwrap());
        Self { server, counting, rpc, header, prover: CallProver::new(CHAIN) }
    }

    /// The outcome over proven state, and its number of round trips.
    async fn computed(&self, name: &str) -> (Result<EvmCallOutcome, CallProverError>, usize) {
        let explain = |error: &TransportError| EndpointFailure::Unusable(error.to_string());
        let source = RpcStateSource { rpc: &self.rpc, explain: &explain };
        let mut session = CallProverSession::new(Arc::clone(&self.header));
        let before = self.counting.rounds.load(Ordering::Relaxed);
        let (to, data) = question(name);
        let call = EvmCall { to, data, gas: 16_000_000 };
        let outcome = self.prover.compute_call(&source, &mut session, &call, None).await;
        (outcome, self.counting.rounds.load(Ordering::Relaxed) - before)
    }

    async fn stated(&self, name: &str) -> EvmCallOutcome {
        let (to, data) = question(name);
        let call: TransactionRequest = eth_call_request(to, data);
        let answer: Bytes = self.rpc.request("eth_call", (call, self.header.block_id())).await.unwrap();
        EvmCallOutcome::Returned(answer)
    }
}

fn question(name: &str) -> (Address, Bytes) {
    let (name, contracts) = (EnsName::parse(name).unwrap(), EnsContractAddresses::default());
    let subject = NameMulticall::new(&name, &contracts);
    (
        contracts.multicall3,
        subject.aggregate_call(subject.resolve_texts_call(
            clresolve_core::records::TextRecordKey::ALL.map(clresolve_core::records::TextRecordKey::as_str),
        )),
    )
}

const NAMES: [&str; 10] = [
    "public.eth",
    "wrapped.eth",
    "sub.wild.eth",
    "offchain.eth",
    "nobody.eth",
    "bare.eth",
    "nocode.eth",
    "burn.eth",
    "garbage.eth",
    "a.deep.sub.public.eth",
];

fn registrations() -> Vec<SandboxNameRegistration> {
    let texts = [("cl.entry", "x402://public.eth/summarize/v1"), ("cl.owner", "owner.eth")];
    let texts = texts.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let with = |name: &str, resolver| SandboxNameRegistration {
        resolver,
        texts: BTreeMap::from(texts.clone()),
        ..SandboxNameRegistration::new(EnsName::parse(name).unwrap(), ALICE)
    };
    let bare = |name: &str, resolver| SandboxNameRegistration { texts: BTreeMap::new(), ..with(name, resolver) };
    let hostile = |mode| EnsResolverKind::Hostile { mode, arg: String::new() };
    vec![
        with("public.eth", EnsResolverKind::Public),
        SandboxNameRegistration {
            custody: CustodyContract::NameWrapper,
            ..with("wrapped.eth", EnsResolverKind::Public)
        },
        with("wild.eth", EnsResolverKind::Wildcard),
        with("offchain.eth", EnsResolverKind::Offchain { urls: vec!["https://ccip.example/".to_owned()] }),
        bare("bare.eth", EnsResolverKind::None),
        bare("nocode.eth", EnsResolverKind::Address(ALICE)),
        with("burn.eth", hostile(HostileResolverMode::Burn)),
        with("garbage.eth", hostile(HostileResolverMode::Garbage)),
    ]
}

#[tokio::test]
async fn what_is_computed_is_what_an_honest_endpoint_says() {
    let world = World::new(|_, _| {}).await;
    let mut seen = HashSet::new();
    for name in NAMES {
        let (computed, rounds) = world.computed(name).await;
        assert_eq!(computed, Ok(world.stated(name).await), "{name}");
        let warm = world.computed(name).await.1;
        assert!(rounds <= 3 && warm == 1, "{name}: {rounds} round trips, {warm} when code and reads are known");
        seen.insert(format!("{computed:?}"));
    }
    assert_eq!(seen.len(), NAMES.len(), "every name has an answer of its own");
    assert!(world.server.request_count() > 0);
}

#[tokio::test]
async fn an_endpoint_without_access_lists_will_do() {
    let world = World::new(|method, reply| {
        if method == "eth_createAccessList" {
            *reply =
                json!({"jsonrpc": "2.0", "id": reply["id"], "error": {"code": -32601, "message": "no such method"}});
        }
    })
    .await;
    for name in NAMES {
        let (computed, rounds) = world.computed(name).await;
        assert_eq!(computed, Ok(world.stated(name).await), "{name}");
        assert!(rounds <= 14, "{name}: {rounds} round trips");
    }
}

#[tokio::test]
async fn an_endpoint_without_proofs_is_named_as_such() {
    let world = World::new(|method, reply| {
        if method == "eth_getProof" {
            let error = json!({"code": -32000, "message": "distance to target block exceeds maximum proof window"});
            *reply = json!({"jsonrpc": "2.0", "id": reply["id"], "error": error});
        }
    })
    .await;
    let error = world.computed("public.eth").await.0.unwrap_err();
    assert!(
        matches!(&error, CallProverError::Endpoint(EndpointFailure::Unusable(cause)) if cause.contains("proof window"))
    );
}
