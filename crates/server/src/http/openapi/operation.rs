//! Builds the OpenAPI description of one method of a route.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use clresolve_core::reason::RefusalCode;
use serde_json::{Map, Value, json};

use super::components::OpenApiComponent;
use super::examples;
use crate::http::problem;

/// Defined in RFC 9457.
const PROBLEM: &str = "application/problem+json";

/// When to ask again. Set on temporary refusals and on verdicts that could not be decided.
pub(super) const RETRY_AFTER: &str = "Retry-After";

/// Refusals that every route except the gate's may return.
const GENERAL: [RefusalCode; 2] = [RefusalCode::RequestMalformed, RefusalCode::InternalError];

/// Further refusals of every report API route that needs a slot.
const WITHOUT_SLOT: [RefusalCode; 2] = [RefusalCode::ClientOverQuota, RefusalCode::Overloaded];

/// The purpose of an operation. The program's help has the same groups.
#[derive(Clone, Copy)]
pub(in crate::http) enum OpenApiTag {
    Ask,
    Pay,
    Publish,
    Operate,
}

impl OpenApiTag {
    pub(super) const ALL: [Self; 4] = [Self::Ask, Self::Pay, Self::Publish, Self::Operate];

    const fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Pay => "pay",
            Self::Publish => "publish",
            Self::Operate => "operate",
        }
    }

    /// The OpenAPI tag object.
    pub(super) fn tag_object(self) -> Value {
        let description = match self {
            Self::Ask => "Is the binding of a name, its card and its entry real?",
            Self::Pay => "May these terms be paid, and are request and receipt valid?",
            Self::Publish => "Cards before and after they are published.",
            Self::Operate => "The daemon itself.",
        };
        json!({"name": self.name(), "description": description})
    }
}

/// The parameters, request body and responses of one method of a route.
pub(in crate::http) struct OpenApiOperation {
    method: &'static str,
    tag: OpenApiTag,
    /// The `operationId`, from which client generators derive a function name. The methods of one gate path share one.
    id: Option<&'static str>,
    summary: &'static str,
    parameters: Vec<Value>,
    body: Option<Value>,
    /// By status: the meaning, and the body by media type.
    answers: BTreeMap<u16, OpenApiResponse>,
    refusals: Vec<RefusalCode>,
}

#[derive(Default)]
struct OpenApiResponse {
    meaning: &'static str,
    content: Map<String, Value>,
    headers: Map<String, Value>,
}

impl OpenApiOperation {
    pub(super) fn new_without_id(tag: OpenApiTag, method: &'static str, summary: &'static str) -> Self {
        let (id, parameters, body, answers, refusals) = Default::default();
        Self { method, tag, id, summary, parameters, body, answers, refusals }
    }

    pub(super) fn get(tag: OpenApiTag, id: &'static str, summary: &'static str) -> Self {
        Self::get_without_slot(tag, id, summary).with_refusals(&WITHOUT_SLOT)
    }

    /// A GET that needs no slot.
    pub(super) fn get_without_slot(tag: OpenApiTag, id: &'static str, summary: &'static str) -> Self {
        Self { id: Some(id), ..Self::new_without_id(tag, "get", summary) }.with_refusals(&GENERAL)
    }

    pub(super) fn post(tag: OpenApiTag, id: &'static str, summary: &'static str) -> Self {
        Self { id: Some(id), ..Self::new_without_id(tag, "post", summary) }
            .with_refusals(&GENERAL)
            .with_refusals(&WITHOUT_SLOT)
    }

    pub(super) fn with_path_segment(self, name: &str, meaning: &str, example: &str) -> Self {
        let schema = json!({"type": "string", "minLength": 1});
        self.with_parameter(json!({
            "name": name, "in": "path", "required": true, "description": meaning, "schema": schema, "example": example,
        }))
    }

    pub(super) fn with_query_parameter(self, name: &str, meaning: &str, schema: Value) -> Self {
        self.with_parameter(json!({"name": name, "in": "query", "description": meaning, "schema": schema}))
    }

    pub(super) fn with_parameter(mut self, parameter: Value) -> Self {
        self.parameters.push(parameter);
        self
    }

    /// Adds a JSON request body with this schema.
    pub(super) fn with_body(mut self, schema: Value) -> Self {
        self.body = Some(json!({"required": true, "content": {"application/json": {"schema": schema}}}));
        self.with_refusals(&[
            RefusalCode::RequestTimeout,
            RefusalCode::BodyTooLarge,
            RefusalCode::MediaTypeUnsupported,
            RefusalCode::Draining,
        ])
    }

    /// Adds a response with a body of this media type.
    pub(super) fn with_response(
        mut self,
        status: StatusCode,
        meaning: &'static str,
        media: &str,
        schema: Value,
    ) -> Self {
        let answer = self.answers.entry(status.as_u16()).or_default();
        answer.meaning = meaning;
        answer.content.insert(media.to_owned(), json!({"schema": schema}));
        self
    }

