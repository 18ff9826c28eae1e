//! Shares fetches between the names of a list: a URL, or a path below a CID, that several names refer to is fetched
//! once.
//!
//! A successful result applies to all names of the round. A failure applies to the names that waited for it, unless
//! more time might have prevented it. In that case a name fetches separately, within its own remaining time.

use std::hash::Hash;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use clresolve_core::recordable::LiveOrRecordedCause;
use clresolve_ipfs::{ContentId, DagWalkBudget, UnixFsPath};
use clresolve_payment::terms::SellerHttpReply as SellerReply;
use clresolve_verdict::evidence::{HttpsOutcome, IpfsWalkOutcome};
use futures_util::future::{Either, select};
use moka::future::Cache;
use tokio::time::{Instant, timeout};

use super::content::{ContentFetcher, IpfsPathResult, LyingGateways};
use crate::fetch::https::FetchedDocument;
use crate::fetch::{FetchError, SourceUnavailableError};

/// Maximum number of cached bytes of each kind. Shared content takes some hundred kilobytes at most (a released layer
/// has sixty schemas of a few kilobytes). The rest is cards of single names, which are evicted in favour of content
/// that is requested more often.
const KEPT_BYTES: u64 = 1 << 20;

/// Size of an entry in addition to its bytes, so that the number of empty entries is limited too.
const ENTRY_BYTES: usize = 512;

/// Content that is shared in one round of a list.
pub(super) struct SharedContentFetcher {
    source: Arc<dyn ContentFetcher>,
    /// The body of a card, and the URL that served it.
    cards: SharedFetchCache<String, (Bytes, String)>,
    schemas: SharedFetchCache<String, Bytes>,
    documents: SharedFetchCache<String, FetchedDocument>,
    files: SharedFetchCache<(ContentId, UnixFsPath), IpfsPathResult>,
}

impl SharedContentFetcher {
    /// Starts a round in which nothing has been fetched from `source`.
    pub(super) fn new_round(source: Arc<dyn ContentFetcher>) -> Self {
        Self {
            source,
            cards: SharedFetchCache::new(|url, (bytes, by)| url.len() + bytes.len() + by.len()),
            schemas: SharedFetchCache::new(|url, bytes| url.len() + bytes.len()),
            documents: SharedFetchCache::new(|url, body| url.len() + body.bytes.len() + body.final_url.as_str().len()),
            files: SharedFetchCache::new(|(_, path), file| {
                path.to_string().len() + file.walked.bytes().map_or(0, Bytes::len) + file.blocks.total_bytes()
            }),
        }
    }
}

#[async_trait]
impl ContentFetcher for SharedContentFetcher {
    async fn fetch_card(&self, url: &str, limit: Duration) -> HttpsOutcome {
        let card = |limit| async move {
            match self.source.fetch_card(url, limit).await {
                HttpsOutcome::Body { bytes, url } => Ok((bytes, url)),
                other => Err(other),
            }
        };
        let is_late = |source: &HttpsOutcome| match source {
            HttpsOutcome::Unavailable(LiveOrRecordedCause::Met(cause)) => is_time_limited(cause),
            _ => false,
        };
        match self.cards.get(url.to_owned(), limit, card, is_late).await {
            Ok(((bytes, url), _)) => HttpsOutcome::Body { bytes, url },
            Err(other) => other,
        }
    }

    async fn walk_ipfs_path(
        &self,
        cid: &ContentId,
        path: &UnixFsPath,
        known: &[Bytes],
        budget: DagWalkBudget,
        limit: Duration,
    ) -> IpfsPathResult {
        if !known.is_empty() || budget != DagWalkBudget::for_agent_card() {
            return self.source.walk_ipfs_path(cid, path, known, budget, limit).await;
        }
        let file = |limit| async move {
            let began = Instant::now();
            let retrieved = self.source.walk_ipfs_path(cid, path, &[], budget, limit).await;
            let is_late = began.elapsed() >= limit || is_walk_time_limited(&retrieved.walked);
            if retrieved.walked.bytes().is_some() { Ok(retrieved) } else { Err((retrieved, is_late)) }
        };
        match self.files.get((*cid, path.clone()), limit, file, |(_, is_late)| *is_late).await {
            Ok((value, true)) => value,
            // The gateways sent the wrong blocks to another name.
            Ok((value, false)) => IpfsPathResult { liars: LyingGateways::new(), ..value },
            Err((retrieved, _)) => retrieved,
        }
    }

