//! Caches proven content by CID and path.

use bytes::Bytes;
use clresolve_ipfs::{ContentId, UnixFsPath};
use moka::future::Cache;

use super::count_eviction;
use crate::telemetry::{self, CachePoolLabel};

/// Content that was proven for a CID and a path. It is immutable, so entries do not expire. The least used are evicted
/// first.
#[derive(Clone)]
pub struct IpfsContentCache(pub(super) Cache<(ContentId, UnixFsPath), Bytes>);

impl IpfsContentCache {
    /// Creates a cache of at most this many bytes.
    pub fn new(bytes: u64) -> Self {
        let weigh = |_: &(ContentId, UnixFsPath), content: &Bytes| u32::try_from(content.len()).unwrap_or(u32::MAX);
        let count = |_, _, cause| count_eviction(CachePoolLabel::Content, cause);
        Self(Cache::builder().max_capacity(bytes).weigher(weigh).eviction_listener(count).build())
    }

    /// Returns the content proven for `cid` and `path`.
    pub async fn get(&self, cid: &ContentId, path: &UnixFsPath) -> Option<Bytes> {
        let content = self.0.get(&(*cid, path.clone())).await;
        match content {
            Some(_) => telemetry::count_cache_hit(CachePoolLabel::Content),
            None => telemetry::count_cache_miss(telemetry::CacheLabel::Content),
        }
        content
    }

    /// Stores proven content.
    pub async fn insert(&self, cid: &ContentId, path: &UnixFsPath, content: Bytes) {
        self.0.insert((*cid, path.clone()), content).await;
    }
}
