//! The gate's policy: decides from the verdict whether a request to an agent may pass.

use clresolve_core::reading::{Grade, Proof};
use clresolve_core::reason::{Code, Refusal, Step};
use serde::{Deserialize, Serialize};

use crate::trust::{Resolution, Trusted};
use crate::verdict::{Identity, Status, Verdict};

/// What the gate requires beyond a trusted verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatePolicy {
    /// Warnings that close the gate although the verdict is trusted.
    pub deny: Vec<Code>,
    /// Minimum grade of proof. `None` accepts any grade except an answer from a single third-party endpoint.
    pub min_proof: Option<Grade>,
    /// Verbs that the gate admits.
    pub verbs: GateVerbs,
}

impl Default for GatePolicy {
    fn default() -> Self {
        Self { deny: DENIED_BY_DEFAULT.to_vec(), min_proof: None, verbs: GateVerbs::default() }
    }
}

/// The default of [`GatePolicy::deny`]: a card that its publisher has withdrawn (CL-9), and a name that anyone may
/// register.
pub const DENIED_BY_DEFAULT: [Code; 2] = [Code::StatusWithdrawn, Code::NameReleased];

/// Which of an agent's verbs the gate admits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GateVerbs {
    /// Only `implements[0]`, the verb of the card's entry. The card names no URL for other verbs (CL-70).
    #[default]
    Entry,
    /// Every verb that the card implements. The operator knows the URLs of the other verbs.
    Implemented,
}

impl GatePolicy {
    /// Why a request to the agent must not pass; `None` admits it. `verb` and `network` (CAIP-2) are checked only if
    /// present.
    ///
    /// Conditions are checked in this order, and the first that fails is returned: the verdict is trusted; the newest
    /// block [confirms](Resolution::standing) it; the policy has no [reservation](Self::reservation); the card
    /// implements the verb and names an entry for it; the card lists the network. The decision is about the present, so
    /// it requires a live resolution.
    pub fn objection(
        &self,
        resolution: &Resolution,
        verb: Option<&str>,
        network: Option<&str>,
    ) -> Option<&'static str> {
        let trusted = match resolution.trusted() {
            Ok(trusted) => trusted,
            Err(code) => return Some(code),
        };
        if let Err(refusal) = resolution.standing()
            && !clresolve_core::mutant!("unconfirmed-opens-the-gate")
        {
            return Some(refusal.slug());
        }
        if let Some(code) = self.reservation(&trusted) {
            return Some(code);
        }
        let agent = trusted.verdict().identity.as_ref();
        let of_verb = verb.and_then(|verb| self.against_verb(agent, verb));
        of_verb.or_else(|| network.and_then(|network| against_network(agent, network))).map(Refusal::slug)
    }

    /// The agent's verbs that the policy admits (CL-70).
    pub fn verbs_of<'a>(&self, agent: &'a Identity) -> impl Iterator<Item = &'a str> {
        agent.verbs.iter().map(String::as_str).filter(|verb| self.against_verb(Some(agent), verb).is_none())
    }

    /// CL-70.
    fn against_verb(&self, agent: Option<&Identity>, verb: &str) -> Option<Refusal> {
        let verbs = agent.map(|agent| agent.verbs.as_slice()).unwrap_or_default();
        match verbs.iter().position(|known| known == verb) {
            None => Some(Refusal::VerbNotImplemented),
            Some(0) => None,
            Some(_) => (self.verbs == GateVerbs::Entry && !clresolve_core::mutant!("any-verb-passes"))
                .then_some(Refusal::VerbWithoutEntry),
        }
    }

    /// The policy's objection to a trusted agent. Checked in this order: a single third-party endpoint, a grade of
    /// proof below the minimum, and a warning in [`GatePolicy::deny`].
    ///
    /// If `deny` contains a warning that requires the history store, a missing or unavailable history store is an
    /// objection too. If `deny` contains `owner-unproven`, an unreadable holder is an objection as well: otherwise
    /// an agent could pass by naming an owner whose holder is unreadable.
    pub fn reservation(&self, trusted: &Trusted) -> Option<&'static str> {
        self.against_verdict(trusted.verdict())
    }

    /// As [`GatePolicy::reservation`], for a verdict in any state: what a name publishes about payees counts without a
    /// trusted card, too.
    pub fn against_verdict(&self, verdict: &Verdict) -> Option<&'static str> {
        let Some(anchor) = &verdict.anchor else { return Some(Refusal::InternalError.slug()) };
        if let Some(code) = self.against_proof(&anchor.proof) {
            return Some(code);
        }
        if self.denies_by_memory() && !remembers(verdict) && !clresolve_core::mutant!("no-memory-denies-nothing") {
            return Some(Code::MemoryUnavailable.slug());
        }
        let is_denied = |code: Code| match code {
            Code::MemoryUnavailable if self.denies_by_memory() => true,
            Code::HolderUnreadable if self.deny.contains(&Code::OwnerUnproven) => true,
            code => self.deny.contains(&code),
        };
        let mut denied = verdict.reasons.iter().map(|reason| reason.code).filter(|code| is_denied(*code));
        denied.find(|_| !clresolve_core::mutant!("denied-warnings-pass")).map(Code::slug)
    }

    /// The policy's objection to a proof: a single third-party endpoint, or a grade below the minimum.
    pub fn against_proof(&self, proof: &Proof) -> Option<&'static str> {
        if proof.is_one_strangers_word() && !clresolve_core::mutant!("strangers-word-opens") {
            return Some(Code::SingleRpc.slug());
        }
        self.against_grade(proof)
    }

    /// The policy's objection to a grade below [`GatePolicy::min_proof`].
    pub fn against_grade(&self, proof: &Proof) -> Option<&'static str> {
        self.min_proof.is_some_and(|least| proof.grade < least).then_some(Refusal::ProofTooWeak.slug())
    }

    /// Whether `deny` contains a warning that requires the history of earlier verdicts.
    pub fn denies_by_memory(&self) -> bool {
        self.deny.iter().any(|code| code.entry().step == Step::Continuity)
    }
}

