//! The report in Markdown (GFM), short enough for an issue: a summary, then folded details. All foreign text is in
//! code spans.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::cause::DefectCategory;
use super::duty::{AWAITED, is_actor_needed, repair_tasks};
use super::governance_log::GovernanceTableLayout;
use super::overview::AuditOverview;
use super::owners::OnChainOwner;
use super::page::{
    BulletPoint, TextRun, audit_subject, comma_separated_runs, finding_points, headline, rules_network_and_time,
    same_findings_note, source_digests_point, truncated_names_text,
};
use super::row::AS_OF_BEFORE;
use super::waiver::{AppliedWaiver, Waiver};
use super::words::{effect_word, joined_slugs, role_in_words, singular_duty_phrase};
use super::{AuditReport, AuditRow, AuditRowSource, CardSourceComparison, LogRowDraft, ReasonSummary, opening, page};
use clresolve_core::reason::{FixerRole, ReasonEffect};
use clresolve_core::text::UntrustedText;

/// Maximum length of a GitHub issue, in characters. The report counts bytes, which are at least as many.
pub(super) const MAX_ISSUE_BYTES: usize = 65_536;

/// Maximum length of each section, in bytes. The sum leaves room in [`MAX_ISSUE_BYTES`] for headings and notes on
/// omissions.
const SUMMARY: usize = 6_000;
const CHANGES: usize = 7_000;
const REGISTRY: usize = 4_000;
const REASONS: usize = 9_000;
const LAYERS: usize = 1_500;
const FINDINGS: usize = 11_500;
const NAMES: usize = 11_000;
const RECORDS: usize = 4_000;
const DRAFTS: usize = 6_000;
const WAIVERS: usize = 3_000;
const _: () = assert!(
    SUMMARY + CHANGES + REGISTRY + REASONS + LAYERS + FINDINGS + NAMES + RECORDS + DRAFTS + WAIVERS + 2_000
        < MAX_ISSUE_BYTES
);

pub(super) fn write_markdown_report(
    report: &AuditReport,
    rows: &dyn AuditRowSource,
    out: &mut dyn Write,
) -> io::Result<()> {
    let overview = AuditOverview::from_rows(report, rows)?;
    writeln!(out, "# Audit of {}", report_title(report))?;
    summary_section(report, &overview).write(out)?;
    changes_section(report).map_or(Ok(()), |changes| changes.write_collapsed("Since the previous report", out))?;
    waivers_section(report).map_or(Ok(()), |waivers| waivers.write_collapsed("Waivers", out))?;
    registry_section(report, rows)?.map_or(Ok(()), |found| found.write_collapsed("Registry", out))?;
    layers_section(report).map_or(Ok(()), |found| found.write_collapsed("Schema layers", out))?;
    reasons_section(report).write_collapsed("Reasons", out)?;
    findings_section(report, rows)?.write_collapsed("Findings", out)?;
    names_section(rows)?.write_collapsed("Names", out)?;
    records_section(rows)?.write_collapsed("Text records to set", out)?;
    drafts_section(report, rows)?.write_collapsed("Draft rows for RESOLUTION.md", out)
}

/// The subject, rules, place and time of the audit.
fn report_title(report: &AuditReport) -> String {
    let circumstances = rules_network_and_time(report);
    let parts = std::iter::once(audit_subject(report)).chain(circumstances);
    parts.map(|part| line_text(&part)).collect::<Vec<_>>().join(", ")
}

/// A block about one name takes at most this fraction of a section, so that no publisher crowds out the others.
const PARTS: usize = 4;

/// Space reserved for the names of omitted blocks, in bytes.
const NAMED: usize = 300;

/// A section: blocks up to a maximum length in bytes, and the omitted ones.
struct SizeLimitedSection {
    text: String,
    share: usize,
    /// Written before the first block.
    head: String,
    omitted: u64,
    /// The first omitted names.
    named: Vec<String>,
}

