//! HTTP responses.

use axum::body::Body;
use axum::http::{Response, StatusCode, header};

pub(super) fn json(body: String) -> Response<Body> {
    with_type(Body::from(body), "application/json")
}

pub(super) fn with_type(body: Body, content_type: &'static str) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    response
}

pub(super) fn plain(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}
