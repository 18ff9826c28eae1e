//! The registry of reason codes: the only place in which a code is made.
//!
//! One table holds slug, effect, step, requirement, who can fix it, a title and an explanation. `clresolve explain`, the
//! schema's enum and the documents are made from it. A code is never renamed and never reused.
//!
//! The rows stand in a file for each subject. Each file's `rows!` puts its rows behind those it is given, and passes all
//! of them on, to the last one: `registry!`.

mod card;
mod chain;
mod content;
mod hosts;
mod payment;
mod receipt;
mod refusal;
mod request;
mod systems;

use std::fmt;

pub use refusal::{Refusal, title_of};
use serde::de::{Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::text::clipped;

/// What the URI of every code begins with.
const URI_PREFIX: &str = "urn:clresolve:reason:";

/// What a reason does to the state of a verdict. Ordered: fail over unknown over warn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// A value that was read contradicts the rules, or absence was proven: the state is `untrusted`.
    Fail,
    /// A required step could not be decided: the state is `indeterminate`, unless something fails.
    Unknown,
    /// Reported; never changes the state.
    Warn,
}

/// The steps of the walk, in the order in which they are reported, and those beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// ENSIP-15 normal form of the input.
    Name,
    /// The `cl.*` records, read from the chain at one block.
    Records,
    /// The card, over HTTPS.
    FetchHttps,
    /// The card, over IPFS, block by block.
    FetchIpfs,
    /// CID and checksum against the bytes.
    Integrity,
    /// The card as a document.
    Card,
    /// The records against the card.
    Binding,
    /// The `x402://` entry.
    Entry,
    /// Verbs, class and schema locations against the manifests.
    Verbs,
    /// The bytes of the bound schemas; depth `schemas` only.
    Schemas,
    /// What this resolver remembers of the name.
    Continuity,
    /// A card of any system, judged by itself; not a step of the walk.
    Document,
    /// Where a host's cards are; not a step of the walk.
    Discovery,
    /// The signatures of a card; not a step of the walk.
    Signature,
    /// Whether a payment may be made; not a step of the walk.
    Payment,
    /// Whether a request is fit to be sent; not a step of the walk.
    Request,
    /// Whether a receipt holds; not a step of the walk.
    Receipt,
}

impl Step {
    /// The steps of the walk, in report order: those of a verdict.
    pub const WALK: [Self; 11] = [
        Self::Name,
        Self::Records,
        Self::FetchHttps,
        Self::FetchIpfs,
        Self::Integrity,
        Self::Card,
        Self::Binding,
        Self::Entry,
        Self::Verbs,
        Self::Schemas,
        Self::Continuity,
    ];

    /// The step's stable slug, as in the verdict.
    pub const fn slug(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Records => "records",
            Self::FetchHttps => "fetch-https",
            Self::FetchIpfs => "fetch-ipfs",
            Self::Integrity => "integrity",
            Self::Card => "card",
            Self::Binding => "binding",
            Self::Entry => "entry",
            Self::Verbs => "verbs",
            Self::Schemas => "schemas",
            Self::Continuity => "continuity",
            Self::Document => "document",
            Self::Discovery => "discovery",
            Self::Signature => "signature",
            Self::Payment => "payment",
            Self::Request => "request",
            Self::Receipt => "receipt",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.slug())
    }
}

/// Who can make the reason go away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fixer {
    /// The asker: another name, another option.
    Asker,
    /// The publisher of the card and its records.
    Publisher,
    /// The operator of this resolver: endpoints, gateways, configuration.
    Operator,
    /// Nobody: it passes with time.
    Nobody,
}

/// One line of the registry.
#[derive(Debug, Serialize)]
pub struct CodeEntry {
    /// The code itself.
    pub code: Code,
    /// What it does to the state, unless a profile says otherwise.
    pub effect: Effect,
    /// The step that finds it.
    pub step: Step,
    /// The rule of the conformance checklist behind it; empty for an operational reason.
    pub requirement: &'static str,
    /// Who can fix it.
    pub fixer: Fixer,
    /// Whether asking again later may give another answer without anybody changing what is published.
    pub retryable: bool,
    /// One short sentence.
    pub title: &'static str,
    /// A paragraph: what was found, why it matters, what to do.
    pub explanation: &'static str,
}

/// Makes [`Code`] of all rows.
macro_rules! registry {
    ([] $($variant:ident $slug:literal $effect:ident $step:ident $requirement:literal $fixer:ident $retryable:literal
       $title:literal $explanation:literal;)*) => {
        /// A stable reason code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $(#[doc = $title] $variant,)*
        }

        impl Code {
            /// Every code, in registry order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The stable kebab-case slug.
            pub const fn slug(self) -> &'static str {
                match self { $(Self::$variant => $slug,)* }
            }

            /// The registry's line for this code.
            pub const fn entry(self) -> &'static CodeEntry {
                match self {
                    $(Self::$variant => const { &CodeEntry {
                        code: Code::$variant, effect: Effect::$effect, step: Step::$step, requirement: $requirement,
                        fixer: Fixer::$fixer, retryable: $retryable, title: $title, explanation: $explanation,
                    } },)*
                }
            }
        }
    };
}

use card::rows as of_card;
use chain::rows as of_chain;
use content::rows as of_content;
use hosts::rows as of_hosts;
use payment::rows as of_payment;
use receipt::rows as of_receipts;
use request::rows as of_requests;
use systems::rows as of_systems;

of_chain! { [of_content of_card of_systems of_hosts of_payment of_requests of_receipts registry] }

impl Code {
    /// Whether a verdict can hold it: not so what is found in a card of another system, on a host, in a signature, about a
    /// payment, in a request, or in a receipt.
    pub fn is_of_verdicts(self) -> bool {
        Step::WALK.contains(&self.entry().step)
    }

