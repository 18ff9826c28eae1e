//! Card systems: how a document's system is recognised, and what the rules of a system find in a card.
//!
//! [`CardSystem`] lists them. Each is one module with one `Definition`. A further system is one more line of the list
//! and one module.
//!
//! ```
//! use clresolve_cards::system::{CardSystem, Detection, detect};
//! use clresolve_verdict::card::Card;
//!
//! let card = Card::parse(br#"{"agent_id": "01HZQK3P8EMXR9V7T5N2W4J6C0"}"#).unwrap();
//! assert_eq!(detect(&card), Detection::One(CardSystem::Aevum));
//! ```

mod a2a;
mod aevum;
mod anypoint;
mod commandlayer;
pub(crate) mod mapping;
mod orloj;
mod shape;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use self::mapping::Mapping;
use crate::ledger::Projection;
use clresolve_core::reason::{Code, Reason};
use clresolve_verdict::card::Card;
use clresolve_verdict::profile::Profile;

/// The rules that a card is judged by.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'r> {
    /// The release line of CommandLayer's rules.
    pub profile: &'r Profile,
    /// The same agent's card of an earlier version, for the rules on change.
    pub previous: Option<&'r Card>,
    /// The figures of a ledger, for the rule on claims of them.
    pub ledger: Option<&'r Projection>,
    /// Its bytes, where they are at hand: CommandLayer's rules on change go by them.
    pub previous_bytes: Option<&'r [u8]>,
}

impl<'r> Rules<'r> {
    /// The rules of a profile, without an earlier card and a ledger.
    pub const fn of(profile: &'r Profile) -> Self {
        Self { profile, previous: None, previous_bytes: None, ledger: None }
    }
}

/// The definition of a card system.
struct Definition {
    /// Its name for people.
    title: &'static str,
    /// The members of the document that only this system has; empty if there are none.
    distinctive: fn(&Card) -> Vec<&'static str>,
    /// Systems that this one specialises: where the members of both are present, the document is of this one.
    refines: &'static [CardSystem],
    /// The version of the system's format, by the document's members or by its own claim.
    version: fn(&Card) -> Option<String>,
    /// What its rules find.
    check: fn(&Card, &Rules<'_>) -> Vec<Reason>,
    /// Its members at the top level, in the order in which its specification lists them.
    order: &'static [&'static str],
    /// Values that follow from other members of the card, if the card has them wrong or lacks them.
    fixes: fn(&Card) -> Vec<Fix>,
    /// JSON Pointer of the member that says when the card was last changed.
    changed_at: Option<&'static str>,
    /// Where a host's cards are looked for.
    discovery: DiscoveryRules,
    /// The mapping of the shape that a card has to the common fields.
    mapping: fn(&Card) -> &'static Mapping,
    /// The mapping of the shape that new cards are written in.
    written: &'static Mapping,
}

/// Where a system's cards are looked for, and which codes the results have.
#[derive(Debug)]
pub struct DiscoveryRules {
    /// Paths of a host, in the forms of [`fits`]: `{name}` stands for one of the host's agent systems. A form with `*`
    /// is not asked for; it only says which URLs a user may give.
    pub paths: &'static [&'static str],
    /// The code if none of the paths gave a card.
    pub unreachable: Code,
    /// The code if a path without `{name}` has no document, if the system has one for it.
    pub absent: Option<Code>,
    /// The code if the host demands credentials, if the system has one for it.
    pub credentialed: Option<Code>,
    /// The code if a card is not served as `application/json`, if the system demands that.
    pub content_type: Option<Code>,
    /// The code if a cache served a stale card, if the system has one for it.
    pub stale: Option<Code>,
    /// Whether a document at one of the paths is not a card, but says where cards are.
    pub is_descriptor: fn(&Card) -> bool,
}

