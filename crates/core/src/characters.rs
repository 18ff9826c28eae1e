//! Which characters a value, or a display name, must not contain (X-2, CL-73).
//!
//! [`first_unsafe_character`] refuses every joiner and variation selector, because two texts that differ only in these
//! can look the same. Two kinds of text need some of them: ENS names, for which ENSIP-15 decides, and display names,
//! which may contain emoji and scripts that are written with them.

use icu_properties::CodePointSetData;
use icu_properties::props::ExtendedPictographic;
use unicode_general_category::{GeneralCategory, get_general_category};

use crate::name::EnsName;
use crate::text::{first_unsafe_character, is_unsafe_character};

const ZERO_WIDTH_NON_JOINER: char = '\u{200c}';
const ZERO_WIDTH_JOINER: char = '\u{200d}';
const EMOJI_PRESENTATION: char = '\u{fe0f}';
const KEYCAP: char = '\u{20e3}';
const BLACK_FLAG: char = '\u{1f3f4}';
const CANCEL_TAG: char = '\u{e007f}';

/// Maximum length of a value that is searched for ENS names, in bytes. Normalisation costs far more per byte than any
/// other rule, and no honest value that contains a name is nearly this long.
const MAX_VALUE_BYTES: usize = 2048;

/// Maximum length of a subdivision code, such as `gbeng`, in characters.
const MAX_SUBDIVISION: usize = 6;

/// The first unsafe character of a value. Characters inside an ENS name in normal form are allowed, because ENSIP-15
/// keeps the joiners of emoji such as a family. Any part between ASCII separators may be a name.
pub fn first_unsafe_character_in_value(value: &str) -> Option<char> {
    let first = first_unsafe_character(value)?;
    if value.len() > MAX_VALUE_BYTES {
        return Some(first);
    }
    let is_separator = |c: char| c.is_ascii_punctuation() && !"-._$".contains(c) || c == ' ';
    value.split(is_separator).find_map(|part| first_unsafe_character(part).filter(|_| !is_normalized_ens_name(part)))
}

/// Whether `text` is an ENS name in normal form.
fn is_normalized_ens_name(text: &str) -> bool {
    EnsName::parse(text).is_ok_and(|name| name.as_str() == text)
}

/// A character hidden in a display name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HiddenCharacter {
    /// A bidirectional control, which reorders the displayed text.
    Direction(char),
    /// Another character that is invisible or affects how the text is displayed.
    Other(char),
}

/// The worst hidden character of a display name, if it has any.
///
/// A joiner, variation selector or tag counts as hidden unless it belongs to a valid emoji (UTS #51) or is ordinary in
/// its script.
pub fn find_hidden_character(text: &str) -> Option<HiddenCharacter> {
    first_unsafe_character(text)?;
    let mut direction = None;
    for (at, c) in text.char_indices().filter(|(_, c)| is_unsafe_character(*c)) {
        if is_bidi_control(c) {
            direction.get_or_insert(HiddenCharacter::Direction(c));
        } else if !is_legitimate_in_context(&text[..at], c, &text[at + c.len_utf8()..]) {
            return Some(HiddenCharacter::Other(c));
        }
    }
    direction
}

/// Whether `c` has the Unicode property Bidi_Control.
const fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether `c` is legitimate between these texts. Inspects a bounded number of neighbouring characters.
fn is_legitimate_in_context(before: &str, c: char, after: &str) -> bool {
    let previous = before.chars().next_back();
    match c {
        ZERO_WIDTH_JOINER => {
            is_between_joining_letters(before, after)
                || is_word_ending_joiner(before, after)
                || is_between_emoji(before, after)
        }
        ZERO_WIDTH_NON_JOINER => {
            is_between_joining_letters(before, after) || is_between_latin_and_arabic(before, after)
        }
        '\u{fe0e}' | EMOJI_PRESENTATION => match previous {
            Some('0'..='9' | '#' | '*') => after.starts_with(KEYCAP),
            Some(previous) => is_pictograph(previous),
            None => false,
        },
        '\u{fe00}' if previous.is_some_and(|c| is_myanmar(c) || is_phags_pa(c)) => true,
        '\u{fe00}'..='\u{fe02}' | '\u{e0100}'..='\u{e01ef}' => previous.is_some_and(is_han),
        '\u{180b}'..='\u{180d}' | '\u{180f}' => previous.is_some_and(is_mongolian),
        '\u{e0020}'..='\u{e007f}' => is_in_subdivision_flag(before, c, after),
        _ => false,
    }
}