    /// The code's stable URI, as the `type` of a problem (RFC 9457). It names the code and leads nowhere.
    pub fn uri(self) -> String {
        format!("{URI_PREFIX}{}", self.slug())
    }

    /// The code with this slug.
    pub fn from_slug(slug: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|c| c.slug() == slug)
    }
}

// Derives would compile a branch for each code into every document that holds one.
impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.slug())
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(SlugVisitor)
    }
}

struct SlugVisitor;

impl Visitor<'_> for SlugVisitor {
    type Value = Code;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a reason code")
    }

    fn visit_str<E: serde::de::Error>(self, slug: &str) -> Result<Code, E> {
        Code::from_slug(slug).ok_or_else(|| E::invalid_value(Unexpected::Str(slug), &self))
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.slug())
    }
}

/// One finding, as it stands in a verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The stable code.
    pub code: Code,
    /// What it does to the state under the profile in force.
    pub effect: Effect,
    /// The step that found it.
    pub step: Step,
    /// The rule behind it; absent for an operational reason.
    pub requirement: Option<String>,
    /// One plain sentence.
    pub message: String,
    /// What the rules or the other side demand.
    pub expected: Option<String>,
    /// What was found.
    pub observed: Option<String>,
    /// Where: a record's key, a member's JSON Pointer, a source or an endpoint's label.
    #[serde(rename = "where")]
    pub place: Option<String>,
    /// Whether asking again may give another answer.
    pub retryable: bool,
    /// What to change; proposes a value only when the CID proves it.
    pub fix: Option<String>,
}

impl Reason {
    /// A reason with the registry's effect, step and requirement, and its title as the message.
    pub fn new(code: Code) -> Self {
        let entry = code.entry();
        Self {
            code,
            effect: entry.effect,
            step: entry.step,
            requirement: Some(entry.requirement).filter(|r| !r.is_empty()).map(str::to_owned),
            message: entry.title.to_owned(),
            expected: None,
            observed: None,
            place: None,
            retryable: entry.retryable,
            fix: None,
        }
    }

    /// With another sentence than the registry's title.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// With the value that was expected.
    #[must_use]
    pub fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(clipped(&expected.into(), MAX_VALUE_BYTES));
        self
    }

    /// With the value that was found.
    #[must_use]
    pub fn observed(mut self, observed: impl Into<String>) -> Self {
        self.observed = Some(clipped(&observed.into(), MAX_VALUE_BYTES));
        self
    }

    /// With the place in which it was found.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into());
        self
    }

    /// With the rule behind it, where one code serves several rules.
    #[must_use]
    pub fn requirement(mut self, requirement: &str) -> Self {
        self.requirement = Some(requirement.to_owned());
        self
    }

    /// Found by another step than the registry's.
    #[must_use]
    pub fn in_step(mut self, step: Step) -> Self {
        self.step = step;
        self
    }

    /// With a proposal for the fix.
    #[must_use]
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

/// Longest expected or observed value in a reason, in bytes: enough for any honest record, URL or digest, and a bound
/// on what a hostile one can put into verdicts and logs.
pub const MAX_VALUE_BYTES: usize = 512;

/// Sorts by effect, then step, then code, then place: the order in which reasons are reported.
pub fn sort(reasons: &mut [Reason]) {
    reasons
        .sort_by(|a, b| (a.effect, a.step, a.code.slug(), &a.place).cmp(&(b.effect, b.step, b.code.slug(), &b.place)));
}

/// The codes of what was found, by effect and then by name, each once.
pub fn codes(found: impl IntoIterator<Item = (Effect, Code)>) -> Vec<String> {
    let mut coded: Vec<(Effect, &str)> = found.into_iter().map(|(effect, code)| (effect, code.slug())).collect();
    coded.sort_unstable();
    coded.dedup();
    coded.into_iter().map(|(_, code)| code.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn slugs_are_unique_kebab_case_and_found_again() {
        let slugs: BTreeSet<_> = Code::ALL.iter().map(|c| c.slug()).collect();
        assert_eq!(slugs.len(), Code::ALL.len());
        for code in Code::ALL {
            assert!(code.slug().bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'));
            assert_eq!(Code::from_slug(code.slug()), Some(*code));
            assert_eq!(code.entry().code, *code);
        }
    }

    #[test]
    fn codes_are_written_as_their_slugs_and_nothing_else_is_one() {
        for code in Code::ALL {
            let text = format!("\"{}\"", code.slug());
            assert_eq!(serde_json::to_string(code).expect("a text"), text);
            assert_eq!(serde_json::from_str::<Code>(&text).expect("a code"), *code);
            let member = format!("{{{text}:1}}");
            let map: BTreeMap<Code, u8> = serde_json::from_str(&member).expect("a code as a name");
            assert_eq!(serde_json::to_string(&map).expect("an object"), member);
        }
        let refused = |text: &str| serde_json::from_str::<Code>(text).expect_err("no code").to_string();
        assert!(
            refused("\"no-such-code\"").starts_with("invalid value: string \"no-such-code\", expected a reason code")
        );
        for text in ["5", "null", "{\"txt-missing\":null}", "\"TxtMissing\"", "\"\""] {
            assert!(refused(text).contains("expected a reason code"), "{text}");
        }
    }

    #[test]
    fn reasons_sort_by_effect_then_step_then_code() {
        let mut reasons = [Code::SingleRpc, Code::CidMismatch, Code::CidUnproven, Code::TxtMissing].map(Reason::new);
        sort(&mut reasons);
        let order = reasons.map(|r| r.code);
        assert_eq!(order, [Code::TxtMissing, Code::CidMismatch, Code::CidUnproven, Code::SingleRpc]);
    }
}
