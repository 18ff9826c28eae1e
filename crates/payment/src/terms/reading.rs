//! Parses terms from JSON, member by member. An error inside an entry affects only that entry; an error outside the
//! entries affects all of them.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use clresolve_core::json::kind;
use clresolve_core::reason::{Code, Reason};
use clresolve_core::text::excerpt;

use super::{Entry, MAX_ENTRIES, Price, StatedDomain, Terms, Transfer, Version};
use crate::forms;
use crate::network::Network;

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
pub(crate) fn terms(document: &Value) -> Result<Terms, Box<Reason>> {
    let document = JsonObject::of(document, String::new())?;
    document.check_case()?;
    let version = version(&document)?;
    let resource = match version {
        Version::V1 => None,
        Version::V2 => Some(document.required_part("resource")?),
    };
    let url = resource.as_ref().map(|resource| resource.text("url")).transpose()?;
    let extensions = document.part("extensions")?;
    let offers = extensions.as_ref().map_or(Ok(Vec::new()), offers)?;
    let extensions = extensions.map(|extensions| extensions.members.clone()).unwrap_or_default();
    let accepts = document.list("accepts")?.ok_or_else(|| document.missing("accepts", "a list"))?;
    if accepts.is_empty() || accepts.len() > MAX_ENTRIES {
        let expected = format!("1 to {MAX_ENTRIES} entries");
        return Err(document.wrong("accepts", expected, accepts.len().to_string()));
    }
    for (index, json) in accepts.iter().enumerate().filter(|(_, json)| json.is_object()) {
        JsonObject::of(json, format!("/accepts/{index}"))?.check_case()?;
    }
    let entries = accepts.iter().enumerate().map(|(index, json)| entry(json, version, url, index));
    Ok(Terms {
        version,
        also_v1: false,
        moved: BTreeSet::new(),
        resource: resource.map(|resource| Value::Object(resource.members.clone())),
        entries: entries.collect(),
        extensions,
        offers,
    })
}

fn version(document: &JsonObject<'_>) -> Result<Version, Box<Reason>> {
    let value = document.required("x402Version", "the number 1 or 2")?;
    let known = [Version::V1, Version::V2].into_iter().find(|version| value.as_u64() == Some(version.number()));
    known.ok_or_else(|| document.wrong("x402Version", "the number 1 or 2", shown(value)))
}

fn offers(extensions: &JsonObject<'_>) -> Result<Vec<Value>, Box<Reason>> {
    let Some(extension) = extensions.part(OFFER_RECEIPT)? else { return Ok(Vec::new()) };
    let Some(info) = extension.part("info")? else { return Ok(Vec::new()) };
    Ok(info.list("offers")?.cloned().unwrap_or_default())
}

fn entry(json: &Value, version: Version, resource: Option<&str>, index: usize) -> Entry {
    let own = || json.get("resource").and_then(Value::as_str);
    let resource = match version {
        Version::V1 => own(),
        Version::V2 => resource,
    };
    let place = format!("/accepts/{index}");
    let price = price(json, version, place.clone()).and_then(|price| signable(price, version, &place));
    Entry { json: json.clone(), resource: resource.map(str::to_owned), price }
}

/// The price, if clients of this version can sign for it. x402 v1 supports only EIP-3009; its clients sign EIP-3009
/// regardless of `extra`.
fn signable(price: Price, version: Version, place: &str) -> Result<Price, Box<Reason>> {
    if version == Version::V2 || price.transfer == Transfer::Eip3009 {
        return Ok(price);
    }
    let reason = Reason::new(Code::PaymentSchemeUnchecked).at(format!("{place}/extra/assetTransferMethod"));
    Err(Box::new(reason.expected("eip3009").observed("permit2")))
}

