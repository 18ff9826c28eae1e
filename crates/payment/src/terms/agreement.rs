//! Checks that every place in a reply that contains terms demands the same payment as the judged terms.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Display;

use alloy_primitives::hex;
use serde_json::{Map, Value};
use url::Url;

use clresolve_core::reason::Reason;
use clresolve_core::text::excerpt_text;
use clresolve_verdict::verdict::canonical_digest;

use super::challenge;
use super::places::{TermsPlace, is_payment_entry};
use super::reading::{ambiguous_terms_reason, parse_terms};
use super::{PaymentOption, PaymentTerms, TransferMethod, X402Version};
use crate::network::Caip2Network;

impl PaymentTerms {
    /// Returns these terms if no place demands anything else.
    ///
    /// # Errors
    /// `payment-terms-ambiguous`, with the place and member that differ.
    pub(super) fn require_agreement(self, places: &[TermsPlace<'_>]) -> Result<Self, Box<Reason>> {
        if places.is_empty() {
            return Ok(self);
        }
        let home = self.entries.iter().find_map(|entry| resource_host(entry.resource.as_deref()?)).unwrap_or_default();
        let own: Vec<NormalizedPaymentOption<'_>> =
            self.entries.iter().map(|entry| NormalizedPaymentOption::from_option(entry, self.version, &home)).collect();
        let mut moved = BTreeSet::new();
        let mut also_v1 = self.also_v1;
        for place in places {
            challenge::reject_lightning_entries(place.document, &place.name)?;
            let other = parse_terms(&self.fill_missing_members(place.document))
                .map_err(|reason| unreadable_place_reason(place, &reason))?;
            let entries =
                other.entries.iter().enumerate().filter(|(_, entry)| is_payment_entry(&entry.json, place.is_read));
            for (index, entry) in entries {
                let outline = NormalizedPaymentOption::from_option(entry, other.version, &home);
                if own.get(index) == Some(&outline) {
                    continue;
                }
                if !own.contains(&outline) {
                    let place = format!("{}/accepts/{index}", place.name);
                    return Err(outline.difference_reason(
                        &own,
                        other.version,
                        &place,
                        entry.price.as_ref().err().map(AsRef::as_ref),
                    ));
                }
                moved.insert(index);
            }
            also_v1 |= place.is_read && self.version == X402Version::V2 && other.version == X402Version::V1;
        }
        drop(own);
        Ok(Self { moved, also_v1, ..self })
    }

    /// The document with missing members taken from these terms, since a place that repeats the entries may omit them.
    fn fill_missing_members<'v>(&self, document: &'v Value) -> Cow<'v, Value> {
        let Value::Object(members) = document else { return Cow::Borrowed(document) };
        let mut members = members.clone();
        let first = members.get("accepts").and_then(|entries| entries.get(0));
        let is_v1 = first.is_some_and(|entry| entry.get("maxAmountRequired").is_some());
        let version = if is_v1 { X402Version::V1 } else { self.version };
        members.entry("x402Version").or_insert_with(|| version.version_number().into());
        if let Some(resource) = &self.resource {
            members.entry("resource").or_insert_with(|| resource.clone());
        }
        Cow::Owned(Value::Object(members))
    }
}

/// An entry's demand as JSON, in the terminology shared by versions 1 and 2. If the price was checked, its values are
/// used; otherwise the values are compared as written. Only the host of the resource counts, because sellers spell the
/// rest in several ways.
#[derive(PartialEq, Eq)]
struct NormalizedPaymentOption<'e>([(&'static str, Cow<'e, str>); 8]);

impl<'e> NormalizedPaymentOption<'e> {
    /// The outline of an entry. A resource without a host is on the host `home`.
    fn from_option(entry: &'e PaymentOption, version: X402Version, home: &str) -> Self {
        let host = entry.resource.as_deref().and_then(resource_host).unwrap_or_else(|| home.to_owned());
        let resource = ("resource", Cow::Owned(host));
        let Ok(price) = &entry.price else { return Self::from_written_entry(&entry.json, version, resource) };
        let transfer = match price.transfer {
            TransferMethod::Eip3009 => "eip3009",
            TransferMethod::Permit2 => "permit2",
        };
        let domain = [&price.domain.name, &price.domain.version].map(|part| part.as_deref().unwrap_or("nothing"));
        Self([
            ("scheme", quoted_text("exact")),
            ("network", quoted_text(price.network.as_str())),
            (AMOUNT, quoted_text(price.amount)),
            ("asset", quoted_text(hex::encode_prefixed(price.asset))),
            ("payTo", quoted_text(hex::encode_prefixed(price.pay_to))),
            ("maxTimeoutSeconds", price.max_timeout_seconds.to_string().into()),
            (EXTRA, format!("{transfer}, name {:?}, version {:?}", domain[0], domain[1]).into()),
            resource,
        ])
    }

