//! [`ProvenHeadReader`]: reads names at the newest block that the light client of the beacon chain verified.
//!
//! What is read is computed over proven state, so no operator's statement confirms a verdict. A block is signed in the
//! slot after its own, so this head is a slot behind the newest block.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use clresolve_core::name::EnsName;
use clresolve_core::reading::{ChainBlock, ChainError};

use crate::consensus_headers::ConsensusHeaderSource;
use crate::head::ChainHead;
use crate::head_reader::{ChainHeadReader, NameStateAtHead, name_state_from_findings};
use crate::proven_chain::ProvenEnsReader;

/// The label of the only source of heads.
const LABEL: &str = "light client";

/// Reads names at the newest verified block.
pub struct ProvenHeadReader {
    chain: ProvenEnsReader,
    headers: Arc<ConsensusHeaderSource>,
}

impl ProvenHeadReader {
    /// Takes heads from `headers`, and computes with the endpoints and the caches of `chain`.
    pub const fn new(chain: ProvenEnsReader, headers: Arc<ConsensusHeaderSource>) -> Self {
        Self { chain, headers }
    }
}

#[async_trait]
impl ChainHeadReader for ProvenHeadReader {
    fn source_labels(&self) -> Vec<String> {
        vec![LABEL.to_owned()]
    }

    fn is_poll_due(&self, _: usize, _: Duration) -> bool {
        true
    }

    async fn poll_head(&self, _: usize) -> Result<(ChainBlock, Option<ChainHead>), ChainError> {
        let head = self.headers.newest_head().await?;
        Ok((head.block, Some(head)))
    }

    async fn newest_head(self: Arc<Self>) -> Result<ChainHead, ChainError> {
        self.headers.newest_head().await
    }

    async fn read_name_state(&self, name: &EnsName, block: &ChainBlock) -> Result<NameStateAtHead, ChainError> {
        let query = self.chain.resolution_query(name);
        let findings = self.chain.compute_findings_at(&query, block).await?;
        Ok(name_state_from_findings(&query, &findings).unwrap_or_else(NameStateAtHead::Failing))
    }
}
