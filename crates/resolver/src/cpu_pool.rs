//! A small thread pool for CPU-bound work: judging evidence and cards.
//!
//! The worst card takes some milliseconds to judge. On a worker of the async runtime, it would delay every connection,
//! including the gate's. Here it only delays other jobs. Half of the processors, or a few, are enough, because a
//! resolution mostly waits for the network.
//!
//! Jobs start in the order of their [urgency](CpuJobUrgency) and are never interrupted. One extra thread runs only jobs
//! for the gate, so that the gate never waits for a client's document.

use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
#[cfg(any(test, feature = "unstable"))]
use std::sync::atomic::{AtomicUsize, Ordering};
#[cfg(any(test, feature = "unstable"))]
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::cpu_share::{ClientCpuPermit, CpuJobUrgency, CpuTaskContext};

/// Maximum number of threads, including the gate's, however many processors there are. They judge thousands of
/// documents per second, and use 80 MiB together if each judges the worst one.
pub const MAX_THREADS: usize = 5;

/// Maximum number of running and queued jobs per urgency. At 20 ms each, one thread starts the last of them within a
/// few seconds. Each job holds at most a few documents of 256 KiB.
const MAX_JOBS: usize = 64;

/// Permits of one client per urgency and shared thread: one for the running job and one for the next.
const PERMITS_PER_CLIENT: usize = 2;

/// A job that is ready to run. It holds its permits until it ends.
type CpuJob = Box<dyn FnOnce(Option<HeldJobPermits>) + Send>;

/// Receives the result of a job, or its panic.
type JobResultReceiver<T> = oneshot::Receiver<thread::Result<T>>;

/// The threads and their queue. The threads end when the pool is dropped and the last job is done.
pub struct CpuPool {
    queue: Arc<JobQueue>,
    /// One semaphore per urgency, with a permit for each job. They bound the queue, which is otherwise unbounded.
    permits: [Arc<Semaphore>; CpuJobUrgency::ALL.len()],
    threads: usize,
    #[cfg(any(test, feature = "unstable"))]
    most: usize,
    /// Number of jobs that have started.
    #[cfg(any(test, feature = "unstable"))]
    begun: Arc<AtomicUsize>,
}

/// There are too many jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuPoolFullError;

/// Jobs that have not started.
#[derive(Default)]
struct JobQueue {
    waiting: Mutex<WaitingJobs>,
    changed: Condvar,
}

#[derive(Default)]
struct WaitingJobs {
    jobs: Vec<WaitingJob>,
    /// The number of the next job.
    next: u64,
    /// No more jobs will be added.
    has_ended: bool,
}

struct WaitingJob {
    order: JobOrder,
    permits: Option<HeldJobPermits>,
    job: CpuJob,
}

/// The order in which jobs start: by urgency, then round-robin between clients, then by arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct JobOrder {
    urgency: CpuJobUrgency,
    /// How many jobs of the same client were running or queued before it.
    rank: usize,
    number: u64,
}

impl JobQueue {
    fn lock_waiting(&self) -> MutexGuard<'_, WaitingJobs> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a job and returns its number.
    fn add_job(&self, urgency: CpuJobUrgency, rank: usize, permits: Option<HeldJobPermits>, job: CpuJob) -> u64 {
        let mut waiting = self.lock_waiting();
        let number = waiting.next;
        waiting.next += 1;
        waiting.jobs.push(WaitingJob { order: JobOrder { urgency, rank, number }, permits, job });
        self.changed.notify_all();
        number
    }

    /// Raises the urgency of a job that has not started.
    fn raise_urgency(&self, number: u64, urgency: CpuJobUrgency) {
        if let Some(waiting) = self.lock_waiting().jobs.iter_mut().find(|waiting| waiting.order.number == number) {
            waiting.order.urgency = urgency;
            self.changed.notify_all();
        }
    }

    fn close_queue(&self) {
        self.lock_waiting().has_ended = true;
        self.changed.notify_all();
    }

