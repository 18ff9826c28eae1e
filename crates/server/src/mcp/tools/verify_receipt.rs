//! `verify_receipt`: verifies a receipt from an agent.

use std::sync::Arc;

use clresolve_core::state::TrustState;
use clresolve_messages::receipt::question::AgentRequest;
use clresolve_messages::receipt::{ReceiptVerificationDocument, ReceiptVerificationRequest};
use clresolve_payment::settlement::PurchasePaymentDocuments;
use clresolve_resolver::cpu_share::CpuJobUrgency;
use clresolve_resolver::resolve::NameQuestion;
use futures_util::FutureExt as _;
use serde::Deserialize;
use serde_json::{Value, json};

use super::label::BoundedText;
use super::tool::{McpTool, agent_name_argument_schema, parse_arguments};
use crate::mcp::answer::{McpToolAnswer, McpToolFailure, ProgramText};
use crate::mcp::asker::{McpBackend, ResolutionWithResolver, parse_message_on_cpu_pool};
use crate::mcp::form;

pub(super) static TOOL: McpTool = McpTool {
    name: "verify_receipt",
    title: "Verify a receipt",
    description: "Checks what an agent sent as a receipt: that the signer which the agent's records name has signed exactly this and, \
     where the request is given, about this request. A receipt that repeats no identifier of the request is about a \
     request with this input alone. A receipt that names no agent may be one of another agent of the same signer: then \
     agent stands under unchecked. With decision, payment and settlement it also tells whether the payment was settled as \
     it was decided. Rely on a receipt only where the state is trusted. Nothing is remembered.",
    arguments: || {
        let members = json!({
            "name": agent_name_argument_schema(),
            "receipt": {"type": "string", "description": "The receipt's JSON text, byte for byte as it came; never parsed and written again"},
            "request": {"type": "string", "description": "The JSON text of the request that it answers, as it was sent"},
            "decision": {"type": "string", "description": "The JSON text of the decision that the payment was made on"},
            "payment": {"type": "string", "description": "The payment header that was sent: PAYMENT-SIGNATURE, in version 1 X-PAYMENT"},
            "settlement": {"type": "string", "description": "The header of the reply: PAYMENT-RESPONSE, in version 1 X-PAYMENT-RESPONSE"},
        });
        (members, &["name", "receipt"])
    },
    form: &form::RECEIPT,
    urgency: CpuJobUrgency::Document,
    call: |asker, given| verify_receipt(asker, given).boxed(),
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VerifyReceiptArguments {
    name: BoundedText,
    /// The original text: parsing would lose parts that the signature covers, such as a duplicate member.
    receipt: String,
    request: Option<String>,
    decision: Option<String>,
    payment: Option<String>,
    settlement: Option<String>,
}

async fn verify_receipt(asker: &dyn McpBackend, given: Value) -> Result<McpToolAnswer, McpToolFailure> {
    let VerifyReceiptArguments { name, receipt, request, decision, payment, settlement } = parse_arguments(given)?;
    let read = move || -> Result<(Option<AgentRequest>, PurchasePaymentDocuments), String> {
        let request = request.map(|text| AgentRequest::from_bytes(text.as_bytes())).transpose();
        let request = request.map_err(|error| format!("request: {error}"))?;
        let decision = decision.as_deref().map(str::as_bytes);
        Ok((request, PurchasePaymentDocuments::from_documents(decision, payment.as_deref(), settlement)?))
    };
    let (request, purchase) =
        parse_message_on_cpu_pool(asker, read).await?.map_err(|why| McpToolFailure::malformed(&why))?;
    let (name, receipt) = (name.into(), receipt.into_bytes());
    let question = Arc::new(ReceiptVerificationRequest { name, receipt, request, purchase });
    let ResolutionWithResolver { resolver, resolution } =
        asker.resolve_question(NameQuestion::new(&*question.name)).await?;
    let work = async move {
        let found = resolver.verify_receipt_with_resolution(&resolution, question).await;
        let said = receipt_sentence(&found).with_codes(found.codes.iter().map(String::as_str));
        McpToolAnswer::from_document(&resolver, said, &form::RECEIPT, found).await
    };
    asker.run_as_resolution(Box::pin(work)).await
}

fn receipt_sentence(found: &ReceiptVerificationDocument) -> ProgramText {
    match found.state {
        TrustState::Trusted => {}
        TrustState::Untrusted => return ProgramText::new("untrusted: do not rely on this receipt."),
        TrustState::Indeterminate => return ProgramText::new("indeterminate: do not rely on this receipt yet."),
    }
    let signed = ProgramText::new(if found.is_by_address {
        "trusted: an address of the agent has signed this receipt"
    } else {
        "trusted: the agent's signer has signed this receipt"
    });
    let signed = match found.tie {
        Some(tie) => signed.with_sentence(" for ").with_sentence(tie.match_description()),
        None => signed,
    };
    let signed = match found.settlement_phrase() {
        Some(settled) => signed.with_sentence(", and ").with_sentence(settled),
        None => signed,
    };
    match found.unnamed_agent_caveat() {
        Some(caveat) => signed.with_sentence(". ").with_sentence(caveat),
        None => signed.with_sentence("."),
    }
}
