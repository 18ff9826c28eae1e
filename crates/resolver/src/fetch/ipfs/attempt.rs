//! One retrieval, and the requests to one gateway within it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use clresolve_ipfs::car::CarFeed;
use clresolve_ipfs::{ContentId, Progress, Walk, WalkError};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use jiff::Timestamp;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};
use url::Url;

use super::gateway::{BAN, CROWDED_REST, GatewayFault};
use super::hedge::{AT_ONCE, Next, Plan};
use super::reorder_budget::{ReorderBudget, Reservation};
use super::retrieval::{Retrieval, Want};
use super::route::{Route, media_type};
use super::score::{Scores, Turn};
use crate::fetch::egress::{Departure, Reply, SHORT_BODY, deadline_in};
use crate::fetch::whole_body;
use crate::fetch::{Cause, FetchError};
use crate::telemetry;

const ACCEPT_CAR: &str = "application/vnd.ipld.car;version=1;order=dfs;dups=n";
const ACCEPT_RAW: &str = "application/vnd.ipld.raw";

/// The media type of error and login pages. Such a page is not a block, but if it looks like a page it does not count
/// as a wrong block either.
const PAGE: &str = "text/html";

/// One retrieval: a walk that all gateways feed.
pub(super) struct Retrieving<'a> {
    want: &'a Want<'a>,
    routes: &'a [Route],
    scores: &'a Scores,
    reorder: &'a ReorderBudget,
    /// The start time, for the scores.
    now: Timestamp,
    began: Instant,
    shared: Mutex<Shared>,
}

struct Shared {
    walk: Walk,
    last_progress: Option<Instant>,
    requests: u32,
    /// Paired with each gateway's index in the configuration.
    failures: Vec<(usize, GatewayFault)>,
}

impl<'a> Retrieving<'a> {
    /// Starts a retrieval from the blocks that are already known.
    pub(super) fn new(
        want: &'a Want<'a>,
        routes: &'a [Route],
        scores: &'a Scores,
        reorder: &'a ReorderBudget,
        now: Timestamp,
    ) -> Self {
        let walk = Walk::new(want.cid, want.path, want.budget);
        let mut shared = Shared { walk, last_progress: None, requests: 0, failures: Vec::new() };
        shared.try_known(want.known);
        Self { want, routes, scores, reorder, now, began: Instant::now(), shared: Mutex::new(shared) }
    }

    /// The gateways to ask, in this order. The others are recorded as resting, unless the retrieval is already
    /// complete.
    pub(super) fn turns(&self) -> Vec<Turn> {
        let turns = self.scores.turns(self.now);
        let mut shared = self.shared();
        if shared.walk.wanted().is_some() {
            let resting = (0..self.routes.len()).filter(|gateway| turns.iter().all(|turn| turn.gateway != *gateway));
            shared.failures.extend(resting.map(|gateway| (gateway, GatewayFault::Resting)));
        }
        turns
    }

    /// Asks gateways in order until the walk needs nothing more, all of them have failed, or `deadline` has passed.
    /// Requests that are then still running are dropped.
    pub(super) async fn run(&self, turns: Vec<Turn>, deadline: Instant) {
        let mut plan = Plan::new(turns, Instant::now(), deadline);
        let mut running = FuturesUnordered::new();
        while self.wanted().is_some() {
            let last_progress = self.shared().last_progress;
            match plan.next(Instant::now(), last_progress) {
                Next::Ask { gateway, until } => running.push(self.ask(gateway, until)),
                Next::End => return,
                Next::Wait { until } => tokio::select! {
                    biased;
                    Some(()) = running.next() => plan.ended(),
                    () = sleep_until(until) => {}
                },
            }
        }
    }

    pub(super) fn finish(self) -> Retrieval {
        let mut shared = self.shared.into_inner().unwrap_or_else(PoisonError::into_inner);
        shared.failures.sort_by_key(|(gateway, _)| *gateway);
        let label = |gateway: usize| self.routes[gateway].label.clone();
        let liars = shared.failures.iter().filter_map(|(gateway, fault)| match fault {
            GatewayFault::WrongBlock(cid) => Some((label(*gateway), **cid)),
            _ => None,
        });
        Retrieval {
            liars: liars.collect(),
            blocks: shared.walk.take_blocks(),
            ended: shared.walk.finish(),
            requests: shared.requests,
            failures: shared.failures.into_iter().map(|(gateway, fault)| (label(gateway), fault)).collect(),
        }
    }

