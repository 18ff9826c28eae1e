//! The memory: observations of earlier trusted verdicts about names, receipts that were seen, and the sellers at
//! origins, in one file that survives restarts.
//!
//! Its size is bounded. The names that it has known for the shortest time are forgotten first: see
//! [`ResolverMemory::remember_observation`]. A failure of the memory is an error for the caller, never an endless wait
//! or a wrong answer.

mod origins;
mod receipts;

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redb::backends::InMemoryBackend;
use redb::{
    Builder, Database, DatabaseError, Key, ReadOnlyTable, ReadableDatabase as _, ReadableTable as _, StorageError,
    TableDefinition, Value,
};
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

use clresolve_core::name::EnsName;
use clresolve_core::text::excerpt_text;
use clresolve_verdict::evidence::continuity::{NameHistory, NameObservation};

pub use self::origins::{OriginKey, RememberedOriginRow};

/// World, chain, domain and name.
type NameHistoryRowKey = (&'static str, u64, &'static str, &'static str);

/// Span, block of the last observation, and the key of the history. The first row is the next to be forgotten.
type EvictionOrderKey = (u64, u64, &'static str, u64, &'static str, &'static str);

/// The histories, as JSON. Another format needs another table.
const HISTORIES: TableDefinition<NameHistoryRowKey, &[u8]> = TableDefinition::new("histories/1");

/// The keys in the order in which histories are forgotten.
const ORDER: TableDefinition<EvictionOrderKey, ()> = TableDefinition::new("order/1");

/// Maximum number of names that are forgotten for a new one, so that a lowered bound does not slow down one question.
const FORGOTTEN_AT_ONCE: usize = 8;

/// At most one in this many remembered names may be below the same domain. A wildcard or a subname registrar creates
/// subnames for free, so beyond this share they evict only each other.
const DOMAIN_SHARE: u64 = 16;

/// Maximum wait for the file. It is on a local disk, and the caller waits for a verdict.
const PATIENCE: Duration = Duration::from_secs(1);

/// Maximum number of concurrent file operations. Their threads also resolve host names, so a disk that hangs must not
/// block all of them.
const AT_ONCE: usize = 8;

/// Size of the file's cache in memory, in bytes.
const CACHE_BYTES: usize = 4 * 1024 * 1024;

/// The key of a history. Worlds and chains never share one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameHistoryKey {
    world: String,
    chain: u64,
    /// The last two labels of the name.
    domain: String,
    name: String,
}

impl NameHistoryKey {
    /// The key of a name in a world (`anchor.world`) and chain (EIP-155).
    pub fn new(world: &str, chain: u64, name: &EnsName) -> Self {
        let from = name.as_str().rmatch_indices('.').nth(1).map_or(0, |(dot, _)| dot + 1);
        let domain = name.as_str().get(from..).unwrap_or_default().to_owned();
        Self { world: world.to_owned(), chain, domain, name: name.as_str().to_owned() }
    }

    fn row_key(&self) -> (&str, u64, &str, &str) {
        (&self.world, self.chain, &self.domain, &self.name)
    }

    /// Whether the other key belongs to a name below the same domain, in the same world.
    fn is_under_same_domain(&self, other: &Self) -> bool {
        (&self.world, self.chain, &self.domain) == (&other.world, other.chain, &other.domain)
    }

    fn eviction_order_key(&self, history: &NameHistory) -> (u64, u64, &str, u64, &str, &str) {
        (history.block_span(), history.last_block, &self.world, self.chain, &self.domain, &self.name)
    }
}

/// Why the memory failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResolverMemoryError {
    /// Another process has locked the file.
    #[error("another process uses the file; only one can use it at a time")]
    InUse,
    /// The file is not a memory, or is damaged.
    #[error(
        "{path}: not a memory of clresolve, or damaged ({detail}); move the file away, and clresolve makes a new one"
    )]
    Damaged {
        /// The file.
        path: String,
        /// What is wrong with it.
        detail: String,
    },
    /// The entry of one name or origin cannot be read.
    #[error("the stored entry cannot be read; `clresolve memory forget` removes it")]
    Unreadable,
    /// No proposed identity of the origin is waiting to be accepted.
    #[error("no identity is waiting to be accepted; `clresolve check URL` reads the one that the seller names")]
    NothingToAccept,
    /// The file cannot be read or written. Contains the cause.
    #[error("{0}")]
    Failed(String),
    /// No answer within a second.
    #[error("the file did not answer in time")]
    Late,
}

