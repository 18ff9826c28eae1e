//! Content by CID from trustless gateways: bytes are moved here, and proven by [`Walk`].
//!
//! Each gateway is asked for one CAR that holds the path and the file, then for whatever is still missing block by
//! block. Nothing that a gateway says is believed, neither its status nor its headers; what one gateway proved is kept
//! when the next one has to go on. Specification:
//! [trustless gateway](https://specs.ipfs.tech/http-gateways/trustless-gateway/).

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use reqwest::header;
use url::{Host, Url};

use super::egress::{Call, Egress, Reply, deadline_in};
use super::operator::{OperatorClient, whole_body};
use super::{Cause, FetchError, Refusal};
use crate::cid::{Bound, Budget, CarWalk, ContentId, ContentPath, Progress, Proven, Walk, WalkError};
use crate::telemetry::{self, Outcome as Counted, Upstream};

/// How long a gateway that sent a wrong block is not asked again. Long enough that it cannot slow down a daemon, short
/// enough that a repaired one comes back within the hour.
pub const BAN: Duration = Duration::from_secs(3600);

/// Longest rest that a gateway can ask for with `Retry-After`. What asks for more is asked again after this.
pub const MAX_REST: Duration = Duration::from_secs(300);

/// Rest after a 429 or 503 that names no time.
pub const DEFAULT_REST: Duration = Duration::from_secs(10);

/// Time limit of one retrieval over all gateways, where the caller has no other.
pub const IPFS_TIMEOUT: Duration = Duration::from_secs(15);

const ACCEPT_CAR: &str = "application/vnd.ipld.car;version=1;order=dfs;dups=n";
const ACCEPT_RAW: &str = "application/vnd.ipld.raw";

/// What error and login pages call themselves. Such a page is no block, but no lie either.
const PAGE: &str = "text/html";

/// A client over a list of gateways. Cheap to clone; clones share what is known of the gateways.
#[derive(Clone, Debug)]
pub struct IpfsClient {
    gateways: Arc<[Route]>,
    health: Arc<Health>,
}

impl IpfsClient {
    /// A client that asks `gateways` in this order.
    ///
    /// # Errors
    /// [`GatewayError`] for a gateway whose URL is neither `http` nor `https`.
    pub fn new(egress: &Egress, gateways: Vec<Gateway>) -> Result<Self, GatewayError> {
        let routes: Result<Vec<_>, _> = gateways.into_iter().map(|gateway| Route::new(egress, gateway)).collect();
        Ok(Self { gateways: routes?.into(), health: Arc::default() })
    }

    /// Retrieves and proves the file that `want` names.
    ///
    /// `now` only decides which gateways still rest; time limits run by themselves. Every gateway has at most an equal
    /// share of the time that is left when its turn comes.
    pub async fn retrieve(&self, want: &Want<'_>, now: Instant) -> Retrieval {
        let deadline = deadline_in(want.total);
        let mut run = Run { want, walk: Walk::new(want.cid, want.path, want.budget), tally: Tally::default() };
        run.try_known();
        let mut left = u32::try_from(self.gateways.len()).unwrap_or(u32::MAX);
        for gateway in self.gateways.iter() {
            if run.walk.wanted().is_none() {
                break;
            }
            let share = time_left(deadline) / left.max(1);
            left = left.saturating_sub(1);
            run = self.ask(gateway, run, deadline_in(share), now).await;
        }
        Retrieval {
            outcome: Outcome::of(run.walk.finish()),
            liars: run.tally.liars,
            failures: run.tally.failures,
            requests: run.tally.requests,
        }
    }

    async fn ask<'a>(&self, gateway: &Route, run: Run<'a>, deadline: tokio::time::Instant, now: Instant) -> Run<'a> {
        if self.health.rests(&gateway.label, now) {
            return run.failed(gateway, GatewayFault::Resting);
        }
        let halfway = deadline_in(time_left(deadline) / 2);
        let (mut run, ended) = run.with_car(gateway, halfway).await;
        let ended = match ended {
            Ok(()) => run.with_blocks(gateway, deadline).await,
            Err(fault) => Err(fault),
        };
        let Err(fault) = ended else { return run };
        match &fault {
            GatewayFault::WrongBlock(cid) => {
                telemetry::gateway_lied(&gateway.label);
                self.health.rest(&gateway.label, now + BAN);
                run.tally.liars.push((gateway.label.clone(), **cid));
            }
            GatewayFault::Throttled { rest, .. } => self.health.rest(&gateway.label, now + *rest),
            _ => {}
        }
        run.failed(gateway, fault)
    }
}

/// A trustless gateway.
#[derive(Clone, PartialEq, Eq)]
pub struct Gateway {
    /// How reports and logs call it. Never a URL with a key.
    pub label: String,
    /// The URL that `ipfs/CID` is appended to.
    pub url: Url,
    /// Whether it is the operator's own: it may then be anywhere, and speak plain http. A loopback URL says so by itself.
    pub own: bool,
}

