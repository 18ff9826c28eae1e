//! Card systems: detects a document's system, and applies the rules of a system to a card.
//!
//! [`CardSystem`] lists the systems. Each is a module with a `CardSystemDefinition`. Adding a system takes one line in
//! the list and one module.
//!
//! ```
//! use clresolve_cards::system::{CardSystem, CardSystemDetection, detect_card_system};
//! use clresolve_verdict::card::AgentCard;
//!
//! let card = AgentCard::parse(br#"{"agent_id": "01HZQK3P8EMXR9V7T5N2W4J6C0"}"#).unwrap();
//! assert_eq!(detect_card_system(&card), CardSystemDetection::One(CardSystem::Aevum));
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

use self::mapping::CardFieldMapping;
use crate::ledger::PacrLedgerMetrics;
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_verdict::card::AgentCard;
use clresolve_verdict::profile::ConformanceProfile;

/// The rules by which a card is judged.
#[derive(Clone, Copy, Debug)]
pub struct CardLintContext<'r> {
    /// The release line of CommandLayer's rules.
    pub profile: &'r ConformanceProfile,
    /// An earlier version of the same agent's card, for the rules on changes.
    pub previous: Option<&'r AgentCard>,
    /// A ledger's figures, for the rule on claims about them.
    pub ledger: Option<&'r PacrLedgerMetrics>,
    /// The bytes of the earlier card, if available. CommandLayer's rules on changes compare them.
    pub previous_bytes: Option<&'r [u8]>,
}

impl<'r> CardLintContext<'r> {
    /// The rules of a profile, without an earlier card and without a ledger.
    pub const fn from_profile(profile: &'r ConformanceProfile) -> Self {
        Self { profile, previous: None, previous_bytes: None, ledger: None }
    }
}

struct CardSystemDefinition {
    /// Its display name.
    title: &'static str,
    /// Returns the members of the document that only this system has.
    distinctive: fn(&AgentCard) -> Vec<&'static str>,
    /// Systems that this one specializes. A document with members of both belongs to this one.
    refines: &'static [CardSystem],
    /// Returns the version of the system's format, by the document's members or by its own claim.
    version: fn(&AgentCard) -> Option<String>,
    /// Returns the violations of its rules.
    check: fn(&AgentCard, &CardLintContext<'_>) -> Vec<Reason>,
    /// Its top-level members, in the order of its specification.
    order: &'static [&'static str],
    /// Returns derived values that the card has wrong or lacks.
    fixes: fn(&AgentCard) -> Vec<DerivedMemberFix>,
    /// JSON Pointer of the time of the card's last change.
    changed_at: Option<&'static str>,
    /// Where a host publishes cards.
    discovery: CardDiscoveryRules,
    /// Returns the mapping from the card's shape to the common fields.
    mapping: fn(&AgentCard) -> &'static CardFieldMapping,
    /// The mapping for the shape in which new cards are written.
    written: &'static CardFieldMapping,
}

/// Where a system's cards are published, and the codes for failures.
#[derive(Debug)]
pub struct CardDiscoveryRules {
    /// Paths on a host, in the forms of [`matches_path_form`]. `{name}` stands for one of the host's agent systems. A
    /// form with `*` is not requested. It only determines which URLs a user may give.
    pub paths: &'static [&'static str],
    /// The code if none of the paths returned a card.
    pub unreachable: ReasonCode,
    /// The code if a path without `{name}` has no document, if the system defines one.
    pub absent: Option<ReasonCode>,
    /// The code if the host requires credentials, if the system defines one.
    pub credentialed: Option<ReasonCode>,
    /// The code if a card is not served as `application/json`, if the system requires that.
    pub content_type: Option<ReasonCode>,
    /// The code if a cache served a stale card, if the system defines one.
    pub stale: Option<ReasonCode>,
    /// Returns whether a document at one of the paths is not a card but refers to cards.
    pub is_descriptor: fn(&AgentCard) -> bool,
}

