//! Waiting for endpoints that are asked at the same time, but not for ever: when another one is to be asked beside them.

use std::future::Future;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::time::timeout;

/// What came of waiting.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next<T> {
    /// The next answer.
    Answer(T),
    /// Nobody answered for as long as that is worth waiting for.
    Stall,
    /// Nobody is asked any more.
    Nobody,
}

/// Waits for the next of those that are under way, for ever where there is no `patience`.
pub(super) async fn next<F: Future>(
    under_way: &mut FuturesUnordered<F>,
    patience: Option<Duration>,
) -> Next<F::Output> {
    let answer = match patience {
        Some(patience) => timeout(patience, under_way.next()).await,
        None => Ok(under_way.next().await),
    };
    match answer {
        Ok(Some(answer)) => Next::Answer(answer),
        Ok(None) => Next::Nobody,
        Err(_) => Next::Stall,
    }
}
