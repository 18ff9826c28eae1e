//! Bundles of grade `consensus-proof`: the reader verifies the header from a checkpoint that it names itself.

use alloy_primitives::B256;
use clresolve_bundle::BundleTrustAnchors;
use clresolve_bundle::purchase::{PurchaseBundle, PurchaseDocuments, PurchaseEvidence};
use clresolve_messages::receipt::judge::PublishedReceiptSigner;

use super::*;
use crate::support::program::clresolve;

/// Where the light client's proof stands in a bundle.
const LIGHT_CLIENT: &str = "/reading/given/backing/proven/light_client";

/// A bundle of grade `consensus-proof`, and the checkpoint from which its exporter started.
static CONSENSUS: LazyLock<(Value, B256)> = LazyLock::new(|| {
    let runtime = tokio::runtime::Runtime::new().expect("threads can be had");
    runtime.block_on(async {
        let sandbox = Sandbox::start().await.expect("the sandbox starts");
        let mut config = sandbox.config();
        config.chain.proof = Some(ChainProofMode::ConsensusProof);
        let checkpoint = config.beacon.checkpoint.expect("the sandbox has a beacon chain");
        let resolver = Resolver::new(&config).await.expect("its configuration is good");
        let bundle = resolver.export_bundle(&NameQuestion::new(RAW)).await.expect("it is exported");
        (bundle.unsigned_bundle().to_json(), checkpoint)
    })
});

pub(super) fn consensus() -> &'static Value {
    &CONSENSUS.0
}

/// The rules of the sandbox, and the checkpoint of [`consensus`].
pub(super) fn anchors() -> BundleTrustAnchors<'static> {
    from(Some(CONSENSUS.1))
}

fn from(checkpoint: Option<B256>) -> BundleTrustAnchors<'static> {
    BundleTrustAnchors { profiles: profiles(), checkpoint }
}

