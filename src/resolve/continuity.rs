//! The walk and the memory: asked before a judgement, told after a trusted one.

use super::Inner;
use crate::chain::BlockSelector;
use crate::evidence::Evidence;
use crate::evidence::continuity::{Continuity, Sighting};
use crate::memory::{MemoryError, Place};
use crate::name::EnsName;
use crate::verdict::{State, Verdict};

impl Inner {
    /// What is remembered of the name. Not asked for a block chosen by number: it may lie before all that is remembered.
    pub(super) async fn recall(&self, evidence: &Evidence) -> Continuity {
        let (Some(memory), Some(_)) = (&self.memory, evidence.found()) else { return Continuity::NotAsked };
        if matches!(evidence.block, BlockSelector::Number(_)) {
            return Continuity::NotAsked;
        }
        match memory.recall(self.place(&evidence.name)).await {
            Ok(history) => Continuity::Recalled(history),
            Err(error) => Continuity::Unavailable(error.to_string()),
        }
    }

    /// Writes down what a run saw.
    ///
    /// Only a trusted verdict under the configured profile is remembered, only at a finalized block, and not on one
    /// stranger's word: whoever can put something into the memory can make it warn of the honest card later.
    pub(super) async fn remember(&self, evidence: &Evidence, verdict: &Verdict) -> Result<(), MemoryError> {
        let lasting = evidence.block == BlockSelector::Finalized
            && verdict.state == State::Trusted
            && verdict.profile.id == self.config.rules.profile
            && evidence.reading.as_ref().is_ok_and(|reading| !reading.proof.is_one_strangers_word());
        let (Some(memory), Continuity::Recalled(history)) = (&self.memory, &evidence.continuity) else { return Ok(()) };
        let Some(sighting) = Sighting::of(evidence).filter(|_| lasting) else { return Ok(()) };
        if history.with(&sighting).is_none() {
            return Ok(());
        }
        memory.remember(self.place(&evidence.name), sighting).await
    }

    fn place(&self, name: &EnsName) -> Place {
        Place::new(&self.config.chain.world, self.config.chain.id, name)
    }
}