/// Whether `path` matches a form of [`CardDiscoveryRules::paths`]. `{name}` is one segment, `*` is any text.
pub fn matches_path_form(form: &str, path: &str) -> bool {
    let split =
        |placeholder| form.split_once(placeholder).and_then(|(before, after)| text_between(path, before, after));
    if form.contains('*') {
        return split("*").is_some();
    }
    form == path || split("{name}").is_some_and(|name| !name.is_empty() && !name.contains('/'))
}

fn text_between<'p>(path: &'p str, before: &str, after: &str) -> Option<&'p str> {
    path.strip_prefix(before)?.strip_suffix(after)
}

/// For systems without a document that refers to cards.
fn is_never_descriptor(_card: &AgentCard) -> bool {
    false
}

/// A value derived from other members of the card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DerivedMemberFix {
    /// JSON Pointer of the member.
    pub pointer: &'static str,
    /// The correct value.
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

            const fn definition(self) -> &'static CardSystemDefinition {
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
    /// Orloj's agent card, generated from AgentSystem resources. It is a kind of A2A card.
    Orloj "orloj" orloj;
    /// The MA²D card. Its specification calls it "A2A 1.0", but it is not an A2A card.
    Anypoint "anypoint" anypoint;
    /// The A2A project's card, 0.2 to 1.0.
    A2a "a2a" a2a;
}

impl CardSystem {
    /// The system's display name.
    pub fn title(self) -> &'static str {
        self.definition().title
    }

    /// The version of the system's format, by the members of `card` or by its own claim. `None` if it shows none.
    pub fn detect_format_version(self, card: &AgentCard) -> Option<String> {
        (self.definition().version)(card)
    }

    /// Its top-level members, in the order of its specification.
    pub fn member_order(self) -> &'static [&'static str] {
        self.definition().order
    }

    /// Derived values that the card has wrong or lacks.
    pub fn derived_member_fixes(self, card: &AgentCard) -> Vec<DerivedMemberFix> {
        (self.definition().fixes)(card)
    }

    /// JSON Pointer of the time of a card's last change.
    pub(crate) fn change_time_pointer(self) -> Option<&'static str> {
        self.definition().changed_at
    }

    /// Where a host publishes cards of this system.
    pub fn discovery_rules(self) -> &'static CardDiscoveryRules {
        &self.definition().discovery
    }

    /// The mapping for the shape of `card`.
    pub(crate) fn field_mapping_for_card(self, card: &AgentCard) -> &'static CardFieldMapping {
        (self.definition().mapping)(card)
    }

    /// The mapping for the shape in which new cards are written.
    pub(crate) fn output_mapping(self) -> &'static CardFieldMapping {
        self.definition().written
    }

    /// The violations of this system's rules in `card`.
    pub fn check_card(self, card: &AgentCard, rules: &CardLintContext<'_>) -> Vec<Reason> {
        (self.definition().check)(card, rules)
    }
}

impl fmt::Display for CardSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.slug())
    }
}

impl FromStr for CardSystem {
    type Err = UnknownCardSystemError;

    fn from_str(slug: &str) -> Result<Self, UnknownCardSystemError> {
        Self::ALL.iter().copied().find(|system| system.slug() == slug).ok_or(UnknownCardSystemError)
    }
}

/// No card system has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a card system: commandlayer, aevum, orloj, anypoint or a2a")]
pub struct UnknownCardSystemError;

/// The card system that a document's shape indicates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CardSystemDetection {
    /// The document has members of one system, or of one and those that it specializes.
    One(CardSystem),
    /// The document has members of several systems, none of which specializes the others.
    Several(Vec<CardSystem>),
    /// The document has no member that only one system has.
    None,
}

