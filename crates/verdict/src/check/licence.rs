//! The card's licence: CL-26.

use spdx::{Expression, LicenseItem, ParseMode};

use crate::card::AgentCard;
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_core::text::excerpt_text;

/// Maximum bytes of an SPDX expression or licence name. Longer texts are prose.
const MAX_LICENCE_BYTES: usize = 256;

/// How clearly a card states the terms of its agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LicenceClarity {
    /// An SPDX expression that can be satisfied with licences approved by OSI or FSF.
    Open,
    /// A `LicenseRef-`, a URL, or a text that points to the terms.
    Documented,
    /// An SPDX expression that requires a licence approved by neither.
    NotOpen,
    /// A text that documents no terms.
    Unrecognized,
}

impl LicenceClarity {
    /// Classifies the text of a `license` member.
    pub fn classify(text: &str) -> Self {
        let short = text.len() <= MAX_LICENCE_BYTES;
        if short && let Some(expression) = parse_expression(text) {
            return Self::classify_expression(&expression);
        }
        if short && let Some(licence) = licence_by_title(text) {
            return if is_open_licence(licence) { Self::Documented } else { Self::NotOpen };
        }
        if leading_licence(text).is_some_and(|licence| !is_open_licence(licence)) {
            return Self::NotOpen;
        }
        if leads_to_terms(text) { Self::Documented } else { Self::Unrecognized }
    }

    fn classify_expression(expression: &Expression) -> Self {
        let own = |item: &LicenseItem| matches!(item, LicenseItem::Other { .. });
        let open = |item: &LicenseItem| item.id().is_some_and(is_open_licence);
        if expression.evaluate(|term| open(&term.license)) {
            Self::Open
        } else if expression.evaluate(|term| open(&term.license) || own(&term.license)) {
            Self::Documented
        } else {
            Self::NotOpen
        }
    }

    /// The name of this variant in the evidence.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Documented => "documented",
            Self::NotOpen => "not-open",
            Self::Unrecognized => "unrecognized",
        }
    }
}

pub(super) fn licence_reason(card: &AgentCard) -> Option<Reason> {
    let text = card.text_at("/license")?;
    let code = match LicenceClarity::classify(text) {
        LicenceClarity::Open | LicenceClarity::Documented => return None,
        LicenceClarity::NotOpen => ReasonCode::LicenseNotOpen,
        LicenceClarity::Unrecognized => ReasonCode::LicenseUnrecognized,
    };
    Some(Reason::new(code).observed(excerpt_text(text)).at_place("/license"))
}

fn is_open_licence(licence: spdx::LicenseId) -> bool {
    licence.is_osi_approved() || licence.is_fsf_free_libre()
}

/// Parses an SPDX expression. Its identifiers are case-insensitive (SPDX 2.3, annex D).
fn parse_expression(text: &str) -> Option<Expression> {
    let mode = ParseMode { allow_deprecated: true, allow_postfix_plus_on_gpl: true, ..ParseMode::STRICT };
    let read = |text: &str| Expression::parse_mode(text, mode).ok();
    read(text).or_else(|| read(&text.split_inclusive([' ', '(', ')', '+']).map(spdx_spelling).collect::<String>()))
}

/// Replaces a word, up to its delimiters, with the spelling in the SPDX licence list.
fn spdx_spelling(word: &str) -> String {
    let name = word.trim_end_matches([' ', '(', ')', '+']);
    let listed = spdx::identifiers::LICENSES.iter().find(|licence| licence.name.eq_ignore_ascii_case(name));
    listed.map_or_else(|| word.to_owned(), |licence| licence.name.to_owned() + &word[name.len()..])
}

/// The licence that the whole text names by its title or a common alias (`MIT License`).
fn licence_by_title(text: &str) -> Option<spdx::LicenseId> {
    let text = text.trim();
    let title = spdx::identifiers::LICENSES.iter().find(|licence| licence.full_name.eq_ignore_ascii_case(text));
    match title {
        Some(title) => spdx::license_id(title.name),
        None => {
            spdx::imprecise_license_id(text).filter(|(_, length)| *length == text.len()).map(|(licence, _)| licence)
        }
    }
}

/// The licence whose identifier or title begins the text. Identifiers of letters only are ignored: they are also
/// words.
fn leading_licence(text: &str) -> Option<spdx::LicenseId> {
    let text = text.trim_start();
    let begins = |name: &str| {
        text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
            && !text[name.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '-' || c == '.')
    };
    let is_word = |name: &str| name.bytes().all(|b| b.is_ascii_alphabetic());
    let mut known = spdx::identifiers::LICENSES.iter();
    let known = known.find(|known| !is_word(known.name) && begins(known.name) || begins(known.full_name));
    known.and_then(|known| spdx::license_id(known.name))
}

/// Words that negate their clause.
const NEGATIONS: [&str; 6] = ["no", "none", "nor", "not", "never", "without"];

