//! The proof and the quorum that endpoints must provide for an answer.

use std::collections::BTreeSet;

use clresolve_core::reading::ProofGradeDemand;

use super::endpoint::RpcEndpointConfig;
use super::error::ConfigError;
use super::value::{BlockHeaderProofMode, ChainProofMode};

/// Default number of operators that must agree, which is the number that would have to collude. A longer list of
/// endpoints makes the daemon tolerate more failures; it does not raise this number.
pub const DEFAULT_QUORUM: usize = 2;

/// The error of a build without the feature `state-proof` when state proofs are demanded. It never falls back to a
/// weaker grade.
pub(crate) const NO_STATE_PROOF: &str = "this build computes no state proofs: it lacks the feature state-proof";

/// The demand that follows from the configured proof and quorum.
pub(super) fn derive_proof_grade_demand(
    endpoints: &[RpcEndpointConfig],
    proof: Option<ChainProofMode>,
    quorum: Option<usize>,
) -> Result<ProofGradeDemand, ConfigError> {
    let operators: BTreeSet<&str> = endpoints.iter().map(|endpoint| endpoint.operator.as_str()).collect();
    let believes_one = operators.len() < DEFAULT_QUORUM || endpoints.first().is_some_and(|first| first.own);
    let agree = match (proof, quorum) {
        (Some(ChainProofMode::SingleRpc), None) => return Ok(ProofGradeDemand::SingleRpc),
        (None, None) if believes_one => return Ok(ProofGradeDemand::SingleRpc),
        (Some(ChainProofMode::SingleRpc), Some(_)) => {
            return Err(ConfigError::conflict("quorum", "proof single-rpc needs no quorum; remove one of the two"));
        }
        // With a single operator, false state is still detected, but a false header is not.
        (Some(ChainProofMode::StateProof | ChainProofMode::ConsensusProof), None) => {
            operators.len().clamp(1, DEFAULT_QUORUM)
        }
        (_, agree) => agree.unwrap_or(DEFAULT_QUORUM),
    };
    if operators.len() < agree {
        let detail = format!(
            "{agree} operators must agree, but the endpoints have {}; add endpoints to rpc, or set the key operator \
             of each",
            operators.len()
        );
        return Err(ConfigError::conflict("quorum", detail));
    }
    match proof {
        Some(ChainProofMode::StateProof | ChainProofMode::ConsensusProof) => {
            check_proof_support(ProofGradeDemand::StateProof(agree))
        }
        _ => Ok(ProofGradeDemand::Quorum(agree)),
    }
}

/// As [`derive_proof_grade_demand`], with the configured demand for headers.
pub(super) fn derive_proof_demand_with_header(
    endpoints: &[RpcEndpointConfig],
    proof: Option<ChainProofMode>,
    quorum: Option<usize>,
    header: Option<BlockHeaderProofMode>,
) -> Result<ProofGradeDemand, ConfigError> {
    match (derive_header_proof_mode(header, proof)?, quorum) {
        (BlockHeaderProofMode::Quorum, quorum) => derive_proof_grade_demand(endpoints, proof, quorum),
        (BlockHeaderProofMode::Consensus, None) => check_proof_support(ProofGradeDemand::ConsensusProof(0)),
        (BlockHeaderProofMode::Consensus, Some(_)) => {
            let detail = "chain.header consensus asks no quorum; set it to both, or remove quorum";
            Err(ConfigError::conflict("quorum", detail))
        }
        (BlockHeaderProofMode::Both, quorum) => {
            match derive_proof_grade_demand(endpoints, Some(ChainProofMode::StateProof), quorum)? {
                ProofGradeDemand::StateProof(agree) => Ok(ProofGradeDemand::ConsensusProof(agree)),
                demand => Ok(demand),
            }
        }
    }
}

/// Who must vouch for the headers of records with this proof.
pub(super) fn derive_header_proof_mode(
    header: Option<BlockHeaderProofMode>,
    proof: Option<ChainProofMode>,
) -> Result<BlockHeaderProofMode, ConfigError> {
    let is_consensus_proof = proof == Some(ChainProofMode::ConsensusProof);
    let default = if is_consensus_proof { BlockHeaderProofMode::Consensus } else { BlockHeaderProofMode::Quorum };
    let header = header.unwrap_or(default);
    if is_consensus_proof && header == BlockHeaderProofMode::Quorum {
        let detail = "proof consensus-proof needs a header by consensus; set consensus or both, or proof state-proof";
        return Err(ConfigError::conflict("chain.header", detail));
    }
    let is_computed = is_consensus_proof || proof == Some(ChainProofMode::StateProof);
    if header.requires_consensus() && !is_computed && !clresolve_core::mutant!("header-proves-records") {
        let detail = format!("{header} proves headers, but no records; set proof consensus-proof");
        return Err(ConfigError::conflict("chain.header", detail));
    }
    Ok(header)
}

/// The table `[chain]`, which has one key.
pub(super) mod chain_table {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::config::BlockHeaderProofMode;
    use crate::config::text;

    #[derive(Default, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct HeaderProofTomlTable {
        #[serde(with = "text::optional")]
        header: Option<BlockHeaderProofMode>,
    }

    pub(in crate::config) fn serialize<S: Serializer>(
        header: &Option<BlockHeaderProofMode>,
        s: S,
    ) -> Result<S::Ok, S::Error> {
        HeaderProofTomlTable { header: *header }.serialize(s)
    }

    pub(in crate::config) fn deserialize<'de, D: Deserializer<'de>>(
        d: D,
    ) -> Result<Option<BlockHeaderProofMode>, D::Error> {
        HeaderProofTomlTable::deserialize(d).map(|table| table.header)
    }
}

fn check_proof_support(demand: ProofGradeDemand) -> Result<ProofGradeDemand, ConfigError> {
    if cfg!(feature = "state-proof") { Ok(demand) } else { Err(ConfigError::conflict("proof", NO_STATE_PROOF)) }
}
