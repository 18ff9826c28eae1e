//! Who must act on a name's findings, and how: the record to set or the command to run.

use super::{Report, Row};
use clresolve_core::reason::{Code, Effect, Fixer};
use clresolve_core::text::{Foreign, in_shell};

/// Maximum length of a duty's line that is shown, in characters: several times any working record or command.
pub(super) const MAX_LINE_CHARACTERS: usize = 4096;

/// Who may have to act, in the order of the report.
pub(super) const ACTORS: [Fixer; 3] = [Fixer::Publisher, Fixer::Operator, Fixer::Asker];

/// Whom names can wait for: the actors, then [`Fixer::Nobody`] if only time is needed.
pub(super) const AWAITED: [Fixer; 4] = [Fixer::Publisher, Fixer::Operator, Fixer::Asker, Fixer::Nobody];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Duty {
    /// One plain sentence.
    pub(super) what: String,
    /// The record to set or the command to run, verbatim.
    pub(super) line: Option<String>,
}

impl Duty {
    fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), line: None }
    }

    fn with(self, line: String) -> Self {
        Self { line: Some(line), ..self }
    }
}

/// Whether an actor must act before the name is trusted, or before its sources agree.
pub(super) fn is_due(actor: Fixer, row: &Row) -> bool {
    let mut decisive = row.reasons.iter().filter(|reason| reason.effect != Effect::Warn).peekable();
    if decisive.peek().is_none() {
        // The sources differ although nothing fails: the publisher owns their content.
        return actor == Fixer::Publisher && row.has_findings();
    }
    decisive.any(|reason| reason.code.entry().fixer == actor)
}

/// Whether only the asker can fix the failures, such as a typo in the list, so that they are not an incident.
pub(super) fn is_askers_slip(failing: &[Code]) -> bool {
    failing.iter().all(|code| code.entry().fixer == Fixer::Asker)
}

/// Whether the host serves bytes other than those that the CID proves.
pub(super) fn host_is_at_fault(row: &Row) -> bool {
    row.drift.proven.is_some() && row.codes(Effect::Fail).contains(&Code::CidMismatch)
}

/// What an actor must do about a row.
pub(super) fn duties(actor: Fixer, report: &Report, row: &Row) -> Vec<Duty> {
    match actor {
        Fixer::Publisher => of_publisher(report, row),
        Fixer::Operator => of_operator(report, row),
        Fixer::Asker => vec![of_asker(row)],
        Fixer::Nobody => vec![of_nobody(report, row)],
    }
}

fn of_asker(row: &Row) -> Duty {
    match (row.registry_fault(), row.entry()) {
        (Some(Code::RegistryUnreachable), _) => {
            Duty::new("Audit again once this registry responds, or give another location of it with --registry:")
                .with(row.input.clone())
        }
        (Some(_), _) => {
            Duty::new("Have this registry corrected, or name another one with --registry:").with(row.input.clone())
        }
        (None, Some(entry)) => Duty::new(format!("Take entry {entry} out of the registry, or correct its spelling.")),
        (None, None) => Duty::new(format!("Take line {} off the list, or correct its spelling.", row.line)),
    }
}

fn of_nobody(report: &Report, row: &Row) -> Duty {
    let duty = Duty::new("Wait until the newer block is final, some 15 minutes, then ask again:");
    match command(report, row, "verify") {
        Some(line) => duty.with(line),
        None => duty,
    }
}

fn of_publisher(report: &Report, row: &Row) -> Vec<Duty> {
    let mut duties: Vec<Duty> =
        row.txt.iter().map(|line| Duty::new("Set this text record:").with(line.to_string())).collect();
    if host_is_at_fault(row) {
        duties.push(Duty::new("Restore the released bytes at the card's URL."));
    }
    if row.codes(Effect::Unknown).contains(&Code::CidUnproven) {
        duties.push(Duty::new("Pin the content of cl.cid.agentcard where public gateways find it."));
    }
    let last = if duties.is_empty() { "Correct what the findings name, then check:" } else { "Then check:" };
    duties.extend(command(report, row, "verify").map(|line| Duty::new(last).with(line)));
    if duties.is_empty() {
        duties.push(Duty::new("Correct what the findings name."));
    }
    duties
}

fn of_operator(report: &Report, row: &Row) -> Vec<Duty> {
    let duty = Duty::new("See which endpoint or gateway failed, and which rule decided:");
    vec![match command(report, row, "trace") {
        Some(line) => duty.with(line),
        None => duty,
    }]
}

/// The command that checks a row's name on the report's network and under its rules; `None` if one of its characters
/// would be escaped in output.
fn command(report: &Report, row: &Row, command: &str) -> Option<String> {
    let name = row.normalized.as_deref()?;
    let scope = &report.scope;
    let mut words = vec!["clresolve", command];
    words.extend(report.flags.iter().map(String::as_str));
    words.extend(["--profile", &scope.profile.id, "--depth", scope.depth.as_str()]);
    words.extend(name.starts_with('-').then_some("--"));
    words.push(name);
    let line = words.into_iter().map(in_shell).collect::<Vec<_>>().join(" ");
    let shown = Foreign::new(&line).at_most(MAX_LINE_CHARACTERS).to_string();
    (shown == line).then_some(line)
}
