//! Memory for what gateways send ahead of its turn, shared by all retrievals of a client.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of blocks that may wait in all retrievals together. A CAR in the order of the walk needs none, and what finds
/// no room is asked for again block by block: so a flood of blocks that nobody wants costs requests, not memory.
const ROOM_BYTES: usize = 8 << 20;

/// What is left of the room.
#[derive(Debug)]
pub(super) struct Room(AtomicUsize);

impl Room {
    pub(super) const fn new() -> Self {
        Self(AtomicUsize::new(ROOM_BYTES))
    }

    /// As much of the room as is free, but no more than `most`, until it is dropped.
    pub(super) fn take(&self, most: usize) -> Part<'_> {
        let left = |free: usize| Some(free.saturating_sub(most));
        let free = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).unwrap_or_default();
        Part { room: self, bytes: if clresolve_core::mutant!("endless-room") { most } else { free.min(most) } }
    }
}

/// A part of the room.
#[derive(Debug)]
pub(super) struct Part<'r> {
    room: &'r Room,
    bytes: usize,
}

impl Part<'_> {
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        self.room.0.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_retrievals_share_one_room() {
        let room = Room::new();
        let most = ROOM_BYTES / 2 + 1;
        let (first, second) = (room.take(most), room.take(most));
        assert_eq!((first.bytes(), second.bytes(), room.take(1).bytes()), (most, ROOM_BYTES - most, 0));
        drop(first);
        assert_eq!(room.take(usize::MAX).bytes(), most);
        drop(second);
        assert_eq!(room.take(usize::MAX).bytes(), ROOM_BYTES);
    }
}
