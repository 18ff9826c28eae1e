//! Receipts: the agent's verdict, its signer's records and the settlement are read here, and handed to the pure judgement.

use std::sync::Arc;

use clresolve_bundle::BundleError;
use clresolve_bundle::purchase::{Evidence, Papers, PurchaseBundle};
use clresolve_receipt::document::ReceiptSetting;
use clresolve_receipt::judge::{AgentRoutes, BoundReceipt, ReceiptAgent, ReceiptKnowledge, SignerAddresses};
use clresolve_receipt::question::Request;
use clresolve_receipt::replay::Mark;
use clresolve_receipt::{Family, ReceiptQuestion, Verification, judge};

use super::look_ups::Beside;
use super::schemas::Known;
use super::{ExportError, Inner, Resolver, settlement, signer};
use crate::card::Side;
use crate::reason::{Code, Reason};
use crate::verdict::{Resolution, State};

impl Resolver {
    /// Whether a receipt holds: that the signer which the agent's records name has signed it, that it is about this agent,
    /// where a request is given, about that request, and where a payment is given, that it was settled. Nothing is written or
    /// remembered.
    ///
    /// Never fails: what went wrong is in the answer.
    pub async fn verify_receipt(&self, question: &ReceiptQuestion) -> Verification {
        let resolution = self.resolve(&question.name).await;
        self.verify_receipt_of(&resolution, Arc::new(question.clone())).await
    }

    /// The same, and marks a receipt that holds as seen for its request: for another one it does not hold again. Where no
    /// request is given, or nothing is remembered here (`memory.path`), that is not decided.
    ///
    /// Never fails: what went wrong is in the answer.
    pub async fn verify_and_remember_receipt(&self, question: &ReceiptQuestion) -> Verification {
        let resolution = self.resolve(&question.name).await;
        self.verify_and_remember_receipt_of(&resolution, Arc::new(question.clone())).await
    }

    /// A purchase from an agent with everything that it rests on, judged anew. The bundle does not hold the bound schema, nor
    /// the routes and payees of the configuration, so what rests on these is not judged by it.
    ///
    /// # Errors
    /// When something that must be in the bundle is not known: the signer's key, or what the chain says of a transaction.
    /// When something speaks against the receipt, or leaves it undecided, that the bundle would not show.
    pub async fn export_purchase(
        &self,
        question: &crate::resolve::Question,
        papers: &Papers,
    ) -> Result<(PurchaseBundle, Verification), ExportError> {
        let refused = |state| move |why| ExportError::Purchase { why, state };
        let asked = papers.question(&question.input).map_err(refused(State::Indeterminate))?;
        let live = self.ask_anew(question).await?;
        let live = self.verify_receipt_of(&live, Arc::new(asked.clone())).await;
        let packed = self.pack_purchase(question, papers, &asked, live.family.map(|family| family.id)).await;
        let (bundle, shown) = packed.map_err(refused(live.state))?;
        if live.state.and(shown.state) != shown.state && !clresolve_core::mutant!("bundles-hide-objections") {
            let codes = live.codes.join(", ");
            return Err(refused(live.state)(format!("a bundle would hide that it is {} ({codes})", live.state)));
        }
        Ok((bundle, shown))
    }

    /// The purchase with everything that is read for it, and what that shows. `family` is that of its receipt.
    ///
    /// # Errors
    /// Why there is no such bundle, in words.
    async fn pack_purchase(
        &self,
        question: &crate::resolve::Question,
        papers: &Papers,
        asked: &ReceiptQuestion,
        family: Option<Family>,
    ) -> Result<(PurchaseBundle, Verification), String> {
        let Inner { walker, registries, .. } = &*self.0;
        let bundle = self.export(question).await.map_err(|error| error.to_string())?.into_bundle();
        let name = bundle.name().clone();
        let signer = match family {
            // An address of the agent itself has signed.
            Some(Family::X1) => None,
            _ => Some(signer::receipts::read(walker, &name).await.map_err(|reason| unknown(&reason))?),
        };
        let due = asked.purchase.asks_for_settlement().then(|| asked.purchase.due(name.as_str()).ok()).flatten();
        let transaction = match due {
            Some(due) => Some(settlement::transaction(registries, walker, &due).await?),
            None => None,
        };
        let evidence = Evidence { signer, transaction, at: self.now() };
        let (papers, profiles) = (papers.clone(), walker.profiles.clone());
        let pack = move || {
            let agent = bundle.verify(&profiles)?;
            PurchaseBundle::pack(bundle, &agent, &papers, evidence)
        };
        walker.pool.run(pack).await.map_err(|error: BundleError| error.to_string())
    }

