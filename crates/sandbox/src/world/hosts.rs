//! The web hosts, the IPFS gateways and the CCIP-Read gateway, behind one server.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use clresolve_ipfs::build;
use hyper::{Request, StatusCode};
use jiff::Timestamp;

use crate::ccip::{self, CCIP_HOST};
use crate::chain::SandboxChain;
use crate::gateway::{IpfsGatewayBehaviour, SandboxBlockStore};
use crate::published::{CARDS_HOST, SandboxAgentPublication};
use crate::schemas::{MIRROR_HOST, SCHEMAS_HOST, SandboxSchemaLayers};
use crate::seller::{self, SELLER_HOST, THIEF_HOST};
use crate::sellers::{self, SandboxSellerReplies};
use crate::spec::{SandboxAgentSpec, SandboxSpec};
use crate::web::{self, HostReaction, ServedFile, VirtualHostHandler};
use crate::{discovery, planned, registrations};

/// Host of the gateway without faults. Those with faults are subdomains of it.
pub(super) const GATEWAY_HOST: &str = "gateway.sandbox.example";

/// Everything that the hosts serve, and how many requests each kind of host received.
pub(super) struct SandboxHosts {
    documents: HashMap<(String, String), ServedFile>,
    without_card: SandboxSellerReplies,
    store: SandboxBlockStore,
    chain: RwLock<Arc<SandboxChain>>,
    pub(super) cards: AtomicU64,
    pub(super) gateways: AtomicU64,
    pub(super) ccip: AtomicU64,
    pub(super) schemas: AtomicU64,
    pub(super) sellers: AtomicU64,
}

impl SandboxHosts {
    pub(super) fn new(
        spec: &SandboxSpec,
        published: &[(SandboxAgentSpec, SandboxAgentPublication)],
        schemas: &SandboxSchemaLayers,
        chain: Arc<SandboxChain>,
    ) -> Self {
        let mut documents = HashMap::new();
        let mut store = SandboxBlockStore::default();
        for ((host, path), document) in schemas.documents() {
            documents.insert((host.to_owned(), path), document);
        }
        for blocks in schemas.blocks() {
            store.add_blocks(blocks.clone(), IpfsGatewayBehaviour::Ok);
        }
        for (agent, published) in published {
            let document = ServedFile {
                behaviour: published.web.clone(),
                body: published.card.clone(),
                other: published.other.clone(),
            };
            documents.insert((CARDS_HOST.to_owned(), published.url_path.clone()), document);
            store.add_blocks(published.blocks.clone(), agent.ipfs);
        }
        documents.extend(planned::publisher_card_documents(spec));
        for publication in &spec.planned {
            store.add_blocks(publication.blocks.clone(), IpfsGatewayBehaviour::Ok);
        }
        documents.extend(sellers::seller_registration_files(spec));
        for entry in registrations::registry_entries(spec) {
            let mut dag = build::DagBuilder::default();
            dag.add_raw_block(entry.file);
            store.add_blocks(dag.into_blocks(), IpfsGatewayBehaviour::Ok);
        }
        store.add_blocks(discovery::manifest_directory().1, IpfsGatewayBehaviour::Ok);
        let card_of = |name: &str| {
            let known = published.iter().find(|(agent, _)| agent.name == name);
            known.map(|(_, published)| published.card.clone())
        };
        for (host, path, document) in discovery::discovery_documents(card_of) {
            documents.insert((host.to_owned(), path.to_owned()), document);
        }
        Self {
            documents,
            without_card: SandboxSellerReplies::new(spec),
            store,
            chain: RwLock::new(chain),
            cards: AtomicU64::new(0),
            gateways: AtomicU64::new(0),
            ccip: AtomicU64::new(0),
            schemas: AtomicU64::new(0),
            sellers: AtomicU64::new(0),
        }
    }

    pub(super) fn chain(&self) -> Arc<SandboxChain> {
        Arc::clone(&self.chain.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn serve_chain(&self, chain: Arc<SandboxChain>) {
        *self.chain.write().unwrap_or_else(PoisonError::into_inner) = chain;
    }

    fn document_reaction(&self, host: &str, request: &Request<()>) -> HostReaction {
        let key = (host.to_owned(), request.uri().path().to_owned());
        self.documents
            .get(&key)
            .map_or_else(|| web::html_reaction(StatusCode::NOT_FOUND), |d| d.reaction_to(request.uri()))
    }
}

impl VirtualHostHandler for SandboxHosts {
    fn react_to_request(&self, host: &str, request: &Request<()>, body: &Bytes) -> HostReaction {
        let host = host.split(':').next().unwrap_or_default().to_ascii_lowercase();
        let counter = match host.as_str() {
            CCIP_HOST => &self.ccip,
            SCHEMAS_HOST | MIRROR_HOST => &self.schemas,
            SELLER_HOST | THIEF_HOST => &self.sellers,
            host if host.ends_with(GATEWAY_HOST) => &self.gateways,
            host if self.without_card.has_host(host) => &self.sellers,
            _ => &self.cards,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        if host == CCIP_HOST {
            return ccip::answer_ccip_request(&self.chain(), request, body);
        }
        if [SELLER_HOST, THIEF_HOST].contains(&host.as_str()) {
            return seller::answer_seller_request(&host, request.uri().path(), Timestamp::now());
        }
        if let Some(reply) = self.without_card.answer_request(&host, request.uri().path(), Timestamp::now()) {
            return reply;
        }
        match IpfsGatewayBehaviour::ALL.into_iter().find(|behaviour| gateway_host(*behaviour) == host) {
            Some(behaviour) => self.store.answer_ipfs_request(behaviour, request),
            None => self.document_reaction(&host, request),
        }
    }
}

/// The host of a gateway with this behaviour.
pub(super) fn gateway_host(behaviour: IpfsGatewayBehaviour) -> String {
    match behaviour {
        IpfsGatewayBehaviour::Ok => GATEWAY_HOST.to_owned(),
        faulty => format!("{faulty}.{GATEWAY_HOST}"),
    }
}
