//! Where the names of an audit come from: a list, a registry, or both, the list first.

use clresolve_audit::list_digest::ListDigester;
use clresolve_audit::{Listing, Presence};
use clresolve_core::digest::Digest;
use tokio::sync::mpsc;

use super::registry::Registry;
use crate::cli::names::{Line, List, NamesError, Reader};

/// Lines read ahead of the names that are being judged: enough that reading never holds up the judging.
const READ_AHEAD: usize = 64;

/// A line that is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourceLine {
    pub(super) line: Line,
    /// Who lists it, where a registry is audited.
    pub(super) listed: Option<Listed>,
}

/// Who lists a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    entry: Option<u64>,
    in_list: bool,
}

impl Listed {
    /// Together with what the chain says.
    pub(super) const fn with(self, on_chain: Presence) -> Listing {
        let Self { entry, in_list } = self;
        Listing { entry, in_list, on_chain }
    }
}

/// The sources of an audit.
pub(in crate::cli) struct Sources {
    pub(super) list: Option<List>,
    pub(super) registry: Option<Registry>,
}

impl Sources {
    /// How many different names are left behind the `held` ones, where that is known before they are read: what a list and
    /// a registry share is not.
    pub(super) fn left(&self, held: u64) -> Option<u64> {
        let all = match (&self.list, &self.registry) {
            (Some(list), None) => list.counted.as_ref()?.names,
            (None, Some(registry)) => registry.names(),
            _ => return None,
        };
        Some(all.saturating_sub(held))
    }

    /// The digest of all, where that is known before they are read.
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

    /// Reads the sources in a thread of its own, since standard input may keep it waiting.
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

/// The lines of the list, and after them those of the registry, counted on.
struct Lines {
    list: Option<Reader>,
    registry: Option<Registry>,
    /// The entry that comes next.
    next: usize,
    /// How many lines the list has.
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

    /// The registry, unless it could not be read: then nobody knows whom it lists.
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
