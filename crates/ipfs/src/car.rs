//! CAR: many blocks in one response.
//!
//! Nothing in a CAR is trusted. Its roots and its order are ignored, and a block counts only once a [`DagWalk`] wants
//! it and its hash matches. A complete walk stops reading, so junk or an endless tail after the needed blocks costs
//! nothing.

use std::collections::HashMap;

use bytes::{Buf, Bytes, BytesMut};
use multihash::Multihash;

use super::budget::{DagWalkBudget, DagWalkLimit};
use super::error::DagWalkError;
use super::id::{CidParts, ContentId, MAX_DIGEST_BYTES};
use super::path::UnixFsPath;
use super::protobuf::set_field_once;
use super::varint::{self, VarintError};
use super::walk::{DagWalk, VerifiedFile};

/// Reads the file at `path` below `root` from a complete CAR.
///
/// # Errors
/// The error of the walk; [`DagWalkError::Incomplete`] if the CAR lacks a block.
pub fn read_file_from_car(
    root: ContentId,
    path: &UnixFsPath,
    budget: DagWalkBudget,
    car: Bytes,
) -> Result<VerifiedFile, DagWalkError> {
    let mut walk = DagWalk::new(root, path, budget);
    CarBlockFeed::new(&budget, budget.dag_bytes).push_chunk(&mut walk, car)?;
    walk.finish()
}

/// Parses the chunks of one CAR into blocks for a [`DagWalk`]. Other sources may feed the same walk.
///
/// Blocks that the walk does not want yet are kept, unhashed, while there is room.
#[derive(Debug)]
pub struct CarBlockFeed {
    reader: CarReader,
    waiting: HashMap<Multihash<MAX_DIGEST_BYTES>, Bytes>,
    /// Bytes still available for kept blocks.
    room: usize,
}

/// Whether to continue reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CarFeedProgress {
    /// The walk has taken a block, and the data already read may contain the next one.
    Moved,
    /// The walk wants a block that the data already read does not contain.
    Wanting,
    /// The walk has ended: stop reading and call [`DagWalk::finish`].
    Over,
}

impl CarBlockFeed {
    /// A feed that has read nothing yet, for walks within `budget`. It keeps at most `room` bytes of blocks that are
    /// not wanted yet, and drops further ones. A CAR whose blocks are in walk order needs no room.
    pub fn new(budget: &DagWalkBudget, room: usize) -> Self {
        Self { reader: CarReader::new(CarLimits::from_budget(budget)), waiting: HashMap::new(), room }
    }

    /// Reads the next bytes of the CAR, and supplies the walk with every block in them that it wants.
    ///
    /// # Errors
    /// See [`CarBlockFeed::supply_wanted_block`].
    pub fn push_chunk(&mut self, walk: &mut DagWalk, chunk: Bytes) -> Result<CarFeedProgress, DagWalkError> {
        self.buffer_chunk(chunk);
        loop {
            match self.supply_wanted_block(walk)? {
                CarFeedProgress::Moved => {}
                progress => return Ok(progress),
            }
        }
    }

    /// Reads the next bytes of the CAR. Before reading further bytes, call [`CarBlockFeed::supply_wanted_block`] until
    /// the walk no longer moves.
    pub fn buffer_chunk(&mut self, chunk: Bytes) {
        self.reader.push_chunk(chunk);
    }

    /// Supplies the walk with the block that it wants, from the data already read. One step hashes one block. Another
    /// source may feed the walk between steps.
    ///
    /// # Errors
    /// Only errors caused by this CAR: [`DagWalkError::BadCar`], [`DagWalkError::CarLimit`],
    /// [`DagWalkError::HashMismatch`]. The walk is unchanged.
    pub fn supply_wanted_block(&mut self, walk: &mut DagWalk) -> Result<CarFeedProgress, DagWalkError> {
        let Some(wanted) = walk.wanted_block().map(ContentId::multihash) else { return Ok(CarFeedProgress::Over) };
        let Some(block) = self.take_wanted_block(walk, &wanted)? else { return Ok(CarFeedProgress::Wanting) };
        walk.supply_block(block)?;
        Ok(CarFeedProgress::Moved)
    }

