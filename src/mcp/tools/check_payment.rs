//! `check_payment`: may these terms be paid; and is what was signed what may be paid?

use std::sync::Arc;

use async_trait::async_trait;
use clresolve_payment::decision::Outcome;
use clresolve_payment::request::Demand;
use clresolve_payment::{Decision, DecisionRequest};
use serde_json::{Value, json};

use super::label::Label;
use super::tool::{Tool, name_argument};
use crate::cpu_share::Urgency;
use crate::mcp::answer::{Answer, Failure, OwnText};
use crate::mcp::asker::{AgentAnswer, Asker, read_apart};
use crate::mcp::form::{self, Form};
use crate::resolve::{DecisionEvent, Question};

pub(super) struct CheckPayment;

#[async_trait]
impl Tool for CheckPayment {
    fn name(&self) -> &'static str {
        "check_payment"
    }

    fn title(&self) -> &'static str {
        "Check a payment"
    }

    fn description(&self) -> &'static str {
        "Decides whether an x402 payment may be made: that the agent is trusted, that the terms come from its URL and pay it, \
         and that they are within the operator's limits. Give what the agent answered: response for an HTTP 402, toolResult \
         for the result of an MCP tool that asks to be paid, or paymentRequired for the terms alone. Ask before you sign, and \
         again with header before you send. Pay only where abort is false."
    }

    fn arguments(&self) -> (Value, &'static [&'static str]) {
        let members = json!({
            "name": name_argument(),
            "verb": {"type": "string", "description": "What the agent is to do"},
            "response": {
                "type": "object",
                "description": "The agent's HTTP reply, as it came",
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
            "toolResult": {"type": "object", "description": "The result of an MCP tool, as it came"},
            "url": {"type": "string", "description": "Where paymentRequired or toolResult comes from"},
            "selected": {"description": "The entry that is to be paid: its index in accepts, or the entry itself"},
            "limits": {"type": "object", "description": "Limits that are tighter than the operator's"},
            "header": {"type": "string", "description": "The payment header that is about to be sent"},
        });
        (members, &["name", "verb"])
    }

    fn form(&self) -> &'static Form {
        &form::DECISION
    }

    fn urgency(&self) -> Urgency {
        Urgency::Decision
    }

    async fn call(&self, asker: &dyn Asker, given: Value) -> Result<Answer, Failure> {
        let request = read_apart(asker, move || request(given)).await??;
        for text in [&request.name, &request.verb] {
            Label::try_from(text.clone())?;
        }
        let AgentAnswer { resolver, resolution } = asker.ask(Question::new(&*request.name)).await?;
        let work = async move {
            let (decision, _) = resolver.decide_on(resolution, &request).await;
            DecisionEvent::of(&decision).report();
            let said = of_decision(&decision).codes(decision.codes.iter().map(String::as_str));
            Answer::about(&resolver, said, &form::DECISION, decision).await
        };
        asker.admitted(Box::pin(work)).await
    }
}

fn of_decision(decision: &Decision) -> OwnText {
    OwnText::new(match (decision.decision, decision.abort) {
        (Outcome::Allow, false) => "allow: every check was made and passed. This payment may be made.",
        (Outcome::Undecided, _) => "undecided: not every check could be made. Do not pay.",
        (Outcome::Allow | Outcome::Deny, _) => "deny: do not pay.",
    })
}

/// The question in the arguments.
fn request(mut given: Value) -> Result<Arc<DecisionRequest>, Failure> {
    let of_tool = take_terms(&mut given)?;
    let bytes = serde_json::to_vec(&given).unwrap_or_default();
    let mut request = DecisionRequest::from_json(&bytes).map_err(|error| Failure::malformed(&error.to_string()))?;
    if let Some(terms) = of_tool {
        request.demand = Demand::PaymentRequired(terms);
    }
    Ok(Arc::new(request))
}

/// Takes the terms of a tool's result out of the arguments: its `structuredContent`, else its first text, as x402 has them
/// in MCP. The tool's text may be no JSON at all, so nothing of it stays there.
fn take_terms(given: &mut Value) -> Result<Option<String>, Failure> {
    let Some(members) = given.as_object_mut() else { return Ok(None) };
    let Some(result) = members.remove("toolResult") else { return Ok(None) };
    if members.contains_key("paymentRequired") || members.contains_key("response") {
        return Err(Failure::malformed("expected one of response, paymentRequired and toolResult"));
    }
    if !result.is_object() {
        return Err(Failure::malformed("toolResult: expected an object"));
    }
    members.insert("paymentRequired".to_owned(), json!({}));
    let text = || result.pointer("/content/0/text").and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(Some(result.get("structuredContent").map_or_else(text, Value::to_string)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(result: Value) -> Result<Arc<DecisionRequest>, Failure> {
        request(json!({"name": "a.eth", "verb": "v", "toolResult": result}))
    }

    #[test]
    fn terms_of_a_tools_result_are_its_structured_content_or_its_text() {
        let terms = Demand::PaymentRequired(r#"{"accepts":[]}"#.to_owned());
        let structured = json!({"structuredContent": {"accepts": []}, "content": [{"type": "text", "text": "{}"}]});
        assert_eq!(asked(structured).map(|request| request.demand.clone()), Ok(terms.clone()));
        let text = json!({"content": [{"type": "text", "text": r#"{"accepts":[]}"#}]});
        assert_eq!(asked(text).map(|request| request.demand.clone()), Ok(terms));
        assert!(asked(json!(3)).is_err());
        let twice = json!({"name": "a.eth", "verb": "v", "toolResult": {}, "paymentRequired": {}});
        assert!(request(twice).is_err());
    }

    /// What a tool sent is judged as terms, however broken it is.
    #[test]
    fn a_tools_result_without_terms_is_a_question_all_the_same() {
        for result in [json!({}), json!({"content": []}), json!({"content": [{"text": "pay me"}]})] {
            let request = asked(result.clone()).expect("a question");
            let code = request.terms().expect_err("no terms").code;
            assert_eq!(code.slug(), "payment-terms-malformed", "{result}");
        }
    }
}
