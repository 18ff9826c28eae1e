//! `sandbox`: lists the sandbox, or keeps it running.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use anyhow::Context as _;
use clresolve_core::reason::ReasonCode;
use clresolve_core::state::TrustState;
use clresolve_core::text::{UntrustedText, shell_quote};
use clresolve_resolver::sandbox::Sandbox;
use serde_json::Value;

use super::args::{OutputFormat, SandboxArguments};
use super::demo;
use super::exit::ExitStatus;
use super::output::{OutputSink, OutputWriteError, ResultWriter, json_line, pretty_json};
use super::publish;
use super::stop::wait_for_stop_signal;

pub(super) fn run(args: SandboxArguments) -> anyhow::Result<ExitStatus> {
    if args.list {
        return list_sandbox_names(args);
    }
    if let Some(folder) = args.receipts.clone() {
        return write_sandbox_receipts(args, &folder);
    }
    let runtime = tokio::runtime::Runtime::new().context("the runtime does not start")?;
    let done = if args.demo { runtime.block_on(demo::run(args)) } else { runtime.block_on(keep_sandbox_running(args)) };
    runtime.shutdown_background();
    done
}

/// Lists each name of the sandbox with its expected verdict. Starts nothing.
fn list_sandbox_names(args: SandboxArguments) -> anyhow::Result<ExitStatus> {
    let mut results = ResultWriter::for_result_list(OutputSink::new(&args.output.out)?, args.output.output_format());
    for expected in Sandbox::expected_verdicts() {
        let row = serde_json::to_value(&expected)?;
        results.push(&row, |_| format_expected_verdict(&row))?;
    }
    results.finish()?;
    Ok(ExitStatus::Trusted)
}

fn output_write_error(path: &Path, error: io::Error) -> OutputWriteError {
    OutputWriteError::new(path.display().to_string(), error)
}

/// Writes the receipts, their request and payment, and the seller's replies. Lists each with its expected result.
fn write_sandbox_receipts(args: SandboxArguments, folder: &Path) -> anyhow::Result<ExitStatus> {
    let mut results = ResultWriter::for_result_list(OutputSink::new(&args.output.out)?, args.output.output_format());
    let write = |file: &str, text: &str| {
        let path = folder.join(file);
        fs::write(&path, text).map_err(|error| output_write_error(&path, error))
    };
    fs::create_dir_all(folder).map_err(|error| output_write_error(folder, error))?;
    let (file, text) = Sandbox::sample_request();
    write(file, text)?;
    let (file, text) = Sandbox::sample_payment();
    write(file, &text)?;
    for sample in Sandbox::sample_receipts() {
        write(sample.file, sample.text)?;
        results
            .push(sample, |_| format_expected_receipt_result(sample.state, sample.file, sample.name, sample.codes))?;
    }
    for sample in Sandbox::sample_settlement_headers() {
        write(sample.file, &sample.header)?;
        results.push(&sample, |_| format_expected_receipt_result(sample.state, sample.file, file, sample.codes))?;
    }
    results.finish()?;
    Ok(ExitStatus::Trusted)
}

fn format_expected_receipt_result(state: TrustState, file: &str, about: &str, codes: &[ReasonCode]) -> String {
    let codes: Vec<&str> = codes.iter().map(|code| code.slug()).collect();
    let line = format!("{:<14} {file:<32} {about:<20} {}", state.as_str(), codes.join(","));
    format!("{}\n", line.trim_end())
}

fn format_expected_verdict(row: &Value) -> String {
    let text = |key: &str| UntrustedText::new(row[key].as_str().unwrap_or_default()).to_string();
    let codes: Vec<&str> = row["codes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    format!("{:<14} {:<44} {}\n", text("state"), text("name"), UntrustedText::new(&codes.join(",")))
}

async fn keep_sandbox_running(args: SandboxArguments) -> anyhow::Result<ExitStatus> {
    let output = OutputSink::new(&args.output.out)?;
    let publications =
        args.publish.iter().map(|target| publish::plan_publisher_card_set(target)).collect::<Result<Vec<_>, _>>()?;
    let own = publications.iter().flat_map(|publication| &publication.cards).next().map(|card| card.name.clone());
    let asked = own.as_deref().unwrap_or("summarizeagent.eth").to_owned();
    let sandbox = Sandbox::start_with_publications(publications).await?;
    if let Some(path) = &args.write_config {
        sandbox.client_program_config().save(path)?;
    }
    let endpoints = sandbox.listener_addresses();
    let config = args.write_config.map(|path| path.display().to_string());
    let text = match args.output.output_format() {
        OutputFormat::Text | OutputFormat::Short => format_sandbox_endpoints(&endpoints, config.as_deref(), &asked),
        OutputFormat::Json => pretty_json(&sandbox_endpoints_json(&endpoints, config.as_deref()))? + "\n",
        OutputFormat::Jsonl => json_line(&sandbox_endpoints_json(&endpoints, config.as_deref()))? + "\n",
    };
    output.write_all_and_finish(text.as_bytes())?;
    tokio::select! {
        () = sandbox.run_until_dropped() => {}
        () = wait_for_stop_signal() => {}
    }
    Ok(ExitStatus::Trusted)
}

fn format_sandbox_endpoints(endpoints: &[(String, String)], config: Option<&str>, name: &str) -> String {
    let mut text = String::from("The sandbox is running; Ctrl-C stops it.\n");
    for (label, url) in endpoints {
        let _ = writeln!(text, "  {label:<10} {url}");
    }
    if let Some(path) = config {
        let _ = writeln!(text, "Ask it: clresolve --config {path} {}", shell_quote(name));
    }
    text
}

fn sandbox_endpoints_json(endpoints: &[(String, String)], config: Option<&str>) -> Value {
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
        assert!(format_expected_verdict(&row).ends_with("txt-missing,single-rpc\n"));
    }

    #[test]
    fn people_are_told_how_to_ask() {
        let text = format_sandbox_endpoints(
            &[("rpc".to_owned(), "http://127.0.0.1:1".to_owned())],
            Some("s.toml"),
            "summarizeagent.eth",
        );
        assert!(text.contains("rpc        http://127.0.0.1:1\n"));
        assert!(text.ends_with("clresolve --config s.toml summarizeagent.eth\n"));
    }
}
