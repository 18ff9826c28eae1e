//! The slots for requests to the report API.

use std::sync::{Arc, OnceLock};

use clresolve_core::reason::RefusalCode;

use super::client_limits::{ClientIdentity, SlotReservation};
use super::state::AppState;

/// The slot of a request in progress. The request occupies it from the first [`RequestSlot::take_slot`] until the last
/// clone is dropped, which happens once the response is written. A request with a body takes the slot only after the
/// body has arrived, so a slow client occupies only its connection.
#[derive(Clone)]
pub(super) struct RequestSlot {
    state: Arc<AppState>,
    client: ClientIdentity,
    taken: Arc<OnceLock<SlotReservation>>,
}

impl RequestSlot {
    pub(super) fn new(state: Arc<AppState>, client: ClientIdentity) -> Self {
        Self { state, client, taken: Arc::default() }
    }

    /// Takes the slot, unless the request already has it.
    ///
    /// # Errors
    /// The client has used up its share, or no slot is free.
    pub(super) fn take_slot(&self) -> Result<(), RefusalCode> {
        if self.taken.get().is_none() {
            let slot = self.state.requests.reserve_slots(self.client, 1)?;
            // A request is handled by one task, so the slot cannot have been set in the meantime.
            let _ = self.taken.set(slot);
        }
        Ok(())
    }
}