impl SizeLimitedSection {
    const fn new(share: usize, head: String) -> Self {
        Self { text: String::new(), share, head, omitted: 0, named: Vec::new() }
    }

    /// Adds a block without foreign text.
    fn push(&mut self, block: &str) {
        if self.remaining_bytes() < block.len() {
            self.omitted += 1;
        } else {
            self.text.push_str(block);
        }
    }

    /// Adds the block about `name` (Markdown). If it does not fit, only the name is recorded, and later blocks may
    /// still fit.
    fn push_name_block(&mut self, name: &str, block: &str) {
        if block.len() <= self.remaining_bytes().min(self.share / PARTS) {
            self.text.push_str(block);
            return;
        }
        self.omitted += 1;
        let named: usize = self.named.iter().map(|name| name.len() + 2).sum();
        if named + name.len() <= NAMED {
            self.named.push(name.to_owned());
        }
    }

    fn remaining_bytes(&self) -> usize {
        self.share.saturating_sub(NAMED + self.head.len() + self.text.len())
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        match (self.text.is_empty(), self.omitted) {
            (true, 0) => writeln!(out, "\nNone.")?,
            (true, _) => {}
            (false, _) => write!(out, "{}{}", self.head, self.text)?,
        }
        if self.omitted > 0 {
            let such =
                if self.named.is_empty() { String::new() } else { format!(", such as {}", self.named.join(", ")) };
            let omitted = self.omitted;
            writeln!(out, "\n{omitted} more are omitted here{such}. The forms `html`, `json` and `csv` have more.")?;
        }
        Ok(())
    }

    fn write_collapsed(&self, title: &str, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "\n<details><summary>{title}</summary>")?;
        self.write(out)?;
        writeln!(out, "\n</details>")
    }
}

fn summary_section(report: &AuditReport, overview: &AuditOverview) -> SizeLimitedSection {
    let mut section = SizeLimitedSection::new(SUMMARY, String::new());
    section.push(&format!("\n**{}.**\n\n", headline(report, overview)));
    for opening in opening::summary_lines(report, overview) {
        section.push(&format!("- **{}**{}\n", opening.label, line_text(&opening.pieces)));
    }
    if let Some(warning) = &report.warning {
        section.push(&format!("\n**Incomplete.** {}\n", UntrustedText::new(warning).to_markdown_code_span()));
    }
    if let Some(counts) = report.registry_sentence() {
        section.push(&format!("\n{counts}\n"));
    }
    if let Some(summary) = report.layers_sentence() {
        section.push(&format!("\n{summary}\n"));
    }
    section.push(&state_counts_text(report));
    section.push(&actors_text(overview));
    section.push(&owners_text(overview));
    let mut facts = "\n| | |\n|---|---|\n".to_owned();
    for (what, value) in report.labelled_facts() {
        let _ = writeln!(facts, "| {what} | {} |", UntrustedText::new(&value).to_markdown_code_span());
    }
    section.push(&facts);
    section
}

/// The states now and in the previous report.
fn state_counts_text(report: &AuditReport) -> String {
    let counts = &report.counts;
    let before = report.before.map(|before| before.state_counts());
    let (head, rule) = if before.is_some() { (" before |", "--:|") } else { ("", "") };
    let mut text = format!("\n| | count |{head}\n|---|--:|{rule}\n");
    let cell = |names: u64| before.map_or_else(String::new, |_| format!(" {names} |"));
    let [trusted, untrusted, indeterminate] = before.unwrap_or_default();
    let rows = [
        ("names", counts.names, cell(trusted.saturating_add(untrusted).saturating_add(indeterminate))),
        ("trusted", counts.trusted, cell(trusted)),
        ("untrusted", counts.untrusted, cell(untrusted)),
        ("indeterminate", counts.indeterminate, cell(indeterminate)),
    ];
    for (what, names, before) in rows {
        let _ = writeln!(text, "| {what} | {names} |{before}");
    }
    text
}

