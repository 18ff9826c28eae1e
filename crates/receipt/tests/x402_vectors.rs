//! The published vectors of receipts: each gets its stated result, and no changed byte does any good.
//!
//! `CLRESOLVE_X402` names the folder in which they stand below `vectors`; without it these tests say so and pass. Every
//! file of the folder must be listed in `expected.json`, so that none goes untested.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clresolve_core::name::EnsName;
use clresolve_core::reason::{Code, Reason};
use clresolve_core::state::State;
use clresolve_jose::PublicKey;
use clresolve_payment::route::Route;
use clresolve_receipt::judge::{
    AgentRoutes, ReceiptAgent, ReceiptCheck, ReceiptKnowledge, ReceiptSigner, SignerAddresses, Status,
};
use clresolve_receipt::{Family, ReceiptJudgement, judge};
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
            found.row(ReceiptCheck::Hash).map(|row| row.status == Status::Fail),
            Some(vector.has_another_hash()),
            "{name}"
        );
        let signature = if vector.is_altered() { Status::Fail } else { Status::Pass };
        assert_eq!(row(ReceiptCheck::Signature), Some(signature), "{name}: {found:#?}");
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
/// one that nobody signs; and such a member never changes the state, be the receipt good or bad. One that was altered stays
/// refused, unless the change undoes that.
#[test]
fn x402_vectors_of_receipts_withstand_every_changed_byte() {
    let Some(vectors) = vectors() else { return };
    let judged = vectors.iter().map(|vector| (vector, vector.judged(&vector.receipt)));
    let (good, bad): (Vec<_>, Vec<_>) = judged.partition(|(_, found)| found.state() == State::Trusted);
    assert!(good.len() >= 10 && bad.len() >= 10, "{} good, {} bad", good.len(), bad.len());
    let meanings: Vec<_> = good.iter().map(|(vector, found)| signed(&vector.receipt, found)).collect();
    for ((vector, judged), meaning) in good.iter().zip(&meanings) {
        for changed in vector.changed() {
            let found = vector.judged(&changed);
            let shown = || format!("{}: {}", vector.file, String::from_utf8_lossy(&changed));
            let means_the_same = [&found, judged].iter().any(|by| signed(&changed, by) == *meaning);
            if found.state() == State::Trusted {
                assert!(means_the_same, "{}", shown());
            } else if means_the_same && vector.is_readable(&changed) {
                panic!("{}: {found:#?}", shown());
            }
        }
    }
    for (vector, judged) in &bad {
        let meaning = signed(&vector.receipt, judged).filter(|_| vector.is_readable(&vector.receipt));
        for changed in vector.changed() {
            let found = vector.judged(&changed);
            let is_undone = || meanings.contains(&signed(&changed, &found));
            let is_right = found.state() != State::Trusted || is_undone();
            let shown = || format!("{}: {}", vector.file, String::from_utf8_lossy(&changed));
            assert!(is_right, "{}", shown());
            let means_the_same = || [&found, judged].iter().any(|by| signed(&changed, by) == meaning);
            if meaning.is_some() && means_the_same() && vector.is_readable(&changed) {
                assert_eq!(found.state(), judged.state(), "{}: {found:#?}", shown());
            }
        }
    }
}

/// An offer is no receipt. x402's own receipt holds for the agent that has the signer's address and the receipt's URL.
#[test]
fn x402_vectors_of_offers_and_receipts_are_judged() {
    let Some(folder) = folder("offer-receipt") else { return };
    let mut receipts = 0;
    for (file, vector) in artifacts(&folder) {
        let judged = |of: &Seller| of.judged(&vector["artifact"]);
        let payee = Seller::new(PAYEE);
        let found = judged(&payee);
        if file.starts_with("offer") {
            assert_eq!(codes(&found), [Code::ReceiptSchemaInvalid], "{file}");
            continue;
        }
        receipts += 1;
        let expect = &vector["expect"];
        let holds = [&expect["signature_valid"], &expect["signature_valid_for_payee"]];
        let holds = holds.into_iter().find_map(Value::as_bool).expect("it says whether it holds");
        assert_eq!(found.family, Some(Family::X1), "{file}");
        assert_eq!(found.state() == State::Trusted, holds, "{file}: {found:#?}");
        assert_eq!(judged(&Seller::new(THIEF)).state(), State::Untrusted, "{file}: by somebody else");
        if !holds {
            assert_eq!(codes(&found), [Code::ReceiptSignatureInvalid], "{file}");
        }
    }
    assert!(receipts > 0);
}

