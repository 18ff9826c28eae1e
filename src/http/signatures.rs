//! Signed verdicts, and the keys that verify them.

use axum::http::HeaderValue;
use bytes::Bytes;
use jiff::Timestamp;

use super::caching::Lease;
use super::rendered::{Rendered, RenderedCache};
use crate::digest::Digest;
use crate::sign::{SignError, Signer};
use crate::verdict::Resolution;

/// The signer, and what it has signed.
pub(super) struct Signatures {
    signer: Signer,
    /// Signed verdicts from the cache. Apart from the unsigned ones, so that neither takes the other's room.
    signed: RenderedCache,
    /// The published key set, as JSON.
    pub(super) keys: Bytes,
    /// The entity tag of the key set.
    pub(super) keys_tag: HeaderValue,
}

impl Signatures {
    pub(super) fn new(signer: Signer) -> Self {
        let keys = Bytes::from(signer.published().to_jwks().to_string());
        let keys_tag = header(&format!("\"{}\"", Digest::of(&keys)));
        Self { signer, signed: RenderedCache::new(), keys, keys_tag }
    }

    /// The signer.
    pub(super) fn signer(&self) -> &Signer {
        &self.signer
    }

    /// The verdict, signed.
    pub(super) async fn of(&self, resolution: &Resolution, now: Timestamp) -> Result<Rendered, SignError> {
        self.signed.get_or_render(resolution.verdict(), || self.sign(resolution, now)).await
    }

    fn sign(&self, resolution: &Resolution, now: Timestamp) -> Result<Rendered, SignError> {
        let body = self.signer.sign(resolution, now)?.into();
        let verdict = resolution.verdict();
        // With the key, since another key gives another signature.
        let tag = header(&format!("W/\"{}.{}\"", verdict.id, self.signer.key_id()));
        Ok(Rendered { body, tag, lease: Lease::of(&verdict.freshness) })
    }
}

fn header(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("digests and base64url are a header value")
}
