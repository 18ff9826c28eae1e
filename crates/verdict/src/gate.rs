//! The gate's policy: decides from the verdict whether a request to an agent may pass.

use clresolve_core::reading::{ProofGrade, ProofStrength};
use clresolve_core::reason::{ReasonCode, RefusalCode, ResolutionStep};
use serde::{Deserialize, Serialize};

use crate::trust::{Resolution, TrustedVerdict};
use crate::verdict::{AgentIdentity, StepStatus, Verdict};

/// What the gate requires beyond a trusted verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatePolicy {
    /// Warnings that close the gate although the verdict is trusted.
    pub deny: Vec<ReasonCode>,
    /// Minimum grade of proof. `None` accepts any grade except an answer from a single third-party endpoint.
    pub min_proof: Option<ProofGrade>,
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
pub const DENIED_BY_DEFAULT: [ReasonCode; 2] = [ReasonCode::StatusWithdrawn, ReasonCode::NameReleased];

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
    /// block [confirms](Resolution::newest_block_confirmation) it; the policy has no
    /// [reservation](Self::policy_objection); the card implements the verb and names an entry for it; the card lists
    /// the network. The decision is about the present, so it requires a live resolution.
    pub fn request_objection(
        &self,
        resolution: &Resolution,
        verb: Option<&str>,
        network: Option<&str>,
    ) -> Option<&'static str> {
        let trusted = match resolution.trusted_verdict() {
            Ok(trusted) => trusted,
            Err(code) => return Some(code),
        };
        if let Err(refusal) = resolution.newest_block_confirmation()
            && !clresolve_core::mutant!("unconfirmed-opens-the-gate")
        {
            return Some(refusal.slug());
        }
        if let Some(code) = self.policy_objection(&trusted) {
            return Some(code);
        }
        let agent = trusted.verdict().identity.as_ref();
        let of_verb = verb.and_then(|verb| self.verb_objection(agent, verb));
        of_verb.or_else(|| network.and_then(|network| network_objection(agent, network))).map(RefusalCode::slug)
    }

    /// The agent's verbs that the policy admits (CL-70).
    pub fn admitted_verbs<'a>(&self, agent: &'a AgentIdentity) -> impl Iterator<Item = &'a str> {
        agent.verbs.iter().map(String::as_str).filter(|verb| self.verb_objection(Some(agent), verb).is_none())
    }

    /// CL-70.
    fn verb_objection(&self, agent: Option<&AgentIdentity>, verb: &str) -> Option<RefusalCode> {
        let verbs = agent.map(|agent| agent.verbs.as_slice()).unwrap_or_default();
        match verbs.iter().position(|known| known == verb) {
            None => Some(RefusalCode::VerbNotImplemented),
            Some(0) => None,
            Some(_) => (self.verbs == GateVerbs::Entry && !clresolve_core::mutant!("any-verb-passes"))
                .then_some(RefusalCode::VerbWithoutEntry),
        }
    }

    /// The policy's objection to a trusted agent. Checked in this order: a single third-party endpoint, a grade of
    /// proof below the minimum, and a warning in [`GatePolicy::deny`].
    ///
    /// If `deny` contains a warning that requires the history store, a missing or unavailable history store is an
    /// objection too. If `deny` contains `owner-unproven`, an unreadable holder is an objection as well: otherwise
    /// an agent could pass by naming an owner whose holder is unreadable.
    pub fn policy_objection(&self, trusted: &TrustedVerdict) -> Option<&'static str> {
        self.verdict_objection(trusted.verdict())
    }

    /// As [`GatePolicy::policy_objection`], for a verdict in any state: what a name publishes about payees counts
    /// without a trusted card, too.
    pub fn verdict_objection(&self, verdict: &Verdict) -> Option<&'static str> {
        let Some(anchor) = &verdict.anchor else { return Some(RefusalCode::InternalError.slug()) };
        if let Some(code) = self.proof_objection(&anchor.proof) {
            return Some(code);
        }
        if self.requires_history()
            && !was_history_consulted(verdict)
            && !clresolve_core::mutant!("no-memory-denies-nothing")
        {
            return Some(ReasonCode::MemoryUnavailable.slug());
        }
        let is_denied = |code: ReasonCode| match code {
            ReasonCode::MemoryUnavailable if self.requires_history() => true,
            ReasonCode::HolderUnreadable if self.deny.contains(&ReasonCode::OwnerUnproven) => true,
            code => self.deny.contains(&code),
        };
        let mut denied = verdict.reasons.iter().map(|reason| reason.code).filter(|code| is_denied(*code));
        denied.find(|_| !clresolve_core::mutant!("denied-warnings-pass")).map(ReasonCode::slug)
    }

    /// The policy's objection to a proof: a single third-party endpoint, or a grade below the minimum.
    pub fn proof_objection(&self, proof: &ProofStrength) -> Option<&'static str> {
        if proof.relies_on_single_third_party() && !clresolve_core::mutant!("strangers-word-opens") {
            return Some(ReasonCode::SingleRpc.slug());
        }
        self.grade_objection(proof)
    }

    /// The policy's objection to a grade below [`GatePolicy::min_proof`].
    pub fn grade_objection(&self, proof: &ProofStrength) -> Option<&'static str> {
        self.min_proof.is_some_and(|least| proof.grade < least).then_some(RefusalCode::ProofTooWeak.slug())
    }

    /// Whether `deny` contains a warning that requires the history of earlier verdicts.
    pub fn requires_history(&self) -> bool {
        self.deny.iter().any(|code| code.entry().step == ResolutionStep::Continuity)
    }
}

