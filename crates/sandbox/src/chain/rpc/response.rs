//! HTTP responses.

use axum::body::Body;
use axum::http::{Response, StatusCode, header};

pub(super) fn json_http_response(body: String) -> Response<Body> {
    response_with_type(Body::from(body), "application/json")
}

pub(super) fn response_with_type(body: Body, content_type: &'static str) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    response
}

pub(super) fn status_response(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}
