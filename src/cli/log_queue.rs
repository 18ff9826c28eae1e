//! The daemon's log: a bounded queue that one thread writes to standard error, so that nothing ever waits for a reader.
//! Lines that do not fit are dropped and counted. Incidents and decisions have separate limits, so that a flood of
//! request lines drops none of them.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use clresolve_resolver::telemetry::{self, DECISIONS, INCIDENTS};
use jiff::Timestamp;
use serde_json::json;
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

use super::args::LogFormat;

/// Maximum number of queued bytes per class: some thousand lines.
const MAX_BYTES: usize = 1 << 20;

/// Maximum number of bytes per write, unless a single line is longer.
const MAX_WRITTEN: usize = 64 * 1024;

/// Minimum time between two writes. Under load, the lines of a millisecond need one system call, and wake one thread
/// once.
const BETWEEN_WRITES: Duration = Duration::from_millis(1);

/// Maximum wait for queued lines at exit.
const LAST_LINES: Duration = Duration::from_secs(1);

/// The queue of this process, once it is started.
static QUEUE: OnceLock<Arc<LogQueue>> = OnceLock::new();

#[derive(Debug, Default)]
pub(super) struct LogQueue {
    format: LogFormat,
    waiting: Mutex<QueuedLogLines>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct QueuedLogLines {
    /// In order of arrival, across classes.
    lines: VecDeque<(LogLineClass, Vec<u8>)>,
    usage: [LogClassUsage; 3],
    is_writing: bool,
}

/// Lines that share a size limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogLineClass {
    Incidents,
    Decisions,
    Others,
}

#[derive(Debug, Default)]
struct LogClassUsage {
    bytes: usize,
    /// Lines dropped since the last one that was queued.
    dropped: u64,
}

/// Flushes the queue when dropped, within a time limit.
#[must_use]
pub(super) struct LogFlushGuard(Arc<LogQueue>);

pub(super) fn start_log_queue(format: LogFormat) -> (LogWriterFactory, LogFlushGuard) {
    let queue = Arc::clone(QUEUE.get_or_init(|| {
        let queue = Arc::new(LogQueue { format, ..LogQueue::default() });
        let written = Arc::clone(&queue);
        std::thread::spawn(move || written.write_lines_forever_to(&mut io::stderr()));
        queue
    }));
    (LogWriterFactory(Arc::clone(&queue)), LogFlushGuard(queue))
}

/// Writes a line to standard error whatever the filter, through the queue if there is one. The level is visible only in
/// JSON.
pub(super) fn write_log_line(level: Level, message: &str) {
    match QUEUE.get() {
        Some(queue) => queue.push(LogLineClass::Others, format_log_line(queue.format, level, message)),
        None => anstream::eprintln!("clresolve: {message}"),
    }
}

/// A line that is not an event. In JSON it has the same members as one.
fn format_log_line(format: LogFormat, level: Level, message: &str) -> Vec<u8> {
    let text = match format {
        LogFormat::Text => format!("clresolve: {message}"),
        LogFormat::Json => {
            let (timestamp, fields) = (Timestamp::now().to_string(), json!({ "message": message }));
            json!({ "timestamp": timestamp, "level": level.as_str(), "fields": fields, "target": "clresolve" })
                .to_string()
        }
    };
    (text + "\n").into_bytes()
}

impl LogQueue {
    fn lock_queued_lines(&self) -> MutexGuard<'_, QueuedLogLines> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a line, or drops it if the queue is full.
    fn push(&self, class: LogLineClass, line: Vec<u8>) {
        let mut waiting = self.lock_queued_lines();
        let usage = &mut waiting.usage[class as usize];
        if usage.bytes + line.len() > MAX_BYTES && !clresolve_core::mutant!("endless-log") {
            usage.dropped += 1;
            drop(waiting);
            return class.count_dropped_line();
        }
        let dropped = std::mem::take(&mut usage.dropped);
        if dropped > 0 {
            let what = class.plural_name();
            let message = format!("{dropped} {what} of the log were dropped here");
            waiting.push_line(class, format_log_line(self.format, Level::WARN, &message));
        }
        waiting.push_line(class, line);
        self.changed.notify_all();
    }

    /// Writes lines as they arrive. Never returns.
    #[expect(clippy::disallowed_methods, reason = "a pause that decides nothing")]
    fn write_lines_forever_to(&self, sink: &mut impl Write) -> ! {
        loop {
            self.write_arrived_lines_to(sink);
            std::thread::sleep(BETWEEN_WRITES);
        }
    }

