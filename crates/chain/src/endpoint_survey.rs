//! [`EndpointSurvey`]: what each endpoint by itself says of a name, at a block that was read before.
//!
//! A reading asks as many endpoints as must agree. What all the others would have said is a question of audits. An
//! endpoint shows once for each block whether it has it, and is then asked about names in batches. Nothing that is said
//! here is vouched for by anybody else.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::{Address, B256};
use alloy_rpc_client::RpcClient;
use clresolve_core::name::EnsName;
use clresolve_core::payment::Coins;
use clresolve_core::reading::{Answer, Block, BlockSelector, ChainError};
use clresolve_state::Contracts;
use clresolve_state::contracts::Findings;
use futures_util::future::join_all;
use jiff::Timestamp;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::answers::Answers;
use crate::batch::Batches;
use crate::ccip::CcipReadGateway;
use crate::endpoint::RpcEndpoint;
use crate::failure::Failure;
use crate::pool::{ChainConfig, Clock};
use crate::query::Query;
use crate::quorum_transport::QuorumTransport;
use crate::request::by_hash;
use crate::transport::HttpPost;

/// How long a name waits for others that are asked about with it. Names of an audit come here one by one, as the sources
/// of their cards have answered.
const WAIT: Duration = Duration::from_secs(1);

/// Longest time that an endpoint has for what it says of a name, in time limits of one request: one for the header, a
/// quarter for each of the five requests in which a batch is halved, one for the name alone, one for look-ups off the
/// chain.
const PATIENCE: u32 = 5;

/// What an endpoint says of a name at a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndpointStatement {
    /// It has the block, and says this of the name there.
    Statement(Box<NameStatement>),
    /// It has the block, and says that the name's resolver fails there.
    ResolverFails,
    /// It has another block at this height.
    OtherBlock,
    /// It does not have the block, or not the state of it.
    NoBlock,
    /// It gave no usable answer in time, now or a short time ago.
    NoAnswer,
}

/// What one block says of a name by the word of one endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameStatement {
    /// What the name's resolver says.
    pub answer: Answer,
    /// The address that holds the name.
    pub holder: Option<Address>,
    /// Expiry of the registration, where it can be read.
    pub expiry: Option<Timestamp>,
}

/// Asks each endpoint of a configuration.
pub struct EndpointSurvey {
    endpoints: Vec<SurveyedEndpoint>,
    contracts: Contracts,
    coins: Coins,
    answers: Answers,
    batches: Batches,
    limit: Duration,
}

impl EndpointSurvey {
    /// Asks every endpoint of `config`, whatever it demands, through `http`, the door for the operator's URLs, under
    /// `clock`. Look-ups are followed through `gateway`, which must keep to the rules for foreign URLs.
    pub fn new(
        config: &ChainConfig,
        http: &Arc<dyn HttpPost>,
        gateway: Arc<dyn CcipReadGateway>,
        clock: &Clock,
    ) -> Self {
        let surveyed = |endpoint: &crate::Endpoint| {
            SurveyedEndpoint::new(
                RpcEndpoint::new(endpoint.clone(), Arc::clone(http), config.timeout),
                Arc::clone(clock),
            )
        };
        Self {
            endpoints: config.endpoints.iter().map(surveyed).collect(),
            contracts: config.contracts,
            coins: config.coins.clone(),
            answers: Answers::new(config, gateway),
            batches: Batches::waiting(config, WAIT),
            limit: config.timeout * PATIENCE + WAIT,
        }
    }

    /// What each endpoint says of `name` at `block`: by label, in the order of the configuration.
    pub async fn ask(&self, name: &EnsName, block: &Block) -> Vec<(String, EndpointStatement)> {
        let query = Arc::new(Query::walk(name, &self.contracts, &self.coins));
        let of_each = self.endpoints.iter().map(async |surveyed| {
            let statement = timeout(self.limit, self.ask_one(surveyed, &query, block)).await;
            (surveyed.endpoint.label.clone(), statement.unwrap_or(EndpointStatement::NoAnswer))
        });
        join_all(of_each).await
    }

