//! The maximum-size requests that are most expensive to decide, by the cause of the cost.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use clresolve_payment::request::{MAX_REQUEST_BYTES, MAX_URL_BYTES};
use clresolve_payment::terms::{MAX_ENTRIES, MAX_TERMS_BYTES};
use serde_json::{Value, json};

pub(crate) const NAME: &str = "good.eth";
pub(crate) const VERB: &str = "summarize";
pub(crate) const NETWORK: &str = "eip155:84532";
pub(crate) const USDC: &str = "0x036CbD53842c5426634e7929541eC2318f3dCF7e";
const THIEF: &str = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC";
pub(crate) const URL: &str = "https://api.sandbox.example/summarize/v1";

/// A signature that some key could have made over anything: `r` is a point of the curve.
const SIGNATURE: &str = "0x79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798\
                         00000000000000000000000000000000000000000000000000000000000000011b";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The maximum number of checked offers per entry, each signed by a third party.
    Signatures,
    /// The same, preceded by long offers about other assets.
    Offers,
    /// The same, as JWS with a long header and payload.
    Jws,
    /// A payment header of maximum length that is compared with every entry.
    Signed,
    /// The same terms in the header and the body, with the maximum number of values.
    Twice,
    /// Entries that differ in everything, compared with a long URL.
    Entries,
    /// As many short headers as fit.
    Headers,
    /// One header with a long name and as many values as fit.
    HeaderValues,
    /// A selected entry with the maximum number of values.
    Selected,
    /// As many values as fit in place of a selected entry.
    SelectedValues,
    /// Limits that list the maximum number of networks.
    Networks,
    /// Limits that list the maximum number of assets.
    Assets,
    Base64,
}

impl Kind {
    pub(crate) const ALL: [Self; 13] = [
        Self::Signatures,
        Self::Offers,
        Self::Jws,
        Self::Signed,
        Self::Twice,
        Self::Entries,
        Self::Headers,
        Self::HeaderValues,
        Self::Selected,
        Self::SelectedValues,
        Self::Networks,
        Self::Assets,
        Self::Base64,
    ];

    /// The request, padded with spaces to the maximum length.
    pub(crate) fn question(self) -> Vec<u8> {
        let mut text = self.text();
        assert!(text.len() <= MAX_REQUEST_BYTES, "{self:?}: {} bytes", text.len());
        text.push_str(&" ".repeat(MAX_REQUEST_BYTES - text.len()));
        text.into_bytes()
    }

