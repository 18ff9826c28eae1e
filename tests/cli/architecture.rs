//! Checks the invariants of ARCHITECTURE.md that require reading the sources. Invariants that Cargo enforces (a crate
//! without I/O dependencies cannot do I/O) are only queried from Cargo.

#[path = "architecture/refusals.rs"]
mod refusals;
#[path = "architecture/surface.rs"]
mod surface;
#[path = "architecture/tokens.rs"]
mod tokens;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};

/// The crates of the workspace, each with those that it may depend on. The root's name is empty.
const CRATES: [(&str, &[&str]); 19] = [
    ("core", &[]),
    ("ipfs", &[]),
    ("beacon", &["core"]),
    ("verdict", &["core", "ipfs"]),
    ("state", &["core"]),
    ("jose", &["core"]),
    ("payment", &["core", "verdict", "jose"]),
    ("messages", &["core", "verdict", "jose", "payment"]),
    ("bundle", &["core", "ipfs", "beacon", "verdict", "state", "jose", "payment", "messages"]),
    ("egress", &["core"]),
    ("chain", &["core", "beacon", "state", "egress"]),
    ("cards", &["core", "verdict", "jose"]),
    ("audit", &["core", "verdict"]),
    ("sandbox", &["core", "ipfs", "beacon"]),
    (
        LIBRARY,
        &["core", "ipfs", "verdict", "state", "jose", "bundle", "egress", "chain", "payment", "messages", "sandbox"],
    ),
    ("discover", &["core", "verdict", "cards", LIBRARY]),
    ("server", &["core", "ipfs", "verdict", "payment", "messages", "bundle", "cards", LIBRARY, "discover"]),
    (
        "",
        &[
            "core", "ipfs", "verdict", "jose", "bundle", "cards", "audit", "payment", "messages", "sandbox", LIBRARY,
            "discover", "server",
        ],
    ),
    (TRAFFIC, &["core", "verdict", "jose", "cards", "payment", "messages", LIBRARY, "sandbox"]),
];

/// The library: what embedders depend on.
const LIBRARY: &str = "resolver";

/// The programs that load daemons: a package above the root, which no other crate knows.
const TRAFFIC: &str = "traffic";

/// Crates that neither judge nor fetch what a stranger made.
const UNJUDGED: [&str; 2] = ["sandbox", TRAFFIC];

/// Most lines of a source file without its tests.
const LINES: usize = 700;

/// Words that say nothing to a reader who knows the field. No type is called so.
const OWN_WORDS: [&str; 42] = [
    "Asked",
    "Ballot",
    "Camp",
    "Checked",
    "Chorus",
    "Computer",
    "Decided",
    "Desk",
    "Flavour",
    "Floor",
    "Front",
    "Gossip",
    "Ground",
    "Kept",
    "Known",
    "Landing",
    "Mend",
    "Part",
    "Relay",
    "RollCall",
    "Room",
    "Roster",
    "Rumour",
    "Rumours",
    "Said",
    "Seal",
    "Seat",
    "Share",
    "Shares",
    "Stall",
    "Stand",
    "Standing",
    "Tally",
    "Testimony",
    "Told",
    "Unsealed",
    "Voice",
    "Voices",
    "Whereabouts",
    "Witness",
    "Witnesses",
    "Word",
];

/// Types that have such a word, since others gave it to them.
const GIVEN_WORDS: [(&str, &str); 1] = [("Witness", "crates/payment/src/")];

/// Names that several types have: those of two builds, and those that a standard hashes (EIP-712).
const SHARED_NAMES: [&str; 4] = ["LightClient", "Offer", "ReplicaFleet", "StateProofReplay"];

/// Crates that do no I/O.
const PURE: [&str; 11] =
    ["core", "ipfs", "beacon", "verdict", "state", "jose", "bundle", "cards", "audit", "payment", "messages"];

/// What a crate without I/O has nowhere among its dependencies.
const IMPURE_CRATES: [&str; 6] = ["tokio", "mio", "reqwest", "hyper", "axum", "socket2"];

