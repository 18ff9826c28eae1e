//! Denials with every single-byte change of each record on which a payment depends, at the point where the pure code
//! parses it.

use alloy_primitives::{Address, U256};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clresolve_core::name::EnsName;
use clresolve_core::payment::{CoinType, EndpointRecordKey};
use clresolve_jose::{Ed25519PublicKey, Ed25519SigningKey};
use clresolve_verdict::evidence::links::RegistrationFile;
use jiff::Timestamp;

use super::super::{PAYEE, THIEF, URL, price};
use crate::offer::{OfferResources, ParsedOffers};
use crate::payee::{Erc8004WalletProvenance, NetworkPayees, PayeeClaim, PayeeClaimSource};
use crate::route::AgentRoute;
use crate::terms::ExactPrice;

const THIEF_URL: &str = "https://thief.example/summarize/v1";

/// The bytes with every other value at every position.
fn changed(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    (0..bytes.len()).flat_map(move |at| {
        (1..=u8::MAX).map(move |change| {
            let mut changed = bytes.to_vec();
            changed[at] ^= change;
            changed
        })
    })
}

/// The same for a text. Results that are not UTF-8 are skipped, since they cannot be records.
fn changed_texts(text: &str) -> impl Iterator<Item = String> + '_ {
    changed(text.as_bytes()).filter_map(|bytes| String::from_utf8(bytes).ok())
}

/// Address records, the wallet of a registration, and the configured payee.
#[test]
fn no_byte_of_an_address_turns_a_denial_into_an_allowance() {
    let stolen = ExactPrice { pay_to: THIEF, ..price() };
    let read = Erc8004WalletProvenance { agent: U256::from(22), block: 5, until: Timestamp::MAX };
    for bytes in changed(PAYEE.as_slice()) {
        let address = Address::from_slice(&bytes);
        let by = |claim: PayeeClaimSource| PayeeClaim::Is(address, claim);
        let record = |coin| NetworkPayees { record: by(PayeeClaimSource::Record(coin)), ..NetworkPayees::default() };
        let sources = [
            record(CoinType::from_chain_id(84_532).expect("it has one")),
            record(CoinType::EVM_DEFAULT),
            NetworkPayees {
                registration: by(PayeeClaimSource::Registration(Box::new(read.clone()))),
                ..NetworkPayees::default()
            },
            NetworkPayees { configured: vec![address], ..NetworkPayees::default() },
        ];
        for payees in sources {
            assert!(
                payees
                    .prove_payee(
                        &stolen,
                        &ParsedOffers::from_values(&[]),
                        &OfferResources::default(),
                        Timestamp::UNIX_EPOCH
                    )
                    .is_err(),
                "{payees:?}"
            );
        }
    }
}

#[test]
fn no_byte_of_an_endpoint_turns_a_denial_into_an_allowance() {
    for key in EndpointRecordKey::ROUTES {
        let endpoint = if key == EndpointRecordKey::Runtime { "https://api.sandbox.example" } else { URL };
        let route = |endpoint: &str| AgentRoute::from_record(key, endpoint, "summarize", "v1");
        assert!(route(endpoint).expect("a route").url_objection(URL).is_none());
        for endpoint in changed_texts(endpoint) {
            assert!(route(&endpoint).is_none_or(|route| route.url_objection(THIEF_URL).is_some()), "{endpoint:?}");
        }
    }
}

/// `cl.sig.pub`, which would have to become the thief's key, and `cl.receipt.signer`, which would have to refer to the
/// thief.
#[test]
fn no_byte_of_a_signers_record_turns_a_denial_into_an_allowance() {
    let [own, thief] = [(), ()].map(|()| Ed25519SigningKey::generate().expect("a key").public_key().clone());
    let record = format!("ed25519:{}", STANDARD.encode(own.to_bytes()));
    assert_eq!(Ed25519PublicKey::from_signer_record(&record).expect("a key").thumbprint(), own.thumbprint());
    for text in changed_texts(&record) {
        assert!(
            !Ed25519PublicKey::from_signer_record(&text).is_ok_and(|key| key.thumbprint() == thief.thumbprint()),
            "{text:?}"
        );
    }
    let thief = EnsName::parse("thief.eth").expect("a name");
    for text in changed_texts("runtime.sandbox.eth") {
        assert_ne!(EnsName::parse(&text).ok(), Some(thief.clone()), "{text:?}");
    }
}

/// `tokenURI`: the registration of the thief's agent refers to the thief.
#[test]
fn no_byte_of_a_registration_turns_a_denial_into_an_allowance() {
    let name = EnsName::parse("summarizeagent.eth").expect("a name");
    let file = |name: &str| format!(r#"{{"name":"It sells.","services":[{{"name":"ENS","endpoint":"{name}"}}]}}"#);
    let is_of = |bytes: &[u8]| RegistrationFile::parse(bytes).is_ok_and(|file| file.has_ens_service_for(&name));
    assert!(is_of(file("summarizeagent.eth").as_bytes()));
    for bytes in changed(file("thief.eth").as_bytes()) {
        assert!(!is_of(&bytes), "{}", String::from_utf8_lossy(&bytes));
    }
}
