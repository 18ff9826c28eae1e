//! Macros and types that declare each configuration key once: its type, written form, default and position.
//!
//! From the keys of one table, [`table`] generates the effective values (`…Config`), the values of one source
//! (`…Layer`), and the conversions between the two. `None` in a layer leaves the value of the layer below unchanged.
//! [`One`], [`OrNone`] and [`Many`] are written forms of values for `#[serde(with = …)]`.

use std::marker::PhantomData;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

/// The keys of a table: `name: Type = default;`, with serde attributes in brackets before the semicolon.
macro_rules! table {
    (
        $(#[$config_meta:meta])* config $config:ident;
        $(#[$layer_meta:meta])* layer $layer:ident;
        $( $(#[$doc:meta])* $key:ident: $type:ty = $default:expr $(, [$($serde:tt)+])?; )*
    ) => {
        $(#[$config_meta])*
        pub struct $config {
            $( $(#[$doc])* pub $key: $type, )*
        }

        impl Default for $config {
            fn default() -> Self {
                Self { $( $key: $default, )* }
            }
        }

        $(#[$layer_meta])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
        pub struct $layer {
            $(
                $(#[$doc])*
                #[serde(skip_serializing_if = "Option::is_none" $(, $($serde)+)?)]
                pub $key: Option<$type>,
            )*
        }

        impl $layer {
            /// Applies this layer to the values below it.
            pub(super) fn lay(self, over: &mut $config) {
                $( if let Some(value) = self.$key { over.$key = value; } )*
            }

            /// The layer that turns any configuration into `config`.
            pub(super) fn of(config: &$config) -> Self {
                Self { $( $key: Some(config.$key.clone()), )* }
            }
        }

        impl $crate::config::paths::EachPath for $layer {
            fn each_path(&mut self, change: &mut dyn FnMut(&mut std::path::PathBuf)) {
                $( $crate::config::paths::EachPath::each_path(&mut self.$key, change); )*
            }
        }
    };
}

pub(super) use table;

/// A value that is written as text.
pub(super) trait Form {
    /// The value.
    type Value;

    /// Parses the text. The error states what was expected.
    fn read(text: &str) -> Result<Self::Value, String>;

    /// Formats the value.
    fn write(value: &Self::Value) -> String;
}

/// Declares a [`Form`] from its value type and its functions to parse and format.
macro_rules! forms {
    ($($name:ident($type:ty) = $read:expr, $write:expr;)*) => {$(
        pub(super) enum $name {}

        impl $crate::config::keys::Form for $name {
            type Value = $type;

            fn read(text: &str) -> Result<$type, String> {
                $read(text)
            }

            fn write(value: &$type) -> String {
                $write(value)
            }
        }
    )*};
}

pub(super) use forms;

/// A key with one value.
pub(super) struct One<F>(PhantomData<F>);

impl<F: Form> One<F> {
    pub(super) fn serialize<S: Serializer>(value: &Option<F::Value>, s: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => s.serialize_str(&F::write(value)),
            None => s.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<F::Value>, D::Error> {
        let text = String::deserialize(d)?;
        F::read(&text).map(Some).map_err(D::Error::custom)
    }
}

/// A key with one value, or with an empty text for no value.
pub(super) struct OrNone<F>(PhantomData<F>);

impl<F: Form> OrNone<F> {
    pub(super) fn serialize<S: Serializer>(value: &Option<Option<F::Value>>, s: S) -> Result<S::Ok, S::Error> {
        let value = value.as_ref().and_then(Option::as_ref);
        s.serialize_str(&value.map(F::write).unwrap_or_default())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Option<F::Value>>, D::Error> {
        let text = String::deserialize(d)?;
        if text.is_empty() {
            return Ok(Some(None));
        }
        F::read(&text).map(|value| Some(Some(value))).map_err(D::Error::custom)
    }
}

/// A key with a list of values.
pub(super) struct Many<F>(PhantomData<F>);

impl<F: Form> Many<F> {
    pub(super) fn serialize<S: Serializer>(values: &[F::Value], s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(values.iter().map(F::write))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<F::Value>, D::Error> {
        let items = Vec::<Item<F>>::deserialize(d)?;
        Ok(items.into_iter().map(|item| item.0).collect())
    }
}

/// An item of a list. It is deserialized separately, so that an error names its line.
struct Item<F: Form>(F::Value);

impl<'de, F: Form> Deserialize<'de> for Item<F> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        F::read(&text).map(Self).map_err(D::Error::custom)
    }
}
