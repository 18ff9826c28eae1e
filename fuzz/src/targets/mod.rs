//! What is fuzzed: each target reads one kind of foreign input and asserts what must hold of whatever comes out.
//!
//! The same functions run over the committed corpora in `tests/scenarios/fuzz.rs`, without libFuzzer.

mod beacon;
mod cards;
mod chain;
mod content;
mod evidence;
mod message;
mod payment;
mod proof;
mod receipt;
mod systems;
mod text;

#[allow(unused_imports, reason = "what the seeds are made with")]
pub(crate) use self::{
    beacon::{BEACON, Beacon},
    chain::{HEADER, RESOLVER, aggregate},
    content::BLANK,
    evidence::NOW,
    payment::{MADE, OFFER, PAYEE, SHOP},
    text::CARD,
};

/// One kind of foreign input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    /// Its name, also that of its corpus.
    pub(crate) name: &'static str,
    /// Reads one input. Panics when an invariant is broken.
    pub(crate) run: fn(&[u8]),
}

impl Target {
    /// Every target.
    pub(crate) const ALL: [Self; 23] = [
        Self { name: "name", run: text::name },
        Self { name: "records", run: text::records },
        Self { name: "cid", run: text::cid },
        Self { name: "car", run: content::car },
        Self { name: "dag", run: content::dag },
        Self { name: "card", run: text::card },
        Self { name: "abi", run: chain::abi },
        Self { name: "ccip", run: chain::ccip },
        Self { name: "proof", run: proof::proof },
        Self { name: "header", run: proof::header },
        Self { name: "block-receipts", run: proof::block_receipts },
        Self { name: "beacon", run: beacon::beacon },
        Self { name: "bundle", run: evidence::bundle },
        Self { name: "jws", run: evidence::jws },
        Self { name: "resources", run: cards::resources },
        Self { name: "ledger", run: cards::ledger },
        Self { name: "system", run: systems::system },
        Self { name: "terms", run: payment::terms },
        Self { name: "offers", run: payment::offers },
        Self { name: "payment-header", run: payment::payment_header },
        Self { name: "receipt", run: receipt::receipt },
        Self { name: "decision-request", run: message::decision_request },
        Self { name: "request", run: message::request },
    ];

    /// The target of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|target| target.name == name)
    }

    /// The names of all targets.
    pub(crate) fn names() -> [&'static str; Self::ALL.len()] {
        Self::ALL.map(|target| target.name)
    }
}

/// Cuts an input into pieces, each after its length (two bytes, big-endian). The last one takes what is left.
pub(crate) fn pieces(mut input: &[u8]) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    while let Some((length, rest)) = input.split_first_chunk::<2>() {
        let length = usize::from(u16::from_be_bytes(*length)).min(rest.len());
        let (piece, rest) = rest.split_at(length);
        pieces.push(piece);
        input = rest;
    }
    pieces
}
