//! `GET /openapi.json`: the routes of this daemon, described (OpenAPI 3.1).
//!
//! [`Operation`] describes one method of a route; `operations.rs` has them all, and `router.rs` puts each beside what
//! answers it. Statuses and codes come from the registry of refusals, documents from `schemas/`.

mod components;
pub(super) mod operations;

use std::collections::BTreeMap;

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use serde_json::{Map, Value, json};

pub(super) use self::components::Component;
use super::problem;
use crate::reason::Refusal;

/// Where the description is.
pub(super) const DESCRIPTION: &str = "/openapi.json";

/// RFC 9457.
const PROBLEM: &str = "application/problem+json";

/// What any route of the report face may refuse with.
const GENERAL: [Refusal; 2] = [Refusal::Overloaded, Refusal::InternalError];

/// The description of some routes, made once for each configuration.
#[derive(Clone)]
pub(super) struct Description(Bytes);

impl Description {
    /// Of routes: each path, and what its methods are.
    pub(super) fn of<'a>(routes: impl Iterator<Item = (&'a str, Map<String, Value>)>) -> Self {
        // A segment that takes the rest of the path is one parameter to OpenAPI.
        let paths = routes.map(|(path, methods)| (path.replace("{*", "{"), methods.into()));
        let own = (DESCRIPTION.to_owned(), Value::Object([operations::description().document()].into_iter().collect()));
        let document = json!({
            "openapi": "3.1.0",
            "info": {
                "title": "clresolve",
                "version": env!("CARGO_PKG_VERSION"),
                "description": "Is the binding of ENS name, Agent-Card and x402 entry real?",
                "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            },
            "paths": paths.chain([own]).collect::<Map<String, Value>>(),
            "components": {"schemas": components::all()},
        });
        Self(document.to_string().into())
    }

    pub(super) fn answer(&self) -> Response {
        let mut response = self.0.clone().into_response();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }
}

/// What one method of a route takes and answers.
pub(super) struct Operation {
    method: &'static str,
    /// Its name in clients that are generated. The methods of one path of the gate share one.
    id: Option<&'static str>,
    summary: &'static str,
    parameters: Vec<Value>,
    body: Option<Value>,
    /// By status: what it means, and the body by media type.
    answers: BTreeMap<u16, Answer>,
    refusals: Vec<Refusal>,
}

#[derive(Default)]
struct Answer {
    meaning: &'static str,
    content: Map<String, Value>,
    headers: Map<String, Value>,
}

impl Operation {
    fn bare(method: &'static str, summary: &'static str) -> Self {
        let (id, parameters, body, answers, refusals) = Default::default();
        Self { method, id, summary, parameters, body, answers, refusals }
    }

    fn get(id: &'static str, summary: &'static str) -> Self {
        Self { id: Some(id), ..Self::bare("get", summary) }.refuses(&GENERAL)
    }

    fn post(id: &'static str, summary: &'static str) -> Self {
        Self { id: Some(id), ..Self::bare("post", summary) }.refuses(&GENERAL)
    }

    /// A segment of the path.
    fn segment(self, name: &str, meaning: &str) -> Self {
        let schema = json!({"type": "string", "minLength": 1});
        self.parameter(json!({"name": name, "in": "path", "required": true, "description": meaning, "schema": schema}))
    }

    /// A parameter of the query that may be left out.
    fn query(self, name: &str, meaning: &str, schema: Value) -> Self {
        self.parameter(json!({"name": name, "in": "query", "description": meaning, "schema": schema}))
    }

    fn parameter(mut self, parameter: Value) -> Self {
        self.parameters.push(parameter);
        self
    }

    /// Takes JSON of this schema.
    fn takes(mut self, schema: Value) -> Self {
        self.body = Some(json!({"required": true, "content": {"application/json": {"schema": schema}}}));
        self.refuses(&[
            Refusal::RequestMalformed,
            Refusal::RequestTimeout,
            Refusal::BodyTooLarge,
            Refusal::MediaTypeUnsupported,
            Refusal::Draining,
        ])
    }

    /// Answers with a body of this media type.
    fn answers(mut self, status: StatusCode, meaning: &'static str, media: &str, schema: Value) -> Self {
        let answer = self.answers.entry(status.as_u16()).or_default();
        answer.meaning = meaning;
        answer.content.insert(media.to_owned(), json!({"schema": schema}));
        self
    }

    /// Answers 200 with JSON.
    fn answers_json(self, schema: Value, meaning: &'static str) -> Self {
        self.answers(StatusCode::OK, meaning, "application/json", schema)
    }

    /// Answers with a problem that no refusal stands for.
    fn answers_problem(self, status: StatusCode, meaning: &'static str) -> Self {
        self.answers(status, meaning, PROBLEM, Component::Problem.reference())
    }

    /// Answers without a body.
    fn answers_bare(mut self, status: StatusCode, meaning: &'static str) -> Self {
        self.answers.entry(status.as_u16()).or_default().meaning = meaning;
        self
    }

    /// Sets this header in each answer that is described so far.
    fn with_header(mut self, name: &str, meaning: &str) -> Self {
        for answer in self.answers.values_mut() {
            answer.headers.insert(name.to_owned(), json!({"description": meaning, "schema": {"type": "string"}}));
        }
        self
    }

    /// Answers that the client has the current body, where `If-None-Match` names its tag.
    fn tagged(self) -> Self {
        let meaning = "An entity tag; send it as If-None-Match.";
        self.answers_bare(StatusCode::NOT_MODIFIED, "The client has the current body.").with_header("ETag", meaning)
    }

    /// May start a run, which the daemon bounds.
    fn runs(self) -> Self {
        self.refuses(&[Refusal::ClientOverQuota, Refusal::Overloaded, Refusal::Draining, Refusal::RunOverdue])
    }

    fn refuses(mut self, refusals: &[Refusal]) -> Self {
        self.refusals.extend(refusals);
        self
    }

    /// The method, and the operation as OpenAPI has it.
    pub(super) fn document(&self) -> (String, Value) {
        let mut responses: Map<String, Value> =
            self.answers.iter().map(|(status, answer)| (status.to_string(), answer.document())).collect();
        for refusal in &self.refusals {
            let response = responses.entry(problem::status(*refusal).as_str()).or_insert_with(problem_response);
            let meaning = response["description"].as_str().unwrap_or_default();
            if !meaning.contains(refusal.title()) {
                response["description"] = format!("{meaning} {}", refusal.title()).trim().into();
            }
            response["content"][PROBLEM] = json!({"schema": Component::Problem.reference()});
        }
        let mut operation = json!({"summary": self.summary, "parameters": self.parameters, "responses": responses});
        if let Some(id) = self.id {
            operation["operationId"] = id.into();
        }
        if let Some(body) = &self.body {
            operation["requestBody"] = body.clone();
        }
        (self.method.to_owned(), operation)
    }
}

impl Answer {
    fn document(&self) -> Value {
        json!({"description": self.meaning, "headers": self.headers, "content": self.content})
    }
}

fn problem_response() -> Value {
    json!({"description": "", "content": {}})
}
