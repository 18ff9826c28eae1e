//! What an agent of a [`SandboxSpec`](super::spec::SandboxSpec) publishes: the bytes of its card, the card's blocks and
//! the records.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::schemas::SandboxSchemaLayers;
use super::spec::{CardEdit, IpfsCardLayout, SandboxAgentSpec, SandboxSpecError, TextEncoding, TextReplacement};
use super::web::WebServerBehaviour;
use clresolve_core::digest::Digest;
use clresolve_ipfs::ContentId;
use clresolve_ipfs::build::{self, BlocksByCid, DagBuilder, HamtFanout};

/// Host of every card, unless a record says otherwise.
pub(crate) const CARDS_HOST: &str = "cards.sandbox.example";

#[derive(Clone, Debug)]
pub(crate) struct SandboxAgentPublication {
    pub(crate) url_path: String,
    pub(crate) card: Bytes,
    /// Another version of the card.
    pub(crate) other: Bytes,
    /// How the card is served, with placeholders filled in.
    pub(crate) web: WebServerBehaviour,
    pub(crate) blocks: BlocksByCid,
    /// The records that are set.
    pub(crate) records: BTreeMap<String, String>,
    /// The records that differ in the newest block. An empty value means that the record is not set.
    pub(crate) latest: BTreeMap<String, String>,
}

impl SandboxAgentSpec {
    pub(crate) fn publish(&self, schemas: &SandboxSchemaLayers) -> Result<SandboxAgentPublication, SandboxSpecError> {
        let good = self.good_card(schemas);
        let class = self.class.as_str();
        let url_path = format!("/agents/v1.0.0/{class}/{}.json", self.name);
        let mut fill = PlaceholderValues::new(&[
            ("name", &self.name),
            ("label", self.label()),
            ("class", class),
            ("verb", self.verb()),
            ("url", &format!("https://{CARDS_HOST}{url_path}")),
            ("schemas.cid", &schemas.layer_cid(self.class).to_string()),
            ("schemas.crlf", &schemas.request_schema_crlf_digest(self.class, self.verb())),
            ("schemas.request.sha256", &schemas.request_digest(self.class, self.verb())),
            ("schemas.receipt.sha256", &schemas.receipt_digest(self.class, self.verb())),
        ]);

        let members = self.card.edit_members(&good, &fill);
        let card = self.card.edit_bytes(&members, &fill).map_err(|detail| self.spec_error(detail))?;
        let mut other_good = good;
        other_good.insert("description".to_owned(), json!("Another version of this card."));
        let other_members = self.other.edit_members(&other_good, &fill);
        let other = self.other.edit_bytes(&other_members, &fill).map_err(|detail| self.spec_error(detail))?;

        let (stored, stored_other) = (self.store_card(&card), self.store_card(&other));
        fill.add_card_values("", &stored, &card);
        fill.add_card_values("other.", &stored_other, &other);
        let mut blocks = stored.blocks;
        blocks.extend(stored_other.blocks);

        let mut records = self.good_records(&members, &fill, schemas);
        records.extend(self.records.iter().map(|(key, value)| (key.clone(), fill.fill_text(value))));
        records.retain(|_, value| !value.is_empty());
        let latest = self.latest.iter().map(|(key, value)| (key.clone(), fill.fill_text(value))).collect();
        let web = match &self.web {
            WebServerBehaviour::Redirect(to) => WebServerBehaviour::Redirect(fill.fill_text(to)),
            other => other.clone(),
        };
        Ok(SandboxAgentPublication { url_path, card, other, web, blocks, records, latest })
    }

