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
static QUEUE: OnceLock<Arc<Queue>> = OnceLock::new();

#[derive(Debug, Default)]
pub(super) struct Queue {
    format: LogFormat,
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    /// In order of arrival, across classes.
    lines: VecDeque<(LineClass, Vec<u8>)>,
    usage: [Usage; 3],
    is_writing: bool,
}

/// Lines that share a size limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineClass {
    Incidents,
    Decisions,
    Others,
}

#[derive(Debug, Default)]
struct Usage {
    bytes: usize,
    /// Lines dropped since the last one that was queued.
    dropped: u64,
}

/// Flushes the queue when dropped, within a time limit.
#[must_use]
pub(super) struct LastLines(Arc<Queue>);

pub(super) fn start(format: LogFormat) -> (Writer, LastLines) {
    let queue = Arc::clone(QUEUE.get_or_init(|| {
        let queue = Arc::new(Queue { format, ..Queue::default() });
        let written = Arc::clone(&queue);
        std::thread::spawn(move || written.write_all_to(&mut io::stderr()));
        queue
    }));
    (Writer(Arc::clone(&queue)), LastLines(queue))
}

/// Writes a line to standard error whatever the filter, through the queue if there is one. The level is visible only in
/// JSON.
pub(super) fn say(level: Level, message: &str) {
    match QUEUE.get() {
        Some(queue) => queue.push(LineClass::Others, line_of(queue.format, level, message)),
        None => anstream::eprintln!("clresolve: {message}"),
    }
}

