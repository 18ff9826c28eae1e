//! Origins that were checked, with the identity of the seller and the last payee: two more tables in the memory's file.
//!
//! The tables have room for as many origins as the memory has for names. An origin with an identity is proven: the
//! operator accepted the identity, or the policy allowed it at first contact. If the tables are full, a new origin
//! evicts the least recently used unproven one. An unproven origin never evicts a proven one. If all are proven, a
//! new proven origin evicts the newest, so that mass-produced origins evict each other.

use clresolve_payment::check::{OriginMemoryEntry, ProvenSellerIdentity, SellerIdentity, WebOrigin};
use redb::{ReadableTable, ReadableTableMetadata as _, TableDefinition};

use super::{FORGOTTEN_AT_ONCE, MemoryFile, ResolverMemory, ResolverMemoryError, decode_json, to_memory_failure};

type OriginRowKey = (&'static str, u64, &'static str);

/// Whether the origin is proven, and a number that increases over time. An unproven origin gets a new number when its
/// entry changes, or when it is used after enough new origins (see [`RENUMBERED_SHARE`]). A proven origin gets one only
/// when it becomes proven.
type OriginEvictionRank = (bool, u64);

/// A new origin gets the next multiple of this as its number. A stored origin gets the next number, so the difference
/// between two numbers shows how many new origins were stored between them.
const STEP: u64 = 1 << 20;

/// An unproven origin that is used gets a new number only after enough new origins since its last number: the maximum
/// number of origins, divided by this. On average, a new origin therefore causes at most this many writes of other
/// origins.
const RENUMBERED_SHARE: u64 = 16;

/// The rank of each origin and what is remembered of it, as JSON. Another format needs another table.
const ORIGINS: TableDefinition<OriginRowKey, (OriginEvictionRank, &[u8])> = TableDefinition::new("origins/2");

/// The origins by rank. Unproven origins are evicted from the first row on, proven ones from the last row back.
const RANKED: TableDefinition<OriginEvictionRank, OriginRowKey> = TableDefinition::new("origins-ranked/2");

/// Maximum length of an origin, in bytes: scheme, the longest host name of DNS and a port. Longer ones are not stored.
const MAX_ORIGIN_BYTES: usize = 8 + 253 + 6;

/// An origin, and what is remembered of it or why that cannot be read.
pub type RememberedOriginRow = (String, Result<OriginMemoryEntry, ResolverMemoryError>);

/// The key of an origin. Worlds and chains never share one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginKey {
    world: String,
    chain: u64,
    origin: WebOrigin,
}

impl OriginKey {
    /// The key of an origin in a world (`anchor.world`) and chain (EIP-155).
    pub fn new(world: &str, chain: u64, origin: &WebOrigin) -> Self {
        Self { world: world.to_owned(), chain, origin: origin.clone() }
    }

    fn row_key(&self) -> (&str, u64, &str) {
        (&self.world, self.chain, self.origin.as_str())
    }
}

impl ResolverMemory {
    /// Stores the initial entries of the sandbox. Blocks.
    #[cfg(feature = "sandbox")]
    pub(crate) fn seed_origins(
        &self,
        entries: impl IntoIterator<Item = (OriginKey, OriginMemoryEntry)>,
    ) -> Result<(), ResolverMemoryError> {
        entries.into_iter().try_for_each(|(origin, entry)| self.store.remember_origin(&origin, entry).map(drop))
    }

    /// What is remembered of an origin; empty if nothing is.
    ///
    /// # Errors
    /// If the file or the entry cannot be read, or the read times out.
    pub async fn recall_origin(&self, origin: OriginKey) -> Result<OriginMemoryEntry, ResolverMemoryError> {
        self.run_operation(move |store| store.recall_origin(&origin)).await
    }