/// The memory of a resolver. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ResolverMemory {
    store: Arc<MemoryFile>,
    permits: Arc<Semaphore>,
}

impl ResolverMemory {
    /// Opens the memory in the file at `path`, or creates it, readable only by its owner (on Unix). It stores at most
    /// `names` histories, and as many origins.
    ///
    /// Succeeds even if another process has locked the file, or if the disk is full: each later operation then tries to
    /// open the file again.
    ///
    /// # Errors
    /// [`ResolverMemoryError::Damaged`], or [`ResolverMemoryError::Failed`] if the file cannot be opened.
    pub fn open(path: &Path, names: u64) -> Result<Self, ResolverMemoryError> {
        Ok(Self { store: Arc::new(MemoryFile::open(path, names)?), permits: Arc::new(Semaphore::new(AT_ONCE)) })
    }

    /// Creates an empty memory without a file, which is lost when the process ends. It stores at most `names`
    /// histories, and as many origins.
    ///
    /// # Errors
    /// [`ResolverMemoryError::Failed`].
    pub fn in_memory(names: u64) -> Result<Self, ResolverMemoryError> {
        let database = database_builder().create_with_backend(InMemoryBackend::new()).map_err(to_memory_failure)?;
        let store = MemoryFile::from_database(PathBuf::new(), names, Some(database));
        Ok(Self { store: Arc::new(store), permits: Arc::new(Semaphore::new(AT_ONCE)) })
    }

    /// The history of the name; empty if nothing is remembered.
    ///
    /// # Errors
    /// If the file cannot be read, or the read times out.
    pub async fn recall_history(&self, key: NameHistoryKey) -> Result<NameHistory, ResolverMemoryError> {
        self.run_operation(move |store| store.recall_history(&key)).await
    }

    /// Adds an observation to the history of the name.
    ///
    /// If the memory is full, it forgets the name with the shortest span of blocks; among equal ones, the least
    /// recently seen. If the domain has used up its share, only names below this domain are forgotten. Mass-produced
    /// names therefore evict each other, not names that have been known for longer.
    ///
    /// # Errors
    /// If the file cannot be written, or the write times out.
    pub async fn remember_observation(
        &self,
        key: NameHistoryKey,
        sighting: NameObservation,
    ) -> Result<(), ResolverMemoryError> {
        self.run_operation(move |store| store.remember_observation(&key, &sighting)).await
    }

    /// Takes every permit until dropped, so that no operation starts.
    #[cfg(test)]
    pub(crate) async fn take_all_permits(&self) -> tokio::sync::OwnedSemaphorePermit {
        let all = u32::try_from(AT_ONCE).expect("a few");
        Arc::clone(&self.permits).acquire_many_owned(all).await.expect("it is open")
    }

    async fn run_operation<T: Send + 'static>(
        &self,
        work: impl FnOnce(&MemoryFile) -> Result<T, ResolverMemoryError> + Send + 'static,
    ) -> Result<T, ResolverMemoryError> {
        let (store, permits) = (Arc::clone(&self.store), Arc::clone(&self.permits));
        let done = async move {
            let permit = permits.acquire_owned().await.map_err(|_| ResolverMemoryError::Late)?;
            let work = move || {
                let _permit = permit;
                work(&store)
            };
            tokio::task::spawn_blocking(work).await.map_err(|error| ResolverMemoryError::Failed(error.to_string()))?
        };
        tokio::time::timeout(PATIENCE, done).await.unwrap_or(Err(ResolverMemoryError::Late))
    }
}

/// The file itself. Its operations block.
#[derive(Debug)]
pub struct MemoryFile {
    path: PathBuf,
    names: u64,
    database: Mutex<Option<Arc<Database>>>,
}

