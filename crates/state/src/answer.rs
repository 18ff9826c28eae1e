//! Converts the contracts' results to an answer, for readings from endpoints and for replays of proofs. No I/O.

use alloy_primitives::Bytes;

use crate::contracts::{
    NameFindings, ResolverAnswerError, ResolverNameOrigin, UniversalResolverOutcome, decode_address, decode_payment,
    decode_records, decode_texts,
};
use clresolve_core::cause::{CcipLookupError, ResolverContractError};
use clresolve_core::payment::{CoinTypes, PaymentRecords};
use clresolve_core::reading::{ChainError, EnsAnswer, OwnerReading, ResolvedRecords};
use clresolve_core::records::{RecordKey, TextRecord};

/// A response of the contracts.
pub enum ContractResponse<T> {
    /// The complete answer.
    Complete(T),
    /// The Universal Resolver has returned data, which is still to be decoded.
    Returned(ResolverReturnData),
    /// A CCIP-Read lookup is still required (EIP-3668).
    OffChain,
}

/// The bytes that the Universal Resolver returned, by origin.
pub enum ResolverReturnData {
    /// Returned directly.
    OnChain(Bytes),
    /// Returned after CCIP-Read lookups (EIP-3668).
    OffChain(Bytes),
}

impl ResolverReturnData {
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
    fn answer_error(&self, bad: ResolverAnswerError) -> ChainError {
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
pub fn records_response(findings: &NameFindings) -> Result<ContractResponse<EnsAnswer>, ChainError> {
    Ok(match &findings.resolved {
        UniversalResolverOutcome::Returned(data) => {
            ContractResponse::Returned(ResolverReturnData::OnChain(data.clone()))
        }
        UniversalResolverOutcome::Offchain(_) => ContractResponse::OffChain,
        UniversalResolverOutcome::NoResolver if findings.registered => {
            ContractResponse::Complete(EnsAnswer::NoResolver(None))
        }
        UniversalResolverOutcome::NoResolver => ContractResponse::Complete(EnsAnswer::Unregistered),
        UniversalResolverOutcome::NotContract(resolver) => {
            ContractResponse::Complete(EnsAnswer::NoResolver(Some(*resolver)))
        }
        UniversalResolverOutcome::Unsupported => {
            return Err(ChainError::Resolver(ResolverContractError::NoTextRecords));
        }
        UniversalResolverOutcome::Gateway(cause) => return Err(ChainError::Ccip(cause.clone())),
        UniversalResolverOutcome::Failed(cause) => return Err(ChainError::Resolver(cause.clone())),
    })
}

/// Decodes the records of these keys. Payment records are not included; [`with_payment`] adds them.
///
/// # Errors
/// [`ChainError::Resolver`] or [`ChainError::Ccip`].
pub fn records_from_return(
    findings: &NameFindings,
    keys: &[RecordKey],
    returned: &ResolverReturnData,
) -> Result<EnsAnswer, ChainError> {
    let (resolver, records) = decode_texts(returned.data(), keys).map_err(|bad| returned.answer_error(bad))?;
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
pub fn payment_response(findings: &NameFindings) -> Result<ContractResponse<PaymentRecords>, ChainError> {
    let Some(payment) = findings.payment.as_ref().filter(|_| findings.has_response()) else {
        return Ok(ContractResponse::Complete(PaymentRecords::default()));
    };
    match payment {
        UniversalResolverOutcome::Returned(data) => {
            Ok(ContractResponse::Returned(ResolverReturnData::OnChain(data.clone())))
        }
        UniversalResolverOutcome::Offchain(_) => Ok(ContractResponse::OffChain),
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
/// [`ChainError::Resolver`] or [`ChainError::Ccip`] if none of the records can be read. If a single record cannot be
/// read, its own value contains the error.
pub fn payment_from_return(
    findings: &NameFindings,
    coins: &CoinTypes,
    returned: &ResolverReturnData,
) -> Result<PaymentRecords, ChainError> {
    let explain = |bad| returned.answer_error(bad);
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
pub fn with_payment(answer: EnsAnswer, coins: &CoinTypes, payment: Result<PaymentRecords, ChainError>) -> EnsAnswer {
    match answer {
        EnsAnswer::Records(found) => {
            let payment = payment.unwrap_or_else(|cause| PaymentRecords::failed(coins, &cause));
            EnsAnswer::Records(ResolvedRecords { payment, ..found })
        }
        other => other,
    }
}

/// Decodes `count` further records.
///
/// # Errors
/// [`ChainError::Resolver`] or [`ChainError::Ccip`].
pub fn further_records_from_return(returned: &ResolverReturnData, count: usize) -> Result<Vec<TextRecord>, ChainError> {
    decode_records(returned.data(), count).map(|(_, records)| records).map_err(|bad| returned.answer_error(bad))
}

/// The response about address and holder of an owner's name.
///
/// # Errors
/// [`ChainError::Resolver`] or [`ChainError::Ccip`].
pub fn holding_response(findings: &NameFindings) -> Result<ContractResponse<OwnerReading>, ChainError> {
    Ok(match &findings.resolved {
        UniversalResolverOutcome::Returned(data) => {
            ContractResponse::Returned(ResolverReturnData::OnChain(data.clone()))
        }
        UniversalResolverOutcome::Offchain(_) => ContractResponse::OffChain,
        UniversalResolverOutcome::NoResolver
        | UniversalResolverOutcome::NotContract(_)
        | UniversalResolverOutcome::Unsupported => {
            ContractResponse::Complete(OwnerReading { address: None, holder: findings.holder })
        }
        UniversalResolverOutcome::Gateway(cause) => return Err(ChainError::Ccip(cause.clone())),
        UniversalResolverOutcome::Failed(cause) => return Err(ChainError::Resolver(cause.clone())),
    })
}

/// Decodes the address, and adds the holder.
///
/// # Errors
/// [`ChainError::Resolver`] or [`ChainError::Ccip`].
pub fn holding_from_return(findings: &NameFindings, returned: &ResolverReturnData) -> Result<OwnerReading, ChainError> {
    let address = decode_address(returned.data()).map_err(|bad| returned.answer_error(bad))?;
    Ok(OwnerReading { address, holder: findings.holder })
}