    fn from_written_entry(entry: &Value, version: X402Version, resource: (&'static str, Cow<'e, str>)) -> Self {
        let text = |member: &str| entry.get(member).map_or_else(|| "nothing".to_owned(), Value::to_string);
        let named = entry
            .get("network")
            .and_then(Value::as_str)
            .filter(|_| version == X402Version::V1)
            .and_then(Caip2Network::from_v1_name);
        let network = named.map(|network| Value::from(network.as_str()).to_string());
        let extra = entry.get("extra").filter(|extra| !extra.is_null());
        Self([
            ("scheme", text("scheme").into()),
            ("network", network.unwrap_or_else(|| text("network")).into()),
            (AMOUNT, text(amount_member(version)).into()),
            ("asset", text("asset").to_ascii_lowercase().into()),
            ("payTo", text("payTo").to_ascii_lowercase().into()),
            ("maxTimeoutSeconds", text("maxTimeoutSeconds").into()),
            (EXTRA, extra.map_or_else(|| "nothing".into(), |extra| canonical_digest(&without_nulls(extra)).into())),
            resource,
        ])
    }

    /// Reports how this entry at `place` differs from the most similar one. `unpriced` is why it has no price: the
    /// member at fault, if the entry differs only in that the other one has a price.
    fn difference_reason(
        &self,
        own: &[Self],
        version: X402Version,
        place: &str,
        unpriced: Option<&Reason>,
    ) -> Box<Reason> {
        let differing = |like: &&Self| like.0.iter().zip(&self.0).filter(|(like, this)| like != this).count();
        let nearest = own.iter().min_by_key(differing).map_or([].as_slice(), |nearest| nearest.0.as_slice());
        let first = nearest.iter().zip(&self.0).find(|(like, this)| like != this);
        let message = "Two places of the reply demand different payments. Clients differ in which one they pay.";
        let Some(((member, expected), (_, observed))) = first else {
            return Box::new(ambiguous_terms_reason(place, message));
        };
        let fault = unpriced.filter(|_| *member == EXTRA);
        if let Some((fault, at)) = fault.and_then(|fault| Some((fault, fault.place.as_deref()?.rsplit('/').next()?))) {
            let mut reason = ambiguous_terms_reason(&format!("{place}/{at}"), message);
            (reason.expected, reason.observed) = (fault.expected.clone(), fault.observed.clone());
            return Box::new(reason);
        }
        let member = if *member == AMOUNT { amount_member(version) } else { member };
        let (place, expected, observed) = (format!("{place}/{member}"), excerpt_text(expected), excerpt_text(observed));
        let message = format!("{message} At {place}: expected {expected}, found {observed}.");
        Box::new(ambiguous_terms_reason(&place, &message).expected(expected).observed(observed))
    }
}

/// The host of a URL. Empty for a path.
fn resource_host(resource: &str) -> Option<String> {
    Url::parse(resource).ok()?.host_str().map(str::to_owned)
}

fn quoted_text(text: impl Display) -> Cow<'static, str> {
    format!("\"{text}\"").into()
}

/// The member with network-specific and scheme-specific data.
const EXTRA: &str = "extra";

/// The name of the amount in version 2.
const AMOUNT: &str = "amount";

const fn amount_member(version: X402Version) -> &'static str {
    match version {
        X402Version::V1 => "maxAmountRequired",
        X402Version::V2 => AMOUNT,
    }
}

/// The reason for a place whose terms cannot be compared.
fn unreadable_place_reason(place: &TermsPlace<'_>, reason: &Reason) -> Box<Reason> {
    let message = format!(
        "One place of the reply demands a payment in terms that cannot be read, beside others that can. {}",
        reason.message
    );
    let mut ambiguous =
        ambiguous_terms_reason(&format!("{}{}", place.name, reason.place.as_deref().unwrap_or_default()), &message);
    (ambiguous.expected, ambiguous.observed) = (reason.expected.clone(), reason.observed.clone());
    Box::new(ambiguous)
}

/// The value without its `null` members: the schemas of x402 let sellers and clients write an absent member as `null`.
pub(crate) fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let present = members.iter().filter(|(_, member)| !member.is_null());
            Value::Object(present.map(|(name, member)| (name.clone(), without_nulls(member))).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}
