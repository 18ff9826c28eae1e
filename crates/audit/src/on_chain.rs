//! What an audit keeps of a name's place on the chain, beside its verdict: who holds it, who answers for it, until when,
//! and whom it pays.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use clresolve_core::reason::Step;
use clresolve_core::text::excerpt;
use clresolve_verdict::verdict::Verdict;

/// Most addresses, and most endpoints, that are kept: a name has one for each network of the configuration.
const MAX_KEPT: usize = 32;

/// A name on the chain, at the block of its row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnChain {
    /// Who holds the name.
    pub holder: Option<String>,
    /// Why holder and expiry are unknown although the chain was read: the name lives in ENSv2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
    /// Which contract answered for its records.
    pub resolver: Option<String>,
    /// When it expires, RFC 3339.
    pub expiry: Option<String>,
    /// What was read, and is not there: nobody holds the name, it never expires, or no resolver answers for it. Of holder and
    /// expiry the other was not read where it has no value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<Fact>,
    /// Its addresses, by coin type.
    pub addresses: ReadRecords,
    /// Where it is to be called, by the key of the record.
    pub endpoints: ReadRecords,
}

/// A fact about a name that may be absent on the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fact {
    /// Who holds it.
    Holder,
    /// When it expires.
    Expiry,
    /// Every record: the chain proves that no resolver answers for the name.
    Records,
}

/// Records by their key. One that was read and is not set has no value; one that was not read, because nobody asked or
/// the reading failed, has no key.
pub(super) type ReadRecords = BTreeMap<String, Option<String>>;

impl OnChain {
    /// Of the records that a verdict rests on; none where they were not read.
    pub fn of(verdict: &Verdict) -> Option<Self> {
        let evidence = &verdict.steps.iter().find(|report| report.step == Step::Records)?.evidence;
        let answer = evidence.get("answer")?;
        let text = |member: &str| evidence[member].as_str().map(excerpt);
        let expiry = text("expiry").filter(|expiry| expiry.parse::<jiff::Timestamp>().is_ok());
        let unreadable = evidence["holder"]["unreadable"].as_str().map(excerpt);
        // The registry has said who holds the name: without that nothing is read of it. A registrar knows the expiry of
        // each second-level .eth name; others expire if they are wrapped, which was read too.
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

    /// What was read of a fact: its value, or that it is absent.
    pub(super) fn read(&self, fact: Fact) -> Option<Option<&str>> {
        let value = match fact {
            Fact::Holder => &self.holder,
            Fact::Expiry => &self.expiry,
            Fact::Records => &None,
        };
        (value.is_some() || self.absent.contains(&fact)).then_some(value.as_deref())
    }

    /// Takes over a fact that was not read; whether it was known.
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

    /// Whether the chain proves that the name has no record of any kind.
    pub(super) fn has_no_records(&self) -> bool {
        self.absent.contains(&Fact::Records)
    }

    /// What was read of a record: its value, or that it is not set.
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

/// Whether the registrar of `.eth` has the name.
fn is_second_level_eth(verdict: &Verdict) -> bool {
    let label = verdict.name.normalized.as_deref().and_then(|name| name.strip_suffix(".eth"));
    label.is_some_and(|label| !label.contains('.'))
}

/// Takes over the records that were not read; whether there were any.
fn complete(now: &mut ReadRecords, earlier: &ReadRecords) -> bool {
    let missing: Vec<_> = earlier.iter().filter(|(key, _)| !now.contains_key(*key)).collect();
    let room = MAX_KEPT.saturating_sub(now.len());
    let taken = missing.into_iter().take(room).map(|(key, value)| (key.clone(), value.clone()));
    let before = now.len();
    now.extend(taken);
    now.len() > before
}

/// The records of an object that were read. One that cannot be used stands as its JSON.
fn read(records: &Value) -> ReadRecords {
    let read = records.as_object().into_iter().flatten().filter(|(_, value)| value.get("error").is_none());
    let shown = |value: &Value| value.as_str().map_or_else(|| excerpt(&value.to_string()), excerpt);
    let value = |value: &Value| (!value.is_null()).then(|| shown(value));
    read.take(MAX_KEPT).map(|(key, record)| (key.clone(), value(record))).collect()
}

/// Takes over what is missing; whether something was.
pub(super) fn take<T: Clone>(now: &mut Option<T>, earlier: &Option<T>) -> bool {
    if now.is_some() {
        return false;
    }
    now.clone_from(earlier);
    now.is_some()
}
