//! The registry of reason codes. No code is defined anywhere else.
//!
//! One table contains variant, slug, effect, step, requirement, who can fix it, `retryable`, a title and an
//! explanation. `clresolve explain` and the documents are generated from it, and a test compares the schema's enum with
//! it. A code is never renamed and never reused.
//!
//! The rows are split into one file per subject. Each file's `rows!` macro appends its rows to those it receives and
//! passes all of them on; the last one passes them to `registry!`.

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

pub use refusal::{RefusalCode, title_for_slug};
use serde::de::{Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::text::truncate_bytes;

const URI_PREFIX: &str = "urn:clresolve:reason:";

/// How a reason affects the state of a verdict. Ordered: fail, unknown, warn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReasonEffect {
    /// A value contradicts the rules, or absence was proven: the state is `untrusted`.
    Fail,
    /// A required step could not be decided: the state is `indeterminate`, unless something fails.
    Unknown,
    /// The reason is reported, but never changes the state.
    Warn,
}

/// The steps of a resolution, in report order, and the steps outside of a resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResolutionStep {
    /// Normalises the input under ENSIP-15.
    Name,
    /// Reads the `cl.*` records from the chain at one block.
    Records,
    /// Fetches the card over HTTPS.
    FetchHttps,
    /// Fetches the card over IPFS, block by block.
    FetchIpfs,
    /// Checks the bytes against CID and checksum.
    Integrity,
    /// Checks the card as a document.
    Card,
    /// Compares the records with the card.
    Binding,
    /// Checks the `x402://` entry.
    Entry,
    /// Checks verbs, class and schema locations against the manifests.
    Verbs,
    /// Checks the bytes of the bound schemas; depth `schemas` only.
    Schemas,
    /// Compares with what this resolver remembers of the name.
    Continuity,
    /// Checks a card of any system by itself; not a step of a resolution.
    Document,
    /// Finds the cards of a host; not a step of a resolution.
    Discovery,
    /// Checks the signatures of a card; not a step of a resolution.
    Signature,
    /// Decides whether a payment may be made; not a step of a resolution.
    Payment,
    /// Decides whether a request may be sent; not a step of a resolution.
    Request,
    /// Checks a receipt; not a step of a resolution.
    Receipt,
}

impl ResolutionStep {
    /// The steps of a resolution, which verdicts contain, in report order.
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

    /// The step's stable slug, as in verdicts.
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

impl fmt::Display for ResolutionStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.slug())
    }
}

/// Who can resolve the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FixerRole {
    /// The caller, with another name or another option.
    Asker,
    /// The publisher of the card and its records.
    Publisher,
    /// The operator of this resolver: endpoints, gateways, configuration.
    Operator,
    /// Nobody: it resolves itself with time.
    Nobody,
}

/// One row of the registry.
#[derive(Debug, Serialize)]
pub struct ReasonCodeEntry {
    /// The code itself.
    pub code: ReasonCode,
    /// How it affects the state, unless a profile overrides it.
    pub effect: ReasonEffect,
    /// The step that reports it.
    pub step: ResolutionStep,
    /// The rule of the conformance checklist that it enforces; empty for an operational reason.
    pub requirement: &'static str,
    /// Who can fix it.
    pub fixer: FixerRole,
    /// Whether a later retry may give another answer although nobody changed what is published.
    pub retryable: bool,
    /// One short sentence.
    pub title: &'static str,
    /// A paragraph: what was found, why it matters, what to do.
    pub explanation: &'static str,
}

/// Generates [`ReasonCode`] from all rows.
macro_rules! registry {
    ([] $($variant:ident $slug:literal $effect:ident $step:ident $requirement:literal $fixer:ident $retryable:literal
       $title:literal $explanation:literal;)*) => {
        /// A stable reason code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum ReasonCode {
            $(#[doc = $title] $variant,)*
        }

        impl ReasonCode {
            /// Every code, in registry order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The stable kebab-case slug.
            pub const fn slug(self) -> &'static str {
                match self { $(Self::$variant => $slug,)* }
            }

            /// The registry's row for this code.
            pub const fn entry(self) -> &'static ReasonCodeEntry {
                match self {
                    $(Self::$variant => const { &ReasonCodeEntry {
                        code: ReasonCode::$variant, effect: ReasonEffect::$effect, step: ResolutionStep::$step, requirement: $requirement,
                        fixer: FixerRole::$fixer, retryable: $retryable, title: $title, explanation: $explanation,
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

impl ReasonCode {
    /// Whether a verdict can contain the code. Findings about a card of another system, a host, a signature, a payment,
    /// a request or a receipt are never part of a verdict.
    pub fn is_verdict_code(self) -> bool {
        ResolutionStep::WALK.contains(&self.entry().step)
    }

    /// The code's stable URI, for the `type` of a problem (RFC 9457). It identifies the code and cannot be
    /// dereferenced.
    pub fn uri(self) -> String {
        format!("{URI_PREFIX}{}", self.slug())
    }

    /// The code with this slug.
    pub fn from_slug(slug: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|c| c.slug() == slug)
    }
}

// A derived implementation would compile a branch for each code into every document that contains one.
impl Serialize for ReasonCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.slug())
    }
}

impl<'de> Deserialize<'de> for ReasonCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(ReasonCodeVisitor)
    }
}