    /// Bytes buffered of an incomplete section.
    pub fn buffered_byte_count(&self) -> usize {
        self.reader.buffer.len()
    }

    /// The block with the hash `wanted`, if it was kept or can be read now.
    fn take_wanted_block(
        &mut self,
        walk: &DagWalk,
        wanted: &Multihash<MAX_DIGEST_BYTES>,
    ) -> Result<Option<Bytes>, CarError> {
        if let Some(kept) = self.waiting.remove(wanted) {
            self.room += kept.len();
            return Ok(Some(kept));
        }
        while let Some(section) = self.reader.next_section()? {
            if section.cid.multihash() == *wanted {
                return Ok(Some(section.block));
            }
            self.keep_block(walk, section);
        }
        Ok(None)
    }

    /// Keeps a block that is not wanted yet, while there is room.
    fn keep_block(&mut self, walk: &DagWalk, CarSection { cid, block }: CarSection) {
        let hash = cid.multihash();
        if walk.has_block(&cid) || self.waiting.contains_key(&hash) || block.len() > self.room {
            return;
        }
        self.room -= block.len();
        self.waiting.insert(hash, block);
    }
}

/// Maximum length of a header in bytes, for about 800 roots. Gateways send one root, in 59 bytes.
const MAX_HEADER_BYTES: usize = 32 << 10;

/// Maximum length of a binary CID: four numbers of at most 9 bytes, and the digest.
const MAX_CID_BYTES: usize = 4 * 9 + MAX_DIGEST_BYTES;

/// Limits for reading a CAR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CarLimits {
    /// Maximum length of a block, in bytes.
    pub block_size: usize,
    /// Maximum total length in bytes: frames, padding and blocks.
    pub bytes: usize,
    /// Maximum number of sections, including skipped ones.
    pub sections: usize,
}

impl CarLimits {
    fn from_budget(budget: &DagWalkBudget) -> Self {
        Self { block_size: budget.block_size, bytes: budget.dag_bytes, sections: budget.visits }
    }
}

/// One block of a CAR. Whether it matches its CID has not been verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarSection {
    /// The CID that the CAR states for the block.
    pub cid: ContentId,
    /// The bytes of the block.
    pub block: Bytes,
}

/// An incremental parser for CARv1, also inside a CARv2: bytes in, sections out.
///
/// A section whose hash function is not on the allow-list is skipped, because no walk can want it.
#[derive(Debug)]
pub struct CarReader {
    limits: CarLimits,
    buffer: BytesMut,
    state: CarParserState,
    bytes: usize,
    sections: usize,
    failure: Option<CarError>,
}

/// The part of the CAR to parse next.
#[derive(Clone, Copy, Debug)]
enum CarParserState {
    Header,
    /// The fixed fields of a CARv2.
    Envelope,
    /// The bytes before the CARv1 inside a CARv2, and the length of that CARv1.
    Padding {
        left: usize,
        payload: usize,
    },
    /// The header of a CARv1 inside a CARv2.
    InnerHeader {
        payload: usize,
    },
    /// Sections, to the end of the input or for the given number of bytes.
    Sections {
        left: Option<usize>,
    },
}

impl CarReader {
    /// A parser without input.
    pub fn new(limits: CarLimits) -> Self {
        Self { limits, buffer: BytesMut::new(), state: CarParserState::Header, bytes: 0, sections: 0, failure: None }
    }

    /// Appends the next bytes. Before the next push, call [`CarReader::next_section`] until it returns `None`.
    ///
    /// Bytes after an error or after the end of the envelope are dropped.
    pub fn push_chunk(&mut self, chunk: Bytes) {
        if self.failure.is_some() || matches!(self.state, CarParserState::Sections { left: Some(0) }) {
            return;
        }
        if self.buffer.is_empty() {
            self.buffer = BytesMut::from(chunk);
        } else {
            self.buffer.extend_from_slice(&chunk);
        }
    }