    fn good_card(&self, schemas: &SandboxSchemaLayers) -> Map<String, Value> {
        let (class, verb) = (self.class.as_str(), self.verb());
        let bound = schemas.verb_locations(self.class, verb);
        let card = json!({
            "$schema": "https://commandlayer.org/agent-cards/schemas/v1.0.0/_shared/agent.card.base.schema.json",
            "$id": format!("https://{CARDS_HOST}/agents/v1.0.0/{class}/{}.json", self.name),
            "id": self.name,
            "slug": self.label(),
            "display_name": format!("Sandbox agent {}", self.label()),
            "description": self.about,
            "owner": self.owner,
            "ens": self.name,
            "version": "1.0.0",
            "status": "active",
            "class": class,
            "implements": [verb],
            "schemas": {"request": bound.request.location, "receipt": bound.receipt.location},
            "schemas_mirror": {"request": bound.request.mirror, "receipt": bound.receipt.mirror},
            "entry": format!("x402://{}/{verb}/{}", self.name, self.route),
            "capabilities": {
                "operations": [format!("{verb}_text")],
                "input_types": ["text/plain", "application/json"],
                "output_types": ["application/json"],
            },
            "meta": {"publisher": "Sandbox Publisher", "contact": "agents@sandbox.example", "tags": [verb, "sandbox"]},
            "networks": ["eip155:1"],
            "license": "Apache-2.0",
            "created_at": "2026-01-05T09:00:00Z",
            "updated_at": "2026-02-10T12:30:00Z",
        });
        let Value::Object(members) = card else { unreachable!("the literal is an object") };
        members
    }

    fn good_records(
        &self,
        card: &Map<String, Value>,
        fill: &PlaceholderValues,
        schemas: &SandboxSchemaLayers,
    ) -> BTreeMap<String, String> {
        let member = |key: &str, otherwise: String| match card.get(key) {
            Some(Value::String(text)) if !text.trim().is_empty() => text.clone(),
            _ => otherwise,
        };
        let entry = format!("x402://{}/{}/{}", self.name, self.verb(), self.route);
        let mirror = if fill.get("path").is_empty() { "ipfs://{cid}" } else { "ipfs://{cid}/{path}" };
        let mut records = BTreeMap::from([
            ("cl.entry".to_owned(), member("entry", entry)),
            ("cl.agentcard".to_owned(), fill.fill_text("{url}")),
            ("cl.cid.agentcard".to_owned(), fill.fill_text("{cid}")),
            ("cl.agentcard.mirror.ipfs".to_owned(), fill.fill_text(mirror)),
            ("cl.checksum.agentcard".to_owned(), fill.fill_text("sha256:{sha256}")),
            ("cl.owner".to_owned(), member("owner", self.owner.clone())),
        ]);
        if self.schema_records {
            records.extend(schemas.schema_records(self.class, self.verb()));
        }
        records
    }

    /// Stores `card` in IPFS with this layout.
    fn store_card(&self, card: &Bytes) -> IpfsStoredCard {
        let path = format!("agents/v1.0.0/{}/{}.json", self.class.as_str(), self.name);
        let small = build::UnixFsLayout { chunk: SMALL_CHUNK, ..build::UnixFsLayout::default() };
        let sharded =
            build::UnixFsLayout { shard_above: 4, fanout: HamtFanout::SMALLEST, ..build::UnixFsLayout::default() };
        let mut dag = DagBuilder::default();
        match self.layout {
            IpfsCardLayout::Raw => IpfsStoredCard::from_file(dag.add_raw_block(card.clone()).cid, dag.into_blocks()),
            IpfsCardLayout::File => IpfsStoredCard::from_file(dag.add_file(card, SMALL_CHUNK).cid, dag.into_blocks()),
            IpfsCardLayout::Symlink => IpfsStoredCard::from_non_file_block(SYMLINK),
            IpfsCardLayout::Garbage => IpfsStoredCard::from_non_file_block(GARBAGE),
            IpfsCardLayout::Directory => {
                IpfsStoredCard::from_directory_tree(path, card, build::UnixFsLayout::default(), 0)
            }
            IpfsCardLayout::DirectoryOfBlocks => IpfsStoredCard::from_directory_tree(path, card, small, 0),
            IpfsCardLayout::Hamt => IpfsStoredCard::from_directory_tree(path, card, sharded, HAMT_SIBLINGS),
        }
    }
}

