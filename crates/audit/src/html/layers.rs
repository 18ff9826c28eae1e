//! The findings on the published schemas of the layers.

use maud::{Markup, Render as _, html};

use super::markup::{HtmlColumn, code_markup, join_markup, omitted_note, row_markup, section_markup, table_markup};
use crate::page::ItemQuota;
use crate::{AuditReport, PublishedSchemaRow};

/// Maximum number of schemas listed: a registry's layers have some dozens. The JSON form has all.
const MAX_SCHEMAS_SHOWN: usize = 500;

const COLUMNS: [HtmlColumn; 4] = [("subject", "schema"), ("wide", "path"), ("", "state"), ("wide", "because of")];

/// The section, if the layers were checked.
pub(super) fn layers_section(report: &AuditReport) -> Markup {
    let Some(summary) = report.layers_sentence() else { return html! {} };
    let mut quota = ItemQuota::with_limit(MAX_SCHEMAS_SHOWN);
    let rows: Vec<Markup> = report.schemas_with_findings().filter(|_| quota.try_take()).map(schema_row).collect();
    let content = html! {
        p { (summary) }
        p.soft { "No name's state depends on this: a verdict accepts any copy with the pinned bytes." }
        (table_markup("layers-table", "schemas", &COLUMNS, &rows))
        (omitted_note(quota.over, "schemas"))
    };
    section_markup("layers", "Schema layers", &content)
}

fn schema_row(schema: &PublishedSchemaRow) -> Markup {
    let codes = join_markup(schema.codes().iter().map(|reason| code_markup(reason.slug())), " ");
    row_markup(
        &COLUMNS,
        &[code_markup(&schema.key()), code_markup(&schema.path), schema.state_in_words().render(), codes],
    )
}