    /// Adds what a check found to the entry of the origin, and counts as a use of the entry. Returns the resulting
    /// entry, which is empty if the origin is not stored.
    ///
    /// A stored identity stays: only [`MemoryFile::accept_proposed_identity`] replaces it. A stored proposal or payee
    /// stays unless `noted` has another one; the same one again keeps its first time and block. If the tables are full
    /// of proven origins, an unproven one is not stored; an origin that is longer than DNS allows never is.
    ///
    /// # Errors
    /// If the file cannot be written, the entry cannot be read, or the operation times out.
    pub async fn remember_origin(
        &self,
        origin: OriginKey,
        noted: OriginMemoryEntry,
    ) -> Result<OriginMemoryEntry, ResolverMemoryError> {
        self.run_operation(move |store| store.remember_origin(&origin, noted)).await
    }
}

impl MemoryFile {
    /// As [`ResolverMemory::recall_origin`].
    ///
    /// # Errors
    /// If the file or the entry cannot be read.
    pub fn recall_origin(&self, origin: &OriginKey) -> Result<OriginMemoryEntry, ResolverMemoryError> {
        let Some(rows) = self.open_table(ORIGINS)? else { return Ok(OriginMemoryEntry::default()) };
        Ok(stored_origin(&rows, origin)?.map(|(_, known)| known).unwrap_or_default())
    }

    /// As [`ResolverMemory::remember_origin`].
    ///
    /// # Errors
    /// If the file cannot be written, or if the entry cannot be read.
    pub fn remember_origin(
        &self,
        origin: &OriginKey,
        noted: OriginMemoryEntry,
    ) -> Result<OriginMemoryEntry, ResolverMemoryError> {
        if origin.origin.as_str().len() > MAX_ORIGIN_BYTES {
            return Ok(OriginMemoryEntry::default());
        }
        if let Some(known) = self.entry_if_unchanged(origin, &noted)? {
            return Ok(known);
        }
        let write = self.database_or_reopen()?.begin_write().map_err(to_memory_failure)?;
        let entry = {
            let mut origins = OriginTables::open(&write)?;
            let known = stored_origin(&origins.rows, origin)?.map(|(_, known)| known).unwrap_or_default();
            let next = merged_origin_entry(known, noted);
            let is_stored = next != OriginMemoryEntry::default() && origins.put_if_room(origin, &next, self.names)?;
            if is_stored { next } else { OriginMemoryEntry::default() }
        };
        write.commit().map_err(to_memory_failure)?;
        Ok(entry)
    }

    /// The entry of the origin, if `noted` changes neither the entry nor its rank. Otherwise `None`.
    fn entry_if_unchanged(
        &self,
        origin: &OriginKey,
        noted: &OriginMemoryEntry,
    ) -> Result<Option<OriginMemoryEntry>, ResolverMemoryError> {
        let known = self.open_table(ORIGINS)?.map(|rows| stored_origin(&rows, origin)).transpose()?.flatten();
        let (Some((rank, known)), Some(ranked)) = (known, self.open_table(RANKED)?) else {
            return Ok((*noted == OriginMemoryEntry::default()).then(OriginMemoryEntry::default));
        };
        let is_same = merged_origin_entry(known.clone(), noted.clone()) == known;
        Ok((is_same && !is_outdated(&ranked, rank, self.names)?).then_some(known))
    }

    /// The remembered origins of a world and chain, in alphabetical order.
    ///
    /// # Errors
    /// If the file cannot be read. For an entry that cannot be read, the row contains the error.
    pub fn list_origins(&self, world: &str, chain: u64) -> Result<Vec<RememberedOriginRow>, ResolverMemoryError> {
        let Some(table) = self.open_table(ORIGINS)? else { return Ok(Vec::new()) };
        let mut origins = Vec::new();
        for row in table.range((world, chain, "")..).map_err(to_memory_failure)? {
            let (key, row) = row.map_err(to_memory_failure)?;
            let (of_world, of_chain, origin) = key.value();
            if (of_world, of_chain) != (world, chain) {
                break;
            }
            origins.push((origin.to_owned(), decode_json(row.value().1)));
        }
        Ok(origins)
    }

