//! Proves that a block contains a receipt, using all receipts of the block. An endpoint can make such a list megabytes
//! long, so few lists are in memory at a time, and they are processed on a blocking thread.

use std::sync::Arc;
use std::time::Duration;

use alloy_rpc_client::RpcClient;
use clresolve_core::execution::ExecutedTransaction;
use clresolve_state::HashedBlockHeader;
use clresolve_state::receipts::{ReceiptInclusionProof, RpcReceiptDocument};
use serde_json::value::RawValue;
use tokio::sync::Semaphore;

use crate::endpoint::RpcEndpoint;
use crate::failure::EndpointFailure;
use crate::fan_out::ask_until_success;
use crate::run_limit::BlockingJobLimiter;

/// Maximum length of a block's receipts list, in bytes. Full blocks of busy chains have one or two MiB of receipts.
const MAX_RECEIPTS_BYTES: usize = 4 << 20;

/// Maximum number of concurrent proofs per chain. Each has one list in memory per endpoint asked, usually one.
const PROOFS_AT_ONCE: usize = 2;

/// Maximum number of lists processed concurrently per chain. A parsed list, its leaves and its trie use about five
/// times the length of the list, which stays below 24 MiB.
const READ_AT_ONCE: usize = 1;

/// The statement to prove: the block with this header contains the receipt of this transaction.
struct ReceiptInclusionClaim {
    header: HashedBlockHeader,
    execution: ExecutedTransaction,
}

pub(crate) struct ReceiptInclusionProver {
    permits: Semaphore,
    runs: BlockingJobLimiter,
}

impl ReceiptInclusionProver {
    pub(crate) fn new() -> Self {
        let mutated = clresolve_core::mutant!("endless-receipt-proofs");
        let permits = if mutated { Semaphore::MAX_PERMITS } else { PROOFS_AT_ONCE };
        Self { permits: Semaphore::new(permits), runs: BlockingJobLimiter::with_permits(READ_AT_ONCE) }
    }

    /// The proof for this transaction, from the first of these endpoints that returns the receipts of its block.
    pub(crate) async fn prove_receipt(
        &self,
        header: &HashedBlockHeader,
        execution: &ExecutedTransaction,
        endpoints: &[Arc<RpcEndpoint>],
        patience: Option<Duration>,
    ) -> Option<ReceiptInclusionProof> {
        let claim = Arc::new(ReceiptInclusionClaim { header: header.clone(), execution: execution.clone() });
        let made = ask_until_success(endpoints.len(), patience, |index| {
            self.prove_receipt_by_endpoint(&endpoints[index], &claim)
        });
        self.run_with_permit(made).await.success.map(|(_, proof)| proof)
    }

    async fn prove_receipt_by_endpoint(
        &self,
        endpoint: &RpcEndpoint,
        claim: &Arc<ReceiptInclusionClaim>,
    ) -> Result<ReceiptInclusionProof, EndpointFailure> {
        let rpc = RpcClient::new(endpoint.transport.with_reply_limit(MAX_RECEIPTS_BYTES), false);
        let block = (claim.header.hash(),);
        let receipts = rpc.request::<_, Option<Box<RawValue>>>("eth_getBlockReceipts", block).await;
        let receipts = receipts.map_err(|error| endpoint.failure_from_transport_error(&error))?;
        let receipts = receipts.ok_or_else(|| unusable_failure("it has no receipts of the block"))?;
        let claim = Arc::clone(claim);
        self.run_blocking_job(move || build_receipt_proof(&receipts, &claim)).await?
    }

    /// Runs `making` once a permit is free.
    async fn run_with_permit<T>(&self, making: impl Future<Output = T>) -> T {
        let _permit = self.permits.acquire().await.expect("it is never closed");
        making.await
    }

    async fn run_blocking_job<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, EndpointFailure> {
        if clresolve_core::mutant!("receipts-on-workers") {
            return Ok(job());
        }
        let ran = self.runs.acquire_permit().await.run_job(job).await;
        ran.map_err(|_| unusable_failure("the proof ended without a result"))
    }
}

fn build_receipt_proof(
    receipts: &RawValue,
    claim: &ReceiptInclusionClaim,
) -> Result<ReceiptInclusionProof, EndpointFailure> {
    let receipts: Vec<RpcReceiptDocument> =
        serde_json::from_str(receipts.get()).map_err(|error| EndpointFailure::Unusable(error.to_string()))?;
    let proof = ReceiptInclusionProof::new(&claim.header, &receipts, claim.execution.index);
    let proof = proof.ok_or_else(|| unusable_failure("the receipts are not those of the block"))?;
    proof.check_inclusion(&claim.execution).map_err(|error| EndpointFailure::Unusable(error.to_string()))?;
    Ok(proof)
}

fn unusable_failure(cause: &str) -> EndpointFailure {
    EndpointFailure::Unusable(cause.to_owned())
}

#[cfg(test)]
mod tests {
    use std::thread;

    use futures_util::future::pending;
    use futures_util::poll;

    use super::*;

    #[tokio::test]
    async fn receipts_are_read_on_threads_that_serve_no_connections() {
        let reader = ReceiptInclusionProver::new().run_blocking_job(|| thread::current().id()).await.expect("it runs");
        assert_ne!(reader, thread::current().id());
    }

    #[tokio::test]
    async fn few_proofs_of_a_chain_are_made_at_a_time() {
        let proofs = ReceiptInclusionProver::new();
        let making: Vec<_> = (0..PROOFS_AT_ONCE).map(|_| Box::pin(proofs.run_with_permit(pending::<()>()))).collect();
        let mut under_way = Vec::new();
        for mut proof in making {
            assert!(poll!(&mut proof).is_pending());
            under_way.push(proof);
        }
        let mut next = Box::pin(proofs.run_with_permit(async {}));
        assert!(poll!(&mut next).is_pending(), "it waits for its turn");
        drop(under_way);
        next.await;
    }
}
