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
    /// Who holds the name.
    pub holder: Option<String>,
    /// Which contract answered for its records.
    pub resolver: Option<String>,
    /// When it expires, RFC 3339; absent for a name that does not, or whose expiry cannot be read.
    pub expiry: Option<String>,
    /// Its addresses, by coin type.
    pub addresses: BTreeMap<String, String>,
    /// Where it is to be called, by the key of the record.
    pub endpoints: BTreeMap<String, String>,
}

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
            addresses: published(&evidence["addresses"]),
            endpoints: published(&evidence["endpoints"]),
        })
    }
}

/// The records of an object that are set. One that cannot be used stands as its JSON.
fn published(records: &Value) -> BTreeMap<String, String> {
    let set = records.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    let shown = |value: &Value| value.as_str().map_or_else(|| excerpt(&value.to_string()), excerpt);
    set.take(MAX_KEPT).map(|(key, value)| (key.clone(), shown(value))).collect()
}
