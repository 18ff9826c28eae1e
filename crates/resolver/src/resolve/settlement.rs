//! Settlements: reads the transaction that a seller names from the chain of the payment. It is read once per verdict,
//! through the endpoints of `[chains.ID]`.

use std::sync::Arc;

use tokio::time::{Instant, timeout};

use clresolve_core::digest::Digest;
use clresolve_core::reason::{Effect, Reason};
use clresolve_core::state::State;
use clresolve_payment::settlement::{Due, Purchase, Settlement, ShownBy, Sight, unproven};
use clresolve_state::receipts::TransactionReading;

use super::look_ups::{Beside, LookUpResult, LookUps};
use super::registration::{AgentRegistries, LOOK_UP_SHARE, Registry};
use super::walk::Walker;
use crate::config::{Config, GradeDemand};

/// The share of a lookup's remaining time that a proof may use.
const PROOF_SHARE: f64 = 0.5;

/// What was seen of a transaction, or why nothing was.
type Seen = Result<Sight, Box<Reason>>;

/// Recently read transactions, keyed by the digest of their expected content.
pub(super) type Settlements = LookUps<Digest, Seen>;

impl LookUpResult for Seen {
    // The transaction is in a finalized block.
    const IS_FINAL: bool = true;

    fn state(&self) -> State {
        match self {
            Ok(Sight { objection: None, .. }) => State::Trusted,
            Ok(Sight { objection: Some(reason), .. }) if reason.effect == Effect::Fail => State::Untrusted,
            _ => State::Indeterminate,
        }
    }

    fn undecided(cause: &str) -> Self {
        Err(unproven("endpoints", cause).into())
    }
}

/// Whether the purchase was paid, if the payment or the response was kept. `beside` is the verdict on the seller.
pub(super) async fn of(
    settlements: &Settlements,
    registries: &AgentRegistries,
    walker: &Arc<Walker>,
    beside: Option<&Beside>,
    purchase: &Purchase,
) -> Option<Settlement> {
    if !purchase.asks_for_settlement() {
        return None;
    }
    let Some(beside) = beside else {
        return Some(Settlement::of(purchase, None, Seen::undecided("the name has no normal form")));
    };
    let due = match purchase.due(beside.name.as_str()) {
        Ok(due) => due,
        Err(reason) => return Some(Settlement::of(purchase, None, Err(reason))),
    };
    let chain = match chain(registries, &due) {
        Ok(chain) => chain,
        Err(cause) => return Some(Settlement::of(purchase, Some(due), Seen::undecided(&cause))),
    };
    let key = due.digest();
    let (asking, asked) = (Arc::clone(walker), due.clone());
    let look_up = async move { looked_up(&asking, &chain, &asked).await };
    let seen = if clresolve_core::mutant!("settlements-are-looked-up-anew") {
        look_up.await
    } else {
        settlements.answer(beside.clone(), key, &walker.clock, look_up).await
    };
    Some(Settlement::of(purchase, Some(due), seen))
}

async fn looked_up(walker: &Walker, chain: &Registry, due: &Due) -> Seen {
    match read(walker, chain, due).await {
        Ok((_, seen)) => seen,
        Err(cause) => Seen::undecided(&cause),
    }
}

/// Reads the transaction from the chain of the payment, with the same proof requirement as for names.
///
/// # Errors
/// A description of why it is unknown.
pub(super) async fn transaction(
    registries: &AgentRegistries,
    walker: &Walker,
    due: &Due,
) -> Result<TransactionReading, String> {
    Ok(read(walker, &*chain(registries, due)?, due).await?.0)
}

fn chain(registries: &AgentRegistries, due: &Due) -> Result<Arc<Registry>, String> {
    registries.of(&due.network).ok_or_else(|| format!("none is configured for {} (chains.ID)", due.network))
}

