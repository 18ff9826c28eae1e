//! The schemas under `components` of the OpenAPI document. Most are files in `schemas/`. The schemas of problems, batch
//! lines and resolution events are written here.

use serde_json::{Map, Value, json};

use clresolve_core::reason::{ReasonCode, RefusalCode};
use clresolve_core::state::TrustState;

/// A schema under `components` for a document in responses.
#[derive(Clone, Copy)]
pub(in crate::http) enum OpenApiComponent {
    Check,
    Decision,
    Discovery,
    Event,
    Line,
    Objection,
    Problem,
    Reason,
    Receipt,
    Request,
    /// An event within a step of a resolution.
    Step,
    Verdict,
    /// An event of a resolution's event stream: a step, or the final verdict or problem.
    WalkEvent,
}

impl OpenApiComponent {
    const ALL: [Self; 13] = [
        Self::Check,
        Self::Decision,
        Self::Discovery,
        Self::Event,
        Self::Line,
        Self::Objection,
        Self::Problem,
        Self::Reason,
        Self::Receipt,
        Self::Request,
        Self::Step,
        Self::Verdict,
        Self::WalkEvent,
    ];

    /// A `$ref` to the component.
    pub(in crate::http) fn reference(self) -> Value {
        json!({"$ref": format!("{PLACE}{}", self.name())})
    }

    /// A `$ref` to one of its definitions.
    pub(in crate::http) fn reference_to(self, definition: &str) -> Value {
        json!({"$ref": format!("{PLACE}{}.{definition}", self.name())})
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Check => "Check",
            Self::Decision => "Decision",
            Self::Discovery => "Discovery",
            Self::Event => "Event",
            Self::Line => "Line",
            Self::Objection => "Objection",
            Self::Problem => "Problem",
            Self::Reason => "Reason",
            Self::Receipt => "Receipt",
            Self::Request => "Request",
            Self::Step => "Step",
            Self::Verdict => "Verdict",
            Self::WalkEvent => "WalkEvent",
        }
    }

    fn component_schema(self) -> Value {
        let published = match self {
            Self::Check => include_str!("../../../schemas/check.schema.json"),
            Self::Decision => include_str!("../../../schemas/decision.schema.json"),
            Self::Discovery => include_str!("../../../schemas/discovery.schema.json"),
            Self::Event => include_str!("../../../schemas/event.schema.json"),
            Self::Reason => include_str!("../../../schemas/reason.schema.json"),
            Self::Receipt => include_str!("../../../schemas/receipt.schema.json"),
            Self::Request => include_str!("../../../schemas/request.schema.json"),
            Self::Step => include_str!("../../../schemas/step.schema.json"),
            Self::Verdict => include_str!("../../../schemas/verdict.schema.json"),
            Self::Line => return batch_line_schema(),
            Self::Objection => return verdict_problem_schema(),
            Self::Problem => return problem_schema(),
            Self::WalkEvent => return resolution_event_schema(),
        };
        serde_json::from_str(published).expect("a published schema is JSON")
    }
}

const STATES: [&str; 3] =
    [TrustState::Trusted.as_str(), TrustState::Untrusted.as_str(), TrustState::Indeterminate.as_str()];

/// Prefix of a reference to a schema in the OpenAPI document.
const PLACE: &str = "#/components/schemas/";

/// All schemas by name. The `$defs` of a schema become schemas of their own (`Verdict.digest`), and its `$id` is
/// removed, because client generators do not resolve references by `$id`.
pub(super) fn all_schemas() -> Map<String, Value> {
    let mut schemas = Map::new();
    for component in OpenApiComponent::ALL {
        let mut schema = component.component_schema();
        let definitions = schema.as_object_mut().and_then(|members| {
            members.remove("$id");
            members.remove("$schema");
            members.remove("$defs")
        });
        for (name, mut definition) in definitions.into_iter().filter_map(into_members).flatten() {
            relocate_references(&mut definition, component);
            schemas.insert(format!("{}.{name}", component.name()), definition);
        }
        relocate_references(&mut schema, component);
        schemas.insert(component.name().to_owned(), schema);
    }
    schemas
}

fn into_members(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(members) => Some(members),
        _ => None,
    }
}

/// Rewrites references to the `$defs` of the component's own file, which [`all_schemas`] moves.
fn relocate_references(schema: &mut Value, component: OpenApiComponent) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get_mut("$ref")
                && let Some(name) = reference.strip_prefix("#/$defs/")
            {
                *reference = format!("{PLACE}{}.{name}", component.name());
            }
            members.values_mut().for_each(|member| relocate_references(member, component));
        }
        Value::Array(elements) => elements.iter_mut().for_each(|element| relocate_references(element, component)),
        _ => {}
    }
}

/// A problem document (RFC 9457) with the daemon's additional members.
fn problem_schema() -> Value {
    let codes =
        RefusalCode::ALL.iter().map(|refusal| refusal.slug()).chain(ReasonCode::ALL.iter().map(|code| code.slug()));
    json!({
        "title": "problem",
        "description": "Why there is no answer (RFC 9457).",
        "type": "object",
        "properties": {
            "type": {"type": "string", "pattern": "^urn:clresolve:reason:"},
            "title": {"type": "string"},
            "status": {"type": "integer", "minimum": 400, "maximum": 599},
            "code": {"enum": codes.collect::<Vec<_>>()},
            "detail": {"type": "string"},
            "retry_after": {"description": "Seconds after which to ask again.", "type": "integer", "minimum": 0},
            "name": {"description": "The name in the batch, as sent.", "type": "string"},
            "state": {"description": "The state of the verdict.", "enum": STATES},
            "codes": {"description": "The codes of the verdict.", "type": "array", "items": {"type": "string"}},
            "verdict": {"description": "The id of the verdict.", "type": "string"},
        },
        "required": ["type", "title", "status", "code"],
        "additionalProperties": false,
        "examples": [{
            "type": "urn:clresolve:reason:request-malformed",
            "title": RefusalCode::RequestMalformed.title(),
            "status": 400,
            "code": "request-malformed",
            "detail": "expected the depth identity or schemas",
        }],
    })
}

/// A problem that carries a verdict.
fn verdict_problem_schema() -> Value {
    json!({
        "title": "objection",
        "description": "A problem with the verdict's state and codes, because of which nothing is returned.",
        "allOf": [OpenApiComponent::Problem.reference(), {"required": ["state", "codes", "verdict"]}],
    })
}

/// The data of an event of a resolution.
fn resolution_event_schema() -> Value {
    json!({
        "title": "walk event",
        "description": "The data of an event `step`, and of the final event `verdict` or `problem`.",
        "oneOf": [OpenApiComponent::Step.reference(), OpenApiComponent::Verdict.reference(), OpenApiComponent::Problem.reference()],
    })
}

/// A line in the response to a batch.
fn batch_line_schema() -> Value {
    let refused = json!({"allOf": [OpenApiComponent::Problem.reference(), {"required": ["name"]}]});
    json!({
        "title": "line",
        "description": "The verdict on one name of a batch, or the problem.",
        "oneOf": [OpenApiComponent::Verdict.reference(), refused],
    })
}
