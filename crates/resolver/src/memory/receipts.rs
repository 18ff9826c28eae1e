//! Receipts that were seen, each with its occasion: two more tables in the memory's file.
//!
//! Their size is bounded. The receipt that was marked first is forgotten first. The signers below one domain have a
//! limited share, beyond which they evict each other. A forgotten receipt counts as never seen.

use clresolve_core::digest::Digest;
use clresolve_messages::receipt::replay::{ReceiptReplayKey, ReceiptReplayStatus};
use redb::{ReadableTable as _, ReadableTableMetadata as _, TableDefinition};

use super::{
    DOMAIN_SHARE, FORGOTTEN_AT_ONCE, MemoryFile, NameHistoryKey, ResolverMemory, ResolverMemoryError, to_memory_failure,
};

/// World, chain, domain and name of the signer, and the digest of the receipt.
type ReceiptRowKey = (&'static str, u64, &'static str, &'static str, &'static [u8; 32]);

/// The occasion of each receipt, and its number in the order of marking.
const SEEN: TableDefinition<ReceiptRowKey, (&'static [u8; 32], u64)> = TableDefinition::new("receipts/1");

/// The receipts by that number. The first row is the next to be forgotten.
const MARKED: TableDefinition<u64, ReceiptRowKey> = TableDefinition::new("receipts-marked/1");

/// The key of a stored receipt. Worlds and chains never share one.
#[derive(Clone, Debug)]
struct StoredReceiptKey {
    signer: NameHistoryKey,
    receipt: Digest,
}

impl StoredReceiptKey {
    fn row_key(&self) -> (&str, u64, &str, &str, &[u8; 32]) {
        let (world, chain, domain, name) = self.signer.row_key();
        (world, chain, domain, name, self.receipt.as_bytes())
    }
}

impl ResolverMemory {
    /// Marks a receipt of this world and chain (EIP-155) as shown for its occasion. Stores at most `most` receipts. A
    /// known receipt keeps its first occasion.
    ///
    /// # Errors
    /// If the file cannot be written, or the write times out. It is then unknown whether the receipt is marked.
    pub async fn mark_receipt_as_seen(
        &self,
        world: &str,
        chain: u64,
        mark: ReceiptReplayKey,
        most: u64,
    ) -> Result<ReceiptReplayStatus, ResolverMemoryError> {
        let signer = NameHistoryKey::new(world, chain, &mark.signer);
        self.run_operation(move |store| store.mark_receipt_as_seen(signer, &mark, most)).await
    }
}

impl MemoryFile {
    /// Like [`ResolverMemory::mark_receipt_as_seen`]. Concurrent calls are serialized: the file has one writer at a
    /// time.
    fn mark_receipt_as_seen(
        &self,
        signer: NameHistoryKey,
        mark: &ReceiptReplayKey,
        most: u64,
    ) -> Result<ReceiptReplayStatus, ResolverMemoryError> {
        let key = StoredReceiptKey { signer, receipt: mark.receipt };
        let database = self.database_or_reopen()?;
        let write = database.begin_write().map_err(to_memory_failure)?;
        {
            let mut rows = ReceiptTables {
                seen: write.open_table(SEEN).map_err(to_memory_failure)?,
                marked: write.open_table(MARKED).map_err(to_memory_failure)?,
            };
            if let Some(occasion) = rows.stored_occasion_digest(&key)? {
                let is_same =
                    occasion == *mark.occasion.as_bytes() || clresolve_core::mutant!("receipts-are-shown-twice");
                return Ok(if is_same { ReceiptReplayStatus::Again } else { ReceiptReplayStatus::Elsewhere });
            }
            rows.make_room(&key, most.max(1))?;
            rows.put(&key, &mark.occasion)?;
        }
        write.commit().map_err(to_memory_failure)?;
        Ok(ReceiptReplayStatus::First)
    }

    #[cfg(test)]
    fn receipt_count(&self) -> u64 {
        use redb::ReadableDatabase as _;
        let read = self.database_or_reopen().expect("it is open").begin_read().expect("it can be read");
        read.open_table(SEEN).and_then(|table| Ok(table.len()?)).unwrap_or(0)
    }
}

/// The two tables of one transaction. They always agree.
struct ReceiptTables<'t> {
    seen: redb::Table<'t, ReceiptRowKey, (&'static [u8; 32], u64)>,
    marked: redb::Table<'t, u64, ReceiptRowKey>,
}

