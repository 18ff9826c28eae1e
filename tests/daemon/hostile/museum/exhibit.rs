//! Shared by the museums: an exhibit, and the table of the resulting verdicts.

use std::fmt::Write as _;

use clresolve_ipfs::ContentId;
use futures_util::stream::{self, StreamExt as _};
use serde_json::Value;

use crate::support::server::{Answer, answer};

/// Maximum number of exhibits that are tested concurrently.
const AT_ONCE: usize = 4;

/// Prefixes of a cause that all rows of a page share, in the order in which they are removed.
const SHARED_PREFIXES: [&str; 4] =
    ["no RPC endpoint answered: endpoint: ", "gateway: ", "CCIP-Read failed: ", "it reverted: "];

/// A known behaviour of a server. `A` is the function that answers a request.
pub(super) struct Exhibit<A> {
    /// The label in failures of the test.
    pub(super) name: &'static str,
    /// The answer, in words; unique in its museum.
    pub(super) what: &'static str,
    /// The software or report in which this answer was observed.
    pub(super) seen: &'static str,
    /// The agent whose name is resolved.
    pub(super) asked: &'static str,
    pub(super) is_silent: bool,
    pub(super) answer: A,
}

pub(super) const fn silent<A: Copy>(exhibit: Exhibit<A>) -> Exhibit<A> {
    Exhibit { is_silent: true, ..exhibit }
}

impl<A> Exhibit<A> {
    /// The row of the exhibit in the table of its `verdict`.
    pub(super) fn row<const N: usize>(&self, verdict: String, cells: [String; N]) -> Row {
        Row { verdict, cells: [self.what.to_owned(), self.seen.to_owned()].into_iter().chain(cells).collect() }
    }

    /// The cause of the verdict. Empty if it only repeats the HTTP status of the answer.
    pub(super) fn cause<'v>(&self, verdict: &'v Value) -> &'v str {
        let cause = cause(verdict);
        let status = cause.rsplit_once("HTTP status ").map(|(_, status)| format!("HTTP {status}"));
        if status.is_some_and(|status| self.what.starts_with(&status)) { "" } else { cause }
    }
}

/// A row of the page, and the verdict under which it is listed.
pub(super) struct Row {
    verdict: String,
    cells: Vec<String>,
}

/// A section for each verdict, in the order of the first row with it. A column without content is left out.
fn sections(columns: &[&str], rows: &[Row]) -> String {
    let mut verdicts: Vec<&str> = Vec::new();
    for row in rows {
        if !verdicts.contains(&&*row.verdict) {
            verdicts.push(&row.verdict);
        }
    }
    let mut text = String::new();
    for verdict in verdicts {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.verdict == verdict).collect();
        let columns: Vec<(usize, &str)> = columns.iter().copied().enumerate().collect();
        let filled = columns.iter().filter(|(at, _)| rows.iter().any(|row| !row.cells[*at].is_empty()));
        let (places, names): (Vec<usize>, Vec<&str>) = filled.copied().unzip();
        let _ = write!(text, "\n## {verdict}\n\n| {} |\n|{}\n", names.join(" | "), "---|".repeat(names.len()));
        for row in rows {
            let cells: Vec<&str> = places.iter().map(|at| row.cells[*at].as_str()).collect();
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
    }
    text
}

/// Compares the page with the one in `file`, which `MUSEUM=write` writes.
pub(super) async fn hold<F: Future<Output = Row>>(file: &str, heading: &str, columns: &[&str], rows: Vec<F>) {
    let rows: Vec<Row> = stream::iter(rows).buffered(AT_ONCE).collect().await;
    let page = format!("{heading}{}", sections(columns, &rows));
    if std::env::var_os("MUSEUM").is_some_and(|word| word == "write") {
        std::fs::write(file, &page).unwrap();
    }
    let kept = std::fs::read_to_string(file).unwrap_or_default();
    for (found, kept) in page.lines().zip(kept.lines()) {
        assert_eq!(found, kept, "run MUSEUM=write cargo test --test daemon museum");
    }
    assert_eq!(page, kept, "run MUSEUM=write cargo test --test daemon museum");
}

/// The state of a verdict, and its reason codes in order.
pub(super) fn outcome(verdict: &Value) -> String {
    let mut codes = Vec::new();
    for code in reasons(verdict).filter_map(|reason| reason["code"].as_str()) {
        if !codes.contains(&code) {
            codes.push(code);
        }
    }
    let mut text = verdict["state"].as_str().unwrap().to_owned();
    if !codes.is_empty() {
        let _ = write!(text, " (`{}`)", codes.join("`, `"));
    }
    text
}

/// The observed value of the verdict's first reason. Empty if it is only a digest.
fn cause(verdict: &Value) -> &str {
    let stated = reasons(verdict).next().and_then(|reason| reason["observed"].as_str()).unwrap_or_default();
    if stated.starts_with("sha256:") || ContentId::parse(stated).is_ok() {
        return "";
    }
    SHARED_PREFIXES.iter().fold(stated, |cause, prefix| cause.strip_prefix(prefix).unwrap_or(cause))
}

/// The reasons of a verdict, without `record-offchain`, which every off-chain name has.
fn reasons(verdict: &Value) -> impl Iterator<Item = &Value> {
    verdict["reasons"].as_array().unwrap().iter().filter(|reason| reason["code"] != "record-offchain")
}

pub(super) fn cell(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{}`", text.replace('|', "\\|").replace('`', "'")) }
}

pub(super) fn whole(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Answer {
    Answer::Whole(answer(status, headers, body.as_ref()))
}

/// An error page, as CDNs, load balancers and web servers generate it.
pub(super) fn page(status: &str) -> Answer {
    let body = format!("<html><head><title>{status}</title></head><body><center>{status}</center></body></html>");
    whole(status, "Content-Type: text/html; charset=UTF-8\r\n", body)
}

pub(super) fn redirected(status: &str, location: &str) -> Answer {
    whole(status, &format!("Location: {location}\r\n"), "")
}

/// HTTP 200 with a body that is shorter than its `Content-Length`.
pub(super) fn short_of_its_length(body: impl AsRef<[u8]>) -> Answer {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.as_ref().len() + 100);
    Answer::Whole([head.as_bytes(), body.as_ref()].concat())
}

/// HTTP 200 with a chunked body without its last chunk.
pub(super) fn without_last_chunk(body: impl AsRef<[u8]>) -> Answer {
    let head = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n", body.as_ref().len());
    Answer::Whole([head.as_bytes(), body.as_ref(), b"\r\n"].concat())
}
