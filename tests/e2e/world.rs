//! The world of the tests: who is registered, what is served, and how the binary is pointed at it.

use std::env;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::{Map, Value, json};
use tempfile::{NamedTempFile, TempDir};

use crate::agents::{AGENTS, Agent, Variant};
use crate::binary::Exit;
use crate::cards::{Card, documented, published, records, renamed};
use crate::service::{Service, install};
use crate::support::corpus::corpus;

const CARD_HOST: &str = "commandlayer.org";
/// Where the origins serve the cards as last released beside those of their own world.
const NEXT_RELEASE: &str = "/next";
const CCIP_HOST: &str = "ccip.example";
/// Where the line 1.1.0 binds its schemas. The test world has none of those pages.
const SCHEMA_HOST_1_1_0: &str = "github.com";

/// Holder of `commandlayer.eth` and its agents.
pub(crate) const PUBLISHER: &str = "0x00000000000000000000000000000000000000c1";
/// Holder of something else.
pub(crate) const STRANGER: &str = "0x00000000000000000000000000000000000000f1";

/// Enough entries that a HAMT of fan-out 256 has shards below its root.
const HAMT_FILLERS: usize = 600;
const LARGE_FILE: &str = "large.bin";
/// Spans several blocks: the importer cuts at 1 MiB.
const LARGE_FILE_WORDS: u32 = 600_000;

/// Everything that runs.
pub(crate) struct World {
    /// The cards as last released, and the names whose records the publisher documents, with those.
    pub(crate) released: Net,
    /// The cards one commit earlier, and the agents of [`AGENTS`].
    pub entry_v1: Net,
    /// The cards of the line 1.1.0 as hosted; `verifyagent.eth`, which has none, with its released one.
    pub(crate) hosted: Net,
    /// One agent of the cards one commit earlier, on a chain of its own that a test may change.
    pub(crate) changing: Net,
    /// All agents of the cards one commit earlier, on a chain of its own whose changes a test audits.
    pub(crate) audited: Net,
    /// One agent of the cards one commit earlier, on a chain of its own with a registry of agents.
    pub(crate) paid: Net,
    /// The records that bind the first agent of `audited` to its card as last released.
    pub(crate) next_records: Value,
    /// Files that the gateway holds in directories of all shapes.
    pub(crate) contents: Vec<Content>,
    _gateway: Service,
}

/// A chain and an origin, and all that the binary needs to know to ask them.
pub(crate) struct Net {
    /// EIP-155 chain id.
    pub(crate) chain_id: u64,
    /// The published cards.
    pub(crate) cards: Vec<Card>,
    /// The names of the registry, sorted: those of the cards, and those with documented records.
    pub(crate) names: Vec<String>,
    chain: Service,
    origin: Service,
    gateway: String,
    trust_root: String,
}

/// A file that the gateway holds.
pub(crate) struct Content {
    /// `CID/PATH`.
    pub(crate) target: String,
    /// Its bytes.
    pub(crate) bytes: Vec<u8>,
}

/// The world, or `None` where it cannot be had and need not be.
pub(crate) fn world() -> Option<&'static World> {
    static WORLD: LazyLock<Option<World>> = LazyLock::new(|| {
        let corpus = corpus("commandlayer")?;
        match install() {
            Ok(()) => Some(World::start(&corpus)),
            Err(cause) if env::var("CI").as_deref() == Ok("true") => panic!("{cause}"),
            Err(cause) => {
                println!("skipped: {cause}");
                None
            }
        }
    });
    WORLD.as_ref()
}

