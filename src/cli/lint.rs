//! `lint`: judges cards of any system before they are published, and fixes what has only one correction.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clresolve_cards::ledger::PacrLedgerMetrics;
use clresolve_cards::lint::{self, CardLintReport, LintReportWithPassingProfiles, MAX_BYTES};
use clresolve_cards::system::{CardLintContext, CardSystem};
use clresolve_core::reason::{ReasonCode, ReasonEffect};
use clresolve_core::state::TrustState;
use clresolve_core::text::{self, UntrustedText};
use clresolve_resolver::clock::{Clock as _, SystemClock};
use clresolve_verdict::card::AgentCard;
use clresolve_verdict::profile::ConformanceProfiles;
use serde::Serialize;

use super::args::{LedgerDecayArguments, LintArguments, LintOutputFormat, OutputFormat};
use super::exit::ExitStatus;
use super::findings;
use super::input::read_file_or_stdin;
use super::ledger;
use super::new_file;
use super::output::{OutputSink, OutputWriteError, ResultWriter};
use super::render::Palette;
use super::uri;
use super::world::CommandContext;

/// Maximum number of cards from folders.
const MAX_FILES: usize = 10_000;

/// Maximum depth of subfolders.
const MAX_DEPTH: usize = 16;

#[derive(Debug, Serialize)]
struct LintResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(flatten)]
    judgement: LintReportWithPassingProfiles,
    #[serde(skip)]
    text: String,
    #[serde(skip)]
    name: String,
}

pub(super) fn run(args: LintArguments) -> anyhow::Result<ExitStatus> {
    let output = OutputSink::new(&args.output.out)?;
    super::runtime::run_async_until_interrupt(async move {
        let world = CommandContext::open(&args.world).await?;
        let profiles = world.resolver.profiles();
        let profile = profiles.get(&world.config.rules.profile).context("the configured profile does not exist")?;
        let previous = args.previous.as_deref().map(read_previous_card).transpose()?;
        let ledger = args.ledger.as_deref().map(|file| compute_ledger_file_metrics(file, args.weights)).transpose()?;
        let rules = CardLintContext {
            previous: previous.as_ref().map(|(card, _)| card),
            previous_bytes: previous.as_ref().map(|(_, bytes)| bytes.as_slice()),
            ledger: ledger.as_ref(),
            ..CardLintContext::from_profile(&profile)
        };
        let documents = expand_folders(args.documents)?;
        if args.fix {
            if let Some(other) = documents.iter().find(|document| !is_local_document(document)) {
                bail!(
                    "--fix: expected files, which it writes anew; {} cannot be fixed",
                    UntrustedText::new(&redacted_document_name(other))
                );
            }
            for document in &documents {
                fix_card_file(document, args.card_system, &rules)?;
            }
        }
        let mut judged = LintResultWriter::new(output, args.output.output_format(), documents.len() > 1);
        for document in &documents {
            match read_document(document, &world).await {
                Ok(bytes) => judged.push(lint_document(&bytes, document, args.card_system, &rules, profiles))?,
                Err(missing) => judged.missing = judged.missing.max(missing),
            }
        }
        judged.finish()
    })
}

/// The documents, with each folder replaced by its `.json` files, including those in subfolders.
fn expand_folders(documents: Vec<PathBuf>) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for document in documents {
        if !document.is_dir() {
            files.push(document);
            continue;
        }
        let before = files.len();
        let mut folders = vec![(document.clone(), 0)];
        while let Some((folder, depth)) = folders.pop() {
            let unreadable = || format!("cannot read {}", UntrustedText::new(&folder.display().to_string()));
            for entry in fs::read_dir(&folder).with_context(unreadable)? {
                let entry = entry.with_context(unreadable)?;
                let (path, kind) = (entry.path(), entry.file_type().with_context(unreadable)?);
                // Symlinks are skipped: they may form a cycle, or leave the folder.
                if kind.is_dir() && depth < MAX_DEPTH {
                    folders.push((path, depth + 1));
                } else if kind.is_file() && path.extension().is_some_and(|extension| extension == "json") {
                    files.push(path);
                }
            }
            if files.len() > MAX_FILES {
                bail!("more than {MAX_FILES} cards");
            }
        }
        files[before..].sort();
        if files.len() == before {
            bail!("{}: no file in it ends in .json", UntrustedText::new(&document.display().to_string()));
        }
    }
    Ok(files)
}

