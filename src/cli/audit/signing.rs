//! `audit sign` and `audit verify`: whether a report is unmodified, and who signed it.

use std::io::Cursor;
use std::path::Path;

use anyhow::{anyhow, bail};
use clresolve_audit::{Past, PastError};
use clresolve_core::text::Foreign;
use clresolve_resolver::sign::{
    MAX_SIGNATURE_BYTES, MAX_SIGNED_REPORT_BYTES, read_signing_key, read_trusted_keys, sign_report, verify_report,
};
use serde_json::{Value, json};

use crate::cli::args::{AuditSignArgs, AuditVerifyArgs};
use crate::cli::exit::Exit;
use crate::cli::input;
use crate::cli::output::{Output, Results};

/// Maximum length of a line end after a signature, in bytes.
const LINE_END: usize = 2;

pub(super) fn sign(args: &AuditSignArgs) -> anyhow::Result<Exit> {
    let output = Output::apart_from(&args.out, [("the report", Some(&*args.report)), ("--key", Some(&*args.key))])?;
    let key = read_signing_key(&args.key)?;
    let bytes = bytes(&args.report)?;
    past(&bytes).map_err(|error| anyhow!("{} {error}", Foreign::new(&input::name(&args.report))))?;
    output.write_whole((sign_report(&key, &bytes) + "\n").as_bytes())?;
    Ok(Exit::Trusted)
}

pub(super) fn verify(args: &AuditVerifyArgs) -> anyhow::Result<Exit> {
    let read = [
        ("the report", Some(&*args.report)),
        ("--signature", args.signature.as_deref()),
        ("--jwks", args.jwks.as_deref()),
    ];
    let output = Output::apart_from(&args.output.out, read)?;
    let keys = args.jwks.as_deref().map(read_trusted_keys).transpose()?;
    let bytes = bytes(&args.report)?;
    let report = match past(&bytes) {
        Ok(report) => report,
        Err(error @ PastError::Unreadable(_)) => return Err(error.into()),
        Err(error) => return Ok(refused(&args.report, &error.to_string())),
    };
    let signed_by = match (&args.signature, keys) {
        (Some(file), Some(keys)) => match verify_report(&signature(file)?, &bytes, &keys) {
            Ok(key_id) => Some(key_id),
            Err(error) => return Ok(refused(file, &format!("does not sign this report: {error}"))),
        },
        _ => None,
    };
    let mut results = Results::one(output, args.output.form());
    results.push(&for_programs(&report, signed_by.as_deref()), |_| people(&report, signed_by.as_deref()))?;
    results.finish()?;
    Ok(Exit::Trusted)
}

/// Reads the whole file, so that the same bytes are parsed and verified.
fn bytes(file: &Path) -> anyhow::Result<Vec<u8>> {
    let bytes = input::read(file, MAX_SIGNED_REPORT_BYTES)?;
    if bytes.len() > MAX_SIGNED_REPORT_BYTES {
        bail!(
            "{} has more than {MAX_SIGNED_REPORT_BYTES} bytes; audit fewer names in one report",
            Foreign::new(&input::name(file))
        );
    }
    Ok(bytes)
}

fn past(bytes: &[u8]) -> Result<Past, PastError> {
    Past::read(Cursor::new(bytes))
}

fn signature(file: &Path) -> anyhow::Result<String> {
    let jws = String::from_utf8_lossy(&input::read(file, MAX_SIGNATURE_BYTES + LINE_END)?).into_owned();
    Ok(jws.trim_end_matches(['\r', '\n']).to_owned())
}

fn refused(file: &Path, why: &str) -> Exit {
    anstream::eprintln!("clresolve: {} {}", Foreign::new(&input::name(file)), Foreign::new(why));
    Exit::Untrusted
}

fn for_programs(report: &Past, signed_by: Option<&str>) -> Value {
    json!({
        "schema": "clresolve.audit-check/1",
        "scope": report.scope,
        "complete": report.complete,
        "names": report.rows,
        "signature": signed_by.map(|key_id| json!({"key_id": key_id})),
    })
}

fn people(report: &Past, signed_by: Option<&str>) -> String {
    let scope = &report.scope;
    let count = report.rows;
    let about = format!(
        "{count} {} under {} in {} {}",
        if count == 1 { "name" } else { "names" },
        Foreign::new(&scope.profile.id),
        Foreign::new(&scope.world),
        Foreign::new(&scope.chain)
    );
    let complete = if report.complete { "" } else { "; it is incomplete" };
    let by = match signed_by {
        Some(key_id) => format!("Key {key_id} signed it."),
        None => "No signature was checked: the digest shows accidents, not forgers.".to_owned(),
    };
    format!("The report is as it was written: {about}{complete}.\n{by}\n")
}
