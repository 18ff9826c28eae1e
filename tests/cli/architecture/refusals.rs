//! The refusals of the code that judges or fetches foreign input, and what the tests name of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::buffer::TokenBuffer;
use syn::visit::{self, Visit};

use super::tokens::Tokens;

/// How the name of an enum of refusals ends. One that is an `Error` counts whatever its name is.
const ENDINGS: [&str; 4] = ["Error", "Flaw", "Fault", "Refusal"];

/// Refusals that no test can bring about.
const UNTESTED: [(&str, &str, &str); 4] = [
    ("CardSignError", "Library", "the library's own failure to sign with a key that it has read"),
    ("SignatureKeyError", "NoRandomness", "the system gives no randomness"),
    ("SignerRecoveryError", "NotBuilt", "of a build without `signatures`, which the tests of the crate have"),
    (
        "SchemaFetchError",
        "NotAsked",
        "stands for an answer that nobody looks at: an entry without bytes is refused before",
    ),
];

/// Folders below the tests that hold what others wrote.
const FOREIGN: [&str; 2] = ["node_modules", ".venv"];

/// The refusals of the faces, each with the slug that is its name in kebab case.
const OF_FACES: &str = "Refusal";

/// An enum of refusals.
pub(crate) struct Refusals {
    name: String,
    /// Those that its own code decides on. One that only hands on another error is asserted where that one is.
    variants: Vec<String>,
}

/// What the tests of a package name.
#[derive(Default)]
pub(crate) struct Named {
    /// Variants, each with its enum before it.
    pairs: BTreeSet<(String, String)>,
    /// The words in their texts.
    words: BTreeSet<String>,
}

impl Named {
    /// Whether a test names the variant. What a face refuses may be named as its users see it.
    fn has(&self, refusals: &str, variant: &str) -> bool {
        let is_path = self.pairs.contains(&(refusals.to_owned(), variant.to_owned()));
        is_path || (refusals == OF_FACES && self.words.contains(&kebab(variant)))
    }

    fn extend(&mut self, other: &Self) {
        self.pairs.extend(other.pairs.iter().cloned());
        self.words.extend(other.words.iter().cloned());
    }
}

/// What is amiss with the refusals in sources, which are given by crate: one that no test names, and an exception that
/// is none. Where two crates have enums of one name, each asserts its own.
pub(crate) fn amiss(sources: &[(&str, &syn::File)], tests: &BTreeMap<&str, Named>) -> BTreeSet<String> {
    let enums = sources.iter().flat_map(|(krate, file)| refusals(file).into_iter().map(move |found| (*krate, found)));
    let enums: Vec<_> = enums.collect();
    assert!(enums.len() > 70, "the refusals were not found");
    let mut everywhere = Named::default();
    tests.values().for_each(|named| everywhere.extend(named));
    let mut exceptions: BTreeSet<_> = UNTESTED.iter().map(|(name, variant, _)| format!("{name}::{variant}")).collect();
    let mut amiss = BTreeSet::new();
    for (krate, Refusals { name, variants }) in &enums {
        let is_shared = enums.iter().any(|(other, known)| other != krate && known.name == *name);
        let named = if is_shared { &tests[krate] } else { &everywhere };
        for variant in variants.iter().filter(|variant| !named.has(name, variant)) {
            let path = format!("{name}::{variant}");
            if !exceptions.remove(&path) {
                amiss.insert(path);
            }
        }
    }
    amiss.into_iter().chain(exceptions.into_iter().map(|path| format!("{path} is no exception"))).collect()
}

/// `RequestMalformed` as `request-malformed`.
fn kebab(name: &str) -> String {
    let mut slug = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !slug.is_empty() {
            slug.push('-');
        }
        slug.push(c.to_ascii_lowercase());
    }
    slug
}

/// The enums of refusals among the items of a file, those of its modules included.
fn refusals(file: &syn::File) -> Vec<Refusals> {
    let mut enums = Enums(Vec::new());
    enums.visit_file(file);
    enums.0
}

struct Enums(Vec<Refusals>);

impl<'ast> Visit<'ast> for Enums {
    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        let name = item.ident.to_string();
        if ENDINGS.iter().any(|ending| name.ends_with(ending)) || item.attrs.iter().any(derives_error) {
            let own = item.variants.iter().filter(|variant| !hands_on(variant));
            self.0.push(Refusals { name, variants: own.map(|variant| variant.ident.to_string()).collect() });
        }
    }
}

fn derives_error(attribute: &syn::Attribute) -> bool {
    attribute.path().is_ident("derive") && words(attribute).iter().any(|word| word == "Error")
}

fn hands_on(variant: &syn::Variant) -> bool {
    let is_transparent = |attribute: &syn::Attribute| {
        attribute.path().is_ident("error") && words(attribute).iter().any(|word| word == "transparent")
    };
    let is_made_from = |field: &syn::Field| field.attrs.iter().any(|attribute| attribute.path().is_ident("from"));
    variant.attrs.iter().any(is_transparent) || variant.fields.iter().any(is_made_from)
}