    /// The next section; `None` if more bytes are needed.
    ///
    /// # Errors
    /// What is wrong with the CAR. Later calls return the same error.
    pub fn next_section(&mut self) -> Result<Option<CarSection>, CarError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let section = self.read_next_section();
        self.failure = section.as_ref().err().copied();
        section
    }

    /// Whether the input so far is a complete CAR, which ends between two sections.
    pub fn is_complete_car(&self) -> bool {
        match self.state {
            CarParserState::Sections { left: Some(left) } => left == 0,
            CarParserState::Sections { left: None } => self.buffer.is_empty(),
            _ => false,
        }
    }

    fn read_next_section(&mut self) -> Result<Option<CarSection>, CarError> {
        loop {
            let moved = match self.state {
                CarParserState::Header => self.read_header()?,
                CarParserState::Envelope => self.read_v2_envelope()?,
                CarParserState::Padding { left, payload } => self.skip_padding(left, payload)?,
                CarParserState::InnerHeader { payload } => self.read_inner_header(payload)?,
                CarParserState::Sections { left: Some(0) } => return Ok(None),
                CarParserState::Sections { left } => match self.read_section(left)? {
                    CarReadOutcome::Section(section) => return Ok(Some(section)),
                    CarReadOutcome::Skipped => true,
                    CarReadOutcome::Nothing => false,
                },
            };
            if !moved {
                return Ok(None);
            }
        }
    }

    fn read_header(&mut self) -> Result<bool, CarError> {
        let Some(header) = self.read_frame(MAX_HEADER_BYTES, DagWalkLimit::CarHeader, usize::MAX)? else {
            return Ok(false);
        };
        self.state = match parse_header_version(&header).map_err(CarError::Malformed)? {
            1 => CarParserState::Sections { left: None },
            2 => CarParserState::Envelope,
            _ => return Err(CarError::Malformed("the version is neither 1 nor 2")),
        };
        Ok(true)
    }

    /// Parses the fixed fields of a CARv2: 16 bytes of characteristics, then offset and size of the CARv1, and offset
    /// of the index.
    fn read_v2_envelope(&mut self) -> Result<bool, CarError> {
        const BYTES: usize = 40;
        if self.buffer.len() < BYTES {
            return Ok(false);
        }
        let mut fields = self.buffer.split_to(BYTES).freeze();
        self.charge_bytes(BYTES)?;
        fields.advance(16);
        let offset = usize::try_from(fields.get_u64_le()).map_err(|_| CarError::Limit(DagWalkLimit::DagBytes))?;
        let payload = usize::try_from(fields.get_u64_le()).map_err(|_| CarError::Limit(DagWalkLimit::DagBytes))?;
        let left =
            offset.checked_sub(self.bytes).ok_or(CarError::Malformed("the CARv1 begins inside the CARv2 header"))?;
        if left > self.limits.bytes {
            return Err(CarError::Limit(DagWalkLimit::DagBytes));
        }
        self.state = CarParserState::Padding { left, payload };
        Ok(true)
    }

    fn skip_padding(&mut self, left: usize, payload: usize) -> Result<bool, CarError> {
        let skipped = left.min(self.buffer.len());
        self.charge_bytes(skipped)?;
        self.buffer.advance(skipped);
        self.state = CarParserState::Padding { left: left - skipped, payload };
        if left > skipped {
            return Ok(false);
        }
        self.state = CarParserState::InnerHeader { payload };
        Ok(true)
    }

    fn read_inner_header(&mut self, payload: usize) -> Result<bool, CarError> {
        let before = self.bytes;
        let Some(header) = self.read_frame(MAX_HEADER_BYTES, DagWalkLimit::CarHeader, payload)? else {
            return Ok(false);
        };
        if parse_header_version(&header).map_err(CarError::Malformed)? != 1 {
            return Err(CarError::Malformed("the payload of a CARv2 is not a CARv1"));
        }
        self.state = CarParserState::Sections { left: Some(payload - (self.bytes - before)) };
        Ok(true)
    }

    fn read_section(&mut self, left: Option<usize>) -> Result<CarReadOutcome, CarError> {
        let before = self.bytes;
        let longest = self.limits.block_size.saturating_add(MAX_CID_BYTES);
        let Some(section) = self.read_frame(longest, DagWalkLimit::BlockSize, left.unwrap_or(usize::MAX))? else {
            return Ok(CarReadOutcome::Nothing);
        };
        self.state = CarParserState::Sections { left: left.map(|left| left - (self.bytes - before)) };
        self.sections += 1;
        if self.sections > self.limits.sections {
            return Err(CarError::Limit(DagWalkLimit::Visits));
        }
        let (parts, block) = CidParts::parse_prefix(&section).map_err(CarError::Malformed)?;
        if parts.has_oversized_digest() {
            return Err(CarError::Malformed("the digest of a section is too long"));
        }
        if block.len() > self.limits.block_size {
            return Err(CarError::Limit(DagWalkLimit::BlockSize));
        }
        Ok(match parts.into_content_id() {
            Ok(cid) => CarReadOutcome::Section(CarSection { cid, block: section.slice_ref(block) }),
            Err(_) => CarReadOutcome::Skipped,
        })
    }

    /// Takes a length and that many bytes; `None` until all of them have arrived. `room` is the number of bytes left in
    /// the envelope.
    fn read_frame(&mut self, longest: usize, bound: DagWalkLimit, room: usize) -> Result<Option<Bytes>, CarError> {
        let (length, rest) = match varint::split_varint(&self.buffer) {
            Ok(split) => split,
            Err(VarintError::Truncated) => return Ok(None),
            Err(VarintError::Invalid) => return Err(CarError::Malformed("a length is padded or too large")),
        };
        if length == 0 {
            return Err(CarError::Malformed("a section is empty"));
        }
        if length > longest as u64 {
            return Err(CarError::Limit(bound));
        }
        let prefix = self.buffer.len() - rest.len();
        let length = length as usize;
        if prefix + length > room {
            return Err(CarError::Malformed("a section runs past the end of the CARv1"));
        }
        if rest.len() < length {
            return Ok(None);
        }
        self.charge_bytes(prefix + length)?;
        self.buffer.advance(prefix);
        Ok(Some(self.buffer.split_to(length).freeze()))
    }

    fn charge_bytes(&mut self, more: usize) -> Result<(), CarError> {
        self.bytes = self.bytes.saturating_add(more);
        if self.bytes > self.limits.bytes && !mutant!("endless-car") {
            Err(CarError::Limit(DagWalkLimit::DagBytes))
        } else {
            Ok(())
        }
    }
}

