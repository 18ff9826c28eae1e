//! Every fault of an IPFS gateway, behind a name.

use bytes::Bytes;
use clresolve::cid::build::{Layout, tree};
use clresolve::config::{Config, Gateway, Hedging};
use clresolve::resolve::Resolver;
use clresolve::sandbox::GatewayManners;
use clresolve::sandbox::World;
use futures_util::{StreamExt as _, stream};

use crate::faults::{Content, Ends, FAULTS, Fault, GatewayQuery};
use crate::server::{Answer, Server, answer, canary};
use crate::{PATIENCE, expect, json, patient, resolved, spec};

const NAME: &str = "deep.eth";

/// Time limit of a question to a gateway that never answers: room for a busy machine to read the chain.
const LIMIT: std::time::Duration = std::time::Duration::from_secs(20);

/// Cases at once, of which many wait.
const AT_ONCE: usize = 8;

/// Bytes of a block of a card in that layout. So no body from its host can stand in for a block.
const CHUNK: usize = 512;

/// A world with one good agent, whose card lies some directories deep, in several blocks.
struct Deep {
    world: World,
    content: Content,
    conclusion: String,
}

impl Deep {
    async fn new() -> Self {
        let agent = format!(
            "[[agent]]\nname = \"{NAME}\"\nabout = \"Deep.\"\nlayout = \"directory-of-blocks\"\nstate = \"trusted\"\n"
        );
        let world = World::start(&spec(&agent)).await.unwrap();
        let resolver = Resolver::new(&patient(&world)).await.unwrap();
        let resolution = resolved(&resolver, NAME).await;
        let verdict = json(&resolution);
        expect("the honest world", &verdict, "trusted", &[]);
        let card = verdict["identity"]["card"].clone();
        let path = card["path"].as_str().unwrap().to_owned();
        let bytes = resolution.card().cloned().unwrap();
        let readme = Bytes::from_static(b"Agent-Cards of the sandbox.\n");
        let files = [("README.md".to_owned(), readme), (path.clone(), bytes.clone())].into();
        let (root, blocks) = tree(&files, Layout { chunk: CHUNK, ..Layout::default() });
        assert_eq!(card["cid"], root.to_string(), "the sandbox lays its cards out like this");
        let conclusion = verdict["conclusion"].as_str().unwrap().to_owned();
        Self { world, content: Content { root, path, blocks, card: bytes }, conclusion }
    }

    fn with_gateways(&self, gateways: Vec<Gateway>) -> Config {
        let mut config = patient(&self.world);
        config.gateways = gateways;
        config
    }

    async fn failing(&self, fault: Fault) -> Server {
        let content = self.content.clone();
        Server::plain(move |head| fault(&GatewayQuery::of(&content, head))).await
    }
}

/// The gateway that is `server`.
pub(crate) fn gateway(label: &str, server: &Server) -> Gateway {
    Gateway { label: label.to_owned(), url: server.url(), own: false }
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
            let verdict = crate::judged(&config, NAME).await;
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
            let honest = deep.world.gateway(GatewayManners::Ok);
            let mut config = deep.with_gateways(vec![gateway("bad", &bad), honest]);
            config.network.hedging = Hedging::Learnt;
            let verdict = crate::judged(&config, NAME).await;
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
        let verdict = crate::judged(&deep.with_gateways(vec![gateway("bad", &server)]), NAME).await;
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
    config.network.hedging = Hedging::Learnt;
    config.timeout = PATIENCE;
    expect("all", &crate::judged(&config, NAME).await, "indeterminate", &["cid-unproven", "gateway-lied"]);
}
