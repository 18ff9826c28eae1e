//! Turns what an on-chain query found (its [`NameFindings`]) into an answer about the name. If the name requires an
//! off-chain lookup (CCIP-Read), the lookup happens here.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::{Address, Bytes};
use alloy_rpc_client::RpcClient;
use alloy_rpc_types_eth::BlockId;
use clresolve_core::cause::CcipLookupError;
use clresolve_core::payment::PaymentRecords;
use clresolve_core::reading::{ChainError, ClOwnerReading, EnsAnswer, LatestNameState, NameHolder};
use clresolve_core::records::TextRecord;
use clresolve_state::answer;
use clresolve_state::answer::{EnsAnswerStage, UniversalResolverBytes};
use clresolve_state::contracts::{NameFindings, UniversalResolverOutcome};
use futures_util::StreamExt as _;
use futures_util::future::try_join;
use futures_util::stream::FuturesUnordered;
use tokio::time::timeout;

use crate::ccip::{CcipReadGatewayClient, CcipReadLookupClient};
use crate::endpoint::RpcEndpoint;
use crate::poll::{DecisiveNewestVote, NewestBlockVoteSummary};
use crate::pool::{ChainReaderConfig, EndpointPool};
use crate::query::NameQuery;

pub(crate) struct CcipReadAnswerResolver {
    universal_resolver: Address,
    /// `None` if CCIP-Read is disabled.
    lookups: Option<CcipReadLookupClient>,
    /// Lookups for payment records, with a shorter time limit.
    payment_lookups: Option<CcipReadLookupClient>,
}

/// The answer at the newest block, before comparison with the pinned reading.
pub(crate) struct UncomparedNewestAnswer {
    latest: Result<LatestNameState, ChainError>,
    /// Set if the vote on the records is an objection.
    objection: Option<ChainError>,
    /// Votes that equal the pinned reading except for off-chain lookups, each with its endpoint.
    look_ups: Vec<(Arc<RpcEndpoint>, NameFindings)>,
    agree: usize,
}

impl UncomparedNewestAnswer {
    /// Compares the counted votes with `answer` and `holder` of the pinned reading.
    ///
    /// # Errors
    /// The objection, if it resolves to the same content. Otherwise an endpoint with an invented objection could hide
    /// the objections of others.
    fn compare_with_pinned(&self, answer: &EnsAnswer, holder: NameHolder) -> Result<LatestNameState, ChainError> {
        let latest = self.latest.clone()?;
        match &self.objection {
            Some(objection)
                if latest.holder == holder
                    && latest.answer.has_same_records(answer)
                    && !clresolve_core::mutant!("objections-hide-objections") =>
            {
                Err(objection.clone())
            }
            _ => Ok(latest),
        }
    }
}

/// Divisor of the request timeout for a payment lookup, so that a stalling gateway does not delay records that were
/// read in time.
const PAYMENT_PATIENCE: u32 = 2;

/// Time limit for lookups that each endpoint follows separately. The objection that they may settle must be reported
/// before the time for the name runs out.
const MAX_OWN_LOOK_UP_TIME: Duration = Duration::from_secs(1);

impl CcipReadAnswerResolver {
    /// Follows lookups through `gateway` if `config` has a time limit for them.
    pub(crate) fn new(config: &ChainReaderConfig, gateway: Arc<dyn CcipReadGatewayClient>) -> Self {
        let lookups = config.lookup_timeout.map(|timeout| CcipReadLookupClient::new(gateway, timeout));
        Self {
            universal_resolver: config.contracts.universal_resolver,
            payment_lookups: lookups.as_ref().map(|lookups| lookups.with_time_limit(config.timeout / PAYMENT_PATIENCE)),
            lookups,
        }
    }

    /// Resolves a name's records at `block`. Lookups send their calls to `rpc`.
    pub(crate) async fn resolve_records(
        &self,
        rpc: &RpcClient,
        query: &NameQuery,
        findings: &NameFindings,
        block: BlockId,
    ) -> Result<EnsAnswer, ChainError> {
        let look_up = self.follow_record_lookups(rpc, query, block);
        let returned = match finish_pending_lookup(answer::records_answer_stage(findings)?, look_up).await? {
            Break(answer) => return Ok(answer),
            Continue(returned) => returned,
        };
        match answer::decode_returned_records(findings, query.keys, &returned) {
            Err(_) if returned.is_off_chain() && clresolve_core::mutant!("failed-gateway-is-absence") => {
                Ok(EnsAnswer::NoResolver(None))
            }
            answer => answer,
        }
    }

