//! Offers signed by a seller (x402 extension offer-receipt, version 0.6). An offer proves that exactly these terms come
//! from the holder of a key. Only a key that the name publishes identifies the agent.

#[cfg(test)]
mod tests;

use std::cell::OnceCell;

use alloy_primitives::{B256, U256};
use alloy_sol_types::SolStruct as _;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use clresolve_core::mutant;
use clresolve_core::reason::{Reason, ReasonCode};

pub use crate::artifact::PublishedSigningKeys;
use crate::artifact::{ArtifactParseError, ArtifactPayload, ArtifactSignerMatch, SignedArtifact, SigningKeyKind};
use crate::forms;
use crate::terms::{ExactPrice, MAX_ENTRIES};
use crate::typed_data;

/// Maximum number of offers that are read: one per entry.
pub const MAX_OFFERS: usize = MAX_ENTRIES;

/// Maximum number of offers per entry whose signatures are checked. A seller makes one, or one in each of the two
/// formats. Recovering a signer takes 100 µs.
pub const MAX_SIGNATURES: usize = 4;

/// The offer proves nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferProofError {
    /// `offer-invalid` or `offer-signer-unproven`; `record-pending` if the key is about to change.
    pub reason: Box<Reason>,
    /// Whether the result is open because the signer could not be determined.
    pub is_open: bool,
}

/// The contents of an offer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct X402Offer {
    version: u64,
    resource_url: String,
    scheme: String,
    network: String,
    asset: String,
    pay_to: String,
    amount: String,
    /// In seconds since 1970. 0 means the same as absence.
    #[serde(default)]
    valid_until: u64,
}

/// The offers in the terms. Each is parsed once, and its signature is checked at most once, regardless of the number of
/// entries.
#[derive(Debug)]
pub struct ParsedOffers(Vec<Result<ParsedOffer, ArtifactParseError>>);

/// An offer with everything that does not depend on the price that it is compared with.
#[derive(Debug)]
struct ParsedOffer {
    artifact: SignedArtifact<X402Offer>,
    /// The resource it is for, if that is a URL.
    url: Option<Url>,
    /// Who signed it. An offer is about one network, so only one set of keys applies to it.
    signed_by: OnceCell<ArtifactSignerMatch>,
}

/// The resources that an offer about an entry may be for: the URL that answered, and the entry's resource unless that
/// is elsewhere. Sellers sign either of them.
#[derive(Clone, Debug, Default)]
pub struct OfferResources<'a>(Vec<(&'a str, Option<Url>)>);

impl<'a> OfferResources<'a> {
    /// The resources in `texts`.
    pub fn from_texts(texts: impl IntoIterator<Item = &'a str>) -> Self {
        Self(texts.into_iter().map(|text| (text, Url::parse(text).ok())).collect())
    }

    /// Whether one of them equals this resource. Two texts are the same URL if every web client would request the same.
    fn has_resource(&self, text: &str, url: Option<&Url>) -> bool {
        self.0.iter().any(|(known, parsed)| *known == text || url.is_some() && parsed.as_ref() == url)
    }
}

impl ParsedOffers {
    /// Reads the first [`MAX_OFFERS`] of `offers`.
    pub fn from_values(offers: &[Value]) -> Self {
        let read = |offer: &Value| {
            let artifact = SignedArtifact::<X402Offer>::from_value(offer)?;
            let url = Url::parse(&artifact.payload().resource_url).ok();
            Ok(ParsedOffer { artifact, url, signed_by: OnceCell::new() })
        };
        Self(offers.iter().take(MAX_OFFERS).map(read).collect())
    }

    /// Whether one of the offers for one of `resources` proves that `price` comes from a holder of `keys`, the keys for
    /// the network of the price, and when that offer expires: `Ok(None)` if it states no expiry. `None` if no offer has
    /// the scheme, network and asset of the price.
    ///
    /// What an offer is about is determined by its signed payload only, since `acceptIndex` is not signed. An EIP-712
    /// offer whose contents were changed appears to be signed by someone else.
    ///
    /// # Errors
    /// The weakest objection to an offer with this scheme, network and asset, or to an offer that cannot be read.
    pub fn prove_price(
        &self,
        price: &ExactPrice,
        resources: &OfferResources<'_>,
        keys: &PublishedSigningKeys,
        now: Timestamp,
    ) -> Option<Result<Option<Timestamp>, OfferProofError>> {
        let mut signatures = 0;
        let mut weakest: Option<(SignedOfferObjection, usize)> = None;
        for (index, offer) in self.0.iter().enumerate() {
            let objection = match matching_offer(offer, price, resources, now) {
                Ok(None) => continue,
                Ok(Some(_)) if signatures == MAX_SIGNATURES => break,
                Ok(Some(offer)) => {
                    signatures += 1;
                    match offer.find_signer(keys) {
                        ArtifactSignerMatch::Published => return Some(Ok(offer.artifact.payload().expires_at())),
                        ArtifactSignerMatch::Undecided => offer.undecided_signer_objection(keys),
                        ArtifactSignerMatch::Stranger => SignedOfferObjection::Signer,
                        ArtifactSignerMatch::Nobody => SignedOfferObjection::Signature,
                    }
                }
                Err(objection) => objection,
            };
            if weakest.as_ref().is_none_or(|(known, _)| objection.rank() < known.rank()) {
                weakest = Some((objection, index));
            }
        }
        let (objection, index) = weakest?;
        let is_open = matches!(objection, SignedOfferObjection::Open(_));
        Some(Err(OfferProofError { reason: objection.into_reason(index), is_open }))
    }
}

