//! What a payment header permits: determined by the signed payload, never by what the header claims to accept.

mod payload;
mod permission;
#[cfg(test)]
mod tests;

use std::fmt::Display;
use std::ops::RangeInclusive;

use alloy_primitives::{Address, B256, U256, address};
use alloy_sol_types::SolStruct as _;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};

use clresolve_core::json::JsonLimits;
use clresolve_core::mutant;
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_core::text::excerpt_text;
use clresolve_verdict::verdict::canonical_digest;

use crate::asset::AssetProperties;
use crate::encoding::decode_header_json;
use crate::forms;
use crate::network::Caip2Network;
use crate::terms::{self, ExactPrice, PaymentTerms, TransferMethod, X402Version, without_nulls};
use crate::typed_data::{self, recover_signer};
use payload::{Eip3009Payload, Permit2Payload};

pub(crate) use permission::PaymentPermission;
pub use permission::TransferPermit;

/// Maximum length of a payment header. Those of the SDKs take two kilobytes.
pub const MAX_HEADER_BYTES: usize = 16 * 1024;

/// How far the signer's clock may be ahead of the local clock, in seconds: the same tolerance as for signed verdicts.
pub const MAX_CLOCK_SKEW: u64 = 30;

/// The only Permit2 spender that pays nobody but the witness's `to`: the x402 proxy for the scheme `exact`.
pub const PERMIT2_PROXY: Address = address!("402085c248EeA27D92E8b30b2C58ed07f9E20001");

/// Parser limits for a payment header. It repeats the extensions of the terms, so it nests as deeply.
const LIMITS: JsonLimits =
    JsonLimits { bytes: MAX_HEADER_BYTES, levels: 32, values: 2048, name: 1024, paths: 256 * 1024 };

const MEMBERS_V1: &[&str] = &["x402Version", "scheme", "network", "payload"];

const MEMBERS_V2: &[&str] = &["x402Version", "resource", "accepted", "payload", "extensions"];

/// The extension in which a client identifies its payment.
const PAYMENT_IDENTIFIER: &str = "payment-identifier";

const PAYMENT_ID_BYTES: RangeInclusive<usize> = 16..=128;

/// A payment header (`PAYMENT-SIGNATURE`, or `X-PAYMENT` in version 1) that answers terms and permits only the one
/// payment in its signed payload.
#[derive(Clone, Debug)]
pub struct PaymentHeader {
    payment: Value,
    version: X402Version,
}

impl PaymentHeader {
    /// Parses the header.
    ///
    /// # Errors
    /// `payment-signature-mismatch`, with the difference from the terms.
    pub fn parse_for_terms(header: &str, terms: &PaymentTerms) -> Result<Self, Box<Reason>> {
        let payment = decode_header(header)?;
        let version = header_version(&payment, terms)?;
        reject_unknown_members(&payment, version)?;
        check_resource(&payment, terms.resource.as_ref())?;
        check_extensions(&payment, &terms.extensions)?;
        Ok(Self { payment, version })
    }

    /// Checks that the header permits exactly this price of this entry, in the asset with this EIP-712 domain, and no
    /// longer than the price's timeout.
    ///
    /// # Errors
    /// `payment-signature-mismatch`, with the difference.
    pub fn check_against_price(
        &self,
        entry: &Value,
        price: &ExactPrice,
        asset: &AssetProperties,
        now: Timestamp,
    ) -> Result<(), Box<Reason>> {
        match self.version {
            X402Version::V1 => check_v1_members(&self.payment, price)?,
            X402Version::V2 => check_accepted(&self.payment, entry, price)?,
        }
        let now = u64::try_from(now.as_second()).unwrap_or_default();
        match price.transfer {
            TransferMethod::Eip3009 => check_eip3009(&parse_payload(&self.payment)?, price, asset, now),
            TransferMethod::Permit2 => check_permit2(&parse_payload(&self.payment)?, price, now),
        }
    }
}

