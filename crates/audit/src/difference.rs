//! The changes between two audits of the same network. Pure: two reports in, the changes out.
//!
//! A difference in block, time or `id` alone is not a change.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::layers::{self, PublishedSchemaRow};
use super::on_chain::{OnChainFactKind, RecordsByKey};
use super::past::{ComparableName, ComparableReport};
use super::words::joined_slugs;
use super::{AuditConditions, CardSnapshot, DecidedTrustState, NameSnapshot, OnChainSnapshot, StateDecidingSettings};
use clresolve_core::state::TrustState;
use clresolve_verdict::check::edition;
use clresolve_verdict::evidence::edition::CardSuccessionFacts;
use clresolve_verdict::verdict::ResolutionDepth;

/// The schema identifier of the JSON form.
pub const SCHEMA: &str = "clresolve.audit-difference/1";

/// The changes from one report to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditDifference {
    #[serde(skip_deserializing, default = "difference_schema_id")]
    schema: &'static str,
    /// The rules of both reports.
    pub rules: BeforeAfterPair<AuditRules>,
    /// Whether each report contains all names of its list.
    pub complete: BeforeAfterPair<bool>,
    /// The changes by name, then in the order of [`AuditChangeKind`]. Changes of schema layers are last.
    pub changes: Vec<AuditChange>,
}

const fn difference_schema_id() -> &'static str {
    SCHEMA
}

/// A value from each report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeforeAfterPair<T> {
    /// The value in the earlier report.
    pub before: T,
    /// The value in the later report.
    pub after: T,
}

/// The rules of a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRules {
    /// Identifier and digest of the profile.
    pub profile: String,
    /// The depth of the audit.
    pub depth: ResolutionDepth,
    /// Other settings that decide states. `None` if the report does not contain them.
    pub demands: Option<StateDecidingSettings>,
}

/// One change of one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditChange {
    /// The name in normal form or as typed. For a schema: its layer, verb and side.
    pub name: String,
    /// What changed.
    pub kind: AuditChangeKind,
    /// The old value. `None` if there was none.
    pub before: Option<String>,
    /// The new value. `None` if there is none.
    pub after: Option<String>,
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum AuditChangeKind {
    /// The name is new in the list.
    Added,
    /// The name is no longer in the list.
    Removed,
    /// The name became trusted.
    NewlyTrusted,
    /// The name was trusted and became untrusted.
    NewlyBroken,
    /// The state changed in another way.
    State,
    /// The findings changed.
    Findings,
    /// The card's bytes changed.
    Bytes,
    /// The card's version changed.
    Version,
    /// The text records changed. A new card changes them too.
    Records,
    /// The card changed without an update that the change requires (CL-69).
    UpdateMissing,
    /// The holder changed.
    Owner,
    /// The resolver changed.
    Resolver,
    /// The expiry changed.
    Expiry,
    /// An address for payments changed.
    Payee,
    /// A published endpoint changed.
    Endpoint,
    /// A published schema of a layer no longer matches its manifest, or matches it again. Requires that both audits
    /// checked the layers.
    Schema,
}

impl AuditChangeKind {
    /// Every kind, in order.
    pub const ALL: [Self; 16] = [
        Self::Added,
        Self::Removed,
        Self::NewlyTrusted,
        Self::NewlyBroken,
        Self::State,
        Self::Findings,
        Self::Bytes,
        Self::Version,
        Self::Records,
        Self::UpdateMissing,
        Self::Owner,
        Self::Resolver,
        Self::Expiry,
        Self::Payee,
        Self::Endpoint,
        Self::Schema,
    ];

    /// The kind's name.
    pub const fn as_str(self) -> &'static str {
        self.change_words().word
    }

    /// Whether a governance log must record it: changes to the list and to published data, not to the judgement.
    pub(super) const fn is_logged(self) -> bool {
        !self.change_words().log_words.is_empty()
    }

    /// The names of a kind of change.
    pub(super) const fn change_words(self) -> ChangeKindWords {
        let (word, log_words): (_, &[_]) = match self {
            Self::Added => ("added", &["added"]),
            Self::Removed => ("removed", &["removed"]),
            Self::NewlyTrusted => ("newly-trusted", &[]),
            Self::NewlyBroken => ("newly-broken", &[]),
            Self::State => ("state", &[]),
            Self::Findings => ("findings", &[]),
            Self::Bytes => ("bytes", &["bytes", "card", "cid", "checksum"]),
            Self::Version => ("version", &["version"]),
            Self::Records => ("records", &["records", "record", "txt"]),
            Self::UpdateMissing => ("update-missing", &["update-missing", "updated_at", "version"]),
            Self::Owner => ("owner", &["owner", "holder"]),
            Self::Resolver => ("resolver", &["resolver"]),
            Self::Expiry => ("expiry", &["expiry", "expires", "renewed"]),
            Self::Payee => ("payee", &["payee", "address"]),
            Self::Endpoint => ("endpoint", &["endpoint"]),
            Self::Schema => ("schema", &[]),
        };
        ChangeKindWords { word, log_words }
    }
}