/// A chunk size so small that any card has several chunks.
const SMALL_CHUNK: usize = 512;

/// Number of files beside the card in a sharded directory: enough for nested shards.
const HAMT_SIBLINGS: usize = 40;

/// dag-pb with UnixFS data of type 4 (symlink) to `card.json`.
const SYMLINK: &[u8] = b"\x0a\x0d\x08\x04\x12\x09card.json";

/// dag-pb whose data is not a UnixFS message.
const GARBAGE: &[u8] = b"\x0a\x04\xff\xff\xff\xff";

/// A card stored in IPFS.
struct IpfsStoredCard {
    cid: ContentId,
    path: String,
    blocks: BlocksByCid,
}

impl IpfsStoredCard {
    fn from_file(cid: ContentId, blocks: BlocksByCid) -> Self {
        Self { cid, path: String::new(), blocks }
    }

    /// A dag-pb block that is not a file.
    fn from_non_file_block(block: &'static [u8]) -> Self {
        let cid = ContentId::from_dag_pb_block(block);
        Self::from_file(cid, BlocksByCid::from([(cid, Bytes::from_static(block))]))
    }

    fn from_directory_tree(path: String, card: &Bytes, layout: build::UnixFsLayout, siblings: usize) -> Self {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut files: BTreeMap<String, Bytes> = (0..siblings)
            .map(|n| (format!("{folder}/agent-{n}.json"), Bytes::from(format!("{{\"number\": {n}}}\n"))))
            .collect();
        files.insert("README.md".to_owned(), Bytes::from_static(b"Agent-Cards of the sandbox.\n"));
        files.insert(path.clone(), card.clone());
        let (cid, blocks) = build::build_directory_tree(&files, layout);
        Self { cid, path, blocks }
    }
}

/// The CID in version 0 form. Empty if it has none.
fn cid_v0(cid: &ContentId) -> String {
    let hash = cid.to_bytes().strip_prefix(&[1, 0x70]).and_then(|hash| ContentId::from_bytes(hash).ok());
    hash.map(|cid| cid.to_string()).unwrap_or_default()
}

struct PlaceholderValues(BTreeMap<String, String>);

impl PlaceholderValues {
    fn new(values: &[(&str, &str)]) -> Self {
        Self(values.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
    }

    fn add_card_values(&mut self, prefix: &str, stored: &IpfsStoredCard, card: &[u8]) {
        let digest = Digest::compute(card).to_hex();
        self.0.insert(format!("{prefix}SHA256"), digest.to_uppercase());
        self.0.insert(format!("{prefix}sha256"), digest);
        self.0.insert(format!("{prefix}cid"), stored.cid.to_string());
        self.0.insert(format!("{prefix}cid.v0"), cid_v0(&stored.cid));
        self.0.insert(format!("{prefix}path"), stored.path.clone());
    }

    fn get(&self, key: &str) -> &str {
        self.0.get(key).map_or("", String::as_str)
    }

    /// `text` with every known placeholder filled in.
    fn fill_text(&self, text: &str) -> String {
        if !text.contains('{') {
            return text.to_owned();
        }
        self.0.iter().fold(text.to_owned(), |text, (key, value)| text.replace(&format!("{{{key}}}"), value))
    }

    /// `value` with the placeholders in all its texts filled in.
    fn fill_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.fill_text(text)),
            Value::Array(items) => Value::Array(items.iter().map(|item| self.fill_value(item)).collect()),
            Value::Object(members) => {
                Value::Object(members.iter().map(|(key, value)| (key.clone(), self.fill_value(value))).collect())
            }
            other => other.clone(),
        }
    }
}

impl CardEdit {
    fn edit_members(&self, good: &Map<String, Value>, fill: &PlaceholderValues) -> Map<String, Value> {
        let mut card = Value::Object(good.clone());
        apply_merge_patch(&mut card, &fill.fill_value(&Value::Object(self.patch.clone())));
        for pointer in &self.remove {
            remove_at_pointer(&mut card, pointer);
        }
        match card {
            Value::Object(members) => members,
            _ => Map::new(),
        }
    }

