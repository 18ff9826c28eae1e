//! Receipts signed by a seller (x402 extension offer-receipt, version 0.6). A receipt states that the seller was paid
//! and has delivered. It does not contain an amount, asset or payee.

use alloy_primitives::{Address, B256, U256};
use alloy_sol_types::SolStruct as _;
use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect};
use clresolve_core::text::excerpt_text;
use clresolve_verdict::verdict::canonical_digest;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::artifact::{ArtifactPayload, SignedArtifact};
use crate::forms;
use crate::network::Caip2Network;
use crate::route::https_url_behind_proxy;
use crate::typed_data;

/// A receipt with its signature.
pub type SignedX402Receipt = SignedArtifact<X402Receipt>;

/// The contents of a receipt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct X402Receipt {
    version: u64,
    /// The network of the payment (CAIP-2).
    pub network: String,
    /// The URL that was paid for.
    pub resource_url: String,
    /// The payer, usually an address.
    pub payer: String,
    /// When it was issued, in seconds since 1970.
    pub issued_at: u64,
    /// The transaction hash. Empty if it is not disclosed.
    #[serde(default)]
    pub transaction: String,
}

/// The facts about a [`Purchase`](crate::settlement::PurchasePaymentDocuments) with which a receipt is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurchaseFacts {
    /// SHA-256 of the RFC 8785 form of the decision document. The document's own `id` is only a claim.
    pub decision: String,
    /// The agent in the decision.
    pub name: String,
    /// The verb in the decision.
    pub verb: String,
    /// The network of the payment, if there was only one choice.
    pub network: Option<Caip2Network>,
    /// The URL behind the agent's entry. Only origin and path are compared.
    pub url: Url,
    /// The payer, if known.
    pub payer: Option<Address>,
}

impl X402Receipt {
    /// SHA-256 of the RFC 8785 form of the payload: `sha256:` and hexadecimal digits. An undisclosed transaction is an
    /// empty string, as in the signed payload.
    pub fn digest(&self) -> String {
        canonical_digest(self)
    }

    /// Why the receipt does not belong to this purchase: its network, URL or payer differs. `None` if there is no
    /// objection.
    pub fn purchase_objection(&self, bought: &PurchaseFacts) -> Option<Box<Reason>> {
        let network = bought.network.as_ref().filter(|network| self.network != network.as_str());
        if let Some(network) = network.filter(|_| !clresolve_core::mutant!("receipts-of-any-purchase")) {
            return Some(purchase_mismatch_reason("/payload/network", network, &self.network));
        }
        let stated = forms::parse_address(&self.payer);
        let payer = bought.payer.filter(|payer| stated != Some(*payer));
        if let Some(payer) = payer.filter(|_| !clresolve_core::mutant!("receipts-of-any-payer")) {
            let reason = purchase_mismatch_reason("/payload/payer", payer, &self.payer);
            // A payer that is not an address may stand for any address.
            let effect = if stated.is_some() { reason.effect } else { ReasonEffect::Unknown };
            return Some(Box::new(Reason { effect, ..*reason }));
        }
        let is_same = |url: &Url| url.origin() == bought.url.origin() && url.path() == bought.url.path();
        let over_tls = || https_url_behind_proxy(&self.resource_url).and_then(|url| Url::parse(&url).ok());
        match self.paid_url() {
            Some(url) if is_same(&url) || over_tls().is_some_and(|url| is_same(&url)) => None,
            Some(_) => Some(purchase_mismatch_reason("/payload/resourceUrl", &bought.url, &self.resource_url)),
            // An MCP resource has no web location that could be compared.
            None => Some(Box::new(Reason {
                effect: ReasonEffect::Unknown,
                ..*purchase_mismatch_reason("/payload/resourceUrl", &bought.url, &self.resource_url)
            })),
        }
    }

    /// The URL that was paid for, if it is an HTTP(S) URL.
    pub fn paid_url(&self) -> Option<Url> {
        Url::parse(&self.resource_url).ok().filter(|url| matches!(url.scheme(), "https" | "http"))
    }
}

fn purchase_mismatch_reason(place: &str, expected: impl ToString, observed: &str) -> Box<Reason> {
    let reason = Reason::new(ReasonCode::ReceiptRequestMismatch).at_place(place);
    Box::new(reason.expected(expected.to_string()).observed(excerpt_text(observed)))
}

impl ArtifactPayload for X402Receipt {
    fn version(&self) -> u64 {
        self.version
    }

