//! What changed between two audits of the same world. Pure: two reports in, the changes out.
//!
//! A difference of block, time or `id` alone is none.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::layers::{self, PublishedSchema};
use super::on_chain::{Fact, ReadRecords};
use super::past::{Past, PastName};
use super::words::slugs;
use super::{Decided, Demands, Known, OnChain, Scope, SeenCard};
use clresolve_core::state::State;
use clresolve_verdict::check::edition;
use clresolve_verdict::evidence::edition::Edition;
use clresolve_verdict::verdict::Depth;

/// The schema identifier of the JSON form.
pub const SCHEMA: &str = "clresolve.audit-difference/1";

/// What changed from one report to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    #[serde(skip_deserializing, default = "schema")]
    schema: &'static str,
    /// The rules of both.
    pub rules: Pair<Rules>,
    /// Whether each of them has all names of its list.
    pub complete: Pair<bool>,
    /// The changes, by name, then in the order of [`Kind`]; those of the schema layers last.
    pub changes: Vec<Change>,
}

const fn schema() -> &'static str {
    SCHEMA
}

/// The same of both reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair<T> {
    /// Of the earlier one.
    pub before: T,
    /// Of the later one.
    pub after: T,
}

/// By which rules a report was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// Identifier and digest of the profile.
    pub profile: String,
    /// How deep the walk went.
    pub depth: Depth,
    /// What else decides states; absent where the report does not say.
    pub demands: Option<Demands>,
}

/// One change of one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The name in its normal form, or as it was typed; of a schema its layer, verb and side.
    pub name: String,
    /// What changed.
    pub kind: Kind,
    /// What it was; absent where there was nothing.
    pub before: Option<String>,
    /// What it is; absent where there is nothing.
    pub after: Option<String>,
}

/// What changed of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Kind {
    /// It is audited for the first time.
    Added,
    /// It is audited no longer.
    Removed,
    /// It has become trusted.
    NewlyTrusted,
    /// It was trusted, and is untrusted.
    NewlyBroken,
    /// Its state changed in another way.
    State,
    /// Other findings.
    Findings,
    /// Other bytes of its card.
    Bytes,
    /// Another version of its card.
    Version,
    /// Other text records, as those of another card are too.
    Records,
    /// The card changed, but not what must change with it (CL-69).
    UpdateMissing,
    /// Another holder.
    Owner,
    /// Another resolver.
    Resolver,
    /// Another expiry.
    Expiry,
    /// Another address that it is paid at.
    Payee,
    /// Another place where it is to be called.
    Endpoint,
    /// A published schema of a layer agrees with its manifest no longer, or again, where both audits looked at it.
    Schema,
}

impl Kind {
    /// Every kind, in their order.
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

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        self.about().word
    }

    /// Whether a governance log must tell of it: of the list and of what a name publishes, not of what is said of the name.
    pub(super) const fn is_logged(self) -> bool {
        !self.about().log_words.is_empty()
    }

    /// What holds for it, wherever changes are told.
    pub(super) const fn about(self) -> About {
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
        About { word, log_words }
    }
}

/// What holds for a kind of change.
#[derive(Clone, Copy, Debug)]
pub(super) struct About {
    word: &'static str,
    /// The words by which a row of a governance log tells of it, beside its values. None for what needs no row.
    pub(super) log_words: &'static [&'static str],
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What a difference comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Nothing changed.
    Same,
    /// Something changed.
    Differs,
    /// No change was found, but a report is incomplete: what it lacks may have changed.
    Undecided,
}

/// The reports are about different worlds, so that nothing follows from a difference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the reports are about different worlds: {before} and {after}")]
pub struct OtherWorld {
    before: String,
    after: String,
}

