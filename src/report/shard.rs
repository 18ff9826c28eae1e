//! A shard: the part of a list that one of several machines audits.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::digest::{Digest, Digester};
use crate::name::EnsName;

/// Most shards of a list. A merge holds all of their reports open.
pub const MAX_SHARDS: u16 = 256;

/// One of the shards of a list. Every name is in exactly one, and in the same one however often it is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Form", into = "Form")]
pub struct Shard {
    index: u16,
    of: u16,
}

#[derive(Serialize, Deserialize)]
struct Form {
    index: u16,
    of: u16,
}

/// Not a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a shard such as 1/8, of at most {MAX_SHARDS}")]
pub struct NotAShard;

impl Shard {
    /// Its number, from 1.
    pub const fn index(self) -> u16 {
        self.index
    }

    /// How many there are.
    pub const fn of(self) -> u16 {
        self.of
    }

    /// Whether it has what a row is known by ([`key`]).
    pub fn has(self, key: &str) -> bool {
        let [first, second, ..] = *identity(key).as_bytes();
        u16::from_be_bytes([first, second]) % self.of == self.index - 1
    }
}

/// What a row is known by: its name, or the start of what was typed in place of one. Where a row keeps the start alone, the
/// digest of the whole follows.
pub fn key(input: &str, whole: Option<Digest>) -> String {
    match whole {
        Some(digest) => format!("{input} {digest}"),
        None => input.to_owned(),
    }
}

/// The digest of what an audit is of: every line and every entry that asks for a row, in their order, before shards take
/// their parts. Spellings of a name make no difference, and neither do comments that move no line.
#[derive(Clone, Default)]
pub struct ListDigester(Digester);

impl ListDigester {
    /// Adds what stands at a line, known by its [`key`].
    pub fn add(&mut self, line: u64, key: &str) {
        self.0.update(&line.to_be_bytes());
        self.0.update(identity(key).as_bytes());
    }

    /// The digest of all.
    pub fn digest(self) -> Digest {
        self.0.digest()
    }
}

/// What two lines of a list share if they list one name: its spelling makes no difference.
pub fn identity(name: &str) -> Digest {
    match EnsName::parse(name) {
        Ok(name) => Digest::of(name.as_str().as_bytes()),
        Err(_) => Digest::of(name.as_bytes()),
    }
}

impl TryFrom<Form> for Shard {
    type Error = NotAShard;

    fn try_from(Form { index, of }: Form) -> Result<Self, NotAShard> {
        let good = (1..=MAX_SHARDS).contains(&of) && (1..=of).contains(&index);
        good.then_some(Self { index, of }).ok_or(NotAShard)
    }
}

impl From<Shard> for Form {
    fn from(Shard { index, of }: Shard) -> Self {
        Self { index, of }
    }
}

impl FromStr for Shard {
    type Err = NotAShard;

    fn from_str(text: &str) -> Result<Self, NotAShard> {
        let (index, of) = text.split_once('/').ok_or(NotAShard)?;
        let number = |text: &str| text.parse().map_err(|_| NotAShard);
        Form { index: number(index)?, of: number(of)? }.try_into()
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_in_one_shard_however_it_is_written() {
        let shards: Vec<Shard> = (1..=8).map(|index| format!("{index}/8").parse().unwrap()).collect();
        let of = |name: &str| -> Vec<u16> {
            shards.iter().filter(|shard| shard.has(name)).map(|shard| shard.index()).collect()
        };
        for number in 0..200 {
            assert_eq!(of(&format!("agent{number}.eth")).len(), 1);
        }
        assert_eq!(of("Agent7.eth"), of("agent7.ETH"));
        assert_eq!(of("no name at all\u{202e}").len(), 1);
        let used: std::collections::BTreeSet<_> =
            (0..200).flat_map(|number| of(&format!("agent{number}.eth"))).collect();
        assert_eq!(used.len(), 8);
    }

    #[test]
    fn only_shards_of_a_list_are_shards() {
        let parse = |text: &str| text.parse::<Shard>().map(|shard| shard.to_string());
        assert_eq!(parse("256/256"), Ok("256/256".to_owned()));
        for text in ["0/8", "9/8", "1/0", "1/257", "1", "a/8", "1/8/8", "-1/8", ""] {
            assert_eq!(parse(text), Err(NotAShard), "{text:?}");
        }
        assert!(serde_json::from_str::<Shard>("{\"index\": 9, \"of\": 8}").is_err());
    }
}
