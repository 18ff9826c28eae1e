//! Builds UnixFS graphs and CARs with SHA-256 and balanced files, as common importers do. An import profile sets the
//! rest.
//!
//! A [`DagWalk`](super::DagWalk) can read everything that is built here. The input comes from this program's own user,
//! who publishes it, so it has no budgets.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::hamt::{HASH_MURMUR3_X64_64, HamtHashPath, prefix_width};
use super::{ContentId, varint};

/// Blocks by their CID.
pub type BlocksByCid = BTreeMap<ContentId, Bytes>;

/// Maximum number of links of a file node. Importers have used this number since 2014.
const FILE_WIDTH: usize = 174;

/// The layout of files and directories that [`build_directory_tree`] builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnixFsLayout {
    /// Chunk size of a file in bytes; 0 counts as 1.
    pub chunk: usize,
    /// A directory with more entries than this is sharded.
    pub shard_above: usize,
    /// Buckets of a shard.
    pub fanout: HamtFanout,
}

/// Chunks of 1 MiB, as in the UnixFS profile of 2025, and no sharding.
impl Default for UnixFsLayout {
    fn default() -> Self {
        Self { chunk: IpfsImportProfile::UnixfsV1.chunk_size(), shard_above: usize::MAX, fanout: HamtFanout::DEFAULT }
    }
}

/// The number of buckets of a shard: a power of two from 8 to 1024.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HamtFanout(u64);

impl HamtFanout {
    /// The fanout that all importers use.
    pub const DEFAULT: Self = Self(256);
    /// The smallest fanout, with which a few entries already need nested shards.
    pub const SMALLEST: Self = Self(8);

    /// A fanout that readers accept; `None` for any other number of buckets.
    pub fn new(buckets: u64) -> Option<Self> {
        (buckets.is_power_of_two() && (8..=1024).contains(&buckets)).then_some(Self(buckets))
    }
}

/// Builds a directory tree from files by path. Paths are names joined by `/`.
///
/// A path that is both a file and a directory becomes a directory. Names are not checked.
pub fn build_directory_tree(files: &BTreeMap<String, Bytes>, layout: UnixFsLayout) -> (ContentId, BlocksByCid) {
    let mut dag = DagBuilder::default();
    let paths = files.iter().map(|(path, bytes)| (path.as_str(), bytes)).collect();
    let root = dag.add_subtree(paths, layout);
    (root.cid, dag.into_blocks())
}

/// How importers turn files into blocks (IPIP-499).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IpfsImportProfile {
    /// `unixfs-v1-2025`: CIDv1, raw leaves, chunks of 1 MiB.
    #[default]
    UnixfsV1,
    /// `unixfs-v0-2015`: CIDv0, leaves in dag-pb, chunks of 256 KiB.
    UnixfsV0,
}

impl IpfsImportProfile {
    /// Every profile.
    pub const ALL: [Self; 2] = [Self::UnixfsV1, Self::UnixfsV0];

    /// The profile's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnixfsV1 => "unixfs-v1-2025",
            Self::UnixfsV0 => "unixfs-v0-2015",
        }
    }

    /// Chunk size of a file in bytes.
    pub const fn chunk_size(self) -> usize {
        match self {
            Self::UnixfsV1 => 1 << 20,
            Self::UnixfsV0 => 256 << 10,
        }
    }
}

/// A built node, with the values that a link to it states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuiltDagNode {
    /// The node's CID.
    pub cid: ContentId,
    /// Bytes of all blocks from this node down, for Tsize.
    tsize: u64,
    /// Bytes of the file; 0 for a directory.
    file_size: u64,
}

/// Entries of a directory, by name.
pub type DirectoryEntries = BTreeMap<String, BuiltDagNode>;

/// A set of blocks under construction.
#[derive(Clone, Debug, Default)]
pub struct DagBuilder {
    blocks: BlocksByCid,
    profile: IpfsImportProfile,
}

impl DagBuilder {
    /// An empty set, whose nodes will follow an import profile.
    pub fn with_profile(profile: IpfsImportProfile) -> Self {
        Self { blocks: BlocksByCid::new(), profile }
    }

    /// Adds a raw block.
    pub fn add_raw_block(&mut self, bytes: impl Into<Bytes>) -> BuiltDagNode {
        let bytes = bytes.into();
        let cid = ContentId::from_raw_block(&bytes);
        let size = bytes.len() as u64;
        self.blocks.insert(cid, bytes);
        BuiltDagNode { cid, tsize: size, file_size: size }
    }

