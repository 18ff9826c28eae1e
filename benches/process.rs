//! Measures the time from process start to version and help, to a verdict, and to a ready daemon. The verdict comes
//! from a sandbox in another process, with and without 50 ms added to every request. The delayed one is compared with
//! the handshakes and round trips that it needs.

mod support;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clresolve_resolver::sandbox::Sandbox;
use tokio::runtime::Runtime;

use support::delay::{DELAY, far_away, one_after_another, taken};
use support::{GOOD, Good, Row, median, median_ratio, program};

/// Number of starts of each kind.
const ROUNDS: usize = 15;

/// Budgets, in milliseconds.
const VERSION: f64 = 15.0;
const READY: f64 = 300.0;

/// Maximum ratio of a verdict's time to that of [`NEEDED`] handshakes and round trips.
const VERDICT: f64 = 1.12;

/// The critical path of a client that first loads its rules: the handshake with the rules' host; all rules in parallel;
/// the records, from an endpoint over plain HTTP; the handshake with the card's host, which the records name; and the
/// card, in parallel with the holder of the owner's name.
const NEEDED: usize = 5;

fn main() {
    if !support::asked_to_measure() {
        return;
    }
    let runtime = Runtime::new().expect("threads can be had");
    let sandbox = runtime.block_on(Sandbox::start()).expect("ports can be had");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let save = |config: &clresolve_resolver::Config, name: &str| {
        let path = folder.path().join(name);
        config.save(&path).expect("the folder can be written");
        path.display().to_string()
    };
    let near = save(&sandbox.config(), "near.toml");
    let (far, log) = far_away(&sandbox.config());
    let far = save(&far, "far.toml");

    let [mut nothing, mut version, mut help, mut near_by, mut far_off, mut trips, mut ready] =
        [const { Vec::new() }; 7];
    for _ in 0..ROUNDS {
        nothing.push(run(&mut Command::new("true")));
        version.push(run(&mut program(&["--version"])));
        help.push(run(&mut program(&["--help"])));
        near_by.push(run(&mut program(&["--config", &near, GOOD])));
        taken(&log);
        far_off.push(run(&mut program(&["--config", &far, GOOD])));
        trips.push(one_after_another(&taken(&log)) as f64);
        ready.push(until_ready(&near));
    }
    let nothing = format!("`true`: {:.1} ms", median(&nothing));
    println!("process start to verdict, world near by: {:.1} ms (no budget)", median(&near_by));
    let rows = [
        ("process start to `--version`", version, &*nothing, VERSION),
        ("process start to `--help`", help, &*nothing, VERSION),
        ("daemon ready", ready, &*nothing, READY),
    ];
    for (what, times, beside, budget) in rows {
        let measured = format!("{:.1} ms (budget {budget:.0} ms)", median(&times));
        let (beside, ratio) = (beside.to_owned(), median(&times) / budget);
        Row { what, measured, beside, ratio, budget: 1.0, good: Good::AtMost }.print("bench-process");
    }
    let delay = DELAY.as_secs_f64() * 1e3;
    let cost = vec![NEEDED as f64 * delay; ROUNDS];
    let went = median(&trips);
    assert!(went >= NEEDED as f64, "{went} handshakes and round trips are enough");
    Row {
        what: "process start to verdict, 50 ms added to every way",
        measured: format!("{:.1} ms, {went} trips one after another", median(&far_off)),
        beside: format!("the {NEEDED} handshakes and round trips that it needs: {:.1} ms", median(&cost)),
        ratio: median_ratio(&far_off, &cost),
        budget: VERDICT,
        good: Good::AtMost,
    }
    .end("bench-process");
}

/// Milliseconds from the start of a process to its successful end.
fn run(command: &mut Command) -> f64 {
    let started = Instant::now();
    let output = command.stdin(Stdio::null()).output().expect("it starts");
    let took = started.elapsed();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    took.as_secs_f64() * 1e3
}

/// Milliseconds from the start of a daemon to its first `200` from `/readyz`.
fn until_ready(config: &str) -> f64 {
    let address = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port can be had");
    let started = Instant::now();
    let mut child = program(&["serve", "--config", config, "--listen", &address.to_string()])
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    while !is_ready(address) {
        assert!(started.elapsed() < Duration::from_secs(30), "the daemon is never ready");
    }
    let took = started.elapsed();
    child.kill().and_then(|()| child.wait()).expect("it ends");
    took.as_secs_f64() * 1e3
}

fn is_ready(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else { return false };
    let mut answer = [0; 12];
    let asked = stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n");
    asked.and_then(|()| stream.read_exact(&mut answer)).is_ok() && answer == *b"HTTP/1.1 200"
}
