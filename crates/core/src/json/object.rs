//! Deserializes records from JSON objects only, never from arrays.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Deserializes an object as `T`.
///
/// # Errors
/// The text is not JSON, it is not an object, or the object does not fit `T`.
pub fn deserialize_object<'de, T: Deserialize<'de>>(text: &'de [u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(text).map(|ObjectOnlyValue(record)| record)
}

/// A record deserialized from an object. Serde alone would also accept an array, whose items would become the fields in
/// declaration order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectOnlyValue<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ObjectOnlyValue<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if crate::mutant!("lists-are-records") {
            return T::deserialize(deserializer).map(ObjectOnlyValue);
        }
        deserializer.deserialize_map(ObjectOnlyVisitor(PhantomData))
    }
}

struct ObjectOnlyVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectOnlyVisitor<T> {
    type Value = ObjectOnlyValue<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<ObjectOnlyValue<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members)).map(ObjectOnlyValue)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Pair<'a> {
        left: u8,
        #[serde(borrow)]
        right: Option<&'a RawValue>,
    }

    #[test]
    fn a_record_is_an_object_and_no_list() {
        let pair: Pair<'_> = deserialize_object(br#"{"left": 1, "right": {"a": 1.0}}"#).expect("an object");
        assert_eq!((pair.left, pair.right.map(RawValue::get)), (1, Some(r#"{"a": 1.0}"#)));
        for other in ["[1, {}]", "[1]", "1", "null", "", r#"{"left": 1, "left": 2}"#, r#"{"left": 1, "up": 2}"#] {
            assert!(deserialize_object::<Pair<'_>>(other.as_bytes()).is_err(), "{other}");
        }
    }
}