/// Whether a joiner is between two elements of an emoji (UTS #51, ED-15a and ED-16).
fn is_between_emoji(before: &str, after: &str) -> bool {
    let is_modifier = |c: char| matches!(c, EMOJI_PRESENTATION | '\u{1f3fb}'..='\u{1f3ff}');
    let element = before.strip_suffix(is_modifier).unwrap_or(before);
    element.chars().next_back().is_some_and(is_pictograph) && after.chars().next().is_some_and(is_pictograph)
}

fn is_pictograph(c: char) -> bool {
    CodePointSetData::new::<ExtendedPictographic>().contains(c)
}

/// Maximum number of characters that are searched for the letter below a mark.
const MAX_MARKS: usize = 8;

/// Whether a joiner is between two letters, or their marks, of scripts that are written with joiners.
fn is_between_joining_letters(before: &str, after: &str) -> bool {
    let is_written = |c: char| is_written_with_joiners(c) || is_shared_mark(c);
    !before.ends_with(is_joiner)
        && after.chars().next().is_some_and(|c| is_written(c) && is_letter_or_mark(c))
        && base_letter(before).is_some_and(is_written_with_joiners)
}

/// Whether a zero width joiner shapes the end of a word: after a virama, as in an older spelling of a Malayalam chillu
/// or the Bengali khanda ta, or after the letter heh of an abbreviation such as that of the Hijri era.
fn is_word_ending_joiner(before: &str, after: &str) -> bool {
    match before.chars().next_back() {
        Some('\u{647}') => after.starts_with('.'),
        Some(c) if is_virama(c) => {
            after.chars().next().is_none_or(is_space_or_punctuation)
                && base_letter(before).is_some_and(is_written_with_joiners)
        }
        _ => false,
    }
}

/// Whether a zero width non-joiner is between a Latin letter or a digit and an Arabic letter, as in Persian affixes.
fn is_between_latin_and_arabic(before: &str, after: &str) -> bool {
    let is_arabic_letter = |c: char| is_arabic(c) && get_general_category(c) == GeneralCategory::OtherLetter;
    let (Some(left), Some(right)) = (before.chars().next_back(), after.chars().next()) else { return false };
    is_latin_or_digit(left) && is_arabic_letter(right) || is_arabic_letter(left) && is_latin_or_digit(right)
}

/// The letter at the end of a text, or that the marks and joiners at its end belong to.
fn base_letter(text: &str) -> Option<char> {
    for c in text.chars().rev().take(MAX_MARKS) {
        match get_general_category(c) {
            GeneralCategory::OtherLetter | GeneralCategory::ModifierLetter => return Some(c),
            GeneralCategory::NonspacingMark | GeneralCategory::SpacingMark => {}
            _ if is_joiner(c) => {}
            _ => return None,
        }
    }
    None
}

