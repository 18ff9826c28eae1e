//! Card systems: which one a document belongs to, and what its rules find in it.
//!
//! One table ([`Flavour`]) names them; each is one module with one face, `SYSTEM`. A further system is one more line of
//! the table and its module.
//!
//! ```
//! use clresolve_cards::flavour::{Detection, Flavour, detect};
//! use clresolve_verdict::card::Card;
//!
//! let card = Card::parse(br#"{"agent_id": "01HZQK3P8EMXR9V7T5N2W4J6C0"}"#).unwrap();
//! assert_eq!(detect(&card), Detection::One(Flavour::Aevum));
//! ```

pub mod a2a;
pub mod aevum;
pub mod anypoint;
mod commandlayer;
pub(crate) mod mapping;
pub mod orloj;
mod shape;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use self::mapping::Mapping;
use clresolve_core::reason::{Code, Reason};
use clresolve_core::text::excerpt;
use clresolve_verdict::card::Card;
use clresolve_verdict::profile::Profile;

/// What a card is judged by.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'r> {
    /// The release line of CommandLayer's rules.
    pub profile: &'r Profile,
    /// The same agent's card of an earlier version, for the rules on change.
    pub previous: Option<&'r Card>,
}

impl<'r> Rules<'r> {
    /// The rules of a profile, without an earlier card.
    pub const fn of(profile: &'r Profile) -> Self {
        Self { profile, previous: None }
    }
}

/// The one face of a card system.
struct System {
    /// Its name for people.
    title: &'static str,
    /// Members that this system has and others do not, as far as the document shows them; empty where it shows none.
    tells: fn(&Card) -> Vec<&'static str>,
    /// Systems whose documents this one's are a kind of: where both show, it is this one.
    refines: &'static [Flavour],
    /// The version of the system's format that the document shows or claims.
    version: fn(&Card) -> Option<String>,
    /// What its rules find.
    check: fn(&Card, &Rules<'_>) -> Vec<Reason>,
    /// Its members at the top level, in the order in which its specification lists them.
    order: &'static [&'static str],
    /// Values that follow from others of the card, where the card has them wrong or not at all.
    mend: fn(&Card) -> Vec<Mend>,
    /// JSON Pointer of the member that says when the card was last changed.
    changed_at: Option<&'static str>,
    /// Where a host's cards are looked for.
    whereabouts: Whereabouts,
    /// Where a card of this shape says what others can say too.
    mapping: fn(&Card) -> &'static Mapping,
    /// The same of the shape in which new cards are written.
    written: &'static Mapping,
}

/// Where a system's cards are looked for, and what is to be said where they are not.
#[derive(Debug)]
pub struct Whereabouts {
    /// Paths of a host, which [`fits`] reads: `{name}` is one of the host's own systems, `*` is no walk but a form that
    /// a URL given by hand may have.
    pub paths: &'static [&'static str],
    /// What it means that none of them gave a card.
    pub unreachable: Code,
    /// What it means that a path without `{name}` has nothing, where the system gives that a meaning.
    pub absent: Option<Code>,
    /// What it means that credentials are demanded, where the system gives that a meaning.
    pub credentialed: Option<Code>,
    /// What it means that a card is served as anything but `application/json`, where the system demands that.
    pub content_type: Option<Code>,
    /// What it means that a cache served a card past its freshness, where the system gives that a meaning.
    pub stale: Option<Code>,
    /// Whether a document at one of the paths is no card, but says where cards are.
    pub is_descriptor: fn(&Card) -> bool,
}

/// Whether `path` has the form of a path of [`Whereabouts`]: `{name}` is one segment, `*` anything.
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

/// A value that a card must have because of others that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mend {
    /// JSON Pointer of the member.
    pub pointer: &'static str,
    /// What it must be.
    pub value: String,
}

macro_rules! flavours {
    ($($(#[$doc:meta])* $variant:ident $slug:literal $module:ident;)*) => {
        /// A card system.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum Flavour {
            $($(#[$doc])* #[serde(rename = $slug)] $variant,)*
        }

        impl Flavour {
            /// Every card system.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its stable name.
            pub const fn slug(self) -> &'static str {
                match self { $(Self::$variant => $slug,)* }
            }

            const fn system(self) -> &'static System {
                match self { $(Self::$variant => &$module::SYSTEM,)* }
            }
        }
    };
}

flavours! {
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

impl Flavour {
    /// Its name for people.
    pub fn title(self) -> &'static str {
        self.system().title
    }

    /// The version of the system's format that `card` shows or claims; `None` where it shows none.
    pub fn version(self, card: &Card) -> Option<String> {
        (self.system().version)(card)
    }

    /// Its members at the top level, in the order in which its specification lists them.
    pub fn order(self) -> &'static [&'static str] {
        self.system().order
    }

    /// Values that follow from others of the card, where the card has them wrong or not at all.
    pub fn mend(self, card: &Card) -> Vec<Mend> {
        (self.system().mend)(card)
    }

    /// JSON Pointer of the member that says when a card was last changed.
    pub fn changed_at(self) -> Option<&'static str> {
        self.system().changed_at
    }

    /// Where a host's cards of this system are looked for.
    pub fn whereabouts(self) -> &'static Whereabouts {
        &self.system().whereabouts
    }

    /// Where `card` says what cards of other systems can say too.
    pub(crate) fn mapping(self, card: &Card) -> &'static Mapping {
        (self.system().mapping)(card)
    }

    /// The same of the shape in which new cards are written.
    pub(crate) fn written(self) -> &'static Mapping {
        self.system().written
    }

    /// What the rules of this system find in `card`.
    pub fn check(self, card: &Card, rules: &Rules<'_>) -> Vec<Reason> {
        (self.system().check)(card, rules)
    }
}