impl Gateway {
    fn is_own(&self) -> bool {
        let loopback = match self.url.host() {
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(ip)) => ip.is_loopback(),
            Some(Host::Ipv6(ip)) => ip.is_loopback(),
            None => false,
        };
        self.own || loopback
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("label", &self.label).field("own", &self.own).finish_non_exhaustive()
    }
}

/// A gateway that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("gateway {label}: {why}")]
pub struct GatewayError {
    /// Its label.
    pub label: String,
    /// What is wrong with its URL.
    pub why: Refusal,
}

/// What to retrieve, and within which bounds.
#[derive(Clone, Copy, Debug)]
pub struct Want<'a> {
    /// The root.
    pub cid: ContentId,
    /// The way from the root to the file.
    pub path: &'a ContentPath,
    /// Bytes at hand from elsewhere (the card that `https` served), tried wherever a raw block is wanted.
    pub known: &'a [Bytes],
    /// Bounds of the walk.
    pub budget: Budget,
    /// Time over all gateways.
    pub total: Duration,
}

/// What came of a [`Want`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retrieval {
    /// The result.
    pub outcome: Outcome,
    /// Gateways (labels) that sent a wrong block, and the block that was asked for.
    pub liars: Vec<(String, ContentId)>,
    /// Gateways (labels) that did not finish the walk, in the order in which they were asked. The liars are among them.
    pub failures: Vec<(String, GatewayFault)>,
    /// Requests made; one that the guard refused counts too.
    pub requests: u32,
}

/// The result of a retrieval. All but [`Outcome::Unproven`] follow from hashed blocks and the request alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The file, proven block by block.
    Proven(Proven),
    /// A directory on the way was read and has no such entry, or the path goes on below a file.
    PathMissing(String),
    /// The path ends at a directory.
    NotFile,
    /// The content breaks the formats or goes beyond a bound.
    Invalid {
        /// Stable name of the kind of error, see [`WalkError::class`].
        class: &'static str,
        /// In words.
        detail: String,
    },
    /// A link on the way has a hash that proves nothing. In words.
    HashForbidden(String),
    /// The file is larger than [`Budget::total_bytes`], as its own root says.
    Oversize {
        /// Bytes of the file.
        size: u64,
        /// Bytes allowed.
        limit: usize,
    },
    /// No gateway gave the blocks that are needed; [`Retrieval::failures`] says why.
    Unproven,
}

impl Outcome {
    fn of(ended: Result<Proven, WalkError>) -> Self {
        let error = match ended {
            Ok(proven) => return Self::Proven(proven),
            Err(error) if !error.is_final() => return Self::Unproven,
            Err(error) => error,
        };
        match &error {
            WalkError::NotFound { .. } | WalkError::NotADirectory { .. } => Self::PathMissing(error.to_string()),
            WalkError::IsADirectory => Self::NotFile,
            WalkError::HashNotAllowed(_) | WalkError::Limit(Bound::InlineContent) => {
                Self::HashForbidden(error.to_string())
            }
            WalkError::TooLarge { size, limit } => Self::Oversize { size: *size, limit: *limit },
            _ => Self::Invalid { class: error.class(), detail: error.to_string() },
        }
    }
}

/// Why a gateway did not finish a walk.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayFault {
    /// No usable answer.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// It was not asked: it lied or asked for a rest not long ago.
    #[error("not asked, it is resting")]
    Resting,
    /// 429 or 503.
    #[error("HTTP status {status}, asks for a rest")]
    Throttled {
        /// The status.
        status: u16,
        /// How long it is left alone.
        rest: Duration,
    },
    /// It sent other bytes than those of the block.
    #[error("sent a wrong block for {0}")]
    WrongBlock(Box<ContentId>),
}

impl From<Cause> for GatewayFault {
    fn from(cause: Cause) -> Self {
        Self::Fetch(cause.into())
    }
}

/// Which gateways rest, and until when.
#[derive(Debug, Default)]
struct Health {
    /// Bounded by the number of gateways in the configuration.
    rests: Mutex<HashMap<String, Instant>>,
}

impl Health {
    fn rests(&self, label: &str, now: Instant) -> bool {
        self.rests.lock().unwrap_or_else(PoisonError::into_inner).get(label).is_some_and(|until| now < *until)
    }

    fn rest(&self, label: &str, until: Instant) {
        let mut rests = self.rests.lock().unwrap_or_else(PoisonError::into_inner);
        let known = rests.entry(label.to_owned()).or_insert(until);
        *known = until.max(*known);
    }
}

/// A gateway and the door that leads to it.
#[derive(Debug)]
struct Route {
    label: String,
    base: Url,
    door: Door,
}

#[derive(Debug)]
enum Door {
    Foreign(Egress),
    Operator(OperatorClient),
}

impl Route {
    fn new(egress: &Egress, gateway: Gateway) -> Result<Self, GatewayError> {
        let door = if gateway.is_own() {
            egress.operator(&gateway.url).map(Door::Operator)
        } else if gateway.url.scheme() == "https" {
            Ok(Door::Foreign(egress.clone()))
        } else {
            Err(Refusal::Scheme)
        };
        match door {
            Ok(door) => Ok(Self { label: gateway.label, base: gateway.url, door }),
            Err(why) => Err(GatewayError { label: gateway.label, why }),
        }
    }

