//! JSON Schemas (2020-12), made of the types that a document is read into or written from.

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform as _};
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// What is read as `T`. It holds no references, so that it can stand within another document.
pub fn read_as<T: JsonSchema>() -> Value {
    made::<T>(SchemaSettings::draft2020_12().for_deserialize())
}

/// What is written of a `T`. It holds no references.
pub fn written_of<T: JsonSchema>() -> Value {
    made::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn made<T: JsonSchema>(mut settings: SchemaSettings) -> Value {
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    RecursiveTransform(leave_out).transform(&mut schema);
    schema.to_value()
}

/// Leaves out the names of our types, which say nothing to a client, and defaults: a member that is given as its default
/// may exclude another one.
fn leave_out(schema: &mut Schema) {
    schema.remove("title");
    schema.remove("default");
}
