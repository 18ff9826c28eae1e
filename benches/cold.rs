//! A cold verdict over warm connections, when every request to the world takes 50 ms longer; beside the two round trips
//! that none can do without: one to the chain, one for the content.

mod support;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use clresolve::clock::SystemClock;
use clresolve::config::{Endpoint, ProofDemand};
use clresolve::sandbox::Sandbox;
use clresolve::{Resolver, State};
use tokio::runtime::Runtime;

use support::delay::{self, DELAY, far_away, one_after_another, taken};
use support::{GOOD, Good, Row, median, median_ratio};

/// 110 ms over the 100 ms of two round trips.
const BUDGET: f64 = 1.1;

/// Each takes more than a tenth of a second.
const ROUNDS: usize = 25;

fn main() {
    if !support::asked_to_measure() {
        return;
    }
    let runtime = Runtime::new().expect("threads can be had");
    let sandbox = runtime.block_on(Sandbox::start()).expect("ports can be had");
    let (config, log) = far_away(&sandbox.config());
    let resolver = runtime.block_on(Resolver::new(&config)).expect("the sandbox's configuration is good");
    let ask = || ask(&runtime, &resolver);
    ask();

    let mut echo = Echo::start();
    let (mut cold, mut bare, mut paths, mut requests) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for _ in 0..ROUNDS {
        taken(&log);
        cold.push(ask());
        let trips = taken(&log);
        requests = trips.len();
        paths.push(one_after_another(&trips));
        bare.push(echo.round_trips(2));
    }
    paths.sort_unstable();
    println!("requests of one verdict: {requests}, of which one after another: {}", paths[ROUNDS / 2]);
    let milliseconds = |seconds: &[f64]| format!("{:.1} ms", median(seconds) * 1e3);
    println!("cold verdict {}, two bare round trips {}", milliseconds(&cold), milliseconds(&bare));
    grades(&runtime, &sandbox);
    Row {
        what: "cold verdict, 50 ms added to every request, connections warm",
        measured: format!("{} (budget 110 ms), {} requests one after another", milliseconds(&cold), paths[ROUNDS / 2]),
        beside: format!("two bare round trips: {}", milliseconds(&bare)),
        ratio: median_ratio(&cold, &bare),
        budget: BUDGET,
        good: Good::AtMost,
    }
    .end("bench-cold");
}

/// Seconds for a verdict over the same connections, with an empty cache. What is kept of contracts' code stays.
fn ask(runtime: &Runtime, resolver: &Resolver) -> f64 {
    let cold = resolver.with_clock(Arc::new(SystemClock));
    let started = Instant::now();
    let resolution = runtime.block_on(cold.resolve(GOOD));
    let took = started.elapsed();
    assert_eq!(resolution.verdict.state, State::Trusted, "{:?}", resolution.verdict.reasons);
    took.as_secs_f64()
}

/// What each grade of proof takes, for the record: no budget is set for them.
fn grades(runtime: &Runtime, sandbox: &Sandbox) {
    let grades = [(ProofDemand::SingleRpc, 1), (ProofDemand::Quorum, 3), (ProofDemand::StateProof, 3)];
    for (proof, endpoints) in grades {
        let mut config = sandbox.config();
        let one = config.chain.endpoints.remove(0);
        let named = |place: usize| format!("node-{place}");
        let node = |place| Endpoint { label: named(place), operator: named(place), ..one.clone() };
        config.chain.endpoints = (0..endpoints).map(node).collect();
        config.chain.proof = Some(proof);
        let (config, log) = far_away(&config);
        let resolver = runtime.block_on(Resolver::new(&config)).expect("the sandbox's configuration is good");
        ask(runtime, &resolver);
        let (mut seconds, mut requests, mut paths) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            taken(&log);
            seconds.push(ask(runtime, &resolver));
            let trips = taken(&log);
            requests.push(trips.len());
            paths.push(one_after_another(&trips));
        }
        requests.sort_unstable();
        paths.sort_unstable();
        println!(
            "{proof} of {endpoints}: {:.1} ms, {} requests, {} one after another",
            median(&seconds) * 1e3,
            requests[ROUNDS / 2],
            paths[ROUNDS / 2]
        );
    }
}

/// A server that says what it was told, at the far end of the same kind of line.
struct Echo(TcpStream);

impl Echo {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port can be had");
        let far = listener.local_addr().expect("it is bound");
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("somebody comes");
            let mut byte = [0];
            while stream.read_exact(&mut byte).and_then(|()| stream.write_all(&byte)).is_ok() {}
        });
        let stream = TcpStream::connect(delay::line(far, &delay::Log::default())).expect("the line is there");
        stream.set_nodelay(true).expect("a socket");
        let mut echo = Self(stream);
        assert!(echo.round_trips(1) >= DELAY.as_secs_f64());
        echo
    }

    /// Seconds for so many round trips.
    fn round_trips(&mut self, number: usize) -> f64 {
        let started = Instant::now();
        for _ in 0..number {
            self.0.write_all(b"x").and_then(|()| self.0.read_exact(&mut [0])).expect("the line holds");
        }
        started.elapsed().as_secs_f64()
    }
}
