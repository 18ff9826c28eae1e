//! Sandbox hosts that serve cards at the paths of the card systems, correctly or with faults.

use std::collections::BTreeMap;

use bytes::Bytes;
use clresolve_ipfs::ContentId;
use clresolve_ipfs::build::{self, BlocksByCid};

use super::web::{ServedFile, WebServerBehaviour};

macro_rules! card {
    ($name:literal) => {
        include_str!(concat!("discovery/", $name, ".json"))
    };
}

/// One host for each card system, one with an invalid card, and a hostile one.
pub(super) const HOSTS: [&str; 7] = [
    "a2a.sandbox.example",
    "aevum.sandbox.example",
    "anypoint.sandbox.example",
    "broken.sandbox.example",
    COMMANDLAYER,
    "hostile.sandbox.example",
    "orloj.sandbox.example",
];

/// The host that serves the card of [`NAME`].
const COMMANDLAYER: &str = "commandlayer.sandbox.example";

/// The name whose card a host also serves at a well-known path, if the sandbox has this name.
const NAME: &str = "summarizeagent.eth";

/// The host of the agents' cards serves the registration file of this name (ERC-8004). In a sandbox with this name, the
/// file contains two agents, one of them twice.
const TWO_AGENTS: &str = "two-agents.eth";

/// The manifest that the descriptor of that host refers to.
const REGISTRY: &str = card!("registry");

const CARD: &str = "/.well-known/agent-card.json";
const OLDER_CARD: &str = "/.well-known/agent.json";

/// The documents by host and path.
const CARDS: [(&str, &str, &str); 12] = [
    ("a2a.sandbox.example", CARD, card!("a2a")),
    ("a2a.sandbox.example", OLDER_CARD, card!("a2a")),
    ("aevum.sandbox.example", OLDER_CARD, card!("aevum")),
    ("anypoint.sandbox.example", CARD, card!("anypoint")),
    ("anypoint.sandbox.example", "/cards/weather-desk.json", card!("anypoint")),
    ("broken.sandbox.example", CARD, card!("a2a-bad")),
    ("broken.sandbox.example", OLDER_CARD, card!("aevum-bad")),
    (COMMANDLAYER, OLDER_CARD, card!("descriptor")),
    (COMMANDLAYER, "/agent-cards/meta/manifest.json", REGISTRY),
    ("hostile.sandbox.example", "/card.json", card!("a2a")),
    // No root card, since the host has two systems.
    ("orloj.sandbox.example", "/v1/agent-systems/research/.well-known/agent-card.json", card!("orloj")),
    ("orloj.sandbox.example", "/v1/agent-systems/broken/.well-known/agent-card.json", "{\"name\": \"broken\"}"),
];

/// The IPFS directory of that manifest.
pub(super) fn manifest_directory() -> (ContentId, BlocksByCid) {
    let files = BTreeMap::from([("meta/manifest.json".to_owned(), Bytes::from_static(REGISTRY.as_bytes()))]);
    build::build_directory_tree(&files, build::UnixFsLayout::default())
}

/// Every document of these hosts. `card_of` returns the card of a name, if the sandbox has it.
pub(super) fn discovery_documents(
    card_of: impl Fn(&str) -> Option<Bytes>,
) -> Vec<(&'static str, &'static str, ServedFile)> {
    let well = |(host, path, text): &(&'static str, &'static str, &'static str)| {
        (*host, *path, ServedFile::served_correctly(Bytes::from_static(text.as_bytes())))
    };
    let badly = |path, behaviour| {
        let body = Bytes::from_static(card!("a2a").as_bytes());
        ("hostile.sandbox.example", path, ServedFile { behaviour, other: body.clone(), body })
    };
    let mut documents: Vec<_> = CARDS.iter().map(well).collect();
    let registration = if card_of(TWO_AGENTS).is_some() { card!("registration-of-two") } else { card!("registration") };
    let registration = ServedFile::served_correctly(Bytes::from_static(registration.as_bytes()));
    documents.push(("cards.sandbox.example", "/.well-known/agent-registration.json", registration));
    documents.extend(card_of(NAME).map(|card| (COMMANDLAYER, CARD, ServedFile::served_correctly(card))));
    documents.push(badly(CARD, WebServerBehaviour::Redirect("https://127.0.0.1/card.json".to_owned())));
    documents.push(badly(OLDER_CARD, WebServerBehaviour::Oversize));
    documents.push(badly("/.well-known/agent-cards-v1.0.0.json", WebServerBehaviour::Html));
    documents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_descriptor_names_the_cid_of_the_manifest() {
        let cid = manifest_directory().0.to_string();
        assert!(card!("descriptor").contains(&format!("ipfs://{cid}/meta/manifest.json")), "{cid}");
    }
}
