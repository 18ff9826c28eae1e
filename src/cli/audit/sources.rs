//! The sources of an audit's names: a list, a registry, or both, with the list first.

use clresolve_audit::list_digest::ListDigester;
use clresolve_audit::{Listing, Presence};
use clresolve_core::digest::Digest;
use tokio::sync::mpsc;

use super::registry::Registry;
use crate::cli::names::{Line, List, NamesError, Reader};

/// Number of lines read ahead, so that judging never waits for reading.
const READ_AHEAD: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourceLine {
    pub(super) line: Line,
    /// Who lists it, if a registry is audited.
    pub(super) listed: Option<Listed>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    entry: Option<u64>,
    in_list: bool,
}

impl Listed {
    /// Adds whether the name is on the chain.
    pub(super) const fn with(self, on_chain: Presence) -> Listing {
        let Self { entry, in_list } = self;
        Listing { entry, in_list, on_chain }
    }
}

pub(in crate::cli) struct Sources {
    pub(super) list: Option<List>,
    pub(super) registry: Option<Registry>,
}

impl Sources {
    /// Number of distinct names after the `held` ones. `None` if it is unknown in advance, as for a list and a registry
    /// that may share names.
    pub(super) fn left(&self, held: u64) -> Option<u64> {
        let all = match (&self.list, &self.registry) {
            (Some(list), None) => list.counted.as_ref()?.names,
            (None, Some(registry)) => registry.names(),
            _ => return None,
        };
        Some(all.saturating_sub(held))
    }

    /// The digest of all lines, if it is known in advance.
    pub(super) fn digest(&self) -> Option<Digest> {
        let (mut digester, lines) = match &self.list {
            Some(list) => list.counted.as_ref().map(|counted| (counted.digester.clone(), counted.lines))?,
            None => (ListDigester::default(), 0),
        };
        for entry in self.registry.iter().flat_map(Registry::entries) {
            let entry = entry.clone().after(lines);
            digester.add(entry.number(), &entry.key());
        }
        Some(digester.digest())
    }

    /// Reads the sources in their own thread, since reading standard input may block.
    pub(super) fn read(self) -> mpsc::Receiver<Result<SourceLine, NamesError>> {
        let (sender, receiver) = mpsc::channel(READ_AHEAD);
        std::thread::spawn(move || {
            for line in Lines::of(self) {
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        receiver
    }
}

/// The lines of the list, followed by those of the registry.
struct Lines {
    list: Option<Reader>,
    registry: Option<Registry>,
    next: usize,
    /// Number of lines of the list.
    before: u64,
}

impl Lines {
    fn of(Sources { list, registry }: Sources) -> Self {
        Self { list: list.map(|list| list.reader), registry, next: 0, before: 0 }
    }

    fn of_list(&self, line: Line) -> SourceLine {
        let entry = |registry: &Registry| match &line {
            Line::Name { name, .. } => registry.entry_of(name),
            Line::Unreadable { .. } => None,
        };
        let listed = self.readable_registry().map(|registry| Listed { entry: entry(registry), in_list: true });
        SourceLine { line, listed }
    }

    fn of_registry(&mut self) -> Option<SourceLine> {
        let entry = self.registry.as_ref()?.entries().get(self.next)?.clone();
        self.next += 1;
        let listed = self.readable_registry().map(|_| Listed { entry: Some(entry.number()), in_list: false });
        Some(SourceLine { line: entry.after(self.before), listed })
    }

    /// The registry, unless it could not be read: its entries are then unknown.
    fn readable_registry(&self) -> Option<&Registry> {
        self.registry.as_ref().filter(|registry| registry.about.is_some())
    }
}

impl Iterator for Lines {
    type Item = Result<SourceLine, NamesError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(list) = &mut self.list {
            if let Some(line) = list.next() {
                return Some(line.map(|line| self.of_list(line)));
            }
            self.before = list.lines();
            self.list = None;
        }
        self.of_registry().map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::names;

    fn asked(list: &str, registry: &[&str]) -> Vec<(u64, Option<u64>, bool)> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), list).unwrap();
        let list = Some(names::open(file.path()).unwrap());
        let sources = Sources { list, registry: Some(Registry::of_names(registry)) };
        let seen = |asked: SourceLine| {
            let listed = asked.listed.expect("there is a registry");
            (asked.line.number(), listed.entry, listed.in_list)
        };
        Lines::of(sources).map(|asked| seen(asked.unwrap())).collect()
    }

    #[test]
    fn names_left_are_known_of_a_list_or_a_registry() {
        let names: Vec<String> = (0..40).map(|number| format!("a{number}.eth")).collect();
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.push("A7.eth");
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), names.join("\n")).unwrap();
        let listed = || Sources { list: Some(names::open(file.path()).unwrap()), registry: None };
        let of_registry = || Sources { list: None, registry: Some(Registry::of_names(&names)) };
        let left = |held| [listed(), of_registry()].map(|sources| sources.left(held));
        assert_eq!(left(0), [Some(40); 2], "fresh");
        assert_eq!(left(15), [Some(25); 2], "gone on with");
        let both = Sources { registry: Some(Registry::of_names(&names)), ..listed() };
        assert_eq!(both.left(0), None, "what they share is not known");
    }

    #[test]
    fn entries_are_counted_on_after_the_lines_of_the_list() {
        let seen = asked("a.eth\n# a comment\nB.eth\n\n", &["b.eth", "c.eth"]);
        assert_eq!(seen, [(1, None, true), (3, Some(1), true), (5, Some(1), false), (6, Some(2), false)]);
    }
}