impl World {
    fn start(corpus: &Path) -> Self {
        // The services read what they need when they start, so the folder may go when they run.
        let scratch = TempDir::new().expect("a temporary folder");
        let tls = Tls::write(scratch.path());
        let released = Release::read(corpus.join("agent-cards"), "1.0.0");
        let entry_v1 = Release::read(corpus.join("agent-cards-v1.0.0-entry-v1"), "1.0.0");
        let hosted = Release::read(corpus.join("agent-cards-v1.1.0/website/agent-cards"), "1.1.0");
        let model_name = "summarizeagent.eth";
        let model = find(&entry_v1.cards, model_name);
        let own = OwnFiles::write(scratch.path(), model);

        let folders = [&own.plain, &released.folder, &entry_v1.folder, &hosted.folder].map(|folder| text(folder));
        let gateway = Service::start("gateway.mjs", &[&["--hamt", text(&own.hamt)], &folders[..]].concat());
        let [hamt, plain, released_cid, entry_v1_cid, hosted_cid] = [0, 1, 2, 3, 4].map(|i| cid_of(&gateway, i));
        let contents = vec![
            Content::read(&own.hamt, &hamt, "commons/hamtagent.eth.json"),
            Content::read(&own.plain, &plain, "commons/stranger.eth.json"),
            Content::read(&own.plain, &plain, LARGE_FILE),
            Content::read(&entry_v1.folder, &entry_v1_cid, &model.path),
        ];

        let documented = documented(&corpus.join("txt-record-sets"));
        let documented = documented.into_iter().map(|(name, texts)| (name, held_by_publisher(texts)));
        let verify = find(&released.cards, "verifyagent.eth");
        let mut hosted_zone = hosted.zone(&hosted_cid);
        hosted_zone.extend([released.entry(verify, &released_cid)]);
        let mut released_zone = released.zone(&released_cid);
        released_zone.extend(documented);
        let entry_v1_zone = entry_v1.zone(&entry_v1_cid);
        let agents = AGENTS.iter().filter_map(|agent| agent_entry(agent, model, &hamt, &plain)).collect();

        let schemas =
            ["protocol-commons", "protocol-commercial"].map(|layer| corpus.join(layer).join("schemas/v1.0.0"));
        let schemas = schemas.each_ref().map(|folder| ("/schemas/v1.0.0", folder.as_path()));
        let cards = |release: &Release| ("/agent-cards", release.folder.clone());
        let released_cards = cards(&released);
        let next_card = &released.cards[0];
        let next_url = format!("https://{CARD_HOST}{NEXT_RELEASE}/{}", next_card.path);
        let next_records = records(&next_card.bytes, &next_url, &released_cid, &next_card.path);
        let start = |chain_id, release: Release, zone, others| {
            let (prefix, folder) = cards(&release);
            // Later mounts win: the origin goes on serving the released cards beside newer ones.
            let released = &*released_cards.1;
            let mounts =
                [("/agent-cards", released), (NEXT_RELEASE, released), (prefix, &folder), ("/own", &own.origin)];
            Net::start(chain_id, release, zone, others, &[&mounts[..], &schemas].concat(), &tls, &gateway)
        };
        let alone = |chain_id| {
            let alone = Release::read(corpus.join("agent-cards-v1.0.0-entry-v1"), "1.0.0");
            let zone = [model_name, "classifyagent.eth"];
            let zone = zone.map(|name| alone.entry(find(&alone.cards, name), &entry_v1_cid)).into_iter().collect();
            start(chain_id, alone, zone, Map::new())
        };
        let [changing, paid] = [1338, 1340].map(alone);
        let again = Release::read(corpus.join("agent-cards-v1.0.0-entry-v1"), "1.0.0");
        let again_zone = again.zone(&entry_v1_cid);
        let audited = start(1339, again, again_zone, Map::new());
        let hosted = start(2, hosted, hosted_zone, Map::new());
        let entry_v1 = start(1337, entry_v1, entry_v1_zone, agents);
        let released = start(1, released, released_zone, Map::new());
        Self { released, entry_v1, hosted, changing, audited, paid, next_records, contents, _gateway: gateway }
    }
}

impl Net {
    fn start(
        chain_id: u64,
        release: Release,
        registry: Map<String, Value>,
        others: Map<String, Value>,
        mounts: &[(&str, &Path)],
        tls: &Tls,
        gateway: &Service,
    ) -> Self {
        let mut names: Vec<String> = registry.keys().cloned().collect();
        names.sort();
        let publisher = json!({"owner": PUBLISHER, "addr": PUBLISHER, "resolver": "public"});
        let mut zone = registry;
        zone.extend([("commandlayer.eth".to_owned(), publisher)]);
        zone.extend(others);
        let mut zone_file = NamedTempFile::new().expect("a temporary file");
        zone_file.write_all(Value::Object(zone).to_string().as_bytes()).expect("a temporary file takes bytes");
        let identity = ["--cert", text(&tls.certificate), "--key", text(&tls.key)];
        let id = chain_id.to_string();
        let world = ["--zone", text(zone_file.path()), "--chain-id", &id, "--ccip-host", CCIP_HOST];
        let mounts: Vec<String> = mounts.iter().map(|(prefix, folder)| format!("{prefix}={}", text(folder))).collect();
        let mounts: Vec<&str> = mounts.iter().map(String::as_str).collect();
        Self {
            chain_id,
            names,
            cards: release.cards,
            chain: Service::start("chain.mjs", &[&world[..], &identity].concat()),
            origin: Service::start("origin.mjs", &[&identity[..], &mounts].concat()),
            gateway: gateway.ready["url"].as_str().expect("a URL").to_owned(),
            trust_root: tls.trust_root.clone(),
        }
    }