/// Whether the history store was consulted for the name.
fn remembers(verdict: &Verdict) -> bool {
    verdict.steps.iter().any(|report| report.step == Step::Continuity && report.status != Status::Skip)
}

/// CL-71.
fn against_network(agent: Option<&Identity>, network: &str) -> Option<Refusal> {
    let is_listed = agent.is_some_and(|agent| agent.networks.iter().any(|known| known == network));
    (!is_listed && !clresolve_core::mutant!("any-network-passes")).then_some(Refusal::NetworkNotListed)
}

#[cfg(test)]
mod tests {
    use clresolve_core::reason::Reason;
    use clresolve_core::state::State;
    use jiff::Timestamp;
    use serde_json::Value;

    use super::*;
    use crate::sample;
    use crate::verdict::{Anchor, AnchorBlock, StepReport};

    /// A trusted agent with two verbs on one network, proven by a quorum, whose card has the given warnings.
    fn agent(warnings: &[Code]) -> Resolution {
        proven_by(Proof { grade: Grade::Quorum, asked: 2, agreed: 2, own: false }, warnings)
    }

    fn proven_by(proof: Proof, warnings: &[Code]) -> Resolution {
        let mut verdict = sample::empty(State::Trusted, Timestamp::UNIX_EPOCH, 0).verdict().as_ref().clone();
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        verdict.reasons = warnings.iter().map(|code| Reason::new(*code)).collect();
        verdict.identity = Some(Identity {
            verbs: texts(&["summarize", "classify"]),
            networks: texts(&["eip155:1"]),
            ..Identity::default()
        });
        verdict.anchor = Some(Anchor {
            world: "test".to_owned(),
            chain: "eip155:1".to_owned(),
            block: AnchorBlock { number: 1, hash: String::new(), timestamp: String::new(), tag: String::new() },
            resolver: None,
            wildcard: None,
            offchain: false,
            proof,
            records_digest: None,
        });
        verdict.steps = vec![continuity(Status::Pass)];
        sample::live(verdict, None)
    }

    fn continuity(status: Status) -> StepReport {
        StepReport { step: Step::Continuity, status, evidence: Value::Null, ms: 0 }
    }

    #[test]
    fn the_entry_is_that_of_the_first_verb() {
        let agent = Identity {
            verbs: ["summarize", "classify"].map(str::to_owned).to_vec(),
            entry: Some("x402://a.eth/summarize/v1".to_owned()),
            ..Identity::default()
        };
        let first = Some("x402://a.eth/summarize/v1");
        assert_eq!([None, Some("summarize"), Some("classify")].map(|verb| agent.entry_for(verb)), [first, first, None]);
    }

    #[test]
    fn only_the_entrys_verb_passes_by_default() {
        let (strict, loose) =
            (GatePolicy::default(), GatePolicy { verbs: GateVerbs::Implemented, ..GatePolicy::default() });
        let denial = |policy: &GatePolicy, verb| policy.objection(&agent(&[]), verb, None);
        assert_eq!(denial(&strict, None), None);
        assert_eq!(denial(&strict, Some("summarize")), None);
        assert_eq!(denial(&strict, Some("classify")), Some("verb-without-entry"));
        assert_eq!(denial(&strict, Some("clean")), Some("verb-not-implemented"));
        assert_eq!(denial(&loose, Some("classify")), None);
        assert_eq!(denial(&loose, Some("clean")), Some("verb-not-implemented"));
    }

    #[test]
    fn the_verbs_of_an_agent_are_those_that_pass() {
        let of = |verbs, agent: &Identity| -> Vec<String> {
            GatePolicy { verbs, ..GatePolicy::default() }.verbs_of(agent).map(str::to_owned).collect()
        };
        let agent = Identity { verbs: ["summarize", "classify"].map(str::to_owned).to_vec(), ..Identity::default() };
        assert_eq!(of(GateVerbs::Entry, &agent), ["summarize"]);
        assert_eq!(of(GateVerbs::Implemented, &agent), ["summarize", "classify"]);
        assert_eq!(of(GateVerbs::Implemented, &Identity::default()), [""; 0]);
    }

