//! `check_payment`: checks who is paid, and whether a signed payment matches the terms. A name in the call counts as
//! the seller's claim, because the model may have read it on the seller's page.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clresolve_core::reason::Reason;
use clresolve_payment::check::{SellerCheckRequest, SellerIdentitySource};
use clresolve_payment::decision::DecisionOutcome;
use clresolve_payment::request::PaymentDemand;
use clresolve_payment::terms::check_meta_challenges;
use clresolve_resolver::cpu_share::CpuJobUrgency;
use futures_util::FutureExt as _;
use serde_json::{Value, json};

use super::label::BoundedText;
use super::tool::{McpTool, agent_name_argument_schema};
use crate::mcp::answer::{McpToolAnswer, McpToolFailure, ProgramText};
use crate::mcp::asker::{McpBackend, parse_message_on_cpu_pool};
use crate::mcp::form;

pub(super) static TOOL: McpTool = McpTool {
    name: "check_payment",
    title: "Check a payment",
    description: "Decides whether an x402 payment may be made: who is paid and what proves it, that the terms come from the seller's \
     URL, and that they are within the operator's limits. Give what the seller answered: response for an HTTP 402, \
     toolResult for the result of an MCP tool that asks to be paid, or paymentRequired for the terms alone. Give name and \
     verb if you know them. The name counts as claimed by the seller: it allows nothing unless the operator has pinned \
     or accepted it for the seller's URL. Ask before you sign, and again with what you signed, as \
     header, before you send: only then is it compared with what was decided. Pay only where abort is false in both \
     answers.",
    arguments: || {
        let members = json!({
            "name": agent_name_argument_schema(),
            "verb": {"type": "string", "description": "What the agent is to do"},
            "response": {
                "type": "object",
                "description": "The seller's HTTP reply, as it came",
                "properties": {
                    "status": {"type": "integer"},
                    "url": {"type": "string"},
                    "headers": {"description": "An object, or a list of pairs"},
                    "body": {"type": "string"},
                    "body_base64": {"type": "string"},
                },
                "required": ["status", "url"],
                "additionalProperties": false,
            },
            "paymentRequired": {"type": "object", "description": "The terms alone"},
            "toolResult": {
                "type": "object",
                "description": "The result of an MCP tool, as it came, with _meta; or {\"error\": …} with the JSON-RPC error",
            },
            "url": {"type": "string", "description": "Where paymentRequired or toolResult comes from"},
            "selected": {"description": "The entry that is to be paid: its index in accepts, or the entry itself"},
            "limits": {"type": "object", "description": "Limits that are tighter than the operator's"},
            "header": {
                "type": ["string", "object"],
                "description": "What is about to be sent: the payment header, or _meta of the tool call that pays",
            },
        });
        (members, &[])
    },
    form: &form::CHECK,
    urgency: CpuJobUrgency::Decision,
    call: |asker, given| check_payment(asker, given).boxed(),
};

async fn check_payment(asker: &dyn McpBackend, given: Value) -> Result<McpToolAnswer, McpToolFailure> {
    let request = parse_message_on_cpu_pool(asker, move || seller_check_request(given)).await??;
    for text in [&request.name, &request.verb].into_iter().flatten() {
        BoundedText::try_from(text.clone()).map_err(|error| McpToolFailure::malformed(&error))?;
    }
    let resolver = asker.resolver().clone();
    let work = async move {
        let check = resolver.check_seller(&request).await;
        let said = check_conclusion(check.decision, check.abort).with_codes(check.codes.iter().map(String::as_str));
        McpToolAnswer::from_document(&resolver, said, &form::CHECK, check).await
    };
    asker.run_as_resolution(Box::pin(work)).await
}

fn check_conclusion(outcome: DecisionOutcome, abort: bool) -> ProgramText {
    ProgramText::new(match (outcome, abort) {
        (DecisionOutcome::Allow, false) => "allow: every check was made and passed. This payment may be made.",
        (DecisionOutcome::Undecided, _) => "undecided: not every check could be made. Do not pay.",
        (DecisionOutcome::Allow | DecisionOutcome::Deny, _) => "deny: do not pay.",
    })
}

/// The question in the arguments. `url` is rejected beside `response`, which contains the URL that answered.
fn seller_check_request(mut given: Value) -> Result<SellerCheckRequest, McpToolFailure> {
    if ["response", "url"].iter().all(|member| given.get(member).is_some_and(|value| !value.is_null())) {
        return Err(McpToolFailure::malformed(
            "expected url only with paymentRequired or toolResult: a response has its own",
        ));
    }
    let result = take_result(&mut given)?;
    let refused = take_payment_from_meta(&mut given)?;
    let bytes = serde_json::to_vec(&given).unwrap_or_default();
    let mut request =
        SellerCheckRequest::from_json(&bytes).map_err(|error| McpToolFailure::malformed(&error.to_string()))?;
    if !clresolve_core::mutant!("models-name-sellers") {
        request.named_by = SellerIdentitySource::Seller;
    }
    if let Some(result) = result {
        request.demand = PaymentDemand::ToolResult(result);
    }
    if let Some(reason) = refused {
        request.demand = PaymentDemand::Unasked(reason);
    }
    Ok(request)
}