fn decode_header(header: &str) -> Result<Value, Box<Reason>> {
    if header.len() > MAX_HEADER_BYTES {
        return Err(
            header_mismatch_reason("", format!("The payment header is longer than {MAX_HEADER_BYTES} bytes.")).into()
        );
    }
    let decoded = decode_header_json(header, LIMITS);
    decoded.map_err(|error| {
        let reason = header_mismatch_reason("", "The payment header cannot be decoded.");
        reason.observed(excerpt_text(&error.to_string())).into()
    })
}

/// The version of the header, if the terms can be paid in it.
fn header_version(payment: &Value, terms: &PaymentTerms) -> Result<X402Version, Box<Reason>> {
    let number = payment.get("x402Version");
    let is_stated = |version: &X402Version| number.and_then(Value::as_u64) == Some(version.version_number());
    let stated = [X402Version::V1, X402Version::V2].into_iter().find(is_stated);
    let demanded = stated.filter(|version| terms.can_be_paid_in(*version));
    demanded.ok_or_else(|| difference_reason("/x402Version", terms.version.version_number(), display_value(number)))
}

/// Rejects members that x402 does not define, since they might permit something too.
fn reject_unknown_members(payment: &Value, version: X402Version) -> Result<(), Box<Reason>> {
    let known = match version {
        X402Version::V1 => MEMBERS_V1,
        X402Version::V2 => MEMBERS_V2,
    };
    let mut members = payment.as_object().into_iter().flat_map(Map::keys);
    let Some(further) = members.find(|name| !known.contains(&name.as_str()) && !mutant!("any-member-leaves")) else {
        return Ok(());
    };
    let message = "The payment header has a member that x402 does not define.";
    Err(header_mismatch_reason("", message).observed(excerpt_text(further)).into())
}

/// Checks the unsigned members of a version 1 header. They must not contradict the price.
fn check_v1_members(payment: &Value, price: &ExactPrice) -> Result<(), Box<Reason>> {
    let text = |member: &str| payment.get(member).and_then(Value::as_str);
    if mutant!("headers-claim-anything") {
        return Ok(());
    }
    if text("scheme") != Some("exact") {
        return Err(difference_reason("/scheme", "exact", display_value(payment.get("scheme"))));
    }
    if text("network").and_then(Caip2Network::from_v1_name).as_ref() != Some(&price.network) {
        return Err(difference_reason("/network", &price.network, display_value(payment.get("network"))));
    }
    Ok(())
}

/// Like [`check_v1_members`], for the entry that a version 2 header repeats.
fn check_accepted(payment: &Value, entry: &Value, price: &ExactPrice) -> Result<(), Box<Reason>> {
    let Some(accepted) = payment.get("accepted") else { return Ok(()) };
    let stated = terms::parse_price(accepted, X402Version::V2, "/accepted".to_owned());
    if stated.as_ref() != Ok(price) && !mutant!("headers-accept-any-entry") {
        let message = "The payment header accepts a different entry than the decided one.";
        return Err(header_mismatch_reason("/accepted", message).into());
    }
    if is_subset_of_entry(accepted, entry) {
        return Ok(());
    }
    let message = "The entry in the payment header has members or values that the terms do not have.";
    Err(header_mismatch_reason("/accepted", message).into())
}

/// Whether `accepted` contains nothing beyond the entry.
fn is_subset_of_entry(accepted: &Value, entry: &Value) -> bool {
    // The Python client writes an empty `extra` if the entry has none.
    let is_default = |name: &str, said: &Value| name == "extra" && said.as_object().is_some_and(Map::is_empty);
    let is_known = |(name, said): (&String, &Value)| match entry.get(name).filter(|own| !own.is_null()) {
        Some(own) => is_json_subset(said, own),
        None => said.is_null() || is_default(name, said) || mutant!("any-member-leaves"),
    };
    accepted.as_object().is_none_or(|accepted| accepted.iter().all(is_known))
}

