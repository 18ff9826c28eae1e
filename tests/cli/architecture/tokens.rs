//! What stands in tokens without a tree: in what a macro is given, and in an attribute.

use std::collections::BTreeSet;

use syn::buffer::{Cursor, TokenBuffer};

/// The paths and texts in a run of tokens.
#[derive(Default)]
pub(crate) struct Tokens {
    pub(crate) paths: Vec<Vec<String>>,
    /// The words in the texts.
    pub(crate) words: BTreeSet<String>,
}

impl Tokens {
    /// What a macro is given.
    pub(crate) fn of_macro(found: &syn::Macro) -> Self {
        Self::of(&TokenBuffer::new2(found.tokens.clone()))
    }

    /// What an attribute is given.
    pub(crate) fn of_attribute(found: &syn::MetaList) -> Self {
        Self::of(&TokenBuffer::new2(found.tokens.clone()))
    }

    fn of(given: &TokenBuffer) -> Self {
        let mut tokens = Self::default();
        tokens.read(given.begin());
        tokens
    }

    pub(crate) fn read(&mut self, mut cursor: Cursor<'_>) {
        while !cursor.eof() {
            if let Some((path, rest)) = path_at(cursor) {
                self.paths.push(path);
                cursor = rest;
            } else if let Some((inner, _, _, rest)) = cursor.any_group() {
                self.read(inner);
                cursor = rest;
            } else if let Some((literal, rest)) = cursor.literal() {
                if let syn::Lit::Str(text) = syn::Lit::new(literal) {
                    self.add_text(&text.value());
                    self.paths.extend(path_in(&text.value()));
                }
                cursor = rest;
            } else {
                cursor = cursor.token_tree().expect("it is not at its end").1;
            }
        }
    }

    pub(crate) fn add_text(&mut self, text: &str) {
        let is_of_slug = |c: char| c.is_ascii_lowercase() || c == '-';
        self.words.extend(text.split(|c| !is_of_slug(c)).filter(|word| !word.is_empty()).map(str::to_owned));
    }
}

/// The path that a text is, such as the `"crate::forms::read_whole"` of an attribute.
fn path_in(text: &str) -> Option<Vec<String>> {
    let path = text.strip_prefix("crate::").and_then(|_| syn::parse_str::<syn::Path>(text).ok())?;
    Some(path.segments.iter().map(|segment| segment.ident.to_string()).collect())
}

/// The path that begins at a token, and what is behind it.
fn path_at(cursor: Cursor<'_>) -> Option<(Vec<String>, Cursor<'_>)> {
    let (first, mut rest) = cursor.ident()?;
    let mut path = vec![first.to_string()];
    while let Some((segment, behind)) = separator(rest).and_then(Cursor::ident) {
        path.push(segment.to_string());
        rest = behind;
    }
    Some((path, rest))
}

fn separator(cursor: Cursor<'_>) -> Option<Cursor<'_>> {
    let (first, rest) = cursor.punct()?;
    let (second, rest) = rest.punct()?;
    (first.as_char() == ':' && second.as_char() == ':').then_some(rest)
}
