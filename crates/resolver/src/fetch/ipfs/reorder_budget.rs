//! A memory budget for blocks that arrive before a walk needs them, shared by all retrievals of a client.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of bytes of such blocks in all retrievals together. A CAR in the order of the walk needs none. A
/// block that does not fit is requested again separately, so a flood of unwanted blocks costs requests, not memory.
const REORDER_BYTES: usize = 8 << 20;

/// The remaining bytes of the budget.
#[derive(Debug)]
pub(super) struct CarReorderBudget(AtomicUsize);

impl CarReorderBudget {
    pub(super) const fn new() -> Self {
        Self(AtomicUsize::new(REORDER_BYTES))
    }

    /// Reserves as much of the budget as is free, but at most `most`. Dropping the reservation frees it.
    pub(super) fn reserve(&self, most: usize) -> CarReorderReservation<'_> {
        let left = |free: usize| Some(free.saturating_sub(most));
        let free = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).unwrap_or_default();
        CarReorderReservation {
            budget: self,
            bytes: if clresolve_core::mutant!("endless-room") { most } else { free.min(most) },
        }
    }
}

/// A reserved part of the budget.
#[derive(Debug)]
pub(super) struct CarReorderReservation<'r> {
    budget: &'r CarReorderBudget,
    bytes: usize,
}

impl CarReorderReservation<'_> {
    pub(super) const fn reserved_bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for CarReorderReservation<'_> {
    fn drop(&mut self) {
        self.budget.0.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_retrievals_share_one_budget() {
        let budget = CarReorderBudget::new();
        let most = REORDER_BYTES / 2 + 1;
        let (first, second) = (budget.reserve(most), budget.reserve(most));
        assert_eq!(
            (first.reserved_bytes(), second.reserved_bytes(), budget.reserve(1).reserved_bytes()),
            (most, REORDER_BYTES - most, 0)
        );
        drop(first);
        assert_eq!(budget.reserve(usize::MAX).reserved_bytes(), most);
        drop(second);
        assert_eq!(budget.reserve(usize::MAX).reserved_bytes(), REORDER_BYTES);
    }
}
