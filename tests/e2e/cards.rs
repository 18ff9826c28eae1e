//! Cards, published and made, and the records that bind them.

use std::fs;
use std::path::{Path, PathBuf};

use alloy_primitives::hex;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

/// A published card.
pub(crate) struct Card {
    /// The agent's name.
    pub(crate) name: String,
    /// The folder it was published in.
    pub(crate) class: Class,
    /// Path in the release.
    pub(crate) path: String,
    /// The document.
    pub(crate) bytes: Vec<u8>,
}

/// Class of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Commons,
    Commercial,
}

impl Card {
    /// SHA-256 of the document, in hex.
    pub(crate) fn sha256(&self) -> String {
        sha256(&self.bytes)
    }
}

/// All cards of a release of a line (`1.0.0`, `1.1.0`), sorted by path.
pub(crate) fn published(release: &Path, line: &str) -> Vec<Card> {
    let classes = [(Class::Commercial, "commercial"), (Class::Commons, "commons")];
    let folder = |(class, folder)| published_in(release, class, &format!("agents/v{line}/{folder}"));
    classes.into_iter().flat_map(folder).collect()
}

fn published_in(release: &Path, class: Class, folder: &str) -> Vec<Card> {
    let entries = fs::read_dir(release.join(folder)).unwrap_or_else(|e| panic!("{folder}: {e}"));
    let mut files: Vec<String> =
        entries.map(|entry| entry.expect("a readable folder").file_name().to_string_lossy().into_owned()).collect();
    files.sort();
    let read = |file: String| {
        let path = format!("{folder}/{file}");
        let bytes = fs::read(release.join(&path)).unwrap_or_else(|e| panic!("{path}: {e}"));
        Card { name: file.trim_end_matches(".json").to_owned(), class, path, bytes }
    };
    files.into_iter().map(read).collect()
}

/// The card of `name`, published at `url`: `model` under that name.
pub(crate) fn renamed(model: &Card, name: &str, url: &str) -> Vec<u8> {
    let label = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    let text = std::str::from_utf8(&model.bytes).expect("a published card is text");
    let document: Value = serde_json::from_str(text).expect("a card is JSON");
    let id = document["$id"].as_str().expect("a published card has one");
    let own = text.replace(&model.name, name).replace(&label(&model.name), &label(name));
    own.replace(&id.replace(&model.name, name), url).into_bytes()
}

/// The records that bind `card`, served at `url` and at `path` under `cid`, and those of its schema binding: derived
/// from the card, since the publisher documents the records of hardly any name.
pub(crate) fn records(card: &[u8], url: &str, cid: &str, path: &str) -> Value {
    let document: Value = serde_json::from_slice(card).expect("a card is JSON");
    let mut records = json!({
        "cl.entry": document["entry"],
        "cl.agentcard": url,
        "cl.cid.agentcard": cid,
        "cl.agentcard.mirror.ipfs": format!("ipfs://{cid}/{path}"),
        "cl.checksum.agentcard": format!("sha256:{}", sha256(card)),
        "cl.owner": document["owner"],
        "cl.verb": document["implements"][0],
        "cl.version": document["version"],
        "cl.schema.request": document["schemas"]["request"],
        "cl.schema.receipt": document["schemas"]["receipt"],
    });
    let location = document["schemas"]["request"].as_str().and_then(|location| location.strip_prefix("ipfs://"));
    if let Some((release, _)) = location.and_then(|location| location.split_once('/')) {
        records["cl.cid.schemas"] = release.into();
        records["cl.schemas.mirror.ipfs"] = format!("ipfs://{release}").into();
    }
    records
}

/// The record sets that the publisher documents, by name.
pub(crate) fn documented(folder: &Path) -> Map<String, Value> {
    let files = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let paths = files.map(|file| file.expect("a readable folder").path());
    let read = |path: PathBuf| {
        let bytes = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let set: Value = serde_json::from_slice(&bytes).expect("a record set is JSON");
        (set["name"].as_str().expect("a name").to_owned(), set["txt"].clone())
    };
    paths.filter(|path| path.is_file()).map(read).collect()
}

fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