    /// Waits for a job that is at least as urgent as `least`. `None` if no more jobs will be added.
    fn wait_for_next_job(&self, least: CpuJobUrgency) -> Option<WaitingJob> {
        let mut waiting = self.lock_waiting();
        loop {
            let fit = waiting.jobs.iter().enumerate().filter(|(_, waiting)| waiting.order.urgency <= least);
            if let Some((index, _)) = fit.min_by_key(|(_, waiting)| waiting.order) {
                return Some(waiting.jobs.swap_remove(index));
            }
            if waiting.has_ended {
                return None;
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The permits of a job: one of its client's, and one of the pool's.
struct HeldJobPermits {
    client: Option<ClientCpuPermit>,
    urgency: CpuJobUrgency,
    _of_all: OwnedSemaphorePermit,
}

impl CpuPool {
    /// Starts the threads.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub(crate) fn start_pool() -> io::Result<Self> {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Self::with_threads((processors / 2).clamp(1, MAX_THREADS - 1), MAX_JOBS)
    }

    /// A pool with `threads` threads for all jobs, and one for the gate's.
    fn with_threads(threads: usize, permits: usize) -> io::Result<Self> {
        let queue = Arc::<JobQueue>::default();
        let for_all = std::iter::repeat_n(CpuJobUrgency::Document, threads);
        for least in for_all.chain([CpuJobUrgency::Gate]) {
            let queue = Arc::clone(&queue);
            let work = move || {
                while let Some(WaitingJob { job, permits, .. }) = queue.wait_for_next_job(least) {
                    job(permits);
                }
            };
            thread::Builder::new().name("judge".to_owned()).spawn(work)?;
        }
        let permits = if clresolve_core::mutant!("endless-jobs") { Semaphore::MAX_PERMITS } else { permits };
        Ok(Self {
            queue,
            permits: CpuJobUrgency::ALL.map(|_| Arc::new(Semaphore::new(permits))),
            threads,
            #[cfg(any(test, feature = "unstable"))]
            most: permits,
            #[cfg(any(test, feature = "unstable"))]
            begun: Arc::default(),
        })
    }

    /// Permits of one client per urgency.
    pub const fn permits_per_client(&self) -> usize {
        self.threads * PERMITS_PER_CLIENT
    }

    /// Runs `job` once a permit is free and returns its result. For callers whose number is bounded. A job that was
    /// queued runs even if its caller gives up.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> impl Future<Output = T> + Send {
        // Pack the job first, so that the future does not capture its contents.
        let (job, result) = self.wrap_job(job);
        async move {
            if clresolve_core::mutant!("jobs-on-workers") {
                job(None);
                return unwrap_job_result(result.await);
            }
            let work = CpuTaskContext::current();
            let permits = loop {
                let urgency = work.urgency();
                let permits = async {
                    let client = work.acquire_permit(urgency).await;
                    let of_all = Arc::clone(self.semaphore_for_urgency(urgency)).acquire_owned().await;
                    HeldJobPermits { client, urgency, _of_all: of_all.expect("the semaphore is never closed") }
                };
                tokio::select! {
                    permits = permits => break permits,
                    // A more urgent job takes its permit from another semaphore.
                    () = work.wait_until_raised(urgency) => {}
                }
            };
            self.queue_and_wait(&work, permits, job, result).await
        }
    }

    /// Like [`CpuPool::run`], but fails if the pool has no free permit when the client gets its own.
    ///
    /// # Errors
    /// [`CpuPoolFullError`].
    pub fn try_run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = Result<T, CpuPoolFullError>> + Send {
        let (job, result) = self.wrap_job(job);
        async move {
            let work = CpuTaskContext::current();
            let urgency = work.urgency();
            let client = work.acquire_permit(urgency).await;
            let of_all =
                Arc::clone(self.semaphore_for_urgency(urgency)).try_acquire_owned().map_err(|_| CpuPoolFullError)?;
            Ok(self.queue_and_wait(&work, HeldJobPermits { client, urgency, _of_all: of_all }, job, result).await)
        }
    }

    fn semaphore_for_urgency(&self, urgency: CpuJobUrgency) -> &Arc<Semaphore> {
        &self.permits[urgency as usize]
    }

    /// Polls `work`, whose steps are CPU-bound: each poll is a job, so that waiting occupies no thread.
    pub async fn poll_future_on_pool<F: Future<Output: Send> + Send + 'static>(&self, work: F) -> F::Output {
        let (mut work, woken, runtime) = (Box::pin(work), Arc::new(PollWaker::default()), Handle::current());
        loop {
            let (waker, runtime) = (Waker::from(Arc::clone(&woken)), runtime.clone());
            let step = move || {
                let _within = runtime.enter();
                let polled = work.as_mut().poll(&mut Context::from_waker(&waker));
                (work, polled)
            };
            match self.run(step).await {
                (_, Poll::Ready(output)) => return output,
                (rest, Poll::Pending) => work = rest,
            }
            woken.0.notified().await;
        }
    }

    /// Number of running and queued jobs.
    #[cfg(any(test, feature = "unstable"))]
    pub fn unfinished_job_count(&self) -> usize {
        self.permits.iter().map(|permits| self.most - permits.available_permits()).sum()
    }

    /// Number of threads that run all jobs.
    #[cfg(any(test, feature = "unstable"))]
    pub const fn thread_count(&self) -> usize {
        self.threads
    }

    /// Number of queued jobs.
    #[cfg(any(test, feature = "unstable"))]
    pub fn queued_count(&self) -> usize {
        self.queue.lock_waiting().jobs.len()
    }

    /// Number of jobs that have ever started.
    #[cfg(any(test, feature = "unstable"))]
    pub fn started_count(&self) -> usize {
        self.begun.load(Ordering::Relaxed)
    }

    /// Wraps a job so that it releases its permits and then sends its result.
    fn wrap_job<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> (CpuJob, JobResultReceiver<T>) {
        let (done, result) = oneshot::channel();
        #[cfg(any(test, feature = "unstable"))]
        let begun = Arc::clone(&self.begun);
        let job = move |permits: Option<HeldJobPermits>| {
            #[cfg(any(test, feature = "unstable"))]
            begun.fetch_add(1, Ordering::Relaxed);
            let result = catch_unwind(AssertUnwindSafe(job));
            drop(permits);
            // The caller may have given up.
            let _ = done.send(result);
        };
        (Box::new(job), result)
    }

    /// Queues a job and waits for its result.
    async fn queue_and_wait<T>(
        &self,
        work: &CpuTaskContext,
        permits: HeldJobPermits,
        job: CpuJob,
        mut result: JobResultReceiver<T>,
    ) -> T {
        let (mut urgency, rank) =
            (permits.urgency, permits.client.as_ref().map_or(0, |client| client.permits_held_before()));
        let rank = if clresolve_core::mutant!("clients-have-no-turns") { 0 } else { rank };
        let permits = (!clresolve_core::mutant!("places-freed-early")).then_some(permits);
        let number = self.queue.add_job(urgency, rank, permits, job);
        loop {
            tokio::select! {
                result = &mut result => return unwrap_job_result(result),
                () = work.wait_until_raised(urgency) => {
                    urgency = work.urgency();
                    self.queue.raise_urgency(number, urgency);
                }
            }
        }
    }
}

/// The result of a job. Resumes the job's panic in the caller.
fn unwrap_job_result<T>(result: Result<thread::Result<T>, oneshot::error::RecvError>) -> T {
    result.expect("a job that panics gives its panic").unwrap_or_else(|panic| resume_unwind(panic))
}

impl Drop for CpuPool {
    fn drop(&mut self) {
        self.queue.close_queue();
    }
}

/// Wakes the task that waits for the next poll.
#[derive(Default)]
struct PollWaker(Notify);

impl Wake for PollWaker {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}

/// A pool whose threads are busy with jobs that block.
#[cfg(any(test, feature = "unstable"))]
pub struct OccupiedCpuPool {
    jobs: Vec<tokio::task::JoinHandle<()>>,
    /// Number of blocking jobs that have started.
    begun: Arc<AtomicUsize>,
    /// Each message ends one of the blocking jobs.
    release: Sender<()>,
    /// Number of blocking jobs that were ended one by one.
    released: usize,
    /// Number of jobs that had started when the last of them was ended.
    released_after: usize,
}

#[cfg(any(test, feature = "unstable"))]
impl OccupiedCpuPool {
    /// Occupies every thread.
    pub fn occupy_all(pool: &Arc<CpuPool>) -> Self {
        Self::occupy_with(pool, MAX_THREADS, CpuJobUrgency::Gate)
    }

