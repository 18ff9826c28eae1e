//! A chain that seals a block in each slot, with the hot names on it, and the endpoints that serve it.

use std::collections::BTreeMap;
use std::mem::replace;
use std::net::SocketAddr;
use std::sync::Arc;

use alloy_primitives::{Address, B256, address};
use anyhow::bail;
use clresolve_core::name::EnsName;
use clresolve_core::reading::{EnsAnswer, NameReading};
use clresolve_core::records::TextRecordKey;
use clresolve_resolver::Resolver;
use clresolve_resolver::config::RpcEndpointConfig;
use clresolve_resolver::sandbox::CustomSandbox;
use clresolve_sandbox::chain::{
    SandboxChain, SandboxChainBuilder, SandboxNameRegistration, SandboxRpcFault, SandboxRpcServer,
};
use jiff::{SignedDuration, Timestamp};
use tokio::time::{Instant, sleep_until};

use crate::endpoint::{EndpointProxy, EndpointRequestCounts};
use crate::scale::SLOT;

/// Number of hot names: as many as one call reads.
pub(crate) const NAMES: usize = 20;

/// The owner of all hot names, and the account that controls all of them.
pub(crate) const PUBLISHER: &str = "publisher.eth";
const PUBLISHER_ACCOUNT: Address = address!("00000000000000000000000000000000000a11ce");

/// Age of the final records when the run starts.
const FINAL_SINCE: SignedDuration = SignedDuration::from_mins(1);

/// Every slot with a multiple of this number is missed: 2 %.
const MISSED_EVERY: u32 = 50;

/// The value of a changed record.
const CHANGED: &str = "changed";

/// The lies of the lying endpoint, each for one block in turn: it changes the records in every answer, reports a head
/// that is far ahead, and serves another block under every number.
const LIES: [SandboxRpcFault; 3] =
    [SandboxRpcFault::OtherRecords, SandboxRpcFault::BlocksToCome(100), SandboxRpcFault::OtherBlocks];

/// How an endpoint treats the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RpcEndpointBehaviour {
    /// It serves the newest block.
    Honest,
    /// It serves the chain without the newest block.
    Behind,
    /// It serves the newest block, and lies.
    Lying,
}

/// The endpoints in the order of the configuration, each of another operator.
pub(crate) const ENDPOINTS: [(&str, RpcEndpointBehaviour); 4] = [
    ("honest-1", RpcEndpointBehaviour::Honest),
    ("lying", RpcEndpointBehaviour::Lying),
    ("behind", RpcEndpointBehaviour::Behind),
    ("honest-2", RpcEndpointBehaviour::Honest),
];

#[derive(Clone, Copy, Debug)]
pub(crate) struct HotNameRecordKey {
    pub(crate) name: usize,
    pub(crate) key: TextRecordKey,
}

/// The chain, and the endpoints that serve it.
pub(crate) struct SlotPacedSandboxChain {
    builder: SandboxChainBuilder,
    names: Vec<HotNameTextRecords>,
    newest: Arc<SandboxChain>,
    /// The chain without the newest block.
    before: Arc<SandboxChain>,
    nodes: Vec<ProxiedRpcNode>,
    /// When slot 0 begins, by the system's clock and by the timer's.
    first: Timestamp,
    began: Instant,
    slot: u32,
    /// Number of blocks since slot 0.
    heads: u32,
}

/// A hot name and its original records.
struct HotNameTextRecords {
    name: EnsName,
    texts: BTreeMap<String, String>,
}

struct ProxiedRpcNode {
    conduct: RpcEndpointBehaviour,
    server: SandboxRpcServer,
    proxy: EndpointProxy,
}

/// How many blocks and requests there were by some moment.
pub(crate) struct RequestCountSample {
    pub(crate) heads: u32,
    /// In the order of [`ENDPOINTS`].
    pub(crate) requests: Vec<EndpointRequestCounts>,
}

pub(crate) fn hot_name(index: usize) -> String {
    format!("hot-{index}.eth")
}