    /// The name's payment records at `block`, if the query asks for them. Lookups send their calls to `rpc`.
    ///
    /// # Errors
    /// [`ChainError`] if no payment record can be read. The error does not affect the other records.
    pub(crate) async fn resolve_payment(
        &self,
        rpc: &RpcClient,
        query: &NameQuery,
        findings: &NameFindings,
        block: BlockId,
    ) -> Result<PaymentRecords, ChainError> {
        let Some((coins, resolve)) = query.payment_call() else { return Ok(PaymentRecords::default()) };
        let look_up = self.follow_lookups(self.payment_lookups.as_ref(), rpc, resolve, block);
        match finish_pending_lookup(answer::payment_answer_stage(findings)?, look_up).await? {
            Break(payment) => Ok(payment),
            Continue(returned) => answer::decode_returned_payment(findings, coins, &returned),
        }
    }

    /// The answer at the newest block, from the counted votes on it. Lookups send their calls only to endpoints whose
    /// newest block counts: any other endpoint could resolve the lookup against an older block.
    pub(crate) async fn resolve_newest_answer(
        &self,
        query: &NameQuery,
        newest: NewestBlockVoteSummary<NameFindings>,
        pool: &EndpointPool,
    ) -> UncomparedNewestAnswer {
        let NewestBlockVoteSummary { records, payment, look_ups, mut current, unheard, floor } = newest;
        let objection = records.objection_error();
        let ask = async |endpoints: &[Arc<RpcEndpoint>]| {
            let rpc = &pool.client_for_members(endpoints.to_vec(), Vec::new());
            self.resolve_decisive_votes(rpc, query, records.clone(), payment.clone(), pool.chain_id).await
        };
        let mut latest = ask(&current).await;
        let is_looked_up =
            matches!(&records.vote, Ok(NameFindings { resolved: UniversalResolverOutcome::Offchain(_), .. }));
        let is_undecided = matches!(latest, Err(ChainError::Disagree(_) | ChainError::Unreachable(_)));
        if is_undecided && is_looked_up && objection.is_none() {
            // An endpoint's lookup is false, or too few have voted.
            let recent = pool.select_recent_endpoints(unheard, floor).await;
            if !recent.is_empty() {
                current.extend(recent);
                latest = ask(&current).await;
            }
        }
        // The objection may be invented, so if it cannot be read, the publisher is not blamed.
        let latest = latest.map_err(|error| objection.clone().unwrap_or(error));
        UncomparedNewestAnswer { latest, objection, look_ups, agree: pool.required_operator_count() }
    }

    /// Decodes the counted votes on the newest block into an answer, following lookups through `rpc`. An objection to
    /// the payment records is returned as their error, and leaves the other records readable.
    async fn resolve_decisive_votes(
        &self,
        rpc: &RpcClient,
        query: &NameQuery,
        records: DecisiveNewestVote<NameFindings>,
        payment: DecisiveNewestVote<NameFindings>,
        chain_id: u64,
    ) -> Result<LatestNameState, ChainError> {
        let payment_objection = payment.objection_error();
        let records = records.into_vote(chain_id)?;
        let payment = payment_objection.map_or_else(|| payment.into_vote(chain_id), Err);
        let answer =
            self.resolve_records_and_payment(rpc, query, &records, payment.as_ref(), BlockId::latest()).await?;
        Ok(LatestNameState { answer, holder: records.holder })
    }

