//! Proofs of headers for bundles. Their data is fetched when the first bundle needs it, and verified like everything
//! else.

use std::sync::Arc;

use alloy_primitives::{B256, Bytes};
use clresolve_beacon::{
    ChainSpec, LightClientCodec, LightClientError, LightClientFinalityUpdate, LightClientSyncTranscript, MAX_UPDATES,
};
use clresolve_core::reading::LightClientHeaderError;

use super::endpoint::{BeaconEndpointClient, BeaconEndpointError};
use super::follower::{BeaconChainFollower, process_update_unless_known, run_on_blocking_thread};
use super::history::LightClientUpdateHistory;
use super::request::{BeaconRequest, MAX_UPDATES_AT_ONCE, decode_updates_response};
use super::verified::unix_seconds;
use crate::fan_out::ask_until_success;

impl BeaconChainFollower {
    /// What proves that the execution block with this hash is finalized.
    pub(super) async fn prove_finality(
        self: &Arc<Self>,
        block_hash: B256,
    ) -> Result<LightClientSyncTranscript, LightClientHeaderError> {
        let update = self
            .finality_update_for_block(block_hash)
            .ok_or_else(|| LightClientHeaderError::Block(block_hash.to_string()))?;
        let mut history = self.history.lock().await;
        let known = match history.clone() {
            Some(known) => known,
            None => self.start_update_history().await?,
        };
        let known = self.extend_history_to_period(known, self.spec().period_at_slot(update.signature_slot)).await?;
        self.build_finality_transcript(history.insert(known), update, block_hash).await
    }

    async fn start_update_history(self: &Arc<Self>) -> Result<LightClientUpdateHistory, LightClientHeaderError> {
        let (store, bootstrap) = self.fetch_bootstrap().await?;
        let bootstrap =
            encode_ssz(&bootstrap, store.finalized_header().slot(), self.spec()).map_err(refused_header_error)?;
        Ok(LightClientUpdateHistory { store, bootstrap, updates: Vec::new() })
    }

    /// Adds updates until the committee of `period` is known.
    async fn extend_history_to_period(
        self: &Arc<Self>,
        mut history: LightClientUpdateHistory,
        period: u64,
    ) -> Result<LightClientUpdateHistory, LightClientHeaderError> {
        while history.store.next_update_period() < period {
            if history.updates.len() >= MAX_UPDATES {
                let cause = format!("a proof has at most {MAX_UPDATES} updates; configure a newer checkpoint");
                return Err(LightClientHeaderError::Refused(cause));
            }
            let (endpoints, known) = (self.endpoints_in_order(), &history);
            let ask = |index: usize| {
                let known = known.clone();
                let extend =
                    move |this: Arc<Self>, endpoint| this.extend_history_from_endpoint(endpoint, known, period);
                self.run_and_record_outcome(Arc::clone(&endpoints[index]), extend)
            };
            let asked = ask_until_success(endpoints.len(), Some(self.config.hedge_after), ask).await;
            history = asked.success.map(|(_, extended)| extended).ok_or_else(|| self.endpoint_failures_error())?;
        }
        Ok(history)
    }

    async fn extend_history_from_endpoint(
        self: Arc<Self>,
        endpoint: Arc<BeaconEndpointClient>,
        mut history: LightClientUpdateHistory,
        period: u64,
    ) -> Result<LightClientUpdateHistory, BeaconEndpointError> {
        let start_period = history.store.next_update_period();
        let count = period.saturating_sub(start_period).clamp(1, MAX_UPDATES_AT_ONCE);
        let response = endpoint.send_request(BeaconRequest::Updates { start_period, count }).await?;
        let slot = self.spec().slot_at_time(unix_seconds(self.now()));
        run_on_blocking_thread(move || {
            for update in decode_updates_response(&response, count, self.spec())? {
                let before = history.store.next_update_period();
                process_update_unless_known(&mut history.store, &update, slot)?;
                if history.store.next_update_period() > before {
                    history.updates.push(encode_ssz(&update, update.attested_header.beacon.slot, self.spec())?);
                }
            }
            match history.store.next_update_period() > start_period {
                true => Ok(history),
                false => Err(BeaconEndpointError::NoUpdate(start_period)),
            }
        })
        .await
    }

    /// The proof, if a replay of it finalizes the block.
    async fn build_finality_transcript(
        &self,
        history: &LightClientUpdateHistory,
        update: LightClientFinalityUpdate,
        block_hash: B256,
    ) -> Result<LightClientSyncTranscript, LightClientHeaderError> {
        let finality_update =
            encode_ssz(&update, update.attested_header.beacon.slot, self.spec()).map_err(refused_header_error)?;
        let (mut store, slot) = (history.store.clone(), self.spec().slot_at_time(unix_seconds(self.now())));
        let verified = run_on_blocking_thread(move || -> Result<_, BeaconEndpointError> {
            store.process_finality_update(&update, slot)?;
            Ok(store.finalized_header().block_hash())
        });
        // The updates of a proof for a later block may have finalized a later block already.
        if verified.await.map_err(refused_header_error)? != block_hash {
            return Err(LightClientHeaderError::Block(block_hash.to_string()));
        }
        Ok(LightClientSyncTranscript {
            checkpoint: self.config.checkpoint,
            bootstrap: history.bootstrap.clone(),
            updates: history.updates.clone(),
            finality_update,
        })
    }
}

/// Encodes an update as SSZ, in the layout of its fork.
fn encode_ssz<T: LightClientCodec>(data: &T, slot: u64, spec: &ChainSpec) -> Result<Bytes, LightClientError> {
    Ok(data.to_ssz(spec.fork_at_slot(slot)?).into())
}

fn refused_header_error(error: impl ToString) -> LightClientHeaderError {
    LightClientHeaderError::Refused(error.to_string())
}
