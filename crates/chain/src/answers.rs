//! From findings to answers. What the findings leave to a look-up off the chain is looked up.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::{Address, Bytes};
use alloy_rpc_client::RpcClient;
use alloy_rpc_types_eth::BlockId;
use clresolve_core::cause::CcipFault;
use clresolve_core::payment::PaymentRecords;
use clresolve_core::reading::{Answer, ChainError, Holding, Latest};
use clresolve_core::records::Record;
use clresolve_state::answer;
use clresolve_state::answer::{Response, Returned};
use clresolve_state::contracts::{Findings, Resolved};
use futures_util::StreamExt as _;
use futures_util::future::try_join;
use futures_util::stream::FuturesUnordered;
use tokio::time::timeout;

use crate::ccip::{CcipReadGateway, Lookups};
use crate::endpoint::RpcEndpoint;
use crate::poll::{Newest, NewestVote};
use crate::pool::{ChainConfig, EndpointPool};
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
    latest: Result<Latest, ChainError>,
    /// The objection to the records, where they are one.
    objection: Option<ChainError>,
    /// All votes that are the same as what was read up to look-ups off the chain, with the endpoints that gave them.
    look_ups: Vec<(Arc<RpcEndpoint>, Findings)>,
    /// Number of operators that must agree.
    agree: usize,
}

impl NewestAnswer {
    /// What the votes that count say beside `answer` and `holder`, which were read.
    ///
    /// # Errors
    /// The objection, where it reads the same: an endpoint that makes one up could hide that of others.
    fn beside(&self, answer: &Answer, holder: Option<Address>) -> Result<Latest, ChainError> {
        let latest = self.latest.clone()?;
        match &self.objection {
            Some(objection)
                if latest.holder == holder
                    && latest.answer.same_records(answer)
                    && !clresolve_core::mutant!("objections-hide-objections") =>
            {
                Err(objection.clone())
            }
            _ => Ok(latest),
        }
    }
}

/// The part of the time for one request that a look-up about payments may take: half, so that a gateway that stalls there
/// does not hold back records that were read in time.
const PAYMENT_PATIENCE: u32 = 2;

