//! The Agent-Card as a document: strict JSON with accessors for the members that rules use.
//!
//! An [`AgentCard`] is known only to be one JSON object. [`crate::check`] judges the presence and content of its
//! members. Every accessor returns `None` for a member that is missing or of another type.

use std::sync::OnceLock;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use clresolve_core::json::{self, JsonError, JsonLimits, pointer};
use clresolve_core::reason::Reason;

/// One JSON object as the publisher served it.
#[derive(Clone, Debug)]
pub struct AgentCard {
    document: Value,
    /// Forbidden content in the card's texts. No profile changes the result, and the search is the most expensive one
    /// in a card, so it is cached.
    texts: OnceLock<Vec<Reason>>,
}

impl PartialEq for AgentCard {
    fn eq(&self, other: &Self) -> bool {
        self.document == other.document
    }
}

impl AgentCard {
    /// Parses the bytes of a card as received.
    ///
    /// # Errors
    /// [`JsonError`] unless the bytes are one strict JSON object within [`JsonLimits::CARD`].
    /// [`JsonError::to_card_reason`] converts the error into a reason.
    pub fn parse(bytes: &[u8]) -> Result<Self, JsonError> {
        let document = json::parse_strict_json(bytes, JsonLimits::CARD)?;
        Ok(Self { document, texts: OnceLock::new() })
    }

    /// A previously parsed card of which some members were removed.
    pub fn from_partial_document(document: Value) -> Self {
        Self { document, texts: OnceLock::new() }
    }

    /// The JSON document.
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// The result of `search` over the document; it runs only once.
    pub(crate) fn cached_text_findings(&self, search: impl FnOnce(&Value) -> Vec<Reason>) -> &[Reason] {
        self.texts.get_or_init(|| search(&self.document))
    }

    /// The top-level members.
    pub fn members(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.document.as_object().into_iter().flat_map(Map::iter)
    }

    /// The top-level member with this name, of any type.
    pub fn get(&self, member: &str) -> Option<&Value> {
        self.document.get(member)
    }

    /// The items of the top-level list with this name.
    pub fn items(&self, member: &str) -> impl Iterator<Item = &Value> {
        self.get(member).and_then(Value::as_array).into_iter().flatten()
    }

    /// The value at a JSON Pointer, of any type.
    pub fn value_at(&self, pointer: &str) -> Option<&Value> {
        pointer::find_value_at_pointer(&self.document, pointer)
    }

    /// The string at a JSON Pointer, unless it is blank.
    pub fn text_at(&self, pointer: &str) -> Option<&str> {
        self.value_at(pointer).and_then(Value::as_str).filter(|text| !text.trim().is_empty())
    }

    /// The text of `id`.
    pub fn id(&self) -> Option<&str> {
        self.text_at("/id")
    }

    /// The text of `ens`.
    pub fn ens(&self) -> Option<&str> {
        self.text_at("/ens")
    }

    /// The text of `owner`.
    pub fn owner(&self) -> Option<&str> {
        self.text_at("/owner")
    }

    /// The text of `class`.
    pub fn class(&self) -> Option<&str> {
        self.text_at("/class")
    }

    /// The text of `status`.
    pub fn status(&self) -> Option<&str> {
        self.text_at("/status")
    }

    /// The text of `version`.
    pub fn version(&self) -> Option<&str> {
        self.text_at("/version")
    }

    /// The text of `entry`.
    pub fn entry(&self) -> Option<&str> {
        self.text_at("/entry")
    }

    /// The strings of `implements`.
    pub fn verbs(&self) -> impl Iterator<Item = &str> {
        self.strings("implements")
    }

    /// `implements[0]`, if it is a string: the primary verb (CL-11).
    pub fn primary_verb(&self) -> Option<&str> {
        self.value_at("/implements/0").and_then(Value::as_str)
    }

    /// The strings of `networks`.
    pub fn networks(&self) -> impl Iterator<Item = &str> {
        self.strings("networks")
    }