/// Whether a word points to the terms: a web address, a `LicenseRef-`, or a common file name. In a negated clause ("NO
/// LICENSE"), a file name needs an extension or a folder.
fn leads_to_terms(text: &str) -> bool {
    let plain = |word| str::trim_matches(word, |c: char| "()[]<>\"',;.:".contains(c));
    let is_negation = |word: &str| NEGATIONS.iter().any(|no| word.eq_ignore_ascii_case(no));
    let words: Vec<&str> = text.split_whitespace().collect();
    words.split_inclusive(|word| word.ends_with(['.', ',', ';'])).any(|clause| {
        let words = || clause.iter().copied().map(plain);
        let is_denied = words().any(is_negation);
        words().any(|word| is_web_address(word) || word.starts_with("LicenseRef-") || is_terms_file(word, is_denied))
    })
}

/// Whether a word is a common name of a file with licence terms.
fn is_terms_file(word: &str, is_denied: bool) -> bool {
    const FILES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "TERMS", "EULA"];
    let name = word.rsplit('/').next().unwrap_or(word);
    let stem = name.split('.').next().unwrap_or(name);
    FILES.contains(&stem) && (!is_denied || stem.len() < word.len())
}

fn is_web_address(text: &str) -> bool {
    url::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "https" | "http"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_are_told_apart() {
        for (text, expected) in [
            ("Apache-2.0", LicenceClarity::Open),
            ("MIT OR Apache-2.0", LicenceClarity::Open),
            ("GPL-2.0", LicenceClarity::Open),
            ("GPL-2.0-or-later WITH Classpath-exception-2.0", LicenceClarity::Open),
            ("CC-BY-4.0", LicenceClarity::Open),
            ("MIT OR CC-BY-NC-4.0", LicenceClarity::Open),
            ("MIT AND CC-BY-NC-4.0", LicenceClarity::NotOpen),
            ("CC-BY-NC-4.0", LicenceClarity::NotOpen),
            ("BUSL-1.1", LicenceClarity::NotOpen),
            ("LicenseRef-CommandLayer-1", LicenceClarity::Documented),
            ("Apache-2.0 AND LicenseRef-Own", LicenceClarity::Documented),
            ("CC-BY-NC-4.0 AND LicenseRef-Own", LicenceClarity::NotOpen),
            ("https://commandlayer.org/licence.txt", LicenceClarity::Documented),
            ("Proprietary, see https://commandlayer.org/terms", LicenceClarity::Documented),
            ("See the file LICENSE.md", LicenceClarity::Documented),
            ("MIT License", LicenceClarity::Documented),
            ("Apache License 2.0", LicenceClarity::Documented),
            ("Business Source License 1.1", LicenceClarity::NotOpen),
            ("https://terms.example/", LicenceClarity::Documented),
            ("apache-2.0", LicenceClarity::Open),
            ("bsd-3-clause OR mit", LicenceClarity::Open),
            ("(mit AND cc-by-nc-4.0)", LicenceClarity::NotOpen),
            ("GPL-2.0+", LicenceClarity::Open),
            ("lgpl-2.1+", LicenceClarity::Open),
            ("Proprietary", LicenceClarity::Unrecognized),
            ("Do what you like", LicenceClarity::Unrecognized),
            ("All rights reserved. No license is granted.", LicenceClarity::Unrecognized),
            ("MIT but not on Sundays", LicenceClarity::Unrecognized),
            ("See LICENSE", LicenceClarity::Documented),
            ("SEE LICENSE IN TERMS", LicenceClarity::Documented),
            ("as in the LICENSE", LicenceClarity::Documented),
            ("legal/COPYING", LicenceClarity::Documented),
            ("NO LICENSE", LicenceClarity::Unrecognized),
            ("ALL RIGHTS RESERVED. NO LICENSE IS GRANTED", LicenceClarity::Unrecognized),
            ("NO TERMS.", LicenceClarity::Unrecognized),
            ("LICENSE: none", LicenceClarity::Unrecognized),
            ("LICENSE", LicenceClarity::Documented),
            ("See: LICENSE", LicenceClarity::Documented),
            ("Refer to LICENSE", LicenceClarity::Documented),
            ("Licensed under the terms of LICENSE", LicenceClarity::Documented),
            ("See the accompanying file named LICENSE", LicenceClarity::Documented),
            ("NO WARRANTY, SEE LICENSE", LicenceClarity::Documented),
            ("Not MIT. See LICENSE", LicenceClarity::Documented),
            ("BUSL-1.1 LICENSE", LicenceClarity::NotOpen),
            ("busl-1.1, see LICENSE.md", LicenceClarity::NotOpen),
            ("Business Source License 1.1 (see LICENSE.md)", LicenceClarity::NotOpen),
            ("Apache-2.0, see LICENSE.md", LicenceClarity::Documented),
            ("Xerox terms, see https://terms.example/", LicenceClarity::Documented),
            ("BUSL-1.1.2, see LICENSE.md", LicenceClarity::Documented),
        ] {
            assert_eq!(LicenceClarity::classify(text), expected, "{text}");
        }
        assert_eq!(LicenceClarity::classify(&"MIT OR ".repeat(100_000)), LicenceClarity::Unrecognized);
    }
}