    fn signing_hash(&self) -> B256 {
        let message = typed_data::Receipt {
            version: U256::from(self.version),
            network: self.network.clone(),
            resourceUrl: self.resource_url.clone(),
            payer: self.payer.clone(),
            issuedAt: U256::from(self.issued_at),
            transaction: self.transaction.clone(),
        };
        message.eip712_signing_hash(&typed_data::RECEIPTS)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::artifact::{ArtifactSignerMatch, PublishedSigningKeys};
    use crate::testing::{PAYEE, PAYER, sign_hash, test_address};

    fn payload() -> Value {
        json!({
            "version": 1, "network": "eip155:84532", "resourceUrl": "https://api.example.org/summarize/v1",
            "payer": test_address(PAYER).to_string(), "issuedAt": 1_767_225_600, "transaction": "",
        })
    }

    fn signed(payload: &Value, hash: B256) -> Value {
        json!({"format": "eip712", "payload": payload, "signature": sign_hash(hash, PAYEE)})
    }

    fn hash(payload: &Value) -> B256 {
        serde_json::from_value::<X402Receipt>(payload.clone()).unwrap().signing_hash()
    }

    #[test]
    fn a_receipt_is_signed_by_whom_the_name_publishes() {
        let signed_by = |receipt: &Value, address| {
            let keys = PublishedSigningKeys { addresses: vec![address], ..PublishedSigningKeys::default() };
            SignedX402Receipt::from_value(receipt).unwrap().find_signer(&keys)
        };
        let receipt = signed(&payload(), hash(&payload()));
        assert_eq!(signed_by(&receipt, test_address(PAYEE)), ArtifactSignerMatch::Published);
        assert_eq!(signed_by(&receipt, test_address(PAYER)), ArtifactSignerMatch::Stranger);
        let mut changed = receipt.clone();
        changed["payload"]["transaction"] = "0xab".into();
        assert_eq!(signed_by(&changed, test_address(PAYEE)), ArtifactSignerMatch::Stranger);
        let mut short = payload();
        short.as_object_mut().unwrap().remove("transaction");
        let receipt = signed(&short, hash(&payload()));
        assert_eq!(signed_by(&receipt, test_address(PAYEE)), ArtifactSignerMatch::Published, "absent is empty");
    }

    #[test]
    fn the_domain_of_offers_is_another() {
        let payload = payload();
        let text = |member: &str| payload[member].as_str().unwrap().to_owned();
        let message = typed_data::Receipt {
            version: U256::from(1),
            network: text("network"),
            resourceUrl: text("resourceUrl"),
            payer: text("payer"),
            issuedAt: U256::from(1_767_225_600),
            transaction: String::new(),
        };
        assert_eq!(message.eip712_signing_hash(&typed_data::RECEIPTS), hash(&payload));
        let elsewhere = signed(&payload, message.eip712_signing_hash(&typed_data::OFFERS));
        let keys = PublishedSigningKeys { addresses: vec![test_address(PAYEE)], ..PublishedSigningKeys::default() };
        assert_eq!(
            SignedX402Receipt::from_value(&elsewhere).unwrap().find_signer(&keys),
            ArtifactSignerMatch::Stranger
        );
    }

    #[test]
    fn a_receipt_is_about_one_purchase() {
        let receipt: X402Receipt = serde_json::from_value(payload()).unwrap();
        let bought = |network: &str, url: &str, payer: Option<u8>| PurchaseFacts {
            decision: "sha256:00".to_owned(),
            name: "a.eth".to_owned(),
            verb: "summarize".to_owned(),
            network: network.parse().ok(),
            url: Url::parse(url).unwrap(),
            payer: payer.map(test_address),
        };
        let place = |bought: &PurchaseFacts| receipt.purchase_objection(bought).and_then(|reason| reason.place);
        let url = "https://api.example.org/summarize/v1";
        for payer in [None, Some(PAYER)] {
            assert_eq!(place(&bought("eip155:84532", url, payer)), None);
            assert_eq!(place(&bought("eip155:84532", &format!("{url}?a=1"), payer)), None, "a query does not count");
        }
        assert_eq!(place(&bought("eip155:8453", url, None)).as_deref(), Some("/payload/network"));
        assert_eq!(place(&PurchaseFacts { network: None, ..bought("eip155:8453", url, None) }), None, "it may be any");
        assert_eq!(place(&bought("eip155:84532", url, Some(PAYEE))).as_deref(), Some("/payload/payer"));
        let named = X402Receipt { payer: "did:pkh:eip155:1:0x01".to_owned(), ..receipt.clone() };
        let reason = named.purchase_objection(&bought("eip155:84532", url, Some(PAYER))).unwrap();
        assert_eq!((reason.place.as_deref(), reason.effect), (Some("/payload/payer"), ReasonEffect::Unknown));
        for other in ["https://api.example.org/analyze/v1", "https://api.example.org:444/summarize/v1"] {
            assert_eq!(place(&bought("eip155:84532", other, None)).as_deref(), Some("/payload/resourceUrl"));
        }
        let of_resource = |resource: &str| X402Receipt { resource_url: resource.to_owned(), ..receipt.clone() };
        let place =
            |resource: &str| of_resource(resource).purchase_objection(&bought("eip155:84532", url, None)).is_none();
        assert!(place("http://api.example.org/summarize/v1"), "the seller stands behind a proxy that ends TLS");
        assert!(!place("http://api.example.org:8080/summarize/v1") && !place("http://api.example.org/analyze/v1"));
        let open = bought("eip155:84532", "http://localhost:4021/summarize/v1", None);
        assert!(of_resource("https://localhost:4021/summarize/v1").purchase_objection(&open).is_some());
        let tool = X402Receipt { resource_url: "mcp://tool/summarize".to_owned(), ..receipt.clone() };
        let reason = tool.purchase_objection(&bought("eip155:84532", url, None)).unwrap();
        assert_eq!((reason.code, reason.effect), (ReasonCode::ReceiptRequestMismatch, ReasonEffect::Unknown));
    }

    #[test]
    fn the_digest_is_that_of_what_is_signed() {
        let digest = |payload: &Value| serde_json::from_value::<X402Receipt>(payload.clone()).unwrap().digest();
        let mut short = payload();
        short.as_object_mut().unwrap().remove("transaction");
        assert_eq!(digest(&payload()), digest(&short), "absent is empty");
        short["issuedAt"] = 1.into();
        assert_ne!(digest(&payload()), digest(&short));
    }
}
