//! The published vectors of receipts: each gets its stated result, and no changed byte does any good.
//!
//! `CLRESOLVE_X402` names the folder in which they stand below `vectors`; without it these tests say so and pass. Every
//! file of the folder must be listed in `expected.json`, so that none goes untested.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clresolve_core::name::EnsName;
use clresolve_core::reason::Code;
use clresolve_core::state::State;
use clresolve_jose::PublicKey;
use clresolve_receipt::judge::{Agent, Check, Knowledge, Signer, Status};
use clresolve_receipt::{Family, Judgement, judge};
use jiff::Timestamp;
use serde_json::Value;

#[test]
fn x402_vectors_of_commandlayer_receipts_get_their_result() {
    let Some(vectors) = vectors() else { return };
    for vector in &vectors {
        let found = vector.judged(&vector.receipt);
        let row = |check| found.row(check).map(|row| row.status);
        let name = &vector.file;
        if vector.file.contains("duplicate-key") {
            assert_eq!(codes(&found), [Code::ReceiptDuplicateKey], "{name}");
            continue;
        }
        assert_eq!(found.family.map(Family::slug), Some(vector.family.as_str()), "{name}");
        assert_eq!(
            found.row(Check::Hash).map(|row| row.status == Status::Fail),
            Some(vector.has_another_hash()),
            "{name}"
        );
        let signature = if vector.is_altered() { Status::Fail } else { Status::Pass };
        assert_eq!(row(Check::Signature), Some(signature), "{name}: {found:#?}");
        if let Some(digest) = &vector.canonical_sha256 {
            assert_eq!(found.canonical_sha256.map(|found| found.hex()).as_ref(), Some(digest), "{name}");
        }
        if vector.file.contains("other-signer-name") {
            assert_eq!(codes(&found), [Code::ReceiptSignerMismatch], "{name}");
        } else {
            assert_eq!(found.state() == State::Trusted, !vector.is_altered(), "{name}: {found:#?}");
        }
    }
}

/// Whatever byte of a receipt is changed: it is trusted only where the text means what it meant, or where the member is
/// one that nobody signs; and such a member never changes the state.
#[test]
fn x402_vectors_of_receipts_withstand_every_changed_byte() {
    let Some(vectors) = vectors() else { return };
    for vector in vectors.iter().filter(|vector| !vector.is_altered() && !vector.file.starts_with("trap")) {
        let good = vector.judged(&vector.receipt);
        assert_eq!(good.state(), State::Trusted, "{}", vector.file);
        for at in 0..vector.receipt.len() {
            for byte in changes(vector.receipt[at]) {
                let mut changed = vector.receipt.clone();
                changed[at] = byte;
                let found = vector.judged(&changed);
                let shown = || format!("{} at {at}: {}", vector.file, String::from_utf8_lossy(&changed));
                let means_the_same = signed(&changed, &found) == signed(&vector.receipt, &good);
                if found.state() == State::Trusted {
                    assert!(means_the_same, "{}", shown());
                } else if means_the_same && vector.is_readable(&changed) {
                    panic!("{}: {found:#?}", shown());
                }
            }
        }
    }
}

/// What the family's verifiers sign beside a JSON value that nobody covers, by the value of the whole receipt less what is
/// listed as unsigned. `None` where the text is no JSON.
fn signed(receipt: &[u8], found: &Judgement) -> Option<Value> {
    let mut value: Value = serde_json::from_slice(receipt).ok()?;
    for pointer in &found.unsigned {
        let (parent, name) = pointer.rsplit_once('/')?;
        if let Some(Value::Object(members)) = value.pointer_mut(parent) {
            members.remove(name)?;
        }
    }
    Some(value)
}

/// Another character of its kind, the other case, and one that has a meaning of its own.
fn changes(byte: u8) -> impl Iterator<Item = u8> {
    let kinds = [byte ^ 1, byte ^ 0x20, b'"'];
    kinds.into_iter().filter(move |changed| *changed != byte)
}

fn codes(found: &Judgement) -> Vec<Code> {
    found.reasons.iter().map(|reason| reason.code).collect()
}

struct Vector {
    file: String,
    family: String,
    kind: String,
    canonical_sha256: Option<String>,
    hash_matches: Option<bool>,
    receipt: Vec<u8>,
    signer: Signer,
    agent: Agent,
}

impl Vector {
    fn is_altered(&self) -> bool {
        self.kind == "tampered"
    }

    /// The published list says so also of families without a digest: what it means there is the signature.
    fn has_another_hash(&self) -> bool {
        let has_digest =
            !["mcp-1.1.0-top-level-proof", "runtime-core-layered", "clas-execution-v1"].contains(&self.family.as_str());
        has_digest && self.hash_matches == Some(false)
    }

    fn judged(&self, receipt: &[u8]) -> Judgement {
        let now = "2026-01-02T00:00:00Z".parse::<Timestamp>().expect("a time");
        judge(receipt, &Knowledge { agent: Some(&self.agent), signer: Ok(&self.signer), request: None, now })
    }

    /// Whether the changed text is strict JSON in which no member stands twice.
    fn is_readable(&self, receipt: &[u8]) -> bool {
        !codes(&self.judged(receipt)).contains(&Code::ReceiptDuplicateKey)
    }
}

fn vectors() -> Option<Vec<Vector>> {
    let folder = folder()?;
    let read = |path: &Path| std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let expected: Value = serde_json::from_slice(&read(&folder.join("expected.json"))).expect("JSON");
    let key = expected["key"]["cl.sig.pub"].as_str().expect("a key");
    let kid = expected["key"]["cl.sig.kid"].as_str().expect("a key id");
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let vectors: Vec<_> = expected["vectors"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|row| {
            let file = row["file"].as_str().expect("a file").rsplit('/').next().expect("a name").to_owned();
            let family = text(&row["family"]).expect("a family");
            let signer = match family.as_str() {
                "commercial-json-stringify" => "commercial.sandbox.eth",
                "clas-execution-v1" => "summarizeagent.eth",
                _ => "runtime.sandbox.eth",
            };
            Vector {
                receipt: read(&folder.join(&file)),
                kind: text(&row["kind"]).expect("a kind"),
                canonical_sha256: text(&row["canonical_sha256"]),
                hash_matches: row["hash_matches"].as_bool(),
                signer: Signer {
                    name: EnsName::parse(signer).expect("a name"),
                    key: Ok(PublicKey::from_record(key).expect("a key")),
                    kid: Some(kid.to_owned()),
                    canonical: None,
                    block: 1,
                },
                agent: Agent {
                    name: EnsName::parse("summarizeagent.eth").expect("a name"),
                    entry: Some("x402://summarizeagent.eth/summarize/v1".to_owned()),
                    verbs: vec!["summarize".to_owned()],
                },
                file,
                family,
            }
        })
        .collect();
    let listed: BTreeSet<_> = vectors.iter().map(|vector| vector.file.clone()).collect();
    let there: BTreeSet<_> = std::fs::read_dir(&folder)
        .expect("the folder of receipts")
        .map(|file| file.expect("a file").file_name().to_string_lossy().into_owned())
        .filter(|file| file != "expected.json")
        .collect();
    assert_eq!(listed, there);
    Some(vectors)
}

/// The folder of receipts. Where the variable is unset the test says that it is skipped.
fn folder() -> Option<PathBuf> {
    let Some(root) = std::env::var_os("CLRESOLVE_X402") else {
        println!("skipped: CLRESOLVE_X402 is not set");
        return None;
    };
    Some(Path::new(&root).join("vectors/commandlayer-receipts"))
}
