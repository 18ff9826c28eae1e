//! `GET /openapi.json`: the routes of this daemon, described (OpenAPI 3.1).
//!
//! [`Operation`] describes one method of a route; `operations.rs` has them all, and `router.rs` puts each beside what
//! answers it. Statuses and codes come from the registry of refusals, documents from `schemas/`.

mod components;
mod operation;
pub(super) mod operations;

use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use serde_json::{Map, Value, json};

pub(super) use self::operation::Operation;

/// Where the description is.
pub(super) const DESCRIPTION: &str = "/openapi.json";

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
