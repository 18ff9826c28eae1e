//! The daemon as a process of its own, flooded through all routes at once: the memory that it uses above idle.

use std::process::Child;
use std::time::Duration;

use bytes::Bytes;
use clresolve_ipfs::ContentId;
use clresolve_ipfs::build::write_car;
use clresolve_resolver::config::{ChainProofMode, Config, HedgeDelay, RpcEndpointConfig};
use clresolve_resolver::sandbox::CustomSandbox;
use clresolve_sandbox::ServedChainState;
use clresolve_sandbox::chain::SandboxRpcFault;
use futures_util::{StreamExt as _, stream};
use serde_json::Value;

use crate::hostile::gateways::gateway;
use crate::hostile::started::{self, Started};
use crate::hostile::{HANGS, spec};
use crate::support::faults::{Content, FAULTS, GatewayQuery};
use crate::support::server::{Answer, Server, canary};

/// Questions at the same time.
const AT_ONCE: usize = 32;

/// Agents of each kind: the number of attacks of a kind that run at once.
const ALIKE: usize = 4;

/// The daemon's own limit for a question: some hosts never answer.
const LIMIT: Duration = Duration::from_secs(20);

/// Blocks of a CAR that is asked for five.
const MANY_BLOCKS: u32 = 10_000;

/// How each kind of agent attacks.
const ATTACKS: [(&str, &str); 14] = [
    ("endless", "web = \"endless\""),
    ("bomb", "web = \"gzip-bomb\""),
    ("oversize", "web = \"oversize\""),
    ("truncated", "web = \"truncated\""),
    ("loop", "web = \"redirect-loop\""),
    ("stall", "web = \"stall\""),
    ("ccip-endless", "chain.resolver.offchain = [\"https://ccip.sandbox.example/endless/{sender}/{data}\"]"),
    (
        "ccip-garbage",
        "chain.resolver.hostile = { mode = \"loop\", arg = \"https://ccip.sandbox.example/garbage/{sender}/{data}\" }",
    ),
    ("aliased", "chain.resolver.hostile = { mode = \"aliased\" }"),
    ("huge", "chain.resolver.hostile = { mode = \"huge\", arg = \"cl.owner\" }"),
    ("huge-revert", "chain.resolver.hostile = { mode = \"revert-huge\", arg = \"cl.owner\" }"),
    ("burn", "chain.resolver.hostile = { mode = \"burn\", arg = \"cl.entry\" }"),
    ("deep", "layout = \"directory\""),
    ("shards", "layout = \"hamt\""),
];

/// A running daemon, which is ended with this.
pub(crate) struct Daemon {
    child: Child,
    pub(crate) address: String,
    _folder: tempfile::TempDir,
}

impl Daemon {
    /// Every proxy that an environment can name is `proxy`.
    pub(crate) fn start(mut config: Config, proxy: &Server) -> Self {
        config.timeout = LIMIT;
        config.http.listen = clresolve_resolver::config::ListenAddress::loopback(0);
        config.http.cold_runs_per_minute = u32::MAX;
        let proxies = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
        let Started { child, address, mut log, folder } =
            Started::with(&config, proxies.map(|variable| (variable, proxy.url().to_string())));
        // Its later log is read and dropped, so that it never waits for a reader.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Self { child, address, _folder: folder }
    }

    /// Most memory that it ever had in use, in KiB.
    pub(crate) fn peak(&self) -> u64 {
        started::peak(&self.child)
    }

    /// The memory that it has in use, in KiB.
    pub(crate) fn now(&self) -> u64 {
        started::now(&self.child)
    }

    /// The verdicts on all names, many at a time.
    async fn ask_all(&self, names: &[String]) -> Vec<Value> {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        stream::iter(names)
            .map(|name| {
                let request = client.get(format!("http://{}/v1/verdicts/{name}", self.address)).timeout(HANGS);
                async move { serde_json::from_slice(&request.send().await.unwrap().bytes().await.unwrap()).unwrap() }
            })
            .buffer_unordered(AT_ONCE)
            .collect()
            .await
    }

