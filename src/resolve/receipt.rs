//! Receipts: the agent's verdict and its signer's records are read here, and handed to the pure judgement.

use clresolve_receipt::document::Setting;
use clresolve_receipt::judge::{Agent, Knowledge};
use clresolve_receipt::question::Request;
use clresolve_receipt::{Question, Verification, judge};

use super::look_ups::Beside;
use super::{Inner, Resolver, signer};
use crate::name::EnsName;
use crate::reason::{Code, Reason};
use crate::verdict::{Resolution, Verdict};

impl Resolver {
    /// Whether a receipt holds: that the signer which the agent's records name has signed it, that it is about this agent,
    /// and, where a request is given, about that request. Nothing is written or remembered.
    ///
    /// Never fails: what went wrong is in the answer.
    pub async fn verify_receipt(&self, question: &Question) -> Verification {
        let resolution = self.resolve(&question.name).await;
        self.verify_receipt_of(&resolution, question).await
    }

    /// The same, about the agent of a verdict that was just asked for.
    pub(crate) async fn verify_receipt_of(&self, resolution: &Resolution, question: &Question) -> Verification {
        let Inner { walker, signers, .. } = &*self.0;
        let verdict = resolution.verdict().clone();
        let agent = agent(&verdict);
        let signer = match Beside::of(resolution) {
            Some(beside) => signer::receipts::of(&signers.receipts, walker, &beside).await,
            None => Err(Box::new(Reason::new(Code::ReceiptKeyUnpublished).observed("the name has no normal form"))),
        };
        let (question, now) = (question.clone(), self.now());
        let judged = move || {
            let known = Knowledge {
                agent: agent.as_ref(),
                signer: signer.as_ref().map_err(|reason| &**reason),
                request: question.request.as_ref(),
                now,
            };
            let setting = Setting {
                verdict: &verdict,
                signer: signer.as_ref().ok(),
                request: question.request.as_ref().map(Request::sha256),
                now,
            };
            Verification::of(judge(&question.receipt, &known), &setting)
        };
        walker.pool.run(judged).await
    }
}

fn agent(verdict: &Verdict) -> Option<Agent> {
    let name = EnsName::parse(verdict.name.normalized.as_deref()?).ok()?;
    let identity = verdict.identity.as_ref();
    Some(Agent {
        name,
        entry: identity.and_then(|identity| identity.entry.clone()),
        verbs: identity.map(|identity| identity.verbs.clone()).unwrap_or_default(),
    })
}