/// Whether `path` has a form of [`DiscoveryRules::paths`]: `{name}` is one segment, `*` is any text.
pub fn fits(form: &str, path: &str) -> bool {
    let split = |placeholder| form.split_once(placeholder).and_then(|(before, after)| inner(path, before, after));
    if form.contains('*') {
        return split("*").is_some();
    }
    form == path || split("{name}").is_some_and(|name| !name.is_empty() && !name.contains('/'))
}

fn inner<'p>(path: &'p str, before: &str, after: &str) -> Option<&'p str> {
    path.strip_prefix(before)?.strip_suffix(after)
}

/// For systems without a document that says where cards are.
fn no_descriptor(_card: &Card) -> bool {
    false
}

/// A value that follows from other members of the card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// JSON Pointer of the member.
    pub pointer: &'static str,
    /// The value that it must have.
    pub value: String,
}

macro_rules! card_systems {
    ($($(#[$doc:meta])* $variant:ident $slug:literal $module:ident;)*) => {
        /// A card system.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum CardSystem {
            $($(#[$doc])* #[serde(rename = $slug)] $variant,)*
        }

        impl CardSystem {
            /// Every card system.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its stable name.
            pub const fn slug(self) -> &'static str {
                match self { $(Self::$variant => $slug,)* }
            }

            const fn definition(self) -> &'static Definition {
                match self { $(Self::$variant => &$module::DEFINITION,)* }
            }
        }
    };
}

card_systems! {
    /// CommandLayer Agent-Cards.
    CommandLayer "commandlayer" commandlayer;
    /// Aevum AgentCard 1.0.
    Aevum "aevum" aevum;
    /// Orloj's agent card, generated from AgentSystem resources; a kind of A2A card.
    Orloj "orloj" orloj;
    /// The MA²D card, which calls itself "A2A 1.0" and is not.
    Anypoint "anypoint" anypoint;
    /// The A2A project's card, 0.2 to 1.0.
    A2a "a2a" a2a;
}

impl CardSystem {
    /// Its name for people.
    pub fn title(self) -> &'static str {
        self.definition().title
    }

    /// The version of the system's format, by the members of `card` or by its own claim; `None` if it shows none.
    pub fn version(self, card: &Card) -> Option<String> {
        (self.definition().version)(card)
    }

    /// Its members at the top level, in the order in which its specification lists them.
    pub fn order(self) -> &'static [&'static str] {
        self.definition().order
    }

    /// Values that follow from other members of the card, if the card has them wrong or lacks them.
    pub fn fixes(self, card: &Card) -> Vec<Fix> {
        (self.definition().fixes)(card)
    }

    /// JSON Pointer of the member that says when a card was last changed.
    pub(crate) fn changed_at(self) -> Option<&'static str> {
        self.definition().changed_at
    }

    /// Where a host's cards of this system are looked for.
    pub fn discovery_rules(self) -> &'static DiscoveryRules {
        &self.definition().discovery
    }

    /// The mapping of the shape that `card` has.
    pub(crate) fn mapping(self, card: &Card) -> &'static Mapping {
        (self.definition().mapping)(card)
    }

    /// The mapping of the shape that new cards are written in.
    pub(crate) fn written(self) -> &'static Mapping {
        self.definition().written
    }

    /// What the rules of this system find in `card`.
    pub fn check(self, card: &Card, rules: &Rules<'_>) -> Vec<Reason> {
        (self.definition().check)(card, rules)
    }
}

impl fmt::Display for CardSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.slug())
    }
}

impl FromStr for CardSystem {
    type Err = UnknownCardSystem;

    fn from_str(slug: &str) -> Result<Self, UnknownCardSystem> {
        Self::ALL.iter().copied().find(|system| system.slug() == slug).ok_or(UnknownCardSystem)
    }
}

/// No card system has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a card system: commandlayer, aevum, orloj, anypoint or a2a")]
pub struct UnknownCardSystem;

/// The card system that a document's shape shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Detection {
    /// It has members of one system, or of one and those that it specialises.
    One(CardSystem),
    /// It has members of several systems, none of which specialises the others.
    Several(Vec<CardSystem>),
    /// It has no member that only one system has.
    None,
}

