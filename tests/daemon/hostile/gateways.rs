//! Every fault of an IPFS gateway, behind a name.

use std::process::Stdio;
use std::sync::Mutex;
use std::sync::mpsc::channel;

use bytes::Bytes;
use clresolve_ipfs::ContentId;
use clresolve_ipfs::build::{UnixFsLayout, build_directory_tree, write_car};
use clresolve_resolver::config::{Config, HedgeDelay, IpfsGateway, ListenAddress};
use clresolve_resolver::resolve::Resolver;
use clresolve_resolver::sandbox::CustomSandbox;
use clresolve_sandbox::IpfsGatewayBehaviour;
use clresolve_server::http;
use futures_util::{StreamExt as _, stream};
use serde_json::Value;
use tokio::process::Command;

use crate::hostile::{PATIENCE, expect, json, patient, resolved, spec};
use crate::support::faults::{Content, Ends, FAULTS, Fault, GatewayQuery, as_car, is_car};
use crate::support::server::{Answer, Server, answer, canary, ok, status};

pub(crate) const NAME: &str = "deep.eth";

/// Time limit of a question to a gateway that never answers: room for a busy machine to read the chain.
pub(crate) const LIMIT: std::time::Duration = std::time::Duration::from_secs(20);

/// Cases at once, of which many wait.
const AT_ONCE: usize = 8;

/// Bytes of a block of a card in several blocks. So no body from its host can stand in for a block.
const CHUNK: usize = 512;

/// The host of the world's cards.
const CARDS_HOST: &str = "cards.sandbox.example";

/// A world with one good agent, whose card lies some directories deep.
pub(crate) struct Deep {
    pub(crate) world: CustomSandbox,
    pub(crate) content: Content,
    pub(crate) conclusion: String,
}

impl Deep {
    /// With a card of several blocks.
    pub(crate) async fn new() -> Self {
        Self::laid("directory-of-blocks", UnixFsLayout { chunk: CHUNK, ..UnixFsLayout::default() }).await
    }

    /// With a card that is one raw block.
    async fn with_raw_leaf() -> Self {
        Self::laid("directory", UnixFsLayout::default()).await
    }

    async fn laid(word: &str, layout: UnixFsLayout) -> Self {
        let agent =
            format!("[[agent]]\nname = \"{NAME}\"\nabout = \"Deep.\"\nlayout = \"{word}\"\nstate = \"trusted\"\n");
        let world = CustomSandbox::start(&spec(&agent)).await.unwrap();
        let resolver = Resolver::new(&patient(&world)).await.unwrap();
        let resolution = resolved(&resolver, NAME).await;
        let verdict = json(&resolution);
        expect("the honest world", &verdict, "trusted", &[]);
        let card = verdict["identity"]["card"].clone();
        let path = card["path"].as_str().unwrap().to_owned();
        let bytes = resolution.card_bytes().cloned().unwrap();
        let readme = Bytes::from_static(b"Agent-Cards of the sandbox.\n");
        let files = [("README.md".to_owned(), readme), (path.clone(), bytes.clone())].into();
        let (root, blocks) = build_directory_tree(&files, layout);
        assert_eq!(card["cid"], root.to_string(), "the sandbox lays its cards out like this");
        let conclusion = verdict["conclusion"].as_str().unwrap().to_owned();
        Self { world, content: Content { root, path, blocks, card: bytes }, conclusion }
    }

    pub(crate) fn with_gateways(&self, gateways: Vec<IpfsGateway>) -> Config {
        let mut config = patient(&self.world);
        config.gateways = gateways;
        config
    }

    /// A gateway that has all but the card's own block, for which it answers so.
    async fn without_leaf(&self, answer: impl Fn() -> Answer + Send + Sync + 'static) -> Server {
        let content = self.content.clone();
        let leaf = ContentId::from_raw_block(&content.card);
        assert!(content.blocks.contains_key(&leaf), "the card is one raw block");
        Server::plain(move |head| {
            if is_car(head) {
                let mut sections = content.along();
                sections.retain(|(cid, _)| *cid != leaf);
                return as_car(&write_car(&content.root, sections.iter().map(|(cid, block)| (cid, block))));
            }
            if head.contains(&leaf.to_string()) { answer() } else { content.raw(head) }
        })
        .await
    }