    #[test]
    fn a_network_that_is_asked_for_must_be_listed() {
        let denial = |verb, network| GatePolicy::default().objection(&agent(&[]), verb, Some(network));
        assert_eq!(denial(None, "eip155:1"), None);
        assert_eq!(denial(Some("summarize"), "eip155:1"), None);
        for network in ["eip155:8453", "EIP155:1", "eip155:1 ", ""] {
            assert_eq!(denial(Some("summarize"), network), Some("network-not-listed"), "{network:?}");
        }
        assert_eq!(denial(Some("clean"), "eip155:8453"), Some("verb-not-implemented"));
    }

    #[test]
    fn withdrawn_agent_is_denied_by_default() {
        let withdrawn = agent(&[Code::StatusWithdrawn]);
        assert_eq!(GatePolicy::default().objection(&withdrawn, None, None), Some("status-withdrawn"));
        let other = GatePolicy { deny: vec![Code::StatusDeprecated], ..GatePolicy::default() };
        assert_eq!(other.objection(&withdrawn, None, None), None);
        assert_eq!(other.objection(&agent(&[Code::StatusDeprecated]), None, None), Some("status-deprecated"));
    }

    #[test]
    fn released_name_is_denied_unless_the_operator_allows_it() {
        let released = agent(&[Code::NameReleased]);
        assert_eq!(GatePolicy::default().objection(&released, None, None), Some("name-released"));
        let none = GatePolicy { deny: Vec::new(), ..GatePolicy::default() };
        assert_eq!(none.objection(&released, None, None), None);
        assert_eq!(GatePolicy::default().objection(&agent(&[Code::NameExpired]), None, None), None);
    }

    #[test]
    fn unreadable_holder_is_denied_with_unproven_owners() {
        let unreadable = agent(&[Code::HolderUnreadable]);
        assert_eq!(GatePolicy::default().objection(&unreadable, None, None), None);
        for code in [Code::OwnerUnproven, Code::HolderUnreadable] {
            let policy = GatePolicy { deny: vec![code], ..GatePolicy::default() };
            assert_eq!(policy.objection(&unreadable, None, None), Some("holder-unreadable"));
        }
    }

    #[test]
    fn nothing_but_a_trusted_verdict_passes() {
        for state in [State::Untrusted, State::Indeterminate] {
            let denial = GatePolicy::default().objection(&sample::empty(state, Timestamp::UNIX_EPOCH, 0), None, None);
            assert_eq!(denial, Some("name-invalid"), "{state}");
        }
        let without_anchor = sample::empty(State::Trusted, Timestamp::UNIX_EPOCH, 0);
        assert_eq!(GatePolicy::default().objection(&without_anchor, None, None), Some("internal-error"));
    }

    #[test]
    fn a_strangers_word_and_too_weak_a_proof_are_denied() {
        let denial = |grade, own, min_proof| {
            let agent = proven_by(Proof { grade, asked: 2, agreed: 2, own }, &[]);
            GatePolicy { min_proof, ..GatePolicy::default() }.objection(&agent, None, None)
        };
        assert_eq!(denial(Grade::SingleRpc, false, None), Some("single-rpc"));
        assert_eq!(denial(Grade::SingleRpc, true, None), None);
        assert_eq!(denial(Grade::SingleRpc, true, Some(Grade::Quorum)), Some("proof-too-weak"));
        assert_eq!(denial(Grade::Quorum, false, Some(Grade::Quorum)), None);
        assert_eq!(denial(Grade::StateProof, false, Some(Grade::Quorum)), None);
        assert_eq!(denial(Grade::Quorum, false, Some(Grade::StateProof)), Some("proof-too-weak"));
        assert_eq!(denial(Grade::ConsensusProof, false, Some(Grade::StateProof)), None);
        assert_eq!(denial(Grade::ConsensusProof, false, Some(Grade::ConsensusProof)), None);
        assert_eq!(denial(Grade::StateProof, true, Some(Grade::ConsensusProof)), Some("proof-too-weak"));
    }

    #[test]
    fn a_memory_that_cannot_be_asked_is_denied_where_something_is_denied_that_it_alone_knows() {
        let unasked = agent(&[Code::MemoryUnavailable]);
        let denying = |code| GatePolicy { deny: vec![code], ..GatePolicy::default() };
        assert!(denying(Code::VersionRollback).denies_by_memory());
        assert_eq!(denying(Code::VersionRollback).objection(&unasked, None, None), Some("memory-unavailable"));
        let mut without = agent(&[]).verdict().as_ref().clone();
        without.steps = vec![continuity(Status::Skip)];
        let without = sample::live(without, None);
        assert_eq!(denying(Code::VersionRollback).objection(&without, None, None), Some("memory-unavailable"));
        assert_eq!(denying(Code::StatusWithdrawn).objection(&without, None, None), None);
        assert!(!denying(Code::StatusWithdrawn).denies_by_memory());
        assert_eq!(denying(Code::StatusWithdrawn).objection(&unasked, None, None), None);
        assert_eq!(denying(Code::VersionRollback).objection(&agent(&[Code::NameExpiring]), None, None), None);
    }
}
