//! The payment records that a live resolution read, and whether each value is the same at the newest block. Pure.
//!
//! [`PublishedPaymentRecords`] is built from the evidence and states for each record whether a decision may use it. A
//! value that is about to change, an unreadable value, an unset value and a value that was not requested are distinct
//! results.

use std::collections::BTreeSet;

use alloy_primitives::{Address, Bytes};
use clresolve_core::cause::LocalLimitError;
use clresolve_core::payment::{AddressRecord, CoinType, EndpointRecord, EndpointRecordKey, PaymentRecords};
use clresolve_core::reading::{ChainError, EnsAnswer, NameReading};
use clresolve_core::records::TextRecord;

/// A name's payment records at the verdict's block and at the newest block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedPaymentRecords {
    settled: PaymentRecords,
    newest: NewestPaymentRecordsOutcome,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum NewestPaymentRecordsOutcome {
    /// Not compared: the block was chosen by number, or is itself the newest.
    NotCompared,
    /// The name has these records.
    Read(PaymentRecords),
    /// The name no longer has records.
    Gone,
    /// The newest block could not be read.
    Unread(ChainError),
}

/// Usability of one published record in a decision: `T` is the value, `R` the record as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PaymentRecordStatus<T, R> {
    /// Set, and the same at the newest block if that is compared.
    Settled(T),
    /// Not set, and also unset at the newest block if that is compared.
    Absent,
    /// Set to an unusable value.
    Malformed(Bytes),
    /// The newest block differs or could not be read.
    Pending {
        /// The record at the verdict's block.
        settled: R,
        /// The record at the newest block.
        newest: Result<R, ChainError>,
    },
    /// The verdict's block could not be read.
    Failed(ChainError),
    /// This record was not requested.
    NotAsked,
}

impl PublishedPaymentRecords {
    /// The payment records of a reading. `None` for a name without records, or if none were requested.
    pub(crate) fn from_reading(reading: &NameReading) -> Option<Self> {
        let settled = match &reading.answer {
            EnsAnswer::Records(found) if !found.payment.is_empty() => found.payment.clone(),
            _ => return None,
        };
        let newest = match &reading.latest {
            None => NewestPaymentRecordsOutcome::NotCompared,
            Some(Ok(latest)) => match &latest.answer {
                EnsAnswer::Records(found) => NewestPaymentRecordsOutcome::Read(found.payment.clone()),
                EnsAnswer::Unregistered | EnsAnswer::NoResolver(_) => NewestPaymentRecordsOutcome::Gone,
            },
            Some(Err(error)) => NewestPaymentRecordsOutcome::Unread(error.clone()),
        };
        Some(Self { settled, newest })
    }

    /// The records at the verdict's block, regardless of the newest block. For display only: decisions use
    /// [`PublishedPaymentRecords::payment_address_status`] and [`PublishedPaymentRecords::payment_endpoint_status`].
    pub const fn settled_records(&self) -> &PaymentRecords {
        &self.settled
    }

    /// The address for a coin type; `None` is the zero address, which is set but belongs to nobody. Another coin type
    /// never replaces an unset or zero address.
    pub fn payment_address_status(&self, coin: CoinType) -> PaymentRecordStatus<Option<Address>, AddressRecord> {
        self.record_status(|records| records.addresses.get(&coin))
    }

