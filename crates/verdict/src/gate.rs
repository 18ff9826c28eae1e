//! The policy of the gate: whether a request to an agent may pass, by the verdict on its name.

use clresolve_core::reading::Grade;
use clresolve_core::reason::{Code, Refusal, Step};
use clresolve_core::state::State;

use crate::verdict::Verdict;

/// What the gate demands of a verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatePolicy {
    /// Warnings on which it refuses, although the verdict is trusted.
    pub deny: Vec<Code>,
    /// The weakest grade of proof with which it lets pass. `None`: any, but one stranger's word.
    pub min_proof: Option<Grade>,
}

impl GatePolicy {
    /// Why a request to the agent, for `verb` where one is named, must not pass; `None` lets it.
    ///
    /// A verdict that is not trusted, one stranger's word, too weak a proof, a warning among [`GatePolicy::deny`] and a
    /// verb that the card does not implement are refused, in this order; so is a memory that could not be asked where
    /// what only it knows is to be denied. The verdict itself stays what it is.
    pub fn objection(&self, verdict: &Verdict, verb: Option<&str>) -> Option<&'static str> {
        if verdict.state != State::Trusted {
            let first = verdict.reasons.first().map(|reason| reason.code.slug());
            return Some(first.unwrap_or(Refusal::InternalError.slug()));
        }
        let Some(anchor) = &verdict.anchor else { return Some(Refusal::InternalError.slug()) };
        if anchor.proof.is_one_strangers_word() {
            return Some(Code::SingleRpc.slug());
        }
        if self.min_proof.is_some_and(|least| anchor.proof.grade < least) {
            return Some(Refusal::ProofTooWeak.slug());
        }
        let is_denied =
            |code: Code| self.deny.contains(&code) || (code == Code::MemoryUnavailable && self.denies_by_memory());
        if let Some(denied) = verdict.reasons.iter().find(|reason| is_denied(reason.code)) {
            return Some(denied.code.slug());
        }
        let verbs = verdict.identity.as_ref().map(|agent| agent.verbs.as_slice()).unwrap_or_default();
        let implemented = verb.is_none_or(|verb| verbs.iter().any(|known| known == verb));
        (!implemented).then_some(Refusal::VerbNotImplemented.slug())
    }

    /// Whether something is denied that only a memory of earlier verdicts can tell.
    pub fn denies_by_memory(&self) -> bool {
        self.deny.iter().any(|code| code.entry().step == Step::Continuity)
    }
}
