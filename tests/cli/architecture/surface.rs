//! What the library offers, read from the sources: each name that a public module exports, followed through `pub use`
//! into the other crates of the workspace. What is hidden from its documentation, or only `unstable` opens, is left
//! out.

use std::collections::{BTreeMap, BTreeSet};

use quote::ToTokens as _;
use syn::buffer::{Cursor, TokenBuffer};

use super::LIBRARY;

/// The modules of the workspace, by crate (the root's name is empty) and path.
pub(crate) type Modules = BTreeMap<(String, Vec<String>), Vec<syn::Item>>;

/// A public name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Offer {
    /// A module, and where it is.
    Module((String, Vec<String>)),
    Other,
}

/// Adds the items of a file, and those of the modules inside it.
pub(crate) fn add(modules: &mut Modules, krate: &str, path: &[String], items: &[syn::Item]) {
    for item in items {
        if let syn::Item::Mod(item) = item
            && let Some((_, inner)) = &item.content
        {
            add(modules, krate, &[path, &[item.ident.to_string()]].concat(), inner);
        }
    }
    modules.entry((krate.to_owned(), path.to_vec())).or_default().extend(items.iter().cloned());
}

/// The names of the whole library, one a line, those of a module behind its path.
pub(crate) fn lines(modules: &Modules) -> Vec<String> {
    let mut lines = BTreeSet::new();
    walk(modules, &(LIBRARY.to_owned(), Vec::new()), "", &mut lines);
    lines.into_iter().collect()
}

/// Where the name at a path of the library is defined: the module, and the path within it; a path of another crate as
/// it is written.
pub(crate) fn origin(modules: &Modules, path: &str) -> (String, Vec<String>) {
    let path: Vec<String> = path.split("::").map(str::to_owned).collect();
    defined(modules, (LIBRARY.to_owned(), Vec::new()), &path)
}

fn defined(modules: &Modules, place: (String, Vec<String>), path: &[String]) -> (String, Vec<String>) {
    let inner = (place.0.clone(), [&place.1[..], &path[..1]].concat());
    if modules.contains_key(&inner) {
        return if path.len() == 1 { inner } else { defined(modules, inner, &path[1..]) };
    }
    let Some(items) = modules.get(&place) else { return (place.0, [&place.1[..], path].concat()) };
    for item in items {
        let syn::Item::Use(item) = item else { continue };
        if !is_public(&item.vis) {
            continue;
        }
        if let Some(written) = imported(modules, &place, &[], &item.tree, &path[0]) {
            let (krate, found) = resolve(&place, &written);
            return defined_at(modules, krate, &[&found[..], &path[1..]].concat());
        }
    }
    (place.0, [&place.1[..], path].concat())
}

fn defined_at(modules: &Modules, krate: String, path: &[String]) -> (String, Vec<String>) {
    if path.is_empty() || !modules.contains_key(&(krate.clone(), Vec::new())) {
        return (krate, path.to_vec());
    }
    defined(modules, (krate, Vec::new()), path)
}

/// The path under which a use declaration brings `name`.
fn imported(
    modules: &Modules,
    place: &(String, Vec<String>),
    before: &[String],
    tree: &syn::UseTree,
    name: &str,
) -> Option<Vec<String>> {
    let with = |part: &syn::Ident| [before, &[part.to_string()]].concat();
    match tree {
        syn::UseTree::Path(path) => imported(modules, place, &with(&path.ident), &path.tree, name),
        syn::UseTree::Group(group) => group.items.iter().find_map(|item| imported(modules, place, before, item, name)),
        syn::UseTree::Name(found) if found.ident == name => Some(with(&found.ident)),
        syn::UseTree::Rename(found) if found.rename == name => Some(with(&found.ident)),
        syn::UseTree::Glob(_) => {
            let from = resolve(place, before);
            let has = modules.contains_key(&from) && offered(modules, &from).iter().any(|(known, _)| known == name);
            has.then(|| [before, &[name.to_owned()]].concat())
        }
        _ => None,
    }
}

fn walk(modules: &Modules, place: &(String, Vec<String>), prefix: &str, lines: &mut BTreeSet<String>) {
    for (name, offer) in offered(modules, place) {
        lines.insert(match offer {
            Offer::Module(_) => format!("{prefix}{name}::"),
            Offer::Other => format!("{prefix}{name}"),
        });
        if let Offer::Module(inner) = offer {
            walk(modules, &inner, &format!("{prefix}{name}::"), lines);
        }
    }
}

/// What the module at a place exports.
fn offered(modules: &Modules, place: &(String, Vec<String>)) -> BTreeSet<(String, Offer)> {
    let items = modules.get(place).unwrap_or_else(|| panic!("the module {place:?} was not found"));
    let mut names = BTreeSet::new();
    for item in items.iter().filter(|item| !is_hidden(attributes(item))) {
        match item {
            syn::Item::Mod(item) if is_public(&item.vis) => {
                let inner = (place.0.clone(), [&place.1[..], &[item.ident.to_string()]].concat());
                names.insert((item.ident.to_string(), Offer::Module(inner)));
            }
            syn::Item::Use(item) if is_public(&item.vis) => add_tree(modules, place, &[], &item.tree, &mut names),
            syn::Item::Macro(item) => names.extend(made_by(&item.mac).into_iter().map(|name| (name, Offer::Other))),
            item => names.extend(name_of(item).map(|name| (name, Offer::Other))),
        }
    }
    names
}