    /// Replaces the identity of the origin with the proposed one, and returns it.
    ///
    /// # Errors
    /// [`ResolverMemoryError::NothingToAccept`] without a proposal; or if the file cannot be written, or the entry
    /// cannot be read.
    pub fn accept_proposed_identity(&self, origin: &OriginKey) -> Result<SellerIdentity, ResolverMemoryError> {
        let write = self.database_or_reopen()?.begin_write().map_err(to_memory_failure)?;
        let accepted = {
            let mut origins = OriginTables::open(&write)?;
            let (_, mut known) = stored_origin(&origins.rows, origin)?.ok_or(ResolverMemoryError::NothingToAccept)?;
            let accepted = known.proposed.take().ok_or(ResolverMemoryError::NothingToAccept)?;
            known.identity = Some(accepted.clone());
            origins.put_if_room(origin, &known, self.names)?;
            accepted.identity
        };
        write.commit().map_err(to_memory_failure)?;
        Ok(accepted)
    }

    /// Forgets one origin, even if its entry cannot be read. Returns whether it was remembered.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn forget_origin(&self, origin: &OriginKey) -> Result<bool, ResolverMemoryError> {
        let write = self.database_or_reopen()?.begin_write().map_err(to_memory_failure)?;
        let known = OriginTables::open(&write)?.remove(origin)?;
        write.commit().map_err(to_memory_failure)?;
        Ok(known.is_some())
    }
}

/// The rank of an origin and what is remembered of it. `None` if it is not stored.
fn stored_origin(
    rows: &impl ReadableTable<OriginRowKey, (OriginEvictionRank, &'static [u8])>,
    origin: &OriginKey,
) -> Result<Option<(OriginEvictionRank, OriginMemoryEntry)>, ResolverMemoryError> {
    let Some(row) = rows.get(origin.row_key()).map_err(to_memory_failure)? else { return Ok(None) };
    let (rank, entry) = row.value();
    Ok(Some((rank, decode_json(entry)?)))
}

/// The last number of the proven or the unproven origins; 0 if there are none.
fn last_eviction_rank_number(
    ranked: &impl ReadableTable<OriginEvictionRank, OriginRowKey>,
    is_proven: bool,
) -> Result<u64, ResolverMemoryError> {
    let last = ranked.range((is_proven, 0)..=(is_proven, u64::MAX)).map_err(to_memory_failure)?.next_back();
    Ok(last.transpose().map_err(to_memory_failure)?.map_or(0, |(rank, _)| rank.value().1))
}

/// Whether an origin with this rank gets a new number if it is used.
fn is_outdated(
    ranked: &impl ReadableTable<OriginEvictionRank, OriginRowKey>,
    rank: OriginEvictionRank,
    most: u64,
) -> Result<bool, ResolverMemoryError> {
    let (is_proven, number) = rank;
    let new_origins = (last_eviction_rank_number(ranked, false)? / STEP).saturating_sub(number / STEP);
    Ok(!is_proven && new_origins >= (most / RENUMBERED_SHARE).max(1))
}

/// Merges what a check noted into what is remembered.
fn merged_origin_entry(known: OriginMemoryEntry, noted: OriginMemoryEntry) -> OriginMemoryEntry {
    // An identity that was proposed before keeps its first time and block.
    let noted_identity = noted.identity.map(|noted| match &known.proposed {
        Some(proposed) if proposed.identity == noted.identity => proposed.clone(),
        _ => noted,
    });
    let identity = if clresolve_core::mutant!("origins-change-hands") {
        noted_identity.or(known.identity)
    } else {
        known.identity.or(noted_identity)
    };
    let proposed = match (known.proposed, noted.proposed) {
        (Some(known), Some(noted)) if known.identity == noted.identity => Some(known),
        (known, noted) => noted.or(known),
    };
    let is_known =
        |proposed: &ProvenSellerIdentity| identity.as_ref().is_some_and(|known| known.identity == proposed.identity);
    let proposed = proposed.filter(|proposed| !is_known(proposed));
    let payee = match (known.payee, noted.payee) {
        (Some(known), Some(noted)) if (known.address, &known.network) == (noted.address, &noted.network) => Some(known),
        (known, noted) => noted.or(known),
    };
    OriginMemoryEntry { identity, proposed, payee }
}

/// The two tables of one transaction. They always agree.
struct OriginTables<'t> {
    rows: redb::Table<'t, OriginRowKey, (OriginEvictionRank, &'static [u8])>,
    ranked: redb::Table<'t, OriginEvictionRank, OriginRowKey>,
}