    /// Adds a file in chunks of `chunk` bytes: a single leaf if one is enough, otherwise a balanced tree over leaves.
    pub fn add_file(&mut self, bytes: &[u8], chunk: usize) -> BuiltDagNode {
        let mut level: Vec<BuiltDagNode> = bytes.chunks(chunk.max(1)).map(|part| self.add_leaf(part)).collect();
        if level.is_empty() {
            return self.add_leaf(b"");
        }
        while level.len() > 1 {
            level = level.chunks(FILE_WIDTH).map(|children| self.add_file_node(children)).collect();
        }
        level[0]
    }

    fn add_leaf(&mut self, bytes: &[u8]) -> BuiltDagNode {
        if self.profile == IpfsImportProfile::UnixfsV1 {
            return self.add_raw_block(Bytes::copy_from_slice(bytes));
        }
        let file_size = bytes.len() as u64;
        let mut data = ProtobufWriter::default().with_varint_field(UNIXFS_TYPE, TYPE_FILE);
        if !bytes.is_empty() {
            data = data.with_bytes_field(UNIXFS_DATA, bytes);
        }
        BuiltDagNode { file_size, ..self.add_dag_pb_node(&[], data.with_varint_field(UNIXFS_FILE_SIZE, file_size)) }
    }

    fn add_file_node(&mut self, children: &[BuiltDagNode]) -> BuiltDagNode {
        let file_size = children.iter().map(|child| child.file_size).sum();
        let mut data = ProtobufWriter::default()
            .with_varint_field(UNIXFS_TYPE, TYPE_FILE)
            .with_varint_field(UNIXFS_FILE_SIZE, file_size);
        for child in children {
            data = data.with_varint_field(UNIXFS_BLOCK_SIZE, child.file_size);
        }
        let links: Vec<_> = children.iter().map(|child| (String::new(), *child)).collect();
        BuiltDagNode { file_size, ..self.add_dag_pb_node(&links, data) }
    }

    /// Adds a plain directory.
    pub fn add_directory(&mut self, entries: &DirectoryEntries) -> BuiltDagNode {
        let links: Vec<_> = entries.iter().map(|(name, entry)| (name.clone(), *entry)).collect();
        self.add_dag_pb_node(&links, ProtobufWriter::default().with_varint_field(UNIXFS_TYPE, TYPE_DIRECTORY))
    }

    /// Adds a sharded directory.
    ///
    /// # Panics
    /// If two names have the same 64-bit hash.
    pub fn add_hamt_directory(&mut self, entries: &DirectoryEntries, fanout: HamtFanout) -> BuiltDagNode {
        let hashed =
            entries.iter().map(|(name, entry)| (HamtHashPath::from_name(name), name.as_str(), *entry)).collect();
        self.add_shard(hashed, fanout.0)
    }

    fn add_shard(&mut self, entries: Vec<(HamtHashPath, &str, BuiltDagNode)>, fanout: u64) -> BuiltDagNode {
        let mut buckets: BTreeMap<u64, Vec<(HamtHashPath, &str, BuiltDagNode)>> = BTreeMap::new();
        for (mut path, name, entry) in entries {
            let index = path.next_index(fanout).expect("no two names of a sample have the same 64-bit hash");
            buckets.entry(index).or_default().push((path, name, entry));
        }
        let bitfield = encode_bitfield(buckets.keys().copied(), fanout);
        let width = prefix_width(fanout);
        let links: Vec<_> = buckets
            .into_iter()
            .map(|(index, bucket)| match bucket[..] {
                [(_, name, entry)] => (format!("{index:0width$X}{name}"), entry),
                _ => (format!("{index:0width$X}"), self.add_shard(bucket, fanout)),
            })
            .collect();
        let data = ProtobufWriter::default()
            .with_varint_field(UNIXFS_TYPE, TYPE_HAMT_SHARD)
            .with_bytes_field(UNIXFS_DATA, &bitfield)
            .with_varint_field(UNIXFS_HASH_TYPE, HASH_MURMUR3_X64_64)
            .with_varint_field(UNIXFS_FANOUT, fanout);
        self.add_dag_pb_node(&links, data)
    }

