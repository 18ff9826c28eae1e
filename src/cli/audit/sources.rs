//! The sources of an audit's names: a list, a registry, or both, with the list first.

use clresolve_audit::list_digest::ListDigester;
use clresolve_audit::{OnChainAgentPresence, RegistryChainComparison};
use clresolve_core::digest::Digest;
use tokio::sync::mpsc;

use super::registry::RegistryNameList;
use crate::cli::names::{NameListError, NameListInput, NameListLine, NameListReader};

/// Number of lines read ahead, so that judging never waits for reading.
const READ_AHEAD: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AuditNameLine {
    pub(super) line: NameListLine,
    /// Who lists it, if a registry is audited. The chain is not read yet.
    pub(super) listed: Option<RegistryChainComparison>,
}

pub(in crate::cli) struct AuditNameSources {
    pub(super) list: Option<NameListInput>,
    pub(super) registry: Option<RegistryNameList>,
}

impl AuditNameSources {
    /// Number of distinct names after the `held` ones. `None` if it is unknown in advance, as for a list and a registry
    /// that may share names.
    pub(super) fn remaining_name_count(&self, held: u64) -> Option<u64> {
        let all = match (&self.list, &self.registry) {
            (Some(list), None) => list.counted.as_ref()?.names,
            (None, Some(registry)) => registry.distinct_name_count(),
            _ => return None,
        };
        Some(all.saturating_sub(held))
    }

    /// The digest of all lines, if it is known in advance.
    pub(super) fn digest_of_all_lines(&self) -> Option<Digest> {
        let (mut digester, lines) = match &self.list {
            Some(list) => list.counted.as_ref().map(|counted| (counted.digester.clone(), counted.lines))?,
            None => (ListDigester::default(), 0),
        };
        for entry in self.registry.iter().flat_map(RegistryNameList::entries) {
            let entry = entry.clone().with_line_offset(lines);
            digester.add(entry.line_number(), &entry.digest_key());
        }
        Some(digester.digest())
    }

    /// Reads the sources in their own thread, since reading standard input may block.
    pub(super) fn read_lines_in_thread(self) -> mpsc::Receiver<Result<AuditNameLine, NameListError>> {
        let (sender, receiver) = mpsc::channel(READ_AHEAD);
        std::thread::spawn(move || {
            for line in AuditNameLines::from_sources(self) {
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        receiver
    }
}

const fn comparison_before_chain_read(entry: Option<u64>, in_list: bool) -> RegistryChainComparison {
    RegistryChainComparison { entry, in_list, on_chain: OnChainAgentPresence::Unknown }
}

/// The lines of the list, followed by those of the registry.
struct AuditNameLines {
    list: Option<NameListReader>,
    registry: Option<RegistryNameList>,
    next: usize,
    /// Number of lines of the list.
    before: u64,
}

impl AuditNameLines {
    fn from_sources(AuditNameSources { list, registry }: AuditNameSources) -> Self {
        Self { list: list.map(|list| list.reader), registry, next: 0, before: 0 }
    }

    fn audit_name_line_of_list_line(&self, line: NameListLine) -> AuditNameLine {
        let entry = |registry: &RegistryNameList| match &line {
            NameListLine::Name { name, .. } => registry.entry_number_of_name(name),
            NameListLine::Unreadable { .. } => None,
        };
        let listed = self.readable_registry().map(|registry| comparison_before_chain_read(entry(registry), true));
        AuditNameLine { line, listed }
    }

    fn next_registry_line(&mut self) -> Option<AuditNameLine> {
        let entry = self.registry.as_ref()?.entries().get(self.next)?.clone();
        self.next += 1;
        let listed = self.readable_registry().map(|_| comparison_before_chain_read(Some(entry.line_number()), false));
        Some(AuditNameLine { line: entry.with_line_offset(self.before), listed })
    }

    /// The registry, unless it could not be read: its entries are then unknown.
    fn readable_registry(&self) -> Option<&RegistryNameList> {
        self.registry.as_ref().filter(|registry| registry.about.is_some())
    }
}

impl Iterator for AuditNameLines {
    type Item = Result<AuditNameLine, NameListError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(list) = &mut self.list {
            if let Some(line) = list.next() {
                return Some(line.map(|line| self.audit_name_line_of_list_line(line)));
            }
            self.before = list.line_count();
            self.list = None;
        }
        self.next_registry_line().map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::names;

    fn asked(list: &str, registry: &[&str]) -> Vec<(u64, Option<u64>, bool)> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), list).unwrap();
        let list = Some(names::open_name_list(file.path()).unwrap());
        let sources = AuditNameSources { list, registry: Some(RegistryNameList::from_names(registry)) };
        let seen = |asked: AuditNameLine| {
            let listed = asked.listed.expect("there is a registry");
            (asked.line.line_number(), listed.entry, listed.in_list)
        };
        AuditNameLines::from_sources(sources).map(|asked| seen(asked.unwrap())).collect()
    }

    #[test]
    fn names_left_are_known_of_a_list_or_a_registry() {
        let names: Vec<String> = (0..40).map(|number| format!("a{number}.eth")).collect();
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.push("A7.eth");
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), names.join("\n")).unwrap();
        let listed = || AuditNameSources { list: Some(names::open_name_list(file.path()).unwrap()), registry: None };
        let of_registry = || AuditNameSources { list: None, registry: Some(RegistryNameList::from_names(&names)) };
        let left = |held| [listed(), of_registry()].map(|sources| sources.remaining_name_count(held));
        assert_eq!(left(0), [Some(40); 2], "fresh");
        assert_eq!(left(15), [Some(25); 2], "gone on with");
        let both = AuditNameSources { registry: Some(RegistryNameList::from_names(&names)), ..listed() };
        assert_eq!(both.remaining_name_count(0), None, "what they share is not known");
    }

    #[test]
    fn entries_are_counted_on_after_the_lines_of_the_list() {
        let seen = asked("a.eth\n# a comment\nB.eth\n\n", &["b.eth", "c.eth"]);
        assert_eq!(seen, [(1, None, true), (3, Some(1), true), (5, Some(1), false), (6, Some(2), false)]);
    }
}
