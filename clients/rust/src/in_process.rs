//! Decides with a resolver in this process instead of a daemon.

use async_trait::async_trait;
use clresolve_core::reason::{Reason, ReasonEffect};
use clresolve_resolver::Resolver;
use clresolve_resolver::payment::{
    self, CallerLimits, PaymentDecisionRequest, PaymentOptionResult, PaymentOptionSelection, SellerCheckRequest,
};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::decision::remove_warning_codes;
use crate::guard::PaymentDecider;
use crate::refusal::{Refusal, Why};
use crate::reply::{PayableEntries, PayableEntry, PaymentRequiredResponse};

/// A resolver in this process, and whom the guard pays: an agent for a verb, or any seller. The resolver's
/// configuration determines gate, limits and the evidence that is accepted.
#[derive(Clone)]
pub struct InProcess {
    resolver: Resolver,
    whom: GuardedPayee,
    limits: CallerLimits,
}

#[derive(Clone)]
enum GuardedPayee {
    Agent { name: String, verb: String },
    Any { name: Option<String>, verb: Option<String> },
}

impl InProcess {
    /// The resolver, for the agent with this ENS name and the verb to pay for.
    pub fn new(resolver: Resolver, agent: impl Into<String>, verb: impl Into<String>) -> Self {
        let whom = GuardedPayee::Agent { name: agent.into(), verb: verb.into() };
        Self { resolver, whom, limits: CallerLimits::default() }
    }

    /// The resolver, for any seller whose payee it proves. `name` is the seller's ENS name, if you know it: the
    /// guard trusts it, unlike the seller's. `verb` is the verb to pay for, if the seller may have an Agent-Card.
    pub fn any(resolver: Resolver, name: Option<String>, verb: Option<String>) -> Self {
        Self { resolver, whom: GuardedPayee::Any { name, verb }, limits: CallerLimits::default() }
    }

    /// Applies limits that are stricter than those of the configuration.
    #[must_use]
    pub fn tightened(self, limits: CallerLimits) -> Self {
        Self { limits, ..self }
    }

    /// The answer about a reply or, if there is one, about the payment header for one of its entries.
    async fn request_decision(
        &self,
        reply: &PaymentRequiredResponse,
        payment: Option<(usize, &str)>,
    ) -> Result<InProcessDecision, Refusal> {
        let selected = payment.map(|(entry, _)| PaymentOptionSelection::Index(entry));
        let header = payment.map(|(_, header)| header.to_owned());
        let (limits, url) = (self.limits.clone(), reply.url.as_str());
        let reply = payment::SellerHttpReply { status: 402, headers: reply.headers.clone(), body: reply.body.clone() };
        match &self.whom {
            GuardedPayee::Agent { name, verb } => {
                let request = PaymentDecisionRequest::from_seller_reply(&**name, &**verb, url, reply);
                let answer =
                    self.resolver.decide_payment(&PaymentDecisionRequest { limits, selected, header, ..request }).await;
                InProcessDecision::from_answer(
                    &answer,
                    answer.abort,
                    &answer.codes,
                    &answer.reasons,
                    &answer.entries,
                    answer.valid_until,
                )
            }
            GuardedPayee::Any { name, verb } => {
                let (name, verb) = (name.clone(), verb.clone());
                let request = SellerCheckRequest::from_seller_reply(url, reply);
                let request = SellerCheckRequest { name, verb, limits, selected, header, ..request };
                let answer = self.resolver.check_seller(&request).await;
                InProcessDecision::from_answer(
                    &answer,
                    answer.abort,
                    &answer.codes,
                    &answer.reasons,
                    &answer.entries,
                    answer.valid_until,
                )
            }
        }
    }
}

/// What the guard relies on of a decision or a check.
struct InProcessDecision {
    abort: bool,
    /// The codes that decide.
    codes: Vec<String>,
    /// The entries that may be paid.
    passing: Vec<PayableEntry>,
    document: Value,
}

impl InProcessDecision {
    fn from_answer(
        document: &impl Serialize,
        abort: bool,
        codes: &[String],
        reasons: &[Reason],
        entries: &[PaymentOptionResult],
        until: Option<Timestamp>,
    ) -> Result<Self, Refusal> {
        let warnings =
            reasons.iter().filter(|reason| reason.effect == ReasonEffect::Warn).map(|reason| reason.code.slug());
        let codes = remove_warning_codes(codes.to_vec(), &warnings.collect::<Vec<_>>());
        let payable = |row: &PaymentOptionResult| {
            let until = row.valid_until.or(until)?;
            Some(PayableEntry { entry: row.index, until: until.into() })
        };
        let passing = entries.iter().filter(|row| !row.abort).filter_map(payable).collect();
        let document = serde_json::to_value(document);
        let document = document.map_err(|error| Refusal::from_kind(Why::Unavailable).with_cause(error))?;
        Ok(Self { abort, codes, passing, document })
    }
}

#[async_trait]
impl PaymentDecider for InProcess {
    async fn check_gate(&self) -> Result<(), Refusal> {
        // The gate knows agents alone.
        let GuardedPayee::Agent { name, verb } = &self.whom else { return Ok(()) };
        self.resolver.check_gate(name, verb).await.map_err(|code| Refusal::new(Why::Denied, [code.to_owned()]))
    }

    async fn decide_payable_entries(&self, reply: &PaymentRequiredResponse) -> Result<PayableEntries, Refusal> {
        let answer = self.request_decision(reply, None).await?;
        PayableEntries::new(answer.passing).ok_or_else(|| Refusal::new(Why::Denied, answer.codes))
    }

    async fn confirm_signed_payment(
        &self,
        reply: &PaymentRequiredResponse,
        header: &str,
        entry: usize,
    ) -> Result<Value, Refusal> {
        let answer = self.request_decision(reply, Some((entry, header))).await?;
        if answer.abort { Err(Refusal::new(Why::PaymentDenied, answer.codes)) } else { Ok(answer.document) }
    }
}