/// Who must act, on how many names, and the main causes.
fn actors_text(overview: &AuditOverview) -> String {
    let mut text = "\n| must act | names | because of |\n|---|--:|---|\n".to_owned();
    for (actor, due) in AWAITED.into_iter().zip(overview.due) {
        let why = causes_text(&overview.causes_of(actor));
        let who = match actor {
            FixerRole::Nobody if due == 0 => continue,
            FixerRole::Nobody => "**nobody**: only time is needed".to_owned(),
            _ => format!("**{}**, who {}", role_in_words(actor), singular_duty_phrase(actor)),
        };
        let _ = writeln!(text, "| {who} | {due} | {why} |");
    }
    if overview.shared > 0 {
        let _ = writeln!(text, "\nNames that need several of them are counted for each: {}.", overview.shared);
    }
    text
}

/// The owners of the names on which publishers must act.
fn owners_text(overview: &AuditOverview) -> String {
    const MOST: usize = 5;
    let most = overview.owners.sorted_by_name_count();
    if most.is_empty() {
        return String::new();
    }
    let mut text = "\n| publishers by owner | names | because of |\n|---|--:|---|\n".to_owned();
    for (owner, owned) in most.iter().take(MOST) {
        let _ = writeln!(text, "| {} | {} | {} |", owner_text(owner), owned.names, causes_text(&owned.causes()));
    }
    let more = most.len().saturating_sub(MOST);
    if more > 0 {
        let _ = writeln!(text, "\n{more} more owners have fewer names each.");
    }
    if overview.owners.carried > 0 {
        let names = page::name_count_text(overview.owners.carried);
        let _ = writeln!(text, "\nThe owner of {names} is {AS_OF_BEFORE}: it could not be read now.");
    }
    text
}

/// Causes with their numbers of names. Rare ones are counted together.
fn causes_text(causes: &[(DefectCategory, u64)]) -> String {
    const MOST: usize = 4;
    let mut why: Vec<_> =
        causes.iter().take(MOST).map(|(cause, names)| format!("{names}: {}", cause.in_words())).collect();
    let others: u64 = causes.iter().skip(MOST).map(|(_, names)| names).sum();
    if others > 0 {
        why.push(format!("{others}: other causes"));
    }
    why.join("; ")
}

fn owner_text(owner: &OnChainOwner) -> String {
    match owner {
        OnChainOwner::Account(account) => code_text(account),
        OnChainOwner::Nobody | OnChainOwner::Unread => owner.in_words().to_owned(),
    }
}

fn changes_section(report: &AuditReport) -> Option<SizeLimitedSection> {
    let difference = report.since.as_ref()?;
    let mut head = String::new();
    for warning in difference.warnings() {
        let _ = writeln!(head, "\n{warning}");
    }
    let mut section = SizeLimitedSection::new(CHANGES, head + &table_head(&["name", "change", "before", "after"]));
    for change in &difference.changes {
        let value = |value: &Option<String>| value.as_deref().map_or_else(String::new, code_text);
        let (before, after) = (value(&change.before), value(&change.after));
        let name = code_text(&change.name);
        section.push_name_block(&name, &format!("| {name} | {} | {before} | {after} |\n", change.kind));
    }
    Some(section)
}

/// The table of the waivers, with and without effect. `None` if the audit has no waivers.
fn waivers_section(report: &AuditReport) -> Option<SizeLimitedSection> {
    let waivers = report.waivers.as_slice();
    if waivers.is_empty() {
        return None;
    }
    let heads = ["name", "code", "where", "observed value", "until", "status", "reason"];
    let mut section = SizeLimitedSection::new(WAIVERS, table_head(&heads));
    for AppliedWaiver { waiver, status, .. } in waivers {
        let Waiver { name, code: slug, place, observed, reason, until } = waiver;
        let shown = |text: &Option<String>| text.as_deref().map_or_else(String::new, code_text);
        let (name, place, observed, reason) =
            (code_text(name.as_str()), shown(place), shown(observed), code_text(reason));
        let status = status.in_words();
        let line = format!("| {name} | {slug} | {place} | {observed} | {until} | {status} | {reason} |\n");
        section.push_name_block(&name, &line);
    }
    Some(section)
}

