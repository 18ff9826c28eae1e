//! `ctl`: operates a running daemon through its admin socket, and checks readiness through its listener.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use axum::body::{Body, to_bytes};
use clresolve_core::text::Foreign;
use clresolve_resolver::readiness::readiness;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::args::{AdminArgs, AdminCommand, CtlCommand, FlushArgs, Format, ReadyArgs};
use super::exit::Exit;
use super::output::{Output, Results};

/// Timeout for a response: slightly longer than the daemon's limit on a connection.
const PATIENCE: Duration = Duration::from_secs(65);

/// Maximum size of a response, in bytes: the settings of a long configuration.
const MAX_ANSWER_BYTES: usize = 4 << 20;

pub(super) fn run(command: CtlCommand) -> anyhow::Result<Exit> {
    match command {
        CtlCommand::Admin(command) => operate(command),
        CtlCommand::Ready(args) => ready(args),
    }
}

/// Reports whether the daemon accepts requests, in the output and in the exit status.
fn ready(args: ReadyArgs) -> anyhow::Result<Exit> {
    super::runtime::run_async(async move {
        let mut results = Results::one(Output::new(&args.output.out)?, args.output.form());
        let (exit, lines) = match readiness(args.listen).await {
            Ok(answer) => (Exit::Trusted, answer),
            Err(error) => (Exit::Untrusted, format!("not ready: {error}")),
        };
        let lines: Vec<String> = lines.lines().map(|line| Foreign::new(line).to_string()).collect();
        let value = json!({ "ready": exit == Exit::Trusted, "lines": lines });
        results.push(&value, |_| lines.iter().map(|line| format!("{line}\n")).collect())?;
        results.finish()?;
        Ok(exit)
    })
}

fn operate(command: AdminCommand) -> anyhow::Result<Exit> {
    let (admin, order) = ordered(command);
    super::runtime::run_async(async move {
        // Opened before the request, so that no command is executed whose result cannot be written.
        let results = Results::one(Output::new(&admin.output.out)?, admin.output.form());
        let said = ask(&admin.socket, &order).await?;
        print(results, &said, order.text)
    })
}

struct OperatorRequest {
    method: Method,
    path: String,
    body: Option<Value>,
    text: fn(&Value) -> String,
}

fn ordered(command: AdminCommand) -> (AdminArgs, OperatorRequest) {
    let order = |method, path: &str, body, text| OperatorRequest { method, path: path.to_owned(), body, text };
    match command {
        AdminCommand::Flush(args) => {
            let order = order(Method::POST, "/admin/cache/flush", Some(selection(&args)), flushed);
            (args.admin, order)
        }
        AdminCommand::Show { name: Some(name), admin } => {
            let path = format!("/admin/cache/{}", utf8_percent_encode(&name, NON_ALPHANUMERIC));
            (admin, order(Method::GET, &path, None, held))
        }
        AdminCommand::Show { name: None, admin } => (admin, order(Method::GET, "/admin/state", None, state)),
        AdminCommand::Reload { admin } => (admin, order(Method::POST, "/admin/reload", None, reloaded)),
        AdminCommand::LogLevel { filter, admin } => {
            (admin, order(Method::PUT, "/admin/log-level", Some(json!({ "filter": filter })), filtered))
        }
    }
}

/// The entries to flush, in the daemon's format.
fn selection(args: &FlushArgs) -> Value {
    let parts = [("name", &args.name), ("owner", &args.owner), ("cid", &args.cid)];
    if let Some((part, Some(value))) = parts.into_iter().find(|(_, value)| value.is_some()) {
        return json!({ part: value });
    }
    args.state.as_ref().map_or_else(|| json!("all"), |state| json!({ "state": state }))
}

fn print(mut results: Results, said: &Value, text: fn(&Value) -> String) -> anyhow::Result<Exit> {
    results.push(said, |format| match format {
        Format::Short => text(said).lines().next().unwrap_or_default().to_owned() + "\n",
        _ => text(said),
    })?;
    results.finish()?;
    Ok(Exit::Trusted)
}

/// Sends the request. A refusal by the daemon is an error.
async fn ask(socket: &Path, order: &OperatorRequest) -> anyhow::Result<Value> {
    let place = socket.display();
    let exchanged = timeout(PATIENCE, exchange(socket, order)).await;
    let (is_done, said) = exchanged.map_err(|_| anyhow!("{place}: no response in time"))??;
    if !is_done {
        let member = |key: &str| Foreign::new(said[key].as_str().unwrap_or_default()).to_string();
        bail!("refused ({}): {} {}", member("code"), member("title"), member("detail"));
    }
    Ok(said)
}

/// The response, and whether it is a success.
#[cfg(unix)]
async fn exchange(socket: &Path, order: &OperatorRequest) -> anyhow::Result<(bool, Value)> {
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
async fn exchange(_: &Path, _: &OperatorRequest) -> anyhow::Result<(bool, Value)> {
    bail!("this system has no Unix sockets")
}

fn flushed(said: &Value) -> String {
    let names = if said["names"] == 1 { "name" } else { "names" };
    format!("flushed {} {names}; the next request for each starts a resolution\n", said["names"])
}

fn reloaded(said: &Value) -> String {
    let came_of_it =
        if said["unchanged"] == true { "unchanged since it was last read" } else { "read again, and in force" };
    let mut text = format!("{}: {came_of_it}\n", plain(&said["file"]));
    for keys in said["restart"].as_array().into_iter().flatten() {
        let _ = writeln!(text, "{}: a change requires a restart; the old value stays in force", plain(keys));
    }
    text
}

fn filtered(said: &Value) -> String {
    format!("the log's filter is {} (before: {})\n", plain(&said["filter"]), plain(&said["before"]))
}

fn held(said: &Value) -> String {
    let name = plain(&said["name"]);
    let entries = said["held"].as_array().map(Vec::as_slice).unwrap_or_default();
    if entries.is_empty() {
        return format!("{name}  not cached\n");
    }
    let line = |entry: &Value| {
        let [state, block, depth, profile, until] =
            ["state", "block", "depth", "profile", "fresh_until"].map(|key| plain(&entry[key]));
        let answers = if entry["answers"] == true { "answers" } else { "no longer answers" };
        format!("{name}  {state}  {profile} {depth} at {block}  fresh until {until}  {answers}\n")
    };
    entries.iter().map(line).collect()
}

fn state(said: &Value) -> String {
    let [version, started, log] = ["version", "started", "log"].map(|key| plain(&said[key]));
    let draining = if said["draining"] == true { ", draining" } else { "" };
    let mut text = format!("clresolve {version}, started {started}{draining}\nlog {log}\n");
    for pool in ["trusted", "untrusted", "failures", "content"] {
        let size = &said["cache"][pool];
        let _ = writeln!(text, "cache {pool}: {} entries, {} bytes", size["entries"], size["bytes"]);
    }
    let head = &said["head"];
    let _ = match head["number"].as_u64() {
        Some(number) => writeln!(text, "head: block {number}, last reported {}", plain(&head["reported_at"])),
        None => writeln!(text, "head: none yet"),
    };
    for (key, value) in said["settings"].as_object().into_iter().flatten() {
        let _ = writeln!(text, "{} = {}", Foreign::new(key), Foreign::new(&value.to_string()));
    }
    text
}

/// A text in the daemon's response, escaped since it may be foreign.
fn plain(value: &Value) -> String {
    Foreign::new(value.as_str().unwrap_or_default()).to_string()
}
