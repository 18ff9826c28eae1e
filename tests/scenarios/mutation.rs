//! Mutating a single byte of the evidence never turns a verdict into `trusted`.
//!
//! The evidence of good and bad agents is complete: records, a served card and blocks. Each test changes one part of
//! it, resolves the result, and compares the state with [`binds`], which specifies for each record which changes are
//! insignificant. For a good agent, the two must agree in both directions, so that an exemption that is too wide fails
//! just like a check that is too weak. A bad agent is never trusted, because no single byte repairs it.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use clresolve_core::digest::Digest;
use clresolve_core::name::EnsName;
use clresolve_core::payment::PaymentRecords;
use clresolve_core::reading::{
    BlockSelector, ChainBlock, ChainError, ClOwnerReading, EnsAnswer, LatestNameState, NameHolder, NameReading,
    ProofGrade, ProofStrength, ResolvedRecords, ResolverContractError,
};
use clresolve_core::records::{TextRecord, TextRecordKey, TextRecordSet};
use clresolve_core::state::TrustState;
use clresolve_ipfs::build::{self, BlocksByCid, DagBuilder, HamtFanout, UnixFsLayout};
use clresolve_ipfs::{ContentId, DagWalk, DagWalkBudget, UnixFsPath};
use clresolve_resolver::fetch::SourceUnavailableError;
use clresolve_verdict::check::{self, JudgementPolicy};
use clresolve_verdict::evidence::{
    self, ClOwnerEvidence, ContentProofSource, HttpsOutcome, IpfsMirrorLocation, IpfsWalkOutcome, RecordUsability,
    ResolutionEvidence,
};
use clresolve_verdict::profile::{ConformanceProfile, ConformanceProfiles, DEFAULT};
use jiff::Timestamp;

/// A card without a defect; its name is `summarizeagent.eth`.
const CARD: &str = include_str!("../../fuzz/src/targets/card.json");
const NAME: &str = "summarizeagent.eth";
const URL: &str = "https://example.org/card.json";

/// The required records, and one that no rule reads at depth `identity`.
const KEYS: [TextRecordKey; 7] = [
    TextRecordKey::Entry,
    TextRecordKey::Agentcard,
    TextRecordKey::CidAgentcard,
    TextRecordKey::MirrorIpfs,
    TextRecordKey::Checksum,
    TextRecordKey::Owner,
    TextRecordKey::Verb,
];

/// All data that nodes, hosts and gateways return about one agent.
#[derive(Clone, Debug)]
struct World {
    records: BTreeMap<TextRecordKey, Vec<u8>>,
    /// The records at the newest block.
    latest: BTreeMap<TextRecordKey, Vec<u8>>,
    /// Served only at [`URL`].
    served: Option<Bytes>,
    blocks: BlocksByCid,
    reading: ReadingBytes,
}

/// The fields of a reading that come from bytes of a node's response.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ReadingBytes {
    answer: AnswerKind,
    number: [u8; 8],
    hash: [u8; 32],
    resolver: [u8; 20],
    holder: [u8; 20],
    /// The holder at the newest block.
    latest_holder: [u8; 20],
    owner: [u8; 20],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerKind {
    Records,
    NoResolver,
    Unregistered,
    Failed,
}

/// How the card is stored in IPFS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Raw,
    Chunks,
    Folder,
    Sharded,
}

const FORMS: [Form; 4] = [Form::Raw, Form::Chunks, Form::Folder, Form::Sharded];

/// The data of an agent that publishes `card` without other defects.
fn world(card: &str, form: Form) -> World {
    let (cid, path, blocks) = store(card, form);
    let below = if path.is_empty() { String::new() } else { format!("/{path}") };
    let member = |name: &str| {
        let document: serde_json::Value = serde_json::from_str(card).expect("JSON");
        document[name].as_str().expect("a text").as_bytes().to_vec()
    };
    let records = BTreeMap::from([
        (TextRecordKey::Entry, member("entry")),
        (TextRecordKey::Agentcard, URL.as_bytes().to_vec()),
        (TextRecordKey::CidAgentcard, cid.to_string().into_bytes()),
        (TextRecordKey::MirrorIpfs, format!("ipfs://{cid}{below}").into_bytes()),
        (TextRecordKey::Checksum, Digest::compute(card.as_bytes()).to_string().into_bytes()),
        (TextRecordKey::Owner, member("owner")),
        (TextRecordKey::Verb, b"summarize".to_vec()),
    ]);
    let reading = ReadingBytes {
        answer: AnswerKind::Records,
        number: 7_u64.to_be_bytes(),
        hash: [3; 32],
        resolver: [2; 20],
        holder: [1; 20],
        latest_holder: [1; 20],
        owner: [1; 20],
    };
    World { latest: records.clone(), records, served: Some(Bytes::copy_from_slice(card.as_bytes())), blocks, reading }
}