    fn wanted(&self) -> Option<ContentId> {
        self.shared().walk.wanted().copied()
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a gateway's fault in this report and in its score.
    fn blame(&self, gateway: usize, fault: GatewayFault) {
        let label = &self.routes[gateway].label;
        let now = later(self.now, self.began.elapsed());
        match &fault {
            GatewayFault::WrongBlock(cid) => {
                self.scores.rest(gateway, if clresolve_core::mutant!("liars-stay") { now } else { later(now, BAN) });
                telemetry::gateway_lied(label);
                tracing::warn!(gateway = label, %cid, "a gateway sent a wrong block");
            }
            GatewayFault::Throttled { rest, .. } => self.scores.rest(gateway, later(now, *rest)),
            GatewayFault::Fetch(FetchError::Unavailable(Cause::NoTurn)) => {
                self.scores.rest(gateway, later(now, CROWDED_REST));
            }
            // Perhaps no gateway has the content, or this gateway is not allowed to serve it. Neither predicts its next
            // response.
            GatewayFault::Fetch(FetchError::Unavailable(Cause::Status(404 | 410 | 451))) => {}
            _ => self.scores.failed(gateway, now),
        }
        self.shared().failures.push((gateway, fault));
    }

    /// Asks a gateway, which must finish by `deadline`.
    async fn ask(&self, gateway: usize, deadline: Instant) {
        if let Err(fault) = Attempt::new(self, gateway).run(deadline).await {
            self.blame(gateway, fault);
        }
    }
}

impl Shared {
    /// Supplies known bytes as long as the walk wants a raw block that they match.
    fn try_known(&mut self, known: &[Bytes]) {
        while self.walk.wanted().is_some_and(ContentId::is_raw) {
            if !known.iter().cloned().any(|bytes| self.walk.supply(bytes).is_ok()) {
                return;
            }
        }
    }
}

/// The requests to one gateway in one retrieval.
struct Attempt<'a> {
    all: &'a Retrieving<'a>,
    route: &'a Route,
    feed: CarFeed,
    /// Memory for blocks of the CAR that arrive before the walk needs them, reserved when the CAR starts.
    ahead: Option<Reservation<'a>>,
    watch: FirstBlockTimer<'a>,
}

impl<'a> Attempt<'a> {
    fn new(all: &'a Retrieving<'a>, gateway: usize) -> Self {
        Self {
            all,
            route: &all.routes[gateway],
            feed: CarFeed::new(&all.want.budget, 0),
            ahead: None,
            watch: FirstBlockTimer::new(all.scores, gateway),
        }
    }

    async fn run(mut self, deadline: Instant) -> Result<(), GatewayFault> {
        let halfway = deadline_in(time_left(deadline) / 2);
        let mut ended = self.car(halfway).await;
        if ended.is_ok() {
            ended = self.blocks(deadline).await;
        }
        self.watch.stop();
        ended
    }