    fn text(self) -> String {
        let room = MAX_REQUEST_BYTES - 4096;
        let around = |members: &str| format!(r#"{{"name":"{NAME}","verb":"{VERB}",{members}}}"#);
        let terms = |terms: &Value| around(&format!(r#""url":"{URL}","paymentRequired":{terms}"#));
        let beside =
            |member: &str| around(&format!(r#""paymentRequired":{},{member}"#, demand(vec![entry(0)], vec![])));
        let response = |members: &str| around(&format!(r#""response":{{"status":402,"url":"{URL}",{members}}}"#));
        let same = || vec![entry(0); MAX_ENTRIES];
        match self {
            Self::Signatures => terms(&demand(same(), stranger(4))),
            Self::Offers => {
                let other = json!({"format": "eip712", "payload": offer(&"u".repeat(1100), THIEF), "signature": "0x"});
                terms(&demand(same(), [vec![other; 28], stranger(4)].concat()))
            }
            Self::Jws => {
                let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
                let header = part(&json!({"alg": "EdDSA", "kid": "k".repeat(300)}));
                let signature = URL_SAFE_NO_PAD.encode([1; 64]);
                let jws = |url: &str, asset: &str| {
                    let payload = part(&offer(url, asset));
                    json!({"format": "jws", "signature": format!("{header}.{payload}.{signature}")})
                };
                terms(&demand(same(), [vec![jws(&"u".repeat(500), THIEF); 28], vec![jws(URL, USDC); 4]].concat()))
            }
            Self::Signed => {
                let mut demand = demand(same(), stranger(4));
                demand["extensions"]["x"] = json!(vec![0; 1500]);
                let authorization = json!({
                    "from": USDC, "to": THIEF, "value": "10000", "validAfter": "0", "validBefore": "60",
                    "nonce": format!("0x{:064x}", 0),
                });
                let payment = json!({
                    "x402Version": 2, "accepted": entry(0), "extensions": {"x": demand["extensions"]["x"]},
                    "payload": {"signature": SIGNATURE, "authorization": authorization},
                });
                let header = STANDARD.encode(payment.to_string());
                around(&format!(r#""header":"{header}","url":"{URL}","paymentRequired":{demand}"#))
            }
            Self::Twice => {
                let mut demand = demand(same(), vec![]);
                demand["extensions"]["x"] = json!(vec![0; 3700]);
                let body = serde_json::to_string(&demand.to_string()).expect("a text");
                response(&format!(
                    r#""headers":{{"PAYMENT-REQUIRED":"{}"}},"body":{body}"#,
                    STANDARD.encode(demand.to_string())
                ))
            }
            Self::Entries => {
                let entries = (0..MAX_ENTRIES).map(entry).collect();
                let url = format!("https://other.example/{}", "é".repeat((MAX_URL_BYTES - 100) / 2));
                around(&format!(r#""url":"{url}","paymentRequired":{}"#, demand(entries, stranger(1))))
            }
            Self::Headers => response(&format!(r#""headers":[["",""]{}]"#, r#",["",""]"#.repeat(room / 8))),
            Self::HeaderValues => {
                let (name, values) = ("n".repeat(room / 2), r#","""#.repeat(room / 6));
                response(&format!(r#""headers":{{"{name}":[""{values}]}}"#))
            }
            Self::Selected => beside(&format!(r#""selected":{{"a":[0{}]}}"#, ",0".repeat(4000))),
            Self::SelectedValues => beside(&format!(r#""selected":{{"a":[0{}]}}"#, ",0".repeat(room / 2))),
            Self::Networks => {
                let networks: String = (0..4000).map(|at| format!(r#","eip155:{at}""#)).collect();
                beside(&format!(r#""limits":{{"networks":["{NETWORK}"{networks}]}}"#))
            }
            Self::Assets => {
                let assets: String = (0..1400).map(|at| format!(r#","0x{at:040x}""#)).collect();
                beside(&format!(r#""limits":{{"assets":{{"{NETWORK}":["{USDC}"{assets}]}}}}"#))
            }
            Self::Base64 => response(&format!(r#""body_base64":"{}""#, STANDARD.encode(vec![b'{'; room / 4 * 3]))),
        }
    }
}

/// An entry that the operator's limits permit, but whose payee the name does not publish.
fn entry(index: usize) -> Value {
    json!({
        "scheme": "exact", "network": NETWORK, "amount": (10_000 + index).to_string(), "asset": USDC, "payTo": THIEF,
        "maxTimeoutSeconds": 60, "extra": {"name": "USDC", "version": "2"},
    })
}

fn demand(entries: Vec<Value>, offers: Vec<Value>) -> Value {
    let value = json!({
        "x402Version": 2, "resource": {"url": URL}, "accepts": entries,
        "extensions": {"offer-receipt": {"info": {"offers": offers}}},
    });
    assert!(value.to_string().len() <= MAX_TERMS_BYTES, "{} bytes", value.to_string().len());
    value
}

fn offer(url: &str, asset: &str) -> Value {
    json!({
        "version": 1, "resourceUrl": url, "scheme": "exact", "network": NETWORK, "asset": asset, "payTo": THIEF,
        "amount": "10000",
    })
}

/// Offers for the first entry, signed by a key that the name does not publish.
fn stranger(count: usize) -> Vec<Value> {
    vec![json!({"format": "eip712", "payload": offer(URL, USDC), "signature": SIGNATURE}); count]
}
