//! The sellers of the sandbox: the responses of its agents' entries to a request without a payment. There is an honest
//! seller, and one for each defect of the terms.

use std::borrow::Cow;
use std::slice;

use alloy_primitives::{Address, B256, Bytes, FixedBytes, U256};
use alloy_sol_types::{SolStruct, eip712_domain, sol};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clresolve_core::payment::CoinType;
use jiff::Timestamp;
use k256::ecdsa::SigningKey;
use serde_json::{Value, json};

use crate::chain::{CHAIN_ID, DOLLAR};
use crate::keys::{payee_address, payee_key, stranger_address, stranger_key};
use crate::web::{self, HostReaction};

pub(crate) const SELLER_HOST: &str = "api.sandbox.example";

/// The host to which a seller redirects. It responds with its own terms.
pub(crate) const THIEF_HOST: &str = "thief.sandbox.example";

/// The price of an honest seller in atomic units: 0.01 of the sandbox's dollar.
pub const PRICE: u64 = 10_000;

/// A network that has a name in version 1 of x402, and its asset.
pub(crate) const BASE_SEPOLIA: u64 = 84_532;
const BASE_SEPOLIA_DOLLAR: &str = "0x036CbD53842c5426634e7929541eC2318f3dCF7e";

/// How long a signed offer is valid, in seconds.
const OFFER_SECONDS: i64 = 24 * 60 * 60;

sol! {
    /// An offer of x402's extension offer-receipt, version 0.6.
    struct Offer {
        uint256 version;
        string resourceUrl;
        string scheme;
        string network;
        string asset;
        string payTo;
        string amount;
        uint256 validUntil;
    }
}

/// The base URL of the runtime of a seller with this behaviour.
pub(crate) fn runtime_url(behaviour: &str) -> String {
    if behaviour.is_empty() { format!("https://{SELLER_HOST}") } else { format!("https://{SELLER_HOST}/{behaviour}") }
}

/// The address records of the honest payee, by coin type.
pub(crate) fn payee_address_records() -> Vec<(CoinType, Bytes)> {
    let coins = [CHAIN_ID, BASE_SEPOLIA].into_iter().filter_map(CoinType::from_chain_id);
    coins.map(|coin| (coin, Bytes::copy_from_slice(payee_address().as_slice()))).collect()
}

/// The sellers' response to a request for `path` on their host.
pub(crate) fn answer_seller_request(host: &str, path: &str, now: Timestamp) -> HostReaction {
    let url = format!("https://{host}{path}");
    let mut segments = path.trim_start_matches('/').split('/').rev();
    let (Some(_version), Some(verb)) = (segments.next(), segments.next()) else {
        return web::html_reaction(hyper::StatusCode::NOT_FOUND);
    };
    if host == THIEF_HOST {
        return version_2_reply(&url, verb, &[terms_entry(stranger_address())]);
    }
    seller_reply(segments.next().unwrap_or_default(), &url, verb, &terms_entry(payee_address()), now)
}

/// The response of a seller with this behaviour at `url`. `honest` is the entry of a seller without a defect.
pub(crate) fn seller_reply(behaviour: &str, url: &str, verb: &str, honest: &Value, now: Timestamp) -> HostReaction {
    match behaviour {
        "" => version_2_reply(url, verb, slice::from_ref(honest)),
        "v1" => version_1_reply(url, verb),
        behaviour => faulty_seller_reply(behaviour, url, verb, honest, now),
    }
}

/// Sellers with a defect, and those that need another proof.
fn faulty_seller_reply(behaviour: &str, url: &str, verb: &str, honest: &Value, now: Timestamp) -> HostReaction {
    let with = |change: &dyn Fn(&mut Value)| {
        let mut entry = honest.clone();
        change(&mut entry);
        entry
    };
    let changed = |change: &dyn Fn(&mut Value)| version_2_reply(url, verb, &[with(change)]);
    let to_stranger = || with(&|entry| entry["payTo"] = json!(stranger_address()));
    match behaviour {
        "malformed" => changed(&|entry| entry["amount"] = json!("0.01")),
        "ambiguous" => reply_with_two_headers(url, verb),
        "network" => changed(&|entry| entry["network"] = json!("eip155:1")),
        "asset" => changed(&|entry| entry["asset"] = json!(stranger_address())),
        "amount" => changed(&|entry| entry["amount"] = json!("900000")),
        "unlimited" => changed(&|entry| entry["asset"] = json!(UNLIMITED)),
        "years" => changed(&|entry| entry["maxTimeoutSeconds"] = json!(315_360_000)),
        "permit2" => changed(&|entry| entry["extra"]["assetTransferMethod"] = json!("permit2")),
        "scheme" => changed(&|entry| entry["scheme"] = json!("upto")),
        "payee" => changed(&|entry| entry["payTo"] = json!(stranger_address())),
        "second" => version_2_reply(url, verb, &[honest.clone(), to_stranger()]),
        "resource" => version_2_reply(&format!("https://{THIEF_HOST}/{verb}/v1"), verb, slice::from_ref(honest)),
        "tool" => version_2_reply(&format!("mcp://tool/{verb}"), verb, slice::from_ref(honest)),
        "near" => version_2_reply(&format!("{url}?from=sandbox"), verb, slice::from_ref(honest)),
        "redirect" => web::redirect_reaction(&format!("https://{THIEF_HOST}/{verb}/v1")),
        "fresh" => {
            reply_with_offer(url, verb, &[to_stranger()], &signed_offer(url, &payee_key(), stranger_address(), now))
        }
        "offer" => {
            let mut tampered = signed_offer(url, &payee_key(), stranger_address(), now);
            tampered["payload"]["amount"] = json!("1");
            reply_with_offer(url, verb, &[to_stranger()], &tampered)
        }
        "signer" => {
            reply_with_offer(url, verb, &[to_stranger()], &signed_offer(url, &stranger_key(), stranger_address(), now))
        }
        "sponsor" => {
            let sponsoring = json!({"eip2612GasSponsoring": {"info": {"version": "1"}}});
            reply_with_extensions(url, verb, slice::from_ref(honest), sponsoring)
        }
        _ => web::html_reaction(hyper::StatusCode::NOT_FOUND),
    }
}