    /// Runs the attacks, and holds the bound.
    async fn withstands(&self, what: &str, names: &[String]) {
        let idle = self.peak();
        let verdicts = self.ask_all(names).await;
        assert_eq!(verdicts.len(), names.len());
        assert!(verdicts.iter().all(|verdict| verdict["state"] != "trusted"), "{what}: {verdicts:#?}");
        started::holds(what, idle, self.peak());
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn names() -> Vec<String> {
    let alike = |kind: &str| (0..ALIKE).map(|n| format!("{kind}-{n}.eth")).collect::<Vec<_>>();
    ATTACKS.iter().flat_map(|(kind, _)| alike(kind)).collect()
}

async fn world() -> CustomSandbox {
    let agent = |(kind, toml): &(&str, &str)| {
        let one = |n| format!("[[agent]]\nname = \"{kind}-{n}.eth\"\nabout = \"Attacks.\"\n{toml}\n");
        (0..ALIKE).map(one).collect::<String>()
    };
    CustomSandbox::start(&spec(&ATTACKS.iter().map(agent).collect::<String>())).await.unwrap()
}

/// A CAR of thousands of blocks that no walk wants.
fn many_blocks(root: ContentId) -> Answer {
    let blocks: Vec<_> = (0..MANY_BLOCKS)
        .map(|number| {
            let block = Bytes::from(number.to_be_bytes().repeat(256));
            (ContentId::from_raw_block(&block), block)
        })
        .collect();
    let body = write_car(&root, blocks.iter().map(|(cid, block)| (cid, block)));
    Answer::Whole([&b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.ipld.car\r\n\r\n"[..], &body].concat())
}

/// Faults that send much, or that send nothing and keep their client waiting.
const FLOODS: [&str; 11] = [
    "endless-car",
    "endless",
    "endless chunks",
    "giant-block",
    "huge-length and nothing else",
    "gzip-bomb",
    "header-flood",
    "a wide header",
    "stall",
    "drip",
    "corrupt",
];

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn what_floods_the_daemon_takes_at_most_64_mib() {
    let proxy = canary().await;
    let world = world().await;
    let content = Content::new();
    let mut floods = Vec::new();
    for (name, fault, _) in FAULTS.into_iter().filter(|(name, ..)| FLOODS.contains(name)) {
        let sample = content.clone();
        let server = Server::plain(move |head| {
            // Every CID is answered in the way in which those of the sample are.
            let head = if head.contains("format=car") { head.to_owned() } else { raw_of(&sample) };
            fault(&GatewayQuery::of(&sample, &head))
        });
        floods.push((name, server.await));
    }
    assert_eq!(floods.len(), FLOODS.len());
    let root = content.root;
    floods.push(("many blocks", Server::plain(move |_| many_blocks(root)).await));
    let mut config = world.config();
    config.gateways = floods.iter().map(|(name, server)| gateway(&name.replace(' ', "-"), server)).collect();
    config.network.hedging = HedgeDelay::Learnt;
    let daemon = Daemon::start(config, &proxy);
    daemon.withstands("hosts, gateways and contracts", &names()).await;
    for (name, server) in &floods {
        assert!(server.connections() > 0, "{name} was not asked");
    }
    assert_eq!(proxy.connections(), 0, "a proxy of the environment was used");
}

fn raw_of(content: &Content) -> String {
    format!("GET /ipfs/{}?format=raw HTTP/1.1", content.root)
}

/// Gateways that are asked for long blocks.
const LONG_BLOCKS: usize = 4;

/// Bytes that such a gateway sends of a block before it stalls: almost as many as a block may have.
const LONG: usize = (2 << 20) - 1;

/// Without a budget for the long bodies of one gateway this takes some 150 MiB.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn gateways_that_stall_in_long_blocks_take_at_most_64_mib() {
    let proxy = canary().await;
    let world = world().await;
    let mut config = world.config();
    config.gateways.clear();
    let mut servers = Vec::new();
    for number in 0..LONG_BLOCKS {
        // Half of them stall in a section of a CAR, the others have no CAR and stall in a raw block.
        let server = Server::plain(move |head| match (number % 2, head.contains("format=car")) {
            (0, true) => Answer::Stall(long_section(ContentId::from_raw_block(b"another root"))),
            (_, true) => Answer::Whole(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec()),
            _ => Answer::Stall([b"HTTP/1.1 200 OK\r\n\r\n", &[0; LONG][..]].concat()),
        })
        .await;
        config.gateways.push(gateway(&format!("long-{number}"), &server));
        servers.push(server);
    }
    config.network.hedging = HedgeDelay::Learnt;
    let daemon = Daemon::start(config, &proxy);
    daemon.withstands("gateways that stall in long blocks", &names()).await;
    for server in &servers {
        assert!(server.connections() > 0, "a gateway was not asked");
    }
}

/// A CAR whose first section ends before its length says.
fn long_section(root: ContentId) -> Vec<u8> {
    let mut body = write_car(&root, [(&root, &Bytes::from(vec![0; LONG]))]).to_vec();
    body.truncate(body.len() - 1);
    [&b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.ipld.car\r\n\r\n"[..], &body].concat()
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn what_endpoints_flood_the_daemon_with_takes_at_most_64_mib() {
    let proxy = canary().await;
    let world = world().await;
    let endless = Server::plain(|_| {
        let head =
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":\"0x";
        Answer::Endless(head.to_vec(), vec![b'0'; 1 << 16])
    })
    .await;
    let mut endpoints = Vec::new();
    for fault in
        [SandboxRpcFault::HugeBody, SandboxRpcFault::AliasedOffsets, SandboxRpcFault::Garbage, SandboxRpcFault::NotJson]
    {
        let mut endpoint = world.start_rpc_endpoint(fault, ServedChainState::Growing, false).await.unwrap();
        endpoint.operator = endpoint.label.clone();
        endpoints.push(endpoint);
    }
    let label = "endless".to_owned();
    endpoints.push(RpcEndpointConfig { operator: label.clone(), label, url: endless.url(), own: false });
    for proof in [ChainProofMode::Quorum, ChainProofMode::StateProof] {
        let mut config = world.config();
        config.chain.endpoints.clone_from(&endpoints);
        config.chain.proof = Some(proof);
        let daemon = Daemon::start(config, &proxy);
        daemon.withstands(&format!("endpoints under {proof:?}"), &names()).await;
    }
    assert_eq!(proxy.connections(), 0, "a proxy of the environment was used");
}
