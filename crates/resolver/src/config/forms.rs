//! The written forms of composite values: blocks, endpoints, gateways and manifests.

/// A block: a tag, or a number with or without quotes.
pub(super) mod block {
    use std::fmt;

    use serde::de::{self, Deserializer, Visitor};
    use serde::{Deserialize, Serializer};

    use crate::config::BlockSelector;

    pub(in crate::config) fn serialize<S: Serializer>(value: &Option<BlockSelector>, s: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(block) => s.collect_str(block),
            None => s.serialize_none(),
        }
    }

    pub(in crate::config) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<BlockSelector>, D::Error> {
        BlockForm::deserialize(d).map(|form| Some(form.0))
    }

    struct BlockForm(BlockSelector);

    impl<'de> Deserialize<'de> for BlockForm {
        fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
            struct Block;

            impl Visitor<'_> for Block {
                type Value = BlockForm;

                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("finalized, safe, latest or a block number")
                }

                fn visit_i64<E: de::Error>(self, number: i64) -> Result<BlockForm, E> {
                    let number =
                        number.try_into().map_err(|_| E::invalid_value(de::Unexpected::Signed(number), &self))?;
                    Ok(BlockForm(BlockSelector::Number(number)))
                }

                fn visit_u64<E: de::Error>(self, number: u64) -> Result<BlockForm, E> {
                    Ok(BlockForm(BlockSelector::Number(number)))
                }

                fn visit_str<E: de::Error>(self, text: &str) -> Result<BlockForm, E> {
                    text.parse().map(BlockForm).map_err(E::custom)
                }
            }

            d.deserialize_any(Block)
        }
    }
}

/// Endpoints and gateways: each is a URL or a table.
pub(super) mod origins {
    use std::fmt;
    use std::marker::PhantomData;

    use serde::de::{self, Deserializer, MapAccess, Visitor};
    use serde::ser::SerializeMap as _;
    use serde::{Deserialize, Serialize, Serializer};

    use crate::config::value::Origin;
    use crate::config::{BeaconEndpoint, Endpoint, Gateway};

    pub(in crate::config) fn serialize<T: Written, S: Serializer>(
        value: &Option<Vec<T>>,
        s: S,
    ) -> Result<S::Ok, S::Error> {
        s.collect_seq(value.iter().flatten().map(Shown))
    }

    pub(in crate::config) fn deserialize<'de, T: Written, D: Deserializer<'de>>(
        d: D,
    ) -> Result<Option<Vec<T>>, D::Error> {
        let items = Vec::<OriginForm<T>>::deserialize(d)?;
        Ok(Some(items.into_iter().map(|item| item.0).collect()))
    }