/// Whether the history store was consulted for the name.
fn was_history_consulted(verdict: &Verdict) -> bool {
    verdict.steps.iter().any(|report| report.step == ResolutionStep::Continuity && report.status != StepStatus::Skip)
}

/// CL-71.
fn network_objection(agent: Option<&AgentIdentity>, network: &str) -> Option<RefusalCode> {
    let is_listed = agent.is_some_and(|agent| agent.networks.iter().any(|known| known == network));
    (!is_listed && !clresolve_core::mutant!("any-network-passes")).then_some(RefusalCode::NetworkNotListed)
}

#[cfg(test)]
mod tests {
    use clresolve_core::reason::Reason;
    use clresolve_core::state::TrustState;
    use jiff::Timestamp;
    use serde_json::Value;

    use super::*;
    use crate::sample;
    use crate::verdict::{AnchorBlock, ChainAnchor, StepReport};

    /// A trusted agent with two verbs on one network, proven by a quorum, whose card has the given warnings.
    fn agent(warnings: &[ReasonCode]) -> Resolution {
        proven_by(ProofStrength { grade: ProofGrade::Quorum, asked: 2, agreed: 2, own: false }, warnings)
    }

    fn proven_by(proof: ProofStrength, warnings: &[ReasonCode]) -> Resolution {
        let mut verdict =
            sample::empty_resolution(TrustState::Trusted, Timestamp::UNIX_EPOCH, 0).verdict().as_ref().clone();
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        verdict.reasons = warnings.iter().map(|code| Reason::new(*code)).collect();
        verdict.identity = Some(AgentIdentity {
            verbs: texts(&["summarize", "classify"]),
            networks: texts(&["eip155:1"]),
            ..AgentIdentity::default()
        });
        verdict.anchor = Some(ChainAnchor {
            world: "test".to_owned(),
            chain: "eip155:1".to_owned(),
            block: AnchorBlock { number: 1, hash: String::new(), timestamp: String::new(), tag: String::new() },
            resolver: None,
            wildcard: None,
            offchain: false,
            proof,
            records_digest: None,
        });
        verdict.steps = vec![continuity(StepStatus::Pass)];
        sample::resolution_of_verdict(verdict, None)
    }