    pub(super) fn with_json_response(self, schema: Value, meaning: &'static str) -> Self {
        self.with_response(StatusCode::OK, meaning, "application/json", schema)
    }

    /// Adds a problem response that corresponds to no refusal.
    pub(super) fn with_problem_response(self, status: StatusCode, meaning: &'static str) -> Self {
        self.with_response(status, meaning, PROBLEM, OpenApiComponent::Problem.reference())
    }

    /// Adds a 200 response with text that contains several JSON documents, such as events or lines.
    pub(super) fn with_stream_response(self, meaning: &'static str, media: &str, one: OpenApiComponent) -> Self {
        let schema = json!({"type": "string", "contentMediaType": media, "contentSchema": one.reference()});
        self.with_response(StatusCode::OK, meaning, media, schema)
    }

    /// Adds the 409 response for a verdict that is not trusted.
    pub(super) fn with_untrusted_response(mut self) -> Self {
        let answer = self.answers.entry(StatusCode::CONFLICT.as_u16()).or_default();
        answer.meaning = "The name is not trusted.";
        answer.content.insert(PROBLEM.to_owned(), json!({"schema": OpenApiComponent::Objection.reference()}));
        answer.headers.insert(RETRY_AFTER.to_owned(), retry_after_header());
        self
    }

    pub(super) fn with_bodiless_response(mut self, status: StatusCode, meaning: &'static str) -> Self {
        self.answers.entry(status.as_u16()).or_default().meaning = meaning;
        self
    }

    /// Adds this header to each response described so far.
    pub(super) fn with_header(mut self, name: &str, meaning: &str) -> Self {
        for answer in self.answers.values_mut() {
            answer.headers.insert(name.to_owned(), json!({"description": meaning, "schema": {"type": "string"}}));
        }
        self
    }

    /// Adds the response for a client whose copy is current, by `If-None-Match`.
    pub(super) fn with_not_modified(self) -> Self {
        let (meaning, asks) = ("An entity tag; send it as If-None-Match.", "The entity tag of a body that you have.");
        let schema = json!({"type": "string"});
        self.with_parameter(json!({"name": "If-None-Match", "in": "header", "description": asks, "schema": schema}))
            .with_bodiless_response(StatusCode::NOT_MODIFIED, "The client has the current body.")
            .with_header("ETag", meaning)
    }

    /// Adds the responses of an operation that may start a resolution, which the daemon limits.
    pub(super) fn with_resolution_refusals(self) -> Self {
        self.with_refusals(&[RefusalCode::Draining, RefusalCode::RunOverdue, RefusalCode::HostUnexpected])
    }

    pub(super) fn with_refusals(mut self, refusals: &[RefusalCode]) -> Self {
        self.refusals.extend(refusals);
        self
    }

    /// The method and the OpenAPI operation object.
    pub(in crate::http) fn method_and_object(&self) -> (String, Value) {
        let mut responses: Map<String, Value> =
            self.answers.iter().map(|(status, answer)| (status.to_string(), answer.response_object())).collect();
        for refusal in &self.refusals {
            let response =
                responses.entry(problem::refusal_status(*refusal).as_str()).or_insert_with(openapi_problem_response);
            let meaning = response["description"].as_str().unwrap_or_default();
            if !meaning.contains(refusal.title()) {
                response["description"] = format!("{meaning} {}", refusal.title()).trim().into();
            }
            response["content"][PROBLEM] = json!({"schema": OpenApiComponent::Problem.reference()});
            if problem::retry_seconds(*refusal).is_some() {
                response["headers"][RETRY_AFTER] = retry_after_header();
            }
        }
        let mut operation = json!({
            "tags": [self.tag.name()], "summary": self.summary, "parameters": self.parameters, "responses": responses,
        });
        if let Some(body) = &self.body {
            operation["requestBody"] = body.clone();
        }
        if let Some(id) = self.id {
            operation["operationId"] = id.into();
            for (pointer, example) in [
                ("/requestBody/content/application~1json", examples::request_example(id)),
                ("/responses/200/content/application~1json", examples::response_example(id)),
            ] {
                if let (Some(example), Some(body)) = (example, operation.pointer_mut(pointer)) {
                    body["example"] = example.clone();
                }
            }
        }
        (self.method.to_owned(), operation)
    }
}

impl OpenApiResponse {
    fn response_object(&self) -> Value {
        json!({"description": self.meaning, "headers": self.headers, "content": self.content})
    }
}

fn openapi_problem_response() -> Value {
    json!({"description": "", "headers": {}, "content": {}})
}

fn retry_after_header() -> Value {
    let schema = json!({"type": "string", "pattern": "^[0-9]+$"});
    json!({"description": "Seconds after which to ask again.", "schema": schema})
}
