//! The facts about a name on the chain that an audit keeps besides its verdict: holder, resolver, expiry, and
//! addresses for payments.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use clresolve_core::reason::ResolutionStep;
use clresolve_core::text::excerpt_text;
use clresolve_verdict::verdict::Verdict;

/// Maximum number of addresses and of endpoints kept: a name has one for each configured network.
const MAX_KEPT: usize = 32;

/// A name's state on the chain, at the block of its row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnChainSnapshot {
    /// The account that holds the name.
    pub holder: Option<String>,
    /// Why holder and expiry are unknown although the chain was read: the name has moved to ENSv2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
    /// The resolver contract.
    pub resolver: Option<String>,
    /// When it expires, RFC 3339.
    pub expiry: Option<String>,
    /// Facts that were read and do not exist: a holder, an expiry, or a resolver. If holder or expiry has no value and
    /// is not listed, it was not read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<OnChainFactKind>,
    /// Addresses by coin type.
    pub addresses: RecordsByKey,
    /// Endpoints by the key of the record.
    pub endpoints: RecordsByKey,
}

/// A fact about a name that may be absent on the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnChainFactKind {
    /// The holder.
    Holder,
    /// The expiry.
    Expiry,
    /// All records: the chain proves that the name has no resolver.
    Records,
}

/// Records by key. A record without a value was read and is not set. A missing key was not requested, or could not be
/// read.
pub(super) type RecordsByKey = BTreeMap<String, Option<String>>;

impl OnChainSnapshot {
    /// The facts in a verdict's evidence; `None` if the records were not read.
    pub fn from_verdict(verdict: &Verdict) -> Option<Self> {
        let evidence = &verdict.steps.iter().find(|report| report.step == ResolutionStep::Records)?.evidence;
        let answer = evidence.get("answer")?;
        let text = |member: &str| evidence[member].as_str().map(excerpt_text);
        let expiry = text("expiry").filter(|expiry| expiry.parse::<jiff::Timestamp>().is_ok());
        let unreadable = evidence["holder"]["unreadable"].as_str().map(excerpt_text);
        // `expiry` exists only if the registry's holder was read. Every second-level .eth name has an expiry at its
        // registrar; other names expire only if they are wrapped, which was read too.
        let never_expires = unreadable.is_none() && evidence.get("expiry").is_some() && !is_second_level_eth(verdict);
        let facts = [
            (OnChainFactKind::Holder, evidence.get("holder").is_some_and(Value::is_null)),
            (OnChainFactKind::Expiry, expiry.is_none() && never_expires),
            (OnChainFactKind::Records, answer != "records"),
        ];
        Some(Self {
            holder: text("holder"),
            unreadable,
            resolver: text("resolver"),
            expiry,
            absent: facts.into_iter().filter(|(_, is_absent)| *is_absent).map(|(fact, _)| fact).collect(),
            addresses: parse_records(&evidence["addresses"]),
            endpoints: parse_records(&evidence["endpoints"]),
        })
    }

    /// The value of a fact, or that it does not exist; `None` if it was not read.
    pub(super) fn fact_value(&self, fact: OnChainFactKind) -> Option<Option<&str>> {
        let value = match fact {
            OnChainFactKind::Holder => &self.holder,
            OnChainFactKind::Expiry => &self.expiry,
            OnChainFactKind::Records => &None,
        };
        (value.is_some() || self.absent.contains(&fact)).then_some(value.as_deref())
    }

    /// Copies a fact that was not read. Returns whether the earlier report has it.
    fn copy_fact_from(&mut self, fact: OnChainFactKind, earlier: &Self) -> bool {
        let (None, Some(known)) = (self.fact_value(fact), earlier.fact_value(fact)) else { return false };
        let known = known.map(str::to_owned);
        if known.is_none() {
            self.absent.push(fact);
        }
        match fact {
            OnChainFactKind::Holder => self.holder = known,
            OnChainFactKind::Expiry => self.expiry = known,
            OnChainFactKind::Records => {}
        }
        true
    }

    /// Whether the chain proves that the name has no records.
    pub(super) fn has_no_records(&self) -> bool {
        self.absent.contains(&OnChainFactKind::Records)
    }

    /// The value of a record, or that it is not set; `None` if it was not read.
    pub(super) fn record_value<'r>(&self, records: &'r RecordsByKey, key: &str) -> Option<Option<&'r str>> {
        let absent = || self.has_no_records().then_some(None);
        records.get(key).map(Option::as_deref).or_else(absent)
    }

    /// Copies the facts that could not be read from an earlier report, and returns their members. Holder and expiry are
    /// not copied if the name has migrated since, because they are stale.
    pub(super) fn copy_missing_from(&mut self, earlier: &Self) -> Vec<&'static str> {
        let has_records = !self.has_no_records();
        let is_readable = self.unreadable.is_none();
        let taken = [
            ("on_chain.holder", is_readable && self.copy_fact_from(OnChainFactKind::Holder, earlier)),
            ("on_chain.expiry", is_readable && self.copy_fact_from(OnChainFactKind::Expiry, earlier)),
            ("on_chain.addresses", has_records && copy_missing_records(&mut self.addresses, &earlier.addresses)),
            ("on_chain.endpoints", has_records && copy_missing_records(&mut self.endpoints, &earlier.endpoints)),
        ];
        taken.into_iter().filter(|(_, taken)| *taken).map(|(member, _)| member).collect()
    }
}

/// Whether the name is registered at the `.eth` registrar.
fn is_second_level_eth(verdict: &Verdict) -> bool {
    let label = verdict.name.normalized.as_deref().and_then(|name| name.strip_suffix(".eth"));
    label.is_some_and(|label| !label.contains('.'))
}

/// Copies records that were not read. Returns whether there were any.
fn copy_missing_records(now: &mut RecordsByKey, earlier: &RecordsByKey) -> bool {
    let missing: Vec<_> = earlier.iter().filter(|(key, _)| !now.contains_key(*key)).collect();
    let room = MAX_KEPT.saturating_sub(now.len());
    let taken = missing.into_iter().take(room).map(|(key, value)| (key.clone(), value.clone()));
    let before = now.len();
    now.extend(taken);
    now.len() > before
}

/// The records that were read. An unusable one is kept as its JSON text.
fn parse_records(records: &Value) -> RecordsByKey {
    let read = records.as_object().into_iter().flatten().filter(|(_, value)| value.get("error").is_none());
    let shown = |value: &Value| value.as_str().map_or_else(|| excerpt_text(&value.to_string()), excerpt_text);
    let value = |value: &Value| (!value.is_null()).then(|| shown(value));
    read.take(MAX_KEPT).map(|(key, record)| (key.clone(), value(record))).collect()
}

/// Copies a missing value. Returns whether there was one.
pub(super) fn copy_missing_value<T: Clone>(now: &mut Option<T>, earlier: &Option<T>) -> bool {
    if now.is_some() {
        return false;
    }
    now.clone_from(earlier);
    now.is_some()
}