const fn is_joiner(c: char) -> bool {
    matches!(c, ZERO_WIDTH_JOINER | ZERO_WIDTH_NON_JOINER)
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

fn is_space_or_punctuation(c: char) -> bool {
    matches!(
        get_general_category(c),
        GeneralCategory::SpaceSeparator
            | GeneralCategory::ConnectorPunctuation
            | GeneralCategory::DashPunctuation
            | GeneralCategory::OpenPunctuation
            | GeneralCategory::ClosePunctuation
            | GeneralCategory::InitialPunctuation
            | GeneralCategory::FinalPunctuation
            | GeneralCategory::OtherPunctuation
    )
}

fn is_latin_or_digit(c: char) -> bool {
    let is_latin = matches!(c, '\0'..='\u{24f}' | '\u{1e00}'..='\u{1eff}') && c.is_alphabetic();
    is_latin || get_general_category(c) == GeneralCategory::DecimalNumber
}

// Scripts are identified by their blocks: looking up the Unicode property costs more, and every second character of a
// name may be a joiner.

/// Whether the script of `c` is cursive, or a descendant of Brahmi with conjuncts (The Unicode Standard, 23.2).
const fn is_written_with_joiners(c: char) -> bool {
    let is_syriac_or_nko = matches!(c, '\u{700}'..='\u{74f}' | '\u{7c0}'..='\u{7ff}' | '\u{860}'..='\u{86f}');
    // Devanagari, Bengali, Gurmukhi, Gujarati, Oriya, Tamil, Telugu, Kannada, Malayalam and Sinhala.
    let is_indic = matches!(c, '\u{900}'..='\u{dff}' | '\u{a8e0}'..='\u{a8ff}');
    let is_khmer = matches!(c, '\u{1780}'..='\u{17ff}');
    let is_balinese_or_javanese = matches!(c, '\u{1b00}'..='\u{1b7f}' | '\u{a980}'..='\u{a9df}');
    is_arabic(c)
        || is_syriac_or_nko
        || is_indic
        || is_khmer
        || is_balinese_or_javanese
        || is_mongolian(c)
        || is_myanmar(c)
}

const fn is_arabic(c: char) -> bool {
    matches!(
        c,
        '\u{600}'..='\u{6ff}'
            | '\u{750}'..='\u{77f}'
            | '\u{870}'..='\u{8ff}'
            | '\u{fb50}'..='\u{fdff}'
            | '\u{fe70}'..='\u{fefc}'
    )
}

const fn is_mongolian(c: char) -> bool {
    matches!(c, '\u{1800}'..='\u{18af}')
}

const fn is_myanmar(c: char) -> bool {
    matches!(c, '\u{1000}'..='\u{109f}' | '\u{a9e0}'..='\u{a9ff}' | '\u{aa60}'..='\u{aa7f}')
}

const fn is_phags_pa(c: char) -> bool {
    matches!(c, '\u{a840}'..='\u{a87f}')
}

const fn is_han(c: char) -> bool {
    matches!(
        c,
        '\u{2e80}'..='\u{2fdf}'
            | '\u{3005}'
            | '\u{3007}'
            | '\u{3021}'..='\u{3029}'
            | '\u{3038}'..='\u{303b}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{f900}'..='\u{faff}'
            | '\u{20000}'..='\u{3ffff}'
    )
}

/// Whether `c` is in a block of marks that several scripts share: combining diacritical and Vedic marks.
const fn is_shared_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{1cd0}'..='\u{1cff}')
}

/// Whether `c` is the virama (Canonical_Combining_Class 9) of a script that is written with joiners.
const fn is_virama(c: char) -> bool {
    matches!(
        c,
        '\u{94d}'
            | '\u{9cd}'
            | '\u{a4d}'
            | '\u{acd}'
            | '\u{b4d}'
            | '\u{bcd}'
            | '\u{c4d}'
            | '\u{ccd}'
            | '\u{d3b}'..='\u{d3c}'
            | '\u{d4d}'
            | '\u{dca}'
            | '\u{1039}'..='\u{103a}'
            | '\u{17d2}'
            | '\u{1b44}'
            | '\u{a9c0}'
    )
}

