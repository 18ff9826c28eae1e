//! `sandbox`: lists the sandbox, or keeps it running.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use anyhow::Context as _;
use clresolve_core::reason::Code;
use clresolve_core::state::State;
use clresolve_core::text::{Foreign, in_shell};
use clresolve_resolver::sandbox::Sandbox;
use serde_json::Value;

use super::args::{Format, SandboxArgs};
use super::demo;
use super::exit::Exit;
use super::output::{Output, Results, Unwritable, json, json_line};
use super::publish;
use super::stop::asked_to_stop;

pub(super) fn run(args: SandboxArgs) -> anyhow::Result<Exit> {
    if args.list {
        return list(args);
    }
    if let Some(folder) = args.receipts.clone() {
        return receipts(args, &folder);
    }
    let runtime = tokio::runtime::Runtime::new().context("the runtime does not start")?;
    let done = if args.demo { runtime.block_on(demo::run(args)) } else { runtime.block_on(keep_running(args)) };
    runtime.shutdown_background();
    done
}

/// Lists each name of the sandbox with its expected verdict. Starts nothing.
fn list(args: SandboxArgs) -> anyhow::Result<Exit> {
    let mut results = Results::list(Output::new(&args.output.out)?, args.output.form());
    for expected in Sandbox::expected() {
        let row = serde_json::to_value(&expected)?;
        results.push(&row, |_| line(&row))?;
    }
    results.finish()?;
    Ok(Exit::Trusted)
}

fn unwritable(path: &Path, error: io::Error) -> Unwritable {
    Unwritable::new(path.display().to_string(), error)
}

/// Writes the receipts, their request and payment, and the seller's replies. Lists each with its expected result.
fn receipts(args: SandboxArgs, folder: &Path) -> anyhow::Result<Exit> {
    let mut results = Results::list(Output::new(&args.output.out)?, args.output.form());
    let write = |file: &str, text: &str| {
        let path = folder.join(file);
        fs::write(&path, text).map_err(|error| unwritable(&path, error))
    };
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, error))?;
    let (file, text) = Sandbox::request();
    write(file, text)?;
    let (file, text) = Sandbox::payment();
    write(file, &text)?;
    for sample in Sandbox::receipts() {
        write(sample.file, sample.text)?;
        results.push(sample, |_| said(sample.state, sample.file, sample.name, sample.codes))?;
    }
    for reply in Sandbox::replies() {
        write(reply.file, &reply.header)?;
        results.push(&reply, |_| said(reply.state, reply.file, file, reply.codes))?;
    }
    results.finish()?;
    Ok(Exit::Trusted)
}

fn said(state: State, file: &str, about: &str, codes: &[Code]) -> String {
    let codes: Vec<&str> = codes.iter().map(|code| code.slug()).collect();
    let line = format!("{:<14} {file:<32} {about:<20} {}", state.as_str(), codes.join(","));
    format!("{}\n", line.trim_end())
}

fn line(row: &Value) -> String {
    let text = |key: &str| Foreign::new(row[key].as_str().unwrap_or_default()).to_string();
    let codes: Vec<&str> = row["codes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    format!("{:<14} {:<44} {}\n", text("state"), text("name"), Foreign::new(&codes.join(",")))
}

async fn keep_running(args: SandboxArgs) -> anyhow::Result<Exit> {
    let output = Output::new(&args.output.out)?;
    let publications = args.publish.iter().map(|target| publish::planned(target)).collect::<Result<Vec<_>, _>>()?;
    let own = publications.iter().flat_map(|publication| &publication.cards).next().map(|card| card.name.clone());
    let asked = own.as_deref().unwrap_or("summarizeagent.eth").to_owned();
    let sandbox = Sandbox::with(publications).await?;
    if let Some(path) = &args.write_config {
        sandbox.shared_config().save(path)?;
    }
    let endpoints = sandbox.endpoints();
    let config = args.write_config.map(|path| path.display().to_string());
    let text = match args.output.form() {
        Format::Text | Format::Short => for_people(&endpoints, config.as_deref(), &asked),
        Format::Json => json(&for_programs(&endpoints, config.as_deref()))? + "\n",
        Format::Jsonl => json_line(&for_programs(&endpoints, config.as_deref()))? + "\n",
    };
    output.write_whole(text.as_bytes())?;
    tokio::select! {
        () = sandbox.stopped() => {}
        () = asked_to_stop() => {}
    }
    Ok(Exit::Trusted)
}

fn for_people(endpoints: &[(String, String)], config: Option<&str>, name: &str) -> String {
    let mut text = String::from("The sandbox is running; Ctrl-C stops it.\n");
    for (label, url) in endpoints {
        let _ = writeln!(text, "  {label:<10} {url}");
    }
    if let Some(path) = config {
        let _ = writeln!(text, "Ask it: clresolve --config {path} {}", in_shell(name));
    }
    text
}

fn for_programs(endpoints: &[(String, String)], config: Option<&str>) -> Value {
    let endpoints: serde_json::Map<String, Value> =
        endpoints.iter().map(|(label, url)| (label.clone(), Value::from(url.as_str()))).collect();
    serde_json::json!({ "endpoints": endpoints, "config": config })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_reads_in_one_line() {
        let row = serde_json::json!({"name": "a.eth", "state": "untrusted", "codes": ["txt-missing", "single-rpc"]});
        assert!(line(&row).ends_with("txt-missing,single-rpc\n"));
    }

    #[test]
    fn people_are_told_how_to_ask() {
        let text =
            for_people(&[("rpc".to_owned(), "http://127.0.0.1:1".to_owned())], Some("s.toml"), "summarizeagent.eth");
        assert!(text.contains("rpc        http://127.0.0.1:1\n"));
        assert!(text.ends_with("clresolve --config s.toml summarizeagent.eth\n"));
    }
}
