//! Unsigned content never changes the state. The tests insert members and values of every kind at every place of a
//! valid receipt of each family. If a plain value leaves the receipt trusted, that place is unsigned.

use std::collections::BTreeSet;

use clresolve_core::name::EnsName;
use clresolve_core::reason::ReasonCode;
use clresolve_core::state::TrustState;
use clresolve_jose::Ed25519PublicKey;
use clresolve_messages::receipt::judge::{
    AgentEntryRoutes, CalledAgent, PublishedReceiptSigner, ReceiptCheckKind, ReceiptKnowledge, SignerAddresses,
    StepStatus,
};
use clresolve_messages::receipt::{MAX_BYTES, ReceiptFamily, ReceiptJudgement, judge_receipt};
use clresolve_payment::route::AgentRoute;
use serde_json::{Value, json};

macro_rules! receipts {
    ($($file:literal)*) => {
        [$(include_str!(concat!("../../sandbox/src/receipts/", $file, ".json"))),*]
    };
}

const RECEIPTS: [&str; 11] = receipts!["sdk" "runtime" "commercial-runtime" "agent-sdk" "website" "mcp-server"
    "runtime-core" "runtime-core-hash-bound" "clas-execution" "x402-eip712" "x402-jws"];

/// Values that parsers read differently from ECMAScript, or not at all, and words that distinguish families.
const HOSTILE: [&str; 14] = [
    "1e400",
    "9007199254740993",
    "-0",
    r#""\ud800""#,
    r#"{"\ud800":1e400}"#,
    r#"{"__proto__":{"7":1e400,"10":-0}}"#,
    r#"{"é":[null,1e400]}"#,
    "[[[[[[1e400]]]]]]",
    r#""clas.execution.receipt.v1""#,
    r#""trust""#,
    r#""genesis""#,
    r#""eip712""#,
    r#"{"signature":"AAAA","alg":"ed25519"}"#,
    r#"{"proof":{"alg":"ed25519-sha256","canonical":"json.sorted_keys.v1"}}"#,
];

/// Member names: those that published programs write, those that distinguish families, and unexpected ones.
const NAMES: [&str; 16] = [
    "note",
    "receipt_id",
    "__proto__",
    "7",
    "é",
    r"\ud800",
    "schema",
    "family",
    "receipt_type",
    "format",
    "version",
    "proof",
    "metadata",
    "receipt",
    "hash",
    "signature",
];

/// A placeholder for a name or value that the JSON library cannot print.
const PLACE: &str = "@place@";
const NAME: &str = "@name@";

struct World {
    agent: CalledAgent,
    signer: PublishedReceiptSigner,
}

impl World {
    fn new() -> Self {
        let address = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8".parse().expect("an address");
        let route = AgentRoute::from_configuration("https://api.sandbox.example/summarize/v1").expect("a route");
        let key = Ed25519PublicKey::from_signer_record("ed25519:6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iw=")
            .expect("a key");
        Self {
            agent: CalledAgent {
                name: EnsName::parse("summarizeagent.eth").expect("a name"),
                entry: Some("x402://summarizeagent.eth/summarize/v1".to_owned()),
                verbs: vec!["summarize".to_owned()],
                addresses: SignerAddresses { settled: vec![address], open: None },
                routes: AgentEntryRoutes { settled: vec![route], open: None },
            },
            signer: PublishedReceiptSigner {
                name: EnsName::parse("runtime.sandbox.eth").expect("a name"),
                key: Ok(key),
                kid: Ok("test-key-7".to_owned()),
                canonical: None,
                block: 1,
                lent: Vec::new(),
            },
        }
    }

    fn judged(&self, receipt: &str) -> ReceiptJudgement {
        let known = ReceiptKnowledge {
            agent: Some(&self.agent),
            signer: Ok(&self.signer),
            request: None,
            bought: None,
            earliest: None,
            schema: None,
            now: "2026-02-12T00:00:00Z".parse().expect("a time"),
        };
        judge_receipt(receipt.as_bytes(), &known)
    }
}

