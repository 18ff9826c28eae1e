//! Serialized verdicts with their entity tags, and a size-bounded cache of the signed ones.

use std::sync::Arc;

use axum::http::HeaderValue;
use bytes::Bytes;
use clresolve_verdict::verdict::{Verdict, VerdictConfirmationSource, VerdictCopyKind};
use moka::future::Cache;

use super::caching::ResponseLifetime;

/// Maximum number of bytes of cached bodies. A verdict has a few thousand, so there is room for some thousand names.
const KEPT_BYTES: u64 = 32 * 1024 * 1024;

#[derive(Clone)]
pub(super) struct RenderedVerdict {
    pub(super) body: Bytes,
    pub(super) tag: HeaderValue,
    pub(super) lease: ResponseLifetime,
}

impl RenderedVerdict {
    pub(super) fn from_json_body(verdict: &Verdict, body: Bytes) -> Self {
        // Weak, because the same verdict contains `served: fresh` for the first client and `cached` for the next.
        let tag = ["W/\"", &verdict.id, "\""].concat();
        let tag = HeaderValue::try_from(tag).expect("an id is hex digits after a word");
        Self { body, tag, lease: ResponseLifetime::from_freshness(&verdict.freshness) }
    }
}

/// A signed verdict per question: only that of the latest resolution, since earlier ones are no longer requested.
/// The least used are evicted first.
pub(super) struct RenderedVerdictCache(Cache<String, CachedRenderedVerdict>);

#[derive(Clone)]
struct CachedRenderedVerdict {
    verdict: Arc<str>,
    confirmed: Option<VerdictConfirmationSource>,
    rendered: RenderedVerdict,
}

impl RenderedVerdictCache {
    pub(super) fn new() -> Self {
        let weigh = |asked: &String, kept: &CachedRenderedVerdict| {
            u32::try_from(asked.len() + kept.rendered.body.len()).unwrap_or(u32::MAX)
        };
        Self(Cache::builder().max_capacity(KEPT_BYTES).weigher(weigh).build())
    }

    /// Returns the verdict as serialized by `render`. The result is stored only if the verdict came from the cache of
    /// verdicts, since it is then likely to be requested again.
    pub(super) async fn get_or_render<E>(
        &self,
        verdict: &Verdict,
        render: impl FnOnce() -> Result<RenderedVerdict, E>,
    ) -> Result<RenderedVerdict, E> {
        if verdict.freshness.served != VerdictCopyKind::Cached {
            return render();
        }
        let (asked, id, confirmed) = (question_key(verdict), verdict.id.as_str(), verdict.freshness.confirmed);
        let is_same = |kept: &CachedRenderedVerdict| *kept.verdict == *id && kept.confirmed == confirmed;
        if let Some(kept) = self.0.get(&asked).await.filter(is_same) {
            return Ok(kept.rendered);
        }
        let rendered = render()?;
        self.0.insert(asked, CachedRenderedVerdict { verdict: id.into(), confirmed, rendered: rendered.clone() }).await;
        Ok(rendered)
    }
}

/// The question: the name as typed, the profile and the depth.
fn question_key(verdict: &Verdict) -> String {
    [verdict.profile.depth.as_str(), &verdict.profile.id, &verdict.name.input].join(" ")
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use clresolve_core::state::TrustState;
    use clresolve_verdict::sample;
    use clresolve_verdict::verdict::VerdictCopyKind;
    use jiff::Timestamp;

    use super::*;

    /// Returns the body for `verdict`, and whether it was serialized by this call.
    async fn sent(cache: &RenderedVerdictCache, verdict: &Verdict) -> (Bytes, bool) {
        let mut is_made = false;
        let render = || {
            is_made = true;
            Ok::<_, Infallible>(RenderedVerdict::from_json_body(
                verdict,
                serde_json::to_vec(verdict).expect("JSON").into(),
            ))
        };
        let Ok(rendered) = cache.get_or_render(verdict, render).await;
        (rendered.body, is_made)
    }

    #[tokio::test]
    async fn the_body_of_a_later_run_takes_the_place_of_the_earlier_one() {
        let cache = RenderedVerdictCache::new();
        let mut first =
            Verdict::clone(sample::empty_resolution(TrustState::Trusted, Timestamp::UNIX_EPOCH, 0).verdict());
        assert!(sent(&cache, &first).await.1);
        assert!(sent(&cache, &first).await.1, "nobody may ask again for what was not in the cache");
        first.freshness.served = VerdictCopyKind::Cached;
        let later = Verdict { id: "later".to_owned(), ..first.clone() };
        for verdict in [&first, &later] {
            let (body, is_made) = sent(&cache, verdict).await;
            assert_eq!(serde_json::from_slice::<serde_json::Value>(&body).expect("JSON")["id"], verdict.id);
            assert!(is_made);
            assert_eq!(sent(&cache, verdict).await, (body, false));
        }
        let mut other = later.clone();
        other.profile.id = "another".to_owned();
        other.id = "other".to_owned();
        assert!(sent(&cache, &other).await.1);
        assert!(!sent(&cache, &later).await.1, "each profile has a body of its own");
        cache.0.run_pending_tasks().await;
        assert_eq!(cache.0.entry_count(), 2);
    }
}