/// What code without I/O does not name, although the standard library or a dependency has it.
const IMPURE_WORDS: [&str; 8] = [
    "std :: fs",
    "std :: net :: Tcp",
    "std :: net :: Udp",
    "std :: env",
    "std :: process",
    "SystemTime",
    "Instant :: now",
    "Timestamp :: now",
];

#[test]
fn crates_depend_on_each_other_one_way() {
    for (name, allowed) in CRATES {
        let dependencies = dependencies(name);
        let own = dependencies.iter().filter_map(|known| known.strip_prefix("clresolve-"));
        let offences: Vec<_> = own.filter(|known| !allowed.contains(known)).collect();
        assert!(offences.is_empty(), "{name} depends on {offences:?}");
    }
}

/// A plain `cargo test` tests them all. Each feature is checked alone only where no default member needs others.
#[test]
fn a_plain_build_is_of_the_crates_below_the_root_and_of_nothing_above_it() {
    let manifest = fs::read_to_string(folder("").join("Cargo.toml")).expect("a manifest is readable");
    let manifest: toml::Table = manifest.parse().expect("a manifest is TOML");
    let members = manifest["workspace"]["default-members"].as_array().expect("a list");
    let members: BTreeSet<&str> = members.iter().filter_map(|member| member.as_str()).collect();
    let place = |name: &str| if name.is_empty() { ".".to_owned() } else { format!("crates/{name}") };
    let crates: Vec<String> = offered().map(place).collect();
    assert_eq!(members, crates.iter().map(String::as_str).collect());
}

#[test]
fn crates_without_io_have_no_dependency_that_could() {
    for name in PURE {
        let tree = Command::new(env!("CARGO"))
            .args(["tree", "--locked", "--offline", "-e", "normal", "--prefix", "none", "-p"])
            .arg(format!("clresolve-{name}"))
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("cargo runs");
        assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
        let tree = String::from_utf8(tree.stdout).expect("UTF-8");
        let crates: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
        assert!(crates.len() > 5, "{name}: the tree was not found");
        let offences: Vec<_> = IMPURE_CRATES.iter().filter(|known| crates.contains(*known)).collect();
        assert!(offences.is_empty(), "{name} has {offences:?}");
    }
}

#[test]
fn crates_without_io_read_no_file_and_no_clock() {
    let sources: Vec<Source> = PURE.iter().flat_map(|name| sources(name)).collect();
    assert_no_words(&sources, &IMPURE_WORDS);
}

#[test]
fn plans_do_no_io_and_read_no_clock() {
    let words =
        [&IMPURE_WORDS[..], &["clresolve_resolver :: fetch", "clresolve_resolver :: resolve", "tokio ::", "reqwest"]]
            .concat();
    assert_no_words(&modules_of("", &["plan"]), &words);
}

/// One clock reaches everything that a resolver does. Commands without one read the system's.
#[test]
fn what_has_a_resolver_has_its_clock() {
    let takes_one = |source: &Source| source.module != ["resolve"];
    let sources = modules_of(LIBRARY, &["resolve", "cache", "shared"]).into_iter().filter(takes_one);
    let sources: Vec<Source> = sources.chain(modules_of("server", &["http", "mcp"])).collect();
    assert_no_words(&sources, &["SystemClock", "Timestamp :: now"]);
}

#[test]
fn the_command_line_does_not_reach_behind_the_resolver() {
    let words = ["clresolve_resolver :: fetch", "clresolve_chain", "clresolve_egress", "reqwest", "alloy_provider"];
    assert_no_words(&modules_of("", &["cli"]), &words);
}

#[test]
fn the_daemon_reaches_the_world_through_the_resolver_alone() {
    let words = [
        "clresolve_resolver :: fetch",
        "clresolve_chain",
        "clresolve_egress",
        "clresolve_verdict :: check",
        "clresolve_verdict :: evidence",
        "reqwest",
        "alloy_",
    ];
    assert_no_words(&modules_of("server", &["http"]), &words);
}