    async fn fetch_key_set(&self, url: &str, limit: Duration) -> HttpsOutcome {
        self.source.fetch_key_set(url, limit).await
    }

    async fn fetch_schema(&self, url: &str, limit: Duration) -> Result<Bytes, FetchError> {
        let schema = |limit| self.source.fetch_schema(url, limit);
        self.schemas.get(url.to_owned(), limit, schema, is_fetch_time_limited).await.map(|(value, _)| value)
    }

    async fn fetch_document(&self, url: &str, limit: Duration) -> Result<FetchedDocument, FetchError> {
        let document = |limit| self.source.fetch_document(url, limit);
        self.documents.get(url.to_owned(), limit, document, is_fetch_time_limited).await.map(|(value, _)| value)
    }

    async fn fetch_plain_http_document(&self, url: &str, limit: Duration) -> Result<FetchedDocument, FetchError> {
        self.source.fetch_plain_http_document(url, limit).await
    }

    async fn fetch_registry_manifest(&self, url: &str, limit: Duration) -> Result<Bytes, FetchError> {
        self.source.fetch_registry_manifest(url, limit).await
    }

    async fn send_unpaid_request(
        &self,
        url: &str,
        body: Option<Bytes>,
        limit: Duration,
    ) -> Result<SellerReply, FetchError> {
        self.source.send_unpaid_request(url, body, limit).await
    }

    fn time_until_gateway_available(&self, past: Duration) -> Option<Duration> {
        self.source.time_until_gateway_available(past)
    }

    fn without_stored_content(&self) -> Option<Arc<dyn ContentFetcher>> {
        Some(Arc::new(Self::new_round(Arc::clone(&self.source))))
    }
}

fn is_fetch_time_limited(error: &FetchError) -> bool {
    error.cause().is_some_and(is_time_limited)
}

/// Whether more time might have helped. A host that requests a pause is asked again while there is time.
fn is_time_limited(cause: &SourceUnavailableError) -> bool {
    matches!(
        cause,
        SourceUnavailableError::Timeout | SourceUnavailableError::NoTurn | SourceUnavailableError::Status(429 | 503)
    )
}

/// Whether more time might have helped with a gateway.
fn is_walk_time_limited(walked: &IpfsWalkOutcome) -> bool {
    let late = [SourceUnavailableError::Timeout, SourceUnavailableError::NoTurn].map(|cause| cause.to_string());
    matches!(walked, IpfsWalkOutcome::Unproven(causes) if causes.iter().any(|(_, cause)| late.contains(cause)))
}

struct SharedFetchCache<K, V>(Cache<K, V>);