fn store(card: &str, form: Form) -> (ContentId, String, BlocksByCid) {
    let path = format!("agents/{NAME}.json");
    let neighbours = (0..4).map(|n| (format!("agents/agent-{n}.json"), Bytes::from(format!("{{\"n\": {n}}}"))));
    let files: BTreeMap<String, Bytes> =
        neighbours.chain([(path.clone(), Bytes::copy_from_slice(card.as_bytes()))]).collect();
    let mut dag = DagBuilder::default();
    match form {
        Form::Raw => (dag.add_raw_block(card.to_owned()).cid, String::new(), dag.into_blocks()),
        Form::Chunks => (dag.add_file(card.as_bytes(), 512).cid, String::new(), dag.into_blocks()),
        Form::Folder => {
            let (cid, blocks) = build::build_directory_tree(&files, UnixFsLayout::default());
            (cid, path, blocks)
        }
        Form::Sharded => {
            let layout = UnixFsLayout { shard_above: 2, fanout: HamtFanout::SMALLEST, chunk: 700 };
            let (cid, blocks) = build::build_directory_tree(&files, layout);
            (cid, path, blocks)
        }
    }
}

/// An agent with a defect that no single byte repairs.
struct Bad {
    what: &'static str,
    world: World,
    /// The data without the defect, if the defect is outside the card. A change may then repair it, such as one byte of
    /// a URL where another card is served.
    mended: Option<World>,
}

impl Bad {
    fn card(what: &'static str, from: &str, to: &str) -> Self {
        assert!(CARD.contains(from), "{from}");
        Self { what, world: world(&CARD.replacen(from, to, 1), Form::Raw), mended: None }
    }

    fn answer(what: &'static str, answer: AnswerKind) -> Self {
        let mut world = world(CARD, Form::Raw);
        world.reading.answer = answer;
        Self { what, world, mended: None }
    }

    fn around(what: &'static str, form: Form, change: impl FnOnce(&mut World)) -> Self {
        let good = world(CARD, form);
        let mut world = good.clone();
        change(&mut world);
        Self { what, world, mended: Some(good) }
    }

    fn record(what: &'static str, key: TextRecordKey, value: &str) -> Self {
        Self::around(what, Form::Folder, |world| {
            world.records.insert(key, value.as_bytes().to_vec());
            world.latest = world.records.clone();
        })
    }
}

/// Agents with one defect each.
fn bad() -> Vec<Bad> {
    let other = CARD.replace("Makes long texts short.", "Another version of this card.");
    let other_raw = ContentId::from_raw_block(other.as_bytes()).to_string();
    let other_digest = Digest::compute(other.as_bytes()).to_string();
    vec![
        Bad::around("another card is served", Form::Folder, |world| world.served = Some(other.into())),
        Bad::around("no gateway has the blocks", Form::Folder, |world| world.blocks.clear()),
        Bad::around("nobody has the card", Form::Raw, |world| {
            world.blocks.clear();
            world.served = None;
        }),
        Bad::around("the checksum is about to change", Form::Raw, |world| {
            world.latest.insert(TextRecordKey::Checksum, other_digest.clone().into_bytes());
        }),
        Bad::record("the checksum is that of another card", TextRecordKey::Checksum, &other_digest),
        Bad::record("the CID is that of another card", TextRecordKey::CidAgentcard, &other_raw),
        Bad::record("the mirror names another card", TextRecordKey::MirrorIpfs, &format!("ipfs://{other_raw}")),
        Bad::record("the entry belongs to another agent", TextRecordKey::Entry, "x402://stranger.eth/summarize/v1"),
        Bad::record("the owner is another one", TextRecordKey::Owner, "stranger.eth"),
        Bad::record("the owner turns the text", TextRecordKey::Owner, "publisher.\u{202e}hte"),
        Bad::record("no checksum is set", TextRecordKey::Checksum, ""),
        Bad::record("no CID is set", TextRecordKey::CidAgentcard, ""),
        Bad::card("the card is another name's", "\"ens\": \"summarizeagent.eth\"", "\"ens\": \"strangeragent.eth\""),
        Bad::card("the card has a foreign member", "\"slug\":", "\"rating\": 5, \"slug\":"),
        Bad::card("the card has a key twice", "\"slug\":", "\"slug\": \"a\", \"slug\":"),
        Bad::card("the card's class is unknown", "\"class\": \"commons\"", "\"class\": \"community\""),
        Bad::card("the card holds a secret", "Makes long", "ghp_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2"),
        Bad::card("the card has no networks", "[\"eip155:1\"]", "[]"),
        Bad::answer("nobody has the name", AnswerKind::Unregistered),
        Bad::answer("the name has no resolver", AnswerKind::NoResolver),
        Bad::answer("the resolver fails", AnswerKind::Failed),
    ]
}