    /// Occupies every thread except the gate's, and queues further jobs: `jobs` in all, each of another client.
    pub fn occupy_with_documents(pool: &Arc<CpuPool>, jobs: usize) -> Self {
        Self::occupy_with(pool, jobs, CpuJobUrgency::Document)
    }

    fn occupy_with(pool: &Arc<CpuPool>, jobs: usize, urgency: CpuJobUrgency) -> Self {
        let (release, wait) = channel::<()>();
        let (wait, begun) = (Arc::new(Mutex::new(wait)), Arc::<AtomicUsize>::default());
        let job = |_| {
            let (pool, begun) = (Arc::clone(pool), Arc::clone(&begun));
            let wait: Arc<Mutex<Receiver<()>>> = Arc::clone(&wait);
            tokio::spawn(async move {
                let of_all = Arc::clone(pool.semaphore_for_urgency(urgency)).acquire_owned().await;
                let of_all = of_all.expect("the semaphore is never closed");
                let permits = HeldJobPermits { client: None, urgency, _of_all: of_all };
                let (job, result) = pool.wrap_job(move || {
                    begun.fetch_add(1, Ordering::AcqRel);
                    let _ = wait.lock().expect("no job panics").recv();
                });
                pool.queue_and_wait(&CpuTaskContext::without_client(urgency), permits, job, result).await
            })
        };
        let jobs = (0..jobs).map(job).collect();
        Self { jobs, begun, release, released: 0, released_after: 0 }
    }