/// How a change is named in a report and in a governance log.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChangeKindWords {
    word: &'static str,
    /// Words by which a row of a governance log mentions the change, besides its values. Empty if no row is needed.
    pub(super) log_words: &'static [&'static str],
}

impl fmt::Display for AuditChangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportComparisonOutcome {
    /// Nothing changed.
    Same,
    /// Something changed.
    Differs,
    /// No change was found, but names missing from an incomplete report may have changed.
    Undecided,
}

/// The reports are about different networks and cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the reports are about different networks: {before} and {after}")]
pub struct NetworkMismatchError {
    before: String,
    after: String,
}

/// Checks that reports with these scopes can be compared.
///
/// # Errors
/// The networks or chains differ.
pub fn check_same_network(before: &AuditConditions, after: &AuditConditions) -> Result<(), NetworkMismatchError> {
    let world = |scope: &AuditConditions| format!("{} {}", scope.world, scope.chain);
    let (before, after) = (world(before), world(after));
    if before == after { Ok(()) } else { Err(NetworkMismatchError { before, after }) }
}

impl AuditDifference {
    /// The changes from `before` to `after`.
    ///
    /// # Errors
    /// The networks or chains differ.
    pub fn between(before: &ComparableReport, after: &ComparableReport) -> Result<Self, NetworkMismatchError> {
        check_same_network(&before.scope, &after.scope)?;
        let names: BTreeSet<&String> = before.names.keys().chain(after.names.keys()).collect();
        let mut changes = ChangeCollector { of: String::new(), found: Vec::new() };
        for name in names {
            changes.of.clone_from(name);
            match (before.names.get(name), after.names.get(name)) {
                (Some(before), Some(after)) => changes.compare_names(before, after),
                // An incomplete report says nothing about the names that it lacks.
                (None, Some(now)) if before.complete => {
                    changes.push(AuditChangeKind::Added, None, Some(now.state.to_string()))
                }
                (Some(was), None) if after.complete => {
                    changes.push(AuditChangeKind::Removed, Some(was.state.to_string()), None)
                }
                _ => {}
            }
        }
        if let (Some(before), Some(after)) = (&before.schema_layers, &after.schema_layers) {
            changes.compare_layers(before, after);
        }
        Ok(Self {
            schema: SCHEMA,
            rules: BeforeAfterPair {
                before: AuditRules::from_scope(&before.scope),
                after: AuditRules::from_scope(&after.scope),
            },
            complete: BeforeAfterPair { before: before.complete, after: after.complete },
            changes: changes.found,
        })
    }

    /// The result for changes of these kinds. An empty list selects all kinds.
    pub fn outcome(&self, kinds: &[AuditChangeKind]) -> ReportComparisonOutcome {
        let counts = |change: &AuditChange| kinds.is_empty() || kinds.contains(&change.kind);
        if self.changes.iter().any(counts) {
            return ReportComparisonOutcome::Differs;
        }
        if self.is_complete() { ReportComparisonOutcome::Same } else { ReportComparisonOutcome::Undecided }
    }

    /// Whether both reports contain all names of their lists.
    pub const fn is_complete(&self) -> bool {
        self.complete.before && self.complete.after
    }

    /// Caveats about the comparison.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.rules.before != self.rules.after {
            warnings.push(
                "The reports were made by different rules: states and findings may differ for that alone.".to_owned(),
            );
        }
        if !self.complete.before {
            warnings
                .push("The earlier report is incomplete: names that only the later one has are omitted.".to_owned());
        }
        if !self.complete.after {
            warnings
                .push("The later report is incomplete: names that only the earlier one has are omitted.".to_owned());
        }
        warnings
    }
}

impl AuditRules {
    fn from_scope(scope: &AuditConditions) -> Self {
        Self {
            profile: format!("{} {}", scope.profile.id, scope.profile.digest),
            depth: scope.depth,
            demands: scope.demands.clone(),
        }
    }
}

/// The changes found so far, and the current name.
struct ChangeCollector {
    of: String,
    found: Vec<AuditChange>,
}

impl ChangeCollector {
    fn compare_names(&mut self, before: &ComparableName, after: &ComparableName) {
        self.compare_states(before, after);
        let codes = |name: &ComparableName| Some(joined_slugs(&name.codes(), ", ")).filter(|codes| !codes.is_empty());
        self.compare_values(AuditChangeKind::Findings, codes(before), codes(after));
        let (before, after) = (&before.known, &after.known);
        if let Some((before, after)) = first_differing_cards(before, after) {
            self.compare_cards(before, after);
        }
        self.compare_read_values(AuditChangeKind::Records, before.records_digest(), after.records_digest());
        if let (Some(before), Some(after)) = (&before.edition, &after.edition) {
            self.compare_editions(before, after);
        }
        if let (Some(before), Some(after)) = (&before.on_chain, &after.on_chain) {
            self.compare_chain_data(before, after);
        }
    }

