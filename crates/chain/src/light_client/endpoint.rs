//! A beacon endpoint: its requests, and what is known about its health.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clresolve_beacon::LightClientError;
use clresolve_core::text::excerpt;
use clresolve_egress::count::{self, RequestOutcome, Upstream};
use jiff::Timestamp;
use metrics::counter;
use tokio::task::{AbortHandle, JoinError};

use super::config::BeaconEndpoint;
use super::http::{BeaconGet, BeaconResponse};
use super::request::BeaconRequest;
use super::status::{BeaconEndpointStatus, SetAside};
use crate::beacon_metrics::{BEACON_LIES, BEACON_REFUSED};
use crate::head_age::signed;
use crate::keys::without_keys;
use crate::pool::Clock;
use crate::transport::PostError;

/// How long an endpoint whose data violates a rule is asked only if all others failed lately. Long enough that a liar costs little, short enough
/// that a repaired endpoint needs no restart of the daemon.
pub(super) const SET_ASIDE: Duration = Duration::from_secs(300);

/// How long an endpoint that failed is asked last.
const REST: Duration = Duration::from_secs(30);

/// Why a response of a beacon endpoint brought nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BeaconFault {
    #[error(transparent)]
    Http(#[from] PostError),
    #[error(transparent)]
    Refused(#[from] LightClientError),
    #[error("its newest header is of slot {observed}, and slot {known} is known")]
    Behind { observed: u64, known: u64 },
    #[error("it has no update of sync committee period {0}")]
    NoUpdate(u64),
    #[error("its data was not verified: {0}")]
    BrokenOff(String),
}

impl From<JoinError> for BeaconFault {
    fn from(error: JoinError) -> Self {
        Self::BrokenOff(error.to_string())
    }
}

impl BeaconFault {
    /// Whether no honest endpoint sends this.
    fn is_lie(&self) -> bool {
        match self {
            Self::Refused(error) => error.blames_endpoint(),
            Self::Http(error) => matches!(error, PostError::TooLarge(_)),
            Self::Behind { .. } | Self::NoUpdate(_) | Self::BrokenOff(_) => false,
        }
    }
}

pub(super) struct AskedEndpoint {
    endpoint: BeaconEndpoint,
    http: Arc<dyn BeaconGet>,
    clock: Clock,
    timeout: Duration,
    health: Mutex<Health>,
    /// The last request for the newest headers.
    newest: Mutex<Option<AbortHandle>>,
}

#[derive(Default)]
struct Health {
    answered_at: Option<Timestamp>,
    failure: Option<(Timestamp, String)>,
    set_aside: Option<SetAside>,
}

impl AskedEndpoint {
    pub(super) fn new(endpoint: BeaconEndpoint, http: Arc<dyn BeaconGet>, clock: Clock, timeout: Duration) -> Self {
        Self { endpoint, http, clock, timeout, health: Mutex::default(), newest: Mutex::default() }
    }

    pub(super) fn label(&self) -> &str {
        &self.endpoint.label
    }

    /// Sends a request. The response is not verified.
    pub(super) async fn ask(&self, request: BeaconRequest) -> Result<BeaconResponse, BeaconFault> {
        let no_base = || PostError::Connection("the base URL has no path".to_owned());
        let url = request.url(&self.endpoint.url).ok_or_else(no_base)?;
        let response = self.http.get(&url, request.cap(), self.timeout).await;
        let outcome = response.as_ref().map_or_else(PostError::outcome, |_| RequestOutcome::Ok);
        count::upstream(Upstream::Beacon, self.label(), outcome);
        Ok(response?)
    }

    /// Whether no rule was violated lately.
    pub(super) fn is_trusted_to_answer(&self) -> bool {
        let now = (self.clock)();
        let is_over = |aside: &SetAside| aside.until <= now || clresolve_core::mutant!("beacon-liars-are-asked");
        self.health().set_aside.as_ref().is_none_or(is_over)
    }

    /// Whether it failed lately.
    pub(super) fn rests(&self) -> bool {
        let (now, health) = ((self.clock)(), self.health());
        let since = |(failed_at, _): &(Timestamp, String)| now.duration_since(*failed_at);
        health.failure.as_ref().map(since).is_some_and(|since| !since.is_negative() && since < signed(REST))
    }

    /// Whether a request for the newest headers is pending.
    pub(super) fn is_pending(&self) -> bool {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.as_ref().is_some_and(|request| !request.is_finished())
    }

    /// Records a request for the newest headers.
    pub(super) fn note_pending(&self, request: AbortHandle) {
        *self.newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(request);
    }

    /// Records a response whose data was verified.
    pub(super) fn note_success(&self) {
        let (now, mut health) = ((self.clock)(), self.health());
        let set_aside = health.set_aside.take().filter(|aside| aside.until > now);
        *health = Health { answered_at: Some(now), failure: None, set_aside };
    }

    pub(super) fn note_fault(&self, fault: &BeaconFault) {
        let (now, cause) = ((self.clock)(), self.cause(fault));
        if let BeaconFault::Refused(error) = fault {
            counter!(BEACON_REFUSED, "endpoint" => self.label().to_owned(), "why" => error.group()).increment(1);
        }
        if fault.is_lie() {
            if self.is_trusted_to_answer() {
                tracing::warn!(endpoint = self.label(), "a beacon endpoint's data is refused: {cause}");
            }
            counter!(BEACON_LIES, "endpoint" => self.label().to_owned()).increment(1);
            let until = now.checked_add(signed(SET_ASIDE)).unwrap_or(Timestamp::MAX);
            self.health().set_aside = Some(SetAside { cause: cause.clone(), until });
        }
        self.health().failure = Some((now, cause));
    }

    /// The cause without parts of the URL.
    pub(super) fn cause(&self, fault: &BeaconFault) -> String {
        excerpt(&without_keys(&self.endpoint.url, &fault.to_string()))
    }

    /// Its last failure, with its label, unless a good response followed.
    pub(super) fn last_failure(&self) -> Option<(String, String)> {
        let health = self.health();
        let cause = match &health.set_aside {
            Some(aside) => format!("set aside until {}: {}", aside.until, aside.cause),
            None => health.failure.as_ref()?.1.clone(),
        };
        Some((self.label().to_owned(), cause))
    }

    pub(super) fn status(&self) -> BeaconEndpointStatus {
        let health = self.health();
        BeaconEndpointStatus {
            label: self.label().to_owned(),
            answered_at: health.answered_at,
            failure: health.failure.clone(),
            set_aside: health.set_aside.clone().filter(|aside| aside.until > (self.clock)()),
        }
    }

    fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