#[test]
fn only_the_egress_crate_opens_outbound_sockets() {
    for (name, _) in CRATES.iter().filter(|(name, _)| *name != "egress") {
        assert!(!dependencies(name).contains("reqwest"), "{name} depends on an HTTP client");
    }
    let words = ["ClientBuilder", "TcpStream :: connect", "UdpSocket"];
    let others = offered().filter(|name| *name != "egress").flat_map(sources);
    assert_no_words(&others.collect::<Vec<_>>(), &words);
}

/// A waiver cannot change a verdict, the gate or a decision.
#[test]
fn only_the_audit_command_names_waivers() {
    for (name, _) in CRATES.iter().filter(|(name, _)| !name.is_empty()) {
        assert!(!dependencies(name).contains("clresolve-audit"), "{name} depends on clresolve-audit");
    }
    let is_audit = |source: &Source| source.module.starts_with(&["cli".to_owned(), "audit".to_owned()]);
    let others = sources("").into_iter().filter(|source| !is_audit(source));
    assert_no_words(&others.collect::<Vec<_>>(), &["Waiver", "clresolve_audit :: waiver"]);
}

/// The compiler keeps a verdict that was read from becoming a live one. Who may call what makes trust is kept here.
#[test]
fn trust_is_made_in_few_places() {
    let elsewhere = |is_place: fn(&str, &[String]) -> bool| -> Vec<Source> {
        let others = |name: &'static str| sources(name).into_iter().filter(move |file| !is_place(name, &file.module));
        CRATES.iter().flat_map(|(name, _)| others(name)).collect()
    };
    // The walk makes a live answer, and the export of a run the one that it may sign.
    let makes_live = |name: &str, module: &[String]| match module {
        [] => name == "bundle",
        [first, ..] => name == LIBRARY && first == "resolve",
    };
    assert_no_words(&elsewhere(makes_live), &["build :: resolution"]);
    // Where the signature was verified.
    let verifies = |name: &str, module: &[String]| name == "bundle" && module == ["signed"];
    assert_no_words(&elsewhere(verifies), &["Trusted :: signed"]);
    // Only the cache and its confirmations know whether a head confirms a verdict, and the gate opens only then.
    let confirms = |name: &str, module: &[String]| match module {
        [first, ..] if first == "cache" => name == LIBRARY,
        [first, second] => name == LIBRARY && first == "resolve" && second == "confirm",
        _ => name == "verdict" && module == ["trust"],
    };
    assert_no_words(&elsewhere(confirms), &["with_standing"]);
}

/// Who signs for a name is decided by one rule: what grade of proof the records have, where they come from, and at
/// which block they were read. `plan` names a record that publishers set, and reads none.
#[test]
fn the_records_of_signers_are_read_by_one_module() {
    let words = ["Key :: SIGNER", "Key :: SigPub", "Key :: SigKid", "Key :: SigCanonical", "Key :: ReceiptSigner"];
    let reads = |source: &Source| source.module.starts_with(&["resolve".to_owned(), "signer".to_owned()]);
    let (reader, others): (Vec<Source>, Vec<Source>) = sources(LIBRARY).into_iter().partition(reads);
    let read: String = reader.iter().map(Source::code).collect();
    let unread: Vec<_> = words.iter().filter(|word| !read.contains(**word)).collect();
    assert!(unread.is_empty(), "{unread:?}");
    let above = ["discover", "server", ""].into_iter().flat_map(sources).filter(|source| source.module != ["plan"]);
    assert_no_words(&others.into_iter().chain(above).collect::<Vec<_>>(), &words);
}

/// The file of a module counts like any other: a child that takes a definition from its parent, which takes one from
/// the child, is a circle. What a file only hands on is taken from the file that defines it.
#[test]
fn no_files_import_each_other_in_a_circle() {
    let guard = folder("").join("clients/rust/src");
    for root in CRATES.iter().flat_map(|(name, _)| roots(name)).chain([guard]) {
        let sources = sources_of(&root);
        let imports: Imports = sources.iter().map(|source| (source.module.clone(), source.imports())).collect();
        let uses: Uses = sources.iter().map(|source| (source.module.clone(), source.uses(&imports))).collect();
        let circles: Vec<_> = uses.keys().filter(|file| reaches(file, file, &uses)).collect();
        assert!(circles.is_empty(), "{}: {circles:#?}", root.display());
    }
}