/// The previous version of the card, and its bytes.
fn read_previous_card(file: &Path) -> anyhow::Result<(AgentCard, Vec<u8>)> {
    let name = file.display().to_string();
    let bytes = read_file_or_stdin(file, MAX_BYTES)?;
    let card =
        AgentCard::parse(&bytes).with_context(|| format!("--previous {}: not a card", UntrustedText::new(&name)))?;
    Ok((card, bytes))
}

fn compute_ledger_file_metrics(file: &Path, weights: LedgerDecayArguments) -> anyhow::Result<PacrLedgerMetrics> {
    let name = file.display().to_string();
    ledger::compute_ledger_metrics(file, weights)?.with_context(|| format!("--ledger {}", UntrustedText::new(&name)))
}

/// Reads a document. An unreadable one is reported with its exit status, and the other cards are still judged.
async fn read_document(document: &Path, world: &CommandContext) -> Result<Vec<u8>, ExitStatus> {
    let Some(url) = https_url_of_document(document) else {
        return read_file_or_stdin(document, MAX_BYTES).map_err(|error| {
            anstream::eprintln!("clresolve: {error:#}");
            ExitStatus::Usage
        });
    };
    let document = world.resolver.fetch_document(url).await;
    document.map(|body| body.bytes.into()).map_err(|error| {
        let shown = text::strip_url_secrets(url);
        anstream::eprintln!("clresolve: {}: {}", UntrustedText::new(&shown), UntrustedText::new(&error.to_string()));
        ExitStatus::Indeterminate
    })
}

fn https_url_of_document(document: &Path) -> Option<&str> {
    document.to_str().filter(|text| clresolve_core::uri::strip_scheme(text, "https").is_some())
}

/// Whether it is neither standard input nor a URL.
fn is_local_document(document: &Path) -> bool {
    document != Path::new("-") && https_url_of_document(document).is_none()
}

/// The file, or the URL without possible secrets.
fn redacted_document_name(document: &Path) -> String {
    text::strip_url_secrets(&document.display().to_string())
}

fn lint_document(
    bytes: &[u8],
    document: &Path,
    named: Option<CardSystem>,
    rules: &CardLintContext<'_>,
    profiles: &ConformanceProfiles,
) -> LintResult {
    let judgement = lint::lint_with_passing_profiles(bytes, named, rules, profiles);
    let text = mask_credentials(String::from_utf8_lossy(bytes).into_owned(), &judgement.report);
    LintResult { file: None, judgement, text, name: redacted_document_name(document) }
}

/// Replaces each byte of a credential by a star, so that positions stay the same, because reports are stored.
fn mask_credentials(mut text: String, report: &CardLintReport) -> String {
    let secrets = report.findings.iter().filter(|finding| finding.code == ReasonCode::SecretInCard);
    for span in secrets.filter_map(|finding| finding.span.clone()) {
        if text.get(span.clone()).is_some() {
            text.replace_range(span.clone(), &"*".repeat(span.len()));
        }
    }
    text
}