    fn continuity(status: StepStatus) -> StepReport {
        StepReport { step: ResolutionStep::Continuity, status, evidence: Value::Null, ms: 0 }
    }

    #[test]
    fn the_entry_is_that_of_the_first_verb() {
        let agent = AgentIdentity {
            verbs: ["summarize", "classify"].map(str::to_owned).to_vec(),
            entry: Some("x402://a.eth/summarize/v1".to_owned()),
            ..AgentIdentity::default()
        };
        let first = Some("x402://a.eth/summarize/v1");
        assert_eq!(
            [None, Some("summarize"), Some("classify")].map(|verb| agent.entry_url_for_verb(verb)),
            [first, first, None]
        );
    }

    #[test]
    fn only_the_entrys_verb_passes_by_default() {
        let (strict, loose) =
            (GatePolicy::default(), GatePolicy { verbs: GateVerbs::Implemented, ..GatePolicy::default() });
        let denial = |policy: &GatePolicy, verb| policy.request_objection(&agent(&[]), verb, None);
        assert_eq!(denial(&strict, None), None);
        assert_eq!(denial(&strict, Some("summarize")), None);
        assert_eq!(denial(&strict, Some("classify")), Some("verb-without-entry"));
        assert_eq!(denial(&strict, Some("clean")), Some("verb-not-implemented"));
        assert_eq!(denial(&loose, Some("classify")), None);
        assert_eq!(denial(&loose, Some("clean")), Some("verb-not-implemented"));
    }

    #[test]
    fn the_verbs_of_an_agent_are_those_that_pass() {
        let of = |verbs, agent: &AgentIdentity| -> Vec<String> {
            GatePolicy { verbs, ..GatePolicy::default() }.admitted_verbs(agent).map(str::to_owned).collect()
        };
        let agent =
            AgentIdentity { verbs: ["summarize", "classify"].map(str::to_owned).to_vec(), ..AgentIdentity::default() };
        assert_eq!(of(GateVerbs::Entry, &agent), ["summarize"]);
        assert_eq!(of(GateVerbs::Implemented, &agent), ["summarize", "classify"]);
        assert_eq!(of(GateVerbs::Implemented, &AgentIdentity::default()), [""; 0]);
    }

    #[test]
    fn a_network_that_is_asked_for_must_be_listed() {
        let denial = |verb, network| GatePolicy::default().request_objection(&agent(&[]), verb, Some(network));
        assert_eq!(denial(None, "eip155:1"), None);
        assert_eq!(denial(Some("summarize"), "eip155:1"), None);
        for network in ["eip155:8453", "EIP155:1", "eip155:1 ", ""] {
            assert_eq!(denial(Some("summarize"), network), Some("network-not-listed"), "{network:?}");
        }
        assert_eq!(denial(Some("clean"), "eip155:8453"), Some("verb-not-implemented"));
    }

    #[test]
    fn withdrawn_agent_is_denied_by_default() {
        let withdrawn = agent(&[ReasonCode::StatusWithdrawn]);
        assert_eq!(GatePolicy::default().request_objection(&withdrawn, None, None), Some("status-withdrawn"));
        let other = GatePolicy { deny: vec![ReasonCode::StatusDeprecated], ..GatePolicy::default() };
        assert_eq!(other.request_objection(&withdrawn, None, None), None);
        assert_eq!(
            other.request_objection(&agent(&[ReasonCode::StatusDeprecated]), None, None),
            Some("status-deprecated")
        );
    }

    #[test]
    fn released_name_is_denied_unless_the_operator_allows_it() {
        let released = agent(&[ReasonCode::NameReleased]);
        assert_eq!(GatePolicy::default().request_objection(&released, None, None), Some("name-released"));
        let none = GatePolicy { deny: Vec::new(), ..GatePolicy::default() };
        assert_eq!(none.request_objection(&released, None, None), None);
        assert_eq!(GatePolicy::default().request_objection(&agent(&[ReasonCode::NameExpired]), None, None), None);
    }

