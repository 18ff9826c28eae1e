//! From the start of the process: to its version and help, to a verdict, and to a daemon that is ready. The verdict is
//! asked of a sandbox that runs elsewhere, near by and with 50 ms on every way to it.

mod support;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clresolve::sandbox::Sandbox;
use tokio::runtime::Runtime;

use support::delay::far_away;
use support::{GOOD, Good, Row, median, program};

/// Starts of each kind.
const ROUNDS: usize = 15;

/// Budgets, in milliseconds. That of the verdict far away is what a script of viem, a CAR fetch and Ajv needs.
const VERSION: f64 = 15.0;
const READY: f64 = 300.0;
const VERDICT_FAR_AWAY: f64 = 1100.0;

fn main() {
    if !support::asked_to_measure() {
        return;
    }
    let runtime = Runtime::new().expect("threads can be had");
    let sandbox = runtime.block_on(Sandbox::start()).expect("ports can be had");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let save = |config: &clresolve::Config, name: &str| {
        let path = folder.path().join(name);
        config.save(&path).expect("the folder can be written");
        path.display().to_string()
    };
    let near = save(&sandbox.config(), "near.toml");
    let far = save(&far_away(&sandbox.config()).0, "far.toml");

    let [mut nothing, mut version, mut help, mut near_by, mut far_off, mut ready] = [const { Vec::new() }; 6];
    for _ in 0..ROUNDS {
        nothing.push(run(&mut Command::new("true")));
        version.push(run(&mut program(&["--version"])));
        help.push(run(&mut program(&["--help"])));
        near_by.push(run(&mut program(&["--config", &near, GOOD])));
        far_off.push(run(&mut program(&["--config", &far, GOOD])));
        ready.push(until_ready(&near));
    }
    let nothing = format!("`true`: {:.1} ms", median(&nothing));
    println!("process start to verdict, world near by: {:.1} ms (no budget)", median(&near_by));
    let rows = [
        ("process start to `--version`", version, &*nothing, VERSION),
        ("process start to `--help`", help, &*nothing, VERSION),
        (
            "process start to verdict, 50 ms added to every way",
            far_off,
            "budget: what a glued script needs",
            VERDICT_FAR_AWAY,
        ),
        ("daemon ready", ready, &*nothing, READY),
    ];
    let rows = rows.map(|(what, times, beside, budget)| Row {
        what,
        measured: format!("{:.1} ms (budget {budget:.0} ms)", median(&times)),
        beside: beside.to_owned(),
        ratio: median(&times) / budget,
        budget: 1.0,
        good: Good::AtMost,
    });
    rows.iter().for_each(|row| row.print("bench-process"));
    let worst = rows.iter().max_by(|a, b| a.ratio.total_cmp(&b.ratio)).expect("there are rows");
    println!("the one that is nearest to its budget: {}", worst.what);
    worst.verdict();
}

/// Milliseconds from the start of a process to its good end.
fn run(command: &mut Command) -> f64 {
    let started = Instant::now();
    let output = command.stdin(Stdio::null()).output().expect("it starts");
    let took = started.elapsed();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    took.as_secs_f64() * 1e3
}

/// Milliseconds from the start of a daemon to its first `200` at `/readyz`.
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