/// The names on which registry and chain disagree.
fn registry_section(report: &AuditReport, rows: &dyn AuditRowSource) -> io::Result<Option<SizeLimitedSection>> {
    if report.scope.registry.is_none() {
        return Ok(None);
    }
    let mut section = SizeLimitedSection::new(REGISTRY, table_head(&["name", "is"]));
    page::for_each_registry_mismatch(rows, &mut |finding, row| {
        let name = code_text(row.name());
        section.push_name_block(&name, &format!("| {name} | {} |\n", finding.in_words()));
        Ok(())
    })?;
    Ok(Some(section))
}

/// The findings on the published schemas of the layers.
fn layers_section(report: &AuditReport) -> Option<SizeLimitedSection> {
    report.schema_layers.as_ref()?;
    let mut section = SizeLimitedSection::new(LAYERS, table_head(&["schema", "state", "because of"]));
    for schema in report.schemas_with_findings() {
        let (key, codes) = (code_text(&schema.key()), joined_slugs(&schema.codes(), ", "));
        section.push_name_block(&key, &format!("| {key} | {} | {codes} |\n", schema.state_in_words()));
    }
    Some(section)
}

fn reasons_section(report: &AuditReport) -> SizeLimitedSection {
    let heads = ["code", "names", "effect", "rule", "fixed by", "meaning", "examples"];
    let mut section = SizeLimitedSection::new(REASONS, table_head(&heads));
    report
        .counts
        .sorted_summaries()
        .into_iter()
        .for_each(|group| section.push_name_block(group.code.slug(), &reason_text(group)));
    section
}

fn reason_text(group: &ReasonSummary) -> String {
    let entry = group.code.entry();
    format!(
        "| **{}** | {} | {} | {} | {} | {} | {} |\n",
        group.code,
        group.names,
        effect_word(group.effect),
        entry.requirement,
        role_in_words(group.code.entry().fixer),
        entry.title,
        line_text(&truncated_names_text(&group.examples, group.names))
    )
}

/// The findings of each name. Names with the same findings share them.
fn findings_section(report: &AuditReport, rows: &dyn AuditRowSource) -> io::Result<SizeLimitedSection> {
    let mut section = SizeLimitedSection::new(FINDINGS, String::new());
    rows.for_each_row(&mut |row| {
        let alike = report.counts.same_findings(row);
        if row.has_details() && alike.is_none_or(|alike| alike.line == row.line) {
            section.push_name_block(&code_text(row.name()), &name_findings_text(report, row));
        }
        Ok(())
    })?;
    Ok(section)
}

fn name_findings_text(report: &AuditReport, row: &AuditRow) -> String {
    let alike = report.counts.same_findings(row);
    let others = alike.map_or(0, |alike| alike.names - 1);
    let more = if others > 0 { format!(" and {others} more") } else { String::new() };
    let mut text = format!("\n### {}{more}: {}\n", code_text(row.name()), row.state);
    if let Some(alike) = alike.filter(|_| others > 0) {
        let _ = writeln!(text, "\n{}", line_text(&same_findings_note(&alike.others, others)));
    }
    if row.normalized.as_deref() != Some(&row.input) {
        let _ = writeln!(text, "\nTyped as {} in {}.", code_text(&row.input), row.place_in_words());
    }
    text.push('\n');
    finding_points(row, &|_| true)
        .iter()
        .chain(&source_digests_point(&row.drift))
        .for_each(|point| text.push_str(&bullet_text(point)));
    if row.more_reasons > 0 {
        let _ = writeln!(text, "- and {} more", row.more_reasons);
    }
    for actor in AWAITED.into_iter().filter(|actor| is_actor_needed(*actor, row)) {
        for duty in repair_tasks(actor, report, row) {
            let run = duty.line.as_deref().map_or_else(String::new, |line| format!(" {}", code_text(line)));
            let _ = writeln!(text, "- **{}:** {}{run}", role_in_words(actor), duty.what);
        }
    }
    if !row.near_misses.is_empty() {
        let _ = writeln!(text, "\nTrusted by the rules {}.", line_text(&comma_separated_runs(&row.near_misses)));
    }
    text
}