/// A line that is not an event. In JSON it has the same members as one.
fn line_of(format: LogFormat, level: Level, message: &str) -> Vec<u8> {
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

impl Queue {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a line, or drops it if the queue is full.
    fn push(&self, class: LineClass, line: Vec<u8>) {
        let mut waiting = self.waiting();
        let usage = &mut waiting.usage[class as usize];
        if usage.bytes + line.len() > MAX_BYTES && !clresolve_core::mutant!("endless-log") {
            usage.dropped += 1;
            drop(waiting);
            return class.count_dropped();
        }
        let dropped = std::mem::take(&mut usage.dropped);
        if dropped > 0 {
            let what = class.what();
            let message = format!("{dropped} {what} of the log were dropped here");
            waiting.add(class, line_of(self.format, Level::WARN, &message));
        }
        waiting.add(class, line);
        self.changed.notify_all();
    }

    /// Writes lines as they arrive. Never returns.
    #[expect(clippy::disallowed_methods, reason = "a pause that decides nothing")]
    fn write_all_to(&self, sink: &mut impl Write) -> ! {
        loop {
            self.write_next_to(sink);
            std::thread::sleep(BETWEEN_WRITES);
        }
    }

    /// Waits for lines, and writes those that have arrived.
    fn write_next_to(&self, sink: &mut impl Write) {
        let is_idle = |waiting: &mut Waiting| waiting.lines.is_empty();
        let mut waiting = self.changed.wait_while(self.waiting(), is_idle).unwrap_or_else(PoisonError::into_inner);
        let lines = waiting.take();
        waiting.is_writing = true;
        drop(waiting);
        // A log that cannot be written must not end the daemon.
        let _ = sink.write_all(&lines);
        self.waiting().is_writing = false;
        self.changed.notify_all();
    }

    /// Waits until all lines are written, but at most for `time`.
    fn flush(&self, time: Duration) {
        let is_busy = |waiting: &mut Waiting| waiting.is_writing || !waiting.lines.is_empty();
        // After the timeout, nobody reads the remaining lines.
        drop(self.changed.wait_timeout_while(self.waiting(), time, is_busy));
    }
}

impl Waiting {
    fn add(&mut self, class: LineClass, line: Vec<u8>) {
        self.usage[class as usize].bytes += line.len();
        self.lines.push_back((class, line));
    }

    /// Removes the next lines: up to [`MAX_WRITTEN`] bytes, but at least one line.
    fn take(&mut self) -> Vec<u8> {
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

impl LineClass {
    fn of(event: &Metadata<'_>) -> Self {
        match event.target() {
            _ if clresolve_core::mutant!("one-room-for-all-lines") => Self::Others,
            INCIDENTS => Self::Incidents,
            DECISIONS => Self::Decisions,
            _ => Self::Others,
        }
    }

    const fn what(self) -> &'static str {
        match self {
            Self::Incidents => "incidents",
            Self::Decisions => "decisions",
            Self::Others => "lines",
        }
    }

    fn count_dropped(self) {
        match self {
            Self::Incidents => telemetry::log_event_dropped(INCIDENTS),
            Self::Decisions => telemetry::log_event_dropped(DECISIONS),
            Self::Others => telemetry::log_line_dropped(),
        }
    }
}

impl Drop for LastLines {
    fn drop(&mut self) {
        self.0.flush(LAST_LINES);
    }
}

#[derive(Clone)]
pub(super) struct Writer(Arc<Queue>);

/// A line in progress. Dropping it queues the line.
pub(super) struct Line {
    bytes: Vec<u8>,
    class: LineClass,
    queue: Arc<Queue>,
}

impl<'w> MakeWriter<'w> for Writer {
    type Writer = Line;

    fn make_writer(&'w self) -> Line {
        Line::new(&self.0, LineClass::Others)
    }

    fn make_writer_for(&'w self, event: &Metadata<'_>) -> Line {
        Line::new(&self.0, LineClass::of(event))
    }
}

impl Line {
    fn new(queue: &Arc<Queue>, class: LineClass) -> Self {
        Self { bytes: Vec::new(), class, queue: Arc::clone(queue) }
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line {
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

    fn write(queue: &Arc<Queue>, text: &str) {
        let writer = Writer(Arc::clone(queue));
        let mut line = writer.make_writer();
        let (start, end) = text.split_at(text.len() / 2);
        line.write_all(start.as_bytes()).expect("memory");
        line.write_all(end.as_bytes()).expect("memory");
    }

    #[test]
    fn what_finds_no_room_is_dropped_counted_and_told_in_its_place() {
        let queue = Arc::new(Queue::default());
        let long = "x".repeat(MAX_BYTES / 2);
        for text in [&long, &long, "dropped\n", "dropped too\n"] {
            write(&queue, text);
        }
        assert_eq!(written(&queue).len(), MAX_BYTES);
        write(&queue, "next\n");
        assert_eq!(written(&queue), "clresolve: 2 lines of the log were dropped here\nnext\n");
        assert_eq!(queue.waiting().usage[LineClass::Others as usize].bytes, 0);
    }

    fn written(queue: &Queue) -> String {
        let mut sink = Vec::new();
        while !queue.waiting().lines.is_empty() {
            queue.write_next_to(&mut sink);
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
        let queue = Arc::new(Queue::default());
        for length in [1, MAX_WRITTEN - 1, 1, MAX_WRITTEN + 1, 1] {
            write(&queue, &"x".repeat(length));
        }
        let mut sink = Calls(Vec::new());
        while !queue.waiting().lines.is_empty() {
            queue.write_next_to(&mut sink);
        }
        assert_eq!(sink.0, [MAX_WRITTEN, 1, MAX_WRITTEN + 1, 1]);
    }

    #[test]
    fn a_flood_of_lines_drops_no_incident_and_no_decision() {
        let queue = Arc::new(Queue::default());
        let flood = "x".repeat(MAX_BYTES);
        let log = tracing_subscriber::fmt().with_writer(Writer(Arc::clone(&queue))).without_time().with_ansi(false);
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
        let (queue, counts) = (Queue::default(), telemetry::Exposition::default());
        metrics::with_local_recorder(&counts, || {
            for class in [LineClass::Incidents, LineClass::Decisions, LineClass::Others] {
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
        let queue = Arc::new(Queue { format: LogFormat::Json, ..Queue::default() });
        let log = tracing_subscriber::fmt().json().with_writer(Writer(Arc::clone(&queue)));
        tracing::subscriber::with_default(log.finish(), || {
            let name = clresolve_core::text::Foreign::new("a\u{1b}[31m\"\n\u{202e}.eth");
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
        let queue = Arc::new(Queue::default());
        write(&queue, "nobody reads this\n");
        queue.flush(Duration::from_millis(1));
        let mut sink = Vec::new();
        queue.write_next_to(&mut sink);
        queue.flush(Duration::MAX);
        assert_eq!(sink, b"nobody reads this\n");
    }
}
