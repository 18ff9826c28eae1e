//! Verifies receipts. This module reads the agent's verdict, its signer's records and the settlement, and passes them
//! to the pure judgement.

use std::sync::Arc;

use clresolve_bundle::BundleError;
use clresolve_bundle::purchase::{PurchaseBundle, PurchaseDocuments, PurchaseEvidence};
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_core::state::TrustState;
use clresolve_messages::receipt::document::ReceiptVerificationDocumentInputs;
use clresolve_messages::receipt::judge::{
    AgentEntryRoutes, BoundReceiptSchema, CalledAgent, ReceiptKnowledge, SignerAddresses,
};
use clresolve_messages::receipt::question::AgentRequest;
use clresolve_messages::receipt::replay::ReceiptReplayKey;
use clresolve_messages::receipt::{ReceiptVerificationDocument, ReceiptVerificationRequest, judge_receipt};
use clresolve_verdict::card::SchemaRole;
use clresolve_verdict::trust::Resolution;

use super::look_ups::ResolvedVerdictKey;
use super::schemas::BoundSchemaResult;
use super::{ExportError, Resolver, ResolverState, settlement, signer};

impl Resolver {
    /// Verifies a receipt. The signer named by the agent's records must have signed it, and it must be about this
    /// agent. If a request is given, the receipt must be about that request. If a payment is given, it must have been
    /// settled. Nothing is written or remembered.
    ///
    /// Never fails: errors are part of the answer.
    pub async fn verify_receipt(&self, question: &ReceiptVerificationRequest) -> ReceiptVerificationDocument {
        let resolution = self.resolve(&question.name).await;
        self.verify_receipt_with_resolution(&resolution, Arc::new(question.clone())).await
    }

    /// Verifies a receipt and, if it is valid, records it for its request. The receipt is then not valid for another
    /// request. If no request is given, or no memory is configured (`memory.path`), this check is left undecided.
    ///
    /// Never fails: errors are part of the answer.
    pub async fn verify_and_remember_receipt(
        &self,
        question: &ReceiptVerificationRequest,
    ) -> ReceiptVerificationDocument {
        let resolution = self.resolve(&question.name).await;
        self.verify_and_remember_receipt_with_resolution(&resolution, Arc::new(question.clone())).await
    }

    /// Exports a purchase from an agent with all its evidence, judged anew. The bundle contains neither the bound
    /// schema nor the configured routes and payees, so the bundle's judgement omits everything that depends on them.
    ///
    /// # Errors
    /// Something that the bundle must contain is unknown: the signer's key, or the chain's record of a transaction. Or
    /// the receipt is objectionable or undecided for a reason that the bundle would not show.
    pub async fn export_purchase(
        &self,
        question: &crate::resolve::NameQuestion,
        papers: &PurchaseDocuments,
    ) -> Result<(PurchaseBundle, ReceiptVerificationDocument), ExportError> {
        let refused = |state| move |why| ExportError::Purchase { why, state };
        let asked = papers.verification_request(&question.input).map_err(refused(TrustState::Indeterminate))?;
        let live = self.resolve_question_anew(question).await?;
        let live = self.verify_receipt_with_resolution(&live, Arc::new(asked.clone())).await;
        let packed = self.pack_purchase(question, papers, &asked, live.is_by_address).await;
        let (bundle, shown) = packed.map_err(refused(live.state))?;
        if live.state.combine_with(shown.state) != shown.state && !clresolve_core::mutant!("bundles-hide-objections") {
            let codes = live.codes.join(", ");
            return Err(refused(live.state)(format!("a bundle would hide that it is {} ({codes})", live.state)));
        }
        Ok((bundle, shown))
    }

    /// Packs the purchase with everything that is read for it, and what that shows. If only an address of the agent can
    /// have signed the receipt, no signer is read.
    ///
    /// # Errors
    /// A description of why the bundle cannot be made.
    async fn pack_purchase(
        &self,
        question: &crate::resolve::NameQuestion,
        papers: &PurchaseDocuments,
        asked: &ReceiptVerificationRequest,
        is_by_address: bool,
    ) -> Result<(PurchaseBundle, ReceiptVerificationDocument), String> {
        let ResolverState { walker, registries, .. } = &*self.0;
        let bundle = self.export_bundle(question).await.map_err(|error| error.to_string())?.into_unsigned_bundle();
        let name = bundle.name().clone();
        let signer = if is_by_address {
            None
        } else {
            Some(
                signer::receipts::read_receipt_signer(walker, &name)
                    .await
                    .map_err(|reason| reason_with_observation(&reason))?,
            )
        };
        let due = asked
            .purchase
            .requires_settlement_check()
            .then(|| asked.purchase.due_transfer(name.as_str()).ok())
            .flatten();
        let transaction = match due {
            Some(due) => Some(settlement::read_transaction(registries, walker, &due).await?),
            None => None,
        };
        let evidence = PurchaseEvidence { signer, transaction, at: self.now() };
        let (papers, walker) = (papers.clone(), Arc::clone(walker));
        let pool = Arc::clone(&walker.pool);
        let pack = move || {
            let agent = bundle.verify_by_replay(walker.trust_anchors())?;
            PurchaseBundle::pack_purchase(bundle, &agent, &papers, evidence)
        };
        pool.run(pack).await.map_err(|error: BundleError| error.to_string())
    }

