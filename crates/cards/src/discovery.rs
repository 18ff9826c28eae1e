//! A document that a host serves at a location where cards are expected.

use clresolve_core::digest::Digest;
use clresolve_verdict::card::AgentCard;

use crate::lint::{self, CardLintReport};
use crate::system::{CardLintContext, CardSystem};

/// A document, hashed and parsed once, with the violations that the rules find. The documents of one host can be judged
/// separately, since each has its own budget.
#[derive(Debug)]
pub struct LintedCardDocument {
    /// SHA-256 of the bytes as received.
    pub sha256: Digest,
    /// Number of bytes.
    pub bytes: usize,
    /// The card, if the bytes are strict JSON.
    pub card: Option<AgentCard>,
    /// What it is.
    pub kind: CardLintReportOrDescriptor,
}

/// What a document is.
#[derive(Debug)]
pub enum CardLintReportOrDescriptor {
    /// A card, or a document served in place of one.
    Card(CardLintReport),
    /// A document of this system that refers to cards.
    Descriptor(CardSystem),
}

impl LintedCardDocument {
    /// Judges the bytes as a card of `named`, or of the system that their shape indicates.
    pub fn lint_bytes(bytes: &[u8], named: Option<CardSystem>, rules: &CardLintContext<'_>) -> Self {
        let card = AgentCard::parse(bytes);
        let kind = match descriptor_system(card.as_ref().ok()) {
            Some(system) => CardLintReportOrDescriptor::Descriptor(system),
            None => CardLintReportOrDescriptor::Card(lint::lint_parsed_card(&card, bytes, named, rules)),
        };
        Self { sha256: Digest::compute(bytes), bytes: bytes.len(), card: card.ok(), kind }
    }

    /// The system whose rules were applied.
    pub fn applied_card_system(&self) -> Option<CardSystem> {
        match &self.kind {
            CardLintReportOrDescriptor::Card(report) => report.system,
            CardLintReportOrDescriptor::Descriptor(_) => None,
        }
    }
}

fn descriptor_system(card: Option<&AgentCard>) -> Option<CardSystem> {
    let card = card.filter(|_| !clresolve_core::mutant!("descriptors-are-cards"))?;
    CardSystem::ALL.iter().copied().find(|system| (system.discovery_rules().is_descriptor)(card))
}
