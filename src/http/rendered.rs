//! Verdicts as they are sent, kept for as long as there is room.

use std::time::Duration;

use axum::http::HeaderValue;
use bytes::Bytes;
use clresolve_core::freshness::UNTRUSTED_FRESH;
use moka::future::Cache;

use super::caching::Lease;
use crate::verdict::{self, Verdict};

/// Most bytes of bodies kept; a verdict has a few thousand, so there is room for some thousand names.
const KEPT_BYTES: u64 = 32 * 1024 * 1024;

/// Time after which a body leaves that nobody has asked for. Each run gives a verdict another id, so the bodies of earlier
/// ones are asked for no more.
const KEPT_UNASKED: Duration = UNTRUSTED_FRESH;

/// A verdict as it is sent.
#[derive(Clone)]
pub(super) struct Rendered {
    pub(super) body: Bytes,
    pub(super) tag: HeaderValue,
    pub(super) lease: Lease,
}

impl Rendered {
    /// The verdict as JSON.
    pub(super) fn json(verdict: &Verdict) -> Self {
        // Weak: the same verdict says `served: fresh` to the first client and `cached` to the next.
        let tag = format!("W/\"{}\"", verdict.id);
        let tag = HeaderValue::from_str(&tag).expect("an id is hex digits after a word");
        let body = serde_json::to_vec(verdict).unwrap_or_default().into();
        Self { body, tag, lease: Lease::of(&verdict.freshness) }
    }
}

/// Rendered verdicts by id; the least used go first.
pub(super) struct RenderedCache(Cache<String, Rendered>);

impl RenderedCache {
    pub(super) fn new() -> Self {
        let weigh = |_: &String, rendered: &Rendered| u32::try_from(rendered.body.len()).unwrap_or(u32::MAX);
        Self(Cache::builder().max_capacity(KEPT_BYTES).weigher(weigh).time_to_idle(KEPT_UNASKED).build())
    }

    /// The verdict as `render` makes it. Only one that came from the cache of verdicts is kept: it is likely to be
    /// asked for again.
    pub(super) async fn get_or_render<E>(
        &self,
        verdict: &Verdict,
        render: impl FnOnce() -> Result<Rendered, E>,
    ) -> Result<Rendered, E> {
        if verdict.freshness.served != verdict::Served::Cached {
            return render();
        }
        if let Some(rendered) = self.0.get(&verdict.id).await {
            return Ok(rendered);
        }
        let rendered = render()?;
        self.0.insert(verdict.id.clone(), rendered.clone()).await;
        Ok(rendered)
    }
}
