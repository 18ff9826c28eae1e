//! Parses terms from JSON, member by member. An error inside an entry affects only that entry; an error outside the
//! entries affects all of them.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use clresolve_core::json::json_type;
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_core::text::excerpt_text;

use super::{ExactPrice, MAX_ENTRIES, PaymentOption, PaymentTerms, StatedEip712Domain, TransferMethod, X402Version};
use crate::forms;
use crate::network::Caip2Network;

/// The only scheme that states a price.
const EXACT: &str = "exact";

const OFFER_RECEIPT: &str = "offer-receipt";

/// Members of terms and entries. Go's `encoding/json` accepts them in any [spelling](is_spelling_of).
const MEMBERS: [&str; 11] = [
    "x402Version",
    "accepts",
    "resource",
    "scheme",
    "network",
    "amount",
    "maxAmountRequired",
    "asset",
    "payTo",
    "maxTimeoutSeconds",
    "extra",
];

/// Parses the terms in a document.
///
/// # Errors
/// `payment-terms-malformed`, or `payment-terms-ambiguous` if the case of a member's name differs.
pub(crate) fn parse_terms(document: &Value) -> Result<PaymentTerms, Box<Reason>> {
    let document = LocatedJsonObject::from_value(document, String::new())?;
    document.check_member_case()?;
    let version = parse_version(&document)?;
    let resource = match version {
        X402Version::V1 => None,
        X402Version::V2 => Some(document.required_object("resource")?),
    };
    let url = resource.as_ref().map(|resource| resource.required_text("url")).transpose()?;
    let extensions = document.optional_object("extensions")?;
    let offers = extensions.as_ref().map_or(Ok(Vec::new()), parse_offers)?;
    let extensions = extensions.map(|extensions| extensions.members.clone()).unwrap_or_default();
    let accepts =
        document.optional_list("accepts")?.ok_or_else(|| document.missing_member_reason("accepts", "a list"))?;
    if accepts.is_empty() || accepts.len() > MAX_ENTRIES {
        let expected = format!("1 to {MAX_ENTRIES} entries");
        return Err(document.malformed_member_reason("accepts", expected, accepts.len().to_string()));
    }
    for (index, json) in accepts.iter().enumerate().filter(|(_, json)| json.is_object()) {
        LocatedJsonObject::from_value(json, format!("/accepts/{index}"))?.check_member_case()?;
    }
    let entries = accepts.iter().enumerate().map(|(index, json)| parse_option(json, version, url, index));
    Ok(PaymentTerms {
        version,
        also_v1: false,
        moved: BTreeSet::new(),
        resource: resource.map(|resource| Value::Object(resource.members.clone())),
        entries: entries.collect(),
        extensions,
        offers,
    })
}

fn parse_version(document: &LocatedJsonObject<'_>) -> Result<X402Version, Box<Reason>> {
    let value = document.required_member("x402Version", "the number 1 or 2")?;
    let known =
        [X402Version::V1, X402Version::V2].into_iter().find(|version| value.as_u64() == Some(version.version_number()));
    known.ok_or_else(|| document.malformed_member_reason("x402Version", "the number 1 or 2", display_value(value)))
}

fn parse_offers(extensions: &LocatedJsonObject<'_>) -> Result<Vec<Value>, Box<Reason>> {
    let Some(extension) = extensions.optional_object(OFFER_RECEIPT)? else { return Ok(Vec::new()) };
    let Some(info) = extension.optional_object("info")? else { return Ok(Vec::new()) };
    Ok(info.optional_list("offers")?.cloned().unwrap_or_default())
}

fn parse_option(json: &Value, version: X402Version, resource: Option<&str>, index: usize) -> PaymentOption {
    let own = || json.get("resource").and_then(Value::as_str);
    let resource = match version {
        X402Version::V1 => own(),
        X402Version::V2 => resource,
    };
    let place = format!("/accepts/{index}");
    let price = parse_price(json, version, place.clone()).and_then(|price| check_signable(price, version, &place));
    PaymentOption { json: json.clone(), resource: resource.map(str::to_owned), price }
}

/// The price, if clients of this version can sign for it. x402 v1 supports only EIP-3009; its clients sign EIP-3009
/// regardless of `extra`.
fn check_signable(price: ExactPrice, version: X402Version, place: &str) -> Result<ExactPrice, Box<Reason>> {
    if version == X402Version::V2 || price.transfer == TransferMethod::Eip3009 {
        return Ok(price);
    }
    let reason = Reason::new(ReasonCode::PaymentSchemeUnchecked).at_place(format!("{place}/extra/assetTransferMethod"));
    Err(Box::new(reason.expected("eip3009").observed("permit2")))
}

