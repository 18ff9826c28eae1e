//! The report for spreadsheets (RFC 4180): a line per name, without counts.

use std::io::{self, Write};

use super::governance_log::Form;
use super::on_chain::Fact;
use super::waiver::{AppliedWaiver, Waiver};
use super::words::slugs;
use super::{Draft, Report, Row, Rows};
use clresolve_core::reason::{Effect, MAX_VALUE_BYTES};
use clresolve_core::text::Foreign;

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

pub(super) fn write(report: &Report, rows: &dyn Rows, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{}\r\n", COLUMNS.join(","))?;
    rows.each(&mut |row| {
        let mut cells =
            cells(report, row).map(|cell| Foreign::new(&cell).at_most(MAX_CELL_CHARACTERS).csv().to_string());
        // The draft is already escaped and begins with a bar. It is read back verbatim.
        let draft = Draft::of(report, row).map_or_else(String::new, |draft| draft.markdown(Form::Published));
        cells[RESOLUTION_ROW] = format!("\"{}\"", draft.replace('"', "\"\""));
        write!(out, "{}\r\n", cells.join(","))
    })?;
    match &report.warning {
        // The last row is a warning, so that an incomplete table does not look complete.
        Some(warning) => write!(out, "{}\r\n", notice(warning)),
        None => Ok(()),
    }
}

fn cells(report: &Report, row: &Row) -> [String; 31] {
    let drift = &row.drift;
    let [txt_https, txt_ipfs, https_ipfs, txt_card, card_manifest, schemas_manifest] =
        drift.agreements().map(|agreement| agreement.as_str().to_owned());
    let digest = |digest: Option<clresolve_core::digest::Digest>| digest.map_or_else(String::new, |d| d.to_string());
    let on_chain = row.known.on_chain.as_ref();
    let read = |fact| on_chain.and_then(|chain| chain.read(fact)).flatten().unwrap_or_default().to_owned();
    let txt: Vec<String> = row.txt.iter().map(ToString::to_string).collect();
    [
        row.line.to_string(),
        row.input.clone(),
        row.normalized.clone().unwrap_or_default(),
        row.state.to_string(),
        row.summary.clone(),
        slugs(&row.codes(Effect::Fail), " "),
        slugs(&row.codes(Effect::Unknown), " "),
        slugs(&row.codes(Effect::Warn), " "),
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
        read(Fact::Holder),
        read(Fact::Expiry),
        row.carried.as_ref().map_or_else(String::new, |carried| carried.members.join(" ")),
        report.generated_at.map_or_else(String::new, |at| at.to_string()),
        waivers(report, row),
    ]
}

/// The waivers for a name, each with its status.
fn waivers(report: &Report, row: &Row) -> String {
    let waivers = report.waivers.of(row).iter().map(|AppliedWaiver { waiver, status, .. }| {
        let Waiver { code, place, until, reason, .. } = waiver;
        let place = place.as_deref().map_or_else(String::new, |place| format!(" at {place}"));
        format!("{code}{place} until {until}, {}: {reason}", status.in_words())
    });
    waivers.collect::<Vec<_>>().join(" / ")
}

/// A row with a text in the column `summary` and nothing else.
fn notice(text: &str) -> String {
    let cell = |column: &str| if column == "summary" { text } else { "" };
    COLUMNS.map(|column| Foreign::new(cell(column)).csv().to_string()).join(",")
}
