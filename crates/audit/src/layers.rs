//! The schema layers of the rules: compares each published schema with its manifest.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::words::joined_slugs;
use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect};
use clresolve_core::state::TrustState;
use clresolve_verdict::card::SchemaRole;
use clresolve_verdict::manifest::ManifestVerb;

/// The row of a report about one published schema of a layer: its state, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedSchemaRow {
    /// The manifest.
    pub layer: String,
    /// The verb.
    pub verb: String,
    /// The side of the schema.
    pub side: SchemaRole,
    /// The path in the publisher's repository.
    pub path: String,
    /// Trusted if the canonical location serves the pinned bytes, and so does each mirror that responds.
    pub state: TrustState,
    /// The findings.
    pub reasons: Vec<Reason>,
}

impl PublishedSchemaRow {
    /// The schema of a verb with these findings.
    pub fn new(layer: &str, verb: &ManifestVerb, side: SchemaRole, reasons: Vec<Reason>) -> Self {
        let has = |effect| reasons.iter().any(|reason: &Reason| reason.effect == effect);
        let state = match (has(ReasonEffect::Fail), has(ReasonEffect::Unknown)) {
            (true, _) => TrustState::Untrusted,
            (false, true) => TrustState::Indeterminate,
            (false, false) => TrustState::Trusted,
        };
        let path = verb.schema(side).path.clone();
        Self { layer: layer.to_owned(), verb: verb.name.clone(), side, path, state, reasons }
    }

    /// The state in words.
    pub const fn state_in_words(&self) -> &'static str {
        match self.state {
            TrustState::Trusted => "agrees",
            TrustState::Untrusted => "differs",
            TrustState::Indeterminate => "not known",
        }
    }

    /// The side in words.
    pub const fn side_in_words(&self) -> &'static str {
        match self.side {
            SchemaRole::Request => "request",
            SchemaRole::Receipt => "receipt",
        }
    }

    /// The distinct codes of the findings.
    pub fn codes(&self) -> Vec<ReasonCode> {
        let mut codes: Vec<ReasonCode> = self.reasons.iter().map(|reason| reason.code).collect();
        codes.dedup();
        codes
    }

    /// The schema's key in comparisons.
    pub(super) fn key(&self) -> String {
        format!("{} {} {}", self.layer, self.verb, self.side_in_words())
    }

    /// The codes of the findings, or a text for none.
    fn codes_in_words(&self) -> String {
        let codes = joined_slugs(&self.codes(), ", ");
        if codes.is_empty() { self.state_in_words().to_owned() } else { codes }
    }
}

/// The findings of both audits on each schema that either of them contains, by key.
pub(super) fn findings_by_schema(
    before: &[PublishedSchemaRow],
    after: &[PublishedSchemaRow],
) -> BTreeMap<String, [Option<String>; 2]> {
    let mut pairs = BTreeMap::<String, [Option<String>; 2]>::new();
    for (place, schemas) in [before, after].into_iter().enumerate() {
        for schema in schemas {
            pairs.entry(schema.key()).or_default()[place] = Some(schema.codes_in_words());
        }
    }
    pairs
}