fn class_of(bundle: Value, anchors: BundleTrustAnchors<'_>) -> &'static str {
    let read = ResolutionBundle::from_bytes(&resealed(bundle)).expect("it has the form of a bundle");
    let judged = read.judge_evidence(anchors).map(drop);
    let error = read.verify_by_replay(anchors).map(drop).expect_err("not verified");
    assert_eq!(judged, Err(error.clone()), "a forger who writes the verdict gets no further");
    error.error_class()
}

#[test]
fn bundle_verifies_from_the_checkpoint_of_its_reader() {
    let bundle = ResolutionBundle::from_bytes(&bytes(consensus())).expect("a bundle");
    let verified = bundle.verify_by_replay(anchors()).expect("it verifies");
    let verdict = verified.replay.verdict();
    assert_eq!(verdict.state, TrustState::Trusted);
    let proof = verdict.anchor.as_ref().expect("a trusted verdict has an anchor").proof;
    assert_eq!((proof.grade, proof.asked, proof.agreed), (ProofGrade::ConsensusProof, 0, 0));
    let starts = |clauses: &[String], what: &str| clauses.iter().any(|clause| clause.starts_with(what));
    assert!(starts(&verified.proven, "block: the validators of chain eip155:31337"), "{:?}", verified.proven);
    assert!(!starts(&verified.attested, "header:"), "{:?}", verified.attested);
    assert_eq!(bundle.light_client_checkpoint(), Some(CONSENSUS.1));
}

#[test]
fn bundle_is_undecided_without_a_related_checkpoint() {
    for checkpoint in [None, Some(B256::ZERO), Some(B256::repeat_byte(7))] {
        assert_eq!(class_of(consensus().clone(), from(checkpoint)), "checkpoint-unrelated", "{checkpoint:?}");
    }
    // A development chain with the chain id of the sandbox, whose validators' keys are public.
    let mut other_network = consensus().clone();
    other_network["run"]["world"] = json!("eip155-31337");
    assert_eq!(class_of(other_network, anchors()), "checkpoint-unrelated");
    // Whoever writes the bundle can state any checkpoint, but has no bootstrap for it.
    let mut claimed = consensus().clone();
    claimed.pointer_mut(LIGHT_CLIENT).expect("a proof")["checkpoint"] = json!(B256::repeat_byte(7));
    assert_eq!(class_of(claimed.clone(), anchors()), "checkpoint-unrelated");
    assert_eq!(class_of(claimed, from(Some(B256::repeat_byte(7)))), "bundle-proof-refused");
}

#[test]
fn grade_of_consensus_needs_the_light_clients_proof() {
    let changed = |change: fn(&mut Value)| {
        let mut changed = consensus().clone();
        change(&mut changed);
        class_of(changed, anchors())
    };
    fn proofs(bundle: &mut Value) -> &mut serde_json::Map<String, Value> {
        bundle.pointer_mut(WITNESS).and_then(Value::as_object_mut).expect("proofs")
    }
    assert_eq!(changed(|b| drop(proofs(b).remove("light_client"))), "bundle-proof-refused");
    assert_eq!(changed(|b| b["reading"]["given"]["proof"]["grade"] = json!("state-proof")), "bundle-inconsistent");
    assert_eq!(changed(|b| b["reading"]["given"]["backing"] = json!("attested")), "bundle-proof-refused");
    assert_eq!(changed(|b| b["reading"]["given"]["block"]["hash"] = json!(B256::ZERO)), "bundle-header-mismatch");
    // A genuine proof of the light client, beside a reading that another chain of the same height backs.
    let mut other = proven(RAW).clone();
    let genuine = consensus().pointer(LIGHT_CLIENT).expect("a proof").clone();
    proofs(&mut other).insert("light_client".to_owned(), genuine);
    other["reading"]["given"]["proof"] = json!({"grade": "consensus-proof", "asked": 0, "agreed": 0});
    let header = |bundle: &Value| bundle["header"].clone();
    if header(&other) != header(consensus()) {
        assert!(["bundle-header-mismatch", "checkpoint-unrelated"].contains(&class_of(other, anchors())));
    }
}

/// Every part of the proof: bits of its bytes, under a digest that fits.
#[test]
fn each_byte_of_the_light_clients_proof_counts() {
    const TRIED: usize = 40;
    let genuine = consensus().pointer("/verdict/id").and_then(Value::as_str).expect("an id");
    let updates = consensus().pointer(&format!("{LIGHT_CLIENT}/updates")).and_then(Value::as_array).expect("updates");
    let parts = ["bootstrap".to_owned(), "finality_update".to_owned()];
    let parts = parts.into_iter().chain((0..updates.len()).map(|position| format!("updates/{position}")));
    let (mut tried, mut without_meaning) = (0, Vec::new());
    for part in parts {
        let place = format!("{LIGHT_CLIENT}/{part}");
        let text = consensus().pointer(&place).and_then(Value::as_str).expect("hex");
        let ssz = alloy_primitives::hex::decode(text).expect("hex");
        for position in (0..ssz.len()).step_by(1 + ssz.len() / TRIED) {
            let mut changed = ssz.clone();
            changed[position] ^= 1 << (position % 8);
            let mut bundle = consensus().clone();
            *bundle.pointer_mut(&place).expect("a part") = json!(alloy_primitives::hex::encode_prefixed(changed));
            let read = ResolutionBundle::from_bytes(&resealed(bundle)).expect("it has the form of a bundle");
            if let Ok(verified) = read.verify_by_replay(anchors()) {
                assert_eq!(verified.replay.verdict().id, genuine, "{part}, byte {position}");
                without_meaning.push((part.clone(), position));
            }
            tried += 1;
        }
    }
    println!("{tried} bytes changed; without meaning: {without_meaning:?}");
    assert!(tried >= TRIED && without_meaning.len() <= 4, "{without_meaning:?}");
}

#[test]
fn purchase_around_the_bundle_needs_the_checkpoint_too() {
    let bundle = ResolutionBundle::from_bytes(&bytes(consensus())).expect("a bundle");
    let agent = bundle.verify_by_replay(anchors()).expect("it verifies");
    let sample = Sandbox::sample_receipts().iter().find(|sample| sample.file == "agent-sdk.json").expect("a receipt");
    let papers = PurchaseDocuments { receipt: sample.text.as_bytes().to_vec(), ..PurchaseDocuments::default() };
    let key = Ed25519SigningKey::generate().expect("randomness").public_key().clone();
    let signer = PublishedReceiptSigner {
        name: EnsName::parse("runtime.sandbox.eth").expect("a name"),
        key: Ok(key),
        kid: Ok("v1".to_owned()),
        canonical: None,
        block: 1,
        lent: Vec::new(),
    };
    let evidence = PurchaseEvidence { signer: Some(signer), transaction: None, at: agent.made_at };
    let (purchase, _) = PurchaseBundle::pack_purchase(bundle, &agent, &papers, evidence).expect("it is consistent");
    let purchase = purchase.to_json().to_string();
    let read = PurchaseBundle::from_bytes(purchase.as_bytes()).expect("a purchase");
    let undecided = read.name_bundle().verify_by_replay(profiles()).expect_err("no checkpoint");
    assert_eq!(undecided.error_class(), "checkpoint-unrelated");
    let agent = read.name_bundle().verify_by_replay(anchors()).expect("it verifies");
    assert!(read.verify_evidence(&agent).is_ok());

    let output = clresolve(&["bundle", "verify", "-"], &purchase);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
}

#[test]
fn program_asks_for_a_checkpoint_and_uses_the_configured_one() {
    let (document, checkpoint) = (consensus().to_string(), CONSENSUS.1.to_string());
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("config.toml");
    let write = |checkpoint: &str| {
        std::fs::write(&config, format!("[beacon]\ncheckpoint = \"{checkpoint}\"\n")).expect("the folder is writable");
    };
    let verify = |further: &[&str]| {
        let output = clresolve(&[&["bundle", "verify", "-"], further].concat(), &document);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, message) = verify(&[]);
    assert!(code == Some(3) && message.starts_with("checkpoint-unrelated: "), "{code:?} {message}");
    assert!(message.contains("--checkpoint") && message.contains(&checkpoint), "{message}");
    assert_eq!(verify(&["--checkpoint", &checkpoint]), (Some(0), String::new()));
    let (code, message) = verify(&["--checkpoint", &B256::ZERO.to_string()]);
    assert!(code == Some(3) && message.starts_with("checkpoint-unrelated: "), "{code:?} {message}");

    let configured = ["--config", config.to_str().expect("UTF-8")];
    write(&checkpoint);
    assert_eq!(verify(&configured), (Some(0), String::new()));
    write(&B256::ZERO.to_string());
    assert_eq!(verify(&configured).0, Some(3));
    assert_eq!(verify(&[&configured[..], &["--checkpoint", &checkpoint]].concat()).0, Some(0), "the option wins");
    assert_eq!(verify(&["--checkpoint", "0x12"]).0, Some(2));
}
