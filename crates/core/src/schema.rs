//! JSON Schemas (2020-12), generated from the types that documents are deserialized into or serialized from.

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform as _};
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// The schema for deserializing a `T`. It contains no references, so that it can be embedded in another document.
pub fn deserialization_schema<T: JsonSchema>() -> Value {
    generate_schema::<T>(SchemaSettings::draft2020_12().for_deserialize())
}

/// The schema for a serialized `T`. It contains no references.
pub fn serialization_schema<T: JsonSchema>() -> Value {
    generate_schema::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn generate_schema<T: JsonSchema>(mut settings: SchemaSettings) -> Value {
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    RecursiveTransform(remove_names_and_defaults).transform(&mut schema);
    schema.to_value()
}

/// Removes the names of Rust types, which mean nothing to a client. Removes defaults too, because stating a default
/// explicitly may exclude another member.
fn remove_names_and_defaults(schema: &mut Schema) {
    schema.remove("title");
    schema.remove("default");
}
