//! Checks that a stored decision follows from its request. The unmodified terms determine its price, payee and URL, but
//! neither what the payer permitted nor how the payee was proven.

use clresolve_core::mutant;
use clresolve_core::name::EnsName;
use clresolve_verdict::verdict::canonical_digest;

use super::StoredDecision;
use crate::decide::{selected_options, terms_subject};
use crate::decision::PriceDocument;
use crate::request::PaymentDecisionRequest;
use crate::route::AgentRoute;
use crate::terms::{ExactPrice, PaymentOption};

impl StoredDecision {
    /// Compares the decision with the request.
    ///
    /// # Errors
    /// The part of the decision that does not follow from the request, in words.
    pub fn check_against_request(&self, asked: &PaymentDecisionRequest) -> Result<(), &'static str> {
        if mutant!("kept-decisions-are-believed") {
            return Ok(());
        }
        let name = EnsName::parse(&asked.name).map_err(|_| "its name")?;
        require_condition(name.as_str() == self.name, "its name")?;
        require_condition(asked.verb == self.verb, "its verb")?;
        require_condition(asked.header.is_none(), "the request contains a payment header, not only the terms")?;
        let terms = asked.parse_terms().map_err(|_| "the terms cannot be read")?;
        let entries = selected_options(&terms, asked.selected.as_ref()).map_err(|_| "no such entry was demanded")?;
        let entries: Vec<&PaymentOption> = entries.into_iter().map(|(_, entry)| entry).collect();
        let url = asked.url.as_deref().ok_or("the URL that answered is unknown")?;
        let route = AgentRoute::from_configuration(self.url.as_str()).ok_or("its route")?;
        require_condition(route.url_objection(url).is_none(), "its route")?;
        let prices: Result<Vec<&ExactPrice>, _> = entries.iter().map(|entry| entry.price.as_ref()).collect();
        let prices = prices.map_err(|_| "an entry states no price")?;
        let first = prices.first().ok_or("no entry was demanded")?;
        require_condition(self.price == PriceDocument::from_price(first), "its price")?;
        require_condition(self.payee == first.pay_to, "its payee")?;
        let digest = canonical_digest(&terms_subject(Some(url), &terms, &entries));
        require_condition(self.terms_digest.as_ref() == Some(&digest), "its terms_digest")
    }
}

fn require_condition(holds: bool, what: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(what) }
}