    /// The state of the name at the newest block, compared with `answer` and `holder` of the pinned reading. If there
    /// is an objection, each endpoint follows its own lookup. If enough operators then return `answer`, the state is
    /// unchanged, and the block height that all of them have reached is returned too.
    pub(crate) async fn compare_newest_with_pinned(
        &self,
        query: &NameQuery,
        newest: UncomparedNewestAnswer,
        answer: &EnsAnswer,
        holder: NameHolder,
    ) -> (Result<LatestNameState, ChainError>, Option<u64>) {
        match newest.compare_with_pinned(answer, holder) {
            Err(error @ ChainError::Disagree(_)) if newest.objection.is_some() => {
                match self.confirm_answer_with_operators(query, &newest, answer, &error).await {
                    Some((answer, reached)) => (Ok(LatestNameState { answer, holder }), Some(reached)),
                    None => (Err(error), None),
                }
            }
            latest => (latest, None),
        }
    }

    /// If enough operators resolve to `answer` at their newest block, returns it with the height that all of them have
    /// reached. If they differ about payments, the payment records are pending with `error`.
    ///
    /// Endpoints one block apart cannot share a lookup that names its block, so each endpoint follows its own lookup
    /// and the results are compared. Only endpoints whose votes otherwise equal the pinned reading take part. A single
    /// liar can therefore hide neither a changed resolver nor changed records. The time limit keeps a stalling endpoint
    /// from delaying the others.
    async fn confirm_answer_with_operators(
        &self,
        query: &NameQuery,
        newest: &UncomparedNewestAnswer,
        answer: &EnsAnswer,
        error: &ChainError,
    ) -> Option<(EnsAnswer, u64)> {
        let mut readings = FuturesUnordered::new();
        for (endpoint, vote) in &newest.look_ups {
            readings.push(self.resolve_vote_at_endpoint(endpoint, query, vote));
        }
        let mut alike = AgreeingOperatorHeights { agree: newest.agree, records: BTreeMap::new(), all: BTreeMap::new() };
        let compare = async {
            while !alike.is_outcome_decided(readings.len()) {
                if let Some(Some((operator, height, read))) = readings.next().await {
                    alike.count_answer(operator, height, &read, answer);
                }
            }
        };
        // On timeout, the results received so far count.
        let _ = timeout(MAX_OWN_LOOK_UP_TIME, compare).await;
        if let Some(height) = alike.agreed_height(&alike.all) {
            return Some((answer.clone(), height));
        }
        let height = alike.agreed_height(&alike.records)?;
        Some((query.add_payment_to_answer(answer.clone(), Err(error.clone())), height))
    }

    /// Resolves an endpoint's vote on the newest block using that endpoint alone. Returns the answer with the operator
    /// and the height of the vote, or `None` if the vote cannot be resolved.
    async fn resolve_vote_at_endpoint<'e>(
        &self,
        endpoint: &'e RpcEndpoint,
        query: &NameQuery,
        vote: &NameFindings,
    ) -> Option<(&'e str, u64, EnsAnswer)> {
        let answer =
            self.resolve_records_and_payment(&endpoint.rpc, query, vote, Ok(vote), BlockId::latest()).await.ok()?;
        Some((endpoint.operator.as_str(), vote.block, answer))
    }

    /// The answer at `block`, with the records from `records` and the payment records from `payment`. Lookups for both
    /// run concurrently.
    pub(crate) async fn resolve_records_and_payment(
        &self,
        rpc: &RpcClient,
        query: &NameQuery,
        records: &NameFindings,
        payment: Result<&NameFindings, &ChainError>,
        block: BlockId,
    ) -> Result<EnsAnswer, ChainError> {
        let payment = async {
            Ok(match payment {
                Ok(findings) => self.resolve_payment(rpc, query, findings, block).await,
                Err(error) => Err(error.clone()),
            })
        };
        let (answer, payment) = try_join(self.resolve_records(rpc, query, records, block), payment).await?;
        Ok(query.add_payment_to_answer(answer, payment))
    }

    /// The `count` further records that `query` requests at `block`. Lookups send their calls to `rpc`.
    pub(crate) async fn resolve_extra_text_records(
        &self,
        rpc: &RpcClient,
        query: &NameQuery,
        findings: &NameFindings,
        block: BlockId,
        count: usize,
    ) -> Result<Vec<TextRecord>, ChainError> {
        match finish_pending_lookup(
            answer::records_answer_stage(findings)?,
            self.follow_record_lookups(rpc, query, block),
        )
        .await?
        {
            Break(_) => Ok(vec![TextRecord::Absent; count]),
            Continue(returned) => answer::decode_returned_further_records(&returned, count),
        }
    }

    /// The address and holder of an owner's name at `block`.
    pub(crate) async fn resolve_cl_owner(
        &self,
        rpc: &RpcClient,
        query: &NameQuery,
        findings: &NameFindings,
        block: BlockId,
    ) -> Result<ClOwnerReading, ChainError> {
        match finish_pending_lookup(
            answer::owner_details_answer_stage(findings)?,
            self.follow_record_lookups(rpc, query, block),
        )
        .await?
        {
            Break(holding) => Ok(holding),
            Continue(returned) => answer::decode_returned_owner_details(findings, &returned),
        }
    }

    async fn follow_record_lookups(
        &self,
        rpc: &RpcClient,
        query: &NameQuery,
        block: BlockId,
    ) -> Result<Bytes, ChainError> {
        self.follow_lookups(self.lookups.as_ref(), rpc, query.resolve.clone(), block).await
    }

    async fn follow_lookups(
        &self,
        lookups: Option<&CcipReadLookupClient>,
        rpc: &RpcClient,
        resolve: Bytes,
        block: BlockId,
    ) -> Result<Bytes, ChainError> {
        let lookups = lookups.ok_or(ChainError::Ccip(CcipLookupError::SwitchedOff))?;
        lookups.follow_lookups(rpc, self.universal_resolver, resolve, block).await
    }
}