    fn add_dag_pb_node(&mut self, links: &[(String, BuiltDagNode)], data: ProtobufWriter) -> BuiltDagNode {
        let mut node = ProtobufWriter::default();
        for (name, child) in links {
            let link = ProtobufWriter::default()
                .with_bytes_field(LINK_HASH, &child.cid.to_bytes())
                .with_bytes_field(LINK_NAME, name.as_bytes())
                .with_varint_field(LINK_TSIZE, child.tsize);
            node = node.with_bytes_field(NODE_LINKS, &link.0);
        }
        let block = node.with_bytes_field(NODE_DATA, &data.0).0;
        let cid = match self.profile {
            IpfsImportProfile::UnixfsV1 => ContentId::from_dag_pb_block(&block),
            IpfsImportProfile::UnixfsV0 => ContentId::from_dag_pb_block_v0(&block),
        };
        let tsize = block.len() as u64 + links.iter().map(|(_, child)| child.tsize).sum::<u64>();
        self.blocks.insert(cid, Bytes::from(block));
        BuiltDagNode { cid, tsize, file_size: 0 }
    }

    fn add_subtree(&mut self, files: Vec<(&str, &Bytes)>, layout: UnixFsLayout) -> BuiltDagNode {
        let mut entries = DirectoryEntries::new();
        let mut inner: BTreeMap<&str, Vec<(&str, &Bytes)>> = BTreeMap::new();
        for (path, bytes) in files {
            match path.split_once('/') {
                Some((name, rest)) => inner.entry(name).or_default().push((rest, bytes)),
                None => {
                    entries.insert(path.to_owned(), self.add_file(bytes, layout.chunk));
                }
            }
        }
        for (name, files) in inner {
            let built = self.add_subtree(files, layout);
            entries.insert(name.to_owned(), built);
        }
        if entries.len() > layout.shard_above {
            self.add_hamt_directory(&entries, layout.fanout)
        } else {
            self.add_directory(&entries)
        }
    }

    /// All blocks built so far.
    pub fn into_blocks(self) -> BlocksByCid {
        self.blocks
    }
}

/// Writes a CARv1 with one root.
pub fn write_car<'a>(root: &ContentId, blocks: impl IntoIterator<Item = (&'a ContentId, &'a Bytes)>) -> Vec<u8> {
    let mut header = b"\xa2\x65roots\x81\xd8\x2a".to_vec();
    let cid = root.to_bytes();
    // A byte string of up to 255 bytes. Inside tag 42, a zero byte precedes the CID.
    header.extend([0x58, u8::try_from(cid.len() + 1).expect("a CID has at most 164 bytes"), 0]);
    header.extend(cid);
    header.extend(b"\x67version\x01");

    let mut car = Vec::new();
    write_length_prefixed(&[&header], &mut car);
    for (cid, block) in blocks {
        write_length_prefixed(&[&cid.to_bytes(), block], &mut car);
    }
    car
}

fn write_length_prefixed(parts: &[&[u8]], out: &mut Vec<u8>) {
    varint::write_varint(parts.iter().map(|part| part.len() as u64).sum(), out);
    for part in parts {
        out.extend_from_slice(part);
    }
}

/// The set of `indices` as a bit field: a big-endian number without leading zero bytes.
fn encode_bitfield(indices: impl Iterator<Item = u64>, fanout: u64) -> Vec<u8> {
    let mut bytes = vec![0; fanout as usize / 8];
    let last = bytes.len() - 1;
    for index in indices {
        bytes[last - index as usize / 8] |= 1 << (index % 8);
    }
    bytes.into_iter().skip_while(|byte| *byte == 0).collect()
}

const NODE_DATA: u64 = 1;
const NODE_LINKS: u64 = 2;
const LINK_HASH: u64 = 1;
const LINK_NAME: u64 = 2;
const LINK_TSIZE: u64 = 3;
const UNIXFS_TYPE: u64 = 1;
const UNIXFS_DATA: u64 = 2;
const UNIXFS_FILE_SIZE: u64 = 3;
const UNIXFS_BLOCK_SIZE: u64 = 4;
const UNIXFS_HASH_TYPE: u64 = 5;
const UNIXFS_FANOUT: u64 = 6;
const TYPE_DIRECTORY: u64 = 1;
const TYPE_FILE: u64 = 2;
const TYPE_HAMT_SHARD: u64 = 5;

/// A protobuf message under construction.
#[derive(Default)]
struct ProtobufWriter(Vec<u8>);

impl ProtobufWriter {
    fn with_varint_field(mut self, field: u64, value: u64) -> Self {
        varint::write_varint(field << 3, &mut self.0);
        varint::write_varint(value, &mut self.0);
        self
    }

    fn with_bytes_field(mut self, field: u64, value: &[u8]) -> Self {
        varint::write_varint(field << 3 | 2, &mut self.0);
        write_length_prefixed(&[value], &mut self.0);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DagWalkBudget, UnixFsPath, read_file_from_car};

