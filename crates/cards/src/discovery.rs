//! A document that a host serves where cards are looked for.

use clresolve_core::digest::Digest;
use clresolve_verdict::card::Card;

use crate::lint::{self, Report};
use crate::system::{CardSystem, Rules};

/// A document, hashed and read once, with what the rules find in it. Documents of one host may be judged apart: each has a
/// budget of its own.
#[derive(Debug)]
pub struct Document {
    /// SHA-256 of the bytes as received.
    pub sha256: Digest,
    /// Their number.
    pub bytes: usize,
    /// The card, where the bytes are strict JSON.
    pub card: Option<Card>,
    /// What it is.
    pub kind: DocumentKind,
}

/// What a document is.
#[derive(Debug)]
pub enum DocumentKind {
    /// A card, or what stands in its place.
    Card(Report),
    /// A document of this system that says where cards are.
    Descriptor(CardSystem),
}

impl Document {
    /// Judges what was served as a card of the named system, or of the system that its shape shows.
    pub fn judge(bytes: &[u8], named: Option<CardSystem>, rules: &Rules<'_>) -> Self {
        let card = Card::parse(bytes);
        let kind = match descriptor(card.as_ref().ok()) {
            Some(system) => DocumentKind::Descriptor(system),
            None => DocumentKind::Card(lint::report(&card, bytes, named, rules)),
        };
        Self { sha256: Digest::of(bytes), bytes: bytes.len(), card: card.ok(), kind }
    }

    /// The system that it was judged as a card of.
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
