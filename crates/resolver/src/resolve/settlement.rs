//! Settlements: reads the transaction that a seller names from the chain of the payment. It is read once per verdict,
//! through the endpoints of `[chains.ID]`.

use std::sync::Arc;

use tokio::time::{Instant, timeout};

use clresolve_core::digest::Digest;
use clresolve_core::reason::{Reason, ReasonEffect};
use clresolve_core::state::TrustState;
use clresolve_payment::settlement::{
    DueTransfer, PurchasePaymentDocuments, SettlementAssuranceLevel, SettlementCheckResult, TransactionCheckResult,
    unproven_reason,
};
use clresolve_state::receipts::TransactionReading;

use super::look_ups::{LookupCache, LookupCacheValue, ResolvedVerdictKey};
use super::registration::{AgentRegistries, ConfiguredAgentRegistry, LOOK_UP_SHARE};
use super::walk::UncachedResolver;
use crate::config::{Config, ProofGradeDemand};

/// The share of a lookup's remaining time that a proof may use.
const PROOF_SHARE: f64 = 0.5;

/// What was seen of a transaction, or why nothing was.
type SettlementResult = Result<TransactionCheckResult, Box<Reason>>;

/// Recently read transactions, keyed by the digest of their expected content.
pub(super) type SettlementLookupCache = LookupCache<Digest, SettlementResult>;

impl LookupCacheValue for SettlementResult {
    // The transaction is in a finalized block.
    const IS_FINAL: bool = true;

    fn lifetime_state(&self) -> TrustState {
        match self {
            Ok(TransactionCheckResult { objection: None, .. }) => TrustState::Trusted,
            Ok(TransactionCheckResult { objection: Some(reason), .. }) if reason.effect == ReasonEffect::Fail => {
                TrustState::Untrusted
            }
            _ => TrustState::Indeterminate,
        }
    }

    fn undecided(cause: &str) -> Self {
        Err(unproven_reason("endpoints", cause).into())
    }
}

/// Whether the purchase was paid, if the payment or the response was kept. `beside` is the verdict on the seller.
pub(super) async fn check_purchase_settlement(
    settlements: &SettlementLookupCache,
    registries: &AgentRegistries,
    walker: &Arc<UncachedResolver>,
    beside: Option<&ResolvedVerdictKey>,
    purchase: &PurchasePaymentDocuments,
) -> Option<SettlementCheckResult> {
    if !purchase.requires_settlement_check() {
        return None;
    }
    let Some(beside) = beside else {
        return Some(SettlementCheckResult::from_transaction_check(
            purchase,
            None,
            SettlementResult::undecided("the name has no normal form"),
        ));
    };
    let due = match purchase.due_transfer(beside.name.as_str()) {
        Ok(due) => due,
        Err(reason) => return Some(SettlementCheckResult::from_transaction_check(purchase, None, Err(reason))),
    };
    let chain = match chain_of_transfer(registries, &due) {
        Ok(chain) => chain,
        Err(cause) => {
            return Some(SettlementCheckResult::from_transaction_check(
                purchase,
                Some(due),
                SettlementResult::undecided(&cause),
            ));
        }
    };
    let key = due.digest();
    let (asking, asked) = (Arc::clone(walker), due.clone());
    let look_up = async move { look_up_settlement(&asking, &chain, &asked).await };
    let seen = if clresolve_core::mutant!("settlements-are-looked-up-anew") {
        look_up.await
    } else {
        settlements.get_or_look_up(beside.clone(), key, &walker.clock, look_up).await
    };
    Some(SettlementCheckResult::from_transaction_check(purchase, Some(due), seen))
}

async fn look_up_settlement(
    walker: &UncachedResolver,
    chain: &ConfiguredAgentRegistry,
    due: &DueTransfer,
) -> SettlementResult {
    match read_and_judge_transaction(walker, chain, due).await {
        Ok((_, seen)) => seen,
        Err(cause) => SettlementResult::undecided(&cause),
    }
}

/// Reads the transaction from the chain of the payment, with the same proof requirement as for names.
///
/// # Errors
/// A description of why it is unknown.
pub(super) async fn read_transaction(
    registries: &AgentRegistries,
    walker: &UncachedResolver,
    due: &DueTransfer,
) -> Result<TransactionReading, String> {
    Ok(read_and_judge_transaction(walker, &*chain_of_transfer(registries, due)?, due).await?.0)
}

fn chain_of_transfer(registries: &AgentRegistries, due: &DueTransfer) -> Result<Arc<ConfiguredAgentRegistry>, String> {
    registries
        .registry_for_network(&due.network)
        .ok_or_else(|| format!("none is configured for {} (chains.ID)", due.network))
}

