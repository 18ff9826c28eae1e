//! Converts the contracts' results to an answer, for readings from endpoints and for replays of proofs. No I/O.

use alloy_primitives::Bytes;

use crate::contracts::{
    NameFindings, ResolverAnswerError, ResolverNameOrigin, UniversalResolverOutcome, decode_address, decode_payment,
    decode_records, decode_texts,
};
use clresolve_core::cause::{CcipLookupError, ResolverContractError};
use clresolve_core::payment::{PaymentRecords, RequestedCoinTypes};
use clresolve_core::reading::{ChainError, ClOwnerReading, EnsAnswer, ResolvedRecords};
use clresolve_core::records::{TextRecord, TextRecordKey};

/// A response of the contracts.
pub enum EnsAnswerStage<T> {
    /// The complete answer.
    Complete(T),
    /// The Universal Resolver has returned data, which is still to be decoded.
    Returned(UniversalResolverBytes),
    /// A CCIP-Read lookup is still required (EIP-3668).
    OffChain,
}

/// The bytes that the Universal Resolver returned, by origin.
pub enum UniversalResolverBytes {
    /// Returned directly.
    OnChain(Bytes),
    /// Returned after CCIP-Read lookups (EIP-3668).
    OffChain(Bytes),
}

impl UniversalResolverBytes {
    const fn data(&self) -> &Bytes {
        match self {
            Self::OnChain(data) | Self::OffChain(data) => data,
        }
    }

    /// Whether CCIP-Read lookups were made.
    pub const fn is_off_chain(&self) -> bool {
        matches!(self, Self::OffChain(_))
    }

    /// The error for a bad answer. After a lookup, a revert means that the callback rejected the gateway's response.
    fn to_chain_error(&self, bad: ResolverAnswerError) -> ChainError {
        match bad {
            ResolverAnswerError::Gateway(cause) => ChainError::Ccip(cause),
            ResolverAnswerError::Reverted(cause) if self.is_off_chain() => {
                ChainError::Ccip(CcipLookupError::Callback(cause))
            }
            ResolverAnswerError::Reverted(cause) | ResolverAnswerError::Garbage(cause) => ChainError::Resolver(cause),
        }
    }
}

/// The response about a name's records.
///
/// # Errors
/// [`ChainError::Resolver`] or [`ChainError::Ccip`].
pub fn records_answer_stage(findings: &NameFindings) -> Result<EnsAnswerStage<EnsAnswer>, ChainError> {
    Ok(match &findings.resolved {
        UniversalResolverOutcome::Returned(data) => {
            EnsAnswerStage::Returned(UniversalResolverBytes::OnChain(data.clone()))
        }
        UniversalResolverOutcome::Offchain(_) => EnsAnswerStage::OffChain,
        UniversalResolverOutcome::NoResolver if findings.registered => {
            EnsAnswerStage::Complete(EnsAnswer::NoResolver(None))
        }
        UniversalResolverOutcome::NoResolver => EnsAnswerStage::Complete(EnsAnswer::Unregistered),
        UniversalResolverOutcome::NotContract(resolver) => {
            EnsAnswerStage::Complete(EnsAnswer::NoResolver(Some(*resolver)))
        }
        UniversalResolverOutcome::Unsupported => {
            return Err(ChainError::Resolver(ResolverContractError::NoTextRecords));
        }
        UniversalResolverOutcome::Gateway(cause) => return Err(ChainError::Ccip(cause.clone())),
        UniversalResolverOutcome::Failed(cause) => return Err(ChainError::Resolver(cause.clone())),
    })
}

/// Decodes the records of these keys. Payment records are not included; [`add_payment_records`] adds them.
///
/// # Errors
/// [`ChainError::Resolver`] or [`ChainError::Ccip`].
pub fn decode_returned_records(
    findings: &NameFindings,
    keys: &[TextRecordKey],
    returned: &UniversalResolverBytes,
) -> Result<EnsAnswer, ChainError> {
    let (resolver, records) = decode_texts(returned.data(), keys).map_err(|bad| returned.to_chain_error(bad))?;
    if resolver != findings.source.resolver {
        return Err(ChainError::Resolver(ResolverContractError::TwoResolvers));
    }
    let wildcard = match &findings.source.name {
        ResolverNameOrigin::Own => None,
        ResolverNameOrigin::Ancestor(ancestor) => Some(ancestor.clone()),
        ResolverNameOrigin::Invalid => return Err(ChainError::Resolver(ResolverContractError::OfNoAncestor)),
    };
    let offchain = returned.is_off_chain();
    Ok(EnsAnswer::Records(ResolvedRecords {
        resolver,
        wildcard,
        offchain,
        records,
        payment: PaymentRecords::default(),
    }))
}