/// The price of an entry at `place` of a document. Checks scheme and network first, because other schemes and networks
/// use different forms for the rest.
///
/// # Errors
/// The errors of [`PaymentOption::price`].
pub(crate) fn parse_price(entry: &Value, version: X402Version, place: String) -> Result<ExactPrice, Box<Reason>> {
    let entry = LocatedJsonObject::from_value(entry, place)?;
    let scheme = entry.required_text("scheme")?;
    if scheme != EXACT && !clresolve_core::mutant!("every-scheme-is-a-price") {
        return Err(entry.unchecked_scheme_reason("scheme", EXACT, scheme));
    }
    let (network, chain_id) = parse_network(&entry, version)?;
    let extra = entry.optional_object("extra")?;
    let transfer = extra.as_ref().map_or(Ok(TransferMethod::Eip3009), parse_transfer_method)?;
    if version == X402Version::V1 {
        entry.required_text("resource")?;
    }
    let [amount, other] = match version {
        X402Version::V1 => ["maxAmountRequired", "amount"],
        X402Version::V2 => ["amount", "maxAmountRequired"],
    };
    entry.reject_conflicting_amount(amount, other)?;
    Ok(ExactPrice {
        network,
        chain_id,
        amount: entry.parse_text_member(amount, forms::AMOUNT, forms::parse_amount)?,
        asset: entry.parse_text_member("asset", forms::ADDRESS, forms::parse_address)?,
        pay_to: entry.parse_text_member("payTo", forms::ADDRESS, forms::parse_address)?,
        max_timeout_seconds: parse_timeout(&entry)?,
        transfer,
        domain: extra.as_ref().map_or_else(|| Ok(StatedEip712Domain::default()), parse_domain)?,
    })
}

fn parse_network(entry: &LocatedJsonObject<'_>, version: X402Version) -> Result<(Caip2Network, u64), Box<Reason>> {
    let name = entry.required_text("network")?;
    let network = match version {
        X402Version::V1 if is_v1_network_name(name) => Caip2Network::from_v1_name(name),
        X402Version::V1 => {
            return Err(entry.malformed_member_reason(
                "network",
                "a network as x402 version 1 names it",
                excerpt_text(name),
            ));
        }
        X402Version::V2 => {
            let network = name.parse::<Caip2Network>();
            Some(network.map_err(|_| {
                entry.malformed_member_reason("network", "a network as CAIP-2 names it", excerpt_text(name))
            })?)
        }
    };
    let chain = network.and_then(|network| network.chain_id().map(|id| (network, id)));
    chain.ok_or_else(|| {
        let reason = Reason::new(ReasonCode::PaymentNetworkMismatch).message("The network is not a known EVM chain.");
        Box::new(
            reason
                .at_place(entry.member_pointer("network"))
                .expected("eip155 and a chain id")
                .observed(excerpt_text(name)),
        )
    })
}

/// Whether `name` could be a version 1 network. These names are an open list without a grammar.
fn is_v1_network_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

fn parse_transfer_method(extra: &LocatedJsonObject<'_>) -> Result<TransferMethod, Box<Reason>> {
    let Some(method) = extra.optional_text("assetTransferMethod")? else { return Ok(TransferMethod::Eip3009) };
    match method {
        "eip3009" => Ok(TransferMethod::Eip3009),
        "permit2" => Ok(TransferMethod::Permit2),
        _ => Err(extra.unchecked_scheme_reason("assetTransferMethod", "eip3009 or permit2", method)),
    }
}

fn parse_timeout(entry: &LocatedJsonObject<'_>) -> Result<u64, Box<Reason>> {
    const EXPECTED: &str = "a number of seconds, whole and not negative";
    let value = entry.required_member("maxTimeoutSeconds", EXPECTED)?;
    value.as_u64().ok_or_else(|| entry.malformed_member_reason("maxTimeoutSeconds", EXPECTED, display_value(value)))
}

fn parse_domain(extra: &LocatedJsonObject<'_>) -> Result<StatedEip712Domain, Box<Reason>> {
    let text = |member| extra.optional_text(member).map(|text| text.map(str::to_owned));
    Ok(StatedEip712Domain { name: text("name")?, version: text("version")? })
}

/// An object of a document, with its JSON Pointer.
struct LocatedJsonObject<'v> {
    members: &'v Map<String, Value>,
    place: String,
}

impl<'v> LocatedJsonObject<'v> {
    fn from_value(value: &'v Value, place: String) -> Result<Self, Box<Reason>> {
        match value {
            Value::Object(members) => Ok(Self { members, place }),
            other => Err(malformed_value_reason(&place, "an object", display_value(other))),
        }
    }

    /// Rejects a member that only some clients recognise, because its name has a different case.
    fn check_member_case(&self) -> Result<(), Box<Reason>> {
        for name in self.members.keys() {
            let Some(known) = MEMBERS.into_iter().find(|known| is_case_variant_of(name, known)) else { continue };
            if known != name {
                let message = "A member of the terms is spelt in another case. Clients differ in whether they read it.";
                let place = self.member_pointer(name);
                return Err(Box::new(
                    ambiguous_terms_reason(&place, message).expected(known).observed(excerpt_text(name)),
                ));
            }
        }
        Ok(())
    }

