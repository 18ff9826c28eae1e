//! Values that the configuration writes as text, for `#[serde(with = …)]`.

use std::path::PathBuf;
use std::time::Duration;

use alloy_primitives::{Address, B256};
use clresolve_core::name::EnsName;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::value::{
    BlockHeaderProofMode, ChainProofMode, parse_address, parse_block_hash, parse_duration, parse_profile, parse_world,
};
use super::{ConnectToRule, HedgeDelay, HostPort, ListenAddress, ProofGrade, PublicBaseUrl, SocketPath};

/// A value that is written as text.
pub(super) trait TextConfigValue: Sized {
    /// Parses the text. The error states what was expected.
    fn parse_text(text: &str) -> Result<Self, String>;

    /// Writes the value so that it can be parsed again. Fails for a path that is not UTF-8.
    fn serialize_text<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error>;
}

/// Implements [`TextConfigValue`] through `FromStr` and `Display`.
macro_rules! text_as_displayed {
    ($($type:ty),* $(,)?) => {$(
        impl TextConfigValue for $type {
            fn parse_text(text: &str) -> Result<Self, String> {
                text.parse().map_err(|error| format!("{error}"))
            }

            fn serialize_text<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }
    )*};
}

text_as_displayed!(
    PublicBaseUrl,
    ConnectToRule,
    BlockHeaderProofMode,
    HedgeDelay,
    ListenAddress,
    HostPort,
    ChainProofMode,
    SocketPath,
    String
);

impl TextConfigValue for Address {
    fn parse_text(text: &str) -> Result<Self, String> {
        parse_address(text)
    }

    fn serialize_text<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl TextConfigValue for B256 {
    fn parse_text(text: &str) -> Result<Self, String> {
        parse_block_hash(text)
    }

    fn serialize_text<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl TextConfigValue for Duration {
    fn parse_text(text: &str) -> Result<Self, String> {
        parse_duration(text)
    }

    fn serialize_text<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(&humantime::format_duration(*self))
    }
}

impl TextConfigValue for ProofGrade {
    fn parse_text(text: &str) -> Result<Self, String> {
        let grade = serde::de::value::StrDeserializer::<serde::de::value::Error>::new(text);
        Self::deserialize(grade).map_err(|error| error.to_string())
    }

    fn serialize_text<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.serialize(s)
    }
}

impl TextConfigValue for PathBuf {
    fn parse_text(text: &str) -> Result<Self, String> {
        Ok(Self::from(text))
    }

    fn serialize_text<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.serialize(s)
    }
}

/// A value in its written form.
struct TextConfigValueRef<'v, T>(&'v T);

impl<T: TextConfigValue> Serialize for TextConfigValueRef<'_, T> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.0.serialize_text(s)
    }
}

pub(super) fn serialize<T: TextConfigValue, S: Serializer>(value: &T, s: S) -> Result<S::Ok, S::Error> {
    value.serialize_text(s)
}

pub(super) fn deserialize<'de, T: TextConfigValue, D: Deserializer<'de>>(d: D) -> Result<T, D::Error> {
    deserialize_checked(d, T::parse_text)
}

/// Reads text with `parse`, whose error states what was expected.
pub(super) fn deserialize_checked<'de, T, D: Deserializer<'de>>(
    d: D,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    parse(&String::deserialize(d)?).map_err(D::Error::custom)
}

/// Reads the name of a network.
pub(super) fn deserialize_world<'de, D: Deserializer<'de>>(d: D) -> Result<String, D::Error> {
    deserialize_checked(d, parse_world)
}

/// Reads the identifier of a profile.
pub(super) fn deserialize_profile<'de, D: Deserializer<'de>>(d: D) -> Result<String, D::Error> {
    deserialize_checked(d, parse_profile)
}

/// Reads names of owners into their normal forms.
pub(super) fn deserialize_owners<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<String>, D::Error> {
    let normal = |owner: &String| EnsName::parse(owner).map(|name| name.as_str().to_owned());
    Vec::<String>::deserialize(d)?.iter().map(normal).collect::<Result<_, _>>().map_err(D::Error::custom)
}

/// A key that is absent if it has no value.
pub(super) mod optional {
    use serde::{Deserializer, Serializer};

    use super::{TextConfigValue, TextConfigValueRef};

    pub(in crate::config) fn serialize<T: TextConfigValue, S: Serializer>(
        value: &Option<T>,
        s: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => s.serialize_some(&TextConfigValueRef(value)),
            None => s.serialize_none(),
        }
    }

    pub(in crate::config) fn deserialize<'de, T: TextConfigValue, D: Deserializer<'de>>(
        d: D,
    ) -> Result<Option<T>, D::Error> {
        super::deserialize(d).map(Some)
    }
}

/// A key that is empty if it has no value.
pub(super) mod or_empty {
    use serde::{Deserializer, Serializer};

    use super::{TextConfigValue, deserialize_checked};

    pub(in crate::config) fn serialize<T: TextConfigValue, S: Serializer>(
        value: &Option<T>,
        s: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => value.serialize_text(s),
            None => s.serialize_str(""),
        }
    }

    pub(in crate::config) fn deserialize<'de, T: TextConfigValue, D: Deserializer<'de>>(
        d: D,
    ) -> Result<Option<T>, D::Error> {
        deserialize_unless_empty(d, T::parse_text)
    }

    /// Reads text with `parse`, unless it is empty.
    pub(in crate::config) fn deserialize_unless_empty<'de, T, D: Deserializer<'de>>(
        d: D,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, D::Error> {
        deserialize_checked(d, |text| if text.is_empty() { Ok(None) } else { parse(text).map(Some) })
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

    use super::{TextConfigValue, TextConfigValueRef};

    pub(in crate::config) fn serialize<T: TextConfigValue, S: Serializer>(
        values: &[T],
        s: S,
    ) -> Result<S::Ok, S::Error> {
        s.collect_seq(values.iter().map(TextConfigValueRef))
    }

    pub(in crate::config) fn deserialize<'de, T: TextConfigValue, D: Deserializer<'de>>(
        d: D,
    ) -> Result<Vec<T>, D::Error> {
        let items = Vec::<ConfigListItem<T>>::deserialize(d)?;
        Ok(items.into_iter().map(|ConfigListItem(value)| value).collect())
    }

    /// An item of a list. It is deserialized separately, so that an error names its line.
    struct ConfigListItem<T>(T);

    impl<'de, T: TextConfigValue> Deserialize<'de> for ConfigListItem<T> {
        fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
            super::deserialize(d).map(Self)
        }
    }
}