    /// The distinct addresses of all coin types that a decision may use.
    pub fn settled_addresses(&self) -> Vec<Address> {
        let settled = self.settled.addresses.keys().filter_map(|coin| match self.payment_address_status(*coin) {
            PaymentRecordStatus::Settled(address) => address,
            _ => None,
        });
        settled.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The endpoint under `key`. The text is untrusted; only its UTF-8 is validated.
    pub fn payment_endpoint_status(&self, key: EndpointRecordKey) -> PaymentRecordStatus<String, EndpointRecord> {
        self.record_status(|records| records.endpoints.get(&key))
    }

    /// The records that differ at the newest block: coin types, then keys.
    pub(crate) fn pending_records(&self) -> impl Iterator<Item = String> {
        let addresses = self.settled.addresses.keys().filter(|coin| is_pending(&self.payment_address_status(**coin)));
        let endpoints = self.settled.endpoints.keys().filter(|key| is_pending(&self.payment_endpoint_status(**key)));
        addresses.map(ToString::to_string).chain(endpoints.map(ToString::to_string))
    }

    /// Estimated memory use in bytes.
    pub fn estimated_bytes(&self) -> usize {
        let newest = match &self.newest {
            NewestPaymentRecordsOutcome::Read(records) => estimate_bytes(records),
            NewestPaymentRecordsOutcome::NotCompared
            | NewestPaymentRecordsOutcome::Gone
            | NewestPaymentRecordsOutcome::Unread(_) => 0,
        };
        size_of::<Self>() + estimate_bytes(&self.settled) + newest
    }

    fn record_status<R: TypedPaymentRecord>(
        &self,
        of: impl Fn(&PaymentRecords) -> Option<&R>,
    ) -> PaymentRecordStatus<R::Value, R> {
        let Some(settled) = of(&self.settled) else { return PaymentRecordStatus::NotAsked };
        let published = settled.status_at_block();
        if matches!(published, PaymentRecordStatus::Failed(_)) {
            return published;
        }
        let newest = match &self.newest {
            NewestPaymentRecordsOutcome::NotCompared => None,
            NewestPaymentRecordsOutcome::Gone => Some(Ok(R::ABSENT)),
            NewestPaymentRecordsOutcome::Unread(error) => Some(Err(error.clone())),
            // A missing record at the newest block counts as unset, because the same call requests it.
            NewestPaymentRecordsOutcome::Read(records) => {
                Some(of(records).cloned().ok_or(ChainError::LocalLimit(LocalLimitError::FurtherRecords)))
            }
        };
        match newest.filter(|newest| newest.as_ref() != Ok(settled)) {
            Some(newest) if !clresolve_core::mutant!("pending-payment-is-settled") => {
                PaymentRecordStatus::Pending { settled: settled.clone(), newest }
            }
            _ => published,
        }
    }
}

const fn is_pending<T, R>(standing: &PaymentRecordStatus<T, R>) -> bool {
    matches!(standing, PaymentRecordStatus::Pending { .. })
}

/// A record with a typed value.
trait TypedPaymentRecord: Clone + PartialEq {
    type Value;
    const ABSENT: Self;

    /// The record at the verdict's block, whatever the newest block has.
    fn status_at_block(&self) -> PaymentRecordStatus<Self::Value, Self>;
}

impl TypedPaymentRecord for AddressRecord {
    type Value = Option<Address>;
    const ABSENT: Self = Self::Absent;

    fn status_at_block(&self) -> PaymentRecordStatus<Self::Value, Self> {
        match self {
            Self::Address(address) => PaymentRecordStatus::Settled(Some(*address).filter(|address| !address.is_zero())),
            Self::Absent => PaymentRecordStatus::Absent,
            Self::Malformed(bytes) => PaymentRecordStatus::Malformed(bytes.clone()),
            Self::Failed(cause) => PaymentRecordStatus::Failed(cause.clone()),
        }
    }
}

impl TypedPaymentRecord for EndpointRecord {
    type Value = String;
    const ABSENT: Self = Self::Read(TextRecord::Absent);

