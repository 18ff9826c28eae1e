//! BIP-39 seed phrases, by the English word list and the checksum.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use clresolve_core::digest::Digest;

use super::TokenSeparators;

/// The word list in order: `bip-0039/english.txt` of <https://github.com/bitcoin/bips>.
static LIST: LazyLock<Vec<&'static str>> = LazyLock::new(|| include_str!("english.txt").lines().collect());

/// The lengths of the words in the list, in bytes.
const LENGTHS: RangeInclusive<usize> = 3..=8;

/// Number of bits that encode a word's index.
const WORD_BITS: usize = 11;

/// The name of the finding in a reason.
pub(super) const KIND: &str = "a seed phrase";

/// The possible numbers of words in a phrase.
const COUNTS: [usize; 5] = [12, 15, 18, 21, 24];

/// Length of the longest phrase, in bytes, including its checksum.
const MAX_BYTES: usize = COUNTS[4] * WORD_BITS / 8;

/// Maximum length of a run of listed words that is searched: a phrase and two words of the surrounding text. A longer
/// run is a word list.
const MAX_ROW: usize = COUNTS[4] + 2;

/// Length of the shortest phrase, in bytes: twelve words of three letters.
pub(super) const MIN_BYTES: usize = 47;

/// Maximum number of checksums computed per card. A card of 256 KiB has room for 13,000, each of which costs as many
/// instructions. A card that contains a phrase by accident has few runs of listed words.
const MAX_CHECKSUMS: usize = 256;

/// The search for phrases with a valid checksum in one card.
pub(in crate::check::content) struct SeedPhraseSearch {
    checksums_left: usize,
}

impl SeedPhraseSearch {
    pub(in crate::check::content) const fn new() -> Self {
        Self { checksums_left: MAX_CHECKSUMS }
    }

    /// Whether a run of words in `text` is a phrase, whatever separates its words.
    pub(super) fn contains_seed_phrase(&mut self, text: &str) -> bool {
        if text.len() < MIN_BYTES || self.checksums_left == 0 || !may_contain_seed_phrase(text) {
            return false;
        }
        let mut row = Vec::new();
        let mut length = 0;
        for word in TokenSeparators::ALL_BUT_LETTERS.split(text) {
            if let Some(place) = bip39_word_index(word) {
                length += 1;
                if length <= MAX_ROW {
                    row.push(place);
                }
                continue;
            }
            if length <= MAX_ROW && self.has_phrase_in_row(&row) {
                return true;
            }
            row.clear();
            length = 0;
        }
        length <= MAX_ROW && self.has_phrase_in_row(&row)
    }

    pub(super) fn is_seed_phrase<'w>(&mut self, words: impl ExactSizeIterator<Item = &'w str>) -> bool {
        if !COUNTS.contains(&words.len()) {
            return false;
        }
        words.map(bip39_word_index).collect::<Option<Vec<_>>>().is_some_and(|places| self.has_checksum(&places))
    }

    /// Whether `row` contains the longest phrase that fits into it.
    fn has_phrase_in_row(&mut self, row: &[u16]) -> bool {
        let count = COUNTS.iter().rfind(|count| **count <= row.len());
        count.is_some_and(|count| row.windows(*count).any(|places| self.has_checksum(places)))
    }

    fn has_checksum(&mut self, places: &[u16]) -> bool {
        let Some(left) = self.checksums_left.checked_sub(1) else { return false };
        self.checksums_left = left;
        has_checksum(places)
    }
}

/// A cheap test before the words are looked up: whether enough words in a row have a length in [`LENGTHS`].
fn may_contain_seed_phrase(text: &str) -> bool {
    let (mut length, mut letters) = (0, 0);
    text.bytes().chain([b'.']).any(|byte| {
        if byte.is_ascii_alphabetic() {
            letters += 1;
        } else if letters > 0 {
            length = if LENGTHS.contains(&letters) { length + 1 } else { 0 };
            letters = 0;
        }
        length == COUNTS[0]
    })
}

/// Whether the trailing checksum bits (1 of each 33) equal the first bits of the entropy's SHA-256.
fn has_checksum(places: &[u16]) -> bool {
    let mut bytes = [0_u8; MAX_BYTES];
    for (at, place) in places.iter().enumerate() {
        for bit in 0..WORD_BITS {
            let (to, is_set) = (at * WORD_BITS + bit, place >> (WORD_BITS - 1 - bit) & 1 == 1);
            bytes[to / 8] |= u8::from(is_set) << (7 - to % 8);
        }
    }
    let checksum_bits = places.len() / 3;
    let (entropy, checksum) = bytes.split_at(places.len() * 4 / 3);
    (Digest::compute(entropy).as_bytes()[0] ^ checksum[0]) >> (8 - checksum_bits) == 0
}

