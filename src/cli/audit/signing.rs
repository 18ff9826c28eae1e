//! `audit sign` and `audit verify`: whether a report is unmodified, and who signed it.

use std::io::Cursor;
use std::path::Path;

use anyhow::{anyhow, bail};
use clresolve_audit::{AuditReportError, ComparableReport};
use clresolve_core::text::UntrustedText;
use clresolve_resolver::sign::{
    MAX_SIGNATURE_BYTES, MAX_SIGNED_REPORT_BYTES, read_signing_key, read_trusted_keys, sign_audit_report,
    verify_audit_report,
};
use serde_json::{Value, json};

use crate::cli::args::{AuditSignArguments, AuditVerifyArguments};
use crate::cli::exit::ExitStatus;
use crate::cli::input;
use crate::cli::output::{OutputSink, ResultWriter};

/// Maximum length of a line end after a signature, in bytes.
const LINE_END: usize = 2;

pub(super) fn write_audit_report_signature(args: &AuditSignArguments) -> anyhow::Result<ExitStatus> {
    let output = OutputSink::new_unless_input_file(
        &args.out,
        [("the report", Some(&*args.report)), ("--key", Some(&*args.key))],
    )?;
    let key = read_signing_key(&args.key)?;
    let bytes = read_audit_report_bytes(&args.report)?;
    parse_audit_report(&bytes)
        .map_err(|error| anyhow!("{} {error}", UntrustedText::new(&input::input_label(&args.report))))?;
    output.write_all_and_finish((sign_audit_report(&key, &bytes) + "\n").as_bytes())?;
    Ok(ExitStatus::Trusted)
}

pub(super) fn verify_signed_audit_report(args: &AuditVerifyArguments) -> anyhow::Result<ExitStatus> {
    let read = [
        ("the report", Some(&*args.report)),
        ("--signature", args.signature.as_deref()),
        ("--jwks", args.jwks.as_deref()),
    ];
    let output = OutputSink::new_unless_input_file(&args.output.out, read)?;
    let keys = args.jwks.as_deref().map(read_trusted_keys).transpose()?;
    let bytes = read_audit_report_bytes(&args.report)?;
    let report = match parse_audit_report(&bytes) {
        Ok(report) => report,
        Err(error @ AuditReportError::Unreadable(_)) => return Err(error.into()),
        Err(error) => return Ok(print_refused_file_reason(&args.report, &error.to_string())),
    };
    let signed_by = match (&args.signature, keys) {
        (Some(file), Some(keys)) => match verify_audit_report(&read_report_signature(file)?, &bytes, &keys) {
            Ok(key_id) => Some(key_id),
            Err(error) => return Ok(print_refused_file_reason(file, &format!("does not sign this report: {error}"))),
        },
        _ => None,
    };
    let mut results = ResultWriter::for_single_result(output, args.output.output_format());
    results.push(&signed_report_json(&report, signed_by.as_deref()), |_| {
        format_signed_report(&report, signed_by.as_deref())
    })?;
    results.finish()?;
    Ok(ExitStatus::Trusted)
}

/// Reads the whole file, so that the same bytes are parsed and verified.
fn read_audit_report_bytes(file: &Path) -> anyhow::Result<Vec<u8>> {
    let bytes = input::read_file_or_stdin(file, MAX_SIGNED_REPORT_BYTES)?;
    if bytes.len() > MAX_SIGNED_REPORT_BYTES {
        bail!(
            "{} has more than {MAX_SIGNED_REPORT_BYTES} bytes; audit fewer names in one report",
            UntrustedText::new(&input::input_label(file))
        );
    }
    Ok(bytes)
}

fn parse_audit_report(bytes: &[u8]) -> Result<ComparableReport, AuditReportError> {
    ComparableReport::read(Cursor::new(bytes))
}

fn read_report_signature(file: &Path) -> anyhow::Result<String> {
    let jws = String::from_utf8_lossy(&input::read_file_or_stdin(file, MAX_SIGNATURE_BYTES + LINE_END)?).into_owned();
    Ok(jws.trim_end_matches(['\r', '\n']).to_owned())
}

fn print_refused_file_reason(file: &Path, why: &str) -> ExitStatus {
    anstream::eprintln!("clresolve: {} {}", UntrustedText::new(&input::input_label(file)), UntrustedText::new(why));
    ExitStatus::Untrusted
}

fn signed_report_json(report: &ComparableReport, signed_by: Option<&str>) -> Value {
    json!({
        "schema": "clresolve.audit-check/1",
        "scope": report.scope,
        "complete": report.complete,
        "names": report.rows,
        "signature": signed_by.map(|key_id| json!({"key_id": key_id})),
    })
}

fn format_signed_report(report: &ComparableReport, signed_by: Option<&str>) -> String {
    let scope = &report.scope;
    let count = report.rows;
    let about = format!(
        "{count} {} under {} in {} {}",
        if count == 1 { "name" } else { "names" },
        UntrustedText::new(&scope.profile.id),
        UntrustedText::new(&scope.world),
        UntrustedText::new(&scope.chain)
    );
    let complete = if report.complete { "" } else { "; it is incomplete" };
    let by = match signed_by {
        Some(key_id) => format!("Key {key_id} signed it."),
        None => "No signature was checked: the digest shows accidents, not forgers.".to_owned(),
    };
    format!("The report is as it was written: {about}{complete}.\n{by}\n")
}
