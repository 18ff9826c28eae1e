//! Measures a cold verdict over warm connections under each grade of proof, with 50 ms added to every request to the
//! sandbox, and compares it with the two necessary round trips: one to the chain, one for the content. Under
//! `consensus-proof`, the light client is warm, and the verdict is also compared with one under `state-proof`.

mod support;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

use clresolve_core::state::TrustState;
use clresolve_resolver::Resolver;
use clresolve_resolver::config::{ChainProofMode, RpcEndpointConfig};
use clresolve_resolver::sandbox::Sandbox;
use tokio::runtime::Runtime;

use support::delay::{self, DELAY, far_away, one_after_another, taken};
use support::{GOOD, Good, Row, median, median_ratio};

/// A grade of proof, its endpoints, and the maximum ratio of a verdict's time to that of two round trips.
struct Graded {
    what: &'static str,
    proof: ChainProofMode,
    endpoints: usize,
    budget: f64,
}

/// The chain and the content take a round trip each, and 5 ms remain. The name is known, so the state that its last
/// resolution read is proven while the header is requested. The cryptography and EVM execution of a state proof must
/// fit into the same 5 ms.
const GRADES: [Graded; 4] = [
    Graded { what: "`single-rpc`", proof: ChainProofMode::SingleRpc, endpoints: 1, budget: 1.05 },
    Graded { what: "`quorum` 2 of 3", proof: ChainProofMode::Quorum, endpoints: 3, budget: 1.05 },
    Graded { what: "`state-proof` 2 of 3", proof: ChainProofMode::StateProof, endpoints: 3, budget: 1.05 },
    Graded { what: "`consensus-proof`", proof: ChainProofMode::ConsensusProof, endpoints: 3, budget: 1.05 },
];

/// Maximum ratio of a verdict under `consensus-proof` to one under `state-proof`.
const CONSENSUS_BUDGET: f64 = 1.05;

/// Few rounds, because each takes more than a tenth of a second.
const ROUNDS: usize = 25;

fn main() {
    if !support::asked_to_measure() {
        return;
    }
    let runtime = Runtime::new().expect("threads can be had");
    let sandbox = runtime.block_on(Sandbox::start()).expect("ports can be had");
    let mut echo = Echo::start();
    let mut measured = GRADES.map(|graded| Measured::new(&graded, &runtime, &sandbox));
    for _ in 0..ROUNDS {
        measured.iter_mut().for_each(|measured| measured.round(&runtime, &mut echo));
    }
    let labels = measured.each_ref().map(Measured::label);
    let rows: Vec<Row<'_>> = measured.iter().zip(&labels).map(|(measured, label)| measured.row(label)).collect();
    for row in &rows {
        row.print("bench-cold");
    }
    let [.., state, consensus] = &measured;
    consensus.beside(state).print("bench-cold");
    rows[0].verdict();
}

struct Measured {
    graded: &'static str,
    budget: f64,
    resolver: Resolver,
    log: delay::Log,
    /// Seconds per verdict, and per two bare round trips in the same round.
    cold: Vec<f64>,
    bare: Vec<f64>,
    /// Number of requests per verdict, and of those that were sequential.
    requests: Vec<usize>,
    paths: Vec<usize>,
}

impl Measured {
    fn new(graded: &Graded, runtime: &Runtime, sandbox: &Sandbox) -> Self {
        let mut config = sandbox.config();
        let one = config.chain.endpoints.remove(0);
        let named = |place: usize| format!("node-{place}");
        let node = |place| RpcEndpointConfig { label: named(place), operator: named(place), ..one.clone() };
        config.chain.endpoints = (0..graded.endpoints).map(node).collect();
        config.chain.proof = Some(graded.proof);
        let (config, log) = far_away(&config);
        let resolver = runtime.block_on(Resolver::new(&config)).expect("the sandbox's configuration is good");
        ask(runtime, &resolver);
        let (graded, budget) = (graded.what, graded.budget);
        let (cold, bare, requests, paths) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { graded, budget, resolver, log, cold, bare, requests, paths }
    }

    /// Measures once. The grades take turns, so that a busy machine affects them all equally.
    fn round(&mut self, runtime: &Runtime, echo: &mut Echo) {
        taken(&self.log);
        self.cold.push(ask(runtime, &self.resolver));
        let trips = taken(&self.log);
        self.requests.push(trips.len());
        self.paths.push(one_after_another(&trips));
        self.bare.push(echo.round_trips(2));
    }

    fn label(&self) -> String {
        format!("cold verdict under {}, 50 ms added to every request, connections warm", self.graded)
    }

    fn row<'r>(&self, label: &'r str) -> Row<'r> {
        let [requests, path] = [&self.requests, &self.paths].map(|counts| {
            let mut sorted = counts.clone();
            sorted.sort_unstable();
            sorted[ROUNDS / 2]
        });
        Row {
            what: label,
            measured: format!("{}, {requests} requests, {path} one after another", milliseconds(&self.cold)),
            beside: format!("two bare round trips: {}", milliseconds(&self.bare)),
            ratio: median_ratio(&self.cold, &self.bare),
            budget: self.budget,
            good: Good::AtMost,
        }
    }

    /// This grade beside a weaker one.
    fn beside(&self, weaker: &Self) -> Row<'static> {
        Row {
            what: "the same verdict under the strongest grade, with a warm light client",
            measured: format!("{}: {}", self.graded, milliseconds(&self.cold)),
            beside: format!("{}: {}", weaker.graded, milliseconds(&weaker.cold)),
            ratio: median_ratio(&self.cold, &weaker.cold),
            budget: CONSENSUS_BUDGET,
            good: Good::AtMost,
        }
    }
}

fn milliseconds(seconds: &[f64]) -> String {
    format!("{:.1} ms", median(seconds) * 1e3)
}

/// Seconds for a verdict over the same connections, with an empty cache. The code of contracts and the keys that calls
/// read last time stay cached.
fn ask(runtime: &Runtime, resolver: &Resolver) -> f64 {
    let cold = resolver.with_empty_cache();
    let started = Instant::now();
    let resolution = runtime.block_on(cold.resolve(GOOD));
    let took = started.elapsed();
    assert_eq!(resolution.verdict().state, TrustState::Trusted, "{:?}", resolution.verdict().reasons);
    took.as_secs_f64()
}

/// An echo server behind the same kind of delayed connection.
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

    /// Seconds for this number of round trips.
    fn round_trips(&mut self, number: usize) -> f64 {
        let started = Instant::now();
        for _ in 0..number {
            self.0.write_all(b"x").and_then(|()| self.0.read_exact(&mut [0])).expect("the line holds");
        }
        started.elapsed().as_secs_f64()
    }
}
