//! From findings to answers. What the findings leave to a look-up off the chain is looked up.

use std::sync::Arc;

use alloy_primitives::{Address, Bytes};
use alloy_rpc_client::RpcClient;
use alloy_rpc_types_eth::BlockId;
use clresolve_core::cause::CcipFault;
use clresolve_core::payment::PaymentRecords;
use clresolve_core::reading::{Answer, ChainError, Holding};
use clresolve_core::records::Record;
use clresolve_state::answer;
use clresolve_state::answer::Response;
use clresolve_state::contracts::Findings;
use futures_util::future::try_join;

use crate::ccip::{CcipReadGateway, Lookups};
use crate::poll::Newest;
use crate::pool::ChainConfig;
use crate::query::Query;

/// Reads answers out of findings.
pub(crate) struct Answers {
    universal_resolver: Address,
    /// `None` where look-ups off the chain are switched off.
    lookups: Option<Lookups>,
    /// Those about payments, which have less time.
    payment_lookups: Option<Lookups>,
}

/// The part of the time for one request that a look-up about payments may take: half, so that a gateway that stalls there
/// does not hold back records that were read in time.
const PAYMENT_PATIENCE: u32 = 2;

impl Answers {
    /// Follows look-ups through `gateway`, if the configuration says so.
    pub(crate) fn new(config: &ChainConfig, gateway: Arc<dyn CcipReadGateway>) -> Self {
        let lookups = config.ccip.then(|| Lookups::new(gateway, config.timeout));
        Self {
            universal_resolver: config.contracts.universal_resolver,
            payment_lookups: lookups.as_ref().map(|lookups| lookups.with_patience(config.timeout / PAYMENT_PATIENCE)),
            lookups,
        }
    }

    /// The answer about a name's records at `block`. A look-up asks `rpc`.
    ///
    /// # Errors
    /// [`ChainError`].
    pub(crate) async fn records(
        &self,
        rpc: &RpcClient,
        query: &Query,
        findings: &Findings,
        block: BlockId,
    ) -> Result<Answer, ChainError> {
        let (data, offchain) = match answer::records_response(findings)? {
            Response::Complete(answer) => return Ok(answer),
            Response::Encoded(data) => (data, false),
            Response::OffChain => (self.look_up(rpc, query, block).await?, true),
        };
        match answer::records(findings, query.keys, &data, offchain) {
            Err(_) if offchain && clresolve_core::mutant!("failed-gateway-is-absence") => Ok(Answer::NoResolver(None)),
            answer => answer,
        }
    }

    /// What the name says about payments at `block`, where that is asked for. A look-up asks `rpc`.
    ///
    /// # Errors
    /// [`ChainError`], where none of it can be read. It says nothing about the records.
    pub(crate) async fn payment(
        &self,
        rpc: &RpcClient,
        query: &Query,
        findings: &Findings,
        block: BlockId,
    ) -> Result<PaymentRecords, ChainError> {
        let Some((coins, resolve)) = query.payment() else { return Ok(PaymentRecords::default()) };
        let (data, offchain) = match answer::payment_response(findings)? {
            Response::Complete(payment) => return Ok(payment),
            Response::Encoded(data) => (data, false),
            Response::OffChain => (self.follow(self.payment_lookups.as_ref(), rpc, resolve, block).await?, true),
        };
        answer::payment(findings, coins, &data, offchain)
    }

    /// The answer at the newest block, from the votes on it that count. A look-up asks `rpc`.
    ///
    /// # Errors
    /// [`ChainError`].
    pub(crate) async fn newest(
        &self,
        rpc: &RpcClient,
        query: &Query,
        newest: Newest<Findings>,
        chain_id: u64,
    ) -> Result<Answer, ChainError> {
        let Newest { records, payment } = newest;
        let (records, payment) = (records.into_vote(chain_id)?, payment.into_vote(chain_id));
        self.both(rpc, query, &records, payment.as_ref(), BlockId::latest()).await
    }

    /// The answer at `block`: the records from the one findings, what the name says about payments from the other. Look-ups
    /// for both go on at the same time.
    ///
    /// # Errors
    /// [`ChainError`].
    pub(crate) async fn both(
        &self,
        rpc: &RpcClient,
        query: &Query,
        records: &Findings,
        payment: Result<&Findings, &ChainError>,
        block: BlockId,
    ) -> Result<Answer, ChainError> {
        let payment = async {
            Ok(match payment {
                Ok(findings) => self.payment(rpc, query, findings, block).await,
                Err(error) => Err(error.clone()),
            })
        };
        let (answer, payment) = try_join(self.records(rpc, query, records, block), payment).await?;
        Ok(query.with_payment(answer, payment))
    }

    /// The `count` further records that `query` requests at `block`. A look-up asks `rpc`.
    ///
    /// # Errors
    /// [`ChainError`].
    pub(crate) async fn further_records(
        &self,
        rpc: &RpcClient,
        query: &Query,
        findings: &Findings,
        block: BlockId,
        count: usize,
    ) -> Result<Vec<Record>, ChainError> {
        let (data, offchain) = match answer::records_response(findings)? {
            Response::Complete(_) => return Ok(vec![Record::Absent; count]),
            Response::Encoded(data) => (data, false),
            Response::OffChain => (self.look_up(rpc, query, block).await?, true),
        };
        answer::further_records(&data, count, offchain)
    }

    /// Address and holder of an owner's name at `block`.
    ///
    /// # Errors
    /// [`ChainError`].
    pub(crate) async fn holding(
        &self,
        rpc: &RpcClient,
        query: &Query,
        findings: &Findings,
        block: BlockId,
    ) -> Result<Holding, ChainError> {
        let (data, offchain) = match answer::holding_response(findings)? {
            Response::Complete(holding) => return Ok(holding),
            Response::Encoded(data) => (data, false),
            Response::OffChain => (self.look_up(rpc, query, block).await?, true),
        };
        answer::holding(findings, &data, offchain)
    }

    async fn look_up(&self, rpc: &RpcClient, query: &Query, block: BlockId) -> Result<Bytes, ChainError> {
        self.follow(self.lookups.as_ref(), rpc, query.resolve.clone(), block).await
    }

    async fn follow(
        &self,
        lookups: Option<&Lookups>,
        rpc: &RpcClient,
        resolve: Bytes,
        block: BlockId,
    ) -> Result<Bytes, ChainError> {
        let lookups = lookups.ok_or(ChainError::Ccip(CcipFault::SwitchedOff))?;
        lookups.follow(rpc, self.universal_resolver, resolve, block).await
    }
}
