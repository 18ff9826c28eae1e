//! Signed verdicts, and the keys that verify them.

use axum::http::HeaderValue;
use bytes::Bytes;
use clresolve_bundle::signed::{VerdictIssuer, VerdictSignError};
use clresolve_core::digest::Digest;
use clresolve_verdict::trust::Resolution;
use jiff::Timestamp;

use super::caching::ResponseLifetime;
use super::rendered::{RenderedVerdict, RenderedVerdictCache};

/// The signer and its cached signatures.
pub(super) struct CachingVerdictSigner {
    signer: VerdictIssuer,
    /// Cached signed verdicts. They are stored apart from unsigned ones, so that neither kind evicts the other.
    signed: RenderedVerdictCache,
    /// The published key set, as JSON.
    pub(super) keys: Bytes,
    /// The entity tag of the key set.
    pub(super) keys_tag: HeaderValue,
}

impl CachingVerdictSigner {
    pub(super) fn new(signer: VerdictIssuer) -> Self {
        let keys = Bytes::from(signer.published_keys().to_jwks().to_string());
        let keys_tag = header_value(&format!("\"{}\"", Digest::compute(&keys)));
        Self { signer, signed: RenderedVerdictCache::new(), keys, keys_tag }
    }

    pub(super) fn signer(&self) -> &VerdictIssuer {
        &self.signer
    }

    pub(super) async fn signed_verdict(
        &self,
        resolution: &Resolution,
        now: Timestamp,
    ) -> Result<RenderedVerdict, VerdictSignError> {
        self.signed.get_or_render(resolution.verdict(), || self.sign_verdict(resolution, now)).await
    }

    fn sign_verdict(&self, resolution: &Resolution, now: Timestamp) -> Result<RenderedVerdict, VerdictSignError> {
        let body = self.signer.sign_verdict(resolution, now)?.into();
        let verdict = resolution.verdict();
        // The tag includes the key, since another key produces another signature.
        let tag = header_value(&format!("W/\"{}.{}\"", verdict.id, self.signer.key_id()));
        Ok(RenderedVerdict { body, tag, lease: ResponseLifetime::from_freshness(&verdict.freshness) })
    }
}

fn header_value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("digests and base64url are a header value")
}
