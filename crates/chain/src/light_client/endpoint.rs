//! A beacon endpoint: its requests, and what is known about its health.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clresolve_beacon::LightClientError;
use clresolve_core::text::excerpt_text;
use clresolve_egress::count::{self, RequestOutcome, UpstreamKind};
use jiff::Timestamp;
use metrics::counter;
use tokio::task::{AbortHandle, JoinError};

use super::config::BeaconEndpointSettings;
use super::http::{BeaconHttpClient, BeaconResponse};
use super::request::BeaconRequest;
use super::status::{BeaconEndpointDemotion, BeaconEndpointStatus};
use crate::beacon_metrics::{BEACON_LIES, BEACON_REFUSED};
use crate::head_age::to_signed_duration;
use crate::keys::redact_url_keys;
use crate::pool::TimeSource;
use crate::transport::HttpRequestError;

/// How long an endpoint whose data violates a rule is asked only if all others failed lately. Long enough that a liar
/// costs little, short enough that a repaired endpoint needs no restart of the daemon.
pub(super) const SET_ASIDE: Duration = Duration::from_secs(300);

/// How long an endpoint that failed is asked last.
const REST: Duration = Duration::from_secs(30);

/// Why a response of a beacon endpoint brought nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BeaconEndpointError {
    #[error(transparent)]
    Http(#[from] HttpRequestError),
    #[error(transparent)]
    Refused(#[from] LightClientError),
    #[error("its newest header is of slot {observed}, and slot {known} is known")]
    Behind { observed: u64, known: u64 },
    #[error("it has no update of sync committee period {0}")]
    NoUpdate(u64),
    #[error("its data was not verified: {0}")]
    BrokenOff(String),
}

impl From<JoinError> for BeaconEndpointError {
    fn from(error: JoinError) -> Self {
        Self::BrokenOff(error.to_string())
    }
}

impl BeaconEndpointError {
    /// Whether no honest endpoint sends this.
    fn is_endpoint_dishonest(&self) -> bool {
        match self {
            Self::Refused(error) => error.is_endpoint_dishonest(),
            Self::Http(error) => matches!(error, HttpRequestError::TooLarge(_)),
            Self::Behind { .. } | Self::NoUpdate(_) | Self::BrokenOff(_) => false,
        }
    }
}

pub(super) struct BeaconEndpointClient {
    endpoint: BeaconEndpointSettings,
    http: Arc<dyn BeaconHttpClient>,
    clock: TimeSource,
    timeout: Duration,
    health: Mutex<BeaconEndpointHealth>,
    /// The last request for the newest headers.
    newest: Mutex<Option<AbortHandle>>,
}

#[derive(Default)]
struct BeaconEndpointHealth {
    answered_at: Option<Timestamp>,
    failure: Option<(Timestamp, String)>,
    set_aside: Option<BeaconEndpointDemotion>,
}

impl BeaconEndpointClient {
    pub(super) fn new(
        endpoint: BeaconEndpointSettings,
        http: Arc<dyn BeaconHttpClient>,
        clock: TimeSource,
        timeout: Duration,
    ) -> Self {
        Self { endpoint, http, clock, timeout, health: Mutex::default(), newest: Mutex::default() }
    }

    pub(super) fn label(&self) -> &str {
        &self.endpoint.label
    }

    /// Sends a request. The response is not verified.
    pub(super) async fn send_request(&self, request: BeaconRequest) -> Result<BeaconResponse, BeaconEndpointError> {
        let no_base = || HttpRequestError::Connection("the base URL has no path".to_owned());
        let url = request.request_url(&self.endpoint.url).ok_or_else(no_base)?;
        let response = self.http.get(&url, request.max_response_bytes(), self.timeout).await;
        let outcome = response.as_ref().map_or_else(HttpRequestError::request_outcome, |_| RequestOutcome::Ok);
        count::count_request(UpstreamKind::Beacon, self.label(), outcome);
        Ok(response?)
    }

    /// Whether no rule was violated lately.
    pub(super) fn has_no_recent_violation(&self) -> bool {
        let now = (self.clock)();
        let is_over =
            |aside: &BeaconEndpointDemotion| aside.until <= now || clresolve_core::mutant!("beacon-liars-are-asked");
        self.lock_health().set_aside.as_ref().is_none_or(is_over)
    }

    /// Whether it failed lately.
    pub(super) fn has_failed_recently(&self) -> bool {
        let (now, health) = ((self.clock)(), self.lock_health());
        let since = |(failed_at, _): &(Timestamp, String)| now.duration_since(*failed_at);
        health.failure.as_ref().map(since).is_some_and(|since| !since.is_negative() && since < to_signed_duration(REST))
    }

    /// Whether a request for the newest headers is pending.
    pub(super) fn has_pending_newest_request(&self) -> bool {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.as_ref().is_some_and(|request| !request.is_finished())
    }

    /// Records a request for the newest headers.
    pub(super) fn set_pending_newest_request(&self, request: AbortHandle) {
        *self.newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(request);
    }

    /// Records a response whose data was verified.
    pub(super) fn note_success(&self) {
        let (now, mut health) = ((self.clock)(), self.lock_health());
        let set_aside = health.set_aside.take().filter(|aside| aside.until > now);
        *health = BeaconEndpointHealth { answered_at: Some(now), failure: None, set_aside };
    }

    pub(super) fn note_fault(&self, fault: &BeaconEndpointError) {
        let (now, cause) = ((self.clock)(), self.redacted_cause(fault));
        if let BeaconEndpointError::Refused(error) = fault {
            counter!(BEACON_REFUSED, "endpoint" => self.label().to_owned(), "why" => error.metric_cause_label())
                .increment(1);
        }
        if fault.is_endpoint_dishonest() {
            if self.has_no_recent_violation() {
                tracing::warn!(endpoint = self.label(), "a beacon endpoint's data is refused: {cause}");
            }
            counter!(BEACON_LIES, "endpoint" => self.label().to_owned()).increment(1);
            let until = now.checked_add(to_signed_duration(SET_ASIDE)).unwrap_or(Timestamp::MAX);
            self.lock_health().set_aside = Some(BeaconEndpointDemotion { cause: cause.clone(), until });
        }
        self.lock_health().failure = Some((now, cause));
    }

    /// The cause without parts of the URL.
    pub(super) fn redacted_cause(&self, fault: &BeaconEndpointError) -> String {
        excerpt_text(&redact_url_keys(&self.endpoint.url, &fault.to_string()))
    }

    /// Its last failure, with its label, unless a good response followed.
    pub(super) fn last_failure(&self) -> Option<(String, String)> {
        let health = self.lock_health();
        let cause = match &health.set_aside {
            Some(aside) => format!("set aside until {}: {}", aside.until, aside.cause),
            None => health.failure.as_ref()?.1.clone(),
        };
        Some((self.label().to_owned(), cause))
    }

    pub(super) fn status(&self) -> BeaconEndpointStatus {
        let health = self.lock_health();
        BeaconEndpointStatus {
            label: self.label().to_owned(),
            answered_at: health.answered_at,
            failure: health.failure.clone(),
            set_aside: health.set_aside.clone().filter(|aside| aside.until > (self.clock)()),
        }
    }

    fn lock_health(&self) -> MutexGuard<'_, BeaconEndpointHealth> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
