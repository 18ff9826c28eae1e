//! Signed verdicts, and the keys by which they are checked.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use bytes::Bytes;
use jiff::Timestamp;
use moka::future::Cache;

use super::verdicts::{Lease, Rendered, is_known_to_client, not_modified};
use super::{RENDERED_BYTES, Shared, problem};
use crate::digest::Digest;
use crate::reason::Refusal;
use crate::sign::{SignError, Signer};
use crate::verdict::{self, Resolution};

/// How long the keys may be kept by whoever fetches them: a new key is published for as long before it signs. Not
/// longer, so that a key that was lost is soon forgotten.
const KEYS_FRESH: &str = "public, max-age=600";

/// The signer, and what it has signed.
pub(super) struct Signatures {
    signer: Signer,
    /// Verdicts that were served from the cache, signed, by id. Apart from the unsigned ones, which never wait for it.
    signed: Cache<String, Rendered>,
    keys: Bytes,
    keys_tag: HeaderValue,
}

impl Signatures {
    pub(super) fn new(signer: Signer) -> Self {
        let signed = Cache::builder()
            .max_capacity(RENDERED_BYTES)
            .weigher(|_, signed: &Rendered| u32::try_from(signed.body.len()).unwrap_or(u32::MAX))
            .build();
        let keys = Bytes::from(signer.published().to_jwks().to_string());
        let keys_tag = header(&format!("\"{}\"", Digest::of(&keys)));
        Self { signer, signed, keys, keys_tag }
    }

    /// Who signs.
    pub(super) fn signer(&self) -> &Signer {
        &self.signer
    }

    /// The verdict, signed. What is served from the cache is likely to be asked for again.
    pub(super) async fn of(&self, resolution: &Resolution, now: Timestamp) -> Result<Rendered, SignError> {
        let verdict = resolution.verdict();
        if verdict.freshness.served != verdict::Served::Cached {
            return self.sign(resolution, now);
        }
        if let Some(signed) = self.signed.get(&verdict.id).await {
            return Ok(signed);
        }
        let signed = self.sign(resolution, now)?;
        self.signed.insert(verdict.id.clone(), signed.clone()).await;
        Ok(signed)
    }

    fn sign(&self, resolution: &Resolution, now: Timestamp) -> Result<Rendered, SignError> {
        let body = self.signer.sign(resolution, now)?.into();
        let verdict = resolution.verdict();
        // The key is part of it: what a key signed that has been withdrawn is not what its successor signs.
        let tag = header(&format!("W/\"{}.{}\"", verdict.id, self.signer.key_id()));
        Ok(Rendered { body, tag, lease: Lease::of(&verdict.freshness) })
    }
}

fn header(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("digests and base64url are a header value")
}

/// `GET /.well-known/jwks.json`
pub(super) async fn key_set(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    let Some(signatures) = &shared.signatures else { return problem::refused(Refusal::RouteUnknown, None) };
    let tag = signatures.keys_tag.clone();
    let mut response = if is_known_to_client(&headers, tag.to_str().unwrap_or_default()) {
        not_modified()
    } else {
        let mut response = Response::new(Body::from(signatures.keys.clone()));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/jwk-set+json"));
        response
    };
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static(KEYS_FRESH));
    response.headers_mut().insert(ETAG, tag);
    response
}
