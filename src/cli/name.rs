//! `name`: prints the normal form, namehash and DNS encoding of names. Works offline.

use std::io::{self, BufRead, IsTerminal as _, Read as _};

use alloy_primitives::hex;
use anyhow::{Context as _, bail};
use clresolve_core::name::{self, EnsName};
use clresolve_core::reason::ReasonCode;
use clresolve_core::text::UntrustedText;
use serde::Serialize;

use super::args::{NameArguments, OutputFormat};
use super::exit::ExitStatus;
use super::output::{OutputSink, ResultWriter};

/// Maximum number of names on standard input. They are processed one by one, so this limits time, not memory.
const MAX_NAMES: usize = 1_000_000;

/// Maximum line length on standard input, in bytes: far more than any name needs, even with every character escaped.
const MAX_LINE_BYTES: usize = 1024 * 1024;

#[derive(Debug, Serialize)]
struct NormalizedNameRow {
    input: String,
    normalized: Option<String>,
    node: Option<String>,
    /// DNS wire format, as ENSIP-10 resolvers expect it. `None` if a label is too long for it.
    dns: Option<String>,
    error: Option<String>,
    code: Option<ReasonCode>,
    /// Why the name is not resolved although it has a normal form.
    note: Option<String>,
}

impl NormalizedNameRow {
    /// Parses a line that is a JSON string.
    fn from_json_line(line: String) -> Self {
        match serde_json::from_str(&line) {
            Ok(name) => Self::from_input(name),
            Err(_) => Self::with_error(line, "the line is not a JSON string".to_owned()),
        }
    }

    fn from_input(input: String) -> Self {
        let normal = match name::normalize_ens_name(&input) {
            Ok(normal) => normal,
            Err(error) => return Self::with_error(input, error.to_string()),
        };
        Self {
            node: Some(alloy_ens::namehash(&normal).to_string()),
            dns: alloy_ens::try_dns_encode(&normal).ok().map(hex::encode_prefixed),
            note: EnsName::parse(&input).err().map(|e| e.to_string()),
            normalized: Some(normal),
            input,
            error: None,
            code: None,
        }
    }

    fn with_error(input: String, error: String) -> Self {
        let code = Some(ReasonCode::NameInvalid);
        Self { input, normalized: None, node: None, dns: None, error: Some(error), code, note: None }
    }

    fn exit_status(&self) -> ExitStatus {
        if self.error.is_some() { ExitStatus::Untrusted } else { ExitStatus::Trusted }
    }

    fn format_text(&self, format: OutputFormat) -> String {
        let input = UntrustedText::new(&self.input);
        let (Some(normal), Some(node)) = (&self.normalized, &self.node) else {
            return format!(
                "{input}  {}: {}\n",
                ReasonCode::NameInvalid,
                UntrustedText::new(self.error.as_deref().unwrap_or_default())
            );
        };
        // The normal form is printed unescaped, so that people can copy it. ENSIP-15 permits no character that affects
        // a terminal.
        if format == OutputFormat::Short {
            return format!("{normal}  {node}\n");
        }
        let dns = self.dns.as_deref().unwrap_or("none: a label is too long");
        let mut text = format!("{normal}\n  node  {node}\n  dns   {dns}\n");
        if let Some(note) = &self.note {
            text.push_str(&format!("  note  not resolved: {}\n", UntrustedText::new(note)));
        }
        text
    }
}

pub(super) fn run(args: NameArguments) -> anyhow::Result<ExitStatus> {
    let output = OutputSink::new(&args.output.out)?;
    let piped = args.names.is_empty() || args.names == ["-"];
    if args.names.is_empty() && !args.json_input && io::stdin().is_terminal() {
        bail!("expected names, as arguments or one per line on standard input");
    }
    let format = args.output.output_format();
    let mut results = if piped {
        ResultWriter::for_result_list(output, format)
    } else {
        ResultWriter::for_requested_results(output, format, args.names.len())
    };
    let mut worst = ExitStatus::Trusted;
    let mut answer = |row: NormalizedNameRow| -> anyhow::Result<bool> {
        worst = worst.max(row.exit_status());
        results.push(&row, |format| row.format_text(format))?;
        Ok(!results.is_pipe_closed())
    };
    if piped {
        let row_of = if args.json_input { NormalizedNameRow::from_json_line } else { NormalizedNameRow::from_input };
        for_each_normalized_line(io::stdin().lock(), row_of, &mut answer)?;
    } else {
        for name in args.names {
            answer(NormalizedNameRow::from_input(name))?;
        }
    }
    results.finish()?;
    Ok(worst)
}