#[test]
fn no_file_is_longer_than_a_sitting() {
    for source in CRATES.iter().flat_map(|(name, _)| sources(name)) {
        let text = fs::read_to_string(&source.place).expect("a source file is readable");
        let code = text.rsplit_once("\n#[cfg(test)]\n").filter(|(_, tests)| tests.contains("mod tests {"));
        let lines = code.map_or(&*text, |(code, _)| code).lines().count();
        assert!(lines <= LINES, "{} has {lines} lines without its tests", source.place);
    }
}

#[test]
fn types_have_names_of_the_field_and_one_meaning_each() {
    let mut places = BTreeMap::<String, Vec<String>>::new();
    let crates = CRATES.iter().filter(|(name, _)| *name != TRAFFIC);
    for source in crates.flat_map(|(name, _)| sources(name)) {
        for name in source.types() {
            places.entry(name).or_default().push(source.place.clone());
        }
    }
    let is_given = |word: &str, place: &str| GIVEN_WORDS.iter().any(|(own, of)| *own == word && place.contains(of));
    places.iter_mut().for_each(|(word, places)| places.retain(|place| !is_given(word, place)));
    let own: Vec<_> = OWN_WORDS.iter().filter_map(|word| places.get_key_value(*word)).collect();
    let own: Vec<_> = own.into_iter().filter(|(_, places)| !places.is_empty()).collect();
    assert!(own.is_empty(), "{own:#?}");
    places.retain(|name, places| places.len() > 1 && !SHARED_NAMES.contains(&name.as_str()));
    assert!(places.is_empty(), "{places:#?}");
}

/// A reader of the library meets a name once.
#[test]
fn public_types_have_one_meaning_each() {
    let modules = modules();
    let is_type =
        |name: &str| name.starts_with(|first: char| first.is_ascii_uppercase()) && name != name.to_uppercase();
    let mut origins = BTreeMap::<String, BTreeSet<_>>::new();
    for line in surface::lines(&modules) {
        let name = line.rsplit("::").next().unwrap_or_default();
        if is_type(name) {
            origins.entry(name.to_owned()).or_default().insert(surface::origin(&modules, &line));
        }
    }
    assert!(origins.len() > 100, "the types were not found");
    origins.retain(|_, origins| origins.len() > 1);
    assert!(origins.is_empty(), "{origins:#?}");
}

/// What the library offers, without what its documentation hides, is what `tests/surface.txt` lists. `just surface`
/// writes the list.
#[test]
fn the_public_surface_is_as_listed() {
    let offered = surface::lines(&modules());
    let list = folder("").join("tests/surface.txt");
    if std::env::var_os("SURFACE").is_some_and(|value| value == "write") {
        fs::write(&list, offered.join("\n") + "\n").expect("the list is writable");
    }
    let listed = fs::read_to_string(&list).expect("the list is readable");
    let listed: BTreeSet<&str> = listed.lines().collect();
    let offered: BTreeSet<&str> = offered.iter().map(String::as_str).collect();
    let (gone, new): (Vec<_>, Vec<_>) = (listed.difference(&offered).collect(), offered.difference(&listed).collect());
    assert!(gone.is_empty() && new.is_empty(), "gone: {gone:#?}, new: {new:#?}");
    let is_module_of_the_root = |line: &&&str| line.strip_suffix("::").is_some_and(|name| !name.contains("::"));
    let count = offered.iter().filter(is_module_of_the_root).count();
    assert!(count <= 10, "{count} public modules");
}

/// A refusal that no test has seen may never come, or come for something else.
#[test]
fn every_refusal_is_asserted_by_name() {
    let judged = || CRATES.iter().map(|(name, _)| *name).filter(|name| !UNJUDGED.contains(name));
    let sources: Vec<_> =
        judged().flat_map(|name| sources(name).into_iter().map(move |source| (name, source))).collect();
    let files: Vec<_> = sources.iter().map(|(name, source)| (*name, &source.file)).collect();
    let tests = judged().map(|name| (name, refusals::named(&folder(name)))).collect();
    let amiss = refusals::amiss(&files, &tests);
    assert!(amiss.is_empty(), "{amiss:#?}");
}

