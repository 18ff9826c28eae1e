//! `ctl`: operates a running daemon through its admin socket, and checks readiness through its listener.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use axum::body::{Body, to_bytes};
use clresolve_core::text::UntrustedText;
use clresolve_resolver::readiness::query_daemon_readiness;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::args::{
    AdminCommand, AdminSocketArguments, CacheFlushArguments, CtlCommand, DaemonReadyArguments, OutputFormat,
};
use super::exit::ExitStatus;
use super::output::{OutputSink, ResultWriter};

/// Timeout for a response: slightly longer than the daemon's limit on a connection.
const PATIENCE: Duration = Duration::from_secs(65);

/// Maximum size of a response, in bytes: the settings of a long configuration.
const MAX_ANSWER_BYTES: usize = 4 << 20;

pub(super) fn run(command: CtlCommand) -> anyhow::Result<ExitStatus> {
    match command {
        CtlCommand::Admin(command) => send_admin_command(command),
        CtlCommand::Ready(args) => check_readiness(args),
    }
}

/// Reports whether the daemon accepts requests, in the output and in the exit status.
fn check_readiness(args: DaemonReadyArguments) -> anyhow::Result<ExitStatus> {
    super::runtime::run_async_until_interrupt(async move {
        let mut results =
            ResultWriter::for_single_result(OutputSink::new(&args.output.out)?, args.output.output_format());
        let (exit, lines) = match query_daemon_readiness(args.listen).await {
            Ok(answer) => (ExitStatus::Trusted, answer),
            Err(error) => (ExitStatus::Untrusted, format!("not ready: {error}")),
        };
        let lines: Vec<String> = lines.lines().map(|line| UntrustedText::new(line).to_string()).collect();
        let value = json!({ "ready": exit == ExitStatus::Trusted, "lines": lines });
        results.push(&value, |_| lines.iter().map(|line| format!("{line}\n")).collect())?;
        results.finish()?;
        Ok(exit)
    })
}

fn send_admin_command(command: AdminCommand) -> anyhow::Result<ExitStatus> {
    let (admin, order) = build_admin_request(command);
    super::runtime::run_async_until_interrupt(async move {
        // Opened before the request, so that no command is executed whose result cannot be written.
        let results =
            ResultWriter::for_single_result(OutputSink::new(&admin.output.out)?, admin.output.output_format());
        let said = send_admin_request(&admin.socket, &order).await?;
        print_daemon_response(results, &said, order.text)
    })
}

struct AdminRequest {
    method: Method,
    path: String,
    body: Option<Value>,
    text: fn(&Value) -> String,
}

fn build_admin_request(command: AdminCommand) -> (AdminSocketArguments, AdminRequest) {
    let order = |method, path: &str, body, text| AdminRequest { method, path: path.to_owned(), body, text };
    match command {
        AdminCommand::Flush(args) => {
            let order =
                order(Method::POST, "/admin/cache/flush", Some(cache_flush_selection(&args)), format_flush_response);
            (args.admin, order)
        }
        AdminCommand::Show { name: Some(name), admin } => {
            let path = format!("/admin/cache/{}", utf8_percent_encode(&name, NON_ALPHANUMERIC));
            (admin, order(Method::GET, &path, None, format_cache_entry))
        }
        AdminCommand::Show { name: None, admin } => {
            (admin, order(Method::GET, "/admin/state", None, format_daemon_state))
        }
        AdminCommand::Reload { admin } => (admin, order(Method::POST, "/admin/reload", None, format_reload_response)),
        AdminCommand::LogLevel { filter, admin } => (
            admin,
            order(Method::PUT, "/admin/log-level", Some(json!({ "filter": filter })), format_log_filter_response),
        ),
    }
}

/// The entries to flush, in the daemon's format.
fn cache_flush_selection(args: &CacheFlushArguments) -> Value {
    let parts = [("name", &args.name), ("owner", &args.owner), ("cid", &args.cid)];
    if let Some((part, Some(value))) = parts.into_iter().find(|(_, value)| value.is_some()) {
        return json!({ part: value });
    }
    args.state.as_ref().map_or_else(|| json!("all"), |state| json!({ "state": state }))
}

fn print_daemon_response(
    mut results: ResultWriter,
    said: &Value,
    text: fn(&Value) -> String,
) -> anyhow::Result<ExitStatus> {
    results.push(said, |format| match format {
        OutputFormat::Short => text(said).lines().next().unwrap_or_default().to_owned() + "\n",
        _ => text(said),
    })?;
    results.finish()?;
    Ok(ExitStatus::Trusted)
}

