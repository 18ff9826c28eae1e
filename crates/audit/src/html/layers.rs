//! The findings on the published schemas of the layers.

use maud::{Markup, Render as _, html};

use super::markup::{Column, code, joined, omitted, row, section, table};
use crate::page::Quota;
use crate::{Report, SchemaRow};

/// Maximum number of schemas listed: a registry's layers have some dozens. The JSON form has all.
const MAX_SCHEMAS_SHOWN: usize = 500;

const COLUMNS: [Column; 4] = [("subject", "schema"), ("wide", "path"), ("", "state"), ("wide", "because of")];

/// The section, if the layers were checked.
pub(super) fn of(report: &Report) -> Markup {
    let Some(summary) = report.layers() else { return html! {} };
    let mut quota = Quota::of(MAX_SCHEMAS_SHOWN);
    let rows: Vec<Markup> = report.schemas_with_findings().filter(|_| quota.take()).map(schema_row).collect();
    let content = html! {
        p { (summary) }
        p.soft { "No name's state depends on this: a verdict accepts any copy with the pinned bytes." }
        (table("layers-table", "schemas", &COLUMNS, &rows))
        (omitted(quota.over, "schemas"))
    };
    section("layers", "Schema layers", &content)
}

fn schema_row(schema: &SchemaRow) -> Markup {
    let codes = joined(schema.codes().iter().map(|reason| code(reason.slug())), " ");
    row(&COLUMNS, &[code(&schema.key()), code(&schema.path), schema.standing().render(), codes])
}