/// Reads the transaction. Also returns what it shows.
async fn read_and_judge_transaction(
    walker: &UncachedResolver,
    chain: &ConfiguredAgentRegistry,
    due: &DueTransfer,
) -> Result<(TransactionReading, SettlementResult), String> {
    let (began, limit) = (Instant::now(), walker.config.timeout.mul_f64(LOOK_UP_SHARE));
    let seen = timeout(limit, chain.transaction_reader().look_up_transaction(due.transaction)).await;
    let seen = seen.map_err(|_| "no answer in time".to_owned())?.map_err(|error| error.to_string())?;
    let proof = if due.is_provable_by_logs() {
        // A proof that does not arrive does not affect what is known without it.
        let left = limit.saturating_sub(began.elapsed()).mul_f64(PROOF_SHARE);
        timeout(left, chain.transaction_reader().prove_receipt(&seen)).await.ok().flatten()
    } else {
        None
    };
    let reading = seen.into_reading(proof);
    let due = due.clone();
    // A transaction may have megabytes of logs and input.
    let judged = move || {
        let TransactionReading { head, execution, proof, receipt_proof } = &reading;
        let seen = due.check_transaction(head, execution.as_ref(), proof, receipt_proof.is_some());
        (reading, seen)
    };
    let (reading, seen) = walker.pool.run(judged).await;
    match seen.as_ref().ok().and_then(|sight| proof_weakness(&walker.config, sight)) {
        Some(cause) => Err(cause.to_owned()),
        None => Ok((reading, seen)),
    }
}

/// Why a reading is rejected: its proof is weaker than names require.
fn proof_weakness(config: &Config, sight: &TransactionCheckResult) -> Option<&'static str> {
    if clresolve_core::mutant!("any-proof-of-a-settlement") {
        return None;
    }
    let is_state_proof = config.chain.proof_grade_demand().is_ok_and(ProofGradeDemand::requires_state_proof);
    if is_state_proof
        && sight.shown_by == SettlementAssuranceLevel::Reported
        && !clresolve_core::mutant!("reported-is-proven")
    {
        return Some("a grade above quorum is required, but endpoints only report this settlement");
    }
    config.gate.gate_policy().proof_objection(&sight.effective_proof())
}

#[cfg(all(test, feature = "state-proof"))]
mod tests {
    use alloy_primitives::B256;
    use clresolve_core::reading::ChainBlock;
    use clresolve_core::reason::ReasonCode;
    use jiff::Timestamp;

    use super::*;
    use crate::config::{ChainProofMode, ProofGrade};

    const QUORUM: clresolve_core::reading::ProofStrength =
        clresolve_core::reading::ProofStrength { grade: ProofGrade::Quorum, asked: 2, agreed: 2, own: false };

    /// The report of two endpoints, as for a call of Permit2's proxy whose receipt is also proven.
    fn sample_check_result(shown_by: SettlementAssuranceLevel) -> TransactionCheckResult {
        let block = ChainBlock { number: 7, hash: B256::ZERO, timestamp: Timestamp::UNIX_EPOCH };
        TransactionCheckResult { objection: None, shown_by, block, proof: QUORUM }
    }

    fn config_with_proof(proof: Option<ChainProofMode>, min_proof: Option<ProofGrade>) -> Config {
        let mut config = Config::default();
        let endpoints = ["https://one.example", "https://two.example"];
        config.chain.endpoints = endpoints.map(|url| url.parse().expect("an endpoint")).into();
        (config.chain.proof, config.gate.min_proof) = (proof, min_proof);
        config
    }

    #[test]
    fn what_is_reported_never_meets_state_proof() {
        for config in [
            config_with_proof(Some(ChainProofMode::StateProof), None),
            config_with_proof(None, Some(ProofGrade::StateProof)),
        ] {
            assert!(proof_weakness(&config, &sample_check_result(SettlementAssuranceLevel::Reported)).is_some());
            assert_eq!(proof_weakness(&config, &sample_check_result(SettlementAssuranceLevel::Proven)), None);
        }
        assert_eq!(
            proof_weakness(
                &config_with_proof(None, Some(ProofGrade::Quorum)),
                &sample_check_result(SettlementAssuranceLevel::Reported)
            ),
            None
        );
    }

    #[test]
    fn a_header_of_one_stranger_proves_nothing() {
        let alone =
            clresolve_core::reading::ProofStrength { grade: ProofGrade::SingleRpc, asked: 1, agreed: 1, own: false };
        let weak = |shown_by| {
            proof_weakness(
                &config_with_proof(None, None),
                &TransactionCheckResult { proof: alone, ..sample_check_result(shown_by) },
            )
        };
        assert_eq!(
            [weak(SettlementAssuranceLevel::Reported), weak(SettlementAssuranceLevel::Proven)],
            [Some(ReasonCode::SingleRpc.slug()); 2]
        );
    }
}
