//! The policy of the gate: whether a request to an agent may pass, by the verdict on its name.

use clresolve_core::reading::Grade;
use clresolve_core::reason::{Code, Refusal, Step};

use crate::trust::{Resolution, Trusted};

/// What the gate demands beyond a trusted verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatePolicy {
    /// Warnings on which it refuses, although the verdict is trusted.
    pub deny: Vec<Code>,
    /// The weakest grade of proof with which it lets pass. `None`: any, but one stranger's word.
    pub min_proof: Option<Grade>,
}

impl GatePolicy {
    /// Why a request to the agent, for `verb` where one is named, must not pass; `None` lets it pass.
    ///
    /// The verdict must be trusted, the policy must have no [reservation](Self::reservation), and the card must implement
    /// the verb; the first that does not hold is named. The decision is about now, so the verdict of a live run is needed.
    pub fn objection(&self, resolution: &Resolution, verb: Option<&str>) -> Option<&'static str> {
        let trusted = match resolution.trusted() {
            Ok(trusted) => trusted,
            Err(code) => return Some(code),
        };
        self.reservation(&trusted).or_else(|| {
            let agent = trusted.verdict().identity.as_ref();
            let verbs = agent.map(|agent| agent.verbs.as_slice()).unwrap_or_default();
            let implemented = verb.is_none_or(|verb| verbs.iter().any(|known| known == verb));
            (!implemented).then_some(Refusal::VerbNotImplemented.slug())
        })
    }

    /// What the policy has against a trusted agent: one stranger's word, too weak a proof, or a warning in
    /// [`GatePolicy::deny`], in this order.
    ///
    /// Where something is denied that only the memory knows, a memory that could not be asked is denied too.
    pub fn reservation(&self, trusted: &Trusted) -> Option<&'static str> {
        let verdict = trusted.verdict();
        let Some(anchor) = &verdict.anchor else { return Some(Refusal::InternalError.slug()) };
        if anchor.proof.is_one_strangers_word() && !clresolve_core::mutant!("strangers-word-opens") {
            return Some(Code::SingleRpc.slug());
        }
        if self.min_proof.is_some_and(|least| anchor.proof.grade < least) {
            return Some(Refusal::ProofTooWeak.slug());
        }
        let is_denied =
            |code: Code| self.deny.contains(&code) || (code == Code::MemoryUnavailable && self.denies_by_memory());
        verdict.reasons.iter().find(|reason| is_denied(reason.code)).map(|denied| denied.code.slug())
    }

    /// Whether something is denied that only a memory of earlier verdicts can tell.
    pub fn denies_by_memory(&self) -> bool {
        self.deny.iter().any(|code| code.entry().step == Step::Continuity)
    }
}