/// Rewrites the card if something could be fixed, and reports the fixes.
fn fix_card_file(file: &Path, named: Option<CardSystem>, rules: &CardLintContext<'_>) -> anyhow::Result<()> {
    // Unreadable files are reported when they are judged.
    let Ok(bytes) = read_file_or_stdin(file, MAX_BYTES) else { return Ok(()) };
    let Some(system) = lint::lint_document(&bytes, named, rules).system else { return Ok(()) };
    let Ok(text) = std::str::from_utf8(&bytes) else { return Ok(()) };
    let Ok(fixed) = lint::fix_card(text, system, rules, SystemClock.now()) else { return Ok(()) };
    if fixed.changes.is_empty() {
        return Ok(());
    }
    let name = file.display().to_string();
    new_file::replace_file(file, fixed.text.as_bytes())
        .map_err(|error| OutputWriteError::new(UntrustedText::new(&name).to_string(), error))?;
    for change in &fixed.changes {
        anstream::eprintln!("clresolve: {}: {}", UntrustedText::new(&name), UntrustedText::new(change));
    }
    Ok(())
}

/// Writes results as they complete, or one SARIF log at the end.
struct LintResultWriter {
    results: ResultWriter,
    palette: Palette,
    /// The width of the terminal, if the output is one.
    width: Option<usize>,
    sarif: Option<Vec<LintResult>>,
    are_several: bool,
    are_valid: bool,
    /// The worst exit status of unreadable documents.
    missing: ExitStatus,
}

impl LintResultWriter {
    fn new(output: OutputSink, format: LintOutputFormat, are_several: bool) -> Self {
        let (palette, width) = (output.palette(), output.terminal_width());
        let (sarif, format) = match format.streamed_format() {
            Some(format) => (None, format),
            None => (Some(Vec::new()), OutputFormat::Json),
        };
        let results = if are_several && sarif.is_none() {
            ResultWriter::for_result_list(output, format)
        } else {
            ResultWriter::for_single_result(output, format)
        };
        Self { results, palette, width, sarif, are_several, are_valid: true, missing: ExitStatus::Trusted }
    }

    fn push(&mut self, mut answer: LintResult) -> anyhow::Result<()> {
        self.are_valid &= answer.judgement.report.valid;
        if let Some(answers) = &mut self.sarif {
            answers.push(answer);
            return Ok(());
        }
        answer.file = self.are_several.then(|| answer.name.clone());
        self.results.push(&answer, |format| match format {
            OutputFormat::Short => format_lint_lines(&answer, &self.palette),
            _ => format_lint_result(&answer, &self.palette, self.width),
        })
    }

    fn finish(mut self) -> anyhow::Result<ExitStatus> {
        if let Some(answers) = &self.sarif {
            let uris: Vec<String> = answers.iter().map(|answer| uri::escaped_uri_reference(&answer.name)).collect();
            let reports =
                answers.iter().zip(&uris).map(|(a, uri)| (uri.as_str(), a.text.as_str(), &a.judgement.report));
            self.results.push(&lint::sarif_report(reports), |_| String::new())?;
        }
        self.results.finish()?;
        Ok(if self.are_valid { self.missing } else { self.missing.max(ExitStatus::Untrusted) })
    }
}

impl LintOutputFormat {
    /// The format of streamed results. SARIF is a single document.
    const fn streamed_format(self) -> Option<OutputFormat> {
        match self {
            Self::Text => Some(OutputFormat::Text),
            Self::Short => Some(OutputFormat::Short),
            Self::Json => Some(OutputFormat::Json),
            Self::Jsonl => Some(OutputFormat::Jsonl),
            Self::Sarif => None,
        }
    }
}

/// One line per finding, in the style of compilers.
fn format_lint_lines(answer: &LintResult, palette: &Palette) -> String {
    let findings = &answer.judgement.report.findings;
    findings.iter().map(|finding| findings::format_finding_line(finding, &answer.name, palette)).collect()
}

/// Each finding with its line of the card, and what to do.
fn format_lint_result(answer: &LintResult, palette: &Palette, width: Option<usize>) -> String {
    let found = &answer.judgement.report.findings;
    let mut text = findings::format_findings(found, &answer.name, &answer.text, palette, width);
    let style =
        palette.state_style(if answer.judgement.report.valid { TrustState::Trusted } else { TrustState::Untrusted });
    let _ = writeln!(text, "{style}{}{style:#}", lint_advice(answer));
    text
}

