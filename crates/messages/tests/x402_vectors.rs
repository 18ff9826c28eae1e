//! The published vectors of receipts: each gets its stated result, and no changed byte makes a receipt trusted for
//! another meaning.
//!
//! The environment variable `CLRESOLVE_X402` names the directory that contains `vectors`. Without it, these tests print
//! that they are skipped and pass. Every file of the directory must be listed in `expected.json`, so that none is
//! skipped silently.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clresolve_core::json::{JsonError, JsonLimits, parse_strict_json};
use clresolve_core::name::EnsName;
use clresolve_core::reason::ReasonCode;
use clresolve_core::state::TrustState;
use clresolve_jose::Ed25519PublicKey;
use clresolve_messages::receipt::judge::{
    AgentEntryRoutes, CalledAgent, PublishedReceiptSigner, ReceiptCheckKind, ReceiptKnowledge, SignerAddresses,
    StepStatus,
};
use clresolve_messages::receipt::{ReceiptFamily, ReceiptJudgement, judge_receipt};
use clresolve_payment::route::AgentRoute;
use jiff::Timestamp;
use serde_json::Value;

#[test]
fn x402_vectors_of_commandlayer_receipts_get_their_result() {
    let Some(vectors) = vectors() else { return };
    for vector in &vectors {
        let found = vector.judged(&vector.receipt);
        let row = |check| found.check_result(check).map(|row| row.status);
        let name = &vector.file;
        assert_eq!(found.trust_state() == TrustState::Trusted, vector.is_good(), "{name}: {found:#?}");
        if vector.has_a_member_twice() {
            assert_eq!(codes(&found), [ReasonCode::ReceiptDuplicateKey], "{name}");
            continue;
        }
        assert_eq!(found.family.map(ReceiptFamily::slug), Some(vector.family.as_str()), "{name}");
        assert_eq!(
            found.check_result(ReceiptCheckKind::Hash).map(|row| row.status == StepStatus::Fail),
            Some(vector.has_another_hash()),
            "{name}"
        );
        let signature = if vector.is_signed() { StepStatus::Pass } else { StepStatus::Fail };
        assert_eq!(row(ReceiptCheckKind::Signature), Some(signature), "{name}: {found:#?}");
        if let Some(digest) = &vector.canonical_sha256 {
            assert_eq!(found.canonical_sha256.map(|found| found.to_hex()).as_ref(), Some(digest), "{name}");
        }
        if vector.is_signed() && vector.names_another_signer() {
            assert_eq!(codes(&found), [ReasonCode::ReceiptSignerMismatch], "{name}");
        }
    }
}

/// Changes every byte of the receipts; see [`withstand_every_changed_byte`].
#[test]
fn x402_vectors_of_receipts_withstand_every_changed_byte() {
    let Some(vectors) = vectors() else { return };
    let case = |vector: &Vector| (vector.file.clone(), vector.receipt.clone());
    let cases: Vec<_> = vectors.iter().map(case).collect();
    let tried = withstand_every_changed_byte(&cases, |at, receipt| vectors[at].judged(receipt));
    assert!(
        tried.good >= 10 && tried.bad >= 10 && tried.unsigned_of_good > 0 && tried.unsigned_of_bad > 0,
        "{tried:?}"
    );
}

/// An offer is not a receipt. x402's own receipt is valid for the agent that has the signer's address and the receipt's
/// URL.
#[test]
fn x402_vectors_of_offers_and_receipts_are_judged() {
    let Some(folder) = folder("offer-receipt") else { return };
    let mut receipts = 0;
    for (file, vector) in artifacts(&folder) {
        let judged = |of: &Seller| of.judged(&vector["artifact"]);
        let payee = Seller::new(PAYEE);
        let found = judged(&payee);
        if file.starts_with("offer") {
            assert_eq!(codes(&found), [ReasonCode::ReceiptSchemaInvalid], "{file}");
            continue;
        }
        receipts += 1;
        let expect = &vector["expect"];
        let holds = [&expect["signature_valid"], &expect["signature_valid_for_payee"]];
        let holds = holds.into_iter().find_map(Value::as_bool).expect("it says whether it holds");
        assert_eq!(found.family, Some(ReceiptFamily::X1), "{file}");
        assert_eq!(found.trust_state() == TrustState::Trusted, holds, "{file}: {found:#?}");
        assert_eq!(judged(&Seller::new(THIEF)).trust_state(), TrustState::Untrusted, "{file}: by somebody else");
        if !holds {
            assert_eq!(codes(&found), [ReasonCode::ReceiptSignatureInvalid], "{file}");
        }
    }
    assert!(receipts > 0);
}

