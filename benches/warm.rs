//! Compares a warm verdict in the library with a hit of a bare moka cache that contains the same value, and a warm
//! check of a seller with a warm decision.

mod support;

use std::hint::black_box;

use clresolve_core::state::TrustState;
use clresolve_payment::PaymentDecisionRequest;
use clresolve_payment::check::SellerCheckRequest;
use clresolve_resolver::NameQuestion;
use clresolve_resolver::sandbox::Sandbox;
use clresolve_verdict::trust::Resolution;
use clresolve_verdict::verdict::VerdictCopyKind;
use moka::future::Cache;

use support::{GOOD, Good, ROUNDS, Row, following, in_turn, micros, sandbox, timed_in, undisturbed};
use tokio::runtime::Runtime;

/// Maximum ratio to the bare hit.
const BUDGET: f64 = 1.3;

/// A spelling of the agent's name that is not in normal form.
const TYPED: &str = "SummarizeAgent.eth";

fn main() {
    if !support::asked_to_measure() {
        return;
    }
    let (runtime, sandbox, resolver) = sandbox();
    payments(&runtime, &sandbox);
    let bare: Cache<String, Resolution> = Cache::new(10_000);
    let warm = runtime.block_on(async {
        resolver.resolve(GOOD).await;
        let warm = resolver.resolve(GOOD).await;
        bare.insert(GOOD.to_owned(), warm.clone()).await;
        warm
    });
    assert_eq!((warm.verdict().state, warm.verdict().freshness.served), (TrustState::Trusted, VerdictCopyKind::Cached));

    let question = NameQuestion::new(GOOD);
    let [resolve, ask, retyped, get] = in_turn(
        ROUNDS,
        [
            &mut timed_in(&runtime, async || resolver.resolve(black_box(GOOD)).await),
            &mut timed_in(&runtime, async || resolver.resolve_question(black_box(&question)).await),
            &mut timed_in(&runtime, async || resolver.resolve(black_box(TYPED)).await),
            &mut timed_in(&runtime, async || bare.get(black_box(GOOD)).await),
        ],
    );
    println!(
        "resolve {}, ask {}, bare moka {}; without a budget: resolve of a name typed as {TYPED} {}",
        micros(undisturbed(&resolve)),
        micros(undisturbed(&ask)),
        micros(undisturbed(&get)),
        micros(undisturbed(&retyped)),
    );
    Row {
        what: "warm verdict in the library",
        measured: micros(undisturbed(&resolve)),
        beside: format!("hit of a bare moka cache: {}", micros(undisturbed(&get))),
        ratio: undisturbed(&resolve) / undisturbed(&get),
        budget: BUDGET,
        good: Good::AtMost,
    }
    .end("bench-warm");
}

/// Maximum CPU time of a check, in nanoseconds. It runs alone, so its elapsed time is at least that.
const CHECK_NANOS: f64 = 250_000.0;

/// Measures a check and a decision about the same terms, whose verdict is cached and confirmed by the head.
fn payments(runtime: &Runtime, sandbox: &Sandbox) {
    const URL: &str = "https://api.sandbox.example/summarize/v1";
    let (resolver, _follower) = following(runtime, sandbox);
    let (decided, checked) = runtime.block_on(async {
        let reply = resolver.send_unpaid_request(URL, Some("{}")).await.expect("the seller answers");
        let decided = PaymentDecisionRequest::from_seller_reply(GOOD, "summarize", URL, reply.clone());
        let checked =
            SellerCheckRequest { name: Some(GOOD.to_owned()), ..SellerCheckRequest::from_seller_reply(URL, reply) };
        assert!(!resolver.decide_payment(&decided).await.abort && !resolver.check_seller(&checked).await.abort);
        (decided, checked)
    });
    let [check, decision] = in_turn(
        ROUNDS,
        [
            &mut timed_in(runtime, async || resolver.check_seller(black_box(&checked)).await),
            &mut timed_in(runtime, async || resolver.decide_payment(black_box(&decided)).await),
        ],
    );
    let (check, decision) = (undisturbed(&check), undisturbed(&decision));
    Row {
        what: "warm check in the library",
        measured: micros(check),
        beside: format!("0.25 ms; a warm decision: {}, {:.2} of it", micros(decision), check / decision),
        ratio: check / CHECK_NANOS,
        budget: 1.0,
        good: Good::AtMost,
    }
    .print("bench-warm");
}