    /// An origin, written as a table.
    struct Shown<'t, T>(&'t T);

    impl<T: Written> Serialize for Shown<'_, T> {
        fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
            let origin = self.0.origin();
            let mut map = s.serialize_map(None)?;
            map.serialize_entry("url", &origin.url)?;
            map.serialize_entry("label", &origin.label)?;
            if let Some(own) = origin.own {
                map.serialize_entry("own", &own)?;
            }
            if let Some(operator) = &origin.operator {
                map.serialize_entry("operator", operator)?;
            }
            map.end()
        }
    }

    /// An endpoint or gateway: a URL or a table.
    struct OriginForm<T>(T);

    /// The table of an origin: `url` and optional keys.
    pub(in crate::config) trait Written: TryFrom<Origin, Error = String> {
        type Table: for<'de> Deserialize<'de> + Into<Origin>;

        fn origin(&self) -> Origin;
    }

    impl Written for Endpoint {
        type Table = EndpointTable;

        fn origin(&self) -> Origin {
            let Self { url, label, own, operator } = self.clone();
            Origin { url: url.into(), label: Some(label), own: Some(own), operator: Some(operator) }
        }
    }

    impl Written for Gateway {
        type Table = GatewayTable;

        fn origin(&self) -> Origin {
            let Self { url, label, own } = self.clone();
            Origin { url: url.into(), label: Some(label), own: Some(own), operator: None }
        }
    }

    impl Written for BeaconEndpoint {
        type Table = BeaconTable;

        fn origin(&self) -> Origin {
            let Self { url, label } = self.clone();
            Origin { url: url.into(), label: Some(label), own: None, operator: None }
        }
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(in crate::config) struct EndpointTable {
        url: String,
        label: Option<String>,
        own: Option<bool>,
        operator: Option<String>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(in crate::config) struct GatewayTable {
        url: String,
        label: Option<String>,
        own: Option<bool>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(in crate::config) struct BeaconTable {
        url: String,
        label: Option<String>,
    }

    impl From<BeaconTable> for Origin {
        fn from(table: BeaconTable) -> Self {
            let BeaconTable { url, label } = table;
            Self { url, label, own: None, operator: None }
        }
    }

    impl From<EndpointTable> for Origin {
        fn from(table: EndpointTable) -> Self {
            let EndpointTable { url, label, own, operator } = table;
            Self { url, label, own, operator }
        }
    }

    impl From<GatewayTable> for Origin {
        fn from(table: GatewayTable) -> Self {
            let GatewayTable { url, label, own } = table;
            Self { url, label, own, operator: None }
        }
    }

    impl<'de, T: Written> Deserialize<'de> for OriginForm<T> {
        fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
            d.deserialize_any(OriginVisitor(PhantomData))
        }
    }

    struct OriginVisitor<T>(PhantomData<T>);

    impl<'de, T: Written> Visitor<'de> for OriginVisitor<T> {
        type Value = OriginForm<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an URL, or a table with url, label and own")
        }

        fn visit_str<E: de::Error>(self, url: &str) -> Result<Self::Value, E> {
            Origin::from(url).try_into().map(OriginForm).map_err(E::custom)
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            let table = T::Table::deserialize(de::value::MapAccessDeserializer::new(map))?;
            let origin: Origin = table.into();
            origin.try_into().map(OriginForm).map_err(de::Error::custom)
        }
    }
}

/// Manifests: each has `file`, or `url` and `digest`.
pub(super) mod manifests {
    use std::path::PathBuf;

    use serde::de::{self, Deserializer};
    use serde::ser::SerializeMap as _;
    use serde::{Deserialize, Serialize, Serializer};

    use crate::config::ManifestSource;
    use crate::config::value::parse_digest;

    pub(in crate::config) fn serialize<S: Serializer>(
        value: &Option<Vec<ManifestSource>>,
        s: S,
    ) -> Result<S::Ok, S::Error> {
        s.collect_seq(value.iter().flatten().map(Shown))
    }

    pub(in crate::config) fn deserialize<'de, D: Deserializer<'de>>(
        d: D,
    ) -> Result<Option<Vec<ManifestSource>>, D::Error> {
        let items = Vec::<ManifestForm>::deserialize(d)?;
        Ok(Some(items.into_iter().map(|item| item.0).collect()))
    }

    struct Shown<'m>(&'m ManifestSource);

    impl Serialize for Shown<'_> {
        fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
            let mut map = s.serialize_map(None)?;
            match self.0 {
                ManifestSource::File(path) => map.serialize_entry("file", path)?,
                ManifestSource::Url { url, digest } => {
                    map.serialize_entry("url", url.as_str())?;
                    map.serialize_entry("digest", digest)?;
                }
            }
            map.end()
        }
    }

    struct ManifestForm(ManifestSource);

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct ManifestTable {
        file: Option<PathBuf>,
        url: Option<String>,
        digest: Option<String>,
    }

    impl<'de> Deserialize<'de> for ManifestForm {
        fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
            match ManifestTable::deserialize(d)? {
                ManifestTable { file: Some(path), url: None, digest: None } => Ok(Self(ManifestSource::File(path))),
                ManifestTable { file: None, url: Some(url), digest: Some(digest) } => {
                    let digest = parse_digest(&digest).map_err(de::Error::custom)?;
                    let url = url::Url::parse(&url).ok().filter(|u| u.scheme() == "https");
                    let url = url.ok_or_else(|| de::Error::custom("expected url to be an https URL"))?;
                    Ok(Self(ManifestSource::Url { url, digest }))
                }
                _ => Err(de::Error::custom("expected file alone, or url with digest")),
            }
        }
    }
}