/// Detects the system of a document by its shape alone.
pub fn detect_card_system(card: &AgentCard) -> CardSystemDetection {
    let shown: Vec<CardSystem> =
        CardSystem::ALL.iter().copied().filter(|system| !(system.definition().distinctive)(card).is_empty()).collect();
    let refined = |system: &CardSystem| shown.iter().any(|other| other.definition().refines.contains(system));
    let mut kinds: Vec<CardSystem> = shown.iter().copied().filter(|system| !refined(system)).collect();
    match (kinds.pop(), kinds.is_empty()) {
        (None, _) => CardSystemDetection::None,
        (Some(system), true) => CardSystemDetection::One(system),
        (Some(last), false) => {
            kinds.push(last);
            CardSystemDetection::Several(kinds)
        }
    }
}

/// For systems without derived values.
fn no_fixes(_card: &AgentCard) -> Vec<DerivedMemberFix> {
    Vec::new()
}

/// The members among `names` that the card has at the top level.
fn present_members(card: &AgentCard, names: &[&'static str]) -> Vec<&'static str> {
    names.iter().copied().filter(|name| card.get(name).is_some()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detected(text: &str) -> CardSystemDetection {
        detect_card_system(&AgentCard::parse(text.as_bytes()).expect("strict JSON"))
    }

    #[test]
    fn a_system_is_recognised_by_its_members() {
        assert_eq!(
            detected(r#"{"ens": "a.eth", "entry": "x402://a.eth/b/v1"}"#),
            CardSystemDetection::One(CardSystem::CommandLayer)
        );
        assert_eq!(detected(r#"{"invocation": {}, "skills": []}"#), CardSystemDetection::One(CardSystem::Anypoint));
        assert_eq!(detected(r#"{"supportedInterfaces": []}"#), CardSystemDetection::One(CardSystem::A2a));
        assert_eq!(
            detected(r#"{"supportedInterfaces": [], "url": "https://a.example/v1/agent-systems/b/a2a"}"#),
            CardSystemDetection::One(CardSystem::Orloj)
        );
        let broken = r#"{"supportedInterfaces": [], "url": "/v1/agent-systems/b/a2a"}"#;
        assert_eq!(detected(broken), CardSystemDetection::One(CardSystem::Orloj));
        let urlless = r#"{"name": "b", "skills": [{"id": "a"}, {"id": "c", "inputSchema": {}}]}"#;
        assert_eq!(detected(urlless), CardSystemDetection::One(CardSystem::Orloj));
        let richer = r#"{"url": "https://a.example", "defaultInputModes": [], "skills": [{"inputSchema": {}}]}"#;
        assert_eq!(detected(richer), CardSystemDetection::One(CardSystem::A2a));
        assert_eq!(detected(r#"{"skills": [{}, {"mcp_tool": "t"}]}"#), CardSystemDetection::One(CardSystem::Anypoint));
        assert_eq!(detected(r#"{"name": "a", "version": "1.0.0"}"#), CardSystemDetection::None);
    }

    #[test]
    fn members_of_several_systems_are_ambiguous() {
        let both = detected(r#"{"agent_id": "01HZQK3P8EMXR9V7T5N2W4J6C0", "supportedInterfaces": []}"#);
        assert_eq!(both, CardSystemDetection::Several(vec![CardSystem::Aevum, CardSystem::A2a]));
    }

    #[test]
    fn paths_have_forms() {
        let system = "/v1/agent-systems/{name}/.well-known/agent-card.json";
        assert!(matches_path_form(system, "/v1/agent-systems/a/.well-known/agent-card.json"));
        assert!(!matches_path_form(system, "/v1/agent-systems/a/b/.well-known/agent-card.json"));
        assert!(!matches_path_form(system, "/v1/agent-systems//.well-known/agent-card.json"));
        assert!(matches_path_form("/a.json", "/a.json") && !matches_path_form("/a.json", "/b/a.json"));
        assert!(matches_path_form("*.json", "/cards/a.json") && !matches_path_form("*.json", "/cards/a"));
    }

    #[test]
    fn slugs_are_read_back() {
        for system in CardSystem::ALL {
            assert_eq!(system.slug().parse(), Ok(*system));
        }
        assert_eq!("a3a".parse::<CardSystem>(), Err(UnknownCardSystemError));
    }
}