/// Whether a tag character is part of a subdivision flag: a black flag, the two letters of a country, one to four
/// letters or digits, and the cancel tag (UTS #51, ED-14a).
fn is_in_subdivision_flag(before: &str, c: char, after: &str) -> bool {
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
    use crate::name::normalize_ens_name;

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
            assert_eq!(first_unsafe_character_in_value(&value), None, "{value}");
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
            assert!(first_unsafe_character_in_value(value).is_some(), "{value:?}");
        }
        let long = format!("{FAMILY}.eth/").repeat(MAX_VALUE_BYTES);
        assert!(first_unsafe_character_in_value(&long).is_some(), "its length bounds the cost");
    }

    #[test]
    fn normal_names_are_never_unsafe() {
        let mut kept = 0;
        for emoji in ens_normalize::ens_emoji() {
            let name: String = emoji.into_iter().filter_map(char::from_u32).collect();
            let name = normalize_ens_name(&name).expect("an emoji of ENSIP-15");
            kept += usize::from(first_unsafe_character(&name).is_some());
            assert_eq!(first_unsafe_character_in_value(&name), None, "{name:?}");
        }
        assert!(kept > 1000, "{kept} emoji have a joiner or a tag");
        // Higher planes contain only private-use and unassigned characters.
        let planes = (0..0x2_0000).chain(0xe_0000..0xe_1000);
        for c in planes.filter_map(char::from_u32).filter(|c| is_unsafe_character(*c)) {
            let name = format!("a{c}b");
            let is_kept = normalize_ens_name(&name).is_ok_and(|normal| normal == name);
            assert!(!is_kept || first_unsafe_character_in_value(&name).is_none(), "{c:?}");
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
            "അവന\u{d4d}\u{200d}",
            "അവന\u{d4d}\u{200d} അവ",
            "উত\u{9cd}\u{200d}",
            "উত\u{9cd}\u{200d}।",
            "PDF\u{200c}ها",
            "غیر\u{200c}HTTP",
            "۱۲\u{200c}ساله",
            "12\u{200c}ساله",
            "۱۴۰۳ ه\u{200d}.ش",
            "\u{1b13}\u{1b44}\u{200c}\u{1b13}",
            "\u{a98f}\u{a9c0}\u{200c}\u{a98f}",
            "葛\u{e0100}城",
            "ᠠ\u{180b}",
        ] {
            assert_eq!(find_hidden_character(name), None, "{name:?}");
        }
    }

    #[test]
    fn hidden_characters_fail_in_names_for_people() {
        for name in [
            "Summarize\u{200b}Agent",
            "Summarize\u{200d}Agent",
            "Agent\u{200c}",
            "Agente\u{301}\u{200d}\u{301}",
            "Auf\u{200c}lage",
            "क\u{200d}",
            "क\u{200d} ख",
            "क\u{94d}\u{200c} ख",
            "क\u{94d}\u{200d}\u{200d}",
            "क\u{94d}\u{200d}a",
            "क\u{94d}\u{200d}👨",
            "a\u{94d}\u{200d}",
            "\u{94d}\u{200d}",
            "a\u{64b}\u{200d}\u{64b}",
            "\u{200d}क",
            "\u{200c}ها",
            "PDF\u{200d}ها",
            "PDF\u{200c}\u{200c}ها",
            "PDF \u{200c}ها",
            "PDF\u{200c} ها",
            "PDF\u{200c}\u{64b}",
            "12\u{200c}34",
            "به\u{200c} ناو",
            "ه\u{200d} ش",
            "ب\u{200d}.ش",
            "ه\u{200c}.ش",
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
            assert!(
                matches!(find_hidden_character(name), Some(HiddenCharacter::Other(_))),
                "{name:?}: {:?}",
                find_hidden_character(name)
            );
        }
    }

    #[test]
    fn the_worst_hidden_character_is_given() {
        assert_eq!(find_hidden_character("Agent\u{202e}tnegA"), Some(HiddenCharacter::Direction('\u{202e}')));
        assert_eq!(find_hidden_character("\u{200f}وكيل"), Some(HiddenCharacter::Direction('\u{200f}')));
        assert_eq!(find_hidden_character("a\u{202e}b\u{200b}"), Some(HiddenCharacter::Other('\u{200b}')));
        assert_eq!(find_hidden_character("plain"), None);
    }
}
