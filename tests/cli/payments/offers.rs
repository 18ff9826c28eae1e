//! Payees by a signed offer: a JWS counts by the key that the name publishes, which is read once beside a verdict.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as BASE64URL};
use clresolve_core::reason::ReasonCode;
use clresolve_payment::PaymentDecisionRequest;
use clresolve_payment::decision::DecisionOutcome;
use clresolve_payment::terms::SellerHttpReply;
use clresolve_resolver::config::Config;
use clresolve_resolver::resolve::Resolver;
use clresolve_resolver::sandbox::CustomSandbox;
use ed25519_dalek::{Signer as _, SigningKey};
use serde_json::{Value, json};

use super::{NAME, URL, confirmed, neighbours, with_entry, world_with_seller};

/// Nobody's record names it.
const FRESH: &str = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC";

pub(crate) const OWN: [u8; 32] = [1; 32];
pub(crate) const OTHER: [u8; 32] = [2; 32];

/// An agent that sells, with these records, and a name that publishes a key.
async fn world(records: &str) -> CustomSandbox {
    let rest = format!(
        r#"
{records}

[[agent]]
name = "signer.eth"
about = "It signs."
state = "trusted"
records."cl.sig.pub" = "{other}"

[[agent]]
name = "offchain-signer.eth"
about = "It signs, off the chain."
state = "trusted"
records."cl.sig.pub" = "{other}"
chain = {{ resolver = {{ offchain = ["https://ccip.sandbox.example/ok/{{sender}}/{{data}}.json"] }} }}

[[agent]]
name = "unread-signer.eth"
about = "Its gateway is down."
state = "indeterminate"
codes = ["ccip-failed"]
records."cl.sig.pub" = "{other}"
chain = {{ resolver = {{ offchain = ["https://ccip.sandbox.example/down/{{sender}}/{{data}}"] }} }}
"#,
        other = public(OTHER)
    );
    world_with_seller(&rest).await
}

pub(crate) fn public(key: [u8; 32]) -> String {
    format!("ed25519:{}", STANDARD.encode(SigningKey::from_bytes(&key).verifying_key()))
}

fn own_key() -> String {
    format!("records.\"cl.sig.pub\" = \"{}\"\n", public(OWN))
}

/// Terms that pay a new address, and an offer for exactly these, signed by `key`.
pub(crate) fn asked(key: [u8; 32]) -> PaymentDecisionRequest {
    let entry = json!({
        "scheme": "exact",
        "network": "eip155:31337",
        "amount": "10000",
        "asset": "0x00000000000000000000000000000000d0114400",
        "payTo": FRESH,
        "maxTimeoutSeconds": 60,
        "extra": {"name": "Sandbox Dollar", "version": "1"},
    });
    let terms = json!({
        "x402Version": 2,
        "resource": {"url": URL},
        "accepts": [entry],
        "extensions": {"offer-receipt": {"info": {"offers": [offer(key)]}}},
    });
    let headers = vec![("payment-required".to_owned(), STANDARD.encode(terms.to_string()))];
    PaymentDecisionRequest::from_seller_reply(
        NAME,
        "summarize",
        URL,
        SellerHttpReply { status: 402, headers, body: b"{}".to_vec() },
    )
}

fn offer(key: [u8; 32]) -> Value {
    let part = |value: Value| BASE64URL.encode(value.to_string());
    let payload = json!({
        "version": 1,
        "resourceUrl": URL,
        "scheme": "exact",
        "network": "eip155:31337",
        "asset": "0x00000000000000000000000000000000d0114400",
        "payTo": FRESH,
        "amount": "10000",
        "validUntil": 0,
    });
    let signed = format!("{}.{}", part(json!({"alg": "EdDSA", "kid": "did:web:a.example#1"})), part(payload));
    let signature = SigningKey::from_bytes(&key).sign(signed.as_bytes()).to_bytes();
    json!({"format": "jws", "signature": format!("{signed}.{}", BASE64URL.encode(signature))})
}

/// The codes of a decision on an offer by this key, where the agent has these records.
async fn codes(records: &str, key: [u8; 32]) -> Vec<String> {
    codes_under(records, key, |_| {}).await
}