/// The price of an entry at `place` of a document. Checks scheme and network first, because other schemes and networks
/// use different forms for the rest.
///
/// # Errors
/// The errors of [`Entry::price`].
pub(crate) fn price(entry: &Value, version: Version, place: String) -> Result<Price, Box<Reason>> {
    let entry = JsonObject::of(entry, place)?;
    let scheme = entry.text("scheme")?;
    if scheme != EXACT && !clresolve_core::mutant!("every-scheme-is-a-price") {
        return Err(entry.unchecked("scheme", EXACT, scheme));
    }
    let (network, chain_id) = network(&entry, version)?;
    let extra = entry.part("extra")?;
    let transfer = extra.as_ref().map_or(Ok(Transfer::Eip3009), transfer)?;
    if version == Version::V1 {
        entry.text("resource")?;
    }
    let [amount, other] = match version {
        Version::V1 => ["maxAmountRequired", "amount"],
        Version::V2 => ["amount", "maxAmountRequired"],
    };
    entry.check_other_amount(amount, other)?;
    Ok(Price {
        network,
        chain_id,
        amount: entry.read(amount, forms::AMOUNT, forms::amount)?,
        asset: entry.read("asset", forms::ADDRESS, forms::address)?,
        pay_to: entry.read("payTo", forms::ADDRESS, forms::address)?,
        max_timeout_seconds: seconds(&entry)?,
        transfer,
        domain: extra.as_ref().map_or_else(|| Ok(StatedDomain::default()), domain)?,
    })
}

fn network(entry: &JsonObject<'_>, version: Version) -> Result<(Network, u64), Box<Reason>> {
    let name = entry.text("network")?;
    let network = match version {
        Version::V1 if is_v1_name(name) => Network::of_v1(name),
        Version::V1 => return Err(entry.wrong("network", "a network as x402 version 1 names it", excerpt(name))),
        Version::V2 => {
            let network = name.parse::<Network>();
            Some(network.map_err(|_| entry.wrong("network", "a network as CAIP-2 names it", excerpt(name)))?)
        }
    };
    let chain = network.and_then(|network| network.chain_id().map(|id| (network, id)));
    chain.ok_or_else(|| {
        let reason = Reason::new(Code::PaymentNetworkMismatch).message("The network is not a known EVM chain.");
        Box::new(reason.at(entry.below("network")).expected("eip155 and a chain id").observed(excerpt(name)))
    })
}

/// Whether `name` could be a version 1 network. These names are an open list without a grammar.
fn is_v1_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

fn transfer(extra: &JsonObject<'_>) -> Result<Transfer, Box<Reason>> {
    let Some(method) = extra.optional_text("assetTransferMethod")? else { return Ok(Transfer::Eip3009) };
    match method {
        "eip3009" => Ok(Transfer::Eip3009),
        "permit2" => Ok(Transfer::Permit2),
        _ => Err(extra.unchecked("assetTransferMethod", "eip3009 or permit2", method)),
    }
}

fn seconds(entry: &JsonObject<'_>) -> Result<u64, Box<Reason>> {
    const EXPECTED: &str = "a number of seconds, whole and not negative";
    let value = entry.required("maxTimeoutSeconds", EXPECTED)?;
    value.as_u64().ok_or_else(|| entry.wrong("maxTimeoutSeconds", EXPECTED, shown(value)))
}

fn domain(extra: &JsonObject<'_>) -> Result<StatedDomain, Box<Reason>> {
    let text = |member| extra.optional_text(member).map(|text| text.map(str::to_owned));
    Ok(StatedDomain { name: text("name")?, version: text("version")? })
}

/// An object of a document, with its JSON Pointer.
struct JsonObject<'v> {
    members: &'v Map<String, Value>,
    place: String,
}

impl<'v> JsonObject<'v> {
    fn of(value: &'v Value, place: String) -> Result<Self, Box<Reason>> {
        match value {
            Value::Object(members) => Ok(Self { members, place }),
            other => Err(wrong(&place, "an object", shown(other))),
        }
    }

    /// Rejects a member that only some clients recognise, because its name has a different case.
    fn check_case(&self) -> Result<(), Box<Reason>> {
        for name in self.members.keys() {
            let Some(known) = MEMBERS.into_iter().find(|known| is_spelling_of(name, known)) else { continue };
            if known != name {
                let message = "A member of the terms is spelt in another case. Clients differ in whether they read it.";
                let place = self.below(name);
                return Err(Box::new(ambiguous(&place, message).expected(known).observed(excerpt(name))));
            }
        }
        Ok(())
    }

    /// Rejects an entry that states another amount under the member that clients of the other version pay.
    fn check_other_amount(&self, amount: &str, other: &str) -> Result<(), Box<Reason>> {
        let (stated, others) = (self.members.get(amount), self.members.get(other).filter(|value| !value.is_null()));
        match (stated, others) {
            (Some(stated), Some(others)) if stated != others => {
                let message = "The entry states two amounts. Clients differ in which one they pay.";
                Err(Box::new(ambiguous(&self.below(other), message).expected(shown(stated)).observed(shown(others))))
            }
            _ => Ok(()),
        }
    }