impl MemoryFile {
    /// As [`ResolverMemory::open`].
    ///
    /// # Errors
    /// As [`ResolverMemory::open`].
    pub fn open(path: &Path, names: u64) -> Result<Self, ResolverMemoryError> {
        let database = match open_database_file(path) {
            Ok(database) => Some(database),
            Err(MemoryFileOpenError::Passing(error)) => {
                tracing::warn!(path = %path.display(), %error, "the memory cannot be used for now");
                None
            }
            Err(MemoryFileOpenError::Lasting(_)) if clresolve_core::mutant!("damaged-memory") => None,
            Err(MemoryFileOpenError::Lasting(error)) => return Err(error),
        };
        Ok(Self::from_database(path.to_owned(), names, database))
    }

    fn from_database(path: PathBuf, names: u64, database: Option<Database>) -> Self {
        Self { path, names: names.max(1), database: Mutex::new(database.map(Arc::new)) }
    }

    /// The history of the name; empty if nothing is remembered.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn recall_history(&self, key: &NameHistoryKey) -> Result<NameHistory, ResolverMemoryError> {
        let Some(table) = self.open_table(HISTORIES)? else { return Ok(NameHistory::default()) };
        let Some(row) = table.get(key.row_key()).map_err(to_memory_failure)? else { return Ok(NameHistory::default()) };
        decode_json(row.value())
    }

    /// As [`ResolverMemory::remember_observation`]. An error leaves the file unchanged.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn remember_observation(
        &self,
        key: &NameHistoryKey,
        sighting: &NameObservation,
    ) -> Result<(), ResolverMemoryError> {
        let database = self.database_or_reopen()?;
        let write = database.begin_write().map_err(to_memory_failure)?;
        {
            let mut rows = HistoryTables::open(&write)?;
            let known = rows.take_history(key)?;
            let next = known.with_observation(sighting).unwrap_or(known);
            rows.make_room(key, self.names)?;
            rows.put(key, &next)?;
        }
        write.commit().map_err(to_memory_failure)
    }

    /// Forgets the history of one name. Returns whether there was one.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn forget_history(&self, key: &NameHistoryKey) -> Result<bool, ResolverMemoryError> {
        let database = self.database_or_reopen()?;
        let write = database.begin_write().map_err(to_memory_failure)?;
        let known = HistoryTables::open(&write)?.remove(key)?;
        write.commit().map_err(to_memory_failure)?;
        Ok(known)
    }

    /// Forgets every history of every world. Returns their number.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn forget_all_histories(&self) -> Result<u64, ResolverMemoryError> {
        let database = self.database_or_reopen()?;
        let write = database.begin_write().map_err(to_memory_failure)?;
        let known = HistoryTables::open(&write)?.len()?;
        write.delete_table(HISTORIES).map_err(to_memory_failure)?;
        write.delete_table(ORDER).map_err(to_memory_failure)?;
        write.commit().map_err(to_memory_failure)?;
        Ok(known)
    }

    /// Number of remembered names, over all worlds.
    #[cfg(test)]
    fn remembered_name_count(&self) -> Result<u64, ResolverMemoryError> {
        use redb::ReadableTableMetadata as _;
        self.open_table(HISTORIES)?.map_or(Ok(0), |table| table.len().map_err(to_memory_failure))
    }

    /// A table, for reading. `None` if it was never written.
    fn open_table<K: Key + 'static, V: Value + 'static>(
        &self,
        table: TableDefinition<'_, K, V>,
    ) -> Result<Option<ReadOnlyTable<K, V>>, ResolverMemoryError> {
        match self.database_or_reopen()?.begin_read().map_err(to_memory_failure)?.open_table(table) {
            Ok(table) => Ok(Some(table)),
            Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
            Err(error) => Err(to_memory_failure(error)),
        }
    }

    /// The open file. Tries again to open it after a failure.
    fn database_or_reopen(&self) -> Result<Arc<Database>, ResolverMemoryError> {
        let mut held = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(database) = &*held {
            return Ok(Arc::clone(database));
        }
        let opened = open_database_file(&self.path).map_err(ResolverMemoryError::from)?;
        Ok(Arc::clone(held.insert(Arc::new(opened))))
    }
}

/// The two tables of one transaction. They always agree.
struct HistoryTables<'t> {
    histories: redb::Table<'t, NameHistoryRowKey, &'static [u8]>,
    order: redb::Table<'t, EvictionOrderKey, ()>,
}

