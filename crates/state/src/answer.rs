//! From what the contracts said to an answer: the part that asking endpoints and replaying proofs have in common. No I/O.

use alloy_primitives::Bytes;

use super::contracts::{BadAnswer, Findings, Place, Resolved, decode_address, decode_records, decode_texts};
use clresolve_core::cause::{CcipFault, ResolverFault};
use clresolve_core::reading::{Answer, ChainError, Found, Holding};
use clresolve_core::records::{Key, Record};

/// How far the contracts' word goes.
pub enum Said<T> {
    /// This is it.
    All(T),
    /// The Universal Resolver returned these bytes.
    Data(Bytes),
    /// A look-up off the chain is left to do (EIP-3668).
    OffChain,
}

/// What the findings say of a name's records.
///
/// # Errors
/// [`ChainError::Resolver`] or [`ChainError::Ccip`].
pub fn records_told(findings: &Findings) -> Result<Said<Answer>, ChainError> {
    Ok(match &findings.resolved {
        Resolved::Returned(data) => Said::Data(data.clone()),
        Resolved::Offchain(_) => Said::OffChain,
        Resolved::NoResolver if findings.registered => Said::All(Answer::NoResolver(None)),
        Resolved::NoResolver => Said::All(Answer::Unregistered),
        Resolved::NotContract(resolver) => Said::All(Answer::NoResolver(Some(*resolver))),
        Resolved::Unsupported => return Err(ChainError::Resolver(ResolverFault::NoTextRecords)),
        Resolved::Gateway(cause) => return Err(ChainError::Ccip(cause.clone())),
        Resolved::Failed(cause) => return Err(ChainError::Resolver(cause.clone())),
    })
}

/// The records of these keys in what the Universal Resolver returned for them; `offchain` says that look-ups came before.
///
/// # Errors
/// [`ChainError::Resolver`] or [`ChainError::Ccip`].
pub fn records(findings: &Findings, keys: &[Key], data: &[u8], offchain: bool) -> Result<Answer, ChainError> {
    let (resolver, records) = decode_texts(data, keys).map_err(|bad| bad_answer(bad, offchain))?;
    if resolver != findings.source.resolver {
        return Err(ChainError::Resolver(ResolverFault::TwoResolvers));
    }
    let wildcard = match &findings.source.place {
        Place::Own => None,
        Place::Ancestor(ancestor) => Some(ancestor.clone()),
        Place::Nameless => return Err(ChainError::Resolver(ResolverFault::OfNoAncestor)),
    };
    Ok(Answer::Records(Found { resolver, wildcard, offchain, records }))
}

/// So many further records in what the Universal Resolver returned for them.
///
/// # Errors
/// [`ChainError::Resolver`] or [`ChainError::Ccip`].
pub fn further_records(data: &[u8], count: usize, offchain: bool) -> Result<Vec<Record>, ChainError> {
    decode_records(data, count).map(|(_, records)| records).map_err(|bad| bad_answer(bad, offchain))
}

/// What the findings say of address and holder of an owner's name.
///
/// # Errors
/// [`ChainError::Resolver`] or [`ChainError::Ccip`].
pub fn holding_told(findings: &Findings) -> Result<Said<Holding>, ChainError> {
    Ok(match &findings.resolved {
        Resolved::Returned(data) => Said::Data(data.clone()),
        Resolved::Offchain(_) => Said::OffChain,
        Resolved::NoResolver | Resolved::NotContract(_) | Resolved::Unsupported => {
            Said::All(Holding { address: None, holder: findings.holder })
        }
        Resolved::Gateway(cause) => return Err(ChainError::Ccip(cause.clone())),
        Resolved::Failed(cause) => return Err(ChainError::Resolver(cause.clone())),
    })
}

/// The address in what the Universal Resolver returned, and the holder.
///
/// # Errors
/// [`ChainError::Resolver`] or [`ChainError::Ccip`].
pub fn holding(findings: &Findings, data: &[u8], offchain: bool) -> Result<Holding, ChainError> {
    let address = decode_address(data).map_err(|bad| bad_answer(bad, offchain))?;
    Ok(Holding { address, holder: findings.holder })
}

/// Where a gateway had a hand in it, a revert is the callback's refusal of what the gateway gave.
fn bad_answer(bad: BadAnswer, offchain: bool) -> ChainError {
    match bad {
        BadAnswer::Gateway(cause) => ChainError::Ccip(cause),
        BadAnswer::Reverted(cause) if offchain => ChainError::Ccip(CcipFault::Callback(cause)),
        BadAnswer::Reverted(cause) | BadAnswer::Garbage(cause) => ChainError::Resolver(cause),
    }
}
