//! One retrieval, and the requests to one gateway within it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use clresolve_ipfs::car::CarBlockFeed;
use clresolve_ipfs::{CarFeedProgress, ContentId, DagWalk, DagWalkError};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use jiff::Timestamp;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};
use url::Url;

use super::gateway::{BAN, CROWDED_REST, IpfsGatewayFault};
use super::hedge::{AT_ONCE, HedgeAction, HedgeSchedule};
use super::reorder_budget::{CarReorderBudget, CarReorderReservation};
use super::retrieval::{IpfsRetrieval, IpfsRetrievalRequest};
use super::route::{IpfsGatewayClient, response_media_type};
use super::score::{IpfsGatewayCandidate, IpfsGatewayScoreboard};
use crate::fetch::egress::{EgressResponse, RequestSendTime, SHORT_BODY, deadline_in};
use crate::fetch::read_success_body;
use crate::fetch::{FetchError, SourceUnavailableError};
use crate::telemetry;

const ACCEPT_CAR: &str = "application/vnd.ipld.car;version=1;order=dfs;dups=n";
const ACCEPT_RAW: &str = "application/vnd.ipld.raw";

/// The media type of error and login pages. Such a page is not a block, but if it looks like a page it does not count
/// as a wrong block either.
const PAGE: &str = "text/html";

/// One retrieval: a walk that all gateways feed.
pub(super) struct GatewayRace<'a> {
    want: &'a IpfsRetrievalRequest<'a>,
    routes: &'a [IpfsGatewayClient],
    scores: &'a IpfsGatewayScoreboard,
    reorder: &'a CarReorderBudget,
    /// The start time, for the scores.
    now: Timestamp,
    began: Instant,
    shared: Mutex<GatewayRaceState>,
}

struct GatewayRaceState {
    walk: DagWalk,
    last_progress: Option<Instant>,
    requests: u32,
    /// Paired with each gateway's index in the configuration.
    failures: Vec<(usize, IpfsGatewayFault)>,
}

impl<'a> GatewayRace<'a> {
    /// Starts a retrieval from the blocks that are already known.
    pub(super) fn new(
        want: &'a IpfsRetrievalRequest<'a>,
        routes: &'a [IpfsGatewayClient],
        scores: &'a IpfsGatewayScoreboard,
        reorder: &'a CarReorderBudget,
        now: Timestamp,
    ) -> Self {
        let walk = DagWalk::new(want.cid, want.path, want.budget);
        let mut shared = GatewayRaceState { walk, last_progress: None, requests: 0, failures: Vec::new() };
        shared.supply_known_bytes(want.known);
        Self { want, routes, scores, reorder, now, began: Instant::now(), shared: Mutex::new(shared) }
    }

    /// The gateways to ask, in this order. The others are recorded as resting, unless the retrieval is already
    /// complete.
    pub(super) fn gateway_candidates(&self) -> Vec<IpfsGatewayCandidate> {
        let turns = self.scores.ranked_candidates(self.now);
        let mut shared = self.lock_state();
        if shared.walk.wanted_block().is_some() {
            let resting = (0..self.routes.len()).filter(|gateway| turns.iter().all(|turn| turn.gateway != *gateway));
            shared.failures.extend(resting.map(|gateway| (gateway, IpfsGatewayFault::Resting)));
        }
        turns
    }

    /// Asks gateways in order until the walk needs nothing more, all of them have failed, or `deadline` has passed.
    /// Requests that are then still running are dropped.
    pub(super) async fn run(&self, turns: Vec<IpfsGatewayCandidate>, deadline: Instant) {
        let mut plan = HedgeSchedule::new(turns, Instant::now(), deadline);
        let mut running = FuturesUnordered::new();
        while self.wanted_cid().is_some() {
            let last_progress = self.lock_state().last_progress;
            match plan.next_action(Instant::now(), last_progress) {
                HedgeAction::Ask { gateway, until } => running.push(self.run_gateway_attempt(gateway, until)),
                HedgeAction::End => return,
                HedgeAction::Wait { until } => tokio::select! {
                    biased;
                    Some(()) = running.next() => plan.record_failure(),
                    () = sleep_until(until) => {}
                },
            }
        }
    }

