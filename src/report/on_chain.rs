//! What an audit keeps of a name's place on the chain, beside its verdict: who holds it, who answers for it, until when,
//! and whom it pays.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::reason::Step;
use crate::text::excerpt;
use crate::verdict::Verdict;

/// Most addresses, and most endpoints, that are kept: a name has one for each network of the configuration.
const MAX_KEPT: usize = 32;

/// A name on the chain, at the block of its row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnChain {
    /// Who holds the name; absent where nobody does, or the registry could not be asked.
    pub holder: Option<String>,
    /// Which contract answered for its records.
    pub resolver: Option<String>,
    /// When it expires, RFC 3339; absent for a name that does not, or whose expiry cannot be read.
    pub expiry: Option<String>,
    /// Its addresses, by coin type.
    pub addresses: ReadRecords,
    /// Where it is to be called, by the key of the record.
    pub endpoints: ReadRecords,
}

/// Records by their key. One that was read and is not set has no value; one that was not read, because nobody asked or
/// the reading failed, has no key.
pub(super) type ReadRecords = BTreeMap<String, Option<String>>;

impl OnChain {
    /// Of the records that a verdict rests on; none where they were not read.
    pub fn of(verdict: &Verdict) -> Option<Self> {
        let evidence = &verdict.steps.iter().find(|report| report.step == Step::Records)?.evidence;
        evidence.get("answer")?;
        let text = |member: &str| evidence[member].as_str().map(excerpt);
        Some(Self {
            holder: text("holder"),
            resolver: text("resolver"),
            expiry: text("expiry").filter(|expiry| expiry.parse::<jiff::Timestamp>().is_ok()),
            addresses: read(&evidence["addresses"]),
            endpoints: read(&evidence["endpoints"]),
        })
    }

    /// Takes over what could not be read; whether there was any.
    pub(super) fn complete_from(&mut self, earlier: &Self) -> bool {
        let taken = [
            take(&mut self.holder, &earlier.holder),
            take(&mut self.expiry, &earlier.expiry),
            complete(&mut self.addresses, &earlier.addresses),
            complete(&mut self.endpoints, &earlier.endpoints),
        ];
        taken.contains(&true)
    }
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
