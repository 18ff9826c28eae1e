//! [`RollCall`]: what each endpoint by itself says of a name, at a block that was read before.
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
pub enum Testimony {
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
pub struct RollCall {
    witnesses: Vec<Witness>,
    contracts: Contracts,
    coins: Coins,
    answers: Answers,
    batches: Batches,
    limit: Duration,
}

impl RollCall {
    /// Asks every endpoint of `config`, whatever it demands, through `http`, the door for the operator's URLs, under
    /// `clock`. Look-ups are followed through `gateway`, which must keep to the rules for foreign URLs.
    pub fn new(
        config: &ChainConfig,
        http: &Arc<dyn HttpPost>,
        gateway: Arc<dyn CcipReadGateway>,
        clock: &Clock,
    ) -> Self {
        let witness = |endpoint: &crate::Endpoint| {
            Witness::new(RpcEndpoint::new(endpoint.clone(), Arc::clone(http), config.timeout), Arc::clone(clock))
        };
        Self {
            witnesses: config.endpoints.iter().map(witness).collect(),
            contracts: config.contracts,
            coins: config.coins.clone(),
            answers: Answers::new(config, gateway),
            batches: Batches::waiting(config, WAIT),
            limit: config.timeout * PATIENCE + WAIT,
        }
    }

    /// What each endpoint says of `name` at `block`: by label, in the order of the configuration.
    pub async fn ask(&self, name: &EnsName, block: &Block) -> Vec<(String, Testimony)> {
        let query = Arc::new(Query::walk(name, &self.contracts, &self.coins));
        let of_each = self.witnesses.iter().map(async |witness| {
            let testimony = timeout(self.limit, self.testimony(witness, &query, block)).await;
            (witness.endpoint.label.clone(), testimony.unwrap_or(Testimony::NoAnswer))
        });
        join_all(of_each).await
    }

    async fn testimony(&self, witness: &Witness, query: &Arc<Query>, block: &Block) -> Testimony {
        match witness.held(block).await {
            Ok(HeldBlock::Same) => {}
            Ok(HeldBlock::Other) => return Testimony::OtherBlock,
            Ok(HeldBlock::Missing) => return Testimony::NoBlock,
            Err(testimony) => return testimony,
        }
        let Witness { endpoint, client, .. } = witness;
        let label = std::slice::from_ref(&endpoint.label);
        let findings = self.batches.ask(client, label, query, block).await;
        match witness.noted(findings) {
            Ok(findings) => self.statement(client, query, findings, block).await,
            Err(testimony) => testimony,
        }
    }

    /// What findings say, with look-ups off the chain as this endpoint leads them.
    async fn statement(&self, client: &RpcClient, query: &Query, findings: Findings, block: &Block) -> Testimony {
        match self.answers.both(client, query, &findings, Ok(&findings), by_hash(block)).await {
            Ok(answer) => {
                let Findings { holder, expiry, .. } = findings;
                Testimony::Statement(Box::new(NameStatement { answer, holder, expiry }))
            }
            Err(ChainError::Resolver(_)) => Testimony::ResolverFails,
            Err(_) => Testimony::NoAnswer,
        }
    }
}

/// An endpoint, and whether it has the block at which names are read.
struct Witness {
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

impl Witness {
    fn new(endpoint: RpcEndpoint, clock: Clock) -> Self {
        let endpoint = Arc::new(endpoint);
        let alone = QuorumTransport::new(vec![Arc::clone(&endpoint)], Vec::new(), 1, Duration::MAX);
        Self { endpoint, client: RpcClient::new(alone, false), held: Mutex::new(None), clock }
    }

    /// What it has at the height of `block`. It is asked once for a block, and not for a while after a failure, so that one
    /// that stalls holds up few names.
    async fn held(&self, block: &Block) -> Result<HeldBlock, Testimony> {
        let mut held = self.held.lock().await;
        if self.endpoint.rests((self.clock)()) {
            return Err(Testimony::NoAnswer);
        }
        if let Some((hash, held)) = *held
            && hash == block.hash
        {
            return Ok(held);
        }
        let found = match self.noted(self.endpoint.header(BlockSelector::Number(block.number)).await) {
            Ok((_, own)) if own.hash == block.hash => HeldBlock::Same,
            Ok(_) => HeldBlock::Other,
            Err(Testimony::NoBlock) => HeldBlock::Missing,
            Err(testimony) => return Err(testimony),
        };
        *held = Some((block.hash, found));
        Ok(found)
    }

    /// The response. Of a failure it is noted whether the endpoint may be at fault.
    fn noted<T>(&self, response: Result<T, Failure>) -> Result<T, Testimony> {
        self.endpoint.note(&response, (self.clock)());
        response.map_err(|failure| {
            tracing::debug!(endpoint = self.endpoint.label, %failure, "endpoint bears no witness");
            match failure {
                Failure::CallFailed(_) => Testimony::ResolverFails,
                Failure::NoBlock(_) => Testimony::NoBlock,
                _ => Testimony::NoAnswer,
            }
        })
    }
}