    fn status_at_block(&self) -> PaymentRecordStatus<String, Self> {
        match self {
            Self::Read(TextRecord::Text(text)) => PaymentRecordStatus::Settled(text.clone()),
            Self::Read(TextRecord::Absent) => PaymentRecordStatus::Absent,
            Self::Read(TextRecord::NotUtf8(bytes)) => PaymentRecordStatus::Malformed(bytes.clone().into()),
            Self::Failed(cause) => PaymentRecordStatus::Failed(cause.clone()),
        }
    }
}

/// Estimated memory use in bytes, including texts, whose length a resolver controls.
fn estimate_bytes(records: &PaymentRecords) -> usize {
    let texts = records.endpoints.values().map(|record| match record {
        EndpointRecord::Read(TextRecord::Text(text)) => text.len(),
        EndpointRecord::Read(TextRecord::NotUtf8(bytes)) => bytes.len(),
        EndpointRecord::Read(TextRecord::Absent) | EndpointRecord::Failed(_) => 0,
    });
    let entries = size_of::<(CoinType, AddressRecord)>() * records.addresses.len()
        + size_of::<(EndpointRecordKey, EndpointRecord)>() * records.endpoints.len();
    entries + texts.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use clresolve_core::cause::ResolverContractError;
    use clresolve_core::payment::RequestedCoinTypes;
    use clresolve_core::reading::{LatestNameState, ResolvedRecords};
    use jiff::Timestamp;

    use super::*;
    use crate::sample;

    const COIN: CoinType = CoinType::ETHER;
    const KEY: EndpointRecordKey = EndpointRecordKey::Runtime;

    fn cause() -> ChainError {
        ChainError::Resolver(ResolverContractError::RevertedSilently)
    }

    fn records(address: AddressRecord, endpoint: EndpointRecord) -> PaymentRecords {
        PaymentRecords { addresses: [(COIN, address)].into(), endpoints: [(KEY, endpoint)].into(), offchain: false }
    }

    fn text(text: &str) -> EndpointRecord {
        EndpointRecord::Read(TextRecord::Text(text.to_owned()))
    }

    fn address(byte: u8) -> AddressRecord {
        AddressRecord::Address(Address::repeat_byte(byte))
    }

    fn answer(payment: PaymentRecords) -> EnsAnswer {
        EnsAnswer::Records(ResolvedRecords {
            resolver: Address::ZERO,
            wildcard: None,
            offchain: false,
            records: std::iter::empty().collect(),
            payment,
        })
    }

    fn published(settled: PaymentRecords, latest: Option<Result<EnsAnswer, ChainError>>) -> PublishedPaymentRecords {
        let evidence = sample::faultless_evidence(&sample::good_card(), &bytes::Bytes::new(), Timestamp::UNIX_EPOCH);
        let reading = evidence.reading.expect("it was read");
        let latest = latest.map(|answer| answer.map(|answer| LatestNameState { answer, holder: reading.holder }));
        let reading = NameReading { answer: answer(settled), latest, ..reading };
        PublishedPaymentRecords::from_reading(&reading).expect("there are records")
    }

    #[test]
    fn value_is_settled_if_the_newest_block_agrees_or_is_ignored() {
        let same = records(address(1), text("https://a.example"));
        for latest in [None, Some(Ok(answer(same.clone())))] {
            let published = published(same.clone(), latest);
            assert_eq!(
                published.payment_address_status(COIN),
                PaymentRecordStatus::Settled(Some(Address::repeat_byte(1)))
            );
            assert_eq!(
                published.payment_endpoint_status(KEY),
                PaymentRecordStatus::Settled("https://a.example".to_owned())
            );
            assert_eq!(published.payment_address_status(CoinType::EVM_DEFAULT), PaymentRecordStatus::NotAsked);
            assert_eq!(published.payment_endpoint_status(EndpointRecordKey::Web), PaymentRecordStatus::NotAsked);
        }
        let absent = records(AddressRecord::Absent, EndpointRecord::ABSENT);
        for latest in [None, Some(Ok(answer(absent.clone()))), Some(Ok(EnsAnswer::Unregistered))] {
            let published = published(absent.clone(), latest);
            assert_eq!(
                (published.payment_address_status(COIN), published.payment_endpoint_status(KEY)),
                (PaymentRecordStatus::Absent, PaymentRecordStatus::Absent)
            );
        }
    }

    #[test]
    fn a_value_that_the_newest_block_does_not_repeat_is_pending() {
        let settled = records(address(1), text("https://a.example"));
        let pending = |latest: Result<EnsAnswer, ChainError>| {
            let published = published(settled.clone(), Some(latest));
            match (published.payment_address_status(COIN), published.payment_endpoint_status(KEY)) {
                (
                    PaymentRecordStatus::Pending { settled: then, newest },
                    PaymentRecordStatus::Pending { settled: called, newest: calls },
                ) => {
                    assert_eq!((then, called), (address(1), text("https://a.example")));
                    (newest, calls)
                }
                other => panic!("{other:?}"),
            }
        };
        let changed = records(address(2), text("https://b.example"));
        let names: Vec<_> = published(settled.clone(), Some(Ok(answer(changed.clone())))).pending_records().collect();
        assert_eq!(names, ["60", "cl.endpoint.runtime"]);
        assert_eq!(published(settled.clone(), None).pending_records().count(), 0);
        assert_eq!(pending(Ok(answer(changed))), (Ok(address(2)), Ok(text("https://b.example"))));
        let removed = records(AddressRecord::Absent, EndpointRecord::ABSENT);
        assert_eq!(pending(Ok(answer(removed))), (Ok(AddressRecord::Absent), Ok(EndpointRecord::ABSENT)));
        let failed = records(AddressRecord::Failed(cause()), EndpointRecord::Failed(cause()));
        assert_eq!(
            pending(Ok(answer(failed))),
            (Ok(AddressRecord::Failed(cause())), Ok(EndpointRecord::Failed(cause())))
        );
        assert_eq!(pending(Err(cause())), (Err(cause()), Err(cause())));
        assert_eq!(pending(Ok(EnsAnswer::NoResolver(None))), (Ok(AddressRecord::Absent), Ok(EndpointRecord::ABSENT)));
        let unasked = || ChainError::LocalLimit(LocalLimitError::FurtherRecords);
        assert_eq!(pending(Ok(answer(PaymentRecords::default()))), (Err(unasked()), Err(unasked())));
    }

    #[test]
    fn an_absent_record_that_is_about_to_be_set_is_pending() {
        let absent = records(AddressRecord::Absent, EndpointRecord::ABSENT);
        let published = published(absent, Some(Ok(answer(records(address(2), text("https://b.example"))))));
        assert!(matches!(
            published.payment_address_status(COIN),
            PaymentRecordStatus::Pending { newest: Ok(AddressRecord::Address(_)), .. }
        ));
        assert!(matches!(
            published.payment_endpoint_status(KEY),
            PaymentRecordStatus::Pending { newest: Ok(EndpointRecord::Read(_)), .. }
        ));
    }

    #[test]
    fn a_failure_is_never_absence() {
        let failed = records(AddressRecord::Failed(cause()), EndpointRecord::Failed(cause()));
        let absent = answer(records(AddressRecord::Absent, EndpointRecord::ABSENT));
        for latest in [None, Some(Ok(answer(failed.clone()))), Some(Ok(absent))] {
            let published = published(failed.clone(), latest);
            assert_eq!(published.payment_address_status(COIN), PaymentRecordStatus::Failed(cause()));
            assert_eq!(published.payment_endpoint_status(KEY), PaymentRecordStatus::Failed(cause()));
        }
    }

    #[test]
    fn what_is_set_but_unusable_is_malformed() {
        let bytes = Bytes::from_static(&[0xff; 32]);
        let odd =
            records(AddressRecord::Malformed(bytes.clone()), EndpointRecord::Read(TextRecord::NotUtf8(bytes.to_vec())));
        let published = published(odd, None);
        assert_eq!(published.payment_address_status(COIN), PaymentRecordStatus::Malformed(bytes.clone()));
        assert_eq!(published.payment_endpoint_status(KEY), PaymentRecordStatus::Malformed(bytes));
    }

    #[test]
    fn a_name_without_records_publishes_nothing() {
        let evidence = sample::faultless_evidence(&sample::good_card(), &bytes::Bytes::new(), Timestamp::UNIX_EPOCH);
        let reading = evidence.reading.expect("it was read");
        let of = |answer: EnsAnswer| PublishedPaymentRecords::from_reading(&NameReading { answer, ..reading.clone() });
        assert_eq!(of(EnsAnswer::Unregistered), None);
        assert_eq!(of(EnsAnswer::NoResolver(None)), None);
        assert_eq!(of(answer(PaymentRecords::default())), None);
        assert!(of(answer(PaymentRecords::from_read_failure(&RequestedCoinTypes::default(), &cause()))).is_some());
    }

    #[test]
    fn long_texts_have_their_weight() {
        let short = published(records(address(1), text("")), None).estimated_bytes();
        let long = text(&"a".repeat(1 << 20));
        let twice = Some(Ok(answer(records(address(1), long.clone()))));
        assert_eq!(published(records(address(1), long), twice).estimated_bytes() - short, {
            let entries = size_of::<(CoinType, AddressRecord)>() + size_of::<(EndpointRecordKey, EndpointRecord)>();
            (2 << 20) + entries
        });
    }
}
