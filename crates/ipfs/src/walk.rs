//! [`DagWalk`]: from a root CID and a path to the bytes of a file, over blocks that the caller fetches.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;
use multihash::Multihash;

use super::budget::{DagWalkBudget, DagWalkLimit};
use super::dagpb::DagPbNode;
use super::error::DagWalkError;
use super::hamt::{HamtBucket, HamtHashPath, HamtShard, HamtShardError};
use super::id::{CODEC_DAG_PB, CODEC_RAW, CidParts, ContentId, MAX_DIGEST_BYTES};
use super::path::UnixFsPath;
use super::unixfs::{UnixFsData, UnixFsDataType, find_directory_entry};

/// A traversal from a root along a path to a file. It either wants a block or has ended.
///
/// The caller loops: it calls [`DagWalk::wanted_block`], fetches that block from any source and passes it to
/// [`DagWalk::supply_block`]. At the end it calls [`DagWalk::finish`]. A walk wants each block once, and never the
/// block of an identity CID. If the wanted CID is raw, the caller may try bytes from elsewhere: wrong bytes change
/// nothing.
#[derive(Clone, Debug)]
pub struct DagWalk {
    budget: DagWalkBudget,
    /// Path segments that are not yet resolved.
    segments: VecDeque<String>,
    /// A stack of nodes to visit; the next one is last.
    agenda: Vec<DagWalkTask>,
    proven: HashMap<Multihash<MAX_DIGEST_BYTES>, Bytes>,
    proven_bytes: usize,
    visits: usize,
    /// The node at the end of the path; the root until the path is resolved.
    file: ContentId,
    /// Parts of the file in order, as slices of blocks in `proven`.
    pieces: Vec<Bytes>,
    state: DagWalkState,
}

#[derive(Clone, Debug)]
enum DagWalkState {
    Wanting(ContentId),
    Over(Result<VerifiedFile, DagWalkError>),
}

#[derive(Clone, Debug)]
struct DagWalkTask {
    cid: ContentId,
    role: DagVisitPurpose,
}

/// Why a node is visited.
#[derive(Clone, Debug)]
enum DagVisitPurpose {
    /// The path resolved so far ends here.
    Step,
    /// A shard of a directory, `path` bits below its root, in the search for `name`.
    Shard { name: String, path: HamtHashPath, fanout: u64 },
    /// A part of the file, `depth` levels below its root, that must have `size` bytes.
    Chunk { size: u64, depth: usize },
}

impl DagWalk {
    /// A walk without any blocks yet.
    pub fn new(root: ContentId, path: &UnixFsPath, budget: DagWalkBudget) -> Self {
        let mut walk = Self {
            budget,
            segments: path.segments().iter().cloned().collect(),
            agenda: Vec::new(),
            proven: HashMap::new(),
            proven_bytes: 0,
            visits: 0,
            file: root,
            pieces: Vec::new(),
            state: DagWalkState::Wanting(root),
        };
        match walk.schedule_visit(root, DagVisitPurpose::Step) {
            Ok(()) => walk.visit_available_nodes(),
            Err(error) => walk.state = DagWalkState::Over(Err(error)),
        }
        walk
    }

    /// The block that the walk needs next; `None` when the walk has ended.
    pub fn wanted_block(&self) -> Option<&ContentId> {
        match &self.state {
            DagWalkState::Wanting(cid) => Some(cid),
            DagWalkState::Over(_) => None,
        }
    }

    /// Accepts the wanted block, and continues as far as the verified blocks allow. If no block is wanted, the call has
    /// no effect.
    ///
    /// Errors in the content of the block are reported by [`DagWalk::finish`].
    ///
    /// # Errors
    /// [`DagWalkError::HashMismatch`] if `block` is not the wanted one. The walk is unchanged.
    pub fn supply_block(&mut self, block: Bytes) -> Result<(), DagWalkError> {
        let DagWalkState::Wanting(cid) = self.state else { return Ok(()) };
        if !cid.is_cid_of_block(&block) && !mutant!("blocks-unhashed") {
            return Err(DagWalkError::HashMismatch { cid: Box::new(cid) });
        }
        match self.store_block(cid, block) {
            Ok(()) => self.visit_available_nodes(),
            Err(error) => self.state = DagWalkState::Over(Err(error)),
        }
        Ok(())
    }

    /// The file, or the reason why there is none.
    ///
    /// # Errors
    /// [`DagWalkError::Incomplete`] while a block is wanted; otherwise what the verified blocks prove.
    pub fn finish(self) -> Result<VerifiedFile, DagWalkError> {
        match self.state {
            DagWalkState::Wanting(cid) => Err(DagWalkError::Incomplete { cid: Box::new(cid) }),
            DagWalkState::Over(outcome) => outcome,
        }
    }