fn words(attribute: &syn::Attribute) -> Vec<String> {
    let syn::Meta::List(list) = &attribute.meta else { return Vec::new() };
    Tokens::of_attribute(list).paths.into_iter().flatten().collect()
}

/// What the tests of the package in `folder` name.
pub(crate) fn named(folder: &Path) -> Named {
    let mut named = Named::default();
    let mut files = Vec::new();
    collect(&folder.join("src"), &mut files);
    collect(&folder.join("tests"), &mut files);
    for path in files {
        let text = fs::read_to_string(&path).expect("a source file is readable");
        let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut names = Names::default();
        let is_test = |part: &std::path::Component<'_>| part.as_os_str() == "tests" || part.as_os_str() == "tests.rs";
        if path.strip_prefix(folder).expect("below the folder").components().any(|part| is_test(&part)) {
            names.visit_file(&file);
        } else {
            tests_in(&file.items).for_each(|item| names.visit_item_mod(item));
        }
        named.extend(&names.named());
    }
    named
}

/// The modules of tests among the items of a file.
fn tests_in(items: &[syn::Item]) -> impl Iterator<Item = &syn::ItemMod> {
    items.iter().filter_map(|item| match item {
        syn::Item::Mod(item) if item.content.is_some() && item.attrs.iter().any(super::is_not_shipped) => Some(item),
        _ => None,
    })
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry is readable").path();
        if path.is_dir() && !FOREIGN.iter().any(|name| path.ends_with(name)) {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The paths and texts of test code.
#[derive(Default)]
struct Names {
    /// The names that are imported, each with its path. A star is a glob.
    imports: Vec<(String, Vec<String>)>,
    tokens: Tokens,
}

impl Names {
    /// What a piece of code results in. A stand-in that gives an error asserts nothing of it.
    fn visit_result(&mut self, result: &syn::Expr) {
        let is_error = match result {
            syn::Expr::Call(call) => matches!(&*call.func, syn::Expr::Path(function) if function.path.is_ident("Err")),
            _ => false,
        };
        if !is_error {
            self.visit_expr(result);
        }
    }

    fn named(self) -> Named {
        let mut named = Named { pairs: BTreeSet::new(), words: self.tokens.words };
        let mut globs = BTreeSet::new();
        let mut origins = BTreeMap::new();
        for (name, path) in &self.imports {
            let [.., parent, last] = path.as_slice() else { continue };
            if name == "*" {
                globs.insert(parent);
            } else {
                origins.insert(name, (parent, last));
            }
        }
        for path in &self.tokens.paths {
            match path.as_slice() {
                [.., parent, last] => {
                    let renamed = origins.get(parent).map_or(parent, |(_, name)| name);
                    named.pairs.insert((renamed.clone(), last.clone()));
                }
                [name] => {
                    named.pairs.extend(globs.iter().map(|parent| ((*parent).clone(), name.clone())));
                    let imported = origins.get(name).map(|(parent, last)| ((*parent).clone(), (*last).clone()));
                    named.pairs.extend(imported);
                }
                [] => {}
            }
        }
        named
    }
}

impl<'ast> Visit<'ast> for Names {
    /// To import a name says nothing of it.
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.imports.extend(super::names_of(&[], &item.tree));
    }

    /// What documentation says is no assertion.
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.tokens.paths.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        self.visit_pat(&arm.pat);
        arm.guard.iter().for_each(|(_, guard)| self.visit_expr(guard));
        self.visit_result(&arm.body);
    }

    fn visit_block(&mut self, block: &'ast syn::Block) {
        for statement in &block.stmts {
            match statement {
                syn::Stmt::Expr(result, None) => self.visit_result(result),
                statement => self.visit_stmt(statement),
            }
        }
    }

    fn visit_expr_closure(&mut self, closure: &'ast syn::ExprClosure) {
        closure.inputs.iter().for_each(|input| self.visit_pat(input));
        self.visit_result(&closure.body);
    }

    fn visit_expr_return(&mut self, item: &'ast syn::ExprReturn) {
        item.expr.iter().for_each(|result| self.visit_result(result));
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.visit_expr(&call.receiver);
        let makes_error = |argument: &syn::Expr| match argument {
            syn::Expr::Closure(closure) => matches!(*closure.body, syn::Expr::Call(_) | syn::Expr::Struct(_)),
            argument => matches!(argument, syn::Expr::Path(_)),
        };
        let read = call.args.iter().filter(|argument| call.method != "map_err" || !makes_error(argument));
        read.for_each(|argument| self.visit_expr(argument));
    }

    fn visit_lit_str(&mut self, text: &'ast syn::LitStr) {
        self.tokens.add_text(&text.value());
    }

    /// A name alone in a pattern is a variant's, or that of what it binds.
    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        self.tokens.paths.push(vec![pattern.ident.to_string()]);
        visit::visit_pat_ident(self, pattern);
    }

    /// What a macro is given are tokens without a tree.
    fn visit_macro(&mut self, found: &'ast syn::Macro) {
        self.tokens.read(TokenBuffer::new2(found.tokens.clone()).begin());
    }
}