/// The modules of the library, and of what it is made of.
fn modules() -> surface::Modules {
    let mut modules = surface::Modules::new();
    for name in offered() {
        for source in sources(name).iter().filter(|source| !source.place.ends_with("src/main.rs")) {
            surface::add(&mut modules, name, &source.module, &source.file.items);
        }
    }
    modules
}

/// A source file, without its unit tests.
struct Source {
    place: String,
    /// The module that the file is; empty for the root of its crate.
    module: Vec<String>,
    /// The modules below it that are files of their own.
    children: BTreeSet<String>,
    file: syn::File,
}

impl Source {
    /// A path that the file writes, from the root of the crate; none of another crate.
    fn within(&self, written: &[String]) -> Option<Vec<String>> {
        let up = written.iter().take_while(|segment| *segment == "super").count();
        let (base, skipped) = match written.first()?.as_str() {
            "crate" => (&[][..], 1),
            "self" => (&self.module[..], 1),
            "super" => (&self.module[..self.module.len().saturating_sub(up)], up),
            child if self.children.contains(child) => (&self.module[..], 0),
            _ => return None,
        };
        Some([base, &written[skipped..]].concat())
    }

    fn read(root: &Path, path: &Path) -> Self {
        let text = fs::read_to_string(path).expect("a source file is readable");
        let mut file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        without_tests(&mut file.items);
        let relative = path.strip_prefix(root).expect("below the root").with_extension("");
        let mut module: Vec<String> =
            relative.iter().map(|part| part.to_str().expect("a name in UTF-8").to_owned()).collect();
        if ["lib", "main"].map(str::to_owned).map(|name| vec![name]).contains(&module) {
            module.clear();
        }
        let children = file.items.iter().filter_map(|item| match item {
            syn::Item::Mod(child) if child.content.is_none() => Some(child.ident.to_string()),
            _ => None,
        });
        Self { place: path.display().to_string(), module, children: children.collect(), file }
    }

    /// Every path, as the file writes it.
    fn written_paths(&self) -> Vec<Vec<String>> {
        let mut paths = Paths::default();
        paths.visit_file(&self.file);
        paths.found
    }

    fn declarations(&self) -> impl Iterator<Item = &syn::ItemUse> {
        self.file.items.iter().filter_map(|item| match item {
            syn::Item::Use(item) => Some(item),
            _ => None,
        })
    }

    /// The names that the file imports, each with its path; without one where the name is of another crate. A module
    /// that is not below the root counts as another crate.
    fn imports(&self) -> BTreeMap<String, Option<Vec<String>>> {
        let names = self.declarations().flat_map(|item| names_of(&[], &item.tree));
        let from_elsewhere = names.map(|(name, path)| (name, self.within(&path)));
        self.children.iter().map(|child| (child.clone(), None)).chain(from_elsewhere).collect()
    }

    /// The other files whose definitions this one uses. What it only hands on, it does not use.
    fn uses(&self, imports: &Imports) -> BTreeSet<Vec<String>> {
        let handed_on =
            |item: &syn::Item| matches!(item, syn::Item::Use(item) if !matches!(item.vis, syn::Visibility::Inherited));
        let mut paths = Paths::default();
        self.file.items.iter().filter(|item| !handed_on(item)).for_each(|item| paths.visit_item(item));
        let own = |path: &Vec<String>| {
            let imported = imports[&self.module].contains_key(&path[0]);
            if imported { Some([&self.module[..], path].concat()) } else { self.within(path) }
        };
        let files = paths.found.iter().filter_map(own).filter_map(|path| definer(path, imports));
        files.filter(|file| *file != self.module).collect()
    }

    /// The types and traits that the file defines.
    fn types(&self) -> Vec<String> {
        let mut types = Types(Vec::new());
        types.visit_file(&self.file);
        types.0
    }