async fn codes_under(records: &str, key: [u8; 32], change: impl FnOnce(&mut Config)) -> Vec<String> {
    let world = world(records).await;
    let mut config = world.config();
    change(&mut config);
    let resolver = Resolver::new(&config).await.expect("its configuration is good");
    resolver.decide_payment(&asked(key)).await.codes
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_counts_by_the_key_that_the_name_publishes() {
    let named = "records.\"cl.receipt.signer\" = \"signer.eth\"\n";
    let both = format!("{}{named}", own_key());
    let unusable = |signer: &str| format!("{}records.\"cl.receipt.signer\" = \"{signer}\"\n", own_key());
    for (records, key, counts) in [
        (own_key(), OWN, true),
        (own_key(), OTHER, false),
        (String::new(), OWN, false),
        (named.to_owned(), OTHER, true),
        // Where another name signs, the own key does not.
        (both.clone(), OTHER, true),
        (both, OWN, false),
        (unusable(NAME), OWN, true),
        (unusable("nobody.eth"), OWN, false),
        (unusable("no name"), OWN, false),
    ] {
        let said = codes(&records, key).await;
        let unproven = ["payee-mismatch", "offer-signer-unproven"];
        assert_eq!(said, if counts { &[][..] } else { &unproven[..] }, "{records}");
    }
}

/// A key that the newest block does not repeat is about to change, and what the gate denies of names it denies of
/// signers.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_counts_that_the_gate_would_rely_on() {
    let unproven = ["payee-mismatch", "offer-signer-unproven"];
    let leaving = format!("{}latest.\"cl.sig.pub\" = \"{}\"\n", own_key(), public(OTHER));
    for key in [OWN, OTHER] {
        assert_eq!(codes(&leaving, key).await, ["record-pending"]);
    }
    let offchain = "records.\"cl.receipt.signer\" = \"offchain-signer.eth\"\n";
    assert_eq!(codes(offchain, OTHER).await, [""; 0]);
    let denied = codes_under(offchain, OTHER, |config| config.gate.deny = vec![ReasonCode::RecordOffchain]).await;
    assert_eq!(denied, unproven);
}

/// An address that is about to be set leaves an offer what it is.
#[tokio::test(flavor = "multi_thread")]
async fn an_offer_counts_while_an_address_is_pending() {
    let records = format!(
        "addresses = {{ 31337 = \"0x\", 84532 = \"0x\" }}\nlatest_addresses = {{ 31337 = \"{}\" }}\n{}",
        "0x7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b",
        own_key()
    );
    assert_eq!(codes(&records, OWN).await, [""; 0]);
    assert_eq!(codes(&records, OTHER).await, ["offer-signer-unproven", "record-pending"]);
}

/// An endpoint that is down says nothing against a seller.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_could_not_be_read_decides_nothing() {
    let records = format!("{}records.\"cl.receipt.signer\" = \"unread-signer.eth\"\n", own_key());
    let world = world(&records).await;
    let resolver = Resolver::new(&world.config()).await.expect("its configuration is good");
    let decision = resolver.decide_payment(&asked(OTHER)).await;
    assert_eq!((decision.decision, decision.abort), (DecisionOutcome::Undecided, true), "{decision:#?}");
    assert_eq!(decision.codes, ["offer-signer-unproven"]);
    let [reason] = &decision.reasons[..] else { panic!("{decision:#?}") };
    assert!(reason.retryable && reason.message.ends_with("was not read."), "{reason:?}");
    assert!(reason.observed.as_deref().is_some_and(|cause| cause.contains("CCIP")), "{reason:?}");
}

/// Otherwise each decision would cost requests to every endpoint.
#[tokio::test(flavor = "multi_thread")]
async fn key_of_offers_is_read_once_under_a_head() {
    let world = world(&own_key()).await;
    let (resolver, _following) = confirmed(world.config()).await;
    let other_spelling = PaymentDecisionRequest { name: NAME.to_uppercase(), ..asked(OWN) };
    for (question, aborts, is_read) in [
        (asked(OWN), false, true),
        (asked(OWN), false, false),
        (asked(OTHER), true, false),
        (other_spelling, false, false),
    ] {
        let before = world.request_counts().rpc;
        assert_eq!(resolver.decide_payment(&question).await.abort, aborts);
        assert_eq!(world.request_counts().rpc > before, is_read);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_counts_whatever_stands_beside_its_entry() {
    let world = world(&own_key()).await;
    let resolver = Resolver::new(&world.config()).await.expect("its configuration is good");
    for neighbour in neighbours() {
        let decision = resolver.decide_payment(&with_entry(&asked(OWN), neighbour.clone())).await;
        let rows: Vec<_> = decision.entries.iter().map(|row| row.abort).collect();
        assert_eq!((rows, decision.abort), (vec![false, true], true), "{neighbour}: {decision:#?}");
    }
}
