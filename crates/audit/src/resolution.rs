//! Drafts of rows for a governance log (`RESOLUTION.md`) about untrusted names.

use std::fmt::Write as _;

use serde::Serialize;

use super::duty::{host_is_at_fault, only_asker_can_fix};
use super::governance_log::{DRAFT, GovernanceAction, GovernanceEventKind, GovernanceTableLayout, NOTHING};
use super::words::distinct_requirements;
use super::{AuditReport, AuditRow, MAX_NAME_BYTES};
use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect};
use clresolve_core::state::TrustState;
use clresolve_core::text::UntrustedText;

/// A draft of one row of the log, in either form. A person decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogRowDraft {
    /// The day of the block.
    pub date: String,
    /// The name.
    pub subject: String,
    /// The kind; for a report always an incident.
    pub kind: GovernanceEventKind,
    /// The action; the plain form omits it.
    pub action: GovernanceAction,
    /// The proposed decision, in Markdown.
    pub decision: String,
    /// The reasons, in Markdown.
    pub reason: String,
}

impl LogRowDraft {
    /// The draft for an untrusted name; `None` for other states, for a line that is not a name, and without a block to
    /// date it.
    pub fn from_row(report: &AuditReport, row: &AuditRow) -> Option<Self> {
        if row.state != TrustState::Untrusted || row.is_unreadable() {
            return None;
        }
        Some(Self {
            date: row_block_day(report, row)?,
            subject: row.key(),
            kind: GovernanceEventKind::Incident,
            action: GovernanceAction::from_codes(
                [ReasonEffect::Fail, ReasonEffect::Warn].into_iter().flat_map(|effect| row.codes(effect)),
            ),
            decision: decision_text(row),
            reason: reason_text(report, row),
        })
    }

    /// The row as a line of Markdown without its line end, not yet approved.
    pub fn markdown(&self, form: GovernanceTableLayout) -> String {
        let subject = UntrustedText::new(&self.subject).with_limit(2 * MAX_NAME_BYTES).to_markdown_code_span();
        let cell = |text: &str| text.replace('|', "\\|").replace(['\r', '\n'], " ");
        let [date, decision, reason] = [&self.date, &self.decision, &self.reason].map(|text| cell(text));
        match form {
            GovernanceTableLayout::Published => {
                let (action, mark) = (self.action.as_str(), self.kind.reason_prefix());
                format!("| {date} | {subject} | {action} | {mark}{reason} | {decision} | {NOTHING} |")
            }
            GovernanceTableLayout::Plain => {
                format!("| {date} | {subject} | {} | {decision} | {reason} |", self.kind.as_str())
            }
        }
    }
}

impl GovernanceAction {
    /// The action on a listed name whose findings have these codes.
    pub(super) fn from_codes(codes: impl IntoIterator<Item = ReasonCode>) -> Self {
        let ends = |code| {
            matches!(code, ReasonCode::StatusDeprecated | ReasonCode::StatusWithdrawn | ReasonCode::StatusRevoked)
        };
        if codes.into_iter().any(ends) { Self::Deprecated } else { Self::Updated }
    }
}

/// The day of the row's block, or of the last one of the report.
fn row_block_day(report: &AuditReport, row: &AuditRow) -> Option<String> {
    let at = row.checked_at.as_deref().and_then(|at| at.parse().ok());
    at.or_else(|| report.last_block_time()).map(super::page::utc_day)
}

fn decision_text(row: &AuditRow) -> String {
    let failing = row.codes(ReasonEffect::Fail);
    if only_asker_can_fix(&failing) {
        return format!("{DRAFT} take the name off the list, or correct its spelling");
    }
    let mut duties: Vec<String> = row
        .txt
        .iter()
        .map(|line| format!("set {}", UntrustedText::new(&line.to_string()).to_markdown_code_span()))
        .collect();
    if host_is_at_fault(row) {
        duties.push("restored the released bytes at the card's URL".to_owned());
    }
    let settled = |reason: &Reason| {
        let by_record = row.txt.iter().any(|line| reason.place.as_ref() == Some(&line.key));
        let by_bytes = matches!(reason.code, ReasonCode::ChecksumMismatch | ReasonCode::CidMismatch);
        by_record || (by_bytes && !duties.is_empty())
    };
    let mut failures = row.reasons.iter().filter(|reason| reason.effect == ReasonEffect::Fail);
    if duties.is_empty() {
        duties.push("corrected what it published".to_owned());
    } else if row.more_reasons > 0 || !failures.all(settled) {
        duties.push("corrected the rest".to_owned());
    }
    format!("{DRAFT} not to be called or paid until its publisher has {}", duties.join(" and "))
}

fn reason_text(report: &AuditReport, row: &AuditRow) -> String {
    let mut parts: Vec<String> = Vec::new();
    for code in row.codes(ReasonEffect::Fail) {
        let having = row.reasons.iter().filter(|reason| reason.code == code && reason.effect == ReasonEffect::Fail);
        let rules: Vec<&str> =
            distinct_requirements(having).into_iter().filter(|rule| needs_no_escaping(rule)).collect();
        if rules.is_empty() {
            parts.push(code.to_string());
        } else {
            parts.push(format!("{code} ({})", rules.join(", ")));
        }
    }
    let mut text =
        format!("{}; {}", parts.join(", "), UntrustedText::new(&report.scope.profile.id).to_markdown_code_span());
    if let Some(block) = row.block {
        let _ = write!(text, ", block {block}");
    }
    for profile in &row.near_misses {
        let _ = write!(text, ", trusted under {}", UntrustedText::new(profile).to_markdown_code_span());
    }
    if let Some(conclusion) = row.conclusion.as_deref().filter(|text| needs_no_escaping(text)) {
        let _ = write!(text, ", conclusion {conclusion}");
    }
    text
}

/// Whether a text needs no escaping in Markdown. A stored report may contain any text as a rule or digest.
fn needs_no_escaping(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b':'))
}