impl<'t> HistoryTables<'t> {
    fn open(write: &'t redb::WriteTransaction) -> Result<Self, ResolverMemoryError> {
        let histories = write.open_table(HISTORIES).map_err(to_memory_failure)?;
        Ok(Self { histories, order: write.open_table(ORDER).map_err(to_memory_failure)? })
    }

    fn len(&self) -> Result<u64, ResolverMemoryError> {
        use redb::ReadableTableMetadata as _;
        self.histories.len().map_err(to_memory_failure)
    }

    /// Removes the history of a key from both tables and returns it.
    fn take_history(&mut self, key: &NameHistoryKey) -> Result<NameHistory, ResolverMemoryError> {
        let Some(known) =
            self.histories.remove(key.row_key()).map_err(to_memory_failure)?.map(|row| decode_json(row.value()))
        else {
            return Ok(NameHistory::default());
        };
        let known = known?;
        self.order.remove(key.eviction_order_key(&known)).map_err(to_memory_failure)?;
        Ok(known)
    }

    fn put(&mut self, key: &NameHistoryKey, history: &NameHistory) -> Result<(), ResolverMemoryError> {
        let bytes = serde_json::to_vec(history).map_err(to_memory_failure)?;
        self.histories.insert(key.row_key(), bytes.as_slice()).map_err(to_memory_failure)?;
        self.order.insert(key.eviction_order_key(history), ()).map_err(to_memory_failure)?;
        Ok(())
    }

    /// Removes a key from both tables, even if its history cannot be read. Returns whether there was one.
    fn remove(&mut self, key: &NameHistoryKey) -> Result<bool, ResolverMemoryError> {
        let is_of_key = |row: &(u64, u64, &str, u64, &str, &str)| (row.2, row.3, row.4, row.5) == key.row_key();
        self.order.retain(|row, ()| !is_of_key(&row)).map_err(to_memory_failure)?;
        let removed = self.histories.remove(key.row_key()).map_err(to_memory_failure)?;
        Ok(removed.is_some())
    }

    /// Makes room for one more name if the memory is full. After its bound was lowered, the memory shrinks by a few
    /// names at a time.
    fn make_room(&mut self, key: &NameHistoryKey, names: u64) -> Result<(), ResolverMemoryError> {
        let share = (names / DOMAIN_SHARE).max(1);
        for _ in 0..FORGOTTEN_AT_ONCE {
            let first = if self.sibling_count(key)? >= share && !clresolve_core::mutant!("domains-share-nothing") {
                self.first_to_forget(|row| row.key.is_under_same_domain(key))?
            } else if self.len()? >= names {
                self.first_to_forget(|_| true)?
            } else {
                None
            };
            let Some(row) = first else { break };
            self.order.remove(row.eviction_order_key()).map_err(to_memory_failure)?;
            self.histories.remove(row.key.row_key()).map_err(to_memory_failure)?;
        }
        Ok(())
    }

    /// Number of remembered names below the same domain, which the domain's share bounds.
    fn sibling_count(&self, key: &NameHistoryKey) -> Result<u64, ResolverMemoryError> {
        let mut count = 0;
        for row in self
            .histories
            .range((key.world.as_str(), key.chain, key.domain.as_str(), "")..)
            .map_err(to_memory_failure)?
        {
            let found = row.map_err(to_memory_failure)?.0;
            let (world, chain, domain, _) = found.value();
            if (world, chain, domain) != (key.world.as_str(), key.chain, key.domain.as_str()) {
                break;
            }
            count += 1;
        }
        Ok(count)
    }