/// Operators with the same content at the newest block, each with the height that it has reached.
struct AgreeingOperatorHeights<'e> {
    /// Number of operators that must agree.
    agree: usize,
    /// Operators that agree on the records.
    records: BTreeMap<&'e str, u64>,
    /// Operators that agree on the payment records too.
    all: BTreeMap<&'e str, u64>,
}

impl<'e> AgreeingOperatorHeights<'e> {
    /// Counts the `read` answer of an operator at this height, compared with `answer`.
    fn count_answer(&mut self, operator: &'e str, height: u64, read: &EnsAnswer, answer: &EnsAnswer) {
        if read.has_same_records(answer) {
            self.records.insert(operator, height);
        }
        if read == answer {
            self.all.insert(operator, height);
        }
    }

    /// Whether `further` more operators cannot change the outcome (the height may still change).
    fn is_outcome_decided(&self, further: usize) -> bool {
        further == 0 || self.all.len() >= self.agree || self.records.len() + further < self.agree
    }

    /// The height that enough of these operators have reached.
    fn agreed_height(&self, operators: &BTreeMap<&str, u64>) -> Option<u64> {
        let mut heights: Vec<_> = operators.values().copied().collect();
        heights.sort_unstable_by_key(|height| Reverse(*height));
        let agree = if clresolve_core::mutant!("one-look-up-speaks-for-all") { 1 } else { self.agree };
        heights.get(agree.checked_sub(1)?).copied()
    }
}

/// The data returned by the Universal Resolver, after the remaining lookup if there is one. Breaks with an answer that
/// is already complete.
///
/// # Errors
/// The error of the lookup.
async fn finish_pending_lookup<T>(
    response: EnsAnswerStage<T>,
    look_up: impl Future<Output = Result<Bytes, ChainError>>,
) -> Result<ControlFlow<T, UniversalResolverBytes>, ChainError> {
    Ok(match response {
        EnsAnswerStage::Complete(answer) => Break(answer),
        EnsAnswerStage::Returned(returned) => Continue(returned),
        EnsAnswerStage::OffChain => Continue(UniversalResolverBytes::OffChain(look_up.await?)),
    })
}

#[cfg(test)]
mod tests {
    use clresolve_core::cause::ResolverContractError;
    use clresolve_core::name::EnsName;
    use clresolve_core::reading::ResolvedRecords;
    use clresolve_state::EnsContractAddresses;
    use clresolve_state::contracts::{FoundResolver, ResolverNameOrigin, UniversalResolverOutcome};

    use super::*;
    use crate::testing::{self, RefusingHttpClient};
    use crate::transport::JsonRpcHttpClient;

