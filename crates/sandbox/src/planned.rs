//! Cards that a publisher wrote: their registrations on the chain, and their paths on the web host.

use std::collections::BTreeSet;

use alloy_primitives::Address;
use clresolve_core::name::EnsName;
use clresolve_core::records::TextRecordKey;

use super::chain::SandboxNameRegistration;
use super::published::CARDS_HOST;
use super::spec::{PublisherCard, SandboxSpec, SandboxSpecError};
use super::web::ServedFile;

/// Registrations of the cards' names with their records, and of owners' names that the sandbox does not have yet. The
/// account `publisher` holds all of them.
///
/// # Errors
/// If a card's name already exists in the sandbox, or if the web host does not serve the card's URL.
pub(crate) fn publisher_card_registrations(
    spec: &SandboxSpec,
    publisher: Address,
) -> Result<Vec<SandboxNameRegistration>, SandboxSpecError> {
    let own = spec.agents.iter().map(|agent| &agent.name).chain(spec.names.iter().map(|plain| &plain.name));
    let mut taken: BTreeSet<&str> = own.map(String::as_str).collect();
    let mut paths = BTreeSet::new();
    let mut registrations = Vec::new();
    for card in publisher_cards(spec) {
        let error = |detail: String| SandboxSpecError { agent: card.name.clone(), detail };
        let name = EnsName::parse(&card.name).map_err(|invalid| error(invalid.to_string()))?;
        if !taken.insert(&card.name) {
            return Err(error("the sandbox already has a card of this name".to_owned()));
        }
        let Some(path) = card_url_path(card) else {
            return Err(error(format!("the card's $id must be a URL below https://{CARDS_HOST}/")));
        };
        if !paths.insert(path) {
            return Err(error("another card has the same $id".to_owned()));
        }
        let texts = card.records.clone();
        registrations.push(SandboxNameRegistration { texts, ..SandboxNameRegistration::new(name, publisher) });
    }
    for owner in publisher_cards(spec).filter_map(|card| card.records.get(TextRecordKey::Owner.as_str())) {
        // A text that is not a name proves no owner, which the verdict reports.
        if let Ok(name) = EnsName::parse(owner)
            && name.as_str() == owner
            && taken.insert(owner)
        {
            registrations.push(SandboxNameRegistration {
                addr: Some(publisher),
                ..SandboxNameRegistration::new(name, publisher)
            });
        }
    }
    Ok(registrations)
}

pub(crate) fn publisher_card_documents(spec: &SandboxSpec) -> impl Iterator<Item = ((String, String), ServedFile)> {
    let at = |card: &PublisherCard| Some((CARDS_HOST.to_owned(), card_url_path(card)?.to_owned()));
    publisher_cards(spec).filter_map(move |card| Some((at(card)?, ServedFile::served_correctly(card.card.clone()))))
}

fn publisher_cards(spec: &SandboxSpec) -> impl Iterator<Item = &PublisherCard> {
    spec.planned.iter().flat_map(|publication| &publication.cards)
}

/// The path of the URL in `cl.agentcard`. `None` if its host is not [`CARDS_HOST`].
fn card_url_path(card: &PublisherCard) -> Option<&str> {
    let url = card.records.get(TextRecordKey::Agentcard.as_str())?;
    url.strip_prefix("https://")?.strip_prefix(CARDS_HOST).filter(|path| path.starts_with('/'))
}
