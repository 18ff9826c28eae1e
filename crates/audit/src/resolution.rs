//! Drafts of rows for a governance log (`RESOLUTION.md`) about untrusted names.

use std::fmt::Write as _;

use serde::Serialize;

use super::duty::{host_is_at_fault, is_askers_slip};
use super::governance_log::{Action, DRAFT, Form, LogKind, NOTHING};
use super::words::rules;
use super::{MAX_NAME_BYTES, Report, Row};
use clresolve_core::reason::{Code, Effect, Reason};
use clresolve_core::state::State;
use clresolve_core::text::Foreign;

/// A draft of one row of the log, in either form. A person decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Draft {
    /// The day of the block.
    pub date: String,
    /// The name.
    pub subject: String,
    /// The kind; for a report always an incident.
    pub kind: LogKind,
    /// The action; the plain form omits it.
    pub action: Action,
    /// The proposed decision, in Markdown.
    pub decision: String,
    /// The reasons, in Markdown.
    pub reason: String,
}

impl Draft {
    /// The draft for an untrusted name; `None` for other states, for a line that is not a name, and without a block to
    /// date it.
    pub fn of(report: &Report, row: &Row) -> Option<Self> {
        if row.state != State::Untrusted || row.is_unreadable() {
            return None;
        }
        Some(Self {
            date: day(report, row)?,
            subject: row.key(),
            kind: LogKind::Incident,
            action: Action::of([Effect::Fail, Effect::Warn].into_iter().flat_map(|effect| row.codes(effect))),
            decision: decision(row),
            reason: reason(report, row),
        })
    }

    /// The row as a line of Markdown without its line end, not yet approved.
    pub fn markdown(&self, form: Form) -> String {
        let subject = Foreign::new(&self.subject).at_most(2 * MAX_NAME_BYTES).markdown();
        let cell = |text: &str| text.replace('|', "\\|").replace(['\r', '\n'], " ");
        let [date, decision, reason] = [&self.date, &self.decision, &self.reason].map(|text| cell(text));
        match form {
            Form::Published => {
                let (action, mark) = (self.action.as_str(), self.kind.mark());
                format!("| {date} | {subject} | {action} | {mark}{reason} | {decision} | {NOTHING} |")
            }
            Form::Plain => format!("| {date} | {subject} | {} | {decision} | {reason} |", self.kind.as_str()),
        }
    }
}

impl Action {
    /// The action on a listed name whose findings have these codes.
    pub(super) fn of(codes: impl IntoIterator<Item = Code>) -> Self {
        let ends = |code| matches!(code, Code::StatusDeprecated | Code::StatusWithdrawn | Code::StatusRevoked);
        if codes.into_iter().any(ends) { Self::Deprecated } else { Self::Updated }
    }
}

/// The day of the row's block, or of the last one of the report.
fn day(report: &Report, row: &Row) -> Option<String> {
    let at = row.checked_at.as_deref().and_then(|at| at.parse().ok());
    at.or_else(|| report.block_time()).map(super::page::day)
}

fn decision(row: &Row) -> String {
    let failing = row.codes(Effect::Fail);
    if is_askers_slip(&failing) {
        return format!("{DRAFT} take the name off the list, or correct its spelling");
    }
    let mut duties: Vec<String> =
        row.txt.iter().map(|line| format!("set {}", Foreign::new(&line.to_string()).markdown())).collect();
    if host_is_at_fault(row) {
        duties.push("restored the released bytes at the card's URL".to_owned());
    }
    let settled = |reason: &Reason| {
        let by_record = row.txt.iter().any(|line| reason.place.as_ref() == Some(&line.key));
        let by_bytes = matches!(reason.code, Code::ChecksumMismatch | Code::CidMismatch);
        by_record || (by_bytes && !duties.is_empty())
    };
    let mut failures = row.reasons.iter().filter(|reason| reason.effect == Effect::Fail);
    if duties.is_empty() {
        duties.push("corrected what it published".to_owned());
    } else if row.more_reasons > 0 || !failures.all(settled) {
        duties.push("corrected the rest".to_owned());
    }
    format!("{DRAFT} not to be called or paid until its publisher has {}", duties.join(" and "))
}

fn reason(report: &Report, row: &Row) -> String {
    let mut parts: Vec<String> = Vec::new();
    for code in row.codes(Effect::Fail) {
        let having = row.reasons.iter().filter(|reason| reason.code == code && reason.effect == Effect::Fail);
        let rules: Vec<&str> = rules(having).into_iter().filter(|rule| is_plain(rule)).collect();
        if rules.is_empty() {
            parts.push(code.to_string());
        } else {
            parts.push(format!("{code} ({})", rules.join(", ")));
        }
    }
    let mut text = format!("{}; {}", parts.join(", "), Foreign::new(&report.scope.profile.id).markdown());
    if let Some(block) = row.block {
        let _ = write!(text, ", block {block}");
    }
    for profile in &row.near_misses {
        let _ = write!(text, ", trusted under {}", Foreign::new(profile).markdown());
    }
    if let Some(conclusion) = row.conclusion.as_deref().filter(|text| is_plain(text)) {
        let _ = write!(text, ", conclusion {conclusion}");
    }
    text
}

/// Whether a text needs no escaping in Markdown. A stored report may contain any text as a rule or digest.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b':'))
}