/// Recognises the system of a document by its shape alone.
pub fn detect(card: &Card) -> Detection {
    let shown: Vec<CardSystem> =
        CardSystem::ALL.iter().copied().filter(|system| !(system.definition().distinctive)(card).is_empty()).collect();
    let refined = |system: &CardSystem| shown.iter().any(|other| other.definition().refines.contains(system));
    let mut kinds: Vec<CardSystem> = shown.iter().copied().filter(|system| !refined(system)).collect();
    match (kinds.pop(), kinds.is_empty()) {
        (None, _) => Detection::None,
        (Some(system), true) => Detection::One(system),
        (Some(last), false) => {
            kinds.push(last);
            Detection::Several(kinds)
        }
    }
}

/// For systems in which no value follows from others.
fn no_fixes(_card: &Card) -> Vec<Fix> {
    Vec::new()
}

/// The members among `names` that the card has at its top level.
fn present(card: &Card, names: &[&'static str]) -> Vec<&'static str> {
    names.iter().copied().filter(|name| card.get(name).is_some()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detected(text: &str) -> Detection {
        detect(&Card::parse(text.as_bytes()).expect("strict JSON"))
    }

    #[test]
    fn a_system_is_recognised_by_its_members() {
        assert_eq!(
            detected(r#"{"ens": "a.eth", "entry": "x402://a.eth/b/v1"}"#),
            Detection::One(CardSystem::CommandLayer)
        );
        assert_eq!(detected(r#"{"invocation": {}, "skills": []}"#), Detection::One(CardSystem::Anypoint));
        assert_eq!(detected(r#"{"supportedInterfaces": []}"#), Detection::One(CardSystem::A2a));
        assert_eq!(
            detected(r#"{"supportedInterfaces": [], "url": "https://a.example/v1/agent-systems/b/a2a"}"#),
            Detection::One(CardSystem::Orloj)
        );
        let broken = r#"{"supportedInterfaces": [], "url": "/v1/agent-systems/b/a2a"}"#;
        assert_eq!(detected(broken), Detection::One(CardSystem::Orloj));
        let urlless = r#"{"name": "b", "skills": [{"id": "a"}, {"id": "c", "inputSchema": {}}]}"#;
        assert_eq!(detected(urlless), Detection::One(CardSystem::Orloj));
        let richer = r#"{"url": "https://a.example", "defaultInputModes": [], "skills": [{"inputSchema": {}}]}"#;
        assert_eq!(detected(richer), Detection::One(CardSystem::A2a));
        assert_eq!(detected(r#"{"skills": [{}, {"mcp_tool": "t"}]}"#), Detection::One(CardSystem::Anypoint));
        assert_eq!(detected(r#"{"name": "a", "version": "1.0.0"}"#), Detection::None);
    }

    #[test]
    fn members_of_several_systems_are_ambiguous() {
        let both = detected(r#"{"agent_id": "01HZQK3P8EMXR9V7T5N2W4J6C0", "supportedInterfaces": []}"#);
        assert_eq!(both, Detection::Several(vec![CardSystem::Aevum, CardSystem::A2a]));
    }

    #[test]
    fn paths_have_forms() {
        let system = "/v1/agent-systems/{name}/.well-known/agent-card.json";
        assert!(fits(system, "/v1/agent-systems/a/.well-known/agent-card.json"));
        assert!(!fits(system, "/v1/agent-systems/a/b/.well-known/agent-card.json"));
        assert!(!fits(system, "/v1/agent-systems//.well-known/agent-card.json"));
        assert!(fits("/a.json", "/a.json") && !fits("/a.json", "/b/a.json"));
        assert!(fits("*.json", "/cards/a.json") && !fits("*.json", "/cards/a"));
    }

    #[test]
    fn slugs_are_read_back() {
        for system in CardSystem::ALL {
            assert_eq!(system.slug().parse(), Ok(*system));
        }
        assert_eq!("a3a".parse::<CardSystem>(), Err(UnknownCardSystem));
    }
}