/// One sentence that states what to do.
fn lint_advice(answer: &LintResult) -> String {
    let (name, report) = (UntrustedText::new(&answer.name), &answer.judgement.report);
    let rules = match (&report.profile, report.system) {
        (Some(profile), _) => format!("card under {}", UntrustedText::new(profile)),
        (None, Some(system)) => system.title().to_owned(),
        (None, None) => "card".to_owned(),
    };
    let count = |effect| report.findings.iter().filter(|finding| finding.effect == effect).count();
    let warnings = match count(ReasonEffect::Warn) {
        0 => String::new(),
        1 => " (1 warning)".to_owned(),
        n => format!(" ({n} warnings)"),
    };
    if report.valid {
        let next = match report.system {
            Some(CardSystem::CommandLayer) => "; `clresolve plan` lists the records to set for it.",
            _ => "; nothing proves its claims.",
        };
        return format!("{name} is a valid {rules}{warnings}{next}");
    }
    let defects = match count(ReasonEffect::Fail) {
        1 => "1 defect".to_owned(),
        n => format!("{n} defects"),
    };
    let near = match answer.judgement.near_misses.first() {
        Some(near) => format!(", or judge by --profile {}, under which it is valid", UntrustedText::new(near)),
        None => String::new(),
    };
    let is_unrecognised = report
        .findings
        .iter()
        .any(|finding| matches!(finding.code, ReasonCode::FlavourUnknown | ReasonCode::FlavourAmbiguous));
    if is_unrecognised {
        return format!("{name} is not a valid {rules}: name its system with --as, and its rules say what is missing.");
    }
    format!("{name} is not a valid {rules}: fix {defects}{warnings} before you publish it{near}.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clresolve_verdict::profile::DEFAULT;

    fn shown(card: &str) -> String {
        let profile = ConformanceProfiles::builtin().get(DEFAULT).expect("built in");
        let report = lint::lint_document(
            card.as_bytes(),
            Some(CardSystem::CommandLayer),
            &CardLintContext::from_profile(&profile),
        );
        let (text, name) = (mask_credentials(card.to_owned(), &report), "card.json".to_owned());
        format_lint_result(
            &LintResult {
                file: None,
                judgement: LintReportWithPassingProfiles { report, near_misses: Vec::new() },
                text,
                name,
            },
            &Palette::plain(),
            None,
        )
    }

    #[test]
    fn a_finding_shows_its_line_with_a_caret() {
        let text = shown("{\n  \"id\": \"a\",,\n}\n");
        assert!(text.contains(" --> card.json:2:13\n"), "{text}");
        assert!(text.contains("2 |   \"id\": \"a\",,\n  |             ^\n"), "{text}");
        assert!(
            text.ends_with(
                "card.json is not a valid card under agent-cards/1.0.0: fix 1 defect before you publish it.\n"
            ),
            "{text}"
        );
    }

    #[test]
    fn long_lines_are_cut_and_nothing_is_raw() {
        let card = format!("{{\"a\": \"{}\u{202e}\", \"status\": \"{}\"}}", "x".repeat(500), "y\u{7f}".repeat(100));
        let text = shown(&card);
        assert!(text.lines().all(|line| line.chars().count() < 900), "{text}");
        assert!(!text.contains(['\u{202e}', '\u{7f}']) && text.contains("..."), "{text}");
    }

    #[test]
    fn a_credential_is_not_shown() {
        let text = shown("{\"meta\": {\"api_key\": \"sk_live_4eC39HqLyjWDarjtT1zdp7dc\"}}");
        assert!(text.contains("secret-in-card") && !text.contains("4eC39"), "{text}");
    }
}
