//! Collects queries that can be sent together.

use std::collections::HashMap;
use std::future::Future;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::sleep;

/// Maximum number of names per call. The records of a name use about 400,000 gas of the 12 million that the gas check
/// of [`clresolve_state::BatchedCallResults`] leaves, and about 30 KB of the request. Endpoints commonly accept one
/// megabyte.
const MOST_NAMES: usize = 20;

/// Waiting queries, grouped by what they must have in common.
pub(super) struct BatchCollector<K, Q, A> {
    waiting: Arc<Mutex<PendingQueryGroups<K, Q, A>>>,
    /// How long the first query of a group waits for others.
    wait: Duration,
}

struct PendingQueryGroups<K, Q, A> {
    groups: HashMap<K, QueryGroup<Q, A>>,
    next: u64,
}

/// Queries that will be sent together.
struct QueryGroup<Q, A> {
    number: u64,
    members: Vec<QueryGroupMember<Q, A>>,
}

type QueryGroupMember<Q, A> = (Q, oneshot::Sender<A>);

impl<K, Q, A> BatchCollector<K, Q, A>
where
    K: Clone + Eq + Hash + Send + 'static,
    Q: Send + 'static,
    A: Send + 'static,
{
    pub(super) fn new(wait: Duration) -> Self {
        Self { waiting: Arc::new(Mutex::new(PendingQueryGroups { groups: HashMap::new(), next: 0 })), wait }
    }

    /// Adds `question` to a group and returns its answer. `ask` answers the whole group, in order, once the group has
    /// [`MOST_NAMES`] members or the wait is over. A caller that stops waiting does not affect the others. Returns
    /// `None` if `ask` was aborted.
    pub(super) async fn ask_in_batch<F>(
        &self,
        key: K,
        question: Q,
        ask: impl FnOnce(Vec<Q>) -> F + Send + 'static,
    ) -> Option<A>
    where
        F: Future<Output = Vec<A>> + Send + 'static,
    {
        let (sender, answer) = oneshot::channel();
        match lock_ignoring_poison(&self.waiting).add_member(&key, (question, sender)) {
            QueryGroupJoinOutcome::Full(members) => drop(tokio::spawn(answer_group_members(members, ask))),
            QueryGroupJoinOutcome::First(number) => {
                let (waiting, wait) = (Arc::clone(&self.waiting), self.wait);
                tokio::spawn(async move {
                    sleep(wait).await;
                    let group = lock_ignoring_poison(&waiting).take_group(&key, number);
                    if let Some(members) = group {
                        answer_group_members(members, ask).await;
                    }
                });
            }
            QueryGroupJoinOutcome::Later => {}
        }
        answer.await.ok()
    }
}

pub(super) fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

enum QueryGroupJoinOutcome<M> {
    /// The query opened the group with this number.
    First(u64),
    /// The query joined a group that is still waiting.
    Later,
    /// The query completed a group.
    Full(Vec<M>),
}

impl<K: Clone + Eq + Hash, Q, A> PendingQueryGroups<K, Q, A> {
    fn add_member(&mut self, key: &K, member: QueryGroupMember<Q, A>) -> QueryGroupJoinOutcome<QueryGroupMember<Q, A>> {
        let Some(group) = self.groups.get_mut(key) else {
            let number = self.next;
            self.next += 1;
            self.groups.insert(key.clone(), QueryGroup { number, members: vec![member] });
            return QueryGroupJoinOutcome::First(number);
        };
        group.members.push(member);
        if group.members.len() < MOST_NAMES {
            return QueryGroupJoinOutcome::Later;
        }
        QueryGroupJoinOutcome::Full(self.groups.remove(key).map(|group| group.members).unwrap_or_default())
    }

    /// Removes the group with this number and returns its members, unless the group was completed before.
    fn take_group(&mut self, key: &K, number: u64) -> Option<Vec<QueryGroupMember<Q, A>>> {
        self.groups.get(key).filter(|group| group.number == number)?;
        self.groups.remove(key).map(|group| group.members)
    }
}

async fn answer_group_members<Q, A, F>(members: Vec<QueryGroupMember<Q, A>>, ask: impl FnOnce(Vec<Q>) -> F)
where
    F: Future<Output = Vec<A>>,
{
    let (questions, senders): (Vec<Q>, Vec<oneshot::Sender<A>>) = members.into_iter().unzip();
    for (sender, answer) in senders.into_iter().zip(ask(questions).await) {
        // The receiver is closed if the caller gave up.
        let _ = sender.send(answer);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::join_all;

    use super::*;

    const WAIT: Duration = Duration::from_millis(20);

    /// Sends `count` queries about two keys concurrently. Returns the size of each group.
    async fn asked(count: usize) -> Vec<usize> {
        let collector = BatchCollector::new(WAIT);
        let groups = Arc::new(Mutex::new(Vec::new()));
        let question = |number: usize| {
            let groups = Arc::clone(&groups);
            let ask = async move |questions: Vec<usize>| {
                groups.lock().unwrap().push(questions.len());
                questions.into_iter().map(|question| question * 2).collect()
            };
            collector.ask_in_batch(number % 2, number, ask)
        };
        let answers = join_all((0..count).map(question)).await;
        assert!(answers.into_iter().enumerate().all(|(number, answer)| answer == Some(number * 2)));
        let groups = groups.lock().unwrap();
        groups.clone()
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_group_does_not_wait_and_the_rest_waits_for_a_moment() {
        let began = tokio::time::Instant::now();
        assert_eq!(asked(2 * MOST_NAMES).await, [MOST_NAMES; 2]);
        assert!(began.elapsed() < WAIT);
        assert_eq!(asked(2 * MOST_NAMES + 2).await, [MOST_NAMES, MOST_NAMES, 1, 1]);
        assert!(began.elapsed() >= WAIT);
    }

    #[tokio::test(start_paused = true)]
    async fn who_gives_up_holds_up_nobody() {
        let collector = Arc::new(BatchCollector::new(WAIT));
        let asked = Arc::new(AtomicUsize::new(0));
        let ask = |asked: &Arc<AtomicUsize>| {
            let asked = Arc::clone(asked);
            async move |questions: Vec<u8>| {
                asked.fetch_add(questions.len(), Ordering::Relaxed);
                questions
            }
        };
        let first = tokio::time::timeout(WAIT / 2, collector.ask_in_batch((), 1, ask(&asked)));
        let (first, second) = tokio::join!(first, collector.ask_in_batch((), 2, ask(&asked)));
        assert!(first.is_err());
        assert_eq!((second, asked.load(Ordering::Relaxed)), (Some(2), 2));
    }

    #[tokio::test(start_paused = true)]
    async fn questions_whose_asking_is_broken_off_have_no_answer() {
        let collector: BatchCollector<(), u8, u8> = BatchCollector::new(WAIT);
        assert_eq!(collector.ask_in_batch((), 1, async |_| panic!("a bug")).await, None);
    }
}
