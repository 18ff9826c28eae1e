//! Which characters a value, or a display name, must not contain (X-2, CL-73).
//!
//! [`unsafe_character`] refuses every joiner and variation selector, because two texts that differ only in these can
//! look the same. Two kinds of text need some of them: ENS names, for which ENSIP-15 decides, and display names, which
//! may contain emoji and scripts that are written with them.

use icu_properties::props::{ExtendedPictographic, Script};
use icu_properties::{CodePointMapData, CodePointSetData};
use unicode_general_category::{GeneralCategory, get_general_category};

use crate::name::EnsName;
use crate::text::{is_unsafe, unsafe_character};

const ZERO_WIDTH_NON_JOINER: char = '\u{200c}';
const ZERO_WIDTH_JOINER: char = '\u{200d}';
const EMOJI_PRESENTATION: char = '\u{fe0f}';
const KEYCAP: char = '\u{20e3}';
const BLACK_FLAG: char = '\u{1f3f4}';
const CANCEL_TAG: char = '\u{e007f}';

/// Longest value that is searched for ENS names, in bytes. Normalisation costs far more per byte than any other rule,
/// and no honest value that contains a name is nearly this long.
const MAX_VALUE_BYTES: usize = 2048;

/// Longest subdivision code, such as `gbeng`, in characters.
const MAX_SUBDIVISION: usize = 6;

/// The first unsafe character of a value. Characters inside an ENS name in normal form are allowed, because ENSIP-15
/// keeps the joiners of emoji such as a family. Any part between ASCII separators may be a name.
pub fn unsafe_in_value(value: &str) -> Option<char> {
    let first = unsafe_character(value)?;
    if value.len() > MAX_VALUE_BYTES {
        return Some(first);
    }
    let is_separator = |c: char| c.is_ascii_punctuation() && !"-._$".contains(c) || c == ' ';
    value.split(is_separator).find_map(|part| unsafe_character(part).filter(|_| !is_normal(part)))
}

/// Whether `text` is an ENS name in normal form.
fn is_normal(text: &str) -> bool {
    EnsName::parse(text).is_ok_and(|name| name.as_str() == text)
}

/// A character hidden in a display name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hidden {
    /// A bidirectional control, which reorders the displayed text.
    Direction(char),
    /// Another character that is invisible or affects how the text is displayed.
    Other(char),
}

/// The worst hidden character of a display name, if it has any.
///
/// A joiner, variation selector or tag counts as hidden unless it belongs to a valid emoji (UTS #51) or is ordinary in
/// its script.
pub fn hidden_in_name(text: &str) -> Option<Hidden> {
    unsafe_character(text)?;
    let mut direction = None;
    for (at, c) in text.char_indices().filter(|(_, c)| is_unsafe(*c)) {
        if is_direction(c) {
            direction.get_or_insert(Hidden::Direction(c));
        } else if !is_ordinary(&text[..at], c, &text[at + c.len_utf8()..]) {
            return Some(Hidden::Other(c));
        }
    }
    direction
}

/// Whether `c` has the Unicode property Bidi_Control.
const fn is_direction(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether `c` is legitimate between these texts. Inspects a bounded number of neighbouring characters.
fn is_ordinary(before: &str, c: char, after: &str) -> bool {
    let previous = before.chars().next_back();
    let follows = |script: Script| previous.is_some_and(|previous| script_of(previous) == script);
    match c {
        ZERO_WIDTH_JOINER => joins_emoji(before, after) || joins_letters(before, after),
        ZERO_WIDTH_NON_JOINER => joins_letters(before, after),
        '\u{fe0e}' | EMOJI_PRESENTATION => match previous {
            Some('0'..='9' | '#' | '*') => after.starts_with(KEYCAP),
            Some(previous) => is_pictograph(previous),
            None => false,
        },
        '\u{fe00}' if follows(Script::Myanmar) || follows(Script::PhagsPa) => true,
        '\u{fe00}'..='\u{fe02}' | '\u{e0100}'..='\u{e01ef}' => follows(Script::Han),
        '\u{180b}'..='\u{180d}' | '\u{180f}' => follows(Script::Mongolian),
        '\u{e0020}'..='\u{e007f}' => is_in_flag(before, c, after),
        _ => false,
    }
}

/// Whether a joiner is between two elements of an emoji (UTS #51, ED-15a and ED-16).
fn joins_emoji(before: &str, after: &str) -> bool {
    let is_modifier = |c: char| matches!(c, EMOJI_PRESENTATION | '\u{1f3fb}'..='\u{1f3ff}');
    let element = before.strip_suffix(is_modifier).unwrap_or(before);
    element.chars().next_back().is_some_and(is_pictograph) && after.chars().next().is_some_and(is_pictograph)
}

fn is_pictograph(c: char) -> bool {
    CodePointSetData::new::<ExtendedPictographic>().contains(c)
}

/// Most marks on a letter that are skipped to find its script.
const MAX_MARKS: usize = 8;

/// Whether a joiner is between two letters, or their marks, of scripts that are written with joiners.
fn joins_letters(before: &str, after: &str) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(is_letter_or_mark);
    let script_after = after.chars().next().map(script_of);
    is_letter(before.chars().next_back())
        && is_letter(after.chars().next())
        && base_script(before).is_some_and(is_written_with_joiners)
        && script_after.is_some_and(|script| script == Script::Inherited || is_written_with_joiners(script))
}

