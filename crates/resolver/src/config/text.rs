//! Values that the configuration writes as text, for `#[serde(with = …)]`.

use std::path::PathBuf;
use std::time::Duration;

use alloy_primitives::{Address, B256};
use clresolve_core::name::EnsName;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::value::{HeaderDemand, ProofDemand, parse_address, parse_duration, parse_hash, parse_profile, parse_world};
use super::{BaseUrl, ConnectTo, Grade, Hedging, ListenAt, OriginSpec, SocketPath};

/// A value that is written as text.
pub(super) trait Text: Sized {
    /// Parses the text. The error states what was expected.
    fn parse_text(text: &str) -> Result<Self, String>;

    /// Writes the value so that it can be parsed again. Fails for a path that is not UTF-8.
    fn write<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error>;
}

/// Implements [`Text`] through `FromStr` and `Display`.
macro_rules! text_as_displayed {
    ($($type:ty),* $(,)?) => {$(
        impl Text for $type {
            fn parse_text(text: &str) -> Result<Self, String> {
                text.parse().map_err(|error| format!("{error}"))
            }

            fn write<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }
    )*};
}

text_as_displayed!(BaseUrl, ConnectTo, HeaderDemand, Hedging, ListenAt, OriginSpec, ProofDemand, SocketPath, String);

impl Text for Address {
    fn parse_text(text: &str) -> Result<Self, String> {
        parse_address(text)
    }

    fn write<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl Text for B256 {
    fn parse_text(text: &str) -> Result<Self, String> {
        parse_hash(text)
    }

    fn write<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl Text for Duration {
    fn parse_text(text: &str) -> Result<Self, String> {
        parse_duration(text)
    }

    fn write<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(&humantime::format_duration(*self))
    }
}

impl Text for Grade {
    fn parse_text(text: &str) -> Result<Self, String> {
        let grade = serde::de::value::StrDeserializer::<serde::de::value::Error>::new(text);
        Self::deserialize(grade).map_err(|error| error.to_string())
    }

    fn write<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.serialize(s)
    }
}

impl Text for PathBuf {
    fn parse_text(text: &str) -> Result<Self, String> {
        Ok(Self::from(text))
    }

    fn write<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.serialize(s)
    }
}

/// A value in its written form.
struct Written<'v, T>(&'v T);

impl<T: Text> Serialize for Written<'_, T> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.0.write(s)
    }
}

pub(super) fn serialize<T: Text, S: Serializer>(value: &T, s: S) -> Result<S::Ok, S::Error> {
    value.write(s)
}

pub(super) fn deserialize<'de, T: Text, D: Deserializer<'de>>(d: D) -> Result<T, D::Error> {
    checked(d, T::parse_text)
}

/// Reads text with `parse`, whose error states what was expected.
pub(super) fn checked<'de, T, D: Deserializer<'de>>(
    d: D,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    parse(&String::deserialize(d)?).map_err(D::Error::custom)
}

/// Reads the name of a network.
pub(super) fn world<'de, D: Deserializer<'de>>(d: D) -> Result<String, D::Error> {
    checked(d, parse_world)
}

/// Reads the identifier of a profile.
pub(super) fn profile<'de, D: Deserializer<'de>>(d: D) -> Result<String, D::Error> {
    checked(d, parse_profile)
}

/// Reads names of owners into their normal forms.
pub(super) fn owners<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<String>, D::Error> {
    let normal = |owner: &String| EnsName::parse(owner).map(|name| name.as_str().to_owned());
    Vec::<String>::deserialize(d)?.iter().map(normal).collect::<Result<_, _>>().map_err(D::Error::custom)
}

/// A key that is absent if it has no value.
pub(super) mod optional {
    use serde::{Deserializer, Serializer};

    use super::{Text, Written};

    pub(in crate::config) fn serialize<T: Text, S: Serializer>(value: &Option<T>, s: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => s.serialize_some(&Written(value)),
            None => s.serialize_none(),
        }
    }

    pub(in crate::config) fn deserialize<'de, T: Text, D: Deserializer<'de>>(d: D) -> Result<Option<T>, D::Error> {
        super::deserialize(d).map(Some)
    }
}

/// A key that is empty if it has no value.
pub(super) mod or_empty {
    use serde::{Deserializer, Serializer};

    use super::{Text, checked};

    pub(in crate::config) fn serialize<T: Text, S: Serializer>(value: &Option<T>, s: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => value.write(s),
            None => s.serialize_str(""),
        }
    }

    pub(in crate::config) fn deserialize<'de, T: Text, D: Deserializer<'de>>(d: D) -> Result<Option<T>, D::Error> {
        read(d, T::parse_text)
    }

    /// Reads text with `parse`, unless it is empty.
    pub(in crate::config) fn read<'de, T, D: Deserializer<'de>>(
        d: D,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, D::Error> {
        checked(d, |text| if text.is_empty() { Ok(None) } else { parse(text).map(Some) })
    }
}

/// A block: a tag, or a number with or without quotes.
pub(super) mod block {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::config::BlockSelector;

    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected finalized, safe, latest or a block number")]
    enum TextOrNumber {
        Number(u64),
        Text(String),
    }

    pub(in crate::config) fn serialize<S: Serializer>(block: &BlockSelector, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(block)
    }

    pub(in crate::config) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<BlockSelector, D::Error> {
        match TextOrNumber::deserialize(d)? {
            TextOrNumber::Number(number) => Ok(BlockSelector::Number(number)),
            TextOrNumber::Text(text) => text.parse().map_err(D::Error::custom),
        }
    }
}

/// A key with a list of values.
pub(super) mod list {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::{Text, Written};

    pub(in crate::config) fn serialize<T: Text, S: Serializer>(values: &[T], s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(values.iter().map(Written))
    }

    pub(in crate::config) fn deserialize<'de, T: Text, D: Deserializer<'de>>(d: D) -> Result<Vec<T>, D::Error> {
        let items = Vec::<Item<T>>::deserialize(d)?;
        Ok(items.into_iter().map(|Item(value)| value).collect())
    }

    /// An item of a list. It is deserialized separately, so that an error names its line.
    struct Item<T>(T);

    impl<'de, T: Text> Deserialize<'de> for Item<T> {
        fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
            super::deserialize(d).map(Self)
        }
    }
}
