//! One log line for each request.

use std::sync::Arc;

use axum::http::{Method, Uri};
use axum::response::Response;
use tokio::time::Instant;

use super::client_limits::Client;
use crate::reason::Refusal;
use crate::text::Foreign;
use crate::verdict::{Served, State, Verdict};

/// What the log says about an answer. Handlers attach it to their response.
#[derive(Clone, Debug, Default)]
pub(super) struct LogEntry {
    verdict: Option<Arc<Verdict>>,
    /// The name in a request that was refused.
    name: Option<String>,
    code: Option<&'static str>,
    refusal: Option<Refusal>,
}

impl LogEntry {
    /// The entry of an answer that gives a verdict.
    pub(super) fn of_verdict(verdict: &Arc<Verdict>) -> Self {
        let code = verdict.reasons.first().map(|reason| reason.code.slug());
        Self { verdict: Some(Arc::clone(verdict)), code, ..Self::default() }
    }

    /// The entry of a request that was refused.
    pub(super) fn of_refusal(refusal: Refusal) -> Self {
        Self { code: Some(refusal.slug()), refusal: Some(refusal), ..Self::default() }
    }

    /// The request asked for this name.
    #[must_use]
    pub(super) fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// The answer was given for this reason.
    #[must_use]
    pub(super) fn because(mut self, code: Option<&'static str>) -> Self {
        self.code = code;
        self
    }

    /// The code of a reason or a refusal.
    pub(super) const fn code(&self) -> Option<&'static str> {
        self.code
    }

    /// What the request was refused for.
    pub(super) const fn refusal(&self) -> Option<Refusal> {
        self.refusal
    }

    fn is_trusted(&self) -> bool {
        self.verdict.as_ref().is_some_and(|verdict| verdict.state == State::Trusted)
    }

    /// Whether the answer is a verdict from the cache.
    fn is_cached(&self) -> bool {
        self.verdict.as_ref().is_some_and(|verdict| verdict.freshness.served == Served::Cached)
    }
}

/// A request, as the log shows it.
pub(super) struct LoggedRequest<'a> {
    pub(super) method: &'a Method,
    pub(super) uri: &'a Uri,
    pub(super) client: Client,
    pub(super) started: Instant,
}

/// Writes the line. Routine answers (health, and what a verdict from the cache decides) are written at level debug only: at
/// tens of thousands of lines a second the log would cost more than the answers. What is refused of a trusted name, such
/// as a verb that it does not have, is no routine.
pub(super) fn write(asked: &LoggedRequest<'_>, response: &Response, is_health: bool) {
    let nothing = LogEntry::default();
    let entry: &LogEntry = response.extensions().get().unwrap_or(&nothing);
    let is_refused = response.status().is_client_error() && entry.is_trusted();
    let is_routine = is_health || entry.is_cached() && !is_refused;
    if is_routine && !tracing::enabled!(tracing::Level::DEBUG) {
        return;
    }
    let LoggedRequest { method, uri, client, started } = asked;
    let verdict = entry.verdict.as_deref();
    let (code, status) = (entry.code, response.status().as_u16());
    let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let path = Foreign::new(uri.path());
    let name = verdict.map(|verdict| verdict.name.input.as_str()).or(entry.name.as_deref());
    let name = name.map(|name| tracing::field::display(Foreign::new(name)));
    let state = verdict.map(|verdict| verdict.state.as_str());
    if is_routine {
        tracing::debug!(%method, %path, name, state, code, status, ms, client = %client, "request");
    } else {
        tracing::info!(%method, %path, name, state, code, status, ms, client = %client, "request");
    }
}