/// Whatever byte of x402's own receipt is changed: it is trusted only where it means what it meant, or where the member is
/// one that nobody signs. One that was altered stays refused, unless the change undoes that.
#[test]
fn x402_vectors_of_x402_s_own_receipts_withstand_every_changed_byte() {
    let Some(folder) = folder("offer-receipt") else { return };
    let seller = Seller::new(PAYEE);
    let receipts = artifacts(&folder).into_iter().filter(|(file, _)| file.starts_with("receipt"));
    let receipts: Vec<_> = receipts.filter(|(_, vector)| vector["artifact"].is_object()).collect();
    let with_note = |vector: &Value| {
        let mut artifact = vector["artifact"].clone();
        artifact.as_object_mut().expect("an object").insert("note".to_owned(), "of nobody".into());
        artifact.to_string().into_bytes()
    };
    let texts = receipts.iter().map(|(file, vector)| (file, with_note(vector)));
    let judged = texts.map(|(file, text)| (file, seller.judged_bytes(&text), text));
    let (good, bad): (Vec<_>, Vec<_>) = judged.partition(|(_, found, _)| found.state() == State::Trusted);
    let meanings: Vec<_> = good.iter().map(|(_, found, text)| signed(text, found)).collect();
    assert!(!good.is_empty() && bad.len() > 1, "{} good, {} bad", good.len(), bad.len());
    for (file, found, text) in good.iter().chain(&bad) {
        let is_good = found.state() == State::Trusted;
        assert!(!is_good || found.unsigned == ["/note"], "{file}: {found:#?}");
        for (at, byte) in (0..text.len()).flat_map(|at| changes(text[at]).map(move |byte| (at, byte))) {
            let mut changed = text.clone();
            changed[at] = byte;
            let found = seller.judged_bytes(&changed);
            let now = signed(&changed, &found);
            let means_a_good_one = meanings.iter().any(|meaning| same_artifact(now.clone(), meaning.clone()));
            let is_right = (found.state() == State::Trusted) == means_a_good_one;
            let shown = || format!("{file} at {at}: {}", String::from_utf8_lossy(&changed));
            assert!(is_right || !is_good && found.state() != State::Trusted, "{}: {found:#?}", shown());
        }
    }
}

/// Whether two artifacts say the same under the same signature: the hex digits behind `0x` have two cases.
fn same_artifact(one: Option<Value>, other: Option<Value>) -> bool {
    let lower = |value: Option<Value>| {
        let mut value = value?;
        let digits = value["signature"].as_str()?.strip_prefix("0x")?.to_lowercase();
        value["signature"] = digits.into();
        Some(value)
    };
    let one = lower(one);
    one.is_some() && one == lower(other)
}

const PAYEE: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const THIEF: &str = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC";

/// An agent with one address, at the place of the vectors.
struct Seller(ReceiptAgent);

impl Seller {
    fn new(address: &str) -> Self {
        let settled = vec![address.parse().expect("an address")];
        let route = Route::configured("https://api.sandbox.example/summarize/v1").expect("a route");
        Self(ReceiptAgent {
            name: EnsName::parse("summarizeagent.eth").expect("a name"),
            entry: None,
            verbs: Vec::new(),
            addresses: SignerAddresses { settled, open: None },
            routes: AgentRoutes { settled: vec![route], open: None },
        })
    }

    fn judged(&self, artifact: &Value) -> ReceiptJudgement {
        self.judged_bytes(artifact.to_string().as_bytes())
    }

    fn judged_bytes(&self, receipt: &[u8]) -> ReceiptJudgement {
        let signer = Reason::new(Code::ReceiptKeyUnpublished);
        let now = Timestamp::from_second(1_795_296_121).expect("a time");
        judge(
            receipt,
            &ReceiptKnowledge {
                agent: Some(&self.0),
                signer: Err(&signer),
                request: None,
                bought: None,
                earliest: None,
                schema: None,
                now,
            },
        )
    }
}