/// A contract that the sandbox's limits list without an amount.
pub const UNLIMITED: Address = alloy_primitives::address!("0000000000000000000000000000000000E0e0e0");

/// An honest entry of version 2, with `pay_to` as the payee.
pub(crate) fn terms_entry(pay_to: Address) -> Value {
    json!({
        "scheme": "exact",
        "network": format!("eip155:{CHAIN_ID}"),
        "amount": PRICE.to_string(),
        "asset": DOLLAR,
        "payTo": pay_to,
        "maxTimeoutSeconds": 60,
        "extra": {"name": "Sandbox Dollar", "version": "1"},
    })
}

pub(crate) fn payment_terms(url: &str, verb: &str, entries: &[Value], extensions: Value) -> Value {
    json!({
        "x402Version": 2,
        "error": "PAYMENT-SIGNATURE header is required",
        "resource": {"url": url, "description": verb, "mimeType": "application/json"},
        "accepts": entries,
        "extensions": extensions,
    })
}

fn version_2_reply(url: &str, verb: &str, entries: &[Value]) -> HostReaction {
    reply_with_extensions(url, verb, entries, json!({}))
}

fn reply_with_offer(url: &str, verb: &str, entries: &[Value], offer: &Value) -> HostReaction {
    reply_with_extensions(url, verb, entries, json!({"offer-receipt": {"info": {"offers": [offer]}}}))
}

fn reply_with_extensions(url: &str, verb: &str, entries: &[Value], extensions: Value) -> HostReaction {
    let header = STANDARD.encode(payment_terms(url, verb, entries, extensions).to_string());
    web::payment_required_reaction(&[header], "{}")
}

/// Version 1 has no name for the sandbox's chain.
fn version_1_reply(url: &str, verb: &str) -> HostReaction {
    let body = json!({
        "x402Version": 1,
        "error": "X-PAYMENT header is required",
        "accepts": [{
            "scheme": "exact",
            "network": "base-sepolia",
            "maxAmountRequired": PRICE.to_string(),
            "resource": url,
            "description": verb,
            "mimeType": "application/json",
            "outputSchema": null,
            "payTo": payee_address(),
            "maxTimeoutSeconds": 60,
            "asset": BASE_SEPOLIA_DOLLAR,
            "extra": {"name": "USDC", "version": "2"},
        }],
    });
    web::payment_required_reaction(&[], &body.to_string())
}

fn reply_with_two_headers(url: &str, verb: &str) -> HostReaction {
    let headers = [payee_address(), stranger_address()]
        .map(|payee| STANDARD.encode(payment_terms(url, verb, &[terms_entry(payee)], json!({})).to_string()));
    web::payment_required_reaction(&headers, "{}")
}

/// An offer of an honest entry that pays `pay_to`, signed by `key`.
fn signed_offer(url: &str, key: &SigningKey, pay_to: Address, now: Timestamp) -> Value {
    let valid_until = now.as_second() + OFFER_SECONDS;
    let offer = Offer {
        version: U256::ONE,
        resourceUrl: url.to_owned(),
        scheme: "exact".to_owned(),
        network: format!("eip155:{CHAIN_ID}"),
        asset: DOLLAR.to_string(),
        payTo: pay_to.to_string(),
        amount: PRICE.to_string(),
        validUntil: U256::try_from(valid_until).unwrap_or_default(),
    };
    let domain = eip712_domain! { name: Cow::Borrowed("x402 offer"), version: Cow::Borrowed("1"), chain_id: 1, };
    json!({
        "format": "eip712",
        "acceptIndex": 0,
        "payload": {
            "version": 1,
            "resourceUrl": offer.resourceUrl,
            "scheme": offer.scheme,
            "network": offer.network,
            "asset": offer.asset,
            "payTo": offer.payTo,
            "amount": offer.amount,
            "validUntil": valid_until,
        },
        "signature": signature_hex(key, offer.eip712_signing_hash(&domain)),
    })
}

fn signature_hex(key: &SigningKey, hash: B256) -> String {
    alloy_primitives::hex::encode_prefixed(sign_hash(key, hash))
}

/// 65 bytes, in the format that wallets use.
pub(crate) fn sign_hash(key: &SigningKey, hash: B256) -> FixedBytes<65> {
    let (signature, recovery) = key.sign_prehash_recoverable(hash.as_slice()).expect("a hash can be signed");
    FixedBytes::<64>::from_slice(&signature.to_bytes()).concat_const([27 + recovery.to_byte()].into())
}
