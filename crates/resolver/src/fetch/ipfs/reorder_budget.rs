//! A memory budget for blocks that arrive before a walk needs them, shared by all retrievals of a client.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of bytes of such blocks in all retrievals together. A CAR in the order of the walk needs none. A
/// block that does not fit is requested again separately, so a flood of unwanted blocks costs requests, not memory.
const REORDER_BYTES: usize = 8 << 20;

/// The remaining bytes of the budget.
#[derive(Debug)]
pub(super) struct ReorderBudget(AtomicUsize);

impl ReorderBudget {
    pub(super) const fn new() -> Self {
        Self(AtomicUsize::new(REORDER_BYTES))
    }

    /// Reserves as much of the budget as is free, but at most `most`. Dropping the reservation frees it.
    pub(super) fn take(&self, most: usize) -> Reservation<'_> {
        let left = |free: usize| Some(free.saturating_sub(most));
        let free = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).unwrap_or_default();
        Reservation { budget: self, bytes: if clresolve_core::mutant!("endless-room") { most } else { free.min(most) } }
    }
}

/// A reserved part of the budget.
#[derive(Debug)]
pub(super) struct Reservation<'r> {
    budget: &'r ReorderBudget,
    bytes: usize,
}

impl Reservation<'_> {
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.budget.0.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_retrievals_share_one_budget() {
        let budget = ReorderBudget::new();
        let most = REORDER_BYTES / 2 + 1;
        let (first, second) = (budget.take(most), budget.take(most));
        assert_eq!((first.bytes(), second.bytes(), budget.take(1).bytes()), (most, REORDER_BYTES - most, 0));
        drop(first);
        assert_eq!(budget.take(usize::MAX).bytes(), most);
        drop(second);
        assert_eq!(budget.take(usize::MAX).bytes(), REORDER_BYTES);
    }
}