fn bullet_text(point: &BulletPoint<'_>) -> String {
    let mut text = format!("- {}\n", line_text(&point.head));
    for below in &point.lines {
        let _ = writeln!(text, "  - {}", line_text(below));
    }
    text
}

fn names_section(rows: &dyn AuditRowSource) -> io::Result<SizeLimitedSection> {
    let legend = "\n✓ the sources agree, ✗ they differ, – one of them was not requested or did not respond.\n";
    let marks = ":-:|".repeat(CardSourceComparison::PAIRS.len());
    let head = format!(
        "{legend}\n| name | state | {} | codes |\n|---|---|{marks}---|\n",
        CardSourceComparison::PAIRS.join(" | ")
    );
    let mut section = SizeLimitedSection::new(NAMES, head);
    rows.for_each_row(&mut |row| {
        let marks: String =
            row.drift.agreements().iter().map(|agreement| format!(" {} |", agreement.symbol())).collect();
        let codes = [ReasonEffect::Fail, ReasonEffect::Unknown].map(|effect| row.codes(effect)).concat();
        let name = code_text(row.name());
        section
            .push_name_block(&name, &format!("| {name} | {} |{marks} {} |\n", row.state, joined_slugs(&codes, ", ")));
        Ok(())
    })?;
    Ok(section)
}

fn records_section(rows: &dyn AuditRowSource) -> io::Result<SizeLimitedSection> {
    let why =
        "\nThe card under the name's CID proves these values. Values that only a host served are never proposed.\n";
    let mut section = SizeLimitedSection::new(RECORDS, why.to_owned() + &table_head(&["name", "record", "value"]));
    rows.for_each_row(&mut |row| {
        for record in &row.txt {
            let name = code_text(row.name());
            section.push_name_block(
                &name,
                &format!("| {name} | {} | {} |\n", code_text(&record.key), code_text(&record.value)),
            );
        }
        Ok(())
    })?;
    Ok(section)
}

fn drafts_section(report: &AuditReport, rows: &dyn AuditRowSource) -> io::Result<SizeLimitedSection> {
    let mut section =
        SizeLimitedSection::new(DRAFTS, format!("\n{}", GovernanceTableLayout::Published.table_head_markdown()));
    rows.for_each_row(&mut |row| {
        if let Some(draft) = LogRowDraft::from_row(report, row) {
            section.push_name_block(
                &code_text(row.name()),
                &format!("{}\n", draft.markdown(GovernanceTableLayout::Published)),
            );
        }
        Ok(())
    })?;
    Ok(section)
}

fn table_head(heads: &[&str]) -> String {
    format!("\n| {} |\n{}|\n", heads.join(" | "), "|---".repeat(heads.len()))
}

fn line_text(pieces: &[TextRun<'_>]) -> String {
    pieces.iter().map(markdown_run).collect()
}

fn markdown_run(piece: &TextRun<'_>) -> String {
    match piece {
        TextRun::Plain(text) => text.to_string(),
        TextRun::Foreign(text) => code_text(text),
        TextRun::Code(code, _) => format!("**{code}**"),
    }
}

/// Foreign text as code.
fn code_text(text: &str) -> String {
    UntrustedText::new(text).to_markdown_code_span().to_string()
}
