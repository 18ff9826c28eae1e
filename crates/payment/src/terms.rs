//! What a seller demands: x402 version 1 and 2, read strictly from the raw reply into one type.

mod demand;
mod reading;
#[cfg(test)]
mod tests;

use serde_json::Value;

use clresolve_core::json::{Limits, parse};
use clresolve_core::mutant;
use clresolve_core::reason::{Code, Reason};
use clresolve_core::text::excerpt;

use crate::encoding::{decode, longest};
use reading::{malformed, terms};

pub use demand::{Entry, MAX_ENTRIES, Price, StatedDomain, Terms, Transfer, Version};
pub(crate) use reading::price;

/// Most bytes of terms, decoded. Published ones take two kilobytes.
pub const MAX_TERMS_BYTES: usize = 64 * 1024;

/// Most bytes of a header that holds terms, in base64.
pub const MAX_VALUE_BYTES: usize = longest(MAX_TERMS_BYTES);

/// Most headers of a reply: more than any client of HTTP accepts by default.
pub const MAX_HEADERS: usize = 256;

/// The header of version 2.
pub const HEADER: &str = "PAYMENT-REQUIRED";

/// What the JSON text of terms may use up. Extensions hold JSON Schemas, which nest two or three levels for each level
/// that they describe; published terms stay below half of each limit.
pub(crate) const LIMITS: Limits =
    Limits { bytes: MAX_TERMS_BYTES, levels: 32, values: 4096, name: 1024, paths: 512 * 1024 };

/// The status of a demand for payment.
const STATUS: u16 = 402;

/// A seller's reply, as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The headers, in their order; a header that came twice stands twice.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Terms {
    /// The terms in a reply over HTTP.
    ///
    /// # Errors
    /// `payment-terms-malformed` or `payment-terms-ambiguous`.
    pub fn of_reply(reply: &Reply) -> Result<Self, Box<Reason>> {
        if reply.status != STATUS && !mutant!("any-status-demands") {
            let message = "Only a reply with status 402 demands a payment.";
            return Err(malformed("status", message).expected("402").observed(reply.status.to_string()).into());
        }
        let header = header(&reply.headers)?;
        let header = header.filter(|value| !mutant!("broken-header-is-no-header") || decode(value, LIMITS).is_ok());
        let Some(header) = header else { return Self::of_body(&reply.body) };
        let terms = Self::of_header(header)?;
        match terms.compared_with(&reply.body) {
            BodyDemand::Another if !mutant!("body-beside-the-header-is-ignored") => {
                let message = "The body demands something else than the header beside it, or cannot be read strictly.";
                Err(ambiguous("body", message))
            }
            BodyDemand::Same(Version::V1) => Ok(Self { also_v1: true, ..terms }),
            BodyDemand::Same(Version::V2) | BodyDemand::Nothing | BodyDemand::Another => Ok(terms),
        }
    }

    /// The terms in a JSON value of their own: what an SDK hands on, or an MCP result's `structuredContent`.
    ///
    /// # Errors
    /// `payment-terms-malformed`.
    pub fn of_value(value: &Value) -> Result<Self, Box<Reason>> {
        terms(value)
    }

    /// The same, of the JSON text as it came: a member that stands there twice makes it malformed.
    ///
    /// # Errors
    /// `payment-terms-malformed`.
    pub fn of_json(text: &str) -> Result<Self, Box<Reason>> {
        let document = parse(text.as_bytes(), LIMITS).map_err(|error| {
            malformed("paymentRequired", "The terms cannot be read.").observed(excerpt(&error.to_string()))
        })?;
        terms(&document)
    }

    fn of_header(header: &str) -> Result<Self, Box<Reason>> {
        let document = decode(header, LIMITS).map_err(|error| {
            malformed(HEADER, "The header PAYMENT-REQUIRED cannot be decoded.").observed(excerpt(&error.to_string()))
        })?;
        terms(&document)?.written_in(Version::V2)
    }

    fn of_body(body: &[u8]) -> Result<Self, Box<Reason>> {
        let document = parse(body, LIMITS).map_err(|error| {
            malformed("body", "There is no header PAYMENT-REQUIRED, and the body holds no terms.")
                .observed(excerpt(&error.to_string()))
        })?;
        terms(&document)?.written_in(Version::V1)
    }

    /// These terms, if a client looks for terms of their version in this place.
    fn written_in(self, version: Version) -> Result<Self, Box<Reason>> {
        if self.version == version {
            return Ok(self);
        }
        let message = "Terms of x402 version 2 stand in the header PAYMENT-REQUIRED, those of version 1 in the body.";
        let (expected, observed) = (version.number().to_string(), self.version.number().to_string());
        Err(malformed("/x402Version", message).expected(expected).observed(observed).into())
    }

    /// Whether a client of this version finds them and can pay them.
    pub(crate) fn can_be_paid_in(&self, version: Version) -> bool {
        version == self.version || (version == Version::V1 && self.also_v1)
    }

    /// What a client that reads the body finds there. A body that is no JSON object demands nothing, and neither does one
    /// without `accepts`. One that looks like an object, but is not strict JSON or too long, may demand anything.
    fn compared_with(&self, body: &[u8]) -> BodyDemand {
        if !may_be_an_object(body) {
            return BodyDemand::Nothing;
        }
        let Ok(document) = parse(body, LIMITS) else { return BodyDemand::Another };
        if document.get("accepts").is_none() {
            return BodyDemand::Nothing;
        }
        let other = terms(&document).ok().filter(|other| self.demands_the_same_as(other));
        other.map_or(BodyDemand::Another, |other| BodyDemand::Same(other.version))
    }

    /// Entry by entry: the price, and what is paid for. Two that state no price are the same: neither is ever allowed.
    fn demands_the_same_as(&self, other: &Self) -> bool {
        let demand = |entry: &'_ Entry| entry.price.clone().ok().map(|price| (price, entry.resource.clone()));
        self.entries.iter().map(demand).eq(other.entries.iter().map(demand))
    }
}