    fn below(&self, member: &str) -> String {
        format!("{}/{member}", self.place)
    }

    fn required(&self, member: &str, expected: &str) -> Result<&'v Value, Box<Reason>> {
        self.members.get(member).ok_or_else(|| self.missing(member, expected))
    }

    fn required_part(&self, member: &str) -> Result<Self, Box<Reason>> {
        Self::of(self.required(member, "an object")?, self.below(member))
    }

    /// Treats `null` as missing: the schemas of x402 let sellers write it, and every client interprets it that way.
    fn part(&self, member: &str) -> Result<Option<Self>, Box<Reason>> {
        self.present(member).map(|value| Self::of(value, self.below(member))).transpose()
    }

    fn present(&self, member: &str) -> Option<&'v Value> {
        self.members.get(member).filter(|value| !value.is_null())
    }

    fn list(&self, member: &str) -> Result<Option<&'v Vec<Value>>, Box<Reason>> {
        let value = self.present(member);
        value.map(|value| value.as_array().ok_or_else(|| self.wrong(member, "a list", shown(value)))).transpose()
    }

    fn optional_text(&self, member: &str) -> Result<Option<&'v str>, Box<Reason>> {
        self.present(member).map(|value| self.as_text(member, value)).transpose()
    }

    fn text(&self, member: &str) -> Result<&'v str, Box<Reason>> {
        self.as_text(member, self.required(member, "a text")?)
    }

    fn as_text(&self, member: &str, value: &'v Value) -> Result<&'v str, Box<Reason>> {
        value.as_str().ok_or_else(|| self.wrong(member, "a text", shown(value)))
    }

    /// Reads a text in one of the notations of [`forms`].
    fn read<T>(&self, member: &str, form: &str, read: fn(&str) -> Option<T>) -> Result<T, Box<Reason>> {
        let value = self.required(member, form)?;
        value.as_str().and_then(read).ok_or_else(|| self.wrong(member, form, shown(value)))
    }

    fn missing(&self, member: &str, expected: &str) -> Box<Reason> {
        self.wrong(member, expected, "nothing".to_owned())
    }

    fn wrong(&self, member: &str, expected: impl Into<String>, observed: String) -> Box<Reason> {
        wrong(&self.below(member), expected, observed)
    }

    fn unchecked(&self, member: &str, expected: &str, observed: &str) -> Box<Reason> {
        let reason = Reason::new(Code::PaymentSchemeUnchecked).at(self.below(member));
        Box::new(reason.expected(expected).observed(excerpt(observed)))
    }
}

fn wrong(place: &str, expected: impl Into<String>, observed: String) -> Box<Reason> {
    let message = "A member of the terms is missing or malformed.";
    Box::new(malformed(place, message).expected(expected).observed(observed))
}

/// `payment-terms-malformed`, found at `place`.
pub(crate) fn malformed(place: &str, message: &str) -> Reason {
    Reason::new(Code::PaymentTermsMalformed).message(message).at(place)
}

/// `payment-terms-ambiguous`, found at `place`.
pub(super) fn ambiguous(place: &str, message: &str) -> Reason {
    Reason::new(Code::PaymentTermsAmbiguous).message(message).at(place)
}

/// The members with this name, in any spelling.
pub(super) fn member_in_any_case<'v>(members: &'v Map<String, Value>, name: &str) -> impl Iterator<Item = &'v Value> {
    members.iter().filter(move |(member, _)| is_spelling_of(member, name)).map(|(_, value)| value)
}

/// Whether Go's `encoding/json` accepts `member` for `name`, which is ASCII.
pub(super) fn is_spelling_of(member: &str, name: &str) -> bool {
    folded(member).eq(name.chars().map(|letter| letter.to_ascii_lowercase()))
}

/// Folds to lower case every letter whose simple case folding in Unicode is an ASCII letter, also the long s and the
/// kelvin sign.
pub(super) fn folded(text: &str) -> impl Iterator<Item = char> {
    text.chars().map(|letter| match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        letter => letter.to_ascii_lowercase(),
    })
}

/// Shows a value in a message: the value itself if it is short, else its kind.
fn shown(value: &Value) -> String {
    if value.is_object() || value.is_array() { kind(value).to_owned() } else { excerpt(&value.to_string()) }
}
