//! `explain_reason`: explains a reason code.

use clresolve_core::reason::{FixerRole, ReasonCode};
use clresolve_resolver::cpu_share::CpuJobUrgency;
use futures_util::FutureExt as _;
use serde::Deserialize;
use serde_json::{Value, json};

use super::label::BoundedText;
use super::tool::{McpTool, parse_arguments};
use crate::mcp::answer::{McpToolAnswer, McpToolFailure, ProgramText};
use crate::mcp::asker::McpBackend;
use crate::mcp::form;
use crate::registries;

pub(super) static TOOL: McpTool = McpTool {
    name: "explain_reason",
    title: "Explain a reason code",
    description: "Says what a reason code of another tool's answer means, who can fix it, and whether asking again may help.",
    arguments: || {
        (json!({"code": {"type": "string", "description": "A reason code, such as checksum-mismatch"}}), &["code"])
    },
    form: &form::REASON,
    urgency: CpuJobUrgency::Document,
    call: |asker, given| explain_reason(asker, given).boxed(),
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExplainReasonArguments {
    code: BoundedText,
}

async fn explain_reason(asker: &dyn McpBackend, given: Value) -> Result<McpToolAnswer, McpToolFailure> {
    let ExplainReasonArguments { code } = parse_arguments(given)?;
    let code = code.as_ref();
    let document = registries::reason_document(code);
    let document = document.ok_or_else(|| McpToolFailure::malformed(&format!("no reason code is called {code}")))?;
    McpToolAnswer::from_document(asker.resolver(), reason_sentence(code), &form::REASON, document).await
}

fn reason_sentence(slug: &str) -> ProgramText {
    let Some(code) = ReasonCode::from_slug(slug) else {
        return ProgramText::new("A refusal of a request; it is never in a judgement.").with_codes([slug]);
    };
    let entry = code.entry();
    let fixer = match entry.fixer {
        FixerRole::Asker => " The one who asks can fix it.",
        FixerRole::Publisher => " The publisher of the card and its records can fix it.",
        FixerRole::Operator => " The operator of this resolver can fix it.",
        FixerRole::Nobody => " Nobody has to fix it: it passes with time.",
    };
    let again = if entry.retryable { " Asking again may help." } else { " Asking again does not help." };
    ProgramText::new(entry.title)
        .with_sentence(" ")
        .with_sentence(entry.explanation)
        .with_sentence(fixer)
        .with_sentence(again)
}