    /// Waits for lines, and writes those that have arrived.
    fn write_arrived_lines_to(&self, sink: &mut impl Write) {
        let is_idle = |waiting: &mut QueuedLogLines| waiting.lines.is_empty();
        let mut waiting =
            self.changed.wait_while(self.lock_queued_lines(), is_idle).unwrap_or_else(PoisonError::into_inner);
        let lines = waiting.take_next_lines();
        waiting.is_writing = true;
        drop(waiting);
        // A log that cannot be written must not end the daemon.
        let _ = sink.write_all(&lines);
        self.lock_queued_lines().is_writing = false;
        self.changed.notify_all();
    }

    /// Waits until all lines are written, but at most for `time`.
    fn flush(&self, time: Duration) {
        let is_busy = |waiting: &mut QueuedLogLines| waiting.is_writing || !waiting.lines.is_empty();
        // After the timeout, nobody reads the remaining lines.
        drop(self.changed.wait_timeout_while(self.lock_queued_lines(), time, is_busy));
    }
}

impl QueuedLogLines {
    fn push_line(&mut self, class: LogLineClass, line: Vec<u8>) {
        self.usage[class as usize].bytes += line.len();
        self.lines.push_back((class, line));
    }

    /// Removes the next lines: up to [`MAX_WRITTEN`] bytes, but at least one line.
    fn take_next_lines(&mut self) -> Vec<u8> {
        let mut taken = Vec::new();
        while let Some((class, line)) =
            self.lines.pop_front_if(|(_, line)| taken.is_empty() || taken.len() + line.len() <= MAX_WRITTEN)
        {
            self.usage[class as usize].bytes -= line.len();
            taken.extend_from_slice(&line);
        }
        taken
    }
}

impl LogLineClass {
    fn from_metadata(event: &Metadata<'_>) -> Self {
        match event.target() {
            _ if clresolve_core::mutant!("one-room-for-all-lines") => Self::Others,
            INCIDENTS => Self::Incidents,
            DECISIONS => Self::Decisions,
            _ => Self::Others,
        }
    }

    const fn plural_name(self) -> &'static str {
        match self {
            Self::Incidents => "incidents",
            Self::Decisions => "decisions",
            Self::Others => "lines",
        }
    }

    fn count_dropped_line(self) {
        match self {
            Self::Incidents => telemetry::count_dropped_log_event(INCIDENTS),
            Self::Decisions => telemetry::count_dropped_log_event(DECISIONS),
            Self::Others => telemetry::count_dropped_log_line(),
        }
    }
}

impl Drop for LogFlushGuard {
    fn drop(&mut self) {
        self.0.flush(LAST_LINES);
    }
}

#[derive(Clone)]
pub(super) struct LogWriterFactory(Arc<LogQueue>);

/// A line in progress. Dropping it queues the line.
pub(super) struct PendingLogLine {
    bytes: Vec<u8>,
    class: LogLineClass,
    queue: Arc<LogQueue>,
}

impl<'w> MakeWriter<'w> for LogWriterFactory {
    type Writer = PendingLogLine;

    fn make_writer(&'w self) -> PendingLogLine {
        PendingLogLine::new(&self.0, LogLineClass::Others)
    }

    fn make_writer_for(&'w self, event: &Metadata<'_>) -> PendingLogLine {
        PendingLogLine::new(&self.0, LogLineClass::from_metadata(event))
    }
}

impl PendingLogLine {
    fn new(queue: &Arc<LogQueue>, class: LogLineClass) -> Self {
        Self { bytes: Vec::new(), class, queue: Arc::clone(queue) }
    }
}