/// The evidence that the library's resolution and parsers gather from this data.
fn gather(world: &World) -> ResolutionEvidence {
    let records = record_set(&world.records);
    let text = |key| RecordUsability::from_record(&records, key).text();
    let https = match (text(TextRecordKey::Agentcard).filter(|url| evidence::is_https_url(url)), &world.served) {
        (None, _) => HttpsOutcome::NotAsked,
        (Some(URL), Some(bytes)) => HttpsOutcome::Body { bytes: bytes.clone(), url: URL.to_owned() },
        (Some(_), _) => HttpsOutcome::Unavailable(SourceUnavailableError::Status(404).into()),
    };
    let cid = text(TextRecordKey::CidAgentcard).and_then(|value| ContentId::parse(value).ok());
    let mirror = text(TextRecordKey::MirrorIpfs).and_then(|value| IpfsMirrorLocation::parse(value).ok());
    let path = mirror.as_ref().map(|mirror| mirror.path.clone()).unwrap_or_default();
    let walked = |cid: Option<ContentId>, path: &UnixFsPath| match cid {
        Some(cid) => walk(cid, path, https.bytes(), &world.blocks).0,
        None => IpfsWalkOutcome::NotAsked,
    };
    let ipfs = walked(cid, &path);
    let mirrored = match mirror.filter(|mirror| cid != Some(mirror.cid)) {
        Some(mirror) => walked(Some(mirror.cid), &mirror.path),
        None => IpfsWalkOutcome::NotAsked,
    };
    let holder = NameHolder::Address(world.reading.holder.into());
    let owner = ClOwnerReading { address: Some(world.reading.owner.into()), holder: NameHolder::Nobody };
    ResolutionEvidence {
        name: EnsName::parse(NAME).expect("a good name"),
        now: Timestamp::UNIX_EPOCH,
        chain_id: 1,
        block: BlockSelector::Finalized,
        reading: reading(world, holder),
        owner: ClOwnerEvidence::Read(owner),
        https,
        ipfs,
        mirror: mirrored,
        liars: Vec::new(),
        schemas: None,
        continuity: clresolve_verdict::evidence::continuity::HistoryOutcome::NotAsked,
        links: None,
        misspelt_keys: Vec::new(),
    }
}

fn reading(world: &World, holder: NameHolder) -> Result<NameReading, ChainError> {
    let bytes = &world.reading;
    let found = |records| {
        EnsAnswer::Records(ResolvedRecords {
            resolver: bytes.resolver.into(),
            wildcard: None,
            offchain: false,
            records,
            payment: PaymentRecords::default(),
        })
    };
    let (answer, latest) = match bytes.answer {
        AnswerKind::Records => (found(record_set(&world.records)), found(record_set(&world.latest))),
        AnswerKind::NoResolver => (EnsAnswer::NoResolver(None), EnsAnswer::NoResolver(None)),
        AnswerKind::Unregistered => (EnsAnswer::Unregistered, EnsAnswer::Unregistered),
        AnswerKind::Failed => return Err(ChainError::Resolver(ResolverContractError::RevertedSilently)),
    };
    Ok(NameReading {
        block: ChainBlock {
            number: u64::from_be_bytes(bytes.number),
            hash: bytes.hash.into(),
            timestamp: Timestamp::UNIX_EPOCH,
        },
        answer,
        latest: Some(Ok(LatestNameState { answer: latest, holder: NameHolder::Address(bytes.latest_holder.into()) })),
        newest: None,
        holder,
        expiry: None,
        proof: ProofStrength { grade: ProofGrade::SingleRpc, asked: 1, agreed: 1, own: true },
        endpoints: vec!["node".to_owned()],
        contradicted_by: Vec::new(),
        failed_endpoints: Vec::new(),
    })
}