/// Time for the look-ups that each endpoint follows for itself: as long as those of a gateway that answers well take. The
/// objection that they may settle must not be lost with the time for the name.
const MAX_OWN_LOOK_UP_TIME: Duration = Duration::from_secs(1);

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

    /// What the newest block says, from the votes on it that count. A look-up asks the endpoints whose newest block counts:
    /// any other could lead it through an older one.
    pub(crate) async fn newest(&self, query: &Query, newest: Newest<Findings>, pool: &EndpointPool) -> NewestAnswer {
        let Newest { records, payment, look_ups, mut current, unheard, floor } = newest;
        let objection = records.objection();
        let ask = async |endpoints: &[Arc<RpcEndpoint>]| {
            let rpc = &pool.client(endpoints.to_vec(), Vec::new());
            self.voted(rpc, query, records.clone(), payment.clone(), pool.chain_id).await
        };
        let mut latest = ask(&current).await;
        let is_looked_up = matches!(&records.vote, Ok(Findings { resolved: Resolved::Offchain(_), .. }));
        let is_undecided = matches!(latest, Err(ChainError::Disagree(_) | ChainError::Unreachable(_)));
        if is_undecided && is_looked_up && objection.is_none() {
            // One of them lies in its look-up, or too few have voted.
            let recent = pool.recent(unheard, floor).await;
            if !recent.is_empty() {
                current.extend(recent);
                latest = ask(&current).await;
            }
        }
        // Who objects by what cannot be read may have made it up: the publisher is not to blame.
        let latest = latest.map_err(|error| objection.clone().unwrap_or(error));
        NewestAnswer { latest, objection, look_ups, agree: pool.agree() }
    }

    /// What these votes on the newest block say.
    async fn voted(
        &self,
        rpc: &RpcClient,
        query: &Query,
        records: NewestVote<Findings>,
        payment: NewestVote<Findings>,
        chain_id: u64,
    ) -> Result<Latest, ChainError> {
        let payment_objection = payment.objection();
        let records = records.into_vote(chain_id)?;
        let payment = payment_objection.map_or_else(|| payment.into_vote(chain_id), Err);
        let answer = self.both(rpc, query, &records, payment.as_ref(), BlockId::latest()).await?;
        Ok(Latest { answer, holder: records.holder })
    }

    /// What counts of the newest block beside `answer` and `holder`, which were read. Where that was found in what each
    /// endpoint reads, it comes with the height up to which it was.
    pub(crate) async fn beside(
        &self,
        query: &Query,
        newest: NewestAnswer,
        answer: &Answer,
        holder: Option<Address>,
    ) -> (Result<Latest, ChainError>, Option<u64>) {
        match newest.beside(answer, holder) {
            Err(error @ ChainError::Disagree(_)) if newest.objection.is_some() => {
                match self.read_by_each(query, &newest, answer, &error).await {
                    Some((answer, reached)) => (Ok(Latest { answer, holder }), Some(reached)),
                    None => (Err(error), None),
                }
            }
            latest => (latest, None),
        }
    }

    /// The answer at the newest block where as many operators as must agree read this one there, and the height that all
    /// of them have reached with it. Where they differ about payments, these are pending by `error`.
    ///
    /// Endpoints a block apart share no look-up that names its block, and cannot follow one together. So each follows its
    /// own, and what they read is compared. Only those count that state what was read in all else: one that lies alone
    /// hides neither another resolver nor other records. One that stalls holds up nobody for long: what the others say
    /// must be known before the time for the name ends.
    async fn read_by_each(
        &self,
        query: &Query,
        newest: &NewestAnswer,
        answer: &Answer,
        error: &ChainError,
    ) -> Option<(Answer, u64)> {
        let mut readings = FuturesUnordered::new();
        // As many as voted, of the configured endpoints.
        for (endpoint, vote) in &newest.look_ups {
            readings.push(self.read_by(endpoint, query, vote));
        }
        let mut alike = ReadAlike { agree: newest.agree, records: BTreeMap::new(), all: BTreeMap::new() };
        let compare = async {
            while !alike.are_decided(readings.len()) {
                if let Some(Some((operator, height, read))) = readings.next().await {
                    alike.add(operator, height, &read, answer);
                }
            }
        };
        // At the end of the time counts what was read until then.
        let _ = timeout(MAX_OWN_LOOK_UP_TIME, compare).await;
        if let Some(height) = alike.reached(&alike.all) {
            return Some((answer.clone(), height));
        }
        let height = alike.reached(&alike.records)?;
        Some((query.with_payment(answer.clone(), Err(error.clone())), height))
    }

    /// What the vote of an endpoint on the newest block reads as by the word of that endpoint alone, with its operator and
    /// the height of the vote. `None` where that cannot be read.
    async fn read_by<'e>(
        &self,
        endpoint: &'e RpcEndpoint,
        query: &Query,
        vote: &Findings,
    ) -> Option<(&'e str, u64, Answer)> {
        let answer = self.both(&endpoint.rpc, query, vote, Ok(vote), BlockId::latest()).await.ok()?;
        Some((endpoint.operator.as_str(), vote.block, answer))
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

/// The operators that read the same at the newest block, each with a height that it has reached.
struct ReadAlike<'e> {
    /// Number of operators that must agree.
    agree: usize,
    /// On the records.
    records: BTreeMap<&'e str, u64>,
    /// On payments too.
    all: BTreeMap<&'e str, u64>,
}

impl<'e> ReadAlike<'e> {
    /// An operator reads `read` at this height, beside `answer`.
    fn add(&mut self, operator: &'e str, height: u64, read: &Answer, answer: &Answer) {
        if read.same_records(answer) {
            self.records.insert(operator, height);
        }
        if read == answer {
            self.all.insert(operator, height);
        }
    }