enum CarReadOutcome {
    Nothing,
    Section(CarSection),
    Skipped,
}

/// What is wrong with a CAR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CarError {
    /// The CAR exceeds [`CarLimits`].
    #[error("the CAR exceeds the limit on {0}")]
    Limit(DagWalkLimit),
    /// The data is not a CAR.
    #[error("not a CAR: {0}")]
    Malformed(&'static str),
}

impl From<CarError> for DagWalkError {
    fn from(error: CarError) -> Self {
        match error {
            CarError::Limit(bound) => Self::CarLimit(bound),
            CarError::Malformed(why) => Self::BadCar(why),
        }
    }
}

/// The version in a header. A header is a DAG-CBOR map of `roots` and `version`.
fn parse_header_version(header: &[u8]) -> Result<u64, &'static str> {
    let mut cbor = CborParser { rest: header };
    let mut roots = None;
    let mut version = None;
    for _ in 0..cbor.read_argument(CborParser::MAP)? {
        let key_length = cbor.read_argument(CborParser::TEXT)?;
        match cbor.take_bytes(key_length)? {
            b"roots" => set_field_once(&mut roots, cbor.skip_links()?)?,
            b"version" => set_field_once(&mut version, cbor.read_argument(CborParser::NUMBER)?)?,
            _ => return Err("the header has an unknown field"),
        }
    }
    if !cbor.rest.is_empty() {
        return Err("bytes follow the header");
    }
    version.ok_or("the header has no version")
}

/// A parser for the part of CBOR that CAR headers use.
struct CborParser<'a> {
    rest: &'a [u8],
}

impl<'a> CborParser<'a> {
    const NUMBER: u8 = 0;
    const BYTES: u8 = 2;
    const TEXT: u8 = 3;
    const LIST: u8 = 4;
    const MAP: u8 = 5;
    const TAG: u8 = 6;
    /// The CBOR tag of a CID.
    const LINK: u64 = 42;