impl<'t> OriginTables<'t> {
    fn open(write: &'t redb::WriteTransaction) -> Result<Self, ResolverMemoryError> {
        let rows = write.open_table(ORIGINS).map_err(to_memory_failure)?;
        Ok(Self { rows, ranked: write.open_table(RANKED).map_err(to_memory_failure)? })
    }

    /// Stores a row, if there is room for it. Returns whether there is.
    fn put_if_room(
        &mut self,
        origin: &OriginKey,
        remembered: &OriginMemoryEntry,
        most: u64,
    ) -> Result<bool, ResolverMemoryError> {
        let is_proven = remembered.identity.is_some();
        let before = self.remove(origin)?;
        if before.is_none() && !self.make_room(is_proven, most)? {
            return Ok(false);
        }
        let last = last_eviction_rank_number(&self.ranked, is_proven)?;
        let next = match before {
            Some((true, number)) if is_proven => Some(number),
            Some(_) => last.checked_add(1),
            None => (last / STEP + 1).checked_mul(STEP),
        };
        let rank = (is_proven, next.ok_or_else(|| to_memory_failure("the numbers are used up"))?);
        let bytes = serde_json::to_vec(remembered).map_err(to_memory_failure)?;
        self.rows.insert(origin.row_key(), (rank, bytes.as_slice())).map_err(to_memory_failure)?;
        self.ranked.insert(rank, origin.row_key()).map_err(to_memory_failure)?;
        Ok(true)
    }

    /// Removes an origin from both tables. Returns its rank.
    fn remove(&mut self, origin: &OriginKey) -> Result<Option<OriginEvictionRank>, ResolverMemoryError> {
        let rank = self.rows.remove(origin.row_key()).map_err(to_memory_failure)?.map(|row| row.value().0);
        if let Some(rank) = rank {
            self.ranked.remove(rank).map_err(to_memory_failure)?;
        }
        Ok(rank)
    }

    /// Makes room for one more origin. Returns whether there is room. Tables with a lowered bound shrink a few origins
    /// at a time.
    fn make_room(&mut self, is_proven: bool, most: u64) -> Result<bool, ResolverMemoryError> {
        for _ in 0..FORGOTTEN_AT_ONCE {
            if self.rows.len().map_err(to_memory_failure)? < most {
                return Ok(true);
            }
            let Some(rank) = self.next_to_evict(is_proven)? else { return Ok(false) };
            if let Some(row) = self.ranked.remove(rank).map_err(to_memory_failure)? {
                self.rows.remove(row.value()).map_err(to_memory_failure)?;
            }
        }
        Ok(true)
    }

    /// The rank of the origin that a new one evicts. `None` if it may evict none.
    fn next_to_evict(&self, is_proven: bool) -> Result<Option<OriginEvictionRank>, ResolverMemoryError> {
        let unproven =
            self.ranked.first().map_err(to_memory_failure)?.map(|(rank, _)| rank.value()).filter(|rank| !rank.0);
        if unproven.is_some() || !(is_proven || clresolve_core::mutant!("strangers-displace-sellers")) {
            return Ok(unproven);
        }
        Ok(self.ranked.last().map_err(to_memory_failure)?.map(|(rank, _)| rank.value()))
    }
}