    /// Whether `further` operators cannot change whether enough read alike. They could still raise the height.
    fn are_decided(&self, further: usize) -> bool {
        further == 0 || self.all.len() >= self.agree || self.records.len() + further < self.agree
    }

    /// The height that as many of these as must agree have reached.
    fn reached(&self, operators: &BTreeMap<&str, u64>) -> Option<u64> {
        let mut heights: Vec<_> = operators.values().copied().collect();
        heights.sort_unstable_by_key(|height| Reverse(*height));
        let agree = if clresolve_core::mutant!("one-look-up-speaks-for-all") { 1 } else { self.agree };
        heights.get(agree.checked_sub(1)?).copied()
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
    use clresolve_core::cause::ResolverFault;
    use clresolve_core::name::EnsName;
    use clresolve_core::reading::Found;
    use clresolve_state::Contracts;
    use clresolve_state::contracts::{FoundResolver, Resolved, ResolverName};

    use super::*;
    use crate::testing::{self, NoDoor};
    use crate::transport::HttpPost;

    /// Where more than enough have answered, one that claims to be far behind lowers no height. One that stalls is not waited
    /// for in vain.
    #[test]
    fn operators_that_read_alike_count_once_and_by_the_height_that_enough_have_reached() {
        let read = Answer::NoResolver(None);
        let mut alike = ReadAlike { agree: 2, records: BTreeMap::new(), all: BTreeMap::new() };
        alike.add("a", 7, &read, &read);
        alike.add("a", 9, &read, &read);
        assert_eq!((alike.reached(&alike.all), alike.are_decided(1), alike.are_decided(0)), (None, false, true));
        let none = ReadAlike { agree: 2, records: BTreeMap::new(), all: BTreeMap::new() };
        assert!(none.are_decided(1) && !none.are_decided(2), "one alone is not waited for");
        alike.add("b", 1, &read, &read);
        alike.add("c", 8, &read, &read);
        assert_eq!((alike.reached(&alike.all), alike.are_decided(9)), (Some(8), true));
    }

    /// Who makes up an objection that reads as if nothing had changed would hide what others object.
    #[test]
    fn an_objection_that_reads_alike_leaves_the_newest_block_unknown() {
        let objection = ChainError::Disagree(vec![("a".to_owned(), "records".to_owned())]);
        let newest = |answer: &Answer, holder, objection: Option<&ChainError>| NewestAnswer {
            latest: Ok(Latest { answer: answer.clone(), holder }),
            objection: objection.cloned(),
            look_ups: Vec::new(),
            agree: 2,
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

    /// Who objects by what cannot be read must not put the blame on the publisher.
    #[tokio::test]
    async fn an_objection_that_cannot_be_read_is_told_as_an_objection() {
        let door: Arc<dyn HttpPost> = Arc::new(NoDoor);
        let pool = EndpointPool::new(testing::config(&[]), &door);
        let answers = Answers { universal_resolver: Address::ZERO, lookups: None, payment_lookups: None };
        let query = Query::address(&EnsName::parse("a.eth").unwrap(), &Contracts::default());
        let unreadable = Findings {
            block: 5,
            time: None,
            registered: true,
            holder: None,
            expiry: None,
            source: FoundResolver { resolver: Address::ZERO, name: ResolverName::Own },
            resolved: Resolved::Failed(ResolverFault::CallReverted),
            payment: None,
        };
        let vote = |is_objection| NewestVote { label: "a".to_owned(), vote: Ok(unreadable.clone()), is_objection };
        let newest = async |is_objection| {
            let (records, payment) = (vote(is_objection), vote(false));
            let (current, unheard) = (Vec::new(), Vec::new());
            let newest = Newest { records, payment, look_ups: Vec::new(), current, unheard, floor: 0 };
            answers.newest(&query, newest, &pool).await.latest
        };
        let stated = ChainError::Resolver(ResolverFault::CallReverted);
        assert_eq!(newest(false).await, Err(stated), "enough operators say so");
        assert_eq!(newest(true).await, Err(vote(true).objection().expect("an objection")));
    }
}
