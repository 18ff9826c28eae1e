//! The checks of a receipt against the published form and the schema that the agent's card binds.

use clresolve_core::reason::{self, Reason, ReasonCode};
use clresolve_verdict::verdict::StepStatus;

use super::{BoundReceiptSchema, ReceiptCheckKind, ReceiptCheckResult, ReceiptJudgementBuilder};
use crate::receipt::family::ReceiptParts;
use crate::receipt::json::JsonNode;

impl ReceiptJudgementBuilder {
    /// PC-7 and CL-63, for the families whose receipts follow the published schemas.
    pub(super) fn check_schema(&mut self, parts: &ReceiptParts, bound: Option<BoundReceiptSchema<'_>>) {
        if !parts.family.follows_published_schemas() {
            return self.add_skip(ReceiptCheckKind::Schema);
        }
        let content = &parts.content;
        let has_text = |path: &[&str]| content.text_at(path).is_some();
        let status = content.text_at(&["status"]);
        let missing = [
            (!has_text(&["x402", "verb"]), "/x402/verb", "a text"),
            (!has_text(&["x402", "version"]), "/x402/version", "a text"),
            (!has_text(&["trace", "trace_id"]), "/trace/trace_id", "a text"),
            (
                !status.is_some_and(|word| ["success", "error", "delegated"].contains(&word)),
                "/status",
                "success, error or delegated",
            ),
            (
                status == Some("success") && !content.get("result").is_some_and(JsonNode::is_object),
                "/result",
                "an object",
            ),
            (status == Some("error") && !content.get("error").is_some_and(JsonNode::is_object), "/error", "an object"),
        ];
        match missing.into_iter().find(|(is_missing, ..)| *is_missing) {
            None => self.check_bound_schema(parts, bound),
            Some((_, place, expected)) => {
                let reason = Reason::new(ReasonCode::ReceiptSchemaInvalid).with_requirement("PC-7").expected(expected);
                let reason = reason.at_place(format!("{}{place}", parts.root));
                self.add_objection(ReceiptCheckKind::Schema, reason, Some("ERR_SCHEMA_INVALID"));
            }
        }
    }

    /// CL-63: validates the signed content against the schema that the agent's card binds for the verb. Unsigned
    /// members are excluded.
    fn check_bound_schema(&mut self, parts: &ReceiptParts, bound: Option<BoundReceiptSchema<'_>>) {
        let verb = parts.content.text_at(&["x402", "verb"]);
        let Some(BoundReceiptSchema { schema, .. }) = bound.filter(|bound| verb == Some(bound.verb)) else {
            return self.rows.push(ReceiptCheckResult::new(ReceiptCheckKind::Schema, StepStatus::Pass));
        };
        let schema = match schema {
            Ok(schema) => schema,
            Err(reasons) => return self.add_unknown_schema(reasons),
        };
        self.bound = Some(schema.identity().clone());
        let id = schema.identity().id.as_str();
        let content = parts.content.to_value();
        let mut violations =
            schema.every_violation(&content).filter(|_| !clresolve_core::mutant!("receipts-of-any-schema"));
        match violations.next() {
            None => {
                let row = ReceiptCheckResult::new(ReceiptCheckKind::Schema, StepStatus::Pass);
                self.rows.push(ReceiptCheckResult {
                    expected: Some(id.to_owned()),
                    observed: Some("valid".to_owned()),
                    ..row
                });
            }
            Some(violation) => {
                let reason = Reason::new(ReasonCode::ReceiptSchemaInvalid)
                    .message("The receipt is not what its bound schema demands.");
                let reason = reason.expected(id).observed(violation.detail);
                let reason = reason.at_place(format!("{}{}", parts.root, violation.pointer));
                self.add_objection(ReceiptCheckKind::Schema, reason, Some("ERR_SCHEMA_INVALID"));
            }
        }
    }

    /// Adds every reason why the schema is unknown, and a row with the worst of them.
    fn add_unknown_schema(&mut self, reasons: &[Reason]) {
        let mut reasons = reasons.to_vec();
        reason::sort_reasons(&mut reasons);
        let mut reasons = reasons.into_iter();
        let worst = reasons
            .next()
            .unwrap_or_else(|| Reason::new(ReasonCode::SchemaUnavailable).observed("the cause is unknown"));
        self.add_objection(ReceiptCheckKind::Schema, worst, None);
        self.reasons.extend(reasons);
    }
}