/// Whether `said` repeats `own`, except for missing members: clients drop unknown members. A `null` member counts as
/// missing, since the schemas of x402 permit it.
fn is_json_subset(said: &Value, own: &Value) -> bool {
    if mutant!("any-member-leaves") {
        return true;
    }
    match (said, own) {
        (Value::Object(said), Value::Object(own)) => {
            let is_said = |(name, said): (&String, &Value)| own.get(name).is_some_and(|own| is_json_subset(said, own));
            said.iter().all(|member| member.1.is_null() || is_said(member))
        }
        _ => said == own || is_equal_without_nulls(said, own),
    }
}

/// Whether two values differ at most in `null` members.
fn is_equal_without_nulls(said: &Value, own: &Value) -> bool {
    canonical_digest(&without_nulls(said)) == canonical_digest(&without_nulls(own))
}

/// Rejects headers that add to the seller's description of the resource.
fn check_resource(payment: &Value, demanded: Option<&Value>) -> Result<(), Box<Reason>> {
    let Some(resource) = payment.get("resource").filter(|resource| !resource.is_null()) else { return Ok(()) };
    if demanded.is_some_and(|demanded| is_json_subset(resource, demanded)) {
        return Ok(());
    }
    let message =
        "The payment header describes the resource differently than the terms, and what that permits is not checked.";
    Err(header_mismatch_reason("/resource", message).into())
}

/// Rejects headers that add to the seller's extensions. For some extensions, clients add another signature of the payer
/// there, such as an EIP-2612 permit or a transaction that approves any amount.
fn check_extensions(payment: &Value, demanded: &Map<String, Value>) -> Result<(), Box<Reason>> {
    let Some(extensions) = payment.get("extensions").filter(|extensions| !extensions.is_null()) else { return Ok(()) };
    let Some(extensions) = extensions.as_object() else {
        return Err(difference_reason("/extensions", "an object", display_value(Some(extensions))));
    };
    let repeats = |name: &str, said: &Value| {
        let same = |said: &Value| demanded.get(name).is_some_and(|own| is_equal_without_nulls(said, own));
        said.is_null()
            || same(said)
            || (name == PAYMENT_IDENTIFIER && without_payment_id(said).is_some_and(|said| same(&said)))
    };
    let further = extensions.iter().find(|(name, said)| !repeats(name, said) && !mutant!("further-signatures-leave"));
    let Some((name, _)) = further else { return Ok(()) };
    let message = "An extension in the payment header differs from the terms, and what that permits is not checked.";
    Err(header_mismatch_reason("/extensions", message).observed(excerpt_text(name)).into())
}

/// The payment identifier extension without the identifier that the client added.
fn without_payment_id(said: &Value) -> Option<Value> {
    let mut said = said.clone();
    let id = said.get_mut("info")?.as_object_mut()?.remove("id")?;
    let id = id.as_str()?.as_bytes();
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (PAYMENT_ID_BYTES.contains(&id.len()) && id.iter().all(is_name)).then_some(said)
}

/// Deserializes the payload according to the price's transfer method.
fn parse_payload<'v, P: Deserialize<'v>>(payment: &'v Value) -> Result<P, Box<Reason>> {
    forms::deserialize_without_lists(payment.get("payload").unwrap_or(&Value::Null)).map_err(|error| {
        let message = "The payload of the payment header does not have the form of the entry's transfer method.";
        header_mismatch_reason("/payload", message).observed(excerpt_text(&error.to_string())).into()
    })
}

fn check_eip3009(
    payload: &Eip3009Payload,
    price: &ExactPrice,
    asset: &AssetProperties,
    now: u64,
) -> Result<(), Box<Reason>> {
    const PLACE: &str = "/payload/authorization";
    let authorization = &payload.authorization;
    if authorization.to != price.pay_to && !mutant!("signatures-pay-anybody") {
        return Err(difference_reason(&format!("{PLACE}/to"), price.pay_to, authorization.to));
    }
    if authorization.value != price.amount && !mutant!("signatures-pay-any-amount") {
        return Err(difference_reason(&format!("{PLACE}/value"), price.amount, authorization.value));
    }
    check_authorization_start(authorization.valid_after, now, &format!("{PLACE}/validAfter"))?;
    check_authorization_expiry(authorization.valid_before, price, now, &format!("{PLACE}/validBefore"))?;
    let hash = authorization.message_to_sign().eip712_signing_hash(&typed_data::asset_domain(asset, price));
    check_signer(hash, &payload.signature, authorization.from)
}