    /// Rejects an entry that states another amount under the member that clients of the other version pay.
    fn reject_conflicting_amount(&self, amount: &str, other: &str) -> Result<(), Box<Reason>> {
        let (stated, others) = (self.members.get(amount), self.members.get(other).filter(|value| !value.is_null()));
        match (stated, others) {
            (Some(stated), Some(others)) if stated != others => {
                let message = "The entry states two amounts. Clients differ in which one they pay.";
                Err(Box::new(
                    ambiguous_terms_reason(&self.member_pointer(other), message)
                        .expected(display_value(stated))
                        .observed(display_value(others)),
                ))
            }
            _ => Ok(()),
        }
    }

    fn member_pointer(&self, member: &str) -> String {
        format!("{}/{member}", self.place)
    }

    fn required_member(&self, member: &str, expected: &str) -> Result<&'v Value, Box<Reason>> {
        self.members.get(member).ok_or_else(|| self.missing_member_reason(member, expected))
    }

    fn required_object(&self, member: &str) -> Result<Self, Box<Reason>> {
        Self::from_value(self.required_member(member, "an object")?, self.member_pointer(member))
    }

    /// Treats `null` as missing: the schemas of x402 let sellers write it, and every client interprets it that way.
    fn optional_object(&self, member: &str) -> Result<Option<Self>, Box<Reason>> {
        self.non_null_member(member).map(|value| Self::from_value(value, self.member_pointer(member))).transpose()
    }

    fn non_null_member(&self, member: &str) -> Option<&'v Value> {
        self.members.get(member).filter(|value| !value.is_null())
    }

    fn optional_list(&self, member: &str) -> Result<Option<&'v Vec<Value>>, Box<Reason>> {
        let value = self.non_null_member(member);
        value
            .map(|value| {
                value.as_array().ok_or_else(|| self.malformed_member_reason(member, "a list", display_value(value)))
            })
            .transpose()
    }

    fn optional_text(&self, member: &str) -> Result<Option<&'v str>, Box<Reason>> {
        self.non_null_member(member).map(|value| self.text_from_value(member, value)).transpose()
    }

    fn required_text(&self, member: &str) -> Result<&'v str, Box<Reason>> {
        self.text_from_value(member, self.required_member(member, "a text")?)
    }

    fn text_from_value(&self, member: &str, value: &'v Value) -> Result<&'v str, Box<Reason>> {
        value.as_str().ok_or_else(|| self.malformed_member_reason(member, "a text", display_value(value)))
    }

    /// Reads a text in one of the notations of [`forms`].
    fn parse_text_member<T>(&self, member: &str, form: &str, read: fn(&str) -> Option<T>) -> Result<T, Box<Reason>> {
        let value = self.required_member(member, form)?;
        value.as_str().and_then(read).ok_or_else(|| self.malformed_member_reason(member, form, display_value(value)))
    }

    fn missing_member_reason(&self, member: &str, expected: &str) -> Box<Reason> {
        self.malformed_member_reason(member, expected, "nothing".to_owned())
    }

    fn malformed_member_reason(&self, member: &str, expected: impl Into<String>, observed: String) -> Box<Reason> {
        malformed_value_reason(&self.member_pointer(member), expected, observed)
    }

    fn unchecked_scheme_reason(&self, member: &str, expected: &str, observed: &str) -> Box<Reason> {
        let reason = Reason::new(ReasonCode::PaymentSchemeUnchecked).at_place(self.member_pointer(member));
        Box::new(reason.expected(expected).observed(excerpt_text(observed)))
    }
}

fn malformed_value_reason(place: &str, expected: impl Into<String>, observed: String) -> Box<Reason> {
    let message = "A member of the terms is missing or malformed.";
    Box::new(malformed_terms_reason(place, message).expected(expected).observed(observed))
}

/// `payment-terms-malformed`, found at `place`.
pub(crate) fn malformed_terms_reason(place: &str, message: &str) -> Reason {
    Reason::new(ReasonCode::PaymentTermsMalformed).message(message).at_place(place)
}

/// `payment-terms-ambiguous`, found at `place`.
pub(super) fn ambiguous_terms_reason(place: &str, message: &str) -> Reason {
    Reason::new(ReasonCode::PaymentTermsAmbiguous).message(message).at_place(place)
}

/// The members with this name, in any spelling.
pub(super) fn member_in_any_case<'v>(members: &'v Map<String, Value>, name: &str) -> impl Iterator<Item = &'v Value> {
    members.iter().filter(move |(member, _)| is_case_variant_of(member, name)).map(|(_, value)| value)
}

/// Whether Go's `encoding/json` accepts `member` for `name`, which is ASCII.
pub(super) fn is_case_variant_of(member: &str, name: &str) -> bool {
    fold_ascii_case(member).eq(name.chars().map(|letter| letter.to_ascii_lowercase()))
}

/// Folds to lower case every letter whose simple case folding in Unicode is an ASCII letter, also the long s and the
/// kelvin sign.
pub(super) fn fold_ascii_case(text: &str) -> impl Iterator<Item = char> {
    text.chars().map(|letter| match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        letter => letter.to_ascii_lowercase(),
    })
}

/// Shows a value in a message: the value itself if it is short, else its kind.
fn display_value(value: &Value) -> String {
    if value.is_object() || value.is_array() { json_type(value).to_owned() } else { excerpt_text(&value.to_string()) }
}
