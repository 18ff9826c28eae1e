//! A warm verdict in the library, beside a hit of a bare moka cache that holds the same value.

mod support;

use std::hint::black_box;

use clresolve_resolver::{Question, Resolution, State};
use clresolve_verdict::verdict::Served;
use moka::future::Cache;

use support::{GOOD, Good, ROUNDS, Row, in_turn, micros, sandbox, timed_in, undisturbed};

/// The most that a verdict may take, over the bare hit.
const BUDGET: f64 = 1.3;

/// How the owner of an agent may type its name.
const TYPED: &str = "SummarizeAgent.eth";

fn main() {
    if !support::asked_to_measure() {
        return;
    }
    let (runtime, _sandbox, resolver) = sandbox();
    let bare: Cache<String, Resolution> = Cache::new(10_000);
    let warm = runtime.block_on(async {
        resolver.resolve(GOOD).await;
        let warm = resolver.resolve(GOOD).await;
        bare.insert(GOOD.to_owned(), warm.clone()).await;
        warm
    });
    assert_eq!((warm.verdict().state, warm.verdict().freshness.served), (State::Trusted, Served::Cached));

    let question = Question::new(GOOD);
    let [resolve, ask, retyped, get] = in_turn(
        ROUNDS,
        [
            &mut timed_in(&runtime, async || resolver.resolve(black_box(GOOD)).await),
            &mut timed_in(&runtime, async || resolver.ask(black_box(&question)).await),
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
