//! The IPFS corpus: real CARs of other projects, and cases made to break readers.
//!
//! Needs the corpus folder in `CLRESOLVE_CORPUS`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use clresolve_ipfs::build::{self, BlocksByCid};
use clresolve_ipfs::car::{CarLimits, CarReader, CarSection};
use clresolve_ipfs::{
    CidError, ContentId, DagWalk, DagWalkBudget, DagWalkError, UnixFsPath, VerifiedFile, read_file_from_car,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::Digest;

use crate::support::corpus::corpus;

/// Upstream CARs whose roots our builder makes again. The others are CIDv0 or have several chunks, symlinks, modes,
/// other codecs or missing blocks.
const REBUILT: &[&str] = &[
    "boxo/dir-special-chars.car",
    "boxo/ipns-hostname-redirects.car",
    "boxo/redirects-query-params.car",
    "gateway-conformance/dir_listing--fixtures.car",
    "gateway-conformance/gateway-cache--fixtures.car",
    "gateway-conformance/gateway-raw-block.car",
    "gateway-conformance/path_gateway_dag--dag-pb.car",
    "gateway-conformance/path_gateway_dag--gateway-json-cbor.car",
    "gateway-conformance/path_gateway_tar--fixtures.car",
    "gateway-conformance/path_gateway_unixfs--dir-with-percent-encoded-filename.car",
    "gateway-conformance/redirects_file--redirects-spa.car",
    "gateway-conformance/trustless_gateway_car--subdir-with-two-single-block-files.car",
    "kubo/TestGatewayHAMTDirectory.car",
    "service-worker-gateway/bafybeicvjyaiqmgfe7wupl72gpf7cadwyjqf7nzsxrap6npgrgtd3d6m4y.car",
];

#[test]
fn cid_vectors() {
    #[derive(Deserialize)]
    struct Vector {
        r#in: String,
        ok: Option<bool>,
        version: Option<u64>,
        codec: Option<u64>,
        hash: Option<u64>,
        digest: Option<String>,
        canonical: Option<String>,
        as_v1: Option<String>,
    }

    let Some(corpus) = corpus("ipfs") else { return };
    let vectors: Vec<Vector> = json(&corpus.join("cid-vectors.json"));
    assert_eq!(vectors.len(), 90);
    let mut forbidden = 0;
    for vector in vectors {
        let text = &vector.r#in;
        match (vector.ok, ContentId::parse(text)) {
            (Some(false), Err(CidError::Malformed(_))) | (None, Err(CidError::Malformed(_))) => {}
            (Some(true), Err(CidError::HashForbidden(_))) => {
                let digest = vector.digest.unwrap_or_default().len() / 2;
                assert!(matches!((vector.hash, digest), (Some(0x11), 20) | (Some(0x12), 0..32)), "{text}");
                forbidden += 1;
            }
            (Some(true) | None, Ok(cid)) => {
                assert_eq!(Some(cid.codec()), vector.codec, "{text}");
                assert_eq!(Some(cid.to_string()), vector.canonical, "{text}");
                assert_eq!(Some(cid.to_v1().to_string()), vector.as_v1, "{text}");
                assert_eq!(Some(cid.to_string().starts_with("Qm")), vector.version.map(|version| version == 0));
                assert_eq!(ContentId::from_bytes(&cid.to_bytes()).as_ref(), Ok(&cid), "{text}");
                assert!(hex(&cid.to_bytes()).ends_with(&vector.digest.unwrap_or_default()), "{text}");
            }
            (expected, got) => panic!("{text:?}: expected ok = {expected:?}, got {got:?}"),
        }
    }
    assert_eq!(forbidden, 3);
}

#[derive(Deserialize)]
struct Case {
    name: String,
    car: String,
    root: String,
    path: String,
    expect: Expect,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Expect {
    Any { any: Vec<Verdict> },
    One(Verdict),
}

#[derive(Deserialize, Debug)]
struct Verdict {
    ok: bool,
    size: Option<usize>,
    sha256: Option<String>,
    error: Option<String>,
}

impl Verdict {
    fn allows(&self, outcome: &Result<VerifiedFile, DagWalkError>) -> bool {
        match outcome {
            Ok(proven) => {
                self.ok && self.size == Some(proven.bytes.len()) && self.sha256 == Some(sha256(&proven.bytes))
            }
            Err(error) => !self.ok && self.error.as_deref() == Some(error.error_class_name()),
        }
    }
}

#[test]
fn generated_cases() {
    let Some(corpus) = corpus("ipfs") else { return };
    let cases: Vec<Case> = json(&corpus.join("generated/cases.json"));
    assert_eq!(cases.len(), 103);
    let mut wrong = Vec::new();
    for case in cases {
        let car = read(&corpus.join("generated").join(&case.car));
        for budget in [DagWalkBudget::for_agent_card(), DagWalkBudget::for_cat_command()] {
            let outcome = cat(&case.root, &case.path, budget, &car);
            let allowed = match &case.expect {
                Expect::Any { any } => any.iter().any(|verdict| verdict.allows(&outcome)),
                Expect::One(verdict) => verdict.allows(&outcome),
            };
            if !allowed {
                wrong.push(format!("{}: {:?}", case.name, outcome.map(|proven| proven.bytes.len())));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Every byte of a small CAR, changed in turn, gives the same bytes or an error, never other bytes.
#[test]
fn generated_cars_with_one_byte_changed() {
    const LARGEST: usize = 1500;
    let Some(corpus) = corpus("ipfs") else { return };
    let cases: Vec<Case> = json(&corpus.join("generated/cases.json"));
    let mut tried = 0;
    for case in cases.iter().filter(|case| matches!(case.expect, Expect::One(Verdict { ok: true, .. }))) {
        let car = read(&corpus.join("generated").join(&case.car));
        if car.len() > LARGEST {
            continue;
        }
        let honest = cat(&case.root, &case.path, DagWalkBudget::for_agent_card(), &car).unwrap().bytes;
        for index in 0..car.len() {
            let mut changed = car.to_vec();
            changed[index] ^= 1 << (index % 8);
            if let Ok(proven) = cat(&case.root, &case.path, DagWalkBudget::for_agent_card(), &Bytes::from(changed)) {
                assert_eq!(proven.bytes, honest, "{}, byte {index}", case.name);
            }
            tried += 1;
        }
    }
    assert!(tried > 1000, "{tried}");
}

#[derive(Deserialize)]
struct Expected {
    car: String,
    #[serde(default)]
    blocks: Vec<ExpectedBlock>,
    #[serde(rename = "blockCount")]
    block_count: usize,
    #[serde(rename = "carError")]
    car_error: Option<serde_json::Value>,
    trees: Vec<Tree>,
}

#[derive(Deserialize)]
struct ExpectedBlock {
    cid: String,
    size: usize,
    ok: Option<bool>,
}

#[derive(Deserialize)]
struct Tree {
    root: String,
    #[serde(default)]
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    path: String,
    cid: String,
    r#type: String,
    size: Option<usize>,
    sha256: Option<String>,
}

#[test]
fn upstream_cars_hold_the_expected_blocks() {
    let Some(corpus) = corpus("ipfs") else { return };
    let (mut cars, mut skipped) = (0, 0);
    for (name, expected, car) in upstream(&corpus) {
        let (sections, whole) = sections(&car);
        assert_eq!(whole, expected.car_error.is_none(), "{name}");
        cars += 1;
        let forbidden = expected.blocks.iter().filter(|block| ContentId::parse(&block.cid).is_err()).count();
        assert_eq!(sections.len() + forbidden, expected.block_count, "{name}");
        skipped += forbidden;
        let allowed = expected.blocks.iter().filter(|block| ContentId::parse(&block.cid).is_ok());
        for (section, block) in sections.iter().zip(allowed) {
            assert_eq!(section.cid, cid(&block.cid), "{name}");
            assert_eq!(section.block.len(), block.size, "{name}");
            // Without a verdict, the tool behind the expectation did not know the hash function.
            assert_eq!(section.cid.is_cid_of_block(&section.block), block.ok.unwrap_or(true), "{name}: {}", block.cid);
        }
    }
    assert_eq!((cars, skipped), (76, 1));
}

#[test]
fn upstream_cars_give_the_expected_files() {
    let Some(corpus) = corpus("ipfs") else { return };
    let mut seen = BTreeMap::<&str, usize>::new();
    for (name, expected, car) in upstream(&corpus) {
        let blocks = blocks_of(&car);
        for tree in &expected.trees {
            for entry in &tree.entries {
                let outcome = cat_blocks(&tree.root, &entry.path, &blocks);
                *seen.entry(check_entry(&format!("{name}: {}", entry.path), entry, outcome)).or_default() += 1;
            }
        }
    }
    let expected = [
        ("bad-path", 2),
        ("bad-unixfs", 1),
        ("directory", 121),
        ("file", 3091),
        ("incomplete", 1),
        ("object", 4),
        ("symlink", 2),
    ];
    assert_eq!(seen, BTreeMap::from(expected));
}

/// What an entry of an expected tree came to. Whatever is not as expected has to have a name here.
fn check_entry(label: &str, entry: &Entry, outcome: Result<VerifiedFile, DagWalkError>) -> &'static str {
    match (entry.r#type.as_str(), &entry.sha256, outcome) {
        ("file", Some(digest), Ok(proven)) => {
            assert_eq!(proven.file, cid(&entry.cid), "{label}");
            assert_eq!(Some(proven.bytes.len()), entry.size, "{label}");
            assert_eq!(sha256(&proven.bytes), *digest, "{label}");
            "file"
        }
        ("directory", _, Err(DagWalkError::IsADirectory)) => "directory",
        // The reader behind the expectations shows some symlinks as empty files.
        ("symlink", _, Err(DagWalkError::UnsupportedType(4))) => "symlink",
        ("file", Some(_), Err(DagWalkError::UnsupportedType(4))) if entry.size == Some(0) => "symlink",
        ("object", _, Err(DagWalkError::UnsupportedCodec(_))) => "object",
        ("file", None, Err(DagWalkError::Incomplete { .. })) => "incomplete",
        // Two CARs have directories with names such as `../foo`, which we refuse whole.
        (_, _, Err(error @ DagWalkError::BadPath(_))) if entry.path.contains("..") => error.error_class_name(),
        (_, _, Err(error @ DagWalkError::BadUnixfs { .. })) if label.contains("outside-root") => {
            error.error_class_name()
        }
        (_, _, outcome) => panic!("{label}: {:?}", outcome.map(|proven| proven.bytes.len())),
    }
}

/// Our builder agrees with the importers: the same files give the same root.
#[test]
fn upstream_trees_can_be_rebuilt() {
    let Some(corpus) = corpus("ipfs") else { return };
    let mut rebuilt = Vec::new();
    for (name, expected, car) in upstream(&corpus) {
        let blocks = blocks_of(&car);
        for tree in &expected.trees {
            let Some(files) = files_of(tree, &blocks).filter(|files| !files.is_empty()) else { continue };
            for layout in layouts() {
                let (root, blocks) = build::build_directory_tree(&files, layout);
                if Ok(root) == ContentId::parse(&tree.root) {
                    rebuilt.push(name.clone());
                    let again = Bytes::from(build::write_car(&root, &blocks));
                    assert_eq!(sections(&again).0.len(), blocks.len(), "{name}");
                }
            }
        }
    }
    rebuilt.dedup();
    assert_eq!(rebuilt, REBUILT);
}

fn layouts() -> [build::UnixFsLayout; 3] {
    let default = build::UnixFsLayout::default();
    [default, build::UnixFsLayout { chunk: 256 << 10, ..default }, build::UnixFsLayout { shard_above: 0, ..default }]
}

fn files_of(tree: &Tree, blocks: &BlocksByCid) -> Option<BTreeMap<String, Bytes>> {
    let files = tree.entries.iter().filter(|entry| entry.r#type == "file" && !entry.path.is_empty());
    files.map(|entry| Some((entry.path.clone(), cat_blocks(&tree.root, &entry.path, blocks).ok()?.bytes))).collect()
}

#[test]
fn dag_pb_fixtures() {
    #[derive(Deserialize)]
    struct Negative {
        name: String,
        hex: String,
    }

    let Some(corpus) = corpus("ipfs") else { return };
    let mut good = 0;
    for folder in folders(&corpus.join("dagpb")) {
        for file in folders(&folder) {
            let Some(name) = file.file_name().and_then(|name| name.to_str()?.strip_suffix(".dag-pb")) else { continue };
            let outcome = read_one_block(cid(name), read(&file));
            assert!(!matches!(outcome, Err(DagWalkError::BadDagPb { .. })), "{}: {outcome:?}", file.display());
            good += 1;
        }
    }
    assert_eq!(good, 17);

    let negatives: Vec<Negative> = json(&corpus.join("dagpb-negative/edges.json"));
    assert_eq!(negatives.len(), 9);
    for negative in negatives {
        let block = unhex(&negative.hex);
        let outcome = read_one_block(ContentId::from_dag_pb_block(&block), Bytes::from(block));
        assert!(matches!(outcome, Err(DagWalkError::BadDagPb { .. })), "{}: {outcome:?}", negative.name);
    }
}

fn read_one_block(root: ContentId, block: Bytes) -> Result<VerifiedFile, DagWalkError> {
    let mut walk = DagWalk::new(root, &UnixFsPath::default(), DagWalkBudget::for_agent_card());
    walk.supply_block(block)?;
    walk.finish()
}

fn cat(root: &str, path: &str, budget: DagWalkBudget, car: &Bytes) -> Result<VerifiedFile, DagWalkError> {
    read_file_from_car(cid(root), &UnixFsPath::parse_literal(path)?, budget, car.clone())
}

/// As [`for_cat_command`], block by block.
fn cat_blocks(root: &str, path: &str, blocks: &BlocksByCid) -> Result<VerifiedFile, DagWalkError> {
    let mut walk = DagWalk::new(cid(root), &UnixFsPath::parse_literal(path)?, DagWalkBudget::for_cat_command());
    while let Some(block) = walk.wanted_block().and_then(|cid| blocks.get(cid)) {
        walk.supply_block(block.clone())?;
    }
    walk.finish()
}

fn blocks_of(car: &Bytes) -> BlocksByCid {
    sections(car).0.into_iter().map(|section| (section.cid, section.block)).collect()
}

fn sections(car: &Bytes) -> (Vec<CarSection>, bool) {
    let mut reader = CarReader::new(CarLimits { block_size: 2 << 20, bytes: 64 << 20, sections: 1 << 16 });
    let mut sections = Vec::new();
    // In small pieces, as a network gives them.
    for chunk in car.chunks(1000) {
        reader.push_chunk(Bytes::copy_from_slice(chunk));
        loop {
            match reader.next_section() {
                Ok(Some(section)) => sections.push(section),
                Ok(None) => break,
                Err(_) => return (sections, false),
            }
        }
    }
    let whole = reader.is_complete_car();
    (sections, whole)
}

fn upstream(corpus: &Path) -> Vec<(String, Expected, Bytes)> {
    let mut found = Vec::new();
    for source in folders(&corpus.join("expected")) {
        for file in folders(&source) {
            let expected: Expected = json(&file);
            let source = source.file_name().and_then(|name| name.to_str()).expect("folder names are ASCII");
            let car = read(&corpus.join("cars").join(source).join(&expected.car));
            found.push((format!("{source}/{}", expected.car), expected, car));
        }
    }
    found
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

fn read(file: &Path) -> Bytes {
    Bytes::from(fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display())))
}

fn json<T: DeserializeOwned>(file: &Path) -> T {
    serde_json::from_slice(&read(file)).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn cid(text: &str) -> ContentId {
    ContentId::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn sha256(bytes: &[u8]) -> String {
    hex(&sha2::Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}
