//! The schema layers of the rules: each published schema, held against its manifest.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::words::slugs;
use clresolve_core::reason::{Code, Effect, Reason};
use clresolve_core::state::State;
use clresolve_verdict::card::Side;
use clresolve_verdict::manifest::Verb;

/// A schema of a layer, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedSchema {
    /// The manifest.
    pub layer: String,
    /// The verb.
    pub verb: String,
    /// Which of its two schemas.
    pub side: Side,
    /// The path in the publisher's repository.
    pub path: String,
    /// Trusted: the canonical location serves what the manifest pins, and so does each mirror that answers.
    pub state: State,
    /// What is wrong.
    pub reasons: Vec<Reason>,
}

impl PublishedSchema {
    /// The schema of a verb, with what was found of it.
    pub fn of(layer: &str, verb: &Verb, side: Side, reasons: Vec<Reason>) -> Self {
        let has = |effect| reasons.iter().any(|reason: &Reason| reason.effect == effect);
        let state = match (has(Effect::Fail), has(Effect::Unknown)) {
            (true, _) => State::Untrusted,
            (false, true) => State::Indeterminate,
            (false, false) => State::Trusted,
        };
        let path = verb.schema(side).path.clone();
        Self { layer: layer.to_owned(), verb: verb.name.clone(), side, path, state, reasons }
    }

    /// The word for its state.
    pub const fn standing(&self) -> &'static str {
        match self.state {
            State::Trusted => "agrees",
            State::Untrusted => "differs",
            State::Indeterminate => "not known",
        }
    }

    /// The word for its side.
    pub const fn side_in_words(&self) -> &'static str {
        match self.side {
            Side::Request => "request",
            Side::Receipt => "receipt",
        }
    }

    /// The codes of what is wrong, each once.
    pub fn codes(&self) -> Vec<Code> {
        let mut codes: Vec<Code> = self.reasons.iter().map(|reason| reason.code).collect();
        codes.dedup();
        codes
    }

    /// What it is known by.
    pub(super) fn key(&self) -> String {
        format!("{} {} {}", self.layer, self.verb, self.side_in_words())
    }

    /// The codes of what is wrong, or that nothing is.
    fn said(&self) -> String {
        let codes = slugs(&self.codes(), ", ");
        if codes.is_empty() { self.standing().to_owned() } else { codes }
    }
}

/// What two audits said of each schema that either of them has: its key, and what was said.
pub(super) fn pairs(before: &[PublishedSchema], after: &[PublishedSchema]) -> BTreeMap<String, [Option<String>; 2]> {
    let mut said = BTreeMap::<String, [Option<String>; 2]>::new();
    for (place, schemas) in [before, after].into_iter().enumerate() {
        for schema in schemas {
            said.entry(schema.key()).or_default()[place] = Some(schema.said());
        }
    }
    said
}
