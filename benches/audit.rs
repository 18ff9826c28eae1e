//! Compares an audit of 10,000 names with one of 1,000: memory must not grow with the number of names. Each name is
//! distinct and fully resolved against a sandbox in another process.

mod support;

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use support::{Good, Row, program};

/// Maximum growth of the memory peak from the short list to the long one.
const BUDGET: f64 = 1.1;

const SHORT: usize = 1_000;
const LONG: usize = 10_000;

/// Interval between two memory samples of the audit.
const GLANCE: Duration = Duration::from_millis(5);

fn main() {
    if !support::asked_to_measure() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = folder.path().join("sandbox.toml");
    let mut sandbox = program(&["sandbox", "--write-config", &config.display().to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the sandbox starts");
    let mut said = String::new();
    let mut out = BufReader::new(sandbox.stdout.take().expect("it is a pipe"));
    out.read_line(&mut said).expect("the sandbox says that it runs");

    let [short, long] = [SHORT, LONG].map(|names| audit(folder.path(), &config, names));
    sandbox.kill().and_then(|()| sandbox.wait()).expect("the sandbox ends");
    for audit in [&short, &long] {
        let Audit { names, megabytes, seconds } = audit;
        println!("{names} names: peak {megabytes:.1} MiB, {seconds:.1} s, {:.0} names/s", *names as f64 / seconds);
    }
    Row {
        what: "audit of 10,000 names, peak memory",
        measured: format!("{:.1} MiB, {:.0} names/s", long.megabytes, long.names as f64 / long.seconds),
        beside: format!("1,000 names: {:.1} MiB", short.megabytes),
        ratio: long.megabytes / short.megabytes,
        budget: BUDGET,
        good: Good::AtMost,
    }
    .end("bench-audit");
}

struct Audit {
    names: usize,
    megabytes: f64,
    seconds: f64,
}

/// Audits subnames of a wildcard: each has its own records and a card that does not match its name.
fn audit(folder: &Path, config: &Path, names: usize) -> Audit {
    let mut list = String::new();
    for number in 0..names {
        let _ = writeln!(list, "agent{number}.wildcard.eth");
    }
    let [list_at, report_at] = ["names.txt", "report.json"].map(|name| folder.join(name).display().to_string());
    std::fs::write(&list_at, list).expect("the folder can be written");
    let config = config.display().to_string();
    let started = Instant::now();
    let child = program(&["audit", "--config", &config, "--names", &list_at, "--depth", "identity"])
        .args(["--format", "json", "--out", &report_at])
        .stderr(Stdio::null())
        .spawn()
        .expect("the audit starts");
    let megabytes = peak_until_its_end(child);
    let seconds = started.elapsed().as_secs_f64();
    let report = std::fs::read(&report_at).expect("the audit wrote its report");
    let report: serde_json::Value = serde_json::from_slice(&report).expect("the report is JSON");
    let judged = report["counts"]["names"].as_u64();
    assert_eq!(judged, u64::try_from(names).ok(), "each name was judged: {}", report["counts"]);
    Audit { names, megabytes, seconds }
}

/// The highest observed memory peak of the process in MiB, sampled until it ends.
#[expect(clippy::disallowed_methods, reason = "another process is watched")]
fn peak_until_its_end(mut child: Child) -> f64 {
    let mut peak = 0.0_f64;
    while child.try_wait().expect("it is ours").is_none() {
        peak = peak.max(peak_of(child.id()).unwrap_or(0.0));
        std::thread::sleep(GLANCE);
    }
    peak
}

/// The process's high water mark of memory (`VmHWM`).
fn peak_of(process: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: f64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes / 1024.0)
}