    async fn failing(&self, fault: Fault) -> Server {
        let content = self.content.clone();
        Server::plain(move |head| fault(&GatewayQuery::of(&content, head))).await
    }
}

/// The gateway that is `server`.
pub(crate) fn gateway(label: &str, server: &Server) -> IpfsGateway {
    IpfsGateway { label: label.to_owned(), url: server.url(), own: false }
}

#[tokio::test]
async fn every_fault_of_a_gateway_has_its_verdict() {
    let deep = Deep::new().await;
    let deep = &deep;
    stream::iter(FAULTS)
        .for_each_concurrent(AT_ONCE, |(name, fault, ends)| async move {
            let bad = deep.failing(fault).await;
            let mut config = deep.with_gateways(vec![gateway("bad", &bad)]);
            if ends.needs_time() {
                config.timeout = LIMIT;
            }
            let verdict = crate::hostile::judged(&config, NAME).await;
            match ends {
                Ends::Proven => {
                    expect(name, &verdict, "trusted", &[]);
                    assert_eq!(verdict["conclusion"], deep.conclusion, "{name}");
                }
                Ends::Lied => expect(name, &verdict, "indeterminate", &["cid-unproven", "gateway-lied"]),
                _ => expect(name, &verdict, "indeterminate", &["cid-unproven"]),
            }
        })
        .await;
}

#[tokio::test]
async fn no_fault_changes_the_conclusion_beside_an_honest_gateway() {
    let deep = Deep::new().await;
    let deep = &deep;
    stream::iter(FAULTS)
        .for_each_concurrent(AT_ONCE, |(name, fault, _)| async move {
            let bad = deep.failing(fault).await;
            let honest = deep.world.ipfs_gateway(IpfsGatewayBehaviour::Ok);
            let mut config = deep.with_gateways(vec![gateway("bad", &bad), honest]);
            config.network.hedging = HedgeDelay::Learnt;
            let verdict = crate::hostile::judged(&config, NAME).await;
            assert_eq!(verdict["state"], "trusted", "{name}: {:#}", verdict["reasons"]);
            assert_eq!(verdict["conclusion"], deep.conclusion, "{name}");
            let is_told = |reason: &serde_json::Value| reason["code"] == "gateway-lied";
            assert!(verdict["reasons"].as_array().unwrap().iter().all(is_told), "{name}: {:#}", verdict["reasons"]);
        })
        .await;
}

#[tokio::test]
async fn no_redirect_of_a_gateway_reaches_the_canary() {
    let deep = Deep::new().await;
    let canary = canary().await;
    for code in [300, 301, 302, 303, 305, 307, 308] {
        let headers = format!("Location: {}\r\n", canary.url());
        let server = Server::plain(move |_| Answer::Whole(answer(&format!("{code} Away"), &headers, b"<html>"))).await;
        let verdict = crate::hostile::judged(&deep.with_gateways(vec![gateway("bad", &server)]), NAME).await;
        expect(&code.to_string(), &verdict, "indeterminate", &["cid-unproven"]);
        assert!(server.connections() > 0);
    }
    assert_eq!(canary.connections(), 0);
}

#[tokio::test]
async fn all_gateways_may_lie_at_once() {
    let deep = Deep::new().await;
    let mut servers = Vec::new();
    for (name, fault, ends) in FAULTS {
        if !matches!(ends, Ends::Proven) && !ends.needs_time() {
            servers.push((name, deep.failing(fault).await));
        }
    }
    let gateways = servers.iter().map(|(name, server)| gateway(&name.replace(' ', "-"), server)).collect();
    let mut config = deep.with_gateways(gateways);
    config.network.hedging = HedgeDelay::Learnt;
    config.timeout = PATIENCE;
    expect("all", &crate::hostile::judged(&config, NAME).await, "indeterminate", &["cid-unproven", "gateway-lied"]);
}

