//! Encodes a query about a name, and decodes its result.

use alloy_primitives::Bytes;
use alloy_rpc_client::RpcClient;
use alloy_rpc_types_eth::TransactionRequest;
use clresolve_core::name::EnsName;
use clresolve_core::payment::{Coins, PaymentRecords};
use clresolve_core::reading::{Answer, Block, ChainError};
use clresolve_core::records::Key;
use clresolve_core::text::excerpt;
use clresolve_state::answer::{self, Returned};
use clresolve_state::contracts::{Findings, Subject};
use clresolve_state::{Contracts, Spoiled};

use crate::failure::Failure;
use crate::request::{by_hash, eth_call};

pub(crate) struct Query {
    subject: Subject,
    /// The text records that are read. Empty for an address query.
    pub(crate) keys: &'static [Key],
    /// The call to the Universal Resolver, which a lookup repeats.
    pub(crate) resolve: Bytes,
    /// The Multicall3 call that contains all other calls.
    pub(crate) call: TransactionRequest,
}

impl Query {
    /// A query for the text records of a resolution, combined with the name's payment records.
    pub(crate) fn walk(name: &EnsName, contracts: &Contracts, coins: &Coins) -> Self {
        let subject = Subject::new(name, contracts).with_payment(Some(coins.clone()));
        Self::texts(subject, contracts, &Key::ALL)
    }

    /// A query for the text records under these keys.
    pub(crate) fn records(name: &EnsName, contracts: &Contracts, keys: &'static [Key]) -> Self {
        Self::texts(Subject::new(name, contracts), contracts, keys)
    }

    fn texts(subject: Subject, contracts: &Contracts, keys: &'static [Key]) -> Self {
        let resolve = subject.resolve_texts(keys.iter().map(|key| key.as_str()));
        Self::new(subject, contracts, resolve, keys)
    }

    /// A query for text records under keys that a resolution does not need.
    pub(crate) fn further_records(name: &EnsName, contracts: &Contracts, keys: &[String]) -> Self {
        let subject = Subject::new(name, contracts);
        let resolve = subject.resolve_texts(keys.iter().map(String::as_str));
        Self::new(subject, contracts, resolve, &[])
    }

    /// A query for the name's address.
    pub(crate) fn address(name: &EnsName, contracts: &Contracts) -> Self {
        let subject = Subject::new(name, contracts);
        let resolve = subject.resolve_address();
        Self::new(subject, contracts, resolve, &[])
    }

    fn new(subject: Subject, contracts: &Contracts, resolve: Bytes, keys: &'static [Key]) -> Self {
        let call = eth_call(contracts.multicall3, subject.aggregate(resolve.clone()));
        Self { subject, keys, resolve, call }
    }

    pub(crate) fn call_data(&self) -> Bytes {
        self.call.input.input().cloned().unwrap_or_default()
    }

    /// The requested coin types and the call that reads them, if payment records are requested.
    pub(crate) fn payment(&self) -> Option<(&Coins, Bytes)> {
        self.subject.coins().zip(self.subject.resolve_payment())
    }

    /// The requested coin types, if payment records are requested.
    #[cfg(feature = "state-proof")]
    pub(crate) const fn coins(&self) -> Option<&Coins> {
        self.subject.coins()
    }

    /// Decodes the payment records, if the query requested them.
    pub(crate) fn decode_payment(
        &self,
        findings: &Findings,
        returned: &Returned,
    ) -> Result<PaymentRecords, ChainError> {
        self.subject
            .coins()
            .map_or_else(|| Ok(PaymentRecords::default()), |coins| answer::payment(findings, coins, returned))
    }

    /// Adds the payment records to the answer, if the query requested them.
    pub(crate) fn with_payment(&self, answer: Answer, payment: Result<PaymentRecords, ChainError>) -> Answer {
        match self.subject.coins() {
            Some(coins) => answer::with_payment(answer, coins, payment),
            None => answer,
        }
    }

    /// The findings at a block that is selected by hash.
    pub(crate) async fn ask(&self, client: &RpcClient, block: &Block) -> Result<Findings, Failure> {
        let data = client.request::<_, Bytes>("eth_call", (&self.call, by_hash(block))).await;
        self.decode_at(block, &data.map_err(|error| Failure::of(&error, excerpt))?)
    }

    /// Decodes the result of the call.
    ///
    /// # Errors
    /// [`Failure::Unusable`].
    pub(crate) fn decode(&self, data: &[u8]) -> Result<Findings, Failure> {
        self.subject.decode(data).map_err(|garbled| Failure::Unusable(garbled.to_string()))
    }

    /// Decodes the result of a call at a block that was selected by hash.
    ///
    /// # Errors
    /// [`Failure::Unusable`], or [`Failure::OtherBlock`] if the result reports another block.
    pub(crate) fn decode_at(&self, block: &Block, data: &[u8]) -> Result<Findings, Failure> {
        let findings = self.decode(data)?;
        if findings.block != block.number {
            return Err(Failure::OtherBlock("a call by block hash ran in another block".to_owned()));
        }
        Ok(findings)
    }
}

/// Why none of the results of a combined call can be used.
pub(crate) fn spoiled(why: Spoiled) -> Failure {
    Failure::Unusable(why.to_string())
}

/// The findings at the newest block, unless that block is older than the pinned one.
///
/// # Errors
/// [`Failure::Unusable`].
pub(crate) fn not_before(latest: Findings, block: &Block) -> Result<Findings, Failure> {
    if latest.block < block.number {
        return Err(Failure::Unusable("the newest block is older than the block that was read".to_owned()));
    }
    Ok(latest)
}