    /// Removes and returns the supplied blocks. Call it only when the walk has ended or is abandoned.
    pub fn take_blocks(&mut self) -> VerifiedBlocks {
        VerifiedBlocks(std::mem::take(&mut self.proven))
    }

    /// Whether the block of `cid` was already supplied.
    pub fn has_block(&self, cid: &ContentId) -> bool {
        self.proven.contains_key(&cid.multihash())
    }

    /// The number of distinct blocks supplied so far.
    pub fn block_count(&self) -> usize {
        self.proven.len()
    }

    /// The budget of this walk.
    pub fn budget(&self) -> &DagWalkBudget {
        &self.budget
    }

    fn store_block(&mut self, cid: ContentId, block: Bytes) -> Result<(), DagWalkError> {
        if block.len() > self.budget.block_size && !mutant!("blocks-of-any-size") {
            return Err(DagWalkError::Limit(DagWalkLimit::BlockSize));
        }
        if self.proven.len() >= self.budget.blocks {
            return Err(DagWalkError::Limit(DagWalkLimit::Blocks));
        }
        self.proven_bytes += block.len();
        if self.proven_bytes > self.budget.dag_bytes {
            return Err(DagWalkError::Limit(DagWalkLimit::DagBytes));
        }
        self.proven.insert(cid.multihash(), block);
        Ok(())
    }

    fn visit_available_nodes(&mut self) {
        while let Some(task) = self.agenda.pop() {
            let Some(block) = self.find_block(&task.cid) else {
                self.state = DagWalkState::Wanting(task.cid);
                self.agenda.push(task);
                return;
            };
            self.visits += 1;
            if let Err(error) = self.visit_node(task, &block) {
                self.state = DagWalkState::Over(Err(error));
                return;
            }
        }
        self.state = DagWalkState::Over(Ok(self.verified_file()));
    }

    fn find_block(&self, cid: &ContentId) -> Option<Bytes> {
        match cid.identity_content() {
            Some(content) => Some(Bytes::copy_from_slice(content)),
            None => self.proven.get(&cid.multihash()).cloned(),
        }
    }

    /// The result when no node is left to visit. Copies the bytes, so that the result keeps no fetched buffer in
    /// memory.
    fn verified_file(&self) -> VerifiedFile {
        let bytes = Bytes::from(self.pieces.concat());
        VerifiedFile { bytes, file: self.file, blocks: self.proven.len(), visits: self.visits }
    }

    /// Schedules a visit to a node, if its codec is supported and the budget allows another visit.
    fn schedule_visit(&mut self, cid: ContentId, role: DagVisitPurpose) -> Result<(), DagWalkError> {
        if !matches!(cid.codec(), CODEC_RAW | CODEC_DAG_PB) {
            return Err(DagWalkError::UnsupportedCodec(cid.codec()));
        }
        if self.visits + self.agenda.len() >= self.budget.visits && !mutant!("endless-visits") {
            return Err(DagWalkError::Limit(DagWalkLimit::Visits));
        }
        self.agenda.push(DagWalkTask { cid, role });
        Ok(())
    }

    fn follow_link(&mut self, target: CidParts, role: DagVisitPurpose) -> Result<(), DagWalkError> {
        let cid = target.into_content_id().map_err(|forbidden| {
            if forbidden.is_long_identity() {
                DagWalkError::Limit(DagWalkLimit::InlineContent)
            } else {
                DagWalkError::HashNotAllowed(forbidden.to_string())
            }
        })?;
        self.schedule_visit(cid, role)
    }

    fn visit_node(&mut self, task: DagWalkTask, block: &Bytes) -> Result<(), DagWalkError> {
        let cid = task.cid;
        match task.role {
            DagVisitPurpose::Step if cid.is_raw() => self.begin_raw_file(cid, block),
            DagVisitPurpose::Chunk { size, .. } if cid.is_raw() => self.read_raw_chunk(cid, block, size),
            DagVisitPurpose::Shard { .. } if cid.is_raw() => Err(bad_unixfs_error(cid, "a shard links to a raw block")),
            DagVisitPurpose::Step => {
                with_decoded_unixfs_node(cid, block, |node, unixfs| self.follow_segment(cid, block, node, unixfs))
            }
            DagVisitPurpose::Shard { name, path, fanout } => with_decoded_unixfs_node(cid, block, |node, unixfs| {
                if unixfs.kind != UnixFsDataType::HamtShard || unixfs.fanout != Some(fanout) {
                    return Err(bad_unixfs_error(
                        cid,
                        "a shard links to a node that is not a shard of the same fanout",
                    ));
                }
                self.search_shard(cid, node, unixfs, name, path)
            }),
            DagVisitPurpose::Chunk { size, depth } => with_decoded_unixfs_node(cid, block, |node, unixfs| {
                if unixfs.kind != UnixFsDataType::File || checked_file_size(cid, node, unixfs)? != size {
                    return Err(bad_unixfs_error(cid, "a chunk is not a file of the size its parent states"));
                }
                self.read_chunks(block, node, unixfs, depth)
            }),
        }
    }

