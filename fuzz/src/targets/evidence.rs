//! What is handed on: evidence bundles and signed verdicts.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use clresolve_bundle::ResolutionBundle;
use clresolve_bundle::signed::{ExpectedVerdict, MAX_LIFETIME, SKEW, verify_signed_verdict};
use clresolve_core::name::EnsName;
use clresolve_core::state::TrustState;
use clresolve_jose::{Ed25519KeySet, Ed25519PublicKey};
use clresolve_resolver::config::ChainProofMode;
use clresolve_resolver::resolve::{NameQuestion, Resolver};
use clresolve_resolver::sandbox::Sandbox;
use clresolve_verdict::profile::ConformanceProfiles;
use clresolve_verdict::verdict::{ResolutionDepth, canonical_digest};
use ed25519_dalek::{Signer as _, SigningKey};
use jiff::Timestamp;
use serde_json::Value;

/// A bundle. The first byte says what the rest is: its bytes, or changes to a good bundle without (1) or with (2)
/// proofs of the state, or to one with proofs of a bad agent (3): pairs of a JSON Pointer and the value to stand there,
/// after which the digest is made to fit. A forger would write the verdict that follows, so that is what is looked at.
pub(crate) fn bundle(input: &[u8]) {
    let Some((kind, rest)) = input.split_first() else { return };
    let base = match kind % 4 {
        1 => &BUNDLES.attested,
        2 => &BUNDLES.proven,
        3 => &BUNDLES.bad,
        _ => {
            if let Ok(bundle) = ResolutionBundle::from_bytes(rest) {
                let _ = bundle.verify_by_replay(&BUNDLES.profiles);
            }
            return;
        }
    };
    let mut changed = base.clone();
    for change in super::pieces(rest).chunks_exact(2) {
        let Ok(pointer) = std::str::from_utf8(change[0]) else { continue };
        if let Some(place) = changed.pointer_mut(pointer) {
            *place = serde_json::from_slice(change[1]).unwrap_or_default();
        }
    }
    if let Some(members) = changed.as_object_mut() {
        members.remove("digest");
        changed["digest"] = canonical_digest(&changed).into();
    }
    let Ok(judged) =
        ResolutionBundle::from_bytes(changed.to_string().as_bytes()).and_then(|b| b.judge_evidence(&BUNDLES.profiles))
    else {
        assert_ne!(changed, *base, "the unchanged bundle is refused");
        return;
    };
    if judged.verdict().state == TrustState::Trusted {
        let identity = serde_json::to_value(&judged.verdict().identity).expect("JSON");
        let said = &base["verdict"]["identity"];
        assert!(base["verdict"]["state"] == "trusted", "a changed bundle of a bad agent is trusted");
        assert!(["entry", "verbs", "card"].iter().all(|member| said[member] == identity[member]), "another card");
    }
}

struct Bundles {
    attested: Value,
    proven: Value,
    bad: Value,
    profiles: ConformanceProfiles,
}

/// Bundles of the sandbox's agents, exported once.
static BUNDLES: LazyLock<Bundles> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime needs nothing");
    runtime.block_on(async {
        let sandbox = Sandbox::start().await.expect("the sandbox starts");
        let export = async |name: &str, proof, state: &str| {
            let mut config = sandbox.config();
            config.chain.proof = proof;
            let resolver = Resolver::new(&config).await.expect("its configuration is good");
            let bundle = resolver.export_bundle(&NameQuestion::new(name)).await.expect("it is exported");
            let bundle = bundle.unsigned_bundle().to_json();
            assert_eq!(bundle["verdict"]["state"], state, "{name}");
            bundle
        };
        let proofs = Some(ChainProofMode::StateProof);
        Bundles {
            attested: export("raw-cid.eth", None, "trusted").await,
            proven: export("raw-cid.eth", proofs, "trusted").await,
            bad: export("checksum-mismatch.eth", proofs, "untrusted").await,
            profiles: Sandbox::profiles(),
        }
    })
});

/// A time when the verdict in the seeds is fresh.
pub(crate) const NOW: i64 = 1_795_000_000;

/// A signed verdict. The first byte says what the rest is: the JWS, or header and payload of one whose signature holds.
pub(crate) fn jws(input: &[u8]) {
    let Some((kind, rest)) = input.split_first() else { return };
    let key = SigningKey::from_bytes(&[7; 32]);
    let jws = if kind % 2 == 0 {
        String::from_utf8_lossy(rest).into_owned()
    } else {
        let parts = super::pieces(rest);
        let [header, payload, ..] = parts[..] else { return };
        let signed = format!("{}.{}", BASE64URL.encode(header), BASE64URL.encode(payload));
        format!("{signed}.{}", BASE64URL.encode(key.sign(signed.as_bytes()).to_bytes()))
    };
    let public = Ed25519PublicKey::from_bytes(key.verifying_key().as_bytes()).expect("a good key");
    let expected = ExpectedVerdict {
        name: EnsName::parse("summarizeagent.eth").expect("a good name"),
        profile: "agent-cards/1.0.0".to_owned(),
        depth: ResolutionDepth::Identity,
        chain: "eip155:1".to_owned(),
        world: "mainnet".to_owned(),
        issuer: None,
        proof: None,
    };
    let now = Timestamp::from_second(NOW).expect("in range");
    let Ok(verified) = verify_signed_verdict(&jws, &Ed25519KeySet::from(&public), &expected, now) else { return };
    assert!(kind % 2 == 1 || jws.split('.').count() == 3, "no compact form");
    let verdict = verified.verdict();
    assert!(verdict.has_valid_digests(), "changed after it was made");
    assert_eq!(verdict.name.normalized.as_deref(), Some(expected.name.as_str()));
    let anchor = verdict.anchor.as_ref().expect("it is about a chain");
    assert_eq!((anchor.chain.as_str(), anchor.world.as_str()), ("eip155:1", "mainnet"));
    assert!((NOW - SKEW..=NOW + SKEW + MAX_LIFETIME).contains(&(verified.expires - 1)), "not of this time");
}