    /// The first row, in the order of forgetting, for which `among` is true. The size of the memory bounds the search.
    fn first_to_forget(
        &self,
        among: impl Fn(&EvictionOrderRow) -> bool,
    ) -> Result<Option<EvictionOrderRow>, ResolverMemoryError> {
        for row in self.order.iter().map_err(to_memory_failure)? {
            let found = row.map_err(to_memory_failure)?.0;
            let (span, last, world, chain, domain, name) = found.value();
            let (world, domain, name) = (world.to_owned(), domain.to_owned(), name.to_owned());
            let row = EvictionOrderRow { span, last, key: NameHistoryKey { world, chain, domain, name } };
            if among(&row) {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }
}

struct EvictionOrderRow {
    span: u64,
    last: u64,
    key: NameHistoryKey,
}

impl EvictionOrderRow {
    fn eviction_order_key(&self) -> (u64, u64, &str, u64, &str, &str) {
        let (world, chain, domain, name) = self.key.row_key();
        (self.span, self.last, world, chain, domain, name)
    }
}

/// Why the file was not opened: temporarily, or until the operator acts.
enum MemoryFileOpenError {
    Passing(ResolverMemoryError),
    Lasting(ResolverMemoryError),
}

impl From<MemoryFileOpenError> for ResolverMemoryError {
    fn from(error: MemoryFileOpenError) -> Self {
        let (MemoryFileOpenError::Passing(error) | MemoryFileOpenError::Lasting(error)) = error;
        error
    }
}

fn database_builder() -> Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

/// Opens or creates the file, and checks its integrity.
fn open_database_file(path: &Path) -> Result<Database, MemoryFileOpenError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options
        .open(path)
        .map_err(|error| classify_open_error(path, DatabaseError::Storage(StorageError::Io(error))))?;
    let builder = database_builder();
    let open = || -> Result<(Database, bool), DatabaseError> {
        let mut database = builder.create_file(file)?;
        let is_whole = database.check_integrity()?;
        Ok((database, is_whole))
    };
    let damaged = |what: &str| Err(classify_open_error(path, StorageError::Corrupted(what.to_owned()).into()));
    // The library panics on some damaged files.
    match panic::catch_unwind(AssertUnwindSafe(open)) {
        Ok(Ok((database, true))) => Ok(database),
        Ok(Ok((_, false))) => damaged("a part of it was lost"),
        Ok(Err(error)) => Err(classify_open_error(path, error)),
        Err(_) => damaged("it contains data that was never written"),
    }
}

fn classify_open_error(path: &Path, error: DatabaseError) -> MemoryFileOpenError {
    let io = |error: &std::io::Error| ResolverMemoryError::Failed(format!("{}: {error}", path.display()));
    match error {
        DatabaseError::DatabaseAlreadyOpen => MemoryFileOpenError::Passing(ResolverMemoryError::InUse),
        DatabaseError::Storage(StorageError::Io(error)) if is_disk_full(&error) => {
            MemoryFileOpenError::Passing(io(&error))
        }
        DatabaseError::Storage(StorageError::Io(error))
            if !matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof | ErrorKind::InvalidInput) =>
        {
            MemoryFileOpenError::Lasting(io(&error))
        }
        error => {
            let (path, detail) = (path.display().to_string(), excerpt_text(&error.to_string()));
            MemoryFileOpenError::Lasting(ResolverMemoryError::Damaged { path, detail })
        }
    }
}

