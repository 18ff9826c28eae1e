//! A document that a host serves at a location where cards are expected.

use clresolve_core::digest::Digest;
use clresolve_verdict::card::AgentCard;

use crate::lint::{self, LintReport};
use crate::system::{CardRules, CardSystem};

/// A document, hashed and parsed once, with the violations that the rules find. The documents of one host can be judged
/// separately, since each has its own budget.
#[derive(Debug)]
pub struct LintedDocument {
    /// SHA-256 of the bytes as received.
    pub sha256: Digest,
    /// Number of bytes.
    pub bytes: usize,
    /// The card, if the bytes are strict JSON.
    pub card: Option<AgentCard>,
    /// What it is.
    pub kind: CardOrDescriptor,
}

/// What a document is.
#[derive(Debug)]
pub enum CardOrDescriptor {
    /// A card, or a document served in place of one.
    Card(LintReport),
    /// A document of this system that refers to cards.
    Descriptor(CardSystem),
}

impl LintedDocument {
    /// Judges the bytes as a card of `named`, or of the system that their shape indicates.
    pub fn judge(bytes: &[u8], named: Option<CardSystem>, rules: &CardRules<'_>) -> Self {
        let card = AgentCard::parse(bytes);
        let kind = match descriptor_system(card.as_ref().ok()) {
            Some(system) => CardOrDescriptor::Descriptor(system),
            None => CardOrDescriptor::Card(lint::lint_parsed_card(&card, bytes, named, rules)),
        };
        Self { sha256: Digest::compute(bytes), bytes: bytes.len(), card: card.ok(), kind }
    }

    /// The system whose rules were applied.
    pub fn system(&self) -> Option<CardSystem> {
        match &self.kind {
            CardOrDescriptor::Card(report) => report.system,
            CardOrDescriptor::Descriptor(_) => None,
        }
    }
}

fn descriptor_system(card: Option<&AgentCard>) -> Option<CardSystem> {
    let card = card.filter(|_| !clresolve_core::mutant!("descriptors-are-cards"))?;
    CardSystem::ALL.iter().copied().find(|system| (system.discovery_rules().is_descriptor)(card))
}