    /// As [`Resolver::verify_receipt`], about the agent of a verdict that was just asked for.
    pub(crate) async fn verify_receipt_of(
        &self,
        resolution: &Resolution,
        question: Arc<ReceiptQuestion>,
    ) -> Verification {
        self.judge_receipt(resolution, question).await.0
    }

    /// As [`Resolver::verify_and_remember_receipt`], about the agent of a verdict that was just asked for.
    pub(crate) async fn verify_and_remember_receipt_of(
        &self,
        resolution: &Resolution,
        question: Arc<ReceiptQuestion>,
    ) -> Verification {
        let (found, mark) = self.judge_receipt(resolution, question).await;
        if found.state != State::Trusted && !clresolve_core::mutant!("forgeries-are-remembered") {
            return found;
        }
        let seen = match (mark, &self.0.walker.history) {
            (None, _) => Err("nothing was given that a receipt of its family is remembered for".to_owned()),
            (_, None) => Err("memory.path names no file".to_owned()),
            (Some(mark), Some(history)) => history.mark(mark).await.map_err(|error| error.to_string()),
        };
        self.0.walker.pool.run(move || found.remembered(seen)).await
    }

    /// What is said of a receipt, and its mark where it was shown for something.
    async fn judge_receipt(
        &self,
        resolution: &Resolution,
        question: Arc<ReceiptQuestion>,
    ) -> (Verification, Option<Mark>) {
        let Inner { walker, receipt_signers, schemas, registries, settlements, .. } = &*self.0;
        let beside = Beside::of(resolution);
        let signer = async {
            match &beside {
                Some(beside) => signer::receipts::of(receipt_signers, walker, beside).await,
                None => Err(Box::new(Reason::new(Code::ReceiptKeyUnpublished).observed("the name has no normal form"))),
            }
        };
        let profile = &self.0.configured.profile;
        let bound = schemas.of(walker, profile, resolution, Side::Receipt);
        let settlement = settlement::of(settlements, registries, walker, beside.as_ref(), &question.purchase);
        let (signer, bound, settlement) = tokio::join!(signer, bound, settlement);
        let bound = bound.filter(is_judged_by);
        let now = self.now();
        let (resolver, resolution) = (self.clone(), resolution.clone());
        let judged = move || {
            let (verdict, agent) = (resolution.verdict(), resolver.agent(&resolution));
            let bought = question.purchase.bought();
            let known = ReceiptKnowledge {
                agent: agent.as_ref(),
                signer: signer.as_ref().map_err(|reason| &**reason),
                request: question.request.as_ref(),
                bought: bought.as_ref(),
                earliest: question.purchase.earliest(settlement.as_ref()),
                schema: bound
                    .as_ref()
                    .zip(first_verb(agent.as_ref()))
                    .map(|(bound, verb)| BoundReceipt { verb, schema: bound.as_deref().map_err(AsRef::as_ref) }),
                now,
            };
            let setting = ReceiptSetting {
                verdict,
                signer: signer.as_ref().ok(),
                is_signer_attested: false,
                request: question.request.as_ref().map(Request::sha256),
                decision: bought.as_ref().map(|bought| &*bought.decision),
                settlement: settlement.as_ref(),
                now,
            };
            let judgement = judge(&question.receipt, &known);
            let mark = Mark::of(&judgement, &known);
            (Verification::of(judgement, &setting), mark)
        };
        walker.pool.run(judged).await
    }

    /// What the verdict and the records read with it say of the agent.
    fn agent(&self, resolution: &Resolution) -> Option<ReceiptAgent> {
        let (verdict, gate) = (resolution.verdict(), self.0.walker.config.gate.policy());
        let addresses = SignerAddresses::of(verdict, resolution.payment(), &gate);
        let published = resolution.payment();
        let routes = AgentRoutes::of_verbs(verdict, published, |verb| self.route(resolution, verb));
        ReceiptAgent::of(verdict, addresses, routes)
    }
}

fn first_verb(agent: Option<&ReceiptAgent>) -> Option<&str> {
    agent?.verbs.first().map(String::as_str)
}

/// Whether a receipt is judged by what is known of the schema: not so where nothing pins its bytes.
fn is_judged_by(known: &Known) -> bool {
    known.as_ref().err().is_none_or(|reasons| reasons.iter().all(|reason| reason.code != Code::SchemaUnpinned))
}

fn unknown(reason: &Reason) -> String {
    let observed = reason.observed.as_deref().unwrap_or_default();
    format!("{} {observed}", reason.message)
}