    /// The code as tokens with single spaces between them, no comment and no line break, then each path in full:
    /// imports may be grouped.
    fn code(&self) -> String {
        use quote::ToTokens as _;
        let written = self.written_paths().into_iter().map(|path| path.join(" :: "));
        [self.file.to_token_stream().to_string()].into_iter().chain(written).collect::<Vec<_>>().join("\n")
    }
}

struct Types(Vec<String>);

impl<'ast> Visit<'ast> for Types {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let name = match item {
            syn::Item::Enum(item) => Some(&item.ident),
            syn::Item::Struct(item) => Some(&item.ident),
            syn::Item::Trait(item) => Some(&item.ident),
            syn::Item::Type(item) => Some(&item.ident),
            _ => None,
        };
        self.0.extend(name.map(ToString::to_string));
        visit::visit_item(self, item);
    }
}

/// The paths that a file writes, as if none stood in a module inside it.
#[derive(Default)]
struct Paths {
    found: Vec<Vec<String>>,
    /// How many modules inside the file are around what is looked at.
    depth: usize,
}

impl Paths {
    fn add(&mut self, mut path: Vec<String>) {
        let up = path.iter().take(self.depth).take_while(|segment| *segment == "super").count();
        if up > 0 {
            path.splice(..up, ["self".to_owned()]);
        }
        self.found.push(path);
    }

    /// Adds the paths with more than one segment: a single name among tokens may be anything.
    fn add_long(&mut self, paths: Vec<Vec<String>>) {
        paths.into_iter().filter(|path| path.len() > 1).for_each(|path| self.add(path));
    }
}

