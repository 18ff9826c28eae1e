//! `explain_reason`: explains a reason code.

use clresolve_core::reason::{Code, Fixer};
use clresolve_resolver::cpu_share::Urgency;
use futures_util::FutureExt as _;
use serde::Deserialize;
use serde_json::{Value, json};

use super::label::Label;
use super::tool::{Tool, arguments};
use crate::mcp::answer::{Answer, Failure, OwnText};
use crate::mcp::asker::Asker;
use crate::mcp::form;
use crate::registries;

pub(super) static TOOL: Tool = Tool {
    name: "explain_reason",
    title: "Explain a reason code",
    description: "Says what a reason code of another tool's answer means, who can fix it, and whether asking again may help.",
    arguments: || {
        (json!({"code": {"type": "string", "description": "A reason code, such as checksum-mismatch"}}), &["code"])
    },
    form: &form::REASON,
    urgency: Urgency::Document,
    call: |asker, given| call(asker, given).boxed(),
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    code: Label,
}

async fn call(asker: &dyn Asker, given: Value) -> Result<Answer, Failure> {
    let Arguments { code } = arguments(given)?;
    let code = code.as_ref();
    let document = registries::reason(code);
    let document = document.ok_or_else(|| Failure::malformed(&format!("no reason code is called {code}")))?;
    Answer::about(asker.resolver(), said(code), &form::REASON, document).await
}

fn said(slug: &str) -> OwnText {
    let Some(code) = Code::from_slug(slug) else {
        return OwnText::new("A refusal of a request; it is never in a judgement.").codes([slug]);
    };
    let entry = code.entry();
    let fixer = match entry.fixer {
        Fixer::Asker => " The one who asks can fix it.",
        Fixer::Publisher => " The publisher of the card and its records can fix it.",
        Fixer::Operator => " The operator of this resolver can fix it.",
        Fixer::Nobody => " Nobody has to fix it: it passes with time.",
    };
    let again = if entry.retryable { " Asking again may help." } else { " Asking again does not help." };
    OwnText::new(entry.title).and(" ").and(entry.explanation).and(fixer).and(again)
}