/// Reads the transaction. Also returns what it shows.
async fn read(walker: &Walker, chain: &Registry, due: &Due) -> Result<(TransactionReading, Seen), String> {
    let (began, limit) = (Instant::now(), walker.config.timeout.mul_f64(LOOK_UP_SHARE));
    let seen = timeout(limit, chain.transactions().transaction(due.transaction)).await;
    let seen = seen.map_err(|_| "no answer in time".to_owned())?.map_err(|error| error.to_string())?;
    let proof = if due.is_shown_by_logs() {
        // A proof that does not arrive does not affect what is known without it.
        let left = limit.saturating_sub(began.elapsed()).mul_f64(PROOF_SHARE);
        timeout(left, chain.transactions().prove(&seen)).await.ok().flatten()
    } else {
        None
    };
    let reading = seen.reading(proof);
    let due = due.clone();
    // A transaction may have megabytes of logs and input.
    let judged = move || {
        let TransactionReading { head, execution, proof, receipt_proof } = &reading;
        let seen = due.seen(head, execution.as_ref(), proof, receipt_proof.is_some());
        (reading, seen)
    };
    let (reading, seen) = walker.pool.run(judged).await;
    match seen.as_ref().ok().and_then(|sight| too_weak(&walker.config, sight)) {
        Some(cause) => Err(cause.to_owned()),
        None => Ok((reading, seen)),
    }
}

/// Why a reading is rejected: its proof is weaker than names require.
fn too_weak(config: &Config, sight: &Sight) -> Option<&'static str> {
    if clresolve_core::mutant!("any-proof-of-a-settlement") {
        return None;
    }
    let is_state_proof = config.chain.demand().is_ok_and(GradeDemand::is_computed);
    if is_state_proof && sight.shown_by == ShownBy::Reported && !clresolve_core::mutant!("reported-is-proven") {
        return Some("a grade above quorum is required, but endpoints only report this settlement");
    }
    config.gate.policy().against_proof(&sight.vouched())
}

#[cfg(all(test, feature = "state-proof"))]
mod tests {
    use alloy_primitives::B256;
    use clresolve_core::reading::Block;
    use clresolve_core::reason::Code;
    use jiff::Timestamp;

    use super::*;
    use crate::config::{Grade, ProofDemand};

    const QUORUM: clresolve_core::reading::Proof =
        clresolve_core::reading::Proof { grade: Grade::Quorum, asked: 2, agreed: 2, own: false };

    /// The report of two endpoints, as for a call of Permit2's proxy whose receipt is also proven.
    fn sight(shown_by: ShownBy) -> Sight {
        let block = Block { number: 7, hash: B256::ZERO, timestamp: Timestamp::UNIX_EPOCH };
        Sight { objection: None, shown_by, block, proof: QUORUM }
    }

    fn config(proof: Option<ProofDemand>, min_proof: Option<Grade>) -> Config {
        let mut config = Config::default();
        let endpoints = ["https://one.example", "https://two.example"];
        config.chain.endpoints = endpoints.map(|url| url.parse().expect("an endpoint")).into();
        (config.chain.proof, config.gate.min_proof) = (proof, min_proof);
        config
    }

    #[test]
    fn what_is_reported_never_meets_state_proof() {
        for config in [config(Some(ProofDemand::StateProof), None), config(None, Some(Grade::StateProof))] {
            assert!(too_weak(&config, &sight(ShownBy::Reported)).is_some());
            assert_eq!(too_weak(&config, &sight(ShownBy::Proven)), None);
        }
        assert_eq!(too_weak(&config(None, Some(Grade::Quorum)), &sight(ShownBy::Reported)), None);
    }

    #[test]
    fn a_header_of_one_stranger_proves_nothing() {
        let alone = clresolve_core::reading::Proof { grade: Grade::SingleRpc, asked: 1, agreed: 1, own: false };
        let weak = |shown_by| too_weak(&config(None, None), &Sight { proof: alone, ..sight(shown_by) });
        assert_eq!([weak(ShownBy::Reported), weak(ShownBy::Proven)], [Some(Code::SingleRpc.slug()); 2]);
    }
}
