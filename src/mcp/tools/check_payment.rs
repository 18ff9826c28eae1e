//! `check_payment`: may these terms be paid; and is what was signed what may be paid?

use std::sync::Arc;

use async_trait::async_trait;
use clresolve_core::json::{self, Limits};
use clresolve_payment::decision::Outcome;
use clresolve_payment::{Decision, DecisionRequest};
use serde_json::{Value, json};

use super::label::Label;
use super::tool::{Tool, name_argument};
use crate::mcp::answer::{Answer, Failure, OwnText};
use crate::mcp::asker::{AgentAnswer, Asker, read_apart};
use crate::mcp::form::{self, Form};
use crate::resolve::{Question, report_decision};

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

    async fn call(&self, asker: &dyn Asker, given: Value) -> Result<Answer, Failure> {
        let request = read_apart(asker, move || request(given)).await??;
        for text in [&request.name, &request.verb] {
            Label::try_from(text.clone())?;
        }
        let AgentAnswer { resolver, resolution } = asker.ask(Question::new(&*request.name)).await?;
        let work = async move {
            let (decision, _) = resolver.decide_on(resolution, &request).await;
            report_decision(&decision);
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
fn request(given: Value) -> Result<Arc<DecisionRequest>, Failure> {
    let bytes = serde_json::to_vec(&with_terms(given)?).unwrap_or_default();
    let request = DecisionRequest::from_json(&bytes).map_err(|error| Failure::malformed(&error.to_string()))?;
    Ok(Arc::new(request))
}

/// The arguments with the terms of a tool's result in its place: its `structuredContent`, else its first text, as x402 has
/// them in MCP.
fn with_terms(mut given: Value) -> Result<Value, Failure> {
    let Some(members) = given.as_object_mut() else { return Ok(given) };
    let Some(result) = members.remove("toolResult") else { return Ok(given) };
    if members.contains_key("paymentRequired") || members.contains_key("response") {
        return Err(Failure::malformed("expected one of response, paymentRequired and toolResult"));
    }
    members.insert("paymentRequired".to_owned(), terms(&result)?);
    Ok(given)
}

fn terms(result: &Value) -> Result<Value, Failure> {
    if let Some(structured) = result.get("structuredContent") {
        return Ok(structured.clone());
    }
    let text = result.pointer("/content/0/text").and_then(Value::as_str);
    let text = text.ok_or_else(|| Failure::malformed("toolResult has neither structuredContent nor a text"))?;
    json::parse(text.as_bytes(), Limits::CARD).map_err(|error| Failure::malformed(&format!("toolResult: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_of_a_tools_result_are_its_structured_content_or_its_text() {
        let with = |result: Value| with_terms(json!({"name": "a.eth", "toolResult": result}));
        let terms = json!({"name": "a.eth", "paymentRequired": {"accepts": []}});
        assert_eq!(with(json!({"structuredContent": {"accepts": []}, "content": []})), Ok(terms.clone()));
        assert_eq!(with(json!({"content": [{"type": "text", "text": "{\"accepts\": []}"}]})), Ok(terms));
        for result in [json!({}), json!({"content": []}), json!({"content": [{"text": "pay me"}]}), json!(3)] {
            assert!(with(result.clone()).is_err(), "{result}");
        }
        assert!(with_terms(json!({"toolResult": {"structuredContent": {}}, "paymentRequired": {}})).is_err());
    }
}