/// The script of the last letter. A mark that several scripts share takes the script of its base letter.
fn base_script(text: &str) -> Option<Script> {
    text.chars().rev().take(MAX_MARKS).map(script_of).find(|script| *script != Script::Inherited)
}

fn is_letter_or_mark(c: char) -> bool {
    matches!(
        get_general_category(c),
        GeneralCategory::OtherLetter
            | GeneralCategory::ModifierLetter
            | GeneralCategory::NonspacingMark
            | GeneralCategory::SpacingMark
    )
}

fn script_of(c: char) -> Script {
    CodePointMapData::<Script>::new().get(c)
}

/// Whether the script is cursive, or a descendant of Brahmi with conjuncts (The Unicode Standard, 23.2).
fn is_written_with_joiners(script: Script) -> bool {
    matches!(
        script,
        Script::Arabic
            | Script::Bengali
            | Script::Devanagari
            | Script::Gujarati
            | Script::Gurmukhi
            | Script::Kannada
            | Script::Khmer
            | Script::Malayalam
            | Script::Mongolian
            | Script::Myanmar
            | Script::Nko
            | Script::Oriya
            | Script::Sinhala
            | Script::Syriac
            | Script::Tamil
            | Script::Telugu
    )
}

/// Whether a tag character is part of a subdivision flag: a black flag, the two letters of a country, one to four
/// letters or digits, and the cancel tag (UTS #51, ED-14a).
fn is_in_flag(before: &str, c: char, after: &str) -> bool {
    let is_tag = |c: &char| matches!(c, '\u{e0020}'..='\u{e007e}');
    let left: Vec<char> = before.chars().rev().take(MAX_SUBDIVISION).take_while(is_tag).collect();
    let is_based = before.chars().rev().nth(left.len()) == Some(BLACK_FLAG);
    let tags = left.into_iter().rev().chain([c]).chain(after.chars()).take(MAX_SUBDIVISION + 1);
    let mut tags: Vec<char> = tags.take_while(|tag| is_tag(tag) || *tag == CANCEL_TAG).collect();
    let end = tags.iter().position(|tag| *tag == CANCEL_TAG);
    tags.truncate(end.unwrap_or_default());
    let is_letter = |tag: &char| matches!(tag, '\u{e0061}'..='\u{e007a}');
    let is_digit = |tag: &char| matches!(tag, '\u{e0030}'..='\u{e0039}');
    is_based
        && (3..=MAX_SUBDIVISION).contains(&tags.len())
        && tags.iter().take(2).all(is_letter)
        && tags.iter().all(|tag| is_letter(tag) || is_digit(tag))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::normalize;

    const FAMILY: &str = "👨\u{200d}👩\u{200d}👧";
    const ENGLAND: &str = "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}";

    #[test]
    fn joiners_of_normal_names_are_safe_in_values() {
        for value in [
            format!("{FAMILY}.eth"),
            format!("shop.{FAMILY}{ENGLAND}.eth"),
            format!("x402://{FAMILY}.eth/summarize/v1"),
            format!("https://cards.example/agents/commons/{FAMILY}.eth.json?name={FAMILY}.eth"),
        ] {
            assert_eq!(unsafe_in_value(&value), None, "{value}");
        }
    }

    #[test]
    fn joiners_outside_of_normal_names_are_unsafe() {
        for value in [
            "summarize\u{200d}agent.eth",
            "\u{200d}👨.eth",
            "👨\u{200d}.eth",
            "👨\u{200c}👩.eth",
            "❤\u{fe0f}.eth",
            "x402://👨\u{200d}👩\u{200d}👧.eth/summarize\u{200d}/v1",
            "🏴\u{e0067}\u{e0062}.eth",
            "👨\u{200d}👩\u{200d}👧\u{202e}.eth",
            "👨\u{200d}👩\u{200d}👧.eth\n",
            "👨\u{200d}👩\u{200d}👧.eth\u{feff}",
        ] {
            assert!(unsafe_in_value(value).is_some(), "{value:?}");
        }
        let long = format!("{FAMILY}.eth/").repeat(MAX_VALUE_BYTES);
        assert!(unsafe_in_value(&long).is_some(), "its length bounds the cost");
    }

    #[test]
    fn normal_names_are_never_unsafe() {
        let mut kept = 0;
        for emoji in ens_normalize::ens_emoji() {
            let name: String = emoji.into_iter().filter_map(char::from_u32).collect();
            let name = normalize(&name).expect("an emoji of ENSIP-15");
            kept += usize::from(unsafe_character(&name).is_some());
            assert_eq!(unsafe_in_value(&name), None, "{name:?}");
        }
        assert!(kept > 1000, "{kept} emoji have a joiner or a tag");
        // Higher planes contain only private-use and unassigned characters.
        let planes = (0..0x2_0000).chain(0xe_0000..0xe_1000);
        for c in planes.filter_map(char::from_u32).filter(|c| is_unsafe(*c)) {
            let name = format!("a{c}b");
            let is_kept = normalize(&name).is_ok_and(|normal| normal == name);
            assert!(!is_kept || unsafe_in_value(&name).is_none(), "{c:?}");
        }
    }

    #[test]
    fn emoji_and_scripts_pass_in_names_for_people() {
        for name in [
            FAMILY,
            ENGLAND,
            "Agent 👩🏽\u{200d}🚀",
            "🏳\u{fe0f}\u{200d}🌈 pride",
            "⚖\u{fe0f} Judge",
            "❤\u{fe0e}",
            "Agent 1\u{fe0f}\u{20e3}",
            "🏃\u{200d}➡\u{fe0f}",
            "می\u{200c}خواهم",
            "رو\u{200c}به\u{200c}رو",
            "क्\u{200d}ष",
            "ശ്രീ ന\u{d4d}\u{200d}മ",
            "র\u{200d}\u{9cd}যাম",
            "葛\u{e0100}城",
            "ᠠ\u{180b}",
        ] {
            assert_eq!(hidden_in_name(name), None, "{name:?}");
        }
    }

    #[test]
    fn hidden_characters_fail_in_names_for_people() {
        for name in [
            "Summarize\u{200b}Agent",
            "Summarize\u{200d}Agent",
            "Agent\u{200c}",
            "Agente\u{301}\u{200d}\u{301}",
            "क\u{200d}",
            "\u{200d}👨",
            "👨\u{200d}a",
            "👨\u{200d}\u{200d}👩",
            "a\u{fe0f}",
            "1\u{fe0f}",
            "👨\u{fe0f}\u{fe0f}",
            "a\u{e0100}",
            "\u{feff}Agent",
            "Agent\u{2060}",
            "🏴\u{e0067}\u{e0062}",
            "🏴\u{e0067}\u{e007f}",
            "a\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
            "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e0067}\u{e0067}\u{e007f}",
            "🏴\u{e0031}\u{e0062}\u{e0065}\u{e007f}",
            "tab\there",
            "Agent\u{3164}",
        ] {
            assert!(matches!(hidden_in_name(name), Some(Hidden::Other(_))), "{name:?}: {:?}", hidden_in_name(name));
        }
    }

    #[test]
    fn the_worst_hidden_character_is_given() {
        assert_eq!(hidden_in_name("Agent\u{202e}tnegA"), Some(Hidden::Direction('\u{202e}')));
        assert_eq!(hidden_in_name("\u{200f}وكيل"), Some(Hidden::Direction('\u{200f}')));
        assert_eq!(hidden_in_name("a\u{202e}b\u{200b}"), Some(Hidden::Other('\u{200b}')));
        assert_eq!(hidden_in_name("plain"), None);
    }
}