/// What the body beside a header demands.
enum BodyDemand {
    Nothing,
    /// What the header demands, in this version.
    Same(Version),
    Another,
}

/// The values of the headers [`HEADER`], in their order. Of other headers nothing is read but how many there are.
pub(crate) fn values(headers: &[(String, String)]) -> impl Iterator<Item = &str> {
    headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(HEADER)).map(|(_, value)| &**value)
}

/// The value of the one header [`HEADER`], if there is one.
fn header(headers: &[(String, String)]) -> Result<Option<&str>, Box<Reason>> {
    if headers.len() > MAX_HEADERS {
        let message = "The reply has more headers than are read.";
        return Err(malformed("headers", message).expected(format!("at most {MAX_HEADERS}")).into());
    }
    let mut values = values(headers);
    let first = values.next();
    if (values.next().is_some() || first.is_some_and(is_joined)) && !mutant!("second-header-is-ignored") {
        return Err(ambiguous(HEADER, "The header PAYMENT-REQUIRED stands there twice."));
    }
    Ok(first)
}

/// Whether a client has joined two headers into one value, as `fetch` does (RFC 9110, section 5.3): a first one that can be
/// read, and a comma, which base64 does not have.
fn is_joined(value: &str) -> bool {
    value.split_once(',').is_some_and(|(first, _)| decode(first, LIMITS).is_ok())
}

/// Whether a lenient reader could take `body` for a JSON object: whether its first byte is a brace, after white space,
/// byte order marks, and the zeros of UTF-16 and UTF-32.
fn may_be_an_object(body: &[u8]) -> bool {
    const PASSED_OVER: [u8; 12] = *b" \t\n\r\x0b\x0c\0\xef\xbb\xbf\xfe\xff";
    body.iter().find(|byte| !PASSED_OVER.contains(byte)) == Some(&b'{')
}

fn ambiguous(place: &str, message: &str) -> Box<Reason> {
    Box::new(Reason::new(Code::PaymentTermsAmbiguous).message(message).at(place))
}