    /// The published card of `name`.
    pub(crate) fn card(&self, name: &str) -> &Card {
        find(&self.cards, name)
    }

    /// URL of the chain's node.
    pub(crate) fn rpc(&self) -> &str {
        self.chain.ready["rpc"].as_str().expect("a URL")
    }

    /// Number of the finalized block.
    pub(crate) fn finalized_block(&self) -> u64 {
        self.chain.ready["finalized"].as_u64().expect("a block number")
    }

    /// Exit code and verdicts of one run.
    pub(crate) fn verify(&self, profile: &str, names: &[&str]) -> (Exit, Vec<Value>) {
        self.verify_with(&[], profile, names)
    }

    /// The same with further flags.
    pub(crate) fn verify_with(&self, flags: &[&str], profile: &str, names: &[&str]) -> (Exit, Vec<Value>) {
        let output = self.run(&[&["-o", "json", "--profile", profile], flags, names].concat());
        let verdicts = match serde_json::from_slice(&output.stdout) {
            Ok(Value::Array(verdicts)) => verdicts,
            Ok(verdict @ Value::Object(_)) => vec![verdict],
            _ => panic!("{names:?}: no JSON: {output:?}"),
        };
        (output.status.code().into(), verdicts)
    }

    /// Runs the binary in this world.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let trust_root = self.trust_root();
        let mut command = self.command(trust_root.path());
        command.args(arguments).args(["--rpc", self.rpc()]).output().expect("the binary runs")
    }

    /// A file with the authority of this world.
    pub(crate) fn trust_root(&self) -> NamedTempFile {
        let mut trust_root = NamedTempFile::new().expect("a temporary file");
        trust_root.write_all(self.trust_root.as_bytes()).expect("a temporary file takes bytes");
        trust_root
    }

    /// The binary in this world, but for the chain's node and what it is to do. It reads the file of the authority.
    pub(crate) fn command(&self, trust_root: &Path) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clresolve"));
        command
            .env_clear()
            .args(["--chain-id", &self.chain_id.to_string()])
            .args(["--gateway", &self.gateway])
            .args(["--connect-to", &detour(CARD_HOST, &self.origin.ready["port"])])
            .args(["--connect-to", &detour(SCHEMA_HOST_1_1_0, &self.origin.ready["port"])])
            .args(["--connect-to", &detour(CCIP_HOST, &self.chain.ready["ccip"]["port"])])
            .args(["--ca", text(trust_root)])
            .args(["--timeout", "60s"]);
        command
    }
}

impl Content {
    fn read(folder: &Path, cid: &str, path: &str) -> Self {
        let bytes = fs::read(folder.join(path)).expect("the gateway has read it too");
        Self { target: format!("{cid}/{path}"), bytes }
    }
}

/// Cards as they were published together.
struct Release {
    folder: PathBuf,
    cards: Vec<Card>,
}

impl Release {
    fn read(folder: PathBuf, line: &str) -> Self {
        let cards = published(&folder, line);
        Self { folder, cards }
    }

    /// All cards with the records that bind them.
    fn zone(&self, cid: &str) -> Map<String, Value> {
        self.cards.iter().map(|card| self.entry(card, cid)).collect()
    }

    /// A card's name and entry in a zone.
    fn entry(&self, card: &Card, cid: &str) -> (String, Value) {
        let url = format!("https://{CARD_HOST}/agent-cards/{}", card.path);
        (card.name.clone(), held_by_publisher(records(&card.bytes, &url, cid, &card.path)))
    }
}

/// The zone's entry for a name of the publisher.
fn held_by_publisher(texts: Value) -> Value {
    json!({"owner": PUBLISHER, "resolver": "public", "text": texts})
}

