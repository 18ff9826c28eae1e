//! Receipts that were seen, each with its occasion: two more tables in the memory's file.
//!
//! Their size is bounded. The receipt that was marked first is forgotten first. The signers below one domain have a
//! limited share, beyond which they evict each other. A forgotten receipt counts as never seen.

use clresolve_core::digest::Digest;
use clresolve_messages::receipt::replay::{Mark, ReplayStatus};
use redb::{ReadableTable as _, ReadableTableMetadata as _, TableDefinition};

use super::{DOMAIN_SHARE, FORGOTTEN_AT_ONCE, HistoryKey, Memory, MemoryError, Store, failed};

/// World, chain, domain and name of the signer, and the digest of the receipt.
type ReceiptKey = (&'static str, u64, &'static str, &'static str, &'static [u8; 32]);

/// The occasion of each receipt, and its number in the order of marking.
const SEEN: TableDefinition<ReceiptKey, (&'static [u8; 32], u64)> = TableDefinition::new("receipts/1");

/// The receipts by that number. The first row is the next to be forgotten.
const MARKED: TableDefinition<u64, ReceiptKey> = TableDefinition::new("receipts-marked/1");

/// The key of a stored receipt. Worlds and chains never share one.
#[derive(Clone, Debug)]
struct MarkedReceipt {
    signer: HistoryKey,
    receipt: Digest,
}

impl MarkedReceipt {
    fn row_key(&self) -> (&str, u64, &str, &str, &[u8; 32]) {
        let (world, chain, domain, name) = self.signer.row_key();
        (world, chain, domain, name, self.receipt.as_bytes())
    }
}

impl Memory {
    /// Marks a receipt of this world and chain (EIP-155) as shown for its occasion. Stores at most `most` receipts. A
    /// known receipt keeps its first occasion.
    ///
    /// # Errors
    /// If the file cannot be written, or the write times out. It is then unknown whether the receipt is marked.
    pub async fn mark(&self, world: &str, chain: u64, mark: Mark, most: u64) -> Result<ReplayStatus, MemoryError> {
        let signer = HistoryKey::new(world, chain, &mark.signer);
        self.ask(move |store| store.mark(signer, &mark, most)).await
    }
}

impl Store {
    /// Like [`Memory::mark`]. Concurrent calls are serialized: the file has one writer at a time.
    fn mark(&self, signer: HistoryKey, mark: &Mark, most: u64) -> Result<ReplayStatus, MemoryError> {
        let key = MarkedReceipt { signer, receipt: mark.receipt };
        let database = self.database()?;
        let write = database.begin_write().map_err(failed)?;
        {
            let mut rows = Receipts {
                seen: write.open_table(SEEN).map_err(failed)?,
                marked: write.open_table(MARKED).map_err(failed)?,
            };
            if let Some(occasion) = rows.occasion(&key)? {
                let is_same =
                    occasion == *mark.occasion.as_bytes() || clresolve_core::mutant!("receipts-are-shown-twice");
                return Ok(if is_same { ReplayStatus::Again } else { ReplayStatus::Elsewhere });
            }
            rows.make_room(&key, most.max(1))?;
            rows.put(&key, &mark.occasion)?;
        }
        write.commit().map_err(failed)?;
        Ok(ReplayStatus::First)
    }

    #[cfg(test)]
    fn receipts(&self) -> u64 {
        use redb::ReadableDatabase as _;
        let read = self.database().expect("it is open").begin_read().expect("it can be read");
        read.open_table(SEEN).and_then(|table| Ok(table.len()?)).unwrap_or(0)
    }
}

/// The two tables of one transaction. They always agree.
struct Receipts<'t> {
    seen: redb::Table<'t, ReceiptKey, (&'static [u8; 32], u64)>,
    marked: redb::Table<'t, u64, ReceiptKey>,
}