    fn edit_bytes(&self, members: &Map<String, Value>, fill: &PlaceholderValues) -> Result<Bytes, String> {
        let mut text = self.text.as_ref().map_or_else(|| render_card(members), |text| fill.fill_text(text));
        for TextReplacement { from, to } in &self.replace {
            let from = fill.fill_text(from);
            if !text.contains(&from) {
                return Err(format!("the card has no {from:?} to replace"));
            }
            text = text.replacen(&from, &fill.fill_text(to), 1);
        }
        if self.nest > 0 {
            let nested = format!("\"meta\": {{\"nested\": {}{},", "[".repeat(self.nest), "]".repeat(self.nest));
            text = text.replacen("\"meta\": {", &nested, 1);
        }
        text.push_str(&self.append);
        text.push_str(&" ".repeat(self.pad));
        Ok(Bytes::from(self.encoding.encode_text(&text)))
    }
}

impl TextEncoding {
    fn encode_text(self, text: &str) -> Vec<u8> {
        match self {
            Self::Utf8 => text.as_bytes().to_vec(),
            Self::Utf8Bom => [b"\xef\xbb\xbf", text.as_bytes()].concat(),
            Self::Utf16 => "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect(),
            Self::Latin1 => text.chars().map(|c| u8::try_from(c).unwrap_or(b'?')).collect(),
        }
    }
}

/// RFC 7386.
fn apply_merge_patch(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(members) = target else { return };
    for (key, value) in patch {
        if value.is_null() {
            members.remove(key);
        } else {
            apply_merge_patch(members.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

fn remove_at_pointer(card: &mut Value, pointer: &str) {
    let Some((parent, last)) = pointer.rsplit_once('/') else { return };
    if let Some(Value::Object(members)) = card.pointer_mut(parent) {
        members.remove(&last.replace("~1", "/").replace("~0", "~"));
    }
}

/// The members of a card in the usual order. Other members follow.
const ORDER: [&str; 21] = [
    "$schema",
    "$id",
    "id",
    "slug",
    "display_name",
    "description",
    "owner",
    "ens",
    "version",
    "status",
    "class",
    "implements",
    "schemas",
    "schemas_mirror",
    "entry",
    "capabilities",
    "meta",
    "networks",
    "license",
    "created_at",
    "updated_at",
];

/// The card in the usual format: indented by two spaces, in [`ORDER`], with a final newline.
fn render_card(members: &Map<String, Value>) -> String {
    let known = ORDER.iter().filter_map(|key| members.get_key_value(*key));
    let others = members.iter().filter(|(key, _)| !ORDER.contains(&key.as_str()));
    let lines: Vec<String> = known
        .chain(others)
        .map(|(key, value)| format!("  {}: {}", Value::from(key.as_str()), format!("{value:#}").replace('\n', "\n  ")))
        .collect();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_changes_adds_and_nests() {
        let mut card = json!({"a": 1, "b": {"c": 2, "d": 3}});
        apply_merge_patch(&mut card, &json!({"a": [1], "b": {"c": null, "e": 4}, "f": {"g": 5}}));
        assert_eq!(card, json!({"a": [1], "b": {"d": 3, "e": 4}, "f": {"g": 5}}));
    }

    #[test]
    fn a_pointer_removes_one_member() {
        let mut card = json!({"a": {"b/c": 1, "d": 2}});
        remove_at_pointer(&mut card, "/a/b~1c");
        remove_at_pointer(&mut card, "/x/y");
        assert_eq!(card, json!({"a": {"d": 2}}));
    }

    #[test]
    fn a_rendered_card_reads_back() {
        let card = json!({"zeta": {"a": [1, {"b": "two\nlines"}]}, "ens": "x.eth", "$id": "i", "implements": []});
        let Value::Object(members) = &card else { unreachable!() };
        let text = render_card(members);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), card);
        assert!(text.starts_with("{\n  \"$id\": \"i\",\n  \"ens\""), "{text}");
    }
}