/// Whether a report with one scope can be compared with one of the other.
///
/// # Errors
/// If they are about different worlds or chains.
pub fn check_worlds(before: &Scope, after: &Scope) -> Result<(), OtherWorld> {
    let world = |scope: &Scope| format!("{} {}", scope.world, scope.chain);
    let (before, after) = (world(before), world(after));
    if before == after { Ok(()) } else { Err(OtherWorld { before, after }) }
}

impl Difference {
    /// What changed from `before` to `after`.
    ///
    /// # Errors
    /// If they are about different worlds or chains.
    pub fn between(before: &Past, after: &Past) -> Result<Self, OtherWorld> {
        check_worlds(&before.scope, &after.scope)?;
        let names: BTreeSet<&String> = before.names.keys().chain(after.names.keys()).collect();
        let mut changes = Changes { of: String::new(), found: Vec::new() };
        for name in names {
            changes.of.clone_from(name);
            match (before.names.get(name), after.names.get(name)) {
                (Some(before), Some(after)) => changes.of_name(before, after),
                // Of names that a report never came to nothing is known.
                (None, Some(now)) if before.complete => changes.push(Kind::Added, None, Some(now.state.to_string())),
                (Some(was), None) if after.complete => changes.push(Kind::Removed, Some(was.state.to_string()), None),
                _ => {}
            }
        }
        if let (Some(before), Some(after)) = (&before.schema_layers, &after.schema_layers) {
            changes.of_layers(before, after);
        }
        Ok(Self {
            schema: SCHEMA,
            rules: Pair { before: Rules::of(&before.scope), after: Rules::of(&after.scope) },
            complete: Pair { before: before.complete, after: after.complete },
            changes: changes.found,
        })
    }

    /// What the changes of these kinds come to; where no kind is named, those of every kind.
    pub fn outcome(&self, kinds: &[Kind]) -> Comparison {
        let counts = |change: &Change| kinds.is_empty() || kinds.contains(&change.kind);
        if self.changes.iter().any(counts) {
            return Comparison::Differs;
        }
        if self.is_complete() { Comparison::Same } else { Comparison::Undecided }
    }

    /// Whether both reports have all names of their lists.
    pub const fn is_complete(&self) -> bool {
        self.complete.before && self.complete.after
    }

    /// What a reader must know before the changes.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.rules.before != self.rules.after {
            warnings.push(
                "The reports were made by different rules: states and findings may differ for that alone.".to_owned(),
            );
        }
        if !self.complete.before {
            warnings
                .push("The earlier report is incomplete: names that only the later one has are left out.".to_owned());
        }
        if !self.complete.after {
            warnings
                .push("The later report is incomplete: names that only the earlier one has are left out.".to_owned());
        }
        warnings
    }
}

impl Rules {
    fn of(scope: &Scope) -> Self {
        Self {
            profile: format!("{} {}", scope.profile.id, scope.profile.digest),
            depth: scope.depth,
            demands: scope.demands.clone(),
        }
    }
}

/// The changes that were found, and the name that is looked at.
struct Changes {
    of: String,
    found: Vec<Change>,
}

impl Changes {
    fn of_name(&mut self, before: &PastName, after: &PastName) {
        self.of_state(before, after);
        let codes = |name: &PastName| Some(slugs(&name.codes(), ", ")).filter(|codes| !codes.is_empty());
        self.compare(Kind::Findings, codes(before), codes(after));
        let (before, after) = (&before.known, &after.known);
        if let Some((before, after)) = other_card(before, after) {
            self.of_card(before, after);
        }
        self.of_fact(Kind::Records, before.read_records(), after.read_records());
        if let (Some(before), Some(after)) = (&before.edition, &after.edition) {
            self.of_edition(before, after);
        }
        if let (Some(before), Some(after)) = (&before.on_chain, &after.on_chain) {
            self.of_chain(before, after);
        }
    }