impl Receipts<'_> {
    fn occasion(&self, key: &MarkedReceipt) -> Result<Option<[u8; 32]>, MemoryError> {
        Ok(self.seen.get(key.row_key()).map_err(failed)?.map(|row| *row.value().0))
    }

    fn put(&mut self, key: &MarkedReceipt, occasion: &Digest) -> Result<(), MemoryError> {
        let last = self.marked.last().map_err(failed)?.map_or(0, |(number, _)| number.value());
        let number = last.checked_add(1).ok_or_else(|| failed("the numbers are used up"))?;
        self.seen.insert(key.row_key(), (occasion.as_bytes(), number)).map_err(failed)?;
        self.marked.insert(number, key.row_key()).map_err(failed)?;
        Ok(())
    }

    /// Makes room for one more receipt. After its bound was lowered, the memory shrinks by a few receipts at a time.
    fn make_room(&mut self, key: &MarkedReceipt, most: u64) -> Result<(), MemoryError> {
        let share = (most / DOMAIN_SHARE).max(1);
        for _ in 0..FORGOTTEN_AT_ONCE {
            let (siblings, oldest) = self.siblings(key, share)?;
            let forgotten = if siblings >= share && !clresolve_core::mutant!("receipts-share-nothing") {
                oldest
            } else if self.seen.len().map_err(failed)? >= most {
                self.marked.first().map_err(failed)?.map(|(number, _)| number.value())
            } else {
                None
            };
            let Some(number) = forgotten else { break };
            self.forget(number)?;
        }
        Ok(())
    }

    fn forget(&mut self, number: u64) -> Result<(), MemoryError> {
        if let Some(row) = self.marked.remove(number).map_err(failed)? {
            self.seen.remove(row.value()).map_err(failed)?;
        }
        Ok(())
    }

    /// The number of remembered receipts of signers below the same domain, and the number of the oldest one. The
    /// domain's share limits the search, unless the bound was lowered since.
    fn siblings(&self, key: &MarkedReceipt, share: u64) -> Result<(u64, Option<u64>), MemoryError> {
        let (world, chain, domain, ..) = key.row_key();
        let (mut count, mut oldest) = (0, None);
        for row in self.seen.range((world, chain, domain, "", &[0; 32])..).map_err(failed)? {
            let (found, value) = row.map_err(failed)?;
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

    fn mark(signer: &str, receipt: &str, occasion: &str) -> Mark {
        let signer = EnsName::parse(signer).expect("a name");
        Mark { signer, receipt: Digest::of(receipt.as_bytes()), occasion: Digest::of(occasion.as_bytes()) }
    }

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary folder")
    }

    fn store(folder: &tempfile::TempDir) -> Store {
        Store::open(&folder.path().join("memory"), 10).expect("a new file")
    }

    fn show_in(store: &Store, world: &str, mark: &Mark) -> ReplayStatus {
        store.mark(HistoryKey::new(world, 1, &mark.signer), mark, MOST).expect("the disk has room")
    }

    fn show(store: &Store, signer: &str, receipt: &str, occasion: &str) -> ReplayStatus {
        show_in(store, "lab", &mark(signer, receipt, occasion))
    }

    #[test]
    fn the_same_receipt_for_another_request_is_seen_after_a_restart_too() {
        let folder = folder();
        {
            let store = store(&folder);
            assert_eq!(show(&store, "a.eth", "r", "one"), ReplayStatus::First);
            assert_eq!(show(&store, "a.eth", "r", "one"), ReplayStatus::Again);
            assert_eq!(show(&store, "a.eth", "r", "two"), ReplayStatus::Elsewhere);
        }
        let again = store(&folder);
        assert_eq!(show(&again, "a.eth", "r", "two"), ReplayStatus::Elsewhere);
        assert_eq!(show(&again, "a.eth", "r", "one"), ReplayStatus::Again, "what it was shown for first stays");
        assert_eq!(again.receipts(), 1);
    }

    #[test]
    fn signers_worlds_and_histories_are_kept_apart() {
        let folder = folder();
        let store = store(&folder);
        show(&store, "a.eth", "r", "one");
        assert_eq!(show(&store, "b.eth", "r", "two"), ReplayStatus::First);
        assert_eq!(show_in(&store, "mainnet", &mark("a.eth", "r", "two")), ReplayStatus::First);
        assert_eq!(store.forget_all(), Ok(0), "names are forgotten, receipts are not");
        assert_eq!(show(&store, "a.eth", "r", "two"), ReplayStatus::Elsewhere);
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
        seen.sort_by_key(|seen| *seen == ReplayStatus::Elsewhere);
        assert_eq!(seen, [ReplayStatus::First, ReplayStatus::Elsewhere]);
    }

    #[test]
    fn a_full_memory_forgets_the_oldest_receipt() {
        let folder = folder();
        let store = store(&folder);
        for number in 0..=MOST {
            assert_eq!(show(&store, &format!("a{number}.eth"), "r", "one"), ReplayStatus::First);
        }
        assert_eq!(store.receipts(), MOST);
        assert_eq!(show(&store, "a1.eth", "r", "two"), ReplayStatus::Elsewhere);
        assert_eq!(show(&store, "a0.eth", "r", "two"), ReplayStatus::First, "it was forgotten");
    }

    #[test]
    fn signers_below_one_domain_have_a_part_of_the_room_and_no_more() {
        let folder = folder();
        let store = store(&folder);
        show(&store, "honest.eth", "r", "one");
        for number in 0..4 * MOST {
            show(&store, &format!("n{number}.flood.eth"), "r", "one");
        }
        assert_eq!(store.receipts(), 1 + MOST / DOMAIN_SHARE);
        assert_eq!(show(&store, "honest.eth", "r", "two"), ReplayStatus::Elsewhere);
        assert_eq!(show(&store, &format!("n{}.flood.eth", 4 * MOST - 1), "r", "two"), ReplayStatus::Elsewhere);
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
            store.mark(HistoryKey::new("lab", 1, &mark.signer), &mark, 8).expect("the disk has room");
        }
        assert!(store.receipts() <= 8);
    }

    #[test]
    fn a_file_that_another_process_holds_says_so() {
        let folder = folder();
        let (_held, second) = (store(&folder), store(&folder));
        let mark = mark("a.eth", "r", "one");
        let seen = second.mark(HistoryKey::new("lab", 1, &mark.signer), &mark, MOST);
        assert_eq!(seen, Err(MemoryError::InUse));
    }
}
