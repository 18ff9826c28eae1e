//! Who must act on a name's findings, and how: the record to set or the command to run.

use super::{AuditReport, AuditRow};
use clresolve_core::reason::{FixerRole, ReasonCode, ReasonEffect};
use clresolve_core::text::{UntrustedText, shell_quote};

/// Maximum length of a duty's line that is shown, in characters: several times any working record or command.
pub(super) const MAX_LINE_CHARACTERS: usize = 4096;

/// Who may have to act, in the order of the report.
pub(super) const ACTORS: [FixerRole; 3] = [FixerRole::Publisher, FixerRole::Operator, FixerRole::Asker];

/// Whom names can wait for: the actors, then [`FixerRole::Nobody`] if only time is needed.
pub(super) const AWAITED: [FixerRole; 4] =
    [FixerRole::Publisher, FixerRole::Operator, FixerRole::Asker, FixerRole::Nobody];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RepairTask {
    /// One plain sentence.
    pub(super) what: String,
    /// The record to set or the command to run, verbatim.
    pub(super) line: Option<String>,
}

impl RepairTask {
    fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), line: None }
    }

    fn with_verbatim_line(self, line: String) -> Self {
        Self { line: Some(line), ..self }
    }
}

/// Whether an actor must act before the name is trusted, or before its sources agree.
pub(super) fn is_actor_needed(actor: FixerRole, row: &AuditRow) -> bool {
    let mut decisive = row.reasons.iter().filter(|reason| reason.effect != ReasonEffect::Warn).peekable();
    if decisive.peek().is_none() {
        // The sources differ although nothing fails: the publisher owns their content.
        return actor == FixerRole::Publisher && row.has_details();
    }
    decisive.any(|reason| reason.code.entry().fixer == actor)
}

/// Whether only the asker can fix the failures, such as a typo in the list, so that they are not an incident.
pub(super) fn only_asker_can_fix(failing: &[ReasonCode]) -> bool {
    failing.iter().all(|code| code.entry().fixer == FixerRole::Asker)
}

/// Whether the host serves bytes other than those that the CID proves.
pub(super) fn host_is_at_fault(row: &AuditRow) -> bool {
    row.drift.proven.is_some() && row.codes(ReasonEffect::Fail).contains(&ReasonCode::CidMismatch)
}

/// What an actor must do about a row.
pub(super) fn repair_tasks(actor: FixerRole, report: &AuditReport, row: &AuditRow) -> Vec<RepairTask> {
    match actor {
        FixerRole::Publisher => publisher_tasks(report, row),
        FixerRole::Operator => operator_tasks(report, row),
        FixerRole::Asker => vec![asker_task(row)],
        FixerRole::Nobody => vec![waiting_task(report, row)],
    }
}

fn asker_task(row: &AuditRow) -> RepairTask {
    match (row.registry_finding_code(), row.registry_only_entry()) {
        (Some(ReasonCode::RegistryUnreachable), _) => {
            RepairTask::new("Audit again once this registry responds, or give another location of it with --registry:")
                .with_verbatim_line(row.input.clone())
        }
        (Some(_), _) => RepairTask::new("Have this registry corrected, or name another one with --registry:")
            .with_verbatim_line(row.input.clone()),
        (None, Some(entry)) => {
            RepairTask::new(format!("Take entry {entry} out of the registry, or correct its spelling."))
        }
        (None, None) => RepairTask::new(format!("Take line {} off the list, or correct its spelling.", row.line)),
    }
}

fn waiting_task(report: &AuditReport, row: &AuditRow) -> RepairTask {
    let duty = RepairTask::new("Wait until the newer block is final, some 15 minutes, then ask again:");
    match row_command_line(report, row, "verify") {
        Some(line) => duty.with_verbatim_line(line),
        None => duty,
    }
}

fn publisher_tasks(report: &AuditReport, row: &AuditRow) -> Vec<RepairTask> {
    let mut duties: Vec<RepairTask> = row
        .txt
        .iter()
        .map(|line| RepairTask::new("Set this text record:").with_verbatim_line(line.to_string()))
        .collect();
    if host_is_at_fault(row) {
        duties.push(RepairTask::new("Restore the released bytes at the card's URL."));
    }
    if row.codes(ReasonEffect::Unknown).contains(&ReasonCode::CidUnproven) {
        duties.push(RepairTask::new("Pin the content of cl.cid.agentcard where public gateways find it."));
    }
    let last = if duties.is_empty() { "Correct what the findings name, then check:" } else { "Then check:" };
    duties.extend(row_command_line(report, row, "verify").map(|line| RepairTask::new(last).with_verbatim_line(line)));
    if duties.is_empty() {
        duties.push(RepairTask::new("Correct what the findings name."));
    }
    duties
}

fn operator_tasks(report: &AuditReport, row: &AuditRow) -> Vec<RepairTask> {
    let duty = RepairTask::new("See which endpoint or gateway failed, and which rule decided:");
    vec![match row_command_line(report, row, "trace") {
        Some(line) => duty.with_verbatim_line(line),
        None => duty,
    }]
}

/// The command that checks a row's name on the report's network and under its rules; `None` if one of its characters
/// would be escaped in output.
fn row_command_line(report: &AuditReport, row: &AuditRow, command: &str) -> Option<String> {
    let name = row.normalized.as_deref()?;
    let scope = &report.scope;
    let mut words = vec!["clresolve", command];
    words.extend(report.flags.iter().map(String::as_str));
    words.extend(["--profile", &scope.profile.id, "--depth", scope.depth.as_str()]);
    words.extend(name.starts_with('-').then_some("--"));
    words.push(name);
    let line = words.into_iter().map(shell_quote).collect::<Vec<_>>().join(" ");
    let shown = UntrustedText::new(&line).with_limit(MAX_LINE_CHARACTERS).to_string();
    (shown == line).then_some(line)
}