    #[test]
    fn empty_directories_and_files_have_their_well_known_cids() {
        let mut dag = DagBuilder::default();
        let directory = dag.add_directory(&DirectoryEntries::new()).cid;
        assert_eq!(directory.to_string(), "bafybeiczsscdsbs7ffqz55asqdf3smv6klcw3gofszvwlyarci47bgf354");
        let file = dag.add_file(b"", 10).cid;
        assert_eq!(file.to_string(), "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku");
    }

    #[test]
    fn the_profile_of_2015_makes_the_cids_that_everybody_knows() {
        let mut dag = DagBuilder::with_profile(IpfsImportProfile::UnixfsV0);
        let chunk = IpfsImportProfile::UnixfsV0.chunk_size();
        assert_eq!(
            dag.add_directory(&DirectoryEntries::new()).cid.to_string(),
            "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn"
        );
        assert_eq!(dag.add_file(b"", chunk).cid.to_string(), "QmbFMke1KXqnYyBBWxB74N4c5SBnJMVAiMNRcGu6x1AwQH");
        let file = dag.add_file(b"hello world\n", chunk);
        assert_eq!(file.cid.to_string(), "QmT78zSuBmuS4z925WZfrqQ1qHaJ56DQaTfyMUF7F8ff5o");
        let long = dag.add_file(&vec![7; chunk + 1], chunk);
        let root = dag.add_directory(&DirectoryEntries::from([("a".to_owned(), file), ("b".to_owned(), long)]));
        let blocks = dag.into_blocks();
        let car = Bytes::from(write_car(&root.cid, &blocks));
        let path = UnixFsPath::parse_literal("b").unwrap();
        assert_eq!(
            read_file_from_car(root.cid, &path, DagWalkBudget::for_cat_command(), car).unwrap().bytes,
            vec![7; chunk + 1]
        );
    }

    #[test]
    fn a_file_is_as_deep_as_it_must_be() {
        let mut dag = DagBuilder::default();
        let content: Vec<u8> = (0..=u8::MAX).cycle().take(FILE_WIDTH * FILE_WIDTH + 1).collect();
        let root = dag.add_file(&content, 1);
        assert_eq!(root.file_size, content.len() as u64);
        let blocks = dag.into_blocks();
        let car = Bytes::from(write_car(&root.cid, &blocks));
        let proven =
            read_file_from_car(root.cid, &UnixFsPath::default(), DagWalkBudget::for_cat_command(), car).unwrap();
        assert_eq!(proven.bytes, content);
    }

    #[test]
    fn a_bitfield_has_no_leading_zeros() {
        assert_eq!(encode_bitfield([0].into_iter(), 256), [1]);
        assert_eq!(encode_bitfield([9, 8].into_iter(), 256), [3, 0]);
        assert!(encode_bitfield([].into_iter(), 8).is_empty());
    }

    #[test]
    fn only_readable_fanouts_exist() {
        assert_eq!(HamtFanout::new(256), Some(HamtFanout::DEFAULT));
        assert!([0, 1, 4, 100, 2048].into_iter().all(|buckets| HamtFanout::new(buckets).is_none()));
    }

    fn name() -> impl proptest::strategy::Strategy<Value = String> {
        proptest::strategy::Strategy::prop_filter("[a-zé€%. ]{1,6}(/[a-z]{1,2}){0,2}", "a path", |name| {
            UnixFsPath::parse_literal(name).is_ok()
        })
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]

        #[test]
        fn any_tree_walks_back(
            files in proptest::collection::btree_map(name(), proptest::collection::vec(0_u8.., 0..60), 1..20),
            chunk in 1_usize..70,
            shard_above in 0_usize..4,
            bits in 3_u32..=10,
        ) {
            let files: BTreeMap<_, _> = files.into_iter().map(|(path, bytes)| (path, Bytes::from(bytes))).collect();
            let fanout = HamtFanout::new(1 << bits).unwrap();
            let (root, blocks) = build_directory_tree(&files, UnixFsLayout { chunk, shard_above, fanout });
            let car = Bytes::from(write_car(&root, &blocks));
            for (path, bytes) in &files {
                let is_directory = files.keys().any(|other| other.starts_with(&format!("{path}/")));
                let outcome = read_file_from_car(root, &UnixFsPath::parse_literal(path).unwrap(), DagWalkBudget::for_agent_card(), car.clone());
                match outcome {
                    Ok(proven) => proptest::prop_assert_eq!(&proven.bytes, bytes),
                    Err(error) => proptest::prop_assert!(is_directory, "{}: {}", path, error),
                }
            }
        }
    }
}