    fn follow_segment(
        &mut self,
        cid: ContentId,
        block: &Bytes,
        node: &DagPbNode,
        unixfs: &UnixFsData,
    ) -> Result<(), DagWalkError> {
        match unixfs.kind {
            UnixFsDataType::Other(code) => Err(DagWalkError::UnsupportedType(code)),
            UnixFsDataType::File => {
                let size = checked_file_size(cid, node, unixfs)?;
                self.begin_file(cid, size)?;
                self.read_chunks(block, node, unixfs, 0)
            }
            UnixFsDataType::Directory => {
                let name = self.segments.pop_front().ok_or(DagWalkError::IsADirectory)?;
                let entry = find_directory_entry(node, &name).map_err(|why| bad_unixfs_error(cid, why))?;
                self.follow_link(entry.ok_or_else(|| not_found_error(&name))?.target, DagVisitPurpose::Step)
            }
            UnixFsDataType::HamtShard => {
                let name = self.segments.pop_front().ok_or(DagWalkError::IsADirectory)?;
                let path = HamtHashPath::from_name(&name);
                self.search_shard(cid, node, unixfs, name, path)
            }
        }
    }

    fn search_shard(
        &mut self,
        cid: ContentId,
        node: &DagPbNode,
        unixfs: &UnixFsData,
        name: String,
        mut path: HamtHashPath,
    ) -> Result<(), DagWalkError> {
        let shard = HamtShard::from_node(node, unixfs).map_err(|error| shard_error(cid, error))?;
        match shard.find_bucket(&name, &mut path).map_err(|error| shard_error(cid, error))? {
            HamtBucket::Empty => Err(not_found_error(&name)),
            HamtBucket::Entry(link) => self.follow_link(link.target, DagVisitPurpose::Step),
            HamtBucket::Shard(link) => {
                self.follow_link(link.target, DagVisitPurpose::Shard { name, path, fanout: shard.fanout() })
            }
        }
    }

    fn begin_raw_file(&mut self, cid: ContentId, block: &Bytes) -> Result<(), DagWalkError> {
        self.begin_file(cid, block.len() as u64)?;
        self.pieces.push(block.clone());
        Ok(())
    }

    /// Records that the path ends at a file of `size` bytes. Every chunk must have its stated size, so this bounds all
    /// of them together.
    fn begin_file(&mut self, file: ContentId, size: u64) -> Result<(), DagWalkError> {
        if let Some(name) = self.segments.front() {
            return Err(DagWalkError::NotADirectory { below: name_excerpt(name) });
        }
        let limit = self.budget.total_bytes;
        if size > limit as u64 {
            return Err(DagWalkError::TooLarge { size, limit });
        }
        self.file = file;
        Ok(())
    }

    fn read_raw_chunk(&mut self, cid: ContentId, block: &Bytes, size: u64) -> Result<(), DagWalkError> {
        if block.len() as u64 != size {
            return Err(bad_unixfs_error(cid, "chunk size differs from the size its parent states"));
        }
        self.pieces.push(block.clone());
        Ok(())
    }

    /// Appends the data of a file node, and schedules its children; the first one is next.
    fn read_chunks(
        &mut self,
        block: &Bytes,
        node: &DagPbNode,
        unixfs: &UnixFsData,
        depth: usize,
    ) -> Result<(), DagWalkError> {
        if !unixfs.data.is_empty() {
            self.pieces.push(block.slice_ref(unixfs.data));
        }
        if !node.links.is_empty() && depth >= self.budget.depth && !mutant!("bottomless-files") {
            return Err(DagWalkError::Limit(DagWalkLimit::Depth));
        }
        for (link, size) in unixfs.file_chunks(node).rev() {
            self.follow_link(link.target, DagVisitPurpose::Chunk { size, depth: depth + 1 })?;
        }
        Ok(())
    }
}

fn with_decoded_unixfs_node<T>(
    cid: ContentId,
    block: &[u8],
    then: impl FnOnce(&DagPbNode, &UnixFsData) -> Result<T, DagWalkError>,
) -> Result<T, DagWalkError> {
    let node = DagPbNode::decode(block).map_err(|why| DagWalkError::BadDagPb { cid: Box::new(cid), why })?;
    let unixfs = UnixFsData::from_node(&node).map_err(|why| bad_unixfs_error(cid, why))?;
    then(&node, &unixfs)
}

fn checked_file_size(cid: ContentId, node: &DagPbNode, unixfs: &UnixFsData) -> Result<u64, DagWalkError> {
    unixfs.checked_file_size(node).map_err(|why| bad_unixfs_error(cid, why))
}

fn bad_unixfs_error(cid: ContentId, why: &'static str) -> DagWalkError {
    DagWalkError::BadUnixfs { cid: Box::new(cid), why }
}

