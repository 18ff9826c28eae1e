//! The report for spreadsheets (RFC 4180): a line per name, without counts.

use std::io::{self, Write};

use super::governance_log::GovernanceTableLayout;
use super::on_chain::OnChainFactKind;
use super::waiver::{AppliedWaiver, Waiver};
use super::words::joined_slugs;
use super::{AuditReport, AuditRow, AuditRowSource, LogRowDraft};
use clresolve_core::reason::{MAX_VALUE_BYTES, ReasonEffect};
use clresolve_core::text::UntrustedText;

const COLUMNS: [&str; 31] = [
    "line",
    "input",
    "name",
    "state",
    "summary",
    "fail",
    "unknown",
    "warn",
    "txt_https",
    "txt_ipfs",
    "https_ipfs",
    "txt_card",
    "card_manifest",
    "schemas_manifest",
    "claimed",
    "served",
    "proven",
    "txt_to_set",
    "near_misses",
    "profile",
    "block",
    "checked_at",
    "conclusion",
    "resolution_row",
    "registry_entry",
    "unchanged_since",
    "owner",
    "expiry",
    "carried",
    "generated_at",
    "waivers",
];

/// Index of the column with the draft of a row.
const RESOLUTION_ROW: usize = 23;

/// Maximum length of a cell, in characters: a cell with some dozens of codes fits.
const MAX_CELL_CHARACTERS: usize = 4 * MAX_VALUE_BYTES;

pub(super) fn write_csv_report(report: &AuditReport, rows: &dyn AuditRowSource, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{}\r\n", COLUMNS.join(","))?;
    rows.for_each_row(&mut |row| {
        let mut cells = row_cells(report, row)
            .map(|cell| UntrustedText::new(&cell).with_limit(MAX_CELL_CHARACTERS).to_csv_cell().to_string());
        // The draft is already escaped and begins with a bar. It is read back verbatim.
        let draft = LogRowDraft::from_row(report, row)
            .map_or_else(String::new, |draft| draft.markdown(GovernanceTableLayout::Published));
        cells[RESOLUTION_ROW] = format!("\"{}\"", draft.replace('"', "\"\""));
        write!(out, "{}\r\n", cells.join(","))
    })?;
    match &report.warning {
        // The last row is a warning, so that an incomplete table does not look complete.
        Some(warning) => write!(out, "{}\r\n", csv_notice_row(warning)),
        None => Ok(()),
    }
}

fn row_cells(report: &AuditReport, row: &AuditRow) -> [String; 31] {
    let drift = &row.drift;
    let [txt_https, txt_ipfs, https_ipfs, txt_card, card_manifest, schemas_manifest] =
        drift.agreements().map(|agreement| agreement.as_str().to_owned());
    let digest = |digest: Option<clresolve_core::digest::Digest>| digest.map_or_else(String::new, |d| d.to_string());
    let on_chain = row.known.on_chain.as_ref();
    let read = |fact| on_chain.and_then(|chain| chain.fact_value(fact)).flatten().unwrap_or_default().to_owned();
    let txt: Vec<String> = row.txt.iter().map(ToString::to_string).collect();
    [
        row.line.to_string(),
        row.input.clone(),
        row.normalized.clone().unwrap_or_default(),
        row.state.to_string(),
        row.summary.clone(),
        joined_slugs(&row.codes(ReasonEffect::Fail), " "),
        joined_slugs(&row.codes(ReasonEffect::Unknown), " "),
        joined_slugs(&row.codes(ReasonEffect::Warn), " "),
        txt_https,
        txt_ipfs,
        https_ipfs,
        txt_card,
        card_manifest,
        schemas_manifest,
        digest(drift.claimed),
        digest(drift.served),
        digest(drift.proven),
        txt.join(" "),
        row.near_misses.join(" "),
        report.scope.profile.id.clone(),
        row.block.map_or_else(String::new, |block| block.to_string()),
        row.checked_at.clone().unwrap_or_default(),
        row.conclusion.clone().unwrap_or_default(),
        String::new(),
        row.registry.and_then(|listing| listing.entry).map_or_else(String::new, |entry| entry.to_string()),
        row.unchanged_since.clone().unwrap_or_default(),
        read(OnChainFactKind::Holder),
        read(OnChainFactKind::Expiry),
        row.carried.as_ref().map_or_else(String::new, |carried| carried.members.join(" ")),
        report.generated_at.map_or_else(String::new, |at| at.to_string()),
        waivers_text(report, row),
    ]
}

/// The waivers for a name, each with its status.
fn waivers_text(report: &AuditReport, row: &AuditRow) -> String {
    let waivers = report.waivers.for_row(row).iter().map(|AppliedWaiver { waiver, status, .. }| {
        let Waiver { code, place, until, reason, .. } = waiver;
        let place = place.as_deref().map_or_else(String::new, |place| format!(" at {place}"));
        format!("{code}{place} until {until}, {}: {reason}", status.in_words())
    });
    waivers.collect::<Vec<_>>().join(" / ")
}

/// A row with a text in the column `summary` and nothing else.
fn csv_notice_row(text: &str) -> String {
    let cell = |column: &str| if column == "summary" { text } else { "" };
    COLUMNS.map(|column| UntrustedText::new(cell(column)).to_csv_cell().to_string()).join(",")
}
