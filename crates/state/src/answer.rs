//! Converts the contracts' results to an answer, for readings from endpoints and for replays of proofs. No I/O.

use alloy_primitives::Bytes;

use crate::contracts::{
    BadAnswer, Findings, Resolved, ResolverName, decode_address, decode_payment, decode_records, decode_texts,
};
use clresolve_core::cause::{CcipFault, ResolverFault};
use clresolve_core::payment::{Coins, PaymentRecords};
use clresolve_core::reading::{Answer, ChainError, Found, Holding};
use clresolve_core::records::{Key, Record};

/// A response of the contracts.
pub enum Response<T> {
    /// The complete answer.
    Complete(T),
    /// The Universal Resolver has returned data, which is still to be decoded.
    Returned(Returned),
    /// A CCIP-Read lookup is still required (EIP-3668).
    OffChain,
}

/// The bytes that the Universal Resolver returned, by origin.
pub enum Returned {
    /// Returned directly.
    OnChain(Bytes),
    /// Returned after CCIP-Read lookups (EIP-3668).
    OffChain(Bytes),
}

impl Returned {
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
    fn explain(&self, bad: BadAnswer) -> ChainError {
        match bad {
            BadAnswer::Gateway(cause) => ChainError::Ccip(cause),
            BadAnswer::Reverted(cause) if self.is_off_chain() => ChainError::Ccip(CcipFault::Callback(cause)),
            BadAnswer::Reverted(cause) | BadAnswer::Garbage(cause) => ChainError::Resolver(cause),
        }
    }
}

/// The response about a name's records.
///
/// # Errors
/// [`ChainError::Resolver`] or [`ChainError::Ccip`].
pub fn records_response(findings: &Findings) -> Result<Response<Answer>, ChainError> {
    Ok(match &findings.resolved {
        Resolved::Returned(data) => Response::Returned(Returned::OnChain(data.clone())),
        Resolved::Offchain(_) => Response::OffChain,
        Resolved::NoResolver if findings.registered => Response::Complete(Answer::NoResolver(None)),
        Resolved::NoResolver => Response::Complete(Answer::Unregistered),
        Resolved::NotContract(resolver) => Response::Complete(Answer::NoResolver(Some(*resolver))),
        Resolved::Unsupported => return Err(ChainError::Resolver(ResolverFault::NoTextRecords)),
        Resolved::Gateway(cause) => return Err(ChainError::Ccip(cause.clone())),
        Resolved::Failed(cause) => return Err(ChainError::Resolver(cause.clone())),
    })
}

/// Decodes the records of these keys. Payment records are not included; [`with_payment`] adds them.
///
/// # Errors
/// [`ChainError::Resolver`] or [`ChainError::Ccip`].
pub fn records(findings: &Findings, keys: &[Key], returned: &Returned) -> Result<Answer, ChainError> {
    let (resolver, records) = decode_texts(returned.data(), keys).map_err(|bad| returned.explain(bad))?;
    if resolver != findings.source.resolver {
        return Err(ChainError::Resolver(ResolverFault::TwoResolvers));
    }
    let wildcard = match &findings.source.name {
        ResolverName::Own => None,
        ResolverName::Ancestor(ancestor) => Some(ancestor.clone()),
        ResolverName::Invalid => return Err(ChainError::Resolver(ResolverFault::OfNoAncestor)),
    };
    let offchain = returned.is_off_chain();
    Ok(Answer::Records(Found { resolver, wildcard, offchain, records, payment: PaymentRecords::default() }))
}

/// The response about payments. It is complete if none is expected, because payments were not requested or there are no
/// records.
///
/// # Errors
/// [`ChainError::Resolver`] or [`ChainError::Ccip`].
pub fn payment_response(findings: &Findings) -> Result<Response<PaymentRecords>, ChainError> {
    let Some(payment) = findings.payment.as_ref().filter(|_| findings.has_response()) else {
        return Ok(Response::Complete(PaymentRecords::default()));
    };
    match payment {
        Resolved::Returned(data) => Ok(Response::Returned(Returned::OnChain(data.clone()))),
        Resolved::Offchain(_) => Ok(Response::OffChain),
        Resolved::NoResolver | Resolved::NotContract(_) | Resolved::Unsupported => {
            Err(ChainError::Resolver(ResolverFault::UnknownRecords))
        }
        Resolved::Gateway(cause) => Err(ChainError::Ccip(cause.clone())),
        Resolved::Failed(cause) => Err(ChainError::Resolver(cause.clone())),
    }
}

/// Decodes the payment records.
///
/// # Errors
/// [`ChainError::Resolver`] or [`ChainError::Ccip`] if none of the records can be read. If a single record cannot be
/// read, its own value contains the error.
pub fn payment(findings: &Findings, coins: &Coins, returned: &Returned) -> Result<PaymentRecords, ChainError> {
    let explain = |bad| returned.explain(bad);
    let (resolver, records) = decode_payment(returned.data(), coins, explain).map_err(explain)?;
    if resolver == findings.source.resolver {
        Ok(PaymentRecords { offchain: returned.is_off_chain(), ..records })
    } else {
        Err(ChainError::Resolver(ResolverFault::TwoResolvers))
    }
}

/// Adds the payment records to the answer. If they could not be read, each of them contains the error, and the records
/// of the resolution are unchanged.
#[must_use]
pub fn with_payment(answer: Answer, coins: &Coins, payment: Result<PaymentRecords, ChainError>) -> Answer {
    match answer {
        Answer::Records(found) => {
            let payment = payment.unwrap_or_else(|cause| PaymentRecords::failed(coins, &cause));
            Answer::Records(Found { payment, ..found })
        }
        other => other,
    }
}

/// Decodes `count` further records.
///
/// # Errors
/// [`ChainError::Resolver`] or [`ChainError::Ccip`].
pub fn further_records(returned: &Returned, count: usize) -> Result<Vec<Record>, ChainError> {
    decode_records(returned.data(), count).map(|(_, records)| records).map_err(|bad| returned.explain(bad))
}

/// The response about address and holder of an owner's name.
///
/// # Errors
/// [`ChainError::Resolver`] or [`ChainError::Ccip`].
pub fn holding_response(findings: &Findings) -> Result<Response<Holding>, ChainError> {
    Ok(match &findings.resolved {
        Resolved::Returned(data) => Response::Returned(Returned::OnChain(data.clone())),
        Resolved::Offchain(_) => Response::OffChain,
        Resolved::NoResolver | Resolved::NotContract(_) | Resolved::Unsupported => {
            Response::Complete(Holding { address: None, holder: findings.holder })
        }
        Resolved::Gateway(cause) => return Err(ChainError::Ccip(cause.clone())),
        Resolved::Failed(cause) => return Err(ChainError::Resolver(cause.clone())),
    })
}

/// Decodes the address, and adds the holder.
///
/// # Errors
/// [`ChainError::Resolver`] or [`ChainError::Ccip`].
pub fn holding(findings: &Findings, returned: &Returned) -> Result<Holding, ChainError> {
    let address = decode_address(returned.data()).map_err(|bad| returned.explain(bad))?;
    Ok(Holding { address, holder: findings.holder })
}
