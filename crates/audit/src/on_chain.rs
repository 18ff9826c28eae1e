//! The facts about a name on the chain that an audit keeps besides its verdict: holder, resolver, expiry, and
//! addresses for payments.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use clresolve_core::reason::Step;
use clresolve_core::text::excerpt;
use clresolve_verdict::verdict::Verdict;

/// Maximum number of addresses and of endpoints kept: a name has one for each configured network.
const MAX_KEPT: usize = 32;

/// A name's state on the chain, at the block of its row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnChain {
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
    pub absent: Vec<Fact>,
    /// Addresses by coin type.
    pub addresses: ReadRecords,
    /// Endpoints by the key of the record.
    pub endpoints: ReadRecords,
}

/// A fact about a name that may be absent on the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fact {
    /// The holder.
    Holder,
    /// The expiry.
    Expiry,
    /// All records: the chain proves that the name has no resolver.
    Records,
}

/// Records by key. A record without a value was read and is not set. A missing key was not requested, or could not be
/// read.
pub(super) type ReadRecords = BTreeMap<String, Option<String>>;

impl OnChain {
    /// The facts in a verdict's evidence; `None` if the records were not read.
    pub fn of(verdict: &Verdict) -> Option<Self> {
        let evidence = &verdict.steps.iter().find(|report| report.step == Step::Records)?.evidence;
        let answer = evidence.get("answer")?;
        let text = |member: &str| evidence[member].as_str().map(excerpt);
        let expiry = text("expiry").filter(|expiry| expiry.parse::<jiff::Timestamp>().is_ok());
        let unreadable = evidence["holder"]["unreadable"].as_str().map(excerpt);
        // `expiry` exists only if the registry's holder was read. Every second-level .eth name has an expiry at its
        // registrar; other names expire only if they are wrapped, which was read too.
        let never_expires = unreadable.is_none() && evidence.get("expiry").is_some() && !is_second_level_eth(verdict);
        let facts = [
            (Fact::Holder, evidence.get("holder").is_some_and(Value::is_null)),
            (Fact::Expiry, expiry.is_none() && never_expires),
            (Fact::Records, answer != "records"),
        ];
        Some(Self {
            holder: text("holder"),
            unreadable,
            resolver: text("resolver"),
            expiry,
            absent: facts.into_iter().filter(|(_, is_absent)| *is_absent).map(|(fact, _)| fact).collect(),
            addresses: read(&evidence["addresses"]),
            endpoints: read(&evidence["endpoints"]),
        })
    }

    /// The value of a fact, or that it does not exist; `None` if it was not read.
    pub(super) fn read(&self, fact: Fact) -> Option<Option<&str>> {
        let value = match fact {
            Fact::Holder => &self.holder,
            Fact::Expiry => &self.expiry,
            Fact::Records => &None,
        };
        (value.is_some() || self.absent.contains(&fact)).then_some(value.as_deref())
    }

    /// Copies a fact that was not read. Returns whether the earlier report has it.
    fn take_fact(&mut self, fact: Fact, earlier: &Self) -> bool {
        let (None, Some(known)) = (self.read(fact), earlier.read(fact)) else { return false };
        let known = known.map(str::to_owned);
        if known.is_none() {
            self.absent.push(fact);
        }
        match fact {
            Fact::Holder => self.holder = known,
            Fact::Expiry => self.expiry = known,
            Fact::Records => {}
        }
        true
    }

    /// Whether the chain proves that the name has no records.
    pub(super) fn has_no_records(&self) -> bool {
        self.absent.contains(&Fact::Records)
    }

    /// The value of a record, or that it is not set; `None` if it was not read.
    pub(super) fn record<'r>(&self, records: &'r ReadRecords, key: &str) -> Option<Option<&'r str>> {
        let absent = || self.has_no_records().then_some(None);
        records.get(key).map(Option::as_deref).or_else(absent)
    }

    /// Copies the facts that could not be read from an earlier report, and returns their members. Holder and expiry are
    /// not copied if the name has migrated since, because they are stale.
    pub(super) fn complete_from(&mut self, earlier: &Self) -> Vec<&'static str> {
        let has_records = !self.has_no_records();
        let is_readable = self.unreadable.is_none();
        let taken = [
            ("on_chain.holder", is_readable && self.take_fact(Fact::Holder, earlier)),
            ("on_chain.expiry", is_readable && self.take_fact(Fact::Expiry, earlier)),
            ("on_chain.addresses", has_records && complete(&mut self.addresses, &earlier.addresses)),
            ("on_chain.endpoints", has_records && complete(&mut self.endpoints, &earlier.endpoints)),
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
fn complete(now: &mut ReadRecords, earlier: &ReadRecords) -> bool {
    let missing: Vec<_> = earlier.iter().filter(|(key, _)| !now.contains_key(*key)).collect();
    let room = MAX_KEPT.saturating_sub(now.len());
    let taken = missing.into_iter().take(room).map(|(key, value)| (key.clone(), value.clone()));
    let before = now.len();
    now.extend(taken);
    now.len() > before
}

/// The records that were read. An unusable one is kept as its JSON text.
fn read(records: &Value) -> ReadRecords {
    let read = records.as_object().into_iter().flatten().filter(|(_, value)| value.get("error").is_none());
    let shown = |value: &Value| value.as_str().map_or_else(|| excerpt(&value.to_string()), excerpt);
    let value = |value: &Value| (!value.is_null()).then(|| shown(value));
    read.take(MAX_KEPT).map(|(key, record)| (key.clone(), value(record))).collect()
}

/// Copies a missing value. Returns whether there was one.
pub(super) fn take<T: Clone>(now: &mut Option<T>, earlier: &Option<T>) -> bool {
    if now.is_some() {
        return false;
    }
    now.clone_from(earlier);
    now.is_some()
}
