//! What endpoints must do for an answer.

use std::collections::BTreeSet;

use clresolve_core::reading::GradeDemand;

use super::endpoint::Endpoint;
use super::error::ConfigError;
use super::value::ProofDemand;

/// Operators that must agree unless another number is chosen. It is how many would have to lie together; a longer list of
/// endpoints stands for more that may fail, not for more that must lie.
pub const DEFAULT_QUORUM: usize = 2;

/// Why a build without the feature `state-proof` refuses what demands it. It never falls back to a lower grade.
pub(crate) const NO_STATE_PROOF: &str = "this build computes no state proofs: it lacks the feature state-proof";

/// What endpoints must do for an answer, where this proof and this quorum are asked for.
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
        // One operator alone is better than nothing: its lies about the state are found out, those about the header not.
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