fn shard_error(cid: ContentId, error: HamtShardError) -> DagWalkError {
    match error {
        HamtShardError::Bad(why) => bad_unixfs_error(cid, why),
        HamtShardError::Bound(bound) => DagWalkError::Limit(bound),
        HamtShardError::UnknownHash(code) => DagWalkError::UnsupportedType(code),
    }
}

fn not_found_error(name: &str) -> DagWalkError {
    DagWalkError::NotFound { name: name_excerpt(name) }
}

/// A truncated, escaped name for a message.
fn name_excerpt(name: &str) -> String {
    const SHOWN_CHARS: usize = 60;
    name.chars().take(SHOWN_CHARS).flat_map(char::escape_debug).collect()
}

/// Blocks that were supplied to walks. The hash of each is verified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifiedBlocks(HashMap<Multihash<MAX_DIGEST_BYTES>, Bytes>);

impl VerifiedBlocks {
    /// The block of `cid`, if present.
    pub fn get(&self, cid: &ContentId) -> Option<&Bytes> {
        self.0.get(&cid.multihash())
    }

    /// Adds a block that no walk visited, if its hash matches its CID.
    pub fn add_if_verified(&mut self, cid: &ContentId, block: Bytes) {
        if cid.is_cid_of_block(&block) {
            self.0.insert(cid.multihash(), block);
        }
    }

    /// The total number of bytes.
    pub fn total_bytes(&self) -> usize {
        self.0.values().map(Bytes::len).sum()
    }

    /// Adds the blocks of another walk.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }
}

/// The result of a successful walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedFile {
    /// The bytes of the file.
    pub bytes: Bytes,
    /// The CID of the file at the end of the path.
    pub file: ContentId,
    /// The number of distinct blocks supplied.
    pub blocks: usize,
    /// The number of node visits. A node that occurs twice counts twice.
    pub visits: usize,
}

#[cfg(test)]
mod tests {
    use super::super::varint;
    use super::*;
    use crate::build::{
        BlocksByCid, BuiltDagNode, DagBuilder, DirectoryEntries, HamtFanout, UnixFsLayout, build_directory_tree,
    };
    use crate::{ProvenContentDefect, UnixFsPathError};

    const TYPE_FILE: u8 = 2;

    fn path(text: &str) -> UnixFsPath {
        UnixFsPath::parse(text).unwrap()
    }

    /// Walks over `blocks`, and returns the result and the CIDs that were requested.
    fn ask(
        root: ContentId,
        at: &str,
        budget: DagWalkBudget,
        blocks: &BlocksByCid,
    ) -> (Result<VerifiedFile, DagWalkError>, Vec<ContentId>) {
        let mut walk = DagWalk::new(root, &path(at), budget);
        let mut asked = Vec::new();
        while let Some(cid) = walk.wanted_block().copied() {
            asked.push(cid);
            let Some(block) = blocks.get(&cid) else { break };
            walk.supply_block(block.clone()).unwrap();
        }
        (walk.finish(), asked)
    }