    /// The text of `schemas.request` or `schemas.receipt`.
    pub fn schema_location(&self, side: SchemaRole) -> Option<&str> {
        self.text_at(side.schema_pointer())
    }

    /// The text of `schemas_mirror.request` or `schemas_mirror.receipt`.
    pub fn schema_mirror_location(&self, side: SchemaRole) -> Option<&str> {
        self.text_at(side.mirror_pointer())
    }

    fn strings(&self, member: &str) -> impl Iterator<Item = &str> {
        let items = self.get(member).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        items.iter().filter_map(Value::as_str)
    }
}

/// Parses an RFC 3339 date-time. A leap second counts as the second before it, and digits below the nanosecond are
/// dropped.
pub fn parse_instant(text: &str) -> Option<Timestamp> {
    const SECONDS: usize = "2025-11-22T00:00:00".len();
    let shape = |text: &str, shape: &str| {
        text.len() == shape.len()
            && text.bytes().zip(shape.bytes()).all(|(b, s)| if s == b'0' { b.is_ascii_digit() } else { b == s })
    };
    let normal = text.to_ascii_uppercase();
    let (seconds, rest) = normal.split_at_checked(SECONDS)?;
    let zone_at = rest.find(['Z', '+', '-'])?;
    let (fraction, zone) = rest.split_at(zone_at);
    let fraction_fits = match fraction.strip_prefix('.') {
        Some(digits) => !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()),
        None => fraction.is_empty(),
    };
    let zone_fits =
        zone == "Z" || (shape(&zone.replace('-', "+"), "+00:00") && zone[1..3] < *"24" && zone[4..6] < *"60");
    if !shape(seconds, "0000-00-00T00:00:00") || !fraction_fits || !zone_fits {
        return None;
    }
    let fraction = &fraction[..fraction.len().min(".123456789".len())];
    format!("{seconds}{fraction}{zone}").parse().ok()
}

/// The two schemas of a verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SchemaRole {
    /// The message that a caller sends.
    Request,
    /// The message that the agent returns.
    Receipt,
}

impl SchemaRole {
    /// Both sides.
    pub const ALL: [Self; 2] = [Self::Request, Self::Receipt];

    /// JSON Pointer of the canonical location in a card.
    pub const fn schema_pointer(self) -> &'static str {
        match self {
            Self::Request => "/schemas/request",
            Self::Receipt => "/schemas/receipt",
        }
    }

    /// JSON Pointer of the mirror in a card.
    pub const fn mirror_pointer(self) -> &'static str {
        match self {
            Self::Request => "/schemas_mirror/request",
            Self::Receipt => "/schemas_mirror/receipt",
        }
    }
}

#[cfg(test)]
mod tests {
    use clresolve_core::reason::ReasonCode;

    use super::*;

    #[test]
    fn the_texts_of_a_card_are_searched_once() {
        let card = AgentCard::parse(b"{}").expect("an object");
        let searches = std::cell::Cell::new(0);
        for _ in 0..2 {
            let found = card.cached_text_findings(|_| {
                searches.set(searches.get() + 1);
                vec![Reason::new(ReasonCode::SecretInCard)]
            });
            assert_eq!(found.len(), 1);
        }
        assert_eq!(searches.get(), 1);
    }

    #[test]
    fn accessors_return_none_for_missing_blank_or_mistyped_members() {
        let card =
            AgentCard::parse(br#"{"id":"a","ens":" ","owner":5,"implements":["x",1,"y"],"schemas":{"request":"u"}}"#)
                .expect("strict JSON");
        assert_eq!((card.id(), card.ens(), card.owner(), card.class()), (Some("a"), None, None, None));
        assert_eq!(card.verbs().collect::<Vec<_>>(), ["x", "y"]);
        assert_eq!(card.primary_verb(), Some("x"));
        assert_eq!(
            (card.schema_location(SchemaRole::Request), card.schema_location(SchemaRole::Receipt)),
            (Some("u"), None)
        );
    }
}