fn record_set(records: &BTreeMap<TextRecordKey, Vec<u8>>) -> TextRecordSet {
    let record = |bytes: &[u8]| match String::from_utf8(bytes.to_vec()) {
        Ok(text) if text.is_empty() => TextRecord::Absent,
        Ok(text) => TextRecord::Text(text),
        Err(error) => TextRecord::NotUtf8(error.into_bytes()),
    };
    records.iter().map(|(key, bytes)| (*key, record(bytes))).collect()
}

/// Resolves the path, and returns which blocks came from the gateway.
fn walk(
    cid: ContentId,
    path: &UnixFsPath,
    known: Option<&Bytes>,
    blocks: &BlocksByCid,
) -> (IpfsWalkOutcome, BTreeSet<ContentId>) {
    let mut walk = DagWalk::new(cid, path, DagWalkBudget::for_agent_card());
    let mut taken = BTreeSet::new();
    while let Some(wanted) = walk.wanted_block().copied() {
        if wanted.is_raw() && known.is_some_and(|bytes| walk.supply_block(bytes.clone()).is_ok()) {
            continue;
        }
        let Some(block) = blocks.get(&wanted) else { break };
        if walk.supply_block(block.clone()).is_err() {
            break;
        }
        taken.insert(wanted);
    }
    (IpfsWalkOutcome::from_walk(walk.finish(), ContentProofSource::Gateway, Vec::new()), taken)
}

/// Whether a change to a good agent's data is insignificant: every record keeps its meaning, the newest block has the
/// same records and holder, the host serves the card or nothing, and every block that must come from a gateway is
/// correct.
fn binds(good: &World, changed: &World) -> bool {
    let record =
        |key: &TextRecordKey| says_the_same(*key, &good.records[key], changed.records.get(key).map_or(&[], |v| v));
    let pinned = record_set(&changed.records);
    let served =
        changed.served.as_ref().filter(|_| pinned.text(TextRecordKey::Agentcard).is_some_and(|url| url == URL));
    let cid = ContentId::parse(pinned.text(TextRecordKey::CidAgentcard).unwrap_or_default());
    let mirror = IpfsMirrorLocation::parse(pinned.text(TextRecordKey::MirrorIpfs).unwrap_or_default());
    let (Ok(cid), Ok(mirror)) = (cid, mirror) else { return false };
    let (_, needed) = walk(cid, &mirror.path, served, &good.blocks);
    KEYS.iter().all(record)
        && changed.records == changed.latest
        && changed.reading.holder == changed.reading.latest_holder
        && served.is_none_or(|bytes| Some(bytes) == good.served.as_ref())
        && needed.iter().all(|cid| changed.blocks.get(cid) == good.blocks.get(cid))
}

/// Whether a changed record has the same meaning as the good one.
fn says_the_same(key: TextRecordKey, good: &[u8], changed: &[u8]) -> bool {
    let (Ok(good), Ok(changed)) = (std::str::from_utf8(good), std::str::from_utf8(changed)) else { return false };
    let is_clean = clresolve_core::text::first_unsafe_character(changed).is_none() && changed.trim() == changed;
    is_clean
        && match key {
            // Hex digits in any case, with or without the prefix.
            TextRecordKey::Checksum => changed.parse() == good.parse::<Digest>(),
            // Any multibase, and either CID version.
            TextRecordKey::CidAgentcard => ContentId::parse(changed) == ContentId::parse(good),
            TextRecordKey::MirrorIpfs => IpfsMirrorLocation::parse(changed) == IpfsMirrorLocation::parse(good),
            // The location of a copy, not its identity: any https URL, at which nothing is served.
            TextRecordKey::Agentcard => evidence::is_https_url(changed),
            TextRecordKey::Entry | TextRecordKey::Owner => changed == good,
            // No rule reads the other records at this depth.
            _ => true,
        }
}

