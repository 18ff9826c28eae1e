//! The table of tools. Each tool has its own file, and none changes any state.

mod check_payment;
mod check_request;
mod explain_reason;
mod find_route;
mod label;
mod tool;
mod verify_agent;
mod verify_receipt;

use std::sync::{Arc, LazyLock};

use clresolve_resolver::cpu_share::CpuJobUrgency;
use rmcp::model::{JsonObject, Tool as Listed, ToolAnnotations};
use serde_json::json;

pub(super) use self::tool::McpTool;

static TOOLS: [&McpTool; 6] = [
    &verify_agent::TOOL,
    &find_route::TOOL,
    &check_request::TOOL,
    &check_payment::TOOL,
    &verify_receipt::TOOL,
    &explain_reason::TOOL,
];

pub(super) fn find_tool(name: &str) -> Option<&'static McpTool> {
    TOOLS.into_iter().find(|tool| tool.name == name)
}

/// The urgency of an unparsed message: that of the most urgent tool whose name occurs in it as a JSON string.
pub(super) fn named_tool_urgency(message: &[u8]) -> CpuJobUrgency {
    let is_named = |tool: &&McpTool| {
        let name = format!("\"{}\"", tool.name);
        message.windows(name.len()).any(|part| part == name.as_bytes())
    };
    let urgent = TOOLS.into_iter().filter(|tool| tool.urgency < CpuJobUrgency::Document);
    urgent.filter(is_named).map(|tool| tool.urgency).min().unwrap_or(CpuJobUrgency::Document)
}

/// Every tool, as listed for a client.
pub(super) fn list_tools() -> Vec<Listed> {
    static LISTED: LazyLock<Vec<Listed>> = LazyLock::new(|| TOOLS.into_iter().map(describe_tool).collect());
    LISTED.clone()
}

fn describe_tool(tool: &McpTool) -> Listed {
    let (members, required) = (tool.arguments)();
    let input = json!({"type": "object", "properties": members, "required": required, "additionalProperties": false});
    let input: JsonObject = input.as_object().cloned().unwrap_or_default();
    let annotations =
        ToolAnnotations::with_title(tool.title).read_only(true).destructive(false).idempotent(true).open_world(true);
    Listed::new(tool.name, tool.description, Arc::new(input))
        .with_title(tool.title)
        .with_raw_output_schema(tool.form.schema())
        .with_annotations(annotations)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_tool_is_read_only_and_has_both_schemas() {
        for tool in list_tools() {
            let name = &tool.name;
            let annotations = tool.annotations.expect("annotations");
            assert_eq!((annotations.read_only_hint, annotations.destructive_hint), (Some(true), Some(false)), "{name}");
            assert_eq!(tool.input_schema["additionalProperties"], false, "{name}");
            let output = Value::Object((*tool.output_schema.expect("a schema")).clone());
            jsonschema::options().build(&output).unwrap_or_else(|error| panic!("{name}: {error}"));
            for reference in references(&output) {
                assert!(output.pointer(reference.trim_start_matches('#')).is_some(), "{name}: {reference}");
            }
        }
    }

    fn references(schema: &Value) -> Vec<&str> {
        match schema {
            Value::Object(members) => members
                .iter()
                .flat_map(|(name, member)| match member {
                    Value::String(target) if name == "$ref" => vec![target.as_str()],
                    member => references(member),
                })
                .collect(),
            Value::Array(items) => items.iter().flat_map(references).collect(),
            _ => Vec::new(),
        }
    }
}