    #[test]
    fn unreadable_holder_is_denied_with_unproven_owners() {
        let unreadable = agent(&[ReasonCode::HolderUnreadable]);
        assert_eq!(GatePolicy::default().request_objection(&unreadable, None, None), None);
        for code in [ReasonCode::OwnerUnproven, ReasonCode::HolderUnreadable] {
            let policy = GatePolicy { deny: vec![code], ..GatePolicy::default() };
            assert_eq!(policy.request_objection(&unreadable, None, None), Some("holder-unreadable"));
        }
    }

    #[test]
    fn nothing_but_a_trusted_verdict_passes() {
        for state in [TrustState::Untrusted, TrustState::Indeterminate] {
            let denial = GatePolicy::default().request_objection(
                &sample::empty_resolution(state, Timestamp::UNIX_EPOCH, 0),
                None,
                None,
            );
            assert_eq!(denial, Some("name-invalid"), "{state}");
        }
        let without_anchor = sample::empty_resolution(TrustState::Trusted, Timestamp::UNIX_EPOCH, 0);
        assert_eq!(GatePolicy::default().request_objection(&without_anchor, None, None), Some("internal-error"));
    }

    #[test]
    fn a_strangers_word_and_too_weak_a_proof_are_denied() {
        let denial = |grade, own, min_proof| {
            let agent = proven_by(ProofStrength { grade, asked: 2, agreed: 2, own }, &[]);
            GatePolicy { min_proof, ..GatePolicy::default() }.request_objection(&agent, None, None)
        };
        assert_eq!(denial(ProofGrade::SingleRpc, false, None), Some("single-rpc"));
        assert_eq!(denial(ProofGrade::SingleRpc, true, None), None);
        assert_eq!(denial(ProofGrade::SingleRpc, true, Some(ProofGrade::Quorum)), Some("proof-too-weak"));
        assert_eq!(denial(ProofGrade::Quorum, false, Some(ProofGrade::Quorum)), None);
        assert_eq!(denial(ProofGrade::StateProof, false, Some(ProofGrade::Quorum)), None);
        assert_eq!(denial(ProofGrade::Quorum, false, Some(ProofGrade::StateProof)), Some("proof-too-weak"));
        assert_eq!(denial(ProofGrade::ConsensusProof, false, Some(ProofGrade::StateProof)), None);
        assert_eq!(denial(ProofGrade::ConsensusProof, false, Some(ProofGrade::ConsensusProof)), None);
        assert_eq!(denial(ProofGrade::StateProof, true, Some(ProofGrade::ConsensusProof)), Some("proof-too-weak"));
    }

    #[test]
    fn a_memory_that_cannot_be_asked_is_denied_where_something_is_denied_that_it_alone_knows() {
        let unasked = agent(&[ReasonCode::MemoryUnavailable]);
        let denying = |code| GatePolicy { deny: vec![code], ..GatePolicy::default() };
        assert!(denying(ReasonCode::VersionRollback).requires_history());
        assert_eq!(
            denying(ReasonCode::VersionRollback).request_objection(&unasked, None, None),
            Some("memory-unavailable")
        );
        let mut without = agent(&[]).verdict().as_ref().clone();
        without.steps = vec![continuity(StepStatus::Skip)];
        let without = sample::resolution_of_verdict(without, None);
        assert_eq!(
            denying(ReasonCode::VersionRollback).request_objection(&without, None, None),
            Some("memory-unavailable")
        );
        assert_eq!(denying(ReasonCode::StatusWithdrawn).request_objection(&without, None, None), None);
        assert!(!denying(ReasonCode::StatusWithdrawn).requires_history());
        assert_eq!(denying(ReasonCode::StatusWithdrawn).request_objection(&unasked, None, None), None);
        assert_eq!(
            denying(ReasonCode::VersionRollback).request_objection(&agent(&[ReasonCode::NameExpiring]), None, None),
            None
        );
    }
}