/// The receipt with a placeholder in each of its objects and lists: a member of this name, or one more item.
fn with_a_hole(receipt: &Value) -> Vec<(String, String)> {
    let mut holes = Vec::new();
    for place in containers(receipt, String::new()) {
        for name in NAMES {
            let mut holed = receipt.clone();
            match holed.pointer_mut(&place) {
                Some(Value::Object(members)) => {
                    members.remove(name);
                    members.insert(NAME.to_owned(), PLACE.into());
                }
                Some(Value::Array(items)) => items.push(PLACE.into()),
                _ => unreachable!("it is a container"),
            }
            holes.push((format!("{place}/{name}"), holed.to_string().replace(NAME, name)));
        }
    }
    holes
}

/// JSON Pointers of all objects and lists.
fn containers(value: &Value, path: String) -> Vec<String> {
    let inner: Vec<_> = match value {
        Value::Object(members) => members.iter().map(|(name, member)| (name.clone(), member)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(at, item)| (at.to_string(), item)).collect(),
        _ => return Vec::new(),
    };
    let below = inner.into_iter().flat_map(|(name, member)| containers(member, format!("{path}/{name}")));
    let mut found: Vec<_> = below.collect();
    found.push(path);
    found
}

/// The valid receipts. A1 has a second one whose id repeats the digest, as in A2.
fn receipts() -> Vec<Value> {
    let mut receipts: Vec<Value> = RECEIPTS.map(|text| serde_json::from_str(text).expect("JSON")).into();
    let mut repeating = receipts[0].clone();
    repeating["metadata"]["receipt_id"] = repeating["metadata"]["proof"]["hash_sha256"].clone();
    receipts.push(repeating);
    receipts
}

#[test]
fn what_nobody_signs_never_changes_the_state() {
    let world = World::new();
    let mut families = BTreeSet::new();
    for receipt in receipts() {
        let good = world.judged(&receipt.to_string());
        assert_eq!(good.trust_state(), TrustState::Trusted, "{good:#?}");
        for (place, holed) in with_a_hole(&receipt) {
            let filled = |value: &str| world.judged(&holed.replace(&json!(PLACE).to_string(), value));
            if filled(r#""plain""#).trust_state() != TrustState::Trusted {
                continue;
            }
            families.extend(good.family);
            for hostile in HOSTILE {
                let found = filled(hostile);
                assert_eq!(
                    (found.trust_state(), found.family),
                    (TrustState::Trusted, good.family),
                    "{hostile} at {place} of {:?}: {found:#?}",
                    good.family
                );
            }
        }
    }
    // The unit tests of their checks create receipts of these two forms.
    let made = ReceiptFamily::ALL.into_iter().filter(|family| ![ReceiptFamily::B3, ReceiptFamily::E2].contains(family));
    assert_eq!(families, made.collect(), "of each family some place is not signed");
}