/// The same for x402's own receipts with EIP-712, and for offers, which are never receipts, whichever byte is changed.
#[test]
fn x402_vectors_of_x402_s_own_receipts_withstand_every_changed_byte() {
    let Some(folder) = folder("offer-receipt") else { return };
    let receipts = artifacts(&folder).into_iter().filter(|(_, vector)| vector["artifact"].is_object());
    let tried = x402_s_own(receipts.map(|(file, vector)| (file, vector["artifact"].clone())));
    assert!(tried.good > 0 && tried.bad > 5 && tried.unsigned_of_good > 0 && tried.unsigned_of_bad > 0, "{tried:?}");
}

/// The same for receipts by JWS. None is published, so the sandbox's are used.
#[test]
fn x402_s_own_receipts_by_jws_withstand_every_changed_byte() {
    let receipts = [
        ("x402-jws.json", include_str!("../../sandbox/src/receipts/x402-jws.json")),
        ("x402-jws-altered.json", include_str!("../../sandbox/src/receipts/x402-jws-altered.json")),
        ("x402-jws-forged.json", include_str!("../../sandbox/src/receipts/x402-jws-forged.json")),
    ];
    let receipts = receipts.map(|(file, text)| (file.to_owned(), serde_json::from_str(text).expect("JSON")));
    let tried = x402_s_own(receipts);
    assert!(tried.good == 1 && tried.bad == 2 && tried.unsigned_of_good > 0 && tried.unsigned_of_bad > 0, "{tried:?}");
}

/// Changes every byte of the artifacts, each with an added unsigned member.
fn x402_s_own(artifacts: impl IntoIterator<Item = (String, Value)>) -> Tried {
    let seller = Seller::new(PAYEE);
    let with_note = |(file, mut artifact): (String, Value)| {
        artifact.as_object_mut().expect("an object").insert("note".to_owned(), "of nobody".into());
        (file, artifact.to_string().into_bytes())
    };
    let cases: Vec<_> = artifacts.into_iter().map(with_note).collect();
    for (file, text) in &cases {
        let found = seller.judged_bytes(text);
        assert!(found.trust_state() != TrustState::Trusted || found.unsigned == ["/note"], "{file}: {found:#?}");
    }
    withstand_every_changed_byte(&cases, |_, receipt| seller.judged_bytes(receipt))
}

/// Number of changed receipts, and of changes that affected only unsigned content.
#[derive(Debug, Default)]
struct Tried {
    good: usize,
    bad: usize,
    unsigned_of_good: usize,
    unsigned_of_bad: usize,
}

/// Changes every byte of receipts, each with its file name; `judged` judges the result. A changed receipt may be
/// trusted only if its signed meaning is unchanged. A change of an unsigned member never changes the state, whether the
/// receipt is valid or not. A receipt that was already altered stays rejected unless the change reverts the alteration.
fn withstand_every_changed_byte(
    receipts: &[(String, Vec<u8>)],
    judged: impl Fn(usize, &[u8]) -> ReceiptJudgement,
) -> Tried {
    let before: Vec<_> = receipts.iter().enumerate().map(|(at, (_, text))| judged(at, text)).collect();
    let meanings = receipts.iter().zip(&before).map(|((_, text), found)| signed(text, found));
    let meanings: Vec<_> = meanings.collect();
    let is_good = |at: usize| before[at].trust_state() == TrustState::Trusted;
    let mut tried = Tried::default();
    for (at, (file, text)) in receipts.iter().enumerate() {
        let allowed: Vec<_> = match is_good(at) {
            true => vec![&meanings[at]],
            false => (0..receipts.len()).filter(|good| is_good(*good)).map(|good| &meanings[good]).collect(),
        };
        let mut unsigned = 0;
        for changed in changed(text) {
            let found = judged(at, &changed);
            let shown = || format!("{file}: {}: {found:#?}", String::from_utf8_lossy(&changed));
            let means = [&found, &before[at]].map(|by| signed(&changed, by));
            if found.trust_state() == TrustState::Trusted {
                assert!(means.iter().any(|meaning| allowed.contains(&meaning)), "{}", shown());
            }
            if is_readable(&before[at]) && is_readable(&found) && means.contains(&meanings[at]) && means[1].is_some() {
                assert_eq!(found.trust_state(), before[at].trust_state(), "{}", shown());
                unsigned += 1;
            }
        }
        let (receipts, of_unsigned) = match is_good(at) {
            true => (&mut tried.good, &mut tried.unsigned_of_good),
            false => (&mut tried.bad, &mut tried.unsigned_of_bad),
        };
        *receipts += 1;
        *of_unsigned += unsigned;
    }
    tried
}

