//! [`ProvenHeads`]: reads names at the newest block that the light client of the beacon chain verified.
//!
//! What is read is computed over proven state, so no operator's statement confirms a verdict. A block is signed in the
//! slot after its own, so this head is a slot behind the newest block.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use clresolve_core::name::EnsName;
use clresolve_core::reading::{Block, ChainError};

use crate::consensus_headers::ConsensusHeaders;
use crate::head::ChainHead;
use crate::head_reader::{AtHead, Heads, at_head_of};
use crate::proven_chain::ProvenChain;

/// The label of the only source of heads.
const LABEL: &str = "light client";

/// Reads names at the newest verified block.
pub struct ProvenHeads {
    chain: ProvenChain,
    headers: Arc<ConsensusHeaders>,
}

impl ProvenHeads {
    /// Takes heads from `headers`, and computes with the endpoints and the caches of `chain`.
    pub const fn new(chain: ProvenChain, headers: Arc<ConsensusHeaders>) -> Self {
        Self { chain, headers }
    }
}

#[async_trait]
impl Heads for ProvenHeads {
    fn labels(&self) -> Vec<String> {
        vec![LABEL.to_owned()]
    }

    fn is_due(&self, _: usize, _: Duration) -> bool {
        true
    }

    async fn ask(&self, _: usize) -> Result<(Block, Option<ChainHead>), ChainError> {
        let head = self.headers.newest().await?;
        Ok((head.block, Some(head)))
    }

    async fn newest(self: Arc<Self>) -> Result<ChainHead, ChainError> {
        self.headers.newest().await
    }

    async fn read(&self, name: &EnsName, block: &Block) -> Result<AtHead, ChainError> {
        let query = self.chain.walk(name);
        let findings = self.chain.findings_at(&query, block).await?;
        Ok(at_head_of(&query, &findings).unwrap_or_else(AtHead::Failing))
    }
}