    fn cat(root: ContentId, at: &str, blocks: &BlocksByCid) -> Result<Bytes, DagWalkError> {
        ask(root, at, DagWalkBudget::for_agent_card(), blocks).0.map(|proven| proven.bytes)
    }

    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        let mut field = vec![number << 3 | 2];
        varint::write_varint(content.len() as u64, &mut field);
        field.extend(content);
        field
    }

    /// Adds a node with these links and this UnixFS data, valid or not.
    fn add(blocks: &mut BlocksByCid, links: &[(&str, ContentId)], data: &[u8]) -> ContentId {
        let mut block = Vec::new();
        for (name, cid) in links {
            block.extend(field(2, &[field(1, &cid.to_bytes()), field(2, name.as_bytes())].concat()));
        }
        block.extend(field(1, data));
        let cid = ContentId::from_dag_pb_block(&block);
        blocks.insert(cid, Bytes::from(block));
        cid
    }

    /// Adds a file node over chunks, with the sizes that it claims for them.
    fn add_file(blocks: &mut BlocksByCid, chunks: &[(ContentId, u64)]) -> ContentId {
        let mut data = vec![0x08, TYPE_FILE, 0x18];
        varint::write_varint(chunks.iter().map(|(_, size)| size).sum(), &mut data);
        for (_, size) in chunks {
            data.push(0x20);
            varint::write_varint(*size, &mut data);
        }
        let links: Vec<_> = chunks.iter().map(|(cid, _)| ("", *cid)).collect();
        add(blocks, &links, &data)
    }

    fn add_directory(blocks: &mut BlocksByCid, links: &[(&str, ContentId)]) -> ContentId {
        add(blocks, links, &[0x08, 1])
    }

    fn is_bad_unixfs<T: std::fmt::Debug>(outcome: Result<T, DagWalkError>, expected: &str) {
        match outcome {
            Err(DagWalkError::BadUnixfs { why, .. }) => assert_eq!(why, expected),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_block_on_the_way_is_asked_for_once_and_no_other() {
        let files = [("a/b/card.json", "{}"), ("a/other.json", "[]"), ("z", "z")];
        let files = files.map(|(path, content)| (path.to_owned(), Bytes::from(content))).into();
        let (root, blocks) = build_directory_tree(&files, UnixFsLayout::default());
        let (outcome, asked) = ask(root, "a/b/card.json", DagWalkBudget::for_agent_card(), &blocks);
        let proven = outcome.unwrap();
        assert_eq!(proven.bytes, "{}");
        assert_eq!(proven.file, ContentId::from_raw_block(b"{}"));
        assert_eq!((proven.blocks, proven.visits), (4, 4));
        assert_eq!(asked.len(), 4);
        assert_eq!(asked[0], root);
        assert_eq!(asked[3], proven.file);
    }

    #[test]
    fn a_chunk_that_occurs_again_is_not_asked_for_again() {
        let mut dag = DagBuilder::default();
        let root = dag.add_file(&[0; 1000], 10);
        let (outcome, asked) = ask(root.cid, "", DagWalkBudget::for_agent_card(), &dag.into_blocks());
        let proven = outcome.unwrap();
        assert_eq!(proven.bytes, vec![0; 1000]);
        assert_eq!((proven.blocks, proven.visits, asked.len()), (2, 101, 2));
    }

    #[test]
    fn the_same_bytes_under_another_codec_are_not_asked_for_again() {
        let mut blocks = BlocksByCid::new();
        let leaf = add_file(&mut blocks, &[]);
        let block = blocks[&leaf].clone();
        let root = add_file(&mut blocks, &[(leaf, 0), (ContentId::from_raw_block(&block), block.len() as u64)]);
        let (outcome, asked) = ask(root, "", DagWalkBudget::for_agent_card(), &blocks);
        assert_eq!(outcome.unwrap().bytes, block);
        assert_eq!(asked, [root, leaf]);
    }

    #[test]
    fn a_wrong_block_changes_nothing() {
        let mut dag = DagBuilder::default();
        let root = dag.add_file(b"hello world", 6);
        let blocks = dag.into_blocks();
        let mut walk = DagWalk::new(root.cid, &UnixFsPath::default(), DagWalkBudget::for_agent_card());
        while let Some(cid) = walk.wanted_block().copied() {
            for wrong in [Bytes::new(), Bytes::from("hello world"), Bytes::from(vec![0; 4 << 20])] {
                let mismatch = DagWalkError::HashMismatch { cid: Box::new(cid) };
                assert_eq!(walk.supply_block(wrong), Err(mismatch));
                assert_eq!(walk.wanted_block(), Some(&cid));
            }
            walk.supply_block(blocks[&cid].clone()).unwrap();
        }
        walk.supply_block(Bytes::from("too much")).unwrap();
        assert_eq!(walk.finish().unwrap().bytes, "hello world");
    }

    #[test]
    fn bytes_from_elsewhere_may_stand_in_for_a_raw_leaf() {
        let files = [("card.json".to_owned(), Bytes::from("{}"))].into();
        let (root, blocks) = build_directory_tree(&files, UnixFsLayout::default());
        let mut walk = DagWalk::new(root, &path("card.json"), DagWalkBudget::for_agent_card());
        walk.supply_block(blocks[&root].clone()).unwrap();
        assert!(walk.wanted_block().unwrap().is_raw());
        walk.supply_block(Bytes::from("{}")).unwrap();
        assert_eq!(walk.finish().unwrap().bytes, "{}");
    }

    #[test]
    fn identity_cids_need_no_block() {
        let empty = ContentId::parse("bafkqaaa").unwrap();
        let proven = DagWalk::new(empty, &UnixFsPath::default(), DagWalkBudget::for_agent_card()).finish().unwrap();
        assert_eq!((proven.bytes.len(), proven.blocks, proven.visits), (0, 0, 1));
    }

    #[test]
    fn the_end_of_a_path_has_to_be_a_file() {
        let files = [("d/f".to_owned(), Bytes::from("x"))].into();
        let (root, blocks) = build_directory_tree(&files, UnixFsLayout::default());
        assert_eq!(cat(root, "d", &blocks), Err(DagWalkError::IsADirectory));
        assert_eq!(cat(root, "", &blocks), Err(DagWalkError::IsADirectory));
        assert_eq!(cat(root, "d/g", &blocks), Err(DagWalkError::NotFound { name: "g".to_owned() }));
        assert_eq!(cat(root, "d/f/g", &blocks), Err(DagWalkError::NotADirectory { below: "g".to_owned() }));
        let sharded = UnixFsLayout { shard_above: 0, ..UnixFsLayout::default() };
        let (root, blocks) = build_directory_tree(&files, sharded);
        assert_eq!(cat(root, "d", &blocks), Err(DagWalkError::IsADirectory));
        assert_eq!(cat(root, "e", &blocks), Err(DagWalkError::NotFound { name: "e".to_owned() }));
        assert_eq!(cat(root, "d/f", &blocks).unwrap(), "x");
    }

    #[test]
    fn a_missing_block_is_named() {
        let (root, mut blocks) =
            build_directory_tree(&[("f".to_owned(), Bytes::from("x"))].into(), UnixFsLayout::default());
        let leaf = ContentId::from_raw_block(b"x");
        blocks.remove(&leaf);
        assert_eq!(cat(root, "f", &blocks), Err(DagWalkError::Incomplete { cid: Box::new(leaf) }));
    }

    #[test]
    fn names_in_messages_are_cut_and_escaped() {
        let (root, blocks) =
            build_directory_tree(&[("f".to_owned(), Bytes::from("x"))].into(), UnixFsLayout::default());
        let Err(DagWalkError::NotFound { name }) = cat(root, &format!("\u{202e}\n{}", "x".repeat(1000)), &blocks)
        else {
            panic!("found");
        };
        assert!(name.starts_with("\\u{202e}\\n"), "{name}");
        assert!(name.len() < 100, "{name}");
    }

    #[test]
    fn every_entry_of_a_sharded_directory_is_found_by_its_hash() {
        const DEEPEST: usize = 12;
        for fanout in [8, 16, 256, 1024] {
            let mut dag = DagBuilder::default();
            let entries: DirectoryEntries =
                (0..300).map(|n| (format!("é{n}.json"), dag.add_raw_block(format!("{{\"n\":{n}}}")))).collect();
            let root = dag.add_hamt_directory(&entries, HamtFanout::new(fanout).unwrap());
            let blocks = dag.into_blocks();
            for (name, entry) in &entries {
                let (outcome, asked) = ask(root.cid, name, DagWalkBudget::for_agent_card(), &blocks);
                assert_eq!(outcome.unwrap().file, entry.cid);
                assert!(asked.len() <= DEEPEST, "{} blocks at fanout {fanout}", asked.len());
            }
            assert!(matches!(cat(root.cid, "none", &blocks), Err(DagWalkError::NotFound { .. })));
        }
    }

    #[test]
    fn a_directory_with_a_bad_name_is_refused_whole() {
        let leaf = ContentId::from_raw_block(b"x");
        let mut blocks = BlocksByCid::from([(leaf, Bytes::from("x"))]);
        for bad in ["", ".", "..", "a/b", "a\0b"] {
            let root = add_directory(&mut blocks, &[("f", leaf), (bad, leaf)]);
            is_bad_unixfs(cat(root, "f", &blocks), "a directory entry has an invalid name");
        }
        let root = add_directory(&mut blocks, &[("f", leaf), ("g", leaf), ("f", leaf)]);
        is_bad_unixfs(cat(root, "g", &blocks), "a directory lists a name twice");
    }

    #[test]
    fn a_chunk_must_have_the_size_its_parent_states() {
        let leaf = ContentId::from_raw_block(b"x");
        let mut blocks = BlocksByCid::from([(leaf, Bytes::from("x"))]);
        for size in [0, 2] {
            let root = add_file(&mut blocks, &[(leaf, size)]);
            is_bad_unixfs(cat(root, "", &blocks), "chunk size differs from the size its parent states");
            let inner = add_file(&mut blocks, &[(leaf, 1)]);
            let root = add_file(&mut blocks, &[(inner, size)]);
            is_bad_unixfs(cat(root, "", &blocks), "a chunk is not a file of the size its parent states");
        }
        let directory = add_directory(&mut blocks, &[]);
        let root = add_file(&mut blocks, &[(directory, 0)]);
        is_bad_unixfs(cat(root, "", &blocks), "a chunk is not a file of the size its parent states");
    }

    #[test]
    fn a_file_too_large_is_known_by_its_root() {
        let limit = DagWalkBudget::for_agent_card().total_bytes;
        let leaf = ContentId::from_raw_block(b"x");
        let mut blocks = BlocksByCid::new();
        let root = add_file(&mut blocks, &[(leaf, limit as u64), (leaf, 1)]);
        let (outcome, asked) = ask(root, "", DagWalkBudget::for_agent_card(), &blocks);
        assert_eq!(outcome, Err(DagWalkError::TooLarge { size: limit as u64 + 1, limit }));
        assert_eq!(asked, [root]);

        let mut dag = DagBuilder::default();
        let fits = dag.add_raw_block(vec![0; limit]);
        let exceeds = dag.add_raw_block(vec![0; limit + 1]);
        let blocks = dag.into_blocks();
        assert_eq!(cat(fits.cid, "", &blocks).unwrap().len(), limit);
        assert!(matches!(cat(exceeds.cid, "", &blocks), Err(DagWalkError::TooLarge { .. })));
    }

    #[test]
    fn a_diamond_without_bytes_ends_at_the_visits() {
        let mut blocks = BlocksByCid::new();
        let mut node = add_file(&mut blocks, &[]);
        for _ in 0..30 {
            node = add_file(&mut blocks, &[(node, 0), (node, 0)]);
        }
        let (outcome, asked) = ask(node, "", DagWalkBudget::for_agent_card(), &blocks);
        assert_eq!(outcome, Err(DagWalkError::Limit(DagWalkLimit::Visits)));
        assert_eq!(asked.len(), 31);
    }

    #[test]
    fn more_links_than_visits_are_not_even_listed() {
        let mut blocks = BlocksByCid::new();
        let leaf = ContentId::parse("bafkqaaa").unwrap();
        let root = add_file(&mut blocks, &vec![(leaf, 0); 20_000]);
        let mut walk = DagWalk::new(root, &UnixFsPath::default(), DagWalkBudget::for_agent_card());
        walk.supply_block(blocks[&root].clone()).unwrap();
        assert!(walk.agenda.len() <= DagWalkBudget::for_agent_card().visits);
        assert_eq!(walk.finish(), Err(DagWalkError::Limit(DagWalkLimit::Visits)));
    }

    #[test]
    fn a_chain_ends_at_the_depth() {
        let mut dag = DagBuilder::default();
        let leaf = dag.add_raw_block("x").cid;
        let mut blocks = dag.into_blocks();
        let mut node = leaf;
        for _ in 0..DagWalkBudget::MAX_DEPTH {
            node = add_file(&mut blocks, &[(node, 1)]);
        }
        assert_eq!(cat(node, "", &blocks).unwrap(), "x");
        node = add_file(&mut blocks, &[(node, 1)]);
        assert_eq!(cat(node, "", &blocks), Err(DagWalkError::Limit(DagWalkLimit::Depth)));
    }

    #[test]
    fn blocks_are_bounded_in_number_and_size() {
        let (root, blocks) =
            build_directory_tree(&[("d/f".to_owned(), Bytes::from("x"))].into(), UnixFsLayout::default());
        let within = |budget| ask(root, "d/f", budget, &blocks).0.map(|proven| proven.blocks);
        let card = DagWalkBudget::for_agent_card();
        assert_eq!(within(DagWalkBudget { blocks: 3, ..card }), Ok(3));
        assert_eq!(within(DagWalkBudget { blocks: 2, ..card }), Err(DagWalkError::Limit(DagWalkLimit::Blocks)));
        assert_eq!(within(DagWalkBudget { block_size: 10, ..card }), Err(DagWalkError::Limit(DagWalkLimit::BlockSize)));
        assert_eq!(within(DagWalkBudget { dag_bytes: 80, ..card }), Err(DagWalkError::Limit(DagWalkLimit::DagBytes)));
        assert_eq!(within(DagWalkBudget { visits: 3, ..card }), Ok(3));
        assert_eq!(within(DagWalkBudget { visits: 2, ..card }), Err(DagWalkError::Limit(DagWalkLimit::Visits)));
        assert_eq!(within(DagWalkBudget { visits: 0, ..card }), Err(DagWalkError::Limit(DagWalkLimit::Visits)));
    }

    #[test]
    fn blocks_of_other_codecs_are_never_asked_for() {
        let cbor = ContentId::parse("bafyreihghlndxztlbtthbk2rumh3dvfbll3slgby4kzthxisuefaamtphq").unwrap();
        assert_eq!(
            ask(cbor, "", DagWalkBudget::for_agent_card(), &BlocksByCid::new()),
            (Err(DagWalkError::UnsupportedCodec(0x71)), vec![])
        );
        let mut blocks = BlocksByCid::new();
        let root = add_directory(&mut blocks, &[("f", cbor)]);
        assert_eq!(
            ask(root, "f", DagWalkBudget::for_agent_card(), &blocks),
            (Err(DagWalkError::UnsupportedCodec(0x71)), vec![root])
        );
    }

    #[test]
    fn a_link_that_proves_nothing_matters_only_on_the_way() {
        let leaf = ContentId::from_raw_block(b"x");
        let mut blocks = BlocksByCid::from([(leaf, Bytes::from("x"))]);
        let sha1 = [&[0x01, 0x55, 0x11, 0x14][..], &[7; 20]].concat();
        let links = [
            field(2, &[field(1, &sha1), field(2, b"bad")].concat()),
            field(2, &[field(1, &leaf.to_bytes()), field(2, b"good")].concat()),
            field(1, &[0x08, 1]),
        ];
        let block = links.concat();
        let root = ContentId::from_dag_pb_block(&block);
        blocks.insert(root, Bytes::from(block));
        assert_eq!(cat(root, "good", &blocks).unwrap(), "x");
        assert!(matches!(cat(root, "bad", &blocks), Err(DagWalkError::HashNotAllowed(_))));
    }

    #[test]
    fn an_inline_link_longer_than_a_cid_may_hold_is_named() {
        let inline = [&[1, 0x55, 0x00, 0x81, 0x01][..], &[0; 129]].concat();
        let link = [field(1, &inline), field(2, b"a")].concat();
        let block = [field(2, &link), field(1, &[0x08, 1])].concat();
        let root = ContentId::from_dag_pb_block(&block);
        let blocks = BlocksByCid::from([(root, Bytes::from(block))]);
        let forbidden = DagWalkError::Limit(DagWalkLimit::InlineContent);
        assert_eq!(cat(root, "a", &blocks), Err(forbidden.clone()));
        assert_eq!(forbidden.proven_content_defect(), Some(ProvenContentDefect::HashForbidden));
        for error in [UnixFsPathError::TooLong, UnixFsPathError::TooManySegments] {
            assert_eq!(DagWalkError::from(error), DagWalkError::Limit(DagWalkLimit::Path));
        }
    }

    /// The UnixFS Data of a shard with this bitfield, hash code and stated fanout.
    fn shard(bitfield: &[u8], hash: u8, fanout: u8) -> Vec<u8> {
        [&[0x08, 5][..], &field(2, bitfield), &[0x28, hash, 0x30, fanout]].concat()
    }

    #[test]
    fn shards_end_with_the_hash_and_at_a_foreign_hash() {
        const MURMUR3: u8 = 0x22;
        let mut blocks = BlocksByCid::new();
        let unknown = add(&mut blocks, &[], &shard(&[], 0x12, 8));
        assert_eq!(cat(unknown, "a", &blocks), Err(DagWalkError::UnsupportedType(0x12)));

        let mut path = HamtHashPath::from_name("a");
        let levels: Vec<u64> = std::iter::from_fn(|| path.next_index(8)).collect();
        let mut below = add(&mut blocks, &[], &shard(&[], MURMUR3, 8));
        for index in levels.iter().rev() {
            below = add(&mut blocks, &[(&format!("{index:X}"), below)], &shard(&[1 << index], MURMUR3, 8));
        }
        assert_eq!(cat(below, "a", &blocks), Err(DagWalkError::Limit(DagWalkLimit::ShardDepth)));
        assert_eq!(levels.len(), 21);
    }

    #[test]
    fn each_end_of_a_walk_proves_what_its_name_says() {
        let cid = Box::new(ContentId::from_raw_block(b""));
        for (error, proves) in [
            (DagWalkError::NotFound { name: String::new() }, Some(ProvenContentDefect::PathMissing)),
            (DagWalkError::IsADirectory, Some(ProvenContentDefect::NotFile)),
            (DagWalkError::HashNotAllowed(String::new()), Some(ProvenContentDefect::HashForbidden)),
            (DagWalkError::TooLarge { size: 9, limit: 8 }, Some(ProvenContentDefect::Oversize { limit: 8 })),
            (DagWalkError::BadUnixfs { cid: cid.clone(), why: "" }, Some(ProvenContentDefect::Invalid)),
            (DagWalkError::CarLimit(DagWalkLimit::DagBytes), None),
            (DagWalkError::HashMismatch { cid: cid.clone() }, None),
            (DagWalkError::Incomplete { cid }, None),
        ] {
            assert_eq!(error.proven_content_defect(), proves, "{error}");
        }
    }

    #[test]
    fn a_symlink_is_not_followed() {
        let mut blocks = BlocksByCid::new();
        let link = add(&mut blocks, &[], &[0x08, 4, 0x12, 1, b'f']);
        let root = add_directory(&mut blocks, &[("l", link)]);
        assert_eq!(cat(root, "l", &blocks), Err(DagWalkError::UnsupportedType(4)));
        assert_eq!(cat(root, "l/x", &blocks), Err(DagWalkError::UnsupportedType(4)));
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

        #[test]
        fn any_file_comes_back(content: Vec<u8>, chunk in 1_usize..20) {
            let mut dag = DagBuilder::default();
            let BuiltDagNode { cid, .. } = dag.add_file(&content, chunk);
            proptest::prop_assert_eq!(cat(cid, "", &dag.into_blocks()), Ok(Bytes::from(content)));
        }

        #[test]
        fn a_hostile_root_never_panics(block: Vec<u8>, at in "[a-z]{0,2}") {
            let mut walk = DagWalk::new(ContentId::from_dag_pb_block(&block), &path(&at), DagWalkBudget::for_agent_card());
            walk.supply_block(Bytes::from(block)).unwrap();
            let _ = walk.finish();
        }
    }
}
