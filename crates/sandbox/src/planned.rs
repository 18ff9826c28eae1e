//! Cards that a publisher wrote: the names that they need on the chain, and where the web host serves them.

use std::collections::BTreeSet;

use alloy_primitives::Address;
use clresolve_core::name::EnsName;
use clresolve_core::records::Key;

use super::chain::NameRegistration;
use super::published::CARDS_HOST;
use super::spec::{PlannedCard, Spec, SpecError};
use super::web::Document;

/// The names of the cards with their records, and the names of the owners that the sandbox does not have otherwise. The
/// account `publisher` holds all of them.
///
/// # Errors
/// A card has the name of another one, or the web host does not serve its URL.
pub(crate) fn registrations(spec: &Spec, publisher: Address) -> Result<Vec<NameRegistration>, SpecError> {
    let own = spec.agents.iter().map(|agent| &agent.name).chain(spec.names.iter().map(|plain| &plain.name));
    let mut taken: BTreeSet<&str> = own.map(String::as_str).collect();
    let mut registrations = Vec::new();
    for card in cards(spec) {
        let error = |detail: String| SpecError { agent: card.name.clone(), detail };
        let name = EnsName::parse(&card.name).map_err(|invalid| error(invalid.to_string()))?;
        if !taken.insert(&card.name) {
            return Err(error("the sandbox has a card of this name already".to_owned()));
        }
        if url_path(card).is_none() {
            return Err(error(format!("the card's $id must be a URL below https://{CARDS_HOST}/")));
        }
        let texts = card.records.clone();
        registrations.push(NameRegistration { texts, ..NameRegistration::new(name, publisher) });
    }
    for owner in cards(spec).filter_map(|card| card.records.get(Key::Owner.as_str())) {
        // A text that is not a name proves no owner, which the verdict reports.
        if let Ok(name) = EnsName::parse(owner)
            && name.as_str() == owner
            && taken.insert(owner)
        {
            registrations.push(NameRegistration { addr: Some(publisher), ..NameRegistration::new(name, publisher) });
        }
    }
    Ok(registrations)
}

/// The cards by host and path.
pub(crate) fn documents(spec: &Spec) -> impl Iterator<Item = ((String, String), Document)> {
    let at = |card: &PlannedCard| Some((CARDS_HOST.to_owned(), url_path(card)?.to_owned()));
    cards(spec).filter_map(move |card| Some((at(card)?, Document::well(card.card.clone()))))
}

fn cards(spec: &Spec) -> impl Iterator<Item = &PlannedCard> {
    spec.planned.iter().flat_map(|publication| &publication.cards)
}

/// The path on [`CARDS_HOST`] of the URL in `cl.agentcard`. `None` if that is another host's URL.
fn url_path(card: &PlannedCard) -> Option<&str> {
    let url = card.records.get(Key::Agentcard.as_str())?;
    url.strip_prefix("https://")?.strip_prefix(CARDS_HOST).filter(|path| path.starts_with('/'))
}
