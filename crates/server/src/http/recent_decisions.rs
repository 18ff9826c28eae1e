//! A short-lived cache of decisions: the same question about the same verdict gets the same decision.
//!
//! The first key is the digest of the question's bytes, which is cheap. If that is unknown, the question is parsed,
//! which a decision requires anyway. The second key is the digest of all inputs to the decision. It is needed because a
//! seller puts a new date on each reply.

use std::sync::Arc;

use bytes::Bytes;
use clresolve_core::digest::Digest;
use clresolve_core::state::TrustState;
use clresolve_payment::PaymentDecision;
use clresolve_resolver::resolve::DecisionLogEvent;
use clresolve_verdict::verdict::Verdict;
use jiff::{SignedDuration, Timestamp};
use moka::sync::Cache;

/// How long a decision is reused, unless it expires earlier.
const KEPT_FOR: SignedDuration = SignedDuration::from_secs(1);

/// Maximum number of bytes in the cache. A decision has one or two thousand.
const KEPT_BYTES: u64 = 8 * 1024 * 1024;

/// The key of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum DecisionQuestionKey {
    /// The digest of the bytes as sent.
    Sent(Digest),
    /// The digest of the parsed inputs.
    Read(Digest),
}

/// A decision as it was sent.
#[derive(Clone)]
pub(super) struct RecentDecision {
    pub(super) name: Arc<str>,
    pub(super) event: Arc<DecisionLogEvent>,
    verdict: Arc<str>,
    valid_until: Option<Timestamp>,
    /// The decision as JSON.
    pub(super) body: Bytes,
    made: Timestamp,
}

/// Recent decisions by question. The least used are evicted first. Each configuration has its own cache.
pub(super) struct RecentDecisionCache(Cache<DecisionQuestionKey, RecentDecision>);

impl RecentDecisionCache {
    pub(super) fn new() -> Self {
        let weigh =
            |_: &DecisionQuestionKey, recent: &RecentDecision| u32::try_from(2 * recent.body.len()).unwrap_or(u32::MAX);
        Self(Cache::builder().max_capacity(KEPT_BYTES).weigher(weigh).build())
    }

    /// Returns the decision on this question from the last second.
    pub(super) fn get(&self, question: DecisionQuestionKey, now: Timestamp) -> Option<RecentDecision> {
        let is_new =
            |recent: &RecentDecision| (SignedDuration::ZERO..KEPT_FOR).contains(&now.duration_since(recent.made));
        let holds = |recent: &RecentDecision| recent.valid_until.is_none_or(|until| now < until);
        self.0.get(&question).filter(|recent| is_new(recent) && holds(recent))
    }

    /// Stores a decision if its agent is trusted. Other decisions are unlikely to be requested again at once.
    pub(super) fn store_if_trusted(
        &self,
        question: [DecisionQuestionKey; 2],
        name: &str,
        decision: &PaymentDecision,
        event: DecisionLogEvent,
        body: &Bytes,
        now: Timestamp,
    ) {
        if decision.state == TrustState::Trusted {
            let recent = RecentDecision {
                name: name.into(),
                event: Arc::new(event),
                verdict: decision.verdict.as_str().into(),
                valid_until: decision.valid_until,
                body: body.clone(),
                made: now,
            };
            question.into_iter().for_each(|key| self.add_key(key, recent.clone()));
        }
    }

    /// Stores a decision under a further key of the same question. The decision keeps its age.
    pub(super) fn add_key(&self, question: DecisionQuestionKey, recent: RecentDecision) {
        self.0.insert(question, recent);
    }
}

impl RecentDecision {
    /// Whether the decision is based on this verdict, regardless of how the verdict was served.
    pub(super) fn is_based_on(&self, verdict: &Verdict) -> bool {
        *self.verdict == verdict.id
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::time::Duration;

    use axum::body::{Body, to_bytes};
    use axum::extract::{Extension, Request, State};
    use axum::http::header::CONTENT_TYPE;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::{Value, json};

    use super::*;
    use crate::http::client_limits::ClientIdentity;
    use crate::http::in_force::CurrentService;
    use crate::http::state::AppState;
    use crate::http::{build_service, decisions};
    use clresolve_resolver::clock::Clock;
    use clresolve_resolver::resolve::Resolver;
    use clresolve_resolver::sandbox::Sandbox;

    const NAME: &str = "summarizeagent.eth";
    const CLIENT: ClientIdentity = ClientIdentity::Address(IpAddr::V4(Ipv4Addr::LOCALHOST));

    /// A clock that stands still, however slow the machine is.
    struct Stopped(Timestamp);

    impl Clock for Stopped {
        fn now(&self) -> Timestamp {
            self.0
        }
    }

    /// A daemon on the sandbox, without a listener, that has [`NAME`] in its cache.
    struct Daemon {
        in_force: Arc<CurrentService>,
        _sandbox: Sandbox,
    }

    impl Daemon {
        async fn start() -> Self {
            let sandbox = Sandbox::start().await.expect("it starts");
            let mut config = sandbox.config();
            config.timeout = Duration::from_secs(120);
            let clock: Arc<dyn Clock> = Arc::new(Stopped(Timestamp::now()));
            let resolver = Resolver::with_clock(&config, clock).await.expect("its configuration is good");
            let state = AppState::new(resolver.clone(), &config, None, None);
            // A reading at a new head may start a resolution, whose jobs these tests would mistake for theirs.
            state.following.stop();
            resolver.resolve(NAME).await;
            Self { in_force: Arc::new(CurrentService::new(build_service(state))), _sandbox: sandbox }
        }

        /// Returns the response to a question, and the number of pool jobs it took.
        async fn asked(&self, question: &Value) -> (Bytes, usize) {
            let state = self.in_force.state();
            let before = state.resolver.cpu_pool().started_count();
            let request = Request::post("/").header(CONTENT_TYPE, "application/json");
            let request = request.body(Body::from(question.to_string())).expect("a request");
            let (state_of_route, in_force) = (State(Arc::clone(&state)), Extension(Arc::clone(&self.in_force)));
            let response = decisions::serve_decision(state_of_route, in_force, Extension(CLIENT), request).await;
            assert_eq!(response.status(), 200);
            let body = to_bytes(response.into_body(), 1 << 20).await.expect("a body");
            (body, state.resolver.cpu_pool().started_count() - before)
        }
    }

    /// A question about a seller's reply.
    fn question(date: &str, terms: &str) -> Value {
        let headers = json!([["date", date], ["payment-required", STANDARD.encode(terms)]]);
        let response = json!({"status": 402, "url": "https://api.example/", "headers": headers});
        json!({"name": NAME, "verb": "summarize", "response": response})
    }

    /// A seller puts a new date on each reply, and guards forward replies unchanged.
    #[tokio::test]
    async fn a_question_about_a_reply_with_another_date_has_the_same_answer() {
        let daemon = Daemon::start().await;
        let (first, jobs) = daemon.asked(&question("now", "{}")).await;
        assert_eq!(jobs, 2, "it is read and judged");
        assert_eq!(daemon.asked(&question("now", "{}")).await, (first.clone(), 0), "its bytes are known");
        assert_eq!(daemon.asked(&question("then", "{}")).await, (first.clone(), 1), "it is read");
        assert_eq!(daemon.asked(&question("then", "{}")).await, (first.clone(), 0), "its bytes are known, too");
        let (other, jobs) = daemon.asked(&question("then", "[]")).await;
        assert_eq!((other == first, jobs), (false, 2), "the terms are others");
    }
}