/// The files of a folder in JSON, with their names.
fn artifacts(folder: &Path) -> Vec<(String, Value)> {
    let files = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let read = |path: PathBuf| {
        let text = std::fs::read(&path).expect("a readable file");
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        (name.expect("a name"), serde_json::from_slice(&text).expect("JSON"))
    };
    files.map(|file| read(file.expect("a file").path())).collect()
}

/// What the family's verifiers sign beside a JSON value that nobody covers, by the value of the whole receipt less what is
/// listed as unsigned. `None` where the text is no JSON.
fn signed(receipt: &[u8], found: &ReceiptJudgement) -> Option<Value> {
    let mut value: Value = serde_json::from_slice(receipt).ok()?;
    for pointer in &found.unsigned {
        let (parent, name) = pointer.rsplit_once('/')?;
        if let Some(Value::Object(members)) = value.pointer_mut(parent) {
            members.remove(name)?;
        }
    }
    Some(in_doubles(value))
}

/// The same with each number as the double that ECMAScript reads.
fn in_doubles(value: Value) -> Value {
    match value {
        Value::Number(number) => (number.as_f64().unwrap_or(f64::NAN) + 0.0).into(),
        Value::Array(items) => items.into_iter().map(in_doubles).collect(),
        Value::Object(members) => members.into_iter().map(|(name, value)| (name, in_doubles(value))).collect(),
        other => other,
    }
}

/// Another character of its kind, the other case, and one that has a meaning of its own.
fn changes(byte: u8) -> impl Iterator<Item = u8> {
    let kinds = [byte ^ 1, byte ^ 0x20, b'"'];
    kinds.into_iter().filter(move |changed| *changed != byte)
}

fn codes(found: &ReceiptJudgement) -> Vec<Code> {
    found.reasons.iter().map(|reason| reason.code).collect()
}

struct Vector {
    file: String,
    family: String,
    kind: String,
    canonical_sha256: Option<String>,
    hash_matches: Option<bool>,
    receipt: Vec<u8>,
    signer: ReceiptSigner,
    agent: ReceiptAgent,
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

    fn judged(&self, receipt: &[u8]) -> ReceiptJudgement {
        let now = "2026-01-02T00:00:00Z".parse::<Timestamp>().expect("a time");
        judge(
            receipt,
            &ReceiptKnowledge {
                agent: Some(&self.agent),
                signer: Ok(&self.signer),
                request: None,
                bought: None,
                earliest: None,
                schema: None,
                now,
            },
        )
    }

    /// The receipt with one byte changed, for every byte and each change.
    fn changed(&self) -> impl Iterator<Item = Vec<u8>> {
        let each = (0..self.receipt.len()).flat_map(|at| changes(self.receipt[at]).map(move |byte| (at, byte)));
        each.map(|(at, byte)| {
            let mut changed = self.receipt.clone();
            changed[at] = byte;
            changed
        })
    }

    /// Whether the changed text is strict JSON in which no member stands twice.
    fn is_readable(&self, receipt: &[u8]) -> bool {
        !codes(&self.judged(receipt)).contains(&Code::ReceiptDuplicateKey)
    }
}

fn vectors() -> Option<Vec<Vector>> {
    let folder = folder("commandlayer-receipts")?;
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
                signer: ReceiptSigner {
                    name: EnsName::parse(signer).expect("a name"),
                    key: Ok(PublicKey::from_record(key).expect("a key")),
                    kid: Ok(kid.to_owned()),
                    canonical: None,
                    block: 1,
                },
                agent: ReceiptAgent {
                    name: EnsName::parse("summarizeagent.eth").expect("a name"),
                    entry: Some("x402://summarizeagent.eth/summarize/v1".to_owned()),
                    verbs: vec!["summarize".to_owned()],
                    addresses: SignerAddresses::default(),
                    routes: AgentRoutes::default(),
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

/// A folder of vectors. Where the variable is unset the test says that it is skipped.
fn folder(of: &str) -> Option<PathBuf> {
    let Some(root) = std::env::var_os("CLRESOLVE_X402") else {
        println!("skipped: CLRESOLVE_X402 is not set");
        return None;
    };
    Some(Path::new(&root).join("vectors").join(of))
}
