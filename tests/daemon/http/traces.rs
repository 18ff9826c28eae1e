//! Traces: what a collector gets of a run, and that nobody waits for one that takes nothing.
//!
//! One test sends to a real collector. The test says that it is skipped if `rotel-agent` is not installed.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::process::Stdio;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Attribute;
use opentelemetry_proto::tonic::trace::v1::Span;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use super::{BAD, Daemon, GOOD, PATIENCE};

/// A listener that a collector has, and its URL.
async fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("its address"));
    (listener, url)
}

/// A daemon that sends its traces there.
async fn traced(url: &str) -> Daemon {
    Daemon::start(|config| config.telemetry.otlp = Some(url.parse().expect("a URL"))).await
}

/// The next request that a connection brings: its head, and what it exports.
async fn exported(stream: &mut TcpStream) -> (String, ExportTraceServiceRequest) {
    let mut bytes = Vec::new();
    let (head, length) = loop {
        assert_ne!(stream.read_buf(&mut bytes).await.expect("bytes"), 0, "the request is whole");
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse::<usize>().ok());
        bytes.drain(..end + 4);
        break (head, length.expect("a length"));
    };
    while bytes.len() < length {
        assert_ne!(stream.read_buf(&mut bytes).await.expect("bytes"), 0, "the body is whole");
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.expect("an answer");
    (head, serde_json::from_slice(&bytes).expect("OTLP in JSON"))
}

/// A span's attributes that are texts.
fn texts(span: &Span) -> Vec<(&str, &str)> {
    span.attributes.iter().filter_map(text).collect()
}