    fn skip_links(&mut self) -> Result<(), &'static str> {
        // Each iteration consumes at least two bytes of the header or fails, so a false length does no harm.
        for _ in 0..self.read_argument(Self::LIST)? {
            if self.read_argument(Self::TAG)? != Self::LINK {
                return Err("a root is not a CID");
            }
            let length = self.read_argument(Self::BYTES)?;
            self.take_bytes(length)?;
        }
        Ok(())
    }

    /// The argument of the next item, whose major type must be `kind`.
    fn read_argument(&mut self, kind: u8) -> Result<u64, &'static str> {
        let first = self.take_bytes(1)?[0];
        if first >> 5 != kind {
            return Err("the header is not a map of roots and version");
        }
        let width = match first & 0x1f {
            small @ 0..=23 => return Ok(u64::from(small)),
            wide @ 24..=27 => 1 << (wide - 24),
            _ => return Err("a length in the header is indefinite"),
        };
        Ok(self.take_bytes(width)?.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    fn take_bytes(&mut self, length: u64) -> Result<&'a [u8], &'static str> {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let (taken, rest) = self.rest.split_at_checked(length).ok_or("the header is cut short")?;
        self.rest = rest;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::build::{BlocksByCid, UnixFsLayout, build_directory_tree, write_car};

    const PATH: &str = "agents/card.json";

    fn sample() -> (ContentId, BlocksByCid) {
        let files = BTreeMap::from([
            (PATH.to_owned(), Bytes::from("{\"name\": \"summarizeagent.eth\"}".repeat(20))),
            ("agents/other.json".to_owned(), Bytes::from("[]")),
        ]);
        build_directory_tree(&files, UnixFsLayout { chunk: 100, ..UnixFsLayout::default() })
    }

    fn start(root: ContentId) -> (DagWalk, CarBlockFeed) {
        let budget = DagWalkBudget::for_agent_card();
        (DagWalk::new(root, &UnixFsPath::parse(PATH).unwrap(), budget), CarBlockFeed::new(&budget, budget.dag_bytes))
    }

    fn cat(root: ContentId, car: Vec<u8>) -> Result<Bytes, DagWalkError> {
        let path = UnixFsPath::parse(PATH).unwrap();
        read_file_from_car(root, &path, DagWalkBudget::for_agent_card(), Bytes::from(car)).map(|proven| proven.bytes)
    }

    fn reader() -> CarReader {
        CarReader::new(CarLimits { block_size: 100, bytes: 1000, sections: 3 })
    }

    fn read(car: &[u8]) -> Result<Option<CarSection>, CarError> {
        let mut reader = reader();
        reader.push_chunk(Bytes::copy_from_slice(car));
        reader.next_section()
    }

    /// A CAR without blocks.
    fn header() -> Vec<u8> {
        write_car(&ContentId::from_raw_block(b""), [])
    }

    fn in_version_2(car: &[u8], padding: usize) -> Vec<u8> {
        let mut outer = b"\x0a\xa1\x67version\x02".to_vec();
        outer.extend([0; 16]);
        outer.extend((51 + padding as u64).to_le_bytes());
        outer.extend((car.len() as u64).to_le_bytes());
        outer.extend([0; 8]);
        outer.extend(vec![0; padding]);
        outer.extend(car);
        outer
    }

    #[test]
    fn chunks_of_any_size_give_the_same() {
        let (root, blocks) = sample();
        let whole = write_car(&root, &blocks);
        let expected = cat(root, whole.clone()).unwrap();
        for form in [whole.clone(), in_version_2(&whole, 0), in_version_2(&whole, 7)] {
            for size in [1, 2, 7, 64, 10_000] {
                let (mut walk, mut feed) = start(root);
                let pushed: Vec<_> = form
                    .chunks(size)
                    .map(|chunk| feed.push_chunk(&mut walk, Bytes::copy_from_slice(chunk)).unwrap())
                    .collect();
                assert_eq!(pushed.last(), Some(&CarFeedProgress::Over));
                assert_eq!(walk.finish().unwrap().bytes, expected);
            }
        }
    }

    #[test]
    fn a_step_gives_the_walk_one_block() {
        let (root, blocks) = sample();
        let (mut walk, mut feed) = start(root);
        feed.buffer_chunk(Bytes::from(write_car(&root, &blocks)));
        for count in 1..blocks.len() {
            assert_eq!((feed.supply_wanted_block(&mut walk), walk.block_count()), (Ok(CarFeedProgress::Moved), count));
        }
        assert_eq!(feed.supply_wanted_block(&mut walk), Ok(CarFeedProgress::Over), "the other file is not wanted");
    }

    #[test]
    fn reading_stops_when_the_walk_is_complete() {
        let (root, blocks) = sample();
        let mut long = write_car(&root, &blocks);
        long.extend([0xff; 100]);
        let (mut walk, mut feed) = start(root);
        assert_eq!(feed.push_chunk(&mut walk, Bytes::from(long)), Ok(CarFeedProgress::Over));
        assert_eq!(feed.push_chunk(&mut walk, Bytes::from(vec![0xff; 100])), Ok(CarFeedProgress::Over));
        assert!(walk.finish().is_ok());
    }

    #[test]
    fn a_cut_anywhere_is_incomplete_and_never_other_bytes() {
        let (root, blocks) = sample();
        let whole = write_car(&root, &blocks);
        let expected = cat(root, whole.clone()).unwrap();
        for end in 0..whole.len() {
            match cat(root, whole[..end].to_vec()) {
                Ok(bytes) => assert_eq!(bytes, expected),
                Err(error) => assert_eq!(error.error_class_name(), "incomplete", "cut at {end}"),
            }
        }
    }

    #[test]
    fn a_walk_goes_on_where_a_car_ended() {
        let (root, blocks) = sample();
        let mut whole = write_car(&root, [(&root, &blocks[&root])]);
        whole.extend([0xff; 10]);
        let (mut walk, mut feed) = start(root);
        assert_eq!(
            feed.push_chunk(&mut walk, Bytes::from(whole)),
            Err(DagWalkError::BadCar("a length is padded or too large"))
        );
        assert!(walk.has_block(&root));
        while let Some(cid) = walk.wanted_block().copied() {
            walk.supply_block(blocks[&cid].clone()).unwrap();
        }
        assert!(walk.finish().is_ok());
    }

    #[test]
    fn a_wrong_block_counts_only_when_it_is_wanted() {
        let (root, blocks) = sample();
        let leaf = ContentId::from_raw_block(b"[]");
        let mut lies = blocks.clone();
        lies.insert(leaf, Bytes::from("{}"));
        assert!(cat(root, write_car(&root, &lies)).is_ok());
        lies.insert(root, Bytes::from("{}"));
        assert_eq!(cat(root, write_car(&root, &lies)), Err(DagWalkError::HashMismatch { cid: Box::new(root) }));
    }

    #[test]
    fn an_endless_car_reaches_a_bound() {
        let (root, _) = sample();
        let (mut walk, mut feed) = start(root);
        let mut outcome = feed.push_chunk(&mut walk, Bytes::from(header()));
        let block = vec![0; 1 << 20];
        let cid = ContentId::from_raw_block(&block);
        let section = Bytes::from(write_car(&root, [(&cid, &Bytes::from(block))]).split_off(header().len()));
        let mut pushes = 0;
        while outcome == Ok(CarFeedProgress::Wanting) {
            outcome = feed.push_chunk(&mut walk, section.clone());
            pushes += 1;
        }
        assert_eq!(outcome, Err(DagWalkError::CarLimit(DagWalkLimit::DagBytes)));
        assert!(pushes <= 9, "{pushes}");
    }

    #[test]
    fn sections_are_bounded_in_number_and_size() {
        let block = |size: usize| {
            let block = Bytes::from(vec![0; size]);
            (ContentId::from_raw_block(&block), block)
        };
        let write =
            |blocks: &[(ContentId, Bytes)]| write_car(&blocks[0].0, blocks.iter().map(|(cid, block)| (cid, block)));
        assert!(read(&write(&[block(100)])).unwrap().is_some());
        assert_eq!(read(&write(&[block(101)])), Err(CarError::Limit(DagWalkLimit::BlockSize)));
        let mut reader = reader();
        reader.push_chunk(Bytes::from(write(&[block(1), block(2), block(3), block(4)])));
        for _ in 0..3 {
            assert!(reader.next_section().unwrap().is_some());
        }
        assert_eq!(reader.next_section(), Err(CarError::Limit(DagWalkLimit::Visits)));
        assert_eq!(reader.next_section(), Err(CarError::Limit(DagWalkLimit::Visits)));
    }

    #[test]
    fn claims_are_judged_before_the_bytes_come() {
        let huge = [header(), vec![0x80, 0x80, 0x80, 0x80, 0x80, 0x20]].concat();
        assert_eq!(read(&huge), Err(CarError::Limit(DagWalkLimit::BlockSize)));
        assert_eq!(read(&[0x80, 0x80, 0x80, 0x80, 0x04]), Err(CarError::Limit(DagWalkLimit::CarHeader)));
        let mut far = in_version_2(&header(), 0);
        far[27..35].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(read(&far), Err(CarError::Limit(DagWalkLimit::DagBytes)));
        far[27..35].copy_from_slice(&50_u64.to_le_bytes());
        assert_eq!(read(&far), Err(CarError::Malformed("the CARv1 begins inside the CARv2 header")));
    }

    #[test]
    fn an_envelope_ends_where_it_says() {
        let (root, blocks) = sample();
        let mut inner = in_version_2(&write_car(&root, &blocks), 0);
        inner.extend([0xff; 20]);
        let mut reader = CarReader::new(CarLimits { block_size: 1000, bytes: 100_000, sections: 100 });
        reader.push_chunk(Bytes::from(inner.clone()));
        assert_eq!(std::iter::from_fn(|| reader.next_section().unwrap()).count(), blocks.len());
        assert!(reader.is_complete_car());
        inner[35] -= 1;
        let mut reader = CarReader::new(CarLimits { block_size: 1000, bytes: 100_000, sections: 100 });
        reader.push_chunk(Bytes::from(inner));
        let error = std::iter::repeat_with(|| reader.next_section()).find_map(Result::err);
        assert_eq!(error, Some(CarError::Malformed("a section runs past the end of the CARv1")));
    }

    #[test]
    fn what_is_no_car_is_told() {
        for (bytes, why) in [
            (
                &b"<!DOCTYPE html><html><head><title>504 Gateway Time-out</title></head>"[..],
                "the header is not a map of roots and version",
            ),
            (b"\x00", "a section is empty"),
            (b"\x01\xa0", "the header has no version"),
            (b"\x0a\xa1\x67version\x03", "the version is neither 1 nor 2"),
            (b"\x0b\xa1\x67version\x01\x00", "bytes follow the header"),
            (b"\x13\xa2\x67version\x01\x67version\x01", "a field occurs twice"),
            (b"\x04\xa1\x61x\x01", "the header has an unknown field"),
            (b"\x01\xbf", "a length in the header is indefinite"),
            (b"\x02\xa1\x67", "the header is cut short"),
            (b"\x08\xa1\x65roots\x9b", "the header is cut short"),
        ] {
            assert_eq!(read(bytes), Err(CarError::Malformed(why)), "{bytes:?}");
        }
    }

    #[test]
    fn sections_of_forbidden_hashes_are_passed_over() {
        let leaf = (ContentId::from_raw_block(b"x"), Bytes::from("x"));
        let mut mixed = header();
        mixed.extend([26, 0x01, 0x55, 0x11, 0x14]);
        mixed.extend([7; 22]);
        let good = write_car(&leaf.0, [(&leaf.0, &leaf.1)]);
        mixed.extend(&good[good.len() - 38..]);
        assert_eq!(read(&mixed), Ok(Some(CarSection { cid: leaf.0, block: leaf.1 })));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes: Vec<u8>, after_header: bool) {
            let mut reader = reader();
            if after_header {
                reader.push_chunk(Bytes::from(header()));
            }
            reader.push_chunk(Bytes::from(bytes));
            while let Ok(Some(_)) = reader.next_section() {}
        }

        #[test]
        fn a_changed_byte_never_gives_other_bytes(index: proptest::sample::Index, change in 1_u8..) {
            let (root, blocks) = sample();
            let mut changed = write_car(&root, &blocks);
            let expected = cat(root, changed.clone()).unwrap();
            let index = index.index(changed.len());
            changed[index] ^= change;
            if let Ok(bytes) = cat(root, changed) {
                proptest::prop_assert_eq!(bytes, expected);
            }
        }
    }
}
