//! Writes one log line per request.

use std::sync::Arc;

use axum::http::{Method, Uri};
use axum::response::Response;
use clresolve_core::reason::RefusalCode;
use clresolve_core::state::TrustState;
use clresolve_core::text::UntrustedText;
use clresolve_payment::check::SellerCheckDocument;
use clresolve_verdict::verdict::{Verdict, VerdictCopyKind};
use tokio::time::Instant;

use super::client_limits::ClientIdentity;

/// The log fields of a response. Handlers attach it to the response.
#[derive(Clone, Debug, Default)]
pub(super) struct ResponseLogFields {
    verdict: Option<Arc<Verdict>>,
    /// The name in a rejected request.
    name: Option<String>,
    code: Option<&'static str>,
    refusal: Option<RefusalCode>,
}

impl ResponseLogFields {
    pub(super) fn from_verdict(verdict: &Arc<Verdict>) -> Self {
        let code = verdict.reasons.first().map(|reason| reason.code.slug());
        Self { verdict: Some(Arc::clone(verdict)), code, ..Self::default() }
    }

    pub(super) fn from_check(check: &SellerCheckDocument) -> Self {
        let code = check.reasons.first().map(|reason| reason.code.slug());
        Self { name: check.name.clone(), code, ..Self::default() }
    }

    pub(super) fn from_refusal(refusal: RefusalCode) -> Self {
        Self { code: Some(refusal.slug()), refusal: Some(refusal), ..Self::default() }
    }

    #[must_use]
    pub(super) fn with_name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    #[must_use]
    pub(super) fn with_code(mut self, code: Option<&'static str>) -> Self {
        self.code = code;
        self
    }

    /// The code of the reason or the refusal.
    pub(super) const fn code(&self) -> Option<&'static str> {
        self.code
    }

    /// The refusal, if the request was rejected.
    pub(super) const fn refusal(&self) -> Option<RefusalCode> {
        self.refusal
    }

    fn is_trusted(&self) -> bool {
        self.verdict.as_ref().is_some_and(|verdict| verdict.state == TrustState::Trusted)
    }

    /// Whether the response returns a cached verdict.
    fn is_cached(&self) -> bool {
        self.verdict.as_ref().is_some_and(|verdict| verdict.freshness.served == VerdictCopyKind::Cached)
    }
}

pub(super) struct RequestLogFields<'a> {
    pub(super) method: &'a Method,
    pub(super) uri: &'a Uri,
    pub(super) client: ClientIdentity,
    pub(super) started: Instant,
}

/// Writes the line. Routine responses (health, and decisions from cached verdicts) are logged at level debug only: at
/// tens of thousands of lines a second, logging would cost more than the responses. A refusal for a trusted name, such
/// as an unsupported verb, is not routine.
pub(super) fn write_request_log(request: &RequestLogFields<'_>, response: &Response, is_health: bool) {
    let nothing = ResponseLogFields::default();
    let entry: &ResponseLogFields = response.extensions().get().unwrap_or(&nothing);
    let is_refused = response.status().is_client_error() && entry.is_trusted();
    let is_routine = is_health || entry.is_cached() && !is_refused;
    if is_routine && !tracing::enabled!(tracing::Level::DEBUG) {
        return;
    }
    let RequestLogFields { method, uri, client, started } = request;
    let verdict = entry.verdict.as_deref();
    let (code, status) = (entry.code, response.status().as_u16());
    let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let path = UntrustedText::new(uri.path());
    let name = verdict.map(|verdict| verdict.name.input.as_str()).or(entry.name.as_deref());
    let name = name.map(|name| tracing::field::display(UntrustedText::new(name)));
    let state = verdict.map(|verdict| verdict.state.as_str());
    if is_routine {
        tracing::debug!(%method, %path, name, state, code, status, ms, client = %client, "request");
    } else {
        tracing::info!(%method, %path, name, state, code, status, ms, client = %client, "request");
    }
}