#[cfg(test)]
mod tests {
    use clresolve_payment::check::RememberedPayee;

    use super::*;
    use crate::memory::AT_ONCE;

    const MOST: u64 = 16;
    const LAB: (&str, u64) = ("lab", 31_337);

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary folder")
    }

    fn store(folder: &tempfile::TempDir) -> MemoryFile {
        MemoryFile::open(&folder.path().join("memory"), MOST).expect("a new file")
    }

    fn origin(host: &str) -> WebOrigin {
        format!("https://{host}").parse().expect("an origin")
    }

    fn key(host: &str) -> OriginKey {
        OriginKey::new(LAB.0, LAB.1, &origin(host))
    }

    fn identity(text: &str) -> SellerIdentity {
        text.parse().expect("an identity")
    }

    fn seen(text: &str, seconds: i64) -> Option<ProvenSellerIdentity> {
        let at = jiff::Timestamp::from_second(seconds).expect("a time");
        Some(ProvenSellerIdentity { identity: identity(text), at, block: Some(7) })
    }

    fn payee(last_byte: u8, seconds: i64) -> OriginMemoryEntry {
        let payee = RememberedPayee {
            address: alloy_primitives::Address::with_last_byte(last_byte),
            network: "eip155:8453".parse().expect("a network"),
            at: jiff::Timestamp::from_second(seconds).expect("a time"),
            block: Some(7),
        };
        OriginMemoryEntry { payee: Some(payee), ..OriginMemoryEntry::default() }
    }

    fn proven(name: &str) -> OriginMemoryEntry {
        OriginMemoryEntry { identity: seen(name, 1000), ..OriginMemoryEntry::default() }
    }

    fn proposing(name: &str) -> OriginMemoryEntry {
        OriginMemoryEntry { proposed: seen(name, 1000), ..OriginMemoryEntry::default() }
    }

    fn note(store: &MemoryFile, host: &str, noted: OriginMemoryEntry) -> OriginMemoryEntry {
        store.remember_origin(&key(host), noted).expect("the disk has room")
    }

    fn recall(store: &MemoryFile, host: &str) -> OriginMemoryEntry {
        store.recall_origin(&key(host)).expect("a readable file")
    }

    fn knows(store: &MemoryFile, host: &str) -> bool {
        recall(store, host) != OriginMemoryEntry::default()
    }

    fn count(store: &MemoryFile) -> u64 {
        store.list_origins(LAB.0, LAB.1).expect("a readable file").len() as u64
    }

    #[test]
    fn origin_is_remembered_across_a_restart() {
        let folder = folder();
        let noted = OriginMemoryEntry { proposed: seen("b.eth", 1000), ..proven("a.eth") };
        let noted = OriginMemoryEntry { payee: payee(1, 1000).payee, ..noted };
        note(&store(&folder), "a.example", noted.clone());
        let again = store(&folder);
        assert_eq!(recall(&again, "a.example"), noted);
        assert!(!knows(&again, "b.example"));
    }

    #[test]
    fn worlds_chains_and_names_are_kept_apart() {
        let folder = folder();
        let store = store(&folder);
        assert_eq!(store.list_origins(LAB.0, LAB.1), Ok(Vec::new()));
        note(&store, "b.example", payee(1, 1000));
        note(&store, "a.example", proven("a.eth"));
        for (world, chain) in [("mainnet", LAB.1), (LAB.0, 1)] {
            let elsewhere = OriginKey::new(world, chain, &origin("a.example"));
            assert_eq!(store.recall_origin(&elsewhere), Ok(OriginMemoryEntry::default()));
            assert_eq!(store.list_origins(world, chain), Ok(Vec::new()));
        }
        assert_eq!(store.forget_all_histories(), Ok(0), "names are forgotten, origins are not");
        let listed = [("https://a.example", proven("a.eth")), ("https://b.example", payee(1, 1000))];
        let listed = listed.map(|(origin, remembered)| (origin.to_owned(), Ok(remembered)));
        assert_eq!(store.list_origins(LAB.0, LAB.1), Ok(listed.into()));
    }

    #[test]
    fn unproven_origins_displace_only_each_other() {
        let folder = folder();
        let store = store(&folder);
        for number in 0..MOST - 2 {
            note(&store, &format!("known{number}.example"), proven("a.eth"));
        }
        for number in 0..3 * MOST {
            note(&store, &format!("flood{number}.example"), payee(1, 1000));
        }
        assert_eq!(count(&store), MOST);
        assert!((0..MOST - 2).all(|number| knows(&store, &format!("known{number}.example"))));
        assert!(knows(&store, &format!("flood{}.example", 3 * MOST - 1)));
    }

    #[test]
    fn least_recently_used_origin_is_forgotten_first() {
        let folder = folder();
        let store = store(&folder);
        for number in 0..MOST {
            note(&store, &format!("a{number}.example"), payee(1, 1000));
        }
        note(&store, "a0.example", payee(2, 2000));
        note(&store, "new.example", payee(1, 3000));
        assert!(knows(&store, "a0.example") && !knows(&store, "a1.example") && knows(&store, "a2.example"));
        note(&store, "proven.example", proven("a.eth"));
        assert!(knows(&store, "proven.example") && !knows(&store, "a2.example"));
        // A use without a change counts, too.
        assert_eq!(note(&store, "a3.example", OriginMemoryEntry::default()), payee(1, 1000));
        assert_eq!(note(&store, "a4.example", payee(1, 4000)), payee(1, 1000));
        (0..2).for_each(|number| drop(note(&store, &format!("b{number}.example"), payee(1, 1000))));
        let known = ["a3", "a4", "a5", "a6", "a7"].map(|host| knows(&store, &format!("{host}.example")));
        assert_eq!(known, [true, true, false, false, true]);
        assert_eq!(count(&store), MOST);
    }

    #[test]
    fn use_is_written_only_after_new_origins() {
        let folder = folder();
        let store = store(&folder);
        let rank =
            |host: &str| stored_origin(&store.open_table(ORIGINS).unwrap().unwrap(), &key(host)).unwrap().unwrap().0;
        note(&store, "a.example", payee(1, 1000));
        let first = rank("a.example");
        note(&store, "a.example", OriginMemoryEntry::default());
        assert_eq!(rank("a.example"), first);
        note(&store, "b.example", payee(1, 1000));
        note(&store, "a.example", OriginMemoryEntry::default());
        let second = rank("a.example");
        assert!(second > rank("b.example"));
        note(&store, "b.example", OriginMemoryEntry::default());
        note(&store, "a.example", OriginMemoryEntry::default());
        assert_eq!(rank("a.example"), second);
        assert_eq!(note(&store, "c.example", OriginMemoryEntry::default()), OriginMemoryEntry::default());
        assert_eq!(count(&store), 2, "an origin without findings is not stored");
    }

    #[test]
    fn full_memory_of_proven_origins_keeps_the_older_ones() {
        let folder = folder();
        let store = store(&folder);
        for number in 0..MOST {
            note(&store, &format!("a{number}.example"), proven("a.eth"));
        }
        note(&store, "a0.example", payee(1, 1000));
        assert_eq!(note(&store, "stranger.example", payee(1, 1000)), OriginMemoryEntry::default());
        assert!(!knows(&store, "stranger.example"));
        for number in 0..MOST {
            note(&store, &format!("flood{number}.example"), proven("b.eth"));
        }
        assert!((0..MOST - 1).all(|number| knows(&store, &format!("a{number}.example"))));
        assert_eq!(count(&store), MOST);
    }

    #[test]
    fn lowered_bound_shrinks_the_memory() {
        let folder = folder();
        {
            let large = store(&folder);
            (0..MOST).for_each(|number| drop(note(&large, &format!("a{number}.example"), payee(1, 1000))));
        }
        let small = MemoryFile::open(&folder.path().join("memory"), 4).expect("the same file");
        (0..4).for_each(|number| drop(note(&small, &format!("b{number}.example"), payee(1, 1000))));
        assert_eq!(count(&small), 4);
    }

    #[test]
    fn noting_never_replaces_an_identity() {
        let folder = folder();
        let store = store(&folder);
        note(&store, "a.example", proven("a.eth"));
        let noted =
            note(&store, "a.example", OriginMemoryEntry { proposed: seen("thief.eth", 1000), ..proven("thief.eth") });
        assert_eq!(noted.identity, seen("a.eth", 1000), "the identity that is bound");
        note(&store, "a.example", payee(1, 1000));
        let known = recall(&store, "a.example");
        assert_eq!((known.identity, known.proposed), (seen("a.eth", 1000), seen("thief.eth", 1000)));
        assert_eq!(known.payee, payee(1, 1000).payee);
    }

    #[test]
    fn identity_keeps_the_time_of_its_proposal() {
        let folder = folder();
        let store = store(&folder);
        note(&store, "a.example", proposing("a.eth"));
        let later = |name| OriginMemoryEntry { identity: seen(name, 2000), ..OriginMemoryEntry::default() };
        assert_eq!(note(&store, "a.example", later("a.eth")), proven("a.eth"));
        note(&store, "b.example", proposing("a.eth"));
        assert_eq!(note(&store, "b.example", later("b.eth")).identity, seen("b.eth", 2000));
    }

    #[test]
    fn accepting_makes_the_proposal_the_identity() {
        let folder = folder();
        let store = store(&folder);
        let accept = || store.accept_proposed_identity(&key("a.example"));
        assert_eq!(accept(), Err(ResolverMemoryError::NothingToAccept));
        note(&store, "a.example", proposing("a.eth"));
        note(&store, "a.example", OriginMemoryEntry { proposed: seen("a.eth", 2000), ..OriginMemoryEntry::default() });
        note(&store, "a.example", payee(1, 1000));
        assert_eq!(accept(), Ok(identity("a.eth")));
        assert_eq!(recall(&store, "a.example"), OriginMemoryEntry { payee: payee(1, 1000).payee, ..proven("a.eth") });
        assert_eq!(accept(), Err(ResolverMemoryError::NothingToAccept), "it is accepted already");
        note(&store, "a.example", proposing("a.eth"));
        assert_eq!(accept(), Err(ResolverMemoryError::NothingToAccept), "the same identity is no proposal");
        let registration = "eip155:8453:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432:22";
        note(&store, "a.example", proposing(registration));
        assert_eq!(accept(), Ok(identity(registration)));
        assert_eq!(recall(&store, "a.example").identity, seen(registration, 1000));
        for number in 0..2 * MOST {
            note(&store, &format!("flood{number}.example"), payee(1, 1000));
        }
        assert!(knows(&store, "a.example"), "what was accepted counts as proven");
    }

    #[test]
    fn forgotten_origin_is_new_again() {
        let folder = folder();
        let store = store(&folder);
        let forget = || store.forget_origin(&key("a.example"));
        assert_eq!(forget(), Ok(false));
        note(&store, "a.example", proven("a.eth"));
        note(&store, "b.example", proven("b.eth"));
        assert_eq!((forget(), forget()), (Ok(true), Ok(false)));
        assert!(!knows(&store, "a.example") && knows(&store, "b.example"));
        note(&store, "a.example", proven("c.eth"));
        assert_eq!(recall(&store, "a.example"), proven("c.eth"));
    }

    #[test]
    fn damaged_row_is_an_error_until_it_is_forgotten() {
        let folder = folder();
        let store = store(&folder);
        note(&store, "a.example", proven("a.eth"));
        note(&store, "b.example", proven("b.eth"));
        let a = key("a.example");
        for bytes in ["", "{", "null", r#"{"identity":"no name"}"#] {
            let write = store.database_or_reopen().unwrap().begin_write().unwrap();
            {
                let mut rows = write.open_table(ORIGINS).unwrap();
                let rank = rows.get(a.row_key()).unwrap().unwrap().value().0;
                rows.insert(a.row_key(), (rank, bytes.as_bytes())).unwrap();
            }
            write.commit().unwrap();
            assert_eq!(store.recall_origin(&a), Err(ResolverMemoryError::Unreadable), "{bytes}");
            assert_eq!(store.remember_origin(&a, proven("thief.eth")), Err(ResolverMemoryError::Unreadable));
            assert_eq!(store.accept_proposed_identity(&a), Err(ResolverMemoryError::Unreadable));
            let listed = store.list_origins(LAB.0, LAB.1).unwrap();
            let listed: Vec<_> = listed.into_iter().map(|(_, remembered)| remembered).collect();
            assert_eq!(listed, [Err(ResolverMemoryError::Unreadable), Ok(proven("b.eth"))]);
        }
        assert_eq!(store.forget_origin(&a), Ok(true));
        assert!(!knows(&store, "a.example"));
    }

    #[test]
    fn payee_keeps_its_first_time_until_another_is_demanded() {
        let folder = folder();
        let store = store(&folder);
        let seen = |noted: OriginMemoryEntry| {
            note(&store, "a.example", noted);
            let seen = recall(&store, "a.example").payee.expect("a payee");
            (seen.address.0[19], seen.at.as_second())
        };
        assert_eq!(seen(payee(1, 1000)), (1, 1000));
        assert_eq!(seen(payee(1, 2000)), (1, 1000));
        assert_eq!(seen(payee(2, 3000)), (2, 3000));
        assert_eq!(seen(payee(1, 4000)), (1, 4000));
        assert_eq!(seen(proven("a.eth")), (1, 4000));
        let mut elsewhere = payee(1, 5000);
        elsewhere.payee.as_mut().expect("a payee").network = "eip155:1".parse().expect("a network");
        assert_eq!(seen(elsewhere), (1, 5000), "the same address on another network is another payee");
    }

    #[test]
    fn origin_longer_than_dns_allows_is_not_stored() {
        let folder = folder();
        let store = store(&folder);
        let noted = note(&store, &format!("{}a.example", "a.".repeat(200)), proven("a.eth"));
        assert_eq!(noted, OriginMemoryEntry::default());
        assert_eq!(count(&store), 0);
    }

    #[tokio::test]
    async fn in_process_memory_is_shared_by_its_clones_only() {
        let memory = ResolverMemory::in_memory(MOST).expect("a memory");
        let a = key("a.example");
        memory.remember_origin(a.clone(), proven("a.eth")).await.expect("it is not full");
        assert_eq!(memory.clone().recall_origin(a.clone()).await, Ok(proven("a.eth")));
        let other = ResolverMemory::in_memory(MOST).expect("a memory");
        assert_eq!(other.recall_origin(a).await, Ok(OriginMemoryEntry::default()));
    }

    #[tokio::test(start_paused = true)]
    async fn memory_that_does_not_answer_times_out() {
        let memory = ResolverMemory::in_memory(MOST).expect("a memory");
        let all = u32::try_from(AT_ONCE).expect("a few");
        let _stuck = memory.permits.acquire_many(all).await.expect("it is open");
        let a = key("a.example");
        assert_eq!(memory.recall_origin(a.clone()).await, Err(ResolverMemoryError::Late));
        assert_eq!(memory.remember_origin(a, proven("a.eth")).await, Err(ResolverMemoryError::Late));
    }
}
