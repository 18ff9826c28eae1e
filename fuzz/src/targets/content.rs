//! CAR files and UnixFS graphs.

use std::collections::BTreeSet;

use bytes::Bytes;
use clresolve_ipfs::build::{self, BlocksByCid};
use clresolve_ipfs::car::{CarError, CarLimits, CarReader, CarSection};
use clresolve_ipfs::{ContentId, DagWalk, DagWalkBudget, DagWalkError, UnixFsPath, VerifiedFile, read_file_from_car};

/// Small enough that an input of a few hundred bytes can reach every bound.
const BUDGET: DagWalkBudget =
    DagWalkBudget { blocks: 24, block_size: 2048, dag_bytes: 16 << 10, total_bytes: 4096, depth: 6, visits: 96 };

const LIMITS: CarLimits = CarLimits { block_size: 1024, bytes: 8 << 10, sections: 32 };

/// A CAR, read at once and in chunks as long as its first byte says: both must give the same sections.
pub(crate) fn car(input: &[u8]) {
    let Some((chunk, car)) = input.split_first() else { return };
    let whole = sections(car, usize::MAX);
    assert_eq!(whole, sections(car, usize::from(*chunk) + 1), "the sections depend on how the CAR was cut");
    assert!(whole.0.len() <= LIMITS.sections);
    let bytes: usize = whole.0.iter().map(|section| section.block.len()).sum();
    assert!(bytes <= car.len().min(LIMITS.bytes), "more bytes came out than went in");
    for root in whole.0.iter().map(|section| section.cid).take(4) {
        let read = read_file_from_car(root, &UnixFsPath::default(), BUDGET, Bytes::copy_from_slice(car));
        if let Ok(proven) = read {
            check_proven(&root, &proven);
        }
    }
}

fn sections(car: &[u8], chunk: usize) -> (Vec<CarSection>, Result<bool, CarError>) {
    let mut reader = CarReader::new(LIMITS);
    let mut sections = Vec::new();
    for part in car.chunks(chunk) {
        reader.push_chunk(Bytes::copy_from_slice(part));
        loop {
            match reader.next_section() {
                Ok(Some(section)) => sections.push(section),
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(reader.next_section(), Err(error), "asked again, the reader says something else");
                    return (sections, Err(error));
                }
            }
        }
    }
    (sections, Ok(reader.is_complete_car()))
}

/// A graph: a path, then the blocks from the leaves up, see [`link`]. The last block is the root.
pub(crate) fn dag(input: &[u8]) {
    let parts = super::pieces(input);
    let Some((path, drafts)) = parts.split_first() else { return };
    let Some(path) = std::str::from_utf8(path).ok().and_then(|path| UnixFsPath::parse(path).ok()) else { return };
    let (order, blocks) = link(drafts);
    let Some(root) = order.last().copied() else { return };

    let read = walk(root, &path, &blocks);
    // In a CAR the blocks may come in any order; what they prove is the same.
    let sent = order.iter().rev().filter_map(|cid| blocks.get_key_value(cid));
    let in_car = read_file_from_car(root, &path, BUDGET, build::write_car(&root, sent).into());
    if let (Ok(one), Ok(other)) = (&read, &in_car) {
        assert_eq!(one, other, "the walk and the CAR prove different files");
    }
    let Ok(proven) = read else { return };
    check_proven(&root, &proven);
    let again = walk(proven.file, &UnixFsPath::default(), &blocks).expect("what was read once can be read again");
    assert_eq!(again.bytes, proven.bytes, "the file is another one without its path");
}

/// Marks the place of a digest in a draft: the number of the block that it names, among those before, comes last.
pub(crate) const BLANK: [u8; 31] = [0; 31];

/// Makes blocks of drafts: wherever a CID with SHA-256 and a blank digest stands, the digest of an earlier block is
/// put. So the fuzzer changes graphs whose hashes are right.
fn link(drafts: &[&[u8]]) -> (Vec<ContentId>, BlocksByCid) {
    let mut order: Vec<ContentId> = Vec::new();
    let mut blocks = BlocksByCid::new();
    for draft in drafts.iter().take(BUDGET.blocks * 2) {
        let mut block = draft.to_vec();
        for at in 0..block.len() {
            let Some(place) = block.get_mut(at..at + 36) else { break };
            let is_blank = matches!(place, [1, 0x55 | 0x70, 0x12, 0x20, rest @ ..] if rest[..31] == BLANK);
            let number = usize::from(place[35]);
            let Some(target) = order.get(number).filter(|_| is_blank) else { continue };
            place[4..].copy_from_slice(&target.to_bytes()[4..]);
        }
        // A parent says by which codec a block is read; the store knows it under both.
        for cid in [ContentId::from_raw_block(&block), ContentId::from_dag_pb_block(&block)] {
            blocks.insert(cid, Bytes::from(block.clone()));
        }
        order.push(ContentId::from_dag_pb_block(&block));
    }
    (order, blocks)
}

fn walk(root: ContentId, path: &UnixFsPath, blocks: &BlocksByCid) -> Result<VerifiedFile, DagWalkError> {
    let mut walk = DagWalk::new(root, path, BUDGET);
    let mut asked = BTreeSet::new();
    while let Some(cid) = walk.wanted_block().copied() {
        assert!(asked.insert(cid), "{cid} was asked for twice");
        assert!(asked.len() <= BUDGET.blocks + 1, "more blocks were asked for than the budget has");
        let wrong = Bytes::from_static(b"these bytes are the content of no block");
        assert!(walk.supply_block(wrong).is_err() && walk.wanted_block() == Some(&cid), "a wrong block was taken");
        let Some(block) = blocks.get(&cid) else { break };
        walk.supply_block(block.clone()).expect("the block has the hash of its CID");
    }
    walk.finish()
}

fn check_proven(root: &ContentId, proven: &VerifiedFile) {
    assert!(proven.bytes.len() <= BUDGET.total_bytes);
    assert!(proven.blocks <= BUDGET.blocks);
    assert!(proven.visits <= BUDGET.visits);
    if proven.file.is_raw() {
        assert!(proven.file.is_cid_of_block(&proven.bytes), "the bytes are not those of {}", proven.file);
    }
    if root.is_raw() {
        assert_eq!(&proven.file, root);
    }
}
