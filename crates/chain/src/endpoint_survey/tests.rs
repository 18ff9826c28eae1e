//! Each endpoint by itself, over the sandbox's chain: honest, with a ledger of its own, behind, lying and silent.

use std::collections::BTreeMap;

use alloy_primitives::Bytes;
use clresolve_core::payment::CoinType;
use clresolve_core::records::Key;
use clresolve_sandbox::chain::{ChainBuilder, NameRegistration, RpcFault, RpcServer, SandboxChain};
use url::Url;

use super::*;
use crate::ccip::{CcipReadGatewayError, CcipReadRequest};
use crate::testing::config;
use crate::transport::PostError;

const HOLDER: Address = Address::repeat_byte(7);

/// As many names as one call takes.
const FULL: usize = 20;

/// The way to the endpoints.
struct Door(reqwest::Client);

#[async_trait::async_trait]
impl HttpPost for Door {
    async fn post(&self, url: &Url, body: bytes::Bytes, _: usize, limit: Duration) -> Result<bytes::Bytes, PostError> {
        let reply = async { self.0.post(url.clone()).body(body).send().await?.bytes().await };
        match timeout(limit, reply).await {
            Ok(reply) => reply.map_err(|error| PostError::Connection(error.to_string())),
            Err(_) => Err(PostError::Timeout(limit)),
        }
    }
}

/// Knows nothing of look-ups off the chain.
struct NoGateway;

#[async_trait::async_trait]
impl CcipReadGateway for NoGateway {
    async fn request(&self, _: &CcipReadRequest, _: usize) -> Result<Bytes, CcipReadGatewayError> {
        panic!("no name is off the chain")
    }
}

fn name(number: usize) -> EnsName {
    EnsName::parse(&format!("agent-{number}.eth")).unwrap()
}

/// A chain on which the agents have this entry, in its second block.
fn chain(entry: &str) -> Arc<SandboxChain> {
    let mut builder = ChainBuilder::new().unwrap();
    let mut time: Timestamp = "2026-11-20T12:00:00Z".parse().unwrap();
    for block in 0..2 {
        for number in (0..FULL).filter(|_| block == 1) {
            let texts = BTreeMap::from([("cl.entry".to_owned(), entry.to_owned())]);
            let addresses = BTreeMap::from([(CoinType::ETHER, HOLDER.to_vec().into())]);
            let agent = NameRegistration { texts, addresses, ..NameRegistration::new(name(number), HOLDER) };
            builder.register(&agent).unwrap();
        }
        time += jiff::SignedDuration::from_secs(12);
        builder.seal(time).unwrap();
    }
    builder.finalize().unwrap();
    Arc::new(builder.build().unwrap())
}

fn survey(servers: &[RpcServer], timeout: Duration) -> EndpointSurvey {
    let config = ChainConfig { timeout, hedge_after: timeout, ccip: true, ..config(servers) };
    let http: Arc<dyn HttpPost> = Arc::new(Door(reqwest::Client::builder().no_proxy().build().unwrap()));
    EndpointSurvey::new(&config, &http, Arc::new(NoGateway), &(Arc::new(Timestamp::now) as Clock))
}

async fn server(chain: &Arc<SandboxChain>, fault: RpcFault) -> RpcServer {
    let server = RpcServer::bind(Arc::clone(chain)).await.unwrap();
    server.set_fault(fault);
    server
}

/// A time limit that a busy machine does not reach.
const UNHURRIED: Duration = Duration::from_secs(60);

fn entry(statement: &EndpointStatement) -> Option<&str> {
    match statement {
        EndpointStatement::Statement(statement) => match &statement.answer {
            Answer::Records(found) => found.records.text(Key::Entry),
            other => panic!("{other:?}"),
        },
        _ => None,
    }
}

#[tokio::test]
async fn each_endpoint_speaks_for_itself() {
    let honest = chain("x402://honest");
    let other_ledger = chain("x402://other");
    let servers = [
        server(&honest, RpcFault::None).await,
        server(&other_ledger, RpcFault::None).await,
        server(&honest, RpcFault::OtherBlocks).await,
        server(&honest, RpcFault::OtherRecords).await,
        server(&honest, RpcFault::Garbage).await,
        server(&honest, RpcFault::Html).await,
    ];
    let said = survey(&servers, UNHURRIED).ask(&name(0), &honest.finalized()).await;
    let (labels, statements): (Vec<_>, Vec<_>) = said.into_iter().unzip();
    assert_eq!(labels, (0..6).map(|number| format!("node-{number}")).collect::<Vec<_>>());
    assert_eq!(entry(&statements[0]), Some("x402://honest"));
    assert_eq!(statements[1..3], [EndpointStatement::OtherBlock, EndpointStatement::OtherBlock]);
    assert_eq!(entry(&statements[3]), Some("x403://honest"));
    assert_eq!(statements[4..], [EndpointStatement::NoAnswer, EndpointStatement::NoAnswer]);
}

#[tokio::test]
async fn an_endpoint_that_is_behind_does_not_have_the_block() {
    let honest = chain("x402://honest");
    let servers = [server(&honest, RpcFault::None).await];
    let ahead = Block { number: honest.finalized().number + 1, ..honest.finalized() };
    let survey = survey(&servers, UNHURRIED);
    for _ in 0..2 {
        assert_eq!(survey.ask(&name(0), &ahead).await, [("node-0".to_owned(), EndpointStatement::NoBlock)]);
    }
    assert_eq!(servers[0].requests(), 1, "it is asked for a block once");
}

#[tokio::test]
async fn names_are_asked_about_together_and_a_block_once() {
    let honest = chain("x402://honest");
    let servers = [server(&honest, RpcFault::None).await, server(&honest, RpcFault::None).await];
    let survey = survey(&servers, UNHURRIED);
    for _ in 0..2 {
        let said = join_all((0..FULL).map(async |number| survey.ask(&name(number), &honest.finalized()).await)).await;
        assert!(said.iter().flatten().all(|(_, statement)| entry(statement) == Some("x402://honest")));
    }
    for server in &servers {
        assert_eq!(server.requests(), 1 + 2, "for the block, and for each twenty names");
    }
}

#[tokio::test]
async fn an_endpoint_that_stalls_is_asked_once_and_holds_up_no_other() {
    let honest = chain("x402://honest");
    let servers = [server(&honest, RpcFault::Stall).await, server(&honest, RpcFault::None).await];
    let survey = survey(&servers, Duration::from_secs(3));
    let said = join_all((0..FULL).map(async |number| survey.ask(&name(number), &honest.finalized()).await)).await;
    for of_name in said {
        assert_eq!(of_name[0], ("node-0".to_owned(), EndpointStatement::NoAnswer));
        assert_eq!(entry(&of_name[1].1), Some("x402://honest"));
    }
    assert_eq!(servers[0].requests(), 1);
}