    pub(super) fn into_retrieval(self) -> IpfsRetrieval {
        let mut shared = self.shared.into_inner().unwrap_or_else(PoisonError::into_inner);
        shared.failures.sort_by_key(|(gateway, _)| *gateway);
        let label = |gateway: usize| self.routes[gateway].label.clone();
        let liars = shared.failures.iter().filter_map(|(gateway, fault)| match fault {
            IpfsGatewayFault::WrongBlock(cid) => Some((label(*gateway), **cid)),
            _ => None,
        });
        IpfsRetrieval {
            liars: liars.collect(),
            blocks: shared.walk.take_blocks(),
            ended: shared.walk.finish(),
            requests: shared.requests,
            failures: shared.failures.into_iter().map(|(gateway, fault)| (label(gateway), fault)).collect(),
        }
    }

    fn wanted_cid(&self) -> Option<ContentId> {
        self.lock_state().walk.wanted_block().copied()
    }

    fn lock_state(&self) -> MutexGuard<'_, GatewayRaceState> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a gateway's fault in this report and in its score.
    fn record_fault(&self, gateway: usize, fault: IpfsGatewayFault) {
        let label = &self.routes[gateway].label;
        let now = add_to_timestamp(self.now, self.began.elapsed());
        match &fault {
            IpfsGatewayFault::WrongBlock(cid) => {
                self.scores.pause_gateway(
                    gateway,
                    if clresolve_core::mutant!("liars-stay") { now } else { add_to_timestamp(now, BAN) },
                );
                telemetry::count_gateway_wrong_block(label);
                tracing::warn!(gateway = label, %cid, "a gateway sent a wrong block");
            }
            IpfsGatewayFault::Throttled { rest, .. } => {
                self.scores.pause_gateway(gateway, add_to_timestamp(now, *rest))
            }
            IpfsGatewayFault::Fetch(FetchError::Unavailable(SourceUnavailableError::NoTurn)) => {
                self.scores.pause_gateway(gateway, add_to_timestamp(now, CROWDED_REST));
            }
            // Perhaps no gateway has the content, or this gateway is not allowed to serve it. Neither predicts its next
            // response.
            IpfsGatewayFault::Fetch(FetchError::Unavailable(SourceUnavailableError::Status(404 | 410 | 451))) => {}
            _ => self.scores.record_failure(gateway, now),
        }
        self.lock_state().failures.push((gateway, fault));
    }

    /// Asks a gateway, which must finish by `deadline`.
    async fn run_gateway_attempt(&self, gateway: usize, deadline: Instant) {
        if let Err(fault) = GatewayAttempt::new(self, gateway).run(deadline).await {
            self.record_fault(gateway, fault);
        }
    }
}

impl GatewayRaceState {
    /// Supplies known bytes as long as the walk wants a raw block that they match.
    fn supply_known_bytes(&mut self, known: &[Bytes]) {
        while self.walk.wanted_block().is_some_and(ContentId::is_raw) {
            if !known.iter().cloned().any(|bytes| self.walk.supply_block(bytes).is_ok()) {
                return;
            }
        }
    }
}

/// The requests to one gateway in one retrieval.
struct GatewayAttempt<'a> {
    all: &'a GatewayRace<'a>,
    route: &'a IpfsGatewayClient,
    feed: CarBlockFeed,
    /// Memory for blocks of the CAR that arrive before the walk needs them, reserved when the CAR starts.
    ahead: Option<CarReorderReservation<'a>>,
    watch: FirstBlockTimer<'a>,
}

impl<'a> GatewayAttempt<'a> {
    fn new(all: &'a GatewayRace<'a>, gateway: usize) -> Self {
        Self {
            all,
            route: &all.routes[gateway],
            feed: CarBlockFeed::new(&all.want.budget, 0),
            ahead: None,
            watch: FirstBlockTimer::new(all.scores, gateway),
        }
    }

    async fn run(mut self, deadline: Instant) -> Result<(), IpfsGatewayFault> {
        let halfway = deadline_in(time_until_deadline(deadline) / 2);
        let mut ended = self.request_car(halfway).await;
        if ended.is_ok() {
            ended = self.request_blocks(deadline).await;
        }
        self.watch.stop();
        ended
    }

