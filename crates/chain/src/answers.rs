//! From findings to answers. What the findings leave to a look-up off the chain is looked up.

use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Arc;

use alloy_primitives::{Address, Bytes};
use alloy_rpc_client::RpcClient;
use alloy_rpc_types_eth::BlockId;
use clresolve_core::cause::CcipFault;
use clresolve_core::payment::PaymentRecords;
use clresolve_core::reading::{Answer, ChainError, Holding, Latest};
use clresolve_core::records::Record;
use clresolve_state::answer;
use clresolve_state::answer::{Response, Returned};
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

/// What the newest block says, before it is held against what was read.
pub(crate) struct NewestAnswer {
    latest: Latest,
    /// The objection to the records, where they are one.
    objection: Option<ChainError>,
}

impl NewestAnswer {
    /// What counts of it beside `answer` and `holder`, which were read.
    ///
    /// # Errors
    /// The objection, where it reads the same: an endpoint that makes one up could hide that of others.
    pub(crate) fn beside(self, answer: &Answer, holder: Option<Address>) -> Result<Latest, ChainError> {
        let Self { latest, objection } = self;
        match objection {
            Some(objection)
                if latest.holder == holder
                    && latest.answer.same_records(answer)
                    && !clresolve_core::mutant!("objections-hide-objections") =>
            {
                Err(objection)
            }
            _ => Ok(latest),
        }
    }
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
        let look_up = self.look_up(rpc, query, block);
        let returned = match returned(answer::records_response(findings)?, look_up).await? {
            Break(answer) => return Ok(answer),
            Continue(returned) => returned,
        };
        match answer::records(findings, query.keys, &returned) {
            Err(_) if returned.is_off_chain() && clresolve_core::mutant!("failed-gateway-is-absence") => {
                Ok(Answer::NoResolver(None))
            }
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
        let look_up = self.follow(self.payment_lookups.as_ref(), rpc, resolve, block);
        match returned(answer::payment_response(findings)?, look_up).await? {
            Break(payment) => Ok(payment),
            Continue(returned) => answer::payment(findings, coins, &returned),
        }
    }

    /// What the newest block says, from the votes on it that count. A look-up asks `rpc`.
    ///
    /// # Errors
    /// [`ChainError`].
    pub(crate) async fn newest(
        &self,
        rpc: &RpcClient,
        query: &Query,
        newest: Newest<Findings>,
        chain_id: u64,
    ) -> Result<NewestAnswer, ChainError> {
        let Newest { records, payment } = newest;
        let (objection, payment_objection) = (records.objection(), payment.objection());
        let records = records.into_vote(chain_id)?;
        let payment = payment_objection.map_or_else(|| payment.into_vote(chain_id), Err);
        let answer = self.both(rpc, query, &records, payment.as_ref(), BlockId::latest()).await;
        // Who objects by what cannot be read may have made it up: the publisher is not to blame.
        let answer = answer.map_err(|error| objection.clone().unwrap_or(error))?;
        Ok(NewestAnswer { latest: Latest { answer, holder: records.holder }, objection })
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
        match returned(answer::records_response(findings)?, self.look_up(rpc, query, block)).await? {
            Break(_) => Ok(vec![Record::Absent; count]),
            Continue(returned) => answer::further_records(&returned, count),
        }
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
        match returned(answer::holding_response(findings)?, self.look_up(rpc, query, block)).await? {
            Break(holding) => Ok(holding),
            Continue(returned) => answer::holding(findings, &returned),
        }
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

/// What the Universal Resolver returned, after the look-up that remains if any. Breaks with an answer that is complete.
///
/// # Errors
/// That of the look-up.
async fn returned<T>(
    response: Response<T>,
    look_up: impl Future<Output = Result<Bytes, ChainError>>,
) -> Result<ControlFlow<T, Returned>, ChainError> {
    Ok(match response {
        Response::Complete(answer) => Break(answer),
        Response::Returned(returned) => Continue(returned),
        Response::OffChain => Continue(Returned::OffChain(look_up.await?)),
    })
}

#[cfg(test)]
mod tests {
    use clresolve_core::reading::Found;

    use super::*;

    /// Who makes up an objection that reads as if nothing had changed would hide what others object.
    #[test]
    fn an_objection_that_reads_alike_leaves_the_newest_block_unknown() {
        let objection = ChainError::Disagree(vec![("a".to_owned(), "records".to_owned())]);
        let newest = |answer: &Answer, holder, objection: Option<&ChainError>| NewestAnswer {
            latest: Latest { answer: answer.clone(), holder },
            objection: objection.cloned(),
        };
        let (read, holder) = (Answer::NoResolver(None), Some(Address::ZERO));
        let alike = Latest { answer: read.clone(), holder };
        assert_eq!(newest(&read, holder, None).beside(&read, holder), Ok(alike));
        assert_eq!(newest(&read, holder, Some(&objection)).beside(&read, holder), Err(objection.clone()));
        let found = Answer::Records(Found {
            resolver: Address::ZERO,
            wildcard: None,
            offchain: false,
            records: std::iter::empty().collect(),
            payment: PaymentRecords::default(),
        });
        for (answer, of) in [(&found, holder), (&read, None)] {
            let changed = Latest { answer: answer.clone(), holder: of };
            assert_eq!(newest(answer, of, Some(&objection)).beside(&read, holder), Ok(changed), "it shows");
        }
    }
}