impl ParsedOffer {
    fn find_signer(&self, keys: &PublishedSigningKeys) -> ArtifactSignerMatch {
        // Recovering an ES256K signer costs twice as much, and no seller signs offers with it.
        let signed_by = || match (self.artifact.algorithm(), self.artifact.key_kind()) {
            (Some(_), SigningKeyKind::Address) => ArtifactSignerMatch::Undecided,
            _ => self.artifact.find_signer(keys),
        };
        *self.signed_by.get_or_init(signed_by)
    }

    /// Why the signer is unknown.
    fn undecided_signer_objection(&self, keys: &PublishedSigningKeys) -> SignedOfferObjection {
        match keys.unread.as_ref().filter(|_| self.artifact.key_kind() == SigningKeyKind::Ed25519) {
            Some(reason) => SignedOfferObjection::Open(reason.clone()),
            None => SignedOfferObjection::Undecided,
        }
    }
}

/// The offer, if it states this price at this time. `None` if its scheme, network or asset differs.
fn matching_offer<'o>(
    offer: &'o Result<ParsedOffer, ArtifactParseError>,
    price: &ExactPrice,
    resources: &OfferResources<'_>,
    now: Timestamp,
) -> Result<Option<&'o ParsedOffer>, SignedOfferObjection> {
    let read = offer.as_ref().map_err(|error| SignedOfferObjection::Form(error.to_string()))?;
    let offer = read.artifact.payload();
    if !offer.matches_price_asset(price) {
        return Ok(None);
    }
    let is_of_these_terms =
        resources.has_resource(&offer.resource_url, read.url.as_ref()) && offer.states_payee_and_amount(price);
    if !is_of_these_terms && !mutant!("offers-of-other-terms") {
        return Err(SignedOfferObjection::Terms);
    }
    if offer.has_ended(now) && !mutant!("offers-never-end") {
        return Err(SignedOfferObjection::Ended);
    }
    Ok(Some(read))
}

/// Why a signed offer does not prove the price. Weakest first.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SignedOfferObjection {
    /// A published key may have signed it, but could not be determined.
    Open(Box<Reason>),
    /// Anyone may have signed it.
    Undecided,
    Signer,
    Signature,
    Ended,
    Terms,
    Form(String),
}

impl SignedOfferObjection {
    const fn rank(&self) -> u8 {
        match self {
            Self::Open(_) => 0,
            Self::Undecided => 1,
            Self::Signer => 2,
            Self::Signature => 3,
            Self::Ended => 4,
            Self::Terms => 5,
            Self::Form(_) => 6,
        }
    }

    /// Converts the objection to the offer at `index` into a reason.
    fn into_reason(self, index: usize) -> Box<Reason> {
        let invalid = |message: &str| Reason::new(ReasonCode::OfferInvalid).message(message);
        let reason = match self {
            Self::Open(reason) => *reason,
            Self::Undecided => {
                let cause = "an algorithm of which no key can be published, a contract wallet's signature, which only the chain can \
                             check, or this build checks none";
                let message = "The offer's signer cannot be verified here.";
                Reason::new(ReasonCode::OfferSignerUnproven).message(message).observed(cause)
            }
            Self::Signer => Reason::new(ReasonCode::OfferSignerUnproven),
            Self::Signature => invalid("No key can have made the offer's signature."),
            Self::Ended => invalid("The offer has expired."),
            Self::Terms => invalid("The offer's terms differ from the entry."),
            Self::Form(cause) => invalid("The offer cannot be read.").observed(cause),
        };
        Box::new(reason.at_place(format!("/extensions/offer-receipt/info/offers/{index}")))
    }
}

impl X402Offer {
    /// Whether it has the scheme, network and asset of the price.
    fn matches_price_asset(&self, price: &ExactPrice) -> bool {
        // Every price uses the scheme `exact`.
        self.scheme == "exact"
            && self.network == price.network.as_str()
            && forms::parse_address(&self.asset) == Some(price.asset)
    }

    /// Whether it also states the payee and the amount of the price.
    fn states_payee_and_amount(&self, price: &ExactPrice) -> bool {
        forms::parse_address(&self.pay_to) == Some(price.pay_to)
            && forms::parse_amount(&self.amount) == Some(price.amount)
    }

    fn has_ended(&self, now: Timestamp) -> bool {
        self.valid_until != 0 && i64::try_from(self.valid_until).is_ok_and(|end| end <= now.as_second())
    }

    /// When it expires. A time that cannot be represented becomes the latest one that can.
    fn expires_at(&self) -> Option<Timestamp> {
        let end = i64::try_from(self.valid_until).ok().and_then(|end| Timestamp::from_second(end).ok());
        (self.valid_until != 0).then(|| end.unwrap_or(Timestamp::MAX))
    }
}

impl ArtifactPayload for X402Offer {
    fn version(&self) -> u64 {
        self.version
    }

    fn signing_hash(&self) -> B256 {
        let message = typed_data::Offer {
            version: U256::from(self.version),
            resourceUrl: self.resource_url.clone(),
            scheme: self.scheme.clone(),
            network: self.network.clone(),
            asset: self.asset.clone(),
            payTo: self.pay_to.clone(),
            amount: self.amount.clone(),
            validUntil: U256::from(self.valid_until),
        };
        message.eip712_signing_hash(&typed_data::OFFERS)
    }
}