    /// Requests path and file in one CAR. A response that is not a CAR, lacks blocks or is late is no fault, because
    /// the blocks can be requested separately.
    async fn car(&mut self, deadline: Instant) -> Result<(), GatewayFault> {
        let url = self.route.car_url(self.all.want);
        match self.send(&url, ACCEPT_CAR, deadline).await {
            Ok(reply) if reply.status() == 200 => self.read_car(reply).await,
            Ok(_) | Err(GatewayFault::Fetch(FetchError::Unavailable(Cause::Timeout | Cause::NoTurn))) => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    /// Reads a CAR until the walk is complete or the CAR is of no further use. Only a wrong block is an error.
    async fn read_car(&mut self, reply: Reply) -> Result<(), GatewayFault> {
        let budget = &self.all.want.budget;
        let Ok(mut body) = reply.into_body(budget.dag_bytes) else { return Ok(()) };
        let ahead = self.ahead.insert(self.all.reorder.take(budget.dag_bytes / (AT_ONCE + 1)));
        self.feed = CarFeed::new(budget, ahead.bytes());
        let mut reservation = None;
        while let Ok(Some(chunk)) = body.next().await {
            self.feed.read(chunk);
            match self.take_read().await {
                Ok(Some(_)) if self.feed.unread() <= SHORT_BODY => reservation = None,
                Ok(Some(_)) if reservation.is_some() => {}
                Ok(Some(_)) => {
                    let block_size = self.all.want.budget.block_size;
                    let Ok(block) = self.route.bodies.reserve(block_size, body.deadline()).await else { break };
                    reservation = Some(block);
                }
                Ok(None) => break,
                Err(WalkError::HashMismatch { cid }) => return Err(GatewayFault::WrongBlock(cid)),
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// Requests the missing blocks one by one. Each request ends with a supplied block, from this gateway or another,
    /// or is the last. [`Budget::blocks`](clresolve_ipfs::Budget::blocks) therefore limits their number.
    async fn blocks(&mut self, deadline: Instant) -> Result<(), GatewayFault> {
        let mut bytes_left = self.all.want.budget.dag_bytes;
        while let Some(cid) = self.wanted().await? {
            let reply = self.send(&self.route.block_url(&cid), ACCEPT_RAW, deadline).await?;
            let is_page = media_type(&reply) == Some(PAGE);
            let block = whole_body(reply, self.all.want.budget.block_size.min(bytes_left), &self.route.bodies).await?;
            bytes_left -= block.len();
            let is_page = is_page && looks_like_a_page(&block);
            if !self.take(&cid, block) {
                return Err(if is_page { Cause::Malformed.into() } else { GatewayFault::WrongBlock(Box::new(cid)) });
            }
        }
        Ok(())
    }

    /// Sends a request and counts it. A request that got no permit was never sent and is not counted.
    async fn send(&mut self, url: &Url, accept: &'static str, deadline: Instant) -> Result<Reply, GatewayFault> {
        self.all.shared().requests += 1;
        let sent = self.route.send(url, accept, self.watch.next_request(), deadline).await;
        if matches!(sent, Err(GatewayFault::Fetch(FetchError::Unavailable(Cause::NoTurn)))) {
            self.all.shared().requests -= 1;
        }
        sent
    }

    /// The next wanted block, after the walk has used the blocks of this gateway's CAR.
    async fn wanted(&mut self) -> Result<Option<ContentId>, GatewayFault> {
        match self.take_read().await {
            Err(WalkError::HashMismatch { cid }) => Err(GatewayFault::WrongBlock(cid)),
            _ => Ok(self.all.wanted()),
        }
    }

    /// Feeds the bytes read of the CAR to the walk and returns the block that is wanted next. The task yields after
    /// each block: hashing a large one takes milliseconds, during which this worker's other connections wait.
    async fn take_read(&mut self) -> Result<Option<ContentId>, WalkError> {
        while self.advance(CarFeed::step)? == Progress::Moved {
            yield_now().await;
        }
        Ok(self.all.wanted())
    }

    /// Supplies the block requested as `cid`. Returns false if the bytes do not match the CID. Another gateway may
    /// already have supplied it.
    fn take(&mut self, cid: &ContentId, block: Bytes) -> bool {
        self.advance(|_, walk| match walk.wanted() {
            Some(wanted) if wanted == cid => walk.supply(block).is_ok(),
            _ => cid.verify(&block),
        })
    }

    /// Applies `change` to the walk. If the walk made progress, records the time and supplies known bytes.
    fn advance<T>(&mut self, change: impl FnOnce(&mut CarFeed, &mut Walk) -> T) -> T {
        let mut shared = self.all.shared();
        let before = shared.walk.blocks();
        let done = change(&mut self.feed, &mut shared.walk);
        if shared.walk.blocks() > before {
            shared.try_known(self.all.want.known);
            shared.last_progress = Some(Instant::now());
            self.watch.stop_at_first_block();
        }
        done
    }
}

/// Measures the time until a gateway's first proven block. It pauses while a request waits for a permit.
struct FirstBlockTimer<'a> {
    scores: &'a Scores,
    gateway: usize,
    /// Time used by the requests before the current one.
    took: Duration,
    latest: Departure,
    runs: bool,
}

impl<'a> FirstBlockTimer<'a> {
    fn new(scores: &'a Scores, gateway: usize) -> Self {
        Self { scores, gateway, took: Duration::ZERO, latest: Departure::default(), runs: true }
    }

    /// Where the next request records when it is sent.
    fn next_request(&mut self) -> Departure {
        self.took = self.elapsed();
        self.latest = Departure::default();
        self.latest.clone()
    }

    fn elapsed(&self) -> Duration {
        self.took + self.latest.time().map_or(Duration::ZERO, |left| left.elapsed())
    }

    fn stop_at_first_block(&mut self) {
        if self.runs {
            self.scores.began(self.gateway, self.elapsed());
            self.stop();
        }
    }

    fn stop(&mut self) {
        self.runs = false;
    }
}

impl Drop for FirstBlockTimer<'_> {
    /// If the timer is still running, the gateway was abandoned for another one.
    fn drop(&mut self) {
        if self.runs {
            self.scores.outrun(self.gateway, self.elapsed());
        }
    }
}

fn later(now: Timestamp, by: Duration) -> Timestamp {
    now.checked_add(by).unwrap_or(Timestamp::MAX)
}

fn time_left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

/// Whether the bytes may be an error or login page: markup, or no bytes.
fn looks_like_a_page(bytes: &[u8]) -> bool {
    let text = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes).trim_ascii_start();
    text.is_empty() || text.starts_with(b"<")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clresolve_ipfs::build::{Layout, car, tree};
    use clresolve_ipfs::{Budget, ContentPath};
    use futures_util::poll;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::task::JoinSet;

    use super::super::gateway::Gateway;
    use super::super::score::{Hedging, LEAST};
    use super::*;
    use crate::fetch::egress::{Call, Egress, EgressConfig};

    /// For operations that must succeed: the timeout is never reached.
    const AMPLE: Duration = Duration::from_secs(60);

    /// Longer than the patience with an unknown gateway.
    const QUEUED: Duration = Duration::from_millis(700);

    const CARD: &[u8] = b"{}";

    /// A request to which the gateway never responds.
    const UNANSWERED: &str = "unanswered";

    /// A gateway that has the card, but only as a block.
    async fn gateway() -> Gateway {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream));
            }
        });
        let url = format!("http://{address}/").parse().expect("a URL");
        Gateway { label: "first".to_owned(), url, own: false }
    }

    async fn serve(mut stream: TcpStream) -> std::io::Result<()> {
        let mut head = [0; 4096];
        loop {
            let read = stream.read(&mut head).await?;
            let head = String::from_utf8_lossy(&head[..read]).into_owned();
            let (status, body) = match head.contains("format=car") {
                _ if read == 0 || head.contains(UNANSWERED) => std::future::pending().await,
                true => ("404 Not Found", &b""[..]),
                false => ("200 OK", CARD),
            };
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len());
            stream.write_all(&[answer.as_bytes(), body].concat()).await?;
        }
    }

    /// Opens the maximum number of concurrent requests to the gateway. They stay open until the set is dropped.
    async fn crowd(egress: &Egress, gateway: &Gateway) -> JoinSet<()> {
        let client = egress.operator(&gateway.url).expect("a client");
        let url = gateway.url.join(UNANSWERED).expect("a URL");
        let mut crowd = JoinSet::new();
        loop {
            let (departure, client, url) = (Departure::default(), client.clone(), url.clone());
            let call = Call::get("*/*").in_turn(departure.clone());
            crowd.spawn(async move {
                let _ = client.send(&url, call, deadline_in(AMPLE)).await;
            });
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            if departure.time().is_none() {
                return crowd;
            }
        }
    }

    #[tokio::test]
    async fn each_block_of_a_car_ends_the_poll() {
        let file = Bytes::from_iter(0..=u8::MAX);
        let (cid, blocks) =
            tree(&BTreeMap::from([("card.json".to_owned(), file.clone())]), Layout { chunk: 100, ..Layout::default() });
        let (path, budget) = (ContentPath::literal("card.json").expect("a path"), Budget::card());
        let want = Want { cid, path: &path, known: &[], budget, total: AMPLE };
        let egress = Egress::new(EgressConfig::default()).expect("an egress");
        let routes = [Route::new(&egress, gateway().await).expect("a route")];
        let (scores, reorder) = (Scores::new(1, Hedging::Learnt), ReorderBudget::new());
        let retrieving = Retrieving::new(&want, &routes, &scores, &reorder, Timestamp::UNIX_EPOCH);
        let mut attempt = Attempt::new(&retrieving, 0);
        attempt.feed = CarFeed::new(&budget, budget.dag_bytes);
        attempt.feed.read(Bytes::from(car(&cid, &blocks)));
        let mut taken = Box::pin(attempt.take_read());
        for count in 1..=blocks.len() {
            assert!(poll!(&mut taken).is_pending());
            assert_eq!(retrieving.shared().walk.blocks(), count);
        }
        assert_eq!(taken.await, Ok(None));
        drop(attempt);
        assert_eq!(retrieving.finish().ended.map(|proven| proven.bytes), Ok(file));
    }

    /// Waiting for a local permit costs the gateway nothing, and holds no resource that others could use.
    #[tokio::test]
    async fn queued_request_costs_no_score_and_no_memory() {
        let egress = Egress::new(EgressConfig { is_paced: true, ..EgressConfig::default() }).expect("an egress");
        let gateway = gateway().await;
        let crowd = crowd(&egress, &gateway).await;
        let path = ContentPath::literal("").expect("a path");
        let cid = ContentId::raw_of(CARD);
        let want = Want { cid, path: &path, known: &[], budget: Budget::card(), total: AMPLE };
        let routes = [Route::new(&egress, gateway).expect("a route")];
        let (scores, reorder) = (Scores::new(1, Hedging::Learnt), ReorderBudget::new());
        let patience = || scores.turns(Timestamp::UNIX_EPOCH)[0].patience;
        let (unknown, all) = (patience(), reorder.take(usize::MAX).bytes());
        assert!(unknown < QUEUED);

        let outrun = Retrieving::new(&want, &routes, &scores, &reorder, Timestamp::UNIX_EPOCH);
        let asked = tokio::time::timeout(QUEUED, outrun.ask(0, deadline_in(AMPLE)));
        let looked = async {
            tokio::time::sleep(QUEUED / 2).await;
            reorder.take(usize::MAX).bytes()
        };
        let (asked, free) = tokio::join!(asked, looked);
        assert!(asked.is_err(), "it waits for its turn");
        assert_eq!((patience(), free), (unknown, all));

        let served = Retrieving::new(&want, &routes, &scores, &reorder, Timestamp::UNIX_EPOCH);
        let began = Instant::now();
        tokio::join!(served.ask(0, deadline_in(AMPLE)), async {
            tokio::time::sleep(QUEUED).await;
            drop(crowd);
        });
        let (took, learnt) = (began.elapsed(), patience());
        assert_eq!(served.finish().ended.map(|proven| proven.bytes), Ok(Bytes::from_static(CARD)));
        assert!(learnt <= (took - QUEUED).max(LEAST) && learnt != unknown, "{learnt:?} of {took:?}");
    }

    #[tokio::test]
    async fn refused_content_does_not_count_against_a_gateway() {
        let path = ContentPath::literal("").expect("a path");
        let cid = ContentId::raw_of(CARD);
        let want = Want { cid, path: &path, known: &[], budget: Budget::card(), total: AMPLE };
        let egress = Egress::new(EgressConfig::default()).expect("an egress");
        let routes = [gateway().await, gateway().await].map(|one| Route::new(&egress, one).expect("a route"));
        let (scores, reorder) = (Scores::new(2, Hedging::Learnt), ReorderBudget::new());
        let retrieving = Retrieving::new(&want, &routes, &scores, &reorder, Timestamp::UNIX_EPOCH);
        let first = || scores.turns(Timestamp::UNIX_EPOCH)[0].gateway;
        for status in [404, 410, 451] {
            retrieving.blame(0, Cause::Status(status).into());
            assert_eq!(first(), 0, "{status}");
        }
        retrieving.blame(0, Cause::Status(500).into());
        assert_eq!(first(), 1);
    }
}
