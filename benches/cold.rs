//! A cold verdict over warm connections under each grade of proof, when every request to the world takes 50 ms longer;
//! beside the two round trips that none can do without: one to the chain, one for the content.

mod support;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

use clresolve_resolver::config::{Endpoint, ProofDemand};
use clresolve_resolver::sandbox::Sandbox;
use clresolve_resolver::{Resolver, State};
use tokio::runtime::Runtime;

use support::delay::{self, DELAY, far_away, one_after_another, taken};
use support::{GOOD, Good, Row, median, median_ratio};

/// A grade of proof, the endpoints that it is asked of, and how long a verdict may take over two round trips.
struct Graded {
    what: &'static str,
    proof: ProofDemand,
    endpoints: usize,
    budget: f64,
}

/// The chain and the content take a round trip each, and 5 ms are left. The name is known, so what it read the last time
/// is proven while the header is asked for; the cryptography and the runs of a state proof have no more than that.
const GRADES: [Graded; 3] = [
    Graded { what: "`single-rpc`", proof: ProofDemand::SingleRpc, endpoints: 1, budget: 1.05 },
    Graded { what: "`quorum` 2 of 3", proof: ProofDemand::Quorum, endpoints: 3, budget: 1.05 },
    Graded { what: "`state-proof` 2 of 3", proof: ProofDemand::StateProof, endpoints: 3, budget: 1.05 },
];

/// Each takes more than a tenth of a second.
const ROUNDS: usize = 25;

fn main() {
    if !support::asked_to_measure() {
        return;
    }
    let runtime = Runtime::new().expect("threads can be had");
    let sandbox = runtime.block_on(Sandbox::start()).expect("ports can be had");
    let mut echo = Echo::start();
    let measured = GRADES.map(|graded| Measured::of(&graded, &runtime, &sandbox, &mut echo));
    let labels = measured.each_ref().map(Measured::label);
    let rows: Vec<Row<'_>> = measured.iter().zip(&labels).map(|(measured, label)| measured.row(label)).collect();
    for row in &rows {
        row.print("bench-cold");
    }
    rows[0].verdict();
}

/// What was measured of a grade.
struct Measured {
    graded: &'static str,
    budget: f64,
    /// Seconds of verdicts, and of two bare round trips beside each.
    cold: Vec<f64>,
    bare: Vec<f64>,
    /// Requests of a verdict, and how many of them went one after another: the middle ones.
    requests: usize,
    path: usize,
}

impl Measured {
    fn of(graded: &Graded, runtime: &Runtime, sandbox: &Sandbox, echo: &mut Echo) -> Self {
        let mut config = sandbox.config();
        let one = config.chain.endpoints.remove(0);
        let named = |place: usize| format!("node-{place}");
        let node = |place| Endpoint { label: named(place), operator: named(place), ..one.clone() };
        config.chain.endpoints = (0..graded.endpoints).map(node).collect();
        config.chain.proof = Some(graded.proof);
        let (config, log) = far_away(&config);
        let resolver = runtime.block_on(Resolver::new(&config)).expect("the sandbox's configuration is good");
        ask(runtime, &resolver);
        let (mut cold, mut bare, mut requests, mut paths) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            taken(&log);
            cold.push(ask(runtime, &resolver));
            let trips = taken(&log);
            requests.push(trips.len());
            paths.push(one_after_another(&trips));
            bare.push(echo.round_trips(2));
        }
        requests.sort_unstable();
        paths.sort_unstable();
        let (requests, path) = (requests[ROUNDS / 2], paths[ROUNDS / 2]);
        Self { graded: graded.what, budget: graded.budget, cold, bare, requests, path }
    }

    fn label(&self) -> String {
        format!("cold verdict under {}, 50 ms added to every request, connections warm", self.graded)
    }

    fn row<'r>(&self, label: &'r str) -> Row<'r> {
        let milliseconds = |seconds: &[f64]| format!("{:.1} ms", median(seconds) * 1e3);
        let Self { cold, bare, requests, path, budget, .. } = self;
        Row {
            what: label,
            measured: format!("{}, {requests} requests, {path} one after another", milliseconds(cold)),
            beside: format!("two bare round trips: {}", milliseconds(bare)),
            ratio: median_ratio(cold, bare),
            budget: *budget,
            good: Good::AtMost,
        }
    }
}

/// Seconds for a verdict over the same connections, with an empty cache. What is kept of contracts' code stays, and so
/// does what calls read the last time.
fn ask(runtime: &Runtime, resolver: &Resolver) -> f64 {
    let cold = resolver.with_empty_cache();
    let started = Instant::now();
    let resolution = runtime.block_on(cold.resolve(GOOD));
    let took = started.elapsed();
    assert_eq!(resolution.verdict().state, State::Trusted, "{:?}", resolution.verdict().reasons);
    took.as_secs_f64()
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