/// Only every fifth byte is tested where records differ between two blocks: that rule compares whole records.
const SELDOM: usize = 5;

/// Only every fifteenth byte of a bad agent's card and blocks is tested, with a different offset for each agent.
const OF_BAD: usize = 15;

/// Variants of `world` that differ in one bit of one byte. They cover every byte of the records and the reading, and
/// every `step`-th byte of the card and the blocks.
fn bytes_changed(world: &World, turn: usize, step: usize) -> Vec<(String, World)> {
    let mut changed = Vec::new();
    let mut add = |what: String, bytes: &[u8], step: usize, set: &dyn Fn(&mut World, Vec<u8>)| {
        for at in (turn % step..bytes.len()).step_by(step) {
            let mut copy = bytes.to_vec();
            copy[at] ^= 1 << ((at + turn) % 8);
            let mut next = world.clone();
            set(&mut next, copy);
            changed.push((format!("{what}, byte {at}"), next));
        }
    };
    for (key, value) in &world.records {
        add(format!("{key}"), value, 1, &|next, bytes| {
            next.records.insert(*key, bytes.clone());
            next.latest.insert(*key, bytes);
        });
        add(format!("{key} now only"), value, SELDOM, &|next, bytes| drop(next.records.insert(*key, bytes)));
    }
    for (key, value) in &world.latest {
        add(format!("{key} at latest only"), value, SELDOM, &|next, bytes| drop(next.latest.insert(*key, bytes)));
    }
    if let Some(served) = &world.served {
        add("the served card".to_owned(), served, step, &|next, bytes| next.served = Some(bytes.into()));
    }
    for (cid, block) in &world.blocks {
        add(format!("block {cid}"), block, step, &|next, bytes| drop(next.blocks.insert(*cid, bytes.into())));
    }
    let reading = &world.reading;
    add("the block's number".to_owned(), &reading.number, 1, &|next, bytes| next.reading.number = array(&bytes));
    add("the block's hash".to_owned(), &reading.hash, 1, &|next, bytes| next.reading.hash = array(&bytes));
    add("the resolver".to_owned(), &reading.resolver, 1, &|next, bytes| next.reading.resolver = array(&bytes));
    add("the holder".to_owned(), &reading.holder, 1, &|next, bytes| {
        next.reading.holder = array(&bytes);
        next.reading.latest_holder = array(&bytes);
    });
    add("the holder at latest only".to_owned(), &reading.latest_holder, SELDOM, &|next, bytes| {
        next.reading.latest_holder = array(&bytes);
    });
    add("the owner's address".to_owned(), &reading.owner, 1, &|next, bytes| next.reading.owner = array(&bytes));
    changed
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("a mutation keeps the length")
}

/// Variants of `world` in which a part is removed, truncated or duplicated, or in which two parts are swapped.
fn parts_changed(world: &World) -> Vec<(String, World)> {
    let mut changed = Vec::new();
    let mut add = |what: String, change: &dyn Fn(&mut World)| {
        let mut next = world.clone();
        change(&mut next);
        changed.push((what, next));
    };
    let forms = |bytes: &[u8]| {
        let cuts = (0..bytes.len()).step_by(1 + bytes.len() / 8).map(|end| bytes[..end].to_vec());
        cuts.chain([bytes.repeat(2)]).collect::<Vec<_>>()
    };
    let set = |next: &mut World, key: TextRecordKey, value: Vec<u8>| {
        next.records.insert(key, value.clone());
        next.latest.insert(key, value);
    };
    for (key, value) in &world.records {
        for form in forms(value) {
            add(format!("{key} cut or doubled to {} bytes", form.len()), &|next| set(next, *key, form.clone()));
        }
        for (other, theirs) in world.records.iter().filter(|(other, _)| *other > key) {
            add(format!("{key} has the value of {other}"), &|next| set(next, *key, theirs.clone()));
            add(format!("{key} and {other} swapped"), &|next| {
                set(next, *key, theirs.clone());
                set(next, *other, value.clone());
            });
        }
    }
    if let Some(served) = &world.served {
        for form in forms(served) {
            add(format!("the card cut or doubled to {} bytes", form.len()), &|next| {
                next.served = Some(form.clone().into());
            });
        }
        add("nothing is served".to_owned(), &|next| next.served = None);
    }
    for (cid, block) in &world.blocks {
        add(format!("block {cid} dropped"), &|next| drop(next.blocks.remove(cid)));
        for form in forms(block) {
            add(format!("block {cid} cut or doubled to {} bytes", form.len()), &|next| {
                next.blocks.insert(*cid, form.clone().into());
            });
        }
        for (other, theirs) in world.blocks.iter().filter(|(other, _)| *other > cid) {
            add(format!("blocks {cid} and {other} swapped"), &|next| {
                next.blocks.insert(*cid, theirs.clone());
                next.blocks.insert(*other, block.clone());
            });
        }
    }
    changed
}