/// The names that a use declaration brings, each with the path that it writes. A glob brings what nobody here knows:
/// its name is a star, and no file has it from elsewhere.
fn names_of(before: &[String], tree: &syn::UseTree) -> Vec<(String, Vec<String>)> {
    let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
    match tree {
        syn::UseTree::Path(path) => names_of(&with(&path.ident), &path.tree),
        syn::UseTree::Name(name) if name.ident == "self" => {
            vec![(before.last().cloned().unwrap_or_default(), before.to_vec())]
        }
        syn::UseTree::Name(name) => vec![(name.ident.to_string(), with(&name.ident))],
        syn::UseTree::Rename(rename) => vec![(rename.rename.to_string(), with(&rename.ident))],
        syn::UseTree::Glob(_) => vec![("*".to_owned(), [before, &["*".to_owned()]].concat())],
        syn::UseTree::Group(group) => group.items.iter().flat_map(|item| names_of(before, item)).collect(),
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.depth += 1;
        visit::visit_item_mod(self, item);
        self.depth -= 1;
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        names_of(&[], &item.tree).into_iter().for_each(|(_, path)| self.add(path));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.add(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    /// `pub(in crate::cli)` takes nothing from there.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    /// What a macro is given, and what it is made of, are tokens without a tree.
    fn visit_macro(&mut self, found: &'ast syn::Macro) {
        self.add_long(tokens::Tokens::of_macro(found).paths);
        visit::visit_macro(self, found);
    }

    fn visit_meta_list(&mut self, found: &'ast syn::MetaList) {
        self.add_long(tokens::Tokens::of_attribute(found).paths);
        visit::visit_meta_list(self, found);
    }
}

/// What the file of each module has from elsewhere.
type Imports = BTreeMap<Vec<String>, BTreeMap<String, Option<Vec<String>>>>;

/// The other files that the file of each module uses.
type Uses = BTreeMap<Vec<String>, BTreeSet<Vec<String>>>;

/// The file that defines what `path` names; none where that is a module or of another crate.
fn definer(mut path: Vec<String>, imports: &Imports) -> Option<Vec<String>> {
    let mut seen = BTreeSet::new();
    while seen.insert(path.clone()) {
        let length = (0..=path.len()).rev().find(|length| imports.contains_key(&path[..*length]))?;
        let (file, rest) = path.split_at(length);
        match imports[file].get(rest.first()?) {
            Some(origin) => path = [origin.as_ref()?, &rest[1..]].concat(),
            None => return Some(file.to_owned()),
        }
    }
    None
}

fn reaches(from: &[String], to: &[String], uses: &Uses) -> bool {
    let mut seen = BTreeSet::new();
    let mut left: Vec<&[String]> = vec![from];
    while let Some(file) = left.pop() {
        for next in uses.get(file).into_iter().flatten() {
            if next.as_slice() == to {
                return true;
            }
            if seen.insert(next) {
                left.push(next);
            }
        }
    }
    false
}

fn assert_no_words(sources: &[Source], words: &[&str]) {
    assert!(!sources.is_empty(), "the sources were not found");
    let found = |source: &Source| {
        let code = source.code();
        words.iter().filter(|word| code.contains(**word)).map(|word| format!("{}: {word}", source.place)).collect()
    };
    let offences: Vec<String> = sources.iter().flat_map::<Vec<String>, _>(found).collect();
    assert!(offences.is_empty(), "{offences:#?}");
}

/// What the manifest of a crate names, tests and build apart.
fn dependencies(name: &str) -> BTreeSet<String> {
    let manifest = fs::read_to_string(folder(name).join("Cargo.toml")).expect("a manifest is readable");
    let manifest: toml::Table = manifest.parse().expect("a manifest is TOML");
    manifest["dependencies"].as_table().expect("a table").keys().cloned().collect()
}

fn folder(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    if name.is_empty() { root.to_owned() } else { root.join("crates").join(name) }
}

/// The crates that are offered: the library, and what it is made of.
fn offered() -> impl Iterator<Item = &'static str> {
    CRATES.into_iter().map(|(name, _)| name).filter(|name| *name != TRAFFIC)
}

/// Where the crates of a package begin: `src`, and each program below it, which is a folder or a file.
fn roots(name: &str) -> Vec<PathBuf> {
    let src = folder(name).join("src");
    let programs = fs::read_dir(src.join("bin")).into_iter().flatten();
    programs.map(|entry| entry.expect("an entry is readable").path()).chain([src.clone()]).collect()
}

fn sources(name: &str) -> Vec<Source> {
    roots(name).iter().flat_map(|root| sources_of(root)).collect()
}

fn sources_of(root: &Path) -> Vec<Source> {
    let mut files = Vec::new();
    if root.is_dir() {
        collect(root, &mut files);
    } else {
        files.push(root.to_owned());
    }
    assert!(!files.is_empty(), "the sources in {} were not found", root.display());
    files.iter().map(|file| Source::read(root, file)).collect()
}

/// The files of these modules at the root of a crate.
fn modules_of(name: &str, modules: &[&str]) -> Vec<Source> {
    let is_one = |source: &Source| source.module.first().is_some_and(|first| modules.contains(&first.as_str()));
    sources(name).into_iter().filter(is_one).collect()
}

/// Takes out what stands under `#[cfg(test)]`, or is built for mutants alone.
fn without_tests(items: &mut Vec<syn::Item>) {
    items.retain(|item| {
        let attributes = match item {
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            syn::Item::Macro(item) => &item.attrs,
            _ => return true,
        };
        !attributes.iter().any(is_not_shipped)
    });
}

fn is_not_shipped(attribute: &syn::Attribute) -> bool {
    attribute.path().is_ident("cfg") && attribute.parse_args::<syn::Meta>().is_ok_and(|condition| is_off(&condition))
}

/// Whether a condition never holds of what is shipped.
fn is_off(condition: &syn::Meta) -> bool {
    match condition {
        syn::Meta::Path(path) => path.is_ident("test") || path.is_ident("clresolve_mutants"),
        syn::Meta::List(list) if list.path.is_ident("all") => list
            .parse_args_with(Punctuated::<syn::Meta, syn::Token![,]>::parse_terminated)
            .is_ok_and(|conditions| conditions.iter().any(is_off)),
        _ => false,
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a source folder is readable") {
        let path = entry.expect("an entry is readable").path();
        if path.is_dir() && !path.ends_with("tests") && !path.ends_with("bin") {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            files.push(path);
        }
    }
}
