//! `GET /openapi.json` returns a description of this daemon's routes (OpenAPI 3.1).
//!
//! [`OpenApiOperation`] describes one method of a route. `operations.rs` defines all operations, and `router.rs` pairs
//! each with its handler. Statuses and codes come from the registry of refusals, document schemas from `schemas/`.

mod components;
mod examples;
mod operation;
pub(super) mod operations;

use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use serde_json::{Map, Value, json};

pub(super) use self::operation::OpenApiOperation;
use self::operation::OpenApiTag;

pub(super) const DESCRIPTION: &str = "/openapi.json";

/// The description of a set of routes, rendered once per configuration.
#[derive(Clone)]
pub(super) struct RenderedOpenApiDocument(Bytes);

impl RenderedOpenApiDocument {
    /// Describes the given routes: each path with its methods.
    pub(super) fn from_routes<'a>(routes: impl Iterator<Item = (&'a str, Map<String, Value>)>) -> Self {
        // For OpenAPI, a wildcard segment at the end of a path is an ordinary parameter.
        let paths = routes.map(|(path, methods)| (path.replace("{*", "{"), methods.into()));
        let own = (
            DESCRIPTION.to_owned(),
            Value::Object([operations::openapi_operation().method_and_object()].into_iter().collect()),
        );
        let document = json!({
            "openapi": "3.1.0",
            "info": {
                "title": "clresolve",
                "version": env!("CARGO_PKG_VERSION"),
                "description": "Is the binding of ENS name, Agent-Card and x402 entry real?",
                "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            },
            // Relative to the URL of this document, so that it is also right behind a proxy.
            "servers": [{"url": "/", "description": "This daemon."}],
            "tags": OpenApiTag::ALL.map(OpenApiTag::tag_object),
            "paths": paths.chain([own]).collect::<Map<String, Value>>(),
            "components": {"schemas": components::all_schemas()},
        });
        Self(document.to_string().into())
    }

    pub(super) fn openapi_response(&self) -> Response {
        let mut response = self.0.clone().into_response();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }
}