impl Write for PendingLogLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for PendingLogLine {
    fn drop(&mut self) {
        let line = std::mem::take(&mut self.bytes);
        if !line.is_empty() {
            self.queue.push(self.class, line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(queue: &Arc<LogQueue>, text: &str) {
        let writer = LogWriterFactory(Arc::clone(queue));
        let mut line = writer.make_writer();
        let (start, end) = text.split_at(text.len() / 2);
        line.write_all(start.as_bytes()).expect("memory");
        line.write_all(end.as_bytes()).expect("memory");
    }

    #[test]
    fn what_finds_no_room_is_dropped_counted_and_told_in_its_place() {
        let queue = Arc::new(LogQueue::default());
        let long = "x".repeat(MAX_BYTES / 2);
        for text in [&long, &long, "dropped\n", "dropped too\n"] {
            write(&queue, text);
        }
        assert_eq!(written(&queue).len(), MAX_BYTES);
        write(&queue, "next\n");
        assert_eq!(written(&queue), "clresolve: 2 lines of the log were dropped here\nnext\n");
        assert_eq!(queue.lock_queued_lines().usage[LogLineClass::Others as usize].bytes, 0);
    }

    fn written(queue: &LogQueue) -> String {
        let mut sink = Vec::new();
        while !queue.lock_queued_lines().lines.is_empty() {
            queue.write_arrived_lines_to(&mut sink);
        }
        String::from_utf8(sink).expect("ASCII")
    }

    /// A sink that counts how often it is written to.
    struct Calls(Vec<usize>);

    impl Write for Calls {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(bytes.len());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_that_wait_are_written_together_up_to_a_bound() {
        let queue = Arc::new(LogQueue::default());
        for length in [1, MAX_WRITTEN - 1, 1, MAX_WRITTEN + 1, 1] {
            write(&queue, &"x".repeat(length));
        }
        let mut sink = Calls(Vec::new());
        while !queue.lock_queued_lines().lines.is_empty() {
            queue.write_arrived_lines_to(&mut sink);
        }
        assert_eq!(sink.0, [MAX_WRITTEN, 1, MAX_WRITTEN + 1, 1]);
    }

    #[test]
    fn a_flood_of_lines_drops_no_incident_and_no_decision() {
        let queue = Arc::new(LogQueue::default());
        let flood = "x".repeat(MAX_BYTES);
        let log =
            tracing_subscriber::fmt().with_writer(LogWriterFactory(Arc::clone(&queue))).without_time().with_ansi(false);
        tracing::subscriber::with_default(log.finish(), || {
            write(&queue, &flood);
            tracing::info!("a request");
            tracing::info!(target: INCIDENTS, "an incident");
            tracing::info!(target: DECISIONS, "a decision");
            tracing::info!(target: INCIDENTS, "{flood}");
            tracing::info!(target: DECISIONS, "another decision");
            assert_eq!(
                written(&queue).trim_start_matches('x'),
                " INFO clresolve::incident: an incident\n INFO clresolve::decision: a decision\n \
                 INFO clresolve::decision: another decision\n"
            );
            tracing::info!(target: INCIDENTS, "the next one");
        });
        assert_eq!(
            written(&queue),
            "clresolve: 1 incidents of the log were dropped here\n INFO clresolve::incident: the next one\n"
        );
    }

    #[test]
    fn what_is_dropped_is_counted_by_its_class() {
        let (queue, counts) = (LogQueue::default(), telemetry::PrometheusExposition::default());
        metrics::with_local_recorder(&counts, || {
            for class in [LogLineClass::Incidents, LogLineClass::Decisions, LogLineClass::Others] {
                queue.push(class, vec![b'x'; MAX_BYTES]);
                queue.push(class, b"one too many\n".to_vec());
            }
        });
        let text = counts.render();
        for series in [
            "clresolve_log_events_dropped_total{target=\"clresolve::incident\"} 1\n",
            "clresolve_log_events_dropped_total{target=\"clresolve::decision\"} 1\n",
            "clresolve_log_lines_dropped_total 1\n",
        ] {
            assert!(text.contains(series), "{series}: {text}");
        }
    }

    #[test]
    fn in_json_every_line_is_an_object_and_foreign_text_stays_escaped() {
        let queue = Arc::new(LogQueue { format: LogFormat::Json, ..LogQueue::default() });
        let log = tracing_subscriber::fmt().json().with_writer(LogWriterFactory(Arc::clone(&queue)));
        tracing::subscriber::with_default(log.finish(), || {
            let name = clresolve_core::text::UntrustedText::new("a\u{1b}[31m\"\n\u{202e}.eth");
            tracing::info!(name = %name, "a request");
            write(&queue, &"x".repeat(MAX_BYTES));
            tracing::info!(name = %name, "the next one");
        });
        let text = written(&queue);
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
        assert_eq!(lines[0]["fields"], json!({ "message": "a request", "name": r#"a\u{1b}[31m"\u{a}\u{202e}.eth"# }));
        assert_eq!(lines[1]["fields"], json!({ "message": "1 lines of the log were dropped here" }));
        for line in &lines {
            for member in ["fields", "level", "target", "timestamp"] {
                assert!(line.get(member).is_some(), "{member}: {line}");
            }
        }
    }

    #[test]
    fn the_end_waits_for_the_last_lines_and_not_for_ever() {
        let queue = Arc::new(LogQueue::default());
        write(&queue, "nobody reads this\n");
        queue.flush(Duration::from_millis(1));
        let mut sink = Vec::new();
        queue.write_arrived_lines_to(&mut sink);
        queue.flush(Duration::MAX);
        assert_eq!(sink, b"nobody reads this\n");
    }
}