    /// Requests path and file in one CAR. A response that is not a CAR, lacks blocks or is late is no fault, because
    /// the blocks can be requested separately.
    async fn request_car(&mut self, deadline: Instant) -> Result<(), IpfsGatewayFault> {
        let url = self.route.car_url(self.all.want);
        match self.send(&url, ACCEPT_CAR, deadline).await {
            Ok(reply) if reply.status() == 200 => self.read_car(reply).await,
            Ok(_)
            | Err(IpfsGatewayFault::Fetch(FetchError::Unavailable(
                SourceUnavailableError::Timeout | SourceUnavailableError::NoTurn,
            ))) => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    /// Reads a CAR until the walk is complete or the CAR is of no further use. Only a wrong block is an error.
    async fn read_car(&mut self, reply: EgressResponse) -> Result<(), IpfsGatewayFault> {
        let budget = &self.all.want.budget;
        let Ok(mut body) = reply.into_body(budget.dag_bytes) else { return Ok(()) };
        let ahead = self.ahead.insert(self.all.reorder.reserve(budget.dag_bytes / (AT_ONCE + 1)));
        self.feed = CarBlockFeed::new(budget, ahead.reserved_bytes());
        let mut reservation = None;
        while let Ok(Some(chunk)) = body.next().await {
            self.feed.buffer_chunk(chunk);
            match self.feed_walk_from_car().await {
                Ok(Some(_)) if self.feed.buffered_byte_count() <= SHORT_BODY => reservation = None,
                Ok(Some(_)) if reservation.is_some() => {}
                Ok(Some(_)) => {
                    let block_size = self.all.want.budget.block_size;
                    let Ok(block) = self.route.bodies.reserve(block_size, body.deadline()).await else { break };
                    reservation = Some(block);
                }
                Ok(None) => break,
                Err(DagWalkError::HashMismatch { cid }) => return Err(IpfsGatewayFault::WrongBlock(cid)),
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// Requests the missing blocks one by one. Each request ends with a supplied block, from this gateway or another,
    /// or is the last. [`DagWalkBudget::blocks`](clresolve_ipfs::DagWalkBudget::blocks) therefore limits their number.
    async fn request_blocks(&mut self, deadline: Instant) -> Result<(), IpfsGatewayFault> {
        let mut bytes_left = self.all.want.budget.dag_bytes;
        while let Some(cid) = self.next_wanted_cid().await? {
            let reply = self.send(&self.route.block_url(&cid), ACCEPT_RAW, deadline).await?;
            let is_page = response_media_type(&reply) == Some(PAGE);
            let block =
                read_success_body(reply, self.all.want.budget.block_size.min(bytes_left), &self.route.bodies).await?;
            bytes_left -= block.len();
            let is_page = is_page && looks_like_error_page(&block);
            if !self.supply_block(&cid, block) {
                return Err(if is_page {
                    SourceUnavailableError::Malformed.into()
                } else {
                    IpfsGatewayFault::WrongBlock(Box::new(cid))
                });
            }
        }
        Ok(())
    }

    /// Sends a request and counts it. A request that got no permit was never sent and is not counted.
    async fn send(
        &mut self,
        url: &Url,
        accept: &'static str,
        deadline: Instant,
    ) -> Result<EgressResponse, IpfsGatewayFault> {
        self.all.lock_state().requests += 1;
        let sent = self.route.send(url, accept, self.watch.next_send_time(), deadline).await;
        if matches!(sent, Err(IpfsGatewayFault::Fetch(FetchError::Unavailable(SourceUnavailableError::NoTurn)))) {
            self.all.lock_state().requests -= 1;
        }
        sent
    }

    /// The next wanted block, after the walk has used the blocks of this gateway's CAR.
    async fn next_wanted_cid(&mut self) -> Result<Option<ContentId>, IpfsGatewayFault> {
        match self.feed_walk_from_car().await {
            Err(DagWalkError::HashMismatch { cid }) => Err(IpfsGatewayFault::WrongBlock(cid)),
            _ => Ok(self.all.wanted_cid()),
        }
    }

    /// Feeds the bytes read of the CAR to the walk and returns the block that is wanted next. The task yields after
    /// each block: hashing a large one takes milliseconds, during which this worker's other connections wait.
    async fn feed_walk_from_car(&mut self) -> Result<Option<ContentId>, DagWalkError> {
        while self.advance_walk(CarBlockFeed::supply_wanted_block)? == CarFeedProgress::Moved {
            yield_now().await;
        }
        Ok(self.all.wanted_cid())
    }

    /// Supplies the block requested as `cid`. Returns false if the bytes do not match the CID. Another gateway may
    /// already have supplied it.
    fn supply_block(&mut self, cid: &ContentId, block: Bytes) -> bool {
        self.advance_walk(|_, walk| match walk.wanted_block() {
            Some(wanted) if wanted == cid => walk.supply_block(block).is_ok(),
            _ => cid.is_cid_of_block(&block),
        })
    }

    /// Applies `change` to the walk. If the walk made progress, records the time and supplies known bytes.
    fn advance_walk<T>(&mut self, change: impl FnOnce(&mut CarBlockFeed, &mut DagWalk) -> T) -> T {
        let mut shared = self.all.lock_state();
        let before = shared.walk.block_count();
        let done = change(&mut self.feed, &mut shared.walk);
        if shared.walk.block_count() > before {
            shared.supply_known_bytes(self.all.want.known);
            shared.last_progress = Some(Instant::now());
            self.watch.stop_at_first_block();
        }
        done
    }
}

/// Measures the time until a gateway's first proven block. It pauses while a request waits for a permit.
struct FirstBlockTimer<'a> {
    scores: &'a IpfsGatewayScoreboard,
    gateway: usize,
    /// Time used by the requests before the current one.
    took: Duration,
    latest: RequestSendTime,
    runs: bool,
}

impl<'a> FirstBlockTimer<'a> {
    fn new(scores: &'a IpfsGatewayScoreboard, gateway: usize) -> Self {
        Self { scores, gateway, took: Duration::ZERO, latest: RequestSendTime::default(), runs: true }
    }

    /// Where the next request records when it is sent.
    fn next_send_time(&mut self) -> RequestSendTime {
        self.took = self.elapsed();
        self.latest = RequestSendTime::default();
        self.latest.clone()
    }

    fn elapsed(&self) -> Duration {
        self.took + self.latest.sent_at().map_or(Duration::ZERO, |left| left.elapsed())
    }

    fn stop_at_first_block(&mut self) {
        if self.runs {
            self.scores.record_first_block(self.gateway, self.elapsed());
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
            self.scores.record_lost_race(self.gateway, self.elapsed());
        }
    }
}

fn add_to_timestamp(now: Timestamp, by: Duration) -> Timestamp {
    now.checked_add(by).unwrap_or(Timestamp::MAX)
}

fn time_until_deadline(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

/// Whether the bytes may be an error or login page: markup, or no bytes.
fn looks_like_error_page(bytes: &[u8]) -> bool {
    let text = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes).trim_ascii_start();
    text.is_empty() || text.starts_with(b"<")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clresolve_ipfs::build::{UnixFsLayout, build_directory_tree, write_car};
    use clresolve_ipfs::{DagWalkBudget, UnixFsPath};
    use futures_util::poll;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::task::JoinSet;

    use super::super::gateway::IpfsGateway;
    use super::super::score::{HedgeDelay, LEAST};
    use super::*;
    use crate::fetch::egress::{Egress, EgressConfig, EgressRequest};

    /// For operations that must succeed: the timeout is never reached.
    const AMPLE: Duration = Duration::from_secs(60);

    /// Longer than the patience with an unknown gateway.
    const QUEUED: Duration = Duration::from_millis(700);

    const CARD: &[u8] = b"{}";

    /// A request to which the gateway never responds.
    const UNANSWERED: &str = "unanswered";

    /// A gateway that has the card, but only as a block.
    async fn gateway() -> IpfsGateway {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream));
            }
        });
        let url = format!("http://{address}/").parse().expect("a URL");
        IpfsGateway { label: "first".to_owned(), url, own: false }
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
    async fn crowd(egress: &Egress, gateway: &IpfsGateway) -> JoinSet<()> {
        let client = egress.single_origin_client(&gateway.url).expect("a client");
        let url = gateway.url.join(UNANSWERED).expect("a URL");
        let mut crowd = JoinSet::new();
        loop {
            let (departure, client, url) = (RequestSendTime::default(), client.clone(), url.clone());
            let call = EgressRequest::get("*/*").with_pacing(departure.clone());
            crowd.spawn(async move {
                let _ = client.send(&url, call, deadline_in(AMPLE)).await;
            });
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            if departure.sent_at().is_none() {
                return crowd;
            }
        }
    }

