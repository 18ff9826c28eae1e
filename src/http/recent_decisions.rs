//! Decisions that were made a moment ago: the same question about the same verdict has the same answer.
//!
//! A question is known by its bytes, which costs one digest. Where they are not known it is read, which it must be in any
//! case, and known by everything in it that a decision goes by: a seller dates each of its replies.

use std::sync::Arc;

use bytes::Bytes;
use clresolve_payment::Decision;
use jiff::{SignedDuration, Timestamp};
use moka::sync::Cache;

use crate::digest::Digest;
use crate::resolve::DecisionEvent;
use crate::verdict::{State, Verdict};

/// How long a decision is given again, unless it ends before.
const KEPT_FOR: SignedDuration = SignedDuration::from_secs(1);

/// Most bytes kept; a decision has one or two thousand.
const KEPT_BYTES: u64 = 8 * 1024 * 1024;

/// What a question is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum QuestionKey {
    /// The digest of its bytes.
    Sent(Digest),
    /// The digest of what was read in it.
    Read(Digest),
}

/// A decision as it was sent.
#[derive(Clone)]
pub(super) struct Recent {
    /// The name that was asked for.
    pub(super) name: Arc<str>,
    /// What the log says of it.
    pub(super) event: Arc<DecisionEvent>,
    verdict: Arc<str>,
    valid_until: Option<Timestamp>,
    /// Its JSON.
    pub(super) body: Bytes,
    made: Timestamp,
}

/// Recent decisions by their questions; the least used go first. A configuration has its own.
pub(super) struct RecentDecisions(Cache<QuestionKey, Recent>);

impl RecentDecisions {
    pub(super) fn new() -> Self {
        let weigh = |_: &QuestionKey, recent: &Recent| u32::try_from(2 * recent.body.len()).unwrap_or(u32::MAX);
        Self(Cache::builder().max_capacity(KEPT_BYTES).weigher(weigh).build())
    }

    /// What was decided about this question within the last second.
    pub(super) fn get(&self, question: QuestionKey, now: Timestamp) -> Option<Recent> {
        let is_new = |recent: &Recent| (SignedDuration::ZERO..KEPT_FOR).contains(&now.duration_since(recent.made));
        let holds = |recent: &Recent| recent.valid_until.is_none_or(|until| now < until);
        self.0.get(&question).filter(|recent| is_new(recent) && holds(recent))
    }

    /// Keeps a decision. Only one about a trusted agent is likely to be asked for again at once.
    pub(super) fn keep(
        &self,
        question: [QuestionKey; 2],
        name: &str,
        decision: &Decision,
        event: DecisionEvent,
        body: &Bytes,
        now: Timestamp,
    ) {
        if decision.state == State::Trusted {
            let recent = Recent {
                name: name.into(),
                event: Arc::new(event),
                verdict: decision.verdict.as_str().into(),
                valid_until: decision.valid_until,
                body: body.clone(),
                made: now,
            };
            question.into_iter().for_each(|key| self.add(key, recent.clone()));
        }
    }

    /// Keeps for a question what was decided about the same one. It is as old as it was.
    pub(super) fn add(&self, question: QuestionKey, recent: Recent) {
        self.0.insert(question, recent);
    }
}

impl Recent {
    /// Whether it is about this very verdict, however that was served.
    pub(super) fn is_about(&self, verdict: &Verdict) -> bool {
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
    use crate::clock::Clock;
    use crate::http::client_limits::Client;
    use crate::http::in_force::InForce;
    use crate::http::state::AppState;
    use crate::http::{decisions, serving};
    use crate::resolve::Resolver;
    use crate::sandbox::Sandbox;

    const NAME: &str = "summarizeagent.eth";
    const CLIENT: Client = Client::Address(IpAddr::V4(Ipv4Addr::LOCALHOST));

    /// A time that stands still, however slow the machine is.
    struct Stopped(Timestamp);

    impl Clock for Stopped {
        fn now(&self) -> Timestamp {
            self.0
        }
    }

    /// A daemon on the sandbox, without its listener, that knows [`NAME`].
    struct Daemon {
        in_force: Arc<InForce>,
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
            // What the chain announces is read again in jobs of its own, which these tests would take for theirs.
            state.following.stop();
            resolver.resolve(NAME).await;
            Self { in_force: Arc::new(InForce::new(serving(state))), _sandbox: sandbox }
        }

        /// The answer to a question, and how many jobs it took.
        async fn asked(&self, question: &Value) -> (Bytes, usize) {
            let state = self.in_force.state();
            let before = state.resolver.pool().begun();
            let request = Request::post("/").header(CONTENT_TYPE, "application/json");
            let request = request.body(Body::from(question.to_string())).expect("a request");
            let (state_of_route, in_force) = (State(Arc::clone(&state)), Extension(Arc::clone(&self.in_force)));
            let response = decisions::decide(state_of_route, in_force, Extension(CLIENT), request).await;
            assert_eq!(response.status(), 200);
            let body = to_bytes(response.into_body(), 1 << 20).await.expect("a body");
            (body, state.resolver.pool().begun() - before)
        }
    }

    /// A question about the reply of a seller.
    fn question(date: &str, terms: &str) -> Value {
        let headers = json!([["date", date], ["payment-required", STANDARD.encode(terms)]]);
        let response = json!({"status": 402, "url": "https://api.example/", "headers": headers});
        json!({"name": NAME, "verb": "summarize", "response": response})
    }

    /// A seller dates each of its replies, and guards hand them on as they came.
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