/// The text with one byte changed, for every byte and each change.
fn changed(text: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let each = (0..text.len()).flat_map(|at| changes(text[at]).map(move |byte| (at, byte)));
    each.map(|(at, byte)| {
        let mut changed = text.to_vec();
        changed[at] = byte;
        changed
    })
}

/// Another character of the same kind, the other case, invalid UTF-8, and characters with a special meaning.
fn changes(byte: u8) -> impl Iterator<Item = u8> {
    let kinds = [byte ^ 1, byte ^ 0x20, byte ^ 0x80, b'"', b'\\', b'0', b'e', b' ', b',', b':', b'}'];
    kinds.into_iter().filter(move |changed| *changed != byte)
}

/// The judgement without a request, a purchase and a schema.
fn judged_at(receipt: &[u8], agent: &CalledAgent, signer: &PublishedReceiptSigner, now: Timestamp) -> ReceiptJudgement {
    let known = ReceiptKnowledge {
        agent: Some(agent),
        signer: Ok(signer),
        request: None,
        bought: None,
        earliest: None,
        schema: None,
        now,
    };
    judge_receipt(receipt, &known)
}

/// Whether no object has a duplicate member.
fn is_readable(found: &ReceiptJudgement) -> bool {
    !codes(found).contains(&ReasonCode::ReceiptDuplicateKey)
}

const PAYEE: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const THIEF: &str = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC";

/// The key of the vectors, whose seed is the byte seven repeated 32 times.
const KEY: &str = "ed25519:6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iw=";

/// An agent at the URL of the vectors, with one address for which their key signs.
struct Seller {
    agent: CalledAgent,
    signer: PublishedReceiptSigner,
}

impl Seller {
    fn new(address: &str) -> Self {
        let settled = vec![address.parse().expect("an address")];
        let route = AgentRoute::from_configuration("https://api.sandbox.example/summarize/v1").expect("a route");
        let agent = CalledAgent {
            name: EnsName::parse("summarizeagent.eth").expect("a name"),
            entry: None,
            verbs: Vec::new(),
            addresses: SignerAddresses { settled, open: None },
            routes: AgentEntryRoutes { settled: vec![route], open: None },
        };
        Self { agent, signer: signer("runtime.sandbox.eth", KEY, "test-key-7") }
    }

    fn judged(&self, artifact: &Value) -> ReceiptJudgement {
        self.judged_bytes(artifact.to_string().as_bytes())
    }

    fn judged_bytes(&self, receipt: &[u8]) -> ReceiptJudgement {
        let now = Timestamp::from_second(1_795_296_121).expect("a time");
        judged_at(receipt, &self.agent, &self.signer, now)
    }
}

/// The JSON files of a directory, with their names.
fn artifacts(folder: &Path) -> Vec<(String, Value)> {
    let files = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let read = |path: PathBuf| {
        let text = std::fs::read(&path).expect("a readable file");
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        (name.expect("a name"), serde_json::from_slice(&text).expect("JSON"))
    };
    files.map(|file| read(file.expect("a file").path())).collect()
}

/// What the family's verifiers compare: the JSON value of the whole receipt without the members listed as unsigned.
/// `None` if the text is not JSON. Digests, signatures and names of algorithms are [spelt](spelt) in several ways.
fn signed(receipt: &[u8], found: &ReceiptJudgement) -> Option<Value> {
    let mut value: Value = serde_json::from_slice(receipt).ok()?;
    for pointer in &found.unsigned {
        let (parent, name) = pointer.rsplit_once('/')?;
        if let Some(Value::Object(members)) = value.pointer_mut(parent) {
            members.remove(name)?;
        }
    }
    Some(in_doubles(spelt("", value)))
}

