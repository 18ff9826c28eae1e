//! What an agent sends as a receipt.

use clresolve_core::name::EnsName;
use clresolve_core::state::TrustState;
use clresolve_jose::Ed25519PublicKey;
use clresolve_messages::receipt::judge::{
    AgentEntryRoutes, CalledAgent, PublishedReceiptSigner, ReceiptKnowledge, SignerAddresses,
};
use clresolve_messages::receipt::judge_receipt;
use clresolve_messages::receipt::question::AgentRequest;
use ed25519_dalek::SigningKey;
use jiff::Timestamp;

/// A receipt, signed by anybody. It is trusted under one key at most, is judged alike each time, and echoes itself
/// where it is read.
pub(crate) fn receipt(input: &[u8]) {
    let state = |seed: u8| {
        let key = SigningKey::from_bytes(&[seed; 32]).verifying_key();
        let name = EnsName::parse("a.eth").expect("a name");
        let signer = PublishedReceiptSigner {
            name: name.clone(),
            key: Ok(Ed25519PublicKey::from_bytes(key.as_bytes()).expect("a key")),
            kid: Ok("k".to_owned()),
            canonical: None,
            block: 1,
            lent: Vec::new(),
        };
        let agent = CalledAgent {
            name,
            entry: None,
            verbs: Vec::new(),
            addresses: SignerAddresses::default(),
            routes: AgentEntryRoutes::default(),
        };
        let request = AgentRequest::from_bytes(input).ok();
        let now = Timestamp::from_second(super::MADE).expect("a time");
        let known = ReceiptKnowledge {
            agent: Some(&agent),
            signer: Ok(&signer),
            request: None,
            bought: None,
            earliest: None,
            schema: None,
            now,
        };
        let found = judge_receipt(input, &known);
        assert_eq!(found, judge_receipt(input, &known));
        let echoed = judge_receipt(input, &ReceiptKnowledge { request: request.as_ref(), ..known });
        assert!(
            echoed.trust_state() != TrustState::Trusted || found.trust_state() == TrustState::Trusted,
            "an echo alone is no proof"
        );
        found.trust_state()
    };
    assert!(state(7) != TrustState::Trusted || state(8) != TrustState::Trusted, "any key will do");
}
