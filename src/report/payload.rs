//! What a webhook is told of a difference: `schemas/audit-changes.schema.json`. Pure.
//!
//! It holds names in their normal form, words of this program and digests. What others wrote (values of records, names that
//! are none) stands in it by its digest alone.

use jiff::Timestamp;
use serde::Serialize;

use super::difference::{Change, Difference, Kind, Values};
use super::{AuditCounts, Past};
use crate::digest::Digest;
use crate::verdict::Pinned;

/// The schema identifier of what a webhook is told.
pub const SCHEMA: &str = "clresolve.audit-changes/1";

/// The type of the event, in the words of Standard Webhooks.
pub const EVENT: &str = "audit.changed";

/// Most changes of one message. One with this many is some 100 KiB long, and at most 400 KiB: receivers commonly take
/// 1 MiB. The message counts those that it leaves out.
pub const MAX_CHANGES: usize = 500;

/// What a webhook is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Payload<'a> {
    #[serde(rename = "type")]
    event: &'static str,
    timestamp: Timestamp,
    data: Data<'a>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Data<'a> {
    schema: &'static str,
    world: &'a str,
    chain: &'a str,
    profile: &'a Pinned,
    depth: &'static str,
    /// Whether the reports were made by different rules, which alone may change states and findings.
    other_rules: bool,
    blocks: Option<Blocks>,
    reports: Reports,
    counts: Counts,
    changes: Vec<Item<'a>>,
    left_out: usize,
}

/// The lowest and the highest block that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Blocks {
    first: u64,
    last: u64,
}

/// The digests by which both reports are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Reports {
    before: Option<Digest>,
    after: Option<Digest>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Counts {
    names: u64,
    trusted: u64,
    untrusted: u64,
    indeterminate: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Item<'a> {
    /// The normal form; none of a line that is no name.
    name: Option<&'a str>,
    /// The digest of such a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Digest>,
    kind: Kind,
    before: Option<String>,
    after: Option<String>,
}

impl<'a> Payload<'a> {
    /// What `changes` from `before` to `after` are told as. The time is that of the last block; `now` where none was read.
    pub fn of(
        changes: &'a Difference,
        before: &'a Past,
        after: &'a Past,
        counts: &AuditCounts,
        now: Timestamp,
    ) -> Self {
        let scope = &after.scope;
        let AuditCounts { names, trusted, untrusted, indeterminate, .. } = *counts;
        Self {
            event: EVENT,
            timestamp: counts.checked.map_or(now, |(_, last)| last),
            data: Data {
                schema: SCHEMA,
                world: &scope.world,
                chain: &scope.chain,
                profile: &scope.profile,
                depth: scope.depth.as_str(),
                other_rules: changes.rules.before != changes.rules.after,
                blocks: counts.blocks.map(|(first, last)| Blocks { first, last }),
                reports: Reports { before: before.digest, after: after.digest },
                counts: Counts { names, trusted, untrusted, indeterminate },
                changes: changes
                    .changes
                    .iter()
                    .take(MAX_CHANGES)
                    .map(|change| Item::of(change, before, after))
                    .collect(),
                left_out: changes.changes.len().saturating_sub(MAX_CHANGES),
            },
        }
    }
}

impl<'a> Item<'a> {
    fn of(change: &'a Change, before: &'a Past, after: &'a Past) -> Self {
        let row = after.names.get(&change.name).or_else(|| before.names.get(&change.name));
        let name = row.and_then(|row| row.normalized());
        let value = |value: &Option<String>| value.as_deref().map(|value| shown(change.kind, value));
        Self {
            name,
            input: if name.is_none() { Some(Digest::of(change.name.as_bytes())) } else { None },
            kind: change.kind,
            before: value(&change.before),
            after: value(&change.after),
        }
    }
}

/// The value, where it is a word of this program; else its digest.
fn shown(kind: Kind, value: &str) -> String {
    match kind.about().values {
        Values::Own => value.to_owned(),
        Values::Code => value.split(':').next().unwrap_or_default().to_owned(),
        Values::Foreign if clresolve_core::mutant!("webhooks-repeat-values") => value.to_owned(),
        Values::Foreign => Digest::of(value.as_bytes()).to_string(),
    }
}