    /// Like [`Resolver::verify_receipt`], for the agent of a verdict that was just obtained.
    pub async fn verify_receipt_with_resolution(
        &self,
        resolution: &Resolution,
        question: Arc<ReceiptVerificationRequest>,
    ) -> ReceiptVerificationDocument {
        self.judge_receipt(resolution, question).await.0
    }

    /// Like [`Resolver::verify_and_remember_receipt`], for the agent of a verdict that was just obtained.
    pub async fn verify_and_remember_receipt_with_resolution(
        &self,
        resolution: &Resolution,
        question: Arc<ReceiptVerificationRequest>,
    ) -> ReceiptVerificationDocument {
        let (found, mark) = self.judge_receipt(resolution, question).await;
        if found.state != TrustState::Trusted && !clresolve_core::mutant!("forgeries-are-remembered") {
            return found;
        }
        let seen = match (mark, &self.0.walker.history) {
            (None, _) => Err("the input needed to remember receipts of this family is missing".to_owned()),
            (_, None) => Err("memory.path is not set".to_owned()),
            (Some(mark), Some(history)) => history.mark_receipt_as_seen(mark).await.map_err(|error| error.to_string()),
        };
        self.0.walker.pool.run(move || found.with_replay_status(seen)).await
    }

    /// The verification of a receipt, with its mark if it was presented for a request.
    async fn judge_receipt(
        &self,
        resolution: &Resolution,
        question: Arc<ReceiptVerificationRequest>,
    ) -> (ReceiptVerificationDocument, Option<ReceiptReplayKey>) {
        let ResolverState { walker, cached, receipt_signers, schemas, registries, settlements, .. } = &*self.0;
        let beside = ResolvedVerdictKey::from_resolution(resolution);
        let signer = async {
            match &beside {
                Some(beside) => signer::receipts::receipt_signer_of_agent(receipt_signers, cached, beside).await,
                None => Err(Box::new(
                    Reason::new(ReasonCode::ReceiptKeyUnpublished).observed("the name has no normal form"),
                )),
            }
        };
        let profile = &self.0.configured.profile;
        let bound = schemas.bound_schema_of_agent(walker, profile, resolution, SchemaRole::Receipt);
        let settlement =
            settlement::check_purchase_settlement(settlements, registries, walker, beside.as_ref(), &question.purchase);
        let (signer, bound, settlement) = tokio::join!(signer, bound, settlement);
        let bound = bound.filter(is_usable_schema);
        let now = self.now();
        let (resolver, resolution) = (self.clone(), resolution.clone());
        let judged = move || {
            let (verdict, agent) = (resolution.verdict(), resolver.receipt_agent(&resolution));
            let bought = question.purchase.purchase_facts();
            let known = ReceiptKnowledge {
                agent: agent.as_ref(),
                signer: signer.as_ref().map_err(|reason| &**reason),
                request: question.request.as_ref(),
                bought: bought.as_ref(),
                earliest: question.purchase.earliest_purchase_time(settlement.as_ref()),
                schema: bound
                    .as_ref()
                    .zip(first_verb(agent.as_ref()))
                    .map(|(bound, verb)| BoundReceiptSchema { verb, schema: bound.as_deref().map_err(AsRef::as_ref) }),
                now,
            };
            let setting = ReceiptVerificationDocumentInputs {
                verdict,
                signer: signer.as_ref().ok(),
                is_signer_attested: false,
                request: question.request.as_ref().map(AgentRequest::sha256),
                decision: bought.as_ref().map(|bought| &*bought.decision),
                settlement: settlement.as_ref(),
                now,
            };
            let judgement = judge_receipt(&question.receipt, &known);
            let mark = ReceiptReplayKey::from_judgement(&judgement, &known);
            (ReceiptVerificationDocument::from_judgement(judgement, &setting), mark)
        };
        walker.pool.run(judged).await
    }

    /// The facts about the agent in the verdict and in the records that were read with it.
    fn receipt_agent(&self, resolution: &Resolution) -> Option<CalledAgent> {
        let (verdict, gate) = (resolution.verdict(), self.0.walker.config.gate.gate_policy());
        let addresses = SignerAddresses::from_published(verdict, resolution.payment_records(), &gate);
        let published = resolution.payment_records();
        let routes = AgentEntryRoutes::lookup_for_verbs(verdict, published, |verb| self.agent_route(resolution, verb));
        CalledAgent::from_verdict(verdict, addresses, routes)
    }
}

fn first_verb(agent: Option<&CalledAgent>) -> Option<&str> {
    agent?.verbs.first().map(String::as_str)
}

/// Whether the known schema is used to judge a receipt. It is not if nothing pins the schema's bytes.
fn is_usable_schema(known: &BoundSchemaResult) -> bool {
    known.as_ref().err().is_none_or(|reasons| reasons.iter().all(|reason| reason.code != ReasonCode::SchemaUnpinned))
}

/// The message of a reason, followed by what was observed.
fn reason_with_observation(reason: &Reason) -> String {
    let observed = reason.observed.as_deref().unwrap_or_default();
    format!("{} {observed}", reason.message)
}