impl<K, V> SharedFetchCache<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    fn new(bytes: fn(&K, &V) -> usize) -> Self {
        let weigh = move |key: &K, value: &V| u32::try_from(ENTRY_BYTES + bytes(key, value)).unwrap_or(u32::MAX);
        Self(Cache::builder().max_capacity(KEPT_BYTES).weigher(weigh).build())
    }

    /// Returns the result of `fetch` within a time limit, and whether this caller fetched it. All callers share one
    /// fetch. A caller that has waited for half of its time starts its own in parallel, so that no name depends on
    /// another's connection.
    async fn get<E, F>(
        &self,
        key: K,
        limit: Duration,
        fetch: impl Fn(Duration) -> F,
        is_late: impl Fn(&E) -> bool,
    ) -> Result<(V, bool), E>
    where
        E: Clone + Send + Sync + 'static,
        F: Future<Output = Result<V, E>> + Send,
    {
        let deadline = Instant::now() + limit;
        let left = || deadline.saturating_duration_since(Instant::now());
        let asks = AtomicBool::new(false);
        let first = async {
            asks.store(true, Ordering::Relaxed);
            fetch(left()).await
        };
        let is_own = || asks.load(Ordering::Relaxed);
        let mut shared = pin!(self.0.entry(key).or_try_insert_with(first));
        let own = match timeout(limit / 2, &mut shared).await {
            Ok(answer) => Either::Left((answer, None)),
            Err(_) if is_own() => Either::Left((shared.await, None)),
            Err(_) => match select(shared, Box::pin(fetch(left()))).await {
                Either::Left((answer, own)) => Either::Left((answer, Some(own))),
                Either::Right((own, _)) => Either::Right(own),
            },
        };
        let own = match own {
            Either::Left((Ok(entry), _)) => return Ok((entry.into_value(), is_own())),
            Either::Left((Err(error), _)) if is_own() || !is_late(&error) => return Err(E::clone(&error)),
            Either::Left((Err(_), Some(begun))) => begun.await,
            Either::Left((Err(_), None)) => fetch(left()).await,
            Either::Right(own) => own,
        };
        own.map(|value| (value, true))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use futures_util::future::join_all;
    use tokio::time::sleep;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A host that responds after a delay, and counts requests.
    struct Host {
        shared: SharedFetchCache<&'static str, usize>,
        asked: AtomicUsize,
        takes: Duration,
    }

    impl Host {
        fn new(takes: Duration) -> Self {
            Self { shared: SharedFetchCache::new(|_, _| 1), asked: AtomicUsize::new(0), takes }
        }

        /// Fetches with this time limit, as one name does.
        async fn ask(&self, limit: Duration, answer: Result<(), &'static str>) -> Result<usize, &'static str> {
            let fetch = |limit| async move {
                let asked = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
                timeout(limit, sleep(self.takes)).await.map_err(|_| "late")?;
                answer.map(|()| asked)
            };
            self.shared.get("key", limit, fetch, |error| *error == "late").await.map(|(value, _)| value)
        }

        fn asked(&self) -> usize {
            self.asked.load(Ordering::Relaxed)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_many_ask_for_is_fetched_once_and_kept() {
        let host = Host::new(SECOND);
        let answers = join_all((0..40).map(|_| host.ask(10 * SECOND, Ok(())))).await;
        assert!(answers.iter().all(|answer| *answer == Ok(1)), "{answers:?}");
        assert_eq!((host.ask(10 * SECOND, Ok(())).await, host.asked()), (Ok(1), 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_shared_by_those_who_waited_for_it_and_not_kept() {
        let host = Host::new(SECOND);
        let answers = join_all((0..40).map(|_| host.ask(10 * SECOND, Err("gone")))).await;
        assert!(answers.iter().all(|answer| *answer == Err("gone")), "{answers:?}");
        assert_eq!(host.asked(), 1);
        assert_eq!((host.ask(10 * SECOND, Ok(())).await, host.asked()), (Ok(2), 2));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_fails_for_want_of_another_ones_time() {
        let host = Host::new(3 * SECOND);
        let (hasty, patient) = tokio::join!(host.ask(SECOND, Ok(())), host.ask(10 * SECOND, Ok(())));
        assert_eq!((hasty, patient, host.asked()), (Err("late"), Ok(2), 2));
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_waited_for_half_of_its_time_asks_too() {
        let host = Host::new(6 * SECOND);
        let began = Instant::now();
        let later = async {
            sleep(SECOND / 2).await;
            (host.ask(8 * SECOND, Ok(())).await, began.elapsed())
        };
        let (first, later) = tokio::join!(host.ask(60 * SECOND, Ok(())), later);
        assert_eq!((first, later, host.asked()), (Ok(1), (Ok(1), 6 * SECOND), 2));
    }

    #[tokio::test(start_paused = true)]
    async fn who_gives_up_leaves_the_fetch_to_who_waits() {
        let host = Host::new(2 * SECOND);
        let given_up = timeout(SECOND, host.ask(10 * SECOND, Ok(())));
        let (given_up, waits) = tokio::join!(given_up, host.ask(10 * SECOND, Ok(())));
        assert!(given_up.is_err());
        assert_eq!((waits, host.asked()), (Ok(2), 2));
    }
}