fn is_disk_full(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

fn decode_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ResolverMemoryError> {
    serde_json::from_slice(bytes).map_err(|_| ResolverMemoryError::Unreadable)
}

fn to_memory_failure(error: impl std::fmt::Display) -> ResolverMemoryError {
    ResolverMemoryError::Failed(excerpt_text(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use clresolve_verdict::sample::sample_observation;
    use proptest::prelude::*;

    use super::*;

    fn key(name: &str) -> NameHistoryKey {
        NameHistoryKey::new("lab", 31_337, &EnsName::parse(name).expect("a name"))
    }

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary folder")
    }

    fn store(folder: &tempfile::TempDir, names: u64) -> MemoryFile {
        MemoryFile::open(&folder.path().join("memory"), names).expect("a new file")
    }

    fn see(store: &MemoryFile, name: &str, block: u64) {
        store.remember_observation(&key(name), &sample_observation(block, "1.0.0", name)).expect("the disk has room");
    }

    fn knows(store: &MemoryFile, name: &str) -> bool {
        !store.recall_history(&key(name)).expect("a readable file").is_empty()
    }

    #[test]
    fn the_domain_of_a_name_is_its_last_two_labels() {
        for (name, domain) in [("a.eth", "a.eth"), ("x.y.a.eth", "a.eth"), ("eth", "eth")] {
            assert_eq!(key(name).domain, domain);
        }
    }

    #[test]
    fn what_is_remembered_survives_a_restart() {
        let folder = folder();
        see(&store(&folder, 10), "a.eth", 7);
        let again = store(&folder, 10);
        assert_eq!(again.recall_history(&key("a.eth")).unwrap().first_block, 7);
        assert_eq!(again.recall_history(&key("b.eth")), Ok(NameHistory::default()));
    }

    #[test]
    fn worlds_and_chains_are_kept_apart() {
        let folder = folder();
        let store = store(&folder, 10);
        see(&store, "a.eth", 7);
        let name = EnsName::parse("a.eth").unwrap();
        for other in [NameHistoryKey::new("mainnet", 31_337, &name), NameHistoryKey::new("lab", 1, &name)] {
            assert_eq!(store.recall_history(&other), Ok(NameHistory::default()));
        }
    }

    #[test]
    fn one_name_or_all_can_be_forgotten() {
        let folder = folder();
        let store = store(&folder, 10);
        see(&store, "a.eth", 7);
        see(&store, "b.eth", 7);
        see(&store, "c.eth", 7);
        assert_eq!((store.forget_history(&key("a.eth")), store.forget_history(&key("a.eth"))), (Ok(true), Ok(false)));
        assert!(!knows(&store, "a.eth") && knows(&store, "b.eth"));
        assert_eq!((store.forget_all_histories(), store.remembered_name_count()), (Ok(2), Ok(0)));
        see(&store, "b.eth", 8);
        assert_eq!(store.remembered_name_count(), Ok(1));
    }

    #[test]
    fn a_flood_of_new_names_pushes_out_one_another() {
        let folder = folder();
        let store = store(&folder, 32);
        let known: Vec<String> = (0..20).map(|number| format!("known{number}.eth")).collect();
        for name in &known {
            see(&store, name, 1000);
            see(&store, name, 5000);
        }
        for number in 0..200 {
            see(&store, &format!("flood{number}.eth"), 6000 + number);
        }
        assert_eq!(store.remembered_name_count(), Ok(32));
        assert!(known.iter().all(|name| knows(&store, name)));
    }

    #[test]
    fn subnames_have_a_part_of_the_memory_and_no_more() {
        let folder = folder();
        let store = store(&folder, 32);
        see(&store, "honest.eth", 1000);
        see(&store, "old.wild.eth", 1000);
        see(&store, "old.wild.eth", 5000);
        for number in 0..100 {
            see(&store, &format!("n{number}.wild.eth"), 6000);
        }
        assert_eq!(store.remembered_name_count(), Ok(1 + 32 / DOMAIN_SHARE));
        assert!(knows(&store, "honest.eth") && knows(&store, "old.wild.eth"));
    }

    #[test]
    fn a_file_in_use_is_tried_again() {
        let folder = folder();
        let first = store(&folder, 10);
        let second = store(&folder, 10);
        assert_eq!(second.recall_history(&key("a.eth")), Err(ResolverMemoryError::InUse));
        see(&first, "a.eth", 7);
        drop(first);
        assert!(knows(&second, "a.eth"));
    }

    #[test]
    fn what_a_killed_process_has_written_is_there() {
        let folder = folder();
        let running = store(&folder, 10);
        see(&running, "a.eth", 7);
        let copy = folder.path().join("copy");
        std::fs::copy(folder.path().join("memory"), &copy).unwrap();
        assert!(knows(&MemoryFile::open(&copy, 10).expect("not damaged"), "a.eth"));
    }

    /// A busy file is retried; a damaged one needs the operator.
    #[test]
    fn a_file_that_is_busy_is_told_from_one_that_is_damaged() {
        let folder = folder();
        let path = folder.path().join("memory");
        let first = open_database_file(&path).map_err(ResolverMemoryError::from).expect("a new file");
        assert!(matches!(open_database_file(&path), Err(MemoryFileOpenError::Passing(ResolverMemoryError::InUse))));
        drop(first);
        std::fs::write(&path, "something else, and quite long enough to be read").unwrap();
        assert!(matches!(
            open_database_file(&path),
            Err(MemoryFileOpenError::Lasting(ResolverMemoryError::Damaged { .. }))
        ));
    }

    #[test]
    fn a_history_that_is_none_is_not_taken_for_an_empty_one() {
        for bytes in ["", "{", "[]", "null"] {
            assert_eq!(decode_json::<NameHistory>(bytes.as_bytes()), Err(ResolverMemoryError::Unreadable), "{bytes}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_does_not_answer_is_not_waited_for() {
        let folder = folder();
        let memory = ResolverMemory::open(&folder.path().join("memory"), 10).expect("a new file");
        let all = u32::try_from(AT_ONCE).expect("a few");
        let _stuck = memory.permits.acquire_many(all).await.expect("it is open");
        assert_eq!(memory.recall_history(key("a.eth")).await, Err(ResolverMemoryError::Late));
    }

    #[test]
    fn a_file_that_is_no_memory_is_refused() {
        let folder = folder();
        let path = folder.path().join("memory");
        std::fs::write(&path, "something else, and quite long enough to be read").unwrap();
        assert!(matches!(MemoryFile::open(&path, 10), Err(ResolverMemoryError::Damaged { .. })));
        assert!(matches!(MemoryFile::open(folder.path(), 10), Err(ResolverMemoryError::Failed(_))));
    }

    #[test]
    fn a_file_that_lost_its_end_is_refused() {
        let folder = folder();
        let path = folder.path().join("memory");
        see(&store(&folder, 10), "a.eth", 7);
        let whole = std::fs::read(&path).unwrap();
        for length in [1, 100, 4096, whole.len() / 2] {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(matches!(MemoryFile::open(&path, 10), Err(ResolverMemoryError::Damaged { .. })), "{length} bytes");
        }
    }

    /// Most of the file is unused, and it contains two commits. A changed byte therefore yields an error, the current
    /// history or the previous one; never a panic or another history.
    #[test]
    fn a_changed_byte_never_makes_another_history() {
        let folder = folder();
        let path = folder.path().join("memory");
        see(&store(&folder, 10), "a.eth", 7);
        let known = store(&folder, 10).recall_history(&key("a.eth")).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let used: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] != 0).collect();
        let mut refused = 0;
        for at in used.iter().step_by(used.len() / 64) {
            let mut changed = whole.clone();
            changed[*at] ^= 0x55;
            std::fs::write(&path, &changed).unwrap();
            match MemoryFile::open(&path, 10).and_then(|store| store.recall_history(&key("a.eth"))) {
                Ok(history) => assert!(history == known || history.is_empty(), "byte {at}"),
                Err(_) => refused += 1,
            }
        }
        assert!(refused > 0, "no change was found");
    }

    #[test]
    fn a_memory_whose_bound_was_lowered_shrinks() {
        let folder = folder();
        let seen = |store: &MemoryFile, number: u64| see(store, &format!("name{number}.eth"), 100 + number);
        let large = store(&folder, 40);
        (0..40).for_each(|number| seen(&large, number));
        drop(large);
        let small = store(&folder, 10);
        (100..110).for_each(|number| seen(&small, number));
        assert!(small.remembered_name_count().expect("it can be read") <= 10);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        /// Both tables agree and stay within the bound, for any order of sightings and forgetting.
        #[test]
        fn the_memory_is_bounded(steps in prop::collection::vec((0u64..40, 0u64..3, 0u64..2000, any::<bool>()), 1..60)) {
            let folder = folder();
            let store = store(&folder, 16);
            for (number, domain, block, forget) in steps {
                let key = key(&format!("n{number}.d{domain}.eth"));
                if forget && block % 4 == 0 {
                    store.forget_history(&key).unwrap();
                } else {
                    store.remember_observation(&key, &sample_observation(block, "1.0.0", "x")).unwrap();
                }
                prop_assert!(store.remembered_name_count().unwrap() <= 16);
                let write = store.database_or_reopen().unwrap();
                let write = write.begin_write().unwrap();
                let rows = HistoryTables::open(&write).unwrap();
                let ordered = rows.order.iter().unwrap().count() as u64;
                prop_assert_eq!(ordered, rows.len().unwrap());
            }
        }
    }
}