fn add_tree(
    modules: &Modules,
    place: &(String, Vec<String>),
    before: &[String],
    tree: &syn::UseTree,
    names: &mut BTreeSet<(String, Offer)>,
) {
    let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
    let offer = |path: &[String]| match resolve(place, path) {
        inner if modules.contains_key(&inner) => Offer::Module(inner),
        _ => Offer::Other,
    };
    match tree {
        syn::UseTree::Path(path) => add_tree(modules, place, &with(&path.ident), &path.tree, names),
        syn::UseTree::Group(group) => group.items.iter().for_each(|item| add_tree(modules, place, before, item, names)),
        syn::UseTree::Glob(_) => names.extend(offered(modules, &resolve(place, before))),
        syn::UseTree::Name(name) if name.ident == "self" => {
            names.insert((before.last().expect("a module").clone(), offer(before)));
        }
        syn::UseTree::Name(name) => {
            names.insert((name.ident.to_string(), offer(&with(&name.ident))));
        }
        syn::UseTree::Rename(rename) => {
            names.insert((rename.rename.to_string(), offer(&with(&rename.ident))));
        }
    }
}

/// Where a path leads from a module.
fn resolve(place: &(String, Vec<String>), path: &[String]) -> (String, Vec<String>) {
    let (krate, module) = place;
    let up = path.iter().take_while(|segment| *segment == "super").count();
    let (first, rest) = (path.first().map(String::as_str).unwrap_or_default(), path.get(1..).unwrap_or_default());
    match first {
        "crate" => (krate.clone(), rest.to_vec()),
        "self" => (krate.clone(), [module, rest].concat()),
        "super" => (krate.clone(), [&module[..module.len().saturating_sub(up)], &path[up..]].concat()),
        _ => match first.strip_prefix("clresolve_") {
            Some(other) => (other.to_owned(), rest.to_vec()),
            None => (krate.clone(), [module, path].concat()),
        },
    }
}

/// The name of a public item that is neither module nor import.
fn name_of(item: &syn::Item) -> Option<String> {
    let (visibility, name) = match item {
        syn::Item::Const(item) => (&item.vis, &item.ident),
        syn::Item::Enum(item) => (&item.vis, &item.ident),
        syn::Item::Fn(item) => (&item.vis, &item.sig.ident),
        syn::Item::Static(item) => (&item.vis, &item.ident),
        syn::Item::Struct(item) => (&item.vis, &item.ident),
        syn::Item::Trait(item) => (&item.vis, &item.ident),
        syn::Item::Type(item) => (&item.vis, &item.ident),
        syn::Item::Union(item) => (&item.vis, &item.ident),
        _ => return None,
    };
    is_public(visibility).then(|| name.to_string())
}

/// The public types that the definition of a macro names itself.
fn made_by(mac: &syn::Macro) -> Vec<String> {
    if !mac.path.is_ident("macro_rules") {
        return Vec::new();
    }
    let introductions = [["pub", "enum"], ["pub", "struct"]].map(|words| words.map(str::to_owned));
    let mut words = Vec::new();
    let tokens = TokenBuffer::new2(mac.tokens.clone());
    flatten(tokens.begin(), &mut words);
    let introduced = |at: usize| introductions.iter().any(|introduction| words[..at].ends_with(introduction));
    let is_name = |at: &usize| words[*at].starts_with(|first: char| first.is_ascii_uppercase());
    (0..words.len()).filter(is_name).filter(|at| introduced(*at)).map(|at| words[at].clone()).collect()
}

/// The identifiers, without their grouping; an empty text for each other token.
fn flatten(mut cursor: Cursor<'_>, words: &mut Vec<String>) {
    while !cursor.eof() {
        if let Some((ident, rest)) = cursor.ident() {
            words.push(ident.to_string());
            cursor = rest;
        } else if let Some((inner, _, _, rest)) = cursor.any_group() {
            flatten(inner, words);
            cursor = rest;
        } else {
            let (_, rest) = cursor.token_tree().expect("it is not at its end");
            words.push(String::new());
            cursor = rest;
        }
    }
}

const fn is_public(visibility: &syn::Visibility) -> bool {
    matches!(visibility, syn::Visibility::Public(_))
}

/// Whether an item is hidden, or there under the feature `unstable` alone.
fn is_hidden(attributes: &[syn::Attribute]) -> bool {
    let is_off = |attribute: String| attribute.contains("doc (hidden)") || attribute.contains("\"unstable\"");
    attributes.iter().any(|attribute| is_off(attribute.to_token_stream().to_string()))
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
