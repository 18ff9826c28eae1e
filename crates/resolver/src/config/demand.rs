//! The proof and the quorum that endpoints must provide for an answer.

use std::collections::BTreeSet;

use clresolve_core::reading::GradeDemand;

use super::endpoint::Endpoint;
use super::error::ConfigError;
use super::value::ProofDemand;

/// Default number of operators that must agree, which is the number that would have to collude. A longer list of
/// endpoints makes the daemon tolerate more failures; it does not raise this number.
pub const DEFAULT_QUORUM: usize = 2;

/// The error of a build without the feature `state-proof` when state proofs are demanded. It never falls back to a
/// weaker grade.
pub(crate) const NO_STATE_PROOF: &str = "this build computes no state proofs: it lacks the feature state-proof";

/// The demand that follows from the configured proof and quorum.
pub(super) fn demanded(
    endpoints: &[Endpoint],
    proof: Option<ProofDemand>,
    quorum: Option<usize>,
) -> Result<GradeDemand, ConfigError> {
    let operators: BTreeSet<&str> = endpoints.iter().map(|endpoint| endpoint.operator.as_str()).collect();
    let believes_one = operators.len() < DEFAULT_QUORUM || endpoints.first().is_some_and(|first| first.own);
    let agree = match (proof, quorum) {
        (Some(ProofDemand::SingleRpc), None) => return Ok(GradeDemand::SingleRpc),
        (None, None) if believes_one => return Ok(GradeDemand::SingleRpc),
        (Some(ProofDemand::SingleRpc), Some(_)) => {
            return Err(ConfigError::Conflict {
                key: "quorum".to_owned(),
                detail: "proof single-rpc needs no agreement; leave one of the two out".to_owned(),
            });
        }
        // With a single operator, false state is still detected, but a false header is not.
        (Some(ProofDemand::StateProof), None) => operators.len().clamp(1, DEFAULT_QUORUM),
        (_, agree) => agree.unwrap_or(DEFAULT_QUORUM),
    };
    if operators.len() < agree {
        return Err(ConfigError::Conflict {
            key: "quorum".to_owned(),
            detail: format!(
                "{agree} operators must agree, but the endpoints are of {}; name more with rpc, or say with the key \
                 operator whose they are",
                operators.len()
            ),
        });
    }
    match proof {
        Some(ProofDemand::StateProof) if !cfg!(feature = "state-proof") => {
            Err(ConfigError::Conflict { key: "proof".to_owned(), detail: NO_STATE_PROOF.to_owned() })
        }
        Some(ProofDemand::StateProof) => Ok(GradeDemand::StateProof(agree)),
        _ => Ok(GradeDemand::Quorum(agree)),
    }
}