fn check_permit2(payload: &Permit2Payload, price: &ExactPrice, now: u64) -> Result<(), Box<Reason>> {
    const PLACE: &str = "/payload/permit2Authorization";
    let permit = &payload.permit2_authorization;
    if permit.spender != PERMIT2_PROXY && !mutant!("anybody-spends") {
        return Err(difference_reason(&format!("{PLACE}/spender"), PERMIT2_PROXY, permit.spender));
    }
    if permit.witness.to != price.pay_to && !mutant!("any-witness") {
        return Err(difference_reason(&format!("{PLACE}/witness/to"), price.pay_to, permit.witness.to));
    }
    if permit.permitted.token != price.asset && !mutant!("permits-of-any-token") {
        return Err(difference_reason(&format!("{PLACE}/permitted/token"), price.asset, permit.permitted.token));
    }
    if permit.permitted.amount != price.amount && !mutant!("permits-of-any-amount") {
        return Err(difference_reason(&format!("{PLACE}/permitted/amount"), price.amount, permit.permitted.amount));
    }
    check_authorization_start(permit.witness.valid_after, now, &format!("{PLACE}/witness/validAfter"))?;
    check_authorization_expiry(permit.deadline, price, now, &format!("{PLACE}/deadline"))?;
    let hash = permit.message_to_sign().eip712_signing_hash(&typed_data::permit2_domain(price.chain_id));
    check_signer(hash, &payload.signature, permit.from)
}

/// Checks that the payment can be settled now, rather than only at some later time.
fn check_authorization_start(start: U256, now: u64, place: &str) -> Result<(), Box<Reason>> {
    let latest = U256::from(now) + U256::from(MAX_CLOCK_SKEW);
    if start <= latest || mutant!("signatures-begin-later") {
        return Ok(());
    }
    Err(difference_reason(place, format_args!("at most {latest}"), start))
}

/// Checks that the payment can be settled for as long as the price states, and no longer.
fn check_authorization_expiry(end: U256, price: &ExactPrice, now: u64, place: &str) -> Result<(), Box<Reason>> {
    let now = U256::from(now);
    let latest = now + U256::from(price.max_timeout_seconds) + U256::from(MAX_CLOCK_SKEW);
    if end > now && (end <= latest || mutant!("signatures-never-end")) {
        return Ok(());
    }
    Err(difference_reason(place, format_args!("after {now} and at most {latest}"), end))
}

/// Checks the signer. The signed domain contains asset and chain, so a signature for others recovers to a different
/// address.
fn check_signer(hash: B256, signature: &str, from: Address) -> Result<(), Box<Reason>> {
    match recover_signer(hash, signature) {
        Ok(signer) if signer == from || mutant!("anybody-signs") => Ok(()),
        Ok(_) => {
            let message = "The signature is not one of `from` for this asset on this chain.";
            Err(header_mismatch_reason("/payload/signature", message).into())
        }
        Err(cause) => {
            let message = "What the payment header permits cannot be checked.";
            Err(header_mismatch_reason("/payload/signature", message).observed(cause.to_string()).into())
        }
    }
}

fn difference_reason(place: &str, expected: impl Display, observed: impl Display) -> Box<Reason> {
    let reason = header_mismatch_reason(place, "The payment header permits a different payment than the decided one.");
    Box::new(reason.expected(expected.to_string()).observed(excerpt_text(&observed.to_string())))
}

fn header_mismatch_reason(place: &str, message: impl Into<String>) -> Reason {
    let reason = Reason::new(ReasonCode::PaymentSignatureMismatch).message(message);
    if place.is_empty() { reason } else { reason.at_place(place) }
}

fn display_value(value: Option<&Value>) -> String {
    value.map_or_else(|| "nothing".to_owned(), Value::to_string)
}