/// Removes the tool result from the arguments. It may be arbitrary, so nothing of it remains there.
fn take_result(given: &mut Value) -> Result<Option<String>, McpToolFailure> {
    let Some(members) = given.as_object_mut() else { return Ok(None) };
    let Some(result) = members.remove("toolResult") else { return Ok(None) };
    if members.contains_key("paymentRequired") || members.contains_key("response") {
        return Err(McpToolFailure::malformed("expected one of response, paymentRequired and toolResult"));
    }
    if !result.is_object() {
        return Err(McpToolFailure::malformed("toolResult: expected an object"));
    }
    members.insert("paymentRequired".to_owned(), json!({}));
    Ok(Some(result.to_string()))
}

/// Replaces a `_meta` that contains a payment by that payment. It may be an object as in the specification, base64 as
/// Cloudflare's client writes it, or the form of the specification's extension. Otherwise returns why that `_meta` must
/// not be sent.
fn take_payment_from_meta(given: &mut Value) -> Result<Option<Box<Reason>>, McpToolFailure> {
    let Some(header) = given.get_mut("header") else { return Ok(None) };
    let Value::Object(meta) = header else { return Ok(None) };
    if let Err(reason) = check_meta_challenges(meta) {
        *header = Value::Null;
        return Ok(Some(reason));
    }
    let of_extension = meta.get("org.x402/payment").map(|payment| payment.get("paymentPayload").unwrap_or(payment));
    let header_of = |payment: &Value| match payment {
        Value::String(encoded) => encoded.clone(),
        payment => STANDARD.encode(payment.to_string()),
    };
    let encoded = match (meta.get("x402/payment"), of_extension) {
        (Some(payment), None) | (None, Some(payment)) => header_of(payment),
        _ => {
            return Err(McpToolFailure::malformed(
                "header: expected _meta with one payment, or the payment header as text",
            ));
        }
    };
    *header = Value::String(encoded);
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::seller_check_request as request_of;
    use super::*;

    fn asked(result: Value) -> Result<SellerCheckRequest, McpToolFailure> {
        request_of(json!({"name": "a.eth", "verb": "v", "toolResult": result}))
    }

    #[test]
    fn result_of_a_tool_is_handed_on_whole() {
        let result =
            json!({"structuredContent": {"accepts": []}, "content": [{"type": "text", "text": "{}"}], "_meta": {}});
        let request = asked(result.clone()).expect("a question");
        let PaymentDemand::ToolResult(text) = &request.demand else { panic!("the result of a tool") };
        assert_eq!(serde_json::from_str::<Value>(text).ok(), Some(result));
        assert!(asked(json!(3)).is_err());
        let twice = json!({"name": "a.eth", "verb": "v", "toolResult": {}, "paymentRequired": {}});
        assert!(request_of(twice).is_err());
    }

    #[test]
    fn name_of_a_model_is_the_sellers_word() {
        let request = request_of(json!({"name": "a.eth", "paymentRequired": {}})).expect("a question");
        assert_eq!((request.name.as_deref(), request.named_by), (Some("a.eth"), SellerIdentitySource::Seller));
        let two_urls = json!({"response": {"status": 402, "url": "https://a.example/"}, "url": "https://b.example/"});
        assert!(request_of(two_urls).is_err());
    }

    #[test]
    fn payment_header_is_read_from_the_meta_of_a_call() {
        let with =
            |header: Value| request_of(json!({"name": "a.eth", "verb": "v", "toolResult": {}, "header": header}));
        let encoded = Some("eyJhIjoxfQ==".to_owned());
        for header in [
            json!("eyJhIjoxfQ=="),
            json!({"x402/payment": "eyJhIjoxfQ=="}),
            json!({"x402/payment": {"a": 1}, "progressToken": 3}),
            json!({"org.x402/payment": {"paymentPayload": {"a": 1}}}),
        ] {
            assert_eq!(with(header.clone()).map(|request| request.header.clone()), Ok(encoded.clone()), "{header}");
        }
        for header in [json!({}), json!({"x402/payment": {}, "org.x402/payment": {"paymentPayload": {}}}), json!(7)] {
            assert!(with(header.clone()).is_err(), "{header}");
        }
    }

    #[test]
    fn credential_of_another_protocol_is_refused() {
        let terms = json!({"x402Version": 2, "accepts": [{}], "resource": {"url": "mcp://tool/a"}});
        for meta in [
            json!({"org.paymentauth/credential": {}}),
            json!({"org.paymentauth/credential": {}, "x402/payment": {"a": 1}}),
        ] {
            let given = json!({"name": "a.eth", "verb": "v", "paymentRequired": terms, "header": meta});
            let code = request_of(given).expect("a question").parse_terms().expect_err("a credential").code;
            assert_eq!(code.slug(), "payment-terms-ambiguous", "{meta}");
        }
    }

    /// Any result of a tool is judged as terms, even a malformed one.
    #[test]
    fn a_tools_result_without_terms_is_a_question_all_the_same() {
        for result in [json!({}), json!({"content": []}), json!({"content": [{"text": "pay me"}]})] {
            let request = asked(result.clone()).expect("a question");
            let code = request.parse_terms().expect_err("no terms").code;
            assert_eq!(code.slug(), "payment-terms-malformed", "{result}");
        }
    }
}