/// The zone's entry for an agent of [`AGENTS`], unless it is to have none.
fn agent_entry(agent: &Agent, model: &Card, hamt: &str, plain: &str) -> Option<(String, Value)> {
    let cid = if agent.variant == Variant::Hamt { hamt } else { plain };
    let path = card_path(agent);
    let texts = records(&own_card(model, agent), &own_url(agent), cid, &path);
    let mut entry = held_by_publisher(texts);
    match agent.variant {
        Variant::Plain | Variant::Hamt | Variant::NoOrigin | Variant::OtherBytes => {}
        Variant::Offchain => entry["resolver"] = "offchain".into(),
        Variant::OffParent => entry["resolver"] = "parent".into(),
        Variant::OtherEntry => entry["text"]["cl.entry"] = "x402://other.eth/summarize/v1".into(),
        Variant::Stranger => entry["owner"] = STRANGER.into(),
        Variant::Days(days) => entry["days"] = days.into(),
        Variant::Pending => entry["pending"] = json!({"cl.owner": "other.eth"}),
        Variant::NoResolver => entry["resolver"] = "none".into(),
        Variant::Unregistered => return None,
    }
    Some((agent.name.to_owned(), entry))
}

/// Folders with the files of [`AGENTS`].
struct OwnFiles {
    /// What the gateway holds in a sharded directory.
    hamt: PathBuf,
    /// What it holds in an ordinary one.
    plain: PathBuf,
    /// What the origin serves.
    origin: PathBuf,
}

impl OwnFiles {
    fn write(scratch: &Path, model: &Card) -> Self {
        let files = Self { hamt: scratch.join("hamt"), plain: scratch.join("plain"), origin: scratch.join("origin") };
        for agent in AGENTS {
            let card = own_card(model, agent);
            let path = card_path(agent);
            write(&files.hamt.join(&path), &card);
            write(&files.plain.join(&path), &card);
            match agent.variant {
                Variant::NoOrigin => {}
                Variant::OtherBytes => write(&files.origin.join(&path), &[&card[..], b"\n"].concat()),
                _ => write(&files.origin.join(&path), &card),
            }
        }
        for number in 0..HAMT_FILLERS {
            write(&files.hamt.join(format!("commons/filler-{number}")), number.to_string().as_bytes());
        }
        // No two blocks of it are the same.
        let large: Vec<u8> = (0..LARGE_FILE_WORDS).flat_map(u32::to_le_bytes).collect();
        write(&files.plain.join(LARGE_FILE), &large);
        files
    }
}

/// Certificates of the HTTPS servers.
struct Tls {
    /// PEM of the certificate that signs.
    trust_root: String,
    certificate: PathBuf,
    key: PathBuf,
}

impl Tls {
    /// Makes an authority, which forgets its key, and a certificate for all hosts.
    fn write(scratch: &Path) -> Self {
        let authority = authority().expect("a certificate authority");
        let leaf_key = KeyPair::generate().expect("a key");
        let hosts = [CARD_HOST, CCIP_HOST, SCHEMA_HOST_1_1_0].map(str::to_owned);
        let leaf = CertificateParams::new(hosts).expect("host names").signed_by(&leaf_key, &authority);
        let (certificate, key) = (scratch.join("cert.pem"), scratch.join("key.pem"));
        write(&certificate, leaf.expect("a certificate").pem().as_bytes());
        write(&key, leaf_key.serialize_pem().as_bytes());
        Self { trust_root: authority.pem(), certificate, key }
    }
}

fn authority() -> Result<CertifiedIssuer<'static, KeyPair>, rcgen::Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    CertifiedIssuer::self_signed(params, KeyPair::generate()?)
}

fn find<'a>(cards: &'a [Card], name: &str) -> &'a Card {
    cards.iter().find(|card| card.name == name).unwrap_or_else(|| panic!("the release has no {name}"))
}

fn own_card(model: &Card, agent: &Agent) -> Vec<u8> {
    renamed(model, agent.name, &own_url(agent))
}

fn own_url(agent: &Agent) -> String {
    format!("https://{CARD_HOST}/own/{}", card_path(agent))
}

fn card_path(agent: &Agent) -> String {
    format!("commons/{}.json", agent.name)
}

fn cid_of(gateway: &Service, directory: usize) -> String {
    gateway.ready["directories"][directory]["cid"].as_str().expect("a CID").to_owned()
}

/// The value of `--connect-to` that leads `host` to a port on loopback.
fn detour(host: &str, port: &Value) -> String {
    format!("{host}:443:127.0.0.1:{port}")
}

fn write(path: &Path, bytes: &[u8]) {
    let folder = path.parent().expect("a file is in a folder");
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, bytes))
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}
