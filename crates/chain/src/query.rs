//! Encodes a query about a name, and decodes its result.

use alloy_primitives::Bytes;
use alloy_rpc_client::RpcClient;
use alloy_rpc_types_eth::TransactionRequest;
use clresolve_core::name::EnsName;
use clresolve_core::payment::{PaymentRecords, RequestedCoinTypes};
use clresolve_core::reading::{ChainBlock, ChainError, EnsAnswer};
use clresolve_core::records::TextRecordKey;
use clresolve_core::text::excerpt_text;
use clresolve_state::answer::{self, UniversalResolverBytes};
use clresolve_state::contracts::{NameFindings, NameMulticall};
use clresolve_state::{BatchedCallError, EnsContractAddresses};

use crate::failure::EndpointFailure;
use crate::request::{block_id_by_hash, eth_call_request};

pub(crate) struct NameQuery {
    subject: NameMulticall,
    /// The text records that are read. Empty for an address query.
    pub(crate) keys: &'static [TextRecordKey],
    /// The call to the Universal Resolver, which a lookup repeats.
    pub(crate) resolve: Bytes,
    /// The Multicall3 call that contains all other calls.
    pub(crate) call: TransactionRequest,
}

impl NameQuery {
    /// A query for the text records of a resolution, combined with the name's payment records.
    pub(crate) fn for_resolution(name: &EnsName, contracts: &EnsContractAddresses, coins: &RequestedCoinTypes) -> Self {
        let subject = NameMulticall::new(name, contracts).with_payment(Some(coins.clone()));
        Self::for_text_records(subject, contracts, &TextRecordKey::ALL)
    }

    /// A query for the text records under these keys.
    pub(crate) fn for_records(
        name: &EnsName,
        contracts: &EnsContractAddresses,
        keys: &'static [TextRecordKey],
    ) -> Self {
        Self::for_text_records(NameMulticall::new(name, contracts), contracts, keys)
    }

    fn for_text_records(
        subject: NameMulticall,
        contracts: &EnsContractAddresses,
        keys: &'static [TextRecordKey],
    ) -> Self {
        let resolve = subject.resolve_texts_call(keys.iter().map(|key| key.as_str()));
        Self::new(subject, contracts, resolve, keys)
    }

    /// A query for text records under keys that a resolution does not need.
    pub(crate) fn for_extra_text_records(name: &EnsName, contracts: &EnsContractAddresses, keys: &[String]) -> Self {
        let subject = NameMulticall::new(name, contracts);
        let resolve = subject.resolve_texts_call(keys.iter().map(String::as_str));
        Self::new(subject, contracts, resolve, &[])
    }

    /// A query for the name's address.
    pub(crate) fn for_address(name: &EnsName, contracts: &EnsContractAddresses) -> Self {
        let subject = NameMulticall::new(name, contracts);
        let resolve = subject.resolve_address_call();
        Self::new(subject, contracts, resolve, &[])
    }

    fn new(
        subject: NameMulticall,
        contracts: &EnsContractAddresses,
        resolve: Bytes,
        keys: &'static [TextRecordKey],
    ) -> Self {
        let call = eth_call_request(contracts.multicall3, subject.aggregate_call(resolve.clone()));
        Self { subject, keys, resolve, call }
    }

    pub(crate) fn call_data(&self) -> Bytes {
        self.call.input.input().cloned().unwrap_or_default()
    }

    /// The requested coin types and the call that reads them, if payment records are requested.
    pub(crate) fn payment_call(&self) -> Option<(&RequestedCoinTypes, Bytes)> {
        self.subject.coins().zip(self.subject.resolve_payment_call())
    }

    /// The requested coin types, if payment records are requested.
    #[cfg(feature = "state-proof")]
    pub(crate) const fn coins(&self) -> Option<&RequestedCoinTypes> {
        self.subject.coins()
    }

    /// Decodes the payment records, if the query requested them.
    pub(crate) fn decode_payment(
        &self,
        findings: &NameFindings,
        returned: &UniversalResolverBytes,
    ) -> Result<PaymentRecords, ChainError> {
        self.subject.coins().map_or_else(
            || Ok(PaymentRecords::default()),
            |coins| answer::decode_returned_payment(findings, coins, returned),
        )
    }

    /// Adds the payment records to the answer, if the query requested them.
    pub(crate) fn add_payment_to_answer(
        &self,
        answer: EnsAnswer,
        payment: Result<PaymentRecords, ChainError>,
    ) -> EnsAnswer {
        match self.subject.coins() {
            Some(coins) => answer::add_payment_records(answer, coins, payment),
            None => answer,
        }
    }

    /// The findings at a block that is selected by hash.
    pub(crate) async fn fetch_findings(
        &self,
        client: &RpcClient,
        block: &ChainBlock,
    ) -> Result<NameFindings, EndpointFailure> {
        let data = client.request::<_, Bytes>("eth_call", (&self.call, block_id_by_hash(block))).await;
        self.decode_findings_at_block(
            block,
            &data.map_err(|error| EndpointFailure::from_transport_error(&error, excerpt_text))?,
        )
    }

    /// Decodes the result of the call.
    ///
    /// # Errors
    /// [`EndpointFailure::Unusable`].
    pub(crate) fn decode_findings(&self, data: &[u8]) -> Result<NameFindings, EndpointFailure> {
        self.subject.decode(data).map_err(|garbled| EndpointFailure::Unusable(garbled.to_string()))
    }

    /// Decodes the result of a call at a block that was selected by hash.
    ///
    /// # Errors
    /// [`EndpointFailure::Unusable`], or [`EndpointFailure::OtherBlock`] if the result reports another block.
    pub(crate) fn decode_findings_at_block(
        &self,
        block: &ChainBlock,
        data: &[u8],
    ) -> Result<NameFindings, EndpointFailure> {
        let findings = self.decode_findings(data)?;
        if findings.block != block.number {
            return Err(EndpointFailure::OtherBlock("a call by block hash ran in another block".to_owned()));
        }
        Ok(findings)
    }
}

/// Why none of the results of a combined call can be used.
pub(crate) fn unusable_batch_failure(why: BatchedCallError) -> EndpointFailure {
    EndpointFailure::Unusable(why.to_string())
}

/// The findings at the newest block, unless that block is older than the pinned one.
///
/// # Errors
/// [`EndpointFailure::Unusable`].
pub(crate) fn check_latest_not_before_pinned(
    latest: NameFindings,
    block: &ChainBlock,
) -> Result<NameFindings, EndpointFailure> {
    if latest.block < block.number {
        return Err(EndpointFailure::Unusable("the newest block is older than the block that was read".to_owned()));
    }
    Ok(latest)
}