/// The same value with digests, signatures and names of algorithms in one spelling.
fn spelt(name: &str, value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(|item| spelt(name, item)).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(name, value)| (name.clone(), spelt(&name, value))).collect()
        }
        Value::String(text) => match name {
            "alg" if ["ed25519", "eddsa"].contains(&&*text.to_lowercase()) => "ed25519".into(),
            _ if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) => text.to_lowercase().into(),
            "signature" if text.starts_with("0x") => text.to_lowercase().into(),
            "sig" | "signature" | "signature_b64" | "value" => {
                text.trim_end_matches('=').replace('-', "+").replace('_', "/").into()
            }
            _ => text.into(),
        },
        other => other,
    }
}

/// The same value with each number as the double that ECMAScript reads.
fn in_doubles(value: Value) -> Value {
    match value {
        Value::Number(number) => (number.as_f64().unwrap_or(f64::NAN) + 0.0).into(),
        Value::Array(items) => items.into_iter().map(in_doubles).collect(),
        Value::Object(members) => members.into_iter().map(|(name, value)| (name, in_doubles(value))).collect(),
        other => other,
    }
}

fn codes(found: &ReceiptJudgement) -> Vec<ReasonCode> {
    found.reasons.iter().map(|reason| reason.code).collect()
}

struct Vector {
    file: String,
    family: String,
    canonical_sha256: Option<String>,
    hash_matches: Option<bool>,
    /// Whether the signature is valid; a text if that depends.
    signature_valid: Value,
    receipt: Vec<u8>,
    signer: PublishedReceiptSigner,
    agent: CalledAgent,
}

impl Vector {
    /// Whether the receipt is valid according to the published results for hash and signature, regardless of the kind
    /// of file.
    fn is_good(&self) -> bool {
        self.hash_matches == Some(true) && self.signature_valid == true
    }

    /// Whether the key signed the content, for whichever name.
    fn is_signed(&self) -> bool {
        self.hash_matches == Some(true) && self.signature_valid != false
    }

    fn has_a_member_twice(&self) -> bool {
        matches!(parse_strict_json(&self.receipt, JsonLimits::CARD), Err(JsonError::DuplicateKey { .. }))
    }

    /// Whether the top-level signer is another name than the agent's signer.
    fn names_another_signer(&self) -> bool {
        let receipt: Value = serde_json::from_slice(&self.receipt).expect("JSON");
        receipt["signer"].as_str().is_some_and(|signer| signer != self.signer.name.as_str())
    }

    /// The published list also reports this for families without a digest, where it refers to the signature.
    fn has_another_hash(&self) -> bool {
        let has_digest =
            !["mcp-1.1.0-top-level-proof", "runtime-core-layered", "clas-execution-v1"].contains(&self.family.as_str());
        has_digest && self.hash_matches == Some(false)
    }

    fn judged(&self, receipt: &[u8]) -> ReceiptJudgement {
        let now = "2026-01-02T00:00:00Z".parse::<Timestamp>().expect("a time");
        judged_at(receipt, &self.agent, &self.signer, now)
    }
}

/// A signer with the records published under its name.
fn signer(name: &str, key: &str, kid: &str) -> PublishedReceiptSigner {
    PublishedReceiptSigner {
        name: EnsName::parse(name).expect("a name"),
        key: Ok(Ed25519PublicKey::from_signer_record(key).expect("a key")),
        kid: Ok(kid.to_owned()),
        canonical: None,
        block: 1,
        lent: Vec::new(),
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
            let name = match family.as_str() {
                "commercial-json-stringify" => "commercial.sandbox.eth",
                "clas-execution-v1" => "summarizeagent.eth",
                _ => "runtime.sandbox.eth",
            };
            Vector {
                receipt: read(&folder.join(&file)),
                canonical_sha256: text(&row["canonical_sha256"]),
                hash_matches: row["hash_matches"].as_bool(),
                signature_valid: row["signature_valid"].clone(),
                signer: signer(name, key, kid),
                agent: CalledAgent {
                    name: EnsName::parse("summarizeagent.eth").expect("a name"),
                    entry: Some("x402://summarizeagent.eth/summarize/v1".to_owned()),
                    verbs: vec!["summarize".to_owned()],
                    addresses: SignerAddresses::default(),
                    routes: AgentEntryRoutes::default(),
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

/// A directory of vectors. If the variable is unset, prints that the test is skipped.
fn folder(of: &str) -> Option<PathBuf> {
    let Some(root) = std::env::var_os("CLRESOLVE_X402") else {
        println!("skipped: CLRESOLVE_X402 is not set");
        return None;
    };
    Some(Path::new(&root).join("vectors").join(of))
}
