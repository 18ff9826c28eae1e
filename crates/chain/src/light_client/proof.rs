//! Proofs of headers for bundles. Their data is fetched when the first bundle needs it, and verified like everything
//! else.

use std::sync::Arc;

use alloy_primitives::{B256, Bytes};
use clresolve_beacon::{
    ChainSpec, LightClientData, LightClientError, LightClientFinalityUpdate, LightClientProof, MAX_UPDATES,
};
use clresolve_core::reading::HeaderFault;

use super::endpoint::{AskedEndpoint, BeaconFault};
use super::follower::{Follower, blocking, process_next};
use super::history::History;
use super::request::{BeaconRequest, MAX_UPDATES_AT_ONCE, decoded_updates};
use super::verified::seconds;
use crate::fan_out::first;

impl Follower {
    /// What proves that the execution block with this hash is finalized.
    pub(super) async fn proof_of(self: &Arc<Self>, block_hash: B256) -> Result<LightClientProof, HeaderFault> {
        let update = self.finality_update(block_hash).ok_or_else(|| HeaderFault::Block(block_hash.to_string()))?;
        let mut history = self.history.lock().await;
        let known = match history.clone() {
            Some(known) => known,
            None => self.begun().await?,
        };
        let known = self.extended(known, self.spec().period_at_slot(update.signature_slot)).await?;
        self.completed(history.insert(known), update, block_hash).await
    }

    async fn begun(self: &Arc<Self>) -> Result<History, HeaderFault> {
        let (store, bootstrap) = self.bootstrap().await?;
        let bootstrap = ssz_of(&bootstrap, store.finalized().slot(), self.spec()).map_err(refused)?;
        Ok(History { store, bootstrap, updates: Vec::new() })
    }

    /// Adds updates until the committee of `period` is known.
    async fn extended(self: &Arc<Self>, mut history: History, period: u64) -> Result<History, HeaderFault> {
        while history.store.wanted_period() < period {
            if history.updates.len() >= MAX_UPDATES {
                let cause = format!("a proof has at most {MAX_UPDATES} updates; configure a newer checkpoint");
                return Err(HeaderFault::Refused(cause));
            }
            let (endpoints, known) = (self.in_order(), &history);
            let ask = |index: usize| {
                let known = known.clone();
                let extend = move |this: Arc<Self>, endpoint| this.extended_by(endpoint, known, period);
                self.noted(Arc::clone(&endpoints[index]), extend)
            };
            let asked = first(endpoints.len(), Some(self.config.hedge_after), ask).await;
            history = asked.success.map(|(_, extended)| extended).ok_or_else(|| self.fault())?;
        }
        Ok(history)
    }

    async fn extended_by(
        self: Arc<Self>,
        endpoint: Arc<AskedEndpoint>,
        mut history: History,
        period: u64,
    ) -> Result<History, BeaconFault> {
        let start_period = history.store.wanted_period();
        let count = period.saturating_sub(start_period).clamp(1, MAX_UPDATES_AT_ONCE);
        let response = endpoint.ask(BeaconRequest::Updates { start_period, count }).await?;
        let slot = self.spec().slot_at(seconds(self.now()));
        blocking(move || {
            for update in decoded_updates(&response, count, self.spec())? {
                let before = history.store.wanted_period();
                process_next(&mut history.store, &update, slot)?;
                if history.store.wanted_period() > before {
                    history.updates.push(ssz_of(&update, update.attested_header.beacon.slot, self.spec())?);
                }
            }
            match history.store.wanted_period() > start_period {
                true => Ok(history),
                false => Err(BeaconFault::NoUpdate(start_period)),
            }
        })
        .await
    }

    /// The proof, if a replay of it finalizes the block.
    async fn completed(
        &self,
        history: &History,
        update: LightClientFinalityUpdate,
        block_hash: B256,
    ) -> Result<LightClientProof, HeaderFault> {
        let finality_update = ssz_of(&update, update.attested_header.beacon.slot, self.spec()).map_err(refused)?;
        let (mut store, slot) = (history.store.clone(), self.spec().slot_at(seconds(self.now())));
        let verified = blocking(move || -> Result<_, BeaconFault> {
            store.process_finality_update(&update, slot)?;
            Ok(store.finalized().block_hash())
        });
        // The updates of a proof for a later block may have finalized a later block already.
        if verified.await.map_err(refused)? != block_hash {
            return Err(HeaderFault::Block(block_hash.to_string()));
        }
        Ok(LightClientProof {
            checkpoint: self.config.checkpoint,
            bootstrap: history.bootstrap.clone(),
            updates: history.updates.clone(),
            finality_update,
        })
    }
}

/// Encodes an update as SSZ, in the layout of its fork.
fn ssz_of<T: LightClientData>(data: &T, slot: u64, spec: &ChainSpec) -> Result<Bytes, LightClientError> {
    Ok(data.to_ssz(spec.fork_at_slot(slot)?).into())
}

fn refused(error: impl ToString) -> HeaderFault {
    HeaderFault::Refused(error.to_string())
}
