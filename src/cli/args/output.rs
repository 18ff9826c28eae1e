//! Arguments for the destination and format of results.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use clresolve_audit::AuditReportFormat;

use super::suggest;

/// The formats of a report, with the name and the help of each.
const REPORT_FORMATS: &[(AuditReportFormat, &str, &str)] = &[
    (AuditReportFormat::Markdown, "md", "Markdown, for people and repositories"),
    (AuditReportFormat::Json, "json", "JSON, for programs"),
    (AuditReportFormat::Csv, "csv", "A row per name, for spreadsheets"),
    (AuditReportFormat::Html, "html", "One page that prints well"),
    (AuditReportFormat::Sarif, "sarif", "SARIF 2.1.0, for code hosts"),
];

/// Where results go, and in which form.
#[derive(Debug, Args)]
pub(in crate::cli) struct OutputArguments<F: JsonCapableFormat = OutputFormat> {
    #[arg(short = 'o', long = "output", value_name = "FORM", value_enum, help = output_format_option_help::<F>())]
    form: Option<F>,
    /// The same as -o json
    #[arg(long, conflicts_with = "form")]
    json: bool,
    #[command(flatten)]
    pub(in crate::cli) out: OutputFileArguments,
}

impl<F: JsonCapableFormat> OutputArguments<F> {
    pub(in crate::cli) fn output_format(&self) -> F {
        if self.json { F::JSON } else { self.form.unwrap_or_default() }
    }
}

/// Adds the default to the help. A `default_value_t` of a generic type would be that of the first type for all of them.
fn output_format_option_help<F: JsonCapableFormat>() -> String {
    let default = F::default().to_possible_value().expect("no form is hidden");
    format!("Form of the results [default: {}]", default.get_name())
}

/// The formats that a command can write.
pub(in crate::cli) trait JsonCapableFormat: ValueEnum + Copy + Default + Send + Sync + 'static {
    /// The format that `--json` selects.
    const JSON: Self;
}

/// Outputs and formats of a report.
#[derive(Debug, Args)]
pub(in crate::cli) struct AuditReportOutputArguments {
    /// Format of the report [default: md]; repeatable with --out FILE, which writes FILE.html and so on
    #[arg(long, value_parser = suggest::named_value_parser(REPORT_FORMATS), value_name = "FORM")]
    format: Vec<AuditReportFormat>,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    #[command(flatten)]
    out: OutputFileArguments,
}

impl AuditReportOutputArguments {
    /// The requested formats without duplicates, each with its output.
    ///
    /// # Errors
    /// If several formats would go to standard output.
    pub(in crate::cli) fn formats_with_outputs(&self) -> anyhow::Result<Vec<(AuditReportFormat, OutputFileArguments)>> {
        let mut forms = if self.json { vec![AuditReportFormat::Json] } else { self.format.clone() };
        forms.sort_unstable();
        forms.dedup();
        match forms[..] {
            [] => Ok(vec![(AuditReportFormat::default(), self.out.clone())]),
            [form] => Ok(vec![(form, self.out.clone())]),
            _ => self.output_file_per_format(forms),
        }
    }

    fn output_file_per_format(
        &self,
        forms: Vec<AuditReportFormat>,
    ) -> anyhow::Result<Vec<(AuditReportFormat, OutputFileArguments)>> {
        let file = self
            .out
            .file
            .as_ref()
            .context("--format: several formats need --out FILE, and are written to FILE.html and so on")?;
        let target = |form: AuditReportFormat| {
            let (_, extension, _) = REPORT_FORMATS.iter().find(|(known, ..)| *known == form).expect("it has a row");
            let mut name = file.clone().into_os_string();
            name.push(".");
            name.push(extension);
            (form, OutputFileArguments { file: Some(name.into()) })
        };
        Ok(forms.into_iter().map(target).collect())
    }
}

/// Where results go.
#[derive(Clone, Debug, Default, Args)]
pub(in crate::cli) struct OutputFileArguments {
    /// Write the results to FILE
    #[arg(long = "out", value_name = "FILE")]
    pub(in crate::cli) file: Option<PathBuf>,
}

/// Form of the results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum OutputFormat {
    /// For people
    #[default]
    Text,
    /// A line each, for people and grep
    Short,
    /// One object, or an array for several
    Json,
    /// A JSON object per line
    Jsonl,
}

impl JsonCapableFormat for OutputFormat {
    const JSON: Self = Self::Json;
}

/// Form of verdicts, and of what is said of receipts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum VerdictOutputFormat {
    /// For people
    #[default]
    Text,
    /// A line each, for people and grep
    Short,
    /// One object, or an array for several
    Json,
    /// A JSON object per line
    Jsonl,
    /// Signed, a line each, for those who know your key
    Jws,
}

impl JsonCapableFormat for VerdictOutputFormat {
    const JSON: Self = Self::Json;
}

/// Form of findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum LintOutputFormat {
    /// For people
    #[default]
    Text,
    /// A line each, for people and grep
    Short,
    /// One object, or an array for several
    Json,
    /// A JSON object per line
    Jsonl,
    /// SARIF 2.1.0, for code hosts and editors
    Sarif,
}

impl JsonCapableFormat for LintOutputFormat {
    const JSON: Self = Self::Json;
}

/// Form of a conversion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ConversionOutputFormat {
    /// The card alone
    #[default]
    Card,
    /// One object with the card, what is lost and what is missing
    Json,
}

impl JsonCapableFormat for ConversionOutputFormat {
    const JSON: Self = Self::Json;
}

/// Form of cards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum CardOutputFormat {
    /// The card, or an array for several
    #[default]
    Json,
    /// A card per line
    Jsonl,
}

impl JsonCapableFormat for CardOutputFormat {
    const JSON: Self = Self::Json;
}