/// The last block is in hand from the host, which is slower than all gateways: they have given it up when it answers.
#[tokio::test(flavor = "multi_thread")]
async fn a_leaf_that_its_host_serves_after_the_gateways_gave_it_up_is_proven() {
    let deep = Deep::with_raw_leaf().await;
    let without_leaf = deep.without_leaf(|| status("404 Not Found")).await;
    let (tell, told) = channel();
    let (card, told) = (deep.content.card.clone(), Mutex::new(told));
    let host = Server::tls(&[CARDS_HOST], move |_| {
        // A test that has failed tells nothing.
        let _ = tokio::task::block_in_place(|| told.lock().unwrap().recv());
        ok(&card)
    })
    .await;
    let mut config = deep.with_gateways(vec![gateway("without-leaf", &without_leaf)]);
    config.network.connect_to.insert(0, host.detour(&format!("{CARDS_HOST}:443")).parse().unwrap());
    config.network.ca_pems.push(String::from_utf8(host.root.to_vec()).unwrap());
    config.http.listen = ListenAddress::loopback(0);
    let daemon = http::HttpDaemon::bind(&config).await.unwrap();
    let address = daemon.address().tcp_address().unwrap();
    tokio::spawn(daemon.run(std::future::pending()));

    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let watched = client.get(format!("http://{address}/v1/verdicts/{NAME}")).header("accept", "text/event-stream");
    let (mut events, mut said, mut have_ended) = (watched.send().await.unwrap(), String::new(), false);
    while let Some(piece) = events.chunk().await.unwrap() {
        said.push_str(std::str::from_utf8(&piece).unwrap());
        if !have_ended && said.contains(r#"{"status":"ended","step":"fetch-ipfs"}"#) {
            have_ended = true;
            assert!(!said.contains(r#"{"status":"ended","step":"fetch-https"}"#), "{said}");
            tell.send(()).unwrap();
        }
    }
    assert!(have_ended, "{said}");
    let (_, verdict) = said.trim_end().rsplit_once("data: ").unwrap();
    let verdict: Value = serde_json::from_str(verdict).unwrap();
    expect("the host was last", &verdict, "trusted", &[]);
    assert_eq!(verdict["conclusion"], deep.conclusion);
}

/// A gateway that neither gives the last block nor says that it has none.
#[tokio::test]
async fn a_leaf_on_which_a_gateway_stalls_is_that_of_the_host() {
    let deep = Deep::with_raw_leaf().await;
    let stalling = deep.without_leaf(|| Answer::Stall(Vec::new())).await;
    for beside in [None, Some(IpfsGatewayBehaviour::Missing)] {
        let beside = beside.map(|behaviour| deep.world.ipfs_gateway(behaviour));
        let mut config = deep.with_gateways(beside.into_iter().chain([gateway("stalling", &stalling)]).collect());
        config.timeout = LIMIT;
        let verdict = crate::hostile::judged(&config, NAME).await;
        expect("a stall", &verdict, "trusted", &[]);
        assert_eq!(verdict["conclusion"], deep.conclusion);
    }
    assert!(stalling.paths().iter().any(|path| !path.contains("format=car")), "it was asked for the block alone");
}

/// A path of a gateway's URL may hold a key.
#[tokio::test]
async fn a_key_in_the_url_of_a_gateway_is_shown_nowhere() {
    let deep = Deep::new().await;
    let lying = Server::plain(|_| Answer::Whole(answer("200 OK", "", b"other bytes"))).await;
    let busy = Server::plain(|_| status("503 Busy")).await;
    let away =
        Server::plain(|_| Answer::Whole(answer("302 Found", "Location: https://a.example/SECRET\r\n", b""))).await;
    let gone = Server::plain(|_| Answer::Cut(Vec::new())).await;
    let with_key = |mut gateway: IpfsGateway| {
        gateway.url.set_path("/SECRET/");
        gateway
    };
    let mut gateways: Vec<IpfsGateway> = [("lying", &lying), ("busy", &busy), ("away", &away), ("gone", &gone)]
        .map(|(label, server)| with_key(gateway(label, server)))
        .into();
    gateways.push("https://10.0.0.1/SECRET".parse().unwrap());
    let config = deep.with_gateways(gateways);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    config.save(&file).unwrap();
    for arguments in [
        &["trace", NAME, "-vv"][..],
        &["verify", NAME, "-o", "json", "-vv"],
        &["doctor", "-vv"],
        &["config", "show", "-vv"],
    ] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_clresolve"));
        program.args(arguments).arg("--config").arg(&file).env_clear().stdin(Stdio::null());
        let output = program.output().await.unwrap();
        let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned()).concat();
        assert!(said.contains("lying") && said.contains("10.0.0.1"), "{arguments:?}: {said}");
        assert!(!said.contains("SECRET"), "{arguments:?}: {said}");
    }
}