    fn car_url(&self, want: &Want<'_>) -> Url {
        let path = if want.path.is_empty() { String::new() } else { format!("/{}", want.path) };
        self.url(&format!("ipfs/{}{path}", want.cid), &[("format", "car"), ("dag-scope", "entity")])
    }

    fn block_url(&self, cid: &ContentId) -> Url {
        self.url(&format!("ipfs/{cid}"), &[("format", "raw")])
    }

    fn url(&self, below: &str, query: &[(&str, &str)]) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{}/{below}", self.base.path().trim_end_matches('/')));
        url.query_pairs_mut().extend_pairs(query);
        url
    }

    /// Sends a request and settles what holds for every kind of answer.
    async fn send(
        &self,
        url: &Url,
        accept: &'static str,
        deadline: tokio::time::Instant,
    ) -> Result<Reply, GatewayFault> {
        let call = Call::get(accept);
        let reply = match &self.door {
            Door::Foreign(egress) => egress.foreign(url, call, deadline).await,
            Door::Operator(client) => client.send(url, call, deadline).await,
        };
        let outcome = reply.as_ref().map_or_else(FetchError::outcome, |reply| Counted::of_status(reply.status()));
        telemetry::upstream(Upstream::Gateway, &self.label, outcome);
        let reply = reply?;
        match reply.status() {
            status @ (429 | 503) => {
                let rest = reply.retry_after().unwrap_or(DEFAULT_REST).min(MAX_REST);
                Err(GatewayFault::Throttled { status, rest })
            }
            _ => Ok(reply),
        }
    }
}

/// One retrieval on its way through the gateways.
struct Run<'a> {
    want: &'a Want<'a>,
    walk: Walk,
    tally: Tally,
}

#[derive(Default)]
struct Tally {
    liars: Vec<(String, ContentId)>,
    failures: Vec<(String, GatewayFault)>,
    requests: u32,
}

impl Run<'_> {
    fn failed(mut self, gateway: &Route, fault: GatewayFault) -> Self {
        self.tally.failures.push((gateway.label.clone(), fault));
        self
    }

    /// Supplies bytes at hand as long as a raw block is wanted that they are.
    fn try_known(&mut self) {
        while self.walk.wanted().is_some_and(ContentId::is_raw) {
            let known = self.want.known.iter();
            if !known.cloned().any(|bytes| self.walk.supply(bytes).is_ok()) {
                return;
            }
        }
    }

    /// Asks for path and file in one CAR. An answer that is none, lacks blocks or comes too late is no fault: blocks
    /// may be had one by one.
    async fn with_car(mut self, gateway: &Route, deadline: tokio::time::Instant) -> (Self, Result<(), GatewayFault>) {
        self.tally.requests += 1;
        let reply = match gateway.send(&gateway.car_url(self.want), ACCEPT_CAR, deadline).await {
            Ok(reply) if reply.status() == 200 => reply,
            Ok(_) | Err(GatewayFault::Fetch(FetchError::Unavailable(Cause::Timeout))) => {
                return (self, Ok(()));
            }
            Err(fault) => return (self, Err(fault)),
        };
        let mut reading = CarWalk::new(self.walk);
        let read = read_car(&mut reading, reply, self.want.budget.dag_bytes).await;
        self.walk = reading.into_walk();
        self.try_known();
        (self, read)
    }

    /// Asks for the blocks that are still wanted, one by one. [`Budget::blocks`] bounds how many there are.
    async fn with_blocks(&mut self, gateway: &Route, deadline: tokio::time::Instant) -> Result<(), GatewayFault> {
        while let Some(cid) = self.walk.wanted().copied() {
            self.tally.requests += 1;
            let reply = gateway.send(&gateway.block_url(&cid), ACCEPT_RAW, deadline).await?;
            let is_page = media_type(&reply) == Some(PAGE);
            let block = whole_body(reply, self.want.budget.block_size).await?;
            match self.walk.supply(block) {
                Ok(()) => self.try_known(),
                Err(_) if is_page => return Err(Cause::Malformed.into()),
                Err(_) => return Err(GatewayFault::WrongBlock(Box::new(cid))),
            }
        }
        Ok(())
    }
}

/// Reads a CAR until the walk is over or the CAR is of no more use. Only a wrong block is an error.
async fn read_car(reading: &mut CarWalk, reply: Reply, limit: usize) -> Result<(), GatewayFault> {
    let Ok(mut body) = reply.into_body(limit) else {
        return Ok(());
    };
    while let Ok(Some(chunk)) = body.next().await {
        match reading.push(chunk) {
            Ok(Progress::Wanting) => {}
            Ok(Progress::Over) => break,
            Err(WalkError::HashMismatch { cid }) => return Err(GatewayFault::WrongBlock(cid)),
            Err(_) => break,
        }
    }
    Ok(())
}

fn time_left(deadline: tokio::time::Instant) -> Duration {
    deadline.saturating_duration_since(tokio::time::Instant::now())
}

fn media_type(reply: &Reply) -> Option<&str> {
    reply.header(header::CONTENT_TYPE)?.split(';').next().map(str::trim)
}