/// Sends the request. A refusal by the daemon is an error.
async fn send_admin_request(socket: &Path, order: &AdminRequest) -> anyhow::Result<Value> {
    let place = socket.display();
    let exchanged = timeout(PATIENCE, request_over_admin_socket(socket, order)).await;
    let (is_done, said) = exchanged.map_err(|_| anyhow!("{place}: no response in time"))??;
    if !is_done {
        let member = |key: &str| UntrustedText::new(said[key].as_str().unwrap_or_default()).to_string();
        bail!("refused ({}): {} {}", member("code"), member("title"), member("detail"));
    }
    Ok(said)
}

/// The response, and whether it is a success.
#[cfg(unix)]
async fn request_over_admin_socket(socket: &Path, order: &AdminRequest) -> anyhow::Result<(bool, Value)> {
    let place = socket.display();
    let hint = || {
        format!(
            "{place}: no daemon answers there; `socket` in its [admin] names the socket, and only its user may connect"
        )
    };
    let stream = tokio::net::UnixStream::connect(socket).await.with_context(hint)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let request = Request::builder().method(&order.method).uri(&order.path).header(HOST, "clresolve");
    let request = request.header(CONTENT_TYPE, "application/json");
    let body = order.body.as_ref().map_or_else(Body::empty, |body| Body::from(body.to_string()));
    let response = sender.send_request(request.body(body)?).await.with_context(|| place.to_string())?;
    let is_done = response.status().is_success();
    let bytes = to_bytes(Body::new(response.into_body()), MAX_ANSWER_BYTES).await?;
    Ok((is_done, serde_json::from_slice(&bytes).with_context(|| format!("{place}: the response is not JSON"))?))
}

#[cfg(not(unix))]
async fn request_over_admin_socket(_: &Path, _: &AdminRequest) -> anyhow::Result<(bool, Value)> {
    bail!("this system has no Unix sockets")
}

fn format_flush_response(said: &Value) -> String {
    let names = if said["names"] == 1 { "name" } else { "names" };
    format!("flushed {} {names}; the next request for each starts a resolution\n", said["names"])
}

fn format_reload_response(said: &Value) -> String {
    let came_of_it =
        if said["unchanged"] == true { "unchanged since it was last read" } else { "read again, and in force" };
    let mut text = format!("{}: {came_of_it}\n", escaped_response_text(&said["file"]));
    for keys in said["restart"].as_array().into_iter().flatten() {
        let _ = writeln!(
            text,
            "{}: a change requires a restart; the old value stays in force",
            escaped_response_text(keys)
        );
    }
    text
}

fn format_log_filter_response(said: &Value) -> String {
    format!(
        "the log's filter is {} (before: {})\n",
        escaped_response_text(&said["filter"]),
        escaped_response_text(&said["before"])
    )
}

fn format_cache_entry(said: &Value) -> String {
    let name = escaped_response_text(&said["name"]);
    let entries = said["held"].as_array().map(Vec::as_slice).unwrap_or_default();
    if entries.is_empty() {
        return format!("{name}  not cached\n");
    }
    let line = |entry: &Value| {
        let [state, block, depth, profile, until] =
            ["state", "block", "depth", "profile", "fresh_until"].map(|key| escaped_response_text(&entry[key]));
        let answers = if entry["answers"] == true { "answers" } else { "no longer answers" };
        format!("{name}  {state}  {profile} {depth} at {block}  fresh until {until}  {answers}\n")
    };
    entries.iter().map(line).collect()
}

fn format_daemon_state(said: &Value) -> String {
    let [version, started, log] = ["version", "started", "log"].map(|key| escaped_response_text(&said[key]));
    let draining = if said["draining"] == true { ", draining" } else { "" };
    let mut text = format!("clresolve {version}, started {started}{draining}\nlog {log}\n");
    for pool in ["trusted", "untrusted", "failures", "content"] {
        let size = &said["cache"][pool];
        let _ = writeln!(text, "cache {pool}: {} entries, {} bytes", size["entries"], size["bytes"]);
    }
    let head = &said["head"];
    let _ = match head["number"].as_u64() {
        Some(number) => {
            writeln!(text, "head: block {number}, last reported {}", escaped_response_text(&head["reported_at"]))
        }
        None => writeln!(text, "head: none yet"),
    };
    for (key, value) in said["settings"].as_object().into_iter().flatten() {
        let _ = writeln!(text, "{} = {}", UntrustedText::new(key), UntrustedText::new(&value.to_string()));
    }
    text
}

/// A text in the daemon's response, escaped since it may be foreign.
fn escaped_response_text(value: &Value) -> String {
    UntrustedText::new(value.as_str().unwrap_or_default()).to_string()
}