impl SlotPacedSandboxChain {
    /// Registers the hot names with their records in `world`, which continues to serve their cards. The records are
    /// final, and nothing that is written later becomes final.
    pub(crate) async fn start(world: &CustomSandbox) -> anyhow::Result<Self> {
        let names = read_names(world).await?;
        let mut builder = SandboxChainBuilder::new()?;
        let publisher = SandboxNameRegistration::new(EnsName::parse(PUBLISHER)?, PUBLISHER_ACCOUNT);
        builder.register_name(&SandboxNameRegistration { addr: Some(PUBLISHER_ACCOUNT), ..publisher })?;
        for HotNameTextRecords { name, texts } in &names {
            let registration = SandboxNameRegistration::new(name.clone(), PUBLISHER_ACCOUNT);
            builder.register_name(&SandboxNameRegistration { texts: texts.clone(), ..registration })?;
        }
        let now = Timestamp::now();
        let first = Timestamp::from_second(now.as_second() + 1)?;
        let began = Instant::now() + first.duration_since(now).unsigned_abs();
        builder.seal_block(first - FINAL_SINCE)?;
        builder.finalize_newest_block()?;
        let newest = Arc::new(builder.build()?);
        let mut nodes = Vec::new();
        for (_, conduct) in ENDPOINTS {
            let server = SandboxRpcServer::bind(Arc::clone(&newest)).await?;
            let address: SocketAddr = server.url().trim_start_matches("http://").parse()?;
            nodes.push(ProxiedRpcNode { conduct, proxy: EndpointProxy::start(address).await?, server });
        }
        let before = Arc::clone(&newest);
        Ok(Self { builder, names, newest, before, nodes, first, began, slot: 0, heads: 0 })
    }

    pub(crate) fn genesis(&self) -> B256 {
        self.newest.genesis().hash
    }

    /// The endpoints as a daemon configures them.
    pub(crate) fn endpoint_configs(&self) -> anyhow::Result<Vec<RpcEndpointConfig>> {
        let mut endpoints = Vec::new();
        for (node, (label, _)) in self.nodes.iter().zip(ENDPOINTS) {
            endpoints.push(RpcEndpointConfig {
                label: label.to_owned(),
                url: format!("http://{}/", node.proxy.address).parse()?,
                own: false,
                operator: format!("{label}.example"),
            });
        }
        Ok(endpoints)
    }

    pub(crate) fn sample_request_counts(&self) -> RequestCountSample {
        RequestCountSample { heads: self.heads, requests: self.nodes.iter().map(|node| node.proxy.counts()).collect() }
    }

    /// Waits for the next slot that is not missed.
    pub(crate) async fn wait_for_next_slot(&mut self) {
        self.slot += 1;
        if self.slot.is_multiple_of(MISSED_EVERY) {
            self.slot += 1;
        }
        sleep_until(self.began + SLOT * self.slot).await;
    }

    /// Changes the value of a record in the next block.
    pub(crate) fn change(&mut self, record: HotNameRecordKey) -> anyhow::Result<()> {
        let name = &self.names[record.name].name;
        Ok(self.builder.set_text(name, record.key.as_str(), CHANGED)?)
    }

    /// Restores the original value of a record in the next block.
    pub(crate) fn restore(&mut self, record: HotNameRecordKey) -> anyhow::Result<()> {
        let HotNameTextRecords { name, texts } = &self.names[record.name];
        let (key, none) = (record.key.as_str(), String::new());
        Ok(self.builder.set_text(name, key, texts.get(key).unwrap_or(&none))?)
    }

    /// Seals the block of this slot. No endpoint serves it yet.
    pub(crate) fn seal(&mut self) -> anyhow::Result<()> {
        self.builder.seal_block(self.first + SLOT * self.slot)?;
        self.heads += 1;
        self.before = replace(&mut self.newest, Arc::new(self.builder.build()?));
        Ok(())
    }

    /// Serves the block that was sealed last.
    pub(crate) fn publish(&self) {
        for ProxiedRpcNode { conduct, server, .. } in &self.nodes {
            match conduct {
                RpcEndpointBehaviour::Honest => server.serve_chain(Arc::clone(&self.newest)),
                RpcEndpointBehaviour::Behind => server.serve_chain(Arc::clone(&self.before)),
                RpcEndpointBehaviour::Lying => {
                    server.set_fault(LIES[self.heads as usize % LIES.len()]);
                    server.serve_chain(Arc::clone(&self.newest));
                }
            }
        }
    }
}

/// The hot names and their records in `world`.
async fn read_names(world: &CustomSandbox) -> anyhow::Result<Vec<HotNameTextRecords>> {
    let resolver = Resolver::new(&world.config()).await?;
    let mut names = Vec::new();
    for index in 0..NAMES {
        let name = EnsName::parse(&hot_name(index))?;
        let texts = text_records(&resolver.read_records(&name).await?)?;
        names.push(HotNameTextRecords { name, texts });
    }
    Ok(names)
}

fn text_records(reading: &NameReading) -> anyhow::Result<BTreeMap<String, String>> {
    let EnsAnswer::Records(found) = &reading.answer else { bail!("a hot name has no records") };
    let text = |key: TextRecordKey| Some((key.as_str().to_owned(), found.records.text(key)?.to_owned()));
    Ok(TextRecordKey::ALL.into_iter().filter_map(text).collect())
}