    #[tokio::test]
    async fn each_block_of_a_car_ends_the_poll() {
        let file = Bytes::from_iter(0..=u8::MAX);
        let (cid, blocks) = build_directory_tree(
            &BTreeMap::from([("card.json".to_owned(), file.clone())]),
            UnixFsLayout { chunk: 100, ..UnixFsLayout::default() },
        );
        let (path, budget) = (UnixFsPath::parse_literal("card.json").expect("a path"), DagWalkBudget::for_agent_card());
        let want = IpfsRetrievalRequest { cid, path: &path, known: &[], budget, total: AMPLE };
        let egress = Egress::new(EgressConfig::default()).expect("an egress");
        let routes = [IpfsGatewayClient::new(&egress, gateway().await).expect("a route")];
        let (scores, reorder) = (IpfsGatewayScoreboard::new(1, HedgeDelay::Learnt), CarReorderBudget::new());
        let retrieving = GatewayRace::new(&want, &routes, &scores, &reorder, Timestamp::UNIX_EPOCH);
        let mut attempt = GatewayAttempt::new(&retrieving, 0);
        attempt.feed = CarBlockFeed::new(&budget, budget.dag_bytes);
        attempt.feed.buffer_chunk(Bytes::from(write_car(&cid, &blocks)));
        let mut taken = Box::pin(attempt.feed_walk_from_car());
        for count in 1..=blocks.len() {
            assert!(poll!(&mut taken).is_pending());
            assert_eq!(retrieving.lock_state().walk.block_count(), count);
        }
        assert_eq!(taken.await, Ok(None));
        drop(attempt);
        assert_eq!(retrieving.into_retrieval().ended.map(|proven| proven.bytes), Ok(file));
    }