/// The response about payments. It is complete if none is expected, because payments were not requested or there are no
/// records.
///
/// # Errors
/// [`ChainError::Resolver`] or [`ChainError::Ccip`].
pub fn payment_answer_stage(findings: &NameFindings) -> Result<EnsAnswerStage<PaymentRecords>, ChainError> {
    let Some(payment) = findings.payment.as_ref().filter(|_| findings.has_response()) else {
        return Ok(EnsAnswerStage::Complete(PaymentRecords::default()));
    };
    match payment {
        UniversalResolverOutcome::Returned(data) => {
            Ok(EnsAnswerStage::Returned(UniversalResolverBytes::OnChain(data.clone())))
        }
        UniversalResolverOutcome::Offchain(_) => Ok(EnsAnswerStage::OffChain),
        UniversalResolverOutcome::NoResolver
        | UniversalResolverOutcome::NotContract(_)
        | UniversalResolverOutcome::Unsupported => Err(ChainError::Resolver(ResolverContractError::UnknownRecords)),
        UniversalResolverOutcome::Gateway(cause) => Err(ChainError::Ccip(cause.clone())),
        UniversalResolverOutcome::Failed(cause) => Err(ChainError::Resolver(cause.clone())),
    }
}

/// Decodes the payment records.
///
/// # Errors
/// [`ChainError::Resolver`] or [`ChainError::Ccip`] if none of the records can be read. If a single record
/// cannot be read, its own value contains the error.
pub fn decode_returned_payment(
    findings: &NameFindings,
    coins: &RequestedCoinTypes,
    returned: &UniversalResolverBytes,
) -> Result<PaymentRecords, ChainError> {
    let explain = |bad| returned.to_chain_error(bad);
    let (resolver, records) = decode_payment(returned.data(), coins, explain).map_err(explain)?;
    if resolver == findings.source.resolver {
        Ok(PaymentRecords { offchain: returned.is_off_chain(), ..records })
    } else {
        Err(ChainError::Resolver(ResolverContractError::TwoResolvers))
    }
}

/// Adds the payment records to the answer. If they could not be read, each of them contains the error, and the records
/// of the resolution are unchanged.
#[must_use]
pub fn add_payment_records(
    answer: EnsAnswer,
    coins: &RequestedCoinTypes,
    payment: Result<PaymentRecords, ChainError>,
) -> EnsAnswer {
    match answer {
        EnsAnswer::Records(found) => {
            let payment = payment.unwrap_or_else(|cause| PaymentRecords::from_read_failure(coins, &cause));
            EnsAnswer::Records(ResolvedRecords { payment, ..found })
        }
        other => other,
    }
}

/// Decodes `count` further records.
///
/// # Errors
/// [`ChainError::Resolver`] or [`ChainError::Ccip`].
pub fn decode_returned_further_records(
    returned: &UniversalResolverBytes,
    count: usize,
) -> Result<Vec<TextRecord>, ChainError> {
    decode_records(returned.data(), count).map(|(_, records)| records).map_err(|bad| returned.to_chain_error(bad))
}

/// The response about address and holder of an owner's name.
///
/// # Errors
/// [`ChainError::Resolver`] or [`ChainError::Ccip`].
pub fn owner_details_answer_stage(findings: &NameFindings) -> Result<EnsAnswerStage<ClOwnerReading>, ChainError> {
    Ok(match &findings.resolved {
        UniversalResolverOutcome::Returned(data) => {
            EnsAnswerStage::Returned(UniversalResolverBytes::OnChain(data.clone()))
        }
        UniversalResolverOutcome::Offchain(_) => EnsAnswerStage::OffChain,
        UniversalResolverOutcome::NoResolver
        | UniversalResolverOutcome::NotContract(_)
        | UniversalResolverOutcome::Unsupported => {
            EnsAnswerStage::Complete(ClOwnerReading { address: None, holder: findings.holder })
        }
        UniversalResolverOutcome::Gateway(cause) => return Err(ChainError::Ccip(cause.clone())),
        UniversalResolverOutcome::Failed(cause) => return Err(ChainError::Resolver(cause.clone())),
    })
}

/// Decodes the address, and adds the holder.
///
/// # Errors
/// [`ChainError::Resolver`] or [`ChainError::Ccip`].
pub fn decode_returned_owner_details(
    findings: &NameFindings,
    returned: &UniversalResolverBytes,
) -> Result<ClOwnerReading, ChainError> {
    let address = decode_address(returned.data()).map_err(|bad| returned.to_chain_error(bad))?;
    Ok(ClOwnerReading { address, holder: findings.holder })
}