/// Whether the words could be a phrase that a name announces: the right number of words, all listed. The checksum is
/// ignored.
pub(super) fn may_be_announced_phrase<'w>(words: impl Iterator<Item = &'w str>) -> bool {
    let words: Vec<&str> = words.take(MAX_ROW).collect();
    COUNTS.contains(&words.len()) && words.iter().all(|word| is_listed_word(word))
}

/// Whether the listed words at the start of `text` could be a phrase that the preceding words announce.
pub(super) fn begins_announced_phrase(text: &str) -> bool {
    may_be_announced_phrase(TokenSeparators::ALL_BUT_LETTERS.split(text).take_while(|word| is_listed_word(word)))
}

fn is_listed_word(word: &str) -> bool {
    bip39_word_index(word).is_some()
}

/// The word's index in the list.
fn bip39_word_index(word: &str) -> Option<u16> {
    if !LENGTHS.contains(&word.len()) {
        return None;
    }
    u16::try_from(LIST.binary_search(&&*lowercase_word(word)).ok()?).ok()
}

fn lowercase_word(word: &str) -> Cow<'_, str> {
    if word.bytes().any(|byte| byte.is_ascii_uppercase()) { word.to_ascii_lowercase().into() } else { word.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of BIP-39.
    const PHRASES: [&str; 5] = [
        "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about",
        "legal winner thank year wave sausage worth useful legal winner thank yellow",
        "gravity machine north sort system female filter attitude volume fold club stay feature office ecology stable \
         narrow fog",
        "void come effort suffer camp survey warrior heavy shoot primary clutch crush open amazing screen patrol group \
         space point ten exist slush involve unfold",
        "zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo wrong",
    ];

    fn is_in_text(text: &str) -> bool {
        SeedPhraseSearch::new().contains_seed_phrase(text)
    }

    fn is_phrase(text: &str) -> bool {
        let words: Vec<&str> = text.split(' ').collect();
        SeedPhraseSearch::new().is_seed_phrase(words.into_iter())
    }

    #[test]
    fn the_list_is_that_of_the_proposal() {
        let list = Digest::compute(include_bytes!("english.txt"));
        assert_eq!(list.to_hex(), "2f5eed53a4727b4bf8880d8f3f199efc90e58503646d9ff8eff3a2ed3b24dbda");
        assert!(LIST.len() == 1 << WORD_BITS && LIST.is_sorted());
        assert!(LIST.iter().all(|word| LENGTHS.contains(&word.len())));
    }

    #[test]
    fn phrases_are_found_wherever_they_stand() {
        for phrase in PHRASES {
            for text in [
                phrase.to_owned(),
                phrase.to_uppercase(),
                phrase.replace(' ', ", "),
                phrase.replace(' ', "\n1. "),
                format!("Keep this: {phrase}; it is all there is."),
                format!("word zoo {phrase}"),
            ] {
                assert!(is_in_text(&text), "{text}");
            }
            assert!(is_phrase(phrase) && may_be_announced_phrase(phrase.split(' ')));
        }
    }

    #[test]
    fn without_a_checksum_only_a_promise_makes_a_phrase() {
        let row = "abandon ability able about above absent absorb abstract absurd abuse access accident";
        let bad = row.replace("accident", "zoo");
        assert!(!is_in_text(&bad) && !is_phrase(&bad));
        assert!(may_be_announced_phrase(bad.split(' ')) && begins_announced_phrase(&format!("{bad}. So be it.")));
        assert!(!begins_announced_phrase(&bad.replace("absent", "papaya")));
        let list = PHRASES.join(" ");
        assert!(!is_in_text(&list) && !is_phrase(&list), "a longer row is a list of words");
    }

    #[test]
    fn checksums_of_one_card_are_counted() {
        let mut search = SeedPhraseSearch::new();
        let bad = ["act"; 12].join(" ");
        assert!(
            (0..MAX_CHECKSUMS - 1).all(|_| !search.contains_seed_phrase(&bad))
                && search.contains_seed_phrase(PHRASES[0])
        );
        assert!(
            !search.contains_seed_phrase(PHRASES[0])
                && !search.is_seed_phrase(PHRASES[1].split(' ').collect::<Vec<_>>().into_iter())
        );
    }
}