fn text(attribute: &KeyValue) -> Option<(&str, &str)> {
    match attribute.value.as_ref()?.value.as_ref()? {
        Attribute::StringValue(text) => Some((&attribute.key, text)),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_trace_of_a_run_has_a_span_for_each_step() {
    let (listener, url) = listener().await;
    let daemon = traced(&url).await;
    let verdict = daemon.get(&format!("/v1/verdicts/{GOOD}")).await.json();
    let (mut stream, _) = timeout(PATIENCE, listener.accept()).await.expect("in time").expect("a connection");
    let (head, sent) = exported(&mut stream).await;
    assert!(head.starts_with("post /v1/traces http/1.1") && head.contains("content-type: application/json"), "{head}");
    let spans = &sent.resource_spans[0].scope_spans[0].spans;
    let (run, below) = spans.split_first().expect("a run");
    assert_eq!((run.name.as_str(), run.trace_id.len(), run.span_id.len()), ("resolve", 16, 8));
    let id = verdict["id"].as_str().expect("an id");
    for pair in [("clresolve.name", GOOD), ("clresolve.state", "trusted"), ("clresolve.verdict", id)] {
        assert!(texts(run).contains(&pair), "{pair:?}: {run:?}");
    }
    let steps = verdict["steps"].as_array().expect("steps");
    let expected: Vec<_> = steps.iter().map(|step| (step["step"].as_str(), step["status"].as_str())).collect();
    let found: Vec<_> = below.iter().map(|span| (Some(span.name.as_str()), texts(span).first().map(|t| t.1))).collect();
    assert_eq!(found, expected);
    for span in below {
        assert_eq!((&span.trace_id, &span.parent_span_id), (&run.trace_id, &run.span_id), "{span:?}");
        assert!(run.start_time_unix_nano <= span.start_time_unix_nano, "{span:?}");
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano, "{span:?}");
        assert!(span.end_time_unix_nano <= run.end_time_unix_nano, "{span:?}");
    }
    let ids: BTreeSet<_> = spans.iter().map(|span| &span.span_id).collect();
    assert_eq!(ids.len(), spans.len());
    let records = below.iter().find(|span| span.name == "records").expect("the chain is read");
    assert!(records.start_time_unix_nano < records.end_time_unix_nano, "reading takes time");

    // An answer from the cache is no run: the next trace is about the next name, and holds nothing that it wrote.
    daemon.get(&format!("/v1/verdicts/{GOOD}")).await;
    daemon.get("/v1/verdicts/script-in-card.eth").await;
    let (_, sent) = exported(&mut stream).await;
    let run = &sent.resource_spans[0].scope_spans[0].spans[0];
    assert!(texts(run).contains(&("clresolve.name", "script-in-card.eth")), "{run:?}");
    assert!(!format!("{sent:?}").contains("<script"), "{sent:?}");
}

/// Rotel, which prints the spans as it has read them. It ends when this is dropped.
struct Collector {
    url: String,
    said: Lines<BufReader<ChildStdout>>,
    _process: Child,
}

impl Collector {
    /// `None` where it is not installed.
    async fn start() -> Option<Self> {
        let (free, url) = listener().await;
        drop(free);
        let address = url.strip_prefix("http://").expect("HTTP");
        let mut command = Command::new("rotel-agent");
        command.args([
            "start",
            "--exporter",
            "blackhole",
            "--debug-log",
            "traces",
            "--debug-log-verbosity",
            "detailed",
        ]);
        command.args(["--otlp-grpc-endpoint", "127.0.0.1:0", "--otlp-http-endpoint", address]);
        let mut process = match command.stdout(Stdio::piped()).kill_on_drop(true).spawn() {
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            spawned => spawned.expect("it starts"),
        };
        let listens = async { while TcpStream::connect(address).await.is_err() {} };
        timeout(PATIENCE, listens).await.expect("it listens");
        let said = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        Some(Self { url, said, _process: process })
    }

    /// What the collector prints about the next `count` spans: the lines of each, split at their first colons.
    async fn spans(&mut self, count: usize) -> Vec<Vec<(String, String)>> {
        let mut spans: Vec<Vec<_>> = Vec::new();
        let is_whole = |span: &Vec<(String, String)>| span.iter().any(|(key, _)| key.starts_with("-> "));
        while spans.len() < count || !spans.last().is_some_and(is_whole) {
            let line = timeout(PATIENCE, self.said.next_line()).await.expect("in time").expect("text").expect("a line");
            match (line.split_once(':'), spans.last_mut()) {
                _ if line.starts_with("Span #") => spans.push(Vec::new()),
                (Some((key, value)), Some(span)) => span.push((key.trim().to_owned(), value.trim().to_owned())),
                _ => {}
            }
        }
        spans
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_collector_reads_the_trace_of_a_run() {
    let Some(mut collector) = Collector::start().await else {
        println!("skipped: there is no rotel-agent; `just collector` runs this");
        return;
    };
    let daemon = traced(&collector.url).await;
    let verdict = daemon.get("/v1/verdicts/cid-unproven.eth").await.json();
    let steps = verdict["steps"].as_array().expect("steps");
    let spans = collector.spans(1 + steps.len()).await;
    let field = |span: &[(String, String)], key: &str| {
        let found = span.iter().find(|(known, _)| known == key);
        found.map(|(_, value)| value.clone()).unwrap_or_else(|| panic!("no {key}: {span:?}"))
    };
    let is_error = |span: &[(String, String)]| {
        span.iter().any(|(key, value)| (key.as_str(), value.as_str()) == ("Status code", "STATUS_CODE_ERROR"))
    };
    let (run, below) = spans.split_first().expect("a run");
    assert_eq!((field(run, "Name").as_str(), is_error(run)), ("resolve", true), "the run is open: {run:?}");
    assert_eq!(field(run, "-> clresolve.name"), "Str(cid-unproven.eth)");
    assert_eq!(field(run, "-> clresolve.verdict"), format!("Str({})", verdict["id"].as_str().expect("an id")));
    for (span, step) in below.iter().zip(steps) {
        assert_eq!(Some(field(span, "Name").as_str()), step["step"].as_str());
        let status = step["status"].as_str().expect("a status");
        assert_eq!(field(span, "-> clresolve.step.status"), format!("Str({status})"));
        assert_eq!(is_error(span), status == "unknown", "{span:?}");
        assert_eq!((field(span, "Trace ID"), field(span, "Parent ID")), (field(run, "Trace ID"), field(run, "ID")));
        assert_eq!(field(span, "Kind"), "SPAN_KIND_INTERNAL");
        let time = |span: &[(String, String)], key: &str| field(span, key).parse::<u64>().expect("nanoseconds");
        assert!(time(run, "Start time") <= time(span, "Start time") && time(span, "End time") <= time(run, "End time"));
    }
}

/// Spans that a collector did not take, in this process.
async fn dropped(daemon: &Daemon) -> u64 {
    let counts = String::from_utf8(daemon.get("/metrics").await.body).expect("text");
    let of_collector = |line: &str| {
        let count = line.strip_prefix("clresolve_trace_spans_dropped_total{why=\"collector\"} ")?;
        count.parse().ok()
    };
    counts.lines().find_map(of_collector).unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_dead_or_stalls_holds_up_no_answer() {
    let (dead, gone) = listener().await;
    drop(dead);
    // Connections come in, and nobody reads them.
    let (_stalls, silent) = listener().await;
    for url in [gone, silent] {
        let daemon = traced(&url).await;
        let before = dropped(&daemon).await;
        for name in [GOOD, BAD, "cid-unproven.eth"] {
            assert_eq!(daemon.get(&format!("/v1/verdicts/{name}")).await.status, 200, "{url}");
        }
        assert_eq!(daemon.get(&format!("/v1/gate/{GOOD}")).await.status, 200, "{url}");
        let counted = async {
            while dropped(&daemon).await <= before {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(PATIENCE, counted).await.expect("what it did not take is counted");
    }
}