    /// An operator that claims to be far behind must not lower the height, and a stalling one must not delay the
    /// answer.
    #[test]
    fn operators_count_once_at_the_height_enough_have_reached() {
        let read = EnsAnswer::NoResolver(None);
        let mut alike = AgreeingOperatorHeights { agree: 2, records: BTreeMap::new(), all: BTreeMap::new() };
        alike.count_answer("a", 7, &read, &read);
        alike.count_answer("a", 9, &read, &read);
        assert_eq!(
            (alike.agreed_height(&alike.all), alike.is_outcome_decided(1), alike.is_outcome_decided(0)),
            (None, false, true)
        );
        let none = AgreeingOperatorHeights { agree: 2, records: BTreeMap::new(), all: BTreeMap::new() };
        assert!(none.is_outcome_decided(1) && !none.is_outcome_decided(2), "one alone is not waited for");
        alike.count_answer("b", 1, &read, &read);
        alike.count_answer("c", 8, &read, &read);
        assert_eq!((alike.agreed_height(&alike.all), alike.is_outcome_decided(9)), (Some(8), true));
    }

    /// An invented objection that resolves to unchanged content would otherwise hide the objections of others.
    #[test]
    fn an_objection_that_reads_alike_leaves_the_newest_block_unknown() {
        let objection = ChainError::Disagree(vec![("a".to_owned(), "records".to_owned())]);
        let newest = |answer: &EnsAnswer, holder, objection: Option<&ChainError>| UncomparedNewestAnswer {
            latest: Ok(LatestNameState { answer: answer.clone(), holder }),
            objection: objection.cloned(),
            look_ups: Vec::new(),
            agree: 2,
        };
        let (read, holder) = (EnsAnswer::NoResolver(None), NameHolder::Address(Address::ZERO));
        let alike = LatestNameState { answer: read.clone(), holder };
        assert_eq!(newest(&read, holder, None).compare_with_pinned(&read, holder), Ok(alike));
        assert_eq!(newest(&read, holder, Some(&objection)).compare_with_pinned(&read, holder), Err(objection.clone()));
        let found = EnsAnswer::Records(ResolvedRecords {
            resolver: Address::ZERO,
            wildcard: None,
            offchain: false,
            records: std::iter::empty().collect(),
            payment: PaymentRecords::default(),
        });
        for (answer, of) in [(&found, holder), (&read, NameHolder::Nobody)] {
            let changed = LatestNameState { answer: answer.clone(), holder: of };
            assert_eq!(
                newest(answer, of, Some(&objection)).compare_with_pinned(&read, holder),
                Ok(changed),
                "it shows"
            );
        }
    }

    #[tokio::test]
    async fn an_objection_that_cannot_be_read_is_told_as_an_objection() {
        let transport: Arc<dyn JsonRpcHttpClient> = Arc::new(RefusingHttpClient);
        let pool = EndpointPool::new(testing::test_config(&[]), &transport);
        let answers =
            CcipReadAnswerResolver { universal_resolver: Address::ZERO, lookups: None, payment_lookups: None };
        let query = NameQuery::for_address(&EnsName::parse("a.eth").unwrap(), &EnsContractAddresses::default());
        let unreadable = NameFindings {
            block: 5,
            time: None,
            registered: true,
            holder: NameHolder::Nobody,
            expiry: None,
            source: FoundResolver { resolver: Address::ZERO, name: ResolverNameOrigin::Own },
            resolved: UniversalResolverOutcome::Failed(ResolverContractError::CallReverted),
            payment: None,
        };
        let vote =
            |is_objection| DecisiveNewestVote { label: "a".to_owned(), vote: Ok(unreadable.clone()), is_objection };
        let newest = async |is_objection| {
            let (records, payment) = (vote(is_objection), vote(false));
            let (current, unheard) = (Vec::new(), Vec::new());
            let newest = NewestBlockVoteSummary { records, payment, look_ups: Vec::new(), current, unheard, floor: 0 };
            answers.resolve_newest_answer(&query, newest, &pool).await.latest
        };
        let stated = ChainError::Resolver(ResolverContractError::CallReverted);
        assert_eq!(newest(false).await, Err(stated), "enough operators say so");
        assert_eq!(newest(true).await, Err(vote(true).objection_error().expect("an objection")));
    }
}
