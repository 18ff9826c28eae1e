//! The rules: pure functions from evidence and a profile to reasons. No I/O, no clock, no panic on any input.
//!
//! One file per step of the walk. A function gives every reason it finds, each with the effect that the profile gives
//! it; order does not matter, [`crate::reason::sort`] makes it.

pub mod card;
mod content;
pub mod entry;
pub mod schemas;
pub mod verbs;

use crate::profile::Profile;
use crate::reason::{Code, Reason};

/// Most reasons of one code from one rule function.
///
/// A hostile card can break one rule a hundred thousand times; the verdict is the same after the first one.
pub const MAX_REASONS_PER_CODE: usize = 16;

/// Longest foreign text in a reason, in bytes, before it is cut.
pub const MAX_EXCERPT_BYTES: usize = 200;

/// Foreign text for a reason: cut at a character border to at most [`MAX_EXCERPT_BYTES`], with `…` where it was cut.
pub fn excerpt(text: &str) -> String {
    if text.len() <= MAX_EXCERPT_BYTES {
        return text.to_owned();
    }
    let room = MAX_EXCERPT_BYTES - '…'.len_utf8();
    let end = (0..=room).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}…", &text[..end])
}

/// Collects reasons, at most [`MAX_REASONS_PER_CODE`] of each code.
#[derive(Debug, Default)]
pub(crate) struct Findings(Vec<Reason>);

impl Findings {
    pub(crate) fn add(&mut self, reason: Reason) {
        if self.count(reason.code) < MAX_REASONS_PER_CODE {
            self.0.push(reason);
        }
    }

    pub(crate) fn full(&self, code: Code) -> bool {
        self.count(code) >= MAX_REASONS_PER_CODE
    }

    /// The reasons, each with the effect that `profile` gives it.
    pub(crate) fn weighed(self, profile: &Profile) -> Vec<Reason> {
        self.0.into_iter().map(|reason| profile.weigh(reason)).collect()
    }

    fn count(&self, code: Code) -> usize {
        self.0.iter().filter(|reason| reason.code == code).count()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::card::Card;
    use crate::profile::{DEFAULT, Profiles};

    const CID: &str = "bafybeigvf6nkzws7dblos74dqqjkguwkrwn4a2c27ieygoxmgofyzdkz6m";

    /// A commons card without a defect under every profile.
    pub(crate) fn good() -> Value {
        let canonical = |side: &str| format!("ipfs://{CID}/commons/summarize/{side}s/summarize.{side}.schema.json");
        let mirror = |side: &str| {
            format!("https://commandlayer.org/schemas/v1.0.0/commons/summarize/{side}s/summarize.{side}.schema.json")
        };
        json!({
            "$schema": "https://commandlayer.org/agent-cards/schemas/v1.0.0/_shared/agent.card.base.schema.json",
            "$id": "https://commandlayer.org/agent-cards/agents/v1.0.0/commons/summarizeagent.eth.json",
            "id": "summarizeagent.eth",
            "slug": "summarizeagent",
            "display_name": "Summarize Agent",
            "description": "Makes long texts short.",
            "owner": "commandlayer.eth",
            "ens": "summarizeagent.eth",
            "version": "1.0.0",
            "status": "protocol_reference",
            "class": "commons",
            "implements": ["summarize"],
            "schemas": {"request": canonical("request"), "receipt": canonical("receipt")},
            "schemas_mirror": {"request": mirror("request"), "receipt": mirror("receipt")},
            "entry": "x402://summarizeagent.eth/summarize/v1",
            "capabilities": {"operations": ["compress"]},
            "meta": {"publisher": "CommandLayer", "contact": "dev@commandlayer.org"},
            "networks": ["eip155:1"],
            "license": "Apache-2.0",
            "created_at": "2025-11-22T00:00:00Z",
            "updated_at": "2025-11-22T00:00:00Z",
        })
    }

    /// A commercial card without a defect under every profile.
    pub(crate) fn good_commercial() -> Value {
        let location = |side: &str| {
            format!("https://commandlayer.org/schemas/v1.0.0/commercial/purchase/{side}s/purchase.{side}.schema.json")
        };
        let mut card = good();
        card["$id"] = json!("https://commandlayer.org/agent-cards/agents/v1.0.0/commercial/purchaseagent.eth.json");
        for (member, value) in [("id", "purchaseagent.eth"), ("slug", "purchaseagent"), ("ens", "purchaseagent.eth")] {
            card[member] = json!(value);
        }
        card["class"] = json!("commercial");
        card["implements"] = json!(["purchase"]);
        card["entry"] = json!("x402://purchaseagent.eth/purchase/v1");
        card["schemas"] = json!({"request": location("request"), "receipt": location("receipt")});
        card.as_object_mut().expect("a card").remove("schemas_mirror");
        card
    }

    /// What `rule` says of `document` under the default profile.
    pub(crate) fn judged(document: &Value, rule: fn(&Card, &Profile) -> Vec<Reason>) -> Vec<Reason> {
        judged_under(DEFAULT, document, rule)
    }

    /// What `rule` says of `document` under a profile.
    pub(crate) fn judged_under(
        profile: &str,
        document: &Value,
        rule: fn(&Card, &Profile) -> Vec<Reason>,
    ) -> Vec<Reason> {
        let card = Card::parse(document.to_string().as_bytes()).expect("strict JSON");
        rule(&card, &Profiles::builtin().get(profile).expect("a profile that is built in"))
    }

    /// The codes of `reasons`, sorted, each once.
    pub(crate) fn codes(reasons: &[Reason]) -> Vec<&'static str> {
        let mut codes: Vec<_> = reasons.iter().map(|reason| reason.code.slug()).collect();
        codes.sort_unstable();
        codes.dedup();
        codes
    }

    #[test]
    fn excerpts_are_cut_at_character_borders() {
        assert_eq!(excerpt("short"), "short");
        let cut = excerpt(&"é".repeat(150));
        assert!(cut.len() <= MAX_EXCERPT_BYTES && cut.ends_with("é…"));
    }

    #[test]
    fn one_code_is_not_repeated_without_end() {
        let mut findings = Findings::default();
        for at in 0..100 {
            findings.add(Reason::new(Code::VerbUnknown).at(format!("/implements/{at}")));
        }
        assert!(findings.full(Code::VerbUnknown));
        assert_eq!(findings.0.len(), MAX_REASONS_PER_CODE);
    }
}