    /// Ends one of the blocking jobs if they occupy every thread while another job is queued.
    ///
    /// # Panics
    /// If the thread that was freed last started a blocking job before the other one.
    pub fn release_one_if_waited_for(&mut self, pool: &CpuPool) {
        let begun = self.begun.load(Ordering::Acquire);
        if begun != self.released + pool.thread_count() || pool.queued_count() == self.jobs.len() - begun {
            return;
        }
        assert!(pool.started_count() > self.released_after + 1, "a blocking job started before the other one");
        self.released += 1;
        self.released_after = pool.started_count();
        self.release.send(()).expect("a job goes on");
    }

    /// Whether other jobs wait for the blocking ones.
    pub fn is_waited_for(pool: &CpuPool) -> bool {
        pool.unfinished_job_count() > MAX_THREADS
    }

    /// Waits until the pool has `count` jobs.
    pub async fn wait_for_jobs(pool: &CpuPool, count: usize) {
        while pool.unfinished_job_count() != count {
            tokio::task::yield_now().await;
        }
    }

    /// Ends the blocking jobs.
    pub async fn release(self) {
        drop(self.release);
        for job in self.jobs {
            job.await.expect("it ends");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures_util::{FutureExt as _, poll};
    use tokio::time::{Duration, timeout};

    use super::*;
    use crate::cpu_share::{self, ClientCpuShare};

    #[tokio::test]
    async fn a_full_pool_refuses_and_makes_patient_callers_wait() {
        let pool = CpuPool::with_threads(1, 1).expect("a thread");
        let (go, wait) = mpsc::channel::<()>();
        let mut first = Box::pin(pool.run(move || wait.recv().is_ok()));
        assert!(poll!(&mut first).is_pending());
        assert_eq!(pool.try_run(|| ()).now_or_never(), Some(Err(CpuPoolFullError)));
        let mut second = Box::pin(pool.run(|| 2));
        assert!(poll!(&mut second).is_pending());
        go.send(()).expect("the job waits");
        assert!(first.await);
        assert_eq!(second.await, 2);
        assert_eq!(pool.try_run(|| 3).await, Ok(3));
    }

    #[tokio::test]
    async fn a_caller_that_gives_up_frees_no_place_before_the_job_ends() {
        let pool = CpuPool::with_threads(1, 1).expect("a thread");
        let (go, wait) = mpsc::channel::<()>();
        let mut given_up = Box::pin(pool.run(move || wait.recv().is_ok()));
        assert!(poll!(&mut given_up).is_pending());
        drop(given_up);
        assert_eq!(pool.try_run(|| ()).now_or_never(), Some(Err(CpuPoolFullError)));
        go.send(()).expect("the job waits");
        assert_eq!(pool.run(|| 1).await, 1);
    }

    /// A share with this many permits.
    struct Share {
        permits: [Arc<Semaphore>; CpuJobUrgency::ALL.len()],
        most: usize,
    }

    impl Share {
        fn of(most: usize) -> Arc<dyn ClientCpuShare> {
            Arc::new(Self { permits: CpuJobUrgency::ALL.map(|_| Arc::new(Semaphore::new(most))), most })
        }
    }

    #[async_trait::async_trait]
    impl ClientCpuShare for Share {
        async fn acquire_permit(&self, urgency: CpuJobUrgency) -> ClientCpuPermit {
            let permits = &self.permits[urgency as usize];
            let held = Arc::clone(permits).acquire_owned().await.expect("it is never closed");
            ClientCpuPermit::new(self.most - permits.available_permits() - 1, held)
        }
    }

    #[tokio::test]
    async fn a_client_takes_its_share_of_the_places_and_no_more() {
        let pool = Arc::new(CpuPool::with_threads(1, 4).expect("a thread"));
        let share = CpuTaskContext::new(Share::of(2), CpuJobUrgency::Gate);
        let (go, wait) = mpsc::channel::<()>();
        let of_client = |pool: &Arc<CpuPool>, job: Box<dyn FnOnce() + Send>| {
            let pool = Arc::clone(pool);
            Box::pin(cpu_share::run_in_context(share.clone(), async move {
                // A spawned task belongs to the client of the task that spawned it.
                cpu_share::spawn_task(async move { pool.run(job).await }).await.expect("it ends");
            }))
        };
        let mut first = of_client(&pool, Box::new(move || _ = wait.recv()));
        let mut others: Vec<_> = (0..6).map(|_| of_client(&pool, Box::new(|| ()))).collect();
        assert!(poll!(&mut first).is_pending());
        for other in &mut others {
            assert!(poll!(other).is_pending());
        }
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(pool.unfinished_job_count(), 2, "its share is two permits");
        drop(others);
        let mut of_another = Box::pin(pool.try_run(|| 3));
        assert!(poll!(&mut of_another).is_pending(), "another has a permit");
        go.send(()).expect("the job waits");
        first.await;
        assert_eq!(of_another.await, Ok(3));
    }

    /// Records the order in which jobs start. A blocking job of the gate's is first, until the rest is queued.
    struct Line {
        pool: Arc<CpuPool>,
        begun: Arc<Mutex<Vec<&'static str>>>,
        jobs: Vec<tokio::task::JoinHandle<()>>,
    }

    impl Line {
        fn new() -> Self {
            Self {
                pool: Arc::new(CpuPool::with_threads(1, MAX_JOBS).expect("a thread")),
                begun: Arc::default(),
                jobs: Vec::new(),
            }
        }

        async fn add(&mut self, work: &CpuTaskContext, name: &'static str) {
            let (pool, begun, before) = (Arc::clone(&self.pool), Arc::clone(&self.begun), self.pool.queued_count());
            let job = async move { pool.run(move || begun.lock().expect("no panic").push(name)).await };
            self.jobs.push(cpu_share::spawn_task_in_context(work.clone(), job));
            while self.pool.queued_count() == before {
                tokio::task::yield_now().await;
            }
        }

        async fn begun(self, busy: OccupiedCpuPool) -> Vec<&'static str> {
            busy.release().await;
            for job in self.jobs {
                job.await.expect("it ends");
            }
            let begun = self.begun.lock().expect("no panic");
            begun.clone()
        }
    }

    #[tokio::test]
    async fn decisions_come_before_documents_and_clients_take_turns() {
        let mut line = Line::new();
        let busy = OccupiedCpuPool::occupy_all(&line.pool);
        while line.pool.started_count() < 2 {
            tokio::task::yield_now().await;
        }
        let [one, other] = [Share::of(2), Share::of(2)];
        let work = |share: &Arc<dyn ClientCpuShare>, urgency| CpuTaskContext::new(Arc::clone(share), urgency);
        line.add(&work(&one, CpuJobUrgency::Document), "a document of one").await;
        line.add(&work(&other, CpuJobUrgency::Document), "a document of the other").await;
        let [one, other] = [Share::of(2), Share::of(2)];
        line.add(&work(&one, CpuJobUrgency::Decision), "a decision of one").await;
        line.add(&work(&one, CpuJobUrgency::Decision), "the next of one").await;
        line.add(&work(&other, CpuJobUrgency::Decision), "a decision of the other").await;
        let expected = [
            "a decision of one",
            "a decision of the other",
            "the next of one",
            "a document of one",
            "a document of the other",
        ];
        assert_eq!(line.begun(busy).await, expected);
    }

    /// Otherwise a client could delay a name for the gate by asking for it first.
    #[tokio::test]
    async fn work_that_the_gate_waits_for_becomes_the_gates() {
        /// Longer than any job here takes.
        const ENDLESS: Duration = Duration::from_secs(60);
        let pool = Arc::new(CpuPool::with_threads(1, MAX_JOBS).expect("a thread"));
        let busy = OccupiedCpuPool::occupy_with_documents(&pool, 1);
        while pool.started_count() == 0 {
            tokio::task::yield_now().await;
        }
        let share = Share::of(1);
        let works = [(); 2].map(|()| CpuTaskContext::new(Arc::clone(&share), CpuJobUrgency::Document));
        let run = |work: &CpuTaskContext| {
            let pool = Arc::clone(&pool);
            cpu_share::spawn_task_in_context(work.clone(), async move { pool.run(|| ()).await })
        };
        let [queued, without_permit] = [run(&works[0]), run(&works[1])];
        OccupiedCpuPool::wait_for_jobs(&pool, 2).await;
        assert_eq!(pool.started_count(), 1, "the document holds them up");
        for (work, job) in works.iter().zip([queued, without_permit]).rev() {
            work.raise_urgency_to(&CpuTaskContext::current());
            timeout(ENDLESS, job).await.expect("the gate's thread does it").expect("it does not panic");
        }
        busy.release().await;
    }

    #[tokio::test]
    async fn each_poll_of_a_future_is_a_job_and_waiting_needs_no_permit() {
        let pool = CpuPool::with_threads(1, 1).expect("a thread");
        let name = || thread::current().name().map(str::to_owned);
        let (go, wait) = oneshot::channel::<()>();
        let mut driven = Box::pin(pool.poll_future_on_pool(async move {
            let first = name();
            wait.await.expect("it is told");
            (first, name())
        }));
        while pool.started_count() == 0 || pool.unfinished_job_count() != 0 {
            assert!(poll!(&mut driven).is_pending());
            tokio::task::yield_now().await;
        }
        assert_eq!(pool.try_run(|| 1).await, Ok(1), "it waits without a permit");
        go.send(()).expect("it goes on");
        assert_eq!(driven.await, (Some("judge".to_owned()), Some("judge".to_owned())));
    }

    #[tokio::test]
    async fn a_panic_reaches_the_caller_and_leaves_the_thread() {
        let pool = Arc::new(CpuPool::with_threads(1, 4).expect("a thread"));
        let calling = Arc::clone(&pool);
        let panicking = tokio::spawn(async move { calling.run(|| panic!("a bug")).await });
        assert!(panicking.await.expect_err("it panics").is_panic());
        assert_eq!(pool.run(|| 1).await, 1);
    }
}