    fn of_state(&mut self, before: &PastName, after: &PastName) {
        let kind = match (before.decided(), after.state) {
            (Some(Decided::Trusted), State::Untrusted) => Kind::NewlyBroken,
            (None | Some(Decided::Untrusted), State::Trusted) => Kind::NewlyTrusted,
            _ => Kind::State,
        };
        let was = match (before.state, before.decided()) {
            (State::Indeterminate, Some(Decided::Trusted)) => "indeterminate, trusted before".to_owned(),
            (State::Indeterminate, Some(Decided::Untrusted)) => "indeterminate, untrusted before".to_owned(),
            (state, _) => state.to_string(),
        };
        if before.state != after.state {
            self.push(kind, Some(was), Some(after.state.to_string()));
        }
    }

    fn of_card(&mut self, before: &SeenCard, after: &SeenCard) {
        self.push(Kind::Bytes, Some(before.sha256.to_string()), Some(after.sha256.to_string()));
        self.compare_known(Kind::Version, &before.version, &after.version);
    }

    fn of_edition(&mut self, before: &Edition, after: &Edition) {
        for reason in edition::since(before, after) {
            self.push(Kind::UpdateMissing, None, Some(format!("{}: {}", reason.code, reason.message)));
        }
    }

    fn of_chain(&mut self, before: &OnChain, after: &OnChain) {
        self.of_fact(Kind::Owner, before.read(Fact::Holder), after.read(Fact::Holder));
        self.compare(Kind::Resolver, before.resolver.clone(), after.resolver.clone());
        self.of_fact(Kind::Expiry, before.read(Fact::Expiry), after.read(Fact::Expiry));
        self.of_records(Kind::Payee, (before, &before.addresses), (after, &after.addresses));
        self.of_records(Kind::Endpoint, (before, &before.endpoints), (after, &after.endpoints));
    }

    /// Compares what both sides read: a value each, or the finding that there is no value.
    fn of_fact(&mut self, kind: Kind, before: Option<Option<&str>>, after: Option<Option<&str>>) {
        if let (Some(before), Some(after)) = (before, after) {
            self.compare(kind, before.map(str::to_owned), after.map(str::to_owned));
        }
    }

    fn of_layers(&mut self, before: &[PublishedSchema], after: &[PublishedSchema]) {
        for (schema, [before, after]) in layers::pairs(before, after) {
            self.of = schema;
            self.compare(Kind::Schema, before, after);
        }
    }

    /// Of the records that both sides read: which are asked for is a matter of the configuration.
    fn of_records(&mut self, kind: Kind, before: (&OnChain, &ReadRecords), after: (&OnChain, &ReadRecords)) {
        let keys: BTreeSet<&String> = before.1.keys().chain(after.1.keys()).collect();
        for key in keys {
            let read = |(chain, records): (&OnChain, &ReadRecords)| {
                chain.record(records, key).map(|value| value.map(|value| format!("{key}: {value}")))
            };
            if let (Some(before), Some(after)) = (read(before), read(after)) {
                self.compare(kind, before, after);
            }
        }
    }

    /// Compares what is absent also where it could not be read.
    fn compare_known(&mut self, kind: Kind, before: &Option<String>, after: &Option<String>) {
        if before.is_some() && after.is_some() {
            self.compare(kind, before.clone(), after.clone());
        }
    }

    fn compare(&mut self, kind: Kind, before: Option<String>, after: Option<String>) {
        if before != after {
            self.push(kind, before, after);
        }
    }

    fn push(&mut self, kind: Kind, before: Option<String>, after: Option<String>) {
        self.found.push(Change { name: self.of.clone(), kind, before, after });
    }
}

/// The cards, if they are others, from the best source that both sides saw.
fn other_card<'a>(before: &'a Known, after: &'a Known) -> Option<(&'a SeenCard, &'a SeenCard)> {
    let sources = [(&before.proven, &after.proven), (&before.served, &after.served)];
    let mut seen = sources.into_iter().filter_map(|(before, after)| before.as_ref().zip(after.as_ref()));
    seen.find(|(before, after)| before.sha256 != after.sha256)
}
