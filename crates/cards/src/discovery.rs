//! A document that a host serves at a location where cards are expected.

use clresolve_core::digest::Digest;
use clresolve_verdict::card::Card;

use crate::lint::{self, Report};
use crate::system::{CardSystem, Rules};

/// A document, hashed and parsed once, with the violations that the rules find. The documents of one host can be judged
/// separately, since each has its own budget.
#[derive(Debug)]
pub struct JudgedDocument {
    /// SHA-256 of the bytes as received.
    pub sha256: Digest,
    /// Number of bytes.
    pub bytes: usize,
    /// The card, if the bytes are strict JSON.
    pub card: Option<Card>,
    /// What it is.
    pub kind: DocumentKind,
}

/// What a document is.
#[derive(Debug)]
pub enum DocumentKind {
    /// A card, or a document served in place of one.
    Card(Report),
    /// A document of this system that refers to cards.
    Descriptor(CardSystem),
}

impl JudgedDocument {
    /// Judges the bytes as a card of `named`, or of the system that their shape indicates.
    pub fn judge(bytes: &[u8], named: Option<CardSystem>, rules: &Rules<'_>) -> Self {
        let card = Card::parse(bytes);
        let kind = match descriptor(card.as_ref().ok()) {
            Some(system) => DocumentKind::Descriptor(system),
            None => DocumentKind::Card(lint::report(&card, bytes, named, rules)),
        };
        Self { sha256: Digest::of(bytes), bytes: bytes.len(), card: card.ok(), kind }
    }

    /// The system whose rules were applied.
    pub fn system(&self) -> Option<CardSystem> {
        match &self.kind {
            DocumentKind::Card(report) => report.system,
            DocumentKind::Descriptor(_) => None,
        }
    }
}

fn descriptor(card: Option<&Card>) -> Option<CardSystem> {
    let card = card.filter(|_| !clresolve_core::mutant!("descriptors-are-cards"))?;
    CardSystem::ALL.iter().copied().find(|system| (system.discovery_rules().is_descriptor)(card))
}
