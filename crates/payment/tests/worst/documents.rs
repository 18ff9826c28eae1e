//! The questions of full size that cost most to decide, by what is dear in them.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, U256, hex};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as STANDARD_URL};
use clresolve_core::state::State;
use clresolve_jose::SigningKey as OfferKey;
use clresolve_payment::artifact::SignerKeys;
use clresolve_payment::asset::{Asset, AssetId};
use clresolve_payment::decide::{Knowledge, Question, decide};
use clresolve_payment::limits::{AssetLimit, Limits};
use clresolve_payment::network::Network;
use clresolve_payment::payee::Payees;
use clresolve_payment::request::{MAX_REQUEST_BYTES, MAX_URL_BYTES};
use clresolve_payment::route::Route;
use clresolve_payment::terms::{MAX_ENTRIES, MAX_TERMS_BYTES};
use clresolve_payment::{Decision, DecisionRequest};
use clresolve_verdict::gate::GatePolicy;
use clresolve_verdict::sample;
use clresolve_verdict::trust::Resolution;
use clresolve_verdict::verdict::Identity;
use jiff::Timestamp;
use k256::ecdsa::SigningKey;
use serde_json::{Value, json};

const NAME: &str = "good.eth";
const VERB: &str = "summarize";
const NETWORK: &str = "eip155:84532";
const USDC: &str = "0x036CbD53842c5426634e7929541eC2318f3dCF7e";
const THIEF: &str = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC";
const URL: &str = "https://api.sandbox.example/summarize/v1";

/// What is dear in a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// As many offers for each entry as are checked, each signed by a stranger.
    Signatures,
    /// The same behind long offers about other assets.
    Offers,
    /// The same, each a JWS whose header and payload are long.
    Jws,
    /// A payment header of full length that is held against every entry.
    Signed,
    /// Terms in the header and the same in the body, with as many values as are read.
    Twice,
    /// Entries that differ in everything, against a long URL.
    Entries,
    /// Short headers, as many as fit.
    Headers,
    /// One long header's name with as many values as fit.
    HeaderValues,
    /// A selected entry with as many values as are read.
    Selected,
    /// Values in place of a selected entry, as many as fit.
    SelectedValues,
    /// Limits that name as many networks as fit.
    Networks,
    /// Limits that name as many assets as fit.
    Assets,
    /// A body in base64.
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

    /// The question, filled up with space to the most that is read.
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
                let part = |value: &Value| STANDARD_URL.encode(value.to_string());
                let header = part(&json!({"alg": "EdDSA", "kid": "k".repeat(300)}));
                let signature = STANDARD_URL.encode([1; 64]);
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
                    "nonce": B256::ZERO,
                });
                let payment = json!({
                    "x402Version": 2, "accepted": entry(0), "extensions": {"x": demand["extensions"]["x"]},
                    "payload": {"signature": signature(), "authorization": authorization},
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
                let networks: String = (0..room / 14).map(|at| format!(r#","eip155:{at}""#)).take(room / 17).collect();
                beside(&format!(r#""limits":{{"networks":["{NETWORK}"{networks}]}}"#))
            }
            Self::Assets => {
                let assets: String = (0..room / 45).map(|at| format!(r#","0x{at:040x}""#)).collect();
                beside(&format!(r#""limits":{{"assets":{{"{NETWORK}":["{USDC}"{assets}]}}}}"#))
            }
            Self::Base64 => response(&format!(r#""body_base64":"{}""#, STANDARD.encode(vec![b'{'; room / 4 * 3]))),
        }
    }
}

/// A way to pay that the operator's limits permit, to somebody whom the name does not name.
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

/// Offers for the first entry that a key has signed which the name does not publish.
fn stranger(count: usize) -> Vec<Value> {
    vec![json!({"format": "eip712", "payload": offer(URL, USDC), "signature": signature()}); count]
}

/// A signature over something else: some key could have made it over anything.
fn signature() -> String {
    let key = SigningKey::from_slice(B256::with_last_byte(3).as_slice()).expect("a number below the order");
    let (signature, parity) = key.sign_prehash_recoverable(&[7; 32]).expect("32 bytes are signed");
    format!("0x{}{:02x}", hex::encode(signature.to_bytes()), 27 + parity.to_byte())
}

/// What is known of an agent whose payee nothing but an offer could prove.
pub(crate) struct World {
    resolution: Resolution,
    limits: Limits,
    route: Route,
    signers: SignerKeys,
}

impl World {
    pub(crate) fn new() -> Self {
        let mut verdict = sample::empty(State::Trusted, Timestamp::UNIX_EPOCH, 300).verdict().as_ref().clone();
        verdict.name.normalized = Some(NAME.to_owned());
        let networks = vec![NETWORK.to_owned()];
        verdict.identity = Some(Identity { verbs: vec![VERB.to_owned()], networks, ..Identity::default() });
        let network: Network = NETWORK.parse().expect("CAIP-2");
        let id = AssetId { network: network.clone(), address: USDC.parse().expect("an address") };
        let asset = Asset::known(&id).expect("it is in the table");
        let limit = AssetLimit { asset, max_amount: Some(U256::from(50_000)) };
        Self {
            resolution: sample::live(verdict, None),
            limits: Limits { set: true, networks: [network].into(), assets: [(id, limit)].into(), ..Limits::default() },
            route: Route::configured(URL).expect("an https URL"),
            signers: SignerKeys {
                addresses: vec![Address::repeat_byte(1)],
                ed25519: vec![OfferKey::generate().expect("a key").public().clone()],
            },
        }
    }

    /// Decides the question. `None` where it is none.
    #[inline(never)]
    pub(crate) fn judge_measured(&self, question: &[u8]) -> Option<Decision> {
        self.judge(question)
    }

    /// The same, under a name that no counter looks for.
    #[inline(never)]
    pub(crate) fn judge(&self, question: &[u8]) -> Option<Decision> {
        let request = DecisionRequest::from_json(question).ok()?;
        let terms = request.terms();
        let mut payees = Payees { configured: vec![Address::repeat_byte(1)], ..Payees::default() };
        payees.signers = self.signers.clone();
        let question = Question {
            verb: &request.verb,
            terms: terms.as_ref().map_err(|reason| &**reason),
            url: request.url.as_deref(),
            selected: request.selected.as_ref(),
            signed: request.header.as_deref(),
        };
        let known = Knowledge {
            resolution: &self.resolution,
            gate: &GatePolicy::default(),
            limits: &self.limits.tightened(&request.limits),
            route: Ok(&self.route),
            payees: &BTreeMap::from([(NETWORK.parse().expect("CAIP-2"), payees)]),
            now: Timestamp::UNIX_EPOCH,
        };
        let decision = decide(&question, &known);
        serde_json::to_vec(&decision).expect("JSON");
        Some(decision)
    }
}