impl ReceiptTables<'_> {
    fn stored_occasion_digest(&self, key: &StoredReceiptKey) -> Result<Option<[u8; 32]>, ResolverMemoryError> {
        Ok(self.seen.get(key.row_key()).map_err(to_memory_failure)?.map(|row| *row.value().0))
    }

    fn put(&mut self, key: &StoredReceiptKey, occasion: &Digest) -> Result<(), ResolverMemoryError> {
        let last = self.marked.last().map_err(to_memory_failure)?.map_or(0, |(number, _)| number.value());
        let number = last.checked_add(1).ok_or_else(|| to_memory_failure("the numbers are used up"))?;
        self.seen.insert(key.row_key(), (occasion.as_bytes(), number)).map_err(to_memory_failure)?;
        self.marked.insert(number, key.row_key()).map_err(to_memory_failure)?;
        Ok(())
    }

    /// Makes room for one more receipt. After its bound was lowered, the memory shrinks by a few receipts at a time.
    fn make_room(&mut self, key: &StoredReceiptKey, most: u64) -> Result<(), ResolverMemoryError> {
        let share = (most / DOMAIN_SHARE).max(1);
        for _ in 0..FORGOTTEN_AT_ONCE {
            let (siblings, oldest) = self.sibling_count_and_oldest(key, share)?;
            let forgotten = if siblings >= share && !clresolve_core::mutant!("receipts-share-nothing") {
                oldest
            } else if self.seen.len().map_err(to_memory_failure)? >= most {
                self.marked.first().map_err(to_memory_failure)?.map(|(number, _)| number.value())
            } else {
                None
            };
            let Some(number) = forgotten else { break };
            self.forget_receipt(number)?;
        }
        Ok(())
    }

    fn forget_receipt(&mut self, number: u64) -> Result<(), ResolverMemoryError> {
        if let Some(row) = self.marked.remove(number).map_err(to_memory_failure)? {
            self.seen.remove(row.value()).map_err(to_memory_failure)?;
        }
        Ok(())
    }

    /// The number of remembered receipts of signers below the same domain, and the number of the oldest one. The
    /// domain's share limits the search, unless the bound was lowered since.
    fn sibling_count_and_oldest(
        &self,
        key: &StoredReceiptKey,
        share: u64,
    ) -> Result<(u64, Option<u64>), ResolverMemoryError> {
        let (world, chain, domain, ..) = key.row_key();
        let (mut count, mut oldest) = (0, None);
        for row in self.seen.range((world, chain, domain, "", &[0; 32])..).map_err(to_memory_failure)? {
            let (found, value) = row.map_err(to_memory_failure)?;
            let (of_world, of_chain, of_domain, ..) = found.value();
            if (of_world, of_chain, of_domain) != (world, chain, domain) || count > share {
                break;
            }
            let number = value.value().1;
            count += 1;
            oldest = Some(oldest.map_or(number, |oldest: u64| oldest.min(number)));
        }
        Ok((count, oldest))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;
    use clresolve_core::name::EnsName;

    const MOST: u64 = 32;

    fn mark(signer: &str, receipt: &str, occasion: &str) -> ReceiptReplayKey {
        let signer = EnsName::parse(signer).expect("a name");
        ReceiptReplayKey {
            signer,
            receipt: Digest::compute(receipt.as_bytes()),
            occasion: Digest::compute(occasion.as_bytes()),
        }
    }

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary folder")
    }

    fn store(folder: &tempfile::TempDir) -> MemoryFile {
        MemoryFile::open(&folder.path().join("memory"), 10).expect("a new file")
    }

    fn show_in(store: &MemoryFile, world: &str, mark: &ReceiptReplayKey) -> ReceiptReplayStatus {
        store.mark_receipt_as_seen(NameHistoryKey::new(world, 1, &mark.signer), mark, MOST).expect("the disk has room")
    }

    fn show(store: &MemoryFile, signer: &str, receipt: &str, occasion: &str) -> ReceiptReplayStatus {
        show_in(store, "lab", &mark(signer, receipt, occasion))
    }

    #[test]
    fn the_same_receipt_for_another_request_is_seen_after_a_restart_too() {
        let folder = folder();
        {
            let store = store(&folder);
            assert_eq!(show(&store, "a.eth", "r", "one"), ReceiptReplayStatus::First);
            assert_eq!(show(&store, "a.eth", "r", "one"), ReceiptReplayStatus::Again);
            assert_eq!(show(&store, "a.eth", "r", "two"), ReceiptReplayStatus::Elsewhere);
        }
        let again = store(&folder);
        assert_eq!(show(&again, "a.eth", "r", "two"), ReceiptReplayStatus::Elsewhere);
        assert_eq!(show(&again, "a.eth", "r", "one"), ReceiptReplayStatus::Again, "what it was shown for first stays");
        assert_eq!(again.receipt_count(), 1);
    }

    #[test]
    fn signers_worlds_and_histories_are_kept_apart() {
        let folder = folder();
        let store = store(&folder);
        show(&store, "a.eth", "r", "one");
        assert_eq!(show(&store, "b.eth", "r", "two"), ReceiptReplayStatus::First);
        assert_eq!(show_in(&store, "mainnet", &mark("a.eth", "r", "two")), ReceiptReplayStatus::First);
        assert_eq!(store.forget_all_histories(), Ok(0), "names are forgotten, receipts are not");
        assert_eq!(show(&store, "a.eth", "r", "two"), ReceiptReplayStatus::Elsewhere);
    }

    #[test]
    fn of_two_at_once_one_is_a_replay() {
        let folder = folder();
        let (store, start) = (store(&folder), Barrier::new(2));
        let shown = |occasion: &'static str| {
            start.wait();
            show(&store, "a.eth", "r", occasion)
        };
        let mut seen = std::thread::scope(|scope| {
            let both = ["one", "two"].map(|occasion| scope.spawn(move || shown(occasion)));
            both.map(|shown| shown.join().expect("no panic"))
        });
        seen.sort_by_key(|seen| *seen == ReceiptReplayStatus::Elsewhere);
        assert_eq!(seen, [ReceiptReplayStatus::First, ReceiptReplayStatus::Elsewhere]);
    }

    #[test]
    fn a_full_memory_forgets_the_oldest_receipt() {
        let folder = folder();
        let store = store(&folder);
        for number in 0..=MOST {
            assert_eq!(show(&store, &format!("a{number}.eth"), "r", "one"), ReceiptReplayStatus::First);
        }
        assert_eq!(store.receipt_count(), MOST);
        assert_eq!(show(&store, "a1.eth", "r", "two"), ReceiptReplayStatus::Elsewhere);
        assert_eq!(show(&store, "a0.eth", "r", "two"), ReceiptReplayStatus::First, "it was forgotten");
    }

    #[test]
    fn signers_below_one_domain_have_a_part_of_the_room_and_no_more() {
        let folder = folder();
        let store = store(&folder);
        show(&store, "honest.eth", "r", "one");
        for number in 0..4 * MOST {
            show(&store, &format!("n{number}.flood.eth"), "r", "one");
        }
        assert_eq!(store.receipt_count(), 1 + MOST / DOMAIN_SHARE);
        assert_eq!(show(&store, "honest.eth", "r", "two"), ReceiptReplayStatus::Elsewhere);
        assert_eq!(show(&store, &format!("n{}.flood.eth", 4 * MOST - 1), "r", "two"), ReceiptReplayStatus::Elsewhere);
    }

    #[test]
    fn a_memory_whose_bound_was_lowered_shrinks() {
        let folder = folder();
        let store = store(&folder);
        for number in 0..MOST {
            show(&store, &format!("a{number}.eth"), "r", "one");
        }
        for number in 0..8 {
            let mark = mark(&format!("b{number}.eth"), "r", "one");
            store
                .mark_receipt_as_seen(NameHistoryKey::new("lab", 1, &mark.signer), &mark, 8)
                .expect("the disk has room");
        }
        assert!(store.receipt_count() <= 8);
    }

    #[test]
    fn a_file_that_another_process_holds_says_so() {
        let folder = folder();
        let (_held, second) = (store(&folder), store(&folder));
        let mark = mark("a.eth", "r", "one");
        let seen = second.mark_receipt_as_seen(NameHistoryKey::new("lab", 1, &mark.signer), &mark, MOST);
        assert_eq!(seen, Err(ResolverMemoryError::InUse));
    }
}