struct ReasonCodeVisitor;

impl Visitor<'_> for ReasonCodeVisitor {
    type Value = ReasonCode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a reason code")
    }

    fn visit_str<E: serde::de::Error>(self, slug: &str) -> Result<ReasonCode, E> {
        ReasonCode::from_slug(slug).ok_or_else(|| E::invalid_value(Unexpected::Str(slug), &self))
    }
}

impl fmt::Display for ReasonCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.slug())
    }
}

/// One finding, as verdicts contain it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The stable code.
    pub code: ReasonCode,
    /// How it affects the state under the active profile.
    pub effect: ReasonEffect,
    /// The step that reported it.
    pub step: ResolutionStep,
    /// The rule that it enforces; absent for an operational reason.
    pub requirement: Option<String>,
    /// One plain sentence.
    pub message: String,
    /// What the rules or the other side require.
    pub expected: Option<String>,
    /// What was found.
    pub observed: Option<String>,
    /// Where it was found: a record's key, a member's JSON Pointer, a source or an endpoint's label.
    #[serde(rename = "where")]
    pub place: Option<String>,
    /// Whether a retry may give another answer.
    pub retryable: bool,
    /// What to change. It proposes a value only if the CID proves that value.
    pub fix: Option<String>,
}

impl Reason {
    /// A reason with the effect, the step and the requirement of the registry, and its title as the message.
    pub fn new(code: ReasonCode) -> Self {
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

    /// Sets a message other than the registry's title.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// Sets the expected value.
    #[must_use]
    pub fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(truncate_bytes(&expected.into(), MAX_VALUE_BYTES));
        self
    }

    /// Sets the value that was found.
    #[must_use]
    pub fn observed(mut self, observed: impl Into<String>) -> Self {
        self.observed = Some(truncate_bytes(&observed.into(), MAX_VALUE_BYTES));
        self
    }

    /// Sets where it was found.
    #[must_use]
    pub fn at_place(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into());
        self
    }

    /// Sets the rule, for a code that serves several rules.
    #[must_use]
    pub fn with_requirement(mut self, requirement: &str) -> Self {
        self.requirement = Some(requirement.to_owned());
        self
    }

    /// Sets a step other than the registry's.
    #[must_use]
    pub fn with_step(mut self, step: ResolutionStep) -> Self {
        self.step = step;
        self
    }

    /// Sets a proposed fix.
    #[must_use]
    pub fn with_fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

/// Maximum length of an expected or observed value in a reason, in bytes: enough for any honest record, URL or digest,
/// and a limit on what a hostile value can write to verdicts and logs.
pub const MAX_VALUE_BYTES: usize = 512;

/// Sorts reasons into report order: by effect, then step, then code, then place.
pub fn sort_reasons(reasons: &mut [Reason]) {
    reasons
        .sort_by(|a, b| (a.effect, a.step, a.code.slug(), &a.place).cmp(&(b.effect, b.step, b.code.slug(), &b.place)));
}

/// The codes of the findings, sorted by effect and then by name, without duplicates.
pub fn sorted_reason_codes(found: impl IntoIterator<Item = (ReasonEffect, ReasonCode)>) -> Vec<String> {
    let mut coded: Vec<(ReasonEffect, &str)> = found.into_iter().map(|(effect, code)| (effect, code.slug())).collect();
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
        let slugs: BTreeSet<_> = ReasonCode::ALL.iter().map(|c| c.slug()).collect();
        assert_eq!(slugs.len(), ReasonCode::ALL.len());
        for code in ReasonCode::ALL {
            assert!(code.slug().bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'));
            assert_eq!(ReasonCode::from_slug(code.slug()), Some(*code));
            assert_eq!(code.entry().code, *code);
        }
    }

    #[test]
    fn codes_are_written_as_their_slugs_and_nothing_else_is_one() {
        for code in ReasonCode::ALL {
            let text = format!("\"{}\"", code.slug());
            assert_eq!(serde_json::to_string(code).expect("a text"), text);
            assert_eq!(serde_json::from_str::<ReasonCode>(&text).expect("a code"), *code);
            let member = format!("{{{text}:1}}");
            let map: BTreeMap<ReasonCode, u8> = serde_json::from_str(&member).expect("a code as a name");
            assert_eq!(serde_json::to_string(&map).expect("an object"), member);
        }
        let refused = |text: &str| serde_json::from_str::<ReasonCode>(text).expect_err("no code").to_string();
        assert!(
            refused("\"no-such-code\"").starts_with("invalid value: string \"no-such-code\", expected a reason code")
        );
        for text in ["5", "null", "{\"txt-missing\":null}", "\"TxtMissing\"", "\"\""] {
            assert!(refused(text).contains("expected a reason code"), "{text}");
        }
    }

    #[test]
    fn reasons_sort_by_effect_then_step_then_code() {
        let mut reasons =
            [ReasonCode::SingleRpc, ReasonCode::CidMismatch, ReasonCode::CidUnproven, ReasonCode::TxtMissing]
                .map(Reason::new);
        sort_reasons(&mut reasons);
        let order = reasons.map(|r| r.code);
        assert_eq!(
            order,
            [ReasonCode::TxtMissing, ReasonCode::CidMismatch, ReasonCode::CidUnproven, ReasonCode::SingleRpc]
        );
    }
}
