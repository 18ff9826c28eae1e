//! How a key of the configuration is stated: once, with its type, its written form, its default and its place.
//!
//! [`table`] makes of the keys of one table what is in force (`…Config`), what one source says of it (`…Layer`), and the
//! way from one to the other. A layer's `None` leaves what is below as it is. [`One`], [`OrNone`] and [`Many`] are the
//! written forms of values, as `#[serde(with = …)]` takes them.

use std::marker::PhantomData;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

/// The keys of a table: `name: Type = default;`, before the semicolon in brackets what serde is to know of the key.
macro_rules! table {
    (
        $(#[$config_meta:meta])* config $config:ident;
        $(#[$layer_meta:meta])* layer $layer:ident;
        $( $(#[$doc:meta])* $key:ident: $type:ty = $default:expr $(, [$($serde:tt)+])?; )*
    ) => {
        $(#[$config_meta])*
        #[non_exhaustive]
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
        #[non_exhaustive]
        pub struct $layer {
            $(
                $(#[$doc])*
                #[serde(skip_serializing_if = "Option::is_none" $(, $($serde)+)?)]
                pub $key: Option<$type>,
            )*
        }

        impl $layer {
            /// Lays what this source says over what is below.
            pub(super) fn lay(self, over: &mut $config) {
                $( if let Some(value) = self.$key { over.$key = value; } )*
            }

            /// The layer that makes `config` out of any other.
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

    /// Reads the text, or says what was expected.
    fn read(text: &str) -> Result<Self::Value, String>;

    /// The text.
    fn write(value: &Self::Value) -> String;
}

/// Names a [`Form`]: its value, and the functions that read and write it.
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

/// A key that holds one value.
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

/// A key that holds one value, or an empty text for no value.
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

/// A key that holds a list.
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

/// An item of a list, so that an error names its line.
struct Item<F: Form>(F::Value);

impl<'de, F: Form> Deserialize<'de> for Item<F> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        F::read(&text).map(Self).map_err(D::Error::custom)
    }
}
