//! A purchase that a forger puts around a name's bundle which somebody else has signed.

use clresolve_bundle::purchase::{PurchaseBundle, PurchaseDocuments, PurchaseEvidence};
use clresolve_messages::receipt::judge::PublishedReceiptSigner;
use clresolve_verdict::profile::ConformanceProfiles;

use super::*;

/// A purchase of the sandbox's receipt around this bundle of its agent, as anybody could make it.
fn forged(bundle: ResolutionBundle, key: Ed25519PublicKey) -> Value {
    let agent = bundle.verify_by_replay(&ConformanceProfiles::builtin()).expect("it holds together");
    let sample = Sandbox::sample_receipts().iter().find(|sample| sample.file == "agent-sdk.json").expect("a receipt");
    let papers = PurchaseDocuments { receipt: sample.text.as_bytes().to_vec(), ..PurchaseDocuments::default() };
    let name = EnsName::parse("runtime.sandbox.eth").expect("a name");
    let signer = PublishedReceiptSigner {
        name,
        key: Ok(key),
        kid: Ok("v1".to_owned()),
        canonical: None,
        block: 1,
        lent: Vec::new(),
    };
    let evidence = PurchaseEvidence { signer: Some(signer), transaction: None, at: agent.made_at };
    PurchaseBundle::pack_purchase(bundle, &agent, &papers, evidence).expect("it holds together").0.to_json()
}

#[test]
fn a_purchase_around_a_bundle_that_somebody_signed_is_unsigned() {
    let world = Devnet::start();
    world.with_builtin_rules();
    let (document, _) = ends(&world.run(&["bundle", "export", NAME], true), 0);
    let key = key().public_key().clone();
    let purchase = forged(ResolutionBundle::from_bytes(document.as_bytes()).expect("a bundle"), key).to_string();
    let (config, keys) = (world.desk.path("devnet.toml"), world.desk.path("keys.json"));
    let verify = |document: &str, further: &[&str]| {
        let output = clresolve(&[&["bundle", "verify", "-", "--config", &config], further].concat(), document);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let asked = ["--name", NAME, "--jwks", &keys, "--issuer", ISSUER];
    let (_, text) = verify(&document, &asked);
    assert_eq!(text, "", "the name's bundle is signed");
    let (code, text) = verify(&purchase, &asked);
    assert!(code == Some(1) && text.starts_with("bundle-unsigned: "), "{code:?} {text}");
    let (_, text) = verify(&purchase, &asked[..2]);
    assert_eq!(text, "", "without keys it is judged");
}