    fn compare_states(&mut self, before: &ComparableName, after: &ComparableName) {
        let kind = match (before.last_decided_state(), after.state) {
            (Some(DecidedTrustState::Trusted), TrustState::Untrusted) => AuditChangeKind::NewlyBroken,
            (None | Some(DecidedTrustState::Untrusted), TrustState::Trusted) => AuditChangeKind::NewlyTrusted,
            _ => AuditChangeKind::State,
        };
        let was = match (before.state, before.last_decided_state()) {
            (TrustState::Indeterminate, Some(DecidedTrustState::Trusted)) => "indeterminate, trusted before".to_owned(),
            (TrustState::Indeterminate, Some(DecidedTrustState::Untrusted)) => {
                "indeterminate, untrusted before".to_owned()
            }
            (state, _) => state.to_string(),
        };
        if before.state != after.state {
            self.push(kind, Some(was), Some(after.state.to_string()));
        }
    }

    fn compare_cards(&mut self, before: &CardSnapshot, after: &CardSnapshot) {
        self.push(AuditChangeKind::Bytes, Some(before.sha256.to_string()), Some(after.sha256.to_string()));
        self.compare_present_values(AuditChangeKind::Version, &before.version, &after.version);
    }

    fn compare_editions(&mut self, before: &CardSuccessionFacts, after: &CardSuccessionFacts) {
        for reason in edition::check_succession(before, after) {
            self.push(AuditChangeKind::UpdateMissing, None, Some(format!("{}: {}", reason.code, reason.message)));
        }
    }

    fn compare_chain_data(&mut self, before: &OnChainSnapshot, after: &OnChainSnapshot) {
        self.compare_read_values(
            AuditChangeKind::Owner,
            before.fact_value(OnChainFactKind::Holder),
            after.fact_value(OnChainFactKind::Holder),
        );
        self.compare_values(AuditChangeKind::Resolver, before.resolver.clone(), after.resolver.clone());
        self.compare_read_values(
            AuditChangeKind::Expiry,
            before.fact_value(OnChainFactKind::Expiry),
            after.fact_value(OnChainFactKind::Expiry),
        );
        self.compare_records(AuditChangeKind::Payee, (before, &before.addresses), (after, &after.addresses));
        self.compare_records(AuditChangeKind::Endpoint, (before, &before.endpoints), (after, &after.endpoints));
    }

    /// Compares what both sides read, which may be the absence of a value.
    fn compare_read_values(
        &mut self,
        kind: AuditChangeKind,
        before: Option<Option<&str>>,
        after: Option<Option<&str>>,
    ) {
        if let (Some(before), Some(after)) = (before, after) {
            self.compare_values(kind, before.map(str::to_owned), after.map(str::to_owned));
        }
    }

    fn compare_layers(&mut self, before: &[PublishedSchemaRow], after: &[PublishedSchemaRow]) {
        for (schema, [before, after]) in layers::findings_by_schema(before, after) {
            self.of = schema;
            self.compare_values(AuditChangeKind::Schema, before, after);
        }
    }

    /// Compares only records that both sides read, because the configuration decides which are requested.
    fn compare_records(
        &mut self,
        kind: AuditChangeKind,
        before: (&OnChainSnapshot, &RecordsByKey),
        after: (&OnChainSnapshot, &RecordsByKey),
    ) {
        let keys: BTreeSet<&String> = before.1.keys().chain(after.1.keys()).collect();
        for key in keys {
            let read = |(chain, records): (&OnChainSnapshot, &RecordsByKey)| {
                chain.record_value(records, key).map(|value| value.map(|value| format!("{key}: {value}")))
            };
            if let (Some(before), Some(after)) = (read(before), read(after)) {
                self.compare_values(kind, before, after);
            }
        }
    }

    /// Compares values for which absence may mean that they could not be read.
    fn compare_present_values(&mut self, kind: AuditChangeKind, before: &Option<String>, after: &Option<String>) {
        if before.is_some() && after.is_some() {
            self.compare_values(kind, before.clone(), after.clone());
        }
    }

    fn compare_values(&mut self, kind: AuditChangeKind, before: Option<String>, after: Option<String>) {
        if before != after {
            self.push(kind, before, after);
        }
    }

    fn push(&mut self, kind: AuditChangeKind, before: Option<String>, after: Option<String>) {
        self.found.push(AuditChange { name: self.of.clone(), kind, before, after });
    }
}

/// Both cards if they differ, from the best source that both sides saw.
fn first_differing_cards<'a>(
    before: &'a NameSnapshot,
    after: &'a NameSnapshot,
) -> Option<(&'a CardSnapshot, &'a CardSnapshot)> {
    let sources = [(&before.proven, &after.proven), (&before.served, &after.served)];
    let mut seen = sources.into_iter().filter_map(|(before, after)| before.as_ref().zip(after.as_ref()));
    seen.find(|(before, after)| before.sha256 != after.sha256)
}