impl fmt::Display for Flavour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.slug())
    }
}

impl FromStr for Flavour {
    type Err = UnknownFlavour;

    fn from_str(slug: &str) -> Result<Self, UnknownFlavour> {
        Self::ALL.iter().copied().find(|flavour| flavour.slug() == slug).ok_or(UnknownFlavour)
    }
}

/// No card system has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a card system: commandlayer, aevum, orloj, anypoint or a2a")]
pub struct UnknownFlavour;

/// A card does not have the form of the system as which it is read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a card of this system: {detail}")]
pub struct Misshapen {
    /// What is wrong, with foreign text cut short.
    pub detail: String,
}

impl Misshapen {
    fn of(error: &serde_json::Error) -> Self {
        Self { detail: excerpt(&error.to_string()) }
    }
}

/// What a document's shape says of the system that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Detection {
    /// Members of one system, or of one and those that it refines.
    One(Flavour),
    /// Members of several systems, of which none is a kind of the other.
    Several(Vec<Flavour>),
    /// No member that tells.
    None,
}

/// Tells by its shape alone which system a document belongs to.
pub fn detect(card: &Card) -> Detection {
    let shown: Vec<Flavour> =
        Flavour::ALL.iter().copied().filter(|flavour| !(flavour.system().tells)(card).is_empty()).collect();
    let refined = |flavour: &Flavour| shown.iter().any(|other| other.system().refines.contains(flavour));
    let mut kinds: Vec<Flavour> = shown.iter().copied().filter(|flavour| !refined(flavour)).collect();
    match (kinds.pop(), kinds.is_empty()) {
        (None, _) => Detection::None,
        (Some(flavour), true) => Detection::One(flavour),
        (Some(last), false) => {
            kinds.push(last);
            Detection::Several(kinds)
        }
    }
}

/// Nothing follows from other members.
fn mends_nothing(_card: &Card) -> Vec<Mend> {
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
    fn the_shape_tells() {
        assert_eq!(
            detected(r#"{"ens": "a.eth", "entry": "x402://a.eth/b/v1"}"#),
            Detection::One(Flavour::CommandLayer)
        );
        assert_eq!(detected(r#"{"invocation": {}, "skills": []}"#), Detection::One(Flavour::Anypoint));
        assert_eq!(detected(r#"{"supportedInterfaces": []}"#), Detection::One(Flavour::A2a));
        assert_eq!(
            detected(r#"{"supportedInterfaces": [], "url": "https://a.example/v1/agent-systems/b/a2a"}"#),
            Detection::One(Flavour::Orloj)
        );
        let broken = r#"{"supportedInterfaces": [], "url": "/v1/agent-systems/b/a2a"}"#;
        assert_eq!(detected(broken), Detection::One(Flavour::Orloj));
        let urlless = r#"{"name": "b", "skills": [{"id": "a"}, {"id": "c", "inputSchema": {}}]}"#;
        assert_eq!(detected(urlless), Detection::One(Flavour::Orloj));
        let richer = r#"{"url": "https://a.example", "defaultInputModes": [], "skills": [{"inputSchema": {}}]}"#;
        assert_eq!(detected(richer), Detection::One(Flavour::A2a));
        assert_eq!(detected(r#"{"skills": [{}, {"mcp_tool": "t"}]}"#), Detection::One(Flavour::Anypoint));
        assert_eq!(detected(r#"{"name": "a", "version": "1.0.0"}"#), Detection::None);
    }

    #[test]
    fn members_of_several_systems_are_ambiguous() {
        let both = detected(r#"{"agent_id": "01HZQK3P8EMXR9V7T5N2W4J6C0", "supportedInterfaces": []}"#);
        assert_eq!(both, Detection::Several(vec![Flavour::Aevum, Flavour::A2a]));
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
        for flavour in Flavour::ALL {
            assert_eq!(flavour.slug().parse(), Ok(*flavour));
        }
        assert_eq!("a3a".parse::<Flavour>(), Err(UnknownFlavour));
    }
}