/// Runs `problem` on all variants in parallel, and reports the first few problems.
fn check_all(worlds: &[(String, World)], problem: impl Fn(&World, TrustState) -> Option<String> + Sync) {
    let profile = ConformanceProfiles::builtin().get(DEFAULT).expect("built in");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = worlds.len().div_ceil(cores).max(1);
    let of = |worlds: &[(String, World)]| -> Vec<String> {
        let found = |(what, world): &(String, World)| {
            problem(world, state(world, &profile)).map(|problem| format!("{what}: {problem}"))
        };
        worlds.iter().filter_map(found).collect()
    };
    let problems: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = worlds.chunks(share).map(|worlds| scope.spawn(|| of(worlds))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a check does not panic")).collect()
    });
    let shown = problems.iter().take(10).collect::<Vec<_>>();
    assert!(problems.is_empty(), "{} of {} worlds: {shown:#?}", problems.len(), worlds.len());
}

fn state(world: &World, profile: &ConformanceProfile) -> TrustState {
    check::judge_evidence(&gather(world), profile, &JudgementPolicy::default()).state
}

/// A good agent stays trusted exactly if the change is insignificant.
fn hold_good(good: &World, worlds: &[(String, World)]) {
    check_all(worlds, |changed, state| match (state == TrustState::Trusted, binds(good, changed)) {
        (true, false) => Some("trusted, though the evidence says something else".to_owned()),
        (false, true) => Some(format!("{state}, though the evidence says the same")),
        _ => None,
    });
}

#[test]
fn the_agents_are_what_they_are_taken_for() {
    let profile = ConformanceProfiles::builtin().get(DEFAULT).expect("built in");
    for form in FORMS {
        let good = world(CARD, form);
        assert_eq!(state(&good, &profile), TrustState::Trusted, "{form:?}");
        assert!(binds(&good, &good), "{form:?}");
    }
    for Bad { what, world, .. } in bad() {
        assert_ne!(state(&world, &profile), TrustState::Trusted, "{what}");
    }
}

#[test]
fn no_changed_byte_of_a_good_agent_is_trusted_unless_it_means_nothing() {
    // A card in several blocks has mostly the same bytes as a card in one.
    for (turn, (form, step)) in FORMS.into_iter().zip([1, 3, 1, 3]).enumerate() {
        let good = world(CARD, form);
        hold_good(&good, &bytes_changed(&good, turn, step));
    }
}

#[test]
fn every_bit_of_every_record_of_a_good_agent_counts_unless_it_means_nothing() {
    let good = world(CARD, Form::Folder);
    let in_record = |what: &str| what.starts_with("cl.") && !what.contains("only");
    for turn in 0..8 {
        let mut worlds = bytes_changed(&good, turn, usize::MAX);
        worlds.retain(|(what, _)| in_record(what));
        hold_good(&good, &worlds);
    }
}

#[test]
fn no_dropped_cut_doubled_or_swapped_part_of_a_good_agent_is_trusted_unless_it_means_nothing() {
    for form in FORMS {
        let good = world(CARD, form);
        hold_good(&good, &parts_changed(&good));
    }
}

#[test]
fn no_change_makes_a_bad_agent_trusted() {
    for (turn, Bad { what, world, mended }) in bad().into_iter().enumerate() {
        let mut worlds = bytes_changed(&world, turn, OF_BAD);
        worlds.extend(parts_changed(&world));
        check_all(&worlds, |changed, state| {
            let is_mended = || mended.as_ref().is_some_and(|good| binds(good, changed));
            (state == TrustState::Trusted && !is_mended()).then(|| format!("{what}, and still trusted"))
        });
    }
}