    /// Waiting for a local permit costs the gateway nothing, and holds no resource that others could use.
    #[tokio::test]
    async fn queued_request_costs_no_score_and_no_memory() {
        let egress = Egress::new(EgressConfig { is_paced: true, ..EgressConfig::default() }).expect("an egress");
        let gateway = gateway().await;
        let crowd = crowd(&egress, &gateway).await;
        let path = UnixFsPath::parse_literal("").expect("a path");
        let cid = ContentId::from_raw_block(CARD);
        let want = IpfsRetrievalRequest {
            cid,
            path: &path,
            known: &[],
            budget: DagWalkBudget::for_agent_card(),
            total: AMPLE,
        };
        let routes = [IpfsGatewayClient::new(&egress, gateway).expect("a route")];
        let (scores, reorder) = (IpfsGatewayScoreboard::new(1, HedgeDelay::Learnt), CarReorderBudget::new());
        let patience = || scores.ranked_candidates(Timestamp::UNIX_EPOCH)[0].patience;
        let (unknown, all) = (patience(), reorder.reserve(usize::MAX).reserved_bytes());
        assert!(unknown < QUEUED);

        let outrun = GatewayRace::new(&want, &routes, &scores, &reorder, Timestamp::UNIX_EPOCH);
        let asked = tokio::time::timeout(QUEUED, outrun.run_gateway_attempt(0, deadline_in(AMPLE)));
        let looked = async {
            tokio::time::sleep(QUEUED / 2).await;
            reorder.reserve(usize::MAX).reserved_bytes()
        };
        let (asked, free) = tokio::join!(asked, looked);
        assert!(asked.is_err(), "it waits for its turn");
        assert_eq!((patience(), free), (unknown, all));

        let served = GatewayRace::new(&want, &routes, &scores, &reorder, Timestamp::UNIX_EPOCH);
        let began = Instant::now();
        tokio::join!(served.run_gateway_attempt(0, deadline_in(AMPLE)), async {
            tokio::time::sleep(QUEUED).await;
            drop(crowd);
        });
        let (took, learnt) = (began.elapsed(), patience());
        assert_eq!(served.into_retrieval().ended.map(|proven| proven.bytes), Ok(Bytes::from_static(CARD)));
        assert!(learnt <= (took - QUEUED).max(LEAST) && learnt != unknown, "{learnt:?} of {took:?}");
    }

    #[tokio::test]
    async fn refused_content_does_not_count_against_a_gateway() {
        let path = UnixFsPath::parse_literal("").expect("a path");
        let cid = ContentId::from_raw_block(CARD);
        let want = IpfsRetrievalRequest {
            cid,
            path: &path,
            known: &[],
            budget: DagWalkBudget::for_agent_card(),
            total: AMPLE,
        };
        let egress = Egress::new(EgressConfig::default()).expect("an egress");
        let routes =
            [gateway().await, gateway().await].map(|one| IpfsGatewayClient::new(&egress, one).expect("a route"));
        let (scores, reorder) = (IpfsGatewayScoreboard::new(2, HedgeDelay::Learnt), CarReorderBudget::new());
        let retrieving = GatewayRace::new(&want, &routes, &scores, &reorder, Timestamp::UNIX_EPOCH);
        let first = || scores.ranked_candidates(Timestamp::UNIX_EPOCH)[0].gateway;
        for status in [404, 410, 451] {
            retrieving.record_fault(0, SourceUnavailableError::Status(status).into());
            assert_eq!(first(), 0, "{status}");
        }
        retrieving.record_fault(0, SourceUnavailableError::Status(500).into());
        assert_eq!(first(), 1);
    }
}