    async fn ask_one(&self, surveyed: &SurveyedEndpoint, query: &Arc<Query>, block: &Block) -> EndpointStatement {
        match surveyed.held(block).await {
            Ok(HeldBlock::Same) => {}
            Ok(HeldBlock::Other) => return EndpointStatement::OtherBlock,
            Ok(HeldBlock::Missing) => return EndpointStatement::NoBlock,
            Err(statement) => return statement,
        }
        let SurveyedEndpoint { endpoint, client, .. } = surveyed;
        let label = std::slice::from_ref(&endpoint.label);
        let findings = self.batches.ask(client, label, query, block).await;
        match surveyed.noted(findings) {
            Ok(findings) => self.statement(client, query, findings, block).await,
            Err(statement) => statement,
        }
    }

    /// What findings say, with look-ups off the chain as this endpoint leads them.
    async fn statement(
        &self,
        client: &RpcClient,
        query: &Query,
        findings: Findings,
        block: &Block,
    ) -> EndpointStatement {
        match self.answers.both(client, query, &findings, Ok(&findings), by_hash(block)).await {
            Ok(answer) => {
                let Findings { holder, expiry, .. } = findings;
                EndpointStatement::Statement(Box::new(NameStatement { answer, holder, expiry }))
            }
            Err(ChainError::Resolver(_)) => EndpointStatement::ResolverFails,
            Err(_) => EndpointStatement::NoAnswer,
        }
    }
}

/// An endpoint, and whether it has the block at which names are read.
struct SurveyedEndpoint {
    endpoint: Arc<RpcEndpoint>,
    /// The endpoint alone, as a client.
    client: RpcClient,
    /// The last block that it was asked for, and what it has there. Whoever asks holds back the others.
    held: Mutex<Option<(B256, HeldBlock)>>,
    clock: Clock,
}

/// The block that an endpoint has at some height.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeldBlock {
    /// The one that is asked for.
    Same,
    /// Another one.
    Other,
    /// None.
    Missing,
}

impl SurveyedEndpoint {
    fn new(endpoint: RpcEndpoint, clock: Clock) -> Self {
        let endpoint = Arc::new(endpoint);
        let alone = QuorumTransport::new(vec![Arc::clone(&endpoint)], Vec::new(), 1, Duration::MAX);
        Self { endpoint, client: RpcClient::new(alone, false), held: Mutex::new(None), clock }
    }

    /// What it has at the height of `block`. It is asked once for a block, and not for a while after a failure, so that one
    /// that stalls holds up few names.
    async fn held(&self, block: &Block) -> Result<HeldBlock, EndpointStatement> {
        let mut held = self.held.lock().await;
        if self.endpoint.rests((self.clock)()) {
            return Err(EndpointStatement::NoAnswer);
        }
        if let Some((hash, held)) = *held
            && hash == block.hash
        {
            return Ok(held);
        }
        let found = match self.noted(self.endpoint.header(BlockSelector::Number(block.number)).await) {
            Ok((_, own)) if own.hash == block.hash => HeldBlock::Same,
            Ok(_) => HeldBlock::Other,
            Err(EndpointStatement::NoBlock) => HeldBlock::Missing,
            Err(statement) => return Err(statement),
        };
        *held = Some((block.hash, found));
        Ok(found)
    }

    /// The response. Of a failure it is noted whether the endpoint may be at fault.
    fn noted<T>(&self, response: Result<T, Failure>) -> Result<T, EndpointStatement> {
        self.endpoint.note(&response, (self.clock)());
        response.map_err(|failure| {
            tracing::debug!(endpoint = self.endpoint.label, %failure, "endpoint states nothing");
            match failure {
                Failure::CallFailed(_) => EndpointStatement::ResolverFails,
                Failure::NoBlock(_) => EndpointStatement::NoBlock,
                _ => EndpointStatement::NoAnswer,
            }
        })
    }
}