/// Calls `answer` with the row of each line, until `answer` returns `false`.
fn for_each_normalized_line(
    mut input: impl BufRead,
    row_of: fn(String) -> NormalizedNameRow,
    answer: &mut impl FnMut(NormalizedNameRow) -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    for _ in 0..MAX_NAMES {
        let Some(line) = read_bounded_line(&mut input).context("cannot read standard input")? else { return Ok(()) };
        if line.is_empty() {
            continue;
        }
        if !answer(normalized_name_row_of_line(line, row_of))? {
            return Ok(());
        }
    }
    bail!("standard input contains more than {MAX_NAMES} names")
}

fn normalized_name_row_of_line(line: Vec<u8>, row_of: fn(String) -> NormalizedNameRow) -> NormalizedNameRow {
    if line.len() > MAX_LINE_BYTES {
        let start = String::from_utf8_lossy(&line[..80]).into_owned();
        return NormalizedNameRow::with_error(start, format!("the line is longer than {MAX_LINE_BYTES} bytes"));
    }
    match String::from_utf8(line) {
        Ok(line) => row_of(line),
        Err(e) => {
            NormalizedNameRow::with_error(String::from_utf8_lossy(e.as_bytes()).into_owned(), "not UTF-8".to_owned())
        }
    }
}

/// The next line without its line ending. An overlong line is cut after [`MAX_LINE_BYTES`] + 1 bytes.
fn read_bounded_line(input: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let limit = u64::try_from(MAX_LINE_BYTES + 1).unwrap_or(u64::MAX);
    if input.by_ref().take(limit).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
    } else if line.len() > MAX_LINE_BYTES {
        input.skip_until(b'\n')?;
    }
    Ok(Some(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(input: &[u8], row_of: fn(String) -> NormalizedNameRow) -> Vec<NormalizedNameRow> {
        let mut rows = Vec::new();
        for_each_normalized_line(input, row_of, &mut |row| {
            rows.push(row);
            Ok(true)
        })
        .unwrap();
        rows
    }

    #[test]
    fn a_line_is_a_name() {
        let rows = rows(b"Vitalik.eth\r\n\na b\n\xff.eth\n", NormalizedNameRow::from_input);
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[0].normalized.as_deref(), Some("vitalik.eth"));
        assert_eq!(rows[0].dns.as_deref(), Some("0x07766974616c696b0365746800"));
        assert_eq!(rows[0].node.as_deref(), Some("0xee6c4522aab0003e8d14cd40a6af439055fd2577951148c14b6cea9a53475835"));
        assert_eq!(rows[1].code, Some(ReasonCode::NameInvalid));
        assert_eq!(rows[2].error.as_deref(), Some("not UTF-8"));
    }

    #[test]
    fn a_json_line_may_hold_anything() {
        let rows = rows(b"\"a.eth\"\n\"\"\n\"a\\nb\"\nnull\n", NormalizedNameRow::from_json_line);
        assert_eq!(rows[0].normalized.as_deref(), Some("a.eth"));
        assert_eq!((rows[1].normalized.as_deref(), rows[1].dns.as_deref()), (Some(""), Some("0x00")));
        assert!(rows[1].note.is_some());
        assert!(rows[2].error.is_some());
        assert_eq!(rows[3].error.as_deref(), Some("the line is not a JSON string"));
    }

    #[test]
    fn a_long_line_is_a_row_and_the_next_is_read() {
        let mut input = vec![b'a'; 3 * MAX_LINE_BYTES];
        input.extend(b"\na.eth\n");
        let rows = rows(&input, NormalizedNameRow::from_input);
        assert_eq!(rows.len(), 2);
        assert!(rows[0].error.as_deref().is_some_and(|e| e.contains("longer than")));
        assert_eq!(rows[1].normalized.as_deref(), Some("a.eth"));
    }
}