/// The two exceptions: the receipt cannot be parsed.
#[test]
fn what_nobody_signs_and_nobody_reads_is_refused_or_undecided() {
    let world = World::new();
    let good: Value = serde_json::from_str(RECEIPTS[3]).expect("JSON");
    let with = |member: &str| {
        let text = good.to_string();
        world.judged(&format!("{{{member},{}", text.strip_prefix('{').expect("an object")))
    };
    let outcome = |member: &str| {
        let found = with(member);
        (found.trust_state(), found.reasons.iter().map(|reason| reason.code).collect::<Vec<_>>())
    };
    let twice = r#""more":1,"more":1"#;
    assert_eq!(outcome(twice), (TrustState::Untrusted, vec![ReasonCode::ReceiptDuplicateKey]));
    let long = format!(r#""more":"{}""#, "x".repeat(MAX_BYTES));
    let deep = format!(r#""more":{}{}"#, "[".repeat(64), "]".repeat(64));
    for member in [long, deep] {
        assert_eq!(outcome(&member), (TrustState::Indeterminate, vec![ReasonCode::ReceiptFamilyUnknown]));
    }
}

/// The members of both objects; those of `one` take precedence.
fn merged(one: &Value, other: &Value) -> Value {
    let (Value::Object(one), Value::Object(other)) = (one, other) else { return one.clone() };
    let mut all = other.clone();
    for (name, value) in one {
        let value = other.get(name).map_or_else(|| value.clone(), |other| merged(value, other));
        all.insert(name.clone(), value);
    }
    Value::Object(all)
}

/// A receipt of several shapes belongs to the family under which it is signed.
#[test]
fn the_shape_of_another_family_never_changes_the_state() {
    let world = World::new();
    let receipts = receipts();
    let mut shapes = 0;
    for receipt in &receipts {
        let family = world.judged(&receipt.to_string()).family.expect("a family");
        // The other families sign every top-level member.
        if ![
            ReceiptFamily::B1,
            ReceiptFamily::B2,
            ReceiptFamily::D,
            ReceiptFamily::E,
            ReceiptFamily::X1,
            ReceiptFamily::X2,
        ]
        .contains(&family)
        {
            continue;
        }
        for other in &receipts {
            let mut both = merged(receipt, other);
            if family == ReceiptFamily::X2 {
                // The only member that the x402 text forbids, because the JWS contains the payload.
                both.as_object_mut().expect("an object").remove("payload");
            }
            let found = world.judged(&both.to_string());
            assert_eq!(found.trust_state(), TrustState::Trusted, "{family:?} with {other}: {found:#?}");
            shapes += 1;
        }
    }
    assert!(shapes >= 6 * 12, "{shapes}");
}

/// Only the proof next to the receipt is used. All other content there is unsigned.
#[test]
fn a_second_proof_of_the_older_runtime_core_says_nothing() {
    let world = World::new();
    let within: Value = serde_json::from_str(RECEIPTS[7]).expect("JSON");
    let mut content = within.clone();
    let metadata = content.as_object_mut().and_then(|members| members.remove("metadata")).expect("a proof");
    let beside = json!({"receipt": content, "signature": {"proof": metadata["proof"]}});
    let both = json!({"receipt": content, "signature": {"proof": metadata["proof"]},
        "metadata": {"proof": {"alg": "ed25519-sha256", "canonical": "json.sorted_keys.v1"}}});
    for receipt in [within, beside, both] {
        let found = world.judged(&receipt.to_string());
        assert_eq!((found.trust_state(), found.family), (TrustState::Trusted, Some(ReceiptFamily::D0)), "{found:#?}");
    }
}

#[test]
fn families_name_the_agent_or_do_not() {
    let world = World::new();
    for receipt in receipts() {
        let found = world.judged(&receipt.to_string());
        let names_nobody =
            [Some(ReceiptFamily::B1), Some(ReceiptFamily::B2), Some(ReceiptFamily::C), Some(ReceiptFamily::D)];
        assert_eq!(found.is_agent_compared, !names_nobody.contains(&found.family), "{:?}", found.family);
    }
}

/// Signed content is parsed as strictly as the signer wrote it: one signature covers one text of a payload.
#[test]
fn a_payload_of_x402_s_own_is_covered_as_it_is_written() {
    let world = World::new();
    let receipt: Value = serde_json::from_str(RECEIPTS[9]).expect("JSON");
    for (member, hostile) in [
        ("issuedAt", "1770800400.00000000000000001"),
        ("issuedAt", "9007199254740993"),
        ("issuedAt", "1e400"),
        ("payer", r#""\ud800""#),
        ("version", "1.5"),
    ] {
        let mut holed = receipt.clone();
        holed["payload"][member] = PLACE.into();
        let found = world.judged(&holed.to_string().replace(&json!(PLACE).to_string(), hostile));
        let schema = found.check_result(ReceiptCheckKind::Schema).map(|row| row.status);
        assert_eq!(
            (found.trust_state(), schema),
            (TrustState::Untrusted, Some(StepStatus::Fail)),
            "{member} {hostile}: {found:#?}"
        );
    }
}
